/* Images read at the places of a grid, and such grids: kernels/sampler.cu. */
#include "tenon/plugin/op/sampler.h"
#include "../common/move.h"
#include "launch.h"

#include <stdio.h>

/* `data`: images, NULL where there are none; `grid`: an array with the extents of the grid. */
static tn_status launch(const tn_exec *x, const char *kernel, tncuda_call_args *a, const tn_tensor *data,
                        const tn_tensor *grid, tn_err *err)
{
    char name[TNCUDA_NAME_BYTES];

    for (int32_t k = 0; k < 2; k++) {
        a->n[k] = data ? data->shape[2 + k] : 0;
        a->n[2 + k] = grid->shape[2 + k];
    }
    (void)snprintf(name, sizeof name, "sampler_%s_%s", kernel, tncuda_suffix(grid->dtype));
    return tncuda_launch(x, "sampler", name, a->count, a, err);
}

static tn_status sampler_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]), .n = {[TNCUDA_CHANNELS] = x->in[0]->shape[1]}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 2, 1, &a);
    return launch(x, "y", &a, x->in[0], x->out[0], err);
}

/* in: dy, data, grid; out: gradients of data and grid */
static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = tncuda_sums_bytes(node->out[0]);
    return st;
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[1], *dy = x->in[0];
    tncuda_call_args a = {.n = {[TNCUDA_CHANNELS] = data->shape[1]}};
    tn_status st = TN_OK;
    uint64_t at = 0;

    (void)plan;
    tncuda_call_arrays(x, 3, 2, &a);
    a.room = tncuda_sums(x, 0, &at);
    if (x->modes[0] != TN_MODE_NONE) {
        a.count = tn_tensor_count(data) ? data->shape[0] * data->shape[1] : 0;
        if (!(st = launch(x, "dx", &a, data, dy, err)) && a.count)
            st = tncuda_sums_store(x, 0, a.room, err);
    }
    a.count = tn_tensor_count(x->in[2]) / 2;
    return st || x->modes[1] == TN_MODE_NONE ? st : launch(x, "dgrid", &a, data, dy, err);
}

/* ---- grids --------------------------------------------------------------------------------------------- */

static tn_status grid_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t warp =
        tn_value_int(x->attrs[TN_GridGenerator_transform_type]) != TN_GridGenerator_transform_type_affine;
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]) / 2, .n = {[TNCUDA_MORE] = warp}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    return launch(x, "grid", &a, NULL, x->out[0], err);
}

/* in: dy, shape of data */
static tn_status grid_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]), .n = {[TNCUDA_MORE] = x->out[0]->ndim == 4}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.in[0] = (tncuda_array){x->in[0]->data, x->in[0]->dtype, TN_MODE_NONE};
    tncuda_call_arrays(x, 0, 1, &a);
    return launch(x, "grid_back", &a, NULL, x->in[0], err);
}

/* in: data, loc; out: output, grid */
static tn_status transformer_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    tncuda_call_args a = {.count = y->shape[0] * y->shape[2] * y->shape[3], .n = {[TNCUDA_CHANNELS] = 1}};
    tn_status st = TN_OK;

    (void)plan;
    tncuda_call_arrays(x, 2, 2, &a);
    if (x->modes[1] != TN_MODE_NONE)
        st = launch(x, "grid", &a, NULL, y, err);
    a.count = tn_tensor_count(y);
    a.n[TNCUDA_CHANNELS] = y->shape[1];
    return st || x->modes[0] == TN_MODE_NONE ? st : launch(x, "transform", &a, x->in[0], y, err);
}

static const char *const types[] = {"*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_sampler[] = {
    TNCUDA_ROW("BilinearSampler", types, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, sampler_run),
    TNCUDA_ROW("_backward_BilinearSampler", types, TN_KERNEL_EMPTY_OK, back_prepare, back_run),
    TNCUDA_ROW("GridGenerator", types, 0, tncuda_plain_prepare, grid_run),
    TNCUDA_ROW("_backward_GridGenerator", types, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, grid_back_run),
    TNCUDA_ROW("SpatialTransformer", types, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, transformer_run),
    NULL,
};
