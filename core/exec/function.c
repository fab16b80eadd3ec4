/*
 * A program's own forward and backward: the forward, and what is kept for the backward (room autograd).
 *
 * Forward runs on the caller, with recording off. Its outputs are handed out as views of their own, which
 * the tape node is attached to: what the program keeps of the arrays that it made does not point to the node.
 */
#include "exec/internal.h"

#include <string.h>

/* ---- functions ----------------------------------------------------------------------------------------- */

tn_status tni_function_create(const tn_function *of, const char *name, tni_function **out)
{
    tni_function *f = tni_zalloc(sizeof *f);

    if (!f || !(f->name = tni_strdup(name ? name : "function"))) {
        tni_free(f);
        return TN_E_NOMEM;
    }
    tni_ref_init(&f->refs);
    f->arg = of->arg;
    f->forward = of->forward;
    f->backward = of->backward;
    f->destroy = of->destroy;
    *out = f;
    return TN_OK;
}

void tni_function_retain(tni_function *f)
{
    tni_ref_retain(&f->refs);
}

/* Whoever gives up an array, or closes a context, goes on with it afterwards. */
static void destroy_call(const tni_function *f)
{
    tni_scope *scope = tni_scope_get();
    const bool before = scope->called;

    scope->called = true;
    f->destroy(f->arg);
    scope->called = before;
}

void tni_function_release(tni_function *f)
{
    if (!f || !tni_ref_release(&f->refs))
        return;
    if (f->destroy)
        destroy_call(f);
    tni_free(f->name);
    tni_free(f);
}

void tni_function_disown(tni_function *f)
{
    f->destroy = NULL;
}

static tn_status definition_check(const tn_op *op)
{
    if (op->struct_size < TN_END(tn_op, gradient))
        return TN_OK; /* the set refuses it */
    if (op->exec != TN_EXEC_HOST || op->gradient || op->mutates || op->effects || op->flags)
        return tni_error(
            TN_E_ARG,
            "operator %.80s: the definition of a function has exec TN_EXEC_HOST, no gradient, no "
            "flags and no effects, and changes no input",
            op->name ? op->name : "");
    return TN_OK;
}

tn_status tni_function_register(tni_context *c, const tn_op *op, const tn_function *of)
{
    tni_function *f = NULL;
    tn_status st;

    if ((st = definition_check(op)) || (st = tni_function_create(of, op->name, &f)))
        return st;
    if ((st = tni_opset_add_function(c->ops, op, f))) {
        tni_function_disown(f);
        tni_function_release(f);
    }
    return st;
}

bool tni_function_differentiable(const tni_opdef *def)
{
    const tni_function *f = def->function;

    return f && f->backward;
}

void tni_functions_release(tni_opset *ops)
{
    for (size_t i = 0; ops && i < tni_opset_count(ops); i++)
        tni_function_release(tni_opset_at(ops, i)->function);
}

tn_status tni_function_status(const tni_function *f, const char *what, tn_status st)
{
    tn_err err;

    if (st < TN_OK || st > TN_E_INTERNAL)
        return tni_error(TN_E_ARG, "function %.80s: %s ended with %d, which is no status", f->name, what, st);
    if (!st)
        return TN_OK;
    tni_error_get(&err);
    return tni_error(st, "function %.80s: %s: %.380s", f->name, what,
                     err.code == st && err.message[0] ? err.message : "failed without saying why");
}

/* ---- what the tape keeps ------------------------------------------------------------------------------- */

static void arrays_release(uint32_t count, tni_array *const *arrays)
{
    for (uint32_t i = 0; arrays && i < count; i++)
        tni_array_release(arrays[i]);
}

void tni_function_record_drop(tni_function_record *k)
{
    arrays_release(k->saved_count, k->saved);
    tni_free(k->saved);
    k->saved = NULL;
    k->saved_count = 0;
}

void tni_function_record_free(tni_function_record *k)
{
    if (!k)
        return;
    tni_function_record_drop(k);
    tni_attrs_release(k->attrs);
    tni_function_release(k->function);
    tni_free(k);
}

/* ---- a forward ----------------------------------------------------------------------------------------- */

typedef struct forward {
    tni_context *c;
    tni_function *f;
    const tni_function_args *args;
    tni_array **out; /* what the program made, then views of it */
    bool recorded, asked;
    tni_array **saved;
    uint32_t saved_count;
} forward;

tn_status tni_function_save(tn_function_run *run, uint32_t count, tni_array *const *arrays)
{
    forward *w = run->self;

    if (!w || w->asked)
        return tni_error(TN_E_STATE, "arrays are saved once, in the forward of a function");
    for (uint32_t i = 0; i < count; i++)
        if (arrays[i]->storage_type != TN_STORAGE_DENSE)
            return tni_error(TN_E_UNSUPPORTED, "array %u to be saved is sparse", i);
    if (w->recorded && count && !(w->saved = tni_calloc(count, sizeof(*w->saved))))
        return TN_E_NOMEM;
    w->asked = true;
    for (; w->recorded && w->saved_count < count; w->saved_count++)
        tni_array_retain(w->saved[w->saved_count] = arrays[w->saved_count]);
    return TN_OK;
}

static tn_status inputs_check(const forward *w)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < w->args->in_count && !st; i++) {
        tni_array *a = w->args->in[i];

        if (!a)
            st = tni_error(TN_E_ARG, "function %.80s: input %u is NULL", w->f->name, i);
        else if (a->storage_type != TN_STORAGE_DENSE)
            st = tni_error(TN_E_UNSUPPORTED, "function %.80s: input %u is sparse", w->f->name, i);
        else
            st = tni_array_shape_wait(a);
    }
    return st;
}

static tn_status forward_run(forward *w)
{
    const tni_function_args *args = w->args;
    tn_function_run run = {.struct_size = TN_SIZE(tn_function_run),
                           .in_count = args->in_count,
                           .out_count = args->out_count,
                           .ctx = w->c,
                           .arg = w->f->arg,
                           .attrs = args->attrs ? args->attrs->values : NULL,
                           .self = w};
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    tn_status st;

    scope->recording = false;
    scope->draw = NULL; /* of a net around it */
    scope->called = true;
    tni_error_clear();
    st = w->f->forward(&run, args->in, w->out);
    *scope = before;
    return tni_function_status(w->f, "forward", st);
}

static tn_status output_check(const forward *w, uint32_t i)
{
    tni_array *a = w->out[i];

    if (!a)
        return tni_error(TN_E_ARG, "function %.80s: forward made no output %u", w->f->name, i);
    if (a->storage->space != w->c->space)
        return tni_error(TN_E_ARG, "function %.80s: output %u belongs to another context", w->f->name, i);
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "function %.80s: output %u is sparse", w->f->name, i);
    return tni_array_shape_wait(a);
}

/* Each becomes a view that nobody else has. */
static tn_status outputs_part(const forward *w)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < w->args->out_count && !st; i++) {
        tni_array *view = NULL;

        if ((st = output_check(w, i)) || (st = tni_array_detach(w->out[i], &view)))
            break;
        tni_array_release(w->out[i]);
        w->out[i] = view;
    }
    return st;
}

static tn_status record(forward *w)
{
    const tni_function_args *args = w->args;
    const tni_scope *scope = tni_scope_get();
    tni_function_record *k = tni_zalloc(sizeof *k + args->out_count * sizeof *k->out);

    if (!k)
        return TN_E_NOMEM;
    tni_function_retain(k->function = w->f);
    k->attrs = args->attrs ? tni_attrs_retain(args->attrs) : NULL;
    k->training = scope->training;
    k->np_shape = scope->np_shape;
    k->saved = w->saved; /* moved */
    k->saved_count = w->saved_count;
    w->saved = NULL;
    k->out_count = args->out_count;
    for (uint32_t i = 0; i < args->out_count; i++) {
        const tni_array *a = w->out[i];

        k->out[i] = (tni_function_spec){.device = a->storage->device, .dtype = a->dtype};
        k->out[i].shape.ndim = a->ndim;
        memcpy(k->out[i].shape.dim, a->shape, (size_t)a->ndim * sizeof *a->shape);
    }
    return tni_tape_record_function(w->c, k, args->in_count, args->in, w->out);
}

tn_status tni_function_call(tni_context *c, tni_function *f, const tni_function_args *args, tni_array **out)
{
    tni_array *made[TN_FUNCTION_OUTPUTS_MAX] = {NULL};
    forward w = {.c = c, .f = f, .args = args, .out = made};
    tn_status st = inputs_check(&w);

    if (st)
        return st;
    w.recorded = tni_scope_get()->recording && tni_tape_tracks(args->in_count, args->in);
    if (!(st = forward_run(&w)) && !(st = outputs_part(&w)) && w.recorded)
        st = record(&w);
    if (st)
        arrays_release(args->out_count, made);
    else
        memcpy(out, made, args->out_count * sizeof(*made));
    if (w.saved)
        arrays_release(w.saved_count, w.saved);
    tni_free(w.saved);
    return st;
}

/* ---- as an operator ------------------------------------------------------------------------------------ */

/* What was given is written while recording like the output of any operator. */
static tn_status outputs_give(tni_context *c, uint32_t count, tni_array *const *made, tni_array **out)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++)
        if (out[i])
            st = tni_invoke_copy(c, made[i], &out[i]);
    for (uint32_t i = 0; i < count; i++)
        if (!st && !out[i])
            out[i] = made[i];
        else
            tni_array_release(made[i]);
    return st;
}

tn_status tni_function_invoke(tni_context *c, const tni_opdef *def, const tni_function_args *args,
                              tni_array **out, uint32_t *made)
{
    tni_array *all[TN_FUNCTION_OUTPUTS_MAX] = {NULL};
    tni_function_args call = *args;
    tni_args counts;
    tn_status st = tni_op_args(def, args->attrs, args->in_count, &counts);

    if (st)
        return st;
    if (args->in_count != counts.in_count)
        return tni_error(TN_E_ARG, "operator %s takes %u inputs, got %u", def->op->name, counts.in_count,
                         args->in_count);
    if (counts.out_count > TN_FUNCTION_OUTPUTS_MAX)
        return tni_error(TN_E_UNSUPPORTED, "operator %s has %u outputs, a function at most %d", def->op->name,
                         counts.out_count, TN_FUNCTION_OUTPUTS_MAX);
    if (args->out_count < counts.visible_count)
        return tni_error(TN_E_ARG, "operator %s has %u outputs, room for %u is given", def->op->name,
                         counts.visible_count, args->out_count);
    call.out_count = counts.out_count;
    if ((st = tni_function_call(c, def->function, &call, all)))
        return st;
    arrays_release(counts.out_count - counts.visible_count, all + counts.visible_count);
    if (!(st = outputs_give(c, counts.visible_count, all, out)) && made)
        *made = counts.visible_count;
    return st;
}
