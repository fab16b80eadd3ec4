/*
 * Writes MXNet's .params, and the checksum over what it means. Values are taken from where they lie once they
 * are there; the file appears whole or not at all.
 */
#include "io/internal.h"

static tn_status shape_write(tni_sink *to, int32_t ndim, const int64_t *shape)
{
    tn_status st = tni_sink_u32(to, (uint32_t)ndim);

    return st ? st : tni_sink_write(to, shape, (uint64_t)ndim * sizeof *shape);
}

static tn_status values_write(tni_sink *to, tni_array *a)
{
    const void *data;
    void *copy;
    tn_status st = tni_array_borrow(a, &data, &copy);

    if (st)
        return st;
    st = tni_sink_write(to, data, tni_array_bytes(a));
    tni_free(copy);
    return st;
}

static tn_status types_write(tni_sink *to, const tni_array *a)
{
    static const uint32_t device[2] = {1, 0}; /* MXNet's cpu(0) */
    tn_status st;

    if (tni_dtype_packed(a->dtype))
        return tni_error(TN_E_UNSUPPORTED, "a .params file has no type for %s: cast it to int8 first",
                         tni_dtype_name(a->dtype));
    st = tni_sink_write(to, device, sizeof device);

    return st ? st : tni_sink_u32(to, (uint32_t)a->dtype);
}

static tn_status dense_write(tni_sink *to, tni_array *a)
{
    bool version_3 = a->ndim == 0;
    tn_status st;

    for (int32_t i = 0; i < a->ndim; i++)
        version_3 |= a->shape[i] == 0;
    if ((st = tni_sink_u32(to, version_3 ? TNI_PARAMS_V3 : TNI_PARAMS_V2)) ||
        (st = tni_sink_u32(to, TN_STORAGE_DENSE)) || (st = shape_write(to, a->ndim, a->shape)) ||
        (st = types_write(to, a)))
        return st;
    return values_write(to, a);
}

static tn_status sparse_write(tni_sink *to, tni_array *a)
{
    const int32_t aux = a->storage_type == TN_STORAGE_CSR ? 2 : 1;
    tni_array *values = NULL;
    tn_status st;

    if ((st = tni_array_values(a, &values)) || (st = tni_sink_u32(to, TNI_PARAMS_V2)) ||
        (st = tni_sink_u32(to, a->storage_type)) || (st = shape_write(to, values->ndim, values->shape)) ||
        (st = shape_write(to, a->ndim, a->shape)) || (st = types_write(to, a)))
        goto cleanup;
    for (int32_t i = 0; i < aux; i++)
        if ((st = tni_sink_u32(to, (uint32_t)a->aux[i]->dtype)) ||
            (st = shape_write(to, 1, a->aux[i]->shape)))
            goto cleanup;
    st = values_write(to, values);
    for (int32_t i = 0; !st && i < aux; i++)
        st = values_write(to, a->aux[i]);

cleanup:
    tni_array_release(values);
    return st;
}

static tn_status none_write(tni_sink *to)
{
    static const uint32_t none[3] = {TNI_PARAMS_V2, 0, 0};

    return tni_sink_write(to, none, sizeof none);
}

tn_status tni_params_write(const tni_params *p, tni_sink *to)
{
    const uint64_t head[3] = {TNI_PARAMS_MAGIC, 0, p->count};
    tn_status st = tni_sink_write(to, head, sizeof head);

    for (size_t i = 0; !st && i < p->count; i++) {
        tni_array *a = p->arrays[i];

        if (!a)
            st = none_write(to);
        else if (!(st = tni_array_shape_wait(a)))
            st = a->storage_type == TN_STORAGE_DENSE ? dense_write(to, a) : sparse_write(to, a);
    }
    if (!st)
        st = tni_sink_u64(to, p->named ? p->count : 0);
    for (size_t i = 0; !st && p->named && i < p->count; i++) {
        const uint64_t length = strlen(p->names[i]);

        if (!(st = tni_sink_u64(to, length)))
            st = tni_sink_write(to, p->names[i], length);
    }
    return st;
}

tn_status tni_params_save(const tni_params *p, const char *path)
{
    tni_sink to = {.writer = NULL};
    tn_status st = tni_writer_open(path, &to.writer);

    if (st)
        return st;
    if ((st = tni_params_write(p, &to))) {
        tni_writer_abandon(to.writer);
        return st;
    }
    return tni_writer_commit(to.writer);
}

tn_status tni_params_save_memory(const tni_params *p, void **bytes, uint64_t *count)
{
    tni_str text;
    tni_sink to = {.text = &text};
    char *taken;
    tn_status st;

    tni_str_init(&text, TN_TEXT_MAX);
    if (!(st = tni_params_write(p, &to)) && !(st = tni_str_take(&text, &taken))) {
        *bytes = taken;
        *count = to.bytes;
    }
    tni_str_fini(&text);
    return st;
}

static tn_status values_hash(tni_sha256_state *state, tni_array *a)
{
    const void *data;
    void *copy;
    tn_status st = tni_array_borrow(a, &data, &copy);

    if (st)
        return st;
    tni_sha256_add(state, data, tni_array_bytes(a));
    tni_free(copy);
    return TN_OK;
}

static tn_status entry_hash(tni_sha256_state *state, tni_array *a)
{
    tni_array *values = NULL;
    tn_status st = tni_array_shape_wait(a);

    if (st)
        return st;
    tni_sha256_add(state, &a->dtype, sizeof a->dtype);
    tni_sha256_add(state, &a->ndim, sizeof a->ndim);
    tni_sha256_add(state, a->shape, (uint64_t)a->ndim * sizeof *a->shape);
    if (a->storage_type == TN_STORAGE_DENSE)
        return values_hash(state, a);
    if (!(st = tni_array_values(a, &values)))
        st = values_hash(state, values);
    for (int i = 0; !st && i < 2 && a->aux[i]; i++)
        st = values_hash(state, a->aux[i]);
    tni_array_release(values);
    return st;
}

tn_status tni_params_sha256(const tni_params *p, char out_hex[65])
{
    tni_sha256_state state;
    tn_status st = TN_OK;

    tni_sha256_begin(&state);
    for (size_t i = 0; !st && i < p->count; i++) {
        tni_sha256_add(&state, p->names[i], strlen(p->names[i]));
        if (p->arrays[i])
            st = entry_hash(&state, p->arrays[i]);
    }
    if (!st)
        tni_sha256_end(&state, out_hex);
    return st;
}
