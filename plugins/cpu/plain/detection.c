/*
 * Boxes of object detection. An image is the task. What is sorted keeps its order where scores are equal; NaN
 * comes last.
 */
#include <math.h>

#include "forms.h"
#include "tenon/plugin/op/detection.h"

/* ---- ranks ------------------------------------------------------------------------------------------- */

typedef struct ranked {
    double score;
    int64_t index;
} ranked;

static bool better(const ranked *a, const ranked *b)
{
    return a->score > b->score || (isnan(b->score) && !isnan(a->score));
}

/* The best first: a merge sort, `spare` has room for n. */
static void rank(ranked *a, ranked *spare, int64_t n)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t at = 0; at < n; at += 2 * run) {
            int64_t i = at, j = tncpu_min(at + run, n), k = at;
            const int64_t middle = j, end = tncpu_min(at + 2 * run, n);

            while (i < middle || j < end)
                spare[k++] = j >= end || (i < middle && !better(&a[j], &a[i])) ? a[i++] : a[j++];
        }
        memcpy(a, spare, sizeof *a * (size_t)n);
    }
}

static const tn_floats *floats_of(const tn_value *attrs, uint32_t index)
{
    return (const tn_floats *)tn_value_pointer(attrs[index]);
}

static double number_of(const tn_value *attrs, uint32_t index, int64_t k)
{
    return floats_of(attrs, index)->item[k];
}

static int64_t numbers_of(const tn_value *attrs, uint32_t index)
{
    return floats_of(attrs, index)->count;
}

#define BODY "../plain/detection.inc"
#include "../common/floats.inc"

/* ---- tasks and room ---------------------------------------------------------------------------------- */

static int64_t one_task(const tn_node *node)
{
    (void)node;
    return 1;
}

static int64_t images(const tn_node *node)
{
    return node->out[0]->shape[0];
}

static int64_t lists(const tn_node *node)
{
    return tncpu_dims(node->out[0], 0, node->out[0]->ndim - 2);
}

static int64_t lhs_boxes(const tn_node *node)
{
    return tn_tensor_count(node->in[0]) / 4;
}

static int64_t anchors(const tn_node *node)
{
    return tn_tensor_count(node->out[0]) / 4;
}

static int64_t matrices(const tn_node *node)
{
    return tn_tensor_count(node->in[0]) ? tncpu_dims(node->in[0], 0, node->in[0]->ndim - 2) : 1;
}

static int64_t proposal_images(const tn_node *node)
{
    return node->in[0]->shape[0];
}

/* Two lists of `n` ranks, then `more` numbers. */
static uint64_t ranks_room(int64_t n, int64_t more)
{
    return 2 * (uint64_t)n * sizeof(ranked) + (uint64_t)more * sizeof(double);
}

/* Of an image: overlaps with labels; of each anchor its overlap, label and kind; which labels are matched. */
static uint64_t target_room(const tn_node *node)
{
    const int64_t a = node->in[0]->shape[1], l = node->in[1]->shape[1];

    return ranks_room(a, a * l + 3 * a + l);
}

static uint64_t detection_room(const tn_node *node)
{
    return ranks_room(node->out[0]->shape[1], 6 * node->out[0]->shape[1]);
}

static uint64_t nms_room(const tn_node *node)
{
    return ranks_room(node->in[0]->shape[node->in[0]->ndim - 2], 0);
}

static uint64_t matching_room(const tn_node *node)
{
    const int64_t *last = node->in[0]->shape + node->in[0]->ndim - 2, pairs = last[0] * last[1];

    return ranks_room(pairs, pairs ? last[0] + last[1] : 0);
}

/* Boxes with their score in the order of places, and by score; which are suppressed, which are kept. */
static uint64_t proposal_room(const tn_node *node)
{
    const int64_t n = tncpu_dims(node->in[0], 1, 4) / 2;

    return ranks_room(n, 12 * n);
}

static const char *const recorded[] = {"record:i64", "*:" TNCPU_FLOATS, NULL};

#define EMPTY TN_KERNEL_EMPTY_OK
#define BOXES(X)                                                                                             \
    X("_contrib_MultiBoxPrior", tncpu_floats, EMPTY, shaped, one_task, prior, NULL)                          \
    X("_contrib_bipartite_matching", tncpu_floats, EMPTY, boxes, matrices, matching, matching_room)          \
    X("_contrib_MultiBoxTarget", tncpu_floats, 0, boxes, images, target, target_room)                        \
    X("_contrib_MultiBoxDetection", tncpu_floats, 0, boxes, images, detection, detection_room)               \
    X("_contrib_box_iou", tncpu_floats, 0, boxes, lhs_boxes, iou, NULL)                                      \
    X("_contrib_box_nms", recorded, 0, boxes, lists, nms, nms_room)                                          \
    X("_backward__contrib_box_nms", recorded, 0, boxes, one_task, backward_nms, NULL)                        \
    X("_contrib_box_encode", tncpu_floats, EMPTY, boxes, anchors, encode, NULL)                              \
    X("_contrib_box_decode", tncpu_floats, 0, boxes, anchors, decode, NULL)                                  \
    X("_contrib_Proposal", tncpu_floats, 0, boxes, proposal_images, proposal, proposal_room)                 \
    X("_contrib_MultiProposal", tncpu_floats, 0, boxes, proposal_images, proposal, proposal_room)

static const tncpu_form forms[] = {BOXES(TNCPU_FORM)};
TNCPU_FORMS(boxes, forms, 0)
TNCPU_FORMS(shaped, forms, 1u)
const tn_kernel *const tncpu_family_detection[] = {BOXES(TNCPU_FORM_ROW) NULL};
