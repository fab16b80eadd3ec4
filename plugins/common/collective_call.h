/* On the host, for plugins of collectives: whether a call is one, before anything of it is begun. */
#ifndef TNB_COLLECTIVE_CALL_H
#define TNB_COLLECTIVE_CALL_H

#include <inttypes.h>

#include "tenon/plugin/collective.h"
#include "tenon/plugin/util.h"

/* What a library bears. */
typedef struct {
    const char *library; /* its name, for messages */
    uint64_t elements;   /* of one call, at most */
    int32_t moved;       /* not 0: it moves elements of the call's type */
} collective_limits;

/* `*count`: the elements of all parts together. TN_E_ARG says what is wrong with the call. */
static inline tn_status collective_call_check(const tn_collective_call *call, uint32_t ranks,
                                              const collective_limits *limits, uint64_t *count, tn_err *err)
{
    if (call->kind < TN_COLLECTIVE_SUM || call->kind > TN_COLLECTIVE_BARRIER ||
        call->flags & ~TN_COLLECTIVE_CALL_KNOWN)
        return tn_failf(err, TN_E_ARG, "kind %u with flags %#x is no call", call->kind, call->flags);
    if (call->kind == TN_COLLECTIVE_BARRIER && call->part_count)
        return tn_fail(err, TN_E_ARG, "a barrier with parts");
    if (call->kind == TN_COLLECTIVE_BROADCAST && call->root >= ranks)
        return tn_failf(err, TN_E_ARG, "root %u of %u ranks", call->root, ranks);
    if (call->part_count && !limits->moved)
        return tn_failf(err, TN_E_ARG, "type %d has elements that %s does not move", (int)call->dtype,
                        limits->library);
    *count = 0;
    for (uint32_t i = 0; i < call->part_count; i++) {
        if (call->parts[i].count > limits->elements - *count)
            return tn_failf(err, TN_E_ARG, "more than %" PRIu64 " elements in one call", limits->elements);
        *count += call->parts[i].count;
    }
    return TN_OK;
}

#endif
