/*
 * Natural mistakes and what the tool says of them: tests/cli/mistakes.txt. A message is one line, names the
 * thing, the place and what to do, and nothing is printed to standard output by a command that did nothing.
 */
#include "tool.h"

#include <unistd.h>

#define ROWS_LEAST 60

/* Tables, and folders of images, as people bring them. */
static const char data_setup[] =
    "printf 'a,a,kind\\n1,2,x\\n2,3,y\\n' >alike.csv; printf 'a,b,kind\\r1,2,x\\r2,3,y\\r' >cr.csv; "
    "printf 'a;kind\\n0,5;x\\n1,5;y\\n' >comma.csv; printf 'a,kind\\nNA,x\\n1,y\\n' >na.csv; "
    "printf 'a,kind\\n,x\\n1,y\\n' >hole.csv; printf 'town,kind\\nRom,x\\nBonn,y\\n' >town.csv; "
    "printf 'a,kind\\n1,gr\\374n\\n2,rot\\n' >latin.csv; printf '# mine\\na,kind\\n1,x\\n' >more.csv; "
    "printf 'a,kind\\n1,x\\n2,x\\n3,x\\n4,x\\n5,x\\n' >one.csv; cp one.csv text.npz; "
    "printf 'a,gr\\374n,kind\\n1,2,x\\n' >latin1.csv; printf 'a,b\\007c,kind\\n1,2,x\\n' >bell.csv; "
    "printf 'b\\302\\233c,kind\\nRom,x\\n' >c1.csv; printf 'b\\342\\200\\256c,kind\\nRom,x\\n' >turn.csv; "
    "printf 'a,kind\\n1,x\\342\\200\\256y\\n' >turns.csv; printf 'z\\nx\\342\\200\\256y\\n' >turn.txt; "
    "printf 'gr\\374n\\n' >latin.txt; echo a,price >slope.csv; i=0; while [ $i -lt 60 ]; do "
    "echo $i,$((100 + 3 * i + i % 7)) >>slope.csv; i=$((i + 1)); done; mkdir hot; for a in x y; do "
    "printf '\\223NUMPY\\001\\000v\\000%-117s\\n\\001\\000\\000\\001\\001\\000\\000\\001' "
    "\"{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2), }\" >hot/$a.npy; done; "
    "mkdir flat; cp bad.png flat; printf 'GIF89a\\0\\0' >photo.gif; "
    "printf 'a,kind\\n1,x\\n2,y\\n3,x\\n4,y\\n5,x\\n' >changed.csv; "
    "\"$T\" train zoo:mlp --data changed.csv --batch 2 --epochs 1 --out changed -q && "
    "printf 'a,kind\\n7,x\\n2,y\\n3,x\\n4,y\\n5,x\\n' >changed.csv";

static const char setup[] =
    "printf '1,2\\n3\\n' >ragged.csv; printf '1,2\\n3,x\\n' >word.csv; : >empty.csv; echo hello, world "
    ">notes.txt; "
    "cp notes.txt notes.params; echo '{' >broken-symbol.json; mkdir empty; head -c 40 "
    "first/model-0000.params "
    ">cut.params; echo oops >bad.png; "
    "printf '[train]\\nepochs = many\\n' >many.ini; printf '[train]\\nlearning_rate = 0.1\\n' >rate.ini; "
    "printf 'epochs = 3\\n' >bare.ini; printf '[trian]\\nepochs = 3\\n' >section.ini; "
    "printf '[train\\nepochs = 3\\n' >bracket.ini; printf '[train]\\nepochs 3\\n' >equals.ini; "
    "printf '[train]\\nepochs = 3\\nepochs = 4\\n' >twice.ini; "
    "printf 'a,kind\\n1,x\\033[31my\\n2,z\\n' >escape.csv; printf 'z\\nx\\033[31my\\n' >escape.txt; "
    "printf 'x\\302\\233y\\n' >escape1.txt; d=escape/$(printf 'a\\033[31m') && mkdir -p \"$d\" escape/b && "
    "for i in 1 2 3 4 5; do cp bad.png \"$d/$i.png\" && cp bad.png escape/b; done";

/* Whether the text is as `wanted`, in which "..." stands for any text. */
static bool fits(const char *text, size_t length, const char *wanted)
{
    const char *dots = strstr(wanted, "...");
    size_t head = dots ? (size_t)(dots - wanted) : strlen(wanted);

    if (length < head || memcmp(text, wanted, head) != 0)
        return false;
    if (!dots)
        return length == head;
    for (size_t i = head; i <= length; i++)
        if (fits(text + i, length - i, dots + 3))
            return true;
    return false;
}

/* One line of standard error is as wanted. */
static bool says(const char *err, const char *wanted)
{
    for (size_t n; *err; err += n + (err[n] != '\0')) {
        n = strcspn(err, "\n");
        if (fits(err, n, wanted))
            return true;
    }
    return false;
}

static int wrong; /* rows; all of them are shown */

/* Runs "CODE COMMAND"; the answer stays for the lines below. */
static const tool_said *row_run(const char *row)
{
    char line[512], *command;
    const long code = strtol(row, &command, 10);
    const tool_said *s;

    (void)snprintf(line, sizeof line, "exec \"$T\"%s </dev/null", command);
    s = tool(line);
    if (s->code != code || (code && *s->out)) {
        print_error("%s: code %d, expected %ld, printed: %s\n%s\n", command, s->code, code, s->out, s->err);
        wrong++;
    }
    return s;
}

static void mistakes(void **state)
{
    const char *source = getenv("TENON_TEST_SOURCE");
    const tool_said *s = NULL;
    char path[600], *text, *rest = NULL, *row = NULL;
    int rows = 0;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/cli/mistakes.txt", source ? source : ".");
    text = tool_file(path);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (*line == '#')
            continue;
        if (!strncmp(line, "$ ", 2)) {
            s = row_run(row = line + 2);
            rows++;
        } else if (!s || !says(s->err, line)) {
            print_error("%s\nexpected: %s\nsaid:     %s\n", row ? row : "no command", line, s ? s->err : "");
            wrong++;
        }
    }
    free(text);
    assert_int_equal(wrong, 0);
    assert_true(rows >= ROWS_LEAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes)};
    int failed;

    tool_setup();
    setenv("OMP_NUM_THREADS", "1", 1);
    tool_data("small", 20);
    if (tool("exec \"$T\" train zoo:lenet --data ./small --batch 10 --epochs 1 --out first -q")->code ||
        tool(setup)->code || tool(data_setup)->code)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
