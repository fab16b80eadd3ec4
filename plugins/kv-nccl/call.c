/*
 * Calls. Parts are gathered in a buffer of the device, NCCL works there, and the parts are written from it
 * once the sum is known to be there: nothing that hangs reads or writes memory of the host.
 *
 * An ordered sum has two halves: each rank gets its share of the elements from all (ncclSend, ncclRecv), adds
 * them in the order of ranks, and gives the sums to all (ncclAllGather). Any other call has one half. NCCL is
 * given calls in their order, each once it has taken the one before: its communicator does not block, and
 * takes nothing while its state is ncclInProgress (NCCL, "Non-blocking communicators").
 */
#include "kv_nccl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../common/collective_call.h"

#define COUNT_MAX ((uint64_t)1 << 44) /* elements of one call */

const char *tnnccl_kind_name(uint32_t kind)
{
    static const char *const names[] = {"?", "all-reduce", "broadcast", "barrier"};

    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

/* ---- starting ------------------------------------------------------------------------------------------ */

/* Types that NCCL adds; -1: it does not. */
static int added_type(int32_t dtype)
{
    static const struct {
        int32_t dtype;
        ncclDataType_t type;
    } rows[] = {{TN_F32, ncclFloat32}, {TN_F64, ncclFloat64}, {TN_F16, ncclFloat16}, {TN_BF16, ncclBfloat16},
                {TN_I32, ncclInt32},   {TN_I64, ncclInt64},   {TN_U8, ncclUint8},    {TN_I8, ncclInt8},
                {TN_U32, ncclUint32},  {TN_U64, ncclUint64}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == dtype)
            return (int)rows[i].type;
    return -1;
}

static tn_status call_check(const tn_communicator *c, const tn_collective_call *call, uint64_t *count,
                            tn_err *err)
{
    const collective_limits limits = {"NCCL", COUNT_MAX, tn_dtype_bits(call->dtype) >= 8};

    return c->failed ? tn_fail(err, TN_E_PEER, c->why)
                     : collective_call_check(call, c->ranks, &limits, count, err);
}

void tnnccl_call_free(tn_communicator *c, tnnccl_call *call)
{
    tnnccl_buffer *const all[] = {call->data, call->shares, call->pinned};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            all[i]->taken = false;
    if (call->event)
        (void)c->lib->cuda.event_destroy(call->event);
    free(call);
}

/* In the context. Buffers for `count` elements; none for nothing. */
static bool buffers_take(tn_communicator *c, tnnccl_call *call, uint64_t count)
{
    const uint64_t size = tn_dtype_bytes(call->dtype);
    uint64_t room = call->bytes;

    for (uint32_t i = 0; i < call->part_count; i++)
        call->hosts |= call->parts[i].count &&
                       (!tnnccl_on_device(c, call->parts[i].out) || !tnnccl_on_device(c, call->parts[i].in));
    if (call->ordered) {
        call->share_bytes = ((count - 1) / c->ranks + 1) * size;
        room = call->share_bytes * c->ranks;
    }
    return (call->data = tnnccl_buffer_take(c, room, false)) &&
           (!call->ordered || (call->shares = tnnccl_buffer_take(c, room, false))) &&
           (!call->hosts || (call->pinned = tnnccl_buffer_take(c, call->bytes, true))) &&
           !c->lib->cuda.event_create(&call->event, CU_EVENT_DISABLE_TIMING);
}

static tnnccl_call *call_make(tn_communicator *c, const tn_collective_call *from, uint64_t count)
{
    tnnccl_call *call = calloc(1, sizeof *call + from->part_count * sizeof call->parts[0]);

    if (!call)
        return NULL;
    call->cookie = from->cookie;
    call->timeout_ns = from->timeout_ns;
    call->kind = from->kind;
    call->root = from->root;
    call->dtype = from->dtype;
    call->bytes = count ? count * tn_dtype_bytes(from->dtype) : 0;
    call->part_count = from->part_count;
    call->ordered = from->kind == TN_COLLECTIVE_SUM && count &&
                    (from->flags & TN_COLLECTIVE_ORDERED || added_type(from->dtype) < 0);
    if (from->part_count)
        memcpy(call->parts, from->parts, from->part_count * sizeof call->parts[0]);
    (void)snprintf(call->name, sizeof call->name, "%s", from->name ? from->name : "");
    if (!count)
        call->step = TNNCCL_ENDED;
    else if (!buffers_take(c, call, count)) {
        tnnccl_call_free(c, call);
        return NULL;
    }
    return call;
}

/* Between the parts and the buffer, in which they lie one behind the other; what lies on the host goes by way
 * of pinned memory. In the context. */
static CUresult parts_copy(tn_communicator *c, const tnnccl_call *call, bool out)
{
    const CUdeviceptr data = (CUdeviceptr)(uintptr_t)call->data->data;
    CUresult result = CUDA_SUCCESS;
    uint64_t at = 0;

    for (uint32_t i = 0; i < call->part_count && !result; i++) {
        const tn_collective_part *p = &call->parts[i];
        const uint64_t bytes = p->count * tn_dtype_bytes(call->dtype);
        CUdeviceptr host = (CUdeviceptr)(uintptr_t)(out ? p->out : p->in);

        if (bytes && !tnnccl_on_device(c, out ? p->out : p->in)) {
            uint8_t *pinned = (uint8_t *)call->pinned->data + at;

            if (!out)
                memcpy(pinned, p->in, bytes);
            host = (CUdeviceptr)(uintptr_t)pinned;
        }
        if (bytes)
            result = c->lib->cuda.copy(out ? host : data + at, out ? data + at : host, bytes, c->copies);
        at += bytes;
    }
    return result;
}

/* What came into pinned memory goes to the host. In the context. */
static void hosts_write(tn_communicator *c, const tnnccl_call *call)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < call->part_count; i++) {
        const tn_collective_part *p = &call->parts[i];
        const uint64_t bytes = p->count * tn_dtype_bytes(call->dtype);

        if (bytes && !tnnccl_on_device(c, p->out))
            memcpy(p->out, (const uint8_t *)call->pinned->data + at, bytes);
        at += bytes;
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    for (uint32_t i = 0; i < 8; i++, value >>= 8)
        hash = (hash ^ (value & 0xff)) * 0x100000001b3u;
    return hash;
}

/* Of what has to be the same on all ranks. */
static uint64_t hash_of(const tn_collective_call *call, const char *name)
{
    uint64_t hash = mix(mix(0xcbf29ce484222325u, call->kind), call->flags);

    if (call->kind == TN_COLLECTIVE_BROADCAST)
        hash = mix(hash, call->root);
    for (uint32_t i = 0; i < call->part_count; i++)
        hash = mix(mix(hash, (uint64_t)call->dtype), call->parts[i].count);
    for (; *name; name++)
        hash = mix(hash, (uint8_t)*name);
    return hash;
}

tn_status tnnccl_start(tn_communicator *c, const tn_collective_call *from, tn_err *err)
{
    uint64_t count = 0;
    tn_status st = call_check(c, from, &count, err);
    CUresult result = CUDA_SUCCESS;
    tnnccl_call *call;
    char text[200];

    if (st)
        return st;
    if (!tnnccl_enter(c))
        return tn_fail(err, TN_E_PEER, "the GPU's context cannot be used");
    if ((call = call_make(c, from, count)) && call->step == TNNCCL_LOADED &&
        ((from->kind == TN_COLLECTIVE_BROADCAST && from->root != c->rank) ||
         !(result = parts_copy(c, call, false))))
        result = c->lib->cuda.event_record(call->event, c->copies, 0);
    tnnccl_leave(c);
    if (!call)
        return tn_fail(err, TN_E_NOMEM, "out of memory for a call of NCCL");
    call->number = ++c->started;
    call->deadline_ns = tnnccl_now() + from->timeout_ns;
    *c->last = call;
    c->last = &call->next;
    (void)snprintf(text, sizeof text, "%s of %s, %" PRIu64 " elements of type %d",
                   tnnccl_kind_name(from->kind), call->name, count, from->part_count ? (int)from->dtype : -1);
    tnnccl_started(c, hash_of(from, call->name), text);
    if (result) {
        (void)tnnccl_driver_fail(c->lib, result, "a copy of gradients", err);
        tnnccl_break(c, TN_E_DEVICE, true, "%.300s", err->message);
    }
    return TN_OK;
}

/* ---- NCCL ---------------------------------------------------------------------------------------------- */

static void nccl_fails(tn_communicator *c, const tnnccl_call *call, ncclResult_t result)
{
    tnnccl_break(c, TN_E_PEER, true, "NCCL fails in %s of %s: %s: %.150s", tnnccl_kind_name(call->kind),
                 call->name, c->lib->nccl.text(result), c->lib->nccl.last_text(c->comm));
}

static void device_fails(tn_communicator *c, const tnnccl_call *call, CUresult result)
{
    tn_err err = {0};

    (void)tnnccl_driver_fail(c->lib, result, "the GPU", &err);
    tnnccl_break(c, TN_E_DEVICE, true, "%s of %s: %.200s", tnnccl_kind_name(call->kind), call->name,
                 err.message);
}

static bool began(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Each rank's share to that rank. */
static ncclResult_t shares_send(tn_communicator *c, const tnnccl_call *call)
{
    const uint64_t bytes = call->share_bytes;
    ncclResult_t result = c->lib->nccl.group_start(), ended;

    if (!began(result))
        return result;
    for (uint32_t r = 0; r < c->ranks && began(result); r++) {
        result = c->lib->nccl.send((const uint8_t *)call->data->data + r * bytes, bytes, ncclUint8, (int)r,
                                   c->comm, c->sums);
        if (began(result))
            result = c->lib->nccl.recv((uint8_t *)call->shares->data + r * bytes, bytes, ncclUint8, (int)r,
                                       c->comm, c->sums);
    }
    ended = c->lib->nccl.group_end();
    return began(result) ? ended : result;
}

static ncclResult_t first_half(tn_communicator *c, const tnnccl_call *call)
{
    void *data = call->data->data;

    if (call->ordered)
        return shares_send(c, call);
    if (call->kind == TN_COLLECTIVE_BROADCAST)
        return c->lib->nccl.broadcast(data, data, call->bytes, ncclUint8, (int)call->root, c->comm, c->sums);
    return c->lib->nccl.all_reduce(data, data, call->bytes / tn_dtype_bytes(call->dtype),
                                   (ncclDataType_t)added_type(call->dtype), ncclSum, c->comm, c->sums);
}

/* Whether NCCL has taken what it was given before. */
static bool nccl_ready(tn_communicator *c, const tnnccl_call *call)
{
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = c->lib->nccl.state(c->comm, &state);

    if (result != ncclSuccess || !began(state))
        nccl_fails(c, call, result != ncclSuccess ? result : state);
    return !c->failed && state == ncclSuccess;
}

/* The next step of a call that NCCL is to be given, or was; true: it was made. */
static bool nccl_step(tn_communicator *c, tnnccl_call *call)
{
    CUresult device = CUDA_SUCCESS;
    ncclResult_t result = ncclSuccess;
    tn_err err = {0};

    if (!nccl_ready(c, call))
        return false;
    if (call->step == TNNCCL_LOADED) {
        if (!(device = c->lib->cuda.stream_event(c->sums, call->event, 0)))
            result = first_half(c, call);
    } else if (call->step == TNNCCL_FIRST && call->ordered) {
        if (tnnccl_sum_add(c, call, &err)) {
            tnnccl_break(c, TN_E_DEVICE, true, "%.300s", err.message);
            return false;
        }
        result = c->lib->nccl.all_gather(call->shares->data, call->data->data, call->share_bytes, ncclUint8,
                                         c->comm, c->sums);
    } else {
        device = c->lib->cuda.event_record(call->event, c->sums, 0);
        call->step = TNNCCL_SECOND;
    }
    if (device)
        device_fails(c, call, device);
    else if (!began(result))
        nccl_fails(c, call, result);
    else
        call->step++;
    return !c->failed;
}

/* ---- going on ------------------------------------------------------------------------------------------ */

/* Whether the stream has come to the call's event. */
static bool reached(tn_communicator *c, const tnnccl_call *call)
{
    const CUresult result = c->lib->cuda.event_query(call->event);

    if (result && result != CUDA_ERROR_NOT_READY)
        device_fails(c, call, result);
    return !result;
}

static void copied_step(tn_communicator *c, tnnccl_call *call)
{
    CUresult result;

    if (!reached(c, call))
        return;
    if (call->step == TNNCCL_STORED) {
        if (call->hosts)
            hosts_write(c, call);
        call->step = TNNCCL_ENDED;
        return;
    }
    if ((result = parts_copy(c, call, true)) ||
        (result = c->lib->cuda.event_record(call->event, c->copies, 0)))
        device_fails(c, call, result);
    else
        call->step = TNNCCL_STORED;
}

bool tnnccl_may_end(const tn_communicator *c, const tnnccl_call *call)
{
    return call->step == TNNCCL_ENDED && call->number <= c->agreed;
}

uint64_t tnnccl_issued(const tn_communicator *c)
{
    const tnnccl_call *call = c->calls;

    while (call && call->step >= TNNCCL_SUMMED)
        call = call->next;
    return call ? call->number - 1 : c->started;
}

bool tnnccl_works(const tn_communicator *c)
{
    for (const tnnccl_call *call = c->calls; call; call = call->next)
        if (call->step != TNNCCL_ENDED)
            return true;
    return false;
}

void tnnccl_move(tn_communicator *c)
{
    bool before = true; /* NCCL has been given all calls before */

    if (!c->calls || c->failed || !tnnccl_enter(c))
        return;
    for (tnnccl_call *call = c->calls; call && !c->failed; call = call->next) {
        while (before && call->step < TNNCCL_SUMMED && nccl_step(c, call))
            continue;
        before = before && call->step >= TNNCCL_SUMMED;
        while (!c->failed && (call->step == TNNCCL_SUMMED || call->step == TNNCCL_STORED)) {
            const tnnccl_step step = call->step;

            copied_step(c, call);
            if (call->step == step)
                break;
        }
        if (!c->failed && !tnnccl_may_end(c, call) && tnnccl_now() > call->deadline_ns)
            tnnccl_late(c, call);
    }
    tnnccl_leave(c);
}
