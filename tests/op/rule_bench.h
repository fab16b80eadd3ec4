/* What the tests of rules as text share: an operator made of rules, and one inference by it. */
#ifndef TEST_OP_RULE_BENCH_H
#define TEST_OP_RULE_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op/shape_rule.h"
#include "tenon/plugin/attr.h"

#define ARGS_MAX 8

#define CONV                                                                                                 \
    "data:(N,C:channels,S..)^layout weight:(n,C,kernel..)^layout bias?!no_bias:(n) -> "                      \
    "output:(N,n,window(S..))^layout"

extern const tn_attr_def rule_attrs[];

typedef struct bench {
    tni_opset *ops;
    tn_op op;
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_args args;
} bench;

/* An operator "rule" in a set of its own. `given`: attributes, "name=text name=text". */
void bench_open(bench *b, const char *shapes, const char *gradients, const char *given);
void bench_close(bench *b);

/* "2,?,4" has an unknown dimension, "?" is wholly unknown, "-" has no dimensions. */
tn_shape shape_of(const char *text);
/* Shapes of all arguments, inputs first, as "2,3 4 -> 5". Infers until nothing changes, as graphs do. */
tn_status infer(bench *b, const tni_opdef *def, const char *given, uint32_t flags, char *out, size_t size);
/* Each character of the gradient rule, or without one of the shape rule, changed to each of some others:
 * refused or taken, but never anything else. What is taken infers or fails. */
void mangle(const bench *b, const char *shapes, const char *gradients);

#endif
