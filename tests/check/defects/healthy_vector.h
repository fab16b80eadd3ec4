/*
 * A healthy plugin with kernels for two operators of the core, for dense tensors: abs, _maximum, Concat. A
 * file that includes it says by DEFECT what is wrong with it, and by NAME what it is called.
 */
#ifndef TN_DEFECTS_HEALTHY_VECTOR_H
#define TN_DEFECTS_HEALTHY_VECTOR_H

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/plugin/op/join.h"
#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    BY_SIZE,       /* keeps the first result for each number of elements */
    LEAKS_LARGE,   /* a block in each run for many elements */
    THREAD_LEFT,   /* the first run begins a thread that never ends */
    OWN_LOCALE,    /* runs give the thread a locale of its own */
    JOINS_EQUAL,   /* all inputs are as long as the first one, it is thought */
    LOSES_NAN,     /* what is not a number becomes 0 */
    ENDS_AT_MAX,   /* what is infinite becomes the largest number */
    BY_DOUBLE,     /* 64-bit integers go through float64 */
    BY_DIFFERENCE, /* the larger of two integers is found by their difference */
};

static tn_status vector_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    return TN_OK;
}

static void vector_kept(float *out, int64_t count)
{
    static int64_t kept_count;
    static float kept;

    if (kept_count != count)
        kept = out[0];
    kept_count = count;
    out[0] = kept;
}

static float single_abs(float v)
{
    if (DEFECT == LOSES_NAN && isnan(v))
        return 0;
    if (DEFECT == ENDS_AT_MAX && isinf(v))
        return FLT_MAX;
    return fabsf(v);
}

static bool is_larger(int32_t a, int32_t b)
{
    return DEFECT == BY_DIFFERENCE ? (int32_t)((uint32_t)a - (uint32_t)b) > 0 : a > b;
}

static void *thread_main(void *unused)
{
    for (;;)
        (void)pause();
    return unused;
}

static void thread_begin(void)
{
    pthread_t thread;

    if (!pthread_create(&thread, NULL, thread_main, NULL))
        (void)pthread_detach(thread);
}

/* What runs do to the process. */
static void vector_trespass(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (DEFECT == THREAD_LEFT)
        (void)pthread_once(&once, thread_begin);
    if (DEFECT == OWN_LOCALE && uselocale((locale_t)0) == LC_GLOBAL_LOCALE)
        (void)uselocale(newlocale(LC_NUMERIC_MASK, "C", (locale_t)0));
}

static tn_status abs_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_exec_count(x, 0);
    static void *volatile lost;
    const void *in = x->in[0]->data;
    void *out = x->out[0]->data;

    (void)plan, (void)err;
    if (DEFECT == LEAKS_LARGE && count > 900)
        lost = malloc(48);
    (void)lost;
    vector_trespass();
    for (int64_t i = 0; i < count; i++)
        switch (x->out[0]->dtype) {
        case TN_F32:
            ((float *)out)[i] = single_abs(((const float *)in)[i]);
            break;
        case TN_F64:
            ((double *)out)[i] = fabs(((const double *)in)[i]);
            break;
        case TN_I64:
            ((int64_t *)out)[i] = DEFECT == BY_DOUBLE
                                      ? (int64_t)fmin(fabs((double)((const int64_t *)in)[i]), 9e18)
                                      : llabs(((const int64_t *)in)[i]);
            break;
        default:
            ((int32_t *)out)[i] = abs(((const int32_t *)in)[i]);
            break;
        }
    if (DEFECT == BY_SIZE && x->out[0]->dtype == TN_F32)
        vector_kept(out, count);
    return TN_OK;
}

static tn_status maximum_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_exec_count(x, 0);

    (void)plan, (void)err;
    for (int64_t i = 0; i < count; i++)
        if (x->out[0]->dtype == TN_F32) {
            const float a = ((const float *)x->in[0]->data)[i], b = ((const float *)x->in[1]->data)[i];

            ((float *)x->out[0]->data)[i] = a > b || isnan(a) ? a : b;
        } else {
            const int32_t a = ((const int32_t *)x->in[0]->data)[i], b = ((const int32_t *)x->in[1]->data)[i];

            ((int32_t *)x->out[0]->data)[i] = is_larger(a, b) ? a : b;
        }
    return TN_OK;
}

/* Each input's block of one row of the axis after the other. */
static tn_status concat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *out = x->out[0];
    const int64_t count = tn_attrs_int(x->attrs, TN_Concat_num_args);
    int64_t axis = tn_attrs_int(x->attrs, TN_Concat_dim), outer = 1;
    uint64_t inner = tn_dtype_bytes(out->dtype);
    char *to = out->data;

    (void)plan, (void)err;
    axis += axis < 0 ? out->ndim : 0;
    for (int32_t d = 0; d < out->ndim; d++) {
        outer *= d < axis ? out->shape[d] : 1;
        inner *= d > axis ? (uint64_t)out->shape[d] : 1;
    }
    for (int64_t row = 0; row < outer; row++)
        for (int64_t i = 0; i < count; i++) {
            const tn_tensor *in = x->in[DEFECT == JOINS_EQUAL ? 0 : i];
            const uint64_t bytes = inner * (uint64_t)in->shape[axis];

            memcpy(to, (const char *)x->in[i]->data + (uint64_t)row * bytes, (size_t)bytes);
            to += bytes;
        }
    return TN_OK;
}

static const char *const abs_types[] = {"data:f32,f64,i32,i64", "*:=data", NULL};
static const char *const concat_types[] = {"arg0:f32", "*:=arg0", NULL};
static const char *const maximum_types[] = {"lhs:f32,i32", "*:=lhs", NULL};

#define KERNEL(op_, types_, run_)                                                                            \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 128, .op = op_, .name = op_ ".vector",  \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types_, .prepare = vector_prepare, .run = run_,           \
    }

static const tn_kernel abs_kernel = KERNEL("abs", abs_types, abs_run);
static const tn_kernel maximum_kernel = KERNEL("_maximum", maximum_types, maximum_run);
static const tn_kernel concat_kernel = KERNEL("Concat", concat_types, concat_run);
static const tn_kernel *const kernels[] = {&abs_kernel, &maximum_kernel, &concat_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const capabilities[] = {&kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "nobody", "Apache-2.0", "a plugin with a defect", "", "kernels@cpu", NULL,
                 NULL, NULL, capabilities);

#endif
