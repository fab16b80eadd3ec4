/*
 * A kernel's rules for data types and storage types, read by the host's own code, kernel_types.c of core:
 * asked as the host asks, with the outputs and, behind them, the inputs that change.
 */
#include <string.h>

#include "compile/select.h"
#include "lab.h"

/* Of a request the definition and the tensors' types. */
typedef struct asked {
    tni_opdef def;
    tni_request r;
    tn_tensor tensors[CHK_ARGS_MAX];
    const tn_tensor *in[CHK_ARGS_MAX], *out[2 * CHK_ARGS_MAX];
} asked;

/* `f` NULL: of the names alone. */
static const tni_request *ask(const tn_op *op, const chk_args *args, const chk_facts *f, asked *a)
{
    a->def.op = op;
    a->r = (tni_request){
        .def = &a->def, .in = a->in, .out = a->out, .in_count = args->in_count, .in_names = args->in_names};
    for (uint32_t i = 0; i < args->in_count + args->out_count; i++) {
        if (f)
            a->tensors[i] = (tn_tensor){.dtype = f->dtype[i], .storage = (uint16_t)f->storage[i]};
        *(i < args->in_count ? &a->in[i] : &a->out[a->r.out_count++]) = &a->tensors[i];
    }
    for (uint32_t i = 0; i < args->in_count; i++)
        if (tn_op_mutates(op, args->in_count, i))
            a->out[a->r.out_count++] = a->in[i];
    return &a->r;
}

const char *chk_rule_of(const tn_op *op, const tn_kernel *k, const chk_args *args, uint32_t index)
{
    asked a;

    return tni_kernel_rule(ask(op, args, NULL, &a), k, index);
}

bool chk_rule_allows(const tn_op *op, const chk_facts *f, const char *rule, int32_t dtype)
{
    asked a;

    return dtype >= 0 && tni_rule_allows(ask(op, &f->args, f, &a), rule, dtype);
}

bool chk_types_match(const tn_op *op, const tn_kernel *k, const chk_facts *f)
{
    char why[200];
    asked a;

    return tni_kernel_types_match(ask(op, &f->args, f, &a), k, why, sizeof why);
}

uint32_t chk_rule_mask(const char *rule)
{
    return tni_rule_dtypes(rule);
}

uint32_t chk_rule_storages(const char *rule)
{
    return tni_rule_storages(rule);
}

const char *chk_argument_name(const tn_op *op, const chk_args *args, uint32_t index)
{
    const bool output = index >= args->in_count;
    const char *const *inputs = args->in_names ? args->in_names : op->inputs;
    const char *const *names = output ? op->outputs : inputs;
    uint32_t number;
    const int32_t at = output ? tn_op_argument(names, args->out_count, index - args->in_count, &number)
                              : tn_op_argument(names, args->in_count, index, &number);

    return at >= 0 ? names[at] : output ? "output" : "input";
}
