/* Batches of samples that a function makes, ahead of the program, by threads. ahead.c. */
#ifndef TN_NN_AHEAD_H
#define TN_NN_AHEAD_H

#include "data.h"

typedef struct tnn_maker {
    void *self;
    int32_t threads, prefetch; /* 0 threads: the program's makes them */
    /* Sample `row` of an epoch: numbers of each field into out[]. `worker`: number of the thread. */
    tn_status (*make)(void *self, int32_t worker, uint32_t row, int64_t epoch, float *const *out, char *why,
                      size_t why_bytes);
} tnn_maker;

tn_status tnn_ahead_create(tn_app *app, const tnn_maker *maker, const tn_data *d, struct tnn_ahead **out);
void tnn_ahead_destroy(struct tnn_ahead *a); /* NULL is fine; waits for the threads */
/* The batch at d->epoch, d->index: its samples' number, 0: failed; d->order.filler is set. Further ones are
 * begun. */
int64_t tnn_ahead_next(tn_app *app, struct tnn_ahead *a, tn_data *d);
const float *tnn_ahead_field(const struct tnn_ahead *a, size_t field); /* of that one */

#endif
