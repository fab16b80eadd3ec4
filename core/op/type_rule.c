/*
 * Type rules: reads them, and infers data types by them. As with shapes, rounds over all arguments go on
 * until nothing changes; facts are only added. A type that follows only where nothing else is known (`or`) is
 * looked at when the arguments have said what they know.
 */
#include "op/op.h"
#include "op/shape_rule_parser.h"

#define BIT(dtype) (1u << (dtype))
#define FLOATS (BIT(TN_F16) | BIT(TN_BF16) | BIT(TN_F32) | BIT(TN_F64))
#define INDICES (BIT(TN_F16) | BIT(TN_F32) | BIT(TN_F64) | BIT(TN_U8) | BIT(TN_I32) | BIT(TN_I64))
#define ROUNDS_MAX (RULE_ARGS_MAX + RULE_VARS)

static const struct {
    const char *name, *lacks; /* what is said of a type that is none of these */
    uint32_t types;
} classes[] = {
    {"float", " is no floating point type, cast it first", FLOATS},
    {"integer", " is no integer type, cast it first", ~FLOATS},
    {"number", " is no number here, cast it first", ~BIT(TN_BOOL)},
    {"small", " is neither floating point nor int8, cast it first", FLOATS | BIT(TN_I8)},
    {"index", ", but indices are float16, float32, float64, uint8, int32 or int64", INDICES},
};

/* ---- reading ---------------------------------------------------------------------------------- */

static uint8_t type_read(parser *p);

/* A class that stands here, up to `end`; RULE_NONE: none does. */
static uint8_t class_read(parser *p, bool alone)
{
    const size_t n = word_length(p->p);

    for (uint8_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (strlen(classes[k].name) == n && memcmp(classes[k].name, p->p, n) == 0) {
            p->p += n;
            return k;
        }
    if (!alone)
        fail(p, "float, integer, number, small or index is missing");
    return RULE_NONE;
}

static uint8_t var_read(parser *p)
{
    return (uint8_t)(*p->p++ - 'A');
}

static rule_clause *clause_add(parser *p)
{
    tni_shape_rule *r = p->rule;
    rule_clause *c = &r->clauses[table_add(p, &r->clause_count, RULE_CLAUSES_MAX)];

    *c = (rule_clause){.cond = RULE_NONE, .type = RULE_NONE, .limit = RULE_NONE, .text = p->p};
    return c;
}

static rule_type var_type(parser *p)
{
    const uint8_t var = var_read(p);

    if (take(p, "(")) { /* limited */
        rule_clause *c = clause_add(p);

        c->vars = 1u << var;
        c->limit = class_read(p, false);
        c->bytes = (uint8_t)(p->p - c->text);
        expect(p, ")");
    }
    return (rule_type){.kind = TYPE_VAR, .a = var};
}

static rule_type attr_type(parser *p)
{
    rule_type t = {.kind = TYPE_ATTR, .a = RULE_NONE};

    t.attr = tni_rule_attr_read(p, RULE_TYPE(DTYPE), "data type");
    if (take(p, ","))
        t.a = type_read(p);
    expect(p, ")");
    return t;
}

static int16_t is_int_find(parser *p)
{
    const int16_t at = attr_find(p->rule->op, "is_int", 6);

    if (at >= 0 && p->rule->op->attrs[at].type == TN_ATTR_T_BOOL)
        return at;
    fail(p, "the attribute is_int is missing");
    return 0;
}

static rule_type call_type(parser *p, type_kind kind)
{
    rule_type t = {.kind = (uint8_t)kind};

    t.a = type_read(p);
    if (kind == TYPE_PROMOTE) {
        expect(p, ",");
        t.b = type_read(p);
        for (int k = 0; k < 2 && !p->st; k++) {
            const rule_type *of = &p->rule->types[k ? t.b : t.a];

            if (of->kind == TYPE_ARG)
                p->rule->untyped |= 1u << of->a;
        }
    }
    if (kind == TYPE_SCALAR)
        t.attr = is_int_find(p);
    expect(p, ")");
    return t;
}

/* A data type or an argument. */
static rule_type name_type(parser *p)
{
    const size_t n = word_length(p->p);
    const uint8_t arg = tni_rule_arg_find(p, n);
    char word[16];
    int32_t dtype = 0;

    snprintf(word, sizeof word, "%.*s", n < sizeof word ? (int)n : 0, p->p);
    if (arg == RULE_NONE && !tni_dtype_parse(word, &dtype))
        fail(p, "neither a type nor an argument is called so");
    p->p += p->st ? 0 : n;
    return arg == RULE_NONE ? (rule_type){.kind = TYPE_FIXED, .a = (uint8_t)dtype}
                            : (rule_type){.kind = TYPE_ARG, .a = arg};
}

static uint8_t type_read(parser *p)
{
    static const struct {
        const char *text;
        type_kind kind;
    } calls[] = {{"stat(", TYPE_STAT},       {"floatof(", TYPE_FLOATOF}, {"sumof(", TYPE_SUMOF},
                 {"promote(", TYPE_PROMOTE}, {"scalar(", TYPE_SCALAR},   {"or(", TYPE_OR}};
    const uint8_t at = table_add(p, &p->rule->type_count, RULE_TYPES_MAX);
    rule_type t = {0};
    size_t k = 0;

    if (p->st)
        return at;
    if (upper(*p->p))
        t = var_type(p);
    else if (take(p, "attr("))
        t = attr_type(p);
    else {
        while (k < sizeof calls / sizeof *calls && !take(p, calls[k].text))
            k++;
        t = k < sizeof calls / sizeof *calls ? call_type(p, calls[k].kind) : name_type(p);
    }
    p->rule->types[at] = t;
    return at;
}

static void target_read(parser *p, rule_clause *c)
{
    const size_t n = word_length(p->p);
    const uint8_t arg = tni_rule_arg_find(p, n);

    if (arg != RULE_NONE) {
        c->args |= 1u << arg;
        p->p += n;
    } else if (n == 1 && upper(*p->p))
        c->vars |= 1u << var_read(p);
    else
        fail(p, "no argument has this name");
}

static void clause_read(parser *p)
{
    rule_clause *c = clause_add(p), at = *c;

    blanks(p);
    if (take(p, "[")) {
        at.cond = tni_rule_cond_read(p);
        expect(p, "]");
        blanks(p);
    }
    do
        target_read(p, &at);
    while (take(p, ","));
    expect(p, ":");
    at.text = p->p;
    if (!p->st && (at.limit = class_read(p, true)) == RULE_NONE) {
        at.type = type_read(p);
        at.limit = take(p, ":") ? class_read(p, false) : RULE_NONE;
    }
    at.bytes = (uint8_t)(p->p - at.text < UINT8_MAX ? p->p - at.text : UINT8_MAX);
    blanks(p);
    if (!p->st)
        *c = at;
}

void tni_rule_types_read(parser *p, const char *text)
{
    p->which = "type";
    p->text = p->p = text;
    do
        clause_read(p);
    while (take(p, ";"));
    if (!p->st && *p->p)
        fail(p, "something is left over");
}

/* ---- promotion -------------------------------------------------------------------------------- */

/* bool < integers < floating point; within floating point bf16 and f16 < f32 < f64. */
static int32_t rank_of(int32_t dtype)
{
    if (dtype == TN_F64 || dtype == TN_F32)
        return dtype == TN_F64 ? 4 : 3;
    return dtype == TN_BOOL ? 0 : tni_dtype_is_float(dtype) ? 2 : 1;
}

static bool is_signed(int32_t dtype)
{
    return dtype == TN_I8 || dtype == TN_I16 || dtype == TN_I32 || dtype == TN_I64;
}

/* The least integer type that holds both; -1: there is none. */
static int32_t integer_of(int32_t a, int32_t b)
{
    static const int32_t wider[] = {[1] = TN_I16, [2] = TN_I32, [4] = TN_I64};
    const uint64_t a_bytes = tn_dtype_bytes(a), b_bytes = tn_dtype_bytes(b);

    if (is_signed(a) == is_signed(b))
        return a_bytes >= b_bytes ? a : b;
    if (!is_signed(a))
        return integer_of(b, a);
    if (a_bytes > b_bytes)
        return a;
    return b_bytes < 8 ? wider[b_bytes] : -1;
}

/* The type in which two meet. An integer and a floating point type meet in the latter, as MXNet has it. */
static tn_status promoted(tn_infer *i, int32_t a, int32_t b, int32_t *out)
{
    const int32_t ra = rank_of(a), rb = rank_of(b);

    *out = ra > rb ? a : b;
    if (a == b || ra != rb)
        return TN_OK;
    *out = ra == 1 ? integer_of(a, b) : TN_F32; /* f16 and bf16 */
    if (*out < 0)
        return tni_infer_fail(i, TN_E_DTYPE, "no type holds %s and %s, cast one of them", tni_dtype_name(a),
                              tni_dtype_name(b));
    return TN_OK;
}

/* ---- solving ---------------------------------------------------------------------------------- */

typedef struct types {
    const tni_shape_rule *rule;
    tn_infer *i;
    uint32_t first[RULE_ARGS_MAX], copies[RULE_ARGS_MAX];
    int32_t var[RULE_VARS];   /* -1: not known */
    uint32_t from[RULE_VARS]; /* the slot that said it */
    bool changed;
} types;

static int32_t *slot_of(const types *t, uint32_t slot)
{
    return slot < t->i->in_count ? &t->i->in_dtype[slot] : &t->i->out_dtype[slot - t->i->in_count];
}

static void slot_name(const types *t, uint32_t slot, char *out, size_t size)
{
    const rule_arg *arg;
    uint8_t a = 0;

    while (slot >= t->first[a] + t->copies[a])
        a++;
    arg = &t->rule->cases[0].arg[a];
    snprintf(out, size, "%.*s", arg->bytes, arg->name);
    if (arg->variadic)
        snprintf(out + arg->bytes, size - arg->bytes, "%u", slot - t->first[a]);
}

/* An argument, or what has the type of a capital, is of this type. */
static tn_status know(types *t, int32_t *known, int32_t dtype)
{
    if (dtype < 0 || *known == dtype)
        return TN_OK;
    if (*known >= 0)
        return TN_E_DTYPE;
    *known = dtype;
    t->changed = true;
    return TN_OK;
}

/* An argument and a capital. */
static tn_status var_meet(types *t, uint32_t slot, uint8_t var)
{
    int32_t *own = slot_of(t, slot);
    char name[80], other[80] = "";

    if (*own >= 0 && t->var[var] < 0)
        t->from[var] = slot;
    if (know(t, own, t->var[var]) == TN_OK)
        return know(t, &t->var[var], *own);
    slot_name(t, slot, name, sizeof name);
    if (t->from[var] != UINT32_MAX)
        slot_name(t, t->from[var], other, sizeof other);
    return tni_infer_fail(t->i, TN_E_DTYPE, "%s %s and %s %s do not go together, cast one of them", other,
                          tni_dtype_name(t->var[var]), name, tni_dtype_name(*own));
}

static tn_status type_value(types *t, uint8_t type, int32_t is, int32_t *out);

/* Operands that are not known have the type of the other one. */
static tn_status promote_value(types *t, const rule_type *of, int32_t is, int32_t *out)
{
    const uint8_t side[] = {of->a, of->b};
    int32_t value[2], met;
    tn_status st;

    *out = -1;
    if ((st = type_value(t, of->a, -1, &value[0])) || (st = type_value(t, of->b, -1, &value[1])))
        return st;
    met = value[0] >= 0 ? value[0] : value[1] >= 0 ? value[1] : is;
    for (int k = 0; k < 2; k++)
        if (value[k] < 0 && met >= 0 && t->rule->types[side[k]].kind == TYPE_ARG &&
            t->copies[t->rule->types[side[k]].a])
            (void)know(t, slot_of(t, t->first[t->rule->types[side[k]].a]), value[k] = met);
    return value[0] < 0 || value[1] < 0 ? TN_OK : promoted(t->i, value[0], value[1], out);
}

static tn_status attr_value(types *t, const rule_type *of, int32_t is, int32_t *out)
{
    *out = (int32_t)tni_attr_int(t->i->attrs, (uint32_t)of->attr);
    if (*out >= 0)
        return TN_OK;
    if (of->a != RULE_NONE)
        return type_value(t, of->a, is, out);
    return tni_infer_fail(t->i, TN_E_ATTR, "attribute %s is None, expected a data type",
                          t->rule->op->attrs[of->attr].name);
}

/* What a type says; -1: nothing yet. `is`: what it is said of has been known to be. */
static tn_status type_value(types *t, uint8_t type, int32_t is, int32_t *out)
{
    const rule_type *of = &t->rule->types[type];
    int32_t v = -1;
    tn_status st = TN_OK;

    if (of->kind == TYPE_PROMOTE)
        return promote_value(t, of, is, out);
    if (of->kind == TYPE_ATTR)
        return attr_value(t, of, is, out);
    if (of->kind == TYPE_FIXED)
        v = of->a;
    else if (of->kind == TYPE_VAR)
        v = t->var[of->a];
    else if (of->kind == TYPE_ARG)
        v = t->copies[of->a] ? *slot_of(t, t->first[of->a]) : -1;
    else if (of->kind != TYPE_OR || is < 0)
        st = type_value(t, of->a, -1, &v);
    if (v >= 0 && of->kind == TYPE_STAT)
        v = v == TN_F64 ? TN_F64 : TN_F32;
    else if (v >= 0 && of->kind == TYPE_FLOATOF)
        v = tni_dtype_is_float(v) ? v : TN_F32;
    else if (v == TN_BOOL && of->kind == TYPE_SUMOF)
        v = TN_I64;
    else if (v >= 0 && of->kind == TYPE_SCALAR && !tni_dtype_is_float(v))
        v = !tni_attr_bool(t->i->attrs, (uint32_t)of->attr) ? TN_F64 : v == TN_BOOL ? TN_I64 : v;
    *out = v;
    return st;
}

/* Statistics in f64 are those of data in f64. */
static void type_back(types *t, uint8_t type, int32_t is)
{
    const rule_type *of = &t->rule->types[type];

    if (of->kind == TYPE_STAT && is == TN_F64 && t->rule->types[of->a].kind == TYPE_VAR)
        (void)know(t, &t->var[t->rule->types[of->a].a], TN_F64);
}

/* The type of an argument; RULE_NONE: it has one of its own. */
static const rule_clause *clause_of(const types *t, uint32_t arg)
{
    const rule_clause *found = NULL;

    for (uint8_t k = 0; k < t->rule->clause_count; k++) {
        const rule_clause *c = &t->rule->clauses[k];

        if (c->type != RULE_NONE && c->args >> arg & 1u && tni_rule_holds(t->rule, c->cond, t->i->attrs))
            found = c;
    }
    return found;
}

static tn_status differs(types *t, const char *name, int32_t is, int32_t wanted, const rule_clause *c)
{
    return tni_infer_fail(t->i, TN_E_DTYPE, "%s is %s, but should be %s (%.*s)", name, tni_dtype_name(is),
                          tni_dtype_name(wanted), c->bytes, c->text);
}

static tn_status slot_meet(types *t, uint32_t slot, const rule_clause *c)
{
    const rule_type *of = &t->rule->types[c->type];
    int32_t *own = slot_of(t, slot), value;
    char name[80];
    tn_status st;

    if (of->kind == TYPE_ATTR && of->a != RULE_NONE && tni_attr_int(t->i->attrs, (uint32_t)of->attr) < 0)
        of = &t->rule->types[of->a];
    if (of->kind == TYPE_VAR)
        return var_meet(t, slot, of->a);
    if ((st = type_value(t, c->type, *own, &value)))
        return st;
    if (know(t, own, value)) {
        slot_name(t, slot, name, sizeof name);
        return differs(t, name, *own, value, c);
    }
    if (value < 0)
        type_back(t, c->type, *own);
    return TN_OK;
}

static tn_status args_meet(types *t)
{
    tn_status st = TN_OK;

    for (uint32_t a = 0; a < t->rule->in_count + (uint32_t)t->rule->out_count; a++) {
        const rule_clause *c = clause_of(t, a);

        if (!c && t->rule->untyped >> a & 1u)
            continue;
        for (uint32_t k = 0; !st && k < t->copies[a]; k++)
            st = c ? slot_meet(t, t->first[a] + k, c) : var_meet(t, t->first[a] + k, 'T' - 'A');
    }
    return st;
}

/* Clauses about capitals, once the arguments have said what they know. */
static tn_status vars_meet(types *t)
{
    tn_status st = TN_OK;

    for (uint8_t k = 0; k < t->rule->clause_count; k++) {
        const rule_clause *c = &t->rule->clauses[k];

        if (c->type == RULE_NONE || !tni_rule_holds(t->rule, c->cond, t->i->attrs))
            continue;
        for (uint8_t v = 0; v < RULE_VARS; v++) {
            const char name[] = {(char)('A' + v), '\0'};
            int32_t value = -1;

            if (!(c->vars >> v & 1u))
                continue;
            if ((st = type_value(t, c->type, t->var[v], &value)))
                return st;
            if (know(t, &t->var[v], value))
                return differs(t, name, t->var[v], value, c);
        }
    }
    return st;
}

/* Of an argument, or of what has the type of a capital. An attribute that said it is to blame. */
static tn_status limit_check(const types *t, const rule_clause *c, int32_t dtype)
{
    const char *lacks = classes[c->limit].lacks;
    const bool attr = c->type != RULE_NONE && t->rule->types[c->type].kind == TYPE_ATTR;

    if (dtype < 0 || classes[c->limit].types >> dtype & 1u)
        return TN_OK;
    return tni_infer_fail(t->i, attr ? TN_E_ATTR : TN_E_DTYPE, "%s%s%s", *lacks == ',' ? "dtype is " : "",
                          tni_dtype_name(dtype), lacks);
}

static tn_status limits_check(const types *t)
{
    tn_status st = TN_OK;

    for (uint8_t k = 0; k < t->rule->clause_count; k++) {
        const rule_clause *c = &t->rule->clauses[k];

        if (c->limit == RULE_NONE || !tni_rule_holds(t->rule, c->cond, t->i->attrs))
            continue;
        for (uint8_t v = 0; !st && v < RULE_VARS; v++)
            if (c->vars >> v & 1u)
                st = limit_check(t, c, t->var[v]);
        for (uint8_t a = 0; a < t->rule->in_count + t->rule->out_count; a++)
            for (uint32_t n = 0; !st && c->args >> a & 1u && n < t->copies[a]; n++)
                st = limit_check(t, c, *slot_of(t, t->first[a] + n));
    }
    return st;
}

tn_status tni_type_rule_infer(const tni_shape_rule *r, tn_infer *i)
{
    types t = {.rule = r, .i = i, .changed = true};
    tn_status st = tni_rule_slots(r, i, t.first, t.copies);

    for (uint8_t v = 0; v < RULE_VARS; v++) {
        t.var[v] = -1;
        t.from[v] = UINT32_MAX;
    }
    for (int round = 0; !st && t.changed && round < ROUNDS_MAX; round++) {
        t.changed = false;
        if (!(st = args_meet(&t)))
            st = vars_meet(&t);
    }
    return st ? st : limits_check(&t);
}
