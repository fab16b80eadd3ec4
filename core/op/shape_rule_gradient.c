/*
 * Reads a gradient rule, and checks that its rows give what its class promises to second.c.
 */
#include "op/shape_rule_parser.h"

/* "dy", "dy1" or the name of an argument. */
static rule_role role_read(parser *p, bool left)
{
    const tni_shape_rule *r = p->rule;
    const size_t n = word_length(p->p);
    const bool numbered = n == 3 && digit(p->p[2]);
    rule_role role = {0};

    while (role.arg < r->in_count + r->out_count &&
           (r->cases[0].arg[role.arg].bytes != n ||
            memcmp(r->text + r->cases[0].arg[role.arg].text, p->p, n) != 0))
        role.arg++;
    if (role.arg == r->in_count + r->out_count && (n == 2 || numbered) && memcmp(p->p, "dy", 2) == 0)
        role = (rule_role){true, (uint8_t)(r->in_count + (numbered ? p->p[2] - '0' : 0))};
    if (n == 0 || role.arg >= r->in_count + r->out_count)
        fail(p, "no argument has this name");
    else if (!left && (role.head || role.arg >= r->in_count))
        fail(p, "only inputs get gradients");
    else if (r->cases[0].arg[role.arg].variadic)
        fail(p, "a variadic argument needs a function `gradient`");
    p->p += n;
    return role;
}

static void roles_read(parser *p, bool left, uint8_t *count, rule_role *roles)
{
    for (blanks(p); !p->st && *p->p && *p->p != '|' && strncmp(p->p, "->", 2) != 0; blanks(p)) {
        const rule_role role = role_read(p, left);

        if (*count == RULE_ARGS_MAX)
            fail(p, "too many arguments");
        else
            roles[(*count)++] = role;
    }
}

/* Whether the gradient of one input and the reading of the others are all that tni_grad_of_linear needs. */
static bool is_linear(const tni_shape_rule *r, const rule_gradient *g)
{
    const bool alone = r->in_count == 1 && g->in_count <= 2;
    const bool beside = r->in_count == 2 && g->in_count == 3 && !g->in[2].head && g->in[2].arg == 1;

    return g->out_count == 1 && g->out[0].arg == 0 && (alone || beside);
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
    const bool read = g->in_count && g->in[0].head;
    bool head = false;

    for (uint8_t k = 0; k < g->in_count; k++)
        head = head || g->in[k].head;
    if (g->out_count == 0)
        fail(p, "an input is missing");
    if (twice(g->in, g->in_count) || twice(g->out, g->out_count))
        fail(p, "an argument is there twice");
    if (!head && !(r->op->flags & TN_OP_IGNORE_HEAD))
        fail(p, "dy is missing: only a loss layer (TN_OP_IGNORE_HEAD) does not read it");
    if (r->gradient_class == CLASS_LINEAR && !(read && is_linear(r, g)))
        fail(p, "linear: dy comes first, one input gets a gradient, and the other one is read third");
    if (r->gradient_class == CLASS_BILINEAR && !(read && g->in[0].arg == r->in_count && is_bilinear(r, g)))
        fail(p,
             "bilinear: dy and the first two inputs are read, these get gradients, and a third one that is "
             "there if !no_bias");
}

static void gradient_read(parser *p)
{
    tni_shape_rule *r = p->rule;
    rule_gradient *g = &r->gradients[table_add(p, &r->gradient_count, RULE_GRADIENTS_MAX)];

    *g = (rule_gradient){.cond = RULE_NONE};
    blanks(p);
    if (take(p, "[")) {
        g->cond = tni_rule_cond_read(p);
        expect(p, "]");
    }
    roles_read(p, true, &g->in_count, g->in);
    expect(p, "->");
    roles_read(p, false, &g->out_count, g->out);
    if (!p->st)
        gradient_check(p, g);
}

void tni_rule_gradients_read(parser *p)
{
    static const char *const classes[] = {[CLASS_LINEAR] = "linear:",
                                          [CLASS_BILINEAR] = "bilinear:",
                                          [CLASS_OWN] = "own:",
                                          [CLASS_ONCE] = "once:"};
    tni_shape_rule *r = p->rule;

    p->which = "gradient";
    p->text = p->p = r->op->gradients;
    for (uint8_t k = CLASS_LINEAR; k <= CLASS_ONCE && r->gradient_class == CLASS_NONE; k++)
        if (take(p, classes[k]))
            r->gradient_class = k;
    if (r->gradient_class == CLASS_NONE || (r->gradient_class == CLASS_OWN) != (r->op->second != NULL))
        fail(p, "linear:, bilinear:, once: or, with a function `second`, own: is missing");
    if (r->in_count && r->cases[0].arg[r->in_count - 1].variadic)
        fail(p, "an operator with a variadic input needs a function `gradient`");
    do
        gradient_read(p);
    while (!p->heads && take(p, "|"));
    if (!p->st && !p->heads && *p->p)
        fail(p, "something is left over");
}
