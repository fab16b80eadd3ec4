/* What the defects of archives are planted in. */
#include "healthy_archive.h"

ARCHIVE("defect-archive-healthy", .probe = healthy_probe, .open = healthy_open, .entry = healthy_entry,
        .begin = healthy_begin, .read = healthy_read, .close = healthy_close, .write = healthy_write);
