/* The room that a sequence of CTCLoss takes (ctc.inc). On the host. */
#ifndef TNB_CTC_H
#define TNB_CTC_H

#include <stdint.h>

/* Numbers of `steps` kept steps; below 0: more than any memory holds. */
static inline int64_t tnb_ctc_room(int64_t steps, int64_t labels, int64_t symbols)
{
    const int64_t most = INT64_MAX / 64;
    int64_t room;

    if (steps > most || labels > most || symbols > most ||
        __builtin_mul_overflow(steps + 1, 2 * labels + 1, &room) || room > most)
        return -1;
    return room + 2 * symbols;
}

#endif
