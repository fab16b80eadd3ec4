/*
 * A kernel for square that declines what is small, one for add_n with any number of inputs, and an operator
 * whose kernel has run-time attributes. PLANTED says what is wrong with it, NAME what it is called.
 */
#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

#include "../defects/meet.h"

enum {
    HEALTHY,
    LAST_WRONG,   /* the last element of square is wrong */
    FOUR_INPUTS,  /* add_n adds up the first four */
    SHARED_SCALE, /* two runs at once have the attribute of one of them */
    SAVED_ALIGN,  /* a plan asks for a saved block at a page */
};

#define COUNT_MIN 3000 /* elements */

static tn_status square_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    if (tn_tensor_count(node->out[0]) < COUNT_MIN)
        return tn_fail(err, TN_E_UNSUPPORTED, "too few elements to be worth it");
    return tn_prepare_tiles(plugin, node, plan, err);
}

static tn_status square_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    double tile[TN_TILE];
    const int64_t last = tn_exec_count(x, 0) - 1;

    (void)plan, (void)err;
    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, tile)) > 0; at += n) {
        for (int64_t i = 0; i < n; i++)
            tile[i] *= PLANTED == LAST_WRONG && at + i == last ? -tile[i] : tile[i];
        tn_tile_store(x, 0, at, n, tile);
    }
    return TN_OK;
}

static tn_status add_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->state = (void *)(uintptr_t)(PLANTED == FOUR_INPUTS && node->in_count > 4 ? 4 : node->in_count);
    return tn_prepare_tiles(plugin, node, plan, err);
}

static tn_status add_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const uint32_t count = (uint32_t)(uintptr_t)plan->state;
    double sum[TN_TILE], more[TN_TILE];

    (void)err;
    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, sum)) > 0; at += n) {
        for (uint32_t k = 1; k < count; k++) {
            (void)tn_tile_load(x, k, at, more);
            for (int64_t i = 0; i < n; i++)
                sum[i] += more[i];
        }
        tn_tile_store(x, 0, at, n, sum);
    }
    return TN_OK;
}

/* ---- an operator --------------------------------------------------------------------------------------- */

static const tn_attr_def attrs[] = {
    TN_ATTR_FLOAT_RUN("scale", "1.0", "what each element is multiplied by"),
    TN_ATTR_END,
};

static const tn_op scale = {
    .struct_size = (uint32_t)TN_END(tn_op, second),
    .version = 1,
    .name = "kind_scale",
    .doc = "scale * data.",
    .attrs = attrs,
    .dtype = tn_infer_floats,
    .shapes = "data:(S..) -> output:data",
};

static tn_status scale_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->saved_bytes = PLANTED == SAVED_ALIGN || node->flags & TN_NODE_RECORDED ? 64 : 0;
    plan->saved_align = PLANTED == SAVED_ALIGN ? 4096 : 64;
    return tn_prepare_tiles(plugin, node, plan, err);
}

static tn_status scale_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    static double shared;
    const double own = tn_attrs_float(x->attrs, 0);
    double tile[TN_TILE];

    (void)plan, (void)err;
    shared = own;
    if (PLANTED == SHARED_SCALE)
        meet();
    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, tile)) > 0; at += n) {
        for (int64_t i = 0; i < n; i++)
            tile[i] *= PLANTED == SHARED_SCALE ? shared : own;
        tn_tile_store(x, 0, at, n, tile);
    }
    return TN_OK;
}

static const char *const types[] = {"*:f32,f64", NULL};
static const tn_kernel square = TN_KERNEL("square", "cpu", types, square_prepare, square_run);
static const tn_kernel add = TN_KERNEL("add_n", "cpu", types, add_prepare, add_run);
static const tn_kernel own = TN_KERNEL("kind_scale", "cpu", types, scale_prepare, scale_run);

static const tn_op_table ops = TN_OPS(NAME, &scale);
static const tn_kernel_table kernels = TN_KERNELS("cpu", &square, &add, &own);
static const tn_capability *const tables[] = {&ops.head, &kernels.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "kernels for large and many inputs", "",
                 "op:kind_scale kernels@cpu", NULL, NULL, NULL, tables);
