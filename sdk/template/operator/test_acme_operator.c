/*
 * What `make test` runs: loads the plugin as a user's program does and compares values, gradients, saved
 * symbols, compiled symbols and a training with what they must be.
 *
 * usage: test_acme_operator ./acme-operator.so [DEVICE …]     default: cpu
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#define COUNT 6

static const int64_t shape[] = {2, 3};
static const double xs[COUNT] = {-2, -1, 0.1, 0.5, 1, 3};
static tn_ctx *ctx;

static void must(tn_status st, const char *what)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), tn_error_text());
    exit(1);
}
#define MUST(call) must((call), #call)

static void near(double value, double expected, double tolerance, const char *what)
{
    if (fabs(value - expected) <= tolerance * (1 + fabs(expected)))
        return;
    (void)fprintf(stderr, "%s is %.17g, but should be %.17g\n", what, value, expected);
    exit(1);
}

/* ---- short ways ---------------------------------------------------------------------------------------- */

static tn_array *call(const char *op, const char *const *attrs, uint32_t count, tn_array *const *in)
{
    const tn_op_call c = {
        .struct_size = TN_SIZE(tn_op_call), .op = op, .attrs = attrs, .in_count = count, .in = in};
    tn_array *out = NULL;

    MUST(tn_invoke_text(ctx, &c, 1, &out, NULL));
    return out;
}

/* In another type than float64 by way of a cast. */
static tn_array *array_of(int32_t dtype, const double *values)
{
    const char *const cast[] = {"dtype", tn_dtype_name(dtype), NULL};
    tn_array *wide = NULL, *a;

    MUST(tn_array_from(ctx, TN_F64, 2, shape, values, &wide));
    if (dtype == TN_F64)
        return wide;
    a = call("Cast", cast, 1, &wide);
    tn_array_release(wide);
    return a;
}

/* Copies out and releases. */
static void values_of(tn_array *a, double *values)
{
    static const char *const cast[] = {"dtype", "float64", NULL};
    tn_array *wide = call("Cast", cast, 1, &a);

    MUST(tn_array_read(wide, values, COUNT * sizeof *values));
    tn_array_release(wide);
    tn_array_release(a);
}

static const char *const attrs[] = {"scale", "-1.75", "shift", "0.5", NULL};

static void run_on(int32_t dtype, const char *const *with, const double *in, double *out)
{
    tn_array *x = array_of(dtype, in);

    values_of(call("acme_scale_shift", with, 1, &x), out);
    tn_array_release(x);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void test_values(void)
{
    static const struct {
        int32_t dtype;
        double tolerance;
    } types[] = {{TN_F64, 1e-15}, {TN_F32, 1e-6}, {TN_F16, 1e-3}, {TN_BF16, 8e-3}};
    double y[COUNT];

    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        run_on(types[t].dtype, attrs, xs, y);
        for (int i = 0; i < COUNT; i++)
            near(y[i], -1.75 * xs[i] + 0.5, types[t].tolerance, "a value");
    }
}

/* dx of sum(y) against (y(x + h) - y(x - h)) / 2h. `op`: the operator as a compiled symbol, or NULL. */
static void test_gradient(tn_cached_op *op, const char *const *with)
{
    const double h = 1e-5;
    tn_array *x = array_of(TN_F64, xs), *y = NULL;
    double dx[COUNT];

    MUST(tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL));
    (void)tn_record_set(1);
    if (op)
        MUST(tn_cached_op_call(op, 1, &x, 1, &y));
    else
        y = call("acme_scale_shift", with, 1, &x);
    (void)tn_record_set(0);
    MUST(tn_backward(ctx, 1, &y, NULL, 0));
    MUST(tn_array_read(tn_array_grad(x), dx, sizeof dx));
    for (int i = 0; i < COUNT; i++) {
        double up[COUNT], down[COUNT], y_up[COUNT], y_down[COUNT], slope = 0;

        memcpy(up, xs, sizeof up);
        memcpy(down, xs, sizeof down);
        up[i] += h;
        down[i] -= h;
        run_on(TN_F64, with, up, y_up);
        run_on(TN_F64, with, down, y_down);
        for (int k = 0; k < COUNT; k++)
            slope += (y_up[k] - y_down[k]) / (2 * h);
        near(dx[i], slope, 1e-8, op ? "a gradient of the compiled symbol" : "a gradient");
    }
    tn_array_release(y);
    tn_array_release(x);
}

/* A symbol of the operator that went through JSON, compiled: what a hybridized net is. */
static tn_cached_op *compiled(const char *const *with)
{
    tn_symbol *data = NULL, *symbol = NULL, *read = NULL;
    tn_cached_op *op = NULL;
    char *json = NULL;

    MUST(tn_symbol_variable(ctx, "x", &data));
    const tn_symbol_call node = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .op = "acme_scale_shift",
                                 .attrs = with,
                                 .in_count = 1,
                                 .in = &data};
    MUST(tn_symbol_op(ctx, &node, &symbol));
    MUST(tn_symbol_to_json(symbol, &json));
    MUST(tn_symbol_from_json(ctx, json, strlen(json), &read));
    MUST(tn_cached_op_create(ctx, read, NULL, &op));
    tn_symbol_release(read);
    tn_symbol_release(symbol);
    tn_symbol_release(data);
    tn_free(json);
    return op;
}

static void test_symbol(void)
{
    tn_array *x = array_of(TN_F64, xs), *out = NULL;
    tn_cached_op *op = compiled(attrs);
    double y[COUNT], expected[COUNT];

    MUST(tn_cached_op_call(op, 1, &x, 1, &out));
    values_of(out, y);
    run_on(TN_F64, attrs, xs, expected);
    for (int i = 0; i < COUNT; i++)
        near(y[i], expected[i], 0, "a value of the compiled symbol");
    test_gradient(op, attrs);
    tn_cached_op_release(op);
    tn_array_release(x);
}

/* Gradient descent on the square of the distance finds the w with scale * w + shift = target. `op`: the
 * operator as a compiled symbol, or NULL. */
static void test_training(tn_cached_op *op)
{
    static const char *const step[] = {"lr", "0.1", NULL};
    const double target = 4;
    tn_array *w = array_of(TN_F32, xs), *goal = NULL;
    double found[COUNT];

    MUST(tn_attach_grad(ctx, w, TN_MODE_WRITE, NULL));
    goal = array_of(TN_F32, (const double[COUNT]){target, target, target, target, target, target});
    for (int i = 0; i < 40; i++) {
        (void)tn_record_set(1);
        tn_array *y = op ? NULL : call("acme_scale_shift", attrs, 1, &w);
        if (op)
            MUST(tn_cached_op_call(op, 1, &w, 1, &y));
        tn_array *distance = call("elemwise_sub", NULL, 2, (tn_array *[]){y, goal});
        tn_array *loss = call("square", NULL, 1, &distance);
        (void)tn_record_set(0);
        MUST(tn_backward(ctx, 1, &loss, NULL, 0));
        const tn_op_call update = {.struct_size = TN_SIZE(tn_op_call),
                                   .op = "sgd_update",
                                   .attrs = step,
                                   .in_count = 2,
                                   .in = (tn_array *[]){w, tn_array_grad(w)}};
        MUST(tn_invoke_text(ctx, &update, 1, &w, NULL));
        tn_array_release(loss);
        tn_array_release(distance);
        tn_array_release(y);
    }
    tn_array_retain(w);
    values_of(w, found);
    for (int i = 0; i < COUNT; i++)
        near(found[i], (target - 0.5) / -1.75, 1e-5, "a trained weight");
    tn_array_release(goal);
    tn_array_release(w);
    tn_cached_op_release(op);
}

static void test_device(const char *name)
{
    const tn_device *device = NULL;

    MUST(tn_device_get(ctx, name, &device));
    (void)tn_device_use(device);
    test_values();
    test_gradient(NULL, attrs);
    test_symbol();
    test_training(NULL);
    test_training(compiled(attrs));
    (void)tn_device_use(NULL);
    (void)printf("%s: values, gradients, JSON, compiled symbol, training: ok\n", name);
}

int main(int argc, char **argv)
{
    char path[4096], *file = argc > 1 ? realpath(argv[1], NULL) : NULL,
                     *slash = file ? strrchr(file, '/') : NULL;
    const char *settings[] = {path, NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};

    if (!slash) {
        (void)fprintf(stderr, "usage: %s ./acme-operator.so [DEVICE ...]\n", argv[0]);
        return 2;
    }
    *slash = '\0';
    (void)snprintf(path, sizeof path, "plugins.path=%s", file);
    free(file);
    MUST(tn_open(&options, &ctx));
    MUST(tn_plugin_load(ctx, "acme-operator"));
    for (int i = 2; i < argc; i++)
        test_device(argv[i]);
    if (argc == 2)
        test_device("cpu");
    MUST(tn_close(ctx));
    return 0;
}
