/* See nn_calls.c. */
#ifndef TN_TESTS_MXNET_NN_CALLS_H
#define TN_TESTS_MXNET_NN_CALLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mxnet/recording.h"
#include "tenon/nn.h"

#define NUMBERS_MAX ELEMENTS_MAX

extern recording all; /* that is replayed */
extern size_t replayed;

tn_app *app_open(void);
void app_close(tn_app *app, const call *c);           /* fails if there was an error */
const char *path_of(const char *name);                /* of a file in recorded/nn; one at a time */
const char *text_of(const call *c, const char *name); /* an option; NULL: it is not given */
double number_of(const call *c, const char *name);    /* 0: it is not given */
/* "loss.huber" to "huber"; NULL: of another kind. */
const char *name_of(const call *c, const char *kind);
tn_array *array_of(tn_app *app, const recorded *r);
/* Within `relative` of each number, and a tenth of it of the largest. */
void near(const call *c, const char *what, const recorded *want, const double *have, size_t count,
          double relative);
void near_array(tn_app *app, const call *c, const char *what, const recorded *want, tn_array *have,
                double times);
/* Runs `replay` for each call of a kind. */
void each(const char *kind, void (*replay)(const call *c, const char *name));
void nn_all_replayed(void **state); /* a test, the last one */

#endif
