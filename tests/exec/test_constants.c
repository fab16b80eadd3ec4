/*
 * What follows from constants alone is computed once, and again after a constant was written: y = x · w³ of a
 * net that is told of w. The kernel of the cube counts its runs.
 */
#include "context.h"
#include "cube.h"
#include "support/static_plugin.h"

#include <string.h>

static atomic_int runs;
static atomic_bool failing;

static tn_status cube_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    plan->workspace_bytes = 4u * (uint64_t)tn_tensor_count(node->in[0]);
    plan->est_ns = 100;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status cube_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data, *squares = x->workspace;

    (void)plan;
    if (atomic_load(&failing))
        return tn_fail(err, TN_E_INTERNAL, "told to fail");
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++) {
        squares[i] = in[i] * in[i];
        out[i] = squares[i] * in[i];
    }
    atomic_fetch_add(&runs, 1);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define CUBE(type)                                                                                           \
    TEST_KERNEL("test_cube", type, .name = "cube", .types = types, .prepare = cube_prepare, .run = cube_run)
static const tn_kernel cpu_cube = CUBE("cpu"), fake_cube = CUBE("fake");
static atomic_uint told; /* flags of the last node of elemwise_mul that was prepared */

static tn_status mul_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)plan;
    (void)err;
    atomic_store(&told, node->flags);
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status mul_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *a = x->in[0]->data, *b = x->in[1]->data;

    (void)plan;
    (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        ((float *)x->out[0]->data)[i] = a[i] * b[i];
    return TN_OK;
}

#define MUL(type)                                                                                            \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 250, .op = "elemwise_mul",              \
        .name = "mul", .device = (type), .isa = "", .op_version_min = 1, .op_version_max = 1,                \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types, .prepare = mul_prepare, .run = mul_run             \
    }
static const tn_kernel cpu_mul = MUL("cpu"), fake_mul = MUL("fake");
static const tn_kernel *const cpu_kernels[] = {&cpu_cube, &cpu_mul, NULL}, *const fake_kernels[] = {
                                                                               &fake_cube, &fake_mul, NULL};
static const tn_kernel_table cpu_table = {.head = TN_CAPABILITY(tn_kernel_table, stream_detach,
                                                                TN_KIND_KERNELS, "cpu"),
                                          .kernels = cpu_kernels},
                             fake_table = {.head = TN_CAPABILITY(tn_kernel_table, stream_detach,
                                                                 TN_KIND_KERNELS, "fake"),
                                           .kernels = fake_kernels};
TEST_PLUGIN(plugin, "constants", &test_cube_ops.head, &cpu_table.head, &fake_table.head);

typedef struct net {
    tni_context *c;
    tni_cached_op *op;
    tni_array *x, *w;
} net;

static tni_symbol *on(tni_context *c, const char *op, tni_symbol *a, tni_symbol *b)
{
    tni_symbol *open = NULL, *done = NULL, *in[] = {a, b};

    assert_ok(tni_symbol_atomic(c->ops, op, 0, NULL, NULL, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, b ? 2 : 1, NULL, in, &done));
    tni_symbol_release(open);
    return done;
}

/* x · (w³ + w³), and w itself is read, too. */
static net net_open(bool constant)
{
    net n = {.c = test_context(NULL)};
    tni_symbol *x = NULL, *w = NULL, *cube, *sum, *more, *y;
    tni_array *large = NULL;

    atomic_store(&runs, 0);
    atomic_store(&failing, false);
    assert_ok(tni_registry_add_static(n.c->plugins, &plugin, NULL));
    assert_ok(tni_symbol_variable(n.c->ops, "x", &x));
    assert_ok(tni_symbol_variable(n.c->ops, "w", &w));
    cube = on(n.c, "test_cube", w, NULL);
    sum = on(n.c, "elemwise_add", cube, cube);
    more = on(n.c, "elemwise_mul", x, sum);
    y = on(n.c, "elemwise_add", more, w);
    assert_ok(tni_cached_op_create(n.c, y, NULL, &n.op));
    if (constant)
        assert_ok(tni_cached_op_constant(n.op, 1));
    tni_symbol_release(x);
    tni_symbol_release(w);
    tni_symbol_release(cube);
    tni_symbol_release(sum);
    tni_symbol_release(more);
    tni_symbol_release(y);
    n.x = test_vector(n.c, 3, (float[]){1, 2, 3});
    assert_ok(
        tni_array_create(n.c->space, n.x->storage->device, TN_F32, 1, (int64_t[]){1 << 20}, "array", &large));
    /* Opens the pool: a plugin that comes later has nets compiled anew. */
    assert_ok(tni_array_fill(large, 0));
    assert_ok(tni_array_wait(large));
    tni_array_release(large);
    n.w = test_vector(n.c, 3, (float[]){1, 1, 2});
    return n;
}

static void net_close(net *n)
{
    tni_array_release(n->x);
    tni_array_release(n->w);
    tni_cached_op_release(n->op);
    test_context_close(n->c);
}

static tni_array *called(const net *n)
{
    tni_array *out = NULL;

    assert_ok(tni_cached_op_call(n->op, 2, (tni_array *[]){n->x, n->w}, 1, &out));
    return out;
}

static void expect(tni_array *y, float w)
{
    test_values(y, (float[]){2 * w * w * w + w, 4 * w * w * w + w, 6 * w * w * w + w}, 3, 0);
    tni_array_release(y);
}

static void once(void **state)
{
    net n = net_open(true);

    (void)state;
    for (int i = 0; i < 5; i++) {
        tni_array *y = called(&n);

        test_values(y, (float[]){3, 5, 50}, 3, 0);
        tni_array_release(y);
    }
    assert_int_equal(atomic_load(&runs), 1);
    net_close(&n);
}

static void not_told(void **state)
{
    net n = net_open(false);

    (void)state;
    for (int i = 0; i < 3; i++)
        tni_array_release(called(&n));
    assert_ok(tni_engine_wait_all(n.c->engine));
    assert_int_equal(atomic_load(&runs), 3);
    net_close(&n);
}

/* Kernels are told that their second input follows from constants, through what is computed of them. */
static void kernels_are_told(void **state)
{
    (void)state;
    for (int constant = 0; constant < 2; constant++) {
        net n = net_open(constant);

        atomic_store(&told, UINT32_MAX);
        tni_array_release(called(&n));
        assert_int_equal(atomic_load(&told) & (UINT32_MAX - 0xffff), 0);
        assert_int_equal((atomic_load(&told) & TN_NODE_CONSTANT_WEIGHT) != 0, constant);
        net_close(&n);
    }
}

/* Calls and writes follow each other without a wait; each call sees what was written before it. */
static void written_between(void **state)
{
    net n = net_open(true);
    tni_array *y[40];

    (void)state;
    for (int i = 0; i < 40; i++) {
        if (i % 2 == 0)
            assert_ok(tni_array_fill(n.w, 1 + i / 4));
        y[i] = called(&n);
    }
    for (int i = 0; i < 40; i++)
        expect(y[i], (float)(1 + i / 4));
    assert_int_equal(atomic_load(&runs), 20);
    net_close(&n);
}

/* Another array in the place of the constant. */
static void another_array(void **state)
{
    net n = net_open(true);
    tni_array *first = n.w, *second = test_vector(n.c, 3, (float[]){5, 5, 5});

    (void)state;
    assert_ok(tni_array_fill(first, 2));
    for (int i = 0; i < 6; i++) {
        n.w = i / 2 % 2 ? second : first;
        expect(called(&n), i / 2 % 2 ? 5 : 2);
    }
    assert_int_equal(atomic_load(&runs), 3);
    n.w = first;
    tni_array_release(second);
    net_close(&n);
}

/* The same without a wait: no call sees what another one has packed. */
static void arrays_in_turns(void **state)
{
    net n = net_open(true);
    tni_array *first = n.w, *second = test_vector(n.c, 3, (float[]){3, 3, 3}), *y[40];

    (void)state;
    assert_ok(tni_array_fill(first, 2));
    for (int i = 0; i < 40; i++) {
        n.w = i / 3 % 2 ? second : first;
        y[i] = called(&n);
    }
    for (int i = 0; i < 40; i++)
        expect(y[i], i / 3 % 2 ? 3 : 2);
    n.w = first;
    tni_array_release(second);
    net_close(&n);
}

/* Two views of one array are two constants. */
static void views(void **state)
{
    net n = net_open(true);
    tni_array *whole = test_vector(n.c, 6, (float[]){2, 2, 2, 3, 3, 3}), *part[2], *mine = n.w;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_ok(tni_array_view(whole, (uint64_t)(3 * i), 1, (int64_t[]){3}, (int64_t[]){1}, &part[i]));
    for (int i = 0; i < 6; i++) {
        n.w = part[i / 2 % 2];
        expect(called(&n), i / 2 % 2 ? 3 : 2);
    }
    tni_array_release(part[0]);
    tni_array_release(part[1]);
    tni_array_release(whole);
    n.w = mine;
    net_close(&n);
}

/* The host writes into the memory, as tn_array_data allows: after it waited for readers. */
static void written_by_the_host(void **state)
{
    net n = net_open(true);

    (void)state;
    for (int k = 2; k < 5 && n.w->storage->device->host; k++) {
        float *values;

        assert_ok(tni_array_wait_write(n.w));
        values = tni_array_data(n.w);
        for (int i = 0; i < 3; i++)
            values[i] = (float)k;
        expect(called(&n), (float)k);
        expect(called(&n), (float)k);
    }
    net_close(&n);
}

/* What runs once and is read on another device, and a write in between. */
static void on_another_device(void **state)
{
    net n = net_open(true);
    tni_array *mine = n.w;
    tni_device *host = NULL;

    (void)state;
    if (!n.x->storage->device->host) {
        assert_ok(tni_device_get(n.c->devices, "cpu", 0, &host));
        n.w = NULL;
        assert_ok(tni_array_create(n.c->space, host, TN_F32, 1, (int64_t[]){3}, "array", &n.w));
        for (int i = 0; i < 6; i++) {
            assert_ok(tni_array_fill(n.w, 1 + i / 2));
            expect(called(&n), (float)(1 + i / 2));
        }
        tni_array_release(n.w);
        n.w = mine;
    }
    net_close(&n);
}

/* Many instructions run once, within the segment that needs them: they give nothing of it free. */
static void long_chain(void **state)
{
    net n = net_open(true);
    tni_symbol *x = NULL, *w = NULL, *parts[14], *y;
    tni_cached_op *op = NULL;
    tni_compiled *e = NULL;
    tni_array *out = NULL;

    (void)state;
    assert_ok(tni_symbol_variable(n.c->ops, "x", &x));
    assert_ok(tni_symbol_variable(n.c->ops, "w", &w));
    for (int i = 0; i < 14; i++)
        parts[i] = on(n.c, i % 2 ? "negative" : "test_cube", i ? parts[i - 1] : w, NULL);
    y = on(n.c, "elemwise_mul", x, parts[13]);
    assert_ok(tni_cached_op_create(n.c, y, NULL, &op));
    assert_ok(tni_cached_op_constant(op, 1));
    assert_ok(tni_array_fill(n.w, 1));
    assert_ok(tni_cached_op_call(op, 2, (tni_array *[]){n.x, n.w}, 1, &out));
    assert_ok(tni_array_fill(n.x, 0));
    test_values(out, (float[]){-1, -2, -3}, 3, 0);
    assert_ok(tni_cached_op_recent(op, &e));
    assert_int_equal(e->program->phases[TNI_ONCE].code_count, 14);
    for (uint32_t s = 0; s < e->program->segment_count; s++)
        assert_true(e->program->segments[s].phase != TNI_ONCE || !e->program->segments[s].release_count);
    tni_compiled_release(e);
    tni_array_release(out);
    tni_cached_op_release(op);
    for (int i = 0; i < 14; i++)
        tni_symbol_release(parts[i]);
    tni_symbol_release(x);
    tni_symbol_release(w);
    tni_symbol_release(y);
    net_close(&n);
}

/* A failure is that of its call; the next one begins anew. (A stream that failed does nothing more.) */
static void failed(void **state)
{
    net n = net_open(true);
    tni_array *y;

    (void)state;
    if (!n.w->storage->device->host) {
        net_close(&n);
        return;
    }
    assert_ok(tni_array_fill(n.w, 2));
    atomic_store(&failing, true);
    y = called(&n);
    assert_int_equal(tni_array_wait(y), TN_E_INTERNAL);
    tni_array_release(y);
    atomic_store(&failing, false);
    expect(called(&n), 2);
    assert_int_equal(atomic_load(&runs), 1);
    net_close(&n);
}

/* Views of a constant, with gaps: a dense stand-in is made of them. */
static void strided(void **state)
{
    net n = net_open(true);
    tni_array *whole = test_vector(n.c, 6, (float[]){2, 9, 2, 9, 2, 9}), *mine = n.w;

    (void)state;
    assert_ok(tni_array_view(whole, 0, 1, (int64_t[]){3}, (int64_t[]){2}, &n.w));
    for (int i = 0; i < 3; i++)
        expect(called(&n), 2);
    assert_ok(tni_array_fill(whole, 3));
    expect(called(&n), 3);
    tni_array_release(n.w);
    tni_array_release(whole);
    n.w = mine;
    net_close(&n);
}

/* While it is recorded nothing is constant: the gradient needs what is inside. */
static void recorded(void **state)
{
    net n = net_open(true);

    (void)state;
    assert_ok(tni_grad_attach(n.c, n.x, TN_MODE_WRITE, NULL));
    for (int i = 0; i < 2; i++) {
        tni_array *y;

        assert_ok(tni_array_fill(n.w, 1 + i));
        test_record(true, false);
        y = called(&n);
        test_record(false, false);
        assert_ok(tni_backward(n.c, 1, &y, NULL, NULL));
        test_values(tni_grad_get(n.x), i ? (float[]){16, 16, 16} : (float[]){2, 2, 2}, 3, 0);
        expect(y, (float)(1 + i));
    }
    net_close(&n);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_in_turns),
        cmocka_unit_test(views),
        cmocka_unit_test(written_by_the_host),
        cmocka_unit_test(on_another_device),
        cmocka_unit_test(long_chain),
        cmocka_unit_test(once),
        cmocka_unit_test(kernels_are_told),
        cmocka_unit_test(not_told),
        cmocka_unit_test(written_between),
        cmocka_unit_test(another_array),
        cmocka_unit_test(failed),
        cmocka_unit_test(strided),
        cmocka_unit_test(recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
