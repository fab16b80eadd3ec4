/*
 * What pass pointwise gives: nets of pointwise operators with it and without it, called and trained.
 *
 * Two contexts of one thread, one with compile.passes_off=pointwise, run in turns in one process: A B A.
 * Printed are medians, their ratio, and that of the two series of the first context, which is 1 on a quiet
 * machine.
 *
 *     pointwise [--rounds N] [--set SECTION.KEY=VALUE]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

#define ROUNDS_MAX 1000
#define INPUTS_MAX 5
#define NODES_MAX 12

typedef struct node { /* operands: an input, or 100 + an earlier node */
    const char *op, *attr, *text;
    int in[2];
} node;

typedef struct net {
    const char *name;
    int inputs;
    int64_t rows, columns;
    node nodes[NODES_MAX];
} net;

static const net nets[] = {
    {"cheap5",
     1,
     1024,
     1024, /* five operations that memory bounds */
     {{"_mul_scalar", "scalar", "0.5", {0, -1}},
      {"_plus_scalar", "scalar", "1", {100, -1}},
      {"relu", NULL, NULL, {101, -1}},
      {"elemwise_mul", NULL, NULL, {102, 0}},
      {"_minus_scalar", "scalar", "2", {103, -1}}}},
    {"swish5",
     1,
     1024,
     1024, /* x / (1 + exp(-1.5 x)) */
     {{"_mul_scalar", "scalar", "1.5", {0, -1}},
      {"negative", NULL, NULL, {100, -1}},
      {"exp", NULL, NULL, {101, -1}},
      {"_plus_scalar", "scalar", "1", {102, -1}},
      {"elemwise_div", NULL, NULL, {0, 103}}}},
    {"lstm_gates",
     5,
     64,
     1024, /* i, f, g, o, c -> h */
     {{"sigmoid", NULL, NULL, {0, -1}},
      {"sigmoid", NULL, NULL, {1, -1}},
      {"tanh", NULL, NULL, {2, -1}},
      {"sigmoid", NULL, NULL, {3, -1}},
      {"elemwise_mul", NULL, NULL, {101, 4}},
      {"elemwise_mul", NULL, NULL, {100, 102}},
      {"elemwise_add", NULL, NULL, {104, 105}},
      {"tanh", NULL, NULL, {106, -1}},
      {"elemwise_mul", NULL, NULL, {103, 107}}}},
};

typedef struct side {
    tn_ctx *ctx;
    const net *n;
    tn_cached_op *op;
    tn_array *in[INPUTS_MAX], *out;
} side;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static tn_status net_make(side *s)
{
    tn_symbol *values[INPUTS_MAX + NODES_MAX] = {NULL}, *in[2];
    const net *n = s->n;
    int count = 0;
    tn_status st = TN_OK;

    for (; count < n->inputs && !st; count++)
        st = tn_symbol_variable(s->ctx, (const char *[]){"a", "b", "c", "d", "e"}[count], &values[count]);
    for (int k = 0; k < NODES_MAX && n->nodes[k].op && !st; k++, count++) {
        const node *o = &n->nodes[k];
        const char *const attrs[] = {o->attr, o->text, NULL};
        tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call), .op = o->op, .attrs = attrs, .in = in};

        for (int i = 0; i < 2 && o->in[i] >= 0; i++, call.in_count++)
            in[i] = values[o->in[i] >= 100 ? n->inputs + o->in[i] - 100 : o->in[i]];
        st = tn_symbol_op(s->ctx, &call, &values[count]);
    }
    if (!st)
        st = tn_cached_op_create(s->ctx, values[count - 1], NULL, &s->op);
    for (int i = 0; i < count; i++)
        tn_symbol_release(values[i]);
    return st;
}

static tn_status side_open(side *s, const net *n, const char *setting, const char *more)
{
    const char *const settings[] = {"engine.threads=1", setting, more, NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    const int64_t shape[] = {n->rows, n->columns};
    float *values = malloc((size_t)(n->rows * n->columns) * sizeof *values);
    tn_status st = values ? tn_open(&options, &s->ctx) : TN_E_NOMEM;

    s->n = n;
    for (int i = 0; i < n->inputs && !st; i++) {
        for (int64_t k = 0; k < n->rows * n->columns; k++)
            values[k] = sinf((float)(k + i));
        if (!(st = tn_array_from(s->ctx, TN_F32, 2, shape, values, &s->in[i])))
            st = tn_attach_grad(s->ctx, s->in[i], TN_MODE_WRITE, NULL);
    }
    free(values);
    return st ? st : net_make(s);
}

static double call_ms(side *s)
{
    const double start = now_ms();

    if (tn_cached_op_call(s->op, (uint32_t)s->n->inputs, s->in, 1, &s->out) || tn_array_wait(s->out))
        return NAN;
    return now_ms() - start;
}

static double step_ms(side *s)
{
    const double start = now_ms();
    tn_array *y = NULL;
    tn_status st;

    (void)tn_record_set(1);
    (void)tn_train_set(1);
    st = tn_cached_op_call(s->op, (uint32_t)s->n->inputs, s->in, 1, &y);
    (void)tn_record_set(0);
    (void)tn_train_set(0);
    if (!st)
        st = tn_backward(s->ctx, 1, &y, NULL, 0);
    if (!st)
        st = tn_wait_all(s->ctx);
    tn_array_release(y);
    return st ? NAN : now_ms() - start;
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

static void measure(side s[2], double (*body)(side *), int rounds, const char *what)
{
    static double with[ROUNDS_MAX], without[ROUNDS_MAX], again[ROUNDS_MAX];
    double a, b, c;

    for (int i = -5; i < rounds; i++) {
        const int at = i < 0 ? 0 : i;

        with[at] = body(&s[0]);
        without[at] = body(&s[1]);
        again[at] = body(&s[0]);
    }
    a = median(with, rounds);
    b = median(without, rounds);
    c = median(again, rounds);
    printf(
        "%-10s %-5s with %8.3f ms, without %8.3f ms: %.2f times as fast (A/A %.2f, of the best runs %.2f)\n",
        s->n->name, what, a, b, b / a, a / c, without[0] / with[0]);
}

static void side_close(side *s)
{
    tn_cached_op_release(s->op);
    for (int i = 0; i < s->n->inputs; i++)
        tn_array_release(s->in[i]);
    tn_array_release(s->out);
    if (s->ctx)
        (void)tn_close(s->ctx);
}

int main(int argc, char **argv)
{
    const char *more = NULL;
    int rounds = 200, failed = 0;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--set") && i + 1 < argc)
            more = argv[++i];
    }
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    for (size_t k = 0; k < sizeof nets / sizeof *nets && !failed; k++) {
        side s[2] = {{0}};

        failed = side_open(&s[0], &nets[k], "compile.passes_off=", more) ||
                 side_open(&s[1], &nets[k], "compile.passes_off=pointwise", more);
        if (failed) {
            fprintf(stderr, "pointwise: %s\n", tn_error_text());
        } else {
            measure(s, call_ms, rounds, "call");
            measure(s, step_ms, rounds, "step");
        }
        for (int i = 0; i < 2; i++)
            side_close(&s[i]);
    }
    return failed;
}
