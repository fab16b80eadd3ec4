/*
 * Nets over several devices: parameters on cpu:0, cpu:1 and fake:0, as one program and call by call, once and
 * twice differentiated: the bits of one device. What cannot be placed is refused by name.
 */
#include "net.h"

#include <string.h>

/* The fake device runs the kernels of cpu, so the hosts do as well. */
static const char *const plain[] = {"kernel.prefer=cpu", NULL};

enum { LAYERS = 3, INPUTS = LAYERS + 1 };

static const char *const spread[INPUTS] = {"cpu:0", "cpu:0", "cpu:1", "fake:0"}; /* x, then weights */
static const char *const alone[INPUTS] = {"cpu:0", "cpu:0", "cpu:0", "cpu:0"};

static tni_device *device_of(tni_context *c, const char *text)
{
    tni_device *d = NULL;

    assert_ok(tni_device_parse(c->devices, text, &d));
    return d;
}

static tni_array *on_device(tni_context *c, const char *device, int64_t rows, int64_t columns, int seed)
{
    const tni_scope before = *tni_scope_get();
    float values[64];
    tni_array *a;

    for (int i = 0; i < rows * columns; i++)
        values[i] = (float)((i * 7 + seed * 5) % 11 - 5) / 8;
    tni_scope_get()->device = device_of(c, device);
    a = test_array(c, 2, (int64_t[]){rows, columns}, values);
    *tni_scope_get() = before;
    return a;
}

/* A layer of four units and a function; a connection around the middle one. `copies`: between the layers. */
static tni_symbol *net_of(tni_context *c, const char *const *copies)
{
    static const char *const functions[LAYERS] = {"tanh", "sigmoid", "sin"};
    tni_symbol *x = net_variable(c, "x"), *around = NULL;

    for (int l = 0; l < LAYERS; l++) {
        char name[16], ctx[32];
        tni_symbol *in[2] = {x, NULL}, *y;

        snprintf(name, sizeof name, "w%d", l);
        snprintf(ctx, sizeof ctx, "ctx=%s", copies ? copies[l + 1] : "");
        if (copies)
            in[0] = net_take(c, "_copyto", x, NULL, ctx);
        in[1] = net_variable(c, name);
        y = net_op(c, "FullyConnected", 2, in, "num_hidden=4", "no_bias=True", NULL);
        tni_symbol_release(in[0]);
        tni_symbol_release(in[1]);
        x = net_take(c, functions[l], y, NULL, NULL);
        if (l == 0)
            tni_symbol_retain(around = x);
        if (l == 1 && copies)
            around = net_take(c, "_copyto", around, NULL, ctx);
        if (l == 1)
            x = net_take(c, "elemwise_mul", x, around, NULL);
    }
    return net_take(c, "square", x, NULL, NULL);
}

typedef struct ran {
    tni_array *in[INPUTS], *first[INPUTS], *again[INPUTS]; /* again: gradients of the first gradients */
    tni_array *y;
} ran;

static void ran_free(ran *r)
{
    for (int i = 0; i < INPUTS; i++) {
        tni_array_release(r->in[i]);
        tni_array_release(r->first[i]);
        tni_array_release(r->again[i]);
    }
    tni_array_release(r->y);
}

/* mode: of attached gradients, which hold 1 before. */
static ran run(tni_context *c, const char *const *devices, bool hybrid, bool copies, uint32_t mode)
{
    const tni_backward_options create = {.create = true};
    tni_symbol *s = net_of(c, copies ? devices : NULL);
    ran r = {.y = NULL};

    for (int i = 0; i < INPUTS; i++) {
        r.in[i] = on_device(c, devices[i], i ? 4 : 3, 4, i);
        assert_ok(tni_grad_attach(c, r.in[i], mode, NULL));
        assert_ok(tni_array_fill(tni_grad_get(r.in[i]), 1));
    }
    test_record(true, true);
    net_call(c, s, hybrid, r.in, &r.y);
    assert_ok(tni_grad(c, 1, &r.y, NULL, INPUTS, r.in, &create, r.first));
    test_record(false, false);
    assert_ok(tni_backward(c, INPUTS, r.first, NULL, &(tni_backward_options){.retain = true}));
    assert_ok(tni_backward(c, 1, &r.y, NULL, NULL));
    for (int i = 0; i < INPUTS; i++)
        tni_array_retain(r.again[i] = tni_grad_get(r.in[i]));
    tni_symbol_release(s);
    return r;
}

static void compare(ran *a, ran *b)
{
    net_same(a->y, b->y, "output");
    for (int i = 0; i < INPUTS; i++) {
        net_same(a->first[i], b->first[i], "first gradient");
        net_same(a->again[i], b->again[i], "second gradient");
        assert_ptr_equal(b->first[i]->storage->device, b->in[i]->storage->device);
    }
}

static void same_bits(void **state)
{
    tni_context *c = test_context(plain);

    (void)state;
    for (uint32_t mode = TN_MODE_WRITE; mode <= TN_MODE_ADD; mode++) {
        for (int copies = 0; copies < 2; copies++) { /* are nodes, with sums of their own */
            ran one = run(c, alone, false, copies, mode);

            for (int k = copies ? 0 : 1; k < 3; k++) {
                ran other = run(c, k < 2 ? spread : alone, k > 0, copies, mode);

                compare(&one, &other);
                ran_free(&other);
            }
            ran_free(&one);
        }
    }
    test_context_close(c);
}

/* Only once: the backward of the program itself, and one that retains. */
static void once(void **state)
{
    tni_context *c = test_context(plain);
    tni_symbol *s = net_of(c, NULL);
    tni_array *expected[INPUTS] = {NULL};

    (void)state;
    for (int k = 0; k < 4; k++) {
        const char *const *devices = k ? spread : alone;
        tni_array *in[INPUTS], *y = NULL;

        for (int i = 0; i < INPUTS; i++) {
            in[i] = on_device(c, devices[i], i ? 4 : 3, 4, i);
            assert_ok(tni_grad_attach(c, in[i], TN_MODE_ADD, NULL));
        }
        test_record(true, true);
        net_call(c, s, true, in, &y);
        test_record(false, false);
        if (k == 2)
            assert_ok(tni_backward(c, 1, &y, NULL, &(tni_backward_options){.retain = true}));
        for (int i = 0; i < INPUTS && k == 2; i++)
            assert_ok(tni_array_fill(tni_grad_get(in[i]), 0));
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        for (int i = 0; i < INPUTS; i++) {
            if (k)
                net_same(expected[i], tni_grad_get(in[i]), "gradient");
            else
                tni_array_retain(expected[i] = tni_grad_get(in[i]));
            tni_array_release(in[i]);
        }
        tni_array_release(y);
    }
    for (int i = 0; i < INPUTS; i++)
        tni_array_release(expected[i]);
    tni_symbol_release(s);
    test_context_close(c);
}

/* a = x w0 in group "one", y = a w1 in group "two"; the arrays lie on cpu:0. */
static tni_symbol *grouped(tni_context *c)
{
    tni_symbol *x = net_variable(c, "x"), *in[2] = {x, net_variable(c, "w0")}, *a, *y;

    a = net_op(c, "elemwise_mul", 2, in, "__ctx_group__=one", NULL);
    tni_symbol_release(in[1]);
    in[0] = a;
    in[1] = net_variable(c, "w1");
    y = net_op(c, "elemwise_mul", 2, in, "__ctx_group__=two", NULL);
    tni_symbol_release(in[1]);
    tni_symbol_release(a);
    tni_symbol_release(x);
    return y;
}

static void groups(void **state)
{
    const struct {
        const char *const *pairs;
        tn_status status;
        const char *text;
    } wrong[] = {
        {(const char *const[]){"three", "cpu:1", NULL}, TN_E_KEY, "\"three\""},
        {(const char *const[]){"one", NULL}, TN_E_ARG, "no device"},
        {(const char *const[]){"one", "cpu:1", "one", "cpu:2", NULL}, TN_E_ARG, "two devices"},
        {(const char *const[]){"one", "gpu:0", NULL}, TN_E_DEVICE, "cuda"},
        {(const char *const[]){"one", "cpu:1", "two", "fake:77", NULL}, TN_E_DEVICE, "fake"},
        {(const char *const[]){"one", "", NULL}, TN_OK, ""},
    };
    tni_context *c = test_context(plain);
    tni_symbol *s = grouped(c);
    tni_cached_op *op = NULL;
    tni_array *in[3], *y = NULL;

    (void)state;
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const tn_status st = tni_cached_op_groups(op, wrong[i].pairs);

        if (!wrong[i].status) {
            assert_int_not_equal(st, TN_OK);
            continue;
        }
        assert_int_equal(st, wrong[i].status);
        assert_non_null(strstr(tni_error_message(), wrong[i].text));
    }
    assert_ok(tni_cached_op_groups(op, (const char *const[]){"two", "fake:0", "one", "cpu:1", NULL}));
    for (int i = 0; i < 3; i++) {
        in[i] = on_device(c, "cpu:0", 2, 2, i);
        assert_ok(tni_grad_attach(c, in[i], TN_MODE_WRITE, NULL));
    }
    test_record(true, true);
    assert_ok(tni_cached_op_call(op, 3, in, 1, &y));
    test_record(false, false);
    assert_ptr_equal(y->storage->device, device_of(c, "fake:0"));
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        tni_array *others[2] = {in[(i + 1) % 3], in[(i + 2) % 3]}, *expected;

        expected = test_op(c, "elemwise_mul", 2, others, NULL);
        net_same(tni_grad_get(in[i]), expected, "gradient");
        assert_ptr_equal(tni_grad_get(in[i])->storage->device, in[i]->storage->device);
        tni_array_release(expected);
    }
    for (int i = 0; i < 3; i++)
        tni_array_release(in[i]);
    tni_array_release(y);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    test_context_close(c);
}

/* sin(x) on its own device, a view of that in group "one", exp of the view there; both are outputs. */
static tni_symbol *viewed(tni_context *c)
{
    tni_symbol *s = net_take(c, "sin", net_variable(c, "x"), NULL, NULL), *heads[2], *both = NULL;

    heads[0] = net_op(c, "Reshape", 1, &s, "shape=(4,)", "__ctx_group__=one", NULL);
    heads[1] = net_op(c, "exp", 1, heads, "__ctx_group__=one", NULL);
    assert_ok(tni_symbol_group(2, heads, &both));
    tni_symbol_release(s);
    tni_symbol_release(heads[0]);
    tni_symbol_release(heads[1]);
    return both;
}

/* A view lies where its group is, not where its input lies; recorded, and differentiated once more. */
static void views_in_groups(void **state)
{
    static const char *const pairs[] = {"one", "cpu:1", NULL};
    const tni_backward_options create = {.create = true};
    tni_context *c = test_context(plain);
    tni_symbol *s = viewed(c);
    tni_array *x[3], *y[3][2] = {{NULL}}, *grads[3] = {NULL};

    (void)state;
    for (int way = 0; way < 3; way++) { /* not recorded; in groups; on one device */
        tni_cached_op *op = NULL;

        x[way] = on_device(c, "cpu:0", 2, 2, 1);
        assert_ok(tni_grad_attach(c, x[way], TN_MODE_WRITE, NULL));
        assert_ok(tni_cached_op_create(c, s, NULL, &op));
        if (way < 2)
            assert_ok(tni_cached_op_groups(op, pairs));
        test_record(way > 0, way > 0);
        assert_ok(tni_cached_op_call(op, 1, &x[way], 2, y[way]));
        test_record(false, false);
        for (int h = 0; h < 2; h++) {
            assert_ptr_equal(y[way][h]->storage->device, device_of(c, way < 2 ? "cpu:1" : "cpu:0"));
            net_same(y[way][h], y[0][h], "view");
        }
        if (way) {
            test_record(true, true);
            assert_ok(tni_grad(c, 2, y[way], NULL, 1, &x[way], &create, &grads[way]));
            test_record(false, false);
            assert_ok(tni_backward(c, 1, &grads[way], NULL, NULL));
        }
        tni_cached_op_release(op);
    }
    net_same(grads[1], grads[2], "gradient");
    net_same(tni_grad_get(x[1]), tni_grad_get(x[2]), "second gradient");
    for (int way = 0; way < 3; way++) {
        tni_array_release(x[way]);
        tni_array_release(grads[way]);
        tni_array_release(y[way][0]);
        tni_array_release(y[way][1]);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

/* Nothing is queued, nothing made; the reason names what lies where. */
static void refused(tni_context *c, tni_symbol *s, uint32_t count, tni_array *const *in, tn_status status,
                    const char *text)
{
    tni_cached_op *op = NULL;
    tni_array *out = NULL;

    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_int_equal(tni_cached_op_call(op, count, in, 1, &out), status);
    if (!strstr(tni_error_message(), text))
        print_error("%s\n", tni_error_message());
    assert_non_null(strstr(tni_error_message(), text));
    assert_null(out);
    tni_cached_op_release(op);
    tni_symbol_release(s);
}

static void not_placed(void **state)
{
    tni_context *c = test_context(plain);
    tni_array *near = on_device(c, "cpu:0", 4, 4, 0), *far = on_device(c, "cpu:1", 4, 4, 1), *y = NULL;
    tni_array *in[5] = {near, far, far, far, far};
    tni_symbol *x = net_variable(c, "x"), *w = net_variable(c, "w"), *both[2] = {x, w}, *s;

    (void)state;
    refused(c, net_op(c, "elemwise_add", 2, both, NULL), 2, in, TN_E_DEVICE, "input 1 is on cpu:1");
    assert_int_equal(tni_invoke_text(c, "elemwise_add", 2, in, 0, NULL, NULL, 1, &y, NULL), TN_E_DEVICE);
    s = net_take(c, "Dropout", net_op(c, "sin", 1, both, NULL), NULL, NULL);
    refused(c, net_take(c, "dot", s, net_variable(c, "w"), NULL), 2, in, TN_E_UNSUPPORTED, "random");
    s = net_op(c, "_copyto", 1, both, "ctx=gpu:3", NULL);
    refused(c, s, 1, in, TN_E_DEVICE, "cuda");
    s = net_take(c, "Cast", net_op(c, "_copyto", 1, both, "ctx=fake:0", NULL), NULL, "dtype=uint64");
    s = net_take(c, "square", s, NULL, NULL);
    refused(c, s, 1, in, TN_E_UNSUPPORTED, "fake"); /* no kernel there */
    s = net_op(c, "_copyto", 1, both, "ctx=fake:0", NULL);
    s = net_take(c, "Cast", s, NULL, "dtype=float16");
    net_call(c, s, true, in, &y);
    assert_ptr_equal(y->storage->device, device_of(c, "fake:0"));
    tni_symbol_release(s);
    tni_array_release(y);
    tni_symbol_release(x);
    tni_symbol_release(w);
    tni_array_release(near);
    tni_array_release(far);
    test_context_close(c);
}

/* Two branches on two hosts: their segments are ready at the same moment. */
static void side_by_side(void **state)
{
    static const char *const stepped[] = {"kernel.prefer=cpu", "engine.type=stepped", "engine.inline_ns=0",
                                          NULL};
    const char *const *variant = test_variant;
    tni_symbol *s;
    tni_context *c;
    tni_array *in[2], *y[2] = {NULL};
    tni_cached_op *op = NULL;
    size_t most = 0;

    (void)state;
    test_variant = NULL;
    c = test_context(stepped);
    test_variant = variant;
    for (int i = 0; i < 2; i++)
        in[i] = on_device(c, i ? "cpu:1" : "cpu:0", 4, 4, i);
    {
        tni_symbol *parts[2] = {net_take(c, "sin", net_variable(c, "a"), NULL, NULL),
                                net_take(c, "exp", net_variable(c, "b"), NULL, NULL)};

        assert_ok(tni_symbol_group(2, parts, &s));
        tni_symbol_release(parts[0]);
        tni_symbol_release(parts[1]);
    }
    for (int i = 0; i < 2; i++)
        assert_ok(tni_array_wait(in[i]));
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_cached_op_call(op, 2, in, 2, y));
    while (tni_engine_ready_count(c->engine)) {
        most = tni_engine_ready_count(c->engine) > most ? tni_engine_ready_count(c->engine) : most;
        assert_ok(tni_engine_step(c->engine, tni_engine_ready_count(c->engine) - 1));
    }
    assert_int_equal(most, 2);
    for (int i = 0; i < 2; i++) {
        assert_ok(tni_array_wait(y[i]));
        tni_array_release(in[i]);
        tni_array_release(y[i]);
    }
    tni_cached_op_release(op);
    tni_symbol_release(s);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once),       cmocka_unit_test(same_bits),    cmocka_unit_test(groups),
        cmocka_unit_test(not_placed), cmocka_unit_test(side_by_side), cmocka_unit_test(views_in_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
