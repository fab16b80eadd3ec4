/**
 * Executors: a symbol bound to arrays, MXNet's bind and simple_bind.
 *
 * An executor reads its arguments from the arrays that it is bound to, writes its outputs into arrays that
 * stay the same, and its gradients into arrays of their own. Calls are queued as any other: the arrays may be
 * read, written and given to other calls at once. Gradients that the program attached to its arrays, and what
 * it recorded of them, stay as they are.
 *
 * Memory for what lies between inputs and outputs comes from the device's pool at each call and goes back
 * there, so executors of one net for many lengths (buckets) share it without being told.
 */
#ifndef TENON_EXECUTOR_H
#define TENON_EXECUTOR_H

#include "autograd.h"
#include "params.h"
#include "symbol.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_executor tn_executor;

/* An argument or state by name. */
typedef struct tn_binding {
    const char *name;
    tn_array *array; /* its value */
    tn_array *grad;  /* where its gradient goes; NULL: none is computed */
    uint32_t mode;   /* TN_MODE_WRITE or TN_MODE_ADD; of a state, or without `grad`: TN_MODE_NONE */
    uint32_t reserved;
} tn_binding;

typedef struct tn_bind_options {
    uint32_t struct_size; /* TN_SIZE(tn_bind_options) */
    uint32_t count;
    const tn_binding *bindings;   /* `count`: every argument and every state, once */
    const char *const *group2ctx; /* as in tn_cached_options; NULL: none */
} tn_bind_options;

/**
 * Binds a symbol to arrays, which it keeps a reference of. Shapes and types are checked at once.
 *
 * @return TN_E_KEY: an argument or state without an array, a name that is none, or is there twice ·
 *         TN_E_ARG: a mode without a gradient, or a gradient of a state · TN_E_SHAPE, TN_E_DTYPE: arrays that
 *         do not fit each other · TN_E_DEVICE: as tn_cached_op_create
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_executor_bind(tn_ctx *ctx, tn_symbol *symbol, const tn_bind_options *options,
                                  tn_executor **out);

/* What is done to the gradient of one argument. */
typedef struct tn_grad_req {
    const char *name;
    uint32_t mode; /* TN_MODE_… */
    uint32_t reserved;
} tn_grad_req;

typedef struct tn_simple_bind_options {
    uint32_t struct_size; /* TN_SIZE(tn_simple_bind_options) */
    uint32_t mode;        /* TN_MODE_…: of all arguments of a floating type that `modes` does not name */
    uint32_t known_count, mode_count;
    const tn_known *known; /* shapes and types of the inputs; the others follow from them */
    const tn_grad_req *modes;
    const tn_device *device;      /* of the arrays; NULL: the default */
    const char *const *group2ctx; /* as in tn_cached_options; arrays of a group lie on its device */
    /* Arguments, states and gradients of the same name and shape are those of this executor. An input of
     * `known` that is smaller than there lies in that memory, too; so only one of the two may be in use at a
     * time. NULL: all arrays are new. */
    tn_executor *shared;
} tn_simple_bind_options;

/**
 * Makes all arrays, zeros in them, and binds.
 *
 * @return TN_E_SHAPE: a shape that does not follow from those given, or a parameter that `shared` has in
 *         another shape · TN_E_DTYPE: an argument that `shared` has in another type; a gradient that is asked
 *         for by name, of an argument that is not of a floating type · otherwise as tn_executor_bind
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_executor_simple_bind(tn_ctx *ctx, tn_symbol *symbol,
                                         const tn_simple_bind_options *options, tn_executor **out);

#define TN_RESHAPE_PARTIAL 1u /* arguments that are not named may change their shape, too: they become new */
#define TN_RESHAPE_UP 2u      /* an array may need more memory than it has: a new one is made */

/**
 * The same net for inputs of other shapes: a new executor. Arrays whose shape stays are shared, smaller ones
 * lie in the memory of those of `e`, so only one of the two may be in use at a time.
 *
 * @param flags TN_RESHAPE_…
 * @return TN_E_SHAPE: a shape that needs one of the flags, which the text names
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_executor_reshape(tn_executor *e, uint32_t flags, uint32_t known_count,
                                     const tn_known *known, tn_executor **out);

/** Frees it, and its references; queued work goes on. NULL is fine. @threads owner @since 0.1 */
TN_API void tn_executor_destroy(tn_executor *e);

#define TN_EXECUTOR_VALUE 0 /* of an argument or state */
#define TN_EXECUTOR_GRAD 1  /* of an argument */

/** An array by the name of its argument or state; borrowed; NULL: there is none. @threads any @since 0.1 */
TN_API tn_array *tn_executor_array(const tn_executor *e, int32_t what, const char *name);

/** Its symbol, borrowed; NULL for NULL. @threads any @since 0.1 */
TN_API tn_symbol *tn_executor_symbol(const tn_executor *e);

/** How many outputs it has; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_executor_output_count(const tn_executor *e);

/**
 * An output, borrowed. It is the same array after every forward, but where only a run tells its shape; that
 * one is NULL before the first. NULL: index too large.
 * @threads owner
 * @since 0.1
 */
TN_API tn_array *tn_executor_output(const tn_executor *e, uint32_t index);

/* An array by name. */
typedef struct tn_named_array {
    const char *name;
    tn_array *array;
} tn_named_array;

/**
 * Copies `inputs` into the arrays of these arguments (any device, any type: cast), then runs. Nothing is
 * copied if a name or shape does not fit.
 *
 * @param train 1: as in training, and ready for a backward · 0
 * @return TN_E_KEY: no such argument · TN_E_SHAPE: an input of another shape than the executor is bound to ·
 *         otherwise as tn_cached_op_call
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_executor_forward(tn_executor *e, int32_t train, uint32_t count,
                                     const tn_named_array *inputs);

/**
 * Gradients of the sum of <outputs[i], head_grads[i]>, as each argument's mode says.
 *
 * @param head_grads one per output; NULL, or an item NULL: ones (a loss does not read it)
 * @return TN_E_STATE: no forward with `train` went before, or a backward did since · no argument has a
 *         gradient · otherwise as tn_backward
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_executor_backward(tn_executor *e, tn_array *const *head_grads);

#define TN_COPY_EXTRA 1u /* names that the executor does not have are passed over */

/**
 * Copies arrays into those of arguments and states, by name, with or without "arg:" and "aux:". Nothing is
 * copied if one does not fit. Those that `params` does not name stay.
 *
 * @return TN_E_KEY: a name that the executor does not have, without TN_COPY_EXTRA · TN_E_SHAPE
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_executor_copy_params(tn_executor *e, const tn_params *params, uint32_t flags);

/* Called on the caller's thread as soon as the operator is queued; reading `array` waits. It is borrowed, and
 * may be kept by tn_array_retain(). Names are those of outputs ("fc1_output"), and for inputs the node's name
 * with that of its argument ("fc1_weight"). Calls made inside are not recorded. */
typedef void (*tn_monitor_fn)(void *arg, const char *name, tn_array *array);

#define TN_MONITOR_INPUTS 1u /* inputs of operators, too */

/**
 * From here on forward calls operators one by one, with the same numbers, and shows each output to `fn`.
 * NULL: no longer.
 *
 * @return TN_E_UNSUPPORTED: nodes of the net cannot be called apart (they run graphs of their own, have no
 *         inputs, or others read what no caller sees), or lie on several devices
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_executor_monitor(tn_executor *e, tn_monitor_fn fn, void *arg, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
