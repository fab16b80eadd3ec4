/*
 * tenon plugins check: the conformance kit over files. The kit is a library that comes with the headers; it
 * is found from where libtenon lies. It forks, so this process opens no context of its own: the path of a
 * plugin given by name is found by a child.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/plugins.h"
#include "plugins/rules.h"

#include "check.h"

#define CLI_EXIT_MISSING 3
#define KIT_FILE "tenon/libtenon-check.so"

typedef struct checking {
    const cli_args *args;
    const chk_library *kit;
    cli_terminal terminal; /* of stderr, for progress */
    const char *file;
    json_t *results; /* of the file, with --json or --junit */
    chk_summary sum; /* of all files */
    uint64_t looked;
    double seconds;
    char *told;    /* the last message of a case that failed */
    char *nothing; /* what is said where no file has a case of --only; NULL: some has, so far */
} checking;

static const char *const result_names[] = {
    [CHK_PASS] = "PASS", [CHK_FAIL] = "FAIL", [CHK_CRASH] = "CRASH", [CHK_SKIP] = "SKIP"};

/* ---- the kit ---- */

/* NULL: it is not there, or cannot be used, which was said. */
static const chk_library *kit_open(void)
{
    char path[PATH_MAX + sizeof KIT_FILE];
    const chk_library *kit;
    Dl_info core;
    void *handle;

    if (!dladdr((const void *)(uintptr_t)&tn_version, &core) || !realpath(core.dli_fname, path)) {
        cli_error("cannot find where libtenon lies, and with it %s", KIT_FILE);
        return NULL;
    }
    (void)strcpy(strrchr(path, '/') + 1, KIT_FILE);
    if (access(path, F_OK)) {
        cli_error(
            "the conformance kit is not installed: there is no %s; it comes with the headers for plugins "
            "(libtenon-dev)",
            path);
        return NULL;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    kit = handle ? dlsym(handle, "tn_check_library") : NULL;
    if (!kit) {
        cli_error("the conformance kit cannot be opened: %s", dlerror());
        return NULL;
    }
    if (strcmp(kit->version, tn_version()) == 0)
        return kit;
    cli_error("the conformance kit %s is of version %s, libtenon of %s: install both from one release", path,
              kit->version, tn_version());
    return NULL;
}

/* ---- text ---- */

static void name_print(FILE *out, const chk_case_result *r)
{
    (void)fprintf(out, "%s/%s%s%s", r->group, r->test, *r->subject ? "/" : "", r->subject);
}

/* A message that many cases give in a row stands once. */
static void line_print(checking *k, const chk_case_result *r)
{
    const bool bad = r->result == CHK_FAIL || r->result == CHK_CRASH;
    const bool again = r->result == CHK_FAIL && k->told && strcmp(k->told, r->message) == 0 && !*r->output;

    (void)printf("%-5s ", result_names[r->result]);
    name_print(stdout, r);
    if (*r->message)
        (void)printf(": %s%s%s", bad ? r->rule : "", bad ? ": " : "", again ? "the same" : r->message);
    (void)putchar('\n');
    if (!bad || again)
        return;
    free(k->told);
    k->told = strdup(r->message);
    (void)printf("      reproduce: tenon plugins check %s --seed %llu --reproduce ", k->file,
                 (unsigned long long)r->seed);
    name_print(stdout, r);
    (void)putchar('\n');
    for (const char *at = r->output; *at;) {
        size_t length = strcspn(at, "\n");

        (void)printf("      | %.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

static void progress(const checking *k, const chk_case_result *r)
{
    if (k->args->value[OPT_QUIET] || !k->terminal.terminal)
        return;
    (void)fprintf(stderr, "\r%zu of %zu", r->index + 1, r->count);
    if (r->index + 1 == r->count)
        (void)fputs("\r                    \r", stderr);
    (void)fflush(stderr);
}

static void done(void *arg, const chk_case_result *r)
{
    checking *k = arg;

    k->looked += r->counted;
    k->seconds += r->seconds;
    if (!k->args->value[OPT_JSON])
        line_print(k, r);
    progress(k, r);
    if (k->results)
        (void)json_array_append_new(
            k->results,
            json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:i, s:I, s:I, s:o}", "group", r->group, "test",
                      r->test, "subject", cli_json_text(r->subject), "result", result_names[r->result],
                      "rule", r->rule, "message", cli_json_text(r->message), "output",
                      cli_json_text(r->output), "signal", (int)r->signal, "seed", (json_int_t)r->seed,
                      "looked_at", (json_int_t)r->counted, "seconds", cli_json_number(r->seconds)));
}

/* ---- JUnit ---- */

static void xml_text(FILE *out, const char *text)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};

    for (; *text; text++) {
        size_t i = 0;

        while (i < sizeof names / sizeof *names && names[i].letter != *text)
            i++;
        if (i < sizeof names / sizeof *names)
            (void)fputs(names[i].name, out);
        else if ((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t')
            (void)fputc(*text, out);
        else
            (void)fputc('?', out);
    }
}

static void xml_attribute(FILE *out, const char *name, const char *text)
{
    (void)fprintf(out, " %s=\"", name);
    xml_text(out, text);
    (void)fputc('"', out);
}

static const char *field(const json_t *result, const char *name)
{
    const char *text = json_string_value(json_object_get(result, name));

    return text ? text : "";
}

static void xml_case(FILE *out, const char *file, const json_t *result)
{
    const char *outcome = field(result, "result");
    char name[600];

    (void)snprintf(name, sizeof name, "%s%s%s", field(result, "test"), *field(result, "subject") ? "/" : "",
                   field(result, "subject"));
    (void)fputs("  <testcase", out);
    xml_attribute(out, "classname", field(result, "group"));
    xml_attribute(out, "name", name);
    xml_attribute(out, "file", file);
    (void)fprintf(out, " time=\"%.3f\">", json_number_value(json_object_get(result, "seconds")));
    if (strcmp(outcome, "PASS") != 0) {
        const char *element = strcmp(outcome, "FAIL") == 0   ? "failure"
                              : strcmp(outcome, "SKIP") == 0 ? "skipped"
                                                             : "error";

        (void)fprintf(out, "<%s", element);
        xml_attribute(out, "message", field(result, "message"));
        xml_attribute(out, "type", field(result, "rule"));
        (void)fputc('>', out);
        xml_text(out, field(result, "output"));
        (void)fprintf(out, "</%s>", element);
    }
    (void)fputs("</testcase>\n", out);
}

/* `files`: an array of {file, results}. */
static bool junit_write(const char *path, const json_t *files)
{
    FILE *out = cli_folders_above(path) ? fopen(path, "w") : NULL;
    size_t i, c;
    const json_t *file, *result;

    if (!out) {
        cli_error("%s cannot be written: %s", path, strerror(errno));
        return false;
    }
    (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    json_array_foreach(files, i, file)
    {
        const json_t *results = json_object_get(file, "results");

        (void)fputs(" <testsuite", out);
        xml_attribute(out, "name", field(file, "file"));
        (void)fprintf(out, " tests=\"%zu\">\n", json_array_size(results));
        json_array_foreach(results, c, result) xml_case(out, field(file, "file"), result);
        (void)fputs(" </testsuite>\n", out);
    }
    (void)fputs("</testsuites>\n", out);
    if (ferror(out) | fclose(out)) {
        cli_error("%s cannot be written: %s", path, strerror(errno));
        return false;
    }
    return true;
}

/* ---- files ---- */

/* In a child, whose context goes with it: the path of the plugin called `name`, into `out`. */
static void path_find(const cli_args *args, const char *name, int out)
{
    const char *const config[] = {args->value[OPT_CONFIG], NULL};
    const tn_open_options open = {.struct_size = TN_SIZE(tn_open_options),
                                  .files = config,
                                  .settings = (const char *const *)args->settings};
    tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};
    tn_ctx *ctx;
    size_t count = 0;

    if (tn_open(&open, &ctx)) {
        cli_error("%s", tn_error_text());
        return;
    }
    (void)tn_plugin_count(ctx, &count);
    for (size_t i = 0; i < count; i++)
        if (!tn_plugin_at(ctx, i, &p) && strcmp(p.name, name) == 0 && *p.path) {
            (void)!write(out, p.path, strlen(p.path));
            return;
        }
    cli_error("no plugin called %s was found; `tenon plugins list` shows them, a file is given with its path",
              name);
}

static bool path_of_name(const cli_args *args, const char *name, char path[PATH_MAX])
{
    int ends[2], status;
    size_t got = 0;
    ssize_t n;
    pid_t pid;

    if (pipe(ends) || (pid = fork()) < 0) {
        cli_error("no process to look for %s: %s", name, strerror(errno));
        return false;
    }
    if (!pid) {
        (void)close(ends[0]);
        path_find(args, name, ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    while (got < PATH_MAX - 1 && (n = read(ends[0], path + got, PATH_MAX - 1 - got)) > 0)
        got += (size_t)n;
    path[got] = '\0';
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    return got > 0;
}

static bool path_of(const cli_args *args, const char *word, char path[PATH_MAX])
{
    if (!cli_plugin_is_file(word))
        return path_of_name(args, word, path);
    if (realpath(word, path))
        return true;
    cli_error("%s: %s", word, strerror(errno));
    return false;
}

static bool number_read(const cli_args *args, cli_option_id id, const char *name, uint64_t *out)
{
    const char *text = args->value[id];
    char *end;

    if (!text)
        return true;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno)
        return true;
    cli_error("--%s %s: a number from 0 is needed", name, text);
    return false;
}

/* Of several files the last one that has names like it. */
static void nothing_keep(checking *k, const char *message)
{
    if (k->nothing && !strstr(message, "near: "))
        return;
    free(k->nothing);
    k->nothing = cli_format("%s %s", k->file, message);
}

static int check_file(checking *k, const chk_options *options, json_t *files)
{
    chk_summary sum;
    tn_status st;

    k->file = options->file;
    k->results = files ? json_array() : NULL;
    free(k->told);
    k->told = NULL;
    st = k->kit->run(options, &sum);
    if (st)
        cli_error("%s: %s", options->file, sum.message);
    else if (*sum.message)
        nothing_keep(k, sum.message);
    if (files)
        (void)json_array_append_new(files, json_pack("{s:o, s:o, s:o}", "file", cli_json_text(options->file),
                                                     "refused", st ? cli_json_text(sum.message) : json_null(),
                                                     "results", k->results));
    k->sum.passed += sum.passed;
    k->sum.failed += sum.failed;
    k->sum.crashed += sum.crashed;
    k->sum.skipped += sum.skipped;
    if (st)
        return st == TN_E_KEY ? CLI_EXIT_USAGE : st == TN_E_DEVICE ? CLI_EXIT_MISSING : CLI_EXIT_FAILED;
    return sum.failed || sum.crashed ? CLI_EXIT_FAILED : 0;
}

static void summary_print(const checking *k, json_t *files)
{
    if (k->args->value[OPT_JSON])
        cli_json_line(json_pack("{s:O, s:i, s:i, s:i, s:i}", "files", files, "passed", (int)k->sum.passed,
                                "failed", (int)k->sum.failed, "crashed", (int)k->sum.crashed, "skipped",
                                (int)k->sum.skipped));
    else
        (void)printf("%u passed, %u failed, %u crashed, %u skipped; looked at %llu things\n",
                     (unsigned)k->sum.passed, (unsigned)k->sum.failed, (unsigned)k->sum.crashed,
                     (unsigned)k->sum.skipped, (unsigned long long)k->looked);
}

static int tests_list(const cli_args *args)
{
    json_t *list = args->value[OPT_JSON] ? json_array() : NULL;

    for (const cli_rule *t = cli_rules; t->test; t++)
        if (list)
            (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "group", t->group, "test",
                                                        t->test, "rule", t->name, "what", t->what));
        else
            (void)printf("%-10s %s/%s: %s\n", t->name, t->group, t->test, t->what);
    if (list)
        cli_json_line(json_pack("{s:o}", "tests", list));
    return 0;
}

static int files_check(checking *k, chk_options *options)
{
    const cli_args *args = k->args;
    bool kept = args->value[OPT_JSON] || args->value[OPT_JUNIT];
    json_t *files = kept ? json_array() : NULL;
    int worst = 0;

    for (size_t i = 0; i < args->word_count; i++) {
        char path[PATH_MAX];
        int code = CLI_EXIT_MISSING;

        options->file = path;
        if (path_of(args, args->words[i], path))
            code = check_file(k, options, files);
        worst = code > worst ? code : worst;
    }
    summary_print(k, files);
    if (!worst && k->nothing && !(k->sum.passed + k->sum.failed + k->sum.crashed + k->sum.skipped)) {
        cli_error("%s", k->nothing); /* a misspelt line must not be green */
        worst = CLI_EXIT_USAGE;
    }
    free(k->told);
    free(k->nothing);
    if (args->value[OPT_JUNIT] && !junit_write(args->value[OPT_JUNIT], files) && !worst)
        worst = CLI_EXIT_FAILED;
    json_decref(files);
    return worst;
}

int cmd_plugins_check(const cli_args *args)
{
    const char *const config[] = {args->value[OPT_CONFIG], NULL};
    checking k = {.args = args, .terminal = cli_terminal_of(stderr)};
    uint64_t seed = 1, jobs = 0;
    chk_options options = {.only = args->value[OPT_ONLY],
                           .files = config,
                           .settings = (const char *const *)args->settings,
                           .sizes = args->value[OPT_FULL] ? 1 : 0,
                           .done = done,
                           .arg = &k};

    if (args->value[OPT_LIST])
        return tests_list(args);
    if (!args->word_count) {
        cli_error("which file? `tenon plugins check FILE...`");
        return CLI_EXIT_USAGE;
    }
    if (!number_read(args, OPT_SEED, "seed", &seed) || !number_read(args, OPT_JOBS, "jobs", &jobs))
        return CLI_EXIT_USAGE;
    if (args->value[OPT_REPRODUCE]) {
        options.only = args->value[OPT_REPRODUCE];
        options.reproduce = true;
    }
    options.seed = seed;
    options.jobs = jobs > UINT32_MAX ? UINT32_MAX : (uint32_t)jobs;
    if (!(k.kit = kit_open()))
        return CLI_EXIT_MISSING;
    return files_check(&k, &options);
}
