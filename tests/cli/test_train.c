/*
 * tenon train and eval on a small data set: the run folder, resuming, signals, progress, what goes wrong.
 */
#include "tool.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRAIN "exec \"$T\" train zoo:lenet --data ./small --batch 8 --seed 5 "

static char *text_of(json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    assert_non_null(text);
    return strdup(text);
}

static char *done_hash(const tool_said *s)
{
    json_t *o = tool_json(s, 0);
    char *hash;

    if (s->code || strcmp(json_string_value(json_object_get(o, "event")), "done"))
        fail_msg("code %d, out %s, err %s", s->code, s->out, s->err);
    hash = text_of(o, "params_sha256");
    assert_int_equal(strlen(hash), 64);
    json_decref(o);
    return hash;
}

static void run_folder_check(const char *hash)
{
    const tool_said *s;
    json_t *o = json_load_file("run/run.json", JSON_REJECT_DUPLICATES, NULL), *result;
    char *curves = tool_file("run/curves.svg"), *given;

    assert_non_null(o);
    assert_int_equal(json_array_size(json_object_get(o, "command")), 14);
    assert_true(json_array_size(json_object_get(o, "options")) > 20);
    assert_true(json_array_size(json_object_get(o, "plugins")) > 0);
    assert_int_equal(json_integer_value(json_object_get(o, "seed")), 5);
    result = json_object_get(o, "result");
    assert_string_equal(json_string_value(json_object_get(result, "params_sha256")), hash);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "done");
    assert_true(strlen(json_string_value(
                    json_object_get(json_object_get(json_object_get(o, "data"), "train"), "sha256"))) == 64);
    json_decref(o);
    assert_true(!strncmp(curves, "<svg ", 5) && strstr(curves, "</svg>\n"));
    assert_null(strstr(curves, "nan"));
    free(curves);

    s = tool("\"$T\" eval run/model-symbol.json run/model-0000.params --data ./small --json");
    assert_int_equal(s->code, 0);
    o = tool_json(s, 0);
    given = text_of(o, "params_sha256");
    assert_string_equal(given, hash);
    free(given);
    assert_true(json_number_value(json_object_get(o, "accuracy")) > 0.5);
    json_decref(o);
    s = tool("\"$T\" eval --json run/model-0000.params");
    assert_says(s->out, hash);
    assert_null(strstr(s->out, "accuracy"));
}

/* Everything that a training leaves behind; the finished run resumed says the same. */
static void whole(void **state)
{
    const tool_said *s = tool(TRAIN "--epochs 6 --json --out run");
    char *hash = done_hash(s), *again, *metrics;
    json_t *o = tool_json(s, 7);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(o, "event")), "start");
    json_decref(o);
    for (int i = 6; i >= 1; i--) {
        o = tool_json(s, i);
        assert_string_equal(json_string_value(json_object_get(o, "event")), "epoch");
        assert_int_equal(json_integer_value(json_object_get(o, "epoch")), 7 - i);
        json_decref(o);
    }
    assert_says(s->err, " train run=");
    assert_says(s->err, " epoch=6/6 ");
    assert_null(strchr(s->err, '\r'));
    metrics = tool_file("run/metrics.jsonl");
    assert_says(metrics, "{\"epoch\":6,");
    free(metrics);
    run_folder_check(hash);
    again = done_hash(tool("exec \"$T\" train --resume run --json"));
    assert_string_equal(again, hash);
    free(again);
    s = tool(TRAIN "--out run");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "holds a run already");
    free(hash);
}

/* Stopped at some step and resumed: the bits of the unbroken training. */
static void stop_and_resume(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1};
    char *want = done_hash(tool(TRAIN "--epochs 10 --json --out unbroken --set run.deterministic=threads"));

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        pid_t pid = tool_start(TRAIN "--epochs 10 --json --out broken --set run.deterministic=threads");
        const tool_said *s;
        char *hash, *metrics;

        assert_true(tool_lines(pid, "broken/metrics.jsonl", 2 + (int)i));
        assert_int_equal(kill(pid, signals[i]), 0);
        s = tool_wait(pid);
        if (s->code == 0) { /* it was over before the signal came */
            assert_int_equal(tool("rm -r broken")->code, 0);
            continue;
        }
        if (s->code != 130)
            fail_msg("code %d: %s", s->code, s->err);
        assert_says(s->err, "resume: tenon train --resume broken");
        assert_says(s->out, "\"event\":\"stopped\"");
        hash = done_hash(tool("exec \"$T\" train --resume broken --json"));
        assert_string_equal(hash, want);
        free(hash);
        metrics = tool_file("broken/metrics.jsonl");
        for (int e = 1; e <= 10; e++) {
            char line[32];

            (void)snprintf(line, sizeof line, "{\"epoch\":%d,", e);
            assert_says(metrics, line);
        }
        free(metrics);
        assert_int_equal(tool("rm -r broken")->code, 0);
    }
    free(want);
}

#define RESUME "exec \"$T\" train --resume other --progress none "

/* Kernels, threads and plugins may change at a resume: what gives other bits is told, and nothing else. */
static void resumed_otherwise(void **state)
{
    const tool_said *s;

    (void)state;
    assert_int_equal(tool(TRAIN
                          "--epochs 1 --out other -q --set train.schedule=constant --set plugins.load=cpu "
                          "--set engine.threads=2")
                         ->code,
                     0);
    s = tool(RESUME "--epochs 2 --set plugins.load=cpu");
    assert_int_equal(s->code, 0);
    assert_null(strstr(s->err, "other bits"));
    s = tool(RESUME "--epochs 3 --set plugins.load=cpu --set kernel.prefer=cpu --set engine.threads=1 "
                    "--set kernel.Pooling@cpu=cpu --set run.deterministic=threads");
    assert_int_equal(s->code, 0);
    assert_says(s->err,
                "note: kernel.prefer was \"\" so far and is \"cpu\" now: the training may go on with other");
    assert_says(s->err, "note: engine.threads was \"2\" so far and is \"1\" now");
    assert_says(s->err, "note: kernel.Pooling@cpu was \"\" so far and is \"cpu\" now");
    assert_says(s->err, "note: run.deterministic was \"run\" so far and is \"threads\" now");
    s = tool(RESUME
             "--epochs 4 --set plugins.load=cpu --set engine.threads=2"); /* no matter under `threads` */
    assert_int_equal(s->code, 0);
    assert_null(strstr(s->err, "other bits"));
    s = tool(RESUME "--epochs 5"); /* what may be loaded is no part of a run */
    assert_int_equal(s->code, 0);
    assert_says(s->err, "note: plugins.load was \"cpu\" so far and is \"auto\" now");
    assert_int_equal(tool("sed -i 's/\"build_id\": \"[0-9a-f]*\"/\"build_id\": \"0\"/' other/run.json")->code,
                     0);
    s = tool(RESUME "--epochs 6");
    assert_says(s->err, "note: plugin cpu was \"0\" so far and is");
    assert_says(s->err, "note: libtenon was \"0\" so far and is");
    s = tool(RESUME "--epochs 7 -q --set kernel.prefer=cpu,mempool");
    assert_null(strstr(s->err, "other bits"));
}

static void second_signal(void **state)
{
    pid_t pid = tool_start(TRAIN "--epochs 100000 --out twice --progress none");
    const tool_said *s;

    (void)state;
    assert_true(tool_lines(pid, "twice/metrics.jsonl", 1));
    for (int i = 0; i < 40 && !kill(pid, SIGINT); i++)
        usleep(100000);
    s = tool_wait(pid);
    assert_int_equal(s->code, 130);
    /* Whatever was being written, the files are whole: the run goes on. */
    pid = tool_start("exec \"$T\" train --resume twice --progress none --json");
    assert_true(tool_lines(pid, "out.txt", 2)); /* it began, and ended an epoch */
    assert_int_equal(kill(pid, SIGTERM), 0);
    s = tool_wait(pid);
    assert_int_equal(s->code, 130);
    assert_says(s->err, "stopped after step ");
    assert_null(strstr(s->err, "damaged"));
}

static void nothing_to_resume(void **state)
{
    static const char *const lines[] = {
        "exec \"$T\" train --resume nowhere/at-all",
        "exec \"$T\" train --resume 7f3a",
        "exec \"$T\" train --resume",
        "mkdir empty && exec \"$T\" train --resume empty",
        "rm -rf early && mkdir early && cp run/run.json early && exec \"$T\" train --resume early",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const tool_said *s = tool(lines[i]);

        if (s->code != 2)
            fail_msg("%s: code %d: %s", lines[i], s->code, s->err);
        assert_says(s->err, "checkpoint");
    }
    assert_int_equal(tool("printf '{' >early/run.json; exec \"$T\" train --resume early")->code, 2);
    /* What a run folder says of plugins is not believed. */
    assert_int_equal(
        tool("rm -rf sly && cp -r run sly && sed 's/\"origin\": \"default\"/\"origin\": \"set\"/;"
             "s/\"value\": \"owner\"/\"value\": \"nonsense\"/' run/run.json >sly/run.json")
            ->code,
        0);
    assert_int_equal(tool("grep -q nonsense sly/run.json && exec \"$T\" train --resume sly")->code, 0);
    /* A resumed run keeps what its checkpoint was made with. */
    assert_true(tool("exec \"$T\" train --resume run --batch 16")->code != 0);
}

static void wrong_places(void **state)
{
    const tool_said *s;

    (void)state;
    assert_int_equal(tool("touch file")->code, 0);
    s = tool(TRAIN "--out file/run");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "file");
    s = tool("exec \"$T\" train zoo:lenet --data ./nowhere");
    assert_true(s->code != 0 && s->code < 128);
    assert_says(s->err, "nowhere");
    assert_int_equal(tool("mkdir -p torn && cp small/* torn && head -c 99 small/train-images-idx3-ubyte "
                          ">torn/train-images-idx3-ubyte")
                         ->code,
                     0);
    s = tool("exec \"$T\" train zoo:lenet --data ./torn");
    assert_int_equal(s->code, 4);
    assert_says(s->err, "torn");
}

/* On a terminal a bar, without colours or bytes above 127 where they are not wanted, never wider than the
 * terminal. */
static void bar(void **state)
{
    const tool_said *s;
    int columns = 0;

    (void)state;
    tool_needs_terminal();
    s = tool_terminal(100, "rm -rf b; TERM=xterm LC_ALL=C.UTF-8 " TRAIN "--epochs 2 --out b");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "\033[36m");
    assert_says(s->out, "━");
    s = tool_terminal(40, "rm -rf b; NO_COLOR=1 TERM=xterm LC_ALL=C " TRAIN "--epochs 2 --out b");
    assert_int_equal(s->code, 0);
    assert_null(strchr(s->out, '\033'));
    assert_says(s->out, "\repoch ");
    for (const char *c = s->out; *c; c++) {
        assert_true((unsigned char)*c < 0x80);
        columns = *c == '\r' || *c == '\n' ? 0 : columns + 1;
        if (columns == 1 && !strncmp(c, "epoch ", 6))
            assert_true(strcspn(c, "\r\n") < 40);
    }
    s = tool_terminal(80, "rm -rf b; TERM=dumb " TRAIN "--epochs 1 --out b");
    assert_int_equal(s->code, 0);
    assert_says(s->out, " train run=");
    s = tool_terminal(80, "rm -rf b; TERM=xterm " TRAIN "--epochs 1 --out b --quiet --json >/dev/null");
    assert_int_equal(s->code, 0);
    assert_string_equal(s->out, "");
}

static void progress_modes(void **state)
{
    const tool_said *s = tool("rm -rf p; " TRAIN "--epochs 1 --out p --progress json");
    const char *line = strstr(s->err, "{\"progress\"");
    json_t *o;

    (void)state;
    assert_int_equal(s->code, 0);
    assert_non_null(line);
    o = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(o);
    json_decref(o);
    assert_says(s->out, "accuracy ");
    assert_says(s->out, "params_sha256 ");
    assert_says(s->out, "folder p\n");
    s = tool("rm -rf p; " TRAIN "--epochs 1 --out p --progress none");
    assert_string_equal(s->err, "");
}

/* Nobody reads the events: the training is whole, the exit code tells.
 * A second run gets a folder of its own. */
static void lost_output(void **state)
{
    const tool_said *s = tool("rm -rf p; " TRAIN "--epochs 1 --out p --json >&-");

    (void)state;
    assert_int_equal(s->code, 1);
    assert_int_equal(access("p/model-0000.params", F_OK), 0);
    assert_int_equal(tool("grep -q '^{\"event' p/*.json*")->code, 1);
    assert_int_equal(tool("test ! -e runs")->code, 0); /* failures left nothing behind */
    assert_int_equal(tool(TRAIN "--epochs 1 --quiet")->code, 0);
    assert_int_equal(tool(TRAIN "--epochs 1 --quiet")->code, 0);
    assert_int_equal(tool("test $(ls -d runs/*-lenet-* | wc -l) = 2")->code, 0);
    assert_int_equal(tool("exec \"$T\" train --resume --json")->code, 0); /* the newest */
}

/* A decimal comma changes no number. */
static void locale(void **state)
{
    const tool_said *s = tool("rm -rf p; LC_ALL=de_DE.UTF-8 " TRAIN "--epochs 1 --out p --json --lr 0.05");
    json_t *o = tool_json(s, 0);

    (void)state;
    assert_int_equal(s->code, 0);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(stop_and_resume),
        cmocka_unit_test(resumed_otherwise),
        cmocka_unit_test(second_signal),
        cmocka_unit_test(nothing_to_resume),
        cmocka_unit_test(wrong_places),
        cmocka_unit_test(bar),
        cmocka_unit_test(progress_modes),
        cmocka_unit_test(lost_output),
        cmocka_unit_test(locale),
    };
    int failed;

    tool_setup();
    tool_data("small", 40);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
