/* What the files of room io share and nobody else may use. */
#ifndef TN_IO_INTERNAL_H
#define TN_IO_INTERNAL_H

#include <string.h>

#include "io/io.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian and read as they lie");

#define TNI_PARAMS_MAGIC 0x112u
#define TNI_PARAMS_V1 0xF993FAC8u
#define TNI_PARAMS_V2 0xF993FAC9u
#define TNI_PARAMS_V3 0xF993FACAu

/* ---- stream.c: a part of a file being read, and a file being written, with running checksums --------- */

typedef struct tni_source {
    tni_file *file;
    uint64_t left; /* bytes of this part */
    uint32_t crc;
    bool whole;            /* the part is the file */
    struct tni_held *held; /* NULL; else large arrays can be read again. The part is the file then, and `crc`
                              does not count these arrays */
} tni_source;
tn_status tni_source_read(tni_source *s, void *out, uint64_t bytes); /* TN_E_FORMAT beyond the part */
tn_status tni_source_u32(tni_source *s, uint32_t *out);
tn_status tni_source_i32(tni_source *s, int32_t *out);
tn_status tni_source_u64(tni_source *s, uint64_t *out);

/* ---- again.c: arrays that can be read from their file again -------------------------------------------- */

typedef struct tni_held tni_held;                          /* an open file, and who needs it */
tn_status tni_held_create(tni_file *file, tni_held **out); /* [takes] file, also on failure */
void tni_held_release(tni_held *h);                        /* NULL is fine */
#define TNI_AGAIN_BYTES_MIN ((uint64_t)64 << 10)           /* smaller arrays share pages with others */
/* Reads the bytes of `a`, which has no memory yet, from here on. */
tn_status tni_again_read(tni_source *s, tni_array *a);

typedef struct tni_sink {
    tni_writer *writer; /* one of the two */
    tni_str *text;
    uint32_t crc;
    uint64_t bytes;
} tni_sink;
tn_status tni_sink_write(tni_sink *s, const void *bytes, uint64_t count);
tn_status tni_sink_u32(tni_sink *s, uint32_t value);
tn_status tni_sink_u64(tni_sink *s, uint64_t value);

/* ---- lines.c: text files, line by line ------------------------------------------------------------ */

/* Where the bytes come from: a path, or memory with a name. */
typedef struct tni_origin {
    const char *name;
    const void *bytes; /* NULL: a path */
    uint64_t count;
    uint32_t part, parts; /* a share of its lines; parts 0: all of them */
} tni_origin;

typedef struct tni_lines {
    tni_file *file;
    const char *name;
    char *chunk;
    uint64_t first, last; /* unread part of chunk */
    tni_str line;         /* without what ends it; NUL-ended */
    uint64_t number;      /* of the line, from 1 */
    uint64_t at, next;    /* bytes in front of the line, inflated; of the next one */
    uint64_t above, upto; /* lines that begin there are of the share */
    bool end;             /* there is none */
} tni_lines;
tn_status tni_lines_open(tni_lines *r, const tni_origin *from); /* to be closed also on failure */
tn_status tni_lines_next(tni_lines *r);                         /* TN_E_FORMAT: a NUL, or above 4 MiB */
void tni_lines_close(tni_lines *r);
bool tni_lines_blank(const tni_lines *r); /* nothing but blanks and tabs */
/* The line begins in the share: behind byte part * step, up to byte (part + 1) * step (dmlc's InputSplit). */
bool tni_lines_mine(const tni_lines *r);

/* The bytes of a dense array, row-major, in host memory: where they lie or (`*copy`, tni_free) copied.
 * Waits. */
tn_status tni_array_borrow(tni_array *a, const void **data, void **copy);

tn_status tni_params_read(tni_source *from, tni_space *s, tni_device *device, tni_params **out);
tn_status tni_params_write(const tni_params *p, tni_sink *to);

/* A fresh host array whose memory is there and that nobody else knows: may be written as it lies. */
tn_status tni_array_fresh(tni_space *s, tni_device *host, int32_t dtype, int32_t ndim, const int64_t *shape,
                          tni_array **out);

#endif
