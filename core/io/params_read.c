/*
 * Reads MXNet's .params: a list of array records, then their names. The four versions differ in the head of a
 * record:
 *
 *   0  u32 ndim, u32 dims                         2  u32 magic, i32 storage type, [storage shape,] shape
 *   1  u32 magic, shape                           3  as 2, dense only; no dimensions is one element
 *
 * then i32 device type, i32 device, i32 dtype, [type and shape of each index array,] values, [index arrays].
 * A shape is i32 ndim and i64 dims. Before version 3 a record without dimensions ends there: an entry without
 * a value.
 *
 * Nothing is allocated before the part of the file that is left was seen to hold it.
 */
#include "io/internal.h"

/* What an entry costs at most beside its bytes: blocks, 32 dimensions, pool rounding, name, map. With it the
 * number of entries is bounded by the size of the file. */
#define ENTRY_COST 1536u
#define ENTRY_FREE ((uint64_t)48 << 20)

typedef struct record {
    uint64_t number; /* for messages */
    bool empty;
    int32_t storage_type, dtype, ndim, values_ndim, aux_count, aux_dtype[2];
    int64_t shape[TN_NDIM_MAX], values_shape[TN_NDIM_MAX], aux_length[2];
} record;

static tn_status bad(const tni_source *s, const record *r, const char *what, long long value)
{
    return tni_error(TN_E_FORMAT, "%s: entry %llu: %s %lld", tni_file_name(s->file),
                     (unsigned long long)r->number, what, value);
}

/* -1 dimensions, or a dimension of -1, say "unknown" in version 3: reported as ndim -1. */
static tn_status shape_read(tni_source *s, const record *r, bool unknown_allowed, int32_t *ndim,
                            int64_t shape[TN_NDIM_MAX])
{
    bool unknown = false;
    int32_t n;
    tn_status st = tni_source_i32(s, &n);

    if (st)
        return st;
    if (n == -1 && unknown_allowed) {
        *ndim = -1;
        return TN_OK;
    }
    if (n < 0 || n > TN_NDIM_MAX)
        return bad(s, r, "number of dimensions", n);
    if ((st = tni_source_read(s, shape, (uint64_t)n * sizeof *shape)))
        return st;
    for (int32_t i = 0; i < n; i++) {
        unknown |= shape[i] == -1;
        if (shape[i] < 0 && !(unknown_allowed && shape[i] == -1))
            return bad(s, r, "dimension", shape[i]);
    }
    *ndim = unknown ? -1 : n;
    return TN_OK;
}

static tn_status shape_read_v0(tni_source *s, record *r, uint32_t ndim)
{
    if (ndim > TN_NDIM_MAX)
        return tni_error(TN_E_FORMAT, "%s: entry %llu begins with %08x: no version that is known",
                         tni_file_name(s->file), (unsigned long long)r->number, ndim);
    r->ndim = (int32_t)ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        uint32_t dim;
        tn_status st = tni_source_u32(s, &dim);

        if (st)
            return st;
        r->shape[i] = dim;
    }
    return TN_OK;
}

/* Everything up to the shape. */
static tn_status head_read(tni_source *s, record *r)
{
    uint32_t magic;
    tn_status st = tni_source_u32(s, &magic);

    if (st)
        return st;
    if (magic == TNI_PARAMS_V2 || magic == TNI_PARAMS_V3) {
        if ((st = tni_source_i32(s, &r->storage_type)))
            return st;
        if (r->storage_type < TN_STORAGE_UNKNOWN || r->storage_type > TN_STORAGE_CSR ||
            (magic == TNI_PARAMS_V3 && r->storage_type > TN_STORAGE_DENSE))
            return bad(s, r, "storage type", r->storage_type);
        r->aux_count = r->storage_type > 0 ? r->storage_type : 0;
        if (r->aux_count && (st = shape_read(s, r, false, &r->values_ndim, r->values_shape)))
            return st;
        st = shape_read(s, r, magic == TNI_PARAMS_V3, &r->ndim, r->shape);
    } else if (magic == TNI_PARAMS_V1) {
        st = shape_read(s, r, false, &r->ndim, r->shape);
    } else {
        st = shape_read_v0(s, r, magic);
    }
    if (st)
        return st;
    r->empty = r->ndim < 0 || (r->ndim == 0 && magic != TNI_PARAMS_V3);
    if (!r->empty && r->storage_type == TN_STORAGE_UNKNOWN)
        return bad(s, r, "storage type", r->storage_type);
    return TN_OK;
}

static tn_status types_read(tni_source *s, record *r)
{
    int32_t device[2], ndim;
    int64_t shape[TN_NDIM_MAX];
    tn_status st = tni_source_read(s, device, sizeof device); /* where it was: of no meaning here */

    if (st || (st = tni_source_i32(s, &r->dtype)))
        return st;
    if (tn_dtype_bytes(r->dtype) == 0 || tni_dtype_packed(r->dtype))
        return bad(s, r, "data type", r->dtype);
    for (int32_t i = 0; i < r->aux_count; i++) {
        if ((st = tni_source_i32(s, &r->aux_dtype[i])) || (st = shape_read(s, r, false, &ndim, shape)))
            return st;
        if (r->aux_dtype[i] != TN_I64 && r->aux_dtype[i] != TN_I32)
            return bad(s, r, "data type of an index array", r->aux_dtype[i]);
        if (ndim != 1)
            return bad(s, r, "dimensions of an index array", ndim);
        r->aux_length[i] = shape[0];
    }
    return TN_OK;
}

/* The bytes that must follow are there. */
static tn_status backed(const tni_source *s, const record *r, int32_t ndim, const int64_t *shape)
{
    uint64_t count, total, part;

    if (tni_shape_check(r->dtype, ndim, shape, &count))
        return bad(s, r, "too many elements in dimensions:", ndim);
    total = count * tn_dtype_bytes(r->dtype);
    for (int32_t i = 0; i < r->aux_count; i++)
        if (!tni_size_mul((uint64_t)r->aux_length[i], tn_dtype_bytes(r->aux_dtype[i]), &part) ||
            !tni_size_add(total, part, &total))
            return bad(s, r, "too many elements in an index array:", r->aux_length[i]);
    if (total > s->left)
        return tni_error(TN_E_FORMAT, "%s: entry %llu has %llu bytes, but only %llu are left",
                         tni_file_name(s->file), (unsigned long long)r->number, (unsigned long long)total,
                         (unsigned long long)s->left);
    return TN_OK;
}

static tn_status data_read(tni_source *s, tni_array *a)
{
    uint64_t bytes = tni_array_bytes(a);

    return bytes ? tni_source_read(s, tni_array_data(a), bytes) : TN_OK;
}

static tn_status host_read(tni_source *s, const record *r, tni_space *space, tni_device *host, bool again,
                           tni_array **out)
{
    tni_array *a = NULL;
    tn_status st;

    if (!again)
        st = tni_array_fresh(space, host, r->dtype, r->ndim, r->shape, &a);
    else
        st = tni_array_create(space, host, r->dtype, r->ndim, r->shape, "file", &a);
    if (!st)
        st = again ? tni_again_read(s, a) : data_read(s, a);
    if (st)
        tni_array_release(a);
    else
        *out = a;
    return st;
}

static bool reads_again(const tni_source *s, const record *r)
{
    uint64_t count;

    return s->held && !tni_shape_check(r->dtype, r->ndim, r->shape, &count) &&
           count * tn_dtype_bytes(r->dtype) >= TNI_AGAIN_BYTES_MIN;
}

static tn_status dense_read(tni_source *s, const record *r, tni_space *space, tni_device *device,
                            tni_device *host, tni_array **out)
{
    tni_array *local = NULL, *a = NULL;
    tn_status st;

    if ((st = backed(s, r, r->ndim, r->shape)) ||
        (st = host_read(s, r, space, host, device == host && reads_again(s, r), &local)))
        goto cleanup;
    if (device->host && device == host) {
        *out = local;
        return TN_OK;
    }
    if ((st = tni_array_create(space, device, r->dtype, r->ndim, r->shape, "params", &a)) ||
        (st = tni_array_copy(local, a)) || (st = tni_array_wait(a))) /* one bounce at a time */
        goto cleanup;
    *out = a;
    a = NULL;

cleanup:
    tni_array_release(local);
    tni_array_release(a);
    return st;
}

/* Kernels trust indices: inside, and in order. */
static tn_status indices_check(const tni_source *s, const record *r, tni_array *a)
{
    int64_t value = 0;
    const char *fault = tni_sparse_fault(a, &value);

    if (fault)
        return bad(s, r, fault, value);
    tni_sparse_seal(a);
    return TN_OK;
}

static tn_status sparse_shape_check(const tni_source *s, const record *r)
{
    if (r->storage_type == TN_STORAGE_CSR) {
        if (r->ndim != 2 || r->values_ndim != 1 || r->values_shape[0] != r->aux_length[1])
            return bad(s, r, "csr values do not fit the indices; dimensions:", r->ndim);
        return TN_OK;
    }
    if (r->values_ndim != r->ndim || r->values_shape[0] != r->aux_length[0])
        return bad(s, r, "rows do not fit their ids; dimensions of the values:", r->values_ndim);
    for (int32_t i = 1; i < r->ndim; i++)
        if (r->values_shape[i] != r->shape[i])
            return bad(s, r, "rows do not fit the shape in dimension", i);
    return TN_OK;
}

static tn_status sparse_read(tni_source *s, const record *r, tni_space *space, tni_device *device,
                             tni_device *host, tni_array **out)
{
    tni_array *aux[2] = {NULL, NULL}, *a = NULL, *values = NULL;
    tn_status st;

    if (device != host)
        return tni_error(TN_E_UNSUPPORTED, "%s: entry %llu is sparse: load it to cpu:0",
                         tni_file_name(s->file), (unsigned long long)r->number);
    if ((st = sparse_shape_check(s, r)) || (st = backed(s, r, r->values_ndim, r->values_shape)))
        return st;
    for (int32_t i = 0; i < r->aux_count; i++)
        if ((st = tni_array_fresh(space, host, r->aux_dtype[i], 1, &r->aux_length[i], &aux[i])))
            goto cleanup;
    st = tni_array_create_sparse(space, host, r->storage_type, r->dtype, r->ndim, r->shape, aux, &a);
    if (st) {
        if (st != TN_E_NOMEM)
            st = bad(s, r, "a sparse array that cannot be; dimensions:", r->ndim);
        goto cleanup;
    }
    if ((st = tni_storage_allocate(a->storage, NULL)) || (st = tni_array_values(a, &values)) ||
        (st = data_read(s, values)))
        goto cleanup;
    for (int32_t i = 0; i < r->aux_count; i++)
        if ((st = data_read(s, aux[i])))
            goto cleanup;
    if ((st = indices_check(s, r, a)))
        goto cleanup;
    *out = a;
    a = NULL;

cleanup:
    tni_array_release(values);
    tni_array_release(aux[0]);
    tni_array_release(aux[1]);
    tni_array_release(a);
    return st;
}

static tn_status record_read(tni_source *s, uint64_t number, tni_space *space, tni_device *device,
                             tni_device *host, tni_array **out)
{
    record r = {.number = number};
    tn_status st = head_read(s, &r);

    if (st)
        return st;
    if (r.empty) {
        *out = NULL;
        return TN_OK;
    }
    if ((st = types_read(s, &r)))
        return st;
    return r.aux_count ? sparse_read(s, &r, space, device, host, out)
                       : dense_read(s, &r, space, device, host, out);
}

/* Entry `number`: the array is there, its name comes now. */
static tn_status name_read(tni_source *s, uint64_t number, tni_params *p, tni_array *a)
{
    char name[TN_NAME_MAX + 1];
    uint64_t length;
    tn_status st = tni_source_u64(s, &length);

    if (st)
        return st;
    if (length > TN_NAME_MAX)
        return tni_error(TN_E_FORMAT, "%s: the name of entry %llu has %llu bytes", tni_file_name(s->file),
                         (unsigned long long)number, (unsigned long long)length);
    if ((st = tni_source_read(s, name, length)))
        return st;
    name[length] = '\0';
    if (strlen(name) != length)
        return tni_error(TN_E_FORMAT, "%s: the name of entry %llu holds a NUL", tni_file_name(s->file),
                         (unsigned long long)number);
    st = tni_params_add(p, name, a);
    return st == TN_E_KEY
               ? tni_error(TN_E_FORMAT, "%s: the name %.200s is there twice", tni_file_name(s->file), name)
               : st;
}

static tn_status start_read(tni_source *s, uint64_t *count)
{
    uint64_t magic = 0, reserved;
    tn_status st = tni_source_u64(s, &magic), other;

    if (st && st != TN_E_FORMAT)
        return st;
    if (s->whole && (st || magic != TNI_PARAMS_MAGIC) &&
        (other = tni_file_kind_check(s->file, TNI_KIND_PARAMS)))
        return other;
    if (st)
        return tni_error(TN_E_FORMAT, "%s is no .params file: it has fewer than the 8 bytes that begin one",
                         tni_file_name(s->file));
    if (magic != TNI_PARAMS_MAGIC)
        return tni_error(TN_E_FORMAT, "%s is no .params file: it begins with %016llx", tni_file_name(s->file),
                         (unsigned long long)__builtin_bswap64(magic)); /* as the bytes stand in the file */
    if ((st = tni_source_u64(s, &reserved)) || (st = tni_source_u64(s, count)))
        return st;
    if (*count > TN_PARAMS_ENTRIES_MAX || *count * ENTRY_COST > s->left + ENTRY_FREE)
        return tni_error(TN_E_FORMAT, "%s: %llu entries in %llu bytes", tni_file_name(s->file),
                         (unsigned long long)*count, (unsigned long long)s->left);
    return TN_OK;
}

tn_status tni_params_read(tni_source *s, tni_space *space, tni_device *device, tni_params **out)
{
    tni_params *p = NULL;
    tni_vec arrays; /* until their names come */
    tni_device *host = device;
    uint64_t count = 0, names = 0;
    tn_status st;

    tni_vec_init(&arrays, sizeof(tni_array *), TN_PARAMS_ENTRIES_MAX);
    if ((st = start_read(s, &count)) || (st = tni_params_create(&p)) ||
        (!device->host && (st = tni_device_get(space->devices, "cpu", 0, &host))))
        goto cleanup;
    for (uint64_t i = 0; i < count; i++) {
        tni_array *a = NULL;

        if ((st = record_read(s, i, space, device, host, &a)))
            goto cleanup;
        if ((st = tni_vec_push(&arrays, &a))) {
            tni_array_release(a);
            goto cleanup;
        }
    }
    if ((st = tni_source_u64(s, &names)))
        goto cleanup;
    if (names != 0 && names != count)
        st = tni_error(TN_E_FORMAT, "%s has %llu arrays and %llu names", tni_file_name(s->file),
                       (unsigned long long)count, (unsigned long long)names);
    for (uint64_t i = 0; !st && i < count; i++) {
        tni_array *a = *(tni_array **)tni_vec_at(&arrays, i);

        st = names ? name_read(s, i, p, a) : tni_params_add(p, NULL, a);
    }
    if (!st && s->left)
        st = tni_error(TN_E_FORMAT, "%s has %llu bytes behind its end", tni_file_name(s->file),
                       (unsigned long long)s->left);
    if (!st) {
        *out = p;
        p = NULL;
    }

cleanup:
    for (size_t i = 0; i < arrays.count; i++)
        tni_array_release(*(tni_array **)tni_vec_at(&arrays, i));
    tni_vec_fini(&arrays);
    tni_params_destroy(p);
    return st;
}

static tn_status file_load(tni_file *file, tni_space *s, tni_device *device, tni_params **out)
{
    tni_source source = {.file = file, .left = tni_file_left(file), .whole = true};
    tn_status st = tni_params_read(&source, s, device, out);

    tni_file_close(file);
    return st;
}

tn_status tni_params_load(tni_space *s, tni_device *device, const char *path, tni_params **out)
{
    tni_file *file;
    tn_status st = tni_file_open(path, &file);

    return st ? st : file_load(file, s, device, out);
}

tn_status tni_params_load_held(tni_space *s, tni_device *device, const char *path, tni_params **out)
{
    tni_source source = {.whole = true};
    tn_status st;

    if ((st = tni_file_open(path, &source.file)) || (st = tni_held_create(source.file, &source.held)))
        return st;
    source.left = tni_file_left(source.file);
    st = tni_params_read(&source, s, device, out);
    tni_held_release(source.held);
    return st;
}

tn_status tni_params_load_memory(tni_space *s, tni_device *device, const void *bytes, uint64_t count,
                                 tni_params **out)
{
    tni_file *file;
    tn_status st = tni_file_open_memory(bytes, count, &file);

    return st ? st : file_load(file, s, device, out);
}
