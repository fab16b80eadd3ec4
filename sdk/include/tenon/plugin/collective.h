/**
 * A collective plugin: sums and broadcasts over the processes of a job, each of which is a rank. Draft: the
 * kind is in use, and its table may still change before ABI 1 is final.
 *
 * Order. All ranks start the same calls in the same order, with the same kind, type, root, counts and name.
 * A call ends on a rank when its result is there; calls end in any order. A rank that starts another call
 * than the others is a defect of the host: the call fails there or at its deadline, and no memory beside
 * `out` is written.
 *
 * Threads. All functions of one communicator, `open` and `close` too, are called by one thread, `wake` by any
 * one: libraries that serve a single thread need no more. Nothing blocks but `open`, `poll` and `close`, each
 * at most for its time. A collective may have threads of its own, made by the host's service "threads".
 *
 * Failure. A rank that dies, falls silent or calls `abort` ends the communicator on all ranks: each call
 * under way there ends with a status and a text that names the rank, at the latest a second after its
 * deadline. A communicator that has failed stays so; `start` then answers TN_E_PEER with the first text.
 *
 * Memory. `in` and `out` of a call are used until its end was handed out, and never after, also when it ends
 * with a failure: a library that cannot let go of memory works in its own. Of a collective of a device they
 * may be memory of such a device, which it finds out; the host has seen to it that nobody writes them then.
 */
#ifndef TENON_PLUGIN_COLLECTIVE_H
#define TENON_PLUGIN_COLLECTIVE_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_communicator tn_communicator; /* the plugin's: this process's place in one job */

/** How a communicator is opened. Texts are the host's and live for the call; `add` lives until `close`. */
typedef struct tn_collective_config {
    uint32_t struct_size, flags; /* 0 */
    uint32_t rank, ranks;        /* ranks 0: not known; rank UINT32_MAX: not known which of them. Only with
                                    TN_COLLECTIVE_LAUNCHED: others refuse both */
    const char *job;             /* the same on all ranks; "": no name */
    const char *root;            /* "HOST:PORT" where rank 0 can be found; NULL: not known */
    uint64_t timeout_ns;         /* longest that `open` waits for the others */
    /** into += from, `count` elements of `dtype`, each sum rounded once: the host's own addition. [any] */
    void (*add)(int32_t dtype, uint64_t count, const void *from, void *into);
} tn_collective_config;

typedef struct tn_collective_info {
    uint32_t struct_size, flags; /* TN_COLLECTIVE_… */
    uint32_t rank, ranks;
    uint64_t count_max; /* elements of one call, all parts together; UINT64_MAX: no limit of its own */
} tn_collective_info;

/** Rank and ranks come from the launcher that the library belongs to (mpirun), not from the configuration. A
 * process may open one communicator after the other, at most one at a time. */
#define TN_COLLECTIVE_LAUNCHED 1u
#define TN_COLLECTIVE_KNOWN 1u

#define TN_COLLECTIVE_SUM 1u       /* out = the sum of all ranks' `in` */
#define TN_COLLECTIVE_BROADCAST 2u /* out = `in` of rank `root`; `in` of others is not read */
#define TN_COLLECTIVE_BARRIER 3u   /* ends when all ranks have started it; no parts */

/** One array of a call. Several small ones in one call are a bucket, which travels as one. Never grows. */
typedef struct tn_collective_part {
    const void *in;
    void *out; /* may be `in`; otherwise they do not overlap */
    uint64_t count;
} tn_collective_part;

/** The sum is (x0 + x1) + x2 … in the order of ranks, each addition by the configuration's `add`: the same
 * bits on every rank, with every collective. Without the flag any order will do, and ranks have the same bits
 * all the same. */
#define TN_COLLECTIVE_ORDERED 1u
#define TN_COLLECTIVE_CALL_KNOWN 1u

/** A call. It, its name and its list of parts live for `start`; what the parts point to until its end. */
typedef struct tn_collective_call {
    uint32_t struct_size, flags; /* TN_COLLECTIVE_ORDERED */
    uint32_t kind;               /* TN_COLLECTIVE_SUM … */
    int32_t dtype;               /* of all parts: any that has a size in bytes */
    uint32_t root;               /* of BROADCAST */
    uint32_t part_count;
    const tn_collective_part *parts;
    uint64_t timeout_ns; /* from `start` on */
    uint64_t cookie;
    const char *name; /* for messages: "bucket 3 (conv0_weight)"; at most 119 bytes of it are used */
} tn_collective_call;

/** A call that has ended. */
typedef struct tn_collective_event {
    uint32_t struct_size;
    tn_status status; /* TN_OK · TN_E_TIMEOUT: the deadline; the text names ranks that did not come ·
                         TN_E_PEER: a rank has died or has aborted · TN_E_NOMEM */
    uint64_t cookie;
    const char *text; /* for people, until the next poll; NULL with TN_OK */
} tn_collective_event;

/** The event `index` of those that `poll` fills in: each has as many bytes as the host's struct. */
static inline tn_collective_event *tn_collective_event_at(tn_collective_event *events, uint32_t index)
{
    return (tn_collective_event *)(void *)((unsigned char *)events + (uint64_t)index * events->struct_size);
}

typedef struct tn_collective_ops {
    tn_capability head; /* kind TN_KIND_COLLECTIVE, id: "mpi" */
    /**
     * Joins the job; returns when all ranks have come.
     *
     * @return TN_E_ARG: rank is not below ranks, or they are not the launcher's · TN_E_TIMEOUT: ranks that
     *         did not come, by number where that is known · TN_E_STATE: a second one where there may be one ·
     *         TN_E_UNSUPPORTED: the library here cannot · TN_E_PEER: a rank that left, or is of another job ·
     *         TN_E_DEVICE: this machine lacks the device or the library, and the text says so
     */
    tn_status (*open)(void *plugin, const tn_collective_config *config, tn_communicator **out, tn_err *err);
    void (*info)(tn_communicator *c, tn_collective_info *out);
    /** Begins a call and returns. TN_OK: its end comes by `poll`, exactly once. TN_E_ARG: no such kind, type
     * or root, or more than count_max elements · TN_E_PEER: the communicator has failed · TN_E_NOMEM */
    tn_status (*start)(tn_communicator *c, const tn_collective_call *call, tn_err *err);
    /**
     * Moves calls on, and waits for the first that ends.
     *
     * @param events     `*count` of them, at least 1, whose struct_size the host has set, all the same; how
     *                   many came is `*count` then
     * @param timeout_ns 0: only what is there
     * @return TN_OK, with no event: the time is over, or `wake` was called · TN_E_PEER: it has failed, and
     *         all ends were handed out: the text is the failure's
     */
    tn_status (*poll)(tn_communicator *c, tn_collective_event *events, uint32_t *count, uint64_t timeout_ns,
                      tn_err *err);
    /** [any] The poll that waits, or else the next one, returns at once. */
    void (*wake)(tn_communicator *c);
    /** This rank gives up: calls under way fail here at once (`poll`), and on the others within a second,
     * with `why`. */
    void (*abort)(tn_communicator *c, const char *why);
    /** Leaves the job, in step with the others for at most `timeout_ns`, and frees it. Calls under way end
     * without an event, and their memory is not used any more. One that has failed does not wait. */
    void (*close)(tn_communicator *c, uint64_t timeout_ns);
} tn_collective_ops;

#ifdef __cplusplus
}
#endif

#endif
