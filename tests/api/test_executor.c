/* Executors: numbers, arrays that are shared, several lengths of one net, the monitor, devices. */
#include <stdio.h>

#include "api/support.h"
#include "support/list.h"

static tn_symbol *variable(tn_ctx *ctx, const char *name)
{
    tn_symbol *s = NULL;

    assert_ok(tn_symbol_variable(ctx, name, &s));
    return s;
}

/* relu(data · weightᵀ) with two units. */
static tn_symbol *dense_net(tn_ctx *ctx)
{
    tn_symbol *fc = test_node(ctx, "FullyConnected", "fc", LIST("num_hidden", "2", "no_bias", "1"),
                              variable(ctx, "data"));

    return test_node(ctx, "relu", "act", NULL, fc);
}

static tn_executor *simple(tn_ctx *ctx, tn_symbol *s, int64_t rows, int64_t columns, tn_executor *shared)
{
    const int64_t shape[] = {rows, columns};
    const tn_known known = {.name = "data", .shape = shape, .ndim = 2, .dtype = TN_F32};
    const tn_grad_req no_data = {.name = "data", .mode = TN_MODE_NONE};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = 1,
                                      .known = &known,
                                      .mode_count = 1,
                                      .modes = &no_data,
                                      .shared = shared};
    tn_executor *e = NULL;

    assert_ok(tn_executor_simple_bind(ctx, s, &o, &e));
    return e;
}

static const float *address(tn_array *a)
{
    void *data = NULL;

    assert_ok(tn_array_data(a, &data));
    return data;
}

/* ---- bind ---------------------------------------------------------------------------------------------- */

/* weight rows (1, 2) and (-1, 1), data (3, 4): 11 and 1. */
static void numbers(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    tn_array *x = test_array(ctx, 2, (int64_t[]){1, 2}, (float[]){3, 4});
    tn_array *w = test_array(ctx, 2, (int64_t[]){2, 2}, (float[]){1, 2, -1, 1});
    tn_array *gx = test_array(ctx, 2, (int64_t[]){1, 2}, (float[]){100, 200}), *gw = NULL, *y, *own;
    const tn_array *head = test_array(ctx, 2, (int64_t[]){1, 2}, (float[]){1, 10});
    tn_executor *e = NULL;

    (void)state;
    assert_ok(tn_array_zeros(ctx, TN_F32, 2, (int64_t[]){2, 2}, NULL, &gw));
    assert_ok(tn_attach_grad(ctx, w, TN_MODE_WRITE, NULL)); /* the program's own, which stays as it is */
    own = tn_array_grad(w);
    {
        const tn_binding b[] = {{.name = "fc_weight", .array = w, .grad = gw, .mode = TN_MODE_WRITE},
                                {.name = "data", .array = x, .grad = gx, .mode = TN_MODE_ADD}};
        const tn_bind_options o = {.struct_size = TN_SIZE(tn_bind_options), .count = 2, .bindings = b};

        assert_ok(tn_executor_bind(ctx, s, &o, &e));
    }
    y = tn_executor_output(e, 0);
    assert_non_null(y);
    assert_ok(tn_executor_forward(e, 1, 0, NULL));
    assert_ptr_equal(tn_executor_output(e, 0), y);
    test_values(y, (float[]){11, 1}, 2, 0);
    assert_ok(tn_executor_backward(e, (tn_array *const *)&head));
    test_values(gw, (float[]){3, 4, 30, 40}, 4, 0);
    test_values(gx, (float[]){100 + 1 - 10, 200 + 2 + 10}, 2, 0);
    test_values(own, (float[]){0, 0, 0, 0}, 4, 0);
    assert_ptr_equal(tn_array_grad(w), own);
    assert_fails(tn_executor_backward(e, NULL), TN_E_STATE); /* each needs its own forward */
    assert_ok(tn_executor_forward(e, 1, 0, NULL));
    assert_ok(tn_executor_backward(e, NULL)); /* ones */
    test_values(gw, (float[]){3, 4, 3, 4}, 4, 0);
    test_values(gx, (float[]){91 + 0, 212 + 3}, 2, 0);
    assert_ok(tn_array_fill(x, -1)); /* written in between: the same arrays are read again */
    assert_ok(tn_executor_forward(e, 0, 0, NULL));
    test_values(y, (float[]){0, 0}, 2, 0);
    assert_fails(tn_executor_backward(e, NULL), TN_E_STATE); /* not in training */
    tn_executor_destroy(e);
    tn_array_release((tn_array *)head);
    tn_array_release(x);
    tn_array_release(w);
    tn_array_release(gx);
    tn_array_release(gw);
    tn_symbol_release(s);
    test_close(ctx);
}

static void wrong_arrays(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    tn_array *x = test_array(ctx, 2, (int64_t[]){1, 2}, (float[]){3, 4});
    tn_array *w = test_array(ctx, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6}), *g = NULL;
    tn_binding b[] = {{.name = "data", .array = x}, {.name = "fc_weight", .array = w}};
    const tn_bind_options o = {.struct_size = TN_SIZE(tn_bind_options), .count = 2, .bindings = b};
    tn_executor *e = NULL;

    (void)state;
    assert_fails(tn_executor_bind(ctx, s, &o, &e), TN_E_SHAPE); /* three columns for two */
    assert_ok(tn_array_slice(w, 0, 1, &g));
    b[0] = (tn_binding){.name = "data", .array = w, .grad = g, .mode = TN_MODE_WRITE};
    assert_fails(tn_executor_bind(ctx, s, &o, &e), TN_E_SHAPE);
    assert_non_null(strstr(tn_error_text(), "data"));
    assert_null(e);
    tn_array_release(g);
    tn_array_release(x);
    tn_array_release(w);
    tn_symbol_release(s);
    test_close(ctx);
}

/* A net that no gradient leads through: a backward says so. */
static void without_gradients(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    const int64_t shape[] = {1, 2};
    const tn_known known = {.name = "data", .shape = shape, .ndim = 2, .dtype = TN_F32};
    const tn_simple_bind_options o = {
        .struct_size = TN_SIZE(tn_simple_bind_options), .known_count = 1, .known = &known};
    tn_executor *e = NULL;

    (void)state;
    assert_ok(tn_executor_simple_bind(ctx, s, &o, &e));
    assert_null(tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"));
    assert_ok(tn_executor_forward(e, 1, 0, NULL));
    assert_fails(tn_executor_backward(e, NULL), TN_E_STATE);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

/* ---- inputs and parameters --------------------------------------------------------------------------- */

static void inputs_and_parameters(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    tn_executor *e = simple(ctx, s, 1, 2, NULL);
    tn_array *w = test_array(ctx, 2, (int64_t[]){2, 2}, (float[]){1, 2, -1, 1}), *x = NULL, *many;
    tn_params *p = NULL;
    tn_named_array in[2];

    (void)state;
    assert_ok(tn_params_create(&p));
    assert_ok(tn_params_add(p, "arg:fc_weight", w));
    assert_ok(tn_executor_copy_params(e, p, 0));
    assert_ok(tn_array_from(ctx, TN_F64, 2, (int64_t[]){1, 2}, (double[]){3, 4}, &x));
    many = test_array(ctx, 2, (int64_t[]){3, 2}, (float[]){0, 0, 0, 0, 0, 0});
    in[0] = (tn_named_array){"data", x};
    in[1] = (tn_named_array){"fc_weight", many};
    assert_fails(tn_executor_forward(e, 0, 2, in), TN_E_SHAPE); /* and nothing was copied */
    test_values(tn_executor_array(e, TN_EXECUTOR_VALUE, "data"), (float[]){0, 0}, 2, 0);
    assert_ok(tn_executor_forward(e, 1, 1, in));
    test_values(tn_executor_output(e, 0), (float[]){11, 1}, 2, 0);
    assert_ok(tn_executor_backward(e, NULL));
    test_values(tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"), (float[]){3, 4, 3, 4}, 4, 0);
    assert_null(tn_executor_array(e, TN_EXECUTOR_GRAD, "data"));
    test_values(w, (float[]){1, 2, -1, 1}, 4, 0);
    tn_params_destroy(p);
    tn_array_release(w);
    tn_array_release(x);
    tn_array_release(many);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

/* States move in training, and are no arguments. */
static void states(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s =
        test_node(ctx, "BatchNorm", "bn", LIST("momentum", "0.5", "fix_gamma", "0"), variable(ctx, "data"));
    tn_executor *e = simple(ctx, s, 2, 1, NULL);
    tn_array *x = test_array(ctx, 2, (int64_t[]){2, 1}, (float[]){1, 3});
    const tn_named_array in = {"data", x};
    const tn_grad_req of_state = {.name = "bn_moving_mean", .mode = TN_MODE_WRITE};
    const int64_t shape[] = {2, 1};
    const tn_known known = {.name = "data", .shape = shape, .ndim = 2, .dtype = TN_F32};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .known_count = 1,
                                      .known = &known,
                                      .mode_count = 1,
                                      .modes = &of_state};
    tn_executor *none = NULL;

    (void)state;
    assert_ok(tn_executor_forward(e, 1, 1, &in));
    test_values(tn_executor_array(e, TN_EXECUTOR_VALUE, "bn_moving_mean"), (float[]){1}, 1, 0);
    assert_ok(tn_executor_forward(e, 0, 0, NULL));
    test_values(tn_executor_array(e, TN_EXECUTOR_VALUE, "bn_moving_mean"), (float[]){1}, 1, 0);
    assert_null(tn_executor_array(e, TN_EXECUTOR_GRAD, "bn_moving_mean"));
    assert_fails(tn_executor_simple_bind(ctx, s, &o, &none), TN_E_ARG);
    tn_array_release(x);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

/* ---- several lengths ---------------------------------------------------------------------------------- */

static void reshaped(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    tn_executor *e = simple(ctx, s, 4, 2, NULL), *r = NULL;
    tn_array *w = tn_executor_array(e, TN_EXECUTOR_VALUE, "fc_weight");
    const int64_t fewer[] = {2, 2}, more[] = {8, 2}, wider[] = {4, 3};
    tn_known known = {.name = "data", .shape = fewer, .ndim = 2, .dtype = -1};

    (void)state;
    assert_ok(tn_array_fill(w, 1));
    assert_ok(tn_executor_reshape(e, 0, 1, &known, &r));
    assert_ptr_equal(tn_executor_array(r, TN_EXECUTOR_VALUE, "fc_weight"), w);
    assert_ptr_equal(tn_executor_array(r, TN_EXECUTOR_GRAD, "fc_weight"),
                     tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"));
    assert_ok(tn_array_fill(tn_executor_array(r, TN_EXECUTOR_VALUE, "data"), 1));
    assert_ptr_equal(address(tn_executor_array(r, TN_EXECUTOR_VALUE, "data")),
                     address(tn_executor_array(e, TN_EXECUTOR_VALUE, "data")));
    assert_ok(tn_executor_forward(r, 1, 0, NULL));
    test_values(tn_executor_output(r, 0), (float[]){2, 2, 2, 2}, 4, 0);
    assert_ok(tn_executor_backward(r, NULL));
    test_values(tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"), (float[]){2, 2, 2, 2}, 4, 0);
    tn_executor_destroy(r);
    r = NULL;
    known.shape = more;
    assert_fails(tn_executor_reshape(e, 0, 1, &known, &r), TN_E_SHAPE);
    assert_non_null(strstr(tn_error_text(), "TN_RESHAPE_UP"));
    assert_ok(tn_executor_reshape(e, TN_RESHAPE_UP, 1, &known, &r));
    assert_ptr_equal(tn_executor_array(r, TN_EXECUTOR_VALUE, "fc_weight"), w);
    tn_executor_destroy(r);
    r = NULL;
    known.shape = wider; /* the weight has another shape then */
    assert_fails(tn_executor_reshape(e, TN_RESHAPE_UP, 1, &known, &r), TN_E_SHAPE);
    assert_non_null(strstr(tn_error_text(), "TN_RESHAPE_PARTIAL"));
    assert_non_null(strstr(tn_error_text(), "fc_weight"));
    assert_ok(tn_executor_reshape(e, TN_RESHAPE_UP | TN_RESHAPE_PARTIAL, 1, &known, &r));
    test_values(tn_executor_array(r, TN_EXECUTOR_VALUE, "fc_weight"), (float[6]){0}, 6, 0);
    test_values(w, (float[]){1, 1, 1, 1}, 4, 0);
    tn_executor_destroy(r);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

/* Types that are not said again stay those of the executor. */
static void reshaped_in_float64(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    const int64_t shape[] = {4, 2}, fewer[] = {2, 2};
    tn_known known = {.name = "data", .shape = shape, .ndim = 2, .dtype = TN_F64};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = 1,
                                      .known = &known};
    tn_executor *e = NULL, *r = NULL;
    tn_array *w;

    (void)state;
    assert_ok(tn_executor_simple_bind(ctx, s, &o, &e));
    w = tn_executor_array(e, TN_EXECUTOR_VALUE, "fc_weight");
    assert_int_equal(tn_array_dtype(w), TN_F64);
    known.shape = fewer;
    known.dtype = -1;
    assert_ok(tn_executor_reshape(e, 0, 1, &known, &r));
    assert_ptr_equal(tn_executor_array(r, TN_EXECUTOR_VALUE, "fc_weight"), w);
    tn_executor_destroy(r);
    r = NULL;
    known.dtype = TN_F32;
    assert_fails(tn_executor_reshape(e, 0, 1, &known, &r), TN_E_DTYPE);
    assert_null(r);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

/* Two buckets train one weight; the shorter one's input lies in the longer one's. */
static void buckets(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx), *other = dense_net(ctx);
    tn_executor *e = simple(ctx, s, 4, 2, NULL), *shorter = simple(ctx, other, 1, 2, e), *none = NULL;
    tn_array *x = test_array(ctx, 2, (int64_t[]){1, 2}, (float[]){3, 4});
    const tn_named_array in = {"data", x};
    const int64_t wide[] = {1, 3};
    const tn_known known = {.name = "data", .shape = wide, .ndim = 2, .dtype = TN_F32};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = 1,
                                      .known = &known,
                                      .shared = e};

    (void)state;
    assert_ptr_equal(tn_executor_array(shorter, TN_EXECUTOR_VALUE, "fc_weight"),
                     tn_executor_array(e, TN_EXECUTOR_VALUE, "fc_weight"));
    assert_ok(tn_array_fill(tn_executor_array(e, TN_EXECUTOR_VALUE, "fc_weight"), 1));
    assert_ok(tn_executor_forward(shorter, 1, 1, &in));
    assert_ptr_equal(address(tn_executor_array(shorter, TN_EXECUTOR_VALUE, "data")),
                     address(tn_executor_array(e, TN_EXECUTOR_VALUE, "data")));
    assert_ok(tn_executor_backward(shorter, NULL));
    test_values(tn_executor_output(shorter, 0), (float[]){7, 7}, 2, 0);
    test_values(tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"), (float[]){3, 4, 3, 4}, 4, 0);
    assert_fails(tn_executor_simple_bind(ctx, s, &o, &none), TN_E_SHAPE);
    assert_non_null(strstr(tn_error_text(), "fc_weight"));
    tn_executor_destroy(e); /* the shared arrays live on */
    assert_ok(tn_executor_forward(shorter, 0, 0, NULL));
    test_values(tn_executor_output(shorter, 0), (float[]){7, 7}, 2, 0);
    tn_executor_destroy(shorter);
    tn_array_release(x);
    tn_symbol_release(s);
    tn_symbol_release(other);
    test_close(ctx);
}

/* ---- sizes that a run tells -------------------------------------------------------------------------- */

static void sizes_of_a_run(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *in[] = {variable(ctx, "data"), variable(ctx, "mask")}, *s = NULL;
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = 2, .op = "_contrib_boolean_mask", .in = in};
    tn_array *x = test_array(ctx, 1, (int64_t[]){3}, (float[]){3, 4, 5});
    tn_array *mask = test_array(ctx, 1, (int64_t[]){3}, (float[]){1, 0, 1});
    const tn_binding b[] = {{.name = "data", .array = x}, {.name = "mask", .array = mask}};
    const tn_bind_options o = {.struct_size = TN_SIZE(tn_bind_options), .count = 2, .bindings = b};
    tn_executor *e = NULL;

    (void)state;
    assert_ok(tn_symbol_op(ctx, &call, &s));
    assert_ok(tn_executor_bind(ctx, s, &o, &e));
    assert_null(tn_executor_output(e, 0));
    assert_ok(tn_executor_forward(e, 0, 0, NULL));
    test_values(tn_executor_output(e, 0), (float[]){3, 5}, 2, 0);
    assert_ok(tn_array_fill(mask, 1));
    assert_ok(tn_executor_forward(e, 0, 0, NULL));
    test_values(tn_executor_output(e, 0), (float[]){3, 4, 5}, 3, 0);
    tn_executor_destroy(e);
    tn_array_release(x);
    tn_array_release(mask);
    tn_symbol_release(in[0]);
    tn_symbol_release(in[1]);
    tn_symbol_release(s);
    test_close(ctx);
}

/* ---- the monitor --------------------------------------------------------------------------------------- */

typedef struct diary {
    char names[256];
    float first; /* of what was seen last */
    int recording;
} diary;

static void note(void *arg, const char *name, tn_array *a)
{
    diary *d = arg;
    const size_t length = strlen(d->names);
    float values[64];

    (void)snprintf(d->names + length, sizeof d->names - length, "%s ", name);
    assert_true(tn_array_bytes(a) <= sizeof values);
    assert_ok(tn_array_read(a, values, tn_array_bytes(a)));
    d->first = values[0];
    d->recording |= tn_recording();
}

static void monitored(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    tn_executor *e = simple(ctx, s, 1, 2, NULL);
    float plain[2], watched[2], gradient[4], again[4];
    diary d = {.names = ""};

    (void)state;
    assert_ok(tn_array_fill(tn_executor_array(e, TN_EXECUTOR_VALUE, "fc_weight"), 0.3));
    assert_ok(tn_array_fill(tn_executor_array(e, TN_EXECUTOR_VALUE, "data"), 0.7));
    assert_ok(tn_executor_forward(e, 1, 0, NULL));
    assert_ok(tn_array_read(tn_executor_output(e, 0), plain, sizeof plain));
    assert_ok(tn_executor_backward(e, NULL));
    assert_ok(tn_array_read(tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"), gradient, sizeof gradient));
    assert_ok(tn_executor_monitor(e, note, &d, 0));
    assert_ok(tn_executor_forward(e, 1, 0, NULL));
    assert_string_equal(d.names, "fc_output act_output ");
    assert_false(d.recording);
    assert_ok(tn_array_read(tn_executor_output(e, 0), watched, sizeof watched));
    assert_memory_equal(plain, watched, sizeof plain);
    assert_true(d.first == plain[0]);
    assert_ok(tn_executor_backward(e, NULL));
    assert_ok(tn_array_read(tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"), again, sizeof again));
    assert_memory_equal(gradient, again, sizeof again);
    d.names[0] = 0;
    assert_ok(tn_executor_monitor(e, note, &d, TN_MONITOR_INPUTS));
    assert_ok(tn_executor_forward(e, 0, 0, NULL));
    assert_string_equal(d.names, "fc_data fc_weight fc_output act_data act_output ");
    d.names[0] = 0;
    assert_ok(tn_executor_monitor(e, NULL, NULL, 0));
    assert_ok(tn_executor_forward(e, 0, 0, NULL));
    assert_string_equal(d.names, "");
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

/* An operator without inputs is one of those that are seen. */
static void source_monitored(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    const tn_symbol_call zeros = {.struct_size = TN_SIZE(tn_symbol_call),
                                  .op = "_zeros",
                                  .name = "zeros",
                                  .attrs = LIST("shape", "(2,)")};
    tn_symbol *s = NULL;
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options)};
    tn_executor *e = NULL;
    diary d = {.names = ""};

    (void)state;
    assert_ok(tn_symbol_op(ctx, &zeros, &s));
    assert_ok(tn_executor_simple_bind(ctx, s, &o, &e));
    assert_ok(tn_executor_monitor(e, note, &d, 0));
    assert_ok(tn_executor_forward(e, 0, 0, NULL));
    assert_string_equal(d.names, "zeros_output ");
    test_values(tn_executor_output(e, 0), (float[]){0, 0}, 2, 0);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

/* ---- several devices ----------------------------------------------------------------------------------- */

/* Parameters of a group are made on its device; what crosses is copied. */
static void groups(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *s = dense_net(ctx);
    const int64_t shape[] = {1, 2};
    const tn_known known = {.name = "data", .shape = shape, .ndim = 2, .dtype = TN_F32};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = 1,
                                      .known = &known,
                                      .group2ctx = LIST("late", "cpu:1")};
    tn_executor *e = NULL;
    diary d = {.names = ""};

    (void)state;
    tn_symbol_release(s);
    s = test_node(ctx, "FullyConnected", "fc",
                  LIST("num_hidden", "2", "no_bias", "1", "__ctx_group__", "late"),
                  test_node(ctx, "relu", "act", NULL, variable(ctx, "data")));
    assert_ok(tn_executor_simple_bind(ctx, s, &o, &e));
    assert_int_equal(tn_device_index(tn_array_device(tn_executor_array(e, TN_EXECUTOR_VALUE, "fc_weight"))),
                     1);
    assert_int_equal(tn_device_index(tn_array_device(tn_executor_array(e, TN_EXECUTOR_VALUE, "data"))), 0);
    assert_int_equal(tn_device_index(tn_array_device(tn_executor_output(e, 0))), 1);
    assert_ok(tn_array_fill(tn_executor_array(e, TN_EXECUTOR_VALUE, "fc_weight"), 2));
    assert_ok(tn_array_fill(tn_executor_array(e, TN_EXECUTOR_VALUE, "data"), 3));
    assert_ok(tn_executor_forward(e, 1, 0, NULL));
    test_values(tn_executor_output(e, 0), (float[]){12, 12}, 2, 0);
    assert_ok(tn_executor_backward(e, NULL));
    test_values(tn_executor_array(e, TN_EXECUTOR_GRAD, "data"), (float[]){4, 4}, 2, 0);
    test_values(tn_executor_array(e, TN_EXECUTOR_GRAD, "fc_weight"), (float[]){3, 3, 3, 3}, 4, 0);
    assert_fails(tn_executor_monitor(e, note, &d, 0), TN_E_UNSUPPORTED);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(wrong_arrays),
        cmocka_unit_test(without_gradients),
        cmocka_unit_test(inputs_and_parameters),
        cmocka_unit_test(states),
        cmocka_unit_test(reshaped),
        cmocka_unit_test(reshaped_in_float64),
        cmocka_unit_test(buckets),
        cmocka_unit_test(sizes_of_a_run),
        cmocka_unit_test(monitored),
        cmocka_unit_test(source_monitored),
        cmocka_unit_test(groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
