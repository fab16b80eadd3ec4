/*
 * Rows instead of whole values on the wire. A payload is trusted only once it was read: every number lies
 * within the part, and they rise, so no row is there twice.
 *
 * A server sums rows in a dense sum, and remembers which were named: a row that is named first is copied,
 * later ones are added, in order of ranks, as a process alone does it with row_sparse gradients.
 */
#include "kv/rows.h"

#include <string.h>

#include "kv/wire.h"

#define HEAD 8u
#define ID 4u

tn_status tni_kv_rows_read(const uint8_t *payload, uint64_t bytes, bool values, uint64_t part_bytes,
                           uint64_t element, tni_kv_row_set *out)
{
    tni_kv_row_set r = {.row_bytes = bytes < HEAD ? 0 : tni_kv_get(payload, 4)};
    uint64_t rows, before = UINT64_MAX;
    bool good;

    r.count = r.row_bytes ? tni_kv_get(payload + 4, 4) : 0;
    good = r.row_bytes && element && r.row_bytes % element == 0 && part_bytes % r.row_bytes == 0;
    rows = good ? part_bytes / r.row_bytes : 0;
    good = good && r.count <= rows && bytes == HEAD + r.count * (ID + (values ? r.row_bytes : 0));
    r.values = values ? payload + HEAD : NULL;
    r.ids = payload + HEAD + (values ? r.count * r.row_bytes : 0);
    for (uint64_t i = 0; good && i < r.count; i++) {
        const uint64_t id = tni_kv_get(r.ids + i * ID, ID);

        good = id < rows && (i == 0 || id > before);
        before = id;
    }
    if (!good)
        return tni_error(TN_E_FORMAT, "a payload that is no rows of its part");
    *out = r;
    return TN_OK;
}

uint64_t tni_kv_rows_at(const tni_kv_row_set *r, uint64_t i)
{
    return tni_kv_get(r->ids + i * ID, ID) * r->row_bytes;
}

void tni_kv_rows_take(const tni_kv_row_set *r, const void *part, void *out)
{
    for (uint64_t i = 0; i < r->count; i++)
        memcpy((char *)out + i * r->row_bytes, (const char *)part + tni_kv_rows_at(r, i), r->row_bytes);
}

tn_status tni_kv_rows_write(const tni_kv_plan *plan, uint64_t row_bytes, const int64_t *ids, uint64_t count,
                            const void *values, tni_kv_cut **out)
{
    const uint64_t width = values ? row_bytes : 0, rows = plan->piece / row_bytes;
    tni_kv_cut *cuts =
        tni_alloc((plan->parts + 1ull) * sizeof *cuts + plan->parts * HEAD + count * (ID + width));
    uint8_t *at = (uint8_t *)(cuts + plan->parts + 1), *begin = at;
    const char *from = values;
    uint64_t row = 0;

    if (!cuts)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i <= plan->parts; i++) {
        const uint64_t first = i * rows;
        uint64_t end = row;

        cuts[i] = (tni_kv_cut){(uint64_t)(at - begin), row};
        if (i == plan->parts)
            break;
        while (end < count && (uint64_t)ids[end] < first + rows)
            end++;
        tni_kv_put(at, row_bytes, 4);
        tni_kv_put(at + 4, end - row, 4);
        at += HEAD;
        tni_kv_bytes_copy(at, from + row * width, (end - row) * width);
        at += (end - row) * width;
        for (; row < end; row++, at += ID)
            tni_kv_put(at, (uint64_t)ids[row] - first, ID);
    }
    *out = cuts;
    return TN_OK;
}

/* ---- on a server ---- */

static tn_status named_begin(tni_kv_named *n, const tni_kv_row_set *r, uint64_t bytes)
{
    const uint64_t rows = bytes / r->row_bytes;

    if (n->rows < rows) {
        tni_free(n->bits);
        n->rows = 0;
        if (!(n->bits = tni_alloc(rows / 8 + 1)))
            return TN_E_NOMEM;
        n->rows = rows;
    }
    memset(n->bits, 0, rows / 8 + 1);
    n->row_bytes = r->row_bytes;
    n->all = false;
    return TN_OK;
}

tn_status tni_kv_rows_add(tni_kv_named *n, const tni_kv_header *h, bool begins, const void *base, void *sum,
                          const void *payload, uint64_t bytes)
{
    tni_kv_row_set r;
    tn_status st = tni_kv_rows_read(payload, h->bytes, true, bytes, tn_dtype_bytes(h->dtype), &r);

    if (st || (begins && (st = named_begin(n, &r, bytes))))
        return st;
    if (begins)
        memset(sum, 0, bytes);
    else
        tni_kv_bytes_copy(sum, base, bytes);
    if (!n->all && n->row_bytes != r.row_bytes)
        return tni_error(TN_E_SHAPE, "key %u: worker %u pushes rows of %u bytes, others of %u",
                         (uint32_t)(h->key >> 16), TNI_KV_RANK(h->from), (uint32_t)r.row_bytes,
                         (uint32_t)n->row_bytes);
    for (uint64_t i = 0; i < r.count; i++) {
        const uint64_t at = tni_kv_rows_at(&r, i), row = at / r.row_bytes;
        const uint8_t *from = r.values + i * r.row_bytes;
        char *to = (char *)sum + at;

        if (n->all || n->bits[row / 8] >> row % 8 & 1) {
            tni_kv_bytes_add(h->dtype, to, to, from, r.row_bytes);
            continue;
        }
        n->bits[row / 8] |= (uint8_t)(1u << row % 8);
        memcpy(to, from, r.row_bytes);
    }
    return TN_OK;
}

/* A view with rows. */
static tn_status matrix(tni_array *a, uint64_t rows, tni_array **out)
{
    const int64_t shape[] = {(int64_t)rows, (int64_t)(tni_array_count(a) / rows)};

    return tni_array_wrap(a->storage->space, a->storage->device, tni_array_data(a), tni_array_bytes(a),
                          a->dtype, 2, shape, NULL, NULL, NULL, out);
}

tn_status tni_kv_rows_of(tni_array *dense, const int64_t *ids, int64_t count, tni_array **rows,
                         tni_array **out)
{
    tni_device *cpu = dense->storage->device;
    tni_space *space = dense->storage->space;
    tni_array *aux[2] = {NULL}, *made = NULL, *values = NULL;
    tn_status st;

    if (!(st = tni_array_create(space, cpu, TN_I64, 1, &count, "kvstore", &aux[0])) &&
        !(st = tni_array_first_write(aux[0], ids, (uint64_t)count * sizeof *ids)) &&
        !(st = tni_array_create_sparse(space, cpu, TN_STORAGE_ROW_SPARSE, dense->dtype, dense->ndim,
                                       dense->shape, aux, &made)) &&
        !(st = tni_array_values(made, &values)) && !rows)
        st = tni_rows_move(dense, aux[0], values, false);
    if (!st && rows)
        tni_array_retain(*rows = values);
    tni_array_release(values);
    tni_array_release(aux[0]);
    if (st)
        tni_array_release(made);
    else
        *out = made;
    return st;
}

static tn_status gradient_of(const tni_kv_named *n, tni_array *sum, uint64_t rows, tni_array **out)
{
    int64_t *ids = tni_alloc((rows + 1) * sizeof *ids), count = 0;
    tni_array *dense = NULL;
    tn_status st = ids ? matrix(sum, rows, &dense) : TN_E_NOMEM;

    for (uint64_t i = 0; !st && i < rows; i++)
        if (n->bits[i / 8] >> i % 8 & 1)
            ids[count++] = (int64_t)i;
    if (!st)
        st = tni_kv_rows_of(dense, ids, count, NULL, out);
    tni_array_release(dense);
    tni_free(ids);
    return st;
}

tn_status tni_kv_rows_step(const tni_kv_named *n, const tni_kv_optimizer *o, tni_kv_param_slot *slot,
                           tni_array *value, tni_array *sum)
{
    const uint64_t rows = tni_array_bytes(value) / n->row_bytes;
    const uint32_t states = tni_kv_optimizer_states(o, value->dtype);
    tni_array *kept[TNI_KV_STATES], *weight = NULL, *grad = NULL;
    tn_status st;

    memcpy(kept, slot->states, sizeof kept);
    memset(slot->states, 0, sizeof kept);
    if (!(st = matrix(value, rows, &weight)))
        st = gradient_of(n, sum, rows, &grad);
    for (uint32_t k = 0; k < states && !st; k++)
        st = matrix(kept[k], rows, &slot->states[k]);
    if (!st && !(st = tni_kv_optimizer_step(o, slot, weight, grad)))
        st = tni_array_wait(weight);
    for (uint32_t k = 0; k < states; k++) {
        if (!st)
            st = tni_array_wait(slot->states[k]);
        tni_array_release(slot->states[k]);
    }
    memcpy(slot->states, kept, sizeof kept);
    tni_array_release(grad);
    tni_array_release(weight);
    return st;
}
