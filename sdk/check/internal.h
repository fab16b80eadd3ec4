/*
 * What the files of the kit share beside check.h.
 */
#ifndef TN_CHECK_INTERNAL_H
#define TN_CHECK_INTERNAL_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "check.h"
#include "waiting.h"

#define CHK_MESSAGE_BYTES 900

/* ---- tests.c ---- */

#define CHK_TEST(group, name, rule, what, limit, subjects, run)                                              \
    void subjects(chk_env *env, chk_names *names);                                                           \
    void run(chk_env *env);
#define CHK_BARE CHK_TEST
#define CHK_TWIN CHK_TEST
#define CHK_MANY CHK_TEST
#include "tests.list"
#undef CHK_TEST
#undef CHK_MANY
#undef CHK_BARE
#undef CHK_TWIN

/* ---- report.c ---- */

/* What a case came to. */
typedef struct chk_verdict {
    chk_result result;
    char rule[32];
    char message[CHK_MESSAGE_BYTES];
} chk_verdict;

/* The same, as it crosses the pipe. */
typedef struct chk_told {
    chk_verdict verdict;
    uint64_t counted, written; /* written: bytes of output behind this case, of all cases of the process */
} chk_told;

/* One running case: env->internal. */
typedef struct chk_case {
    const chk_test *test;
    pthread_t thread; /* the one that may jump */
    jmp_buf back;
    bool jumps; /* `back` is set */
    int pipe;   /* where the verdict goes; -1: reproduce */
    chk_verdict verdict;
    chk_verdict *twin; /* of the second process of a case: where its verdict goes instead */
    atomic_uint_fast64_t counted;
    atomic_int speaker; /* the thread that says the verdict, which is the first one; 0: none yet */
    uint64_t random;    /* of the case's numbers the next */
    const char *bounds_rule, *read_only_rule, *fault_who;
    void *handle; /* of dlopen */
    const tn_plugin *descriptor;
    const char *const *settings; /* of the caller: "key=value", NULL-ended; NULL: none */
    tn_ctx *given;                            /* has the plugin's definitions */
    struct chk_lab *lab;                      /* that is open; NULL: none */
    bool (*needs)(const struct chk_lab *lab); /* of chk_lab_need */
    const char *needs_text;
    uint32_t inits;  /* that went well */
    atomic_int open; /* of these, those without fini up to now */
} chk_case;

static inline chk_case *chk_case_of(chk_env *env)
{
    return env->internal;
}

/* Writes the verdict to the pipe. Async-signal-safe. */
void chk_verdict_send(chk_case *c);
/* True: what this thread says is the verdict. False: it said one before. Where another thread was first it
 * does not return: that one ends the process. Async-signal-safe. */
bool chk_speak(chk_case *c);

/* ---- load_init.c ---- */

/* How long init on a host of today takes; `st` is what it says, and a plugin that is open is closed again. */
uint64_t chk_init_ns(chk_env *env, chk_host *host, tn_status *st, tn_err *err);
#define CHK_INIT_LIMIT_NS 100000000u /* rule R8 */

/* ---- twin.c ---- */

#define CHK_TWIN_CASES 16u        /* of one pair of processes at most */
void chk_twin_part(chk_env *env); /* the process in two; the two go on to the next case where they are */
/* In the first: waits until the second one is through with the case; what it failed by is the verdict. In the
 * second, and where there is none: nothing. */
void chk_twin_await(chk_env *env);
void chk_twin_join(
    chk_env *env);               /* in the first, behind its last case: waits for the end of the second one */
void chk_twin_end(chk_env *env); /* in the second: it is through with the case; else nothing */

/* ---- host.c ---- */

chk_host *chk_host_create(chk_env *env, chk_host_kind kind);
void chk_host_accounts(const chk_host *host); /* fails the case if something is left */
bool chk_host_intact(const chk_host *host);   /* nothing was written behind its tables */

/* ---- imports.c ---- */

bool chk_imports_redirect(void *handle);
#define CHK_THREADS_MS 3000u                               /* in which a thread that is to end does */
void chk_imports_memory(uint64_t *bytes, uint64_t *count); /* that the plugin holds of its own malloc's */
uint32_t chk_imports_exits(void);                          /* calls of atexit up to now */
uint32_t chk_imports_sockets(void);                        /* calls of socket */
uint32_t chk_imports_threads(void);                        /* that the plugin began, and that still run */
void chk_allocation_arm(uint64_t nth);
long long chk_allocation_armed(void); /* -1: the one that was to fail was reached */
bool chk_allocation_fails(void);      /* counts one */
/* Between the two no allocation fails or is counted: the kit itself uses the plugin. */
long long chk_allocation_hold(void);
void chk_allocation_go_on(long long held);

/* ---- memory.c ---- */

/* Whose memory a buffer is: "input ", "data", "data float32(3,5)". kind NULL: nothing is known. */
typedef struct chk_owner {
    const char *kind, *name, *problem;
} chk_owner;

/* A page range that nobody may touch; `what` and `rule` as of now. Used by the handler of faults. */
typedef struct chk_guard {
    uintptr_t from, to;     /* to: behind the last byte */
    const char *rule;       /* NULL: the case's rule for its kind */
    const char *what;       /* "tn_exec beyond its struct_size" */
    uint32_t kind;          /* CHK_GUARD_… */
    const chk_owner *owner; /* of the buffer that it belongs to; NULL: of none */
} chk_guard;
#define CHK_GUARD_BOUNDS 0u
#define CHK_GUARD_LOCKED 1u
chk_guard *chk_guard_add(chk_env *env, const void *from, uint64_t bytes, uint32_t kind, const char *what);
/* A page for the life of the process: whoever touches it breaks `rule` and is told of `what`. */
const void *chk_page_closed(chk_env *env, const char *rule, const char *what);
void chk_faults_catch(chk_env *env); /* installs the handler: once for each process */

/* ---- lab.c ---- */

extern const tn_host chk_host_bare; /* has no services */

/* ---- near.c ---- */

/* Names that somebody may have meant, the nearest first; the rest is "". */
#define CHK_NEAR 3u
typedef struct chk_near {
    char name[CHK_NEAR][256];
    size_t far[CHK_NEAR];
} chk_near;
void chk_near_add(chk_near *near, const char *wanted, const char *name); /* once for each name */

/* ---- case.c, run.c ---- */

/* Subjects go into a file that the parent reads. */
struct chk_names {
    FILE *file;
    uint32_t test; /* index in chk_tests */
};

void chk_case_init(chk_case *c, const chk_test *test, int pipe);
/* The next case of the same process, whose context and plugin it finds open. */
void chk_case_next(chk_case *c, const chk_test *test);
/* Runs the case in this process; its verdict is in env's case and in the pipe. */
void chk_case_run(chk_env *env, const chk_options *options);
/* Names the subjects of all tests of a group ("": of all) and name. */
/* Names the cases of `group` and `name` ("": all). Of a file that the core refuses for its constructors: the
 * tests that run nothing of it; any other refusal is the verdict. */
void chk_case_subjects(chk_env *env, chk_names *names, const chk_options *options, const char *group,
                       const char *name);
bool chk_threads_sanitized(void);
uint32_t chk_patience(void); /* by how much limits are longer in this build */

#endif
