/*
 * Loops and branches: which input of which graph is which input of the node. control.c says it of shapes and
 * types, control_run.c of arrays.
 */
#ifndef TN_OP_CONTROL_H
#define TN_OP_CONTROL_H

#include "op/infer_help.h"
#include "tenon/plugin/op/control.h"

typedef struct tni_control_kind {
    const char *forward, *backward; /* the operators */
    uint32_t bodies;                /* graphs; the first one decides where there are several */
    uint32_t attr_count;            /* of the forward; its backward has `heads` and `wanted` behind them */
    int32_t data;                   /* the attribute num_out_data; -1: there is none */
    int32_t locs[3];                /* per graph: the attribute with its inputs; -1: those of _foreach */
} tni_control_kind;
extern const tni_control_kind tni_control_foreach, tni_control_while_loop, tni_control_cond;

typedef struct tni_control { /* of one node */
    const tni_control_kind *kind;
    const tn_value *attrs;
    uint32_t in_count, out_count; /* of the forward */
    uint32_t data, states;        /* outputs that are put together, and that go on to the next step */
} tni_control;

/* What an input or output of a graph is. Slots of a node are its inputs, then its outputs. */
#define TNI_SLOT_NONE UINT32_MAX /* the decision */
typedef struct tni_link {
    uint32_t slot;
    bool step; /* one element of axis 0 of it */
} tni_link;

tni_control tni_control_of(const tni_control_kind *kind, const tn_value *attrs);
/* The attributes `heads` and `wanted` of a backward: which outputs a gradient arrives for, which inputs have
 * one. */
const tn_tuple *tni_control_heads(const tni_control *c);
const tn_tuple *tni_control_wanted(const tni_control *c);
uint32_t tni_control_inputs(const tni_control *c, uint32_t body);
uint32_t tni_control_outputs(const tni_control *c, uint32_t body);
tni_link tni_control_input(const tni_control *c, uint32_t body, uint32_t index);
tni_link tni_control_output(const tni_control *c, uint32_t body, uint32_t index);
/* State `index`: which input of the graph that steps. */
uint32_t tni_control_state(const tni_control *c, uint32_t index);
/* The graph that steps. */
static inline uint32_t tni_control_stepping(const tni_control *c)
{
    return c->kind->bodies - 1;
}

/* control_run.c */
tn_status tni_foreach_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err);
tn_status tni_foreach_run_back(tn_body_call *call, const tn_body_ops *ops, tn_err *err);
tn_status tni_while_loop_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err);
tn_status tni_while_loop_run_back(tn_body_call *call, const tn_body_ops *ops, tn_err *err);
tn_status tni_cond_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err);
tn_status tni_cond_run_back(tn_body_call *call, const tn_body_ops *ops, tn_err *err);

#endif
