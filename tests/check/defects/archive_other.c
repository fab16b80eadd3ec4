/* A host's file that fails is called a damaged one. */
#include "healthy_archive.h"

static tn_status open(void *plugin, const tn_archive_input *from, tn_archive **out, tn_err *err)
{
    return healthy_open(plugin, from, out, err) ? tn_fail(err, TN_E_FORMAT, "damaged") : TN_OK;
}

ARCHIVE("defect-archive-other", .probe = healthy_probe, .open = open, .entry = healthy_entry,
        .begin = healthy_begin, .read = healthy_read, .close = healthy_close, .write = healthy_write);
