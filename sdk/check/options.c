/*
 * Group options: the rows that a plugin brings for [plugin.NAME], and init with the values they allow.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define ROWS_MAX 4096u

static const char *const types[] = {"text", "int", "float", "bool", "bytes", "duration_ms", "list", "choice"};

static bool is_number(const tn_option_row *row)
{
    return strcmp(row->type, "int") == 0 || strcmp(row->type, "float") == 0;
}

static bool key_good(const char *key)
{
    size_t length = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return length && length < 50 && !key[length] && key[0] >= 'a';
}

static bool choice_has(const char *choices, const char *text)
{
    size_t length = strlen(text);

    for (const char *at = choices; *at;) {
        size_t here = strcspn(at, "|");

        if (here == length && memcmp(at, text, length) == 0)
            return true;
        at += here + (at[here] == '|');
    }
    return false;
}

static void default_check(chk_env *env, const tn_option_row *row)
{
    const char *text = row->default_text;
    char *end;
    double value;

    if (!text || !*text)
        return;
    if (strcmp(row->type, "choice") == 0 && !choice_has(row->choices, text))
        chk_fail(env, NULL, "option %s: the default %s is none of %s", row->key, text, row->choices);
    if (strcmp(row->type, "bool") == 0 && !choice_has("0|1|true|false|on|off|yes|no", text))
        chk_fail(env, NULL, "option %s: the default %s is no bool", row->key, text);
    if (!is_number(row))
        return;
    value = strtod(text, &end);
    chk_fail_if(env, end == text || *end, NULL, "option %s: the default %s is no number", row->key, text);
    if (row->min <= row->max && (value < row->min || value > row->max))
        chk_fail(env, NULL, "option %s: the default %s lies outside %g to %g", row->key, text, row->min,
                 row->max);
}

static void row_check(chk_env *env, const tn_option_row *row)
{
    bool known = false;

    if (row->struct_size < TN_END(tn_option_row, max))
        chk_fail(env, "R2", "a row has struct_size %u; its members need %zu", (unsigned)row->struct_size,
                 TN_END(tn_option_row, max));
    if (!row->key || !key_good(row->key))
        chk_fail(env, NULL, "an option is called \"%s\": a-z, 0-9 and _, at most 49, a letter first",
                 row->key ? row->key : "");
    for (size_t i = 0; row->type && i < sizeof types / sizeof *types; i++)
        known |= strcmp(types[i], row->type) == 0;
    if (!known)
        chk_fail(env, NULL, "option %s has the unknown type \"%s\"", row->key, row->type ? row->type : "");
    if (strcmp(row->type, "choice") == 0 && (!row->choices || !*row->choices))
        chk_fail(env, NULL, "option %s is a choice of nothing", row->key);
    if (!row->help || !*row->help)
        chk_fail(env, NULL, "option %s has no help", row->key);
    default_check(env, row);
    chk_count(env);
}

static const tn_option_table *table_of(chk_env *env)
{
    const tn_option_table *table = chk_capability(env, TN_KIND_OPTIONS, NULL, NULL);

    if (!table)
        chk_skip(env, "the plugin has no options");
    chk_fail_if(env, !table->rows, NULL, "the table of options has no rows");
    return table;
}

void chk_options_rows(chk_env *env)
{
    const tn_option_table *table = table_of(env);

    chk_count(env);
    if (strcmp(table->head.id, chk_descriptor(env)->name) != 0)
        chk_fail(env, NULL, "the table of options is called %s, the plugin %s", table->head.id,
                 chk_descriptor(env)->name);
    for (size_t i = 0; table->rows[i]; i++) {
        chk_fail_if(env, i == ROWS_MAX, NULL, "the table of options has no end");
        row_check(env, table->rows[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(table->rows[k]->key, table->rows[i]->key) == 0)
                chk_fail(env, NULL, "two options are called %s", table->rows[i]->key);
    }
}

/* ---- values ---- */

typedef struct setting {
    const char *key, *value;
    const char *good; /* why init must take it; NULL: it need not */
} setting;

#define TRIES 5
#define CHOICES_BYTES 512

/* An init by its own default must go well; any other one may say no, and why. */
static void answer_check(chk_env *env, const setting *s, tn_status st, const tn_err *err)
{
    chk_count(env);
    if (st && s->good)
        chk_fail(env, NULL, "with %s = %.80s, %s, init fails with %s: %s", s->key, s->value, s->good,
                 tn_status_name(st), err->message);
    if (st && !*err->message)
        chk_fail(env, NULL, "with %s = %.80s init fails with %s and does not say why", s->key, s->value,
                 tn_status_name(st));
}

/* The fastest of some counts: the machine may be busy. What the first time left may be made once. */
static void init_with(chk_env *env, const setting *s)
{
    chk_process *before = chk_process_snapshot(env);
    uint64_t fastest = UINT64_MAX, held[TRIES + 1] = {0};
    const char *changed;
    tn_err err;
    tn_status st;
    uint32_t i;

    for (i = 0; i < TRIES && (i < 2 || fastest > CHK_INIT_LIMIT_NS); i++) {
        chk_host *host = chk_host_create(env, CHK_HOST_EXACT);
        uint64_t took;

        chk_host_option(host, s->key, s->value);
        took = chk_init_ns(env, host, &st, &err);
        fastest = took < fastest ? took : fastest;
        held[i] = chk_host_memory(host, NULL);
        answer_check(env, s, st, &err);
    }
    if (fastest > CHK_INIT_LIMIT_NS)
        chk_fail(env, "R8", "with %s = %.80s init takes %llu ms; 100 are allowed", s->key, s->value,
                 (unsigned long long)(fastest / 1000000u));
    if (held[i - 1] > held[i - 2])
        chk_fail(env, "M-leak", "with %s = %.80s init, which gives %s, leaves %llu blocks behind", s->key,
                 s->value, tn_status_name(st), (unsigned long long)(held[i - 1] - held[i - 2]));
    if ((changed = chk_process_changed(before, CHK_PROCESS_THREADS)))
        chk_fail(env, "R8", "with %s = %.80s init %s", s->key, s->value, changed);
    chk_process_free(before);
}

/* Each of "a|b|c". */
static void each_with(chk_env *env, const char *key, const char *choices)
{
    char list[CHOICES_BYTES], *rest = NULL;

    (void)snprintf(list, sizeof list, "%s", choices);
    for (char *word = strtok_r(list, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        init_with(env, &(setting){key, word, NULL});
}

static void row_values(chk_env *env, const tn_option_row *row)
{
    static const char *const nonsense[] = {"",         "-1",   "99999999999999999999999", "nonsense", "1e400",
                                           "\xff\xfe", ",,:;="};
    static char longest[4096];
    char text[64];

    if (row->default_text && *row->default_text)
        init_with(env, &(setting){row->key, row->default_text, "its own default"});
    for (int end = 0; is_number(row) && row->min <= row->max && end < 2; end++) {
        (void)snprintf(text, sizeof text, strcmp(row->type, "int") ? "%g" : "%.0f",
                       end ? row->max : row->min);
        init_with(env, &(setting){row->key, text, NULL});
    }
    if (strcmp(row->type, "choice") == 0)
        each_with(env, row->key, row->choices);
    if (strcmp(row->type, "bool") == 0)
        each_with(env, row->key, "true|false|1|0|on|off");
    for (size_t k = 0; k < sizeof nonsense / sizeof *nonsense; k++)
        init_with(env, &(setting){row->key, nonsense[k], NULL});
    memset(longest, 'x', sizeof longest - 1);
    init_with(env, &(setting){row->key, longest, NULL});
}

/* A default given in words does what no word does; each choice and the ends of the range work, or say why
 * not; nonsense is a clear refusal, or is read as nothing: never a crash, a leak, or a long wait. */
void chk_options_values(chk_env *env)
{
    const tn_option_table *table = table_of(env);

    for (size_t i = 0; table->rows[i]; i++)
        row_values(env, table->rows[i]);
}
