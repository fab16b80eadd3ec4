/*
 * The flags of cached operators do what MXNet's do: memory that stays, programs of other shapes that go, nets
 * that are called operator by operator, operations with a limit. None of them changes a bit.
 */
#include "api/support.h"

#include <stdbool.h>

#define LINKS 10 /* operators of the chain */
#define SETTINGS_MAX 4
#define WIDTH 4096
#define COUNT(list) (sizeof(list) / sizeof *(list))

static tn_stats stats_of(tn_ctx *ctx)
{
    tn_stats s = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_wait_all(ctx));
    assert_ok(tn_ctx_stats(ctx, &s));
    return s;
}

/* sin(sin(… x)), a dropout in the middle: what is kept, and what is drawn, counts. */
static tn_symbol *chain(tn_ctx *ctx)
{
    tn_symbol *s = NULL;

    assert_ok(tn_symbol_variable(ctx, "x", &s));
    for (int i = 0; i < LINKS; i++) {
        tn_symbol *in = s;
        const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                     .op = i == LINKS / 2 ? "Dropout" : "sin",
                                     .in_count = 1,
                                     .in = &in};

        assert_ok(tn_symbol_op(ctx, &call, &s));
        tn_symbol_release(in);
    }
    return s;
}

typedef struct net {
    tn_ctx *ctx;
    tn_cached_op *op;
    tn_array *x;
} net;

static tn_array *input(tn_ctx *ctx, int64_t count)
{
    float *values = calloc((size_t)count, sizeof *values);
    tn_array *x;

    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = 1.0f + 0.001f * (float)(i % 1000);
    x = test_array(ctx, 1, &count, values);
    free(values);
    return x;
}

/* The chain stays as many operations as it has links: what is counted is where it is cut. */
static net net_open(const char *const *settings, const tn_cached_options *o)
{
    const char *all[SETTINGS_MAX + 2] = {"compile.passes_off=pointwise"};
    tn_symbol *s;
    net n;

    for (size_t i = 0; settings && settings[i] && i < SETTINGS_MAX; i++)
        all[i + 1] = settings[i];
    n = (net){.ctx = test_open(all)};
    s = chain(n.ctx);

    assert_ok(tn_cached_op_create(n.ctx, s, o, &n.op));
    tn_symbol_release(s);
    n.x = input(n.ctx, WIDTH);
    assert_ok(tn_attach_grad(n.ctx, n.x, TN_MODE_WRITE, NULL));
    return n;
}

static void net_close(net *n)
{
    tn_array_release(n->x);
    tn_cached_op_release(n->op);
    test_close(n->ctx);
}

/* One step: the output, then the gradient, in `out`. */
static void step(const net *n, float out[2 * WIDTH])
{
    tn_array *y = NULL, *grad;

    tn_record_set(1);
    tn_train_set(1);
    assert_ok(tn_cached_op_call(n->op, 1, &n->x, 1, &y));
    tn_record_set(0);
    tn_train_set(0);
    assert_ok(tn_backward(n->ctx, 1, &y, NULL, 0));
    assert_ok(tn_array_read(y, out, WIDTH * sizeof *out));
    grad = tn_array_grad(n->x);
    assert_ok(tn_array_read(grad, out + WIDTH, WIDTH * sizeof *out));
    tn_array_release(y);
}

static void predict(const net *n, tn_array *x)
{
    tn_array *y = NULL;

    assert_ok(tn_cached_op_call(n->op, 1, &x, 1, &y));
    tn_array_release(y);
}

static const struct {
    const char *name;
    tn_cached_options options;
    const char *const *settings;
    uint64_t cuts; /* of one step */
    bool program;
} rows[] = {
    {"none", {0}, NULL, 0, true},
    {"inline_limit, one too few", {.inline_limit = LINKS - 1}, NULL, 0, true},
    {"inline_limit", {.inline_limit = LINKS}, NULL, 0, false},
    {"inline_limit beside static_alloc", {.inline_limit = LINKS, .static_alloc = 1}, NULL, 0, true},
    {"static_alloc", {.static_alloc = 1}, NULL, 0, true},
    {"static_shape", {.static_alloc = 1, .static_shape = 1}, NULL, 0, true},
    {"forward_bulk", {.forward_bulk = 3}, NULL, 3, true},
    {"forward_bulk of one", {.forward_bulk = 1}, NULL, LINKS - 1, true},
    {"forward_bulk as long as the net", {.forward_bulk = LINKS}, NULL, 0, true},
    {"backward_bulk", {.backward_bulk = 4}, NULL, 2, true},
    {"both", {.forward_bulk = 5, .backward_bulk = 5, .static_alloc = 1}, NULL, 2, true},
    {"options",
     {0},
     (const char *const[]){"compile.bulk_forward=5", "compile.bulk_backward=2", NULL},
     5,
     true},
    {"flags before options",
     {.forward_bulk = 2},
     (const char *const[]){"compile.bulk_forward=5", NULL},
     4,
     true},
};

static void bits_stay(void **state)
{
    static float expected[2 * WIDTH], got[2 * WIDTH];

    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        tn_cached_options o = rows[r].options;
        uint64_t planned, bound, cuts;
        net n;

        print_message("%s\n", rows[r].name);
        o.struct_size = TN_SIZE(tn_cached_options);
        n = net_open(rows[r].settings, &o);
        for (int i = 0; i < 3; i++) { /* with what earlier calls left */
            assert_ok(tn_random_seed(n.ctx, 7, NULL));
            cuts = stats_of(n.ctx).cuts;
            step(&n, r ? got : expected);
            assert_int_equal(stats_of(n.ctx).cuts - cuts, rows[r].cuts);
            if (r)
                assert_memory_equal(got, expected, sizeof got);
        }
        assert_int_equal(tn_cached_op_memory(n.op, &planned, &bound), rows[r].program ? TN_OK : TN_E_STATE);
        net_close(&n);
    }
}

static uint64_t live(tn_ctx *ctx)
{
    tn_memory_stats m = {.struct_size = TN_SIZE(tn_memory_stats)};
    const tn_device *cpu = NULL;

    assert_ok(tn_wait_all(ctx));
    assert_ok(tn_device_get(ctx, "cpu", &cpu));
    assert_ok(tn_device_memory(ctx, cpu, TN_MEMORY_DEVICE, &m));
    return m.live;
}

/* What a net takes beside its arrays goes after each call, or stays until the net goes; and takes no more. */
static void memory_stays(void **state)
{
    static float got[2 * WIDTH];

    (void)state;
    for (uint32_t keeps = 0; keeps < 2; keeps++) {
        const tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options), .static_alloc = keeps};
        net n = net_open(NULL, &o);
        uint64_t before, after;

        before = live(n.ctx);
        step(&n, got);
        after = live(n.ctx);
        assert_true(keeps ? after > before : after == before);
        step(&n, got);
        assert_true(live(n.ctx) == after);
        tn_cached_op_release(n.op);
        n.op = NULL;
        assert_true(live(n.ctx) == before);
        net_close(&n);
    }
}

/* With static_shape a net of another shape takes the place of the last one; without it both stay. */
static void shapes_seldom_change(void **state)
{
    (void)state;
    for (uint32_t fixed = 0; fixed < 2; fixed++) {
        const tn_cached_options o = {
            .struct_size = TN_SIZE(tn_cached_options), .static_alloc = 1, .static_shape = fixed};
        net n = net_open(NULL, &o);
        tn_array *small = input(n.ctx, 64);
        uint64_t programs;

        predict(&n, n.x);
        predict(&n, n.x);
        predict(&n, small);
        programs = stats_of(n.ctx).programs;
        predict(&n, n.x);
        assert_int_equal(stats_of(n.ctx).programs - programs, fixed);
        predict(&n, n.x);
        assert_int_equal(stats_of(n.ctx).programs - programs, fixed);
        tn_array_release(small);
        net_close(&n);
    }
}

static void wrong(void **state)
{
    const tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options), .static_shape = 1};
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = chain(ctx);
    tn_cached_op *op = NULL;

    (void)state;
    assert_fails(tn_cached_op_create(ctx, s, &o, &op), TN_E_ARG);
    assert_null(op);
    tn_symbol_release(s);
    test_close(ctx);
    assert_fails(test_open_with((const char *const[]){"compile.bulk_forward=-1", NULL}, &ctx), TN_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_stay), cmocka_unit_test(memory_stays),
                                       cmocka_unit_test(shapes_seldom_change), cmocka_unit_test(wrong)};

    return cmocka_run_group_tests_name("api.flags", tests, NULL, NULL);
}
