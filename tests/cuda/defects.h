/* What the kernels of defects.cu are given. */
#ifndef TEST_CUDA_DEFECTS_H
#define TEST_CUDA_DEFECTS_H

#include <stdint.h>

typedef struct defect_args {
    int64_t count;
    const float *in;
    float *out;
} defect_args;

#endif
