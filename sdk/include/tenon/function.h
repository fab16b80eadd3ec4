/**
 * Functions: a program's own forward and backward, in C over arrays, among recorded operators.
 *
 * A function is called (tn_function_call), or is an operator by name (tn_function_register), which symbols
 * and hybridized nets may hold: such a net is cut there, and the rest stays compiled.
 */
#ifndef TENON_FUNCTION_H
#define TENON_FUNCTION_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_FUNCTION_OUTPUTS_MAX 64

/** One forward, or one backward, under way. Lives until that returned; nobody else may use it. */
typedef struct tn_function_run {
    uint32_t struct_size;
    uint32_t in_count, out_count;
    uint32_t saved_count; /* in backward */
    tn_ctx *ctx;
    void *arg;              /* of the function */
    const tn_value *attrs;  /* of a registered one, by the definition's indices; else NULL */
    tn_array *const *saved; /* in backward: what forward saved, in that order; may only be read */
    const uint8_t *wanted;  /* in backward, per input: 1: somebody wants its gradient */
    void *self;             /* the library's */
} tn_function_run;

/** A forward and its backward. */
typedef struct tn_function {
    uint32_t struct_size; /* TN_SIZE(tn_function) */
    uint32_t reserved;
    const char *name; /* for messages; copied; NULL: "function" */
    void *arg;
    /**
     * [any] Runs on the caller's thread, before the call returns, with recording off. May queue work and
     * wait.
     *
     * @param in  run->in_count arrays, borrowed
     * @param out room for run->out_count; each becomes an array of the context, which the call takes (an
     *            input that is handed out is retained first). After a failure what is there is released.
     */
    tn_status (*forward)(tn_function_run *run, tn_array *const *in, tn_array **out);
    /**
     * [any] Runs on a callback thread of the engine, when the gradients of all outputs are there, with
     * recording off, in the mode (training or not) of the call. May queue work, record and wait, but not for
     * everything (tn_wait_all). Up to 16 run at once, as tasks with TN_TASK_HOST do. Other arrays than those
     * given may only be used if no work that waits for this backward writes them. NULL: the function has no
     * gradient.
     *
     * @param out_grads run->out_count arrays, borrowed, which may only be read; zeros where none arrives
     * @param in_grads  room for run->in_count; each that run->wanted asks for becomes an array, which is
     *                  taken, of the input's shape, type and device; others may stay NULL
     */
    tn_status (*backward)(tn_function_run *run, tn_array *const *out_grads, tn_array **in_grads);
    /** [any] Once, on any thread, when nothing can call the function any more: of one that was called, when
     * the call was not recorded, or its outputs are gone; of a registered one, when the context closes. May
     * not wait for the engine. May be NULL. */
    void (*destroy)(void *arg);
} tn_function;

/**
 * Calls a function. If the thread records, and some input is recorded or has an attached gradient, the call
 * is one node of what is recorded: backward hands the gradients of its outputs to `backward`, and gets those
 * of its inputs, which are written or added as for any operator. Operators inside of `forward` are not
 * recorded.
 *
 * A failure of `backward`, and a gradient that is missing or does not fit, come out at the gradients that
 * depend on it (tn_array_wait), with the name of the function; other gradients are right.
 *
 * @param function  copied; `arg` is taken on success: `destroy` is called once, perhaps within this call
 * @param in_count  0 or more
 * @param out_count 1 to TN_FUNCTION_OUTPUTS_MAX
 * @param out       all become new arrays, yours; what they were does not matter
 * @return TN_E_ARG: NULLs, counts, an array of another context, a missing output ·
 *         TN_E_UNSUPPORTED: a sparse array · what `forward` returned, with its text · TN_E_NOMEM.
 *         `out` is as it was, and `destroy` is not called.
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_function_call(tn_ctx *ctx, const tn_function *function, uint32_t in_count,
                                  tn_array *const *in, uint32_t out_count, tn_array **out);

/**
 * Keeps arrays for the backward: inputs, outputs, or others. What they hold then must not change until the
 * backward ran. Called in `forward`, once; calls that are not recorded keep nothing.
 *
 * @return TN_E_STATE: not in a forward, or the second call · TN_E_ARG: NULLs, an array of another context ·
 *         TN_E_UNSUPPORTED: a sparse array · TN_E_NOMEM
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_function_save(tn_function_run *run, uint32_t count, tn_array *const *arrays);

/**
 * Adds an operator of the program whose kernels are a function: eager calls by name or site, symbols, nets
 * and programs may use it. In a net its forward runs on the thread that calls the net, between the compiled
 * parts, which are queued; tn_graph_breaks names it and tn_stats.cuts counts it.
 *
 * @param op       the definition, with `exec` TN_EXEC_HOST; no gradient, nothing mutated, no effects. `shape`
 *                 and `dtype` serve inference before a run, and may be NULL. Lives as long as the context.
 * @param function its name is not looked at: it is the operator's. `arg` is taken on success. It is called
 *                 by several threads at once if several call the operator.
 * @return TN_E_ARG: the definition is not complete, contradicts itself, or is of another kind · TN_E_KEY: a
 *         name is taken · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_function_register(tn_ctx *ctx, const struct tn_op *op, const tn_function *function);

#ifdef __cplusplus
}
#endif

#endif
