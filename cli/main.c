/*
 * tenon: one tool with sub-commands. commands.list is all there is to know of them: parsing, help and
 * suggestions read it.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define CLI_NONE ((const uint8_t[]){OPT_NONE})
#define CLI_TAKES(...) ((const uint8_t[]){__VA_ARGS__, OPT_NONE})
#define CLI_COMMAND(name, words, words_min, words_max, run, options, summary, help)                          \
    {name, words, summary, help, options, words_min, words_max, run},

const cli_command cli_commands[] = {
#include "commands.list"
    {.name = NULL},
};
#undef CLI_COMMAND

const cli_exit cli_exits[] = {
    {0, "ok", NULL},
    {CLI_EXIT_FAILED, "failed",
     "what was asked for could not be done, or a file that is there could not be read, or one not written"},
    {CLI_EXIT_USAGE, "usage or configuration",
     "also where a file, folder, run, model or data set that is to be read is not there"},
    {CLI_EXIT_MISSING, "plugin, operator or device missing", "also where the file of a plugin is not there"},
    {CLI_EXIT_DATA, "data damaged", "an input is there, but it is not what it has to be"},
    {CLI_EXIT_MEMORY, "out of memory", NULL},
    {6, "peer lost", NULL},
    {CLI_EXIT_STOPPED, "interrupted and saved", NULL},
    {0, NULL, NULL},
};

static const char *command_name(const void *from, size_t index)
{
    (void)from;
    return cli_commands[index].name;
}

/* A command's first word, for suggestions on that alone. */
static const char *group_name(const void *from, size_t index)
{
    static char word[32];

    (void)from;
    if (!cli_commands[index].name)
        return NULL;
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(cli_commands[index].name, " "),
                   cli_commands[index].name);
    return word;
}

/* The command that argv names, and in `*first` where its arguments begin. */
static const cli_command *command_find(int argc, char *const *argv, int *first)
{
    const char *word = strcmp(argv[1], "--version") ? argv[1] : "version";

    for (const cli_command *c = cli_commands; c->name; c++) {
        size_t length = strcspn(c->name, " ");

        if (strncmp(c->name, word, length) || word[length])
            continue;
        *first = 2;
        if (!c->name[length])
            return c;
        *first = 3;
        if (argc > 2 && !strcmp(argv[2], c->name + length + 1))
            return c;
    }
    return NULL;
}

static int unknown(int argc, char *const *argv)
{
    bool help = argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"));
    const char *similar = NULL;
    char both[96], text[CLI_SIMILAR_BYTES];

    if (argc < 3 || argv[2][0] == '-') {
        if (cli_help_group(argv[1], help ? stdout : stderr))
            return help ? 0 : CLI_EXIT_USAGE;
        (void)snprintf(both, sizeof both, "%s", argv[1]);
        similar = cli_similar(both, group_name, NULL);
    } else {
        (void)snprintf(both, sizeof both, "%s %s", argv[1], argv[2]);
        similar = cli_similar(both, command_name, NULL);
        if (!similar) {
            (void)snprintf(both, sizeof both, "%s", argv[1]);
            similar = cli_similar(both, group_name, NULL);
        }
    }
    cli_error("unknown command \"%s\"%s; `tenon --help` lists them", both, cli_similar_text(similar, text));
    return CLI_EXIT_USAGE;
}

/* A closed stream must not give its number to a file that we open and then print into. */
static void streams_hold(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY}; /* what is wrong with 1 comes out at the end */

    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", modes[fd]);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error of writing, which is told */
}

static int run(int argc, char *const *argv)
{
    const cli_command *command;
    cli_args args;
    bool help = false;
    int first, code;

    if (argc < 2) {
        cli_help_all(stderr);
        return CLI_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2)) {
        cli_help_all(stdout);
        return 0;
    }
    if ((help = !strcmp(argv[1], "help")))
        argc--, argv++;
    command = command_find(argc, argv, &first);
    if (help && !command && argc == 2 && cli_help_group(argv[1], stdout))
        return 0;
    if (!command)
        return unknown(argc, argv);
    if (help) {
        cli_help(command, stdout);
        return 0;
    }
    if (!cli_args_parse(&args, command, first, argc, argv)) {
        cli_args_fini(&args);
        return CLI_EXIT_USAGE;
    }
    if (args.value[OPT_HELP]) {
        cli_help(command, stdout);
        code = 0;
    } else {
        code = command->run(&args);
    }
    cli_args_fini(&args);
    return code;
}

/* OpenMP threads that wait spin for a while. libgomp's own choice costs ten times the work where other
 * programs share the cores; a few microseconds are as good on an idle machine. It is read when the first
 * kernel plugin loads. */
static void openmp_settle(void)
{
    if (!getenv("OMP_WAIT_POLICY"))
        (void)setenv("GOMP_SPINCOUNT", "2000", 0);
}

/* A library below a plugin may end the process: libgomp does where it cannot start a thread or finds no
 * memory. What it said stands above. */
static volatile bool returned; /* from the command */

static void ended_below(void)
{
    static const char text[] =
        "error[TN-0008]: a library that a plugin uses ended the process, as it does for want of memory or "
        "threads; "
        "raise `ulimit -v` or `ulimit -u`, or take fewer threads: --set engine.threads=1\n";

    if (returned)
        return;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(CLI_EXIT_MEMORY);
}

int main(int argc, char **argv)
{
    int code;

    (void)atexit(ended_below);
    openmp_settle();
    streams_hold();
    (void)setlocale(LC_CTYPE, ""); /* what the terminal can show; numbers stay as in C */
    code = run(argc, argv);
    if (!cli_out_done() && code == 0)
        code = CLI_EXIT_FAILED;
    returned = true;
    return code;
}
