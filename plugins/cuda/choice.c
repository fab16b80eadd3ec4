/* Positions that are drawn: kernels/choice.cu. */
#include "tenon/plugin/op/choice.h"
#include "../common/move.h"
#include "../common/zipfian.h"
#include "launch.h"

typedef struct choice_state {
    int64_t count, rows, each; /* positions of a row; rows; draws of a row */
    int32_t weights;           /* input; -1: none */
    bool replace;
} choice_state;

static tn_status state_make(void *plugin, const tn_node *node, tn_plan *plan, uint64_t bytes, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(choice_state), err);

    plan->workspace_bytes = bytes;
    return st;
}

/* Sums of rows of probabilities into the workspace. */
static tn_status sums_make(const tn_exec *x, const tn_tensor *t, int64_t rows, int64_t count, tn_err *err)
{
    const tncuda_call_args a = {
        .outer = rows, .size = count, .in = {tncuda_array_of(t, TN_MODE_NONE)}, .room = x->workspace};

    return tncuda_launch(x, "choice", "choice_sums", rows, &a, err);
}

/* ---- _sample_multinomial ------------------------------------------------------------------------------- */

static tn_status rows_state(void *plugin, const tn_node *node, tn_plan *plan, const tn_tensor *data,
                            int64_t draws, tn_err *err)
{
    const int64_t rows = tnb_dims(data, 0, data->ndim - 1), count = data->shape[data->ndim - 1];
    const tn_status st = state_make(plugin, node, plan, (uint64_t)(rows * count + 1) * sizeof(double), err);

    if (!st)
        *(choice_state *)plan->state =
            (choice_state){.count = count, .rows = rows, .each = rows ? draws / rows : 0};
    return st;
}

static tn_status multinomial_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return rows_state(plugin, node, plan, node->in[0], tn_tensor_count(node->out[0]), err);
}

/* The largest whole number of a type; floats round. */
static double most_of(int32_t dtype)
{
    static const double most[TN_DTYPE_LIMIT] = {
        [TN_U8] = UINT8_MAX,  [TN_I8] = INT8_MAX,    [TN_I16] = INT16_MAX, [TN_U16] = UINT16_MAX,
        [TN_I32] = INT32_MAX, [TN_U32] = UINT32_MAX, [TN_I64] = 9.2e18};

    return tncuda_is_float(dtype) ? 9.2e18 : most[dtype];
}

static tn_status multinomial_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const choice_state *s = plan->state;
    const bool prob = tn_value_int(x->attrs[TN_sample_multinomial_get_prob]) != 0;
    tncuda_random_args a = {.count = tn_tensor_count(x->out[0]),
                            .low = s->count,
                            .high = s->each,
                            .draw = tncuda_draw_of(x->rng),
                            .out = {tncuda_array_of(x->out[0], x->modes[0])}};
    tn_status st;

    if ((double)(s->count - 1) > most_of(x->out[0]->dtype))
        return tn_fail(err, TN_E_ATTR, "dtype cannot hold the positions of a row of data");
    if (!a.count)
        return TN_OK;
    if ((st = sums_make(x, x->in[0], s->rows, s->count, err)))
        return st;
    a.source[0].data = x->workspace;
    a.source[1].data = x->in[0]->data;
    a.source[1].dtype = x->in[0]->dtype;
    if (prob)
        a.out[1] = tncuda_array_of(x->out[1], x->modes[1]);
    return tncuda_launch(x, "choice", "choice_again", a.count, &a, err);
}

/* in: dy of the logarithms, data, positions */
static tn_status multinomial_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return rows_state(plugin, node, plan, node->in[1], tn_tensor_count(node->in[0]), err);
}

static tn_status multinomial_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const choice_state *s = plan->state;
    tncuda_call_args a = {.outer = s->rows, .size = s->count, .inner = s->each};

    if (x->modes[0] == TN_MODE_NONE || !s->count)
        return TN_OK;
    tncuda_call_arrays(x, 3, 1, &a);
    return tncuda_launch(x, "choice", "choice_again_back", a.outer, &a, err);
}

/* ---- _npi_multinomial ---------------------------------------------------------------------------------- */

static tn_status counts_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *y = node->out[0];
    const int64_t count = y->shape[y->ndim - 1];

    if (tn_value_pointer(node->attrs[TN_npi_multinomial_pvals]) && count > TNCUDA_CALL_NUMBERS)
        return tn_failf(err, TN_E_UNSUPPORTED, "at most %d outcomes as numbers", TNCUDA_CALL_NUMBERS);
    return state_make(plugin, node, plan, (uint64_t)(count + 1) * sizeof(double), err);
}

/* Probabilities that are numbers are looked at here. */
static tn_status numbers_check(const tncuda_call_args *a, tn_err *err)
{
    double sum = 0;

    for (int64_t i = 0; i < a->size; i++) {
        if (!(a->f[i] >= 0))
            return tn_fail(err, TN_E_ARG, "a probability is below 0, or not a number");
        if ((sum += a->f[i]) > 1 + 1e-12)
            return tn_fail(err, TN_E_ARG, "the sum of the probabilities is above 1");
    }
    return TN_OK;
}

static tn_status counts_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const bool numbers = tn_value_pointer(x->attrs[TN_npi_multinomial_pvals]) != NULL;
    tncuda_call_args sums = {.outer = 1, .size = y->shape[y->ndim - 1], .room = x->workspace};
    tncuda_random_args a = {.count = tnb_dims(y, 0, y->ndim - 1),
                            .low = sums.size,
                            .high = tn_value_int(x->attrs[TN_npi_multinomial_n]),
                            .draw = tncuda_draw_of(x->rng),
                            .out = {tncuda_array_of(y, TN_MODE_WRITE)}};
    tn_status st = TN_OK;

    (void)plan;
    if (!sums.size || x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (numbers) {
        (void)tncuda_call_numbers(x->attrs, TN_npi_multinomial_pvals, 0, &sums);
        st = numbers_check(&sums, err);
    } else {
        sums.in[0] = tncuda_array_of(x->in[0], TN_MODE_NONE);
    }
    if (st || (st = tncuda_launch(x, "choice", "choice_sums", 1, &sums, err)))
        return st;
    a.source[0].data = x->workspace;
    return tncuda_launch(x, "choice", "choice_counts", a.count, &a, err);
}

/* ---- _npi_choice, _shuffle ----------------------------------------------------------------------------- */

#define CHOICE_MOST ((int64_t)1 << 28) /* positions: 8 GiB of entries */

static tn_status choice_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t *a = tn_value_pointer(node->attrs[TN_npi_choice_a]);
    const int64_t count = a ? *a : tn_tensor_count(node->in[0]);
    tn_status st;

    if (count > CHOICE_MOST)
        return tn_fail(err, TN_E_UNSUPPORTED, "a list of all positions would not fit; hosts need none");
    st = state_make(plugin, node, plan, 2 * TNCUDA_ENTRY_BYTES * (uint64_t)(count + 1), err);
    if (!st)
        *(choice_state *)plan->state = (choice_state){
            .count = count,
            .weights = tn_value_int(node->attrs[TN_npi_choice_weighted]) ? (int32_t)node->in_count - 1 : -1,
            .replace = tn_value_int(node->attrs[TN_npi_choice_replace]) != 0};
    return st;
}

/* The list 0 … size-1 in the workspace, after `steps` exchanges; behind it lie their places. */
static tn_status exchanged(const tn_exec *x, int64_t size, int64_t steps, bool forward, tn_err *err)
{
    int64_t *places = (int64_t *)x->workspace + size;
    const tncuda_random_args draw = {.count = steps,
                                     .low = size,
                                     .high = forward,
                                     .draw = tncuda_draw_of(x->rng),
                                     .out = {{places, TN_I64, TN_MODE_WRITE}}};
    const tncuda_call_args a = {.count = steps,
                                .size = size,
                                .in = {{places, TN_I64, TN_MODE_NONE}},
                                .room = x->workspace,
                                .n = {forward}};
    const tn_status st = tncuda_launch(x, "choice", "choice_places", steps, &draw, err);

    return st ? st : tncuda_launch(x, "choice", "choice_exchange", 1, &a, err);
}

/* Each position arrives after an exponential time divided by its weight: the first ones are chosen. */
static tn_status apart_weighted(const choice_state *s, const tn_exec *x, tn_err *err)
{
    tncuda_random_args times = {
        .count = s->count, .draw = tncuda_draw_of(x->rng), .out = {{x->workspace, TN_I64, TN_MODE_WRITE}}};
    void *sorted = x->workspace, *spare = (char *)sorted + (uint64_t)s->count * TNCUDA_ENTRY_BYTES;
    tncuda_call_args first = {.count = tn_tensor_count(x->out[0]),
                              .out = {tncuda_array_of(x->out[0], TN_MODE_WRITE)}};
    tn_status st;

    times.source[0].data = x->in[s->weights]->data;
    times.source[0].dtype = x->in[s->weights]->dtype;
    if ((st = tncuda_launch(x, "choice", "choice_times", times.count, &times, err)) ||
        (st = tncuda_order_merge(x, s->count, s->count, &sorted, &spare, err)))
        return st;
    first.in[0].data = sorted;
    return tncuda_launch(x, "choice", "choice_first", first.count, &first, err);
}

static tn_status choice_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const choice_state *s = plan->state;
    const int64_t wanted = tn_tensor_count(x->out[0]);
    tncuda_random_args again = {.count = wanted,
                                .low = s->count,
                                .high = wanted,
                                .draw = tncuda_draw_of(x->rng),
                                .out = {tncuda_array_of(x->out[0], TN_MODE_WRITE)}};
    const tncuda_call_args rows = {
        .count = wanted, .size = 1, .room = x->workspace, .out = {tncuda_array_of(x->out[0], TN_MODE_WRITE)}};
    tn_status st = TN_OK;

    if (x->modes[0] == TN_MODE_NONE || !wanted)
        return TN_OK;
    if (!s->replace && s->weights >= 0)
        return apart_weighted(s, x, err);
    if (!s->replace) {
        st = exchanged(x, s->count, wanted, true, err);
        return st ? st : tncuda_launch(x, "choice", "choice_rows", wanted, &rows, err);
    }
    if (s->weights >= 0) {
        st = sums_make(x, x->in[s->weights], 1, s->count, err);
        again.source[0].data = x->workspace;
    }
    return st ? st : tncuda_launch(x, "choice", "choice_again", wanted, &again, err);
}

static int64_t rows_of(const tn_tensor *t)
{
    return t->ndim ? t->shape[0] : 1;
}

static tn_status shuffle_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return state_make(plugin, node, plan, 2 * (uint64_t)rows_of(node->in[0]) * sizeof(int64_t), err);
}

static tn_status shuffle_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t rows = rows_of(x->in[0]), count = tn_tensor_count(x->in[0]);
    tncuda_call_args a = {.count = count,
                          .size = rows ? count / rows : 0,
                          .room = x->workspace,
                          .n = {(int64_t)tn_dtype_bytes(x->in[0]->dtype)}};
    tn_status st;

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE || !count)
        return TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    a.room = x->workspace;
    st = exchanged(x, rows, rows, false, err);
    return st ? st : tncuda_launch(x, "choice", "choice_rows", count, &a, err);
}

/* ---- _sample_unique_zipfian ---------------------------------------------------------------------------- */

static tn_status zipfian_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t *shape = node->out[0]->shape;
    const uint64_t slots = tnb_table_slots(shape[1]);

    if (slots > INT32_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "too many classes for a table");
    return state_make(plugin, node, plan, (uint64_t)shape[0] * slots * sizeof(int32_t), err);
}

static tn_status zipfian_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t *shape = x->out[0]->shape;
    tncuda_random_args a = {
        .count = shape[0],
        .low = shape[1],
        .high = tn_value_int(x->attrs[TN_sample_unique_zipfian_range_max]),
        .interval = (int32_t)tnb_table_slots(shape[1]),
        .draw = tncuda_draw_of(x->rng),
        .out = {tncuda_array_of(x->out[0], x->modes[0]), tncuda_array_of(x->out[1], x->modes[1])}};

    (void)plan;
    a.source[0].data = x->workspace;
    return tncuda_launch(x, "choice", "choice_zipfian", a.count, &a, err);
}

static const char *const multinomial_types[] = {"data:" TNCUDA_FLOATS, "log_prob:=data", "*:" TNCUDA_NUMBERS,
                                                NULL};
static const char *const back_types[] = {"dy1:" TNCUDA_FLOATS, "data:=dy1", "output:" TNCUDA_NUMBERS,
                                         "*:=dy1", NULL};
static const char *const counts_types[] = {"output:i64", "a:" TNCUDA_NUMBERS, NULL};
static const char *const positions_types[] = {"output:i64", "*:" TNCUDA_ALL, NULL};
static const char *const all_types[] = {"data:" TNCUDA_ALL, "*:=data", NULL};
static const char *const zipfian_types[] = {"*:i64", NULL};

const tn_kernel *const tncuda_family_choice[] = {
    TNCUDA_ROW("_sample_multinomial", multinomial_types, 0, multinomial_prepare, multinomial_run),
    TNCUDA_ROW("_backward__sample_multinomial", back_types, TN_KERNEL_EMPTY_OK, multinomial_back_prepare,
               multinomial_back_run),
    TNCUDA_ROW("_npi_multinomial", counts_types, 0, counts_prepare, counts_run),
    TNCUDA_ROW("_npi_choice", positions_types, 0, choice_prepare, choice_run),
    TNCUDA_ROW("_sample_unique_zipfian", zipfian_types, 0, zipfian_prepare, zipfian_run),
    TNCUDA_ROW("_shuffle", all_types, 0, shuffle_prepare, shuffle_run),
    NULL,
};
