/*
 * Random numbers and dropout: the numbers of plugin cpu for the same seed. Parameters in arrays are looked at
 * where they are used: one that is not allowed gives NaN.
 */
#include "tenon/plugin/random.h"
#include "../common/move.h"
#include "launch.h"

#include "../common/random.inc"

static tn_status random_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncuda_state(plugin, node, plan, sizeof(random_state), err);

    if (!st && (st = random_plan(plan->state, node, err)))
        tncuda_release(plan);
    return st;
}

tncuda_draw tncuda_draw_of(const tn_rng *rng)
{
    const uint64_t zero = 0;
    const tn_rng still = {
        .struct_size = rng->struct_size, .seed = rng->seed, .stream = rng->stream, .step = &zero};

    return (tncuda_draw){tn_draw_of(&still).key, rng->step_add, rng->step};
}

static void source_set(tncuda_source *to, const random_state *s, const tn_exec *x, uint32_t p)
{
    const source *src = &s->source[p];
    const tnb_parameter *limits = &s->of->parameter[p];

    if (src->input < 0) {
        to->number = number_of(s, x->attrs, p);
        return;
    }
    to->data = x->in[src->input]->data;
    to->dtype = x->in[src->input]->dtype;
    to->ndim = src->axes.ndim;
    memcpy(to->shape, src->axes.shape, sizeof to->shape);
    memcpy(to->stride, src->axes.stride, sizeof to->stride);
    to->min = limits->min;
    to->max = limits->max;
    to->above = limits->above;
}

static tn_status random_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const random_state *s = plan->state;
    tncuda_random_args a = {.count = tn_tensor_count(x->out[0]),
                            .draw = tncuda_draw_of(x->rng),
                            .parameters = (int32_t)s->of->count,
                            .interval = s->of->interval};
    const tn_status st = s->form->from == NUMBERS ? numbers_check(s, x->attrs, err) : TN_OK;
    char kernel[TNCUDA_NAME_BYTES];

    if (st)
        return st;
    for (uint32_t p = 0; p < s->of->count; p++)
        source_set(&a.source[p], s, x, p);
    for (uint32_t o = 0; o <= s->noise; o++)
        a.out[o] = (tncuda_array){x->out[o]->data, x->out[o]->dtype, x->modes[o]};
    (void)snprintf(kernel, sizeof kernel, "random_%s", s->of->name);
    return tncuda_launch(x, "random", kernel, a.count, &a, err);
}

/* ---- whole numbers ------------------------------------------------------------------------------------- */

/* Whether the type holds a number. */
static bool holds(int32_t dtype, int64_t number)
{
    static const uint8_t bits[TN_DTYPE_LIMIT] = {
        [TN_U8] = 8, [TN_U16] = 16, [TN_U32] = 32, [TN_I8] = 7, [TN_I16] = 15, [TN_I32] = 31};
    const bool is_signed = dtype == TN_I8 || dtype == TN_I16 || dtype == TN_I32;
    const int64_t high = ((int64_t)1 << bits[dtype]) - 1;

    return dtype == TN_I64 || (number <= high && number >= (is_signed ? -high - 1 : 0));
}

static tn_status randint_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_random_args a = {.count = tn_tensor_count(x->out[0]),
                            .draw = tncuda_draw_of(x->rng),
                            .low = tn_value_int(x->attrs[TN_random_randint_low]),
                            .high = tn_value_int(x->attrs[TN_random_randint_high]),
                            .out = {{x->out[0]->data, x->out[0]->dtype, TN_MODE_WRITE}}};

    (void)plan;
    if (a.low >= a.high)
        return tn_fail(err, TN_E_ATTR, "low is not below high");
    if (!holds(x->out[0]->dtype, a.low) || !holds(x->out[0]->dtype, a.high - 1))
        return tn_fail(err, TN_E_ATTR, "low or high is beyond what the output's data type holds");
    return tncuda_launch(x, "random", "random_integers", a.count, &a, err);
}

/* ---- dropout ------------------------------------------------------------------------------------------- */

/* The mask may have extent 1 along some axes; the output is data times mask. */
typedef struct dropout_state {
    bool active; /* false: the data passes as it is */
    tn_plan scale;
} dropout_state;

/* The output from input 0, data or dy, and the mask. */
static tn_status scale_plan(void *plugin, const tn_node *node, const tn_tensor *mask, bool active,
                            tn_plan *plan, tn_err *err)
{
    static const tncuda_point_row masked = {"Dropout", TNCUDA_MUL, 2, -1},
                                  passed = {"Dropout", TNCUDA_COPY, 1, -1};
    const tn_tensor *const in[] = {node->in[0], mask};
    tn_node scale = *node;

    scale.in = in;
    return tncuda_point_plan(active ? &masked : &passed, active ? 2 : 1, plugin, &scale, plan, err);
}

static bool dropout_active(const tn_node *node)
{
    return (node->flags & TN_NODE_TRAIN) ||
           tn_value_int(node->attrs[TN_Dropout_mode]) == TN_Dropout_mode_always;
}

static void dropout_release(tn_plan *plan)
{
    dropout_state *s = plan->state;

    if (s)
        tncuda_release(&s->scale);
    tncuda_release(plan);
}

static tn_status dropout_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *mask = node->out[1];
    tn_status st = tncuda_state(plugin, node, plan, sizeof(dropout_state), err);
    dropout_state *s = plan->state;

    if (st)
        return st;
    s->active = dropout_active(node);
    s->scale = (tn_plan){.struct_size = plan->struct_size, .inplace = plan->inplace};
    if (s->active && !node->modes[1])
        plan->workspace_bytes = (uint64_t)tn_tensor_count(mask) * tn_dtype_bytes(mask->dtype);
    if ((st = scale_plan(plugin, node, mask, s->active, &s->scale, err)))
        dropout_release(plan);
    return st;
}

static tn_status dropout_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dropout_state *s = plan->state;
    tn_tensor mask = *x->out[1];
    const tn_tensor *const in[] = {x->in[0], &mask};
    tn_exec scale = *x;
    tn_status st = TN_OK;

    if (!x->modes[1])
        mask.data = x->workspace; /* nobody wants it afterwards */
    if (s->active) {
        const tncuda_random_args a = {.count = tn_tensor_count(&mask),
                                      .draw = tncuda_draw_of(x->rng),
                                      .source = {{.number = tn_value_float(x->attrs[TN_Dropout_p])}},
                                      .out = {{mask.data, mask.dtype, TN_MODE_WRITE}}};

        st = tncuda_launch(x, "random", "random_mask", a.count, &a, err);
    } else if (x->modes[1]) {
        tnb_move m;

        tnb_move_all(&m, &mask);
        st = tnb_move_number(plan, x, &m, mask.dtype, 1, mask.data, err);
    }
    scale.in = in;
    return st ? st : tncuda_point_run(&s->scale, &scale, err);
}

/* In predict mode the gradient passes as it is. in: dy, mask */
static tn_status backward_dropout_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return scale_plan(plugin, node, node->in[1], dropout_active(node), plan, err);
}

#define KERNEL(op, types) TNCUDA_ROW(op, types, 0, random_prepare, random_run)
#define ROWS(name, whole)                                                                                    \
    KERNEL("_random_" #name, types), KERNEL("_random_" #name "_like", types),                                \
        KERNEL("_sample_" #name, tensor_types),
#define NUMPY_ROW(op, ...) KERNEL(#op, tensor_types),
#define NUMPY_F32_ROW(op, ...) KERNEL(#op, f32_types),
static const char *const types[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const tensor_types[] = {"output:" TNCUDA_FLOATS, "*:" TNCUDA_ALL, NULL};
static const char *const f32_types[] = {"output:f32", "noise:f32", "*:" TNCUDA_ALL, NULL};
static const char *const powerd_types[] = {"output:f32", "*:" TNCUDA_ALL, NULL};
static const char *const all_types[] = {"*:" TNCUDA_ALL, NULL};
static const char *const randint_types[] = {"*:u8,i32,i8,i64,i16,u16,u32", NULL};
static const char *const dropout_types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};
static const char *const backward_dropout_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

/* clang-format off */
const tn_kernel *const tncuda_family_random[] = {
    DISTRIBUTIONS(ROWS) NUMPYS(NUMPY_ROW) NUMPYS_F32(NUMPY_F32_ROW)
    KERNEL("_npi_powerd", powerd_types),
    KERNEL("_npi_bernoulli", all_types),
    TNCUDA_ROW("_random_randint", randint_types, 0, tncuda_plain_prepare, randint_run),
    TNCUDA_ROW_RANKED("Dropout", "plain", 64, dropout_types, 0, dropout_prepare, dropout_run,
                      dropout_release),
    TNCUDA_ROW("_backward_Dropout", backward_dropout_types, 0, backward_dropout_prepare, tncuda_point_run),
    NULL,
};
/* clang-format on */
