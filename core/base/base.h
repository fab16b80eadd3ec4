/*
 * The interface of room base: what every other room may use. Each block is implemented in the file
 * named at its head.
 *
 * Rules: memory goes through mem.c, files through file.c, time through clock.c, threads through thread.c, so
 * that tests can make each of them fail. Sizes are computed by the tni_size_ functions. Nothing here prints
 * or exits.
 */
#ifndef TN_BASE_H
#define TN_BASE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/limits.h"
#include "tenon/base.h"          /* tn_status and TN_API */
#include "tenon/plugin/philox.h" /* tn_philox: random bits of a counter */

#if defined(__GNUC__)
#define TN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TN_LIKELY(x) __builtin_expect(!!(x), 1)
#define TN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#endif

/* ---- status.c: errors -------------------------------------------------------------------------------
 * Thread-local, 512 bytes, never allocates. The first function that knows what is wrong calls tni_error. */

tn_status tni_error(tn_status code, const char *format, ...) TN_PRINTF(2, 3); /* returns `code` */
tn_status tni_error_number(uint32_t number, tn_status code, const char *format, ...)
    TN_PRINTF(3, 4); /* TN number */
/* What a plugin's function returned and said: the text becomes "who: message". */
tn_status tni_error_take(tn_status st, const tn_err *err, const char *who);
void tni_error_clear(void);
void tni_error_get(tn_err *out);        /* copy of this thread's error */
void tni_error_set(const tn_err *err);  /* puts a copy back, on any thread */
const char *tni_error_message(void);    /* "" if there is none */
const char *tni_status_name(tn_status); /* "TN_E_SHAPE" */
void tni_err_format(tn_err *out, tn_status code, const char *format, ...)
    TN_PRINTF(3, 4); /* fills a given struct */

/* One row of errors.list, for messages and `tenon explain`. Rows 1 to 15 stand for a status as such. */
typedef struct tni_error_row {
    uint32_t number, refusal; /* refusal: 5 is L05; 0: none */
    tn_status status;
    int32_t exit_code;
    const char *sentence, *advice;
} tni_error_row;
#define TNI_ABSENT 1501u /* number of the row for a file that is to be read and is not there */
const tni_error_row *tni_error_rows(size_t *count);
const tni_error_row *tni_error_row_find(uint32_t number); /* NULL: no such number */

/* ---- size.c (inline): checked arithmetic; false: does not fit -------------------------------- */

static inline bool tni_size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out) && *out <= TN_SIZE_MAX;
}

static inline bool tni_size_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out) && *out <= TN_SIZE_MAX;
}

/* Rounds up to a multiple of `align`, a power of two. */
static inline bool tni_size_align(uint64_t a, uint64_t align, uint64_t *out)
{
    return tni_size_add(a, align - 1, out) && ((*out &= ~(align - 1)), true);
}

/* ---- mem.c: counted host memory that can fail on demand -------------------------------------- */

void *tni_alloc(uint64_t bytes); /* NULL: out of memory (error set); 0 bytes gives a valid pointer */
void *tni_zalloc(uint64_t bytes);
void *tni_calloc(uint64_t count, uint64_t bytes);        /* zeroed; product checked */
void *tni_realloc(void *p, uint64_t bytes);              /* on failure `p` stays */
void *tni_alloc_aligned(uint64_t align, uint64_t bytes); /* freed by tni_free_aligned */
void tni_free(void *p);
void tni_free_aligned(void *p);
char *tni_strdup(const char *text);
char *tni_strndup(const char *text, size_t bytes);

uint64_t tni_mem_bytes(const void *p); /* what a block of ours counts for */

typedef struct tni_mem_stats {
    uint64_t live_bytes, live_count, peak_bytes, alloc_count;
} tni_mem_stats;
void tni_mem_stats_get(tni_mem_stats *out);
/* Test seam: allocation number `nth` from now (1 = the next) fails, and if `forever` all after it. 0 switches
 * it off. Counted on the calling thread only if `this_thread`. */
void tni_mem_fail_at(uint64_t nth, bool forever, bool this_thread);
bool tni_mem_failed(void); /* true if an injected failure was hit since tni_mem_fail_at */

/* ---- str.c: growing text, with a maximum ----------------------------------------------------- */

typedef struct tni_str {
    char *text; /* ends in NUL once anything was added; NULL before */
    size_t length, capacity, max;
    tn_status status; /* first failure sticks; later calls do nothing */
} tni_str;
void tni_str_init(tni_str *s, size_t max);
void tni_str_fini(tni_str *s);
tn_status tni_str_add(tni_str *s, const char *text);
tn_status tni_str_add_bytes(tni_str *s, const void *bytes, size_t count);
tn_status tni_str_addf(tni_str *s, const char *format, ...) TN_PRINTF(2, 3);
tn_status tni_str_add_json(tni_str *s, const char *text, size_t length); /* quoted and escaped JSON string */
tn_status tni_str_take(tni_str *s, char **out);   /* [moves] the text to the caller (tni_free); "" if empty */
bool tni_str_equal(const char *a, const char *b); /* both NULL are equal */
/* Copies `text` for a message: UTF-8 stays, bytes that are none, control characters and those that turn the
 * direction of writing become \xNN. Cut at a whole character or \xNN; returns the length written. */
size_t tni_text_escape(char *out, size_t size, const char *text);
/* Locale-free reading and writing of numbers; false unless all of `text` is one number. */
bool tni_parse_i64(const char *text, int64_t *out);
bool tni_parse_u64(const char *text, uint64_t *out);
bool tni_parse_f64(const char *text, double *out);        /* also inf, nan, 1e-3 */
int tni_format_f64(char *out, size_t size, double value); /* shortest text that reads back equal */
/* Names of `names` (NULL-ended) nearest to `wrong` by edit distance, at most 3, written into `out`; count
 * returned. */
size_t tni_suggest(const char *wrong, const char *const *names, const char *out[3]);
/* "; did you mean a, b or c?", or "" if nothing is near. */
void tni_suggest_text(const char *wrong, const char *const *names, char *out, size_t size);
size_t tni_edit_distance(const char *a, const char *b, size_t limit);

/* ---- keep.c: blocks that are wanted again and again ----------------------------------------- */

typedef struct tni_keep tni_keep;
/* Keeps at most `bytes_max` bytes of blocks that were given back. Any thread may take and give. */
tn_status tni_keep_create(uint64_t bytes_max, tni_keep **out);
void tni_keep_destroy(tni_keep *k);               /* frees what is kept; NULL is fine */
void tni_keep_trim(tni_keep *k);                  /* the same, and goes on */
void *tni_keep_take(tni_keep *k, uint64_t bytes); /* NULL: out of memory (error set); not zeroed */
void *tni_keep_zeroed(tni_keep *k, uint64_t count, uint64_t bytes); /* product checked */
void tni_keep_give(tni_keep *k, void *p); /* a block that this, or another one, gave; NULL is fine */
uint64_t tni_keep_bytes(tni_keep *k);     /* kept now */
#ifdef TN_TEST_SWITCHES
void tni_keep_nothing(
    bool on); /* of the test build: all is freed at once, so that a sanitizer sees who uses it */
#endif

/* ---- vec.c: growing array of fixed-size items, with a maximum -------------------------------- */

typedef struct tni_vec {
    void *data;
    size_t count, capacity, item_bytes, max;
    tni_keep *keep; /* where its memory comes from; NULL: mem.c */
} tni_vec;
void tni_vec_init(tni_vec *v, size_t item_bytes, size_t max);
void tni_vec_init_kept(tni_vec *v, tni_keep *keep, size_t item_bytes, size_t max);
void tni_vec_fini(tni_vec *v);
tn_status tni_vec_push(tni_vec *v, const void *item);           /* copies item_bytes */
tn_status tni_vec_extend(tni_vec *v, size_t count, void **out); /* appends zeroed items */
tn_status tni_vec_reserve(tni_vec *v, size_t count);
void *tni_vec_at(const tni_vec *v, size_t index);

/* ---- map.c: hash maps; text keys are copied. Keyed hash, so hostile keys cost nothing extra ---- */

typedef struct tni_map tni_map;
tn_status tni_map_create(size_t max, tni_map **out);
void tni_map_destroy(tni_map *m);
tn_status tni_map_set(tni_map *m, const char *key, void *value); /* replaces */
bool tni_map_get(const tni_map *m, const char *key, void **out); /* `out` may be NULL */
bool tni_map_remove(tni_map *m, const char *key);
size_t tni_map_count(const tni_map *m);
/* Iterates in insertion order: *cursor starts at 0; false at the end. */
bool tni_map_next(const tni_map *m, size_t *cursor, const char **key, void **value);
uint64_t tni_hash_bytes(uint64_t seed, const void *bytes,
                        size_t count); /* fast, 64 bits, the same in each run */

/* ---- arena.c: allocate much, free once ------------------------------------------------------- */

typedef struct tni_arena tni_arena;
tn_status tni_arena_create(size_t max_bytes, tni_arena **out);
void tni_arena_destroy(tni_arena *a);
void *tni_arena_alloc(tni_arena *a,
                      size_t bytes); /* zeroed, 16-byte aligned; NULL: out of memory (error set) */
char *tni_arena_strdup(tni_arena *a, const char *text);

/* ---- refcount (inline) ----------------------------------------------------------------------- */

typedef struct tni_refcount {
    atomic_uint count;
} tni_refcount;
static inline void tni_ref_init(tni_refcount *r)
{
    atomic_init(&r->count, 1u);
}
static inline void tni_ref_retain(tni_refcount *r)
{
    atomic_fetch_add_explicit(&r->count, 1u, memory_order_relaxed);
}
/* How many there are; sound where the caller keeps others from taking one. */
static inline uint32_t tni_ref_count(tni_refcount *r)
{
    return (uint32_t)atomic_load_explicit(&r->count, memory_order_acquire);
}

/* True for the last one: the caller destroys. */
static inline bool tni_ref_release(tni_refcount *r)
{
    return atomic_fetch_sub_explicit(&r->count, 1u, memory_order_acq_rel) == 1u;
}

/* ---- file.c ---------------------------------------------------------------------------------- */

typedef struct tni_file tni_file; /* a file being read: plain, or .gz if asked, whole size known or bounded */
tn_status tni_file_open(const char *path, tni_file **out);
tn_status tni_file_open_gz(const char *path, uint64_t max_bytes,
                           tni_file **out); /* inflates if it begins 1f 8b */
tn_status tni_file_open_memory(const void *bytes, uint64_t count, tni_file **out); /* borrows */
void tni_file_close(tni_file *f);
tn_status tni_file_read(tni_file *f, void *out, uint64_t bytes); /* exactly; TN_E_FORMAT at a short file */
tn_status tni_file_read_some(tni_file *f, void *out, uint64_t bytes, uint64_t *got); /* 0 at the end */
/* Exactly the bytes that begin at `at` of a plain file, wherever its reader stands; any thread. TN_E_FORMAT:
 * the file is shorter. */
tn_status tni_file_read_at(const tni_file *f, uint64_t at, void *out, uint64_t bytes);
tn_status tni_file_skip(tni_file *f, uint64_t bytes);
uint64_t tni_file_left(const tni_file *f); /* bytes known to be left; of a .gz: what its bound still allows */
const char *tni_file_name(const tni_file *f);
/* ---- kind.c: files of another kind than a reader expects ---- */
#define TNI_KIND_PARAMS "a .params file"
#define TNI_KIND_SYMBOL "a -symbol.json"
#define TNI_KIND_IDX "an IDX file"
#define TNI_KIND_NPY "a .npy file"
#define TNI_KIND_CSV "a CSV file"
#define TNI_KIND_LIBSVM "a LibSVM file"
#define TNI_KIND_CHECKPOINT "a checkpoint"
#define TNI_KIND_BYTES 512u /* that are looked at */
/* For a reader of `wanted` that does not understand how its file begins. TN_OK: the first bytes tell nothing;
 * else the error that says what the file is: TN_E_FORMAT,
 * or TN_E_UNSUPPORTED for files of other libraries. */
tn_status tni_kind_check(const char *name, const char *wanted, const void *head, uint64_t bytes);
tn_status tni_file_kind_check(tni_file *f, const char *wanted); /* reads on; for a file that is given up */
tn_status tni_file_read_all(const char *path, uint64_t max_bytes, char **out,
                            uint64_t *bytes); /* NUL-ended, tni_free */

/* Atomic writing: a temporary file beside `path` (O_EXCL, 0666 & ~umask), fsync, rename, fsync of the folder.
 * Nothing appears at `path` before commit; abandon removes the temporary file. A failed fsync or write
 * sticks. */
typedef struct tni_writer tni_writer;
tn_status tni_writer_open(const char *path, tni_writer **out);
tn_status tni_writer_write(tni_writer *w, const void *bytes, uint64_t count);
tn_status tni_writer_sync(tni_writer *w);   /* what was written is on the disk; commit does this by itself */
tn_status tni_writer_commit(tni_writer *w); /* [takes] w, also on failure */
void tni_writer_abandon(tni_writer *w);
tn_status tni_file_write_all(const char *path, const void *bytes, uint64_t count); /* atomic */
tn_status tni_folder_sync(const char *path);   /* renames and removals beside `path` are on the disk */
tn_status tni_folder_create(const char *path); /* with its parents, 0777 & ~umask; exists: fine */
bool tni_file_exists(const char *path);
tn_status tni_path_join(const char *a, const char *b, char **out);
/* Named points where tests stop, kill or fail the process: TENON_FAILPOINT=name[:nth]=kill|error|stop
 * (only in builds with TN_FAILPOINTS; else a constant TN_OK). */
tn_status tni_failpoint(const char *name);

/* ---- clock.c, thread.c ----------------------------------------------------------------------- */

uint64_t tni_clock_ns(void);      /* monotonic */
uint64_t tni_clock_wall_ns(void); /* since 1970 */
void tni_sleep_ns(uint64_t ns);

typedef struct tni_mutex tni_mutex; /* full definitions in base/thread.h, which base.h includes */
typedef struct tni_cond tni_cond;
typedef struct tni_thread tni_thread;
#include "base/thread.h"
uint32_t tni_cpu_count(void); /* within affinity and cgroup quota; at least 1 */

/* ---- log.c ----------------------------------------------------------------------------------- */

#define TN_LOG_ERROR 0
#define TN_LOG_WARNING 1
#define TN_LOG_INFO 2
#define TN_LOG_DEBUG 3
typedef void (*tni_log_fn)(void *arg, int32_t level, const char *message);
typedef struct tni_log {
    tni_log_fn fn; /* NULL: dropped */
    void *arg;
    atomic_int level;         /* above it: dropped; may change at any time */
    const struct tni_log *as; /* whose level holds, for copies; NULL: its own */
} tni_log;
void tni_logf(const tni_log *log, int32_t level, const char *format, ...) TN_PRINTF(3, 4);

/* ---- ini.c: libinih over our own line reader ------------------------------------------------- */

/* One call per key; text lives for the call. A status other than TN_OK stops the reading and is returned. */
typedef tn_status (*tni_ini_fn)(void *arg, const char *section, const char *key, const char *value,
                                uint32_t line);
/* `problem`: reading goes on after a line that is not understood; what is wrong is the thread's error during
 * the call. NULL: such a line ends the reading. */
tn_status tni_ini_read(const char *path, tni_ini_fn fn, void (*problem)(void *arg), void *arg);
tn_status tni_ini_read_all(const char *name, const char *text, size_t bytes, tni_ini_fn fn,
                           void (*problem)(void *arg), void *arg);
tn_status tni_ini_read_memory(const char *name, const char *text, size_t bytes, tni_ini_fn fn, void *arg);

/* ---- options.c: the table of options.list, and the values of one context --------------------- */

typedef struct tni_options tni_options;
#define TN_ORIGIN_DEFAULT 0
#define TN_ORIGIN_FILE 1
#define TN_ORIGIN_MXNET 2
#define TN_ORIGIN_ENVIRONMENT 3
#define TN_ORIGIN_SET 4
typedef struct tni_option_def {
    const char *key;     /* "engine.type"; "memory.*.pool" holds for each device type */
    const char *type;    /* text int float bool bytes duration_ms list choice */
    const char *choices; /* choice: a|b|c; else the unit */
    const char *default_text;
    const char *help, *since, *env; /* env: MXNET_ names, NAME{theirs:ours;...}, comma list, "" if none */
    double min, max;
    uint32_t
        flags; /* TN_OPTION_INIT, TN_OPTION_LIVE, TN_OPTION_TRUSTED (not from ./tenon.ini or environment) */
} tni_option_def;
#define TN_OPTION_INIT 1u
#define TN_OPTION_LIVE 2u
#define TN_OPTION_TRUSTED 4u
tn_status tni_options_create(const tni_log *log, tni_options **out);
void tni_options_destroy(tni_options *o);
tn_status tni_options_read_file(tni_options *o, const char *path,
                                bool trusted);          /* unknown key: error with suggestion */
tn_status tni_options_read_environment(tni_options *o); /* MXNET names, then TENON_ names; unknown: warning */
tn_status tni_options_set(tni_options *o, const char *assignment); /* "section.key=value" */
tn_status tni_options_set_value(tni_options *o, const char *key, const char *value, int32_t origin,
                                const char *where);
/* Borrowed; "" if unset. Sizes and durations are plain numbers of bytes and ms, however they were set. */
const char *tni_option_text(const tni_options *o, const char *key);
int64_t tni_option_int(const tni_options *o, const char *key); /* int, bytes, duration (ms), bool */
double tni_option_float(const tni_options *o, const char *key);
bool tni_option_bool(const tni_options *o, const char *key);
uint64_t tni_options_generation(const tni_options *o); /* moves with each change */
/* Every option, set and open-ended ones too (kernel.Op@device, plugin.NAME.key): index from 0; false at the
 * end. */
bool tni_options_at(const tni_options *o, size_t index, const char **key, const char **value, int32_t *origin,
                    const char **where);
size_t tni_option_list_count(const tni_options *o, const char *key); /* of a comma list */
tn_status tni_option_list_item(const tni_options *o, const char *key, size_t index, char *out, size_t size);
bool tni_option_is_set(const tni_options *o, const char *key); /* by a file, the environment or the user */
const tni_option_def *tni_option_defs(size_t *count);          /* the rows; in a key, * stands for one part */
tn_status tni_option_def_find(const char *key, const tni_option_def **out); /* TN_E_KEY with suggestions */
const char *const *tni_option_devices(void); /* NULL-ended: device types that options.list names */
tn_status tni_option_parse(const tni_option_def *def, const char *key, const char *where, const char *text,
                           int64_t *integer, double *number); /* TN_E_ARG says what is expected */
/* Checks what is set of [plugin.NAME] against the plugin's own rows (keys without prefix).
 * TN_E_KEY, TN_E_ARG */
tn_status tni_options_check_plugin(tni_options *o, const char *plugin, const tni_option_def *rows,
                                   size_t count);

/* From now on what is wrong in files, the environment and [plugin.NAME] is reported one by one (in the
 * thread's error) and passed over. NULL: ends that. */
void tni_options_collect(tni_options *o, void (*problem)(void *arg), void *arg);
bool tni_options_collected(const tni_options *o); /* failures are collected */
tn_status tni_options_problem(tni_options *o,
                              tn_status st); /* reports a failure if they are collected; else gives it back */
/* variables.c: what MXNet's variables stand for. `key` "": nothing, `reason` says why. */
typedef struct tni_variable {
    const char *name, *key, *values, *reason;
} tni_variable;
const tni_variable *tni_variables(size_t *count);
/* The option's text for a value of the variable; "" leaves it as it is. TN_E_KEY: it stands for none. */
tn_status tni_variable_translate(const tni_variable *v, const char *value, char *out, size_t size);

/* ---- json.h: the reader is jansson, behind our limits ---------------------------------------- */

/* `json_t` is jansson's. Depth at most 256, bytes at most TN_JSON_BYTES_MAX, duplicate keys are errors. */
struct json_t;
tn_status tni_json_parse(const char *name, const char *text, uint64_t bytes, struct json_t **out);
tn_status tni_json_read(const char *path, struct json_t **out);

/* ---- crc.c ----------------------------------------------------------------------------------- */

uint32_t tni_crc32(uint32_t crc, const void *bytes, uint64_t count); /* zlib's */
/* xxh3.c: XXH3_64bits of xxHash, whose seed is 0, of more than TNI_XXH3_ABOVE bytes */
uint64_t tni_xxh3(const void *bytes, uint64_t count);
#define TNI_XXH3_ABOVE 240u
#ifdef TN_TEST_SWITCHES
extern bool tni_xxh3_plain; /* no instructions of wider processors */
#endif
tn_status tni_sha256(const void *bytes, uint64_t count, char out_hex[65]);
typedef struct tni_sha256_state {
    uint64_t opaque[32]; /* holds libmd's state */
} tni_sha256_state;
void tni_sha256_begin(tni_sha256_state *s);
void tni_sha256_add(tni_sha256_state *s, const void *bytes, uint64_t count);
void tni_sha256_end(tni_sha256_state *s, char out_hex[65]); /* 64 lower-case digits and NUL */

/* ---- trace.c: ring of begin/end events, off by default --------------------------------------- */

extern atomic_bool tni_trace_on;
extern uint32_t tni_trace_flag; /* the same for plugins, which know no atomic types */
void tni_trace_event(
    char phase, const char *category, const char *name,
    uint64_t ns); /* phase: B E i X, b e; ns: 0 = now. b, e: spans of this name, which may overlap */
/* Who wants events: a context, the program. They are kept while there is one. Begins as zeros. */
typedef struct tni_trace_user {
    uint64_t first,
        last;     /* events of the process that it has seen: from first on, before last once it left */
    bool on, was; /* was: on, now or before */
} tni_trace_user;
/* `events_max`: rounded up to a power of two; the oldest events are overwritten, the newest are all there,
 * also where a writer is interrupted. The ring grows, it never shrinks. A user that is on begins anew. */
tn_status tni_trace_start(tni_trace_user *u, uint32_t events_max);
void tni_trace_stop(tni_trace_user *u); /* its events stay, as long as they are not overwritten */
/* What this process is in a job: its name, for files' names, and members of a JSON object. At most 23 and 255
 * bytes; longer ones are cut. */
void tni_trace_own_set(const char *name, const char *facts);
void tni_trace_own_name(char out[24]); /* "": it is in no job */
/* Chrome's trace event format. Of one that never started: all since the first user came. */
tn_status tni_trace_json(const tni_trace_user *u, tni_str *out);

#endif
