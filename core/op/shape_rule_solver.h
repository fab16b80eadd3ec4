/*
 * The state of one inference by a shape rule, between shape_rule_dims.c (values of dimensions) and
 * shape_rule_solve.c (ranges, arguments, rounds).
 */
#ifndef TN_OP_SHAPE_RULE_SOLVER_H
#define TN_OP_SHAPE_RULE_SOLVER_H

#include "op/shape_rule.h"

typedef struct fact { /* which dimension first said what a symbol is */
    uint32_t slot;
    int32_t axis; /* -1: none did */
} fact;

typedef struct solver {
    const tni_shape_rule *rule;
    const rule_case *args;
    tn_infer *i;
    tn_shape *const *in, *const *out; /* slots: inputs, then outputs */
    uint32_t in_count;
    uint32_t first[RULE_ARGS_MAX], copies[RULE_ARGS_MAX]; /* slots of each argument of the rule */
    int64_t value[RULE_SYMBOLS_MAX];                      /* -1: not known */
    fact from[RULE_SYMBOLS_MAX];
    rule_dims *ranges; /* by symbol */
    bool changed, trial;
} solver;

/* Where a fact is met: one dimension of one argument, or (slot UINT32_MAX) a definition of the rule. */
typedef struct place {
    uint32_t slot;
    int32_t axis;
    uint16_t text, bytes; /* the item */
} place;

tn_shape *tni_rule_slot(const solver *s, uint32_t slot);
/* "weight (8, 3, 3, 3)" */
void tni_rule_slot_format(const solver *s, uint32_t slot, tni_str *text);
/* Puts the text into the inference's error, unless this is a trial, and frees it. Returns `st`. */
tn_status tni_rule_fail(const solver *s, tn_status st, tni_str *text);
tn_status tni_rule_rank_fails(const solver *s, uint32_t slot, const rule_alt *alt);

int64_t tni_rule_number(const solver *s, int16_t attr); /* an integer attribute; None: 0 */
/* A tuple of dimensions; None: NULL. TN_E_SHAPE: an item is below 0. */
tn_status tni_rule_tuple(const solver *s, int16_t attr, const tn_tuple **out);
void tni_rule_symbol_set(solver *s, const place *at, uint8_t symbol, int64_t value);
/* One dimension and one expression say the same: whichever is known gives the other. */
tn_status tni_rule_dim_meet(solver *s, const place *at, uint8_t expr, int64_t *dim);

#endif
