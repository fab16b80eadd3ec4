/*
 * Which matrices are products of interleaved queries, keys and values: (place, sequence, head, part,
 * element). On the host.
 */
#ifndef TNB_ATTENTION_H
#define TNB_ATTENTION_H

#include "node.h"
#include "tenon/plugin/op/contrib.h"

#include <string.h>

/* Matrices of a head: rows `row` elements apart, those of the next head `head` elements behind. */
typedef struct tnb_attention_part {
    int64_t at, rows, row, head;
} tnb_attention_part;

typedef struct tnb_attention {
    tnb_attention_part left, right, out; /* qk: queries, keys, scores; valatt: attention, values, sums */
    int64_t tasks, depth;                /* depth: of a head's vectors */
    uint32_t left_in, right_in;          /* which inputs they are in */
    int32_t scores, dtype;               /* scores: qk */
} tnb_attention;

static inline tnb_attention_part tnb_interleaved(const tn_tensor *t, int64_t parts, int64_t part,
                                                 int64_t heads)
{
    const int64_t depth = t->shape[2] / parts / heads;

    return (tnb_attention_part){part * depth, t->shape[0], t->shape[1] * t->shape[2], parts * depth};
}

static inline tnb_attention_part tnb_attention_maps(const tn_tensor *t)
{
    return (tnb_attention_part){0, t->shape[1], t->shape[2], t->shape[1] * t->shape[2]};
}

/* in: the inputs of the forward operator. */
static inline tnb_attention tnb_attention_of(const char *op, const tn_value *attrs,
                                             const tn_tensor *const *in, const tn_tensor *out)
{
    const int64_t heads = tn_value_int(attrs[TN_interleaved_heads]);
    const int self = strstr(op, "selfatt") != NULL, parts = self ? 3 : 2;
    tnb_attention a = {.scores = strstr(op, "_qk") != NULL, .dtype = in[0]->dtype};

    a.tasks = in[0]->shape[1] * heads;
    if (a.scores) {
        a.depth = in[0]->shape[2] / heads / (self ? 3 : 1);
        a.right_in = self ? 0 : 1;
        a.left = tnb_interleaved(in[0], self ? 3 : 1, 0, heads);
        a.right = tnb_interleaved(in[a.right_in], parts, self ? 1 : 0, heads);
        a.out = tnb_attention_maps(out);
    } else {
        a.depth = in[0]->shape[2] / heads / parts;
        a.left_in = 1;
        a.left = tnb_attention_maps(in[1]);
        a.right = tnb_interleaved(in[0], parts, parts - 1, heads);
        a.out = tnb_interleaved(out, 1, 0, heads);
    }
    return a;
}

#endif
