/* See card.h. */
#include "card.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PAIRS_MAX 4096u

#ifndef CARD_VERBS
#define CARD_VERBS card_verbs
#endif

typedef struct card_mr {
    struct ibv_mr mr;
    struct card_mr *next;
    uint64_t iova;
    int access;
} card_mr;

typedef struct card_cq {
    struct ibv_cq cq;
    struct card_cq *next;
    struct ibv_wc *wc;
    uint32_t room, head, tail;
    bool armed, told; /* told: an event waits in the channel */
} card_cq;

typedef struct card_receive {
    uint64_t id;
    struct ibv_sge piece;
    int pieces;
} card_receive;

typedef struct card_pair {
    struct ibv_qp qp;
    struct ibv_qp_cap cap;
    uint32_t peer;
    card_receive *receives;
    uint32_t head, tail; /* of receives */
    uint64_t *waiting;   /* requests of a silent card */
    uint32_t waiting_count;
} card_pair;

card_state card;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static card_mr *memory;
static card_cq *queues;
static card_pair *pairs[PAIRS_MAX];
static uint32_t keys = 7, left;
static struct ibv_device device = {.name = "card0"};

uint32_t card_left(void)
{
    return left;
}

/* ---- device ------------------------------------------------------------------------------------------- */

static struct ibv_device **list_get(int *count)
{
    struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));

    *count = !card.absent;
    if (list && !card.absent)
        list[0] = &device;
    return list;
}

static void list_free(struct ibv_device **list)
{
    free((void *)list);
}

static const char *name_get(struct ibv_device *d)
{
    return d->name;
}

static struct ibv_context *context_open(struct ibv_device *d)
{
    struct ibv_context *c = card.closed ? NULL : calloc(1, sizeof *c);

    if (!c) {
        errno = EACCES;
        return NULL;
    }
    c->device = d;
    c->async_fd = eventfd(0, EFD_CLOEXEC);
    left++;
    return c;
}

static int context_close(struct ibv_context *c)
{
    (void)close(c->async_fd);
    free(c);
    left--;
    return 0;
}

static int attributes(struct ibv_context *c, struct ibv_device_attr *out)
{
    (void)c;
    *out = (struct ibv_device_attr){.max_sge = 4, .phys_port_cnt = 1};
    return 0;
}

static int port_get(struct ibv_context *c, uint8_t port, struct ibv_port_attr *out)
{
    (void)c;
    (void)port;
    *out = (struct ibv_port_attr){
        .state = card.port_state ? (enum ibv_port_state)card.port_state : IBV_PORT_ACTIVE,
        .active_mtu = card.mtu ? (enum ibv_mtu)card.mtu : IBV_MTU_1024,
        .lid = card.infiniband,
        .link_layer = card.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET};
    return 0;
}

/* Index 0: of the link alone; 1: RoCE v1; 2: IPv4; 3: IPv6. */
static ssize_t gids(struct ibv_context *c, struct ibv_gid_entry *out, size_t room)
{
    static const uint8_t bytes[][16] = {{0xfe, 0x80, [15] = 1},
                                        {[10] = 0xff, 0xff, 10, 0, 0, 1},
                                        {[10] = 0xff, 0xff, 10, 0, 0, 1},
                                        {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
    const size_t count = card.no_gids ? 0 : 4;

    (void)c;
    for (size_t i = 0; i < count && i < room; i++) {
        out[i] = (struct ibv_gid_entry){.gid_index = (uint32_t)i,
                                        .port_num = 1,
                                        .gid_type = card.infiniband ? IBV_GID_TYPE_IB
                                                    : i == 1        ? IBV_GID_TYPE_ROCE_V1
                                                                    : IBV_GID_TYPE_ROCE_V2};
        memcpy(out[i].gid.raw, bytes[card.ipv6 && i == 2 ? 1 : i], 16);
        if (card.ipv6 && i == 2)
            out[i].gid_type = IBV_GID_TYPE_ROCE_V1;
    }
    return (ssize_t)count;
}

static struct ibv_pd *pd_alloc(struct ibv_context *c)
{
    struct ibv_pd *pd = calloc(1, sizeof *pd);

    if (pd)
        pd->context = c;
    left += pd != NULL;
    return pd;
}

static int pd_free(struct ibv_pd *pd)
{
    free(pd);
    left--;
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------------------- */

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *data, size_t bytes, uint64_t iova, int access)
{
    card_mr *m = card.mr_fails && --card.mr_fails == 0 ? NULL : calloc(1, sizeof *m);

    if (!m) {
        errno = ENOMEM;
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    *m = (card_mr){
        .mr = {.pd = pd, .addr = data, .length = bytes}, .next = memory, .iova = iova, .access = access};
    m->mr.lkey = m->mr.rkey = keys++ * 0x101u;
    memory = m;
    left++;
    (void)pthread_mutex_unlock(&lock);
    return &m->mr;
}

static int mr_dereg(struct ibv_mr *mr)
{
    (void)pthread_mutex_lock(&lock);
    for (card_mr **at = &memory; *at; at = &(*at)->next)
        if (&(*at)->mr == mr) {
            card_mr *m = *at;

            *at = m->next;
            free(m);
            left--;
            break;
        }
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

/* Where it is, if all of it lies in memory of that key which may be used so. */
static uint8_t *reach(uint32_t key, uint64_t at, uint64_t bytes, int access)
{
    for (card_mr *m = memory; m; m = m->next)
        if (m->mr.lkey == key && (m->access & access) == access && at >= m->iova && bytes <= m->mr.length &&
            at - m->iova <= m->mr.length - bytes)
            return (uint8_t *)m->mr.addr + (at - m->iova);
    return NULL;
}

int card_write(uint32_t rkey, uint64_t at, const void *data, uint64_t bytes)
{
    uint8_t *to;

    (void)pthread_mutex_lock(&lock);
    to = reach(rkey, at, bytes, IBV_ACCESS_REMOTE_WRITE);
    if (to)
        memcpy(to, data, bytes);
    (void)pthread_mutex_unlock(&lock);
    return to ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

/* ---- completions -------------------------------------------------------------------------------------- */

static struct ibv_comp_channel *channel_create(struct ibv_context *c)
{
    struct ibv_comp_channel *channel = calloc(1, sizeof *channel);

    if (channel)
        *channel = (struct ibv_comp_channel){.context = c, .fd = eventfd(0, EFD_CLOEXEC)};
    left += channel != NULL;
    return channel;
}

static int channel_destroy(struct ibv_comp_channel *channel)
{
    (void)close(channel->fd);
    free(channel);
    left--;
    return 0;
}

static struct ibv_cq *cq_create(struct ibv_context *c, int room, void *of, struct ibv_comp_channel *channel)
{
    card_cq *q = calloc(1, sizeof *q);

    if (!q || !(q->wc = calloc((size_t)room, sizeof *q->wc))) {
        free(q);
        errno = ENOMEM;
        return NULL;
    }
    q->cq = (struct ibv_cq){.context = c, .channel = channel, .cq_context = of};
    q->room = (uint32_t)room;
    (void)pthread_mutex_lock(&lock);
    q->next = queues;
    queues = q;
    left++;
    (void)pthread_mutex_unlock(&lock);
    return &q->cq;
}

static int cq_destroy(struct ibv_cq *cq)
{
    (void)pthread_mutex_lock(&lock);
    for (card_cq **at = &queues; *at; at = &(*at)->next)
        if (&(*at)->cq == cq) {
            card_cq *q = *at;

            *at = q->next;
            free(q->wc);
            free(q);
            left--;
            break;
        }
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static int cq_arm(struct ibv_cq *cq)
{
    (void)pthread_mutex_lock(&lock);
    ((card_cq *)(void *)cq)->armed = true;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static int cq_poll(struct ibv_cq *cq, int room, struct ibv_wc *out)
{
    card_cq *q = (card_cq *)(void *)cq;
    int count = 0;

    (void)pthread_mutex_lock(&lock);
    while (count < room && q->head != q->tail)
        out[count++] = q->wc[q->head++ % q->room];
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static int cq_event(struct ibv_comp_channel *channel, void **of)
{
    int found = -1;
    uint64_t count;

    (void)pthread_mutex_lock(&lock);
    for (card_cq *q = queues; q && found; q = q->next)
        if (q->cq.channel == channel && q->told) {
            q->told = false;
            *of = q->cq.cq_context;
            found = 0;
        }
    if (found)
        (void)!read(channel->fd, &count, sizeof count);
    (void)pthread_mutex_unlock(&lock);
    return found;
}

static int async_event(struct ibv_context *c, int *kind, void **of)
{
    (void)c;
    (void)kind;
    (void)of;
    return -1;
}

static void complete(struct ibv_cq *cq, struct ibv_wc wc)
{
    card_cq *q = (card_cq *)(void *)cq;
    const uint64_t one = 1;

    if (q->tail - q->head == q->room)
        abort(); /* an overflow of the plugin's making */
    q->wc[q->tail++ % q->room] = wc;
    if (!q->armed)
        return;
    q->armed = false;
    q->told = true;
    (void)!write(cq->channel->fd, &one, sizeof one);
}

/* ---- queue pairs -------------------------------------------------------------------------------------- */

static card_pair *pair_of(struct ibv_qp *qp)
{
    return (card_pair *)(void *)qp;
}

static struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    card_pair *p = NULL;
    uint32_t number = 1;

    if (card.no_inline && a->cap.max_inline_data) {
        errno = EINVAL;
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    while (number < PAIRS_MAX && pairs[number])
        number++;
    if (number < PAIRS_MAX && (p = calloc(1, sizeof *p))) {
        *p = (card_pair){.qp = {.context = pd->context,
                                .qp_context = a->qp_context,
                                .pd = pd,
                                .send_cq = a->send_cq,
                                .recv_cq = a->recv_cq,
                                .qp_num = number,
                                .state = IBV_QPS_RESET},
                         .cap = a->cap,
                         .receives = calloc(a->cap.max_recv_wr, sizeof(card_receive)),
                         .waiting = calloc(a->cap.max_send_wr, sizeof(uint64_t))};
        pairs[number] = p;
        left++;
    }
    (void)pthread_mutex_unlock(&lock);
    return p ? &p->qp : NULL;
}

static int qp_destroy(struct ibv_qp *qp)
{
    card_pair *p = pair_of(qp);

    (void)pthread_mutex_lock(&lock);
    pairs[qp->qp_num] = NULL;
    free(p->receives);
    free(p->waiting);
    free(p);
    left--;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static int qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    if (a->qp_state == IBV_QPS_RTR && card.connect_fails)
        return card.connect_fails;
    if ((a->qp_state == IBV_QPS_RTS && (a->retry_cnt > 6 || a->rnr_retry > 6)) || !(mask & IBV_QP_STATE))
        return EINVAL; /* 7 is for ever */
    (void)pthread_mutex_lock(&lock);
    if (a->qp_state == IBV_QPS_RTR)
        pair_of(qp)->peer = a->dest_qp_num;
    qp->state = a->qp_state;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

/* All that it has been given comes back. */
static void pair_fail(card_pair *p)
{
    if (p->qp.state == IBV_QPS_ERR)
        return;
    p->qp.state = IBV_QPS_ERR;
    while (p->head != p->tail)
        complete(p->qp.recv_cq, (struct ibv_wc){.wr_id = p->receives[p->head++ % p->cap.max_recv_wr].id,
                                                .status = IBV_WC_WR_FLUSH_ERR});
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
    card_pair *p = pair_of(qp);
    int number = 0;

    (void)pthread_mutex_lock(&lock);
    card.recvs++;
    if (p->tail - p->head == p->cap.max_recv_wr) {
        number = ENOMEM;
    } else if (qp->state == IBV_QPS_ERR) {
        complete(qp->recv_cq, (struct ibv_wc){.wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR});
    } else {
        p->receives[p->tail % p->cap.max_recv_wr] = (card_receive){.id = wr->wr_id, .pieces = wr->num_sge};
        if (wr->num_sge)
            p->receives[p->tail % p->cap.max_recv_wr].piece = wr->sg_list[0];
        p->tail++;
    }
    (void)pthread_mutex_unlock(&lock);
    return number;
}

/* What the request sends, in one piece; NULL: memory that is not its own. */
static uint8_t *gather(const struct ibv_send_wr *wr, uint64_t *bytes)
{
    uint8_t *all;

    *bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        *bytes += wr->sg_list[i].length;
    if (!(all = malloc(*bytes + 1)))
        return NULL;
    *bytes = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *s = &wr->sg_list[i];
        const uint8_t *from = wr->send_flags & IBV_SEND_INLINE ? (const uint8_t *)(uintptr_t)s->addr
                                                               : reach(s->lkey, s->addr, s->length, 0);

        if (!from) {
            free(all);
            return NULL;
        }
        memcpy(all + *bytes, from, s->length);
        *bytes += s->length;
    }
    return all;
}

/* Takes one of the peer's receive requests. */
static int receive(card_pair *to, const struct ibv_send_wr *wr, const uint8_t *data, uint64_t bytes)
{
    const bool send = wr->opcode == IBV_WR_SEND;
    card_receive r;
    uint8_t *at = NULL;

    if (to->head == to->tail)
        return IBV_WC_RNR_RETRY_EXC_ERR;
    r = to->receives[to->head % to->cap.max_recv_wr];
    if (send && (!r.pieces || r.piece.length < bytes ||
                 !(at = reach(r.piece.lkey, r.piece.addr, bytes, IBV_ACCESS_LOCAL_WRITE))))
        return IBV_WC_REM_INV_REQ_ERR;
    if (send)
        memcpy(at, data, bytes);
    to->head++;
    complete(to->qp.recv_cq, (struct ibv_wc){.wr_id = r.id,
                                             .status = IBV_WC_SUCCESS,
                                             .opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                                             .byte_len = (uint32_t)bytes,
                                             .imm_data = wr->imm_data,
                                             .qp_num = to->qp.qp_num});
    return IBV_WC_SUCCESS;
}

static int perform(const card_pair *p, const struct ibv_send_wr *wr)
{
    card_pair *to = p->peer < PAIRS_MAX ? pairs[p->peer] : NULL;
    uint64_t bytes;
    uint8_t *data = gather(wr, &bytes), *at = NULL;
    int status = IBV_WC_SUCCESS;

    if (!data)
        return IBV_WC_LOC_PROT_ERR;
    if (!to || to->peer != p->qp.qp_num || (to->qp.state != IBV_QPS_RTR && to->qp.state != IBV_QPS_RTS))
        status = IBV_WC_RETRY_EXC_ERR;
    else if (wr->opcode != IBV_WR_SEND && bytes &&
             !(at = reach(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, bytes, IBV_ACCESS_REMOTE_WRITE)))
        status = IBV_WC_REM_ACCESS_ERR;
    if (at)
        memcpy(at, data, bytes);
    if (!status && wr->opcode != IBV_WR_RDMA_WRITE)
        status = receive(to, wr, data, bytes);
    if (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR)
        pair_fail(to);
    free(data);
    return status;
}

static void request(card_pair *p, const struct ibv_send_wr *wr)
{
    int status;

    card.requests++;
    card.sends += wr->opcode == IBV_WR_SEND;
    card.writes += wr->opcode != IBV_WR_SEND;
    if (card.silent) {
        p->waiting[p->waiting_count++] = wr->wr_id;
        return;
    }
    status = p->qp.state == IBV_QPS_ERR                ? IBV_WC_WR_FLUSH_ERR
             : card.status_in && --card.status_in == 0 ? card.status_of
                                                       : perform(p, wr);
    complete(p->qp.send_cq,
             (struct ibv_wc){.wr_id = wr->wr_id,
                             .status = (enum ibv_wc_status)status,
                             .opcode = wr->opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE});
    if (status)
        pair_fail(p);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    card_pair *p = pair_of(qp);
    int number = 0;

    (void)pthread_mutex_lock(&lock);
    for (; wr && !number; wr = wr->next)
        if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) ||
            p->waiting_count == p->cap.max_send_wr ||
            (wr->send_flags & IBV_SEND_INLINE && !p->cap.max_inline_data) ||
            wr->num_sge > (int)p->cap.max_send_sge)
            number = EINVAL;
        else
            request(p, wr);
    (void)pthread_mutex_unlock(&lock);
    return number;
}

void card_give_up(void)
{
    (void)pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < PAIRS_MAX; i++)
        if (pairs[i] && pairs[i]->waiting_count) {
            complete(pairs[i]->qp.send_cq,
                     (struct ibv_wc){.wr_id = pairs[i]->waiting[0], .status = IBV_WC_RETRY_EXC_ERR});
            pairs[i]->waiting_count = 0;
            pair_fail(pairs[i]);
        }
    (void)pthread_mutex_unlock(&lock);
}

const tnrdma_verbs CARD_VERBS = {
    .device_list = list_get,
    .device_list_free = list_free,
    .device_name = name_get,
    .device_open = context_open,
    .device_close = context_close,
    .device_query = attributes,
    .port_query = port_get,
    .gid_table = gids,
    .pd_alloc = pd_alloc,
    .pd_free = pd_free,
    .mr_reg = mr_reg,
    .mr_dereg = mr_dereg,
    .channel_create = channel_create,
    .channel_destroy = channel_destroy,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .cq_arm = cq_arm,
    .cq_poll = cq_poll,
    .cq_event = cq_event,
    .async_event = async_event,
    .qp_create = qp_create,
    .qp_modify = qp_modify,
    .qp_destroy = qp_destroy,
    .post_send = post_send,
    .post_recv = post_recv,
};
