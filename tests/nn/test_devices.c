/* Nets on several devices: parts of a batch, sums in the store, updates there or by the trainer, states. */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support/runs.h"

#define ROWS 8
#define STEPS 5
#define ROOM 256

typedef struct bench {
    tn_app *app;
    tn_net *net;
    tn_array *x, *labels;
} bench;

static bench open_on(const char *setting, const char *more)
{
    static const int64_t in[] = {ROWS, 5}, rows[] = {ROWS};
    static const float classes[ROWS] = {0, 1, 2, 1, 0, 2, 2, 1};
    bench b = {.app = nn_open(setting, "optimizer.aggregate_num=4", more, NULL)};

    b.net = tn_net_new(b.app);
    tn_net_dense(b.net, .units = 4, .activation = "tanh");
    tn_net_batchnorm(b.net);
    tn_net_dense(b.net, .units = 3);
    tn_net_init(b.net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {ROWS, 5});
    b.x = nn_array(b.app, 2, in, 7);
    b.labels = tn_app_array(b.app, 1, rows, classes);
    return b;
}

/* Forward and backward of each device's part. */
static void gradients(bench *b)
{
    for (size_t k = 0; k < tn_app_devices(b->app); k++) {
        tn_array *x = tn_app_part(b->app, b->x, k), *labels = tn_app_part(b->app, b->labels, k);

        tn_app_record(b->app);
        tn_app_backward(b->app, tn_loss_softmax_ce(b->app, tn_net_forward(b->net, x), labels));
    }
}

/* Of all parameters, in order. */
static size_t values(bench *b, float *out)
{
    size_t at = 0;

    for (size_t p = 0; p < tn_net_param_count(b->net); p++)
        at += nn_read(b->app, tn_net_param(b->net, tn_net_param_name(b->net, p)), out + at, ROOM - at);
    return at;
}

static void same(const float *a, const float *b, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s: number %zu is %.9g and %.9g", what, i, (double)a[i], (double)b[i]);
}

/* ---- parts ------------------------------------------------------------------------------------------ */

static void parts(void **state)
{
    bench b = open_on("device.default=cpu:0, cpu:1,cpu:2", NULL);
    float whole[ROWS * 5], part[ROWS * 5];
    size_t at = 0;

    (void)state;
    assert_int_equal(tn_app_devices(b.app), 3);
    assert_string_equal(tn_app_device(b.app), "cpu:0");
    assert_int_equal(nn_read(b.app, b.x, whole, ROWS * 5), ROWS * 5);
    for (size_t k = 0; k < 3; k++) {
        tn_array *x = tn_app_part(b.app, b.x, k);

        assert_int_equal(tn_device_index(tn_array_device(x)), k);
        at += nn_read(b.app, x, part + at, ROWS * 5 - at);
    }
    assert_int_equal(at, ROWS * 5);
    same(whole, part, at, "parts");
    nn_close(b.app);
    b = open_on("device.default=cpu", NULL);
    assert_int_equal(tn_app_devices(b.app), 1);
    assert_ptr_equal(tn_app_part(b.app, b.x, 0), b.x);
    nn_close(b.app);
}

static void bad_lists(void **state)
{
    static const char *const lists[][2] = {{"device.default=cpu:0,cpu:0", "twice"},
                                           {"device.default=cpu:0,", "is no device"},
                                           {"device.default=,cpu:1", "is no device"},
                                           {"device.default=cpu:0,abacus:1", "abacus"}};

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        tn_app *app = tn_app_open(.name = "devices", .no_environment = 1,
                                  .settings = (const char *const[]){"plugins.trust=off", lists[i][0], NULL});

        assert_false(tn_app_ok(app));
        if (!strstr(tn_app_error(app), lists[i][1]))
            fail_msg("%s: %s", lists[i][0], tn_app_error(app));
        (void)tn_app_close(app);
    }
}

static void bad_parts(void **state)
{
    static const int64_t one[] = {1, 2};
    bench b = open_on("device.default=cpu:0,cpu:1", NULL);

    (void)state;
    assert_null(tn_app_part(b.app, b.x, 2));
    nn_close_failed(b.app, "part 2 of 2", 2);
    b = open_on("device.default=cpu:0,cpu:1", NULL);
    assert_null(tn_app_part(b.app, nn_array(b.app, 2, one, 1), 0));
    nn_close_failed(b.app, "1 rows for 2 devices", 1);
}

/* ---- trainings -------------------------------------------------------------------------------------- */

enum { ON_STORE, BY_TRAINER, HALVES };

static tn_trainer *trainer_of(bench *b, const char *optimizer, int way, const char *store)
{
    const bool momentum = strstr(optimizer, "-m") != NULL, centered = strstr(optimizer, "-c") != NULL,
               later = strstr(optimizer, "-b") != NULL;
    char name[16];

    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(optimizer, "-"), optimizer);
    return tn_trainer_new(b->net, .optimizer = name, .lr = 0.1, .momentum = momentum ? 0.9 : 0, .wd = 0.01,
                          .centered = centered, .schedule = "factor", .every = 2, .factor = 0.5,
                          .begin_num_update = later ? 5 : 0, .rescale_grad = later ? -2 : 0, .kvstore = store,
                          .update_on_kvstore = way == ON_STORE ? 1 : -1);
}

static size_t trained(const char *setting, const char *more, const char *optimizer, int way,
                      const char *store, float *out)
{
    bench b = open_on(setting, more);
    tn_trainer *t = trainer_of(&b, optimizer, way, store);
    size_t count;

    for (int step = 0; step < STEPS; step++) {
        gradients(&b);
        if (way == HALVES) {
            tn_trainer_allreduce_grads(t);
            tn_trainer_update(t, ROWS);
        } else {
            tn_trainer_step(t, ROWS);
        }
    }
    count = values(&b, out);
    nn_close(b.app);
    return count;
}

/* Whoever updates, and wherever the sum is made: the same bits. */
static void ways(void **state)
{
    static const char *const optimizers[] = {"sgd",     "sgd-m",     "nag-m", "adam",  "signum", "signum-m",
                                             "rmsprop", "rmsprop-c", "ftrl",  "sgd-b", "adam-b"};

    (void)state;
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o += test_short() ? 5 : 1) {
        static float first[ROOM], other[ROOM];
        const char *two = "device.default=cpu:0,cpu:1";
        const size_t count = trained(two, NULL, optimizers[o], BY_TRAINER, "local", first);

        assert_int_equal(trained(two, NULL, optimizers[o], ON_STORE, "local", other), count);
        same(first, other, count, optimizers[o]);
        (void)trained(two, NULL, optimizers[o], ON_STORE, "device", other);
        same(first, other, count, optimizers[o]);
        (void)trained(two, NULL, optimizers[o], HALVES, "device", other);
        same(first, other, count, optimizers[o]);
    }
}

/* Factors that are set between steps count at the next one, whoever updates. */
static void factors(void **state)
{
    static float got[2][ROOM];
    size_t count = 0;

    (void)state;
    for (int way = ON_STORE; way <= BY_TRAINER; way++) {
        bench b = open_on("device.default=cpu:0,cpu:1", NULL);
        tn_trainer *t = trainer_of(&b, "sgd-m", way, "device");

        tn_net_multiply(b.net, "bias", 0, 0);
        for (int step = 0; step < STEPS; step++) {
            gradients(&b);
            tn_trainer_step(t, ROWS);
            if (step == 1)
                tn_net_multiply(b.net, "weight", 0.25, 2);
            if (step == 2)
                tn_net_multiply(b.net, "bias", 1, 1);
        }
        count = values(&b, got[way]);
        nn_close(b.app);
    }
    same(got[ON_STORE], got[BY_TRAINER], count, "factors");
}

/* One device with a store is one device; two come to the same but for rounding. */
static void one_and_two(void **state)
{
    static float alone[ROOM], store[ROOM];
    const size_t count = trained("device.default=cpu", NULL, "sgd-m", BY_TRAINER, NULL, alone);

    (void)state;
    (void)trained("device.default=cpu", NULL, "sgd-m", ON_STORE, "device", store);
    same(alone, store, count, "one device");
}

/* Layers whose statistics are those of the whole batch, wherever its parts lie: what one device has, but for
 * rounding; one layer is called twice. */
static tn_x two_norms(tn_x x)
{
    x = tn_relu(tn_syncbatchnorm(tn_dense(x, .units = 4), .name = "norm", .share = 1));
    x = tn_syncbatchnorm(tn_dense(x, .units = 4), .name = "norm", .share = 1);
    return tn_dense(tn_syncbatchnorm(tn_dense(tn_tanh(x), .units = 6)), .units = 3);
}

static size_t synced(const char *setting, bool hybrid, float *out)
{
    bench b = open_on(setting, NULL);
    tn_trainer *t;
    size_t count;

    b.net = tn_net_function(b.app, two_norms, .name = "norms");
    tn_net_init(b.net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {ROWS, 5});
    if (hybrid)
        tn_net_hybridize(b.net);
    t = tn_trainer_new(b.net, .lr = 0.1, .momentum = 0.9);
    for (int step = 0; step < STEPS; step++) {
        gradients(&b);
        tn_trainer_step(t, ROWS);
    }
    count = values(&b, out);
    nn_close(b.app);
    return count;
}

static void sync_batch_norm(void **state)
{
    static const char *const lists[] = {"device.default=cpu:0,cpu:1", "device.default=cpu:0,cpu:1,cpu:2"};
    static float whole[ROOM], parts_of[2][ROOM];
    const size_t count = synced("device.default=cpu", false, whole);

    (void)state;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (int hybrid = 0; hybrid < 2; hybrid++)
            assert_int_equal(synced(lists[l], hybrid != 0, parts_of[hybrid]), count);
        same(parts_of[0], parts_of[1], count, "hybridized");
        for (size_t i = 0; i < count; i++)
            if (!(fabsf(parts_of[0][i] - whole[i]) < 1e-5f))
                fail_msg("%s: number %zu is %.9g, of one device %.9g", lists[l], i, (double)parts_of[0][i],
                         (double)whole[i]);
    }
}

/* Devices that cannot share numbers: a layer, and a file that has one. */
static void sync_refused(const char *json)
{
    static const struct {
        const char *list, *more, *why;
    } rows[] = {
        {"device.default=cpu:0,cpu:1", "engine.type=naive", "engine.type=naive runs one behind the other"},
        {"device.default=fake:0,fake:1", "plugin.fake.devices=2", "only host devices (cpu) have a kernel"},
        {"device.default=cpu:0,fake:0", "plugin.fake.devices=1", "only host devices (cpu) have a kernel"},
    };

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tn_app *app = nn_open(rows[r].list, rows[r].more, NULL);

        tn_net_syncbatchnorm(tn_net_new(app));
        nn_close_failed(app, rows[r].why, 1);
        app = nn_open(rows[r].list, rows[r].more, NULL);
        assert_null(tn_net_from_symbol(app, json));
        nn_close_failed(app, rows[r].why, 1);
    }
}

static void text_read(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    out[fread(out, 1, room - 1, f)] = '\0';
    (void)fclose(f);
}

/* STEPS of a net that a file brings. */
static size_t read_trained(const char *setting, const char *json, float *out)
{
    bench b = open_on(setting, NULL);
    tn_trainer *t;
    size_t count;

    b.net = tn_net_from_symbol(b.app, json);
    tn_net_init(b.net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {ROWS, 5});
    t = tn_trainer_new(b.net, .lr = 0.1, .momentum = 0.9);
    for (int step = 0; step < STEPS; step++) {
        gradients(&b);
        tn_trainer_step(t, ROWS);
    }
    count = values(&b, out);
    nn_close(b.app);
    return count;
}

/* How many devices a net was saved on is nothing to the one that reads it. */
static void sync_from_files(void **state)
{
    static const char *const lists[] = {"device.default=cpu", "device.default=cpu:0,cpu:1"};
    static float whole[ROOM], part[ROOM];
    static char text[2][1 << 16];
    char *folder = nn_quick_folder(), prefix[512], json[600];
    size_t count = 0;

    (void)state;
    for (size_t saved = 0; saved < 2; saved++) {
        bench b = open_on(lists[saved], NULL);

        (void)snprintf(prefix, sizeof prefix, "%s/on%zu", folder, saved);
        b.net = tn_net_function(b.app, two_norms, .name = "norms");
        tn_net_init(b.net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {ROWS, 5});
        gradients(&b);
        tn_net_export(b.net, prefix);
        nn_close(b.app);
        (void)snprintf(json, sizeof json, "%s-symbol.json", prefix);
        text_read(json, text[saved], sizeof text[saved]);
        for (size_t on = 0; on < 2; on++) {
            const size_t have = read_trained(lists[on], json, saved || on ? part : whole);

            assert_true(have > 0 && (!count || have == count));
            count = have;
            for (size_t i = 0; i < count && (saved || on); i++)
                if (!(fabsf(part[i] - whole[i]) < 1e-5f))
                    fail_msg("saved on %zu, read on %zu: number %zu is %.9g, of one device %.9g", saved + 1,
                             on + 1, i, (double)part[i], (double)whole[i]);
        }
    }
    assert_string_equal(text[0], text[1]);
    assert_non_null(strstr(text[0], "\"ndev\": \"1\""));
    sync_refused(json);
    nn_folder_remove(folder);
}

static void by_formulas(void **state)
{
    static float first[ROOM], other[ROOM];
    bench b = open_on("device.default=cpu:0,cpu:1", NULL);
    const size_t count = trained("device.default=cpu:0,cpu:1", NULL, "lamb", BY_TRAINER, NULL, first);
    tn_trainer *t = tn_trainer_new(b.net, .optimizer = "lamb", .lr = 0.1, .wd = 0.01, .schedule = "factor",
                                   .every = 2, .factor = 0.5);

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        gradients(&b);
        tn_trainer_step(t, ROWS);
    }
    (void)values(&b, other);
    same(first, other, count, "lamb");
    nn_close(b.app);
    b = open_on("device.default=cpu:0,cpu:1", NULL);
    t = tn_trainer_new(b.net, .optimizer = "lamb", .update_on_kvstore = 1);
    gradients(&b);
    tn_trainer_step(t, ROWS);
    nn_close_failed(b.app, "lamb", 1);
}

/* Devices with streams: wherever the sum is made and whoever updates, the same bits; those of hosts but for
 * rounding, since other kernels run there. */
static void on_fake_devices(void **state)
{
    static const struct {
        const char *store;
        int way;
    } rows[] = {{"local", ON_STORE}, {"device", ON_STORE}, {"device", BY_TRAINER}, {"local", HALVES}};
    static float host[ROOM], first[ROOM], fake[ROOM];
    const char *two = "device.default=fake:0,fake:1";
    const size_t count = trained("device.default=cpu:0,cpu:1", NULL, "sgd-m", ON_STORE, "local", host);

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        (void)trained(two, "plugin.fake.devices=2", "sgd-m", rows[r].way, rows[r].store, r ? fake : first);
        if (r)
            same(first, fake, count, rows[r].store);
    }
    for (size_t i = 0; i < count; i++)
        assert_true(fabsf(first[i] - host[i]) < 1e-5f);
}

/* States go on from where they were, and values that are loaded reach the store and all devices. */
static void resumed(void **state)
{
    static const int wheres[] = {ON_STORE, BY_TRAINER};
    static float through[ROOM], again[ROOM];
    char *folder = nn_quick_folder(), states[512], params[512];

    (void)state;
    (void)snprintf(states, sizeof states, "%s/states", folder);
    (void)snprintf(params, sizeof params, "%s/params", folder);
    for (size_t w = 0; w < 2; w++) {
        bench b = open_on("device.default=cpu:0,cpu:1", NULL);
        tn_trainer *t = trainer_of(&b, "adam", wheres[w], "local");
        size_t count;

        for (int step = 0; step < STEPS; step++) {
            gradients(&b);
            tn_trainer_step(t, ROWS);
            if (step == 1) {
                tn_trainer_save(t, states);
                tn_net_save(b.net, params);
            }
        }
        count = values(&b, through);
        tn_net_load_params(b.net, params); /* into the same store */
        tn_trainer_load(t, states);
        for (int step = 2; step < STEPS; step++) {
            gradients(&b);
            tn_trainer_step(t, ROWS);
        }
        (void)values(&b, again);
        same(through, again, count, "loaded");
        nn_close(b.app);
        b = open_on("device.default=cpu:0,cpu:1", NULL); /* into a new one */
        t = trainer_of(&b, "adam", wheres[w], "local");
        tn_net_load_params(b.net, params);
        tn_trainer_load(t, states);
        for (int step = 2; step < STEPS; step++) {
            gradients(&b);
            tn_trainer_step(t, ROWS);
        }
        (void)values(&b, again);
        same(through, again, count, "resumed");
        nn_close(b.app);
    }
    nn_folder_remove(folder);
}

static void compressed(void **state)
{
    static float plain[ROOM], coded[ROOM];
    bench b = open_on("device.default=cpu:0,cpu:1", NULL);
    tn_trainer *t = tn_trainer_new(b.net, .lr = 0.1, .kvstore = "device", .compression = "2bit",
                                   .compression_threshold = 0.25);
    size_t count = trained("device.default=cpu:0,cpu:1", NULL, "sgd", ON_STORE, "device", plain);

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        gradients(&b);
        tn_trainer_step(t, ROWS);
    }
    (void)values(&b, coded);
    assert_true(memcmp(plain, coded, count * sizeof *plain) != 0);
    nn_close(b.app);
    (void)trained("device.default=cpu:0,cpu:1", "kvstore.compress=1bit", "sgd", ON_STORE, "device", coded);
    b = open_on("device.default=cpu:0,cpu:1", "kvstore.compress=2bit");
    t = tn_trainer_new(b.net, .lr = 0.1);
    gradients(&b);
    tn_trainer_step(t, ROWS);
    nn_close_failed(b.app, "type local does not compress", 1);
}

/* ---- whole trainings -------------------------------------------------------------------------------- */

#define SHARE_STEPS 6
#define LENET_ROOM (1 << 20)

/* Stops behind SHARE_STEPS steps. */
static int few_steps(void *arg, int32_t kind, tn_train *t)
{
    (void)arg;
    return kind == TN_TRAIN_STEP && tn_trainer_steps(tn_train_trainer(t)) == SHARE_STEPS;
}

static size_t weights_of(tn_app *app, tn_net *net, float *out)
{
    size_t at = 0;

    for (size_t p = 0; p < tn_net_param_count(net); p++)
        at += nn_read(app, tn_net_param(net, tn_net_param_name(net, p)), out + at, LENET_ROOM - at);
    return at;
}

/* Share after share on one device, sums and updates by operators called here. */
static size_t by_hand(float *out)
{
    tn_app *app = nn_open("run.deterministic=threads", NULL);
    tn_net *net = tn_net_zoo(app, "zoo:lenet");
    tn_data *shares[2];
    tn_batch batch;
    tn_array *sums[16];
    size_t count;

    tn_net_init(net, .seed = 42, .shape = {32, 1, 8, 8});
    tn_net_hybridize(net);
    for (int k = 0; k < 2; k++)
        shares[k] =
            tn_data_open(app, "digits:train", .batch = 32, .shuffle = 1, .seed = 42, .parts = 2, .part = k);
    for (int step = 0; step < SHARE_STEPS; step++)
        for (int k = 0; k < 2 && tn_data_next(shares[k], &batch); k++) {
            tn_app_record(app);
            tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, batch.x), batch.y));
            for (size_t p = 0; p < tn_net_param_count(net); p++) {
                const char *name = tn_net_param_name(net, p);
                tn_array *in[] = {tn_net_param(net, name), tn_net_param_grad(net, name)}, *w = in[0],
                         *sum = NULL;
                tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .in_count = 2, .in = in};

                if (k == 0) {
                    assert_int_equal(tn_array_to(tn_app_ctx(app), in[1], NULL, &sums[p]), TN_OK);
                    continue;
                }
                call.op = "elemwise_add";
                in[0] = sums[p];
                assert_int_equal(tn_invoke_text(tn_app_ctx(app), &call, 1, &sum, NULL), TN_OK);
                call.op = "sgd_update";
                call.attrs = (const char *const[]){"lr", "0.1", "rescale_grad", "0.015625", NULL};
                in[0] = w;
                in[1] = sum;
                assert_int_equal(tn_invoke_text(tn_app_ctx(app), &call, 1, &w, NULL), TN_OK);
                tn_array_release(sum);
                tn_array_release(sums[p]);
            }
        }
    count = weights_of(app, net, out);
    nn_close(app);
    return count;
}

static void shares(void **state)
{
    static float hand[LENET_ROOM], out[LENET_ROOM];
    static const char *const stores[] = {"kvstore.type=local", "kvstore.type=device"};
    const size_t count = by_hand(hand);

    (void)state;
    for (int update = 0; update < 2; update++)
        for (int s = test_short() ? update : 0; s < (test_short() ? update + 1 : 2); s++) {
            tn_app *app = nn_open("run.deterministic=threads", "device.default=cpu:0,cpu:1", stores[s],
                                  update ? "kvstore.update=true" : "kvstore.update=false", NULL);
            tn_train *t = tn_train_open(app, .model = "zoo:lenet", .data = "digits", .valid = "none",
                                        .epochs = 1, .batch = 32, .seed = 42, .lr = 0.1, .momentum = -1,
                                        .wd = -1, .warmup = -1, .schedule = "constant", .event = few_steps);

            (void)tn_train_run(t);
            assert_int_equal(weights_of(app, tn_train_net(t), out), count);
            same(hand, out, count, stores[s]);
            nn_close(app);
        }
}

/* A net and a loss of the program: each batch is divided. */
static tn_x doubled(const tn_x *out, const tn_x *labels)
{
    return tn_softmax_ce(out[0], labels[0]);
}

static void divided(void **state)
{
    (void)state;
    for (int own = test_short(); own < 2; own++) {
        static float first[LENET_ROOM], out[LENET_ROOM];
        size_t count = 0;

        for (int devices = 1; devices <= 2; devices++) {
            tn_app *app = nn_open(devices == 1 ? "device.default=cpu:0" : "device.default=cpu:0,cpu:1", NULL);
            tn_net *net = tn_net_zoo(app, "zoo:lenet");
            tn_data *data = tn_data_open(app, "digits:train", .batch = 64, .seed = 42, .last = "discard");

            tn_net_init(net, .seed = 42);
            assert_false(tn_fit(net, data, .epochs = 1, .lr = 0.05, .seed = 42, .valid = "none",
                                .event = few_steps, .loss = own ? doubled : NULL)); /* stopped */
            count = weights_of(app, net, devices == 1 ? first : out);
            nn_close(app);
        }
        for (size_t i = 0; i < count; i++)
            if (fabsf(first[i] - out[i]) > 1e-4f)
                fail_msg("weight %zu is %g on one device, %g on two", i, (double)first[i], (double)out[i]);
    }
}

/* ---- wrong ------------------------------------------------------------------------------------------ */

static void wrong(void **state)
{
    static const struct {
        const char *store, *compression, *says;
        int32_t where;
        double norm;
        int code;
    } rows[] = {
        {"locl", NULL, "locl", 0, 0, 2},
        {NULL, "4bit", "4bit", 0, 0, 2},
        {NULL, NULL, "update_on_kvstore", 2, 0, 2},
        {"nccl", NULL, "kv-absent", 0, 0, 3},
        {"dist_sync", NULL, "kv-absent", 0, 0, 3},
        {"mpi", NULL, "kv-absent", 0, 0, 3},
        {NULL, NULL, "clip_norm", 1, 1, 2},
    };

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        bench b = open_on("device.default=cpu:0,cpu:1", "kvstore.transport=absent");
        tn_trainer *t =
            tn_trainer_new(b.net, .lr = 0.1, .kvstore = rows[r].store, .compression = rows[r].compression,
                           .update_on_kvstore = rows[r].where, .clip_norm = rows[r].norm);

        gradients(&b);
        tn_trainer_step(t, ROWS);
        nn_close_failed(b.app, rows[r].says, rows[r].code);
    }
    for (int half = 0; half < 2; half++) {
        bench b = open_on("device.default=cpu:0,cpu:1", NULL);
        tn_trainer *t = tn_trainer_new(b.net, .lr = 0.1);

        gradients(&b);
        if (half)
            tn_trainer_update(t, ROWS);
        else
            tn_trainer_allreduce_grads(t);
        nn_close_failed(b.app, "update_on_kvstore", 1);
    }
}

/* Of a store, on one device: rows that nobody looks up stay. */
static void rows_of_an_embedding(void **state)
{
    static const int64_t in[] = {ROWS, 2}, rows[] = {ROWS};
    static const float ids[ROWS * 2] = {0, 3, 3, 5, 7, 7, 0, 9, 9, 3, 5, 5, 7, 0, 3, 3},
                                  classes[ROWS] = {0, 1, 2, 1, 0, 2, 2, 1};
    bench b = {.app = nn_open("device.default=cpu", NULL)};
    float before[ROOM], after[ROOM];
    tn_trainer *t;
    tn_array *w;

    (void)state;
    b.net = tn_net_new(b.app);
    tn_net_embedding(b.net, .count = 11, .units = 3, .sparse_grad = 1);
    tn_net_dense(b.net, .units = 3);
    tn_net_init(b.net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {ROWS, 2});
    b.x = tn_app_array(b.app, 2, in, ids);
    b.labels = tn_app_array(b.app, 1, rows, classes);
    w = tn_net_param(b.net, tn_net_param_name(b.net, 0));
    assert_int_equal(nn_read(b.app, w, before, ROOM), 33);
    t = tn_trainer_new(b.net, .optimizer = "sgd", .lr = 0.1, .momentum = 0.9, .wd = 0.01, .kvstore = "local");
    for (int step = 0; step < STEPS; step++) {
        gradients(&b);
        tn_trainer_step(t, ROWS);
    }
    assert_int_equal(nn_read(b.app, w, after, ROOM), 33);
    for (size_t i = 0; i < 33; i++) {
        const size_t row = i / 3;
        const bool named = row == 0 || row == 3 || row == 5 || row == 7 || row == 9;

        assert_true(named != (after[i] == before[i]));
    }
    nn_close(b.app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),           cmocka_unit_test(bad_lists),
        cmocka_unit_test(bad_parts),       cmocka_unit_test(ways),
        cmocka_unit_test(factors),         cmocka_unit_test(one_and_two),
        cmocka_unit_test(sync_batch_norm), cmocka_unit_test(sync_from_files),
        cmocka_unit_test(by_formulas),     cmocka_unit_test(on_fake_devices),
        cmocka_unit_test(resumed),         cmocka_unit_test(compressed),
        cmocka_unit_test(shares),          cmocka_unit_test(divided),
        cmocka_unit_test(wrong),           cmocka_unit_test(rows_of_an_embedding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
