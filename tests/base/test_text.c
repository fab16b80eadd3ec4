/* Errors, growing text, numbers, suggestions. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/scratch.h"

static void errors(void **state)
{
    tn_err err = {.code = 77, .number = 3014, .message = "two\nlines"};
    char big[2000];

    (void)state;
    assert_int_equal(tni_error(TN_E_SHAPE, "axis %d", 3), TN_E_SHAPE);
    assert_string_equal(tn_error_text(), "axis 3");
    assert_int_equal(tn_error_code(), TN_E_SHAPE);
    assert_int_equal(tni_error(0, "a failure cannot be TN_OK"), TN_E_INTERNAL);
    assert_int_equal(tni_error_take(77, &err, "acme"), TN_E_INTERNAL); /* 77 is no status */
    assert_string_equal(tni_error_message(), "acme: two\\x0alines");
    tni_error_get(&err);
    assert_int_equal(err.number, 3014);
    tni_error(TN_E_IO, "again: %s", tni_error_message()); /* its own text as argument */
    assert_string_equal(tni_error_message(), "again: acme: two\\x0alines");
    memset(big, 'x', sizeof big);
    memcpy(big + 493, "\xe2\x82\xac", 3); /* a character of three bytes across the end */
    big[1999] = '\0';
    tni_error(TN_E_IO, "%s", big);
    assert_int_equal(strlen(tni_error_message()), 493);
    memset(&err, 'y', sizeof err); /* a plugin that does not end its text */
    err.code = TN_E_IO;
    tni_error_set(&err);
    assert_true(strlen(tni_error_message()) < sizeof err.message);
    tn_error_clear();
    assert_string_equal(tn_error_text(), "");
    assert_int_equal(tn_error_code(), TN_OK);
    assert_string_equal(tn_status_name(TN_E_PEER), "TN_E_PEER");
    assert_string_equal(tn_status_name(-5), "unknown status");
    assert_string_equal(tn_status_name(16), "unknown status");
}

/* Names of a stranger's file in a message: readable, and harmless for the terminal. */
static void text_of_strangers(void **state)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"", ""},
        {"fc_weight", "fc_weight"},
        {"a\\b \"c\" %s", "a\\b \"c\" %s"},
        {"two\nlines\ttab\r", "two\\x0alines\\x09tab\\x0d"},
        {"\x1b[2J\x7f", "\\x1b[2J\\x7f"},
        {"Gr\xc3\xb6\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80",
         "Gr\xc3\xb6\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"latin caf\xe9!", "latin caf\\xe9!"},
        {"cut \xe2\x82", "cut \\xe2\\x82"},
        {"stray \x80\xbf\xff", "stray \\x80\\xbf\\xff"},
        {"overlong \xc0\xaf \xe0\x80\xaf", "overlong \\xc0\\xaf \\xe0\\x80\\xaf"},
        {"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80"},
        {"beyond \xf4\x90\x80\x80", "beyond \\xf4\\x90\\x80\\x80"},
        {"csi \xc2\x9b"
         "31m",
         "csi \\xc2\\x9b"
         "31m"},
        {"bidi \xe2\x80\xae"
         "abc \xe2\x81\xa6",
         "bidi \\xe2\\x80\\xae"
         "abc \\xe2\\x81\\xa6"},
        {"line \xe2\x80\xa8", "line \\xe2\\x80\\xa8"},
    };
    char out[128], small[8];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tni_text_escape(out, sizeof out, rows[i].text), strlen(rows[i].shown));
        assert_string_equal(out, rows[i].shown);
        tni_error(TN_E_FORMAT, "%s", rows[i].text); /* every message goes this way */
        assert_string_equal(tni_error_message(), rows[i].shown);
    }
    assert_int_equal(tni_text_escape(small, sizeof small, "abcde\x1b"), 5); /* no part of "\\x1b" */
    assert_int_equal(tni_text_escape(small, sizeof small, "abcdef\xc3\xb6"), 6);
    assert_int_equal(tni_text_escape(small, sizeof small, "abcdefgh"), 7);
    assert_int_equal(tni_text_escape(small, 1, "x"), 0);
    assert_string_equal(small, "");
}

static void error_thread(void *arg)
{
    *(bool *)arg = tni_error_message()[0] == '\0';
    tni_error(TN_E_IO, "of the other thread");
}

static void errors_are_per_thread(void **state)
{
    tni_thread *t;
    bool empty = false;

    (void)state;
    tni_error(TN_E_ARG, "of this thread");
    assert_int_equal(tni_thread_create("errors", error_thread, &empty, &t), TN_OK);
    tni_thread_join(t);
    assert_true(empty);
    assert_string_equal(tni_error_message(), "of this thread");
}

static void error_rows(void **state)
{
    size_t count;
    const tni_error_row *rows = tni_error_rows(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(tni_error_row_find(rows[i].number), &rows[i]); /* numbers are unique */
        assert_string_not_equal(rows[i].sentence, "");
        if (rows[i].refusal)
            assert_int_equal(rows[i].number, 3000 + rows[i].refusal);
    }
    for (uint32_t status = 1; status < 16; status++)
        assert_int_equal(tni_error_row_find(status)->status, status);
    for (uint32_t refusal = 1; refusal <= 19; refusal++)
        assert_non_null(tni_error_row_find(3000 + refusal));
    assert_null(tni_error_row_find(999));
}

static void text_grows(void **state)
{
    tni_str s;
    char *text;

    (void)state;
    tni_str_init(&s, 10000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(tni_str_addf(&s, "%d,", i % 10), TN_OK);
    assert_int_equal(s.length, 2000);
    assert_int_equal(tni_str_take(&s, &text), TN_OK);
    assert_int_equal(strlen(text), 2000);
    tni_free(text);
    assert_int_equal(tni_str_take(&s, &text), TN_OK);
    assert_string_equal(text, "");
    tni_free(text);
    tni_str_fini(&s);

    tni_str_init(&s, 3);
    assert_int_equal(tni_str_add(&s, "abc"), TN_OK);
    assert_int_equal(tni_str_add(&s, "d"), TN_E_NOMEM);
    assert_int_equal(tni_str_add(&s, ""), TN_E_NOMEM); /* the first failure sticks */
    assert_string_equal(s.text, "abc");
    tni_str_fini(&s);
}

static void text_as_json(void **state)
{
    static const char in[] = "a\"b\\c\n\t\x01\x7f/\xc3\xa9\0z";
    tni_str s;

    (void)state;
    tni_str_init(&s, 1000);
    assert_int_equal(tni_str_add_json(&s, in, sizeof in - 1), TN_OK);
    assert_string_equal(s.text, "\"a\\\"b\\\\c\\n\\t\\u0001\x7f/\xc3\xa9\\u0000z\"");
    tni_str_fini(&s);
}

static tn_status text_body(void *arg)
{
    tni_str s;
    char *text = NULL;
    tn_status st;

    (void)arg;
    tni_str_init(&s, 100000);
    for (int i = 0; i < 100; i++)
        tni_str_addf(&s, "%0100d", i);
    st = tni_str_take(&s, &text);
    tni_str_fini(&s);
    tni_free(text);
    return st;
}

static void text_without_memory(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(text_body, NULL) > 3);
}

static void integers(void **state)
{
    static const char *const bad[] = {"",  "-",  "+", " 1", "1 ", "0x10", "1.0", "--1", "9223372036854775808",
                                      "٣", "1e3"};
    int64_t i;
    uint64_t u;

    (void)state;
    assert_true(tni_parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
    assert_true(tni_parse_i64("9223372036854775807", &i) && i == INT64_MAX);
    assert_true(tni_parse_i64("+7", &i) && i == 7);
    assert_true(tni_parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
    assert_false(tni_parse_u64("18446744073709551616", &u));
    assert_false(tni_parse_u64("-1", &u));
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_false(tni_parse_i64(bad[k], &i));
}

static void reals(void **state)
{
    static const char *const bad[] = {"", " 1", "1 ", "0x1p3", "1,5", "1e999", "abc", "nan(1)", "1.5.5"};
    static const double values[] = {0,       -0.0,    0.1,    1.0 / 3, 1e22, 123456789012345678.0,
                                    DBL_MAX, DBL_MIN, 5e-324, 1e-310};
    char text[64];
    double d;
    uint64_t random[2] = {1, 0};

    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_false(tni_parse_f64(bad[k], &d));
    assert_true(tni_parse_f64("-inf", &d) && isinf(d) && d < 0);
    assert_true(tni_parse_f64("nan", &d) && isnan(d));
    assert_true(tni_parse_f64("1e-3", &d) && d == 0.001);
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
        tni_format_f64(text, sizeof text, values[k]);
        assert_true(tni_parse_f64(text, &d));
        assert_memory_equal(&d, &values[k], sizeof d);
    }
    for (uint64_t k = 0; k < 20000; k++) { /* any bits */
        double any;

        tn_philox(5, 0, k, (uint32_t *)random);
        memcpy(&any, random, sizeof any);
        tni_format_f64(text, sizeof text, any);
        assert_true(tni_parse_f64(text, &d));
        assert_true(isnan(any) ? isnan(d) : d == any);
    }
    tni_format_f64(text, sizeof text, 0.1);
    assert_string_equal(text, "0.1");
    tni_format_f64(text, sizeof text, 5e-324);
    assert_string_equal(text, "5e-324");
}

static void decimal_comma(void **state)
{
    char text[64];
    double d;

    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    tni_format_f64(text, sizeof text, 0.5);
    assert_string_equal(text, "0.5");
    assert_true(tni_parse_f64("0.5", &d) && d == 0.5);
    setlocale(LC_ALL, "C");
}

/* The distance by its definition, on the whole table. */
static size_t distance_plain(const char *a, const char *b)
{
    size_t cell[16][16], m = strlen(a), n = strlen(b);

    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            size_t best = i && j ? cell[i - 1][j - 1] + (a[i - 1] != b[j - 1]) : i + j;

            if (i && j && cell[i - 1][j] + 1 < best)
                best = cell[i - 1][j] + 1;
            if (i && j && cell[i][j - 1] + 1 < best)
                best = cell[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                cell[i - 2][j - 2] + 1 < best)
                best = cell[i - 2][j - 2] + 1;
            cell[i][j] = best;
        }
    return cell[m][n];
}

static void distances(void **state)
{
    uint32_t words[4];

    (void)state;
    for (uint64_t n = 0; n < 40000; n++) {
        char a[13] = "", b[13] = "";
        size_t exact;

        tn_philox(7, 0, n, words);
        for (uint32_t i = 0; i < words[0] % 13; i++)
            a[i] = (char)('a' + (words[1] >> 2 * i) % 4);
        for (uint32_t i = 0; i < words[2] % 13; i++)
            b[i] = (char)('a' + (words[3] >> 2 * i) % 4);
        exact = distance_plain(a, b);
        for (size_t limit = 0; limit < 14; limit++)
            if (tni_edit_distance(a, b, limit) != (exact > limit ? limit + 1 : exact))
                fail_msg("%s and %s: %zu, but %zu at the limit %zu", a, b, exact,
                         tni_edit_distance(a, b, limit), limit);
    }
}

static void suggestions(void **state)
{
    static const char *const names[] = {"engine.type",    "engine.threads", "run.seed",
                                        "train.momentum", "train.batch",    NULL};
    char long_name[1000];
    const char *best[3];

    (void)state;
    assert_int_equal(tni_suggest("engine.tpye", names, best), 1);
    assert_string_equal(best[0], "engine.type");
    assert_true(tni_suggest("momentun", names, best) >= 1);
    assert_string_equal(best[0], "train.momentum");
    assert_int_equal(tni_suggest("something else", names, best), 0);
    assert_int_equal(tni_suggest("run.seed ", names, best), 1); /* a whole name, and a blank behind it */
    assert_int_equal(tni_edit_distance("abc", "abc", 5), 0);
    assert_int_equal(tni_edit_distance("abc", "acb", 5), 1);
    assert_int_equal(tni_edit_distance("", "abc", 5), 3);
    assert_int_equal(tni_edit_distance("kitten", "sitting", 5), 3);
    assert_int_equal(tni_edit_distance("kitten", "sitting", 2), 3); /* limit + 1 */
    memset(long_name, 'a', sizeof long_name);
    long_name[999] = '\0';
    assert_int_equal(tni_suggest(long_name, names, best), 0);
}

static void versions(void **state)
{
    (void)state;
    assert_string_not_equal(tn_version(), "");
    assert_ptr_equal(tn_build_id(), tn_build_id());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),
        cmocka_unit_test(text_of_strangers),
        cmocka_unit_test(errors_are_per_thread),
        cmocka_unit_test(error_rows),
        cmocka_unit_test(text_grows),
        cmocka_unit_test(text_as_json),
        cmocka_unit_test(text_without_memory),
        cmocka_unit_test(integers),
        cmocka_unit_test(reals),
        cmocka_unit_test(decimal_comma),
        cmocka_unit_test(distances),
        cmocka_unit_test(suggestions),
        cmocka_unit_test(versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
