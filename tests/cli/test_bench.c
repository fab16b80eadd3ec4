/*
 * tenon bench engine says its four figures, and refuses by exit code where the machine is too busy.
 */
#include "tool.h"

static void figures(void **state)
{
    static const char *const names[] = {"replay_ns", "push_ns", "eager_ns", "chain100_us"};
    const tool_said *s = tool("\"$T\" bench engine --json");
    json_t *o = tool_json(s, 0);
    bool noisy = json_is_true(json_object_get(o, "noisy"));

    (void)state;
    assert_int_equal(s->code, noisy ? 1 : 0);
    assert_int_equal(noisy, *s->err != '\0');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double value = json_number_value(json_object_get(o, names[i]));
        double spread = json_number_value(json_object_get(json_object_get(o, "spread"), names[i]));

        if (!tool_clock_fine()) { /* rounds of no time */
            assert_true(noisy || value > 0.1);
            continue;
        }
        assert_true(value > 0.1 && value < 1e6);
        assert_true(spread >= 0 && (spread <= 0.1 || noisy));
    }
    json_decref(o);
    s = tool("\"$T\" bench engine --set engine.type=naive");
    assert_true(s->code == 0 || s->code == 1);
    assert_says(s->out, "replay_ns");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures)};
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
