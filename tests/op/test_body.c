/* Bodies of pointwise operators: what they become, and what is refused when the definition is added. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "op/body.h"
#include "support/scratch.h"
#include "tenon/plugin/attr.h"

#include <cmocka.h>

static const tn_attr_def attrs[] = {TN_ATTR_FLOAT_RUN("beta", "1", ""), TN_ATTR_INT("whole", "3", ""),
                                    TN_ATTR_FLOAT("scale", "0.5", ""),  TN_ATTR_INT_RUN("count", "1", ""),
                                    TN_ATTR_TEXT("text", "", ""),       TN_ATTR_END};
static const char *const inputs[] = {"x", "y", NULL}, *const output[] = {"output", NULL};

static tn_status shape_same(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

#define DEFINITION(body_)                                                                                    \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, body), .version = 1, .name = "acme_body", .doc = "a body",    \
        .attrs = attrs, .inputs = inputs, .outputs = output, .flags = TN_OP_POINTWISE, .shape = shape_same,  \
        .body = (body_)                                                                                      \
    }

/* Bodies, and the code of float64 with the default attributes. Numbers are the bits of doubles. */
static const struct {
    const char *body, *code;
} good[] = {
    {"exp(x)", "exp[](i0):1>t0"},
    {"x", "_copy[](i0):1>t0"},
    {" ( x ) * y ", "elemwise_mul[](i0,i1):1>t0"},
    {"x - y - x", "elemwise_sub[](i0,i1):1;elemwise_sub[](t0,i0):1>t1"},
    {"x - (y - x)", "elemwise_sub[](i1,i0):1;elemwise_sub[](i0,t0):1>t1"},
    {"x + y * x", "elemwise_mul[](i1,i0):1;elemwise_add[](i0,t0):1>t1"},
    {"2 - x", "_rminus_scalar[4000000000000000,1](i0):1>t0"},
    {"x / 2e0", "_div_scalar[4000000000000000,1](i0):1>t0"},
    {"1 + 1 - x", "_rminus_scalar[4000000000000000,1](i0):1>t0"},
    {"beta * x", "_mul_scalar[r0,1](i0):1>t0"},
    {"scale * x", "_mul_scalar[3fe0000000000000,1](i0):1>t0"},
    {"x + whole", "_plus_scalar[4008000000000000,1](i0):1>t0"},
    {"-x", "negative[](i0):1>t0"},
    {"-beta * x", "_mul_scalar[r0,1](i0):1;negative[](t0):1>t1"},
    {"-2 * x", "_mul_scalar[c000000000000000,1](i0):1>t0"},
    {"x > 0", "_greater_scalar[0,1](i0):1>t0"},
    {"0 > x", "_lesser_scalar[0,1](i0):1>t0"},
    {"x <= y", "_lesser_equal[](i0,i1):1>t0"},
    {"maximum(x, 0)", "_maximum_scalar[0,1](i0):1>t0"},
    {"power(2, x)", "_rpower_scalar[4000000000000000,1](i0):1>t0"},
    {"where(x > y, x, y)", "_greater[](i0,i1):1;where[](t0,i0,i1):1>t1"},
    {"where(x, 1, y)", "ones_like[](i0):1;_mul_scalar[3ff0000000000000,1](t0):1;where[](i0,t1,i1):1>t2"},
    {"beta", "ones_like[](i0):1;_mul_scalar[r0,1](t0):1;_copy[](t1):1>t2"},
    {"_npi_exp(x)", "exp[](i0):1>t0"},
};

static void read_well(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const tn_op op = DEFINITION(good[i].body);
        const tni_opdef *def = NULL;
        tni_opset *ops = NULL;
        tni_attrs *defaults = NULL;
        tn_point_code code;
        tni_str text;

        tni_str_init(&text, 4096);
        assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
        if (tni_opset_add(ops, &op, NULL))
            fail_msg("%s: %s", good[i].body, tni_error_message());
        assert_int_equal(tni_opset_find(ops, "acme_body", &def), TN_OK);
        assert_int_equal(tni_attrs_parse(def, 0, NULL, NULL, &defaults), TN_OK);
        tni_body_code(def, defaults, TN_F64, &code);
        assert_int_equal(tni_point_write(&code, &text), TN_OK);
        assert_string_equal(text.text, good[i].code);
        assert_int_equal(tn_point_read(text.text, &code, NULL), TN_OK);
        tni_str_fini(&text);
        tni_attrs_release(defaults);
        tni_opset_destroy(ops);
    }
}

/* Bodies, and what the message says. */
static const struct {
    const char *body, *says;
} bad[] = {
    {"", "byte 0: a number, an input"},
    {"x +", "byte 3: a number"},
    {"x y", "byte 2: an operation or the end"},
    {"x )", "byte 2: an operation or the end"},
    {"(x", "byte 2: a ) is expected"},
    {"exp(x", "byte 5: a ) is expected"},
    {"z", "byte 1: a name that is no input"},
    {"expo(x)", "byte 7: a call of something that is no pointwise operator"},
    {"softmax(x)", "a call of something that is no pointwise operator"},
    {"sum(x)", "a call of something that is no pointwise operator"},
    {"clip(x, 1)", "an unknown function, or the number"},
    {"where(x, y)", "an unknown function, or the number"},
    {"maximum(x)", "a call of something that is no"},
    {"maximum(x, y, x, y)", "more than three arguments"},
    {"x < y < x", "byte 6: an operation or the end"},
    {"text * x", "an attribute that is no number"},
    {"count * x", "an attribute that is no number"},
    {"1.2.3 * x", "byte 0: a number"},
    {"1e999 * x", "byte 0: a number"},
    {"x ** y", "byte 3: a number"},
    {"x $ y", "byte 2: an operation"},
    {"x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x", "more than 32 operations"},
    {"((((((((((((((((((((((((((((((((((x))))))))))))))))))))))))))))))))))", "more than 32 levels"},
    {"----------------------------------x", "more than 32 levels"},
};

static void refuse(const tn_op *op, const char *says)
{
    tni_opset *ops = NULL;

    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    assert_int_equal(tni_opset_add(ops, op, NULL), TN_E_ARG);
    if (!strstr(tni_error_message(), says))
        fail_msg("\"%s\" does not say: %s", tni_error_message(), says);
    tni_opset_destroy(ops);
}

static void refused(void **state)
{
    static const char *const more[] = {"data*", NULL}, *const two[] = {"a", "b", NULL};
    static char text[5000];
    tn_op op = DEFINITION("x");

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const tn_op wrong = DEFINITION(bad[i].body);

        refuse(&wrong, bad[i].says);
    }
    op.flags = 0;
    refuse(&op, "a body is for pointwise operators");
    op.flags = TN_OP_POINTWISE;
    op.outputs = two;
    refuse(&op, "a body is for pointwise operators");
    op.outputs = output;
    op.inputs = more;
    refuse(&op, "a body is for pointwise operators");
    op.inputs = inputs;
    op.effects = TN_EFFECT_RANDOM;
    refuse(&op, "a body is for pointwise operators");
    op.effects = 0;
    memset(text, ' ', sizeof text - 2);
    text[sizeof text - 2] = 'x';
    op.body = text;
    refuse(&op, "longer than 4096 bytes");
}

/* A shape rule may name the arguments, if they are always there. */
static void ruled(void **state)
{
    static const char *const vary[] = {"x:(S..) y?count:x -> o:x", "x*:(S..) -> o:x",
                                       "[count] x:(S..) -> o:x | x:(S..) y:x -> o:x", "x:(S..) -> o:x p~:x"};
    tn_op op = DEFINITION("x + x");
    tni_opset *ops = NULL;

    (void)state;
    op.inputs = op.outputs = NULL;
    op.shape = NULL;
    for (size_t i = 0; i < sizeof vary / sizeof *vary; i++) {
        op.shapes = vary[i];
        refuse(&op, "operator acme_body: ");
    }
    op.shapes = "x:(S..) -> o:x";
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    if (tni_opset_add(ops, &op, NULL))
        fail_msg("%s", tni_error_message());
    tni_opset_destroy(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_well), cmocka_unit_test(refused),
                                       cmocka_unit_test(ruled)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
