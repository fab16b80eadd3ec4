/*
 * Handles: numbers by which programs name the operations that they complete themselves.
 *
 * A handle is a place in a table and a serial number, which no two handles share. So one that is finished is
 * known as such for ever and never reaches another operation, whoever still holds it. The table is the
 * process's, not an engine's: a late call finds it also when its engine is gone. Whoever takes a handle out
 * of it has the right to complete its operation, which cannot end before.
 */
#include "engine/internal.h"

#define PLACE_BITS 20u
#define PLACES_MAX (1u << PLACE_BITS) /* operations of the process under way at once */
#define PLACES_FIRST 16u

typedef struct handle_place {
    uint64_t handle;          /* 0: free */
    const tni_engine *engine; /* whose it is */
    tni_operation *op;        /* NULL: its run has not begun */
    uint32_t next;            /* free: the next free place and 1 */
} handle_place;

static tni_mutex mutex = TNI_MUTEX_INIT;
static handle_place *places;
static uint32_t place_count, used, free_first; /* free_first: a place and 1 */
static uint64_t serial;                        /* of the newest handle */

/* Whoever is to complete what a fork waits for is let in while somebody forks. */
static void table_lock(void) TN_ACQUIRE(&mutex)
{
    tni_hold_pass(true);
    tni_mutex_lock(&mutex);
}

static void table_unlock(void) TN_RELEASE(&mutex)
{
    tni_mutex_unlock(&mutex);
    tni_hold_pass(false);
}

static tn_status grow_locked(void)
{
    const uint32_t count = place_count ? place_count * 2 : PLACES_FIRST;
    handle_place *grown;

    if (count > PLACES_MAX)
        return tni_error(TN_E_STATE, "%u tasks wait to be completed, the limit", PLACES_MAX);
    if (!(grown = tni_realloc(places, count * sizeof *grown)))
        return TN_E_NOMEM;
    for (uint32_t i = count; i-- > place_count;) {
        grown[i] = (handle_place){.next = free_first};
        free_first = i + 1;
    }
    places = grown;
    place_count = count;
    return TN_OK;
}

tn_status tni_handle_take(const tni_engine *e, uint64_t *out)
{
    tn_status st;

    table_lock();
    st = free_first ? TN_OK : grow_locked();
    if (!st) {
        const uint32_t at = free_first - 1;

        free_first = places[at].next;
        used++;
        *out = ++serial << PLACE_BITS | at;
        places[at] = (handle_place){.handle = *out, .engine = e};
    }
    table_unlock();
    return st;
}

static handle_place *find_locked(uint64_t handle)
{
    const uint32_t at = (uint32_t)(handle & (PLACES_MAX - 1));

    return handle && at < place_count && places[at].handle == handle ? &places[at] : NULL;
}

void tni_handle_begin(uint64_t handle, tni_operation *op)
{
    handle_place *p;

    table_lock();
    if ((p = find_locked(handle)))
        p->op = op;
    table_unlock();
}

static void give_locked(handle_place *p)
{
    *p = (handle_place){.next = free_first};
    free_first = (uint32_t)(p - places) + 1;
    used--;
}

bool tni_handle_end(uint64_t handle)
{
    handle_place *p;

    table_lock();
    if ((p = find_locked(handle)))
        give_locked(p);
    table_unlock();
    return p != NULL;
}

tn_status tni_handle_complete(uint64_t handle, tn_status status, const tn_err *err)
{
    tn_status st = TN_OK;
    tni_operation *op = NULL;
    handle_place *p;

    table_lock();
    p = find_locked(handle);
    if (p && p->op && !atomic_load(&p->engine->dead)) {
        op = p->op;
        give_locked(p);
    } else if (p && p->op) { /* the engine's locks are the parent's */
        st = tni_error(TN_E_STATE, "the process was forked inside a callback of the engine");
    } else if (!p && handle && handle >> PLACE_BITS <= serial) {
        st = tni_error(TN_E_STATE, "the task is complete already, or it was never begun");
    } else {
        st = tni_error(TN_E_ARG, "no task that has begun has the handle %llu", (unsigned long long)handle);
    }
    table_unlock();
    if (op)
        tni_engine_complete(op, status, err);
    return st;
}

void tni_handles_drop(const tni_engine *e)
{
    table_lock();
    for (uint32_t i = 0; i < place_count; i++)
        if (places[i].handle && places[i].engine == e)
            give_locked(&places[i]);
    if (!used) {
        tni_free(places);
        places = NULL;
        place_count = free_first = 0;
    }
    table_unlock();
}
