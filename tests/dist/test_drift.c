/*
 * The drift check: a bit that is turned over in one array of one worker is found, in the round that looks for
 * it, on all workers, with its key and the worker's rank; by the store, and by trainers within N rounds.
 */
#include "dist/job.h"

#include <stdio.h>

#include "support/list.h"
#include "support/scratch.h"
#include "tenon/nn.h"

#define KEYS 6u

static const char *const names[KEYS] = {"a", "b", "c", "d", "e", "f"};

/* One bit of element 1. */
static void flip(worker *w, tn_array *a, uint64_t bytes, uint32_t bit)
{
    uint8_t *data = malloc(bytes);

    if (!data)
        abort();
    WORKER_OK(w, tn_array_read(a, data, bytes));
    data[bytes / 2 + bit / 8] ^= (uint8_t)(1u << bit % 8);
    WORKER_OK(w, tn_array_write(a, data, bytes));
    free(data);
}

typedef struct plant {
    uint32_t count;       /* of keys */
    uint32_t key, second; /* where; second: another one behind it, KEYS: none */
    uint32_t rank, bit;
    bool device; /* in the copy on the second device */
} plant;

static void arrays_make(worker *w, tn_array *arrays[2 * KEYS], tn_kv_item items[KEYS])
{
    static const int64_t shape[] = {4, 3};
    const tn_device *second = NULL;

    WORKER_OK(w, tn_device_get(w->ctx, "cpu:1", &second));
    for (uint32_t i = 0; i < 2 * KEYS; i++) {
        WORKER_OK(w, tn_array_zeros(w->ctx, i / 2 % 2 ? TN_F16 : TN_F32, 2, shape, i % 2 ? second : NULL,
                                    &arrays[i]));
        WORKER_OK(w, tn_array_fill(arrays[i], i / 2 + 0.5));
    }
    for (uint32_t i = 0; i < KEYS; i++)
        items[i] = (tn_kv_item){.name = names[i], .value_count = 2, .values = &arrays[2 * i]};
}

/* Rounds 0, 4 and 8 are looked at; one that differs says so on all, and once it is mended all go on. */
static void store_finds(worker *w)
{
    const plant *p = w->arg;
    tn_array *arrays[2 * KEYS];
    tn_kv_item items[KEYS];
    char rank[32], key[32];

    arrays_make(w, arrays, items);
    for (uint64_t round = 0; round < 9; round++) {
        const bool planted = round > 2 && round < 6;

        for (uint32_t i = 0; i < 2 && (round == 3 || round == 6); i++) {
            const uint32_t at = i ? p->second : p->key;

            if (w->rank != p->rank || at == KEYS)
                continue;
            flip(w, arrays[2 * at + p->device], at % 2 ? 24 : 48, p->bit);
            if (!p->device)
                flip(w, arrays[2 * at + 1], at % 2 ? 24 : 48, p->bit);
        }
        if (!planted || round % 4) {
            WORKER_OK(w, tn_kv_check_drift(w->kv, round, p->count, items));
            continue;
        }
        WORKER_FAILS(w, tn_kv_check_drift(w->kv, round, p->count, items), TN_E_STATE);
        (void)snprintf(key, sizeof key, "round 4: key \"%s\"", names[p->key]);
        (void)snprintf(rank, sizeof rank, w->workers > 2 ? "worker %u differs" : "differs from worker to",
                       p->rank);
        WORKER_TRUE(w, tn_error_number() == 1402);
        WORKER_TRUE(w, strstr(tn_error_text(), key));
        WORKER_TRUE(w, strstr(tn_error_text(), rank));
    }
    for (uint32_t i = 0; i < 2 * KEYS; i++)
        tn_array_release(arrays[i]);
}

static void each_place(void **state)
{
    const char *const settings[] = {"kvstore.drift_check=4", NULL};
    const uint32_t counts[] = {1, 2, 3, KEYS};

    (void)state;
    for (uint32_t workers = 2; workers < 5; workers++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (uint32_t key = 0; key < counts[i]; key++) {
                const job_options o = {.workers = workers, .servers = 2, .settings = settings};
                plant p = {.count = counts[i],
                           .key = key,
                           .second = key + 1 < counts[i] && key % 2 ? counts[i] - 1 : KEYS,
                           .rank = (key + workers) % workers,
                           .bit = (key * 7 + workers) % 16,
                           .device = key % 3 == 2};

                job_run(&o, "dist_sync", store_finds, &p);
            }
}

/* Numbers of optimizers are not touched by it, nor is the file of its states. */
static void beside_an_optimizer(worker *w)
{
    const tn_kv_item key = {.name = "w"};
    char path[SCRATCH_PATH_BYTES + 8];
    tn_array *a = worker_array(w, TN_F32, 2, small_shape, 1);
    const tn_kv_item it = {.name = "w", .value_count = 1, .values = &a};

    (void)snprintf(path, sizeof path, "%s.%u", (const char *)w->arg, w->rank);
    worker_init(w, "w", TN_F32, 2, small_shape, 8);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", LIST("lr", "0.5", "momentum", "0.5")));
    for (uint64_t round = 0; round < 3; round++) {
        WORKER_OK(w, tn_kv_check_drift(w->kv, round, 1, &it));
        WORKER_OK(w, tn_kv_set_param(w->kv, &key, "lr_mult", 1 + (double)round));
        worker_push(w, "w", a);
    }
    WORKER_OK(w, tn_kv_save_states(w->kv, path));
    WORKER_OK(w, tn_kv_load_states(w->kv, path));
    WORKER_OK(w, tn_kv_check_drift(w->kv, 3, 1, &it));
    tn_array_release(a);
}

static void with_servers_that_update(void **state)
{
    const char *const settings[] = {"kvstore.drift_check=1", NULL};
    const job_options o = {.workers = 2, .servers = 2, .settings = settings};

    (void)state;
    job_run(&o, "dist_sync", beside_an_optimizer, (void *)(uintptr_t)scratch_path("states"));
}

static void wrong_lists(worker *w)
{
    tn_array *arrays[2 * KEYS], *rows = NULL;
    tn_kv_item items[KEYS], bad = {.name = "x"};

    arrays_make(w, arrays, items);
    WORKER_OK(w, tn_kv_check_drift(w->kv, 0, 0, NULL));
    WORKER_FAILS(w, tn_kv_check_drift(w->kv, 0, 1, &bad), TN_E_ARG);
    WORKER_FAILS(w, tn_kv_check_drift(w->kv, 0, 2 + w->rank, items), TN_E_ARG);
    WORKER_TRUE(w, strstr(tn_error_text(), "this one"));
    WORKER_OK(w, tn_array_to_storage(w->ctx, arrays[0], TN_STORAGE_ROW_SPARSE, &rows));
    if (w->rank == 0)
        items[1].values = &rows, items[1].value_count = 1;
    WORKER_FAILS(w, tn_kv_check_drift(w->kv, 0, 2, items), w->rank ? TN_E_STATE : TN_E_UNSUPPORTED);
    tn_array_release(rows);
    for (uint32_t i = 0; i < 2 * KEYS; i++)
        tn_array_release(arrays[i]);
}

static void lists_that_differ(void **state)
{
    const char *const settings[] = {"kvstore.drift_check=2", NULL};
    const job_options o = {.workers = 2, .servers = 1, .settings = settings};

    (void)state;
    job_run(&o, "dist_sync", wrong_lists, NULL);
}

/* ---- trainers ---------------------------------------------------------------------------------------- */

#define STEPS 12

typedef struct course {
    const char *update;
    int64_t every, flipped; /* before this step */
    int64_t found[JOB_WORKERS_MAX];
    char text[JOB_WORKERS_MAX][512];
} course;

static tn_app *app_open(const char *const *more)
{
    char plugins[4096];
    const char *settings[16] = {plugins, "plugins.trust=off", "run.deterministic=threads", "engine.threads=1",
                                "kvstore.type=dist_sync"};
    size_t n = 5;
    tn_app *app;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    while (*more)
        settings[n++] = *more++;
    app = tn_app_open(.name = "test", .settings = settings, .no_environment = 1);
    if (!app || !tn_app_ok(app))
        abort();
    return app;
}

static void trains(worker *w)
{
    static const int64_t rows[] = {4, 3}, classes[] = {4};
    const float values[12] = {1, 2, 3, (float)w->rank}, labels[4] = {0, 1, 0, 1};
    course *c = w->arg;
    char every[48];
    tn_app *app;
    tn_net *net;
    tn_array *x, *y;
    tn_trainer *t;

    (void)snprintf(every, sizeof every, "kvstore.drift_check=%lld", (long long)c->every);
    app = app_open(LIST(every, c->update));
    net = tn_net_new(app, .name = "n");
    tn_net_dense(net, .units = 5, .activation = "relu");
    tn_net_dense(net, .units = 2);
    tn_net_init(net, .seed = w->rank + 1, .shape = {4, 3});
    t = tn_trainer_new(net, .lr = 0.1, .momentum = 0.9);
    x = tn_app_array(app, 2, rows, values);
    y = tn_app_array(app, 1, classes, labels);
    c->found[w->rank] = -1;
    for (int64_t step = 0; step < STEPS && tn_app_ok(app); step++) {
        if (step == c->flipped && w->rank == 1)
            flip(w, tn_net_param(net, tn_net_param_name(net, 2)), 40, 0);
        tn_app_record(app);
        tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, x), y));
        tn_trainer_step(t, 4 * (int64_t)w->workers);
        if (!tn_app_ok(app))
            c->found[w->rank] = step;
    }
    (void)snprintf(c->text[w->rank], sizeof c->text[w->rank], "%s", tn_app_error(app));
    (void)tn_app_close(app);
}

/* Parameters that workers update keep the bit; what servers update is as they sent it in the round before. */
static void within_n_rounds(void **state)
{
    static const course rows[] = {{.update = "kvstore.update=false", .every = 1, .flipped = 5},
                                  {.update = "kvstore.update=false", .every = 4, .flipped = 5},
                                  {.update = "kvstore.update=false", .every = 5, .flipped = 5},
                                  {.update = "kvstore.update=true", .every = 1, .flipped = 7},
                                  {.update = "kvstore.update=true", .every = 3, .flipped = 6},
                                  {.update = "kvstore.update=false", .every = 2, .flipped = STEPS},
                                  {.update = "kvstore.update=true", .every = 1, .flipped = STEPS}};
    const job_options o = {.workers = 3, .servers = 2};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        course c = rows[i];
        const int64_t at = (c.flipped + c.every - 1) / c.every * c.every;
        char text[64];

        job_run(&o, NULL, trains, &c);
        (void)snprintf(text, sizeof text, "round %lld: key \"n_dense1_weight\" of worker 1 differs",
                       (long long)at);
        for (uint32_t w = 0; w < o.workers; w++) {
            if (c.found[w] != (c.flipped < STEPS ? at : -1) ||
                (c.flipped < STEPS && !strstr(c.text[w], text)))
                fail_msg("row %zu, worker %u: step %lld: %s, not %s", i, w, (long long)c.found[w], c.text[w],
                         text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_place),
        cmocka_unit_test(with_servers_that_update),
        cmocka_unit_test(lists_that_differ),
        cmocka_unit_test(within_n_rounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
