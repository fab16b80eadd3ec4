/*
 * Reads a shape rule. One function per line of the grammar (shape_rule.h).
 */
#include "op/attr_type.h"
#include "op/expr.h"
#include "op/shape_rule_parser.h"

#define DEPTH_MAX 16

static bool deeper(parser *p)
{
    if (p->depth++ >= DEPTH_MAX)
        fail(p, "too many brackets");
    return !p->st;
}

/* ---- names ------------------------------------------------------------------------------------ */

static size_t symbol_length(const char *text)
{
    size_t n = 0;

    while (upper(text[n]) || (n > 0 && digit(text[n])))
        n++;
    return n;
}

/* Whether an attribute may stand where one of these types is read. A run-time number that a shape depends on
 * says so: then shapes are inferred at every call. */
static bool attr_is(const parser *p, int16_t attr, uint32_t types)
{
    const tn_attr_def *d = &p->rule->op->attrs[attr];

    return types >> d->type & 1u && (!(d->flags & TN_ATTR_F_RUNTIME) || d->flags & TN_ATTR_F_SHAPE);
}

/* An attribute, which lower-case letters begin. `needed`: its type, in words. */
int16_t tni_rule_attr_read(parser *p, uint32_t types, const char *needed)
{
    const size_t n = word_length(p->p);
    const int16_t attr = attr_find(p->rule->op, p->p, n);
    char what[80];

    if (n == 0 || attr < 0)
        fail(p, "no attribute has this name");
    else if (!attr_is(p, attr, types)) {
        snprintf(what, sizeof what, "the attribute is no structural %s", needed);
        fail(p, what);
    } else
        p->p += n;
    return attr < 0 ? 0 : attr;
}

static int16_t integer_read(parser *p)
{
    return tni_rule_attr_read(p, RULE_TYPE(INT) | RULE_TYPE(OPT_INT), "integer");
}

static uint8_t symbol_read(parser *p, bool range)
{
    tni_shape_rule *r = p->rule;
    const size_t n = symbol_length(p->p);
    uint8_t s = 0;

    if (n == 0 || n > RULE_NAME_MAX) {
        fail(p, "a symbol of 1 to 4 capitals is missing");
        return 0;
    }
    while (s < r->symbol_count && (r->symbols[s].range != range || strlen(r->symbols[s].name) != n ||
                                   memcmp(r->symbols[s].name, p->p, n) != 0))
        s++;
    if (s == r->symbol_count) {
        s = table_add(p, &r->symbol_count, RULE_SYMBOLS_MAX);
        r->symbols[s] = (rule_symbol){.range = range};
        memset(r->symbols[s].copy, RULE_NONE, sizeof r->symbols[s].copy);
        memcpy(r->symbols[s].name, p->p, n);
    }
    p->p += n;
    return s;
}

/* ---- conditions ------------------------------------------------------------------------------- */

/* One value behind "attr=". */
static void value_read(parser *p, rule_cond *c)
{
    const tn_attr_def *d = &p->rule->op->attrs[c->attr];
    const size_t n = word_length(p->p);
    int64_t value = 0;

    if (n == 4 && memcmp(p->p, "None", 4) == 0 && !c->is_none &&
        (tni_attr_is_pointer(d->type) || d->type == TN_ATTR_T_DTYPE))
        c->is_none = true;
    else if (c->count == RULE_CHOICES_MAX)
        fail(p, "too many values");
    else if (d->type == TN_ATTR_T_CHOICE && (value = tni_choice_index(d->choices, p->p, n)) >= 0)
        c->value[c->count++] = value;
    else if (d->type == TN_ATTR_T_INT && n == 1 && digit(*p->p) &&
             (d->min > d->max || (*p->p - '0' >= d->min && *p->p - '0' <= d->max)))
        c->value[c->count++] = *p->p - '0';
    else
        fail(p, "the attribute has no such value");
    p->p += n;
}

/* Whether "neither 0 nor None" means something: a choice may begin with None. */
static bool has_truth(const tn_attr_def *d)
{
    const uint32_t types = RULE_TYPE(INT) | RULE_TYPE(BOOL) | RULE_TYPE(OPT_INT) | RULE_TYPE(OPT_BOOL) |
                           RULE_TYPE(TUPLE) | RULE_TYPE(OPT_TUPLE) | RULE_TYPE(FLOAT);

    return types >> d->type & 1u ||
           (d->type == TN_ATTR_T_CHOICE && tni_choice_index(d->choices, "None", 4) == 0);
}

uint8_t tni_rule_cond_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    const uint8_t at = table_add(p, &r->cond_count, RULE_CONDS_MAX);
    rule_cond *c = &r->conds[at];

    *c = (rule_cond){.next = RULE_NONE};
    c->negated = take(p, "!");
    c->attr = tni_rule_attr_read(p, ~0u, "one");
    if (p->st)
        return at;
    if (!take(p, "=")) {
        c->truth = true;
        if (!has_truth(&r->op->attrs[c->attr]))
            fail(p, "the attribute needs a value");
    } else {
        do
            value_read(p, c);
        while (take(p, "+"));
    }
    if (take(p, "&"))
        c->next = tni_rule_cond_read(p);
    return at;
}

/* ---- dimensions ------------------------------------------------------------------------------- */

static uint8_t dim_read(parser *p);

static uint8_t expr_add(parser *p, rule_expr e)
{
    const uint8_t at = table_add(p, &p->rule->expr_count, RULE_EXPRS_MAX);

    p->rule->exprs[at] = e;
    return at;
}

static uint8_t number_read(parser *p)
{
    int64_t n = 0;

    for (; digit(*p->p) && n < 1000000000; p->p++)
        n = n * 10 + (*p->p - '0');
    return expr_add(p, (rule_expr){.kind = EXPR_NUMBER, .number = n});
}

/* "S'" and "+S'": the argument and item of S' are noted when the item ends. */
static uint8_t symbol_fact(parser *p)
{
    const uint8_t symbol = symbol_read(p, false);

    return expr_add(p, (rule_expr){.kind = take(p, "'") ? EXPR_COPY : EXPR_SYMBOL, .symbol = symbol});
}

static uint8_t sum_read(parser *p)
{
    const uint8_t symbol = symbol_read(p, false);

    expect(p, "'");
    return expr_add(p, (rule_expr){.kind = EXPR_SUM, .symbol = symbol});
}

static uint8_t product_read(parser *p)
{
    rule_expr e = {.kind = EXPR_PRODUCT};

    if (upper(*p->p))
        e.symbol = symbol_read(p, true);
    else {
        e.kind = EXPR_ATTR_PRODUCT;
        e.attr = tni_rule_attr_read(p, RULE_TYPE(TUPLE), "tuple");
    }
    return expr_add(p, e);
}

static uint8_t call_read(parser *p, expr_kind kind)
{
    rule_expr e = {.kind = (uint8_t)kind, .cond = RULE_NONE};

    if (kind == EXPR_IF) {
        e.cond = tni_rule_cond_read(p);
        expect(p, ",");
    }
    if (!deeper(p))
        return 0;
    e.a = dim_read(p);
    expect(p, ",");
    e.b = dim_read(p);
    expect(p, ")");
    p->depth--;
    return expr_add(p, e);
}

static uint8_t attr_fact(parser *p)
{
    const int16_t attr = tni_rule_attr_read(
        p, RULE_TYPE(INT) | RULE_TYPE(BOOL) | RULE_TYPE(OPT_INT) | RULE_TYPE(OPT_BOOL), "integer or truth");

    return expr_add(p, (rule_expr){.kind = EXPR_ATTR, .attr = attr});
}

static uint8_t fact_read(parser *p)
{
    uint8_t e;

    if (p->st)
        return 0;
    if (digit(*p->p))
        return number_read(p);
    if (take(p, "?"))
        return expr_add(p, (rule_expr){.kind = EXPR_OPEN});
    if (take(p, "+"))
        return sum_read(p);
    if (take(p, "#"))
        return product_read(p);
    if (take(p, "or("))
        return call_read(p, EXPR_OR);
    if (take(p, "if("))
        return call_read(p, EXPR_IF);
    if (take(p, "(")) {
        e = deeper(p) ? dim_read(p) : 0;
        expect(p, ")");
        p->depth--;
        return e;
    }
    if (upper(*p->p))
        return symbol_fact(p);
    return attr_fact(p);
}

static void fact_to(void *self, void *out)
{
    *(uint8_t *)out = fact_read(self);
}

static void sign_apply(void *self, const tni_sign *sign, void *a, const void *b)
{
    static const uint8_t kinds[] = {['+'] = EXPR_ADD, ['-'] = EXPR_SUB, ['*'] = EXPR_MUL, ['/'] = EXPR_DIV};
    uint8_t *left = a;

    *left = expr_add(self,
                     (rule_expr){.kind = kinds[(uint8_t)*sign->text], .a = *left, .b = *(const uint8_t *)b});
}

static uint8_t dim_read(parser *p)
{
    static const tni_expr dims = {TNI_SIGNS_SUM | TNI_SIGNS_PRODUCT, false, "", fact_to, sign_apply};
    uint8_t expr;

    tni_expr_read(&dims, p, &p->p, &p->st, &expr);
    return expr;
}

/* ---- ranges ----------------------------------------------------------------------------------- */

static bool range_ahead(const parser *p)
{
    const size_t symbol = symbol_length(p->p), word = word_length(p->p);

    if (symbol && p->p[symbol] == '.' && p->p[symbol + 1] == '.')
        return true;
    if (word && p->p[word] == '.' && p->p[word + 1] == '.')
        return true;
    return word && p->p[word] == '(' && tni_rule_function(p->p, word);
}

static uint8_t range_read(parser *p);

static void range_call(parser *p, rule_range *g)
{
    const size_t n = word_length(p->p);
    const rule_need *need;
    char what[80];

    g->kind = RANGE_CALL;
    g->function = tni_rule_function(p->p, n);
    for (int k = 0; k < RULE_CALL_ATTRS_MAX; k++) {
        need = &g->function->attrs[k];
        g->attrs[k] = need->name ? attr_find(p->rule->op, need->name, strlen(need->name)) : -1;
        if (g->attrs[k] < 0 ? !need->needed : attr_is(p, g->attrs[k], need->types))
            continue;
        snprintf(what, sizeof what, "the function needs an attribute %s of another type", need->name);
        fail(p, what);
    }
    p->p += n;
    expect(p, "(");
    g->a = deeper(p) ? range_read(p) : 0;
    expect(p, ")");
    p->depth--;
}

static uint8_t range_one(parser *p)
{
    tni_shape_rule *r = p->rule;
    rule_range g = {.attr = -1};
    uint8_t at;

    if (!range_ahead(p))
        fail(p, "a range such as \"S..\" is missing");
    else if (symbol_length(p->p)) {
        g.kind = RANGE_SYMBOL;
        g.symbol = symbol_read(p, true);
        expect(p, "..");
    } else if (p->p[word_length(p->p)] == '(')
        range_call(p, &g);
    else {
        g.kind = RANGE_ATTR;
        g.attr = tni_rule_attr_read(p, RULE_TYPE(TUPLE), "tuple");
        expect(p, "..");
    }
    at = table_add(p, &r->range_count, RULE_RANGES_MAX);
    r->ranges[at] = g;
    return at;
}

static uint8_t range_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    uint8_t a = range_one(p);

    while (take(p, "&")) {
        const uint8_t b = range_one(p), at = table_add(p, &r->range_count, RULE_RANGES_MAX);

        r->ranges[at] = (rule_range){.kind = RANGE_BROADCAST, .a = a, .b = b, .attr = -1};
        a = at;
    }
    return a;
}

/* ---- arguments -------------------------------------------------------------------------------- */

/* The word behind "SYM:". */
static void word_read(parser *p, uint8_t expr)
{
    tni_shape_rule *r = p->rule;
    rule_symbol *s = &r->symbols[r->exprs[expr].symbol];

    if (!take(p, ":"))
        return;
    if (r->exprs[expr].kind != EXPR_SYMBOL || word_length(p->p) == 0)
        fail(p, "a word stands behind a symbol alone");
    s->word = (uint16_t)(p->p - r->text);
    s->word_bytes = (uint16_t)word_length(p->p);
    p->p += s->word_bytes;
}

static void item_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    const uint8_t at = table_add(p, &r->item_count, RULE_ITEMS_MAX);
    const char *begin = p->p;
    rule_item item = {.range = RULE_NONE, .expr = RULE_NONE, .at = -1, .text = (uint16_t)(begin - r->text)};

    if (range_ahead(p))
        item.range = range_read(p);
    else
        item.expr = dim_read(p);
    item.bytes = (uint16_t)(p->p - begin);
    if (!p->st && item.expr != RULE_NONE)
        word_read(p, item.expr);
    if (take(p, "@")) {
        item.at = integer_read(p);
        if (item.range != RULE_NONE)
            fail(p, "only one dimension stands at an axis");
    }
    if (!p->st && item.expr != RULE_NONE && r->exprs[item.expr].kind == EXPR_COPY) {
        rule_copy *copy = &r->symbols[r->exprs[item.expr].symbol].copy[p->case_index];

        if (copy->item != RULE_NONE || !r->cases[p->case_index].arg[p->arg].variadic)
            fail(p, "S' stands once, in a variadic argument");
        *copy = (rule_copy){p->arg, at};
    }
    r->items[at] = item;
}

/* "^attr": each of its choices, but for None, names N, C and, side by side, one or more others. Their order
 * is that of two dimensions and a third item. */
static void layout_read(parser *p, rule_alt *alt)
{
    const rule_item *item = &p->rule->items[alt->item];
    const char *text;

    alt->layout = tni_rule_attr_read(p, RULE_TYPE(CHOICE), "choice");
    if (p->st)
        return;
    if (alt->item_count != 3 || item[0].range != RULE_NONE || item[1].range != RULE_NONE)
        fail(p, "a layout orders two dimensions and a third item");
    for (int k = 0; k < 3 && !p->st; k++)
        if (item[k].at >= 0 || (item[k].expr != RULE_NONE && p->rule->exprs[item[k].expr].kind == EXPR_COPY))
            fail(p, "neither @ nor S' goes with a layout");
    for (text = p->rule->op->attrs[alt->layout].choices; *text && !p->st; text += *text == '|') {
        const size_t n = strcspn(text, "|");
        uint32_t seen = 0;
        int runs = 0;

        for (size_t k = 0; k < n && strncmp(text, "None", n) != 0; k++) {
            const uint32_t bit = upper(text[k]) ? 1u << (text[k] - 'A') : 0;
            const bool other = text[k] != 'N' && text[k] != 'C';

            if (!bit || seen & bit)
                fail(p, "a choice is no layout");
            seen |= bit;
            runs += other && (k == 0 || text[k - 1] == 'N' || text[k - 1] == 'C');
        }
        if (seen ? runs != 1 || !(seen >> ('N' - 'A') & seen >> ('C' - 'A') & 1u) : n != 4)
            fail(p, "a choice is no layout");
        text += n;
    }
}

/* "name" or "(item,item)", then "^attr" and "?cond". */
static void alt_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    const uint8_t at = table_add(p, &r->alt_count, RULE_ALTS_MAX);
    const char *begin = p->p;
    rule_alt alt = {
        .cond = RULE_NONE, .same_as = RULE_NONE, .layout = -1, .text = (uint16_t)(begin - r->text)};

    if (take(p, "(")) {
        alt.item = r->item_count;
        if (!take(p, ")")) {
            do
                item_read(p);
            while (take(p, ","));
            expect(p, ")");
        }
        alt.item_count = (uint8_t)(r->item_count - alt.item);
        alt.bytes = (uint16_t)(p->p - begin);
        if (take(p, "^"))
            layout_read(p, &alt);
    } else {
        const size_t n = word_length(p->p);

        for (uint8_t a = 0; n && a < p->arg && alt.same_as == RULE_NONE; a++) {
            const rule_arg *arg = &r->cases[p->case_index].arg[a];

            if (arg->bytes == n && memcmp(arg->name, p->p, n) == 0)
                alt.same_as = a;
        }
        if (alt.same_as == RULE_NONE)
            fail(p, "no argument before has this name");
        p->p += n;
        alt.bytes = (uint16_t)n;
    }
    if (take(p, "?"))
        alt.cond = tni_rule_cond_read(p);
    r->alts[at] = alt;
}

/* The head of an argument: name, "*" or "*attr", "?cond", "~" or "~cond". */
static rule_arg head_read(parser *p)
{
    rule_arg arg = {.cond = RULE_NONE,
                    .visible_cond = RULE_NONE,
                    .count_attr = -1,
                    .name = p->p,
                    .bytes = (uint8_t)(word_length(p->p) < 64 ? word_length(p->p) : 0)};

    if (arg.bytes == 0)
        fail(p, "the name of an argument is missing");
    p->p += arg.bytes;
    if (take(p, "*")) {
        arg.variadic = true;
        if (lower(*p->p))
            arg.count_attr = tni_rule_attr_read(p, RULE_TYPE(INT), "integer");
    }
    if (take(p, "?"))
        arg.cond = tni_rule_cond_read(p);
    if (take(p, "~")) {
        arg.hidden = true;
        if (*p->p != ':')
            arg.visible_cond = tni_rule_cond_read(p);
    }
    return arg;
}

static void arg_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    rule_arg *arg = &r->cases[p->case_index].arg[p->arg];

    if (p->arg >= RULE_ARGS_MAX) {
        fail(p, "too many arguments");
        return;
    }
    *arg = head_read(p);
    expect(p, ":");
    arg->alt = r->alt_count;
    if (p->heads)
        p->p += strcspn(p->p, " ");
    else
        do
            alt_read(p);
        while (take(p, "/"));
    arg->alt_count = (uint8_t)(r->alt_count - arg->alt);
    if (!p->st && *p->p && *p->p != ' ')
        fail(p, "a blank is missing");
    for (uint8_t k = 0; k < r->symbol_count && arg->alt_count > 1; k++)
        if (r->symbols[k].copy[p->case_index].arg == p->arg)
            fail(p, "S' stands in an argument of one form");
    p->arg++;
    blanks(p);
}

/* Copies are counted by the caller for a variadic input, which is the last one, and by an attribute for an
 * output. The heads of arguments are the same in all cases. */
static void case_check(parser *p, uint8_t in_count, uint8_t out_count, uint8_t case_index)
{
    const tni_shape_rule *r = p->rule;
    const rule_arg *args = r->cases[case_index].arg, *first = r->cases[0].arg;

    if (out_count == 0)
        fail(p, "an output is missing");
    for (uint8_t a = 0; a < in_count + out_count && !p->st; a++) {
        if (args[a].hidden && a < in_count)
            fail(p, "an input cannot be hidden");
        if (args[a].variadic && a + 1 != in_count && a + 1 != in_count + out_count)
            fail(p, "only the last argument can be variadic");
        if (args[a].variadic && (args[a].count_attr >= 0) != (a >= in_count))
            fail(p, "outputs are counted by an attribute, inputs by the caller");
        if (strncmp(args[a].name, first[a].name, strcspn(args[a].name, ":") + 1) != 0)
            fail(p, "the cases have different arguments");
    }
}

static bool is_copy(const tni_shape_rule *r, const rule_expr *e, uint8_t operand)
{
    return e->kind >= EXPR_ADD && r->exprs[operand].kind == EXPR_COPY;
}

/* Of the expressions from `first` on, read with a case or used with it: a sum needs to know where its terms
 * stand there. */
static void sums_check(parser *p, uint8_t first, uint8_t case_index)
{
    const tni_shape_rule *r = p->rule;

    for (uint8_t k = first; k < r->expr_count && !p->st; k++) {
        const rule_expr *e = &r->exprs[k];

        if (is_copy(r, e, e->a) || is_copy(r, e, e->b) ||
            (e->kind == EXPR_SUM && r->symbols[e->symbol].copy[case_index].item == RULE_NONE))
            fail(p, "S' stands alone as a dimension of a variadic argument");
    }
}

static void case_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    const uint8_t at = table_add(p, &r->case_count, RULE_CASES_MAX), exprs = r->expr_count;
    uint8_t inputs;

    blanks(p);
    p->case_index = at;
    r->cases[at].cond = RULE_NONE;
    p->arg = 0;
    if (take(p, "[")) {
        r->cases[at].cond = tni_rule_cond_read(p);
        expect(p, "]");
        blanks(p);
    }
    while (!p->st && *p->p && strncmp(p->p, "->", 2) != 0)
        arg_read(p);
    inputs = p->arg;
    expect(p, "->");
    blanks(p);
    while (!p->st && *p->p && *p->p != '|' && *p->p != ';')
        arg_read(p);
    if (at == 0) {
        r->in_count = inputs;
        r->out_count = (uint8_t)(p->arg - inputs);
    } else if (inputs != r->in_count || p->arg - inputs != r->out_count)
        fail(p, "the cases have different arguments");
    if (!p->st)
        case_check(p, r->in_count, r->out_count, at);
    sums_check(p, exprs, at);
}

/* "; SYM=dim" or "; SYM..=range" */
static void def_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    const uint8_t at = table_add(p, &r->def_count, RULE_DEFS_MAX), exprs = r->expr_count;
    rule_def d = {.expr = RULE_NONE, .range = RULE_NONE};
    const char *begin;
    bool range;

    blanks(p);
    range = range_ahead(p);
    d.symbol = symbol_read(p, range);
    expect(p, range ? "..=" : "=");
    begin = p->p;
    d.text = (uint16_t)(begin - r->text);
    if (range)
        d.range = range_read(p);
    else
        d.expr = dim_read(p);
    if (!p->st && d.expr != RULE_NONE && r->exprs[d.expr].kind == EXPR_COPY)
        fail(p, "S' is a dimension of a variadic argument");
    for (uint8_t k = 0; k < r->case_count; k++)
        sums_check(p, exprs, k);
    d.bytes = (uint16_t)(p->p - begin);
    r->defs[at] = d;
    blanks(p);
}

static void shapes_read(parser *p)
{
    case_read(p);
    if (p->heads)
        return;
    while (take(p, "|"))
        case_read(p);
    while (take(p, ";"))
        def_read(p);
    if (!p->st && *p->p)
        fail(p, "something is left over");
}

/* ---- public functions --------------------------------------------------------------------------------- */

const char **tni_rule_name_lists(const char *const *names, uint32_t count, const uint8_t *optional,
                                 uint32_t optional_count)
{
    const uint32_t row = count + 1u;
    const char **lists = tni_zalloc(((size_t)row << optional_count) * sizeof *lists);

    for (uint32_t there = 0; lists && there < 1u << optional_count; there++) {
        const char **out = lists + (size_t)there * row;

        for (uint32_t a = 0, k = 0; a < count; a++) {
            const bool may_miss = k < optional_count && optional[k] == a;

            if (!may_miss || there >> k & 1u)
                *out++ = names[a];
            k += may_miss;
        }
    }
    return lists;
}

static void optional_names(parser *p)
{
    tni_shape_rule *r = p->rule;

    for (uint8_t a = 0; a < r->in_count; a++) {
        if (r->cases[0].arg[a].cond == RULE_NONE)
            continue;
        if (r->optional_count == RULE_OPTIONAL_MAX)
            fail(p, "too many inputs may be missing");
        else
            r->optional[r->optional_count++] = a;
    }
    if (!p->st && r->optional_count &&
        !(r->names = tni_rule_name_lists(r->op->inputs, r->in_count, r->optional, r->optional_count)))
        p->st = TN_E_NOMEM;
}

uint8_t tni_rule_arg_find(const parser *p, size_t length)
{
    const tni_shape_rule *r = p->rule;

    for (uint8_t a = 0; a < r->in_count + r->out_count; a++)
        if (length && r->cases[0].arg[a].bytes == length &&
            memcmp(r->cases[0].arg[a].name, p->p, length) == 0)
            return a;
    return RULE_NONE;
}

/* Arguments that the definition lists. */
static void list_read(parser *p, const char *const *names, uint8_t *count)
{
    for (*count = 0; names && *names && !p->st; names++, (*count)++) {
        const size_t n = word_length(*names);
        const rule_arg arg = {.cond = RULE_NONE,
                              .visible_cond = RULE_NONE,
                              .variadic = (*names)[n] == '*',
                              .count_attr = -1,
                              .name = *names,
                              .bytes = (uint8_t)n};

        if (p->arg == RULE_ARGS_MAX || n == 0 || n >= 64)
            fail(p, "its arguments are too many or misnamed");
        else
            p->rule->cases[0].arg[p->arg++] = arg;
    }
}

static void args_read(parser *p)
{
    tni_shape_rule *r = p->rule;

    p->text = p->p = p->which = "list of arguments";
    list_read(p, r->op->inputs, &r->in_count);
    list_read(p, r->op->outputs, &r->out_count);
}

tn_status tni_shape_rule_parse(const tn_op *op, bool heads, tni_shape_rule **out)
{
    tni_shape_rule *r = tni_zalloc(sizeof *r);
    parser p = {.rule = r, .which = "shape", .text = op->shapes, .p = op->shapes, .heads = heads};

    if (!r)
        return TN_E_NOMEM;
    r->op = op;
    r->text = op->shapes;
    if (op->shapes && strlen(op->shapes) > UINT16_MAX)
        fail(&p, "it is too long");
    if (op->shapes)
        shapes_read(&p);
    else
        args_read(&p);
    if (!p.st && !heads)
        optional_names(&p);
    if (!p.st && !heads && op->types)
        tni_rule_types_read(&p, op->types);
    if (!p.st && op->gradients)
        tni_rule_gradients_read(&p, op->gradients);
    if (p.st) {
        tni_shape_rule_destroy(r);
        return p.st;
    }
    *out = r;
    return TN_OK;
}

void tni_shape_rule_destroy(tni_shape_rule *r)
{
    if (!r)
        return;
    tni_free(r->names);
    tni_free(r);
}
