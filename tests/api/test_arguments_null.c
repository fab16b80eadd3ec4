/* NULL for the pointers that test_arguments.c and its siblings do not give as NULL: TN_E_ARG, nothing
 * written. */
#include "api/fixture.h"

#include "support/scratch.h"

#define NO(call) assert_fails((call), TN_E_ARG)

static void arrays_and_files(void **state)
{
    tn_array *a = NULL, *b = NULL;
    tn_checkpoint *c = NULL;
    struct DLManagedTensorVersioned *tensor = NULL;
    struct DLManagedTensor *old = NULL;
    tn_csv_words words = {.struct_size = sizeof words, .column = -1};
    const char *path = scratch_path("absent");

    (void)state;
    NO(tn_array_zeros(f.ctx, TN_F32, 2, NULL, NULL, &a));
    NO(tn_array_from(f.ctx, TN_F32, 2, NULL, &a, &a));
    NO(tn_array_to_storage(f.ctx, NULL, TN_STORAGE_CSR, &a));
    NO(tn_array_to_storage(f.ctx, f.a, TN_STORAGE_CSR, NULL));
    NO(tn_array_retain_rows(f.ctx, NULL, f.b, &a));
    NO(tn_array_retain_rows(f.ctx, f.a, NULL, &a));
    NO(tn_array_retain_rows(f.ctx, f.a, f.b, NULL));
    NO(tn_array_cast(f.ctx, NULL, TN_F16, &a));
    NO(tn_array_cast(f.ctx, f.a, TN_F16, NULL));
    NO(tn_checkpoint_load(f.ctx, path, NULL, NULL));
    NO(tn_idx_load(f.ctx, path, NULL));
    NO(tn_idx_load_pair(NULL, path, path, &a, &b));
    NO(tn_idx_load_pair(f.ctx, NULL, path, &a, &b));
    NO(tn_idx_load_pair(f.ctx, path, path, NULL, &b));
    NO(tn_idx_load_pair(f.ctx, path, path, &a, NULL));
    NO(tn_npy_load(f.ctx, NULL, &a));
    NO(tn_npy_load(f.ctx, path, NULL));
    NO(tn_csv_load(f.ctx, NULL, &a));
    NO(tn_csv_from_memory(f.ctx, "1", 1, "x", NULL));
    NO(tn_csv_load_words(NULL, "x", "1", 1, &words, &a));
    NO(tn_csv_load_words(f.ctx, NULL, "1", 1, &words, &a));
    NO(tn_csv_load_words(f.ctx, "x", NULL, 1, NULL, &a));
    NO(tn_csv_load_words(f.ctx, "x", "1", 1, &words, NULL));
    assert_ok(tn_array_to_dlpack(f.a, 0, &tensor));
    NO(tn_array_from_dlpack(NULL, tensor, &a));
    NO(tn_array_from_dlpack(f.ctx, tensor, NULL));
    assert_ok(tn_array_from_dlpack(f.ctx, tensor, &a)); /* it is as it was; taken now */
    tn_array_release(a);
    a = NULL;
    assert_ok(tn_array_to_dlpack_legacy(f.a, &old));
    NO(tn_array_from_dlpack_legacy(NULL, old, &a));
    NO(tn_array_from_dlpack_legacy(f.ctx, old, NULL));
    assert_ok(tn_array_from_dlpack_legacy(f.ctx, old, &a));
    tn_array_release(a);
    assert_true(!b && !c);
}

static void contexts(void **state)
{
    int64_t i = 5;
    double d = 5;
    const tn_device *device = NULL;
    uint64_t seed = 5;

    (void)state;
    NO(tn_ctx_option_int(f.ctx, NULL, &i));
    NO(tn_ctx_option_float(f.ctx, NULL, &d));
    NO(tn_ctx_option_float(f.ctx, "train.lr", NULL));
    NO(tn_ctx_option_set(f.ctx, NULL, "info"));
    NO(tn_config_check(NULL, NULL, NULL));
    assert_ok(tn_device_get(f.ctx, NULL, &device)); /* the default */
    NO(tn_device_available(f.ctx, "cpu", NULL));
    tn_var_destroy(NULL, tn_array_var(f.a));
    NO(tn_random_save(f.ctx, NULL, &seed, NULL));
    assert_true(i == 5 && d > 4 && seed == 5);
}

static void operators(void **state)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "relu", .in_count = 1, .in = &f.a};
    tn_array *y = NULL;

    (void)state;
    NO(tn_op_find(NULL, "relu", &info));
    NO(tn_op_find(f.ctx, "relu", NULL));
    assert_ok(tn_invoke_text(f.ctx, &call, 1, &y, NULL)); /* how many are made goes without saying */
    tn_array_release(y);
}

static void lists(void **state)
{
    tn_params *p = NULL, *q = NULL;
    void *data = NULL;

    (void)state;
    assert_ok(tn_params_create(&p));
    assert_ok(tn_params_add(p, "a", f.a));
    NO(tn_params_get(p, "a", NULL));
    NO(tn_params_at(p, 0, NULL));
    NO(tn_params_load(f.ctx, "x", NULL, NULL));
    NO(tn_params_from_memory(NULL, "x", 1, NULL, &q));
    NO(tn_params_from_memory(f.ctx, "x", 1, NULL, NULL));
    NO(tn_params_to_memory(p, &data, NULL));
    assert_true(!q && !data);
    tn_params_destroy(p);
}

static void text_files(void **state)
{
    tn_libsvm_share share = {.struct_size = TN_SIZE(tn_libsvm_share)};
    tn_array *x = NULL, *y = NULL;
    tn_params *p = NULL;

    (void)state;
    NO(tn_libsvm_load(NULL, "x", 0, &x, &y));
    NO(tn_libsvm_load(f.ctx, NULL, 0, &x, &y));
    NO(tn_libsvm_load(f.ctx, "x", 0, NULL, &y));
    NO(tn_libsvm_load(f.ctx, "x", 0, &x, NULL));
    NO(tn_libsvm_load(f.ctx, "x", -1, &x, &y));
    NO(tn_libsvm_load_part(NULL, &share, &x, &y, NULL));
    NO(tn_libsvm_load_part(f.ctx, NULL, &x, &y, NULL));
    NO(tn_libsvm_load_part(f.ctx, &share, NULL, &y, NULL));
    NO(tn_libsvm_load_part(f.ctx, &share, &x, NULL, NULL));
    NO(tn_libsvm_load_part(f.ctx, &share, &x, &y, NULL)); /* no path */
    share.path = "x";
    share.part = share.parts = 3;
    NO(tn_libsvm_load_part(f.ctx, &share, &x, &y, NULL));
    share.part = 1;
    share.parts = 0;
    NO(tn_libsvm_load_part(f.ctx, &share, &x, &y, NULL));
    share.part = 0;
    share.columns = -1;
    NO(tn_libsvm_load_part(f.ctx, &share, &x, &y, NULL));
    share.columns = 0;
    share.reserved = 1;
    NO(tn_libsvm_load_part(f.ctx, &share, &x, &y, NULL));
    share.reserved = share.struct_size = 0;
    NO(tn_libsvm_load_part(f.ctx, &share, &x, &y, NULL));
    NO(tn_csv_load_part(NULL, "x", 0, 1, NULL, &x));
    NO(tn_csv_load_part(f.ctx, NULL, 0, 1, NULL, &x));
    NO(tn_csv_load_part(f.ctx, "x", 0, 1, NULL, NULL));
    NO(tn_csv_load_part(f.ctx, "x", 0, 0, NULL, &x));
    NO(tn_csv_load_part(f.ctx, "x", 2, 2, NULL, &x));
    NO(tn_load(NULL, "x", &p));
    NO(tn_load(f.ctx, NULL, &p));
    NO(tn_load(f.ctx, "x", NULL));
    assert_true(!x && !y && !p);
    assert_ok(tn_params_create(&p));
    NO(tn_save(NULL, p, "x"));
    NO(tn_save(f.ctx, NULL, "x"));
    NO(tn_save(f.ctx, p, NULL));
    tn_params_destroy(p);
}

static void images(void **state)
{
    tn_image_about about = {.struct_size = TN_SIZE(tn_image_about)};
    tn_array *a = NULL;
    void *data = NULL;
    uint64_t bytes = 0;
    char out[4];

    (void)state;
    NO(tn_image_look(NULL, "x", 1, &about));
    NO(tn_image_look(f.ctx, NULL, 1, &about));
    NO(tn_image_look(f.ctx, "x", 1, NULL));
    NO(tn_image_read(NULL, "x", 1, NULL, out, 4, 4));
    NO(tn_image_read(f.ctx, NULL, 1, NULL, out, 4, 4));
    NO(tn_image_read(f.ctx, "x", 1, NULL, NULL, 4, 4));
    NO(tn_image_decode(NULL, "x", 1, NULL, &a));
    NO(tn_image_decode(f.ctx, NULL, 1, NULL, &a));
    NO(tn_image_decode(f.ctx, "x", 1, NULL, NULL));
    NO(tn_image_encode(NULL, f.a, "png", 0, &data, &bytes));
    NO(tn_image_encode(f.ctx, NULL, "png", 0, &data, &bytes));
    NO(tn_image_encode(f.ctx, f.a, NULL, 0, &data, &bytes));
    NO(tn_image_encode(f.ctx, f.a, "png", 0, NULL, &bytes));
    NO(tn_image_encode(f.ctx, f.a, "png", 0, &data, NULL));
    assert_true(!a && !data && !bytes);
}

static void records(void **state)
{
    tn_record_header h = {.struct_size = TN_SIZE(tn_record_header)};
    tn_record_reader *r = NULL;
    tn_record_writer *w = NULL;
    tn_record_place *places = NULL;
    const void *data = NULL;
    void *made = NULL;
    uint64_t bytes = 5, offset = 5;
    size_t count = 5;

    (void)state;
    NO(tn_record_open(NULL, 0, 1, &r));
    NO(tn_record_open("x", 0, 1, NULL));
    NO(tn_record_open("x", 0, 0, &r));
    NO(tn_record_open("x", 3, 3, &r));
    tn_record_close(NULL);
    assert_ok(tn_record_open(scratch_write("x.rec", "", 0), 0, 1, &r));
    NO(tn_record_next(NULL, &data, &bytes));
    NO(tn_record_next(r, NULL, &bytes));
    NO(tn_record_next(r, &data, NULL));
    NO(tn_record_peek(NULL, NULL, 0, &bytes, &offset));
    NO(tn_record_peek(r, NULL, 1, &bytes, &offset));
    NO(tn_record_peek(r, NULL, 0, NULL, &offset));
    NO(tn_record_peek(r, NULL, 0, &bytes, NULL));
    NO(tn_record_seek(NULL, 0));
    NO(tn_record_seek(r, 4));
    NO(tn_record_seek(r, 1));
    tn_record_rewind(NULL);
    tn_record_rewind(r);
    tn_record_close(r);
    NO(tn_record_create(NULL, NULL, &w));
    NO(tn_record_create("x", NULL, NULL));
    NO(tn_record_append(NULL, 1, "x", 1));
    assert_ok(tn_record_create(scratch_path("y.rec"), NULL, &w));
    NO(tn_record_append(w, 1, NULL, 1));
    NO(tn_record_finish(NULL));
    assert_ok(tn_record_finish(w));
    tn_record_abandon(NULL);
    NO(tn_record_index_load(NULL, &count, &places));
    NO(tn_record_index_load("x", NULL, &places));
    NO(tn_record_index_load("x", &count, NULL));
    NO(tn_record_unpack(NULL, 24, &h, &data, &bytes));
    NO(tn_record_unpack("x", 24, NULL, &data, &bytes));
    NO(tn_record_unpack("x", 24, &h, NULL, &bytes));
    NO(tn_record_unpack("x", 24, &h, &data, NULL));
    NO(tn_record_pack(NULL, "x", 1, &made, &bytes));
    NO(tn_record_pack(&h, NULL, 1, &made, &bytes));
    NO(tn_record_pack(&h, "x", 1, NULL, &bytes));
    NO(tn_record_pack(&h, "x", 1, &made, NULL));
    assert_true(!places && !data && !made && bytes == 5 && count == 5);
}

static void programs(void **state)
{
    tn_cached_op *op = NULL;
    tn_program *p = NULL;
    tn_params *params = NULL;
    tn_array *x = f.a;
    uint64_t bytes = 5;

    (void)state;
    NO(tn_cached_op_create(f.ctx, f.net, NULL, NULL));
    assert_ok(tn_cached_op_create(f.ctx, f.net, NULL, &op));
    NO(tn_cached_op_memory(op, &bytes, NULL));
    tn_cached_op_release(op);
    assert_ok(tn_params_create(&params));
    NO(tn_program_create(f.ctx, NULL, params, &p));
    NO(tn_program_create(f.ctx, f.net, params, NULL));
    NO(tn_program_load(NULL, "x", "y", NULL, &p));
    NO(tn_program_load(f.ctx, NULL, "y", NULL, &p));
    NO(tn_program_load(f.ctx, "x", "y", NULL, NULL));
    assert_ok(tn_program_create(f.ctx, f.x, params, &p));
    NO(tn_program_run(p, 1, &x, 1, NULL));
    NO(tn_program_memory(p, NULL, &bytes));
    NO(tn_program_memory(p, &bytes, NULL));
    tn_program_destroy(p);
    tn_params_destroy(params);
    assert_true(bytes == 5);
}

static void symbols(void **state)
{
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = "relu", .in_count = 1, .in = &f.x};
    static const char *const names[] = {"x"};
    tn_symbol_view *view = NULL;
    size_t count = 5;

    (void)state;
    NO(tn_symbol_op(f.ctx, &call, NULL));
    NO(tn_symbol_substitute(f.net, 1, names, &f.x, NULL));
    NO(tn_symbol_group(1, &f.x, NULL));
    NO(tn_symbol_output(f.net, 0, NULL));
    NO(tn_symbol_find(f.net, "fc_output", NULL));
    NO(tn_symbol_list(f.net, TN_LIST_ARGUMENTS, &count, NULL));
    NO(tn_symbol_infer(f.net, 0, NULL, TN_SYMBOL_PARTIAL, NULL));
    NO(tn_symbol_attr_set(f.x, NULL, "1"));
    NO(tn_symbol_load(f.ctx, "x", NULL));
    NO(tn_symbol_from_json(f.ctx, "{}", 2, NULL));
    assert_ok(tn_symbol_view_create(f.net, NULL, &view)); /* no shapes */
    tn_symbol_view_destroy(view);
    assert_int_equal(count, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_and_files), cmocka_unit_test(contexts),
        cmocka_unit_test(operators),        cmocka_unit_test(lists),
        cmocka_unit_test(text_files),       cmocka_unit_test(images),
        cmocka_unit_test(records),          cmocka_unit_test(programs),
        cmocka_unit_test(symbols),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
