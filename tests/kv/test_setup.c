/* What options say of a process of a job: numbers, files, which of them contradict each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "context/context.h"
#include "kv/address.h"
#include "kv/loop.h"
#include "kv/process.h"
#include "support/heard.h"
#include "support/scratch.h"

static heard logged = HEARD(TN_LOG_DEBUG); /* by the context opened last */

static tni_context *context(bool environment, const char *const *settings)
{
    const tni_context_options o = {
        .settings = settings, .environment = environment, .log = heard_take, .log_arg = &logged};
    tni_context *c = NULL;
    tni_plugin *plugin;

    heard_clear(&logged);
    if (tni_context_open(&o, &c))
        fail_msg("%s", tni_error_message());
    assert_int_equal(tni_registry_add_static(c->plugins, &loop_plugin, &plugin), TN_OK);
    return c;
}

#define LOOP "kvstore.transport=loop"
#define LIST(...) ((const char *const[]){LOOP, __VA_ARGS__, NULL})

static tn_status read_setup(uint32_t role, bool async, const char *const *settings, tni_kv_setup *out)
{
    tni_context *c = context(false, settings);
    const tn_status st = tni_kv_setup_read(c, role, async, out);

    assert_int_equal(tni_context_close(c, 0), TN_OK);
    return st;
}

static void defaults(void **state)
{
    tni_kv_setup s;

    (void)state;
    assert_int_equal(read_setup(TNI_KV_WORKER, false, LIST("kvstore.servers=2", "kvstore.workers=5"), &s),
                     TN_OK);
    assert_int_equal(s.settings.workers, 5);
    assert_int_equal(s.settings.servers, 2);
    assert_true(s.settings.beat_ns == 1000000000u && s.settings.suspect_ns == 3000000000u);
    assert_true(s.settings.dead_ns == 10000000000u && s.settings.timeout_ns == 600000000000u);
    assert_true(s.settings.control_timeout_ns == 60000000000u && s.settings.retry_ns == 0);
    assert_true(s.settings.part_bytes == 1u << 20 && s.settings.credit_bytes == 2u << 20); /* 2 parts */
    assert_int_equal(s.settings.staleness, UINT32_MAX);
    assert_int_equal(s.settings.worker_loss, TNI_KV_LOSS_FAIL);
    assert_int_equal(s.settings.server_loss, TNI_KV_LOSS_WAIT);
    assert_true(s.settings.server_wait_ns == 60000000000u);
    assert_false(s.settings.async || s.settings.checked || s.settings.any_order);
    assert_string_equal(s.scheduler, "127.0.0.1:9091");
    assert_false(s.secured || s.insecure);
    assert_true(s.priority);
    assert_int_equal(s.rank, -1);
    assert_int_equal(s.lanes, 2);
    assert_ptr_equal(s.ops, &loop_ops);
    assert_int_equal(read_setup(TNI_KV_SERVER, false, LIST("log.level=error"), &s), TN_OK);
    assert_string_equal(s.listen, "127.0.0.1:0");
    assert_int_equal(
        read_setup(TNI_KV_SCHEDULER, false, LIST("kvstore.scheduler=::1", "kvstore.scheduler_port=7"), &s),
        TN_OK);
    assert_string_equal(s.listen, "[::1]:7");
}

static void all_live(void **state)
{
    tni_kv_setup s;

    (void)state;
    assert_int_equal(
        read_setup(TNI_KV_WORKER, true,
                   LIST("kvstore.heartbeat=2s", "kvstore.suspect=4s", "kvstore.dead=8s", "kvstore.timeout=9s",
                        "kvstore.control_timeout=7s", "kvstore.retry_ms=30", "kvstore.bigarray_bound=1000",
                        "kvstore.part_bytes=8192", "kvstore.credit_bytes=65536", "kvstore.inflight_parts=100",
                        "kvstore.landing_bytes=1048576", "kvstore.server_bytes=5000000",
                        "kvstore.on_worker_loss=shrink:2", "kvstore.workers=3", "kvstore.on_server_loss=fail",
                        "kvstore.uneven=join", "kvstore.staleness=4", "kvstore.crc=on", "kvstore.lanes=3",
                        "kvstore.verbose=2", "kvstore.fault=drop=2.5%", "kvstore.rank=1",
                        "kvstore.priority=false", "kvstore.deterministic=false", "kvstore.security=none",
                        "kvstore.scheduler=10.1.2.3", "kvstore.scheduler_port=99", "kvstore.job=abc"),
                   &s),
        TN_OK);
    assert_int_equal(heard_times(&logged, "kvstore.security is none"), 1);
    assert_true(s.settings.beat_ns == 2000000000u && s.settings.timeout_ns == 9000000000u);
    assert_true(s.settings.bound == 1000 && s.settings.part_bytes == 8192);
    assert_true(s.settings.credit_bytes == 65536 && s.settings.landing_bytes == 1048576);
    assert_true(s.settings.server_bytes == 5000000 && s.settings.retry_ns == 30000000);
    assert_true(s.settings.worker_loss == TNI_KV_LOSS_SHRINK && s.settings.workers_min == 2);
    assert_true(s.settings.server_loss == TNI_KV_LOSS_FAIL && s.settings.uneven == TNI_KV_JOIN);
    assert_true(s.settings.staleness == 4 && s.settings.async && s.settings.checked && s.settings.any_order);
    assert_true(s.lanes == 3 && s.verbose == 2 && s.drop == 25000 && s.rank == 1 && !s.priority &&
                s.insecure);
    assert_string_equal(s.scheduler, "10.1.2.3:99");
}

typedef struct wrong_row {
    const char *settings[4];
    const char *text;
    bool async;
    tn_status status; /* 0: TN_E_ATTR */
} wrong_row;

static const wrong_row wrong[] = {
    {{"kvstore.servers=0"}, "kvstore.servers 0", false, 0},
    {{"kvstore.workers=20000"}, "1 to 16383", false, 0},
    {{"kvstore.on_worker_loss=wait"}, "kvstore.on_worker_loss is \"wait\"", false, 0},
    {{"kvstore.on_worker_loss=wait:-1"}, "wait:SECONDS", false, 0},
    {{"kvstore.on_worker_loss=wait:nan"}, "wait:SECONDS", false, 0},
    {{"kvstore.on_worker_loss=shrink:0"}, "shrink:LEAST", false, 0},
    {{"kvstore.on_server_loss=shrink"}, "it may be fail or wait:SECONDS", false, 0},
    {{"kvstore.on_worker_loss=shrink:4", "kvstore.workers=3"}, "more workers than", false, 0},
    {{"kvstore.durability=snapshot"}, "none or snapshot:STEPS", false, 0},
    {{"kvstore.durability=snapshot:0"}, "none or snapshot:STEPS", false, 0},
    {{"kvstore.durability=snapshot:5"}, "needs kvstore.state_folder", false, 0},
    {{"kvstore.state_folder=/tmp"}, "kvstore.job", false, 0},
    {{"kvstore.heartbeat=5s"}, "longer than kvstore.suspect", false, 0},
    {{"kvstore.suspect=20s"}, "longer than kvstore.dead", false, 0},
    {{"kvstore.heartbeat=0", "kvstore.dead=5s"}, "nobody would be heard", false, 0},
    {{"kvstore.staleness=1"}, "dist_async", false, 0},
    {{"kvstore.uneven=drop"}, "do not end together", true, 0},
    {{"kvstore.drift_check=5"}, "go in step", true, 0},
    {{"kvstore.drift_check=5", "kvstore.uneven=join"}, "kvstore.uneven = join", false, 0},
    {{"kvstore.security=curve"}, "needs kvstore.secret_file", false, 0},
    {{"kvstore.security=none", "kvstore.secret_file=x"}, "kvstore.secret_file is set", false, 0},
    {{"kvstore.scheduler=10.9.8.7"}, "which others can reach", false, 0},
    {{"kvstore.fault=drop"}, "drop=NUMBER%", false, 0},
    {{"kvstore.fault=drop=5"}, "drop=NUMBER%", false, 0},
    {{"kvstore.fault=drop=500%"}, "drop=NUMBER%", false, 0},
    {{"kvstore.fault=lose=5%"}, "drop=NUMBER%", false, 0},
    {{"kvstore.transport=pigeon"}, "pigeon", false, TN_E_UNSUPPORTED},
};

static void contradictions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *settings[6] = {LOOP};
        tni_kv_setup s;

        memcpy(settings + 1, wrong[i].settings, sizeof wrong[i].settings);
        if (read_setup(TNI_KV_WORKER, wrong[i].async, settings, &s) !=
                (wrong[i].status ? wrong[i].status : TN_E_ATTR) ||
            !strstr(tni_error_message(), wrong[i].text))
            fail_msg("row %zu: %s", i, tni_error_message());
    }
}

static void of_servers(void **state)
{
    tni_kv_setup s;

    (void)
        state; /* a server follows the workers, so what holds for one of the two modes is no contradiction */
    assert_int_equal(read_setup(TNI_KV_SERVER, false, LIST("kvstore.staleness=1"), &s), TN_OK);
    assert_int_equal(read_setup(TNI_KV_SERVER, false, LIST("kvstore.interface=nothere0"), &s), TN_E_ATTR);
    assert_int_equal(read_setup(TNI_KV_SERVER, false, LIST("kvstore.interface=lo"), &s), TN_OK);
    assert_string_equal(s.listen, "127.0.0.1:0");
    assert_int_equal(read_setup(TNI_KV_SERVER, false, LIST("kvstore.address=192.0.2.7"), &s), TN_OK);
    assert_string_equal(s.listen, "192.0.2.7:0");
}

/* What MXNet's launcher sets. */
static void foreign_names(void **state)
{
    static const char *const names[][2] = {
        {"DMLC_NUM_WORKER", "3"},
        {"DMLC_NUM_SERVER", "2"},
        {"DMLC_PS_ROOT_URI", "localhost"},
        {"DMLC_PS_ROOT_PORT", "9123"},
        {"DMLC_WORKER_ID", "2"},
        {"PS_HEARTBEAT_INTERVAL", "2"},
        {"PS_HEARTBEAT_TIMEOUT", "20"},
        {"PS_RESEND_TIMEOUT", "70"},
        {"PS_VERBOSE", "1"},
        {"PS_DROP_MSG", "10"},
        {"DMLC_PS_WATER_MARK", "1"},
        {"MXNET_KVSTORE_BIGARRAY_BOUND", "77"},
        {"DMLC_INTERFACE", "lo"},
        {"BYTEPS_PARTITION_BYTES", "4096"},
        {"TENON_KV_JOB", "0x1234"},
    };
    tni_kv_setup s, other;
    tni_context *c;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(setenv(names[i][0], names[i][1], 1), 0);
    c = context(true, LIST("log.level=warning"));
    assert_int_equal(heard_lines(&logged), 0);
    assert_int_equal(tni_kv_setup_read(c, TNI_KV_WORKER, false, &s), TN_OK);
    assert_int_equal(tni_context_close(c, 0), TN_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(unsetenv(names[i][0]), 0);
    assert_true(s.settings.workers == 3 && s.settings.servers == 2 && s.rank == 2 && s.verbose == 1);
    assert_string_equal(s.scheduler, "localhost:9123");
    assert_true(s.settings.beat_ns == 2000000000u && s.settings.dead_ns == 20000000000u);
    assert_true(s.settings.retry_ns == 70000000 && s.drop == 100000 && s.settings.bound == 77);
    assert_true(s.settings.part_bytes == 4096 && s.settings.credit_bytes == 4096);
    other = s;
    tni_kv_setup_job(&other, "0x1234");
    assert_true(other.settings.job == s.settings.job);
    tni_kv_setup_job(&other, "0x1235");
    assert_true(other.settings.job != s.settings.job);
    tni_kv_setup_job(&other, "");
    assert_true(other.settings.job && other.settings.job != s.settings.job);
}

/* ---- secrets ---- */

static tn_status secret(const char *path, tni_kv_setup *out)
{
    char setting[SCRATCH_PATH_BYTES + 32];

    (void)snprintf(setting, sizeof setting, "kvstore.secret_file=%s", path);
    return read_setup(TNI_KV_WORKER, false, LIST(setting, "kvstore.scheduler=10.0.0.1"), out);
}

static tn_status secret_of(const char *text, int mode, tni_kv_setup *out)
{
    const char *path = scratch_write("secret", text, strlen(text));

    assert_int_equal(chmod(path, (mode_t)mode), 0);
    return secret(path, out);
}

/* The key of zmq_z85_encode(3). */
static const char z85[] = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
                  hex[] = "BB88471d65e2659b30c55a5321cebb5aab2b70a398645c26dca2b2fcb43fc518";

static void secrets(void **state)
{
    static const char *const bad[] = {"", "\n", "0123", "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI~",
                                      "Gne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV#####"};
    char text[200];
    tni_kv_setup s, t;

    (void)state;
    assert_int_equal(secret_of(z85, 0600, &s), TN_OK);
    assert_true(s.secured && !s.insecure && s.secret[0] == 0xbb && s.secret[31] == 0x18);
    (void)snprintf(text, sizeof text, "%s\r\n", hex);
    assert_int_equal(secret_of(text, 0400, &t), TN_OK);
    assert_memory_equal(s.secret, t.secret, sizeof s.secret);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(secret_of(bad[i], 0600, &s), TN_E_FORMAT);
    (void)snprintf(text, sizeof text, "%s%s", hex, z85);
    assert_int_equal(secret_of(text, 0600, &s), TN_E_FORMAT);
    assert_null(strstr(tni_error_message(), "47"));
    text[63] = 'g';
    text[64] = '\0';
    assert_int_equal(secret_of(text, 0600, &s), TN_E_FORMAT);
    assert_int_equal(secret_of("#####################################!!!", 0600, &s),
                     TN_E_FORMAT); /* over 2^32 */
    assert_int_equal(secret_of(z85, 0640, &s), TN_E_STATE);
    assert_non_null(strstr(tni_error_message(), "chmod 600"));
    assert_int_equal(secret_of(z85, 0604, &s), TN_E_STATE);
    assert_int_equal(secret(scratch_path("absent"), &s), TN_E_IO);
    assert_int_equal(secret(scratch_folder(), &s), TN_E_IO);
    assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
    assert_int_equal(secret(scratch_path("fifo"), &s), TN_E_IO); /* and does not wait for a writer */
}

static void hosts(void **state)
{
    char text[64], small[8];

    (void)state;
    assert_true(tni_kv_host_loopback("") && tni_kv_host_loopback("localhost") &&
                tni_kv_host_loopback("127.0.3.4") && tni_kv_host_loopback("::1"));
    assert_false(tni_kv_host_loopback("10.0.0.1") || tni_kv_host_loopback("localhost.example") ||
                 tni_kv_host_loopback("::2"));
    assert_int_equal(tni_kv_host_of_route("127.0.0.1", text, sizeof text), TN_OK);
    assert_string_equal(text, "127.0.0.1");
    assert_int_equal(tni_kv_host_of_route("no such host", text, sizeof text), TN_E_IO);
    assert_int_equal(tni_kv_place_text("127.0.0.1", 9091, small, sizeof small), TN_E_ATTR);
}

int main(void)
{
    static const char *const names[] = {"TENON_", "DMLC_", "PS_", "MXNET_", "BYTEPS_", NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),   cmocka_unit_test(all_live),      cmocka_unit_test(contradictions),
        cmocka_unit_test(of_servers), cmocka_unit_test(foreign_names), cmocka_unit_test(secrets),
        cmocka_unit_test(hosts),
    };

    scratch_environment_clear(names);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
