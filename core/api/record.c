/* tenon/record.h. Readers and writers are the structs of room io. */
#include <string.h>

#include "api/api.h"
#include "tenon/record.h"

#define HEADER_BYTES 24u /* u32 number of labels, f32 label, u64 id, u64 id2 */
#define RECORD_MAX ((UINT64_C(1) << 29) - 1)

tn_status tn_record_open(const char *path, uint32_t part, uint32_t parts, tn_record_reader **out)
{
    if (!path || !out)
        return api_null(__func__, "path or out");
    if (part >= parts)
        return tni_error(TN_E_ARG, "%s: share %u of %u, counted from 0", __func__, part, parts);
    return tni_record_open(path, part, parts, out);
}

void tn_record_close(tn_record_reader *r)
{
    tni_record_close(r);
}

tn_status tn_record_next(tn_record_reader *r, const void **data, uint64_t *bytes)
{
    if (!r || !data || !bytes)
        return api_null(__func__, "r, data or bytes");
    return tni_record_next(r, data, bytes);
}

tn_status tn_record_peek(tn_record_reader *r, void *out, uint64_t room, uint64_t *bytes, uint64_t *offset)
{
    if (!r || (room && !out) || !bytes || !offset)
        return api_null(__func__, "r, out, bytes or offset");
    return tni_record_peek(r, out, room, bytes, offset);
}

tn_status tn_record_seek(tn_record_reader *r, uint64_t offset)
{
    return r ? tni_record_seek(r, offset) : api_null(__func__, "r");
}

void tn_record_rewind(tn_record_reader *r)
{
    if (r)
        tni_record_rewind(r);
}

tn_status tn_record_create(const char *path, const char *index, tn_record_writer **out)
{
    if (!path || !out)
        return api_null(__func__, "path or out");
    return tni_record_create(path, index, out);
}

tn_status tn_record_append(tn_record_writer *w, uint64_t key, const void *data, uint64_t bytes)
{
    if (!w || (bytes && !data))
        return api_null(__func__, "w or data");
    return tni_record_append(w, key, bytes ? data : "", bytes);
}

tn_status tn_record_finish(tn_record_writer *w)
{
    return w ? tni_record_finish(w) : api_null(__func__, "w");
}

void tn_record_abandon(tn_record_writer *w)
{
    tni_record_abandon(w);
}

tn_status tn_record_index_load(const char *path, size_t *count, tn_record_place **places)
{
    if (!path || !count || !places)
        return api_null(__func__, "path, count or places");
    return tni_record_index_load(path, count, places);
}

/* ---- labels -------------------------------------------------------------------------------------- */

tn_status tn_record_unpack(const void *data, uint64_t bytes, tn_record_header *header, const void **payload,
                           uint64_t *payload_bytes)
{
    const char *at = data;
    tn_record_header h = {.struct_size = (uint32_t)sizeof h};
    tn_status st;

    if (!data || !header || !payload || !payload_bytes)
        return api_null(__func__, "data, header, payload or payload_bytes");
    if (bytes < HEADER_BYTES)
        return tni_error(TN_E_FORMAT, "a record of %llu bytes has no header of %u", (unsigned long long)bytes,
                         HEADER_BYTES);
    memcpy(&h.label_count, at, 4);
    memcpy(&h.label, at + 4, 4);
    memcpy(&h.id, at + 8, 8);
    memcpy(&h.id2, at + 16, 8);
    if (h.label_count > (bytes - HEADER_BYTES) / sizeof(float))
        return tni_error(TN_E_FORMAT, "a record of %llu bytes cannot have %u labels",
                         (unsigned long long)bytes, h.label_count);
    at += HEADER_BYTES;
    h.labels = h.label_count ? (const float *)(const void *)at : NULL;
    if ((st = api_info(__func__, &h, header, (uint32_t)sizeof h)))
        return st;
    *payload = at + sizeof(float) * h.label_count;
    *payload_bytes = bytes - HEADER_BYTES - sizeof(float) * h.label_count;
    return TN_OK;
}

tn_status tn_record_pack(const tn_record_header *header, const void *payload, uint64_t payload_bytes,
                         void **data, uint64_t *bytes)
{
    tn_record_header h;
    uint64_t labels;
    char *made;
    tn_status st;

    if (!header || !data || !bytes || (payload_bytes && !payload))
        return api_null(__func__, "header, payload, data or bytes");
    if ((st = api_options(__func__, header, &h, (uint32_t)sizeof h)))
        return st;
    if (h.reserved || (h.label_count && !h.labels))
        return tni_error(TN_E_ARG, "%s: %s", __func__, h.reserved ? "`reserved` is not 0" : "labels is NULL");
    labels = sizeof(float) * (uint64_t)h.label_count;
    if (payload_bytes > RECORD_MAX - HEADER_BYTES || labels > RECORD_MAX - HEADER_BYTES - payload_bytes)
        return tni_error(TN_E_ARG, "%s: the record would have more than %llu bytes", __func__,
                         (unsigned long long)RECORD_MAX);
    if (!(made = tni_alloc(HEADER_BYTES + labels + payload_bytes)))
        return TN_E_NOMEM;
    if (h.label_count)
        h.label = 0; /* as MXNet writes it */
    memcpy(made, &h.label_count, 4);
    memcpy(made + 4, &h.label, 4);
    memcpy(made + 8, &h.id, 8);
    memcpy(made + 16, &h.id2, 8);
    if (labels)
        memcpy(made + HEADER_BYTES, h.labels, labels);
    if (payload_bytes)
        memcpy(made + HEADER_BYTES + labels, payload, payload_bytes);
    *data = made;
    *bytes = HEADER_BYTES + labels + payload_bytes;
    return TN_OK;
}
