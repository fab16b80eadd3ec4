/**
 * A device plugin: streams, events, copies, raw memory of one device type.
 *
 * The host device is the core's own. A device whose memory the host can address and whose kernels are those
 * of another plugin names it in `runs_kernels_of`; the core then wraps each kernel in `stream_call`. Kernels
 * that any plugin declares for the device type itself (tn_kernel.device is head.id) run there in the same
 * way.
 */
#ifndef TENON_PLUGIN_DEVICE_H
#define TENON_PLUGIN_DEVICE_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_device_handle tn_device_handle; /* the plugin's: one opened device */
typedef struct tn_stream tn_stream;               /* the plugin's: an in-order queue of work */
typedef struct tn_event tn_event;                 /* the plugin's: a point in a stream */
typedef struct tn_device_graph tn_device_graph;   /* the plugin's: recorded work of one stream */

typedef struct tn_device_info {
    uint32_t struct_size;
    uint32_t flags;                        /* TN_DEVICE_F_… */
    char name[64];                         /* for people: "NVIDIA H200" */
    uint64_t memory_total, memory_free;    /* bytes */
    uint32_t compute_major, compute_minor; /* of the device's own instruction set, 0 if it has none */
    uint32_t units;                        /* multiprocessors or cores */
    uint32_t alignment;                    /* of raw memory, bytes */
} tn_device_info;

#define TN_DEVICE_F_HOST_ADDRESSABLE                                                                         \
    1u /* the host may read and write device memory when no work is pending on it */
#define TN_DEVICE_F_KNOWN TN_DEVICE_F_HOST_ADDRESSABLE

/**
 * One end of a copy: where the bytes lie. `device` counts within `type`. Host memory has type NULL and device
 * -1. The type may be that of another plugin: its pinned memory is the host's for others. A device that
 * cannot reach its own memory (TN_MEMORY_DEVICE) answers TN_E_UNSUPPORTED.
 */
typedef struct tn_place {
    void *data;
    int32_t device;
    int32_t memory;   /* TN_MEMORY_… */
    const char *type; /* of the device: tn_device_ops.head.id, "cuda" */
} tn_place;

typedef struct tn_device_ops {
    tn_capability head; /* kind TN_KIND_DEVICE, id: the device type, "cuda" */
    /** NULL: kernels declared for `head.id`. Else a plugin's name: that plugin's kernels, too, and of no
     * other; all are run in stream_call. */
    const char *runs_kernels_of;
    /** [any] How many devices there are; 0 is fine. TN_E_DEVICE: none can be used on this machine, and the
     * message says what is missing. */
    tn_status (*count)(void *plugin, int32_t *out, tn_err *err);
    /** [load] Opens device `index`. Everything slow happens here. */
    tn_status (*open)(void *plugin, int32_t index, tn_device_handle **out, tn_err *err);
    void (*close)(tn_device_handle *device);
    /** [any] */
    tn_status (*info)(tn_device_handle *device, tn_device_info *out, tn_err *err);

    /** [any] Raw memory of a kind. Never called on a hot path: pools stand in front. */
    tn_status (*alloc)(tn_device_handle *device, int32_t memory, uint64_t bytes, void **out, tn_err *err);
    void (*free)(tn_device_handle *device, int32_t memory, void *data);

    /** [worker] `priority`: 0 normal, below 0 less, above 0 more urgent. */
    tn_status (*stream_create)(tn_device_handle *device, int32_t priority, tn_stream **out, tn_err *err);
    void (*stream_destroy)(tn_stream *stream);
    /** [any] Blocks until all work of the stream is done; reports the stream's sticky error. */
    tn_status (*stream_wait)(tn_stream *stream, tn_err *err);
    /** [worker] Runs `fn(arg)` in stream order; `fn` returns a status that, if not TN_OK,
     * fails the stream. */
    tn_status (*stream_call)(tn_stream *stream, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                             tn_err *err);

    /** [worker] Events may be recorded again. `event_wait` makes `stream` wait for `event` without blocking
     * the host. */
    tn_status (*event_create)(tn_device_handle *device, tn_event **out, tn_err *err);
    void (*event_destroy)(tn_event *event);
    tn_status (*event_record)(tn_event *event, tn_stream *stream, tn_err *err);
    tn_status (*event_wait)(tn_stream *stream, tn_event *event, tn_err *err);
    /** [any] TN_OK: reached; TN_PENDING: not yet; else the stream's sticky error. */
    tn_status (*event_query)(tn_event *event, tn_err *err);
    /** [worker] Calls `fn(arg, status, err)` once [driver] when the recorded point was reached or the stream
     * failed. `fn` must not call the device plugin. It may be called before event_notify returns. */
    tn_status (*event_notify)(tn_event *event, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err);

    /** [worker] Queues a copy; TN_E_UNSUPPORTED: this pair of places is not mine to copy. */
    tn_status (*copy)(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                      tn_err *err);

    /* Optional from here. */
    /** [any] Numbers for people and tests, as one JSON object; valid until the next call. */
    const char *(*statistics)(tn_device_handle *device);
    /** [worker] True (1) if device `index` can read memory of `peer` in a copy. */
    int32_t (*peer)(tn_device_handle *device, int32_t peer);
    tn_status (*host_register)(tn_device_handle *device, void *data, uint64_t bytes, tn_err *err);
    void (*host_unregister)(tn_device_handle *device, void *data);

    /*
     * Graphs: work that is recorded once, then launched as one piece. All five functions are there, or none.
     *
     * Between graph_begin and graph_end what the stream is given is recorded and not done: stream_call, copy,
     * event_record, event_wait. A device whose graphs cannot hold an event, or this copy, answers
     * TN_E_UNSUPPORTED there and goes on recording. A call that waits for the stream, another graph_begin, or
     * a graph_launch on it is TN_E_STATE. All of it comes from one thread. Meanwhile the host neither
     * allocates nor frees memory of the device; other streams go on as ever.
     *
     * A launch does what the same calls would do now: a recorded event_record moves the event's point, a
     * recorded event_wait waits for the point that the event has by then. Recorded functions, their `arg`,
     * events and memory live until the graph is freed and its launches are done.
     *
     * Slots are pieces of memory, of the host or of the device, that may be elsewhere at a later launch. Each
     * recorded `arg` of stream_call and each end of a copy that lies in one moves with it; what is stored in
     * the memory of a slot does not change. Slots do not overlap.
     */
    /** [worker] TN_E_STATE: the stream is recording, or has failed. */
    tn_status (*graph_begin)(tn_stream *stream, tn_err *err);
    /** [worker] Ends the recording, also where it fails; `base` and `bytes` say where the `count` slots lie.
     * `out` NULL: what was recorded is dropped. TN_E_STATE: the stream was not recording. */
    tn_status (*graph_end)(tn_stream *stream, uint32_t count, void *const *base, const uint64_t *bytes,
                           tn_device_graph **out, tn_err *err);
    /** [worker] Where the slots lie for the next launches; those that were queued keep theirs. TN_E_ARG:
     * another `count` than at graph_end; TN_E_UNSUPPORTED: this graph stays as it is, record a new one. */
    tn_status (*graph_update)(tn_device_graph *graph, uint32_t count, void *const *base, tn_err *err);
    /** [worker] Queues all that was recorded, or nothing, on a stream of the device that recorded it.
     * Launches of one graph follow each other: the caller queues them on one stream, or orders their streams.
     */
    tn_status (*graph_launch)(tn_device_graph *graph, tn_stream *stream, tn_err *err);
    /** [worker] Launches under way go on. NULL is fine. */
    void (*graph_free)(tn_device_graph *graph);

    /** [worker] Optional, of a device with kernels of its own: `fn(arg)` gives kernels and copies to
     * `stream`, and they are launched as one graph. `*graph`: NULL, or what an earlier run of the same work
     * left there; it becomes what `fn` gives now, changed where only arguments moved, else recorded anew.
     * `fn` may be called twice; what it returns, if not TN_OK, comes back, and nothing is launched. `*moved`:
     * how many items were changed; UINT32_MAX: it was recorded. TN_E_UNSUPPORTED: this work cannot be
     * recorded, or not on this device: nothing was queued. */
    tn_status (*graph_run)(tn_device_graph **graph, tn_stream *stream,
                           tn_status (*fn)(void *arg, tn_err *err), void *arg, uint32_t *moved, tn_err *err);
} tn_device_ops;

#ifdef __cplusplus
}
#endif

#endif
