/*
 * Solves a shape rule for one inference. What is known of the arguments' shapes fixes the rule's symbols,
 * what is known of these fills in the shapes; rounds over all arguments go on until nothing changes. Facts
 * are only added, so the order of arguments does not matter. An argument with several forms and no condition
 * waits until the others have said what they know.
 */
#include <inttypes.h>
#include <string.h>

#include "op/attr_type.h"
#include "op/shape_rule.h"

#define ROUNDS_MAX 8 /* a chain of facts as long as a rule has arguments takes as many */

typedef struct fact { /* which dimension first said what a symbol is */
    uint32_t slot;
    int32_t axis; /* -1: none did */
} fact;

typedef struct solver {
    const tni_shape_rule *rule;
    const rule_case *args;
    tn_infer *i;
    tn_shape *const *in, *const *out; /* slots: inputs, then outputs */
    uint32_t in_count;
    uint32_t first[RULE_ARGS_MAX], copies[RULE_ARGS_MAX]; /* slots of each argument of the rule */
    int64_t value[RULE_SYMBOLS_MAX];                      /* -1: not known */
    fact from[RULE_SYMBOLS_MAX];
    rule_dims *ranges; /* by symbol */
    bool changed, trial;
} solver;

/* Where a fact is met: one dimension of one argument, or (slot UINT32_MAX) a definition of the rule. */
typedef struct place {
    uint32_t slot;
    int32_t axis;
    uint16_t text, bytes; /* the item */
} place;

static tn_shape *slot_shape(const solver *s, uint32_t slot)
{
    return slot < s->in_count ? s->in[slot] : s->out[slot - s->in_count];
}

/* ---- conditions and messages ------------------------------------------------------------------ */

static bool value_is_none(const tn_attr_def *d, tn_value v)
{
    return tni_attr_is_pointer(d->type) && !tn_value_pointer(v);
}

static bool value_is_true(const tn_attr_def *d, tn_value v)
{
    if (d->type == TN_ATTR_T_TUPLE || d->type == TN_ATTR_T_OPT_TUPLE)
        return tni_tuple_count((const tn_tuple *)tn_value_pointer(v)) > 0;
    if (d->type == TN_ATTR_T_OPT_INT || d->type == TN_ATTR_T_OPT_BOOL)
        return !value_is_none(d, v) && *(const int64_t *)tn_value_pointer(v) != 0;
    return v != 0;
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
    const tni_shape_rule *r = s->rule;
    uint8_t a = 0;

    while (slot >= s->first[a] + s->copies[a])
        a++;
    tni_str_add_bytes(text, r->text + s->args->arg[a].text, s->args->arg[a].bytes);
    if (s->args->arg[a].variadic)
        tni_str_addf(text, "%u", slot - s->first[a]);
}

static void slot_format(const solver *s, uint32_t slot, tni_str *text)
{
    slot_name(s, slot, text);
    tni_str_add(text, " ");
    tni_shape_format(slot_shape(s, slot), text);
}

static tn_status fail_text(const solver *s, tn_status st, tni_str *text)
{
    if (!s->trial)
        tn_fail(s->i->err, st, text->text ? text->text : "the shapes do not fit");
    tni_str_fini(text);
    return st;
}

/* The first symbol of an expression whose value somebody has said; RULE_NONE: there is none. */
static uint8_t symbol_told(const solver *s, uint8_t expr)
{
    const rule_expr *e = &s->rule->exprs[expr];
    uint8_t a = RULE_NONE;

    if (e->kind == EXPR_SYMBOL || e->kind == EXPR_PRODUCT)
        return s->from[e->symbol].axis >= 0 ? e->symbol : RULE_NONE;
    if (e->kind < EXPR_ADD)
        return RULE_NONE;
    a = symbol_told(s, e->a);
    return a == RULE_NONE ? symbol_told(s, e->b) : a;
}

/* "weight (8, 3, 3, 3): dimension 1 should be C/num_group = 2, C = 4 channels being dimension 1 of data (…)"
 */
static tn_status differs(const solver *s, const place *at, uint8_t expr, int64_t wanted, int64_t is)
{
    const uint8_t told = expr == RULE_NONE ? RULE_NONE : symbol_told(s, expr);
    tni_str text;

    tni_str_init(&text, 512);
    if (at->slot == UINT32_MAX)
        tni_str_addf(&text, "%" PRId64 " should be ", is);
    else {
        slot_format(s, at->slot, &text);
        tni_str_addf(&text, ": dimension %d should be ", at->axis);
    }
    tni_str_add_bytes(&text, s->rule->text + at->text, at->bytes);
    tni_str_addf(&text, " = %" PRId64, wanted);
    if (told != RULE_NONE) {
        const rule_symbol *y = &s->rule->symbols[told];

        tni_str_addf(&text, ", %s", y->name);
        if (!y->range)
            tni_str_addf(&text, " = %" PRId64 "%s%.*s", s->value[told], y->word_bytes ? " " : "",
                         y->word_bytes, s->rule->text + y->word);
        tni_str_addf(&text, " being dimension %d of ", s->from[told].axis);
        slot_format(s, s->from[told].slot, &text);
    }
    return fail_text(s, TN_E_SHAPE, &text);
}

static tn_status uneven(const solver *s, const place *at, int64_t a, int64_t b)
{
    tni_str text;

    tni_str_init(&text, 512);
    if (at->slot != UINT32_MAX) {
        slot_format(s, at->slot, &text);
        tni_str_add(&text, ": ");
    }
    tni_str_addf(&text, "%" PRId64 " is no multiple of %" PRId64 " (", a, b);
    tni_str_add_bytes(&text, s->rule->text + at->text, at->bytes);
    tni_str_add(&text, ")");
    return fail_text(s, at->slot == UINT32_MAX ? TN_E_ATTR : TN_E_SHAPE, &text);
}

static tn_status rank_fails(const solver *s, uint32_t slot, const rule_alt *alt)
{
    tni_str text;

    tni_str_init(&text, 512);
    slot_format(s, slot, &text);
    tni_str_addf(&text, " has %d dimensions, but should be ", slot_shape(s, slot)->ndim);
    tni_str_add_bytes(&text, s->rule->text + alt->text, alt->bytes);
    return fail_text(s, TN_E_SHAPE, &text);
}

static tn_status too_large(const solver *s)
{
    return tni_infer_fail(s->i, TN_E_SHAPE, "a dimension is too large");
}

/* ---- dimensions: values ----------------------------------------------------------------------- */

static int64_t attr_number(const solver *s, int16_t attr)
{
    const tn_attr_def *d = &s->rule->op->attrs[attr];
    const tn_value v = s->i->attrs[attr];

    if (value_is_none(d, v))
        return 0;
    return tni_attr_is_pointer(d->type) ? *(const int64_t *)tn_value_pointer(v) : tn_value_int(v);
}

/* Of some dimensions; -1: one is not known, or there are too many elements. */
static int64_t product(const int64_t *dim, int64_t n)
{
    int64_t p = 1;

    for (int64_t k = 0; k < n; k++)
        if (dim[k] == 0)
            return 0;
    for (int64_t k = 0; k < n; k++)
        if (dim[k] < 0 || __builtin_mul_overflow(p, dim[k], &p))
            return -1;
    return p;
}

/* The dimension S' of one copy; NULL: its place is not known. */
static int64_t *copy_dim(const solver *s, uint8_t symbol, uint32_t copy)
{
    const rule_symbol *y = &s->rule->symbols[symbol];
    const rule_item *item = &s->rule->items[y->copy_item];
    const rule_alt *alt = &s->rule->alts[s->args->arg[y->copy_arg].alt];
    tn_shape *sh = slot_shape(s, s->first[y->copy_arg] + copy);
    int64_t at = 0;

    if (sh->ndim < 0)
        return NULL;
    if (item->at >= 0) {
        at = attr_number(s, item->at);
        at = at < 0 ? at + sh->ndim : at;
    } else
        for (uint8_t k = alt->item; k < y->copy_item; k++) {
            const uint8_t range = s->rule->items[k].range;

            if (range != RULE_NONE && s->rule->ranges[range].kind != RANGE_SYMBOL)
                return NULL;
            if (range != RULE_NONE && s->ranges[s->rule->ranges[range].symbol].n < 0)
                return NULL;
            at += range == RULE_NONE ? 1 : s->ranges[s->rule->ranges[range].symbol].n;
        }
    return at >= 0 && at < sh->ndim ? &sh->dim[at] : NULL;
}

static int64_t copies_sum(const solver *s, uint8_t symbol)
{
    const rule_symbol *y = &s->rule->symbols[symbol];
    int64_t sum = 0;

    for (uint32_t k = 0; k < s->copies[y->copy_arg]; k++) {
        const int64_t *d = copy_dim(s, symbol, k);

        if (!d || *d < 0 || __builtin_add_overflow(sum, *d, &sum))
            return -1;
    }
    return sum;
}

static tn_status expr_value(const solver *s, const place *at, uint8_t expr, int64_t *out);

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
    else if (e->kind == EXPR_SUB)
        *out = a - b;
    else if (e->kind == EXPR_MUL)
        over = __builtin_mul_overflow(a, b, out);
    else if (b == 0 || a % b)
        return uneven(s, at, a, b);
    else
        *out = a / b;
    return over || *out < 0 ? too_large(s) : TN_OK;
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
        v = attr_number(s, e->attr);
        break;
    case EXPR_ATTR_PRODUCT:
        t = tni_attr_tuple(s->i->attrs, (uint32_t)e->attr);
        v = product(t ? t->item : NULL, tni_tuple_count(t));
        break;
    case EXPR_SYMBOL:
        v = s->value[e->symbol];
        break;
    case EXPR_SUM:
        v = copies_sum(s, e->symbol);
        break;
    case EXPR_PRODUCT:
        v = s->ranges[e->symbol].n < 0 ? -1 : product(s->ranges[e->symbol].dim, s->ranges[e->symbol].n);
        break;
    case EXPR_OR:
        if ((st = expr_value(s, at, e->a, &v)) || v > 0)
            break;
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

static void symbol_set(solver *s, const place *at, uint8_t symbol, int64_t value)
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
            return TN_OK;
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
    const rule_symbol *y = &s->rule->symbols[symbol];
    int64_t *open = NULL, rest = value;

    for (uint32_t k = 0; k < s->copies[y->copy_arg]; k++) {
        int64_t *d = copy_dim(s, symbol, k);

        if (!d || (*d < 0 && open))
            return TN_OK;
        if (*d < 0)
            open = d;
        else
            rest -= *d;
    }
    if (!open || s->trial)
        return TN_OK;
    if (rest < 0)
        return differs(s, at, RULE_NONE, value - rest, value);
    *open = rest;
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
        symbol_set(s, at, e->symbol, value);
        return TN_OK;
    case EXPR_SUM:
        return sum_set(s, at, e->symbol, value);
    case EXPR_PRODUCT:
        return product_set(s, at, e->symbol, value);
    case EXPR_OR:
        if (expr_value(s, at, e->a, &v) == TN_OK && v == 0)
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
static tn_status dim_meet(solver *s, const place *at, uint8_t expr, int64_t *dim)
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

/* ---- ranges ----------------------------------------------------------------------------------- */

static tn_status range_value(const solver *s, uint8_t range, rule_dims *out);

static tn_status broadcast_value(const solver *s, const rule_range *g, rule_dims *out)
{
    rule_dims a, b;
    tn_status st;

    out->n = -1;
    if ((st = range_value(s, g->a, &a)) || (st = range_value(s, g->b, &b)) || a.n < 0 || b.n < 0)
        return st;
    out->n = a.n > b.n ? a.n : b.n;
    for (int32_t k = 0; k < out->n; k++) {
        const int64_t x = k < out->n - a.n ? 1 : a.dim[k - (out->n - a.n)];
        const int64_t y = k < out->n - b.n ? 1 : b.dim[k - (out->n - b.n)];

        if (x == y || y == 1)
            out->dim[k] = x;
        else if (x == 1)
            out->dim[k] = y;
        else if (x < 0 || y < 0) /* the unknown one can only be 1 or this */
            out->dim[k] = x < 0 ? y : x;
        else
            return tni_infer_fail(s->i, TN_E_SHAPE, "dimensions %" PRId64 " and %" PRId64 " do not broadcast",
                                  x, y);
    }
    return TN_OK;
}

/* The dimensions of a range, as far as they are known. */
static tn_status range_value(const solver *s, uint8_t range, rule_dims *out)
{
    const rule_range *g = &s->rule->ranges[range];
    rule_dims in;
    const tn_tuple *t;
    tn_status st;

    switch ((range_kind)g->kind) {
    case RANGE_SYMBOL:
        *out = s->ranges[g->symbol];
        return TN_OK;
    case RANGE_ATTR:
        t = tni_attr_tuple(s->i->attrs, (uint32_t)g->attr);
        if (tni_tuple_count(t) > TN_NDIM_MAX)
            return tni_infer_fail(s->i, TN_E_ATTR, "%s has %lld items, at most %d are allowed",
                                  s->rule->op->attrs[g->attr].name, (long long)t->count, TN_NDIM_MAX);
        out->n = (int32_t)tni_tuple_count(t);
        for (int32_t k = 0; k < out->n; k++)
            out->dim[k] = t->item[k];
        return TN_OK;
    case RANGE_BROADCAST:
        return broadcast_value(s, g, out);
    case RANGE_CALL:
        break;
    }
    out->n = -1;
    if ((st = range_value(s, g->a, &in)) || in.n < 0)
        return st;
    return g->function->forward(&(rule_call){s->i, g->attrs}, &in, out);
}

static tn_status range_set(solver *s, const place *at, uint8_t range, const rule_dims *dims);

/* Of a & b: where one is not known and the other is 1, the unknown one is the result. */
static tn_status broadcast_set(solver *s, const place *at, const rule_range *g, const rule_dims *dims)
{
    const uint8_t side[] = {g->a, g->b};

    for (int k = 0; k < 2; k++) {
        rule_dims other, own;
        tn_status st;

        if ((st = range_value(s, side[1 - k], &other)) || (st = range_value(s, side[k], &own)))
            return st;
        if (other.n < 0 || (own.n < 0 && other.n == dims->n) || other.n > dims->n)
            continue;
        if (own.n < 0) { /* the shorter one cannot have given the first dimensions */
            own.n = dims->n;
            for (int32_t d = 0; d < own.n; d++)
                own.dim[d] = TN_DIM_UNKNOWN;
        }
        for (int32_t d = 0; d < own.n; d++) {
            const int32_t at_out = d + dims->n - own.n, at_other = at_out - (dims->n - other.n);

            if (at_out >= 0 && own.dim[d] < 0 && (at_other < 0 || other.dim[at_other] == 1))
                own.dim[d] = dims->dim[at_out];
        }
        if ((st = range_set(s, at, side[k], &own)))
            return st;
    }
    return TN_OK;
}

/* Says that a range has these dimensions; unknown ones say nothing. */
static tn_status range_set(solver *s, const place *at, uint8_t range, const rule_dims *dims)
{
    const rule_range *g = &s->rule->ranges[range];
    rule_dims in;
    rule_dims *own;
    tn_status st;

    if (g->kind == RANGE_BROADCAST)
        return broadcast_set(s, at, g, dims);
    if (g->kind == RANGE_CALL) {
        if (!g->function->backward)
            return TN_OK;
        in.n = -1;
        st = g->function->backward(&(rule_call){s->i, g->attrs}, dims, &in);
        return st || in.n < 0 ? st : range_set(s, at, g->a, &in);
    }
    if (g->kind == RANGE_ATTR)
        return TN_OK;
    own = &s->ranges[g->symbol];
    if (own->n < 0) {
        own->n = dims->n;
        for (int32_t k = 0; k < dims->n; k++)
            own->dim[k] = TN_DIM_UNKNOWN;
        s->changed = true;
    }
    if (own->n != dims->n)
        return tni_infer_fail(s->i, TN_E_SHAPE, "%d dimensions should be %s.., which are %d", dims->n,
                              s->rule->symbols[g->symbol].name, own->n);
    for (int32_t k = 0; k < own->n; k++) {
        if (own->dim[k] < 0 && dims->dim[k] >= 0) {
            own->dim[k] = dims->dim[k];
            s->changed = true;
            if (at->slot != UINT32_MAX && s->from[g->symbol].axis < 0)
                s->from[g->symbol] = (fact){at->slot, at->axis};
        }
    }
    return TN_OK;
}

/* "output (3, 5): dimension 1 should be 4, as (A..,B..) says" */
static tn_status range_differs(const solver *s, const place *at, int32_t k, int64_t wanted)
{
    const fact *from = NULL;
    tni_str text;

    for (uint8_t g = 0; g < s->rule->range_count && !from; g++)
        if (s->rule->ranges[g].kind == RANGE_SYMBOL && at->text < strlen(s->rule->text) &&
            strncmp(s->rule->text + at->text, s->rule->symbols[s->rule->ranges[g].symbol].name,
                    strlen(s->rule->symbols[s->rule->ranges[g].symbol].name)) == 0 &&
            s->from[s->rule->ranges[g].symbol].axis >= 0)
            from = &s->from[s->rule->ranges[g].symbol];
    tni_str_init(&text, 512);
    slot_format(s, at->slot, &text);
    tni_str_addf(&text, ": dimension %d should be %" PRId64 ", by ", at->axis + k, wanted);
    tni_str_add_bytes(&text, s->rule->text + at->text, at->bytes);
    if (from) {
        tni_str_add(&text, " of ");
        slot_format(s, from->slot, &text);
    }
    return fail_text(s, TN_E_SHAPE, &text);
}

/* Some dimensions of an argument and one range say the same. */
static tn_status range_meet(solver *s, const place *at, uint8_t range, int64_t *dim, int32_t n)
{
    rule_dims known, given = {.n = n};
    tn_status st;

    if (n)
        memcpy(given.dim, dim, (size_t)n * sizeof *dim);
    if ((st = range_set(s, at, range, &given)) || (st = range_value(s, range, &known)))
        return st;
    if (known.n < 0)
        return TN_OK;
    if (known.n != n)
        return tni_infer_fail(s->i, TN_E_SHAPE, "%d dimensions, but %.*s has %d", n, at->bytes,
                              s->rule->text + at->text, known.n);
    for (int32_t k = 0; k < n; k++) {
        if (known.dim[k] < 0 || known.dim[k] == dim[k])
            continue;
        if (dim[k] >= 0)
            return range_differs(s, at, k, known.dim[k]);
        dim[k] = known.dim[k];
        s->changed = true;
    }
    return TN_OK;
}

/* ---- one argument ----------------------------------------------------------------------------- */

/* Items in the order in which their dimensions stand. `^layout` names the order by letters: the first item is
 * N, the second C, the third all others. */
static tn_status items_order(const solver *s, const rule_alt *alt, uint8_t *order)
{
    const tn_attr_def *d = alt->layout < 0 ? NULL : &s->rule->op->attrs[alt->layout];
    const char *text = d ? d->choices : NULL;
    int64_t choice = d ? tn_value_int(s->i->attrs[alt->layout]) : 0;
    uint8_t n = 0;

    for (uint8_t k = 0; k < alt->item_count; k++)
        order[k] = (uint8_t)(alt->item + k);
    for (; text && choice > 0; choice--)
        text = strchr(text, '|') ? strchr(text, '|') + 1 : NULL;
    if (!text || alt->item_count != 3 || strncmp(text, "None", 4) == 0)
        return TN_OK;
    for (const char *c = text; *c && *c != '|' && n < 3; c++) {
        if (*c == 'N' || *c == 'C')
            order[n++] = (uint8_t)(alt->item + (*c == 'C'));
        else if (c == text || c[-1] == 'N' || c[-1] == 'C')
            order[n++] = (uint8_t)(alt->item + 2);
    }
    return TN_OK;
}

/* How many dimensions a layout has room for; -1: any. */
static int32_t layout_ndim(const solver *s, const rule_alt *alt)
{
    const tn_attr_def *d = alt->layout < 0 ? NULL : &s->rule->op->attrs[alt->layout];
    const char *text = d ? d->choices : NULL;

    for (int64_t c = d ? tn_value_int(s->i->attrs[alt->layout]) : 0; text && c > 0; c--)
        text = strchr(text, '|') ? strchr(text, '|') + 1 : NULL;
    return !text || strncmp(text, "None", 4) == 0 ? -1 : (int32_t)strcspn(text, "|");
}

/* Lengths of the items; -1: not known. */
static tn_status lengths_read(const solver *s, const rule_alt *alt, const uint8_t *order, int32_t *length)
{
    for (uint8_t k = 0; k < alt->item_count; k++) {
        const rule_item *item = &s->rule->items[order[k]];
        rule_dims dims;
        tn_status st;

        length[k] = 1;
        if (item->range == RULE_NONE)
            continue;
        if ((st = range_value(s, item->range, &dims)))
            return st;
        length[k] = dims.n;
    }
    return TN_OK;
}

/* Among items `from` to `to` (excluded), which take `room` dimensions: the one of unknown length takes what
 * the others leave. */
static bool length_fill(int32_t *length, uint8_t from, uint8_t to, int32_t room)
{
    int32_t open = -1;

    for (uint8_t k = from; k < to; k++) {
        if (length[k] < 0 && open >= 0)
            return true;
        if (length[k] < 0)
            open = k;
        else
            room -= length[k];
    }
    if (open >= 0)
        length[open] = room;
    return open < 0 ? room == 0 : room >= 0;
}

static tn_status lengths_solve(const solver *s, const rule_alt *alt, const uint8_t *order, uint32_t slot,
                               int32_t *length)
{
    const tn_shape *sh = slot_shape(s, slot);
    bool fits = true;

    for (uint8_t k = 0; k < alt->item_count; k++) {
        const rule_item *item = &s->rule->items[order[k]];
        int32_t axis = 0;

        if (item->at < 0)
            continue;
        if (tni_axis(s->i, attr_number(s, item->at), sh->ndim, &axis))
            return TN_E_SHAPE;
        fits = fits && length_fill(length, 0, k, axis) &&
               length_fill(length, (uint8_t)(k + 1), alt->item_count, sh->ndim - axis - 1);
    }
    return fits && length_fill(length, 0, alt->item_count, sh->ndim) ? TN_OK : rank_fails(s, slot, alt);
}

/* Total of the lengths; -1: one is not known. */
static int32_t lengths_total(const int32_t *length, uint8_t count)
{
    int32_t n = 0;

    for (uint8_t k = 0; k < count; k++) {
        if (length[k] < 0)
            return -1;
        n += length[k];
    }
    return n;
}

/* Where there are no 0-d arrays, (1,) stands for (). */
static bool stands_for_scalar(const solver *s, const tn_shape *sh, int32_t total)
{
    return total == 0 && sh->ndim == 1 && !(s->i->flags & TN_INFER_NP_SHAPE);
}

static tn_status shape_begin(solver *s, tn_shape *sh, int32_t total)
{
    if (total > TN_NDIM_MAX)
        return tni_infer_fail(s->i, TN_E_SHAPE, "a shape of %d dimensions, at most %d are allowed", total,
                              TN_NDIM_MAX);
    sh->ndim = total || s->i->flags & TN_INFER_NP_SHAPE ? total : 1;
    sh->reserved = 0;
    for (int32_t k = 0; k < sh->ndim; k++)
        sh->dim[k] = total ? TN_DIM_UNKNOWN : 1;
    s->changed = true;
    return TN_OK;
}

static tn_status items_meet(solver *s, const rule_alt *alt, const uint8_t *order, uint32_t slot,
                            const int32_t *length)
{
    tn_shape *sh = slot_shape(s, slot);
    int32_t axis = 0;
    tn_status st = TN_OK;

    for (uint8_t k = 0; !st && k < alt->item_count; axis += length[k++]) {
        const rule_item *item = &s->rule->items[order[k]];
        const place at = {slot, axis, item->text, item->bytes};

        if (length[k] < 0)
            return TN_OK;
        st = item->range == RULE_NONE ? dim_meet(s, &at, item->expr, &sh->dim[axis])
                                      : range_meet(s, &at, item->range, &sh->dim[axis], length[k]);
    }
    return st;
}

static tn_status form_meet(solver *s, const rule_alt *alt, uint32_t slot)
{
    tn_shape *sh = slot_shape(s, slot);
    uint8_t order[RULE_ITEMS_MAX];
    int32_t length[RULE_ITEMS_MAX], total;
    tn_status st;

    if (alt->same_as != RULE_NONE) {
        tn_shape *like = s->copies[alt->same_as] ? slot_shape(s, s->first[alt->same_as]) : NULL;
        tn_shape before, before_like;

        if (!like)
            return TN_OK;
        before = *sh;
        before_like = *like;
        if ((st = tn_shape_unify(s->i, like, sh)))
            return st;
        s->changed = s->changed || memcmp(&before, sh, sizeof before) != 0 ||
                     memcmp(&before_like, like, sizeof before) != 0;
        return TN_OK;
    }
    if ((st = items_order(s, alt, order)) || (st = lengths_read(s, alt, order, length)))
        return st;
    total = lengths_total(length, alt->item_count);
    if (layout_ndim(s, alt) >= 0 && (total >= 0 || sh->ndim >= 0) &&
        (total >= 0 ? total : sh->ndim) != layout_ndim(s, alt))
        return tni_infer_fail(s->i, TN_E_ATTR, "%s is for %d dimensions, not for %d",
                              s->rule->op->attrs[alt->layout].name, layout_ndim(s, alt),
                              total >= 0 ? total : sh->ndim);
    if (sh->ndim < 0 && total < 0)
        return TN_OK;
    if (sh->ndim < 0 && (st = shape_begin(s, sh, total)))
        return st;
    if (stands_for_scalar(s, sh, total)) {
        if (sh->dim[0] > 1 || sh->dim[0] == 0)
            return rank_fails(s, slot, alt);
        sh->dim[0] = 1;
        return TN_OK;
    }
    if ((st = lengths_solve(s, alt, order, slot, length)))
        return st;
    return items_meet(s, alt, order, slot, length);
}

/* ---- which form of an argument ---------------------------------------------------------------- */

/* Tries a form on copies of all that it changes. */
static bool form_fits(const solver *s, const rule_alt *alt, uint32_t slot)
{
    tn_shape *shape = slot_shape(s, slot), kept = *shape;
    rule_dims ranges[RULE_SYMBOLS_MAX];
    tn_err err = {0};
    tn_infer i = *s->i;
    solver trial = *s;
    bool fits;

    i.err = &err;
    if (alt->same_as != RULE_NONE) {
        tn_shape like = *slot_shape(s, s->first[alt->same_as]);

        fits = tn_shape_unify(&i, &like, shape) == TN_OK;
    } else {
        memcpy(ranges, s->ranges, sizeof ranges);
        trial.i = &i;
        trial.ranges = ranges;
        trial.trial = true;
        fits = form_meet(&trial, alt, slot) == TN_OK;
    }
    *shape = kept;
    return fits;
}

/* Several forms, and none of them chosen by an attribute: the shapes have to tell. */
static bool form_is_open(const solver *s, const rule_arg *arg)
{
    const rule_alt *alt = &s->rule->alts[arg->alt];

    for (uint8_t k = 0; k + 1 < arg->alt_count; k++) {
        if (alt[k].cond == RULE_NONE)
            return true;
        if (tni_rule_holds(s->rule, alt[k].cond, s->i->attrs))
            return false;
    }
    return false;
}

/* The first form whose condition holds, or that fits; the last one else. */
static const rule_alt *form_choose(const solver *s, const rule_arg *arg, uint32_t slot)
{
    const rule_alt *alt = &s->rule->alts[arg->alt];

    for (uint8_t k = 0; k + 1 < arg->alt_count; k++, alt++)
        if (alt->cond == RULE_NONE ? slot_shape(s, slot)->ndim < 0 || form_fits(s, alt, slot)
                                   : tni_rule_holds(s->rule, alt->cond, s->i->attrs))
            return alt;
    return alt;
}

static tn_status args_meet(solver *s, bool open)
{
    const uint32_t count = s->rule->in_count + s->rule->out_count;
    tn_status st = TN_OK;

    for (uint32_t a = 0; a < count; a++) {
        const rule_arg *arg = &s->args->arg[a];

        if (form_is_open(s, arg) != open)
            continue;
        for (uint32_t k = 0; !st && k < s->copies[a]; k++) {
            const uint32_t slot = s->first[a] + k;

            st = form_meet(s, form_choose(s, arg, slot), slot);
        }
    }
    return st;
}

static tn_status defs_meet(solver *s)
{
    tn_status st = TN_OK;

    for (uint8_t k = 0; !st && k < s->rule->def_count; k++) {
        const rule_def *d = &s->rule->defs[k];
        const place at = {UINT32_MAX, -1, d->text, d->bytes};
        rule_dims dims;

        if (d->range == RULE_NONE) {
            int64_t v = s->value[d->symbol];

            if (!(st = dim_meet(s, &at, d->expr, &v)) && s->value[d->symbol] < 0 && v >= 0)
                symbol_set(s, &at, d->symbol, v);
            continue;
        }
        if ((st = range_value(s, d->range, &dims)) || dims.n < 0)
            continue;
        s->ranges[d->symbol] = dims;
    }
    return st;
}

/* ---- the doors -------------------------------------------------------------------------------- */

static const rule_case *case_choose(const tni_shape_rule *r, const tn_value *attrs)
{
    uint8_t k = 0;

    while (k + 1 < r->case_count && !tni_rule_holds(r, r->cases[k].cond, attrs))
        k++;
    return &r->cases[k];
}

/* How many of an argument there are. `given`: copies of a variadic input. */
static uint32_t arg_copies(const tni_shape_rule *r, const rule_arg *arg, const tn_value *attrs,
                           uint32_t given)
{
    if (!tni_rule_holds(r, arg->cond, attrs))
        return 0;
    if (!arg->variadic)
        return 1;
    if (arg->count_attr < 0)
        return given;
    return tn_value_int(attrs[arg->count_attr]) > 0 ? (uint32_t)tn_value_int(attrs[arg->count_attr]) : 0;
}

bool tni_shape_rule_present(const tni_shape_rule *r, uint8_t a, const tn_value *attrs)
{
    return tni_rule_holds(r, r->cases[0].arg[a].cond, attrs);
}

tn_status tni_shape_rule_args(const tni_shape_rule *r, tn_infer *i)
{
    const rule_arg *args = r->cases[0].arg;
    uint32_t in = 0, out = 0, visible = 0, there = 0;

    for (uint8_t a = 0; a < r->in_count + r->out_count; a++) {
        const uint32_t fixed = r->in_count - 1u; /* before the variadic one, all of which are there */
        const uint32_t n = arg_copies(r, &args[a], i->attrs, i->in_count > fixed ? i->in_count - fixed : 0);

        if (a < r->in_count) {
            in += n;
            continue;
        }
        out += n;
        if (!args[a].hidden ||
            (args[a].visible_cond != RULE_NONE && tni_rule_holds(r, args[a].visible_cond, i->attrs)))
            visible = out;
    }
    if (out == 0 || visible == 0)
        return tni_infer_fail(i, TN_E_ATTR, "no output is left with these attributes");
    for (uint8_t k = 0; k < r->optional_count; k++)
        there |= (uint32_t)tni_shape_rule_present(r, r->optional[k], i->attrs) << k;
    i->in_count = in;
    i->out_count = out;
    i->visible_count = visible;
    i->in_names = r->names ? r->names + (size_t)there * (r->in_count + 1u) : NULL;
    return TN_OK;
}

static tn_status solver_begin(solver *s, uint32_t in_count, uint32_t out_count)
{
    const tni_shape_rule *r = s->rule;
    uint32_t slot = 0;

    s->args = case_choose(r, s->i->attrs);
    s->in_count = in_count;
    for (uint8_t a = 0; a < r->in_count + r->out_count; a++) {
        const uint32_t left = in_count - (slot < in_count ? slot : in_count);

        s->first[a] = slot;
        s->copies[a] = arg_copies(r, &r->cases[0].arg[a], s->i->attrs, left);
        slot += s->copies[a];
    }
    for (uint8_t k = 0; k < r->symbol_count; k++) {
        s->value[k] = TN_DIM_UNKNOWN;
        s->ranges[k].n = -1;
        s->from[k] = (fact){0, -1};
    }
    return slot == in_count + out_count
               ? TN_OK
               : tni_infer_fail(s->i, TN_E_ARG, "%u inputs and outputs, but its shape rule has %u",
                                in_count + out_count, slot);
}

/* What attributes alone say is wrong comes before what shapes say. */
static tn_status functions_check(const solver *s)
{
    tn_status st = TN_OK;

    for (uint8_t k = 0; !st && k < s->rule->range_count; k++) {
        const rule_range *g = &s->rule->ranges[k];

        if (g->kind == RANGE_CALL && g->function->check)
            st = g->function->check(&(rule_call){s->i, g->attrs});
    }
    return st;
}

tn_status tni_shape_rule_infer(const tni_shape_rule *r, tn_infer *i, tn_shape *const *in,
                               tn_shape *const *out)
{
    rule_dims ranges[RULE_SYMBOLS_MAX];
    solver s = {.rule = r, .i = i, .in = in, .out = out, .ranges = ranges, .changed = true};
    tn_status st = solver_begin(&s, i->in_count, i->out_count);

    st = st ? st : functions_check(&s);
    for (int round = 0; !st && s.changed && round < ROUNDS_MAX; round++) {
        s.changed = false;
        if (!(st = defs_meet(&s)) && !(st = args_meet(&s, false)) && !s.changed)
            st = args_meet(&s, true);
    }
    return st;
}
