/*
 * Bodies of pointwise operators: an expression over inputs and attributes becomes steps, one for each
 * operation, when the definition is added. A number beside an operand is a scalar operator's attribute; where
 * only an array will do, it is made from ones. The text is short and comes from a plugin: depth, steps and
 * length have limits, and each message says where.
 */
#include "op/body.h"

#include <string.h>

#include "op/attr_type.h"
#include "op/expr.h"

#define TEXT_MAX 4096u
#define DEPTH_MAX 32u

struct tni_body {
    tn_point_code code;
};

typedef struct term {
    enum { NUMBER, ATTRIBUTE, VALUE } kind;
    bool negated;   /* of an attribute */
    uint32_t index; /* the attribute; the value */
    double number;
} term;

typedef struct parser {
    const tni_opdef *def;
    const tni_opdef *(*find)(const void *arg, const char *name);
    const void *arg;
    const char *text, *at;
    tn_point_code *code;
    uint32_t depth;
    tn_status st; /* the first failure; then nothing is read any more */
} parser;

/* Signs that are words. */
static const tni_sign functions[] = {
    {"maximum", 0, "maximum", NULL, NULL, "_maximum_scalar", "_maximum_scalar"},
    {"minimum", 0, "minimum", NULL, NULL, "_minimum_scalar", "_minimum_scalar"},
    {"power", 0, "power", NULL, NULL, "_power_scalar", "_rpower_scalar"},
    {"hypot", 0, "hypot", NULL, NULL, "_hypot_scalar", "_hypot_scalar"},
    {"mod", 0, "mod", NULL, NULL, "_mod_scalar", "_rmod_scalar"},
};

static void fail(parser *p, const char *what)
{
    if (!p->st)
        p->st = tni_error(TN_E_ARG, "operator %s: body, byte %u: %s", p->def->op->name,
                          (uint32_t)(p->at - p->text), what);
}

/* ---- steps -------------------------------------------------------------------------------------- */

/* The attributes of a step at their defaults: kernels get them as values. */
static bool attrs_default(const tni_opdef *def, tn_point_step *s)
{
    s->attr_count = def->attr_count;
    if (def->attr_count > TN_POINT_ATTRS_MAX)
        return false;
    for (uint32_t a = 0; a < def->attr_count; a++) {
        if (tni_attr_is_pointer(def->op->attrs[a].type) && def->defaults[a])
            return false;
        s->run[a] = TN_POINT_NUMBER;
        s->attrs[a] = def->defaults[a];
    }
    return true;
}

/* One operation; `number`: its attribute `scalar`, NULL: it has none. */
static term step_add(parser *p, const char *op, uint32_t count, const uint32_t *operands, const term *number)
{
    const term failed = {.kind = NUMBER};
    const tni_opdef *def = p->st ? NULL : p->find(p->arg, op);
    tn_point_step *s;
    int32_t scalar;

    if (!p->st && p->code->step_count == TN_POINT_STEPS_MAX)
        fail(p, "more than 32 operations");
    if (p->st)
        return failed;
    s = &p->code->step[p->code->step_count];
    *s = (tn_point_step){.operand_count = count};
    (void)snprintf(s->op, sizeof s->op, "%s", op);
    if (strcmp(op, "where") != 0 && (!def || !attrs_default(def, s))) {
        fail(p, "an operation that is no operator with numbers as attributes");
        return failed;
    }
    memcpy(s->operand, operands, count * sizeof *operands);
    scalar = number ? tni_attr_index(def, "scalar") : -1;
    if (scalar >= 0 && number->kind == ATTRIBUTE)
        s->run[scalar] = number->index;
    else if (scalar >= 0)
        s->attrs[scalar] = tn_value_of_float(number->number);
    return (term){.kind = VALUE, .index = TN_POINT_RESULT + p->code->step_count++};
}

static term unary_add(parser *p, const char *op, uint32_t operand)
{
    return step_add(p, op, 1, &operand, NULL);
}

/* An array of that number. */
static uint32_t array_of(parser *p, term t)
{
    uint32_t ones;

    if (t.kind == VALUE)
        return t.index;
    ones = unary_add(p, "ones_like", 0).index;
    ones = step_add(p, "_mul_scalar", 1, &ones, &t).index;
    return t.negated ? unary_add(p, "negative", ones).index : ones;
}

/* A factor with a minus is one without it, and the result negated: the bits are the same. */
static term scaled(parser *p, const char *op, term array, term number)
{
    const term made = step_add(p, op, 1, &array.index, &number);

    return number.negated ? unary_add(p, "negative", made.index) : made;
}

static term number_of(double value)
{
    return (term){.kind = NUMBER, .number = value};
}

/* Two numbers that are written out. */
static bool folded(const tni_sign *o, double a, double b, term *out)
{
    switch (*o->text) {
    case '+':
        *out = number_of(a + b);
        return true;
    case '-':
        *out = number_of(a - b);
        return true;
    case '*':
        *out = number_of(a * b);
        return true;
    case '/':
        *out = number_of(a / b);
        return true;
    default:
        return false;
    }
}

static term pair_add(parser *p, const tni_sign *o, term a, term b)
{
    const bool product = *o->text == '*' || *o->text == '/';
    term made;

    if (a.kind == NUMBER && b.kind == NUMBER && folded(o, a.number, b.number, &made))
        return made;
    if (a.kind == VALUE && b.kind != VALUE && (!b.negated || product))
        return scaled(p, o->scalar, a, b);
    if (a.kind != VALUE && b.kind == VALUE && (!a.negated || product))
        return scaled(p, o->reverse, b, a);
    {
        const uint32_t left = array_of(p, a), operands[2] = {left, array_of(p, b)};
        char op[TN_NAME_MAX];

        tni_sign_operator(o, "_", o->elemwise, op);
        return step_add(p, op, 2, operands, NULL);
    }
}

/* ---- reading ------------------------------------------------------------------------------------ */

static term expression(parser *p);

static char peek(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
        p->at++;
    return *p->at;
}

static bool take(parser *p, const char *word)
{
    const size_t length = strlen(word);

    if (p->st || peek(p) != *word || strncmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static void expect(parser *p, const char *word, const char *what)
{
    if (!take(p, word))
        fail(p, what);
}

static bool word_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static term number(parser *p)
{
    char text[40];
    size_t n = 0;
    double value = 0;

    for (; n < sizeof text - 1; n++) {
        const char c = p->at[n];
        const bool sign = (c == '+' || c == '-') && n && (p->at[n - 1] == 'e' || p->at[n - 1] == 'E');

        if (!(c >= '0' && c <= '9') && c != '.' && c != 'e' && c != 'E' && !sign)
            break;
        text[n] = c;
    }
    text[n] = '\0';
    if (!n || !tni_parse_f64(text, &value))
        fail(p, "a number, an input, an attribute, a function or ( is expected");
    p->at += p->st ? 0 : n;
    return number_of(value);
}

/* A pointwise operator of one input. */
static term operator_call(parser *p, const char *name, term argument)
{
    const tni_opdef *def = p->find(p->arg, name);
    const tn_op *op = def ? def->op : NULL;

    if (!op || !(op->flags & TN_OP_POINTWISE) || def->input_count != 1 || def->variadic || op->effects ||
        op->mutates || op->exec != TN_EXEC_KERNEL) {
        fail(p, "a call of something that is no pointwise operator of one input");
        return argument;
    }
    return unary_add(p, tni_op_meaning(def)->op->name, array_of(p, argument));
}

static term call(parser *p, const char *name)
{
    term argument[3] = {{.kind = NUMBER}};
    uint32_t count = 0;

    do
        if (count == 3)
            fail(p, "a function of more than three arguments");
        else
            argument[count++] = expression(p);
    while (take(p, ","));
    expect(p, ")", "a ) is expected");
    if (p->st)
        return argument[0];
    if (!strcmp(name, "where") && count == 3) {
        uint32_t operands[3];

        for (uint32_t k = 0; k < 3; k++)
            operands[k] = array_of(p, argument[k]);
        return step_add(p, "where", 3, operands, NULL);
    }
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        if (!strcmp(name, functions[f].text) && count == 2)
            return pair_add(p, &functions[f], argument[0], argument[1]);
    if (count == 1)
        return operator_call(p, name, argument[0]);
    fail(p, "an unknown function, or the number of its arguments is another");
    return argument[0];
}

static int64_t input_index(const tni_opdef *def, const char *name)
{
    for (uint32_t i = 0; i < def->input_count; i++)
        if (!strcmp(def->op->inputs[i], name))
            return i;
    return -1;
}

static term attribute(parser *p, const char *name)
{
    const int32_t at = tni_attr_index(p->def, name);
    const tn_attr_def *a = at < 0 ? NULL : &p->def->op->attrs[at];

    if (!a)
        fail(p, "a name that is no input, no attribute and no function");
    else if (a->type != TN_ATTR_T_FLOAT &&
             (a->flags & TN_ATTR_F_RUNTIME || (a->type != TN_ATTR_T_INT && a->type != TN_ATTR_T_BOOL)))
        fail(p, "an attribute that is no number");
    return (term){.kind = ATTRIBUTE, .index = (uint32_t)at};
}

static term word(parser *p)
{
    char name[TN_POINT_NAME_MAX];
    size_t n = 0;
    int64_t input;

    while (n < sizeof name - 1 && word_char(p->at[n], n == 0)) {
        name[n] = p->at[n];
        n++;
    }
    name[n] = '\0';
    p->at += n;
    if (take(p, "("))
        return call(p, name);
    if ((input = input_index(p->def, name)) >= 0)
        return (term){.kind = VALUE, .index = (uint32_t)input};
    return attribute(p, name);
}

static term factor(parser *p)
{
    term t = {.kind = NUMBER};

    if (p->st)
        return t;
    if (take(p, "-")) {
        if (++p->depth > DEPTH_MAX)
            fail(p, "more than 32 levels");
        t = factor(p);
        p->depth--;
        t.number = -t.number;
        t.negated = t.kind == ATTRIBUTE && !t.negated;
        return t.kind == VALUE && !p->st ? unary_add(p, "negative", t.index) : t;
    }
    if (take(p, "(")) {
        t = expression(p);
        expect(p, ")", "a ) is expected");
        return t;
    }
    return word_char(peek(p), true) ? word(p) : number(p);
}

static void factor_read(void *self, void *out)
{
    *(term *)out = factor(self);
}

static void sign_apply(void *self, const tni_sign *sign, void *a, const void *b)
{
    parser *p = self;

    if (!p->st)
        *(term *)a = pair_add(p, sign, *(term *)a, *(const term *)b);
}

static term expression(parser *p)
{
    static const tni_expr bodies = {TNI_SIGNS_ORDER | TNI_SIGNS_EQUAL | TNI_SIGNS_SUM | TNI_SIGNS_PRODUCT,
                                    true, " \t\n", factor_read, sign_apply};
    term t;

    _Static_assert(sizeof t <= TNI_EXPR_VALUE_MAX, "a value fits");
    if (++p->depth > DEPTH_MAX)
        fail(p, "more than 32 levels");
    tni_expr_read(&bodies, p, &p->at, &p->st, &t);
    p->depth--;
    return t;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

/* Arguments that attributes bring or take away. A rule without these marks always has the same ones. */
static bool arguments_vary(const tn_op *op)
{
    const bool fixed = op->struct_size >= TN_END(tn_op, shapes) && op->shapes && !strpbrk(op->shapes, "?*|~");

    return op->args && !fixed;
}

static tn_status definition_check(const tni_opdef *def)
{
    const tn_op *op = def->op;

    if (!(op->flags & TN_OP_POINTWISE) || op->exec != TN_EXEC_KERNEL || op->effects || op->mutates ||
        arguments_vary(op) || def->variadic || !def->input_count || def->input_count > TN_POINT_INPUTS_MAX ||
        (op->outputs[0] && op->outputs[1]))
        return tni_error(TN_E_ARG,
                         "operator %s: a body is for pointwise operators of 1 to %d inputs and one output, "
                         "without effects",
                         op->name, TN_POINT_INPUTS_MAX);
    if (strnlen(op->body, TEXT_MAX + 1u) > TEXT_MAX)
        return tni_error(TN_E_ARG, "operator %s: its body is longer than %u bytes", op->name, TEXT_MAX);
    return TN_OK;
}

tn_status tni_body_create(const tni_opdef *def, const tni_opdef *(*find)(const void *arg, const char *name),
                          const void *arg, tni_body **out)
{
    parser p = {.def = def, .find = find, .arg = arg, .text = def->op->body, .at = def->op->body};
    tn_status st = definition_check(def);
    tni_body *b = NULL;
    term t;

    if (st)
        return st;
    if (!(b = tni_zalloc(sizeof *b)))
        return TN_E_NOMEM;
    p.code = &b->code;
    t = expression(&p);
    if (!p.st && peek(&p))
        fail(&p, "an operation or the end is expected");
    if (!p.st && (t.kind != VALUE || t.index < TN_POINT_RESULT))
        t = unary_add(&p, "_copy", array_of(&p, t));
    if (p.st) {
        tni_free(b);
        return p.st;
    }
    b->code.input_count = def->input_count;
    b->code.output_count = 1;
    b->code.output[0] = t.index;
    *out = b;
    return TN_OK;
}

void tni_body_destroy(tni_body *b)
{
    tni_free(b);
}

void tni_body_code(const tni_opdef *def, const tni_attrs *attrs, int32_t dtype, tn_point_code *out)
{
    *out = def->body->code;
    for (uint32_t i = 0; i < out->step_count; i++) {
        tn_point_step *s = &out->step[i];

        s->dtype = dtype;
        for (uint32_t a = 0; a < s->attr_count; a++) {
            const tn_attr_def *d = s->run[a] == TN_POINT_NUMBER ? NULL : &def->op->attrs[s->run[a]];

            if (!d || d->flags & TN_ATTR_F_RUNTIME)
                continue;
            s->attrs[a] = d->type == TN_ATTR_T_FLOAT
                              ? attrs->values[s->run[a]]
                              : tn_value_of_float((double)tni_attr_int(attrs->values, s->run[a]));
            s->run[a] = TN_POINT_NUMBER;
        }
    }
}

/* ---- code as text ------------------------------------------------------------------------------- */

static tn_status value_write(tni_str *out, uint32_t value, bool first)
{
    return tni_str_addf(out, "%s%c%u", first ? "" : ",", value < TN_POINT_RESULT ? 'i' : 't',
                        value < TN_POINT_RESULT ? value : value - TN_POINT_RESULT);
}

static tn_status step_write(tni_str *out, const tn_point_step *s)
{
    tn_status st = tni_str_addf(out, "%s[", s->op);

    for (uint32_t a = 0; a < s->attr_count && !st; a++)
        st = s->run[a] == TN_POINT_NUMBER
                 ? tni_str_addf(out, "%s%llx", a ? "," : "", (unsigned long long)s->attrs[a])
                 : tni_str_addf(out, "%sr%u", a ? "," : "", s->run[a]);
    if (!st)
        st = tni_str_add(out, "](");
    for (uint32_t k = 0; k < s->operand_count && !st; k++)
        st = value_write(out, s->operand[k], k == 0);
    if (st || s->dtype == TN_DTYPE_UNKNOWN)
        return st ? st : tni_str_add(out, "):=");
    return tni_str_addf(out, "):%d", s->dtype);
}

tn_status tni_point_write(const tn_point_code *code, tni_str *out)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < code->step_count && !st; i++) {
        if (i)
            st = tni_str_add(out, ";");
        if (!st)
            st = step_write(out, &code->step[i]);
    }
    if (!st)
        st = tni_str_add(out, ">");
    for (uint32_t o = 0; o < code->output_count && !st; o++)
        st = value_write(out, code->output[o], o == 0);
    return st;
}
