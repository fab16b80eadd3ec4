/*
 * Host memory: `memory` and `data` are one, and nothing has to be brought anywhere or waited for.
 */
#include <string.h>

#include "call.h"
#include "space.h"

static void host_make(chk_node *n, uint64_t bytes, uint64_t align, uint64_t offset, uint32_t flags,
                      chk_block *out)
{
    char *memory;

    *out = (chk_block){.space = &chk_space_host};
    if (flags && align <= 64) {
        out->buffer = chk_buffer_create(n->lab->env, bytes, offset, flags & ~CHK_BLOCK_SHARED);
        out->memory = out->data = chk_buffer_data(out->buffer);
        return;
    }
    memory = chk_take(&n->lab->arena, bytes + align + offset);
    out->memory = out->data = memory + (align - (uintptr_t)memory % align) % align + offset;
}

static void host_drop(chk_block *b)
{
    chk_buffer_destroy(b->buffer);
}

static tn_status host_run(chk_node *n, const tn_exec *x)
{
    return chk_call_wait(n->call, n->side->kernel->run(n->plan, x, &n->err));
}

static void host_step_take(chk_node *n)
{
    n->step = &n->own_step;
}

static void host_step_give(chk_node *n)
{
    n->step = NULL;
}

static chk_lane *host_lane(chk_node *n, uint32_t index)
{
    static chk_lane none;

    (void)n;
    (void)index;
    return &none;
}

static const chk_space_ops host_ops = {
    .memory = TN_MEMORY_HOST,
    .make = host_make,
    .drop = host_drop,
    .run = host_run,
    .step_take = host_step_take,
    .step_give = host_step_give,
    .lane = host_lane,
};

chk_space chk_space_host = {.ops = &host_ops};

/* ---- any space --------------------------------------------------------------------------------------- */

void chk_block_drop(chk_block *b)
{
    if (b->space && !b->borrowed)
        b->space->ops->drop(b);
    *b = (chk_block){0};
}

void chk_space_close(chk_space *space)
{
    if (space)
        space->ops->close(space);
}

void chk_block_push(chk_node *n, const chk_block *b)
{
    if (b->space->ops->push)
        b->space->ops->push(n, b);
}

void chk_block_pull(chk_node *n, const chk_block *b)
{
    if (b->space->ops->pull)
        b->space->ops->pull(n, b);
}

tn_status chk_node_settle(chk_node *n)
{
    return n->side->space->ops->settle ? n->side->space->ops->settle(n) : TN_OK;
}
