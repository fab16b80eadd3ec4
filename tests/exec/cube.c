#include "cube.h"

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status cube_gradient(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);

    return dy.node ? tn_grad_emit(g, 0, "_backward_test_cube", 1, &dy) : TN_OK;
}

static const char *const names_x[] = {"x", NULL}, *const names_y[] = {"y", NULL};
static const char *const names_dy[] = {"dy", NULL}, *const names_dx[] = {"dx", NULL};
static const tn_op cube = {.struct_size = (uint32_t)TN_END(tn_op, gradient),
                           .version = 1,
                           .name = "test_cube",
                           .doc = "x to the third power",
                           .inputs = names_x,
                           .outputs = names_y,
                           .shape = same_shape,
                           .gradient = cube_gradient};
static const tn_op cube_backward = {.struct_size = (uint32_t)TN_END(tn_op, gradient),
                                    .version = 1,
                                    .name = "_backward_test_cube",
                                    .doc = "its gradient",
                                    .inputs = names_dy,
                                    .outputs = names_dx,
                                    .flags = TN_OP_BACKWARD,
                                    .shape = same_shape};
static const tn_op *const ops[] = {&cube, &cube_backward, NULL};
const tn_op_table test_cube_ops = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "cubes"), .ops = ops};

tn_status test_cube_backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    if (!node->forward || node->forward->saved_bytes != 4u * (uint64_t)tn_tensor_count(node->in[0]))
        return tn_fail(err, TN_E_UNSUPPORTED, "needs what the forward saved");
    plan->est_ns = 100;
    return TN_OK;
}

tn_status test_cube_backward_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *dy = x->in[0]->data, *block = x->saved;
    float *dx = x->out[0]->data;

    (void)plan;
    if (!block)
        return tn_fail(err, TN_E_INTERNAL, "no saved block");
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        dx[i] = dy[i] * block[i];
    return TN_OK;
}
