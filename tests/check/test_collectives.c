/*
 * The reference collective (kinds/collective.c), whose ranks are threads: the kit passes it, and finds each
 * fault that is planted in its twins. The collective of MPI, where it is built: alone, and under mpirun.
 */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/runs.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#define TEST_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TEST_SANITIZED 0
#endif

static const kit_defect planted[] = {
    /* the fault, the rule, a rule that may fail with it, what is run */
    {"collective_other_order", "C-sum", NULL, "--only collective/sum"},
    {"collective_part_lost", "C-sum", NULL, "--only collective/sum"},
    {"collective_beyond", "C-bounds", NULL, "--only collective/broadcast"},
    {"collective_first_root", "C-broadcast", NULL, "--only collective/broadcast"},
    {"collective_early_barrier", "C-barrier", NULL, "--only collective/barrier"},
    {"collective_ends_twice", "C-end", NULL, "--only collective/order"},
    {"collective_other_cookie", "C-end", NULL, "--only collective/order"},
    {"collective_nameless", "C-deadline", NULL, "--only collective/deadline"},
    {"collective_no_deadline", "C-deadline", NULL, "--only collective/deadline"},
    {"collective_silent_abort", "C-abort", NULL, "--only collective/abort"},
    {"collective_stays", "C-left", NULL, "--only collective/left"},
    {"collective_wake_lost", "C-wake", NULL, "--only collective/wake"},
    {"collective_takes_all", "C-args", "C-end", "--only collective/refused"},
    {"collective_stride", "R3", "C-end", "--only collective/future-host"},
    {"collective_block_left", "M-leak", NULL, "--only collective/barrier"},
    {"collective_grows", "R3", NULL, "--only collective/old-host"},
};

/* Each case in a job of its own: MPI begins once in a process, and no case leaves it whole. */
static void mpi_passes(void **state)
{
    static const char *const cases[] = {"sum", "order", "deadline", "abort", "left", "wake"};
    const char *plugins = getenv("TENON_TEST_PLUGINS"), *tool = getenv("TENON_TEST_TOOL");
    char command[4096], line[512];

    (void)state;
    (void)snprintf(command, sizeof command, "%s/kv-mpi.so", plugins);
    if (access(command, R_OK) || system("mpirun --version 2>/dev/null | grep -q 'Open MPI'")) {
        print_message("skipped: the plugin kv-mpi is not built, or there is no mpirun of Open MPI\n");
        skip();
    }
    if (TEST_SANITIZED) {
        print_message("skipped: Open MPI's own blocks are leaks to a sanitizer\n");
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t passed = 0;
        FILE *out;

        (void)snprintf(
            command, sizeof command,
            "timeout 100 mpirun $(test $(id -u) = 0 && echo --allow-run-as-root) --oversubscribe --mca "
            "orte_enable_recovery 1 -n 2 '%s' plugins check '%s/kv-mpi.so' --only "
            "collective/%s 2>&1",
            tool, plugins, cases[i]);
        assert_non_null(out = popen(command, "r"));
        while (fgets(line, sizeof line, out)) {
            passed += strstr(line, "1 passed, 0 failed, 0 crashed, 0 skipped") != NULL;
            print_message("%s", strstr(line, "FAIL") || strstr(line, "CRASH") ? line : "");
        }
        (void)pclose(out);
        if (passed != 2)
            fail_msg("collective/%s: %u of 2 ranks pass", cases[i], passed);
    }
}

int main(void)
{
    static const char *const healthy[] = {"collective", NULL};
    const struct CMUnitTest launched[] = {cmocka_unit_test(mpi_passes)};
    const int failed =
        kit_defects("collectives", "kinds/kind-", planted, sizeof planted / sizeof *planted, healthy);

    return failed + cmocka_run_group_tests_name("launched collectives", launched, NULL, NULL);
}
