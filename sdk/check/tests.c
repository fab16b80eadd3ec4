/*
 * The table of tests, from tests.list.
 */
#include "internal.h"

#define CHK_TEST(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, false},
#define CHK_BARE(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, true},

const chk_test chk_tests[] = {
#include "tests.list"
    {NULL, NULL, NULL, NULL, 0, NULL, NULL, false},
};
