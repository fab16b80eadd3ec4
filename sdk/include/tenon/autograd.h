/**
 * Gradients: record calls, walk back over them.
 *
 * Recording and training are switches of the calling thread. A recorded array keeps what its gradient needs
 * until it is released or a backward went through.
 */
#ifndef TENON_AUTOGRAD_H
#define TENON_AUTOGRAD_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Switches recording of this thread on (1) or off (0); returns what it was. @threads any @since 0.1 */
TN_API int32_t tn_record_set(int32_t on);

/** Switches training mode of this thread (Dropout, BatchNorm) on or off; returns what it was. @threads any
 * @since 0.1 */
TN_API int32_t tn_train_set(int32_t on);

/**
 * Says whether results without dimensions are arrays of no dimensions (NumPy's way, 1) or of shape (1,)
 * (MXNet's, 0, the default) on this thread; returns what it was. A symbol that was loaded with MXNet's
 * np_shape keeps to it.
 * @threads any @since 0.1
 */
TN_API int32_t tn_np_shape_set(int32_t on);

/** 1 while this thread records. @threads any @since 0.1 */
TN_API int32_t tn_recording(void);

/** 1 while this thread is in training mode. @threads any @since 0.1 */
TN_API int32_t tn_training(void);

/**
 * Gives an array a gradient, which backward fills in. The array becomes a leaf: it is taken off the tape.
 *
 * @param mode TN_MODE_WRITE: each backward overwrites · TN_MODE_ADD: adds · TN_MODE_NONE: no gradient
 * A row_sparse gradient holds the rows that are touched: by Embedding with sparse_grad, by `dot` of a csr
 * matrix with the array; other operators give whole arrays, whose rows of zeros are left out. Each backward
 * puts a new array in its place.
 *
 * @param grad the array to fill in, of the same shape, type and device, dense or row_sparse; NULL: a new one
 *             of zeros, in the storage type of `a`
 * @return TN_E_ARG: another mode · TN_E_SHAPE, TN_E_DTYPE, TN_E_DEVICE: `grad` does not fit ·
 *         TN_E_UNSUPPORTED: one of them is csr
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_attach_grad(tn_ctx *ctx, tn_array *a, uint32_t mode, tn_array *grad);

/** Takes the gradient away again. NULL is fine. @threads owner @since 0.1 */
TN_API void tn_detach_grad(tn_array *a);

/** The attached gradient, borrowed, a row_sparse one until the next backward; NULL: none. @threads any
 * @since 0.1 */
TN_API tn_array *tn_array_grad(const tn_array *a);

/** How the attached gradient is filled in: TN_MODE_…. @threads any @since 0.1 */
TN_API uint32_t tn_array_grad_mode(const tn_array *a);

/** The number of the last tn_backward() that filled in the array's gradient: they are counted in the process
 * from 1 on, up to 2^32 - 1, then anew. 0: none has, or `a` is NULL. Another attached gradient does not
 * change it. @threads owner @since 0.1 */
TN_API uint32_t tn_array_grad_turn(const tn_array *a);

/** Gives the array the next such number: its gradient was written by the program, and counts as that of a
 * backward. NULL is fine. @threads owner @since 0.1 */
TN_API void tn_array_grad_touch(tn_array *a);

#define TN_BACKWARD_RETAIN 1u /* what was recorded stays and may be walked again */
#define TN_BACKWARD_PREDICT                                                                                  \
    2u /* gradients of operators that differ in training (Dropout, BatchNorm) are                            \
          those of predict mode; else those of the mode they were recorded in */
#define TN_BACKWARD_CREATE                                                                                   \
    4u /* tn_gradients: they are recorded in turn, so that they may be differentiated;                       \
          what was recorded stays */

/**
 * Gradients of the sum of <heads[i], head_grads[i]> into the attached gradients of all arrays it was made of;
 * zeros where no gradient arrives. What several uses of an array contribute is added one by one, the last use
 * first, with TN_MODE_ADD from the old value on. An array with a gradient may itself be a head. Queued.
 *
 * @param head_grads NULL, or an item NULL: ones
 * @param flags      TN_BACKWARD_…
 * @return TN_E_STATE: a head is not in a computational graph, since it was not recorded or made of no array
 *         with a gradient · a backward without RETAIN went through already ·
 *         TN_E_UNSUPPORTED: an operator on the way has no gradient (its name) · TN_E_SHAPE: a head gradient
 *         does not fit
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_backward(tn_ctx *ctx, uint32_t count, tn_array *const *heads, tn_array *const *head_grads,
                             uint32_t flags);

/** What tn_gradients differentiates. */
typedef struct tn_gradient_call {
    uint32_t struct_size; /* TN_SIZE(tn_gradient_call) */
    uint32_t flags;       /* TN_BACKWARD_… */
    uint32_t head_count, variable_count;
    tn_array *const *heads;
    tn_array *const *head_grads; /* NULL, or an item NULL: ones */
    tn_array *const *variables;  /* arrays with an attached gradient, or recorded ones */
} tn_gradient_call;

/** The gradients of `variables` as new arrays; attached ones stay as they are. Zeros where no gradient
 * arrives. `out`: room for variable_count. Statuses of tn_backward, and TN_E_STATE: a variable has no
 * attached gradient and was not recorded. @threads any @since 0.1 */
TN_API tn_status tn_gradients(tn_ctx *ctx, const tn_gradient_call *call, tn_array **out);

#ifdef __cplusplus
}
#endif

#endif
