/**
 * Compiled symbols: cached operators for training, programs for serving.
 *
 * Both compile once per combination of input shapes and types and replay afterwards, without memory, locks or
 * text.
 */
#ifndef TENON_PROGRAM_H
#define TENON_PROGRAM_H

#include "params.h"
#include "symbol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- cached operators: hybridized nets ----------------------------------------------------------- */

typedef struct tn_cached_op tn_cached_op;

/** MXNet's flags of a cached operator. */
typedef struct tn_cached_options {
    uint32_t struct_size;  /* TN_SIZE(tn_cached_options) */
    uint32_t static_alloc; /* 1: memory of a program stays bound between calls, until `op` is released */
    /* 1: shapes seldom change (needs static_alloc): what was compiled for other shapes goes at once. */
    uint32_t static_shape;
    /* A net of at most as many operators is called operator by operator, and recorded so (without
     * static_alloc; all arrays on one device; no operator without inputs). 0: never. */
    uint32_t inline_limit;
    /* Instructions that one operation of the engine runs at most; 0: options compile.bulk_forward and
     * compile.bulk_backward. */
    uint32_t forward_bulk, backward_bulk;
    uint32_t reserved;
    /* MXNet's group2ctx as pairs, NULL-ended: nodes whose attribute __ctx_group__ is the first ("dev1") run
     * on the second ("cpu:1"). NULL: none. */
    const char *const *group2ctx;
    /* Inputs that most calls find as the call before did (weights, statistics): names, NULL-ended. Outside of
     * training and recording, what follows from these alone is computed once, and again after one was
     * written. NULL: none. */
    const char *const *params;
} tn_cached_options;

/**
 * Makes a callable of a symbol.
 *
 * Its arrays may lie on several devices. A node runs on the device of its group, or where its own variables
 * lie, which are to lie together, or else where its first input is; values are copied in between. Gradients
 * lie where their arrays lie.
 *
 * @param options NULL: zeros
 * @return TN_E_ARG: static_shape without static_alloc · a group without a device, or with two ·
 *         TN_E_KEY: no node is in that group, no input has the name of a parameter ·
 *         TN_E_DEVICE: the device of a group is not there
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_cached_op_create(tn_ctx *ctx, tn_symbol *symbol, const tn_cached_options *options,
                                     tn_cached_op **out);

/** NULL is fine; what is recorded stays valid. @threads any @since 0.1 */
TN_API void tn_cached_op_release(tn_cached_op *op);

/**
 * Runs the whole symbol. Queued; recorded as one call if the thread is recording. Nodes that cut it
 * (tn_graph_breaks) run apart, the rest stays compiled: the log warns once, tn_stats counts. Where something
 * depends on a size that only a kernel's run tells, the call waits for it and is recorded as two.
 *
 * @param in  one array per name of TN_LIST_INPUTS, in that order
 * @param out one per output; out[i] NULL: a new array is made, yours
 * @return TN_E_ARG: a wrong number of inputs or outputs · TN_E_SHAPE, TN_E_DTYPE: inputs that do not fit ·
 *         TN_E_DEVICE: variables of one node on two devices, or a node that would change an array elsewhere ·
 *         TN_E_UNSUPPORTED: an operator has no kernel, or is random in a net over several devices ·
 * TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_cached_op_call(tn_cached_op *op, uint32_t in_count, tn_array *const *in,
                                   uint32_t out_count, tn_array **out);

/** Bytes that the most recent program plans for its activations, and the least that any plan needs.
 * TN_E_STATE: never called, or in parts (sizes that a run tells, functions). @threads any @since 0.1 */
TN_API tn_status tn_cached_op_memory(tn_cached_op *op, uint64_t *planned, uint64_t *bound);

/* ---- programs: a symbol with its weights, for inference ------------------------------------------ */

typedef struct tn_program tn_program;

/**
 * A symbol with its weights. The program keeps its own references on the arrays: weights are shared, not
 * copied.
 *
 * @param params arrays of arguments and aux states by name, with or without "arg:" and "aux:"; further ones
 *               are passed over. Arguments without an array are the program's inputs.
 * @return TN_E_KEY: an aux state without an array · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_program_create(tn_ctx *ctx, tn_symbol *symbol, const tn_params *params, tn_program **out);

/**
 * The same from two files, with the weights on `device` (NULL: the default).
 *
 * On a host, weights that only their packed or folded form is computed with leave memory after that, and are
 * read again from `params_path` when inputs of another shape need another form. The file stays open until the
 * program is destroyed; it may be removed, or replaced by a new one. If it was changed in place the run that
 * needs it fails with TN_E_IO; what was packed before still serves. tn_params_load and tn_program_create keep
 * the weights.
 *
 * @return as tn_symbol_load, tn_params_load and tn_program_create
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_program_load(tn_ctx *ctx, const char *symbol_path, const char *params_path,
                                 const tn_device *device, tn_program **out);

/** NULL is fine; no call of it may be running. @threads owner @since 0.1 */
TN_API void tn_program_destroy(tn_program *p);

/** Inputs that a run needs; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_program_input_count(const tn_program *p);

/** Name of an input, borrowed; NULL: index too large. @threads any @since 0.1 */
TN_API const char *tn_program_input(const tn_program *p, uint32_t index);

/** Outputs of a run; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_program_output_count(const tn_program *p);

/** Name of an output, borrowed; NULL: index too large. @threads any @since 0.1 */
TN_API const char *tn_program_output(const tn_program *p, uint32_t index);

/**
 * Runs the program outside of training and recording. Many threads may run one program at once: each run has
 * memory of its own. The first run with new shapes compiles.
 *
 * @param in  one array per input, in order; NULL: zeros of the shape that follows from the others (labels)
 * @param out one per output; out[i] NULL: a new array is made, yours
 * @return as tn_cached_op_call
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_program_run(tn_program *p, uint32_t in_count, tn_array *const *in, uint32_t out_count,
                                tn_array **out);

/** As tn_cached_op_memory. @threads any @since 0.1 */
TN_API tn_status tn_program_memory(tn_program *p, uint64_t *planned, uint64_t *bound);

#ifdef __cplusplus
}
#endif

#endif
