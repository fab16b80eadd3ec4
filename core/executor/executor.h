/*
 * The interface of room executor: a symbol bound to arrays (tenon/executor.h says what each call means).
 */
#ifndef TN_EXECUTOR_H
#define TN_EXECUTOR_H

#include "autograd/autograd.h"

typedef void (*tni_monitor_fn)(void *arg, const char *name, tni_array *array);

/* The public tn_executor is this very struct. Lists are per variable of the graph, in order of appearance. */
typedef struct tn_executor {
    tni_context *ctx;
    tni_symbol *symbol;
    tni_cached_op *op;
    tni_cached_op *watched; /* calls operators one by one; NULL: nobody watches */
    tni_graph *graph;       /* inferred for the shapes that it is bound to */
    char **pairs;           /* groups and devices, NULL-ended, one block; NULL: none */
    tni_array **values;     /* as they were given */
    tni_array **inputs;     /* what calls are given: a view, with the gradient attached if there is one */
    tni_array **outputs;    /* NULL: a run tells its shape */
    bool *heads;            /* per output: the last forward recorded it */
    bool recorded;          /* a forward in training went, and no backward since */
    tni_monitor_fn fn;
    void *arg;
    bool with_inputs; /* the monitor sees inputs, too */
} tni_executor;

/* One variable's arrays. */
typedef struct tni_bound {
    tni_array *value, *grad; /* retained by who binds */
    uint32_t mode;
} tni_bound;

/* `bound`: one per variable, borrowed. */
tn_status tni_executor_bind(tni_context *c, tni_symbol *s, const char *const *pairs, const tni_bound *bound,
                            tni_executor **out);

typedef struct tni_bind_spec {
    const uint32_t *modes;    /* per variable: TN_MODE_… of its gradient */
    const uint8_t *listed;    /* per variable: 1: its shape was given */
    tni_device *device;       /* of what lies in no group; NULL: where it lies in `from` */
    const char *const *pairs; /* groups and devices; NULL: none */
    const tni_executor *from; /* whose arrays serve where they fit; NULL: all are new */
    bool partial, up;         /* TN_RESHAPE_PARTIAL, TN_RESHAPE_UP */
} tni_bind_spec;
/* [takes] `g`: inferred for `s`, also on failure. */
tn_status tni_executor_make(tni_context *c, tni_symbol *s, tni_graph *g, const tni_bind_spec *spec,
                            tni_executor **out);
void tni_executor_destroy(tni_executor *e); /* NULL is fine */

/* The variable of that name; TN_E_KEY: there is none. */
tn_status tni_executor_find(const tni_executor *e, const char *name, uint32_t *out);
uint32_t tni_executor_mode(const tni_executor *e, uint32_t variable); /* TN_MODE_… of its gradient */

/* Copies `count` arrays into values; `at`: the variable of each. Nothing is copied if a shape does not
 * fit. */
tn_status tni_executor_fill(const tni_executor *e, uint32_t count, const uint32_t *at,
                            tni_array *const *arrays);
tn_status tni_executor_forward(tni_executor *e, bool train);
/* `head_grads`: per output, or NULL. */
tn_status tni_executor_backward(tni_executor *e, tni_array *const *head_grads);
tn_status tni_executor_monitor(tni_executor *e, tni_monitor_fn fn, void *arg, bool with_inputs);

#endif
