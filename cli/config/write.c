/*
 * tenon config dump: a configuration file of all options with their defaults. tenon config from-mxnet-env: a
 * configuration file that says what MXNet's variables say. What they write, `tenon config check` passes:
 * lines stay within the reader's limit, and a value that the format cannot hold is a comment.
 */
#include "config/config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 198  /* of the reader */
#define NAME_MAX_BYTES 49   /* of a key */
#define COMMENT_COLUMNS 100 /* where comments are broken */
#define VALUE_BYTES 4097    /* room for every value */

/* Text as comment lines; control characters become '?'. */
static void comment(const char *format, ...) CLI_PRINTF(1, 2);
static void comment(const char *format, ...)
{
    char text[VALUE_BYTES + 512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    for (const char *at = text; *at;) {
        size_t length = strlen(at), cut = length;

        if (length > COMMENT_COLUMNS) {
            for (cut = COMMENT_COLUMNS; cut > 0 && at[cut] != ' ';)
                cut--;
            if (!cut)
                cut = length < LINE_MAX_BYTES - 2 ? length : COMMENT_COLUMNS;
        }
        (void)printf("; %.*s\n", (int)cut, at);
        at += cut + strspn(at + cut, " ");
    }
}

/* "memory.cpu.pool": the section is what stands before the last dot. */
static int section_of(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot ? (int)(dot - key) : 0;
}

static bool section_same(const char *a, const char *b)
{
    return section_of(a) == section_of(b) && !strncmp(a, b, (size_t)section_of(a));
}

/* ---- dump -------------------------------------------------------------------------------------------- */

static void row_comment(const tn_option_info *o)
{
    bool bound = o->min <= o->max;
    char range[96] = "";

    (void)printf("\n");
    comment("%s", o->help);
    if (bound)
        (void)snprintf(range, sizeof range, ", %.12g to %.12g", o->min, o->max);
    comment("%s%s%s%s; default: %s%s%s", o->type,
            *o->choices ? (strcmp(o->type, "choice") ? ", " : ": ") : "", o->choices, range,
            *o->default_text ? o->default_text : "empty",
            o->flags & TN_OPTION_LIVE ? "; may be changed while it runs" : "",
            o->flags & TN_OPTION_TRUSTED ? "; not in ./tenon.ini" : "");
    for (size_t i = 0; i < tn_variable_count(); i++) {
        tn_variable_info v = {.struct_size = TN_SIZE(tn_variable_info)};

        if (!tn_variable_at(i, &v) && *v.key && (!strcmp(v.key, o->key) || config_fits(o->key, v.key)))
            comment("%s%s%s%s%s%s", v.name, *v.values ? "{" : "", v.values, *v.values ? "}" : "",
                    strcmp(v.key, o->key) ? " for " : "", strcmp(v.key, o->key) ? v.key : "");
    }
}

/* The key that stands for the row in the file: memory.*.pool becomes memory.cpu.pool, the others with a
 * wildcard stay comments. */
static bool row_key(const tn_option_info *o, char *key, size_t bytes)
{
    const char *star = strchr(o->key, '*');

    if (!star)
        return snprintf(key, bytes, "%s", o->key) < (int)bytes;
    if (!strncmp(o->key, "memory.*.", 9))
        return snprintf(key, bytes, "memory.cpu.%s", o->key + 9) < (int)bytes;
    return false;
}

/* Rows of one section together; the table has them in an order of its own. */
static void section_dump(const char *first, bool *done, bool commented)
{
    (void)printf("%s[%.*s]\n", commented ? "\n" : "", section_of(first), first);
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};
        char key[160];

        if (done[i] || tn_option_at(i, &o) || !row_key(&o, key, sizeof key) || !section_same(key, first))
            continue;
        done[i] = true;
        if (commented)
            row_comment(&o);
        (void)printf("%s =%s%s\n", key + section_of(key) + 1, *o.default_text ? " " : "", o.default_text);
    }
}

static void dump_text(bool *done, bool commented)
{
    comment("all options of Tenon %s with their defaults", tn_version());
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};
        char key[160];

        if (done[i] || tn_option_at(i, &o))
            continue;
        if (row_key(&o, key, sizeof key)) {
            section_dump(key, done, commented);
        } else if (commented) {
            row_comment(&o);
            comment("%s = VALUE, each * for a name of your own", o.key);
        }
    }
}

int cmd_config_dump(const cli_args *args)
{
    bool *done = calloc(tn_option_count(), sizeof *done);
    json_t *list;

    if (!done) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    if (!args->value[OPT_JSON]) {
        dump_text(done, args->value[OPT_COMMENTED] != NULL);
        free(done);
        return 0;
    }
    free(done);
    list = json_array();
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (!tn_option_at(i, &o))
            (void)json_array_append_new(list, config_row_json(&o));
    }
    cli_json_line(json_pack("{s:o}", "options", list));
    return 0;
}

/* ---- from-mxnet-env ---------------------------------------------------------------------------------- */

typedef struct taken {
    tn_variable_info variable;
    const char *given;      /* the variable's value */
    char text[VALUE_BYTES]; /* the option's; "" if it leaves it as it is, or is not understood */
    char why[512];          /* why it is not written; "" if it is */
    bool written;
} taken;

/* What the file format cannot hold: comments, spaces at the ends, control characters, long lines. */
static const char *unwritable(const char *key, const char *text)
{
    size_t length = strlen(text);

    if (!length)
        return "";
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f ||
            (text[i] == ';' && (i == 0 || text[i - 1] == ' ')))
            return "a file cannot hold this value";
    if (text[0] == ' ' || text[length - 1] == ' ')
        return "a file cannot hold this value";
    return strlen(key) - (size_t)section_of(key) - 1 + 3 + length > LINE_MAX_BYTES
               ? "the line would be too long"
               : "";
}

/* The variables that are set. Returns how many, or SIZE_MAX without memory. */
static size_t variables_take(taken **out)
{
    size_t count = tn_variable_count(), used = 0;
    taken *all = calloc(count ? count : 1, sizeof *all);

    if (!all)
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        taken *t = &all[used];

        t->variable.struct_size = TN_SIZE(tn_variable_info);
        if (tn_variable_at(i, &t->variable) || !(t->given = getenv(t->variable.name)) || !*t->given)
            continue;
        used++;
        if (!*t->variable.key) {
            (void)snprintf(t->why, sizeof t->why, "%s", t->variable.reason);
        } else if (tn_variable_translate(i, t->given, t->text, sizeof t->text)) {
            (void)snprintf(t->why, sizeof t->why, "%s", tn_error_text());
            t->text[0] = '\0';
        } else {
            (void)snprintf(t->why, sizeof t->why, "%s",
                           *t->text ? unwritable(t->variable.key, t->text) : "as it is without it");
        }
    }
    *out = all;
    return used;
}

/* A later variable of the same option wins. */
static void overruled_mark(taken *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count && !*all[i].why; k++)
            if (!*all[k].why && !strcmp(all[k].variable.key, all[i].variable.key))
                (void)snprintf(all[i].why, sizeof all[i].why, "%.100s rules", all[k].variable.name);
}

static void variables_print(taken *all, size_t count)
{
    comment("what the variables of MXNet, dmlc-core and ps-lite say here");
    for (size_t i = 0; i < count; i++) {
        if (*all[i].why || all[i].written)
            continue;
        (void)printf("\n[%.*s]\n", section_of(all[i].variable.key), all[i].variable.key);
        for (size_t k = i; k < count; k++) {
            taken *t = &all[k];

            if (*t->why || t->written || !section_same(t->variable.key, all[i].variable.key))
                continue;
            t->written = true;
            comment("%s=%s", t->variable.name, t->given);
            (void)printf("%s = %s\n", t->variable.key + section_of(t->variable.key) + 1, t->text);
        }
    }
    (void)printf("\n");
    for (size_t i = 0; i < count; i++)
        if (*all[i].why && *all[i].variable.key)
            comment("%s=%s, %s: %s", all[i].variable.name, all[i].given, all[i].variable.key, all[i].why);
        else if (*all[i].why) /* not its value: it may be a secret */
            comment("%s means nothing here: %s", all[i].variable.name, all[i].why);
}

static void variables_json(const taken *all, size_t count)
{
    json_t *options = json_array(), *unused = json_array();

    for (size_t i = 0; i < count; i++) {
        const taken *t = &all[i];

        if (!*t->why)
            (void)json_array_append_new(options,
                                        json_pack("{s:s, s:o, s:s}", "key", t->variable.key, "value",
                                                  cli_json_text(t->text), "variable", t->variable.name));
        else
            (void)json_array_append_new(unused, json_pack("{s:s, s:o}", "variable", t->variable.name,
                                                          "reason", cli_json_text(t->why)));
    }
    cli_json_line(json_pack("{s:o, s:o}", "options", options, "unused", unused));
}

int cmd_config_from_mxnet_env(const cli_args *args)
{
    taken *all = NULL;
    size_t count = variables_take(&all);

    if (count == SIZE_MAX) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    overruled_mark(all, count);
    if (args->value[OPT_JSON])
        variables_json(all, count);
    else
        variables_print(all, count);
    free(all);
    return 0;
}
