/* Reads rows of digits: a convolutional net looks at a strip of handwritten digits, an LSTM from both ends
 * at its columns, and connectionist temporal classification learns from the digits alone, not where they
 * stand. Build it with
 *     gcc ctc.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs, a seed and the number of strips to learn from may stand on the command line. */
#include "helpers.h"

#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 12, WIDTH = 48, STEPS = WIDTH / 2, LENGTH = 4, BLANK = DIGIT_CLASSES };

typedef struct strips {
    int64_t count;
    float *pixels; /* (count, 1, HEIGHT, WIDTH) */
    float *labels; /* (count, LENGTH): digits, -1 behind the last one */
} strips;

/* 2 to LENGTH digits from left to right, somewhat apart and up or down. */
static void strip_compose(const digits *d, uint64_t *random, int vary, float *pixels, float *labels)
{
    const int64_t length = 2 + draw_below(random, LENGTH - 1);
    int64_t slack = WIDTH - length * DIGIT, left = 0;

    for (int64_t k = 0; k < LENGTH; k++) {
        const int64_t digit = draw_below(random, d->count), top = draw_below(random, HEIGHT - DIGIT + 1);
        const int64_t gap = draw_below(random, slack < 6 ? slack + 1 : 7);
        float varied[DIGIT * DIGIT];

        labels[k] = k < length ? d->labels[digit] : -1;
        if (k >= length)
            continue;
        memcpy(varied, d->pixels + digit * DIGIT * DIGIT, sizeof varied);
        if (vary)
            digit_vary(d->pixels + digit * DIGIT * DIGIT, random, varied);
        slack -= gap;
        left += gap;
        for (int64_t y = 0; y < DIGIT; y++)
            memcpy(pixels + (top + y) * WIDTH + left, varied + y * DIGIT, DIGIT * sizeof *varied);
        left += DIGIT;
    }
}

static strips strips_compose(tn_app *app, const char *name, int64_t count, uint64_t seed, int vary)
{
    digits d = digits_read(app, name);
    strips s = {.count = d.count ? count : 0};

    s.pixels = calloc((size_t)(s.count * HEIGHT * WIDTH) + 1, sizeof *s.pixels);
    s.labels = calloc((size_t)(s.count * LENGTH) + 1, sizeof *s.labels);
    if (!s.pixels || !s.labels)
        s.count = 0;
    for (int64_t i = 0; i < s.count; i++)
        strip_compose(&d, &seed, vary, s.pixels + i * HEIGHT * WIDTH, s.labels + i * LENGTH);
    digits_free(&d);
    return s;
}

static tn_data *strips_data(tn_app *app, const strips *s, int32_t shuffle, uint64_t seed)
{
    const int64_t shape[4] = {s->count, 1, HEIGHT, WIDTH}, label[2] = {s->count, LENGTH};

    return tn_data_from_arrays(app, .batch = 32, .shuffle = shuffle, .seed = seed,
                               .fields = {{"data", tn_app_array(app, 4, shape, s->pixels)},
                                          {"label", tn_app_array(app, 2, label, s->labels)}});
}

static tn_x conv(tn_x x, int64_t channels)
{
    x = tn_conv2d(x, .channels = channels, .kernel = {3, 3}, .pad = {1, 1}, .no_bias = 1);
    return tn_relu(tn_batchnorm(x));
}

static tn_x reader(tn_x x) /* (N, 1, H, W) to scores (N, W / 2, classes and the blank) */
{
    x = tn_maxpool2d(conv(x, 16));
    x = tn_maxpool2d(conv(conv(x, 32), 48), .kernel = {2, 1});
    x = tn_reshape(tn_transpose(x, 3, 0, 1, 2), 0, 0, -1);
    x = tn_lstm(tn_dropout(x, .rate = 0.2), NULL, .name = "lstm", .units = 64, .bidirectional = 1);
    return tn_transpose(tn_dense(x, .units = DIGIT_CLASSES + 1, .keep_axes = 1), 1, 0, 2);
}

static tn_x loss(const tn_x *out, const tn_x *label)
{
    return tn_loss(out[0], label[0], "ctc");
}

static tn_x likeliest(tn_x x) /* the symbol of each step */
{
    return tn_op(tn_net_call(tn_arg(x), x), "argmax", .attrs = {"axis", "2"});
}

/* Symbols that stay are one, blanks are none. 1: what is left are the labels. */
static int reads(const float *steps, const float *labels)
{
    int64_t k = 0;

    for (int64_t t = 0; t < STEPS; t++) {
        if (steps[t] == BLANK || (t && steps[t] == steps[t - 1]))
            continue;
        if (k == LENGTH || steps[t] != labels[k++])
            return 0;
    }
    return k == LENGTH || labels[k] < 0;
}

int main(int argc, char **argv)
{
    const uint64_t seed = (uint64_t)argument(argc, argv, 2, 1);
    tn_app *app = tn_app_open(.name = "ctc", .errors = stderr);
    tn_net *net = tn_net_function(app, reader, .name = "reader");
    tn_net *steps = tn_net_function(app, likeliest, .name = "steps", .arg = net);
    strips learnt = strips_compose(app, "digits:train", argument(argc, argv, 3, 14000), seed, 1);
    strips held_out = strips_compose(app, "digits:test", learnt.count / 8, seed + 1000, 0);
    float *found;

    tn_net_init(net, .seed = seed);
    tn_fit(net, strips_data(app, &learnt, 1, seed), .loss = loss, .epochs = argument(argc, argv, 1, 4),
           .optimizer = "adam", .lr = 0.003, .schedule = "cosine", .clip_norm = 5, .log = stdout);
    found = outputs_of(app, steps, strips_data(app, &held_out, 0, 0), STEPS);
    if (found) {
        double wrong = 0;

        for (int64_t i = 0; i < held_out.count; i++)
            wrong += !reads(found + i * STEPS, held_out.labels + i * LENGTH);
        (void)printf("valid: error %.4f\n", wrong / (double)held_out.count);
    }
    free(found);
    free(learnt.pixels);
    free(learnt.labels);
    free(held_out.pixels);
    free(held_out.labels);
    tn_net_export(net, "ctc");
    return tn_app_close(app);
}
