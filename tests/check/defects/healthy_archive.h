/*
 * An archive that is well: "ACME", a byte for the number of entries; for each a byte for the length of its
 * name, the name, eight bytes for its size, the bytes, one byte that is their sum.
 */
#ifndef TN_DEFECTS_HEALTHY_ARCHIVE_H
#define TN_DEFECTS_HEALTHY_ARCHIVE_H

#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/archive.h"

typedef struct entry {
    char name[256];
    uint64_t at, bytes;
} entry;

struct tn_archive {
    const tn_archive_input *from;
    uint8_t count, sum;
    uint64_t at, left;
    entry entries[255];
};

static inline tn_status take(const tn_archive_input *from, uint64_t *at, void *out, uint64_t bytes,
                             tn_err *err)
{
    if (*at > from->bytes || bytes > from->bytes - *at)
        return tn_fail(err, TN_E_FORMAT, "the file ends early");
    *at += bytes;
    return bytes ? from->read(from->self, *at - bytes, out, bytes, err) : TN_OK;
}

static inline tn_status entry_take(tn_archive *a, entry *e, uint64_t *at, tn_err *err)
{
    uint8_t length = 0;
    tn_status st = take(a->from, at, &length, 1, err);

    if (st || (st = take(a->from, at, e->name, length, err)) ||
        (st = take(a->from, at, &e->bytes, sizeof e->bytes, err)))
        return st;
    e->at = *at;
    if (e->bytes >= a->from->bytes - *at)
        return tn_fail(err, TN_E_FORMAT, "an entry is longer than the file");
    *at += e->bytes + 1;
    return TN_OK;
}

static inline int32_t healthy_probe(void *plugin, const void *head, uint64_t bytes)
{
    (void)plugin;
    return bytes >= 4 && !memcmp(head, "ACME", 4);
}

static inline void healthy_close(tn_archive *a)
{
    free(a);
}

static inline tn_status healthy_open(void *plugin, const tn_archive_input *from, tn_archive **out,
                                     tn_err *err)
{
    tn_archive *a = calloc(1, sizeof *a);
    char magic[4] = "";
    uint64_t at = 0;
    tn_status st;

    (void)plugin;
    if (!a)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    a->from = from;
    if (!(st = take(from, &at, magic, sizeof magic, err)) && !(st = take(from, &at, &a->count, 1, err)) &&
        memcmp(magic, "ACME", 4) != 0)
        st = tn_fail(err, TN_E_FORMAT, "no archive");
    for (uint8_t i = 0; !st && i < a->count; i++)
        st = entry_take(a, &a->entries[i], &at, err);
    if (st)
        healthy_close(a);
    else
        *out = a;
    return st;
}

static inline tn_status healthy_entry(tn_archive *a, uint32_t index, tn_archive_entry *out, tn_err *err)
{
    if (index >= a->count)
        return tn_fail(err, TN_E_KEY, "no such entry");
    out->name = a->entries[index].name;
    out->bytes = a->entries[index].bytes;
    return TN_OK;
}

static inline tn_status healthy_begin(tn_archive *a, uint32_t index, tn_err *err)
{
    if (index >= a->count)
        return tn_fail(err, TN_E_KEY, "no such entry");
    a->at = a->entries[index].at;
    a->left = a->entries[index].bytes;
    a->sum = 0;
    return TN_OK;
}

static inline tn_status healthy_read(tn_archive *a, void *out, uint64_t bytes, tn_err *err)
{
    uint8_t sum = 0;
    tn_status st;

    if (bytes > a->left)
        return tn_fail(err, TN_E_FORMAT, "the entry has no more");
    if ((st = take(a->from, &a->at, out, bytes, err)))
        return st;
    a->left -= bytes;
    for (uint64_t i = 0; i < bytes; i++)
        a->sum = (uint8_t)(a->sum + ((const uint8_t *)out)[i]);
    if (a->left)
        return TN_OK;
    if ((st = take(a->from, &a->at, &sum, 1, err)))
        return st;
    return sum == a->sum ? TN_OK : tn_fail(err, TN_E_FORMAT, "another sum");
}

static inline tn_status entry_give(const tn_archive_output *to, uint32_t index, tn_err *err)
{
    const tn_archive_entry *e = &to->entries[index];
    const uint8_t length = (uint8_t)strlen(e->name);
    uint8_t piece[512], sum = 0;
    tn_status st;

    if ((st = to->write(to->self, &length, 1, err)) || (st = to->write(to->self, e->name, length, err)) ||
        (st = to->write(to->self, &e->bytes, sizeof e->bytes, err)))
        return st;
    for (uint64_t at = 0; at < e->bytes; at += sizeof piece) {
        const uint64_t left = e->bytes - at, bytes = left < sizeof piece ? left : sizeof piece;

        if ((st = to->read(to->self, index, at, piece, bytes, err)) ||
            (st = to->write(to->self, piece, bytes, err)))
            return st;
        for (uint64_t i = 0; i < bytes; i++)
            sum = (uint8_t)(sum + piece[i]);
    }
    return to->write(to->self, &sum, 1, err);
}

static inline tn_status healthy_write(void *plugin, const tn_archive_output *to, tn_err *err)
{
    const uint8_t count = (uint8_t)to->count;
    tn_status st;

    (void)plugin;
    if (!(st = to->write(to->self, "ACME", 4, err)))
        st = to->write(to->self, &count, 1, err);
    for (uint32_t i = 0; !st && i < to->count; i++)
        st = entry_give(to, i, err);
    return st;
}

/* An archive that is well but for the functions given. */
#define ARCHIVE(NAME, ...)                                                                                   \
    static const tn_archive_ops archive_ops = {                                                              \
        .head = TN_CAPABILITY(tn_archive_ops, write, TN_KIND_ARCHIVE, "acme"), __VA_ARGS__};                 \
    static const tn_capability *const tables[] = {&archive_ops.head, NULL};                                  \
    TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "an archive", "", "archive:acme", NULL, NULL,      \
                     NULL, tables)

#endif
