/*
 * Calls of any thread, and guests. A call is queued, and the process's own thread woken, which waits in the
 * transport. That costs two switches of threads for each short round, there and back. So where waits for
 * short values follow each other closely that thread leaves the loop: a call that is brief and alone is sent
 * by its caller, and who waits for the engine runs the loop meanwhile, as a guest. One guest at a time.
 *
 * The own thread comes back when no guest came for BRISK_NS, or at once for a call that is not brief, for
 * several, for a second thread that waits, and at the end. So nothing waits for longer than that.
 */
#include "kv/call.h"

#include <string.h>
#include <unistd.h>

#ifdef TN_TEST_SWITCHES
uint64_t tni_kv_brisk_ns = 1000000u;
#define BRISK_NS tni_kv_brisk_ns
#else
#define BRISK_NS 1000000u
#endif
#define CROWD_NS 100000000u /* when several threads waited at once, there are no guests for so long */

static void call_count(tni_kv_call *c, uint32_t change)
{
    c->process->calls += change;
    c->process->long_calls += c->r.brief ? 0 : change;
}

/* Tells, and frees; with the call's error. */
void tni_kv_call_finish(tni_kv_hold *hold)
{
    tni_kv_call *c = (tni_kv_call *)hold;

    tni_mutex_lock(&c->process->lock);
    call_count(c, UINT32_MAX);
    tni_mutex_unlock(&c->process->lock);
    if (c->link) {
        *c->link = c->next;
        if (c->next)
            c->next->link = c->link;
    }
    if (c->error)
        tni_error_set(c->error);
    tni_free(c->error);
    if (c->called)
        c->called(c->arg, c->status);
    tni_free(c);
}

/* ---- whose thread ---- */

static void back_locked(tni_kv_process *p)
{
    if (p->away)
        tni_cond_signal(&p->back);
    p->away = false;
}

static void wake_locked(tni_kv_process *p)
{
    tni_cond_broadcast(&p->changed);
    if (!p->dead)
        tni_kv_post_wake(p->post);
}

static void own_wake_locked(tni_kv_process *p)
{
    back_locked(p);
    wake_locked(p);
}

/* ---- guests ---- */

/* A child of a fork has no part in the job. */
static bool guest_come_locked(tni_kv_process *p)
{
    if (!p->away || p->owner || p->pid != getpid())
        return false;
    p->owner = tni_thread_id();
    p->guest = true;
    return true;
}

/* `stays`: 1, of one that runs the loop; 0, of a caller, which keeps the own thread away no longer. */
static void guest_leave(tni_kv_process *p, uint32_t stays)
{
    p->guest = false;
    tni_mutex_lock(&p->lock);
    p->owner = 0;
    p->guests += stays;
    if (p->first)
        back_locked(p);
    if (!p->away || p->deep)
        tni_cond_signal(&p->back);
    p->deep = false;
    tni_mutex_unlock(&p->lock);
}

/* One guest at a time: of several threads that wait each would have to look after the others. */
static bool guest_run(void *arg, bool (*over)(void *of), void *of, uint64_t ns)
{
    tni_kv_process *p = arg;
    uint64_t now;
    tn_err before;
    bool comes;

    tni_mutex_lock(&p->lock);
    now = tni_clock_ns();
    if (!(comes = guest_come_locked(p)) && p->away) {
        p->crowd_ns = now;
        own_wake_locked(p);
    }
    p->brisk = !p->long_calls && !p->dead && now - p->waited_ns < BRISK_NS && now - p->crowd_ns > CROWD_NS;
    p->waited_ns = now;
    tni_mutex_unlock(&p->lock);
    if (!comes)
        return false;
    p->enough = over;
    p->of = of;
    p->until_ns = p->setup.clock() + ns;
    tni_error_get(&before);                   /* the thread's error stays what it was */
    if (tni_kv_post_run(p->post, &p->role)) { /* the own thread finds that, too */
        tni_mutex_lock(&p->lock);
        back_locked(p);
        tni_mutex_unlock(&p->lock);
    }
    tni_error_set(&before);
    guest_leave(p, 1);
    return true;
}

static void guest_kick(void *arg)
{
    tni_kv_process *p = arg;

    tni_mutex_lock(&p->lock);
    wake_locked(p);
    tni_mutex_unlock(&p->lock);
}

void tni_kv_guests_begin(tni_kv_process *p, tni_engine *engine)
{
    p->engine = engine;
    tni_engine_serve(engine, &(tni_engine_loop){guest_run, guest_kick, p}, p);
}

void tni_kv_guests_end(tni_kv_process *p)
{
    tni_mutex_lock(&p->lock);
    p->crowd_ns = tni_clock_ns();
    p->brisk = false;
    own_wake_locked(p);
    tni_mutex_unlock(&p->lock);
    if (p->engine)
        tni_engine_serve(p->engine, NULL, p);
}

/* The loop is left to guests, until none comes for a while, or one is not enough. False: the process ends. */
bool tni_kv_guests_let(tni_kv_process *p)
{
    bool goes_on;

    tni_mutex_lock(&p->lock);
    if (p->brisk && !p->stop && !p->calls && !p->failing) { /* still */
        p->away = true;
        p->owner = 0;
        for (uint64_t guests = p->guests - 1; p->owner || (p->away && p->guests != guests);) {
            p->deep = p->owner && p->guests == guests; /* one stays for long, and tells when it leaves */
            guests = p->guests;
            if (p->deep)
                tni_cond_wait(&p->back, &p->lock);
            else
                (void)tni_cond_wait_until(&p->back, &p->lock, tni_clock_ns() + BRISK_NS);
        }
        p->away = p->brisk = p->deep = false;
        p->owner = tni_thread_id();
    }
    goes_on = !p->stop;
    tni_mutex_unlock(&p->lock);
    return goes_on;
}

/* ---- queueing ---- */

/* [takes] c. */
static tn_status call_queue(tni_kv_process *p, tni_kv_call *c)
{
    bool stop, comes = false;

    c->process = p;
    c->hold.free = tni_kv_call_finish;
    tni_mutex_lock(&p->lock);
    stop = p->stop;
    if (!stop) {
        const bool first = !p->first, guest = p->away && p->owner;

        call_count(c, 1);
        *p->last = c;
        p->last = &c->next;
        /* Further ones make a batch. An engine's thread does not stay until the answer comes. */
        comes = c->r.brief && p->calls == 1 && !tni_engine_thread() && guest_come_locked(p);
        if (!comes && !(c->r.brief && guest))
            back_locked(p);
        if (!comes && first)
            wake_locked(p);
    }
    tni_mutex_unlock(&p->lock);
    if (comes) {
        p->until_ns = TNI_KV_NEVER;
        (void)tni_kv_post_step(p->post);
        guest_leave(p, 0);
    }
    if (stop)
        tni_free(c);
    return stop ? tni_error(TN_E_CANCELLED, "the process leaves the job") : TN_OK;
}

static tn_status call_make(call_kind kind, tni_kv_called called, void *arg, tni_kv_call **out)
{
    tni_kv_call *c = tni_zalloc(sizeof *c);

    if (!c)
        return TN_E_NOMEM;
    c->kind = kind;
    c->called = called;
    c->arg = arg;
    *out = c;
    return TN_OK;
}

tn_status tni_kv_process_request(tni_kv_process *p, const tni_kv_request *r, tni_kv_called called, void *arg)
{
    tni_kv_call *c;
    tn_status st = call_make(CALL_REQUEST, called, arg, &c);

    if (st)
        return st;
    c->r = *r;
    return call_queue(p, c);
}

typedef struct waiter {
    tni_kv_process *process;
    bool done;
    tn_status status;
    tn_err error;
} waiter;

static void waiter_called(void *arg, tn_status st)
{
    waiter *w = arg;
    tni_kv_process *p = w->process;

    tni_mutex_lock(&p->lock);
    w->status = st;
    if (st)
        tni_error_get(&w->error);
    w->done = true;
    tni_cond_broadcast(&p->changed);
    tni_mutex_unlock(&p->lock);
}

/* [takes] c. Waits for its end; not on the process's own thread. */
static tn_status call_wait(tni_kv_process *p, tni_kv_call *c)
{
    waiter w = {.process = p};
    tn_status st;

    tni_mutex_lock(&p->lock);
    st = p->owner == tni_thread_id() ? TN_E_STATE : TN_OK;
    tni_mutex_unlock(&p->lock);
    if (st) {
        tni_free(c);
        return tni_error(st, "the thread of the parameter store waits for itself");
    }
    c->called = waiter_called;
    c->arg = &w;
    if ((st = call_queue(p, c)))
        return st;
    tni_mutex_lock(&p->lock);
    while (!w.done)
        tni_cond_wait(&p->changed, &p->lock);
    tni_mutex_unlock(&p->lock);
    if (w.status)
        tni_error_set(&w.error);
    return w.status;
}

tn_status tni_kv_process_call(tni_kv_process *p, const tni_kv_request *r)
{
    tni_kv_call *c;
    tn_status st = call_make(CALL_REQUEST, NULL, NULL, &c);

    if (st)
        return st;
    c->r = *r;
    return call_wait(p, c);
}

tn_status tni_kv_process_key(tni_kv_process *p, uint32_t key, uint8_t dtype, uint64_t elements,
                             uint64_t element_bytes)
{
    tni_kv_call *c;
    tn_status st = call_make(CALL_KEY, NULL, NULL, &c);

    if (st)
        return st;
    c->r.key = key;
    c->dtype = dtype;
    c->elements = elements;
    c->element_bytes = element_bytes;
    return call_wait(p, c);
}

tn_status tni_kv_process_break(tni_kv_process *p, uint32_t round)
{
    tni_kv_call *c;
    tn_status st = call_make(CALL_BREAK, NULL, NULL, &c);

    if (st)
        return st;
    c->r.step = round;
    return call_wait(p, c);
}

void tni_kv_process_fail(tni_kv_process *p, uint32_t key)
{
    tni_mutex_lock(&p->lock);
    if (!p->stop && !p->failing) {
        p->failing = true;
        p->failed = key;
        own_wake_locked(p);
    }
    tni_mutex_unlock(&p->lock);
}

tn_status tni_kv_process_resume(tni_kv_process *p)
{
    tni_kv_call *c;
    tn_status st = call_make(CALL_RESUME, NULL, NULL, &c);

    return st ? st : call_wait(p, c);
}
