/* The last byte of a large entry is another one when it is read. */
#include "healthy_archive.h"

static tn_status read(tn_archive *a, void *out, uint64_t bytes, tn_err *err)
{
    const uint64_t left = a->left;
    const tn_status st = healthy_read(a, out, bytes, err);

    if (!st && left == bytes && bytes)
        ((uint8_t *)out)[bytes - 1] ^= 1;
    return st;
}

ARCHIVE("defect-archive-short", .probe = healthy_probe, .open = healthy_open, .entry = healthy_entry,
        .begin = healthy_begin, .read = read, .close = healthy_close, .write = healthy_write);
