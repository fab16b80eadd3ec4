/* Sums of many arrays, casts of many, a choice by condition. */
#include "last.h"

#include <stdio.h>

typedef struct elemwise_state {
    uint32_t count; /* of inputs */
    int64_t block;  /* elements that share one of the condition */
} elemwise_state;

static tn_status elemwise_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t conditions = tn_tensor_count(node->in[0]);
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(elemwise_state), err);

    if (st)
        return st;
    *(elemwise_state *)plan->state =
        (elemwise_state){node->in_count, conditions > 0 ? tn_tensor_count(node->out[0]) / conditions : 1};
    return TN_OK;
}

/* Of arrays that all have channels last, so has the sum. */
static tn_status sum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = elemwise_prepare(plugin, node, plan, err);

    if (!st && tncuda_last_pointwise(node) &&
        (st = tncuda_last_ask(plugin, node, plan, TNCUDA_LAST_ALL, TNCUDA_LAST_ALL, err)))
        tncuda_release(plan);
    return st;
}

static tn_status sum_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const elemwise_state *s = plan->state;
    const tn_tensor *to = x->out[0];
    tncuda_many_args a = {
        .count = tn_tensor_count(to), .to = to->data, .dtype = to->dtype, .add = x->modes[0] == TN_MODE_ADD};
    tn_status st = TN_OK;
    char kernel[TNCUDA_NAME_BYTES];

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    (void)snprintf(kernel, sizeof kernel, "sum_many_%s",
                   tncuda_is_float(to->dtype) ? tncuda_suffix(to->dtype) : "whole");
    for (uint32_t first = 0; first < s->count && !st; first += TNCUDA_MANY, a.add = 1) {
        a.many = (int32_t)(s->count - first < TNCUDA_MANY ? s->count - first : TNCUDA_MANY);
        for (int32_t k = 0; k < a.many; k++)
            a.in[k] = x->in[first + (uint32_t)k]->data;
        st = tncuda_launch(x, "elemwise", kernel, a.count, &a, err);
    }
    return st;
}

static tn_status multicast_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const elemwise_state *s = plan->state;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < s->count && !st; k++)
        if (x->modes[k] != TN_MODE_NONE && x->in[k]->data != x->out[k]->data)
            st = tncuda_cast(x, x->in[k], x->out[k], false, err);
    return st;
}

/* `yes`, `no`: the inputs where the condition is not 0, and where it is; -1: zeros. */
static tn_status choose(const tn_plan *plan, const tn_exec *x, int yes, int no, tn_err *err)
{
    const elemwise_state *s = plan->state;
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0])};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    a.in[1].data = yes < 0 ? NULL : x->in[yes]->data;
    a.in[2].data = no < 0 ? NULL : x->in[no]->data;
    a.n[0] = (int64_t)tn_dtype_bytes(x->out[0]->dtype);
    a.n[1] = s->block;
    return tncuda_launch(x, "elemwise", "choose", a.count, &a, err);
}

static tn_status where_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return choose(plan, x, 1, 2, err);
}

/* condition, dy -> dx, dy: each side gets the gradient where it was taken. */
static tn_status where_x_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return choose(plan, x, 1, -1, err);
}

static tn_status where_y_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return choose(plan, x, -1, 1, err);
}

/* A chain sums them one after the other with the same bits, unless a sum is rounded to less than it has. */
static const char *const exact[] = {"*:f32,f64,u8,i32,i8,i64,bool,i16,u16,u32", NULL};
static const char *const rounded[] = {"*:f16,bf16,u64", NULL};
static const char *const all[] = {"*:" TNCUDA_ALL, NULL};
static const char *const any[] = {"condition:" TNCUDA_ALL, "x:" TNCUDA_ALL, "*:=x", NULL};
static const char *const any_back[] = {"condition:" TNCUDA_ALL, "dy:" TNCUDA_ALL, "*:=dy", NULL};

#define SUMS (TN_KERNEL_ADD_TO | TN_KERNEL_LAYOUTS)

const tn_kernel *const tncuda_family_elemwise[] = {
    TNCUDA_ROW("add_n", exact, SUMS | TN_KERNEL_POINTWISE, sum_prepare, sum_run),
    TNCUDA_ROW_NAMED("add_n", "rounded", rounded, SUMS, sum_prepare, sum_run),
    TNCUDA_ROW("amp_multicast", all, 0, elemwise_prepare, multicast_run),
    TNCUDA_ROW("where", any, 0, elemwise_prepare, where_run),
    TNCUDA_ROW("_backward_where_x", any_back, 0, elemwise_prepare, where_x_run),
    TNCUDA_ROW("_backward_where_y", any_back, 0, elemwise_prepare, where_y_run),
    NULL,
};
