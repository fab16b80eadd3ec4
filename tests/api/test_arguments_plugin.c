/* As test_arguments.c: what plugins bring, kernels, why one is chosen; and what comes of right arguments. */
#include "api/fixture.h"

#include <stdbool.h>
#include <stdio.h>

static size_t plugin_index(tn_ctx *ctx, const char *name, tn_plugin_info *out)
{
    size_t count = 0;

    assert_ok(tn_plugin_count(ctx, &count));
    for (size_t i = 0; i < count; i++) {
        *out = (tn_plugin_info){.struct_size = TN_SIZE(tn_plugin_info)};
        assert_ok(tn_plugin_at(ctx, i, out));
        if (!strcmp(out->name, name))
            return i;
    }
    fail_msg("no plugin %s", name);
    return 0;
}

static void plugins(void **state)
{
    tn_capability_info c = {.struct_size = TN_SIZE(tn_capability_info)}, bad_c = {0};
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)}, bad_o = {0};
    tn_library_info l = {.struct_size = TN_SIZE(tn_library_info)}, bad_l = {0};
    tn_folder_info d = {.struct_size = TN_SIZE(tn_folder_info)}, bad_d = {0};
    tn_plugin_info p;
    size_t cpu, n = 77;

    (void)state;
    assert_ok(tn_plugin_load(f.ctx, "cpu"));
    cpu = plugin_index(f.ctx, "cpu", &p);
    assert_true(p.capability_count > 0 && p.file_bytes > 10000);
    assert_fails(tn_plugin_capability(NULL, cpu, 0, &c), TN_E_ARG);
    assert_fails(tn_plugin_capability(f.ctx, 9999, 0, &c), TN_E_ARG);
    assert_fails(tn_plugin_capability(f.ctx, cpu, p.capability_count, &c), TN_E_ARG);
    assert_fails(tn_plugin_capability(f.ctx, cpu, SIZE_MAX, &c), TN_E_ARG);
    assert_fails(tn_plugin_capability(f.ctx, cpu, 0, NULL), TN_E_ARG);
    assert_fails(tn_plugin_capability(f.ctx, cpu, 0, &bad_c), TN_E_ARG);
    assert_ok(tn_plugin_capability(f.ctx, cpu, 0, &c));
    assert_string_equal(c.kind, "kernels");
    assert_string_equal(c.id, "cpu");
    assert_true(c.count > 0);
    assert_fails(tn_plugin_option(NULL, cpu, 0, &o), TN_E_ARG);
    assert_fails(tn_plugin_option(f.ctx, 9999, 0, &o), TN_E_ARG);
    assert_fails(tn_plugin_option(f.ctx, cpu, p.option_count, &o), TN_E_ARG);
    assert_fails(tn_plugin_option(f.ctx, cpu, 0, NULL), TN_E_ARG);
    if (p.option_count)
        assert_fails(tn_plugin_option(f.ctx, cpu, 0, &bad_o), TN_E_ARG);
    assert_fails(tn_plugin_library_count(NULL, cpu, &n), TN_E_ARG);
    assert_fails(tn_plugin_library_count(f.ctx, 9999, &n), TN_E_ARG);
    assert_fails(tn_plugin_library_count(f.ctx, cpu, NULL), TN_E_ARG);
    assert_int_equal(n, 77);
    assert_ok(tn_plugin_library_count(f.ctx, cpu, &n));
    assert_true(n > 0 && n < 77);
    assert_fails(tn_plugin_library(NULL, cpu, 0, &l), TN_E_ARG);
    assert_fails(tn_plugin_library(f.ctx, 9999, 0, &l), TN_E_ARG);
    assert_fails(tn_plugin_library(f.ctx, cpu, n, &l), TN_E_ARG);
    assert_fails(tn_plugin_library(f.ctx, cpu, 0, NULL), TN_E_ARG);
    assert_fails(tn_plugin_library(f.ctx, cpu, 0, &bad_l), TN_E_ARG);
    for (size_t i = 0; i < n; i++) {
        assert_ok(tn_plugin_library(f.ctx, cpu, i, &l));
        assert_true(l.found && l.path[0] == '/' && !strncmp(l.name, "lib", 3));
    }
    assert_fails(tn_plugin_folder(NULL, 0, &d), TN_E_ARG);
    assert_fails(tn_plugin_folder(f.ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_plugin_folder(f.ctx, 0, &bad_d), TN_E_ARG);
    assert_fails(tn_plugin_folder(f.ctx, 9999, &d), TN_E_ARG);
    assert_ok(tn_plugin_folder(f.ctx, 0, &d));
    assert_true(d.opened && d.files > 1 && d.path[0] == '/');
}

static void kernels(void **state)
{
    tn_kernel_info k = {.struct_size = TN_SIZE(tn_kernel_info)}, bad = {0};
    bool found = false;
    size_t n = 0;

    (void)state;
    assert_fails(tn_kernel_count(NULL, &n), TN_E_ARG);
    assert_fails(tn_kernel_count(f.ctx, NULL), TN_E_ARG);
    assert_ok(tn_kernel_count(f.ctx, &n));
    assert_fails(tn_kernel_at(NULL, 0, &k), TN_E_ARG);
    assert_fails(tn_kernel_at(f.ctx, n, &k), TN_E_ARG);
    assert_fails(tn_kernel_at(f.ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_kernel_at(f.ctx, 0, &bad), TN_E_ARG);
    for (size_t i = 0; i < n; i++) {
        assert_ok(tn_kernel_at(f.ctx, i, &k));
        assert_true(k.op[0] && k.name[0] && k.plugin[0] && k.device[0] && k.types && k.isa);
        found |= !strcmp(k.op, "FullyConnected") && !strcmp(k.plugin, "cpu") && k.rank == 64 && k.usable;
    }
    assert_true(found);
}

static void wrong_questions(void **state)
{
    const int64_t shape[] = {2, 3};
    tn_known in[] = {{"data", shape, 2, -1}, {"x", shape, 2, -1}};
    tn_choice_query q = {.struct_size = TN_SIZE(tn_choice_query), .op = "FullyConnected", .dtype = -1};
    tn_choice_info i = {.struct_size = TN_SIZE(tn_choice_info)}, bad_i = {0};
    tn_candidate_info c = {.struct_size = TN_SIZE(tn_candidate_info)}, bad_c = {0};
    tn_choice_query bad = {.op = "FullyConnected"};
    tn_choice *choice = NULL;

    (void)state;
    assert_fails(tn_choice_create(NULL, &q, &choice), TN_E_ARG);
    assert_fails(tn_choice_create(f.ctx, NULL, &choice), TN_E_ARG);
    assert_fails(tn_choice_create(f.ctx, &q, NULL), TN_E_ARG);
    assert_fails(tn_choice_create(f.ctx, &bad, &choice), TN_E_ARG);
    q.op = NULL;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    q.op = "FullyConected";
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "FullyConnected"));
    q.op = "FullyConnected";
    q.flags = 6;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    q.flags = 0;
    q.dtype = 1000;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    q.dtype = -1;
    q.device = f.foreign_device;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    q.device = NULL;
    q.attrs = LIST("num_hiden", "4");
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ATTR);
    q.attrs = LIST("num_hidden");
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    q.input_count = 1; /* but no list */
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    q.inputs = in;
    q.attrs = NULL; /* with shapes the required ones are asked for */
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ATTR);
    q.attrs = LIST("num_hidden", "4");
    q.input_count = 2;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "it has data, weight, bias"));
    q.input_count = HUGE_COUNT;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    q.input_count = 1;
    in[0].shape = NULL;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_ARG);
    in[0].shape = shape;
    in[0].ndim = 1000;
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_SHAPE);
    in[0] = (tn_known){"weight", shape, 2, -1};
    assert_fails(tn_choice_create(f.ctx, &q, &choice), TN_E_SHAPE); /* weight is (4, 3) */
    assert_null(choice);
    tn_choice_destroy(NULL);
    in[0].name = "data";
    assert_ok(tn_choice_create(f.ctx, &q, &choice));
    assert_fails(tn_choice_get(NULL, &i), TN_E_ARG);
    assert_fails(tn_choice_get(choice, NULL), TN_E_ARG);
    assert_fails(tn_choice_get(choice, &bad_i), TN_E_ARG);
    assert_ok(tn_choice_get(choice, &i));
    assert_fails(tn_choice_candidate(NULL, 0, &c), TN_E_ARG);
    assert_fails(tn_choice_candidate(choice, i.count, &c), TN_E_ARG);
    assert_fails(tn_choice_candidate(choice, 0, NULL), TN_E_ARG);
    assert_fails(tn_choice_candidate(choice, 0, &bad_c), TN_E_ARG);
    tn_choice_destroy(choice);
}

/* ---- what is told -------------------------------------------------------------------------------- */

static bool has_blas(void)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/cpu-openblas.so", getenv("TENON_TEST_PLUGINS"));
    if ((file = fopen(path, "r")))
        (void)fclose(file);
    return file != NULL;
}

typedef struct answer {
    const char *op, *setting, *chosen, *option;
    int32_t rule, dtype;
    bool shapes;
} answer;

static void answer_check(const answer *a)
{
    const int64_t shape[] = {64, 784};
    const tn_known in = {NULL, shape, 2, -1};
    const char *const attrs[] = {"num_hidden", "10", NULL};
    tn_ctx *ctx = test_open(a->setting ? LIST(a->setting) : NULL);
    tn_choice_query q = {.struct_size = TN_SIZE(tn_choice_query), .op = a->op, .dtype = a->dtype};
    tn_choice_info i = {.struct_size = TN_SIZE(tn_choice_info)};
    tn_candidate_info c = {.struct_size = TN_SIZE(tn_candidate_info), .plugin = "none"};
    tn_choice *choice = NULL;

    if (a->shapes) {
        q.attrs = !strcmp(a->op, "FullyConnected") ? attrs : NULL;
        q.inputs = &in;
        q.input_count = 1;
    }
    assert_ok(tn_choice_create(ctx, &q, &choice));
    assert_ok(tn_choice_get(choice, &i));
    if (i.chosen != UINT32_MAX)
        assert_ok(tn_choice_candidate(choice, i.chosen, &c));
    if (i.rule != a->rule || strcmp(c.plugin, a->chosen) != 0 || strcmp(i.option, a->option) != 0 ||
        i.asked != a->shapes)
        fail_msg("%s with %s: rule %d, %s, option %s; %u candidates, the first: %s", a->op,
                 a->setting ? a->setting : "nothing", i.rule, c.plugin, i.option, i.count,
                 i.count && !tn_choice_candidate(choice, 0, &c) ? c.reason : "");
    if (a->shapes && !strcmp(a->op, "FullyConnected")) {
        assert_int_equal(i.input_count, 3);
        assert_true(i.inputs[1].ndim == 2 && i.inputs[1].shape[0] == 10 && i.inputs[1].shape[1] == 784);
        assert_true(i.outputs[0].ndim == 2 && i.outputs[0].shape[1] == 10);
    }
    tn_choice_destroy(choice);
    test_close(ctx);
}

static void answers(void **state)
{
    static const answer cases[] = {
        {"FullyConnected", NULL, "cpu-openblas", "", TN_RULE_RANK, TN_F32, false},
        {"FullyConnected", NULL, "cpu-openblas", "", TN_RULE_RANK, TN_F32, true},
        {"FullyConnected", "kernel.prefer=cpu, cpu-openblas", "cpu", "kernel.prefer", TN_RULE_PREFER, TN_F32,
         true},
        {"FullyConnected", "kernel.FullyConnected@cpu=cpu-openblas", "cpu-openblas",
         "kernel.FullyConnected@cpu", TN_RULE_PIN, TN_F32, true},
        {"FullyConnected", "kernel.FullyConnected@cpu=cpu", "cpu", "kernel.FullyConnected@cpu", TN_RULE_PIN,
         TN_F32, false},
        {"FullyConnected", "kernel.FullyConnected@cpu=nobody", "none", "kernel.FullyConnected@cpu",
         TN_RULE_NONE, TN_F32, false},
        {"FullyConnected", "plugins.load=cpu", "cpu", "plugins.load", TN_RULE_LOAD, TN_F32, true},
        {"FullyConnected", "plugins.load=cpu-openblas", "none", "", TN_RULE_NONE, TN_F16, false},
        {"softmax", NULL, "cpu", "", TN_RULE_ONLY, TN_F32, true},
        {"Flatten", NULL, "none", "", TN_RULE_CORE, TN_F32, true},
        {"FullyConnected", "plugins.load=mempool", "none", "", TN_RULE_NONE, TN_F32, true},
    };

    (void)state;
    if (!has_blas()) {
        print_message("skipped: cpu-openblas was not built\n");
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        answer_check(&cases[i]);
}

/* Every operator of the vocabulary, without and with a wrong number of shapes: an answer or an error. */
static void every_operator(void **state)
{
    const int64_t shape[] = {2, 3, 4, 5};
    const tn_known in = {NULL, shape, 4, -1};
    size_t count = 0, answered = 0;

    (void)state;
    assert_ok(tn_op_count(f.ctx, &count));
    for (size_t i = 0; i < count; i++) {
        tn_op_info op = {.struct_size = TN_SIZE(tn_op_info)};
        tn_choice_query q = {.struct_size = TN_SIZE(tn_choice_query), .dtype = TN_F32};

        assert_ok(tn_op_at(f.ctx, i, &op));
        q.op = op.name;
        for (int shapes = 0; shapes < 2; shapes++) {
            tn_choice *choice = NULL;

            q.inputs = &in;
            q.input_count = (uint32_t)shapes;
            if (!tn_choice_create(f.ctx, &q, &choice))
                answered += !shapes;
            tn_choice_destroy(choice);
        }
    }
    assert_true(answered * 10 > count * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugins), cmocka_unit_test(kernels),        cmocka_unit_test(wrong_questions),
        cmocka_unit_test(answers), cmocka_unit_test(every_operator),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
