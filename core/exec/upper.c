/* What rooms above exec need of it without seeing its insides. */
#include "exec/internal.h"

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
