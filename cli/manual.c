/*
 * tenon manual: the manual pages, in the language of man(7), made from the tables that the tool works with:
 * commands, options, the library's options, examples, what can go wrong.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

#define NAME_BYTES 80
#define GROUP_BYTES 32

static const struct {
    const char *command, *line, *says, *what;
} examples[] = {
#define CLI_EXAMPLE(command, line, says, what) {command, line, says, what},
#include "examples.list"
#undef CLI_EXAMPLE
};

typedef struct described {
    const char *name, *what;
} described;

static const described environment[] = {
    {"TENON_SECTION__KEY",
     "One option: TENON_TRAIN__EPOCHS is train.epochs. Stronger than files, weaker than the "
     "command line. Options of the section plugins may not be set so."},
    {"MXNET_..., OMP_NUM_THREADS", "Variables that MXNet's users know; tenon.ini(5) names them."},
    {"XDG_CONFIG_HOME, HOME", "Where the user's configuration is."},
    {"NO_COLOR", "If it is not empty, nothing is coloured."},
    {"TERM, COLUMNS, LC_CTYPE", "What the terminal can show; with TERM=dumb, or where the error output is no "
                                "terminal, there are lines instead of a bar."},
    {NULL, NULL},
};
static const described files[] = {
    {"/etc/tenon/tenon.ini", "Options of the system."},
    {"$XDG_CONFIG_HOME/tenon/tenon.ini", "Options of the user; ~/.config if the variable is unset."},
    {"./tenon.ini", "Options of a project; it may not say where plugins are."},
    {"PREFIX/lib/tenon/plugins-1/", "The plugins, beside libtenon.so."},
    {"PREFIX/share/tenon/data/", "The data sets that are shipped."},
    {"PREFIX/share/doc/tenon/docs/", "The manuals for programs and plugins: plugins.md and others."},
    {NULL, NULL},
};

/* ---- troff ---- */

static FILE *to;

/* One character of text, and where a line may be broken behind it. */
static const char *character(const char *at, bool line_start)
{
    static const struct {
        char c;
        const char *text;
    } special[] = {{'\\', "\\(rs"}, {'-', "\\-"},  {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"},
                   {'~', "\\(ti"},  {'|', "|\\:"}, {'/', "/\\:"},   {';', ";\\:"},  {',', ",\\:"}};
    unsigned code = (unsigned char)*at, more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : 1;

    if (line_start && *at == '.')
        (void)fputs("\\&", to);
    if (code >= 0xc0) {
        code &= 0x3fu >> more;
        for (; more && ((unsigned char)at[1] & 0xc0) == 0x80; more--)
            code = code << 6 | ((unsigned char)*++at & 0x3f);
        (void)fprintf(to, "\\[u%04X]", code);
        return at + 1;
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].c == *at) {
            (void)fputs(special[i].text, to);
            return at + 1;
        }
    (void)fputc(*at, to);
    return at + 1;
}

static void text(const char *words)
{
    for (const char *at = words; *at;)
        at = character(at, at == words || at[-1] == '\n');
}

/* Lines of help: prose runs on; a line that is set out with blanks stays a line. */
static void prose(const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        bool set_out = *lines == ' ' || memmem(lines, length, "  ", 2);
        char line[400];

        (void)snprintf(line, sizeof line, "%.*s", (int)length, lines);
        if (set_out)
            (void)fputs(".br\n", to);
        text(line);
        (void)fputs(set_out ? "\n.br\n" : "\n", to);
        lines += length + (lines[length] == '\n');
    }
}

static void heading(const char *name)
{
    (void)fprintf(to, ".SH %s\n", name);
}

static void item(const char *name, const char *what)
{
    (void)fputs(".TP\n.B ", to);
    text(name);
    (void)fputc('\n', to);
    text(what);
    (void)fputc('\n', to);
}

static void items(const char *head, const described *rows)
{
    heading(head);
    for (; rows->name; rows++)
        item(rows->name, rows->what);
}

static void title(const char *name, const char *section, const char *summary)
{
    char upper[NAME_BYTES];
    size_t length = 0;

    for (; name[length] && length + 1 < sizeof upper; length++)
        upper[length] = (char)toupper((unsigned char)name[length]);
    upper[length] = '\0';
    (void)fprintf(to, ".TH %s %s \"\" \"tenon %s\" \"Tenon\"\n.ad l\n.SH NAME\n", upper, section,
                  tn_version());
    text(name);
    (void)fputs(" \\- ", to);
    text(summary);
    (void)fputc('\n', to);
}

/* ---- parts of several pages ---- */

static void option_item(uint8_t id)
{
    const cli_option *o = &cli_options[id];
    tn_option_info info = {.struct_size = TN_SIZE(tn_option_info)};

    (void)fputs(".TP\n", to);
    if (o->letter)
        (void)fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
    (void)fputs("\\fB\\-\\-", to);
    text(o->name);
    (void)fputs("\\fR", to);
    if (o->value) {
        (void)fputs(" \\fI", to);
        text(o->value);
        (void)fputs("\\fR", to);
    }
    (void)fputc('\n', to);
    text(o->help);
    (void)fputc('\n', to);
    for (size_t i = 0; o->setting && i < tn_option_count(); i++)
        if (!tn_option_at(i, &info) && !strcmp(info.key, o->setting)) {
            (void)fputs(".br\nStands for the option ", to);
            text(info.key);
            if (*info.default_text) {
                (void)fputs(", by default ", to);
                text(info.default_text);
            }
            (void)fputs(".\n", to);
        }
}

static void options_part(const uint8_t *own)
{
    heading("OPTIONS");
    for (; own && *own != OPT_NONE; own++)
        option_item(*own);
    for (const uint8_t *id = cli_common_options; *id != OPT_NONE; id++)
        option_item(*id);
}

static void exit_part(void)
{
    char code[16], text[256];

    heading("EXIT STATUS");
    for (const cli_exit *e = cli_exits; e->meaning; e++) {
        (void)snprintf(code, sizeof code, "%d", e->code);
        (void)snprintf(text, sizeof text, "%s%s%s", e->meaning, e->more ? ": " : "", e->more ? e->more : "");
        item(code, text);
    }
}

/* `command` NULL: one of each command. */
static void examples_part(const char *command)
{
    const char *last = "";

    heading("EXAMPLES");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        if (command ? strcmp(command, examples[i].command) : !strcmp(last, examples[i].command))
            continue;
        last = examples[i].command;
        text(examples[i].what);
        (void)fputs("\n.PP\n.RS 4\n.nf\n", to);
        text(examples[i].line);
        (void)fputs("\n.fi\n.RE\n.PP\n", to);
    }
}

static void page_name(const cli_command *command, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "tenon-%.64s", command->name);
    for (char *c = name; *c; c++)
        *c = *c == ' ' ? '-' : *c;
}

/* ---- the pages ---- */

static void command_page(const cli_command *c)
{
    static const char *const see[] = {"tenon (1)", "tenon.ini (5)", "tenon\\-plugin (7)", NULL};
    char name[NAME_BYTES];

    page_name(c, name);
    title(name, "1", c->summary);
    heading("SYNOPSIS");
    (void)fprintf(to, ".B tenon %s\n", c->name);
    if (*c->words) {
        (void)fputs("\\fI", to);
        text(c->words);
        (void)fputs("\\fR\n", to);
    }
    (void)fputs("[\\fIOPTION\\fR]...\n", to);
    heading("DESCRIPTION");
    (void)fputc(toupper((unsigned char)*c->summary), to);
    text(c->summary + 1);
    (void)fputs(".\n", to);
    if (c->help) {
        (void)fputs(".PP\n", to);
        prose(c->help);
    }
    options_part(c->options);
    exit_part();
    items("ENVIRONMENT", environment);
    items("FILES", files);
    examples_part(c->name);
    heading("SEE ALSO");
    for (size_t i = 0; see[i]; i++)
        (void)fprintf(to, ".BR %s%s\n", see[i], see[i + 1] ? " ," : "");
}

static void tool_page(const cli_command *none)
{
    char name[NAME_BYTES];

    (void)none;
    title("tenon", "1", "trains, runs and examines neural networks");
    (void)fputs(
        ".SH SYNOPSIS\n.B tenon\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n"
        "One tool with commands; each has a page of its own and answers \\-\\-help. Results go to the "
        "standard output, everything else to the error output; \\-\\-json makes results JSON.\n",
        to);
    heading("COMMANDS");
    for (const cli_command *c = cli_commands; c->name; c++) {
        page_name(c, name);
        (void)fputs(".TP\n.BR ", to);
        text(name);
        (void)fputs(" (1)\n", to);
        text(c->summary);
        (void)fputc('\n', to);
    }
    options_part(NULL);
    exit_part();
    items("ENVIRONMENT", environment);
    items("FILES", files);
    examples_part(NULL);
    (void)fputs(".SH SEE ALSO\n.BR tenon.ini (5),\n.BR tenon\\-plugin (7)\n", to);
}

/* What an option takes, when it may be set, whose names it answers to. */
static void option_facts(const tn_option_info *o)
{
    text(o->type);
    if (*o->choices) {
        (void)fputs(": ", to);
        text(o->choices);
    }
    if (o->min <= o->max)
        (void)fprintf(to, ", %.10g to %.10g", o->min, o->max);
    if (*o->default_text) {
        (void)fputs("; default ", to);
        text(o->default_text);
    }
    if (o->flags & TN_OPTION_LIVE)
        (void)fputs("; may change while a program runs", to);
    if (o->flags & TN_OPTION_TRUSTED)
        (void)fputs("; not from ./tenon.ini or the environment", to);
    (void)fputs("; since ", to);
    text(o->since);
    (void)fputs(".\n", to);
    if (*o->env) {
        (void)fputs(".br\nAlso from: ", to);
        text(o->env);
        (void)fputc('\n', to);
    }
}

static void ini_page(const cli_command *none)
{
    char group[GROUP_BYTES] = "";

    (void)none;
    title("tenon.ini", "5", "configuration of Tenon");
    (void)fputs(
        ".SH DESCRIPTION\nLines \\fIkey\\fR = \\fIvalue\\fR below lines [\\fIsection\\fR]; what follows a "
        "semicolon is a comment; a line with blanks in front goes on with the value above it, a list has "
        "commas. An unknown key is an error that names the nearest one.\n.PP\n"
        "Read in this order, the later one wins: built-in values, /etc/tenon/tenon.ini, the user's "
        "tenon.ini, ./tenon.ini, \\-\\-config \\fIFILE\\fR, the environment, \\-\\-set "
        "\\fISECTION.KEY=VALUE\\fR. Options that say where plugins are may not stand in ./tenon.ini.\n"
        ".PP\nIn a key, * stands for one part: the type of a device, the name of a plugin, an operator.\n",
        to);
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};
        size_t length;

        if (tn_option_at(i, &o))
            continue;
        length = strcspn(o.key, ".");
        if (length < sizeof group && (strncmp(group, o.key, length) || group[length])) {
            (void)snprintf(group, sizeof group, "%.*s", (int)length, o.key);
            (void)fputs(".SH \"SECTION [", to);
            text(group);
            (void)fputs("]\"\n", to);
        }
        item(o.key, o.help);
        (void)fputs(".br\n", to);
        option_facts(&o);
    }
    items("ENVIRONMENT", environment);
    items("FILES", files);
    (void)fputs(".SH EXAMPLES\n.nf\n[engine]\nthreads = 4\n\n[train]\nepochs = 3 ; passes over the data\n"
                "lr = 0.1\n.fi\n.SH SEE ALSO\n.BR tenon (1),\n.BR tenon\\-plugin (7)\n",
                to);
}

static void plugin_page(const cli_command *none)
{
    uint32_t major = 0, minor = 0, draft = 0;
    const char *tag = tn_abi(&major, &minor, &draft);

    (void)none;
    title("tenon-plugin", "7", "how plugins of Tenon are found, checked and loaded");
    (void)fprintf(
        to,
        ".SH DESCRIPTION\nA plugin is a shared object that exports one symbol, tn_plugin_v%u, and "
        "carries a note with its name, version and the ABI that it needs. This library provides ABI "
        "%u.%u, draft %u, for ",
        major, major, minor, draft);
    text(tag);
    (void)fputs(
        ".\n.PP\nLooked through are the folders of the option plugins.path, in their order, then "
        "lib/tenon/plugins\\-1 beside libtenon.so. A file and all folders above it must belong to root, "
        "to the user or to the owner of the library, and nobody else may write there. The note is read "
        "before any code of the file runs; tenon\\-plugins\\-list(1) shows what was found. What is wanted "
        "is loaded at its first use, or at the start if plugins.require names it.\n",
        to);
    heading("REFUSALS");
    for (size_t i = 0; i < tn_error_count(); i++) {
        tn_error_info e = {.struct_size = TN_SIZE(tn_error_info)};
        char name[40];

        if (tn_error_at(i, &e) || !e.refusal)
            continue;
        (void)snprintf(name, sizeof name, "L%02u (TN-%04u)", (unsigned)e.refusal, (unsigned)e.number);
        item(name, e.sentence);
        if (*e.advice) {
            (void)fputs(".br\nWhat to do: ", to);
            text(e.advice);
            (void)fputc('\n', to);
        }
    }
    items("FILES", files);
    examples_part("plugins list");
    (void)fputs(".SH SEE ALSO\n.BR tenon (1),\n.BR tenon.ini (5)\n", to);
}

/* ---- the command ---- */

static const struct {
    const char *name, *section;
    void (*print)(const cli_command *command);
} other_pages[] = {
    {"tenon", "1", tool_page}, {"tenon.ini", "5", ini_page}, {"tenon-plugin", "7", plugin_page}};
#define OTHERS (sizeof other_pages / sizeof *other_pages)

/* Name of page number `index`, its section and command (NULL: none); false at the end. */
static bool page_at(size_t index, char name[NAME_BYTES], const char **section, const cli_command **command)
{
    *command = NULL;
    if (index < OTHERS) {
        (void)snprintf(name, NAME_BYTES, "%s", other_pages[index].name);
        *section = other_pages[index].section;
        return true;
    }
    *command = &cli_commands[index - OTHERS];
    *section = "1";
    if ((*command)->name)
        page_name(*command, name);
    return (*command)->name != NULL;
}

static void page_print(size_t index, const cli_command *command)
{
    if (command)
        command_page(command);
    else
        other_pages[index].print(NULL);
}

static const char *page_next(const void *from, size_t index)
{
    static char name[NAME_BYTES];
    const cli_command *command;
    const char *section;

    (void)from;
    return page_at(index, name, &section, &command) ? name : NULL;
}

static int page_write(size_t index, const char *folder)
{
    char name[NAME_BYTES];
    const cli_command *command;
    const char *section;
    char *path, *below;
    bool ok;

    if (!page_at(index, name, &section, &command))
        return -1;
    below = cli_format("%s/man%s", folder, section);
    path = below ? cli_format("%s/%s.%s", below, name, section) : NULL;
    ok = path && (!mkdir(below, 0777) || errno == EEXIST) && (to = fopen(path, "we"));
    if (ok) {
        page_print(index, command);
        ok = !ferror(to);
        ok = !fclose(to) && ok;
    }
    if (!ok && path)
        cli_error("%s: %s", path, strerror(errno));
    free(path);
    free(below);
    return ok ? 0 : CLI_EXIT_FAILED;
}

static int all_write(const char *folder)
{
    int code = 0;

    if (!cli_folders_make(folder)) {
        cli_error("%s: %s", folder, strerror(errno));
        return CLI_EXIT_FAILED;
    }
    for (size_t i = 0; code == 0; i++)
        code = page_write(i, folder);
    return code < 0 ? 0 : code;
}

/* One page on stdout, or as JSON. */
static int one_print(size_t index, const cli_command *command, const char *name, const char *section,
                     bool json)
{
    char *body = NULL;
    size_t bytes = 0;

    to = json ? open_memstream(&body, &bytes) : stdout;
    if (!to) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    page_print(index, command);
    if (json) {
        (void)fclose(to);
        cli_json_line(
            json_pack("{s:s, s:s, s:o}", "page", name, "section", section, "troff", cli_json_text(body)));
        free(body);
    }
    return 0;
}

int cmd_manual(const cli_args *args)
{
    const char *asked = args->word_count ? args->words[0] : "tenon", *section;
    const cli_command *command;
    char name[NAME_BYTES], page[NAME_BYTES], similar[CLI_SIMILAR_BYTES];

    if (args->value[OPT_INTO])
        return all_write(args->value[OPT_INTO]);
    (void)snprintf(page, sizeof page, "%s%.64s", strncmp(asked, "tenon", 5) ? "tenon-" : "", asked);
    for (size_t i = 0; page_at(i, name, &section, &command); i++)
        if (!strcmp(page, name))
            return one_print(i, command, name, section, args->value[OPT_JSON] != NULL);
    cli_error("manual: there is no page \"%s\"%s", page,
              cli_similar_text(cli_nearest(page, page_next, NULL), similar));
    return CLI_EXIT_USAGE;
}
