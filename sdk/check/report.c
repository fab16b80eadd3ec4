/*
 * What a test says. The first verdict of a case counts. On the case's own thread it jumps back to the runner;
 * on any other thread there is nothing to go back to, so the process ends there.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "generate.h"
#include "internal.h"
#include "lab.h"

void chk_verdict_send(chk_case *c)
{
    const chk_told told = {.verdict = c->verdict,
                           .counted = atomic_load(&c->counted),
                           .written = (uint64_t)lseek(STDOUT_FILENO, 0, SEEK_CUR)};
    const char *at = (const char *)&told;
    size_t sent = 0;

    if (c->twin)
        *c->twin = c->verdict;
    if (c->twin || c->pipe < 0)
        return;
    while (sent < sizeof told) {
        ssize_t n = write(c->pipe, at + sent, sizeof told - sent);

        if (n <= 0)
            break;
        sent += (size_t)n;
    }
}

bool chk_speak(chk_case *c)
{
    const int self = (int)syscall(SYS_gettid);
    int speaker = 0;

    if (atomic_compare_exchange_strong(&c->speaker, &speaker, self))
        return true;
    while (speaker != self)
        (void)pause();
    return false;
}

static _Noreturn void say(chk_env *env, chk_result result, const char *rule, const char *format, va_list args)
{
    chk_case *c = chk_case_of(env);

    while (!chk_speak(c))
        (void)pause();
    c->verdict.result = result;
    (void)snprintf(c->verdict.rule, sizeof c->verdict.rule, "%s", rule ? rule : c->test->rule);
    (void)vsnprintf(c->verdict.message, sizeof c->verdict.message, format, args);
    for (char *at = c->verdict.message; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    if (c->jumps && pthread_equal(pthread_self(), c->thread))
        longjmp(c->back, 1);
    chk_verdict_send(c);
    _exit(0);
}

_Noreturn void chk_fail(chk_env *env, const char *rule, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(env, CHK_FAIL, rule, format, args);
}

void chk_fail_if(chk_env *env, bool wrong, const char *rule, const char *format, ...)
{
    va_list args;

    if (!wrong)
        return;
    va_start(args, format);
    say(env, CHK_FAIL, rule, format, args);
}

/* A case that is skipped leaves the process to the next one. */
static void lab_drop(chk_env *env)
{
    const chk_case *c = chk_case_of(env);

    if (c->lab && c->jumps && pthread_equal(pthread_self(), c->thread))
        chk_lab_close(c->lab);
}

_Noreturn void chk_skip(chk_env *env, const char *format, ...)
{
    va_list args;

    lab_drop(env);
    va_start(args, format);
    say(env, CHK_SKIP, NULL, format, args);
}

void chk_count(chk_env *env)
{
    atomic_fetch_add_explicit(&chk_case_of(env)->counted, 1, memory_order_relaxed);
}

/* xorshift128+: the kit's own, so that a seed means the same everywhere. */
uint64_t chk_random(chk_env *env)
{
    return chk_mix(chk_case_of(env)->random++);
}
