/*
 * What train.c and its checkpoints share.
 */
#ifndef TN_NN_TRAIN_H
#define TN_NN_TRAIN_H

#include <stdatomic.h>

#include "internal.h"

#define TNN_STEPS_AHEAD                                                                                      \
    2 /* queued and not done: more would fill memory and delay what is shown, and a stop */

struct tn_train {
    tnn_object object;
    tn_train_options o; /* filled in; texts are constants or ours */
    char *model, *data_name, *valid_name, *folder, *config_hash;
    char data_hash[65]; /* "": not computed yet */
    tn_net *net;
    tn_data *data, *valid;
    tn_trainer *trainer;
    tn_meter *loss, *accuracy, *valid_meters[2];
    uint64_t seed;
    bool usable, hybridize, shuffle, stopped;
    atomic_int stop;
    int64_t batches, steps, batch, epochs_done, samples, resumed_step;
    int64_t checkpoint_steps; /* between two; 0: none but the last */
    int64_t saved_step;
    char *checkpoint;                 /* path of the newest; NULL */
    tn_array *ahead[TNN_STEPS_AHEAD]; /* losses of the last steps; NULL */
    double lr, last_loss, last_accuracy, valid_loss, valid_accuracy, best;
    double began, epoch_began, data_seconds;
};

tn_status tnn_train_checkpoint(tn_train *t); /* writes one */
tn_status tnn_train_resume(tn_train *t);     /* goes back to the newest */

#endif
