/* Updates against numbers computed here, schedules, losses, meters. */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define N 6

typedef struct fixture {
    tn_app *app;
    tn_net *net;
    tn_array *x, *y;
} fixture;

/* One dense layer 3 -> 2 without bias: the gradient is asked from the core, the update is computed here. */
static fixture fixture_open(const char *setting)
{
    const int64_t in[2] = {4, 3}, out[2] = {4, 2};
    fixture f = {.app = nn_open(setting, NULL)};

    f.net = tn_net_new(f.app);
    tn_net_dense(f.net, .units = 2, .no_bias = 1);
    tn_net_init(f.net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {4, 3});
    f.x = nn_array(f.app, 2, in, 1);
    f.y = nn_array(f.app, 2, out, 2);
    return f;
}

static void gradient(const fixture *f, float out[N])
{
    tn_app_record(f->app);
    tn_app_backward(f->app, tn_loss_l2(f->app, tn_net_forward(f->net, f->x), f->y));
    assert_int_equal(nn_read(f->app, tn_net_param_grad(f->net, "0.weight"), out, N), N);
}

static void weights(const fixture *f, float out[N])
{
    assert_int_equal(nn_read(f->app, tn_net_param(f->net, "0.weight"), out, N), N);
}

static void near(const float *have, const double *wanted)
{
    for (int i = 0; i < N; i++)
        if (fabs((double)have[i] - wanted[i]) > 2e-6) {
            print_error("weight %d is %.9g, expected %.9g\n", i, (double)have[i], wanted[i]);
            fail();
        }
}

static void test_sgd(void **state)
{
    static const struct {
        const char *optimizer;
        double momentum, wd, clip;
    } rows[] = {{"sgd", 0, 0, 0},
                {"sgd", 0, 0.1, 0},
                {"sgd", 0.9, 0.1, 0},
                {"sgd", 0.9, 0.1, 0.02},
                {"nag", 0.9, 0.1, 0}};

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        fixture f = fixture_open(NULL);
        tn_trainer *t = tn_trainer_new(f.net, .optimizer = rows[r].optimizer, .lr = 0.3,
                                       .momentum = rows[r].momentum, .wd = rows[r].wd, .clip = rows[r].clip);
        double w[N], m[N] = {0};
        float g[N], now[N];

        weights(&f, now);
        for (int i = 0; i < N; i++)
            w[i] = (double)now[i];
        for (int step = 0; step < 4; step++) {
            gradient(&f, g);
            for (int i = 0; i < N; i++) {
                double d = (double)g[i] / 4;

                if (rows[r].clip > 0)
                    d = fmin(fmax(d, -rows[r].clip), rows[r].clip);
                d += rows[r].wd * w[i];
                if (!strcmp(rows[r].optimizer, "nag")) {
                    m[i] = rows[r].momentum * m[i] + d;
                    w[i] -= 0.3 * (rows[r].momentum * m[i] + d);
                } else {
                    m[i] = rows[r].momentum * m[i] - 0.3 * d;
                    w[i] += m[i];
                }
            }
            tn_trainer_step(t, 4);
            weights(&f, now);
            near(now, w);
        }
        assert_int_equal(tn_trainer_steps(t), 4);
        nn_close(f.app);
    }
}

static void test_adam(void **state)
{
    fixture f = fixture_open(NULL);
    tn_trainer *t = tn_trainer_new(f.net, .optimizer = "adam", .lr = 0.01, .wd = 0.1);
    double w[N], m[N] = {0}, v[N] = {0};
    float g[N], now[N];

    (void)state;
    weights(&f, now);
    for (int i = 0; i < N; i++)
        w[i] = (double)now[i];
    for (int step = 1; step <= 5; step++) {
        const double lr = 0.01 * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step));

        gradient(&f, g);
        for (int i = 0; i < N; i++) {
            const double d = (double)g[i] / 4 + 0.1 * w[i];

            m[i] = 0.9 * m[i] + 0.1 * d;
            v[i] = 0.999 * v[i] + 0.001 * d * d;
            w[i] -= lr * m[i] / (sqrt(v[i]) + 1e-8);
        }
        tn_trainer_step(t, 4);
        weights(&f, now);
        near(now, w);
    }
    nn_close(f.app);
}

static void test_factors_and_norm(void **state)
{
    fixture f = fixture_open(NULL);
    tn_trainer *t = tn_trainer_new(f.net, .lr = 0.3, .wd = 0.1, .clip_norm = 0.01);
    double w[N], norm = 0;
    float g[N], now[N];

    (void)state;
    tn_net_multiply(f.net, ".weight", 0.5, 2);
    weights(&f, now);
    gradient(&f, g);
    for (int i = 0; i < N; i++)
        norm += (double)g[i] / 4 * (double)g[i] / 4;
    norm = sqrt(norm);
    assert_true(norm > 0.01);
    for (int i = 0; i < N; i++)
        w[i] = (double)now[i] - 0.15 * ((double)g[i] / 4 * 0.01 / norm + 0.2 * (double)now[i]);
    tn_trainer_step(t, 4);
    weights(&f, now);
    near(now, w);
    nn_close(f.app);
}

static void test_states(void **state)
{
    static const char *const names[] = {"sgd",          "adam",   "nag",   "signum",   "rmsprop", "adagrad",
                                        "adadelta",     "adamax", "nadam", "dcasgd",   "lars",    "lbsgd",
                                        "groupadagrad", "lans",   "adamw", "adabelief"};
    char *folder = nn_folder(), path[512];
    float a[N], b[N], g[N];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/states", folder);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        fixture f = fixture_open(NULL);
        const char *name = names[k];
        tn_trainer *t =
            tn_trainer_new(f.net, .optimizer = name, .lr = 0.1, .momentum = 0.9, .batch_scale = 2);
        tn_trainer *u =
            tn_trainer_new(f.net, .optimizer = name, .lr = 0.1, .momentum = 0.9, .batch_scale = 2);
        tn_array *weight = tn_net_param(f.net, "0.weight");

        for (int i = 0; i < 3; i++) {
            gradient(&f, g);
            tn_trainer_step(t, 4);
        }
        tn_trainer_save(t, path);
        tn_trainer_load(u, path);
        assert_int_equal(tn_trainer_steps(u), 3);
        weights(&f, b);
        gradient(&f, g);
        tn_trainer_step(t, 4);
        weights(&f, a);
        assert_int_equal(tn_array_write(weight, b, sizeof b),
                         TN_OK); /* the same step once more, by the other */
        gradient(&f, g);
        tn_trainer_step(u, 4);
        weights(&f, b);
        assert_memory_equal(a, b, sizeof a);
        nn_close(f.app);
    }
    {
        fixture f = fixture_open(NULL);
        tn_trainer *plain = tn_trainer_new(f.net, .optimizer = "adam");

        tn_trainer_load(plain, "/nowhere/states");
        nn_close_failed(f.app, "/nowhere/states", 2);
    }
    nn_folder_remove(folder);
}

static void test_refused(void **state)
{
    static const struct {
        tn_trainer_options o;
        const char *text;
    } bad[] = {
        {{.optimizer = "sdg"}, "did you mean \"sgd\""},
        {{.schedule = "cosin", .steps = 1}, "did you mean \"cosine\""},
        {{.lr = -1}, ".lr is -1"},
        {{.momentum = 1.5}, ".momentum"},
        {{.wd = (double)INFINITY}, ".wd"},
        {{.lr = (double)NAN}, ".lr"},
        {{.schedule = "cosine"}, "needs .steps"},
        {{.schedule = "poly"}, "needs .steps"},
        {{.schedule = "multifactor"}, "needs .milestones"},
        {{.schedule = "multifactor", .milestones = {-3}}, "needs .milestones"},
        {{.schedule = "multifactor", .milestones = {3, 3}}, "not rising, at 3"},
        {{.schedule = "multifactor", .milestones = {3, 9, -1}}, "not rising, at -1"},
        {{.power = -1}, ".power"},
        {{.gamma1 = 1.5}, ".gamma1"},
        {{.gamma2 = (double)NAN}, ".gamma2"},
        {{.rho = -0.5}, ".rho"},
        {{.clip_weights = -1}, ".clip_weights"},
        {{.wd_lh = (double)INFINITY}, ".wd_lh"},
        {{.schedule_decay = -1}, ".schedule_decay"},
        {{.lamda = -1}, ".lamda"},
        {{.optimizer = "adagrat"}, "did you mean \"adagrad\""},
        {{.optimizer = ""}, "unknown optimizer"},
        {{.warmup = -5}, ".warmup"},
        {{.eta = -1}, ".eta"},
        {{.batch_scale = -2}, ".batch_scale"},
        {{.warmup_epochs = -2}, ".warmup_epochs"},
        {{.epoch_updates = -1}, ".epoch_updates"},
        {{.rescale_grad = (double)INFINITY}, ".rescale_grad"},
        {{.rescale_grad = (double)NAN}, ".rescale_grad"},
        {{.begin_num_update = -1}, ".begin_num_update"},
        {{.optimizer = "lbsgd", .strategy = "powder2"}, "did you mean \"power2\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f = fixture_open(NULL);
        tn_trainer_options o = bad[i].o;

        o.struct_size = sizeof o;
        assert_null(tn_trainer_new_(f.net, &o));
        nn_close_failed(f.app, bad[i].text, 2);
    }
    fixture f = fixture_open(NULL);

    tn_trainer_step(tn_trainer_new(f.net), 0);
    nn_close_failed(f.app, "a batch of 0", 2);
}

/* A struct of an earlier release ends sooner: what it does not have is 0. */
static void test_short_struct(void **state)
{
    fixture f = fixture_open(NULL);
    tn_trainer_options o = {.struct_size = offsetof(tn_trainer_options, momentum),
                            .optimizer = "sgd",
                            .lr = 0.25,
                            .momentum = 17,
                            .schedule = "nonsense"};

    (void)state;
    assert_true(tn_trainer_lr(tn_trainer_new_(f.net, &o)) == 0.25);
    nn_close(f.app);
}

static void test_schedules(void **state)
{
    const tn_trainer_options cosine = {.struct_size = sizeof cosine,
                                       .lr = 0.1,
                                       .lr_end = 0.01,
                                       .schedule = "cosine",
                                       .steps = 110,
                                       .warmup = 10};
    const tn_trainer_options factor = {.struct_size = sizeof factor,
                                       .lr = 1,
                                       .schedule = "factor",
                                       .factor = 0.5,
                                       .every = 3,
                                       .lr_end = 0.2};
    const tn_trainer_options flat = {.struct_size = sizeof flat, .lr = 0.3, .warmup = 4, .lr_begin = 0.1};
    static const double steps[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2};

    (void)state;
    assert_true(fabs(tn_schedule_lr(&cosine, 0) - 0.01) < 1e-12); /* a tenth of the way */
    assert_true(fabs(tn_schedule_lr(&cosine, 9) - 0.1) < 1e-12);
    assert_true(fabs(tn_schedule_lr(&cosine, 59) - 0.055) < 1e-12);
    assert_true(fabs(tn_schedule_lr(&cosine, 109) - 0.01) < 1e-12);
    assert_true(fabs(tn_schedule_lr(&cosine, 5000) - 0.01) < 1e-12);
    for (int64_t i = 1; i < 109; i++) {
        assert_true(i >= 10 || tn_schedule_lr(&cosine, i) > tn_schedule_lr(&cosine, i - 1));
        assert_true(i < 10 || tn_schedule_lr(&cosine, i) < tn_schedule_lr(&cosine, i - 1));
    }
    for (int64_t i = 0; i < 11; i++)
        assert_true(fabs(tn_schedule_lr(&factor, i) - steps[i]) < 1e-12);
    assert_true(fabs(tn_schedule_lr(&flat, 0) - 0.15) < 1e-12);
    assert_true(fabs(tn_schedule_lr(&flat, 3) - 0.3) < 1e-12);
    assert_true(isnan(tn_schedule_lr(NULL, 3)));
}

/* ---- one call for many parameters ---- */

enum { LAYERS = 5, PARAMS = 2 * LAYERS, NUMBERS_MAX = 1024 };

typedef struct aggregate_case {
    const char *optimizer;
    double momentum, wd, clip, clip_norm;
    bool many; /* it has an operator for many */
} aggregate_case;

static uint64_t calls_of(tn_app *app)
{
    tn_stats s = {.struct_size = sizeof s};

    assert_int_equal(tn_wait_all(tn_app_ctx(app)), TN_OK);
    assert_int_equal(tn_ctx_stats(tn_app_ctx(app), &s), TN_OK);
    return s.pushed + s.inlined + s.fast_path;
}

/* Parameters after some steps of a schedule; `calls`: how many the last step made, with engine naive: where
 * there are workers, memory that is given back may be an operation more. */
static size_t aggregate_run(const aggregate_case *c, const char *engine, const char *setting, bool hybrid,
                            float *out, uint64_t *calls)
{
    const int64_t shape[2] = {4, 3}, labels[2] = {4, 2 + LAYERS};
    tn_app *app = nn_open(engine, setting, NULL);
    tn_net *net = tn_net_new(app);
    tn_array *y = nn_array(app, 2, labels, 3), *x;
    tn_trainer *t;
    size_t count;

    for (int i = 0; i < LAYERS; i++)
        tn_net_dense(net, .units = 3 + i, .activation = "tanh");
    tn_net_init(net, .seed = 4, .shape = {4, 3});
    if (hybrid)
        tn_net_hybridize(net, .static_alloc = 1);
    tn_net_multiply(net, ".bias", 2, 0);
    t = tn_trainer_new(net, .optimizer = c->optimizer, .lr = 0.3, .momentum = c->momentum, .wd = c->wd,
                       .clip = c->clip, .clip_norm = c->clip_norm, .schedule = "cosine", .steps = 8);
    for (int step = 0; step < 6; step++) {
        tn_app_record(app);
        x = nn_array(app, 2, shape, 7 + (uint64_t)step);
        tn_app_backward(app, tn_loss_l2(app, tn_net_forward(net, x), y));
        *calls = calls_of(app);
        tn_trainer_step(t, 4);
        *calls = calls_of(app) - *calls;
    }
    count = nn_read_params(app, net, out, NUMBERS_MAX);
    nn_close(app);
    return count;
}

/* However many parameters a call updates, the bits are those of single calls. */
static void test_aggregate(void **state)
{
    static const aggregate_case cases[] = {
        {"sgd", 0, 0, 0, 0, true},        {"sgd", 0, 0.1, 0.02, 0, true}, {"sgd", 0.9, 0.1, 0, 0, true},
        {"sgd", 0.9, 0.1, 0.02, 0, true}, {"nag", 0.9, 0.1, 0, 0, false}, {"nag", 0, 0.1, 0, 0, true},
        {"adam", 0, 0.1, 0, 0, false},
    };
    static const struct {
        const char *setting;
        uint64_t calls; /* for PARAMS parameters */
    } rows[] = {{NULL, 1},
                {"optimizer.aggregate_num=4", 3},
                {"optimizer.aggregate_num=5", 2},
                {"optimizer.aggregate_num=9", 2},
                {"optimizer.aggregate_num=4096", 1}};
    const char *const naive = "engine.type=naive";

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float single[NUMBERS_MAX], many[NUMBERS_MAX];
        uint64_t calls;
        const size_t count =
            aggregate_run(&cases[i], naive, "optimizer.aggregate_num=1", false, single, &calls);

        assert_int_equal(calls, PARAMS);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            uint64_t of_workers;

            assert_int_equal(aggregate_run(&cases[i], naive, rows[r].setting, r % 2, many, &calls), count);
            assert_memory_equal(single, many, count * sizeof *single);
            assert_int_equal(calls, cases[i].many ? rows[r].calls : PARAMS);
            assert_int_equal(
                aggregate_run(&cases[i], "engine.workers=2", rows[r].setting, r % 2, many, &of_workers),
                count);
            assert_memory_equal(single, many, count * sizeof *single);
        }
    }
}

/* Values of a net whose data types alternate; a step is a call for each of the two, or for each parameter. */
static size_t types_run(const char *setting, float *out, uint64_t *calls)
{
    const int64_t shape[2] = {4, 8};
    tn_app *app = nn_open("engine.type=naive", setting, NULL);
    tn_net *net = tn_net_new(app);
    tn_array *half = NULL;
    tn_trainer *t;
    size_t count;

    for (int i = 0; i < 3; i++) {
        tn_net_dense(net, .units = 3 + i);
        tn_net_batchnorm(net);
    }
    tn_net_cast(net, "float16");
    tn_net_init(net, .seed = 4, .shape = {4, 8});
    t = tn_trainer_new(net, .optimizer = "sgd", .lr = 0.3, .momentum = 0.9);
    assert_int_equal(tn_array_cast(tn_app_ctx(app), nn_array(app, 2, shape, 7), TN_F16, &half), TN_OK);
    for (int step = 0; step < 4; step++) {
        tn_app_record(app);
        tn_app_backward(app, tn_net_forward(net, half));
        *calls = calls_of(app);
        tn_trainer_step(t, 4);
        *calls = calls_of(app) - *calls;
    }
    count = nn_read_params(app, net, out, NUMBERS_MAX);
    tn_array_release(half);
    nn_close(app);
    return count;
}

/* Parameters of one data type are updated together wherever they lie among the others. */
static void test_aggregate_types(void **state)
{
    float single[NUMBERS_MAX], many[NUMBERS_MAX];
    uint64_t calls;
    const size_t count = types_run("optimizer.aggregate_num=1", single, &calls);

    (void)state;
    assert_true(count > 0);
    assert_int_equal(calls, 12);
    assert_int_equal(types_run(NULL, many, &calls), count);
    assert_int_equal(calls, 2);
    assert_memory_equal(single, many, count * sizeof *single);
    assert_int_equal(types_run("optimizer.aggregate_num=4", many, &calls), count);
    assert_int_equal(calls, 4);
    assert_memory_equal(single, many, count * sizeof *single);
}

/* An optimizer by formulas makes no plan after the first steps either, and lets go of what it computes. */
static void test_formulas_steady(void **state)
{
    static const char *const names[] = {"adagrad",      "adadelta", "adamax", "nadam",
                                        "dcasgd",       "lars",     "lbsgd",  "sgld",
                                        "groupadagrad", "lans",     "adamw",  "adabelief"};

    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        fixture f = fixture_open(NULL);
        tn_trainer *t =
            tn_trainer_new(f.net, .optimizer = names[k], .clip = 0.1, .schedule = "poly", .steps = 90);
        tn_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
        const size_t mark = tn_app_mark(f.app);
        float g[N];

        for (int i = 0; i < 50; i++) {
            if (i == 5)
                assert_int_equal(tn_ctx_stats(tn_app_ctx(f.app), &before), TN_OK);
            gradient(&f, g);
            tn_trainer_step(t, 4);
            tn_app_release(f.app, mark);
        }
        assert_int_equal(tn_ctx_stats(tn_app_ctx(f.app), &after), TN_OK);
        assert_int_equal(before.misses, after.misses);
        assert_int_equal(before.arrays, after.arrays);
        nn_close(f.app);
    }
}

/* A step of sgld is half that of sgd, and noise of variance lr that follows from the seed. */
static void test_noise(void **state)
{
    enum { COUNT = 40 * 50 };
    static float first[COUNT], before[COUNT], after[COUNT];

    (void)state;
    for (int run = 0; run < 2; run++) {
        tn_app *app = nn_open(NULL, NULL);
        tn_net *net = tn_net_new(app);
        tn_trainer *t;
        double sum = 0, squares = 0;

        tn_net_dense(net, .units = 40, .no_bias = 1);
        tn_net_init(net, .seed = 2, .shape = {1, 50});
        t = tn_trainer_new(net, .optimizer = "sgld", .lr = 0.04, .wd = 1);
        assert_int_equal(tn_random_seed(tn_app_ctx(app), 5, NULL), TN_OK);
        assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), before, COUNT), COUNT);
        tn_trainer_step(t, 1); /* of no gradient */
        assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), after, COUNT), COUNT);
        for (int i = 0; i < COUNT; i++) {
            const double noise = (double)after[i] - 0.98 * (double)before[i];

            sum += noise;
            squares += noise * noise;
        }
        assert_true(fabs(sum / COUNT) < 4 * 0.2 / sqrt(COUNT));
        assert_true(fabs(squares / COUNT / 0.04 - 1) < 4 * sqrt(2.0 / COUNT));
        if (run)
            assert_memory_equal(first, after, sizeof after);
        memcpy(first, after, sizeof after);
        nn_close(app);
    }
}

/* A bias is no matrix; weight decay is none of its matters. */
static void test_matrices_alone(void **state)
{
    (void)state;
    for (int wd = 0; wd < 2; wd++) {
        tn_app *app = nn_open(NULL, NULL);
        tn_net *net = tn_net_new(app);

        tn_net_dense(net, .units = 2, .no_bias = wd);
        tn_net_init(net, .seed = 2, .shape = {4, 3});
        tn_trainer_step(tn_trainer_new(net, .optimizer = "groupadagrad", .wd = wd), 1);
        nn_close_failed(app, "takes matrices and no weight decay", 1);
    }
}

/* No call site misses its plan after the first steps, whatever the schedule does. */
static void test_no_misses(void **state)
{
    fixture f = fixture_open(NULL);
    tn_trainer *t = tn_trainer_new(f.net, .optimizer = "adam", .lr = 0.1, .schedule = "cosine", .steps = 200,
                                   .warmup = 20);
    tn_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    const size_t mark = tn_app_mark(f.app);
    float g[N];

    (void)state;
    for (int i = 0; i < 200; i++) {
        if (i == 5)
            assert_int_equal(tn_ctx_stats(tn_app_ctx(f.app), &before), TN_OK);
        gradient(&f, g);
        tn_trainer_step(t, 4);
        tn_app_release(f.app, mark);
    }
    assert_int_equal(tn_ctx_stats(tn_app_ctx(f.app), &after), TN_OK);
    assert_int_equal(before.misses, after.misses);
    assert_int_equal(before.signatures, after.signatures);
    assert_int_equal(before.arrays, after.arrays);
    nn_close(f.app);
}

static void test_losses_and_meters(void **state)
{
    const int64_t in[2] = {2, 3}, labels[1] = {2};
    const float x[6] = {1, 2, 4, -1, 0.5f, 0.25f}, y[2] = {2, 0}, z[6] = {0, 2, 5, 1, 0.5f, 0};
    tn_app *app = nn_open(NULL);
    tn_array *a = tn_app_array(app, 2, in, x), *b = tn_app_array(app, 1, labels, y);
    tn_array *c = tn_app_array(app, 2, in, z);
    tn_meter *accuracy = tn_meter_new(app, "accuracy"), *mean = tn_meter_new(app, "loss");
    float out[2];
    double e[2];

    (void)state;
    e[0] = log(exp(1) + exp(2) + exp(4)) - 4;
    e[1] = log(exp(-1) + exp(0.5) + exp(0.25)) + 1;
    assert_int_equal(nn_read(app, tn_loss_softmax_ce(app, a, b), out, 2), 2);
    assert_true(fabs((double)out[0] - e[0]) < 1e-6 && fabs((double)out[1] - e[1]) < 1e-6);
    assert_int_equal(nn_read(app, tn_loss_l2(app, a, c), out, 2), 2);
    assert_true(fabs((double)out[0] - 1.0 / 3) < 1e-6 && fabs((double)out[1] - 4.0625 / 6) < 1e-6);
    assert_int_equal(nn_read(app, tn_loss_l1(app, a, c), out, 2), 2);
    assert_true(fabs((double)out[0] - 2.0 / 3) < 1e-6 && fabs((double)out[1] - 2.25 / 3) < 1e-6);
    for (int i = 0; i < 100; i++) { /* more than a meter keeps unread */
        tn_meter_add(accuracy, a, b);
        tn_meter_add(mean, tn_loss_l1(app, a, c), NULL);
    }
    assert_true(fabs(tn_meter_value(accuracy) - 0.5) < 1e-12);
    assert_true(fabs(tn_meter_value(mean) - (2.0 / 3 + 2.25 / 3) / 2) < 1e-6);
    tn_meter_reset(mean);
    assert_true(isnan(tn_meter_value(mean)));
    assert_true(tn_app_ok(app));
    assert_null(tn_loss_l2(app, a, b)); /* 6 numbers against 2 */
    assert_false(tn_app_ok(app));
    assert_int_equal(tn_app_close(app), 1);
}

/* Step counts of a file that no training has. */
static void bad_steps(void **state)
{
    static const int64_t counts[] = {-1, INT64_MIN, INT64_MAX, ((int64_t)1 << 60) + 1};
    const double real = 3; /* another type, of as many bytes */
    char *folder = nn_quick_folder(), path[512];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/steps", folder);
    for (size_t i = 0; i <= sizeof counts / sizeof *counts; i++) {
        const bool last = i == sizeof counts / sizeof *counts;
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app);
        tn_params *params = NULL;
        tn_array *steps = NULL;
        tn_trainer *t;

        tn_net_dense(net, .units = 2);
        tn_net_init(net, .shape = {1, 2});
        t = tn_trainer_new(net, .lr = 0.1); /* sgd: no states */
        assert_int_equal(tn_array_from(tn_app_ctx(app), last ? TN_F64 : TN_I64, 1, (int64_t[]){1},
                                       last ? (const void *)&real : &counts[i], &steps),
                         TN_OK);
        assert_int_equal(tn_params_create(&params), TN_OK);
        assert_int_equal(tn_params_add(params, "steps", steps), TN_OK);
        assert_int_equal(tn_params_save(params, path), TN_OK);
        tn_params_destroy(params);
        tn_array_release(steps);
        tn_trainer_load(t, path);
        nn_close_failed(app, "a trainer after", 4);
    }
    nn_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_steps),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_factors_and_norm),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_short_struct),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_aggregate),
        cmocka_unit_test(test_aggregate_types),
        cmocka_unit_test(test_no_misses),
        cmocka_unit_test(test_formulas_steady),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_matrices_alone),
        cmocka_unit_test(test_losses_and_meters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
