/*
 * What --help prints: the tables of the tool as pages of at most 80 columns, or of the terminal's if it has
 * less. A name that is wider than its column stands on a line of its own.
 */
#include <string.h>

#include "cli.h"

#define COLUMNS_MOST 80
#define COLUMNS_LEAST 24
#define COLUMNS_NARROW 64 /* fewer: all names stand on lines of their own */
#define NAME_COLUMNS 30   /* of options; also of commands at most */

static int columns = COLUMNS_MOST; /* of the page */

static void page_begin(FILE *out)
{
    const cli_terminal t = cli_terminal_of(out);

    columns = t.terminal && t.columns < COLUMNS_MOST ? t.columns : COLUMNS_MOST;
    columns = columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}

/* The words of `text`, of which `column` columns are printed already, further lines from `indent` on. */
static void words_wrap(FILE *out, const char *text, size_t length, int indent, int *column)
{
    while (length) {
        const char *blank = memchr(text, ' ', length);
        const size_t word = blank ? (size_t)(blank - text) : length;
        const int wide = (int)word;

        if (*column > indent && *column + 1 + wide > columns) {
            (void)fprintf(out, "\n%*s", indent, "");
            *column = indent;
        } else if (*column > indent) {
            (void)fputc(' ', out);
            ++*column;
        }
        (void)fwrite(text, 1, word, out);
        *column += wide;
        text += word + (blank != NULL);
        length -= word + (blank != NULL);
    }
}

static void row(FILE *out, const char *name, const char *what, int name_columns)
{
    const bool narrow = columns < COLUMNS_NARROW;
    const int indent = narrow ? 8 : 2 + name_columns + 1;
    int column = indent;

    if (narrow || (int)strlen(name) > name_columns)
        (void)fprintf(out, "  %s\n%*s", name, indent, "");
    else
        (void)fprintf(out, "  %-*s ", name_columns, name);
    words_wrap(out, what, strlen(what), indent, &column);
    (void)fputc('\n', out);
}

/* Lines of help: prose runs on; a line that is set out with blanks stays a line. */
static void prose(FILE *out, const char *lines)
{
    int column = 0;

    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        if (*lines != ' ' && !memmem(lines, length, "  ", 2)) {
            words_wrap(out, lines, length, 0, &column);
            continue;
        }
        (void)fprintf(out, "%s%.*s\n", column ? "\n" : "", (int)length, lines);
        column = 0;
    }
    if (column)
        (void)fputc('\n', out);
}

static void usage(FILE *out, const char *name, const char *words)
{
    int column = 0;

    (void)fprintf(out, "usage: tenon %s", name);
    column = (int)strlen("usage: tenon ") + (int)strlen(name);
    words_wrap(out, words, strlen(words), (int)strlen("usage: tenon "), &column);
    words_wrap(out, "[OPTION]...", strlen("[OPTION]..."), (int)strlen("usage: tenon "), &column);
    (void)fputc('\n', out);
}

static void options(FILE *out, const uint8_t *ids)
{
    for (; *ids != OPT_NONE; ids++) {
        const cli_option *o = &cli_options[*ids];
        const char *value = o->value ? o->value : "";
        char letter[8] = "    ", left[80];

        if (o->letter)
            (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
        (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, *value ? " " : "", value);
        row(out, left, o->help, NAME_COLUMNS);
    }
}

void cli_help(const cli_command *command, FILE *out)
{
    page_begin(out);
    usage(out, command->name, command->words);
    (void)fputc('\n', out);
    prose(out, command->summary);
    if (command->help) {
        (void)fputc('\n', out);
        prose(out, command->help);
    }
    (void)fputs("\noptions\n", out);
    options(out, command->options);
    options(out, cli_common_options);
}

/* Commands that begin with the word, or all: how many. */
static size_t commands(FILE *out, const char *word)
{
    const size_t length = word ? strlen(word) : 0;
    size_t count = 0;
    int wide = 0;

    page_begin(out);
    for (const cli_command *c = cli_commands; c->name; c++)
        if ((!word || (!strncmp(c->name, word, length) && c->name[length] == ' ')) &&
            (int)strlen(c->name) > wide && strlen(c->name) <= NAME_COLUMNS)
            wide = (int)strlen(c->name);
    for (const cli_command *c = cli_commands; c->name; c++) {
        if (word && (strncmp(c->name, word, length) || c->name[length] != ' '))
            continue;
        if (!count++)
            (void)fprintf(out, "usage: tenon %s%sCOMMAND [OPTION]...\n\ncommands\n", word ? word : "",
                          word ? " " : "");
        row(out, c->name, c->summary, wide);
    }
    return count;
}

bool cli_help_group(const char *word, FILE *out)
{
    return commands(out, word) > 0;
}

void cli_help_all(FILE *out)
{
    static const char head[] = "exit codes: ";
    int column = (int)strlen(head);

    (void)commands(out, NULL);
    (void)fputc('\n', out);
    prose(out, "`tenon COMMAND --help` shows the options. Results go to stdout, everything else to stderr.");
    (void)fputs(head, out);
    for (const cli_exit *e = cli_exits; e->meaning; e++) {
        char text[64];

        int wide = snprintf(text, sizeof text, "%d %s%s", e->code, e->meaning, e[1].meaning ? "," : "");

        if (column + 1 + wide > columns)
            column = fprintf(out, "\n%*s", (int)strlen(head), "") - 1;
        else if (e != cli_exits)
            column += fprintf(out, " ");
        (void)fputs(text, out);
        column += wide;
    }
    (void)fputc('\n', out);
}
