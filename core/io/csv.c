/*
 * CSV: a row of numbers per line, all of equal length; a first line without a single number is a header,
 * unless all of its fields begin like one: then it is a row with mistakes, and not to be dropped silently.
 *
 * Fields are divided by tab, semicolon or comma, whichever comes first in that order in the first line; a
 * field may stand in double quotes, "" within them being one. Numbers are as in C whatever the locale, and
 * finite. The file is read twice, line by line: once to count, once into an array of that very size, so
 * memory is what the rows need. A gzip file is read as what it inflates to. Every message has file, line and,
 * where it is about one field, its column, from 1. One column may hold texts: tni_csv_words gives numbers for
 * them.
 */
#include <math.h>

#include "io/internal.h"

#define COLUMNS_MAX ((uint64_t)1 << 17)
#define FIELD_BYTES_MAX 255u /* as names of columns in nn/about.c */

typedef struct sheet {
    const char *name; /* of the file, for messages */
    char separator;
    bool header;
    uint64_t rows, columns; /* rows of the share */
    uint64_t before;        /* rows in front of it */
    tni_csv_words *words;   /* NULL: all fields are numbers */
} sheet;

/* What the fields of a line are. */
typedef struct look {
    bool number; /* one is a number */
    bool word;   /* one does not even begin like one */
} look;

/* "FILE:LINE:COLUMN: TEXT"; columns are fields. */
static tn_status wrong(const tni_lines *r, uint64_t column, const char *text)
{
    return tni_error(TN_E_FORMAT, "%s:%llu:%llu: %s", r->name, (unsigned long long)r->number,
                     (unsigned long long)column + 1, text);
}

/* ---- fields ------------------------------------------------------------------------------------------ */

/* A first line of one field may be one whose separator is another. */
static tn_status too_long(const tni_lines *r, const sheet *s, uint64_t column, bool last)
{
    return wrong(r, column,
                 last && !s->columns && !column
                     ? "the field has more than 255 bytes: fields are divided by tab, ; or ,"
                     : "the field has more than 255 bytes");
}

/* One field from `*at`, without quotes and blanks around it; `*at` moves behind its separator, or becomes
 * NULL at the end of the line. */
static tn_status field_read(const tni_lines *r, const sheet *s, uint64_t column, const char **at,
                            char out[FIELD_BYTES_MAX + 1])
{
    const char *c = *at, *end = r->line.text + r->line.length;
    bool quoted;
    size_t n = 0, used = 0; /* without the blanks at its end */

    while (c < end && *c == ' ')
        c++;
    quoted = c < end && *c == '"';
    for (c += quoted; c < end && (quoted || *c != s->separator); c++) {
        if (quoted && *c == '"' && (c + 1 == end || c[1] != '"'))
            break;
        c += quoted && *c == '"';
        if (n < FIELD_BYTES_MAX)
            out[n] = *c;
        n++;
        used = *c == ' ' ? used : n;
    }
    if (quoted && c == end)
        return wrong(r, column, "the quotes do not end on their line");
    c += quoted;
    while (c < end && *c == ' ')
        c++;
    if (c < end && *c != s->separator)
        return wrong(r, column, "something stands behind the quotes");
    if (used > FIELD_BYTES_MAX)
        return too_long(r, s, column, c == end);
    out[used] = '\0';
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

static tn_status number_read(const tni_lines *r, const sheet *s, uint64_t column, const char *text,
                             float *out)
{
    const int kind = number_of(text, out);
    char why[128];

    if (!*text)
        return wrong(r, column, "the field is empty: a value is missing");
    if (s->words && s->words->column == (int64_t)column)
        return s->words->word(s->words->arg, text, kind > 0, r->number, out);
    if (kind > 0)
        return TN_OK;
    (void)snprintf(why, sizeof why, "\"%.32s\" %s", text,
                   kind ? "is no number" : "is no finite number of float32");
    return wrong(r, column, why);
}

/* Fields of the line; numbers into `out` unless it is NULL. */
static tn_status row_read(const tni_lines *r, const sheet *s, float *out, uint64_t *columns, look *seen)
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
        if ((st = field_read(r, s, n, &at, field)) || (out && (st = number_read(r, s, n, field, &value))))
            return st;
        if (out)
            out[n] = value;
        if (!seen)
            continue;
        if (s->words && s->words->first && (st = s->words->first(s->words->arg, n, field)))
            return st;
        if (number_of(field, &value) >= 0)
            seen->number = true;
        else if (!begins_like_number(field))
            seen->word = true;
    }
    if (s->columns && (at || n != s->columns)) {
        char why[96];

        (void)snprintf(why, sizeof why,
                       at ? "the line has more fields than the first one, which has %llu"
                          : "the line ends early: the first one has %llu fields",
                       (unsigned long long)s->columns);
        return wrong(r, n, why);
    }
    *columns = n;
    return TN_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

static tn_status first_line(tni_lines *r, sheet *s)
{
    look seen = {false, false};
    tn_status st;

    s->separator = memchr(r->line.text, '\t', r->line.length)  ? '\t'
                   : memchr(r->line.text, ';', r->line.length) ? ';'
                                                               : ',';
    if ((st = row_read(r, s, NULL, &s->columns, &seen)))
        return st;
    s->header = s->words && s->words->header ? s->words->header > 0 : !seen.number && seen.word;
    return s->words && s->words->head ? s->words->head(s->words->arg, s->columns, s->header) : TN_OK;
}

/* Counts with `out` NULL, else reads into it: s->rows rows of s->columns. */
static tn_status sheet_read(const tni_origin *from, sheet *s, float *out)
{
    uint64_t rows = 0, before = 0, lines = 0, columns;
    tni_lines r;
    tn_status st = tni_lines_open(&r, from), other;

    while (!st && !(st = tni_lines_next(&r)) && !r.end) {
        if (tni_lines_blank(&r))
            continue;
        if (!lines++ && ((!out && (st = first_line(&r, s))) || s->header))
            continue;
        if (!tni_lines_mine(&r))
            before += !rows;
        else if (out && rows == s->rows)
            st = tni_error(TN_E_IO, "%s was changed while it was read", r.name);
        else if (!(st = row_read(&r, s, out ? out + rows * s->columns : NULL, &columns, NULL)))
            rows++;
    }
    if (!st && out && rows != s->rows)
        st = tni_error(TN_E_IO, "%s was changed while it was read", r.name);
    if (!st && !rows)
        st = tni_error(TN_E_FORMAT, "%s holds no numbers%s%s", from->name, s->header ? ", only a header" : "",
                       from->parts > 1 ? " in this share" : "");
    if (st == TN_E_FORMAT && (lines || !r.end) && r.file &&
        (other = tni_file_kind_check(r.file, TNI_KIND_CSV)))
        st = other;
    s->rows = st ? 0 : rows;
    s->before = before;
    tni_lines_close(&r);
    return st;
}

static tn_status csv_load(tni_space *space, const tni_origin *from, tni_csv_words *words, uint64_t *before,
                          tni_array **out)
{
    sheet s = {.name = from->name, .words = words};
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
    if (before)
        *before = s.before;
    return TN_OK;
}

tn_status tni_csv_load_part(tni_space *space, const char *path, uint32_t part, uint32_t parts,
                            uint64_t *before, tni_array **out)
{
    const tni_origin from = {.name = path, .part = part, .parts = parts};

    return csv_load(space, &from, NULL, before, out);
}

tn_status tni_csv_load(tni_space *space, const char *path, tni_array **out)
{
    return tni_csv_load_part(space, path, 0, 0, NULL, out);
}

tn_status tni_csv_load_memory(tni_space *space, const void *bytes, uint64_t count, const char *name,
                              tni_array **out)
{
    const tni_origin from = {.name = name, .bytes = bytes, .count = count};

    return csv_load(space, &from, NULL, NULL, out);
}

tn_status tni_csv_load_words(tni_space *space, const char *path, const void *bytes, uint64_t count,
                             tni_csv_words *words, tni_array **out)
{
    const tni_origin from = {.name = path, .bytes = bytes, .count = count};

    return csv_load(space, &from, words, NULL, out);
}
