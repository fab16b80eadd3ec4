/*
 * tenon train in a folder where a run ended before its first checkpoint: it begins anew there, with a note,
 * and ends with the bits of a run that was never killed. What must not be written over is refused.
 */
#include "tool.h"

#include <signal.h>
#include <unistd.h>

#define TRAIN "exec \"$T\" train zoo:lenet --data ./small --batch 8 --seed 5 --set run.deterministic=threads "
#define NEVER "--epochs 100000 --set train.checkpoint_every=0 " /* no checkpoint but the last */

/* A run in `folder` that was killed behind its first epoch, without a checkpoint. */
static void killed_make(const char *folder)
{
    char line[300], metrics[64];
    pid_t pid;

    (void)snprintf(line, sizeof line, TRAIN NEVER "--out %s -q", folder);
    (void)snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", folder);
    pid = tool_start(line);
    assert_true(tool_lines(pid, metrics, 1));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(tool_wait(pid)->code, 128 + SIGKILL);
    (void)snprintf(line, sizeof line, "test -e %s/checkpoints/run.lock && ! ls %s/checkpoints/*.tnck", folder,
                   folder);
    assert_int_equal(tool(line)->code, 0);
}

static void hash_of(const tool_said *s, char hash[65])
{
    json_t *o;

    if (s->code)
        fail_msg("code %d: %s %s", s->code, s->out, s->err);
    o = tool_json(s, 0);
    (void)snprintf(hash, 65, "%s", json_string_value(json_object_get(o, "params_sha256")));
    json_decref(o);
}

static int lines_in(const char *path)
{
    char *text = tool_file(path);
    int lines = 0;

    for (const char *c = text; c && *c; c++)
        lines += *c == '\n';
    free(text);
    return lines;
}

/* Both ways: with --resume, which takes the options of run.json, and with the command that began the run. */
static void killed_run(void **state)
{
    static const char *const lines[] = {
        "exec \"$T\" train --resume gone --epochs 2 --json",
        TRAIN "--out gone --epochs 2 --json --set train.checkpoint_every=0",
        TRAIN "--resume gone --epochs 2 --json",
    };
    char want[65], hash[65];

    (void)state;
    hash_of(tool(TRAIN "--epochs 2 --json -q --out whole --set train.checkpoint_every=0"), want);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const tool_said *s;

        assert_int_equal(tool("rm -rf gone")->code, 0);
        killed_make("gone");
        s = tool(lines[i]);
        hash_of(s, hash);
        assert_string_equal(hash, want);
        assert_says(s->err, "note: gone was in use by process ");
        assert_says(s->err, "note: the run in gone ended before its first checkpoint: it begins anew\n");
        assert_int_equal(lines_in("gone/metrics.jsonl"), 2); /* those of the killed run are gone */
        assert_int_equal(access("gone/checkpoints/run.lock", F_OK), -1);
        assert_int_equal(access("gone/model-best-before.params", F_OK), 0); /* it was all that there was */
    }
}

/* A run that failed before its first checkpoint let its lock go itself. */
static void failed_run(void **state)
{
    const tool_said *s = tool("ulimit -f 100; " TRAIN "--epochs 1 --out short -q");
    char hash[65];

    (void)state;
    assert_int_equal(s->code, 1);
    s = tool("exec \"$T\" train --resume short --json");
    hash_of(s, hash);
    assert_says(s->err, "it begins anew");
}

/* Killed before run.json: nothing but the command tells what is trained. */
static void before_record(void **state)
{
    const tool_said *s;
    char hash[65];

    (void)state;
    assert_int_equal(
        tool("mkdir -p early/checkpoints && printf 'pid 1\\nstart 1\\nhost %s\\n' \"$(hostname)\" "
             ">early/checkpoints/run.lock")
            ->code,
        0);
    s = tool("exec \"$T\" train --resume early");
    assert_int_equal(s->code, 2);
    assert_says(s->err,
                "ended before run.json was written, so nothing tells its model: begin it again with the "
                "command that began it");
    assert_int_equal(access("early/checkpoints/run.lock", F_OK), 0);
    s = tool("cp -r early again; " TRAIN "--resume again --epochs 1 --json");
    hash_of(s, hash);
    assert_says(s->err, "it begins anew");
    s = tool(TRAIN "--out early --epochs 1 --json");
    hash_of(s, hash);
    assert_says(s->err, "it begins anew");
}

/* What holds more than a run that broke off stays as it is. */
static void refused(void **state)
{
    static const char *const changes[] = {
        "echo {} >run.json",
        "rm run.json",
        "echo x >model-0000.params",
        "mv checkpoints c && echo x >checkpoints",
        "echo x >checkpoints/notes.txt",
        "sed -i 's/^{/{\"result\": {\"status\": \"done\"},/' run.json",
    };
    static const char *const lines[] = {TRAIN "--out odd --epochs 1", TRAIN "--resume odd --epochs 1"};

    (void)state;
    killed_make("kept");
    assert_int_equal(
        tool("cd kept && touch model-best.params.tmp-1-1 checkpoints/checkpoint-000001.tnck.tmp-1-1")->code,
        0); /* as a kill in the middle of a write leaves them */
    for (size_t i = 0; i < 2 * (sizeof changes / sizeof *changes); i++) {
        char line[300];
        const tool_said *s;

        (void)snprintf(line, sizeof line,
                       "rm -rf odd then && cp -r kept odd && (cd odd && %s) && cp -r odd then",
                       changes[i / 2]);
        assert_int_equal(tool(line)->code, 0);
        s = tool(lines[i % 2]);
        if ((s->code != 1 && s->code != 2) || !strstr(s->err, "odd"))
            fail_msg("%s, %s: code %d: %s", changes[i / 2], lines[i % 2], s->code, s->err);
        /* a stale lock went, and so did the folder that held nothing else */
        (void)tool("for f in odd then; do rm -f $f/checkpoints/run.lock; rmdir $f/checkpoints; done");
        s = tool("diff -r then odd");
        if (s->code)
            fail_msg("%s, %s: %s", changes[i / 2], lines[i % 2], s->out);
    }
}

/* While another process trains, the folder is in use, whatever lies in it by now: nobody is told to remove
 * it. */
static void in_use(void **state)
{
    static const char *const lines[] = {TRAIN "--out busy --epochs 1", "exec \"$T\" train --resume busy",
                                        TRAIN "--resume busy"};
    pid_t pid = tool_start(TRAIN NEVER "--out busy -q");
    char says[64], line[300];

    (void)state;
    assert_true(tool_lines(pid, "busy/metrics.jsonl", 1));
    (void)snprintf(says, sizeof says, "run.lock: the run is in use by process %d; wait", (int)pid);
    for (size_t i = 0; i < 2 * (sizeof lines / sizeof *lines); i++) {
        char *err;
        int code;

        if (i == sizeof lines / sizeof *lines) /* not there yet at the very beginning of a run */
            assert_int_equal(system("rm busy/run.json"), 0);
        (void)snprintf(line, sizeof line, "(%s) >busy.out 2>busy.err", lines[i % 3]);
        code = system(line);
        err = tool_file("busy.err");
        if (code != 1 << 8 || !strstr(err, says) || strstr(err, "remove"))
            fail_msg("%s: status %x: %s", lines[i % 3], (unsigned)code, err);
        free(err);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)tool_wait(pid);
}

/* What killed processes wrote aside goes at the next start; files of other names stay. */
static void left_overs(void **state)
{
    const tool_said *s = tool(TRAIN "--epochs 1 --out left -q");

    (void)state;
    assert_int_equal(s->code, 0);
    s = tool(
        "cd left && touch run.json.tmp-77 run.json.tmp metrics.jsonl.tmp curves.svg.tmp "
        "model-best.params.tmp-7-1 "
        "model-0000.params.tmp-123-45 model-symbol.json.tmp-1-2 checkpoints/checkpoint-000009.tnck.tmp-8-1 "
        "mine.tmp run.json.tmp-old model-best.params.tmp-7-1-2 checkpoints/checkpoint.tmp-1 && "
        "mkdir curves.svg.tmp-1 && cd .. && exec \"$T\" train --resume left -q");
    assert_int_equal(s->code, 0);
    s = tool("cd left && ls -d *.tmp* checkpoints/*.tmp*");
    assert_string_equal(s->out, "checkpoints/checkpoint.tmp-1\ncurves.svg.tmp-1\nmine.tmp\n"
                                "model-best.params.tmp-7-1-2\nrun.json.tmp-old\n");
}

/* A damaged newest checkpoint is passed over, and that is said: which one, why, which one is used. */
static void passed_over(void **state)
{
    const tool_said *s = tool(TRAIN "--epochs 3 --out hurt -q");
    char want[65], hash[65];

    (void)state;
    assert_int_equal(s->code, 0);
    hash_of(tool("exec \"$T\" train --resume hurt --json -q"), want);
    s = tool(
        "truncate -s 1000 hurt/checkpoints/checkpoint-000003.tnck; exec \"$T\" train --resume hurt --json");
    hash_of(s, hash);
    assert_string_equal(hash, want);
    assert_says(s->err, "warning: hurt/checkpoints/checkpoint-000003.tnck: ");
    assert_says(s->err, " are left; hurt/checkpoints/checkpoint-000002.tnck is used instead\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_run),  cmocka_unit_test(failed_run), cmocka_unit_test(before_record),
        cmocka_unit_test(refused),     cmocka_unit_test(in_use),     cmocka_unit_test(left_overs),
        cmocka_unit_test(passed_over),
    };
    int failed;

    tool_setup();
    setenv("OMP_NUM_THREADS", "1", 1); /* many small trainings beside other tests */
    tool_data("small", 40);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
