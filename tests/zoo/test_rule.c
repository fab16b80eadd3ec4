/* The rule for weights gives the bits that tests/oracle/rule.py gives, for every role and several seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

#include "zoo/zoo.h"

#define CASES_MIN 30
#define LINE_BYTES 256

/* NAME SEED NDIM DIMENSION... CRC */
static void line_check(const char *line)
{
    char name[64];
    int64_t shape[4] = {0};
    long long seed;
    uint64_t count = 1;
    unsigned expected;
    int ndim, used;
    float *values;
    uLong crc;

    assert_int_equal(sscanf(line, "%63s %lld %d%n", name, &seed, &ndim, &used), 3);
    assert_in_range(ndim, 1, 4);
    for (int i = 0; i < ndim; i++) {
        long long dimension;
        int more;

        assert_int_equal(sscanf(line + used, "%lld%n", &dimension, &more), 1);
        shape[i] = dimension;
        count *= (uint64_t)dimension;
        used += more;
    }
    assert_int_equal(sscanf(line + used, "%x", &expected), 1);
    assert_in_range(count, 1, 1 << 20);
    values = malloc(count * sizeof *values);
    assert_non_null(values);
    assert_true(zoo_numbers(name, ndim, shape, (uint64_t)seed, count, values));
    crc = crc32(0, (const Bytef *)(const void *)values, (uInt)(count * sizeof *values));
    free(values);
    if (crc != expected)
        fail_msg("%s, seed %lld: CRC-32 %08lx, wanted %08x", name, seed, crc, expected);
}

static void bits_are_pythons(void **state)
{
    char path[4096], line[LINE_BYTES];
    const char *source = getenv("TENON_TEST_SOURCE");
    FILE *file;
    int cases = 0;

    (void)state;
    assert_non_null(source);
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/rule.txt", source);
    file = fopen(path, "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); cases++)
        line_check(line);
    (void)fclose(file);
    assert_in_range(cases, CASES_MIN, 1000);
}

static void other_names_are_refused(void **state)
{
    float value;

    (void)state;
    assert_false(zoo_numbers("net_states", 1, (const int64_t[]){1}, 1, 1, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_pythons),
                                       cmocka_unit_test(other_names_are_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
