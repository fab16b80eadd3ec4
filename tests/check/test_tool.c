/*
 * The command: what it prints, its exit codes, and files that are no plugins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

static char folder[] = "/tmp/tenon-kit-XXXXXX";

static void set_up(void)
{
    kit_setup();
    if (!mkdtemp(folder) || chdir(folder))
        exit(1);
}

static void tear_down(void)
{
    char line[128];

    (void)snprintf(line, sizeof line, "rm -rf %s", folder);
    if (chdir("/") || system(line))
        printf("%s is left\n", folder);
}

/* Output on stdout and stderr together; the exit code. `$T`: the tool, `$P`: folder of plugins, `$D`: of
 * defects. */
static int shell(const char *command, char *out, size_t bytes)
{
    char line[2048];
    size_t n;
    FILE *from;
    int status;

    (void)snprintf(line, sizeof line, "IFS=; T='%s' P='%s' D='%s/tests/check/defects' S='%s'; { %s; } 2>&1",
                   getenv("TENON_TEST_TOOL"), getenv("TENON_TEST_PLUGINS"), getenv("TENON_TEST_BUILD"),
                   getenv("TENON_TEST_SOURCE"), command);
    from = popen(line, "r");
    assert_non_null(from);
    n = fread(out, 1, bytes - 1, from);
    out[n] = '\0';
    status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

typedef struct line {
    const char *command;
    int code;
    const char *says;
} line;

/* A libtenon beside which the kit is what `made` leaves there. */
#define OTHER_KIT(made, words)                                                                               \
    "mkdir -p l/tenon && cp -L ${T%/bin/tenon}/lib/libtenon.so.0 l/ && " made                                \
    " && LD_LIBRARY_PATH=$PWD/l $T plugins check " words

static const line lines[] = {
    {"$T plugins check", 2, "which file?"},
    {"$T plugins check --list", 0, "load/one-export: exports tn_plugin_v1"},
    {"$T plugins check --list --json", 0, "\"rule\":"},
    {"$T plugins check $P/mempool.so --only load/tables", 0, "1 passed, 0 failed, 0 crashed, 0 skipped"},
    {"$T plugins check mempool --only load/tables", 0, "1 passed"},
    {"cd $P && $T plugins check mempool.so ./fake.so --only load/tables", 0, "2 passed"},
    /* behind a case that fails or crashes the others of its child go on in another one */
    {"$T plugins check $D/defect-op-ignores-none.so --only kernel/modes", 1,
     "2 passed, 1 failed, 0 crashed, 0 skipped"},
    {"$T plugins check $D/defect-op-misaligned.so --only kernel/misaligned", 1,
     "2 passed, 0 failed, 1 crashed, 0 skipped"},
    {"$T plugins check $P/mempool.so --only nosuch", 2, "the kit has no test nosuch"},
    {"$T plugins check $P/mempool.so --only load/nosuch", 2, "the kit has no test load/nosuch"},
    {"$T plugins check $P/mempool.so --only ''", 2, "--only: the value is empty"},
    {"$T plugins check $P/mempool.so --only load/tables/nosuch", 2, "has no case load/tables/nosuch"},
    {"$T plugins check $P/mempool.so --only pool/huge/ruond", 2, "; near: pool/huge/round, "},
    {"$T plugins check $P/mempool.so --only pool/huge/ruond --json 2>/dev/null", 2, "\"passed\":0"},
    {"$T plugins check $P/fake.so $P/mempool.so --only pool/huge/ruond", 2, "near: "},
    {"$T plugins check $P/fake.so $P/mempool.so --only pool/huge/round", 0, "1 passed"},
    {"$T plugins check $P/mempool.so --only kernel/values", 2, "has no case kernel/values\n"},
    {"$T plugins check $D/defect-op-healthy.so --only kernel/values/squar", 2,
     "near: kernel/values/square/defect"},
    {"$T plugins check $P/mempool.so --only pool/huge/round", 0, "PASS  pool/huge/round"},
    {"$T plugins check $P/mempool.so --seed x", 2, "--seed"},
    {OTHER_KIT("rm -f l/tenon/*", "$P/mempool.so"), 3, "the conformance kit is not installed: there is no /"},
    {OTHER_KIT("rm -f l/tenon/*", "$P/mempool.so"), 3,
     "it comes with the headers for plugins (libtenon-dev)"},
    {OTHER_KIT("rm -f l/tenon/*", "--list"), 0, "load/one-export: exports tn_plugin_v1"},
    {OTHER_KIT("echo text >l/tenon/libtenon-check.so", "$P/mempool.so"), 3,
     "the conformance kit cannot be opened: "},
    {OTHER_KIT("cp $P/mempool.so l/tenon/libtenon-check.so", "$P/mempool.so"), 3, "tn_check_library"},
    {OTHER_KIT("sed s/0.1.0/9.8.7/g ${T%/bin/tenon}/lib/tenon/libtenon-check.so >l/tenon/libtenon-check.so",
               "$P/mempool.so"),
     3, "is of version 9.8.7, libtenon of 0.1.0: install both from one release"},
    {"$T plugins check $P/mempool.so --only load -j x", 2, "--jobs x: a number from 0"},
    {"$T plugins check $P/mempool.so --only load -j 1000000", 0, " 0 failed"},
    {"$T plugins check $P/mempool.so --reproduce pool/stats/naive", 0, "PASS  pool/stats/naive"},
    {"$T plugins check $P/mempool.so --reproduce pool/stats/nosuch", 1, "no pool called \"nosuch\""},
    {"$T plugins check $P/mempool.so --reproduce pool", 2, "group/test/subject"},
    {"$T plugins check $P/mempool.so --reproduce no/such/thing", 2, "no/such/thing"},
    {"$T plugins check $D/defect-table-size.so --reproduce load/tables", 1, "FAIL  load/tables: R2: "},
    {"$T plugins check $D/defect-table-size.so --only load/tables", 1, "--seed 1 --reproduce load/tables"},
    {"$T plugins check $D/defect-nomem-crash.so --only memory/init", 1, "CRASH memory/init: M-nomem: "},
    {"$T plugins check $D/defect-op-wrong-wide.so --only kernel/values", 1, "expected (its own float64) "},
    {"$T plugins check $D/defect-op-writes-behind.so --only kernel/bounds", 1,
     " memory behind its buffer, that of output output, 0 bytes in (data float32(3,5))"},
    {"$T plugins check $D/defect-op-writes-input.so --only kernel/bounds", 1,
     " memory that it may only read, that of input data, "},
#if defined(__x86_64__)
    {"$T plugins check $D/defect-op-reads-behind.so --only kernel/bounds", 1,
     "reads memory behind its buffer, that of input data, 0 bytes in (data float32(3,5))"},
    {"$T plugins check $D/defect-op-writes-behind.so --only kernel/bounds", 1, "writes memory behind"},
#endif
    {"$T plugins check $D/../kinds/kind-ruled-input-unnamed.so --only kernel", 1,
     "behind the last one of its"},
    {"$T plugins check $D/../kinds/kind-ruled-input-unnamed.so --only kernel", 1, ": K-bounds: the same\n"},
    {"$T plugins check nosuch", 3, "no plugin called nosuch"},
    {"$T plugins check ./nosuch.so", 3, "No such file"},
    {"$T plugins check /", 3, "no regular file"},
    {"$T plugins check /dev/zero", 3, "no regular file"},
    {"mkfifo pipe; $T plugins check ./pipe", 3, "no regular file"},
    {"umask 022; : >empty.so; $T plugins check empty.so", 3, "L03: the file is too short"},
    {"umask 022; echo text >text.so; $T plugins check text.so", 3, "nothing of it was run: L03: "},
    {"cp $P/mempool.so open.so; chmod 666 open.so; $T plugins check open.so", 3,
     "nothing of it was run: L02: "},
#if !defined(__SANITIZE_ADDRESS__) /* files built for sanitizers may have constructors */
    {"$T plugins check $D/defect-crashes-early.so --only kernel", 1,
     "FAIL  load/accepted: L-accepted: the core "
     "refuses the file: "},
    {"$T plugins check $D/defect-crashes-early.so", 1, "FAIL  load/constructors: R8: "},
    {"$T plugins check $D/defect-crashes-early.so --reproduce load/tables", 3, "the core refuses the file"},
    {"$T plugins check $D/defect-crashes-early.so --reproduce load/segments", 0, "PASS  load/segments"},
    {"$T plugins inspect $D/defect-crashes-early.so", 3, "constructors"},
#endif
    {"$T ops --set plugins.path=$D", 0, "Convolution"},
#if defined(__x86_64__)
    {"$T plugins check $S/tests/golden/plugins/draft1/acme-pool.so", 3, "nothing of it was run: L05: "},
    {"$T plugins inspect $S/tests/golden/plugins/draft1/acme-pool.so", 3,
     "is built for ABI 1 draft 1, this core provides ABI 1 draft 2"},
#endif
    {"$T plugins check text.so $P/mempool.so --only load/tables", 3, "1 passed"},
    {"$T plugins check $P/../../libtenon.so", 3, "L03: the file holds no Tenon note"},
    {"$T plugins check $P/mempool.so --only load/tables --junit /proc/nosuch/x.xml", 1,
     "/proc/nosuch/x.xml cannot be written"},
    {"$T plugins check $P/mempool.so --only load/tables >/dev/full", 1, "standard output"},
};

static void says(void **state)
{
    const line *l = *state;
    static char out[1 << 18];
    int code = shell(l->command, out, sizeof out);

    if (code != l->code || !strstr(out, l->says))
        fail_msg("%s: exit %d, expected %d with \"%s\":\n%s", l->command, code, l->code, l->says, out);
}

/* The same seed and case give the same numbers; another seed gives others. */
static void seeds(void **state)
{
    json_t *answer[3];
    json_int_t looked[3];
    char file[4096];

    (void)state;
    (void)snprintf(file, sizeof file, "%s/mempool.so", getenv("TENON_TEST_PLUGINS"));
    for (int i = 0; i < 3; i++) {
        int code;

        answer[i] = kit_run(
            file, i < 2 ? "--only pool/trace/segment --seed 77" : "--only pool/trace/segment --seed 78",
            &code);
        assert_int_equal(code, 0);
        looked[i] =
            json_integer_value(json_object_get(json_array_get(kit_results(answer[i]), 0), "looked_at"));
        assert_int_equal(
            json_integer_value(json_object_get(json_array_get(kit_results(answer[i]), 0), "seed")),
            i < 2 ? 77 : 78);
        json_decref(answer[i]);
    }
    assert_true(looked[0] > 0);
    assert_int_equal(looked[0], looked[1]);
    assert_int_not_equal(looked[0], looked[2]);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void junit(void **state)
{
    static char out[1 << 18], xml[1 << 17];
    FILE *file;

    (void)state;
    (void)shell("mkdir 'a&b<c>\"d'; cp $D/defect-table-size.so 'a&b<c>\"d'/x.so; "
                "$T plugins check 'a&b<c>\"d'/x.so --only load --junit x.xml",
                out, sizeof out);
    file = fopen("x.xml", "r");
    assert_non_null(file);
    xml[fread(xml, 1, sizeof xml - 1, file)] = '\0';
    (void)fclose(file);
    assert_int_equal(count_of(xml, "<testcase "), count_of(out, "load/") - count_of(out, "--reproduce"));
    assert_int_equal(count_of(xml, "<testcase "), count_of(xml, "</testcase>"));
    assert_true(count_of(xml, "<failure ") >= 1);
    assert_non_null(strstr(xml, "a&amp;b&lt;c&gt;&quot;d"));
    assert_null(strstr(xml, "a&b"));
    assert_int_equal(
        shell("python3 -c 'import sys, xml.dom.minidom as m; m.parse(\"x.xml\")'", out, sizeof out), 0);
}

/* A plugin with the address sanitizer's tables, cut at a certain place, keeps the sanitizer busy for a
 * minute: a plugin without them is damaged in its place. */
static void healthy_path(char *path, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)snprintf(path, bytes, "%s/tests/golden/plugins/acme-pool.so", getenv("TENON_TEST_SOURCE"));
#else
    (void)snprintf(path, bytes, "%s/mempool.so", getenv("TENON_TEST_PLUGINS"));
#endif
}

/* A plugin that was cut, or of which one byte is another one: refused or checked, and the command lives. */
static void damaged(void **state)
{
    static unsigned char bytes[1 << 20];
    char path[4096];
    size_t size;
    FILE *file;

    (void)state;
    healthy_path(path, sizeof path);
    file = fopen(path, "r");
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    for (size_t i = 0; i < 60; i++) {
        size_t at = i % 2 ? size * i / 60 : 16 + i * 7;
        unsigned char was = bytes[at];
        json_t *answer;
        int code;

        if (!(i % 2))
            bytes[at] ^= (unsigned char)(1u << i % 8);
        file = fopen("damaged.so", "w");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, i % 2 ? at : size, file), i % 2 ? at : size);
        (void)fclose(file);
        bytes[at] = was;
        answer = kit_run("./damaged.so", "--only load/note 2>/dev/null", &code);
        if (!answer || (code != 0 && code != 1 && code != 3))
            fail_msg("%s at %zu: exit %d", i % 2 ? "cut" : "another bit", at, code);
        json_decref(answer);
    }
}

int main(void)
{
    enum { LINES = sizeof lines / sizeof *lines };
    struct CMUnitTest tests[LINES + 3];
    int failed;

    for (size_t i = 0; i < LINES; i++)
        tests[i] = (struct CMUnitTest){
            .name = lines[i].command, .test_func = says, .initial_state = (void *)(uintptr_t)&lines[i]};
    tests[LINES] = (struct CMUnitTest){.name = "seeds", .test_func = seeds};
    tests[LINES + 1] = (struct CMUnitTest){.name = "junit", .test_func = junit};
    tests[LINES + 2] = (struct CMUnitTest){.name = "damaged", .test_func = damaged};
    set_up();
    failed = cmocka_run_group_tests_name("tool", tests, NULL, NULL);
    tear_down();
    return failed;
}
