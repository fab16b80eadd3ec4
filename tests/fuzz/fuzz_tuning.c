/* The file of tuned kernels, as it comes and with its checksum put right: nothing of it reaches further than
 * its bytes, and nothing is left behind. */
#include <string.h>

#include "compile/tuning.h"
#include "fuzz/input.h"

#define BYTES_MAX 65536u
#define HEAD_BYTES 16u
#define CRC_AT 8u

static void file_use(const void *bytes, size_t size)
{
    static char name[] = "a key";
    const tni_str key = {.text = name, .length = strlen(name)};
    tni_mem_stats before, after;
    tni_tuning_store *s = NULL;
    const tni_log quiet = {0};
    uint64_t count = 0;
    char path[64];
    void *blob;
    const int fd = input_file(bytes, size, path);

    tni_mem_stats_get(&before);
    must(tni_tuning_store_create(path, &quiet, &s) == TN_OK);
    blob = tni_tuning_store_find(s, &key, &count);
    must(!blob || count + HEAD_BYTES <= size);
    tni_free(blob);
    tni_tuning_store_set(s, &key, "way", 3);
    blob = tni_tuning_store_find(s, &key, &count);
    must(blob && count == 3 && !memcmp(blob, "way", 3));
    tni_free(blob);
    tni_tuning_store_destroy(s); /* beside a file in memory there is no place for a new one */
    tni_mem_stats_get(&after);
    must(after.live_count == before.live_count);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char copy[BYTES_MAX];
    uint32_t crc;

    if (size > BYTES_MAX)
        return 0;
    file_use(data, size);
    if (size < HEAD_BYTES)
        return 0;
    memcpy(copy, data, size);
    crc = tni_crc32(0, copy + CRC_AT + 4, size - CRC_AT - 4);
    for (uint32_t i = 0; i < 4; i++)
        copy[CRC_AT + i] = (unsigned char)(crc >> 8 * i);
    file_use(copy, size);
    return 0;
}
