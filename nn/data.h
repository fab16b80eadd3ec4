/* A data set: fields of samples, and how they are cut into batches. data.c, data_open.c, data_files.c. */
#ifndef TN_NN_DATA_H
#define TN_NN_DATA_H

#include "internal.h"

typedef struct tnn_field {
    char *name;
    tnn_shape shape;      /* of a sample, with a 1 in front */
    size_t sample;        /* numbers */
    tn_array *array;      /* holds them; NULL: `own` does */
    void *own;            /* bytes or floats */
    const uint8_t *bytes; /* NULL: `floats` */
    const float *floats;  /* of a csr field: what is stored */
    float divisor;        /* of bytes */
    tn_array *aux[2];     /* of a csr field; NULL: it is dense */
    const int64_t *starts, *columns;
    tn_array *now; /* of the batch, borrowed; NULL: none */
    bool made;     /* by `ahead`, when a batch needs it; there are no numbers in memory */
} tnn_field;

typedef enum tnn_last { /* what becomes of samples that fill no batch; in the order of the names in order.c */
                        TNN_LAST_KEEP,
                        TNN_LAST_PAD,
                        TNN_LAST_DISCARD,
                        TNN_LAST_ROLL_OVER,
                        TNN_LAST_ROUND,
} tnn_last;

typedef struct tnn_cut { /* what the options of all data sets have */
    int64_t batch;
    int32_t shuffle;
    uint64_t seed;
    const char *last;
    int64_t parts, part;
} tnn_cut;
#define TNN_CUT_OF(o) (&(const tnn_cut){(o).batch, (o).shuffle, (o).seed, (o).last, (o).parts, (o).part})

typedef struct tnn_order {
    int64_t count, batch;
    tnn_last last;
    bool shuffle;
    uint64_t seed;
    int64_t order_epoch;         /* that `order` is of; -1 */
    uint32_t *order;             /* NULL: as they are */
    uint32_t *rows;              /* samples of one batch */
    int64_t filler;              /* of that one */
    int64_t length;              /* of its samples along their first axis; 0: whole */
    struct tnn_buckets *buckets; /* sentences.c: a batch is of one of them; NULL: there are none */
    bool time_major;             /* its batches are (length, n) */
} tnn_order;

/* ---- order.c ---- */

/* What the options say; `what`: the call, for messages. */
tn_status tnn_order_take(tn_app *app, const char *what, const tnn_cut *cut, tnn_order *out);
/* Once `count` is known: buffers. `name`: of what is cut. */
tn_status tnn_order_room(tn_app *app, tnn_order *o, const char *name);
void tnn_order_free(tnn_order *o);
bool tnn_order_streams(const tnn_order *o); /* the last batch goes on in the next epoch */
int64_t tnn_order_batches(const tnn_order *o, int64_t epoch);
int64_t tnn_order_rows(tnn_order *o, int64_t epoch, int64_t index); /* fills rows and filler; how many */
/* Draws an order of the `count` numbers from `first` on. */
void tnn_order_shuffle(uint32_t *out, int64_t count, uint64_t key, int64_t epoch, int64_t first);
#define TNN_EPOCH_MAX ((int64_t)1 << 30) /* of a stream: with 2^32 samples below 2^63 */
/* A share of `count` samples by their number, as MNISTIter cuts. */
void tnn_share(int64_t count, int64_t parts, int64_t part, int64_t *begin, int64_t *end);

struct tn_data {
    tnn_object object;
    char *name, *files[2];
    tnn_field fields[TNN_VALUES_MAX];
    size_t field_count;
    int64_t count, classes;
    int64_t parts, part; /* still to be cut; 1: nothing is */
    bool failed;
    bool by_files; /* its hash is that of its files */
    tnn_order order;
    int64_t epoch, index;      /* of the next batch */
    float *buffer;             /* of one batch */
    struct tnn_names *names;   /* of the classes; NULL: none */
    struct tnn_images *images; /* whose samples are made; NULL: all lie in memory */
    struct tnn_ahead *ahead;
    struct tnn_about *about; /* what is kept of it with a model; NULL */
    char *note;              /* how its part was chosen; NULL */
    double label_deviation;  /* of a regression, as scaled */
};

/* NULL: failed. `what`: the call, for messages. */
tn_data *tnn_data_make(tn_app *app, const char *what, const char *name, const tnn_cut *cut);
tnn_field *tnn_field_add(tn_app *app, tn_data *d, const char *name);
/* A copy of all numbers of `array`, as float32. */
tn_status tnn_field_numbers(tn_app *app, tnn_field *f, int64_t count, tn_array *array, const char *what);
/* (N, …) of `given` becomes a field; of a csr array a csr field. */
tn_status tnn_field_array(tn_app *app, tn_data *d, const char *name, tn_array *given);
/* What is common to all: classes, share, buffers. NULL: failed, now or before. */
tn_data *tnn_data_done(tn_data *d);
/* The same, with threads that make its batches ahead; 0: the program's thread makes them. */
tn_data *tnn_data_done_ahead(tn_data *d, int32_t threads, int32_t prefetch);
/* ---- sentences.c ---- */

void tnn_buckets_destroy(struct tnn_buckets *b); /* NULL is fine */
int64_t tnn_buckets_batches(const struct tnn_buckets *b);
int64_t tnn_buckets_rows(tnn_order *o, int64_t epoch, int64_t index); /* as tnn_order_rows; and length */

/* ---- sampler.c ---- */
struct tn_sampler;
tn_app *tnn_sampler_app(const struct tn_sampler *s);   /* NULL if it is not usable */
int64_t tnn_sampler_batch(const struct tn_sampler *s); /* the most numbers of a batch */

/* Field `index` as labels: one more than the largest, 0: they are no classes. */
int64_t tnn_data_field_classes(const tn_data *d, size_t index);

/* ---- images.c ---- */
struct tn_images_options;
/* `o`: by tnn_images_options(). NULL: failed. */
tn_data *tnn_images_data(tn_app *app, const char *what, const char *name, const char *path,
                         const struct tn_images_options *o);
void tnn_images_destroy(struct tnn_images *s); /* NULL is fine */
/* Names, sizes and labels of what there is, not the pixels: 64 hexadecimal digits. */
void tnn_images_digest(const struct tnn_images *s, char hex[65]);

/* ---- data_open.c ---- */
/* Images and labels (NULL: none) of files[]. */
tn_status tnn_data_idx(tn_app *app, tn_data *d);

#endif
