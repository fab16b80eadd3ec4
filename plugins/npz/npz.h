/* What the files of the plugin npz share. */
#ifndef TNNPZ_NPZ_H
#define TNNPZ_NPZ_H

#include <zip.h>

#include "tenon/plugin/archive.h"

typedef struct tnnpz_plugin {
    const tn_host *host;
    int64_t deflate; /* the option */
} tnnpz_plugin;

/* Bytes of the host, as a source of libzip (tnnpz_stream_call): its file, or an entry that is written. */
typedef struct tnnpz_stream {
    const void *of; /* a tn_archive_input, or a tn_archive_output */
    uint32_t index; /* of an entry of that */
    int32_t seeks;  /* 1: any place may be read */
    uint64_t bytes, at;
    tn_status (*read)(struct tnnpz_stream *s, void *out, uint64_t bytes); /* from `at` on, which stays */
    zip_error_t error;
    tn_err host;    /* what the host said, */
    int32_t failed; /* if it failed */
} tnnpz_stream;

zip_int64_t tnnpz_stream_call(void *stream, void *data, zip_uint64_t bytes, zip_source_cmd_t command);
/* tnnpz_fail(), but the host's error where it has failed. */
tn_status tnnpz_stream_fail(const tnnpz_stream *s, tn_err *err, tn_status code, const char *what,
                            zip_error_t *error);
/* "WHAT: libzip's words". `code`, unless libzip's says something else. */
tn_status tnnpz_fail(tn_err *err, tn_status code, const char *what, zip_error_t *error);
/* What is wrong with the name of an entry, of `length` bytes; NULL: nothing. */
const char *tnnpz_name_fault(const char *name, size_t length);
tn_status tnnpz_write(void *plugin, const tn_archive_output *to, tn_err *err);

#endif
