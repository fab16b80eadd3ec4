/* Tables of kernels and operators that would crash their readers: the plugin is refused with L13. */
#include "kit.h"

#include <string.h>

#include "tenon/plugin/op.h"

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)x;
    (void)err;
    return TN_OK;
}

#define WHOLE                                                                                                \
    .struct_size = (uint32_t)TN_END(tn_kernel, release), .op = "_copy", .name = "k", .device = "cpu",        \
    .op_version_min = 1, .op_version_max = 1, .run = run

static const char *const types[] = {"*:f32", NULL}, *const no_colon[] = {"data", NULL};
static const char *const no_name[] = {":f32", NULL}, *const no_type[] = {"*:f32", "data:", NULL};

#define KERNEL(fault, ...)                                                                                   \
    {                                                                                                        \
        fault,                                                                                               \
        {                                                                                                    \
            WHOLE, .types = types, __VA_ARGS__                                                               \
        }                                                                                                    \
    }
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
static const struct row {
    const char *fault; /* part of the reason; NULL: fine */
    tn_kernel kernel;
} rows[] = {
    KERNEL(NULL, .isa = NULL),
    KERNEL(NULL, .types = NULL),
    KERNEL("is too small a struct", .struct_size = 8),
    KERNEL("names no operator", .op = NULL),
    KERNEL("names no operator", .op = ""),
    KERNEL("has no name", .name = NULL),
    KERNEL("names no device type", .device = NULL),
    KERNEL("has no function run", .run = NULL),
    KERNEL("is for no version", .op_version_min = 3),
    KERNEL("rule of types", .types = no_colon),
    KERNEL("rule of types", .types = no_name),
    KERNEL("rule of types", .types = no_type),
};

/* The registry keeps the descriptor until it is closed. */
static const tn_capability *capabilities[2];
static const tn_plugin plugin = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                                 .magic = TN_MAGIC,
                                 .abi_major = TN_ABI_MAJOR,
                                 .name = "tables",
                                 .version = "1",
                                 .license = "Apache-2.0",
                                 .capabilities = capabilities};

static tn_status add(fixture *f, const tn_capability *head)
{
    capabilities[0] = head;
    return tni_registry_add_static(f->registry, &plugin, NULL);
}

static void kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f = open_with(folder_new("empty"), NULL, NULL);
        const tn_kernel *const list[] = {&rows[0].kernel, &rows[i].kernel, NULL};
        const tn_kernel_table table = {
            .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = list};
        const tn_status st = add(&f, &table.head);

        assert_int_equal(st, rows[i].fault ? TN_E_FORMAT : TN_OK);
        if (rows[i].fault) {
            assert_int_equal(tni_refusal_code(), 13);
            assert_non_null(strstr(tni_error_message(), rows[i].fault));
            assert_non_null(strstr(tni_error_message(), "kernel 1 of tables"));
        }
        close_all(&f);
    }
}

static void empty_tables(void **state)
{
    const tn_kernel_table no_list = {
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu")};
    const tn_kernel_table too_small = {.head = {(uint32_t)sizeof(tn_capability), TN_KIND_KERNELS, "cpu"}};
    const tn_op_table no_ops = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "acme")};
    const tn_capability *const heads[] = {&no_list.head, &too_small.head, &no_ops.head};

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        fixture f = open_with(folder_new("empty"), NULL, NULL);

        assert_int_equal(add(&f, heads[i]), TN_E_FORMAT);
        assert_int_equal(tni_refusal_code(), 13);
        close_all(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels),
        cmocka_unit_test(empty_tables),
    };

    return cmocka_run_group_tests(tests, plugins_build, NULL);
}
