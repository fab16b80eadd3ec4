/*
 * What the files that make problems share.
 */
#ifndef TN_CHECK_GENERATE_H
#define TN_CHECK_GENERATE_H

#include "lab.h"

#define CHK_BASES_MAX 64

/* A set of attribute values, and the shape it goes with. */
typedef struct chk_base {
    chk_attrs attrs;
    tn_shape shape;
    bool has_shape;
    bool variation; /* of the first: one attribute differs */
} chk_base;

typedef struct generator {
    chk_lab *lab;
    const tn_op *op;
    const tn_kernel *kernel; /* whose rules count; NULL: none */
    uint32_t what, dtype_mask, tries, made;
    int32_t count_attr;
    int32_t usual;       /* data type of the other inputs where one has another */
    uint32_t bases_most; /* sets of attributes; 0: CHK_BASES_MAX */
    uint32_t given;      /* inputs of a variadic operator whose number no attribute says; 0: 3 */
    bool train, stop;
    const struct thin_row *thin; /* how some inputs are broadcast; NULL: not at all */
    bool thinned;                /* inference took that */
    chk_visit visit;
    void *arg;
} generator;

/* plausible.c: sets of attribute values worth trying; returns how many. */
uint32_t chk_bases(generator *g, chk_base *out);
/* problem.c */
void chk_problem_finish(chk_problem *p);
/* False: problems are wanted that the subject's kernel shares out to several threads, and this is none. */
bool chk_is_wanted(chk_lab *lab, const chk_problem *p);
uint64_t chk_mix(uint64_t x);
void chk_fill(void *data, int32_t dtype, int64_t count, double low, double high, uint64_t seed);

#endif
