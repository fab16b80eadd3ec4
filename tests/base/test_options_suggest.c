/*
 * Every key of the table with every single deletion, exchange of neighbours, substitution and insertion of
 * a-z and _: refused as an option and in a file (with its line), a warning in the environment, and the right
 * key is among at most three suggestions. Results that are keys themselves, or fit an open-ended one, are
 * left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options_internal.h"
#include "support/runs.h"
#include "support/scratch.h"

#define MUTANTS_MAX 8192
#define NAME_BYTES (OPTION_KEY_MAX + 16)
#define STRIDE 28 /* of all misspelt keys every 28th, in turns; TENON_FULL=1: all */

extern char **environ;

static char mutants[MUTANTS_MAX][NAME_BYTES];
static size_t mutant_count, made, part;

typedef struct said {
    const char *right; /* the key that each message must suggest */
    const char *path;
    size_t at;
} said;

static void mutant_add(const char *text, const char *original, bool environment)
{
    if (!strcmp(text, original) || (environment ? option_env_find(text) : option_def_find(text)))
        return;
    for (size_t i = 0; i < mutant_count; i++)
        if (!strcmp(mutants[i], text))
            return;
    if (made++ % (test_full() ? 1 : STRIDE) != part)
        return;
    assert_true(mutant_count < MUTANTS_MAX);
    strcpy(mutants[mutant_count++], text);
}

/* All of `name` from byte `first` on; `letters` stand in for one place. */
static void mutants_make(const char *name, size_t first, const char *letters, bool environment)
{
    size_t length = strlen(name);
    char text[NAME_BYTES];

    mutant_count = 0;
    for (size_t i = first; i <= length; i++) {
        if (i < length) {
            snprintf(text, sizeof text, "%.*s%s", (int)i, name, name + i + 1);
            mutant_add(text, name, environment);
        }
        if (i + 1 < length) {
            strcpy(text, name);
            text[i] = name[i + 1];
            text[i + 1] = name[i];
            mutant_add(text, name, environment);
        }
        for (const char *c = letters; *c; c++) {
            snprintf(text, sizeof text, "%.*s%c%s", (int)i, name, *c, name + i);
            mutant_add(text, name, environment);
            if (i == length)
                continue;
            strcpy(text, name);
            text[i] = *c;
            mutant_add(text, name, environment);
        }
    }
}

/* The key of a row, its wildcards filled. */
static void sample(const char *key, char out[OPTION_KEY_MAX])
{
    static const struct {
        const char *pattern, *key;
    } filled[] = {{"kernel.*@*", "kernel.Convolution@cpu"},
                  {"plugin.*.*", "plugin.fake.seed"},
                  {"model.*", "model.pad"}};
    const char *star = strchr(key, '*');

    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++)
        if (!strcmp(key, filled[i].pattern)) {
            strcpy(out, filled[i].key);
            return;
        }
    if (star)
        snprintf(out, OPTION_KEY_MAX, "%.*scpu%s", (int)(star - key), key, star + 1);
    else
        strcpy(out, key);
}

/* Whether the message suggests `right`, as one of at most three names. */
static bool suggests(const char *message, const char *right)
{
    const char *at = strstr(message, "did you mean ");
    size_t count = 0;
    bool found = false;

    if (!at)
        return false;
    for (at += strlen("did you mean "); *at; count++) {
        size_t length = strcspn(at, ",? ");

        found |= strlen(right) == length && !strncmp(at, right, length);
        at += length + strspn(at + length, ",? ");
        at += strncmp(at, "or ", 3) ? 0 : 3;
    }
    return found && count <= 3;
}

/* Between two wildcards nothing tells where the first one ends. */
static bool undecidable(const char *right, const char *wrong)
{
    return !strncmp(right, "plugin.", 7) && !strncmp(wrong, "plugin.", 7) && !strchr(wrong + 7, '.');
}

static void file_said(void *arg)
{
    said *s = arg;
    char begin[TN_PATH_BYTES_MAX];

    while (undecidable(s->right, mutants[s->at]) || !strchr(mutants[s->at], '.'))
        s->at++;
    snprintf(begin, sizeof begin, "%s:%zu: no option %s;", s->path, 2 * s->at + 2, mutants[s->at]);
    if (strncmp(tni_error_message(), begin, strlen(begin)) || !suggests(tni_error_message(), s->right))
        fail_msg("%s, but is: %s", begin, tni_error_message());
    s->at++;
}

static void file_check(const char *right)
{
    said s = {.right = right};
    tni_options *o;
    tni_str text;

    tni_str_init(&text, TN_INI_BYTES_MAX);
    for (size_t i = 0; i < mutant_count; i++) {
        const char *dot = strrchr(mutants[i], '.');

        if (!dot || dot == mutants[i] || !dot[1] || undecidable(right, mutants[i]))
            tni_str_add(&text, "\n\n");
        else
            tni_str_addf(&text, "[%.*s]\n%s = x\n", (int)(dot - mutants[i]), mutants[i], dot + 1);
    }
    s.path = scratch_write("m.ini", text.text, text.length);
    assert_int_equal(tni_options_create(NULL, &o), TN_OK);
    tni_options_collect(o, file_said, &s);
    assert_int_equal(tni_options_read_file(o, s.path, true), TN_OK);
    while (s.at < mutant_count && (undecidable(right, mutants[s.at]) || !strchr(mutants[s.at], '.')))
        s.at++;
    assert_int_equal(s.at, mutant_count);
    tni_options_destroy(o);
    tni_str_fini(&text);
}

static void options_and_files(void **state)
{
    tni_options *o;
    size_t count, total = 0;
    const tni_option_def *defs = tni_option_defs(&count);

    (void)state;
    assert_int_equal(tni_options_create(NULL, &o), TN_OK);
    for (size_t i = 0; i < count; i++) {
        char key[OPTION_KEY_MAX], setting[NAME_BYTES + 2];

        sample(defs[i].key, key);
        mutants_make(key, 0, "abcdefghijklmnopqrstuvwxyz_", false);
        for (size_t k = 0; k < mutant_count; k++) {
            snprintf(setting, sizeof setting, "%.170s=x", mutants[k]);
            assert_int_equal(tni_options_set(o, setting), TN_E_KEY);
            if (!undecidable(key, mutants[k]) && !suggests(tni_error_message(), key))
                fail_msg("%s is not among the suggestions: %s", key, tni_error_message());
        }
        file_check(key);
        total += mutant_count;
    }
    tni_options_destroy(o);
    print_message("%zu misspelt keys of %zu rows\n", total, count);
    assert_true(total > 700 / STRIDE * count);
}

static void line_said(void *arg, int32_t level, const char *message)
{
    said *s = arg;
    char begin[NAME_BYTES + 64];

    snprintf(begin, sizeof begin, "%.100s names no option and is ignored;", mutants[s->at++]);
    assert_int_equal(level, TN_LOG_WARNING);
    if (strncmp(message, begin, strlen(begin)) || !suggests(message, s->right))
        fail_msg("%s is not among the suggestions: %s", s->right, message);
}

static void environment(void **state)
{
    static char lines[MUTANTS_MAX][NAME_BYTES + 2];
    static char *list[MUTANTS_MAX + 1];
    char **before = environ;
    size_t count, total = 0;
    const tni_option_def *defs = tni_option_defs(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        char key[OPTION_KEY_MAX], name[NAME_BYTES];
        said s = {.right = name};
        tni_log log = {.fn = line_said, .arg = &s, .level = TN_LOG_DEBUG};
        tni_options *o;

        sample(defs[i].key, key);
        option_env_name(key, name);
        for (char *c = name; *c; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        if (!strcmp(defs[i].key, "plugin.*.*"))
            continue; /* the plugin's name and the option's run into each other */
        mutants_make(name, strlen("TENON_"), "ABCDEFGHIJKLMNOPQRSTUVWXYZ_", true);
        for (size_t k = 0; k < mutant_count; k++) {
            snprintf(lines[k], sizeof lines[k], "%.170s=x", mutants[k]);
            list[k] = lines[k];
        }
        list[mutant_count] = NULL;
        assert_int_equal(tni_options_create(&log, &o), TN_OK);
        environ = list;
        assert_int_equal(tni_options_read_environment(o), TN_OK);
        environ = before;
        assert_int_equal(s.at, mutant_count);
        tni_options_destroy(o);
        total += mutant_count;
    }
    print_message("%zu misspelt variables of %zu rows\n", total, count);
    assert_true(total > 600 / STRIDE * count);
}

/* Without memory there is no suggestion, or all of them; never a crash, a leak or another status. */
static void without_memory(void **state)
{
    static const char *const keys[] = {"memory.cpu.pol=x", "engine.typ=x", "kernl.dot@cpu=x"};
    tni_mem_stats before, after;
    tni_options *o;

    (void)state;
    assert_int_equal(tni_options_create(NULL, &o), TN_OK);
    tni_mem_stats_get(&before);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint64_t nth = 1;

        for (bool failed = true; failed; nth++) {
            tni_mem_fail_at(nth, false, true);
            assert_int_equal(tni_options_set(o, keys[i]), TN_E_KEY);
            failed = tni_mem_failed();
            tni_mem_fail_at(0, false, true);
        }
        assert_true(nth > 2);
        assert_non_null(strstr(tni_error_message(), "did you mean"));
    }
    tni_mem_stats_get(&after);
    assert_int_equal(after.live_count, before.live_count);
    tni_options_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_and_files), cmocka_unit_test(environment),
                                       cmocka_unit_test(without_memory)};

    part = test_full() ? 0 : (size_t)test_rotation(STRIDE);
    print_message("part %zu of %d of the misspelt keys\n", part, test_full() ? 1 : STRIDE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
