/* On the host, for plugins of transports: the clock, and errors of the system in words. */
#ifndef TNB_SYSTEM_H
#define TNB_SYSTEM_H

#include <errno.h>
#include <string.h>
#include <time.h>

#include "tenon/plugin/util.h"

static inline uint64_t monotonic_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* errno as a status: TN_E_NOMEM or TN_E_IO; `what` goes before its words. */
static inline tn_status fail_system(tn_err *err, const char *what)
{
    const int number = errno;
    const tn_status st = number == ENOMEM || number == ENOBUFS ? TN_E_NOMEM : TN_E_IO;

    (void)tn_failf(err, st, "%s: %s", what, strerror(number));
    if (err)
        err->native = number;
    return st;
}

#endif
