/*
 * Waiting: for one variable, for everything, for room in the queue.
 *
 * Who waits for a variable pushes an operation of its own, on its stack, that runs nothing: being granted is
 * the signal, so that each waiter has its own word to sleep on. It then holds the variable and looks itself
 * for completions still under way. Waiting for everything goes by eras: the call closes the current one, so
 * that later pushes of other threads do not prolong it. All waits look around for a few microseconds before
 * they sleep, enter what nobody enters (tni_submit_help), and report pending operations when they last too
 * long.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/internal.h"

#define WORD_SLEEPS 2u
#define WORD_OUTSIDE 3u
#define HELP_AGAIN_NS 1000000u /* a sleeping wait_all looks this often whether somebody enters operations */

typedef struct waiter {
    tni_operation op;
    tni_engine *engine;
    engine_park park;
    atomic_uint word; /* 0 waiting, 1 signalled, 2 asleep, 3 outside */
} waiter;

static void outside_kick_locked(tni_engine *e)
{
    if (e->outsiders)
        e->outside.kick(e->outside.arg);
}

static void word_set(tni_engine *e, atomic_uint *word)
{
    /* The sleeper may be gone after the exchange: waking an address that nobody waits at does nothing. */
    const unsigned before = atomic_exchange(word, 1u);

    if (before == WORD_SLEEPS) {
        (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    } else if (before == WORD_OUTSIDE && tni_engine_tls.outside != word) {
        tni_mutex_lock(&e->progress_mutex);
        outside_kick_locked(e);
        tni_mutex_unlock(&e->progress_mutex);
    }
}

static void word_sleep(atomic_uint *word, uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    unsigned zero = 0;

    if (atomic_compare_exchange_strong(word, &zero, WORD_SLEEPS) || zero == WORD_SLEEPS)
        (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, WORD_SLEEPS, &ts, NULL, 0);
}

void tni_signal(tni_operation *op)
{
    waiter *w = (waiter *)op;

    tni_count_done(w->engine, op->era, 1);
    word_set(w->engine, &w->word);
}

static void park_resumed(engine_park *park)
{
    waiter *w = (waiter *)(void *)((char *)park - offsetof(waiter, park));

    word_set(w->engine, &w->word);
}

static bool word_reached(void *arg)
{
    return atomic_load((atomic_uint *)arg) == 1u;
}

/* ---- how long -------------------------------------------------------------------------------------- */

typedef struct patience {
    uint64_t begin, deadline, warn; /* deadline 0: none */
} patience;

static patience patience_begin(const tni_engine *e, uint64_t timeout_ms)
{
    patience p = {.begin = tni_clock_ns()};

    if (timeout_ms && timeout_ms < UINT64_MAX / 2000000u)
        p.deadline = p.begin + timeout_ms * 1000000u;
    p.warn = atomic_load_explicit(&e->wait_warn_ns, memory_order_relaxed);
    return p;
}

/* How long to sleep now: at most until the deadline, the next report, or `most`.
 * 0: the deadline has passed. */
static uint64_t patience_left(tni_engine *e, patience *p, uint64_t most)
{
    uint64_t now = tni_clock_ns(), left = most;

    if (p->warn && now - p->begin >= p->warn) { /* first: a thread that was not run for long says so, too */
        tni_engine_report(e, now - p->begin);
        p->warn *= 2;
    }
    if (p->deadline && now >= p->deadline)
        return 0;
    if (p->deadline && p->deadline - now < left)
        left = p->deadline - now;
    if (p->warn && p->begin + p->warn - now < left)
        left = p->begin + p->warn - now;
    return left ? left : 1;
}

static bool word_spin(atomic_uint *word)
{
    uint64_t until = tni_clock_ns() + SPIN_NS;

    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) == 1u)
                return true;
            tni_pause();
        }
    } while (tni_clock_ns() < until);
    return false;
}

void tni_engine_serve(tni_engine *e, const tni_engine_loop *outside, const void *of)
{
    if (atomic_load(&e->dead)) /* in a child of a fork: its threads are not here */
        return;
    tni_mutex_lock(&e->progress_mutex);
    if (outside && !e->outside.run) {
        e->outside = *outside;
    } else if (!outside && e->outside.arg == of) {
        while (e->outsiders) {
            outside_kick_locked(e);
            (void)tni_cond_wait_until(&e->progress, &e->progress_mutex, tni_clock_ns() + HELP_AGAIN_NS);
        }
        e->outside = (tni_engine_loop){0};
    }
    tni_mutex_unlock(&e->progress_mutex);
}

/* Serves what completes operations from outside. False: that cannot be now. */
static bool outside_run(tni_engine *e, bool (*over)(void *of), void *of, uint64_t ns)
{
    const void *outer = tni_engine_tls.outside;
    tni_engine_loop o;
    bool ran = false;
    int cancel;

    if (!atomic_load(&e->outstanding))
        return false;
    tni_mutex_lock(&e->progress_mutex);
    o = e->outside;
    e->outsiders += o.run != NULL;
    tni_mutex_unlock(&e->progress_mutex);
    if (!o.run)
        return false;
    tni_engine_tls.outside = of;
    tni_hold_pass(true); /* what a fork waits for may come by this thread alone */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    ran = o.run(o.arg, over, of, ns);
    (void)pthread_setcancelstate(cancel, &cancel);
    tni_hold_pass(false);
    tni_engine_tls.outside = outer;
    tni_mutex_lock(&e->progress_mutex);
    if (--e->outsiders == 0)
        tni_cond_broadcast(&e->progress);
    tni_mutex_unlock(&e->progress_mutex);
    return ran;
}

static bool word_outside(tni_engine *e, atomic_uint *word, uint64_t ns)
{
    unsigned as = 0;
    bool ran;

    if (!atomic_compare_exchange_strong(word, &as, WORD_OUTSIDE) && /* it may have slept before */
        (as != WORD_SLEEPS || !atomic_compare_exchange_strong(word, &as, WORD_OUTSIDE)))
        return false;
    ran = outside_run(e, word_reached, word, ns);
    as = WORD_OUTSIDE;
    (void)atomic_compare_exchange_strong(word, &as, 0u);
    return ran;
}

static bool word_wait(tni_engine *e, atomic_uint *word, patience *p)
{
    uint64_t left;

    if (e->type != ENGINE_THREADED)
        return tni_step_until(e, word_reached, word, p->deadline);
    if (!tni_engine_outstanding(e, false) && word_spin(word)) /* what comes from outside takes longer */
        return true;
    while (!word_reached(word)) {
        if (!(left = patience_left(e, p, 1000000000u)))
            return false;
        if (!word_outside(e, word, left))
            word_sleep(word, left);
    }
    return true;
}

/* ---- one variable ---------------------------------------------------------------------------------- */

static tn_status poison_answer(tni_var *v)
{
    tni_poison *poison;
    tn_status st;
    uint64_t s;

    tni_hold();
    s = tni_var_lock(v);
    poison = v->poison ? tni_poison_retain(v->poison) : NULL;
    tni_var_unlock(v, s);
    tni_unhold();
    st = tni_poison_report(poison);
    tni_poison_release(poison);
    return st;
}

static void waiter_init(waiter *w, tni_var *v, bool write)
{
    memset(&w->op, 0, offsetof(tni_operation, links));
    w->op.vars = (tni_var **)(void *)w->op.data;
    w->op.vars[0] = v;
    w->op.var_count = 1;
    w->op.write_count = write;
    w->op.flags = OP_SIGNAL | OP_STACK;
    w->park.resume = park_resumed;
    atomic_init(&w->word, 0u);
}

static tn_status waiter_push(tni_engine *e, waiter *w, uint64_t *upto)
{
    engine_era *era;
    tn_status st;

    w->engine = e;
    tni_spin_lock(&e->push_lock);
    while (tni_fork_waits()) { /* the child would find our variable held */
        tni_spin_unlock(&e->push_lock);
        tni_fork_let_by();
        tni_spin_lock(&e->push_lock);
    }
    if (!(st = tni_submit_reserve_locked(e, 1))) {
        w->op.era = e->era;
        era = &e->eras[e->era];
        atomic_store_explicit(&era->pushed, atomic_load_explicit(&era->pushed, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        e->signals++;
        atomic_fetch_add(&e->waits, 1u);
        tni_submit_put_locked(e, &w->op);
        tni_submit_publish_locked(e, 1);
        *upto = atomic_load_explicit(&e->pushed, memory_order_relaxed);
    }
    tni_spin_unlock(&e->push_lock);
    return st;
}

static tn_status timed_out(uint64_t timeout_ms)
{
    return tni_error(TN_E_TIMEOUT, "waited %llu ms for an operation that is still pending",
                     (unsigned long long)timeout_ms);
}

/* Granted: what is still on its way to the variable? */
static bool tokens_wait(tni_engine *e, waiter *w, patience *p)
{
    engine_token *token;
    bool gave_up = false;

    atomic_store(&w->word, 0u);
    while (!gave_up && (token = tni_token_wait(&w->op, &w->park))) {
        gave_up = !word_wait(e, &w->word, p) && tni_token_unpark(token, &w->park);
        while (!gave_up && !word_reached(&w->word))
            word_sleep(&w->word, 1000000u); /* its resumption is under way */
        tni_token_release(token);
        atomic_store(&w->word, 0u);
    }
    return !gave_up;
}

static tn_status wait_slowly(tni_engine *e, tni_var *v, bool write, bool tell, uint64_t timeout_ms)
{
    patience p = patience_begin(e, timeout_ms);
    uint64_t upto;
    waiter w;
    tn_status st;

    waiter_init(&w, v, write);
    if ((st = waiter_push(e, &w, &upto)))
        return st;
    tni_hold_pass(true); /* a fork waits for this wait */
    tni_submit_help(e, upto);
    if (!word_wait(e, &w.word, &p) && tni_var_abandon(&w.op)) {
        st = timed_out(timeout_ms);
        tni_count_done(e, w.op.era, 1);
    } else {
        while (!word_reached(&w.word))
            word_sleep(&w.word, 1000000u); /* granted while we gave up: the signal is under way */
        st = !tokens_wait(e, &w, &p) ? timed_out(timeout_ms) : tell ? poison_answer(v) : TN_OK;
        tni_var_leave(v, write, false, NULL);
    }
    atomic_fetch_sub(&e->waits, 1u);
    tni_hold_pass(false);
    return st;
}

/* `tell`: its failure is the caller's to know, who is told of it. */
static tn_status wait_var(tni_engine *e, tni_var *v, bool write, bool tell, uint64_t timeout_ms)
{
    uint64_t blocks = VAR_LOCK | VAR_WRITER | VAR_QUEUED | VAR_TOKENS | (write ? VAR_READERS : 0), s;
    tn_status st;

    if (tni_engine_on_worker())
        return tni_error(TN_E_STATE, "waiting for the engine inside one of its operations");
    if (atomic_load(&e->dead))
        return tni_error(TN_E_STATE, "the process was forked inside a callback of the engine");
    if (tni_submit_empty(e)) {
        s = atomic_load_explicit(&v->state, memory_order_acquire);
        if (!(s & blocks))
            return tell && s & VAR_POISON ? poison_answer(v) : TN_OK;
    }
    atomic_fetch_add(&e->inside, 1u);
    st = wait_slowly(e, v, write, tell, timeout_ms);
    atomic_fetch_sub(&e->inside, 1u);
    return st;
}

tn_status tni_engine_wait_read(tni_engine *e, tni_var *v, uint64_t timeout_ms)
{
    return wait_var(e, v, false, true, timeout_ms);
}

tn_status tni_engine_wait_write(tni_engine *e, tni_var *v, uint64_t timeout_ms)
{
    return wait_var(e, v, true, true, timeout_ms);
}

tn_status tni_engine_wait_quiet(tni_engine *e, tni_var *v, uint64_t timeout_ms)
{
    return wait_var(e, v, false, false, timeout_ms);
}

bool tni_engine_outstanding(const tni_engine *e, bool issued)
{
    return atomic_load(&e->outstanding) || (issued && atomic_load(&e->issued));
}

/* ---- progress of the whole ------------------------------------------------------------------------- */

void tni_progress(tni_engine *e)
{
    tni_mutex_lock(&e->progress_mutex);
    atomic_store(&e->wake_done, UINT64_MAX);
    tni_cond_broadcast(&e->progress);
    outside_kick_locked(e);
    tni_mutex_unlock(&e->progress_mutex);
}

void tni_count_done(tni_engine *e, uint8_t era, uint64_t n)
{
    atomic_fetch_add(&e->eras[era].done, n);
    n += atomic_fetch_add(&e->done, n);
    if (TN_UNLIKELY(atomic_load(&e->waiters)) && n >= atomic_load(&e->wake_done))
        tni_progress(e);
}

/* Under progress_mutex. */
static void target_leave(tni_engine *e, uint64_t target)
{
    if (target < atomic_load(&e->wake_done))
        atomic_store(&e->wake_done, target);
}

typedef struct progress_over {
    tni_engine *engine;
    bool (*reached)(void *arg);
    void *arg;
} progress_over;

/* Also when the target that was left is used up: it is left anew then. */
static bool outside_over(void *of)
{
    const progress_over *o = of;

    return o->reached(o->arg) || atomic_load(&o->engine->wake_done) == UINT64_MAX;
}

/*
 * Sleeps until `reached`. `target` gives the number of completions before which it cannot be: workers wake
 * nobody earlier. The sleeper counts itself and leaves its target, then looks again; a worker counts, then
 * looks for both.
 */
static void progress_wait(tni_engine *e, bool (*reached)(void *arg), uint64_t (*target)(void *arg), void *arg,
                          uint64_t deadline)
{
    patience p = patience_begin(e, 0);
    uint64_t until = p.begin + SPIN_NS;
    bool ran;

    p.deadline = deadline;
    while (!reached(arg) && tni_clock_ns() < until)
        for (int i = 0; i < 64; i++)
            tni_pause();
    while (!reached(arg)) {
        tni_submit_help(e, atomic_load(&e->pushed));
        tni_mutex_lock(&e->progress_mutex);
        atomic_fetch_add(&e->waiters, 1u);
        target_leave(e, target(arg));
        until = tni_clock_ns() + HELP_AGAIN_NS * 20;
        ran = false;
        if (!deadline && e->outside.run) {
            tni_mutex_unlock(&e->progress_mutex);
            ran = outside_run(e, outside_over, &(progress_over){e, reached, arg}, HELP_AGAIN_NS * 20);
            tni_mutex_lock(&e->progress_mutex);
            target_leave(e, target(arg));
        }
        if (!ran && !reached(arg)) /* a report may not be made with the lock held: looked at outside */
            (void)tni_cond_wait_until(&e->progress, &e->progress_mutex,
                                      deadline && deadline < until ? deadline : until);
        atomic_fetch_sub(&e->waiters, 1u);
        tni_mutex_unlock(&e->progress_mutex);
        if (!patience_left(e, &p, 1))
            break;
    }
}

bool tni_engine_idle(tni_engine *e)
{
    uint64_t done = atomic_load(&e->done);

    return done == atomic_load(&e->pushed);
}

static bool idle_reached(void *arg)
{
    return tni_engine_idle(arg);
}

static uint64_t idle_target(void *arg)
{
    return atomic_load(&((tni_engine *)arg)->pushed);
}

void tni_wait_idle(tni_engine *e, uint64_t deadline)
{
    if (e->type != ENGINE_THREADED)
        (void)tni_step_until(e, idle_reached, e, deadline);
    else
        progress_wait(e, idle_reached, idle_target, e, deadline);
}

uint64_t tni_room_most(const tni_engine *e, uint32_t count, bool waiting)
{
    const uint64_t quarter = e->queue_max / 4, some = e->queue_max - quarter - 1;
    uint64_t most = count <= e->queue_max - quarter ? e->queue_max - count : quarter;

    return waiting && most > some ? some : most; /* so that not every completion wakes a pusher */
}

/* Others took the room again and again: when so many operations were done meanwhile, room for one will do. */
static uint64_t room_due(const engine_room *room, uint64_t pushed)
{
    const uint64_t limit = room->engine->queue_max, patient = room->since + 2 * limit;
    const uint64_t one = pushed < limit ? 0 : pushed - limit + 1;

    return one > patient ? one : patient;
}

bool tni_room_due(const engine_room *room, uint64_t pushed, uint64_t done)
{
    return done >= room_due(room, pushed);
}

static uint64_t room_target(void *arg)
{
    const engine_room *room = arg;
    const uint64_t pushed = atomic_load(&room->engine->pushed);
    const uint64_t most = tni_room_most(room->engine, room->count, true);
    const uint64_t target = pushed < most ? 0 : pushed - most, due = room_due(room, pushed);

    return target < due ? target : due;
}

static bool room_reached(void *arg)
{
    const engine_room *room = arg;

    return atomic_load(&room->engine->stopping) || atomic_load(&room->engine->done) >= room_target(arg);
}

void tni_wait_room(engine_room *room)
{
    if (room->engine->type != ENGINE_THREADED)
        (void)tni_step_until(room->engine, room_reached, room, 0);
    else
        progress_wait(room->engine, room_reached, room_target, room, 0);
}

/* ---- everything ------------------------------------------------------------------------------------ */

typedef struct era_wait {
    tni_engine *engine;
    uint64_t at, last;
} era_wait;

static bool era_over(tni_engine *e, uint64_t number)
{
    engine_era *era = &e->eras[number % ERAS];
    uint64_t done = atomic_load(&era->done);

    return done == atomic_load(&era->pushed) || atomic_load(&era->number) > number;
}

static bool eras_reached(void *arg)
{
    era_wait *w = arg;

    while (w->at <= w->last && era_over(w->engine, w->at))
        w->at++;
    return w->at > w->last;
}

static uint64_t eras_target(void *arg)
{
    const era_wait *w = arg;
    uint64_t done = atomic_load(&w->engine->done), left = 0;

    for (uint64_t i = w->at; i <= w->last; i++) {
        engine_era *era = &w->engine->eras[i % ERAS];
        uint64_t over = atomic_load(&era->done);

        left += atomic_load(&era->pushed) - over;
    }
    return done + left; /* an era counts first, so this is never too much */
}

/* Ends the current era, if there is a free one to follow; else later pushes count as earlier ones. */
static uint64_t era_close(tni_engine *e)
{
    uint64_t last;
    engine_era *next;

    tni_spin_lock(&e->push_lock);
    last = e->era_number;
    next = &e->eras[(last + 1) % ERAS];
    if (atomic_load(&next->done) == atomic_load(&next->pushed)) {
        e->era_number = last + 1;
        e->era = (uint8_t)(e->era_number % ERAS);
        atomic_store(&next->number, e->era_number);
    }
    tni_spin_unlock(&e->push_lock);
    return last;
}

void tni_wait_pushed(tni_engine *e)
{
    era_wait w = {.engine = e};
    uint64_t upto;

    atomic_fetch_add(&e->inside, 1u);
    w.last = era_close(e);
    upto = atomic_load(&e->pushed);
    w.at = w.last >= ERAS ? w.last - (ERAS - 1) : 0;
    if (e->type != ENGINE_THREADED)
        (void)tni_step_until(e, eras_reached, &w, 0);
    else
        progress_wait(e, eras_reached, eras_target, &w, 0);
    tni_submit_help(e, upto); /* complete before it counts as entered: the fast path would still be refused */
    atomic_fetch_sub(&e->inside, 1u);
}

/* Waiting for everything inside of a callback would be waiting for the callback. */
static tn_status waiting_allowed(const tni_engine *e)
{
    if (tni_engine_on_worker())
        return tni_error(TN_E_STATE, "waiting for the engine inside one of its operations");
    if (tni_engine_tls.calls == e)
        return tni_error(TN_E_STATE, "waiting for all work inside a host callback, which is part of it");
    if (atomic_load(&e->dead))
        return tni_error(TN_E_STATE, "the process was forked inside a callback of the engine");
    return TN_OK;
}

tn_status tni_engine_wait_idle(tni_engine *e, uint64_t timeout_ms)
{
    const patience p = patience_begin(e, timeout_ms);
    char names[400];
    tn_status st = waiting_allowed(e);

    if (st)
        return st;
    atomic_fetch_add(&e->inside, 1u);
    tni_wait_idle(e, p.deadline);
    if (!tni_engine_idle(e)) {
        tni_dump_names(e, names, sizeof names);
        st = tni_error(TN_E_TIMEOUT, "after %llu ms is still pending: %s", (unsigned long long)timeout_ms,
                       names);
    }
    atomic_fetch_sub(&e->inside, 1u);
    return st;
}

static tni_poison *oldest_unreported(tni_engine *e)
{
    tni_poison *oldest = NULL;
    uint32_t kept = 0;

    tni_mutex_lock(&e->poison_mutex);
    for (uint32_t i = 0; i < e->poison_count; i++) {
        tni_poison *p = e->poisons[i];

        if (atomic_load(&p->reported)) {
            tni_poison_release(p);
            continue;
        }
        e->poisons[kept++] = p;
        if (!oldest || p->order < oldest->order)
            oldest = p;
    }
    e->poison_count = kept;
    if (oldest)
        (void)tni_poison_retain(oldest);
    tni_mutex_unlock(&e->poison_mutex);
    return oldest;
}

tn_status tni_engine_wait_all(tni_engine *e)
{
    tni_poison *poison;
    tn_status st = waiting_allowed(e);

    if (st)
        return st;
    tni_wait_pushed(e);
    poison = oldest_unreported(e);
    st = tni_poison_report(poison);
    tni_poison_release(poison);
    return st;
}
