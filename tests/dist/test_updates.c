/*
 * What servers do with sums: optimizers and their parameters, states that go and come, codes, rows, values
 * that are assigned, steps that break, and stores without rounds.
 */
#include "dist/job.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/list.h"
#include "support/scratch.h"

static tn_kv_item key_of(const char *name)
{
    return (tn_kv_item){.name = name};
}

/* ---- optimizers -------------------------------------------------------------------------------------- */

/* w -= lr * rescale * sum, exact in these numbers; what changes counts from the next push on. */
static void sgd(worker *w)
{
    const double sum = w->workers * (w->workers + 1) / 2.0;
    tn_array *a = worker_array(w, TN_F32, 2, small_shape, w->rank + 1.0);
    tn_array *b = worker_array(w, TN_F32, 1, big_shape, w->rank + 1.0);
    const tn_kv_item big = key_of("big");
    double small = 64, large = 64;

    worker_init(w, "small", TN_F32, 2, small_shape, small);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", LIST("lr", "0.5")));
    worker_init(w, "big", TN_F32, 1, big_shape, large);
    for (int round = 0; round < 6; round++) {
        const double lr = round < 2 ? 0.5 : 0.25, rescale = round < 3 ? 1 : 0.5, mult = round < 4 ? 1 : 2;

        WORKER_OK(w, tn_kv_set_param(w->kv, NULL, "lr", lr));
        WORKER_OK(w, tn_kv_set_param(w->kv, NULL, "rescale_grad", rescale));
        WORKER_OK(w, tn_kv_set_param(w->kv, &big, "lr_mult", mult));
        worker_push(w, "small", a);
        worker_push(w, "big", b);
        small -= lr * rescale * sum;
        large -= lr * mult * rescale * sum;
        worker_value(w, "small", 2, small_shape, small);
        worker_value(w, "big", 1, big_shape, large);
    }
    WORKER_FAILS(w, tn_kv_set_updater(w->kv, (tn_kv_updater_fn)(void (*)(void))sgd, NULL), TN_E_STATE);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, NULL, NULL));
    WORKER_FAILS(w, tn_kv_set_updater(w->kv, (tn_kv_updater_fn)(void (*)(void))sgd, NULL), TN_E_UNSUPPORTED);
    worker_push(w, "small", a);
    worker_value(w, "small", 2, small_shape, sum);
    WORKER_FAILS(w, tn_kv_set_optimizer(w->kv, "sdg", NULL), TN_E_KEY);
    WORKER_FAILS(w, tn_kv_set_optimizer(w->kv, "sgd", LIST("rate", "1")), TN_E_ATTR);
    tn_array_release(a);
    tn_array_release(b);
}

static void optimizers_run_on_servers(void **state)
{
    const job_options o = {.workers = 3, .servers = 2, .part_bytes = 4096};

    (void)state;
    job_run(&o, "dist_sync", sgd, NULL);
}

/* The same pushes to a store of this process, whose values are the sums. */
static void as_local(worker *w, const char *optimizer, const char *const *params, int rounds)
{
    tn_array *g = NULL, *sum = NULL, *there = worker_array(w, TN_F32, 1, big_shape, 0),
             *here = worker_array(w, TN_F32, 1, big_shape, 0);
    const tn_kv_item far_in = worker_item(optimizer, &g, &there),
                     near_in = worker_item(optimizer, &sum, &here);
    float mine[BIG], all[BIG], got[BIG], wanted[BIG];
    tn_array *first = worker_array(w, TN_F32, 1, big_shape, 0.25);
    const tn_kv_item begins = worker_item(optimizer, &first, NULL);
    tn_kv *local = NULL;

    WORKER_OK(w, tn_kv_create(w->ctx, "local", &local));
    WORKER_OK(w, tn_kv_init(local, 1, &begins));
    WORKER_OK(w, tn_kv_init(w->kv, 1, &begins));
    WORKER_OK(w, tn_kv_set_optimizer(local, optimizer, params));
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, optimizer, params));
    for (int round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < BIG; i++) {
            mine[i] = (float)((i + w->rank * 3 + (uint32_t)round) % 17) / 16 - 0.5f;
            all[i] = (float)((i + (uint32_t)round) % 17) / 16 - 0.5f;
            for (uint32_t r = 1; r < w->workers; r++)
                all[i] += (float)((i + r * 3 + (uint32_t)round) % 17) / 16 - 0.5f;
        }
        WORKER_OK(w, tn_array_from(w->ctx, TN_F32, 1, big_shape, mine, &g));
        WORKER_OK(w, tn_array_from(w->ctx, TN_F32, 1, big_shape, all, &sum));
        WORKER_OK(w, tn_kv_pushpull(w->kv, 1, &far_in));
        WORKER_OK(w, tn_kv_pushpull(local, 1, &near_in));
        WORKER_OK(w, tn_array_read(there, got, sizeof got));
        WORKER_OK(w, tn_array_read(here, wanted, sizeof wanted));
        for (uint32_t i = 0; i < BIG; i++)
            if (memcmp(&got[i], &wanted[i], sizeof *got) != 0)
                worker_fail(w, __FILE__, __LINE__, "%s, round %d: element %u is %.9g, wanted %.9g", optimizer,
                            round, i, (double)got[i], (double)wanted[i]);
        tn_array_release(g);
        tn_array_release(sum);
    }
    tn_kv_destroy(local);
    tn_array_release(first);
    tn_array_release(there);
    tn_array_release(here);
}

static void each_optimizer(worker *w)
{
    const struct {
        const char *name, *const *params;
    } rows[] = {
        {"sgd", LIST("momentum", "0.9", "wd", "0.01")},
        {"nag", LIST("momentum", "0.9")},
        {"adam", LIST("beta1", "0.8")},
        {"signum", LIST("wd_lh", "0.01")},
        {"rmsprop", LIST("centered", "1")},
        {"ftrl", LIST("lamda1", "0.02")},
        {"adagrad", LIST("eps", "1e-5")},
        {"nadam", LIST("beta1", "0.8")},
        {"ftml", LIST("beta1", "0.7")},
        {"dcasgd", LIST("lamda", "0.1")},
    };
    static const int64_t longer[] = {3, BIG};
    const tn_kv_item whole = key_of("sgd");
    char needed[100];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        as_local(w, rows[i].name, rows[i].params, 4);
    worker_init(w, "longest", TN_F32, 2, longer, 0);
    worker_init(w, "last", TN_F32, 1, big_shape, 0);
    WORKER_FAILS(w, tn_kv_set_optimizer(w->kv, "lamb", NULL), TN_E_UNSUPPORTED); /* it takes norms */
    (void)snprintf(needed, sizeof needed, "kvstore.part_bytes of at least %zu ", 3 * BIG * sizeof(float));
    WORKER_TRUE(w, strstr(tn_error_text(), "key longest is cut into") && strstr(tn_error_text(), needed));
    WORKER_OK(w, tn_kv_set_param(w->kv, &whole, "lr_mult", 1)); /* the one before stays */
}

/* Norms are of whole arrays; float16 weights with a float32 copy, whose bytes are more than the weight's. */
static void uncut(worker *w)
{
    static const int64_t three[] = {3};
    tn_array *half = worker_array(w, TN_F16, 1, three, 1);
    const tn_kv_item it = worker_item("half", &half, NULL), key = key_of("half");
    tn_array *s = NULL;
    uint64_t steps = 0;
    float copy[3];

    as_local(w, "lamb", LIST("lr", "0.01"), 3);
    as_local(w, "lars", LIST("momentum", "0.9"), 3);
    WORKER_OK(w, tn_kv_init(w->kv, 1, &it));
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd",
                                     LIST("lr", "0.0001", "momentum", "0.5", "multi_precision", "1")));
    for (int i = 0; i < 4; i++)
        WORKER_OK(w, tn_kv_push(w->kv, 1, &it));
    WORKER_OK(w, tn_kv_state(w->kv, &key, 1, &s, &steps));
    WORKER_OK(w, tn_array_read(s, copy, sizeof copy));
    tn_array_release(s);
    WORKER_TRUE(w, steps == 4 && fabs(copy[2] - (1 - 2e-4 * (1 + 1.5 + 1.75 + 1.875))) < 1e-6);
    tn_array_release(half);
}

/* Beside a key of float16, one that needs no copy: its states are counted by its own type, also in files. */
static void mixed(worker *w)
{
    static const int64_t three[] = {3};
    tn_array *half = worker_array(w, TN_F16, 1, three, 1), *full = worker_array(w, TN_F64, 1, three, 1),
             *two[] = {full, full}, *s = NULL;
    const tn_kv_item both[] = {worker_item("half", &half, NULL), worker_item("full", &full, NULL)};
    const tn_kv_item too_many = {.name = "full", .value_count = 2, .values = two},
                     one = {.name = "full", .value_count = 1, .values = two},
                     too_few = {.name = "half", .value_count = 1, .values = two};
    char mine[SCRATCH_PATH_BYTES + 16];
    uint64_t steps = 0;
    double got[3];

    (void)snprintf(mine, sizeof mine, "%s.%u", (const char *)w->arg, w->rank);
    WORKER_OK(w, tn_kv_init(w->kv, 2, both));
    WORKER_OK(
        w, tn_kv_set_optimizer(w->kv, "sgd", LIST("lr", "0.25", "momentum", "0.5", "multi_precision", "1")));
    WORKER_OK(w, tn_kv_push(w->kv, 2, both));
    WORKER_OK(w, tn_kv_save_states(w->kv, mine));
    WORKER_FAILS(w, tn_kv_state(w->kv, &both[1], 1, &s, NULL), TN_E_ARG);
    WORKER_TRUE(w, strstr(tn_error_text(), "state 1 of optimizer sgd, which has 1"));
    WORKER_FAILS(w, tn_kv_state(w->kv, &both[0], 2, &s, NULL), TN_E_ARG);
    WORKER_FAILS(w, tn_kv_set_state(w->kv, &too_many, 1), TN_E_ARG);
    WORKER_FAILS(w, tn_kv_set_state(w->kv, &too_few, 1), TN_E_ARG);
    WORKER_OK(w, tn_kv_set_state(w->kv, &one, 7));
    WORKER_OK(w, tn_kv_load_states(w->kv, mine));
    WORKER_OK(w, tn_kv_state(w->kv, &both[1], 0, &s, &steps));
    WORKER_OK(w, tn_array_read(s, got, sizeof got));
    WORKER_TRUE(w, steps == 1 && tn_array_dtype(s) == TN_F64 && got[2] == -0.25 * w->workers);
    tn_array_release(s);
    tn_array_release(half);
    tn_array_release(full);
}

/* An array that is as long as a part is whole; a longer one is refused, and leaves nothing behind. */
static void longest_part(worker *w)
{
    static const int64_t fits[] = {1024}, longer[] = {1025};
    tn_array *a = worker_array(w, TN_F32, 1, longer, 1);
    const tn_kv_item it = worker_item("longer", &a, NULL);

    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "lamb", NULL));
    worker_init(w, "fits", TN_F32, 1, fits, 1);
    WORKER_FAILS(w, tn_kv_init(w->kv, 1, &it), TN_E_UNSUPPORTED);
    WORKER_TRUE(
        w, strstr(tn_error_text(), "key longer is cut into 9 parts: kvstore.part_bytes of at least 4100 "));
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", NULL));
    WORKER_OK(w, tn_kv_init(w->kv, 1, &it));
    tn_array_release(a);
}

static void whole_arrays_and_copies(void **state)
{
    const job_options o = {.workers = 2, .servers = 2},
                      parts = {.workers = 2, .servers = 2, .part_bytes = 4096};
    char path[SCRATCH_PATH_BYTES];

    (void)state;
    (void)snprintf(path, sizeof path, "%s", scratch_path("mixed"));
    job_run(&o, "dist_sync", uncut, NULL);
    job_run(&o, "dist_sync", mixed, path);
    job_run(&parts, "dist_sync", longest_part, NULL);
}

static void cut_arrays_move_like_whole_ones(void **state)
{
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096};

    (void)state;
    job_run(&o, "dist_sync", each_optimizer, NULL);
}

/* ---- states ------------------------------------------------------------------------------------------ */

static float state_at(worker *w, tn_kv *kv, const char *name, uint32_t index, uint32_t at, uint64_t *steps)
{
    const tn_kv_item key = key_of(name);
    static _Thread_local float got[BIG];
    tn_array *s = NULL;

    WORKER_OK(w, tn_kv_state(kv, &key, index, &s, steps));
    WORKER_OK(w, tn_array_read(s, got, tn_array_count(s) * sizeof *got));
    tn_array_release(s);
    return got[at];
}

/* adam's first state is 0.1 of the sum after one push. All of it goes into a file and comes back. */
static void states(worker *w)
{
    const float sum = (float)(w->workers * (w->workers + 1)) / 2, mean = (1 - 0.9f) * sum;
    tn_array *a = worker_array(w, TN_F32, 2, small_shape, w->rank + 1.0), *s[2] = {NULL};
    tn_array *b = worker_array(w, TN_F32, 1, big_shape, w->rank + 1.0);
    const tn_kv_item big = {.name = "big", .value_count = 2, .values = s};
    const char *path = w->arg;
    uint64_t steps = 0;
    char mine[SCRATCH_PATH_BYTES + 16];

    (void)snprintf(mine, sizeof mine, "%s.%u", path, w->rank);
    WORKER_FAILS(w, tn_kv_save_states(w->kv, mine), TN_E_STATE);
    worker_init(w, "small", TN_F32, 2, small_shape, 1);
    worker_init(w, "big", TN_F32, 1, big_shape, 1);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "adam", NULL));
    WORKER_TRUE(w, state_at(w, w->kv, "big", 0, BIG - 1, &steps) == 0 && steps == 0);
    worker_push(w, "small", a);
    worker_push(w, "big", b);
    WORKER_TRUE(w, fabsf(state_at(w, w->kv, "small", 0, SMALL - 1, &steps) - mean) < 1e-6f && steps == 1);
    WORKER_TRUE(w, fabsf(state_at(w, w->kv, "big", 0, BIG - 1, &steps) - mean) < 1e-6f && steps == 1);
    WORKER_OK(w, tn_kv_save_states(w->kv, mine));
    job_meet(w);
    worker_push(w, "small", a);
    worker_push(w, "big", b);
    WORKER_TRUE(w, state_at(w, w->kv, "big", 0, BIG - 1, &steps) > mean && steps == 2);
    job_meet(w);
    WORKER_OK(w, tn_kv_load_states(w->kv, mine));
    WORKER_TRUE(w, fabsf(state_at(w, w->kv, "small", 0, 0, &steps) - mean) < 1e-6f && steps == 1);
    WORKER_TRUE(w, fabsf(state_at(w, w->kv, "big", 0, BIG - 1, &steps) - mean) < 1e-6f && steps == 1);
    s[0] = worker_array(w, TN_F32, 1, big_shape, w->rank + 3.0);
    s[1] = worker_array(w, TN_F32, 1, big_shape, w->rank + 4.0);
    job_meet(w);
    WORKER_OK(w, tn_kv_set_state(w->kv, &big, 70000));
    WORKER_TRUE(w, state_at(w, w->kv, "big", 0, BIG - 1, &steps) == 3 && steps == 70000); /* worker 0's */
    WORKER_TRUE(w, state_at(w, w->kv, "big", 1, 1500, &steps) == 4);
    worker_push(w, "big", b); /* the rounds are still those of all */
    WORKER_TRUE(w, state_at(w, w->kv, "big", 1, 1500, &steps) > 3.9f && steps == 70001);
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(s[0]);
    tn_array_release(s[1]);
}

static void states_go_and_come(void **state)
{
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096};
    char path[SCRATCH_PATH_BYTES];

    (void)state;
    (void)snprintf(path, sizeof path, "%s", scratch_path("states"));
    job_run(&o, "dist_sync", states, path);
    job_run(&o, "dist_sync_device", states, path);
}

/* ---- codes ------------------------------------------------------------------------------------------- */

/* 2bit: 0.3 is kept, 0.6 gives 0.5. 1bit: 0.3 gives -1 and keeps 1.3, then 1.6 gives 1. */
static void coded(worker *w)
{
    const bool two = w->arg != NULL;
    const double first = two ? 0 : -1, second = two ? 0.5 : 1;
    tn_array *a = worker_array(w, TN_F32, 2, small_shape, 0.3),
             *b = worker_array(w, TN_F32, 1, big_shape, 0.3);
    tn_array *half = worker_array(w, TN_F16, 2, small_shape, 1);
    const tn_kv_item wrong = worker_item("half", &half, NULL);

    worker_init(w, "small", TN_F32, 2, small_shape, 0.125);
    worker_init(w, "big", TN_F32, 1, big_shape, 0.125);
    WORKER_OK(w, tn_kv_set_compression(w->kv, LIST("type", two ? "2bit" : "1bit", "threshold", "0.5")));
    WORKER_FAILS(w, tn_kv_set_compression(w->kv, LIST("type", "2bit")), TN_E_STATE);
    worker_value(w, "big", 1, big_shape, 0.125); /* pulls are exact */
    worker_push(w, "small", a);
    worker_push(w, "big", b);
    worker_value(w, "small", 2, small_shape, first * w->workers);
    worker_value(w, "big", 1, big_shape, first * w->workers);
    worker_push(w, "small", a);
    worker_push(w, "big", b);
    worker_value(w, "small", 2, small_shape, second * w->workers);
    worker_value(w, "big", 1, big_shape, second * w->workers);
    worker_init(w, "half", TN_F16, 2, small_shape, 1);
    WORKER_FAILS(w, tn_kv_push(w->kv, 1, &wrong), TN_E_UNSUPPORTED);
    tn_array_release(half);
    tn_array_release(a);
    tn_array_release(b);
}

static void codes_with_residuals(void **state)
{
    static int two;
    const job_options o = {.workers = 3, .servers = 2, .part_bytes = 4096};

    (void)state;
    job_run(&o, "dist_sync", coded, NULL);
    job_run(&o, "dist_sync", coded, &two);
}

/* ---- values that are assigned, steps that break ------------------------------------------------------ */

static void assigned(worker *w)
{
    tn_array *a = worker_array(w, TN_F32, 1, big_shape, w->rank + 40.0);
    const tn_kv_item it = worker_item("w", &a, NULL);

    worker_init(w, "w", TN_F32, 1, big_shape, 1);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", LIST("lr", "1")));
    for (int round = 0; round < 3; round++) {
        WORKER_OK(w, tn_kv_assign(w->kv, 1, &it));
        worker_value(w, "w", 1, big_shape, 40);
        WORKER_OK(w, tn_kv_barrier(w->kv)); /* without rounds a fast one would push before another reads */
        worker_push(w, "w", a);
        WORKER_OK(w, tn_kv_barrier(w->kv));
        worker_value(w, "w", 1, big_shape, w->workers == 2 ? 40 - 40 - 41 : 40 - 40);
        WORKER_OK(w, tn_kv_barrier(w->kv));
    }
    tn_array_release(a);
}

static void worker_0_assigns(void **state)
{
    job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096};

    (void)state;
    job_run(&o, "dist_sync", assigned, NULL);
    job_run(&o, "dist_async", assigned, NULL);
    o.workers = 1;
    job_run(&o, "dist_sync", assigned, NULL);
}

static tn_status no_gradient(void *arg)
{
    (void)arg;
    return TN_E_IO;
}

static void gradient_fails(worker *w, tn_array *a)
{
    tn_var *var = tn_array_var(a);

    WORKER_OK(w, tn_engine_push(w->ctx, &(tn_task){.struct_size = TN_SIZE(tn_task),
                                                   .run = no_gradient,
                                                   .writes = &var,
                                                   .write_count = 1,
                                                   .name = "gradient"}));
}

/* Worker 1's gradient of key "b" fails: no worker moves it, all are told and refused until they assign. */
static void broken(worker *w)
{
    tn_array *a = worker_array(w, TN_F32, 1, big_shape, 1), *b = worker_array(w, TN_F32, 1, big_shape, 1),
             *out = worker_array(w, TN_F32, 1, big_shape, 0);
    const tn_kv_item both[2] = {worker_item("a", &a, NULL), worker_item("b", &b, NULL)};
    const tn_kv_item pulls = worker_item("b", NULL, &out);
    const bool culprit = w->rank == 1;

    worker_init(w, "a", TN_F32, 1, big_shape, 8);
    worker_init(w, "b", TN_F32, 1, big_shape, 8);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", LIST("lr", "1")));
    for (int round = 0; round < 3; round++) {
        WORKER_OK(w, tn_kv_push(w->kv, 2, both));
        worker_value(w, "b", 1, big_shape, 8.0 - w->workers);
        if (culprit)
            gradient_fails(w, b);
        WORKER_OK(w, tn_kv_push(w->kv, 2, both));
        WORKER_OK(w, tn_kv_pull(w->kv, 0, 1, &pulls));
        WORKER_FAILS(w, tn_array_wait(out), culprit ? TN_E_IO : TN_E_STATE);
        if (!culprit)
            WORKER_TRUE(w, strstr(tn_error_text(), "broken by worker 1") && strstr(tn_error_text(), "round"));
        if (culprit)
            WORKER_OK(w, tn_array_fill(b, 1));
        WORKER_OK(w, tn_kv_push(w->kv, 2, both)); /* queued, and refused */
        WORKER_OK(w, tn_kv_pull(w->kv, 0, 1, &pulls));
        WORKER_TRUE(w, tn_array_wait(out) != TN_OK);
        WORKER_OK(w, tn_array_fill(out, 8));
        {
            const tn_kv_item again[2] = {worker_item("a", &out, NULL), worker_item("b", &out, NULL)};

            WORKER_OK(w, tn_kv_assign(w->kv, 2, again));
        }
        worker_value(w, "a", 1, big_shape, 8);
        worker_value(w, "b", 1, big_shape, 8);
    }
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(out);
}

static void a_broken_step_moves_nobody(void **state)
{
    job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096};

    (void)state;
    job_run(&o, "dist_sync", broken, NULL);
    o.workers = 4;
    o.servers = 1;
    job_run(&o, "dist_sync_device", broken, NULL);
}

/* ---- without rounds ---------------------------------------------------------------------------------- */

/* Each push is applied once: integers add up. */
static void async(worker *w)
{
    tn_array *a = worker_array(w, TN_F32, 1, big_shape, w->rank + 1.0);

    worker_init(w, "w", TN_F32, 1, big_shape, 0);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", LIST("lr", "-1")));
    for (uint32_t i = 0; i < 10 * (w->rank + 1); i++)
        worker_push(w, "w", a);
    WORKER_OK(w, tn_kv_barrier(w->kv));
    worker_value(w, "w", 1, big_shape, 10 * (1 + 4 + 9 + 16));
    tn_array_release(a);
}

static void each_push_counts_once(void **state)
{
    const job_options o = {.workers = 4, .servers = 2, .part_bytes = 4096};

    (void)state;
    job_run(&o, "dist_async", async, NULL);
    job_run(&o, "dist_async_device", async, NULL);
}

/* ---- commands ---------------------------------------------------------------------------------------- */

static atomic_uint heard;

static void hear(void *arg, int32_t head, const char *body)
{
    if (arg == &heard && head == 7 && (!strcmp(body, "hello") || strlen(body) == 65536))
        atomic_fetch_add(&heard, 1);
}

static void commands(worker *w)
{
    char *body = calloc(1, 65537);
    uint32_t count = 99;

    WORKER_TRUE(w, body != NULL);
    memset(body, 'x', 65536);
    WORKER_OK(w, tn_kv_command(w->kv, 7, "hello"));
    WORKER_OK(w, tn_kv_command(w->kv, 7, body));
    WORKER_OK(w, tn_kv_barrier(w->kv));
    WORKER_TRUE(w, atomic_load(&heard) == 2 * w->workers * 2);
    WORKER_OK(w, tn_kv_dead_nodes(w->kv, TN_KV_SCHEDULER | TN_KV_SERVERS | TN_KV_WORKERS, 0, &count));
    WORKER_TRUE(w, count == 0);
    WORKER_FAILS(w, tn_kv_dead_nodes(w->kv, 8, 0, &count), TN_E_ARG);
    free(body);
}

static void commands_reach_servers(void **state)
{
    const job_options o = {.workers = 3, .servers = 2, .command = hear, .arg = &heard};

    (void)state;
    atomic_store(&heard, 0);
    job_run(&o, "dist_sync", commands, NULL);
}

/* ---- snapshots --------------------------------------------------------------------------------------- */

/* Seven steps of two keys, pushed one by one: what is written is whole steps, the third and the sixth. */
static void snapshots(worker *w)
{
    tn_array *a = worker_array(w, TN_F32, 1, big_shape, 1);
    uint64_t last = 0;

    worker_init(w, "a", TN_F32, 1, big_shape, 0);
    worker_init(w, "b", TN_F32, 1, big_shape, 0);
    for (int step = 0; step < 7; step++) {
        worker_push(w, "a", a);
        worker_push(w, "b", a);
    }
    WORKER_OK(w, tn_kv_barrier(w->kv));
    WORKER_TRUE(w, job_snapshots(&last) == 2 * 2 && last == 6);
    tn_array_release(a);
}

static void snapshots_of_whole_steps(void **state)
{
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096, .snapshot_steps = 3};

    (void)state;
    job_run(&o, "dist_sync", snapshots, NULL);
}

/* Without rounds nobody sends again what a server loses: what no snapshot has is written before the first
 * gradient behind it. */
static void news(worker *w)
{
    static const uint64_t written[] = {1, 1, 1, 2, 2, 3, 4, 4}, steps[] = {1, 1, 1, 3, 3, 5, 6, 6};
    tn_array *a = worker_array(w, TN_F32, 1, big_shape, 1);
    uint64_t last = 0;

    worker_init(w, "a", TN_F32, 1, big_shape, 0);
    WORKER_OK(w, tn_kv_barrier(w->kv));
    WORKER_TRUE(w, job_snapshots(&last) == 0);
    WORKER_OK(w, tn_kv_barrier(w->kv));
    for (uint32_t step = 0; step < 8; step++) {
        if (step == 3)
            worker_init(w, "b", TN_F32, 1, big_shape, 0);
        if (step == 5)
            WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", (const char *const[]){"lr", "-1", NULL}));
        worker_push(w, "a", a);
        if (step == 4)
            worker_push(w, "b", a);
        WORKER_OK(w, tn_kv_barrier(w->kv));
        WORKER_TRUE(w, job_snapshots(&last) == 2 * written[step] && last == steps[step]);
        WORKER_OK(w, tn_kv_barrier(w->kv));
    }
    tn_array_release(a);
}

static void snapshots_of_what_is_new(void **state)
{
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096, .snapshot_steps = 6};

    (void)state;
    job_run(&o, "dist_async", news, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_run_on_servers),  cmocka_unit_test(cut_arrays_move_like_whole_ones),
        cmocka_unit_test(whole_arrays_and_copies),    cmocka_unit_test(states_go_and_come),
        cmocka_unit_test(codes_with_residuals),       cmocka_unit_test(worker_0_assigns),
        cmocka_unit_test(a_broken_step_moves_nobody), cmocka_unit_test(each_push_counts_once),
        cmocka_unit_test(commands_reach_servers),     cmocka_unit_test(snapshots_of_whole_steps),
        cmocka_unit_test(snapshots_of_what_is_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
