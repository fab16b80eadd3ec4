/*
 * The interface of room context: what one user opens, the order of its options, checking them.
 */
#ifndef TN_CONTEXT_H
#define TN_CONTEXT_H

#include "autograd/autograd.h"

/* ---- context.c --------------------------------------------------------------------------------------- */

typedef struct tni_context_options {
    const char *const *files, *const *settings; /* as --config and --set; NULL-ended or NULL */
    bool environment;                           /* read MXNet's and TENON_ variables */
    tni_log_fn log;
    void *log_arg;
    bool system_files; /* /etc/tenon/tenon.ini and $XDG_CONFIG_HOME/tenon/tenon.ini */
    bool local_file;   /* ./tenon.ini, which is not trusted */
} tni_context_options;
/* Opens everything in order; on failure nothing is left open. */
tn_status tni_context_open(const tni_context_options *o, tni_context **out);
/* Waits for all work, then closes in reverse order. The last unreported error of the engine is returned; all
 * is closed in any case. TN_E_TIMEOUT after `timeout_ms` (0: none): nothing was closed. */
tn_status tni_context_close(tni_context *c, uint64_t timeout_ms);
tn_status tni_context_log_level(tni_context *c); /* takes over log.level */
/* Reads files, variables and settings in their order. */
tn_status tni_context_options_read(const tni_context_options *o, tni_options *options);

/* ---- check.c ----------------------------------------------------------------------------------------- */

/* `level` as in the log: what keeps a context from opening is an error, what is ignored a warning. */
typedef void (*tni_check_fn)(void *arg, int32_t level, const tn_err *err);
tn_status tni_context_check(const tni_context_options *o, tni_check_fn fn, void *arg);

#endif
