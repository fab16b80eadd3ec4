/* What ends a training, and what it keeps: early stop and the best epoch, broken off anywhere and resumed
 * with the same bits; numbers that are not finite are found before anything is written. */
#include "nn/support.h"
#include "support/heard.h"
#include "support/runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EPOCHS 12

typedef struct watch {
    int64_t stop_at; /* step; 0: never */
    int saved;
    int64_t poison_at; /* step at which the weights are spoiled; 0: never */
    int64_t told;      /* diverged_epoch of the last epoch's event */
    float poison;      /* what the bias of class 4 is then; 0: infinite */
    tn_ctx *ctx;
} watch;

typedef struct result {
    int done;
    char hash[65], best[65];
    int64_t step, best_epoch, waited;
    double best_value;
    int32_t early;
} result;

static int32_t on_event(void *arg, int32_t kind, tn_train *train)
{
    watch *w = arg;
    tn_train_info i = {.struct_size = sizeof i};

    tn_train_info_get(train, 0, &i);
    w->saved += kind == TN_TRAIN_SAVED;
    return kind == TN_TRAIN_STEP && i.step == w->stop_at;
}

static tn_net *make(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "n");

    tn_net_dense(net, .units = 16, .activation = "tanh");
    tn_net_dropout(net, .rate = 0.1);
    tn_net_dense(net, .units = 10);
    return net;
}

static void best_hash(tn_app *app, const char *folder, char hash[65])
{
    char path[512];
    tn_params *params = NULL;

    (void)snprintf(path, sizeof path, "%s/m-best.params", folder);
    hash[0] = '\0';
    if (!access(path, F_OK) && !tn_params_load(tn_app_ctx(app), path, NULL, &params))
        assert_int_equal(tn_params_sha256(params, hash), TN_OK);
    tn_params_destroy(params);
}

/* One process: fresh or resumed, to step `stop_at`, or the end. */
static void run(const char *folder, int resume, int64_t stop_at, const char *what, result *r)
{
    tn_app *app = nn_open("run.deterministic=threads", "engine.threads=1", NULL);
    tn_train_info i = {.struct_size = sizeof i};
    char prefix[512];
    watch w = {.stop_at = stop_at};
    tn_train *t;

    (void)snprintf(prefix, sizeof prefix, "%s/m", folder);
    t = tn_train_open(app, .net = make(app), .data = "digits", .epochs = EPOCHS, .seed = 3, .batch = 256,
                      .lr = 0.5, .schedule = "constant", .warmup = -1, .checkpoint = folder,
                      .checkpoint_every = 0.5, .checkpoint_keep = 1, .resume = resume, .event = on_event,
                      .arg = &w, .early_stop = what, .patience = 2, .min_delta = 0.08, .best = prefix);
    r->done = tn_train_run(t);
    if (!tn_app_ok(app))
        fail_msg("%s", tn_app_error(app));
    tn_train_info_get(t, 1, &i);
    assert_true(tn_net_sha256(tn_train_net(t), r->hash));
    best_hash(app, folder, r->best);
    r->step = i.step;
    r->best_epoch = i.best_epoch;
    r->best_value = i.best_value;
    r->waited = i.waited;
    r->early = i.ended_early;
    nn_close(app);
}

static void same(const result *a, const result *b)
{
    assert_string_equal(a->hash, b->hash);
    assert_string_equal(a->best, b->best);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->best_epoch, b->best_epoch);
    assert_int_equal(a->waited, b->waited);
    assert_int_equal(a->early, b->early);
    assert_true(a->best_value == b->best_value);
}

static void test_early(void **state)
{
    static const char *const kinds[] = {"val_loss", "val_accuracy", "none"};

    (void)state;
    for (int k = 0; k < 3; k++) {
        char *whole = nn_quick_folder();
        result want, have;

        run(whole, 0, 0, kinds[k], &want);
        assert_true(want.done);
        assert_int_equal(strlen(want.best), 64);
        assert_true(want.best_epoch >= 1);
        if (k < 2) {
            assert_true(want.early && want.step < EPOCHS * 6 && want.waited == 2);
        } else {
            assert_false(want.early);
            assert_int_equal(want.step, EPOCHS * 6);
        }
        run(whole, 1, 0, kinds[k], &have); /* it is done */
        same(&want, &have);
        /* Between epochs, and in them. */
        for (int64_t stop = 12; stop < want.step; stop += test_short() ? 33 : 11) {
            if (k == 2 && stop > 12)
                break; /* nothing ends it: test_train.c goes further */
            char *broken = nn_quick_folder();

            run(broken, 0, stop, kinds[k], &have);
            assert_false(have.done);
            run(broken, 1, stop + 6 < want.step ? stop + 6 : 0, kinds[k], &have);
            run(broken, 1, 0, kinds[k], &have);
            same(&want, &have);
            nn_folder_remove(broken);
        }
        nn_folder_remove(whole);
    }
}

/* The best epoch's file is that epoch's net, whatever checkpoint_keep says. */
static void test_best(void **state)
{
    char *folder = nn_quick_folder(), path[512], json[512];
    tn_evaluation e = {.struct_size = sizeof e};
    result r;
    tn_app *app = nn_open(NULL);
    tn_net *net;

    (void)state;
    run(folder, 0, 0, "none", &r);
    (void)snprintf(json, sizeof json, "%s/m-symbol.json", folder);
    (void)snprintf(path, sizeof path, "%s/m-best.params", folder);
    net = tn_net_load_files(app, json, path, NULL);
    assert_true(tn_net_evaluate(net, tn_data_open(app, "digits:test"), &e));
    assert_true(fabs(e.accuracy - r.best_value) < 1e-9);
    nn_close(app);
    nn_folder_remove(folder);
}

/* A weight is spoiled behind the training's back: the checkpoints before stay, none is written after. */
static int32_t poison(void *arg, int32_t kind, tn_train *train)
{
    watch *w = arg;
    tn_train_info i = {.struct_size = sizeof i};
    float values[10];
    tn_array *bias, *from = NULL;
    const int64_t shape[1] = {10};

    tn_train_info_get(train, 0, &i);
    w->saved += kind == TN_TRAIN_SAVED;
    w->told = kind == TN_TRAIN_EPOCH ? i.diverged_epoch : w->told;
    if (kind != TN_TRAIN_STEP || i.step != w->poison_at)
        return 0;
    for (int k = 0; k < 10; k++)
        values[k] = k != 4 ? 0 : w->poison != 0 ? w->poison : INFINITY;
    bias = tn_net_param(tn_train_net(train), "2.bias");
    assert_int_equal(tn_array_from(w->ctx, TN_F32, 1, shape, values, &from), TN_OK);
    assert_int_equal(tn_array_copy(from, bias), TN_OK);
    tn_array_release(from);
    return 0;
}

static void test_not_finite(void **state)
{
    (void)state;
    for (int ignore = 0; ignore < 2; ignore++) {
        char *folder = nn_quick_folder();
        tn_app *app = nn_open(NULL);
        watch w = {.poison_at = 7, .ctx = tn_app_ctx(app)};
        tn_train *t =
            tn_train_open(app, .net = make(app), .data = "digits", .epochs = 2, .seed = 3, .batch = 256,
                          .checkpoint = folder, .checkpoint_every = 1.0 / 6, .checkpoint_keep = 100,
                          .event = poison, .arg = &w, .on_nan = ignore ? "ignore" : "stop");

        if (ignore) {
            if (!tn_train_run(t))
                fail_msg("%s", tn_app_error(app));
            assert_int_equal(w.saved, 12);
            nn_close(app);
        } else {
            assert_false(tn_train_run(t));
            assert_int_equal(w.saved, 6); /* of steps 1 to 6 */
            assert_non_null(strstr(tn_app_error(app), "of step 6"));
            assert_non_null(strstr(tn_app_error(app), "parameter n_dense1_bias is inf"));
            nn_close_failed(app, "step 7 (epoch 2", 1);
        }
        nn_folder_remove(folder);
    }
}

/* Found by the loss alone where nothing is written; a validation that is not finite is no better one. */
static void test_loss_not_finite(void **state)
{
    tn_app *app = nn_open(NULL);
    watch w = {.poison_at = 7, .ctx = tn_app_ctx(app)};
    tn_train *t = tn_train_open(app, .net = make(app), .data = "digits", .epochs = 2, .seed = 3, .batch = 256,
                                .event = poison, .arg = &w);

    (void)state;
    assert_false(tn_train_run(t));
    nn_close_failed(app, "step 8 (epoch 2", 1);
}

/* A rate far too high is told of within its first steps, once, and is an error when the epoch is over. */
static void test_exploded(void **state)
{
    char plugins[600], data[600];
    const char *settings[] = {plugins, data, NULL}, *tree = getenv("TENON_TEST_SOURCE");

    (void)state;
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    (void)snprintf(data, sizeof data, "data.path=%s/examples/data", tree);
    for (int ignore = 0; ignore < 2; ignore++) {
        heard said = HEARD(TN_LOG_WARNING);
        tn_app *app = tn_app_open(.name = "test", .settings = settings, .no_environment = 1,
                                  .log = heard_take, .arg = &said);
        tn_train_info i = {.struct_size = sizeof i};
        tn_train *t = tn_train_open(app, .net = make(app), .data = "digits", .epochs = 2, .seed = 3,
                                    .batch = 64, .lr = 1000, .schedule = "constant", .warmup = -1,
                                    .on_nan = ignore ? "ignore" : "stop");

        if (tn_train_run(t) != ignore)
            fail_msg("ignore %d: %s", ignore, tn_app_error(app));
        assert_int_equal(heard_times(&said, "the training diverges; take a lower learning rate"),
                         !ignore); /* who ignores it does not look */
        if (ignore) {
            nn_close(app);
        } else {
            assert_non_null(strstr(tn_app_error(app), "was 2."));
            nn_close_failed(app, "in this epoch", 1);
        }
    }
}

/* A loss that rises over an epoch, or ends above that of guessing, is told of; one that falls is not. */
static void test_rises(void **state)
{
    static const struct {
        float poison; /* behind epoch 1; the rate is so low that it stays */
        int64_t epochs;
        const char *on_nan, *text; /* NULL: nothing is said */
    } rows[] = {
        {30, 3, "stop", "the training diverges; take a lower learning rate (--lr, train.lr)"},
        {3, 2, "stop",
         "the net is no better than that; take another learning rate (--lr, train.lr), or more"},
        {3, 9, "stop", "the net is no better than that; take another"}, /* early_stop, behind epoch 2 */
        {3, 2, "ignore", NULL},
        {-0.5F, 1, "stop", NULL}, /* one epoch is no reason yet */
        {0, 2, "stop", NULL},
    };
    char plugins[600], data[600];
    const char *settings[] = {plugins, data, NULL}, *tree = getenv("TENON_TEST_SOURCE");

    (void)state;
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    (void)snprintf(data, sizeof data, "data.path=%s/examples/data", tree);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        heard said = HEARD(TN_LOG_WARNING);
        tn_app *app = tn_app_open(.name = "test", .settings = settings, .no_environment = 1,
                                  .log = heard_take, .arg = &said);
        watch w = {
            .poison = rows[r].poison, .poison_at = rows[r].poison != 0 ? 6 : 0, .ctx = tn_app_ctx(app)};
        tn_train_info i = {.struct_size = sizeof i};
        tn_train *t = tn_train_open(
            app, .net = make(app), .data = "digits", .epochs = rows[r].epochs, .seed = 3, .batch = 256,
            .lr = rows[r].poison != 0 ? 1e-9 : 0.1, .event = poison, .arg = &w, .on_nan = rows[r].on_nan,
            .early_stop = rows[r].epochs == 9 ? "val_loss" : "none", .patience = 1, .min_delta = 0.01);

        if (!tn_train_run(t))
            fail_msg("row %zu: %s", r, tn_app_error(app));
        tn_train_info_get(t, 0, &i);
        assert_int_equal(i.diverged_epoch, rows[r].text ? 2 : 0);
        assert_int_equal(w.told, i.diverged_epoch); /* the epoch's own event has it */
        if (!heard_times(&said, "the loss is ") != !rows[r].text ||
            (rows[r].text &&
             (!heard_times(&said, rows[r].text) || !heard_times(&said, "1 epoch 2: the loss is ") ||
              !heard_times(&said, "guessing has 2.303"))))
            fail_msg("row %zu: %s", r, said.text);
        nn_close(app);
    }
}

static void test_refused(void **state)
{
    static const struct {
        tn_train_options o;
        const char *text;
        int code;
    } bad[] = {
        {{.early_stop = "val_los"}, "did you mean \"val_loss\"", 2},
        {{.on_nan = "go"}, "unknown on_nan", 2},
        {{.early_stop = "val_loss", .patience = -1}, "patience of -1", 2},
        {{.early_stop = "val_loss", .valid = "none"}, "early_stop needs data", 2},
        {{.params = "absent.params"}, "absent.params", 2},
        {{.model = "absent-symbol.json"}, "absent-symbol.json", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);
        tn_train_options o = bad[i].o;

        o.struct_size = sizeof o;
        o.model = o.model ? o.model : "zoo:lenet";
        o.data = "digits";
        assert_null(tn_train_open_(app, &o));
        nn_close_failed(app, bad[i].text, bad[i].code);
    }
}

/* An older program's struct ends before what came later. */
static void test_older_program(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_train_options o = {.struct_size = (uint32_t)offsetof(tn_train_options, params),
                          .model = "zoo:lenet",
                          .data = "digits",
                          .epochs = 1,
                          .params = "never read",
                          .early_stop = "never read"};
    tn_train_info i = {.struct_size = (uint32_t)offsetof(tn_train_info, ended_early), .best_epoch = -7};
    tn_train *t = tn_train_open_(app, &o);

    (void)state;
    assert_non_null(t);
    assert_true(tn_train_run(t));
    tn_train_info_get(t, 0, &i);
    assert_true(i.best_epoch == -7 && i.step == 23);
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early),      cmocka_unit_test(test_best),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_loss_not_finite),
        cmocka_unit_test(test_exploded),   cmocka_unit_test(test_rises),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_older_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
