/* A context over the plugins of the build, through the public headers only, and short checks. */
#ifndef TN_TEST_API_SUPPORT_H
#define TN_TEST_API_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/tenon.h"

/* `more`: NULL-ended settings, or NULL. */
tn_status test_open_with(const char *const *more, tn_ctx **out);
tn_ctx *test_open(const char *const *more);
/* Checks that nothing is left in the context. */
void test_close(tn_ctx *ctx);
tn_array *test_array(tn_ctx *ctx, int32_t ndim, const int64_t *shape, const float *values);
void test_values(tn_array *a, const float *expected, size_t count, float tolerance);
/* One output of an operator by name; `attrs` are pairs. */
tn_array *test_op(tn_ctx *ctx, const char *op, const char *const *attrs, uint32_t in_count,
                  tn_array *const *in);
/* A node over one symbol, which it takes. */
tn_symbol *test_node(tn_ctx *ctx, const char *op, const char *name, const char *const *attrs, tn_symbol *in);
/* A little of everything, so that all that a context makes on demand is made. */
void test_use(tn_ctx *ctx);

#define assert_ok(call) test_status((call), TN_OK, #call, __FILE__, __LINE__)
#define assert_fails(call, status) test_status((call), (status), #call, __FILE__, __LINE__)
void test_status(tn_status got, tn_status want, const char *what, const char *file, int line);

#endif
