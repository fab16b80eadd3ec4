/* An LSTM that reads texts character by character, beside a model that counts: how well each foresees the
 * last tenth of every text, which neither was given. Build it with
 *     gcc text.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs and a folder of texts may stand on the command line. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/nn.h>

enum { TEXTS = 64, BYTES = 1 << 16, STEP = 64, CONTEXT = 128, GRAM = 5, CELLS = 1 << 20 };

typedef struct text {
    unsigned char bytes[BYTES];
    size_t size, kept; /* kept: what is learnt from */
} text;

static text texts[TEXTS];
static size_t text_count, chars;
static unsigned char code[256]; /* of the characters that occur */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All regular files, in the order of their names; links are not followed. */
static void texts_read(const char *folder)
{
    char *paths[TEXTS] = {NULL}, path[4096];
    DIR *dir = opendir(folder);
    struct stat s;

    for (struct dirent *e; dir && text_count < TEXTS && (e = readdir(dir));) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (!lstat(path, &s) && S_ISREG(s.st_mode) && s.st_size >= 10 * STEP)
            paths[text_count++] = strdup(path);
    }
    qsort(paths, text_count, sizeof *paths, by_name);
    for (size_t i = 0; i < text_count; i++) {
        FILE *file = fopen(paths[i], "rb");

        texts[i].size = file ? fread(texts[i].bytes, 1, BYTES, file) : 0;
        texts[i].kept = texts[i].size - texts[i].size / 10;
        if (file)
            (void)fclose(file);
        free(paths[i]);
    }
    if (dir)
        (void)closedir(dir);
    for (size_t i = 0; i < text_count; i++)
        for (size_t k = 0; k < texts[i].size; k++)
            code[texts[i].bytes[k]] = 1;
    for (size_t c = 0; c < 256; c++)
        code[c] = code[c] ? (unsigned char)chars++ : 0;
}

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

static void counts_add(const text *t)
{
    for (size_t k = GRAM - 1; k < t->kept; k++)
        for (int length = 0; length < GRAM; length++) {
            const unsigned char *at = t->bytes + k;

            *cell(at, length, KINDS) += !(*cell(at, length, *at))++;
            ++*cell(at, length, ALL);
        }
}

static double counts_chance(const unsigned char *at)
{
    double p = 1.0 / (double)chars;

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
    tn_x y = tn_embedding(x, .count = (int64_t)chars, .units = 64);

    y = tn_lstm(y, NULL, .name = "lstm", .units = 256, .layout = "NTC");
    return tn_dense(tn_dropout(y, .rate = 0.1), .units = (int64_t)chars, .keep_axes = 1);
}

/* What is learnt from, cut into windows; a label is the character behind. */
static tn_data *windows(tn_app *app)
{
    int64_t shape[2] = {0, STEP}, n = 0;
    float *x, *y;
    tn_data *data;

    for (size_t i = 0; i < text_count; i++)
        shape[0] += (int64_t)(texts[i].kept - 1) / STEP;
    x = calloc((size_t)(shape[0] * STEP) + 1, sizeof *x);
    y = calloc((size_t)(shape[0] * STEP) + 1, sizeof *y);
    for (size_t i = 0; x && y && i < text_count; i++)
        for (size_t k = 0; k < (texts[i].kept - 1) / STEP * STEP; k++, n++) {
            x[n] = code[texts[i].bytes[k]];
            y[n] = code[texts[i].bytes[k + 1]];
        }
    data = tn_data_arrays(
        app, .batch = 16, .shuffle = 1, .seed = 1,
        .fields = {{"data", tn_app_array(app, 2, shape, x)}, {"label", tn_app_array(app, 2, shape, y)}});
    free(x);
    free(y);
    return data;
}

/* The sum of -log p over the part of a text that was not learnt from. */
static double held_out(tn_app *app, tn_net *net, const text *t)
{
    static float x[BYTES], scores[BYTES * 32];
    const size_t first = t->kept - CONTEXT;
    const int64_t shape[2] = {1, (int64_t)(t->size - 1 - first)};
    const size_t mark = tn_app_mark(app);
    double loss = 0;

    for (int64_t k = 0; k < shape[1]; k++)
        x[k] = code[t->bytes[first + (size_t)k]];
    if (!tn_app_read(app, tn_net_forward(net, tn_app_array(app, 2, shape, x)), (size_t)shape[1] * chars,
                     scores))
        return 0;
    for (size_t k = CONTEXT - 1; k < (size_t)shape[1]; k++) {
        const float *row = scores + k * chars;
        double sum = 0;

        for (size_t c = 0; c < chars; c++)
            sum += exp((double)row[c]);
        loss += log(sum) - (double)row[code[t->bytes[first + k + 1]]];
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
    tn_app *app = tn_app_open(.name = "text", .errors = stderr);
    tn_net *net = tn_net_function(app, reader, .name = "reader");
    double by_net = 0, by_counts = 0, count = 0;

    texts_read(argc > 2 ? argv[2] : "/usr/share/common-licenses");
    tn_net_init(net, .seed = 1);
    tn_fit(net, windows(app), .loss = loss, .epochs = argc > 1 ? atoi(argv[1]) : 8, .optimizer = "adam",
           .lr = 0.006, .schedule = "cosine", .clip_norm = 5, .log = stdout);
    for (size_t i = 0; i < text_count; i++)
        counts_add(&texts[i]);
    for (size_t i = 0; i < text_count; i++) {
        by_net += held_out(app, net, &texts[i]);
        for (size_t k = texts[i].kept; k < texts[i].size; k++, count++)
            by_counts -= log(counts_chance(texts[i].bytes + k));
    }
    (void)printf("%zu texts, %.0f characters held out: perplexity %.3f, of %d-grams %.3f\n", text_count,
                 count, exp(by_net / count), GRAM, exp(by_counts / count));
    tn_net_export(net, "text");
    return tn_app_close(app);
}
