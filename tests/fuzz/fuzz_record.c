/* RecordIO: whole and in shares, which have the same records; what was read is written and read again. */
#include <string.h>

#include "fuzz/input.h"
#include "tenon/record.h"

/* Records of all shares; *bytes: theirs together. A failure ends a share. */
static size_t read_all(const char *path, uint32_t parts, uint64_t *bytes, bool *whole)
{
    size_t count = 0;

    *bytes = 0;
    *whole = true;
    for (uint32_t part = 0; part < parts; part++) {
        tni_record_reader *r = NULL;
        const void *data = NULL;
        uint64_t n;
        tn_status st = tni_record_open(path, part, parts, &r);

        must(st == TN_OK);
        while (!(st = tni_record_next(r, &data, &n)) && data) {
            count++;
            *bytes += n;
        }
        must(st == TN_OK || (st == TN_E_FORMAT && strstr(tni_error_message(), path)));
        *whole &= !st;
        tni_record_close(r);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const void *payload;
    tn_record_header h = {.struct_size = TN_SIZE(tn_record_header)};
    tni_mem_stats stats;
    char path[64];
    uint64_t bytes, shared, left;
    bool whole, all;
    const int fd = input_file(data, size, path);
    const size_t count = read_all(path, 1, &bytes, &whole);

    for (uint32_t parts = 2; parts < 6; parts++)
        if (whole) {
            must(read_all(path, parts, &shared, &all) == count && all && shared == bytes);
        } else {
            (void)read_all(path, parts, &shared, &all);
        }
    must(bytes <= size);
    if (!tn_record_unpack(data, size, &h, &payload, &left))
        must((const uint8_t *)payload + left == data + size);
    close(fd);
    tni_mem_stats_get(&stats);
    must(stats.peak_bytes <= 4 * (uint64_t)size + (64u << 20));
    return 0;
}
