/*
 * A double of cuDNN 9, for tests: libcudnn.so.9 with the graph interface as far as plugin cuda builds graphs:
 * one convolution, forward or its gradient by the data or by the filter; behind a forward one an addend, a
 * bias and a ReLU may follow. Descriptors are checked by the rules of NVIDIA, all else is refused; what runs
 * is a function of the stream, on the double of the driver (../emulator). Never installed; it tells nothing
 * of speed.
 *
 * rules.c: functions, descriptors, what is refused · graph.c: graphs of several operations
 * work.c: engines, and what they compute
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
    const struct double_engine *engine;    /* of an engine or its configuration */
    const struct double_descriptor *graph; /* of a configuration: what its heuristic was asked about */
} double_descriptor;

struct cudnnContext {
    uint32_t magic;
    int32_t device;
    cudaStream_t stream;
    atomic_bool busy; /* a thread is in a call with it */
};

#define D(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define A(name) CUDNN_ATTR_##name
#define T(name) CUDNN_TYPE_##name
#define V(d, name) (double_value_of(d, A(name))->is)
#define NAN_PROPAGATION ((cudnnBackendAttributeName_t)2) /* since 9.0 the header calls its names deprecated */

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

/* ---- graph.c ---- */
bool double_is_virtual(const double_descriptor *tensor);
/* The rule that is broken; NULL: none. */
const char *double_pointwise_check(const double_descriptor *d);
const char *double_pointwise_operation_check(const double_descriptor *d);
/* What a graph computes: a convolution, what is added behind it, a function. */
typedef struct double_graph {
    const double_descriptor *convolution;
    const double_descriptor *tensors[5]; /* x, w, y, addend, bias; the last two may be NULL */
    bool relu;
} double_graph;
const char *double_graph_read(const double_descriptor *graph,
                              double_graph *out); /* the rule that it breaks */

/* ---- work.c ---- */
#define DOUBLE_ENGINES 8
typedef struct double_engine {
    char letter;
    int64_t index, workspace_bytes;
    uint32_t notes; /* bit i: note i */
    bool refuses;   /* its plan cannot be made final */
    bool single;    /* nor that of several operations */
} double_engine;

/* What a heuristic of that mode lists for a graph, best first; how many. */
int64_t double_engines(cudnnBackendHeurMode_t mode, const double_graph *graph,
                       const double_engine *out[DOUBLE_ENGINES]);
/* The roles of tensors and numbers in an operation: attributes of x, w, y, the convolution, alpha, beta. */
typedef struct double_roles {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
} double_roles;
const double_roles *double_roles_of(cudnnBackendDescriptorType_t type); /* NULL: it is no convolution */
/* Runs a graph in the stream; `data`: of its tensors. The workspace is written, as an engine would. */
cudnnStatus_t double_run(cudaStream_t stream, const double_graph *graph, void *const data[5], void *workspace,
                         int64_t bytes);

#endif
