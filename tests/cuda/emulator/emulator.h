/*
 * A double of the CUDA driver, for tests: libcuda.so.1 with host memory, streams that are late and out of
 * order by a seed, and the kernels of plugins/cuda compiled for the host. Never installed; it tells nothing
 * of speed.
 *
 * driver.c: settings, faults, devices, memory · queue.c: streams, events · graph.c: capture and graphs ·
 * launch.c: modules and kernels · fiber.c: threads of a block.
 *
 *     TNEMU_SEED     of delays and orders, default 0
 *     TNEMU_DELAY_US longest delay of an item, default 50
 *     TNEMU_DEVICES  default 2        TNEMU_MEMORY  bytes of each, default 2^34
 *     TNEMU_VERSION  of the driver, default 13000
 *     TNEMU_FAULT    "cuMemAlloc:3:2,kernel:5:719,edge:2": the third cuMemAlloc returns 2, the fifth kernel
 *                    ends its context with 719, the second wait that has work to wait for is left out,
 *                    and that work is late; "cuMemAlloc:3+:2": it and all behind it
 *     TNEMU_HOLD     a device that lags: a stream begins its first kernel once it has so many items,
 *                    or somebody waits for it; default 0
 *     TNEMU_COUNTS   a file: how often each of them was called, the blocks of memory that nobody freed, and
 *                    the most items that a stream had queued, written at the end
 *
 * What no driver would bear (a read of shared memory before a write, a barrier that not all threads reach)
 * ends the process with a line that begins "emulator:".
 */
#ifndef TNEMU_EMULATOR_H
#define TNEMU_EMULATOR_H

#include "driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define EMU_DEVICES_MAX 8

/* One number for each function of the driver. */
enum {
#define DRIVER(member, name, params) EMU_##member,
#include "driver.list"
#include "more.list"
#undef DRIVER
    EMU_FUNCTIONS,
    EMU_KERNEL = EMU_FUNCTIONS, /* one is carried out */
    EMU_EDGE,                   /* a wait for work that is not begun yet */
    EMU_CLOCKS
};

#define DRIVER(member, name, params) tncuda_result emu_##member params;
#include "driver.list"
#include "more.list"
#undef DRIVER

__attribute__((noreturn, format(printf, 1, 2))) void emu_defect(const char *format, ...);
void *emu_new(size_t bytes);                 /* zeroed; ends the process without memory */
uint64_t emu_random(uint64_t a, uint64_t b); /* of the seed and two numbers */
uint32_t emu_delay_us(void);
uint32_t emu_hold(void);
void emu_queued(uint64_t items); /* so many are in a stream now */

/* ---- driver.c ---------------------------------------------------------------------------------------- */

struct CUctx_st {
    int32_t device;
    uint32_t users;
    atomic_int failed;    /* a result that ended it; 0: none */
    pthread_mutex_t lock; /* of what follows */
    struct CUstream_st *streams;
    uint64_t used_bytes;
};

/* What a call gives before it does anything: a fault on demand, the end of the context, or 0. `context`: it
 * needs the current one. */
tncuda_result emu_enter(uint32_t function, tncuda_context *context);
/* Counts one of a kind; a result, if that one is to fail. */
tncuda_result emu_due(uint32_t clock);
tncuda_context emu_context_of(int32_t device);
void emu_context_fail(tncuda_context context, tncuda_result result);
/* 1: device memory, of `bytes` behind `at`; 2: pinned; 0: other memory; -1: it goes beyond its block. */
int32_t emu_memory_kind(tncuda_address at, size_t bytes);
extern _Thread_local bool emu_in_function; /* the thread is in a function of the user */

/* ---- queue.c ----------------------------------------------------------------------------------------- */

enum { ITEM_FUNCTION, ITEM_CALLBACK, ITEM_COPY, ITEM_KERNEL, ITEM_RECORD, ITEM_WAIT };

typedef struct emu_point {
    atomic_uint refs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached;
    struct CUstream_st *stream; /* where it was recorded; there while it is not reached */
    uint64_t work;              /* the last item of that stream before it that does something */
} emu_point;

struct emu_kernel;

/* What a stream does; also a node of a graph. */
typedef struct emu_item {
    struct emu_item *next;
    uint32_t kind, delay_us;
    void (*fn)(void *arg);
    void (*callback)(tncuda_stream stream, tncuda_result status, void *arg);
    void *arg;
    tncuda_copy_node copy; /* one row */
    void *staged;          /* the source as it was when it was asked for; NULL: read when it is done */
    const struct emu_kernel *kernel;
    void *args; /* of the kernel: a copy */
    uint32_t grid[3], block[3];
    emu_point *point;
    struct CUevent_st *event; /* in a graph */
} emu_item;

struct CUevent_st {
    pthread_mutex_t lock;
    emu_point *point; /* NULL: never recorded */
};

struct CUstream_st {
    tncuda_context context;
    struct CUstream_st *next;
    uint64_t number, drawn;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    emu_item *first, **last;
    uint64_t submitted, done, work; /* items; the last one that does something */
    uint64_t begun;                 /* items, of which the last may still be under way */
    uint32_t held_us;               /* the next one is late by this */
    bool goes;                      /* it does not lag, or not any more */
    bool closing;
    struct CUgraph_st *capture; /* NULL: none */
    bool capture_broken;        /* by a call that no capture bears: it is there until the capture is ended */
    pthread_t thread;
};

/* Queues a copy of the item, or captures it. */
tncuda_result emu_submit(tncuda_stream stream, const emu_item *like);
void emu_queue(tncuda_stream stream, emu_item *first); /* a list, in one piece; takes it */
void emu_stream_drain(tncuda_stream stream);
emu_point *emu_point_create(void);
emu_point *emu_point_retain(emu_point *point);
void emu_point_release(emu_point *point);

/* ---- graph.c ----------------------------------------------------------------------------------------- */

struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    struct CUgraph_st *graph;
    uint32_t index;
    emu_item item;
};

struct CUgraph_st {
    struct CUgraphNode_st *first, **last, *newest;
    uint32_t count;
};

void emu_capture(struct CUgraph_st *graph, const emu_item *item);
/* A call that would wait for a stream that is captured: 900, and the capture is of no more use. 0: it is
 * not. */
tncuda_result emu_capture_breaks(tncuda_stream stream);

/* ---- launch.c ---------------------------------------------------------------------------------------- */

typedef struct emu_kernel {
    const char *name;
    void (*run)(const void *args); /* one thread */
    uint32_t args_bytes;
    uint32_t sync; /* 1: threads of a block meet at barriers and share memory */
} emu_kernel;

/* The limits of a launch: "CUDA Programming Guide", "Compute Capabilities". */
bool emu_grid_fits(const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes);
#define EMU_EXPORT __attribute__((visibility("default"))) /* for tests that run kernels without a driver */
EMU_EXPORT const emu_kernel *emu_kernel_find(const char *name);
/* All of a launch, on this thread. `seed` decides the order of blocks and threads. */
EMU_EXPORT void emu_kernel_run(const emu_kernel *kernel, const uint32_t grid[3], const uint32_t block[3],
                               const void *args, uint64_t seed);

/* ---- fiber.c ----------------------------------------------------------------------------------------- */

/* Runs one block of a kernel with barriers: `count` threads, begun in the order of `seed`. */
void emu_block_run(const emu_kernel *kernel, const void *args, uint32_t count, uint64_t seed);
void emu_block_end(void);             /* frees what the thread kept for it */
void emu_thread_set(uint32_t thread); /* launch.c: the indices of the thread that goes on */

#endif
