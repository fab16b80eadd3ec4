/* The set of definitions: names, refusals, arguments, one round of inference. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "op/op.h"
#include "support/scratch.h"
#include "tenon/plugin/attr.h"

#include <cmocka.h>

static const char *const data[] = {"data", NULL};
static const char *const args[] = {"first", "arg*", NULL};
static const char *const misplaced[] = {"arg*", "last", NULL};
static const char *const aliases[] = {"acme_second", "acme_third", NULL};
static const char *const taken[] = {"acme_fresh", "Convolution", NULL};
static const char *const torn[] = {"weight_*", "rates", "grad_*", NULL};
static const char *const repeated[] = {"weight_*", "grad_*", "mom_*", "rates", NULL};
static const char *const outputs[] = {"output*", NULL};
static const tn_attr_def flag_attrs[] = {TN_ATTR_ROW("a", TN_ATTR_T_INT, 8, NULL, "1", 1, 0, ""),
                                         TN_ATTR_END};
static const tn_attr_def alone_attrs[] = {
    TN_ATTR_ROW("a", TN_ATTR_T_INT, TN_ATTR_F_SHAPE, NULL, "1", 1, 0, ""), TN_ATTR_END};
static const tn_attr_def many_attrs[] = {TN_ATTR_INT("num", "30", ""), TN_ATTR_END};
static const tn_attr_def count_attrs[] = {TN_ATTR_COUNT("num_args"), TN_ATTR_END};
static const tn_attr_def twice_attrs[] = {TN_ATTR_INT("a", "1", ""), TN_ATTR_INT("a", "1", ""), TN_ATTR_END};
static const tn_attr_def default_attrs[] = {TN_ATTR_INT("a", "one", ""), TN_ATTR_END};
static const tn_attr_def choice_attrs[] = {TN_ATTR_CHOICE("a", "x", "", ""), TN_ATTR_END};
static const tn_attr_def type_attrs[] = {{"a", 99, 0, NULL, "1", "", 1, 0, 1, 0}, TN_ATTR_END};

static const tn_attr_def since_attrs[] = {TN_ATTR_ROW_SINCE(3, "a", TN_ATTR_T_INT, 0, NULL, "1", 1, 0, ""),
                                          TN_ATTR_END};
static const tn_attr_def needed_attrs[] = {
    TN_ATTR_ROW_SINCE(2, "a", TN_ATTR_T_INT, 0, NULL, TN_REQUIRED, 1, 0, ""), TN_ATTR_END};
static const tn_attr_def behind_attrs[] = {TN_ATTR_ROW_SINCE(2, "a", TN_ATTR_T_INT, 0, NULL, "1", 1, 0, ""),
                                           TN_ATTR_INT("b", "1", ""), TN_ATTR_END};
static const char *const same_twice[] = {"data", "other", "data", NULL};
static const char *const variable_alias[] = {"null", NULL};

static tn_status shape_same(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status shape_huge(tn_infer *i)
{
    i->out_shape[0]->ndim = 2;
    i->out_shape[0]->dim[0] = i->out_shape[0]->dim[1] = INT64_MAX / 2;
    return TN_OK;
}

static tn_status shape_more(tn_infer *i)
{
    i->out_shape[0]->ndim = 1;
    i->out_shape[0]->dim[0] = 100;
    return TN_OK;
}

static tn_status shape_negative(tn_infer *i)
{
    i->out_shape[0]->ndim = 1;
    i->out_shape[0]->dim[0] = -5;
    return TN_OK;
}

static tn_status dtype_other(tn_infer *i)
{
    i->out_dtype[0] = TN_F64;
    return TN_OK;
}

static tn_status storage_wrong(tn_infer *i)
{
    i->out_storage[0] = 77;
    return TN_OK;
}

/* A text that does not end. */
static tn_status shape_endless(tn_infer *i)
{
    memset(i->err->message, 'z', sizeof i->err->message);
    return TN_E_SHAPE;
}

static tn_status args_none(tn_infer *i)
{
    i->out_count = 0;
    return TN_OK;
}

static tn_status args_many(tn_infer *i)
{
    i->out_count = 5000;
    return TN_OK;
}

static tn_status args_repeated(tn_infer *i)
{
    i->out_count = i->visible_count = (uint32_t)tn_value_int(i->attrs[0]);
    i->in_count = 3 * i->out_count + 1;
    return TN_OK;
}

#define OP_REPEATED(inputs_, ...)                                                                            \
    {                                                                                                        \
        .struct_size = TN_END(tn_op, mutates_tail), .version = 1, .doc = "test", .inputs = inputs_,          \
        .outputs = outputs, .shape = shape_same, .attrs = many_attrs, .args = args_repeated, __VA_ARGS__     \
    }
#define OP_SHAPES(...)                                                                                       \
    {                                                                                                        \
        .struct_size = TN_END(tn_op, shapes_only), .version = 1, .doc = "test", .inputs = data,              \
        .outputs = data, .shape = shape_same, __VA_ARGS__                                                    \
    }
#define OP5(version_, inputs_, outputs_, shape_, ...)                                                        \
    {                                                                                                        \
        .struct_size = TN_END(tn_op, gradient), .version = version_, .doc = "test", .inputs = inputs_,       \
        .outputs = outputs_, .shape = shape_, __VA_ARGS__                                                    \
    }
#define OP4(...) OP5(1, __VA_ARGS__)
#define OP(...) OP4(data, data, shape_same, __VA_ARGS__)
#define OP2(...) OP5(2, data, data, shape_same, __VA_ARGS__)
static const tn_op good = OP(.name = "acme_first", .aliases = aliases);
static const tn_op variadic = OP4(args, data, shape_same, .name = "acme_list", .attrs = count_attrs);
static const tn_op huge = OP4(data, data, shape_huge, .name = "acme_huge");
static const tn_op none = OP(.name = "acme_none", .args = args_none);
static const tn_op many = OP(.name = "acme_many", .args = args_many);
static const tn_op view = OP4(data, data, shape_more, .name = "acme_view", .flags = TN_OP_VIEW,
                              .dtype = dtype_other, .storage = storage_wrong);
static const tn_op viewless = OP4(NULL, data, shape_more, .name = "acme_viewless", .flags = TN_OP_VIEW);
static const tn_op negative = OP4(data, data, shape_negative, .name = "acme_negative");
static const tn_op endless = OP4(data, data, shape_endless, .name = "acme_endless");
static const tn_op bad[] = {
    OP(.name = "bad name"),
    OP(.name = ""),
    OP(.name = NULL),
    OP4(data, data, NULL, .name = "acme_a"),
    OP4(misplaced, data, shape_same, .name = "acme_b"),
    OP4(data, NULL, shape_same, .name = "acme_c"),
    OP(.name = "acme_d", .attrs = twice_attrs),
    OP(.name = "acme_e", .attrs = default_attrs),
    OP(.name = "acme_f", .attrs = choice_attrs),
    OP(.name = "acme_g", .attrs = type_attrs),
    OP(.name = "acme_h", .mutates = 2),
    OP(.name = "acme_i", .exec = 77),
    OP(.name = "acme_j", .visible = 2),
    OP(.name = "acme_k", .aliases = taken),
    OP(.name = "Convolution"),
    {.struct_size = 16, .name = "acme_l"},
    OP(.name = "acme_m", .attrs = since_attrs),
    OP2(.name = "acme_n", .attrs = needed_attrs),
    OP2(.name = "acme_o", .attrs = behind_attrs),
    OP4(same_twice, data, shape_same, .name = "acme_p"),
    OP4(data, same_twice, shape_same, .name = "acme_q"),
    OP(.name = "null"),
    OP(.name = "acme_r", .aliases = variable_alias),
    OP(.name = "acme_s", .attrs = flag_attrs),
    OP(.name = "acme_t", .attrs = alone_attrs),
    OP4(repeated, data, shape_same, .name = "acme_u"),
    OP_REPEATED(torn, .name = "acme_v"),
    OP_REPEATED(repeated, .name = "acme_w", .mutates = 8, .mutates_period = 3, .mutates_tail = 1),
    OP_REPEATED(repeated, .name = "acme_x", .mutates = 4, .mutates_period = 65, .mutates_tail = 1),
    OP_REPEATED(repeated, .name = "acme_y", .mutates = 4, .mutates_tail = 1),
    OP_REPEATED(data, .name = "acme_z", .mutates = 1, .mutates_period = 1),
    OP_SHAPES(.name = "acme_sa", .shapes_only = 2),
    OP_SHAPES(.name = "acme_sb", .shapes_only = UINT64_MAX),
    OP_SHAPES(.name = "acme_sc", .shapes_only = 1, .mutates = 1),
};
static const tn_op sweep =
    OP_REPEATED(repeated, .name = "acme_sweep", .mutates = 4, .mutates_period = 3, .mutates_tail = 1);

static void name_is(const tni_opdef *def, const tni_args *a, uint32_t index, const char *expected)
{
    char text[16];

    assert_int_equal(tni_op_input_name(def, a, index, text, sizeof text), TN_OK);
    assert_string_equal(text, expected);
}

/* Arguments that repeat together, with one behind them; what changes of more than 64 inputs. */
static void test_repeated(void **state)
{
    const tni_opdef *def;
    tni_opset *s;
    tni_args a;
    tn_op old = sweep;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    assert_int_equal(tni_opset_add(s, &sweep, NULL), TN_OK);
    assert_int_equal(tni_opset_find(s, "acme_sweep", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, -1, &a), TN_OK);
    assert_int_equal(a.in_count, 91);
    name_is(def, &a, 0, "weight_0");
    name_is(def, &a, 5, "mom_1");
    name_is(def, &a, 89, "mom_29");
    name_is(def, &a, 90, "rates");
    for (uint32_t i = 0; i < 91; i++)
        assert_int_equal(tn_op_mutates(def->op, 91, i), i % 3 == 2);
    assert_int_equal(tn_op_mutates(def->op, 93, 92), 0); /* the last one is none of those that repeat */
    assert_int_equal(tn_op_mutates(def->op, 0, 0), 0);
    assert_int_equal(tn_op_mutates(&good, 1, 0), 0);
    old.struct_size = TN_END(tn_op, gradient); /* its maker knew of no repetition */
    assert_int_equal(tn_op_mutates(&old, 91, 2), 1);
    assert_int_equal(tn_op_mutates(&old, 91, 5), 0);
    assert_int_equal(tn_op_mutates(&old, 91, 66), 0);
    tni_opset_destroy(s);
}

/* What has no meaning yet, and what is said of it. */
static const tn_attr_def reserved_attrs[] = {
    {.name = "a", .type = TN_ATTR_T_INT, .default_text = "1", .reserved = 9}, {0}};
static const struct {
    tn_op op;
    const char *says;
} unknown[] = {
    {OP(.name = "acme_u", .flags = 1u << 31), "flags 0x80000000"},
    {OP(.name = "acme_u", .flags = 512u | TN_OP_POINTWISE), "flags 0x200"},
    {OP(.name = "acme_u", .flags = TN_OP_BY_VALUES), "its kind of execution is 0"},
    {OP(.name = "acme_u", .effects = TN_EFFECT_HOST), "effects 0x2"},
    {OP(.name = "acme_u", .effects = TN_EFFECT_COLLECTIVE | TN_EFFECT_RANDOM), "effects 0x4"},
    {OP(.name = "acme_u", .effects = 1u << 20), "effects 0x100000"},
    {OP(.name = "acme_u", .reserved = 3), "`reserved` is 3"},
    {OP(.name = "acme_u", .exec = TN_EXEC_COLLECTIVE), "TN_EXEC_COLLECTIVE"},
    {OP(.name = "acme_u", .exec = TN_EXEC_COPY), "TN_EXEC_COPY"},
    {OP(.name = "acme_u", .attrs = flag_attrs), "flags 0x8"},
    {OP(.name = "acme_u", .attrs = reserved_attrs), "`reserved` is 9"},
};

static void test_unknown(void **state)
{
    tni_opset *s;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_int_not_equal(tni_opset_add(s, &unknown[i].op, NULL), TN_OK);
        if (!strstr(tni_error_message(), unknown[i].says))
            fail_msg("%zu: %s", i, tni_error_message());
    }
    tni_opset_destroy(s);
}

static tn_status shape_reserved(tn_infer *i)
{
    *i->out_shape[0] = *i->in_shape[0];
    i->out_shape[0]->reserved = 1;
    return TN_OK;
}

static void cost_reserved(const tn_infer *i, tn_cost *cost)
{
    (void)i;
    cost->macs = cost->flops = 7;
    cost->reserved = 2;
}

static const tn_op marks = {.struct_size = TN_END(tn_op, cost),
                            .version = 1,
                            .name = "acme_marks",
                            .inputs = data,
                            .outputs = data,
                            .shape = shape_reserved,
                            .cost = cost_reserved};

/* Functions that set what is reserved in what they are to fill in. */
static void test_reserved(void **state)
{
    tn_shape a = {.ndim = 1, .dim = {2}}, b = {.ndim = -1};
    tn_shape *const in[] = {&a}, *const out[] = {&b};
    int32_t in_dtype = TN_F32, out_dtype = TN_F32;
    const tni_opdef *def;
    tni_opset *s;
    tni_args counted;
    tn_cost cost;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    assert_int_equal(tni_opset_add(s, &marks, NULL), TN_OK);
    assert_int_equal(tni_opset_find(s, "acme_marks", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, 1, &counted), TN_OK);
    assert_int_equal(tni_op_infer_shape(def, NULL, &counted, 0, in, out), TN_E_INTERNAL);
    assert_non_null(strstr(tni_error_message(), "`reserved`"));
    tni_op_cost(def, NULL, &counted, in, out, &in_dtype, &out_dtype, &cost);
    assert_true(cost.macs == TN_COST_UNKNOWN && cost.flops == TN_COST_UNKNOWN &&
                cost.bytes == TN_COST_UNKNOWN);
    tni_opset_destroy(s);
}

/* ---- views ----------------------------------------------------------------------------------- */

static tn_view said; /* by the definition under test */

static tn_status view_says(const tn_infer *i, tn_view *v)
{
    if (i->attr_count || v->struct_size < TN_END(tn_view, stride))
        return TN_E_INTERNAL;
    if (said.output == 9)
        return TN_E_UNSUPPORTED;
    if (said.output == 8)
        return tn_fail(i->err, TN_E_ATTR, "not today");
    v->offset = said.offset;
    memcpy(v->stride, said.stride, sizeof v->stride);
    return TN_OK;
}

#define OP_VIEW(name_, ...)                                                                                  \
    {                                                                                                        \
        .struct_size = TN_END(tn_op, view), .version = 1, .doc = "test", .outputs = data, .name = name_,     \
        .shape = shape_same, .view = view_says, __VA_ARGS__                                                  \
    }
static const tn_op window = OP_VIEW("acme_window", .inputs = data);
static const tn_op no_windows[] = {
    OP_VIEW("acme_u", .inputs = NULL),
    OP_VIEW("acme_u", .inputs = data, .mutates = 1),
    OP_VIEW("acme_u", .inputs = data, .effects = TN_EFFECT_RANDOM),
    OP_VIEW("acme_u", .inputs = data, .flags = TN_OP_VIEW),
    OP_VIEW("acme_u", .inputs = data, .flags = TN_OP_CHECKS_VALUES),
    OP_VIEW("acme_u", .inputs = data, .exec = TN_EXEC_HOST),
};

/* An input of 4 x 6 whose rows are 10 apart, outputs of 2 x 3: what may be said of them, and what not. */
static const struct {
    int64_t offset, stride[2];
    uint32_t special;
    tn_status status;
} windows[] = {
    {0, {10, 1}, 0, TN_OK},           {21, {10, 2}, 0, TN_OK}, /* ends with the last element */
    {22, {10, 2}, 0, TN_E_ARG},                                /* one further */
    {-1, {10, 1}, 0, TN_E_ARG},       {0, {0, 1}, 0, TN_E_ARG},          {5, {-1, 1}, 0, TN_E_ARG},
    {0, {INT64_MAX, 1}, 0, TN_E_ARG}, {0, {1, INT64_MAX}, 0, TN_E_ARG},  {INT64_MAX, {1, 1}, 0, TN_E_ARG},
    {INT64_MIN, {1, 1}, 0, TN_E_ARG}, {0, {10, 1}, 9, TN_E_UNSUPPORTED}, {0, {10, 1}, 8, TN_E_ATTR},
};

static void test_views(void **state)
{
    tn_shape x = {.ndim = 2, .dim = {4, 6}}, y = {.ndim = 2, .dim = {2, 3}};
    tn_shape *const in[] = {&x}, *const out[] = {&y};
    const tni_opdef *def;
    tni_opset *s;
    tni_args a;
    tn_view v;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    for (size_t i = 0; i < sizeof no_windows / sizeof no_windows[0]; i++)
        if (tni_opset_add(s, &no_windows[i], NULL) == TN_OK)
            fail_msg("definition %zu was taken", i);
    assert_int_equal(tni_opset_add(s, &window, NULL), TN_OK);
    assert_int_equal(tni_opset_find(s, "acme_window", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, 1, &a), TN_OK);
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        tn_status st;

        said = (tn_view){.output = windows[i].special, .offset = windows[i].offset};
        memcpy(said.stride, windows[i].stride, sizeof windows[i].stride);
        st = tni_op_views(def, NULL, &a, 0, in, out, (const int64_t[]){10, 1}, &v);
        if (st != windows[i].status)
            fail_msg("window %zu: status %d", i, st);
        if (st == TN_E_ARG)
            assert_non_null(strstr(tni_error_message(), "does not lie within"));
    }
    assert_int_equal(tni_opset_find(s, "exp", &def), TN_OK);
    assert_int_equal(tni_op_views(def, NULL, &a, 0, in, out, (const int64_t[]){10, 1}, &v), TN_E_UNSUPPORTED);
    tni_opset_destroy(s);
}

static void test_add(void **state)
{
    const tni_opdef *a, *b;
    tni_opset *s;
    size_t count;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    count = tni_opset_count(s);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (tni_opset_add(s, &bad[i], NULL) == TN_OK)
            fail_msg("definition %zu was taken", i);
    assert_int_equal(tni_opset_add(s, NULL, NULL), TN_E_ARG);
    assert_int_equal(tni_opset_count(s), count);
    assert_int_equal(tni_opset_find(s, "acme_fresh", &a), TN_E_KEY); /* nothing is left of a refused one */
    assert_int_equal(tni_opset_add(s, &good, NULL), TN_OK);
    assert_int_equal(tni_opset_add(s, &good, NULL), TN_E_KEY);
    assert_int_equal(tni_opset_find(s, "acme_first", &a), TN_OK);
    assert_int_equal(tni_opset_find(s, "acme_third", &b), TN_OK);
    assert_ptr_equal(a, b);
    assert_int_equal(a->id, count);
    assert_ptr_equal(tni_opset_at(s, count), a);
    assert_null(tni_opset_at(s, count + 1));
    tni_opset_destroy(s);
}

static void test_find(void **state)
{
    const tni_opdef *def = NULL;
    tni_opset *s;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    assert_int_equal(tni_opset_find(s, "Convolutoin", &def), TN_E_KEY);
    assert_non_null(strstr(tni_error_message(), "Convolution"));
    assert_int_equal(tni_opset_find(s, "", &def), TN_E_KEY);
    assert_int_equal(tni_opset_find(s, NULL, &def), TN_E_ARG);
    assert_null(def);
    tni_opset_destroy(s);
    tni_opset_destroy(NULL);
}

static void test_args(void **state)
{
    const char *name = "num_args", *three = "3";
    const tni_opdef *def;
    tni_opset *s;
    tni_attrs *attrs;
    tni_args a;
    char text[16];

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    assert_int_equal(tni_opset_add(s, &variadic, NULL) | tni_opset_add(s, &none, NULL) |
                         tni_opset_add(s, &many, NULL),
                     TN_OK);
    assert_int_equal(tni_opset_find(s, "acme_list", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, -1, &a), TN_E_ATTR);
    assert_int_equal(tni_op_args(def, NULL, 5000, &a), TN_E_ARG);
    assert_int_equal(tni_op_args(def, NULL, 4, &a), TN_OK);
    assert_int_equal(a.in_count, 4);
    assert_int_equal(tni_op_input_name(def, &a, 0, text, sizeof text), TN_OK);
    assert_string_equal(text, "first");
    assert_int_equal(tni_op_input_name(def, &a, 3, text, sizeof text), TN_OK);
    assert_string_equal(text, "arg2");
    assert_int_equal(tni_op_input_name(def, &a, 3, text, 4), TN_E_ARG);
    assert_int_equal(tni_op_input_name(def, &a, 4, text, sizeof text), TN_E_ARG);
    assert_int_equal(tni_op_output_name(def, &a, 0, text, sizeof text), TN_OK);
    assert_string_equal(text, "data");
    assert_int_equal(tni_attrs_parse(def, 1, &name, &three, &attrs), TN_OK);
    assert_int_equal(tni_op_args(def, attrs, -1, &a), TN_OK);
    assert_int_equal(a.in_count, 3);
    assert_int_equal(tni_op_args(def, attrs, 2, &a), TN_E_ARG);
    tni_attrs_release(attrs);
    assert_int_equal(tni_opset_find(s, "acme_none", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, -1, &a), TN_E_ATTR);
    assert_int_equal(tni_opset_find(s, "acme_many", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, -1, &a), TN_E_ATTR);
    tni_opset_destroy(s);
}

static void test_infer(void **state)
{
    tn_shape in = {.ndim = -1}, out = {.ndim = 2, .dim = {3, -1}};
    tn_shape *ins[] = {&in}, *outs[] = {&out};
    int32_t dtype[2] = {TN_DTYPE_UNKNOWN, TN_F16}, storage[2] = {TN_STORAGE_CSR, TN_STORAGE_UNKNOWN};
    const tni_opdef *def;
    tni_opset *s;
    tni_args a;
    tni_str text;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    assert_int_equal(tni_opset_add(s, &good, NULL) | tni_opset_add(s, &huge, NULL), TN_OK);
    assert_int_equal(tni_opset_find(s, "acme_first", &def) | tni_op_args(def, NULL, -1, &a), TN_OK);
    assert_int_equal(tni_op_infer_shape(def, NULL, &a, 0, ins, outs), TN_OK); /* backwards */
    assert_int_equal(in.dim[0], 3);
    in.dim[1] = 5;
    assert_int_equal(tni_op_infer_shape(def, NULL, &a, 0, ins, outs), TN_OK);
    assert_int_equal(out.dim[1], 5);
    in.dim[0] = 4;
    assert_int_equal(tni_op_infer_shape(def, NULL, &a, 0, ins, outs), TN_E_SHAPE);
    assert_non_null(strstr(tni_error_message(), "acme_first"));
    assert_non_null(strstr(tni_error_message(), "(4, 5)"));
    assert_int_equal(tni_op_infer_dtype(def, NULL, &a, dtype, dtype + 1), TN_OK);
    assert_int_equal(dtype[0], TN_F16);
    dtype[0] = TN_F32;
    assert_int_equal(tni_op_infer_dtype(def, NULL, &a, dtype, dtype + 1), TN_E_DTYPE);
    dtype[0] = 13;
    assert_int_equal(tni_op_infer_dtype(def, NULL, &a, dtype, dtype + 1), TN_E_DTYPE);
    assert_int_equal(tni_op_infer_storage(def, NULL, &a, storage, storage + 1), TN_E_UNSUPPORTED);
    storage[0] = TN_STORAGE_UNKNOWN;
    assert_int_equal(tni_op_infer_storage(def, NULL, &a, storage, storage + 1), TN_OK);
    assert_int_equal(storage[0] | storage[1], TN_STORAGE_DENSE);
    assert_int_equal(tni_opset_find(s, "acme_huge", &def) | tni_op_args(def, NULL, -1, &a), TN_OK);
    assert_int_equal(tni_op_infer_shape(def, NULL, &a, 0, ins, outs), TN_E_SHAPE);
    tni_str_init(&text, 100);
    in = (tn_shape){.ndim = 4, .dim = {64, 1, -1, 28}};
    assert_int_equal(tni_shape_format(&in, &text), TN_OK);
    in.ndim = -1;
    assert_int_equal(tni_str_add(&text, " ") | tni_shape_format(&in, &text), TN_OK);
    assert_string_equal(text.text, "(64, 1, ?, 28) ?");
    tni_str_fini(&text);
    tni_opset_destroy(s);
}

static tn_status shapes_of(tni_opset *s, const char *name, tn_shape *in, tn_shape *out)
{
    const tni_opdef *def;
    tni_args a;

    assert_int_equal(tni_opset_find(s, name, &def) | tni_op_args(def, NULL, -1, &a), TN_OK);
    return tni_op_infer_shape(def, NULL, &a, 0, &in, &out);
}

/* What a definition infers is looked at before anybody relies on it. */
static void test_infer_wrong(void **state)
{
    tn_shape in = {.ndim = 1, .dim = {3}}, out = {.ndim = -1};
    int32_t dtypes[2] = {TN_F32, TN_DTYPE_UNKNOWN}, storages[2] = {TN_STORAGE_DENSE, TN_STORAGE_UNKNOWN};
    const tni_opdef *def;
    tni_opset *s;
    tni_args a;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &s), TN_OK);
    assert_int_equal(tni_opset_add(s, &view, NULL) | tni_opset_add(s, &negative, NULL) |
                         tni_opset_add(s, &viewless, NULL) | tni_opset_add(s, &endless, NULL),
                     TN_OK);
    assert_int_equal(shapes_of(s, "acme_view", &in, &out), TN_E_SHAPE); /* 100 elements of 3 */
    out.ndim = -1;
    in.dim[0] = -1;
    assert_int_equal(shapes_of(s, "acme_view", &in, &out), TN_OK);
    out.ndim = -1;
    in.dim[0] = 100;
    assert_int_equal(shapes_of(s, "acme_view", &in, &out), TN_OK);
    out.ndim = -1;
    assert_int_equal(shapes_of(s, "acme_negative", &in, &out), TN_E_SHAPE);
    assert_non_null(strstr(tni_error_message(), "negative sizes"));
    assert_int_equal(shapes_of(s, "acme_endless", &in, &out), TN_E_SHAPE);
    assert_int_equal(tni_opset_find(s, "acme_view", &def) | tni_op_args(def, NULL, -1, &a), TN_OK);
    assert_int_equal(tni_op_infer_dtype(def, NULL, &a, dtypes, dtypes + 1), TN_E_DTYPE);
    assert_int_equal(tni_op_infer_storage(def, NULL, &a, storages, storages + 1), TN_E_INTERNAL);
    assert_int_equal(tni_opset_find(s, "acme_viewless", &def), TN_OK);
    assert_int_equal(tni_op_args(def, NULL, -1, &a), TN_E_ATTR);
    tni_opset_destroy(s);
}

static tn_status life(void *arg)
{
    tni_opset *s = NULL;
    const tni_opdef *def;
    tn_status st = tni_opset_create(NULL, &s);

    (void)arg;
    if (!st)
        st = tni_opset_add(s, &good, NULL);
    if (!st)
        st = tni_opset_find(s, "acme_second", &def);
    tni_opset_destroy(s);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(life, NULL) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),      cmocka_unit_test(test_find),    cmocka_unit_test(test_args),
        cmocka_unit_test(test_repeated), cmocka_unit_test(test_infer),   cmocka_unit_test(test_infer_wrong),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_unknown), cmocka_unit_test(test_reserved),
        cmocka_unit_test(test_views),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
