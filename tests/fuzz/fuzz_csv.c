/* CSV, plain and gzip, through a file in memory; plain ones also as memory, with the same answer. */
#include <math.h>
#include <string.h>

#include "fuzz/input.h"

#define HEAP_MAX(bytes) (2u * (uint64_t)(bytes) + (64u << 20))
#define INFLATED_MAX ((uint64_t)1100 << 16) /* of the longest input */

static void numbers_check(tni_array *a)
{
    const float *x = tni_array_data(a);

    must(a->ndim == 2 && a->shape[0] > 0 && a->shape[1] > 0);
    for (int64_t i = 0; i < a->shape[0] * a->shape[1]; i++)
        must(isfinite(x[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_space *space = input_space(NULL);
    const bool packed = size > 1 && data[0] == 0x1f && data[1] == 0x8b;
    tni_array *a = NULL, *b = NULL;
    tni_mem_stats stats;
    char path[64];
    uint64_t arrays;
    const int fd = input_file(data, size, path);
    tn_status st;

    st = tni_csv_load(space, path, &a);
    must(st == TN_OK || st == TN_E_FORMAT);
    must(st == TN_OK || strstr(tni_error_message(), path));
    if (!st)
        numbers_check(a);
    if (!packed) {
        must(tni_csv_load_memory(space, data, size, "memory", &b) == st);
        must(st || (a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1] &&
                    !memcmp(tni_array_data(a), tni_array_data(b), (size_t)(a->shape[0] * a->shape[1]) * 4)));
    }
    tni_array_release(a);
    tni_array_release(b);
    close(fd);
    tni_mem_stats_get(&stats);
    must(stats.peak_bytes <= 2 * HEAP_MAX(packed ? INFLATED_MAX : size));
    tni_space_live(space, &arrays, NULL);
    must(arrays == 0);
    return 0;
}
