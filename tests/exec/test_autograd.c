/* Recording and backward: values, modes, retain, cached operators. */
#include "context.h"

static void chain(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_vector(c, 3, (float[]){1, 2, 3}), *y, *z;
    const tni_backward_options retain = {.retain = true};

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    for (int round = 0; round < 3; round++) { /* the second and third use the program of the first */
        test_record(true, true);
        y = test_op(c, "elemwise_mul", 2, (tni_array *[]){x, x}, NULL);
        z = test_op(c, "elemwise_mul", 2, (tni_array *[]){y, x}, NULL); /* x^3 */
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &z, NULL, &retain));
        test_values(tni_grad_get(x), (float[]){3, 12, 27}, 3, 1e-5f);
        assert_ok(tni_backward(c, 1, &z, NULL, NULL));
        assert_int_equal(tni_backward(c, 1, &z, NULL, NULL), TN_E_STATE);
        tni_array_release(y);
        tni_array_release(z);
    }
    tni_array_release(x);
    test_context_close(c);
}

static void adds_up(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *head = test_vector(c, 2, (float[]){10, 100});

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_ADD, NULL));
    for (int round = 1; round < 4; round++) {
        tni_array *y;

        test_record(true, true);
        y = test_op(c, "elemwise_mul", 2, (tni_array *[]){x, x}, NULL);
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &y, &head, NULL));
        test_values(tni_grad_get(x), (float[]){20.0f * (float)round, 400.0f * (float)round}, 2, 1e-3f);
        tni_array_release(y);
    }
    tni_array_release(x);
    tni_array_release(head);
    test_context_close(c);
}

static void runtime_attributes(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y;
    tni_site *site = NULL;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    assert_ok(tni_site_create(c, "_mul_scalar", 1, (const char *[]){"scalar"}, (const char *[]){"2"}, &site));
    for (int i = 1; i < 5; i++) { /* one program; the scalar of each call */
        assert_ok(tni_site_set(site, 0, tn_value_of_float(i)));
        test_record(true, true);
        y = NULL;
        assert_ok(tni_invoke(site, 1, &x, 1, &y));
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        test_values(tni_grad_get(x), (float[]){(float)i, (float)i}, 2, 0);
        tni_array_release(y);
    }
    tni_site_release(site);
    tni_array_release(x);
    test_context_close(c);
}

/* tanh(x w^T + b) as a symbol. */
static tni_cached_op *dense_net(tni_context *c)
{
    tni_symbol *data = NULL, *fc = NULL, *fc_done = NULL, *act = NULL, *net = NULL;
    tni_cached_op *op = NULL;

    assert_ok(tni_symbol_variable(c->ops, "data", &data));
    assert_ok(tni_symbol_atomic(c->ops, "FullyConnected", 1, (const char *[]){"num_hidden"},
                                (const char *[]){"2"}, "fc", &fc));
    assert_ok(tni_symbol_compose(fc, "fc", 1, NULL, &data, &fc_done));
    assert_ok(tni_symbol_atomic(c->ops, "Activation", 1, (const char *[]){"act_type"},
                                (const char *[]){"tanh"}, "act", &act));
    assert_ok(tni_symbol_compose(act, "act", 1, NULL, &fc_done, &net));
    assert_ok(tni_cached_op_create(c, net, NULL, &op));
    tni_symbol_release(data);
    tni_symbol_release(fc);
    tni_symbol_release(fc_done);
    tni_symbol_release(act);
    tni_symbol_release(net);
    return op;
}

/* The same net twice before backward, hybridized and not: the same gradients. */
static void cached_twice(void **state)
{
    tni_context *c = test_context(NULL);
    tni_cached_op *op = dense_net(c);
    tni_array *w = test_array(c, 2, (int64_t[]){2, 3}, (float[]){.1f, .2f, .3f, -.1f, .5f, -.2f});
    tni_array *b = test_vector(c, 2, (float[]){.05f, -.05f});
    tni_array *x[2] = {test_array(c, 2, (int64_t[]){1, 3}, (float[]){1, 2, 3}),
                       test_array(c, 2, (int64_t[]){1, 3}, (float[]){-1, .5f, 2})};
    float expected[6];

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *y[2] = {NULL, NULL}, *sum;

        assert_ok(tni_grad_attach(c, w, TN_MODE_WRITE, NULL));
        assert_ok(tni_grad_attach(c, b, TN_MODE_WRITE, NULL));
        test_record(true, true);
        for (int i = 0; i < 2; i++) {
            if (hybrid) {
                assert_ok(tni_cached_op_call(op, 3, (tni_array *[]){x[i], w, b}, 1, &y[i]));
            } else {
                tni_array *fc =
                    test_op(c, "FullyConnected", 3, (tni_array *[]){x[i], w, b}, "num_hidden=2", NULL);

                y[i] = test_op(c, "Activation", 1, &fc, "act_type=tanh", NULL);
                tni_array_release(fc);
            }
        }
        sum = test_op(c, "elemwise_mul", 2, y, NULL);
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &sum, NULL, NULL));
        if (hybrid)
            test_values(tni_grad_get(w), expected, 6, 1e-6f);
        else
            assert_ok(tni_array_read(tni_grad_get(w), expected, sizeof expected));
        for (int i = 0; i < 2; i++)
            tni_array_release(y[i]);
        tni_array_release(sum);
    }
    tni_array_release(w);
    tni_array_release(b);
    tni_array_release(x[0]);
    tni_array_release(x[1]);
    tni_cached_op_release(op);
    test_context_close(c);
}

/* sum(square(w2 (w1 x))) as a function of the weights. */
static float two_layers(tni_context *c, tni_array *x, tni_array *const w[2], bool on)
{
    tni_array *h, *y, *loss;
    float values[4], sum = 0;

    test_record(on, on);
    h = test_op(c, "FullyConnected", 2, (tni_array *[]){x, w[0]}, "num_hidden=2", "no_bias=True", NULL);
    y = test_op(c, "FullyConnected", 2, (tni_array *[]){h, w[1]}, "num_hidden=2", "no_bias=True", NULL);
    loss = test_op(c, "square", 1, &y, NULL);
    test_record(false, false);
    if (on)
        assert_ok(tni_backward(c, 1, &loss, NULL, NULL));
    assert_ok(tni_array_read(loss, values, sizeof values));
    for (int i = 0; i < 4; i++)
        sum += values[i];
    tni_array_release(h);
    tni_array_release(y);
    tni_array_release(loss);
    return sum;
}

/* Two layers of equal shapes share one plan; each has its own gradient. */
static void equal_layers(void **state)
{
    tni_context *c = test_context(NULL);
    float values[2][4] = {{.5f, -.3f, .2f, .8f}, {-.4f, .6f, .1f, -.7f}};
    tni_array *x = test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 2, -1, .5f}), *w[2];
    const float step = 1e-2f;

    (void)state;
    for (int l = 0; l < 2; l++) {
        w[l] = test_array(c, 2, (int64_t[]){2, 2}, values[l]);
        assert_ok(tni_grad_attach(c, w[l], TN_MODE_WRITE, NULL));
    }
    (void)two_layers(c, x, w, true);
    for (int l = 0; l < 2; l++) {
        float expected[4];

        for (int i = 0; i < 4; i++) {
            float up, down;

            values[l][i] += step;
            assert_ok(tni_array_write(w[l], values[l], sizeof values[l]));
            up = two_layers(c, x, w, false);
            values[l][i] -= 2 * step;
            assert_ok(tni_array_write(w[l], values[l], sizeof values[l]));
            down = two_layers(c, x, w, false);
            values[l][i] += step;
            assert_ok(tni_array_write(w[l], values[l], sizeof values[l]));
            expected[i] = (up - down) / (2 * step);
        }
        test_values(tni_grad_get(w[l]), expected, 4, 2e-3f);
    }
    tni_array_release(x);
    tni_array_release(w[0]);
    tni_array_release(w[1]);
    test_context_close(c);
}

static void not_recorded(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y = test_op(c, "relu", 1, &x, NULL);

    (void)state;
    assert_int_equal(tni_backward(c, 1, &y, NULL, NULL), TN_E_STATE);
    assert_int_equal(tni_backward(c, 0, NULL, NULL, NULL), TN_E_ARG);
    tni_array_release(x);
    tni_array_release(y);
    test_context_close(c);
}

/* A chain of 20,000 recorded operations is freed without recursion, and its gradient is right. */
static void long_chain(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_vector(c, 1, (float[]){1}), *y = x;
    tni_site *site = NULL;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    assert_ok(tni_site_create(c, "elemwise_mul", 0, NULL, NULL, &site));
    tni_array_retain(y);
    test_record(true, true);
    for (int i = 0; i < 20000; i++) { /* each node keeps its input, which holds the node before */
        tni_array *next = NULL;

        assert_ok(tni_invoke(site, 2, (tni_array *[]){y, x}, 1, &next));
        tni_array_release(y);
        y = next;
    }
    test_record(false, false);
    test_values(y, (float[]){1}, 1, 0);
    tni_array_release(y);
    tni_site_release(site);
    tni_array_release(x);
    test_context_close(c);
}

/* An output given is an input, too: whoever reads the input still sees what it was. */
static void output_over_input(void **state)
{
    tni_context *c = test_context(NULL);
    tni_symbol *x = NULL, *open[2] = {NULL}, *sum = NULL, *product = NULL, *both = NULL;
    tni_array *in = test_vector(c, 2, (float[]){2, 3}), *out[2] = {in, NULL};
    tni_cached_op *op = NULL;

    (void)state;
    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    assert_ok(tni_symbol_atomic(c->ops, "elemwise_add", 0, NULL, NULL, "sum", &open[0]));
    assert_ok(tni_symbol_compose(open[0], "sum", 2, NULL, (tni_symbol *[]){x, x}, &sum));
    assert_ok(tni_symbol_atomic(c->ops, "elemwise_mul", 0, NULL, NULL, "product", &open[1]));
    assert_ok(tni_symbol_compose(open[1], "product", 2, NULL, (tni_symbol *[]){sum, x}, &product));
    assert_ok(tni_symbol_group(2, (tni_symbol *[]){sum, product}, &both));
    assert_ok(tni_cached_op_create(c, both, NULL, &op));
    assert_ok(tni_cached_op_call(op, 1, &in, 2, out));
    test_values(in, (float[]){4, 6}, 2, 0);
    test_values(out[1], (float[]){8, 18}, 2, 0);
    tni_array_release(out[1]);
    assert_ok(tni_grad_attach(c, in, TN_MODE_WRITE, NULL));
    out[1] = NULL;
    test_record(true, true);
    assert_int_equal(tni_cached_op_call(op, 1, &in, 2, out), TN_E_STATE);
    test_record(false, false);
    tni_cached_op_release(op);
    for (int i = 0; i < 2; i++)
        tni_symbol_release(open[i]);
    tni_symbol_release(x);
    tni_symbol_release(sum);
    tni_symbol_release(product);
    tni_symbol_release(both);
    tni_array_release(in);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain),
        cmocka_unit_test(adds_up),
        cmocka_unit_test(runtime_attributes),
        cmocka_unit_test(cached_twice),
        cmocka_unit_test(equal_layers),
        cmocka_unit_test(not_recorded),
        cmocka_unit_test(long_chain),
        cmocka_unit_test(output_over_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
