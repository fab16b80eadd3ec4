/*
 * IDX: two zero bytes, a type code, the number of dimensions, each dimension as a big-endian u32, the
 * elements, also big-endian. Plain or gzip.
 *
 * The size of a plain file is known, so its promise is checked first. What a .gz inflates to is known at its
 * end only: its memory grows with what really came, and becomes the array's without a copy.
 */
#include "io/internal.h"

#define FIRST_BYTES ((uint64_t)1 << 20)

static tn_status dtype_of(const tni_file *f, unsigned char code, int32_t *out)
{
    static const struct {
        unsigned char code;
        int32_t dtype;
    } codes[] = {{0x08, TN_U8},  {0x09, TN_I8},  {0x0b, TN_I16},
                 {0x0c, TN_I32}, {0x0d, TN_F32}, {0x0e, TN_F64}};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code) {
            *out = codes[i].dtype;
            return TN_OK;
        }
    return tni_error(TN_E_FORMAT, "%s: type code 0x%02x is none of IDX", tni_file_name(f), code);
}

static tn_status head_read(tni_file *f, int32_t *dtype, int32_t *ndim, int64_t shape[TN_NDIM_MAX],
                           uint64_t *bytes)
{
    unsigned char head[4], dim[4];
    uint64_t count;
    tn_status st = tni_file_read(f, head, sizeof head), other;

    if (st && st != TN_E_FORMAT)
        return st;
    if ((st || head[0] || head[1]) && (other = tni_file_kind_check(f, TNI_KIND_IDX)))
        return other;
    if (st)
        return tni_error(TN_E_FORMAT, "%s is no IDX file: it has fewer than the 4 bytes that begin one",
                         tni_file_name(f));
    if (head[0] || head[1])
        return tni_error(TN_E_FORMAT, "%s is no IDX file: it begins with %02x%02x%02x%02x", tni_file_name(f),
                         head[0], head[1], head[2], head[3]);
    if ((st = dtype_of(f, head[2], dtype)))
        return st;
    if (head[3] == 0 || head[3] > TN_NDIM_MAX)
        return tni_error(TN_E_FORMAT, "%s: %u dimensions, but 1 to %d are allowed", tni_file_name(f), head[3],
                         TN_NDIM_MAX);
    *ndim = head[3];
    for (int32_t i = 0; i < *ndim; i++) {
        if ((st = tni_file_read(f, dim, sizeof dim)))
            return st;
        shape[i] =
            (int64_t)((uint32_t)dim[0] << 24 | (uint32_t)dim[1] << 16 | (uint32_t)dim[2] << 8 | dim[3]);
    }
    if (tni_shape_check(*dtype, *ndim, shape, &count))
        return tni_error(TN_E_FORMAT, "%s: its %d dimensions have too many elements", tni_file_name(f),
                         *ndim);
    *bytes = count * tn_dtype_bytes(*dtype);
    if (*bytes > TNI_IDX_BYTES_MAX || *bytes > tni_file_left(f))
        return tni_error(TN_E_FORMAT, "%s: its head promises %llu bytes, at most %llu follow",
                         tni_file_name(f), (unsigned long long)*bytes, (unsigned long long)tni_file_left(f));
    return TN_OK;
}

static tn_status data_read(tni_file *f, uint64_t bytes, void **out)
{
    uint64_t have = 0, room = bytes < FIRST_BYTES ? bytes : FIRST_BYTES, got, behind;
    unsigned char extra;
    char *data = tni_alloc(room), *larger;
    tn_status st = data ? TN_OK : TN_E_NOMEM;

    while (!st && have < bytes) {
        if (have == room) {
            room = bytes - room < room ? bytes : room * 2;
            larger = tni_realloc(data, room);
            if (!larger) {
                st = TN_E_NOMEM;
                break;
            }
            data = larger;
        }
        st = tni_file_read_some(f, data + have, room - have, &got);
        if (!st && got == 0)
            st = tni_error(TN_E_FORMAT, "%s ends %llu bytes too early", tni_file_name(f),
                           (unsigned long long)(bytes - have));
        have += st ? 0 : got;
    }
    if (!st && !(st = tni_file_read_some(f, &extra, 1, &behind)) && behind)
        st = tni_error(TN_E_FORMAT, "%s goes on behind its %llu bytes of data", tni_file_name(f),
                       (unsigned long long)bytes);
    if (st) {
        tni_free(data);
        return st;
    }
    *out = data;
    return TN_OK;
}

static void swap(char *data, uint64_t bytes, uint64_t item)
{
    if (item == 1)
        return;
    for (uint64_t i = 0; i < bytes; i += item)
        for (uint64_t low = 0, high = item - 1; low < high; low++, high--) {
            char kept = data[i + low];

            data[i + low] = data[i + high];
            data[i + high] = kept;
        }
}

tn_status tni_idx_load(tni_space *s, const char *path, tni_array **out)
{
    tni_file *f = NULL;
    tni_device *host;
    void *data = NULL;
    int64_t shape[TN_NDIM_MAX];
    int32_t dtype = TN_U8, ndim = 0;
    uint64_t bytes = 0;
    tn_status st;

    if ((st = tni_device_get(s->devices, "cpu", 0, &host)) ||
        (st = tni_file_open_gz(path, TNI_IDX_BYTES_MAX + 4 + 4 * TN_NDIM_MAX, &f)) ||
        (st = head_read(f, &dtype, &ndim, shape, &bytes)) || (st = data_read(f, bytes, &data)))
        goto cleanup;
    swap(data, bytes, tn_dtype_bytes(dtype));
    if ((st = tni_array_wrap(s, host, data, bytes, dtype, ndim, shape, NULL, tni_free, data, out)))
        tni_free(data);

cleanup:
    tni_file_close(f);
    return st;
}

tn_status tni_idx_load_pair(tni_space *s, const char *images, const char *labels, tni_array **out_images,
                            tni_array **out_labels)
{
    tni_array *x = NULL, *y = NULL;
    tn_status st;

    if ((st = tni_idx_load(s, images, &x)) || (st = tni_idx_load(s, labels, &y)))
        goto cleanup;
    if (y->ndim != 1 || y->dtype == TN_F32 || y->dtype == TN_F64)
        st = tni_error(TN_E_FORMAT, "%s: labels must be whole numbers in one dimension, these are %s in %d",
                       labels, tni_dtype_name(y->dtype), y->ndim);
    else if (x->shape[0] != y->shape[0])
        st = tni_error(TN_E_FORMAT, "%s has %lld items, but %s has %lld labels", images,
                       (long long)x->shape[0], labels, (long long)y->shape[0]);
    if (st)
        goto cleanup;
    *out_images = x;
    *out_labels = y;
    return TN_OK;

cleanup:
    tni_array_release(x);
    tni_array_release(y);
    return st;
}
