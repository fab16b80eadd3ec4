/* tenon/function.h */
#include "tenon/function.h"
#include "api/api.h"

/* What the program gave, in our size. */
static tn_status function_read(const char *function, const tn_function *of, tn_function *out)
{
    const tn_status st = api_options(function, of, out, (uint32_t)sizeof *out);

    if (st)
        return st;
    if (!out->forward)
        return api_null(function, "forward");
    if (out->reserved)
        return tni_error(TN_E_ARG, "%s: `reserved` is not 0", function);
    return TN_OK;
}

tn_status tn_function_call(tn_ctx *ctx, const tn_function *function, uint32_t in_count, tn_array *const *in,
                           uint32_t out_count, tn_array **out)
{
    const tni_function_args args = {.in_count = in_count, .out_count = out_count, .in = in};
    tni_function *f = NULL;
    tn_function k;
    tn_status st;

    if (!ctx || !function || !out)
        return api_null(__func__, "ctx, function or out");
    if (!out_count || out_count > TN_FUNCTION_OUTPUTS_MAX || in_count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%s: %u inputs and %u outputs, possible are at most %u and 1 to %d",
                         __func__, in_count, out_count, TN_NODE_INPUTS_MAX, TN_FUNCTION_OUTPUTS_MAX);
    if ((st = function_read(__func__, function, &k)) || (st = api_arrays(__func__, ctx, in_count, in)) ||
        (st = tni_function_create(&k, k.name, &f)))
        return st;
    if ((st = tni_function_call(ctx, f, &args, out)))
        tni_function_disown(f);
    tni_function_release(f);
    return st;
}

tn_status tn_function_save(tn_function_run *run, uint32_t count, tn_array *const *arrays)
{
    tn_status st;

    if (!run || !arrays)
        return api_null(__func__, "run or arrays");
    if (!run->self)
        return tni_error(TN_E_STATE, "%s: arrays are saved in the forward of a function", __func__);
    if (count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%s: %u arrays, at most %u are possible", __func__, count,
                         TN_NODE_INPUTS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (!arrays[i])
            return tni_error(TN_E_ARG, "%s: array %u is NULL", __func__, i);
    if ((st = api_arrays(__func__, run->ctx, count, arrays)))
        return st;
    return tni_function_save(run, count, arrays);
}

tn_status tn_function_register(tn_ctx *ctx, const struct tn_op *op, const tn_function *function)
{
    tn_function k;
    tn_status st;

    if (!ctx || !op || !function)
        return api_null(__func__, "ctx, op or function");
    if ((st = function_read(__func__, function, &k)))
        return st;
    return tni_function_register(ctx, op, &k);
}
