/*
 * Of the loop what is of this transport. The thread that calls `poll` is the one that looks for completions:
 * links that are active are asked in each turn. With nothing to do it goes on asking for `spin_us`, then arms
 * the completion queues, asks once more, and waits for their channel together with sockets and `wake`.
 */
#include "kv_rdma.h"

/* Something of it is left to be read, and nobody else will say so. */
static bool link_unread(const tn_link *l)
{
    for (uint32_t i = 0; i < RING_CLASSES; i++)
        if (l->state != RING_CLOSING && !l->in[i].wait.starved && l->in[i].filled != l->in[i].own)
            return true;
    return false;
}

bool tnrdma_serve(tn_link *l)
{
    const bool any = tnrdma_wire_poll(l);

    if (l->state != RING_CLOSED)
        tnrdma_link_read(l);
    if (l->state != RING_CLOSED)
        tnrdma_link_write(l);
    if (l->state == RING_UP)
        tnrdma_note_send(l);
    return any;
}

/* All active links go to sleep, but for those for which something has come. True: all do. */
static bool active_sleep(tn_transport *t)
{
    bool all = true;

    for (tn_link **at = &t->active, *l; (l = *at);) {
        if (!t->verbs->cq_arm(l->wire.cq) && !tnrdma_serve(l) && l->state != RING_CLOSED && !link_unread(l)) {
            ring_link_rest(at);
            continue;
        }
        all = false;
        if (l->state == RING_CLOSED)
            ring_link_rest(at);
        else
            at = &l->active_next;
    }
    return all;
}

/* Looks for completions for a while before it waits: a peer that answers at once costs no wake-up. */
static void active_spin(tn_transport *t, uint64_t wait_ns)
{
    const uint64_t from = monotonic_ns(), most = wait_ns < t->spin_ns ? wait_ns : t->spin_ns;

    while (t->active && !t->first && !atomic_load_explicit(&t->woken, memory_order_relaxed) &&
           monotonic_ns() - from < most && !ring_serve(t))
        ;
}

bool tnrdma_sleep(tn_transport *t, uint64_t wait_ns)
{
    active_spin(t, wait_ns);
    return !t->first && !atomic_load_explicit(&t->woken, memory_order_relaxed) && active_sleep(t);
}

static void device_events(tn_transport *t)
{
    void *of;
    int kind;

    while (!t->verbs->cq_event(t->device.channel, &of))
        if (((tn_link *)of)->state != RING_CLOSED)
            ring_link_active(of);
    while (!t->verbs->async_event(t->device.context, &kind, &of)) {
        if (of && ((tn_link *)of)->state != RING_CLOSED)
            ring_link_active(of); /* its completions say what it was */
        for (tn_link *l = t->links, *next; kind == IBV_EVENT_DEVICE_FATAL && l; l = next) {
            next = l->next;
            ring_link_end(l, TN_E_PEER, "the RDMA device has failed");
        }
    }
}

void tnrdma_socket(tn_transport *t, void *of, uint32_t events)
{
    if (of == (void *)&t->device)
        device_events(t);
    else if (((tn_link *)of)->fd >= 0)
        tnrdma_greet(of, events);
}
