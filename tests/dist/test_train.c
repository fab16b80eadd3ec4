/*
 * Trainings of nn by several workers: the same bits on all of them, and those of one process over as many
 * devices; data that is uneven; files; trainers and modules of programs.
 */
#include "dist/job.h"

#include <stdio.h>
#include <sys/stat.h>

#include "support/scratch.h"
#include "tenon/nn.h"
#include "tenon/nn_module.h"

static tn_app *app_open(const char *const *more)
{
    char plugins[4096], data[4096];
    const char *settings[32] = {plugins, data, "plugins.trust=off", "run.deterministic=threads",
                                "engine.threads=1"};
    size_t n = 5;
    tn_app *app;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    (void)snprintf(data, sizeof data, "data.path=%s/examples/data", getenv("TENON_TEST_SOURCE"));
    while (more && *more)
        settings[n++] = *more++;
    app = tn_app_open(.name = "test", .settings = settings, .no_environment = 1);
    if (!app || !tn_app_ok(app)) {
        print_error("%s\n", app ? tn_app_error(app) : "no app");
        abort();
    }
    return app;
}

typedef struct course { /* of a training */
    const char *settings[12];
    const char *const *local; /* of the reference; NULL: none */
    tn_train_options o;
    char reference[65];
    char sha[JOB_WORKERS_MAX][65];
    tn_train_info info[JOB_WORKERS_MAX];
} course;

static tn_net *net_of(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "n");

    tn_net_dense(net, .units = 32, .activation = "relu");
    tn_net_dense(net, .units = 10);
    return net;
}

static void train(tn_app *app, const tn_train_options *options, char sha[65], tn_train_info *info)
{
    tn_train_options o = *options;
    tn_train *t;

    o.struct_size = sizeof o;
    o.net = net_of(app);
    if (!(t = tn_train_open_(app, &o)) || !tn_train_run(t) != (o.event != NULL) ||
        !tn_net_sha256(tn_train_net(t), sha)) {
        print_error("%s\n", tn_app_error(app));
        abort();
    }
    info->struct_size = TN_SIZE(tn_train_info);
    tn_train_info_get(t, 1, info);
}

static void trains(worker *w)
{
    course *c = w->arg;
    tn_app *app = app_open(c->settings);

    train(app, &c->o, c->sha[w->rank], &c->info[w->rank]);
    WORKER_TRUE(w, tn_app_close(app) == 0);
}

static void course_run(course *c, const job_options *o)
{
    tn_train_info info;
    tn_app *app;

    job_run(o, NULL, trains, c);
    for (uint32_t i = 0; i < o->workers; i++) {
        assert_string_equal(c->sha[i], c->sha[0]);
        assert_int_equal(c->info[i].rank, i);
        assert_int_equal(c->info[i].workers, o->workers);
        assert_int_equal(c->info[i].step, c->info[0].step);
    }
    if (!c->local)
        return;
    app = app_open(c->local);
    train(app, &c->o, c->reference, &info);
    assert_int_equal(tn_app_close(app), 0);
    assert_string_equal(c->sha[0], c->reference);
    assert_int_equal(c->info[0].step, info.step);
}

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Rates that change from step to step reach the servers; what has no operator there is updated here. */
static void same_bits_as_one_process(void **state)
{
    static const struct {
        const char *optimizer, *schedule, *update;
        double clip_norm;
    } rows[] = {
        {"sgd", "cosine", "kvstore.update=true", 0},  {"adam", NULL, "kvstore.update=true", 0},
        {"sgd", "cosine", "kvstore.update=false", 0}, {"sgd", NULL, "kvstore.update=true", 1},
        {"adagrad", NULL, "kvstore.update=true", 0},
    };
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 65536};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        course c = {.settings = {"kvstore.type=dist_sync", "run.seed=42", rows[i].update},
                    .local = SETTINGS("device.default=cpu:0,cpu:1", "run.seed=42", rows[i].update),
                    .o = {.data = "digits",
                          .valid = "none",
                          .epochs = 1,
                          .batch = 64,
                          .momentum = strcmp(rows[i].optimizer, "sgd") ? 0 : 0.9,
                          .lr = 0.01,
                          .wd = 0.001,
                          .optimizer = rows[i].optimizer,
                          .schedule = rows[i].schedule,
                          .clip_norm = rows[i].clip_norm}};

        course_run(&c, &o);
    }
}

/* 1437 images: worker 0 has 718, worker 1 has 719; batches of 359 are 2 and 3. */
static void uneven_data_ends(void **state)
{
    static const struct {
        const char *policy;
        uint32_t uneven;
        int64_t steps[2];
    } rows[] = {{"kvstore.uneven=pad", 0, {6, 6}},
                {"kvstore.uneven=drop", 1, {4, 4}},
                {"kvstore.uneven=join", 2, {4, 6}}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const job_options o = {.workers = 2, .servers = 2, .uneven = rows[i].uneven};
        course c = {.settings = {"kvstore.type=dist_sync", rows[i].policy},
                    .o = {.data = "digits", .valid = "none", .epochs = 2, .batch = 359, .lr = 0.01}};

        job_run(&o, NULL, trains, &c);
        assert_string_equal(c.sha[0], c.sha[1]);
        for (int w = 0; w < 2; w++)
            assert_int_equal(c.info[w].step, rows[i].steps[w]);
    }
}

/* Each goes at its own pace; all are right most of the time in the end. */
static void without_rounds(void **state)
{
    const job_options o = {.workers = 4, .servers = 2, .part_bytes = 65536, .async = true};
    course c = {.settings = {"kvstore.type=dist_async"},
                .o = {.data = "digits", .epochs = 10, .batch = 32, .lr = 0.05, .momentum = -1}};

    (void)state;
    job_run(&o, NULL, trains, &c);
    for (uint32_t i = 0; i < o.workers; i++)
        assert_true(c.info[i].valid_accuracy > 0.7);
}

/* ---- files ------------------------------------------------------------------------------------------- */

static int32_t stops(void *arg, int32_t kind, tn_train *t)
{
    (void)arg;
    (void)t;
    return kind == TN_TRAIN_EPOCH;
}

/* Two epochs, or one and one more by new processes, with the states that servers had: the same bits. */
static void goes_on(void **state)
{
    static const char *const optimizers[] = {"sgd", "adam"};
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 65536};

    (void)state;
    for (int i = 0; i < 2; i++) {
        char folder[SCRATCH_PATH_BYTES];
        course c = {.settings = {"kvstore.type=dist_sync"},
                    .o = {.data = "digits",
                          .valid = "none",
                          .epochs = 2,
                          .batch = 64,
                          .momentum = i ? 0 : 0.9,
                          .optimizer = optimizers[i],
                          .lr = 0.01}};
        char whole[65];

        (void)snprintf(folder, sizeof folder, "%s", scratch_path(optimizers[i]));
        assert_int_equal(mkdir(folder, 0777), 0);
        course_run(&c, &o);
        memcpy(whole, c.sha[0], sizeof whole);
        c.o.event = stops;
        c.o.checkpoint = folder;
        course_run(&c, &o);
        assert_true(strcmp(c.sha[0], whole) != 0);
        c.o.event = NULL;
        c.o.resume = 1;
        course_run(&c, &o);
        assert_int_equal(c.info[1].resumed_step, 12);
        assert_string_equal(c.sha[0], whole);
    }
}

/* ---- of a program ------------------------------------------------------------------------------------ */

/* A module and a trainer of a store that is given: w -= lr * (sum of gradients) / (samples of all). */
static void by_hand(worker *w)
{
    static const int64_t rows[] = {4, 3}, classes[] = {4};
    tn_app *app = app_open(SETTINGS("kvstore.type=dist_sync"));
    tn_array *x, *y, *loss;
    tn_trainer *t;
    float values[12], labels[4] = {0, 1, 0, 1};
    tn_kv *kv = NULL;
    char sha[65];
    tn_net *net = net_of(app);

    for (uint32_t i = 0; i < 12; i++)
        values[i] = (float)(i * (w->rank + 1) % 7) / 8;
    WORKER_OK(w, tn_kv_create(tn_app_ctx(app), "dist_sync", &kv));
    tn_net_init(net, .seed = w->rank + 1, .shape = {4, 3}); /* others than worker 0's */
    t = tn_trainer_new(net, .lr = 0.1, .optimizer = "adam", .store = kv);
    x = tn_app_array(app, 2, rows, values);
    y = tn_app_array(app, 1, classes, labels);
    for (int step = 0; step < 3; step++) {
        tn_app_record(app);
        loss = tn_loss_softmax_ce(app, tn_net_forward(net, x), y);
        tn_app_backward(app, loss);
        tn_trainer_step(t, 4 * w->workers);
    }
    WORKER_TRUE(w, tn_net_sha256(net, sha));
    memcpy(((course *)w->arg)->sha[w->rank], sha, sizeof sha);
    if (!tn_app_ok(app))
        worker_fail(w, __FILE__, __LINE__, "%s", tn_app_error(app));
    tn_kv_destroy(kv);
    WORKER_TRUE(w, tn_app_close(app) == 0);
}

static void given_store(void **state)
{
    const job_options o = {.workers = 3, .servers = 1};
    course c = {0};

    (void)state;
    job_run(&o, NULL, by_hand, &c);
    assert_string_equal(c.sha[0], c.sha[1]);
    assert_string_equal(c.sha[0], c.sha[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_one_process),
        cmocka_unit_test(uneven_data_ends),
        cmocka_unit_test(without_rounds),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(given_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
