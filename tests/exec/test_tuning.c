/*
 * What a kernel that measures gets in `prepare`: a time under run.deterministic = off alone, scratch, and the
 * blob that its build left for an equal request in an earlier context.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/invoke.h"
#include "far.h"
#include "support/scratch.h"
#include "support/static_plugin.h"
#include "tenon/plugin/attr.h"

#define BLOCKS_MAX 64

static uint32_t prepares, releases, blocks;
static uint64_t budget;
static char tuned[32]; /* what came; "" if nothing did */
static bool aligned;

static void blob_release(void *data)
{
    releases++;
    free(data);
}

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_prepare_ops *h = node->host;

    (void)plugin;
    (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    prepares++;
    budget = h->tuning_budget_ns;
    blocks = 0;
    aligned = true;
    for (unsigned char *block; (block = h->scratch(h->arg, 1000u * blocks)) != NULL; blocks++) {
        aligned = aligned && !((uintptr_t)block % 64);
        memset(block, 0xff, 1000u * blocks);
    }
    memset(tuned, 0, sizeof tuned);
    if (TN_HAS(h, tn_prepare_ops, tuned_bytes) && h->tuned_bytes < sizeof tuned)
        memcpy(tuned, h->tuned, h->tuned_bytes);
    if ((plan->tuning.data = malloc(5)) != NULL)
        plan->tuning = (tn_blob){memcpy(plan->tuning.data, "way 2", 5), 5, blob_release};
    return TN_OK;
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return TN_OK;
}

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static const char *const names_in[] = {"data", NULL}, *const names_out[] = {"output", NULL};
static const tn_attr_def attrs[] = {TN_ATTR_INT("pad", "0", "structural"),
                                    TN_ATTR_INT_RUN("step", "0", "changes between runs"), TN_ATTR_END};
static const tn_op op = TEST_OP(.name = "test_tune", .attrs = attrs, .inputs = names_in, .outputs = names_out,
                                .shape = same_shape);
TEST_OPS(op_table, "tuners", &op);
static const char *const types[] = {"*:f32", NULL};
#define KERNEL(device_)                                                                                      \
    TEST_KERNEL("test_tune", device_, .name = "tuned", .types = types, .prepare = prepare, .run = run)
static const tn_kernel host_kernel = KERNEL("cpu"), beside_kernel = KERNEL("beside");
static const tn_kernel *const host_kernels[] = {&host_kernel, NULL}, *const beside_kernels[] = {
                                                                         &beside_kernel, NULL};
static const tn_kernel_table host_table = {.head = TN_CAPABILITY(tn_kernel_table, stream_detach,
                                                                 TN_KIND_KERNELS, "cpu"),
                                           .kernels = host_kernels},
                             beside_table = {.head = TN_CAPABILITY(tn_kernel_table, stream_detach,
                                                                   TN_KIND_KERNELS, "beside"),
                                             .kernels = beside_kernels};
TEST_PLUGIN(plugin, "tuners", &op_table.head, &host_table.head, &beside_table.head, &beside_ops.head);

static char file[SCRATCH_PATH_BYTES + 16]; /* tuning.file=… */

/* A context of this build of the plugin. */
static tni_context *context_of(const char *build, const char *first, const char *second)
{
    const char *const settings[] = {file, first, second, NULL};
    tni_context *c = test_context(settings);
    tni_plugin *p = NULL;

    assert_ok(tni_registry_add_static(c->plugins, &plugin, &p));
    snprintf(p->note.build_id, sizeof p->note.build_id, "%s", build);
    return c;
}

static void call(tni_context *c, int64_t rows, int64_t columns, const char *attr)
{
    const int64_t shape[] = {rows, columns};
    const float values[6] = {1, 2, 3, 4, 5, 6};
    tni_array *x = test_array(c, 2, shape, values), *y = test_op(c, "test_tune", 1, &x, attr, NULL);

    test_values(y, values, 6, 0);
    tni_array_release(x);
    tni_array_release(y);
}

/* One call in a context of its own; the number of prepares. */
static uint32_t once(const char *build, const char *first, const char *second)
{
    tni_context *c = context_of(build, first, second);

    prepares = releases = 0;
    call(c, 2, 3, NULL);
    test_context_close(c);
    assert_int_equal(releases, prepares);
    return prepares;
}

static int file_new(void **state)
{
    const char *path = scratch_path("tuning.bin");

    (void)state;
    (void)unlink(path);
    snprintf(file, sizeof file, "tuning.file=%s", path);
    return 0;
}

#define OFF "run.deterministic=off"
#define FILE_PATH (file + strlen("tuning.file="))

static void budgets(void **state)
{
    static const struct {
        const char *first, *second;
        uint64_t ns;
    } rows[] = {{NULL, NULL, 0},
                {"run.deterministic=run", "tuning.budget_ms=5", 0},
                {"run.deterministic=threads", "tuning.budget_ms=5", 0},
                {OFF, "tuning.budget_ms=0", 0},
                {OFF, "tuning.budget_ms=5", 5000000},
                {OFF, NULL, 200000000}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tni_context *c = context_of("1", rows[i].first, rows[i].second);

        call(c, 2, 3, NULL);
        assert_int_equal(budget, rows[i].ns);
        assert_true(aligned);
        assert_int_equal(blocks, BLOCKS_MAX);
        test_context_close(c);
    }
}

/* Scratch is given back when prepare returns, and equal calls are prepared once. */
static void scratch_ends(void **state)
{
    tni_context *c = context_of("1", OFF, NULL);
    tni_memory_stats before, after;
    tni_device *d;

    (void)state;
    prepares = 0;
    call(c, 2, 3, NULL);
    assert_ok(tni_default_device(c, &d));
    assert_ok(tni_engine_wait_all(c->engine));
    assert_ok(tni_device_memory(d, TN_MEMORY_DEVICE, &before));
    call(c, 3, 2, NULL);
    call(c, 3, 2, NULL);
    assert_int_equal(prepares, 2);
    assert_ok(tni_engine_wait_all(c->engine));
    assert_ok(tni_device_memory(d, TN_MEMORY_DEVICE, &after));
    assert_int_equal(after.live, before.live);
    test_context_close(c);
}

/* Contexts of the default keep nothing, and what is kept does not come back in them. */
static void only_off(void **state)
{
    (void)state;
    once("1", NULL, NULL);
    assert_false(tni_file_exists(FILE_PATH));
    once("1", OFF, NULL);
    assert_true(tni_file_exists(FILE_PATH));
    assert_string_equal(tuned, "");
    once("1", NULL, NULL);
    assert_string_equal(tuned, "");
    once("1", OFF, NULL);
    assert_string_equal(tuned, "way 2");
    once("1", OFF, "tuning.budget_ms=0"); /* no measuring, but what was measured is known */
    assert_string_equal(tuned, "way 2");
    once("1", OFF, "tuning.file=none");
    assert_string_equal(tuned, "");
}

static void keys(void **state)
{
    tni_context *c;

    (void)state;
    once("1", OFF, "engine.threads=2");
    once("2", OFF, "engine.threads=2");
    assert_string_equal(tuned, ""); /* another build */
    once("1", OFF, "engine.threads=3");
    assert_string_equal(tuned, "");
    once("", OFF, "engine.threads=2");
    once("", OFF, "engine.threads=2");
    assert_string_equal(tuned, ""); /* of no build that could be told from others */
    c = context_of("1", OFF, "engine.threads=2");
    call(c, 3, 2, NULL);
    assert_string_equal(tuned, ""); /* another shape */
    call(c, 2, 3, "pad=1");
    assert_string_equal(tuned, ""); /* another attribute */
    call(c, 2, 3, "step=1");        /* this one belongs to no request */
    assert_string_equal(tuned, "way 2");
    test_context_close(c);
    once("2", OFF, "engine.threads=2");
    assert_string_equal(tuned, "way 2");
}

/* Devices with streams get scratch and what was stored, and no time: there is no stream to measure on. */
static void devices(void **state)
{
    const int64_t shape[] = {2, 3};
    const float values[6] = {1, 2, 3, 4, 5, 6};

    (void)state;
    once("1", OFF, NULL); /* the host's blob is another one's */
    for (int i = 0; i < 2; i++) {
        tni_context *c = context_of("1", OFF, NULL);
        tni_array *x = NULL, *y = NULL;
        tni_device *d = NULL;

        assert_ok(tni_device_get(c->devices, "beside", 0, &d));
        assert_ok(tni_array_create(c->space, d, TN_F32, 2, shape, "test", &x));
        assert_ok(tni_array_write(x, values, sizeof values));
        budget = 1;
        assert_ok(tni_invoke_text(c, "test_tune", 1, &x, 0, NULL, NULL, 1, &y, NULL));
        test_values(y, values, 6, 0);
        assert_int_equal(budget, 0);
        assert_true(aligned);
        assert_int_equal(blocks, BLOCKS_MAX);
        assert_string_equal(tuned, i ? "way 2" : "");
        tni_array_release(x);
        tni_array_release(y);
        test_context_close(c);
    }
}

/* Who asks which kernel would serve a call makes nobody measure; what was stored holds there, too. */
static void asked(void **state)
{
    const int64_t shape[] = {2, 3};
    const tni_why_input input = {.shape = shape, .ndim = 2, .dtype = TN_F32};
    tni_why_query q = {.op = "test_tune", .inputs = &input, .input_count = 1, .dtype = TN_F32};
    tni_context *c = context_of("1", OFF, NULL);
    tni_why *y = NULL;

    (void)state;
    assert_ok(tni_default_device(c, &q.device));
    prepares = 0;
    budget = 1;
    assert_ok(tni_why_create(c, &q, &y));
    tni_why_destroy(y);
    assert_int_equal(prepares, 1);
    assert_int_equal(budget, 0);
    call(c, 2, 3, NULL);
    assert_int_equal(budget, 200000000);
    test_context_close(c);
}

static void damaged(void **state)
{
    (void)state;
    once("1", OFF, NULL);
    assert_int_equal(truncate(FILE_PATH, 20), 0);
    once("1", OFF, NULL);
    assert_string_equal(tuned, "");
    once("1", OFF, NULL);
    assert_string_equal(tuned, "way 2");
}

/* Without an option: below the user's cache folder, which is made. */
static void user_folder(void **state)
{
    const char *folder = scratch_path("cache"), *set = getenv("XDG_CACHE_HOME");
    char *before = set ? strdup(set) : NULL;

    (void)state;
    snprintf(file, sizeof file, "tuning.file=");
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    once("1", OFF, NULL);
    once("1", OFF, NULL);
    assert_string_equal(tuned, "way 2");
    assert_true(tni_file_exists(scratch_path("cache/tenon/tuning.bin")));
    assert_int_equal(before ? setenv("XDG_CACHE_HOME", before, 1) : unsetenv("XDG_CACHE_HOME"), 0);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(budgets, file_new),  cmocka_unit_test_setup(scratch_ends, file_new),
        cmocka_unit_test_setup(only_off, file_new), cmocka_unit_test_setup(keys, file_new),
        cmocka_unit_test_setup(damaged, file_new),  cmocka_unit_test_setup(devices, file_new),
        cmocka_unit_test_setup(asked, file_new),    cmocka_unit_test_setup(user_folder, file_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
