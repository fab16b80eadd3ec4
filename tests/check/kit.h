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
/* A plugin with one defect: the kit finds it, names its rule, and no other rule. */
typedef struct kit_defect {
    const char *file; /* behind the group's prefix, without .so; _ stands for - */
    const char *rule; /* that must fail */
    const char *also; /* a rule that may fail with it, or NULL */
    const char *more; /* options of the command */
} kit_defect;
/* A test for each of `count` rows, of a short test for every third, and for each of `healthy` (NULL-ended:
 * NAME_healthy), in which the kit finds nothing; returns how many failed. `prefix`: of the plugins' files
 * below tests/check of the build. */
int kit_defects(const char *group, const char *prefix, const kit_defect *rows, size_t count,
                const char *const *healthy);
/* The kit over all files that fit: every case passes or is skipped. */
void kit_pass(const char *root, const char *pattern);

#endif
