/*
 * Plugins of one context are loaded, opened, added and used by some threads while others list them, look into
 * them and ask why kernels are chosen. What a reader sees is whole: a loaded plugin has its tables, one that
 * is unusable has its reason. Under the thread sanitizer an unguarded member of a plugin is a failure.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "api/support.h"
#include "base/base.h"
#include "support/scratch.h"
#include "tenon/plugin/plugin.h"
#include "tenon/plugin/util.h"

enum { READERS = 3, ROUNDS = 4, ADDED = 64, CALLS = 20 };

typedef struct shared {
    tn_ctx *ctx;
    atomic_uint here; /* readers that have begun */
    atomic_bool done;
    atomic_int wrong; /* __LINE__ of the first thing that was wrong */
} shared;

static void check(shared *s, bool good, int line)
{
    int none = 0;

    if (!good)
        (void)atomic_compare_exchange_strong(&s->wrong, &none, line);
}
#define CHECK(good) check(s, (good), __LINE__)

/* ---- reading ------------------------------------------------------------------------------------- */

static void plugin_read(shared *s, size_t index)
{
    tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};
    tn_capability_info c = {.struct_size = TN_SIZE(tn_capability_info)};
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};
    tn_library_info l = {.struct_size = TN_SIZE(tn_library_info)};
    size_t count = 0;

    CHECK(!tn_plugin_at(s->ctx, index, &p));
    CHECK(p.state != TN_PLUGIN_LOADED || p.capability_count > 0);
    CHECK(p.state == TN_PLUGIN_LOADED || p.capability_count + p.option_count == 0);
    CHECK((p.state == TN_PLUGIN_REFUSED || p.state == TN_PLUGIN_FAILED) == (p.reason[0] != '\0'));
    CHECK(p.state == TN_PLUGIN_FAILED ? p.refusal > 0 : p.state == TN_PLUGIN_REFUSED || p.refusal == 0);
    CHECK(strlen(p.name) > 0 && strlen(p.provides) > 0);
    for (uint32_t i = 0; i < p.capability_count; i++) /* the index may be another plugin's by now */
        CHECK(tn_plugin_capability(s->ctx, index, i, &c) || c.kind[0]);
    for (uint32_t i = 0; i < p.option_count; i++)
        CHECK(tn_plugin_option(s->ctx, index, i, &o) || o.key[0]);
    if (!tn_plugin_library_count(s->ctx, index, &count) && count)
        CHECK(tn_plugin_library(s->ctx, index, 0, &l) || l.name[0]);
}

static void why_read(shared *s)
{
    const tn_choice_query q = {.struct_size = TN_SIZE(tn_choice_query), .op = "FullyConnected", .dtype = -1};
    tn_candidate_info c = {.struct_size = TN_SIZE(tn_candidate_info)};
    tn_choice_info i = {.struct_size = TN_SIZE(tn_choice_info)};
    tn_kernel_info k = {.struct_size = TN_SIZE(tn_kernel_info)};
    tn_choice *choice = NULL;
    size_t kernels = 0;

    CHECK(!tn_choice_create(s->ctx, &q, &choice) && !tn_choice_get(choice, &i) && i.count > 0);
    for (uint32_t n = 0; n < i.count; n++)
        CHECK(!tn_choice_candidate(choice, n, &c) && (c.serves || c.reason[0]));
    tn_choice_destroy(choice);
    CHECK(!tn_kernel_count(s->ctx, &kernels));
    CHECK(!kernels || (!tn_kernel_at(s->ctx, kernels - 1, &k) && k.plugin[0]));
}

static void read_all(void *arg)
{
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};
    tn_folder_info d = {.struct_size = TN_SIZE(tn_folder_info)};
    shared *s = arg;
    uint32_t turn = 0;
    size_t count = 0;

    while (!atomic_load(&s->done) || turn < 2) {
        CHECK(!tn_plugin_count(s->ctx, &count) && count > 0);
        for (size_t i = 0; i < count; i++)
            plugin_read(s, i);
        for (size_t i = 0; !tn_plugin_folder(s->ctx, i, &d); i++)
            CHECK(d.path[0] == '/');
        CHECK(!tn_ctx_stats(s->ctx, &stats));
        if (turn++ % 4 == 1) /* not at once: this loads plugins itself */
            why_read(s);
        atomic_fetch_add(&s->here, turn == 1);
    }
}

/* ---- loading, using ------------------------------------------------------------------------------ */

static tn_status init_good(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)err;
    *plugin = NULL;
    return TN_OK;
}

static tn_status init_bad(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    return tn_fail(err, TN_E_DEVICE, "the moon is full");
}

static const tn_capability pool = TN_CAPABILITY(tn_capability, id, TN_KIND_POOL, "added");
static const tn_capability *const tables[] = {&pool, NULL};

static void plugin_add(shared *s, int index)
{
    static char names[ADDED][32];
    static tn_plugin all[ADDED]; /* looked at until the context is closed */

    (void)snprintf(names[index], sizeof names[index], "added-%d", index);
    all[index] = (tn_plugin){.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                             .magic = TN_MAGIC,
                             .abi_major = TN_ABI_MAJOR,
                             .name = names[index],
                             .version = "1.0",
                             .vendor = "Acme",
                             .license = "Apache-2.0",
                             .summary = "added",
                             .init = index % 2 ? init_bad : init_good,
                             .capabilities = tables};
    CHECK(tn_plugin_add(s->ctx, &all[index]) == (index % 2 ? TN_E_DEVICE : TN_OK));
    CHECK(tn_plugin_add(s->ctx, &all[index]) != TN_OK); /* its name is taken */
}

static void readers_await(const shared *s)
{
    while (atomic_load(&s->here) < READERS)
        (void)sched_yield();
}

static void load_all(void *arg)
{
    static const char *const names[] = {"cpu", "mempool", "fake", "cpu-openblas", "nobody"};
    shared *s = arg;

    readers_await(s);
    for (int i = 0; i < ADDED; i++) {
        tn_status st = tn_plugin_load(s->ctx, names[i % 5]);

        CHECK(i % 5 != 4 || st == TN_E_KEY);
        plugin_add(s, i);
    }
}

static tn_status call_once(tn_ctx *ctx)
{
    const int64_t shape[] = {3};
    tn_array *x = NULL, *y = NULL;
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .in_count = 1, .op = "square", .in = &x};
    float in[] = {1, 2, 3}, out[3] = {0};
    uint32_t made = 0;
    tn_status st;

    if ((st = tn_array_from(ctx, TN_F32, 1, shape, in, &x)) ||
        (st = tn_invoke_text(ctx, &call, 1, &y, &made)) || (st = tn_array_read(y, out, sizeof out)))
        goto cleanup;
    st = out[0] == 1 && out[2] == 9 ? TN_OK : TN_E_INTERNAL;

cleanup:
    tn_array_release(x);
    tn_array_release(y);
    return st;
}

static void use(void *arg)
{
    shared *s = arg;

    readers_await(s);
    for (int i = 0; i < CALLS; i++)
        CHECK(!call_once(s->ctx));
}

static void open_others(void *arg)
{
    shared *s = arg;

    readers_await(s);
    for (int i = 0; i < 2; i++) {
        tn_ctx *other = NULL;

        CHECK(!test_open_with(NULL, &other) && !call_once(other) && !tn_close(other));
    }
}

/* A copy of a plugin of the build takes the place of the one that was found. */
static void open_file(void *arg)
{
    tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};
    shared *s = arg;
    size_t index = 0;
    tn_status st;

    readers_await(s);
    st = tn_plugin_open(s->ctx, scratch_path("mempool.so"), &index);
    CHECK(!st || st == TN_E_KEY); /* TN_E_KEY: the other one was loaded first */
    if (!st)
        CHECK(!tn_plugin_at(s->ctx, index, &p));
}

/* ---- the test ------------------------------------------------------------------------------------ */

static void mempool_copy(void)
{
    static char bytes[1 << 24];
    char path[4096];
    size_t count;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/mempool.so", getenv("TENON_TEST_PLUGINS"));
    assert_non_null(file = fopen(path, "rb"));
    count = fread(bytes, 1, sizeof bytes, file);
    assert_true(count > 0 && count < sizeof bytes);
    (void)fclose(file);
    (void)scratch_write("mempool.so", bytes, count);
}

static void all_at_once(void **state)
{
    static const tni_thread_fn writers[] = {load_all, use, open_others, open_file};
    enum { WRITERS = sizeof writers / sizeof *writers };

    (void)state;
    mempool_copy();
    for (int round = 0; round < ROUNDS; round++) {
        shared s = {.ctx = test_open(NULL)};
        tni_thread *threads[READERS + WRITERS];

        for (int i = 0; i < READERS + WRITERS; i++)
            assert_int_equal(
                tni_thread_create("t", i < READERS ? read_all : writers[i - READERS], &s, &threads[i]),
                TN_OK);
        for (int i = READERS; i < READERS + WRITERS; i++)
            tni_thread_join(threads[i]);
        atomic_store(&s.done, true);
        for (int i = 0; i < READERS; i++)
            tni_thread_join(threads[i]);
        if (atomic_load(&s.wrong))
            fail_msg("round %d: line %d is wrong", round, atomic_load(&s.wrong));
        test_close(s.ctx);
    }
}

/* ---- the first call of a plugin's operator --------------------------------------------------------- */

static void find_first(void *arg)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    shared *s = arg;

    atomic_fetch_add(&s->here, 1u);
    readers_await(s);
    CHECK(!tn_op_find(s->ctx, "acme_scale_shift", &info));
}

/* The plugin is loaded for whoever asks first; the others wait for that. */
static void an_operator_is_there_for_all(void **state)
{
    const char *build = getenv("TENON_TEST_BUILD");
    char setting[4096];

    (void)state;
    (void)snprintf(setting, sizeof setting, "plugins.path=%s/templates", build ? build : ".");
    for (int round = 0; round < 10; round++) {
        shared s = {.ctx = test_open((const char *const[]){setting, NULL})};
        tni_thread *threads[READERS];

        for (int i = 0; i < READERS; i++)
            assert_int_equal(tni_thread_create("t", find_first, &s, &threads[i]), TN_OK);
        for (int i = 0; i < READERS; i++)
            tni_thread_join(threads[i]);
        if (atomic_load(&s.wrong))
            fail_msg("round %d: line %d is wrong", round, atomic_load(&s.wrong));
        test_close(s.ctx);
    }
}

/* ---- operators and kernels that are added while others are looked for --------------------------------- */

static tn_status same_shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return TN_OK;
}

typedef struct own_plugin { /* all that its descriptor points to */
    char name[32];
    tn_op op;
    tn_kernel kernel;
    const tn_op *ops[2];
    const tn_kernel *kernels[2];
    tn_op_table op_table;
    tn_kernel_table kernel_table;
    const tn_capability *tables[3];
    tn_plugin plugin;
} own_plugin;

static void own_make(own_plugin *o, int index)
{
    static const char *const data[] = {"data", NULL}, *const output[] = {"output", NULL};
    static const char *const types[] = {"*:f32", NULL};

    (void)snprintf(o->name, sizeof o->name, "own_%d", index);
    o->op = (tn_op){.struct_size = (uint32_t)TN_END(tn_op, gradient),
                    .version = 1,
                    .name = o->name,
                    .doc = "test",
                    .inputs = data,
                    .outputs = output,
                    .shape = same_shape};
    o->kernel = (tn_kernel){.struct_size = (uint32_t)TN_END(tn_kernel, release),
                            .rank = 64,
                            .op = o->name,
                            .name = o->name,
                            .device = "cpu",
                            .isa = "",
                            .op_version_min = 1,
                            .op_version_max = 1,
                            .flags = TN_KERNEL_DETERMINISTIC,
                            .types = types,
                            .run = copy_run};
    o->ops[0] = &o->op;
    o->kernels[0] = &o->kernel;
    o->op_table = (tn_op_table){.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "own"), .ops = o->ops};
    o->kernel_table = (tn_kernel_table){
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = o->kernels};
    o->tables[0] = &o->op_table.head;
    o->tables[1] = &o->kernel_table.head;
    o->plugin = (tn_plugin){.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                            .magic = TN_MAGIC,
                            .abi_major = TN_ABI_MAJOR,
                            .name = o->name,
                            .version = "1.0",
                            .vendor = "Acme",
                            .license = "Apache-2.0",
                            .summary = "own",
                            .capabilities = o->tables};
}

static void look_on(void *arg)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    shared *s = arg;

    do {
        CHECK(tn_op_find(s->ctx, "nobody", &info) == TN_E_KEY);
        CHECK(!call_once(s->ctx));
        atomic_fetch_add(&s->here, 1u);
    } while (!atomic_load(&s->done));
}

static void what_was_added_is_found(void **state)
{
    enum { OWN = 40 };
    static own_plugin own[OWN];
    const float one[] = {1};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        shared s = {.ctx = test_open(NULL)};
        tn_array *x = test_array(s.ctx, 1, (int64_t[]){1}, one), *y;
        tni_thread *threads[READERS];

        for (int i = 0; i < READERS; i++)
            assert_int_equal(tni_thread_create("t", look_on, &s, &threads[i]), TN_OK);
        readers_await(&s);
        for (int i = 0; i < OWN; i++) {
            own_make(&own[i], i);
            assert_ok(tn_plugin_add(s.ctx, &own[i].plugin));
            for (int k = i - 1; i % 2 && k <= i; k++) { /* the second comes while others look at the first */
                y = test_op(s.ctx, own[k].name, NULL, 1, &x);
                test_values(y, one, 1, 0);
                tn_array_release(y);
            }
        }
        atomic_store(&s.done, true);
        for (int i = 0; i < READERS; i++)
            tni_thread_join(threads[i]);
        if (atomic_load(&s.wrong))
            fail_msg("round %d: line %d is wrong", round, atomic_load(&s.wrong));
        tn_array_release(x);
        test_close(s.ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_at_once),
                                       cmocka_unit_test(an_operator_is_there_for_all),
                                       cmocka_unit_test(what_was_added_is_found)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
