/*
 * Shared by the files of the fake device.
 *
 * plugin.c: options, memory, threads of the plugin · device.c: the table, memory and statistics of a device ·
 * stream.c: queues and their workers · event.c: points in streams, and the driver thread that reports them ·
 * graph.c: recorded work.
 *
 * Locks, in this order: device -> event -> stream -> point -> driver queue. No foreign function is called
 * under one.
 */
#ifndef TNFAKE_FAKE_H
#define TNFAKE_FAKE_H

#include "tenon/plugin/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TNFAKE_STREAMS_MAX 64u    /* per device: each has a thread */
#define TNFAKE_QUEUE_MAX 1048576u /* items per stream: far above any engine's own limit */
#define TNFAKE_FAULTS_MAX 8u
#define TNFAKE_ALIGN 256u

/* ---- plugin.c ------------------------------------------------------------------------------------ */

#define TNFAKE_FAULT_CALL 0u
#define TNFAKE_FAULT_COPY 1u
#define TNFAKE_FAULT_ALLOC 2u
#define TNFAKE_FAULT_WAIT 3u /* is left out: nothing fails but what needed it */
#define TNFAKE_FAULT_KINDS 4u

typedef struct tnfake_fault {
    uint32_t kind;
    uint64_t at; /* the n-th of its kind on a device, from 1 */
} tnfake_fault;

typedef struct tnfake_plugin {
    const tn_host *host;
    const tn_memory_service *memory;   /* NULL: libc */
    const tn_threads_service *threads; /* NULL: pthread */
    uint64_t seed, memory_bytes;       /* memory_bytes 0: no limit */
    uint32_t delay_us, devices;
    bool reorder;
    tnfake_fault faults[TNFAKE_FAULTS_MAX];
    uint32_t fault_count;
    atomic_uint forked; /* 1 in a child after fork(): the threads are gone */
} tnfake_plugin;

void *tnfake_new(tnfake_plugin *plugin, uint64_t bytes); /* zeroed; NULL: out of memory */
void tnfake_delete(tnfake_plugin *plugin, void *memory);
tn_status tnfake_thread_start(tnfake_plugin *plugin, const char *name, void (*run)(void *arg), void *arg,
                              void **out);
void tnfake_thread_join(tnfake_plugin *plugin, void *thread);
uint64_t tnfake_random(uint64_t seed, uint64_t a,
                       uint64_t b); /* a hash: the same for the same three numbers */
void tnfake_sleep(uint32_t us);
__attribute__((format(printf, 3, 4))) tn_status tnfake_fail(tn_err *err, tn_status code, const char *format,
                                                            ...);
tn_status tnfake_forked(const tnfake_plugin *plugin, tn_err *err); /* TN_E_STATE in a child */

extern const tn_device_ops tnfake_device_ops;

/* ---- device.c ------------------------------------------------------------------------------------ */

typedef struct tnfake_counters {
    atomic_ullong submitted, completions, out_of_order, calls, copies, records;
    atomic_ullong event_waits, event_waits_blocked; /* carried out; those that found the event not reached */
    atomic_ullong notifications, notifications_reordered, faults, failed_streams;
    atomic_ullong graphs, graph_launches, graph_updates;
    atomic_ullong memory_bytes, memory_peak_bytes, allocations;
} tnfake_counters;

/* A callback that waits for its point, or for the driver thread. */
typedef struct tnfake_note {
    struct tnfake_note *next;
    struct tn_device_handle *device;
    void (*fn)(void *arg, tn_status status, const tn_err *err);
    void *arg;
    tn_err err; /* code TN_OK: reached */
} tnfake_note;

typedef struct tnfake_driver {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tnfake_note *first, **last;
    uint32_t count;
    uint64_t drawn; /* random numbers so far */
    bool closing;
    void *thread;
} tnfake_driver;

struct tn_device_handle {
    tnfake_plugin *plugin;
    int32_t index;
    pthread_mutex_t lock; /* of `streams` and `text` */
    tn_stream *streams[TNFAKE_STREAMS_MAX];
    uint64_t stream_count; /* ever made: numbers their random sequences */
    char text[1024];
    tnfake_counters count;
    atomic_ullong order; /* submissions so far */
    atomic_ullong fault_clock[TNFAKE_FAULT_KINDS];
    atomic_ullong oldest[TNFAKE_STREAMS_MAX]; /* per stream: its oldest unfinished submission, 0: none */
    pthread_mutex_t turn_lock; /* reorder = 0: items of the device run strictly in submission order */
    pthread_cond_t turn_changed;
    uint64_t turn;
    atomic_uint hurry; /* 1: the device is being closed, nothing is late any more */
    tnfake_driver driver;
};

/* Counts one operation of a kind; true if it is to fail. */
bool tnfake_fault_due(tn_device_handle *device, uint32_t kind);

/* ---- event.c ------------------------------------------------------------------------------------- */

/* A point in a stream. An event is a name for the point it was recorded at last. */
typedef struct tnfake_point {
    tnfake_plugin *plugin;
    atomic_uint refs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached;
    tn_err err; /* code TN_OK, or what had failed the stream by then */
    tnfake_note *notes;
} tnfake_point;

struct tn_event {
    tn_device_handle *device;
    pthread_mutex_t lock;
    tnfake_point *point; /* NULL: never recorded */
};

tnfake_point *tnfake_point_create(tnfake_plugin *plugin);
tnfake_point *tnfake_point_retain(tnfake_point *point); /* NULL is fine, here and below */
void tnfake_point_release(tnfake_point *point);
tnfake_point *tnfake_event_point(tn_event *event);            /* retained */
void tnfake_event_move(tn_event *event, tnfake_point *point); /* takes over the reference */
void tnfake_point_reach(tnfake_point *point, const tn_err *err);
/* Blocks until the point is reached; false: the stream had failed, `err` says how. Counts `blocked` before it
 * blocks. */
bool tnfake_point_wait(tnfake_point *point, atomic_ullong *blocked, tn_err *err);

tn_status tnfake_driver_start(tn_device_handle *device, tn_err *err);
void tnfake_driver_stop(tn_device_handle *device); /* after the last stream; delivers what is left */

tn_status tnfake_event_create(tn_device_handle *device, tn_event **out, tn_err *err);
void tnfake_event_destroy(tn_event *event);
tn_status tnfake_event_record(tn_event *event, tn_stream *stream, tn_err *err);
tn_status tnfake_event_wait(tn_stream *stream, tn_event *event, tn_err *err);
tn_status tnfake_event_query(tn_event *event, tn_err *err);
tn_status tnfake_event_notify(tn_event *event, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err);

/* ---- stream.c ------------------------------------------------------------------------------------ */

#define TNFAKE_CALL 0u
#define TNFAKE_COPY 1u
#define TNFAKE_RECORD 2u
#define TNFAKE_WAIT 3u

/* An item of a queue, or of a graph. */
typedef struct tnfake_item {
    struct tnfake_item *next;
    uint32_t kind, delay_us;
    uint64_t order; /* number of its submission on the device, from 1 */
    bool fault;
    tn_status (*fn)(void *arg, tn_err *err);
    void *arg;
    void *dst;
    const void *src;
    uint64_t bytes;
    tnfake_point *point;
    /* in a graph */
    tn_event *event;             /* of a record or a wait */
    uint32_t slots[3];           /* that arg, dst and src lie in, and 1 */
    struct tnfake_item *earlier; /* of a wait: the last record of its event before it */
    tnfake_point *fresh;         /* of a record: that of the launch which is being made */
} tnfake_item;

struct tn_stream {
    tn_device_handle *device;
    uint32_t slot;
    uint64_t number; /* of all streams of the device, ever */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tnfake_item *first, **last;
    uint64_t submitted, done;
    bool closing;
    tn_device_graph *recording; /* NULL: what comes is done */
    tn_err err;                 /* sticky; code TN_OK: fine */
    void *thread;
};

tn_status tnfake_stream_create(tn_device_handle *device, int32_t priority, tn_stream **out, tn_err *err);
void tnfake_stream_destroy(tn_stream *stream);
tn_status tnfake_stream_wait(tn_stream *stream, tn_err *err);
tn_status tnfake_stream_call(tn_stream *stream, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                             tn_err *err);
tn_status tnfake_copy(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                      tn_err *err);
/* Queues a copy of `from`, or records it; takes over the reference to its point on success. */
tn_status tnfake_submit(tn_stream *stream, const tnfake_item *from, tn_err *err);
/* Queues a list of items, all or none, and takes them over on success. */
tn_status tnfake_stream_put(tn_stream *stream, tnfake_item *first, uint64_t items, tn_err *err);

/* ---- graph.c ------------------------------------------------------------------------------------- */

struct tn_device_graph {
    tn_device_handle *device;
    tnfake_item *first, **last;
    uint64_t items;
    uint32_t slot_count;
    char **was, **now; /* where each slot lay when it was recorded, and lies; one block */
};

tn_status tnfake_graph_begin(tn_stream *stream, tn_err *err);
tn_status tnfake_graph_end(tn_stream *stream, uint32_t count, void *const *base, const uint64_t *bytes,
                           tn_device_graph **out, tn_err *err);
tn_status tnfake_graph_update(tn_device_graph *graph, uint32_t count, void *const *base, tn_err *err);
tn_status tnfake_graph_launch(tn_device_graph *graph, tn_stream *stream, tn_err *err);
void tnfake_graph_free(tn_device_graph *graph);
tn_status tnfake_graph_add(tn_device_graph *graph, tnfake_item *item, tn_err *err); /* takes it on success */

#endif
