/*
 * Patterns: which places of a sparse array are stored. Arrays that are brought to one pattern share its index
 * arrays, and what is computed on their values, element by element, has it, too. A pattern is read on the
 * calling thread, which waits for it. Rows of dense arrays are moved by operations. Hosts only.
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/internal.h"

/* ---- reading ------------------------------------------------------------------------------------------- */

/* Until values and indices may be read. */
static tn_status pattern_wait(tni_array *a)
{
    tn_status st = TN_OK;

    if (a->storage_type == TN_STORAGE_DENSE)
        return tni_array_wait(a);
    for (int32_t k = 0; k < 2 && !st; k++)
        if (a->aux[k] && !(st = tni_array_shape_wait(a->aux[k])))
            st = tni_array_wait(a->aux[k]);
    return st ? st : tni_engine_wait_read(a->storage->space->engine, tni_array_var(a), 0);
}

/* Rows of values are units of a row_sparse array, elements those of a csr one. */
static uint64_t unit_bytes(const tni_array *a)
{
    uint64_t bytes = tn_dtype_bytes(a->dtype);

    for (int32_t d = 1; d < a->ndim && a->storage_type != TN_STORAGE_CSR; d++)
        bytes *= (uint64_t)a->shape[d];
    return bytes;
}

/* Lines are the rows of a csr array; a row_sparse one has one line of row ids. */
static int64_t lines_of(const tni_array *a)
{
    return a->storage_type == TN_STORAGE_CSR ? a->shape[0] : 1;
}

static void line_of(const tni_array *a, int64_t line, int64_t *first, int64_t *end)
{
    const bool csr = a->storage_type == TN_STORAGE_CSR;

    *first = csr ? tni_index_at(a->aux[0], line) : 0;
    *end = csr ? tni_index_at(a->aux[0], line + 1) : a->aux[0]->shape[0];
}

static int64_t place_of(const tni_array *a, int64_t unit)
{
    return tni_index_at(a->aux[a->storage_type == TN_STORAGE_CSR], unit);
}

/* ---- one pattern for several arrays -------------------------------------------------------------------- */

typedef struct joint {
    uint32_t count;
    tni_array *const *in;
    int64_t *starts, *places; /* per line; all */
    int64_t stored, room;
} joint;

/* The places of all arrays in one line, ascending, each once. */
static void line_join(joint *j, int64_t line)
{
    int64_t *to = j->places + j->stored;
    int64_t n = 0, kept = 0;

    for (uint32_t i = 0; i < j->count; i++) {
        int64_t first, end;

        line_of(j->in[i], line, &first, &end);
        for (int64_t u = first; u < end; u++)
            to[n++] = place_of(j->in[i], u);
    }
    if (n)
        qsort(to, (size_t)n, sizeof *to, tni_index_order);
    for (int64_t k = 0; k < n; k++)
        if (!kept || to[k] != to[kept - 1])
            to[kept++] = to[k];
    j->stored += kept;
    j->starts[line + 1] = j->stored;
}

static tn_status joint_fill(joint *j)
{
    const int64_t lines = lines_of(j->in[0]);

    for (uint32_t i = 0; i < j->count; i++) {
        const tni_array *last = j->in[i]->aux[j->in[i]->storage_type == TN_STORAGE_CSR];

        j->room += last->shape[0];
    }
    j->starts = tni_calloc((uint64_t)lines + 1, sizeof *j->starts);
    j->places = tni_calloc((uint64_t)j->room + 1, sizeof *j->places);
    if (!j->starts || !j->places)
        return TN_E_NOMEM;
    for (int64_t line = 0; line < lines; line++)
        line_join(j, line);
    return TN_OK;
}

static tn_status indices_make(const tni_array *like, int64_t count, const int64_t *from, tni_array **out)
{
    tni_storage *s = like->storage;
    tn_status st = tni_array_create(s->space, s->device, TN_I64, 1, &count, NULL, out);

    return st || !count ? st : tni_array_first_write(*out, from, (uint64_t)count * sizeof *from);
}

/* An array of that pattern, whose values are zeros. */
static tn_status spread_make(const joint *j, tni_array *const aux[2], tni_array **out)
{
    const tni_array *like = j->in[0];
    tn_status st = tni_array_create_sparse(like->storage->space, like->storage->device, like->storage_type,
                                           like->dtype, like->ndim, like->shape, aux, out);

    if (st || (st = tni_storage_allocate((*out)->storage, NULL)))
        return st;
    if ((*out)->storage->bytes)
        memset((*out)->storage->data, 0, (*out)->storage->bytes);
    tni_sparse_seal(*out);
    return TN_OK;
}

/* The values of `from` at their places in `to`. Of a place that is stored twice the last one counts. */
static void spread_fill(const joint *j, const tni_array *from, tni_array *to)
{
    const uint64_t size = unit_bytes(from);

    for (int64_t line = 0; size && line < lines_of(from); line++) {
        const int64_t *places = j->places + j->starts[line];
        const size_t count = (size_t)(j->starts[line + 1] - j->starts[line]);
        int64_t first, end;

        line_of(from, line, &first, &end);
        for (int64_t u = first; u < end; u++) {
            const int64_t place = place_of(from, u);
            const int64_t *found = bsearch(&place, places, count, sizeof place, tni_index_order);

            memcpy((char *)to->storage->data + (uint64_t)(found - j->places) * size,
                   (const char *)from->storage->data + (uint64_t)u * size, size);
        }
    }
}

tn_status tni_sparse_align(uint32_t count, tni_array *const *in, tni_array **out)
{
    joint j = {.count = count, .in = in};
    tni_array *aux[2] = {NULL, NULL};
    const bool csr = in[0]->storage_type == TN_STORAGE_CSR;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++)
        st = pattern_wait(in[i]);
    if (!st && !(st = joint_fill(&j)) &&
        !(st = csr ? indices_make(in[0], in[0]->shape[0] + 1, j.starts, &aux[0]) : TN_OK))
        st = indices_make(in[0], j.stored, j.places, &aux[csr]);
    for (uint32_t i = 0; i < count && !st; i++)
        if (!(st = spread_make(&j, aux, &out[i])))
            spread_fill(&j, in[i], out[i]);
    tni_array_release(aux[0]);
    tni_array_release(aux[1]);
    tni_free(j.starts);
    tni_free(j.places);
    return st;
}

tn_status tni_sparse_with(tni_array *like, tni_array *values, tni_array **out)
{
    return tni_sparse_on(values, like->storage_type, like->ndim, like->shape, like->aux, out);
}

/* ---- dense elements at a pattern ----------------------------------------------------------------------- */

static void masked_fill(const tni_array *dense, const tni_array *like, tni_array *to)
{
    const uint64_t size = unit_bytes(like);
    const int64_t across = like->storage_type == TN_STORAGE_CSR ? like->shape[1] : 0;
    const char *from = tni_array_data(dense);

    for (int64_t line = 0; size && line < lines_of(like); line++) {
        int64_t first, end;

        line_of(like, line, &first, &end);
        for (int64_t u = first; u < end; u++)
            memcpy((char *)tni_array_data(to) + (uint64_t)u * size,
                   from + (uint64_t)(line * across + place_of(like, u)) * size, size);
    }
}

tn_status tni_sparse_mask(tni_array *dense, tni_array *like, tni_array **values)
{
    tni_array *place = NULL;
    tn_status st;

    if (!tni_array_contiguous(dense))
        return tni_error(TN_E_UNSUPPORTED, "a dense array that is not row-major beside a sparse one");
    if ((st = pattern_wait(like)) || (st = pattern_wait(dense)) ||
        (st = tni_storage_touch(dense->storage, NULL)) || (st = tni_array_values(like, &place)))
        return st;
    if (!(st = tni_array_create(dense->storage->space, dense->storage->device, dense->dtype, place->ndim,
                                place->shape, NULL, values)) &&
        !(st = tni_storage_allocate((*values)->storage, NULL)))
        masked_fill(dense, like, *values);
    tni_array_release(place);
    return st;
}

/* ---- rows of dense arrays ------------------------------------------------------------------------------ */

typedef struct rows_move {
    tni_array *dense, *ids, *rows; /* retained */
    bool put;
} rows_move;

static tn_status rows_run(void *payload, tni_run *run)
{
    const rows_move *m = payload;
    const uint64_t size = m->dense->shape[0] ? tni_array_bytes(m->dense) / (uint64_t)m->dense->shape[0] : 0;
    char *dense, *rows;
    tn_status st;

    (void)run;
    if ((st = tni_storage_touch(m->dense->storage, NULL)) ||
        (st = m->put ? tni_storage_touch(m->rows->storage, NULL)
                     : tni_storage_allocate(m->rows->storage, NULL)))
        return st;
    dense = tni_array_data(m->dense);
    rows = tni_array_data(m->rows);
    for (int64_t k = 0; size && k < m->ids->shape[0]; k++) {
        char *at = dense + (uint64_t)tni_index_at(m->ids, k) * size, *row = rows + (uint64_t)k * size;

        memcpy(m->put ? at : row, m->put ? row : at, size);
    }
    return TN_OK;
}

static void rows_done(void *payload, tni_engine *engine, tn_status status)
{
    const rows_move *m = payload;

    (void)engine;
    (void)status;
    tni_array_release(m->dense);
    tni_array_release(m->ids);
    tni_array_release(m->rows);
}

tn_status tni_rows_move(tni_array *dense, tni_array *ids, tni_array *rows, bool put)
{
    const rows_move m = {dense, ids, rows, put};
    tni_var *vars[] = {tni_array_var(ids), tni_array_var(put ? rows : dense),
                       tni_array_var(put ? dense : rows)};
    const tni_task task = {.run = rows_run,
                           .done = rows_done,
                           .payload = &m,
                           .payload_bytes = sizeof m,
                           .reads = vars,
                           .read_count = 2,
                           .writes = vars + 2,
                           .write_count = 1,
                           .device = dense->storage->device,
                           .name = put ? "rows put" : "rows taken"};
    tn_status st;

    if (!tni_array_contiguous(dense) || !tni_array_contiguous(rows))
        return tni_error(TN_E_UNSUPPORTED, "rows of an array that is not row-major");
    if (!tni_array_writable(put ? dense : rows))
        return tni_error(TN_E_STATE, "the array is memory of others that is read only");
    tni_array_retain(dense);
    tni_array_retain(ids);
    tni_array_retain(rows);
    if ((st = tni_engine_push(dense->storage->space->engine, &task)))
        rows_done((void *)(uintptr_t)&m, NULL, st);
    return st;
}
