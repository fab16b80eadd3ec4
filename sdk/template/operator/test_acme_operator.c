/*
 * What `make test` runs: loads the plugin as a user's program does and compares values, gradients, saved
 * symbols, compiled symbols and a training with what they must be. The first part is this operator's: change
 * it with the operator, the rest stays.
 *
 * usage: test_acme_operator ./acme-operator.so [DEVICE …]     default: cpu
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#define COUNT_MAX 64 /* elements of an array */

typedef struct input {
    int32_t ndim;
    int64_t shape[4];
    double values[COUNT_MAX];
} input;

/* ---- this operator ------------------------------------------------------------------------------------- */

#define OP "acme_scale_shift"
static const char *const attrs[] = {"scale", "-1.75", "shift", "0.5", NULL};

/* All its inputs, away from kinks and poles; the output has the shape of the first one. */
static const input inputs[] = {{2, {2, 3}, {-2, -1, 0.1, 0.5, 1, 3}}};

/* The output, computed otherwise than the kernel does. */
static void expected(double (*in)[COUNT_MAX], double *y)
{
    for (int i = 0; i < 6; i++)
        y[i] = -1.75 * in[0][i] + 0.5;
}

/* What part of its loss 40 steps of training may leave: 1 where an operator saturates. */
#define LOSS_LEFT 1e-9

/* ---- helpers ---------------------------------------------------------------------------------------- */

#define INPUTS (sizeof inputs / sizeof *inputs)

static tn_ctx *ctx;

static void must(tn_status st, const char *what)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), tn_error_text());
    exit(1);
}
#define MUST(call) must((call), #call)

static void near(double value, double wanted, double tolerance, const char *what, size_t at)
{
    if (fabs(value - wanted) <= tolerance * (1 + fabs(wanted)))
        return;
    (void)fprintf(stderr, "%s: element %zu is %.17g, but should be %.17g\n", what, at, value, wanted);
    exit(1);
}

static size_t count_of(const input *in)
{
    size_t count = 1;

    for (int32_t d = 0; d < in->ndim; d++)
        count *= (size_t)in->shape[d];
    if (count > COUNT_MAX)
        must(TN_E_ARG, "an input has more than COUNT_MAX elements");
    return count;
}

/* The values of all inputs. */
static void values_copy(double (*to)[COUNT_MAX])
{
    for (size_t k = 0; k < INPUTS; k++)
        memcpy(to[k], inputs[k].values, sizeof inputs[k].values);
}

static tn_array *call(const char *op, const char *const *with, uint32_t count, tn_array *const *in)
{
    const tn_op_call c = {
        .struct_size = TN_SIZE(tn_op_call), .op = op, .attrs = with, .in_count = count, .in = in};
    tn_array *out = NULL;

    MUST(tn_invoke_text(ctx, &c, 1, &out, NULL));
    return out;
}

/* In another type than float64 by way of a cast. */
static tn_array *array_of(int32_t dtype, const input *like, const double *values)
{
    const char *const cast[] = {"dtype", tn_dtype_name(dtype), NULL};
    tn_array *wide = NULL, *a;

    MUST(tn_array_from(ctx, TN_F64, like->ndim, like->shape, values, &wide));
    if (dtype == TN_F64)
        return wide;
    a = call("Cast", cast, 1, &wide);
    tn_array_release(wide);
    return a;
}

static void arrays_of(int32_t dtype, double (*values)[COUNT_MAX], tn_array **out)
{
    for (size_t k = 0; k < INPUTS; k++)
        out[k] = array_of(dtype, &inputs[k], values[k]);
}

static void arrays_release(tn_array **in)
{
    for (size_t k = 0; k < INPUTS; k++)
        tn_array_release(in[k]);
}

/* Copies out and releases. */
static void values_of(tn_array *a, double *values)
{
    static const char *const cast[] = {"dtype", "float64", NULL};
    tn_array *wide = call("Cast", cast, 1, &a);

    MUST(tn_array_read(wide, values, count_of(&inputs[0]) * sizeof *values));
    tn_array_release(wide);
    tn_array_release(a);
}

/* The operator; `compiled`: as a compiled symbol, or NULL. */
static tn_array *run(tn_cached_op *compiled, tn_array *const *in)
{
    tn_array *y = NULL;

    if (!compiled)
        return call(OP, attrs, INPUTS, in);
    MUST(tn_cached_op_call(compiled, INPUTS, in, 1, &y));
    return y;
}

static void run_on(int32_t dtype, double (*in)[COUNT_MAX], double *out)
{
    tn_array *arrays[INPUTS];

    arrays_of(dtype, in, arrays);
    values_of(run(NULL, arrays), out);
    arrays_release(arrays);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void test_values(void)
{
    static const struct {
        int32_t dtype;
        double tolerance;
    } types[] = {{TN_F64, 1e-15}, {TN_F32, 1e-6}, {TN_F16, 1e-3}, {TN_BF16, 8e-3}};
    double in[INPUTS][COUNT_MAX], y[COUNT_MAX], wanted[COUNT_MAX];

    values_copy(in);
    expected(in, wanted);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        run_on(types[t].dtype, in, y);
        for (size_t i = 0; i < count_of(&inputs[0]); i++)
            near(y[i], wanted[i], types[t].tolerance, tn_dtype_name(types[t].dtype), i);
    }
}

/* d sum(y) / d (element i of input k) = (y(x + h) - y(x - h)) / 2h. */
static double slope(size_t k, size_t i)
{
    const double h = 1e-5;
    double in[INPUTS][COUNT_MAX], up[COUNT_MAX], down[COUNT_MAX], sum = 0;

    values_copy(in);
    in[k][i] = inputs[k].values[i] + h;
    run_on(TN_F64, in, up);
    in[k][i] = inputs[k].values[i] - h;
    run_on(TN_F64, in, down);
    for (size_t j = 0; j < count_of(&inputs[0]); j++)
        sum += (up[j] - down[j]) / (2 * h);
    return sum;
}

static void test_gradient(tn_cached_op *compiled)
{
    double in[INPUTS][COUNT_MAX], dx[COUNT_MAX];
    tn_array *x[INPUTS], *y;
    char what[64];

    values_copy(in);
    arrays_of(TN_F64, in, x);
    for (size_t k = 0; k < INPUTS; k++)
        MUST(tn_attach_grad(ctx, x[k], TN_MODE_WRITE, NULL));
    (void)tn_record_set(1);
    y = run(compiled, x);
    (void)tn_record_set(0);
    MUST(tn_backward(ctx, 1, &y, NULL, 0));
    for (size_t k = 0; k < INPUTS; k++) {
        const size_t count = count_of(&inputs[k]);

        (void)snprintf(what, sizeof what, "the gradient of input %zu%s", k, compiled ? ", compiled" : "");
        MUST(tn_array_read(tn_array_grad(x[k]), dx, count * sizeof *dx));
        for (size_t i = 0; i < count; i++)
            near(dx[i], slope(k, i), 1e-8, what, i);
    }
    tn_array_release(y);
    arrays_release(x);
}

/* A symbol of the operator that went through JSON, compiled: what a hybridized net is. */
static tn_cached_op *symbol_compile(void)
{
    tn_symbol *variables[INPUTS] = {NULL}, *symbol = NULL, *read = NULL;
    const tn_symbol_call node = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .op = OP,
                                 .attrs = attrs,
                                 .in_count = INPUTS,
                                 .in = variables};
    tn_cached_op *op = NULL;
    char *json = NULL, name[32];

    for (size_t k = 0; k < INPUTS; k++) {
        (void)snprintf(name, sizeof name, "x%zu", k);
        MUST(tn_symbol_variable(ctx, name, &variables[k]));
    }
    MUST(tn_symbol_op(ctx, &node, &symbol));
    MUST(tn_symbol_to_json(symbol, &json));
    MUST(tn_symbol_from_json(ctx, json, strlen(json), &read));
    MUST(tn_cached_op_create(ctx, read, NULL, &op));
    for (size_t k = 0; k < INPUTS; k++)
        tn_symbol_release(variables[k]);
    tn_symbol_release(read);
    tn_symbol_release(symbol);
    tn_free(json);
    return op;
}

static void test_symbol(void)
{
    double in[INPUTS][COUNT_MAX], y[COUNT_MAX], eager[COUNT_MAX];
    tn_cached_op *op = symbol_compile();
    tn_array *x[INPUTS];

    values_copy(in);
    arrays_of(TN_F64, in, x);
    values_of(run(op, x), y);
    run_on(TN_F64, in, eager);
    for (size_t i = 0; i < count_of(&inputs[0]); i++)
        near(y[i], eager[i], 0, "the compiled symbol", i);
    test_gradient(op);
    tn_cached_op_release(op);
    arrays_release(x);
}

/* One step of gradient descent on the squared distance to `goal`; the loss before it. */
static double train_step(tn_cached_op *compiled, tn_array *const *x, tn_array *goal)
{
    static const char *const rate[] = {"lr", "0.1", NULL};
    tn_array *w = x[0], *y, *distance, *squares;
    double parts[COUNT_MAX], loss = 0;

    (void)tn_record_set(1);
    y = run(compiled, x);
    distance = call("elemwise_sub", NULL, 2, (tn_array *[]){y, goal});
    squares = call("square", NULL, 1, &distance);
    (void)tn_record_set(0);
    MUST(tn_backward(ctx, 1, &squares, NULL, 0));
    const tn_op_call update = {.struct_size = TN_SIZE(tn_op_call),
                               .op = "sgd_update",
                               .attrs = rate,
                               .in_count = 2,
                               .in = (tn_array *[]){w, tn_array_grad(w)}};
    MUST(tn_invoke_text(ctx, &update, 1, &w, NULL));
    values_of(squares, parts);
    for (size_t i = 0; i < count_of(&inputs[0]); i++)
        loss += parts[i];
    tn_array_release(distance);
    tn_array_release(y);
    return loss;
}

/* The first input is trained until the output is that of its values in reverse order. */
static void test_training(tn_cached_op *compiled)
{
    const size_t count = count_of(&inputs[0]);
    double in[INPUTS][COUNT_MAX], wanted[COUNT_MAX], first = 0, last = 0;
    tn_array *x[INPUTS], *goal;

    values_copy(in);
    for (size_t i = 0; i < count; i++)
        in[0][i] = inputs[0].values[count - 1 - i];
    expected(in, wanted);
    goal = array_of(TN_F32, &inputs[0], wanted);
    values_copy(in);
    arrays_of(TN_F32, in, x);
    MUST(tn_attach_grad(ctx, x[0], TN_MODE_WRITE, NULL));
    for (int i = 0; i <= 40; i++) {
        last = train_step(compiled, x, goal);
        first = i ? first : last;
    }
    if (!(last < LOSS_LEFT * first)) {
        (void)fprintf(stderr,
                      "training: the loss was %.3g, and is %.3g after 40 steps: more than LOSS_LEFT of it\n",
                      first, last);
        exit(1);
    }
    tn_array_release(goal);
    arrays_release(x);
    tn_cached_op_release(compiled);
}

static void test_device(const char *name)
{
    const tn_device *device = NULL;

    MUST(tn_device_get(ctx, name, &device));
    (void)tn_device_use(device);
    test_values();
    test_gradient(NULL);
    test_symbol();
    test_training(NULL);
    test_training(symbol_compile());
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
