/*
 * Calls. A call is cut in pieces, a few of which are under way at a time: their buffers stay in the cache.
 * An ordered sum, or a long one, goes in two halves: each rank gets its share of the piece's elements from
 * all others (MPI_Ialltoallv), adds them in the order of ranks, and gives the sums to all (MPI_Iallgatherv).
 * Any other piece has one half.
 * All ranks cut calls alike, and begin the halves on one communicator of MPI in the order of the pieces.
 */
#include "kv_mpi.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../common/collective_call.h"

#define PIECE_BYTES ((uint64_t)1 << 19) /* longer where so many ranks share it */
/* Of a rank. Open MPI's MPI_Iallreduce between two moves whole arrays: two halves move half of that. */
#define SHARE_BYTES ((uint64_t)1 << 16)
#define TYPE_BYTES 8u /* the most of a type that MPI moves */

/* ---- memory ------------------------------------------------------------------------------------------- */

tn_status tnmpi_pieces_make(tn_communicator *c, tn_err *err)
{
    const uint64_t shared = c->ranks * SHARE_BYTES;

    c->piece_bytes = shared > PIECE_BYTES ? shared : PIECE_BYTES;
    for (uint32_t i = 0; i < TNMPI_PIECES; i++) {
        tnmpi_piece *p = &c->pieces[i];

        p->request = MPI_REQUEST_NULL;
        p->data = malloc(c->piece_bytes);
        p->shares = malloc(c->piece_bytes + c->ranks * TYPE_BYTES);
        p->counts = malloc(4 * (size_t)c->ranks * sizeof *p->counts);
        if (!p->data || !p->shares || !p->counts)
            return tn_fail(err, TN_E_NOMEM, "out of memory");
    }
    return TN_OK;
}

bool tnmpi_pieces_free(tn_communicator *c)
{
    bool all = true;

    for (uint32_t i = 0; i < TNMPI_PIECES; i++) {
        tnmpi_piece *p = &c->pieces[i];

        if (p->data && p->request != MPI_REQUEST_NULL) {
            all = false;
            continue;
        }
        free(p->data);
        free(p->shares);
        free(p->counts);
    }
    return all;
}

typedef enum { PART_READ, PART_ADD, PART_WRITE } part_use; /* to the buffer, onto it, from it */

/* Between the elements of a call's parts, `count` of them from `first` on, and a buffer. */
static void parts_use(const tn_communicator *c, const tnmpi_call *call, part_use use, uint64_t first,
                      uint64_t count, uint8_t *buffer)
{
    const uint64_t size = count ? tn_dtype_bytes(call->dtype) : 0;

    for (const tn_collective_part *p = call->parts; count; p++) {
        const uint64_t n = first >= p->count ? 0 : p->count - first < count ? p->count - first : count;

        if (n && use == PART_READ)
            memcpy(buffer, (const uint8_t *)p->in + first * size, n * size);
        else if (n && use == PART_ADD)
            c->config.add(call->dtype, n, (const uint8_t *)p->in + first * size, buffer);
        else if (n)
            memcpy((uint8_t *)p->out + first * size, buffer, n * size);
        first -= first < p->count ? first : p->count;
        buffer += n * size;
        count -= n;
    }
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

static bool has_halves(const tn_communicator *c, const tnmpi_piece *p)
{
    const tnmpi_call *call = p->call;

    return call->kind == TN_COLLECTIVE_SUM &&
           (call->flags & TN_COLLECTIVE_ORDERED || added_type(call->dtype) == MPI_DATATYPE_NULL ||
            (c->ranks > 1 && p->count / c->ranks * tn_dtype_bytes(call->dtype) >= SHARE_BYTES));
}

/* Of the piece's elements. */
static uint64_t share_of(const tn_communicator *c, const tnmpi_piece *p, uint32_t rank)
{
    return p->count / c->ranks + (rank < p->count % c->ranks);
}

static uint64_t place_of(const tn_communicator *c, const tnmpi_piece *p, uint32_t rank)
{
    const uint64_t more = p->count % c->ranks;

    return p->count / c->ranks * rank + (rank < more ? rank : more);
}

/* The shares of others are sent from where the second half gives their sums back. This rank's own is read
 * when it is added. */
static int shares_exchange(tn_communicator *c, tnmpi_piece *p)
{
    const MPI_Datatype type = moved_type(p->call->dtype);
    const uint64_t size = tn_dtype_bytes(p->call->dtype), mine = share_of(c, p, c->rank);
    int *const to = p->counts, *const places = to + c->ranks, *const from = places + c->ranks;

    for (uint32_t r = 0, others = 0; r < c->ranks; r++) {
        const bool other = r != c->rank;

        to[r] = other ? (int)share_of(c, p, r) : 0;
        places[r] = (int)place_of(c, p, r);
        from[r] = other ? (int)mine : 0;
        from[c->ranks + r] = (int)(mine * others);
        others += other;
        parts_use(c, p->call, PART_READ, p->first + (uint64_t)places[r], (uint64_t)to[r],
                  p->data + (uint64_t)places[r] * size);
    }
    return MPI_Ialltoallv(p->data, to, places, type, p->shares, from, from + c->ranks, type, c->first,
                          &p->request);
}

static int first_half(tn_communicator *c, tnmpi_piece *p)
{
    const tnmpi_call *call = p->call;

    if (call->kind == TN_COLLECTIVE_BARRIER)
        return MPI_Ibarrier(c->first, &p->request);
    if (p->halves)
        return shares_exchange(c, p);
    if (call->kind == TN_COLLECTIVE_SUM || call->root == c->rank)
        parts_use(c, call, PART_READ, p->first, p->count, p->data);
    if (call->kind == TN_COLLECTIVE_BROADCAST)
        return MPI_Ibcast(p->data, (int)p->count, moved_type(call->dtype), (int)call->root, c->first,
                          &p->request);
    return MPI_Iallreduce(MPI_IN_PLACE, p->data, (int)p->count, added_type(call->dtype), MPI_SUM, c->first,
                          &p->request);
}

static int second_half(tn_communicator *c, tnmpi_piece *p)
{
    const tnmpi_call *call = p->call;
    const uint64_t mine = share_of(c, p, c->rank), bytes = mine * tn_dtype_bytes(call->dtype);
    const uint64_t place = place_of(c, p, c->rank);
    uint8_t *const sum = p->data + place * tn_dtype_bytes(call->dtype), *share = p->shares;

    for (uint32_t r = 0; r < c->ranks; r++) {
        if (r == c->rank)
            parts_use(c, call, r ? PART_ADD : PART_READ, p->first + place, mine, sum);
        else if (r)
            c->config.add(call->dtype, mine, share, sum);
        else
            memcpy(sum, share, bytes);
        share += r == c->rank ? 0 : bytes;
    }
    p->counts[c->rank] = (int)mine;
    p->second = true;
    return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, p->data, p->counts, p->counts + c->ranks,
                           moved_type(call->dtype), c->second, &p->request);
}

/* ---- from start to end -------------------------------------------------------------------------------- */

static uint64_t piece_elements(const tn_communicator *c, const tnmpi_call *call)
{
    return call->count ? c->piece_bytes / tn_dtype_bytes(call->dtype) : 1;
}

static void piece_begin(tn_communicator *c, tnmpi_call *call)
{
    const uint64_t left = call->count - call->begun, most = piece_elements(c, call);
    tnmpi_piece *p = &c->pieces[c->newest++ % TNMPI_PIECES];
    int error;

    p->call = call;
    p->first = call->begun;
    p->count = left < most ? left : most;
    p->halves = has_halves(c, p);
    p->second = false;
    call->begun += p->count;
    if ((error = first_half(c, p))) {
        p->request = MPI_REQUEST_NULL;
        tnmpi_doubt(c, call, error);
    }
}

/* As many as there are places. */
static bool pieces_begin(tn_communicator *c)
{
    const uint64_t before = c->newest;

    while (c->next && !c->failed && !c->doubt && c->newest - c->oldest < TNMPI_PIECES) {
        piece_begin(c, c->next);
        if (c->next->begun == c->next->count)
            c->next = c->next->next;
    }
    return c->newest != before;
}

static tn_status call_check(const tn_communicator *c, const tn_collective_call *call, uint64_t *count,
                            tn_err *err)
{
    const collective_limits limits = {
        "MPI", INT_MAX, tn_dtype_bits(call->dtype) >= 8 && moved_type(call->dtype) != MPI_DATATYPE_NULL};

    return c->failed ? tn_fail(err, TN_E_PEER, c->why)
                     : collective_call_check(call, c->ranks, &limits, count, err);
}

tn_status tnmpi_start(tn_communicator *c, const tn_collective_call *from, tn_err *err)
{
    uint64_t count = 0;
    tn_status st = call_check(c, from, &count, err);
    tnmpi_call *call;

    if (st)
        return st;
    if (!(call = calloc(1, sizeof *call + from->part_count * sizeof call->parts[0])))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    call->cookie = from->cookie;
    call->timeout_ns = from->timeout_ns;
    call->flags = from->flags;
    call->kind = from->kind;
    call->root = from->root;
    call->dtype = from->dtype;
    call->count = count;
    call->left = count ? (count - 1) / piece_elements(c, call) + 1 : 1;
    call->part_count = from->part_count;
    if (from->part_count)
        memcpy(call->parts, from->parts, from->part_count * sizeof call->parts[0]);
    (void)snprintf(call->name, sizeof call->name, "%s", from->name ? from->name : "");
    call->number = ++c->started;
    call->deadline_ns = monotonic_ns() + from->timeout_ns;
    *c->last = call;
    c->last = &call->next;
    c->next = c->next ? c->next : call;
    (void)pieces_begin(c);
    return TN_OK;
}

/* True: the half of it that was under way is over. */
static bool half_over(tn_communicator *c, tnmpi_piece *p)
{
    int flag = 0;
    const int error = MPI_Test(&p->request, &flag, MPI_STATUS_IGNORE);

    if (error)
        tnmpi_doubt(c, p->call, error);
    return !error && flag;
}

/* `*before`: all pieces before it have begun their second halves, or have none. True: it has moved. */
static bool piece_move(tn_communicator *c, tnmpi_piece *p, bool *before)
{
    int error = MPI_SUCCESS;

    if (!p->halves || p->second) {
        if (!half_over(c, p))
            return false;
        parts_use(c, p->call, PART_WRITE, p->first, p->count, p->data);
        p->call->left--;
        p->call = NULL;
        return true;
    }
    if (p->request != MPI_REQUEST_NULL && !half_over(c, p)) {
        *before = false;
        return false;
    }
    if (*before && (error = second_half(c, p))) {
        p->request = MPI_REQUEST_NULL;
        tnmpi_doubt(c, p->call, error);
    }
    *before = *before && p->second;
    return p->second;
}

bool tnmpi_move(tn_communicator *c)
{
    bool before = true, moved = false;

    for (uint64_t n = c->oldest; n != c->newest && !c->failed; n++) {
        tnmpi_piece *p = &c->pieces[n % TNMPI_PIECES];

        if (p->call && !p->call->lost)
            moved |= piece_move(c, p, &before);
    }
    while (c->oldest != c->newest && !c->pieces[c->oldest % TNMPI_PIECES].call)
        c->oldest++;
    moved |= pieces_begin(c);
    for (tnmpi_call *call = c->calls; call && !c->failed; call = call->next)
        if (call->left && !call->lost && monotonic_ns() > call->deadline_ns)
            tnmpi_doubt(c, call, MPI_SUCCESS);
    return moved;
}
