/*
 * Arrays that can be read from their file again, so that their memory may be given back meanwhile.
 *
 * The file stays open as long as one of them lives: a new file of the same name is another one. A file that
 * is written in place is found out by the checksum of what was read first.
 */
#include "io/internal.h"

struct tni_held {
    tni_refcount refs;
    tni_file *file;
    uint64_t size;
};

typedef struct again {
    tni_refill head; /* first: a tni_refill is one of these */
    tni_held *held;
    uint64_t at;
    uint32_t crc;
    bool known; /* it was read once, before anybody else knew the array */
} again;

tn_status tni_held_create(tni_file *file, tni_held **out)
{
    tni_held *h = tni_zalloc(sizeof *h);

    if (!h) {
        tni_file_close(file);
        return TN_E_NOMEM;
    }
    tni_ref_init(&h->refs);
    h->file = file;
    h->size = tni_file_left(file);
    *out = h;
    return TN_OK;
}

void tni_held_release(tni_held *h)
{
    if (!h || !tni_ref_release(&h->refs))
        return;
    tni_file_close(h->file);
    tni_free(h);
}

/* A file that became shorter, or has other bytes there. */
static tn_status changed(const again *a, uint64_t bytes)
{
    return tni_error(TN_E_IO,
                     "%s was changed after it was loaded: its %llu bytes from byte %llu on, which had left "
                     "memory, cannot be read again; load the program anew",
                     tni_file_name(a->held->file), (unsigned long long)bytes, (unsigned long long)a->at);
}

static tn_status again_read(tni_refill *r, void *data, uint64_t bytes)
{
    again *a = (again *)r;
    const tn_status st = tni_file_read_at(a->held->file, a->at, data, bytes);
    uint32_t crc;

    if (st)
        return st == TN_E_FORMAT && a->known ? changed(a, bytes) : st;
    crc = tni_crc32(0, data, bytes);
    if (a->known && crc != a->crc)
        return changed(a, bytes);
    if (!a->known) {
        a->crc = crc;
        a->known = true;
    }
    return TN_OK;
}

static void again_release(tni_refill *r)
{
    tni_held_release(((again *)r)->held);
    tni_free(r);
}

tn_status tni_again_read(tni_source *s, tni_array *array)
{
    const uint64_t bytes = tni_array_bytes(array);
    again *a = tni_zalloc(sizeof *a);
    tn_status st;

    if (!a)
        return TN_E_NOMEM;
    tni_ref_retain(&s->held->refs);
    a->head = (tni_refill){.read = again_read, .release = again_release};
    a->held = s->held;
    a->at = s->held->size - s->left;
    tni_storage_refillable(array->storage, &a->head);
    if ((st = tni_storage_touch(array->storage, NULL)) || (st = tni_file_skip(s->file, bytes)))
        return st;
    s->left -= bytes;
    return TN_OK;
}
