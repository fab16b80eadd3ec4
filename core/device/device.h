/*
 * The interface of room device: devices by type and index, their streams, events, memory kinds and pools.
 *
 * The host device "cpu" is built in, has any index below TN_DEVICES_MAX, works at once (no streams: NULL),
 * and its memory is 64-byte aligned. All other types come from plugins and are opened at their first use.
 */
#ifndef TN_DEVICE_H
#define TN_DEVICE_H

#include "plugin/plugin.h"
#include "tenon/plugin/device.h"
#include "tenon/plugin/pool.h"

typedef struct tni_device_set tni_device_set;
typedef struct tni_pool tni_pool; /* a tn_pool with its lock, counters and source */

/* Host memory whose blocks go back to the system when they are freed: pages of their own, no pool keeps them.
 * Beside the TN_MEMORY_… that everybody knows. */
#define TNI_MEMORY_APART 4
#define TNI_MEMORY_KINDS 5

typedef struct tni_device {
    tni_device_set *set;
    const char *type;         /* "cpu"; interned: compare type_id */
    const char *kernels_type; /* device type whose kernels run here: "cpu" for fake */
    const char
        *kernels_plugin; /* NULL: any plugin; else of kernels for that type this one's (runs_kernels_of) */
    int32_t index;
    uint16_t type_id; /* 0: cpu; the same for one type within a set */
    bool host;        /* the built-in one: synchronous, no streams */
    bool host_addressable;
    const tn_device_ops *ops; /* NULL for host */
    tn_device_handle *handle;
    tni_plugin *plugin;
    uint32_t ordinal;                  /* dense over the set, for tables */
    void *engine_data;                 /* room engine keeps its queue of this device here */
    tni_pool *pools[TNI_MEMORY_KINDS]; /* by TN_MEMORY_… */
    atomic_int failed;                 /* sticky: the device refuses work (TN_E_DEVICE) */
} tni_device;

tn_status tni_device_set_create(tni_options *options, tni_registry *registry, const tni_log *log,
                                tni_device_set **out);
void tni_device_set_destroy(
    tni_device_set *s); /* no block may be live; live ones are counted and given back */
/* Loads the provider of `type` if need be and opens the device. TN_E_DEVICE with what was searched. */
tn_status tni_device_get(tni_device_set *s, const char *type, int32_t index, tni_device **out);
/* Reads "cpu", "cpu:1", "fake:0", also MXNet's "cpu(0)". */
tn_status tni_device_parse(tni_device_set *s, const char *text, tni_device **out);
/* The first of a list, divided by commas. */
tn_status tni_device_first(tni_device_set *s, const char *list, tni_device **out);
size_t tni_device_count(tni_device_set *s); /* opened so far */
tni_device *tni_device_at(tni_device_set *s, size_t index);
tn_status tni_device_type_count(tni_device_set *s, const char *type, int32_t *out); /* without opening */
/* In a child after fork(): from now on devices other than the host answer TN_E_STATE. */
void tni_device_set_forked(tni_device_set *s);

/* Events for reuse, of devices that have streams. An event given back may be recorded again at once: a stream
 * that was told to wait for it waits for the point recorded before that call. */
tn_status tni_device_event_take(tni_device *d, tn_event **out);
void tni_device_event_give(tni_device *d, tn_event *event);

/* Whether the device records graphs. Graphs are freed by this, in a child after fork() without a word to the
 * device; NULL is fine. */
bool tni_device_graphs(const tni_device *d);
void tni_device_graph_free(tni_device *d, tn_device_graph *graph);
/* A stream that records would take up all that it is given, whoever gives it. Held from graph_begin to
 * graph_end, and by threads that are no worker of the device while they give a stream of it something.
 * Nothing is locked below it. */
void tni_device_recording_lock(tni_device *d) TN_NO_THREAD_CHECK;
void tni_device_recording_unlock(tni_device *d) TN_NO_THREAD_CHECK;

/* A block of memory, from the pool that [memory.D] names (`auto`: segment if installed, else none). */
typedef struct tni_block {
    tn_memory memory;
    tni_pool *pool; /* NULL: nothing allocated */
    const char *owner;
} tni_block;

/* `bytes` 0 gives data NULL. `stream` is the worker's, NULL on the host. Out of memory: trims, then asks
 * `relief` of the set (set by room engine: waits for pending work) once, then TN_E_NOMEM with owners and
 * largest free block. */
tn_status tni_block_alloc(tni_device *d, int32_t memory, uint64_t bytes, tn_stream *stream, const char *owner,
                          tni_block *out);
void tni_block_free(tni_block *b, tn_stream *stream); /* clears *b */
void tni_device_set_relief(tni_device_set *s, bool (*relief)(void *arg), void *arg);

typedef struct tni_memory_stats {
    uint64_t free, total, live, cached, peak, largest_free, hits, misses;
} tni_memory_stats;
tn_status tni_device_memory(tni_device *d, int32_t memory, tni_memory_stats *out);
void tni_device_trim(tni_device *d, uint64_t keep_bytes); /* all its pools */

#endif
