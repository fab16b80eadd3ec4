/* Attribute values: text in and out, ranges, inheritance, hostile text, failing memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "op/op.h"
#include "support/scratch.h"
#include "tenon/plugin/attr.h"

#include <cmocka.h>

static const tn_attr_def all_attrs[] = {
    TN_ATTR_INT("i", "1", "integer"),
    TN_ATTR_INT_IN("small", "3", 1, 5, "integer in a range"),
    TN_ATTR_FLOAT("f", "0.5", "number"),
    TN_ATTR_BOOL("b", "False", "truth"),
    TN_ATTR_CHOICE("c", "x", "x|yy|None", "choice"),
    TN_ATTR_TEXT("t", "None", "text"),
    TN_ATTR_TUPLE_IN("tuple", "()", -10, 4611686018427387904.0, "tuple"),
    TN_ATTR_DTYPE("dtype", "None", "type"),
    TN_ATTR_OPT_INT("oi", "None", "integer or none"),
    TN_ATTR_OPT_FLOAT("of", "None", "number or none"),
    TN_ATTR_OPT_BOOL("ob", "None", "truth or none"),
    TN_ATTR_FLOATS("fs", "None", "numbers"),
    TN_ATTR_OPT_TUPLE("ot", "()", "tuple with holes"),
    TN_ATTR_FLOAT_RUN("run", "2", "run-time number"),
    TN_ATTR_END,
};
static const tn_attr_def run_attrs[] = {
    TN_ATTR_INT("i", "1", "structural"),
    TN_ATTR_ROW("tuple", TN_ATTR_T_TUPLE, TN_ATTR_F_RUNTIME, NULL, "(1, 2)", 1.0, 0.0, "run-time tuple"),
    TN_ATTR_ROW("ot", TN_ATTR_T_OPT_TUPLE, TN_ATTR_F_RUNTIME, NULL, "()", 1.0, 0.0, "with holes"),
    TN_ATTR_ROW("fs", TN_ATTR_T_FLOATS, TN_ATTR_F_RUNTIME, NULL, "None", 1.0, 0.0, "run-time numbers"),
    TN_ATTR_FLOAT_RUN("run", "2", "run-time number"),
    TN_ATTR_END,
};
static const tn_attr_def other_attrs[] = {
    TN_ATTR_CHOICE("c", "q", "q|None|yy|x", "the choices in another order"),
    TN_ATTR_TUPLE("tuple", "(7,)", "tuple"),
    TN_ATTR_TEXT("i", "None", "another type of this name"),
    TN_ATTR_FLOAT_RUN("run", "3", "run-time number"),
    TN_ATTR_FLOAT("needed", TN_REQUIRED, "must be given"),
    TN_ATTR_END,
};
static const char *const names_data[] = {"data", NULL};

static tn_status shape_any(tn_infer *i)
{
    (void)i;
    return TN_OK;
}

static const tn_op all_op = {.struct_size = TN_END(tn_op, gradient),
                             .version = 1,
                             .name = "all",
                             .doc = "test",
                             .attrs = all_attrs,
                             .inputs = names_data,
                             .outputs = names_data,
                             .shape = shape_any};
static const tn_op run_op = {.struct_size = TN_END(tn_op, gradient),
                             .version = 1,
                             .name = "runs",
                             .doc = "test",
                             .attrs = run_attrs,
                             .inputs = names_data,
                             .outputs = names_data,
                             .shape = shape_any};
static const tn_op other_op = {.struct_size = TN_END(tn_op, gradient),
                               .version = 1,
                               .name = "other",
                               .doc = "test",
                               .attrs = other_attrs,
                               .inputs = names_data,
                               .outputs = names_data,
                               .shape = shape_any};
static tni_opset *ops;
static const tni_opdef *all, *other;

static int open_all(void **state)
{
    (void)state;
    return tni_opset_create(NULL, &ops) || tni_opset_add(ops, &all_op, NULL) ||
           tni_opset_add(ops, &other_op, NULL) || tni_opset_find(ops, "all", &all) ||
           tni_opset_find(ops, "other", &other);
}

static int close_all(void **state)
{
    (void)state;
    tni_opset_destroy(ops);
    return 0;
}

static tn_status parse(const char *name, const char *text, tni_attrs **out)
{
    return tni_attrs_parse(all, 1, &name, &text, out);
}

/* ---- text to value to text -------------------------------------------------------------------- */

static const struct {
    const char *name, *in, *out; /* out NULL: refused */
} texts[] = {
    {"i", "5", "5"},
    {"i", "-9223372036854775808", "-9223372036854775808"},
    {"i", "9223372036854775807", "9223372036854775807"},
    {"i", "9223372036854775808", NULL},
    {"i", "", NULL},
    {"i", "5.0", NULL},
    {"i", "5x", NULL},
    {"i", "0x5", NULL},
    {"i", "None", NULL},
    {"small", "5", "5"},
    {"small", "6", NULL},
    {"small", "0", NULL},
    {"f", "0.9", "0.9"},
    {"f", "1", "1.0"},
    {"f", "1e-5", "1e-05"},
    {"f", "0.0001", "0.0001"},
    {"f", "1e16", "1e+16"},
    {"f", "123456789", "123456789.0"},
    {"f", "1e15", "1000000000000000.0"},
    {"f", "-0", "-0.0"},
    {"f", "inf", "inf"},
    {"f", "-inf", "-inf"},
    {"f", "nan", "nan"},
    {"f", "1e-300", "1e-300"},
    {"f", "0.1", "0.1"},
    {"f", "3.14159", "3.14159"},
    {"f", "5e-324", "5e-324"},
    {"f", "1.7976931348623157e308", "1.7976931348623157e+308"},
    {"f", "1,5", NULL},
    {"f", "", NULL},
    {"f", "1.5 ", NULL},
    {"f", "one", NULL},
    {"b", "True", "True"},
    {"b", "true", "True"},
    {"b", "1", "True"},
    {"b", "0", "False"},
    {"b", "False", "False"},
    {"b", "yes", NULL},
    {"b", "2", NULL},
    {"b", "", NULL},
    {"c", "yy", "yy"},
    {"c", "None", "None"},
    {"c", "y", NULL},
    {"c", "yyy", NULL},
    {"c", "x|yy", NULL},
    {"c", "", NULL},
    {"t", "a (b", "a (b"},
    {"t", "", ""},
    {"t", "None", "None"},
    {"tuple", "(3, 3)", "(3, 3)"},
    {"tuple", "[3,3]", "(3, 3)"},
    {"tuple", "3", "(3,)"},
    {"tuple", "(3,)", "(3,)"},
    {"tuple", "(3)", "(3,)"},
    {"tuple", "()", "()"},
    {"tuple", "[]", "()"},
    {"tuple", " ( 1 , -1 ) ", "(1, -1)"},
    {"tuple", "(3L, 4L)", "(3, 4)"},
    {"tuple", "None", "None"},
    {"tuple", "(1, 2", NULL},
    {"tuple", "1, 2)", NULL},
    {"tuple", "(1, 2]", NULL},
    {"tuple", "(1,, 2)", NULL},
    {"tuple", "(,)", NULL},
    {"tuple", "(1 2)", NULL},
    {"tuple", "((1))", NULL},
    {"tuple", "(1.5,)", NULL},
    {"tuple", "(-11,)", NULL},
    {"tuple", "", NULL},
    {"tuple", "(1)x", NULL},
    {"tuple", "(None,)", NULL},
    {"tuple", "(L,)", NULL},
    {"tuple", "(9223372036854775808,)", NULL},
    {"dtype", "float32", "float32"},
    {"dtype", "f16", "float16"},
    {"dtype", "None", "None"},
    {"dtype", "float33", NULL},
    {"oi", "None", "None"},
    {"oi", "-7", "-7"},
    {"oi", "none", NULL},
    {"of", "None", "None"},
    {"of", "2", "2.0"},
    {"of", "x", NULL},
    {"ob", "None", "None"},
    {"ob", "1", "True"},
    {"ob", "x", NULL},
    {"fs", "(0.1, 2)", "(0.1, 2.0)"},
    {"fs", "0.5", "(0.5,)"},
    {"fs", "(nan,)", "(nan,)"},
    {"fs", "(a,)", NULL},
    {"ot", "(None, 3)", "(None, 3)"},
    {"ot", "(None,)", "(None,)"},
    {"ot", "None", "None"},
    {"ot", "(-9223372036854775808,)", NULL},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tni_attrs *a = NULL, *b = NULL;
        tni_str text;
        tn_status st = parse(texts[i].name, texts[i].in, &a);
        uint32_t k = (uint32_t)tni_attr_index(all, texts[i].name);

        if (!texts[i].out) {
            if (st != TN_E_ATTR || !strstr(tni_error_message(), texts[i].name))
                fail_msg("%s=\"%s\": %s", texts[i].name, texts[i].in, tni_error_message());
            continue;
        }
        if (st)
            fail_msg("%s=\"%s\": %s", texts[i].name, texts[i].in, tni_error_message());
        tni_str_init(&text, 1000);
        assert_int_equal(tni_attr_format(&all_attrs[k], a->values[k], &text), TN_OK);
        assert_string_equal(text.text ? text.text : "", texts[i].out);
        assert_int_equal(parse(texts[i].name, text.text ? text.text : "", &b),
                         TN_OK); /* back again: the same value */
        assert_true(tni_attrs_equal_structural(a, b));
        assert_true(a->hash == b->hash);
        assert_true(a->given[0] == (uint64_t)1 << k);
        tni_str_fini(&text);
        tni_attrs_release(a);
        tni_attrs_release(b);
    }
}

static void test_long_tuples(void **state)
{
    static char text[20000];
    tni_attrs *a = NULL;

    (void)state;
    for (int count = 4095; count <= 4097; count++) {
        strcpy(text, "(");
        for (int i = 0; i < count; i++)
            memcpy(text + 1 + 2 * i, "1,", 2);
        strcpy(text + 1 + 2 * count, ")");
        if (count > 4096) {
            assert_int_equal(parse("tuple", text, &a), TN_E_ATTR);
            continue;
        }
        assert_int_equal(parse("tuple", text, &a), TN_OK);
        assert_int_equal(((const tn_tuple *)tn_value_pointer(a->values[6]))->count, count);
        tni_attrs_release(a);
    }
}

static void test_names(void **state)
{
    const char *names[] = {"i", "__lr_mult__", "f"}, *values[] = {"4", "2.0", "1"};
    const char *twice[] = {"i", "i"}, *wrong[] = {"smal"}, *far[] = {"qqqqqqq"}, *null[] = {NULL};
    tni_attrs *a = NULL;

    (void)state;
    assert_int_equal(tni_attrs_parse(all, 3, names, values, &a), TN_OK);
    assert_true(a->given[0] == 5);
    tni_attrs_release(a);
    assert_int_equal(tni_attrs_parse(all, 2, twice, values, &a), TN_E_ATTR);
    assert_int_equal(tni_attrs_parse(all, 1, wrong, values, &a), TN_E_ATTR);
    assert_non_null(strstr(tni_error_message(), "did you mean small?"));
    assert_int_equal(tni_attrs_parse(all, 1, far, values, &a), TN_E_ATTR);
    assert_int_equal(tni_attrs_parse(all, 1, null, values, &a), TN_E_ARG);
    assert_int_equal(tni_attrs_parse(other, 0, NULL, NULL, &a), TN_E_ATTR);
    assert_non_null(strstr(tni_error_message(), "needed is missing"));
}

/* ---- sharing ---------------------------------------------------------------------------------- */

static void test_runtime(void **state)
{
    tni_attrs *a, *b, *c;

    (void)state;
    assert_int_equal(parse("run", "7", &a), TN_OK);
    assert_int_equal(parse("run", "8", &b), TN_OK);
    assert_int_equal(parse("f", "8", &c), TN_OK);
    assert_true(tni_attrs_equal_structural(a, b));
    assert_true(a->hash == b->hash);
    assert_false(tni_attrs_equal_structural(a, c));
    assert_true(all->runtime_mask[0] == (uint64_t)1 << 13 && all->runtime_mask[1] == 0);
    tni_attrs_release(a);
    tni_attrs_release(b);
    tni_attrs_release(c);
}

static void test_with(void **state)
{
    struct {
        int64_t count, item[3];
    } tuple = {3, {7, 8, 9}};
    tni_attrs *a, *b, *c = NULL;

    (void)state;
    assert_int_equal(parse("t", "kept", &a), TN_OK);
    assert_int_equal(tni_attrs_with(a, 6, (tn_value)(uintptr_t)&tuple, &b), TN_OK);
    tni_attrs_release(a);
    tuple.item[0] = 0;
    assert_int_equal(((const tn_tuple *)tn_value_pointer(b->values[6]))->item[0], 7);
    assert_string_equal(tn_value_pointer(b->values[5]), "kept");
    assert_true(b->given[0] == ((uint64_t)1 << 5 | (uint64_t)1 << 6));
    assert_int_equal(tni_attrs_with(b, 14, 0, &c), TN_E_ARG);
    tni_attrs_release(tni_attrs_retain(b));
    tni_attrs_release(b);
    tni_attrs_release(NULL);
}

/* A spare block takes values that change from call to call, where it has room for them. */
static void test_become(void **state)
{
    struct {
        int64_t count, item[40];
    } tuple = {2, {5, 6}}, long_tuple = {40, {1}};
    static const char *const names[] = {"i", "tuple"}, *const given[] = {"2", "(1, 2)"};
    tni_attrs *a, *b, *twin;
    const tni_opdef *def;
    tni_opset *set;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &set), TN_OK);
    assert_int_equal(tni_opset_add(set, &run_op, NULL), TN_OK);
    assert_int_equal(tni_opset_find(set, "runs", &def), TN_OK);
    assert_int_equal(tni_attrs_parse(def, 0, NULL, NULL, &a), TN_OK);
    assert_int_equal(tni_attrs_parse(def, 2, names, given, &twin), TN_OK);
    assert_int_equal(tni_attrs_with(a, 1, (tn_value)(uintptr_t)&tuple, &b), TN_OK);
    assert_true(tni_attrs_equal_structural(a, b) && tni_attrs_equal(a, a) && !tni_attrs_equal(a, b));
    assert_false(tni_attrs_equal_structural(a, twin));
    assert_true(tni_attrs_hash(a) != tni_attrs_hash(b));
    tuple.item[1] = 9;
    assert_true(tni_attrs_become(b, a, 1, (tn_value)(uintptr_t)&tuple)); /* 9 is copied */
    tuple.item[1] = 6;
    assert_int_equal(((const tn_tuple *)tn_value_pointer(b->values[1]))->item[1], 9);
    assert_true(tni_attrs_become(b, a, 1, a->values[1]) && tni_attrs_equal(a, b));
    assert_true(tni_attrs_hash(a) == tni_attrs_hash(b));
    assert_true(tni_attrs_become(b, a, 4, tn_value_of_float(3)) && tn_value_float(b->values[4]) == 3);
    assert_false(tni_attrs_become(b, a, 1, (tn_value)(uintptr_t)&long_tuple)); /* no room */
    assert_false(tni_attrs_become(twin, a, 1, a->values[1]));                  /* another i */
    (void)tni_attrs_retain(b);
    assert_false(tni_attrs_become(b, a, 1, a->values[1])); /* somebody holds it */
    tni_attrs_release(b);
    tni_attrs_release(b);
    tni_attrs_release(a);
    tni_attrs_release(twin);
    tni_opset_destroy(set);
}

static void test_inherit(void **state)
{
    const char *names[] = {"c", "tuple", "i", "run"}, *values[] = {"yy", "(1, 2)", "9", "4"};
    const tn_attr_text needed[] = {{"needed", "1.5"}}, both[] = {{"needed", "1.5"}, {"tuple", "5"}};
    tni_attrs *a, *b;

    (void)state;
    assert_int_equal(tni_attrs_parse(all, 4, names, values, &a), TN_OK);
    assert_int_equal(tni_attrs_inherit(other, a, 0, NULL, &b), TN_E_ATTR);
    assert_int_equal(tni_attrs_inherit(other, a, 1, needed, &b), TN_OK);
    assert_int_equal(b->values[0], 2);
    assert_int_equal(((const tn_tuple *)tn_value_pointer(b->values[1]))->count, 2);
    assert_true(b->values[2] == 0); /* of another type: not taken over */
    assert_true(tn_value_float(b->values[3]) == 4);
    assert_true(b->given[0] == (1 | 2 | 8 | 16));
    tni_attrs_release(b);
    assert_int_equal(tni_attrs_inherit(other, a, 2, both, &b), TN_OK);
    assert_int_equal(((const tn_tuple *)tn_value_pointer(b->values[1]))->item[0], 5);
    tni_attrs_release(b);
    assert_int_equal(tni_attrs_inherit(other, NULL, 1, needed, &b), TN_OK);
    assert_int_equal(((const tn_tuple *)tn_value_pointer(b->values[1]))->item[0], 7);
    tni_attrs_release(b);
    tni_attrs_release(a);
}

static tn_status everything(void *arg)
{
    const char *names[] = {"tuple", "t", "of"}, *values[] = {"(1, 2, 3)", "text", "3"};
    const tn_attr_text needed[] = {{"needed", "1.5"}};
    tni_attrs *a = NULL, *b = NULL, *c = NULL;
    tn_status st;

    (void)arg;
    if (!(st = tni_attrs_parse(all, 3, names, values, &a)) && !(st = tni_attrs_with(a, 0, 5, &b)))
        st = tni_attrs_inherit(other, b, 1, needed, &c);
    tni_attrs_release(a);
    tni_attrs_release(b);
    tni_attrs_release(c);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(everything, NULL) >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_long_tuples), cmocka_unit_test(test_names),
        cmocka_unit_test(test_runtime), cmocka_unit_test(test_with),        cmocka_unit_test(test_inherit),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_become),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
