/*
 * The table of tests, from tests.list.
 */
#include "internal.h"

#define CHK_TEST(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, .bare = false},
#define CHK_MANY(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, .many = true},
#define CHK_BARE(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, .bare = true},
#define CHK_TWIN(group, name, rule, what, limit, subjects, run)                                              \
    {group, name, rule, what, limit, subjects, run, .twin = true, .many = true},

const chk_test chk_tests[] = {
#include "tests.list"
    {.name = NULL},
};
