#include "cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void cuda_setup(void)
{
    const char *tool = getenv("TENON_TEST_TOOL");

    if (!tool || access(tool, X_OK)) {
        printf("skipped: the tool is not built\n");
        exit(77);
    }
    if (!getenv("TENON_TEST_DRIVER") || !getenv("TENON_TEST_PLUGINS")) {
        printf("skipped: TENON_TEST_DRIVER and TENON_TEST_PLUGINS name no folders\n");
        exit(77);
    }
}

/* What the address sanitizer says of fibers once for each process is none of the program's words. */
static void fibers_drop(char *out)
{
    char *at, *end;

    while ((at = strstr(out, "WARNING: ASan doesn't fully support makecontext"))) {
        end = at + strcspn(at, "\n");
        while (at > out && at[-1] != '\n')
            at--;
        memmove(at, *end ? end + 1 : end, strlen(*end ? end + 1 : end) + 1);
    }
}

static const said *say(const char *driver, const char *settings, const char *command)
{
    static said s;
    char line[8192];
    size_t got;
    int status;
    FILE *from;

    (void)snprintf(line, sizeof line,
                   "T=\"$TENON_TEST_TOOL\"; exec 2>&1; %s%s%s export LD_LIBRARY_PATH; %s%s%s\n%s",
                   "LD_LIBRARY_PATH='", driver, "';", *settings ? "export " : "", settings,
                   *settings ? ";" : "", command);
    (void)fflush(stdout);
    from = popen(line, "r");
    assert_non_null(from);
    got = fread(s.out, 1, sizeof s.out - 1, from);
    s.out[got] = '\0';
    fibers_drop(s.out);
    while (fgetc(from) != EOF)
        ;
    status = pclose(from);
    s.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return &s;
}

const said *cuda_say(const char *settings, const char *command)
{
    return say(getenv("TENON_TEST_DRIVER"), settings, command);
}

const said *cuda_say_without(const char *settings, const char *command)
{
    return say("", settings, command);
}

void cuda_said(const said *s, const char *text)
{
    if (!strstr(s->out, text))
        fail_msg("'%s' is not in what was said (%d):\n%s", text, s->code, s->out);
}
