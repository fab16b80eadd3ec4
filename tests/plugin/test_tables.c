/* Tables of kernels, operators, transports that would crash their readers: the plugin is refused (L13). */
#include "kit.h"

#include <string.h>

#include "tenon/plugin/collective.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/transport.h"

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

/* ---- transports ------------------------------------------------------------------------------------- */

/* Any function: none of a refused table is called. */
static tn_status t_open(void *p, const tn_transport_config *c, tn_transport **out, tn_err *err)
{
    (void)p;
    (void)c;
    (void)out;
    return tn_fail(err, TN_E_UNSUPPORTED, "a table for tests");
}

static void t_info(tn_transport *t, tn_transport_info *out)
{
    (void)t;
    (void)out;
}

static tn_status t_listen(tn_transport *t, const char *where, void *address, uint32_t *bytes, tn_err *err)
{
    (void)t;
    (void)where;
    (void)address;
    (void)bytes;
    return tn_fail(err, TN_E_IO, "a table for tests");
}

static tn_status t_connect(tn_transport *t, const void *address, uint32_t bytes, tn_link **out, tn_err *err)
{
    (void)t;
    (void)address;
    (void)bytes;
    (void)out;
    return tn_fail(err, TN_E_IO, "a table for tests");
}

static tn_status t_send(tn_link *link, const tn_send *message, tn_err *err)
{
    (void)link;
    (void)message;
    return tn_fail(err, TN_E_PEER, "a table for tests");
}

static tn_status t_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                        tn_err *err)
{
    (void)t;
    (void)events;
    (void)timeout_ns;
    *count = 0;
    return tn_fail(err, TN_E_IO, "a table for tests");
}

static void t_wake(tn_transport *t)
{
    (void)t;
}

static void t_release(tn_transport *t, void *held)
{
    (void)t;
    (void)held;
}

static void t_link(tn_link *link)
{
    (void)link;
}

static void t_close(tn_transport *t, uint64_t timeout_ns)
{
    (void)t;
    (void)timeout_ns;
}

static tn_status t_region_add(tn_transport *t, void *data, uint64_t bytes, tn_region **out, tn_err *err)
{
    (void)t;
    (void)data;
    (void)bytes;
    (void)out;
    return tn_fail(err, TN_E_UNSUPPORTED, "a table for tests");
}

static tn_status t_landing(tn_link *link, uint64_t slot, void *data, uint64_t bytes, tn_region *region,
                           uint64_t *token, tn_err *err)
{
    (void)link;
    (void)slot;
    (void)data;
    (void)bytes;
    (void)region;
    (void)token;
    return tn_fail(err, TN_E_UNSUPPORTED, "a table for tests");
}

#define TRANSPORT(WHOLE, ...)                                                                                \
    {                                                                                                        \
        WHOLE,                                                                                               \
        {                                                                                                    \
            .head = TN_CAPABILITY(tn_transport_ops, put, TN_KIND_TRANSPORT, "wire"), .open = t_open,         \
            .info = t_info, .listen = t_listen, .connect = t_connect, .send = t_send, .poll = t_poll,        \
            .wake = t_wake, .release = t_release, .disconnect = t_link, .close = t_close, __VA_ARGS__        \
        }                                                                                                    \
    }
static const struct {
    bool whole;
    tn_transport_ops ops;
} transports[] = {
    TRANSPORT(true, .statistics = NULL),
    TRANSPORT(true, .head = TN_CAPABILITY(tn_transport_ops, close, TN_KIND_TRANSPORT, "wire")),
    TRANSPORT(false, .head = TN_CAPABILITY(tn_transport_ops, disconnect, TN_KIND_TRANSPORT, "wire")),
    TRANSPORT(false, .open = NULL),
    TRANSPORT(false, .info = NULL),
    TRANSPORT(false, .listen = NULL),
    TRANSPORT(false, .connect = NULL),
    TRANSPORT(false, .send = NULL),
    TRANSPORT(false, .poll = NULL),
    TRANSPORT(false, .wake = NULL),
    TRANSPORT(false, .release = NULL),
    TRANSPORT(false, .disconnect = NULL),
    TRANSPORT(false, .close = NULL),
    TRANSPORT(false, .put = t_send),
    TRANSPORT(false, .landing = t_landing),
    TRANSPORT(false, .landing = t_landing, .put = t_send),
    TRANSPORT(false, .region_add = t_region_add),
};

static void transports_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        fixture f = open_with(folder_new("empty"), NULL, NULL);
        const tn_transport_ops *ops = NULL;
        tni_plugin *owner = NULL;

        if (add(&f, &transports[i].ops.head) != (transports[i].whole ? TN_OK : TN_E_FORMAT))
            fail_msg("transport %zu: %s", i, tni_error_message());
        if (transports[i].whole) {
            assert_int_equal(tni_registry_transport(f.registry, "wire", &ops, &owner), TN_OK);
            assert_ptr_equal(ops, &transports[i].ops);
            assert_string_equal(owner->note.body.name, "tables");
        } else {
            assert_int_equal(tni_refusal_code(), 13);
            assert_non_null(strstr(tni_error_message(), "lacks a function"));
        }
        assert_int_equal(tni_registry_transport(f.registry, "other", &ops, &owner), TN_E_UNSUPPORTED);
        assert_non_null(strstr(tni_error_message(), "no plugin here has the transport other"));
        assert_non_null(
            strstr(tni_error_message(), transports[i].whole ? "transports: wire" : "transports: none"));
        close_all(&f);
    }
}

/* ---- collectives -------------------------------------------------------------------------------------- */

static tn_status c_open(void *self, const tn_collective_config *config, tn_communicator **out, tn_err *err)
{
    (void)self;
    (void)config;
    (void)out;
    return tn_fail(err, TN_E_UNSUPPORTED, "a table for tests");
}

static void c_info(tn_communicator *c, tn_collective_info *out)
{
    (void)c;
    (void)out;
}

static tn_status c_start(tn_communicator *c, const tn_collective_call *call, tn_err *err)
{
    (void)c;
    (void)call;
    return tn_fail(err, TN_E_UNSUPPORTED, "a table for tests");
}

static tn_status c_poll(tn_communicator *c, tn_collective_event *events, uint32_t *count, uint64_t timeout_ns,
                        tn_err *err)
{
    (void)c;
    (void)events;
    (void)count;
    (void)timeout_ns;
    return tn_fail(err, TN_E_UNSUPPORTED, "a table for tests");
}

static void c_wake(tn_communicator *c)
{
    (void)c;
}

static void c_abort(tn_communicator *c, const char *why)
{
    (void)c;
    (void)why;
}

static void c_close(tn_communicator *c, uint64_t timeout_ns)
{
    (void)c;
    (void)timeout_ns;
}

#define COLLECTIVE(WHOLE, ...)                                                                               \
    {                                                                                                        \
        WHOLE,                                                                                               \
        {                                                                                                    \
            .head = TN_CAPABILITY(tn_collective_ops, close, TN_KIND_COLLECTIVE, "ring"), .open = c_open,     \
            .info = c_info, .start = c_start, .poll = c_poll, .wake = c_wake, .abort = c_abort,              \
            .close = c_close, __VA_ARGS__                                                                    \
        }                                                                                                    \
    }
static const struct {
    bool whole;
    tn_collective_ops ops;
} collectives[] = {
    COLLECTIVE(true, .wake = c_wake),
    COLLECTIVE(false, .head = TN_CAPABILITY(tn_collective_ops, abort, TN_KIND_COLLECTIVE, "ring")),
    COLLECTIVE(false, .open = NULL),
    COLLECTIVE(false, .info = NULL),
    COLLECTIVE(false, .start = NULL),
    COLLECTIVE(false, .poll = NULL),
    COLLECTIVE(false, .wake = NULL),
    COLLECTIVE(false, .abort = NULL),
    COLLECTIVE(false, .close = NULL),
};

static void collectives_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
        fixture f = open_with(folder_new("empty"), NULL, NULL);
        const tn_capability *table = NULL;
        tni_plugin *owner = NULL;

        if (add(&f, &collectives[i].ops.head) != (collectives[i].whole ? TN_OK : TN_E_FORMAT))
            fail_msg("collective %zu: %s", i, tni_error_message());
        if (collectives[i].whole) {
            assert_int_equal(tni_registry_table(f.registry, TN_KIND_COLLECTIVE, "ring", &table, &owner),
                             TN_OK);
            assert_ptr_equal(table, &collectives[i].ops);
        } else {
            assert_int_equal(tni_refusal_code(), 13);
            assert_non_null(strstr(tni_error_message(), "lacks a function"));
        }
        assert_int_equal(tni_registry_table(f.registry, TN_KIND_COLLECTIVE, "other", &table, &owner),
                         TN_E_UNSUPPORTED);
        assert_non_null(
            strstr(tni_error_message(), "no plugin here has the collective other (plugin kv-other"));
        assert_non_null(
            strstr(tni_error_message(), collectives[i].whole ? "collectives: ring" : "collectives: none"));
        close_all(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels),
        cmocka_unit_test(empty_tables),
        cmocka_unit_test(transports_whole),
        cmocka_unit_test(collectives_whole),
    };

    return cmocka_run_group_tests(tests, plugins_build, NULL);
}
