/* A small net that is really trained: convolution, pooling, dense layers, backward, an optimizer; eager
 * calls. */
#ifndef TN_TEST_EXEC_TRAINING_H
#define TN_TEST_EXEC_TRAINING_H

#include "context.h"

enum {
    TRAINING_BATCH = 16,
    TRAINING_BATCHES = 4,
    TRAINING_PIXELS = 64, /* images of 1 x 8 x 8 */
    TRAINING_CLASSES = 10,
    TRAINING_PARAMS = 6,
    TRAINING_FLOATS = 8 * 9 + 8 + 32 * 128 + 32 + 10 * 32 + 10
};

typedef struct training training;

/* `optimizer`: "sgd_update" or "adam_update". The same numbers on each device: initial values come from the
 * host. `scale` multiplies the batch, the filters and the hidden units. */
training *training_create(tni_context *c, const char *optimizer, uint32_t scale);
void training_destroy(training *t);
/* One step on batch `which`: the batch is copied to the device, nothing is waited for. The last `left_out`
 * samples of the batch are left out. */
void training_step(training *t, uint32_t which, uint32_t left_out, double lr);
/* The variables of all parameters, which every step writes. */
uint32_t training_vars(training *t, tni_var *vars[TRAINING_PARAMS]);
/* All parameters of a training of scale 1, one after the other; waits. False: one of them is not finite. */
bool training_read(training *t, float values[TRAINING_FLOATS]);

#endif
