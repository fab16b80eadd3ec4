/*
 * Shared by the files of the plugin.
 *
 * driver.c: the driver's table · plugin.c: options, memory · device.c: the table of the device, memory ·
 * stream.c: streams, calls, copies, and how a stream fails · event.c: points and notifications ·
 * graph.c: recorded work · replay.c: the device's own kernels as recorded work.
 *
 * Locks, in this order: plugin -> stream -> event -> points of a fate -> fate, device. The driver may be
 * called under all but the last two; no function of the host is called under any.
 */
#ifndef TNCUDA_INTERNAL_H
#define TNCUDA_INTERNAL_H

#include "../common/library.h"
#include "driver.h"
#include "tenon/plugin/device.h"
#include "tenon/plugin/util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TNCUDA_DEVICES_MAX 64
#define TNCUDA_ALIGN 256u
#define TNCUDA_THREADS 256 /* of a block: TNCUDA_BLOCK_THREADS of the kernels */

/* ---- plugin.c ---------------------------------------------------------------------------------------- */

typedef struct tncuda_plugin {
    const tn_host *host;
    const tn_memory_service *memory; /* NULL: libc */
    const tn_log_service *log;       /* NULL: none */
    bool managed;                    /* device memory that moves on demand */
    bool graphs;                     /* kernels of nets are recorded */
    bool autotune;                   /* ways to convolve and multiply are measured where bits may differ */
    bool tf32;                       /* products of float32 may be rounded to 10 bits of fraction first */
    char libraries[512];             /* the folder of cuBLASLt, cuDNN and NVRTC; "": where the loader looks */
    pthread_mutex_t compiling;       /* of nvrtc: held while something is compiled; no other lock is taken */
    atomic_uint unloaded;            /* 1: a device did not load what was compiled, which was said */
    struct tncuda_nvrtc *nvrtc;      /* nvrtc.c; NULL: nothing was compiled so far */
    atomic_uint forked;              /* 1 in a child after fork(): the driver is of no use there */
    pthread_mutex_t lock;            /* of what follows */
    struct tncuda_lt_library *lt;    /* lt.c; NULL: not needed so far */
    struct tncuda_dnn *dnn;          /* dnn.c; NULL: nobody has asked for it */
    bool opened;
    tncuda_driver driver;
    struct {
        tncuda_context context; /* NULL: not retained */
        uint32_t users;
    } contexts[TNCUDA_DEVICES_MAX];
} tncuda_plugin;

void *tncuda_new(const tncuda_plugin *plugin, uint64_t bytes); /* zeroed; NULL: out of memory */
void tncuda_delete(const tncuda_plugin *plugin, void *memory);
tn_status tncuda_nomem(tn_err *err, const char *what);
/* A line for the log, of 1023 bytes at most; called with no lock held. */
__attribute__((format(printf, 3, 4))) void tncuda_log(const tncuda_plugin *plugin, int32_t level,
                                                      const char *format, ...);

/* A library that is opened when it is first needed. Where none of its files can be opened the reason stands
 * between `absent` and `advised`; `advised` NULL: `absent` is the whole sentence. */
typedef struct tncuda_library {
    const char *const *files; /* NULL ends them */
    const library_function *rows;
    size_t count;
    const char *absent, *advised, *advice; /* advice: where a function is lacking */
} tncuda_library;

/* Fills the rows' members; `*file` is the name of what was opened. TN_E_DEVICE: nothing is open. */
tn_status tncuda_library_open(const tncuda_plugin *plugin, const tncuda_library *l, void **out,
                              const char **file, tn_err *err);
/* TN_E_UNSUPPORTED, whose reason lies in the machine, not in the node: the text's code is TN_E_DEVICE. */
tn_status tncuda_absent(tn_err *err, const char *why);
/* TN_E_STATE in a child, TN_E_DEVICE without a driver, which is tried again each time. */
tn_status tncuda_driver_need(tncuda_plugin *plugin, tn_err *err);
/* The primary context of a device; to be given back. */
tn_status tncuda_context_get(tncuda_plugin *plugin, int32_t index, tncuda_context *out, tn_err *err);
void tncuda_context_give(tncuda_plugin *plugin, int32_t index);

extern const tn_device_ops tncuda_device_ops;

/* ---- lt.c -------------------------------------------------------------------------------------------- */

void tncuda_lt_drop(tncuda_plugin *plugin, int32_t index); /* before the context of a device goes */
void tncuda_lt_fini(tncuda_plugin *plugin);

/* ---- device.c ---------------------------------------------------------------------------------------- */

typedef struct tncuda_moment tncuda_moment;

typedef struct tncuda_counters {
    atomic_ullong calls, copies, launches, event_waits, notifications, graphs, graph_launches, graph_updates;
    atomic_ullong allocations;
} tncuda_counters;

/* What the driver is to call, in the order of a stream: the head of a call, a notification, a launch. One
 * that it never comes to, because the context has failed, is dropped. */
typedef struct tncuda_item {
    struct tncuda_item *next, **link;
    bool running;
    void (*drop)(struct tncuda_item *item); /* frees it */
} tncuda_item;

struct tn_device_handle {
    tncuda_plugin *plugin;
    const tncuda_driver *driver;
    tncuda_context context;
    int32_t index, ordinal;            /* ours, and the driver's */
    pthread_mutex_t lock;              /* of what follows up to the counters */
    pthread_cond_t quiet;              /* an item is through */
    tncuda_item *items;                /* that the driver has not called yet, or is calling */
    uint64_t pending;                  /* items whose memory is still there */
    tn_err failure;                    /* code TN_OK: the context works */
    tn_device_graph *dead;             /* freed while launches were under way */
    tncuda_moment *moments;            /* that nobody has any more */
    uint8_t peers[TNCUDA_DEVICES_MAX]; /* 1: access was asked for */
    char text[1024];
    tncuda_counters count;
    atomic_uint streams;            /* made so far */
    atomic_ullong lowest, behind;   /* all its blocks lie between them; both 0: there are none */
    struct tncuda_kernels *kernels; /* launch.c; NULL: none was launched so far */
};

/* Between the two the context is the thread's. TN_E_STATE in a child, TN_E_DEVICE once the device has failed.
 */
tn_status tncuda_enter(tn_device_handle *device, tn_err *err);
tn_status tncuda_usable(tn_device_handle *device, tn_err *err); /* what that says, without the context */
void tncuda_leave(tn_device_handle *device);
/* The same for what gives something back, which is tried after a failure, too. False: in a child. */
bool tncuda_enter_end(tn_device_handle *device);
/* TN_OK, or the status of a result. An error that ends the context fails the device. */
tn_status tncuda_check(tn_device_handle *device, tncuda_result result, const char *what, tn_err *err);
void tncuda_item_add(tn_device_handle *device, tncuda_item *item);
void tncuda_item_begin(tn_device_handle *device, tncuda_item *item);
void tncuda_item_end(tn_device_handle *device, tncuda_item *item); /* drops it */
void tncuda_items_drop(tn_device_handle *device); /* nobody calls what is left; waits for those running */
static inline void tncuda_count(atomic_ullong *counter)
{
    atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);
}

/* ---- stream.c ---------------------------------------------------------------------------------------- */

/*
 * What becomes of a stream. Functions that it calls are numbered from 1; the first one that fails is `failed`
 * and fails all that comes behind. An event knows how many came before it, so it is failed if failed is not 0
 * and not above that. Lives as long as its stream or an event that was recorded there.
 */
typedef struct tncuda_fate {
    tn_device_handle *device;
    atomic_uint refs;
    atomic_ullong done, failed; /* numbers of calls: of the last one that was made, of the first failure */
    pthread_mutex_t lock;       /* of what follows */
    tn_err err;
    tncuda_stream notes;    /* waits for events of the stream to notify of them; NULL: not needed so far */
    pthread_mutex_t points; /* of what follows */
    atomic_bool gone;       /* the stream ran out and was destroyed */
    tncuda_stream handle;   /* NULL: gone */
    tncuda_moment *open;    /* that the driver has not recorded so far; NULL: none */
} tncuda_fate;

tncuda_fate *tncuda_fate_retain(tncuda_fate *fate);
void tncuda_fate_release(tncuda_fate *fate); /* NULL is fine */
void tncuda_fate_fail(tncuda_fate *fate, uint64_t number, tn_status status, const tn_err *err);
/* TN_OK, or how the stream had failed when `number` calls were made. */
tn_status tncuda_fate_at(tncuda_fate *fate, uint64_t number, tn_err *err);

/* A point of a stream. */
typedef struct tncuda_point {
    tncuda_fate *fate;
    uint64_t number; /* of the last call before it */
} tncuda_point;

/* A function in a stream, or in a graph; `fn` NULL: it fails the stream if another one had failed at a point.
 */
typedef struct tncuda_call {
    tncuda_item item;       /* first; of a stream */
    tn_device_graph *graph; /* NULL: of a stream */
    tncuda_point at;        /* in a graph without fate, counted from the launch */
    tncuda_point look;      /* of a stream; retained */
    uint32_t wait;          /* in a graph: which of its waits it looks at */
    uint32_t slot;          /* in a graph: where arg lies, and 1; 0: in none */
    tncuda_graph_node node; /* in a graph */
    tn_status (*fn)(void *arg, tn_err *err);
    void *arg;
    struct tncuda_call *next; /* of the graph */
    uint64_t launches;        /* in a graph, when replaced: how many had been asked for */
} tncuda_call;

struct tn_stream {
    tn_device_handle *device;
    tncuda_stream handle;
    tncuda_fate *fate;
    uint32_t number;       /* from 1, for people */
    pthread_mutex_t lock;  /* of what follows */
    uint64_t calls;        /* asked for so far */
    uint64_t work;         /* counts all that the driver was given for the stream, but records of events */
    uint64_t late_at;      /* how much work closes the moment that is open; UINT64_MAX: none is */
    uint64_t moment_work;  /* what it was at `moment` */
    tncuda_moment *moment; /* the newest; NULL: none so far */
    tn_device_graph *recording;
};

tn_status tncuda_stream_create(tn_device_handle *device, int32_t priority, tn_stream **out, tn_err *err);
void tncuda_stream_destroy(tn_stream *stream);
tn_status tncuda_stream_wait(tn_stream *stream, tn_err *err);
tn_status tncuda_stream_call(tn_stream *stream, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                             tn_err *err);
tn_status tncuda_copy(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                      tn_err *err);
/* Under the stream's lock, in the context: a function, or a look at `look`. */
tn_status tncuda_call_locked(tn_stream *stream, const tncuda_call *like, tn_err *err);
/* Under the same: another function in the stream, which is no call of its. */
tn_status tncuda_function_locked(tn_stream *stream, void (*fn)(void *arg), void *arg, tn_err *err);
/* The stream's error, if it has failed already. */
tn_status tncuda_stream_failed(tn_stream *stream, tn_err *err);

/* ---- event.c ----------------------------------------------------------------------------------------- */

/* The driver's event, recorded once: behind the first of the events that have it, and a few kernels and
 * copies. It is recorded when one of them is looked at, or before anything else comes to the stream: what
 * they wait for more is always little. When nobody has it any more, it is the device's, for another one. */
struct tncuda_moment {
    tncuda_moment *next; /* of the device's */
    tncuda_event handle;
    atomic_uint refs;
    atomic_bool there; /* recorded, or what it stands for was waited for */
};

struct tn_event {
    tn_device_handle *device;
    pthread_mutex_t lock;  /* of what follows */
    tncuda_moment *moment; /* NULL: never recorded */
    bool pinned;           /* a graph records it, or waits for it: its moment is its own, and stays */
    tncuda_fate *fate;     /* retained: of the stream it was recorded on; NULL: on none */
    uint64_t number;       /* calls of that stream before it */
};

/* Under the stream's lock, in the context: the end of the stream as it is now, in place of *moment, which may
 * be NULL. */
tn_status tncuda_moment_here(tn_stream *stream, tncuda_moment **moment, tn_err *err);
/* Under the stream's lock, in the context: the driver is given one thing more, a kernel, a copy or a call of
 * a library. */
tn_status tncuda_work_locked(tn_stream *stream, tn_err *err);
/* Under the stream's lock: no event of it gets what comes next into its moment. */
tn_status tncuda_moment_close(tn_stream *stream, tn_err *err);
void tncuda_moments_end(tncuda_fate *fate);                                  /* the stream ran out */
void tncuda_moment_release(tn_device_handle *device, tncuda_moment *moment); /* NULL is fine */
void tncuda_moments_drop(tn_device_handle *device);                          /* the device's; it is closed */

tn_status tncuda_event_create(tn_device_handle *device, tn_event **out, tn_err *err);
void tncuda_event_destroy(tn_event *event);
tn_status tncuda_event_record(tn_event *event, tn_stream *stream, tn_err *err);
tn_status tncuda_event_wait(tn_stream *stream, tn_event *event, tn_err *err);
tn_status tncuda_event_query(tn_event *event, tn_err *err);
tn_status tncuda_event_notify(tn_event *event, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err);
void tncuda_event_move(tn_event *event, tncuda_fate *fate, uint64_t number);
tncuda_point tncuda_event_point(tn_event *event); /* its fate is retained, or NULL */

/* ---- graph.c ----------------------------------------------------------------------------------------- */

/* A kernel, a copy or a library's call in a graph, as the driver was given it. */
typedef struct tncuda_entry {
    tncuda_graph_node node; /* of a kernel or a copy */
    uint64_t nodes;         /* that it made */
    uint64_t at;            /* where its arguments lie in those of the graph */
    bool library;           /* a call of one: nobody but the library knows what its nodes are made of */
} tncuda_entry;

#define TNCUDA_FORMS 64 /* at most: combinations of buffers that steps take turns with */

/* Of a graph with forms: what became of its runs. */
typedef struct tncuda_turns {
    uint64_t found, set, recorded, plain;
} tncuda_turns;

typedef struct tncuda_copied {
    tncuda_address dst, src;
    uint64_t bytes;
} tncuda_copied;

struct tn_device_graph {
    tn_device_handle *device;
    atomic_uint refs; /* the user's, and one for each launch with functions */
    tncuda_graph graph;
    tncuda_graph_exec exec; /* NULL: one that has forms instead */
    tncuda_moment *done;    /* behind the last launch; NULL: there was none */
    tncuda_call *calls, **calls_end, *replaced;
    struct event_mark *marks, **marks_end;
    struct copy_node *copies;
    uint64_t call_count, node_count;
    uint32_t waits;
    bool fixed;  /* it has kernels */
    bool broken; /* an update went wrong half way */
    uint32_t slot_count;
    char **was, **now, **from; /* where each slot lay when it was recorded, lies, lay before; one block */
    uint64_t launches;         /* with functions: asked for */
    atomic_ullong launches_done;
    struct graph_launch *current;      /* the driver's threads alone use it, one after the other */
    tn_device_graph *next;             /* of the device's dead */
    uint64_t types[TNCUDA_NODE_TYPES]; /* nodes of each type */
    tncuda_entry *entries; /* replay.c from here, of one form: kernels, copies and calls in order */
    char *args;            /* what they were given, each behind a head */
    uint64_t entry_count, entry_room, args_bytes, args_room;
    uint64_t used;                        /* when it was launched, by the clock of what has it */
    tn_device_graph *forms[TNCUDA_FORMS]; /* of what has forms: graphs of the same run, independent ones */
    uint32_t form_count, form_last;       /* the one that was launched last */
    uint64_t clock, credit;               /* see replay.c */
    tncuda_turns turns;
    uint32_t told; /* what the log was told of, a bit each */
    bool compares; /* what the stream is given is kept in args, and the driver does not get it */
    bool differs;  /* it was something else */
    bool whole;    /* its nodes are its entries: nothing came past this plugin */
};

tn_status tncuda_graph_begin(tn_stream *stream, tn_err *err);
tn_status tncuda_graph_end(tn_stream *stream, uint32_t count, void *const *base, const uint64_t *bytes,
                           tn_device_graph **out, tn_err *err);
tn_status tncuda_graph_update(tn_device_graph *graph, uint32_t count, void *const *base, tn_err *err);
tn_status tncuda_graph_launch(tn_device_graph *graph, tn_stream *stream, tn_err *err);
void tncuda_graph_free(tn_device_graph *graph);
/* While a stream records, under its lock: a copy of the call, which is the graph's. */
tn_status tncuda_graph_call(tn_device_graph *graph, const tncuda_call *like, tncuda_call **out, tn_err *err);
/* The same of a record (wait: false) or a wait for an event, which the driver has taken. */
tn_status tncuda_graph_event(tn_device_graph *graph, tn_stream *stream, tn_event *event, bool wait,
                             tn_err *err);
/* In a launch: where the call is in its stream, and the point that it looks at. */
tncuda_point tncuda_graph_at(const tncuda_call *call);
tncuda_point tncuda_graph_look(const tncuda_call *call);
void tncuda_graphs_sweep(tn_device_handle *device, bool all); /* frees the dead that are done */

/* ---- replay.c ---------------------------------------------------------------------------------------- */

tn_status tncuda_graph_run(tn_device_graph **graph, tn_stream *stream,
                           tn_status (*fn)(void *arg, tn_err *err), void *arg, uint32_t *moved, tn_err *err);
/* Under the stream's lock, before the driver is given something, a kernel or copy, or (bytes 0) anything
 * else. True: it was compared with what the graph has, and the driver gets nothing. */
bool tncuda_graph_compared(tn_stream *stream, tncuda_function function, uint32_t blocks, const void *args,
                           uint32_t bytes);
/* Whether it is so now: the driver is given nothing, and no context is needed. */
bool tncuda_graph_compares(tn_stream *stream);
/* The same behind it, of kernels and copies: the graph, if the stream records one, keeps them. */
tn_status tncuda_graph_note(tn_stream *stream, tncuda_function function, uint32_t blocks, const void *args,
                            uint32_t bytes, tn_err *err);
/* Of a call of a library, which made `nodes` nodes; while nothing is recorded, nothing is done. */
tn_status tncuda_graph_note_library(tn_stream *stream, const void *state, uint64_t nodes, const void *args,
                                    uint32_t bytes, tn_err *err);
/* Nodes of the capture so far; 0 while nothing is recorded. In the context. */
tn_status tncuda_graph_nodes(tn_stream *stream, uint64_t *out, tn_err *err);
void tncuda_graph_forget(tn_device_graph *graph); /* frees the entries, and tells the log of its runs */
/* Gives the forms of a graph back. */
void tncuda_graph_forms_free(tn_device_graph *graph);

#endif
