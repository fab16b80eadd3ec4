/*
 * What the tests of room plugin share: plugins compiled from one source with different definitions, or
 * changed byte by byte; a registry over a folder of them.
 */
#ifndef TEST_PLUGIN_KIT_H
#define TEST_PLUGIN_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plugin/internal.h"
#include "support/heard.h"
#include "support/scratch.h"

extern heard logged; /* since open_with */
extern const tni_log test_log;
extern char plain[SCRATCH_PATH_BYTES]; /* the unchanged plugin "acme" */

struct self { /* of the plugin */
    const tn_host *host;
    const char *text;
    long long seed;
    double rate;
    void *block;
    int ran, forks;
};

typedef struct fixture {
    tni_options *options;
    tni_registry *registry;
    tn_status status;
} fixture;

int plugins_build(void **state); /* group set-up: makes `plain` */
/* Compiles `source` (a file in the scratch folder) to `out`; false: there is no compiler. */
bool compile(const char *source, const char *out, const char *flags);
/* The plugin of another name, with -DPOOL=, -DFAIL=, -DLEAK=, -DSLOW=1 (init takes 120 ms) in `flags`. */
void variant(const char *out, const char *name, const char *flags);
void put_file(const char *path, const void *bytes, size_t count);
void copy(const char *from, const char *to);
/* A copy of the plain plugin with `size` bytes changed at `offset` of the body of its note. */
void patched(const char *to, size_t offset, const void *with, size_t size);
const char *folder_new(const char *name); /* in the scratch folder, mode 0755 */
const char *in(const char *folder, const char *name);
/* A registry over `folder`; settings may be NULL. */
fixture open_with(const char *folder, const char *setting, const char *setting2);
void close_all(fixture *f);

#endif
