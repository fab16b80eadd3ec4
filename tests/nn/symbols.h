/* Symbols that tests of modules put together. */
#ifndef TN_TEST_NN_SYMBOLS_H
#define TN_TEST_NN_SYMBOLS_H

#include "nn/support.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline tn_symbol *variable(tn_app *app, const char *name)
{
    tn_symbol *s = NULL;

    assert_int_equal(tn_symbol_variable(tn_app_ctx(app), name, &s), TN_OK);
    return s;
}

/* [takes] its input. */
static inline tn_symbol *node(tn_app *app, const char *op, const char *name, const char *const *attrs,
                              tn_symbol *in)
{
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 1,
                                 .op = op,
                                 .name = name,
                                 .attrs = attrs,
                                 .in = &in};
    tn_symbol *out = NULL;

    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &out), TN_OK);
    tn_symbol_release(in);
    return out;
}

#endif
