/*
 * The GPU of a rank: its primary context, which NCCL joins and plugin cuda shares, two streams, the plugin's
 * buffers, the kernel of ordered sums; and NCCL's communicator from its beginning to its end.
 *
 * No buffer is freed before the communicator closes: cuMemFree waits for the GPU, also for a collective that
 * hangs.
 */
#include "kv_nccl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../common/collective.h"

#define BLOCKS_MAX 1024 /* of a grid: the rest is strided over */
#define FILE_BYTES_MAX (64 << 20)
#define NAP_NS 200000u

struct tnnccl_aborter {
    const tnnccl_libraries *lib;
    ncclComm_t comm;
    CUcontext context;
    const tn_host *host;
    void *thread; /* of the host's service */
    atomic_bool ended;
};

bool tnnccl_enter(tn_communicator *c)
{
    return c->context && !c->lib->cuda.context_push(c->context);
}

void tnnccl_leave(tn_communicator *c)
{
    CUcontext popped;

    (void)c->lib->cuda.context_pop(&popped);
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

/* Kernels lie with those of plugin cuda, beside this one. */
static tn_status image_read(char **out, tn_err *err)
{
    static const char anchor = 0;
    char path[4096] = "";
    const char *slash;
    struct stat s;
    ssize_t got = -1;
    Dl_info info;
    int fd = -1;

    if (dladdr(&anchor, &info) && info.dli_fname && (slash = strrchr(info.dli_fname, '/')))
        (void)snprintf(path, sizeof path, "%.*s/cuda/collective.fatbin", (int)(slash - info.dli_fname),
                       info.dli_fname);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0 && !fstat(fd, &s) && s.st_size >= 16 &&
        s.st_size <= FILE_BYTES_MAX && (*out = malloc((size_t)s.st_size + 1)))
        got = read(fd, *out, (size_t)s.st_size);
    if (fd >= 0)
        (void)close(fd);
    if (got > 0 && got == s.st_size)
        return TN_OK;
    free(*out);
    *out = NULL;
    return tn_failf(err, TN_E_UNSUPPORTED, "%s, the kernel of sums, cannot be read: install the plugin cuda",
                    path);
}

static tn_status kernel_open(tn_communicator *c, tn_err *err)
{
    char *image = NULL;
    CUresult result;
    tn_status st = image_read(&image, err);

    if (st)
        return st;
    if ((result = c->lib->cuda.module_load(&c->module, image)) ||
        (result = c->lib->cuda.module_function(&c->add, c->module, TNB_COLLECTIVE_KERNEL)))
        st = tnnccl_driver_fail(c->lib, result, "the kernel of sums: cuModuleLoadData", err);
    free(image);
    return st;
}

tn_status tnnccl_sum_add(tn_communicator *c, const tnnccl_call *call, tn_err *err)
{
    const int64_t count = (int64_t)(call->share_bytes / tn_dtype_bytes(call->dtype));
    tnb_collective_args args = {call->shares->data, count, (int32_t)c->ranks, call->dtype};
    const int64_t blocks = (count - 1) / TNB_COLLECTIVE_THREADS + 1;
    void *params[] = {&args};
    const CUresult result = c->lib->cuda.launch(c->add, (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX),
                                                1, 1, TNB_COLLECTIVE_THREADS, 1, 1, 0, c->sums, params, NULL);

    return result ? tnnccl_driver_fail(c->lib, result, "the kernel of sums: cuLaunchKernel", err) : TN_OK;
}

/* ---- the device ---------------------------------------------------------------------------------------- */

static tn_status device_find(tn_communicator *c, int64_t wanted, uint64_t place, tn_err *err)
{
    int count = 0;
    CUresult result = c->lib->cuda.device_count(&count);

    if (!result && !count)
        return tn_fail(err, TN_E_DEVICE, "the driver finds no GPU");
    if (!result && wanted >= count)
        return tn_failf(err, TN_E_DEVICE, "plugin.kv-nccl.device is %lld, but there are %d GPUs",
                        (long long)wanted, count);
    if (!result)
        result = c->lib->cuda.device_get(&c->device,
                                         (int)(wanted >= 0 ? wanted : (int64_t)(place % (uint64_t)count)));
    return result ? tnnccl_driver_fail(c->lib, result, "cuDeviceGet", err) : TN_OK;
}

tn_status tnnccl_device_open(tn_communicator *c, int64_t wanted, uint64_t place, unsigned char uuid[16],
                             tn_err *err)
{
    CUuuid id;
    CUresult result;
    tn_status st = device_find(c, wanted, place, err);

    if (st)
        return st;
    if ((result = c->lib->cuda.device_uuid(&id, c->device)))
        return tnnccl_driver_fail(c->lib, result, "cuDeviceGetUuid", err);
    memcpy(uuid, id.bytes, sizeof id.bytes);
    if ((result = c->lib->cuda.context_retain(&c->context, c->device))) {
        c->context = NULL;
        return tnnccl_driver_fail(c->lib, result, "cuDevicePrimaryCtxRetain", err);
    }
    if (!tnnccl_enter(c))
        return tn_fail(err, TN_E_DEVICE, "the GPU's context cannot be used");
    if ((result = c->lib->cuda.stream_create(&c->copies, CU_STREAM_NON_BLOCKING, 0)) ||
        (result = c->lib->cuda.stream_create(&c->sums, CU_STREAM_NON_BLOCKING, 0)))
        st = tnnccl_driver_fail(c->lib, result, "cuStreamCreateWithPriority", err);
    else
        st = kernel_open(c, err);
    tnnccl_leave(c);
    return st;
}

void tnnccl_copies_end(tn_communicator *c)
{
    if (c->copies && tnnccl_enter(c)) {
        (void)c->lib->cuda.stream_wait(c->copies);
        tnnccl_leave(c);
    }
}

void tnnccl_device_close(tn_communicator *c, bool whole)
{
    if (whole && tnnccl_enter(c)) {
        if (c->sums)
            (void)c->lib->cuda.stream_destroy(c->sums);
        if (c->copies)
            (void)c->lib->cuda.stream_destroy(c->copies);
        for (tnnccl_buffer *b = c->buffers, *next; b; b = next) {
            next = b->next;
            (void)(b->pinned ? c->lib->cuda.host_free(b->data)
                             : c->lib->cuda.memory_free((CUdeviceptr)(uintptr_t)b->data));
            free(b);
        }
        if (c->module)
            (void)c->lib->cuda.module_unload(c->module);
        tnnccl_leave(c);
    }
    if (whole && c->context)
        (void)c->lib->cuda.context_release(c->device);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

tnnccl_buffer *tnnccl_buffer_take(tn_communicator *c, uint64_t bytes, bool pinned)
{
    tnnccl_buffer *best = NULL;
    uint64_t room = 4096;

    for (tnnccl_buffer *b = c->buffers; b; b = b->next)
        if (!b->taken && b->pinned == pinned && b->bytes >= bytes && (!best || b->bytes < best->bytes))
            best = b;
    if (!best) {
        while (room < bytes && room < 1u << 26)
            room *= 2;
        room = room < bytes ? bytes : room;
        if (!(best = calloc(1, sizeof *best)))
            return NULL;
        if (pinned ? c->lib->cuda.host_alloc(&best->data, room, CU_MEMHOSTALLOC_PORTABLE)
                   : c->lib->cuda.memory_alloc((CUdeviceptr *)(void *)&best->data, room)) {
            free(best);
            return NULL;
        }
        best->bytes = room;
        best->pinned = pinned;
        best->next = c->buffers;
        c->buffers = best;
    }
    best->taken = true;
    return best;
}

bool tnnccl_on_device(const tn_communicator *c, const void *data)
{
    CUmemorytype type = CU_MEMORYTYPE_HOST;

    return !c->lib->cuda.pointer(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)data) &&
           type == CU_MEMORYTYPE_DEVICE;
}

/* ---- NCCL's communicator ------------------------------------------------------------------------------- */

static bool state_is(tn_communicator *c, uint64_t end_ns, ncclResult_t *state)
{
    *state = ncclInProgress;
    while (!c->failed && !c->dead && c->lib->nccl.state(c->comm, state) == ncclSuccess &&
           *state == ncclInProgress && tnnccl_now() < end_ns) {
        tnnccl_wait(c, NAP_NS);
        tnnccl_listen_all(c);
    }
    return *state == ncclSuccess && !c->failed;
}

tn_status tnnccl_comm_open(tn_communicator *c, const char *id, uint64_t end_ns, tn_err *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    ncclResult_t result, state;

    memcpy(unique.internal, id, sizeof unique.internal);
    config.blocking = 0;
    if (!tnnccl_enter(c))
        return tn_fail(err, TN_E_DEVICE, "the GPU's context cannot be used");
    result = c->lib->nccl.init(&c->comm, (int)c->ranks, unique, (int)c->rank, &config);
    tnnccl_leave(c);
    if (result != ncclSuccess && result != ncclInProgress)
        return tn_failf(err, TN_E_DEVICE, "ncclCommInitRankConfig: %s: %.200s", c->lib->nccl.text(result),
                        c->lib->nccl.last_text(NULL));
    if (state_is(c, end_ns, &state))
        return TN_OK;
    if (c->failed)
        return tn_fail(err, c->failed, c->why);
    if (c->dead)
        return tn_failf(err, TN_E_PEER, "rank %u has died before all had come", c->dead_rank);
    if (state != ncclInProgress)
        return tn_failf(err, TN_E_DEVICE, "NCCL makes no communicator: %s: %.200s", c->lib->nccl.text(state),
                        c->lib->nccl.last_text(c->comm));
    return tn_failf(err, TN_E_TIMEOUT,
                    "NCCL links no communicator of %u ranks within %.3g s; NCCL_DEBUG=INFO of all ranks says "
                    "more",
                    c->ranks, (double)c->config.timeout_ns / 1e9);
}

bool tnnccl_comm_close(tn_communicator *c, uint64_t end_ns)
{
    ncclResult_t result = c->lib->nccl.finalize(c->comm), state;

    if ((result != ncclSuccess && result != ncclInProgress) || !state_is(c, end_ns, &state))
        return false;
    result = c->lib->nccl.destroy(c->comm);
    c->comm = NULL;
    return result == ncclSuccess || result == ncclInProgress;
}

static void aborter_run(void *arg)
{
    struct tnnccl_aborter *a = arg;
    CUcontext popped;

    if (!a->lib->cuda.context_push(a->context)) {
        (void)a->lib->nccl.abort(a->comm);
        (void)a->lib->cuda.context_pop(&popped);
    }
    atomic_store(&a->ended, true);
}

void tnnccl_comm_abort(tn_communicator *c)
{
    const tn_threads_service *threads = tn_host_service(c->host, TN_SERVICE_THREADS);
    struct tnnccl_aborter *a = c->comm && !c->aborter ? calloc(1, sizeof *a) : NULL;

    if (!a)
        return;
    *a = (struct tnnccl_aborter){.lib = c->lib, .comm = c->comm, .context = c->context, .host = c->host};
    c->aborter = a;
    if (!threads || !TN_OFFERS(threads, tn_threads_service, join) ||
        threads->create(c->host, "tenon-nccl", aborter_run, a, &a->thread)) {
        a->thread = NULL;
        aborter_run(a);
    }
}

bool tnnccl_comm_gone(tn_communicator *c, uint64_t end_ns)
{
    struct tnnccl_aborter *a = c->aborter;
    const tn_threads_service *threads = tn_host_service(c->host, TN_SERVICE_THREADS);
    const struct timespec nap = {.tv_nsec = NAP_NS}; /* nobody reads what comes over links now */

    if (!a)
        return !c->comm;
    while (!atomic_load(&a->ended) && tnnccl_now() < end_ns)
        (void)nanosleep(&nap, NULL);
    if (!atomic_load(&a->ended))
        return false; /* it stays with the thread that sticks */
    if (a->thread)
        threads->join(c->host, a->thread);
    free(a);
    c->aborter = NULL;
    c->comm = NULL;
    return true;
}
