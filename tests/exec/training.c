/*
 * A small net, trained by eager calls through sites. Batches lie in host memory and are copied to the device
 * of the net at each step, so that on a device with streams every step has edges between the queue of copies
 * and that of kernels.
 */
#include "training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SITES = 8 };

struct training {
    tni_context *c;
    tni_device *device;
    bool adam;
    uint32_t scale;
    tni_site *sites[SITES]; /* of the layers, in order */
    tni_site *updates[TRAINING_PARAMS];
    tni_array *params[TRAINING_PARAMS], *states[TRAINING_PARAMS][2];
    tni_array *images[TRAINING_BATCHES], *labels[TRAINING_BATCHES]; /* on the host */
};

static const struct {
    const char *op, *names[3], *texts[3];
    int param; /* weight and bias behind the data; -1: none */
} layers[SITES] = {
    {"Convolution", {"num_filter", "kernel", "pad"}, {"-8", "(3, 3)", "(1, 1)"}, 0},
    {"Activation", {"act_type"}, {"relu"}, -1},
    {"Pooling", {"kernel", "stride", "pool_type"}, {"(2, 2)", "(2, 2)", "max"}, -1},
    {"Flatten", {NULL}, {NULL}, -1},
    {"FullyConnected", {"num_hidden"}, {"-32"}, 2},
    {"Activation", {"act_type"}, {"tanh"}, -1},
    {"FullyConnected", {"num_hidden"}, {"10"}, 4},
    {"SoftmaxOutput", {"normalization"}, {"batch"}, -1},
};

/* Dimensions below 0 grow with the scale. */
static const struct {
    int32_t ndim;
    int64_t shape[4];
} params[TRAINING_PARAMS] = {{4, {-8, 1, 3, 3}}, {1, {-8}},      {2, {-32, -128}},
                             {1, {-32}},         {2, {10, -32}}, {1, {10}}};

static float number(uint64_t *state) /* -1 to 1, from a linear congruence */
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

static tni_array *made(training *t, uint32_t p, uint64_t *seed, float scale)
{
    tni_array *a = NULL;
    int64_t shape[4];
    float *values;
    uint64_t count;

    for (int32_t i = 0; i < params[p].ndim; i++)
        shape[i] = params[p].shape[i] < 0 ? -params[p].shape[i] * t->scale : params[p].shape[i];
    assert_ok(tni_array_create(t->c->space, t->device, TN_F32, params[p].ndim, shape, "training", &a));
    count = tni_array_count(a);
    assert_non_null(values = tni_calloc(count, sizeof *values));
    for (uint64_t i = 0; i < count; i++)
        values[i] = scale * number(seed);
    assert_ok(tni_array_write(a, values, count * sizeof *values));
    tni_free(values);
    return a;
}

/* Images with a bright column that says the class, and noise. */
static void batch_make(training *t, uint32_t which, tni_device *host, uint64_t *seed)
{
    const int64_t count = TRAINING_BATCH * t->scale, shape[4] = {count, 1, 8, 8};
    float *images = tni_calloc((uint64_t)count * TRAINING_PIXELS, sizeof *images);
    float *labels = tni_calloc((uint64_t)count, sizeof *labels);

    assert_true(images && labels);
    for (int64_t i = 0; i < count; i++) {
        labels[i] = (float)((i * 7 + which) % TRAINING_CLASSES);
        for (int64_t k = 0; k < TRAINING_PIXELS; k++)
            images[i * TRAINING_PIXELS + k] =
                0.2f * number(seed) + (k % TRAINING_CLASSES == (int64_t)labels[i]);
    }
    assert_ok(tni_array_create(t->c->space, host, TN_F32, 4, shape, "images", &t->images[which]));
    assert_ok(tni_array_create(t->c->space, host, TN_F32, 1, &count, "labels", &t->labels[which]));
    assert_ok(tni_array_write(t->images[which], images, (uint64_t)count * TRAINING_PIXELS * sizeof *images));
    assert_ok(tni_array_write(t->labels[which], labels, (uint64_t)count * sizeof *labels));
    tni_free(images);
    tni_free(labels);
}

static void update_make(training *t, uint32_t p, const char *optimizer, uint64_t *seed)
{
    const char *name = "lr", *text = "0";

    assert_ok(tni_site_create(t->c, optimizer, 1, &name, &text, &t->updates[p]));
    t->params[p] = made(t, p, seed, p % 2 ? 0.0f : 0.2f);
    assert_ok(tni_grad_attach(t->c, t->params[p], TN_MODE_WRITE, NULL));
    for (uint32_t i = 0; t->adam && i < 2; i++)
        t->states[p][i] = made(t, p, seed, 0.0f);
}

static void layer_make(training *t, uint32_t i)
{
    const char *texts[3];
    char scaled[32];
    size_t count = 0;

    for (; count < 3 && layers[i].names[count]; count++)
        texts[count] = layers[i].texts[count];
    if (count && texts[0][0] == '-') {
        snprintf(scaled, sizeof scaled, "%ld", -strtol(texts[0], NULL, 10) * (long)t->scale);
        texts[0] = scaled;
    }
    assert_ok(tni_site_create(t->c, layers[i].op, count, layers[i].names, texts, &t->sites[i]));
}

training *training_create(tni_context *c, const char *optimizer, uint32_t scale)
{
    training *t = tni_zalloc(sizeof *t);
    tni_device *host;
    uint64_t seed = 1;

    assert_non_null(t);
    t->c = c;
    t->scale = scale;
    t->adam = !strcmp(optimizer, "adam_update");
    assert_ok(tni_default_device(c, &t->device));
    assert_ok(tni_device_get(c->devices, "cpu", 0, &host));
    for (uint32_t i = 0; i < SITES; i++)
        layer_make(t, i);
    for (uint32_t p = 0; p < TRAINING_PARAMS; p++)
        update_make(t, p, optimizer, &seed);
    for (uint32_t b = 0; b < TRAINING_BATCHES; b++)
        batch_make(t, b, host, &seed);
    return t;
}

void training_destroy(training *t)
{
    for (uint32_t i = 0; i < SITES; i++)
        tni_site_release(t->sites[i]);
    for (uint32_t p = 0; p < TRAINING_PARAMS; p++) {
        tni_site_release(t->updates[p]);
        tni_array_release(t->params[p]);
        tni_array_release(t->states[p][0]);
        tni_array_release(t->states[p][1]);
    }
    for (uint32_t b = 0; b < TRAINING_BATCHES; b++) {
        tni_array_release(t->images[b]);
        tni_array_release(t->labels[b]);
    }
    tni_free(t);
}

/* The first `count` rows of a host array, on the device of the net. */
static tni_array *feed(training *t, tni_array *from, int64_t count)
{
    tni_array *rows = NULL, *to = NULL;

    assert_ok(tni_array_slice(from, 0, count, &rows));
    assert_ok(tni_array_create(t->c->space, t->device, TN_F32, rows->ndim, rows->shape, "batch", &to));
    assert_ok(tni_array_copy(rows, to));
    tni_array_release(rows);
    return to;
}

static tni_array *forward(training *t, tni_array *x, tni_array *label)
{
    tni_array *y = NULL, *last = x;

    for (uint32_t i = 0; i < SITES; i++, last = y) {
        const int p = layers[i].param;
        tni_array *in[3] = {last,
                            i == SITES - 1 ? label
                            : p >= 0       ? t->params[p]
                                           : NULL,
                            p >= 0 ? t->params[p + 1] : NULL};

        y = NULL;
        assert_ok(tni_invoke(t->sites[i], in[2] ? 3 : in[1] ? 2 : 1, in, 1, &y));
        if (last != x)
            tni_array_release(last);
    }
    return y;
}

void training_step(training *t, uint32_t which, uint32_t left_out, double lr)
{
    const int64_t count = TRAINING_BATCH * t->scale - left_out;
    tni_scope *scope = tni_scope_get();
    tni_array *x = feed(t, t->images[which], count), *label = feed(t, t->labels[which], count), *y;

    scope->recording = scope->training = true;
    y = forward(t, x, label);
    scope->recording = scope->training = false;
    assert_ok(tni_backward(t->c, 1, &y, NULL, NULL));
    for (uint32_t p = 0; p < TRAINING_PARAMS; p++) {
        tni_array *in[4] = {t->params[p], tni_grad_get(t->params[p]), t->states[p][0], t->states[p][1]};

        assert_ok(tni_site_set(t->updates[p], 0, tn_value_of_float(lr)));
        assert_ok(tni_invoke(t->updates[p], t->adam ? 4 : 2, in, 1, &t->params[p]));
    }
    tni_array_release(x);
    tni_array_release(label);
    tni_array_release(y);
}

uint32_t training_vars(training *t, tni_var *vars[TRAINING_PARAMS])
{
    for (uint32_t p = 0; p < TRAINING_PARAMS; p++)
        vars[p] = tni_array_var(t->params[p]);
    return TRAINING_PARAMS;
}

bool training_read(training *t, float values[TRAINING_FLOATS])
{
    uint64_t at = 0;

    assert_int_equal(t->scale, 1);
    for (uint32_t p = 0; p < TRAINING_PARAMS; p++) {
        uint64_t count = tni_array_count(t->params[p]);

        assert_true(at + count <= TRAINING_FLOATS);
        assert_ok(tni_array_read(t->params[p], values + at, count * sizeof *values));
        at += count;
    }
    assert_int_equal(at, TRAINING_FLOATS);
    for (uint64_t i = 0; i < at; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}
