#include "support/runs.h"

#include <stdlib.h>

uint64_t test_runs(uint64_t usual)
{
    const char *text = getenv("TENON_RUNS");
    const uint64_t runs = text ? strtoull(text, NULL, 10) : 0;

    return runs ? runs : usual;
}

static bool is_one(const char *variable)
{
    const char *text = getenv(variable);

    return text && text[0] == '1';
}

bool test_short(void)
{
    return is_one("TENON_TEST_SHORT");
}

bool test_full(void)
{
    return is_one("TENON_FULL");
}

uint64_t test_rotation(uint64_t parts)
{
    const char *text = getenv("TENON_TEST_ROTATION");

    return text ? strtoull(text, NULL, 10) % parts : 0;
}

uint64_t test_failure_step(void)
{
#ifdef __SANITIZE_THREAD__
    return 51;
#else
    return test_short() ? 11 : 1;
#endif
}

uint64_t test_failure_first(void)
{
    return 1 + test_rotation(test_failure_step());
}
