/*
 * Every invariant of a program under construction, checked from scratch after each pass in builds with
 * assertions. What a later pass establishes is not asked of an earlier form.
 */
#include <stdlib.h>
#include <string.h>

#include "compile/code.h"

typedef struct checker {
    const tni_code *c;
    const char *after;
} checker;

static tn_status broken(const checker *k, uint32_t at, const char *what)
{
    return tni_error(TN_E_INTERNAL, "program after pass %s: %u: %s", k->after, at, what);
}

/* Bytes from the first element to behind the last one. */
static uint64_t extent_of(const tn_tensor *t)
{
    int64_t last = 0;

    if (!tn_tensor_count(t) || tni_is_row_major(t->ndim, t->shape, t->stride))
        return t->bytes;
    for (int32_t d = 0; d < t->ndim; d++)
        last += (t->shape[d] - 1) * t->stride[d];
    return tn_dtype_size(t->dtype, (uint64_t)last + 1);
}

static tn_status values_check(const checker *k)
{
    const tni_code *c = k->c;

    for (uint32_t v = 0; v < c->values.count; v++) {
        const tni_value *value = tni_code_value(c, v), *root;

        if (value->root >= c->values.count)
            return broken(k, v, "a value lies in one that does not exist");
        root = tni_code_value(c, value->root);
        if (root->root != value->root)
            return broken(k, v, "the root of a value lies in another one");
        if (value->tensor.ndim >= 0 && value->delta + extent_of(&value->tensor) > root->tensor.bytes)
            return broken(k, v, "a value is larger than what it lies in");
        if (value->def != TNI_NONE && value->def >= c->code.count)
            return broken(k, v, "a value is made by an instruction that does not exist");
    }
    return TN_OK;
}

static tn_status ports_check(const checker *k)
{
    for (uint32_t i = 0; i < k->c->ports.count; i++) {
        const tni_port *port = tni_vec_at(&k->c->ports, i);
        const tni_value *v;

        if (port->value >= k->c->values.count)
            return broken(k, i, "a port has no value");
        v = tni_code_value(k->c, port->value);
        if (v->root != port->value || v->place != TNI_PLACE_PORT || v->port != i)
            return broken(k, i, "the value of a port lies elsewhere");
    }
    return TN_OK;
}

static tn_status code_check(const checker *k)
{
    const tni_code *c = k->c;
    static const uint32_t rank[TNI_PHASES] = {[TNI_ONCE] = 0, [TNI_FORWARD] = 1, [TNI_BACKWARD] = 2};
    uint32_t reached = 0;

    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);
        const uint32_t count = in->in_count + in->out_count;

        if (rank[tni_instruction_phase(in)] < reached)
            return broken(k, i, "an instruction stands behind those of a later phase");
        reached = rank[tni_instruction_phase(in)];
        if ((uint64_t)in->first_operand + count > c->operands.count)
            return broken(k, i, "an instruction has operands that do not exist");
        for (uint32_t o = 0; o < count; o++) {
            const uint32_t v = tni_code_operands(c, in)[o];
            const tni_value *value;

            if (v >= c->values.count)
                return broken(k, i, "an operand is no value");
            value = tni_code_value(c, v);
            if (o < in->in_count && value->def != TNI_NONE && value->def >= i &&
                tni_code_value(c, value->root)->place != TNI_PLACE_PORT)
                return broken(k, i, "an operand is read before it is made");
        }
    }
    return TN_OK;
}

/* In a net nobody makes dense what a kernel wants dense. */
static tn_status strides_check(const checker *k)
{
    const tni_code *c = k->c;

    for (uint32_t i = 0; c->p->graph && i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t o = 0; in->prepared && o < in->in_count; o++)
            if (!tni_code_dense(c, tni_code_operands(c, in)[o]) &&
                !(in->prepared->kernel->flags & TN_KERNEL_STRIDED))
                return broken(k, i, "a kernel that takes dense tensors gets one with strides");
    }
    return TN_OK;
}

/* Each kernel gets its operands in the layouts that its plan names. */
static tn_status layouts_check(const checker *k)
{
    const tni_code *c = k->c;

    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        if (!in->prepared || in->flags & TNI_CODE_REORDER)
            continue;
        for (uint32_t o = 0; o < in->in_count + in->out_count; o++) {
            const tn_plan *plan = &in->prepared->plan;
            const tn_layout *wanted =
                o < in->in_count ? plan->in_layout[o] : plan->out_layout[o - in->in_count];

            if (tni_code_value(c, tni_code_operands(c, in)[o])->tensor.layout != wanted)
                return broken(k, i, "a kernel gets an operand in another layout than it asked for");
        }
    }
    return TN_OK;
}

/* ---- the plan ------------------------------------------------------------------------------------- */

static int by_birth(const void *a, const void *b)
{
    const tni_value *x = *(const tni_value *const *)a, *y = *(const tni_value *const *)b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->root < y->root ? -1 : x->root > y->root;
}

static bool meet(const tni_value *a, const tni_value *b)
{
    return a->place == b->place && a->arena == b->arena && a->offset < b->offset + tni_value_bytes(b) &&
           b->offset < a->offset + tni_value_bytes(a);
}

/* Roots in the order of their birth; those still alive stand in `alive`. */
static tn_status overlaps_check(const checker *k, const tni_value **list, uint32_t count)
{
    const tni_value **alive = tni_calloc(count + 1u, sizeof *alive);
    uint32_t living = 0;
    tn_status st = alive ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++) {
        uint32_t left = 0;

        for (uint32_t a = 0; a < living; a++)
            if (alive[a]->last >= list[i]->first)
                alive[left++] = alive[a];
        living = left;
        for (uint32_t a = 0; a < living && !st; a++)
            if (meet(alive[a], list[i]))
                st = broken(k, list[i]->root, "two values that live together share bytes");
        alive[living++] = list[i];
    }
    tni_free(alive);
    return st;
}

#define OVERLAPS_MAX 4096u /* roots: the check is quadratic in what lives together */

static bool in_arena(const tni_value *v)
{
    return v->place == TNI_PLACE_KEPT || v->place == TNI_PLACE_SCRATCH || v->place == TNI_PLACE_CONSTANT;
}

static tn_status plan_check(const checker *k)
{
    const tni_code *c = k->c;
    const tni_value **list = tni_calloc(c->values.count + 1, sizeof *list);
    uint32_t count = 0;
    tn_status st = list ? TN_OK : TN_E_NOMEM;

    for (uint32_t v = 0; v < c->values.count && list; v++) {
        const tni_value *value = tni_code_value(c, v);

        if (value->root == v && in_arena(value) && tni_value_bytes(value))
            list[count++] = value;
    }
    if (!st && count > 1 && count <= OVERLAPS_MAX) {
        qsort(list, count, sizeof *list, by_birth);
        st = overlaps_check(k, list, count);
    }
    tni_free(list);
    return st;
}

tn_status tni_code_verify(const tni_code *c, const char *after)
{
    const checker k = {c, after};
    tn_status st;

    if ((st = values_check(&k)) || (st = ports_check(&k)) || (st = code_check(&k)) ||
        (st = strides_check(&k)))
        return st;
    if (c->laid_out && (st = layouts_check(&k)))
        return st;
    return strcmp(after, "plan") ? TN_OK : plan_check(&k);
}
