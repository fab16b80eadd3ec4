/*
 * Kernels lie in files beside the plugin, one for each family: cuda/FAMILY.fatbin. A file is read when a
 * device first launches one of its kernels, and stays with the device.
 */
#include "launch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS TNCUDA_THREADS
#define BLOCKS_EACH 32 /* blocks of a grid for each unit: the rest is strided over */
#define FILE_BYTES_MAX (64 << 20)
#define BUCKETS 256u

typedef struct module {
    struct module *next;
    tncuda_module handle;
    char family[TNCUDA_NAME_BYTES];
} module;

typedef struct function {
    struct function *next; /* of the bucket */
    tncuda_function handle;
    char name[TNCUDA_NAME_BYTES];
} function;

struct tncuda_kernels {
    pthread_mutex_t lock;
    module *modules;
    function *buckets[BUCKETS];
    int32_t units;
};

/* ---- plans --------------------------------------------------------------------------------------------- */

typedef struct state_head {
    const tncuda_plugin *plugin;
    tncuda_owned *owned;
} state_head; /* what follows is aligned to 16 */

tn_status tncuda_state(void *plugin, const tn_node *node, tn_plan *plan, uint64_t bytes, tn_err *err)
{
    state_head *h = tncuda_new(plugin, sizeof *h + bytes);

    (void)node;
    if (!h)
        return tncuda_nomem(err, "a plan");
    h->plugin = plugin;
    plan->state = h + 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT | TN_PLAN_CAPTURABLE;
    plan->threads = 1;
    return TN_OK;
}

tn_status tncuda_plain_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tncuda_state(plugin, node, plan, 0, err);
}

void tncuda_release(tn_plan *plan)
{
    state_head *h = plan->state ? (state_head *)plan->state - 1 : NULL;

    for (tncuda_owned *o = h ? h->owned : NULL, *next; o; o = next) {
        next = o->next;
        o->free(o);
    }
    if (h)
        tncuda_delete(h->plugin, h);
    plan->state = NULL;
}

void tncuda_own(tn_plan *plan, tncuda_owned *what)
{
    state_head *h = (state_head *)plan->state - 1;

    what->next = h->owned;
    h->owned = what;
}

tncuda_owned *tncuda_owned_of(const tn_plan *plan)
{
    return ((const state_head *)plan->state - 1)->owned;
}

/* ---- files --------------------------------------------------------------------------------------------- */

static tn_status path_of(const char *family, char *out, size_t bytes, tn_err *err)
{
    Dl_info info;
    const char *slash;

    if (!dladdr((const void *)(uintptr_t)&tncuda_device_ops, &info) || !info.dli_fname ||
        !(slash = strrchr(info.dli_fname, '/')) ||
        snprintf(out, bytes, "%.*s/cuda/%s.fatbin", (int)(slash - info.dli_fname), info.dli_fname, family) >=
            (int)bytes)
        return tn_fail(err, TN_E_IO, "the folder of the plugin cuda is not known");
    return TN_OK;
}

static tn_status file_read(const tncuda_plugin *p, const char *path, void **out, tn_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat s;
    ssize_t got = -1;
    char *data = NULL;

    if (fd < 0 || fstat(fd, &s) || s.st_size < 16 || s.st_size > FILE_BYTES_MAX) {
        const int failure = errno;

        if (fd >= 0)
            (void)close(fd);
        return tn_failf(err, TN_E_IO, "%s, kernels for GPUs, cannot be read: %s; install the plugin anew",
                        path, fd < 0 ? strerror(failure) : "its size cannot be right");
    }
    if ((data = tncuda_new(p, (uint64_t)s.st_size + 1)))
        got = read(fd, data, (size_t)s.st_size);
    (void)close(fd);
    if (data && got == s.st_size) {
        *out = data;
        return TN_OK;
    }
    tncuda_delete(p, data);
    return data ? tn_failf(err, TN_E_IO, "%s was not read as a whole", path) : tncuda_nomem(err, "kernels");
}

/* `given`: the family's machine code; NULL: its file's. */
static tn_status module_need_locked(tn_device_handle *d, const char *family, const void *given,
                                    tncuda_module *out, tn_err *err)
{
    struct tncuda_kernels *k = d->kernels;
    char path[4096];
    void *image = NULL;
    module *m = k->modules;
    tn_status st;

    while (m && strcmp(m->family, family) != 0)
        m = m->next;
    if (m) {
        *out = m->handle;
        return TN_OK;
    }
    (void)snprintf(path, sizeof path, "%s", family);
    if (!given &&
        ((st = path_of(family, path, sizeof path, err)) || (st = file_read(d->plugin, path, &image, err))))
        return st;
    if (!(m = tncuda_new(d->plugin, sizeof *m)))
        st = tncuda_nomem(err, "kernels");
    else
        st = tncuda_check(d, d->driver->module_load(&m->handle, given ? given : image), path, err);
    tncuda_delete(d->plugin, image);
    if (st) {
        tncuda_delete(d->plugin, m);
        return st;
    }
    (void)snprintf(m->family, sizeof m->family, "%s", family);
    m->next = k->modules;
    k->modules = m;
    *out = m->handle;
    return TN_OK;
}

/* ---- functions ----------------------------------------------------------------------------------------- */

static uint32_t bucket_of(const char *name)
{
    uint32_t h = 2166136261u;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h % BUCKETS;
}

static tn_status function_make_locked(tn_device_handle *d, const char *family, const char *name,
                                      const void *image, function **out, tn_err *err)
{
    function *f;
    tncuda_module m;
    char what[128];
    tn_status st = module_need_locked(d, family, image, &m, err);

    if (st)
        return st;
    if (!(f = tncuda_new(d->plugin, sizeof *f)))
        return tncuda_nomem(err, "a kernel");
    (void)snprintf(what, sizeof what, "kernel %s of family %s: cuModuleGetFunction", name, family);
    if ((st = tncuda_check(d, d->driver->module_function(&f->handle, m, name), what, err))) {
        tncuda_delete(d->plugin, f);
        return st;
    }
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    f->next = d->kernels->buckets[bucket_of(name)];
    d->kernels->buckets[bucket_of(name)] = f;
    *out = f;
    return TN_OK;
}

static tn_status kernels_need(tn_device_handle *d, tn_err *err)
{
    struct tncuda_kernels *made = NULL;
    tn_status st = TN_OK;

    pthread_mutex_lock(&d->lock);
    if (!d->kernels && !(made = tncuda_new(d->plugin, sizeof *made)))
        st = tncuda_nomem(err, "kernels");
    if (made) {
        pthread_mutex_init(&made->lock, NULL);
        made->units = 1;
        d->kernels = made;
    }
    pthread_mutex_unlock(&d->lock);
    if (made)
        (void)d->driver->device_attribute(&made->units, TNCUDA_ATTRIBUTE_UNITS, d->ordinal);
    return st;
}

static function *function_find_locked(const struct tncuda_kernels *k, const char *name)
{
    function *f = k->buckets[bucket_of(name)];

    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}

/* Of a device that has launched kernels; NULL: this one not yet. */
static tncuda_function function_known(tn_device_handle *d, const char *name)
{
    const function *f;

    if (!d->kernels)
        return NULL;
    pthread_mutex_lock(&d->kernels->lock);
    f = function_find_locked(d->kernels, name);
    pthread_mutex_unlock(&d->kernels->lock);
    return f ? f->handle : NULL;
}

/* In the context. */
static tn_status function_need(tn_device_handle *d, const char *family, const char *name, const void *image,
                               tncuda_function *out, tn_err *err)
{
    function *f;
    tn_status st = kernels_need(d, err);

    if (st)
        return st;
    pthread_mutex_lock(&d->kernels->lock);
    f = function_find_locked(d->kernels, name);
    if (!f)
        st = function_make_locked(d, family, name, image, &f, err);
    pthread_mutex_unlock(&d->kernels->lock);
    if (!st)
        *out = f->handle;
    return st;
}

void tncuda_modules_drop(tn_device_handle *device)
{
    struct tncuda_kernels *k = device->kernels;
    const bool works = k && tncuda_enter_end(device);

    if (!k)
        return;
    for (module *m = k->modules, *next; m; m = next) {
        next = m->next;
        if (works)
            (void)device->driver->module_unload(m->handle);
        tncuda_delete(device->plugin, m);
    }
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (function *f = k->buckets[i], *next; f; f = next) {
            next = f->next;
            tncuda_delete(device->plugin, f);
        }
    if (works)
        tncuda_leave(device);
    pthread_mutex_destroy(&k->lock);
    tncuda_delete(device->plugin, k);
    device->kernels = NULL;
}

/* ---- launches ------------------------------------------------------------------------------------------ */

static tn_status launch_locked(tn_stream *s, tncuda_function f, int64_t blocks, const char *name,
                               const void *args, uint32_t bytes, tn_err *err)
{
    tn_device_handle *d = s->device;
    void *params[] = {(void *)(uintptr_t)args};
    char what[96];
    tn_status st = tncuda_stream_failed(s, err);
    tncuda_result result;

    if (st || tncuda_graph_compared(s, f, (uint32_t)blocks, args, f ? bytes : 0))
        return st;
    if ((st = tncuda_work_locked(s, err)))
        return st;
    if ((result = d->driver->launch(f, (uint32_t)blocks, 1, 1, THREADS, 1, 1, 0, s->handle, params, NULL))) {
        (void)snprintf(what, sizeof what, "kernel %s, stream %u: cuLaunchKernel", name, (unsigned)s->number);
        return tncuda_check(d, result, what, err);
    }
    tncuda_count(&d->count.launches);
    return tncuda_graph_note(s, f, (uint32_t)blocks, args, bytes, err);
}

static tn_status launch_image(const tn_exec *x, const char *family, const char *name, const void *image,
                              int64_t blocks, bool strided, const void *args, uint32_t bytes, tn_err *err)
{
    tn_stream *s = (tn_stream *)(uintptr_t)x->stream;
    tncuda_function f = NULL;
    bool driven;
    tn_status st = TN_OK;

    if (!s)
        return tn_fail(err, TN_E_INTERNAL, "a kernel of a GPU without a stream");
    driven = !tncuda_graph_compares(s);
    if (driven && (st = tncuda_enter(s->device, err)))
        return st;
    if (!driven)
        f = function_known(s->device, name); /* NULL: it is none of the graph's */
    else
        st = function_need(s->device, family, name, image, &f, err);
    if (!st) {
        const int64_t most = strided && f ? (int64_t)s->device->kernels->units * BLOCKS_EACH : INT32_MAX;

        pthread_mutex_lock(&s->lock);
        st = launch_locked(s, f, blocks < most ? blocks : most, name, args, bytes, err);
        pthread_mutex_unlock(&s->lock);
    }
    if (driven)
        tncuda_leave(s->device);
    return st;
}

static tn_status launch(const tn_exec *x, const char *family, const char *name, int64_t blocks, bool strided,
                        const void *args, uint32_t bytes, tn_err *err)
{
    return launch_image(x, family, name, NULL, blocks, strided, args, bytes, err);
}

tn_status tncuda_launch_image(const tn_exec *x, const char *name, const void *image, int64_t count,
                              const void *args, uint32_t bytes, tn_err *err)
{
    return count > 0 ? launch_image(x, name, name, image, (count - 1) / THREADS + 1, true, args, bytes, err)
                     : TN_OK;
}

tn_status tncuda_image_load(const tn_exec *x, const char *name, const void *image, tn_err *err)
{
    tn_device_handle *d = x->stream ? ((tn_stream *)(uintptr_t)x->stream)->device : NULL;
    tncuda_function f;
    tn_status st;

    if (!d)
        return tn_fail(err, TN_E_INTERNAL, "a kernel of a GPU without a stream");
    if ((st = tncuda_enter(d, err)))
        return st;
    st = function_need(d, name, name, image, &f, err);
    tncuda_leave(d);
    return st;
}

tn_status tncuda_launch_(const tn_exec *x, const char *family, const char *name, int64_t count,
                         const void *args, uint32_t bytes, tn_err *err)
{
    return count > 0 ? launch(x, family, name, (count - 1) / THREADS + 1, true, args, bytes, err) : TN_OK;
}

tn_status tncuda_launch_blocks_(const tn_exec *x, const char *family, const char *name, int64_t blocks,
                                const void *args, uint32_t bytes, tn_err *err)
{
    return blocks > 0 ? launch(x, family, name, blocks, false, args, bytes, err) : TN_OK;
}

tn_status tncuda_launch_sums_(const tn_exec *x, const char *family, const char *name, int64_t count,
                              int64_t each, const void *args, uint32_t bytes, tn_err *err)
{
    char few[TNCUDA_NAME_BYTES];

    if (each >= THREADS)
        return tncuda_launch_blocks_(x, family, name, tnb_least(count, 65535), args, bytes, err);
    (void)snprintf(few, sizeof few, "%s_short", name);
    return tncuda_launch_(x, family, few, count, args, bytes, err);
}

/* ---- libraries ----------------------------------------------------------------------------------------- */

static tn_status library_locked(tn_stream *s, tncuda_library_fn call, const void *state, const void *args,
                                uint32_t bytes, tn_err *err)
{
    uint64_t before, behind;
    tn_status st = tncuda_stream_failed(s, err);

    if (st || tncuda_graph_compared(s, (tncuda_function)(uintptr_t)state, 0, args, bytes) ||
        (st = tncuda_graph_nodes(s, &before, err)))
        return st;
    if ((st = tncuda_work_locked(s, err)) || (st = call(state, args, s->handle, err)) ||
        (st = tncuda_graph_nodes(s, &behind, err)))
        return st;
    tncuda_count(&s->device->count.launches);
    return tncuda_graph_note_library(s, state, behind - before, args, bytes, err);
}

tn_status tncuda_library_call(const tn_exec *x, tncuda_library_fn call, const void *state, const void *args,
                              uint32_t bytes, tn_err *err)
{
    tn_stream *s = (tn_stream *)(uintptr_t)x->stream;
    bool driven;
    tn_status st;

    if (!s)
        return tn_fail(err, TN_E_INTERNAL, "a call of a library without a stream");
    driven = !tncuda_graph_compares(s);
    if (driven && (st = tncuda_enter(s->device, err)))
        return st;
    pthread_mutex_lock(&s->lock);
    st = library_locked(s, call, state, args, bytes, err);
    pthread_mutex_unlock(&s->lock);
    if (driven)
        tncuda_leave(s->device);
    return st;
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

void tncuda_call_arrays(const tn_exec *x, uint32_t in_count, uint32_t out_count, tncuda_call_args *args)
{
    for (uint32_t k = 0; k < in_count; k++)
        args->in[k] = (tncuda_array){x->in[k]->data, x->in[k]->dtype, TN_MODE_NONE};
    for (uint32_t k = 0; k < out_count; k++)
        args->out[k] = (tncuda_array){x->out[k]->data, x->out[k]->dtype, x->modes[k]};
    args->room = x->workspace;
}

void tncuda_call_rows(const tn_tensor *t, int32_t first, int32_t end, tncuda_call_args *args)
{
    end = end < t->ndim ? end : t->ndim;
    first = first < 0 ? 0 : first < end ? first : end;
    args->outer = tnb_dims(t, 0, first);
    args->size = tnb_dims(t, first, end);
    args->inner = tnb_dims(t, end, t->ndim);
}

int64_t tncuda_call_numbers(const tn_value *attrs, uint32_t index, int64_t at, tncuda_call_args *args)
{
    const tn_floats *f = (const tn_floats *)tn_value_pointer(attrs[index]);

    for (int64_t k = 0; k < f->count && at + k < TNCUDA_CALL_NUMBERS; k++)
        args->f[at + k] = f->item[k];
    return f->count;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

uint64_t tncuda_sums_bytes(const tn_tensor *t)
{
    return tncuda_is_short(t->dtype) ? ((uint64_t)tn_tensor_count(t) * sizeof(float) + 15) & ~(uint64_t)15
                                     : 0;
}

void *tncuda_sums(const tn_exec *x, uint32_t o, uint64_t *at)
{
    char *place = (char *)x->workspace + *at;

    if (!tncuda_is_short(x->out[o]->dtype))
        return x->out[o]->data;
    *at += tncuda_sums_bytes(x->out[o]);
    return place;
}

tn_status tncuda_sums_store(const tn_exec *x, uint32_t o, void *sums, tn_err *err)
{
    tn_tensor wide = *x->out[o];

    if (sums == wide.data || x->modes[o] == TN_MODE_NONE)
        return TN_OK;
    wide.data = sums;
    wide.dtype = TN_F32;
    return tncuda_cast(x, &wide, x->out[o], false, err);
}
