/*
 * A definition's inference, driven to its fix point as a host does it, without the host.
 */
#include <string.h>

#include "lab.h"

#define ROUNDS_MAX 16

static uint32_t names_count(const char *const *names)
{
    uint32_t count = 0;

    while (names && names[count])
        count++;
    return count;
}

bool chk_is_variadic(const char *const *names)
{
    const uint32_t count = names_count(names);
    const size_t length = count ? strlen(names[count - 1]) : 0;

    return length > 1 && names[count - 1][length - 1] == '*';
}

tn_infer chk_infer_of(const tn_op *op, const chk_attrs *attrs, const chk_args *args, uint32_t flags,
                      tn_err *err)
{
    memset(err, 0, sizeof *err);
    return (tn_infer){
        .struct_size = (uint32_t)TN_END(tn_infer, bodies),
        .flags = flags,
        .op = op,
        .attrs = attrs->values,
        .attr_count = attrs->count,
        .in_count = args->in_count,
        .out_count = args->out_count,
        .visible_count = args->visible_count,
        .err = err,
    };
}

tn_status chk_infer_args(const tn_op *op, const chk_attrs *attrs, uint32_t given, chk_args *out, tn_err *err)
{
    chk_args args = {names_count(op->inputs), names_count(op->outputs), op->visible, 0, NULL};

    if (chk_is_variadic(op->inputs))
        args.in_count = given;
    if (op->args) {
        tn_infer i = chk_infer_of(CHK_TOLD(op, args), attrs, &args, 0, err);
        tn_status st = op->args(&i);

        if (st)
            return st;
        args = (chk_args){i.in_count, i.out_count, i.visible_count, 0, i.in_names};
    }
    if ((uint64_t)args.in_count + 2 * (uint64_t)args.out_count > CHK_ARGS_MAX ||
        (!args.out_count && !op->mutates)) /* an operator may do nothing but change its inputs */
        return TN_E_ARG;
    if (!args.visible_count || args.visible_count > args.out_count)
        args.visible_count = args.out_count;
    *out = args;
    return TN_OK;
}

void chk_facts_unknown(chk_facts *f)
{
    memset(f->shape, 0, sizeof f->shape);
    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++) {
        f->shape[i].ndim = -1;
        f->dtype[i] = TN_DTYPE_UNKNOWN;
    }
}

bool chk_shape_equal(const tn_shape *a, const tn_shape *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int32_t d = 0; d < a->ndim; d++)
        if (a->dim[d] != b->dim[d])
            return false;
    return true;
}

int64_t chk_shape_elements(const tn_shape *s, int64_t most)
{
    int64_t count = 1;

    if (s->ndim < 0 || s->ndim > TN_NDIM_MAX)
        return -1;
    for (int32_t d = 0; d < s->ndim; d++) {
        if (s->dim[d] < 0 || (s->dim[d] > 0 && count > most / s->dim[d]))
            return -1;
        count *= s->dim[d];
    }
    return count;
}

const char *chk_shape_text(chk_arena *a, const tn_shape *s)
{
    char text[300] = "(";

    if (s->ndim < 0)
        return "?";
    for (int32_t d = 0; d < s->ndim && d < 12; d++) {
        const size_t used = strlen(text);

        if (s->dim[d] < 0)
            (void)snprintf(text + used, sizeof text - used, "%s?", d ? "," : "");
        else
            (void)snprintf(text + used, sizeof text - used, "%s%lld", d ? "," : "", (long long)s->dim[d]);
    }
    return chk_text(a, "%s%s)", text, s->ndim == 1 ? "," : "");
}

bool chk_facts_equal(const chk_facts *a, const chk_facts *b)
{
    for (uint32_t i = 0; i < chk_all(a); i++)
        if (!chk_shape_equal(&a->shape[i], &b->shape[i]) || a->dtype[i] != b->dtype[i])
            return false;
    return true;
}

tn_status chk_infer_shapes(const tn_op *op, const chk_attrs *attrs, uint32_t flags, chk_facts *f, tn_err *err)
{
    tn_shape *at[CHK_ARGS_MAX];
    chk_facts before;
    tn_status st;

    if (!op->shape)
        return TN_OK;
    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++)
        at[i] = &f->shape[i];
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        tn_infer i = chk_infer_of(CHK_TOLD(op, shape), attrs, &f->args, flags, err);

        i.in_shape = at;
        i.out_shape = at + f->args.in_count;
        i.bodies = chk_bodies_for(op, attrs, &f->args);
        before = *f;
        if ((st = op->shape(&i)))
            return st;
        if (chk_facts_equal(&before, f))
            return TN_OK;
    }
    return tn_fail(err, TN_E_INTERNAL, "inference of shapes does not come to rest");
}

tn_status chk_dtypes_unify(uint32_t count, int32_t *const *dtypes, tn_err *err)
{
    int32_t one = TN_DTYPE_UNKNOWN;

    for (uint32_t i = 0; i < count; i++) {
        if (*dtypes[i] >= 0 && one >= 0 && *dtypes[i] != one)
            return tn_fail(err, TN_E_DTYPE, "two data types that must agree differ");
        one = *dtypes[i] >= 0 ? *dtypes[i] : one;
    }
    for (uint32_t i = 0; i < count; i++)
        *dtypes[i] = one;
    return TN_OK;
}

bool chk_infer_storages(const tn_op *op, const chk_attrs *attrs, chk_facts *f)
{
    const uint32_t ins = f->args.in_count;
    int32_t given[CHK_ARGS_MAX];
    tn_err err;

    memcpy(given, f->storage, sizeof given);
    for (uint32_t o = ins; o < CHK_ARGS_MAX; o++)
        f->storage[o] = op->storage ? TN_STORAGE_UNKNOWN : TN_STORAGE_DENSE;
    for (uint32_t round = 0; round < 3 && op->storage; round++) {
        tn_infer i = chk_infer_of(op, attrs, &f->args, 0, &err);

        i.in_storage = f->storage;
        i.out_storage = f->storage + ins;
        if (op->storage(&i))
            return false;
    }
    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++) {
        if (i >= ins && f->storage[i] == TN_STORAGE_UNKNOWN)
            f->storage[i] = TN_STORAGE_DENSE;
        if (i < ins && (given[i] != f->storage[i] || (!op->storage && given[i] != TN_STORAGE_DENSE)))
            return false;
    }
    return true;
}

tn_status chk_infer_dtypes(const tn_op *op, const chk_attrs *attrs, chk_facts *f, tn_err *err)
{
    int32_t *all[CHK_ARGS_MAX];
    chk_facts before;
    tn_status st;

    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++)
        all[i] = &f->dtype[i];
    if (!op->dtype)
        return chk_dtypes_unify(chk_all(f), all, err);
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        tn_infer i = chk_infer_of(CHK_TOLD(op, dtype), attrs, &f->args, 0, err);

        i.in_dtype = f->dtype;
        i.out_dtype = f->dtype + f->args.in_count;
        i.bodies = chk_bodies_for(op, attrs, &f->args);
        before = *f;
        if ((st = op->dtype(&i)))
            return st;
        if (chk_facts_equal(&before, f))
            return TN_OK;
    }
    return tn_fail(err, TN_E_INTERNAL, "inference of data types does not come to rest");
}
