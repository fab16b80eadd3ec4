/*
 * Manual pages: complete, clean for groff, and each example in them runs. Then what is true for every
 * command.
 */
#include "tool.h"

#include "support/runs.h"

static const struct {
    const char *command, *line, *says;
} examples[] = {
#define CLI_EXAMPLE(command, line, says, what) {command, line, says},
#include "../../cli/examples.list"
#undef CLI_EXAMPLE
};

/* Calls `each` with every command's name; where TENON_TEST_SHORT=1, with every third one's. */
static void commands(void (*each)(const char *name))
{
    char *names = strdup(tool("\"$T\" completion commands")->out), *rest = NULL;
    int count = 0;

    for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest), count++)
        if (!test_short() || count % 3 == 0)
            each(name);
    free(names);
    assert_true(count >= 10);
}

static void page_check(const char *name)
{
    static const char *const sections[] = {"SYNOPSIS",    "DESCRIPTION", "OPTIONS",  "EXIT STATUS",
                                           "ENVIRONMENT", "FILES",       "EXAMPLES", "SEE ALSO"};
    char path[200], dashed[100], head[64];
    char *text;

    (void)snprintf(dashed, sizeof dashed, "%s", name);
    for (char *c = dashed; *c; c++)
        *c = *c == ' ' ? '-' : *c;
    (void)snprintf(path, sizeof path, "pages/man1/tenon-%s.1", dashed);
    text = tool_file(path);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        (void)snprintf(head, sizeof head, ".SH %s\n", sections[i]);
        if (!strstr(text, head))
            fail_msg("%s has no %s", path, sections[i]);
    }
    if (!strstr(strstr(text, ".SH EXAMPLES"), ".nf"))
        fail_msg("%s: the command has no example in cli/examples.list", name);
    free(text);
}

static void pages(void **state)
{
    (void)state;
    assert_int_equal(tool("\"$T\" manual --into pages")->code, 0);
    commands(page_check);
    assert_says(tool("cat pages/man5/tenon.ini.5")->out, "MXNET_ENGINE_TYPE");
    assert_says(tool("cat pages/man5/tenon.ini.5")->out, "engine.type");
    assert_says(tool("cat pages/man7/tenon-plugin.7")->out, "L05");
    assert_says(tool("cat pages/man1/tenon.1")->out, "tenon\\-plugins\\-list");
}

static void clean_for_groff(void **state)
{
    const tool_said *s;

    (void)state;
    if (tool("command -v groff")->code) {
        printf("skipped: groff is not installed\n");
        skip();
    }
    assert_int_equal(tool("\"$T\" manual --into pages")->code, 0);
    s = tool(
        test_short()
            ? "groff -man -ww -Tutf8 pages/man5/tenon.ini.5 >page.txt"
            : "for p in pages/man?/*; do groff -man -ww -Tutf8 $p >page.txt || echo \"$p failed\" >&2; done");
    assert_string_equal(s->err, "");
    s = tool("groff -man -Tascii pages/man1/tenon-train.1 | col -b 2>/dev/null | head -60");
    assert_says(s->out, "--resume");
    /* mandb reads names and summaries */
    if (tool("command -v lexgrog")->code == 0)
        assert_says(tool("lexgrog pages/man1/tenon-plugins-list.1")->out, "tenon-plugins-list - ");
}

static void examples_run(void **state)
{
    char line[600];

    (void)state;
    assert_int_equal(tool("mkdir -p examples plugins")->code, 0);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const tool_said *s;

        if (!strcmp(examples[i].command, "bench engine"))
            continue; /* takes seconds, and test_bench.c runs it */
        if (!strcmp(examples[i].command, "data pack") &&
            tool("test -r \"$TENON_TEST_PLUGINS\"/image.so")->code) {
            print_message("skipped: the example of data pack: the plugin image was not built\n");
            continue;
        }
        (void)snprintf(line, sizeof line,
                       "HOME=$PWD; tenon() { \"$T\" \"$@\"; }; cd examples; command -v bash >/dev/null ||"
                       " exit 77; %s",
                       examples[i].line);
        if (strstr(examples[i].line, ". ./"))
            (void)snprintf(line, sizeof line, "bash -c 'tenon() { \"$T\" \"$@\"; }; cd examples; %s'",
                           examples[i].line);
        s = tool(line);
        if (s->code || !strstr(s->out, examples[i].says))
            fail_msg("%s: code %d, out %s, err %s; expected \"%s\"", examples[i].line, s->code, s->out,
                     s->err, examples[i].says);
    }
}

static void errors(void **state)
{
    const tool_said *s = tool("\"$T\" manual tenon-trian");

    (void)state;
    assert_int_equal(s->code, 2);
    assert_says(s->err, "did you mean \"tenon-train\"");
    assert_int_equal(tool("\"$T\" manual --into /dev/null/x")->code, 1);
    assert_int_equal(tool("\"$T\" manual >/dev/full")->code, 1);
    assert_says(tool("\"$T\" manual plugins-list")->out, ".TH TENON-PLUGINS-LIST 1");
    assert_says(tool("\"$T\" manual --json")->out, "\"troff\":\".TH TENON 1");
}

/* ---- of every command ---- */

static void helps(const char *name)
{
    char line[160];
    const tool_said *s;

    (void)snprintf(line, sizeof line, "\"$T\" %s --help", name);
    s = tool(line);
    if (s->code || strncmp(s->out, "usage: tenon", 12) || *s->err)
        fail_msg("%s: code %d, out %s, err %s", line, s->code, s->out, s->err);
    for (const char *at = s->out; *at; at += strcspn(at, "\n") + 1)
        if (strcspn(at, "\n") > 80)
            fail_msg("%s: over 80 columns: %.*s", line, (int)strcspn(at, "\n"), at);
    (void)snprintf(line, sizeof line, "\"$T\" %s --help >/dev/full", name);
    assert_int_equal(tool(line)->code, 1);
}

/* What it prints with --json is JSON, or nothing if it failed. */
static void json_only(const char *name)
{
    char line[160];
    const tool_said *s;
    char *all;

    if (!strcmp(name, "train") || !strncmp(name, "bench", 5))
        return; /* have tests of their own, and take long */
    (void)snprintf(line, sizeof line, "\"$T\" %s%s --json", name,
                   !strcmp(name, "plugins check") ? " --list"
                   : !strncmp(name, "kv ", 3)     ? " --set kvstore.control_timeout=300" /* nobody comes */
                                                  : "");
    s = tool(line);
    if (strstr(s->err, "unknown option"))
        fail_msg("%s: %s", line, s->err);
    if (s->code && *s->out == '\0') {
        assert_true(*s->err != '\0');
        return;
    }
    all = tool_file("out.txt"); /* may be long */
    for (const char *at = all; *at; at += strcspn(at, "\n") + 1) {
        json_t *o = json_loadb(at, strcspn(at, "\n"), JSON_DECODE_ANY, NULL);

        if (!o)
            fail_msg("%s prints no JSON: %.*s", line, (int)strcspn(at, "\n"), at);
        json_decref(o);
    }
    free(all);
}

static void help_of_every_command(void **state)
{
    (void)state;
    commands(helps);
    helps("");
    helps("plugins");
    helps("config");
}

static void json_of_every_command(void **state)
{
    (void)state;
    commands(json_only);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages),
        cmocka_unit_test(clean_for_groff),
        cmocka_unit_test(examples_run),
        cmocka_unit_test(errors),
        cmocka_unit_test(help_of_every_command),
        cmocka_unit_test(json_of_every_command),
    };
    int failed;

    unsetenv("TENON_SEED"); /* of campaigns; the tool would speak of them */
    unsetenv("TENON_RUNS");
    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
