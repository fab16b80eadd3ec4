/* The size of a connection's send buffer, SO_SNDBUF, by what TCP measures: a rule of numbers alone. */
#ifndef TNZMQ_SENDBUF_H
#define TNZMQ_SENDBUF_H

#include <stdint.h>

#define TNZMQ_SENDBUF_ALL ((uint64_t)1 << 18)   /* bytes: all links together have at least as much */
#define TNZMQ_SENDBUF_LEAST ((uint64_t)1 << 15) /* and each of them */
#define TNZMQ_SENDBUF_TUNED UINT64_MAX          /* the kernel tunes the buffer, as it does by default */
#define TNZMQ_SENDBUF_FAR_US 1000u  /* connections with a longer round trip are tuned by the kernel */
#define TNZMQ_SENDBUF_HOSTS_US 200u /* that two hosts add to a round trip: interrupts, threads that wake */
/* Between two sizes. The kernel counts it in ticks of 1 to 10 ms. */
#define TNZMQ_SENDBUF_BUSY_US 20000u

/* What TCP says of a connection (TCP_INFO). */
typedef struct tnzmq_measured {
    uint64_t acked;    /* bytes that were acknowledged so far */
    uint64_t busy_us;  /* time in which some were not, without that in which the receiver took none */
    uint32_t round_us; /* the shortest round trip; 0 or UINT32_MAX: not known */
} tnzmq_measured;

typedef struct tnzmq_sendbuf {
    uint64_t bytes; /* 0: not set yet */
    tnzmq_measured last;
} tnzmq_sendbuf;

/* The next size of one of `links` connections: four times goodput times round trip, and at least half of the
 * size before, as a burst that begins or ends between two looks seems slow. The kernel takes twice the size,
 * for its own notes. So where the size bounds the goodput, the next one is larger. One of more than `most`
 * bytes, which the system does not allow, is left to the kernel. 0: not long enough since the last one. */
static inline uint64_t tnzmq_sendbuf_next(tnzmq_sendbuf *s, const tnzmq_measured *now, uint32_t links,
                                          uint64_t most)
{
    const uint64_t busy_us = now->busy_us - s->last.busy_us, share = TNZMQ_SENDBUF_ALL / (links ? links : 1),
                   half = s->bytes == TNZMQ_SENDBUF_TUNED ? 0 : s->bytes / 2;
    double bytes = 0;

    if (s->bytes && busy_us < TNZMQ_SENDBUF_BUSY_US)
        return 0;
    if (s->bytes)
        bytes = 4.0 * (double)(now->acked - s->last.acked) / (double)busy_us *
                (now->round_us + (double)TNZMQ_SENDBUF_HOSTS_US);
    s->last = *now;
    s->bytes = share > TNZMQ_SENDBUF_LEAST ? share : TNZMQ_SENDBUF_LEAST;
    s->bytes = half > s->bytes ? half : s->bytes;
    if (!now->round_us || now->round_us > TNZMQ_SENDBUF_FAR_US || bytes > (double)most || s->bytes > most)
        s->bytes = TNZMQ_SENDBUF_TUNED;
    else if (bytes > (double)s->bytes)
        s->bytes = (uint64_t)bytes;
    return s->bytes;
}

#endif
