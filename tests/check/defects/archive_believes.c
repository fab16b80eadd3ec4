/* What lies behind the end of the file is taken for zeros. */
#include "healthy_archive.h"

static tn_status beyond(void *self, uint64_t at, void *out, uint64_t bytes, tn_err *err)
{
    const tn_archive_input *from = self;

    if (at <= from->bytes && bytes <= from->bytes - at)
        return from->read(from->self, at, out, bytes, err);
    memset(out, 0, bytes);
    return TN_OK;
}

static tn_status open(void *plugin, const tn_archive_input *from, tn_archive **out, tn_err *err)
{
    static tn_archive_input endless;

    endless = (tn_archive_input){
        .struct_size = from->struct_size, .self = (void *)(uintptr_t)from, .bytes = 1 << 20, .read = beyond};
    return healthy_open(plugin, &endless, out, err);
}

ARCHIVE("defect-archive-believes", .probe = healthy_probe, .open = open, .entry = healthy_entry,
        .begin = healthy_begin, .read = healthy_read, .close = healthy_close, .write = healthy_write);
