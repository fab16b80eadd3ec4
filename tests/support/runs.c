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

uint64_t test_failure_next(uint64_t nth, uint64_t each)
{
#ifdef __SANITIZE_THREAD__
    const uint64_t step = test_full() ? 1 : 51;
#else
    const uint64_t step = test_short() && !test_full() ? 11 : 1; /* both odd: tests alternate by the number */
#endif

    return nth + (nth < each ? 1 : nth == each ? 1 + test_rotation(step) : step);
}
