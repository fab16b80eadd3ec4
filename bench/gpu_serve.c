/*
 * One step of something at a time, measured when stdin says so: Tenon's side of bench/gpu.
 *
 *     gpu_serve DEVICE [SECTION.KEY=VALUE...]
 *
 * Lines, each answered by one:
 *     make train NET BATCH DTYPE     a step of training: zoo:NAME, or bert
 *     make infer NET BATCH DTYPE     a call
 *     make chain LENGTH SIZE f       so many small operators, one after the other, as one net
 *     make gemm M N K DTYPE          a matrix product
 *     make copy BYTES                from one place of the device to another
 *     run N                          "ms T": so many steps, and the wait behind the last
 *     drop
 * An answer "error ..." is of what was asked last; the next `make` begins anew.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/nn.h>
#include <tenon/nn_values.h>
#include <tenon/tenon.h>

#define LINE_BYTES 400
#define RUNS_MAX 1000000
#define WORD_BYTES 64
#define PERIOD 10000 /* of the data */
#define BERT_STEPS 128
#define BERT_UNITS 768
#define BERT_LAYERS 12

typedef struct served served;
struct served {
    tn_app *app;
    tn_net *net;
    tn_trainer *trainer;
    tn_site *site;
    tn_array *x, *y, *out;
    int64_t batch;
    void (*step)(served *s);
};

static int chain_length;

/* ---- nets ---- */

static tn_x chain_net(tn_x x)
{
    for (int i = 0; i < chain_length; i++)
        x = i % 2 ? tn_relu(x) : tn_shift(x, 0.001);
    return x;
}

static tn_x attention(tn_x x) /* (T, N, UNITS) */
{
    tn_x qkv = tn_dense(x, .units = 3 * BERT_UNITS, .keep_axes = 1);
    tn_x scores = tn_op(qkv, "_contrib_interleaved_matmul_selfatt_qk", .attrs = {"heads", "12"});

    x = tn_op(qkv, "_contrib_interleaved_matmul_selfatt_valatt", .with = {tn_softmax(scores)},
              .attrs = {"heads", "12"});
    return tn_dense(x, .units = BERT_UNITS, .keep_axes = 1);
}

/* Hidden states (T, N, UNITS) to (N, 2), from the first place: the encoder without its tables of words. */
static tn_x bert_net(tn_x x)
{
    for (int i = 0; i < BERT_LAYERS; i++) {
        tn_x y;

        tn_scope_begin(x, "layer%d", i);
        x = tn_layernorm(tn_add(x, attention(x)));
        y = tn_gelu(tn_dense(x, .units = 4 * BERT_UNITS, .keep_axes = 1));
        x = tn_layernorm(tn_add(x, tn_dense(y, .units = BERT_UNITS, .keep_axes = 1)));
        tn_scope_end(x);
    }
    x = tn_op(x, "slice_axis", .attrs = {"axis", "0", "begin", "0", "end", "1"});
    return tn_dense(tn_reshape(x, -1, BERT_UNITS), .units = 2);
}

/* ---- steps ---- */

static void train_step(served *s)
{
    const size_t mark = tn_app_mark(s->app);
    tn_array *loss;

    tn_app_record(s->app);
    loss = tn_loss_softmax_ce(s->app, tn_net_forward(s->net, s->x), s->y);
    tn_app_backward(s->app, loss);
    tn_trainer_step(s->trainer, s->batch);
    tn_app_release(s->app, mark);
}

static void infer_step(served *s)
{
    const size_t mark = tn_app_mark(s->app);

    (void)tn_net_forward(s->net, s->x);
    tn_app_release(s->app, mark);
}

static void site_step(served *s)
{
    tn_array *in[] = {s->x, s->y};

    (void)tn_app_check(s->app, tn_invoke(s->site, s->y ? 2 : 1, in, 1, &s->out));
}

/* ---- making ---- */

static int32_t dtype_of(const char *name)
{
    for (int32_t d = 0; d < TN_DTYPE_LIMIT; d++)
        if (tn_dtype_name(d) && !strcmp(tn_dtype_name(d), name))
            return d;
    return TN_DTYPE_UNKNOWN;
}

/* Small numbers of both signs, or classes, on the device. */
static tn_array *filled(served *s, int32_t ndim, const int64_t *shape, const char *dtype, int classes)
{
    const int32_t to = dtype_of(dtype);
    static float some[PERIOD];
    int64_t count = 1;
    tn_array *made, *cast = NULL;
    float *values;

    for (int32_t i = 0; i < ndim; i++)
        count *= shape[i];
    if (!(values = malloc((size_t)count * sizeof *values + 1))) {
        (void)tn_app_fail(s->app, TN_E_NOMEM, "no memory for the data");
        return NULL;
    }
    for (int i = 0; i < PERIOD; i++)
        some[i] = classes ? (float)(i % classes) : sinf((float)i) / 8.0f;
    for (int64_t i = 0; i < count; i++)
        values[i] = some[i % PERIOD];
    made = tn_app_array(s->app, ndim, shape, values);
    free(values);
    if (made && to != TN_F32) {
        const char *const attrs[] = {"dtype", dtype, NULL};
        tn_site *site = NULL;

        if (!tn_app_check(s->app, tn_site_create(tn_app_ctx(s->app), "Cast", attrs, &site)) &&
            !tn_app_check(s->app, tn_invoke(site, 1, &made, 1, &cast)))
            made = cast;
        tn_site_release(site);
    } else if (made) {
        tn_array_retain(made);
    }
    return tn_app_ok(s->app) ? made : NULL;
}

static void net_make(served *s, const char *name, int64_t batch, const char *dtype, int train)
{
    const int bert = !strcmp(name, "bert"), small = !strcmp(name, "zoo:lenet") || !strcmp(name, "zoo:mlp");
    const int64_t images[] = {batch, small ? 1 : 3, small ? 28 : 224, small ? 28 : 224},
                  words[] = {BERT_STEPS, batch, BERT_UNITS}, labels[] = {batch};

    s->net = bert ? tn_net_function(s->app, bert_net, .name = "bert") : tn_net_zoo(s->app, name);
    s->batch = batch;
    tn_net_init(s->net, .with = "xavier", .seed = 1);
    if (strcmp(dtype, "float32") != 0)
        tn_net_cast(s->net, dtype);
    tn_net_hybridize(s->net, .static_alloc = 1, .static_shape = 1);
    s->x = filled(s, bert ? 3 : 4, bert ? words : images, dtype, 0);
    s->y = train ? filled(s, 1, labels, "float32", bert ? 2 : 10) : NULL;
    if (train)
        s->trainer = tn_trainer_new(s->net, .lr = 0.0001, .momentum = 0.9);
    s->step = train ? train_step : infer_step;
}

static void site_make(served *s, const char *op)
{
    s->step = site_step;
    (void)tn_app_check(s->app, tn_site_create(tn_app_ctx(s->app), op, NULL, &s->site));
}

static void make(served *s, const char *text)
{
    char kind[WORD_BYTES] = "", name[WORD_BYTES] = "", dtype[WORD_BYTES] = "float32";
    long long a = 0, b = 0, c = 0;

    if (sscanf(text, "%63s", kind) == 1 && (!strcmp(kind, "train") || !strcmp(kind, "infer")) &&
        sscanf(text, "%*s %63s %lld %63s", name, &a, dtype) == 3 && a > 0 && a <= 4096) {
        net_make(s, name, a, dtype, *kind == 't');
    } else if (!strcmp(kind, "chain") && sscanf(text, "%*s %lld %lld", &a, &b) == 2 && a > 0 && a <= 10000 &&
               b > 0 && b <= 1 << 24) {
        chain_length = (int)a;
        s->net = tn_net_function(s->app, chain_net, .name = "chain");
        tn_net_hybridize(s->net, .static_alloc = 1, .static_shape = 1);
        s->x = filled(s, 1, (int64_t[]){b}, "float32", 0);
        s->step = infer_step;
    } else if (!strcmp(kind, "gemm") && sscanf(text, "%*s %lld %lld %lld %63s", &a, &b, &c, dtype) == 4 &&
               a > 0 && b > 0 && c > 0 && a <= 65536 && b <= 65536 && c <= 65536) {
        s->x = filled(s, 2, (int64_t[]){a, c}, dtype, 0);
        s->y = filled(s, 2, (int64_t[]){c, b}, dtype, 0);
        site_make(s, "dot");
    } else if (!strcmp(kind, "copy") && sscanf(text, "%*s %lld", &a) == 1 && a >= 4 && a <= 1ll << 34) {
        s->x = filled(s, 1, (int64_t[]){a / 4}, "float32", 0);
        site_make(s, "_copy");
    } else {
        (void)tn_app_fail(s->app, TN_E_ARG, "gpu_serve: this is nothing to make");
    }
}

static void drop(served *s)
{
    tn_site_release(s->site);
    tn_array_release(s->x);
    tn_array_release(s->y);
    tn_array_release(s->out);
    if (s->app)
        (void)tn_app_close(s->app);
    *s = (served){.app = NULL};
}

/* ---- lines ---- */

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double run(served *s, long steps)
{
    const double start = now_ms();

    for (long i = 0; tn_app_ok(s->app) && i < steps; i++)
        s->step(s);
    if (tn_app_ok(s->app))
        (void)tn_app_check(s->app, tn_wait_all(tn_app_ctx(s->app)));
    return now_ms() - start;
}

static void answer(served *s, const char *well)
{
    char text[600];

    if (s->app && !tn_app_ok(s->app)) {
        (void)snprintf(text, sizeof text, "%s", tn_app_error(s->app));
        for (char *at = text; *at; at++)
            *at = *at == '\n' ? ' ' : *at;
        printf("error %s\n", text);
        drop(s);
    } else {
        printf("%s\n", well);
    }
    (void)fflush(stdout);
}

static void logged(void *arg, int32_t level, const char *text)
{
    (void)arg;
    (void)level;
    (void)fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
    char line[LINE_BYTES], well[64];
    served s = {.app = NULL};

    if (argc < 2) {
        (void)fprintf(stderr, "usage: gpu_serve DEVICE [SECTION.KEY=VALUE...]\n");
        return 2;
    }
    printf("ready tenon %s\n", tn_version());
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const long steps = strncmp(line, "run ", 4) != 0 ? 0 : atol(line + 4);

        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "make ", 5)) {
            drop(&s);
            s.app = tn_app_open(.name = "gpu_serve", .device = argv[1], .log = logged,
                                .settings = argc > 2 ? (const char *const *)argv + 2 : NULL);
            if (tn_app_ok(s.app))
                make(&s, line + 5);
            answer(&s, "made");
        } else if (s.step && steps > 0 && steps <= RUNS_MAX) {
            const double ms = run(&s, steps);

            (void)snprintf(well, sizeof well, "ms %.6f", ms);
            answer(&s, well);
        } else if (!strcmp(line, "drop")) {
            drop(&s);
            answer(&s, "dropped");
        } else {
            printf("error gpu_serve: make, run or drop is asked, not \"%s\"\n", line);
            (void)fflush(stdout);
        }
    }
    drop(&s);
    return 0;
}
