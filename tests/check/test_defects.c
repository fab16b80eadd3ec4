/*
 * Plugins with one defect each (defects/): the kit finds it, names its rule, and no other rule.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"

typedef struct defect {
    const char *file; /* defects/FILE.c */
    const char *rule; /* that must fail */
    const char *also; /* a rule that may fail with it, or NULL */
    const char *more; /* options of the command */
} defect;

static const defect defects[] = {
    {"init_blocks", "R8", NULL, ""},
    {"init_hangs", "R8", NULL, "--only load/init-time"},
    {"init_signal", "R8", NULL, ""},
    {"init_setenv", "R8", NULL, ""},
    {"init_atexit", "R8", NULL, ""},
    {"init_socket", "R8", NULL, ""},
    {"init_once", "R9", NULL, ""},
    {"constructor", "R8", NULL, ""},
    {"two_exports", "R7", NULL, ""},
    {"core_symbol", "R7", NULL, ""},
    {"leak_service", "M-leak", NULL, ""},
    {"leak_malloc", "M-leak", NULL, ""},
    {"nomem_crash", "M-nomem", NULL, ""},
    {"thread_left", "R9", NULL, ""},
    {"beyond_size", "R3", NULL, ""},
    {"exact_size", "R3", NULL, ""},
    {"note_differs", "L-note", "L-accepted", ""},
    {"not_provided", "L-note", "L-accepted", ""},
    {"option_rows", "O-rows", "O-values", ""},
    {"table_size", "R2", "L-accepted", ""},
    {"kernel_no_device", "L-kernel", "L-accepted", ""},
    {"kernel_no_list", "L-kernel", "L-accepted", ""},
    {"op_no_name", "L-operator", NULL, ""},
    {"pool_overlap", "P-overlap", NULL, ""},
    {"pool_misaligned", "P-align", NULL, ""},
    {"pool_trim", "P-trim", NULL, ""},
    {"pool_touches", "P-untouched", NULL, ""},
    {"pool_leak", "P-leak", "M-leak", ""},
    {"pool_streams", "P-streams", NULL, ""},
    {"pool_stats", "P-stats", NULL, ""},
    {"pool_status", "P-nomem", NULL, ""},
    {"device_notify_twice", "D-notify", NULL, ""},
    {"device_notify_never", "D-notify", NULL, "--only device/notify"},
    {"device_copy_short", "D-copy", NULL, ""},
    {"device_copy_wide", "D-copy", NULL, ""},
    {"device_error_once", "D-error", NULL, ""},
    {"device_any_index", "D-count", NULL, ""},
    {"device_leak", "M-leak", NULL, ""},
    {"op_writes_behind", "K-bounds", NULL, ""},
    {"op_writes_before", "K-bounds", "K-saved", ""},
    {"op_writes_input", "K-readonly", NULL, ""},
    {"op_wrong_gradient", "G-values", NULL, ""},
    {"op_zero_gradient", "G-zero", NULL, ""},
    {"op_keeps_state", "K-state", NULL, "--only kernel/state"},
    {"op_not_deterministic", "K-deterministic", NULL, "--only kernel/deterministic"},
    {"op_thread_sum", "K-thread-invariant", NULL, ""},
    {"op_ignores_strides", "K-strided", NULL, ""},
    {"op_ignores_add", "K-modes", NULL, ""},
    {"op_ignores_none", "K-modes", NULL, ""},
    {"op_leaks_plan", "K-leak", "M-leak", ""},
    {"op_reads_output", "K-uninitialised", NULL, "--only kernel/uninitialised"},
    {"op_reads_workspace", "K-uninitialised", NULL, "--only kernel/uninitialised"},
    {"op_short_workspace", "K-bounds", NULL, "--only kernel/bounds"},
    {"op_swallows_nomem", "K-nomem", NULL, ""},
    {"op_completes_twice", "K-complete", NULL, "--only kernel"},
    {"op_infer_accepts", "I-contradiction", NULL, ""},
    {"op_infer_impure", "I-pure", NULL, "--only infer"},
    {"op_wrong_rank", "K-values", NULL, ""},
    {"op_wrong_dtype", "K-values", "R3", ""},
    {"op_declared_only", "K-declared", NULL, ""},
    {"op_misaligned", "K-misaligned", "K-bounds", ""},
    {"op_runtime_early", "K-runtime-attrs", "G-values", ""},
    {"op_beyond_exec", "R3", NULL, "--only kernel/old-host"},
    {"op_rounds_up", "K-process", NULL, "--only kernel/process"},
    {"op_reads_empty", "K-empty", NULL, ""},
    {"saved_beyond", "K-bounds", "G-values", ""},
    {"saved_elsewhere", "K-saved", NULL, ""},
    {"saved_unasked", "K-values", NULL, "--only kernel/values"},
    {"kernels_wrong_stream", "K-stream", NULL, "--only kernel/stream"},
    {"kernels_too_early", "K-stream", NULL, "--only kernel/stream"},
    {"kernels_completes_early", "K-stream", NULL, "--only kernel"},
    {"kernels_writes_behind", "K-bounds", NULL, "--only kernel/bounds"},
    {"kernels_writes_before", "K-bounds", NULL, "--only kernel/bounds"},
    {"kernels_writes_input", "K-readonly", NULL, "--only kernel/bounds"},
    {"kernels_short_workspace", "K-bounds", NULL, "--only kernel/bounds"},
    {"kernels_ignores_add", "K-modes", NULL, "--only kernel/modes"},
    {"kernels_saved_elsewhere", "K-saved", NULL, "--only kernel/saved"},
    {"kernels_reads_host", "K-values", NULL, "--only kernel/values"},
};

static void defect_is_found(void **state)
{
    const defect *d = *state;
    bool found = false, sanitized = false;
    char path[4096];
    json_t *answer;
    const json_t *r;
    size_t i;
    int code;

    (void)snprintf(path, sizeof path, "%s/tests/check/defects/defect-%s.so", getenv("TENON_TEST_BUILD"),
                   d->file);
    for (char *at = strrchr(path, '/'); *at; at++)
        *at = *at == '_' ? '-' : *at;
    answer = kit_run(path, d->more, &code);
    assert_non_null(answer);
    json_array_foreach(kit_results(answer), i, r)
    {
        const char *result = kit_text(r, "result"), *rule = kit_text(r, "rule");

        sanitized |= strcmp(result, "SKIP") == 0 && strstr(kit_text(r, "message"), "sanitizer") &&
                     strcmp(rule, d->rule) == 0;
        if (strcmp(result, "PASS") == 0 || strcmp(result, "SKIP") == 0)
            continue;
        found |= strcmp(rule, d->rule) == 0;
        if (strcmp(rule, d->rule) != 0 && (!d->also || strcmp(rule, d->also) != 0)) {
            (void)kit_print_failures(kit_results(answer));
            fail_msg("%s breaks %s, but %s was said to fail, too", d->file, d->rule, rule);
        }
    }
    if (!found && sanitized && !code) {
        json_decref(answer);
        printf("%s: a build with a sanitizer cannot tell\n", d->file);
        skip();
    }
    assert_int_equal(code, 1);
    if (!found) {
        (void)kit_print_failures(kit_results(answer));
        fail_msg("%s breaks %s, and the kit did not say so", d->file, d->rule);
    }
    json_decref(answer);
}

/* The operators that the defects are planted in pass as they are. */
static void healthy_passes(void **state)
{
    static const char *const healthy[] = {"op", "saved", "kernels"};

    (void)state;
    for (size_t i = 0; i < sizeof healthy / sizeof *healthy; i++) {
        char path[4096];
        json_t *answer;
        int code;

        (void)snprintf(path, sizeof path, "%s/tests/check/defects/defect-%s-healthy.so",
                       getenv("TENON_TEST_BUILD"), healthy[i]);
        answer = kit_run(path, "", &code);
        assert_non_null(answer);
        if (code || kit_print_failures(kit_results(answer)))
            fail_msg("the kit says that a healthy plugin is not: it ends with %d", code);
        json_decref(answer);
    }
}

int main(void)
{
    struct CMUnitTest tests[sizeof defects / sizeof *defects + 1] = {cmocka_unit_test(healthy_passes)};

    kit_setup();
    for (size_t i = 0; i < sizeof defects / sizeof *defects; i++)
        tests[i + 1] = (struct CMUnitTest){.name = defects[i].file,
                                           .test_func = defect_is_found,
                                           .initial_state = (void *)(uintptr_t)&defects[i]};
    return cmocka_run_group_tests_name("defects", tests, NULL, NULL);
}
