/*
 * Optimizer steps whose numbers are attributes: a launch for each weight. A weight may be updated in place;
 * its float32 master, where there is one, is the last state.
 */
#include "launch.h"
#include "tenon/plugin/op/optimizer.h"

#include <stdio.h>
#include <string.h>

#define MIXED 1u
#define MASTER 2u
#define SKIPS 4u
#define NUMBERS_MAX 16

typedef struct form {
    const char *op, *step;
    uint32_t states, flags;
    const char *numbers;
} form;

static const form forms[] = {
#define UPDATE_FORM(op, step, states, flags, numbers) {op, #step, states, flags, numbers},
#include "../common/update_forms.list"
#undef UPDATE_FORM
};

typedef struct update_state {
    const form *form;
    char kernel[TNCUDA_NAME_BYTES];
    uint32_t weights, each;
} update_state;

static tn_status update_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = forms;
    update_state *s;
    tn_status st;

    while (strcmp(f->op, node->op) != 0)
        f++;
    if ((st = tncuda_state(plugin, node, plan, sizeof(update_state), err)))
        return st;
    s = plan->state;
    s->form = f;
    s->weights = node->out_count / (1 + f->states);
    s->each = 2 + f->states;
    (void)snprintf(s->kernel, sizeof s->kernel, "update_%s_%s", f->step,
                   f->flags & (MIXED | MASTER) ? "f32" : tncuda_suffix(node->in[0]->dtype));
    for (uint32_t w = 0; w < s->weights; w++)
        if (node->out[w]->dtype == node->in[w * s->each]->dtype)
            plan->inplace[w] = (int32_t)(w * s->each);
    return TN_OK;
}

static uint32_t number_index(const char *number)
{
    return (uint32_t)(number[1] >= 'a' ? number[1] - 'a' + 10 : number[1] - '0');
}

/* Number k of a step is an element of an array that the GPU reads. */
static void number_from(tncuda_update_args *a, uint32_t k, const tn_tensor *t, uint32_t at)
{
    a->number[k] = t->data;
    a->number_dtype[k] = t->dtype;
    a->number_at[k] = (int32_t)at;
}

/* The numbers of a step for one weight: see ../common/update_forms.list. */
static tn_status numbers_get(const update_state *s, const tn_exec *x, uint32_t weight, tncuda_update_args *a,
                             tn_err *err)
{
    uint32_t k = 0;

    for (const char *number = s->form->numbers; *number; number += 2, k++) {
        const uint32_t at = number_index(number);
        const tn_tensor *const *tail = x->in + s->weights * s->each;
        const tn_floats *floats = *number == 'l' ? tn_value_pointer(x->attrs[at]) : NULL;
        const tn_tuple *tuple = *number == 't' ? tn_value_pointer(x->attrs[at]) : NULL;

        if ((*number == 'l' && (!floats || floats->count != (int64_t)s->weights)) ||
            (*number == 't' && (!tuple || tuple->count != (int64_t)s->weights)))
            return tn_fail(err, TN_E_ATTR, "each list of numbers has one item for each weight");
        if (*number == 'p' || *number == 's')
            number_from(a, k, tail[at], *number == 'p' ? weight : 0);
        else if (*number == 'n')
            number_from(a, k, x->in[at], 0);
        else
            a->v[k] = floats           ? floats->item[weight]
                      : tuple          ? (double)tuple->item[weight]
                      : *number == 'i' ? (double)tn_value_int(x->attrs[at])
                                       : tn_value_float(x->attrs[at]);
    }
    a->skips = s->form->flags & SKIPS ? (int32_t)k : 0; /* the last number is the scale */
    return TN_OK;
}

static tn_status update_args(const update_state *s, const tn_exec *x, uint32_t w, tncuda_update_args *to,
                             tn_err *err)
{
    const form *f = s->form;
    const tn_tensor *const *in = x->in + w * s->each, *const *states = x->out + s->weights + w * f->states;
    const bool mixed = f->flags & MIXED;
    const uint32_t own = f->states - mixed;
    const tn_tensor *weight = mixed ? states[own] : f->flags & MASTER ? in[s->each] : in[0];
    tncuda_update_args a = {.count = tn_tensor_count(in[0]),
                            .w = weight->data,
                            .w_dtype = weight->dtype,
                            .old = in[0]->data,
                            .g = in[1]->data,
                            .g_dtype = in[1]->dtype,
                            .master = mixed ? weight->data : NULL,
                            .out = x->modes[w] == TN_MODE_NONE ? NULL : x->out[w]->data,
                            .out_dtype = x->out[w]->dtype};

    for (uint32_t k = 0; k < own; k++) {
        a.state[k] = states[k]->data;
        a.state_dtype = states[k]->dtype;
    }
    *to = a;
    return numbers_get(s, x, w, to, err);
}

static tn_status update_one(const update_state *s, const tn_exec *x, uint32_t w, tn_err *err)
{
    tncuda_update_args a;
    const tn_status st = update_args(s, x, w, &a, err);

    return st ? st : tncuda_launch(x, "update", s->kernel, a.count, &a, err);
}

static tn_status update_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const update_state *s = plan->state;
    tn_status st = TN_OK;

    for (uint32_t w = 0; w < s->weights && !st; w++)
        st = update_one(s, x, w, err);
    return st;
}

/* ---- LAMB of many weights, one history for each row ---------------------------------------------------- */

enum { RATE = TN_lamb_update_phase1_clip_gradient + 1 }; /* of LAMB_BOTH */

/* Workspace: two sums of squares, then the direction in which a weight moves. */
static tn_status lamb_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = update_prepare(plugin, node, plan, err);
    const update_state *s = plan->state;
    int64_t most = 0;

    for (uint32_t w = 0; !st && w < s->weights; w++)
        most = tn_tensor_count(node->in[w * s->each]) > most ? tn_tensor_count(node->in[w * s->each]) : most;
    plan->workspace_bytes = (uint64_t)(most + 2) * sizeof(double);
    return st;
}

static tn_status squares_of(const tn_exec *x, const void *data, int32_t dtype, int64_t count, int64_t k,
                            tn_err *err)
{
    const tncuda_call_args a = {.count = count,
                                .in = {{(void *)(uintptr_t)data, dtype, TN_MODE_NONE}},
                                .out = {{x->workspace, TN_F64, TN_MODE_WRITE}},
                                .n = {k}};

    return tncuda_launch_blocks(x, "reduce", "squares_of", 1, &a, err);
}

static tn_status lamb_one(const update_state *s, const tn_exec *x, uint32_t w, tn_err *err)
{
    const tn_tensor *weight = x->in[w * s->each];
    const tn_floats *lrs = tn_value_pointer(x->attrs[TN_multi_lamb_update_learning_rates]);
    const bool wide = weight->dtype == TN_F64 && !(s->form->flags & MIXED);
    tncuda_call_args rate = {.room = x->workspace,
                             .f = {0, tn_value_float(x->attrs[TN_multi_lamb_update_lower_bound]),
                                   tn_value_float(x->attrs[TN_multi_lamb_update_upper_bound])}};
    tncuda_update_args a, along;
    tn_status st = update_args(s, x, w, &a, err);

    if (st)
        return st;
    rate.f[0] = lrs->item[w];
    along = a;
    along.out = (double *)x->workspace + 2;
    along.out_dtype = wide ? TN_F64 : TN_F32;
    along.master = NULL;
    a.number[RATE] = x->workspace;
    a.number_dtype[RATE] = TN_F64;
    if ((st = squares_of(x, weight->data, weight->dtype, a.count, 0, err)) ||
        (st = tncuda_launch(x, "update", wide ? "update_LAMB_ALONG_f64" : "update_LAMB_ALONG_f32", a.count,
                            &along, err)) ||
        (st = squares_of(x, along.out, along.out_dtype, a.count, 1, err)) ||
        (st = tncuda_launch(x, "update", "update_lamb_rate", 1, &rate, err)))
        return st;
    return tncuda_launch(x, "update", s->kernel, a.count, &a, err);
}

static tn_status lamb_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const update_state *s = plan->state;
    tn_status st = TN_OK;

    for (uint32_t w = 0; w < s->weights && !st; w++)
        st = lamb_one(s, x, w, err);
    return st;
}

static tn_status group_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->inplace[0] = 0;
    return st;
}

/* in: weight, grad; out: the new weight, history */
static tn_status group_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[1]),
                          .size = tnb_dims(x->in[0], 1, x->in[0]->ndim),
                          .f = {tn_value_float(x->attrs[TN_group_adagrad_update_lr]),
                                tn_value_float(x->attrs[TN_group_adagrad_update_rescale_grad]),
                                tn_value_float(x->attrs[TN_group_adagrad_update_clip_gradient]),
                                tn_value_float(x->attrs[TN_group_adagrad_update_epsilon])}};
    tn_status st;

    (void)plan;
    tncuda_call_arrays(x, 2, 2, &a);
    st = tncuda_launch(x, "update", "update_group_history", a.count, &a, err);
    a.count = tn_tensor_count(x->in[0]);
    return st || x->modes[0] == TN_MODE_NONE ? st
                                             : tncuda_launch(x, "update", "update_group", a.count, &a, err);
}

static const char *const float_types[] = {"weight:" TNCUDA_FLOATS, "*:=weight", NULL};
static const char *const multi_types[] = {"weight_*:" TNCUDA_FLOATS, "*:=weight_*", NULL};
static const char *const mixed_types[] = {"weight:" TNCUDA_FLOATS, "grad:=weight", "output:=weight", "*:f32",
                                          NULL};

static const char *const scaled_types[] = {"weight:" TNCUDA_FLOATS, "rescale_grad:f32", "*:=weight", NULL};
static const char *const along_types[] = {"weight:f16,bf16,f32", "grad:=weight", "*:f32", NULL};
static const char *const move_types[] = {"weight:" TNCUDA_FLOATS, "output:=weight", "*:f32", NULL};
static const char *const preloaded_types[] = {"weight_*:" TNCUDA_FLOATS, "lrs:f32", "wds:f32", "*:=weight_*",
                                              NULL};
static const char *const multi_mixed_types[] = {"weight_*:" TNCUDA_FLOATS, "grad_*:=weight_*",
                                                "output*:=weight_*", "*:f32", NULL};

#define ROW(op, types) TNCUDA_ROW(op, types, 0, update_prepare, update_run)
const tn_kernel *const tncuda_family_update[] = {
    ROW("sgd_update", float_types),
    ROW("sgd_mom_update", float_types),
    ROW("nag_mom_update", float_types),
    ROW("signsgd_update", float_types),
    ROW("signum_update", float_types),
    ROW("adam_update", float_types),
    ROW("rmsprop_update", float_types),
    ROW("rmspropalex_update", float_types),
    ROW("ftrl_update", float_types),
    ROW("ftml_update", float_types),
    ROW("_sparse_adagrad_update", float_types),
    ROW("_adamw_update", scaled_types),
    ROW("lamb_update_phase1", float_types),
    ROW("lamb_update_phase2", float_types),
    ROW("mp_sgd_update", mixed_types),
    ROW("mp_sgd_mom_update", mixed_types),
    ROW("mp_nag_mom_update", mixed_types),
    ROW("_mp_adamw_update", mixed_types),
    ROW("mp_lamb_update_phase1", along_types),
    ROW("mp_lamb_update_phase2", move_types),
    ROW("multi_sgd_update", multi_types),
    ROW("multi_sgd_mom_update", multi_types),
    ROW("_multi_adamw_update", multi_types),
    ROW("multi_mp_sgd_update", multi_mixed_types),
    ROW("multi_mp_sgd_mom_update", multi_mixed_types),
    ROW("_multi_mp_adamw_update", multi_mixed_types),
    ROW("preloaded_multi_sgd_update", preloaded_types),
    ROW("preloaded_multi_sgd_mom_update", preloaded_types),
    ROW("preloaded_multi_mp_sgd_update", multi_mixed_types),
    ROW("preloaded_multi_mp_sgd_mom_update", multi_mixed_types),
    TNCUDA_ROW("_multi_lamb_update", multi_types, 0, lamb_prepare, lamb_run),
    TNCUDA_ROW("_multi_mp_lamb_update", multi_mixed_types, 0, lamb_prepare, lamb_run),
    TNCUDA_ROW("_contrib_group_adagrad_update", float_types, 0, group_prepare, group_run),
    NULL,
};
