/*
 * Definitions that say whose kernels serve them (`computes`): what they leave out is their meaning's. So
 * "_npi_exp" is a row of a name and a meaning, and no kernel knows of it.
 */
#include "op/derived.h"

#include <string.h>

bool tni_op_is_derived(const tn_op *op)
{
    return op->struct_size >= TN_END(tn_op, computes) && op->computes;
}

static tn_status attrs_check(const tn_op *op, const tn_op *meaning)
{
    const tn_attr_def *a = op->attrs, *b = meaning->attrs;

    if (!a)
        return TN_OK;
    for (; b && b->name && a->name; a++, b++)
        if ((strcmp(a->name, b->name) && !op->gradient && !op->gradients) || a->type != b->type ||
            a->flags != b->flags)
            break;
    if (a->name || (b && b->name))
        return tni_error(TN_E_ARG, "operator %s computes %s, but their attributes differ from %.80s on",
                         op->name, meaning->name, a->name ? a->name : b->name);
    return TN_OK;
}

static tn_status args_check(const tn_op *op, const tn_op *meaning)
{
    if ((op->inputs && tni_names_count(op->inputs) != tni_names_count(meaning->inputs)) ||
        (op->outputs && tni_names_count(op->outputs) != tni_names_count(meaning->outputs)))
        return tni_error(TN_E_ARG, "operator %s computes %s, but the number of their arguments differs",
                         op->name, meaning->name);
    if (op->exec != meaning->exec || op->effects & ~meaning->effects || op->mutates & ~meaning->mutates ||
        (op->struct_size >= TN_END(tn_op, mutates_tail) && (op->mutates_period || op->mutates_tail)))
        return tni_error(TN_E_ARG,
                         "operator %s computes %s, but they are executed or change inputs differently",
                         op->name, meaning->name);
    return TN_OK;
}

#define TAKE(member)                                                                                         \
    do {                                                                                                     \
        if (!out->member)                                                                                    \
            out->member = meaning->member;                                                                   \
    } while (0)
#define BORROW(function, bit)                                                                                \
    do {                                                                                                     \
        if (!out->function && (out->function = meaning->function) != NULL)                                   \
            *borrowed |= (bit);                                                                              \
    } while (0)

tn_status tni_op_derive(const tn_op *op, const tni_opdef *from, tn_op *out, uint32_t *borrowed)
{
    const tn_op *meaning = from->op;
    tn_status st;

    *borrowed = 0;
    if (op->shapes)
        return tni_error(TN_E_ARG, "operator %s computes %s: shapes are those of that one", op->name,
                         meaning->name);
    if (from->function)
        return tni_error(TN_E_ARG, "operator %s computes %s, which is a function of the program", op->name,
                         meaning->name);
    if ((st = attrs_check(op, meaning)) || (st = args_check(op, meaning)))
        return st;
    memset(out, 0, sizeof *out);
    memcpy(out, op, op->struct_size < sizeof *out ? op->struct_size : sizeof *out);
    out->struct_size = sizeof *out;
    out->version = meaning->version;
    out->computes = meaning->name;
    TAKE(doc);
    TAKE(attrs);
    TAKE(inputs);
    TAKE(outputs);
    TAKE(mutates);
    if (meaning->struct_size >= TN_END(tn_op, mutates_tail)) {
        TAKE(mutates_period);
        TAKE(mutates_tail);
    }
    if (meaning->struct_size >= TN_END(tn_op, view))
        out->view = meaning->view;
    if (meaning->struct_size >= TN_END(tn_op, shapes_only))
        out->shapes_only = meaning->shapes_only;
    TAKE(effects);
    TAKE(visible);
    if (!op->gradient && !op->gradients)
        TAKE(flags);
    BORROW(args, TNI_OF_ARGS);
    BORROW(shape, TNI_OF_SHAPE);
    if (!out->types)
        BORROW(dtype, TNI_OF_DTYPE);
    BORROW(storage, TNI_OF_STORAGE);
    BORROW(cost, TNI_OF_COST);
    if (!(out->flags & TN_OP_ZERO_GRADIENT) && !out->gradients)
        BORROW(gradient, TNI_OF_GRADIENT);
    return TN_OK;
}
