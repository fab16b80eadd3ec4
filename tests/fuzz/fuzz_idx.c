/* IDX files, plain and gzip, through a file in memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "io/io.h"

#define HEAP_MAX(bytes) (2u * (uint64_t)(bytes) + (64u << 20))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tni_space *space;
static uint64_t peak_allowed;

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void context_open(void)
{
    const tni_engine_options how = {.type = "naive", .threads = 1};
    tni_options *options;
    tni_registry *registry;
    tni_device_set *devices;
    tni_engine *engine;

    must(!tni_options_create(NULL, &options) && !tni_registry_create(options, NULL, &registry) &&
         !tni_device_set_create(options, registry, NULL, &devices) &&
         !tni_engine_create(&how, devices, NULL, &engine) && !tni_space_create(engine, devices, &space));
}

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
    tni_mem_stats stats;
    tni_array *a = NULL;
    char path[64];
    uint64_t arrays;
    int fd = memfd_create("idx", MFD_CLOEXEC);
    tn_status st;

    if (!space)
        context_open();
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
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
