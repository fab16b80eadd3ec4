/*
 * Optimizers that have no operator of their own: a few lines of the weight w, the gradient g and the states
 * s0 to s2, in Polish notation: "w - w * lr g" is w := w - lr * g. A name is an array or a number; what is of
 * numbers alone is computed at once, all else is queued, an operator for each word.
 */
#include "kv/formula.h"

#include <math.h>
#include <string.h>

#define WORD_BYTES 16

static const struct {
    const char *word, *arrays, *sizes, *right,
        *left; /* of two arrays; of different sizes; with a number there */
    uint32_t count;
} words[] = {
    {"+", "elemwise_add", "broadcast_add", "_plus_scalar", "_plus_scalar", 2},
    {"-", "elemwise_sub", "broadcast_sub", "_minus_scalar", "_rminus_scalar", 2},
    {"*", "elemwise_mul", "broadcast_mul", "_mul_scalar", "_mul_scalar", 2},
    {"/", "elemwise_div", "broadcast_div", "_div_scalar", "_rdiv_scalar", 2},
    {"max", "broadcast_maximum", "broadcast_maximum", "_maximum_scalar", "_maximum_scalar", 2},
    {"min", "broadcast_minimum", "broadcast_minimum", "_minimum_scalar", "_minimum_scalar", 2},
    {"square", "square", NULL, NULL, NULL, 1},
    {"sqrt", "sqrt", NULL, NULL, NULL, 1},
    {"abs", "abs", NULL, NULL, NULL, 1},
    {"norm", "norm", NULL, NULL, NULL, 1},
    {"where", "where", NULL, NULL, NULL, 3},
};
enum { WORDS = sizeof words / sizeof *words };

typedef struct value {
    tni_array *a; /* NULL: it is x */
    double x;
} value;

static bool word_take(const char **at, char out[WORD_BYTES])
{
    size_t length = strcspn(*at, " ");

    if (!length || length >= WORD_BYTES)
        return false;
    memcpy(out, *at, length);
    out[length] = 0;
    *at += length;
    *at += strspn(*at, " ");
    return true;
}

static tn_status wrong(const char *word)
{
    return tni_error(TN_E_INTERNAL, "an optimizer's formula has no \"%s\"", word);
}

static tn_status name_value(const tni_kv_formula *f, const char *word, value *out)
{
    for (size_t i = 0; i < f->array_count; i++)
        if (!strcmp(f->arrays[i].name, word)) {
            if (!f->arrays[i].a)
                return wrong(word);
            tni_array_retain(out->a = f->arrays[i].a);
            return TN_OK;
        }
    for (size_t i = 0; i < f->number_count; i++)
        if (!strcmp(f->numbers[i].name, word)) {
            out->x = f->numbers[i].x;
            return TN_OK;
        }
    return tni_parse_f64(word, &out->x) ? TN_OK : wrong(word);
}

static double of_numbers(char word, double a, double b)
{
    return word == '+' ? a + b : word == '-' ? a - b : word == '*' ? a * b : a / b;
}

/* One operator; *into NULL: a new array. */
static tn_status operator_queue(tni_context *c, size_t w, const value *in, tni_array **into)
{
    static const char *const names[] = {"scalar"};
    const bool pair = words[w].count == 2, right = pair && !in[1].a, left = pair && !in[0].a;
    tni_array *arrays[3] = {left ? in[1].a : in[0].a, in[1].a, in[2].a};
    const char *op = right ? words[w].right : left ? words[w].left : words[w].arrays, *texts[1];
    char text[32];

    if (pair && !right && !left && !tni_array_has_shape(in[0].a, in[1].a->ndim, in[1].a->shape))
        op = words[w].sizes;
    (void)tni_format_f64(text, sizeof text, right ? in[1].x : in[0].x);
    texts[0] = text;
    return tni_invoke_text(c, op, right || left ? 1 : words[w].count, arrays, right || left, names, texts, 1,
                           into, NULL);
}

static tn_status evaluate(const tni_kv_formula *f, const char **at, tni_array *into, value *out)
{
    char word[WORD_BYTES];
    value in[3] = {{0}};
    size_t w = 0;
    tn_status st = TN_OK;

    if (!word_take(at, word))
        return wrong("word");
    while (w < WORDS && strcmp(words[w].word, word) != 0)
        w++;
    if (w == WORDS)
        return name_value(f, word, out);
    for (uint32_t i = 0; i < words[w].count && !st; i++)
        st = evaluate(f, at, NULL, &in[i]);
    if (!st && words[w].count == 2 && !in[0].a && !in[1].a) {
        out->x = of_numbers(*word, in[0].x, in[1].x);
    } else if (!st) {
        out->a = into;
        if (into)
            tni_array_retain(into);
        st = operator_queue(f->ctx, w, in, &out->a);
    }
    for (int i = 0; i < 3; i++)
        tni_array_release(in[i].a);
    return st;
}

tn_status tni_kv_formula_run(tni_kv_formula *f, const char *line)
{
    char word[WORD_BYTES];
    value v = {0};
    size_t i = 0;
    bool kept;
    tn_status st;

    if (!word_take(&line, word))
        return wrong("name");
    while (i < f->array_count && strcmp(f->arrays[i].name, word) != 0)
        i++;
    if (i == f->array_count)
        return wrong(word);
    kept = f->arrays[i].kept;
    st = evaluate(f, &line, kept ? f->arrays[i].a : NULL, &v);
    if (!st && !v.a)
        st = wrong("array");
    if (!st && kept && v.a != f->arrays[i].a)
        st = tni_array_copy(v.a, f->arrays[i].a);
    if (st || kept) {
        tni_array_release(v.a);
    } else {
        tni_array_release(f->arrays[i].a);
        f->arrays[i].a = v.a;
    }
    return st;
}

void tni_kv_formula_fini(tni_kv_formula *f)
{
    for (size_t i = 0; i < f->array_count; i++)
        if (!f->arrays[i].kept)
            tni_array_release(f->arrays[i].a);
}
