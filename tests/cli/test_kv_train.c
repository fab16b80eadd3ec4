/*
 * `tenon train` below `tenon launch --on-fail restart`: a worker that is killed, at named points and so
 * within steps, is started again, and the job ends with the bits of an undisturbed one.
 */
#include "tool.h"

#include <unistd.h>

#ifdef TN_TEST_SWITCHES

/* Who lives, however slowly, is not dead; links tell who is. KILL is of the first start of worker VICTIM, or
 * of those that the pattern STARTS says. */
#define JOB                                                                                                  \
    "exec \"$T\" launch -n 2 -s 2 --grace ${GRACE-60} --on-fail restart:1 --set kvstore.heartbeat=100ms "    \
    "--set kvstore.suspect=1s --set kvstore.dead=300s --set kvstore.control_timeout=300s "                   \
    "--set kvstore.on_worker_loss=wait:300 -- sh -c 'case $DMLC_WORKER_ID$DMLC_NUM_ATTEMPT in "              \
    "${VICTIM}${STARTS-0}) export TENON_FAILPOINT=$KILL;; esac; exec \"$0\" \"$@\"' \"$T\" train "           \
    "${NET-zoo:mlp} --data digits --epochs 2 --seed 42 --json --set train.batch=64 "                         \
    "--set kvstore.type=dist_sync --set run.deterministic=threads "                                          \
    "--set kvstore.part_bytes=4096 --set train.optimizer=adam "

static const tool_said *job(const char *victim, const char *kill, const char *more)
{
    char line[2048];

    (void)setenv("VICTIM", victim, 1);
    (void)setenv("KILL", kill, 1);
    (void)snprintf(line, sizeof line, JOB "%s", more);
    return tool(line);
}

/* Of both workers, which have to be the same: to be freed. */
static char *hash(const tool_said *said)
{
    static const char name[] = "\"params_sha256\":\"";
    const char *one = strstr(said->out, name), *two = one ? strstr(one + 1, name) : NULL;

    if (said->code || !two || strncmp(one, two, sizeof name + 64) != 0)
        fail_msg("exit %d: %s%s", said->code, said->out, said->err);
    return strndup(one, sizeof name + 64);
}

/* `behind`: at a step that is not the first one. */
static void killed(const char *victim, const char *kill, const char *more, const char *wanted, bool behind)
{
    const tool_said *said = job(victim, kill, more);
    char text[96], *now;

    (void)snprintf(text, sizeof text, "worker %s failed: signal 9", victim);
    assert_says(said->err, text);
    (void)snprintf(text, sizeof text, "worker %s is in the place of another: it goes on behind step ",
                   victim);
    if (behind)
        assert_says(said->err, text);
    now = hash(said);
    if (strcmp(now, wanted) != 0)
        fail_msg("worker %s at %s: %s instead of %s: %s", victim, kill, now, wanted, said->err);
    free(now);
}

static void the_job_ends_with_the_same_bits(void **state)
{
    static const struct {
        const char *kill;
        bool behind; /* repeated messages do not count */
    } points[] = {{"kv.installed:24=kill", true},    {"kv.installed:33=kill", true},
                  {"kv.half_acked:120=kill", false}, {"kv.half_acked:500=kill", true},
                  {"kv.all_sent:19=kill", false},    {"kv.push_part:700=kill", false}};
    char *wanted = hash(job("none", "", ""));

    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        killed(i % 2 ? "0" : "1", points[i].kill, "", wanted, points[i].behind);
    killed("0", "kv.in_barrier:1=kill", "", wanted, false); /* before the first step */
    killed("1", "kv.pull_asked:3=kill", "", wanted, false);
    free(wanted);
}

static size_t lines_of(const char *path)
{
    char *text = tool_file(path);
    size_t count = 0;

    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    free(text);
    return count;
}

/* Worker 0, with checkpoints: it goes on in its folder, which nobody else may take. */
static void the_folder_goes_on(void **state)
{
    static const char more[] = "--out run --set train.checkpoint_every=0.25";
    char *wanted = hash(job("none", "", ""));
    const tool_said *said;

    (void)state;
    killed("0", "kv.installed:110=kill", more, wanted, true);
    assert_int_equal(access("run/checkpoints", F_OK), 0);
    assert_int_equal(lines_of("run/metrics.jsonl"), 2);
    said = job("none", "", "--out run");
    assert_int_equal(said->code, 2);
    assert_says(said->err, "run holds a run already");
    free(wanted);
}

/* Yesterday's run of a job with the same name, which was lost at each start, is not this launch's own: its
 * worker 0 does not enter it, at no start. `--resume` is the way to go on with it. */
static void yesterdays_run_is_not_entered(void **state)
{
    static const char more[] = "--out old --set train.checkpoint_every=0.25";
    const tool_said *said;
    char *before, *after;
    json_t *record;

    (void)state;
    (void)setenv("TENON_KVSTORE__JOB", "nightly", 1); /* of all processes */
    (void)setenv("STARTS", "?", 1);
    said = job("0", "kv.installed:110=kill", more);
    (void)unsetenv("STARTS");
    assert_int_equal(said->code, 128 + 9);
    assert_says(said->err, "worker 0 failed again");
    assert_int_equal(tool("ls old/checkpoints/checkpoint-*.tnck")->code, 0);
    before = tool_file("old/run.json");
    record = json_loads(before, 0, NULL);
    assert_null(json_object_get(record, "result"));
    assert_int_equal(strlen(json_string_value(json_object_get(record, "launch"))), 16);
    json_decref(record);

    said = job("none", "", more);
    (void)unsetenv("TENON_KVSTORE__JOB");
    assert_int_equal(said->code, 2);
    assert_says(said->err, "worker 0 is started again, restart 1 of 1");
    assert_says(said->err, "worker 0 failed again");
    assert_says(said->err, "old holds a run already");
    after = tool_file("old/run.json");
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* What only the lost worker had: it is named, and the job fails, as the other worker does not go on alone: it
 * waits for one more, in vain, so it is not given long to end. */
static void what_is_lost_is_said(void **state)
{
    static const struct {
        const char *more, *says;
    } cases[] = {
        {"--set train.early_stop=val_loss",
         "worker 1 is in the place of another, which is lost behind step "},
        {"--set train.clip_norm=1", "worker 1 is in the place of another, which is lost behind step "},
    };

    (void)state;
    (void)setenv("GRACE", "1", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tool_said *said = job("1", "kv.installed:33=kill", cases[i].more);

        assert_int_not_equal(said->code, 0);
        assert_says(said->err, cases[i].says);
        assert_says(said->err, "worker 1 failed again");
        assert_null(strstr(said->out, "params_sha256"));
    }
    (void)unsetenv("GRACE");
}

/* Two layers, between them the operator that is named in `middle`: "OPERATOR ATTRIBUTES", and `more` of its
 * inputs behind the first one. */
static void net_write(const char *path, const char *middle, uint32_t more)
{
    static const char *const names[] = {"gamma", "beta", "moving_mean", "moving_var"};
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs("{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}", f);
    for (uint32_t i = 0; i < 2 + more; i++)
        fprintf(f, ", {\"op\": \"null\", \"name\": \"%s\", \"inputs\": []}",
                i == 0   ? "a_weight"
                : i == 1 ? "a_bias"
                         : names[i - 2]);
    fputs(", {\"op\": \"FullyConnected\", \"name\": \"a\", \"attrs\": {\"num_hidden\": \"32\"}, "
          "\"inputs\": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]}, ",
          f);
    fprintf(f, "{%s, \"name\": \"m\", \"inputs\": [[%u, 0, 0]", middle, 3 + more);
    for (uint32_t i = 0; i < more; i++)
        fprintf(f, ", [%u, 0, 0]", 3 + i);
    fprintf(f,
            "]}, {\"op\": \"null\", \"name\": \"b_weight\", \"inputs\": []}, {\"op\": \"null\", \"name\": "
            "\"b_bias\", \"inputs\": []}, {\"op\": \"FullyConnected\", \"name\": \"b\", \"attrs\": "
            "{\"num_hidden\": \"10\"}, \"inputs\": [[%u, 0, 0], [%u, 0, 0], [%u, 0, 0]]}], \"arg_nodes\": "
            "[], \"heads\": [[%u, 0, 0]]}\n",
            4 + more, 5 + more, 6 + more, 7 + more);
    assert_int_equal(fclose(f), 0);
}

/* What layers keep on a worker alone: draws of random numbers, and the running means that are worker 0's. */
static void what_layers_keep(void **state)
{
    static const struct {
        const char *net, *victim, *says;
        int code;
    } cases[] = {
        {"drop-symbol.json", "0", "and with it how many random numbers it had drawn", 1},
        {"drop-symbol.json", "1", "and with it how many random numbers it had drawn", 1},
        {"means-symbol.json", "0", "and with it the running means of the model", 1},
        {"means-symbol.json", "1", "running means of this worker begin anew", 0},
    };

    (void)state;
    net_write("drop-symbol.json", "\"op\": \"Dropout\", \"attrs\": {\"p\": \"0.5\"}", 0);
    net_write("means-symbol.json", "\"op\": \"BatchNorm\"", 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tool_said *said;
        char text[64];

        (void)setenv("NET", cases[i].net, 1);
        (void)setenv("GRACE", cases[i].code ? "1" : "60", 1);
        said = job(cases[i].victim, "kv.installed:33=kill", "");
        (void)unsetenv("NET");
        (void)unsetenv("GRACE");
        (void)snprintf(text, sizeof text, "worker %s is in the place of another", cases[i].victim);
        assert_says(said->err, text);
        assert_says(said->err, cases[i].says);
        assert_true(!said->code == !cases[i].code);
        assert_true((strstr(said->out, "params_sha256") == NULL) == cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_job_ends_with_the_same_bits), cmocka_unit_test(the_folder_goes_on),
        cmocka_unit_test(yesterdays_run_is_not_entered), cmocka_unit_test(what_is_lost_is_said),
        cmocka_unit_test(what_layers_keep)};
    int failures;

    tool_setup();
    if (tool("\"$T\" plugins list --exists kv-zmq")->code) {
        printf("skipped: the plugin kv-zmq is not built\n");
        tool_teardown();
        return 77;
    }
    failures = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failures;
}

#else

int main(void)
{
    printf("skipped: this build has no points\n");
    return 77;
}

#endif
