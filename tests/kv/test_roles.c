/*
 * Servers and a scheduler by the options of contexts, over the loop: optimizers as in a store of one process,
 * snapshots and the journal in files, a second life of all of them.
 */
#include <dirent.h>
#include <inttypes.h>
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
static const char *scheduler_at = "kvstore.scheduler=sched";

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
                                    scheduler_at,
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

/* The text of the file that says whose server 0's snapshots are. */
static void owner_read(const char *folder, uint64_t number, char out[24])
{
    char path[SCRATCH_PATH_BYTES];
    uint64_t bytes;
    char *text;

    (void)snprintf(path, sizeof path, "%s/%016llx-server-0.owner", folder, (unsigned long long)number);
    assert_int_equal(tni_file_read_all(path, 23, &text, &bytes), TN_OK);
    (void)snprintf(out, 24, "%s", text);
    tni_free(text);
}

/* A second process with a server's number and folder, which finds no scheduler: the folder stays as it is. */
static void server_without_a_scheduler(void **state)
{
    const char *folder = scratch_quick_path("shared");
    char before[24], after[24];
    tni_kv_setup setup;
    role second;
    team t;

    (void)state;
    team_start(&t, folder);
    assert_int_equal(tni_kv_setup_read(t.ctx[0], TNI_KV_WORKER, false, &setup), TN_OK);
    owner_read(folder, setup.settings.job, before);
    scheduler_at = "kvstore.scheduler=elsewhere";
    role_start(&second, folder, "server", 0);
    scheduler_at = "kvstore.scheduler=sched";
    (void)loop_until(never, NULL, 3);
    loop_kill(second.index);
    assert_int_equal(role_join(&second), TN_E_IO);
    owner_read(folder, setup.settings.job, after);
    assert_string_equal(after, before);
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

/* Another scheduler has taken its journal, and it ends: its view is not the job's any more. */
static void scheduler_superseded(void **state)
{
    const char *folder = scratch_quick_path("superseded");
    char path[SCRATCH_PATH_BYTES];
    const void *text;
    uint64_t bytes;
    tni_kv_journal j;
    tni_kv_disk *d;
    tni_kv_setup setup;
    team t;

    (void)state;
    team_start(&t, folder);
    assert_int_equal(tni_kv_setup_read(t.ctx[0], TNI_KV_WORKER, false, &setup), TN_OK);
    assert_int_equal(tni_kv_disk_journal(folder, setup.settings.job, setup.log, &j, &text, &bytes, &d),
                     TN_E_STATE);
    (void)snprintf(path, sizeof path, "%s/%016" PRIx64 "-scheduler.lock", folder, setup.settings.job);
    assert_int_equal(remove(path), 0); /* a shared folder has given up its machine */
    assert_int_equal(tni_kv_disk_journal(folder, setup.settings.job, setup.log, &j, &text, &bytes, &d),
                     TN_OK);
    assert_true(bytes > 0);
    loop_kill(t.servers[0].index); /* which the scheduler would write */
    assert_int_equal(role_join(&t.servers[0]), TN_E_IO);
    (void)loop_until(never, NULL, 20);
    assert_int_equal(role_join(&t.scheduler), TN_E_PEER);
    assert_non_null(strstr(t.scheduler.error.message, "taken this one's place"));
    loop_kill(t.servers[1].index);
    assert_int_equal(role_join(&t.servers[1]), TN_E_IO);
    for (uint32_t i = 0; i < WORKERS; i++) {
        tni_kv_process_end(t.workers[i]);
        assert_int_equal(tni_context_close(t.ctx[i], 0), TN_OK);
    }
    tni_kv_disk_close(d);
    loop_end();
}

#ifdef TN_TEST_SWITCHES
static bool virtual_time(void)
{
    tni_kv_clock = loop_clock;
    tni_kv_disk_busy = loop_busy;
    return true;
}
#else
static bool virtual_time(void)
{
    return false;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_are_the_stores),
        cmocka_unit_test(wrong_commands),
        cmocka_unit_test(from_files),
        cmocka_unit_test(server_without_a_scheduler),
        cmocka_unit_test(one_mode),
        cmocka_unit_test(scheduler_superseded),
    };

    if (!virtual_time()) {
        print_message("skipped: processes of this build have the machine's clock alone\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
