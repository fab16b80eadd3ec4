/**
 * What makes a shared object a Tenon plugin: the descriptor `tn_plugin_v1`, the ELF note, the host's
 * services.
 *
 * A plugin exports exactly one symbol, the data symbol tn_plugin_v1, and has no undefined tn_ symbol. It
 * reaches the host only through the tables passed to it.
 *
 * Thread tags: [load] while plugins load, one at a time · [any] · [worker] called by the engine, may not wait
 * on it · [driver] a device's callback.
 */
#ifndef TENON_PLUGIN_PLUGIN_H
#define TENON_PLUGIN_PLUGIN_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_ABI_MAJOR 1
#define TN_ABI_MINOR 0 /* the newest minor these headers know */

/* The minor a plugin needs, and the newest it may use where TN_HAS says so. Define before the first include.
 * What came with minor n stands between `#if TN_ABI_TARGET >= n` and `#endif`, so what is newer does not
 * compile. */
#ifndef TN_ABI_MIN
#define TN_ABI_MIN 0
#endif
#ifndef TN_ABI_TARGET
#define TN_ABI_TARGET TN_ABI_MIN
#endif
#if TN_ABI_TARGET < TN_ABI_MIN
#error "TN_ABI_TARGET is below TN_ABI_MIN"
#endif
#if TN_ABI_TARGET > TN_ABI_MINOR
#error "TN_ABI_TARGET is newer than these headers"
#endif

/* Until ABI 1 is frozen the low byte is a draft number; a host takes its own draft only (refusal L05). */
#define TN_ABI_DRAFT 2u
#define TN_MAGIC (0x544e5000u | TN_ABI_DRAFT)

/** `linux-x86_64-lp64-le`: compared byte for byte. */
#if defined(__x86_64__) && defined(__LP64__)
#define TN_ABI_TAG "linux-x86_64-lp64-le"
#elif defined(__aarch64__) && defined(__LP64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TN_ABI_TAG "linux-aarch64-lp64-le"
#else
#error "no ABI tag for this platform"
#endif

/* ---- services of the host -------------------------------------------------------------------------- */

typedef struct tn_host tn_host;

/** The head of every service table. */
typedef struct tn_service {
    uint32_t struct_size;
    uint32_t reserved;
    const char *id;
} tn_service;

#define TN_SERVICE_LOG "log"
#define TN_SERVICE_MEMORY "memory"
#define TN_SERVICE_OPTIONS "options"
#define TN_SERVICE_TRACE "trace"
#define TN_SERVICE_CLOCK "clock"
#define TN_SERVICE_THREADS "threads"

#define TN_LEVEL_ERROR 0
#define TN_LEVEL_WARNING 1
#define TN_LEVEL_INFO 2
#define TN_LEVEL_DEBUG 3

/** [any] Log lines; `message` is one line of UTF-8. */
typedef struct tn_log_service {
    tn_service head;
    void (*write)(const tn_host *host, int32_t level, const char *message);
} tn_log_service;

/** [any] Host memory, counted for the plugin. NULL: out of memory. `align` is a power of two. */
typedef struct tn_memory_service {
    tn_service head;
    void *(*alloc)(const tn_host *host, uint64_t bytes, uint64_t align);
    void (*free)(const tn_host *host, void *memory);
} tn_memory_service;

/** [any] The options of [plugin.NAME], and those of the parameter store by their full keys, "kvstore.…";
 * `text` is NULL if `key` is not set. Texts live until fini. */
typedef struct tn_options_service {
    tn_service head;
    const char *(*text)(const tn_host *host, const char *key);
    tn_status (*integer)(const tn_host *host, const char *key, int64_t fallback, int64_t *out);
    tn_status (*number)(const tn_host *host, const char *key, double fallback, double *out);
} tn_options_service;

/** [any] Events for the profiler; `on` is NULL or points to a flag that says whether anybody listens. */
typedef struct tn_trace_service {
    tn_service head;
    const uint32_t *on;
    void (*event)(const tn_host *host, uint32_t phase, const char *category, const char *name);
} tn_trace_service;

/** [any] Monotonic time in ns. */
typedef struct tn_clock_service {
    tn_service head;
    uint64_t (*now_ns)(const tn_host *host);
} tn_clock_service;

/** [any] Threads that the host counts and names. `join` waits for the end of `thread` and frees it. */
typedef struct tn_threads_service {
    tn_service head;
    tn_status (*create)(const tn_host *host, const char *name, void (*run)(void *arg), void *arg,
                        void **thread);
    void (*join)(const tn_host *host, void *thread);
} tn_threads_service;

/** One plugin's view of the host. */
struct tn_host {
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
    const char *version;
    void *self; /* the host's own */
    /** [any] The table of a service by its id; NULL if the host does not provide it. */
    const tn_service *(*service)(const tn_host *host, const char *id);
};

/* ---- options that a plugin brings -------------------------------------------------------------------- */

/** One row of the option table of section [plugin.NAME]. `type`: text int float bool bytes duration_ms
 * choice. */
typedef struct tn_option_row {
    uint32_t struct_size;
    uint32_t flags; /* 0 */
    const char *key, *type, *choices, *default_text, *help, *since;
    double min, max;
} tn_option_row;

typedef struct tn_option_table {
    tn_capability head;               /* kind TN_KIND_OPTIONS, id: the plugin's name */
    const tn_option_row *const *rows; /* NULL-ended */
} tn_option_table;

/* ---- the descriptor ------------------------------------------------------------------------------------ */

#define TN_FORK_PREPARE 0u
#define TN_FORK_PARENT 1u
#define TN_FORK_CHILD 2u

typedef struct tn_plugin {
    uint32_t struct_size, magic;
    uint16_t abi_major, abi_minor, abi_minor_min, flags;
    const char *name, *version, *vendor, *license, *summary;
    /** [load] Optional. Takes under 100 ms, opens no device, socket or large file.
     * May come again after fini. */
    tn_status (*init)(const tn_host *host, void **plugin, tn_err *err);
    /** [load] Optional. Joins every thread of the plugin. */
    void (*fini)(void *plugin);
    /** [any] Optional. Called around fork(), `phase` is TN_FORK_…. In TN_FORK_PREPARE no other thread may go
     * on inside the host: it waits for none that calls it. */
    tn_status (*fork)(void *plugin, uint32_t phase);
    const tn_capability *const *capabilities; /* NULL-ended */
} tn_plugin;

/* ---- the ELF note -------------------------------------------------------------------------------------- */

#define TN_NOTE_OWNER "Tenon"
#define TN_NOTE_TYPE 1u
#define TN_NOTE_NAME_BYTES 32
#define TN_NOTE_VERSION_BYTES 32
#define TN_NOTE_TAG_BYTES 32
#define TN_NOTE_ISA_BYTES 32
#define TN_NOTE_TEXT_BYTES 96
#define TN_NOTE_PROVIDES_MAX 65536 /* bytes, with the NUL at the end */

/*
 * What the host reads from the file before any of its code runs. Only uint32_t and char, so that no padding
 * can move anything. Behind the body, from `struct_size` to the end of the note, stands the text `provides`:
 * what the file gives, divided by spaces: "kernels@cpu device:cuda pool:round op:acme_fft op:fft_* options".
 * A star ends the name of several operators.
 */
typedef struct tn_note_body {
    uint32_t struct_size, magic, abi_major, abi_minor, abi_minor_min, flags;
    char name[TN_NOTE_NAME_BYTES], version[TN_NOTE_VERSION_BYTES], tag[TN_NOTE_TAG_BYTES],
        isa[TN_NOTE_ISA_BYTES];
    char vendor[TN_NOTE_TEXT_BYTES], license[TN_NOTE_TEXT_BYTES], summary[TN_NOTE_TEXT_BYTES];
} tn_note_body;

typedef struct tn_note {
    uint32_t owner_bytes, body_bytes, type;
    char owner[8]; /* "Tenon", padded to a multiple of 4 */
    tn_note_body body;
} tn_note;

#if defined(__cplusplus)
#define TN_STATIC_ASSERT(what, text) static_assert(what, text)
#else
#define TN_STATIC_ASSERT(what, text) _Static_assert(what, text)
#endif

TN_STATIC_ASSERT(offsetof(tn_note, body) == 20, "the note must not be padded");
TN_STATIC_ASSERT(sizeof(tn_note_body) == 24 + 4 * 32 + 3 * 96, "the note must not be padded");
TN_STATIC_ASSERT(sizeof(tn_note) == 20 + sizeof(tn_note_body), "`provides` follows the body at once");

#define TN_PLUGIN_EXPORT __attribute__((visibility("default")))

extern TN_PLUGIN_EXPORT const tn_plugin tn_plugin_v1;

/** The note alone: TN_PLUGIN_DEFINE makes it. */
#define TN_NOTE_DEFINE(VARIABLE, NAME, VERSION, VENDOR, LICENSE, SUMMARY, ISA, PROVIDES)                     \
    TN_STATIC_ASSERT(sizeof(PROVIDES) <= TN_NOTE_PROVIDES_MAX, "PROVIDES is over 64 KiB");                   \
    static const struct {                                                                                    \
        tn_note note;                                                                                        \
        char provides[sizeof(PROVIDES)];                                                                     \
    } VARIABLE __attribute__((section(".note.tenon"), used, aligned(4))) = {                                 \
        {6u,                                                                                                 \
         (uint32_t)(sizeof(tn_note_body) + sizeof(PROVIDES)),                                                \
         TN_NOTE_TYPE,                                                                                       \
         TN_NOTE_OWNER,                                                                                      \
         {(uint32_t)TN_END(tn_note_body, summary), TN_MAGIC, TN_ABI_MAJOR, TN_ABI_TARGET, TN_ABI_MIN, 0u,    \
          NAME, VERSION, TN_ABI_TAG, ISA, VENDOR, LICENSE, SUMMARY}},                                        \
        PROVIDES}

/**
 * Defines the descriptor and its note. Texts are string literals.
 *
 *     TN_PLUGIN_DEFINE("acme-fft", "1.0.0", "Acme", "Apache-2.0", "FFT operators", "", "op:acme_fft
 * kernels@cpu", acme_init, acme_fini, NULL, acme_capabilities);
 *
 * INIT, FINI and FORK may be NULL; CAPABILITIES is a NULL-ended array of tables. `ISA` is what the whole file
 * needs ("" or x86-64-v2, -v3, -v4); single kernels name theirs. PROVIDES is as long as it needs to be.
 */
#define TN_PLUGIN_DEFINE(NAME, VERSION, VENDOR, LICENSE, SUMMARY, ISA, PROVIDES, INIT, FINI, FORK,           \
                         CAPABILITIES)                                                                       \
    TN_NOTE_DEFINE(tn_plugin_note, NAME, VERSION, VENDOR, LICENSE, SUMMARY, ISA, PROVIDES);                  \
    const tn_plugin tn_plugin_v1 = {(uint32_t)TN_END(tn_plugin, capabilities),                               \
                                    TN_MAGIC,                                                                \
                                    TN_ABI_MAJOR,                                                            \
                                    TN_ABI_TARGET,                                                           \
                                    TN_ABI_MIN,                                                              \
                                    0u,                                                                      \
                                    NAME,                                                                    \
                                    VERSION,                                                                 \
                                    VENDOR,                                                                  \
                                    LICENSE,                                                                 \
                                    SUMMARY,                                                                 \
                                    INIT,                                                                    \
                                    FINI,                                                                    \
                                    FORK,                                                                    \
                                    CAPABILITIES}

/** The start of a capability table: TN_CAPABILITY(tn_pool_ops, last_member, TN_KIND_POOL, "naive"). */
#define TN_CAPABILITY(type, last_member, kind_, id_)                                                         \
    {                                                                                                        \
        (uint32_t) TN_END(type, last_member), kind_, id_                                                     \
    }

/* ---- inline helpers ---------------------------------------------------------------------------------- */

/** The host's table for `id`, or NULL. */
static inline const void *tn_host_service(const tn_host *host, const char *id)
{
    return host && host->service ? (const void *)host->service(host, id) : NULL;
}

/** Fills `err` (may be NULL) with a fixed text and returns `code`. No allocation, no formatting. */
static inline tn_status tn_fail(tn_err *err, tn_status code, const char *message)
{
    if (err) {
        size_t i = 0;

        err->code = code;
        err->native = 0;
        err->number = 0;
        err->flags = 0;
        for (; message[i] && i + 1 < sizeof err->message; i++)
            err->message[i] = message[i];
        err->message[i] = '\0';
    }
    return code;
}

#ifdef __cplusplus
}
#endif

#endif
