/*
 * Reads a gradient rule, and checks that its rows give what its class promises to second.c.
 */
#include "op/shape_rule_parser.h"

/* "dy", "dy1" or the name of an argument, of all copies with "*". */
static rule_role role_read(parser *p, bool left)
{
    const tni_shape_rule *r = p->rule;
    rule_role role = {.unread = left && take(p, "~")};
    const size_t n = word_length(p->p);
    const bool numbered = n == 3 && digit(p->p[2]);

    role.arg = tni_rule_arg_find(p, n);
    if (role.arg == RULE_NONE && (n == 2 || numbered) && memcmp(p->p, "dy", 2) == 0) {
        role.head = true;
        role.arg = (uint8_t)(r->in_count + (numbered ? p->p[2] - '0' : 0));
    }
    if (n == 0 || role.arg >= r->in_count + r->out_count)
        fail(p, "no argument has this name");
    else if (!left && (role.head || role.arg >= r->in_count))
        fail(p, "only inputs get gradients");
    if (p->st)
        return role;
    p->p += n;
    if (r->cases[0].arg[role.arg].variadic != take(p, "*"))
        fail(p, "\"*\" stands behind a variadic argument");
    role.zero = !left && take(p, "=0");
    if (!p->st && role.head && r->cases[0].arg[role.arg].variadic)
        fail(p, "what arrives at a variadic output is read in steps");
    return role;
}

static void roles_read(parser *p, bool left, uint8_t *count, rule_role *roles)
{
    for (blanks(p); !p->st && *p->p && *p->p != '|' && *p->p != ';' && strncmp(p->p, "->", 2) != 0;
         blanks(p)) {
        const rule_role role = role_read(p, left);

        if (*count == RULE_ARGS_MAX)
            fail(p, "too many arguments");
        else if (*count && p->rule->cases[0].arg[roles[*count - 1].arg].variadic)
            fail(p, "a variadic argument stands last");
        else
            roles[(*count)++] = role;
    }
}

static bool reads(const rule_gradient *g, uint8_t arg)
{
    for (uint8_t k = 0; k < g->in_count; k++)
        if (!g->in[k].head && g->in[k].arg == arg)
            return true;
    return false;
}

static bool gives(const rule_gradient *g, uint8_t arg)
{
    for (uint8_t k = 0; k < g->out_count; k++)
        if (!g->out[k].zero && g->out[k].arg == arg)
            return true;
    return false;
}

/* One input gets a gradient. The operator of what arrives there reads all others from the backward one. */
static bool is_linear(const tni_shape_rule *r, const rule_gradient *g)
{
    uint8_t given = 0;

    for (uint8_t a = 0; a < r->in_count; a++) {
        given += gives(g, a);
        if (!gives(g, a) && !reads(g, a))
            return false;
    }
    for (uint8_t k = 0; k < g->in_count; k++)
        if (!g->in[k].head && g->in[k].arg >= r->in_count)
            return false;
    return given == 1;
}

/* Whether an argument is there but for the attribute that tni_grad_of_product sets. */
static bool is_bias(const tni_shape_rule *r, const rule_arg *arg)
{
    const rule_cond *c = arg->cond == RULE_NONE ? NULL : &r->conds[arg->cond];

    return c && c->truth && c->negated && c->next == RULE_NONE &&
           strcmp(r->op->attrs[c->attr].name, "no_bias") == 0;
}

/* The same of tni_grad_of_product: both operands, and a bias that may be missing. */
static bool is_bilinear(const tni_shape_rule *r, const rule_gradient *g)
{
    bool good = g->in_count == 3 && g->out_count == r->in_count && (r->in_count == 2 || r->in_count == 3);

    for (uint8_t k = 0; good && k < r->in_count; k++) {
        const rule_arg *arg = &r->cases[0].arg[k];

        good = g->out[k].arg == k;
        if (k == 2)
            good = good && is_bias(r, arg);
        else
            good = good && !g->in[k + 1].head && g->in[k + 1].arg == k && arg->cond == RULE_NONE;
    }
    return good;
}

static bool twice(const rule_role *roles, uint8_t count)
{
    for (uint8_t a = 0; a < count; a++)
        for (uint8_t b = 0; b < a; b++)
            if (roles[a].arg == roles[b].arg && roles[a].head == roles[b].head)
                return true;
    return false;
}

/* What holds for every row, and for those of a class. */
static void gradient_check(parser *p, const rule_gradient *g)
{
    const tni_shape_rule *r = p->rule;
    const bool read = g->in_count && g->in[0].head && g->in[0].arg == r->in_count;
    bool head = false;

    for (uint8_t k = 0; k < g->in_count; k++)
        head = head || g->in[k].head;
    if (g->out_count == 0 || (g->out[0].zero && g->out_count == 1))
        fail(p, "an input is missing");
    if (twice(g->in, g->in_count) || twice(g->out, g->out_count))
        fail(p, "an argument is there twice");
    if (!head && !(r->op->flags & TN_OP_IGNORE_HEAD))
        fail(p, "dy is missing: only a loss layer (TN_OP_IGNORE_HEAD) does not read it");
    if (r->gradient_class == CLASS_LINEAR && !(read && is_linear(r, g)))
        fail(p, "linear: dy comes first, one input gets a gradient, and all others are read");
    if (r->gradient_class == CLASS_POINTWISE && !(read && g->in_count == 2 && r->in_count == 1))
        fail(p, "pointwise: dy and the input or the output are read");
    if (r->gradient_class == CLASS_BILINEAR && !(read && is_bilinear(r, g)))
        fail(p,
             "bilinear: dy and the first two inputs are read, these get gradients, and a third one that is "
             "there if !no_bias");
}

static uint8_t guard_read(parser *p)
{
    uint8_t cond = RULE_NONE;

    blanks(p);
    if (take(p, "[")) {
        cond = tni_rule_cond_read(p);
        expect(p, "]");
    }
    blanks(p);
    return cond;
}

/* "name =" stands here, or "name* =". */
static bool steps_ahead(const parser *p)
{
    const char *at = p->p + word_length(p->p);

    at += *at == '*';
    at += strspn(at, " ");
    return *at == '=' && at > p->p;
}

static void gradient_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    rule_gradient *g = &r->gradients[table_add(p, &r->gradient_count, RULE_GRADIENTS_MAX)];

    *g = (rule_gradient){.cond = guard_read(p)};
    if (p->st)
        return;
    if (*p->p == '0') {
        g->zero = take(p, "0");
    } else if (r->gradient_class >= CLASS_COMPOSED || steps_ahead(p)) {
        g->steps = p->p;
        tni_gradient_steps_read(p, NULL, false);
    } else {
        roles_read(p, true, &g->in_count, g->in);
        expect(p, "->");
        roles_read(p, false, &g->out_count, g->out);
        if (!p->st)
            gradient_check(p, g);
    }
    blanks(p);
}

/* The second derivative of what the last row computes; rows before it read the same, or less. */
static void second_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    rule_second *s = &r->seconds[table_add(p, &r->second_count, RULE_SECONDS_MAX)];

    *s = (rule_second){.cond = guard_read(p)};
    s->text = p->p;
    if (*p->p == '0' && !word_length(p->p + 1) && p->p[1] != '.')
        s->zero = take(p, "0");
    else if (!p->st)
        tni_gradient_steps_read(p, tni_gradient_row(r), r->gradient_class == CLASS_POINTWISE);
    blanks(p);
}

const rule_gradient *tni_gradient_row(const tni_shape_rule *r)
{
    for (uint8_t k = 0; k < r->gradient_count; k++)
        if (r->gradients[k].out_count)
            return &r->gradients[k];
    return NULL;
}

static void class_read(parser *p)
{
    static const char *const classes[] = {
        [CLASS_LINEAR] = "linear:",       [CLASS_BILINEAR] = "bilinear:",
        [CLASS_POINTWISE] = "pointwise:", [CLASS_OWN] = "own:",
        [CLASS_ONCE] = "once:",           [CLASS_COMPOSED] = "composed:",
        [CLASS_BROADCAST] = "broadcast:", [CLASS_NUMPY] = "numpy:",
    };
    tni_shape_rule *r = p->rule;

    for (uint8_t k = CLASS_LINEAR; k <= CLASS_NUMPY && r->gradient_class == CLASS_NONE; k++)
        if (take(p, classes[k]))
            r->gradient_class = k;
    if (r->gradient_class == CLASS_NONE)
        fail(p, "linear:, bilinear:, pointwise:, own:, once:, composed:, broadcast: or numpy: is missing");
    else if (r->gradient_class != CLASS_OWN && r->op->second)
        fail(p, "own: is missing, which the function `second` is for");
}

void tni_rule_gradients_read(parser *p, const char *text)
{
    tni_shape_rule *r = p->rule;
    bool composed;

    p->which = "gradient";
    p->text = p->p = text;
    class_read(p);
    composed = r->gradient_class >= CLASS_COMPOSED;
    if (p->heads && composed)
        return;
    do
        gradient_read(p);
    while (!(p->heads && tni_gradient_row(r)) && take(p, "|"));
    if (p->heads || p->st)
        return;
    if (!composed && !tni_gradient_row(r))
        fail(p, "a row with an arrow is missing");
    if (take(p, ";"))
        do
            second_read(p);
        while (take(p, "|"));
    if (r->second_count && r->gradient_class != CLASS_OWN && r->gradient_class != CLASS_POINTWISE)
        fail(p, "the class says the second derivative");
    if (r->gradient_class == CLASS_OWN && !r->second_count == !r->op->second)
        fail(p, "own: the second derivative is steps behind \";\", or a function `second`");
    if (!p->st && *p->p)
        fail(p, "something is left over");
}
