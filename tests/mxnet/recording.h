/*
 * Calls of operators with what MXNet 1.9.1 computed for them, from tests/oracle/recorded/ops.
 * tests/oracle/README.md states the form of the files.
 */
#ifndef TN_TESTS_MXNET_RECORDING_H
#define TN_TESTS_MXNET_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tenon/tenon.h"

#define ARRAYS_MAX 24
#define ATTRS_MAX 16
#define DIMS_MAX 8
#define ELEMENTS_MAX 4096
#define STATISTICS 4 /* of a random output: mean, standard deviation, smallest, largest */

typedef enum part { IN, OUT, STAT, NOW, HEAD, GRAD, OVER, SECOND, PART_COUNT } part;

/* One array of a call. Its numbers are those of its data type, as doubles; of STAT: the statistics. */
typedef struct recorded {
    uint32_t input; /* NOW, GRAD, SECOND: which one */
    int32_t dtype, ndim;
    int64_t shape[DIMS_MAX];
    size_t count;
    double *values;
} recorded;

typedef struct call {
    char *op, *dtype;                     /* the call's own data type, which inputs may differ from */
    const char *attrs[2 * ATTRS_MAX + 1]; /* pairs of name and text, NULL-ended */
    char text[256];                       /* the call, as a message has it */
    bool train, np; /* np: of NumPy's shapes, where () is a scalar and 0 no element */
    recorded parts[PART_COUNT][ARRAYS_MAX];
    uint32_t counts[PART_COUNT];
} call;

typedef struct recording {
    char *text; /* of the file; words of calls point into it */
    call *calls;
    size_t count;
} recording;

/* Reads FAMILY.txt.gz; a message on stderr and false if it is none. `out` is to be closed in any case. */
bool recording_open(const char *path, recording *out);
void recording_close(recording *r);

#endif
