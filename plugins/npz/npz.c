/*
 * The plugin `npz`: reading. libzip reads the archive through the host's file; each entry is checked before
 * the host sees it.
 */
#include "npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX ((zip_int64_t)1 << 20)
#define DEFLATE_RATIO 1032u /* of one byte at most, by the format */
#define END_BYTES 22u       /* of the record that ends an archive */
#define SUFFIX ".npy"
#define SUFFIX_BYTES 4u

struct tn_archive {
    tnnpz_stream in;
    zip_t *zip;
    zip_file_t *file; /* of the entry that is read; NULL */
    uint64_t left;    /* of it */
    char *name;       /* of the entry that was asked for last, without SUFFIX */
    zip_uint64_t count;
};

tn_status tnnpz_fail(tn_err *err, tn_status code, const char *what, zip_error_t *error)
{
    char text[400];

    (void)snprintf(text, sizeof text, "%.200s: %.180s", what, zip_error_strerror(error));
    return tn_fail(err, zip_error_code_zip(error) == ZIP_ER_MEMORY ? TN_E_NOMEM : code, text);
}

/* ---- bytes of the host as a source ----------------------------------------------------------------- */

static zip_int64_t stream_read(tnnpz_stream *s, void *out, zip_uint64_t bytes)
{
    const uint64_t left = s->bytes - s->at, count = bytes < left ? bytes : left;

    if (!count)
        return 0;
    if (s->read(s, out, count)) {
        s->failed = 1;
        zip_error_set(&s->error, ZIP_ER_READ, 0);
        return -1;
    }
    s->at += count;
    return (zip_int64_t)count;
}

static zip_int64_t stream_stat(const tnnpz_stream *s, void *out, zip_uint64_t bytes)
{
    zip_stat_t stat;

    if (bytes < sizeof stat)
        return -1;
    zip_stat_init(&stat);
    stat.size = s->bytes;
    stat.valid = ZIP_STAT_SIZE;
    memcpy(out, &stat, sizeof stat);
    return (zip_int64_t)sizeof stat;
}

static zip_int64_t stream_supports(const tnnpz_stream *s)
{
    const zip_int64_t all =
        zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                       ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SUPPORTS, -1);

    return s->seeks ? all | zip_source_make_command_bitmap(ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, -1) : all;
}

zip_int64_t tnnpz_stream_call(void *arg, void *data, zip_uint64_t bytes, zip_source_cmd_t command)
{
    tnnpz_stream *s = arg;
    zip_int64_t at;

    switch (command) {
    case ZIP_SOURCE_OPEN:
        s->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return stream_read(s, data, bytes);
    case ZIP_SOURCE_STAT:
        return stream_stat(s, data, bytes);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&s->error, data, bytes);
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)s->at;
    case ZIP_SOURCE_SEEK:
        at = zip_source_seek_compute_offset(s->at, s->bytes, data, bytes, &s->error);
        s->at = at < 0 ? s->at : (uint64_t)at;
        return at < 0 ? -1 : 0;
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_SUPPORTS:
        return stream_supports(s);
    default:
        zip_error_set(&s->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

tn_status tnnpz_stream_fail(const tnnpz_stream *s, tn_err *err, tn_status code, const char *what,
                            zip_error_t *error)
{
    if (!s->failed)
        return tnnpz_fail(err, code, what, error);
    if (err)
        *err = s->host;
    return s->host.code ? s->host.code : TN_E_IO;
}

static tn_status input_read(tnnpz_stream *s, void *out, uint64_t bytes)
{
    const tn_archive_input *from = s->of;

    return from->read(from->self, s->at, out, bytes, &s->host);
}

/* ---- entries ---------------------------------------------------------------------------------------- */

static tn_status archive_fail(const tn_archive *a, tn_err *err, const char *what, zip_error_t *error)
{
    return tnnpz_stream_fail(&a->in, err, TN_E_FORMAT, what, error);
}

const char *tnnpz_name_fault(const char *name, size_t length)
{
    if (length <= SUFFIX_BYTES || strcmp(name + length - SUFFIX_BYTES, SUFFIX) != 0)
        return "is no .npy";
    if (name[0] == '/' || strchr(name, '\\'))
        return "has a path for a name";
    for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (!strncmp(part, "../", 3) || !strncmp(part, "./", 2) || *part == '/')
            return "has a path for a name";
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return "has a control character in its name";
    return NULL;
}

static tn_status entry_fail(tn_err *err, tn_status code, const char *name, const char *fault)
{
    char text[200];

    (void)snprintf(text, sizeof text, "entry \"%.100s\" %s", name ? name : "?", fault);
    return tn_fail(err, code, text);
}

/* `*packed`: bytes that the entries so far and this one take in the file. */
static tn_status entry_check(tn_archive *a, zip_uint64_t index, uint64_t *packed, tn_err *err)
{
    const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD |
                                ZIP_STAT_ENCRYPTION_METHOD;
    const char *fault;
    zip_stat_t s;

    if (zip_stat_index(a->zip, index, ZIP_FL_ENC_RAW, &s) || (s.valid & needed) != needed)
        return archive_fail(a, err, "an entry", zip_get_error(a->zip));
    if (s.encryption_method != ZIP_EM_NONE)
        return entry_fail(err, TN_E_UNSUPPORTED, s.name, "is encrypted");
    if (s.comp_method != ZIP_CM_STORE && s.comp_method != ZIP_CM_DEFLATE)
        return entry_fail(err, TN_E_UNSUPPORTED, s.name, "is neither stored nor deflated");
    if ((fault = tnnpz_name_fault(s.name, strlen(s.name))))
        return entry_fail(err, TN_E_FORMAT, s.name, fault);
    if (s.comp_size > a->in.bytes - *packed)
        return entry_fail(err, TN_E_FORMAT, s.name,
                          "takes more bytes than the file has, with those before it");
    *packed += s.comp_size;
    if (s.comp_method == ZIP_CM_STORE ? s.size != s.comp_size : s.size / DEFLATE_RATIO > s.comp_size)
        return entry_fail(err, TN_E_FORMAT, s.name, "promises more than its packed bytes can hold");
    return TN_OK;
}

static void npz_close(tn_archive *a)
{
    if (!a)
        return;
    if (a->file)
        (void)zip_fclose(a->file);
    if (a->zip)
        zip_discard(a->zip);
    zip_error_fini(&a->in.error);
    free(a->name);
    free(a);
}

static tn_status archive_open(tn_archive *a, tn_err *err)
{
    zip_source_t *source;
    zip_error_t error;
    uint64_t packed = 0;
    tn_status st = TN_OK;

    if (a->in.bytes < END_BYTES) /* libzip takes no bytes for an archive without entries */
        return tn_fail(err, TN_E_FORMAT, "the zip archive: it is shorter than the record that ends one");
    zip_error_init(&error);
    if (!(source = zip_source_function_create(tnnpz_stream_call, &a->in, &error)) ||
        !(a->zip = zip_open_from_source(source, ZIP_RDONLY, &error))) {
        st = archive_fail(a, err, "the zip archive", &error);
        zip_source_free(source); /* NULL is fine */
    }
    zip_error_fini(&error);
    if (st)
        return st;
    a->count = (zip_uint64_t)zip_get_num_entries(a->zip, 0);
    if (a->count > (zip_uint64_t)ENTRIES_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "the zip archive has more than 1048576 entries");
    for (zip_uint64_t i = 0; !st && i < a->count; i++)
        st = entry_check(a, i, &packed, err);
    return st;
}

static tn_status npz_open(void *plugin, const tn_archive_input *from, tn_archive **out, tn_err *err)
{
    tn_archive *a = calloc(1, sizeof *a);
    tn_status st;

    (void)plugin;
    if (!a)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    a->in = (tnnpz_stream){.of = from, .bytes = from->bytes, .seeks = 1, .read = input_read};
    zip_error_init(&a->in.error);
    if ((st = archive_open(a, err)))
        npz_close(a);
    else
        *out = a;
    return st;
}

static tn_status npz_entry(tn_archive *a, uint32_t index, tn_archive_entry *out, tn_err *err)
{
    zip_stat_t s;

    if (index >= a->count)
        return tn_fail(err, TN_E_KEY, "there is no such entry");
    if (zip_stat_index(a->zip, index, ZIP_FL_ENC_RAW, &s))
        return archive_fail(a, err, "an entry", zip_get_error(a->zip));
    free(a->name);
    a->name = strndup(s.name, strlen(s.name) - SUFFIX_BYTES);
    if (!a->name)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    out->name = a->name;
    out->bytes = s.size;
    return TN_OK;
}

static tn_status npz_begin(tn_archive *a, uint32_t index, tn_err *err)
{
    zip_stat_t s;

    if (a->file)
        (void)zip_fclose(a->file);
    a->file = NULL;
    if (index >= a->count)
        return tn_fail(err, TN_E_KEY, "there is no such entry");
    if (zip_stat_index(a->zip, index, ZIP_FL_ENC_RAW, &s) || !(a->file = zip_fopen_index(a->zip, index, 0)))
        return archive_fail(a, err, "an entry", zip_get_error(a->zip));
    a->left = s.size;
    return TN_OK;
}

static tn_status npz_read(tn_archive *a, void *out, uint64_t bytes, tn_err *err)
{
    char *to = out;
    char behind;

    if (!a->file || bytes > a->left)
        return tn_fail(err, TN_E_FORMAT, "more bytes are wanted than the entry has");
    while (bytes) {
        const zip_int64_t got = zip_fread(a->file, to, bytes);

        if (got <= 0)
            return got < 0
                       ? archive_fail(a, err, "the entry", zip_file_get_error(a->file))
                       : tn_fail(err, TN_E_FORMAT, "the entry ends before the size that it is said to have");
        to += got;
        bytes -= (uint64_t)got;
        a->left -= (uint64_t)got;
    }
    if (a->left)
        return TN_OK;
    switch (zip_fread(a->file, &behind, 1)) { /* the end, where libzip compares the checksum */
    case 0:
        return TN_OK;
    case 1:
        return tn_fail(err, TN_E_FORMAT, "the entry is larger than it is said to be");
    default:
        return archive_fail(a, err, "the entry", zip_file_get_error(a->file));
    }
}

/* ---- the descriptor ------------------------------------------------------------------------------------ */

static int32_t npz_probe(void *plugin, const void *head, uint64_t bytes)
{
    (void)plugin;
    return bytes >= 4 && (!memcmp(head, "PK\3\4", 4) || !memcmp(head, "PK\5\6", 4));
}

static tn_status npz_init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_options_service *options = tn_host_service(host, TN_SERVICE_OPTIONS);
    tnnpz_plugin *p = calloc(1, sizeof *p);
    const char *text = NULL;

    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    p->host = host;
    if (options && TN_OFFERS(options, tn_options_service, text))
        text = options->text(host, "deflate");
    p->deflate = text && !strcmp(text, "true");
    *plugin = p;
    return TN_OK;
}

static void npz_fini(void *plugin)
{
    free(plugin);
}

static const tn_archive_ops archive = {
    .head = TN_CAPABILITY(tn_archive_ops, write, TN_KIND_ARCHIVE, "npz"),
    .probe = npz_probe,
    .open = npz_open,
    .entry = npz_entry,
    .begin = npz_begin,
    .read = npz_read,
    .close = npz_close,
    .write = tnnpz_write,
};

static const tn_option_row deflate = {
    .struct_size = (uint32_t)TN_END(tn_option_row, max),
    .key = "deflate",
    .type = "bool",
    .default_text = "false",
    .help = "pack the arrays that are written, as numpy.savez_compressed does",
    .since = "0.1",
};
static const tn_option_row *const rows[] = {&deflate, NULL};
static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "npz"),
    .rows = rows,
};

static const tn_capability *const capabilities[] = {&archive.head, &options.head, NULL};

TN_PLUGIN_DEFINE("npz", "0.1.0", "Tenon", "Apache-2.0", "archives of arrays, .npz of NumPy", "",
                 "archive:npz options", npz_init, npz_fini, NULL, capabilities);
