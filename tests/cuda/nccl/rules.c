/*
 * The functions of NCCL, and what they refuse. The guide's words stand at each rule; "guide" is NVIDIA's
 * "NCCL User Guide" 2.28, by section, "nccl.h" that header's own comments.
 */
#include "double.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAGIC 0x6e63636cu
#define COMMS 8u

static _Thread_local char last[200];
static _Thread_local struct {
    uint32_t depth, count;
    struct ncclComm *comms[COMMS];
} group;

static struct {
    pthread_once_t once;
    CUresult (*function)(CUstream stream, void (*fn)(void *arg), void *arg);
    CUresult (*device)(CUdevice *out);
    CUresult (*pointer)(void *out, int attribute, CUdeviceptr data);
} driver = {.once = PTHREAD_ONCE_INIT};

ncclResult_t double_refuse(ncclResult_t result, const char *rule)
{
    (void)snprintf(last, sizeof last, "%s", rule);
    (void)fprintf(stderr, "nccl double: %s\n", rule);
    return result;
}

static void driver_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol;
    CUresult (*find)(const char *name, void **out, int version, cuuint64_t flags, int *status);
    const struct {
        const char *name;
        void *member;
    } rows[] = {{"cuLaunchHostFunc", (void *)&driver.function},
                {"cuCtxGetDevice", (void *)&driver.device},
                {"cuPointerGetAttribute", (void *)&driver.pointer}};

    if (!library || !(symbol = dlsym(library, "cuGetProcAddress_v2")))
        abort();
    memcpy((void *)&find, &symbol, sizeof symbol);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (find(rows[i].name, &symbol, 12000, 0, NULL))
            abort();
        else
            memcpy(rows[i].member, &symbol, sizeof symbol);
}

/* Whether TNNCCL_FAULT has `what` of this rank at operation `op`; `*more`: the number behind it. */
static bool fault(const char *what, int rank, uint64_t op, uint32_t *more)
{
    const char *at = getenv("TNNCCL_FAULT");

    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t length = strlen(what);
        char *end;

        if (strncmp(at, what, length) != 0 || at[length] != ':' || strtol(at + length + 1, &end, 10) != rank)
            continue;
        if (*end == ':' && strtoull(end + 1, &end, 10) != op)
            continue;
        if (more)
            *more = *end == ':' ? (uint32_t)strtoul(end + 1, NULL, 10) : 0;
        return true;
    }
    return false;
}

/* ---- numbers and texts --------------------------------------------------------------------------------- */

EXPORT ncclResult_t ncclGetVersion(int *version)
{
    const char *text = getenv("TNNCCL_VERSION");

    if (!version)
        return ncclInvalidArgument;
    *version = text ? atoi(text) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};

    return result >= 0 && (size_t)result < sizeof texts / sizeof *texts ? texts[result]
                                                                        : "unknown result code";
}

EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last;
}

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    uint64_t number;

    (void)pthread_once(&driver.once, driver_open);
    memset(id, 0, sizeof *id);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return ncclSystemError;
    (void)snprintf(id->internal, sizeof id->internal, "/dev/shm/tenon-nccl-double-%016llx",
                   (unsigned long long)number);
    return ncclSuccess;
}

/* ---- communicators ------------------------------------------------------------------------------------- */

static bool room_open(struct ncclComm *c)
{
    const int fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)sizeof *c->room))
        return false;
    c->room = mmap(NULL, sizeof *c->room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return c->room != MAP_FAILED;
}

static ncclResult_t config_check(const ncclConfig_t *config)
{
    if (!config || config->size != sizeof *config || config->magic != 0xcafebeef)
        return double_refuse(ncclInvalidArgument,
                             "nccl.h, NCCL_CONFIG_INITIALIZER: a configuration without it is an error");
    return config->blocking == 0
               ? ncclSuccess
               : double_refuse(ncclInvalidUsage,
                               "the double knows communicators that do not block (config.blocking 0)");
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t *config)
{
    static const char prefix[] = "/dev/shm/tenon-nccl-double-";
    ncclResult_t result = config_check(config);
    struct ncclComm *c;

    (void)pthread_once(&driver.once, driver_open);
    if (result)
        return result;
    if (!comm || ranks < 1 || ranks > DOUBLE_RANKS || rank < 0 || rank >= ranks)
        return double_refuse(ncclInvalidArgument,
                             "guide, ncclCommInitRank: rank must be between 0 and nranks-1");
    if (memchr(id.internal, '\0', sizeof c->path) == NULL ||
        strncmp(id.internal, prefix, sizeof prefix - 1) != 0)
        return double_refuse(ncclInvalidArgument,
                             "guide, Creating a Communicator: the id is ncclGetUniqueId's");
    if (!(c = calloc(1, sizeof *c)))
        return ncclSystemError;
    *c = (struct ncclComm){
        .magic = MAGIC, .rank = rank, .ranks = ranks, .joining = true, .state = ncclInProgress};
    (void)snprintf(c->path, sizeof c->path, "%.*s", (int)sizeof c->path - 1, id.internal);
    if (driver.device(&c->device)) {
        free(c);
        return double_refuse(ncclUnhandledCudaError,
                             "nccl.h, ncclCommInitRank: the CUDA device has to be set before");
    }
    if (!room_open(c)) {
        free(c);
        return ncclSystemError;
    }
    c->hangs = fault("init", rank, 0, NULL);
    atomic_store(&c->room->places[rank].device, c->device);
    if (atomic_exchange(&c->room->places[rank].joined, 1u) == 0)
        (void)atomic_fetch_add(&c->room->ranks, 1u);
    c->polls = (uint32_t)(double_random(c) % 4);
    *comm = c;
    return ncclInProgress;
}

/* All are here: nobody needs the name any more. */
static void joining_move(struct ncclComm *c)
{
    if (c->hangs || atomic_load(&c->room->ranks) < (uint32_t)c->ranks)
        return;
    c->joining = false;
    (void)unlink(c->path);
    c->state = ncclSuccess;
    for (int r = 0; r < c->ranks; r++)
        for (int k = 0; k < r; k++)
            if (atomic_load(&c->room->places[r].device) == atomic_load(&c->room->places[k].device))
                c->state =
                    double_refuse(ncclInvalidUsage, "guide, Creating a Communicator: one CUDA device as "
                                                    "several ranks of a communicator is not supported");
}

static void pending_launch(struct ncclComm *c)
{
    double_work *w = c->pending;

    c->pending = NULL;
    c->state = ncclSuccess;
    if (!w)
        return;
    (void)atomic_fetch_add(&c->under_way, 1u);
    if (driver.function(w->stream, double_work_run, w)) {
        (void)atomic_fetch_sub(&c->under_way, 1u);
        free(w);
        c->state = ncclUnhandledCudaError;
    }
}

static void finalize_move(struct ncclComm *c)
{
    for (int r = 0; r < c->ranks; r++)
        if (!atomic_load(&c->room->places[r].finalized))
            return;
    if (!atomic_load(&c->under_way))
        c->state = ncclSuccess;
}

static bool comm_valid(ncclComm_t c)
{
    if (c && c->magic == MAGIC)
        return true;
    (void)double_refuse(ncclInvalidArgument, "guide, ncclCommDestroy: comm must not be used after it");
    return false;
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *out)
{
    if (!comm_valid(c) || !out)
        return ncclInvalidArgument;
    if (c->state == ncclInProgress) {
        if (c->polls)
            c->polls--;
        else if (c->joining)
            joining_move(c);
        else if (c->finalizing)
            finalize_move(c);
        else if (!c->hangs)
            pending_launch(c);
    }
    *out = c->state;
    return ncclSuccess;
}

static void comm_free(struct ncclComm *c)
{
    if (c->joining)
        (void)unlink(c->path);
    (void)munmap(c->room, sizeof *c->room);
    free(c->pending);
    free(c->work);
    c->magic = 0;
    free(c);
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    if (!comm_valid(c))
        return ncclInvalidArgument;
    if (c->finalizing || c->state == ncclInProgress)
        return double_refuse(ncclInvalidUsage,
                             "guide, ncclCommFinalize: called once, on a communicator whose state "
                             "is not ncclInProgress");
    c->finalizing = true;
    c->state = ncclInProgress;
    atomic_store(&c->room->places[c->rank].finalized, 1u);
    return ncclInProgress;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    if (!comm_valid(c))
        return ncclInvalidArgument;
    if (!c->finalizing || c->state != ncclSuccess)
        return double_refuse(ncclInvalidUsage,
                             "guide, ncclCommDestroy: it frees a communicator that ncclCommFinalize "
                             "has made quiescent");
    comm_free(c);
    return ncclSuccess;
}

/* Kernels end, then all is freed. */
EXPORT ncclResult_t ncclCommAbort(ncclComm_t c)
{
    if (!comm_valid(c))
        return ncclInvalidArgument;
    while (fault("abort", c->rank, 0, NULL))
        (void)pause();
    atomic_store(&c->aborted, true);
    while (atomic_load(&c->under_way))
        (void)usleep(100);
    comm_free(c);
    return ncclSuccess;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static bool on_device(const void *data)
{
    CUmemorytype type;

    return data && !driver.pointer(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)data) &&
           type == CU_MEMORYTYPE_DEVICE;
}

/* What all operations ask for. */
static ncclResult_t call_check(ncclComm_t c, const void *in, const void *out, ncclDataType_t type)
{
    CUdevice now;

    if (!comm_valid(c))
        return ncclInvalidArgument;
    if (c->state != ncclSuccess)
        return double_refuse(ncclInvalidUsage,
                             "guide, Fault Tolerance: while the state is ncclInProgress no further "
                             "function may be called on the communicator");
    if (driver.device(&now) || now != c->device)
        return double_refuse(ncclInvalidUsage, "guide, Using NCCL with CUDA streams: the stream is of the "
                                               "communicator's device, which is current");
    if ((int)type < 0 || type > ncclBfloat16)
        return double_refuse(ncclInvalidArgument, "guide, ncclDataType_t: no such type");
    if (!on_device(in) || !on_device(out))
        return double_refuse(ncclInvalidArgument, "guide, CUDA Pointers: buffers are memory of the device");
    return ncclSuccess;
}

static void misbehave(struct ncclComm *c, double_work *w)
{
    if (fault("die", c->rank, c->ops, NULL))
        _exit(9);
    if (fault("stop", c->rank, c->ops, NULL))
        (void)raise(SIGSTOP);
    c->hangs = fault("hang", c->rank, c->ops, NULL);
    w->stuck = fault("stuck", c->rank, c->ops, NULL);
    (void)fault("late", c->rank, c->ops, &w->late_ms);
    if (fault("error", c->rank, c->ops, NULL))
        c->state = ncclRemoteError;
}

/* It is launched when the caller sees the state ncclSuccess: what it put on the stream before comes first. */
static ncclResult_t submit(struct ncclComm *c, double_work *w)
{
    w->comm = c;
    w->op.number = ++c->ops;
    c->pending = w;
    c->state = ncclInProgress;
    c->polls = (uint32_t)(double_random(c) % 4);
    misbehave(c, w);
    return c->state;
}

static ncclResult_t single(ncclComm_t c, const double_op *op, const void *in, void *out, CUstream stream)
{
    double_work *w;

    if (group.depth)
        return double_refuse(ncclInvalidUsage, "the double knows groups of ncclSend and ncclRecv alone");
    if (!(w = calloc(1, sizeof *w)))
        return ncclSystemError;
    w->op = *op;
    w->in[0] = in;
    w->out[0] = out;
    w->stream = stream;
    return submit(c, w);
}

EXPORT ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    const double_op o = {.kind = DOUBLE_SUM, .dtype = type, .count = count};
    const ncclResult_t result = call_check(c, in, out, type);

    if (!result && op != ncclSum)
        return double_refuse(ncclInvalidArgument, "the double knows ncclSum");
    return result ? result : single(c, &o, in, out, (CUstream)stream);
}

EXPORT ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t c,
                                  cudaStream_t stream)
{
    const double_op o = {.kind = DOUBLE_GATHER, .dtype = type, .count = count};
    const ncclResult_t result = call_check(c, in, out, type);

    if (!result && in == out && c->rank)
        return double_refuse(ncclInvalidArgument,
                             "guide, In-place Operations: of an all-gather sendbuff is recvbuff + "
                             "rank * sendcount");
    return result ? result : single(c, &o, in, out, (CUstream)stream);
}

EXPORT ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                                  ncclComm_t c, cudaStream_t stream)
{
    const double_op o = {.kind = DOUBLE_BROADCAST, .dtype = type, .count = count, .root = (uint32_t)root};
    const ncclResult_t result = call_check(c, in, out, type);

    if (!result && (root < 0 || root >= c->ranks))
        return double_refuse(ncclInvalidArgument, "guide, ncclBroadcast: root is a rank");
    return result ? result : single(c, &o, in, out, (CUstream)stream);
}

/* ---- groups -------------------------------------------------------------------------------------------- */

EXPORT ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

/* The exchange that the open group makes of the communicator's sends and receives. */
static double_work *exchange_of(ncclComm_t c, size_t bytes, CUstream stream)
{
    if (c->work)
        return c->work->op.count == bytes && c->work->stream == stream ? c->work : NULL;
    if (group.count == COMMS || !(c->work = calloc(1, sizeof *c->work)))
        return NULL;
    c->work->op = (double_op){.kind = DOUBLE_EXCHANGE, .dtype = ncclUint8, .count = bytes};
    c->work->stream = stream;
    group.comms[group.count++] = c;
    return c->work;
}

static ncclResult_t half(ncclComm_t c, const void *in, void *out, size_t bytes, ncclDataType_t type, int peer,
                         CUstream stream)
{
    const ncclResult_t result = call_check(c, in ? in : out, in ? in : out, type);
    double_work *w;

    if (result)
        return result;
    if (peer < 0 || peer >= c->ranks)
        return double_refuse(ncclInvalidArgument, "guide, ncclSend: peer is a rank");
    if (!group.depth)
        return double_refuse(ncclInvalidUsage,
                             "guide, Point-to-point communication: a send and the receive that waits "
                             "for it stand in a group");
    if (type != ncclUint8 || !(w = exchange_of(c, bytes, stream)) ||
        (in ? w->in[peer] != NULL : w->out[peer] != NULL))
        return double_refuse(ncclInvalidUsage,
                             "the double knows groups in which each rank sends as many bytes to each");
    if (in) {
        w->in[peer] = in;
        w->sends++;
    } else {
        w->out[peer] = out;
        w->recvs++;
    }
    return ncclSuccess;
}

EXPORT ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                             cudaStream_t stream)
{
    return half(c, in, NULL, count, type, peer, (CUstream)stream);
}

EXPORT ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                             cudaStream_t stream)
{
    return half(c, NULL, out, count, type, peer, (CUstream)stream);
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t result = ncclSuccess, one;

    if (!group.depth)
        return double_refuse(ncclInvalidUsage,
                             "guide, Group Calls: ncclGroupEnd ends what ncclGroupStart began");
    if (--group.depth)
        return ncclSuccess;
    for (uint32_t i = 0; i < group.count; i++) {
        struct ncclComm *c = group.comms[i];
        double_work *w = c->work;

        c->work = NULL;
        if (w->sends != (uint32_t)c->ranks || w->recvs != (uint32_t)c->ranks) {
            free(w);
            one = double_refuse(ncclInvalidUsage, "the double knows groups in which each rank sends to each");
        } else {
            one = submit(c, w);
        }
        result = one != ncclSuccess ? one : result;
    }
    group.count = 0;
    return result;
}
