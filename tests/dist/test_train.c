/*
 * Trainings of nn by several workers: the same bits on all of them, and those of one process over as many
 * devices; data that is uneven; files; trainers and modules of programs.
 */
#include "dist/job.h"

#include <stdio.h>
#include <unistd.h>

#include "support/scratch.h"
#include "tenon/nn.h"
#include "tenon/nn_module.h"

static tn_app *app_open(const char *const *more)
{
    char plugins[4096], data[4096];
    const char *settings[32] = {plugins, data, "plugins.trust=off", "run.deterministic=threads", "engine.threads=1"};
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
    if (!(t = tn_train_open_(app, &o)) || !tn_train_run(t) || !tn_net_sha256(tn_train_net(t), sha)) {
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
        {"sgd", "cosine", "kvstore.update=true", 0},
        {"adam", NULL, "kvstore.update=true", 0},
        {"sgd", "cosine", "kvstore.update=false", 0},
        {"sgd", NULL, "kvstore.update=true", 1},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_one_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
