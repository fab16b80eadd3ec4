/*
 * Kernels that take arguments in host memory (host_in, host_out), on hosts and on devices: the core brings
 * inputs there and results back, eager and in nets, strided ones too. Whatever allocation fails, no array of
 * the caller is changed in part.
 */
#include "far.h"
#include "support/runs.h"
#include "support/static_plugin.h"

#include <stdlib.h>
#include <string.h>

/* ---- y[i] = x[index[i]] and the sum of the indices; y = x + state, and state is counted up ------------- */

static tn_status pick_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    i->out_shape[1]->ndim = 1;
    i->out_shape[1]->dim[0] = 1;
    return st;
}

static tn_status step_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static const char *const names_pick[] = {"x", "index", NULL}, *const names_out[] = {"y", "sum", NULL};
static const char *const names_step[] = {"x", "state", NULL}, *const names_y[] = {"y", NULL};
static const tn_op pick =
    TEST_OP(.name = "test_pick", .inputs = names_pick, .outputs = names_out, .shape = pick_shape);
static const tn_op step =
    TEST_OP(.name = "test_step", .inputs = names_step, .outputs = names_y, .mutates = 2, .shape = step_shape);
TEST_OPS(op_table, "nears", &pick, &step);

static bool on_device; /* what runs is on a device: such arguments say that they are in host memory */

static bool near(const tn_tensor *t)
{
    return !on_device || t->memory == TN_MEMORY_HOST;
}

static tn_status pick_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    plan->est_ns = 100;
    return near(node->in[1]) && near(node->out[1]) ? TN_OK : tn_fail(err, TN_E_INTERNAL, "told otherwise");
}

static tn_status pick_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *from = far_near(x->in[0]), *index = x->in[1]->data;
    float *to = far_near(x->out[0]), *sum = x->out[1]->data;

    (void)plan;
    if (!near(x->in[1]) || !near(x->out[1]) || (on_device && near(x->in[0])))
        return tn_fail(err, TN_E_INTERNAL, "an argument is where it should not be");
    *sum = 0;
    for (int64_t i = 0; i < tn_tensor_count(x->in[1]); i++) {
        to[i] = from[(int)index[i]];
        *sum += index[i];
    }
    return TN_OK;
}

static tn_status pick_later(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_status st = pick_run(plan, x, err);

    x->ops->complete(x->call, st, err);
    return TN_PENDING;
}

static tn_status step_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    plan->est_ns = 100;
    return near(node->in[1]) && near(node->out[1]) ? TN_OK : tn_fail(err, TN_E_INTERNAL, "told otherwise");
}

static tn_status step_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = far_near(x->in[0]);
    float *out = far_near(x->out[0]), *state = x->out[1]->data;

    (void)plan;
    if (x->in[1]->data != state || !near(x->out[1]))
        return tn_fail(err, TN_E_INTERNAL, "a mutated input is two");
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        out[i] = in[i] + *state;
    *state += 1;
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(device_, op_, name_, flags_, in_, out_, prepare_, run_)                                       \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .name = (name_),       \
        .device = (device_), .isa = "", .op_version_min = 1, .op_version_max = 1,                            \
        .flags = TN_KERNEL_DETERMINISTIC | (flags_), .types = types, .host_in = (in_), .host_out = (out_),   \
        .prepare = (prepare_), .run = (run_)                                                                 \
    }
#define KERNELS(device_, flags_, pick_)                                                                      \
    static const tn_kernel device_##_kernels[] = {                                                           \
        KERNEL(#device_, "test_pick", "pick", flags_, 2u, 2u, pick_prepare, pick_),                          \
        KERNEL(#device_, "test_step", "step", 0u, 0u, 2u, step_prepare, step_run)};                          \
    static const tn_kernel *const device_##_list[] = {&device_##_kernels[0], &device_##_kernels[1], NULL};   \
    static const tn_kernel_table device_##_table = {                                                         \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, #device_),                    \
        .kernels = device_##_list}
KERNELS(cpu, 0u, pick_run);
KERNELS(fake, 0u, pick_run);
KERNELS(far, 0u, pick_run);
KERNELS(farther, TN_KERNEL_ASYNC, pick_later);
KERNELS(beside, 0u, pick_run);
TEST_PLUGIN(plugin, "nears", &op_table.head, &cpu_table.head, &fake_table.head, &far_table.head,
            &farther_table.head, &beside_table.head, &far_ops.head, &farther_ops.head, &beside_ops.head);

/* ---- places -------------------------------------------------------------------------------------------- */

static const char *const engines[] = {"engine.type=threaded", "engine.inline_ns=0", "engine.type=naive"};
static const char *const devices[] = {"cpu", "fake", "far", "farther", "beside"};
enum { ENGINES = 3, DEVICES = 5 };

typedef struct place {
    tni_context *c;
    tni_device *d;
    tni_site *pick, *step;
} place;

static void place_open(place *p, int engine, int device)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char path[TN_PATH_BYTES_MAX];
    const char *const settings[] = {path, engines[engine], "plugin.fake.delay_us=50", NULL};
    const tni_context_options o = {.settings = settings};

    (void)snprintf(path, sizeof path, "plugins.path=%s", folder ? folder : "");
    on_device = device > 0;
    assert_ok(tni_context_open(&o, &p->c));
    assert_ok(tni_registry_add_static(p->c->plugins, &plugin, NULL));
    assert_ok(tni_device_get(p->c->devices, devices[device], 0, &p->d));
    assert_ok(tni_site_create(p->c, "test_pick", 0, NULL, NULL, &p->pick));
    assert_ok(tni_site_create(p->c, "test_step", 0, NULL, NULL, &p->step));
}

static void place_close(place *p)
{
    tni_site_release(p->pick);
    tni_site_release(p->step);
    test_context_close(p->c);
}

static void everywhere(void (*body)(place *p))
{
    for (int e = 0; e < ENGINES; e++)
        for (int d = 0; d < DEVICES; d++) {
            place p;

            place_open(&p, e, d);
            body(&p);
            place_close(&p);
        }
}

static tni_array *array_of(place *p, int64_t count, const float *values)
{
    tni_array *a = NULL;

    assert_ok(tni_array_create(p->c->space, p->d, TN_F32, 1, &count, "test", &a));
    if (values)
        assert_ok(tni_array_write(a, values, tni_array_bytes(a)));
    return a;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void eager_calls(place *p)
{
    tni_array *in[] = {array_of(p, 4, (float[]){10, 11, 12, 13}), array_of(p, 3, (float[]){3, 0, 2})};
    tni_array *out[2] = {NULL}, *state = array_of(p, 1, (float[]){7}), *y[3] = {NULL};

    assert_ok(tni_invoke(p->pick, 2, in, 2, out));
    test_values(out[0], (float[]){13, 10, 12}, 3, 0);
    test_values(out[1], (float[]){5}, 1, 0);
    in[0] = (tni_array_release(in[0]), out[0]); /* results are arguments */
    assert_ok(tni_array_write(in[1], (float[]){2, 2, 0}, 3 * sizeof(float)));
    assert_ok(tni_invoke(p->pick, 2, in, 2, (tni_array *[]){in[1], out[1]})); /* and outputs may be inputs */
    test_values(in[1], (float[]){12, 12, 13}, 3, 0);
    test_values(out[1], (float[]){4}, 1, 0);
    for (int i = 0; i < 3; i++)
        assert_ok(tni_invoke(p->step, 2, (tni_array *[]){in[0], state}, 1, &y[i]));
    test_values(y[2], (float[]){22, 19, 21}, 3, 0);
    test_values(y[0], (float[]){20, 17, 19}, 3, 0);
    test_values(state, (float[]){10}, 1, 0);
    for (int i = 0; i < 3; i++)
        tni_array_release(y[i]);
    tni_array_release(state);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_array_release(out[1]);
}

static void eager(void **state)
{
    (void)state;
    everywhere(eager_calls);
}

/* A column as index and as the place of the sum. */
static void strided_calls(place *p)
{
    const int64_t square[] = {2, 2}, two = 2, one = 1;
    tni_array *m = NULL, *column = NULL, *corner = NULL, *x = array_of(p, 2, (float[]){5, 6}), *y = NULL;
    tni_array *out[2];

    assert_ok(tni_array_create(p->c->space, p->d, TN_F32, 2, square, "test", &m));
    assert_ok(tni_array_write(m, (float[]){9, 1, 9, 0}, 4 * sizeof(float)));
    assert_ok(tni_array_view(m, 1, 1, &two, &two, &column));
    assert_ok(tni_array_view(m, 2, 1, &one, &two, &corner));
    out[0] = NULL;
    out[1] = corner;
    assert_ok(tni_invoke(p->pick, 2, (tni_array *[]){x, column}, 2, out));
    y = out[0];
    test_values(y, (float[]){6, 5}, 2, 0);
    test_values(m, (float[]){9, 1, 1, 0}, 4, 0);
    tni_array_release(y);
    tni_array_release(x);
    tni_array_release(corner);
    tni_array_release(column);
    tni_array_release(m);
}

static void strided(void **state)
{
    (void)state;
    everywhere(strided_calls);
}

/* A program is cut around such a kernel on a device: copies, the kernel, a copy. */
static void net_calls(place *p)
{
    tni_symbol *x = NULL, *index = NULL, *atom = NULL, *s = NULL;
    tni_array *in[] = {array_of(p, 2, (float[]){5, 6}), array_of(p, 2, (float[]){1, 1})};
    tni_array *out[2] = {NULL};
    tni_exec_stats stats;
    tni_cached_op *net = NULL;

    assert_ok(tni_symbol_variable(p->c->ops, "x", &x));
    assert_ok(tni_symbol_variable(p->c->ops, "index", &index));
    assert_ok(tni_symbol_atomic(p->c->ops, "test_pick", 0, NULL, NULL, "p", &atom));
    assert_ok(tni_symbol_compose(atom, "p", 2, NULL, (tni_symbol *[]){x, index}, &s));
    assert_ok(tni_cached_op_create(p->c, s, NULL, &net));
    for (int i = 0; i < 2; i++) {
        assert_ok(tni_cached_op_call(net, 2, in, 2, out));
        test_values(out[0], (float[]){6, 6}, 2, 0);
        test_values(out[1], (float[]){2}, 1, 0);
    }
    tni_exec_stats_get(p->c, &stats);
    assert_int_equal(stats.cuts, on_device ? 2 * 2 : 0);
    tni_cached_op_release(net);
    tni_symbol_release(x);
    tni_symbol_release(index);
    tni_symbol_release(atom);
    tni_symbol_release(s);
    for (int i = 0; i < 2; i++) {
        tni_array_release(in[i]);
        tni_array_release(out[i]);
    }
}

static void nets(void **state)
{
    (void)state;
    everywhere(net_calls);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

/* A bad input comes out at all results. */
static void poison_calls(place *p)
{
    tni_array *in[] = {array_of(p, 2, (float[]){5, 6}), array_of(p, 2, NULL)}, *out[2] = {NULL};

    assert_true(tni_engine_enter(p->c->engine, NULL, 0, (tni_var *[]){tni_array_var(in[1])}, 1));
    tni_engine_leave(p->c->engine, NULL, 0, (tni_var *[]){tni_array_var(in[1])}, 1,
                     tni_error(TN_E_IO, "it could not be read"), "reader");
    assert_ok(tni_invoke(p->pick, 2, in, 2, out));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tni_array_wait(out[i]), TN_E_IO);
        assert_non_null(strstr(tni_error_message(), "it could not be read"));
        tni_array_release(out[i]);
        tni_array_release(in[i]);
    }
}

static void poisoned(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        place p;

        place_open(&p, 0, d); /* the fast path poisons */
        poison_calls(&p);
        place_close(&p);
    }
}

/* Step and pick into given arrays: all or nothing of each call. */
static bool memory_fails_at(place *p, tni_array *const a[5], uint64_t nth, uint64_t *failures)
{
    static const float fives[] = {5, 5, 5, 5};
    static const float after_pick[] = {6, 5}, after_step[] = {10, 11};
    static const float after_sum[] = {1}, after_state[] = {6};
    tni_array *out[] = {a[2], a[3]}, *y = a[2];
    uint32_t bad = 0;
    tn_status st;
    bool failed, picks = nth & 1;

    for (int i = 2; i < 5; i++)
        assert_ok(tni_array_fill(a[i], 5));
    assert_ok(tni_engine_wait_all(p->c->engine));
    tni_mem_fail_at(nth / 2 + 1, false, false);
    st = picks ? tni_invoke(p->pick, 2, (tni_array *[]){a[0], a[1]}, 2, out)
               : tni_invoke(p->step, 2, (tni_array *[]){a[0], a[4]}, 1, &y);
    for (int i = 2; i < 5; i++)
        (void)tni_array_wait_write(a[i]);
    failed = tni_mem_failed();
    tni_mem_fail_at(0, false, false);
    assert_true(st == TN_OK || st == TN_E_NOMEM);
    bad += tni_array_wait(a[2]) != TN_OK;
    bad += tni_array_wait(picks ? a[3] : a[4]) != TN_OK;
    *failures += st || bad;
    assert_true(bad == 0 || (bad == 2 && !st));
    for (int i = 2; i < 5 && !bad; i++) {
        const float *want = fives;

        if (!st && i == 2)
            want = picks ? after_pick : after_step;
        if (!st && i == (picks ? 3 : 4))
            want = picks ? after_sum : after_state;
        test_values(a[i], want, i == 2 ? 2 : 1, 0);
    }
    (void)tni_engine_wait_all(p->c->engine);
    return failed;
}

static void memory_calls(place *p)
{
    tni_array *a[5] = {array_of(p, 2, (float[]){5, 6}), array_of(p, 2, (float[]){1, 0}), array_of(p, 2, NULL),
                       array_of(p, 1, NULL), array_of(p, 1, NULL)};
    uint64_t failures = 0, quiet = 0;

    /* On a host the first calls load its kernels: thousands. */
    for (uint64_t nth = 0; quiet < 2; nth = test_failure_next(nth, 100))
        quiet = memory_fails_at(p, a, nth, &failures) ? 0 : quiet + 1;
    assert_true(failures > (on_device ? 6 : 0));
    for (int i = 0; i < 5; i++)
        tni_array_release(a[i]);
}

static void memory_runs_out(void **state)
{
    (void)state;
    everywhere(memory_calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager),    cmocka_unit_test(strided),         cmocka_unit_test(nets),
        cmocka_unit_test(poisoned), cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
