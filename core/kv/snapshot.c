/*
 * What a server writes at the end of a step, one text: magic 8, version 4, job 8, members 4, parts 8, the
 * workers' last commands, each part (key 8, dtype 1, bytes 8, rounds 4, voids 8, breaker 2, of each worker
 * applied rounds 4 and the first that never comes 4, value), the optimizer's states, and a CRC-32 of all
 * before it.
 */
#include <string.h>

#include "kv/server.h"

#define MAGIC 0x32766b736e657474u

/* Of another number of servers it would hold a part of the keys, and the rest would begin anew. */
static uint32_t members(const tni_kv_server *s)
{
    return s->node.settings->workers | s->node.settings->servers << 16;
}

tn_status tni_kv_snapshot_write(const tni_kv_server *s, tni_str *out)
{
    const uint32_t workers = s->node.settings->workers;

    tni_kv_write(out, MAGIC, 8);
    tni_kv_write(out, TNI_KV_WIRE_VERSION, 4);
    tni_kv_write(out, s->node.settings->job, 8);
    tni_kv_write(out, members(s), 4);
    tni_kv_write(out, s->part_count, 8);
    for (uint32_t w = 0; w < workers; w++)
        tni_kv_write(out, s->commands[w], 8);
    for (uint64_t i = 0; i < s->table_size; i++)
        for (const tni_kv_store_part *p = s->table[i]; p; p = p->next) {
            tni_kv_write(out, p->key, 8);
            tni_kv_write(out, p->dtype, 1);
            tni_kv_write(out, p->bytes, 8);
            tni_kv_write(out, p->version, 4);
            tni_kv_write(out, p->voids, 8);
            tni_kv_write(out, p->breaker, 2);
            for (uint32_t w = 0; w < workers; w++) {
                tni_kv_write(out, p->slots[w].applied, 4);
                tni_kv_write(out, p->slots[w].last, 4);
            }
            (void)tni_str_add_bytes(out, p->value, p->bytes);
        }
    if (s->update.save && out->status == TN_OK) {
        const tn_status st = s->update.save(s->update.arg, out);

        if (st)
            return st;
    }
    tni_kv_write(out, 0, 4); /* for the checksum */
    return out->status;
}

void tni_kv_snapshot_seal(void *text, uint64_t bytes)
{
    tni_kv_put((uint8_t *)text + bytes - 4, tni_crc32(0, text, bytes - 4), 4);
}

static tn_status part_read(tni_kv_server *s, tni_kv_reader *r)
{
    const uint32_t workers = s->node.settings->workers;
    const uint64_t key = tni_kv_read(r, 8);
    const uint8_t dtype = (uint8_t)tni_kv_read(r, 1);
    const uint64_t bytes = tni_kv_read(r, 8);
    const uint32_t version = (uint32_t)tni_kv_read(r, 4);
    const uint64_t voids = tni_kv_read(r, 8);
    const uint16_t breaker = (uint16_t)tni_kv_read(r, 2);
    const uint8_t *applied = tni_kv_read_bytes(r, 8ull * workers), *value = tni_kv_read_bytes(r, bytes);
    tni_kv_store_part *p;
    tn_status st;

    if (!value || tni_kv_part_find(s, key))
        return tni_error(TN_E_FORMAT, "snapshot ends within a part, or has it twice");
    if ((st = tni_kv_part_create(s, key, dtype, bytes, &p)))
        return st;
    p->version = version;
    p->voids = voids;
    p->breaker = breaker;
    for (uint32_t w = 0; w < workers; w++) {
        p->slots[w].applied = TNI_KV_BUG(DEDUP_LOST) ? 0 : (uint32_t)tni_kv_get(applied + 8ull * w, 4);
        p->slots[w].last = (uint32_t)tni_kv_get(applied + 8ull * w + 4, 4);
        s->lasts = s->lasts || p->slots[w].last;
    }
    tni_kv_part_unheard(s, p);
    memcpy(p->value, value, bytes);
    return TN_OK;
}

tn_status tni_kv_snapshot_read(tni_kv_server *s, const void *text, uint64_t bytes)
{
    const uint32_t workers = s->node.settings->workers;
    tni_kv_reader r = {text, bytes < 4 ? 0 : bytes - 4, false};
    uint64_t parts;
    tn_status st = TN_OK;

    if (bytes < 4 || tni_crc32(0, text, r.left) != tni_kv_get((const uint8_t *)text + r.left, 4))
        return tni_error(TN_E_FORMAT, "checksum of a snapshot is wrong");
    if (tni_kv_read(&r, 8) != MAGIC || tni_kv_read(&r, 4) != TNI_KV_WIRE_VERSION ||
        tni_kv_read(&r, 8) != s->node.settings->job || tni_kv_read(&r, 4) != members(s))
        return tni_error(TN_E_FORMAT, "snapshot of another job, version or number of workers or servers");
    parts = tni_kv_read(&r, 8);
    for (uint32_t w = 0; w < workers; w++)
        s->commands[w] = tni_kv_read(&r, 8);
    for (uint64_t i = 0; !st && i < parts && !r.bad; i++)
        st = part_read(s, &r);
    if (!st && r.bad)
        st = tni_error(TN_E_FORMAT, "snapshot ends early");
    if (!st && s->update.load)
        st = s->update.load(s->update.arg, r.at, r.left);
    return st;
}
