/* Formulas over values or arrays: the grammar stands in formula.c. */
#ifndef TN_NN_FORMULA_H
#define TN_NN_FORMULA_H

#include "internal.h"

#define TNN_FORMULA_NAMES 64

typedef struct tnn_term {
    void *value; /* the runner's; NULL: a number */
    double number;
} tnn_term;

typedef struct tnn_step { /* one operator; "add" and its like stand for those of two values */
    const char *op;
    uint32_t count;
    void *const *in;
    const double *scalar;     /* NULL: none */
    const char *const *attrs; /* two pairs of name and text at most; NULL: none */
} tnn_step;

typedef struct tnn_formula {
    void *(*run)(void *arg, const tnn_step *step); /* NULL: failed, and the app knows why */
    void *arg;
    const char *names[TNN_FORMULA_NAMES]; /* the last of a name counts */
    tnn_term terms[TNN_FORMULA_NAMES];
    size_t count;
    const char *at;
    bool failed;
    /* Texts of axes, "" by default: that of the classes, "1" and "(1,)", in place of the last one; that of
     * the samples, "(1,)", in place of the first. */
    char axis[16], axes[20], samples[20];
} tnn_formula;

void tnn_formula_name(tnn_formula *f, const char *name, void *value, double number);
/* The value of the text; NULL: failed, without an error of its own. */
void *tnn_formula_run(tnn_formula *f, const char *text);

/* operators.c: values of the running net's function, called from a place. */
typedef struct tnn_place {
    const char *file;
    int32_t line;
} tnn_place;
void *tnn_value_step(void *place, const tnn_step *step);
tn_x tnn_value_like(tn_x labels, tn_x x, const char *file, int32_t line); /* labels in the shape of x */

#endif
