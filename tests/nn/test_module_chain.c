/* Modules in a chain, and a loss whose gradient the program computes: what MXNet's SequentialModule and
 * PythonLossModule are for. Each step is that of one module over one symbol with the loss in it. */
#include "nn/symbols.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tenon/nn_module.h"

enum { BATCH = 50, CLASSES = 10, HIDDEN = 16, STEPS = 20, ROOM = 4096 };

static tn_symbol *body(tn_app *app, tn_symbol *s)
{
    s = node(app, "FullyConnected", "fc1", LIST("num_hidden", "16"), node(app, "Flatten", "flat", NULL, s));
    return node(app, "tanh", "act", NULL, s);
}

static tn_symbol *head(tn_app *app, tn_symbol *s)
{
    return node(app, "FullyConnected", "fc2", LIST("num_hidden", "10"), s);
}

/* [takes] the symbol; bound and filled. */
static tn_module *module_make(tn_app *app, tn_symbol *s, bool image, int32_t input_grads)
{
    tn_module *m = tn_module_new(app, .symbol = s);

    tn_symbol_release(s);
    if (image)
        tn_module_bind(m, .shapes = {{BATCH, 1, 8, 8}}, .input_grads = input_grads);
    else
        tn_module_bind(m, .shapes = {{BATCH, HIDDEN}}, .input_grads = input_grads);
    return m;
}

/* Softmax cross-entropy of scores: its gradient is the softmax without the one-hot labels. */
static tn_array *loss_gradient(tn_app *app, tn_array *scores, tn_array *labels)
{
    float x[BATCH * CLASSES], y[BATCH];

    assert_int_equal(nn_read(app, scores, x, BATCH * CLASSES), BATCH * CLASSES);
    assert_int_equal(nn_read(app, labels, y, BATCH), BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        float *row = x + i * CLASSES, sum = 0, most = row[0];

        for (size_t k = 1; k < CLASSES; k++)
            most = fmaxf(most, row[k]);
        for (size_t k = 0; k < CLASSES; k++)
            sum += row[k] = expf(row[k] - most);
        for (size_t k = 0; k < CLASSES; k++)
            row[k] = row[k] / sum - (k == (size_t)y[i]);
    }
    return tn_app_array(app, 2, (int64_t[]){BATCH, CLASSES}, x);
}

static void near(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * fmaxf(1, fabsf(b[i]))))
            fail_msg("parameter %zu: %g, as one module %g", i, (double)a[i], (double)b[i]);
}

static void chain(void **state)
{
    static float parts[ROOM], whole[ROOM];
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_open(app, "digits:train", .batch = BATCH, .last = "discard");
    tn_module *first = module_make(app, body(app, variable(app, "data")), true, 0),
              *second = module_make(app, head(app, variable(app, "data")), false, 1),
              *one = module_make(
                  app,
                  node(app, "SoftmaxOutput", "softmax", NULL, head(app, body(app, variable(app, "data")))),
                  true, 0),
              *all[] = {one, first, second};
    size_t count, begin;
    tn_batch b;

    (void)state;
    tn_module_init_params(one, .seed = 4);
    for (size_t i = 1; i < 3; i++) {
        tn_params *p = tn_module_params(one);

        tn_module_set_params(all[i], p, TN_PARAMS_EXTRA);
        tn_params_destroy(p);
    }
    for (size_t i = 0; i < 3; i++)
        tn_module_init_optimizer(all[i], .lr = 0.1, .momentum = 0.9, .wd = 1e-3);
    for (int step = 0; step < STEPS && tn_data_next(d, &b); step++) {
        tn_array *hidden, *heads;

        tn_module_forward(one, 1, 2, (tn_array *[]){b.x, b.y});
        tn_module_backward(one, NULL);
        tn_module_update(one);
        tn_module_forward(first, 1, 1, &b.x);
        hidden = tn_module_output(first, 0);
        tn_module_forward(second, 1, 1, &hidden);
        heads = loss_gradient(app, tn_module_output(second, 0), b.y);
        tn_module_backward(second, &heads);
        heads = tn_module_input_grad(second, 0);
        tn_module_backward(first, &heads);
        tn_module_update(first);
        tn_module_update(second);
    }
    count = nn_read_module(app, one, whole, ROOM);
    begin = nn_read_module(app, first, parts, ROOM);
    assert_int_equal(begin, HIDDEN * 65);
    assert_int_equal(begin + nn_read_module(app, second, parts + begin, ROOM - begin), count);
    near(parts, whole, count);
    assert_int_equal(tn_trainer_steps(tn_module_trainer(first)), STEPS);
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chain)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
