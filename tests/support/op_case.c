/*
 * The forms of a case. The plain form is compared with what is expected, every other form with the plain one
 * bit by bit; gradients with central differences in f64 of the plain form.
 */
#include "op_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op_run.h"

#define SAMPLES 40 /* elements of an input whose derivative is taken by differences */

typedef struct case_run {
    const tn_op_case *c;
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_args args;
    uint32_t in_count, failures;
    op_tensor in[OP_ARGS_MAX];
    tn_shape out_shape[OP_ARGS_MAX];
    int32_t out_dtype[OP_ARGS_MAX];
    const char *op;
} case_run;

static void failed(case_run *r, const char *where, const char *what)
{
    print_error("%s, case \"%s\", %s: %s\n", r->op, r->c->name, where, what);
    r->failures++;
}

static double tolerance_of(const tn_op_case *c, int32_t dtype)
{
    if (c->tolerance > 0)
        return c->tolerance;
    switch (dtype) {
    case TN_F64:
        return 1e-9;
    case TN_F32:
        return 1e-5;
    case TN_F16:
        return 2e-3;
    case TN_BF16:
        return 2e-2;
    default:
        return 1e-12;
    }
}

/* ---- setting up ------------------------------------------------------------------------------- */

/* "a=1 b=(2, 3)" */
tn_status op_attrs_split(const tni_opdef *def, const char *text, tni_attrs **out)
{
    char copy[1024];
    const char *names[64], *texts[64];
    size_t count = 0;
    int depth = 0;
    char *p = copy;

    snprintf(copy, sizeof copy, "%s", text ? text : "");
    while (*p && count < 64) {
        char *equal;

        while (*p == ' ')
            p++;
        if (!*p)
            break;
        names[count] = p;
        for (; *p && (*p != ' ' || depth > 0); p++)
            depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        if (*p)
            *p++ = '\0';
        equal = strchr(names[count], '=');
        if (!equal)
            return tni_error(TN_E_ATTR, "a case has an attribute without =: %s", names[count]);
        *equal = '\0';
        texts[count++] = equal + 1;
    }
    return tni_attrs_parse(def, count, names, texts, out);
}

static uint32_t node_flags(const tn_op_case *c)
{
    return (c->flags & TN_CASE_TRAIN ? TN_NODE_TRAIN : 0) |
           (c->flags & TN_CASE_NP_SHAPE ? TN_NODE_NP_SHAPE : 0);
}

/* Reads the inputs (as f64 where floating, if asked) and infers. */
static tn_status case_infer(case_run *r, int32_t dtype)
{
    tn_shape in_shape[OP_ARGS_MAX];
    int32_t in_dtype[OP_ARGS_MAX];
    uint32_t flags = (r->c->flags & TN_CASE_TRAIN ? TN_INFER_TRAIN : 0) |
                     (r->c->flags & TN_CASE_NP_SHAPE ? TN_INFER_NP_SHAPE : 0);

    for (uint32_t i = 0; i < OP_ARGS_MAX; i++) {
        in_shape[i].ndim = r->out_shape[i].ndim = -1;
        in_dtype[i] = r->out_dtype[i] = -1;
        if (i < r->in_count) {
            op_tensor_read(&r->in[i], r->c->in[i], dtype, i + 1);
            tn_shape *s = &in_shape[i];

            s->ndim = r->in[i].t.ndim;
            memcpy(s->dim, r->in[i].shape, sizeof s->dim);
            in_dtype[i] = r->in[i].t.dtype;
        }
    }
    if (r->args.in_count != r->in_count)
        return tni_error(TN_E_ARG, "%u inputs are given, %u are taken", r->in_count, r->args.in_count);
    return op_infer(r->def, r->attrs, &r->args, flags, in_shape, r->out_shape, in_dtype, r->out_dtype);
}

static void inputs_free(case_run *r)
{
    for (uint32_t i = 0; i < r->in_count; i++)
        op_tensor_free(&r->in[i]);
}

/* ---- forms ------------------------------------------------------------------------------------ */

static tn_status form_run(case_run *r, const op_kernel *kernel, const op_form *form, op_node *n,
                          op_tensor *in)
{
    op_tensor *pointers[OP_ARGS_MAX];
    tn_status st;

    memset(n, 0, sizeof *n);
    n->def = r->def;
    n->attrs = tni_attrs_retain(r->attrs);
    n->args = r->args;
    n->kernel = *kernel;
    for (uint32_t i = 0; i < r->in_count; i++) {
        bool mutated = tn_op_mutates(r->def->op, r->in_count, i);

        op_tensor_create(&in[i], r->in[i].t.dtype, r->in[i].t.ndim, r->in[i].shape,
                         form->strided && !mutated);
        op_tensor_copy(&r->in[i], &in[i]);
        pointers[i] = &in[i];
    }
    st = op_node_run(n, pointers, r->out_shape, r->out_dtype, form, NULL);
    return st;
}

static void form_free(case_run *r, op_node *n, op_tensor *in)
{
    op_node_free(n);
    for (uint32_t i = 0; i < r->in_count; i++)
        op_tensor_free(&in[i]);
}

/* To a dense tensor; integers wrap, as sums of kernels do. */
static void element_add(op_tensor *t, int64_t k, int64_t v)
{
    const size_t bytes = tn_dtype_bytes(t->t.dtype);
    uint64_t bits = 0;

    if (t->t.dtype == TN_F32 || t->t.dtype == TN_F64 || t->t.dtype == TN_F16 || t->t.dtype == TN_BF16) {
        op_tensor_set(t, k, op_tensor_get(t, k) + (double)v);
        return;
    }
    memcpy(&bits, (char *)t->t.data + (size_t)k * bytes, bytes); /* the low ones come first */
    bits += (uint64_t)v;
    memcpy((char *)t->t.data + (size_t)k * bytes, &bits, bytes);
}

static void form_compare(case_run *r, const op_node *plain, const op_kernel *kernel, const op_form *form,
                         const char *name)
{
    op_tensor in[OP_ARGS_MAX];
    op_node n;
    char where[200];

    snprintf(where, sizeof where, "%s/%s %s", kernel->plugin_name, kernel->kernel->name, name);
    if (form_run(r, kernel, form, &n, in))
        failed(r, where, op_error()->message);
    for (uint32_t o = 0; o < plain->out_count && r->failures < 20; o++) {
        bool add = form->mode == TN_MODE_ADD && o < n.args.out_count;
        const char *differs;
        op_tensor sum;

        op_tensor_create(&sum, plain->out[o].t.dtype, plain->out[o].t.ndim, plain->out[o].shape, false);
        op_tensor_copy(&plain->out[o], &sum);
        for (int64_t k = 0; add && k < tn_tensor_count(&sum.t); k++)
            element_add(&sum, k, k % 5);
        differs = op_tensor_differs(&n.out[o], &sum, add ? tolerance_of(r->c, sum.t.dtype) : 0);
        if (differs)
            failed(r, where, differs);
        op_tensor_free(&sum);
    }
    form_free(r, &n, in);
}

static void expected_compare(case_run *r, const op_node *plain, const op_kernel *kernel)
{
    for (uint32_t o = 0; o < 16; o++) {
        op_tensor expected;
        const char *differs;
        char where[200];

        if (!r->c->out[o])
            continue;
        snprintf(where, sizeof where, "%s/%s output %u", kernel->plugin_name, kernel->kernel->name, o);
        if (o >= plain->out_count) {
            failed(r, where, "is not there");
            continue;
        }
        op_tensor_read(&expected, r->c->out[o], -1, 1);
        differs = op_tensor_differs(&plain->out[o], &expected, tolerance_of(r->c, expected.t.dtype));
        if (differs)
            failed(r, where, differs);
        op_tensor_free(&expected);
    }
}

/* What the first of the host's kernels makes that serves; false: none does. */
static bool host_run(case_run *r, const op_kernel *kernel, op_node *n, op_tensor *in)
{
    const op_form form = {.threads = 1, .node_flags = node_flags(r->c), .mode = TN_MODE_WRITE};
    int32_t in_dtype[OP_ARGS_MAX];
    op_kernel host[32];
    size_t count;

    for (uint32_t i = 0; i < r->in_count; i++)
        in_dtype[i] = r->in[i].t.dtype;
    count = op_kernels_of_host(r->def, &r->args, in_dtype, r->out_dtype, host, 32);
    for (size_t k = 0; k < count && host[k].kernel != kernel->kernel; k++) {
        const tn_status st = form_run(r, &host[k], &form, n, in);

        if (!st)
            return true;
        if (st != TN_E_UNSUPPORTED)
            failed(r, "the host's kernel", op_error()->message);
        form_free(r, n, in);
    }
    return false;
}

/* On a device: with what the host makes, where the case does not say what comes. */
static void host_compare(case_run *r, const op_node *plain, const op_kernel *kernel)
{
    op_tensor in[OP_ARGS_MAX];
    op_node n;

    if (r->c->out[0] || !host_run(r, kernel, &n, in))
        return;
    for (uint32_t o = 0; o < plain->out_count && r->failures < 20; o++) {
        const char *differs =
            op_tensor_differs(&plain->out[o], &n.out[o], tolerance_of(r->c, n.out[o].t.dtype));
        char where[200];

        snprintf(where, sizeof where, "%s/%s output %u, beside the host", kernel->plugin_name,
                 kernel->kernel->name, o);
        if (differs)
            failed(r, where, differs);
    }
    form_free(r, &n, in);
}

static bool any_empty(const op_node *n)
{
    for (uint32_t i = 0; i < n->args.out_count; i++)
        if (tn_tensor_count(&n->out[i].t) == 0)
            return true;
    return false;
}

static bool has_bool_out(const case_run *r)
{
    for (uint32_t i = 0; i < r->args.out_count; i++)
        if (r->out_dtype[i] == TN_BOOL)
            return true;
    return false;
}

static void kernel_forms(case_run *r, const op_kernel *kernel)
{
    const op_form plain_form = {.threads = 1, .node_flags = node_flags(r->c), .mode = TN_MODE_WRITE};
    uint32_t kernel_flags = kernel->kernel->flags;
    op_tensor in[OP_ARGS_MAX];
    op_node plain;
    op_form form;
    tn_status st = form_run(r, kernel, &plain_form, &plain, in);

    if (st) {
        if (st != TN_E_UNSUPPORTED)
            failed(r, kernel->plugin_name, op_error()->message);
        form_free(r, &plain, in);
        return;
    }
    if (!any_empty(&plain) || (kernel_flags & TN_KERNEL_EMPTY_OK))
        expected_compare(r, &plain, kernel);
    if (!any_empty(&plain))
        host_compare(r, &plain, kernel);
    if (!(r->c->flags & TN_CASE_ONE_FORM)) {
        for (uint32_t threads = 2; threads <= 4 && (plain.plan.flags & TN_PLAN_THREAD_INVARIANT);
             threads += 2) {
            form = plain_form;
            form.threads = threads;
            form_compare(r, &plain, kernel, &form, threads == 2 ? "2 threads" : "4 threads");
        }
        form = plain_form;
        form.mode = TN_MODE_ADD;
        if ((kernel_flags & TN_KERNEL_ADD_TO) && !has_bool_out(r))
            form_compare(r, &plain, kernel, &form, "added");
        form = plain_form;
        form.strided = true;
        if (kernel_flags & TN_KERNEL_STRIDED)
            form_compare(r, &plain, kernel, &form, "strided");
        form.mode = TN_MODE_ADD;
        if ((kernel_flags & TN_KERNEL_STRIDED) && (kernel_flags & TN_KERNEL_ADD_TO) && !has_bool_out(r))
            form_compare(r, &plain, kernel, &form, "strided, added");
        form = plain_form;
        form.in_place = true;
        for (uint32_t o = 0; o < plain.args.out_count; o++)
            if (plain.inplace[o] >= 0) {
                form_compare(r, &plain, kernel, &form, "in place");
                break;
            }
    }
    form_free(r, &plain, in);
}

/* ---- gradients -------------------------------------------------------------------------------- */

static bool is_float(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}

typedef struct grad_run {
    op_tape *tape;
    tn_edge in[OP_ARGS_MAX], out, heads[OP_ARGS_MAX], edges[OP_ARGS_MAX], grads[OP_ARGS_MAX];
    op_tensor weights[OP_ARGS_MAX];
    uint32_t head_count;
} grad_run;

/* Invokes the operator on a tape with the given inputs; heads get random weights, or ones. */
static tn_status grad_open(case_run *r, const op_tensor *in, bool ones, grad_run *g)
{
    tn_status st;

    memset(g, 0, sizeof *g);
    g->tape = op_tape_create(node_flags(r->c));
    for (uint32_t i = 0; i < r->in_count; i++)
        g->in[i] = op_tape_input(g->tape, &in[i]);
    if ((st = op_tape_invoke(g->tape, r->def, r->attrs, r->in_count, g->in, NULL, &g->out)))
        return st;
    for (uint32_t o = 0; o < op_tape_outputs(g->tape, g->out); o++) {
        tn_edge edge = {g->out.node, o, 0};
        const op_tensor *v = op_tape_value(g->tape, edge);
        op_tensor *w = &g->weights[g->head_count];

        if (!is_float(v->t.dtype))
            continue;
        op_tensor_create(w, v->t.dtype, v->t.ndim, v->shape, false);
        for (int64_t k = 0; k < tn_tensor_count(&w->t); k++)
            op_tensor_set(w, k, ones ? 1.0 : cos((double)k * 1.7 + o) + 0.3);
        g->edges[g->head_count] = edge;
        g->heads[g->head_count++] = op_tape_input(g->tape, w);
    }
    return TN_OK;
}

static void grad_close(grad_run *g)
{
    op_tape_destroy(g->tape);
    for (uint32_t o = 0; o < g->head_count; o++)
        op_tensor_free(&g->weights[o]);
}

/* sum of weights x outputs; second: sum of weights x gradients, the weights being cosines. */
static tn_status loss(case_run *r, const op_tensor *in, bool second, double *out)
{
    grad_run g;
    tn_status st = grad_open(r, in, false, &g);

    *out = 0;
    if (!st && second)
        st = op_tape_backward(g.tape, g.head_count, g.edges, g.heads, r->in_count, g.in, g.grads);
    for (uint32_t o = 0; !st && !second && o < g.head_count; o++) {
        const op_tensor *v = op_tape_value(g.tape, g.edges[o]);

        for (int64_t k = 0; k < tn_tensor_count(&v->t); k++)
            *out += op_tensor_get(v, k) * op_tensor_get(&g.weights[o], k);
    }
    for (uint32_t i = 0; !st && second && i < r->in_count; i++) {
        const op_tensor *v = g.grads[i].node ? op_tape_value(g.tape, g.grads[i]) : NULL;

        for (int64_t k = 0; v && k < tn_tensor_count(&v->t); k++)
            *out += op_tensor_get(v, k) * (cos((double)k * 1.3 + i) + 0.2);
    }
    grad_close(&g);
    return st;
}

/* The gradient of the loss, by the definition's gradient function; of the second loss by going back twice. */
static tn_status analytic(case_run *r, grad_run *g, bool second, tn_edge *out)
{
    op_tensor weights[OP_ARGS_MAX];
    tn_edge heads[OP_ARGS_MAX], edges[OP_ARGS_MAX];
    uint32_t count = 0;
    tn_status st = op_tape_backward(g->tape, g->head_count, g->edges, g->heads, r->in_count, g->in, g->grads);

    memcpy(out, g->grads, r->in_count * sizeof *out);
    if (st || !second)
        return st;
    for (uint32_t i = 0; i < r->in_count; i++)
        if (g->grads[i].node) {
            const op_tensor *v = op_tape_value(g->tape, g->grads[i]);

            op_tensor_create(&weights[count], v->t.dtype, v->t.ndim, v->shape, false);
            for (int64_t k = 0; k < tn_tensor_count(&v->t); k++)
                op_tensor_set(&weights[count], k, cos((double)k * 1.3 + i) + 0.2);
            edges[count] = g->grads[i];
            heads[count] = op_tape_input(g->tape, &weights[count]);
            count++;
        }
    st = op_tape_backward(g->tape, count, edges, heads, r->in_count, g->in, out);
    while (count-- > 0)
        op_tensor_free(&weights[count]);
    return st;
}

static void input_check(case_run *r, uint32_t i, const op_tensor *got, bool second)
{
    int64_t count = tn_tensor_count(&r->in[i].t), step = count > SAMPLES ? count / SAMPLES : 1;
    char text[300], where[64];

    snprintf(where, sizeof where, "%s of input %u", second ? "second gradient" : "gradient", i);
    for (int64_t k = 0; k < count; k += step) {
        double x = op_tensor_get(&r->in[i], k), h = 1e-5 * (1 + fabs(x)), low, high, numeric, value;

        op_tensor_set(&r->in[i], k, x + h);
        if (loss(r, r->in, second, &high))
            failed(r, where, tni_error_message());
        op_tensor_set(&r->in[i], k, x - h);
        if (loss(r, r->in, second, &low))
            failed(r, where, tni_error_message());
        op_tensor_set(&r->in[i], k, x);
        numeric = (high - low) / (2 * h);
        value = got ? op_tensor_get(got, k) : 0;
        if (!(fabs(numeric - value) <= 2e-6 * (1 + fabs(numeric) + fabs(high)))) {
            snprintf(text, sizeof text, "element %lld is %.12g, differences say %.12g", (long long)k, value,
                     numeric);
            failed(r, where, text);
            return;
        }
    }
}

static void differences_check(case_run *r, bool second)
{
    grad_run g = {0};
    tn_edge grads[OP_ARGS_MAX];
    tn_status st = case_infer(r, TN_F64);

    if (!st)
        st = grad_open(r, r->in, false, &g);
    if (!st && !(st = analytic(r, &g, second, grads)))
        for (uint32_t i = 0; i < r->in_count && r->failures < 20; i++)
            if (is_float(r->in[i].t.dtype) && !(r->c->no_grad_inputs >> i & 1u) &&
                !tn_op_mutates(r->def->op, r->in_count, i))
                input_check(r, i, grads[i].node ? op_tape_value(g.tape, grads[i]) : NULL, second);
    if (st)
        failed(r, second ? "second gradient" : "gradient", tni_error_message());
    if (g.tape)
        grad_close(&g);
    inputs_free(r);
}

/* Gradients that are written in the case, for heads of ones. */
static void expected_grads(case_run *r)
{
    bool any = false;
    grad_run g;
    tn_status st;

    for (uint32_t i = 0; i < 16; i++)
        any = any || r->c->grad[i];
    if (!any)
        return;
    if ((st = case_infer(r, -1)) || (st = grad_open(r, r->in, true, &g)) ||
        (st = op_tape_backward(g.tape, g.head_count, g.edges, g.heads, r->in_count, g.in, g.grads)))
        failed(r, "gradient", tni_error_message());
    for (uint32_t i = 0; !st && i < r->in_count; i++) {
        op_tensor expected;
        const char *differs;

        if (!r->c->grad[i])
            continue;
        op_tensor_read(&expected, r->c->grad[i], -1, 1);
        differs = g.grads[i].node ? op_tensor_differs(op_tape_value(g.tape, g.grads[i]), &expected,
                                                      tolerance_of(r->c, expected.t.dtype))
                                  : "there is none";
        if (differs)
            failed(r, "gradient", differs);
        op_tensor_free(&expected);
    }
    if (!st)
        grad_close(&g);
    inputs_free(r);
}

/* ---- one case --------------------------------------------------------------------------------- */

/* A case that must fail: in parsing, inference, or because no kernel takes it. */
static void failure_check(case_run *r, tn_status got, const char *message)
{
    char text[700];

    if (got != r->c->status) {
        snprintf(text, sizeof text, "%s (%s), expected %s", tni_status_name(got), message,
                 tni_status_name(r->c->status));
        failed(r, "status", text);
    } else if (r->c->message && !strstr(message, r->c->message)) {
        snprintf(text, sizeof text, "\"%s\" does not say \"%s\"", message, r->c->message);
        failed(r, "message", text);
    }
}

static void case_kernels(case_run *r)
{
    int32_t in_dtype[OP_ARGS_MAX];
    op_kernel kernels[32];
    size_t count;

    for (uint32_t i = 0; i < r->in_count; i++)
        in_dtype[i] = r->in[i].t.dtype;
    count = op_kernels_find(r->def, &r->args, in_dtype, r->out_dtype, kernels, 32);
    if (count == 0)
        failure_check(r, TN_E_UNSUPPORTED, "no kernel takes these data types");
    else if (r->c->status)
        failure_check(r, TN_OK, "it works");
    for (size_t k = 0; k < count && !r->c->status; k++)
        kernel_forms(r, &kernels[k]);
}

static uint32_t case_run_all(const char *op, const tn_op_case *c)
{
    case_run r = {.c = c, .op = op};
    tn_status st;

    while (r.in_count < 16 && c->in[r.in_count])
        r.in_count++;
    if ((st = tni_opset_find(op_set(), op, &r.def)) || (st = op_attrs_split(r.def, c->attrs, &r.attrs)) ||
        (st = tni_op_args(r.def, r.attrs, r.in_count, &r.args)) || (st = case_infer(&r, -1))) {
        failure_check(&r, st, tni_error_message());
        inputs_free(&r);
        tni_attrs_release(r.attrs);
        return r.failures;
    }
    case_kernels(&r);
    inputs_free(&r);
    if (!c->status && r.failures == 0) {
        expected_grads(&r);
        if (!(c->flags & TN_CASE_NO_GRAD) &&
            !(r.def->op->flags & (TN_OP_IGNORE_HEAD | TN_OP_ZERO_GRADIENT | TN_OP_INTERNAL)))
            differences_check(&r, false);
        if (c->flags & TN_CASE_GRAD2)
            differences_check(&r, true);
    }
    tni_attrs_release(r.attrs);
    return r.failures;
}

void tn_op_cases_run(const char *op, const tn_op_case *cases, size_t count)
{
    const char *only = getenv("TENON_CASE");
    uint32_t failures = 0;

    for (size_t i = 0; i < count; i++)
        if (!only || strcmp(only, cases[i].name) == 0)
            failures += case_run_all(op, &cases[i]);
    if (failures)
        fail_msg("%s: %u failures", op, failures);
}
