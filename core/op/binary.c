/*
 * Gradients of operators of two operands. A row gives, for each operand, what arrives times the partial
 * derivative, written with operators of the same set (elementwise, broadcasting, or NumPy's, whose operands
 * may differ in type), so that every order of derivative exists. Where operands were broadcast, the result is
 * summed back to the operand's shape and type.
 */
#include "op/binary.h"

#include <string.h>

typedef enum set { ELEMWISE, BROADCAST, NUMPY } set;

typedef struct binary {
    tn_grad *g;
    tn_status st;
    set set;
    tn_edge dy, l, r, y;
} binary;

/* Operator `name` of the same set: broadcast_mul, elemwise_mul, _power, _npi_multiply. */
static tn_edge op2(binary *b, const char *name, tn_edge p, tn_edge q)
{
    static const char *const names[][2] = {
        {"add", "add"}, {"sub", "subtract"}, {"mul", "multiply"}, {"div", "true_divide"}, {NULL, NULL}};
    size_t basic = 0;
    char text[64];

    while (names[basic][0] && strcmp(names[basic][0], name) != 0)
        basic++;
    snprintf(text, sizeof text, "%s%s",
             b->set == NUMPY           ? "_npi_"
             : b->set == BROADCAST     ? "broadcast_"
             : names[basic][0] != NULL ? "elemwise_"
                                       : "_",
             b->set == NUMPY && names[basic][0] ? names[basic][1] : name);
    return tni_grad_op2(b->g, &b->st, text, p, q);
}

/* Operator `name` of an operand and a number; NumPy's make floating point of whole numbers. */
static tn_edge number(binary *b, const char *legacy, const char *numpy, tn_edge e, const char *text)
{
    const tn_attr_text attrs[] = {{"scalar", text}, {"is_int", "False"}};
    tn_edge out = {NULL, 0, 0};

    if (b->set != NUMPY)
        return legacy ? tni_grad_scalar(b->g, &b->st, legacy, e, text) : e;
    if (!b->st)
        b->st = tn_grad_node(b->g, numpy, 1, &e, 2, attrs, &out);
    return out;
}

static tn_edge negative(binary *b, tn_edge e)
{
    return tni_grad_op1(b->g, &b->st, "negative", e);
}

static tn_edge pass(binary *b)
{
    return b->dy;
}

static tn_edge pass_negative(binary *b)
{
    return negative(b, b->dy);
}

static tn_edge mul_l(binary *b)
{
    return op2(b, "mul", b->dy, b->r);
}

static tn_edge mul_r(binary *b)
{
    return op2(b, "mul", b->dy, b->l);
}

static tn_edge div_l(binary *b)
{
    return op2(b, "div", b->dy, b->r);
}

static tn_edge div_r(binary *b)
{
    return negative(b, op2(b, "div", op2(b, "mul", b->dy, b->y), b->r));
}

static tn_edge mod_r(binary *b)
{
    tn_edge whole = tni_grad_op1(b->g, &b->st, "floor", op2(b, "div", b->l, b->r));

    return negative(b, op2(b, "mul", b->dy, whole));
}

static tn_edge power_l(binary *b)
{
    tn_edge less = number(b, "_plus_scalar", "_npi_add_scalar", b->r, "-1");

    return op2(b, "mul", b->dy, op2(b, "mul", b->r, op2(b, "power", b->l, less)));
}

static tn_edge power_r(binary *b)
{
    tn_edge l = number(b, NULL, "_npi_multiply_scalar", b->l, "1"); /* the logarithm of an integer is one */

    return op2(b, "mul", b->dy, op2(b, "mul", b->y, tni_grad_op1(b->g, &b->st, "log", l)));
}

static tn_edge maximum_l(binary *b)
{
    return op2(b, "mul", b->dy, op2(b, "greater_equal", b->l, b->r));
}

static tn_edge maximum_r(binary *b)
{
    return op2(b, "mul", b->dy, op2(b, "lesser", b->l, b->r));
}

static tn_edge minimum_l(binary *b)
{
    return op2(b, "mul", b->dy, op2(b, "lesser_equal", b->l, b->r));
}

static tn_edge minimum_r(binary *b)
{
    return op2(b, "mul", b->dy, op2(b, "greater", b->l, b->r));
}

static tn_edge hypot_l(binary *b)
{
    return op2(b, "mul", b->dy, op2(b, "div", b->l, b->y));
}

static tn_edge hypot_r(binary *b)
{
    return op2(b, "mul", b->dy, op2(b, "div", b->r, b->y));
}

/* dy / (l^2 + r^2) */
static tn_edge arctan2_part(binary *b)
{
    tn_edge l = tni_grad_op1(b->g, &b->st, "square", b->l), r = tni_grad_op1(b->g, &b->st, "square", b->r);

    return op2(b, "div", b->dy, op2(b, "add", l, r));
}

static tn_edge arctan2_l(binary *b)
{
    return op2(b, "mul", arctan2_part(b), b->r);
}

static tn_edge arctan2_r(binary *b)
{
    return negative(b, op2(b, "mul", arctan2_part(b), b->l));
}

/* y = |l| with the sign of r: the product of both signs. */
static tn_edge copysign_l(binary *b)
{
    tn_edge ones = tni_grad_op1(b->g, &b->st, "ones_like", b->l);
    tn_edge l = tni_grad_op2(b->g, &b->st, "_npi_copysign", ones, b->l);
    tn_edge r = tni_grad_op2(b->g, &b->st, "_npi_copysign", ones, b->r);

    return op2(b, "mul", b->dy, op2(b, "mul", l, r));
}

static tn_edge nothing(binary *b)
{
    return tni_grad_op1(b->g, &b->st, "zeros_like", b->r);
}

static tn_edge ldexp_l(binary *b)
{
    tn_edge ones = tni_grad_op1(b->g, &b->st, "ones_like", b->l);

    return op2(b, "mul", b->dy, tni_grad_op2(b->g, &b->st, "_npi_ldexp", ones, b->r));
}

static tn_edge ldexp_r(binary *b)
{
    return op2(b, "mul", b->dy, tni_grad_scalar(b->g, &b->st, "_mul_scalar", b->y, "0.6931471805599453"));
}

static const struct {
    const char *name; /* behind the prefix */
    tn_edge (*to_l)(binary *b), (*to_r)(binary *b);
} rows[] = {
    {"add", pass, pass},
    {"sub", pass, pass_negative},
    {"mul", mul_l, mul_r},
    {"div", div_l, div_r},
    {"mod", pass, mod_r},
    {"power", power_l, power_r},
    {"maximum", maximum_l, maximum_r},
    {"minimum", minimum_l, minimum_r},
    {"hypot", hypot_l, hypot_r},
    {"arctan2", arctan2_l, arctan2_r},
    {"copysign", copysign_l, nothing},
    {"ldexp", ldexp_l, ldexp_r},
};

static tn_status side_set(binary *b, uint32_t input, tn_edge (*partial)(binary *b))
{
    tn_edge e;

    if (!b->g->ops->needs(b->g, input))
        return TN_OK;
    e = partial(b);
    if (b->set != ELEMWISE)
        e = tni_grad_op2(b->g, &b->st, "_sum_like", e, input ? b->r : b->l);
    return tni_grad_set(b->g, &b->st, input, e);
}

static tn_status binary_grad(tn_grad *g, set of)
{
    const char *name = strrchr(of == NUMPY ? g->op->computes : g->op->name, '_') + 1;
    binary b = {.g = g,
                .set = of,
                .dy = tn_grad_of(g, 0),
                .l = tn_grad_input(g, 0),
                .r = tn_grad_input(g, 1),
                .y = tn_grad_output(g, 0)};
    tn_status st;

    if (!tni_grad_arrives(g))
        return TN_OK;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0) {
            st = side_set(&b, 0, rows[i].to_l);
            return st ? st : side_set(&b, 1, rows[i].to_r);
        }
    return tn_fail(g->err, TN_E_INTERNAL, "no row for its gradient");
}

tn_status tni_binary_grad_elemwise(tn_grad *g)
{
    return binary_grad(g, ELEMWISE);
}

tn_status tni_binary_grad_broadcast(tn_grad *g)
{
    return binary_grad(g, BROADCAST);
}

tn_status tni_binary_grad_numpy(tn_grad *g)
{
    return binary_grad(g, NUMPY);
}

tn_status tni_shape_pair(tn_infer *i)
{
    tn_shape out;
    tn_status st;

    if (i->in_shape[0]->ndim < 0 || i->in_shape[1]->ndim < 0)
        return TN_OK;
    if ((st = tni_shape_broadcast(i, i->in_shape[0], i->in_shape[1], &out)))
        return st;
    return tn_shape_unify(i, i->out_shape[0], &out);
}
