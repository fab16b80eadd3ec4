/* tenon train over several devices: the same bits wherever sums are made, also when stopped and resumed. */
#include "tool.h"

#include <signal.h>
#include <unistd.h>

#define TRAIN                                                                                                \
    "exec \"$T\" train zoo:lenet --data ./small --batch 8 --seed 5 -q --json --set "                         \
    "run.deterministic=threads "                                                                             \
    "--set device.default=cpu:0,cpu:1 "

static void hash_of(const tool_said *s, char out[65])
{
    json_t *o;

    if (s->code)
        fail_msg("code %d: %s %s", s->code, s->out, s->err);
    o = tool_json(s, 0);
    (void)snprintf(out, 65, "%s", json_string_value(json_object_get(o, "params_sha256")));
    json_decref(o);
    assert_int_equal(strlen(out), 64);
}

static void same_bits(void **state)
{
    static const char *const ways[] = {"--set kvstore.type=device --out b",
                                       "--set kvstore.update=false --out c",
                                       "--set engine.type=naive --out d"};
    char first[65], other[65], line[512];

    (void)state;
    hash_of(tool(TRAIN "--epochs 2 --out a"), first);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        (void)snprintf(line, sizeof line, TRAIN "--epochs 2 %s", ways[i]);
        hash_of(tool(line), other);
        assert_string_equal(first, other);
    }
    hash_of(tool(TRAIN "--epochs 2 --out e --set kvstore.type=device --set kvstore.compress=2bit"), other);
    assert_true(strcmp(first, other) != 0);
}

/* Stopped and resumed: states of the optimizer lie in the store, or in the trainer. */
static void resumed(void **state)
{
    static const char *const where[] = {"--set kvstore.update=true ", "--set kvstore.update=false "};
    char want[65], hash[65], line[512];

    (void)state;
    hash_of(tool(TRAIN "--epochs 10 --set train.optimizer=adam --out through"), want);
    for (int w = 0; w < 2; w++) {
        const tool_said *s;
        pid_t pid;

        (void)snprintf(line, sizeof line, TRAIN "%s --epochs 10 --set train.optimizer=adam --out broken%d",
                       where[w], w);
        pid = tool_start(line);
        (void)snprintf(line, sizeof line, "broken%d/metrics.jsonl", w);
        assert_true(tool_lines(pid, line, 3));
        assert_int_equal(kill(pid, SIGTERM), 0);
        s = tool_wait(pid);
        if (s->code == 0) /* it was over before the signal came */
            continue;
        assert_int_equal(s->code, 130);
        (void)snprintf(line, sizeof line, "exec \"$T\" train --resume broken%d -q --json", w);
        hash_of(tool(line), hash);
        assert_string_equal(hash, want);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *setting, *says;
        int code;
    } rows[] = {{"kvstore.type=dist_sync --set kvstore.transport=absent", "kv-absent", 3},
                {"kvstore.type=nccl --set kvstore.transport=absent", "kv-absent", 3},
                {"kvstore.type=locl", "kvstore.type", 2},
                {"kvstore.compress=2bit", "type device", 1},
                {"device.default=cpu:0,cpu:0", "twice", 2}};
    char line[512];

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, TRAIN "--epochs 1 --out no --set %s", rows[r].setting);
        s = tool(line);
        assert_int_equal(s->code, rows[r].code);
        assert_says(s->err, rows[r].says);
    }
    assert_int_equal(access("no", F_OK), -1);
}

static void tried(void **state)
{
    json_t *o;

    (void)state;
    assert_int_equal(tool(TRAIN "--dry-run")->code, 0);
    o = tool_json(tool(TRAIN "--overfit-one"), 0);
    assert_true(json_is_true(json_object_get(o, "learned")));
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(resumed),
        cmocka_unit_test(refused),
        cmocka_unit_test(tried),
    };
    int failed;

    tool_setup();
    setenv("OMP_NUM_THREADS", "1", 1);
    tool_data("small", 40);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
