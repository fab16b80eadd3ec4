/*
 * Foreign variables: each that the reference names answers, as an option or with a reason; values are
 * translated; one that means nothing is information, one that looks like a known one a warning, no more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options_internal.h"
#include "support/heard.h"
#include "support/scratch.h"

extern char **environ;

static heard logged = HEARD(TN_LOG_DEBUG);
static const tni_log test_log = {.fn = heard_take, .arg = &logged, .level = TN_LOG_DEBUG};

/* Options as they are after reading this environment. */
static tni_options *options_of(char *const *variables)
{
    char **before = environ;
    tni_options *o = NULL;

    heard_clear(&logged);
    assert_int_equal(tni_options_create(&test_log, &o), TN_OK);
    environ = (char **)variables;
    assert_int_equal(tni_options_read_environment(o), TN_OK);
    environ = before;
    return o;
}

static const tni_variable *variable_find(const char *name, size_t from)
{
    size_t count;
    const tni_variable *all = tni_variables(&count);

    for (; from < count; from++)
        if (!strcmp(all[from].name, name))
            return &all[from];
    return NULL;
}

static void each_of_the_reference_answers(void **state)
{
    const char *source = getenv("TENON_TEST_SOURCE");
    char path[TN_PATH_BYTES_MAX], *text = NULL, *save = NULL;
    uint64_t bytes;
    size_t names = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/options/mxnet-variables.txt", source ? source : ".");
    assert_int_equal(tni_file_read_all(path, 1 << 20, &text, &bytes), TN_OK);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#')
            continue;
        line[strcspn(line, " ")] = '\0';
        if (!variable_find(line, 0))
            fail_msg("%s answers nothing: options.list or variables.list", line);
        names++;
    }
    assert_true(names > 200);
    tni_free(text);
}

static void table(void **state)
{
    size_t count;
    const tni_variable *all = tni_variables(&count);
    char value[64];

    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_non_null(all[i].name);
        if (!all[i].key[0]) {
            assert_string_not_equal(all[i].reason, "");
            assert_ptr_equal(variable_find(all[i].name, 0), &all[i]); /* not twice, not also an option */
            assert_null(variable_find(all[i].name, i + 1));
            assert_int_equal(tni_variable_translate(&all[i], "1", value, sizeof value), TN_E_KEY);
            continue;
        }
        assert_string_equal(all[i].reason, "");
        assert_non_null(option_def_find(all[i].key));
        for (const char *at = all[i].values; *at;) { /* every value named reads as the option wants it */
            size_t pair = strcspn(at, ";"), left = strcspn(at, ":");
            char theirs[64];

            assert_true(left < pair);
            snprintf(theirs, sizeof theirs, "%.*s", (int)left, at);
            assert_int_equal(tni_variable_translate(&all[i],
                                                    strcmp(theirs, "*") ? theirs
                                                    : strstr(at, ":x")  ? "5000"
                                                                        : "5",
                                                    value, sizeof value),
                             TN_OK);
            at += pair + (at[pair] == ';');
        }
    }
}

static void values(void **state)
{
    static const struct {
        const char *variable, *key, *text;
    } cases[] = {
        {"MXNET_ENGINE_TYPE=NaiveEngine", "engine.type", "naive"},
        {"MXNET_CPU_WORKER_NTHREADS=3", "engine.workers", "3"},
        {"OMP_NUM_THREADS=4,2", "engine.threads", "4"},
        {"MXNET_ENFORCE_DETERMINISM=1", "run.deterministic", "run"},
        {"MXNET_HOME=/data/mx,net", "data.path", "/data/mx,net/datasets"},
        {"DMLC_LOG_DEBUG=1", "log.level", "debug"},
        {"DMLC_LOG_DEBUG=0", "log.level", "warning"},
        {"MXNET_BACKWARD_DO_MIRROR=1", "compile.mirror", "1"},
        {"MXNET_PROFILER_AUTOSTART=1", "profiler.autostart", "1"},
        {"MXNET_GPU_MEM_POOL_TYPE=Unpooled", "memory.cuda.pool", "none"},
        {"MXNET_CPU_MEM_POOL_ROUND_LINEAR_CUTOFF=26", "memory.cpu.round_linear_cutoff", "26"},
        {"MXNET_CPU_PINNED_MEM_POOL_TYPE=Round", "memory.cuda.pinned.pool", "round"},
        {"MXNET_GPU_POOL_PAGE_SIZE=8192", "memory.cuda.page_size", "8192"},
        {"MXNET_USE_NAIVE_STORAGE_MANAGER=1", "memory.cuda.pinned.pool", "none"},
        {"MXNET_USE_NAIVE_STORAGE_MANAGER=0", "memory.cpu.pool", "auto"},
        {"DMLC_ROLE=server", "kvstore.role", "server"},
        {"DMLC_PS_ROOT_URI=10.0.0.1", "kvstore.scheduler", "10.0.0.1"},
        {"DMLC_PS_ROOT_PORT=9100", "kvstore.scheduler_port", "9100"},
        {"DMLC_NUM_WORKER=16", "kvstore.workers", "16"},
        {"DMLC_PS_VAN_TYPE=ibverbs", "kvstore.transport", "rdma"},
        {"DMLC_PS_VAN_TYPE=p3", "kvstore.transport", "zmq"},
        {"DMLC_LOCAL=1", "kvstore.transport", "shm"},
        {"DMLC_LOCAL=0", "kvstore.transport", "auto"},
        {"MXNET_KVSTORE_BIGARRAY_BOUND=1000000", "kvstore.bigarray_bound", "1000000"},
        {"MXNET_KVSTORE_SLICE_THRESHOLD=40000", "kvstore.part_bytes", "160000"},
        {"PS_HEARTBEAT_INTERVAL=2", "kvstore.heartbeat", "2000"},
        {"PS_HEARTBEAT_TIMEOUT=0", "kvstore.dead", "0"},
        {"PS_RESEND_TIMEOUT=1500", "kvstore.retry_ms", "1500"},
        {"PS_DROP_MSG=5", "kvstore.fault", "drop=5%"},
        {"PS_DROP_MSG=0", "kvstore.fault", ""},
        {"MXNET_UPDATE_ON_KVSTORE=0", "kvstore.update", "0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char variable[128];
        tni_options *o;

        snprintf(variable, sizeof variable, "%s", cases[i].variable);
        o = options_of((char *[]){variable, NULL});
        assert_int_equal(heard_lines(&logged), 0);
        assert_string_equal(tni_option_text(o, cases[i].key), cases[i].text);
        tni_options_destroy(o);
    }
}

/* What is wrong or unknown never keeps a program from running. */
static void nothing_is_an_error(void **state)
{
    char *const variables[] = {(char[]){"MXNET_ENGINE_TYPE=BestEngine"},
                               (char[]){"MXNET_CPU_WORKER_NTHREADS=lots"},
                               (char[]){"DMLC_NUM_WORKER=99999999"},
                               (char[]){"MXNET_KVSTORE_SLICE_THRESHOLD=9223372036854775807"},
                               (char[]){"PS_HEARTBEAT_INTERVAL=1e999"},
                               (char[]){"MXNET_MEMORY_OPT=1"},
                               (char[]){"MXNET_ENGINE_TYP=NaiveEngine"},
                               (char[]){"DMLC_ROLL=worker"},
                               (char[]){"PS_VERBOS=1"},
                               (char[]){"MXNET_FROM_ANOTHER_WORLD=1"},
                               (char[]){"NNVM_EXEC_MATCH_RANG=2"},
                               (char[]){"PORT=80"},
                               (char[]){"MXNET_HOME="},
                               (char[]){"MXNET_"},
                               (char[]){"=x"},
                               NULL};
    static const char *const lines[] = {
        "1 MXNET_ENGINE_TYPE=BestEngine is not understood; engine.type stays threaded\n",
        "1 MXNET_CPU_WORKER_NTHREADS: engine.workers = lots, expected an integer; engine.workers stays 1\n",
        "1 DMLC_NUM_WORKER: kvstore.workers = 99999999, allowed are 1 to 65536 processes; kvstore.workers "
        "stays 1\n",
        "1 MXNET_KVSTORE_SLICE_THRESHOLD=9223372036854775807 is not understood; kvstore.part_bytes stays "
        "1048576\n",
        "1 PS_HEARTBEAT_INTERVAL: kvstore.heartbeat = 1e999s, expected a time",
        "2 MXNET_MEMORY_OPT is set and means nothing here: ",
        "1 MXNET_ENGINE_TYP is not known and ignored; did you mean MXNET_ENGINE_TYPE?\n",
        "1 DMLC_ROLL is not known and ignored; did you mean DMLC_ROLE?\n",
        "1 PS_VERBOS is not known and ignored; did you mean PS_VERBOSE?\n",
        "1 NNVM_EXEC_MATCH_RANG is not known and ignored; did you mean NNVM_EXEC_MATCH_RANGE?\n",
        "2 PORT is set and means nothing here: ",
    };
    tni_options *o = options_of(variables);

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!heard_times(&logged, lines[i]))
            fail_msg("\"%s\" is not in:\n%s", lines[i], logged.text);
    assert_int_equal(heard_times(&logged, "WORLD"), 0);
    assert_int_equal(heard_times(&logged, "MXNET_HOME"), 0);
    assert_string_equal(tni_error_message(), "");
    tni_options_destroy(o);
}

/* A value longer than any option takes is refused, and never cut. */
static void long_values(void **state)
{
    static char variable[3 * TN_OPTION_VALUE_MAX];
    tni_options *o;
    char small[4];

    (void)state;
    strcpy(variable, "DMLC_INTERFACE=");
    memset(variable + strlen(variable), 'x', sizeof variable - strlen(variable) - 1);
    o = options_of((char *[]){variable, NULL});
    assert_string_equal(tni_option_text(o, "kvstore.interface"), "");
    assert_true(heard_times(&logged, "1 DMLC_INTERFACE"));
    tni_options_destroy(o);
    assert_int_equal(tni_variable_translate(variable_find("DMLC_ROLE", 0), "server", small, sizeof small),
                     TN_E_ARG);
    assert_int_equal(
        tni_variable_translate(variable_find("PS_HEARTBEAT_INTERVAL", 0), "100", small, sizeof small),
        TN_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_the_reference_answers),
        cmocka_unit_test(table),
        cmocka_unit_test(values),
        cmocka_unit_test(nothing_is_an_error),
        cmocka_unit_test(long_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
