/*
 * The private layout "channels last": a tensor (batch, channels, space …) whose memory has the channels
 * behind the space, as tensor cores want them; of a weight, (filters, channels, window …) in the same way.
 * Convolutions by cuDNN ask for it (dnn_conv.c); what stands between them keeps it; last.c reorders.
 *
 * Where there is one channel, or one element of space, both orders are the same memory: such tensors have no
 * layout, and are taken for either.
 */
#ifndef TNCUDA_LAST_H
#define TNCUDA_LAST_H

#include "launch.h"

#define TNCUDA_LAST_ARGS 8   /* inputs, and outputs, of nodes that are seen so */
#define TNCUDA_LAST_ATTRS 40 /* attributes of them */
#define TNCUDA_LAST_DIMS 5

/* Whether the tensor lies with channels last. */
bool tncuda_is_last(const tn_tensor *t);
/* Whether it may: 3 to 5 dimensions that are known, f32, f16 or bf16, rows without gaps. */
bool tncuda_may_be_last(const tn_tensor *t);

/* In the place of bits: all inputs, or outputs, however many these are. */
#define TNCUDA_LAST_ALL UINT32_MAX

/* A node as one whose tensors have channels last by their shape: no layouts, another attribute. */
typedef struct tncuda_last {
    tn_node node;
    const tn_tensor *in[TNCUDA_LAST_ARGS], *out[TNCUDA_LAST_ARGS];
    tn_tensor tensors[2 * TNCUDA_LAST_ARGS];
    int64_t dims[2 * TNCUDA_LAST_ARGS][2 * TNCUDA_LAST_DIMS];
    tn_value attrs[TNCUDA_LAST_ATTRS];
} tncuda_last;

/* Inputs and outputs with a bit in `ins` and `outs` are turned, the others stay; attribute `attr` becomes
 * `value`. False: the node has too many of them, or a tensor that may not lie so. */
bool tncuda_last_see(tncuda_last *l, const tn_node *node, uint32_t ins, uint32_t outs, uint32_t attr,
                     tn_value value);
/* After tncuda_state: the plan wants these inputs and makes these outputs so; those that are not made are
 * passed over. TN_E_NOMEM: the plan is still to be released. */
tn_status tncuda_last_ask(void *plugin, const tn_node *node, tn_plan *plan, uint32_t ins, uint32_t outs,
                          tn_err *err);
/* Whether the host takes layouts of this node, and none of these outputs is one that has a layout and is
 * added to. */
bool tncuda_last_given(const tn_node *node, uint32_t outs);
/* Operators of which each element follows from one element of each input: whether all of these have one shape
 * and one of them has channels last. The plan is one for rows then, and asks for all of them so. */
bool tncuda_last_pointwise(const tn_node *node);

#endif
