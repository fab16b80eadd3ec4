/* Records of a journal: length 4, checksum 4, bytes. Reading ends at the first that is not whole. */
#include "kv/protocol.h"

#define RECORD_MAX ((uint64_t)64 << 20) /* a view of the most nodes, with addresses, has 10 MB */

tn_status tni_kv_journal_record(const void *bytes, uint64_t count, tni_str *out)
{
    if (count > RECORD_MAX)
        return tni_error(TN_E_ARG, "record of %llu bytes", (unsigned long long)count);
    tni_kv_write(out, count, 4);
    tni_kv_write(out, tni_crc32(0, bytes, count), 4);
    return tni_str_add_bytes(out, bytes, count);
}

bool tni_kv_journal_next(tni_kv_reader *r, const uint8_t **record, uint64_t *bytes)
{
    const uint64_t count = tni_kv_read(r, 4);
    const uint32_t crc = (uint32_t)tni_kv_read(r, 4);
    const uint8_t *at = tni_kv_read_bytes(r, count);

    if (!at || count > RECORD_MAX || tni_crc32(0, at, count) != crc)
        return false;
    *record = at;
    *bytes = count;
    return true;
}

uint64_t tni_kv_journal_whole(const void *text, uint64_t bytes)
{
    tni_kv_reader r = {text, bytes, false};
    const uint8_t *record;
    uint64_t count, whole = 0;

    while (tni_kv_journal_next(&r, &record, &count))
        whole = bytes - r.left;
    return whole;
}
