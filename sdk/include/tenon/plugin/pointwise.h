/**
 * The code of operator `_fused_pointwise`, for kernels that compute it: its attribute `program` is
 *
 *     program = step { ";" step } ">" value { "," value }         the values are the outputs, in order
 *     step    = operator "[" [ number { "," number } ] "]" "(" value { "," value } ")" ":" dtype
 *     number  = 1 to 16 hexadecimal digits, the tn_value of the operator's attribute | "r" digits
 *     value   = "i" digits, an input | "t" digits, the result of an earlier step
 *
 * "r3" is a run-time attribute: entry 3 of tn_exec.attrs, a float; `prepare` sees 0 in its place. Results
 * have the shape of the outputs, inputs any that the operator takes beside them. Each step rounds to its data
 * type, so that the bits are those of the operators one by one. A kernel of `_fused_pointwise` stands for the
 * kernels of its plugin that say TN_KERNEL_POINTWISE: programs fuse those, and no others.
 */
#ifndef TENON_PLUGIN_POINTWISE_H
#define TENON_PLUGIN_POINTWISE_H

#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_POINT_STEPS_MAX 32
#define TN_POINT_INPUTS_MAX 16  /* of the whole */
#define TN_POINT_OUTPUTS_MAX 16 /* of the whole */
#define TN_POINT_RUN_MAX 128    /* indices of run-time attributes */
#define TN_POINT_OPERANDS_MAX 4 /* of a step */
#define TN_POINT_ATTRS_MAX 8    /* of a step */
#define TN_POINT_NAME_MAX 64    /* of an operator, with its end */
#define TN_POINT_RESULT 256u    /* value TN_POINT_RESULT + k: the result of step k; below: an input */
#define TN_POINT_NUMBER UINT32_MAX

typedef struct tn_point_step {
    char op[TN_POINT_NAME_MAX];
    int32_t dtype; /* of the result; TN_DTYPE_UNKNOWN: that of the first operand */
    uint32_t operand_count, attr_count;
    uint32_t operand[TN_POINT_OPERANDS_MAX]; /* values */
    uint32_t run[TN_POINT_ATTRS_MAX];        /* TN_POINT_NUMBER: attrs[k]; else the run-time attribute */
    tn_value attrs[TN_POINT_ATTRS_MAX];
} tn_point_step;

typedef struct tn_point_code {
    uint32_t step_count, input_count, output_count,
        reserved;                          /* input_count: the highest that is read, and 1 */
    uint32_t output[TN_POINT_OUTPUTS_MAX]; /* values: results only */
    tn_point_step step[TN_POINT_STEPS_MAX];
} tn_point_code;

static inline int32_t tn_point_take_(const char **at, char c)
{
    if (**at != c)
        return 0;
    ++*at;
    return 1;
}

static inline tn_status tn_point_digits_(const char **at, uint32_t limit, uint32_t *out)
{
    uint64_t value;

    if (tn_text_digits(at, &value) || value >= limit)
        return TN_E_ARG;
    *out = (uint32_t)value;
    return TN_OK;
}

static inline tn_status tn_point_value_(const char **at, tn_point_code *c, uint32_t *out)
{
    if (tn_point_take_(at, 't')) {
        if (tn_point_digits_(at, c->step_count, out))
            return TN_E_ARG;
        *out += TN_POINT_RESULT;
        return TN_OK;
    }
    if (!tn_point_take_(at, 'i') || tn_point_digits_(at, TN_POINT_INPUTS_MAX, out))
        return TN_E_ARG;
    c->input_count = c->input_count > *out ? c->input_count : *out + 1;
    return TN_OK;
}

static inline tn_status tn_point_number_(const char **at, uint32_t *run, tn_value *out)
{
    uint32_t digits = 0;

    *out = 0;
    *run = TN_POINT_NUMBER;
    if (tn_point_take_(at, 'r'))
        return tn_point_digits_(at, TN_POINT_RUN_MAX, run);
    for (; digits < 17; digits++, ++*at) {
        const char c = **at;
        const int32_t decimal = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';

        if (!decimal && !letter)
            break;
        *out = *out << 4 | (tn_value)(decimal ? c - '0' : c - 'a' + 10);
    }
    return digits >= 1 && digits <= 16 ? TN_OK : TN_E_ARG;
}

static inline tn_status tn_point_step_(const char **at, tn_point_code *c)
{
    tn_point_step *s = &c->step[c->step_count];
    uint32_t length = 0, dtype;

    for (; **at && **at != '[' && length < TN_POINT_NAME_MAX - 1; ++*at)
        s->op[length++] = **at;
    s->op[length] = '\0';
    s->operand_count = s->attr_count = 0;
    if (!length || !tn_point_take_(at, '['))
        return TN_E_ARG;
    while (!tn_point_take_(at, ']')) {
        if (s->attr_count == TN_POINT_ATTRS_MAX || (s->attr_count && !tn_point_take_(at, ',')) ||
            tn_point_number_(at, &s->run[s->attr_count], &s->attrs[s->attr_count]))
            return TN_E_ARG;
        s->attr_count++;
    }
    if (!tn_point_take_(at, '('))
        return TN_E_ARG;
    do {
        if (s->operand_count == TN_POINT_OPERANDS_MAX ||
            tn_point_value_(at, c, &s->operand[s->operand_count]))
            return TN_E_ARG;
        s->operand_count++;
    } while (tn_point_take_(at, ','));
    if (!tn_point_take_(at, ')') || !tn_point_take_(at, ':'))
        return TN_E_ARG;
    s->dtype = TN_DTYPE_UNKNOWN;
    if (!tn_point_take_(at, '=')) {
        if (tn_point_digits_(at, TN_DTYPE_LIMIT, &dtype))
            return TN_E_ARG;
        s->dtype = (int32_t)dtype;
    }
    c->step_count++;
    return TN_OK;
}

/** [any] Gives each result its data type, `dtypes` being those of the inputs. */
static inline void tn_point_dtypes(tn_point_code *c, const int32_t *dtypes)
{
    for (uint32_t i = 0; i < c->step_count; i++) {
        const uint32_t v = c->step[i].operand[0];

        if (c->step[i].dtype == TN_DTYPE_UNKNOWN)
            c->step[i].dtype = v < TN_POINT_RESULT ? dtypes[v] : c->step[v - TN_POINT_RESULT].dtype;
    }
}

/**
 * [any] Reads a code. No allocation, no locale.
 *
 * @param at  may be NULL; on failure the first byte that cannot be read, else the end of the text
 * @return TN_OK, or TN_E_ARG: not such a text, or over a limit
 * @since 0.1
 */
static inline tn_status tn_point_read(const char *text, tn_point_code *out, const char **at)
{
    const char *p = text ? text : "";
    tn_status st = TN_OK;

    out->step_count = out->input_count = out->output_count = out->reserved = 0;
    do
        st = out->step_count < TN_POINT_STEPS_MAX ? tn_point_step_(&p, out) : TN_E_ARG;
    while (!st && tn_point_take_(&p, ';'));
    if (!st && !tn_point_take_(&p, '>'))
        st = TN_E_ARG;
    if (!st)
        do
            st = out->output_count < TN_POINT_OUTPUTS_MAX && *p == 't'
                     ? tn_point_value_(&p, out, &out->output[out->output_count])
                     : TN_E_ARG;
        while (!st && ++out->output_count && tn_point_take_(&p, ','));
    if (!st && *p)
        st = TN_E_ARG;
    if (at)
        *at = p;
    return st;
}

#ifdef __cplusplus
}
#endif

#endif
