/*
 * Kernels for float16 and bfloat16 made of kernels for float32: arguments of the short types are converted,
 * results are rounded once. For operators that few nets call with short types: conversion costs a pass over
 * each argument, and room for it.
 */
#ifndef TNCPU_SHORT_H
#define TNCPU_SHORT_H

#include "plain.h"

typedef tn_status (*tncpu_prepare)(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err);
typedef tn_status (*tncpu_run)(const tn_plan *plan, const tn_exec *x, tn_err *err);

/* Prepares and runs a call by the functions of a kernel that takes float32 and float64, the first input being
 * of any floating point type. The plan of a backward's forward was made by tncpu_short_prepare, too. */
tn_status tncpu_short_prepare(tncpu_prepare prepare, bool forward, void *plugin, const tn_node *node,
                              tn_plan *plan, tn_err *err);
tn_status tncpu_short_run(tncpu_run run, const tn_plan *plan, const tn_exec *x, tn_err *err);

/* A kernel's row as TNCPU_KERNEL makes it, for all floating point types. */
#define TNCPU_SHORT_ROW(id, op_, types_, flags_, prepare_, forward_, run_)                                   \
    TNCPU_SHORT_NAMED(id, op_, "plain", types_, flags_, prepare_, forward_, run_)
/* The same beside a kernel called "plain" for float32 and float64. */
#define TNCPU_SHORT_BESIDE(id, op_, types_, flags_, prepare_, run_)                                          \
    TNCPU_SHORT_NAMED(id, op_, "short", types_, flags_, prepare_, false, run_)
#define TNCPU_SHORT_NAMED(id, op_, name_, types_, flags_, prepare_, forward_, run_)                          \
    static tn_status id##_short_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)       \
    {                                                                                                        \
        return tncpu_short_prepare(prepare_, forward_, plugin, node, plan, err);                             \
    }                                                                                                        \
    static tn_status id##_short_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                      \
    {                                                                                                        \
        return tncpu_short_run(run_, plan, x, err);                                                          \
    }                                                                                                        \
    static const tn_kernel id =                                                                              \
        TNCPU_KERNEL_NAMED(op_, name_, types_, flags_, id##_short_prepare, id##_short_run);
#define TNCPU_SHORT_KERNEL(id, op_, types_, flags_, prepare_, run_)                                          \
    TNCPU_SHORT_ROW(id, op_, types_, flags_, prepare_, false, run_)

#endif
