/*
 * Nets of MXNet's model zoo and what MXNet computed for them: graph and record in, numbers out, through the
 * public API alone but for plan.c. tests/oracle/README.md states the rule by which both sides make weights
 * and inputs.
 */
#ifndef TN_TESTS_ZOO_ZOO_H
#define TN_TESTS_ZOO_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tenon/tenon.h"

/* ---- rule.c ---- */

/* Values of the parameter or input `name` of `shape`, row-major; `count` is the product of the shape.
 * false: the rule knows no such ending. */
bool zoo_numbers(const char *name, int32_t ndim, const int64_t *shape, uint64_t seed, uint64_t count,
                 float *out);

/* ---- net.c ---- */

/* NET.params: what MXNet computed. */
typedef struct zoo_record {
    tn_params *params;
    int64_t shape[4]; /* of the input, (N, C, H, W) */
    int64_t seed;
    uint64_t count;
    float *output;
} zoo_record;

tn_status zoo_record_open(tn_ctx *ctx, const char *path, zoo_record *out);
void zoo_record_close(zoo_record *r); /* zeros are fine */

/* A gzip'd graph. */
tn_status zoo_graph_read(tn_ctx *ctx, const char *path, tn_symbol **out);

typedef struct zoo_net {
    tn_ctx *ctx;
    tn_symbol *symbol;
    tn_inferred *shapes;
    tn_cached_op *op;
    tn_program *program; /* from the first zoo_net_serve on */
    char **names;        /* of all inputs */
    tn_array **in;       /* with the rule's values */
    tn_array *out;       /* of the last call */
    size_t count;
    int32_t dtype;
    int64_t seed;
} zoo_net;

/* Reads a gzip'd graph and fills all inputs with the rule's float32 values, as `dtype` (TN_F32 or TN_F64).
 * `out` is to be closed in any case. */
tn_status zoo_net_open(tn_ctx *ctx, const char *graph, const zoo_record *r, int32_t dtype, zoo_net *out);
void zoo_net_close(zoo_net *n); /* zeros are fine */
/* Inference by the cached operator; n->out is the result. */
tn_status zoo_net_infer(zoo_net *n);
/* The same by a program: all inputs but the data are its weights. */
tn_status zoo_net_serve(zoo_net *n);
/* Training mode: gradients of sum(output * head) become tn_array_grad(n->in[i]), for all but the input and
 * the states. */
tn_status zoo_net_gradient(zoo_net *n);
/* All values of an array of float32 or float64; free(). NULL: failed. */
double *zoo_values(tn_ctx *ctx, tn_array *a, uint64_t *count);

/* ---- plan.c: looks inside ---- */

#define ZOO_PLAN_MOST 1.06 /* planned bytes of an arena, in multiples of the bound */

typedef struct zoo_plan {
    uint64_t planned, bound; /* bytes of the arena; the least that any plan of its buffers needs */
    uint64_t separate;       /* with one plan for the forward and one for the backward */
} zoo_plan;

/* Compiles the net for data of this shape, and runs nothing: for inference with weights that are constant, or
 * with the gradients of all weights. */
tn_status zoo_plan_make(tn_ctx *ctx, const char *graph, const int64_t shape[4], bool train, zoo_plan *out);

typedef struct zoo_error {
    double largest;  /* |expected| */
    double distance; /* largest |got - expected|; NaN where one of them is NaN */
} zoo_error;

/* Compares n->out with the record. */
tn_status zoo_compare(const zoo_net *n, const zoo_record *r, zoo_error *out);

#endif
