/* As test_arguments.c: executors. */
#include "api/fixture.h"

static const int64_t data_shape[] = {2, 3};

static tn_executor *bound(void)
{
    const tn_known known = {.name = "x", .shape = data_shape, .ndim = 2, .dtype = TN_F32};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = 1,
                                      .known = &known};
    tn_executor *e = NULL;

    assert_ok(tn_executor_simple_bind(f.ctx, f.net, &o, &e));
    return e;
}

static void binding(void **state)
{
    tn_binding b = {.name = "x", .array = f.a};
    tn_bind_options o = {.struct_size = TN_SIZE(tn_bind_options), .count = 1, .bindings = &b};
    tn_executor *e = NULL;

    (void)state;
    assert_fails(tn_executor_bind(NULL, f.net, &o, &e), TN_E_ARG);
    assert_fails(tn_executor_bind(f.ctx, NULL, &o, &e), TN_E_ARG);
    assert_fails(tn_executor_bind(f.ctx, f.net, NULL, &e), TN_E_ARG);
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, NULL), TN_E_ARG);
    assert_fails(tn_executor_bind(f.ctx, f.foreign_symbol, &o, &e), TN_E_ARG);
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_KEY); /* the weight is missing */
    assert_non_null(strstr(tn_error_text(), "fc_weight"));
    b.mode = TN_MODE_WRITE; /* and no gradient */
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    b.mode = 7;
    b.grad = f.a;
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    b = (tn_binding){.name = "x", .array = f.foreign};
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    b = (tn_binding){.name = "y", .array = f.a};
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_KEY);
    b = (tn_binding){.name = NULL, .array = f.a};
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    b = (tn_binding){.name = "x"};
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    o.bindings = NULL;
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    {
        const tn_binding twice[] = {{.name = "x", .array = f.a}, {.name = "x", .array = f.a}};

        o.bindings = twice;
        o.count = 2;
        assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_KEY);
    }
    o.struct_size = 4;
    assert_fails(tn_executor_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    assert_null(e);
}

static void simple_binding(void **state)
{
    const int64_t negative[] = {2, -7};
    tn_known known = {.name = "x", .shape = data_shape, .ndim = 2, .dtype = TN_F32};
    tn_grad_req req = {.name = "x", .mode = TN_MODE_ADD};
    tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options), .mode = 3};
    tn_executor *e = NULL;

    (void)state;
    assert_fails(tn_executor_simple_bind(NULL, f.net, &o, &e), TN_E_ARG);
    assert_fails(tn_executor_simple_bind(f.ctx, NULL, &o, &e), TN_E_ARG);
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, NULL, &e), TN_E_ARG);
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, NULL), TN_E_ARG);
    assert_fails(tn_executor_simple_bind(f.ctx, f.foreign_symbol, &o, &e), TN_E_ARG);
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_ARG); /* mode 3 */
    o.mode = TN_MODE_WRITE;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_SHAPE); /* of x nothing is known */
    o.known_count = 1;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    o.known = &known;
    known.shape = negative;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_SHAPE);
    known = (tn_known){.name = "z", .shape = data_shape, .ndim = 2, .dtype = TN_F32};
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_KEY);
    known.name = "x";
    known.dtype = 99;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_DTYPE);
    known.dtype = TN_F32;
    o.mode_count = 1;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    o.modes = &req;
    req.name = NULL;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    req.name = "nothing";
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_KEY);
    req.name = "x";
    req.mode = 9;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    o.modes = NULL;
    o.mode_count = 0;
    o.device = f.foreign_device;
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    o.device = NULL;
    o.group2ctx = LIST("a");
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_ARG);
    o.group2ctx = LIST("a", "cpu:0");
    assert_fails(tn_executor_simple_bind(f.ctx, f.net, &o, &e), TN_E_KEY);
    assert_null(e);
}

static void what_it_holds(void **state)
{
    const tn_known known = {.name = "z", .shape = data_shape, .ndim = 2, .dtype = TN_F32};
    tn_executor *e = bound(), *other = NULL;

    (void)state;
    assert_null(tn_executor_array(NULL, TN_EXECUTOR_VALUE, "x"));
    assert_null(tn_executor_array(e, TN_EXECUTOR_VALUE, NULL));
    assert_null(tn_executor_array(e, 9, "x"));
    assert_null(tn_executor_array(e, TN_EXECUTOR_VALUE, "y"));
    assert_non_null(tn_executor_array(e, TN_EXECUTOR_GRAD, "x"));
    assert_null(tn_executor_symbol(NULL));
    assert_ptr_equal(tn_executor_symbol(e), f.net);
    assert_int_equal(tn_executor_output_count(NULL), 0);
    assert_int_equal(tn_executor_output_count(e), 1);
    assert_null(tn_executor_output(NULL, 0));
    assert_null(tn_executor_output(e, 1));
    assert_fails(tn_executor_reshape(NULL, 0, 0, NULL, &other), TN_E_ARG);
    assert_fails(tn_executor_reshape(e, 0, 0, NULL, NULL), TN_E_ARG);
    assert_fails(tn_executor_reshape(e, 8, 1, &known, &other), TN_E_ARG);
    assert_fails(tn_executor_reshape(e, 0, 1, NULL, &other), TN_E_ARG);
    assert_fails(tn_executor_reshape(e, 0, 1, &known, &other), TN_E_KEY);
    assert_fails(tn_executor_reshape(e, 0, 0, NULL, &other), TN_E_SHAPE);
    assert_null(other);
    tn_executor_destroy(e);
    tn_executor_destroy(NULL);
}

static void seen(void *arg, const char *name, tn_array *a)
{
    (void)arg;
    (void)name;
    (void)a;
}

static void running(void **state)
{
    tn_executor *e = bound();
    tn_named_array in = {"x", f.b};
    tn_params *p = NULL;
    tn_array *head = f.foreign;

    (void)state;
    assert_fails(tn_executor_forward(NULL, 0, 0, NULL), TN_E_ARG);
    assert_fails(tn_executor_forward(e, 0, 1, NULL), TN_E_ARG);
    assert_fails(tn_executor_forward(e, 0, HUGE_COUNT, &in), TN_E_ARG);
    assert_fails(tn_executor_forward(e, 0, 1, &in), TN_E_SHAPE);
    in.array = f.foreign;
    assert_fails(tn_executor_forward(e, 0, 1, &in), TN_E_ARG);
    in.array = NULL;
    assert_fails(tn_executor_forward(e, 0, 1, &in), TN_E_ARG);
    in = (tn_named_array){NULL, f.a};
    assert_fails(tn_executor_forward(e, 0, 1, &in), TN_E_ARG);
    in.name = "nobody";
    assert_fails(tn_executor_forward(e, 0, 1, &in), TN_E_KEY);
    assert_fails(tn_executor_backward(NULL, NULL), TN_E_ARG);
    assert_fails(tn_executor_backward(e, NULL), TN_E_STATE);
    assert_fails(tn_executor_backward(e, &head), TN_E_ARG);
    assert_ok(tn_params_create(&p));
    assert_fails(tn_executor_copy_params(NULL, p, 0), TN_E_ARG);
    assert_fails(tn_executor_copy_params(e, NULL, 0), TN_E_ARG);
    assert_fails(tn_executor_copy_params(e, p, 2), TN_E_ARG);
    assert_ok(tn_executor_copy_params(e, p, 0));
    assert_ok(tn_params_add(p, "stranger", f.a));
    assert_fails(tn_executor_copy_params(e, p, 0), TN_E_KEY);
    assert_ok(tn_executor_copy_params(e, p, TN_COPY_EXTRA));
    assert_ok(tn_params_add(p, "arg:x", f.b));
    assert_fails(tn_executor_copy_params(e, p, TN_COPY_EXTRA), TN_E_SHAPE);
    tn_params_destroy(p);
    assert_fails(tn_executor_monitor(NULL, seen, NULL, 0), TN_E_ARG);
    assert_fails(tn_executor_monitor(e, seen, NULL, 4), TN_E_ARG);
    assert_ok(tn_executor_monitor(e, NULL, NULL, 0));
    tn_executor_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binding),
        cmocka_unit_test(simple_binding),
        cmocka_unit_test(what_it_holds),
        cmocka_unit_test(running),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
