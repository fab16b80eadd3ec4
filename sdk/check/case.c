/*
 * One case, in the process it has for itself: the context if its row asks for one, the handler of faults, the
 * test, the verdict.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate.h"
#include "internal.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define THREADS_SANITIZED 1
#else
#define THREADS_SANITIZED 0
#endif
#if defined(__SANITIZE_ADDRESS__) || THREADS_SANITIZED || __has_feature(address_sanitizer)
#define PATIENCE 4u
#else
#define PATIENCE 1u
#endif

uint32_t chk_patience(void)
{
    return PATIENCE;
}

bool chk_threads_sanitized(void)
{
    return THREADS_SANITIZED;
}

/* The same seed gives each case numbers of its own. */
static void random_begin(chk_env *env)
{
    chk_case *c = chk_case_of(env);
    const char *const names[] = {c->test->group, "/", c->test->name, "/", env->subject};
    uint64_t state = env->seed;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const char *at = names[i]; *at; at++)
            state = (state ^ (unsigned char)*at) * 0x100000001B3ULL;
    c->random = chk_mix(state);
}

/* Only what the files beside libtenon say, and what the caller sets: a check must not hang on the user's
 * settings. */
static void context_open(chk_env *env, const chk_options *options)
{
    const tn_open_options open = {.struct_size = TN_SIZE(tn_open_options),
                                  .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                                  .files = options->files,
                                  .settings = options->settings};

    if (tn_open(&open, &env->ctx))
        chk_fail(env, "kit", "no context of libtenon: %s", tn_error_text());
}

/* What `jump` may clobber lies in the case. */
static void run_caught(chk_env *env, const chk_options *options)
{
    chk_case *c = chk_case_of(env);

    if (setjmp(c->back))
        return;
    c->jumps = true;
    c->settings = options ? options->settings : NULL;
    if (c->test->twin)
        chk_twin_part(env);
    if (!c->test->bare && !env->ctx)
        context_open(env, options);
    c->test->run(env);
    chk_twin_await(env);
    chk_fail_if(env, !atomic_load(&c->counted) && !chk_twin_is_second(env), "kit", "looked at nothing");
    if (chk_speak(c))
        c->verdict.result = CHK_PASS;
}

void chk_case_init(chk_case *c, const chk_test *test, int pipe)
{
    memset(c, 0, sizeof *c);
    c->test = test;
    c->thread = pthread_self();
    c->pipe = pipe;
    c->bounds_rule = "K-bounds";
    c->read_only_rule = "K-readonly";
}

void chk_case_next(chk_case *c, const chk_test *test)
{
    const tn_plugin *descriptor = c->descriptor;
    chk_verdict *twin = c->twin;
    tn_ctx *given = c->given;
    void *handle = c->handle;

    chk_case_init(c, test, c->pipe);
    c->twin = twin;
    c->descriptor = descriptor;
    c->given = given;
    c->handle = handle;
}

void chk_case_run(chk_env *env, const chk_options *options)
{
    chk_case *c = chk_case_of(env);

    random_begin(env);
    chk_faults_catch(env);
    run_caught(env, options);
    c->jumps = false;
    (void)fflush(NULL);
    chk_verdict_send(c);
    chk_twin_end(env);
}

/* ---- subjects ---- */

void chk_subject_plugin(chk_env *env, chk_names *names)
{
    (void)env;
    chk_name_add(names, "");
}

static void tables_add(chk_env *env, chk_names *names, uint32_t kind)
{
    for (const tn_capability *at = NULL; (at = chk_capability(env, kind, NULL, at));)
        chk_name_add(names, at->id ? at->id : "?");
}

void chk_subject_devices(chk_env *env, chk_names *names)
{
    tables_add(env, names, TN_KIND_DEVICE);
}

void chk_subject_pools(chk_env *env, chk_names *names)
{
    tables_add(env, names, TN_KIND_POOL);
}

void chk_subject_archives(chk_env *env, chk_names *names)
{
    tables_add(env, names, TN_KIND_ARCHIVE);
}

void chk_subject_transports(chk_env *env, chk_names *names)
{
    tables_add(env, names, TN_KIND_TRANSPORT);
}

void chk_subject_collectives(chk_env *env, chk_names *names)
{
    tables_add(env, names, TN_KIND_COLLECTIVE);
}

void chk_subject_images(chk_env *env, chk_names *names)
{
    tables_add(env, names, TN_KIND_IMAGE);
}

/* Of tests that read the file's bytes, and of the core's own checks: nothing of the plugin runs. */
void chk_subject_file(chk_env *env, chk_names *names)
{
    chk_subject_plugin(env, names);
}

#define REFUSED_BY_ITS_CONSTRUCTORS 3019u /* TN number of L19 */

/* A file that the core would not map is not opened here either.
 * True: what its bytes say can be tested still. */
static bool bytes_only(chk_env *env, const chk_options *options)
{
    const chk_test *test = chk_case_of(env)->test;
    const size_t name = strlen(env->file);
    const char *why = "";
    uint32_t number = 0;
    size_t index;
    tn_ctx *ctx;

    context_open(env, options);
    ctx = env->ctx;
    if (tn_plugin_open(ctx, env->file, &index)) {
        number = tn_error_number();
        why = tn_error_text();
        if (!strncmp(why, env->file, name) && !strncmp(why + name, ": ", 2)) /* the report names it itself */
            why += name + 2;
    }
    if (number > 3000 && number < 3100 && number != REFUSED_BY_ITS_CONSTRUCTORS)
        chk_fail(env, "L-accepted", "the core refuses the file, so nothing of it was run: L%02u: %s",
                 number - 3000, why);
    env->ctx = NULL;
    (void)tn_close(ctx);
    chk_case_of(env)->test = test;
    return number == REFUSED_BY_ITS_CONSTRUCTORS;
}

static bool named(const chk_test *t, const char *group, const char *name)
{
    return (!*group || strcmp(t->group, group) == 0) && (!*name || strcmp(t->name, name) == 0);
}

static void subjects_caught(chk_env *env, chk_names *names, const chk_options *options, const char *group,
                            const char *name)
{
    chk_case *c = chk_case_of(env);
    bool only_bytes;

    if (setjmp(c->back))
        return;
    c->jumps = true;
    only_bytes = bytes_only(env, options);
    if (!only_bytes)
        (void)chk_descriptor(env); /* fails here once for all tests */
    for (const chk_test *t = chk_tests; t->name; t++) {
        if (only_bytes ? t->subjects != chk_subject_file : !named(t, group, name))
            continue;
        c->test = t;
        names->test = (uint32_t)(t - chk_tests);
        t->subjects(env, names);
    }
    c->verdict.result = CHK_PASS;
}

void chk_case_subjects(chk_env *env, chk_names *names, const chk_options *options, const char *group,
                       const char *name)
{
    chk_case *c = chk_case_of(env);

    subjects_caught(env, names, options, group, name);
    (void)fflush(names->file);
    c->jumps = false;
    chk_verdict_send(c);
}
