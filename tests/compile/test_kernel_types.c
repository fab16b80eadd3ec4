/* Rules of a kernel for data types and storage types: what each row allows, told one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compile/select.h"

static const char *const inputs[] = {"data", "arg*", NULL}, *const outputs[] = {"out", NULL};
static const tn_op op = {.name = "mixed", .inputs = inputs, .outputs = outputs};
static const tni_opdef def = {.op = &op};

/* data, arg0, arg1 and out: data types and storage types. */
typedef struct asked {
    const char *rules[4];
    int32_t dtype[4];
    uint16_t storage[4];
    bool fits;
} asked;

#define F32S                                                                                                 \
    {                                                                                                        \
        TN_F32, TN_F32, TN_F32, TN_F32                                                                       \
    }

static const asked rows[] = {
    {{NULL}, F32S, {0}, true},
    {{"data:f32"}, F32S, {0}, true},
    {{"data:float64,f16"}, F32S, {0}, false},
    {{"*:f64", "data:f32"}, F32S, {0}, false},
    {{"*:f64", "data:f32"}, {TN_F32, TN_F64, TN_F64, TN_F64}, {0}, true},
    {{"arg*:i32"}, {TN_F32, TN_I32, TN_I32, TN_F32}, {0}, true},
    {{"arg*:i32"}, {TN_F32, TN_I32, TN_I64, TN_F32}, {0}, false},
    {{"arg1:i64"}, {TN_F32, TN_I32, TN_I64, TN_F32}, {0}, true},
    {{"arg1:i64"}, {TN_F32, TN_I64, TN_I32, TN_F32}, {0}, false},
    {{"arg01x:i64"}, F32S, {0}, true}, /* names nothing */
    {{"out:=data"}, {TN_F16, TN_F32, TN_F32, TN_F16}, {0}, true},
    {{"out:=data"}, {TN_F16, TN_F32, TN_F32, TN_F32}, {0}, false},
    {{"out:f32,=arg1"}, {TN_F16, TN_F32, TN_BOOL, TN_BOOL}, {0}, true},
    {{"out:=nobody"}, F32S, {0}, false},
    {{"data:f32"}, F32S, {TN_STORAGE_CSR}, false},
    {{"data:csr"}, F32S, {TN_STORAGE_CSR}, true},
    {{"data:csr"}, F32S, {TN_STORAGE_ROW_SPARSE}, false},
    {{"data:csr"}, F32S, {TN_STORAGE_DENSE}, false},
    {{"data:csr,dense,f64"}, F32S, {TN_STORAGE_CSR}, false},
    {{"data:csr,dense,f32"}, F32S, {TN_STORAGE_DENSE}, true},
    {{NULL}, {TN_I4, TN_F32, TN_F32, TN_F32}, {0}, false}, /* packed ones are to be named */
    {{"data:i4"}, {TN_I4, TN_F32, TN_F32, TN_F32}, {0}, true},
    {{"data:a_name_that_is_longer_than_any"}, F32S, {0}, false},
};

static void rows_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const rules[] = {rows[i].rules[0], rows[i].rules[1], NULL};
        const tn_kernel k = {.types = rules};
        tn_tensor t[4];
        const tn_tensor *in[] = {&t[0], &t[1], &t[2]}, *out[] = {&t[3]};
        const tni_request r = {.def = &def, .in = in, .out = out, .in_count = 3, .out_count = 1};
        char why[200] = "";

        for (uint32_t a = 0; a < 4; a++)
            t[a] = (tn_tensor){.dtype = rows[i].dtype[a], .storage = rows[i].storage[a]};
        if (tni_kernel_types_match(&r, &k, why, sizeof why) != rows[i].fits || (*why != 0) == rows[i].fits)
            fail_msg("row %zu, \"%s\": %s", i, rules[0] ? rules[0] : "", why);
    }
}

static void lists(void **state)
{
    (void)state;
    assert_int_equal(tni_rule_dtypes("f32,=data,csr,float64"), 1u << TN_F32 | 1u << TN_F64);
    assert_int_equal(tni_rule_dtypes("=data"), 0);
    assert_int_equal(tni_rule_dtypes(NULL), 0);
    assert_int_equal(tni_rule_storages("f32,csr,row_sparse"),
                     1u << TN_STORAGE_CSR | 1u << TN_STORAGE_ROW_SPARSE);
    assert_int_equal(tni_rule_storages("f32"), 1u << TN_STORAGE_DENSE);
    assert_int_equal(tni_rule_storages(NULL), 1u << TN_STORAGE_DENSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_fit), cmocka_unit_test(lists)};

    return cmocka_run_group_tests_name("kernel types", tests, NULL, NULL);
}
