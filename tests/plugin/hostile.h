/*
 * Files that nobody should load, made at test time from a real plugin: each has a name, the refusal it must
 * earn, and whether the linker may have seen it by then.
 */
#ifndef TEST_PLUGIN_HOSTILE_H
#define TEST_PLUGIN_HOSTILE_H

#include "plugin/kit.h"

#define HOSTILE_MARKER "marker" /* in the scratch folder: written by code that should never run */

typedef struct hostile {
    const char *name;
    uint32_t code; /* 3 is L03; 0: it is none, and is left alone */
    bool late;     /* may be refused after dlopen: L11, L13, L14 */
    void (*make)(const char *path, const struct hostile *h);
    size_t at;      /* what `make` does with it is its own matter */
    uint64_t value; /* likewise */
    const char *text;
} hostile;

extern const hostile hostiles[]; /* ended by a row without name */

/* Reads the plugin that all are made from. */
void hostile_begin(void);
void hostile_end(void);
const char *hostile_base(uint64_t *count); /* its bytes */
/* The makers' common parts. */
char *hostile_copy(uint64_t *count);                               /* tni_free */
void hostile_write(const char *path, char *bytes, uint64_t count); /* frees `bytes` */

#endif
