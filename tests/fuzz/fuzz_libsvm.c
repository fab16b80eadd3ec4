/* LibSVM, plain and gzip, through a file in memory. */
#include <math.h>
#include <string.h>

#include "fuzz/input.h"

#define HEAP_MAX(bytes) (8u * (uint64_t)(bytes) + (64u << 20)) /* "1 0:1" is 5 bytes, and 20 of arrays */
#define INFLATED_MAX ((uint64_t)1100 << 16)                    /* of the longest input */

static void rows_check(const tni_array *x, tni_array *y)
{
    int64_t value = 0;
    const float *labels = tni_array_data(y);

    must(x->ndim == 2 && x->shape[0] > 0 && y->ndim == 1 && y->shape[0] == x->shape[0]);
    must(!tni_sparse_fault(x, &value));
    for (int64_t i = 0; i < y->shape[0]; i++)
        must(isfinite(labels[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_space *space = input_space(NULL);
    const bool packed = size > 1 && data[0] == 0x1f && data[1] == 0x8b;
    tni_array *x = NULL, *y = NULL;
    tni_mem_stats stats;
    char path[64];
    uint64_t arrays;
    const int fd = input_file(data, size, path);
    const tn_status st = tni_libsvm_load(space, path, 0, &x, &y);

    must(st == TN_OK || st == TN_E_FORMAT || st == TN_E_UNSUPPORTED); /* of another library */
    must(st == TN_OK || strstr(tni_error_message(), path));
    if (!st)
        rows_check(x, y);
    tni_array_release(x);
    tni_array_release(y);
    close(fd);
    tni_mem_stats_get(&stats);
    must(stats.peak_bytes <= 2 * HEAP_MAX(packed ? INFLATED_MAX : size));
    tni_space_live(space, &arrays, NULL);
    must(arrays == 0);
    return 0;
}
