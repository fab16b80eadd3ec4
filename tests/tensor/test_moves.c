/* Copies within one operation: what it holds until it has run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/space.h"

/* The operation names the variable of an array without elements, too, so it keeps the array. */
static void keeps_empty_ones(void **state)
{
    const int64_t none = 0, some = 3;
    tni_array *empty = NULL, *full = NULL;
    float values[3] = {1, 2, 3};
    uint64_t arrays;
    tni_moves *m = NULL;
    test_space t;

    (void)state;
    test_space_open(&t, "stepped");
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, 1, &none, NULL, &empty), TN_OK);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, 1, &some, NULL, &full), TN_OK);
    assert_int_equal(tni_array_write(full, values, sizeof values), TN_OK);
    assert_int_equal(tni_moves_add(&m, 2, NULL, empty, false), TN_OK);
    assert_int_equal(tni_moves_add(&m, 2, NULL, full, false), TN_OK);
    assert_int_equal(tni_moves_push(m, t.cpu, "moves"), TN_OK);
    tni_array_release(empty);
    tni_space_live(t.space, &arrays, NULL);
    assert_int_equal(arrays, 2);
    assert_int_equal(tni_array_read(full, values, sizeof values), TN_OK);
    assert_true(values[0] == 0 && values[1] == 0 && values[2] == 0);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    tni_space_live(t.space, &arrays, NULL);
    assert_int_equal(arrays, 1);
    tni_array_release(full);
    test_space_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_empty_ones)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
