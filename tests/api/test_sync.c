/*
 * SyncBatchNorm of several devices: the numbers are those of the whole batch on one, the bits do not depend
 * on who comes first; and what ends a call whose others do not come.
 */
#include "api/support.h"
#include "support/list.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 6, CHANNELS = 35, PLACES = 4, ROW = CHANNELS * PLACES, DEVICES_MAX = 3 };
enum { DATA, GAMMA, BETA, MEAN, VAR, INPUTS };

/* What a batch gives, of all devices: y and dx by rows; sums of dgamma, dbeta; moving statistics. */
typedef struct numbers {
    double y[ROWS * ROW], dx[ROWS * ROW], dgamma[CHANNELS], dbeta[CHANNELS], mean[CHANNELS], var[CHANNELS];
} numbers;

typedef struct part {
    tn_array *in[INPUTS], *head, *y;
} part;

static double number(size_t k, double scale)
{
    return scale * sin(1.7 * (double)k + 0.3 * (double)(k % 7)) + 0.4;
}

static tn_array *on(tn_ctx *ctx, const char *device, int32_t ndim, const int64_t *shape, size_t first,
                    double scale)
{
    static double values[ROWS * ROW];
    const tn_device *d = NULL, *before;
    tn_array *a = NULL;
    size_t count = 1;

    for (int32_t i = 0; i < ndim; i++)
        count *= (size_t)shape[i];
    for (size_t k = 0; k < count; k++)
        values[k] = number(first + k, scale);
    assert_ok(tn_device_get(ctx, device, &d));
    before = tn_device_use(d);
    assert_ok(tn_array_from(ctx, TN_F64, ndim, shape, values, &a));
    (void)tn_device_use(before);
    return a;
}

/* Rows first … end-1 on a device. */
static part part_of(tn_ctx *ctx, int device, int64_t first, int64_t end)
{
    const int64_t shape[] = {end - first, CHANNELS, PLACES}, channels[] = {CHANNELS};
    char name[16];
    part p = {.y = NULL};

    (void)snprintf(name, sizeof name, "cpu:%d", device);
    p.in[DATA] = on(ctx, name, 3, shape, (size_t)first * ROW, 3);
    p.head = on(ctx, name, 3, shape, 1000 + (size_t)first * ROW, 1);
    p.in[GAMMA] = on(ctx, name, 1, channels, 10, 0.5);
    p.in[BETA] = on(ctx, name, 1, channels, 20, 0.5);
    p.in[MEAN] = on(ctx, name, 1, channels, 30, 0.5);
    p.in[VAR] = on(ctx, name, 1, channels, 40, 0.1);
    for (int i = 0; i <= BETA; i++)
        assert_ok(tn_attach_grad(ctx, p.in[i], TN_MODE_WRITE, NULL));
    return p;
}

static void part_drop(part *p)
{
    for (int i = 0; i < INPUTS; i++)
        tn_array_release(p->in[i]);
    tn_array_release(p->head);
    tn_array_release(p->y);
}

static tn_status forward(tn_ctx *ctx, part *p, const char *key, const char *ndev)
{
    const tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call),
        .in_count = INPUTS,
        .op = "_contrib_SyncBatchNorm",
        .attrs = LIST("key", key, "ndev", ndev, "fix_gamma", "False", "momentum", "0.7", "eps", "0.01"),
        .in = p->in};
    tn_status st;

    tn_record_set(1);
    tn_train_set(1);
    st = tn_invoke_text(ctx, &call, 1, &p->y, NULL);
    tn_record_set(0);
    tn_train_set(0);
    return st;
}

static void read_to(tn_array *a, double *out, bool add)
{
    double values[ROWS * ROW];
    const size_t count = tn_array_count(a);

    assert_ok(tn_array_read(a, values, count * sizeof *values));
    for (size_t k = 0; k < count; k++)
        out[k] = (add ? out[k] : 0) + values[k];
}

/* How a batch is computed: the first rows of devices, who comes first, backward behind each forward. */
typedef struct way {
    int devices;
    int64_t first[DEVICES_MAX + 1];
    int turn;
    bool at_once;
} way;

static void batch(tn_ctx *ctx, const way *w, numbers *out)
{
    part parts[DEVICES_MAX];
    char ndev[8];

    memset(out, 0, sizeof *out);
    (void)snprintf(ndev, sizeof ndev, "%d", w->devices);
    for (int k = 0; k < w->devices; k++)
        parts[k] = part_of(ctx, k, w->first[k], w->first[k + 1]);
    for (int i = 0; i < w->devices; i++) {
        part *p = &parts[(i + w->turn) % w->devices];

        assert_ok(forward(ctx, p, "layer", ndev));
        if (w->at_once)
            assert_ok(tn_backward(ctx, 1, &p->y, &p->head, 0));
    }
    for (int i = 0; i < w->devices && !w->at_once; i++)
        assert_ok(tn_backward(ctx, 1, &parts[i].y, &parts[i].head, 0));
    for (int k = 0; k < w->devices; k++) {
        const part *p = &parts[k];
        double mean[CHANNELS], var[CHANNELS];

        read_to(p->y, out->y + w->first[k] * ROW, false);
        read_to(tn_array_grad(p->in[DATA]), out->dx + w->first[k] * ROW, false);
        read_to(tn_array_grad(p->in[GAMMA]), out->dgamma, true);
        read_to(tn_array_grad(p->in[BETA]), out->dbeta, true);
        read_to(p->in[MEAN], k ? mean : out->mean, false);
        read_to(p->in[VAR], k ? var : out->var, false);
        assert_true(!k || !memcmp(mean, out->mean, sizeof mean));
        assert_true(!k || !memcmp(var, out->var, sizeof var));
    }
    for (int k = 0; k < w->devices; k++)
        part_drop(&parts[k]);
}

static void near(const numbers *a, const numbers *b)
{
    const double *x = a->y, *y = b->y;

    for (size_t k = 0; k < sizeof *a / sizeof *x; k++)
        if (!(fabs(x[k] - y[k]) <= 1e-12 * (1 + fabs(y[k]))))
            fail_msg("number %zu is %.17g, that of one device %.17g", k, x[k], y[k]);
}

static const way whole = {1, {0, ROWS}, 0, true};
static const char *const engines[] = {"engine.threads=1", "engine.threads=2", "engine.inline_ns=0"};

/* Two and three devices, of unlike parts, one of them empty. */
static void as_one_device(void **state)
{
    static const way ways[] = {{2, {0, 3, ROWS}, 0, false},
                               {2, {0, 2, ROWS}, 0, true},
                               {3, {0, 1, 5, ROWS}, 1, true},
                               {3, {0, 4, 4, ROWS}, 2, false}};

    (void)state;
    for (size_t e = 0; e < sizeof engines / sizeof *engines; e++) {
        tn_ctx *ctx = test_open(LIST(engines[e]));
        static numbers want, got;

        batch(ctx, &whole, &want);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            batch(ctx, &ways[i], &got);
            near(&got, &want);
        }
        test_close(ctx);
    }
}

static void any_order(void **state)
{
    static numbers want, got;
    tn_ctx *ctx = test_open(LIST("engine.threads=2"));

    (void)state;
    for (int turn = 0; turn < 6; turn++) {
        const way w = {3, {0, 1, 4, ROWS}, turn % 3, turn >= 3};

        batch(ctx, &w, turn ? &got : &want);
        if (turn)
            assert_memory_equal(&got, &want, sizeof want);
    }
    test_close(ctx);
}

/* One layer that is called twice before the other device comes: the running statistics keep calls in order,
 * so first ones meet, then second ones; each backward finds those of its own forward, in whatever order. */
static void twice(void **state)
{
    static const int64_t rows[2][3] = {{0, 2, ROWS}, {0, 4, ROWS}};
    static numbers want, got;
    tn_ctx *ctx = test_open(NULL);
    part parts[2][2];

    (void)state;
    batch(ctx, &whole, &want);
    for (int k = 0; k < 2; k++)
        for (int call = 0; call < 2; call++) {
            parts[call][k] = part_of(ctx, k, rows[call][k], rows[call][k + 1]);
            for (int i = MEAN; call && i <= VAR; i++) {
                tn_array_release(parts[1][k].in[i]);
                tn_array_retain(parts[1][k].in[i] = parts[0][k].in[i]);
            }
            assert_ok(forward(ctx, &parts[call][k], "layer", "2"));
        }
    for (int i = 0; i < 4; i++) {
        part *p = &parts[i % 2 ^ i / 2][i / 2];

        assert_ok(tn_backward(ctx, 1, &p->y, &p->head, 0));
    }
    for (int call = 0; call < 2; call++) {
        got = want;
        for (int k = 0; k < 2; k++) {
            read_to(parts[call][k].y, got.y + rows[call][k] * ROW, false);
            read_to(tn_array_grad(parts[call][k].in[DATA]), got.dx + rows[call][k] * ROW, false);
        }
        near(&got, &want);
    }
    for (int i = 0; i < 4; i++)
        part_drop(&parts[i / 2][i % 2]);
    test_close(ctx);
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void says(const char *why)
{
    if (!strstr(tn_error_text(), why))
        fail_msg("\"%s\" has no \"%s\" in it", tn_error_text(), why);
}

/* The other device never comes: its own input has failed. Those that come later are not disturbed. The naive
 * engine runs one call to its end before it takes the next, so there nobody ever comes. */
static void others_missing(void **state)
{
    static const char *const types[] = {"engine.type=threaded", "engine.type=naive"};
    static numbers want, got;

    (void)state;
    for (size_t e = 0; e < sizeof types / sizeof *types; e++) {
        tn_ctx *ctx = test_open(LIST(types[e], "plugin.cpu.sync_timeout=20ms"));
        part lone = part_of(ctx, 0, 0, 2), next = part_of(ctx, 1, 2, 4), failed = part_of(ctx, 0, 0, 2);

        assert_ok(forward(ctx, &lone, "layer", "2"));
        assert_fails(tn_array_wait(lone.y), TN_E_TIMEOUT);
        says("_contrib_SyncBatchNorm: key=layer: only 1 of 2 devices arrived within 20 ms "
             "(plugin.cpu.sync_timeout): cpu 0;");
        assert_fails(tn_array_wait(lone.in[MEAN]), TN_E_TIMEOUT);
        tn_array_release(failed.in[DATA]);
        tn_array_retain(failed.in[DATA] = lone.y);
        assert_ok(forward(ctx, &failed, "layer", "2"));
        assert_ok(forward(ctx, &next, "layer", "2"));
        assert_fails(tn_array_wait(next.y), TN_E_TIMEOUT);
        says("only 1 of 2 devices arrived within 20 ms (plugin.cpu.sync_timeout): cpu 1;");
        assert_fails(tn_array_wait(failed.y), TN_E_TIMEOUT);
        assert_fails(tn_array_wait(failed.in[MEAN]), TN_E_TIMEOUT); /* so its next call is skipped, too */
        part_drop(&lone);
        part_drop(&next);
        part_drop(&failed);
        tn_wait_all(ctx);
        tn_close(ctx);
    }
    {
        tn_ctx *ctx = test_open(NULL);

        batch(ctx, &whole, &want);
        batch(ctx, &(way){2, {0, 3, ROWS}, 0, false}, &got);
        near(&got, &want);
        test_close(ctx);
    }
}

static void unlike_calls(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    part a = part_of(ctx, 0, 0, 2), b = part_of(ctx, 1, 2, 4);

    (void)state;
    assert_ok(forward(ctx, &a, "layer", "2"));
    assert_ok(forward(ctx, &b, "layer", "3"));
    assert_fails(tn_array_wait(a.y), TN_E_ARG);
    says("key=layer: cpu 0 has ndev=2 and 35 channels, cpu 1 has ndev=3 and 35");
    assert_fails(tn_array_wait(b.y), TN_E_ARG);
    part_drop(&a);
    part_drop(&b);
    tn_wait_all(ctx);
    tn_close(ctx);
}

static void refused(void **state)
{
    const int64_t shape[] = {2, 3}, channels[] = {3};
    tn_ctx *ctx = test_open(NULL);
    part p = part_of(ctx, 0, 0, 2);
    tn_array *in[INPUTS], *y = NULL, *g = NULL;
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = INPUTS,
                             .op = "_contrib_SyncBatchNorm",
                             .attrs = LIST("key", "k", "ndev", "2"),
                             .in = in};
    const tn_gradient_call second = {.struct_size = TN_SIZE(tn_gradient_call),
                                     .flags = TN_BACKWARD_CREATE,
                                     .head_count = 1,
                                     .variable_count = 1,
                                     .heads = &p.y,
                                     .variables = p.in};
    part other = part_of(ctx, 1, 2, 4);

    (void)state;
    assert_fails(forward(ctx, &p, "layer", "0"), TN_E_ATTR);
    for (int i = 0; i < INPUTS; i++)
        assert_ok(tn_array_zeros(ctx, i ? TN_F32 : TN_F16, i ? 1 : 2, i ? channels : shape, NULL, &in[i]));
    tn_train_set(1);
    assert_fails(tn_invoke_text(ctx, &call, 1, &y, NULL), TN_E_UNSUPPORTED);
    tn_train_set(0);
    assert_ok(tn_invoke_text(ctx, &call, 1, &y, NULL)); /* by running statistics it is of one device */
    assert_ok(tn_array_wait(y));
    assert_ok(forward(ctx, &p, "layer", "2"));
    assert_ok(forward(ctx, &other, "layer", "2"));
    tn_record_set(1);
    assert_fails(tn_gradients(ctx, &second, &g), TN_E_UNSUPPORTED);
    tn_record_set(0);
    says("gradients of gradients need ndev=1");
    for (int i = 0; i < INPUTS; i++)
        tn_array_release(in[i]);
    tn_array_release(y);
    part_drop(&p);
    part_drop(&other);
    test_close(ctx);
}

static void alone_fails(tn_ctx *hasty)
{
    part lone = part_of(hasty, 0, 0, 2);

    assert_ok(forward(hasty, &lone, "layer", "2"));
    assert_fails(tn_array_wait(lone.y), TN_E_TIMEOUT);
    part_drop(&lone);
}

/* ThreadSanitizer's runtime dies when the child of a threaded program starts a thread. */
#if defined(__SANITIZE_THREAD__)
static const bool child_may_start_threads = false;
#else
static const bool child_may_start_threads = true;
#endif

/* Devices meet in a child, too, and what ends the wait for others is there. */
static void forked(void **state)
{
    static numbers want, got;
    const way w = {2, {0, 3, ROWS}, 0, false};
    tn_ctx *ctx = test_open(NULL), *hasty = test_open(LIST("plugin.cpu.sync_timeout=20ms"));
    pid_t child;
    int status = 1;

    (void)state;
    batch(ctx, &w, &want);
    alone_fails(hasty);
    if (!(child = fork())) {
        if (!child_may_start_threads)
            _exit(0);
        batch(ctx, &w, &got);
        alone_fails(hasty);
        _exit(memcmp(&got, &want, sizeof got) ? 3 : 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    batch(ctx, &w, &got);
    assert_memory_equal(&got, &want, sizeof want);
    alone_fails(hasty);
    test_close(ctx);
    tn_wait_all(hasty);
    tn_close(hasty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_one_device),  cmocka_unit_test(any_order),    cmocka_unit_test(twice),
        cmocka_unit_test(others_missing), cmocka_unit_test(unlike_calls), cmocka_unit_test(refused),
        cmocka_unit_test(forked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
