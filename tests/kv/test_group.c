/*
 * A store over a collective: workers are threads with a context each, and the kit's reference is the
 * collective. Sums, first values, updates; gradients that are late, fail or never come.
 */
#define PLANTED HEALTHY
#define NAME "board"
#include "check/kinds/collective.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "context/context.h"
#include "kv/kv.h"
#include "support/list.h"
#include "tenon/kv.h"

#define WORKERS 3u
#define BIG 5000

typedef struct worker {
    pthread_t id;
    uint32_t rank, count;
    const char *const *settings;
    void (*fn)(struct worker *w);
    tni_context *c;
    tn_ctx *ctx; /* the same */
    tn_kv *kv;
    pthread_barrier_t *meet;
} worker;

static void must(const worker *w, bool holds, const char *what, int line)
{
    if (holds)
        return;
    print_error("%s:%d: worker %u: %s: %s\n", __FILE__, line, w->rank, what, tni_error_message());
    abort();
}
#define MUST(w, condition) must((w), (condition), #condition, __LINE__)
#define OK(w, call) must((w), (call) == TN_OK, #call, __LINE__)
#define SAYS(w, text) must((w), strstr(tni_error_message(), (text)) != NULL, (text), __LINE__)

static void *worker_main(void *arg)
{
    worker *w = arg;
    char rank[40], count[40], plugins[4096];
    const char *settings[12] = {
        "kvstore.transport=board", "kvstore.rendezvous=own", "plugins.trust=off", rank, count, plugins};
    const tni_context_options o = {.settings = settings};
    tni_plugin *plugin;
    tn_status st;

    (void)snprintf(rank, sizeof rank, "kvstore.rank=%u", w->rank);
    (void)snprintf(count, sizeof count, "kvstore.workers=%u", w->count);
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    for (size_t i = 0; w->settings && w->settings[i]; i++)
        settings[6 + i] = w->settings[i];
    OK(w, tni_context_open(&o, &w->c));
    w->ctx = (tn_ctx *)(void *)w->c;
    OK(w, tni_registry_add_static(w->c->plugins, &tn_plugin_v1, &plugin));
    OK(w, tn_kv_create(w->ctx, "mpi", &w->kv));
    w->fn(w);
    tn_kv_destroy(w->kv);
    st = tni_context_close(w->c, 0);
    (void)st; /* what failed in a test may be told once more */
    return NULL;
}

static void job(uint32_t count, const char *const *settings, void (*fn)(worker *w))
{
    worker all[WORKERS];
    pthread_barrier_t meet;

    assert_int_equal(pthread_barrier_init(&meet, NULL, count), 0);
    for (uint32_t i = 0; i < count; i++) {
        all[i] = (worker){.rank = i, .count = count, .settings = settings, .fn = fn, .meet = &meet};
        assert_int_equal(pthread_create(&all[i].id, NULL, worker_main, &all[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++)
        (void)pthread_join(all[i].id, NULL);
    (void)pthread_barrier_destroy(&meet);
}

/* ---- values ------------------------------------------------------------------------------------------- */

static float number(uint32_t rank, uint32_t i) /* sums depend on the order */
{
    return (float)((i * 7919u + rank * 104729u) % 20011u) * (rank == 1 ? 1e-4f : 1.0f + (float)rank * 1e4f);
}

static tn_array *array_of(worker *w, int64_t count, const float *data)
{
    tn_array *a = NULL;

    OK(w, tn_array_from(w->ctx, TN_F32, 1, &count, data, &a));
    return a;
}

static tn_array *full(worker *w, int64_t count, float value)
{
    float data[BIG];

    for (int64_t i = 0; i < count; i++)
        data[i] = value;
    return array_of(w, count, data);
}

static tn_kv_item item(const char *name, uint32_t count, tn_array *const *in, tn_array *const *out)
{
    return (tn_kv_item){
        .name = name, .value_count = in ? count : 0, .values = in, .out_count = out ? 1 : 0, .outs = out};
}

static void init(worker *w, const char *name, int64_t count, float value)
{
    tn_array *a = full(w, count, value);
    const tn_kv_item it = item(name, 1, &a, NULL);

    OK(w, tn_kv_init(w->kv, 1, &it));
    tn_array_release(a);
}

static void value_is(worker *w, const char *name, int64_t count, float wanted, int line)
{
    tn_array *a = full(w, count, -77);
    const tn_kv_item it = item(name, 0, NULL, &a);
    float got[BIG];

    OK(w, tn_kv_pull(w->kv, 0, 1, &it));
    must(w, tn_array_read(a, got, (uint64_t)count * sizeof *got) == TN_OK, name, line);
    for (int64_t i = 0; i < count; i++)
        must(w, got[i] == wanted, name, line);
    tn_array_release(a);
}
#define VALUE_IS(w, name, count, wanted) value_is((w), (name), (count), (wanted), __LINE__)

/* ---- tests -------------------------------------------------------------------------------------------- */

/* Two values of each worker are summed first; then workers, in the order of ranks. */
static void sums_run(worker *w)
{
    float sent[BIG], twice[BIG], wanted[BIG], got[BIG];
    const uint32_t pair = 2;
    tn_array *in[2], *out, *small = full(w, 3, (float)w->rank + 1);
    tn_kv_item items[2];
    tn_kv_info info = {.struct_size = (uint32_t)sizeof info};

    OK(w, tn_kv_info_get(w->kv, &info));
    MUST(w, info.rank == w->rank && info.workers == w->count && !info.servers);
    init(w, "big", BIG, 0);
    init(w, "small", 3, 0);
    for (uint32_t i = 0; i < BIG; i++) {
        sent[i] = number(w->rank, i);
        twice[i] = number(w->rank, i + 1);
        wanted[i] = number(0, i) + number(0, i + 1);
        for (uint32_t r = 1; r < w->count; r++)
            wanted[i] += number(r, i) + number(r, i + 1);
    }
    in[0] = array_of(w, BIG, sent);
    in[1] = array_of(w, BIG, twice);
    out = full(w, BIG, -1);
    items[0] = item("big", pair, in, &out);
    items[1] = item("small", 1, &small, &small);
    for (int round = 0; round < 20; round++) {
        OK(w, tn_kv_pushpull(w->kv, 1, items));
        OK(w, tn_array_read(out, got, sizeof got));
        MUST(w, !memcmp(got, wanted, sizeof got));
    }
    OK(w, tn_kv_pushpull(w->kv, 2, items));
    OK(w, tn_array_read(small, got, 3 * sizeof *got));
    MUST(w, got[0] == 6 && got[2] == 6);
    OK(w, tn_kv_barrier(w->kv));
    VALUE_IS(w, "small", 3, 6);
    OK(w, tn_kv_end(w->kv));
    tn_array_release(in[0]);
    tn_array_release(in[1]);
    tn_array_release(out);
    tn_array_release(small);
}

static void sums(void **state)
{
    (void)state;
    job(WORKERS, NULL, sums_run);
    job(WORKERS, LIST("kvstore.part_bytes=4096", "engine.type=naive"), sums_run);
    job(WORKERS, LIST("kvstore.part_bytes=4096", "engine.workers=4"), sums_run);
}

/* Worker 0's numbers are those of all; all make the same steps. */
static void updates_run(worker *w)
{
    static const char *const params[] = {"lr", "0.5", "momentum", "0.5", NULL};
    tn_array *grad = full(w, 4, (float)w->rank), *value = full(w, 4, 100 + (float)w->rank);
    const tn_kv_item push = item("w", 1, &grad, NULL), assign = item("w", 1, &value, NULL);

    init(w, "w", 4, 10 + (float)w->rank);
    VALUE_IS(w, "w", 4, 10);
    OK(w, tn_kv_set_optimizer(w->kv, "sgd", params));
    OK(w, tn_kv_push(w->kv, 1, &push)); /* 0 + 1 + 2 */
    VALUE_IS(w, "w", 4, 8.5f);
    OK(w, tn_kv_push(w->kv, 1, &push));
    VALUE_IS(w, "w", 4, 6.25f);
    OK(w, tn_kv_assign(w->kv, 1, &assign));
    VALUE_IS(w, "w", 4, 100);
    tn_array_release(grad);
    tn_array_release(value);
}

static void updates(void **state)
{
    (void)state;
    job(WORKERS, NULL, updates_run);
}

/* A gradient that comes when the test completes the operation. */
typedef _Atomic(tni_operation *) late_op;

static tn_status late_run(void *payload, tni_run *run)
{
    atomic_store(*(late_op **)payload, run->op);
    return TN_PENDING;
}

static void late_begin(worker *w, tn_array *grad, late_op *op)
{
    tni_var *var = tni_array_var((tni_array *)(void *)grad);
    const tni_task task = {.run = late_run,
                           .payload = &op,
                           .payload_bytes = sizeof op,
                           .writes = &var,
                           .write_count = 1,
                           .flags = TNI_TASK_ASYNC,
                           .name = "a late gradient"};

    OK(w, tni_engine_push(w->c->engine, &task));
}

/* The first of two pushes is ready last on worker 0, first on the others: both end with their own sums. */
static void late_first_run(worker *w)
{
    tn_array *a = full(w, 2, 1), *b = full(w, 3, 10);
    const tn_kv_item first = item("a", 1, &a, NULL), second = item("b", 1, &b, NULL);
    late_op op = NULL;

    init(w, "a", 2, 0);
    init(w, "b", 3, 0);
    for (int round = 0; round < 10; round++) {
        if (!w->rank)
            late_begin(w, a, &op);
        OK(w, tn_kv_push(w->kv, 1, &first));
        OK(w, tn_kv_push(w->kv, 1, &second));
        (void)pthread_barrier_wait(w->meet);
        while (!w->rank && !atomic_load(&op))
            (void)sched_yield();
        if (!w->rank)
            tni_engine_complete(atomic_load(&op), TN_OK, NULL);
        atomic_store(&op, NULL);
        VALUE_IS(w, "b", 3, 30);
        VALUE_IS(w, "a", 2, 3);
    }
    tn_array_release(a);
    tn_array_release(b);
}

static void late_first(void **state)
{
    (void)state;
    job(WORKERS, NULL, late_first_run);
}

/* A gradient fails on worker 1: all end, and hear why. */
static void gradient_fails_run(worker *w)
{
    tn_array *grad = full(w, 2, 1), *out = full(w, 2, -1);
    const tn_kv_item it = item("a", 1, &grad, &out);
    tni_var *var = tni_array_var((tni_array *)(void *)grad);
    float got[2];

    init(w, "a", 2, 0);
    if (w->rank == 1) {
        (void)tni_error(TN_E_DEVICE, "a planted failure");
        tni_engine_spoil(w->c->engine, &var, 1, TN_E_DEVICE, "a gradient");
    }
    OK(w, tn_kv_pushpull(w->kv, 1, &it));
    MUST(w, tn_array_read(out, got, sizeof got) != TN_OK);
    SAYS(w, "a planted failure");
    if (w->rank != 1)
        SAYS(w, "rank 1 has given up");
    MUST(w, tn_kv_barrier(w->kv) != TN_OK); /* it stays so */
    tn_array_release(grad);
    tn_array_release(out);
}

static void gradient_fails(void **state)
{
    (void)state;
    job(WORKERS, NULL, gradient_fails_run);
}

static atomic_uint_fast64_t fails_at; /* allocation of worker 1's push that fails */
static atomic_bool went_well;

/* A push of worker 1 has no memory: the others hear of it at once. */
static void push_without_memory_run(worker *w)
{
    tn_array *grad = full(w, 2, 1), *out = full(w, 2, -1);
    const tn_kv_item it = item("a", 1, &grad, &out);
    float got[2];
    tn_status st;

    init(w, "a", 2, 0);
    if (w->rank == 1)
        tni_mem_fail_at(atomic_load(&fails_at), false, true);
    st = tn_kv_pushpull(w->kv, 1, &it);
    if (w->rank == 1) {
        atomic_store(&went_well, !tni_mem_failed());
        tni_mem_fail_at(0, false, false);
        MUST(w, !st || st == TN_E_NOMEM);
    }
    (void)pthread_barrier_wait(w->meet);
    if (atomic_load(&went_well)) {
        OK(w, tn_array_read(out, got, sizeof got));
        MUST(w, got[0] == 3);
    } else if (w->rank != 1) {
        st = st ? st : tn_array_read(out, got, sizeof got);
        if (st) /* else it was for what follows the sum */
            SAYS(w, "rank 1 has given up: no memory for a push");
        else
            MUST(w, got[0] == 3);
    }
    tn_array_release(grad);
    tn_array_release(out);
}

static void push_without_memory(void **state)
{
    (void)state;
    atomic_store(&went_well, false);
    for (uint64_t n = 1; n < 200 && !atomic_load(&went_well); n++) {
        atomic_store(&fails_at, n);
        job(WORKERS, LIST("kvstore.timeout=600s"), push_without_memory_run);
    }
    assert_true(atomic_load(&went_well));
}

/* Worker 2 does not push: the others hear of it at the deadline. */
static void never_comes_run(worker *w)
{
    tn_array *grad = full(w, 2, 1);
    const tn_kv_item it = item("a key", 1, &grad, &grad);
    float got[2];

    init(w, "a key", 2, 0);
    if (w->rank != 2) {
        OK(w, tn_kv_pushpull(w->kv, 1, &it));
        MUST(w, tn_array_read(grad, got, sizeof got) == TN_E_PEER);
        SAYS(w, "rank 2");
        SAYS(w, "(a key)");
    }
    (void)pthread_barrier_wait(w->meet);
    tn_array_release(grad);
}

static void never_comes(void **state)
{
    (void)state;
    job(WORKERS, LIST("kvstore.timeout=100ms"), never_comes_run);
}

/* Workers that init different keys are told so, each of them. */
static void other_keys_run(worker *w)
{
    tn_array *a = full(w, w->rank == 1 ? 3 : 2, 1);
    const tn_kv_item it = item("a", 1, &a, NULL);
    tn_array *out = full(w, w->rank == 1 ? 3 : 2, 1);
    tn_kv_item pull = item("a", 0, NULL, &out);
    float got[3];
    const tn_status st = tn_kv_init(w->kv, 1, &it);

    if (w->rank == 1) {
        MUST(w, st == TN_E_PEER);
        SAYS(w, "other keys to init than worker 0");
    } else if (!st && !(tn_kv_pull(w->kv, 0, 1, &pull))) {
        MUST(w, tn_array_read(out, got, 2 * sizeof *got) != TN_OK);
        SAYS(w, "rank 1 has given up");
    }
    tn_array_release(a);
    tn_array_release(out);
}

static void other_keys(void **state)
{
    (void)state;
    job(WORKERS, NULL, other_keys_run);
}

/* One store after the other, in each of which a later allocation fails: an error or none, and no hang. A sum
 * that is told is right. */
static void no_memory_on(worker *w, bool this_thread)
{
    bool failed = true;

    for (uint64_t nth = 1; failed; nth++) {
        tn_array *grad = full(w, 2, 3), *out = full(w, 2, -1);
        const tn_kv_item first = item("a", 1, &grad, NULL), it = item("a", 1, &grad, &out);
        tn_kv *kv = NULL;
        float got[2];
        tn_status st;

        tni_mem_fail_at(nth, false, this_thread);
        if (!(st = tn_kv_create(w->ctx, "mpi", &kv)) && !(st = tn_kv_init(kv, 1, &first)) &&
            !(st = tn_kv_pushpull(kv, 1, &it)) && !(st = tn_array_read(out, got, sizeof got)))
            st = tn_kv_barrier(kv);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, false);
        must(w, !st || failed, "a failure without a cause", __LINE__);
        must(w, st || (got[0] == 3 && got[1] == 3), "a sum that is none", __LINE__);
        tn_kv_destroy(kv);
        tn_array_release(grad);
        tn_array_release(out);
    }
}

static void no_memory_run(worker *w)
{
    no_memory_on(w, true);
    no_memory_on(w, false);
}

static void no_memory(void **state)
{
    (void)state;
    job(1, LIST("kvstore.timeout=5s"), no_memory_run);
}

/* First values of several calls, of which some are queued when memory fails: what comes next ends, too. */
static void no_memory_between_run(worker *w)
{
    bool failed = true;

    for (uint64_t nth = 1; failed; nth++) {
        tn_array *values[] = {full(w, 2000, 1), full(w, 2000, 2), full(w, 2000, 3)};
        const tn_kv_item all[] = {item("a", 1, &values[0], NULL), item("b", 1, &values[1], NULL),
                                  item("c", 1, &values[2], NULL)};
        tn_kv *kv = NULL;
        tn_status st;

        OK(w, tn_kv_create(w->ctx, "mpi", &kv));
        tni_mem_fail_at(nth, false, true);
        st = tn_kv_init(kv, 3, all);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, false);
        must(w, !st || failed, "a failure without a cause", __LINE__);
        if (!st || !tn_kv_init(kv, 3, all))
            OK(w, tn_kv_barrier(kv));
        tn_kv_destroy(kv);
        for (size_t i = 0; i < 3; i++)
            tn_array_release(values[i]);
    }
}

static void no_memory_between(void **state)
{
    (void)state;
    job(1, LIST("kvstore.timeout=5s", "kvstore.part_bytes=4096"), no_memory_between_run);
}

/* What a store without servers does not do. */
static void refused(void **state)
{
    static const struct {
        const char *settings[5];
        tn_status status;
        const char *says;
    } rows[] = {
        {{"kvstore.uneven=join", NULL}, TN_E_UNSUPPORTED, "join"},
        {{"kvstore.transport=nowhere", NULL}, TN_E_UNSUPPORTED, "kv-nowhere"},
        {{"kvstore.rank=2", "kvstore.workers=2", NULL}, TN_E_ATTR, "kvstore.rank says rank 2"},
        {{"kvstore.rank=0", "kvstore.workers=9", "kvstore.transport=board", NULL}, TN_E_ARG, "no rank"},
        {{"kvstore.rendezvous=none", "kvstore.transport=board", NULL}, TN_E_ARG, "no rank"},
        {{"kvstore.rank=0", "kvstore.workers=2", "kvstore.transport=board", "kvstore.control_timeout=50ms"},
         TN_E_TIMEOUT,
         "did not come"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tni_context_options o = {.settings = rows[i].settings};
        tni_plugin *plugin;
        tni_context *c;
        tn_kv *kv = NULL;

        assert_int_equal(tni_context_open(&o, &c), TN_OK);
        assert_int_equal(tni_registry_add_static(c->plugins, &tn_plugin_v1, &plugin), TN_OK);
        if (tn_kv_create((tn_ctx *)(void *)c, "mpi", &kv) != rows[i].status)
            fail_msg("row %zu: %s", i, tni_error_message());
        if (!strstr(tni_error_message(), rows[i].says))
            fail_msg("row %zu: %s", i, tni_error_message());
        assert_null(kv);
        assert_int_equal(tni_context_close(c, 0), TN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),        cmocka_unit_test(updates),
        cmocka_unit_test(late_first),  cmocka_unit_test(gradient_fails),
        cmocka_unit_test(never_comes), cmocka_unit_test(other_keys),
        cmocka_unit_test(no_memory),   cmocka_unit_test(no_memory_between),
        cmocka_unit_test(refused),     cmocka_unit_test(push_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
