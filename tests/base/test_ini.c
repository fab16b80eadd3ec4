/* Configuration files: what is read, and each error with its file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/scratch.h"

static tn_status collect(void *arg, const char *section, const char *key, const char *value, uint32_t line)
{
    return tni_str_addf(arg, "%s.%s=%s@%u\n", section, key, value, line);
}

/* What is read, one key per line; after an error its text. */
static char *read_text(const char *text, size_t count)
{
    static char out[4096];
    tni_str s;
    tn_status st;

    tni_str_init(&s, 1u << 20);
    tni_error_clear();
    st = tni_ini_read_memory("t", text, count, collect, &s);
    snprintf(out, sizeof out, "%s%s", st ? tni_error_message() : "", st || !s.text ? "" : s.text);
    tni_str_fini(&s);
    return out;
}

static void good(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"\n\n ; c\n# c\n", ""},
        {"[a]\nx = 1\ny=2", "a.x=1@2\na.y=2@3\n"},
        {"\xEF\xBB\xBF[a]\r\nx = 1\r\n", "a.x=1@2\n"},
        {"[a] ; comment\n x=1\n", "t:2: an indented line continues a value, but there is none above"},
        {"[a]\nx = 1 ; comment\n", "a.x=1@2\n"},
        {"[a]\nx = a;b\n", "a.x=a;b@2\n"},
        {"[a]\nx =\ny = http://h:1/\n", "a.x=@2\na.y=http://h:1/@3\n"},
        {"[plugins]\nrequire = cpu,\n  mempool\n\tkv ; c\n\n  # c\n  last\n[b]\nz=1\n",
         "plugins.require=cpu, mempool, kv, last@2\nb.z=1@9\n"},
        {"[a]\nx=1\n[b]\nx=1\n", "a.x=1@2\nb.x=1@4\n"},
        {"[memory.cpu]\npool=round\n[kernel]\nConvolution@cpu = onednn\n",
         "memory.cpu.pool=round@2\nkernel.Convolution@cpu=onednn@4\n"},
        {"x = 1\n", ".x=1@1\n"},
        {"[a]\nx = 1\n  y = 2\n", "a.x=1, y = 2@2\n"},
        {"[a]\nx = 1\n  [b]\n", "a.x=1, [b]@2\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(read_text(cases[i][0], strlen(cases[i][0])), cases[i][1]);
}

static void bad(void **state)
{
    static const char *const cases[][2] = {
        {"[a]\nx\n", "t:2: expected key = value"},
        {"[a]\nx: 1\n", "t:2: expected key = value"},
        {"[a]\nx:y = 1\n", "t:2: ':' stands before '='; write key = value"},
        {"[a]\n= 1\n", "t:2: the key before '=' is empty"},
        {"[a\nx=1\n", "t:1: ']' is missing"},
        {"[]\nx=1\n", "t:1: the section's name is empty"},
        {"[a] b\nx=1\n", "t:1: text after ']'"},
        {"[a]\nx=1\ny=2\nx=3\n", "t:4: x is set twice in section [a]"},
        {"[a]\nx=1\n[b]\n[a]\nx=1\n", "t:5: x is set twice in section [a]"},
        {"[a]\nx=1\n[b]\n y\n", "t:4: an indented line continues a value, but there is none above"},
        {"[a]\nx;y=1\n", "t:2: a key cannot hold ';'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(read_text(cases[i][0], strlen(cases[i][0])), cases[i][1]);
    assert_string_equal(read_text("[a]\nx=1\0y\n", 10), "t:2: the line holds a zero byte");
}

/* Exactly the lengths that libinih's buffers hold pass, one byte more is an error. */
static void lengths(void **state)
{
    char text[1000];

    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        int n = snprintf(text, sizeof text, "[a]\n%.*s=1\n", 49 + extra,
                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");

        assert_true((strstr(read_text(text, (size_t)n), "the key has 50 bytes") != NULL) == extra);
        n = snprintf(text, sizeof text, "[%.*s]\nx=1\n", 49 + extra,
                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert_true((strstr(read_text(text, (size_t)n), "the section has 50 bytes") != NULL) == extra);
        n = snprintf(text, sizeof text, "[a]\nx=%0*d\n", 196 + extra, 1);
        assert_true((strstr(read_text(text, (size_t)n), "t:2: the line has 199 bytes") != NULL) == extra);
        if (!extra)
            assert_int_equal(strlen(read_text(text, (size_t)n)), strlen("a.x=@2\n") + 196);
    }
    memset(text, ' ', sizeof text); /* comments and blank lines may be long */
    memcpy(text, "[a]\n", 4);
    text[500] = '#';
    memcpy(text + 990, "\nx=1\n     ", 10);
    assert_string_equal(read_text(text, sizeof text), "a.x=1@3\n");
}

static tn_status stop(void *arg, const char *section, const char *key, const char *value, uint32_t line)
{
    (void)section;
    (void)key;
    (void)value;
    ++*(int *)arg;
    return line == 3 ? tni_error(TN_E_KEY, "stop") : TN_OK;
}

static void callback_stops(void **state)
{
    const char *path = scratch_write("stop.ini", "[a]\nx=1\ny=2\nz=3\n", 16);
    int calls = 0;

    (void)state;
    assert_int_equal(tni_ini_read(path, stop, NULL, &calls), TN_E_KEY);
    assert_int_equal(calls, 2);
    assert_int_equal(tni_ini_read(scratch_path("absent.ini"), stop, NULL, &calls), TN_E_IO);
    assert_int_equal(tni_ini_read(scratch_folder(), stop, NULL, &calls), TN_E_IO);
}

static tn_status key_note(void *arg, const char *section, const char *key, const char *value, uint32_t line)
{
    tni_str *s = arg;

    return tni_str_addf(s, "%s.%s=%s@%u ", section, key, value, line);
}

static void wrong_note(void *arg)
{
    tni_str *s = arg;

    tni_str_addf(s, "!%.4s ", tni_error_message());
}

/* With somebody who collects them, wrong lines and what belongs to them are passed over, in order. */
static void all_problems(void **state)
{
    static const struct {
        const char *text, *found;
    } cases[] = {
        {"[a]\nx=1\n", "a.x=1@2 "},
        {"[a]\nnonsense\nx=1\n", "!t:2: a.x=1@3 "},
        {"[a]\nx=1\nx=2\n  3\ny=4\n", "a.x=1@2 !t:3: a.y=4@5 "},
        {"[a]\nx=1\n  2\nnonsense\n  3\ny=4\n", "a.x=1, 2@2 !t:4: a.y=4@6 "},
        {"[a\nx=1\ny\n[b]\nz=2\n", "!t:1: b.z=2@5 "},
        {"[a]\nx=1\n[b\nx=2\n  3\n[c] d\nx=4\n[e]\nx=5\n", "a.x=1@2 !t:3: !t:6: e.x=5@9 "},
        {"  1\n[a]\n  2\nx=3\n", "!t:1: !t:3: a.x=3@4 "},
        {"[]\nx=1\n[a]\n=1\n:=2\nk;=3\n", "!t:1: !t:4: !t:5: !t:6: "},
        {"nonsense", "!t:1: "},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tni_str s;

        tni_str_init(&s, 4096);
        assert_int_equal(
            tni_ini_read_all("t", cases[i].text, strlen(cases[i].text), key_note, wrong_note, &s), TN_OK);
        assert_string_equal(s.text ? s.text : "", cases[i].found);
        tni_str_fini(&s);
    }
}

/* A value grown over many lines is bounded. */
static void long_values(void **state)
{
    size_t line = 150, lines = 1000;
    char *text = malloc(8 + line * lines);
    char *at = text + sprintf(text, "[a]\nx=1\n");

    (void)state;
    for (size_t i = 0; i < lines; i++) {
        memset(at, 'v', line);
        at[0] = ' ';
        at[line - 1] = '\n';
        at += line;
    }
    assert_non_null(strstr(read_text(text, 8 + line * lines), "the value is longer than"));
    free(text);
}

static tn_status ini_body(void *arg)
{
    static const char text[] = "[a]\nx = 1\n y\n z\nq=2\n[b]\nr=3\n";
    tni_str s;
    tn_status st;

    (void)arg;
    tni_str_init(&s, 1000);
    st = tni_ini_read_memory("t", text, sizeof text - 1, collect, &s);
    tni_str_fini(&s);
    return st;
}

static void ini_without_memory(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(ini_body, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test(bad),
        cmocka_unit_test(lengths),
        cmocka_unit_test(all_problems),
        cmocka_unit_test(callback_stops),
        cmocka_unit_test(long_values),
        cmocka_unit_test(ini_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
