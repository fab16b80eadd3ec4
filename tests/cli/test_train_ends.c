/*
 * tenon train: what it is told in a file, what it is built from, what ends it: early stop, numbers that are
 * not finite, another process in the folder; and what is tried beforehand. Resumed, all of it has the bits of
 * the unbroken run.
 */
#include "tool.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRAIN "exec \"$T\" train zoo:lenet --data ./small --batch 8 --seed 5 --set run.deterministic=threads "
#define EARLY "--set train.early_stop=val_loss --set train.patience=2 --set train.min_delta=0.05 "

static json_t *last(const tool_said *s)
{
    if (s->code)
        fail_msg("code %d: %s %s", s->code, s->out, s->err);
    return tool_json(s, 0);
}

static void value_is(const char *json, const char *key, const char *want)
{
    json_t *o = json_loads(json, 0, NULL);
    const char *have = json_string_value(json_object_get(o, key));

    if (!have || strcmp(have, want))
        fail_msg("%s is %s, not %s", key, have ? have : "missing", want);
    json_decref(o);
}

/* All that a training needs from a file; the command line is stronger; what is wrong has a line. */
static void from_file(void **state)
{
    const tool_said *s;
    json_t *o, *result;

    (void)state;
    assert_int_equal(tool("printf '[train]\\nmodel = zoo:lenet\\ndata = ./small\\nbatch = 8\\nepochs = 3\\n"
                          "optimizer = nag\\nlr = 0.02\\nclip_norm = 3\\n\\n[run]\\nseed = 5\\n' >a.ini")
                         ->code,
                     0);
    o = last(tool("exec \"$T\" train a.ini --out ini --epochs 2 --json -q"));
    assert_int_equal(json_integer_value(json_object_get(o, "step")), 10);
    json_decref(o);
    o = json_load_file("ini/run.json", 0, NULL);
    result = json_object_get(o, "data_name");
    assert_string_equal(json_string_value(result), "./small");
    json_decref(o);
    s = tool("exec \"$T\" train --resume ini --json -q"); /* the file is not needed any more */
    assert_int_equal(s->code, 0);
    s = tool("printf '[train]\\nmomentun = 1\\n' >bad.ini; exec \"$T\" train bad.ini");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "bad.ini:2");
    assert_says(s->err, "train.momentum");
    s = tool("printf '[train]\\nlr = 0.1\\n' >none.ini; exec \"$T\" train none.ini");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "which MODEL?");
    s = tool("exec \"$T\" train a.ini --config a.ini");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "one file of options");
    s = tool("exec \"$T\" train a.ini --set train.optimizer=sgb --out no");
    assert_int_equal(s->code, 2);
    s = tool("exec \"$T\" train absent.ini");
    assert_true(s->code != 0 && s->code < 128);
    assert_int_equal(access("no", F_OK), -1);
}

/* Validation on what is trained on is said to be that, however it comes about. */
static void same_samples(void **state)
{
    static const struct {
        const char *line;
        bool same;
    } rows[] = {
        {"--data ./small", false},
        {"--data ./small:train", false},
        {"--data ./small:test", true},
        {"--data ./small:train --set train.valid=./small:train", true},
        {"--data ./small --set train.valid=./twin:train", true}, /* the same under another name, packed */
        {"--data ./small --set train.valid=./near:train", false},
        {"--data ./small --set train.valid=./relabelled:train", false},
        {"--data ./small --set train.valid=./less:train", false},
        {"--data ./small:test --set train.valid=none", false},
        {"--data ./small:test --set log.level=error", false},
        {"--data ./small:test -q", false},
        {"--data ./small:test --dry-run", true},
        {"--data ./small:test --json", true},
    };

    (void)state;
    assert_int_equal(
        tool("cp -r small twin && gzip twin/train-* && cp -r small near && printf x | dd "
             "of=near/train-images-idx3-ubyte "
             "bs=1 seek=2575 conv=notrunc status=none && cp -r small relabelled && printf '\\7' | dd "
             "of=relabelled/train-labels-idx1-ubyte bs=1 seek=47 conv=notrunc status=none")
            ->code,
        0);
    tool_data("less", 39);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[256];
        const tool_said *s;

        (void)snprintf(line, sizeof line, "rm -rf same; exec \"$T\" train zoo:lenet --epochs 1 --out same %s",
                       rows[i].line);
        s = tool(line);
        assert_int_equal(s->code, 0);
        if ((strstr(s->err, "warning: training and validation use the same samples (") != NULL) !=
            rows[i].same)
            fail_msg("%s: %s", rows[i].line, s->err);
        assert_null(strstr(s->out, "warning"));
    }
}

/* The graph of an exported model is trained as the net it came from: the same bits. */
static void from_symbol(void **state)
{
    const tool_said *s;
    json_t *o;
    char hash[65];

    (void)state;
    o = last(tool(TRAIN "--epochs 2 --json -q --out net"));
    (void)snprintf(hash, sizeof hash, "%s", json_string_value(json_object_get(o, "params_sha256")));
    json_decref(o);
    s = tool("exec \"$T\" train net/model-symbol.json --data ./small --batch 8 --seed 5 --set "
             "run.deterministic=threads --epochs 2 --json -q --out graph");
    json_decref(last(s));
    value_is(strrchr(s->out, '{') ? s->out + strlen(s->out) - strlen(strstr(s->out, "{\"event\":\"done\""))
                                  : "{}",
             "params_sha256", hash);
    assert_int_equal(tool("cmp net/model-symbol.json graph/model-symbol.json")->code, 0);
    s = tool("exec \"$T\" train --resume graph --json -q");
    value_is(strstr(s->out, "{\"event\":\"done\""), "params_sha256", hash);
    /* Values of a file to begin with; one that is not this net's is refused. */
    o = last(
        tool("exec \"$T\" train net/model-symbol.json --data ./small --epochs 1 --lr 0 --out again --json -q "
             "--set train.params=net/model-0000.params --set train.wd=0"));
    assert_string_equal(json_string_value(json_object_get(o, "params_sha256")), hash);
    json_decref(o);
    s = tool("exec \"$T\" train zoo:lenet --data ./small --epochs 1 --out wrong --set model.pad=0 --set "
             "train.params=net/model-0000.params");
    assert_true(s->code != 0 && s->code < 128);
    assert_int_equal(access("wrong", F_OK), -1);
    /* Changed behind the run's back: it is not resumed. */
    assert_int_equal(
        tool("sed 's/500/400/g' net/model-symbol.json >graph2.json && cp graph2.json net/model-symbol.json")
            ->code,
        0);
    s = tool("exec \"$T\" train --resume graph --json -q");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "graph");
}

static void not_trainable(void **state)
{
    static const char *const lines[] = {
        "exec \"$T\" train absent-symbol.json --data ./small",
        "printf '{' >x.json; exec \"$T\" train x.json --data ./small",
        "printf '{\"nodes\":[],\"heads\":[]}' >y.json; exec \"$T\" train y.json --data small",
        "exec \"$T\" train zoo:lenet --data ./small --set model.classes=3",
        "exec \"$T\" train zoo:lenet --data ./small --set train.valid=./nowhere",
        "exec \"$T\" train zoo:lenet --data ./small --set train.valid=./large",
        "exec \"$T\" eval large/symbol.json large/x.params --data ./large",
        "exec \"$T\" train zoo:lenet --data ./small --set train.valid=none --set train.early_stop=val_loss",
        "exec \"$T\" train zoo:lenet --data ./small --set train.params=absent.params",
    };

    (void)state;
    assert_int_equal(
        tool("mkdir large; cd large; (printf '\\0\\0\\10\\3\\0\\0\\0\\2\\0\\0\\0\\14\\0\\0\\0\\14'; "
             "head -c 288 /dev/zero) >t10k-images-idx3-ubyte; printf "
             "'\\0\\0\\10\\1\\0\\0\\0\\2\\0\\1' >t10k-labels-idx1-ubyte")
            ->code,
        0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const tool_said *s = tool(lines[i]);

        if (s->code < 1 || s->code > 5 || !strstr(s->err, "error[TN-"))
            fail_msg("%s: code %d: %s", lines[i], s->code, s->err);
    }
    assert_int_equal(tool("test ! -e runs")->code, 0); /* nothing began */
}

/* It ends once it gets no better, keeps the best epoch, and so does a run that was broken off on the way. */
static void early_stop(void **state)
{
    const tool_said *s = tool(TRAIN EARLY "--epochs 50 --json --out early");
    json_t *o = last(s);
    int64_t steps = (int64_t)json_integer_value(json_object_get(o, "step")), best;
    char hash[65], *want;
    pid_t pid;

    (void)state;
    assert_true(json_is_true(json_object_get(o, "early_stop")));
    assert_true(steps < 250);
    best = (int64_t)json_integer_value(json_object_get(o, "best_epoch"));
    assert_true(best >= 1 && best * 5 <= steps);
    (void)snprintf(hash, sizeof hash, "%s", json_string_value(json_object_get(o, "params_sha256")));
    json_decref(o);
    assert_says(s->err, "no better one in 2 epochs");
    s = tool("exec \"$T\" eval --json early/model-best.params");
    assert_int_equal(s->code, 0);
    want = strdup(s->out);
    assert_int_equal(
        tool("exec \"$T\" eval early/model-symbol.json early/model-best.params --data ./small")->code, 0);
    /* The finished run, resumed, does nothing; more patience goes on. */
    o = last(tool("exec \"$T\" train --resume early --json -q"));
    assert_int_equal(json_integer_value(json_object_get(o, "step")), steps);
    json_decref(o);

    pid = tool_start(TRAIN EARLY "--epochs 50 --json --out broken --set train.checkpoint_every=0.2");
    (void)tool_lines(pid, "broken/metrics.jsonl", 1);
    (void)kill(pid, SIGKILL);
    s = tool_wait(pid);
    s = tool("exec \"$T\" train --resume broken --json");
    o = last(s);
    assert_string_equal(json_string_value(json_object_get(o, "params_sha256")), hash);
    assert_int_equal(json_integer_value(json_object_get(o, "step")), steps);
    assert_int_equal(json_integer_value(json_object_get(o, "best_epoch")), best);
    json_decref(o);
    s = tool("exec \"$T\" eval --json broken/model-best.params");
    assert_string_equal(s->out, want);
    free(want);
    o = last(tool("exec \"$T\" train --resume early --json -q --set train.early_stop=none --epochs 50"));
    assert_int_equal(json_integer_value(json_object_get(o, "step")), 250);
    json_decref(o);
}

static const struct {
    const char *change, *says;
    int code;
} odd_ends[] = {
    {"sed -i 's/\"params_sha256\": \"./&f/' run.json", "does not hold what run.json says", 4},
    {"sed -i 's/\"params_sha256\"/\"params\"/' run.json", "does not hold what run.json says", 4},
    {"sed -i 's/\"accuracy\": [0-9.]*/\"accuracy\": [{}]/' run.json", "is finished", 0},
    {"echo >>run.json", "is finished", 0},
    {"printf '{\"epoch\":9' >>metrics.jsonl", "is finished", 0},
    {"rm model-0000.params && mkdir model-0000.params", "model-0000.params", 1},
    {"rm model-symbol.json curves.svg && cp ../fin/model-symbol.json .", "is finished", 0},
};

/* A finished run trains on with more epochs: with the bits of an unbroken run where the schedule does not
 * look at the end, else with a warning. */
static void more_epochs(void **state)
{
    const tool_said *s;
    char unbroken[65];
    json_t *o;

    (void)state;
    o = last(tool(TRAIN "--epochs 3 --set train.schedule=constant --json -q --out three"));
    (void)snprintf(unbroken, sizeof unbroken, "%s", json_string_value(json_object_get(o, "params_sha256")));
    json_decref(o);
    json_decref(last(tool(TRAIN "--epochs 1 --set train.schedule=constant --json -q --out one")));
    o = last(tool("exec \"$T\" train --resume one --epochs 3 --json -q"));
    assert_string_equal(json_string_value(json_object_get(o, "params_sha256")), unbroken);
    json_decref(o);

    json_decref(last(tool(TRAIN "--epochs 1 --json -q --out bent")));
    s = tool("exec \"$T\" train --resume bent --epochs 2 --json");
    assert_int_equal(s->code, 0);
    assert_says(s->err, "begun for 1 epochs and is for 2 now: the cosine schedule is another one");
    assert_says(tool("exec \"$T\" runs show bent")->out, "2 of 2");
}

/* A finished run is told to be that, and nothing in its folder changes, whatever is asked on top. */
static void finished_run(void **state)
{
    static const char *const lines[] = {
        "--resume fin",
        "--resume fin --json",
        "--resume fin --set engine.type=naive --set train.checkpoint_every=0.5",
        "--resume fin --progress plain --set train.checkpoint_keep=1 --set train.checkpoint_best=false",
        "--resume fin --set train.hybridize=false --set log.level=debug -q",
    };
    const tool_said *s;
    json_t *o;

    (void)state;
    o = last(tool(TRAIN "--epochs 2 --json -q --out fin"));
    json_decref(o);
    assert_int_equal(tool("cp -r fin before")->code, 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[300];

        (void)snprintf(line, sizeof line, "exec \"$T\" train %s", lines[i]);
        s = tool(line);
        assert_int_equal(s->code, 0);
        assert_says(s->out, "params_sha256");
        if (!strstr(lines[i], "-q"))
            assert_says(s->err, "fin is finished: there is nothing to go on with, nothing was changed");
        if (strstr(lines[i], "--set") && !strstr(lines[i], "-q"))
            assert_says(s->err, "the options given have no effect; --epochs with a larger number trains on");
        if (strstr(lines[i], "--json"))
            assert_true(strncmp(s->out, "{\"event\":\"done\",", 16) == 0);
        if (tool("diff -r before fin")->code)
            fail_msg("%s: %s", lines[i], tool("diff -r before fin")->out);
    }
    for (size_t i = 0; i < sizeof odd_ends / sizeof *odd_ends; i++) {
        char line[300];

        (void)snprintf(
            line, sizeof line,
            "rm -rf odd then && cp -r fin odd && (cd odd && %s) && cp -r odd then && exec \"$T\" train "
            "--resume odd",
            odd_ends[i].change);
        s = tool(line);
        if (s->code != odd_ends[i].code || !strstr(s->err, odd_ends[i].says))
            fail_msg("%s: code %d: %s", line, s->code, s->err);
        if (tool("diff -r then odd")->code)
            fail_msg("%s: %s", line, tool("diff -r then odd")->out);
    }
    /* Fewer epochs than it has behind it: refused, nothing changes either. */
    s = tool("exec \"$T\" train --resume fin --epochs 1 -q");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "ask for more epochs");
    assert_int_equal(tool("diff -r before fin")->code, 0);
    /* A file of the model that is gone is written again, the rest stays. */
    s = tool("rm fin/model-0000.params; exec \"$T\" train --resume fin");
    assert_int_equal(s->code, 0);
    assert_says(s->err, "written again from the last checkpoint");
    assert_int_equal(tool("diff -r before fin")->code, 0);
    /* A run that says of itself that it is done, and is not, goes on. */
    assert_int_equal(
        tool("rm fin/checkpoints/checkpoint-000002.tnck; exec \"$T\" train --resume fin -q")->code, 0);
    assert_int_equal(tool("cmp before/model-0000.params fin/model-0000.params")->code, 0);
    o = json_load_file("fin/run.json", 0, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "resumed")), 1);
    json_decref(o);
}

/* Numbers that are not finite: exit 1, the step's name, and what was good stays as it was. */
static void diverges(void **state)
{
    const tool_said *s = tool(TRAIN "--epochs 4 --lr 1e5 --out nan --set model.activation=relu --set "
                                    "train.warmup=0 --set train.checkpoint_every=0.2 -q");
    json_t *o;

    (void)state;
    assert_int_equal(s->code, 1);
    assert_says(s->err, "error[TN-0014]: step ");
    assert_says(s->err, "diverged");
    assert_says(s->err, "train.clip_norm");
    assert_int_equal(access("nan/model-0000.params", F_OK), -1);
    o = json_load_file("nan/run.json", 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "result"), "status")), "failed");
    json_decref(o);
    if (!access("nan/checkpoints/checkpoint-000001.tnck",
                F_OK)) { /* the last one is good: it goes on from there */
        assert_says(s->err, "last good checkpoint is nan/checkpoints/");
        s = tool("exec \"$T\" train --resume nan -q");
        assert_int_equal(s->code, 1);
    }
    /* One that comes down again, but not to where it began, ends well with a warning. */
    s = tool(TRAIN "--epochs 4 --lr 8 --batch 64 --out rose --set model.activation=relu --json "
                   "--progress none");
    assert_int_equal(s->code, 0);
    assert_says(s->err, "warning: ");
    assert_says(s->err, "take a lower learning rate (--lr, train.lr)");
    o = tool_json(s, 0);
    assert_true(json_integer_value(json_object_get(o, "diverged_epoch")) >= 1);
    json_decref(o);
    s = tool(TRAIN "--epochs 1 --lr 1e5 --out ignored --set model.activation=relu --set train.warmup=0 --set "
                   "train.on_nan=ignore -q");
    assert_int_equal(s->code, 0);
    /* Gradients that are limited do not diverge. */
    s = tool(TRAIN "--epochs 1 --lr 10 --out limited --set model.activation=relu --set train.warmup=0 --set "
                   "train.clip_norm=0.01 -q");
    assert_int_equal(s->code, 0);
}

/* One process in a folder; who is gone is no owner. */
static void locked(void **state)
{
    pid_t pid = tool_start(TRAIN "--epochs 100000 --out held -q");
    const tool_said *s;
    char line[256];

    (void)state;
    assert_true(tool_lines(pid, "held/metrics.jsonl", 2)); /* the first epoch's checkpoint is there then */
    (void)snprintf(line, sizeof line, "grep -q 'pid %d$' held/checkpoints/run.lock", (int)pid);
    assert_int_equal(system(line), 0);
    assert_int_equal(system("\"$T\" train --resume held >busy.out 2>&1; test $? = 1"), 0);
    assert_int_equal(system("grep -q 'in use by process' busy.out"), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)tool_wait(pid);
    assert_int_equal(access("held/checkpoints/run.lock", F_OK), 0);
    pid = tool_start("exec \"$T\" train --resume held --set train.epochs=100000 --json");
    assert_true(tool_lines(pid, "out.txt", 2)); /* it has begun, and ended an epoch: there is what to save */
    assert_int_equal(kill(pid, SIGTERM), 0);
    s = tool_wait(pid);
    assert_int_equal(s->code, 130);
    assert_says(s->err, "resumed after");
    assert_says(s->err, "which is gone; its lock is taken over");
    assert_int_equal(access("held/checkpoints/run.lock", F_OK), -1);
    /* A number that lives is not the process that wrote it; another host cannot be asked; a link is not
     * followed. */
    assert_int_equal(tool("printf 'pid 1\\nstart 1\\nhost %s\\n' \"$(hostname)\" >held/checkpoints/run.lock; "
                          "exec \"$T\" train --resume held --epochs 1 -q --json")
                         ->code,
                     2); /* fewer epochs than it has behind it; the lock was no obstacle */
    s = tool("printf 'pid 1\\nstart 1\\nhost elsewhere.invalid\\n' >held/checkpoints/run.lock; "
             "exec \"$T\" train --resume held -q");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "on host elsewhere.invalid");
    s = tool("rm held/checkpoints/run.lock; echo kept >victim; ln -s ../../victim held/checkpoints/run.lock; "
             "exec \"$T\" train --resume held -q");
    assert_int_equal(s->code, 1);
    assert_int_equal(tool("grep -q kept victim")->code, 0);
    s = tool("rm held/checkpoints/run.lock; echo rubbish >held/checkpoints/run.lock; "
             "exec \"$T\" train --resume held -q --epochs 1");
    assert_int_equal(s->code, 2);
}

/* A process that has ended, but for which its parent has not asked, holds nothing. */
static void locked_by_the_dead(void **state)
{
    pid_t pid = tool_start(TRAIN "--epochs 100000 --out dead -q");
    siginfo_t gone = {0};

    (void)state;
    assert_true(tool_lines(pid, "dead/metrics.jsonl", 1));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &gone, WEXITED | WNOWAIT), 0);
    assert_int_equal(system("\"$T\" doctor dead >dead.out 2>&1; grep -q 'stale lock' dead.out"), 0);
    (void)!system("\"$T\" train --resume dead --epochs 1 >dead.out 2>&1");
    assert_int_equal(system("grep -q 'which is gone; its lock is taken over' dead.out"), 0);
    (void)tool_wait(pid);
}

/* Who only looks at the file, and is held up meanwhile, is not taken for its owner; an owner that is held up
 * before it wrote its name is one. */
static void looked_at(void **state)
{
    const tool_said *s;
    int fd = open("fin/checkpoints/run.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    pid_t pid;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    pid = tool_start("exec \"$T\" train --resume fin -q");
    (void)usleep(500000);
    assert_int_equal(flock(fd, LOCK_UN), 0);
    if (tool_wait(pid)->code)
        fail_msg("%s", tool_file("err.txt"));
    (void)close(fd);
    fd = open("fin/checkpoints/run.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    s = tool("exec \"$T\" train --resume fin -q");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "run.lock: the run is in use by another process; wait until it ends\n");
    assert_int_equal(unlink("fin/checkpoints/run.lock"), 0);
    (void)close(fd);
}

/* A file that may not grow is an error with its name, not a signal; the folder is free afterwards. */
static void limited_files(void **state)
{
    const tool_said *s = tool("ulimit -f 100; " TRAIN "--epochs 2 --out short -q");

    (void)state;
    assert_int_equal(s->code, 1);
    assert_says(s->err, "File too large");
    assert_int_equal(access("short/checkpoints/run.lock", F_OK), -1);
}

static void needs_little_space(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: the sanitizer itself needs more address space\n");
    skip();
#endif
}

/* OpenBLAS would ask for its buffers for ever where the address space has no room for them: the plain kernels
 * train, and why is told. */
static void limited_space(void **state)
{
    const tool_said *s;

    (void)state;
    needs_little_space();
    s = tool("export OMP_NUM_THREADS=2; ulimit -v 500000; " TRAIN "--overfit-one --out narrow -q");
    if (s->code)
        fail_msg("code %d: %s", s->code, s->err);
    s = tool("export OMP_NUM_THREADS=2; ulimit -v 500000; \"$T\" plugins why FullyConnected --shape 8,8 "
             "--attr num_hidden=8");
    assert_int_equal(s->code, 0);
    if (strstr(s->out, "cpu-openblas"))
        assert_says(s->out, "address space");
}

/* What is loaded before the first step may never return, as this plugin's init: a signal ends that, and what
 * is left of the run is in nobody's way. */
static void ended_before_the_first_step(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT};
    char line[64];

    (void)state;
    assert_int_equal(
        tool("mkdir -p hangs && cp \"$TENON_TEST_BUILD/tests/check/defects/defect-init-hangs.so\" hangs")
            ->code,
        0);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        pid_t pid = tool_start("rm -rf tight; " TRAIN "--epochs 100000 --batch 16 --out tight -q "
                               "--set plugins.path=$PWD/hangs --set memory.cpu.pool=first-fit");
        const tool_said *s;

        (void)snprintf(line, sizeof line, "grep -q defect-init-hangs /proc/%d/maps", (int)pid);
        assert_true(tool_until(pid, line));
        assert_int_equal(kill(pid, signals[i]), 0);
        s = tool_wait(pid); /* the time limit is the test's */
        if (s->code != 128 + signals[i] && s->code != 130 && s->code != 5)
            fail_msg("code %d: %s", s->code, s->err);
        s = tool("exec \"$T\" train --resume tight --dry-run -q");
        assert_null(strstr(s->err, "in use"));
    }
}

/* Less still than one buffer of OpenBLAS, which would not return from its start: its plugin is refused
 * before, and others serve; where it is required, nothing does. */
static void refused_for_space(void)
{
    const tool_said *s =
        tool("export OMP_NUM_THREADS=2; ulimit -v 150000; " TRAIN "--overfit-one --out little");

    if (s->code)
        fail_msg("code %d: %s", s->code, s->err);
    assert_says(s->err, "warning: L11 ");
    assert_says(s->err, "of address space; the limit is 146 MiB");
    s = tool("export OMP_NUM_THREADS=2; ulimit -v 150000; " TRAIN
             "--overfit-one --out little -q --set plugins.require=cpu-openblas");
    assert_int_equal(s->code, 3);
    assert_says(s->err, "of address space; the limit is 146 MiB");
    s = tool("export OMP_NUM_THREADS=2; ulimit -v 150000; " TRAIN
             "--overfit-one --out little -q --set plugins.load=cpu,mempool");
    if (s->code)
        fail_msg("code %d: %s", s->code, s->err);
}

/* OpenBLAS asks for buffers for the processors of the machine, also where this process may use one only. */
static void little_address_space(void **state)
{
    cpu_set_t all, one;
    size_t first = 0;

    (void)state;
    needs_little_space();
    if (tool("exec \"$T\" plugins list --exists cpu-openblas")->code) {
        printf("skipped: cpu-openblas was not built\n");
        skip();
    }
    refused_for_space();
    if (sched_getaffinity(0, sizeof all, &all))
        return; /* more processors than fit there */
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    refused_for_space();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void tried_beforehand(void **state)
{
    const tool_said *s = tool(TRAIN "--dry-run --json");
    json_t *o = last(s), *row;

    (void)state;
    assert_int_equal(json_array_size(json_object_get(o, "layers")), 10);
    row = json_array_get(json_object_get(o, "layers"), 9);
    assert_string_equal(json_string_value(json_object_get(row, "op")), "FullyConnected");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(row, "shape"), 0)), 8);
    assert_true(json_array_size(json_object_get(o, "kernels")) > 5);
    assert_true(json_integer_value(json_object_get(json_object_get(o, "memory"), "activations")) >=
                json_integer_value(json_object_get(json_object_get(o, "memory"), "least")));
    assert_true(json_number_value(json_object_get(json_object_get(o, "step"), "loss")) > 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "data"), "samples")), 40);
    json_decref(o);
    s = tool(TRAIN "--dry-run");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "FullyConnected");
    assert_says(s->out, "step 1: loss ");
    assert_int_equal(access("runs", F_OK), -1);
    s = tool(TRAIN "--dry-run --set model.classes=2");
    assert_int_equal(s->code, 1);

    o = last(tool(TRAIN "--overfit-one --json"));
    assert_true(json_is_true(json_object_get(o, "learned")));
    assert_true(json_number_value(json_object_get(o, "loss")) <= 0.01);
    json_decref(o);
    s = tool(TRAIN "--overfit-one --lr 1e-9 --batch 2");
    assert_int_equal(s->code, 1);
    assert_says(s->out, "learned no");
    assert_says(s->err, "does not learn");
    assert_int_equal(access("runs", F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_address_space),
        cmocka_unit_test(tried_beforehand),
        cmocka_unit_test(not_trainable),
        cmocka_unit_test(from_file),
        cmocka_unit_test(same_samples),
        cmocka_unit_test(from_symbol),
        cmocka_unit_test(early_stop),
        cmocka_unit_test(more_epochs),
        cmocka_unit_test(finished_run),
        cmocka_unit_test(diverges),
        cmocka_unit_test(locked),
        cmocka_unit_test(limited_space),
        cmocka_unit_test(ended_before_the_first_step),
        cmocka_unit_test(locked_by_the_dead),
        cmocka_unit_test(looked_at),
        cmocka_unit_test(limited_files),
    };
    int failed;

    tool_setup();
    setenv("OMP_NUM_THREADS", "1", 1); /* many small trainings beside other tests */
    tool_data("small", 40);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
