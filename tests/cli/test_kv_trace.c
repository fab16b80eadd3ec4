/*
 * tenon kv trace: profiles of a job's processes in one file, by the scheduler's clock; others are refused.
 */
#include "tool.h"

#define JOB "00000000000000aa"

static void profile_make(const char *path, const char *facts, const char *events)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fprintf(file, "{\"displayTimeUnit\":\"ns\",\"otherData\":{%s},\"traceEvents\":[%s]}\n", facts, events);
    (void)fclose(file);
}

static void node_make(const char *path, const char *node, const char *clock, long ahead_ns, long error_ns,
                      const char *ts)
{
    char facts[512], events[512];

    (void)snprintf(facts, sizeof facts,
                   "\"job\":\"" JOB
                   "\",\"node\":\"%s\",\"incarnation\":1,\"clock\":\"%s\",\"clock_ahead_ns\":%ld,"
                   "\"clock_error_ns\":%ld",
                   node, clock, ahead_ns, error_ns);
    (void)snprintf(
        events, sizeof events,
        "{\"name\":\"pull of key 1 round 2\",\"cat\":\"kv\",\"id2\":{\"local\":\"x\"},\"ph\":\"b\",\"pid\":1,"
        "\"tid\":7,\"ts\":%s}",
        ts);
    profile_make(path, facts, events);
}

/* The span of process `pid`, and the name that the trace gives it. */
static const json_t *event_of(const json_t *trace, json_int_t pid, const char **name)
{
    const json_t *event, *found = NULL;
    size_t i;

    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        if (json_integer_value(json_object_get(event, "pid")) != pid)
            continue;
        if (!strcmp(json_string_value(json_object_get(event, "ph")), "b"))
            found = event;
        else if (!strcmp(json_string_value(json_object_get(event, "name")), "process_name"))
            *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
    }
    return found;
}

static void event_is(const json_t *trace, json_int_t pid, const char *node, double ts)
{
    const char *name = "";
    const json_t *event = event_of(trace, pid, &name);
    const double got = json_number_value(json_object_get(event, "ts"));

    assert_non_null(event);
    assert_string_equal(name, node);
    assert_true(got > ts - 0.01 && got < ts + 0.01);
    assert_int_equal(json_integer_value(json_object_get(event, "tid")), 7);
    assert_string_equal(json_string_value(json_object_get(json_object_get(event, "id2"), "local")), "x");
}

/* Machines a and b; on a the measure of worker 1 is the closer one, on b there is one; a machine that is not
 * known counts for itself. Worker 1 was started again. */
static void clocks_and_ranks(void **state)
{
    const tool_said *t;
    json_t *trace;

    (void)state;
    node_make("w0.json", "worker 0", "a", 9000000, 400000, "1000.5");
    node_make("w1.json", "worker 1", "a", 2000, 100000, "1001.5");
    node_make("s0.json", "server 0", "b", -500000, 300000, "3000.25");
    node_make("s1.json", "server 1", "", 1000, 300000, "10");
    node_make("c.json", "scheduler", "b", 0, 0, "2500");
    node_make("w1b.json", "worker 1", "a", 7000, 200000, "5000");
    t = tool("\"$T\" kv trace w0.json w1.json s0.json s1.json c.json w1b.json --out job.json");
    assert_int_equal(t->code, 0);
    assert_string_equal(t->out, "");
    trace = json_load_file("job.json", 0, NULL);
    assert_non_null(trace);
    assert_string_equal(json_string_value(json_object_get(json_object_get(trace, "otherData"), "job")), JOB);
    event_is(trace, 0, "worker 0", 1002.5);
    event_is(trace, 1, "worker 1", 1003.5);
    event_is(trace, 16384, "server 0", 3000.25);
    event_is(trace, 16385, "server 1", 11);
    event_is(trace, 32768, "scheduler", 2500);
    event_is(trace, 65537, "worker 1", 5002);
    assert_int_equal(json_array_size(json_object_get(trace, "traceEvents")), 6 * 3);
    json_decref(trace);
    t = tool("\"$T\" kv trace w0.json");
    assert_int_equal(t->code, 0);
    trace = json_loads(t->out, 0, NULL);
    assert_non_null(trace);
    event_is(trace, 0, "worker 0", 10000.5);
    json_decref(trace);
}

static void what_is_no_profile(void **state)
{
    static const struct {
        const char *facts, *says;
    } rows[] = {
        {"", "no profile of a process of a job"},
        {"\"node\":\"worker 0\"", "no profile"},
        {"\"node\":\"worker 0\",\"clock\":\"a\",\"job\":\"aa\"", "no profile"},
        {"\"node\":\"worker 0\",\"clock\":\"a\",\"job\":\"00000000000000\\\"a\"", "no profile"},
        {"\"node\":7,\"clock\":\"a\",\"job\":\"" JOB "\"", "no profile"},
        {"\"node\":\"worker -1\",\"clock\":\"a\",\"job\":\"" JOB "\"", "no profile"},
        {"\"node\":\"worker 16384\",\"clock\":\"a\",\"job\":\"" JOB "\"", "no profile"},
        {"\"node\":\"worker 1x\",\"clock\":\"a\",\"job\":\"" JOB "\"", "no profile"},
        {"\"node\":\"worker 1\",\"clock\":\"a\",\"job\":\"00000000000000ab\"", "of another job"},
    };
    const tool_said *t;

    (void)state;
    node_make("good.json", "worker 0", "a", 1, 1, "1");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        profile_make("bad.json", rows[i].facts, "");
        t = tool("\"$T\" kv trace good.json bad.json");
        assert_int_equal(t->code, 4);
        assert_string_equal(t->out, "");
        assert_says(t->err, "bad.json: ");
        assert_says(t->err, rows[i].says);
    }
    assert_int_equal(tool("echo '[1,2' >bad.json; \"$T\" kv trace bad.json")->code, 4);
    assert_int_equal(tool("echo 5 >bad.json; \"$T\" kv trace bad.json")->code, 4);
    assert_int_equal(tool("\"$T\" kv trace absent.json")->code, 2);
    assert_int_equal(tool("\"$T\" kv trace bad.json/absent.json")->code, 2);
    t = tool("ln -s loop.json loop.json; \"$T\" kv trace loop.json"); /* is there, and cannot be opened */
    assert_int_equal(t->code, 1);
    assert_says(t->err, "loop.json: ");
    assert_int_equal(tool("\"$T\" kv trace")->code, 2);
    profile_make("odd.json", "\"node\":\"worker 2\",\"clock\":\"a\",\"job\":\"" JOB "\"",
                 "5,null,{\"name\":\"no time\"},[]");
    t = tool("\"$T\" kv trace odd.json --out /proc/nowhere/x.json");
    assert_int_equal(t->code, 1);
    assert_says(t->err, "/proc/nowhere/x.json: No such file");
    t = tool("\"$T\" kv trace odd.json --out made/by/x.json && test -s made/by/x.json");
    assert_int_equal(t->code, 0);
    t = tool("\"$T\" kv trace odd.json");
    assert_int_equal(t->code, 0);
    assert_says(t->out, "\"no time\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(clocks_and_ranks),
                                       cmocka_unit_test(what_is_no_profile)};
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
