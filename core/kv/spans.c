/*
 * What a trace of the profiler has of the store: each push, pull and wait of a worker, each round and update
 * of a server, and what is needed to put the traces of a job's processes together: who this one is, and how
 * far its clock is from the scheduler's.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kv/protocol.h"

void tni_kv_span_write(char phase, const char *what, uint64_t key, uint32_t round)
{
    char name[96];

    if (key == UINT64_MAX)
        (void)snprintf(name, sizeof name, "%s %u", what, round);
    else if (key & TNI_KV_WHOLE)
        (void)snprintf(name, sizeof name, "%s key %u round %u", what, (uint32_t)(key >> 16), round);
    else
        (void)snprintf(name, sizeof name, "%s key %" PRIu64 " part %u round %u", what, key >> 16,
                       (uint32_t)(key & 0xffff), round);
    tni_trace_event(phase, "kv", name, 0);
}

/* Processes of one machine have one clock: the number of its start. */
static void clock_text(char out[40])
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, out, 36);

    if (fd >= 0)
        (void)close(fd);
    length = length > 0 ? length : 0;
    out[length] = '\0';
    if (strspn(out, "0123456789abcdef-") != (size_t)length)
        out[0] = '\0';
}

void tni_kv_trace_own(uint64_t job, uint16_t id, uint32_t incarnation, int64_t ahead_ns, uint64_t error_ns)
{
    char name[24], facts[256], clock[40], *blank;

    clock_text(clock);
    (void)snprintf(name, sizeof name, "%s", tni_kv_node_name(id, facts));
    (void)snprintf(facts, sizeof facts,
                   "\"job\":\"%016" PRIx64
                   "\",\"node\":\"%s\",\"incarnation\":%u,\"clock\":\"%s\",\"clock_ahead_ns\":%" PRId64
                   ",\"clock_error_ns\":%" PRIu64,
                   job, name, incarnation, clock, ahead_ns, error_ns);
    if ((blank = strchr(name, ' ')))
        *blank = '-';
    tni_trace_own_set(name, facts);
}
