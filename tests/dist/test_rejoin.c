/*
 * A worker that is lost within a step: one in its place gets all values as they were behind the step before,
 * and makes the torn step again, so that both end with the bits of a job in which nobody is lost.
 */
#include "dist/job.h"

#include "kv/dist.h"

static const char *const names[] = {"a", "b"};

typedef struct plan {
    uint32_t victim;
    tn_status wanted;
    const char *const *optimizer, *const *codec;
} plan;

static tn_array *key_array(worker *w, size_t key, double fill)
{
    return key ? worker_array(w, TN_F32, 1, big_shape, fill) : worker_array(w, TN_F32, 2, small_shape, fill);
}

static void key_push(worker *w, size_t key)
{
    tn_array *ones = key_array(w, key, 1);

    worker_push(w, names[key], ones);
    tn_array_release(ones);
}

static void key_check(worker *w, size_t key, double wanted)
{
    if (key)
        worker_value(w, names[key], 1, big_shape, wanted);
    else
        worker_value(w, names[key], 2, small_shape, wanted);
}

static void begin(worker *w, const plan *p, double fill)
{
    worker_init(w, names[0], TN_F32, 2, small_shape, fill);
    worker_init(w, names[1], TN_F32, 1, big_shape, fill);
    if (p->optimizer)
        WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", p->optimizer));
    if (p->codec)
        WORKER_OK(w, tn_kv_set_compression(w->kv, p->codec));
}

/* All elements of what the call brings are `wanted`. */
static uint64_t rejoin(worker *w, tn_status status, double wanted)
{
    tn_array *outs[] = {key_array(w, 0, 77), key_array(w, 1, 77)};
    const tn_kv_item items[] = {worker_item(names[0], NULL, &outs[0]), worker_item(names[1], NULL, &outs[1])};
    static _Thread_local float there[BIG];
    uint64_t steps = 99;

    WORKER_TRUE(w, tn_kv_rejoin(w->kv, 2, items, &steps) == status);
    for (size_t k = 0; k < 2 && !status; k++) {
        const size_t count = k ? BIG : SMALL;

        WORKER_OK(w, tn_array_read(outs[k], there, count * sizeof *there));
        for (size_t i = 0; i < count; i++)
            WORKER_TRUE(w, there[i] == (float)wanted);
    }
    WORKER_TRUE(w, !status || steps == 99); /* written only on success */
    tn_array_release(outs[0]);
    tn_array_release(outs[1]);
    return steps;
}

/* The other worker does not go on alone: this one is lost, as the one before it. */
static void named(worker *w, size_t key)
{
    tn_array *out = key_array(w, key, 0);
    const tn_kv_item item = worker_item(names[key], NULL, &out);

    WORKER_OK(w, tn_kv_pull(w->kv, 0, 1, &item));
    WORKER_FAILS(w, tn_array_wait(out), TN_E_PEER);
    WORKER_TRUE(w, strstr(tn_error_text(), "worker 1") != NULL);
    tn_array_release(out);
}

/* sgd with lr -1 and momentum 0.5, of sums of 2: the value moves by 2, 3, 3.5. */
static void torn(worker *w)
{
    const plan *p = w->arg;

    begin(w, p, 5);
    WORKER_TRUE(w, rejoin(w, TN_OK, 77) == 0); /* it is in nobody's place: nothing is written */
    for (size_t k = 0; k < 2; k++)
        key_push(w, k);
    key_check(w, 0, p->optimizer ? 7 : 2);
    key_check(w, 1, p->optimizer ? 7 : 2);
    job_meet(w);
    key_push(w, 0);
    if (w->rank != p->victim) {
        key_push(w, 1);
    } else {
        key_check(w, 0, p->optimizer ? 10 : 2); /* of the second step, which lacks the other key */
        job_lose(w);
        WORKER_OK(w, tn_kv_create(w->ctx, "dist_sync", &w->kv));
        begin(w, p, 9);
        if (p->wanted) {
            (void)rejoin(w, p->wanted, 0);
            tn_kv_destroy(w->kv); /* it cannot go on */
            w->kv = NULL;
        } else {
            WORKER_TRUE(w, rejoin(w, TN_OK, 7) == 1);
            key_push(w, 0);
            key_push(w, 1);
        }
    }
    if (p->wanted) {
        if (w->rank != p->victim)
            named(w, 1);
        return;
    }
    for (size_t k = 0; k < 2; k++)
        key_push(w, k);
    key_check(w, 0, 13.5);
    key_check(w, 1, 13.5);
    WORKER_OK(w, tn_kv_barrier(w->kv));
}

static const char *const sgd[] = {"lr", "-1", "momentum", "0.5", NULL};
static const char *const bits[] = {"type", "2bit", "threshold", "1", NULL}; /* of ones nothing is left over */
static const char *const waits[] = {"kvstore.on_worker_loss=wait:600", NULL};
static const char *const compares[] = {"kvstore.on_worker_loss=wait:600", "kvstore.drift_check=1", NULL};

static void run(plan p, const char *const *settings)
{
    const job_options o = {
        .workers = 2, .servers = 2, .part_bytes = 4096, .waits = true, .settings = settings};

    job_run(&o, "dist_sync", torn, &p);
}

static void the_torn_step_is_made_again(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < 2; victim++)
        run((plan){.victim = victim, .optimizer = sgd}, waits);
}

static void servers_that_keep_nothing(void **state)
{
    (void)state;
    run((plan){.victim = 1, .optimizer = sgd, .wanted = TN_E_STATE}, NULL);
}

/* What the lost worker alone had, or what others may wait for. */
static void what_is_lost(void **state)
{
    (void)state;
    run((plan){.victim = 1, .wanted = TN_E_UNSUPPORTED}, waits);
    run((plan){.victim = 1, .optimizer = sgd, .codec = bits, .wanted = TN_E_UNSUPPORTED}, waits);
    run((plan){.victim = 1, .optimizer = sgd, .wanted = TN_E_UNSUPPORTED}, compares);
}

static void rates(worker *w, double lr, double lr_mult)
{
    WORKER_OK(w, tn_kv_set_param(w->kv, NULL, "lr", lr));
    for (size_t k = 0; k < 2; k++) {
        const tn_kv_item item = worker_item(names[k], NULL, NULL);

        WORKER_OK(w, tn_kv_set_param(w->kv, &item, "lr_mult", lr_mult));
    }
}

/* A new process sets what its optimizer begins with, but the lost one had told the servers otherwise. */
static void changes(worker *w)
{
    const plan *p = w->arg;

    begin(w, p, 5);
    rates(w, -1, 1);
    WORKER_TRUE(w, !w->kv->dist->changes.length); /* servers know: nothing has changed */
    rates(w, -2, 3);
    for (size_t k = 0; k < 2; k++)
        key_push(w, k);
    for (size_t k = 0; k < 2; k++)
        key_check(w, k, 17); /* by 12 */
    job_meet(w);
    if (w->rank == p->victim) {
        job_lose(w);
        WORKER_OK(w, tn_kv_create(w->ctx, "dist_sync", &w->kv));
        begin(w, p, 9);
        WORKER_TRUE(w, rejoin(w, TN_OK, 17) == 1);
    }
    rates(w, -1, 1);
    for (size_t k = 0; k < 2; k++)
        key_push(w, k);
    for (size_t k = 0; k < 2; k++)
        key_check(w, k, 25); /* by half of 12, and 2 */
    rates(w, -1, 1);
    WORKER_TRUE(w, !w->kv->dist->changes.length); /* told once */
    WORKER_OK(w, tn_kv_barrier(w->kv));
}

static void rates_of_the_lost_one(void **state)
{
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096, .waits = true, .settings = waits};

    (void)state;
    for (uint32_t victim = 0; victim < 2; victim++)
        job_run(&o, "dist_sync", changes, &(plan){.victim = victim, .optimizer = sgd});
}

/* Servers have no optimizer where the lost worker had given one: they get it. */
static void given(worker *w)
{
    const plan *p = w->arg;

    begin(w, &(plan){0}, 5);
    for (int i = 0; i < 2; i++) /* as many as an optimizer takes */
        WORKER_OK(w, tn_kv_barrier(w->kv));
    job_meet(w);
    if (w->rank == p->victim) {
        job_lose(w);
        WORKER_OK(w, tn_kv_create(w->ctx, "dist_sync", &w->kv));
        begin(w, p, 9);
        WORKER_TRUE(w, rejoin(w, TN_OK, 5) == 0);
    }
    job_meet(w);
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            key_push(w, k);
    for (size_t k = 0; k < 2; k++)
        key_check(w, k, 10);
    WORKER_OK(w, tn_kv_barrier(w->kv));
}

static void servers_that_began_empty(void **state)
{
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096, .waits = true, .settings = waits};

    (void)state;
    job_run(&o, "dist_sync", given, &(plan){.optimizer = sgd});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_torn_step_is_made_again), cmocka_unit_test(servers_that_keep_nothing),
        cmocka_unit_test(what_is_lost), cmocka_unit_test(rates_of_the_lost_one),
        cmocka_unit_test(servers_that_began_empty)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
