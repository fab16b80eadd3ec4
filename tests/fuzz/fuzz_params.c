/* Files of arrays, all versions: whatever loads is saved and loaded again and must be the same. Checkpoints
 * too. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/io.h"

#define HEAP_MAX(bytes) (2u * (uint64_t)(bytes) + (64u << 20))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tni_space *space;
static tni_device *cpu;
static uint64_t size_max;

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* One context for all inputs: on the naive engine nothing outlives a call. */
static void context_open(void)
{
    const tni_engine_options how = {.type = "naive", .threads = 1};
    tni_options *options;
    tni_registry *registry;
    tni_device_set *devices;
    tni_engine *engine;

    must(!tni_options_create(NULL, &options) && !tni_registry_create(options, NULL, &registry) &&
         !tni_options_set(options, "memory.cpu.pool=none") &&
         !tni_device_set_create(options, registry, NULL, &devices) &&
         !tni_engine_create(&how, devices, NULL, &engine) && !tni_space_create(engine, devices, &space) &&
         !tni_device_get(devices, "cpu", 0, &cpu));
}

static void again(const tni_params *p)
{
    tni_params *q = NULL;
    char first[65], second[65];
    void *image = NULL;
    uint64_t count = 0;

    must(!tni_params_sha256(p, first) && !tni_params_save_memory(p, &image, &count));
    must(!tni_params_load_memory(space, cpu, image, count, &q) && !tni_params_sha256(q, second));
    must(!strcmp(first, second) && p->count == q->count);
    tni_params_destroy(q);
    tni_free(image);
}

static void checkpoint_try(const uint8_t *data, size_t size)
{
    tni_checkpoint *c = NULL;
    char path[64];
    int fd = memfd_create("checkpoint", MFD_CLOEXEC);

    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!tni_checkpoint_load(space, cpu, path, &c))
        tni_checkpoint_destroy(c);
    else
        must(tni_error_message()[0] != '\0');
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_params *p = NULL;
    tni_mem_stats stats;
    uint64_t arrays;
    tn_status st;

    if (!space)
        context_open();
    if (size > size_max)
        size_max = size;
    tni_error_clear();
    if (size >= 8 && !memcmp(data, "TNCKPT1\n", 8)) {
        checkpoint_try(data, size);
    } else {
        st = tni_params_load_memory(space, cpu, data, size, &p);
        must(st == TN_OK || st == TN_E_FORMAT || st == TN_E_UNSUPPORTED);
        must(st == TN_OK || tni_error_message()[0] != '\0');
        tni_mem_stats_get(&stats);
        must(stats.peak_bytes <= HEAP_MAX(size_max));
        if (!st)
            again(p);
        tni_params_destroy(p);
    }
    tni_space_live(space, &arrays, NULL);
    must(arrays == 0);
    return 0;
}
