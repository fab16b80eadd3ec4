/*
 * The tables of tests and of rules, from tests.list and rules.list.
 */
#include "internal.h"

#define CHK_TEST(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, false, false},
#define CHK_BARE(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, true, false},
#define CHK_TWIN(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, false, true},

const chk_test chk_tests[] = {
#include "tests.list"
    {NULL, NULL, NULL, NULL, 0, NULL, NULL, false, false},
};

#define CHK_RULE(name, what) {name, what},

const chk_rule chk_rules[] = {
#include "rules.list"
    {NULL, NULL},
};
