/*
 * Compiled nets on a device that records graphs: the first run of a segment is plain, later ones are
 * launches, with an update for each other frame. The bits are those of the CPU, whatever is late; failures
 * come out as ever.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/support.h"
#include "support/list.h"

#define COUNT 37
#define ROUNDS 5

static const char *const engines[] = {"engine.type=threaded", "engine.type=naive", "engine.type=stepped"};

typedef struct outcome { /* of each round: output and gradient */
    float y[ROUNDS][COUNT], dx[ROUNDS][COUNT];
} outcome;

static tn_symbol *node(tn_ctx *ctx, const char *op, uint32_t count, tn_symbol *const *in)
{
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = op, .in_count = count, .in = in};
    tn_symbol *out = NULL;

    assert_ok(tn_symbol_op(ctx, &call, &out));
    return out;
}

/* y = tanh(x * x + x) */
static tn_cached_op *net_make(tn_ctx *ctx)
{
    tn_symbol *x = NULL, *square, *sum, *y;
    tn_cached_op *net = NULL;

    assert_ok(tn_symbol_variable(ctx, "x", &x));
    square = node(ctx, "square", 1, &x);
    sum = node(ctx, "elemwise_add", 2, (tn_symbol *const[]){square, x});
    y = node(ctx, "tanh", 1, &sum);
    assert_ok(tn_cached_op_create(ctx, y, NULL, &net));
    tn_symbol_release(x);
    tn_symbol_release(square);
    tn_symbol_release(sum);
    tn_symbol_release(y);
    return net;
}

static tn_array *input(tn_ctx *ctx, int round)
{
    float values[COUNT];
    tn_array *on_host = NULL, *a = NULL;

    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i + round) / 20 - 1;
    on_host = test_array(ctx, 1, (const int64_t[]){COUNT}, values);
    assert_ok(tn_array_to(ctx, on_host, NULL, &a));
    tn_array_release(on_host);
    return a;
}

/* Two calls that follow each other, each with its frame until both are differentiated. TN_OK, or the first
 * failure. */
static tn_status round_run(tn_ctx *ctx, tn_cached_op *net, int round, float *y, float *dx)
{
    tn_array *x = input(ctx, round), *a = NULL, *b = NULL;
    tn_status st = tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL);

    tn_record_set(1);
    (void)(st || (st = tn_cached_op_call(net, 1, &x, 1, &a)) || (st = tn_cached_op_call(net, 1, &a, 1, &b)));
    tn_record_set(0);
    (void)(st || (st = tn_backward(ctx, 1, &b, NULL, 0)) || (st = tn_array_read(b, y, COUNT * sizeof *y)) ||
           (st = tn_array_read(tn_array_grad(x), dx, COUNT * sizeof *dx)));
    tn_array_release(x);
    tn_array_release(a);
    tn_array_release(b);
    return st;
}

static tn_stats stats_of(tn_ctx *ctx)
{
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_ctx_stats(ctx, &stats));
    return stats;
}

static tn_stats rounds_run(const char *const *settings, outcome *out)
{
    tn_ctx *ctx = test_open(settings);
    tn_cached_op *net = net_make(ctx);
    tn_stats stats;

    for (int i = 0; i < ROUNDS; i++)
        assert_ok(round_run(ctx, net, i, out->y[i], out->dx[i]));
    stats = stats_of(ctx);
    tn_cached_op_release(net);
    test_close(ctx);
    return stats;
}

static bool fake_is_there(void)
{
    tn_ctx *ctx = test_open(NULL);
    const tn_device *device;
    const bool there = !tn_device_get(ctx, "fake:0", &device);

    assert_ok(tn_close(ctx));
    if (!there)
        print_message("skipped: no device fake\n");
    return there;
}

static void same_bits(void **state)
{
    static outcome host, fake;
    tn_stats stats;

    (void)state;
    if (!fake_is_there())
        skip();
    stats = rounds_run(LIST("engine.type=threaded"), &host);
    assert_true(!stats.graphs && !stats.graph_launches && !stats.graph_updates);
    for (int seed = 0; seed < 20; seed++) {
        char text[40];

        (void)snprintf(text, sizeof text, "plugin.fake.seed=%d", seed);
        memset(&fake, 0, sizeof fake);
        stats = rounds_run(LIST(engines[seed % 3], "device.default=fake:0", "plugin.fake.delay_us=30", text),
                           &fake);
        assert_memory_equal(&fake, &host, sizeof host);
        assert_true(stats.graphs >= 2); /* forward, backward */
        assert_true(stats.graph_launches >= 2 * (ROUNDS - 1));
        assert_true(stats.graph_updates >= ROUNDS - 1); /* two frames take turns */
        assert_true(stats.graphs < ROUNDS);             /* once each, not once a run */
    }
}

/* The n-th call of the device fails, plain, or in a launch: the error comes out where the value is read, and
 * closing goes on. */
static void failures_come_out(void **state)
{
    (void)state;
    if (!fake_is_there())
        skip();
    for (int at = 1; at <= 30; at++) {
        float y[COUNT], dx[COUNT];
        tn_status st = TN_OK;
        tn_cached_op *net;
        char text[40];
        tn_ctx *ctx;

        (void)snprintf(text, sizeof text, "plugin.fake.fault=call:%d", at);
        ctx = test_open(LIST(engines[at % 3], "device.default=fake:0", text));
        net = net_make(ctx);
        for (int i = 0; i < 40 && !st; i++)
            st = round_run(ctx, net, i, y, dx);
        if (st != TN_E_DEVICE)
            fail_msg("call %d fails, and the status is %s: %s", at, tn_status_name(st), tn_error_text());
        tn_cached_op_release(net);
        (void)tn_wait_all(ctx);
        (void)tn_close(ctx);
    }
}

/* A child closes what it has without a word to the device. */
static void a_child_leaves_graphs_alone(void **state)
{
    static outcome fake;
    tn_cached_op *net;
    tn_ctx *ctx;
    int status = -1;
    pid_t child;

    (void)state;
    if (!fake_is_there())
        skip();
    ctx = test_open(LIST("engine.type=naive", "device.default=fake:0"));
    net = net_make(ctx);
    for (int i = 0; i < ROUNDS; i++)
        assert_ok(round_run(ctx, net, i, fake.y[i], fake.dx[i]));
    if (!(child = fork())) {
        (void)alarm(100);
        tn_cached_op_release(net);
        _exit(tn_close(ctx) ? 3 : 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_ok(round_run(ctx, net, 0, fake.y[0], fake.dx[0]));
    tn_cached_op_release(net);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(failures_come_out),
        cmocka_unit_test(a_child_leaves_graphs_alone),
    };

    return cmocka_run_group_tests_name("api.capture", tests, NULL, NULL);
}
