/*
 * What the files of functions over values share: run.c runs a call, function.c has what a function calls
 * beside its layers.
 */
#ifndef TN_NN_RUN_H
#define TN_NN_RUN_H

#include "internal.h"

#define TNN_FRAMES_MAX 64 /* scopes and nets within each other */
#define TNN_MARKS_MAX 64  /* calls within arguments of calls */
#define TNN_VALUE_BLOCK 256
#define TNN_VALUE_BLOCKS 512
#define TNN_PATH_MAX 512 /* bytes of the scopes in front of a layer's name */

typedef struct tnn_run tnn_run;

struct tn_value_handle {
    tnn_run *run;
    uint64_t serial; /* of the run's call; 0: ended */
    uint64_t order;  /* from 1, within the call */
    tn_array *array; /* NULL: traced */
    tnn_ref ref;
    tnn_shape shape;
    const tnn_layer *from; /* NULL: an input */
    tnn_param *param;      /* NULL: it is none */
};

typedef struct tnn_frame { /* a net that runs, or an open scope of it */
    tn_net *net;
    uint32_t scope;
    const char *file;
    int32_t line;
    size_t counters, numbered; /* how many there were */
} tnn_frame;

typedef struct tnn_counter {
    const tn_net *net;
    uint32_t scope, used;
    const char *stem;
} tnn_counter;

typedef struct tnn_counters {
    tnn_counter *items;
    size_t count, capacity;
} tnn_counters;

typedef struct tnn_mark { /* arguments of a call are being evaluated */
    const char *file;
    int32_t line;
    uint64_t value_count;
    uint32_t depth;
} tnn_mark;

struct tnn_run {
    tn_app *app;
    tn_net *net;
    tnn_run *outer;
    bool traced;
    uint64_t serial, value_count;
    struct tn_value_handle *values[2][TNN_VALUE_BLOCKS]; /* of this call and the one before, in turn */
    struct tnn_trace *trace;
    tnn_frame frames[TNN_FRAMES_MAX];
    uint32_t depth;
    tnn_counters numbers, bare; /* of layers in open frames; of those that keep nothing, in all */
    uint64_t *numbered;         /* values of layers that have a number in an open frame */
    size_t numbered_count, numbered_capacity;
    tnn_mark marks[TNN_MARKS_MAX];
    size_t mark_count;
    bool watched; /* a hook runs */
};

tnn_run *tnn_running(void); /* of this thread; NULL */
tn_status tnn_frame_push(tnn_run *r, tn_net *net, uint32_t scope, const char *file, int32_t line);
tn_status tnn_frame_pop(tnn_run *r);
tn_status tnn_scope_find(tn_app *app, tn_net *net, const char *path, uint32_t *index); /* makes it */
tn_x tnn_value_make(tnn_run *r);                   /* empty; NULL: failed */
tn_x tnn_value_of_param(tnn_run *r, tnn_param *p); /* NULL: failed */
bool tnn_numbered(const tnn_layer *layer);         /* found by its number, and keeps something */
tn_x tnn_value_few(tnn_run *r, const tnn_layer *l, uint32_t have, uint32_t wanted);
/* Both are usable, and arguments of the call did not both call layers without names. NULL: failed. */
tn_app *tnn_value_pair(tn_x a, tn_x b, const char *what, const char *file, int32_t line);
tn_status tnn_run_net(tnn_run *r, tn_net *net, const tn_x *in, tn_x *out);
/* hooks.c: around a call of a net (out NULL: before it), and of a layer. */
void tnn_hooks_net(tnn_run *r, const tn_net *net, const tn_x *in, const tn_x *out);
bool tnn_hooks_run(tnn_run *r, const char *what, const char *file, int32_t line); /* and fails then */
void tnn_hooks_layer(tnn_run *r, const tnn_layer *l, uint32_t count, const tn_x *in, tn_x out);
tn_x tnn_chain_run(tn_net *net, tn_x x);

#endif
