/*
 * What the commands of the tool share: parsed arguments, output, the terminal.
 *
 * Results go to stdout, everything else to stderr. A command returns the exit code: 0 ok · 1 the run failed ·
 * 2 usage, configuration, or an input is not there · 3 a plugin or device is missing · 4 data is damaged ·
 * 5 out of memory · 6 a peer was lost · 130 stopped on request.
 */
#ifndef TN_CLI_H
#define TN_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "tenon/nn.h"
#include "tenon/tenon.h"

#define CLI_EXIT_FAILED 1
#define CLI_EXIT_USAGE 2
#define CLI_EXIT_MISSING 3
#define CLI_EXIT_DATA 4
#define CLI_EXIT_MEMORY 5
#define CLI_EXIT_STOPPED 130

#define CLI_ABSENT 1501u      /* TN number of a file or folder that is not there */
#define CLI_NO_OPERATOR 1301u /* TN number of an operator that nothing here defines; its exit code is 3 */

#define CLI_LAUNCH_VARIABLE "TENON_KV_JOB_LAUNCH" /* number of the `tenon launch` that a process is of */

#define CLI_WORDS_MAX 64          /* arguments of a command that are no options */
#define CLI_WORDS_REST UINT32_MAX /* words_max: from the first word on all is another command */
#define CLI_SETTINGS_MAX 256      /* --set and options that stand for one */

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* ---- args.c ---- */

typedef enum cli_option_id {
    OPT_NONE, /* ends a list */
#define CLI_OPTION(id, letter, name, value, setting, help) OPT_##id,
#include "options.list"
#undef CLI_OPTION
    OPT_COUNT
} cli_option_id;

/* One option: a row of options.list. */
typedef struct cli_option {
    char letter;         /* 0: none */
    const char *name;    /* without the dashes */
    const char *value;   /* its name in the help; all in brackets: may be left out; NULL: takes none */
    const char *setting; /* the library's option it stands for, or NULL */
    const char *help;
} cli_option;

extern const cli_option cli_options[OPT_COUNT];
bool cli_option_may_stand_alone(const cli_option *o); /* its value may be left out */
extern const uint8_t cli_common_options[];            /* of every command; ended by OPT_NONE */

struct cli_args;

/* One command: a row of commands.list. */
typedef struct cli_command {
    const char *name;       /* "plugins list" */
    const char *words;      /* of the usage line: "MODEL" */
    const char *summary;    /* one line */
    const char *help;       /* further lines of --help, or NULL */
    const uint8_t *options; /* cli_option_id of its own, ended by OPT_NONE */
    uint32_t words_min, words_max;
    int (*run)(const struct cli_args *args);
} cli_command;

typedef struct cli_args {
    const cli_command *command;
    const char *value[OPT_COUNT]; /* NULL: not given; "": given without a value */
    const char *words[CLI_WORDS_MAX];
    size_t word_count;
    char *const *rest; /* with CLI_WORDS_REST: the other command, NULL-ended as argv is */
    size_t rest_count;
    char *settings[CLI_SETTINGS_MAX + 1]; /* "section.key=value" in the order given, NULL-ended; owned */
    size_t setting_count;
    struct {
        uint8_t id;
        const char *value;
    } given[CLI_SETTINGS_MAX]; /* all options in their order, repeated ones, too */
    size_t given_count;
    int argc; /* as main() got them */
    char *const *argv;
} cli_args;

/* Reads argv[first …]; what is wrong has been said. Returns false then. */
bool cli_args_parse(cli_args *args, const cli_command *command, int first, int argc, char *const *argv);
void cli_args_fini(cli_args *args);
bool cli_args_setting(cli_args *args, const char *key, const char *value);
/* The values of an option that was given several times, one by one; *cursor begins as 0. NULL: no more. */
const char *cli_args_each(const cli_args *args, cli_option_id id, size_t *cursor);
/* The name nearest to `text` by edit distance, or NULL if none is near. `next` gives name by name, then
 * NULL. */
const char *cli_similar(const char *text, const char *(*next)(const void *from, size_t index),
                        const void *from);
/* The same, or else a name that holds the text, or is a part of it. */
const char *cli_nearest(const char *text, const char *(*next)(const void *from, size_t index),
                        const void *from);
#define CLI_SIMILAR_BYTES 240
/* `; did you mean "NAME"?` for the end of a message, or "" if `similar` is NULL. Returns `text`. */
const char *cli_similar_text(const char *similar, char text[CLI_SIMILAR_BYTES]);

extern const cli_command cli_commands[]; /* ended by a row without name */

/* What an exit code means. */
typedef struct cli_exit {
    int code;
    const char *meaning, *more; /* more: for the manual pages, or NULL */
} cli_exit;
extern const cli_exit cli_exits[]; /* ended by a row without meaning */

/* ---- help.c ---- */

void cli_help(const cli_command *command, FILE *out); /* one command: words, options */
/* The sub-commands of a word such as "plugins"; false: there are none. */
bool cli_help_group(const char *word, FILE *out);
void cli_help_all(FILE *out); /* all commands, exit codes */

/* ---- out.c ---- */

/* "tenon: …" on stderr, and ends a bar that is being drawn. */
void cli_error(const char *format, ...) CLI_PRINTF(1, 2);
/* What a name holds must not steer the terminal. Bytes of the control character at `text`: C0, delete, or
 * C1 as UTF-8; 0: it is none. */
size_t cli_control(const char *text);
void cli_clean(char *text, char instead); /* `instead` for each */
/* To stdout with '?' for each but the end of the line; to stderr as tn_text_escape() shows them. */
void cli_say(FILE *out, const char *format, ...) CLI_PRINTF(2, 3);
void cli_error_set_before(void (*before)(void)); /* called before each message; NULL: none */
void cli_error_before(void);                     /* calls it: for what else goes to stderr */
/* One line of JSON on stdout; takes `value` (NULL: there was no memory for it). */
void cli_json_line(json_t *value);
json_t *cli_json_number(double value);           /* null if it is not finite */
json_t *cli_json_text(const char *text);         /* bytes that are no UTF-8 become '?' */
#define CLI_JSON_FLAGS (JSON_REAL_PRECISION(10)) /* of every number we write */
/* Whether all output reached its place; says so if not. */
bool cli_out_done(void);
/* Whole or absent: written aside, then renamed. A failure is the app's error. */
bool cli_json_save(tn_app *app, const char *path, const json_t *value);
bool cli_text_save(tn_app *app, const char *path, const char *text, size_t bytes);
/* The same in two steps, for several files that are there together or not at all. Begins as {0}. */
typedef struct cli_aside {
    char *path, *real, *aside; /* real: behind links; aside: NULL: it stands in its place already */
    bool replace;              /* a link, by the file; set before */
} cli_aside;
bool cli_aside_write(cli_aside *a, tn_app *app, const char *path, const char *text, size_t bytes);
bool cli_aside_name(cli_aside *a, tn_app *app); /* in its place; nothing was written: nothing to do */
void cli_aside_fini(cli_aside *a);              /* removes what got no name */
/* All folders of `path`, or those above the file `path`, which need not be there; errno says why not. What
 * writes to a path that the user names begins with it. */
bool cli_folders_make(const char *path);
bool cli_folders_above(const char *path);
/* Bytes of `path` that name a folder above it; what is made above the file behind them goes again with
 * cli_folders_back() where it is empty, so also after a success, which leaves the file there. */
size_t cli_folders_there(const char *path);
void cli_folders_back(const char *path, size_t there);
bool cli_failed_at(tn_app *app,
                   const char *path); /* "PATH: what errno says" becomes the app's error; false */
char *cli_format(const char *format, ...) CLI_PRINTF(1, 2); /* free(); NULL: out of memory, said */
char *cli_path(const char *folder, const char *name);
bool cli_is_folder(const char *path);
bool cli_ends_with(const char *text, const char *end);
void cli_time_text(char text[32]); /* now, UTC: 2026-03-01T10:00:04Z */
double cli_now(void);              /* monotonic seconds */

typedef struct cli_terminal {
    bool terminal; /* lines can be redrawn */
    bool color, utf8;
    int columns;
} cli_terminal;
cli_terminal cli_terminal_of(FILE *stream);
size_t cli_columns(const char *text); /* characters of UTF-8 */
/* Columns of stdout for a line; 0: it is no terminal, and a line is as long as it is. */
int cli_line_columns(void);
/* The line on stdout, which has `used` columns already: broken at blanks if there are `columns`, further
 * lines from column 4 on. Returns the columns that are used then. */
int cli_line_wrap(const char *text, int used, int columns);

/* ---- app.c ---- */

/* An app with what --config, --set, --device and ./tenon.ini say; `extra` settings (NULL-ended or NULL) are
 * weaker than --set. Its first error is reported when it is closed, or at once if opening failed. */
tn_app *cli_app_open(const cli_args *args, const char *const *extra);
/* tn_app_close() of a command that computes: says which plugins' options nobody has read. */
int cli_app_close(tn_app *app, const cli_args *args);

/* ---- commands ---- */

#define CLI_COMMAND(name, words, words_min, words_max, run, options, summary, help)                          \
    int run(const cli_args *args);
#include "commands.list"
#undef CLI_COMMAND

#endif
