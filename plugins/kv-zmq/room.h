/* How many bytes of what a connection sends may lie in the system: a rule of numbers alone. */
#ifndef TNZMQ_ROOM_H
#define TNZMQ_ROOM_H

#include <stdint.h>

#define TNZMQ_ROOM_ALL ((uint64_t)1 << 18)   /* bytes: all links together have at least as much */
#define TNZMQ_ROOM_LEAST ((uint64_t)1 << 15) /* and each of them */
#define TNZMQ_ROOM_MOST ((uint64_t)1 << 30)
#define TNZMQ_ROOM_ANY UINT64_MAX /* as the system likes */
#define TNZMQ_ROOM_FAR_US 1000u  /* a round trip; with a longer one there is more on the way than in queues */
#define TNZMQ_ROOM_HOSTS_US 200u /* that two machines add to a round trip: interrupts, threads that wake */

/* Four times what is on its way: `rate` bytes/s that come out at the other end, `round_us` of the shortest
 * round trip, UINT32_MAX where there was none; it is one of `links`. With less, a single connection waits for
 * a thread that wakes late. Where the room is what bounds the rate, the next one is larger. */
static inline uint64_t tnzmq_room(uint64_t rate, uint32_t round_us, uint32_t links)
{
    const uint64_t share = TNZMQ_ROOM_ALL / (links ? links : 1),
                   least = share > TNZMQ_ROOM_LEAST ? share : TNZMQ_ROOM_LEAST;
    const uint32_t shortest = round_us == UINT32_MAX ? 0 : round_us;
    const double bytes = 4e-6 * (double)rate * (shortest + (double)TNZMQ_ROOM_HOSTS_US);

    if (shortest > TNZMQ_ROOM_FAR_US)
        return TNZMQ_ROOM_ANY;
    if (bytes < (double)least)
        return least;
    return bytes > (double)TNZMQ_ROOM_MOST ? TNZMQ_ROOM_MOST : (uint64_t)bytes;
}

#endif
