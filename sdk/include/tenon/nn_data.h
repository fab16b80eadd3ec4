/**
 * Data of files: CSV, LibSVM, IDX, CIFAR, RecordIO and images as data sets of nn; samplers, loaders with
 * threads, slices for several devices.
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
    int32_t threads;      /* that make batches ahead; 0: none */
    int32_t prefetch;     /* batches that these make ahead; 0: 1 */
} tn_csv_options;

/**
 * Numbers of a CSV file (tn_csv_load()), plain or .gz; tn_data_open() reads headers and texts of labels, too:
 * tn_data_from_csv(app, "train.csv", .batch = 64, .fields =
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
    int32_t threads;       /* of dense data: they make batches ahead; 0: none */
    int32_t prefetch;      /* batches that these make ahead; 0: 1 */
    int32_t reserved;
} tn_libsvm_options;

/** A LibSVM file (tn_libsvm_load()): "data", csr (n, columns), and "label", (n). Shares as of CSV.
 * @since 0.1 */
TN_API tn_data *tn_data_from_libsvm_(tn_app *app, const char *path, const tn_libsvm_options *options);

typedef struct tn_npz_field {
    const char *name; /* of the field: letters, digits, _ and - */
    const char *key;  /* of the array in the file; NULL: the same */
} tn_npz_field;

typedef struct tn_npz_options {
    TN_DATA_HEAD;
    tn_npz_field fields[8]; /* none: "data" and "label"; the second one is `y` of a batch */
    int32_t threads;        /* that make batches ahead; 0: none */
    int32_t prefetch;       /* batches that these make ahead; 0: 1 */
} tn_npz_options;

/** Arrays (N, …) of a file that tn_load() reads (.npz, .npy, .params) as fields, as many as the net takes:
 * tn_data_from_npz(app, "pairs.npz", .fields = {{.name = "left"}, {"label", "same"}, {.name = "right"}}).
 * Numbers stay as they are, but uint8 is byte / 255 (of the second field not). Shares by number of samples.
 * @since 0.1 */
TN_API tn_data *tn_data_from_npz_(tn_app *app, const char *path, const tn_npz_options *options);

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

/* ---- words as numbers ---- */

typedef struct tn_vocab tn_vocab; /* words in the order in which they came, each with its number */

typedef struct tn_vocab_options {
    TN_NN_HEAD;
    const char *const *words; /* different ones; copied */
    const int32_t *labels;    /* their numbers, within 2^24; several may have one. NULL: 0, 1, 2 … */
    int64_t count;            /* of words, up to 2^24 */
} tn_vocab_options;

/** A vocabulary of these words, of a file of the program say. Owned by the app. @since 0.1 */
TN_API tn_vocab *tn_vocab_new_(tn_app *app, const tn_vocab_options *options);
/** Words of it. @since 0.1 */
TN_API int64_t tn_vocab_count(const tn_vocab *vocab);
/** Word `index`, from 0, and its number (NULL is fine); borrowed. NULL: no such. @since 0.1 */
TN_API const char *tn_vocab_at(const tn_vocab *vocab, int64_t index, int32_t *label);
/** @param label the number of `word`; NULL is fine. @return 1; 0: it is not there, and *label as before
 * @since 0.1 */
TN_API int tn_vocab_find(const tn_vocab *vocab, const char *word, int32_t *label);

typedef struct tn_encode_options {
    TN_NN_HEAD;
    const char *const *words;  /* of all sentences, one behind the other */
    const int64_t *lengths;    /* words of each sentence */
    int64_t count;             /* of sentences; 0: none */
    tn_vocab *vocab;           /* NULL: a new one, of `invalid_key` and the words */
    int32_t invalid_label;     /* number of `invalid_key`; no other word gets it. MXNet's default is -1 */
    int32_t start_label;       /* the first number of a new word, the others follow */
    const char *invalid_key;   /* first word of a new vocabulary: the end of a sentence; NULL: "\n" */
    const char *unknown_token; /* stands for words that `vocab` lacks; NULL: such a word is TN_E_KEY */
} tn_encode_options;

/**
 * The words of sentences as numbers, for tn_data_from_sentences(), as MXNet's rnn.encode_sentences:
 * tn_encode_sentences(app, tokens, .words = words, .lengths = lengths, .count = 2, .invalid_label = -1).
 * Numbers are within 2^24, else TN_E_ARG. Where `unknown_token` is given, the vocabulary has it afterwards: a
 * new one behind the words, with the next number; a given one that lacks it with the smallest number from
 * `start_label` on that no word has. (MXNet numbers it again at each unknown word, whoever has the number.)
 * Nothing else is added to a given vocabulary.
 *
 * @param tokens one for each word, the caller's; after a failure they are not to be used
 * @return `vocab`, or the new one, owned by the app; NULL: failed
 * @since 0.1
 */
TN_API tn_vocab *tn_encode_sentences_(tn_app *app, int32_t *tokens, const tn_encode_options *options);

typedef struct tn_sentences_options {
    TN_DATA_HEAD;          /* .last is "discard": sentences that fill no batch of their bucket are left out */
    const char *name;      /* of the data; NULL: "sentences" */
    const int32_t *tokens; /* of all sentences, one behind the other, within 2^24 */
    const int64_t *lengths; /* of each, up to 2^20 */
    int64_t count;          /* of sentences */
    /* Lengths, 0-ended, in any order, up to 256. NULL: each that .batch sentences or more have */
    const int64_t *buckets;
    int32_t invalid_label; /* behind a sentence, and the label of its last token; MXNet's default is -1 */
    int32_t reserved;
    const char *data_name, *label_name; /* of the fields; NULL: "data", "softmax_label" */
    const char *layout;                 /* of a batch: "NT" (NULL), or "TN": (length, n) */
} tn_sentences_options;

/**
 * Sentences for language models, as MXNet's BucketSentenceIter: each is filled up to the shortest bucket that
 * holds it; longer ones are left out, with a warning. Batches are of one bucket each: "data" (n, length), and
 * "softmax_label" (n, length), the tokens that follow. tn_data_shape() is (1, the largest bucket). A module
 * with buckets (tn_module_new) takes for each batch the symbol of tn_data_bucket() in tn_module_fit(), score
 * and predict. Shares by number of sentences. In layout "TN" batches are (length, n), and tn_data_shape() is
 * as before: modules cut them along axis 1; a training (tn_train_open()) fails with TN_E_UNSUPPORTED.
 * @since 0.1
 */
TN_API tn_data *tn_data_from_sentences_(tn_app *app, const tn_sentences_options *options);
/** The length of the running batch's bucket; 0: there is no batch, or the data has no buckets. @since 0.1 */
TN_API int64_t tn_data_bucket(const tn_data *data);

/** Windows that are tried for a crop with boxes; a bound of 0 is none. Each bound that is given holds for one
 * object at least. */
typedef struct tn_crop_sampler {
    double min_scale, max_scale;               /* the root of the window's area, of the image's; max 0: 1 */
    double min_aspect_ratio, max_aspect_ratio; /* width to height; 0: 1 */
    double min_overlap, max_overlap;           /* intersection over union of window and object */
    double min_sample_coverage, max_sample_coverage; /* intersection, as a part of the window */
    double min_object_coverage, max_object_coverage; /* and of the object */
    int32_t trials;                                  /* 0: 25; -1: none */
} tn_crop_sampler;

/** Labels that are boxes, by MXNet's names of ImageDetRecordIter; 0 is MXNet's default. */
typedef struct tn_boxes_options {
    int64_t label_pad_width; /* numbers of an image's labels; 0: the most that an image of the share has */
    double label_pad_value;  /* behind them; 0: -1 */
    double rand_crop_prob;
    const tn_crop_sampler *samplers; /* tried in drawn order; NULL: one of zeros */
    int32_t num_crop_sampler;        /* of `samplers`; 0: 1; -1: none, and no crops */
    const char *crop_emit_mode;      /* objects that a crop drops: "center" (NULL): whose middle lies outside;
                                   "overlap": of which no more than the next one lies inside */
    double emit_overlap_thresh;      /* 0: 0.3 */
    double rand_pad_prob, max_pad_scale; /* the image on a larger one; 0: 1 */
    int32_t max_random_hue, max_random_saturation, max_random_illumination; /* added, of 180, 255, 255 */
    double max_random_contrast;                                             /* added to the factor 1 */
    double random_hue_prob, random_saturation_prob, random_illumination_prob, random_contrast_prob;
    double rand_mirror_prob;
    const char *resize_mode; /* to `shape`: "force" (NULL), or with the ratio kept "shrink" where the image is
                                larger, "fit"; what is left of the sample is 0 */
} tn_boxes_options;

/** What is done with each image, by MXNet's names of ImageRecordIter; 0 is MXNet's default. */
typedef struct tn_images_options {
    TN_DATA_HEAD;
    int64_t shape[3]; /* channels (1, 3, 4), height, width; all 0: of the first image */
    /* Where labels and images come from */
    const char *index;   /* of a .rec: NULL: the .idx beside it, if there is one; "": none */
    const char *list;    /* a .lst file: labels by number, instead of those in the .rec */
    const char *part_of; /* of a folder: "train" or "test"; NULL: all of it */
    int64_t label_width; /* labels of an image; 0: 1 */
    int64_t classes;     /* 0: one more than the largest label; -1: labels are no classes */
    /* Sizes */
    int32_t resize;                   /* the shorter edge becomes so long */
    int32_t force_resize;             /* 1: then to `shape`, whatever the ratio; no crop */
    const char *inter;                /* nearest, linear, cubic, area, lanczos, auto, random; NULL: linear */
    int32_t max_rotate_angle, rotate; /* degrees, drawn between -max and max; above 0: this one */
    double max_shear_ratio;
    double min_random_scale, max_random_scale; /* 0: 1 */
    double min_aspect_ratio, max_aspect_ratio; /* min 0: 1 - max and 1 + max */
    double min_img_size, max_img_size;         /* 0: none, of both */
    int32_t pad;                               /* pixels around the image */
    int32_t fill_value;                        /* of these and behind turns; 0: 255, of boxes 127; -1: 0 */
    /* The crop to `shape` */
    int32_t rand_crop; /* 1: anywhere; 0: in the middle */
    int32_t random_resized_crop;
    double min_random_area, max_random_area; /* of that one: parts of the image; 0: 1 */
    int32_t min_crop_size, max_crop_size;    /* a square that is resized; 0: none */
    /* Colours: how far a factor may be from 1 */
    double brightness, contrast, saturation;
    int32_t random_h, random_s, random_l; /* added, up to so many steps of 180, 255, 255 */
    double pca_noise;
    int32_t mirror, rand_mirror; /* 1: left and right are changed over, always or with chance 1/2 */
    /* Numbers: ((pixel - mean) * contrast + illumination) * scale / std, of red, green, blue, alpha */
    double mean[4], std[4]; /* std 0: 1 */
    double scale;           /* 0: 1 */
    double max_random_contrast, max_random_illumination;
    const char *mean_img; /* a file of one array (C, H, W), instead of `mean` */
    double divisor;       /* not 0: numbers are pixel / divisor, as IDX files have them with 255 */
    /* Threads */
    int32_t threads;  /* that make samples; 0: 4; -1: none */
    int32_t prefetch; /* batches that are made ahead; 0: 4 */
    int32_t strict;   /* 1: an image that cannot be read ends the data; 0: the next one stands in its place */
    uint64_t seed_aug; /* of what is drawn for images; 0: `seed` */
    /* The same by MXNet's names: pairs of texts, NULL-ended; they are stronger. No index but path_imgidx then
     */
    const char *const *args;
    /* Not NULL: labels are boxes, and `args` those of ImageDetRecordIter. Of the steps above there are resize
     * and the numbers by mean, std and scale then; others are refused. label_width 0 is any. Copied */
    const tn_boxes_options *boxes;
} tn_images_options;

/**
 * Images: a folder with one folder per class, whose names are in order, or a .rec of MXNet's
 * (ImageRecordIter). Fields "data" (n, C, H, W) and "label", (n) or (n, label_width). Any number of threads
 * makes the same batches: what is drawn is a function of seed, epoch and the image's number.
 *
 * Shares of a folder are cut by number; those of a .rec as MXNet cuts them: by bytes, or with an index by
 * number. An image that cannot be read is counted and named (tn_data_broken()).
 *
 * With `boxes` a label is (header width, object width, more of the header, then for each object its class,
 * left, top, right, bottom as parts of the image, and more of it), as MXNet's im2rec packs it. "label" is
 * (n, 4 + label_pad_width): channels, height and width of the image in the sample, the count of the numbers
 * that follow, and these, with the boxes where they lie in the sample.
 * @since 0.1
 */
TN_API tn_data *tn_data_from_images_(tn_app *app, const char *path, const tn_images_options *options);

/** Reads of images that failed so far, by any reader of this data. @since 0.1 */
TN_API int64_t tn_data_broken(const tn_data *data);

/** Different images among those reads; an image is read again in each epoch. @threads owner @since 0.1 */
TN_API int64_t tn_data_broken_images(const tn_data *data);

/** "FILE: what is wrong with it", of the failed read `index`, from 0; the first 100 are kept. NULL: no such.
 * Borrowed. @since 0.1 */
TN_API const char *tn_data_broken_text(const tn_data *data, int64_t index);
/**
 * An image file as one sample of shape (C, H, W), as tn_data_open() makes those of a folder: resized, byte
 * / 255.
 * @return 1; 0: failed
 * @since 0.1
 */
TN_API int tn_image_sample(tn_app *app, const char *path, const int64_t shape[3], float *out);

typedef struct tn_pack_options {
    TN_NN_HEAD;
    const char *list;    /* a .lst file: number, labels and path, with tabs; NULL: folders of classes */
    const char *part_of; /* as of tn_images_options */
    int32_t shuffle;     /* 1: in another order, by `seed` */
    uint64_t seed;       /* 0: option run.seed */
    int32_t resize;      /* the shorter edge becomes so long; 0: images stay as they are */
    int32_t center_crop; /* 1: to a square, before */
    const char
        *encoding;    /* "jpg", "png": encoded again; NULL: the bytes of the file, if nothing is changed */
    int32_t quality;  /* of that: 0: 95 of JPEG, 3 of PNG */
    int32_t channels; /* of what is encoded again: 1, 3 or 4; 0: 3 */
    int32_t threads;  /* 0: 1 */
    int32_t strict;   /* 1: an image that cannot be read is an error; 0: it is left out */
} tn_pack_options;

typedef struct tn_packed {
    int64_t images, broken;
    char text[512]; /* the first one that could not be read, and why */
} tn_packed;

/**
 * Packs images of a folder into `path`, a .rec as MXNet's im2rec makes it, with the .idx and .lst beside it.
 * Each is whole or absent. The names of a folder's classes go into a .classes, which tn_data_open() reads.
 * @param packed NULL is fine
 * @return 1; 0: failed
 * @since 0.1
 */
TN_API int tn_pack_images_(tn_app *app, const char *folder, const char *path, tn_packed *packed,
                           const tn_pack_options *options);

typedef struct tn_records tn_records; /* records of a RecordIO file by their number */

/**
 * A RecordIO file and its index, as gluon.data's RecordFileDataset: for a loader's samples.
 * @param index NULL: `path` with .idx in the place of its extension
 * @since 0.1
 */
TN_API tn_records *tn_records_open(tn_app *app, const char *path, const char *index);
/** Records of the index. @since 0.1 */
TN_API int64_t tn_records_count(const tn_records *records);
/**
 * Record `number`, from 0, in the order of the index, as a uint8 array (bytes), yours; tn_record_unpack()
 * takes it apart. @return TN_E_ARG: something is NULL, or there is no such record · TN_E_IO · TN_E_FORMAT:
 * no record begins there
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_records_read(tn_records *records, int64_t number, tn_array **out);

/* ---- orders of samples, and threads that make batches of them ---- */

typedef struct tn_sampler tn_sampler; /* numbers of samples, in batches */
typedef struct tn_loader tn_loader;   /* batches of what a function makes for each number */

typedef struct tn_sampler_options {
    TN_DATA_HEAD;
    int64_t count;    /* samples there are; at least 1 */
    int64_t start;    /* the first one's number */
    int64_t interval; /* 0, i, 2 i … first, then 1, 1 + i, …; 0: 1 */
    int32_t once;     /* 1: of these rounds the first alone */
    int (*keep)(void *arg,
                int64_t number); /* 0: the sample is left out; asked once for each; NULL: none is */
    void *arg;
} tn_sampler_options;

/**
 * A sampler, of any kind that gluon.data has: sequential, random (.shuffle), filtered, at intervals, a share
 * (.parts, .part: by number, of what is left), in batches (.batch, 0: 1; .last: keep, discard, roll_over …).
 * @since 0.1
 */
TN_API tn_sampler *tn_sampler_new_(tn_app *app, const tn_sampler_options *options);
/** Samples of an epoch, and batches of the running one. @since 0.1 */
TN_API int64_t tn_sampler_count(const tn_sampler *sampler);
TN_API int64_t tn_sampler_batches(const tn_sampler *sampler);
/** The next batch: how many numbers `*numbers` holds, borrowed until the next call. 0: the epoch ends; the
 * next call begins another one. @since 0.1 */
TN_API int64_t tn_sampler_next(tn_sampler *sampler, const int64_t **numbers);
/** Where the next batch comes from. @since 0.1 */
TN_API void tn_sampler_seek(tn_sampler *sampler, int64_t epoch, int64_t index);

/**
 * Makes sample `number`: arrays in `out` (up to 8, all samples as many), which the loader releases. Runs on a
 * thread of the loader: nothing of the app may be called but what is safe on any thread. Not TN_OK: the text
 * of the error is tn_error_text()'s, or the name of the status where there is none.
 * @threads any
 */
typedef tn_status (*tn_sample_fn)(void *arg, int64_t number, tn_array *out[8]);

typedef struct tn_loader_options {
    TN_NN_HEAD;
    tn_sample_fn sample;
    void *arg;
    int32_t workers;  /* threads; 0: samples are made in tn_loader_next() */
    int32_t prefetch; /* batches that are made ahead; 0: two for each thread */
    int32_t pad; /* 1: samples may differ in size; each becomes as large as the largest, filled up with */
    double fill; /* this number */
} tn_loader_options;

/**
 * Batches in the order of the sampler, whatever the threads do; samples of a batch are stacked along a new
 * axis 0. The loader is the sampler's only user, and starts no batch before the epoch that is read.
 * @since 0.1
 */
TN_API tn_loader *tn_loader_new_(tn_sampler *sampler, const tn_loader_options *options);
/**
 * The next batch: how many arrays `out` has, borrowed until the next call. 0: the epoch ends, or an error:
 * that of a sample names its number. After one no further batch comes.
 * @since 0.1
 */
TN_API size_t tn_loader_next(tn_loader *loader, tn_array *out[8]);
/** Stops the threads, each behind the sample it is at, and frees the loader. @since 0.1 */
TN_API void tn_loader_close(tn_loader *loader);

/**
 * Cuts x along `axis` (negative: from the last) into `count` slices, which share its memory, borrowed. Rows
 * that are left over go to the first slices, one each, if `uneven`; else they are an error.
 * @return 1; 0: failed
 * @since 0.1
 */
TN_API int tn_split_data(tn_app *app, tn_array *x, size_t count, int32_t axis, int32_t uneven,
                         tn_array **out);
/** The same, slice k copied to devices[k] ("cpu:1"; NULL-ended). @since 0.1 */
TN_API int tn_split_and_load(tn_app *app, tn_array *x, const char *const *devices, int32_t axis,
                             int32_t uneven, tn_array **out);

/* ---- changes of images that are arrays ---- */

typedef struct tn_transform tn_transform; /* steps, one behind the other */

/** One step; a list ends with one whose `kind` is NULL. What a kind does not need is not looked at. */
typedef struct tn_transform_step {
    /* to_tensor: (H, W, C) bytes to (C, H, W) float32, byte / 255 · normalize: mean, std · cast: dtype ·
     * resize, center_crop: size · random_resized_crop: size, area, ratio · random_flip_left_right,
     * random_flip_top_bottom: with chance 1/2 · random_brightness, random_contrast, random_saturation,
     * random_hue, random_lighting: amount · random_color_jitter: amounts, in a random order · crop_resize:
     * at, crop, size · random_crop: size; of a smaller image the largest part of that ratio ·
     * rotate: angle[0], zoom; random_rotation: a drawn angle, zoom; both of float32 (C, H, W), in its size
     * (others are errors of the operator that they end in, BilinearSampler) · random_apply: the next size[0]
     * steps with the chance `amount` (0: 1/2) · random_order: the next size[0] ones in a random order */
    const char *kind;
    int64_t size[2];    /* width, height; the second 0: as the first */
    int32_t keep_ratio; /* resize to one size: that of the short edge */
    const char *interp; /* nearest, linear, cubic, area; NULL: linear */
    double area[2];     /* of the window, as a part of the image; 0, 0: 0.08 to 1 */
    double ratio[2];    /* of width to height; 0, 0: 3/4 to 4/3 */
    double mean[4];     /* of each channel; the further ones are 0 */
    double std[4];      /* 0: 1 */
    double amount;      /* how far a factor may be from 1; of lighting the deviation */
    int32_t dtype;      /* TN_F32 … */
    int32_t zoom;      /* of rotations: 1: in, so that nothing beside the image shows; -1: out, so that all of
                           it does; 0: corners are cut off and filled with 0 */
    double amounts[4]; /* of brightness, contrast, saturation, hue */
    int64_t at[2], crop[2]; /* x, y; width, height */
    double angle[2];        /* degrees: the angle; of random_rotation the smallest and the largest one */
} tn_transform_step;

/**
 * Checks and copies a list of steps. An unknown kind is an error with those that there are, as is a number
 * out of range.
 * @since 0.1
 */
TN_API tn_transform *tn_transform_new(tn_app *app, const tn_transform_step *steps);
/**
 * Image x, (H, W, C), behind all steps. What steps draw is a function of `seed`, `number` (of the
 * sample, and of the epoch, as the program counts) and the place of the step: the same on any thread, in any
 * order.
 *
 * @param out yours (tn_array_release)
 * @return TN_E_ARG: something is NULL · what the operators say
 * @threads any; the app is not touched
 * @since 0.1
 */
TN_API tn_status tn_transform_apply(const tn_transform *transform, uint64_t seed, uint64_t number,
                                    tn_array *x, tn_array **out);

#ifndef __cplusplus
#define TN_NN_NAMED_(function, type, app, path, ...)                                                         \
    function(app, path, &(const type){TN_NN_HERE_(type), __VA_ARGS__})
#define TN_NN_CSV_(app, path, ...) TN_NN_NAMED_(tn_data_from_csv_, tn_csv_options, app, path, __VA_ARGS__)
#define TN_NN_LIBSVM_(app, path, ...)                                                                        \
    TN_NN_NAMED_(tn_data_from_libsvm_, tn_libsvm_options, app, path, __VA_ARGS__)
#define TN_NN_NPZ_(app, path, ...) TN_NN_NAMED_(tn_data_from_npz_, tn_npz_options, app, path, __VA_ARGS__)
#define TN_NN_IDX_(app, path, ...) TN_NN_NAMED_(tn_data_from_idx_, tn_idx_options, app, path, __VA_ARGS__)
#define TN_NN_CIFAR_(app, path, ...)                                                                         \
    TN_NN_NAMED_(tn_data_from_cifar_, tn_cifar_options, app, path, __VA_ARGS__)
#define TN_NN_RECORDS_(app, path, ...)                                                                       \
    TN_NN_NAMED_(tn_data_from_records_, tn_records_options, app, path, __VA_ARGS__)
#define TN_NN_IMAGES_(app, path, ...)                                                                        \
    TN_NN_NAMED_(tn_data_from_images_, tn_images_options, app, path, __VA_ARGS__)
#define tn_data_from_images(...) TN_NN_IMAGES_(__VA_ARGS__, )
#define TN_NN_PACK_(app, folder, path, packed, ...)                                                          \
    tn_pack_images_(app, folder, path, packed,                                                               \
                    &(const tn_pack_options){TN_NN_HERE_(tn_pack_options), __VA_ARGS__})
#define tn_pack_images(...) TN_NN_PACK_(__VA_ARGS__, )
#define tn_sampler_new(...) TN_NN_CALL_(tn_sampler_new_, tn_sampler_options, __VA_ARGS__)
#define tn_loader_new(...) TN_NN_CALL_(tn_loader_new_, tn_loader_options, __VA_ARGS__)
#define tn_vocab_new(...) TN_NN_CALL_(tn_vocab_new_, tn_vocab_options, __VA_ARGS__)
#define TN_NN_ENCODE_(app, tokens, ...)                                                                      \
    tn_encode_sentences_(app, tokens, &(const tn_encode_options){TN_NN_HERE_(tn_encode_options), __VA_ARGS__})
#define tn_encode_sentences(...) TN_NN_ENCODE_(__VA_ARGS__, )
#define tn_data_from_sentences(...) TN_NN_CALL_(tn_data_from_sentences_, tn_sentences_options, __VA_ARGS__)
#define tn_data_from_csv(...) TN_NN_CSV_(__VA_ARGS__, )
#define tn_data_from_libsvm(...) TN_NN_LIBSVM_(__VA_ARGS__, )
#define tn_data_from_npz(...) TN_NN_NPZ_(__VA_ARGS__, )
#define tn_data_from_idx(...) TN_NN_IDX_(__VA_ARGS__, )
#define tn_data_from_cifar(...) TN_NN_CIFAR_(__VA_ARGS__, )
#define tn_data_from_records(...) TN_NN_RECORDS_(__VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif

#endif
