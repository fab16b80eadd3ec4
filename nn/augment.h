/* One image from its bytes to the numbers of a sample, as MXNet's ImageRecordIter makes them. augment.c. */
#ifndef TN_NN_AUGMENT_H
#define TN_NN_AUGMENT_H

#include "boxes.h"
#include "internal.h"
#include "tenon/nn_data.h"

typedef struct tnn_draws { /* what a sample draws is a function of these */
    uint64_t key, sample, drawn;
} tnn_draws;

/* (C, H, W) float32 into `out`; `boxes`, or NULL, go with the image, as ImageDetRecordIter has it. `why`: the
 * reason of a failure, until the thread's next call. Any thread. */
tn_status tnn_augment_run(tn_ctx *ctx, const tn_images_options *o, const float *mean, const void *data,
                          uint64_t bytes, tnn_draws *draws, tnn_boxes *boxes, float *out, const char **why);

#endif
