/* What op_case.c is made of: tensors from text, definitions and kernels without an engine, a tape for
 * gradients. */
#ifndef TN_TESTS_OP_RUN_H
#define TN_TESTS_OP_RUN_H

#include "op/op.h"

#define OP_ARGS_MAX 64

typedef struct op_tensor {
    tn_tensor t; /* t.shape and t.stride point into this struct */
    int64_t shape[TN_NDIM_MAX], stride[TN_NDIM_MAX];
    void *block;
} op_tensor;

void op_tensor_create(op_tensor *t, int32_t dtype, int32_t ndim, const int64_t *shape, bool strided);
void op_tensor_free(op_tensor *t);
void op_tensor_copy(const op_tensor *from, op_tensor *to); /* same shape; casts, any strides */
double op_tensor_get(const op_tensor *t, int64_t index);   /* row-major index */
void op_tensor_set(op_tensor *t, int64_t index, double value);
/* "f32[2,2] 1 2 3 4"; `dtype` >= 0 overrides a floating point type. */
void op_tensor_read(op_tensor *t, const char *text, int32_t dtype, uint64_t seed);
/* NULL if equal within tolerance, else what differs (static buffer). tolerance 0: same bits. */
const char *op_tensor_differs(const op_tensor *got, const op_tensor *expected, double tolerance);

typedef struct op_kernel {
    const tn_kernel *kernel;
    void *plugin; /* what its init gave */
    const char *plugin_name;
} op_kernel;

tni_opset *op_set(void);
/* A plugin that is here has a kernel of this operator for the host; `dense`: one whose first input is. */
bool op_kernels_any(const tni_opdef *def, bool dense);
/* Kernels that take the arguments; at most `max`. With TENON_CASE_DEVICE=cuda those of the plugin cuda on
 * the double of the driver, where it has some. */
size_t op_kernels_find(const tni_opdef *def, const tni_args *args, const int32_t *in, const int32_t *out,
                       op_kernel *found, size_t max);
/* With TENON_CASE_DEVICE: the plain kernels of the host that take them. */
size_t op_kernels_of_host(const tni_opdef *def, const tni_args *args, const int32_t *in, const int32_t *out,
                          op_kernel *found, size_t max);

/* A GPU's: it looks at no values before the results are read, and gives NaN where hosts refuse. */
bool op_kernel_on_device(const op_kernel *k);

/* One node with its arguments, prepared. Mutated inputs follow the outputs. */
typedef struct op_node {
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_args args;
    uint32_t mutated;
    op_kernel kernel;
    tn_plan plan;
    int32_t inplace[OP_ARGS_MAX];
    const tn_layout *in_layout[OP_ARGS_MAX], *out_layout[OP_ARGS_MAX];
    op_tensor out[OP_ARGS_MAX]; /* what run made */
    void *saved;
    uint64_t out_count; /* with the mutated */
} op_node;

typedef struct op_form {
    uint32_t threads, node_flags;
    uint8_t mode;      /* of outputs */
    uint64_t unwanted; /* outputs (bits) of mode none, without memory */
    bool strided, in_place;
    bool recorded;
} op_form;

/* Infers: shapes and dtypes of the outputs (op_shape known or not). */
/* "name=value name=(value, value)": attributes, as cases have them. */
tn_status op_attrs_split(const tni_opdef *def, const char *text, tni_attrs **out);

tn_status op_infer(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, uint32_t flags,
                   tn_shape *in_shape, tn_shape *out_shape, int32_t *in_dtype, int32_t *out_dtype);
/* Prepares node->kernel for these inputs and runs it once into node->out. `before`: what outputs held (mode
 * add). */
tn_status op_node_run(op_node *n, op_tensor *const *in, const tn_shape *out_shape, const int32_t *out_dtype,
                      const op_form *form, const op_node *forward);
void op_node_free(op_node *n);

/* ---- op_tape.c -------------------------------------------------------------------------------- */

typedef struct op_tape op_tape;
op_tape *op_tape_create(uint32_t flags);
void op_tape_destroy(op_tape *t);
tn_edge op_tape_input(op_tape *t, const op_tensor *value); /* a variable; borrows */
tn_status op_tape_invoke(op_tape *t, const tni_opdef *def, const tni_attrs *attrs, uint32_t count,
                         const tn_edge *in, const op_node *forward, tn_edge *out);
const op_tensor *op_tape_value(const op_tape *t, tn_edge e);
uint32_t op_tape_outputs(const op_tape *t, tn_edge e); /* visible outputs of its node */
/* Gradients of sum_i <head_i, edge_i> to the `wrt` edges; node NULL where there is none. */
tn_status op_tape_backward(op_tape *t, uint32_t heads, const tn_edge *edges, const tn_edge *grads,
                           uint32_t count, const tn_edge *wrt, tn_edge *out);
tn_err *op_error(void); /* of the last failure that came from a kernel or gradient */

#endif
