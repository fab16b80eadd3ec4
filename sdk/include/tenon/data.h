/** Data files: IDX (MNIST), NumPy arrays, and where data sets lie. */
#ifndef TENON_DATA_H
#define TENON_DATA_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An IDX file, plain or .gz, as a host array of the file's shape and type. TN_E_IO · TN_E_FORMAT: damaged.
 * @threads any @since 0.1 */
TN_API tn_status tn_idx_load(tn_ctx *ctx, const char *path, tn_array **out);

/** Images (N, …) and labels (N) from two IDX files. TN_E_SHAPE, TN_E_FORMAT: their numbers differ, or labels
 * are not whole numbers. @threads any @since 0.1 */
TN_API tn_status tn_idx_load_pair(tn_ctx *ctx, const char *images, const char *labels, tn_array **out_images,
                                  tn_array **out_labels);

/** One .npy file as a host array. @threads any @since 0.1 */
TN_API tn_status tn_npy_load(tn_ctx *ctx, const char *path, tn_array **out);

/** Writes one .npy file; it is whole or absent. TN_E_UNSUPPORTED: bfloat16, sparse.
 * @threads any @since 0.1 */
TN_API tn_status tn_npy_save(tn_array *a, const char *path);

/**
 * A CSV file, plain or .gz, as a float32 host array (rows, columns). A line is a row, all rows are of equal
 * length; fields are divided by tab, semicolon or comma and may be quoted; a first line without any number is
 * a header and passed over, as empty lines are. Numbers are as in C in every locale, and finite.
 *
 * @return TN_E_IO · TN_E_FORMAT: rows of unequal length, what is no finite number, more than 131072 fields or
 * 4 MiB in a line, nothing to read; with file and line · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_csv_load(tn_ctx *ctx, const char *path, tn_array **out);

/**
 * Share `part` of `parts` of such a file, as MXNet cuts text files: the lines that begin in that share of its
 * bytes (of a .gz: of what it inflates to). Every row is in one share; a header is the first one's.
 *
 * @param before how many rows stand in front of the share; may be NULL
 * @return as tn_csv_load(); TN_E_ARG: `part` is not below `parts` · TN_E_FORMAT also: no row is in the share
 * @threads any @since 0.1
 */
TN_API tn_status tn_csv_load_part(tn_ctx *ctx, const char *path, uint32_t part, uint32_t parts,
                                  uint64_t *before, tn_array **out);

/** The same of `bytes` bytes in memory (never gzip), which are not kept; `name` stands in messages for the
 * file.
 * @return as tn_csv_load() but for TN_E_IO
 * @threads any @since 0.1 */
TN_API tn_status tn_csv_from_memory(tn_ctx *ctx, const void *text, uint64_t bytes, const char *name,
                                    tn_array **out);

/** Texts in a CSV file, for tn_csv_load_words(). Functions that are NULL are not called. */
typedef struct tn_csv_words {
    uint32_t struct_size;
    int32_t header; /* 1: the first line is one; -1: it is not; 0: as of tn_csv_load() */
    int64_t column; /* whose fields go to word(), from 0; -1: none. head() may still set it */
    void *arg;
    /* Field `column` of the first line, header or not; at most 255 bytes: a longer field is TN_E_FORMAT. */
    tn_status (*first)(void *arg, uint64_t column, const char *text);
    /* Behind that line. */
    tn_status (*head)(void *arg, uint64_t columns, int32_t header);
    /* A field of `column`, which is not empty: `*out` is its number if it is one (`number`), else the
     * function sets it. Only for a `column` of -1 may it be NULL. */
    tn_status (*word)(void *arg, const char *text, int32_t number, uint64_t line, float *out);
    void *reserved;
} tn_csv_words;

/**
 * A CSV file of which one column may hold texts. What a function returns but TN_OK ends the reading and is
 * returned.
 * @param path   the file; for messages alone where `text` is given
 * @param text   NULL: the file is read; else `bytes` bytes of text, which are not kept
 * @return as tn_csv_load(); TN_E_ARG: something is NULL
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_csv_load_words(tn_ctx *ctx, const char *path, const void *text, uint64_t bytes,
                                   tn_csv_words *words, tn_array **out);

/**
 * A LibSVM file, plain or .gz: lines of a label and pairs "index:value", whose indices rise and begin at 0;
 * what stands behind a '#' is passed over.
 *
 * @param columns 0: one more than the largest index
 * @param data    csr, (rows, columns), float32, on the host
 * @param labels  (rows) float32
 * @return TN_E_IO · TN_E_FORMAT: no rows, an index that does not rise or is not below `columns`, what is no
 * finite number; with file and line · TN_E_ARG: columns below 0 · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_libsvm_load(tn_ctx *ctx, const char *path, int64_t columns, tn_array **data,
                                tn_array **labels);

typedef struct tn_libsvm_share {
    uint32_t struct_size; /* TN_SIZE(tn_libsvm_share) */
    uint32_t part, parts; /* 0, 0: the whole file */
    uint32_t reserved;    /* 0 */
    const char *path;
    int64_t columns; /* 0: one more than the largest index of the whole file */
} tn_libsvm_share;

/** A share of such a file, cut as tn_csv_load_part() cuts. TN_E_ARG: no path, `part` is not below `parts`.
 * @threads any @since 0.1 */
TN_API tn_status tn_libsvm_load_part(tn_ctx *ctx, const tn_libsvm_share *share, tn_array **data,
                                     tn_array **labels, uint64_t *before);

/**
 * Folder of a data set: `name` with a '/' is the folder itself; else it is looked up in data.path, then among
 * the installed ones, then in examples/data.
 *
 * @param path yours (tn_free)
 * @return TN_E_KEY: not found, with all places that were searched
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_data_find(tn_ctx *ctx, const char *name, char **path);

#ifdef __cplusplus
}
#endif

#endif
