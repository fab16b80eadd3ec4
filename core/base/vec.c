/* A growing array of fixed-size items. It doubles, within its maximum;
 * a failed growth leaves it as it was. */
#include <string.h>

#include "base/base.h"

void tni_vec_init(tni_vec *v, size_t item_bytes, size_t max)
{
    *v = (tni_vec){.item_bytes = item_bytes, .max = max};
}

void tni_vec_init_kept(tni_vec *v, tni_keep *keep, size_t item_bytes, size_t max)
{
    *v = (tni_vec){.item_bytes = item_bytes, .max = max, .keep = keep};
}

void tni_vec_fini(tni_vec *v)
{
    if (v->keep)
        tni_keep_give(v->keep, v->data);
    else
        tni_free(v->data);
    v->data = NULL;
    v->count = v->capacity = 0;
}

static void *data_grow(const tni_vec *v, uint64_t bytes)
{
    void *data;

    if (!v->keep)
        return tni_realloc(v->data, bytes);
    if ((data = tni_keep_take(v->keep, bytes)) != NULL && v->data) {
        memcpy(data, v->data, v->count * v->item_bytes);
        tni_keep_give(v->keep, v->data);
    }
    return data;
}

tn_status tni_vec_reserve(tni_vec *v, size_t count)
{
    size_t capacity = v->capacity ? v->capacity : 8;
    uint64_t bytes;
    void *data;

    if (count <= v->capacity)
        return TN_OK;
    if (count > v->max)
        return tni_error(TN_E_NOMEM, "%zu items, but the limit here is %zu", count, v->max);
    while (capacity < count)
        capacity = capacity > v->max / 2 ? v->max : capacity * 2;
    if (capacity > v->max)
        capacity = v->max;
    if (!tni_size_mul(capacity, v->item_bytes, &bytes))
        return tni_error(TN_E_NOMEM, "%zu items of %zu bytes do not fit", capacity, v->item_bytes);
    data = data_grow(v, bytes);
    if (!data)
        return TN_E_NOMEM;
    v->data = data;
    v->capacity = capacity;
    return TN_OK;
}

tn_status tni_vec_extend(tni_vec *v, size_t count, void **out)
{
    tn_status st;

    if (count > v->max || v->count > v->max - count)
        return tni_error(TN_E_NOMEM, "%zu items and %zu more, but the limit here is %zu", v->count, count,
                         v->max);
    st = tni_vec_reserve(v, v->count + count);
    if (st)
        return st;
    if (count)
        memset((char *)v->data + v->count * v->item_bytes, 0, count * v->item_bytes);
    if (out)
        *out = v->data ? (char *)v->data + v->count * v->item_bytes : NULL;
    v->count += count;
    return TN_OK;
}

tn_status tni_vec_push(tni_vec *v, const void *item)
{
    void *at;
    tn_status st = tni_vec_extend(v, 1, &at);

    if (!st)
        memcpy(at, item, v->item_bytes);
    return st;
}

void *tni_vec_at(const tni_vec *v, size_t index)
{
    return index < v->count ? (char *)v->data + index * v->item_bytes : NULL;
}
