/* Two contexts and what wrong arguments are made of. */
#ifndef TN_TEST_API_FIXTURE_H
#define TN_TEST_API_FIXTURE_H

#include "api/support.h"
#include "support/list.h"

#define HUGE_COUNT 0xffffffffu

typedef struct fixture {
    tn_ctx *ctx, *other;
    tn_array *a, *b, *foreign; /* (2, 3), (4), (2, 3) of another context */
    tn_symbol *x, *net, *foreign_symbol;
    const tn_device *foreign_device;
    int64_t shape[2];
} fixture;

extern fixture f;

int fixture_open(void **state);
int fixture_close(void **state);

#endif
