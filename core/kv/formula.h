/* Lines that compute a step of an optimizer: formula.c. */
#ifndef TN_KV_FORMULA_H
#define TN_KV_FORMULA_H

#include "kv/kv.h"

typedef struct tni_kv_formula {
    tni_context *ctx;
    size_t array_count, number_count;
    struct {
        const char *name;
        tni_array *a; /* NULL: not written yet */
        bool kept;    /* the caller's, written in place; else of the formula */
    } arrays[12];
    struct {
        const char *name;
        double x;
    } numbers[24];
} tni_kv_formula;

/* Queues NAME := expression. TN_E_INTERNAL: the line is wrong. */
tn_status tni_kv_formula_run(tni_kv_formula *f, const char *line);
void tni_kv_formula_fini(tni_kv_formula *f);

#endif
