/* See helpers.h. */
#define _POSIX_C_SOURCE 200809L /* strdup, lstat */

#include "helpers.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int64_t argument(int argc, char **argv, int index, int64_t otherwise)
{
    return argc > index && *argv[index] ? strtoll(argv[index], NULL, 10) : otherwise;
}

/* ---- random numbers: SplitMix64 ---- */

double draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

int64_t draw_below(uint64_t *state, int64_t count)
{
    return (int64_t)(draw(state) * (double)count);
}

/* ---- digits ---- */

digits digits_read(tn_app *app, const char *name)
{
    tn_data *data = tn_data_open(app, name, .batch = 1 << 20);
    digits d = {.count = tn_data_count(data)};
    const size_t n = (size_t)d.count;
    tn_batch b;

    d.pixels = calloc(n * DIGIT * DIGIT + 1, sizeof *d.pixels);
    d.labels = calloc(n + 1, sizeof *d.labels);
    if (!d.pixels || !d.labels)
        tn_app_fail(app, TN_E_NOMEM, "no memory for the digits");
    if (!tn_data_next(data, &b) || !tn_app_read(app, b.x, n * DIGIT * DIGIT, d.pixels) ||
        !tn_app_read(app, b.y, n, d.labels))
        d.count = 0;
    return d;
}

void digits_free(digits *d)
{
    free(d->pixels);
    free(d->labels);
}

static float pixel(const float *digit, int y, int x)
{
    return y < 0 || x < 0 || y >= DIGIT || x >= DIGIT ? 0 : digit[y * DIGIT + x];
}

void digit_vary(const float *digit, uint64_t *random, float *out)
{
    const double middle = (DIGIT - 1) / 2.0, angle = draw(random) * 0.4 - 0.2,
                 scale = 0.9 + draw(random) * 0.2;
    const double c = cos(angle) * scale, s = sin(angle) * scale;
    const double dy = draw(random) * 1.6 - 0.8, dx = draw(random) * 1.6 - 0.8;

    for (int i = 0; i < DIGIT * DIGIT; i++) {
        const double v = i / DIGIT - middle - dy, u = i % DIGIT - middle - dx;
        const double y = c * v - s * u + middle, x = s * v + c * u + middle;
        const int top = (int)floor(y), left = (int)floor(x);
        const float down = (float)(y - top), right = (float)(x - left);

        out[i] = (1 - down) * ((1 - right) * pixel(digit, top, left) + right * pixel(digit, top, left + 1)) +
                 down * ((1 - right) * pixel(digit, top + 1, left) + right * pixel(digit, top + 1, left + 1));
    }
}

tn_data *digits_varied(tn_app *app, int64_t copies, uint64_t seed)
{
    digits d = digits_read(app, "digits:train");
    const int64_t shape[4] = {d.count * copies, 1, DIGIT, DIGIT};
    float *pixels = calloc((size_t)shape[0] * DIGIT * DIGIT + 1, sizeof *pixels);
    float *labels = calloc((size_t)shape[0] + 1, sizeof *labels);
    uint64_t random = seed;
    tn_data *data = NULL;

    for (int64_t i = 0; pixels && labels && i < shape[0]; i++) {
        digit_vary(d.pixels + i / copies * DIGIT * DIGIT, &random, pixels + i * DIGIT * DIGIT);
        labels[i] = d.labels[i / copies];
    }
    if (pixels && labels)
        data = tn_data_from_arrays(app, .batch = 64, .shuffle = 1, .seed = seed,
                                   .fields = {{"data", tn_app_array(app, 4, shape, pixels)},
                                              {"label", tn_app_array(app, 1, shape, labels)}});
    else
        tn_app_fail(app, TN_E_NOMEM, "no memory for the digits");
    free(pixels);
    free(labels);
    digits_free(&d);
    return data;
}

/* ---- pictures composed of digits ---- */

static const float ink = 0.25F;

/* Draws a digit `scale` times as large and gives the box around its ink. */
static box paste(const float *digit, float label, int64_t scale, int64_t top, int64_t left, float *pixels,
                 float *mask)
{
    box b = {label, 1, 1, 0, 0};

    for (int64_t i = 0; i < DIGIT * scale * DIGIT * scale; i++) {
        const int64_t y = i / (DIGIT * scale), x = i % (DIGIT * scale), at = (top + y) * SIDE + left + x;
        const float value = digit[y / scale * DIGIT + x / scale];

        pixels[at] = value;
        if (value < ink)
            continue;
        mask[at] = 1 + label;
        b.left = fminf(b.left, (float)(left + x) / SIDE);
        b.top = fminf(b.top, (float)(top + y) / SIDE);
        b.right = fmaxf(b.right, (float)(left + x + 1) / SIDE);
        b.bottom = fmaxf(b.bottom, (float)(top + y + 1) / SIDE);
    }
    return b;
}

/* A place for a square: random ones are tried; 0: those met something each time. */
static int place_find(const char *taken, int64_t side, uint64_t *random, int64_t *top, int64_t *left)
{
    for (int tries = 0; tries < 20; tries++) {
        int64_t met = 0;

        *top = draw_below(random, SIDE - side + 1);
        *left = draw_below(random, SIDE - side + 1);
        for (int64_t i = 0; i < side * side; i++)
            met += taken[(*top + i / side) * SIDE + *left + i % side];
        if (!met)
            return 1;
    }
    return 0;
}

static void compose(const digits *d, uint64_t *random, int vary, float *pixels, float *mask, box *boxes)
{
    const int64_t wanted = 1 + draw_below(random, BOXES);
    char taken[SIDE * SIDE] = {0};

    for (int64_t k = 0; k < BOXES; k++) {
        const int64_t digit = draw_below(random, d->count), scale = 1 + draw_below(random, 2),
                      side = DIGIT * scale;
        float varied[DIGIT * DIGIT];
        int64_t top, left;

        boxes[k] = (box){-1, -1, -1, -1, -1};
        if (k >= wanted || !place_find(taken, side, random, &top, &left))
            continue;
        memcpy(varied, d->pixels + digit * DIGIT * DIGIT, sizeof varied);
        if (vary)
            digit_vary(d->pixels + digit * DIGIT * DIGIT, random, varied);
        boxes[k] = paste(varied, d->labels[digit], scale, top, left, pixels, mask);
        for (int64_t y = 0; y < side; y++)
            memset(taken + (top + y) * SIDE + left, 1, (size_t)side);
    }
}

pictures pictures_read(tn_app *app, const char *name, int64_t count, uint64_t seed, int vary)
{
    digits d = digits_read(app, name);
    pictures p = {.count = d.count > 0 && count > 0 ? count : 0};
    const size_t n = (size_t)p.count;

    p.pixels = calloc(n * SIDE * SIDE + 1, sizeof *p.pixels);
    p.masks = calloc(n * SIDE * SIDE + 1, sizeof *p.masks);
    p.boxes = calloc(n * BOXES + 1, sizeof *p.boxes);
    if (!p.pixels || !p.masks || !p.boxes) {
        tn_app_fail(app, TN_E_NOMEM, "no memory for the pictures");
        p.count = 0;
    }
    for (int64_t i = 0; i < p.count; i++)
        compose(&d, &seed, vary, p.pixels + i * SIDE * SIDE, p.masks + i * SIDE * SIDE, p.boxes + i * BOXES);
    digits_free(&d);
    return p;
}

void pictures_free(pictures *p)
{
    free(p->pixels);
    free(p->masks);
    free(p->boxes);
}

/* ---- texts ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void text_read(text *t, const char *path)
{
    FILE *file = fopen(path, "rb");

    t->size = file ? fread(t->bytes, 1, BYTES, file) : 0;
    t->kept = t->size - t->size / 10;
    if (file)
        (void)fclose(file);
}

void texts_read(texts *t, const char *folder, size_t least)
{
    char *paths[TEXTS] = {NULL}, path[4096];
    DIR *dir = opendir(folder);
    size_t found = 0;
    struct stat s;

    for (struct dirent *e; dir && found < TEXTS && (e = readdir(dir));) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (!lstat(path, &s) && S_ISREG(s.st_mode) && s.st_size >= (off_t)least)
            if ((paths[found] = strdup(path)))
                found++;
    }
    if (dir)
        (void)closedir(dir);
    qsort(paths, found, sizeof *paths, by_name);
    for (size_t i = 0; i < found; i++) {
        text *book = &t->text[t->count];

        text_read(book, paths[i]);
        free(paths[i]);
        if (book->size < least)
            continue;
        t->count++;
        for (size_t k = 0; k < book->size; k++)
            t->code[book->bytes[k]] = 1;
    }
    for (size_t c = 0; c < 256; c++)
        t->code[c] = t->code[c] ? (unsigned char)t->chars++ : 0;
}

/* ---- measures ---- */

float *outputs_of(tn_app *app, tn_net *net, tn_data *data, size_t size)
{
    float *out = calloc((size_t)tn_data_count(data) * size + 1, sizeof *out), *at = out;

    for (tn_batch b; out && tn_data_next(data, &b); at += (size_t)b.n * size)
        if (!tn_app_read(app, tn_net_forward(net, b.x), (size_t)b.n * size, at))
            break;
    if (out && tn_app_ok(app))
        return out;
    free(out);
    return NULL;
}

/* in: images (N, 1, H, W) to learn from, and others; out: the squared errors of the others. */
static void components(const tn_x *in, tn_x *out)
{
    const int64_t *count = tn_arg(in[0]);
    tn_x mean = tn_op(tn_flatten(in[0]), "mean", .attrs = {"axis", "0", "keepdims", "1"});
    tn_x x = tn_sub(tn_flatten(in[0]), mean), y = tn_sub(tn_flatten(in[1]), mean), code, vectors[2] = {NULL};

    tn_op(tn_op(x, "dot", .with = {x}, .attrs = {"transpose_a", "1"}), "_linalg_syevd", .out = vectors,
          .out_count = 2); /* rows, by rising variance */
    vectors[0] = tn_slice(vectors[0], .axis = 0, .begin = -*count);
    code = tn_op(y, "dot", .with = {vectors[0]}, .attrs = {"transpose_b", "1"});
    out[0] = tn_mean(tn_square(tn_sub(y, tn_op(code, "dot", .with = {vectors[0]}))));
}

double components_error(tn_app *app, int64_t count)
{
    tn_net *net = tn_net_functions(app, components, .arg = &count, .inputs = {"learnt", "others"});
    tn_meter *error = tn_meter_new(app, "loss");
    tn_batch learnt, others;
    tn_array *out;

    if (tn_data_next(tn_data_open(app, "digits:train", .batch = 4096), &learnt) &&
        tn_data_next(tn_data_open(app, "digits:test", .batch = 4096), &others) &&
        tn_net_run(net, 2, (tn_array *[]){learnt.x, others.x}, 1, &out))
        tn_meter_add(error, out, NULL);
    return tn_meter_value(error);
}

double mean_iou(const float *found, const float *masks, size_t count, int classes)
{
    double sum = 0, met = 0;

    for (int c = 0; c < classes; c++) {
        double both = 0, either = 0;

        for (size_t i = 0; i < count; i++) {
            const int a = found[i] == (float)c, b = masks[i] == (float)c;

            both += a && b;
            either += a || b;
        }
        sum += either > 0 ? both / either : 0;
        met += either > 0;
    }
    return met > 0 ? sum / met : 0;
}

typedef struct detection {
    float score;
    int right;
    double precision; /* of those down to here */
    int64_t picture;
    box box;
} detection;

static int by_score(const void *a, const void *b)
{
    const detection *p = a, *q = b;

    return p->score != q->score ? (p->score < q->score) - (p->score > q->score)
                                : (p->picture > q->picture) - (p->picture < q->picture);
}

static float overlap(const box *a, const box *b)
{
    const float w = fminf(a->right, b->right) - fmaxf(a->left, b->left);
    const float h = fminf(a->bottom, b->bottom) - fmaxf(a->top, b->top);
    const float both = w > 0 && h > 0 ? w * h : 0;

    return both /
           ((a->right - a->left) * (a->bottom - a->top) + (b->right - b->left) * (b->bottom - b->top) - both);
}

/* Whether a detection meets a box that none before it has taken; takes it. */
static int is_right(const detection *d, const pictures *p, char *taken)
{
    int64_t best = -1;
    float most = 0.5F;

    for (int64_t k = d->picture * BOXES; k < (d->picture + 1) * BOXES; k++) {
        const float iou = p->boxes[k].kind == d->box.kind ? overlap(&d->box, &p->boxes[k]) : 0;

        if (iou >= most) {
            most = iou;
            best = k;
        }
    }
    if (best < 0 || taken[best])
        return 0;
    return taken[best] = 1;
}

static double average_precision(detection *d, size_t count, const pictures *p, float kind, char *taken)
{
    double boxes = 0, right = 0, area = 0, best = 0;

    for (int64_t k = 0; k < p->count * BOXES; k++)
        boxes += p->boxes[k].kind == kind;
    qsort(d, count, sizeof *d, by_score);
    for (size_t i = 0; i < count; i++) {
        right += d[i].right = is_right(&d[i], p, taken);
        d[i].precision = right / (double)(i + 1);
    }
    for (size_t i = count; i-- > 0;) {
        best = fmax(best, d[i].precision);
        area += d[i].right ? best : 0;
    }
    return boxes > 0 ? area / boxes : NAN;
}

double mean_average_precision(const float *found, size_t rows, const pictures *p)
{
    const size_t all = (size_t)p->count * rows;
    detection *d = calloc(all + 1, sizeof *d);
    char *taken = calloc((size_t)p->count * BOXES + 1, 1);
    double sum = 0, classes = 0;

    for (int kind = 0; d && taken && kind < DIGIT_CLASSES; kind++) {
        size_t count = 0;

        for (size_t i = 0; i < all; i++) {
            const float *f = found + 6 * i;

            if (f[0] == (float)kind)
                d[count++] = (detection){
                    .score = f[1], .picture = (int64_t)(i / rows), .box = {f[0], f[2], f[3], f[4], f[5]}};
        }
        const double average = average_precision(d, count, p, (float)kind, taken);
        sum += isnan(average) ? 0 : average;
        classes += !isnan(average);
    }
    free(d);
    free(taken);
    return classes > 0 ? sum / classes : 0;
}
