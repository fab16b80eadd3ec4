/* What the files of the plugin npz share. */
#ifndef TNNPZ_NPZ_H
#define TNNPZ_NPZ_H

#include <zip.h>

#include "tenon/plugin/archive.h"

typedef struct tnnpz_plugin {
    const tn_host *host;
    int64_t deflate; /* the option */
} tnnpz_plugin;

/* "WHAT: libzip's words". `code`, unless libzip's says something else. */
tn_status tnnpz_fail(tn_err *err, tn_status code, const char *what, zip_error_t *error);
/* What is wrong with the name of an entry, of `length` bytes; NULL: nothing. */
const char *tnnpz_name_fault(const char *name, size_t length);
tn_status tnnpz_write(void *plugin, const tn_archive_output *to, tn_err *err);

#endif
