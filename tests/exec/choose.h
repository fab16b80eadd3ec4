/*
 * The operator test_choose, which tells the size of its output when it runs: the rows of a matrix that begin
 * with a positive number. And a small net in which sizes depend on it.
 */
#ifndef TN_TEST_EXEC_CHOOSE_H
#define TN_TEST_EXEC_CHOOSE_H

#include "net.h"

extern atomic_int choose_closed;      /* test_choose waits while this is 1; a run makes 2 to 1, goes on */
extern atomic_int choose_breaks_left; /* runs of test_breaking, or of test_choose, that fail */
extern atomic_bool choose_breaks;     /* the latter */

#define ROWS 5
#define COLUMNS 3
#define HEADS 4
extern const float choose_x[ROWS * COLUMNS]; /* 3 of the rows are chosen */

typedef struct small { /* heads: tanh x, its chosen rows, a batch norm of a layer of those, the sum of all */
    tni_context *c;
    tni_symbol *s;
    tni_cached_op *op;
    tni_array *in[7]; /* x, weight, bias, gamma, beta, mean, variance */
    uint32_t in_count;
} small;

/* A context with the operators; `engine`: one setting. */
tni_context *choose_open(const char *engine);
/* `twice`: the rows are chosen once more behind the layer, so their number is known later still. */
void small_open(small *n, tni_context *c, bool twice);
void small_close(small *n);
void small_call(small *n, tni_array **out);
void choose_release(tni_array **list, int count); /* and forgets them */

#define WITH(test, engine)                                                                                   \
    {                                                                                                        \
#test " " engine, test, NULL, NULL, (void *)engine                                                   \
    }
#define EVERYWHERE(test)                                                                                     \
    WITH(test, "engine.type=threaded"), WITH(test, "engine.type=naive"), WITH(test, "engine.type=stepped")

#endif
