/*
 * What the tests of nn share: an app with the built plugins and the data of the tree, arrays, comparisons.
 */
#ifndef TN_TESTS_NN_SUPPORT_H
#define TN_TESTS_NN_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tenon/nn.h"
#include "tenon/nn_module.h"
#include "tenon/tenon.h"

/* Settings beyond those of all tests, NULL-ended; `...` may be just NULL. */
tn_app *nn_open(const char *setting, ...);
void nn_close(tn_app *app); /* fails if there was an error */
/* The app has failed, its text contains `text`; closing it gives `exit_code`. */
void nn_close_failed(tn_app *app, const char *text, int exit_code);
/* `count` numbers from -1 to 1, a function of `seed`. */
void nn_numbers(float *out, size_t count, uint64_t seed);
tn_array *nn_array(tn_app *app, int32_t ndim, const int64_t *shape, uint64_t seed);
size_t nn_read(tn_app *app, tn_array *a, float *out, size_t room);         /* how many */
size_t nn_read_module(tn_app *app, tn_module *m, float *out, size_t room); /* its parameters */
size_t nn_read_params(tn_app *app, tn_net *net, float *out, size_t room);  /* and gradients: how many */
void nn_shape(tn_array *a, int32_t ndim, const int64_t *shape);            /* asserts it */
char *nn_folder(void); /* a new, empty one; to be given to nn_folder_remove, which frees the text */
/* The same in memory where that can be: for hundreds of small files that are synced; a slow disk takes
 * minutes. */
char *nn_quick_folder(void);
void nn_folder_remove(char *folder);

#endif
