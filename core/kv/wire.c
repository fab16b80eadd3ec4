/* Headers, batches and the numbers that they are made of. Fields are rows of a table. */
#include <string.h>

#include "kv/wire.h"

#define MAGIC 0x6e74u /* "tn" */
#define CRC_AT 60u

typedef struct field {
    uint8_t at, bytes, member, unused;
} field;

#define FIELD(at, bytes, name)                                                                               \
    {                                                                                                        \
        at, bytes, offsetof(tni_kv_header, name), 0                                                          \
    }

static const field header_fields[] = {
    FIELD(3, 1, type),     FIELD(4, 1, flags),  FIELD(5, 1, dtype),        FIELD(6, 1, what),
    FIELD(7, 1, priority), FIELD(8, 8, job),    FIELD(16, 2, from),        FIELD(18, 2, to),
    FIELD(20, 4, view),    FIELD(28, 4, round), FIELD(24, 4, incarnation), FIELD(32, 8, sequence),
    FIELD(40, 8, key),     FIELD(48, 8, bytes), FIELD(56, 4, payload_sum),
};
static const field entry_fields[] = {
    FIELD(0, 1, type),  FIELD(1, 1, flags),    FIELD(2, 1, dtype), FIELD(3, 1, what),
    FIELD(4, 4, round), FIELD(8, 8, sequence), FIELD(16, 8, key),
};
#define ENTRY_LENGTH_AT 24u

void tni_kv_put(uint8_t *at, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++, value >>= 8)
        at[i] = (uint8_t)value;
}

uint64_t tni_kv_get(const uint8_t *at, uint32_t bytes)
{
    uint64_t value = 0;

    while (bytes > 0)
        value = value << 8 | at[--bytes];
    return value;
}

uint64_t tni_kv_member_get(const void *member, uint32_t bytes)
{
    uint64_t wide;
    uint32_t word;
    uint16_t half;

    switch (bytes) {
    case 1:
        return *(const uint8_t *)member;
    case 2:
        memcpy(&half, member, 2);
        return half;
    case 4:
        memcpy(&word, member, 4);
        return word;
    default:
        memcpy(&wide, member, 8);
        return wide;
    }
}

void tni_kv_member_set(void *member, uint64_t value, uint32_t bytes)
{
    const uint32_t word = (uint32_t)value;
    const uint16_t half = (uint16_t)value;
    const uint8_t byte = (uint8_t)value;

    memcpy(member,
           bytes == 8   ? (const void *)&value
           : bytes == 4 ? (const void *)&word
           : bytes == 2 ? (const void *)&half
                        : &byte,
           bytes);
}

static void fields_put(const field *f, size_t count, const tni_kv_header *h, uint8_t *out)
{
    for (size_t i = 0; i < count; i++)
        tni_kv_put(out + f[i].at, tni_kv_member_get((const char *)h + f[i].member, f[i].bytes), f[i].bytes);
}

static void fields_get(const field *f, size_t count, const uint8_t *in, tni_kv_header *h)
{
    for (size_t i = 0; i < count; i++)
        tni_kv_member_set((char *)h + f[i].member, tni_kv_get(in + f[i].at, f[i].bytes), f[i].bytes);
}

uint32_t tni_kv_payload_sum(const void *payload, uint64_t bytes)
{
    return bytes > TNI_KV_CRC_MAX ? (uint32_t)tni_xxh3(payload, bytes) : tni_crc32(0, payload, bytes);
}

void tni_kv_encode(tni_kv_header *h, const void *payload, uint8_t out[TNI_KV_HEADER_BYTES])
{
    if (!(h->flags & TNI_KV_CHECKED))
        h->payload_sum = 0;
    else if (!h->summed)
        h->payload_sum = tni_kv_payload_sum(payload, h->bytes);
    tni_kv_put(out, MAGIC, 2);
    out[2] = h->version ? h->version : TNI_KV_WIRE_VERSION;
    fields_put(header_fields, sizeof header_fields / sizeof *header_fields, h, out);
    tni_kv_put(out + CRC_AT, tni_crc32(0, out, CRC_AT), 4);
}

tn_status tni_kv_decode(const uint8_t in[TNI_KV_HEADER_BYTES], const void *payload, uint64_t bytes,
                        tni_kv_header *out)
{
    tni_kv_header h = {0};

    if (tni_kv_get(in, 2) != MAGIC)
        return tni_error(TN_E_FORMAT, "message begins with %02x %02x, which is none of ours", in[0], in[1]);
    h.version = in[2];
    if (h.version != TNI_KV_WIRE_VERSION &&
        (!h.version || (in[3] != TNI_KV_HELLO && in[3] != TNI_KV_WELCOME && in[3] != TNI_KV_REFUSED)))
        return tni_error(TN_E_FORMAT, "message of version %u; this library speaks %u", in[2],
                         TNI_KV_WIRE_VERSION);
    if (tni_kv_get(in + CRC_AT, 4) != tni_crc32(0, in, CRC_AT) && !TNI_KV_BUG(NO_CHECKSUM))
        return tni_error(TN_E_FORMAT, "checksum of a message's header is wrong");
    fields_get(header_fields, sizeof header_fields / sizeof *header_fields, in, &h);
    if (h.type == 0 || h.type >= TNI_KV_TYPE_END)
        return tni_error(TN_E_FORMAT, "message of type %u, which this version does not know", h.type);
    if (h.bytes > TNI_KV_MESSAGE_MAX || h.bytes != bytes)
        return tni_error(TN_E_FORMAT, "message says %llu bytes of payload, %llu came",
                         (unsigned long long)h.bytes, (unsigned long long)bytes);
    if (h.flags & TNI_KV_CHECKED && tni_kv_payload_sum(payload, bytes) != h.payload_sum &&
        !TNI_KV_BUG(NO_CHECKSUM))
        return tni_error(TN_E_FORMAT, "checksum of a message's payload is wrong");
    if (h.type == TNI_KV_BATCH && bytes > TNI_KV_BATCH_MAX)
        return tni_error(TN_E_FORMAT, "batch of %llu bytes, at most %u", (unsigned long long)bytes,
                         TNI_KV_BATCH_MAX);
    *out = h;
    return TN_OK;
}

uint64_t tni_kv_entry_bytes(uint64_t payload)
{
    return TNI_KV_ENTRY_BYTES + ((payload + 7) & ~(uint64_t)7);
}

void tni_kv_entry_put(const tni_kv_header *h, const void *payload, uint8_t *out)
{
    memset(out, 0, tni_kv_entry_bytes(h->bytes));
    fields_put(entry_fields, sizeof entry_fields / sizeof *entry_fields, h, out);
    tni_kv_put(out + ENTRY_LENGTH_AT, h->bytes, 4);
    if (h->bytes)
        memcpy(out + TNI_KV_ENTRY_BYTES, payload, h->bytes);
}

tn_status tni_kv_entry_get(const tni_kv_header *batch, const uint8_t *payload, uint64_t *at,
                           tni_kv_header *out, const uint8_t **out_payload)
{
    const uint64_t left = batch->bytes - *at;
    const uint8_t *in = payload + *at;
    tni_kv_header h = *batch;
    uint64_t bytes;

    if (left < TNI_KV_ENTRY_BYTES)
        return tni_error(TN_E_FORMAT, "batch ends within the head of an entry");
    bytes = tni_kv_get(in + ENTRY_LENGTH_AT, 4);
    if (tni_kv_entry_bytes(bytes) > left || tni_kv_get(in + ENTRY_LENGTH_AT + 4, 4) != 0)
        return tni_error(TN_E_FORMAT, "entry of %llu bytes in a batch that has %llu left",
                         (unsigned long long)bytes, (unsigned long long)left);
    fields_get(entry_fields, sizeof entry_fields / sizeof *entry_fields, in, &h);
    if (h.type == 0 || h.type >= TNI_KV_BATCH)
        return tni_error(TN_E_FORMAT, "entry of type %u in a batch", h.type);
    h.bytes = bytes;
    *at += tni_kv_entry_bytes(bytes);
    *out = h;
    *out_payload = in + TNI_KV_ENTRY_BYTES;
    return TN_OK;
}

uint64_t tni_kv_read(tni_kv_reader *r, uint32_t bytes)
{
    const uint8_t *at = tni_kv_read_bytes(r, bytes);

    return at ? tni_kv_get(at, bytes) : 0;
}

const uint8_t *tni_kv_read_bytes(tni_kv_reader *r, uint64_t bytes)
{
    const uint8_t *at = r->at;

    if (r->bad || bytes > r->left) {
        r->bad = true;
        return NULL;
    }
    r->at += bytes;
    r->left -= bytes;
    return at;
}

void tni_kv_write(tni_str *s, uint64_t value, uint32_t bytes)
{
    uint8_t text[8];

    tni_kv_put(text, value, bytes);
    (void)tni_str_add_bytes(s, text, bytes);
}
