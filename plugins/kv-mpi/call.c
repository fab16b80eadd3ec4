/*
 * Calls. An ordered sum, or a long one, has two halves: each rank gets its share of the elements from all
 * (MPI_Ialltoallv), adds them in the order of ranks, and gives the sums to all (MPI_Iallgatherv). Any other
 * call has one half.
 * All ranks begin the halves of one communicator of MPI in the order of the calls.
 */
#include "kv_mpi.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../common/collective_call.h"

/* Of a rank. Open MPI's MPI_Iallreduce between two moves whole arrays: two halves move half of that. */
#define SHARE_BYTES 65536u

/* ---- memory ------------------------------------------------------------------------------------------- */

/* A kept one that is long enough, the shortest; else a new one. */
static bool buffer_take(tn_communicator *c, uint64_t bytes, tnmpi_buffer *out)
{
    tnmpi_buffer *best = NULL;

    for (uint32_t i = 0; i < TNMPI_SPARES; i++) {
        tnmpi_buffer *b = &c->spare[i];

        if (b->data && b->bytes >= bytes && b->bytes / 4 <= bytes && (!best || b->bytes < best->bytes))
            best = b;
    }
    if (best) {
        *out = *best;
        *best = (tnmpi_buffer){NULL, 0};
        return true;
    }
    *out = (tnmpi_buffer){malloc(bytes ? bytes : 1), bytes};
    return out->data != NULL;
}

/* Kept in the place of a shorter one. */
static void buffer_give(tn_communicator *c, tnmpi_buffer *b)
{
    tnmpi_buffer *least = &c->spare[0];

    for (uint32_t i = 1; i < TNMPI_SPARES; i++)
        if (c->spare[i].bytes < least->bytes)
            least = &c->spare[i];
    if (least->bytes < b->bytes) {
        free(least->data);
        *least = *b;
    } else {
        free(b->data);
    }
    *b = (tnmpi_buffer){NULL, 0};
}

void tnmpi_call_free(tn_communicator *c, tnmpi_call *call)
{
    if (call->request != MPI_REQUEST_NULL)
        return; /* it may come yet: all that MPI knows of stays */
    buffer_give(c, &call->data);
    buffer_give(c, &call->shares);
    free(call->counts);
    free(call);
}

/* ---- halves ------------------------------------------------------------------------------------------- */

/* Types of MPI by the size of an element, to move it. */
static MPI_Datatype moved_type(int32_t dtype)
{
    switch (tn_dtype_bytes(dtype)) {
    case 1:
        return MPI_UINT8_T;
    case 2:
        return MPI_UINT16_T;
    case 4:
        return MPI_UINT32_T;
    case 8:
        return MPI_UINT64_T;
    default:
        return MPI_DATATYPE_NULL;
    }
}

/* Types that MPI adds as the host does. */
static MPI_Datatype added_type(int32_t dtype)
{
    switch (dtype) {
    case TN_F32:
        return MPI_FLOAT;
    case TN_F64:
        return MPI_DOUBLE;
    case TN_I32:
        return MPI_INT32_T;
    case TN_I64:
        return MPI_INT64_T;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static bool has_halves(const tn_communicator *c, const tnmpi_call *call)
{
    return call->kind == TN_COLLECTIVE_SUM &&
           (call->flags & TN_COLLECTIVE_ORDERED || added_type(call->dtype) == MPI_DATATYPE_NULL ||
            (c->ranks > 1 && call->count / c->ranks * tn_dtype_bytes(call->dtype) >= SHARE_BYTES));
}

/* The elements of rank r are those from places[r] on; `mine` of them are this one's, and come from each. */
static bool shares_make(tn_communicator *c, tnmpi_call *call)
{
    const uint64_t each = call->count / c->ranks, more = call->count % c->ranks;
    const uint64_t mine = each + (c->rank < more);
    int *counts = malloc(4 * (size_t)c->ranks * sizeof *counts);

    if (!counts || !buffer_take(c, mine * c->ranks * tn_dtype_bytes(call->dtype), &call->shares)) {
        free(counts);
        return false;
    }
    call->counts = counts;
    for (uint32_t r = 0; r < c->ranks; r++) {
        counts[r] = (int)(each + (r < more));
        counts[c->ranks + r] = (int)(each * r + (r < more ? r : more));
        counts[2 * c->ranks + r] = (int)mine;
        counts[3 * c->ranks + r] = (int)(mine * r);
    }
    return true;
}

static int first_half(tn_communicator *c, tnmpi_call *call)
{
    const MPI_Datatype type = moved_type(call->dtype);
    int *n = call->counts;

    if (call->kind == TN_COLLECTIVE_BARRIER)
        return MPI_Ibarrier(c->first, &call->request);
    if (call->kind == TN_COLLECTIVE_BROADCAST)
        return MPI_Ibcast(call->data.data, (int)call->count, type, (int)call->root, c->first, &call->request);
    if (!n)
        return MPI_Iallreduce(MPI_IN_PLACE, call->data.data, (int)call->count, added_type(call->dtype),
                              MPI_SUM, c->first, &call->request);
    return MPI_Ialltoallv(call->data.data, n, n + c->ranks, type, call->shares.data, n + 2 * c->ranks,
                          n + 3 * c->ranks, type, c->first, &call->request);
}

static int second_half(tn_communicator *c, tnmpi_call *call)
{
    const MPI_Datatype type = moved_type(call->dtype);
    const int mine = call->counts[c->rank];
    const uint64_t bytes = (uint64_t)mine * tn_dtype_bytes(call->dtype);

    for (uint32_t r = 1; r < c->ranks; r++)
        c->config.add(call->dtype, (uint64_t)mine, call->shares.data + r * bytes, call->shares.data);
    call->second = true;
    return MPI_Iallgatherv(call->shares.data, mine, type, call->data.data, call->counts,
                           call->counts + c->ranks, type, c->second, &call->request);
}

/* ---- from start to end -------------------------------------------------------------------------------- */

/* Between the parts and the buffer, in which they lie one behind the other. */
static void parts_move(const tnmpi_call *call, bool out)
{
    uint8_t *at = call->data.data;

    for (uint32_t i = 0; i < call->part_count; i++) {
        const tn_collective_part *p = &call->parts[i];
        const uint64_t bytes = p->count * tn_dtype_bytes(call->dtype);

        if (bytes && out)
            memcpy(p->out, at, bytes);
        else if (bytes)
            memcpy(at, p->in, bytes);
        at += bytes;
    }
}

static tn_status call_check(const tn_communicator *c, const tn_collective_call *call, uint64_t *count,
                            tn_err *err)
{
    const collective_limits limits = {
        "MPI", INT_MAX, tn_dtype_bits(call->dtype) >= 8 && moved_type(call->dtype) != MPI_DATATYPE_NULL};

    return c->failed ? tn_fail(err, TN_E_PEER, c->why)
                     : collective_call_check(call, c->ranks, &limits, count, err);
}

static tnmpi_call *call_make(tn_communicator *c, const tn_collective_call *from, uint64_t count)
{
    tnmpi_call *call = calloc(1, sizeof *call + from->part_count * sizeof call->parts[0]);

    if (!call)
        return NULL;
    call->request = MPI_REQUEST_NULL;
    call->cookie = from->cookie;
    call->timeout_ns = from->timeout_ns;
    call->flags = from->flags;
    call->kind = from->kind;
    call->root = from->root;
    call->dtype = from->dtype;
    call->count = count;
    call->part_count = from->part_count;
    if (from->part_count)
        memcpy(call->parts, from->parts, from->part_count * sizeof call->parts[0]);
    (void)snprintf(call->name, sizeof call->name, "%s", from->name ? from->name : "");
    if (!buffer_take(c, count * (count ? tn_dtype_bytes(call->dtype) : 1), &call->data) ||
        (has_halves(c, call) && !shares_make(c, call))) {
        tnmpi_call_free(c, call);
        return NULL;
    }
    return call;
}

tn_status tnmpi_start(tn_communicator *c, const tn_collective_call *from, tn_err *err)
{
    uint64_t count = 0;
    tn_status st = call_check(c, from, &count, err);
    tnmpi_call *call;
    int error;

    if (st)
        return st;
    if (!(call = call_make(c, from, count)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    if (from->kind != TN_COLLECTIVE_BROADCAST || from->root == c->rank)
        parts_move(call, false);
    call->number = ++c->started;
    call->deadline_ns = monotonic_ns() + from->timeout_ns;
    *c->last = call;
    c->last = &call->next;
    if ((error = first_half(c, call))) {
        call->request = MPI_REQUEST_NULL;
        tnmpi_doubt(c, call, error);
    }
    return TN_OK;
}

/* True: its half is over. */
static bool half_over(tn_communicator *c, tnmpi_call *call)
{
    int flag = 0;
    const int error = MPI_Test(&call->request, &flag, MPI_STATUS_IGNORE);

    if (error)
        tnmpi_doubt(c, call, error);
    return !error && flag;
}

void tnmpi_move(tn_communicator *c)
{
    bool before = true; /* all calls before have begun their second halves, or have none */

    for (tnmpi_call *call = c->calls; call && !c->failed; call = call->next) {
        int error = MPI_SUCCESS;

        if (call->ended || call->lost)
            continue;
        if (!call->counts || call->second) {
            if (half_over(c, call)) {
                parts_move(call, true);
                call->ended = true;
            }
        } else if (call->request != MPI_REQUEST_NULL && !half_over(c, call)) {
            before = false;
        } else if (before && (error = second_half(c, call))) {
            call->request = MPI_REQUEST_NULL;
            tnmpi_doubt(c, call, error);
        } else {
            before = before && call->second;
        }
        if (!call->ended && monotonic_ns() > call->deadline_ns)
            tnmpi_doubt(c, call, MPI_SUCCESS);
    }
}
