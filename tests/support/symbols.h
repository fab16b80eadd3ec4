/* Symbols that tests put together. A failure ends the program, as it may come from a thread of its own. */
#ifndef TN_TEST_SUPPORT_SYMBOLS_H
#define TN_TEST_SUPPORT_SYMBOLS_H

#include <stdio.h>
#include <stdlib.h>

#include "support/list.h"
#include "tenon/tenon.h"

static inline void symbol_must(tn_status st, const char *of)
{
    if (!st)
        return;
    (void)fprintf(stderr, "symbol %s: %s: %s\n", of, tn_status_name(st), tn_error_text());
    abort();
}

static inline tn_symbol *symbol_variable(tn_ctx *ctx, const char *name)
{
    tn_symbol *s = NULL;

    symbol_must(tn_symbol_variable(ctx, name, &s), name);
    return s;
}

/* [takes] `a` and `b`, NULL where an operator has fewer inputs; weights and the like become variables. */
static inline tn_symbol *symbol_node(tn_ctx *ctx, const char *op, const char *name, const char *const *attrs,
                                     tn_symbol *a, tn_symbol *b)
{
    tn_symbol *const in[] = {a, b};
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = b ? 2 : a != NULL,
                                 .op = op,
                                 .name = name,
                                 .attrs = attrs,
                                 .in = in};
    tn_symbol *out = NULL;

    symbol_must(tn_symbol_op(ctx, &call, &out), op);
    tn_symbol_release(a);
    tn_symbol_release(b);
    return out;
}

#endif
