/*
 * The conformance kit: what `tenon plugins check FILE` runs.
 *
 * The kit is a host of its own: it opens the file, hands it service tables that it made (exact, old, future)
 * and calls its functions directly, so nothing stands between a defect and its test. Operators' definitions,
 * inference and reference kernels come through the public headers from libtenon. Of core/ only what
 * core/LAYERS names is included.
 *
 * A *test* is a row of tests.list: group, name, the rule it proves, and a function. Tests of kernels,
 * operators and pools run once for each of those: that is a *case*, named group/test/subject. A case runs in
 * a child with a time limit, so that a crash or a hang is a result, not the end. Most cases have their child
 * to themselves; those of rows of CHK_MANY and CHK_TWIN share one, until the first of them that fails.
 */
#ifndef TN_CHECK_H
#define TN_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tenon/plugin/archive.h"
#include "tenon/plugin/collective.h"
#include "tenon/plugin/image.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/pool.h"
#include "tenon/plugin/transport.h"
#include "tenon/tenon.h"

#if defined(__GNUC__)
#define CHK_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define CHK_PRINTF(text, first)
#endif

typedef enum chk_result { CHK_PASS, CHK_FAIL, CHK_CRASH, CHK_SKIP } chk_result;

typedef struct chk_env chk_env;

/* ---- host.c: the kit as a host --------------------------------------------------------------- */

typedef enum chk_host_kind {
    CHK_HOST_EXACT,  /* tables of today */
    CHK_HOST_OLD,    /* tables end at the minor that the plugin needs, a guard page behind each */
    CHK_HOST_FUTURE, /* tables are longer, the tail is poisoned */
    CHK_HOST_BARE,   /* no service at all: every one is optional */
    CHK_HOST_KINDS
} chk_host_kind;

typedef struct chk_host chk_host;

/* One plugin, opened by the kit. */
typedef struct chk_plugin {
    const tn_plugin *descriptor;
    void *self; /* what init gave */
    chk_host *host;
    void *handle; /* of dlopen */
} chk_plugin;

/* The descriptor of env's file, opened but not initialised: to name subjects. Fails the case if there is
 * none. */
const tn_plugin *chk_descriptor(chk_env *env);
/* A table of the descriptor by kind and id (id NULL: any), the one after `after` (NULL: the first); NULL: no
 * more. */
const void *chk_capability(chk_env *env, uint32_t kind, const char *id, const void *after);
/* Opens env's file and calls init; fails the case if that fails. */
bool chk_plugin_open(chk_env *env, chk_host_kind kind, chk_plugin *out);
/* The same, but hands out what init says: `out->self` is set on TN_OK only. */
tn_status chk_plugin_try(chk_env *env, chk_host_kind kind, chk_plugin *out, tn_err *err);
/* init again on a host that was made before. */
tn_status chk_plugin_init(chk_env *env, chk_plugin *plugin, tn_err *err);
/* fini, then the host's accounts: blocks and threads left behind fail the case. */
bool chk_plugin_close(chk_env *env, chk_plugin *plugin);
/* Live blocks that the plugin took from the host's memory service and by its own malloc and friends; `bytes`
 * (or NULL): in them. */
uint64_t chk_host_memory(const chk_host *host, uint64_t *bytes);
/* Fails the case (M-leak) if there are more than `before`; the text says what left them. */
void chk_host_left(const chk_host *host, uint64_t before, const char *format, ...) CHK_PRINTF(3, 4);
/* Allocation number `nth` from now fails (of the memory service, of the plugin's own malloc and friends and
 * of threads), counted from 1; 0: none. True from chk_host_failed if it was reached. */
void chk_host_fail_at(chk_host *host, uint64_t nth);
bool chk_host_failed(const chk_host *host);
/* The host as the plugin sees it: for tn_prepare_ops.host. */
const tn_host *chk_host_table(const chk_host *host);
chk_host_kind chk_host_kind_of(const chk_host *host);
/* Sets an option of [plugin.NAME]. Texts are borrowed. */
void chk_host_option(chk_host *host, const char *key, const char *value);

/* ---- structs.c: structs in three lengths ----------------------------------------------------- */

/*
 * A copy of the struct at `from` (it begins with struct_size) as a host of `kind` would hand it to the
 * plugin. `now`: end of the last member known today; `old`: end of the last one at the minor that the plugin
 * needs (CHK_NOW, CHK_OLD below). Exact: as it is. Old: struct_size is `old`, and the page behind may not be
 * touched. Future: struct_size is larger, and what comes after `now` is poison. Lives as long as the case, or
 * until chk_struct_free. For structs that the plugin fills in, chk_struct_intact tells whether it kept to its
 * bytes.
 */
void *chk_struct_make(chk_env *env, chk_host_kind kind, const void *from, uint32_t now, uint32_t old);
bool chk_struct_intact(const void *made);
void chk_struct_free(void *made);

/* With T and its last member of today: chk_struct_make(env, kind, &x, CHK_SIZES(tn_exec, ops)). All structs
 * are of minor 0 up to now; a struct that grows gets a table of its ends by minor here. */
#define CHK_SIZES(T, last) (uint32_t) TN_END(T, last), (uint32_t)TN_END(T, last)

/* ---- memory.c: buffers that tell ------------------------------------------------------------- */

#define CHK_GUARD_END 1u   /* the last byte lies before a page that nobody may touch */
#define CHK_GUARD_START 2u /* the first byte lies behind one */
#define CHK_READ_ONLY 4u   /* after chk_buffer_lock */

typedef struct chk_buffer chk_buffer;
/* `bytes` bytes at `offset` behind a 64-byte boundary (as near as `bytes` allows with CHK_GUARD_END),
 * canaries around. Gone with the case at the latest. */
chk_buffer *chk_buffer_create(chk_env *env, uint64_t bytes, uint64_t offset, uint32_t flags);
void *chk_buffer_data(const chk_buffer *b);
void *chk_buffer_pages(const chk_buffer *b, uint64_t *bytes); /* data and canaries */
void chk_buffer_lock(chk_buffer *b);                          /* read-only from here on */
void chk_buffer_unlock(chk_buffer *b);
/* Nobody may touch it any more: who does fails `rule`. `what` goes into the message. */
void chk_buffer_end(chk_buffer *b, const char *rule, const char *what);
bool chk_buffer_intact(const chk_buffer *b,
                       uint64_t *offset); /* canaries; offset of the first damaged byte from
                                             the data's start, as int64 where it lies before */
/* What a fault beside the buffer names: "input ", "data", "data float32(3,5)". The texts outlive it. */
void chk_buffer_owner(chk_buffer *b, const char *kind, const char *name, const char *problem);
/* Of the page behind it: what a fault there breaks, and is called. The texts outlive the buffer. */
void chk_buffer_guard(chk_buffer *b, const char *rule, const char *what);
void chk_buffer_destroy(chk_buffer *b);

/*
 * Touching a guard page, or writing to a locked buffer, is no CRASH but a FAIL of the rules named here (texts
 * are borrowed; "K-bounds" and "K-readonly" at first). `who` goes into the message: "kernel relu_acme".
 */
void chk_fault_rules(chk_env *env, const char *bounds, const char *read_only, const char *who);

/* ---- process.c: what a plugin may not change in its process ---------------------------------- */

/* Signal handlers, environment, affinity, rounding and floating point modes, locale, umask, folder, files
 * open, threads, OpenMP's number of threads: that one is another than usual until chk_process_free, so that
 * setting the usual one shows. */
typedef struct chk_process chk_process;
chk_process *chk_process_snapshot(chk_env *env);
/* NULL if nothing changed since; else one line that says what did (valid until the next call). `ignore`:
 * below. */
const char *chk_process_changed(const chk_process *before, uint32_t ignore);
void chk_process_free(chk_process *p);
#define CHK_PROCESS_FILES 1u
#define CHK_PROCESS_THREADS 2u

/* ---- report.c: what a test says -------------------------------------------------------------- */

/* What a case knows. */
struct chk_env {
    const char *file;    /* the plugin's file */
    const char *subject; /* name of the kernel, operator, pool, device; "" */
    uint64_t seed;
    tn_ctx *ctx;           /* rows of CHK_TEST: a context of libtenon with the plugins beside it: definitions,
                              reference kernels; NULL in rows of CHK_BARE and while subjects are named */
    const char *folder;    /* for temporary files of this case */
    uint32_t sizes;        /* 0: quick, 1: full */
    struct chk_twin *twin; /* rows of CHK_TWIN: see below */
    void *internal;
};

/* Ends the case: FAIL with the rule's name ("R7", "K-modes"; NULL: the test's). The first one counts. Does
 * not return; may be called from any thread of the case. */
_Noreturn void chk_fail(chk_env *env, const char *rule, const char *format, ...) CHK_PRINTF(3, 4);
/* The same where something is wrong. The arguments are computed in any case. */
void chk_fail_if(chk_env *env, bool wrong, const char *rule, const char *format, ...) CHK_PRINTF(4, 5);
_Noreturn void chk_skip(chk_env *env, const char *format, ...) CHK_PRINTF(2, 3);
/* Counts one thing that was looked at: a case that counted none fails. Any thread. */
void chk_count(chk_env *env);
uint64_t chk_random(chk_env *env); /* of the case's seed; the case's own thread only */

/* ---- twin.c: a case in two processes ---------------------------------------------------------- */

/*
 * Cases of CHK_TWIN rows run in two processes that parted before either had a context or the plugin. The test
 * asks which one it is in. The second one writes notes and returns, the first one waits for that and reads
 * them; a defect that the second one comes across is the case's.
 */
typedef struct chk_twin chk_twin;
bool chk_twin_is_second(const chk_env *env);
/* Memory that both have at one address, for what the second one notes; NULL: there is no room. */
void *chk_twin_take(chk_env *env, uint64_t bytes);
void chk_twin_note(chk_env *env, uint32_t name, const void *what); /* a name once, 16 at most */
/* What the first one reads; NULL: the second one noted none. */
const void *chk_twin_read(chk_env *env, uint32_t name);

/* ---- tests ----------------------------------------------------------------------------------- */

typedef struct chk_names chk_names;
void chk_name_add(chk_names *names, const char *subject); /* copied */
void chk_subject_plugin(chk_env *env, chk_names *names);  /* the plugin is the only subject: "" */
void chk_subject_devices(chk_env *env, chk_names *names); /* every device table by its id */
void chk_subject_pools(chk_env *env, chk_names *names);   /* every pool table by its id */
void chk_subject_archives(chk_env *env, chk_names *names);
void chk_subject_transports(chk_env *env, chk_names *names);
void chk_subject_collectives(chk_env *env, chk_names *names);
void chk_subject_images(chk_env *env, chk_names *names);

typedef struct chk_test {
    const char *group, *name; /* "kernel", "modes" */
    const char *rule;         /* of docs/plugins.md: "K-modes" */
    const char *what;         /* one line for people */
    uint32_t limit_s;         /* time limit of a case, on an idle machine without sanitizers */
    void (*subjects)(chk_env *env, chk_names *names);
    void (*run)(chk_env *env);
    bool bare; /* no context, and no thread but the case's own at the start */
    bool twin; /* in two processes */
    bool many; /* cases of several subjects share a process, as long as they pass or are skipped */
} chk_test;

extern const chk_test chk_tests[]; /* tests.list; ended by a row without name */

/* ---- run.c: all cases of one file ------------------------------------------------------------ */

typedef struct chk_case_result {
    const char *group, *test, *subject, *rule;
    chk_result result;
    int32_t signal; /* of CHK_CRASH; 0: it ran into its limit, or ended by itself */
    uint64_t seed, counted;
    double seconds;
    const char *message;
    const char *output;  /* what the case's process wrote, its last lines; "" */
    size_t index, count; /* of all cases */
} chk_case_result;

typedef struct chk_options {
    const char *file;
    const char *only;     /* "kernel", "kernel/modes", "kernel/modes/NAME"; NULL: all */
    uint64_t seed;        /* 0: 1 */
    uint32_t sizes, jobs; /* jobs 0: as many as processors */
    bool reproduce;       /* one case, in this process, under a debugger: `only` is its whole name */
    const char *const *files, *const *settings;             /* for the context, as --config and --set */
    void (*done)(void *arg, const chk_case_result *result); /* after each case, in the order of the table */
    void *arg;
} chk_options;

typedef struct chk_summary {
    uint32_t passed, failed, crashed, skipped;
    char message[1024]; /* why no case could run, or that the file has none of `only`; "" */
} chk_summary;

/* TN_OK: all cases ran, see `out`. Else no case could run, and out->message says why: TN_E_KEY: `only` names
 * nothing of the kit · TN_E_DEVICE: the plugin cannot be opened · TN_E_IO, TN_E_NOMEM. The process must have
 * no other thread. */
tn_status chk_run(const chk_options *options, chk_summary *out);

/* ---- library.c: the kit as a library --------------------------------------------------------- */

/* The one symbol of libtenon-check.so. A tool of another version finds other structs in it. */
typedef struct chk_library {
    const char *version; /* "0.1.0" */
    tn_status (*run)(const chk_options *options, chk_summary *out);
} chk_library;

extern const chk_library tn_check_library;

#endif
