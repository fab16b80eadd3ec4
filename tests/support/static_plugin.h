/* A plugin inside a test: what the tables of such plugins have in common. */
#ifndef TN_TEST_STATIC_PLUGIN_H
#define TN_TEST_STATIC_PLUGIN_H

#include "tenon/plugin/op.h"
#include "tenon/plugin/plugin.h"

/* An operator; the rest of its fields. */
#define TEST_OP(...)                                                                                         \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, gradient), .version = 1, .doc = "for tests", __VA_ARGS__      \
    }
/* A kernel of an operator on device type `device_`, with the rest of its fields. */
#define TEST_KERNEL(op_, device_, ...)                                                                       \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .device = (device_),   \
        .isa = "", .op_version_min = 1, .op_version_max = 1, .flags = TN_KERNEL_DETERMINISTIC, __VA_ARGS__   \
    }

/* Tables of &operators, of &kernels on one device type, and the plugin with &table.head of each. */
#define TEST_OPS(table_, name_, ...)                                                                         \
    static const tn_op *const table_##_list[] = {__VA_ARGS__, NULL};                                         \
    static const tn_op_table table_ = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, name_),          \
                                       .ops = table_##_list}
#define TEST_KERNELS(table_, device_, ...)                                                                   \
    static const tn_kernel *const table_##_list[] = {__VA_ARGS__, NULL};                                     \
    static const tn_kernel_table table_ = {                                                                  \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, device_),                     \
        .kernels = table_##_list}
#define TEST_PLUGIN(plugin_, name_, ...)                                                                     \
    static const tn_capability *const plugin_##_tables[] = {__VA_ARGS__, NULL};                              \
    static const tn_plugin plugin_ = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),              \
                                      .magic = TN_MAGIC,                                                     \
                                      .abi_major = TN_ABI_MAJOR,                                             \
                                      .abi_minor = TN_ABI_TARGET,                                            \
                                      .abi_minor_min = TN_ABI_MIN,                                           \
                                      .name = (name_),                                                       \
                                      .version = "1",                                                        \
                                      .license = "Apache-2.0",                                               \
                                      .capabilities = plugin_##_tables}

#endif
