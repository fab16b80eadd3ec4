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
        cmocka_unit_test(backward_is_made),    cmocka_unit_test(bad_gradients_are_refused),
        cmocka_unit_test(classes_are_checked), cmocka_unit_test(missing_input_needs_none),
        cmocka_unit_test(first_use),           cmocka_unit_test(mangled_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
