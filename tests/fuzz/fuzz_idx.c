/* IDX files, plain and gzip, through a file in memory. */
#include <string.h>
#include <zlib.h>

#include "fuzz/input.h"

#define HEAP_MAX(bytes) (2u * (uint64_t)(bytes) + (64u << 20))

static uint64_t peak_allowed;

/* What the input inflates to, as far as it does. */
static uint64_t inflated(const uint8_t *data, size_t size)
{
    static unsigned char sink[1 << 16];
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (unsigned)size};
    int code = Z_OK;

    if (size < 2 || data[0] != 0x1f || data[1] != 0x8b || inflateInit2(&z, 31) != Z_OK)
        return size;
    while (code == Z_OK) {
        z.next_out = sink;
        z.avail_out = sizeof sink;
        code = inflate(&z, Z_NO_FLUSH);
        if (code == Z_STREAM_END && z.avail_in)
            code = inflateReset(&z);
    }
    (void)inflateEnd(&z);
    return z.total_out > size ? z.total_out : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_space *space = input_space(NULL);
    tni_mem_stats stats;
    tni_array *a = NULL;
    char path[64];
    uint64_t arrays;
    const int fd = input_file(data, size, path);
    tn_status st;

    st = tni_idx_load(space, path, &a);
    must(st == TN_OK || st == TN_E_FORMAT);
    must(st == TN_OK || strstr(tni_error_message(), path));
    tni_array_release(a);
    close(fd);
    tni_mem_stats_get(&stats);
    if (stats.peak_bytes > peak_allowed && HEAP_MAX(inflated(data, size)) > peak_allowed)
        peak_allowed = HEAP_MAX(inflated(data, size));
    must(stats.peak_bytes <= peak_allowed);
    tni_space_live(space, &arrays, NULL);
    must(arrays == 0);
    return 0;
}
