/**
 * Sketch: a collectives plugin (all-reduce and its like over devices of several processes). Hosts refuse this
 * kind until the parameter store uses one; the table may change before.
 */
#ifndef TENON_PLUGIN_COLLECTIVE_H
#define TENON_PLUGIN_COLLECTIVE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_communicator tn_communicator; /* the plugin's: one rank of one group */

#define TN_COLLECTIVE_ID_BYTES 128

#define TN_REDUCE_SUM 0u
#define TN_REDUCE_PRODUCT 1u
#define TN_REDUCE_MIN 2u
#define TN_REDUCE_MAX 3u
#define TN_REDUCE_MEAN 4u

/** One call: queued on `stream`, in the same order on all ranks. `in` and `out` may be one place. */
typedef struct tn_collective_call {
    uint32_t struct_size;
    int32_t dtype;   /* TN_F32 … */
    uint32_t reduce; /* TN_REDUCE_… */
    int32_t root;    /* of reduce and broadcast */
    const void *in;
    void *out;
    int64_t count;     /* elements of `in` */
    tn_stream *stream; /* NULL on the host */
} tn_collective_call;

typedef struct tn_collective_ops {
    tn_capability head; /* kind TN_KIND_COLLECTIVE, id: the device type, "cuda" */
    /** An id of a new group, which the host hands to all ranks. */
    tn_status (*unique_id)(void *plugin, uint8_t *id, tn_err *err);
    /** All `ranks` processes call it, each with its own `rank`. TN_PENDING: not all are there, ask again. */
    tn_status (*create)(void *plugin, tn_device_handle *device, const uint8_t *id, int32_t rank,
                        int32_t ranks, tn_communicator **out, tn_err *err);
    void (*destroy)(tn_communicator *c);
    tn_status (*all_reduce)(tn_communicator *c, const tn_collective_call *call, tn_err *err);
    tn_status (*reduce)(tn_communicator *c, const tn_collective_call *call, tn_err *err);
    tn_status (*broadcast)(tn_communicator *c, const tn_collective_call *call, tn_err *err);
    tn_status (*all_gather)(tn_communicator *c, const tn_collective_call *call, tn_err *err);
    /** [any] Ends what hangs; calls under way fail on all ranks. */
    void (*abort)(tn_communicator *c);
    /** [any] TN_OK, or what happened to calls that were queued. */
    tn_status (*error)(tn_communicator *c, tn_err *err);
} tn_collective_ops;

#ifdef __cplusplus
}
#endif

#endif
