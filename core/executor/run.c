/* Forward, backward, and what a monitor sees. */
#include "executor/executor.h"

#include <stdio.h>

/* ---- values ---------------------------------------------------------------------------------- */

tn_status tni_executor_fill(const tni_executor *e, uint32_t count, const uint32_t *at,
                            tni_array *const *arrays)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++) {
        const tni_array *to = e->values[at[i]];
        const char *name = e->graph->nodes[e->graph->variables[at[i]]].name;

        if ((st = tni_array_shape_wait(arrays[i])))
            break;
        if (!tni_array_has_shape(to, arrays[i]->ndim, arrays[i]->shape))
            st = tni_error(TN_E_SHAPE,
                           "\"%.200s\": the array given has another shape than the executor is bound to",
                           name);
        else if (to->storage_type != TN_STORAGE_DENSE || arrays[i]->storage_type != TN_STORAGE_DENSE)
            st = tni_error(TN_E_UNSUPPORTED, "\"%.200s\": sparse arrays are bound, not copied", name);
    }
    for (uint32_t i = 0; i < count && !st; i++)
        st = tni_array_copy(arrays[i], e->values[at[i]]);
    return st;
}

/* ---- forward and backward -------------------------------------------------------------------- */

/* What the forward before has recorded is given up, and with it what its backward would have read. */
static void outputs_forget(tni_executor *e)
{
    for (uint32_t o = 0; o < e->graph->head_count; o++)
        if (e->outputs[o])
            tni_array_forget(e->outputs[o]);
    e->recorded = false;
}

/* Outputs whose shape a run tells are new each time. */
static void outputs_take(tni_executor *e, tni_array **out, bool recorded)
{
    for (uint32_t o = 0; o < e->graph->head_count; o++) {
        if (out[o] != e->outputs[o]) {
            tni_array_release(e->outputs[o]);
            e->outputs[o] = out[o]; /* moved */
        }
        e->heads[o] = recorded && out[o]->grad_entry;
    }
}

static bool output_stays(const tni_executor *e, uint32_t o)
{
    return tn_shape_known(&e->graph->shapes[e->graph->heads[o]]) &&
           e->graph->storages[e->graph->heads[o]] <= TN_STORAGE_DENSE;
}

tn_status tni_executor_forward(tni_executor *e, bool train)
{
    const uint32_t count = e->graph->head_count;
    tni_array **out = tni_calloc(count + 1u, sizeof(*out));
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    tn_status st;

    if (!out)
        return TN_E_NOMEM;
    outputs_forget(e);
    for (uint32_t o = 0; o < count; o++)
        out[o] = output_stays(e, o) ? e->outputs[o] : NULL;
    scope->recording = scope->training = train;
    scope->np_shape = e->graph->np_shape;
    st = tni_cached_op_call(e->watched ? e->watched : e->op, e->graph->variable_count, e->inputs, count, out);
    *scope = before;
    if (!st) {
        outputs_take(e, out, train);
        e->recorded = train;
    }
    tni_free((void *)out);
    return st;
}

tn_status tni_executor_backward(tni_executor *e, tni_array *const *head_grads)
{
    const uint32_t all = e->graph->head_count;
    const tni_backward_options options = {0};
    tni_array **heads, **grads;
    uint32_t count = 0;
    tn_status st;

    if (!e->recorded)
        return tni_error(TN_E_STATE,
                         "a backward needs a forward in training before it, and each needs its own");
    if (!(heads = tni_calloc(2 * (size_t)all + 1u, sizeof(*heads))))
        return TN_E_NOMEM;
    grads = heads + all;
    for (uint32_t o = 0; o < all; o++)
        if (e->heads[o]) {
            heads[count] = e->outputs[o];
            grads[count++] = head_grads ? head_grads[o] : NULL;
        }
    st = count ? tni_backward(e->ctx, count, heads, grads, &options)
               : tni_error(TN_E_STATE, "no argument that the outputs depend on has a gradient");
    if (!st)
        e->recorded = false;
    tni_free((void *)heads);
    return st;
}

/* ---- the monitor ----------------------------------------------------------------------------- */

/* The user's function makes calls as if nobody were recording. */
static void monitor_show(const tni_executor *e, const char *node, const char *own, tni_array *a)
{
    char name[2 * TN_NAME_MAX + 64];
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;

    (void)snprintf(name, sizeof name, "%s%s%s", node, *node ? "_" : "", own);
    scope->recording = scope->training = false;
    scope->draw = NULL;
    e->fn(e->arg, name, a);
    *scope = before;
}

static tn_status node_seen(void *arg, const tni_gnode *n, bool output, tni_array *const *arrays)
{
    const tni_executor *e = arg;
    const uint32_t count = output ? n->visible_count : n->input_count;
    char own[TN_NAME_MAX + 32];
    tni_args args;
    tn_status st;

    if (!output && !e->with_inputs)
        return TN_OK;
    st = tni_op_args(n->def, n->attrs, n->input_count, &args);
    for (uint32_t i = 0; i < count && !st; i++) {
        st = output ? tni_op_output_name(n->def, &args, i, own, sizeof own)
                    : tni_op_input_name(n->def, &args, i, own, sizeof own);
        if (!st)
            monitor_show(e, n->name, own, arrays[i]);
    }
    return st;
}

tn_status tni_executor_monitor(tni_executor *e, tni_monitor_fn fn, void *arg, bool with_inputs)
{
    const tni_cached_flags flags = {.inline_limit = UINT32_MAX};
    tni_cached_op *watched = NULL;
    tn_status st = TN_OK;

    for (uint32_t n = 0; fn && n < e->graph->node_count; n++)
        if (e->graph->nodes[n].device)
            return tni_error(TN_E_UNSUPPORTED, "a net over several devices cannot be monitored");
    if (fn && !tni_inlines(e->graph, UINT32_MAX))
        return tni_error(TN_E_UNSUPPORTED,
                         "this net cannot be monitored: an operator of it runs a graph of its own, or reads "
                         "what no caller sees");
    if (fn && !(st = tni_cached_op_create(e->ctx, e->symbol, &flags, &watched)))
        tni_cached_op_watch(watched, node_seen, e);
    if (st)
        return st;
    tni_cached_op_release(e->watched);
    e->watched = watched;
    e->fn = fn;
    e->arg = arg;
    e->with_inputs = with_inputs;
    return TN_OK;
}
