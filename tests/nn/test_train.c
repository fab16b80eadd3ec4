/* Whole trainings: accuracy, events, broken off at any step and resumed with the same bits. */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct watch {
    int64_t stop_at; /* step; 0: never */
    int count[6];
    double loss, accuracy;
} watch;

static int32_t on_event(void *arg, int32_t kind, tn_train *train)
{
    watch *w = arg;
    tn_train_info i = {.struct_size = sizeof i};

    w->count[kind]++;
    tn_train_info_get(train, 0, &i);
    assert_true(i.step <= i.steps && i.batch <= i.batches && i.epoch <= i.epochs);
    if (kind == TN_TRAIN_EPOCH) {
        w->loss = i.loss;
        w->accuracy = i.valid_accuracy;
        assert_int_equal(i.batch, i.batches);
    }
    if (kind == TN_TRAIN_SAVED)
        assert_non_null(i.checkpoint);
    return kind == TN_TRAIN_STEP && i.step == w->stop_at;
}

/* A net with dropout and batch normalisation: random numbers and running statistics must come back too. */
static tn_net *make(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "n");

    tn_net_conv2d(net, .channels = 4, .kernel = {3}, .activation = "relu");
    tn_net_batchnorm(net);
    tn_net_maxpool2d(net);
    tn_net_dropout(net, .rate = 0.2);
    tn_net_dense(net, .units = 10);
    return net;
}

/* One process: fresh or resumed, up to step `stop_at` or the end. 1: it ran to the end. */
static int run(const char *folder, int resume, int64_t stop_at, const char *optimizer, watch *w,
               char hash[65])
{
    tn_app *app = nn_open("run.deterministic=threads", NULL);
    tn_train *t = tn_train_open(app, .net = make(app), .data = "digits", .epochs = 2, .seed = 3, .batch = 128,
                                .optimizer = optimizer, .checkpoint = folder, .checkpoint_every = 0.25,
                                .checkpoint_keep = 2, .resume = resume, .event = on_event, .arg = w);
    int done;

    w->stop_at = stop_at;
    if (!t)
        print_error("%s\n", tn_app_error(app));
    done = tn_train_run(t);
    assert_true(tn_net_sha256(tn_train_net(t), hash));
    nn_close(app);
    return done;
}

static void test_resume(void **state)
{
    static const char *const optimizers[] = {"sgd", "adam", "ftml", "lamb"};

    (void)state;
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        char *whole = nn_folder(), *broken = nn_folder(), want[65], have[65];
        watch w = {0}, v = {0};

        assert_true(run(whole, 0, 0, optimizers[o], &w, want));
        assert_int_equal(w.count[TN_TRAIN_STEP], 24);
        assert_int_equal(w.count[TN_TRAIN_EPOCH], 2);
        assert_int_equal(w.count[TN_TRAIN_BEGIN], 1);
        assert_int_equal(w.count[TN_TRAIN_END], 1);
        assert_int_equal(w.count[TN_TRAIN_SAVED], 8);
        assert_false(run(broken, 0, 1, optimizers[o], &v, have));
        assert_string_not_equal(have, want);
        assert_false(run(broken, 1, 5, optimizers[o], &v, have));
        assert_false(run(broken, 1, 12, optimizers[o], &v, have)); /* the last step of an epoch */
        assert_false(run(broken, 1, 13, optimizers[o], &v, have));
        assert_true(run(broken, 1, 0, optimizers[o], &v, have));
        assert_string_equal(have, want);
        assert_true(v.loss == w.loss && v.accuracy == w.accuracy);
        assert_int_equal(v.count[TN_TRAIN_STEP], 24);
        memset(&v, 0, sizeof v);
        assert_true(run(broken, 1, 0, optimizers[o], &v, have)); /* nothing is left to do */
        assert_string_equal(have, want);
        assert_int_equal(v.count[TN_TRAIN_STEP], 0);
        nn_folder_remove(whole);
        nn_folder_remove(broken);
    }
}

/* Hybridized or not, on any number of threads: the same bits, of a net with Dropout on shuffled data. */
static void test_same_bits(void **state)
{
    static const char *const threads[] = {"engine.threads=1", "engine.threads=2", "engine.threads=5"};
    char want[65], hash[65];

    (void)state;
    for (int k = 0; k < 6; k++) {
        tn_app *app = nn_open("run.deterministic=threads", threads[k / 2], NULL);
        tn_train *t = tn_train_open(app, .net = make(app), .data = "digits", .epochs = 1, .batch = 128,
                                    .seed = 4, .no_hybridize = k % 2, .valid = "none");

        assert_true(tn_train_run(t));
        assert_true(tn_net_sha256(tn_train_net(t), k ? hash : want));
        nn_close(app);
        if (k)
            assert_string_equal(hash, want);
    }
}

static void test_stopped_and_continued(void **state)
{
    char want[65], have[65];
    watch w = {0}, none = {0};

    (void)state;
    (void)run(NULL, 0, 0, "sgd", &none, want);
    tn_app *app = nn_open("run.deterministic=threads", NULL);
    tn_train *t = tn_train_open(app, .net = make(app), .data = "digits", .epochs = 2, .seed = 3, .batch = 128,
                                .event = on_event, .arg = &w);
    tn_train_info i = {.struct_size = sizeof i};

    for (w.stop_at = 1; !tn_train_run(t); w.stop_at += 7) {
        tn_train_info_get(t, 1, &i);
        assert_int_equal(i.step, w.stop_at);
        assert_int_equal(i.stopped, 1);
        assert_true(isfinite(i.loss));
    }
    assert_true(tn_net_sha256(tn_train_net(t), have));
    assert_string_equal(have, want);
    tn_train_info_get(t, 0, &i);
    assert_int_equal(i.stopped, 0);
    assert_int_equal(i.step, 24);
    assert_int_equal(i.epoch, 2);
    assert_int_equal(i.train_count, 1437);
    assert_int_equal(i.valid_count, 360);
    nn_close(app);
}

/* Asked before the run has begun, by a thread or a signal that is ahead of it: no step; then it goes on. */
static void test_stopped_before(void **state)
{
    char *folder = nn_folder();
    watch w = {0};
    tn_app *app = nn_open(NULL);
    tn_train *t = tn_train_open(app, .net = make(app), .data = "digits", .epochs = 1, .seed = 3, .batch = 128,
                                .checkpoint = folder, .event = on_event, .arg = &w);
    tn_train_info i = {.struct_size = sizeof i};

    (void)state;
    tn_train_stop(t);
    tn_train_stop(t);
    assert_false(tn_train_run(t));
    tn_train_info_get(t, 1, &i);
    assert_int_equal(i.step, 0);
    assert_int_equal(i.stopped, 1);
    assert_int_equal(w.count[TN_TRAIN_STEP], 0);
    assert_true(tn_train_run(t)); /* two of them stop one run */
    assert_int_equal(w.count[TN_TRAIN_STEP], 12);
    assert_int_equal(w.count[TN_TRAIN_BEGIN], 2);
    assert_int_equal(w.count[TN_TRAIN_END], 2);
    nn_close(app);
    nn_folder_remove(folder);
}

/* The thread sanitizer sees all there is in one epoch, and takes minutes for six. */
#if defined(__SANITIZE_THREAD__)
#define LENET_EPOCHS 1
#define LENET_SETTING "train.epochs=1"
#define LENET_ACCURACY 0.5
#else
#define LENET_EPOCHS 6
#define LENET_SETTING "train.epochs=6"
#define LENET_ACCURACY 0.97
#endif

static void test_lenet(void **state)
{
    tn_app *app = nn_open(LENET_SETTING, "train.lr=0.1", "run.seed=1", NULL);
    tn_train *t = tn_train_open(app, .model = "zoo:lenet", .data = "digits:train");
    tn_train_info i = {.struct_size = sizeof i};

    (void)state;
    assert_true(tn_train_run(t));
    tn_train_info_get(t, 0, &i);
    assert_int_equal(i.epochs, LENET_EPOCHS);
    assert_int_equal(i.param_elements, 131080);
    assert_int_equal(i.seed, 1);
    assert_string_equal(i.model, "zoo:lenet");
    assert_string_equal(i.optimizer, "sgd");
    if (i.valid_accuracy < LENET_ACCURACY)
        print_error("accuracy %.4f\n", i.valid_accuracy);
    assert_true(i.valid_accuracy >= LENET_ACCURACY);
    assert_true(i.best_accuracy >= i.valid_accuracy);
    assert_true(fabs(tn_net_eval(tn_train_net(t), tn_train_valid(t), "accuracy") - i.valid_accuracy) < 1e-9);
    nn_close(app);
}

/* A resumed training must be what it was. */
static void test_resume_refused(void **state)
{
    char *folder = nn_folder(), hash[65];
    watch w = {0};
    tn_app *app = nn_open(NULL);

    (void)state;
    assert_null(tn_train_open(app, .net = make(app), .data = "digits", .checkpoint = folder, .resume = 1));
    nn_close_failed(app, "checkpoint", 2);
    assert_false(run(folder, 0, 3, "sgd", &w, hash));
    app = nn_open(NULL);
    assert_null(tn_train_open(app, .net = make(app), .data = "digits", .epochs = 2, .seed = 3, .batch = 128,
                              .lr = 0.5, .checkpoint = folder, .resume = 1));
    assert_non_null(strstr(tn_app_error(app), "now it is 0.5"));
    nn_close_failed(app, "was made with lr 0.05", 2);
    app = nn_open(NULL);
    assert_null(tn_train_open(app, .net = make(app), .data = "digits", .resume = 1));
    nn_close_failed(app, "without a folder", 2);
    nn_folder_remove(folder);
}

static void test_refused(void **state)
{
    static const struct {
        tn_train_options o;
        const char *text;
        int code;
    } bad[] = {
        {{.data = "digits"}, "neither a model nor a net", 2},
        {{.model = "zoo:lenet"}, "no data", 2},
        {{.model = "zoo:lenet", .data = "digitz"}, "digitz", 2},
        {{.model = "zoo:lenett", .data = "digits"}, "did you mean", 2},
        {{.model = "zoo:lenet", .data = "digits", .optimizer = "sgb"}, "did you mean", 2},
        {{.model = "zoo:lenet", .data = "digits", .valid = "nowhere:test"}, "nowhere", 2},
        {{.model = "zoo:lenet", .data = "digits", .epochs = -1}, "0 epochs", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);
        tn_train_options o = bad[i].o;

        o.struct_size = sizeof o;
        assert_null(tn_train_open_(app, &o));
        nn_close_failed(app, bad[i].text, bad[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_stopped_and_continued),
        cmocka_unit_test(test_stopped_before),
        cmocka_unit_test(test_lenet),
        cmocka_unit_test(test_resume_refused),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
