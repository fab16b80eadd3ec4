/* Small nets for tests: composed as symbols, called by a cached operator or operator by operator. */
#ifndef TN_TEST_EXEC_NET_H
#define TN_TEST_EXEC_NET_H

#include "context.h"

tni_symbol *net_variable(tni_context *c, const char *name);
/* op(in …) with "name=text" attributes, NULL-ended. The inputs stay the caller's. */
tni_symbol *net_op(tni_context *c, const char *op, uint32_t in_count, tni_symbol *const *in, ...);
/* The same, taking the inputs. */
tni_symbol *net_take(tni_context *c, const char *op, tni_symbol *a, tni_symbol *b, const char *attr);
/* `hybrid`: as a cached operator. `in` in the order of TNI_LIST_INPUTS. */
void net_call(tni_context *c, tni_symbol *s, bool hybrid, tni_array *const *in, tni_array **out);
uint32_t net_inputs(tni_symbol *s);
/* Equal bits. */
void net_same(tni_array *a, tni_array *b, const char *what);

#endif
