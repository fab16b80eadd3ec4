/*
 * tenon bench engine: what the library itself costs, around kernels that do next to nothing.
 *
 * Each figure is measured in two series, A and B, whose rounds take turns on the same code: what differs
 * between them is the machine, not Tenon. Where their medians differ by more than 10 %, or the median is over
 * twice the best round, nothing is said to be known: exit code 1.
 */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define SPREAD_MAX 0.10
#define SLOWER_MAX 2.0 /* median over best round: above, both series were disturbed alike */
/* Of each series; a round takes less than a slice of the scheduler's time, so most are undisturbed. */
#define ROUNDS 101
#define WARM_ROUNDS 5

#define REPLAY_NODES 65536
#define REPLAY_BACK 64   /* the second input is the output of so many nodes before: so many blocks are live */
#define REPLAY_CALLS 1   /* of a round */
#define PUSH_TASKS 16384 /* of a round */
#define PUSH_VARS 64
#define EAGER_CALLS 5000
#define CHAIN_OPS 100
#define CHAIN_CALLS 20

typedef struct bench {
    tn_app *app;
    tn_ctx *ctx;
    tn_array *x, *y;
    tn_program *program;
    tn_site *site;
    tn_var *vars[PUSH_VARS];
    uint8_t pick[PUSH_TASKS][3]; /* variables of a task: two read, one written */
    uint64_t touched;
} bench;

typedef struct figure {
    const char *name, *what;
    double unit_ns, goal; /* of the figure: 1 for ns, 1000 for us */
    double count;         /* operations of a round */
    bool host;            /* its operator has a kernel for hosts alone */
    tn_status (*setup)(bench *b);
    tn_status (*round)(bench *b);
    void (*teardown)(bench *b);
} figure;

static tn_status vector(bench *b, int64_t count, float value, tn_array **out)
{
    tn_status st = tn_array_create(b->ctx, TN_F32, 1, &count, NULL, out);

    return st ? st : tn_array_fill(*out, value);
}

static void teardown(bench *b)
{
    tn_program_destroy(b->program);
    tn_site_release(b->site);
    tn_array_release(b->x);
    tn_array_release(b->y);
    b->program = NULL;
    b->site = NULL;
    b->x = b->y = NULL;
}

/* ---- replay ---- */

static tn_status touch_symbol(bench *b, tn_symbol *const in[2], tn_symbol **out)
{
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = 2, .op = CLI_BENCH_TOUCH, .in = in};

    return tn_symbol_op(b->ctx, &call, out);
}

static tn_status replay_symbol(bench *b, tn_symbol **out)
{
    tn_symbol *recent[REPLAY_BACK] = {NULL}, *next = NULL;
    tn_status st = tn_symbol_variable(b->ctx, "x", &recent[0]);

    for (size_t i = 1; !st && i < REPLAY_BACK; i++) {
        recent[i] = recent[0];
        tn_symbol_retain(recent[i]);
    }
    for (size_t i = 0; !st && i < REPLAY_NODES; i++) {
        tn_symbol *const in[2] = {recent[(i + REPLAY_BACK - 1) % REPLAY_BACK], recent[i % REPLAY_BACK]};

        if ((st = touch_symbol(b, in, &next)))
            break;
        tn_symbol_release(recent[i % REPLAY_BACK]);
        recent[i % REPLAY_BACK] = next;
    }
    if (!st) {
        *out = recent[(REPLAY_NODES - 1) % REPLAY_BACK];
        tn_symbol_retain(*out);
    }
    for (size_t i = 0; i < REPLAY_BACK; i++)
        tn_symbol_release(recent[i]);
    return st;
}

static tn_status replay_round(bench *b)
{
    tn_status st = TN_OK;

    for (int i = 0; !st && i < REPLAY_CALLS; i++)
        st = tn_program_run(b->program, 1, &b->x, 1, &b->y);
    return st ? st : tn_array_wait(b->y);
}

static tn_status replay_setup(bench *b)
{
    tn_symbol *symbol = NULL;
    tn_params *params = NULL;
    double value = 0;
    tn_status st;

    if (!(st = tn_plugin_add(b->ctx, &cli_bench_plugin)) && !(st = replay_symbol(b, &symbol)) &&
        !(st = tn_params_create(&params)) && !(st = tn_program_create(b->ctx, symbol, params, &b->program)) &&
        !(st = vector(b, 1, 0, &b->x)) && !(st = replay_round(b)) && !(st = tn_array_scalar(b->y, &value)) &&
        value != REPLAY_NODES)
        st = tn_app_fail(b->app, TN_E_INTERNAL, "the replayed program gave a wrong number");
    tn_params_destroy(params);
    tn_symbol_release(symbol);
    return st;
}

/* ---- push ---- */

static tn_status touch(void *arg)
{
    ++*(uint64_t *)arg; /* one worker runs them all */
    return TN_OK;
}

static tn_status push_setup(bench *b)
{
    uint32_t random = 1;
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < PUSH_VARS; i++)
        st = tn_var_create(b->ctx, &b->vars[i]);
    for (size_t i = 0; i < PUSH_TASKS; i++) {
        for (int k = 0; k < 3; k++) {
            random = random * 1664525u + 1013904223u;
            b->pick[i][k] = (uint8_t)(random >> 26);
        }
        while (b->pick[i][1] == b->pick[i][0] || b->pick[i][1] == b->pick[i][2] ||
               b->pick[i][0] == b->pick[i][2]) {
            b->pick[i][0] = (uint8_t)((b->pick[i][0] + 1) % PUSH_VARS);
            b->pick[i][1] = (uint8_t)((b->pick[i][1] + 3) % PUSH_VARS);
        }
    }
    return st;
}

static tn_status push_round(bench *b)
{
    uint64_t before = b->touched;
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < PUSH_TASKS; i++) {
        tn_var *const reads[2] = {b->vars[b->pick[i][0]], b->vars[b->pick[i][1]]}, *const write =
                                                                                       b->vars[b->pick[i][2]];
        const tn_task task = {.struct_size = TN_SIZE(tn_task),
                              .run = touch,
                              .arg = &b->touched,
                              .reads = reads,
                              .writes = &write,
                              .read_count = 2,
                              .write_count = 1,
                              .name = "bench"};

        st = tn_engine_push(b->ctx, &task);
    }
    if (!st && !(st = tn_wait_all(b->ctx)) && b->touched - before != PUSH_TASKS)
        st = tn_app_fail(b->app, TN_E_INTERNAL, "pushed work did not run once each");
    return st;
}

static void push_teardown(bench *b)
{
    for (size_t i = 0; i < PUSH_VARS; i++) {
        tn_var_destroy(b->ctx, b->vars[i]);
        b->vars[i] = NULL;
    }
}

/* ---- eager ---- */

static tn_status eager_setup(bench *b)
{
    tn_status st;

    if ((st = vector(b, 4, 1, &b->x)) || (st = vector(b, 4, 2, &b->y)))
        return st;
    return tn_site_create(b->ctx, "elemwise_add", NULL, &b->site);
}

static tn_status eager_round(bench *b)
{
    tn_array *const in[2] = {b->x, b->y};
    tn_status st = TN_OK;

    for (int i = 0; !st && i < EAGER_CALLS; i++) {
        tn_array *out = NULL;

        st = tn_invoke(b->site, 2, in, 1, &out);
        tn_array_release(out);
    }
    return st ? st : tn_wait_all(b->ctx);
}

/* ---- chain ---- */

static tn_status chain_setup(bench *b)
{
    const char *const attrs[] = {"scalar", "1.0001", NULL};
    tn_status st;

    if ((st = vector(b, 4, 1, &b->x)) || (st = tn_site_create(b->ctx, "_mul_scalar", attrs, &b->site)))
        return st;
    return tn_attach_grad(b->ctx, b->x, TN_MODE_WRITE, NULL);
}

static tn_status chain_once(bench *b)
{
    tn_array *last = b->x;
    tn_status st = TN_OK;

    tn_array_retain(last);
    (void)tn_record_set(1);
    for (int i = 0; !st && i < CHAIN_OPS; i++) {
        tn_array *next = NULL;

        if (!(st = tn_invoke(b->site, 1, &last, 1, &next))) {
            tn_array_release(last);
            last = next;
        }
    }
    (void)tn_record_set(0);
    if (!st)
        st = tn_backward(b->ctx, 1, &last, NULL, 0);
    tn_array_release(last);
    return st ? st : tn_array_wait(tn_array_grad(b->x));
}

static tn_status chain_round(bench *b)
{
    double expected = pow(1.0001, CHAIN_OPS);
    float grad[4] = {0};
    tn_status st = TN_OK;

    for (int i = 0; !st && i < CHAIN_CALLS; i++)
        st = chain_once(b);
    if (!st && !(st = tn_array_read(tn_array_grad(b->x), grad, sizeof grad)) &&
        !(fabs(grad[3] - expected) < 1e-4))
        st = tn_app_fail(b->app, TN_E_INTERNAL, "the chain's gradient is wrong");
    return st;
}

/* ---- series ---- */

static const figure figures[] = {
    {"replay_ns", "one node of a program of 65,536", 1, 10, (double)REPLAY_NODES *REPLAY_CALLS, true,
     replay_setup, replay_round, teardown},
    {"push_ns", "one operation, 2 reads and 1 write over 64 variables", 1, 100, PUSH_TASKS, false, push_setup,
     push_round, push_teardown},
    {"eager_ns", "one addition of 4 elements through a call site", 1, 150, EAGER_CALLS, false, eager_setup,
     eager_round, teardown},
    {"chain100_us", "100 operations forward and backward", 1000, 40, CHAIN_CALLS, false, chain_setup,
     chain_round, teardown},
};
#define FIGURES (sizeof figures / sizeof *figures)

typedef struct result {
    double value, best; /* median and smallest of all rounds */
    double spread;      /* between the medians of A and B, as a part of the smaller */
    bool left_out;
} result;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static tn_status measure(bench *b, const figure *f, result *out)
{
    double series[2][ROUNDS], both[2 * ROUNDS], m[2];
    tn_status st = f->setup(b);

    for (int i = 0; !st && i < WARM_ROUNDS; i++)
        st = f->round(b);
    for (size_t i = 0; !st && i < 2 * ROUNDS; i++) {
        double start = cli_now();

        st = f->round(b);
        series[i % 2][i / 2] = both[i] = (cli_now() - start) * 1e9 / f->unit_ns / f->count;
    }
    f->teardown(b);
    if (st)
        return tn_app_check(b->app, st);
    m[0] = median(series[0], ROUNDS);
    m[1] = median(series[1], ROUNDS);
    out->value = median(both, 2 * ROUNDS);
    out->best = both[0];
    out->spread = fabs(m[0] - m[1]) / fmin(m[0], m[1]);
    return TN_OK;
}

static void print(const cli_args *args, const result *results, bool noisy)
{
    json_t *o, *spread, *best;

    if (!args->value[OPT_JSON]) {
        for (size_t i = 0; i < FIGURES; i++)
            if (results[i].left_out)
                (void)printf("%-12s        -  (its operator runs on hosts alone)  %s\n", figures[i].name,
                             figures[i].what);
            else
                (void)printf("%-12s %8.2f  (best %.2f, goal %g, A/A spread %.1f %%)  %s\n", figures[i].name,
                             results[i].value, results[i].best, figures[i].goal, 100 * results[i].spread,
                             figures[i].what);
        return;
    }
    o = json_object();
    spread = json_object();
    best = json_object();
    if (noisy)
        (void)json_object_set_new(o, "noisy", json_true());
    for (size_t i = 0; i < FIGURES; i++) {
        if (results[i].left_out)
            continue;
        (void)json_object_set_new(o, figures[i].name, cli_json_number(results[i].value));
        (void)json_object_set_new(best, figures[i].name, cli_json_number(results[i].best));
        (void)json_object_set_new(spread, figures[i].name, cli_json_number(results[i].spread));
    }
    (void)json_object_set_new(o, "best", best);
    (void)json_object_set_new(o, "spread", spread);
    cli_json_line(o);
}

static bool on_host(const tn_app *app)
{
    return !strncmp(tn_app_device(app), "cpu", 3);
}

int cmd_bench_engine(const cli_args *args)
{
    bench *b = calloc(1, sizeof *b);
    result results[FIGURES] = {{0, 0, 0, false}};
    bool noisy = false;
    int code;

    if (!b) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    b->app = cli_app_open(args, NULL);
    b->ctx = tn_app_ctx(b->app);
    for (size_t i = 0; tn_app_ok(b->app) && i < FIGURES; i++) {
        if ((results[i].left_out = figures[i].host && !on_host(b->app)))
            continue;
        (void)measure(b, &figures[i], &results[i]);
        noisy = noisy || !(results[i].spread <= SPREAD_MAX) || !(results[i].best > 0) ||
                results[i].value > SLOWER_MAX * results[i].best; /* best 0: the clock is too coarse */
    }
    if (tn_app_ok(b->app))
        print(args, results, noisy);
    if (tn_app_ok(b->app) && noisy)
        cli_error(
            "two series of the same measurement differ by more than %.0f %%, or most rounds took over %g "
            "times the best one: this machine is too busy to measure",
            100 * SPREAD_MAX, SLOWER_MAX);
    code = cli_app_close(b->app, args);
    free(b);
    return code ? code : noisy ? CLI_EXIT_FAILED : 0;
}
