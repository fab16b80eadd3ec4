/*
 * Attribute values: text in, text out, shared and immutable in between. A tni_attrs is one block of memory:
 * the values in the order of the definition, behind them what pointers among the values point to. Two passes
 * make it: a builder collects values and a payload of words, pointers being word offsets; sealing copies both
 * and turns offsets into addresses. A reader of text knows its end from the NUL and has a limit on items.
 */
#include <string.h>

#include "op/attr_type.h"
#include "op/op.h"

#define PAYLOAD_MAX 131072 /* words behind the values of one node: 1 MiB */
#define TEXT_SHOWN 80      /* bytes of a wrong text that a message repeats */
#define SLOT_WORDS 9       /* room of a run-time tuple at least: 8 items */

typedef struct attr_builder {
    const tni_opdef *def;
    tn_value values[TNI_ATTRS_MAX]; /* pointers: 1 + index of the first payload word, None 0 */
    uint64_t given[2];
    tni_vec payload; /* int64_t words */
} attr_builder;

static bool bit_get(const uint64_t *mask, uint32_t index)
{
    return mask[index / 64] >> (index % 64) & 1u;
}

static void bit_set(uint64_t *mask, uint32_t index)
{
    mask[index / 64] |= (uint64_t)1 << (index % 64);
}

bool tni_attr_is_pointer(uint32_t type)
{
    return type == TN_ATTR_T_TEXT || type == TN_ATTR_T_TUPLE || type >= TN_ATTR_T_OPT_INT;
}

/* Words that a pointer value of `type` covers, given its address. */
static size_t payload_words(uint32_t type, const void *p)
{
    switch (type) {
    case TN_ATTR_T_TEXT:
        return (strlen(p) + 8) / 8;
    case TN_ATTR_T_TUPLE:
    case TN_ATTR_T_OPT_TUPLE:
    case TN_ATTR_T_FLOATS:
        return 1 +
               (size_t)((const tn_tuple *)p)->count; /* tn_floats begins alike and its items are as wide */
    default:
        return 1;
    }
}

static size_t payload_bytes(uint32_t type, const void *p)
{
    return type == TN_ATTR_T_TEXT ? strlen(p) + 1 : 8 * payload_words(type, p);
}

static tn_status payload_add(attr_builder *b, uint32_t type, const void *p, tn_value *out)
{
    size_t at = b->payload.count;
    void *to;
    tn_status st = tni_vec_extend(&b->payload, payload_words(type, p), &to);

    if (st)
        return st;
    memcpy(to, p, payload_bytes(type, p));
    *out = (tn_value)at + 1;
    return TN_OK;
}

/* Takes over a finished value. */
static tn_status builder_copy(attr_builder *b, uint32_t index, uint32_t type, tn_value value)
{
    if (tni_attr_is_pointer(type) && value)
        return payload_add(b, type, tn_value_pointer(value), &b->values[index]);
    b->values[index] = value;
    return TN_OK;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static bool none(const char *text)
{
    return strcmp(text, "None") == 0;
}

static bool bool_parse(const char *text, int64_t *out)
{
    static const char *const words[2][3] = {{"False", "false", "0"}, {"True", "true", "1"}};

    for (int64_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 3; k++)
            if (strcmp(text, words[i][k]) == 0) {
                *out = i;
                return true;
            }
    return false;
}

int64_t tni_choice_index(const char *choices, const char *text, size_t length)
{
    for (int64_t i = 0; choices; i++) {
        const size_t n = strcspn(choices, "|");

        if (n == length && memcmp(choices, text, n) == 0)
            return i;
        choices = choices[n] ? choices + n + 1 : NULL;
    }
    return -1;
}

static bool in_range(const tn_attr_def *d, double value)
{
    return d->min > d->max || (value >= d->min && value <= d->max);
}

static const char *space_skip(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
        p++;
    return p;
}

/* One item of a tuple, ended by a comma, a bracket, a space or the end of the text. */
static bool item_parse(const tn_attr_def *d, const char *from, size_t bytes, int64_t *out)
{
    char text[64];
    double number;

    if (bytes == 0 || bytes >= sizeof text)
        return false;
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    if (d->type == TN_ATTR_T_OPT_TUPLE && none(text)) {
        *out = TN_NONE_ITEM;
        return true;
    }
    if (d->type == TN_ATTR_T_FLOATS) {
        tn_value bits;

        if (!tni_parse_f64(text, &number) || !in_range(d, number))
            return false;
        bits = tn_value_of_float(number);
        *out = (int64_t)bits;
        return true;
    }
    if (text[bytes - 1] == 'L') /* long integers of Python 2 */
        text[bytes - 1] = '\0';
    return tni_parse_i64(text, out) && *out != TN_NONE_ITEM && in_range(d, (double)*out);
}

/* The bracket that ends what `p` opens, or NUL. */
static char closing(const char *p)
{
    return *p == '(' ? ')' : *p == '[' ? ']' : '\0';
}

/* "(1, 2)", "[1,2]", "(1,)", "()", "1"; of pairs "((1, 2), (3, 4))", too. Counts the items, and stores them
 * where `items` is not NULL. */
static bool tuple_scan(const tn_attr_def *d, const char *p, int64_t *count, int64_t *items)
{
    const int levels = d->flags & TN_ATTR_F_PAIRS ? 2 : 1;
    char close[2] = {'\0'};
    int depth = 0;

    *count = 0;
    for (;;) {
        size_t bytes;
        int64_t item;

        p = space_skip(p);
        if (depth && *p == close[depth - 1]) {
            depth--;
            p++;
        } else if (closing(p) && depth < levels && (depth || !*count)) {
            close[depth++] = closing(p++);
            continue;
        } else {
            bytes = strcspn(p, " \t\r\n,()[]");
            if (*count == TNI_ATTR_ITEMS_MAX || !item_parse(d, p, bytes, &item))
                return false;
            if (items)
                items[*count] = item;
            ++*count;
            p += bytes;
        }
        p = space_skip(p);
        if (depth == 0)
            return *p == '\0';
        if (*p == ',')
            p++;
        else if (*p != close[depth - 1])
            return false;
    }
}

static tn_status tuple_parse(attr_builder *b, const tn_attr_def *d, const char *text, tn_value *out,
                             bool *good)
{
    int64_t count, *words;
    void *to;
    size_t at = b->payload.count;
    tn_status st;

    if (none(text)) {
        *out = 0;
        return TN_OK;
    }
    if (!tuple_scan(d, text, &count, NULL)) {
        *good = false;
        return TN_OK;
    }
    if ((st = tni_vec_extend(&b->payload, 1 + (size_t)count, &to)))
        return st;
    words = to;
    words[0] = count;
    *good = tuple_scan(d, text, &count, words + 1);
    *out = (tn_value)at + 1;
    return TN_OK;
}

/* Numbers that may be None, and those that may not. */
static tn_status number_parse(attr_builder *b, const tn_attr_def *d, const char *text, tn_value *out,
                              bool *good)
{
    bool optional = d->type >= TN_ATTR_T_OPT_INT;
    int64_t integer = 0;
    double number = 0;

    if (optional && none(text)) {
        *out = 0;
        return TN_OK;
    }
    switch (d->type) {
    case TN_ATTR_T_INT:
    case TN_ATTR_T_OPT_INT:
        *good = tni_parse_i64(text, &integer) && in_range(d, (double)integer);
        break;
    case TN_ATTR_T_BOOL:
    case TN_ATTR_T_OPT_BOOL:
        *good = bool_parse(text, &integer);
        break;
    default:
        *good = tni_parse_f64(text, &number) && in_range(d, number);
        integer = (int64_t)tn_value_of_float(number);
        break;
    }
    if (*good && optional)
        return payload_add(b, d->type, &integer, out);
    *out = (tn_value)integer;
    return TN_OK;
}

static tn_status value_parse(attr_builder *b, const tn_attr_def *d, const char *text, tn_value *out,
                             bool *good)
{
    int64_t integer = 0;
    int32_t dtype = TN_DTYPE_UNKNOWN;

    *good = true;
    switch (d->type) {
    case TN_ATTR_T_CHOICE:
        integer = tni_choice_index(d->choices, text, strlen(text));
        *good = integer >= 0;
        *out = (tn_value)integer;
        return TN_OK;
    case TN_ATTR_T_DTYPE:
        *good = none(text) || tni_dtype_parse(text, &dtype);
        *out = (tn_value)(int64_t)(*good ? dtype : -1);
        return TN_OK;
    case TN_ATTR_T_TEXT:
        *out = 0;
        return none(text) ? TN_OK : payload_add(b, d->type, text, out);
    case TN_ATTR_T_TUPLE:
    case TN_ATTR_T_OPT_TUPLE:
    case TN_ATTR_T_FLOATS:
        return tuple_parse(b, d, text, out, good);
    default:
        return number_parse(b, d, text, out, good);
    }
}

static const char *expected(uint32_t type)
{
    static const char *const words[] = {
        [TN_ATTR_T_INT] = "an integer",
        [TN_ATTR_T_FLOAT] = "a number",
        [TN_ATTR_T_BOOL] = "True or False",
        [TN_ATTR_T_CHOICE] = "one of",
        [TN_ATTR_T_TEXT] = "text",
        [TN_ATTR_T_TUPLE] = "a tuple of integers",
        [TN_ATTR_T_DTYPE] = "a data type such as float32",
        [TN_ATTR_T_OPT_INT] = "an integer or None",
        [TN_ATTR_T_OPT_FLOAT] = "a number or None",
        [TN_ATTR_T_OPT_BOOL] = "True, False or None",
        [TN_ATTR_T_FLOATS] = "a tuple of numbers",
        [TN_ATTR_T_OPT_TUPLE] = "a tuple of integers or None",
    };

    return words[type];
}

static tn_status value_error(const char *op, const tn_attr_def *d, const char *text)
{
    if (d->type == TN_ATTR_T_CHOICE)
        return tni_error(TN_E_ATTR, "%s: attribute %s is \"%.*s\", expected one of %s", op, d->name,
                         TEXT_SHOWN, text, d->choices);
    if (d->min <= d->max)
        return tni_error(TN_E_ATTR, "%s: attribute %s is \"%.*s\", expected %s from %g to %g", op, d->name,
                         TEXT_SHOWN, text, expected(d->type), d->min, d->max);
    return tni_error(TN_E_ATTR, "%s: attribute %s is \"%.*s\", expected %s", op, d->name, TEXT_SHOWN, text,
                     expected(d->type));
}

static tn_status builder_read(attr_builder *b, uint32_t index, const char *text)
{
    const tn_attr_def *d = &b->def->op->attrs[index];
    bool good;
    tn_status st = value_parse(b, d, text, &b->values[index], &good);

    if (st)
        return st;
    return good ? TN_OK : value_error(b->def->op->name, d, text);
}

/* ---- building and sealing --------------------------------------------------------------------- */

static void builder_init(attr_builder *b, const tni_opdef *def)
{
    memset(b->given, 0, sizeof b->given);
    b->def = def;
    tni_vec_init(&b->payload, sizeof(int64_t), PAYLOAD_MAX);
}

static uint64_t value_hash(const tn_attr_def *d, tn_value value, uint64_t hash)
{
    const void *p = tn_value_pointer(value);

    if (!tni_attr_is_pointer(d->type) || !value)
        return tni_hash_bytes(hash, &value, sizeof value);
    return tni_hash_bytes(hash, p, payload_bytes(d->type, p));
}

static bool value_equal(const tn_attr_def *d, tn_value a, tn_value b)
{
    const void *p = tn_value_pointer(a), *q = tn_value_pointer(b);

    if (a == b || !tni_attr_is_pointer(d->type) || !a || !b)
        return a == b;
    return payload_bytes(d->type, p) == payload_bytes(d->type, q) &&
           memcmp(p, q, payload_bytes(d->type, p)) == 0;
}

/* Run-time values that are pointed to lie in slots of their own: a word that says how many words a slot has,
 * then these. So later values of the same site find room. */
static bool has_slot(const tn_attr_def *d)
{
    return d->flags & TN_ATTR_F_RUNTIME && tni_attr_is_pointer(d->type);
}

static size_t slot_words(const tn_attr_def *d, const void *p)
{
    const size_t least = tni_attr_is_tuple(d->type) ? SLOT_WORDS : 1;
    const size_t words = p ? payload_words(d->type, p) : 0;

    return words > least ? words : least;
}

static void slots_fill(tni_attrs *a, tn_value *values)
{
    int64_t *slot = a->slots;

    for (size_t i = 0; i < a->def->attr_count; i++) {
        const tn_attr_def *d = &a->def->op->attrs[i];
        const void *p = tn_value_pointer(values[i]);

        if (!has_slot(d))
            continue;
        slot[0] = (int64_t)slot_words(d, p);
        if (p) {
            memcpy(slot + 1, p, payload_bytes(d->type, p));
            values[i] = (tn_value)(uintptr_t)(slot + 1);
        }
        slot += 1 + slot[0];
    }
}

static const void *builder_pointer(const attr_builder *b, size_t i)
{
    return b->values[i] ? (const int64_t *)b->payload.data + (b->values[i] - 1) : NULL;
}

static tn_status builder_seal(attr_builder *b, tni_attrs **out)
{
    const tn_attr_def *defs = b->def->op->attrs;
    size_t count = b->def->attr_count, words = b->payload.count, slots = 0;
    tn_value *values;
    int64_t *payload;
    tni_attrs *a;

    for (size_t i = 0; i < count; i++)
        slots += has_slot(&defs[i]) ? 1 + slot_words(&defs[i], builder_pointer(b, i)) : 0;
    if (!(a = tni_alloc(sizeof *a + (count + words + slots) * sizeof(int64_t))))
        return TN_E_NOMEM;
    values = (tn_value *)(void *)(a + 1);
    payload = (int64_t *)(void *)(values + count);
    if (words)
        memcpy(payload, b->payload.data, words * sizeof(int64_t));
    for (size_t i = 0; i < count; i++) {
        values[i] = b->values[i];
        if (tni_attr_is_pointer(defs[i].type) && values[i])
            values[i] = (tn_value)(uintptr_t)(payload + (values[i] - 1));
    }
    tni_ref_init(&a->refs);
    a->def = b->def;
    a->values = values;
    a->slots = slots ? payload + words : NULL;
    slots_fill(a, values);
    a->given[0] = b->given[0];
    a->given[1] = b->given[1];
    a->hash = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!(defs[i].flags & TN_ATTR_F_RUNTIME))
            a->hash = value_hash(&defs[i], values[i], a->hash);
    *out = a;
    return TN_OK;
}

/* Gives every attribute that is not there yet its default; a required one is missing. */
static tn_status builder_complete(attr_builder *b, const uint64_t *have)
{
    const tn_attr_def *defs = b->def->op->attrs;
    tn_status st;

    for (uint32_t i = 0; i < b->def->attr_count; i++) {
        if (bit_get(have, i))
            continue;
        if (!defs[i].default_text && !(defs[i].flags & TN_ATTR_F_COUNT))
            return tni_error(TN_E_ATTR, "%s: attribute %s is missing: %s", b->def->op->name, defs[i].name,
                             defs[i].doc ? defs[i].doc : expected(defs[i].type));
        if ((st = builder_copy(b, i, defs[i].type, b->def->defaults[i])))
            return st;
    }
    return TN_OK;
}

static bool hidden(const char *name)
{
    size_t length = strlen(name);

    return length >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + length - 2, "__", 2) == 0;
}

static tn_status unknown_error(const tni_opdef *def, const char *name)
{
    const char *names[TNI_ATTRS_MAX + 1], *similar[3];
    size_t count = 0;

    for (uint32_t i = 0; i < def->attr_count; i++)
        names[count++] = def->op->attrs[i].name;
    names[count] = NULL;
    if (count == 0)
        return tni_error(TN_E_ATTR, "%s has no attribute %.*s, it has none at all", def->op->name, TEXT_SHOWN,
                         name);
    if (tni_suggest(name, names, similar) > 0)
        return tni_error(TN_E_ATTR, "%s has no attribute %.*s, did you mean %s?", def->op->name, TEXT_SHOWN,
                         name, similar[0]);
    return tni_error(TN_E_ATTR, "%s has no attribute %.*s", def->op->name, TEXT_SHOWN, name);
}

static tn_status builder_read_all(attr_builder *b, size_t count, const char *const *names,
                                  const char *const *texts, uint64_t *have)
{
    uint64_t seen[2] = {0, 0};

    for (size_t i = 0; i < count; i++) {
        int32_t index;
        tn_status st;

        if (!names[i] || !texts[i])
            return tni_error(TN_E_ARG, "%s: attribute %zu has no name or no text", b->def->op->name, i);
        if (hidden(names[i]))
            continue;
        index = tni_attr_index(b->def, names[i]);
        if (index < 0)
            return unknown_error(b->def, names[i]);
        if (bit_get(seen, (uint32_t)index))
            return tni_error(TN_E_ATTR, "%s: attribute %s is given twice", b->def->op->name, names[i]);
        if ((st = builder_read(b, (uint32_t)index, texts[i])))
            return st;
        bit_set(seen, (uint32_t)index);
        bit_set(have, (uint32_t)index);
        bit_set(b->given, (uint32_t)index);
    }
    return TN_OK;
}

tn_status tni_attrs_parse(const tni_opdef *def, size_t count, const char *const *names,
                          const char *const *texts, tni_attrs **out)
{
    attr_builder b;
    uint64_t have[2] = {0, 0};
    tn_status st;

    builder_init(&b, def);
    if (!(st = builder_read_all(&b, count, names, texts, have)) && !(st = builder_complete(&b, have)))
        st = builder_seal(&b, out);
    tni_vec_fini(&b.payload);
    return st;
}

tn_status tni_attrs_defaults(const tni_opdef *def, tni_attrs **out)
{
    attr_builder b;
    tn_status st = TN_OK;

    builder_init(&b, def);
    for (uint32_t i = 0; !st && i < def->attr_count; i++) {
        const tn_attr_def *d = &def->op->attrs[i];

        b.values[i] = d->type == TN_ATTR_T_DTYPE ? (tn_value)-1 : 0;
        if (d->default_text)
            st = builder_read(&b, i, d->default_text);
    }
    if (!st)
        st = builder_seal(&b, out);
    tni_vec_fini(&b.payload);
    return st;
}

tn_status tni_attrs_with(const tni_attrs *a, uint32_t index, tn_value value, tni_attrs **out)
{
    attr_builder b;
    tn_status st = TN_OK;

    if (index >= a->def->attr_count)
        return tni_error(TN_E_ARG, "%s has no attribute number %u", a->def->op->name, index);
    builder_init(&b, a->def);
    for (uint32_t i = 0; !st && i < a->def->attr_count; i++)
        st = builder_copy(&b, i, a->def->op->attrs[i].type, i == index ? value : a->values[i]);
    if (!st) {
        b.given[0] = a->given[0];
        b.given[1] = a->given[1];
        bit_set(b.given, index);
        st = builder_seal(&b, out);
    }
    tni_vec_fini(&b.payload);
    return st;
}

/* Have the slots of `spare` room for the values? */
static bool slots_suffice(const tni_attrs *spare, const tni_attrs *a, uint32_t index, tn_value value)
{
    const int64_t *slot = spare->slots;

    for (uint32_t i = 0; slot && i < a->def->attr_count; i++) {
        const tn_attr_def *d = &a->def->op->attrs[i];
        const void *p = tn_value_pointer(i == index ? value : a->values[i]);

        if (!has_slot(d))
            continue;
        if (p && payload_words(d->type, p) > (size_t)slot[0])
            return false;
        slot += 1 + slot[0];
    }
    return true;
}

bool tni_attrs_become(tni_attrs *spare, const tni_attrs *a, uint32_t index, tn_value value)
{
    const tni_opdef *def = a->def;
    tn_value *values = (tn_value *)(uintptr_t)spare->values; /* in its own block */
    int64_t *slot = spare->slots;

    if (tni_ref_count(&spare->refs) != 1 || !tni_attrs_equal_structural(spare, a) ||
        !slots_suffice(spare, a, index, value))
        return false;
    for (uint32_t i = 0; i < def->attr_count; i++) {
        const tn_attr_def *d = &def->op->attrs[i];
        const tn_value v = i == index ? value : a->values[i];

        if (!(d->flags & TN_ATTR_F_RUNTIME))
            continue;
        values[i] = v;
        if (!has_slot(d))
            continue;
        if (v) {
            memcpy(slot + 1, tn_value_pointer(v), payload_bytes(d->type, tn_value_pointer(v)));
            values[i] = (tn_value)(uintptr_t)(slot + 1);
        }
        slot += 1 + slot[0];
    }
    spare->given[0] = a->given[0];
    spare->given[1] = a->given[1];
    bit_set(spare->given, index);
    return true;
}

/* Choices go by name: two operators may count them differently. False: the target does not know this one. */
static bool choice_convert(const tn_attr_def *to, const tn_attr_def *from, tn_value *value)
{
    const char *p = from->choices;
    int64_t index;

    if (strcmp(to->choices, p) == 0)
        return true;
    for (uint64_t i = 0; p && i < *value; i++)
        p = (p = strchr(p, '|')) ? p + 1 : NULL;
    if (!p || (index = tni_choice_index(to->choices, p, strcspn(p, "|"))) < 0)
        return false;
    *value = (tn_value)index;
    return true;
}

tn_status tni_attrs_inherit(const tni_opdef *def, const tni_attrs *from, size_t count,
                            const tn_attr_text *texts, tni_attrs **out)
{
    attr_builder b;
    uint64_t have[2] = {0, 0}, texted[2] = {0, 0};
    tn_status st = TN_OK;

    builder_init(&b, def);
    for (size_t i = 0; !st && i < count; i++) {
        st = builder_read_all(&b, 1, &texts[i].name, &texts[i].text, have);
        texted[0] = have[0];
        texted[1] = have[1];
    }
    for (uint32_t i = 0; !st && i < def->attr_count; i++) {
        const tn_attr_def *d = &def->op->attrs[i];
        int32_t index = from && !bit_get(texted, i) ? tni_attr_index(from->def, d->name) : -1;
        const tn_attr_def *source;
        tn_value value;

        if (index < 0 || (source = &from->def->op->attrs[index])->type != d->type)
            continue;
        value = from->values[index];
        if (d->type == TN_ATTR_T_CHOICE && !choice_convert(d, source, &value))
            continue;
        st = builder_copy(&b, i, d->type, value);
        bit_set(have, i);
        if (bit_get(from->given, (uint32_t)index) || !value_equal(d, value, def->defaults[i]))
            bit_set(b.given, i);
    }
    if (!st && !(st = builder_complete(&b, have)))
        st = builder_seal(&b, out);
    tni_vec_fini(&b.payload);
    return st;
}

tni_attrs *tni_attrs_retain(const tni_attrs *a)
{
    tni_attrs *shared = (tni_attrs *)(uintptr_t)a; /* only the counter is written */

    tni_ref_retain(&shared->refs);
    return shared;
}

void tni_attrs_release(tni_attrs *a)
{
    if (a && tni_ref_release(&a->refs))
        tni_free(a);
}

bool tni_attrs_equal_structural(const tni_attrs *a, const tni_attrs *b)
{
    if (a == b)
        return true;
    if (a->def != b->def || a->hash != b->hash)
        return false;
    for (uint32_t i = 0; i < a->def->attr_count; i++) {
        const tn_attr_def *d = &a->def->op->attrs[i];

        if (!(d->flags & TN_ATTR_F_RUNTIME) && !value_equal(d, a->values[i], b->values[i]))
            return false;
    }
    return true;
}

bool tni_attrs_equal(const tni_attrs *a, const tni_attrs *b)
{
    if (a == b)
        return true;
    for (uint32_t i = 0; a->def == b->def && i < a->def->attr_count; i++)
        if (!value_equal(&a->def->op->attrs[i], a->values[i], b->values[i]))
            return false;
    return a->def == b->def;
}

uint64_t tni_attrs_hash(const tni_attrs *a)
{
    uint64_t hash = a->hash;

    for (uint32_t i = 0; i < a->def->attr_count; i++)
        if (a->def->op->attrs[i].flags & TN_ATTR_F_RUNTIME)
            hash = value_hash(&a->def->op->attrs[i], a->values[i], hash);
    return hash;
}

const tn_attr_def *tni_attrs_newer(const tni_attrs *a, uint32_t version)
{
    for (uint32_t i = 0; i < a->def->attr_count; i++) {
        const tn_attr_def *d = &a->def->op->attrs[i];

        if (d->since > version &&
            ((d->flags & TN_ATTR_F_RUNTIME) || !value_equal(d, a->values[i], a->def->defaults[i])))
            return d;
    }
    return NULL;
}

int32_t tni_attr_index(const tni_opdef *def, const char *name)
{
    for (uint32_t i = 0; i < def->attr_count; i++)
        if (strcmp(def->op->attrs[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}
