/* An encoder of texts as BERT is one: layers of self-attention learn to foresee characters that were
 * masked, from those on both sides. Held out is the last tenth of every text. Build it with
 *     gcc bert.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs, a seed and a folder of texts may stand on the command line. */
#include "helpers.h"

#include <stdlib.h>

enum { STEPS = 32, UNITS = 64, HEADS = 4, LAYERS = 2, MASKINGS = 2 /* of each window, in an epoch */ };

static texts t;

/* A number for each head and distance of two places, which are those of x (N, T): (1, HEADS, T, T). */
static tn_x distances(tn_x x)
{
    tn_x place = tn_op(x, "_contrib_arange_like", .attrs = {"axis", "1"});
    tn_x y = tn_reshape(place, 1, -1);

    y = tn_shift(tn_sub(y, tn_reshape(place, -1, 1)), STEPS);
    y = tn_embedding(y, .name = "distances", .count = 2 * STEPS, .units = HEADS);
    return tn_scale(tn_transpose(tn_reshape(y, 1, STEPS, STEPS, HEADS), 0, 3, 1, 2), 8);
}

static tn_x attention(tn_x x, tn_x near) /* (T, N, UNITS) */
{
    static const char heads[] = {'0' + HEADS, 0};
    tn_x qkv = tn_dense(x, .units = 3 * UNITS, .keep_axes = 1);
    tn_x scores = tn_op(qkv, "_contrib_interleaved_matmul_selfatt_qk", .attrs = {"heads", heads});

    scores = tn_softmax(tn_add(tn_reshape(scores, -1, HEADS, STEPS, STEPS), near));
    scores = tn_reshape(scores, -1, STEPS, STEPS);
    x = tn_op(qkv, "_contrib_interleaved_matmul_selfatt_valatt", .with = {scores}, .attrs = {"heads", heads});
    return tn_dense(x, .units = UNITS, .keep_axes = 1);
}

static tn_x layer(tn_x x, tn_x near)
{
    x = tn_layernorm(tn_add(x, tn_dropout(attention(x, near), .rate = 0.1)));
    tn_x y = tn_gelu(tn_dense(x, .units = 4 * UNITS, .keep_axes = 1));
    y = tn_dense(y, .units = UNITS, .keep_axes = 1);
    return tn_layernorm(tn_add(x, tn_dropout(y, .rate = 0.1)));
}

static tn_x encoder(tn_x x) /* codes (N, STEPS) to scores (N, STEPS, chars) */
{
    tn_x near = distances(x), y = tn_transpose(x, 1, 0);

    y = tn_layernorm(tn_embedding(y, .name = "symbols", .count = (int64_t)t.chars + 1, .units = UNITS));
    for (int i = 0; i < LAYERS; i++) {
        tn_scope_begin(y, "layer%d", i);
        y = layer(y, near);
        tn_scope_end(y);
    }
    return tn_transpose(tn_dense(y, .units = (int64_t)t.chars, .keep_axes = 1), 1, 0, 2);
}

static tn_x loss(const tn_x *out, const tn_x *label) /* of characters that were masked; -1: was not */
{
    tn_x counts = tn_op(tn_reshape(label[0], 0, 0, 1), "_greater_equal_scalar", .attrs = {"scalar", "0"});

    return tn_loss(out[0], label[0], "softmax_ce", .sample_weight = counts);
}

static tn_x likeliest(tn_x x)
{
    return tn_op(tn_net_call(tn_arg(x), x), "argmax", .attrs = {"axis", "2"});
}

typedef struct windows {
    int64_t count;
    float *codes, *labels; /* (count, STEPS) */
} windows;

/* The part of all texts that is learnt from, or that is held out, `times` over with other characters
 * masked. */
static windows windows_cut(tn_app *app, int held_out, int times, uint64_t random)
{
    windows w = {.codes = calloc(TEXTS * BYTES * (size_t)times, sizeof *w.codes),
                 .labels = calloc(TEXTS * BYTES * (size_t)times, sizeof *w.labels)};
    size_t n = 0;

    if (!w.codes || !w.labels)
        tn_app_fail(app, TN_E_NOMEM, "no memory for the windows");
    for (size_t i = 0; tn_app_ok(app) && i < t.count * (size_t)times; i++) {
        const text *book = &t.text[i / (size_t)times];
        const size_t first = held_out ? book->kept : 0, end = held_out ? book->size : book->kept;

        for (size_t k = first; k < first + (end - first) / STEPS * STEPS; k++, n++) {
            const float code = t.code[book->bytes[k]];
            const int masked = draw(&random) < 0.15;

            w.codes[n] = masked ? (float)t.chars : code;
            w.labels[n] = masked ? code : -1;
        }
    }
    w.count = (int64_t)n / STEPS;
    return w;
}

static tn_data *data_of(tn_app *app, const windows *w, int32_t shuffle, uint64_t seed)
{
    const int64_t shape[2] = {w->count, STEPS};

    return tn_data_from_arrays(app, .batch = 16, .shuffle = shuffle, .seed = seed,
                               .fields = {{"data", tn_app_array(app, 2, shape, w->codes)},
                                          {"label", tn_app_array(app, 2, shape, w->labels)}});
}

/* How often a masked character is foreseen, and how often it is the one that most of them are. */
static void compare(const float *found, const windows *w)
{
    double right = 0, masked = 0, most = 0, counts[256] = {0};

    for (int64_t i = 0; i < w->count * STEPS; i++)
        if (w->labels[i] >= 0) {
            masked++;
            right += found[i] == w->labels[i];
            most = ++counts[(int)w->labels[i]] > most ? counts[(int)w->labels[i]] : most;
        }
    (void)printf("valid: accuracy %.4f, most frequent %.4f\n", right / masked, most / masked);
}

int main(int argc, char **argv)
{
    const uint64_t seed = (uint64_t)argument(argc, argv, 2, 1);
    tn_app *app = tn_app_open(.name = "bert", .errors = stderr);
    tn_net *net = tn_net_function(app, encoder, .name = "encoder");
    tn_net *characters = tn_net_function(app, likeliest, .name = "characters", .arg = net);
    windows learnt, others;
    float *found;

    texts_read(&t, argc > 3 ? argv[3] : "/usr/share/common-licenses", 10 * STEPS);
    learnt = windows_cut(app, 0, MASKINGS, seed);
    others = windows_cut(app, 1, 1, seed + 1000);
    tn_net_init(net, .seed = seed);
    tn_fit(net, data_of(app, &learnt, 1, seed), .loss = loss, .epochs = argument(argc, argv, 1, 3),
           .optimizer = "adam", .lr = 0.003, .schedule = "cosine", .warmup = 0.2, .log = stdout);
    found = outputs_of(app, characters, data_of(app, &others, 0, 0), STEPS);
    if (found)
        compare(found, &others);
    free(found);
    free(learnt.codes);
    free(learnt.labels);
    free(others.codes);
    free(others.labels);
    tn_net_export(net, "bert");
    return tn_app_close(app);
}
