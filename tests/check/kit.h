/*
 * Runs the kit as users do, by the built tool, and reads what it says.
 */
#ifndef TN_TESTS_CHECK_KIT_H
#define TN_TESTS_CHECK_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

/* Ends the program with 77 if the tool is not built. */
void kit_setup(void);
/* `tenon plugins check FILE --json MORE`: the parsed answer, to be freed, NULL if it is no JSON; the exit
 * code. */
json_t *kit_run(const char *file, const char *more, int *code);
/* The cases of the answer's one file, borrowed. */
const json_t *kit_results(const json_t *answer);
const char *kit_text(const json_t *result, const char *name);
/* Every case that neither passed nor was skipped, on stdout; how many. */
size_t kit_print_failures(const json_t *results);
/* Of the kit's tests those whose place in the table is `part` modulo `parts`, over all files that fit: every
 * case passes or is skipped. */
void kit_pass(const char *root, const char *pattern, size_t part, size_t parts);

#endif
