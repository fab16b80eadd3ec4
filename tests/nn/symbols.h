/* Symbols of an application's context, for tests of modules. */
#ifndef TN_TEST_NN_SYMBOLS_H
#define TN_TEST_NN_SYMBOLS_H

#include "nn/support.h"
#include "support/symbols.h"

static inline tn_symbol *variable(tn_app *app, const char *name)
{
    return symbol_variable(tn_app_ctx(app), name);
}

/* [takes] its input. */
static inline tn_symbol *node(tn_app *app, const char *op, const char *name, const char *const *attrs,
                              tn_symbol *in)
{
    return symbol_node(tn_app_ctx(app), op, name, attrs, in, NULL);
}

#endif
