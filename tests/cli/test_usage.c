/*
 * The command line: help, wrong words, options, plugins, output that cannot be written.
 */
#include "tool.h"

#include <unistd.h>

static void help_of_all(void **state)
{
    static const char *const commands[] = {"",      "train",        "eval",   "plugins", "plugins list",
                                           "bench", "bench engine", "version"};
    char line[128];

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, "\"$T\" %s --help", commands[i]);
        s = tool(line);
        if (s->code || strncmp(s->out, "usage: tenon", 12) || *s->err)
            fail_msg("%s: code %d, out %s, err %s", line, s->code, s->out, s->err);
    }
}

static void usage_errors(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"\"$T\"", "usage: tenon"},
        {"\"$T\" tarin zoo:lenet", "did you mean \"train\""},
        {"\"$T\" plugin list", "did you mean \"plugins list\""},
        {"\"$T\" plugins lsit", "did you mean \"plugins list\""},
        {"\"$T\" plugins", "plugins list"},
        {"\"$T\" quux", "unknown command \"quux\""},
        {"\"$T\" version --jsno", "did you mean --json"},
        {"\"$T\" version -x", "unknown option -x"},
        {"\"$T\" version --json=1", "takes no value"},
        {"\"$T\" version extra", "one too many"},
        {"\"$T\" train", "MODEL"},
        {"\"$T\" train zoo:lenet --epochs", "needs a value"},
        {"\"$T\" train zoo:lenet --epochs 3 --epochs 0", "train.epochs"}, /* the last one wins */
        {"\"$T\" train zoo:lente", "did you mean \"zoo:lenet\""},
        {"\"$T\" train zoo:lenet --progress lots", "bar, plain, json or none"},
        {"\"$T\" train zoo:lenet --set train.epochs", "SECTION.KEY=VALUE"},
        {"\"$T\" train zoo:lenet --set train.epchs=2", "train.epochs"},
        {"\"$T\" train zoo:lenet --epochs many", "train.epochs"},
        {"\"$T\" train zoo:lenet --epochs 0", "train.epochs"},
        {"\"$T\" train zoo:lenet --data nothing-of-this-name", "nothing-of-this-name"},
        {"\"$T\" train zoo:lenet --config missing.ini", "missing.ini"},
        {"\"$T\" eval", "argument is missing"},
        {"\"$T\" train --resume \"\"", "--resume: the value is empty"},
        {"\"$T\" train --resume=", "--resume: the value is empty"},
        {"\"$T\" train zoo:lenet --out \"\"", "--out: the value is empty"},
        {"\"$T\" train zoo:lenet --data=", "--data: the value is empty"},
        {"\"$T\" train zoo:lenet --config \"\"", "--config: the value is empty"},
        {"\"$T\" predict a b c --out \"\"", "--out: the value is empty"},
        {"\"$T\" viz zoo:lenet --graph -o \"\"", "--output: the value is empty"},
        {"\"$T\" plugins check cpu --junit \"\"", "--junit: the value is empty"},
        {"\"$T\" viz zoo:lenet --shape", "--shape needs a value"},
        {"\"$T\" viz zoo:lenet --shape=", "--shape: the value is empty"},
        {"\"$T\" viz zoo:lenet --shape -1,1,8,8", "--shape -1,1,8,8: NAME=1,1,28,28 is needed"},
        {"\"$T\" bench op relu --shape", "--shape needs a value"},
        {"\"$T\" bench op relu --shape 2x2 --json -o csv", "--json"},
        {"\"$T\" viz zoo:lenet --graph --term", "--term goes with --curves"},
        {"\"$T\" eval m.params --data digits", "--data goes with a model: MODEL-symbol.json m.params"},
        {"\"$T\" eval m.params --confusion", "--confusion goes with a model"},
        {"\"$T\" train zoo:lenet --dry-run --overfit-one", "one of them at a time"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s = tool(rows[i].line);

        if (*s->out || !strstr(s->err, rows[i].says))
            fail_msg("%s: out %s, err %s, expected \"%s\"", rows[i].line, s->out, s->err, rows[i].says);
        if (s->code != 2 && !(strstr(rows[i].line, "missing.ini") && s->code == 1))
            fail_msg("%s: code %d: %s", rows[i].line, s->code, s->err);
    }
}

/* No byte of what was asked steers the terminal, however long the message is. */
static void control_characters(void **state)
{
    static const char *const lines[] = {
        "\"$T\" \"$(printf '\\033[2J')\"",
        "\"$T\" train \"$(printf 'a\\r\\nb\\177\\033]0;x\\007')\"",
        "\"$T\" version \"--$(printf '\\033[1m')\"",
        "\"$T\" version a \"$(printf '%4000s\\033[31m' y)\"",
        "\"$T\" train \"$(printf '%4000s\\033[31m' y)\"",
        "\"$T\" runs show \"$(printf '\\033[2J')\"",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const tool_said *s = tool(lines[i]);
        size_t length = strlen(s->err);

        assert_int_equal(s->code, 2);
        assert_true(length > 10 && s->err[length - 1] == '\n');
        for (size_t k = 0; k + 1 < length; k++)
            if ((unsigned char)s->err[k] < ' ' || s->err[k] == 127)
                fail_msg("%s: byte %d at %zu of %s", lines[i], s->err[k], k, s->err);
    }
}

static void version(void **state)
{
    const tool_said *s = tool("\"$T\" version --json");
    json_t *o = tool_json(s, 0);

    (void)state;
    assert_int_equal(s->code, 0);
    assert_non_null(json_string_value(json_object_get(o, "version")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "abi"), "major")), 1);
    assert_true(strlen(json_string_value(json_object_get(o, "build_id"))) >= 8);
    json_decref(o);
    s = tool("\"$T\" --version");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "plugin ABI");
}

static json_t *plugin_at(json_t *list, const char *key, const char *value)
{
    size_t index;
    json_t *p;

    json_array_foreach(json_object_get(list, "plugins"), index, p)
    {
        const char *text = json_string_value(json_object_get(p, key));

        if (text && strstr(text, value))
            return p;
    }
    return NULL;
}

/* A broken file among good ones is shown with its code, and is no failure; nothing is loaded. */
static void plugins(void **state)
{
    const tool_said *s;
    json_t *list, *p;

    (void)state;
    assert_int_equal(tool("mkdir -p good && chmod 755 . good && printf 'no plugin' >good/broken.so")->code,
                     0);
    s = tool("\"$T\" plugins list --json --set plugins.path=\"$PWD/good\"");
    assert_int_equal(s->code, 0);
    list = tool_json(s, 0);
    p = plugin_at(list, "path", "/good/broken.so");
    assert_non_null(p);
    assert_string_equal(json_string_value(json_object_get(p, "state")), "refused");
    assert_string_equal(json_string_value(json_object_get(p, "refusal")), "L03");
    assert_true(strlen(json_string_value(json_object_get(p, "reason"))) > 10);
    p = plugin_at(list, "name", "cpu");
    assert_non_null(p);
    assert_string_equal(json_string_value(json_object_get(p, "state")), "ready");
    assert_true(json_is_null(json_object_get(p, "refusal")));
    json_decref(list);

    s = tool("\"$T\" plugins list --set plugins.path=\"$PWD/good\" --set plugins.require=absent");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "NAME ");
    assert_says(s->out, "kernels@cpu");
    assert_says(s->out, "rejected: ");
    assert_says(s->out, "L03: ");
}

/* ./tenon.ini is read, and may not say where plugins lie. */
static void local_file(void **state)
{
    const tool_said *s;

    (void)state;
    assert_int_equal(tool("printf '[train]\\nepochs = 0\\n' >tenon.ini")->code, 0);
    s = tool("\"$T\" plugins list");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "tenon.ini:2");
    assert_int_equal(tool("printf '[plugins]\\npath = /tmp\\n' >tenon.ini")->code, 0);
    s = tool("\"$T\" plugins list");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "plugins.path");
    assert_int_equal(tool("rm tenon.ini")->code, 0);
}

/* What cannot be written is an error; a number of a closed stream is not given to a file. */
static void no_output(void **state)
{
    const tool_said *s = tool("\"$T\" version >&-");

    (void)state;
    assert_int_equal(s->code, 1);
    assert_says(s->err, "standard output");
    s = tool("\"$T\" version --json >/dev/full");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "standard output");
    assert_int_equal(tool("\"$T\" version 2>&-")->code, 0);
    assert_int_equal(tool("\"$T\" version <&-")->code, 0);
}

static void eval_errors(void **state)
{
    const tool_said *s = tool("\"$T\" eval nothing.params");

    (void)state;
    assert_int_equal(s->code, 2);
    assert_says(s->err, "nothing.params");
    assert_int_equal(tool("head -c 100 /dev/zero >zeros.params")->code, 0);
    s = tool("\"$T\" eval zeros.params --json");
    assert_true(s->code == 4 || s->code == 1);
    assert_string_equal(s->out, "");
    assert_says(s->err, "zeros.params");
}

/* Asking for help runs nothing; what is read is not written over;
 * an option that would be ignored is refused. */
static void nothing_behind_the_back(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool("mkdir helped && cd helped && exec \"$T\" help train zoo:lenet --epochs 1");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "usage: tenon train");
    assert_true(access("helped/runs", F_OK) != 0);
    s = tool("exec \"$T\" help plugins");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "plugins list");
    assert_int_equal(tool("exec \"$T\" help nosuch")->code, 2);
    s = tool("echo 1,2 >row.csv; exec \"$T\" predict m-symbol.json m.params row.csv --out row.csv");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "would replace row.csv");
    assert_int_equal(tool("exec \"$T\" train --resume x --out y")->code, 2);
    s = tool("exec \"$T\" eval none-symbol.json none.params --data digits"); /* the name once */
    assert_string_equal(s->err, "error[TN-1501]: none.params: cannot open: No such file or directory\n");
    s = tool("exec \"$T\" train zoo:lenet --data digits --dry-run --set train.params=none.params");
    assert_string_equal(s->err, "error[TN-1501]: none.params: cannot open: No such file or directory\n");
    s = tool("exec \"$T\" plugins check mempool --only load/note --junit /proc/none/x.xml");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "/proc/none/x.xml cannot be written: No such file or directory");
    s = tool("exec \"$T\" viz zoo:lenet --shape 1,1,28,28 -o x.svg");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "-o is for pictures");
    s = tool("exec \"$T\" viz zoo:lenet --graph --shape 1,1,28,28 -o x.png");
    assert_int_equal(s->code, 2);
    assert_says(s->err, ".svg, graphs also as .dot or .gv");
}

/* Control characters of C0, and of C1 as UTF-8, but for ends of lines. */
static bool steers(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if ((*c < ' ' && *c != '\n') || *c == 127 || (*c == 0xc2 && c[1] < 0xa0))
            return true;
    return false;
}

/* Names of a stranger's files do not reach the terminal as they are. */
static void names_steer_nothing(void **state)
{
    static const char *const lines[] = {
        "\"$T\" config show train",
        "\"$T\" config show --origin train.data",
        "\"$T\" config check",
        "\"$T\" plugins needs m-symbol.json",
        "\"$T\" viz m-symbol.json --shape 1,4",
        "\"$T\" viz m-symbol.json --shape 1,4 --memory",
        "\"$T\" viz m-symbol.json --graph",
        "\"$T\" viz m-symbol.json",
        "\"$T\" viz \"$(printf 'a\\033b\\302\\233c')\"",
        "\"$T\" plugins inspect \"$(printf 'a\\033b\\302\\233c')\"",
        "\"$T\" train zoo:lenet --data \"$(printf 'a\\033b\\302\\233c')\" --out x",
        "\"$T\" runs prune --keep 0 --runs strange",
        "\"$T\" runs list --runs strange",
        "\"$T\" doctor strange/*",
    };

    (void)state;
    assert_int_equal(tool("mkdir steer && cd steer && printf '[train]\\nmodel = a\\033[31mb\\ndata = "
                          "c\\302\\233d\\n' >tenon.ini && "
                          "d=\"strange/$(printf 'a\\033b\\302\\233c')\" && mkdir -p \"$d\" && "
                          "echo '{\"command\": [], \"options\": [], \"versions\": {\"tenon\": \"\\u001b\"}}' "
                          ">\"$d/run.json\" && "
                          "echo '{\"nodes\":[{\"op\":\"null\",\"name\":\"da\\u001bta\",\"inputs\":[]},"
                          "{\"op\":\"Activation\",\"name\":\"re\\u009blu\",\"attrs\":{\"act_type\":\"relu\"},"
                          "\"inputs\":[[0,0,0]]}],\"arg_nodes\":[0],\"heads\":[[1,0,0]]}' >m-symbol.json")
                         ->code,
                     0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[200];
        const tool_said *s;

        (void)snprintf(line, sizeof line, "cd steer && exec %s", lines[i]);
        s = tool(line);
        if (steers(s->out) || steers(s->err) || !(*s->out || *s->err))
            fail_msg("%s: code %d, out %s, err %s", lines[i], s->code, s->out, s->err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_steer_nothing),
        cmocka_unit_test(help_of_all),
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(control_characters),
        cmocka_unit_test(version),
        cmocka_unit_test(plugins),
        cmocka_unit_test(local_file),
        cmocka_unit_test(no_output),
        cmocka_unit_test(eval_errors),
        cmocka_unit_test(nothing_behind_the_back),
    };
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
