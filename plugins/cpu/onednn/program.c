/*
 * Plans as lists of primitives. The library's objects that carry addresses belong to one run at a time: a
 * plan keeps one set of them ready, a run that finds it taken makes its own. Primitives are made for a number
 * of threads and are wrong with fewer, so a plan for several has a second list for one.
 */
#include <omp.h>

#include "onednn.h"

/* ---- steps --------------------------------------------------------------------------------------------- */

/* Names of implementations that are loops for tests, or unfold pixels. */
tn_status tndnn_fast(tndnn_maker *m, dnnl_status_t made, const_dnnl_primitive_desc_t pd, const char *what)
{
    static const char *const slow[] = {"ref", "simple"};
    const char *name = "";
    tn_status st = tndnn_status(made, what, m->err);

    if (st)
        return st;
    (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (!strncmp(name, slow[i], strlen(slow[i])))
            return tn_failf(m->err, TN_E_UNSUPPORTED, "oneDNN has no fast code for this %s (%s)", what, name);
    return TN_OK;
}

tn_status tndnn_step(tndnn_maker *m, dnnl_status_t made, dnnl_primitive_desc_t pd, const char *what)
{
    tndnn_variant *v = m->v;
    tn_status st = tndnn_status(made, what, m->err);

    if (!st && v->step_count == TNDNN_STEPS_MAX)
        st = tn_fail(m->err, TN_E_INTERNAL, "too many steps");
    if (!st)
        st = tndnn_status(dnnl_primitive_create(&v->step[v->step_count], pd), what, m->err);
    if (!st) {
        const tndnn_md *scratch = tndnn_query(pd, dnnl_query_scratchpad_md, 0);
        const uint64_t bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;

        v->first[v->step_count++] = v->use_count;
        v->first[v->step_count] = v->use_count;
        if (bytes)
            st = tndnn_use_add(m, DNNL_ARG_SCRATCHPAD, (tndnn_place){TNDNN_SCRATCH, 0, 0}, scratch);
        if (bytes > v->scratch_bytes)
            v->scratch_bytes = bytes;
    }
    if (!made)
        (void)dnnl_primitive_desc_destroy(pd);
    return st;
}

tn_status tndnn_use_add(tndnn_maker *m, int32_t arg, tndnn_place at, const tndnn_md *md)
{
    tndnn_variant *v = m->v;

    if (v->use_count == v->use_max)
        return tn_fail(m->err, TN_E_INTERNAL, "too many arguments");
    v->uses[v->use_count++] = (tndnn_use){arg, at, *md};
    v->first[v->step_count] = v->use_count;
    return TN_OK;
}

tndnn_place tndnn_work_bytes(tndnn_maker *m, uint64_t bytes)
{
    const tndnn_place at = {TNDNN_WORK, 0, m->v->work_bytes};

    m->v->work_bytes += (bytes + TNCPU_ALIGN - 1) & ~(uint64_t)(TNCPU_ALIGN - 1);
    return at;
}

tndnn_place tndnn_work(tndnn_maker *m, const tndnn_md *md)
{
    return tndnn_work_bytes(m, dnnl_memory_desc_get_size(md));
}

tn_status tndnn_reorder(tndnn_maker *m, tndnn_place from, const tndnn_md *have, tndnn_place to,
                        const tndnn_md *want)
{
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t made = tndnn_pd_reorder(&pd, m->engine, have, want, m->attr);
    tn_status st;

    if ((st = tndnn_step(m, made, pd, "reorder")) || (st = tndnn_use_add(m, DNNL_ARG_FROM, from, have)))
        return st;
    return tndnn_use_add(m, DNNL_ARG_TO, to, want);
}

/* ---- frames -------------------------------------------------------------------------------------------- */

static void frame_destroy(const tndnn_variant *v, tndnn_frame *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < v->use_count; i++)
        if (f->args[i].memory)
            (void)dnnl_memory_destroy(f->args[i].memory);
    if (f->stream)
        (void)dnnl_stream_destroy(f->stream);
    tndnn_free(f);
}

static tn_status frame_create(const tndnn_state *s, const tndnn_variant *v, tndnn_frame **out, tn_err *err)
{
    const uint64_t args = sizeof(tndnn_frame), handles = args + v->use_count * sizeof(dnnl_exec_arg_t);
    const dnnl_engine_t engine = atomic_load(&s->plugin->engine);
    tndnn_frame *f = tndnn_alloc(s->plugin, handles + v->use_count * sizeof(void *));
    dnnl_status_t made;

    if (!f)
        return tn_fail(err, TN_E_NOMEM, "no memory for the arguments of a primitive");
    f->args = (dnnl_exec_arg_t *)(void *)((char *)f + args);
    f->handles = (void **)(void *)((char *)f + handles);
    made = dnnl_stream_create(&f->stream, engine, dnnl_stream_in_order);
    for (uint32_t i = 0; !made && i < v->use_count; i++) {
        f->args[i].arg = v->uses[i].arg;
        made = dnnl_memory_create(&f->args[i].memory, &v->uses[i].md, engine, DNNL_MEMORY_NONE);
    }
    if (made) {
        frame_destroy(v, f);
        return tndnn_status(made, "arguments", err);
    }
    *out = f;
    return TN_OK;
}

/* ---- run ----------------------------------------------------------------------------------------------- */

static void *address(const tndnn_variant *v, const tn_exec *x, const tndnn_place *at)
{
    char *work = x->workspace;

    switch (at->kind) {
    case TNDNN_IN:
        return (char *)x->in[at->index]->data + at->offset;
    case TNDNN_OUT:
        return x->out[at->index]->data;
    case TNDNN_SAVED:
        return (char *)x->saved + at->offset;
    case TNDNN_SCRATCH:
        return work + v->work_bytes;
    default:
        return work + at->offset;
    }
}

/* Setting an address may write the padding of the tensor there, so one that stays is not set again. */
static dnnl_status_t addresses_set(const tndnn_variant *v, tndnn_frame *f, const tn_exec *x)
{
    dnnl_status_t st = dnnl_success;

    for (uint32_t i = 0; !st && i < v->use_count; i++) {
        void *at = address(v, x, &v->uses[i].at);

        if (at == f->handles[i])
            continue;
        st = dnnl_memory_set_data_handle_v2(f->args[i].memory, at, f->stream);
        f->handles[i] = st ? NULL : at;
    }
    return st;
}

static tn_status variant_run(const tndnn_state *s, tndnn_variant *v, const tn_exec *x, tn_err *err)
{
    tndnn_frame *f = atomic_exchange(&v->spare, NULL), *none = NULL;
    dnnl_status_t done;
    tn_status st = f ? TN_OK : frame_create(s, v, &f, err);

    if (st)
        return st;
    if (s->before)
        s->before(s, x, x->workspace);
    done = addresses_set(v, f, x);
    for (uint32_t i = 0; !done && i < v->step_count; i++)
        done = dnnl_primitive_execute(v->step[i], f->stream, (int)(v->first[i + 1] - v->first[i]),
                                      &f->args[v->first[i]]);
    if (!done)
        done = dnnl_stream_wait(f->stream);
    if (!done && s->after)
        s->after(s, x, x->workspace);
    if (!atomic_compare_exchange_strong(&v->spare, &none, f))
        frame_destroy(v, f);
    return tndnn_status(done, "a run", err);
}

tn_status tndnn_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tndnn_state *s = plan->state; /* its spare frames change hands atomically */
    int threads, before;
    tndnn_variant *v;
    tn_status st;

    if (s->instead)
        return s->instead(plan, x, s->kept);
    threads = tncpu_run_threads(plan, x);
    before = omp_get_max_threads();
    v = &s->variants[(uint32_t)threads == s->variants[0].threads ? 0 : s->variant_count - 1];
    omp_set_num_threads((int)v->threads);
    st = variant_run(s, v, x, err);
    omp_set_num_threads(before);
    return st;
}

/* ---- prepare ------------------------------------------------------------------------------------------- */

static void variant_clear(tndnn_variant *v)
{
    frame_destroy(v, atomic_load(&v->spare));
    for (uint32_t i = 0; i < v->step_count; i++)
        (void)dnnl_primitive_destroy(v->step[i]);
    tndnn_free(v->uses);
}

void tndnn_release(tn_plan *plan)
{
    tndnn_state *s = plan->state;

    for (uint32_t i = 0; s && i < s->variant_count; i++)
        variant_clear(&s->variants[i]);
    tndnn_free(s ? s->layouts : NULL);
    tndnn_free(s ? s->kept : NULL);
    tndnn_free(s);
    plan->state = NULL;
}

static tn_status serves(const tn_node *node, tn_err *err)
{
    if (node->flags & TN_NODE_THREAD_INVARIANT)
        return tn_fail(err, TN_E_UNSUPPORTED, "oneDNN's bits depend on the number of threads");
    for (uint32_t i = 0; i < node->in_count + node->out_count; i++)
        if (tndnn_out_of_range(i < node->in_count ? node->in[i] : node->out[i - node->in_count]))
            return tn_fail(err, TN_E_UNSUPPORTED, "a tensor without elements, or with more than 2^31 - 1");
    return TN_OK;
}

static tn_status state_create(tndnn_plugin *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tndnn_state *s = plan->state = tndnn_alloc(plugin, sizeof *s);

    if (s) {
        s->plugin = plugin;
        s->layout_max = node->in_count + node->out_count;
        s->layouts = tndnn_alloc(plugin, s->layout_max * sizeof *s->layouts + 1);
    }
    return s && s->layouts ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory for a kernel's plan");
}

static tn_status lates_make(tndnn_maker *m)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < m->late_count; i++)
        st = tndnn_reorder(m, m->late[i].from, &m->late[i].made, (tndnn_place){TNDNN_OUT, m->late[i].out, 0},
                           &m->late[i].want);
    return st;
}

/* Scratchpads come from the workspace. */
static tn_status attr_create(dnnl_primitive_attr_t *attr, tn_err *err)
{
    dnnl_status_t st = dnnl_primitive_attr_create(attr);

    if (!st)
        st = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    return tndnn_status(st, "attributes", err);
}

typedef struct building {
    tndnn_build build;
    const tndnn_ways *ways;
} building;

static tn_status variant_make(tndnn_plugin *plugin, const tn_node *node, tn_plan *plan, uint32_t threads,
                              const building *how, tn_err *err)
{
    tndnn_state *s = plan->state;
    tndnn_variant *v = &s->variants[s->variant_count];
    tndnn_maker m = {.node = node, .plan = plan, .state = s, .v = v, .ways = how->ways, .err = err};
    const int before = omp_get_max_threads();
    tndnn_frame *frame = NULL;
    tn_status st = tndnn_engine(plugin, &m.engine, err);

    m.layouts = (node->flags & TN_NODE_LAYOUTS) != 0;
    m.again = s->variant_count > 0;
    v->threads = threads;
    v->use_max = TNDNN_STEPS_MAX * 4 + node->in_count + node->out_count;
    v->uses = tndnn_alloc(plugin, v->use_max * sizeof *v->uses);
    s->variant_count++;
    if (!v->uses)
        return tn_fail(err, TN_E_NOMEM, "no memory for a kernel's plan");
    omp_set_num_threads((int)threads);
    if (!st && !(st = attr_create(&m.attr, err)))
        st = attr_create(&m.layer, err);
    if (!st && !(st = how->build(&m)) && !(st = lates_make(&m)))
        st = frame_create(s, v, &frame, err);
    atomic_store(&v->spare, frame);
    if (m.attr)
        (void)dnnl_primitive_attr_destroy(m.attr);
    if (m.layer)
        (void)dnnl_primitive_attr_destroy(m.layer);
    omp_set_num_threads(before);
    if (v->work_bytes + v->scratch_bytes > plan->workspace_bytes)
        plan->workspace_bytes = v->work_bytes + v->scratch_bytes;
    return st;
}

void tndnn_plan_reset(const tn_node *node, tn_plan *plan)
{
    tndnn_release(plan);
    for (uint32_t i = 0; i < node->in_count; i++)
        plan->in_layout[i] = NULL;
    for (uint32_t i = 0; i < node->out_count; i++) {
        plan->out_layout[i] = NULL;
        plan->inplace[i] = -1;
    }
    plan->flags = plan->threads = 0;
    plan->est_ns = plan->workspace_bytes = 0;
}

tn_status tndnn_prepare_ways(void *plugin, const tn_node *node, tn_plan *plan, double ns, tndnn_build build,
                             const tndnn_ways *ways, tn_err *err)
{
    const building how = {build, ways};
    tn_status st = serves(node, err);

    if (st)
        return st;
    tncpu_plan_tasks(node, plan, ns, node->threads);
    plan->flags &= ~TN_PLAN_THREAD_INVARIANT;
    plan->threads = (uint32_t)tncpu_team((int)plan->threads);
    if (!(st = state_create(plugin, node, plan, err)))
        st = variant_make(plugin, node, plan, plan->threads, &how, err);
    if (!st && plan->threads > 1)
        st = variant_make(plugin, node, plan, 1, &how, err);
    if (st)
        tndnn_plan_reset(node, plan);
    return st;
}

tn_status tndnn_prepare(void *plugin, const tn_node *node, tn_plan *plan, double ns, tndnn_build build,
                        tn_err *err)
{
    return tndnn_prepare_ways(plugin, node, plan, ns, build, NULL, err);
}
