/* CSV: separators, quotes, headers, gzip, the same numbers in every locale; ragged rows, what is no number,
 * long lines, bombs, failing allocation: each with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>
#include <locale.h>

#include "io/io.h"
#include "support/scratch.h"
#include "support/space.h"

TEST_SPACE(t, "naive")

static void check(tni_array *a, int64_t rows, int64_t columns, const float *values)
{
    assert_int_equal(a->ndim, 2);
    assert_int_equal(a->shape[0], rows);
    assert_int_equal(a->shape[1], columns);
    assert_int_equal(a->dtype, TN_F32);
    assert_memory_equal(tni_array_data(a), values, (size_t)(rows * columns) * sizeof(float));
}

static void read_well(void **state)
{
    static const float want[] = {1, -2.5f, 3e2f, 4, 0.125f, -0.0f};
    static const char *const texts[] = {
        "1,-2.5,3e2\n4,.125,-0\n",
        "1,-2.5,3e2\n4,.125,-0",
        "1;-2.5;3E+2\r\n4;0.125;-0\r\n",
        "1\t-2.5\t300\n4\t125e-3\t-0.0\n",
        "a,b,c\n1,-2.5,3e2\n4,.125,-0\n",
        "\"a, \"\"b\"\"\",b,c\n\"1\",\"-2.5\" , \"3e2\"\n4,.125,-0\n",
        "\n  \n1, -2.5 ,300\n\n4 ,+.125,-0\n\n",
        "\xef\xbb\xbf"
        "1,-2.5,300\n4,.125,-0\n",
        "\xef\xbb\xbf"
        "x,y,z\n1,-2.5,300\n4,.125,-0\n",
        "\xef\xbb\xbf\n1,-2.5,300\n4,.125,-0\n",
        "\xef\xbb\xbf\r\n \nx;y;z\r\n1;-2.5;300\r\n4;.125;-0\r\n",
        "\xef\xbb\xbf\"x\"\ty\tz\n1\t-2.5\t300\n4\t.125\t-0\n",
    };

    (void)state;
    for (int gz = 0; gz < 2; gz++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            const char *path = scratch_write("x.csv", texts[i], strlen(texts[i]));
            tni_array *a = NULL, *b = NULL;

            if (gz) {
                gzFile g = gzopen(path, "wb");

                assert_int_equal(gzwrite(g, texts[i], (unsigned)strlen(texts[i])), strlen(texts[i]));
                assert_int_equal(gzclose(g), Z_OK);
            }
            if (tni_csv_load(t.space, path, &a))
                fail_msg("%zu: %s", i, tni_error_message());
            check(a, 2, 3, want);
            tni_array_release(a);
            assert_int_equal(tni_csv_load_memory(t.space, texts[i], strlen(texts[i]), "m", &b), TN_OK);
            check(b, 2, 3, want);
            tni_array_release(b);
        }
}

/* A decimal comma is the locale's, not the file's. */
static void locales(void **state)
{
    static const float want[] = {1.5f, 2};
    tni_array *a = NULL;

    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        print_message("de_DE.UTF-8 is not installed: only C was tried\n");
    assert_int_equal(tni_csv_load_memory(t.space, "1.5,2\n", 6, "m", &a), TN_OK);
    check(a, 1, 2, want);
    tni_array_release(a);
    assert_int_equal(tni_csv_load_memory(t.space, "1,5;2\n", 6, "m", &a), TN_E_FORMAT);
    (void)setlocale(LC_NUMERIC, "C");
}

static void refused(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "holds no numbers"},
        {"\n\n  \n", "holds no numbers"},
        {"a,b\n", "only a header"},
        {"\xef\xbb\xbf", "holds no numbers"},
        {"\xef\xbb\xbf\n", "holds no numbers"},
        {"\xef\xbb\xbf\n\xef\xbb\xbf\n", "only a header"}, /* a second one is a text */
        {"\xef\xbb", "only a header"},
        {"1\n\xef\xbb\xbf\n", "m:2:1: \"\xef\xbb\xbf\" is no number"},
        {"1,2\n3\n", "m:2:2: the line ends early: the first one has 2"},
        {"1,2\n3,4,5\n", "m:2:3: the line has more fields than the first one, which has 2"},
        {"a,b\n1,2\n\n1,2,\n", "m:4:3: the line has more fields"},
        {"1,2\n3,\n", "m:2:2: the field is empty: a value is missing"},
        {"1,x\n3,4\n", "m:1:2: \"x\" is no number"},
        {"1,2\nnan,4\n", "m:2:1: \"nan\" is no finite"},
        {"1,2\n3,-INF\n", "m:2:2: \"-INF\" is no finite"},
        {"1,2\n3,1e39\n", "m:2:2: \"1e39\" is no finite"},
        {"1,2\n3,1e999\n", "m:2:2: "},
        {"1,2\n3,0x10\n", "m:2:2: \"0x10\" is no number"},
        {"1e999,1e999\n3,4\n", "m:1:1: \"1e999\" is no number"}, /* no header */
        {"0x1,0x1\n3,4\n", "m:1:1: \"0x1\" is no number"},
        {"-.5x;+7y\n3;4\n", "m:1:1: \"-.5x\" is no number"},
        {"1st\n3\n", "m:1:1: \"1st\" is no number"},
        {"1e999,-\n", "only a header"}, /* one of them begins like a word */
        {"1,2\n3,\"4\n", "m:2:2: the quotes do not end"},
        {"1,2\n3,\"4\"5\n", "m:2:2: something stands behind the quotes"},
        {"1,2\n3,1000000000000000000000000000000000000000000000000000000000000000000000000\n", "m:2:2: "},
        {"1,2\n3 4,5\n", "m:2:1: \"3 4\" is no number"},
    };
    /* Whole messages: nn/table.c tells by how they end what to advise, and is to be changed with them. */
    static const struct {
        const char *text, *says;
    } ends[] = {
        {"1,2\n3,\n", "m:2:2: the field is empty: a value is missing"},
        {"1,2\n3,x\n", "m:2:2: \"x\" is no number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tni_array *a = NULL;

        if (tni_csv_load_memory(t.space, bad[i].text, strlen(bad[i].text), "m", &a) != TN_E_FORMAT ||
            !strstr(tni_error_message(), bad[i].says))
            fail_msg("%s: %s", bad[i].text, tni_error_message());
        assert_null(a);
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        assert_int_equal(
            tni_csv_load_memory(t.space, ends[i].text, strlen(ends[i].text), "m", &(tni_array *){NULL}),
            TN_E_FORMAT);
        assert_string_equal(tni_error_message(), ends[i].says);
    }
    assert_int_equal(tni_csv_load_memory(t.space, "1,2\n3\0,4\n", 9, "m", &(tni_array *){NULL}), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "m:2: a NUL"));
    assert_int_equal(tni_csv_load(t.space, scratch_path("absent.csv"), &(tni_array *){NULL}), TN_E_IO);
    assert_int_equal(tni_csv_load(t.space, "/dev/zero", &(tni_array *){NULL}), TN_E_IO);
}

/* ---- a column of texts ---- */

typedef struct heard {
    char text[1024]; /* all that was called, in order */
    int64_t column;  /* that head() chooses */
    tn_csv_words words;
} heard;

static tn_status on_first(void *arg, uint64_t column, const char *text)
{
    heard *h = arg;

    (void)snprintf(h->text + strlen(h->text), sizeof h->text - strlen(h->text), "%llu=%s ",
                   (unsigned long long)column, text);
    return TN_OK;
}

static tn_status on_head(void *arg, uint64_t columns, int32_t header)
{
    heard *h = arg;

    (void)snprintf(h->text + strlen(h->text), sizeof h->text - strlen(h->text), "%llu,%d; ",
                   (unsigned long long)columns, header);
    h->words.column = h->column;
    return TN_OK;
}

static tn_status on_word(void *arg, const char *text, int32_t number, uint64_t line, float *out)
{
    heard *h = arg;

    (void)snprintf(h->text + strlen(h->text), sizeof h->text - strlen(h->text), "%llu:%s%s ",
                   (unsigned long long)line, text, number ? "!" : "");
    if (!strcmp(text, "bad"))
        return tni_error(TN_E_KEY, "no such class");
    if (!number)
        *out = 7;
    return TN_OK;
}

/* A field that is too long is told of behind what is wrong with it, and blanks at its ends do not count. */
static void long_mistakes(void **state)
{
    static const struct {
        const char *text; /* @: 300 times |, ~: 300 blanks */
        const char *says; /* NULL: it is read */
    } rows[] = {
        {"@\n1\n", "m:1:1: the field has more than 255 bytes: fields are divided by tab, ; or ,"},
        {"\"@\"\n1\n", "m:1:1: the field has more than 255 bytes: fields are divided by tab, ; or ,"},
        {"a,@\n1,2\n", "m:1:2: the field has more than 255 bytes"},
        {"@,b\n1,2\n", "m:1:1: the field has more than 255 bytes"},
        {"a\n@\n", "m:2:1: the field has more than 255 bytes"},
        {"\"@,b\n1,2\n", "m:1:1: the quotes do not end on their line"},
        {"a,b\n1,\"@\n", "m:2:2: the quotes do not end on their line"},
        {"\"@\"x,b\n1,2\n", "m:1:1: something stands behind the quotes"},
        {"a~b,c\n1,2\n", "m:1:1: the field has more than 255 bytes"},
        {"a,b\n1,~2~\n", NULL},
        {"a~,b\n1~,~\"2~\"~\n", NULL},
    };
    char text[4096];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const float want[] = {1, 2};
        tni_array *a = NULL;
        tn_status st;
        size_t n = 0;

        for (const char *c = rows[i].text; *c; c++) {
            const size_t times = *c == '@' || *c == '~' ? 300 : 1;

            memset(text + n, *c == '@' ? '|' : *c == '~' ? ' ' : *c, times);
            n += times;
        }
        st = tni_csv_load_memory(t.space, text, n, "m", &a);
        if (!rows[i].says != !st || (st && strcmp(tni_error_message(), rows[i].says)))
            fail_msg("%zu: %d %s", i, st, tni_error_message());
        if (!st)
            check(a, 1, 2, want);
        tni_array_release(a);
    }
}

/* Names of columns are whole up to 255 bytes, in quotes and without; a longer field is an error. */
static void long_fields(void **state)
{
    char name[300], text[900], says[400];

    (void)state;
    memset(name, 'n', sizeof name);
    for (int length = 60; length <= 256; length += length == 254 || length == 255 ? 1 : 97)
        for (int form = 0; form < 4; form++) {
            static const char *const forms[] = {"a,%.*s\n1,2\n", "\"%.*s\",b\n1,2\n", "%.*s;b\n1;2\n",
                                                "a,b\n1,%.*s\n"};
            heard h = {.column = 1,
                       .words = {.struct_size = sizeof h.words,
                                 .column = -1,
                                 .first = on_first,
                                 .head = on_head,
                                 .word = on_word}};
            tni_array *a = NULL;

            h.words.arg = &h;
            (void)snprintf(text, sizeof text, forms[form], length, name);
            assert_int_equal(tni_csv_load_words(t.space, "m", text, strlen(text), &h.words, &a),
                             length > 255 ? TN_E_FORMAT : TN_OK);
            if (length > 255) {
                (void)snprintf(says, sizeof says, "m:%d:%d: the field has more than 255 bytes",
                               form == 3 ? 2 : 1, form == 0 || form == 3 ? 2 : 1);
                assert_string_equal(tni_error_message(), says);
            }
            (void)snprintf(says, sizeof says, "%.*s", length, name);
            if (length <= 255)
                assert_non_null(strstr(h.text, says));
            tni_array_release(a);
        }
}

static void words(void **state)
{
    static const struct {
        const char *text, *heard;
        int64_t column;
        int32_t header;
        tn_status status;
        float values[4];
    } rows[] = {
        {"x,kind\n1,red\n2,8\n", "0=x 1=kind 2,1; 2:red 3:8! ", 1, 0, TN_OK, {1, 7, 2, 8}},
        {"red,1\nblue,2\n", "0=red 1=1 2,0; 1:red 2:blue ", 0, 0, TN_OK, {7, 1, 7, 2}},
        {"0,1\n3,a\n4,b\n", "0=0 1=1 2,1; 2:a 3:b ", 1, 1, TN_OK, {3, 7, 4, 7}},
        {"a\nb\n", "0=a 1,0; 1:a 2:b ", 0, -1, TN_OK, {7, 7}},
        {"x,y\n1,\n", "0=x 1=y 2,1; ", 1, 0, TN_E_FORMAT, {0}}, /* a missing one is no text */
        {"x,y\n1,bad\n", "0=x 1=y 2,1; 2:bad ", 1, 0, TN_E_KEY, {0}},
        {"x,y\n1,a\nb,c\n", "0=x 1=y 2,1; 2:a ", 1, 0, TN_E_FORMAT, {0}},
        {"x,y\n1,a\n", "0=x 1=y 2,1; ", 9, 0, TN_E_FORMAT, {0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heard h = {.column = rows[i].column,
                   .words = {.struct_size = sizeof h.words,
                             .header = rows[i].header,
                             .column = -1,
                             .first = on_first,
                             .head = on_head,
                             .word = on_word}};
        tni_array *a = NULL;
        tn_status st;

        h.words.arg = &h;
        st = tni_csv_load_words(t.space, "m", rows[i].text, strlen(rows[i].text), &h.words, &a);
        if (st != rows[i].status || strcmp(h.text, rows[i].heard))
            fail_msg("%zu: %d %s: %s", i, st, h.text, tni_error_message());
        if (!st)
            assert_memory_equal(tni_array_data(a), rows[i].values,
                                (size_t)(a->shape[0] * a->shape[1]) * sizeof(float));
        tni_array_release(a);
    }
}

/* Lines and rows without an end: an error before the memory is taken. */
static void bombs(void **state)
{
    const size_t bytes = 5u << 20;
    char *text = malloc(bytes);
    const char *path;
    tni_array *a = NULL;
    gzFile g;

    (void)state;
    memset(text, '1', bytes);
    assert_int_equal(tni_csv_load_memory(t.space, text, bytes, "m", &a), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "m:1: a line of more than"));
    for (size_t i = 1; i < bytes; i += 2)
        text[i] = ',';
    assert_int_equal(tni_csv_load_memory(t.space, text, 1u << 20, "m", &a), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "m:1: more than 131072 fields"));
    path = scratch_write("bomb.csv.gz", "", 0);
    g = gzopen(path, "wb9");
    memset(text, '1', bytes);
    for (int i = 0; i < 20; i++)
        assert_int_equal(gzwrite(g, text, (unsigned)bytes), bytes);
    assert_int_equal(gzclose(g), Z_OK);
    assert_int_equal(tni_csv_load(t.space, path, &a), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), ":1: a line of more than"));
    assert_null(a);
    free(text);
}

/* Memory is what the rows need: the heap stays below twice the file and 64 MiB. */
static void memory(void **state)
{
    const uint64_t rows = 400000;
    char *text = malloc(rows * 8);
    tni_mem_stats before, after;
    tni_array *a = NULL;

    (void)state;
    for (uint64_t i = 0; i < rows; i++)
        memcpy(text + i * 8, "1,2,3,4\n", 8);
    tni_mem_stats_get(&before);
    assert_int_equal(tni_csv_load_memory(t.space, text, rows * 8, "m", &a), TN_OK);
    tni_mem_stats_get(&after);
    if (after.peak_bytes > before.live_bytes + 2 * rows * 8 + (3u << 20)) /* a pool rounds */
        fail_msg("%llu %llu", (unsigned long long)before.live_bytes, (unsigned long long)after.peak_bytes);
    tni_array_release(a);
    free(text);
}

static tn_status load_once(void *arg)
{
    tni_array *a = NULL;
    tn_status st = tni_csv_load(t.space, arg, &a);

    tni_array_release(a);
    return st;
}

static void out_of_memory(void **state)
{
    const char *path = scratch_write("fail.csv", "a,b\n1,2\n3,4\n", 12);

    (void)state;
    assert_int_equal(load_once((void *)(uintptr_t)path), TN_OK);
    assert_true(scratch_each_allocation_fails(load_once, (void *)(uintptr_t)path) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory), /* first: it reads the peak so far */
        cmocka_unit_test(read_well), cmocka_unit_test(locales),       cmocka_unit_test(refused),
        cmocka_unit_test(words),     cmocka_unit_test(long_fields),   cmocka_unit_test(long_mistakes),
        cmocka_unit_test(bombs),     cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
