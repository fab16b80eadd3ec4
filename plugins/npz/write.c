/*
 * The plugin `npz`: writing. libzip pulls the bytes of each entry from the host, makes the archive in
 * memory, and that goes to the host's file in pieces.
 */
#include "npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((uint64_t)1 << 20)

/* An entry as a source of libzip. */
static tn_status part_read(tnnpz_stream *s, void *out, uint64_t bytes)
{
    const tn_archive_output *to = s->of;

    return to->read(to->self, s->index, s->at, out, bytes, &s->host);
}

static tn_status part_add(zip_t *zip, tnnpz_stream *part, int64_t deflate, tn_err *err)
{
    const char *name = ((const tn_archive_output *)part->of)->entries[part->index].name;
    const size_t bytes = strlen(name) + sizeof ".npy";
    char *file = malloc(bytes);
    zip_source_t *source = NULL;
    zip_int64_t at = -1;
    const char *fault;
    char text[200];

    if (!file)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    (void)snprintf(file, bytes, "%s.npy", name);
    if ((fault = tnnpz_name_fault(file, bytes - 1))) {
        (void)snprintf(text, sizeof text, "an array called \"%.100s\": the entry %s", name, fault);
        free(file);
        return tn_fail(err, TN_E_ARG, text);
    }
    if ((source = zip_source_function(zip, tnnpz_stream_call, part)) &&
        (at = zip_file_add(zip, file, source, ZIP_FL_ENC_GUESS)) < 0)
        zip_source_free(source);
    free(file);
    /* 1980-01-01, where zip's time begins: the same arrays give the same file */
    if (at < 0 || zip_file_set_dostime(zip, (zip_uint64_t)at, 0, 1 << 5 | 1, 0) ||
        zip_set_file_compression(zip, (zip_uint64_t)at, deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0))
        return tnnpz_fail(err, TN_E_ARG, name, zip_get_error(zip));
    return TN_OK;
}

/* The archive that lies in `memory`, into the host's file. */
static tn_status pieces_write(zip_source_t *memory, const tn_archive_output *to, tn_err *err)
{
    char *piece = malloc(PIECE_BYTES);
    tn_status st = TN_OK;
    zip_int64_t got = 0;

    if (!piece)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    if (zip_source_open(memory)) {
        free(piece);
        return tnnpz_fail(err, TN_E_IO, "the archive", zip_source_error(memory));
    }
    while (!st && (got = zip_source_read(memory, piece, PIECE_BYTES)) > 0)
        st = to->write(to->self, piece, (uint64_t)got, err);
    if (!st && got < 0)
        st = tnnpz_fail(err, TN_E_IO, "the archive", zip_source_error(memory));
    (void)zip_source_close(memory);
    free(piece);
    return st;
}

static tn_status archive_write(zip_source_t *memory, zip_t *zip, tnnpz_stream *parts,
                               const tnnpz_plugin *plugin, const tn_archive_output *to, tn_err *err)
{
    tn_status st = TN_OK;
    uint32_t bad = 0;

    for (uint32_t i = 0; !st && i < to->count; i++) {
        parts[i] = (tnnpz_stream){.of = to, .index = i, .bytes = to->entries[i].bytes, .read = part_read};
        zip_error_init(&parts[i].error);
        st = part_add(zip, &parts[i], plugin->deflate, err);
    }
    if (!st && zip_close(zip)) {
        while (bad + 1 < to->count && !parts[bad].failed)
            bad++;
        st = tnnpz_stream_fail(&parts[bad], err, TN_E_IO, "the archive", zip_get_error(zip));
        zip_discard(zip);
    } else if (st) {
        zip_discard(zip);
    } else {
        st = pieces_write(memory, to, err);
    }
    return st;
}

tn_status tnnpz_write(void *plugin, const tn_archive_output *to, tn_err *err)
{
    zip_source_t *memory = NULL;
    /* Of an archive without entries libzip makes no file. */
    static const char empty[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    tnnpz_stream *parts = calloc(to->count + (size_t)1, sizeof *parts);
    zip_t *zip = NULL;
    zip_error_t error;
    tn_status st;

    if (!to->count) {
        free(parts);
        return to->write(to->self, empty, sizeof empty - 1, err);
    }
    zip_error_init(&error);
    if (parts && (memory = zip_source_buffer_create(NULL, 0, 0, &error)))
        zip = zip_open_from_source(memory, ZIP_TRUNCATE, &error);
    if (zip) {
        zip_source_keep(memory); /* zip_close and zip_discard give one reference back */
        st = archive_write(memory, zip, parts, plugin, to, err);
    } else {
        st = parts ? tnnpz_fail(err, TN_E_IO, "the archive", &error)
                   : tn_fail(err, TN_E_NOMEM, "out of memory");
    }
    zip_source_free(memory);
    zip_error_fini(&error);
    free(parts);
    return st;
}
