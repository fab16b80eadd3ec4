/* A context over the plugins of the build, and helpers that make and check arrays. */
#ifndef TN_TEST_EXEC_CONTEXT_H
#define TN_TEST_EXEC_CONTEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "context/context.h"
#include "support/heard.h"

/* Settings that every test_context of the running variant gets; NULL: none. */
extern const char *const *test_variant;
/* Runs a group of tests under each engine, pool and device; the number of failures. */
int test_variants_run(int (*group)(void));
/* `more`: NULL-ended further settings, or NULL. Fails the test if it cannot be opened. */
tni_context *test_context(const char *const *more);
tn_status test_context_try(const char *const *more, tni_context **out); /* the same, as it comes */
extern heard test_logged;           /* warnings since a context was opened last */
uint64_t test_cuts(tni_context *c); /* of programs, so far */
void test_context_close(tni_context *c);
tni_array *test_array(tni_context *c, int32_t ndim, const int64_t *shape, const float *values);
tni_array *test_vector(tni_context *c, int64_t count, const float *values);
void test_values(tni_array *a, const float *expected, size_t count, float tolerance);
#define TEST_ATTRS 16u
typedef struct test_attrs { /* attributes of a call; they point into it */
    const char *names[TEST_ATTRS], *texts[TEST_ATTRS];
    char buffer[TEST_ATTRS][128];
    size_t count;
} test_attrs;
void test_attrs_take(test_attrs *a, va_list pairs); /* "name=text" pairs, NULL-ended */
/* One operator with one output; attributes as "name=text" pairs, NULL-ended. */
tni_array *test_op(tni_context *c, const char *op, uint32_t in_count, tni_array *const *in, ...);
void test_record(bool on, bool train); /* what this thread calls from here on */
#define assert_ok(call) test_ok((call), #call, __FILE__, __LINE__)
void test_ok(tn_status st, const char *what, const char *file, int line);

#endif
