/* Boxes of object detection: kernels/detection.cu. The family order sorts by score. */
#include "tenon/plugin/op/detection.h"
#include "../common/move.h"
#include "launch.h"

#include <stdio.h>

static tn_status launch(const tn_exec *x, const char *kernel, int32_t dtype, int64_t blocks,
                        const tncuda_call_args *a, tn_err *err)
{
    char name[TNCUDA_NAME_BYTES];

    (void)snprintf(name, sizeof name, "boxes_%s_%s", kernel, tncuda_suffix(dtype));
    return blocks ? tncuda_launch_blocks(x, "detection", name, blocks < 65535 ? blocks : 65535, a, err)
                  : tncuda_launch(x, "detection", name, a->count, a, err);
}

/* Two places for entries, and `more` bytes. */
static tn_status ranks_prepare(void *plugin, const tn_node *node, tn_plan *plan, int64_t entries,
                               uint64_t more, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = 2 * TNCUDA_ENTRY_BYTES * (uint64_t)entries + more;
    return st;
}

/* Sorts the entries that a kernel made at `entries`. */
static tn_status ranks_sort(const tn_exec *x, int64_t count, int64_t size, void *entries, void **sorted,
                            tn_err *err)
{
    void *spare = (char *)entries + (uint64_t)count * TNCUDA_ENTRY_BYTES;

    *sorted = entries;
    return tncuda_order_merge(x, count, size, sorted, &spare, err);
}

static int64_t count_of(const tn_node *node, uint32_t attr)
{
    return ((const tn_floats *)tn_value_pointer(node->attrs[attr]))->count;
}

/* ---- a thread for each box ----------------------------------------------------------------------------- */

static tn_status prior_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    if (count_of(node, TN_contrib_MultiBoxPrior_sizes) + count_of(node, TN_contrib_MultiBoxPrior_ratios) >
        TNCUDA_CALL_NUMBERS - 4)
        return tn_failf(err, TN_E_UNSUPPORTED, "at most %d sizes and ratios", TNCUDA_CALL_NUMBERS - 4);
    return tncuda_plain_prepare(plugin, node, plan, err);
}

static tn_status prior_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t *map = x->in[0]->shape + 2;
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]) / 4,
                          .n = {map[0], map[1], 0, 0, tn_value_int(x->attrs[TN_contrib_MultiBoxPrior_clip])}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    (void)tncuda_call_numbers(x->attrs, TN_contrib_MultiBoxPrior_steps, 0, &a);
    (void)tncuda_call_numbers(x->attrs, TN_contrib_MultiBoxPrior_offsets, 2, &a);
    for (int k = 0; k < 2; k++)
        a.f[k] = a.f[k] > 0 ? a.f[k] : (double)(1.0f / (float)map[k]);
    a.n[2] = tncuda_call_numbers(x->attrs, TN_contrib_MultiBoxPrior_sizes, 4, &a);
    a.n[3] = a.n[2] + tncuda_call_numbers(x->attrs, TN_contrib_MultiBoxPrior_ratios, 4 + a.n[2], &a) - 1;
    tncuda_call_arrays(x, 0, 1, &a);
    return launch(x, "prior", x->out[0]->dtype, 0, &a, err);
}

static tn_status iou_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {
        .count = tn_tensor_count(x->out[0]),
        .inner = tn_tensor_count(x->in[1]) / 4,
        .n = {tn_value_int(x->attrs[TN_contrib_box_iou_format]) == TN_contrib_box_iou_format_corner}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 2, 1, &a);
    return launch(x, "iou", x->out[0]->dtype, 0, &a, err);
}

static tn_status encode_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]) / 4,
                          .n = {x->in[3]->shape[1], x->in[2]->shape[1]}};

    (void)plan;
    tncuda_call_arrays(x, 6, 2, &a);
    return launch(x, "encode", x->out[0]->dtype, 0, &a, err);
}

static tn_status decode_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]) / 4,
                          .n = {x->in[1]->shape[1], tn_value_int(x->attrs[TN_contrib_box_decode_format]) ==
                                                        TN_contrib_box_decode_format_corner},
                          .f = {tn_value_float(x->attrs[TN_contrib_box_decode_clip])}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int k = 0; k < 4; k++)
        a.f[1 + k] = tn_value_float(x->attrs[TN_contrib_box_decode_std0 + k]);
    tncuda_call_arrays(x, 2, 1, &a);
    return launch(x, "decode", x->out[0]->dtype, 0, &a, err);
}

/* ---- bipartite_matching -------------------------------------------------------------------------------- */

static tn_status matching_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *t = node->in[0];
    const int64_t pairs = tn_tensor_count(t);
    const uint64_t lines =
        pairs ? (uint64_t)(tn_tensor_count(node->out[0]) + tn_tensor_count(node->out[1])) : 0;

    return ranks_prepare(plugin, node, plan, pairs, lines * sizeof(int64_t), err);
}

/* Output `o`: `each` elements of a matrix, the first of them at `first` among those of rows and columns. */
static tn_status matching_write(const tn_exec *x, uint32_t o, int64_t each, int64_t first, int64_t lines,
                                void *room, tn_err *err)
{
    const tncuda_call_args a = {.count = tn_tensor_count(x->out[o]),
                                .out = {tncuda_array_of(x->out[o], TN_MODE_WRITE)},
                                .room = room,
                                .n = {each, first, lines}};

    return x->modes[o] == TN_MODE_NONE ? TN_OK
                                       : tncuda_launch(x, "detection", "boxes_matches", a.count, &a, err);
}

static tn_status matching_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *t = x->in[0];
    const int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1], count = tn_tensor_count(t);
    tncuda_call_args a = {
        .count = count,
        .size = rows * columns,
        .n = {rows, columns, tn_value_int(x->attrs[TN_contrib_bipartite_matching_topk])},
        .f = {tn_value_int(x->attrs[TN_contrib_bipartite_matching_is_ascend]) ? -1 : 1,
              (double)(float)tn_value_float(x->attrs[TN_contrib_bipartite_matching_threshold])}};
    tn_status st = TN_OK;

    (void)plan;
    tncuda_call_arrays(x, 1, 0, &a);
    if (count && !(st = tncuda_launch(x, "detection", "boxes_pairs", count, &a, err)) &&
        !(st = ranks_sort(x, count, a.size, x->workspace, &a.in[1].data, err))) {
        a.room = (char *)x->workspace + 2 * TNCUDA_ENTRY_BYTES * (uint64_t)count;
        a.count = count / a.size;
        st = tncuda_launch(x, "detection", "boxes_match", a.count, &a, err);
    }
    if (!count)
        a.room = NULL;
    if (!st)
        st = matching_write(x, 0, rows, 0, rows + columns, a.room, err);
    return st ? st : matching_write(x, 1, columns, rows, rows + columns, a.room, err);
}

/* ---- box_nms ------------------------------------------------------------------------------------------- */

static tn_status nms_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *t = node->in[0];

    return ranks_prepare(plugin, node, plan, tnb_dims(t, 0, t->ndim - 1), 0, err);
}

static tncuda_call_args nms_call(const tn_exec *x, int64_t size)
{
    const tn_value *attrs = x->attrs;
    const int64_t topk = tn_value_int(attrs[TN_contrib_box_nms_topk]),
                  id = tn_value_int(attrs[TN_contrib_box_nms_id_index]),
                  in = tn_value_int(attrs[TN_contrib_box_nms_in_format]),
                  out = tn_value_int(attrs[TN_contrib_box_nms_out_format]);

    return (tncuda_call_args){
        .f = {tn_value_float(attrs[TN_contrib_box_nms_valid_thresh]),
              tn_value_float(attrs[TN_contrib_box_nms_overlap_thresh])},
        .n = {[TNCUDA_NMS_SCORE] = tn_value_int(attrs[TN_contrib_box_nms_score_index]),
              [TNCUDA_NMS_ID] = id,
              [TNCUDA_NMS_BACKGROUND] = tn_value_int(attrs[TN_contrib_box_nms_background_id]),
              [TNCUDA_NMS_START] = tn_value_int(attrs[TN_contrib_box_nms_coord_start]),
              [TNCUDA_NMS_ALL] = id < 0 || tn_value_int(attrs[TN_contrib_box_nms_force_suppress]),
              [TNCUDA_NMS_CORNER] = in == TN_contrib_box_nms_in_format_corner,
              [TNCUDA_NMS_MOST] = topk < 0 ? size : tnb_least(size, topk),
              [TNCUDA_NMS_TURN] = in == out                                     ? 0
                                  : out == TN_contrib_box_nms_out_format_center ? 2
                                                                                : 1}};
}

static tn_status nms_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *t = x->in[0];
    tncuda_call_args a = nms_call(x, t->shape[t->ndim - 2]);
    void *sorted = NULL;
    tn_status st;

    (void)plan;
    tncuda_call_arrays(x, 1, 2, &a);
    a.outer = tnb_dims(t, 0, t->ndim - 2);
    a.size = t->shape[t->ndim - 2];
    a.inner = t->shape[t->ndim - 1];
    a.count = a.outer * a.size;
    if ((st = launch(x, "scores", t->dtype, 0, &a, err)) ||
        (st = ranks_sort(x, a.count, a.size, x->workspace, &sorted, err)))
        return st;
    a.room = sorted;
    return launch(x, "nms", t->dtype, a.outer, &a, err);
}

/* in: dy, record */
static tn_status nms_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return ranks_prepare(plugin, node, plan, tn_tensor_count(node->in[1]), 0, err);
}

static tn_status nms_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dx = x->out[0];
    tncuda_call_args a = {.count = tn_tensor_count(x->in[1]),
                          .size = dx->shape[dx->ndim - 1],
                          .n = {(int64_t)tn_dtype_bytes(dx->dtype)}};
    tn_status st = x->modes[0] == TN_MODE_NONE ? TN_OK : tnb_move_zero(plan, x, dx, err);

    if (st || x->modes[0] == TN_MODE_NONE)
        return st;
    tncuda_call_arrays(x, 2, 1, &a);
    if ((st = tncuda_launch(x, "detection", "boxes_records", a.count, &a, err)) ||
        (st = ranks_sort(x, a.count, a.count, x->workspace, &a.in[1].data, err)))
        return st;
    a.count *= a.size;
    return tncuda_launch(x, "detection", "boxes_nms_back", a.count, &a, err);
}

/* ---- MultiBoxDetection --------------------------------------------------------------------------------- */

/* Boxes as they are predicted, and sorted; entries by score, and by place. */
static tn_status detection_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint64_t boxes = (uint64_t)tn_tensor_count(node->out[0]) / 6;

    return ranks_prepare(plugin, node, plan, 2 * (int64_t)boxes,
                         12 * boxes * tncuda_wide_bytes(node->out[0]->dtype), err);
}

static tn_status detection_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const double overlap = tn_value_float(x->attrs[TN_contrib_MultiBoxDetection_nms_threshold]);
    tncuda_call_args a = {.count = y->shape[0] * y->shape[1],
                          .outer = y->shape[0],
                          .size = y->shape[1],
                          .n = {x->in[0]->shape[1], tn_value_int(x->attrs[TN_contrib_MultiBoxDetection_clip]),
                                tn_value_int(x->attrs[TN_contrib_MultiBoxDetection_nms_topk]),
                                tn_value_int(x->attrs[TN_contrib_MultiBoxDetection_force_suppress]), 0,
                                overlap > 0 && overlap <= 1},
                          .f = {tn_value_float(x->attrs[TN_contrib_MultiBoxDetection_threshold])}};
    char *places = (char *)x->workspace + 2 * TNCUDA_ENTRY_BYTES * (uint64_t)a.count +
                   12 * (uint64_t)a.count * tncuda_wide_bytes(y->dtype);
    void *sorted = NULL;
    tn_status st;

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    (void)tncuda_call_numbers(x->attrs, TN_contrib_MultiBoxDetection_variances, 1, &a);
    a.f[5] = overlap;
    tncuda_call_arrays(x, 3, 1, &a);
    if ((st = launch(x, "predict", y->dtype, 0, &a, err)))
        return st;
    for (a.n[4] = 0; a.n[4] < 2; a.n[4]++) {
        a.in[3].data = a.n[4] ? x->workspace : places;
        if ((st = launch(x, "rank", y->dtype, 0, &a, err)) ||
            (st = ranks_sort(x, a.count, a.size, a.in[3].data, &sorted, err)))
            return st;
        a.in[a.n[4] ? 3 : 4].data = sorted;
    }
    return launch(x, "detect", y->dtype, a.outer, &a, err);
}

/* ---- MultiBoxTarget ------------------------------------------------------------------------------------ */

static tn_status target_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t images = node->out[0]->shape[0], anchors = node->in[0]->shape[1],
                  labels = node->in[1]->shape[1];

    return ranks_prepare(plugin, node, plan, images * anchors,
                         (uint64_t)(images * (anchors * labels + 3 * anchors + labels + 2)) * sizeof(double),
                         err);
}

static tn_status target_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *label = x->in[1];
    const int32_t dtype = x->out[0]->dtype;
    tncuda_call_args a = {.outer = x->out[0]->shape[0],
                          .size = x->in[0]->shape[1],
                          .n = {label->shape[1], label->shape[2], x->in[2]->shape[1]},
                          .f = {tn_value_float(x->attrs[TN_contrib_MultiBoxTarget_overlap_threshold]),
                                tn_value_float(x->attrs[TN_contrib_MultiBoxTarget_negative_mining_ratio]),
                                tn_value_float(x->attrs[TN_contrib_MultiBoxTarget_negative_mining_thresh]),
                                tn_value_float(x->attrs[TN_contrib_MultiBoxTarget_ignore_label])}};
    tn_status st;

    (void)plan;
    (void)tncuda_call_numbers(x->attrs, TN_contrib_MultiBoxTarget_variances, 4, &a);
    tncuda_call_arrays(x, 3, 3, &a);
    a.count = a.outer * a.size;
    if ((st = launch(x, "targets_match", dtype, a.outer, &a, err)))
        return st;
    if (a.f[1] > 0 && ((st = launch(x, "targets_mine", dtype, 0, &a, err)) ||
                       (st = ranks_sort(x, a.count, a.size, x->workspace, &a.in[3].data, err)) ||
                       (st = launch(x, "targets_choose", dtype, 0, &a, err))))
        return st;
    return launch(x, "targets", dtype, 0, &a, err);
}

/* ---- Proposal ------------------------------------------------------------------------------------------ */

static tn_status proposal_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t boxes = tn_tensor_count(node->in[0]) / 2;

    if (count_of(node, TN_contrib_Proposal_scales) + count_of(node, TN_contrib_Proposal_ratios) >
        TNCUDA_CALL_NUMBERS - 1)
        return tn_failf(err, TN_E_UNSUPPORTED, "at most %d scales and ratios", TNCUDA_CALL_NUMBERS - 1);
    return ranks_prepare(plugin, node, plan, boxes,
                         5 * (uint64_t)boxes * tncuda_wide_bytes(node->out[0]->dtype), err);
}

static tn_status proposal_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *prob = x->in[0];
    const int64_t size = tnb_dims(prob, 1, 4) / 2,
                  asked = tn_value_int(x->attrs[TN_contrib_Proposal_rpn_pre_nms_top_n]);
    tncuda_call_args a = {.count = prob->shape[0] * size,
                          .outer = prob->shape[0],
                          .size = size,
                          .n = {prob->shape[2], prob->shape[3],
                                tn_value_int(x->attrs[TN_contrib_Proposal_feature_stride]),
                                tn_value_int(x->attrs[TN_contrib_Proposal_rpn_min_size]),
                                tn_value_int(x->attrs[TN_contrib_Proposal_iou_loss]), 0,
                                asked > 0 ? tnb_least(asked, size) : size,
                                tn_value_int(x->attrs[TN_contrib_Proposal_rpn_post_nms_top_n])},
                          .f = {tn_value_float(x->attrs[TN_contrib_Proposal_threshold])}};
    tn_status st;

    (void)plan;
    a.n[5] = tncuda_call_numbers(x->attrs, TN_contrib_Proposal_scales, 1, &a);
    (void)tncuda_call_numbers(x->attrs, TN_contrib_Proposal_ratios, 1 + a.n[5], &a);
    tncuda_call_arrays(x, 3, 2, &a);
    if ((st = launch(x, "propose", prob->dtype, 0, &a, err)) ||
        (st = ranks_sort(x, a.count, size, x->workspace, &a.in[3].data, err)))
        return st;
    return launch(x, "proposals", prob->dtype, a.outer, &a, err);
}

static const char *const types[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const recorded[] = {"record:i64", "*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_detection[] = {
    TNCUDA_ROW("_contrib_MultiBoxPrior", types, TN_KERNEL_EMPTY_OK, prior_prepare, prior_run),
    TNCUDA_ROW("_contrib_bipartite_matching", types, TN_KERNEL_EMPTY_OK, matching_prepare, matching_run),
    TNCUDA_ROW("_contrib_MultiBoxTarget", types, 0, target_prepare, target_run),
    TNCUDA_ROW("_contrib_MultiBoxDetection", types, 0, detection_prepare, detection_run),
    TNCUDA_ROW("_contrib_box_iou", types, 0, tncuda_plain_prepare, iou_run),
    TNCUDA_ROW("_contrib_box_nms", recorded, 0, nms_prepare, nms_run),
    TNCUDA_ROW("_backward__contrib_box_nms", recorded, 0, nms_back_prepare, nms_back_run),
    TNCUDA_ROW("_contrib_box_encode", types, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, encode_run),
    TNCUDA_ROW("_contrib_box_decode", types, 0, tncuda_plain_prepare, decode_run),
    TNCUDA_ROW("_contrib_Proposal", types, 0, proposal_prepare, proposal_run),
    TNCUDA_ROW("_contrib_MultiProposal", types, 0, proposal_prepare, proposal_run),
    NULL,
};
