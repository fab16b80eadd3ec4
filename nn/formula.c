/*
 * Formulas: losses and updates as text, "relu(margin - x * y)", run operator by operator by whoever has the
 * values: a net's function, or an optimizer over arrays.
 *
 *     formula   := { name ":=" compare ";" } compare
 *     compare   := sum [ (">" | "=") sum ]
 *     sum       := product { ("+" | "-") product }
 *     product   := factor { ("*" | "/") factor }
 *     factor    := "-" factor | number | name | name "(" compare { "," compare } ")" | "(" compare ")"
 *
 * Numbers are computed here; what has a value in it is an operator's. Texts are the library's own.
 */
#include "formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct binary {
    char sign;
    const char *values, *scalar, *reverse; /* of two values; value and number; number and value */
} binary;

static const binary signs[] = {
    {'+', "add", "_plus_scalar", "_plus_scalar"},
    {'-', "sub", "_minus_scalar", "_rminus_scalar"},
    {'*', "mul", "_mul_scalar", "_mul_scalar"},
    {'/', "div", "_div_scalar", "_rdiv_scalar"},
    {'>', "greater", "_greater_scalar", "_lesser_scalar"},
    {'=', "equal", "_equal_scalar", "_equal_scalar"},
    {'M', "maximum", "_maximum_scalar", "_maximum_scalar"},
    {'m', "minimum", "_minimum_scalar", "_minimum_scalar"},
};

typedef struct function {
    const char *name, *op;
    uint32_t count;
    const char *attrs[4]; /* pairs */
} function;

static const function functions[] = {
    {"abs", "abs", 1, {NULL}},
    {"square", "square", 1, {NULL}},
    {"sqrt", "sqrt", 1, {NULL}},
    {"norm", "norm", 1, {NULL}},
    {"exp", "exp", 1, {NULL}},
    {"log", "log", 1, {NULL}},
    {"relu", "Activation", 1, {"act_type", "relu"}},
    {"softrelu", "Activation", 1, {"act_type", "softrelu"}},
    {"log_softmax", "log_softmax", 1, {"axis", "-1"}},
    {"sum_last", "sum", 1, {"axis", "(-1,)", "keepdims", "True"}},
    {"sum_all", "sum", 1, {"axis", "(0,)", "exclude", "True"}}, /* of each sample */
    {"mean_all", "mean", 1, {"axis", "(0,)", "exclude", "True"}},
    {"mean_last", "mean", 1, {"axis", "(-1,)", "keepdims", "True"}},
    {"noise", "_random_normal_like", 1, {NULL}},
    {"sum_drop", "sum", 1, {"axis", "(-1,)"}},
    {"column", "Reshape", 1, {"shape", "(-1, 1)"}},
    {"row", "Reshape", 1, {"shape", "(1, -1)"}},
    {"each", "expand_dims", 1, {"axis", "1"}},    /* (N, 1, D) */
    {"against", "expand_dims", 1, {"axis", "0"}}, /* (1, N, D) */
    {"count", "_contrib_arange_like", 1, {"axis", "0"}},
    {"pick", "pick", 2, {"axis", "-1", "keepdims", "True"}},
    {"where", "where", 3, {NULL}},
};

static tnn_term failed(tnn_formula *f)
{
    f->failed = true;
    return (tnn_term){NULL, NAN};
}

static tnn_term run(tnn_formula *f, const char *op, uint32_t count, void *const *in, const double *scalar,
                    const char *const *attrs)
{
    const tnn_step s = {.op = op, .count = count, .in = in, .scalar = scalar, .attrs = attrs};
    void *value = f->failed ? NULL : f->run(f->arg, &s);

    return value ? (tnn_term){value, 0} : failed(f);
}

static double computed(char sign, double a, double b)
{
    switch (sign) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    default:
        return sign == '/' ? a / b : NAN;
    }
}

static tnn_term both(tnn_formula *f, char sign, tnn_term a, tnn_term b)
{
    const binary *row = signs;
    void *const in[2] = {a.value ? a.value : b.value, b.value};

    while (row->sign != sign)
        row++;
    if (f->failed || (!a.value && !b.value))
        return (tnn_term){NULL, computed(sign, a.number, b.number)};
    if (a.value && b.value)
        return run(f, row->values, 2, in, NULL, NULL);
    return run(f, a.value ? row->scalar : row->reverse, 1, in, a.value ? &b.number : &a.number, NULL);
}

static bool taken(tnn_formula *f, const char *sign)
{
    f->at += strspn(f->at, " ");
    if (strncmp(f->at, sign, strlen(sign)) != 0)
        return false;
    f->at += strlen(sign);
    return true;
}

static size_t name_length(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
}

/* "0.5", "1e-12", in any locale. */
static double number(tnn_formula *f)
{
    double value = 0, unit = 1;

    for (; *f->at >= '0' && *f->at <= '9'; f->at++)
        value = 10 * value + (*f->at - '0');
    if (*f->at == '.')
        for (f->at++; *f->at >= '0' && *f->at <= '9'; f->at++, unit *= 10)
            value = 10 * value + (*f->at - '0');
    if (!strncmp(f->at, "e-", 2))
        for (int32_t power = (int32_t)strtol(f->at + 2, (char **)(uintptr_t)&f->at, 10); power > 0; power--)
            unit *= 10;
    return value / unit;
}

static tnn_term compare(tnn_formula *f);

/* A function's attributes, along the axes that the formula is run with. */
static const char *const *attrs_of(const tnn_formula *f, const function *row, const char *out[4])
{
    memcpy(out, row->attrs, 4 * sizeof *out);
    if (*f->axis && out[1] && !strcmp(out[1], "-1"))
        out[1] = f->axis;
    else if (*f->axis && out[1] && !strcmp(out[1], "(-1,)"))
        out[1] = f->axes;
    else if (*f->samples && out[1] && !strcmp(out[1], "(0,)"))
        out[1] = f->samples;
    return out;
}

static tnn_term called(tnn_formula *f, const char *name, size_t length)
{
    tnn_term in[3] = {{NULL, 0}};
    void *values[3];
    const char *attrs[4];
    uint32_t count = 0;

    do
        in[count++] = compare(f);
    while (count < 3 && taken(f, ","));
    if (!taken(f, ")"))
        return failed(f);
    for (uint32_t i = 0; i < count; i++)
        values[i] = in[i].value;
    if (!strncmp(name, "max", length) || !strncmp(name, "min", length))
        return both(f, name[1] == 'a' ? 'M' : 'm', in[0], in[1]);
    if (!strncmp(name, "sqrt", length) && !in[0].value)
        return (tnn_term){NULL, sqrt(in[0].number)};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == length && !strncmp(functions[i].name, name, length))
            return functions[i].count == count
                       ? run(f, functions[i].op, count, values, NULL, attrs_of(f, &functions[i], attrs))
                       : failed(f);
    return failed(f);
}

static tnn_term factor(tnn_formula *f)
{
    const char *name;
    size_t length;
    tnn_term t;

    if (taken(f, "-"))
        return both(f, '*', (tnn_term){NULL, -1}, factor(f));
    if (taken(f, "(")) {
        t = compare(f);
        return taken(f, ")") ? t : failed(f);
    }
    if (*f->at >= '0' && *f->at <= '9')
        return (tnn_term){NULL, number(f)};
    name = f->at;
    length = name_length(name);
    f->at += length;
    if (taken(f, "("))
        return called(f, name, length);
    for (size_t i = f->count; i-- > 0;)
        if (strlen(f->names[i]) >= length && !strncmp(f->names[i], name, length) &&
            name_length(f->names[i]) == length)
            return f->terms[i];
    return failed(f);
}

static tnn_term product(tnn_formula *f)
{
    tnn_term a = factor(f);

    for (;;)
        if (taken(f, "*"))
            a = both(f, '*', a, factor(f));
        else if (taken(f, "/"))
            a = both(f, '/', a, factor(f));
        else
            return a;
}

static tnn_term sum(tnn_formula *f)
{
    tnn_term a = product(f);

    for (;;)
        if (taken(f, "+"))
            a = both(f, '+', a, product(f));
        else if (taken(f, "-"))
            a = both(f, '-', a, product(f));
        else
            return a;
}

static tnn_term compare(tnn_formula *f)
{
    const tnn_term a = sum(f);

    return taken(f, ">") ? both(f, '>', a, sum(f)) : taken(f, "=") ? both(f, '=', a, sum(f)) : a;
}

void tnn_formula_name(tnn_formula *f, const char *name, void *value, double number)
{
    if (f->count == TNN_FORMULA_NAMES) {
        f->failed = true;
        return;
    }
    f->names[f->count] = name;
    f->terms[f->count++] = (tnn_term){value, number};
}

void *tnn_formula_run(tnn_formula *f, const char *text)
{
    tnn_term t = {NULL, 0};

    for (f->at = text; !f->failed;) {
        const char *name = f->at += strspn(f->at, " ");
        const char *behind = name + name_length(name);

        behind += strspn(behind, " ");
        if (strncmp(behind, ":=", 2) != 0)
            break;
        f->at = behind + 2;
        t = compare(f);
        tnn_formula_name(f, name, t.value, t.number);
        if (!taken(f, ";"))
            return NULL;
    }
    t = compare(f);
    return f->failed || f->at[strspn(f->at, " ")] ? NULL : t.value;
}
