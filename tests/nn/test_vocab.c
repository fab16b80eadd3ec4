/* Words as numbers: as MXNet's encode_sentences has them, and what goes wrong. */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

enum { COUNT = 43, WORDS = 256, KINDS = 12 };

static char names[KINDS][8];
static const char *words[WORDS], *backwards[WORDS];
static int64_t lengths[COUNT], lengths_backwards[COUNT];
static size_t word_count;

/* As tests/oracle/data.py has them; then the same sentences, the last one first. */
static int words_make(void **state)
{
    size_t at = 0;

    (void)state;
    for (int i = 0; i < KINDS; i++)
        (void)snprintf(names[i], sizeof names[i], "w%d", i);
    for (int i = 0; i < COUNT; i++) {
        lengths[i] = i * 7 % 10 + 1;
        for (int k = 0; k < lengths[i]; k++)
            words[word_count++] = (i + k) % 7 ? names[(i * 5 + k * 3) % 11 + 1] : "\n";
    }
    for (int i = COUNT; i-- > 0;) {
        size_t first = 0;

        for (int k = 0; k < i; k++)
            first += (size_t)lengths[k];
        lengths_backwards[COUNT - 1 - i] = lengths[i];
        for (int k = 0; k < lengths[i]; k++)
            backwards[at++] = words[first + (size_t)k];
    }
    return word_count == at && at <= WORDS ? 0 : -1;
}

#define SENTENCES .words = words, .lengths = lengths, .count = COUNT

/* ---- as MXNet ---------------------------------------------------------------------------------- */

static void same(tn_app *app, const tn_params *p, const char *set, const char *what, const int32_t *got,
                 size_t count)
{
    char name[32];
    tn_array *a = NULL;
    float want[WORDS];

    (void)snprintf(name, sizeof name, "%s:%s", set, what);
    assert_int_equal(tn_params_get(p, name, &a), TN_OK);
    assert_int_equal(nn_read(app, tn_app_own(app, a), want, WORDS), count);
    for (size_t i = 0; i < count; i++)
        if ((float)got[i] != want[i])
            fail_msg("%s %zu is %d, not %g", name, i, got[i], (double)want[i]);
}

static void as_mxnet(void **state)
{
    static const struct {
        const char *name, *key;
        int32_t invalid, start;
    } sets[] = {{"plain", NULL, -1, 0}, {"inside", NULL, 3, 1}, {"key", "<eos>", 0, 0}};
    char path[1024];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/data/words.params",
                   getenv("TENON_TEST_SOURCE"));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        tn_app *app = nn_open(NULL);
        int32_t tokens[WORDS], labels[2 * KINDS];
        tn_params *p = NULL;
        tn_vocab *v;

        assert_int_equal(tn_params_load(tn_app_ctx(app), path, NULL, &p), TN_OK);
        v = tn_encode_sentences(app, tokens, SENTENCES, .invalid_label = sets[i].invalid,
                                .start_label = sets[i].start, .invalid_key = sets[i].key);
        assert_non_null(v);
        same(app, p, sets[i].name, "tokens", tokens, word_count);
        assert_string_equal(tn_vocab_at(v, 0, NULL), sets[i].key ? sets[i].key : "\n");
        for (int64_t k = 0; k < tn_vocab_count(v); k++) {
            int32_t found = INT32_MIN;

            assert_int_equal(tn_vocab_find(v, tn_vocab_at(v, k, &labels[k]), &found), 1);
            assert_int_equal(found, labels[k]);
        }
        same(app, p, sets[i].name, "labels", labels, (size_t)tn_vocab_count(v));
        assert_ptr_equal(tn_encode_sentences(app, tokens, .words = backwards, .lengths = lengths_backwards,
                                             .count = COUNT, .vocab = v),
                         v);
        same(app, p, sets[i].name, "again", tokens, word_count);
        tn_params_destroy(p);
        nn_close(app);
    }
}

/* What comes out is what sentences in buckets take. */
static void into_buckets(void **state)
{
    tn_app *app = nn_open(NULL);
    int32_t tokens[WORDS];
    tn_batch b;
    tn_data *d;

    (void)state;
    assert_non_null(tn_encode_sentences(app, tokens, SENTENCES, .invalid_label = -1));
    d = tn_data_from_sentences(app, .tokens = tokens, .lengths = lengths, .count = COUNT, .batch = 4,
                               .invalid_label = -1);
    assert_true(tn_data_next(d, &b));
    nn_close(app);
}

/* ---- words that are not there ------------------------------------------------------------------ */

static const int64_t two[] = {2, 1}, one[] = {1};
#define TEXT(...) .words = (const char *const[]){__VA_ARGS__}, .lengths = two, .count = 2

/* The token of unknown words: one number for all of them, which no other word has. */
static void unknown_words(void **state)
{
    static const char *const known[] = {"a", "b", "c"};
    static const int32_t labels[] = {1, 4, 2};
    tn_app *app = nn_open(NULL);
    int32_t t[3], label = 0;
    tn_vocab *v = tn_encode_sentences(app, t, TEXT("a", "b", "a"), .unknown_token = "?");

    (void)state;
    assert_true(t[0] == 1 && t[1] == 2 && t[2] == 1); /* 0 is the invalid label */
    assert_int_equal(tn_vocab_count(v), 4);
    assert_string_equal(tn_vocab_at(v, 3, &label), "?");
    assert_int_equal(label, 3);
    assert_ptr_equal(tn_encode_sentences(app, t, TEXT("x", "b", "y"), .vocab = v, .unknown_token = "?"), v);
    assert_true(t[0] == 3 && t[1] == 2 && t[2] == 3 && tn_vocab_count(v) == 4);
    v = tn_encode_sentences(app, t, TEXT("a", "b", "a"), .unknown_token = "b"); /* it is in the text */
    assert_true(t[1] == 2 && tn_vocab_count(v) == 3);
    v = tn_encode_sentences(app, t, TEXT("a", "?", "a"), .unknown_token = "\n");
    assert_int_equal(tn_vocab_count(v), 3);

    v = tn_vocab_new(app, .words = known, .labels = labels, .count = 3);
    tn_encode_sentences(app, t, TEXT("x", "b", "x"), .vocab = v, .unknown_token = "?", .start_label = 1,
                        .invalid_label = 3); /* 1 and 2 are other words', 3 is invalid, 4 another word's */
    assert_true(t[0] == 5 && t[1] == 4 && t[2] == 5 && tn_vocab_count(v) == 4);
    v = tn_vocab_new(app, .words = known, .labels = labels, .count = 3);
    tn_encode_sentences(app, t, TEXT("a", "b", "c"), .vocab = v, .unknown_token = "?", .invalid_label = -1);
    assert_true(t[0] == 1 && t[1] == 4 && t[2] == 2); /* no word needed it, and it is there */
    assert_true(tn_vocab_find(v, "?", &label) && label == 0);
    v = tn_vocab_new(app, .words = known, .labels = (const int32_t[]){-(1 << 24), 1 << 24, 7}, .count = 3);
    tn_encode_sentences(app, t, TEXT("x", "b", "a"), .vocab = v, .unknown_token = "?",
                        .start_label = -(1 << 24), .invalid_label = 1 - (1 << 24));
    assert_true(t[0] == 2 - (1 << 24) && t[1] == 1 << 24 && t[2] == -(1 << 24));
    v = tn_vocab_new(app, .words = known, .labels = (const int32_t[]){5, 5, 5}, .count = 3);
    tn_encode_sentences(app, t, TEXT("a", "b", "c"), .vocab = v);
    assert_true(t[0] == 5 && t[1] == 5 && t[2] == 5); /* words may have one number */
    nn_close(app);
}

static void no_words(void **state)
{
    static const int64_t none[] = {0, 0};
    tn_app *app = nn_open(NULL);
    int32_t t[3] = {7, 7, 7}, label = 7;
    tn_vocab *v = tn_encode_sentences_(app, NULL, NULL);

    (void)state;
    assert_int_equal(tn_vocab_count(v), 1);
    assert_true(tn_vocab_find(v, "\n", &label) && label == 0);
    v = tn_encode_sentences(app, t, .lengths = none, .count = 2, .invalid_label = -1, .unknown_token = "?");
    assert_int_equal(tn_vocab_count(v), 2);
    assert_true(tn_vocab_find(v, "?", &label) && label == 0);
    assert_false(tn_vocab_find(v, "", &label) || tn_vocab_find(v, "??", &label));
    assert_true(label == 0 && t[0] == 7);
    assert_null(tn_vocab_at(v, 2, &label));
    assert_null(tn_vocab_at(v, -1, &label));
    assert_null(tn_vocab_at(v, INT64_MIN, NULL));
    v = tn_encode_sentences(app, t, TEXT("", "x", "")); /* a word without letters is one */
    assert_true(t[0] == t[2] && t[0] == 1 && t[1] == 2);
    nn_close(app);
}

/* A hundred thousand words, each twice, and a long one. */
static void many_words(void **state)
{
    enum { MANY = 100000, LONG = 1 << 20 };
    tn_app *app = nn_open(NULL);
    char(*text)[12] = calloc(MANY, sizeof *text), *word = malloc(LONG + 1);
    const char **all = calloc(2 * MANY + 1, sizeof *all);
    int32_t *tokens = calloc(2 * MANY + 1, sizeof *tokens), label = -1;
    const int64_t length[] = {MANY, 0, MANY + 1};
    tn_vocab *v;

    (void)state;
    assert_true(text && all && tokens && word);
    memset(word, 'x', LONG);
    word[LONG] = '\0';
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(text[i], sizeof text[i], "%x", (unsigned)i * 2654435761u);
        all[i] = all[2 * MANY - 1 - i] = text[i];
    }
    all[2 * MANY] = word;
    v = tn_encode_sentences(app, tokens, .words = all, .lengths = length, .count = 3, .invalid_label = -1,
                            .start_label = 5);
    assert_int_equal(tn_vocab_count(v), MANY + 2);
    for (int i = 0; i < MANY; i++)
        if (tokens[i] != i + 5 || tokens[2 * MANY - 1 - i] != i + 5)
            fail_msg("word %d is %d, then %d", i, tokens[i], tokens[2 * MANY - 1 - i]);
    assert_true(tn_vocab_find(v, word, &label) && label == MANY + 5 && tokens[2 * MANY] == label);
    assert_string_equal(tn_vocab_at(v, MANY + 1, NULL), word);
    nn_close(app);
    free(text);
    free(word);
    free((void *)all);
    free(tokens);
}

/* ---- what goes wrong --------------------------------------------------------------------------- */

enum { LAST = 1 << 24 };
#define ONE(word) .words = (const char *const[]){word}, .lengths = one, .count = 1
#define THREE .words = (const char *const[]){"a", "b", "c"}, .lengths = two, .count = 2

static void refused(void **state)
{
    static const int64_t below[] = {2, -1}, much[] = {INT64_MAX, 1}, sum[] = {INT64_MAX / 16, INT64_MAX / 8};
    const struct {
        tn_encode_options o;
        tn_status status;
        const char *text;
    } rows[] = {
        {{.count = 1}, TN_E_ARG, ".lengths is missing"},
        {{.count = -1, .lengths = two}, TN_E_ARG, ".count below 0"},
        {{.count = INT64_MIN, .lengths = two}, TN_E_ARG, ".count below 0"},
        {{.count = 2, .lengths = two}, TN_E_ARG, ".words is missing"},
        {{.count = 2, .lengths = below}, TN_E_ARG, "sentence 1 has -1 words"},
        {{.count = 2, .lengths = much}, TN_E_ARG, "sentence 0 has 9223372036854775807 words"},
        {{.count = 2, .lengths = sum}, TN_E_ARG, "sentence 1 has"},
        {{TEXT("a", "b", NULL)}, TN_E_ARG, "word 2 is NULL"},
        {{THREE, .start_label = LAST - 1}, TN_E_ARG, "number 16777217 of the word \"c\""},
        {{THREE, .start_label = LAST - 2, .invalid_label = LAST - 1}, TN_E_ARG, "of the word \"c\""},
        {{THREE, .start_label = INT32_MAX}, TN_E_ARG, "number 2147483647 of the word \"a\""},
        {{THREE, .start_label = INT32_MAX, .invalid_label = INT32_MAX}, TN_E_ARG, "is not within 2^24"},
        {{THREE, .start_label = INT32_MIN}, TN_E_ARG, "number -2147483648 of the word \"a\""},
        {{THREE, .invalid_label = INT32_MIN, .invalid_key = "end"}, TN_E_ARG, "of the word \"end\""},
        {{THREE, .start_label = LAST - 2, .invalid_label = -1, .unknown_token = "?"},
         TN_E_ARG,
         "number 16777217 of the word \"?\""},
        {{ONE("a"), .start_label = LAST, .unknown_token = "?"}, TN_E_ARG, "of the word \"?\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);
        tn_encode_options o = rows[i].o;
        int32_t t[3];

        o.struct_size = (uint32_t)sizeof o;
        assert_null(tn_encode_sentences_(app, t, &o));
        if (tn_app_status(app) != rows[i].status || !strstr(tn_app_error(app), rows[i].text))
            fail_msg("row %zu: %s", i, tn_app_error(app));
        assert_null(tn_encode_sentences_(app, t, NULL)); /* the first error sticks */
        nn_close_failed(app, rows[i].text, 2);
    }
}

/* Of a given vocabulary: the error names the word, and nothing has been added. */
static void not_there(void **state)
{
    char word[200];
    tn_app *app = nn_open(NULL);
    int32_t t[3];
    tn_vocab *v = tn_encode_sentences(app, t, TEXT("a", "b", "a")), *full;

    (void)state;
    assert_null(tn_encode_sentences(app, t, TEXT("a", "zebra", "b"), .vocab = v));
    assert_int_equal(tn_app_status(app), TN_E_KEY);
    assert_non_null(strstr(tn_app_error(app), "no word \"zebra\", and .unknown_token is not given"));
    tn_app_clear(app);
    memset(word, 'y', sizeof word);
    word[sizeof word - 1] = '\0';
    assert_null(tn_encode_sentences(app, t, ONE(word), .vocab = v));
    assert_non_null(strstr(tn_app_error(app), "no word \"yyyy"));
    tn_app_clear(app);
    assert_int_equal(tn_vocab_count(v), 3);
    full =
        tn_vocab_new(app, .words = (const char *const[]){"a"}, .labels = (const int32_t[]){LAST}, .count = 1);
    assert_null(
        tn_encode_sentences(app, t, ONE("x"), .vocab = full, .unknown_token = "?", .start_label = LAST));
    assert_non_null(strstr(tn_app_error(app), "number 16777217 of the word \"?\""));
    tn_app_clear(app);
    assert_int_equal(tn_vocab_count(full), 1);
    assert_non_null(tn_encode_sentences(app, t, TEXT("a", "b", "\n"), .vocab = v)); /* still of use */
    nn_close(app);
}

static void vocab_refused(void **state)
{
    static const char *const twice[] = {"a", "b", "a"}, *const hole[] = {"a", NULL};
    const struct {
        tn_vocab_options o;
        const char *text;
    } rows[] = {
        {{.count = 3}, ".words is missing"},
        {{.words = twice}, ".count not 1 to 2^24"},
        {{.words = twice, .count = -1}, ".count not 1 to 2^24"},
        {{.words = twice, .count = INT64_MAX}, ".count not 1 to 2^24"},
        {{.words = twice, .count = 3}, "\"a\" is listed twice"},
        {{.words = hole, .count = 2}, "word 1 is NULL"},
        {{.words = twice, .labels = (const int32_t[]){0, LAST + 1}, .count = 2},
         "number 16777217 of the word \"b\""},
        {{.words = twice, .labels = (const int32_t[]){INT32_MIN}, .count = 1}, "number -2147483648"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);
        tn_vocab_options o = rows[i].o;

        o.struct_size = (uint32_t)sizeof o;
        assert_null(tn_vocab_new_(app, &o));
        assert_int_equal(tn_app_status(app), TN_E_ARG);
        nn_close_failed(app, rows[i].text, 2);
    }
}

static void nulls(void **state)
{
    tn_app *app = nn_open(NULL);
    int32_t label = 5;
    tn_vocab *v;

    (void)state;
    assert_null(tn_vocab_new_(NULL, NULL));
    assert_null(tn_vocab_new_(app, NULL));
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    assert_null(tn_encode_sentences_(NULL, NULL, NULL));
    assert_null(tn_encode_sentences(app, NULL, ONE("a")));
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    v = tn_vocab_new(app, .words = (const char *const[]){"a"}, .count = 1);
    assert_int_equal(tn_vocab_count(NULL), 0);
    assert_null(tn_vocab_at(NULL, 0, &label));
    assert_string_equal(tn_vocab_at(v, 0, NULL), "a");
    assert_int_equal(tn_vocab_find(NULL, "a", &label), 0);
    assert_int_equal(tn_vocab_find(v, NULL, &label), 0);
    assert_int_equal(tn_vocab_find(v, "a", NULL), 1);
    assert_int_equal(label, 5);
    nn_close(app);
}

/* ---- memory that fails: the linker puts __wrap_calloc in place of calloc ----------------------- */

static int64_t until_failure; /* 0: none is to fail */

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes)
{
    return until_failure && !--until_failure ? NULL : __real_calloc(count, bytes);
}

/* Every allocation in turn: an error that says so, no leak, and the same numbers once it is cleared. */
static void memory_fails(void **state)
{
    enum { KNOWN = 80 }; /* more than a new vocabulary has room for */
    static char text[KNOWN][4];
    const char *known[KNOWN];
    const int64_t length[] = {KNOWN};
    int32_t first[KNOWN], tokens[KNOWN];
    int64_t failures = 0;
    bool failed = true;

    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        (void)snprintf(text[i], sizeof text[i], "%d", i);
        known[i] = text[i];
    }
    for (int64_t nth = 1; failed; nth++) {
        tn_app *app = nn_open(NULL);
        tn_vocab *v, *given = tn_vocab_new(app, .words = known, .count = KNOWN);

        until_failure = nth;
        v = tn_encode_sentences(app, first, .words = known, .lengths = length, .count = 1,
                                .unknown_token = "?");
        (void)tn_vocab_new(app, .words = known, .count = KNOWN);
        (void)tn_encode_sentences(app, tokens, TEXT("1", "x", "2"), .vocab = given, .unknown_token = "?");
        failed = !until_failure;
        until_failure = 0;
        if (failed) {
            assert_int_equal(tn_app_status(app), TN_E_NOMEM);
            tn_app_clear(app);
            failures++;
        }
        if (v)
            assert_int_equal(tn_vocab_count(v), KNOWN + 2);
        assert_non_null(tn_encode_sentences(app, tokens, .words = known, .lengths = length, .count = 1));
        for (int i = 0; i < KNOWN; i++)
            assert_int_equal(tokens[i], i + 1);
        assert_non_null(tn_encode_sentences(app, tokens, TEXT("1", "x", "2"), .vocab = given,
                                            .unknown_token = "?", .invalid_label = -1));
        assert_true(tokens[0] == 1 && tokens[1] == KNOWN && tokens[2] == 2);
        nn_close(app);
    }
    assert_true(failures > 2 * KNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_mxnet),     cmocka_unit_test(into_buckets),  cmocka_unit_test(unknown_words),
        cmocka_unit_test(no_words),     cmocka_unit_test(many_words),    cmocka_unit_test(refused),
        cmocka_unit_test(not_there),    cmocka_unit_test(vocab_refused), cmocka_unit_test(nulls),
        cmocka_unit_test(memory_fails),
    };

    return cmocka_run_group_tests(tests, words_make, NULL);
}
