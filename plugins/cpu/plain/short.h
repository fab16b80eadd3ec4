/*
 * Kernels for float16 and bfloat16 made of kernels for float32, and for int8 of kernels for float64:
 * arguments of the short types are converted, results are rounded once, those of int8 saturate. For operators
 * that few nets call with short types: conversion costs a pass over each argument, and room for it.
 */
#ifndef TNCPU_SHORT_H
#define TNCPU_SHORT_H

#include "plain.h"

typedef tn_status (*tncpu_prepare)(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err);
typedef tn_status (*tncpu_run)(const tn_plan *plan, const tn_exec *x, tn_err *err);

/* A kernel that takes float32 and float64. */
typedef struct tncpu_short {
    tncpu_prepare prepare;
    tncpu_run run;
    bool forward;    /* prepare reads the plan of a backward's forward, made by tncpu_short_prepare, too */
    uint32_t unread; /* bit i: input i has a shape and perhaps no bytes */
} tncpu_short;

/* Prepares and runs a call by such a kernel, the first input being of any floating point type. */
tn_status tncpu_short_prepare(const tncpu_short *wide, void *plugin, const tn_node *node, tn_plan *plan,
                              tn_err *err);
tn_status tncpu_short_run(const tncpu_short *wide, const tn_plan *plan, const tn_exec *x, tn_err *err);

/* A kernel's row as TNCPU_KERNEL makes it, for all floating point types. */
#define TNCPU_SHORT_ROW(id, op_, types_, flags_, prepare_, forward_, run_)                                   \
    TNCPU_SHORT_NAMED(id, op_, "plain", types_, flags_, prepare_, run_, forward_, 0)
/* The same for a kernel that reads nothing of input 1 but its shape. */
#define TNCPU_SHORT_SHAPED(id, op_, types_, flags_, prepare_, run_)                                          \
    TNCPU_SHORT_NAMED(id, op_, "plain", types_, flags_, prepare_, run_, false, 1u << 1)
/* The same beside a kernel called "plain" for float32 and float64. */
#define TNCPU_SHORT_BESIDE(id, op_, types_, flags_, prepare_, run_)                                          \
    TNCPU_SHORT_NAMED(id, op_, "short", types_, flags_, prepare_, run_, false, 0)
#define TNCPU_SHORT_NAMED(id, op_, name_, types_, flags_, prepare_, run_, forward_, unread_)                 \
    static const tncpu_short id##_wide = {prepare_, run_, forward_, unread_};                                \
    static tn_status id##_short_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)       \
    {                                                                                                        \
        return tncpu_short_prepare(&id##_wide, plugin, node, plan, err);                                     \
    }                                                                                                        \
    static tn_status id##_short_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                      \
    {                                                                                                        \
        return tncpu_short_run(&id##_wide, plan, x, err);                                                    \
    }                                                                                                        \
    static const tn_kernel id =                                                                              \
        TNCPU_KERNEL_NAMED(op_, name_, types_, flags_, id##_short_prepare, id##_short_run);
#define TNCPU_SHORT_KERNEL(id, op_, types_, flags_, prepare_, run_)                                          \
    TNCPU_SHORT_ROW(id, op_, types_, flags_, prepare_, false, run_)

#endif
