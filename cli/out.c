/*
 * Output: messages, JSON, files that are whole or absent, and what a terminal can show.
 */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_MAX 1000
#define LINKS_MAX 40 /* as the system's own */

static void (*before_error)(void); /* under the lock of stderr */
static int out_error;              /* errno of the first write to stdout that failed */

void cli_error_set_before(void (*before)(void))
{
    flockfile(stderr);
    before_error = before;
    funlockfile(stderr);
}

void cli_error_before(void)
{
    flockfile(stderr);
    if (before_error)
        before_error();
    funlockfile(stderr);
}

size_t cli_control(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
        return 2;
    return *c && (*c < ' ' || *c == 127);
}

void cli_clean(char *text, char instead)
{
    char *to = text;

    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = cli_control(text);
        *to++ = bytes ? instead : *text;
    }
    *to = '\0';
}

/* Messages show what steers a terminal as \xNN, results as '?', which keeps their columns. The end of the
 * last line is the format's own. */
static void CLI_PRINTF(3, 0) say(FILE *out, const char *before, const char *format, va_list args)
{
    const bool line = *format && format[strlen(format) - 1] == '\n';
    char small[512], *text = small, *clean = NULL;
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(small, sizeof small, format, args);
    if (length >= (int)sizeof small && (text = malloc((size_t)length + 1)))
        (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    text = text ? text : small; /* cut where there is no memory */
    if (line && *text)
        text[strlen(text) - 1] = '\0';
    if (out == stderr && (clean = malloc(4 * strlen(text) + 1)))
        (void)tn_text_escape(clean, 4 * strlen(text) + 1, text);
    else
        cli_clean(text, '?');
    (void)fprintf(out, "%s%s%s", before, clean ? clean : text, line ? "\n" : "");
    free(clean);
    if (text != small)
        free(text);
}

void cli_error(const char *format, ...)
{
    va_list args;

    flockfile(stderr);
    cli_error_before();
    va_start(args, format);
    say(stderr, "tenon: ", format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    funlockfile(stderr);
}

void cli_say(FILE *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(out, "", format, args);
    va_end(args);
}

char *cli_format(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && (text = malloc((size_t)length + 1))) {
        va_start(args, format);
        (void)vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    if (!text)
        cli_error("out of memory");
    return text;
}

char *cli_path(const char *folder, const char *name)
{
    return cli_format("%s/%s", folder, name);
}

bool cli_is_folder(const char *path)
{
    struct stat s;

    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

bool cli_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);

    return length >= tail && !strcmp(text + length - tail, end);
}

void cli_time_text(char text[32])
{
    time_t now = time(NULL);
    struct tm utc;

    if (!gmtime_r(&now, &utc) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc))
        text[0] = '\0';
}

double cli_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- JSON ---- */

json_t *cli_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value || !(copy = cli_format("%s", text)))
        return value;
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

static void out_note(bool failed)
{
    if (failed && !out_error)
        out_error = errno ? errno : EIO;
}

void cli_json_line(json_t *value)
{
    char *text = value ? json_dumps(value, CLI_JSON_FLAGS | JSON_COMPACT) : NULL;

    if (text) {
        out_note(puts(text) == EOF || fflush(stdout) == EOF);
        free(text);
    } else {
        cli_error("out of memory");
        out_note(true);
    }
    json_decref(value);
}

static bool stream_write(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fwrite(text, 1, bytes, file) == bytes && !fflush(file);

    return (!file || !fclose(file)) && ok;
}

bool cli_failed_at(tn_app *app, const char *path)
{
    const tn_status status = errno == ENOMEM ? TN_E_NOMEM : TN_E_IO;
    char *why = cli_format("%s: %s", path, strerror(errno ? errno : EIO));

    (void)tn_app_fail(app, status, why ? why : path);
    free(why);
    return false;
}

/* Where its last part begins, also of "folder/". */
static size_t name_of(const char *path)
{
    size_t n = strlen(path);

    while (n && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    return n;
}

/* Where the links of `path` lead, also to nothing yet; NULL: out of memory. */
static char *behind_links(const char *path)
{
    char *real = cli_format("%s", path), to[PATH_MAX];
    ssize_t n;

    for (int links = 0; real && links < LINKS_MAX; links++) {
        char *link = real;

        if ((n = readlink(link, to, sizeof to)) < 0)
            break;
        real = *to == '/' ? cli_format("%.*s", (int)n, to)
                          : cli_format("%.*s%.*s", (int)name_of(link), link, (int)n, to);
        free(link);
    }
    return real;
}

/* Devices and pipes are written to as they are: a rename would put a file in their place. A link stays a
 * link unless it is to be replaced. A folder is told of before anything is written. */
bool cli_aside_write(cli_aside *a, tn_app *app, const char *path, const char *text, size_t bytes)
{
    struct stat s;
    const bool there = !(a->replace ? lstat : stat)(path, &s);
    const int error = there ? S_ISDIR(s.st_mode) ? EISDIR : 0 : errno == ELOOP ? ELOOP : 0;
    const bool plain = !there || S_ISREG(s.st_mode) || S_ISLNK(s.st_mode);

    a->real = plain && !a->replace ? behind_links(path) : NULL;
    a->path = cli_format("%s", path);
    a->aside = plain ? cli_format("%s.tmp-%ld", a->real ? a->real : path, (long)getpid()) : NULL;
    if (!a->path || (plain && (!a->aside || (!a->real && !a->replace))))
        return !tn_app_fail(app, TN_E_NOMEM, "out of memory");
    errno = error;
    return (!errno && stream_write(plain ? a->aside : path, text, bytes)) || cli_failed_at(app, path);
}

bool cli_aside_name(cli_aside *a, tn_app *app)
{
    errno = 0;
    if (a->aside && rename(a->aside, a->real ? a->real : a->path))
        return cli_failed_at(app, a->path);
    free(a->aside);
    a->aside = NULL;
    return true;
}

void cli_aside_fini(cli_aside *a)
{
    if (a->aside)
        (void)unlink(a->aside);
    free(a->aside);
    free(a->real);
    free(a->path);
}

bool cli_text_save(tn_app *app, const char *path, const char *text, size_t bytes)
{
    cli_aside a = {.path = NULL};
    const bool ok = cli_aside_write(&a, app, path, text, bytes) && cli_aside_name(&a, app);

    cli_aside_fini(&a);
    return ok;
}

static bool part_make(const char *path)
{
    int error;

    if (!mkdir(path, 0777))
        return true;
    error = errno == EEXIST ? ENOTDIR : errno;
    if (cli_is_folder(path))
        return true;
    errno = error;
    return false;
}

/* Of the first `length` bytes of a path, part by part. */
static bool parts_make(const char *path, size_t length)
{
    char *part = cli_format("%.*s", (int)length, path);
    bool ok = part != NULL;

    errno = part ? 0 : ENOMEM;
    for (size_t i = 1; ok && i <= length; i++)
        if (part[i] == '/' || !part[i]) {
            const char kept = part[i];

            part[i] = '\0';
            ok = part_make(part);
            part[i] = kept;
        }
    free(part);
    return ok;
}

bool cli_folders_make(const char *path)
{
    return parts_make(path, strlen(path));
}

/* Bytes without the last part; 0: nothing is above. */
static size_t above_of(const char *path)
{
    const size_t n = name_of(path);

    return n ? n - 1 : 0;
}

bool cli_folders_above(const char *path)
{
    return parts_make(path, above_of(path));
}

size_t cli_folders_there(const char *path)
{
    char *part = cli_format("%s", path);
    size_t n = part ? above_of(path) : strlen(path);

    for (; part && n; n = above_of(part)) {
        part[n] = '\0';
        if (cli_is_folder(part))
            break;
    }
    free(part);
    return n;
}

void cli_folders_back(const char *path, size_t there)
{
    char *part = cli_format("%s", path);

    for (size_t n = above_of(path); part && n > there; n = above_of(part)) {
        part[n] = '\0';
        if (rmdir(part)) /* it holds something */
            break;
    }
    free(part);
}

bool cli_json_save(tn_app *app, const char *path, const json_t *value)
{
    char *text = json_dumps(value, CLI_JSON_FLAGS | JSON_INDENT(2)), *line;
    bool ok;

    line = text ? cli_format("%s\n", text) : NULL;
    ok = line ? cli_text_save(app, path, line, strlen(line)) : !tn_app_fail(app, TN_E_NOMEM, "out of memory");
    free(line);
    free(text);
    return ok;
}

/* Where stdio met the error inside some printf nobody looked at errno: one more byte, which ends the last
 * line of what is cut short anyway, meets it again. */
static void out_ask(void)
{
    errno = 0;
    out_note(write(STDOUT_FILENO, "\n", 1) <= 0 || ferror(stdout));
}

bool cli_out_done(void)
{
    errno = 0;
    if (fflush(stdout) == EOF)
        out_note(true);
    else if (ferror(stdout) && !out_error)
        out_ask();
    if (out_error && out_error != EPIPE) /* `| head` has seen enough */
        cli_error("cannot write to standard output: %s", strerror(out_error));
    return !out_error;
}

/* ---- the terminal ---- */

static int columns_of(FILE *stream)
{
    const char *text = getenv("COLUMNS");
    struct winsize size;
    long columns = 0;

    if (!ioctl(fileno(stream), TIOCGWINSZ, &size) && size.ws_col)
        columns = size.ws_col;
    else if (text)
        columns = strtol(text, NULL, 10);
    if (columns <= 0)
        return COLUMNS_DEFAULT;
    return columns > COLUMNS_MAX ? COLUMNS_MAX : (int)columns;
}

size_t cli_columns(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

int cli_line_columns(void)
{
    const cli_terminal t = cli_terminal_of(stdout);

    return t.terminal ? t.columns : 0;
}

int cli_line_wrap(const char *text, int used, int columns)
{
    const int indent = 4;

    while (*text) {
        const size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " ");
        int wide = 0;

        for (size_t i = 0; i < word; i++)
            wide += ((unsigned char)text[blanks + i] & 0xc0) != 0x80;
        if (columns && used > indent && used + (int)blanks + wide >= columns) {
            (void)printf("%s%*s", word ? "\n" : "", word ? indent : 0, "");
            used = word ? indent : used;
        } else if (word || !columns) {
            (void)printf("%*s", (int)blanks, "");
            used += (int)blanks;
        }
        (void)printf("%.*s", (int)word, text + blanks);
        used += wide;
        text += blanks + word;
    }
    return used;
}

cli_terminal cli_terminal_of(FILE *stream)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    cli_terminal t = {0};

    t.terminal = isatty(fileno(stream)) && term && *term && strcmp(term, "dumb");
    t.color = t.terminal && !(no_color && *no_color);
    t.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    t.columns = columns_of(stream);
    return t;
}
