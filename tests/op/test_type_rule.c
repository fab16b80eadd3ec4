/*
 * Type rules as text: what they infer forwards and backwards, what they say of types that do not go together,
 * and which texts are refused.
 */
#include "rule_bench.h"

#include "op/op.h"

static const tn_attr_def type_attrs[] = {
    TN_ATTR_DTYPE("dtype", "None", ""),
    TN_ATTR_BOOL("is_int", "1", ""),
    TN_ATTR_BOOL("flag", "0", ""),
    TN_ATTR_INT("n", "1", ""),
    TN_ATTR_END,
};

#define TWO "a:(S..) b:(S..) -> c:(S..) d~:(S..)"
#define MANY "w?flag:(S..) a*:(S..) -> c:(S..)"

static const struct {
    const char *shapes, *types, *attrs, *given, *wanted; /* wanted begins with '!': the error says this */
} cases[] = {
    {TWO, "T:float", "", "f16 ? -> ? ?", "f16 f16 -> f16 f16"},
    {TWO, "T:float", "", "? ? -> ? f64", "f64 f64 -> f64 f64"},
    {TWO, "T:float", "", "i32 ? -> ? ?", "!int32 is no floating point type, cast it first"},
    {TWO, "T:number", "", "bool ? -> ? ?", "!bool is no number here"},
    {TWO, "T:integer", "", "? ? -> f32 ?", "!float32 is no integer type"},
    {TWO, "T:float", "", "f32 f16 -> ? ?", "!a float32 and b float16 do not go together, cast one of them"},
    {TWO, "b:I", "", "f32 i8 -> ? ?", "f32 i8 -> f32 f32"},
    {TWO, "b,d:I(integer)", "", "f32 i8 -> ? ?", "f32 i8 -> f32 i8"},
    {TWO, "b,d:I(integer)", "", "f32 f32 -> ? ?", "!float32 is no integer type"},
    {TWO, "b:stat(T)", "", "bf16 ? -> ? ?", "bf16 f32 -> bf16 bf16"},
    {TWO, "b:stat(T)", "", "? f64 -> ? ?", "f64 f64 -> f64 f64"},
    {TWO, "b:stat(T)", "", "? f32 -> ? ?", "? f32 -> ? ?"},
    {TWO, "b:stat(T)", "", "f16 f64 -> ? ?", "!b is float64, but should be float32 (stat(T))"},
    {TWO, "c:bool;d:i32", "", "f16 ? -> ? ?", "f16 f16 -> bool i32"},
    {TWO, "c:bool", "", "? ? -> f32 ?", "!c is float32, but should be bool"},
    {TWO, "c:attr(dtype)", "dtype=int8", "f16 ? -> ? ?", "f16 f16 -> i8 f16"},
    {TWO, "c:attr(dtype)", "", "f16 ? -> ? ?", "!attribute dtype is None"},
    {TWO, "c:attr(dtype,T)", "", "f16 ? -> ? ?", "f16 f16 -> f16 f16"},
    {TWO, "c:attr(dtype,or(f32))", "", "f16 ? -> ? ?", "f16 f16 -> f32 f16"},
    {TWO, "c:attr(dtype,or(f32))", "", "f16 ? -> f64 ?", "f16 f16 -> f64 f16"},
    {TWO, "c:attr(dtype):index", "dtype=int8", "f16 ? -> ? ?", "!dtype is int8, but indices are"},
    {TWO, "b:or(T)", "", "f16 ? -> ? ?", "f16 f16 -> f16 f16"},
    {TWO, "b:or(T)", "", "f16 i8 -> ? ?", "f16 i8 -> f16 f16"},
    {TWO, "T:or(attr(dtype))", "dtype=int8", "? ? -> ? ?", "i8 i8 -> i8 i8"},
    {TWO, "T:or(attr(dtype))", "dtype=int8", "? ? -> ? f16", "f16 f16 -> f16 f16"},
    {TWO, "T:promote(a,b)", "", "i8 u8 -> ? ?", "i8 u8 -> i16 i16"},
    {TWO, "T:promote(a,b)", "", "i32 f16 -> ? ?", "i32 f16 -> f16 f16"},
    {TWO, "T:promote(a,b)", "", "f16 bf16 -> ? ?", "f16 bf16 -> f32 f32"},
    {TWO, "T:promote(a,b)", "", "f16 ? -> ? ?", "f16 f16 -> f16 f16"},
    {TWO, "c:promote(a,b); d:bool", "", "? ? -> i8 ?", "i8 i8 -> i8 bool"},
    {TWO, "T:promote(a,b)", "", "i64 u64 -> ? ?", "!no type holds int64 and uint64"},
    {TWO, "T:promote(a,b)", "", "i64 i32 -> i8 ?", "!T is int8, but should be int64 (promote(a,b))"},
    {TWO, "T:promote(a,b); c:floatof(T)", "", "i8 i8 -> ? ?", "i8 i8 -> f32 i8"},
    {TWO, "T:promote(a,b); c:floatof(T)", "", "f16 i8 -> ? ?", "f16 i8 -> f16 f16"},
    {TWO, "c:scalar(T)", "", "bool ? -> ? ?", "bool bool -> i64 bool"},
    {TWO, "c:scalar(T)", "is_int=0", "i8 ? -> ? ?", "i8 i8 -> f64 i8"},
    {TWO, "c:scalar(T)", "is_int=0", "f16 ? -> ? ?", "f16 f16 -> f16 f16"},
    {TWO, "c:i32; [flag] c:i64", "", "f16 ? -> ? ?", "f16 f16 -> i32 f16"},
    {TWO, "c:i32; [flag] c:i64", "flag=1", "f16 ? -> ? ?", "f16 f16 -> i64 f16"},
    {MANY, "w:stat(T)", "", "f16 ? ? -> ?", "f16 f16 f16 -> f16"},
    {MANY, "w:stat(T)", "flag=1", "? ? f16 -> ?", "f32 f16 f16 -> f16"},
    {MANY, "w:stat(T)", "", "f16 ? i8 -> ?", "!a0 float16 and a2 int8"},
};

/* "f16 ? -> f32": types of all arguments; returns how many. */
static uint32_t types_read(const char *given, int32_t *in, int32_t *out, uint32_t *out_count)
{
    char text[128], *p = text;
    uint32_t count[2] = {0, 0}, side = 0;

    snprintf(text, sizeof text, "%s", given);
    for (char *word; (word = strsep(&p, " "));) {
        int32_t dtype = -1;

        if (strcmp(word, "->") == 0) {
            side = 1;
            continue;
        }
        if (*word != '?')
            assert_true(tni_dtype_parse(word, &dtype));
        (side ? out : in)[count[side]++] = dtype;
    }
    *out_count = count[1];
    return count[0];
}

static tn_op typed(const char *shapes, const char *types)
{
    return (tn_op){.struct_size = sizeof(tn_op),
                   .version = 1,
                   .name = "rule",
                   .attrs = type_attrs,
                   .shapes = shapes,
                   .types = types};
}

static void types_follow(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const tn_op op = typed(cases[k].shapes, cases[k].types);
        int32_t in[8], out[8], wanted[16];
        uint32_t out_count, in_count = types_read(cases[k].given, in, out, &out_count), outs;
        const char *equal = strchr(cases[k].attrs, '='), *text = equal ? equal + 1 : NULL;
        char name[16];
        const char *names[] = {name};
        const tni_opdef *def;
        tni_attrs *attrs = NULL;
        tni_opset *ops;
        tni_args args;
        tn_status st;

        snprintf(name, sizeof name, "%.*s", equal ? (int)(equal - cases[k].attrs) : 0, cases[k].attrs);
        assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
        if (tni_opset_add(ops, &op, NULL) || tni_opset_find(ops, "rule", &def) ||
            tni_attrs_parse(def, equal != NULL, names, &text, &attrs))
            fail_msg("%s", tni_error_message());
        assert_int_equal(tni_op_args(def, attrs, in_count, &args), TN_OK);
        assert_int_equal(args.out_count, out_count);
        st = tni_op_infer_dtype(def, attrs, &args, in, out);
        if (cases[k].wanted[0] == '!') {
            wrong += !st || !strstr(tni_error_message(), cases[k].wanted + 1);
        } else {
            in_count = types_read(cases[k].wanted, wanted, wanted + 8, &outs);
            wrong += st || memcmp(wanted, in, in_count * sizeof *in) != 0 ||
                     memcmp(wanted + 8, out, outs * sizeof *out) != 0;
        }
        if (wrong)
            fail_msg("case %zu: %s with %s: %s", k, cases[k].types, cases[k].given,
                     st ? tni_error_message() : "other types");
        tni_attrs_release(attrs);
        tni_opset_destroy(ops);
    }
}

/* Without a shape rule the definition's lists name the arguments. */
static void lists_name_arguments(void **state)
{
    tn_op op = typed(NULL, "rest:stat(T)");
    int32_t in[3] = {-1, TN_F64, -1}, out = -1;
    const tni_opdef *def;
    tni_opset *ops;
    tni_args args;

    (void)state;
    op.inputs = TNI_NAMES("first", "rest*");
    op.outputs = TNI_NAMES("output");
    op.shape = tni_shape_same;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_OK);
    assert_int_equal(tni_opset_find(ops, "rule", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, 3, &args), TN_OK);
    assert_int_equal(tni_op_infer_dtype(def, NULL, &args, in, &out), TN_OK);
    assert_int_equal(in[0], TN_F64);
    assert_int_equal(in[2], TN_F64);
    assert_int_equal(out, TN_F64);
    tni_opset_destroy(ops);
}

/* The meaning's types, or those of the row itself. */
static void meanings_have_types_of_their_own(void **state)
{
    static const tn_op meant = {.struct_size = sizeof(tn_op),
                                .version = 1,
                                .name = "meant",
                                .shapes = "a:(S..) b:(S..) -> c:(S..)",
                                .types = "T:float"};
    tn_op op = {.struct_size = sizeof op, .name = "row", .computes = "meant", .types = "c:bool"};
    int32_t in[2] = {TN_F16, -1}, out = -1;
    const tni_opdef *def;
    tni_opset *ops;
    tni_args args;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    assert_int_equal(tni_opset_add(ops, &meant, NULL), TN_OK);
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_OK);
    assert_int_equal(tni_opset_find(ops, "row", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, 2, &args), TN_OK);
    assert_int_equal(tni_op_infer_dtype(def, NULL, &args, in, &out), TN_OK);
    assert_int_equal(out, TN_BOOL);
    op.name = "other";
    op.types = "nothing:bool";
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG);
    op.types = NULL;
    op.gradients = "once: dy -> a";
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG);
    tni_opset_destroy(ops);
}

static const char *const bad[] = {
    "",
    ";",
    "T",
    "T:",
    ":float",
    "T:floats",
    "t:float",
    "TU:float",
    "e:T",
    "a,:T",
    "a b:T",
    "a:T;",
    "a:T b",
    "a:T(float",
    "a:T(f32)",
    "a:stat(T",
    "a:stat()",
    "a:stat(T,U)",
    "a:promote(T)",
    "a:promote(a,e)",
    "a:attr(n)",
    "a:attr(nothing)",
    "a:attr(dtype,)",
    "a:or(",
    "a:f31",
    "a:T:f32",
    "a:float:T",
    "[nothing] a:T",
    "[flag a:T",
    "a:T;a:T;a:T;a:T;a:T;a:T;a:T;a:T;a:T;a:T;a:T;a:T;a:T",
    "a:or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(or(T)))))))))))))))))))))))))",
};

static void bad_rules_are_refused(void **state)
{
    tni_opset *ops;
    size_t count;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    count = tni_opset_count(ops);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const tn_op op = typed(TWO, bad[k]);

        if (tni_opset_add(ops, &op, NULL) != TN_E_ARG)
            fail_msg("\"%s\" was taken", bad[k]);
        assert_non_null(strstr(tni_error_message(), "type rule: "));
    }
    assert_int_equal(tni_opset_count(ops), count);
    tni_opset_destroy(ops);
}

static tn_status no_types(tn_infer *i)
{
    (void)i;
    return TN_OK;
}

static void types_said_twice(void **state)
{
    tn_op op = typed(TWO, "T:float");
    tni_opset *ops;

    (void)state;
    op.dtype = no_types;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG);
    assert_non_null(strstr(tni_error_message(), "a type rule and a function `dtype`"));
    tni_opset_destroy(ops);
}

/* Each character changed to each of some others: refused or taken, but never anything else. */
static void mangled_rules(void **state)
{
    static const char others[] = " (),;:[]TabF3";
    char text[] = "T:float; [flag] a,b:I(index); c:attr(dtype,or(f32)); T:promote(a,stat(b)); d:scalar(T)";
    uint32_t taken = 0;

    (void)state;
    for (size_t at = 0; text[at]; at++) {
        const char was = text[at];

        for (const char *c = others; *c; c++) {
            const tn_op op = typed(TWO, text);
            int32_t types[4] = {TN_F16, -1, -1, TN_I8};
            tn_value values[] = {0, 1, 1, 1};
            tn_err err = {0};
            tni_ruled_op *made;
            tn_infer i = {.attrs = values,
                          .attr_count = 4,
                          .in_count = 2,
                          .out_count = 2,
                          .in_dtype = types,
                          .out_dtype = types + 2,
                          .err = &err};

            text[at] = *c;
            if (tni_ruled_op_create(&op, true, &made))
                continue;
            i.op = tni_ruled_op_definition(made);
            (void)i.op->dtype(&i);
            for (int k = 0; k < 4; k++)
                assert_in_range(types[k] + 1, 0, TN_DTYPE_LIMIT);
            tni_ruled_op_destroy(made);
            taken++;
        }
        text[at] = was;
    }
    assert_in_range(taken, 50, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_follow),
        cmocka_unit_test(lists_name_arguments),
        cmocka_unit_test(meanings_have_types_of_their_own),
        cmocka_unit_test(bad_rules_are_refused),
        cmocka_unit_test(types_said_twice),
        cmocka_unit_test(mangled_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
