/*
 * tenon runs: what it says of run folders, whoever wrote them; what prune removes, and what it never does.
 */
#include "tool.h"

#include <signal.h>
#include <unistd.h>

#define TRAIN "exec \"$T\" train zoo:lenet --data ./small --batch 8 -q "

static json_t *state_of(const char *name)
{
    char line[256];
    const tool_said *s;

    (void)snprintf(line, sizeof line, "exec \"$T\" runs show %s --json", name);
    s = tool(line);
    if (s->code)
        fail_msg("%s: code %d: %s", name, s->code, s->err);
    return tool_json(s, 0);
}

static void state_is(const char *name, const char *want, bool resumable)
{
    json_t *o = state_of(name);
    const char *have = json_string_value(json_object_get(o, "state"));

    if (!have || strcmp(have, want))
        fail_msg("%s is %s, not %s", name, have ? have : "?", want);
    assert_int_equal(json_is_true(json_object_get(o, "resumable")), resumable);
    json_decref(o);
}

static void states(void **state)
{
    pid_t pid;
    const tool_said *s;

    (void)state;
    s = tool("exec \"$T\" runs list");
    assert_int_equal(s->code, 0);
    assert_string_equal(s->out, "");
    assert_says(s->err, "no runs below runs");
    assert_int_equal(tool(TRAIN "--epochs 2 --seed 1 --out runs/2026-01-01-lenet-aaaa")->code, 0);
    assert_int_equal(tool(TRAIN "--epochs 3 --seed 2 --out runs/2026-01-02-lenet-bbbb --lr 0.1")->code, 0);
    assert_int_equal(tool(TRAIN
                          "--epochs 2 --out runs/2026-01-03-lenet-nnnn --lr 1e5 --set train.warmup=0 --set "
                          "model.activation=relu")
                         ->code,
                     1);
    pid = tool_start(TRAIN "--epochs 100000 --out runs/2026-01-04-lenet-cccc");
    assert_true(tool_lines(pid, "runs/2026-01-04-lenet-cccc/metrics.jsonl", 1));
    assert_int_equal(system("\"$T\" runs list --json | grep -q '\"state\":\"running\"'"), 0);
    assert_int_equal(system("\"$T\" runs prune --keep 0 --yes --json >pruned.txt 2>&1"), 0);
    assert_int_equal(access("runs/2026-01-04-lenet-cccc/run.json", F_OK), 0);
    assert_int_equal(system("grep -q 'cccc stays: it is running' pruned.txt"), 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(tool_wait(pid)->code, 130);
    state_is("cccc", "stopped", true);
    pid = tool_start("exec \"$T\" train --resume runs/2026-01-04-lenet-cccc -q");
    /* Until it has begun: what run.json said of the end is gone then. */
    assert_true(tool_until(pid, "! grep -q '\"result\"' runs/2026-01-04-lenet-cccc/run.json"));
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)tool_wait(pid);
    state_is("cccc", "broken", true);
    /* prune took the others; once more. */
    assert_int_equal(access("runs/2026-01-01-lenet-aaaa", F_OK), -1);
    assert_int_equal(tool(TRAIN "--epochs 2 --seed 1 --out runs/2026-01-01-lenet-aaaa")->code, 0);
    assert_int_equal(tool(TRAIN "--epochs 3 --seed 2 --out runs/2026-01-02-lenet-bbbb --lr 0.1")->code, 0);
    assert_int_equal(tool(TRAIN
                          "--epochs 2 --out runs/2026-01-03-lenet-nnnn --lr 1e5 --set train.warmup=0 --set "
                          "model.activation=relu")
                         ->code,
                     1);
    state_is("aaaa", "finished", true);
    s = tool("exec \"$T\" runs show nnnn");
    assert_says(s->out, "state       failed, step ");
}

static void shown(void **state)
{
    const tool_said *s = tool("exec \"$T\" runs list");
    json_t *o, *d;

    (void)state;
    assert_says(s->out, "ID        STARTED");
    assert_says(s->out, "finished");
    s = tool("exec \"$T\" runs show lenet-bbbb");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "train.lr                  0.1");
    assert_says(s->out, "sha256 ");
    assert_says(s->out, "cpu ");
    s = tool("exec \"$T\" runs show runs/2026-01-02-lenet-bbbb/");
    assert_int_equal(s->code, 0);
    s = tool("exec \"$T\" runs compare aaaa bbbb");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "train.lr ");
    assert_says(s->out, "run.seed ");
    assert_null(strstr(s->out, "train.wd"));
    s = tool("exec \"$T\" runs compare aaaa bbbb cccc --json");
    o = tool_json(s, 0);
    d = json_object_get(json_object_get(o, "differences"), "train.epochs");
    assert_int_equal(json_array_size(d), 3);
    assert_string_equal(json_string_value(json_array_get(d, 1)), "3");
    assert_int_equal(json_array_size(json_object_get(o, "runs")), 3);
    json_decref(o);
    s = tool("exec \"$T\" runs show lenet");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "fits 4 runs");
    assert_int_equal(tool("exec \"$T\" runs show zzzz")->code, 2);
    assert_int_equal(tool("exec \"$T\" runs show ''")->code, 2);
    assert_int_equal(tool("exec \"$T\" runs compare aaaa")->code, 2);
    assert_int_equal(tool("exec \"$T\" runs compare aaaa zzzz")->code, 2);
    assert_int_equal(tool("exec \"$T\" runs list --runs small")->code, 0);
    assert_int_equal(tool("touch file; exec \"$T\" runs list --runs file")->code, 2);
}

/* Every command means the same run by a name. */
static void one_name(void **state)
{
    static const struct {
        const char *name, *says;
        int code;
    } rows[] = {
        {"aaaa", "", 0},
        {"lenet-aaaa", "", 0},
        {"2026-01-01", "", 0},
        {"runs/2026-01-01-lenet-aaaa//", "", 0},
        {"runs/../runs/2026-01-01-lenet-aaaa", "", 0},
        {"link", "", 0}, /* whoever names a link means where it leads */
        {"lenet", "fits 4 runs below runs", 2},
        {"2026-01", "fits 4 runs", 2},
        {"aaa", "", 0},
        {"enet-aaaa", "is no folder, and no run below runs is called so", 2},
        {"''", "the name of a run is missing", 2},
        {"../runs/none", "../runs/none is no folder", 2},
        {"small/train-images-idx3-ubyte", "is no folder", 2},
        {"\"$(printf 'a\\001\\377b')\"", "is no folder", 2},
        {"\"$(head -c 60000 /dev/zero | tr '\\0' a)\"", "is no folder", 2},
    };
    static const char *const commands[] = {"runs show %s", "runs compare %s bbbb", "viz --curves --json %s",
                                           "doctor --json %s", "train -q --resume=%s"};

    (void)state;
    assert_int_equal(tool("ln -s runs/2026-01-01-lenet-aaaa link && mkdir aaaa")->code, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
            const bool doctor = !strncmp(commands[k], "doctor", 6);
            char line[512], rest[256];
            const tool_said *s;

            if (!strcmp(rows[i].name, "''") && !strncmp(commands[k], "train", 5))
                continue; /* --resume= is the newest */
            (void)snprintf(rest, sizeof rest, commands[k], rows[i].name);
            (void)snprintf(line, sizeof line, "exec \"$T\" %s", rest);
            s = tool(line);
            if (doctor ? s->code > 1 : s->code != rows[i].code)
                fail_msg("%s: code %d: %s", line, s->code, s->err);
            if (rows[i].code)
                assert_says(doctor ? s->out : s->err,
                            doctor && strchr(rows[i].says, '"') ? "" : rows[i].says);
            else if (doctor)
                assert_null(strstr(s->out, "is no folder"));
        }
    assert_int_equal(tool("rm link && rmdir aaaa")->code, 0);
    /* A folder that is no run. */
    assert_int_equal(tool("exec \"$T\" runs show small")->code, 2);
    assert_says(tool("exec \"$T\" train --resume small")->err, "run.json cannot be read");
}

/* Folders that somebody else made: nothing is believed, nothing crashes, nothing of them is removed. */
static void strangers(void **state)
{
    const tool_said *s;

    (void)state;
    assert_int_equal(
        tool("mkdir -p runs/empty runs/notes runs/torn runs/other runs/huge runs/fifo outside && echo x "
             ">runs/notes/a && "
             "printf '{\"command\": [' >runs/torn/run.json && echo '{}' >runs/other/run.json && "
             "truncate -s 20M runs/huge/run.json && mkfifo runs/fifo/run.json && echo precious >outside/data "
             "&& "
             "cp -r runs/2026-01-01-lenet-aaaa outside/run && ln -s ../outside/run runs/2026-01-00-link && "
             "mkdir runs/esc && sed 's/zoo:lenet/\\\\u001b[31mred/' runs/2026-01-01-lenet-aaaa/run.json "
             ">runs/esc/run.json")
            ->code,
        0);
    s = tool("exec \"$T\" runs list");
    assert_int_equal(s->code, 0);
    assert_null(strchr(s->out, '\033'));
    assert_says(s->out, "?[31mred");
    assert_says(s->out, "run.json is damaged");
    assert_null(strstr(s->out, "empty"));
    assert_null(strstr(s->out, "link"));
    assert_int_equal(tool("exec \"$T\" runs show torn")->code, 4);
    assert_int_equal(tool("exec \"$T\" runs show huge")->code, 4);
    assert_int_equal(tool("exec \"$T\" runs show fifo")->code, 4);
    assert_int_equal(tool("exec \"$T\" runs compare torn aaaa")->code, 4);
    /* What lies in a run's own folders goes with it, links as links. */
    assert_int_equal(tool("mkdir -p runs/2026-01-01-lenet-aaaa/model-more/deep && ln -s ../../outside "
                          "runs/2026-01-01-lenet-aaaa/model-link && echo x "
                          ">runs/2026-01-01-lenet-aaaa/model-more/deep/file && "
                          "mv runs/2026-01-02-lenet-bbbb/checkpoints outside/checkpoints && "
                          "ln -s ../../outside/checkpoints runs/2026-01-02-lenet-bbbb/checkpoints")
                         ->code,
                     0);
    s = tool("exec \"$T\" runs prune --keep 0");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "would remove runs/2026-01-01-lenet-aaaa");
    assert_says(s->err, "nothing was removed: --yes");
    assert_int_equal(access("runs/2026-01-01-lenet-aaaa/run.json", F_OK), 0);
    s = tool("exec \"$T\" runs prune --keep 0 --yes");
    assert_int_equal(s->code, 1); /* bbbb's checkpoints are a link: it stays */
    assert_says(s->err, "bbbb");
    assert_int_equal(access("runs/2026-01-02-lenet-bbbb/run.json", F_OK), 0);
    assert_int_equal(access("runs/2026-01-01-lenet-aaaa", F_OK), -1);
    assert_int_equal(access("runs/esc", F_OK), -1);
    /* What train did not make stays, and the run with it. */
    assert_int_equal(tool("cp -r outside/run runs/2026-01-05-lenet-dddd && "
                          "echo mine >runs/2026-01-05-lenet-dddd/notes.txt")
                         ->code,
                     0);
    s = tool("exec \"$T\" runs prune --keep 0 --yes");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "dddd holds notes.txt");
    assert_int_equal(access("runs/2026-01-05-lenet-dddd/notes.txt", F_OK), 0);
    assert_int_equal(access("runs/2026-01-05-lenet-dddd/run.json", F_OK), 0);
    assert_int_equal(
        tool("test -f outside/data -a -f outside/run/run.json -a -d outside/checkpoints -a -f runs/notes/a "
             "-a -d runs/empty -a -f runs/torn/run.json -a -f runs/other/run.json -a -p runs/fifo/run.json "
             "-a -L runs/2026-01-00-link")
            ->code,
        0);
    assert_int_equal(tool("exec \"$T\" runs prune --keep x")->code, 2);
    assert_int_equal(tool("exec \"$T\" runs prune --keep -1")->code, 2);
}

/* A run is its folder, its id, or a file in it; it has a net before the file of its net is there. */
static void files_of_a_run(void **state)
{
    static const char *const names[] = {"ffff",
                                        "runs/2026-02-01-lenet-ffff/",
                                        "runs/2026-02-01-lenet-ffff/run.json",
                                        "runs/2026-02-01-lenet-ffff/metrics.jsonl",
                                        "runs/2026-02-01-lenet-ffff/model-0000.params",
                                        "runs/2026-02-01-lenet-ffff/checkpoints/*1.tnck",
                                        "runs/2026-02-01-lenet-ffff/model-symbol.json"};
    static const char *const commands[] = {"plugins needs", "viz",       "viz --graph",
                                           "viz --curves",  "runs show", "doctor"};
    char line[256];
    const tool_said *s;

    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 --seed 1 --out runs/2026-02-01-lenet-ffff")->code, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
            (void)snprintf(line, sizeof line, "exec \"$T\" %s %s", commands[k], names[i]);
            s = tool(line);
            if (s->code || (k == 0 && !strstr(s->out, "Convolution")))
                fail_msg("%s: code %d, out %s, err %s", line, s->code, s->out, s->err);
        }
    s = tool("exec \"$T\" train --resume runs/2026-02-01-lenet-ffff/checkpoints/*1.tnck");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "newest checkpoint of a run: --resume runs/2026-02-01-lenet-ffff\n");
    assert_int_equal(tool("cd runs/2026-02-01-lenet-ffff && exec \"$T\" viz --graph model-symbol.json")->code,
                     0);
    assert_int_equal(
        tool("cd runs/2026-02-01-lenet-ffff/checkpoints && exec \"$T\" viz --graph *1.tnck")->code, 0);

    /* killed before the first checkpoint */
    assert_int_equal(
        tool("cd runs/2026-02-01-lenet-ffff && rm -r checkpoints/*.tnck model* metrics.jsonl")->code, 0);
    assert_int_equal(tool("exec \"$T\" viz ffff")->code, 0);
    assert_says(tool("exec \"$T\" plugins needs ffff")->out, "Convolution");
    s = tool("exec \"$T\" train --resume ffff");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "has no checkpoint to go on from: train anew");
    s = tool(TRAIN "--epochs 1 --out runs/2026-02-01-lenet-ffff");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "no checkpoint to go on from: remove it, or name another folder");

    /* what is no model is told at once */
    s = tool("mkfifo pipe.json && exec \"$T\" plugins needs pipe.json");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "pipe.json is not a regular file");
    s = tool("printf '{\\n\"nodes\": ]' >torn.json && exec \"$T\" plugins needs torn.json");
    assert_int_equal(s->code, 4);
    assert_says(s->err, "torn.json:2:");
    s = tool("truncate -s 65M huge.json && exec \"$T\" plugins needs huge.json");
    assert_int_equal(s->code, 4);
    assert_says(s->err, "at most 67108864 are allowed");
}

/* Of runs that began within one second the names are random: the one that was written last is the newest. */
static void same_second(void **state)
{
    const tool_said *s;

    (void)state;
    assert_int_equal(tool("mkdir quick; i=0; for n in c a b; do i=$((i+1)); mkdir quick/x-$n && "
                          "cp runs/2026-02-01-lenet-ffff/run.json quick/x-$n && "
                          "touch -d \"2026-01-01T00:00:00.$i\" quick/x-$n/run.json || exit 1; done")
                         ->code,
                     0);
    s = tool("exec \"$T\" runs prune --keep 1 --yes --runs quick");
    assert_int_equal(s->code, 0);
    assert_string_equal(tool("ls quick")->out, "x-b\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),    cmocka_unit_test(shown),          cmocka_unit_test(one_name),
        cmocka_unit_test(strangers), cmocka_unit_test(files_of_a_run), cmocka_unit_test(same_second),
    };
    int failed;

    tool_setup();
    setenv("OMP_NUM_THREADS", "1", 1); /* many small trainings beside other tests */
    tool_data("small", 40);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
