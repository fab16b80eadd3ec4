/* Normalisation: kernels/norm.cu. */
#include "tenon/plugin/op/norm.h"
#include "last.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS_WANTED 512 /* of the sums of all channels */
#define SLICE_LEAST 4096  /* elements of a channel for each of them */
#define SLICE_STEP 1024   /* a multiple of four for each thread */
#define PACKS_LEAST 1024  /* the same in packs */
#define ROWS_OF_LANE 4    /* at least, of channels last */
#define TILE_PACKS 32     /* at most, side by side */
#define PLANE_MOST (1 << 30)
#define JOIN_MOST 16    /* parts of a channel that each block of the map adds up */
#define END_CHANNELS 8  /* of a block of norm_batch_end */
#define MAP_TURNS 8     /* packs that a thread of the map makes, at most */
#define MAP_BLOCKS 1024 /* fewer packs, where there would be fewer blocks */
#define ROW_LONG 1024   /* elements of a row from which a block makes it */
#define ROWS_LEAST 64   /* of a slice: eight for each thread */
#define ROWS_LEAST_HELD 32
#define HELD_LEAST 256 /* elements of a row that 32 threads hold in registers */
#define HELD_MOST 1024
#define HELD_ROWS_MOST 256 /* of a slice: 32 of a thread, which are added in float */
#define HELD_COLUMNS 256   /* of gradients of elements, of a block */
#define CHANNELS_MOST 64   /* of LRN, of a thread: sums are made anew behind them */
#define CHANNELS_LEAST 8
#define THREADS_WANTED 131072 /* of LRN: so many that each makes fewer channels */

/* kernels/norm_batch.inc; ANY: elements one by one. */
typedef enum batch_form { BATCH_ANY, BATCH_PLANES, BATCH_LAST } batch_form;

typedef struct norm_state {
    bool back, train, is_l2, held;
    batch_form form;
    uint32_t in_count, out_count;
    int64_t map_blocks;
    tncuda_call_args args;
} norm_state;

static tn_status norm_plan(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(norm_state), err);
    norm_state *s = plan->state;

    if (st)
        return st;
    s->back = strncmp(node->op, "_backward_", 10) == 0;
    s->in_count = node->in_count < TNCUDA_CALL_IN ? node->in_count : TNCUDA_CALL_IN;
    s->out_count = node->out_count < TNCUDA_CALL_OUT ? node->out_count : TNCUDA_CALL_OUT;
    return TN_OK;
}

/* ---- BatchNorm ----------------------------------------------------------------------------------------- */

/* The elements of a pack of 16 bytes; 0: there are no kernels for packs of it. */
static int64_t pack_of(int32_t dtype)
{
    return dtype == TN_F32 ? 4 : tncuda_is_short(dtype) ? 8 : 0;
}

static void divisor_set(int64_t *n, int64_t by)
{
    const tncuda_divisor d = tncuda_divisor_of(by);

    n[0] = d.magic;
    n[1] = d.shift;
}

/* How data is walked, from shape and type alone. */
static batch_form form_of(const tn_node *node, bool back, tncuda_call_args *a)
{
    const int32_t dtype = node->in[back]->dtype;
    const int64_t wide = pack_of(dtype);
    int64_t packs;

    if (!wide || a->outer * a->size * a->inner == 0 || node->in[0]->dtype != dtype ||
        node->out[0]->dtype != dtype)
        return BATCH_ANY;
    if (a->inner == 1 && a->size % wide == 0 && a->size <= INT32_MAX) {
        packs = a->size / wide;
        a->n[TNCUDA_BATCH_TILES] = (packs + TILE_PACKS - 1) / TILE_PACKS;
        a->n[TNCUDA_BATCH_PACKS] = (packs + a->n[TNCUDA_BATCH_TILES] - 1) / a->n[TNCUDA_BATCH_TILES];
        return BATCH_LAST;
    }
    packs = a->inner % wide ? (a->inner + wide - 2) / wide + 1 : a->inner / wide;
    if (a->inner < wide || a->inner > PLANE_MOST || packs * a->outer > PLANE_MOST)
        return BATCH_ANY;
    a->n[TNCUDA_BATCH_PACKS] = packs;
    divisor_set(a->n + TNCUDA_BATCH_PACKS_MAGIC, packs);
    divisor_set(a->n + TNCUDA_BATCH_INNER_MAGIC, a->inner);
    return BATCH_PLANES;
}

/* By how many blocks the sums of a channel are made: of `each` things, at least `least` for a block, and a
 * multiple of `step` for all but the last one. `sets` of channels have their own blocks. */
static void slices_set(tncuda_call_args *a, int64_t sets, int64_t each, int64_t least, int64_t step)
{
    int64_t most = sets ? tnb_least(BLOCKS_WANTED / sets, each / least) : 1, slice;

    most = most < 1 ? 1 : most;
    slice = ((each + most - 1) / most + step - 1) / step * step;
    a->n[TNCUDA_BATCH_SLICE] = slice;
    a->n[TNCUDA_BATCH_SLICES] = slice ? (each + slice - 1) / slice : 1;
}

/* How much of the data a block of the map makes: less where there is little. */
static void tile_set(norm_state *s, int64_t wide)
{
    tncuda_call_args *a = &s->args;
    const bool last = s->form == BATCH_LAST;
    const int64_t lanes = last ? TNCUDA_THREADS / a->n[TNCUDA_BATCH_PACKS] : TNCUDA_THREADS * wide;
    const int64_t tiles = last ? a->n[TNCUDA_BATCH_TILES] : 1;
    const int64_t all = last ? a->outer : a->outer * a->size * a->inner;
    int64_t turns = MAP_TURNS, tile = turns * lanes;

    while (turns > 1 &&
           (tiles * (all / tile) < MAP_BLOCKS ||
            (!last && (tile % a->inner ? tile / a->inner + 2 : tile / a->inner) > TNCUDA_THREADS))) {
        turns /= 2;
        tile = turns * lanes;
    }
    a->n[TNCUDA_BATCH_TILE] = tile;
    s->map_blocks = tiles * ((all + tile - 1) / tile);
}

static void form_set(const tn_node *node, norm_state *s)
{
    tncuda_call_args *a = &s->args;
    const int64_t each = a->outer * a->inner;

    s->form = form_of(node, s->back, a);
    if (s->form == BATCH_LAST) {
        const int64_t lanes = TNCUDA_THREADS / a->n[TNCUDA_BATCH_PACKS];

        slices_set(a, a->n[TNCUDA_BATCH_TILES], a->outer, ROWS_OF_LANE * lanes, lanes);
    } else if (s->form == BATCH_PLANES) {
        slices_set(a, a->size, a->outer * a->n[TNCUDA_BATCH_PACKS], PACKS_LEAST, TNCUDA_THREADS);
    } else {
        slices_set(a, a->size, each, SLICE_LEAST, SLICE_STEP);
    }
    if (s->form != BATCH_ANY)
        tile_set(s, pack_of(node->in[s->back]->dtype));
}

/* Whether statistics are those of the batch; a backward has those of its forward. */
static bool wants_batch(const tn_node *node)
{
    const bool back = strncmp(node->op, "_backward_", 10) == 0;

    return (node->flags & TN_NODE_TRAIN) && !tn_value_int(node->attrs[TN_BatchNorm_use_global_stats]) &&
           (!back || !node->forward || ((const norm_state *)node->forward->state)->train);
}

/* SyncBatchNorm has the first five attributes of BatchNorm, then `ndev`, and axis 1. */
static tn_status batch_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool sync = strstr(node->op, "_contrib_SyncBatchNorm") != NULL, train = wants_batch(node);
    const tn_tensor *data;
    norm_state *s;
    tn_status st;
    int32_t axis;

    if (sync && train && tn_value_int(node->attrs[TN_contrib_SyncBatchNorm_ndev]) > 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "CUDA has statistics of one device only (ndev=1)");
    if ((st = norm_plan(plugin, node, plan, err)))
        return st;
    s = plan->state;
    data = node->in[s->back];
    axis = sync ? 1 : tnb_axis(tn_value_int(node->attrs[TN_BatchNorm_axis]), data->ndim);
    tncuda_call_rows(data, axis, axis + 1, &s->args);
    s->args.outer = s->args.inner ? s->args.outer : 0;
    s->train = train;
    s->args.n[TNCUDA_BATCH_TRAIN] = s->train;
    s->args.n[TNCUDA_BATCH_RELU] = strcmp(node->op, "_contrib_BatchNormWithReLU") == 0;
    s->args.n[TNCUDA_BATCH_BACK] = s->back;
    form_set(node, s);
    plan->workspace_bytes =
        (uint64_t)((3 + 2 * s->args.n[TNCUDA_BATCH_SLICES]) * s->args.size + 1) * sizeof(double);
    return TN_OK;
}

/* What comes with channels last stays so, and its gradient comes so. */
static tn_status last_batch_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = strncmp(node->op, "_backward_", 10) == 0;
    const tn_tensor *data = node->in[back];
    tncuda_last last;
    tn_status st;

    if (!tncuda_is_last(data) || !tncuda_last_given(node, 1) ||
        tnb_axis(tn_value_int(node->attrs[TN_BatchNorm_axis]), data->ndim) != 1 ||
        !tncuda_last_see(&last, node, back ? 3 : 1, 1, TN_BatchNorm_axis, (tn_value)(data->ndim - 1)))
        return batch_prepare(plugin, node, plan, err);
    if (!(st = batch_prepare(plugin, &last.node, plan, err)) &&
        (st = tncuda_last_ask(plugin, node, plan, back ? 3 : 1, 1, err)))
        tncuda_release(plan);
    return st;
}

/* "norm_batch_back_planes_bf16": `what` of the form and type of this call. */
static void batch_name(const norm_state *s, const tncuda_call_args *a, const char *what, char *name)
{
    (void)snprintf(name, TNCUDA_NAME_BYTES, "norm_batch%s%s_%s_%s", s->back ? "_back" : "", what,
                   s->form == BATCH_LAST ? "last" : "planes", tncuda_pack_suffix(a->in[0].dtype));
}

/* Sums of channels. Channels of few elements are a thread's each; else several blocks make parts of few
 * channels, which the map joins (`join`) where they are few. */
static tn_status sums_run(const norm_state *s, const tn_exec *x, tncuda_call_args *a, bool map, tn_err *err)
{
    const char *const name = s->back ? "norm_batch_back" : "norm_batch";
    const int64_t slices = a->n[TNCUDA_BATCH_SLICES];
    char part[TNCUDA_NAME_BYTES];
    tn_status st;

    if (!s->back && !s->train && map && s->form != BATCH_ANY) {
        a->n[TNCUDA_BATCH_JOIN] = 1;
        return TN_OK;
    }
    if (a->outer * a->inner < TNCUDA_THREADS || (!s->back && !s->train))
        return tncuda_launch_sums(x, "norm", name, a->size, s->back ? a->outer * a->inner : 0, a, err);
    if (s->form == BATCH_ANY)
        (void)snprintf(part, sizeof part, "norm_batch_sums");
    else
        batch_name(s, a, "", part);
    st = tncuda_launch_blocks(x, "norm", part,
                              (s->form == BATCH_LAST ? a->n[TNCUDA_BATCH_TILES] : a->size) * slices, a, err);
    if (st || (s->form == BATCH_PLANES && slices == 1))
        return st;
    a->n[TNCUDA_BATCH_JOIN] = s->form == BATCH_PLANES && map && slices <= JOIN_MOST;
    return a->n[TNCUDA_BATCH_JOIN]
               ? TN_OK
               : tncuda_launch_blocks(x, "norm", "norm_batch_end",
                                      (a->size + END_CHANNELS - 1) / END_CHANNELS, a, err);
}

static bool packed(const norm_state *s, const tncuda_call_args *a)
{
    const uintptr_t all = (uintptr_t)a->in[0].data | (s->back ? (uintptr_t)a->in[1].data : 0) |
                          (a->out[0].mode ? (uintptr_t)a->out[0].data : 0);

    return s->form != BATCH_ANY && all % 16 == 0 && a->count % pack_of(a->in[0].dtype) == 0;
}

static tn_status batch_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_state *s = plan->state;
    const bool map = x->modes[0] != TN_MODE_NONE;
    tncuda_call_args a = s->args;
    char name[TNCUDA_NAME_BYTES];
    tn_status st;

    tncuda_call_arrays(x, s->in_count, s->out_count, &a);
    a.count = a.outer * a.size * a.inner;
    a.n[TNCUDA_BATCH_FIXED] = tn_value_int(x->attrs[TN_BatchNorm_fix_gamma]) != 0;
    a.n[TNCUDA_BATCH_PACKED] = packed(s, &a);
    a.f[0] = tn_value_float(x->attrs[TN_BatchNorm_eps]);
    a.f[1] = tn_value_float(x->attrs[TN_BatchNorm_momentum]);
    st = sums_run(s, x, &a, map, err);
    if (st || !map)
        return st;
    if (s->form == BATCH_ANY)
        return tncuda_launch(x, "norm", "norm_batch_map", a.count, &a, err);
    batch_name(s, &a, "_map", name);
    return tncuda_launch_blocks(x, "norm", name, s->map_blocks, &a, err);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static void grouped(norm_state *s, const tn_tensor *x, int64_t groups, double eps)
{
    s->args.outer = x->shape[0] * groups;
    s->args.size = groups ? x->shape[1] / groups * tnb_dims(x, 2, x->ndim) : 0;
    s->args.inner = 1;
    s->args.n[TNCUDA_ROW_GROUPS] = groups;
    s->args.f[0] = eps;
}

/* Rows along the axes first … end-1; without elements around them there are none. */
static void rowed(norm_state *s, const tn_tensor *x, int32_t first, int32_t end, double eps)
{
    tncuda_call_rows(x, first, end, &s->args);
    s->args.f[0] = eps;
}

/* Of gradients of elements: blocks side by side. */
static int64_t tiles_of(const norm_state *s, bool held)
{
    const int64_t columns = held ? HELD_COLUMNS : TNCUDA_ROW_COLUMNS;

    return (s->args.size + columns - 1) / columns;
}

/* By how many threads a row is made, and by how many blocks the gradients of its elements. */
static void rows_split(norm_state *s)
{
    tncuda_call_args *a = &s->args;
    const int64_t tiles = tiles_of(s, s->held);
    const int64_t least = s->held ? ROWS_LEAST_HELD : ROWS_LEAST;
    int64_t slices = tiles ? tnb_least(BLOCKS_WANTED / tiles, a->count / least) : 1, members = 1;

    while (members < (a->inner > 1 ? 8 : 32) && members * 4 < a->size)
        members *= 2;
    a->n[TNCUDA_ROW_MEMBERS] = a->inner == 1 && a->size > ROW_LONG ? TNCUDA_THREADS : members;
    a->n[TNCUDA_ROW_LOADS] = a->inner == 1 && a->size % 4 == 0 ? TNCUDA_ROW_FOUR : TNCUDA_ROW_ONE;
    slices = slices < 1 ? 1 : slices;
    if (s->held && slices < (a->count + HELD_ROWS_MOST - 1) / HELD_ROWS_MOST)
        slices = (a->count + HELD_ROWS_MOST - 1) / HELD_ROWS_MOST;
    a->n[TNCUDA_ROW_SLICE] = (a->count + slices - 1) / slices;
    a->n[TNCUDA_ROW_SLICES] = a->count ? (a->count + a->n[TNCUDA_ROW_SLICE] - 1) / a->n[TNCUDA_ROW_SLICE] : 1;
}

static tn_status rows_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = norm_plan(plugin, node, plan, err);
    norm_state *s = plan->state;
    const char *op = node->op;
    const tn_tensor *x;

    if (st)
        return st;
    op += s->back ? 10 : 0;
    x = node->in[s->back];
    if (strcmp(op, "LayerNorm") == 0) {
        const int32_t axis = tnb_axis(tn_value_int(node->attrs[TN_LayerNorm_axis]), x->ndim);

        rowed(s, x, axis, axis + 1, tn_value_float(node->attrs[TN_LayerNorm_eps]));
    } else if (strcmp(op, "L2Normalization") == 0) {
        const int64_t mode = tn_value_int(node->attrs[TN_L2Normalization_mode]);
        const int32_t first = mode == TN_L2Normalization_mode_spatial ? 2 : 1;

        rowed(s, x, first, mode == TN_L2Normalization_mode_channel ? 2 : x->ndim,
              tn_value_float(node->attrs[TN_L2Normalization_eps]));
    } else if (strcmp(op, "GroupNorm") == 0) {
        grouped(s, x, tn_value_int(node->attrs[TN_GroupNorm_num_groups]),
                tn_value_float(node->attrs[TN_GroupNorm_eps]));
    } else {
        s->args.n[TNCUDA_ROW_VARIANCE] = 1;
        grouped(s, x, x->shape[1], tn_value_float(node->attrs[TN_InstanceNorm_eps]));
    }
    s->args.count = s->args.outer * s->args.inner;
    s->is_l2 = op[1] == '2';
    s->held = op[0] == 'L' && !s->is_l2 && x->dtype != TN_F64 && s->args.inner == 1 &&
              s->args.size >= HELD_LEAST && s->args.size <= HELD_MOST && s->args.size % 8 == 0;
    rows_split(s);
    if (s->back && !s->is_l2)
        plan->workspace_bytes =
            (uint64_t)(s->args.n[TNCUDA_ROW_GROUPS] ? s->args.count
                                                    : s->args.size * s->args.n[TNCUDA_ROW_SLICES] + 1) *
            2 * sizeof(double);
    return TN_OK;
}

/* Kernels are given arrays as their own type of 16 bytes or 8. */
static void rows_loads(tncuda_call_args *a, uint32_t in_count, bool held)
{
    const uint64_t bytes = held || a->in[0].dtype == TN_F32 || a->in[0].dtype == TN_F64 ? 16 : 8;
    uintptr_t all = (uintptr_t)a->out[0].data;

    for (uint32_t k = 0; k < in_count; k++)
        all |= (uintptr_t)a->in[k].data;
    if (a->n[TNCUDA_ROW_LOADS] == TNCUDA_ROW_FOUR && all % bytes == 0)
        a->n[TNCUDA_ROW_LOADS] = TNCUDA_ROW_PACK;
}

static tn_status row_launch(const tn_exec *x, const char *name, int64_t blocks, const tncuda_call_args *a,
                            tn_err *err)
{
    char kernel[TNCUDA_NAME_BYTES];

    (void)snprintf(kernel, sizeof kernel, "%s_%s", name, tncuda_suffix(a->in[0].dtype));
    return tncuda_launch_blocks(x, "norm", kernel, tnb_least(blocks, INT32_MAX), a, err);
}

/* Rows in registers: whether they are, follows from the places of arrays, too. */
static bool is_held(const norm_state *s, const tncuda_call_args *a)
{
    return s->held && a->n[TNCUDA_ROW_LOADS] == TNCUDA_ROW_PACK;
}

static tn_status rows_make(const norm_state *s, const tn_exec *x, const tncuda_call_args *a, tn_err *err)
{
    static const char *const names[] = {"norm_row", "norm_row_back", "norm_l2", "norm_l2_back"};
    const int64_t rows = TNCUDA_THREADS / a->n[TNCUDA_ROW_MEMBERS];
    char kernel[TNCUDA_NAME_BYTES];

    if (is_held(s, a)) {
        (void)snprintf(kernel, sizeof kernel, "norm_held%s_%s", s->back ? "_back" : "",
                       tncuda_pack_suffix(a->in[0].dtype));
        return tncuda_launch_blocks(x, "norm", kernel, tnb_least((a->count + 7) / 8, INT32_MAX), a, err);
    }
    return row_launch(x, names[2 * s->is_l2 + s->back], (a->count + rows - 1) / rows, a, err);
}

/* Gradients of gamma and beta. */
static tn_status parameters_make(const norm_state *s, const tn_exec *x, const tncuda_call_args *a,
                                 tn_err *err)
{
    const bool held = is_held(s, a);
    const int64_t tiles = tiles_of(s, held), slices = a->n[TNCUDA_ROW_SLICES];
    char kernel[TNCUDA_NAME_BYTES];
    tn_status st;

    if (a->n[TNCUDA_ROW_GROUPS])
        return tncuda_launch_blocks(x, "norm", "norm_groups", tnb_least(a->n[TNCUDA_ROW_GROUPS], 65535), a,
                                    err);
    (void)snprintf(kernel, sizeof kernel, "norm_elements_held_%s", tncuda_pack_suffix(a->in[0].dtype));
    st = held ? tncuda_launch_blocks(x, "norm", kernel, tnb_least(tiles * slices, INT32_MAX), a, err)
              : row_launch(x, "norm_elements", tiles * slices, a, err);
    return st || slices == 1
               ? st
               : tncuda_launch_blocks(x, "norm", "norm_elements_end",
                                      (a->size + TNCUDA_ROW_ENDS - 1) / TNCUDA_ROW_ENDS, a, err);
}

static tn_status rows_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_state *s = plan->state;
    tncuda_call_args a = s->args;
    bool others = false; /* statistics, or gradients of parameters */
    bool rows;
    tn_status st;

    tncuda_call_arrays(x, s->in_count, s->out_count, &a);
    for (uint32_t o = 1; o < s->out_count; o++)
        others = others || x->modes[o] != TN_MODE_NONE;
    rows_loads(&a, s->in_count, s->held);
    rows = s->back ? a.size && (x->modes[0] || (others && a.n[TNCUDA_ROW_GROUPS]))
                   : a.size || others; /* rows of nothing have a mean or a norm, too */
    st = rows ? rows_make(s, x, &a, err) : TN_OK;
    return st || !s->back || !others || s->is_l2 ? st : parameters_make(s, x, &a, err);
}

/* ---- LRN ----------------------------------------------------------------------------------------------- */

/* How many channels a thread makes: few where there are few places. Neighbouring threads make neighbouring
 * places, if there are any. */
static int64_t lrn_each(const tncuda_call_args *a)
{
    const int64_t places = a->outer * a->inner;
    int64_t each = a->inner > 1 ? tnb_least(a->size, CHANNELS_MOST) : 1;

    while (each > CHANNELS_LEAST && places * ((a->size + each - 1) / each) < THREADS_WANTED)
        each = (each + 1) / 2;
    return each < 1 ? 1 : each;
}

static tn_status lrn_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = norm_plan(plugin, node, plan, err);
    norm_state *s = plan->state;

    if (st)
        return st;
    tncuda_call_rows(node->in[s->back], 1, 2, &s->args);
    s->args.n[TNCUDA_LRN_EACH] = lrn_each(&s->args);
    return TN_OK;
}

static tn_status lrn_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_state *s = plan->state;
    const int64_t size = tn_value_int(x->attrs[TN_LRN_nsize]), each = s->args.n[TNCUDA_LRN_EACH];
    char kernel[TNCUDA_NAME_BYTES];
    tncuda_call_args a = s->args;

    tncuda_call_arrays(x, s->in_count, s->out_count, &a);
    a.count = a.outer * a.inner * ((a.size + each - 1) / each);
    a.n[TNCUDA_LRN_SIDE] = (size - 1) / 2;
    a.f[0] = tn_value_float(x->attrs[TN_LRN_alpha]) / (double)size;
    a.f[1] = tn_value_float(x->attrs[TN_LRN_beta]);
    a.f[2] = tn_value_float(x->attrs[TN_LRN_knorm]);
    (void)snprintf(kernel, sizeof kernel, "norm_lrn%s_%s", s->back ? "_back" : "",
                   tncuda_suffix(a.in[0].dtype));
    return tncuda_launch(x, "norm", kernel, a.count, &a, err);
}

static const char *const norm_types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};
static const char *const batch_types[] = {"data:" TNCUDA_FLOATS, "*:" TNCUDA_FLOATS, NULL};

#define BATCH(op)                                                                                            \
    TNCUDA_ROW(op, batch_types, TN_KERNEL_EMPTY_OK | TN_KERNEL_LAYOUTS, last_batch_prepare, batch_run)
#define SYNC_BATCH(op) TNCUDA_ROW(op, batch_types, TN_KERNEL_EMPTY_OK, batch_prepare, batch_run)
#define ROWS(op, flags) TNCUDA_ROW(op, norm_types, flags, rows_prepare, rows_run)
const tn_kernel *const tncuda_family_norm[] = {
    BATCH("BatchNorm"),
    BATCH("_backward_BatchNorm"),
    BATCH("_contrib_BatchNormWithReLU"),
    SYNC_BATCH("_contrib_SyncBatchNorm"),
    SYNC_BATCH("_backward__contrib_SyncBatchNorm"),
    ROWS("LayerNorm", 0),
    ROWS("_backward_LayerNorm", TN_KERNEL_EMPTY_OK),
    ROWS("InstanceNorm", 0),
    ROWS("_backward_InstanceNorm", TN_KERNEL_EMPTY_OK),
    ROWS("GroupNorm", 0),
    ROWS("_backward_GroupNorm", TN_KERNEL_EMPTY_OK),
    ROWS("L2Normalization", 0),
    ROWS("_backward_L2Normalization", 0),
    TNCUDA_ROW("LRN", norm_types, 0, lrn_prepare, lrn_run),
    TNCUDA_ROW("_backward_LRN", norm_types, 0, lrn_prepare, lrn_run),
    NULL,
};
