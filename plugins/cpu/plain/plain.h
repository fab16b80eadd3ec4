/*
 * What the kernel files of this plugin share. A family file defines `tncpu_family_<name>[]`, NULL-ended;
 * kernels.list has one line for it. Every kernel here gives the same bits for every thread count: work is cut
 * by size alone, and what is summed is summed in a fixed order.
 */
#ifndef TNCPU_PLAIN_H
#define TNCPU_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tenon/plugin/op.h"

#include "../common/cpu.h"

/* Iterations of the next loop do not depend on each other: output and input are the same array or apart. */
#if defined(__GNUC__) && !defined(__clang__)
#define TNCPU_IVDEP _Pragma("GCC ivdep")
#else
#define TNCPU_IVDEP
#endif

/* The next loop has eight rounds: sums that run side by side, kept in registers. */
#if defined(__clang__)
#define TNCPU_UNROLL8 _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define TNCPU_UNROLL8 _Pragma("GCC unroll 8")
#else
#define TNCPU_UNROLL8
#endif

#define TNCPU_TYPES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A kernel's row. `flags_` beside DETERMINISTIC: TN_KERNEL_STRIDED, _ADD_TO, _EMPTY_OK. */
#define TNCPU_ROW(...) (&(const tn_kernel)TNCPU_KERNEL(__VA_ARGS__))
#define TNCPU_KERNEL(op_, types_, flags_, prepare_, run_)                                                    \
    TNCPU_KERNEL_NAMED(op_, "plain", types_, flags_, prepare_, run_)
/* A kernel of another name, beside others of the operator. */
#define TNCPU_ROW_NAMED(...) (&(const tn_kernel)TNCPU_KERNEL_NAMED(__VA_ARGS__))
#define TNCPU_KERNEL_NAMED(op_, name_, types_, flags_, prepare_, run_)                                       \
    TNCPU_KERNEL_RANKED(op_, name_, 64, types_, flags_, prepare_, run_, tncpu_release)
#define TNCPU_KERNEL_RANKED(op_, name_, rank_, types_, flags_, prepare_, run_, release_)                     \
    {                                                                                                        \
        .struct_size = TN_END(tn_kernel, release), .rank = rank_, .op = op_, .name = name_, .device = "cpu", \
        .isa = "", .op_version_min = 1, .op_version_max = 1, .flags = TN_KERNEL_DETERMINISTIC | (flags_),    \
        .types = types_, .prepare = prepare_, .run = run_, .release = release_                               \
    }

/* A kernel's prepare and run of one expression, which reads node and plan, or plan and x, and cannot fail. */
#define TNCPU_PREPARE(name, expression)                                                                      \
    static tn_status name(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)                     \
    {                                                                                                        \
        (void)plugin, (void)err;                                                                             \
        expression;                                                                                          \
        return TN_OK;                                                                                        \
    }
#define TNCPU_RUN(name, expression)                                                                          \
    static tn_status name(const tn_plan *plan, const tn_exec *x, tn_err *err)                                \
    {                                                                                                        \
        (void)plan, (void)err;                                                                               \
        expression;                                                                                          \
        return TN_OK;                                                                                        \
    }

#define TNCPU_FLOATS "f32,f64,f16,bf16"
#define TNCPU_NUMBERS "f32,f64,f16,u8,i32,i8,i64,i16,u16,u32,bf16"
#define TNCPU_WHOLE "u8,i32,i8,i64,bool,i16,u16,u32,u64"
#define TNCPU_MOST                                                                                           \
    "f32,f64,f16,u8,i32,i8,i64,bool,i16,u16,u32,bf16" /* all but u64: i64 loops misread its upper half */
#define TNCPU_ALL "f32,f64,f16,u8,i32,i8,i64,bool,i16,u16,u32,u64,bf16"

/* Each argument is of any of the types of TNCPU_FLOATS, _NUMBERS, _MOST, _ALL. plain.c */
extern const char *const tncpu_floats[], *const tncpu_numeric[], *const tncpu_most[], *const tncpu_all[];

/* ---- plain.c ---------------------------------------------------------------------------------- */

void tncpu_release(tn_plan *plan); /* frees plan->state */

/* Memory for plan->state; TN_E_NOMEM with `err` filled. */
tn_status tncpu_state(void *plugin, tn_plan *plan, uint64_t bytes, tn_err *err);

/* The row of a table for an operator; rows begin with the name of theirs, and there is one. */
const void *tncpu_form_of(const void *forms, size_t row_bytes, const char *op);

/* Fills est_ns, threads and flags from a guess of the work of one run, in ns on one thread. */
void tncpu_plan_work(const tn_node *node, tn_plan *plan, double ns);

/* Calls fn(arg, begin, end) for parts of 0 … count-1, on the threads of this run; each part begins at a
 * multiple of `grain`. With one thread: one call. */
typedef void (*tncpu_part)(void *arg, int64_t begin, int64_t end);
void tncpu_for(const tn_plan *plan, const tn_exec *x, int64_t count, int64_t grain, tncpu_part fn, void *arg);

/* True if the tensor is row-major without gaps. */
static inline bool tncpu_dense(const tn_tensor *t)
{
    int64_t expected = 1;

    for (int32_t i = t->ndim; i-- > 0;) {
        if (t->shape[i] != 1 && t->stride[i] != expected)
            return false;
        expected *= t->shape[i];
    }
    return true;
}

static inline bool tncpu_same_shape(const tn_tensor *a, const tn_tensor *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* The bytes of a dense tensor into one of that size, which may be the same memory. */
static inline void tncpu_copy(const tn_tensor *from, const tn_tensor *to)
{
    if (from->data != to->data)
        memcpy(to->data, from->data, (size_t)tn_dtype_size(from->dtype, (uint64_t)tn_tensor_count(from)));
}

static inline bool tncpu_is_float(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}

#endif
