/*
 * tenon plugins new: what it writes, what it refuses, and that a refusal leaves nothing behind.
 */
#include "tool.h"

#include <sys/stat.h>
#include <unistd.h>

static bool is_there(const char *path)
{
    struct stat s;

    return lstat(path, &s) == 0;
}

/* No file says a word of the template's names; each file it tells is there. */
static void kinds(void **state)
{
    static const struct {
        const char *kind, *name, *file, *says;
    } rows[] = {
        {"operator", "my-fft", "my-fft/my_fft.c", "\"_backward_my_fft\""},
        {"device", "npu9", "npu9/npu9.c", "\"device:npu9\""},
        {"pool", "a--b-", "a--b-/a__b_.c", "\"pool:a--b-\""},
        {"operator", "int", "int/int.c", "\"op:int kernels@cpu\""},
        {"kernel", "fast-relu", "fast-relu/fast_relu.c", "relu.fast_relu"},
        {"kernel", "relu", "relu/relu.c", "\"relu\""}, /* it brings no operator of its name */
        {"device-async", "npu10", "npu10/npu10.c", "\"device:npu10\""},
        {"transport", "my-wire", "my-wire/my_wire_link.c", "my_wire.h"},
        {"transport", "wire", "wire/wire.c", "\"transport:wire options:wire\""},
        {"collective", "my-ring", "my-ring/my_ring_open.c", "my_ring.h"},
        {"collective", "ring", "ring/ring.c", "\"collective:ring\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[256], path[320];
        const tool_said *s;
        const json_t *files;
        json_t *o;
        char *text;

        (void)snprintf(line, sizeof line, "umask 0; \"$T\" plugins new %s --kind %s --json", rows[i].name,
                       rows[i].kind);
        s = tool(line);
        assert_int_equal(s->code, 0);
        o = tool_json(s, 0);
        assert_string_equal(json_string_value(json_object_get(o, "name")), rows[i].name);
        assert_string_equal(json_string_value(json_object_get(o, "folder")), rows[i].name);
        files = json_object_get(o, "files");
        assert_true(json_array_size(files) >= 5);
        for (size_t k = 0; k < json_array_size(files); k++) {
            (void)snprintf(path, sizeof path, "%s/%s", rows[i].name,
                           json_string_value(json_array_get(files, k)));
            text = tool_file(path);
            assert_true(*text);
            if (strstr(text, "acme") || strstr(text, "first-fit"))
                fail_msg("%s still has the template's name", path);
            free(text);
        }
        json_decref(o);
        text = tool_file(rows[i].file);
        assert_says(text, rows[i].says);
        free(text);
        (void)snprintf(line, sizeof line, "find %s -type d -perm /022", rows[i].name);
        assert_string_equal(tool(line)->out, ""); /* plugins in there would be refused */
        (void)snprintf(line, sizeof line, "find %s -type f -perm /111", rows[i].name);
        (void)snprintf(path, sizeof path, "%s/debian/rules\n", rows[i].name);
        assert_string_equal(tool(line)->out, path); /* the only script */
        assert_int_equal(tool("ls -A | grep -c 'new-' >&2; true")->code, 0);
        assert_string_equal(tool("ls -A | grep 'new-' || true")->out, "");
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *line, *says;
        int code;
    } rows[] = {
        {"\"$T\" plugins new", "argument is missing", 2},
        {"\"$T\" plugins new one", "--kind", 2},
        {"\"$T\" plugins new one --kind ''", "--kind", 2},
        {"\"$T\" plugins new one --kind opertor", "did you mean \"operator\"", 2},
        {"\"$T\" plugins new one --kind courier",
         "kinds are operator, kernel, device, device-async, pool, transport, collective", 2},
        {"\"$T\" plugins new one two --kind pool", "one too many", 2},
        {"\"$T\" plugins new One --kind pool", "begins with a letter", 2},
        {"\"$T\" plugins new 1one --kind pool", "begins with a letter", 2},
        {"\"$T\" plugins new '' --kind pool", "1 to 31 characters", 2},
        {"\"$T\" plugins new ../one --kind pool", "a to z", 2},
        {"\"$T\" plugins new 'one\n' --kind pool", "a to z", 2},
        {"\"$T\" plugins new abcdefghijklmnopqrstuvwxyz012345 --kind pool", "1 to 31 characters", 2},
        {"\"$T\" plugins new cpu --kind pool", "a plugin called \"cpu\"", 2},
        {"\"$T\" plugins new relu --kind operator", "an operator called \"relu\"", 2},
        {"\"$T\" plugins new broadcast-add --kind operator", "an operator called \"broadcast_add\"", 2},
        {"\"$T\" plugins new concat --kind operator", "an operator called \"concat\"", 2}, /* an alias */
        {"\"$T\" plugins new gpu --kind device", "a device called \"gpu\"", 2},
        {"\"$T\" plugins new cuda --kind device-async", "a device called \"cuda\"", 2},
        {"\"$T\" plugins new cpu --kind kernel", "a plugin called \"cpu\"", 2},
        {"\"$T\" plugins new none --kind pool", "a pool called \"none\"", 2},
        {"\"$T\" plugins new round --kind pool", "a pool called \"round\"", 2},
        {"cp \"$T\" tool && ./tool plugins new one --kind pool", "templates are not installed", 1},
        {"\"$T\" plugins new one --kind pool --dir /proc/nowhere", "/proc/nowhere", 1},
        {"\"$T\" plugins new one --kind pool --dir file", "file", 1},
        {"\"$T\" plugins new full --kind pool", "not empty", 1},
        {"\"$T\" plugins new link --kind pool", "is there already", 1},
        {"\"$T\" plugins new dangling --kind pool", "is there already", 1},
        {"\"$T\" plugins new file --kind pool", "is there already", 1},
        {"chmod 500 locked && setpriv --reuid 65534 \"$T\" plugins new one --kind pool --dir locked",
         "locked", 1},
    };

    (void)state;
    assert_int_equal(
        tool("mkdir full empty locked && echo x > full/x && echo x > file && ln -s empty link && "
             "ln -s none dangling")
            ->code,
        0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        if (strstr(rows[i].line, "setpriv") &&
            (geteuid() || tool("setpriv --reuid 65534 test -r \"$T\"")->code))
            continue; /* only root can become somebody else */
        s = tool(rows[i].line);
        if (s->code != rows[i].code || *s->out || !strstr(s->err, rows[i].says))
            fail_msg("%s: code %d, out %s, err %s, expected \"%s\"", rows[i].line, s->code, s->out, s->err,
                     rows[i].says);
        assert_false(is_there("one"));
        assert_false(is_there("none"));
    }
    assert_string_equal(tool("ls -A empty locked full . | grep -e new- -e one || true")->out, "");
    assert_int_equal(tool("\"$T\" plugins new empty --kind pool")->code,
                     0); /* an empty folder may be filled */
    assert_true(is_there("empty/empty.c"));
}

/* The folder for files of 0 bytes is full at once: nothing stays. */
static void disk_full(void **state)
{
    const tool_said *s = tool("(ulimit -f 1; trap '' XFSZ; \"$T\" plugins new big --kind operator)");

    (void)state;
    assert_int_equal(s->code, 1);
    assert_says(s->err, "cannot write");
    assert_string_equal(tool("ls -A | grep big || true")->out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds), cmocka_unit_test(refusals),
                                       cmocka_unit_test(disk_full)};
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests_name("cli.new", tests, NULL, NULL);
    tool_teardown();
    return failed;
}
