/*
 * Gradients of gradients: of operators called one by one and of nets on the tape, which must give the same
 * bits; against central differences of the first gradient.
 */
#include "net.h"

#include <math.h>
#include <string.h>

enum { INPUTS_MAX = 8 };

typedef struct made {
    tni_array *x[INPUTS_MAX], *grads[INPUTS_MAX]; /* inputs; their first gradients */
    tni_array *second[INPUTS_MAX];                /* gradients of those */
    uint32_t count;
} made;

typedef struct net_case {
    const char *name;
    tni_symbol *(*build)(tni_context *c);
    bool train;
    float tolerance; /* of differences; 0: none are made */
} net_case;

/* ---- nets of (2, 3) arrays ----------------------------------------------------------------------------- */

static tni_symbol *x_of(tni_context *c)
{
    return net_variable(c, "x");
}

static tni_symbol *one_function(tni_context *c)
{
    return net_take(c, "sin", net_take(c, "_mul_scalar", x_of(c), NULL, "scalar=2"), NULL, NULL);
}

/* tanh(x w) + sigmoid(x) exp(w) */
static tni_symbol *two_inputs(tni_context *c)
{
    tni_symbol *x = x_of(c), *w = net_variable(c, "w"), *in[] = {x, w};
    tni_symbol *left = net_take(c, "tanh", net_op(c, "elemwise_mul", 2, in, NULL), NULL, NULL);
    tni_symbol *right = net_take(c, "elemwise_mul", net_take(c, "sigmoid", x, NULL, NULL),
                                 net_take(c, "exp", w, NULL, NULL), NULL);

    return net_take(c, "elemwise_add", left, right, NULL);
}

/* Values in place, views, several uses of one. */
static tni_symbol *deep(tni_context *c)
{
    tni_symbol *s = net_take(c, "tanh", x_of(c), NULL, NULL), *in[2];

    for (int i = 0; i < 2; i++) {
        in[0] = in[1] = s;
        s = net_op(c, "elemwise_mul", 2, in, NULL);
        in[1] = s;
        s = net_op(c, "elemwise_add", 2, in, NULL);
        tni_symbol_release(in[0]);
        tni_symbol_release(in[1]);
        s = net_take(c, "Reshape", s, NULL, i % 2 ? "shape=(2, 3)" : "shape=(6,)");
        s = net_take(c, "Activation", s, NULL, "act_type=softrelu");
    }
    return net_take(c, "square", s, NULL, NULL);
}

static tni_symbol *softmax_of(tni_context *c)
{
    tni_symbol *x = x_of(c), *in[] = {x, NULL};

    in[1] = net_take(c, "softmax", net_op(c, "sin", 1, in, NULL), NULL, NULL);
    return net_take(c, "elemwise_mul", x, in[1], NULL);
}

/* The same draws and the same mask. */
static tni_symbol *dropped(tni_context *c)
{
    tni_symbol *s = net_take(c, "Dropout", net_take(c, "sin", x_of(c), NULL, NULL), NULL, "p=0.5");

    return net_take(c, "square", s, NULL, NULL);
}

static tni_symbol *broadcasted(tni_context *c)
{
    tni_symbol *x = x_of(c), *in[] = {x, NULL};

    in[1] = net_op(c, "mean", 1, in, "axis=1", "keepdims=True", NULL);
    return net_take(c, "square", net_take(c, "broadcast_mul", x, in[1], NULL), NULL, NULL);
}

/* A layer, a matrix product, a window of it. */
static tni_symbol *products(tni_context *c)
{
    tni_symbol *x = x_of(c), *w = net_variable(c, "w"), *b = net_variable(c, "b"), *in[3], *y, *z;

    in[0] = x;
    in[1] = w;
    y = net_take(c, "Reshape", b, NULL, "shape=(6,)");
    in[2] = net_op(c, "slice", 1, &y, "begin=(1,)", "end=(6,)", NULL);
    tni_symbol_release(y);
    y = net_op(c, "slice_axis", 1, &in[2], "axis=0", "begin=0", "end=2", NULL);
    tni_symbol_release(in[2]);
    in[2] = y;
    y = net_take(c, "tanh", net_op(c, "FullyConnected", 3, in, "num_hidden=2", NULL), NULL, NULL);
    z = net_op(c, "dot", 2, in, "transpose_b=True", NULL);
    for (int i = 0; i < 3; i++)
        tni_symbol_release(in[i]);
    return net_take(c, "elemwise_mul", y, net_take(c, "sin", z, NULL, NULL), NULL);
}

/* x as one image of two rows, w as windows of 1 x 3. */
static tni_symbol *windows(tni_context *c)
{
    tni_symbol *x = net_take(c, "Reshape", x_of(c), NULL, "shape=(1, 1, 2, 3)");
    tni_symbol *w = net_take(c, "Reshape", net_variable(c, "w"), NULL, "shape=(2, 1, 1, 3)");
    tni_symbol *in[] = {x, w}, *y;

    y = net_op(c, "Convolution", 2, in, "kernel=(1, 3)", "num_filter=2", "pad=(0, 1)", "no_bias=True", NULL);
    in[0] = in[1] = net_take(c, "sin", y, NULL, NULL);
    y = net_op(c, "Concat", 2, in, "dim=1", NULL);
    tni_symbol_release(in[0]);
    tni_symbol_release(x);
    tni_symbol_release(w);
    return net_take(c, "square", net_take(c, "tile", y, NULL, "reps=(1, 1, 2, 1)"), NULL, NULL);
}

/* Three elements of a variable. */
static tni_symbol *three_of(tni_context *c, const char *name)
{
    tni_symbol *flat = net_take(c, "Reshape", net_variable(c, name), NULL, "shape=(6,)");
    tni_symbol *s = net_op(c, "slice_axis", 1, &flat, "axis=0", "begin=1", "end=4", NULL);

    tni_symbol_release(flat);
    return s;
}

static tni_symbol *rows_normalised(tni_context *c)
{
    tni_symbol *in[] = {x_of(c), three_of(c, "w"), three_of(c, "b")};
    tni_symbol *y = net_op(c, "LayerNorm", 3, in, "eps=0.1", NULL);

    for (int i = 0; i < 3; i++)
        tni_symbol_release(in[i]);
    return net_take(c, "sin", y, NULL, NULL);
}

/* Windows of 1 x 2, one of x and one of sin x. */
static tni_symbol *pooled(tni_context *c)
{
    tni_symbol *x = net_take(c, "Reshape", x_of(c), NULL, "shape=(1, 1, 2, 3)"), *in[2] = {x, NULL}, *y;

    in[0] = net_take(c, "square", x, NULL, NULL);
    in[1] = net_op(c, "Pooling", 1, in, "kernel=(1, 2)", NULL);
    y = net_op(c, "Pooling", 1, in, "kernel=(1, 2)", "pool_type=avg", NULL);
    tni_symbol_release(in[0]);
    return net_take(c, "elemwise_mul", y, net_take(c, "sin", in[1], NULL, NULL), NULL);
}

static const net_case cases[] = {
    {"one function", one_function, true, 2e-2f},
    {"two inputs", two_inputs, true, 2e-2f},
    {"deep", deep, true, 5e-2f},
    {"softmax", softmax_of, true, 2e-2f},
    {"dropout", dropped, true, 0},
    {"dropout in predict mode", dropped, false, 2e-2f},
    {"broadcast", broadcasted, true, 2e-2f},
    {"products", products, true, 2e-2f},
    {"windows", windows, true, 5e-2f},
    {"rows", rows_normalised, true, 5e-2f},
    {"pooled", pooled, true, 5e-2f},
};

/* ---- twice --------------------------------------------------------------------------------------------- */

static void input_values(uint32_t which, float *to)
{
    for (int i = 0; i < 6; i++)
        to[i] = 0.3f * (float)(i - 2) + 0.11f * (float)which + 0.05f;
}

static tni_array *input_make(tni_context *c, uint32_t which)
{
    float values[6];

    input_values(which, values);
    return test_array(c, 2, (int64_t[]){2, 3}, values);
}

/* sum of <gradient of net, weights> as an array to go on from. */
static tni_array *weighted(tni_context *c, tni_array *const *grads, uint32_t count)
{
    tni_array *sum = NULL;

    for (uint32_t i = 0; i < count; i++) {
        char scalar[32];
        tni_array *part, *next;

        snprintf(scalar, sizeof scalar, "scalar=%u", i + 1);
        part = test_op(c, "_mul_scalar", 1, &grads[i], scalar, NULL);
        if (!sum) {
            sum = part;
            continue;
        }
        next = test_op(c, "elemwise_add", 2, (tni_array *[]){sum, part}, NULL);
        tni_array_release(sum);
        tni_array_release(part);
        sum = next;
    }
    return sum;
}

/* `penalty`: the net's own output is a head of the second pass, too. */
static made twice(tni_context *c, const net_case *n, bool hybrid, bool penalty)
{
    const tni_backward_options create = {.create = true};
    tni_symbol *s = n->build(c);
    made m = {.count = net_inputs(s)};
    tni_array *y = NULL, *heads[2] = {NULL};

    assert_ok(tni_random_seed(c, 7, NULL));
    for (uint32_t i = 0; i < m.count; i++) {
        m.x[i] = input_make(c, i);
        assert_ok(tni_grad_attach(c, m.x[i], TN_MODE_WRITE, NULL));
    }
    test_record(true, n->train);
    net_call(c, s, hybrid, m.x, &y);
    assert_ok(tni_grad(c, 1, &y, NULL, m.count, m.x, &create, m.grads));
    heads[0] = weighted(c, m.grads, m.count);
    test_record(false, false);
    heads[1] = y;
    assert_ok(tni_backward(c, penalty ? 2 : 1, heads, NULL, NULL));
    for (uint32_t i = 0; i < m.count; i++)
        tni_array_retain(m.second[i] = tni_grad_get(m.x[i]));
    tni_array_release(heads[0]);
    tni_array_release(y);
    tni_symbol_release(s);
    return m;
}

static void made_free(made *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        tni_array_release(m->x[i]);
        tni_array_release(m->grads[i]);
        tni_array_release(m->second[i]);
    }
}

static void same_bits(void **state)
{
    tni_context *c = test_context(NULL);

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int penalty = 0; penalty < 2; penalty++) {
            made eager = twice(c, &cases[k], false, penalty), hybrid = twice(c, &cases[k], true, penalty);

            for (uint32_t i = 0; i < eager.count; i++) {
                net_same(eager.grads[i], hybrid.grads[i], cases[k].name);
                net_same(eager.second[i], hybrid.second[i], cases[k].name);
            }
            made_free(&eager);
            made_free(&hybrid);
        }
    test_context_close(c);
}

/* The sum of the weighted first gradient, with one element of one input moved. */
static double first_sum(tni_context *c, const net_case *n, uint32_t input, int element, float by)
{
    tni_symbol *s = n->build(c);
    made m = {.count = net_inputs(s)};
    tni_array *y = NULL;
    float values[6];
    double sum = 0;

    for (uint32_t i = 0; i < m.count; i++) {
        input_values(i, values);
        values[element] += i == input ? by : 0;
        m.x[i] = test_array(c, 2, (int64_t[]){2, 3}, values);
        assert_ok(tni_grad_attach(c, m.x[i], TN_MODE_WRITE, NULL));
    }
    test_record(true, n->train);
    net_call(c, s, true, m.x, &y);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    for (uint32_t i = 0; i < m.count; i++) {
        assert_ok(tni_array_read(tni_grad_get(m.x[i]), values, sizeof values));
        for (int k = 0; k < 6; k++)
            sum += (i + 1) * (double)values[k];
    }
    tni_array_release(y);
    tni_symbol_release(s);
    made_free(&m);
    return sum;
}

static void differences(void **state)
{
    tni_context *c = test_context(NULL);
    const float step = 1e-2f;

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        made m = twice(c, &cases[k], true, false);

        for (uint32_t i = 0; i < m.count && cases[k].tolerance > 0; i++) {
            float expected[6];

            for (int e = 0; e < 6; e++)
                expected[e] =
                    (float)((first_sum(c, &cases[k], i, e, step) - first_sum(c, &cases[k], i, e, -step)) /
                            (2 * (double)step));
            print_message("%s\n", cases[k].name);
            test_values(m.second[i], expected, 6, cases[k].tolerance);
        }
        made_free(&m);
    }
    test_context_close(c);
}

/* x^4 again and again, through nets: 4 x^3, 12 x^2, 24 x, 24. */
static void further(void **state)
{
    const tni_backward_options create = {.create = true};
    const float expected[][2] = {{32, -4}, {48, 12}, {48, -24}, {24, 24}};
    tni_context *c = test_context(NULL);
    tni_symbol *s = net_take(c, "square", net_variable(c, "x"), NULL, NULL);

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *x = test_array(c, 1, (int64_t[]){2}, (float[]){2, -1}), *h = NULL, *y = NULL;

        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        test_record(true, true);
        net_call(c, s, hybrid, &x, &h);
        net_call(c, s, hybrid, &h, &y);
        test_record(false, false);
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            tni_array *g = NULL;

            assert_ok(tni_grad(c, 1, &y, NULL, 1, &x, &create, &g));
            test_values(g, expected[i], 2, 1e-4f);
            tni_array_release(y);
            y = g;
        }
        tni_array_release(x);
        tni_array_release(h);
        tni_array_release(y);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

/* What arrives at a head may be recorded, too: of <g, x^2> to x, to g. */
static void head_gradients(void **state)
{
    const tni_backward_options create = {.create = true};
    tni_context *c = test_context(NULL);
    tni_symbol *s = net_take(c, "square", net_variable(c, "x"), NULL, NULL);

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *x = test_vector(c, 2, (float[]){2, -3}), *g = test_vector(c, 2, (float[]){5, 7}),
                  *y = NULL, *d = NULL;

        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        assert_ok(tni_grad_attach(c, g, TN_MODE_WRITE, NULL));
        test_record(true, true);
        net_call(c, s, hybrid, &x, &y);
        test_record(false, false);
        assert_ok(tni_grad(c, 1, &y, &g, 1, &x, &create, &d));
        assert_ok(tni_backward(c, 1, &d, NULL, NULL));
        test_values(tni_grad_get(x), (float[]){10, 14}, 2, 0);
        test_values(tni_grad_get(g), (float[]){4, -6}, 2, 0);
        assert_int_equal(tni_backward(c, 1, &d, NULL, NULL), TN_E_STATE); /* consumed like any other tape */
        tni_array_release(x);
        tni_array_release(g);
        tni_array_release(y);
        tni_array_release(d);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

/* s = sin(x), u = exp(s w + s), tanh(u w) behind a sigmoid: a product reads s, its gradient to x does not. */
static tni_symbol *frozen(tni_context *c)
{
    tni_symbol *w = net_variable(c, "w"), *in[2] = {net_take(c, "sin", x_of(c), NULL, NULL), w}, *y, *z;

    y = net_op(c, "elemwise_mul", 2, in, NULL);
    z = net_take(c, "transpose", net_take(c, "transpose", in[0], NULL, NULL), NULL, NULL);
    y = net_take(c, "exp", net_take(c, "elemwise_add", y, z, NULL), NULL, NULL);
    y = net_take(c, "tanh", net_take(c, "elemwise_mul", y, w, NULL), NULL, NULL);
    return net_take(c, "sigmoid", y, NULL, NULL);
}

/* What lives in forward alone may lie in bytes that are kept for another value: it is not there any more. */
static void only_what_is_kept(void **state)
{
    const tni_backward_options create = {.create = true};
    tni_context *c = test_context(NULL);
    tni_symbol *s = frozen(c);
    tni_cached_op *op = NULL;
    tni_array *in[2] = {input_make(c, 0), input_make(c, 1)}, *y = NULL, *g = NULL;
    tni_compiled *e = NULL;
    uint32_t gone = 0, copied = 0;

    (void)state;
    assert_ok(tni_grad_attach(c, in[0], TN_MODE_WRITE, NULL));
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    test_record(true, true);
    assert_ok(tni_cached_op_call(op, 2, in, 1, &y));
    test_record(false, false);
    assert_ok(tni_cached_op_recent(op, &e));
    for (uint32_t k = 0; k < e->graph->entry_count; k++) {
        const uint32_t value = e->program->value_of[k];

        gone += e->program->values[value].place == TNI_PLACE_KEPT && !tni_value_crosses(e->program, value);
    }
    assert_true(gone > 0);
    assert_ok(tni_grad(c, 1, &y, NULL, 1, in, &create, &g));
    for (uint32_t k = 0; k < e->values->port_count; k++)
        copied += e->values->ports[k].kind == TNI_PORT_GRADIENT;
    assert_int_equal(copied, 2); /* the results of exp and tanh */
    assert_ok(tni_backward(c, 1, &g, NULL, NULL));
    assert_ok(tni_array_wait(tni_grad_get(in[0])));
    tni_compiled_release(e);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_array_release(y);
    tni_array_release(g);
    test_context_close(c);
}

/* ---- BatchNorm ----------------------------------------------------------------------------------------- */

enum { ROWS = 4, CHANNELS = 2, DATA = ROWS * CHANNELS };

/* Inputs x, gamma, beta, and statistics; the gradients of sin(BatchNorm) to the first three, recorded. */
static void batch_norm_first(tni_context *c, bool hybrid, bool train, const float *data, tni_array **in,
                             tni_array **grads)
{
    const tni_backward_options create = {.create = true};
    tni_symbol *x = net_variable(c, "x"),
               *s = net_op(c, "BatchNorm", 1, &x, "fix_gamma=False", "eps=0.1", NULL);
    tni_array *y = NULL;

    s = net_take(c, "sin", s, NULL, NULL);
    in[0] = test_array(c, 2, (int64_t[]){ROWS, CHANNELS}, data);
    in[1] = test_vector(c, CHANNELS, data + DATA);
    in[2] = test_vector(c, CHANNELS, data + DATA + CHANNELS);
    in[3] = test_vector(c, CHANNELS, (float[]){0.2f, -0.1f});
    in[4] = test_vector(c, CHANNELS, (float[]){0.9f, 1.3f});
    for (int i = 0; i < 3; i++)
        assert_ok(tni_grad_attach(c, in[i], TN_MODE_WRITE, NULL));
    test_record(true, train);
    net_call(c, s, hybrid, in, &y);
    assert_ok(tni_grad(c, 1, &y, NULL, 3, in, &create, grads));
    test_record(false, false);
    tni_array_release(y);
    tni_symbol_release(s);
    tni_symbol_release(x);
}

/* A number of those gradients: sum of cos(k) g[k]. Its gradients go to the inputs if `back`. */
static double batch_norm_sum(tni_context *c, bool back, tni_array **grads)
{
    double sum = 0;
    tni_array *heads[3];

    for (int i = 0; i < 3; i++) {
        const int count = i ? CHANNELS : DATA;
        float values[DATA], weights[DATA];

        for (int k = 0; k < count; k++)
            weights[k] = cosf((float)(k + 3 * i));
        assert_ok(tni_array_read(grads[i], values, (size_t)count * sizeof *values));
        for (int k = 0; k < count; k++)
            sum += (double)weights[k] * (double)values[k];
        heads[i] =
            i ? test_vector(c, CHANNELS, weights) : test_array(c, 2, (int64_t[]){ROWS, CHANNELS}, weights);
    }
    if (back)
        assert_ok(tni_backward(c, 3, grads, heads, NULL));
    for (int i = 0; i < 3; i++)
        tni_array_release(heads[i]);
    return sum;
}

static void many_release(tni_array **arrays, int count)
{
    for (int i = 0; i < count; i++)
        tni_array_release(arrays[i]);
}

/* In training the statistics are functions of x, in predict mode they are constants. */
static void batch_norm(void **state)
{
    static const float data[DATA + 2 * CHANNELS] = {0.3f, -1,   0.8f, 0.4f, -0.6f, 1.2f,
                                                    1.1f, 0.1f, 0.7f, 1.4f, 0.2f,  -0.3f};
    tni_context *c = test_context(NULL);
    const float step = 1e-2f;

    (void)state;
    for (int train = 0; train < 2; train++) {
        tni_array *in[2][5], *grads[2][3], *other[5], *first[3];

        for (int hybrid = 0; hybrid < 2; hybrid++) {
            batch_norm_first(c, hybrid, train, data, in[hybrid], grads[hybrid]);
            (void)batch_norm_sum(c, true, grads[hybrid]);
        }
        for (int i = 0, at = 0; i < 3; at += i ? CHANNELS : DATA, i++) {
            float expected[DATA];

            net_same(tni_grad_get(in[0][i]), tni_grad_get(in[1][i]), "BatchNorm");
            for (int k = 0; k < (i ? CHANNELS : DATA); k++) {
                float moved[DATA + 2 * CHANNELS];
                double sums[2];

                for (int s = 0; s < 2; s++) {
                    memcpy(moved, data, sizeof moved);
                    moved[at + k] += s ? step : -step;
                    batch_norm_first(c, true, train, moved, other, first);
                    sums[s] = batch_norm_sum(c, false, first);
                    many_release(other, 5);
                    many_release(first, 3);
                }
                expected[k] = (float)((sums[1] - sums[0]) / (2 * (double)step));
            }
            test_values(tni_grad_get(in[0][i]), expected, i ? CHANNELS : DATA, 5e-3f);
        }
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            many_release(in[hybrid], 5);
            many_release(grads[hybrid], 3);
        }
    }
    test_context_close(c);
}

/* Nothing runs again: statistics move once, draws are taken once; a gradient that is missing is named. */
static void once(void **state)
{
    const tni_backward_options create = {.create = true};
    tni_context *c = test_context(NULL);
    tni_symbol *x = net_variable(c, "x"), *s = net_op(c, "BatchNorm", 1, &x, NULL);
    tni_exec_stats before, after;

    (void)state;
    s = net_take(c, "nanprod", net_take(c, "Dropout", s, NULL, "p=0.5"), NULL, "axis=1");
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *in[5] = {test_array(c, 2, (int64_t[]){4, 1}, (float[]){1, 2, 4, 7}), NULL}, *y = NULL,
                  *g = NULL, *again = NULL;
        tni_device *d = in[0]->storage->device;
        uint64_t draws;

        for (int i = 1; i < 5; i++)
            in[i] = test_vector(c, 1, (float[]){i == 4});
        assert_ok(tni_grad_attach(c, in[0], TN_MODE_WRITE, NULL));
        test_record(true, true);
        net_call(c, s, hybrid, in, &y);
        test_record(false, false);
        draws = tni_random_position(c, d);
        assert_ok(tni_grad(c, 1, &y, NULL, 1, in, &create, &g));
        assert_true(tni_random_position(c, d) == draws);
        test_values(in[3], (float[]){0.35f}, 1, 1e-5f);
        tni_exec_stats_get(c, &before);
        assert_ok(tni_grad(c, 1, &y, NULL, 1, in, &create, &again));
        tni_exec_stats_get(c, &after);
        assert_true(after.programs == before.programs); /* what was unrolled stays so */
        net_same(g, again, "twice");
        assert_int_equal(tni_backward(c, 1, &g, NULL, NULL), TN_E_UNSUPPORTED);
        assert_non_null(strstr(tni_error_message(), "_backward_nanprod"));
        for (int i = 0; i < 5; i++)
            tni_array_release(in[i]);
        tni_array_release(y);
        tni_array_release(g);
        tni_array_release(again);
    }
    tni_symbol_release(x);
    tni_symbol_release(s);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),         cmocka_unit_test(differences), cmocka_unit_test(further),
        cmocka_unit_test(head_gradients),    cmocka_unit_test(once),        cmocka_unit_test(batch_norm),
        cmocka_unit_test(only_what_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
