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
    if (end == text || *end)
        chk_fail(env, NULL, "option %s: the default %s is no number", row->key, text);
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
    if (!table->rows)
        chk_fail(env, NULL, "the table of options has no rows");
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
        if (i == ROWS_MAX)
            chk_fail(env, NULL, "the table of options has no end");
        row_check(env, table->rows[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(table->rows[k]->key, table->rows[i]->key) == 0)
                chk_fail(env, NULL, "two options are called %s", table->rows[i]->key);
    }
}

/* ---- values ---- */

static void init_with(chk_env *env, const char *key, const char *value, bool good)
{
    chk_plugin p = {.descriptor = chk_descriptor(env), .host = chk_host_create(env, CHK_HOST_EXACT)};
    tn_err err;
    tn_status st;

    chk_host_option(p.host, key, value);
    st = chk_plugin_init(env, &p, &err);
    chk_count(env);
    if (st && good)
        chk_fail(env, NULL, "with %s = %s, its own default, init fails with %s: %s", key, value,
                 tn_status_name(st), err.message);
    if (st && !*err.message)
        chk_fail(env, NULL, "with %s = %s init fails with %s and does not say why", key, value,
                 tn_status_name(st));
    if (!st)
        (void)chk_plugin_close(env, &p);
    else
        chk_host_accounts(p.host);
}

/* A default given in words does what no word does; the ends of the range too; nonsense is a clear refusal, or
 * is read as nothing: never a crash, never a leak. */
void chk_options_values(chk_env *env)
{
    static const char *const nonsense[] = {"",         "-1",   "99999999999999999999999", "nonsense", "1e400",
                                           "\xff\xfe", ",,:;="};
    const tn_option_table *table = table_of(env);

    for (size_t i = 0; table->rows[i]; i++) {
        const tn_option_row *row = table->rows[i];
        char text[64];

        if (row->default_text && *row->default_text)
            init_with(env, row->key, row->default_text, true);
        for (int end = 0; is_number(row) && row->min <= row->max && end < 2; end++) {
            (void)snprintf(text, sizeof text, "%.0f", end ? row->max : row->min);
            init_with(env, row->key, text, false);
        }
        for (size_t k = 0; k < sizeof nonsense / sizeof *nonsense; k++)
            init_with(env, row->key, nonsense[k], false);
    }
}
