/* ../common/shape.inc; operators whose output has the elements of input 0 in their order: copies of bytes;
 * shapes as arrays. */
#include "../common/move.h"
#include "launch.h"

#include "tenon/plugin/op/reduce.h"
#include "tenon/plugin/op/shape.h"

#define ALL_TYPES TNCUDA_ALL
#include "../common/shape.inc"

static tn_status copy_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(uint64_t), err);

    plan->inplace[0] = 0;
    return st;
}

/* Of no elements: what there is to write is 0. */
static tn_status copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    return tn_tensor_count(x->in[0]) ? tnb_move_copy(plan, x, x->in[0], x->out[0], err)
                                     : tnb_move_zero(plan, x, x->out[0], err);
}

static tn_status info_run(const tn_exec *x, uint32_t count, const int64_t *number, tn_err *err)
{
    tncuda_words_args a = {.count = count, .to = x->out[0]->data};

    for (uint32_t k = 0; k < count; k++)
        a.word[k] = number[k];
    return tncuda_launch(x, "move", "words", count, &a, err);
}

static tn_status shape_array_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return info_run(x, (uint32_t)x->in[0]->ndim, x->in[0]->shape, err);
}

static tn_status size_array_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_tensor_count(x->in[0]);

    (void)plan;
    return info_run(x, 1, &count, err);
}

static const char *const same[] = {"data:" TNCUDA_ALL, "*:=data", NULL};
static const char *const like_types[] = {"lhs:" TNCUDA_ALL, "rhs:" TNCUDA_ALL, "output:=lhs", NULL};
static const char *const info_types[] = {"data:" TNCUDA_ALL, "output:i64", NULL};

const tn_kernel *const tncuda_family_shape[] = {
    SHAPE_ROWS(TNCUDA_ROW),
    TNCUDA_ROW("Reshape", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("Flatten", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("expand_dims", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("squeeze", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("_backward_reshape", shape_back_types, 0, copy_prepare, copy_run),
    TNCUDA_ROW("_np_reshape", any_types, 0, copy_prepare, copy_run),
    TNCUDA_ROW("_npx_reshape", any_types, 0, copy_prepare, copy_run),
    TNCUDA_ROW("reshape_like", like_types, 0, copy_prepare, copy_run),
    TNCUDA_ROW("shape_array", info_types, TN_KERNEL_EMPTY_OK, shape_prepare, shape_array_run),
    TNCUDA_ROW("size_array", info_types, TN_KERNEL_EMPTY_OK, shape_prepare, size_array_run),
    NULL,
};
