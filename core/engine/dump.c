/*
 * What is pending, for people: the watchdog's report and the list of all operations with their variables.
 * Also the list of live engines, by which a variable alone can tell whether pushes are still to be entered,
 * and the faults that tests plant.
 *
 * The texts of an operation live until its `done`, its variables until they are given free. Who does either
 * marks it first, then looks whether a dump is under way, and waits for its end if so. The dump says that it
 * is under way, has every thread pass a barrier, then looks at the marks: so the common path needs no atomic
 * operation of its own.
 */
#include "engine/internal.h"

#define DUMP_VARS 8u     /* variables told per operation */
#define REPORT_LINES 64u /* lines of a report in the log */
#define ENGINES_MAX 256u /* engines of one process: one per context */

/* ---- pending operations ---------------------------------------------------------------------------- */

/* Its run returned TN_PENDING, and nobody has completed it. */
static bool begun(const tni_operation *op)
{
    return (op->flags & TNI_TASK_ASYNC) && atomic_load(&op->pend) == 1u;
}

static void dump_op(const tni_operation *op, tni_str *out)
{
    const tni_device *d = op->queue->device;
    const unsigned wait = atomic_load_explicit(&op->wait, memory_order_relaxed);
    const unsigned phase = atomic_load(&op->phase);
    const bool issued = phase & PHASE_ISSUED;

    (void)tni_str_addf(out, "%s", op->name ? op->name : "operation");
    if (op->origin)
        (void)tni_str_addf(out, " (%s)", op->origin);
    if (phase & (PHASE_LEFT | PHASE_DONE)) {
        (void)tni_str_addf(out, " on %s:%d: about to end\n", d->type, d->index);
        return;
    }
    (void)tni_str_addf(out, " on %s:%d: %s, %u of %u variables granted;", d->type, d->index,
                       issued      ? "issued"
                       : begun(op) ? "begun, to be completed"
                       : wait      ? "waiting"
                                   : "ready or running",
                       wait > op->var_count ? 0 : op->var_count - wait, op->var_count);
    for (uint32_t i = 0; i < op->var_count && i < DUMP_VARS; i++) {
        uint64_t s = atomic_load_explicit(&op->vars[i]->state, memory_order_relaxed);

        (void)tni_str_addf(out, " %s %p [%s%llu readers%s%s]", op_is_write(op, i) ? "writes" : "reads",
                           (void *)op->vars[i], s & VAR_WRITER ? "writer, " : "",
                           (unsigned long long)(s / VAR_READER), s & VAR_QUEUED ? ", queue" : "",
                           s & VAR_TOKENS ? ", in flight" : "");
    }
    (void)tni_str_add(out, op->var_count > DUMP_VARS ? " ...\n" : "\n");
}

static void pending_each_locked(tni_engine *e, void (*each)(const tni_operation *op, tni_str *out),
                                tni_str *out)
{
    for (engine_slab *slab = e->slabs; slab; slab = slab->next)
        for (uint32_t i = 0; i < SLAB_OPS; i++) {
            tni_operation *op = &slab->ops[i];
            unsigned phase = atomic_load_explicit(&op->phase, memory_order_acquire);

            if ((phase & PHASE_PUSHED) && !(phase & PHASE_DONE))
                each(op, out);
        }
}

void tni_dump_wait(tni_engine *e)
{
    tni_mutex_lock(&e->dump_mutex);
    tni_mutex_unlock(&e->dump_mutex);
}

static void pending_each(tni_engine *e, void (*each)(const tni_operation *op, tni_str *out), tni_str *out)
{
    tni_mutex_lock(&e->dump_mutex);
    atomic_store(&e->dumping, true);
    tni_everywhere();
    tni_spin_lock(&e->push_lock); /* no operation is made meanwhile */
    pending_each_locked(e, each, out);
    tni_spin_unlock(&e->push_lock);
    atomic_store(&e->dumping, false);
    tni_mutex_unlock(&e->dump_mutex);
}

tn_status tni_engine_dump(tni_engine *e, tni_str *out)
{
    pending_each(e, dump_op, out);
    return out->status;
}

static void name_add(const tni_operation *op, const char *state, tni_str *out)
{
    (void)tni_str_addf(out, "%s%s%s", out->length ? ", " : "", op->name ? op->name : "operation", state);
}

static void name_begun(const tni_operation *op, tni_str *out)
{
    if (begun(op))
        name_add(op, " (begun, to be completed)", out);
}

static void name_other(const tni_operation *op, tni_str *out)
{
    if (!begun(op))
        name_add(op, "", out);
}

void tni_dump_names(tni_engine *e, char *text, size_t bytes)
{
    tni_str names;

    tni_str_init(&names, bytes - sizeof ", ...");
    pending_each(e, name_begun, &names);
    pending_each(e, name_other, &names);
    (void)snprintf(text, bytes, "%s%s", names.length ? names.text : "work that is about to end",
                   names.status ? ", ..." : "");
    tni_error_clear();
    tni_str_fini(&names);
}

void tni_engine_report(tni_engine *e, uint64_t waited_ns)
{
    tni_str text;
    uint32_t lines = 0;

    if (!e->log)
        return;
    tni_str_init(&text, (size_t)1 << 20);
    (void)tni_engine_dump(e, &text);
    tni_logf(e->log, TN_LOG_WARNING,
             "a wait has lasted %llu ms; pending operations:", (unsigned long long)(waited_ns / 1000000u));
    for (char *line = text.text; line && *line && lines < REPORT_LINES; lines++) {
        char *end = strchr(line, '\n');

        if (end)
            *end = '\0';
        tni_logf(e->log, TN_LOG_WARNING, "  %s", line);
        line = end ? end + 1 : NULL;
    }
    tni_str_fini(&text);
}

/* ---- live engines ---------------------------------------------------------------------------------- */

static tni_mutex live_mutex = TNI_MUTEX_INIT;
static tni_engine *live[ENGINES_MAX];
static uint32_t live_count;

tn_status tni_live_add(tni_engine *e)
{
    tn_status st = TN_OK;

    tni_mutex_lock(&live_mutex);
    if (live_count < ENGINES_MAX)
        live[live_count++] = e;
    else
        st = tni_error(TN_E_STATE, "%u engines are open, the limit", ENGINES_MAX);
    tni_mutex_unlock(&live_mutex);
    return st;
}

void tni_live_remove(tni_engine *e)
{
    tni_mutex_lock(&live_mutex);
    for (uint32_t i = 0; i < live_count; i++)
        if (live[i] == e) {
            live[i] = live[--live_count];
            break;
        }
    tni_mutex_unlock(&live_mutex);
}

static bool all_entered(void)
{
    bool entered = true;

    tni_mutex_lock(&live_mutex);
    for (uint32_t i = 0; i < live_count && entered; i++) {
        (void)tni_submit_drain(live[i], DRAIN_BATCH);
        entered = tni_submit_empty(live[i]);
    }
    tni_mutex_unlock(&live_mutex);
    return entered;
}

bool tni_var_ready(tni_var *v)
{
    uint64_t s;
    bool ready = false, write_queued = false;

    if (!all_entered())
        return false;
    tni_hold();
    s = tni_var_lock(v);
    for (const op_link *at = v->queue_head; at && !write_queued; at = at->next)
        write_queued = op_is_write(at->op, (uint32_t)(at - op_links(at->op)));
    ready = !(s & VAR_WRITER) && !write_queued && !v->write_token;
    tni_var_unlock(v, s);
    tni_unhold();
    return ready;
}

/* ---- planted faults -------------------------------------------------------------------------------- */

#ifdef TN_TEST_SWITCHES
void tni_engine_plant(tni_engine *e, const char *fault)
{
    atomic_store(&e->drop_event_wait, !strcmp(fault, "drop_event_wait"));
    atomic_store(&e->hold_ends, !strcmp(fault, "hold_ends"));
}
#else
void tni_engine_plant(tni_engine *e, const char *fault)
{
    (void)e;
    (void)fault;
}
#endif
