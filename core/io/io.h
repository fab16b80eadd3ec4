/*
 * The interface of room io: files of arrays. Every reader checks a size against what is left of its file
 * before it takes memory for it: heap stays below 2 x (bytes of the file) + 64 MiB, whatever the file says.
 */
#ifndef TN_IO_H
#define TN_IO_H

#include "plugin/plugin.h"
#include "tenon/data.h"
#include "tenon/record.h"
#include "tensor/tensor.h"

/* ---- params.c: named lists of arrays ----------------------------------------------------------------- */

/* Entries in file order. An entry may have no value (NULL): MXNet's "none". Names are unique; "" where a list
 * has no names. Names may begin with "arg:" or "aux:". */
typedef struct tn_params { /* the public one is this very struct */
    size_t count;
    char **names;
    tni_array **arrays; /* one reference each */
    bool named;
    size_t capacity;
    tni_map *index; /* name to position + 1 */
} tni_params;

tn_status tni_params_create(tni_params **out);
void tni_params_destroy(tni_params *p);
/* Retains `a` (NULL: an entry without a value). `name` NULL: none. Name taken: TN_E_KEY. */
tn_status tni_params_add(tni_params *p, const char *name, tni_array *a);
/* Borrowed array of `name`, else of "arg:name", else of "aux:name"; TN_E_KEY if there is none or it has no
 * value. */
tn_status tni_params_get(const tni_params *p, const char *name, tni_array **out);
const char *tni_params_plain_name(const char *name); /* without "arg:" or "aux:" */

/* ---- params_read.c: MXNet's .params, versions 0 to 3, dense and sparse ------------------------------- */

/* Arrays are made on `device`. TN_E_FORMAT: damaged, with the entry and the reason, or no model at all (a
 * git-lfs pointer, a web page); TN_E_UNSUPPORTED: another kind of file (base/kind.c has the table), or a
 * sparse entry for a device other than the host. */
tn_status tni_params_load(tni_space *s, tni_device *device, const char *path, tni_params **out);
/* The same for arrays that nobody gets a handle of: the file stays open, and large ones on a host can be read
 * from it again (tni_storage_drop). A file that has changed since is TN_E_IO then. */
tn_status tni_params_load_held(tni_space *s, tni_device *device, const char *path, tni_params **out);
tn_status tni_params_load_memory(tni_space *s, tni_device *device, const void *bytes, uint64_t count,
                                 tni_params **out);

/* ---- params_write.c ---------------------------------------------------------------------------------- */

/* Waits for the values. Version 2; an entry without dimensions or with a dimension of 0 is version 3.
 * Atomic. */
tn_status tni_params_save(const tni_params *p, const char *path);
/* Into a growing file image of the caller (tni_free), for tests and embedding. */
tn_status tni_params_save_memory(const tni_params *p, void **bytes, uint64_t *count);
/* SHA-256 over, in file order: the name's bytes, dtype flag (int32), dimensions (int32), each dimension
 * (int64), the elements, all little-endian; of a sparse entry its values, then its index arrays. Entries
 * without a value: name. */
tn_status tni_params_sha256(const tni_params *p, char out_hex[65]);

/* ---- idx.c: the format of MNIST's files -------------------------------------------------------------- */

#define TNI_IDX_BYTES_MAX ((uint64_t)8 << 30) /* of one file, inflated */
/* A host array of the file's shape and type (u8, i8, i16, i32, f32, f64); plain or gzip. Bytes behind the
 * data are TN_E_FORMAT. */
tn_status tni_idx_load(tni_space *s, const char *path, tni_array **out);
/* Images (first dimension: how many) and labels (one dimension, whole numbers) of equal count. */
tn_status tni_idx_load_pair(tni_space *s, const char *images, const char *labels, tni_array **out_images,
                            tni_array **out_labels);

/* ---- csv.c: rows of numbers -------------------------------------------------------------------------- */

#define TNI_TEXT_BYTES_MAX ((uint64_t)8 << 30) /* of one text file, inflated */
/* A host array (rows, columns) of float32; plain or gzip. */
tn_status tni_csv_load(tni_space *s, const char *path, tni_array **out);
/* `part` of `parts` (0: the whole file): lines that begin in that share of its bytes; `before` (may be NULL):
 * rows in front of them. */
tn_status tni_csv_load_part(tni_space *s, const char *path, uint32_t part, uint32_t parts, uint64_t *before,
                            tni_array **out);
/* The same of bytes in memory; `name` is for messages. */
tn_status tni_csv_load_memory(tni_space *s, const void *bytes, uint64_t count, const char *name,
                              tni_array **out);
/* The same, with a column of texts and a look at the first line; bytes NULL: the file `path`. */
typedef tn_csv_words tni_csv_words;
tn_status tni_csv_load_words(tni_space *s, const char *path, const void *bytes, uint64_t count,
                             tni_csv_words *words, tni_array **out);

/* ---- libsvm.c: sparse rows ------------------------------------------------------------------------ */

typedef struct tni_libsvm_share {
    const char *path;
    int64_t columns;      /* 0: one more than the largest index of the file */
    uint32_t part, parts; /* as of CSV */
} tni_libsvm_share;
/* A csr array (rows, columns) of float32 and its labels (rows); plain or gzip. */
tn_status tni_libsvm_load(tni_space *s, const char *path, int64_t columns, tni_array **data,
                          tni_array **labels);
tn_status tni_libsvm_load_part(tni_space *s, const tni_libsvm_share *share, tni_array **data,
                               tni_array **labels, uint64_t *before);

/* ---- record.c: RecordIO ---------------------------------------------------------------------------- */

typedef struct tn_record_reader tni_record_reader; /* the public ones are these very structs */
typedef struct tn_record_writer tni_record_writer;
/* `part` of `parts`: records that begin in that share of the bytes. */
tn_status tni_record_open(const char *path, uint32_t part, uint32_t parts, tni_record_reader **out);
void tni_record_close(tni_record_reader *r); /* NULL is fine */
/* Borrowed until the next call; NULL at the end. */
tn_status tni_record_next(tni_record_reader *r, const void **data, uint64_t *bytes);
/* The first bytes of the next record, of its first part; the rest is passed over. Offset UINT64_MAX: none. */
tn_status tni_record_peek(tni_record_reader *r, void *out, uint64_t room, uint64_t *bytes, uint64_t *offset);
tn_status tni_record_seek(tni_record_reader *r, uint64_t offset); /* to a record's first byte */
void tni_record_rewind(tni_record_reader *r);
tn_status tni_record_create(const char *path, const char *index,
                            tni_record_writer **out); /* index NULL: none */
tn_status tni_record_append(tni_record_writer *w, uint64_t key, const void *data, uint64_t bytes);
tn_status tni_record_finish(
    tni_record_writer *w);                     /* [takes] w, also on failure; the files are in their places */
void tni_record_abandon(tni_record_writer *w); /* NULL is fine */
tn_status tni_record_index_load(const char *path, size_t *count, tn_record_place **places);

/* ---- find.c ------------------------------------------------------------------------------------------ */

/* Folder of a data set by name, or `name` itself if it has a '/'; `*path` is the caller's (tni_free).
 * TN_E_KEY: all places that were searched. */
tn_status tni_data_find(const tni_options *options, const char *name, char **path);

/* ---- npy.c: one array as NumPy writes it ------------------------------------------------------------- */

/* Versions 1 to 3; C or Fortran order (a strided array then); little-endian or single bytes. */
tn_status tni_npy_load(tni_space *s, const char *path, tni_array **out);
tn_status tni_npy_save(tni_array *a, const char *path); /* bfloat16: TN_E_UNSUPPORTED */

/* ---- archive.c: files of named arrays of any kind ---------------------------------------------------- */

/* .params, .npy (one entry without a name) by what they begin with, archives (.npz) by a plugin that knows
 * them; host arrays. TN_E_UNSUPPORTED with TN-1304: no plugin does. */
tn_status tni_load(tni_space *s, tni_registry *registry, const char *path, tni_params **out);
/* By the extension: .npy (one array), that of an archive; all else is .params. Atomic. */
tn_status tni_save(tni_registry *registry, const tni_params *p, const char *path);

/* ---- image.c: images in files, by plugins that know the format (tenon/image.h) ------------------------ */

struct tn_image_about;
struct tn_image_options;
tn_status tni_image_look(tni_registry *r, const void *data, uint64_t bytes, struct tn_image_about *out);
tn_status tni_image_read(tni_registry *r, const void *data, uint64_t bytes,
                         const struct tn_image_options *options, void *out, uint64_t room, int64_t stride);
tn_status tni_image_decode(tni_space *s, tni_registry *r, const void *data, uint64_t bytes,
                           const struct tn_image_options *options, tni_array **out);
/* The bytes are the caller's (tni_free). */
tn_status tni_image_encode(tni_registry *r, tni_array *pixels, const char *format, int32_t quality,
                           void **data, uint64_t *bytes);

/* ---- checkpoint.c ------------------------------------------------------------------------------------ */

/*
 * A folder of files checkpoint-000001.tnck … A file is whole or absent (written aside, synced, renamed,
 * folder synced), every section has a checksum, and the newest whole file wins.
 */
#define TNI_CHECKPOINT_KEEP_MAX 1000000u
typedef struct tn_checkpoint { /* the public one is this very struct */
    uint32_t number;
    char *path;
    char *json; /* what tni_checkpoint_save was given */
    tni_params *params;
    char *skipped; /* newer files that were damaged, and why: one line each; NULL if none */
} tni_checkpoint;
/* Writes one more checkpoint and removes the oldest until `keep` are left (0: keeps all), as well as what
 * killed processes left half-written. `path` (tni_free) may be NULL. A failure leaves the earlier ones as
 * they were. */
tn_status tni_checkpoint_save(const char *folder, const char *json, const tni_params *p, uint32_t keep,
                              char **path);
/* TN_E_KEY: there is none, or the folder is absent. TN_E_FORMAT: all are damaged. */
tn_status tni_checkpoint_load_latest(tni_space *s, tni_device *device, const char *folder,
                                     tni_checkpoint **out);
tn_status tni_checkpoint_load(tni_space *s, tni_device *device, const char *path, tni_checkpoint **out);
void tni_checkpoint_destroy(tni_checkpoint *c);

#endif
