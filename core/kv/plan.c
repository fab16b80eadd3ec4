/*
 * Sharding. A small array is one part, on the server that a hash of its key names. A big one is cut into
 * equal parts, which go round the servers from that one on: each holds as many, give or take one.
 *
 * Of several servers each gets SHARES parts if they are long enough. A link is idle at the end of a round for
 * about the time of two parts, since the last values wait for the last gradients (docs/store.md).
 */
#include "kv/plan.h"

#define SHARES 64u  /* parts of an array that a server gets */
#define SHORTEST 8u /* they are not shorter than this share of part_bytes, as each costs processor time */

static uint64_t round_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

tn_status tni_kv_plan_make(const tni_kv_plan_options *o, uint32_t key, uint64_t elements,
                           uint64_t element_bytes, tni_kv_plan *out)
{
    const uint8_t text[4] = {(uint8_t)key, (uint8_t)(key >> 8), (uint8_t)(key >> 16), (uint8_t)(key >> 24)};
    tni_kv_plan p = {.servers = o->servers, .key = key, .parts = 1};
    const uint64_t unit = element_bytes && TNI_KV_ALIGN % element_bytes == 0 ? TNI_KV_ALIGN : element_bytes;
    bool big;

    if (!o->servers || !o->part_bytes || !element_bytes || key >= TNI_KV_NUMBERS_MAX)
        return tni_error(TN_E_ARG, "key %u: a plan needs servers, part sizes and a key below %u", key,
                         TNI_KV_NUMBERS_MAX);
    if (!tni_size_mul(elements, element_bytes, &p.bytes))
        return tni_error(TN_E_ARG, "key %u: %llu elements are too many", key, (unsigned long long)elements);
    p.first = (uint32_t)(tni_hash_bytes(0, text, sizeof text) % o->servers);
    p.piece = p.bytes;
    big = o->bound ? elements >= o->bound : p.bytes > o->part_bytes;
    if (big && p.bytes > TNI_KV_ALIGN) {
        const uint64_t least = round_up(o->part_bytes, SHORTEST), each = round_up(p.bytes, o->servers);
        const uint64_t share = o->servers > 1 ? each / SHARES : each;

        p.piece = share > least ? share : least;
        p.piece = p.piece < o->part_bytes ? p.piece : o->part_bytes;
        p.piece = p.piece < each ? p.piece : each;
        if (round_up(p.bytes, p.piece) > TNI_KV_PARTS_MAX)
            p.piece = round_up(p.bytes, TNI_KV_PARTS_MAX);
        p.piece = round_up(p.piece, unit) * unit;
        p.parts = (uint32_t)round_up(p.bytes, p.piece);
    }
    *out = p;
    return TN_OK;
}

tni_kv_part tni_kv_plan_part(const tni_kv_plan *p, uint32_t index)
{
    const uint64_t offset = index * p->piece, left = p->bytes - offset;

    return (tni_kv_part){.key = (uint64_t)p->key << 16 | index,
                         .offset = offset,
                         .bytes = left < p->piece ? left : p->piece,
                         .server = (uint32_t)(((uint64_t)p->first + index) % p->servers)};
}
