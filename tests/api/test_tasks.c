/*
 * Tasks that end later, tasks on callback threads, lanes: through the public headers, on each kind of engine.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/later.h"
#include "support/list.h"

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

/* ---- completion ------------------------------------------------------------------------------------- */

static void completed_at_any_time(void **state)
{
    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++)
        for (int when = IN_BEGIN; when <= AFTER_RETURN; when++)
            for (int round = 0; round < 20; round++) {
                later l = {.ctx = test_open(LIST(later_engines[e])), .when = when, .returned = TN_PENDING};
                atomic_uint after = 0;
                tn_var *var = NULL;

                assert_ok(tn_var_create(l.ctx, &var));
                later_push(&l, NULL, var);
                count_push(l.ctx, &after, var, NULL);
                assert_ok(tn_wait_all(l.ctx));
                later_end(&l);
                assert_int_equal(l.answer, TN_OK);
                assert_int_equal(l.seen, TN_OK);
                assert_int_equal(atomic_load(&after), 1);
                assert_fails(tn_task_complete(atomic_load(&l.handle), TN_OK, NULL), TN_E_STATE);
                tn_var_destroy(l.ctx, var);
                test_close(l.ctx);
                assert_fails(tn_task_complete(atomic_load(&l.handle), TN_OK, NULL), TN_E_STATE);
            }
}

/* What is completed first counts: the call, or what `begin` returned. */
static void returned_or_completed(void **state)
{
    static const struct {
        int when;
        tn_status status, returned, answer, seen;
    } cases[] = {
        {IN_BEGIN, TN_OK, TN_OK, TN_OK, TN_OK},
        {IN_BEGIN, TN_OK, TN_E_IO, TN_OK, TN_OK},
        {IN_BEGIN, TN_E_PEER, TN_OK, TN_OK, TN_E_PEER},
        {BEFORE_RETURN, TN_E_PEER, TN_E_IO, TN_OK, TN_E_PEER},
        {NEVER, TN_OK, TN_OK, TN_OK, TN_OK},
        {NEVER, TN_OK, TN_E_IO, TN_OK, TN_E_IO},
        {NEVER, TN_OK, 77, TN_OK, TN_E_ARG},
        {NEVER, TN_OK, -2, TN_OK, TN_E_ARG},
    };

    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++)
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            later l = {.ctx = test_open(LIST(later_engines[e])),
                       .when = cases[i].when,
                       .status = cases[i].status,
                       .returned = cases[i].returned};

            later_push(&l, NULL, NULL);
            if (cases[i].seen)
                assert_fails(tn_wait_all(l.ctx), cases[i].seen);
            else
                assert_ok(tn_wait_all(l.ctx));
            later_end(&l);
            assert_int_equal(l.seen, cases[i].seen);
            assert_int_equal(l.answer, cases[i].answer);
            assert_fails(tn_task_complete(atomic_load(&l.handle), TN_OK, NULL), TN_E_STATE);
            assert_ok(tn_close(l.ctx));
        }
}

static void failure_poisons(void **state)
{
    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++)
        for (int when = IN_BEGIN; when <= AFTER_RETURN; when++) {
            later l = {.ctx = test_open(LIST(later_engines[e])),
                       .when = when,
                       .status = TN_E_PEER,
                       .text = "worker 3 is gone",
                       .returned = TN_PENDING},
                  dependant = {.ctx = l.ctx, .when = NEVER, .returned = TN_PENDING};
            tn_var *written = NULL, *read = NULL, *further = NULL;
            atomic_uint skipped = 0, unharmed = 0;

            assert_ok(tn_var_create(l.ctx, &written));
            assert_ok(tn_var_create(l.ctx, &read));
            assert_ok(tn_var_create(l.ctx, &further));
            later_push(&l, read, written);
            count_push(l.ctx, &skipped, written, NULL);
            later_push(&dependant, written, further); /* is never begun */
            count_push(l.ctx, &unharmed, read, NULL);
            assert_fails(tn_var_wait(l.ctx, written), TN_E_PEER);
            assert_non_null(strstr(tn_error_text(), "worker 3 is gone"));
            assert_non_null(strstr(tn_error_text(), "later"));
            assert_fails(tn_var_wait(l.ctx, further), TN_E_PEER);
            assert_ok(tn_var_wait(l.ctx, read));
            (void)tn_wait_all(l.ctx);
            later_end(&l);
            later_end(&dependant);
            assert_int_equal(atomic_load(&dependant.begun), 0);
            assert_int_equal(dependant.seen, TN_E_PEER);
            assert_int_equal(atomic_load(&skipped), 0);
            assert_int_equal(atomic_load(&unharmed), 1);
            tn_var_destroy(l.ctx, written);
            tn_var_destroy(l.ctx, read);
            tn_var_destroy(l.ctx, further);
            assert_ok(tn_close(l.ctx));
        }
}

/* A failure without a text is told by its status; one with a long text ends in time. */
static void texts(void **state)
{
    static char text[4096];
    static const char *const given[] = {NULL, "", text};

    (void)state;
    memset(text, 'x', sizeof text - 1);
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        later l = {.ctx = test_open(LIST(later_engines[0])),
                   .when = IN_BEGIN,
                   .status = TN_E_TIMEOUT,
                   .text = given[i],
                   .returned = TN_PENDING};

        later_push(&l, NULL, NULL);
        assert_fails(tn_wait_all(l.ctx), TN_E_TIMEOUT);
        later_end(&l);
        assert_ok(tn_close(l.ctx));
    }
}

static void wrong_handles(void **state)
{
    later l = {.ctx = test_open(LIST(later_engines[0])), .when = NEVER, .returned = TN_PENDING};
    uint64_t handle;

    (void)state;
    assert_fails(tn_task_complete(0, TN_OK, NULL), TN_E_ARG);
    assert_fails(tn_task_complete(UINT64_MAX, TN_OK, NULL), TN_E_ARG);
    later_push(&l, NULL, NULL);
    while (!(handle = atomic_load(&l.handle)))
        (void)sched_yield();
    assert_fails(tn_task_complete(handle + ((uint64_t)1 << 40), TN_OK, NULL), TN_E_ARG);
    assert_fails(tn_task_complete(handle, TN_PENDING, NULL), TN_E_ARG); /* and is not completed */
    assert_fails(tn_task_complete(handle, 16, NULL), TN_E_ARG);
    assert_int_equal(atomic_load(&l.done), 0);
    assert_ok(tn_task_complete(handle, TN_OK, NULL));
    assert_fails(tn_task_complete(handle, TN_OK, NULL), TN_E_STATE);
    assert_fails(tn_task_complete(handle, TN_E_IO, "late"), TN_E_STATE);
    assert_ok(tn_wait_all(l.ctx));
    later_end(&l);
    test_close(l.ctx);
}

#define RACERS 4

typedef struct race {
    _Atomic(uint64_t) handle;
    atomic_uint won, lost, wrong, over;
} race;

/* All handles that ever were, one after the other, by all threads. */
static void *racer(void *arg)
{
    race *r = arg;
    uint64_t last = 0;

    while (!atomic_load(&r->over)) {
        const uint64_t handle = atomic_load(&r->handle);
        tn_status st;

        if (!handle || handle == last) {
            (void)sched_yield();
            continue;
        }
        st = tn_task_complete(last = handle, TN_OK, NULL);
        atomic_fetch_add(st == TN_OK ? &r->won : st == TN_E_STATE ? &r->lost : &r->wrong, 1u);
    }
    return NULL;
}

static tn_status race_begin(void *arg, uint64_t handle)
{
    atomic_store(&((race *)arg)->handle, handle);
    return TN_PENDING;
}

static void one_of_many_completes(void **state)
{
    enum { TASKS = 300 };

    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++) {
        tn_ctx *ctx = test_open(LIST(later_engines[e]));
        race r = {.won = 0};
        const tn_task task = {
            .struct_size = TN_SIZE(tn_task), .begin = race_begin, .arg = &r, .name = "raced for"};
        pthread_t threads[RACERS];

        for (int i = 0; i < RACERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, racer, &r), 0);
        for (uint32_t i = 0; i < TASKS; i++) {
            assert_ok(tn_engine_push(ctx, &task));
            assert_ok(tn_wait_all(ctx));
        }
        atomic_store(&r.over, 1u);
        for (int i = 0; i < RACERS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(atomic_load(&r.won), TASKS);
        assert_int_equal(atomic_load(&r.wrong), 0);
        test_close(ctx);
    }
}

/* More at once than the first table holds; completed from the last to the first. */
static void many_at_once(void **state)
{
    enum { MANY = 500 };
    static later all[MANY];
    tn_ctx *ctx = test_open(LIST(later_engines[0]));

    (void)state;
    for (int i = 0; i < MANY; i++) {
        all[i] = (later){.ctx = ctx, .when = NEVER, .returned = TN_PENDING};
        later_push(&all[i], NULL, NULL);
    }
    for (int i = MANY; i-- > 0;) {
        while (!atomic_load(&all[i].handle))
            (void)sched_yield();
        assert_ok(tn_task_complete(atomic_load(&all[i].handle), TN_OK, NULL));
    }
    assert_ok(tn_wait_all(ctx));
    for (int i = 0; i < MANY; i++) {
        later_end(&all[i]);
        for (int k = 0; k < i; k++)
            assert_true(atomic_load(&all[i].handle) != atomic_load(&all[k].handle));
    }
    test_close(ctx);
}

/* ---- closing ---------------------------------------------------------------------------------------- */

static void *pusher(void *arg)
{
    later_push(arg, NULL, NULL);
    return NULL;
}

/* The naive engine's push returns when the task is done, so another thread pushes. */
static void closing_gives_up(void **state)
{
    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++) {
        later l = {.ctx = test_open(LIST(later_engines[e])), .when = NEVER, .returned = TN_PENDING};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, pusher, &l), 0);
        if (e == 2) /* nobody begins it before somebody waits */
            assert_int_equal(pthread_join(thread, NULL), 0);
        for (uint32_t ms = 1; e == 2 && !atomic_load(&l.handle); ms *= 2) /* one may end before it began */
            assert_fails(tn_close_within(l.ctx, ms), TN_E_TIMEOUT);
        while (!atomic_load(&l.handle))
            (void)sched_yield();
        later_until_returned(&l);
        for (int i = 0; i < 3; i++) {
            assert_fails(tn_close_within(l.ctx, 1), TN_E_TIMEOUT);
            assert_non_null(strstr(tn_error_text(), "later (begun, to be completed)"));
        }
        assert_int_equal(atomic_load(&l.done), 0);
        assert_ok(tn_task_complete(atomic_load(&l.handle), TN_OK, NULL));
        if (e != 2)
            assert_int_equal(pthread_join(thread, NULL), 0);
        test_use(l.ctx); /* it is as it was */
        assert_ok(tn_wait_all(l.ctx));
        later_end(&l);
        assert_ok(tn_close_within(l.ctx, 3600000));
    }
    assert_ok(tn_close_within(NULL, 1));
}

/* tn_close itself waits for who completes. */
static void closing_waits(void **state)
{
    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++)
        for (uint32_t within = 0; within < 2; within++) {
            later l = {.ctx = test_open(LIST(later_engines[e])),
                       .when = AFTER_RETURN,
                       .status = TN_E_PEER,
                       .returned = TN_PENDING};

            later_push(&l, NULL, NULL);
            assert_fails(tn_close_within(l.ctx, within * 3600000), TN_E_PEER);
            assert_int_equal(atomic_load(&l.done), 1);
            assert_int_equal(pthread_join(l.thread, NULL), 0);
        }
}

/* Work of all kinds is named; the list ends where the text does. */
static void closing_names_work(void **state)
{
    later l = {.ctx = test_open(LIST(later_engines[0])), .when = NEVER, .returned = TN_PENDING};
    atomic_uint count = 0;
    tn_var *var = NULL;

    (void)state;
    assert_ok(tn_var_create(l.ctx, &var));
    later_push(&l, NULL, var);
    for (int i = 0; i < 200; i++)
        count_push(l.ctx, &count, var, NULL);
    while (!atomic_load(&l.handle))
        (void)sched_yield();
    later_until_returned(&l);
    assert_fails(tn_close_within(l.ctx, 1), TN_E_TIMEOUT);
    assert_non_null(strstr(tn_error_text(), "later (begun, to be completed), count, count, "));
    assert_non_null(strstr(tn_error_text(), ", ..."));
    assert_int_equal(atomic_load(&count), 0);
    assert_ok(tn_task_complete(atomic_load(&l.handle), TN_OK, NULL));
    tn_var_destroy(l.ctx, var);
    test_close(l.ctx);
    assert_int_equal(atomic_load(&count), 200);
}

/* ---- callback threads ------------------------------------------------------------------------------- */

typedef struct callback {
    tn_ctx *ctx;
    tn_var *var;
    atomic_uint inner, done;
    tn_status all, close; /* waits that would not end */
} callback;

static tn_status callback_run(void *arg)
{
    callback *c = arg;
    tn_status st;

    for (int i = 0; i < 3; i++) {
        tn_var *writes[] = {c->var};
        const tn_task task = {.struct_size = TN_SIZE(tn_task),
                              .run = count_run,
                              .arg = &c->inner,
                              .writes = writes,
                              .write_count = 1};

        if ((st = tn_engine_push(c->ctx, &task)) || (st = tn_var_wait(c->ctx, c->var)))
            return st;
    }
    c->all = tn_wait_all(c->ctx);
    c->close = tn_close_within(c->ctx, 1);
    return TN_OK;
}

/* More callbacks that block than there are workers, and than callback threads. */
static void callbacks_push_and_wait(void **state)
{
    enum { CALLS = 40 };

    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++) {
        tn_ctx *ctx = test_open(LIST(later_engines[e], "engine.workers=1"));
        callback calls[CALLS] = {{.ctx = NULL}};

        for (int i = 0; i < CALLS; i++) {
            const tn_task task = {.struct_size = TN_SIZE(tn_task),
                                  .run = callback_run,
                                  .arg = &calls[i],
                                  .flags = TN_TASK_HOST,
                                  .name = "callback"};

            calls[i].ctx = ctx;
            assert_ok(tn_var_create(ctx, &calls[i].var));
            assert_ok(tn_engine_push(ctx, &task));
        }
        assert_ok(tn_wait_all(ctx));
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(atomic_load(&calls[i].inner), 3);
            assert_int_equal(calls[i].all, TN_E_STATE);
            assert_int_equal(calls[i].close, TN_E_STATE);
            tn_var_destroy(ctx, calls[i].var);
        }
        test_close(ctx);
    }
}

typedef struct blocked {
    later *asynchronous;
    tn_var *var;
    atomic_uint *waiting;
} blocked;

static tn_status blocked_run(void *arg)
{
    blocked *b = arg;

    atomic_fetch_add(b->waiting, 1u);
    return tn_var_wait(b->asynchronous->ctx, b->var);
}

/* Every callback thread waits for a callback that was begun: its completion needs none of them. */
static void blocked_callbacks_let_complete(void **state)
{
    enum { THREADS = 16 };
    later l = {
        .ctx = test_open(LIST(later_engines[0], "engine.workers=1")), .when = NEVER, .returned = TN_PENDING};
    atomic_uint waiting = 0;
    tn_var *var = NULL, *writes[1];
    tn_task task = {.struct_size = TN_SIZE(tn_task),
                    .begin = later_begin,
                    .done = later_done,
                    .arg = &l,
                    .writes = writes,
                    .write_count = 1,
                    .flags = TN_TASK_HOST,
                    .name = "later"};
    blocked b = {&l, NULL, &waiting};

    (void)state;
    assert_ok(tn_var_create(l.ctx, &var));
    writes[0] = b.var = var;
    assert_ok(tn_engine_push(l.ctx, &task));
    while (!atomic_load(&l.handle))
        (void)sched_yield();
    task = (tn_task){.struct_size = TN_SIZE(tn_task),
                     .run = blocked_run,
                     .arg = &b,
                     .flags = TN_TASK_HOST,
                     .name = "blocked"};
    for (int i = 0; i < THREADS; i++)
        assert_ok(tn_engine_push(l.ctx, &task));
    while (atomic_load(&waiting) < THREADS)
        (void)sched_yield();
    assert_ok(tn_task_complete(atomic_load(&l.handle), TN_OK, NULL));
    assert_ok(tn_wait_all(l.ctx));
    later_end(&l);
    tn_var_destroy(l.ctx, var);
    test_close(l.ctx);
}

/* ---- lanes ------------------------------------------------------------------------------------------ */

typedef struct meeting {
    atomic_uint there;
    uint32_t all; /* 0: nobody waits for the others */
} meeting;

static tn_status meeting_run(void *arg)
{
    meeting *m = arg;

    atomic_fetch_add(&m->there, 1u);
    while (atomic_load(&m->there) < m->all)
        (void)sched_yield();
    return TN_OK;
}

/* Work of the lanes of one device meets, so it runs at one time. */
static void lanes_run_beside_each_other(void **state)
{
    static const uint32_t lanes[][3] = {{TN_LANE_COMPUTE, TN_LANE_IN, TN_LANE_COMM},
                                        {TN_LANE_COMM, TN_LANE_OUT, TN_LANE_COMPUTE}};

    (void)state;
    for (size_t e = 0; e < COUNT_OF(later_engines); e++)
        for (size_t i = 0; i < COUNT_OF(lanes); i++) {
            tn_ctx *ctx = test_open(LIST(later_engines[e], "engine.workers=1"));
            meeting m = {.all = e == 0 ? 3 : 0};

            for (int k = 0; k < 3; k++) {
                const tn_task task = {.struct_size = TN_SIZE(tn_task),
                                      .run = meeting_run,
                                      .arg = &m,
                                      .lane = lanes[i][k],
                                      .name = "meets"};

                assert_ok(tn_engine_push(ctx, &task));
            }
            assert_ok(tn_wait_all(ctx));
            assert_int_equal(atomic_load(&m.there), 3);
            test_close(ctx);
        }
}

/* A lane of a device with streams: the function sees values, not promises of them. */
typedef struct look {
    const float *data;
    float seen;
} look;

static tn_status look_run(void *arg)
{
    look *l = arg;

    l->seen = *l->data;
    return TN_OK;
}

static tn_status look_begin(void *arg, uint64_t handle)
{
    (void)look_run(arg);
    return tn_task_complete(handle, TN_OK, NULL) ? TN_E_INTERNAL : TN_PENDING;
}

static void values_are_there(void **state)
{
    enum { ROUNDS = 40 };
    tn_ctx *ctx = test_open(LIST("engine.type=threaded", "plugin.fake.delay_us=200"));
    const tn_device *device;
    look looks[ROUNDS] = {{NULL, 0}};
    tn_array *a = NULL;
    void *data = NULL;

    (void)state;
    if (tn_device_get(ctx, "fake:0", &device)) {
        print_message("skipped: no device fake\n");
        assert_ok(tn_close(ctx));
        skip();
    }
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (const int64_t[]){1}, device, &a));
    assert_ok(tn_array_data(a, &data));
    for (int i = 0; i < ROUNDS; i++) {
        tn_var *reads[] = {tn_array_var(a)};
        tn_task task = {.struct_size = TN_SIZE(tn_task),
                        .arg = &looks[i],
                        .reads = reads,
                        .read_count = 1,
                        .device = device,
                        .lane = (uint32_t)i % 4};

        looks[i].data = data;
        if (i % 2)
            task.begin = look_begin;
        else
            task.run = look_run;
        assert_ok(tn_array_fill(a, i + 1));
        assert_ok(tn_engine_push(ctx, &task));
    }
    assert_ok(tn_wait_all(ctx));
    for (int i = 0; i < ROUNDS; i++)
        assert_true(looks[i].seen == (float)(i + 1));
    tn_array_release(a);
    test_close(ctx);
}

/* ---- fork ------------------------------------------------------------------------------------------- */

static bool child_ended_well(pid_t child)
{
    int status = -1;

    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

typedef struct forking {
    later later;
    atomic_uint forks;
    pid_t child;
} forking;

static void *complete_during_fork(void *arg)
{
    forking *f = arg;

    while (!atomic_load(&f->forks))
        (void)sched_yield();
    later_complete(&f->later);
    return NULL;
}

/* The fork waits for the task, and lets in who completes it. */
static void a_fork_waits(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        forking f = {
            .later = {.ctx = test_open(LIST(later_engines[0])), .when = NEVER, .returned = TN_PENDING}};
        pthread_t thread;
        pid_t child;

        later_push(&f.later, NULL, NULL);
        while (!atomic_load(&f.later.handle))
            (void)sched_yield();
        assert_int_equal(pthread_create(&thread, NULL, complete_during_fork, &f), 0);
        atomic_store(&f.forks, 1u);
        if (!(child = fork()))
            _exit(tn_task_complete(atomic_load(&f.later.handle), TN_OK, NULL) != TN_E_STATE);
        assert_true(child_ended_well(child));
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(f.later.answer, TN_OK);
        assert_ok(tn_wait_all(f.later.ctx));
        later_end(&f.later);
        test_close(f.later.ctx);
    }
}

static tn_status fork_begin(void *arg, uint64_t handle)
{
    forking *f = arg;

    atomic_store(&f->later.handle, handle);
    if (!(f->child = fork()))
        _exit(tn_task_complete(handle, TN_OK, NULL) != TN_E_STATE ||
              tn_task_complete(handle, TN_OK, NULL) != TN_E_STATE);
    return TN_PENDING;
}

/* The task is the parent's: its child, forked inside of it, cannot complete it, and is told so. */
static void a_child_of_a_task(void **state)
{
    forking f = {.later = {.ctx = test_open(LIST(later_engines[0])), .when = NEVER}};
    const tn_task task = {
        .struct_size = TN_SIZE(tn_task), .begin = fork_begin, .done = later_done, .arg = &f, .name = "forks"};

    (void)state;
    assert_ok(tn_engine_push(f.later.ctx, &task));
    later_until_returned(&f.later);
    assert_true(child_ended_well(f.child));
    assert_ok(tn_task_complete(atomic_load(&f.later.handle), TN_OK, NULL));
    assert_ok(tn_wait_all(f.later.ctx));
    later_end(&f.later);
    test_close(f.later.ctx);
}

/* ---- arguments -------------------------------------------------------------------------------------- */

static void wrong_tasks(void **state)
{
    tn_ctx *ctx = test_open(LIST(later_engines[0]));
    const tn_device *fake = NULL;
    later l = {.ctx = ctx, .when = IN_BEGIN, .returned = TN_PENDING};
    atomic_uint count = 0;
    tn_task cases[] = {
        {.arg = &l},
        {.arg = &l, .run = count_run, .begin = later_begin},
        {.arg = &l, .begin = later_begin, .flags = 2},
        {.arg = &l, .begin = later_begin, .flags = UINT32_MAX},
        {.arg = &l, .begin = later_begin, .lane = 4},
        {.arg = &l, .begin = later_begin, .lane = UINT32_MAX},
        {.arg = &l, .begin = later_begin, .lane = TN_LANE_COMM, .flags = TN_TASK_HOST},
        {.arg = &l, .begin = later_begin, .read_count = 1},
        {.arg = &l, .begin = later_begin, .flags = TN_TASK_HOST}, /* on the fake device */
    };
    size_t wrong = COUNT_OF(cases);
    tn_task older = {.struct_size = (uint32_t)offsetof(tn_task, flags), .run = count_run, .arg = &count};

    (void)state;
    if (tn_device_get(ctx, "fake:0", &fake))
        wrong--;
    cases[COUNT_OF(cases) - 1].device = fake;
    for (size_t i = 0; i < wrong; i++) {
        cases[i].struct_size = TN_SIZE(tn_task);
        assert_fails(tn_engine_push(ctx, &cases[i]), TN_E_ARG);
    }
    older.flags = UINT32_MAX; /* behind its end */
    assert_ok(tn_engine_push(ctx, &older));
    assert_ok(tn_wait_all(ctx));
    assert_int_equal(atomic_load(&l.begun), 0);
    assert_int_equal(atomic_load(&count), 1);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completed_at_any_time),
        cmocka_unit_test(returned_or_completed),
        cmocka_unit_test(failure_poisons),
        cmocka_unit_test(texts),
        cmocka_unit_test(wrong_handles),
        cmocka_unit_test(one_of_many_completes),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(closing_gives_up),
        cmocka_unit_test(closing_waits),
        cmocka_unit_test(closing_names_work),
        cmocka_unit_test(callbacks_push_and_wait),
        cmocka_unit_test(blocked_callbacks_let_complete),
        cmocka_unit_test(lanes_run_beside_each_other),
        cmocka_unit_test(values_are_there),
        cmocka_unit_test(a_fork_waits),
        cmocka_unit_test(a_child_of_a_task),
        cmocka_unit_test(wrong_tasks),
    };

    return cmocka_run_group_tests_name("api.tasks", tests, NULL, NULL);
}
