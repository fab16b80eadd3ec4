/*
 * What a second thread gives: a 512x512x512 matrix product, and a training step of LeNet at 28x28, batch 64.
 *
 * Two contexts, one with engine.threads=1 and one with 2, run in turns in one process: A B A B. Printed are
 * medians and their ratio, and the ratio of two series of the first context, which is 1 on a quiet machine.
 *
 *     threads [--rounds N] [--json] [--set SECTION.KEY=VALUE]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/nn.h>
#include <tenon/tenon.h>

#define ROUNDS_MAX 1000
#define SIZE 512
#define BATCH 64

typedef struct side {
    tn_app *app;
    tn_array *a, *b, *x, *y;
    tn_site *dot;
    tn_net *net;
    tn_trainer *trainer;
} side;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static tn_array *filled(tn_app *app, int32_t ndim, const int64_t *shape, int classes)
{
    int64_t count = 1;
    tn_array *a;
    float *values;

    for (int32_t i = 0; i < ndim; i++)
        count *= shape[i];
    values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count && values; i++)
        values[i] = classes ? (float)(i % classes) : sinf((float)i) / 8.0f;
    a = values ? tn_app_array(app, ndim, shape, values) : NULL;
    free(values);
    if (a)
        tn_array_retain(a);
    return a;
}

static int side_open(side *s, const char *threads, const char *more)
{
    const char *const settings[] = {threads, "model.pad=0", more, NULL};
    const int64_t square[] = {SIZE, SIZE}, images[] = {BATCH, 1, 28, 28}, labels[] = {BATCH};

    s->app = tn_app_open(.name = "threads", .settings = settings, .errors = stderr);
    s->a = filled(s->app, 2, square, 0);
    s->b = filled(s->app, 2, square, 0);
    s->x = filled(s->app, 4, images, 0);
    s->y = filled(s->app, 1, labels, 10);
    s->net = tn_net_zoo(s->app, "zoo:lenet");
    tn_net_init(s->net, .with = "xavier", .seed = 42);
    tn_net_hybridize(s->net, .static_alloc = 1, .static_shape = 1);
    s->trainer = tn_trainer_new(s->net, .lr = 0.01, .momentum = 0.9);
    if (tn_app_ok(s->app))
        tn_app_check(s->app, tn_site_create(tn_app_ctx(s->app), "dot", NULL, &s->dot));
    return tn_app_ok(s->app);
}

static double product(side *s)
{
    tn_array *in[] = {s->a, s->b}, *out = NULL;
    double start = now_ms();

    if (!tn_app_check(s->app, tn_invoke(s->dot, 2, in, 1, &out)))
        tn_app_check(s->app, tn_array_wait(out));
    start = now_ms() - start;
    tn_array_release(out);
    return start;
}

static double step(side *s)
{
    const size_t mark = tn_app_mark(s->app);
    tn_array *loss;
    double start = now_ms();

    tn_app_record(s->app);
    loss = tn_loss_softmax_ce(s->app, tn_net_forward(s->net, s->x), s->y);
    tn_app_backward(s->app, loss);
    tn_trainer_step(s->trainer, BATCH);
    tn_app_check(s->app, tn_wait_all(tn_app_ctx(s->app)));
    start = now_ms() - start;
    tn_app_release(s->app, mark);
    return start;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *ms, int count)
{
    qsort(ms, (size_t)count, sizeof *ms, by_value);
    return ms[count / 2];
}

static void measure(side s[2], double (*body)(side *), int rounds, const char *name, int json)
{
    static double one[ROUNDS_MAX], two[ROUNDS_MAX], again[ROUNDS_MAX];
    double a, b, c;

    for (int i = -3; i < rounds; i++) {
        const int at = i < 0 ? 0 : i;

        one[at] = body(&s[0]);
        two[at] = body(&s[1]);
        again[at] = body(&s[0]);
    }
    a = median(one, rounds);
    b = median(two, rounds);
    c = median(again, rounds);
    printf(json ? "{\"row\":\"%s\",\"one_ms\":%.4f,\"two_ms\":%.4f,\"ratio\":%.3f,\"a_over_a\":%.3f,"
                  "\"best_ratio\":%.3f}\n"
                : "%-12s 1 thread %8.3f ms, 2 threads %8.3f ms: %.2f times as fast (A/A %.2f, of the best "
                  "runs %.2f)\n",
           name, a, b, a / b, a / c, one[0] / two[0]);
}

static void side_close(side *s)
{
    tn_site_release(s->dot);
    tn_array_release(s->a);
    tn_array_release(s->b);
    tn_array_release(s->x);
    tn_array_release(s->y);
}

int main(int argc, char **argv)
{
    const char *more = NULL;
    int rounds = 50, json = 0, failed;
    side s[2] = {{0}};

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--set") && i + 1 < argc)
            more = argv[++i];
        else if (!strcmp(argv[i], "--json"))
            json = 1;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    if (side_open(&s[0], "engine.threads=1", more) && side_open(&s[1], "engine.threads=2", more)) {
        measure(s, product, rounds, "gemm512", json);
        measure(s, step, rounds, "lenet28_b64", json);
    }
    side_close(&s[0]);
    side_close(&s[1]);
    failed = tn_app_close(s[0].app);
    return tn_app_close(s[1].app) || failed;
}
