/*
 * Group load: what has no meaning yet is 0 in all that a plugin hands over as tables. Hosts refuse the rest,
 * so that a later version may give it a meaning. Plans, devices and blocks of memory are looked at where they
 * are made (K-plan, D-info, P-block).
 */
#include "internal.h"

static void number_zero(chk_env *env, const char *what, const char *of, uint32_t unknown)
{
    chk_count(env);
    if (unknown)
        chk_fail(env, NULL, "%s of %s: %#x has no meaning", what, of ? of : "(nameless)", (unsigned)unknown);
}

static void operator_look(chk_env *env, const tn_op *op)
{
    if (op->struct_size < TN_END(tn_op, gradient))
        return; /* another rule's */
    number_zero(env, "flags", op->name, op->flags & ~TN_OP_KNOWN);
    number_zero(env, "effects", op->name, op->effects & ~TN_EFFECT_KNOWN);
    number_zero(env, "reserved", op->name, op->reserved);
    if (op->exec > TN_EXEC_HOST)
        chk_fail(env, NULL, "exec of %s: hosts run no operators of kind %u",
                 op->name ? op->name : "(nameless)", (unsigned)op->exec);
    for (const tn_attr_def *a = op->attrs; a && a->name; a++) {
        number_zero(env, "flags", a->name, a->flags & ~TN_ATTR_F_KNOWN);
        number_zero(env, "reserved", a->name, a->reserved);
    }
}

static void table_look(chk_env *env, const tn_capability *head)
{
    const void *table = head;

    if (!head->kind || (head->kind >= TN_KIND_ITER && head->kind <= TN_KIND_PASS))
        chk_fail(env, NULL, "a table of kind %u, which no host uses yet", (unsigned)head->kind);
    chk_count(env);
    if (head->kind == TN_KIND_OPS && ((const tn_op_table *)table)->ops)
        for (const tn_op *const *op = ((const tn_op_table *)table)->ops; *op; op++)
            operator_look(env, *op);
    if (head->kind == TN_KIND_KERNELS && ((const tn_kernel_table *)table)->kernels)
        for (const tn_kernel *const *k = ((const tn_kernel_table *)table)->kernels; *k; k++)
            number_zero(env, "flags", (*k)->name, (*k)->flags & ~TN_KERNEL_KNOWN);
    if (head->kind == TN_KIND_OPTIONS && ((const tn_option_table *)table)->rows)
        for (const tn_option_row *const *row = ((const tn_option_table *)table)->rows; *row; row++)
            number_zero(env, "flags", (*row)->key, (*row)->flags);
}

void chk_load_unknown(chk_env *env)
{
    const tn_plugin *d = chk_descriptor(env);

    number_zero(env, "flags", d->name, d->flags);
    for (size_t i = 0; d->capabilities[i]; i++)
        table_look(env, d->capabilities[i]);
}
