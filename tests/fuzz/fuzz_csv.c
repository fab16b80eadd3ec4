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

static tn_status on_first(void *arg, uint64_t column, const char *text)
{
    (void)arg;
    must(column < 131072 && strlen(text) <= 64);
    return TN_OK;
}

static tn_status on_head(void *arg, uint64_t columns, int32_t header)
{
    tn_csv_words *words = arg;

    must(columns > 0 && (header == 0 || header == 1));
    words->column = (int64_t)columns - 1;
    return TN_OK;
}

static tn_status on_word(void *arg, const char *text, int32_t number, uint64_t line, float *out)
{
    (void)arg;
    must(*text && line > 0 && (!number || isfinite(*out)));
    if (!number)
        *out = 1;
    return TN_OK;
}

/* What is read as numbers is read with a column of texts, too. */
static void words_check(tni_space *space, const void *data, size_t size, tni_array *numbers)
{
    tn_csv_words words = {.struct_size = sizeof words,
                          .column = -1,
                          .arg = &words,
                          .first = on_first,
                          .head = on_head,
                          .word = on_word};
    tni_array *a = NULL;
    tn_status st = tni_csv_load_words(space, "memory", data, size, &words, &a);

    must(st == TN_OK || st == TN_E_FORMAT);
    must(!numbers || !st);
    if (!st)
        numbers_check(a);
    tni_array_release(a);
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
    if (!packed)
        words_check(space, data, size, a);
    tni_array_release(a);
    tni_array_release(b);
    close(fd);
    tni_mem_stats_get(&stats);
    must(stats.peak_bytes <= 2 * HEAP_MAX(packed ? INFLATED_MAX : size));
    tni_space_live(space, &arrays, NULL);
    must(arrays == 0);
    return 0;
}
