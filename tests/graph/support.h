/* What the tests of room graph share: a set of operators with small ones of our own, and helpers that make
 * symbols. */
#ifndef TEST_GRAPH_SUPPORT_H
#define TEST_GRAPH_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"

/* The core's families, and:
 *   t_mul(lhs, rhs)        product; gradient of two t_mul
 *   t_pair(data)           outputs first, second; gradient t_sum2(dfirst, dsecond)
 *   t_sum2(lhs, rhs)       sum; gradient passes dy on twice
 *   t_state(data, state)   changes input 1; outputs output and a hidden one
 *   t_draw(data)           random
 *   t_loss(data, label)    loss layer: needs no head gradient
 *   t_stop(data)           gradient zero
 *   t_none(data)           no gradient
 *   t_many(arg*)           variadic, attribute num_args; output 0 like input 0
 *   t_fade(data)           gradient is zeros_like */
tni_opset *test_ops(void);
void test_ops_close(tni_opset *ops);

tni_symbol *var(tni_opset *ops, const char *name);
/* op(a, b): `attrs` is "key=text;key=text" or NULL; name NULL: automatic; b may be NULL. Fails the test on
 * errors. */
tni_symbol *op1(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a);
tni_symbol *op2(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a,
                tni_symbol *b);
/* Like op1 and op2, but releases its arguments. */
tni_symbol *take1(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a);
tni_symbol *take2(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a,
                  tni_symbol *b);
/* Names joined by spaces; tni_free. */
char *names_of(tni_symbol *s, int32_t what);
#define assert_names(s, what, text)                                                                          \
    do {                                                                                                     \
        char *names_ = names_of(s, what);                                                                    \
        assert_string_equal(names_, text);                                                                   \
        tni_free(names_);                                                                                    \
    } while (0)
/* assert_int_equal(TN_OK, call), with the error text. */
#define assert_ok(call)                                                                                      \
    do {                                                                                                     \
        tn_status st_ = (call);                                                                              \
        if (st_)                                                                                             \
            fail_msg("%s: %s", #call, tn_error_text());                                                      \
    } while (0)
#define assert_fails(status, part, call)                                                                     \
    do {                                                                                                     \
        assert_int_equal(call, status);                                                                      \
        if (!strstr(tn_error_text(), part))                                                                  \
            fail_msg("\"%s\" is not in \"%s\"", part, tn_error_text());                                      \
    } while (0)
/* Node of a flat graph by name; fails if there is none. */
uint32_t node_of(const tni_graph *g, const char *name);
/* LeNet as MXNet's example has it: 2 convolutions, 2 dense layers, SoftmaxOutput "softmax". */
tni_symbol *test_lenet(tni_opset *ops);
uint32_t test_random(uint64_t *state);

#endif
