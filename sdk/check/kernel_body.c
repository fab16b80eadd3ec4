/*
 * Rule K-body: an operator whose definition has a body, and that has a kernel too, gives by the kernel what
 * the body says. The library runs the body: under another name, which no kernel is for, the same definition
 * is served by the fused kernel of plugin `cpu`.
 */
#include <stdlib.h>
#include <string.h>

#include "lab.h"

#define PROBLEMS_MAX 16

typedef struct body_test {
    char name[200]; /* of the definition without a kernel */
    uint32_t left;
} body_test;

/* The definition as the plugin wrote it; NULL: it is another one's, or has no body. */
static const tn_op *written(const chk_lab *lab)
{
    const tn_op *op;

    for (size_t i = 0; (op = chk_own_op(lab->env, i)); i++)
        if (op->name && !strcmp(op->name, lab->op->name) && op->struct_size >= TN_END(tn_op, body) &&
            op->body)
            return op;
    return NULL;
}

/* The context keeps the definition as long as it lives, which is until the process ends. */
static bool twin_register(chk_lab *lab, const tn_op *op, body_test *t)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    tn_op *twin;

    (void)snprintf(t->name, sizeof t->name, "kit_body_of_%s", op->name);
    if (!tn_op_find(lab->ctx, t->name, &info))
        return true;
    twin = calloc(1, sizeof *twin + sizeof t->name);
    if (!twin)
        return false;
    memcpy(twin, op, op->struct_size < sizeof *twin ? op->struct_size : sizeof *twin);
    memcpy(twin + 1, t->name, sizeof t->name);
    twin->struct_size = (uint32_t)TN_END(tn_op, body);
    twin->name = (const char *)(twin + 1);
    twin->aliases = NULL;
    twin->gradient = NULL;
    twin->gradients = twin->computes = NULL;
    twin->flags &= ~(uint32_t)TN_OP_BACKWARD; /* of those the tape alone may ask */
    if (!tn_op_register(lab->ctx, twin))
        return true;
    free(twin);
    return false;
}

/* What the body gives, row-major; NULL: nobody runs it. */
static void *body_output(chk_lab *lab, const chk_problem *p, const body_test *t)
{
    tn_array *in[CHK_ARGS_MAX] = {NULL}, *out[CHK_ARGS_MAX] = {NULL};
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = p->f.args.in_count,
                             .op = t->name,
                             .attrs = chk_attr_pairs(&lab->arena, p),
                             .in = in};
    void *data = NULL;
    uint32_t count = 0;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->f.args.in_count && !st; i++)
        st = tn_array_from(lab->ctx, p->f.dtype[i], p->f.shape[i].ndim, p->f.shape[i].dim, p->in_data[i],
                           &in[i]);
    if (!st && !tn_invoke_text(lab->ctx, &call, CHK_ARGS_MAX, out, &count)) {
        data = chk_take(&lab->arena, tn_array_bytes(out[0]) + 1);
        if (tn_array_read(out[0], data, tn_array_bytes(out[0])))
            data = NULL;
    }
    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++) {
        tn_array_release(in[i]);
        tn_array_release(out[i]);
    }
    return data;
}

static bool body_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_problem *wide = chk_take(&lab->arena, sizeof *wide);
    chk_outputs *got = chk_take(&lab->arena, sizeof *got);
    body_test *t = arg;
    const char *differs;
    void *want;
    tn_err err;

    if (!chk_host_would_run(lab, p) || chk_outputs_of(lab, &lab->side, p, got, &err))
        return true;
    if (!chk_is_float(got->dtype[0]) || !chk_widen(lab, p, TN_F64, false, wide))
        *wide = *p;
    want = body_output(lab, wide, t);
    if (!want)
        return true;
    chk_count(lab->env);
    differs = chk_values_differ(&lab->arena, got->data[0], got->dtype[0], want,
                                wide->f.dtype[chk_out(&wide->f, 0)], got->elements[0], 1);
    chk_fail_if(lab->env, differs, "K-body", "its operator's body says otherwise: %s (%s)", differs, p->text);
    return --t->left > 0;
}

void chk_values_body(chk_lab *lab)
{
    body_test t = {.left = PROBLEMS_MAX};
    const tn_op *op = written(lab);

    if (op && twin_register(lab, op, &t))
        chk_problems(lab, CHK_PROBLEMS_FEW, body_visit, &t);
}
