/* Operators and shortcuts for the tests of room graph. */
#include "graph/support.h"

#include "op/shape_rule.h"

#include <stdlib.h>

/* ---- operators ----------------------------------------------------------------------------------- */

static tn_status same_shape(tn_infer *i)
{
    for (int round = 0; round < 2; round++)
        for (uint32_t k = 1; k < i->in_count + i->out_count; k++) {
            tn_shape *s = k < i->in_count ? i->in_shape[k] : i->out_shape[k - i->in_count];
            tn_status st = tn_shape_unify(i, i->in_shape[0], s);

            if (st)
                return st;
        }
    return TN_OK;
}

static tn_status mul_grad(tn_grad *g)
{
    const tn_edge a[] = {tn_grad_of(g, 0), tn_grad_input(g, 1)},
                  b[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};
    tn_status st = g->ops->needs(g, 0) ? tn_grad_emit(g, 0, "t_mul", 2, a) : TN_OK;

    return st || !g->ops->needs(g, 1) ? st : tn_grad_emit(g, 1, "t_mul", 2, b);
}

static tn_status pair_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_of(g, 1)};

    return tn_grad_emit(g, 0, "t_sum2", 2, in);
}

static tn_status sum2_grad(tn_grad *g)
{
    tn_status st = g->ops->set(g, 0, tn_grad_of(g, 0));

    return st ? st : g->ops->set(g, 1, tn_grad_of(g, 0));
}

static tn_status loss_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_output(g, 0), tn_grad_input(g, 1)};

    return tn_grad_emit(g, 0, "t_sum2", 2, in);
}

static tn_status bad_grad(tn_grad *g)
{
    const tn_edge in[] = {{(void *)(uintptr_t)0x7fffffff, 0, 0}};

    return tn_grad_emit(g, 0, "t_stop", 1, in);
}

/* A flag, and an edge, that mean nothing yet. */
static tn_status flag_grad(tn_grad *g)
{
    const tn_edge in = tn_grad_of(g, 0);
    const tn_emit e = {
        (uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT | 64u, "t_stop", &in, NULL, 1, 0};
    tn_edge out;

    return g->ops->emit(g, &e, &out);
}

static tn_status mark_grad(tn_grad *g)
{
    tn_edge edge = tn_grad_of(g, 0);

    edge.reserved = 1;
    return g->ops->set(g, 0, edge);
}

static tn_status fade_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_input(g, 0)};

    return tn_grad_emit(g, 0, "zeros_like", 1, in);
}

static const char *const in_data[] = {"data", NULL};
static const char *const in_two[] = {"lhs", "rhs", NULL};
static const char *const in_state[] = {"data", "state", NULL};
static const char *const in_label[] = {"data", "label", NULL};
static const char *const in_args[] = {"arg*", NULL};
static const char *const out_one[] = {"output", NULL};
static const char *const out_pair[] = {"first", "second", NULL};
static const char *const out_hidden[] = {"output", "hidden", NULL};
static const tn_attr_def many_attrs[] = {
    {.name = "num_args",
     .type = TN_ATTR_T_INT,
     .flags = TN_ATTR_F_COUNT,
     .default_text = NULL,
     .doc = "inputs",
     .min = 1,
     .max = 4096},
    {.name = NULL},
};

#define TEST_OP(n, ins, outs)                                                                                \
    .struct_size = sizeof(tn_op), .version = 1, .name = n, .doc = n, .inputs = ins, .outputs = outs

static const tn_op ops_of_tests[] = {
    {TEST_OP("t_mul", in_two, out_one), .shape = same_shape, .gradient = mul_grad},
    {TEST_OP("t_pair", in_data, out_pair), .shape = same_shape, .gradient = pair_grad},
    {TEST_OP("t_sum2", in_two, out_one), .shape = same_shape, .gradient = sum2_grad},
    {TEST_OP("t_state", in_state, out_hidden), .shape = same_shape, .mutates = 2, .visible = 1,
     .gradient = fade_grad},
    {TEST_OP("t_draw", in_data, out_one), .shape = same_shape, .effects = TN_EFFECT_RANDOM,
     .gradient = fade_grad},
    {TEST_OP("t_loss", in_label, out_one), .shape = same_shape, .flags = TN_OP_IGNORE_HEAD,
     .gradient = loss_grad},
    {TEST_OP("t_stop", in_data, out_one), .shape = same_shape, .flags = TN_OP_ZERO_GRADIENT},
    {TEST_OP("t_none", in_data, out_one), .shape = same_shape},
    {TEST_OP("t_bad", in_data, out_one), .shape = same_shape, .gradient = bad_grad},
    {TEST_OP("t_flag", in_data, out_one), .shape = same_shape, .gradient = flag_grad},
    {TEST_OP("t_mark", in_data, out_one), .shape = same_shape, .gradient = mark_grad},
    {TEST_OP("t_fade", in_data, out_one), .shape = same_shape, .gradient = fade_grad},
    {TEST_OP("t_many", in_args, out_one), .attrs = many_attrs, .shape = same_shape},
};

tni_opset *test_ops(void)
{
    tni_opset *ops = NULL;

    assert_ok(tni_opset_create(NULL, &ops));
    for (size_t i = 0; i < sizeof ops_of_tests / sizeof *ops_of_tests; i++)
        assert_ok(tni_opset_add(ops, &ops_of_tests[i], NULL));
    for (size_t i = 0; i < tni_opset_count(ops); i++) /* now: tests count what is allocated later */
        assert_ok(tni_ruled_op_parse(tni_opset_at(ops, i)->op));
    return ops;
}

void test_ops_close(tni_opset *ops)
{
    tni_opset_destroy(ops);
}

/* ---- symbols ------------------------------------------------------------------------------------- */

tni_symbol *var(tni_opset *ops, const char *name)
{
    tni_symbol *s = NULL;

    assert_ok(tni_symbol_variable(ops, name, &s));
    return s;
}

static tni_symbol *atomic(tni_opset *ops, const char *op, const char *attrs)
{
    char *names[16], *texts[16], *copy = strdup(attrs ? attrs : ""), *rest = copy, *part;
    tni_symbol *s = NULL;
    size_t count = 0;

    while (*rest && (part = strsep(&rest, ";"))) {
        names[count] = part;
        texts[count] = strchr(part, '=');
        *texts[count]++ = '\0';
        count++;
        if (!rest)
            break;
    }
    assert_ok(
        tni_symbol_atomic(ops, op, count, (const char *const *)names, (const char *const *)texts, NULL, &s));
    free(copy);
    return s;
}

tni_symbol *op2(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a,
                tni_symbol *b)
{
    tni_symbol *const args[] = {a, b};
    tni_symbol *s = atomic(ops, op, attrs), *out = NULL;

    assert_ok(tni_symbol_compose(s, name, a ? b ? 2 : 1 : 0, NULL, args, &out));
    tni_symbol_release(s);
    return out;
}

tni_symbol *op1(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a)
{
    return op2(ops, op, attrs, name, a, NULL);
}

tni_symbol *take2(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a,
                  tni_symbol *b)
{
    tni_symbol *s = op2(ops, op, attrs, name, a, b);

    tni_symbol_release(a);
    tni_symbol_release(b);
    return s;
}

tni_symbol *take1(tni_opset *ops, const char *op, const char *attrs, const char *name, tni_symbol *a)
{
    return take2(ops, op, attrs, name, a, NULL);
}

char *names_of(tni_symbol *s, int32_t what)
{
    char **names = NULL, *text = NULL;
    size_t count = 0;
    tni_str all;

    assert_ok(tni_symbol_list(s, what, &count, &names));
    tni_str_init(&all, TN_TEXT_MAX);
    for (size_t i = 0; i < count; i++)
        tni_str_addf(&all, "%s%s", i ? " " : "", names[i]);
    assert_ok(tni_str_take(&all, &text));
    tni_str_fini(&all);
    tni_free(names);
    return text;
}

uint32_t node_of(const tni_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->node_count; i++)
        if (strcmp(g->nodes[i].name, name) == 0)
            return i;
    fail_msg("no node %s", name);
    return 0;
}

tni_symbol *test_lenet(tni_opset *ops)
{
    tni_symbol *x = var(ops, "data");

    x = take1(ops, "Convolution", "kernel=(5, 5);num_filter=20", "conv1", x);
    x = take1(ops, "Activation", "act_type=tanh", "tanh1", x);
    x = take1(ops, "Pooling", "kernel=(2, 2);pool_type=max;stride=(2, 2)", "pool1", x);
    x = take1(ops, "Convolution", "kernel=(5, 5);num_filter=50", "conv2", x);
    x = take1(ops, "Activation", "act_type=tanh", "tanh2", x);
    x = take1(ops, "Pooling", "kernel=(2, 2);pool_type=max;stride=(2, 2)", "pool2", x);
    x = take1(ops, "Flatten", NULL, "flatten", x);
    x = take1(ops, "FullyConnected", "num_hidden=500", "fc1", x);
    x = take1(ops, "Activation", "act_type=tanh", "tanh3", x);
    x = take1(ops, "FullyConnected", "num_hidden=10", "fc2", x);
    return take1(ops, "SoftmaxOutput", NULL, "softmax", x);
}

uint32_t test_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}
