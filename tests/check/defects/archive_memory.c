/* Out of memory is called a damaged file. */
#include "healthy_archive.h"

static tn_status open(void *plugin, const tn_archive_input *from, tn_archive **out, tn_err *err)
{
    const tn_status st = healthy_open(plugin, from, out, err);

    return st == TN_E_NOMEM ? tn_fail(err, TN_E_FORMAT, "damaged") : st;
}

ARCHIVE("defect-archive-memory", .probe = healthy_probe, .open = open, .entry = healthy_entry,
        .begin = healthy_begin, .read = healthy_read, .close = healthy_close, .write = healthy_write);
