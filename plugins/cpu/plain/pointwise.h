/*
 * Operators whose output element follows from one element of each input. A loop is written for dense arrays
 * of the four compute types; this driver brings everything else to it by tiles that stay in the first-level
 * cache: strided and broadcast inputs, other data types, scalar operands, added outputs.
 */
#ifndef TNCPU_POINTWISE_H
#define TNCPU_POINTWISE_H

#include "convert.h"

#define TNCPU_POINT_IN 4 /* inputs of a loop */
#define TNCPU_NO_SCALAR (-1)

/* out[k] = f(in[0][k], in[1][k] …), all of one compute type. `attrs`: the node's, run-time ones of today. */
typedef void (*tncpu_loop)(void *out, const void *const *in, int64_t n, const tn_value *attrs);

/* One operator: its loop, and where the operands come from. */
typedef struct tncpu_point {
    const char *op;
    uint32_t loop;     /* TNCPU_ADD … of loops.h */
    uint32_t operands; /* of the loop */
    int32_t scalar;    /* the operand that is attribute 0 as a number; TNCPU_NO_SCALAR */
} tncpu_point;

/* Plans node->op, which must be in `rows`. Inputs broadcast to the output's shape. */
tn_status tncpu_point_prepare(const tncpu_point *rows, size_t count, void *plugin, const tn_node *node,
                              tn_plan *plan, tn_err *err);
/* Attribute 0 of the loop shall be this number, whatever the node's attributes are. After prepare. */
void tncpu_point_number(tn_plan *plan, double number);
tn_status tncpu_point_run(const tn_plan *plan, const tn_exec *x, tn_err *err);

/* Part of a run of such a plan, whose arrays lie anywhere: up to a tile of elements. */
typedef struct tncpu_point_piece {
    const void *steady[TNCPU_POINT_IN]; /* per operand of the loop: of tncpu_point_steady; NULL */
    const void *in[TNCPU_POINT_IN];     /* per input of the node */
    int64_t in_at[TNCPU_POINT_IN];      /* the first element there */
    void *out;
    int64_t out_at, n;
    const tn_value *attrs;
    bool add;
} tncpu_point_piece;
void tncpu_point_piece_run(const tn_plan *plan, const tncpu_point_piece *t);
/* The loop, if it may run over the arrays themselves but for operands that are `steady`; else NULL. `*attrs`:
 * what it gets in the place of the node's; NULL: those. */
tncpu_loop tncpu_point_bare(const tn_plan *plan, const uint8_t *steady, const tn_value **attrs);
/* Operands of its loop; the one that is an attribute, or -1. */
uint32_t tncpu_point_operands(const tn_plan *plan, int32_t *scalar);
/* Input `input` lies dense, in the order of the output. */
bool tncpu_point_direct(const tn_plan *plan, uint32_t input);
/* Operand `k` is one element of its input for all positions. */
bool tncpu_point_single(const tn_plan *plan, uint32_t k);
/* `n` elements of operand `k` that are the same in every piece: the number, or the one element of its input
 * `in`. NULL: they are not. */
const void *tncpu_point_steady(const tn_plan *plan, uint32_t k, const tn_value *attrs, const void *in,
                               int64_t n, tncpu_tile *to);

/* Casts up to TNCPU_TILE elements, steps in elements. Through the wide types, unless both compute alike: a
 * float goes as double, an integer as 64 bits. elemwise.c */
void tncpu_cast_tile(const tncpu_convert *from, const void *src, int64_t src_step, const tncpu_convert *to,
                     void *dst, int64_t dst_step, int64_t n);

/*
 * A family out of a list OPS(X) of X(op, loop). ROW is TNCPU_POINT_1, _2 or _SCALAR. Defines
 * tncpu_family_<name>.
 */
#define TNCPU_POINT_1(op, id) {#op, TNCPU_##id, 1, TNCPU_NO_SCALAR},
#define TNCPU_POINT_2(op, id) {#op, TNCPU_##id, 2, TNCPU_NO_SCALAR},
#define TNCPU_POINT_SCALAR(op, id) {#op, TNCPU_##id, 2, 1},
#define TNCPU_POINT_FLAGS (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO | TN_KERNEL_POINTWISE)
#define TNCPU_POINT_KERNEL(op, prepare, types)                                                               \
    TNCPU_ROW(#op, types, TNCPU_POINT_FLAGS, prepare, tncpu_point_run),
#define TNCPU_POINT_PREPARE(name, rows)                                                                      \
    static tn_status name(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)                     \
    {                                                                                                        \
        return tncpu_point_prepare(rows, sizeof(rows) / sizeof((rows)[0]), plugin, node, plan, err);         \
    }

#endif
