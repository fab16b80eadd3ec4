/* Parts of files with running checksums, and the bytes of arrays. */
#include "io/internal.h"

tn_status tni_source_read(tni_source *s, void *out, uint64_t bytes)
{
    tn_status st;

    if (bytes > s->left)
        return tni_error(TN_E_FORMAT, "%s ends too early: %llu bytes wanted, %llu left",
                         s->file ? tni_file_name(s->file) : s->name, (unsigned long long)bytes,
                         (unsigned long long)s->left);
    if ((st = s->file ? tni_file_read(s->file, out, bytes) : s->pull(s->arg, out, bytes)))
        return st;
    s->left -= bytes;
    s->crc = tni_crc32(s->crc, out, bytes);
    return TN_OK;
}

tn_status tni_source_u32(tni_source *s, uint32_t *out)
{
    return tni_source_read(s, out, sizeof *out);
}

tn_status tni_source_i32(tni_source *s, int32_t *out)
{
    return tni_source_read(s, out, sizeof *out);
}

tn_status tni_source_u64(tni_source *s, uint64_t *out)
{
    return tni_source_read(s, out, sizeof *out);
}

tn_status tni_sink_write(tni_sink *s, const void *bytes, uint64_t count)
{
    tn_status st =
        s->writer ? tni_writer_write(s->writer, bytes, count) : tni_str_add_bytes(s->text, bytes, count);

    if (st)
        return st;
    s->crc = tni_crc32(s->crc, bytes, count);
    s->bytes += count;
    return TN_OK;
}

tn_status tni_sink_u32(tni_sink *s, uint32_t value)
{
    return tni_sink_write(s, &value, sizeof value);
}

tn_status tni_sink_u64(tni_sink *s, uint64_t value)
{
    return tni_sink_write(s, &value, sizeof value);
}

tn_status tni_array_borrow(tni_array *a, const void **data, void **copy)
{
    uint64_t bytes;
    void *own;
    tn_status st;

    *copy = NULL;
    if ((st = tni_array_shape_wait(a)))
        return st;
    bytes = tni_array_bytes(a);
    if (a->storage->device->host && a->flags & TNI_ARRAY_CONTIGUOUS) {
        if ((st = tni_array_wait(a)))
            return st;
        if (bytes == 0 || tni_array_data(a)) {
            *data = tni_array_data(a);
            return TN_OK;
        }
    }
    own = tni_alloc(bytes);
    if (!own)
        return TN_E_NOMEM;
    if ((st = tni_array_read(a, own, bytes))) {
        tni_free(own);
        return st;
    }
    *data = *copy = own;
    return TN_OK;
}

tn_status tni_array_fresh(tni_space *s, tni_device *host, int32_t dtype, int32_t ndim, const int64_t *shape,
                          tni_array **out)
{
    tni_array *a;
    tn_status st = tni_array_create(s, host, dtype, ndim, shape, "file", &a);

    if (st)
        return st;
    st = tni_storage_allocate(a->storage, NULL);
    if (st) {
        tni_array_release(a);
        return st;
    }
    *out = a;
    return TN_OK;
}
