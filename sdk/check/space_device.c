/*
 * Memory of a device that the plugin under test brings: device 0 of the type that its kernels name, with
 * streams of the kit's own.
 *
 * A block is the image of pages on the device: data with canaries before and behind, copied there as a whole
 * in stream order, and back. A kernel is run as the engine runs it: with the stream, or inside stream_call
 * where the device borrows kernels. What it leaves behind TN_OK is brought back through its own stream, what
 * it leaves behind `complete` through another one, because nothing waits for its own any more.
 *
 * Calls of a driver that wait, or that the system has to serve, cost most of a case's time on a real device.
 * So copies go through pinned memory that each stream has for them, and wait for nothing; steps of draws
 * lie in one pinned block; and from the first case of a process on, one user more has the device open: what
 * a driver makes for the first user and destroys behind the last one is made once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "call.h"
#include "device.h"
#include "internal.h"
#include "space.h"

#define LANES 5u         /* of nodes that share a plan, and one more to look on */
#define GATE_MS 200      /* how long a stream is held back at most: who waits for it there must go on */
#define KEPT_MAX 64u     /* extents kept for later */
#define CANARY_BYTES 64u /* at least, before and behind the data */
#define GARBAGE 0xffu    /* floats: NaN */
#define STAGING_BYTES (256u << 10) /* of each stream */
#define BACK_MAX 64u               /* copies from the device in it */
#define STEPS_BYTES 4096u          /* pinned, for the steps of draws */

/* Device memory. */
typedef struct chk_extent {
    struct chk_extent *next; /* of those kept */
    char *data;
    uint64_t bytes;
} chk_extent;

/* Holds a stream back until it is opened. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open, passed;
} gate;

/* Pinned memory that copies of one stream go through. */
typedef struct staging {
    char *data; /* NULL: the device has none */
    uint64_t used;
    uint32_t back_count; /* copies from the device that are brought on once the stream is through */
    struct {
        void *to;
        const void *from;
        uint64_t bytes;
    } back[BACK_MAX];
} staging;

typedef struct device_space {
    chk_space space; /* first */
    chk_env *env;
    void *self;
    const tn_device_ops *ops;
    const tn_kernel_table *table;
    tn_device_handle *handle;
    uint64_t align;
    pthread_mutex_t lock; /* of lanes and kept */
    chk_lane lanes[LANES];
    staging staging[LANES];
    chk_extent *kept;
    uint32_t kept_count;
    uint64_t *steps; /* behind the first staging; NULL: the device has no such memory */
    uint32_t step_next, step_free_count;
    uint64_t *step_free[STEPS_BYTES / sizeof(uint64_t)];
    gate gate;
} device_space;

static device_space *of(chk_space *space)
{
    return (device_space *)(void *)space;
}

static device_space *space_of(const chk_node *n)
{
    return of(n->side->space);
}

static void must(const device_space *d, const char *rule, const char *call, tn_status st, const tn_err *err)
{
    if (st)
        chk_fail(d->env, rule, "%s, as the tests of kernels use it, gives %s: %s", call, tn_status_name(st),
                 err->message);
}

/* ---- extents ----------------------------------------------------------------------------------------- */

static chk_extent *kept_take(device_space *d, uint64_t bytes)
{
    chk_extent **at = &d->kept, *e;

    (void)pthread_mutex_lock(&d->lock);
    while (*at && (*at)->bytes != bytes)
        at = &(*at)->next;
    if ((e = *at)) {
        *at = e->next;
        d->kept_count--;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return e;
}

static chk_extent *extent_take(device_space *d, uint64_t bytes)
{
    chk_extent *e = kept_take(d, bytes);
    tn_err err = {0};
    void *data = NULL;
    long long held;

    if (e)
        return e;
    if (!(e = calloc(1, sizeof *e)))
        chk_fail(d->env, "kit", "out of memory");
    held = chk_allocation_hold();
    must(d, "D-memory", "alloc", d->ops->alloc(d->handle, TN_MEMORY_DEVICE, bytes, &data, &err), &err);
    chk_allocation_go_on(held);
    e->data = data;
    e->bytes = bytes;
    return e;
}

static void extent_free(device_space *d, chk_extent *e)
{
    d->ops->free(d->handle, TN_MEMORY_DEVICE, e->data);
    free(e);
}

static void extent_give(device_space *d, chk_extent *e)
{
    bool keeps;

    (void)pthread_mutex_lock(&d->lock);
    keeps = d->kept_count < KEPT_MAX;
    if (keeps) {
        e->next = d->kept;
        d->kept = e;
        d->kept_count++;
    }
    (void)pthread_mutex_unlock(&d->lock);
    if (!keeps)
        extent_free(d, e);
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

static uint64_t up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* The device has no pages that tell, so the flags mean nothing here: there are canaries always. */
static void device_make(chk_node *n, uint64_t bytes, uint64_t align, uint64_t offset, uint32_t flags,
                        chk_block *out)
{
    device_space *d = space_of(n);
    uint64_t before, image;

    (void)flags;
    if (align < d->align)
        align = d->align;
    *out = (chk_block){.space = n->side->space};
    out->there = extent_take(d, up(bytes + offset + 2 * align + 3 * CANARY_BYTES, 4096));
    before = up((uintptr_t)out->there->data + CANARY_BYTES, align) - (uintptr_t)out->there->data + offset;
    out->buffer = chk_buffer_create(d->env, bytes, before - CANARY_BYTES, 0);
    out->memory = chk_buffer_data(out->buffer);
    out->data = out->there->data + before;
    (void)chk_buffer_pages(out->buffer, &image);
    if (image > out->there->bytes || (char *)out->memory - (char *)chk_buffer_pages(out->buffer, &image) !=
                                         (char *)out->data - out->there->data)
        chk_fail(d->env, "kit", "an image of %llu bytes does not fit its memory", (unsigned long long)image);
}

static void device_drop(chk_block *b)
{
    extent_give(of(b->space), b->there);
    chk_buffer_destroy(b->buffer);
}

/* Room in the pinned memory of the node's stream; NULL: there is none left. */
static char *staged(device_space *d, const chk_node *n, uint64_t bytes, bool there, void *to)
{
    staging *s = &d->staging[n->lane - d->lanes];
    char *at = s->data + s->used;

    if (!s->data || bytes > STAGING_BYTES - s->used || (!there && s->back_count == BACK_MAX))
        return NULL;
    s->used += bytes;
    if (!there) {
        s->back[s->back_count].to = to;
        s->back[s->back_count].from = at;
        s->back[s->back_count++].bytes = bytes;
    }
    return at;
}

/* Behind a stream that is through. */
static void staging_end(staging *s, bool well)
{
    for (uint32_t i = 0; well && i < s->back_count; i++)
        memcpy(s->back[i].to, s->back[i].from, (size_t)s->back[i].bytes);
    s->back_count = 0;
    s->used = 0;
}

/* Behind a failure of the stream itself a copy back is refused too: device_settle says what failed. */
static void copy(chk_node *n, const chk_block *b, const void *from, bool there)
{
    device_space *d = of(b->space);
    uint64_t bytes;
    void *pages = chk_buffer_pages(b->buffer, &bytes);
    void *const end = from ? (void *)(uintptr_t)from : pages;
    char *pinned = staged(d, n, bytes, there, end);
    const tn_place device = {b->there->data, 0, TN_MEMORY_DEVICE, d->ops->head.id};
    tn_place host = chk_host_place(pinned ? pinned : end);
    tn_err err = {0};
    tn_status st;

    if (pinned)
        host.memory = TN_MEMORY_PINNED;
    if (pinned && there)
        memcpy(pinned, end, (size_t)bytes);
    st = there ? d->ops->copy(n->lane->stream, &device, &host, bytes, &err)
               : d->ops->copy(n->lane->stream, &host, &device, bytes, &err);
    if (st && (there || !d->ops->stream_wait(n->lane->stream, &(tn_err){0})))
        chk_fail(d->env, "D-copy", "a copy %s the device gives %s: %s (%s)", there ? "to" : "from",
                 tn_status_name(st), err.message, n->p->text);
}

static void device_push(chk_node *n, const chk_block *b)
{
    copy(n, b, NULL, true);
}

static void device_pull(chk_node *n, const chk_block *b)
{
    copy(n, b, NULL, false);
}

/* ---- streams ----------------------------------------------------------------------------------------- */

static void *pinned_take(device_space *d, uint64_t bytes)
{
    void *data = NULL;
    tn_err err = {0};

    return d->ops->alloc(d->handle, TN_MEMORY_PINNED, bytes, &data, &err) ? NULL : data;
}

static void pinned_give(device_space *d, void *data)
{
    if (data)
        d->ops->free(d->handle, TN_MEMORY_PINNED, data);
}

static chk_lane *lane_at(device_space *d, uint32_t index)
{
    chk_lane *lane = &d->lanes[index];
    tn_err err = {0};

    (void)pthread_mutex_lock(&d->lock);
    if (!lane->stream) {
        const long long held = chk_allocation_hold();

        must(d, "D-order", "stream_create", d->ops->stream_create(d->handle, 0, &lane->stream, &err), &err);
        if (index < LANES - 1 && !d->staging[index].data) /* several threads look on */
            d->staging[index].data = pinned_take(d, STAGING_BYTES);
        chk_allocation_go_on(held);
    }
    (void)pthread_mutex_unlock(&d->lock);
    return lane;
}

static chk_lane *device_lane(chk_node *n, uint32_t index)
{
    return lane_at(space_of(n), index % (LANES - 1));
}

static void lane_end(device_space *d, chk_lane *lane)
{
    if (lane->slot && TN_OFFERS(d->table, tn_kernel_table, stream_detach))
        d->table->stream_detach(d->self, lane->slot);
    if (lane->stream)
        d->ops->stream_destroy(lane->stream);
    *lane = (chk_lane){0};
}

/* An error sticks to its stream, so a new one takes its place. */
static tn_status device_settle(chk_node *n)
{
    device_space *d = space_of(n);
    tn_err err = {0};
    tn_status st = d->ops->stream_wait(n->lane->stream, &err);

    staging_end(&d->staging[n->lane - d->lanes], !st);
    if (!st)
        return TN_OK;
    n->err = err;
    (void)pthread_mutex_lock(&d->lock);
    lane_end(d, n->lane);
    (void)pthread_mutex_unlock(&d->lock);
    (void)lane_at(d, (uint32_t)(n->lane - d->lanes));
    return st;
}

/* ---- a stream that is behind ------------------------------------------------------------------------- */

static tn_status gate_pass(void *arg, tn_err *err)
{
    gate *g = arg;
    const struct timespec end = chk_deadline(GATE_MS);
    bool late = false;

    (void)err;
    (void)pthread_mutex_lock(&g->lock);
    while (!g->open && !late)
        late = pthread_cond_timedwait(&g->changed, &g->lock, &end) == ETIMEDOUT;
    g->passed = true;
    (void)pthread_mutex_unlock(&g->lock);
    return TN_OK;
}

/* The kernel was called. What goes its own way gets time for it, then the stream goes on. */
static void gate_open(chk_node *n)
{
    gate *g = &space_of(n)->gate;

    chk_quiet_us(n->hold_us);
    (void)pthread_mutex_lock(&n->call->lock);
    (void)pthread_mutex_lock(&g->lock);
    n->early = !g->passed && n->call->completions;
    g->open = true;
    (void)pthread_cond_broadcast(&g->changed);
    (void)pthread_mutex_unlock(&g->lock);
    (void)pthread_mutex_unlock(&n->call->lock);
}

static void device_delay(chk_node *n)
{
    device_space *d = space_of(n);
    tn_err err = {0};

    for (uint32_t i = 0; i < n->p->f.args.in_count; i++) {
        const chk_block *b = &n->in[i].block;
        const bool is_float = chk_is_float(n->p->f.dtype[i]);
        void *garbage;
        uint64_t bytes;

        if (b->space != n->side->space)
            continue;
        (void)chk_buffer_pages(b->buffer, &bytes);
        garbage = chk_take(&n->lab->arena, bytes);
        memset(garbage, is_float ? (int)GARBAGE : 0, (size_t)bytes); /* as an index 0 is harmless */
        copy(n, b, garbage, true);
    }
    must(d, "D-order", "stream_wait", d->ops->stream_wait(n->lane->stream, &err), &err);
    d->gate.open = false;
    d->gate.passed = !d->ops->stream_call;
    if (d->gate.passed) /* nothing to hold it back with: what goes its own way is found if it is fast */
        return;
    must(d, "D-order", "stream_call", d->ops->stream_call(n->lane->stream, gate_pass, &d->gate, &err), &err);
}

/* ---- arguments that end ------------------------------------------------------------------------------ */

/* tn_exec and all that it points to but memory, in one buffer: nobody may touch it once run has
 * said TN_OK. */
typedef struct passed {
    tn_exec x;
    tn_rng rng;
    const tn_tensor *list[2 * CHK_ARGS_MAX];
    tn_tensor tensors[2 * CHK_ARGS_MAX];
    int64_t shape[2 * CHK_ARGS_MAX][TN_NDIM_MAX], stride[2 * CHK_ARGS_MAX][TN_NDIM_MAX];
    uint8_t modes[CHK_ARGS_MAX];
    tn_value attrs[];
} passed;

static const tn_exec *arguments_copy(chk_node *n, const tn_exec *x, chk_buffer **out)
{
    const uint32_t ins = n->p->f.args.in_count, count = ins + n->out_count;
    const uint64_t values = n->p->attrs.count * sizeof(tn_value);
    passed *p;

    *out = chk_buffer_create(n->lab->env, sizeof *p + values, 0, 0);
    p = chk_buffer_data(*out);
    p->x = *x;
    if (!n->no_rng)
        p->rng = *x->rng;
    for (uint32_t i = 0; i < count; i++) {
        const tn_tensor *t = i < ins ? x->in[i] : x->out[i - ins];

        p->tensors[i] = *t;
        memcpy(p->shape[i], t->shape, sizeof p->shape[i]);
        memcpy(p->stride[i], t->stride, sizeof p->stride[i]);
        p->tensors[i].shape = p->shape[i];
        p->tensors[i].stride = p->stride[i];
        p->list[i] = &p->tensors[i];
    }
    memcpy(p->modes, n->modes, sizeof p->modes);
    if (values)
        memcpy(p->attrs, x->attrs, (size_t)values);
    p->x.in = p->list;
    p->x.out = p->list + ins;
    p->x.modes = p->modes;
    p->x.attrs = p->attrs;
    p->x.rng = n->no_rng ? n->no_rng : &p->rng;
    return &p->x;
}

/* ---- runs -------------------------------------------------------------------------------------------- */

typedef struct wrapped {
    chk_node *node;
    const tn_exec *x;
} wrapped;

static tn_status wrapped_run(void *arg, tn_err *err)
{
    const wrapped *w = arg;
    const chk_node *n = w->node;
    tn_status st = n->side->kernel->run(n->plan, w->x, err);

    if (st == TN_PENDING)
        chk_fail(n->lab->env, "K-complete",
                 "run says TN_PENDING, but its device runs kernels in stream_call (%s)", n->p->text);
    return st;
}

static tn_status kernel_call(chk_node *n, const tn_exec *x)
{
    device_space *d = space_of(n);
    wrapped w = {n, x};
    tn_status st;

    if (!d->ops->runs_kernels_of)
        return n->side->kernel->run(n->plan, x, &n->err);
    st = d->ops->stream_call(n->lane->stream, wrapped_run, &w, &n->err);
    if (n->form.pace == CHK_PACE_LATE)
        gate_open(n);
    return st ? st : d->ops->stream_wait(n->lane->stream, &n->err); /* `w` and `x` end here */
}

static tn_status device_run(chk_node *n, const tn_exec *x)
{
    device_space *d = space_of(n);
    chk_lane *own = n->lane;
    chk_buffer *arguments = NULL;
    const bool late = n->form.pace == CHK_PACE_LATE && !d->ops->runs_kernels_of;
    const bool ends = late && chk_host_kind_of(n->lab->plugin.host) == CHK_HOST_EXACT;
    tn_status st = kernel_call(n, ends ? arguments_copy(n, x, &arguments) : x), own_st;
    const bool pending = st == TN_PENDING;
    long long held;

    if (ends && !pending)
        chk_buffer_end(arguments, "K-arguments", "the arguments of run, which has returned");
    if (late)
        gate_open(n);
    st = chk_call_wait(n->call, st);
    if (!pending && (st || n->form.pace != CHK_PACE_ANY)) { /* else once, behind the copies back */
        own_st = device_settle(n);
        st = st ? st : own_st;
    }
    if (n->form.pace == CHK_PACE_QUIET)
        chk_quiet_us(n->hold_us);
    held = chk_allocation_hold();
    if (!st) {
        n->lane = pending ? lane_at(d, LANES - 1) : own;
        chk_outputs_pull(n);
        st = device_settle(n);
        n->lane = own;
    }
    if (pending) {
        own_st = device_settle(n);
        st = st ? st : own_st;
    }
    chk_allocation_go_on(held);
    chk_buffer_destroy(arguments);
    return st;
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static void device_close(chk_space *space)
{
    device_space *d = of(space);

    for (uint32_t i = 0; i < LANES; i++)
        lane_end(d, &d->lanes[i]);
    for (uint32_t i = 0; i < LANES; i++)
        pinned_give(d, d->staging[i].data);
    while (d->kept) {
        chk_extent *next = d->kept->next;

        extent_free(d, d->kept);
        d->kept = next;
    }
    d->ops->close(d->handle);
    (void)pthread_mutex_destroy(&d->lock);
    (void)pthread_mutex_destroy(&d->gate.lock);
    (void)pthread_cond_destroy(&d->gate.changed);
    free(d);
}

/* The draw's step lies where host and device both read it;
 * a device without pinned memory reads the host's. */
static void device_step_take(chk_node *n)
{
    device_space *d = space_of(n);

    n->step = &n->own_step;
    (void)pthread_mutex_lock(&d->lock);
    if (d->step_free_count)
        n->step = d->step_free[--d->step_free_count];
    else if (d->steps && d->step_next < STEPS_BYTES / sizeof *d->steps)
        n->step = &d->steps[d->step_next++];
    (void)pthread_mutex_unlock(&d->lock);
}

static void device_step_give(chk_node *n)
{
    device_space *d = space_of(n);

    (void)pthread_mutex_lock(&d->lock);
    if (n->step && n->step != &n->own_step)
        d->step_free[d->step_free_count++] = n->step;
    (void)pthread_mutex_unlock(&d->lock);
    n->step = NULL;
}

static const chk_space_ops device_ops = {
    .memory = TN_MEMORY_DEVICE,
    .make = device_make,
    .drop = device_drop,
    .push = device_push,
    .pull = device_pull,
    .settle = device_settle,
    .run = device_run,
    .delay = device_delay,
    .step_take = device_step_take,
    .step_give = device_step_give,
    .lane = device_lane,
    .close = device_close,
};

const tn_device_ops *chk_device_table(chk_env *env, const char *type)
{
    return chk_capability(env, TN_KIND_DEVICE, type, NULL);
}

/* For the life of the process. A plugin that needs services of its host has no such user, nor one that
 * begins a thread for it: threads have to end with the instances of the cases. */
static void second_user(chk_lab *lab, const tn_device_ops *ops)
{
    static const tn_plugin *with;
    const tn_plugin *p = lab->plugin.descriptor;
    const uint32_t threads = chk_imports_threads();
    tn_device_handle *handle = NULL;
    void *self = NULL;
    tn_err err = {0};

    if (with == p)
        return;
    with = p;
    if (p->init && p->init(&chk_host_bare, &self, &err))
        return;
    if (ops->open(self, 0, &handle, &err) || chk_imports_threads() == threads)
        return;
    ops->close(handle);
    if (p->fini)
        p->fini(self);
}

chk_space *chk_space_device(chk_lab *lab, const tn_kernel *k, const tn_kernel_table *table)
{
    tn_device_info info = {.struct_size = (uint32_t)TN_END(tn_device_info, alignment)};
    device_space *d = calloc(1, sizeof *d);
    tn_err err = {0};
    int32_t count = 0;

    chk_fail_if(lab->env, !d, "kit", "out of memory");
    d->space.ops = &device_ops;
    d->env = lab->env;
    d->self = lab->plugin.self;
    d->ops = chk_device_table(lab->env, k->device);
    d->table = table;
    if (d->ops->count(d->self, &count, &err) == TN_E_DEVICE && *err.message)
        chk_skip(lab->env, "%s", err.message);
    must(d, "D-count", "count", d->ops->count(d->self, &count, &err), &err);
    if (count < 1)
        chk_skip(lab->env, "no device of type %s is here", k->device);
    must(d, "D-count", "open", d->ops->open(d->self, 0, &d->handle, &err), &err);
    must(d, "D-info", "info", d->ops->info(d->handle, &info, &err), &err);
    second_user(lab, d->ops);
    d->staging[0].data = pinned_take(d, STAGING_BYTES + STEPS_BYTES);
    d->steps = d->staging[0].data ? (uint64_t *)(void *)(d->staging[0].data + STAGING_BYTES) : NULL;
    d->align = info.alignment < 64 ? 64 : info.alignment;
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_mutex_init(&d->gate.lock, NULL);
    chk_condition_init(&d->gate.changed);
    return &d->space;
}
