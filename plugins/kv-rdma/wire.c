/*
 * The wire of a link: queue pairs, work requests, completions.
 *
 * What is sent is copied into `out`, which has the layout of the peer's ring, and a fragment of it is written
 * there by one RDMA WRITE with immediate data: its class and number. Fragments of one class may take several
 * queue pairs; the peer reads them in the order of their numbers. Each takes one receive request of the peer,
 * so at most TNRDMA_DEPTH of them are under way before a note tells what was read: no request waits for a
 * receiver that is not ready.
 */
#include "kv_rdma.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define INLINE_BYTES 220u
#define RNR_TIMER 12  /* 0.64 ms */
#define RNR_RETRIES 6 /* 7 would be for ever */
#define CORK_POSTS 4u /* with so many fragments under way a short one waits for others */
#define CORK_BYTES 16384u
#define POLL_MAX 32
#define CLASS_BIT 31u
#define NUMBER_MASK 0x7fffffffu
#define ALIGN ((uint64_t)4096)

enum { WR_FRAGMENT = 1, WR_NOTE, WR_RECEIVE, WR_PUT };

static uint64_t wr_id(uint32_t kind, uint32_t pair, uint32_t number)
{
    return (uint64_t)kind << 56 | (uint64_t)pair << 48 | number;
}

/* ---- creation ----------------------------------------------------------------------------------------- */

static tn_status area_create(tn_link *l, tn_err *err)
{
    const tnrdma_verbs *v = l->t->verbs;
    tnrdma_wire *w = &l->wire;
    const uint64_t rings = TNRDMA_URGENT_BYTES + l->ring_bytes,
                   notes = (uint64_t)(TNRDMA_DEPTH + 2 * TNRDMA_NOTES) * TNRDMA_NOTE_BYTES;
    void *at;

    w->in_at = (rings + notes + ALIGN - 1) / ALIGN * ALIGN;
    w->area_bytes = w->in_at + rings;
    at = mmap(NULL, w->area_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return fail_system(err, "memory for a link");
    w->area = at;
    (void)madvise(at, w->area_bytes, MADV_DONTFORK); /* a child's copy would part us from the device */
    w->out_mr = v->mr_reg(l->t->device.pd, w->area, w->in_at, (uintptr_t)w->area, IBV_ACCESS_LOCAL_WRITE);
    if (w->out_mr)
        w->in_mr = v->mr_reg(l->t->device.pd, w->area + w->in_at, rings, (uintptr_t)(w->area + w->in_at),
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!w->in_mr)
        return tnrdma_fail_memory(err, w->area_bytes, errno);
    for (uint32_t c = 0; c < RING_CLASSES; c++) {
        const uint64_t from = c == RING_BULK ? TNRDMA_URGENT_BYTES : 0,
                       size = c == RING_BULK ? l->ring_bytes : TNRDMA_URGENT_BYTES;

        l->out[c].data = w->area + from;
        l->in[c].data = w->area + w->in_at + from;
        l->out[c].size = l->in[c].size = size;
    }
    return TN_OK;
}

/* Those that come, by receive request; then those that are sent, in turn. */
static uint8_t *note_at(const tn_link *l, uint32_t index)
{
    return l->wire.area + TNRDMA_URGENT_BYTES + l->ring_bytes + (uint64_t)index * TNRDMA_NOTE_BYTES;
}

static uint32_t receives_of(uint32_t pair)
{
    return pair ? TNRDMA_DEPTH : TNRDMA_DEPTH + TNRDMA_NOTES;
}

static uint32_t sends_of(uint32_t pair)
{
    return pair ? 2 * TNRDMA_DEPTH : TNRDMA_DEPTH + TNRDMA_NOTES;
}

static bool receive_post(tn_link *l, uint32_t pair, uint32_t index)
{
    struct ibv_sge piece = {.addr = pair ? 0 : (uintptr_t)note_at(l, index),
                            .length = TNRDMA_NOTE_BYTES,
                            .lkey = l->wire.out_mr->lkey};
    struct ibv_recv_wr wr = {
        .wr_id = wr_id(WR_RECEIVE, pair, index), .sg_list = pair ? NULL : &piece, .num_sge = !pair};

    return !l->t->verbs->post_recv(l->wire.pair[pair], &wr);
}

static tn_status pair_create(tn_link *l, uint32_t pair, tn_err *err)
{
    tnrdma_device *d = &l->t->device;
    const tnrdma_verbs *v = l->t->verbs;
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = d->port, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_init_attr attr = {.qp_context = l,
                                    .send_cq = l->wire.cq,
                                    .recv_cq = l->wire.cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = sends_of(pair),
                                            .max_recv_wr = receives_of(pair),
                                            .max_send_sge = TNRDMA_SGES_MAX,
                                            .max_recv_sge = 1,
                                            .max_inline_data = INLINE_BYTES}};
    struct ibv_qp *qp = v->qp_create(d->pd, &attr);

    if (!qp && errno == EINVAL) { /* nothing inline */
        attr.cap.max_inline_data = 0;
        qp = v->qp_create(d->pd, &attr);
    }
    if (!(l->wire.pair[pair] = qp))
        return fail_system(err, "a queue pair");
    d->inline_bytes = attr.cap.max_inline_data < INLINE_BYTES ? attr.cap.max_inline_data : INLINE_BYTES;
    if ((errno =
             v->qp_modify(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)))
        return fail_system(err, "a queue pair's beginning");
    for (uint32_t i = 0; i < receives_of(pair); i++)
        if (!receive_post(l, pair, i))
            return tn_fail(err, TN_E_NOMEM, "the device has no room for receive requests");
    return TN_OK;
}

tn_status tnrdma_wire_create(tn_link *l, uint32_t lanes, tn_err *err)
{
    tnrdma_wire *w = &l->wire;
    int room = 0;
    tn_status st;

    w->lanes = lanes;
    for (uint32_t i = 0; i <= lanes; i++)
        room += (int)(sends_of(i) + receives_of(i));
    if ((st = area_create(l, err)) || (st = random_fill(&w->packet_number, sizeof w->packet_number, err)))
        return st;
    w->packet_number &= 0xffffff;
    if (!(w->cq = l->t->verbs->cq_create(l->t->device.context, room, l, l->t->device.channel)))
        return fail_system(err, "a completion queue");
    for (uint32_t i = 0; !st && i <= lanes; i++)
        st = pair_create(l, i, err);
    return st;
}

/* The device is done with the memory once its queue pairs are gone. */
void tnrdma_wire_destroy(tn_link *l)
{
    const tnrdma_verbs *v = l->t->verbs;
    tnrdma_wire *w = &l->wire;

    for (uint32_t i = 0; i < TNRDMA_PAIRS_MAX; i++)
        if (w->pair[i])
            (void)v->qp_destroy(w->pair[i]);
    if (w->cq)
        (void)v->cq_destroy(w->cq);
    if (w->in_mr)
        (void)v->mr_dereg(w->in_mr);
    if (w->out_mr)
        (void)v->mr_dereg(w->out_mr);
    if (w->area)
        (void)munmap(w->area, w->area_bytes);
    w->cq = NULL;
    w->in_mr = w->out_mr = NULL;
    w->area = NULL;
    memset(w->pair, 0, sizeof w->pair);
    tnrdma_puts_cancel(l);
    tnrdma_landings_free(l);
}

/* ---- connecting --------------------------------------------------------------------------------------- */

void tnrdma_wire_endpoint(const tn_link *l, tnrdma_endpoint *out)
{
    const tnrdma_device *d = &l->t->device;
    const tnrdma_wire *w = &l->wire;

    *out = (tnrdma_endpoint){.lid = d->lid,
                             .mtu = (uint8_t)d->mtu,
                             .ethernet = d->ethernet,
                             .lanes = w->lanes,
                             .packet_number = w->packet_number,
                             .rkey = w->in_mr->rkey,
                             .ring_at = (uintptr_t)l->in[RING_URGENT].data,
                             .ring_bytes = l->ring_bytes};
    memcpy(out->gid, d->gid.raw, sizeof out->gid);
    for (uint32_t i = 0; i <= w->lanes; i++)
        out->pair[i] = w->pair[i]->qp_num;
}

const char *tnrdma_endpoint_wrong(const tn_link *l, const tnrdma_endpoint *e)
{
    union ibv_gid gid;

    memcpy(gid.raw, e->gid, sizeof gid.raw);
    if (!e->lanes || e->lanes > TNRDMA_LANES_MAX || e->lanes > l->t->config.lanes)
        return "the peer wants lanes that cannot be";
    if (e->ring_bytes < TNRDMA_RING_MIN || e->ring_bytes > l->t->ring_bytes ||
        e->ring_bytes & (e->ring_bytes - 1))
        return "the peer wants a ring of a size that cannot be";
    if (e->mtu < IBV_MTU_256 || e->mtu > IBV_MTU_4096)
        return "the peer has an MTU that cannot be";
    if (e->ethernet != l->t->device.ethernet)
        return "the peer's device is of another network: one is of Ethernet and the other of InfiniBand";
    if (e->ethernet && tnrdma_gid_is_ipv4(&gid) != tnrdma_gid_is_ipv4(&l->t->device.gid))
        return "one side's GID is an address of IPv4 and the other's of IPv6: kvstore.rdma_gid chooses";
    return NULL;
}

static void pair_fail(const tn_link *l, const tnrdma_endpoint *peer, int number, tn_err *err)
{
    char own[48], other[48];
    union ibv_gid gid;

    memcpy(gid.raw, peer->gid, sizeof gid.raw);
    tnrdma_gid_print(&gid, other);
    tnrdma_gid_print(&l->t->device.gid, own);
    if (number == ENETUNREACH || number == EHOSTUNREACH || number == ETIMEDOUT || number == ENOENT ||
        number == EADDRNOTAVAIL)
        (void)tn_failf(err, TN_E_PEER,
                       "%s is not reached from %s (%s): it is of another subnet, without a route, or down",
                       other, own, l->t->device.name);
    else
        (void)tn_failf(err, TN_E_PEER, "the queue pair from %s to %s: %s", own, other, strerror(number));
}

/* INIT, where it is since its creation, to RTR and RTS. */
static int pair_connect(tn_link *l, uint32_t pair, const tnrdma_endpoint *e)
{
    const tnrdma_plugin *p = l->t->plugin;
    const tnrdma_device *d = &l->t->device;
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = e->mtu < d->mtu ? (enum ibv_mtu)e->mtu : d->mtu,
        .dest_qp_num = e->pair[pair],
        .rq_psn = e->packet_number,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = {
            .grh = {.sgid_index = d->gid_index, .hop_limit = 64, .traffic_class = (uint8_t)p->traffic_class},
            .dlid = e->lid,
            .is_global = d->ethernet || e->lid == 0,
            .port_num = d->port}};
    struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS,
                               .timeout = (uint8_t)p->timeout,
                               .retry_cnt = (uint8_t)p->retry,
                               .rnr_retry = RNR_RETRIES,
                               .sq_psn = l->wire.packet_number};
    int number;

    memcpy(receive.ah_attr.grh.dgid.raw, e->gid, sizeof e->gid);
    number = l->t->verbs->qp_modify(l->wire.pair[pair], &receive,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return number ? number
                  : l->t->verbs->qp_modify(l->wire.pair[pair], &send,
                                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                               IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

tn_status tnrdma_wire_connect(tn_link *l, const tnrdma_endpoint *peer, tn_err *err)
{
    l->wire.rkey = peer->rkey;
    l->out[RING_URGENT].remote = peer->ring_at;
    l->out[RING_BULK].remote = peer->ring_at + TNRDMA_URGENT_BYTES;
    for (uint32_t i = 0; i <= l->wire.lanes; i++) {
        const int number = pair_connect(l, i, peer);

        if (number) {
            pair_fail(l, peer, number, err);
            return TN_E_PEER;
        }
    }
    return TN_OK;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

uint64_t tnrdma_out_room(const tnrdma_out *o)
{
    const uint64_t free_to = o->read < o->done ? o->read : o->done;

    return o->size - (o->own - free_to);
}

void tnrdma_out_copy(tnrdma_out *o, const void *data, uint64_t bytes)
{
    const uint64_t at = o->own & (o->size - 1), first = bytes < o->size - at ? bytes : o->size - at;

    if (bytes) {
        memcpy(o->data + at, data, first);
        memcpy(o->data, (const uint8_t *)data + first, bytes - first);
    }
    o->own += bytes;
}

static bool fragment_post(tn_link *l, uint32_t class, uint64_t bytes)
{
    tnrdma_out *o = &l->out[class];
    const uint64_t at = o->posted & (o->size - 1);
    const uint32_t number = o->posts & NUMBER_MASK,
                   pair = class == RING_URGENT ? 0 : 1 + l->wire.next_lane++ % l->wire.lanes;
    struct ibv_sge piece = {
        .addr = (uintptr_t)(o->data + at), .length = (uint32_t)bytes, .lkey = l->wire.out_mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id(WR_FRAGMENT, class, number),
                             .sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = bytes <= l->t->device.inline_bytes ? IBV_SEND_INLINE : 0,
                             .imm_data = htobe32((uint32_t) class << CLASS_BIT | number),
                             .wr.rdma = {.remote_addr = o->remote + at, .rkey = l->wire.rkey}};

    if (l->t->verbs->post_send(l->wire.pair[pair], &wr))
        return false;
    o->posted += bytes;
    o->fragment[o->posts++ % TNRDMA_DEPTH] = (tnrdma_fragment){.end = o->posted};
    l->t->requests++;
    return true;
}

static bool may_post(const tnrdma_out *o)
{
    return o->posts - o->posts_read < TNRDMA_DEPTH && o->posts - o->posts_done < TNRDMA_DEPTH;
}

void tnrdma_wire_post(tn_link *l)
{
    for (uint32_t c = 0; c < RING_CLASSES; c++) {
        tnrdma_out *o = &l->out[c];

        while (o->posted != o->own && may_post(o)) {
            const uint64_t at = o->posted & (o->size - 1), rest = o->own - o->posted,
                           bytes = rest < o->size - at ? rest : o->size - at;

            if (c == RING_BULK && rest < CORK_BYTES && o->posts - o->posts_done >= CORK_POSTS)
                break;
            if (!fragment_post(l, c, bytes)) {
                ring_link_end(l, TN_E_PEER, "a queue pair takes no requests");
                return;
            }
        }
    }
}

bool tnrdma_wire_quiet(const tn_link *l)
{
    for (uint32_t c = 0; c < RING_CLASSES; c++)
        if (l->out[c].own != l->out[c].posted || l->out[c].posts != l->out[c].posts_done)
            return false;
    for (uint32_t i = 0; i < TNRDMA_PUTS_MAX; i++)
        if (l->wire.put[i].o)
            return false;
    return true;
}

bool tnrdma_wire_write(tn_link *l, struct ibv_sge *pieces, int count, uint64_t at, uint32_t rkey,
                       uint32_t number)
{
    struct ibv_send_wr wr = {.wr_id = wr_id(WR_PUT, 0, number),
                             .sg_list = pieces,
                             .num_sge = count,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .wr.rdma = {.remote_addr = at, .rkey = rkey}};

    l->t->requests++;
    return !l->t->verbs->post_send(l->wire.pair[1 + l->wire.next_lane % l->wire.lanes], &wr);
}

/* ---- notes -------------------------------------------------------------------------------------------- */

void tnrdma_note_send(tn_link *l)
{
    tnrdma_note note = {.magic = TNRDMA_MAGIC};
    struct ibv_sge piece = {.length = sizeof note};
    struct ibv_send_wr wr = {.wr_id = wr_id(WR_NOTE, 0, 0),
                             .sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = sizeof note <= l->t->device.inline_bytes ? IBV_SEND_INLINE : 0};
    uint8_t *at;
    bool due = false;

    if (l->state != RING_UP || l->wire.notes >= TNRDMA_NOTES)
        return;
    for (uint32_t c = 0; c < RING_CLASSES; c++) {
        const tnrdma_in *in = &l->in[c];

        due |= in->own - in->told >= in->size / 4 || in->next - in->told_count >= TNRDMA_DEPTH / 4;
        note.read[c] = in->own;
        note.count[c] = in->next;
    }
    if (!due)
        return;
    at = note_at(l, TNRDMA_DEPTH + TNRDMA_NOTES + l->wire.note++ % TNRDMA_NOTES);
    memcpy(at, &note, sizeof note);
    piece.addr = (uintptr_t)at;
    piece.lkey = l->wire.out_mr->lkey;
    if (l->t->verbs->post_send(l->wire.pair[0], &wr)) {
        ring_link_end(l, TN_E_PEER, "a queue pair takes no requests");
        return;
    }
    l->wire.notes++;
    l->t->notes++;
    for (uint32_t c = 0; c < RING_CLASSES; c++) {
        l->in[c].told = note.read[c];
        l->in[c].told_count = note.count[c];
    }
}

/* Nothing in it goes back, nor beyond what was sent. */
static bool note_take(tn_link *l, const void *from)
{
    tnrdma_note note;

    memcpy(&note, from, sizeof note);
    if (note.magic != TNRDMA_MAGIC || note.reserved)
        return false;
    for (uint32_t c = 0; c < RING_CLASSES; c++) {
        tnrdma_out *o = &l->out[c];

        if (note.read[c] - o->read > o->posted - o->read ||
            note.count[c] - o->posts_read > o->posts - o->posts_read)
            return false;
        o->read = note.read[c];
        o->posts_read = note.count[c];
    }
    return true;
}

/* ---- completions -------------------------------------------------------------------------------------- */

static void fragment_done(tn_link *l, uint32_t class, uint32_t number)
{
    tnrdma_out *o = &l->out[class];

    o->fragment[number % TNRDMA_DEPTH].done = true;
    while (o->posts_done != o->posts && o->fragment[o->posts_done % TNRDMA_DEPTH].done)
        o->done = o->fragment[o->posts_done++ % TNRDMA_DEPTH].end;
}

static bool fragment_came(tn_link *l, uint32_t pair, uint32_t imm, uint32_t bytes)
{
    const uint32_t class = imm >> CLASS_BIT, number = imm & NUMBER_MASK;
    tnrdma_in *in = &l->in[class];

    if ((class == RING_URGENT) != (pair == 0) || !bytes || in->length[number % TNRDMA_DEPTH] ||
        ((number - in->next) & NUMBER_MASK) >= TNRDMA_DEPTH)
        return false;
    in->length[number % TNRDMA_DEPTH] = bytes;
    for (uint32_t *length; *(length = &in->length[in->next % TNRDMA_DEPTH]); in->next++) {
        in->filled += *length;
        *length = 0;
        if (in->filled - in->own > in->size)
            return false;
    }
    return true;
}

/* A work request has failed: what came before is still read. */
static void wire_failed(tn_link *l, const struct ibv_wc *wc)
{
    static const struct {
        enum ibv_wc_status status;
        const char *text;
    } rows[] = {
        {IBV_WC_RETRY_EXC_ERR, "does not answer: it, or the way to it, is down"},
        {IBV_WC_RNR_RETRY_EXC_ERR, "takes no more messages, though it said it would"},
        {IBV_WC_REM_ACCESS_ERR, "has no memory there: a token or an offset is wrong"},
        {IBV_WC_REM_INV_REQ_ERR, "refuses a request"},
        {IBV_WC_REM_OP_ERR, "cannot serve a request"},
        {IBV_WC_WR_FLUSH_ERR, "has ended the queue pair"},
    };
    const char *what = "cannot be reached";
    char text[sizeof l->text];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == wc->status)
            what = rows[i].text;
    (void)snprintf(text, sizeof text, "%s %s (%s)", l->peer, what, ibv_wc_status_str(wc->status));
    l->flushed = true;
    if (l->state == RING_CLOSING) {
        ring_link_end(l, TN_E_CANCELLED, "disconnected");
        return;
    }
    if (l->state == RING_UP)
        tnrdma_greet(l, 0); /* it may have said BYE */
    if (l->state < RING_CLOSING)
        tnrdma_link_hangup(l, text);
}

static void completion_take(tn_link *l, const struct ibv_wc *wc)
{
    const uint32_t kind = (uint32_t)(wc->wr_id >> 56), place = wc->wr_id >> 48 & 0xff,
                   number = (uint32_t)wc->wr_id;
    bool good = true;

    if (wc->status != IBV_WC_SUCCESS) {
        wire_failed(l, wc);
        return;
    }
    if (kind == WR_FRAGMENT) {
        fragment_done(l, place, number);
    } else if (kind == WR_PUT) {
        tnrdma_put_done(l, number);
    } else if (kind == WR_NOTE) {
        l->wire.notes--;
    } else {
        good = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM
                   ? fragment_came(l, place, be32toh(wc->imm_data), wc->byte_len)
                   : wc->opcode == IBV_WC_RECV && place == 0 && wc->byte_len == sizeof(tnrdma_note) &&
                         note_take(l, note_at(l, number));
        if (good && !receive_post(l, place, number))
            ring_link_end(l, TN_E_PEER, "a queue pair takes no requests");
    }
    if (!good)
        ring_fault(l, "the peer's work requests are not those of this protocol");
}

bool tnrdma_wire_poll(tn_link *l)
{
    struct ibv_wc wc[POLL_MAX];
    int count;
    bool any = false;

    if (!l->wire.cq)
        return false;
    do {
        count = l->t->verbs->cq_poll(l->wire.cq, POLL_MAX, wc);
        if (count < 0) {
            ring_link_end(l, TN_E_PEER, "the completion queue has failed");
            return true;
        }
        for (int i = 0; i < count && l->state != RING_CLOSED; i++)
            completion_take(l, &wc[i]);
        any |= count > 0;
    } while (count == POLL_MAX && l->state != RING_CLOSED);
    return any;
}
