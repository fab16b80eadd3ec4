/*
 * Steps of gradient rules: nodes made of operators.
 *
 *     steps := step { ";" step }
 *     step  := ( input | name ) [ "*" ] "=" value
 *     value := sum [ ( ">=" | "<=" | ">" | "<" ) sum ]
 *     sum   := product { ( "+" | "-" ) product }
 *     product := power { ( "*" | "/" ) power }
 *     power := fact [ "^" fact ]
 *     fact  := "-" fact | "(" value ")" | number | attr | [ "~" ] argument | name
 *              | operator [ "!" ] "(" value { "," value } { "," attribute "=" text } ")"
 *
 *     "data = elemwise_div(dy*output, data)"    "t = sum(h*output, axis=@axis) ; dy = broadcast_sub(h, t)"
 *
 * A step gives an input its gradient, or a name to what further steps read; among rows with an arrow a row
 * is one step. `dy` or `h`, `dy1`: what arrives at an output. In steps of the second derivative names are
 * those of the backward operator's inputs, and `h`, `h1` is what arrives at its outputs. Signs are
 * elementwise operators, of class `broadcast` those that stretch, of class `numpy` its own, and what an input
 * gets is summed to its shape and type. An operand may be a number, an attribute that does not change from
 * call to call (with None a sign has no effect), or `scalar`. `!`: attributes of equal names are taken over;
 * `@attr`: the text of one; `#arg`: how many copies there are; `arg*`: all of them. What does not arrive
 * counts as zero: a product with it does not arrive (of a loss layer it is its other factor), a sum is its
 * other term. What is not there
 * (`?cond`) is left out of calls. Steps are read as they run, without a tree; without `g` they are only
 * checked.
 */
#include "op/attr_type.h"
#include "op/expr.h"
#include "op/shape_rule_parser.h"

#define LOCALS_MAX 8
#define ATTRS_MAX 4
#define TEXT_MAX 64
#define DEPTH_MAX 16

typedef struct value {
    tn_edge edge;        /* node NULL: nothing arrives */
    bool number, scalar; /* text; the attribute `scalar`, whatever it is */
    bool absent;
    char text[TEXT_MAX];
} value;

typedef struct steps {
    parser p;
    tn_grad *g;               /* NULL: nothing is made */
    const rule_gradient *row; /* of the backward operator; NULL: of the operator itself */
    rule_class class;         /* COMPOSED in second derivatives */
    uint32_t first[RULE_ARGS_MAX], copies[RULE_ARGS_MAX]; /* slots of the operator's arguments */
    struct {
        const char *name;
        size_t bytes;
        tn_edge edge;
    } locals[LOCALS_MAX];
    uint32_t local_count;
} steps;

static const tn_edge made_up = {(void *)(uintptr_t)1, 0, 0}; /* what is only checked */

static value value_read(steps *s);

static value of_edge(tn_edge e)
{
    return (value){.edge = e};
}

/* ---- nodes ------------------------------------------------------------------------------------ */

static value node_emit(steps *s, const char *op, uint32_t flags, uint32_t count, const tn_edge *in,
                       uint32_t attr_count, const tn_attr_text *attrs)
{
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count), flags, op, in, attrs, count, attr_count};
    value out = of_edge(made_up);

    if (!s->p.st && s->g)
        s->p.st = s->g->ops->emit(s->g, &e, &out.edge);
    return out;
}

static value call1(steps *s, const char *op, value a)
{
    return a.edge.node ? node_emit(s, op, 0, 1, &a.edge, 0, NULL) : a;
}

/* The operator of a sign over two arrays. */
static void sign_operator(const steps *s, const tni_sign *f, char *op)
{
    if (s->class == CLASS_NUMPY)
        tni_sign_operator(f, "_npi_", f->numpy, op);
    else if (s->class == CLASS_BROADCAST)
        tni_sign_operator(f, "broadcast_", NULL, op);
    else
        tni_sign_operator(f, "_", f->elemwise, op);
}

/* An array and a number. NumPy's operators make floating point of whole numbers. */
static value apply_number(steps *s, const tni_sign *f, bool reversed, value array, value number)
{
    const tn_attr_text attrs[] = {{"scalar", number.text}, {"is_int", "False"}};
    const bool numpy = s->class == CLASS_NUMPY && f->numpy && !reversed;
    const char *op = reversed ? f->reverse : f->scalar;
    char name[TN_NAME_MAX];

    if (reversed && f->rank == TNI_RANK_COMPARISON)
        fail(&s->p, "a number stands on the wrong side");
    if (!array.edge.node || s->p.st || strcmp(number.text, "None") == 0)
        return array;
    snprintf(name, sizeof name, "%s%s", numpy ? f->numpy : op, numpy ? "_scalar" : "");
    return node_emit(s, name, number.scalar ? TN_EMIT_INHERIT : 0, 1, &array.edge,
                     number.scalar ? 0
                     : numpy       ? 2
                                   : 1,
                     attrs);
}

static value apply(steps *s, const tni_sign *f, value a, value b)
{
    const bool sum = *f->text == '+' || *f->text == '-';
    const tn_edge in[] = {a.edge, b.edge};
    char op[TN_NAME_MAX];

    if ((a.number || a.scalar) && (b.number || b.scalar))
        fail(&s->p, "a sign stands between two numbers");
    if (a.absent || b.absent)
        fail(&s->p, "an argument is not there");
    if (s->p.st)
        return a;
    if (b.number || b.scalar)
        return apply_number(s, f, false, a, b);
    if (a.number || a.scalar)
        return apply_number(s, f, true, b, a);
    if (*f->text == '*' && s->p.rule->op->flags & TN_OP_IGNORE_HEAD && !(a.edge.node && b.edge.node))
        return a.edge.node ? a : b;
    if (!a.edge.node || !b.edge.node) {
        if (!sum || !b.edge.node)
            return !sum && a.edge.node ? b : a;
        return *f->text == '-' ? call1(s, "negative", b) : b;
    }
    sign_operator(s, f, op);
    return node_emit(s, op, 0, 2, in, 0, NULL);
}

/* ---- names ------------------------------------------------------------------------------------ */

static bool word_is(const char *text, size_t length, const char *word, size_t bytes)
{
    return length == bytes && memcmp(text, word, bytes) == 0;
}

/* "dy", "dy1": the number of the output; -1: no such name. */
static int32_t head_number(const char *text, size_t length, const char *word)
{
    const size_t n = strlen(word);

    if (length < n || length > n + 1 || memcmp(text, word, n) != 0 || (length > n && !digit(text[n])))
        return -1;
    return length > n ? text[n] - '0' : 0;
}

static uint32_t copies_of(const steps *s, const rule_role *role)
{
    return s->copies[role->arg];
}

/* Where a role's first copy stands among those of the backward operator. */
static uint32_t role_index(const steps *s, const rule_role *roles, uint32_t k)
{
    uint32_t index = 0;

    for (uint32_t n = 0; n < k; n++)
        index += roles[n].zero ? 0 : copies_of(s, &roles[n]);
    return index;
}

/* The number of an input of the graph that is differentiated, or UINT32_MAX; `copies`: how many. */
static uint32_t input_find(const steps *s, size_t n, uint32_t *copies)
{
    const tni_shape_rule *r = s->p.rule;
    const uint8_t arg = tni_rule_arg_find(&s->p, n);

    if (!s->row) {
        *copies = arg < r->in_count ? s->copies[arg] : 0;
        return arg < r->in_count ? s->first[arg] : UINT32_MAX;
    }
    for (uint8_t k = 0; k < s->row->in_count; k++) {
        const rule_role *role = &s->row->in[k];
        const int32_t head = head_number(s->p.p, n, "dy");

        if (role->head ? head < 0 || role->arg != r->in_count + head : role->arg != arg)
            continue;
        *copies = copies_of(s, role);
        return role_index(s, s->row->in, k);
    }
    return UINT32_MAX;
}

/* An output's number among those that are there, or what arrives there. */
static uint32_t output_find(const steps *s, size_t n, bool *head, uint32_t *copies)
{
    const tni_shape_rule *r = s->p.rule;
    const uint8_t arg = tni_rule_arg_find(&s->p, n);
    const bool dy = !s->row && *s->p.p == 'd';
    const int32_t number = head_number(s->p.p, n, dy ? "dy" : "h");

    *head = arg == RULE_NONE;
    if (s->row) {
        *copies = number >= 0 && number < s->row->out_count ? copies_of(s, &s->row->out[number]) : 0;
        return number >= 0 && number < s->row->out_count ? role_index(s, s->row->out, (uint32_t)number)
                                                         : UINT32_MAX;
    }
    if (arg == RULE_NONE ? number < 0 || number >= r->out_count : arg < r->in_count)
        return UINT32_MAX;
    *copies = s->copies[arg == RULE_NONE ? r->in_count + number : arg];
    return s->first[arg == RULE_NONE ? r->in_count + number : arg] - (s->g ? s->g->in_count : 0);
}

/* Copy `k` of a word that names an argument, a head or what a step has made; false: none of these. */
static bool edge_find(steps *s, size_t n, uint32_t k, value *out, uint32_t *copies)
{
    uint32_t index;
    bool head = false;

    *out = of_edge(made_up);
    *copies = 1;
    for (uint32_t l = 0; l < s->local_count; l++)
        if (word_is(s->p.p, n, s->locals[l].name, s->locals[l].bytes)) {
            out->edge = s->locals[l].edge;
            return true;
        }
    if ((index = input_find(s, n, copies)) != UINT32_MAX) {
        if (s->g && *copies)
            out->edge = tn_grad_input(s->g, index + k);
    } else if ((index = output_find(s, n, &head, copies)) != UINT32_MAX) {
        if (s->g && *copies)
            out->edge = head ? tn_grad_of(s->g, index + k) : tn_grad_output(s->g, index + k);
    } else {
        return false;
    }
    out->absent = s->g && *copies == 0;
    return true;
}

/* ---- values ----------------------------------------------------------------------------------- */

/* The text of an attribute's value. */
static void attr_text(steps *s, size_t n, char *text)
{
    const int16_t at = attr_find(s->p.rule->op, s->p.p, n);
    const tn_attr_def *d = at < 0 ? NULL : &s->p.rule->op->attrs[at];
    tni_str str;

    text[0] = '0';
    text[1] = '\0';
    if (!d || d->flags & TN_ATTR_F_RUNTIME)
        fail(&s->p, d ? "the attribute changes from call to call: `once:` and a kernel may read it"
                      : "neither an argument nor an attribute");
    s->p.p += s->p.st ? 0 : n;
    if (s->p.st || !s->g)
        return;
    tni_str_init(&str, TEXT_MAX);
    s->p.st = tni_attr_format(d, s->g->attrs[at], &str);
    if (!s->p.st)
        snprintf(text, TEXT_MAX, "%s", str.text ? str.text : "");
    tni_str_fini(&str);
}

static value number_read(steps *s)
{
    value v = {.number = true, .edge = made_up};
    const char *begin = s->p.p;

    s->p.p += *s->p.p == '-';
    while (digit(*s->p.p) || *s->p.p == '.')
        s->p.p++;
    if (s->p.p - begin >= TEXT_MAX)
        fail(&s->p, "a number is too long");
    else
        snprintf(v.text, sizeof v.text, "%.*s", (int)(s->p.p - begin), begin);
    return v;
}

static value name_read(steps *s)
{
    const size_t n = word_length(s->p.p);
    value v = {.number = true, .edge = made_up};
    uint32_t copies;

    if (n && edge_find(s, n, 0, &v, &copies)) {
        s->p.p += n;
    } else if (word_is(s->p.p, n, "scalar", 6) && attr_find(s->p.rule->op, s->p.p, n) >= 0) {
        v = (value){.scalar = true, .edge = made_up};
        s->p.p += n;
    } else {
        v.number = true;
        v.edge = made_up;
        attr_text(s, n, v.text);
    }
    return v;
}

/* ---- calls ------------------------------------------------------------------------------------ */

typedef struct call {
    char op[TN_NAME_MAX];
    uint32_t flags, count, max, attr_count;
    tn_edge *in;
    tn_attr_text attrs[ATTRS_MAX];
    char names[ATTRS_MAX][TEXT_MAX], texts[ATTRS_MAX][TEXT_MAX];
    bool zero; /* an argument does not arrive */
} call;

/* "name=text", "name=@attr" or "name=#argument"; false: none stands here. */
static bool call_attr(steps *s, call *c)
{
    const size_t n = word_length(s->p.p);
    uint32_t copies = 0;
    size_t length = 0;
    value v;

    if (!n || s->p.p[n] != '=')
        return false;
    if (c->attr_count == ATTRS_MAX || n >= TEXT_MAX) {
        fail(&s->p, "too many attributes");
        return true;
    }
    snprintf(c->names[c->attr_count], TEXT_MAX, "%.*s", (int)n, s->p.p);
    s->p.p += n + 1;
    c->attrs[c->attr_count] = (tn_attr_text){c->names[c->attr_count], c->texts[c->attr_count]};
    if (take(&s->p, "@")) {
        attr_text(s, word_length(s->p.p), c->texts[c->attr_count++]);
        return true;
    }
    if (take(&s->p, "#")) {
        if (!edge_find(s, word_length(s->p.p), 0, &v, &copies))
            fail(&s->p, "no argument has this name");
        snprintf(c->texts[c->attr_count++], TEXT_MAX, "%u", copies);
        s->p.p += word_length(s->p.p);
        return true;
    }
    length = *s->p.p == '(' ? strcspn(s->p.p, ")") + 1 : strcspn(s->p.p, ",)");
    if (length >= TEXT_MAX || length > strlen(s->p.p))
        fail(&s->p, "the text of an attribute is too long");
    else
        snprintf(c->texts[c->attr_count++], TEXT_MAX, "%.*s", (int)length, s->p.p);
    s->p.p += s->p.st ? 0 : length;
    return true;
}

static void call_push(steps *s, call *c, const value *v, bool head)
{
    if (v->number || v->scalar)
        fail(&s->p, "an operator's argument is a number");
    else if (c->count == c->max)
        fail(&s->p, "too many arguments");
    else if (!v->absent) {
        c->in[c->count++] = v->edge;
        c->zero = c->zero || (!v->edge.node && !head);
    }
}

/* One argument, or with "*" all copies; of heads some may not arrive. */
static void call_arg(steps *s, call *c)
{
    const char *name = s->p.p + (*s->p.p == '~');
    const size_t n = word_length(name);
    uint32_t copies = 1;
    value v;

    if (!n || name[n] != '*' || (name[n + 1] != ',' && name[n + 1] != ')')) {
        v = value_read(s);
        call_push(s, c, &v, false);
        return;
    }
    s->p.p = name;
    for (uint32_t k = 0; k < (s->g ? copies : 1) && !s->p.st; k++) {
        if (!edge_find(s, n, k, &v, &copies))
            fail(&s->p, "no argument has this name");
        call_push(s, c, &v, true);
    }
    s->p.p += n + 1;
}

static value call_read(steps *s)
{
    const size_t n = word_length(s->p.p);
    call c = {.max = RULE_ARGS_MAX + (s->g ? s->g->in_count + s->g->out_count : 0)};
    value out = {.edge = made_up};

    if (s->p.depth++ >= DEPTH_MAX || n >= sizeof c.op)
        fail(&s->p, "too many brackets, or a name that is too long");
    if (!s->p.st && !(c.in = tni_calloc(c.max, sizeof *c.in)))
        s->p.st = TN_E_NOMEM;
    if (s->p.st)
        return out;
    snprintf(c.op, sizeof c.op, "%.*s", (int)n, s->p.p);
    s->p.p += n;
    c.flags = take(&s->p, "!") ? TN_EMIT_INHERIT : 0;
    expect(&s->p, "(");
    do {
        blanks(&s->p);
        if (!call_attr(s, &c))
            call_arg(s, &c);
        blanks(&s->p);
    } while (take(&s->p, ","));
    expect(&s->p, ")");
    if (c.zero)
        out.edge.node = NULL;
    else
        out = node_emit(s, c.op, c.flags, c.count, c.in, c.attr_count, c.attrs);
    tni_free(c.in);
    s->p.depth--;
    return out;
}

/* ---- expressions ------------------------------------------------------------------------------ */

static value fact_read(steps *s)
{
    value v = {.edge = made_up};
    size_t n;

    blanks(&s->p);
    if (s->p.st)
        return v;
    if (digit(*s->p.p) || (*s->p.p == '-' && digit(s->p.p[1])))
        return number_read(s);
    if (s->p.depth >= DEPTH_MAX) {
        fail(&s->p, "too many brackets");
        return v;
    }
    if (take(&s->p, "-")) {
        s->p.depth++;
        v = fact_read(s);
        s->p.depth--;
        if (v.number || v.scalar)
            fail(&s->p, "a sign stands before a number by name");
        return s->p.st ? v : call1(s, "negative", v);
    }
    if (take(&s->p, "(")) {
        s->p.depth++;
        v = value_read(s);
        s->p.depth--;
        expect(&s->p, ")");
        return v;
    }
    (void)take(&s->p, "~");
    n = word_length(s->p.p);
    return n && (s->p.p[n] == '(' || (s->p.p[n] == '!' && s->p.p[n + 1] == '(')) ? call_read(s)
                                                                                 : name_read(s);
}

static void fact_to(void *self, void *out)
{
    *(value *)out = fact_read(self);
}

static void sign_apply(void *self, const tni_sign *sign, void *a, const void *b)
{
    *(value *)a = apply(self, sign, *(value *)a, *(const value *)b);
}

static value value_read(steps *s)
{
    static const tni_expr language = {TNI_SIGNS_ORDER | TNI_SIGNS_SUM | TNI_SIGNS_PRODUCT | TNI_SIGNS_POWER,
                                      false, " ", fact_to, sign_apply};
    value v;

    _Static_assert(sizeof v <= TNI_EXPR_VALUE_MAX, "a value fits");
    tni_expr_read(&language, s, &s->p.p, &s->p.st, &v);
    return v;
}

/* ---- steps ------------------------------------------------------------------------------------ */

/* An input gets its gradient: one edge, or with `all` the outputs of one node. */
static void input_set(steps *s, uint32_t index, uint32_t count, bool all, tn_edge e)
{
    for (uint32_t k = 0; !s->p.st && s->g && e.node && k < (all ? count : 1); k++, e.index++) {
        if (s->class != CLASS_COMPOSED) {
            const tn_edge in[] = {e, tn_grad_input(s->g, index + k)};

            e = node_emit(s, "_sum_like", 0, 2, in, 0, NULL).edge;
        }
        if (!s->p.st)
            s->p.st = s->g->ops->set(s->g, index + k, e);
    }
}

static void local_set(steps *s, const char *name, size_t n, tn_edge e)
{
    if (s->local_count == LOCALS_MAX || n == 0) {
        fail(&s->p, n ? "too many names" : "a name is missing");
        return;
    }
    s->locals[s->local_count].name = name;
    s->locals[s->local_count].bytes = n;
    s->locals[s->local_count++].edge = e;
}

/* What nobody wants is only read. */
static void step_read(steps *s)
{
    tn_grad *const g = s->g;
    const char *name;
    uint32_t index, copies = 0;
    bool all, wanted = false;
    size_t n;
    value v;

    blanks(&s->p);
    name = s->p.p;
    n = word_length(name);
    index = input_find(s, n, &copies);
    s->p.p += n;
    all = take(&s->p, "*");
    blanks(&s->p);
    expect(&s->p, "=");
    for (uint32_t k = 0; g && index != UINT32_MAX && k < copies; k++)
        wanted = wanted || g->ops->needs(g, index + k);
    if (index != UINT32_MAX && !wanted)
        s->g = NULL;
    v = value_read(s);
    if (v.number || v.scalar)
        fail(&s->p, "a gradient is a number");
    if (s->p.st)
        return;
    if (index == UINT32_MAX)
        local_set(s, name, n, v.edge);
    else
        input_set(s, index, copies, all, v.edge);
    s->g = g;
    blanks(&s->p);
}

/* A row of steps among rows with an arrow is one step: behind it stands the second derivative. */
static void steps_read(steps *s)
{
    do
        step_read(s);
    while ((s->row || s->p.rule->gradient_class >= CLASS_COMPOSED) && take(&s->p, ";"));
}

static steps steps_of(const tni_shape_rule *r, const rule_gradient *row, tn_grad *g)
{
    steps s = {.p = {.rule = (tni_shape_rule *)(uintptr_t)r, .which = "gradient", .text = r->op->gradients},
               .g = g,
               .row = row};

    s.class = !row && r->gradient_class > CLASS_COMPOSED ? r->gradient_class : CLASS_COMPOSED;
    for (uint8_t a = 0; a < RULE_ARGS_MAX; a++)
        s.copies[a] = 1;
    return s;
}

void tni_gradient_steps_read(parser *p, const rule_gradient *row, bool factor)
{
    steps s = steps_of(p->rule, row, NULL);
    value v;

    s.p = *p;
    if (factor) {
        v = value_read(&s);
        if (v.number || v.scalar)
            fail(&s.p, "a factor is a number");
    } else {
        steps_read(&s);
    }
    blanks(&s.p);
    p->p = s.p.p;
    p->st = s.p.st;
}

/* How many copies of each argument the backward operator has: what is variadic takes what is left. */
static void copies_count(steps *s)
{
    const tni_shape_rule *r = s->p.rule;
    uint32_t left = s->g->in_count;

    for (uint8_t a = 0; a < r->in_count + r->out_count; a++)
        s->copies[a] = r->cases[0].arg[a].variadic ? 0 : tni_shape_rule_present(r, a, s->g->attrs);
    for (uint8_t k = 0; k < s->row->in_count; k++)
        left -= s->copies[s->row->in[k].arg];
    for (uint8_t k = 0; k < s->row->in_count; k++)
        if (r->cases[0].arg[s->row->in[k].arg].variadic)
            s->copies[s->row->in[k].arg] = left;
}

static tn_status steps_begin(steps *s, const char *text)
{
    tn_infer i = {.op = s->p.rule->op,
                  .attrs = s->g->attrs,
                  .in_count = s->g->in_count,
                  .out_count = s->g->out_count,
                  .err = s->g->err};

    s->p.p = text;
    if (!s->row)
        return tni_rule_slots(s->p.rule, &i, s->first, s->copies);
    copies_count(s);
    return TN_OK;
}

tn_status tni_gradient_steps(const tni_shape_rule *r, const rule_gradient *row, const char *text, tn_grad *g)
{
    steps s = steps_of(r, row, g);

    if ((s.p.st = steps_begin(&s, text)))
        return s.p.st;
    steps_read(&s);
    return s.p.st;
}

tn_status tni_gradient_factor(const tni_shape_rule *r, const rule_gradient *row, const char *text, tn_grad *g,
                              tn_edge *out)
{
    steps s = steps_of(r, row, g);
    value v;

    if ((s.p.st = steps_begin(&s, text)))
        return s.p.st;
    v = apply(&s, &tni_sign_times, of_edge(tn_grad_of(g, 0)), of_edge(tn_grad_input(g, 0)));
    v = apply(&s, &tni_sign_times, v, value_read(&s));
    *out = v.edge;
    return s.p.st;
}
