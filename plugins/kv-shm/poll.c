/*
 * Of the loop what is of this transport: a link that has nothing to do sleeps until its peer sends a byte on
 * its socket, which epoll waits for together with callers, hang-ups and `wake`.
 */
#include "kv_shm.h"

#include <sys/socket.h>

/* Anything to do for a link, whose peer would not wake us for it? */
static bool link_busy(tn_link *l)
{
    bool busy = l->state == RING_DRAINING && !l->in[0].wait.starved && !l->in[1].wait.starved;

    for (uint32_t i = 0; i < RING_CLASSES; i++) {
        busy |= !l->in[i].wait.starved && tnshm_in_ready(&l->in[i]);
        busy |= l->out[i].queue.first && tnshm_pipe_room(&l->out[i].pipe) >= l->out[i].pipe.size / 2;
    }
    return busy;
}

/* All active links go to sleep, but for those that have something to do. True: all do. */
bool tnshm_sleep(tn_transport *t, uint64_t wait_ns)
{
    bool all = true;

    (void)wait_ns;
    for (tn_link *l = t->active; l; l = l->active_next) {
        for (uint32_t i = 0; i < RING_CLASSES; i++)
            atomic_store_explicit(&l->out[i].pipe.ring->hungry, l->out[i].queue.first != NULL,
                                  memory_order_relaxed);
        atomic_store_explicit(&l->area->side[!l->called].asleep, 1, memory_order_relaxed);
        l->armed = true;
        l->bells++;
    }
    atomic_thread_fence(memory_order_seq_cst);
    for (tn_link **at = &t->active, *l; (l = *at);) {
        if (link_busy(l)) {
            all = false;
            ring_link_active(l);
            at = &l->active_next;
        } else {
            ring_link_rest(at);
        }
    }
    return all;
}

/* A byte of a peer that wakes us, or its end. */
static void bell_take(tn_link *l)
{
    char byte[2];
    const ssize_t n = recv(l->fd, byte, sizeof byte, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    ring_link_active(l);
    if (n <= 0) {
        ring_link_drain(l, atomic_load(&l->area->side[l->called].bye) ? TN_OK : TN_E_PEER,
                        "the peer has gone");
    } else if (n > 1 || !l->bells) {
        ring_fault(l, "the peer wakes who does not sleep");
    } else {
        l->bells--;
    }
}

void tnshm_socket(tn_transport *t, void *of, uint32_t events)
{
    tn_link *l = of;

    (void)t;
    (void)events;
    if (l->state == RING_UP)
        bell_take(l);
    else if (l->state < RING_UP)
        tnshm_greet(l);
}
