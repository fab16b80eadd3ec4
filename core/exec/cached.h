/*
 * Hybridized nets: symbols that are called like operators, on one device or several.
 */
#ifndef TN_CACHED_H
#define TN_CACHED_H

#include "exec/compiled.h"

/* ---- cached.c: hybridized nets ----------------------------------------------------------------------- */

typedef struct tni_cached_flags {
    bool static_alloc, static_shape;
    uint32_t inline_limit, forward_bulk, backward_bulk;
} tni_cached_flags;
/* What somebody wants to see of each node of a net that is called operator by operator. `arrays`: its inputs,
 * before it runs, or its visible outputs. A failure ends the call. */
typedef tn_status (*tni_watch_fn)(void *arg, const tni_gnode *n, bool output, tni_array *const *arrays);
typedef struct tni_watch {
    tni_watch_fn fn; /* NULL: nobody */
    void *arg;
} tni_watch;
typedef struct tni_groups tni_groups;                 /* devices of nodes by the name of their group */
typedef struct tni_specialization tni_specialization; /* of one signature of inputs */
typedef struct tni_parts tni_parts;                   /* functions of the program, and what is between them */
typedef struct tn_cached_op {                         /* the public one is this very struct */
    tni_refcount refs;
    tni_context *ctx;
    tni_cached_flags flags;
    tni_groups *groups; /* NULL: none */
    bool placed;        /* nodes have devices of their own: by groups, or attributes */
    tni_graph *graph;   /* not inferred */
    uint8_t *constants; /* per variable: 1: it is seldom written between calls; NULL: none is known */
    tni_parts *parts;   /* NULL: no function of the program is in it */
    tni_watch watch;
    tni_mutex lock;
    tni_specialization *entries;
    uint32_t entry_count;
} tni_cached_op;
tn_status tni_cached_op_create(tni_context *c, tni_symbol *s, const tni_cached_flags *flags,
                               tni_cached_op **out);
/* [takes] `g`, not inferred, also on failure. */
tn_status tni_cached_op_of_graph(tni_context *c, tni_graph *g, tni_cached_op **out);
/* Before the first call: variable `index` is the same array in most calls, seldom written in between. What
 * follows from such variables alone is computed once. */
tn_status tni_cached_op_constant(tni_cached_op *op, uint32_t index);
/* Before the first call: devices of groups, as in tni_groups_create. */
tn_status tni_cached_op_groups(tni_cached_op *op, const char *const *pairs);
/* Before the first call, of a net with inline_limit. */
void tni_cached_op_watch(tni_cached_op *op, tni_watch_fn fn, void *arg);
void tni_cached_op_retain(tni_cached_op *op);
void tni_cached_op_release(tni_cached_op *op);
/* Inputs in the order of TNI_LIST_INPUTS. out[i] NULL: made. */
tn_status tni_cached_op_call(tni_cached_op *op, uint32_t in_count, tni_array *const *in, uint32_t out_count,
                             tni_array **out);
/* What was called last, retained. TN_E_STATE: it was never called, or is called in parts. */
tn_status tni_cached_op_recent(tni_cached_op *op, tni_compiled **out);
/* Arena bytes and their lower bound of the most recent entry. */
tn_status tni_cached_op_memory(tni_cached_op *op, uint64_t *planned, uint64_t *bound);

/* ---- inline.c: nets that are called operator by operator ------------------------------------------- */

/* Has it at most `limit` operators, all of which may be called apart? UINT32_MAX: or it cannot be called. */
bool tni_inlines(const tni_graph *g, uint32_t limit);

/* ---- place.c: nets over several devices -------------------------------------------------------------- */

/* `pairs`: name, device, … NULL. TN_E_KEY: no node of `g` is in that group. */
tn_status tni_groups_create(tni_context *c, const tni_graph *g, const char *const *pairs, tni_groups **out);
void tni_groups_destroy(tni_groups *g); /* NULL is fine */
/* Gives each node a device, and loads its kernels. `in`: arrays of all variables. */
tn_status tni_graph_place(tni_context *c, tni_graph *g, tni_array *const *in, const tni_groups *groups,
                          tni_device *device);
bool tni_graph_placed(const tni_graph *g); /* some node has a device, or names one itself */

#endif
