/* Which pointers of a public function no test gives as NULL: read from the header and the tests' sources. */
#ifndef TN_TEST_NULLS_H
#define TN_TEST_NULLS_H

#include <stddef.h>

/* Prints each function of `header` and parameter without such a call in `tests` (NULL-ended texts), and each
 * function that is not called at all. Returns how many; *functions is added to. */
size_t nulls_missing(const char *name, const char *header, char *const *tests, size_t *functions);
/* A file of the source tree, to be freed. */
char *nulls_source(const char *path);

#endif
