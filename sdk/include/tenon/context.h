/**
 * Contexts: what one user opened. Everything else hangs on a context; nothing is global.
 *
 * A context reads options, finds plugins, starts an engine. Arrays, symbols and programs of one context may
 * be used together; those of two may not.
 */
#ifndef TENON_CONTEXT_H
#define TENON_CONTEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_ctx tn_ctx;

/** The size of a struct of this release, for its member struct_size. */
#define TN_SIZE(type) ((uint32_t)sizeof(type))

/* ---- opening and closing ------------------------------------------------------------------------- */

#define TN_LOG_ERROR 0
#define TN_LOG_WARNING 1
#define TN_LOG_INFO 2
#define TN_LOG_DEBUG 3

/** Gets one line of text, without a newline. May be called from any thread, several at once; must not call
 * Tenon. */
typedef void (*tn_log_fn)(void *arg, int32_t level, const char *message);

#define TN_OPEN_NO_ENVIRONMENT 1u /* do not read MXNET_… and TENON_… variables */
#define TN_OPEN_NO_SYSTEM 2u      /* read neither /etc/tenon/tenon.ini nor $XDG_CONFIG_HOME/tenon/tenon.ini */
#define TN_OPEN_LOCAL 4u          /* read ./tenon.ini if there is one; it may not say where plugins lie */

/** How a context is opened. All zeros but struct_size: the system's files and the environment, no log. */
typedef struct tn_open_options {
    uint32_t struct_size;        /* TN_SIZE(tn_open_options) */
    uint32_t flags;              /* TN_OPEN_… */
    const char *const *files;    /* INI files, read after the system's; NULL-ended, or NULL */
    const char *const *settings; /* "section.key=value", stronger than all else; NULL-ended, or NULL */
    tn_log_fn log;               /* NULL: no log */
    void *log_arg;
} tn_open_options;

/**
 * Opens a context.
 *
 * @param options NULL: as a struct of zeros
 * @return TN_E_ARG: a value is out of range, a setting is no "section.key=value", an unknown flag · TN_E_KEY:
 *         unknown option (the text suggests) · TN_E_IO, TN_E_FORMAT: a file is absent or damaged ·
 *         TN_E_DEVICE: plugins.require names a plugin that is not there, or device.default cannot be opened ·
 *         TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_open(const tn_open_options *options, tn_ctx **out);

/**
 * Waits for all work, also for what running operations push meanwhile, and frees everything. Sites, cached
 * operators and programs of the context must be gone; arrays, lists of them and symbols that are not may
 * still be released, and nothing else. NULL is fine.
 *
 * @return TN_E_STATE: called in a callback of an engine, whose end it would wait for: nothing is closed.
 *         Otherwise the oldest error that no wait has told yet; the context is closed in any case
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_close(tn_ctx *ctx);

/**
 * As tn_close, but gives up where work does not end: tasks that nobody completes, callbacks that do not
 * return.
 *
 * @param timeout_ms  longest the wait for all work may take; 0: no limit, as tn_close
 * @return TN_E_TIMEOUT: the text names work that is still pending, and all is as it was: the context may be
 *         used, the work completed, and the context closed then · else as tn_close
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_close_within(tn_ctx *ctx, uint32_t timeout_ms);

/** Frees memory that a call of Tenon handed out, where its comment says so. NULL is fine.
 * @threads any @since 0.1 */
TN_API void tn_free(void *memory);

/** Writes a line into the context's log, if log.level lets it pass. @threads any @since 0.1 */
TN_API tn_status tn_ctx_log(tn_ctx *ctx, int32_t level, const char *message);

/* ---- options ------------------------------------------------------------------------------------- */

#define TN_ORIGIN_DEFAULT 0
#define TN_ORIGIN_FILE 1        /* `where` is file:line */
#define TN_ORIGIN_MXNET 2       /* a variable of MXNet's; `where` is its name */
#define TN_ORIGIN_ENVIRONMENT 3 /* a TENON_ variable */
#define TN_ORIGIN_SET 4         /* tn_open_options.settings, tn_ctx_option_set */

#define TN_OPTION_INIT 1u    /* read once, when the context is opened */
#define TN_OPTION_LIVE 2u    /* tn_ctx_option_set may change it */
#define TN_OPTION_TRUSTED 4u /* not from ./tenon.ini, not from the environment */

/** One option. All texts are borrowed and never NULL. */
typedef struct tn_option_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_option_info) */
    uint32_t flags;       /* TN_OPTION_… */
    const char *key;      /* "engine.type"; in the table, * is one part: "memory.*.pool" */
    const char *value;    /* today's; "" in the table of all options */
    const char *where;    /* what set it: file:line, name of a variable; "" by default */
    const char *type;     /* text int float bool bytes duration_ms list choice */
    const char *choices;  /* of a choice: a|b|c; else the unit */
    const char *default_text;
    const char *help, *since;
    const char *env; /* foreign variables it answers to: NAME{theirs:ours;…}, comma list */
    double min, max; /* of numbers; min > max: no bound */
    int32_t origin;  /* TN_ORIGIN_… */
    uint32_t reserved;
} tn_option_info;

/** Value of an option as text, borrowed until the option is changed; "" if unset; NULL: no such option.
 * @threads any @since 0.1 */
TN_API const char *tn_ctx_option(const tn_ctx *ctx, const char *key);

/** Value of an option of type int, bool (0 or 1), bytes or duration_ms. TN_E_KEY: no such option; TN_E_ARG:
 * of another type. @threads any @since 0.1 */
TN_API tn_status tn_ctx_option_int(const tn_ctx *ctx, const char *key, int64_t *value);

/** Value of an option of type float or int. TN_E_KEY: no such option; TN_E_ARG: of another type.
 * @threads any @since 0.1 */
TN_API tn_status tn_ctx_option_float(const tn_ctx *ctx, const char *key, double *value);

/**
 * Changes a live option: log.level, run.seed and others with TN_OPTION_LIVE.
 *
 * @return TN_E_KEY: no such option · TN_E_ARG: a bad value · TN_E_STATE: it is read only when a context is
 *         opened
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_ctx_option_set(tn_ctx *ctx, const char *key, const char *value);

/** Effective options of a context, those without a fixed name too (a kernel for an operator on a device): how
 * many.
 * @threads any @since 0.1 */
TN_API tn_status tn_ctx_option_count(const tn_ctx *ctx, size_t *count);

/** One effective option by index. TN_E_ARG: index too large, or struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_ctx_option_at(const tn_ctx *ctx, size_t index, tn_option_info *out);

/** Rows of the table of all options, without a context. @threads any @since 0.1 */
TN_API size_t tn_option_count(void);

/** One row of the table of all options. TN_E_ARG: index too large, or struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_option_at(size_t index, tn_option_info *out);

/** A variable of MXNet, dmlc-core, ps-lite or OpenMP. All texts live for ever and are never NULL. */
typedef struct tn_variable_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_variable_info) */
    uint32_t reserved;
    const char *name;
    const char *key;    /* the option it stands for; "": it means nothing here */
    const char *values; /* theirs:ours;… where values are translated; "": they pass as they are */
    const char *reason; /* why it means nothing; "" if it stands for an option */
} tn_variable_info;

/** How many variables are known; one that stands for several options is there several times.
 * @threads any @since 0.1 */
TN_API size_t tn_variable_count(void);

/** One known variable; where two stand for the same option, the later one wins. TN_E_ARG: index too large, or
 * struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_variable_at(size_t index, tn_variable_info *out);

/**
 * What a variable's value says as text of its option.
 *
 * @param index  as for tn_variable_at
 * @param text   gets the text; "": this value leaves the option as it is
 * @param bytes  room in `text`; 4097 is enough for every value
 * @return TN_E_ARG: index too large, or a value that is not understood or out of range · TN_E_KEY: the
 * variable means nothing here
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_variable_translate(size_t index, const char *value, char *text, size_t bytes);

/** Something that tn_config_check found. Texts live for the call. */
typedef struct tn_problem {
    uint32_t struct_size; /* TN_SIZE(tn_problem) of the library */
    int32_t level;        /* TN_LOG_ERROR: tn_open fails · TN_LOG_WARNING: ignored · TN_LOG_INFO: a note */
    tn_status status;     /* of an error, else TN_OK */
    uint32_t number;      /* TN number of an error, 1 to 15 for a status as such; else 0 */
    const char *text;     /* begins with file:line, or the variable's name, where there is one */
} tn_problem;

typedef void (*tn_problem_fn)(void *arg, const tn_problem *problem);

/**
 * Finds everything that is wrong with files, variables and settings, not only the first thing that keeps
 * tn_open from working. Loads each plugin that has a section and compares the section with the plugin's
 * options; opens the default device and its pool.
 *
 * @param options as for tn_open; its log is not used
 * @param fn      called for each finding, in the order they were met; may not call Tenon
 * @return TN_OK also if there were findings · TN_E_ARG: `fn` is NULL, an unknown flag · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_config_check(const tn_open_options *options, tn_problem_fn fn, void *arg);

/* ---- plugins ------------------------------------------------------------------------------------- */

#define TN_PLUGIN_REFUSED 0 /* `refusal` and `reason` say why */
#define TN_PLUGIN_READY 1   /* checked, will be loaded when it is needed */
#define TN_PLUGIN_LOADED 2
#define TN_PLUGIN_FAILED 3 /* refused after it was loaded */

/** One plugin file that was found. Texts live as long as the context and are never NULL. */
typedef struct tn_plugin_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_plugin_info) */
    int32_t state;        /* TN_PLUGIN_… */
    const char *name, *version, *vendor, *license, *summary;
    const char *provides; /* "kernels@cpu device:cuda pool:round" */
    const char *isa;      /* instruction set it needs: "x86-64-v3", "" */
    const char *abi;      /* "linux-x86_64-lp64-le" */
    const char *build_id; /* hexadecimal; "" */
    const char *path;     /* "" for one that is part of the program */
    const char *reason;   /* one sentence that says what to do; "" */
    uint32_t refusal;     /* 5 is L05; 0: none */
    uint32_t abi_major, abi_minor, abi_minor_min;
    uint64_t memory_bytes, memory_blocks;    /* host memory that it holds */
    uint32_t capability_count, option_count; /* of a loaded one: for the calls below */
    uint64_t file_bytes;                     /* size of the file; 0: not known */
} tn_plugin_info;

/** The plugin ABI of this library: its tag such as "linux-x86_64-lp64-le", and its numbers (each may be
 * NULL). `draft` counts the drafts before ABI 1 is frozen. @threads any @since 0.1 */
TN_API const char *tn_abi(uint32_t *major, uint32_t *minor, uint32_t *draft);

/** How many plugins were found. @threads any @since 0.1 */
TN_API tn_status tn_plugin_count(const tn_ctx *ctx, size_t *count);

/** A plugin by index: by name, refused ones last. TN_E_ARG: index too large, or struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_plugin_at(const tn_ctx *ctx, size_t index, tn_plugin_info *out);

/** One table of a loaded plugin: something it brings. */
typedef struct tn_capability_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_capability_info) */
    uint32_t count;       /* operators, kernels or options in it; else 1 */
    const char *kind;     /* op kernels device pool transport collective iter format pass options archive;
                             "": newer */
    const char *id;       /* "cpu", "round" */
} tn_capability_info;

/** A table of the plugin at index `plugin`. TN_E_ARG: an index too large (a plugin that is not loaded has
 * none), or struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_plugin_capability(const tn_ctx *ctx, size_t plugin, size_t index,
                                      tn_capability_info *out);

/** An option of a loaded plugin: `key` is the one inside its section [plugin.NAME], `value` today's. TN_E_ARG
 * as above. @threads any @since 0.1 */
TN_API tn_status tn_plugin_option(const tn_ctx *ctx, size_t plugin, size_t index, tn_option_info *out);

/** A shared library that a plugin's file needs. Texts live as long as the context. */
typedef struct tn_library_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_library_info) */
    int32_t found;        /* 1: the linker would find it */
    const char *name;     /* "libopenblas.so.0" */
    const char *path;     /* "": not found */
} tn_library_info;

/** How many libraries the file of a plugin names, read from the file: nothing is loaded. A refusal (L01, L03,
 * L04) if the file cannot be read so; TN_E_ARG: index too large; TN_E_NOMEM. @threads any @since 0.1 */
TN_API tn_status tn_plugin_library_count(const tn_ctx *ctx, size_t plugin, size_t *count);

/** One of them. TN_E_ARG: index too large, or struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_plugin_library(const tn_ctx *ctx, size_t plugin, size_t index, tn_library_info *out);

/** A folder that was searched for plugins. */
typedef struct tn_folder_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_folder_info) */
    int32_t opened;       /* 0: it is absent, or may not be read */
    const char *path;     /* lives as long as the context */
    size_t files;         /* candidates in it */
} tn_folder_info;

/** Folders in the order in which they were searched: plugins.path, then the one beside libtenon.so. TN_E_ARG:
 * index too large, or struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_plugin_folder(const tn_ctx *ctx, size_t index, tn_folder_info *out);

/** Loads a plugin now rather than at first need. TN_E_KEY: none of this name; TN_E_DEVICE: refused, with the
 * reason.
 * @threads any @since 0.1 */
TN_API tn_status tn_plugin_load(tn_ctx *ctx, const char *name);

/**
 * Adds one file to the plugins of the context, with every check that a found one gets: owners, note, version,
 * platform, name. It is not loaded: tn_plugin_load, or the first need, does that. It takes the place of a
 * plugin of its name that was found and not loaded; that one stays in the list as L15.
 *
 * @param path  absolute; no symbolic link
 * @param index its index now (may be NULL); the indices of others may have changed
 * @return a refusal, whose number tn_error_number tells: TN_E_ARG, TN_E_IO (L01), TN_E_STATE (L02),
 *         TN_E_FORMAT (L03, L12), TN_E_UNSUPPORTED (L04 to L08), TN_E_KEY (L15: one of its name is loaded),
 *         TN_E_DEVICE (this very file failed before) · TN_E_STATE: its name is not in plugins.load ·
 *         TN_E_NOMEM. Then nothing has changed.
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_plugin_open(tn_ctx *ctx, const char *path, size_t *index);

struct tn_plugin; /* tenon/plugin/plugin.h */

/**
 * Adds a plugin that is part of the program: operators with kernels, a device, a pool. Its descriptor is
 * checked as that of a file.
 *
 * @param descriptor lives as long as the context
 * @return TN_E_KEY: the name is taken · TN_E_UNSUPPORTED, TN_E_FORMAT: the descriptor was refused · what its
 *         init gave
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_plugin_add(tn_ctx *ctx, const struct tn_plugin *descriptor);

#ifdef __cplusplus
}
#endif

#endif
