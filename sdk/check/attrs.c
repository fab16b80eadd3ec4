/*
 * Attribute values from text, by the definition's table: the kit reads them itself, so that a kernel is given
 * values that no parser of the library has touched.
 */
#include <stdlib.h>
#include <string.h>

#include "lab.h"

uint32_t chk_attr_count(const tn_op *op)
{
    uint32_t count = 0;

    while (op->attrs && op->attrs[count].name)
        count++;
    return count;
}

int32_t chk_attr_index(const tn_op *op, const char *name)
{
    for (uint32_t i = 0; op->attrs && op->attrs[i].name; i++)
        if (!strcmp(op->attrs[i].name, name))
            return (int32_t)i;
    return -1;
}

static bool in_range(const tn_attr_def *def, double v)
{
    return def->min > def->max || (v >= def->min && v <= def->max);
}

static bool read_bool(const char *text, int64_t *out)
{
    *out = !strcmp(text, "True") || !strcmp(text, "true") || !strcmp(text, "1");
    return *out || !strcmp(text, "False") || !strcmp(text, "false") || !strcmp(text, "0");
}

static bool read_choice(const tn_attr_def *def, const char *text, int64_t *out)
{
    const char *at = def->choices ? def->choices : "";

    for (*out = 0; *at; ++*out) {
        size_t length = strcspn(at, "|");

        if (length == strlen(text) && !memcmp(at, text, length))
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

/* Items of "(1, 2)", "[1,2]", "3"; -1: not such a text. */
static int64_t read_items(const tn_attr_def *def, const char *text, double *items, int64_t most)
{
    int64_t count = 0;
    char *end;

    while (*text) {
        text += strspn(text, " ([,");
        if (*text == ')' || *text == ']' || !*text)
            break;
        if (count == most)
            return -1;
        if (!strncmp(text, "None", 4) && def->type == TN_ATTR_T_OPT_TUPLE) {
            items[count++] = (double)TN_NONE_ITEM;
            text += 4;
            continue;
        }
        items[count] = strtod(text, &end);
        if (end == text || !in_range(def, items[count]))
            return -1;
        count++;
        text = end;
    }
    return count;
}

static bool read_tuple(chk_arena *a, const tn_attr_def *def, const char *text, tn_value *out)
{
    double items[64];
    int64_t count;
    tn_tuple *t;

    if ((count = read_items(def, text, items, 64)) < 0)
        return false;
    if (def->type == TN_ATTR_T_FLOATS) {
        tn_floats *f = chk_take(a, sizeof *f + (uint64_t)count * sizeof(double));

        f->count = count;
        memcpy(f->item, items, (size_t)count * sizeof(double));
        *out = (uintptr_t)f;
        return true;
    }
    t = chk_take(a, sizeof *t + (uint64_t)count * sizeof(int64_t));
    t->count = count;
    for (int64_t i = 0; i < count; i++)
        t->item[i] = (int64_t)items[i];
    *out = (uintptr_t)t;
    return true;
}

/* A number, bool or choice, as its bits. */
static bool read_number(const tn_attr_def *def, const char *text, uint64_t *bits)
{
    const bool is_float = def->type == TN_ATTR_T_FLOAT || def->type == TN_ATTR_T_OPT_FLOAT;
    int64_t whole = 0;
    double number;
    char *end;
    bool good;

    if (def->type == TN_ATTR_T_BOOL || def->type == TN_ATTR_T_OPT_BOOL) {
        good = read_bool(text, &whole);
    } else if (def->type == TN_ATTR_T_CHOICE) {
        good = read_choice(def, text, &whole);
    } else {
        whole = is_float ? 0 : strtoll(text, &end, 10);
        number = is_float ? strtod(text, &end) : (double)whole;
        good = end != text && !*end && in_range(def, number);
        if (is_float)
            memcpy(&whole, &number, sizeof whole);
    }
    *bits = (uint64_t)whole;
    return good;
}

bool chk_attr_parse(chk_arena *a, const tn_attr_def *def, const char *text, tn_value *out)
{
    const bool none = !strcmp(text, "None");
    int32_t dtype = -1;
    uint64_t bits;

    *out = 0;
    switch (def->type) {
    case TN_ATTR_T_TEXT:
        *out = none ? 0 : (uintptr_t)chk_text(a, "%s", text);
        return true;
    case TN_ATTR_T_DTYPE:
        if (!none && tn_dtype_parse(text, &dtype))
            return false;
        *out = (tn_value)(int64_t)dtype;
        return true;
    case TN_ATTR_T_TUPLE:
    case TN_ATTR_T_OPT_TUPLE:
    case TN_ATTR_T_FLOATS:
        return none || read_tuple(a, def, text, out);
    case TN_ATTR_T_OPT_INT:
    case TN_ATTR_T_OPT_FLOAT:
    case TN_ATTR_T_OPT_BOOL:
        if (none)
            return true;
        if (!read_number(def, text, &bits))
            return false;
        *out = (uintptr_t)memcpy(chk_take(a, sizeof bits), &bits, sizeof bits);
        return true;
    default:
        return read_number(def, text, out);
    }
}

/* The text behind "name=" in "a=(1, 2) b=x", copied; NULL: not there. */
static const char *text_of(chk_arena *a, const char *texts, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = texts ? texts : ""; *at;) {
        size_t equal = strcspn(at, "="), end = equal;
        int depth = 0;

        for (; at[end] && (at[end] != ' ' || depth > 0); end++)
            depth += (at[end] == '(') - (at[end] == ')');
        if (equal == length && !memcmp(at, name, length))
            return chk_text(a, "%.*s", (int)(end - equal - 1), at + equal + 1);
        at += end;
        at += strspn(at, " ");
    }
    return NULL;
}

bool chk_attrs_parse(chk_arena *a, const tn_op *op, const char *text, chk_attrs *out)
{
    const uint32_t count = chk_attr_count(op);
    tn_value *values = chk_take(a, (count + 1u) * sizeof *values);
    const char **texts = chk_take(a, (count + 1u) * sizeof *texts);

    for (uint32_t i = 0; i < count; i++) {
        texts[i] = text_of(a, text, op->attrs[i].name);
        if (!texts[i])
            texts[i] = op->attrs[i].default_text;
        if (!texts[i] || !chk_attr_parse(a, &op->attrs[i], texts[i], &values[i]))
            return false;
    }
    *out = (chk_attrs){values, texts, count, text ? text : ""};
    return true;
}

void chk_attrs_with(chk_arena *a, const chk_attrs *from, uint32_t index, tn_value value, const char *text,
                    const char *name, chk_attrs *out)
{
    tn_value *values = chk_take(a, (from->count + 1u) * sizeof *values);
    const char **texts = chk_take(a, (from->count + 1u) * sizeof *texts);
    const char *all = from->text;

    memcpy(values, from->values, from->count * sizeof *values);
    memcpy(texts, from->texts, from->count * sizeof *texts);
    values[index] = value;
    texts[index] = text;
    if (name)
        all = chk_text(a, "%s%s%s=%s", all, *all ? " " : "", name, text);
    *out = (chk_attrs){values, texts, from->count, all};
}

static uint64_t pointed_bytes(const tn_attr_def *def, const void *at)
{
    if (def->type == TN_ATTR_T_TEXT)
        return strlen(at) + 1;
    if (def->type == TN_ATTR_T_TUPLE || def->type == TN_ATTR_T_OPT_TUPLE || def->type == TN_ATTR_T_FLOATS)
        return 8 + 8 * (uint64_t)((const tn_tuple *)at)->count;
    return 8;
}

bool chk_attr_equal(const tn_attr_def *def, tn_value a, tn_value b)
{
    const bool direct = def->type <= TN_ATTR_T_CHOICE || def->type == TN_ATTR_T_DTYPE;
    const void *p = tn_value_pointer(a), *q = tn_value_pointer(b);

    if (direct || !p || !q)
        return a == b;
    return pointed_bytes(def, p) == pointed_bytes(def, q) && !memcmp(p, q, (size_t)pointed_bytes(def, p));
}

bool chk_version_matches(chk_arena *a, const tn_kernel *k, const tn_op *op, const chk_attrs *attrs)
{
    if (op->version < k->op_version_min)
        return false;
    for (uint32_t i = 0; op->version > k->op_version_max && i < attrs->count; i++) {
        const tn_attr_def *def = &op->attrs[i];
        tn_value fallback;

        if (def->since > k->op_version_max && ((def->flags & TN_ATTR_F_RUNTIME) || !def->default_text ||
                                               !chk_attr_parse(a, def, def->default_text, &fallback) ||
                                               !chk_attr_equal(def, attrs->values[i], fallback)))
            return false;
    }
    return true;
}

bool chk_attrs_inherit(chk_arena *a, const tn_op *op, const tn_op *from_op, const chk_attrs *from,
                       const tn_emit *emit, chk_attrs *out)
{
    const uint32_t count = chk_attr_count(op);
    tn_value *values = chk_take(a, (count + 1u) * sizeof *values);
    const char **texts = chk_take(a, (count + 1u) * sizeof *texts);
    const bool inherits = (emit->flags & TN_EMIT_INHERIT) != 0;

    for (uint32_t i = 0; i < count; i++) {
        const tn_attr_def *def = &op->attrs[i];
        const int32_t at = inherits ? chk_attr_index(from_op, def->name) : -1;
        bool given = false;

        texts[i] = def->default_text;
        for (uint32_t k = 0; k < emit->attr_count; k++)
            if (!strcmp(emit->attrs[k].name, def->name)) {
                texts[i] = emit->attrs[k].text;
                given = true;
            }
        if (!given && at >= 0 && from_op->attrs[at].type == def->type) {
            values[i] = from->values[at];
            texts[i] = from->texts[at];
        } else if (!texts[i] || !chk_attr_parse(a, def, texts[i], &values[i])) {
            return false;
        }
    }
    *out = (chk_attrs){values, texts, count, inherits ? from->text : ""};
    return true;
}

const char *const *chk_attr_pairs(chk_arena *a, const chk_problem *p)
{
    const char **pairs = chk_take(a, (2 * p->attrs.count + 1) * sizeof *pairs);
    uint32_t used = 0;

    for (uint32_t i = 0; i < p->attrs.count; i++) {
        if (p->op->attrs[i].type == TN_ATTR_T_TEXT && !p->attrs.values[i])
            continue;
        pairs[used++] = p->op->attrs[i].name;
        pairs[used++] = p->attrs.texts[i];
    }
    return pairs;
}
