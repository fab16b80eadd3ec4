/*
 * Sets of attribute values worth trying: the rows of cases.list, or required attributes filled in by type;
 * then one attribute after the other given each of its other values.
 */
#include <stdlib.h>
#include <string.h>

#include "generate.h"

#define CHK_CASE(op, attrs, shape, values) {op, attrs, shape, values},

static const chk_hint hints[] = {
#include "cases.list"
};

#undef CHK_CASE

/* An operator is asked for many times in a row. */
const chk_hint *const *chk_hints_of(const char *op)
{
    static const chk_hint *rows[CHK_HINTS_MAX + 1];
    static char known[200];
    size_t count = 0;

    if (!strcmp(known, op))
        return rows;
    for (size_t i = 0; i < sizeof hints / sizeof *hints && count < CHK_HINTS_MAX; i++)
        if (!strcmp(hints[i].op, op))
            rows[count++] = &hints[i];
    rows[count] = NULL;
    (void)snprintf(known, sizeof known, "%s", op);
    return rows;
}

#define RANGE_MOST 16 /* of an attribute whose last value is tried */

/* Texts to try for each type of attribute, divided by '|'; those out of range, or that inference refuses,
 * drop out. */
static const char *const others[] = {
    [TN_ATTR_T_INT] = "0|1|-1|2|3",
    [TN_ATTR_T_FLOAT] = "0.5|-1.5|2",
    [TN_ATTR_T_BOOL] = "True|False",
    [TN_ATTR_T_TUPLE] = "(0,)|(1,)|(0,1)|(1,0)|(0,2)|(1,1)|(2,2)|(3,3)|(1,1,1)|(2,)|()",
    [TN_ATTR_T_DTYPE] =
        "float32|float64|float16|bfloat16|uint8|int8|int32|int64|bool|int16|uint16|uint32|uint64|None",
    [TN_ATTR_T_OPT_INT] = "0|1|-1|2|None",
    [TN_ATTR_T_OPT_FLOAT] = "0.5|2|None",
    [TN_ATTR_T_OPT_BOOL] = "True|False|None",
    [TN_ATTR_T_TEXT] = "None",
    [TN_ATTR_T_FLOATS] = "(0.5,)|(0.5,1.5)|(0.25,-1.5,0.75)",
    [TN_ATTR_T_OPT_TUPLE] = "(1,)|(None,)|(0,1)",
};
#define OTHERS ((uint32_t)(sizeof others / sizeof others[0]))

/* Required attributes, the first text that is in range. */
static const char *const required[] = {
    [TN_ATTR_T_INT] = "2|1|0",       [TN_ATTR_T_FLOAT] = "0.5|1|2|-1", [TN_ATTR_T_BOOL] = "False",
    [TN_ATTR_T_TUPLE] = "(1,)|(2,)", [TN_ATTR_T_DTYPE] = "float32",    [TN_ATTR_T_OPT_INT] = "None",
    [TN_ATTR_T_TEXT] = "text",       [TN_ATTR_T_OPT_FLOAT] = "None",   [TN_ATTR_T_OPT_BOOL] = "None",
    [TN_ATTR_T_FLOATS] = "(0.5,)",   [TN_ATTR_T_OPT_TUPLE] = "(0,)",
};

/* An attribute that counts devices whose calls wait for each other keeps its default: there is one here. */
static bool is_alone(const tn_attr_def *def)
{
    return strcmp(def->name, "ndev") == 0;
}

/* Calls for each of "a|b|c" until one returns true. */
static bool each_text(const char *texts, bool (*fn)(void *arg, const char *text), void *arg)
{
    char text[64];

    while (texts && *texts) {
        const size_t length = strcspn(texts, "|");

        if (length < sizeof text) {
            memcpy(text, texts, length);
            text[length] = '\0';
            if (fn(arg, text))
                return true;
        }
        texts += length + (texts[length] == '|');
    }
    return false;
}

/* ---- values other than the one that is there --------------------------------------------------------- */

typedef struct other_values {
    chk_arena *arena;
    const tn_attr_def *def;
    tn_value now, *out;
    uint32_t count, most;
} other_values;

static void other_add(other_values *o, tn_value v)
{
    bool known = chk_attr_equal(o->def, v, o->now);

    for (uint32_t i = 0; i < o->count; i++)
        known |= chk_attr_equal(o->def, v, o->out[i]);
    if (!known && o->count < o->most)
        o->out[o->count++] = v;
}

/* Read back from text, as everything that is to be in range. */
static bool other_text(void *arg, const char *text)
{
    other_values *o = arg;
    tn_value v;

    if (chk_attr_parse(o->arena, o->def, text, &v))
        other_add(o, v);
    return o->count == o->most;
}

static void other_number(other_values *o, double v, bool whole)
{
    (void)other_text(o, chk_text(o->arena, whole ? "%.0f" : "%.17g", v));
}

/* Near the one that is there; then within the bounds, however narrow they are. */
static void other_numbers(other_values *o, double now, bool whole)
{
    static const double near[][2] = {{0.5, 0.125}, {0, 0.75}, {1, 1}, {1, -1}}, part[] = {0.25, 0.75, 0, 1};
    const double low = o->def->min, high = o->def->max;

    for (size_t i = whole ? 2 : 0; i < sizeof near / sizeof *near; i++)
        other_number(o, near[i][0] * now + near[i][1], whole);
    for (size_t i = 0; low <= high && i < sizeof part / sizeof *part; i++)
        other_number(o, low + part[i] * (high - low), whole);
}

/* All items one more, or one less. */
static void other_tuple(other_values *o, const tn_tuple *now, int64_t step)
{
    const char *text = "(";

    for (int64_t i = 0; i < now->count; i++)
        text = now->item[i] == TN_NONE_ITEM
                   ? chk_text(o->arena, "%sNone,", text)
                   : chk_text(o->arena, "%s%lld,", text, (long long)(now->item[i] + step));
    (void)other_text(o, chk_text(o->arena, "%s)", text));
}

bool chk_attr_scaled(chk_arena *a, const tn_attr_def *def, tn_value now, double factor, double plus,
                     tn_value *out)
{
    const void *at = def->type == TN_ATTR_T_FLOAT ? NULL : tn_value_pointer(now);
    const tn_floats *list = def->type == TN_ATTR_T_FLOATS ? at : NULL;
    const char *text = "(";

    if (def->type == TN_ATTR_T_FLOAT || (def->type == TN_ATTR_T_OPT_FLOAT && at))
        text = chk_text(a, "%.17g", (at ? *(const double *)at : tn_value_float(now)) * factor + plus);
    else if (!list)
        return false;
    for (int64_t i = 0; list && i < list->count; i++)
        text = chk_text(a, "%s%.17g,%s", text, list->item[i] * factor + plus, i + 1 < list->count ? "" : ")");
    return chk_attr_parse(a, def, text, out);
}

uint32_t chk_attr_others(chk_arena *a, const tn_attr_def *def, tn_value now, tn_value *out, uint32_t most)
{
    other_values o = {.arena = a, .def = def, .now = now, .out = out, .most = most};
    const bool pointer = def->type != TN_ATTR_T_INT && def->type != TN_ATTR_T_FLOAT;
    const void *at = pointer ? tn_value_pointer(now) : NULL;
    tn_value moved;

    if (is_alone(def))
        return 0;
    if (def->type == TN_ATTR_T_FLOAT)
        other_numbers(&o, tn_value_float(now), false);
    else if (def->type == TN_ATTR_T_INT)
        other_numbers(&o, (double)tn_value_int(now), true);
    else if (def->type == TN_ATTR_T_OPT_FLOAT && at)
        other_numbers(&o, *(const double *)at, false);
    else if (def->type == TN_ATTR_T_OPT_INT && at)
        other_numbers(&o, (double)*(const int64_t *)at, true);
    else if (chk_attr_scaled(a, def, now, 0.5, 0.125, &moved))
        other_add(&o, moved);
    else if ((def->type == TN_ATTR_T_TUPLE || def->type == TN_ATTR_T_OPT_TUPLE) && at)
        for (int64_t step = 1; step >= -1; step -= 2)
            other_tuple(&o, at, step);
    if (def->type == TN_ATTR_T_CHOICE)
        (void)each_text(def->choices, other_text, &o);
    else if (def->type < OTHERS)
        (void)each_text(others[def->type], other_text, &o);
    return o.count;
}

/* ---- sets of values ---------------------------------------------------------------------------------- */

typedef struct vary {
    generator *g;
    const tn_attr_def *def;
    uint32_t index, count, most;
    chk_base *bases;
    tn_value value;
    const char *text; /* of the value */
} vary;

static bool value_read(void *arg, const char *text)
{
    vary *v = arg;

    v->text = chk_text(&v->g->lab->arena, "%s", text);
    return chk_attr_parse(&v->g->lab->arena, v->def, text, &v->value);
}

static bool base_vary(void *arg, const char *text)
{
    vary *v = arg;
    const chk_base *first = &v->bases[0];
    chk_base *b = &v->bases[v->count];

    if (v->count == v->most || !value_read(v, text))
        return v->count == v->most;
    if (v->value == first->attrs.values[v->index])
        return false;
    *b = *first;
    b->variation = true;
    chk_attrs_with(&v->g->lab->arena, &first->attrs, v->index, v->value, v->text, v->def->name, &b->attrs);
    v->count++;
    return false;
}

/* Of a narrow range the end, too: an integer's last value, nearly a float's. */
static void range_vary(vary *v)
{
    const double low = v->def->min, high = v->def->max;

    if (v->def->type == TN_ATTR_T_INT && low <= high && high - low <= RANGE_MOST)
        (void)base_vary(v, chk_text(&v->g->lab->arena, "%.0f", high));
    if (v->def->type == TN_ATTR_T_FLOAT && low <= high && high - low <= RANGE_MOST)
        (void)base_vary(v, chk_text(&v->g->lab->arena, "%.17g", low + 0.875 * (high - low)));
}

static bool required_fill(generator *g, chk_attrs *out)
{
    const uint32_t count = chk_attr_count(g->op);
    tn_value *values = chk_take(&g->lab->arena, (count + 1u) * sizeof *values);
    const char **written = chk_take(&g->lab->arena, (count + 1u) * sizeof *written);
    vary v = {.g = g};

    for (uint32_t i = 0; i < count; i++) {
        const tn_attr_def *def = v.def = &g->op->attrs[i];
        const char *texts = def->default_text;

        if (!texts && def->type == TN_ATTR_T_CHOICE)
            texts = def->choices;
        if (!texts && (def->flags & TN_ATTR_F_COUNT))
            texts = "3|2|1";
        if (!texts)
            texts = def->type < OTHERS ? required[def->type] : NULL;
        if (!(texts && !*texts ? value_read(&v, texts) : each_text(texts, value_read, &v)))
            return false; /* a default that is no text, such as that of ctx, is a value as well */
        values[i] = v.value;
        written[i] = v.text;
    }
    *out = (chk_attrs){values, written, count, ""};
    return true;
}

static void shape_read(const char *text, chk_base *b)
{
    b->has_shape = text != NULL;
    if (!text)
        return;
    for (text += strspn(text, "( "); *text && *text != ')'; text += strspn(text, ", ")) {
        char *end;

        b->shape.dim[b->shape.ndim++] = strtoll(text, &end, 10);
        text = end;
    }
}

uint32_t chk_bases(generator *g, chk_base *out)
{
    const tn_kernel *k = g->lab->side.kernel;
    vary v = {.g = g, .bases = out, .most = g->bases_most ? g->bases_most : CHK_BASES_MAX};

    for (const chk_hint *const *h = chk_hints_of(g->op->name); *h && v.count < v.most; h++) {
        chk_base *b = &out[v.count];

        memset(b, 0, sizeof *b);
        if (!chk_attrs_parse(&g->lab->arena, g->op, (*h)->attrs, &b->attrs))
            continue;
        shape_read((*h)->shape, b);
        v.count++;
    }
    if (!v.count) {
        memset(&out[0], 0, sizeof out[0]);
        if (!required_fill(g, &out[0].attrs))
            return 0;
        v.count = 1;
    }
    for (v.index = 0; v.index < out[0].attrs.count && v.count < v.most; v.index++) {
        v.def = &g->op->attrs[v.index];
        if (k && !strcmp(k->op, g->op->name) && v.def->since > k->op_version_max)
            continue; /* an older kernel is offered its default alone */
        if (is_alone(v.def))
            continue;
        if (v.def->type == TN_ATTR_T_CHOICE)
            (void)each_text(v.def->choices, base_vary, &v);
        else if (v.def->type < OTHERS)
            (void)each_text(others[v.def->type], base_vary, &v);
        range_vary(&v);
    }
    return v.count;
}
