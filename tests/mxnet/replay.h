/* Recorded calls through the public API, and how far what comes out is from what MXNet computed. */
#ifndef TN_TESTS_MXNET_REPLAY_H
#define TN_TESTS_MXNET_REPLAY_H

#include "mxnet/recording.h"

typedef enum stage { VALUES, GRADIENTS, SECONDS, STAGE_COUNT } stage;

/* What is wrong with a call: "" nothing. */
typedef struct verdict {
    bool refused; /* a status, not a number */
    char text[400];
} verdict;

/* |got - expected| may be relative * |expected| + share * the largest |expected|. */
typedef struct bound {
    double relative, share;
} bound;

/* false: the recording has no such stage. Outputs, values of changed inputs, gradients are compared with
 * `bounds`, which is asked for each data type. */
bool replay(tn_ctx *ctx, const call *c, stage s, bound (*bounds)(const call *c, stage s, int32_t dtype),
            verdict *out);
/* The same of a net, whatever operator the call names. */
bool replay_net(tn_ctx *ctx, tn_cached_op *net, const call *c, stage s,
                bound (*bounds)(const call *c, stage s, int32_t dtype), verdict *out);

#endif
