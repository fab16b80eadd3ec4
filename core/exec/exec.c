/* Room exec's own part of a context: signatures, draw counters, counts; what other rooms ask of it. */
#include "exec/internal.h"

#include <string.h>

static uint16_t determinism(const tni_options *o)
{
    const char *text = tni_option_text(o, "run.deterministic");

    if (!strcmp(text, "off"))
        return 0;
    return !strcmp(text, "threads") ? TN_NODE_DETERMINISTIC | TN_NODE_THREAD_INVARIANT
                                    : TN_NODE_DETERMINISTIC;
}

static void entry_release(void *grad_entry)
{
    tni_tape_entry_release(grad_entry);
}

tn_status tni_exec_create(tni_context *c, tni_exec **out)
{
    tni_exec *x = tni_zalloc(sizeof *x);
    tn_status st;

    if (!x)
        return TN_E_NOMEM;
    if (!(x->draws = tni_calloc(TN_DEVICES_MAX, sizeof *x->draws)) || tni_mutex_init(&x->lock)) {
        tni_free(x->draws);
        tni_free(x);
        return TN_E_NOMEM;
    }
    x->ctx = c;
    x->signature_max = (uint64_t)tni_option_int(c->options, "exec.cache_max");
    if (!x->signature_max || x->signature_max > TN_SITE_CACHE_MAX)
        x->signature_max = TN_SITE_CACHE_MAX;
    x->inline_ns = tni_engine_inline_ns(c->engine);
    x->threads = tni_engine_threads(c->engine);
    x->node_flags = determinism(c->options);
    if ((st = tni_device_first(c->devices, tni_option_text(c->options, "device.default"),
                               &x->default_device)) ||
        (st = tni_moving_create(c->selector, c->space, x->node_flags, x->threads, &x->moving))) {
        tni_exec_destroy(x);
        return st;
    }
    for (uint32_t i = 0; i < TN_DEVICES_MAX; i++)
        atomic_init(&x->draws[i].key, (uint64_t)tni_option_int(c->options, "run.seed"));
    c->space->grad_release = entry_release;
    *out = x;
    return TN_OK;
}

void tni_exec_destroy(tni_exec *x)
{
    if (!x)
        return;
    x->ctx->space->grad_release =
        NULL; /* what late arrays recorded needs all that goes now: it stays behind */
    tni_moving_destroy(x->moving);
    tni_signature_clear(x);
    tni_mutex_fini(&x->lock);
    tni_free(x->draws);
    tni_free(x);
}

void tni_exec_forked(tni_exec *x)
{
    x->threads = 1;
}

uint32_t tni_exec_threads(const tni_context *c)
{
    return c->exec->threads;
}

uint16_t tni_exec_node_flags(const tni_context *c)
{
    return c->exec->node_flags;
}

void tni_exec_program_made(tni_context *c)
{
    atomic_fetch_add_explicit(&c->exec->programs, 1, memory_order_relaxed);
}

void *tni_exec_upper(tni_context *c, void *(*make)(void))
{
    void *upper;

    tni_mutex_lock(&c->exec->lock);
    if (!c->exec->backward)
        c->exec->backward = make();
    upper = c->exec->backward;
    tni_mutex_unlock(&c->exec->lock);
    return upper;
}

void *tni_exec_upper_take(tni_context *c)
{
    void *upper = c->exec ? c->exec->backward : NULL;

    if (upper)
        c->exec->backward = NULL;
    return upper;
}

void tni_exec_stats_get(tni_context *c, tni_exec_stats *out)
{
    tni_exec *x = c->exec;
    uint64_t signatures;

    tni_mutex_lock(&x->lock);
    signatures = x->signature_count;
    tni_mutex_unlock(&x->lock);
    *out = (tni_exec_stats){.hits = atomic_load(&x->hits),
                            .misses = atomic_load(&x->misses),
                            .fast_path = tni_space_calls(c->space),
                            .signatures = signatures,
                            .programs = atomic_load(&x->programs),
                            .frames = atomic_load(&x->frames),
                            .cuts = atomic_load(&x->cuts),
                            .graphs = atomic_load(&x->graphs),
                            .graph_launches = atomic_load(&x->graph_launches),
                            .graph_updates = atomic_load(&x->graph_updates)};
}
