/* A folder of this test process, removed at its end; and the loop over failing allocations. */
#ifndef TN_TESTS_SCRATCH_H
#define TN_TESTS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tenon/base.h"

#define SCRATCH_PATH_BYTES 4096

/* Where folders of tests are made: TMPDIR, unless its path is so long that names behind it do not fit the
 * tests' buffers and the text of errors; then /tmp. */
const char *scratch_root(void);
/* The same in memory, if the machine has a place for it: a thousand synced files take minutes on a disk. */
const char *scratch_quick_root(void);
const char *scratch_folder(void);
/* <folder>/<name> in one of eight rotating buffers. */
const char *scratch_path(const char *name);
/* The same below scratch_quick_root(). */
const char *scratch_quick_path(const char *name);
/* Writes a file. Nothing is synced: a test that writes thousands of them does not wait for the disk. */
void scratch_put(const char *path, const void *bytes, size_t count);
/* The same for a file of the folder, and returns its path. */
const char *scratch_write(const char *name, const void *bytes, size_t count);

/* Takes variables away that begin with one of these, up to a NULL: what the user's own shell says is none of
 * a test's matter. TENON_TEST_... stay. */
void scratch_environment_clear(const char *const *begins);

/*
 * Runs `body(arg)` with the first, the second, … allocation failing until it passes. Each failing run must
 * return TN_E_NOMEM and leave as many live blocks as it found, in one of 17 tries; the
 * passing run must too. Of a short test every third one from the 30th on. Returns the number of failures.
 */
uint64_t scratch_each_allocation_fails(tn_status (*body)(void *arg), void *arg);

#endif
