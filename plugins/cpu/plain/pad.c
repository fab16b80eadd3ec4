/*
 * Padding. Which index of the input stands at an index of the output is a function of the axis alone. A row
 * of the output is a copy with the ends around it; an element of the gradient is the sum over its copies.
 */
#include "../../common/pad.h"
#include "../../common/index.h"
#include "keys.h"
#include "rows.h"

typedef struct form {
    const char *op;
    uint32_t mode, width, constant; /* attributes */
} form;

static const form forms[] = {
    {"Pad", TN_Pad_mode, TN_Pad_pad_width, TN_Pad_constant_value},
    {"_backward_Pad", TN_Pad_mode, TN_Pad_pad_width, TN_Pad_constant_value},
    {"_npi_pad", TN_npi_pad_mode, TN_npi_pad_pad_width, TN_npi_pad_constant_value},
    {"_backward_npi_pad", TN_npi_pad_mode, TN_npi_pad_pad_width, TN_npi_pad_constant_value},
};
_Static_assert((int)TN_Pad_mode_constant == TN_npi_pad_mode_constant &&
                   (int)TN_Pad_mode_edge == TN_npi_pad_mode_edge &&
                   (int)TN_Pad_mode_reflect == TN_npi_pad_mode_reflect,
               "both operators number their modes alike");

typedef struct pad_plan {
    const form *form;
    int64_t mode;
    int64_t before[TN_NDIM_MAX], behind[TN_NDIM_MAX];
} pad_plan;

static tn_status pad_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = tncpu_form_of(forms, sizeof *forms, node->op);
    const tn_tuple *width = tn_value_pointer(node->attrs[f->width]);
    pad_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->form = f;
    p->mode = tn_value_int(node->attrs[f->mode]);
    for (int32_t d = 0; d < node->in[0]->ndim; d++) {
        p->before[d] = width->item[2 * d];
        p->behind[d] = width->item[2 * d + 1];
    }
    tncpu_plan_work(node, plan,
                    20 + (double)tn_tensor_count(node->in[0]) + (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

/* ---- forward ------------------------------------------------------------------------------------- */

typedef struct pad_call {
    const pad_plan *p;
    const tn_tensor *x, *y;
    int64_t bytes;
    uint64_t constant; /* an element */
} pad_call;

/* What stands at output index o of each axis. */
static const char *element_of(const pad_call *c, const int64_t *o)
{
    int64_t at = 0, step = 1;

    for (int32_t d = c->x->ndim; d-- > 0; step *= c->x->shape[d]) {
        const int64_t from = tnb_pad_source(c->p->mode, o[d] - c->p->before[d], c->x->shape[d]);

        if (from == TNB_NOWHERE)
            return (const char *)&c->constant;
        at += from * step;
    }
    return (const char *)c->x->data + at * c->bytes;
}

/* One row of the output. What stands there as it is in the input is copied at once. */
static void pad_row(const pad_call *c, int64_t row)
{
    const int32_t last = c->x->ndim - 1;
    const int64_t size = c->x->shape[last], outs = c->y->shape[last], before = c->p->before[last];
    char *to = (char *)c->y->data + row * outs * c->bytes;
    int64_t o[TN_NDIM_MAX], left = row;

    for (int32_t d = last; d-- > 0; left /= c->y->shape[d])
        o[d] = left % c->y->shape[d];
    for (o[last] = 0; o[last] < outs; o[last]++) {
        const char *from = element_of(c, o);
        const bool inside = o[last] == before && size > 0 && from != (const char *)&c->constant;
        const int64_t n = inside ? size : 1;

        memcpy(to + o[last] * c->bytes, from, (size_t)(n * c->bytes));
        o[last] += n - 1;
    }
}

static void pad_part(void *arg, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++)
        pad_row(arg, row);
}

/* The line along axis `d` of the output whose first element is `to`: its ends take the best of its inside. */
static void line_fill(const pad_call *c, int32_t d, char *to, int64_t step)
{
    const tncpu_convert *convert = &tncpu_converts[c->x->dtype];
    const int64_t begin = c->p->before[d], end = begin + c->x->shape[d];
    const char *best = NULL;
    uint64_t best_key = 0;

    for (int64_t i = begin; i < end; i++) {
        tncpu_tile tile;
        uint64_t key;

        convert->load(to + i * step, 1, &tile, 1);
        key = tncpu_key(c->x, &tile, 0);
        if (!best || (c->p->mode == TN_npi_pad_mode_maximum ? key > best_key : key < best_key)) {
            best = to + i * step;
            best_key = key;
        }
    }
    for (int64_t i = 0; best && i < c->y->shape[d]; i++)
        if (i < begin || i >= end)
            memcpy(to + i * step, best, (size_t)c->bytes);
}

/* Axis by axis: lines through what is filled already, which is whole along the axes before. */
static void lines_fill(const pad_call *c)
{
    int64_t step = tn_tensor_count(c->y) * c->bytes;

    for (int32_t d = 0; step && d < c->x->ndim; d++) {
        const int64_t lines = tncpu_dims(c->y, 0, d), behind = tncpu_dims(c->x, d + 1, c->x->ndim);

        step /= c->y->shape[d];
        for (int64_t k = 0; k < lines * behind; k++) {
            int64_t at = k / behind * c->y->shape[d] * step, left = k % behind, size = c->bytes;

            for (int32_t e = c->x->ndim; e-- > d + 1; left /= c->x->shape[e], size *= c->y->shape[e])
                at += (left % c->x->shape[e] + c->p->before[e]) * size;
            line_fill(c, d, (char *)c->y->data + at, step);
        }
    }
}

static tn_status pad_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const pad_plan *p = plan->state;
    const double constant = tn_value_float(x->attrs[p->form->constant]);
    pad_call c = {p, x->in[0], x->out[0], (int64_t)tn_dtype_bytes(x->in[0]->dtype), 0};

    (void)err;
    if (c.x->ndim == 0) {
        memcpy(c.y->data, c.x->data, (size_t)c.bytes);
        return TN_OK;
    }
    tncpu_converts[c.y->dtype].store_f(&constant, &c.constant, 1, 1);
    tncpu_for(plan, x, tncpu_dims(c.y, 0, c.y->ndim - 1), 1, pad_part, &c);
    if (p->mode >= TN_npi_pad_mode_maximum)
        lines_fill(&c);
    return TN_OK;
}

/* ---- backward ------------------------------------------------------------------------------------ */

static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = tncpu_form_of(forms, sizeof *forms, node->op);

    if (tn_value_int(node->attrs[f->mode]) >= TN_npi_pad_mode_maximum)
        return tn_fail(err, TN_E_UNSUPPORTED, "padding with maxima or minima has no gradient");
    return pad_prepare(plugin, node, plan, err);
}

/* The sum of dy over all outputs that element `at` of the input stands in. */
static double copies_sum(const pad_plan *p, const tn_tensor *dy, const tn_tensor *dx, int64_t at)
{
    tnb_places where[TN_NDIM_MAX][2];
    int64_t combinations = 1;
    double sum = 0;

    for (int32_t d = dx->ndim; d-- > 0; at /= dx->shape[d]) {
        tnb_pad_copies(p->mode, p->before[d], p->behind[d], at % dx->shape[d], dx->shape[d], where[d]);
        combinations *= where[d][0].count + where[d][1].count;
    }
    for (int64_t c = 0; c < combinations; c++) {
        int64_t left = c, from = 0, step = 1;

        for (int32_t d = dx->ndim; d-- > 0; step *= dy->shape[d]) {
            const int64_t copies = where[d][0].count + where[d][1].count, k = left % copies;
            const tnb_places *s = &where[d][k >= where[d][0].count];

            from += (p->before[d] + s->start + (k - (s == &where[d][1] ? where[d][0].count : 0)) * s->step) *
                    step;
            left /= copies;
        }
        sum += tncpu_number(dy, from);
    }
    return sum;
}

typedef struct back_call {
    const pad_plan *p;
    const tn_exec *x;
} back_call;

static void back_part(void *arg, int64_t begin, int64_t end)
{
    const back_call *c = arg;

    for (int64_t at = begin; at < end; at++) {
        const double sum = copies_sum(c->p, c->x->in[0], c->x->out[0], at);

        tncpu_numbers_store(c->x->out[0], at, 1, 1, &sum);
    }
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    back_call c = {plan->state, x};

    (void)err;
    tncpu_for(plan, x, tn_tensor_count(x->out[0]), TNCPU_TILE, back_part, &c);
    return TN_OK;
}

const tn_kernel *const tncpu_family_pad[] = {
    TNCPU_ROW("Pad", tncpu_all, 0, pad_prepare, pad_run),
    TNCPU_ROW("_npi_pad", tncpu_all, 0, pad_prepare, pad_run),
    TNCPU_ROW("_backward_Pad", tncpu_floats, 0, back_prepare, back_run),
    TNCPU_ROW("_backward_npi_pad", tncpu_floats, 0, back_prepare, back_run),
    NULL,
};
