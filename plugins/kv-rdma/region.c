/*
 * Memory of the host. What it adds is registered once, however often it is added, until it is removed as
 * often: the host alone knows when memory goes, so nothing is kept registered behind its back.
 *
 * A landing is a registration of its own, of these bytes and no others: the device refuses a write
 * outside of it, or with another key, and ends the link. A put is a WRITE of the payload, then a head in
 * the ring, on one queue pair: the head comes when the payload is there.
 */
#include "kv_rdma.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE_MASK ((uint64_t)4095)
#define RANDOM_BITS ((uint64_t)0xfffff000)

/* ---- regions ------------------------------------------------------------------------------------------ */

tn_status tnrdma_region_add(tn_transport *t, void *data, uint64_t bytes, tn_region **out, tn_err *err)
{
    tn_region *r = t->regions;
    struct ibv_mr *mr;

    if (!data || !bytes)
        return tn_fail(err, TN_E_ARG, "a region without bytes");
    while (r && (r->data != data || r->bytes != bytes))
        r = r->next;
    if (r) {
        r->added++;
        *out = r;
        return TN_OK;
    }
    if (!(r = calloc(1, sizeof *r)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a region");
    if (!(mr = t->verbs->mr_reg(t->device.pd, data, bytes, (uintptr_t)data, IBV_ACCESS_LOCAL_WRITE))) {
        free(r);
        return tnrdma_fail_memory(err, bytes, errno);
    }
    *r = (tn_region){.next = t->regions, .data = data, .bytes = bytes, .mr = mr, .added = 1};
    t->regions = r;
    *out = r;
    return TN_OK;
}

tn_status tnrdma_region_remove(tn_transport *t, tn_region *region, tn_err *err)
{
    tn_region **at = &t->regions;

    if (region->added > 1) {
        region->added--;
        return TN_OK;
    }
    if (region->uses)
        return tn_failf(err, TN_E_STATE, "%u puts or landings use the region", (unsigned)region->uses);
    while (*at != region)
        at = &(*at)->next;
    *at = region->next;
    (void)t->verbs->mr_dereg(region->mr);
    free(region);
    return TN_OK;
}

void tnrdma_regions_free(tn_transport *t)
{
    while (t->regions) {
        t->regions->added = 1;
        t->regions->uses = 0;
        (void)tnrdma_region_remove(t, t->regions, NULL);
    }
}

static bool covers(const tn_region *r, const void *data, uint64_t bytes)
{
    const uintptr_t at = (uintptr_t)data, from = (uintptr_t)r->data;

    return at >= from && bytes <= r->bytes && at - from <= r->bytes - bytes;
}

/* ---- landings ----------------------------------------------------------------------------------------- */

const tnrdma_landing *tnrdma_landing_find(const tn_link *l, uint64_t token)
{
    const tnrdma_landing *a = l->landings;

    while (a && a->token != token)
        a = a->next;
    return a;
}

tn_status tnrdma_landing_add(tn_link *l, uint64_t slot, void *data, uint64_t bytes, tn_region *region,
                             uint64_t *token, tn_err *err)
{
    const uint64_t from = (uintptr_t)data & PAGE_MASK;
    tn_transport *t = l->t;
    tnrdma_landing *a;
    uint32_t random;
    tn_status st;

    if (!data || !bytes || (region && !covers(region, data, bytes)))
        return tn_fail(err, TN_E_ARG, "a landing without bytes, or outside of its region");
    if (l->state >= RING_CLOSING)
        return tn_fail(err, TN_E_PEER, "the link is closed");
    if ((st = random_fill(&random, sizeof random, err)))
        return st;
    if (!(a = calloc(1, sizeof *a)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a landing");
    *a = (tnrdma_landing){.next = l->landings, .slot = slot, .bytes = bytes, .region = region};
    a->mr =
        t->verbs->mr_reg(t->device.pd, data, bytes, from, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!a->mr) {
        free(a);
        return tnrdma_fail_memory(err, bytes, errno);
    }
    a->token = (uint64_t)a->mr->rkey << 32 | (random & RANDOM_BITS) | from;
    if (region)
        region->uses++;
    l->landings = a;
    *token = a->token;
    return TN_OK;
}

void tnrdma_landing_remove(tn_link *l, uint64_t token)
{
    for (tnrdma_landing **at = &l->landings; *at; at = &(*at)->next) {
        tnrdma_landing *a = *at;

        if (a->token != token)
            continue;
        *at = a->next;
        (void)l->t->verbs->mr_dereg(a->mr);
        if (a->region)
            a->region->uses--;
        free(a);
        return;
    }
}

void tnrdma_landings_free(tn_link *l)
{
    while (l->landings)
        tnrdma_landing_remove(l, l->landings->token);
}

/* ---- puts --------------------------------------------------------------------------------------------- */

tn_status tnrdma_put_message(tn_link *l, const tn_send *m, tn_err *err)
{
    if (m->struct_size < TN_END(tn_send, offset) || m->offset > UINT64_MAX / 2)
        return tn_fail(err, TN_E_ARG, "a put behind the end of every landing");
    return tnrdma_message_queue(l, m, true, err);
}

/* The pieces, where they lie in regions; their count, or -1: they do not all. */
static int pieces_of(const tnrdma_outgoing *o, struct ibv_sge *out)
{
    int count = 0;

    for (uint32_t i = 0; i < o->base.piece_count; i++) {
        const tn_piece *p = &o->base.pieces[i];

        if (!p->bytes)
            continue;
        if (!o->base.told || !p->region || !covers(p->region, p->data, p->bytes) ||
            count == TNRDMA_SGES_MAX || p->bytes > UINT32_MAX)
            return -1;
        out[count++] = (struct ibv_sge){
            .addr = (uintptr_t)p->data, .length = (uint32_t)p->bytes, .lkey = p->region->mr->lkey};
    }
    return count;
}

/* Pieces that lie anywhere: a copy of them, registered for this put. */
static int pieces_copy(tn_link *l, const tnrdma_outgoing *o, tnrdma_put *p, struct ibv_sge *out)
{
    uint8_t *to = malloc(o->head.bytes);

    if (!(p->copy = to))
        return -1;
    for (uint32_t i = 0; i < o->base.piece_count; i++) {
        if (o->base.pieces[i].bytes)
            memcpy(to, o->base.pieces[i].data, o->base.pieces[i].bytes);
        to += o->base.pieces[i].bytes;
    }
    p->mr = l->t->verbs->mr_reg(l->t->device.pd, p->copy, o->head.bytes, (uintptr_t)p->copy,
                                IBV_ACCESS_LOCAL_WRITE);
    if (!p->mr)
        return -1;
    *out =
        (struct ibv_sge){.addr = (uintptr_t)p->copy, .length = (uint32_t)o->head.bytes, .lkey = p->mr->lkey};
    return 1;
}

static void uses_change(const tnrdma_outgoing *o, int by)
{
    for (uint32_t i = 0; i < o->base.piece_count; i++)
        if (o->base.pieces[i].bytes && o->base.pieces[i].region)
            o->base.pieces[i].region->uses += (uint32_t)by;
}

static void put_end(tn_link *l, tnrdma_put *p, tn_status status)
{
    tnrdma_outgoing *o = p->o;

    if (p->mr)
        (void)l->t->verbs->mr_dereg(p->mr);
    else
        uses_change(o, -1);
    free(p->copy);
    *p = (tnrdma_put){.o = NULL};
    ring_outgoing_end(l, &o->base, status);
}

bool tnrdma_put_begin(tn_link *l, tnrdma_outgoing *o)
{
    struct ibv_sge pieces[TNRDMA_SGES_MAX];
    uint32_t number = 0;
    tnrdma_put *p;
    int count, direct = 0;

    if (!o->head.bytes)
        return true;
    while (number < TNRDMA_PUTS_MAX && l->wire.put[number].o)
        number++;
    if (number == TNRDMA_PUTS_MAX)
        return false;
    p = &l->wire.put[number];
    count = pieces_of(o, pieces);
    if (count >= 0)
        uses_change(o, direct = 1);
    else
        count = pieces_copy(l, o, p, pieces);
    if (count > 0 && tnrdma_wire_write(l, pieces, count, (o->head.token & PAGE_MASK) + o->offset,
                                       (uint32_t)(o->head.token >> 32), number)) {
        p->o = o;
        return true;
    }
    uses_change(o, -direct);
    if (p->mr)
        (void)l->t->verbs->mr_dereg(p->mr);
    free(p->copy);
    *p = (tnrdma_put){.o = NULL};
    ring_link_end(l, TN_E_PEER, "a put cannot be sent: out of memory, or of what may be pinned");
    return false;
}

void tnrdma_put_done(tn_link *l, uint32_t number)
{
    put_end(l, &l->wire.put[number], TN_OK);
}

void tnrdma_puts_cancel(tn_link *l)
{
    for (uint32_t i = 0; i < TNRDMA_PUTS_MAX; i++)
        if (l->wire.put[i].o)
            put_end(l, &l->wire.put[i], TN_E_CANCELLED);
}
