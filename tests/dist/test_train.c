/*
 * Trainings of nn by several workers: the same bits on all of them, and those of one process over as many
 * devices; data that is uneven; files; trainers and modules of programs.
 */
#include "dist/job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "support/scratch.h"
#include "support/symbols.h"
#include "tenon/nn.h"
#include "tenon/nn_module.h"

static tn_app *app_open_heard(const char *const *more, void (*log)(void *, int32_t, const char *), void *arg)
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
    app = tn_app_open(.name = "test", .settings = settings, .no_environment = 1, .log = log, .arg = arg);
    if (!app || !tn_app_ok(app)) {
        print_error("%s\n", app ? tn_app_error(app) : "no app");
        abort();
    }
    return app;
}

static tn_app *app_open(const char *const *more)
{
    return app_open_heard(more, NULL, NULL);
}

typedef struct course { /* of a training */
    const char *settings[12];
    const char *const *local; /* of the reference; NULL: none */
    tn_train_options o;
    int64_t more; /* samples that a batch has more than that of the rank below */
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
    tn_train_options o = c->o;

    o.batch += w->rank * c->more;
    train(app, &o, c->sha[w->rank], &c->info[w->rank]);
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

typedef struct uneven_course {
    course c;
    const char *says[2]; /* what worker 0 has to be told, and worker 1 */
    bool said[2];
} uneven_course;

typedef struct listener {
    const char *text;
    atomic_bool heard; /* the log comes from several threads */
} listener;

static void hears(void *arg, int32_t level, const char *text)
{
    listener *l = arg;

    (void)level;
    if (strstr(text, l->text))
        atomic_store(&l->heard, true);
}

static void trains_unevenly(worker *w)
{
    uneven_course *u = w->arg;
    tn_train_options o = u->c.o;
    listener l = {u->says[w->rank], false};
    tn_app *app = app_open_heard(u->c.settings, hears, &l);

    o.batch = w->rank ? 144 : 103;
    train(app, &o, u->c.sha[w->rank], &u->c.info[w->rank]);
    WORKER_TRUE(w, tn_app_close(app) == 0);
    u->said[w->rank] = l.heard;
}

/* 1437 images: worker 0 has 7 batches of 718, worker 1 has 5 of 719. */
static void uneven_data_ends(void **state)
{
    static const struct {
        const char *policy;
        uint32_t uneven;
        int64_t steps[2];
        const char *says[2];
    } rows[] = {{"kvstore.uneven=pad",
                 0,
                 {14, 14},
                 {"each makes 7, this one repeats 0", "each makes 7, this one repeats 2"}},
                {"kvstore.uneven=drop",
                 1,
                 {10, 10},
                 {"each makes 5, this one leaves out 2", "each makes 5, this one leaves out 0"}},
                {"kvstore.uneven=join",
                 2,
                 {14, 10},
                 {"5 to 7 batches in an epoch: each ends by itself",
                  "5 to 7 batches in an epoch: each ends by itself"}}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const job_options o = {.workers = 2, .servers = 2, .uneven = rows[i].uneven};
        uneven_course u = {.c = {.settings = {"kvstore.type=dist_sync", rows[i].policy},
                                 .o = {.data = "digits", .valid = "none", .epochs = 2, .lr = 0.01}},
                           .says = {rows[i].says[0], rows[i].says[1]}};

        job_run(&o, NULL, trains_unevenly, &u);
        assert_string_equal(u.c.sha[0], u.c.sha[1]);
        for (int w = 0; w < 2; w++) {
            assert_int_equal(u.c.info[w].step, rows[i].steps[w]);
            assert_true(u.said[w]);
        }
    }
}

/* Workers with batches of different sizes: all divide by the same number. */
static void batches_of_their_own(void **state)
{
    static const struct {
        const char *policy;
        uint32_t uneven;
        int64_t batch, more, step;
    } rows[] = {{"kvstore.uneven=pad", 0, 100, 100, 16}, {"kvstore.uneven=drop", 1, 200, -100, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const job_options o = {.workers = 2, .servers = 2, .uneven = rows[i].uneven};
        course c = {.settings = {"kvstore.type=dist_sync", rows[i].policy},
                    .o = {.data = "digits", .valid = "none", .epochs = 2, .batch = rows[i].batch, .lr = 0.01},
                    .more = rows[i].more};

        job_run(&o, NULL, trains, &c);
        assert_string_equal(c.sha[0], c.sha[1]);
        for (int w = 0; w < 2; w++)
            assert_int_equal(c.info[w].step, rows[i].step);
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

typedef struct saved {
    const char *folder, *dtype;
    int32_t multi_precision, on_store;
} saved;

/* What is saved behind a step, by worker 0, makes the next one again. */
static void saves(worker *w)
{
    static const int64_t rows[] = {4, 3}, classes[] = {4};
    tn_app *app = app_open(SETTINGS("kvstore.type=dist_sync"));
    char states[SCRATCH_PATH_BYTES + 8], prefix[SCRATCH_PATH_BYTES + 8], params[SCRATCH_PATH_BYTES + 32];
    float values[12] = {1, 2, 3, (float)w->rank}, labels[4] = {0, 1, 0, 1};
    const saved *how = w->arg;
    tn_net *net = net_of(app);
    char sha[2][65];
    tn_array *x, *y, *cast = NULL;
    tn_trainer *t;

    (void)snprintf(states, sizeof states, "%s/s", how->folder);
    (void)snprintf(prefix, sizeof prefix, "%s/p", how->folder);
    (void)snprintf(params, sizeof params, "%s-0000.params", prefix);
    tn_net_cast(net, how->dtype);
    tn_net_init(net, .seed = 1, .shape = {4, 3});
    t = tn_trainer_new(net, .lr = 0.1, .optimizer = "adam", .multi_precision = how->multi_precision,
                       .update_on_kvstore = how->on_store);
    x = tn_app_array(app, 2, rows, values);
    WORKER_OK(w, tn_array_cast(tn_app_ctx(app), x, tn_array_dtype(tn_net_param(net, "0.weight")), &cast));
    x = tn_app_own(app, cast);
    y = tn_app_array(app, 1, classes, labels);
    for (int step = 0; step < 4; step++) {
        if (step == 3) { /* the third one again; values that are set behind the states begin copies anew */
            if (!how->multi_precision)
                tn_trainer_load(t, states);
            tn_net_load_params(net, params);
            if (how->multi_precision)
                tn_trainer_load(t, states);
            WORKER_TRUE(w, tn_trainer_steps(t) == 2);
        }
        tn_app_record(app);
        tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, x), y));
        tn_trainer_step(t, 4 * w->workers);
        if (step == 1 && !w->rank) {
            tn_trainer_save(t, states);
            tn_net_export(net, prefix);
        }
        if (step == 1)
            job_meet(w);
        if (step > 1)
            WORKER_TRUE(w, tn_net_sha256(net, sha[step - 2]));
    }
    if (!tn_app_ok(app))
        worker_fail(w, __FILE__, __LINE__, "%s", tn_app_error(app));
    WORKER_TRUE(w, !strcmp(sha[0], sha[1]));
    WORKER_TRUE(w, tn_app_close(app) == 0);
}

static void a_step_is_made_again(void **state)
{
    static const saved rows[] = {{.dtype = "float32"},
                                 {.dtype = "float32", .multi_precision = 1, .on_store = 1},
                                 {.dtype = "float64", .multi_precision = 1, .on_store = 1},
                                 {.dtype = "float16", .multi_precision = 1, .on_store = 1},
                                 {.dtype = "float16", .multi_precision = 1, .on_store = -1}};
    const job_options o = {.workers = 2, .servers = 2};
    char folder[SCRATCH_PATH_BYTES];

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s", scratch_path("saved"));
    assert_int_equal(mkdir(folder, 0777), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        saved how = rows[i];

        how.folder = folder;
        job_run(&o, NULL, saves, &how);
    }
}

static tn_module *module_of(tn_app *app)
{
    tn_ctx *ctx = tn_app_ctx(app);
    tn_symbol *s = symbol_variable(ctx, "data");
    tn_module *m;

    s = symbol_node(ctx, "FullyConnected", "fc", SETTINGS("num_hidden", "3"), s, NULL);
    s = symbol_node(ctx, "SoftmaxOutput", "softmax", NULL, s, NULL);
    m = tn_module_new(app, .symbol = s);
    tn_symbol_release(s);
    return m;
}

/* Six rows in a step: on two devices, or three on each of two workers; parameters into a file. */
static void module_train(const char *setting, int64_t first, int64_t count, const char *path)
{
    tn_app *app = app_open(SETTINGS(setting));
    const int64_t shape[] = {count, 4};
    tn_module *m = module_of(app);
    tn_params *params;

    tn_module_bind(m, .shapes = {{count, 4}});
    tn_module_init_params(m, .seed = 3 + (uint64_t)(first > 0)); /* worker 0's are those of all */
    tn_module_init_optimizer(m, .lr = 0.2, .momentum = 0.9);
    for (int step = 0; step < 4; step++) {
        float values[24], classes[6];
        tn_array *in[2];

        for (int64_t i = 0; i < count * 4; i++)
            values[i] = (float)((first * 4 + i) * 7 % 11 + step) / 8;
        for (int64_t i = 0; i < count; i++)
            classes[i] = (float)((first + i + step) % 3);
        in[0] = tn_app_array(app, 2, shape, values);
        in[1] = tn_app_array(app, 1, shape, classes);
        tn_module_forward(m, 1, 2, in);
        tn_module_backward(m, NULL);
        tn_module_update(m);
    }
    params = tn_module_params(m);
    if (!tn_app_ok(app) || tn_params_save(params, path)) {
        print_error("%s %s\n", tn_app_error(app), tn_error_text());
        abort();
    }
    tn_params_destroy(params);
    (void)tn_app_close(app);
}

static void module_trains(worker *w)
{
    const char *const *paths = w->arg;

    module_train("kvstore.type=dist_sync", 3 * (int64_t)w->rank, 3, paths[w->rank]);
}

static void file_same(const char *a, const char *b)
{
    FILE *x = fopen(a, "re"), *y = fopen(b, "re");
    int c;

    assert_true(x && y);
    do {
        c = fgetc(x);
        assert_int_equal(c, fgetc(y));
    } while (c != EOF);
    (void)fclose(x);
    (void)fclose(y);
}

static void modules(void **state)
{
    const job_options o = {.workers = 2, .servers = 1};
    char paths[3][SCRATCH_PATH_BYTES];
    const char *list[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%.4000s.%d", scratch_path("module"), i);
        list[i] = paths[i];
    }
    job_run(&o, NULL, module_trains, list);
    module_train("device.default=cpu:0,cpu:1", 0, 6, paths[2]);
    file_same(paths[0], paths[1]);
    file_same(paths[0], paths[2]);
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

/* ---- embeddings with row_sparse gradients ------------------------------------------------------------ */

enum { TOKENS = 6, VOCABULARY = 40 };

typedef struct embedding {
    const char *optimizer;
    double momentum, wd;
    int32_t on_store; /* as .update_on_kvstore */
    bool half;        /* float16, updated in float32 */
    int64_t begin;    /* as .begin_num_update */
    const char *settings[3];
    char sha[JOB_WORKERS_MAX][65], reference[65];
} embedding;

/* Rank `rank` of `workers` looks up what device `rank` of one process does. */
static void embedding_train(tn_app *app, const embedding *e, uint32_t rank, uint32_t workers, char sha[65])
{
    static const int64_t in[] = {4, TOKENS}, rows[] = {4};
    static const float classes[4] = {0, 1, 2, 1};
    tn_net *net = tn_net_new(app);
    tn_trainer *t;

    tn_net_embedding(net, .count = VOCABULARY, .units = 5, .sparse_grad = 1);
    tn_net_dense(net, .units = 3);
    if (e->half)
        tn_net_cast(net, "float16");
    tn_net_init(net, .seed = 2, .shape = {4, TOKENS});
    t = tn_trainer_new(net, .optimizer = e->optimizer, .lr = 0.1, .momentum = e->momentum, .wd = e->wd,
                       .update_on_kvstore = e->on_store, .multi_precision = e->half,
                       .begin_num_update = e->begin);
    for (uint32_t step = 0; step < 3; step++) {
        for (uint32_t part = rank; part < (workers > 1 ? rank + 1 : 2); part++) {
            float ids[4 * TOKENS];
            tn_array *x, *labels = tn_app_array(app, 1, rows, classes);

            for (uint32_t i = 0; i < 4 * TOKENS; i++)
                ids[i] = (float)((i * i + 3 * step + 5 * part) % (VOCABULARY - 5));
            x = tn_app_array(app, 2, in, ids);
            if (workers == 1) { /* to the device of this part */
                const tn_device *device = NULL;
                tn_array *there[2] = {NULL};

                if (tn_device_get(tn_app_ctx(app), part ? "cpu:1" : "cpu:0", &device) ||
                    tn_array_to(tn_app_ctx(app), x, device, &there[0]) ||
                    tn_array_to(tn_app_ctx(app), labels, device, &there[1]))
                    abort();
                x = tn_app_own(app, there[0]);
                labels = tn_app_own(app, there[1]);
            }
            tn_app_record(app);
            tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, x), labels));
        }
        tn_trainer_step(t, 8);
    }
    if (!tn_app_ok(app) || !tn_net_sha256(net, sha) || tn_trainer_steps(t) != e->begin + 3) {
        print_error("%s %d: %s\n", e->optimizer, e->on_store, tn_app_error(app));
        abort();
    }
}

static void embeds(worker *w)
{
    embedding *e = w->arg;
    tn_app *app = app_open(e->settings);

    embedding_train(app, e, w->rank, w->workers, e->sha[w->rank]);
    WORKER_TRUE(w, tn_app_close(app) == 0);
}

/* The bits of one process with as many devices; both update the rows that were looked up. */
static void rows_of_embeddings(void **state)
{
    static const embedding rows[] = {
        {.optimizer = "sgd", .momentum = 0.9, .wd = 0.01, .on_store = 1},
        {.optimizer = "adam", .on_store = 1},
        {.optimizer = "sgd", .momentum = 0.9, .wd = 0.01, .on_store = 1, .half = true},
        {.optimizer = "adam", .wd = 0.01, .on_store = 1, .half = true},
        {.optimizer = "adam", .wd = 0.01, .on_store = -1, .half = true},
        {.optimizer = "sgd", .momentum = 0.9, .wd = 0.01, .on_store = -1},
        {.optimizer = "adam", .on_store = -1},
        {.optimizer = "adagrad", .on_store = -1}};
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        embedding e = rows[i];
        tn_app *app = app_open(SETTINGS("device.default=cpu:0,cpu:1"));

        embedding_train(app, &e, 0, 1, e.reference);
        assert_int_equal(tn_app_close(app), 0);
        e.settings[0] = "kvstore.type=dist_sync";
        job_run(&o, NULL, embeds, &e);
        assert_string_equal(e.sha[0], e.sha[1]);
        assert_string_equal(e.sha[0], e.reference);
    }
}

/* Servers that update have no .begin_num_update. */
static void begin_refused(worker *w)
{
    static const int64_t rows[] = {4, 3};
    tn_app *app = app_open(SETTINGS("kvstore.type=dist_sync"));
    tn_net *net = net_of(app);
    tn_trainer *t;

    tn_net_init(net, .seed = 1, .shape = {4, 3});
    t = tn_trainer_new(net, .optimizer = "adam", .update_on_kvstore = 1, .begin_num_update = 5);
    tn_app_record(app);
    tn_app_backward(app, tn_net_forward(net, tn_app_array(app, 2, rows, (float[12]){1})));
    tn_trainer_step(t, 4);
    WORKER_TRUE(w, tn_app_status(app) == TN_E_UNSUPPORTED);
    WORKER_TRUE(w, strstr(tn_app_error(app), "there is no .begin_num_update"));
    (void)tn_app_close(app);
}

/* Trainers that update themselves count on from .begin_num_update: the bits of one process that does so. */
static void begins_behind_steps(void **state)
{
    static const embedding rows[] = {
        {.optimizer = "adam", .on_store = -1, .begin = 5},
        {.optimizer = "adam", .wd = 0.01, .on_store = -1, .half = true, .begin = 1000}};
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        embedding e = rows[i], anew = rows[i];
        tn_app *app = app_open(SETTINGS("device.default=cpu:0,cpu:1"));

        embedding_train(app, &e, 0, 1, e.reference);
        anew.begin = 0;
        embedding_train(app, &anew, 0, 1, anew.reference);
        assert_string_not_equal(e.reference, anew.reference);
        assert_int_equal(tn_app_close(app), 0);
        e.settings[0] = "kvstore.type=dist_sync";
        job_run(&o, NULL, embeds, &e);
        assert_string_equal(e.sha[0], e.sha[1]);
        assert_string_equal(e.sha[0], e.reference);
    }
    job_run(&o, NULL, begin_refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_one_process),
        cmocka_unit_test(rows_of_embeddings),
        cmocka_unit_test(begins_behind_steps),
        cmocka_unit_test(uneven_data_ends),
        cmocka_unit_test(batches_of_their_own),
        cmocka_unit_test(without_rounds),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(given_store),
        cmocka_unit_test(a_step_is_made_again),
        cmocka_unit_test(modules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
