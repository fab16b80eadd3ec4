/* The functions of libibverbs, as a table: a test puts its own in their place. */
#include "kv_rdma.h"

static int device_close(struct ibv_context *context)
{
    return ibv_close_device(context);
}

static int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out)
{
    return ibv_query_port(context, port, out);
}

static ssize_t gid_table(struct ibv_context *context, struct ibv_gid_entry *out, size_t room)
{
    return ibv_query_gid_table(context, out, room, 0);
}

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *data, size_t bytes, uint64_t iova, int access)
{
    return ibv_reg_mr_iova(pd, data, bytes, iova, (unsigned)access);
}

static struct ibv_cq *cq_create(struct ibv_context *context, int room, void *of,
                                struct ibv_comp_channel *channel)
{
    return ibv_create_cq(context, room, of, channel, 0);
}

static int cq_arm(struct ibv_cq *cq)
{
    return ibv_req_notify_cq(cq, 0);
}

static int cq_poll(struct ibv_cq *cq, int room, struct ibv_wc *out)
{
    return ibv_poll_cq(cq, room, out);
}

static int cq_event(struct ibv_comp_channel *channel, void **of)
{
    struct ibv_cq *cq;

    if (ibv_get_cq_event(channel, &cq, of))
        return -1;
    ibv_ack_cq_events(cq, 1);
    return 0;
}

static int async_event(struct ibv_context *context, int *kind, void **of)
{
    struct ibv_async_event e;

    if (ibv_get_async_event(context, &e))
        return -1;
    *kind = (int)e.event_type;
    *of = NULL;
    if (e.event_type == IBV_EVENT_QP_FATAL || e.event_type == IBV_EVENT_QP_REQ_ERR ||
        e.event_type == IBV_EVENT_QP_ACCESS_ERR)
        *of = e.element.qp->qp_context;
    ibv_ack_async_event(&e);
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    return ibv_post_send(qp, wr, &bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
    struct ibv_recv_wr *bad;

    return ibv_post_recv(qp, wr, &bad);
}

const tnrdma_verbs tnrdma_libibverbs = {
    .device_list = ibv_get_device_list,
    .device_list_free = ibv_free_device_list,
    .device_name = ibv_get_device_name,
    .device_open = ibv_open_device,
    .device_close = device_close,
    .device_query = ibv_query_device,
    .port_query = port_query,
    .gid_table = gid_table,
    .pd_alloc = ibv_alloc_pd,
    .pd_free = ibv_dealloc_pd,
    .mr_reg = mr_reg,
    .mr_dereg = ibv_dereg_mr,
    .channel_create = ibv_create_comp_channel,
    .channel_destroy = ibv_destroy_comp_channel,
    .cq_create = cq_create,
    .cq_destroy = ibv_destroy_cq,
    .cq_arm = cq_arm,
    .cq_poll = cq_poll,
    .cq_event = cq_event,
    .async_event = async_event,
    .qp_create = ibv_create_qp,
    .qp_modify = ibv_modify_qp,
    .qp_destroy = ibv_destroy_qp,
    .post_send = post_send,
    .post_recv = post_recv,
};
