/*
 * Images read at the places of a grid: BilinearSampler, GridGenerator, SpatialTransformer. A grid
 * (N, 2, h, w) has x, then y, from -1 (the first pixel) to 1 (the last one); outside of the image is 0.
 */
#include "tenon/plugin/op/sampler.h"
#include "op/cost.h"
#include "op/infer_help.h"

static tn_status grid_shape(tn_infer *i)
{
    const bool affine =
        tni_attr_int(i->attrs, TN_GridGenerator_transform_type) == TN_GridGenerator_transform_type_affine;
    tn_shape matrices = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, 6}},
             grid = {.ndim = 4, .dim = {TN_DIM_UNKNOWN, 2, TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
    tn_status st;

    if (!affine) {
        if ((st = tni_shape_assign(i, i->in_shape[0], &grid)))
            return st;
        return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
    }
    if ((st = tni_attr_pair(i, TN_GridGenerator_target_shape, &grid.dim[2])) ||
        (st = tni_shape_assign(i, i->in_shape[0], &matrices)) ||
        (st = tni_shape_assign(i, i->out_shape[0], &grid)))
        return st;
    return tni_dim_unify(i, &i->in_shape[0]->dim[0], &i->out_shape[0]->dim[0]);
}

/* data, loc -> output, grid */
static tn_status transformer_shape(tn_infer *i)
{
    tn_shape matrices = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, 6}}, *data = i->in_shape[0];
    tn_shape y = {.ndim = 4}, grid = {.ndim = 4, .dim = {TN_DIM_UNKNOWN, 2}};
    int64_t size[2];
    tn_status st;

    if ((st = tni_attr_pair(i, TN_SpatialTransformer_target_shape, size)) ||
        (st = tni_shape_assign(i, i->in_shape[1], &matrices)) || data->ndim < 0)
        return st;
    if (data->ndim != 4)
        return tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions, 4 are needed: (N, C, H, W)",
                              data->ndim);
    if ((st = tni_dim_unify(i, &data->dim[0], &i->in_shape[1]->dim[0])))
        return st;
    for (int32_t k = 0; k < 2; k++) {
        y.dim[k] = data->dim[k];
        y.dim[2 + k] = grid.dim[2 + k] = size[k];
    }
    grid.dim[0] = data->dim[0];
    st = tni_shape_assign(i, i->out_shape[0], &y);
    return st ? st : tni_shape_assign(i, i->out_shape[1], &grid);
}

/* That of a BilinearSampler; what arrives at the grid goes on to the matrices. */
static tn_status transformer_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_output(g, 1)};
    tn_emit e = {
        (uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT, "_backward_BilinearSampler", in, NULL, 3, 0};
    tn_edge both = {NULL, 0, 0}, grid[2], loc = {NULL, 0, 0};
    tn_status st;

    if (!in[0].node)
        return TN_OK;
    if ((st = g->ops->emit(g, &e, &both)) || (st = g->ops->set(g, 0, both)))
        return st;
    grid[0] = (tn_edge){both.node, 1, 0};
    grid[1] = tn_grad_input(g, 1);
    e.op = "_backward_GridGenerator";
    e.in = grid;
    e.in_count = 2;
    st = g->ops->emit(g, &e, &loc);
    return st ? st : g->ops->set(g, 1, loc);
}

const tn_op *const tni_family_sampler[] = {
    TNI_ROW("BilinearSampler", .doc = "The image at the places of a grid, by bilinear interpolation.",
            .attrs = TNI_ATTRS(BilinearSampler),
            .shapes = "data:(N,C,H,W) grid:(N,2,T,U) -> output:(N,C,T,U)", .types = "T:float",
            .gradients = "once: dy data grid -> data grid", .cost = tni_cost_each_output),
    TNI_ROW("GridGenerator", .doc = "A grid of places, by matrices (2, 3) or by shifts of pixels.",
            .attrs = TNI_ATTRS(GridGenerator), .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
            .shape = grid_shape, .types = "T:float", .gradients = "once: dy ~data -> data",
            .cost = tni_cost_each_output),
    TNI_ROW("SpatialTransformer", .doc = "The image behind an affine transformation of its plane.",
            .attrs = TNI_ATTRS(SpatialTransformer), .inputs = TNI_NAMES("data", "loc"),
            .outputs = TNI_NAMES("output", "grid_src"), .visible = 1, .shape = transformer_shape,
            .types = "T:float", .gradient = transformer_grad, .cost = tni_cost_each_output),
    NULL,
};
