/*
 * einsum walks over the indices of the output and, within them, over those that are summed, in the order of
 * the inputs. Inputs are brought to doubles or 64-bit integers first; outputs are cut into parts, each of
 * which is one thread's. The gradient of one input is a walk over all indices that adds to it.
 */
#include "../../common/walk.h"
#include "convert.h"

typedef struct einsum_call {
    const tnb_walk *w;
    const tn_exec *x;
    const void *in[TN_EINSUM_INPUTS_MAX];
} einsum_call;

static tn_status walk_plan(void *plugin, const tn_node *node, tn_plan *plan, const tnb_walk *w, bool back,
                           tn_err *err)
{
    uint64_t bytes = TNCPU_ALIGN;
    tn_status st = tncpu_state(plugin, plan, sizeof *w, err);

    if (st)
        return st;
    *(tnb_walk *)plan->state = *w;
    for (int32_t k = 0; k < w->inputs + back; k++)
        bytes += (uint64_t)w->count[k] * sizeof(double) * (k < w->inputs && back ? 2 : 1);
    tncpu_plan_work(node, plan, 50 + 2.0 * (double)w->outputs * (double)w->summed * w->inputs);
    if (back) {
        plan->threads = 1;
        plan->flags &= ~TN_PLAN_PARALLEL;
    }
    plan->workspace_bytes = bytes;
    plan->workspace_align = TNCPU_ALIGN;
    return TN_OK;
}

static tn_status einsum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tnb_walk w;

    tnb_einsum_walk(node, node->in, (int32_t)node->in_count, node->out[0], &w);
    w.whole = !tncpu_is_float(node->out[0]->dtype);
    return walk_plan(plugin, node, plan, &w, false, err);
}

/* All elements of an array, as 8 bytes each. */
static void *wide_load(const tnb_walk *w, const tn_tensor *t, char **room)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];
    const int64_t count = tn_tensor_count(t);
    void *const all = *room;
    tncpu_tile tile;

    *room += count * (int64_t)sizeof(double);
    if (!w->whole) {
        tncpu_numbers(t, 0, 1, count, all);
        return all;
    }
    for (int64_t at = 0; at < count; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, count - at);

        if (c->kind == TNCPU_K_I64) {
            c->load((const char *)t->data + at * c->bytes, 1, (int64_t *)all + at, n);
            continue;
        }
        c->load((const char *)t->data + at * c->bytes, 1, &tile, n);
        tncpu_widen[TNCPU_K_I32][TNCPU_K_I64](&tile, (int64_t *)all + at, n);
    }
    return all;
}

/* Places of all arrays at number `index` of axes first … end-1. */
static void places(const tnb_walk *w, int32_t first, int32_t end, int64_t index, int64_t *at)
{
    for (int32_t a = end; a-- > first; index /= w->axis[a].extent)
        for (int32_t k = 0; k <= w->inputs; k++)
            at[k] += index % w->axis[a].extent * w->axis[a].step[k];
}

/* One output: the places walk like a counter over the summed axes. */
#define SUM(name, T, product, sum)                                                                           \
    static T name(const einsum_call *c, int64_t index)                                                       \
    {                                                                                                        \
        int64_t at[TN_EINSUM_INPUTS_MAX + 1] = {0}, digit[TN_EINSUM_LABELS_MAX] = {0};                       \
        const tnb_walk *w = c->w;                                                                            \
        T total = 0;                                                                                         \
                                                                                                             \
        places(w, 0, w->outer, index, at);                                                                   \
        for (int64_t s = 0; s < w->summed; s++) {                                                            \
            T a = ((const T *)c->in[0])[at[0]];                                                              \
                                                                                                             \
            for (int32_t k = 1; k < w->inputs; k++) {                                                        \
                const T b = ((const T *)c->in[k])[at[k]];                                                    \
                                                                                                             \
                a = product;                                                                                 \
            }                                                                                                \
            total = sum;                                                                                     \
            for (int32_t d = w->all; d-- > w->outer;) {                                                      \
                const int64_t by = ++digit[d] < w->axis[d].extent ? 1 : 1 - w->axis[d].extent;               \
                                                                                                             \
                for (int32_t k = 0; k < w->inputs; k++)                                                      \
                    at[k] += by * w->axis[d].step[k];                                                        \
                if (by == 1)                                                                                 \
                    break;                                                                                   \
                digit[d] = 0;                                                                                \
            }                                                                                                \
        }                                                                                                    \
        return total;                                                                                        \
    }
/* clang-format off */
SUM(sum_floats, double, a * b, total + a)
SUM(sum_whole, int64_t, (int64_t)((uint64_t)a * (uint64_t)b), (int64_t)((uint64_t)total + (uint64_t)a))
/* clang-format on */

static void einsum_part(void *arg, int64_t begin, int64_t end)
{
    const einsum_call *c = arg;
    const tn_tensor *y = c->x->out[0];
    const tncpu_convert *to = &tncpu_converts[y->dtype];

    for (int64_t i = begin; i < end; i++) {
        char *at = (char *)y->data + i * to->bytes;

        if (c->w->whole) {
            const int64_t sum = sum_whole(c, i);

            to->store_i(&sum, at, 1, 1);
        } else {
            const double sum = sum_floats(c, i);

            to->store_f(&sum, at, 1, 1);
        }
    }
}

static tn_status einsum_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_walk *w = plan->state;
    einsum_call call = {.w = w, .x = x};
    char *room = x->workspace;

    (void)err;
    for (int32_t k = 0; k < w->inputs; k++)
        call.in[k] = wide_load(w, x->in[k], &room);
    tncpu_for(plan, x, w->outputs, 1, einsum_part, &call);
    return TN_OK;
}

/* ---- gradient ----------------------------------------------------------------------------------- */

/* in: dy, inputs */
static tn_status backward_einsum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tnb_walk w;

    tnb_einsum_walk(node, node->in + 1, (int32_t)node->in_count - 1, node->in[0], &w);
    return walk_plan(plugin, node, plan, &w, true, err);
}

static void input_back(const einsum_call *c, const double *dy, int32_t input, double *dx)
{
    const tnb_walk *w = c->w;

    for (int64_t i = 0; i < w->outputs; i++)
        for (int64_t s = 0; s < w->summed; s++) {
            int64_t at[TN_EINSUM_INPUTS_MAX + 1] = {0};
            double part = dy[i];

            places(w, 0, w->outer, i, at);
            places(w, w->outer, w->all, s, at);
            for (int32_t k = 0; k < w->inputs; k++)
                part *= k == input ? 1 : ((const double *)c->in[k])[at[k]];
            dx[at[input]] += part;
        }
}

static tn_status backward_einsum_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_walk *w = plan->state;
    einsum_call call = {.w = w, .x = x};
    char *room = x->workspace;
    const double *dy = wide_load(w, x->in[0], &room);

    (void)err;
    for (int32_t k = 0; k < w->inputs; k++)
        call.in[k] = wide_load(w, x->in[k + 1], &room);
    for (int32_t k = 0; k < w->inputs; k++) {
        double *dx = (double *)(void *)room;

        if (!x->modes[k])
            continue;
        memset(dx, 0, (size_t)w->count[k] * sizeof *dx);
        input_back(&call, dy, k, dx);
        tncpu_numbers_store(x->out[k], 0, 1, w->count[k], dx);
    }
    return TN_OK;
}

static const char *const types[] = {"data0:" TNCPU_MOST, "*:=data0", NULL};
static const char *const back_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

const tn_kernel *const tncpu_family_einsum[] = {
    TNCPU_ROW("_npi_einsum", types, TN_KERNEL_EMPTY_OK, einsum_prepare, einsum_run),
    TNCPU_ROW("_backward__npi_einsum", back_types, TN_KERNEL_EMPTY_OK, backward_einsum_prepare,
              backward_einsum_run),
    NULL,
};
