/* Which of several ways to compute the same is the fastest on a device, as measured there. */
#ifndef TNCUDA_MEASURE_H
#define TNCUDA_MEASURE_H

#include "driver.h"

#include <stdbool.h>

#define TNCUDA_WAYS 8u /* that are measured, at most */

typedef struct tncuda_trial {
    const tncuda_driver *driver;
    uint32_t count; /* of ways */
    uint64_t bytes; /* of the memory that they run on */
    void *state;
    /* Before the first run with the stream, behind the last one with NULL. May be NULL itself. */
    bool (*bind)(void *state, tncuda_stream stream);
    /* Gives the stream one run of a way. The memory holds numbers, whatever floating point type it is read
     * as. False: it cannot run. */
    bool (*run)(void *state, uint32_t way, char *memory, tncuda_stream stream);
} tncuda_trial;

/* In the context: the way that takes the least time, on memory and a stream of their own, which are given
 * back. The first one, unless a later one is clearly ahead or the first cannot run; so too if nothing can be
 * measured. */
uint32_t tncuda_fastest(const tncuda_trial *trial);

#endif
