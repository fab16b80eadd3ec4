/*
 * What the files of a training share: train.c its course, fit.c losses and metrics of the program,
 * checkpoint.c files, watch.c what may end it.
 */
#ifndef TN_NN_TRAIN_H
#define TN_NN_TRAIN_H

#include <stdatomic.h>

#include "internal.h"

#define TNN_STEPS_AHEAD                                                                                      \
    2 /* queued and not done: more would fill memory and delay what is shown, and a stop */

#define TNN_METRICS_MAX 7

struct tnn_fit;

typedef enum tnn_early { TNN_EARLY_NONE, TNN_EARLY_LOSS, TNN_EARLY_ACCURACY } tnn_early;

struct tn_train {
    tnn_object object;
    tn_train_options o; /* filled in; texts are constants or ours */
    char *model, *data_name, *valid_name, *folder, *config_hash;
    char data_hash[65]; /* "": not computed yet */
    tn_net *net;
    tn_data *data, *valid;
    tn_data *shares[TNN_DEVICES_MAX]; /* of the data, one per device; NULL: each batch is divided */
    tn_trainer *trainer;
    struct tnn_fit *fit; /* NULL: softmax cross-entropy and accuracy of one output */
    tn_meter *loss, *accuracy, *valid_meters[2];
    uint64_t seed;
    bool usable, hybridize, shuffle, stopped;
    atomic_int stop;
    int64_t batches, steps, batch, epochs_done, samples, resumed_step;
    int64_t checkpoint_steps; /* between two; 0: none but the last */
    int64_t saved_step;
    char *checkpoint; /* path of the newest; NULL */
    /* job.c */
    struct tn_kv *store;           /* of several processes; NULL: of this alone */
    bool store_owned, steps_alike; /* workers go in step */
    bool joins;                    /* this worker may end before others */
    bool late;                     /* it is in another's place, and has not made a step yet */
    uint64_t position;             /* of its random numbers then */
    int64_t rank, workers;
    int64_t own_batches, at;            /* of this worker's data; the next one of the epoch */
    int64_t first_count, first_batches; /* samples and batches of worker 0's; 0: it is not known */
    int64_t first_batch, all_batch;     /* sizes of its batches, and of one of each worker */
    tn_array *ahead[TNN_STEPS_AHEAD];   /* losses of the last steps; NULL */
    int64_t ahead_step[TNN_STEPS_AHEAD];
    double lr, last_loss, last_accuracy, valid_loss, valid_accuracy, best;
    double began, epoch_began, data_seconds;
    /* watch.c */
    tnn_early early;
    bool nan_stops, best_saved, ended_early;
    double min_delta, best_value; /* of the epoch that is kept */
    double watched;               /* best value of early_stop */
    int64_t best_epoch, waited;   /* from 1; epochs without a better one */
    double first_loss, mean_loss; /* of a batch: the first that this process saw, the newest; NaN */
    int64_t diverged_epoch;       /* in which a warning was given of a loss that rises; 0: none */
    char *best_prefix, *best_file;
    float *losses;
    size_t loss_room;
};

tn_status tnn_train_checkpoint(tn_train *t); /* writes one */
tn_status tnn_train_resume(tn_train *t);     /* goes back to the newest */
/* What a device computes with, of an array of the running batch. */
tn_array *tnn_train_part(const tn_train *t, tn_array *array, size_t device);
/* Forward, backward, update; the loss is kept to be waited for. */
tn_status tnn_train_step(tn_train *t, const tn_batch *b);

/* ---- job.c: several workers ---- */

tn_status tnn_job_open(tn_app *app, tn_train *t);
tn_status tnn_job_agree(tn_app *app, tn_train *t); /* how many batches an epoch has */
/* Of a worker in another's place, whose trainer knows its steps: where it goes on; and, before its first
 * gradient leaves, whether it may. */
tn_status tnn_job_rejoin(tn_app *app, tn_train *t);
tn_status tnn_job_rejoined(tn_app *app, tn_train *t);
int tnn_job_next(tn_train *t, tn_batch *b);        /* tn_data_next of what all have; t->at counts */
void tnn_job_seek(tn_train *t, int64_t epoch, int64_t index);
int64_t tnn_job_samples(const tn_train *t, const tn_batch *b, int64_t n); /* of a step, of all; n: own */
tn_status tnn_job_end(tn_train *t);
void tnn_job_close(tn_train *t);

/* ---- fit.c ---- */

bool tnn_fit_wanted(const tn_train *t);
tn_status tnn_fit_make(tn_app *app, tn_train *t); /* t->fit, and values of all parameters */
void tnn_fit_destroy(struct tnn_fit *f);
/* The loss of the running batch, of data to validate on or of a device's part; NULL. */
tn_array *tnn_fit_forward(tn_train *t, int valid, size_t device);
void tnn_fit_reset(struct tnn_fit *f, int valid);
double tnn_fit_read(const tn_train *t, int valid); /* waits; the first metric, NaN: there is none */
size_t tnn_fit_metrics(const struct tnn_fit *f);
/* The loss of a regression that always says the mean of the labels; NaN: no such loss, or not known. */
double tnn_fit_guess(const tn_train *t);
/* Its name, borrowed; `meter`, or NULL: that of the training. */
const char *tnn_fit_metric(const struct tnn_fit *f, size_t index, double *train, double *valid,
                           tn_meter **meter);
void tnn_fit_log(tn_train *t); /* a line, if one is asked for */

/* ---- watch.c ---- */

tn_status tnn_watch_options(tn_app *app, tn_train *t);
tn_status tnn_watch_slot(tn_train *t, size_t slot); /* waits for ahead[slot], looks at it, drops it */
tn_status tnn_watch_finite(tn_train *t); /* all losses so far and all weights; before they are kept */
void tnn_watch_epoch(tn_train *t);       /* behind an epoch's validation */
void tnn_watch_rise(tn_train *t);        /* then: warns of a loss that rose, or that stayed poor to the end */
void tnn_watch_loss(tn_train *t);        /* behind the epoch's event: an error where the loss has exploded */
bool tnn_watch_ends(const tn_train *t);  /* no better epoch in all its patience */

#endif
