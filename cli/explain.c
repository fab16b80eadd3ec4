/*
 * tenon explain: the list of errors, or the row that a number, a refusal, a status or a message means; or a
 * rule of the conformance kit.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

#include "plugins/rules.h"

#define NAME_BYTES 32
#define RULE_COLUMNS 79

static bool row_at(size_t index, tn_error_info *e)
{
    *e = (tn_error_info){.struct_size = TN_SIZE(tn_error_info)};
    return !tn_error_at(index, e);
}

/* "TN-3005", and in `other` "L05" or "TN_E_SHAPE" ("": none). */
static void names_of(const tn_error_info *e, char name[NAME_BYTES], char other[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "TN-%04u", (unsigned)e->number);
    other[0] = '\0';
    if (e->refusal)
        (void)snprintf(other, NAME_BYTES, "L%02u", (unsigned)e->refusal);
    else if (e->number <= TN_E_INTERNAL)
        (void)snprintf(other, NAME_BYTES, "%s", tn_status_name(e->status));
}

/* The row that one word names: TN-3005, TN3005, 3005, L05, TN_E_SHAPE; with punctuation around it. */
static bool word_find(const char *word, size_t length, tn_error_info *e)
{
    char text[NAME_BYTES], name[NAME_BYTES], other[NAME_BYTES];
    const char *digits = text;
    char *end;
    unsigned long number;

    if (!length || length >= sizeof text)
        return false;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)toupper((unsigned char)word[i]);
    text[length] = '\0';
    if (!strncmp(text, "TN-", 3) || (!strncmp(text, "TN", 2) && isdigit((unsigned char)text[2])))
        digits += text[2] == '-' ? 3 : 2;
    number = isdigit((unsigned char)*digits) ? strtoul(digits, &end, 10) : 0;
    if (number && number <= UINT32_MAX && !*end) {
        *e = (tn_error_info){.struct_size = TN_SIZE(tn_error_info)};
        return !tn_error_find((uint32_t)number, e);
    }
    for (size_t i = 0; row_at(i, e); i++) {
        names_of(e, name, other);
        if (*other && !strcmp(text, other))
            return true;
    }
    return false;
}

/* The first word of a message that names a row; bare numbers do not count there. */
static bool message_find(const char *text, tn_error_info *e)
{
    static const char parts[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    while (*text) {
        const size_t length = strspn(text, parts);

        if (length && !isdigit((unsigned char)*text) && word_find(text, length, e))
            return true;
        text += length ? length : 1;
    }
    return false;
}

/* How many words of `text` (of four letters and more) stand in the row's sentence. */
static int words_common(const char *text, const char *sentence)
{
    int common = 0;

    while (*text) {
        char word[32];
        size_t length = 0;

        while (isalpha((unsigned char)text[length]))
            length++;
        (void)snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : 0, text);
        common += length >= 4 && strstr(sentence, word) != NULL;
        text += length ? length : 1;
    }
    return common;
}

static bool sentence_find(const char *text, tn_error_info *e)
{
    tn_error_info row;
    int best = 1, common;

    for (size_t i = 0; row_at(i, &row); i++)
        if ((common = words_common(text, row.sentence)) > best) {
            best = common;
            *e = row;
        }
    return best > 1;
}

/* ---- rules of the kit ---- */

/* The rule that stands in `text` as a word of its own: "K-modes", "FAIL  kernel/modes/x: K-modes: ...". */
static bool rule_find(const char *text, char name[NAME_BYTES])
{
    static const char parts[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/";

    while (*text) {
        const size_t length = strspn(text, parts);

        for (const cli_rule *r = cli_rules; length && r->name; r++)
            if (strlen(r->name) == length && !strncasecmp(r->name, text, length) &&
                strcmp(r->name, "kit") != 0) {
                (void)snprintf(name, NAME_BYTES, "%s", r->name);
                return true;
            }
        text += length ? length : 1;
    }
    return false;
}

static void rule_print(const char *name)
{
    (void)printf("%s, a rule of the conformance kit\n", name);
    for (const cli_rule *r = cli_rules; r->name; r++)
        if (!strcmp(r->name, name))
            (void)printf("  %s%s%s%s%s\n", r->what, r->test ? ": " : "", r->test ? r->group : "",
                         r->test ? "/" : "", r->test ? r->test : "");
    (void)printf("  what to do: `tenon plugins check FILE` says which case fails, and how to run it alone\n");
}

static json_t *rule_json(const char *name)
{
    json_t *rows = json_array();

    for (const cli_rule *r = cli_rules; r->name; r++)
        if (!strcmp(r->name, name))
            (void)json_array_append_new(
                rows, json_pack("{s:s,s:s?,s:s?}", "what", r->what, "group", r->group, "test", r->test));
    return json_pack("{s:s,s:o}", "rule", name, "asks", rows);
}

static const char *name_next(const void *from, size_t index)
{
    static char name[NAME_BYTES], other[NAME_BYTES];
    tn_error_info e;
    size_t errors = 0;

    (void)from;
    while (row_at(errors, &e))
        errors++;
    if (index / 2 >= errors)
        return cli_rules[index - 2 * errors].name;
    (void)row_at(index / 2, &e);
    names_of(&e, name, other);
    return index % 2 && *other ? other : name;
}

/* ---- output ---- */

static json_t *row_json(const tn_error_info *e)
{
    char name[NAME_BYTES], other[NAME_BYTES];

    names_of(e, name, other);
    return json_pack("{s:s,s:i,s:o,s:s,s:i,s:b,s:s,s:s}", "name", name, "number", (int)e->number, "refusal",
                     e->refusal ? json_string(other) : json_null(), "status", tn_status_name(e->status),
                     "exit_code", (int)e->exit_code, "reserved", !strncmp(e->sentence, "reserved", 8),
                     "sentence", e->sentence, "advice", e->advice);
}

static void row_print(const tn_error_info *e)
{
    char name[NAME_BYTES], other[NAME_BYTES];

    names_of(e, name, other);
    (void)printf("%s%s%s%s%s\n  %s\n", name, *other ? " (" : "", other, *other ? ")" : "",
                 e->refusal ? ", a plugin is refused" : "", e->sentence);
    if (*e->advice)
        (void)printf("  what to do: %s\n", e->advice);
    (void)printf("  status %s, exit code %d\n", tn_status_name(e->status), (int)e->exit_code);
}

/* The names of all rules, each once. */
static json_t *rules_all(void)
{
    json_t *list = json_array();

    for (const cli_rule *r = cli_rules; r->name; r++) {
        bool known = !strcmp(r->name, "kit");
        const json_t *name;
        size_t k;

        json_array_foreach(list, k, name) known = known || !strcmp(json_string_value(name), r->name);
        if (!known)
            (void)json_array_append_new(list, json_string(r->name));
    }
    return list;
}

static void rules_print(void)
{
    json_t *list = rules_all();
    const json_t *name;
    size_t i;
    int column = RULE_COLUMNS;

    (void)printf("\nrules of `tenon plugins check`");
    json_array_foreach(list, i, name)
    {
        const int wide = (int)json_string_length(name);

        column = column + 2 + wide > RULE_COLUMNS ? printf("\n ") - 1 : column;
        column += printf(" %s", json_string_value(name));
    }
    (void)printf(
        "\n\n`tenon explain NAME` tells what one of them means and what to do; `tenon explain MESSAGE`\n"
        "finds the name in the text of a message.\n");
    json_decref(list);
}

static int all_print(bool json)
{
    json_t *list = json ? json_array() : NULL;
    char name[NAME_BYTES], other[NAME_BYTES];
    tn_error_info e;

    for (size_t i = 0; row_at(i, &e); i++) {
        names_of(&e, name, other);
        if (json)
            (void)json_array_append_new(list, row_json(&e));
        else
            (void)printf("%-8s %-16s %3d  %s\n", name, other, (int)e.exit_code, e.sentence);
    }
    if (json)
        cli_json_line(json_pack("{s:o,s:o}", "errors", list, "rules", rules_all()));
    else
        rules_print();
    return 0;
}

static char *words_join(const cli_args *args)
{
    char *text = cli_format("%s", args->words[0]), *more;

    for (size_t i = 1; text && i < args->word_count; i++) {
        more = cli_format("%s %s", text, args->words[i]);
        free(text);
        text = more;
    }
    return text;
}

int cmd_explain(const cli_args *args)
{
    const bool json = args->value[OPT_JSON] != NULL;
    char rule[NAME_BYTES], similar[CLI_SIMILAR_BYTES];
    tn_error_info e;
    char *text;
    bool found, is_rule = false;

    if (!args->word_count)
        return all_print(json);
    if (!(text = words_join(args)))
        return CLI_EXIT_MEMORY;
    found = word_find(text, strlen(text), &e) || message_find(text, &e);
    is_rule = !found && rule_find(text, rule);
    found = found || is_rule || sentence_find(text, &e);
    if (is_rule && json) {
        cli_json_line(rule_json(rule));
    } else if (is_rule) {
        rule_print(rule);
    } else if (found && json) {
        cli_json_line(row_json(&e));
    } else if (found) {
        row_print(&e);
    } else {
        cli_error("there is no error \"%.80s\"%s; `tenon explain` lists them", text,
                  cli_similar_text(cli_nearest(text, name_next, NULL), similar));
    }
    free(text);
    return found ? 0 : CLI_EXIT_USAGE;
}
