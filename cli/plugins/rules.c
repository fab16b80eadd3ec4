/*
 * Tests and rules of the conformance kit, from its own lists.
 */
#include "plugins/rules.h"

#include <stddef.h>

#define CHK_TEST(group, name, rule, what, limit, subjects, run) {rule, what, group, name},
#define CHK_MANY CHK_TEST
#define CHK_BARE CHK_TEST
#define CHK_TWIN CHK_TEST
#define CHK_RULE(name, what) {name, what, NULL, NULL},

const cli_rule cli_rules[] = {
#include "tests.list"

#include "rules.list"
    {NULL, NULL, NULL, NULL},
};
