/* The rules of the conformance kit, which the tool explains whether the kit is installed or not. */
#ifndef TN_CLI_RULES_H
#define TN_CLI_RULES_H

typedef struct cli_rule {
    const char *name, *what;  /* "K-modes" */
    const char *group, *test; /* the test that asks it; NULL: several do */
} cli_rule;

extern const cli_rule cli_rules[]; /* first those of tests, in the kit's order; ended by a row without name */

#endif
