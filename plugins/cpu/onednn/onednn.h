/*
 * Inside the plugin cpu-onednn: a plan is a list of steps, each a primitive of the library with the places of
 * its arguments. It is made once per thread count by a `build` function, and run by program.c.
 */
#ifndef TNDNN_ONEDNN_H
#define TNDNN_ONEDNN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "tenon/plugin/op.h"
#include "tenon/plugin/op/fused.h"
#include "tenon/plugin/op/join.h"
#include "tenon/plugin/op/norm.h"
#include "tenon/plugin/op/pool.h"
#include "tenon/plugin/util.h"

#include "../common/cpu.h"
#include "shim.h"

#define TNDNN_STEPS_MAX 13 /* of one plan: at most three primitives, two sums, eight arguments reordered */
#define TNDNN_ELEMENTS_MAX INT32_MAX /* of a tensor: offsets in generated code are 32 bits wide */

/* Where an argument lies. */
typedef enum tndnn_kind { TNDNN_IN, TNDNN_OUT, TNDNN_WORK, TNDNN_SCRATCH, TNDNN_SAVED } tndnn_kind;

typedef struct tndnn_place {
    tndnn_kind kind;
    uint32_t index;  /* IN, OUT */
    uint64_t offset; /* WORK, SAVED, IN */
} tndnn_place;

typedef struct tndnn_use {
    int32_t arg; /* DNNL_ARG_… */
    tndnn_place at;
    tndnn_md md;
} tndnn_use;

/* The library's objects of one run at a time. */
typedef struct tndnn_frame {
    dnnl_stream_t stream;
    dnnl_exec_arg_t *args; /* as many as uses */
    void **handles;
} tndnn_frame;

typedef struct tndnn_variant {
    uint32_t threads, step_count, use_count, use_max;
    dnnl_primitive_t step[TNDNN_STEPS_MAX];
    uint32_t first[TNDNN_STEPS_MAX + 1]; /* use of each step, and the end */
    tndnn_use *uses;
    uint64_t work_bytes, scratch_bytes;
    _Atomic(tndnn_frame *) spare;
} tndnn_variant;

typedef struct tndnn_layout {
    tn_layout layout;
    tndnn_md md; /* canonical: what layout.bytes points to */
} tndnn_layout;

/* Which of the ways to serve a node are tried, in their order (conv.c). */
typedef struct tndnn_ways {
    uint32_t first, end;
    bool all; /* those too that measured tables leave out */
} tndnn_ways;

/* The library's objects of one context, made when a kernel is first prepared. */
typedef struct tndnn_plugin {
    const tn_host *host;
    _Atomic(dnnl_engine_t) engine;
} tndnn_plugin;

typedef struct tndnn_state {
    tndnn_plugin *plugin;
    uint32_t variant_count, layout_count, layout_max;
    uint32_t way;              /* that serves the node */
    tndnn_variant variants[2]; /* as planned; on one thread, where fewer are there when it runs */
    tndnn_layout *layouts;
    /* Around the steps; `work` is the plan's own part of the workspace. May be NULL. */
    void (*before)(const struct tndnn_state *s, const tn_exec *x, char *work);
    void (*after)(const struct tndnn_state *s, const tn_exec *x, char *work);
    uint64_t own[6]; /* for those two */
    /* In place of steps: code of our own, and what it keeps. May be NULL. */
    tn_status (*instead)(const tn_plan *plan, const tn_exec *x, const void *kept);
    void *kept;
} tndnn_state;

#define TNDNN_LATE_MAX 3

/* An output that is brought to its order of memory behind all other steps. */
typedef struct tndnn_late {
    tndnn_place from;
    uint32_t out;
    tndnn_md made, want;
} tndnn_late;

/* While a variant is built. */
typedef struct tndnn_maker {
    const tn_node *node;
    tn_plan *plan;
    tndnn_state *state;
    tndnn_variant *v;
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr;  /* scratchpads are the caller's */
    dnnl_primitive_attr_t layer; /* the same, and what follows a layer */
    bool layouts;                /* inputs and outputs may have private layouts */
    const tndnn_ways *ways;
    bool again;       /* the second variant: layouts are settled */
    uint64_t rows_in; /* inputs that a step reads as rows; from number 64 on each is bound once */
    tndnn_late late[TNDNN_LATE_MAX];
    uint32_t late_count;
    tn_err *err;
} tndnn_maker;

typedef tn_status (*tndnn_build)(tndnn_maker *m);

/* What follows a layer. */
typedef struct tndnn_following {
    bool with_sum;
    uint32_t function; /* TN_FUSED_CONV_ACT_TYPE_… */
    double low, high, slope;
} tndnn_following;

/* ---- plugin.c ------------------------------------------------------------------------------------------ */

void *tndnn_alloc(tndnn_plugin *plugin, uint64_t bytes); /* zeroed; NULL: none left */
void tndnn_free(void *p);
tn_status tndnn_engine(tndnn_plugin *plugin, dnnl_engine_t *out, tn_err *err);
tn_status tndnn_status(dnnl_status_t st, const char *what, tn_err *err);

/* ---- program.c ----------------------------------------------------------------------------------------- */

/* Makes a plan whose run takes about `ns` on one thread: `build` is called once or twice. A plan that fails
 * is as the host preset it. */
tn_status tndnn_prepare_ways(void *plugin, const tn_node *node, tn_plan *plan, double ns, tndnn_build build,
                             const tndnn_ways *ways, tn_err *err);
tn_status tndnn_prepare(void *plugin, const tn_node *node, tn_plan *plan, double ns, tndnn_build build,
                        tn_err *err);
tn_status tndnn_run(const tn_plan *plan, const tn_exec *x, tn_err *err);
void tndnn_release(tn_plan *plan);
void tndnn_plan_reset(const tn_node *node, tn_plan *plan); /* released, and as the host preset it */

/* Adds a primitive; `pd` is taken. Then its arguments. */
tn_status tndnn_step(tndnn_maker *m, dnnl_status_t made, dnnl_primitive_desc_t pd, const char *what);
tn_status tndnn_use_add(tndnn_maker *m, int32_t arg, tndnn_place at, const tndnn_md *md);
tndnn_place tndnn_work(tndnn_maker *m, const tndnn_md *md); /* room of its own in the workspace */
tndnn_place tndnn_work_bytes(tndnn_maker *m, uint64_t bytes);
tn_status tndnn_reorder(tndnn_maker *m, tndnn_place from, const tndnn_md *have, tndnn_place to,
                        const tndnn_md *want);
/* Refuses what the library serves by loops of no speed. */
tn_status tndnn_fast(tndnn_maker *m, dnnl_status_t made, const_dnnl_primitive_desc_t pd, const char *what);

/* ---- tune.c -------------------------------------------------------------------------------------------- */

#define TNDNN_TUNE_ARGS 8 /* inputs and outputs of a node, and the workspace */

typedef struct tndnn_tuner {
    const tn_node *node;
    uint64_t end; /* of the budget, on the monotonic clock */
    void *block[TNDNN_TUNE_ARGS];
    uint64_t bytes[TNDNN_TUNE_ARGS];
} tndnn_tuner;

/* False: there is nothing to measure with, or not the time for a run of each of `ways` plans like
 * this one. */
bool tndnn_tuner_start(tndnn_tuner *t, const tn_node *node, const tn_plan *plan, uint32_t ways);
bool tndnn_tuner_goes_on(const tndnn_tuner *t); /* some time is left */
/* The shortest of a few runs, in ns; `left`: how many plans share the time that is left. UINT64_MAX: no time
 * or memory is left, or the run fails. */
uint64_t tndnn_tuner_time(tndnn_tuner *t, const tn_plan *plan, uint32_t left);
/* The way that was stored for the node by this version of the library; false: there is none. */
bool tndnn_tuned_way(const tn_node *node, uint32_t *way);
void tndnn_tuned_leave(tndnn_plugin *plugin, tn_plan *plan, uint32_t way);

/* ---- layout.c ------------------------------------------------------------------------------------------ */

extern const char tndnn_owner[]; /* of layouts */
void tndnn_layout_make(tndnn_layout *made, const tndnn_md *md);
int64_t tndnn_md_count(const tndnn_md *md, int first); /* elements over dimensions `first` and above */
void tndnn_md_rows(tndnn_md *md, int ndims, const dnnl_dims_t dims); /* row-major */
/* Dimensions (N, C, space) of a tensor, or of a weight (O, I, space); channels may stand last. */
void tndnn_dims_read(const tn_tensor *t, bool last, dnnl_dims_t dims, dnnl_dims_t strides);
void tndnn_md_channels(tndnn_md *md, const tn_tensor *t, bool last);
bool tndnn_md_of(const tn_tensor *t, tndnn_md *md); /* its own layout or row-major; false: a foreign one */
bool tndnn_is_own(const tn_layout *layout);
/* True where a tensor has no element, or more than the library is asked for. */
bool tndnn_out_of_range(const tn_tensor *t);

/* Brings input `in` to `want`: as its layout, or by a step that reorders it. */
tn_status tndnn_bind_in(tndnn_maker *m, uint32_t in, const tndnn_md *dense, const tndnn_md *want,
                        tndnn_place *at);
/* A step that brings input `in` to `to` as `want`. */
tn_status tndnn_bring_in(tndnn_maker *m, uint32_t in, const tndnn_md *dense, const tndnn_md *want,
                         tndnn_place to);
/* The place where output `out` is made as `made`; a step behind the others brings it to rows where needed. */
tn_status tndnn_bind_out(tndnn_maker *m, uint32_t out, const tndnn_md *dense, const tndnn_md *made,
                         tndnn_place *at);
/* The same for an output that has to be `want`. */
tn_status tndnn_late_add(tndnn_maker *m, uint32_t out, const tndnn_md *want, const tndnn_md *made,
                         tndnn_place *at);
/* Takes input `in` as it is offered, and keeps it so: an own layout, or `dense`. */
tn_status tndnn_keep_in(tndnn_maker *m, uint32_t in, const tndnn_md *dense, tndnn_md *md);
tn_status tndnn_ask_in(tndnn_maker *m, uint32_t in, const tndnn_md *md);
tn_status tndnn_ask_out(tndnn_maker *m, uint32_t out, const tndnn_md *md);

/* ---- channels.c ---------------------------------------------------------------------------------------- */

#define TNDNN_LANES 16

/* Where the channels of a tensor lie: `lanes` of them side by side at each pixel. Steps in floats. */
typedef struct tndnn_channels {
    int64_t samples, channels, pixels, lanes, blocks;
    int64_t sample, block, pixel;
    bool padded; /* the memory has all lanes of each block */
} tndnn_channels;

/* Of one block of channels. */
typedef struct tndnn_channel_map {
    float scale[TNDNN_LANES], mean[TNDNN_LANES], factor[TNDNN_LANES], bias[TNDNN_LANES];
} tndnn_channel_map;

bool tndnn_channels_of(const tndnn_md *md, tndnn_channels *c); /* false: another order of memory */
uint64_t tndnn_channels_bytes(const tndnn_channels *c);        /* of the room for sums */
/* Sums of a - s and of (a - s)(b - t) for each channel; s, t NULL: 0. */
void tndnn_channels_sum(const tndnn_channels *c, const float *a, const float *b, const float *s,
                        const float *t, int threads, double *room);
double tndnn_channel_sum(const tndnn_channels *c, const double *room, int64_t channel, int which);
/* y = a·scale + (b - mean)·factor + bias; a map for each block. */
void tndnn_channels_map(const tndnn_channels *c, const float *a, const float *b,
                        const tndnn_channel_map *maps, int threads, float *y);

/* ---- conv.c -------------------------------------------------------------------------------------------- */

/* A weight that lies in a form of the library's own, or of ours, is brought there by slow code: true where
 * that is done once. */
bool tndnn_weight_stays(const tn_node *node);

/* ---- what follows a layer (conv.c) --------------------------------------------------------------------- */

/* Puts it into m->layer. */
tn_status tndnn_follow(tndnn_maker *m, const tndnn_following *f);
/* Brings input `in` into the place of the output, as it is made there. */
tn_status tndnn_addend(tndnn_maker *m, uint32_t in, const tndnn_md *dense, const tndnn_md *made,
                       tndnn_place to);

/* ---- winograd.c ---------------------------------------------------------------------------------------- */

/* Plans a convolution, or a reorder of its weight, by code of our own; TN_E_UNSUPPORTED: it is not for such a
 * node, or the library is faster, unless `all`. */
tn_status tndnn_wino_prepare(tndnn_plugin *plugin, const tn_node *node, tn_plan *plan,
                             const tndnn_following *f, bool all, tn_err *err);
tn_status tndnn_wino_reorder(tndnn_plugin *plugin, const tn_node *node, tn_plan *plan, tn_err *err);

#define TNDNN_KERNEL(op_, rank_, isa_, types_, prepare_)                                                     \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = rank_, .op = op_, .name = "onednn",     \
        .device = "cpu", .isa = isa_, .op_version_min = 1, .op_version_max = 1,                              \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_LAYOUTS, .types = types_, .prepare = prepare_,          \
        .run = tndnn_run, .release = tndnn_release                                                           \
    }

static inline const tndnn_md *tndnn_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index)
{
    return dnnl_primitive_desc_query_md(pd, what, index);
}

#endif
