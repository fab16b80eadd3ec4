/* Storage types in calls: signatures differ by them, definitions
 * decide on them, kernels serve dense tensors. */
#include <string.h>

#include "exec/internal.h"
#include "net.h"
#include "support/static_plugin.h"

/* ---- operators: what each makes of the storage type of its input --------------------------------------- */

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status says_nothing(tn_infer *i)
{
    (void)i;
    return TN_OK;
}

static tn_status makes_rows(tn_infer *i)
{
    i->out_storage[0] = TN_STORAGE_ROW_SPARSE;
    return TN_OK;
}

static tn_status wants_csr(tn_infer *i)
{
    i->in_storage[0] = TN_STORAGE_CSR;
    return TN_OK;
}

static tn_status refuses_rows(tn_infer *i)
{
    return i->in_storage[0] == TN_STORAGE_ROW_SPARSE ? tn_fail(i->err, TN_E_ARG, "no rows here") : TN_OK;
}

static const char *const names_in[] = {"data", NULL}, *const names_out[] = {"output", NULL};
#define OP(name_, flags_, storage_)                                                                          \
    TEST_OP(.name = (name_), .inputs = names_in, .outputs = names_out, .shape = same_shape,                  \
            .storage = (storage_), .flags = (flags_))
static const tn_op plain = OP("test_plain", 0, NULL);
static const tn_op any = OP("test_any", 0, says_nothing);
static const tn_op rows = OP("test_rows", 0, makes_rows);
static const tn_op csr = OP("test_csr", 0, wants_csr);
static const tn_op no_rows = OP("test_no_rows", 0, refuses_rows);
static const tn_op view = OP("test_view", TN_OP_VIEW, says_nothing);
static const tn_op row_view = OP("test_row_view", TN_OP_VIEW, makes_rows);
TEST_OPS(op_table, "storages", &plain, &any, &rows, &csr, &no_rows, &view, &row_view);

static tn_status copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return TN_OK;
}

#define KERNEL(op_) TEST_KERNEL(op_, "cpu", .name = "copy", .run = copy_run)
static const tn_kernel of_plain = KERNEL("test_plain"), of_any = KERNEL("test_any");
static const tn_kernel of_rows = KERNEL("test_rows"), of_csr = KERNEL("test_csr");
static const tn_kernel of_no_rows = KERNEL("test_no_rows");
TEST_KERNELS(kernel_table, "cpu", &of_plain, &of_any, &of_rows, &of_csr, &of_no_rows);
TEST_PLUGIN(plugin, "storages", &op_table.head, &kernel_table.head);

/* ---- arrays of one shape: dense, row_sparse, csr ------------------------------------------------------- */

#define TYPES 3

static tni_context *arrays_open(tni_array **a)
{
    static const int64_t shape[2] = {3, 3};
    tni_context *c = test_context((const char *const[]){"exec.storage_fallback=error", NULL});
    tni_array *ids = NULL, *starts = NULL, *values = NULL;

    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    a[TN_STORAGE_DENSE] = test_array(c, 2, shape, (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9});
    tni_device *d = a[0]->storage->device;
    assert_ok(tni_array_create(c->space, d, TN_I64, 1, (int64_t[]){2}, "ids", &ids));
    assert_ok(tni_array_create(c->space, d, TN_I64, 1, (int64_t[]){4}, "starts", &starts));
    a[1] = a[2] = NULL;
    assert_ok(tni_array_create_sparse(c->space, d, TN_STORAGE_ROW_SPARSE, TN_F32, 2, shape,
                                      (tni_array *[2]){ids, NULL}, &a[TN_STORAGE_ROW_SPARSE]));
    assert_ok(tni_array_create_sparse(c->space, d, TN_STORAGE_CSR, TN_F32, 2, shape,
                                      (tni_array *[2]){starts, ids}, &a[TN_STORAGE_CSR]));
    for (int t = TN_STORAGE_ROW_SPARSE; t < TYPES; t++) {
        assert_ok(tni_array_values(a[t], &values));
        assert_ok(tni_array_fill(values, 1));
        tni_array_release(values);
    }
    tni_array_release(ids);
    tni_array_release(starts);
    return c;
}

static void arrays_close(tni_context *c, tni_array **a)
{
    for (int t = 0; t < TYPES; t++)
        tni_array_release(a[t]);
    test_context_close(c);
}

static void says(const char *part)
{
    tn_err err;

    tni_error_get(&err);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static tn_status call(tni_context *c, const char *op, tni_array *in, tni_array **out)
{
    return tni_invoke_text(c, op, 1, &in, 0, NULL, NULL, 1, out, NULL);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void signatures_differ(void **state)
{
    tni_array *a[TYPES];
    tni_context *c = arrays_open(a);
    tni_call_key keys[TYPES];
    tni_signature *s = NULL;
    const tni_opdef *def;
    tni_attrs *attrs = NULL;

    (void)state;
    assert_ok(tni_opset_find(c->ops, "test_any", &def));
    assert_ok(tni_attrs_parse(def, 0, NULL, NULL, &attrs));
    for (int t = 0; t < TYPES; t++)
        keys[t] = (tni_call_key){
            .def = def, .attrs = attrs, .device = a[0]->storage->device, .in_count = 1, .in = &a[t]};
    assert_ok(tni_signature_find(c, &keys[0], &s));
    for (int t = 0; t < TYPES; t++)
        keys[t].generation = s->generation; /* the kernels that were loaded count */
    for (int t = 0; t < TYPES; t++) {
        assert_int_equal(tni_signature_matches(s, &keys[t]), t == TN_STORAGE_DENSE);
        for (int u = 0; u < t; u++)
            assert_int_not_equal(tni_call_hash(&keys[t]), tni_call_hash(&keys[u]));
    }
    assert_int_equal(s->in[0].storage, TN_STORAGE_DENSE);
    assert_int_equal(s->out_storage[0], TN_STORAGE_DENSE);
    tni_signature_release(s);
    tni_attrs_release(attrs);
    arrays_close(c, a);
}

/* A site that knows a dense call runs no sparse one with it, and keeps it. */
static void refused_at_a_site(void **state)
{
    tni_array *a[TYPES], *out = NULL;
    tni_context *c = arrays_open(a);
    tni_exec_stats before, after;
    tni_site *site = NULL;

    (void)state;
    assert_ok(tni_site_create(c, "test_plain", 0, NULL, NULL, &site));
    assert_ok(tni_invoke(site, 1, &a[0], 1, &out));
    tni_array_release(out);
    out = NULL;
    assert_int_equal(tni_invoke(site, 1, &a[TN_STORAGE_ROW_SPARSE], 1, &out), TN_E_UNSUPPORTED);
    says("operator test_plain: input 0 is sparse (row_sparse)");
    assert_int_equal(tni_invoke(site, 1, &a[TN_STORAGE_CSR], 1, &out), TN_E_UNSUPPORTED);
    says("operator test_plain: input 0 is sparse (csr)");
    assert_null(out);
    tni_exec_stats_get(c, &before);
    assert_ok(tni_invoke(site, 1, &a[0], 1, &out));
    tni_exec_stats_get(c, &after);
    assert_int_equal(after.misses, before.misses);
    test_values(out, (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, 0);
    tni_array_release(out);
    tni_site_release(site);
    arrays_close(c, a);
}

static const struct {
    const char *op;
    int32_t type;
    tn_status want;
    const char *text; /* NULL: it runs */
} cases[] = {
    {"test_any", TN_STORAGE_DENSE, TN_OK, NULL},
    {"test_any", TN_STORAGE_CSR, TN_E_UNSUPPORTED, "operator test_any: input 0 is sparse (csr)"},
    {"test_any", TN_STORAGE_CSR, TN_E_UNSUPPORTED, "does not serve csr tensors as input 0"},
    {"test_rows", TN_STORAGE_DENSE, TN_E_UNSUPPORTED, "operator test_rows: output 0 is sparse (row_sparse)"},
    {"test_csr", TN_STORAGE_DENSE, TN_E_UNSUPPORTED, "operator test_csr: input 0 is dense, not csr"},
    {"test_csr", TN_STORAGE_CSR, TN_E_UNSUPPORTED, "operator test_csr: input 0 is sparse (csr)"},
    {"test_no_rows", TN_STORAGE_DENSE, TN_OK, NULL},
    {"test_no_rows", TN_STORAGE_ROW_SPARSE, TN_E_ARG, "no rows here"},
    {"test_view", TN_STORAGE_DENSE, TN_OK, NULL},
    {"test_view", TN_STORAGE_CSR, TN_E_UNSUPPORTED, "operator test_view: input 0 is sparse (csr)"},
    {"test_row_view", TN_STORAGE_DENSE, TN_E_UNSUPPORTED, "test_row_view: output 0 is sparse (row_sparse)"},
    {"exp", TN_STORAGE_CSR, TN_E_UNSUPPORTED, "operator exp: input 0 is sparse (csr)"},
    {"_copyto", TN_STORAGE_CSR, TN_E_UNSUPPORTED, "operator _copyto: input 0 is sparse (csr)"},
    {"Flatten", TN_STORAGE_CSR, TN_E_UNSUPPORTED, "operator Flatten: input 0 is sparse (csr)"},
};

static void definitions_are_obeyed(void **state)
{
    tni_array *a[TYPES];
    tni_context *c = arrays_open(a);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tni_array *out = NULL;

        if (call(c, cases[i].op, a[cases[i].type], &out) != cases[i].want)
            fail_msg("case %zu: %s", i, cases[i].op);
        if (cases[i].text)
            says(cases[i].text);
        else
            test_values(out, (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, 0);
        tni_array_release(out);
    }
    arrays_close(c, a);
}

/* The first is a variable alone, which is copied. */
static void nets_refuse(void **state)
{
    static const char *const nets[] = {NULL, "test_plain", "test_any", "test_rows"};
    static const char *const texts[TYPES] = {"output 0 is sparse (row_sparse)", "is sparse (row_sparse)",
                                             "is sparse (csr)"};
    tni_array *a[TYPES], *out = NULL;
    tni_context *c = arrays_open(a);

    (void)state;
    for (int i = 0; i < 4; i++) {
        tni_symbol *s = net_variable(c, "x");
        tni_cached_op *op = NULL;

        if (nets[i])
            s = net_take(c, nets[i], s, NULL, NULL);
        assert_ok(tni_cached_op_create(c, s, NULL, &op));
        for (int t = 0; t < TYPES; t++) {
            const tn_status want = !i || (t == TN_STORAGE_DENSE && i < 3) ? TN_OK : TN_E_UNSUPPORTED;

            assert_int_equal(tni_cached_op_call(op, 1, &a[t], 1, &out), want);
            if (want)
                says(texts[t]);
            tni_array_release(out);
            out = NULL;
        }
        tni_cached_op_release(op);
        tni_symbol_release(s);
    }
    arrays_close(c, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_differ),
        cmocka_unit_test(refused_at_a_site),
        cmocka_unit_test(definitions_are_obeyed),
        cmocka_unit_test(nets_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
