/*
 * What a failure leaves behind: one shared note with the error, held by every variable that it spoilt, and by
 * the engine until somebody was told of it.
 */
#include "engine/internal.h"

static void poison_fill(tni_poison *p, uint64_t order, tn_status status, const char *name, const char *origin,
                        const tn_err *err)
{
    const char *text = err && err->message[0] ? err->message : tni_status_name(status);
    const size_t named = name ? strlen(name) : 0;

    if (named && strncmp(text, name, named) == 0 && strncmp(text + named, ": ", 2) == 0)
        text += named + 2; /* it is said below */

    tni_ref_init(&p->refs);
    atomic_init(&p->reported, false);
    p->order = order;
    if (origin && origin[0])
        tni_err_format(&p->err, status, "%.80s (%.120s): %s", name ? name : "operation", origin, text);
    else
        tni_err_format(&p->err, status, "%.80s: %s", name ? name : "operation", text);
    if (err) {
        p->err.native = err->native;
        p->err.number = err->number;
    }
}

static void poison_keep(tni_engine *e, tni_poison *p)
{
    uint32_t kept = 0;

    tni_mutex_lock(&e->poison_mutex);
    if (e->poison_count == POISONS_MAX) { /* drop what was told already */
        for (uint32_t i = 0; i < e->poison_count; i++) {
            if (atomic_load(&e->poisons[i]->reported))
                tni_poison_release(e->poisons[i]);
            else
                e->poisons[kept++] = e->poisons[i];
        }
        e->poison_count = kept;
    }
    if (e->poison_count < POISONS_MAX)
        e->poisons[e->poison_count++] = tni_poison_retain(p);
    tni_mutex_unlock(&e->poison_mutex);
}

tni_poison *tni_poison_create(tni_engine *e, uint64_t order, const char *name, const char *origin,
                              tn_status status, const tn_err *err)
{
    tn_err before;
    tni_poison *p;

    tni_error_get(&before);
    if (!(p = tni_alloc(sizeof *p))) {
        tni_error_set(&before);
        p = tni_poison_retain(e->no_memory);
        atomic_store(&p->reported, false);
    } else {
        poison_fill(p, order, status, name, origin, err);
    }
    poison_keep(e, p);
    return p;
}

tni_poison *tni_poison_retain(tni_poison *p)
{
    tni_ref_retain(&p->refs);
    return p;
}

void tni_poison_release(tni_poison *p)
{
    if (p && tni_ref_release(&p->refs))
        tni_free(p);
}

tn_status tni_poison_report(tni_poison *p)
{
    if (!p)
        return TN_OK;
    atomic_store(&p->reported, true);
    tni_error_set(&p->err);
    return p->err.code;
}

tn_status tni_var_failure(const tni_var *v, tn_err *out)
{
    if (!v->poison)
        return TN_OK;
    atomic_store(&v->poison->reported, true);
    *out = v->poison->err;
    return out->code;
}
