/*
 * Optimizer steps whose numbers are attributes. Operators of many weights take TNCUDA_UPDATES of them in a
 * launch. A weight may be updated in place; its float32 master, where there is one, is the last state.
 */
#include "launch.h"
#include "tenon/plugin/op/optimizer.h"

#include <stdio.h>
#include <string.h>

#define MIXED 1u
#define MASTER 2u
#define SKIPS 4u

_Static_assert(sizeof(tncuda_updates_args) <= 4096, "arguments of a kernel are no more");

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

static bool has_many(const form *f)
{
    return strpbrk(f->numbers, "lp") != NULL;
}

/* Whether arguments of a kernel have room for the states and numbers of a row. LAMB of many weights has a
 * number of each weight that is in no list: its rate. */
static bool form_fits(const form *f)
{
    const tncuda_update_args *one = NULL;
    size_t numbers = 0, own = strcmp(f->step, "LAMB_BOTH") == 0;

    for (const char *number = f->numbers; *number; number += 2, numbers++)
        own += *number == 'l' || *number == 't';
    if (!has_many(f))
        return f->states <= sizeof one->at.state / sizeof *one->at.state &&
               numbers <= sizeof one->v / sizeof *one->v;
    return f->states - ((f->flags & MIXED) != 0) <= 2 && numbers <= TNCUDA_UPDATES_NUMBERS &&
           own <= TNCUDA_UPDATES_OWN;
}

static tn_status update_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = forms;
    update_state *s;
    tn_status st;

    while (strcmp(f->op, node->op) != 0)
        f++;
    if (!form_fits(f))
        return tn_fail(err, TN_E_INTERNAL,
                       "a kernel's arguments have no room for the states or numbers of an update");
    if ((st = tncuda_state(plugin, node, plan, sizeof(update_state), err)))
        return st;
    s = plan->state;
    s->form = f;
    s->weights = node->out_count / (1 + f->states);
    s->each = 2 + f->states;
    (void)snprintf(s->kernel, sizeof s->kernel, "%s_%s_%s", has_many(f) ? "updates" : "update", f->step,
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

/* Each list of numbers has one for each weight. */
static tn_status lists_check(const update_state *s, const tn_exec *x, tn_err *err)
{
    for (const char *number = s->form->numbers; *number; number += 2) {
        const bool floats = *number == 'l', listed = floats || *number == 't';
        const void *list = listed ? tn_value_pointer(x->attrs[number_index(number)]) : NULL;
        const int64_t count = !list    ? 0
                              : floats ? ((const tn_floats *)list)->count
                                       : ((const tn_tuple *)list)->count;

        if (listed && count != (int64_t)s->weights)
            return tn_fail(err, TN_E_ATTR, "each list of numbers has one item for each weight");
    }
    return TN_OK;
}

/* A number that is an attribute, or an item of one: see ../common/update_forms.list. */
static double number_of(const tn_exec *x, const char *number, uint32_t weight)
{
    const tn_value *v = &x->attrs[number_index(number)];

    return *number == 'l'   ? ((const tn_floats *)tn_value_pointer(*v))->item[weight]
           : *number == 't' ? (double)((const tn_tuple *)tn_value_pointer(*v))->item[weight]
           : *number == 'i' ? (double)tn_value_int(*v)
                            : tn_value_float(*v);
}

/* The array that a number is an element of, or NULL. */
static const tn_tensor *number_from(const update_state *s, const tn_exec *x, const char *number)
{
    const uint32_t at = number_index(number);

    return *number == 'p' || *number == 's' ? x->in[s->weights * s->each + at]
           : *number == 'n'                 ? x->in[at]
                                            : NULL;
}

static int32_t skips_of(const form *f)
{
    return f->flags & SKIPS ? (int32_t)strlen(f->numbers) / 2 : 0; /* the last number is the scale */
}

/* ---- one weight ---------------------------------------------------------------------------------------- */

static tncuda_update_place place_of(const update_state *s, const tn_exec *x, uint32_t w)
{
    const form *f = s->form;
    const tn_tensor *const *in = x->in + w * s->each, *const *states = x->out + s->weights + w * f->states;
    const bool mixed = f->flags & MIXED;
    const uint32_t own = f->states - mixed;
    const tn_tensor *weight = mixed ? states[own] : f->flags & MASTER ? in[s->each] : in[0];
    tncuda_update_place at = {.w = weight->data,
                              .w_dtype = weight->dtype,
                              .old = in[0]->data,
                              .g = in[1]->data,
                              .g_dtype = in[1]->dtype,
                              .master = mixed ? weight->data : NULL,
                              .out = x->modes[w] == TN_MODE_NONE ? NULL : x->out[w]->data,
                              .out_dtype = x->out[w]->dtype};

    for (uint32_t k = 0; k < own; k++) {
        at.state[k] = states[k]->data;
        at.state_dtype = states[k]->dtype;
    }
    return at;
}

static tn_status update_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const update_state *s = plan->state;
    tncuda_update_args a = {
        .count = tn_tensor_count(x->in[0]), .at = place_of(s, x, 0), .skips = skips_of(s->form)};
    uint32_t k = 0;

    for (const char *number = s->form->numbers; *number; number += 2, k++) {
        const tn_tensor *from = number_from(s, x, number);

        a.v[k] = from ? 0 : number_of(x, number, 0);
        a.number[k] = from ? from->data : NULL;
        a.number_dtype[k] = from ? from->dtype : 0;
    }
    return tncuda_launch(x, "update", s->kernel, a.count, &a, err);
}

/* ---- many weights -------------------------------------------------------------------------------------- */

static int64_t pieces_of(int64_t count)
{
    return count / TNCUDA_UPDATE_PIECE + (count % TNCUDA_UPDATE_PIECE != 0);
}

/* Weights from `first` on, as many as a launch takes; all of them have the types of the first one. */
static void many_weights(const update_state *s, const tn_exec *x, uint32_t first, tncuda_updates_args *a)
{
    const uint32_t left = s->weights - first;

    a->many = (int32_t)(left < TNCUDA_UPDATES ? left : TNCUDA_UPDATES);
    for (int32_t t = 0; t < a->many; t++) {
        const tncuda_update_place at = place_of(s, x, first + (uint32_t)t);
        tncuda_update_weight *w = &a->weight[t];

        *w = (tncuda_update_weight){.count = tn_tensor_count(x->in[(first + (uint32_t)t) * s->each]),
                                    .w = at.w,
                                    .g = at.g,
                                    .old = at.old,
                                    .out = at.out,
                                    .state = {at.state[0], at.state[1]}};
        w->pieces = a->pieces += pieces_of(w->count);
        a->w_dtype = at.w_dtype;
        a->g_dtype = at.g_dtype;
        a->out_dtype = at.out_dtype;
        a->state_dtype = at.state_dtype;
    }
}

static void many_numbers(const update_state *s, const tn_exec *x, uint32_t first, tncuda_updates_args *a)
{
    int8_t own = 0;
    uint32_t k = 0;

    for (const char *number = s->form->numbers; *number; number += 2, k++) {
        const tn_tensor *from = number_from(s, x, number);
        const uint64_t skipped = *number == 'p' ? first : 0;

        if (from) {
            a->number[k] = (const char *)from->data + skipped * tn_dtype_bytes(from->dtype);
            a->number_dtype[k] = (int8_t)from->dtype;
            a->number_each[k] = *number == 'p';
        } else if (*number == 'l' || *number == 't') {
            for (int32_t t = 0; t < a->many; t++)
                a->weight[t].own[own] = number_of(x, number, first + (uint32_t)t);
            a->number_own[k] = ++own;
        } else
            a->v[k] = number_of(x, number, 0);
    }
}

static void many_args(const update_state *s, const tn_exec *x, uint32_t first, tncuda_updates_args *a)
{
    *a = (tncuda_updates_args){.mixed = (s->form->flags & MIXED) != 0, .skips = skips_of(s->form)};
    many_weights(s, x, first, a);
    many_numbers(s, x, first, a);
}

static tn_status many_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const update_state *s = plan->state;
    tncuda_updates_args a;
    tn_status st = lists_check(s, x, err);

    for (uint32_t w = 0; w < s->weights && !st; w += TNCUDA_UPDATES) {
        many_args(s, x, w, &a);
        st = tncuda_launch_blocks(x, "update", s->kernel, a.pieces, &a, err);
    }
    return st;
}

/* ---- LAMB of many weights ------------------------------------------------------------------------------ */

enum {
    RATE = TN_lamb_update_phase1_clip_gradient + 1, /* of LAMB_BOTH */
    LOWER = TNCUDA_UPDATES_NUMBERS - 2,
    UPPER
};

_Static_assert((int)RATE <= (int)LOWER, "the bounds are no numbers of the step");

/* Workspace: a rate for each weight of a launch, then two sums for each piece. */
static tn_status lamb_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = update_prepare(plugin, node, plan, err);
    const update_state *s = plan->state;
    int64_t pieces = 0;

    for (uint32_t w = 0; !st && w < s->weights; w++)
        pieces += pieces_of(tn_tensor_count(node->in[w * s->each]));
    plan->workspace_bytes = (uint64_t)(TNCUDA_UPDATES + 2 * pieces) * sizeof(double);
    return st;
}

/* The direction in which a weight moves is made twice: for its norm, and behind that from the moments. */
static tn_status lamb_many(const update_state *s, const tn_exec *x, uint32_t first, tn_err *err)
{
    const tn_floats *lrs = tn_value_pointer(x->attrs[TN_multi_lamb_update_learning_rates]);
    const char *along = strcmp(tncuda_suffix(x->in[0]->dtype), "f64") == 0 && !(s->form->flags & MIXED)
                            ? "updates_LAMB_ALONG_f64"
                            : "updates_LAMB_ALONG_f32";
    tncuda_updates_args a;
    tn_status st;

    many_args(s, x, first, &a);
    a.room = x->workspace;
    a.v[LOWER] = tn_value_float(x->attrs[TN_multi_lamb_update_lower_bound]);
    a.v[UPPER] = tn_value_float(x->attrs[TN_multi_lamb_update_upper_bound]);
    a.number[RATE] = x->workspace;
    a.number_dtype[RATE] = TN_F64;
    a.number_each[RATE] = 1;
    for (int32_t t = 0; t < a.many; t++)
        a.weight[t].own[TNCUDA_UPDATES_OWN - 1] = lrs->item[first + (uint32_t)t];
    if (!a.pieces || (st = tncuda_launch_blocks(x, "update", along, a.pieces, &a, err)) ||
        (st = tncuda_launch_blocks(x, "update", "updates_lamb_rates", a.many, &a, err)))
        return a.pieces ? st : TN_OK;
    return tncuda_launch_blocks(x, "update", s->kernel, a.pieces, &a, err);
}

static tn_status lamb_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const update_state *s = plan->state;
    tn_status st = lists_check(s, x, err);

    for (uint32_t w = 0; w < s->weights && !st; w += TNCUDA_UPDATES)
        st = lamb_many(s, x, w, err);
    return st;
}

/* ---- one history for each row -------------------------------------------------------------------------- */

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

#define FLOATS TNCUDA_FLOATS
#include "../common/update_rows.inc"

#define ROW(op, types) TNCUDA_ROW(op, types, 0, update_prepare, update_run)
#define MANY(op, types) TNCUDA_ROW(op, types, 0, update_prepare, many_run)
const tn_kernel *const tncuda_family_update[] = {
    UPDATE_ROWS(ROW, MANY),
    TNCUDA_ROW("_multi_lamb_update", multi_types, 0, lamb_prepare, lamb_run),
    TNCUDA_ROW("_multi_mp_lamb_update", multi_mixed_types, 0, lamb_prepare, lamb_run),
    TNCUDA_ROW("_contrib_group_adagrad_update", float_types, 0, group_prepare, group_run),
    NULL,
};
