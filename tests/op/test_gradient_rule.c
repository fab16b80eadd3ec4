/*
 * Gradient rules as text: the backward operators that they make, and which texts are refused.
 */
#include "rule_bench.h"

static void backward_is_made(void **state)
{
    const tni_opdef *back;
    char text[512];
    bench b = {0};

    (void)state;
    bench_open(&b, CONV, "bilinear: dy data weight -> data weight bias", "");
    assert_int_equal(tni_opset_find(b.ops, "_backward_rule", &back), TN_OK);
    assert_true(back->op->flags & TN_OP_BACKWARD);
    assert_string_equal(back->op->inputs[0], "dy");
    assert_string_equal(back->op->outputs[2], "d_bias");
    assert_int_equal(infer(&b, back, "2,4,6,6 2,3,8,8 ? -> ? ? ?", 0, text, sizeof text), TN_OK);
    assert_string_equal(text, "2,4,6,6 2,3,8,8 4,3,3,3 -> 2,3,8,8 4,3,3,3 4");
    assert_int_equal(infer(&b, back, "2,4,6,6 2,3,8,8 4,5,3,3 -> ? ? ?", 0, text, sizeof text), TN_E_SHAPE);
    bench_close(&b);
    bench_open(&b, CONV, "bilinear: dy data weight -> data weight bias", "no_bias=1");
    assert_int_equal(tni_opset_find(b.ops, "_backward_rule", &back), TN_OK);
    assert_int_equal(infer(&b, back, "? 2,3,8,8 ? -> ? ?", 0, text, sizeof text), TN_OK);
    assert_string_equal(text, "2,4,6,6 2,3,8,8 4,3,3,3 -> 2,3,8,8 4,3,3,3");
    bench_close(&b);
}

static tn_status second(tn_grad *g)
{
    (void)g;
    return TN_OK;
}

static void bad_gradients_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "dy a -> a",
        "linear dy -> a",
        "other: dy -> a",
        "once: dy a",
        "once: dy ->",
        "once: -> b",
        "once: dy nothing -> a",
        "once: dy2 a -> a",
        "once: dy -> dy",
        "own: dy -> a",
        "once: dy a -> a | ",
        "once: [nothing] dy -> a",
        "once: dy -> a ;",
    };
    tn_op op = {.struct_size = sizeof op,
                .version = 1,
                .name = "rule",
                .attrs = rule_attrs,
                .shapes = "a:(N) -> b:(N)"};
    const tni_opdef *def;
    tni_opset *ops;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        op.gradients = bad[i];
        if (tni_opset_add(ops, &op, NULL) != TN_E_ARG)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(tni_opset_find(ops, "rule", &def), TN_E_KEY);
    }
    op.gradients = "once: dy -> a";
    op.second = second;
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG); /* a function that no class asks for */
    op.gradients = "own: dy -> a";
    op.shape = tni_shape_same;
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG); /* shapes said twice */
    op.shape = NULL;
    op.gradient = second;
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG); /* gradient said twice */
    op.gradient = NULL;
    op.gradients = NULL;
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG); /* second of what? */
    op.gradients = "own: dy -> a";
    op.shapes = NULL;
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG); /* gradient of what? */
    op.shapes = "a:(N) -> b:(N)";
    op.computes = "exp";
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG); /* shapes said twice */
    op.computes = NULL;
    assert_int_equal(tni_opset_add(ops, &op, (tni_plugin *)&op), TN_OK); /* a plugin's is like any other */
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_KEY);
    tni_opset_destroy(ops);
}

/* What the class of a gradient rule promises, its rows give. */
static void classes_are_checked(void **state)
{
    static const struct {
        const char *shapes, *gradients;
        uint32_t flags;
        bool good;
    } rows[] = {
        {"a:(N) -> b:(N)", "linear: dy -> a", 0, true},
        {"a:(N) -> b:(N)", "linear: dy a -> a", 0, true},
        {"a:(N) -> b:(N)", "linear: a dy -> a", 0, false},
        {"a:(N) -> b:(N)", "linear: a -> a", TN_OP_IGNORE_HEAD, false},
        {"a:(N) -> b:(N)", "linear: dy a b -> a", 0, false},
        {"a:(N) w:(N) -> b:(N)", "linear: dy a w -> a", 0, true},
        {"a:(N) w:(N) -> b:(N)", "linear: dy -> a", 0, false},
        {"a:(N) w:(N) -> b:(N)", "linear: dy a -> w", 0, true},
        {"a:(N) w:(N) -> b:(N)", "linear: dy w -> a w=0", 0, true},
        {"a:(N) w:(N) -> b:(N)", "linear: dy ~w -> w", 0, false},
        {"a*:(N) -> b:(N)", "linear: dy ~a* -> a*", 0, true},
        {"a*:(N) -> b:(N)", "linear: dy ~a -> a", 0, false},
        {"a*:(N) -> b:(N)", "linear: ~a* dy -> a*", 0, false},
        {"a:(N) w:(N) -> b:(N)", "linear: dy a w -> a w", 0, false},
        {CONV, "bilinear: dy data weight -> data weight bias", 0, true},
        {CONV, "bilinear: data dy weight -> data weight bias", 0, false},
        {CONV, "bilinear: dy weight data -> data weight bias", 0, false},
        {CONV, "bilinear: dy data weight bias -> data weight bias", 0, false},
        {CONV, "bilinear: dy data weight -> data weight", 0, false},
        {CONV, "bilinear: dy data weight -> weight data bias", 0, false},
        {"a:(N) w?flag:(N) -> b:(N)", "bilinear: dy a w -> a w", 0, false},
        {"a:(N) w:(N) c?!flag:(N) -> b:(N)", "bilinear: dy a w -> a w c", 0, false},
        {"a:(N) w:(N) c:(N) -> b:(N)", "bilinear: dy a w -> a w c", 0, false},
        {"a:(N) -> b:(N)", "once: b -> a", 0, false},
        {"a:(N) -> b:(N)", "once: b -> a", TN_OP_IGNORE_HEAD, true},
        {"a:(N) -> b:(N)", "once: [flag] dy -> a | b -> a", 0, false},
        {"a:(N) -> b:(N)", "once: dy dy -> a", 0, false},
        {"a:(N) -> b:(N)", "once: dy -> a a", 0, false},
        {"a:(N) c*:(M) -> b:(N)", "once: dy a -> a", 0, true},
        {"a:(N) -> b:(N)", "pointwise: dy a -> a", 0, true},
        {"a:(N) -> b:(N)", "pointwise: dy b -> a ; 1-b*2", 0, true},
        {"a:(N) -> b:(N)", "pointwise: dy a -> a ; 0", 0, true},
        {"a:(N) -> b:(N)", "pointwise: dy a b -> a ; 0", 0, false},
        {"a:(N) -> b:(N)", "pointwise: dy a -> a ; 2", 0, false},
        {"a:(N) -> b:(N)", "linear: dy a -> a ; a", 0, false},
        {"a:(N) -> b:(N)", "once: dy -> a=0", 0, false},
        {"a:(N) -> b:(N)", "once: [flag] 0 | dy a -> a", 0, true},
        {"a:(N) -> b:(N)", "once: [flag] 0", 0, false},
        {"-> b:(N)", "once: dy -> b", 0, false},
    };

    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const tn_op op = {.struct_size = sizeof op,
                          .version = 1,
                          .name = "rule",
                          .attrs = rule_attrs,
                          .flags = rows[k].flags,
                          .shapes = rows[k].shapes,
                          .gradients = rows[k].gradients};
        tni_opset *ops;

        assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
        if ((tni_opset_add(ops, &op, NULL) == TN_OK) != rows[k].good)
            fail_msg("%s, %s: %s", rows[k].shapes, rows[k].gradients, tni_error_message());
        tni_opset_destroy(ops);
    }
}

static tn_edge any_edge(tn_grad *g, uint32_t index)
{
    return (tn_edge){.node = (void *)g, .index = index};
}

static tn_status count_emits(tn_grad *g, const tn_emit *e, tn_edge *out)
{
    (void)out;
    *(uint32_t *)g->self += e->in_count;
    return TN_OK;
}

static tn_status set_any(tn_grad *g, uint32_t input, tn_edge edge)
{
    (void)g, (void)edge;
    return input == 1 ? TN_OK : TN_E_ARG;
}

/* Where the inputs that get a gradient are missing, no backward operator runs. */
static void missing_input_needs_none(void **state)
{
    static const tn_grad_ops ops = {.head = any_edge, .emit = count_emits, .set = set_any};

    (void)state;
    for (uint32_t flag = 0; flag < 2; flag++) {
        uint32_t read = 0;
        bench b = {0};
        tn_err err = {0};
        tn_grad g = {.struct_size = sizeof g,
                     .in_count = 1 + flag,
                     .out_count = 1,
                     .err = &err,
                     .ops = &ops,
                     .self = &read};

        bench_open(&b, "a:(N) m?flag:(N) -> b:(N)", "once: dy -> m", flag ? "flag=1" : "");
        g.op = b.def->op;
        g.attrs = b.attrs->values;
        assert_int_equal(g.op->gradient(&g), TN_OK);
        assert_int_equal(read, flag);
        bench_close(&b);
    }
}

/* The core's own definitions: only names are read when they are added. */
static void first_use(void **state)
{
    static const char *const texts[2][2] = {{"a:(N)^nothing -> b:(N)", "once: dy a -> a"},
                                            {"a:(N) -> b:(N)", "once: dy a -> a | nothing"}};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const tn_op op = {.struct_size = sizeof op,
                          .version = 1,
                          .name = "rule",
                          .attrs = rule_attrs,
                          .shapes = texts[k][0],
                          .gradients = texts[k][1]};
        tni_ruled_op *made, *back;

        assert_int_equal(tni_ruled_op_create(&op, false, &made), TN_OK);
        assert_int_equal(tni_ruled_op_backward(made, &back), TN_OK);
        assert_string_equal(tni_ruled_op_definition(back)->inputs[1], "a");
        assert_string_equal(tni_ruled_op_definition(back)->outputs[0], "d_a");
        assert_int_equal(tni_ruled_op_parse(tni_ruled_op_definition(made)), TN_E_ARG);
        tni_ruled_op_destroy(back);
        tni_ruled_op_destroy(made);
    }
}

/* ---- steps ------------------------------------------------------------------------------------ */

#define TEXTS 64

/* A gradient whose edges are texts: the node of an edge is one, its index the output. */
typedef struct recorder {
    char text[TEXTS][256];
    uint32_t count;
    const char *const *in, *const *out;
    char set[512];
} recorder;

static tn_edge edge_said(recorder *r, const char *what, const char *name)
{
    assert_in_range(r->count, 0, TEXTS - 1);
    snprintf(r->text[r->count], sizeof *r->text, "%s%s", what, name);
    return (tn_edge){.node = r->text[r->count++], .index = 0};
}

static tn_edge said_input(tn_grad *g, uint32_t index)
{
    return edge_said(g->self, "", ((recorder *)g->self)->in[index]);
}

static tn_edge said_output(tn_grad *g, uint32_t index)
{
    return edge_said(g->self, "", ((recorder *)g->self)->out[index]);
}

/* Nothing arrives at output 1. */
static tn_edge said_head(tn_grad *g, uint32_t index)
{
    return index == 1 ? (tn_edge){NULL, 1, 0} : edge_said(g->self, "h", index ? "2" : "");
}

static int32_t said_needs(tn_grad *g, uint32_t index)
{
    return strcmp(((recorder *)g->self)->in[index], "idle") != 0;
}

static tn_status said_emit(tn_grad *g, const tn_emit *e, tn_edge *out)
{
    recorder *r = g->self;
    char text[256];
    size_t n = (size_t)snprintf(text, sizeof text, "%s%s(", e->op, e->flags & TN_EMIT_INHERIT ? "!" : "");

    for (uint32_t k = 0; k < e->in_count; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", k ? "," : "",
                              e->in[k].node ? (const char *)e->in[k].node : "-");
    for (uint32_t k = 0; k < e->attr_count; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",%s=%s", e->attrs[k].name, e->attrs[k].text);
    snprintf(text + n, sizeof text - n, ")");
    *out = edge_said(r, text, "");
    return TN_OK;
}

static tn_status said_set(tn_grad *g, uint32_t input, tn_edge edge)
{
    recorder *r = g->self;
    const size_t n = strlen(r->set);

    snprintf(r->set + n, sizeof r->set - n, "%s%s: %s%s", n ? "; " : "", r->in[input],
             (const char *)edge.node, edge.index ? "#1" : "");
    return TN_OK;
}

static const char *const said_ab[] = {"a", "b"};
static const char *const said_a_idle[] = {"a", "idle"};
static const char *const said_c[] = {"c"};
static const char *const said_back[] = {"dy", "a"};
static const char *const said_many[] = {"a0", "a1"};
static const char *const said_parts[] = {"c0", "c1", "c2"};

#define TWO "a:(S..) b:(S..) -> c:(S..)"
#define ONE "a:(S..) -> c:(S..)"

static const struct {
    const char *shapes, *gradients, *attrs;
    bool back; /* the second derivative */
    const char *const *in, *const *out;
    uint32_t in_count, out_count;
    const char *made;
} steps[] = {
    {TWO, "composed: a = dy*b ; b = -(dy*c/b)", "", false, said_ab, said_c, 2, 1,
     "a: elemwise_mul(h,b); b: negative(elemwise_div(elemwise_mul(h,c),b))"},
    {TWO, "broadcast: a = dy*(a>=b)", "", false, said_ab, said_c, 2, 1,
     "a: _sum_like(broadcast_mul(h,broadcast_greater_equal(a,b)),a)"},
    {TWO, "numpy: a = dy*b^(b-1)", "", false, said_ab, said_c, 2, 1,
     "a: _sum_like(_npi_multiply(h,_npi_power(b,_npi_subtract_scalar(b,scalar=1,is_int=False))),a)"},
    {TWO, "composed: a = 2-dy*3 ; b = 1/c^-0.5+2^b", "", false, said_ab, said_c, 2, 1,
     "a: _rminus_scalar(_mul_scalar(h,scalar=3),scalar=2); b: elemwise_add(_rdiv_scalar(_power_scalar(c,"
     "scalar=-0.5),scalar=1),_rpower_scalar(b,scalar=2))"},
    {"a:(S..) idle:(S..) -> c:(S..)", "composed: t = exp(~a) ; idle = t*dy ; a = t", "", false, said_a_idle,
     said_c, 2, 1, "a: exp(a)"},
    {ONE, "composed: a = f!(dy, x=@n, y=(1,2), z=w)", "n=7", false, said_ab, said_c, 1, 1,
     "a: f!(h,x=7,y=(1,2),z=w)"},
    {ONE, "composed: a = dy*scale", "scale=0.25", false, said_ab, said_c, 1, 1,
     "a: _mul_scalar(h,scalar=0.25)"},
    {ONE, "composed: a = dy/size", "", false, said_ab, said_c, 1, 1, "a: h"},
    {"a:(S..) b?flag:(S..) -> c:(S..)", "composed: a = f(dy, b) ; b = zeros_like(b)", "", false, said_ab,
     said_c, 1, 1, "a: f(h)"},
    {"a*:(S..) -> c:(S..)", "composed: a* = split(dy, n=#a)", "", false, said_many, said_c, 2, 1,
     "a0: split(h,n=2); a1: split(h,n=2)#1"},
    {"a:(S..) -> c*n:(S..)", "composed: a = join(dy*)", "n=3", false, said_ab, said_parts, 1, 3,
     "a: join(h,-,h2)"},
    {"a:(S..) -> c:(S..) d:(S..)", "composed: a = dy-dy1+dy1*c", "", false, said_ab, said_parts, 1, 2,
     "a: h"},
    {"a:(S..) -> c:(S..) d:(S..)", "composed: a = dy1-dy", "", false, said_ab, said_parts, 1, 2,
     "a: negative(h)"},
    {TWO, "once: [flag] 0 | dy -> a b=0", "flag=1", false, said_ab, said_c, 2, 1,
     "a: zeros_like(a); b: zeros_like(b)"},
    {TWO, "once: [flag] 0 | dy ~a -> a b=0", "", false, said_ab, said_c, 2, 1,
     "a: _backward_rule!(h,a); b: zeros_like(b)"},
    {ONE, "pointwise: dy a -> a ; [flag] 0 | exp(a)", "", true, said_back, said_ab, 2, 1,
     "dy: _backward_rule!(h,a); a: elemwise_mul(elemwise_mul(h,dy),exp(a))"},
    {ONE, "pointwise: dy a -> a ; [flag] 0 | exp(a)", "flag=1", true, said_back, said_ab, 2, 1,
     "dy: _backward_rule!(h,a)"},
    {ONE, "own: dy a -> a ; dy = h*a ; a = h*dy", "", true, said_back, said_ab, 2, 1,
     "dy: elemwise_mul(h,a); a: elemwise_mul(h,dy)"},
    {ONE, "linear: dy ~a -> a", "", true, said_back, said_ab, 2, 1, "dy: rule!(h)"},
};

static void steps_make_nodes(void **state)
{
    static const tn_grad_ops ops = {.struct_size = sizeof ops,
                                    .input = said_input,
                                    .output = said_output,
                                    .head = said_head,
                                    .needs = said_needs,
                                    .emit = said_emit,
                                    .set = said_set};

    (void)state;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        recorder r = {.in = steps[k].in, .out = steps[k].out};
        tn_err err = {0};
        tn_grad g = {.struct_size = sizeof g,
                     .in_count = steps[k].in_count,
                     .out_count = steps[k].out_count,
                     .err = &err,
                     .ops = &ops,
                     .self = &r};
        const tni_opdef *def;
        bench b = {0};

        bench_open(&b, steps[k].shapes, steps[k].gradients, steps[k].attrs);
        assert_int_equal(tni_opset_find(b.ops, steps[k].back ? "_backward_rule" : "rule", &def), TN_OK);
        g.op = def->op;
        g.attrs = b.attrs->values;
        if (g.op->gradient(&g) != TN_OK || strcmp(r.set, steps[k].made) != 0)
            fail_msg("%s: %s, not %s (%s)", steps[k].gradients, r.set, steps[k].made, err.message);
        bench_close(&b);
    }
}

static void bad_steps_are_refused(void **state)
{
    static const char *const bad[] = {
        "a",
        "a =",
        "a = 2",
        "a = n",
        "a = nothing",
        "a = dy2",
        "a = dy +",
        "a = (dy",
        "a = dy)",
        "a = f(dy",
        "a = f(2)",
        "a = f(dy, x=)x",
        "a = f(dy, x=@nothing)",
        "a = f(dy, x=@live)",
        "a = f(dy, x=#nothing)",
        "a = f(dy, a=1, b=2, c=3, d=4, e=5)",
        "a = dy ; ",
        "a = 2*3",
        "a = 2 > dy",
        "a = dy | ",
        "= dy",
        "a = -n",
        "a = live*dy",
        "s = dy ; t = dy ; u = dy ; v = dy ; w = dy ; x = dy ; y = dy ; z = dy ; q = dy",
    };
    char deep[256] = "a = ";
    tni_opset *ops;

    (void)state;
    for (int k = 0; k < 100; k++)
        strcat(deep, "-(");
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    for (size_t k = 0; k <= sizeof bad / sizeof *bad; k++) {
        char text[300];
        const tn_op op = {.struct_size = sizeof op,
                          .version = 1,
                          .name = "rule",
                          .attrs = rule_attrs,
                          .shapes = ONE,
                          .gradients = text};

        snprintf(text, sizeof text, "composed: %s", k < sizeof bad / sizeof *bad ? bad[k] : deep);
        if (tni_opset_add(ops, &op, NULL) != TN_E_ARG)
            fail_msg("\"%s\" was taken", text);
        assert_non_null(strstr(tni_error_message(), "gradient rule: "));
    }
    tni_opset_destroy(ops);
}

static void mangled_rules(void **state)
{
    bench b = {0};

    (void)state;
    bench_open(&b, "a:(N) -> b:(N)", NULL, "");
    mangle(&b, "aS:(A..) a0?flag:(B..)/(N,B..) -> N:(A..&B..) _~flag:(#A) S*n:(permute(A..))",
           "once: [mode=b+c] dy dy1 a0 N -> aS | [!flag] dy1 aS -> aS a0 | dy aS -> aS");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_is_made),
        cmocka_unit_test(bad_gradients_are_refused),
        cmocka_unit_test(classes_are_checked),
        cmocka_unit_test(missing_input_needs_none),
        cmocka_unit_test(first_use),
        cmocka_unit_test(steps_make_nodes),
        cmocka_unit_test(bad_steps_are_refused),
        cmocka_unit_test(mangled_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
