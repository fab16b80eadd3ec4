/*
 * Nests. The end writes every variable that the programs touch, so it comes behind all of them; a failure of
 * one reaches it as a poisoned variable.
 */
#include "exec/nest.h"

#define LAUNCHES_MAX (1u << 20) /* programs of one operation */
#define MOVES_MAX (1u << 20)    /* and copies before them */

typedef struct nest_move {
    tni_array *src, *dst; /* borrowed: arrays live until `done` */
} nest_move;

void tni_nest_init(tni_nest *n, tni_context *c)
{
    *n = (tni_nest){.ctx = c};
    tni_vec_init(&n->launches, sizeof(tni_launch), LAUNCHES_MAX);
    tni_vec_init(&n->moves, sizeof(nest_move), MOVES_MAX);
    tni_vec_init(&n->vars, sizeof(tni_var *), UINT32_MAX / 2);
}

static void launch_drop(const tni_launch *l)
{
    tni_frame_release(l->frame);
    tni_free((void *)l->arrays);
    tni_free((void *)l->vars);
}

static void launches_drop(tni_nest *n)
{
    for (size_t i = 0; i < n->launches.count; i++)
        launch_drop(tni_vec_at(&n->launches, i));
    n->launches.count = 0;
}

void tni_nest_fini(tni_nest *n)
{
    launches_drop(n);
    tni_vec_fini(&n->moves);
    tni_vec_fini(&n->launches);
    tni_vec_fini(&n->vars);
}

tn_status tni_nest_hold(tni_nest *n, tni_var *v)
{
    return tni_vec_push(&n->vars, &v);
}

tn_status tni_nest_add(tni_nest *n, const tni_launch *l)
{
    const tni_program *p = tni_frame_program(l->frame);
    tn_status st = tni_vec_push(&n->launches, l);

    if (st) {
        launch_drop(l);
        return st;
    }
    for (uint32_t i = 0; !st && i < p->port_count; i++)
        if (l->arrays[i])
            st = tni_nest_hold(n, l->vars ? l->vars[i] : tni_array_var(l->arrays[i]));
    return st;
}

tn_status tni_nest_move(tni_nest *n, tni_array *src, tni_array *dst)
{
    const nest_move m = {src, dst};
    tn_status st = tni_nest_hold(n, tni_array_var(dst));

    if (!st && src)
        st = tni_nest_hold(n, tni_array_var(src));
    return st ? st : tni_vec_push(&n->moves, &m);
}

/* NULL: there are none. */
static tn_status moves_make(const tni_nest *n, tni_moves **out)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < n->moves.count && !st; i++) {
        const nest_move *m = tni_vec_at(&n->moves, i);

        st = tni_moves_add(out, (uint32_t)n->moves.count, m->src, m->dst, false);
    }
    return st;
}

static tn_status end_run(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    return TN_OK;
}

static void nest_leave(tni_nest *n)
{
    if (atomic_fetch_sub(&n->left, 1) == 1)
        n->done(n->arg, n->status, &n->err);
}

static void end_done(void *payload, tni_engine *engine, tn_status status)
{
    tni_nest *n = *(tni_nest **)payload;

    (void)engine;
    n->status = status;
    for (size_t i = 0; i < n->vars.count; i++)
        if (tni_var_failure(*(tni_var **)tni_vec_at(&n->vars, i), &n->err))
            break;
    nest_leave(n);
}

tn_status tni_nest_push(tni_nest *n, tni_device *d, const char *name)
{
    tni_task last[2];
    tni_task first;
    tni_moves *moves = NULL;
    tn_status st = moves_make(n, &moves);
    const tni_launch_group g = {.launches = n->launches.data,
                                .count = (uint32_t)n->launches.count,
                                .first = &first,
                                .first_count = moves != NULL,
                                .last = last,
                                .last_count = n->task ? 2 : 1};

    n->self = n;
    if (n->task)
        last[0] = *n->task;
    last[n->task != NULL] = (tni_task){.run = end_run,
                                       .done = end_done,
                                       .payload = &n->self,
                                       .payload_bytes = sizeof n->self,
                                       .writes = n->vars.data,
                                       .write_count = (uint32_t)n->vars.count,
                                       .name = name};
    atomic_store(&n->left, 2);
    if (st || (moves && (st = tni_moves_task(moves, d, name, &first))) || (st = tni_launch_all(n->ctx, &g))) {
        tni_moves_destroy(moves);
        return st;
    }
    launches_drop(n);
    nest_leave(n);
    return TN_OK;
}
