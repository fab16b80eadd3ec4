/*
 * Single dimensions of a shape rule: conditions on attributes, the value of an expression, what an
 * expression's value says of its symbols, and the messages of what contradicts each other.
 */
#include <inttypes.h>
#include <string.h>

#include "op/attr_type.h"
#include "op/shape_rule_solver.h"

tn_shape *tni_rule_slot(const solver *s, uint32_t slot)
{
    return slot < s->in_count ? s->in[slot] : s->out[slot - s->in_count];
}

/* ---- conditions and messages ------------------------------------------------------------------ */

static bool value_is_none(const tn_attr_def *d, tn_value v)
{
    return d->type == TN_ATTR_T_DTYPE ? tn_value_int(v) < 0
                                      : tni_attr_is_pointer(d->type) && !tn_value_pointer(v);
}

static bool value_is_true(const tn_attr_def *d, tn_value v)
{
    if (d->type == TN_ATTR_T_TUPLE || d->type == TN_ATTR_T_OPT_TUPLE)
        return tni_tuple_count((const tn_tuple *)tn_value_pointer(v)) > 0;
    if (d->type == TN_ATTR_T_OPT_INT || d->type == TN_ATTR_T_OPT_BOOL)
        return !value_is_none(d, v) && *(const int64_t *)tn_value_pointer(v) != 0;
    return d->type == TN_ATTR_T_FLOAT ? tn_value_float(v) != 0 : v != 0;
}

bool tni_rule_holds(const tni_shape_rule *r, uint8_t cond, const tn_value *attrs)
{
    for (; cond != RULE_NONE; cond = r->conds[cond].next) {
        const rule_cond *c = &r->conds[cond];
        const tn_attr_def *d = &r->op->attrs[c->attr];
        bool holds =
            c->truth ? value_is_true(d, attrs[c->attr]) : c->is_none && value_is_none(d, attrs[c->attr]);

        for (uint8_t k = 0; k < c->count && !value_is_none(d, attrs[c->attr]); k++)
            holds = holds || tn_value_int(attrs[c->attr]) == c->value[k];
        if (holds == c->negated)
            return false;
    }
    return true;
}

static void slot_name(const solver *s, uint32_t slot, tni_str *text)
{
    uint8_t a = 0;

    while (slot >= s->first[a] + s->copies[a])
        a++;
    tni_str_add_bytes(text, s->args->arg[a].name, s->args->arg[a].bytes);
    if (s->args->arg[a].variadic)
        tni_str_addf(text, "%u", slot - s->first[a]);
}

void tni_rule_slot_format(const solver *s, uint32_t slot, tni_str *text)
{
    slot_name(s, slot, text);
    tni_str_add(text, " ");
    tni_shape_format(tni_rule_slot(s, slot), text);
}

tn_status tni_rule_fail(const solver *s, tn_status st, tni_str *text)
{
    if (!s->trial)
        tn_fail(s->i->err, st, text->text ? text->text : "the shapes do not fit");
    tni_str_fini(text);
    return st;
}

/* The first symbol of an expression whose value somebody has said; RULE_NONE: there is none. */
static uint8_t symbol_known(const solver *s, uint8_t expr)
{
    const rule_expr *e = &s->rule->exprs[expr];
    uint8_t a = RULE_NONE;

    if (e->kind == EXPR_SYMBOL || e->kind == EXPR_PRODUCT)
        return s->from[e->symbol].axis >= 0 ? e->symbol : RULE_NONE;
    if (e->kind < EXPR_ADD)
        return RULE_NONE;
    a = symbol_known(s, e->a);
    return a == RULE_NONE ? symbol_known(s, e->b) : a;
}

/* "weight (8, 3, 3, 3): dimension 1 should be C/num_group = 2,
 * C = 4 channels being dimension 1 of data (…)" */
static tn_status differs(const solver *s, const place *at, uint8_t expr, int64_t wanted, int64_t is)
{
    const uint8_t known = expr == RULE_NONE ? RULE_NONE : symbol_known(s, expr);
    tni_str text;

    tni_str_init(&text, 512);
    if (at->slot == UINT32_MAX)
        tni_str_addf(&text, "%" PRId64 " should be ", is);
    else {
        tni_rule_slot_format(s, at->slot, &text);
        tni_str_addf(&text, ": dimension %d should be ", at->axis);
    }
    tni_str_add_bytes(&text, s->rule->text + at->text, at->bytes);
    tni_str_addf(&text, " = %" PRId64, wanted);
    if (known != RULE_NONE) {
        const rule_symbol *y = &s->rule->symbols[known];

        tni_str_addf(&text, ", %s", y->name);
        if (!y->range)
            tni_str_addf(&text, " = %" PRId64 "%s%.*s", s->value[known], y->word_bytes ? " " : "",
                         y->word_bytes, s->rule->text + y->word);
        tni_str_addf(&text, " being dimension %d of ", s->from[known].axis);
        tni_rule_slot_format(s, s->from[known].slot, &text);
    }
    return tni_rule_fail(s, TN_E_SHAPE, &text);
}

static tn_status uneven(const solver *s, const place *at, int64_t a, int64_t b)
{
    tni_str text;

    tni_str_init(&text, 512);
    if (at->slot != UINT32_MAX) {
        tni_rule_slot_format(s, at->slot, &text);
        tni_str_add(&text, ": ");
    }
    tni_str_addf(&text, "%" PRId64 " is no multiple of %" PRId64 " (", a, b);
    tni_str_add_bytes(&text, s->rule->text + at->text, at->bytes);
    tni_str_add(&text, ")");
    return tni_rule_fail(s, at->slot == UINT32_MAX ? TN_E_ATTR : TN_E_SHAPE, &text);
}

tn_status tni_rule_rank_fails(const solver *s, uint32_t slot, const rule_alt *alt)
{
    tni_str text;

    tni_str_init(&text, 512);
    tni_rule_slot_format(s, slot, &text);
    tni_str_addf(&text, " has %d dimensions, but should be ", tni_rule_slot(s, slot)->ndim);
    tni_str_add_bytes(&text, s->rule->text + alt->text, alt->bytes);
    return tni_rule_fail(s, TN_E_SHAPE, &text);
}

static tn_status too_large(const solver *s)
{
    return tni_infer_fail(s->i, TN_E_SHAPE, "a dimension is too large");
}

static tn_status below_zero(const solver *s, int16_t attr, int64_t value)
{
    return tni_infer_fail(s->i, TN_E_SHAPE, "%s is %" PRId64 ", and no dimension is below 0",
                          s->rule->op->attrs[attr].name, value);
}

/* ---- dimensions: values ----------------------------------------------------------------------- */

int64_t tni_rule_number(const solver *s, int16_t attr)
{
    const tn_attr_def *d = &s->rule->op->attrs[attr];
    const tn_value v = s->i->attrs[attr];

    if (value_is_none(d, v))
        return 0;
    return tni_attr_is_pointer(d->type) ? *(const int64_t *)tn_value_pointer(v) : tn_value_int(v);
}

tn_status tni_rule_tuple(const solver *s, int16_t attr, const tn_tuple **out)
{
    *out = tni_attr_tuple(s->i->attrs, (uint32_t)attr);
    for (int64_t k = 0; k < tni_tuple_count(*out); k++)
        if ((*out)->item[k] < 0)
            return below_zero(s, attr, (*out)->item[k]);
    return TN_OK;
}

/* Of some dimensions; -1: one is not known. */
static tn_status product(const solver *s, const int64_t *dim, int64_t n, int64_t *out)
{
    bool over = false, open = false, none = false;

    *out = 1;
    for (int64_t k = 0; k < n; k++) {
        none = none || dim[k] == 0;
        open = open || dim[k] < 0;
        over = over || (dim[k] > 0 && __builtin_mul_overflow(*out, dim[k], out));
    }
    if (none || open)
        *out = none ? 0 : -1;
    return over && !none && !open ? too_large(s) : TN_OK;
}

/* Where S' stands in the case that is solved. */
static const rule_copy *copy_of(const solver *s, uint8_t symbol)
{
    return &s->rule->symbols[symbol].copy[s->args - s->rule->cases];
}

/* The dimension S' of one copy; NULL: its place is not known. */
static int64_t *copy_dim(const solver *s, uint8_t symbol, uint32_t copy)
{
    const rule_copy *c = copy_of(s, symbol);
    const rule_item *item = &s->rule->items[c->item];
    const rule_alt *alt = &s->rule->alts[s->args->arg[c->arg].alt];
    tn_shape *sh = tni_rule_slot(s, s->first[c->arg] + copy);
    int64_t at = 0;

    if (sh->ndim < 0)
        return NULL;
    if (item->at >= 0) {
        at = tni_rule_number(s, item->at);
        at = at < 0 ? at + sh->ndim : at;
    } else
        for (uint8_t k = alt->item; k < c->item; k++) {
            const uint8_t range = s->rule->items[k].range;

            if (range != RULE_NONE && s->rule->ranges[range].kind != RANGE_SYMBOL)
                return NULL;
            if (range != RULE_NONE && s->ranges[s->rule->ranges[range].symbol].n < 0)
                return NULL;
            at += range == RULE_NONE ? 1 : s->ranges[s->rule->ranges[range].symbol].n;
        }
    return at >= 0 && at < sh->ndim ? &sh->dim[at] : NULL;
}

static tn_status copies_sum(const solver *s, uint8_t symbol, int64_t *out)
{
    bool over = false, open = false;

    *out = 0;
    for (uint32_t k = 0; k < s->copies[copy_of(s, symbol)->arg]; k++) {
        const int64_t *d = copy_dim(s, symbol, k);

        if (!d || *d < 0)
            open = true;
        else
            over = over || __builtin_add_overflow(*out, *d, out);
    }
    if (open)
        *out = -1;
    return over ? too_large(s) : TN_OK;
}

static tn_status expr_value(const solver *s, const place *at, uint8_t expr, int64_t *out);

/* a - b below 0: "k is 4, but there are 3 elements (N-or(k,N) is below 0: 3 - 4)" */
static tn_status too_few(const solver *s, const place *at, const rule_expr *e, int64_t a, int64_t b)
{
    const tni_shape_rule *r = s->rule;
    const rule_expr *left = &r->exprs[e->a], *right = &r->exprs[e->b];
    const rule_symbol *y = left->kind == EXPR_SYMBOL ? &r->symbols[left->symbol] : NULL;
    tni_str text;

    tni_str_init(&text, 512);
    if (right->kind == EXPR_OR)
        right = &r->exprs[right->a];
    if (right->kind == EXPR_ATTR)
        tni_str_addf(&text,
                     "%s is %" PRId64 ", but there are %" PRId64 "%s%.*s: ", r->op->attrs[right->attr].name,
                     b, a, y && y->word_bytes ? " " : "", y ? y->word_bytes : 0, y ? r->text + y->word : "");
    tni_str_add_bytes(&text, r->text + at->text, at->bytes);
    tni_str_addf(&text, " is below 0: %" PRId64 " - %" PRId64, a, b);
    return tni_rule_fail(s, TN_E_SHAPE, &text);
}

static tn_status binary_value(const solver *s, const place *at, const rule_expr *e, int64_t *out)
{
    int64_t a = -1, b = -1;
    bool over = false;
    tn_status st = expr_value(s, at, e->a, &a);

    if (st || (st = expr_value(s, at, e->b, &b)))
        return st;
    *out = -1;
    if (a < 0 || b < 0)
        return TN_OK;
    if (e->kind == EXPR_ADD)
        over = __builtin_add_overflow(a, b, out);
    else if (e->kind == EXPR_SUB && a < b)
        return too_few(s, at, e, a, b);
    else if (e->kind == EXPR_SUB)
        *out = a - b;
    else if (e->kind == EXPR_MUL)
        over = __builtin_mul_overflow(a, b, out);
    else if (b == 0 || a % b)
        return uneven(s, at, a, b);
    else
        *out = a / b;
    return over ? too_large(s) : TN_OK;
}

/* or(a, b): what a says; 0: b counts. An attribute below 0 counts as 0 here. */
static tn_status or_value(const solver *s, const place *at, uint8_t a, int64_t *out)
{
    const rule_expr *e = &s->rule->exprs[a];

    if (e->kind != EXPR_ATTR)
        return expr_value(s, at, a, out);
    *out = tni_rule_number(s, e->attr);
    *out = *out > 0 ? *out : 0;
    return TN_OK;
}

/* The value of an expression; -1: not known yet. */
static tn_status expr_value(const solver *s, const place *at, uint8_t expr, int64_t *out)
{
    const rule_expr *e = &s->rule->exprs[expr];
    const tn_tuple *t;
    int64_t v = -1;
    tn_status st = TN_OK;

    switch ((expr_kind)e->kind) {
    case EXPR_NUMBER:
        v = e->number;
        break;
    case EXPR_ATTR:
        v = tni_rule_number(s, e->attr);
        st = v < 0 ? below_zero(s, e->attr, v) : TN_OK;
        break;
    case EXPR_ATTR_PRODUCT:
        if (!(st = tni_rule_tuple(s, e->attr, &t)))
            st = product(s, t ? t->item : NULL, tni_tuple_count(t), &v);
        break;
    case EXPR_SYMBOL:
        v = s->value[e->symbol];
        break;
    case EXPR_SUM:
        st = copies_sum(s, e->symbol, &v);
        break;
    case EXPR_PRODUCT:
        if (s->ranges[e->symbol].n >= 0)
            st = product(s, s->ranges[e->symbol].dim, s->ranges[e->symbol].n, &v);
        break;
    case EXPR_OR:
        if (!(st = or_value(s, at, e->a, &v)) && v == 0)
            st = expr_value(s, at, e->b, &v);
        break;
    case EXPR_IF:
        st = expr_value(s, at, tni_rule_holds(s->rule, e->cond, s->i->attrs) ? e->a : e->b, &v);
        break;
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_DIV:
        st = binary_value(s, at, e, &v);
        break;
    case EXPR_COPY:
    case EXPR_OPEN:
        break;
    }
    *out = v;
    return st;
}

/* ---- dimensions: the other way ---------------------------------------------------------------- */

void tni_rule_symbol_set(solver *s, const place *at, uint8_t symbol, int64_t value)
{
    s->value[symbol] = value;
    s->changed = true;
    if (at->slot != UINT32_MAX)
        s->from[symbol] = (fact){at->slot, at->axis};
}

/* The product of a range says what its one open dimension is. */
static tn_status product_set(solver *s, const place *at, uint8_t symbol, int64_t value)
{
    rule_dims *g = &s->ranges[symbol];
    int32_t open = -1;
    int64_t rest = 1;

    for (int32_t k = 0; k < g->n; k++) {
        if (g->dim[k] < 0 && open >= 0)
            return TN_OK;
        if (g->dim[k] < 0)
            open = k;
        else if (__builtin_mul_overflow(rest, g->dim[k], &rest))
            return too_large(s);
    }
    if (open < 0 || rest == 0)
        return TN_OK;
    if (value % rest)
        return uneven(s, at, value, rest);
    g->dim[open] = value / rest;
    s->changed = true;
    return TN_OK;
}

/* So does the sum over copies with the one that is not known. */
static tn_status sum_set(solver *s, const place *at, uint8_t symbol, int64_t value)
{
    int64_t *open = NULL, known = 0;

    for (uint32_t k = 0; k < s->copies[copy_of(s, symbol)->arg]; k++) {
        int64_t *d = copy_dim(s, symbol, k);

        if (!d || (*d < 0 && open))
            return TN_OK;
        if (*d < 0)
            open = d;
        else if (__builtin_add_overflow(known, *d, &known))
            return too_large(s);
    }
    if (!open || s->trial)
        return TN_OK;
    if (known > value)
        return differs(s, at, RULE_NONE, known, value);
    *open = value - known;
    s->changed = true;
    return TN_OK;
}

static tn_status expr_set(solver *s, const place *at, uint8_t expr, int64_t value);

/* One operand of a sum, difference, product or quotient follows from the other. */
static tn_status binary_set(solver *s, const place *at, const rule_expr *e, int64_t value)
{
    int64_t a = -1, b = -1, open = -1;
    tn_status st = expr_value(s, at, e->a, &a);

    if (st || (st = expr_value(s, at, e->b, &b)) || (a < 0) == (b < 0))
        return st;
    if (e->kind == EXPR_ADD)
        open = value - (a < 0 ? b : a);
    else if (e->kind == EXPR_SUB &&
             (a < 0 ? __builtin_add_overflow(value, b, &open) : (open = a - value, false)))
        return too_large(s);
    else if (e->kind == EXPR_DIV && a < 0 && __builtin_mul_overflow(value, b, &open))
        return too_large(s);
    else if (e->kind == EXPR_MUL) {
        const int64_t known = a < 0 ? b : a;

        if (known == 0)
            return TN_OK;
        if (value % known)
            return uneven(s, at, value, known);
        open = value / known;
    } else if (e->kind == EXPR_DIV && a >= 0)
        return TN_OK;
    if (open < 0)
        return differs(s, at, RULE_NONE, a < 0 ? b : a, value);
    return expr_set(s, at, a < 0 ? e->a : e->b, open);
}

/* Says that an expression, not known yet, has this value. */
static tn_status expr_set(solver *s, const place *at, uint8_t expr, int64_t value)
{
    const rule_expr *e = &s->rule->exprs[expr];
    int64_t v = -1;

    switch ((expr_kind)e->kind) {
    case EXPR_SYMBOL:
        tni_rule_symbol_set(s, at, e->symbol, value);
        return TN_OK;
    case EXPR_SUM:
        return sum_set(s, at, e->symbol, value);
    case EXPR_PRODUCT:
        return product_set(s, at, e->symbol, value);
    case EXPR_OR:
        if (or_value(s, at, e->a, &v) == TN_OK && v == 0)
            return expr_set(s, at, e->b, value);
        return TN_OK;
    case EXPR_IF:
        return expr_set(s, at, tni_rule_holds(s->rule, e->cond, s->i->attrs) ? e->a : e->b, value);
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_DIV:
        return binary_set(s, at, e, value);
    case EXPR_NUMBER:
    case EXPR_ATTR:
    case EXPR_ATTR_PRODUCT:
    case EXPR_COPY:
    case EXPR_OPEN:
        return TN_OK;
    }
    return TN_OK;
}

/* One dimension and one expression say the same. */
tn_status tni_rule_dim_meet(solver *s, const place *at, uint8_t expr, int64_t *dim)
{
    int64_t v = -1;
    tn_status st = expr_value(s, at, expr, &v);

    if (st || (v < 0 && *dim < 0))
        return st;
    if (v < 0)
        return expr_set(s, at, expr, *dim);
    if (*dim < 0) {
        *dim = v;
        s->changed = true;
        return TN_OK;
    }
    return *dim == v ? TN_OK : differs(s, at, expr, v, *dim);
}
