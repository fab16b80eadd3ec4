/*
 * RecordIO. A part is u32 magic, u32 (kind << 29 | length), the bytes, zeros up to a multiple of 4. A record
 * is one whole part (kind 0), or several: first (1), middle (2), last (3), between which the magic stood in
 * the record. So no aligned word of a part is the magic, and a start can be found from anywhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/internal.h"

#define MAGIC 0xCED7230Au
#define LENGTH_BITS 29
#define LENGTH_MAX ((UINT64_C(1) << LENGTH_BITS) - 1)
#define HEAD_BYTES 8u
#define SCAN_BYTES (64u << 10)
#define PLACES_MAX ((size_t)1 << 40)
enum { WHOLE, FIRST, MIDDLE, LAST };

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 3) & ~UINT64_C(3);
}

/* ---- reading ----------------------------------------------------------------------------------------- */

struct tn_record_reader {
    tni_file *file;
    uint64_t size, begin, end, at; /* bytes: of the file, of the share, where the next record begins */
    tni_vec record;                /* bytes */
};

static tn_status wrong(const tni_record_reader *r, uint64_t at, const char *what)
{
    return tni_error(TN_E_FORMAT, "%s, byte %llu: %s", tni_file_name(r->file), (unsigned long long)at, what);
}

/* The first record that begins at `from` or behind it; the end of the file: none does. */
static tn_status start_find(const tni_record_reader *r, uint64_t from, uint64_t *out)
{
    uint32_t *words = tni_alloc(SCAN_BYTES + 4);
    tn_status st = words ? TN_OK : TN_E_NOMEM;
    uint64_t at = aligned(from);
    bool found = false;

    while (!st && !found && at + HEAD_BYTES <= r->size) {
        const uint64_t left = r->size - at, count = (left < SCAN_BYTES ? left : SCAN_BYTES) / 4;

        if ((st = tni_file_read_at(r->file, at, words, 4 * count)))
            break;
        for (uint64_t i = 0; i + 1 < count && !found; i++) {
            found = words[i] == MAGIC && words[i + 1] >> LENGTH_BITS <= FIRST;
            at += found ? 4 * i : 0;
        }
        at += found ? 0 : 4 * (count - 1); /* the last word may begin one */
        if (count < 2)
            break;
    }
    *out = found ? at : r->size;
    tni_free(words);
    return st;
}

tn_status tni_record_open(const char *path, uint32_t part, uint32_t parts, tni_record_reader **out)
{
    tni_record_reader *r = tni_zalloc(sizeof *r);
    uint64_t step;
    tn_status st;

    if (!r)
        return TN_E_NOMEM;
    tni_vec_init(&r->record, 1, TN_SIZE_MAX);
    if ((st = tni_file_open(path, &r->file)))
        goto fail;
    r->size = tni_file_left(r->file);
    step = aligned(r->size / parts + (r->size % parts != 0));
    r->begin = step > r->size / (part ? part : 1) ? r->size : step * part;
    r->begin = part ? r->begin : 0;
    r->end = r->size - r->begin > step ? r->begin + step : r->size;
    if ((r->begin && (st = start_find(r, r->begin, &r->begin))) ||
        (r->end < r->size && (st = start_find(r, r->end, &r->end))))
        goto fail;
    r->at = r->begin;
    *out = r;
    return TN_OK;

fail:
    tni_record_close(r);
    return st;
}

void tni_record_close(tni_record_reader *r)
{
    if (!r)
        return;
    tni_file_close(r->file);
    tni_vec_fini(&r->record);
    tni_free(r);
}

static tn_status head_read(tni_record_reader *r, uint32_t *kind, uint64_t *length)
{
    uint32_t head[2];
    tn_status st;

    if (r->at > r->size || r->size - r->at < HEAD_BYTES)
        return wrong(r, r->at, "the file ends where a record should begin");
    if ((st = tni_file_read_at(r->file, r->at, head, sizeof head)))
        return st;
    if (head[0] != MAGIC)
        return wrong(r, r->at, "no record begins here");
    *kind = head[1] >> LENGTH_BITS;
    *length = head[1] & LENGTH_MAX;
    return *length > r->size - r->at - HEAD_BYTES ? wrong(r, r->at, "the file ends within this record")
                                                  : TN_OK;
}

/* One part; its bytes go behind those of the record so far. */
static tn_status part_read(tni_record_reader *r, uint32_t *kind)
{
    static const uint32_t magic = MAGIC;
    uint64_t length, before;
    char *to;
    tn_status st;

    if ((st = head_read(r, kind, &length)))
        return st;
    before = *kind == MIDDLE || *kind == LAST ? sizeof magic : 0;                  /* it was cut out here */
    if ((st = tni_vec_reserve(&r->record, r->record.count + before + length + 1))) /* never without memory */
        return st;
    to = (char *)r->record.data + r->record.count;
    memcpy(to, &magic, before);
    if ((st = tni_file_read_at(r->file, r->at + HEAD_BYTES, to + before, length)))
        return st;
    r->record.count += before + length;
    r->at += HEAD_BYTES + aligned(length);
    return TN_OK;
}

tn_status tni_record_next(tni_record_reader *r, const void **data, uint64_t *bytes)
{
    const uint64_t begin = r->at;
    uint32_t kind = WHOLE, before;
    tn_status st;

    r->record.count = 0;
    *data = NULL;
    *bytes = 0;
    if (r->at >= r->end)
        return TN_OK;
    if ((st = part_read(r, &kind)))
        return st;
    if (kind > FIRST)
        st = wrong(r, begin, "a record begins in its middle");
    while (!st && (kind == FIRST || kind == MIDDLE)) {
        before = kind;
        if (!(st = part_read(r, &kind)) && kind != MIDDLE && kind != LAST)
            st = wrong(r, begin, before == FIRST ? "this record has no end" : "this record breaks off");
    }
    if (st) {
        r->at = begin;
        return st;
    }
    *data = r->record.data;
    *bytes = r->record.count;
    return TN_OK;
}

tn_status tni_record_peek(tni_record_reader *r, void *out, uint64_t room, uint64_t *bytes, uint64_t *offset)
{
    const uint64_t begin = r->at;
    uint32_t kind = WHOLE, before;
    uint64_t length = 0;
    tn_status st;

    *bytes = 0;
    *offset = UINT64_MAX;
    if (r->at >= r->end)
        return TN_OK;
    if ((st = head_read(r, &kind, &length)))
        return st;
    if (kind > FIRST)
        return wrong(r, begin, "a record begins in its middle");
    room = length < room ? length : room;
    if (room && (st = tni_file_read_at(r->file, r->at + HEAD_BYTES, out, room)))
        return st;
    r->at += HEAD_BYTES + aligned(length);
    while (!st && (kind == FIRST || kind == MIDDLE)) {
        before = kind;
        if (!(st = head_read(r, &kind, &length)) && kind != MIDDLE && kind != LAST)
            st = wrong(r, begin, before == FIRST ? "this record has no end" : "this record breaks off");
        r->at += HEAD_BYTES + aligned(length);
    }
    if (st) {
        r->at = begin;
        return st;
    }
    *bytes = room;
    *offset = begin;
    return TN_OK;
}

tn_status tni_record_seek(tni_record_reader *r, uint64_t offset)
{
    if (offset % 4 || offset < r->begin || offset > r->end)
        return tni_error(TN_E_ARG,
                         "%s: no record of this share begins at byte %llu, it has bytes %llu to %llu",
                         tni_file_name(r->file), (unsigned long long)offset, (unsigned long long)r->begin,
                         (unsigned long long)r->end);
    r->at = offset;
    return TN_OK;
}

void tni_record_rewind(tni_record_reader *r)
{
    r->at = r->begin;
}

/* ---- writing ----------------------------------------------------------------------------------------- */

struct tn_record_writer {
    tni_writer *data, *index; /* index NULL: none */
    uint64_t at;
};

tn_status tni_record_create(const char *path, const char *index, tni_record_writer **out)
{
    tni_record_writer *w = tni_zalloc(sizeof *w);
    tn_status st;

    if (!w)
        return TN_E_NOMEM;
    if ((st = tni_writer_open(path, &w->data)) || (index && (st = tni_writer_open(index, &w->index))))
        tni_record_abandon(w);
    else
        *out = w;
    return st;
}

static tn_status part_write(tni_record_writer *w, uint32_t kind, const char *bytes, uint64_t length)
{
    static const char zeros[4];
    const uint32_t head[2] = {MAGIC, kind << LENGTH_BITS | (uint32_t)length};
    tn_status st;

    if ((st = tni_writer_write(w->data, head, sizeof head)) ||
        (st = tni_writer_write(w->data, bytes, length)) ||
        (st = tni_writer_write(w->data, zeros, aligned(length) - length)))
        return st;
    w->at += HEAD_BYTES + aligned(length);
    return TN_OK;
}

/* Where the next aligned word that is the magic stands; `bytes`: there is none. */
static uint64_t magic_find(const char *data, uint64_t from, uint64_t bytes)
{
    for (uint64_t i = from; bytes - i >= 4; i += 4) {
        uint32_t word;

        memcpy(&word, data + i, sizeof word);
        if (word == MAGIC)
            return i;
    }
    return bytes;
}

tn_status tni_record_append(tni_record_writer *w, uint64_t key, const void *data, uint64_t bytes)
{
    const char *from = data;
    const uint64_t offset = w->at;
    uint64_t begin = 0, end;
    char line[64];
    tn_status st = TN_OK;

    if (bytes > LENGTH_MAX)
        return tni_error(TN_E_ARG, "a record of %llu bytes, at most %llu are possible",
                         (unsigned long long)bytes, (unsigned long long)LENGTH_MAX);
    for (bool first = true; !st; first = false, begin = end + 4) {
        end = magic_find(from, begin, bytes);
        if (end == bytes)
            break;
        st = part_write(w, first ? FIRST : MIDDLE, from + begin, end - begin);
    }
    if (!st)
        st = part_write(w, begin ? LAST : WHOLE, from + begin, bytes - begin);
    if (st || !w->index)
        return st;
    (void)snprintf(line, sizeof line, "%" PRIu64 "\t%" PRIu64 "\n", key, offset);
    return tni_writer_write(w->index, line, strlen(line));
}

tn_status tni_record_finish(tni_record_writer *w)
{
    tn_status st = tni_writer_commit(w->data);

    if (w->index && !st)
        st = tni_writer_commit(w->index);
    else
        tni_writer_abandon(w->index);
    tni_free(w);
    return st;
}

void tni_record_abandon(tni_record_writer *w)
{
    if (!w)
        return;
    tni_writer_abandon(w->data);
    tni_writer_abandon(w->index);
    tni_free(w);
}

/* ---- the index --------------------------------------------------------------------------------------- */

/* "key TAB offset": whole numbers. */
static bool place_read(const char *line, tn_record_place *out)
{
    char *end;

    if (*line < '0' || *line > '9')
        return false;
    errno = 0;
    out->key = strtoull(line, &end, 10);
    if (*end != '\t' || end[1] < '0' || end[1] > '9')
        return false;
    out->offset = strtoull(end + 1, &end, 10);
    return !*end && !errno; /* else it is above 2^64 */
}

tn_status tni_record_index_load(const char *path, size_t *count, tn_record_place **places)
{
    const tni_origin from = {.name = path};
    tn_record_place place;
    tni_lines r;
    tni_vec list;
    tn_status st = tni_lines_open(&r, &from);

    tni_vec_init(&list, sizeof place, PLACES_MAX);
    while (!st && !(st = tni_lines_next(&r)) && !r.end) {
        if (tni_lines_blank(&r))
            continue;
        if (!place_read(r.line.text, &place))
            st = tni_error(TN_E_FORMAT, "%s:%llu: no line of a key, a tab and an offset", path,
                           (unsigned long long)r.number);
        else
            st = tni_vec_push(&list, &place);
    }
    tni_lines_close(&r);
    if (!st && !list.data && !(list.data = tni_zalloc(sizeof place)))
        st = TN_E_NOMEM;
    if (st) {
        tni_vec_fini(&list);
        return st;
    }
    *count = list.count;
    *places = list.data; /* moved */
    return TN_OK;
}
