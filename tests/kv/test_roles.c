/*
 * Servers and a scheduler by the options of contexts, over the loop: optimizers as in a store of one process,
 * snapshots and the journal in files, a second life of all of them.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context/context.h"
#include "kv/disk.h"
#include "kv/job.h"
#include "support/scratch.h"

#define COUNT 3000 /* elements: three parts */
#define WORKERS 2u
#define SERVERS 2u

typedef struct role { /* a process of its own context */
    tni_context *ctx;
    tni_thread *thread;
    uint32_t index;
    tn_status status;
    tn_err error;
    char address[64];
    int32_t heads[8];
    atomic_uint commands;
} role;

static uint32_t opened;

static tni_context *context(const char *folder, const char *role_name, int32_t rank)
{
    char path[SCRATCH_PATH_BYTES], state[SCRATCH_PATH_BYTES], number[40], what[40];
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    const char *const settings[] = {path,
                                    state,
                                    number,
                                    what,
                                    "kvstore.transport=loop",
                                    "kvstore.workers=2",
                                    "kvstore.servers=2",
                                    "kvstore.part_bytes=4096",
                                    "kvstore.job=roles",
                                    "kvstore.scheduler=sched",
                                    "kvstore.security=none",
                                    strcmp(role_name, "scheduler") ? "kvstore.address=here"
                                                                   : "kvstore.address=sched",
                                    NULL};
    const tni_context_options o = {.settings = settings};
    tni_context *c = NULL;
    tni_plugin *plugin;

    (void)snprintf(path, sizeof path, "plugins.path=%s", plugins ? plugins : "");
    (void)snprintf(state, sizeof state, "kvstore.state_folder=%s", folder);
    (void)snprintf(number, sizeof number, "kvstore.rank=%d", rank);
    (void)snprintf(what, sizeof what, "kvstore.role=%s", role_name);
    if (tni_context_open(&o, &c))
        fail_msg("%s", tni_error_message());
    assert_int_equal(tni_registry_add_static(c->plugins, &loop_plugin, &plugin), TN_OK);
    return c;
}

static void told(void *arg, int32_t head, const char *body)
{
    role *r = arg;

    if (head == TN_KV_LISTENS)
        (void)snprintf(r->address, sizeof r->address, "%s", body);
    else if (atomic_load(&r->commands) < 8)
        r->heads[atomic_fetch_add(&r->commands, 1)] = head;
}

static void role_run(void *arg)
{
    role *r = arg;
    int32_t ran = 0;

    r->status = tni_kv_run_role(r->ctx, told, r, &ran);
    tni_error_get(&r->error);
    assert_int_equal(ran, 1);
}

static void role_start(role *r, const char *folder, const char *name, int32_t rank)
{
    *r = (role){.ctx = context(folder, name, rank), .index = opened};
    assert_int_equal(tni_thread_create(name, role_run, r, &r->thread), TN_OK);
    loop_wait_open(++opened);
}

static tn_status role_join(role *r)
{
    tni_thread_join(r->thread);
    assert_int_equal(tni_context_close(r->ctx, 0), TN_OK);
    return r->status;
}

typedef struct team {
    role scheduler, servers[SERVERS];
    tni_context *ctx[WORKERS];
    tni_kv_process *workers[WORKERS];
} team;

static bool all_ready(void *arg)
{
    const team *t = arg;

    return tni_kv_process_ready(t->workers[0]) && tni_kv_process_ready(t->workers[1]);
}

static void team_start(team *t, const char *folder)
{
    loop_begin();
    opened = 0;
    role_start(&t->scheduler, folder, "scheduler", -1);
    for (uint32_t i = 0; i < SERVERS; i++)
        role_start(&t->servers[i], folder, "server", (int32_t)i);
    for (uint32_t i = 0; i < WORKERS; i++) {
        tni_kv_setup setup;

        t->ctx[i] = context(folder, "worker", (int32_t)i);
        assert_int_equal(tni_kv_setup_read(t->ctx[i], TNI_KV_WORKER, false, &setup), TN_OK);
        assert_int_equal(tni_kv_process_start(&setup, &t->workers[i]), TN_OK);
        opened++;
    }
    assert_true(loop_until(all_ready, t, 30));
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_int_equal(tni_kv_process_joined(t->workers[i]), TN_OK);
        assert_int_equal(tni_kv_process_key(t->workers[i], 0, TN_F32, COUNT, sizeof(float)), TN_OK);
    }
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void team_end(team *t)
{
    const tni_kv_request bye = {.kind = TNI_KV_DO_BYE};

    for (uint32_t i = 0; i < WORKERS; i++)
        assert_int_equal(job_do(t->workers[i], &bye), TN_OK);
    for (uint32_t i = 0; i < WORKERS; i++) {
        tni_kv_process_end(t->workers[i]);
        assert_int_equal(tni_context_close(t->ctx[i], 0), TN_OK);
    }
    (void)loop_until(never, NULL, 60);
    for (uint32_t i = 0; i < SERVERS; i++)
        assert_int_equal(role_join(&t->servers[i]), TN_OK);
    assert_int_equal(role_join(&t->scheduler), TN_OK);
    loop_end();
}

/* ---- what the same steps give in one process ---- */

typedef struct reference {
    tni_context *ctx;
    tn_kv *kv;
    tn_array *in[WORKERS], *out;
} reference;

static const int64_t shape[] = {COUNT};

static float gradient(uint32_t worker, uint32_t step, uint32_t i)
{
    return (float)((i * 7 + worker * 13 + step * 5) % 31) / 17.0f - 0.8f;
}

static void gradients(uint32_t worker, uint32_t step, float *out)
{
    for (uint32_t i = 0; i < COUNT; i++)
        out[i] = gradient(worker, step, i);
}

static void reference_open(reference *r, const float *first)
{
    tni_device *cpu;
    tn_kv_item item = {.value_count = 1, .values = r->in};

    r->ctx = context("", "worker", -1);
    assert_int_equal(tni_device_get(r->ctx->devices, "cpu", 0, &cpu), TN_OK);
    for (uint32_t w = 0; w < WORKERS + 1; w++)
        assert_int_equal(
            tni_array_create(r->ctx->space, cpu, TN_F32, 1, shape, "test", w < WORKERS ? &r->in[w] : &r->out),
            TN_OK);
    assert_int_equal(tn_kv_create(r->ctx, "local", &r->kv), TN_OK);
    assert_int_equal(tni_array_write(r->in[0], first, COUNT * sizeof *first), TN_OK);
    assert_int_equal(tn_kv_init(r->kv, 1, &item), TN_OK);
}

static void reference_step(reference *r, uint32_t step, float *value)
{
    const tn_kv_item push = {.value_count = WORKERS, .values = r->in},
                     pull = {.out_count = 1, .outs = &r->out};

    for (uint32_t w = 0; w < WORKERS; w++) {
        gradients(w, step, value);
        assert_int_equal(tni_array_write(r->in[w], value, COUNT * sizeof *value), TN_OK);
    }
    assert_int_equal(tn_kv_push(r->kv, 1, &push), TN_OK);
    assert_int_equal(tn_kv_pull(r->kv, 0, 1, &pull), TN_OK);
    assert_int_equal(tni_array_read(r->out, value, COUNT * sizeof *value), TN_OK);
}

static void reference_close(reference *r)
{
    tn_kv_destroy(r->kv);
    for (uint32_t w = 0; w < WORKERS; w++)
        tni_array_release(r->in[w]);
    tni_array_release(r->out);
    assert_int_equal(tni_context_close(r->ctx, 0), TN_OK);
}

/* ---- the job's ---- */

static void team_init(team *t, float *first)
{
    const tni_kv_request r = {.kind = TNI_KV_DO_INIT, .in = first};

    for (uint32_t i = 0; i < COUNT; i++)
        first[i] = (float)(i % 101) / 50.0f - 1;
    for (uint32_t w = 0; w < WORKERS; w++)
        assert_int_equal(job_do(t->workers[w], &r), TN_OK);
}

static void team_step(team *t, uint32_t step, float values[WORKERS][COUNT])
{
    static float in[WORKERS][COUNT];
    answer a[WORKERS];

    for (uint32_t w = 0; w < WORKERS; w++) {
        const tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL, .in = in[w], .out = values[w]};

        gradients(w, step, in[w]);
        job_ask(t->workers[w], &r, &a[w]);
    }
    for (uint32_t w = 0; w < WORKERS; w++)
        if (job_wait(&a[w]))
            fail_msg("%s", a[w].error.message);
}

static void steps_compare(team *t, reference *r, uint32_t from, uint32_t to)
{
    static float values[WORKERS][COUNT], expected[COUNT];

    for (uint32_t s = from; s < to; s++) {
        team_step(t, s, values);
        reference_step(r, s, expected);
        for (uint32_t w = 0; w < WORKERS; w++)
            assert_memory_equal(values[w], expected, sizeof expected);
    }
}

static tn_status command(team *t, const char *words, size_t bytes)
{
    const tni_kv_request r = {.kind = TNI_KV_DO_COMMAND, .in = words, .bytes = bytes, .priority = 255};

    return job_do(t->workers[0], &r);
}

#define COMMAND(t, words) command(t, words, sizeof words)

static void optimizers_are_the_stores(void **state)
{
    static const struct {
        const char *command;
        size_t bytes;
        const char *name, *params[7];
    } rows[] = {
#define WORDS(text) text, sizeof text
        {WORDS("optimizer\0sgd\0lr\0"
               "0.1\0momentum\0"
               "0.9"),
         "sgd",
         {"lr", "0.1", "momentum", "0.9"}},
        {WORDS("optimizer\0adam\0lr\0"
               "0.01\0wd\0"
               "0.001"),
         "adam",
         {"lr", "0.01", "wd", "0.001"}},
        {WORDS("optimizer\0rmsprop\0lr\0"
               "0.01\0centered\0"
               "1"),
         "rmsprop",
         {"lr", "0.01", "centered", "1"}},
        {WORDS("optimizer\0ftrl"), "ftrl", {NULL}},
        {WORDS("optimizer\0nag\0momentum\0"
               "0.5\0rescale_grad\0"
               "0.25"),
         "nag",
         {"momentum", "0.5", "rescale_grad", "0.25"}},
    };
    static float first[COUNT];
    reference r;
    team t;

    (void)state;
    team_start(&t, "");
    assert_string_equal(t.scheduler.address, "sched:9091");
    team_init(&t, first);
    reference_open(&r, first);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(command(&t, rows[i].command, rows[i].bytes), TN_OK);
        assert_int_equal(tn_kv_set_optimizer(r.kv, rows[i].name, rows[i].params), TN_OK);
        steps_compare(&t, &r, (uint32_t)i * 4, (uint32_t)i * 4 + 3);
    }
    assert_int_equal(COMMAND(&t, "set\0lr\0"
                                 "0.5\0"),
                     TN_OK);
    assert_int_equal(tn_kv_set_param(r.kv, NULL, "lr", 0.5), TN_OK);
    steps_compare(&t, &r, 40, 42);
    assert_int_equal(COMMAND(&t, "program\0"
                                 "7\0body"),
                     TN_OK);
    assert_int_equal(atomic_load(&t.servers[1].commands), 1);
    assert_int_equal(t.servers[1].heads[0], 7);
    reference_close(&r);
    team_end(&t);
}

static void wrong_commands(void **state)
{
    team t;

    (void)state;
    team_start(&t, "");
    assert_int_equal(COMMAND(&t, "optimizer\0nothing"), TN_E_KEY);
    assert_int_equal(COMMAND(&t, "optimizer\0sgd\0lr\0x"), TN_E_ATTR);
    assert_int_equal(COMMAND(&t, "explode"), TN_E_FORMAT);
    assert_int_equal(command(&t, "optimizer", 9), TN_E_FORMAT); /* no NUL */
    assert_int_equal(command(&t, "", 0), TN_E_FORMAT);
    assert_int_equal(COMMAND(&t, "program\0"
                                 "-1\0body"),
                     TN_E_FORMAT);
    team_end(&t);
}

static bool gone(void *arg)
{
    return tni_kv_process_dead(arg, TNI_KV_SERVER) == SERVERS;
}

static bool rolled(void *arg)
{
    uint32_t epochs;

    (void)tni_kv_process_cut(arg, &epochs);
    return epochs > 0;
}

static uint32_t files(const char *folder, const char *part)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    uint32_t count = 0;

    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL)
        count += strstr(e->d_name, part) != NULL;
    (void)closedir(dir);
    return count;
}

/* Servers write while workers go on. */
static bool all_have_4(void *arg)
{
    return files(arg, "-4.snapshot") == SERVERS;
}

/* All servers and the scheduler are killed, and come back from their files: states go on to the same bits. */
static void from_files(void **state)
{
    static float first[COUNT], value[COUNT];
    const char *folder = scratch_quick_path("state/of/roles"), *const adam[] = {"lr", "0.01", NULL};
    tni_kv_request save = {.kind = TNI_KV_DO_SNAPSHOT};
    reference r;
    team t;

    (void)state;
    team_start(&t, folder);
    team_init(&t, first);
    reference_open(&r, first);
    assert_int_equal(COMMAND(&t, "optimizer\0adam\0lr\0"
                                 "0.01"),
                     TN_OK);
    assert_int_equal(tn_kv_set_optimizer(r.kv, "adam", adam), TN_OK);
    for (uint32_t s = 0; s < 4; s++) {
        steps_compare(&t, &r, s, s + 1);
        save.step = s + 1;
        assert_int_equal(job_do(t.workers[0], &save), TN_OK);
    }
    assert_true(loop_until(all_have_4, (void *)(uintptr_t)folder, 60));
    assert_true(files(folder, ".snapshot") >= 3 * SERVERS);
    assert_int_equal(files(folder, ".journal"), 1);
    loop_kill(t.scheduler.index);
    assert_int_equal(role_join(&t.scheduler), TN_E_IO);
    for (uint32_t i = 0; i < SERVERS; i++) {
        loop_kill(t.servers[i].index);
        assert_int_equal(role_join(&t.servers[i]), TN_E_IO);
    }
    role_start(&t.scheduler, folder, "scheduler", -1);
    assert_true(loop_until(gone, t.workers[0], 60));
    for (uint32_t i = 0; i < SERVERS; i++)
        role_start(&t.servers[i], folder, "server", (int32_t)i);
    for (uint32_t w = 0; w < WORKERS; w++) {
        const tni_kv_request pull = {.kind = TNI_KV_DO_PULL, .out = value, .any = true};

        assert_true(loop_until(rolled, t.workers[w], 60));
        assert_int_equal(tni_kv_process_cut(t.workers[w], NULL), 4);
        assert_int_equal(job_do(t.workers[w], &pull), TN_OK);
    }
    steps_compare(&t, &r, 4, 7);
    reference_close(&r);
    team_end(&t);
}

static bool failed(void *arg)
{
    return tni_kv_process_status(arg) != TN_OK;
}

/* Two modes in one job: the second worker is refused. */
static void one_mode(void **state)
{
    tni_kv_setup setup;
    tni_kv_process *p;
    team t;

    (void)state;
    team_start(&t, "");
    assert_int_equal(tni_kv_setup_read(t.ctx[0], TNI_KV_WORKER, true, &setup), TN_OK);
    assert_int_equal(tni_kv_process_start(&setup, &p), TN_OK);
    assert_true(loop_until(failed, p, 30));
    assert_int_equal(tni_kv_process_joined(p), TN_E_PEER);
    assert_non_null(strstr(tni_error_message(), "asynchronous"));
    tni_kv_process_end(p);
    team_end(&t);
}

/* ---- files alone ---- */

static const tni_log no_log;

static void put(const char *folder, const char *name, const void *bytes, size_t count)
{
    char path[SCRATCH_PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    scratch_put(path, bytes, count);
}

static void damaged_snapshots(void **state)
{
    const char *folder = scratch_quick_path("damaged");
    tni_kv_disk *d;
    tni_kv_snapshots s;
    uint64_t steps[2], bytes;
    const void *text;
    tni_str written;
    uint8_t good[12] = "12345678";

    (void)state;
    tni_kv_put(good + 8, tni_crc32(0, good, 8), 4);
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, &d), TN_OK);
    assert_true(steps[0] == 0 && steps[1] == 0);
    s = tni_kv_disk_table(d);
    tni_str_init(&written, 100);
    assert_int_equal(tni_str_add_bytes(&written, good, sizeof good), TN_OK);
    for (uint64_t i = 1; i <= 5; i++) /* one of them again */
        assert_int_equal(s.write(s.arg, i < 5 ? i * 10 - 10 + (i == 1) : 30, &written), TN_OK);
    assert_int_equal(files(folder, ".snapshot"), 3);
    tni_kv_disk_close(d);
    put(folder, "0000000000000005-server-1-40.snapshot", "torn", 4);
    put(folder, "0000000000000005-server-1-50.snapshot", "", 0);
    put(folder, "0000000000000005-server-1-60.snapshot.x", good, sizeof good);
    put(folder, "0000000000000005-server-1-070.snapshot", good, sizeof good);
    put(folder, "0000000000000005-server-2-80.snapshot", good, sizeof good);
    put(folder, "0000000000000006-server-1-90.snapshot", good, sizeof good);
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, &d), TN_OK);
    assert_true(steps[0] == 30 && steps[1] == 20);
    s = tni_kv_disk_table(d);
    assert_int_equal(s.read(s.arg, 30, &text, &bytes), TN_OK);
    assert_int_equal(bytes, sizeof good);
    assert_memory_equal(text, good, sizeof good);
    assert_int_equal(files(folder, "-server-1-40.snapshot"), 0); /* servers went back to 30 */
    assert_int_equal(files(folder, "-server-1-50.snapshot"), 0);
    assert_int_equal(s.read(s.arg, 31, &text, &bytes), TN_E_IO);
    tni_kv_disk_close(d);
    tni_kv_disk_close(NULL);
    tni_str_fini(&written);
    assert_int_not_equal(tni_kv_disk_snapshots("/proc/nowhere", 5, 1, &no_log, steps, &d), TN_OK);
}

/* Servers that go back leave no snapshot behind that step, of whatever process of theirs; others' stay. */
static void rolled_back_snapshots(void **state)
{
    const char *folder = scratch_quick_path("back");
    tni_kv_snapshots s;
    uint64_t steps[2], bytes;
    const void *text;
    tni_kv_disk *d;
    tni_str written;
    uint8_t good[12] = "12345678";

    (void)state;
    tni_kv_put(good + 8, tni_crc32(0, good, 8), 4);
    tni_str_init(&written, 100);
    assert_int_equal(tni_str_add_bytes(&written, good, sizeof good), TN_OK);
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, &d), TN_OK);
    s = tni_kv_disk_table(d);
    for (uint64_t step = 10; step <= 40; step += 10)
        assert_int_equal(s.write(s.arg, step, &written), TN_OK);
    put(folder, "0000000000000005-server-1-70.snapshot.tmp-4-0", good, 5);
    put(folder, "0000000000000005-server-11-80.snapshot", good, sizeof good);
    put(folder, "0000000000000006-server-1-90.snapshot", good, sizeof good);
    assert_int_equal(s.read(s.arg, 35, &text, &bytes), TN_E_IO);
    assert_int_equal(files(folder, "-server-1-40.snapshot"), 1); /* nothing was read */
    assert_int_equal(s.read(s.arg, 30, &text, &bytes), TN_OK);
    assert_int_equal(files(folder, ".tmp-4-0"), 0);
    assert_int_equal(files(folder, ".snapshot"), 4); /* 20, 30 and the others' */
    assert_int_equal(s.write(s.arg, 35, &written), TN_OK);
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, &d), TN_OK);
    assert_true(steps[0] == 35 && steps[1] == 30);
    s = tni_kv_disk_table(d);
    put(folder, "0000000000000005-server-1-70.snapshot.tmp-4-0", good, 5);
    assert_int_equal(s.read(s.arg, 0, &text, &bytes), TN_OK); /* to the beginning: they are kept beside */
    assert_int_equal(files(folder, "-server-1-35.snapshot.aside"), 1);
    assert_int_equal(files(folder, "-server-1-30.snapshot.aside"), 1);
    assert_int_equal(files(folder, ".snapshot.aside"), 3);
    assert_int_equal(files(folder, ".tmp-4-0"), 0);
    assert_int_equal(files(folder, "-server-11-80.snapshot.aside"), 0); /* another server's */
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, &d), TN_OK);
    assert_true(steps[0] == 0 && steps[1] == 0); /* no process finds them under that name */
    tni_kv_disk_close(d);
    tni_str_fini(&written);
}

static tni_kv_snapshots disk_open(const char *folder, uint64_t steps[2], tni_kv_disk **d)
{
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, d), TN_OK);
    return tni_kv_disk_table(*d);
}

static void text_make(const char *eight, tni_str *out)
{
    uint8_t text[12];

    memcpy(text, eight, 8);
    tni_kv_put(text + 8, tni_crc32(0, text, 8), 4);
    tni_str_init(out, 100);
    assert_int_equal(tni_str_add_bytes(out, (const char *)text, sizeof text), TN_OK);
}

/* A server was stopped, another one has its place, and then it goes on: whatever it was about to do, its
 * successor's snapshots stay as they are. */
static void snapshots_of_a_successor(void **state)
{
    const char *folder = scratch_quick_path("successor");
    tni_kv_snapshots first, second, third;
    uint64_t steps[2], bytes;
    tni_kv_disk *of[3];
    const void *text;
    tni_str a, b;

    (void)state;
    text_make("of first", &a);
    text_make("of other", &b);
    first = disk_open(folder, steps, &of[0]);
    for (uint64_t step = 10; step <= 30; step += 10)
        assert_int_equal(first.write(first.arg, step, &a), TN_OK);
    put(folder, "0000000000000005-server-1-40.snapshot.tmp-4-0", a.text, a.length); /* it is stopped here */
    put(folder, "0000000000000005-server-2-40.snapshot.tmp-4-0", a.text, a.length);
    second = disk_open(folder, steps, &of[1]);
    assert_true(steps[0] == 30 && steps[1] == 20);
    assert_int_equal(files(folder, ".tmp-4-0"), 1); /* there is nothing left to rename */
    assert_int_equal(second.read(second.arg, 20, &text, &bytes), TN_OK);
    for (uint64_t step = 22; step <= 26; step += 2)
        assert_int_equal(second.write(second.arg, step, &b), TN_OK);
    assert_int_equal(files(folder, "-server-1-20.snapshot"), 0);

    assert_int_equal(first.write(first.arg, 40, &a), TN_E_PEER);
    assert_non_null(strstr(tni_error_message(), "place"));
    assert_int_equal(first.write(first.arg, 24, &a), TN_E_PEER);
    assert_int_equal(first.read(first.arg, 0, &text, &bytes), TN_OK); /* sets nothing aside */
    assert_int_equal(files(folder, ".aside"), 0);
    assert_int_equal(files(folder, ".tmp-"), 1); /* and leaves nothing */
    assert_int_equal(files(folder, "-server-1-"), 3);
    third = disk_open(folder, steps, &of[2]);
    assert_true(steps[0] == 26 && steps[1] == 24);
    assert_int_equal(third.read(third.arg, 24, &text, &bytes), TN_OK);
    assert_memory_equal(text, "of other", 8);
    assert_int_equal(second.write(second.arg, 28, &b), TN_E_PEER);
    assert_int_equal(third.write(third.arg, 28, &b), TN_OK);
    for (int i = 0; i < 3; i++)
        tni_kv_disk_close(of[i]);
    tni_str_fini(&a);
    tni_str_fini(&b);
}

/* The same of a scheduler: its last view would be the job's. */
static void journal_of_a_successor(void **state)
{
    const char *folder = scratch_quick_path("successors");
    tni_kv_journal j[3];
    tni_kv_disk *d[3];
    const void *text;
    uint64_t bytes;

    (void)state;
    assert_int_equal(tni_kv_disk_journal(folder, 9, &j[0], &text, &bytes, &d[0]), TN_OK);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &j[1], &text, &bytes, &d[1]), TN_OK);
    assert_int_equal(j[0].append(j[0].arg, "first", 5), TN_E_PEER);
    assert_int_equal(j[0].replace(j[0].arg, "first", 5), TN_E_PEER);
    assert_int_equal(tni_kv_disk_journal(folder, 10, &j[2], &text, &bytes, &d[2]), TN_OK); /* another job */
    assert_int_equal(j[1].append(j[1].arg, "second", 6), TN_OK);
    assert_int_equal(j[1].replace(j[1].arg, "second", 6), TN_OK);
    assert_int_equal(j[2].append(j[2].arg, "third", 5), TN_OK);
    for (int i = 0; i < 3; i++)
        tni_kv_disk_close(d[i]);
    assert_int_equal(files(folder, ".owner"), 2);
}

static void torn_journal_file(void **state)
{
    const char *folder = scratch_quick_path("journal");
    tni_kv_journal j;
    tni_kv_disk *d;
    const void *text;
    uint64_t bytes;
    tni_str record;

    (void)state;
    tni_str_init(&record, 4096);
    assert_int_equal(tni_kv_journal_record("first", 5, &record), TN_OK);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &j, &text, &bytes, &d), TN_OK);
    assert_true(bytes == 0);
    assert_int_equal(j.append(j.arg, record.text, record.length), TN_OK);
    assert_int_equal(j.append(j.arg, record.text, record.length / 2), TN_OK); /* the crash */
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &j, &text, &bytes, &d), TN_OK);
    assert_int_equal(bytes, record.length);
    assert_int_equal(j.append(j.arg, record.text, record.length), TN_OK);
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &j, &text, &bytes, &d), TN_OK);
    assert_int_equal(bytes, 2 * record.length);
    assert_int_equal(j.replace(j.arg, record.text, record.length), TN_OK);
    assert_int_equal(j.append(j.arg, record.text, record.length), TN_OK);
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &j, &text, &bytes, &d), TN_OK);
    assert_int_equal(bytes, 2 * record.length);
    tni_kv_disk_close(d);
    assert_int_not_equal(tni_kv_disk_journal("/proc/nowhere", 9, &j, &text, &bytes, &d), TN_OK);
    tni_str_fini(&record);
}

#ifdef TN_TEST_SWITCHES
static uint64_t (**const clock_of_processes)(void) = &tni_kv_clock;
#else
static uint64_t (**const clock_of_processes)(void) = NULL;
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_are_the_stores),
        cmocka_unit_test(wrong_commands),
        cmocka_unit_test(from_files),
        cmocka_unit_test(one_mode),
        cmocka_unit_test(damaged_snapshots),
        cmocka_unit_test(rolled_back_snapshots),
        cmocka_unit_test(snapshots_of_a_successor),
        cmocka_unit_test(journal_of_a_successor),
        cmocka_unit_test(torn_journal_file),
    };

    if (!clock_of_processes) {
        print_message("skipped: processes of this build have the machine's clock alone\n");
        return 77;
    }
    *clock_of_processes = loop_clock;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
