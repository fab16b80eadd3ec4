/**
 * Data of files: CSV, LibSVM, IDX, CIFAR and RecordIO as data sets of nn.
 *
 * Options are designated initialisers, as in nn.h. The first error sticks to the app; calls return NULL then.
 *
 * @threads one thread at a time per app, unless a function says otherwise
 * @since 0.1
 */
#ifndef TENON_NN_DATA_H
#define TENON_NN_DATA_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the options of all data sets; batch, shuffle, seed, last, parts and part are as in tn_data_options. */
#define TN_DATA_HEAD                                                                                         \
    TN_NN_HEAD;                                                                                              \
    int64_t batch;                                                                                           \
    int32_t shuffle;                                                                                         \
    uint64_t seed;                                                                                           \
    const char *last;                                                                                        \
    int64_t parts, part

/** Columns of a CSV file as a field. */
typedef struct tn_columns {
    const char *name;
    const char *path; /* NULL: the file of the call */
    int64_t first;    /* column, from 0 */
    int64_t count;    /* 0: as many as `shape` needs; without a shape all behind `first` */
    int64_t shape[7]; /* of a sample, up to the first 0; none: (count), of a single column () */
} tn_columns;

typedef struct tn_csv_options {
    TN_DATA_HEAD;
    tn_columns fields[8]; /* none: "data", all columns but the last one, and "label", that one */
} tn_csv_options;

/**
 * A CSV file (tn_csv_load()), plain or .gz: tn_data_from_csv(app, "train.csv", .batch = 64, .fields =
 * {{"data", .count = 64, .shape = {1, 8, 8}}, {"label", .first = 64, .count = 1}}). A share has the lines
 * that begin in a share of the bytes of the call's file; files of other fields give the same rows.
 * @since 0.1
 */
TN_API tn_data *tn_data_from_csv_(tn_app *app, const char *path, const tn_csv_options *options);

typedef struct tn_libsvm_options {
    TN_DATA_HEAD;
    int64_t columns; /* 0: one more than the largest index of the file */
    /* A LibSVM file whose pairs are the labels, (n, label_columns); NULL: labels are in the file itself */
    const char *labels;
    int64_t label_columns; /* as `columns` */
    int32_t dense;         /* 1: "data" is dense; 0: csr */
} tn_libsvm_options;

/** A LibSVM file (tn_libsvm_load()): "data", csr (n, columns), and "label", (n). Shares as of CSV.
 * @since 0.1 */
TN_API tn_data *tn_data_from_libsvm_(tn_app *app, const char *path, const tn_libsvm_options *options);

typedef struct tn_idx_options {
    TN_DATA_HEAD;
    const char *labels; /* an IDX file of whole numbers; NULL: there is no "label" */
    double divisor;     /* of bytes; 0: 255. MXNet's MNISTIter has 256 */
    int32_t flat;       /* 1: "data" is (n, C * H * W) */
} tn_idx_options;

/** IDX files by their paths: "data" (n, C, H, W) and "label" (n). Shares by number of samples. @since 0.1 */
TN_API tn_data *tn_data_from_idx_(tn_app *app, const char *images, const tn_idx_options *options);

typedef struct tn_cifar_options {
    TN_DATA_HEAD;
    const char *files[8]; /* further ones, one behind the other */
    int32_t classes;      /* 10, 100, or 20: the coarse labels of CIFAR-100; 0: 10 */
    double divisor;       /* of bytes; 0: 255 */
} tn_cifar_options;

/** The binary files of CIFAR (data_batch_1.bin …, train.bin): "data" (n, 3, 32, 32) and "label" (n). Shares
 * by number of samples. @since 0.1 */
TN_API tn_data *tn_data_from_cifar_(tn_app *app, const char *path, const tn_cifar_options *options);

typedef struct tn_records_options {
    TN_DATA_HEAD;
    int64_t shape[7]; /* of a sample, up to the first 0; a record holds so many elements behind its header */
    int32_t dtype;    /* of these: TN_F32 (0) or TN_U8 */
    int64_t label_width; /* labels of a record; 0: 1 */
    double divisor;      /* of bytes; 0: 255 */
} tn_records_options;

/** A RecordIO file (tenon/record.h) whose records are a header and plain numbers: "data" and "label", (n) or
 * (n, label_width). Shares as tn_record_open() cuts. @since 0.1 */
TN_API tn_data *tn_data_from_records_(tn_app *app, const char *path, const tn_records_options *options);

#ifndef __cplusplus
#define TN_NN_NAMED_(function, type, app, path, ...)                                                         \
    function(app, path, &(const type){TN_NN_HERE_(type), __VA_ARGS__})
#define TN_NN_CSV_(app, path, ...) TN_NN_NAMED_(tn_data_from_csv_, tn_csv_options, app, path, __VA_ARGS__)
#define TN_NN_LIBSVM_(app, path, ...)                                                                        \
    TN_NN_NAMED_(tn_data_from_libsvm_, tn_libsvm_options, app, path, __VA_ARGS__)
#define TN_NN_IDX_(app, path, ...) TN_NN_NAMED_(tn_data_from_idx_, tn_idx_options, app, path, __VA_ARGS__)
#define TN_NN_CIFAR_(app, path, ...)                                                                         \
    TN_NN_NAMED_(tn_data_from_cifar_, tn_cifar_options, app, path, __VA_ARGS__)
#define TN_NN_RECORDS_(app, path, ...)                                                                       \
    TN_NN_NAMED_(tn_data_from_records_, tn_records_options, app, path, __VA_ARGS__)
#define tn_data_from_csv(...) TN_NN_CSV_(__VA_ARGS__, )
#define tn_data_from_libsvm(...) TN_NN_LIBSVM_(__VA_ARGS__, )
#define tn_data_from_idx(...) TN_NN_IDX_(__VA_ARGS__, )
#define tn_data_from_cifar(...) TN_NN_CIFAR_(__VA_ARGS__, )
#define tn_data_from_records(...) TN_NN_RECORDS_(__VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif

#endif
