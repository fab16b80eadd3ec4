/*
 * A double of cuDNN 9, for tests: libcudnn.so.9 with the graph interface as far as plugin cuda builds graphs:
 * one convolution, forward or its gradient by the data or by the filter. Descriptors are checked by NVIDIA's
 * rules, everything else is refused; what runs is a function of the stream, on the double of the driver
 * (../emulator). Never installed; it tells nothing of speed.
 *
 * rules.c: functions, descriptors, what is refused · work.c: engines, and what they compute.
 *
 *     TNCUDNN_FAULT   "cudnnBackendFinalize:3:3000,cudnnCreate:1+:1001": the third call of the first gives
 *                     3000, every call of the second 1001
 *     TNCUDNN_COUNTS  a file: how often each function was called, and how many descriptors and handles nobody
 *                     destroyed, written at the end
 *     TNCUDNN_ENGINES what a heuristic lists, default "na#" (work.c)
 */
#ifndef TNCUDNN_DOUBLE_H
#define TNCUDNN_DOUBLE_H

#include <cudnn_graph.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DOUBLE_DIMS 8
#define DOUBLE_ATTRS 12 /* of a descriptor, at most */

typedef struct double_value {
    cudnnBackendAttributeName_t name;
    int64_t count; /* 0: not set */
    union {
        int64_t ints[DOUBLE_DIMS];
        int32_t number;
        bool truth;
        double wide;
        void *pointers[DOUBLE_DIMS];
    } is;
} double_value;

typedef struct double_descriptor {
    uint32_t magic;
    cudnnBackendDescriptorType_t type;
    bool final;
    uint32_t count;
    double_value values[DOUBLE_ATTRS];
    const struct double_engine *engine;        /* of an engine or its configuration */
    const struct double_descriptor *operation; /* of a configuration: what its heuristic was asked about */
} double_descriptor;

struct cudnnContext {
    uint32_t magic;
    int32_t device;
    cudaStream_t stream;
    atomic_bool busy; /* a thread is in a call with it */
};

/* ---- rules.c ---- */
/* Says on stderr what was called wrongly, and by which rule; returns `status`. */
cudnnStatus_t double_refuse(cudnnStatus_t status, const char *rule) __attribute__((cold));
/* The value that must be there once a descriptor is final. */
const double_value *double_value_of(const double_descriptor *d, cudnnBackendAttributeName_t name);
double_descriptor *double_of(const double_descriptor *d, cudnnBackendAttributeName_t name);
/* The driver's functions. */
typedef struct double_driver {
    int (*function)(cudaStream_t stream, void (*fn)(void *arg), void *arg);
    int (*device)(int *out);
    int (*capture)(cudaStream_t stream, int *status, void *id, void *graph, void *last, void *count);
} double_driver;
extern double_driver double_cuda;

/* ---- work.c ---- */
#define DOUBLE_ENGINES 8
typedef struct double_engine {
    char letter;
    int64_t index, workspace_bytes;
    uint32_t notes; /* bit i: note i */
    bool refuses;   /* its plan cannot be made final */
} double_engine;

/* What a heuristic of that mode lists, best first; how many. */
int64_t double_engines(cudnnBackendHeurMode_t mode, const double_engine *out[DOUBLE_ENGINES]);
/* The roles of tensors and numbers in an operation: attributes of x, w, y, the convolution, alpha, beta. */
typedef struct double_roles {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
} double_roles;
const double_roles *double_roles_of(cudnnBackendDescriptorType_t type); /* NULL: it is no convolution */
/* Runs an operation in the stream; `data`: of x, w and y. The workspace is written, as an engine would. */
cudnnStatus_t double_run(cudaStream_t stream, const double_descriptor *operation, void *const data[3],
                         void *workspace, int64_t bytes);

#endif
