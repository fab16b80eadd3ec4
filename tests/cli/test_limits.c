/*
 * Limits of address space and processes, and a system without libgcc_s: a command does its work, on fewer
 * threads if need be, or ends with an error of ours; no library ends it.
 */
#include "tool.h"

#include <sys/stat.h>
#include <unistd.h>

#define TRAIN "train zoo:lenet --data ./small --batch 8 --seed 5 --epochs 1 "
#define LINE_BYTES 400

static void needs_plain_build(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: the sanitizer itself needs more than these limits leave\n");
    skip();
#endif
}

/* Exit code 0, 3 (a plugin does not fit) or 5, and a line of ours if it is not 0. */
static void ends_well(const char *line)
{
    const tool_said *s = tool(line);

    if (s->code == 0 || ((s->code == 3 || s->code == 5) && strstr(s->err, "error[TN-")))
        return;
    fail_msg("%s: code %d: %s", line, s->code, s->err);
}

/* From what hardly starts the tool to what a team of four with OpenBLAS needs. */
static void address_space(void **state)
{
    static const struct {
        const char *command;
        int threads, from_mib, to_mib, step_mib;
    } rows[] = {
        {TRAIN "--out tight -q --set plugins.load=cpu", 2, 16, 44, 1},
        {TRAIN "--out tight -q --set plugins.load=cpu", 4, 20, 200, 12},
        {TRAIN "--out tight -q", 2, 20, 200, 18},
        {TRAIN "--out tight -q --set engine.type=naive --set plugins.load=cpu", 3, 16, 60, 4},
        {"predict whole/model-symbol.json whole/model-0000.params row.csv", 2, 20, 200, 15},
        {"ops", 2, 16, 40, 4},
        {"version", 2, 16, 40, 4},
    };
    char line[LINE_BYTES];

    (void)state;
    needs_plain_build();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int mib = rows[i].from_mib; mib <= rows[i].to_mib; mib += rows[i].step_mib) {
            (void)snprintf(line, sizeof line,
                           "rm -rf tight; export OMP_NUM_THREADS=%d; ulimit -v %d; exec \"$T\" %s",
                           rows[i].threads, mib << 10, rows[i].command);
            ends_well(line);
        }
}

/* Where OpenBLAS does not fit the plugin `cpu` serves, with the bits that it has with all the room. */
static void room_for_one(void **state)
{
    const tool_said *s;

    (void)state;
    needs_plain_build();
    s = tool("export OMP_NUM_THREADS=2; ulimit -v 81920; exec \"$T\" " TRAIN "--out one");
    if (s->code)
        fail_msg("code %d: %s", s->code, s->err);
    if (!tool("exec \"$T\" plugins list --exists cpu-openblas")->code) {
        s = tool("cat one/run.json");
        assert_says(s->out, "\"name\": \"cpu\"");
    }
    s = tool("export OMP_NUM_THREADS=2; exec \"$T\" " TRAIN "--out all -q --set plugins.load=cpu,mempool");
    assert_int_equal(s->code, 0);
    assert_int_equal(tool("cmp one/model-0000.params all/model-0000.params")->code, 0);
}

/* Threads of OpenMP end by pthread_exit, which aborts the process where libgcc_s cannot be loaded. */
static void without_unwinder(void **state)
{
    const tool_said *s;

    (void)state;
    needs_plain_build();
    s = tool("mkdir -p l && echo none >l/libgcc_s.so.1; export OMP_NUM_THREADS=2 LD_LIBRARY_PATH=$PWD/l; "
             "exec \"$T\" " TRAIN "--out alone");
    if (s->code)
        fail_msg("code %d: %s", s->code, s->err);
    if (strstr(s->err, "OpenMP"))
        assert_says(s->err, "kernels run on one thread: threads of OpenMP need libgcc_s.so.1 to end");
}

/* No thread beside the first: without threads of the engine it works on one, with them it says so. */
static void processes(void **state)
{
    const char *as = geteuid() ? "" : "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    char line[LINE_BYTES];
    const tool_said *s;

    (void)state;
    needs_plain_build();
    assert_int_equal(chmod(".", 0777), 0);
    (void)snprintf(line, sizeof line,
                   "%s\"$T\" " TRAIN "--out few -q && rm -rf few && ! %sprlimit --nproc=1 sh -c ': | :'", as,
                   as);
    if (tool(line)->code) {
        printf(
            "skipped: no other user can run the tool here, or the system does not keep to prlimit --nproc\n");
        skip();
    }
    (void)snprintf(line, sizeof line,
                   "OMP_NUM_THREADS=4 %sprlimit --nproc=1 \"$T\" " TRAIN "--out few1 --set engine.type=naive",
                   as);
    s = tool(line);
    if (s->code)
        fail_msg("code %d: %s", s->code, s->err);
    (void)snprintf(line, sizeof line, "OMP_NUM_THREADS=4 %sprlimit --nproc=1 \"$T\" " TRAIN "--out few2", as);
    s = tool(line);
    assert_int_equal(s->code, 5);
    assert_says(s->err, "cannot start thread tn-cpu0: the system's limit of threads or memory is reached");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_space),
        cmocka_unit_test(room_for_one),
        cmocka_unit_test(without_unwinder),
        cmocka_unit_test(processes),
    };
    int failed;

    tool_setup();
    setenv("OMP_NUM_THREADS", "1", 1);
    tool_data("small", 40);
    if (tool("exec \"$T\" " TRAIN "--out whole -q")->code)
        fprintf(stderr, "%s\n", "no model to predict with");
    (void)tool("seq -s, 0 63 >row.csv");
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
