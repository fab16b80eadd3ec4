/*
 * No gradient is torn: on hosts and on devices that the host reaches or not, in one piece and cut, written
 * and added ones, strided ones, and zeros where nothing leads. Whatever allocation fails, a pass that could
 * not be queued changes none of them, and of one that was queued each is right or holds the failure.
 */
#include "cube.h"
#include "far.h"
#include "support/runs.h"
#include "support/static_plugin.h"

#include <stdlib.h>
#include <string.h>

/* ---- y = x^3, and y = x beside a z that gets no gradient ----------------------------------------------- */

static tn_status drop_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status drop_gradient(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);

    return dy.node ? g->ops->set(g, 0, dy) : TN_OK;
}

static const char *const names_xz[] = {"x", "z", NULL}, *const names_y[] = {"y", NULL};
static const tn_op drop = TEST_OP(.name = "test_drop", .inputs = names_xz, .outputs = names_y,
                                  .shape = drop_shape, .gradient = drop_gradient);
TEST_OPS(op_table, "drops", &drop);

static tn_status any_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    if (!strcmp(node->op, "test_cube"))
        plan->saved_bytes = 4u * (uint64_t)tn_tensor_count(node->in[0]);
    plan->est_ns = 100;
    return TN_OK;
}

static bool later; /* the backward kernel that is offered */

static tn_status prompt_prepare(void *p, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return later ? tn_fail(err, TN_E_UNSUPPORTED, "not now") : any_prepare(p, node, plan, err);
}

static tn_status later_prepare(void *p, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return later ? any_prepare(p, node, plan, err) : tn_fail(err, TN_E_UNSUPPORTED, "not now");
}

/* `saved` is memory of the device of `t`. */
static float *saved_of(const tn_exec *x, const tn_tensor *t)
{
    tn_tensor block = *t;

    block.data = x->saved;
    return x->saved ? far_near(&block) : NULL;
}

static tn_status cube_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = far_near(x->in[0]);
    float *out = far_near(x->out[0]), *block = saved_of(x, x->out[0]);

    (void)plan;
    (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++) {
        if (block)
            block[i] = 3 * in[i] * in[i];
        out[i] = in[i] * in[i] * in[i];
    }
    return TN_OK;
}

static tn_status backward_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *dy = far_near(x->in[0]), *block = saved_of(x, x->in[0]);
    float *dx = far_near(x->out[0]);

    (void)plan;
    (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        dx[i] = (x->modes[0] == TN_MODE_ADD ? dx[i] : 0) + dy[i] * block[i];
    return TN_OK;
}

static tn_status backward_later(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_status st = backward_run(plan, x, err);

    x->ops->complete(x->call, st, err);
    return TN_PENDING;
}

static tn_status drop_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    memmove(far_near(x->out[0]), far_near(x->in[0]), 4u * (size_t)tn_tensor_count(x->in[0]));
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(device_, op_, name_, flags_, prepare_, run_)                                                  \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .name = (name_),       \
        .device = (device_), .isa = "", .op_version_min = 1, .op_version_max = 1,                            \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_ADD_TO | (flags_), .types = types,                      \
        .prepare = (prepare_), .run = (run_)                                                                 \
    }
#define KERNELS(device_)                                                                                     \
    static const tn_kernel device_##_kernels[] = {                                                           \
        KERNEL(#device_, "test_cube", "cube", 0u, any_prepare, cube_run),                                    \
        KERNEL(#device_, "test_drop", "drop", 0u, any_prepare, drop_run),                                    \
        KERNEL(#device_, "_backward_test_cube", "prompt", 0u, prompt_prepare, backward_run),                 \
        KERNEL(#device_, "_backward_test_cube", "later", TN_KERNEL_ASYNC, later_prepare, backward_later)};   \
    static const tn_kernel *const device_##_list[] = {&device_##_kernels[0], &device_##_kernels[1],          \
                                                      &device_##_kernels[2], &device_##_kernels[3], NULL};   \
    static const tn_kernel_table device_##_table = {                                                         \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, #device_),                    \
        .kernels = device_##_list}
KERNELS(cpu);
KERNELS(fake);
KERNELS(far);
KERNELS(farther);
KERNELS(beside);
TEST_PLUGIN(plugin, "torn", &test_cube_ops.head, &op_table.head, &cpu_table.head, &fake_table.head,
            &far_table.head, &farther_table.head, &beside_table.head, &far_ops.head, &farther_ops.head,
            &beside_ops.head);

/* ---- the pass ------------------------------------------------------------------------------------------ */

#define LEAVES 5
#define BASE 4 /* values of the memory that a gradient lies in */

typedef struct pass {
    tni_context *c;
    tni_array *leaf[LEAVES];
    tni_array *base[LEAVES]; /* a strided gradient is a column of it */
} pass;

static const struct {
    uint32_t mode;
    bool strided;
    float after[BASE]; /* from fives */
} want[LEAVES] = {
    {TN_MODE_ADD, false, {8, 17}},       {TN_MODE_WRITE, true, {5, 3, 5, 12}},
    {TN_MODE_ADD, true, {5, 8, 5, 17}},  {TN_MODE_WRITE, false, {0, 0}}, /* leads nowhere, as the next */
    {TN_MODE_WRITE, true, {5, 0, 5, 0}},
};

static int64_t base_count(int i)
{
    return want[i].strided ? 4 : 2;
}

static tni_array *array_on(tni_context *c, tni_device *d, int32_t ndim, const int64_t *shape)
{
    tni_array *a = NULL;

    assert_ok(tni_array_create(c->space, d, TN_F32, ndim, shape, "test", &a));
    return a;
}

static void pass_open(pass *t, const char *engine, const char *device, bool late)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char path[TN_PATH_BYTES_MAX];
    const char *const settings[] = {path, engine, "plugin.fake.delay_us=20", NULL};
    const tni_context_options o = {.settings = settings};
    const int64_t two = 2, square[] = {2, 2};
    tni_device *d;

    (void)snprintf(path, sizeof path, "plugins.path=%s", folder ? folder : "");
    later = late;
    assert_ok(tni_context_open(&o, &t->c));
    assert_ok(tni_registry_add_static(t->c->plugins, &plugin, NULL));
    assert_ok(tni_device_get(t->c->devices, device, 0, &d));
    for (int i = 0; i < LEAVES; i++) {
        tni_array *grad = NULL;

        t->leaf[i] = array_on(t->c, d, 1, &two);
        assert_ok(tni_array_write(t->leaf[i], (float[]){1, 2}, 2 * sizeof(float)));
        t->base[i] = array_on(t->c, d, want[i].strided ? 2 : 1, want[i].strided ? square : &two);
        if (want[i].strided)
            assert_ok(tni_array_view(t->base[i], 1, 1, &two, &two, &grad));
        assert_ok(tni_grad_attach(t->c, t->leaf[i], want[i].mode, grad ? grad : t->base[i]));
        tni_array_release(grad);
    }
}

static void pass_close(pass *t)
{
    for (int i = 0; i < LEAVES; i++) {
        tni_array_release(t->leaf[i]);
        tni_array_release(t->base[i]);
    }
    test_context_close(t->c);
}

static void pass_record(pass *t, tni_array *heads[3])
{
    tni_array *in[3] = {NULL, t->leaf[3], t->leaf[4]}, *between;

    test_record(true, true);
    in[0] = test_op(t->c, "test_cube", 1, &t->leaf[0], NULL);
    between = test_op(t->c, "test_drop", 2, in, NULL);
    heads[0] = test_op(t->c, "test_drop", 2, (tni_array *[]){between, t->leaf[4]}, NULL);
    heads[1] = test_op(t->c, "test_cube", 1, &t->leaf[1], NULL);
    heads[2] = test_op(t->c, "test_cube", 1, &t->leaf[2], NULL);
    test_record(false, false);
    tni_array_release(in[0]);
    tni_array_release(between);
}

static void fill_fives(pass *t)
{
    for (int i = 0; i < LEAVES; i++)
        assert_ok(tni_array_fill(t->base[i], 5));
}

static void fives_remain(pass *t)
{
    static const float before[] = {5, 5, 5, 5};

    for (int i = 0; i < LEAVES; i++)
        test_values(t->base[i], before, (size_t)base_count(i), 0);
}

static bool torn_at(pass *t, uint64_t nth, bool this_thread, uint64_t *failures)
{
    tni_array *heads[3];
    bool spoiled[LEAVES], any = false;
    tn_status st;
    bool failed;

    pass_record(t, heads);
    fill_fives(t);
    assert_ok(tni_engine_wait_all(t->c->engine));
    tni_mem_fail_at(nth, false, this_thread);
    st = tni_backward(t->c, 3, heads, NULL, NULL);
    for (int i = 0; i < LEAVES; i++)
        (void)tni_array_wait_write(t->base[i]);
    failed = tni_mem_failed();
    tni_mem_fail_at(0, false, false);
    assert_true(st == TN_OK || st == TN_E_NOMEM);
    for (int i = 0; i < LEAVES; i++)
        any |= spoiled[i] = tni_array_wait(t->base[i]) != TN_OK;
    *failures += st != TN_OK || any;
    assert_true(!st || !any);
    if (st)
        fives_remain(t);
    for (int i = 0; i < LEAVES && !st; i++)
        if (!spoiled[i])
            test_values(t->base[i], want[i].after, (size_t)base_count(i), 0);
    tni_autograd_close(t->c); /* so that the next one compiles again */
    for (int i = 0; i < 3; i++)
        tni_array_release(heads[i]);
    (void)tni_engine_wait_all(t->c->engine); /* what failed was told */
    return failed;
}

/* Every allocation fails in turn; of a short test every third. */
static void nothing_is_torn(const char *engine, const char *device, bool late)
{
    const uint64_t stride = test_short() ? 3 : 1;

    for (int on_callers = 0; on_callers < 2; on_callers++) {
        tni_exec_stats stats;
        uint64_t failures = 0;
        pass t;

        pass_open(&t, engine, device, late);
        for (uint64_t nth = 1; torn_at(&t, nth, on_callers != 0, &failures); nth += stride)
            ;
        assert_true(failures > 10);
        tni_exec_stats_get(t.c, &stats);
        assert_int_equal(stats.cuts != 0, late);
        pass_close(&t);
    }
}

static const char *const engines[] = {"engine.type=threaded", "engine.inline_ns=0", "engine.type=naive"};

static void programs(void **state)
{
    static const char *const devices[] = {"cpu", "fake", "far", "farther", "beside"};

    (void)state;
    for (int e = 0; e < 3; e++)
        for (int d = 0; d < 5; d++)
            nothing_is_torn(engines[e], devices[d], false);
}

static void cut(void **state) /* the fake device runs kernels that are over when they return */
{
    static const char *const devices[] = {"cpu", "far", "farther", "beside"};

    (void)state;
    for (int e = 0; e < 3; e++)
        for (int d = 0; d < 4; d++)
            nothing_is_torn(engines[e], devices[d], true);
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

static void read_only(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < LEAVES; i++) {
            tni_array *heads[3];
            pass t;

            pass_open(&t, engines[0], "cpu", late != 0);
            pass_record(&t, heads);
            fill_fives(&t);
            t.base[i]->storage->flags |= TNI_STORAGE_READ_ONLY;
            assert_int_equal(tni_backward(t.c, 3, heads, NULL, NULL), TN_E_STATE);
            assert_non_null(strstr(tni_error_message(), "read"));
            fives_remain(&t);
            for (int h = 0; h < 3; h++)
                tni_array_release(heads[h]);
            pass_close(&t);
        }
}

/* A gradient on another device than the pass is refused; zeros go anywhere. */
static void elsewhere(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        const int64_t two = 2;
        tni_array *heads[3], *other;
        tni_device *d;
        pass t;

        pass_open(&t, engines[0], "far", late != 0);
        assert_ok(tni_device_get(t.c->devices, "beside", 0, &d));
        other = array_on(t.c, d, 1, &two);
        assert_ok(tni_grad_attach(t.c, t.leaf[0], TN_MODE_ADD, other));
        pass_record(&t, heads);
        fill_fives(&t);
        assert_ok(tni_array_fill(other, 5));
        assert_int_equal(tni_backward(t.c, 3, heads, NULL, NULL), TN_E_DEVICE);
        fives_remain(&t);
        test_values(other, (float[]){5, 5}, 2, 0);
        assert_ok(tni_grad_attach(t.c, t.leaf[0], TN_MODE_ADD, t.base[0]));
        assert_ok(tni_grad_attach(t.c, t.leaf[3], TN_MODE_WRITE, other)); /* zeros go anywhere */
        for (int h = 0; h < 3; h++)
            tni_array_release(heads[h]);
        pass_record(&t, heads);
        assert_ok(tni_backward(t.c, 3, heads, NULL, NULL));
        test_values(other, (float[]){0, 0}, 2, 0);
        test_values(t.base[0], want[0].after, 2, 0);
        tni_array_release(other);
        for (int h = 0; h < 3; h++)
            tni_array_release(heads[h]);
        pass_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs),
        cmocka_unit_test(cut),
        cmocka_unit_test(read_only),
        cmocka_unit_test(elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
