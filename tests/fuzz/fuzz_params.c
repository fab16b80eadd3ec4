/* Files of arrays, all versions: whatever loads is saved and loaded again and must be the same. Checkpoints
 * too. */
#include <string.h>

#include "fuzz/input.h"

#define HEAP_MAX(bytes) (2u * (uint64_t)(bytes) + (64u << 20))

static uint64_t size_max;

static void again(tni_space *space, tni_device *cpu, const tni_params *p)
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

static void checkpoint_try(tni_space *space, tni_device *cpu, const uint8_t *data, size_t size)
{
    tni_checkpoint *c = NULL;
    char path[64];
    const int fd = input_file(data, size, path);

    if (!tni_checkpoint_load(space, cpu, path, &c))
        tni_checkpoint_destroy(c);
    else
        must(tni_error_message()[0] != '\0');
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_device *cpu;
    tni_space *space = input_space(&cpu);
    tni_params *p = NULL;
    tni_mem_stats stats;
    uint64_t arrays;
    tn_status st;

    if (size > size_max)
        size_max = size;
    tni_error_clear();
    if (size >= 8 && !memcmp(data, "TNCKPT1\n", 8)) {
        checkpoint_try(space, cpu, data, size);
    } else {
        st = tni_params_load_memory(space, cpu, data, size, &p);
        must(st == TN_OK || st == TN_E_FORMAT || st == TN_E_UNSUPPORTED);
        must(st == TN_OK || tni_error_message()[0] != '\0');
        tni_mem_stats_get(&stats);
        must(stats.peak_bytes <= HEAP_MAX(size_max));
        if (!st)
            again(space, cpu, p);
        tni_params_destroy(p);
    }
    tni_space_live(space, &arrays, NULL);
    must(arrays == 0);
    return 0;
}
