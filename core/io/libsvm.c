/*
 * LibSVM: a row per line, "label index:value index:value …"; indices rise and begin at 0, what a row does not
 * name is 0. Empty lines are passed over, as is what follows a '#'.
 *
 * The file is read twice: once to count, once into arrays of that very size. Every message has file and line.
 */
#include <math.h>

#include "io/internal.h"

typedef struct rows {
    int64_t columns; /* given; 0: one more than the largest index */
    int64_t count, stored, largest;
    int64_t before;         /* rows in front of the share */
    uint32_t part, parts;   /* the share */
    bool mine;              /* the line is of it */
    float *labels, *values; /* NULL: rows are counted */
    int64_t *starts, *indices;
    int64_t rows_max, stored_max; /* that there is room for */
} rows;

#define CHANGED "%s was changed while it was read"

static tn_status wrong(const tni_lines *r, const char *what, const char *text, size_t length)
{
    char shown[33];

    (void)snprintf(shown, sizeof shown, "%.*s", (int)(length < 32 ? length : 32), text);
    return tni_error(TN_E_FORMAT, "%s:%llu: %s: \"%s\"", r->name, (unsigned long long)r->number, what, shown);
}

static size_t word_length(const char *at)
{
    return strcspn(at, " \t#");
}

/* A finite number that float32 holds, of `length` bytes. */
static bool number_read(const char *at, size_t length, float *out)
{
    char text[65];
    double value;

    if (!length || length >= sizeof text)
        return false;
    memcpy(text, at, length);
    text[length] = '\0';
    if (text[strspn(text, "0123456789+-.eE")] || !tni_parse_f64(text, &value))
        return false;
    *out = (float)value;
    return isfinite(*out);
}

/* Digits before the ':'. */
static bool index_read(const char *at, size_t length, int64_t *out)
{
    int64_t value = 0;

    if (!length || length > 18)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        value = 10 * value + (at[i] - '0');
    }
    *out = value;
    return true;
}

static tn_status pair_read(const tni_lines *r, rows *s, const char *at, size_t length, int64_t *before)
{
    const char *colon = memchr(at, ':', length);
    int64_t index = 0;
    float value = 0;

    if (!colon || !index_read(at, (size_t)(colon - at), &index))
        return wrong(r, "no pair of a whole index and a value", at, length);
    if (!number_read(colon + 1, length - (size_t)(colon + 1 - at), &value))
        return wrong(r, "no finite float32 number behind the index", at, length);
    if (index <= *before)
        return wrong(r, "indices do not rise along the line", at, length);
    if (s->columns && index >= s->columns)
        return tni_error(TN_E_FORMAT, "%s:%llu: index %lld, but there are %lld columns", r->name,
                         (unsigned long long)r->number, (long long)index, (long long)s->columns);
    if (s->mine && s->values && s->stored == s->stored_max)
        return tni_error(TN_E_IO, CHANGED, r->name);
    if (s->mine && s->values) {
        s->values[s->stored] = value;
        s->indices[s->stored] = index;
    }
    s->stored += s->mine;
    *before = index;
    if (index > s->largest)
        s->largest = index;
    return TN_OK;
}

static tn_status row_read(const tni_lines *r, rows *s)
{
    const char *at = r->line.text + strspn(r->line.text, " \t");
    size_t length = word_length(at);
    int64_t before = -1;
    float label = 0;
    tn_status st;

    if (!*at || *at == '#')
        return TN_OK;
    if (!number_read(at, length, &label))
        return wrong(r, "the label is no finite float32 number", at, length);
    s->mine = tni_lines_mine(r);
    if (s->mine && s->values && s->count == s->rows_max)
        return tni_error(TN_E_IO, CHANGED, r->name);
    if (s->mine && s->values) {
        s->labels[s->count] = label;
        s->starts[s->count] = s->stored;
    }
    for (at += length; *(at += strspn(at, " \t")) && *at != '#'; at += length) {
        length = word_length(at);
        if ((st = pair_read(r, s, at, length, &before)))
            return st;
    }
    s->before += !s->mine && !s->count;
    s->count += s->mine;
    return TN_OK;
}

/* Counts, or fills what `s` points at. */
static tn_status rows_read(const char *path, rows *s)
{
    const tni_origin from = {.name = path, .part = s->part, .parts = s->parts};
    tni_lines r;
    tn_status st = tni_lines_open(&r, &from), other;

    s->count = s->stored = s->before = 0;
    while (!st && !(st = tni_lines_next(&r)) && !r.end)
        st = row_read(&r, s);
    if (!st && s->values && (s->count != s->rows_max || s->stored != s->stored_max))
        st = tni_error(TN_E_IO, CHANGED, path);
    if (st == TN_E_FORMAT && r.file && (other = tni_file_kind_check(r.file, TNI_KIND_LIBSVM)))
        st = other;
    tni_lines_close(&r);
    return st;
}

typedef struct parts {
    tni_array *labels, *starts, *indices, *csr, *values;
} parts;

static tn_status parts_make(tni_space *space, tni_device *host, const rows *s, parts *p)
{
    const int64_t shape[] = {s->count, s->columns ? s->columns : s->largest + 1}, starts = s->count + 1;
    tn_status st;

    if ((st = tni_array_fresh(space, host, TN_F32, 1, &s->count, &p->labels)) ||
        (st = tni_array_fresh(space, host, TN_I64, 1, &starts, &p->starts)) ||
        (st = tni_array_fresh(space, host, TN_I64, 1, &s->stored, &p->indices)))
        return st;
    if ((st = tni_array_create_sparse(space, host, TN_STORAGE_CSR, TN_F32, 2, shape,
                                      (tni_array *const[]){p->starts, p->indices}, &p->csr)) ||
        (st = tni_storage_allocate(p->csr->storage, NULL)))
        return st;
    return tni_array_values(p->csr, &p->values);
}

static tn_status parts_fill(const char *path, rows *s, const parts *p)
{
    float none = 0; /* a row may have no values: the address says that rows are filled */
    tn_status st;

    s->rows_max = s->count;
    s->stored_max = s->stored;
    s->labels = tni_array_data(p->labels);
    s->starts = tni_array_data(p->starts);
    s->indices = tni_array_data(p->indices);
    s->values = s->stored ? tni_array_data(p->values) : &none;
    if ((st = rows_read(path, s)))
        return st;
    s->starts[s->count] = s->stored;
    tni_sparse_seal(p->csr);
    return TN_OK;
}

tn_status tni_libsvm_load(tni_space *space, const char *path, int64_t columns, tni_array **data,
                          tni_array **labels)
{
    const tni_libsvm_share all = {.path = path, .columns = columns};

    return tni_libsvm_load_part(space, &all, data, labels, NULL);
}

tn_status tni_libsvm_load_part(tni_space *space, const tni_libsvm_share *share, tni_array **data,
                               tni_array **labels, uint64_t *before)
{
    const char *path = share->path;
    rows s = {.columns = share->columns, .part = share->part, .parts = share->parts, .largest = -1};
    tni_device *host;
    parts p = {0};
    tn_status st;

    if ((st = tni_device_get(space->devices, "cpu", 0, &host)) || (st = rows_read(path, &s)))
        return st;
    if (!s.count)
        return tni_error(TN_E_FORMAT, "%s holds no rows%s", path, s.parts > 1 ? " in this share" : "");
    if (!(st = parts_make(space, host, &s, &p)) && !(st = parts_fill(path, &s, &p))) {
        if (before)
            *before = (uint64_t)s.before;
        *data = p.csr;
        *labels = p.labels;
        p.csr = p.labels = NULL; /* moved */
    }
    tni_array_release(p.values);
    tni_array_release(p.csr);
    tni_array_release(p.labels);
    tni_array_release(p.starts);
    tni_array_release(p.indices);
    return st;
}
