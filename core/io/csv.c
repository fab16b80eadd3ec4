/*
 * CSV: a row of numbers per line, all of equal length; a first line without a single number is a header,
 * unless all of its fields begin like one: then it is a row with mistakes, and not to be dropped silently.
 *
 * Fields are divided by tab, semicolon or comma, whichever comes first in that order in the first line; a
 * field may stand in double quotes, "" within them being one. Numbers are as in C whatever the locale, and
 * finite. The file is read twice, line by line: once to count, once into an array of that very size, so
 * memory is what the rows need. A gzip file is read as what it inflates to. Every message has file and line.
 */
#include <math.h>

#include "io/internal.h"

#define LINE_BYTES_MAX ((uint64_t)4 << 20)
#define COLUMNS_MAX ((uint64_t)1 << 17)
#define FIELD_BYTES_MAX 64u /* no number needs more */
#define CHUNK_BYTES (64u << 10)

typedef struct reader {
    tni_file *file;
    const char *name;
    char *chunk;
    uint64_t first, last; /* unread part of chunk */
    tni_str line;
    uint64_t number; /* of the line, from 1 */
    bool end;
} reader;

typedef struct sheet {
    const char *name; /* of the file, for messages */
    char separator;
    bool header;
    uint64_t rows, columns;
} sheet;

/* What the fields of a line are. */
typedef struct look {
    bool number; /* one is a number */
    bool word;   /* one does not even begin like one */
} look;

/* Where the bytes come from: a path, or memory with a name. */
typedef struct origin {
    const char *name;
    const void *bytes; /* NULL: a path */
    uint64_t count;
} origin;

/* ---- lines ------------------------------------------------------------------------------------------- */

static void reader_close(reader *r)
{
    tni_file_close(r->file);
    tni_free(r->chunk);
    tni_str_fini(&r->line);
}

static tn_status reader_open(reader *r, const origin *from)
{
    tn_status st;

    memset(r, 0, sizeof *r);
    r->name = from->name;
    tni_str_init(&r->line, LINE_BYTES_MAX);
    if ((st = from->bytes ? tni_file_open_memory(from->bytes, from->count, &r->file)
                          : tni_file_open_gz(from->name, TNI_CSV_BYTES_MAX, &r->file)))
        return st;
    r->chunk = tni_alloc(CHUNK_BYTES);
    return r->chunk ? TN_OK : TN_E_NOMEM;
}

static tn_status line_add(reader *r, uint64_t count)
{
    if (r->line.length + count > LINE_BYTES_MAX)
        return tni_error(TN_E_FORMAT, "%s:%llu: a line of more than %llu bytes", r->name,
                         (unsigned long long)r->number, (unsigned long long)LINE_BYTES_MAX);
    if (memchr(r->chunk + r->first, 0, count))
        return tni_error(TN_E_FORMAT, "%s:%llu: a NUL: this is no text", r->name,
                         (unsigned long long)r->number);
    return tni_str_add_bytes(&r->line, r->chunk + r->first, count);
}

/* What some programs write before the first line is no part of it, also where nothing else stands there. */
static void byte_order_drop(reader *r)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t size = sizeof mark - 1;

    if (r->line.length < size || memcmp(r->line.text, mark, size))
        return;
    r->line.length -= size;
    memmove(r->line.text, r->line.text + size, r->line.length);
}

/* The next line into r->line, without what ends it; r->end: there was none. */
static tn_status line_read(reader *r)
{
    bool any = false;
    tn_status st;

    r->line.length = 0;
    r->number++;
    for (;;) {
        const char *newline;
        uint64_t count;

        if (r->first == r->last) {
            r->first = 0;
            if ((st = tni_file_read_some(r->file, r->chunk, CHUNK_BYTES, &r->last)))
                return st;
            if (!r->last)
                break;
        }
        any = true;
        newline = memchr(r->chunk + r->first, '\n', r->last - r->first);
        count = newline ? (uint64_t)(newline - (r->chunk + r->first)) : r->last - r->first;
        if ((st = line_add(r, count)))
            return st;
        r->first += count + (newline != NULL);
        if (newline)
            break;
    }
    r->end = !any;
    if (r->number == 1)
        byte_order_drop(r);
    if (r->line.length && r->line.text[r->line.length - 1] == '\r')
        r->line.length--;
    return tni_str_add_bytes(&r->line, "", 0) ? TN_E_NOMEM : TN_OK;
}

static bool is_blank(const reader *r)
{
    for (size_t i = 0; i < r->line.length; i++)
        if (r->line.text[i] != ' ' && r->line.text[i] != '\t')
            return false;
    return true;
}

/* ---- fields ------------------------------------------------------------------------------------------ */

/* One field from `*at`, without quotes and blanks around it, cut to FIELD_BYTES_MAX; `*at` moves behind its
 * separator, or becomes NULL at the end of the line. */
static tn_status field_read(const reader *r, const sheet *s, uint64_t column, const char **at,
                            char out[FIELD_BYTES_MAX + 1])
{
    const char *c = *at, *end = r->line.text + r->line.length;
    bool quoted;
    size_t n = 0;

    while (c < end && *c == ' ')
        c++;
    quoted = c < end && *c == '"';
    for (c += quoted; c < end && (quoted || *c != s->separator); c++) {
        if (quoted && *c == '"' && (c + 1 == end || c[1] != '"'))
            break;
        c += quoted && *c == '"';
        if (n < FIELD_BYTES_MAX)
            out[n++] = *c;
        else
            out[FIELD_BYTES_MAX - 1] = '~'; /* cut: no number any more */
    }
    if (quoted && c == end)
        return tni_error(TN_E_FORMAT, "%s:%llu: the quotes of field %llu do not end on their line", r->name,
                         (unsigned long long)r->number, (unsigned long long)column + 1);
    c += quoted;
    while (c < end && *c == ' ')
        c++;
    if (c < end && *c != s->separator)
        return tni_error(TN_E_FORMAT, "%s:%llu: something stands behind the quotes of field %llu", r->name,
                         (unsigned long long)r->number, (unsigned long long)column + 1);
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    *at = c < end ? c + 1 : NULL;
    return TN_OK;
}

/* 1: a finite number that float32 holds · 0: a number that is not · -1: none. */
static int number_of(const char *text, float *out)
{
    static const char *const words[] = {"nan",  "inf",       "infinity", "-nan",
                                        "-inf", "-infinity", "+inf",     "+nan"};
    double value;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(text, words[i]))
            return 0;
    if (!*text || text[strspn(text, "0123456789+-.eE")] || !tni_parse_f64(text, &value))
        return -1;
    *out = (float)value;
    return isfinite(*out);
}

static bool begins_like_number(const char *text)
{
    text += *text == '+' || *text == '-';
    text += *text == '.';
    return *text >= '0' && *text <= '9';
}

static tn_status number_read(const reader *r, uint64_t column, const char *text, float *out)
{
    const int kind = number_of(text, out);

    if (kind > 0)
        return TN_OK;
    if (!kind)
        return tni_error(TN_E_FORMAT,
                         "%s:%llu: field %llu is \"%.32s\": only finite float32 numbers are read", r->name,
                         (unsigned long long)r->number, (unsigned long long)column + 1, text);
    return tni_error(TN_E_FORMAT, "%s:%llu: field %llu is %s%.32s%s", r->name, (unsigned long long)r->number,
                     (unsigned long long)column + 1, *text ? "\"" : "", *text ? text : "empty",
                     *text ? "\", which is no number" : "");
}

/* Fields of the line; numbers into `out` unless it is NULL. */
static tn_status row_read(const reader *r, const sheet *s, float *out, uint64_t *columns, look *seen)
{
    const char *at = r->line.text;
    char field[FIELD_BYTES_MAX + 1];
    uint64_t n = 0;
    tn_status st;

    for (; at; n++) {
        float value = 0;

        if (n == COLUMNS_MAX)
            return tni_error(TN_E_FORMAT, "%s:%llu: more than %llu fields", r->name,
                             (unsigned long long)r->number, (unsigned long long)COLUMNS_MAX);
        if (s->columns && n == s->columns)
            break;
        if ((st = field_read(r, s, n, &at, field)) || (out && (st = number_read(r, n, field, &value))))
            return st;
        if (out)
            out[n] = value;
        if (!seen)
            continue;
        if (number_of(field, &value) >= 0)
            seen->number = true;
        else if (!begins_like_number(field))
            seen->word = true;
    }
    if (s->columns && (at || n != s->columns))
        return tni_error(TN_E_FORMAT, "%s:%llu: %s than the %llu fields of the first line", r->name,
                         (unsigned long long)r->number, at ? "more" : "fewer",
                         (unsigned long long)s->columns);
    *columns = n;
    return TN_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

static tn_status first_line(reader *r, sheet *s)
{
    look seen = {false, false};
    tn_status st;

    s->separator = memchr(r->line.text, '\t', r->line.length)  ? '\t'
                   : memchr(r->line.text, ';', r->line.length) ? ';'
                                                               : ',';
    if ((st = row_read(r, s, NULL, &s->columns, &seen)))
        return st;
    s->header = !seen.number && seen.word;
    return TN_OK;
}

/* Counts with `out` NULL, else reads into it: s->rows rows of s->columns. */
static tn_status sheet_read(const origin *from, sheet *s, float *out)
{
    uint64_t rows = 0, lines = 0, columns;
    reader r;
    tn_status st = reader_open(&r, from), other;

    while (!st && !(st = line_read(&r)) && !r.end) {
        if (is_blank(&r))
            continue;
        if (!lines++ && ((!out && (st = first_line(&r, s))) || s->header))
            continue;
        if (out && rows == s->rows)
            st = tni_error(TN_E_IO, "%s was changed while it was read", r.name);
        else if (!(st = row_read(&r, s, out ? out + rows * s->columns : NULL, &columns, NULL)))
            rows++;
    }
    if (!st && out && rows != s->rows)
        st = tni_error(TN_E_IO, "%s was changed while it was read", r.name);
    if (!st && !rows)
        st = tni_error(TN_E_FORMAT, "%s holds no numbers%s", from->name, s->header ? ", only a header" : "");
    if (st == TN_E_FORMAT && (lines || !r.end) && r.file &&
        (other = tni_file_kind_check(r.file, TNI_KIND_CSV)))
        st = other;
    s->rows = st ? 0 : rows;
    reader_close(&r);
    return st;
}

static tn_status csv_load(tni_space *space, const origin *from, tni_array **out)
{
    sheet s = {.name = from->name};
    tni_device *host;
    tni_array *a = NULL;
    int64_t shape[2];
    tn_status st;

    if ((st = tni_device_get(space->devices, "cpu", 0, &host)) || (st = sheet_read(from, &s, NULL)))
        return st;
    shape[0] = (int64_t)s.rows;
    shape[1] = (int64_t)s.columns;
    if ((st = tni_array_fresh(space, host, TN_F32, 2, shape, &a)))
        return st;
    if ((st = sheet_read(from, &s, tni_array_data(a)))) {
        tni_array_release(a);
        return st;
    }
    *out = a;
    return TN_OK;
}

tn_status tni_csv_load(tni_space *space, const char *path, tni_array **out)
{
    const origin from = {.name = path};

    return csv_load(space, &from, out);
}

tn_status tni_csv_load_memory(tni_space *space, const void *bytes, uint64_t count, const char *name,
                              tni_array **out)
{
    const origin from = {name, bytes, count};

    return csv_load(space, &from, out);
}
