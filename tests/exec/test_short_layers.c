/*
 * A dense layer of float16 and the sum behind it are one kernel where gradients are recorded, too: z = y * y
 * of y = h + h w' + b, h = x p, with numbers that float16 has. The output and all gradients are those of the
 * operators apart: of the program's own backward, run twice, of another one, and of gradients of gradients.
 */
#include "net.h"
#include "support/static_plugin.h"
#include "tenon/plugin/op/fused.h"
#include "tenon/plugin/util.h"

#include <string.h>

enum { X, P, W, B, INPUTS };
enum { RESULTS = 1 + 2 * INPUTS + 1 + INPUTS, ELEMENTS_MAX = 9 };

static atomic_int runs, saves; /* of the fused kernel; how many bytes it keeps for a backward */
static bool again;             /* backward is to compute the layer again */

static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->saved_bytes = (uint64_t)atomic_load(&saves);
    return TN_OK;
}

static tn_status fused_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t rows = x->in[0]->shape[0], depth = x->in[0]->shape[1], units = x->in[1]->shape[0];
    const uint16_t *data = x->in[0]->data, *weight = x->in[1]->data, *bias = x->in[2]->data,
                   *addend = x->in[3]->data;
    uint16_t *to = x->out[0]->data;

    (void)plan;
    if (!x->attrs[TN_fused_dense_with_sum])
        return tn_fail(err, TN_E_INTERNAL, "a layer without a sum");
    atomic_fetch_add(&runs, 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t u = 0; u < units; u++) {
            double sum = tn_f16_load(bias[u]) + tn_f16_load(addend[r * units + u]);

            for (int64_t k = 0; k < depth; k++)
                sum += tn_f16_load(data[r * depth + k]) * tn_f16_load(weight[u * depth + k]);
            to[r * units + u] = tn_f16_store(sum);
        }
    return TN_OK;
}

static const char *const types[] = {"*:f16", NULL};
#define FUSED(type)                                                                                          \
    TEST_KERNEL("_fused_dense", type, .name = "vendor", .types = types, .prepare = fused_prepare,            \
                .run = fused_run)
static const tn_kernel cpu_fused = FUSED("cpu"), fake_fused = FUSED("fake");
TEST_KERNELS(cpu_table, "cpu", &cpu_fused);
TEST_KERNELS(fake_table, "fake", &fake_fused);
TEST_PLUGIN(plugin, "layers", &cpu_table.head, &fake_table.head);

static tni_symbol *net_make(tni_context *c)
{
    tni_symbol *in[4], *y, *z;

    in[0] = net_take(c, "elemwise_mul", net_variable(c, "x"), net_variable(c, "p"), NULL);
    in[1] = net_variable(c, "w");
    in[2] = net_variable(c, "b");
    in[3] = net_op(c, "FullyConnected", 3, in, "num_hidden=3", NULL);
    if (again)
        assert_ok(tni_symbol_attr_set(in[3], "__force_mirroring__", "True"));
    y = net_op(c, "elemwise_add", 2, (tni_symbol *[]){in[0], in[3]}, NULL);
    z = net_op(c, "elemwise_mul", 2, (tni_symbol *[]){y, y}, NULL);
    for (int i = 0; i < 4; i++)
        tni_symbol_release(in[i]);
    tni_symbol_release(y);
    return z;
}

static void read_to(tni_context *c, tni_array *a, float to[ELEMENTS_MAX])
{
    tni_array *full = test_op(c, "Cast", 1, &a, "dtype=float32", NULL);

    memset(to, 0, ELEMENTS_MAX * sizeof *to);
    assert_ok(tni_array_read(full, to, tni_array_bytes(full)));
    tni_array_release(full);
}

/* The output; gradients twice; the data's by another program; gradients of that. How often the kernel ran. */
static int results_make(const char *setting, float to[RESULTS][ELEMENTS_MAX])
{
    static const float numbers[INPUTS][ELEMENTS_MAX] = {
        {1, 2, -1, 3, 0.5F, 2}, {1, 1, 2, -1, 2, 1}, {1, 0, 2, -1, 1, 0, 0, 2, 1}, {1, -2, 3}};
    static const int64_t shapes[INPUTS][2] = {{2, 3}, {2, 3}, {3, 3}, {3, 0}};
    const char *const settings[] = {"plugins.load=cpu,mempool,fake", setting, NULL};
    const tni_backward_options retain = {.retain = true}, create = {.create = true};
    tni_context *c = test_context(settings);
    tni_symbol *s = (assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL)), net_make(c));
    tni_array *in[INPUTS], *out = NULL, *gradient = NULL;
    tni_cached_op *op = NULL;
    int n = 0;

    atomic_store(&runs, 0);
    for (int i = 0; i < INPUTS; i++) {
        tni_array *full = test_array(c, shapes[i][1] ? 2 : 1, shapes[i], numbers[i]);

        in[i] = test_op(c, "Cast", 1, &full, "dtype=float16", NULL);
        tni_array_release(full);
        assert_ok(tni_grad_attach(c, in[i], TN_MODE_WRITE, NULL));
    }
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    test_record(true, true);
    assert_ok(tni_cached_op_call(op, INPUTS, in, 1, &out));
    read_to(c, out, to[n++]);
    for (int k = 0; k < 2; k++) {
        test_record(false, true);
        assert_ok(tni_backward(c, 1, &out, NULL, &retain));
        for (int i = 0; i < INPUTS; i++)
            read_to(c, tni_grad_get(in[i]), to[n++]);
    }
    test_record(true, true);
    assert_ok(tni_grad(c, 1, &out, NULL, 1, in, &create, &gradient));
    read_to(c, gradient, to[n++]);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &gradient, NULL, NULL));
    for (int i = 0; i < INPUTS; i++)
        read_to(c, tni_grad_get(in[i]), to[n++]);
    assert_int_equal(n, RESULTS);
    n = atomic_load(&runs);
    tni_array_release(gradient);
    tni_array_release(out);
    for (int i = 0; i < INPUTS; i++)
        tni_array_release(in[i]);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    if (strcmp(tni_option_text(c->options, "run.deterministic"), "threads") == 0)
        n = n ? -1 : 1; /* bounded passes are left out */
    test_context_close(c);
    return n;
}

static void layer_and_sum(void **state)
{
    static float apart[RESULTS][ELEMENTS_MAX], fused[RESULTS][ELEMENTS_MAX];

    (void)state;
    atomic_store(&saves, 0);
    (void)results_make("compile.passes_off=fuse", apart);
    assert_int_equal(atomic_load(&runs), 0);
    assert_true(results_make("compile.passes_off=", fused) > 0);
    assert_memory_equal(apart, fused, sizeof apart);
    assert_true(apart[0][0] != 0 && apart[RESULTS - 1][0] != 0);
    /* A kernel that keeps something for a backward of its own serves no layer that has another one. */
    atomic_store(&saves, 64);
    memset(fused, 0, sizeof fused);
    (void)results_make("compile.passes_off=", fused);
    assert_int_equal(atomic_load(&runs), 0);
    assert_memory_equal(apart, fused, sizeof apart);
    atomic_store(&saves, 0);
    again = true;
    (void)results_make("compile.passes_off=", fused);
    again = false;
    assert_int_equal(atomic_load(&runs), 0);
    assert_memory_equal(apart, fused, sizeof apart);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layer_and_sum)};

    return cmocka_run_group_tests_name("short_layers", tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
