/* An LSTM that reads texts character by character, beside a model that counts: how well each foresees the
 * last tenth of every text, which neither was given. Build it with
 *     gcc text.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs, a seed and a folder of texts may stand on the command line. */
#include "helpers.h"

#include <math.h>
#include <stdlib.h>

enum { STEP = 64, CONTEXT = 128, GRAM = 5, CELLS = 1 << 20 };

static texts t;

/* ---- the model that counts: each context backs off to the shorter one, by Witten and Bell ---- */

static struct {
    unsigned long long key; /* up to four characters, how many, and what came behind them; 0: free */
    unsigned count;
} cells[CELLS];
static size_t used; /* of them */

enum { ALL = 256, KINDS = 257 }; /* all that came behind; how many different characters */

static unsigned *cell(const unsigned char *end, int length, unsigned next)
{
    unsigned long long key = (unsigned long long)next << 4 | (unsigned)length << 1 | 1;
    size_t at;

    for (int k = 1; k <= length; k++)
        key |= (unsigned long long)end[-k] << (8 + 8 * k);
    at = (size_t)(key * 0x9e3779b97f4a7c15u >> 44);
    while (cells[at].key && cells[at].key != key)
        at = (at + 1) % CELLS;
    if (!cells[at].key && ++used > CELLS / 8 * 7) {
        fprintf(stderr, "text: the texts are too many for the model that counts\n");
        exit(1);
    }
    cells[at].key = key;
    return &cells[at].count;
}

static void counts_add(const text *book)
{
    for (size_t k = GRAM - 1; k < book->kept; k++)
        for (int length = 0; length < GRAM; length++) {
            const unsigned char *at = book->bytes + k;

            *cell(at, length, KINDS) += !(*cell(at, length, *at))++;
            ++*cell(at, length, ALL);
        }
}

static double counts_chance(const unsigned char *at)
{
    double p = 1.0 / (double)t.chars;

    for (int length = 0; length < GRAM; length++) {
        const double all = *cell(at, length, ALL), kinds = *cell(at, length, KINDS);

        if (all > 0)
            p = (*cell(at, length, *at) + kinds * p) / (all + kinds);
    }
    return p;
}

/* ---- the net ---- */

static tn_x reader(tn_x x)
{
    tn_x y = tn_embedding(x, .count = (int64_t)t.chars, .units = 64);

    y = tn_lstm(y, NULL, .name = "lstm", .units = 256, .layout = "NTC");
    return tn_dense(tn_dropout(y, .rate = 0.1), .units = (int64_t)t.chars, .keep_axes = 1);
}

/* What is learnt from, cut into windows; a label is the character behind. */
static tn_data *windows(tn_app *app, uint64_t seed)
{
    int64_t shape[2] = {0, STEP}, n = 0;
    float *x, *y;
    tn_data *data;

    for (size_t i = 0; i < t.count; i++)
        shape[0] += (int64_t)(t.text[i].kept - 1) / STEP;
    x = calloc((size_t)(shape[0] * STEP) + 1, sizeof *x);
    y = calloc((size_t)(shape[0] * STEP) + 1, sizeof *y);
    for (size_t i = 0; x && y && i < t.count; i++)
        for (size_t k = 0; k < (t.text[i].kept - 1) / STEP * STEP; k++, n++) {
            x[n] = t.code[t.text[i].bytes[k]];
            y[n] = t.code[t.text[i].bytes[k + 1]];
        }
    data = tn_data_from_arrays(
        app, .batch = 16, .shuffle = 1, .seed = seed,
        .fields = {{"data", tn_app_array(app, 2, shape, x)}, {"label", tn_app_array(app, 2, shape, y)}});
    free(x);
    free(y);
    return data;
}

/* The sum of -log p over the part of a text that was not learnt from. */
static double held_out(tn_app *app, tn_net *net, const text *book)
{
    static float x[BYTES], scores[BYTES * 32];
    const size_t first = book->kept - CONTEXT;
    const int64_t shape[2] = {1, (int64_t)(book->size - 1 - first)};
    const size_t mark = tn_app_mark(app);
    double loss = 0;

    for (int64_t k = 0; k < shape[1]; k++)
        x[k] = t.code[book->bytes[first + (size_t)k]];
    if (!tn_app_read(app, tn_net_forward(net, tn_app_array(app, 2, shape, x)), (size_t)shape[1] * t.chars,
                     scores))
        return 0;
    for (size_t k = CONTEXT - 1; k < (size_t)shape[1]; k++) {
        const float *row = scores + k * t.chars;
        double sum = 0;

        for (size_t c = 0; c < t.chars; c++)
            sum += exp((double)row[c]);
        loss += log(sum) - (double)row[t.code[book->bytes[first + k + 1]]];
    }
    tn_app_release(app, mark);
    return loss;
}

static tn_x loss(const tn_x *out, const tn_x *label)
{
    return tn_loss(out[0], label[0], "softmax_ce");
}

int main(int argc, char **argv)
{
    const uint64_t seed = (uint64_t)argument(argc, argv, 2, 1);
    tn_app *app = tn_app_open(.name = "text", .errors = stderr);
    tn_net *net = tn_net_function(app, reader, .name = "reader");
    double by_net = 0, by_counts = 0, count = 0;

    texts_read(&t, argc > 3 ? argv[3] : "/usr/share/common-licenses", 10 * STEP);
    tn_net_init(net, .seed = seed);
    tn_fit(net, windows(app, seed), .loss = loss, .epochs = argument(argc, argv, 1, 8), .optimizer = "adam",
           .lr = 0.006, .schedule = "cosine", .clip_norm = 5, .log = stdout);
    for (size_t i = 0; i < t.count; i++)
        counts_add(&t.text[i]);
    for (size_t i = 0; i < t.count; i++) {
        by_net += held_out(app, net, &t.text[i]);
        for (size_t k = t.text[i].kept; k < t.text[i].size; k++, count++)
            by_counts -= log(counts_chance(t.text[i].bytes + k));
    }
    (void)printf("%zu texts, %.0f characters held out: perplexity %.3f, of %d-grams %.3f\n", t.count, count,
                 exp(by_net / count), GRAM, exp(by_counts / count));
    tn_net_export(net, "text");
    return tn_app_close(app);
}
