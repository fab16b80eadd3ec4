/*
 * Pointwise operators as one: operator _fused_pointwise. Each step is planned as the kernel of its operator
 * is (tncuda_point_resolve), and results between steps are rounded to their own data types, so the bits are
 * those of the operators one by one.
 *
 * Two kernels serve it: `nvrtc` compiles a kernel for the chain, `plain` interprets the chain. They plan
 * alike: where a device does not load what was compiled, the chain is interpreted after all.
 */
#include "fused.h"
#include "last.h"

#include "../common/index.h"
#include "tenon/plugin/op/fused.h"
#include "tenon/plugin/pointwise.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(tncuda_fused_args) <= 4096, "arguments of a kernel are no more");

typedef struct planner {
    const tn_node *node;
    tncuda_fused_plan *p;
    tn_point_code code;
    tn_tensor result[TN_POINT_STEPS_MAX];
    uint8_t made[TN_POINT_STEPS_MAX]; /* the kernel's step that makes a result of the code */
    int64_t result_stride[TN_NDIM_MAX];
    int64_t steps[2 * TNCUDA_FUSED_PLACES][TN_NDIM_MAX]; /* of places, along all axes of the output */
} planner;

/* ---- planning ------------------------------------------------------------------------------------------ */

static tn_status code_read(planner *w, tn_err *err)
{
    const tn_node *n = w->node;
    int32_t dtypes[TN_POINT_INPUTS_MAX];

    if (tn_point_read(tn_value_pointer(n->attrs[TN_fused_pointwise_program]), &w->code, NULL))
        return tn_fail(err, TN_E_ATTR, "program cannot be read");
    if (w->code.input_count > n->in_count || w->code.output_count != n->out_count ||
        n->in_count > TN_POINT_INPUTS_MAX)
        return tn_fail(err, TN_E_ATTR, "program is for another number of inputs or outputs");
    for (uint32_t i = 0; i < n->in_count; i++)
        dtypes[i] = n->in[i]->dtype;
    tn_point_dtypes(&w->code, dtypes);
    for (uint32_t o = 0; o < n->out_count; o++)
        if (!tncuda_same_shape(n->out[o], n->out[0]) ||
            n->out[o]->dtype != w->code.step[w->code.output[o] - TN_POINT_RESULT].dtype)
            return tn_fail(err, TN_E_SHAPE,
                           "an output has another shape than the first, or another data type than the "
                           "program says");
    return TN_OK;
}

/* The place of an input that is read along these steps; one input may be read in two ways. */
static tn_status place_find(planner *w, uint32_t input, const int64_t *steps, uint8_t *out, tn_err *err)
{
    tncuda_fused_plan *p = w->p;
    const size_t bytes = (size_t)w->node->out[0]->ndim * sizeof *steps;
    uint32_t i = 0;

    while (i < p->in_count && (p->in_of[i] != input || memcmp(w->steps[i], steps, bytes) != 0))
        i++;
    if (i == TNCUDA_FUSED_PLACES)
        return tn_fail(err, TN_E_UNSUPPORTED, "more than 16 inputs, or ways to read them");
    if (i == p->in_count) {
        p->in_of[p->in_count++] = (uint8_t)input;
        memcpy(w->steps[i], steps, bytes);
        p->args.in[i].dtype = w->node->in[input]->dtype;
    }
    *out = (uint8_t)i;
    return TN_OK;
}

static tn_status number_add(planner *w, const tn_point_step *s, const tncuda_point_how *how, uint32_t attr,
                            tn_err *err)
{
    tncuda_fused_plan *p = w->p;
    const bool own = how->own_number && attr == 0;

    if (p->numbers == TNCUDA_FUSED_NUMBERS - 1) /* a step may look at the one behind its own */
        return tn_fail(err, TN_E_UNSUPPORTED, "more than 63 numbers");
    if (!own && attr >= s->attr_count)
        return tn_fail(err, TN_E_ATTR, "a step has too few attributes");
    p->number[p->numbers].kind = how->kind;
    p->number[p->numbers].run = own ? TN_POINT_NUMBER : s->run[attr];
    p->number[p->numbers].value = own ? how->number : tn_value_float(s->attrs[attr]);
    p->numbers++;
    return TN_OK;
}

/* Operands are inputs of the whole, or results, which have the output's shape. */
static tn_status operands_plan(planner *w, const tn_point_step *s, const tncuda_point_how *how,
                               tncuda_fused_step *to, tn_err *err)
{
    tn_status st = TN_OK;

    to->operands = (uint8_t)(how->in_count + (how->row->scalar >= 0));
    to->scalar = how->row->scalar >= 0 ? (uint8_t)how->row->scalar : 255;
    for (uint32_t k = 0; k < how->in_count && !st; k++) {
        const tn_tensor *t = how->in[k];
        int64_t steps[TN_NDIM_MAX];

        tnb_steps(t->ndim, t->shape, t->stride, w->node->out[0]->ndim, steps);
        if (s->operand[k] >= TN_POINT_RESULT)
            to->operand[k] = (uint8_t)(w->made[s->operand[k] - TN_POINT_RESULT] + TNCUDA_FUSED_RESULT);
        else
            st = place_find(w, s->operand[k], steps, &to->operand[k], err);
        if (!st && s->operand[k] >= TN_POINT_RESULT && t != &w->result[s->operand[k] - TN_POINT_RESULT])
            st = tn_fail(err, TN_E_UNSUPPORTED, "a result that is read along one axis");
    }
    return st;
}

/* One step of the kernel: the result of step `index` of the code, or a part of it. */
static tn_status part_plan(planner *w, const tn_point_step *s, uint32_t index, tn_err *err)
{
    const tn_tensor *in[TN_POINT_OPERANDS_MAX], *out = &w->result[index];
    const uint32_t at = (uint32_t)w->p->args.steps;
    tncuda_fused_step *to = &w->p->args.step[at];
    tn_node node = *w->node;
    tncuda_point_how how;
    uint32_t numbers;
    tn_status st;

    if (at == TNCUDA_FUSED_STEPS)
        return tn_fail(err, TN_E_UNSUPPORTED, "more than 48 steps");
    for (uint32_t k = 0; k < s->operand_count; k++)
        in[k] = s->operand[k] < TN_POINT_RESULT ? w->node->in[s->operand[k]]
                                                : &w->result[s->operand[k] - TN_POINT_RESULT];
    node.op = s->op;
    node.attrs = s->attrs;
    node.attr_count = s->attr_count;
    node.in_count = s->operand_count;
    node.out_count = 1;
    node.in = in;
    node.out = &out;
    node.forward = NULL;
    if ((st = tncuda_point_resolve(&node, &how, err)) || (st = operands_plan(w, s, &how, to, err)))
        return st;
    numbers = how.numbers ? how.numbers : how.row->scalar >= 0;
    to->loop = how.row->loop;
    to->kind = (uint8_t)how.kind;
    to->dtype = (uint8_t)s->dtype;
    to->store = (uint8_t)how.store;
    to->number = numbers ? (uint8_t)w->p->numbers : 0;
    w->p->loop[at] = how.name;
    w->p->loop_numbers[at] = (uint8_t)how.numbers;
    for (uint32_t a = 0; a < numbers && !st; a++)
        st = number_add(w, s, &how, a, err);
    w->made[index] = (uint8_t)at;
    w->p->args.steps++;
    return st;
}

/* ((a + b) + c) + d. Of short floats, which are summed as float32 and rounded once, that is another sum. */
static tn_status sum_plan(planner *w, const tn_point_step *s, uint32_t index, tn_err *err)
{
    tn_point_step part = {.dtype = s->dtype, .operand_count = 2, .operand = {s->operand[0], s->operand[0]}};
    tn_status st = TN_OK;

    if (tncuda_is_short(s->dtype) && s->operand_count > 2)
        return tn_fail(err, TN_E_UNSUPPORTED, "a sum of short floats");
    (void)snprintf(part.op, sizeof part.op, "%s", s->operand_count == 1 ? "_copy" : "_grad_add");
    if (s->operand_count == 1) {
        part.operand_count = 1;
        return part_plan(w, &part, index, err);
    }
    for (uint32_t k = 1; k < s->operand_count && !st; k++) {
        part.operand[1] = s->operand[k];
        st = part_plan(w, &part, index, err);
        part.operand[0] = TN_POINT_RESULT + index;
    }
    return st;
}

static tn_status step_plan(planner *w, uint32_t index, tn_err *err)
{
    const tn_point_step *s = &w->code.step[index];

    w->result[index] = *w->node->out[0];
    w->result[index].stride = w->result_stride;
    w->result[index].dtype = s->dtype;
    return strcmp(s->op, "add_n") ? part_plan(w, s, index, err) : sum_plan(w, s, index, err);
}

static void outputs_plan(planner *w)
{
    const tn_node *n = w->node;
    tncuda_fused_args *a = &w->p->args;

    for (uint32_t o = 0; o < n->out_count; o++) {
        if (n->modes[o] == TN_MODE_NONE)
            continue;
        w->p->out_of[a->outs] = (uint8_t)o;
        a->result[a->outs] = w->made[w->code.output[o] - TN_POINT_RESULT];
        a->out[a->outs].dtype = n->out[o]->dtype;
        a->out[a->outs++].mode = n->modes[o];
    }
}

/* Axes that all arrays walk as one are joined. */
static tn_status axes_plan(planner *w, tn_err *err)
{
    const tn_tensor *out = w->node->out[0];
    tncuda_fused_args *a = &w->p->args;
    const uint32_t count = w->p->in_count + (uint32_t)a->outs;
    int64_t *steps[2 * TNCUDA_FUSED_PLACES], shape[TN_NDIM_MAX];
    int32_t ndim;

    for (uint32_t k = 0; k < count; k++)
        steps[k] = w->steps[k];
    for (uint32_t o = 0; o < (uint32_t)a->outs; o++) {
        const tn_tensor *t = w->node->out[w->p->out_of[o]];

        tnb_steps(t->ndim, t->shape, t->stride, out->ndim, w->steps[w->p->in_count + o]);
    }
    ndim = tnb_join(out->ndim, out->shape, count, steps, shape);
    if (ndim > TNCUDA_FUSED_AXES)
        return tn_fail(err, TN_E_UNSUPPORTED, "arrays that lie along more than 6 axes");
    a->ndim = ndim;
    a->count = tn_tensor_count(out);
    memcpy(a->shape, shape, (size_t)ndim * sizeof *shape);
    for (uint32_t k = 0; k < count; k++)
        memcpy(k < w->p->in_count ? a->in[k].stride : a->out[k - w->p->in_count].stride, steps[k],
               (size_t)ndim * sizeof *shape);
    return TN_OK;
}

/* Every place that the input has is where the output is, element by element. */
static bool lies_alike(const planner *w, uint32_t input, uint32_t out)
{
    const tncuda_fused_args *a = &w->p->args;
    const size_t bytes = (size_t)a->ndim * sizeof *a->shape;
    bool read = false;

    if (a->out[out].mode != TN_MODE_WRITE || w->node->in[input]->dtype != a->out[out].dtype ||
        !tncuda_same_shape(w->node->in[input], w->node->out[0]))
        return false;
    for (uint32_t i = 0; i < w->p->in_count; i++) {
        if (w->p->in_of[i] != input)
            continue;
        if (memcmp(a->in[i].stride, a->out[out].stride, bytes) != 0)
            return false;
        read = true;
    }
    return read;
}

static void inplace_find(const planner *w, tn_plan *plan)
{
    uint32_t taken = 0;

    for (uint32_t o = 0; o < (uint32_t)w->p->args.outs; o++)
        for (uint32_t i = 0; i < w->node->in_count && plan->inplace[w->p->out_of[o]] < 0; i++)
            if (!(taken >> i & 1u) && lies_alike(w, i, o)) {
                plan->inplace[w->p->out_of[o]] = (int32_t)i;
                taken |= 1u << i;
            }
}

static tn_status chain_plan(planner *w, tn_plan *plan, tn_err *err)
{
    const tn_tensor *out = w->node->out[0];
    int64_t step = 1;
    tn_status st = code_read(w, err);

    for (int32_t d = out->ndim; d-- > 0 && !st;) {
        w->result_stride[d] = step;
        step *= out->shape[d];
    }
    for (uint32_t s = 0; s < w->code.step_count && !st; s++)
        st = step_plan(w, s, err);
    if (st)
        return st;
    outputs_plan(w);
    if ((st = axes_plan(w, err)))
        return st;
    tncuda_fused_look(w->p);
    inplace_find(w, plan);
    return TN_OK;
}

static tn_status plain_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    planner *w = tncuda_new(plugin, sizeof *w);
    tn_status st;

    if (!w)
        return tncuda_nomem(err, "a plan");
    w->node = node;
    if (!(st = tncuda_state(plugin, node, plan, sizeof *w->p, err))) {
        w->p = plan->state;
        if ((st = chain_plan(w, plan, err)) ||
            (tncuda_last_pointwise(node) &&
             (st = tncuda_last_ask(plugin, node, plan, TNCUDA_LAST_ALL, TNCUDA_LAST_ALL, err))))
            tncuda_release(plan);
    }
    tncuda_delete(plugin, w);
    return st;
}

/* ---- running ------------------------------------------------------------------------------------------- */

static void args_fill(const tncuda_fused_plan *p, const tn_exec *x, tncuda_fused_args *args)
{
    *args = p->args;
    for (uint32_t i = 0; i < p->in_count; i++)
        args->in[i].data = tncuda_fused_data(p, x, i);
    for (uint32_t o = 0; o < (uint32_t)args->outs; o++)
        args->out[o].data = tncuda_fused_data(p, x, p->in_count + o);
    for (uint32_t n = 0; n < p->numbers; n++)
        args->number[n] = tncuda_fused_number(p, x, n);
}

static tn_status plain_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_fused_args args;

    args_fill(plan->state, x, &args);
    if (!args.outs)
        return TN_OK;
    return tncuda_launch(x, "fused", "fused_steps", args.count, &args, err);
}

/* ---- compiled ------------------------------------------------------------------------------------------ */

/* 90: compute capability 9.0. */
static tn_status arch_of(tncuda_plugin *plugin, int32_t index, int32_t *out, tn_err *err)
{
    int32_t ordinal = 0, major = 0, minor = 0;
    const tncuda_driver *d = &plugin->driver;
    tncuda_result result;
    tn_status st = tncuda_driver_need(plugin, err);

    if (st)
        return st;
    if ((result = d->device_get(&ordinal, index)) ||
        (result = d->device_attribute(&major, TNCUDA_ATTRIBUTE_COMPUTE_MAJOR, ordinal)) ||
        (result = d->device_attribute(&minor, TNCUDA_ATTRIBUTE_COMPUTE_MINOR, ordinal)))
        return tncuda_driver_fail(d, result, "the compute capability of a device", err);
    *out = major * 10 + minor;
    return TN_OK;
}

static tn_status nvrtc_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    char *text = NULL;
    int32_t arch = 0;
    tn_status st = plain_prepare(plugin, node, plan, err);
    tncuda_fused_plan *p = plan->state;

    if (st)
        return st;
    if (!(st = arch_of(plugin, node->out[0]->device, &arch, err)) &&
        !(text = tncuda_new(plugin, TNCUDA_FUSED_SOURCE_BYTES)))
        st = tncuda_nomem(err, "the text of a kernel");
    if (!st && !(st = tncuda_fused_source(p, text, TNCUDA_FUSED_SOURCE_BYTES, err)))
        st = tncuda_nvrtc_compile(plugin, arch, text, &p->compiled, err);
    tncuda_delete(plugin, text);
    if (st)
        tncuda_release(plan);
    return st;
}

/* What a device does not load, another one may: but most often all are alike. */
static void image_refuse(tncuda_compiled *c, const tn_stream *s, const tn_err *why)
{
    tncuda_plugin *plugin = s->device->plugin;

    atomic_store(&c->broken, 1u);
    tncuda_log(plugin, atomic_exchange(&plugin->unloaded, 1u) ? TN_LEVEL_DEBUG : TN_LEVEL_WARNING,
               "a compiled chain of pointwise operators is interpreted: %s", why->message);
}

/* Whether the chain's kernel is there; it is loaded when it is first needed. */
static tn_status image_need(tncuda_compiled *c, const tn_exec *x, bool *usable, tn_err *err)
{
    const tn_stream *s = x->stream;
    const unsigned long long bit = s ? 1ull << s->device->index % TNCUDA_DEVICES_MAX : 0;
    tn_err why = {0};
    tn_status st;

    if (!s)
        return tn_fail(err, TN_E_INTERNAL, "a kernel of a GPU without a stream");
    *usable = !atomic_load_explicit(&c->broken, memory_order_relaxed);
    if (!*usable || atomic_load_explicit(&c->loaded, memory_order_relaxed) & bit)
        return TN_OK;
    if (!(st = tncuda_image_load(x, c->name, c->image, &why))) {
        (void)atomic_fetch_or(&c->loaded, bit);
        return TN_OK;
    }
    if (st == TN_E_NOMEM || st == TN_E_STATE) {
        if (err)
            *err = why;
        return st;
    }
    *usable = false;
    image_refuse(c, s, &why); /* if it is the device that has failed, the next call says so */
    return TN_OK;
}

static tn_status nvrtc_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tncuda_fused_plan *p = plan->state;
    uint64_t words[TNCUDA_FUSED_WORDS];
    bool usable = false;
    uint32_t bytes;
    tn_status st;

    if (!p->args.outs)
        return TN_OK;
    if ((st = image_need(p->compiled, x, &usable, err)))
        return st;
    if (!usable)
        return plain_run(plan, x, err);
    bytes = tncuda_fused_words(p, x, words) * (uint32_t)sizeof *words;
    return tncuda_launch_image(x, p->compiled->name, p->compiled->image,
                               words[1] ? (p->args.count + p->width - 1) / p->width : p->args.count, words,
                               bytes, err);
}

static const char *const most[] = {"*:" TNCUDA_MOST, NULL};

#define FLAGS (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO | TN_KERNEL_LAYOUTS)

const tn_kernel *const tncuda_family_fused[] = {
    TNCUDA_ROW_RANKED("_fused_pointwise", "nvrtc", 128, most, FLAGS, nvrtc_prepare, nvrtc_run,
                      tncuda_release),
    TNCUDA_ROW("_fused_pointwise", most, FLAGS, plain_prepare, plain_run),
    NULL,
};
