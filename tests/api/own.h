/* A function of the test program that counts: y0 = x0 * x1, y1 = x0 + x1, with faults to choose. */
#ifndef TN_TEST_API_OWN_H
#define TN_TEST_API_OWN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "api/support.h"

typedef struct own {
    tn_ctx *ctx, *other; /* other: of foreign arrays */
    uint32_t out_count;  /* 1: the product alone */
    int forward_fault, backward_fault;
    tn_status (*inside)(struct own *o, tn_function_run *run); /* more to do in a callback; NULL */
    bool in_backward;               /* `inside` is for the backward, else for the forward */
    atomic_uchar wanted[2];         /* as the last backward was told */
    atomic_int recording, training; /* as the last callback saw them; two may run side by side */
    atomic_uint forwards, backwards, destroyed;
} own;

enum {
    OWN_FINE,
    OWN_FAILS,     /* with a status and a text */
    OWN_NO_STATUS, /* with a number that is none */
    OWN_SILENT,    /* with a status, without a text */
    OWN_NOTHING,   /* an array is left out */
    OWN_FOREIGN,   /* an array of another context */
    OWN_SHAPE,     /* backward only, from here on: of another shape */
    OWN_DTYPE,
    OWN_LATE, /* the work that it queued fails */
    OWN_FAULTS
};

/* Settings of a context: the three engines, and on an asynchronous device, if it is there. */
typedef struct own_engine {
    const char *type, *device;
} own_engine;
#define OWN_HOSTS 3
#define OWN_ENGINES 5
extern const own_engine own_engines[OWN_ENGINES];
/* Runs the tests under the first `engines` of them, each their initial state; the number of failures. */
int own_run(const struct CMUnitTest *tests, size_t count, size_t engines);

tn_function own_function(own *o);
/* One output; the thread records meanwhile. */
tn_array *own_call(own *o, tn_array *a, tn_array *b);
/* Waits for everything, whatever failed, and closes. */
void own_close(tn_ctx *ctx);

#endif
