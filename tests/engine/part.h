/* A task of the tests of groups and releases: notes that it ran, releases, waits, fails. */
#ifndef TEST_ENGINE_PART_H
#define TEST_ENGINE_PART_H

#include "engine/engine.h"

extern const char *const part_types[3]; /* of engines */

#define PART_RELEASES_MAX 8u

typedef struct part {
    uint32_t *log, *logged; /* appends `number` */
    uint32_t number;
    uint32_t releases[PART_RELEASES_MAX], release_count; /* positions */
    bool fails;                                          /* after its releases */
    atomic_uint *open;                                   /* waits, after its releases, until it is not 0 */
    atomic_uint ran, entered, done;
    tn_status status;
} part;

/* `p` points to the pointer that is the payload. */
tni_task part_task(part **p, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                   uint32_t write_count);
void part_until(atomic_uint *value, unsigned wanted);
void part_vars_fini(tni_var *vars, uint32_t count);

#endif
