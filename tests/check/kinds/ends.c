/*
 * Two operators with kernels: a pointwise one whose definition has a body too, and one that counts how many
 * elements lie between which bounds. PLANTED says what is wrong with it, NAME what it is called.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    OTHER_BODY,       /* the kernel forgets the factor that the body has */
    NAN_SPREADS,      /* one element that is no number makes those beside it such */
    INF_COUNTED,      /* what is infinite is counted behind the last bin */
    NAN_REMEMBERED,   /* from the first nan on another bin is counted */
    NARROW_WORKSPACE, /* its bytes are counted in 32 bits */
    NARROW_SAVED,     /* in 31 bits and a sign */
};

#define BINS 8

static const tn_attr_def swish_attrs[] = {
    TN_ATTR_FLOAT_RUN("factor", "1.0", "what each element is multiplied by"),
    TN_ATTR_END,
};
static const char *const swish_in[] = {"data", NULL}, *const swish_out[] = {"output", NULL};

static const tn_op swish = {
    .struct_size = (uint32_t)TN_END(tn_op, body),
    .version = 1,
    .name = "kind_factor_swish",
    .doc = "factor data sigmoid(data).",
    .attrs = swish_attrs,
    .inputs = swish_in,
    .outputs = swish_out,
    .flags = TN_OP_POINTWISE,
    .shape = tn_infer_same_shape,
    .dtype = tn_infer_floats,
    .body = "factor * data / (1 + exp(-data))",
};
static const tn_op bins = {
    .struct_size = (uint32_t)TN_END(tn_op, second),
    .version = 1,
    .name = "kind_bins",
    .doc = "How many elements lie below -3, from there to -2, and so on; 3 and more, and nan, are in the "
           "last bin.",
    .dtype = tn_infer_floats,
    .shapes = "data:(S..) -> output:(8)",
};

/* It keeps its input in both, which no number depends on. */
static tn_status swish_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint64_t bytes = (uint64_t)tn_tensor_count(node->in[0]) * sizeof(double);

    plan->workspace_bytes = PLANTED == NARROW_WORKSPACE ? (uint32_t)bytes : bytes;
    plan->saved_bytes = PLANTED == NARROW_SAVED ? (uint64_t)(int32_t)bytes : bytes;
    if (!(node->flags & TN_NODE_RECORDED))
        plan->saved_bytes = 0;
    return tn_prepare_tiles(plugin, node, plan, err);
}

static bool any_nan(const double *tile, int64_t count)
{
    bool any = false;

    for (int64_t i = 0; i < count; i++)
        any |= isnan(tile[i]) != 0;
    return any;
}

static tn_status swish_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double factor = PLANTED == OTHER_BODY ? 1 : tn_attrs_float(x->attrs, 0);
    double tile[TN_TILE];

    (void)plan, (void)err;
    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, tile)) > 0; at += n) {
        const bool spreads = PLANTED == NAN_SPREADS && any_nan(tile, n);

        memcpy((double *)x->workspace + at, tile, (size_t)n * sizeof *tile);
        if (x->saved)
            memcpy((double *)x->saved + at, tile, (size_t)n * sizeof *tile);
        for (int64_t i = 0; i < n; i++)
            tile[i] = spreads ? (double)NAN : factor * tile[i] / (1 + exp(-tile[i]));
        tn_tile_store(x, 0, at, n, tile);
    }
    return TN_OK;
}

static int64_t bin_of(double v)
{
    static int64_t of_nan = BINS - 1;

    if (PLANTED == NAN_REMEMBERED && isnan(v))
        return of_nan-- > 0 ? of_nan + 1 : 0;
    if (PLANTED == INF_COUNTED && isinf(v) && v > 0)
        return BINS;
    return v < -3 ? 0 : v < 3 ? 4 + (int64_t)floor(v) : BINS - 1;
}

static tn_status bins_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    double tile[TN_TILE];
    int64_t counts[BINS + 1] = {0};
    double *wide = x->out[0]->data;
    float *narrow = x->out[0]->data;
    const int64_t bins_written = PLANTED == INF_COUNTED ? BINS + 1 : BINS;

    (void)plan, (void)err;
    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, tile)) > 0; at += n)
        for (int64_t i = 0; i < n; i++)
            counts[bin_of(tile[i])]++;
    for (int64_t i = 0; i < bins_written && (i < BINS || counts[i]); i++)
        if (x->out[0]->dtype == TN_F64)
            wide[i] = (double)counts[i];
        else
            narrow[i] = (float)counts[i];
    return TN_OK;
}

static const char *const types[] = {"*:f32,f64", NULL};
static const tn_kernel swish_kernel = TN_KERNEL("kind_factor_swish", "cpu", types, swish_prepare, swish_run);
static const tn_kernel bins_kernel = TN_KERNEL("kind_bins", "cpu", types, tn_prepare_tiles, bins_run);

static const tn_op_table ops = TN_OPS(NAME, &swish, &bins);
static const tn_kernel_table kernels = TN_KERNELS("cpu", &swish_kernel, &bins_kernel);
static const tn_capability *const tables[] = {&ops.head, &kernels.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "operators for numbers and sizes at their ends", "",
                 "op:kind_factor_swish op:kind_bins kernels@cpu", NULL, NULL, NULL, tables);
