/*
 * tenon launch on one machine: environments, output line by line, failures, signals, and that nothing stays
 * behind. Ends are waited for by descriptors: a FIFO that a process and all it left behind hold open gives
 * the end of file when they are gone, and a test that is their subreaper has no child left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NARROW "" /* shadow memory is larger */
#else
#define NARROW "ulimit -v 400000; "
#endif
#define RUN "exec \"$T\" launch --grace 60 "
#define PLAIN RUN "-n 2 -s 0 -- "

static void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* ---- the command line ---- */

static void command_lines(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"\"$T\" launch", 2, "the number of workers, is missing"},
        {"\"$T\" launch -n 2 -s 0", 2, "the command is missing"},
        {"\"$T\" launch -n 2 -s 0 --", 2, "the command is missing"},
        {"\"$T\" launch -n 0 -- true", 2, "--num-workers 0: a number from 1 to 65536"},
        {"\"$T\" launch -n -3 -- true", 2, "a number from 1 to 65536"},
        {"\"$T\" launch -n 2x -- true", 2, "a number from 1 to 65536"},
        {"\"$T\" launch -n 1 -s 99999999999999999999 -- true", 2, "a number from 0 to 65536"},
        {"\"$T\" launch -n 1 -s 65537 -- true", 2, "a number from 0 to 65536"},
        {"\"$T\" launch -n 1 -s -1 -- true", 2, "a number from 0 to 65536"},
        {"\"$T\" launch -n 1 --launcher loacl -- true", 2, "did you mean local?"},
        {"\"$T\" launch -n 1 --launcher ssh -- true", 2, "--hostfile FILE is missing"},
        {"\"$T\" launch -n 1 -H hosts --launcher slurm -- true", 2, "--hostfile is for"},
        {"\"$T\" launch -n 1 --sync-dst-dir /x -- true", 2, "--sync-dst-dir is for"},
        {"\"$T\" launch -n 1 --on-fail restart --launcher mpi -- true", 2, "--on-fail restart is for"},
        {"\"$T\" launch -n 1 --on-fail later -- true", 2, "--on-fail later"},
        {"\"$T\" launch -n 1 --on-fail restart: -- true", 2, "--on-fail restart:"},
        {"\"$T\" launch -n 1 --on-fail restart:-1 -- true", 2, "--on-fail restart:-1"},
        {"\"$T\" launch -n 1 --on-fail restart:9999999999 -- true", 2, "--on-fail restart:"},
        {"\"$T\" launch -n 1 --grace -1 -- true", 2, "--grace -1"},
        {"\"$T\" launch -n 1 --grace nan -- true", 2, "--grace nan"},
        {"\"$T\" launch -n 1 --env =x -- true", 2, "--env =x: NAME or NAME=VALUE"},
        {"\"$T\" launch -n 1 --env 'A B=x' -- true", 2, "--env A B=x"},
        {"\"$T\" launch -n 1 --env-server 1A=x -- true", 2, "--env-server 1A=x"},
        {"\"$T\" launch -n 1 --env-worker '' -- true", 2, "--env-worker: the value is empty"},
        {"\"$T\" launch -n 1 --emit nomad -- true", 2, "k8s is needed"},
        {"\"$T\" launch -n 1 -H absent -- true", 2, "absent: No such file"},
        {"\"$T\" launch -n 1 -H . -- true", 2, ".: Is a directory"},
        {": >empty; \"$T\" launch -n 1 -H empty -- true", 2, "empty: no host is listed"},
        {"printf 'a\\n-oProxyCommand=x\\n' >bad; \"$T\" launch -n 1 -H bad -- true", 2,
         "bad:2: this is no name"},
        {"echo 'a slots=0' >bad; \"$T\" launch -n 1 -H bad -- true", 2, "bad:1: [USER@]HOST"},
        {"echo 'a:70000' >bad; \"$T\" launch -n 1 -H bad -- true", 2, "bad:1: this is no name"},
        {"echo 'x@-a' >bad; \"$T\" launch -n 1 -H bad -- true", 2, "bad:1: this is no name"},
        {"echo 'a;b' >bad; \"$T\" launch -n 1 -H bad -- true", 2, "bad:1: this is no name"},
        {"printf '%2000s\\n' a >bad; \"$T\" launch -n 1 -H bad -- true", 2, "bad:1: the line is too long"},
        {"head -c 3000 /dev/zero >bad; \"$T\" launch -n 1 -H bad -- true", 2, "bad: no host is listed"},
        {"\"$T\" launch -n 1 -s 0 --log-dir /dev/null -- true", 1, "--log-dir /dev/null: Not a directory"},
        {"\"$T\" launch -n 1 -s 0 --log-dir /proc/x/y -- true", 1, "--log-dir /proc/x/y: No such file"},
        {"\"$T\" launch -n 1 -s 0 -- ./absent", 127, "cannot run ./absent: No such file"},
        {": >plain; \"$T\" launch -n 1 -s 0 -- ./plain", 126, "cannot run ./plain: Permission denied"},
        {"\"$T\" launch -n 1 -s 0 -- /", 126, "cannot run /: Permission denied"},
        {"unset SLURM_PROCID; \"$T\" launch -n 1 --launcher rank -- true", 2, "no launcher has told a rank"},
        {"PMI_RANK=2 \"$T\" launch -n 1 -s 1 --launcher rank -- true", 2, "PMI_RANK is 2, but there are 1"},
        {"PMI_RANK=0 \"$T\" launch -n 1 -s 1 --launcher rank -- true", 2, "where is the scheduler?"},
        {"PMI_RANK=x \"$T\" launch -n 1 -s 1 --launcher rank -- true", 2, "no launcher has told a rank"},
        {"\"$T\" launch --launcher pipe </dev/null", 2, "no message of `tenon launch`"},
        {"echo hello | \"$T\" launch --launcher pipe", 2, "no message of `tenon launch`"},
        {"printf 'tenon-launch-1 99999999 0 1\\n' | \"$T\" launch --launcher pipe", 2, "no message"},
        {"printf 'tenon-launch-1 8 0 1\\n/\\0\\0tru' | \"$T\" launch --launcher pipe", 2, "no message"},
        {"printf 'tenon-launch-1 8 0 9\\n/\\0\\0true\\0' | \"$T\" launch --launcher pipe", 2, "no message"},
        {"printf 'tenon-launch-1 8 1 1\\n/\\0\\0true\\0' | \"$T\" launch --launcher pipe", 2, "no message"},
        {"printf 'tenon-launch-1 8 0 1\\n/\\0\\0truee' | \"$T\" launch --launcher pipe", 2, "no message"},
        {"printf 'tenon-launch-1 -8 0 1\\n/\\0\\0true\\0' | \"$T\" launch --launcher pipe", 2, "no message"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tool_said *s = tool(cases[i].line);

        if (s->code != cases[i].code || !strstr(s->err, cases[i].says))
            fail_msg("%s: code %d, %s; expected %d, \"%s\"", cases[i].line, s->code, s->err, cases[i].code,
                     cases[i].says);
    }
}

/* ---- what a process finds ---- */

static void environments(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool("DMLC_SERVER_ID=7 DMLC_ROLE=x X=here " RUN
             "-n 2 -s 1 --all-roles --env A=B=C --env X --env NO_SUCH --env-worker W:1 --env-server S=2 "
             "--set kvstore.timeout=5s -- sh -c 'echo \"<$DMLC_ROLE $DMLC_NUM_WORKER $DMLC_NUM_SERVER "
             "$DMLC_WORKER_ID,$DMLC_SERVER_ID,$DMLC_TASK_ID $DMLC_PS_ROOT_URI $DMLC_NODE_HOST "
             "$DMLC_NUM_ATTEMPT $A $X ${NO_SUCH-none} ${W-} ${S-} $TENON_KVSTORE__TIMEOUT>\"'");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "[w0] <worker 2 1 0,,0 127.0.0.1 127.0.0.1 0 B=C here none 1  5s>");
    assert_says(s->out, "[w1] <worker 2 1 1,,1 127.0.0.1 127.0.0.1 0 B=C here none 1  5s>");
    assert_says(s->err, "[s0] <server 2 1 ,0,0 127.0.0.1 127.0.0.1 0 B=C here none  2 5s>");
    assert_says(s->err, "[sched] <scheduler 2 1 ,,0 127.0.0.1 127.0.0.1 0 B=C here none   5s>");

    s = tool(RUN
             "-n 1 -s 1 --all-roles -- sh -c 'test $DMLC_PS_ROOT_PORT -gt 0 && "
             "test ${#TENON_KV_JOB} = 16 && ls -l $TENON_KVSTORE__SECRET_FILE | cut -c 1-10 && "
             "wc -c <$TENON_KVSTORE__SECRET_FILE && dirname $TENON_KVSTORE__SECRET_FILE >folder-$DMLC_ROLE'");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "[w0] -rw-------\n[w0] 65\n");
    assert_int_equal(tool("! test -e \"$(cat folder-worker)\"")->code, 0);

    s = tool("PMI_RANK=2 DMLC_PS_ROOT_URI=h " RUN "-n 2 -s 1 --launcher rank --all-roles -- "
             "sh -c 'echo $DMLC_ROLE $DMLC_SERVER_ID $DMLC_PS_ROOT_URI'");
    assert_says(s->err, "[s0 "); /* this host */
    assert_says(s->err, "] server 0 h\n");
    s = tool("SGE_TASK_ID=2 DMLC_PS_ROOT_URI=h " RUN "-n 2 -s 1 --launcher rank -- sh -c "
             "'echo $DMLC_ROLE $DMLC_WORKER_ID'");
    assert_says(s->out, "] worker 1\n");
    /* one server of a job of another launcher has no workers beside it, and works on */
    s = tool("PMI_RANK=1 DMLC_PS_ROOT_URI=h \"$T\" launch -n 1 -s 1 --grace 0 --launcher rank --all-roles -- "
             "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5'");
    assert_int_equal(s->code, 5);
    /* the far end: as long as its stdin is open; the secret is in a file of its own */
    s = tool("mkdir -p far && printf 'tenon-launch-1 101 1 3\\n/\\0key\\0A=b\\0sh\\0-c\\0"
             "echo $A; pwd; cat $TENON_KVSTORE__SECRET_FILE; cd $OLDPWD; ls -A far | wc -l; exit 3\\0' "
             ">message && "
             "mkfifo way && exec 8<>way && cat message >&8 && TMPDIR=$PWD/far OLDPWD=$PWD \"$T\" launch "
             "--launcher "
             "pipe <way; code=$?; ls -A far; exit $code");
    assert_int_equal(s->code, 3);
    assert_string_equal(s->out, "b\n/\nkey\n1\n");
    s = tool(
        "printf 'tenon-launch-1 23 0 3\\n/\\0\\0sh\\0-c\\0kill -STOP $$\\0' | \"$T\" launch --launcher pipe");
    assert_int_equal(s->code, 137);
}

/* Nothing but 0, 1 and 2 is open, no signal is blocked or ignored, and the limit of files is the caller's. */
static void inherited(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool("ulimit -S -n 200; " RUN "-n 1 -s 0 -- sh -c 'ulimit -n; cat; readlink /proc/$$/fd/0'");
    assert_int_equal(s->code, 0);
    assert_string_equal(s->out, "[w0] 200\n[w0] /dev/null\n");
    s = tool(RUN "-n 1 -s 0 -- grep -E 'Sig(Blk|Ign)' /proc/self/status");
    assert_string_equal(s->out, "[w0] SigBlk:\t0000000000000000\n[w0] SigIgn:\t0000000000000000\n");
    s = tool("exec 7</dev/null; " RUN "-n 2 -s 0 --log-dir logs -- ls /proc/self/fd"); /* 3 is the folder */
    assert_int_equal(s->code, 0);
    assert_int_equal(strlen(s->out), 2 * strlen("[w0] 0\n[w0] 1\n[w0] 2\n[w0] 3\n"));
}

/* The scheduler takes a free port itself and tells it; servers and workers get it. */
static void own_servers(void **state)
{
    const tool_said *s;

    (void)state;
    if (tool("\"$T\" plugins list --exists kv-zmq")->code) {
        printf("skipped: the plugin kv-zmq is not built\n");
        skip();
    }
    s = tool(RUN "-n 2 -s 2 --set log.level=error -- sh -c 'echo at $DMLC_PS_ROOT_URI:$DMLC_PS_ROOT_PORT'");
    assert_int_equal(s->code, 0);
    assert_int_equal(count_of(s->out, " at 127.0.0.1:"), 2);
    assert_null(strstr(s->out, ":0\n"));
    s = tool(RUN "-n 1 -s 1 --set kvstore.security=none --set kvstore.timeout=never -- true");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "tenon: scheduler failed: exit code 2");
    s = tool(RUN "-n 1 -s 1 -- sh -c 'sleep 600' sh --set kvstore.transport=absent");
    assert_says(s->err, "tenon: scheduler failed: exit code 3");
    assert_says(s->err, "no plugin here has the transport absent");
    s = tool("TENON_KVSTORE__SECURITY=none " RUN
             "-n 1 -s 1 --all-roles -- sh -c 'echo \"<$TENON_KVSTORE__SECRET_FILE>\"'");
    assert_says(s->out, "[w0] <>\n");
}

/* ---- output ---- */

static void lines(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(
        RUN
        "-n 1 -s 0 -- sh -c 'echo plain; echo \"{}\"; echo \"{\\\"a\\\": 1.2500, \\\"b\\\": [{}]} \"; "
        "echo \"{\\\"rank\\\": 9}\"; echo \"{bad}\"; echo \"{\\\"n\\\": 123456789012345678901234567890}\"; "
        "echo; printf end; echo err >&2; printf last >&2'");
    assert_int_equal(s->code, 0);
    assert_string_equal(s->out, "[w0] plain\n{\"rank\": 0}\n{\"a\": 1.2500, \"b\": [{}], \"rank\": 0}\n"
                                "{\"rank\": 9}\n[w0] {bad}\n"
                                "{\"n\": 123456789012345678901234567890, \"rank\": 0}\n[w0] \n[w0] end\n");
    assert_string_equal(s->err, "[w0] err\n[w0] last\n");
    s = tool(RUN
             "-n 1 -s 0 --json -- sh -c 'echo \"say \\\"hi\\\"\"; printf \"\\377\\000x\\n\"; echo \"{}\"'");
    assert_string_equal(s->out, "{\"text\": \"say \\\"hi\\\"\", \"rank\": 0}\n"
                                "{\"text\": \"?\\u0000x\", \"rank\": 0}\n{\"rank\": 0}\n");
    /* binary output keeps its bytes */
    s = tool(RUN "-n 1 -s 0 -- sh -c 'printf \"\\000\\001\\377\\n\\n\\200\"' | od -An -tx1 | tr -d '\\n'");
    assert_string_equal(s->out, " 5b 77 30 5d 20 00 01 ff 0a 5b 77 30 5d 20 0a 5b 77 30 5d 20 80 0a");
    /* a process that closes its output goes on */
    s = tool(PLAIN "sh -c 'exec >&- 2>&-; test $DMLC_WORKER_ID = 0 || exit 5'");
    assert_int_equal(s->code, 5);
    assert_says(s->err, "tenon: worker 1 failed: exit code 5\n");
}

/* 8 processes write 3,000 lines each, and long ones: none is lost, none has another in it, each rank's are in
 * order. */
static void lines_many(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(
        "\"$T\" launch -n 8 -s 0 -- sh -c 'i=0; while [ $i -lt 3000 ]; do echo $i $i $i; i=$((i+1)); done' | "
        "awk '{ if (NF != 4 || $2 != n[$1]++ || $2 != $3 || $3 != $4) bad++ } "
        "END { for (r in n) print r, n[r]; print \"bad\", bad + 0 }' | LC_ALL=C sort");
    assert_int_equal(s->code, 0);
    assert_string_equal(s->out,
                        "[w0] 3000\n[w1] 3000\n[w2] 3000\n[w3] 3000\n[w4] 3000\n[w5] 3000\n[w6] 3000\n"
                        "[w7] 3000\nbad 0\n");
    s = tool("\"$T\" launch -n 3 -s 0 -- sh -c 'for i in 1 2; do head -c 3000000 /dev/zero | tr \"\\000\" "
             "$DMLC_WORKER_ID; echo; echo short; done' | awk '{ c = substr($2, 1, 1); gsub(c, \"\", $2); "
             "print $1, length($0), $2 == \"\" ? c : $2 }' | LC_ALL=C sort | uniq -c | tr -s ' '");
    assert_string_equal(
        s->out, " 2 [w0] 5 0\n 2 [w0] 9 hort\n 2 [w1] 5 1\n 2 [w1] 9 hort\n 2 [w2] 5 2\n 2 [w2] 9 hort\n");
    s = tool(
        "\"$T\" launch -n 3 -s 0 -- sh -c 'head -c 3000000 /dev/zero | tr \"\\000\" $DMLC_WORKER_ID; echo' | "
        "wc -c");
    assert_int_equal(strtol(s->out, NULL, 10), 3 * (3000000 + 6));
}

/* A reader that takes nothing stops the writers; memory stays small. */
static void slow_reader(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(NARROW "(\"$T\" launch -n 2 -s 0 -- sh -c 'yes \"$(printf %0200d 1)\" | head -c "
                    "60000000') | "
                    "{ read -r line; wc -c; }");
    assert_int_equal(s->code, 0);
    assert_true(strtol(s->out, NULL, 10) > 120000000);
}

static void no_reader(void **state)
{
    (void)state;
    /* the reader has seen enough: the job goes on */
    assert_int_equal(tool("{ \"$T\" launch -n 2 -s 0 -- sh -c 'yes | head -c 300000; echo x >>done'; "
                          "echo $? >code; } | head -n 1 >/dev/null; grep -c x done; exit $(cat code)")
                         ->code,
                     0);
    assert_string_equal(tool("grep -c x done")->out, "2\n");
    /* a full disk is told, and the job does its work all the same */
    const tool_said *s = tool("\"$T\" launch -n 2 -s 0 -- sh -c 'echo hi; echo y >>done' >/dev/full");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "cannot write to standard output: No space left");
    assert_string_equal(tool("grep -c y done")->out, "2\n");
    assert_int_equal(tool("\"$T\" launch -n 1 -s 0 -- sh -c 'echo hi; exit 3' >&-")->code, 3);
}

static void logs(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(
        RUN "-n 2 -s 1 --all-roles --log-dir logs/ -- sh -c 'echo out $DMLC_ROLE; echo err >&2; printf end'");
    assert_int_equal(s->code, 0);
    assert_int_equal(tool("cat logs/worker-1.log | sort | tr '\\n' ,")->code, 0);
    assert_string_equal(tool("sort logs/worker-1.log | tr '\\n' ,")->out, "end,err,out worker,");
    assert_string_equal(tool("sort logs/server-0.log | tr '\\n' ,")->out, "end,err,out server,");
    assert_string_equal(tool("sort logs/scheduler.log | tr '\\n' ,")->out, "end,err,out scheduler,");
    assert_int_equal(tool("ln -sf /dev/full logs/worker-0.log")->code, 0);
    s = tool(RUN "-n 2 -s 0 --log-dir logs -- sh -c 'echo out'");
    assert_int_equal(s->code, 1);
    assert_says(s->out, "[w0] out\n");
    assert_says(s->err, "the log of worker 0: No space left");
}

/* ---- failures ---- */

static void failures(void **state)
{
    const tool_said *s;
    json_t *event;

    (void)state;
    s = tool(PLAIN "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done; "
                   "test $DMLC_WORKER_ID = 1 && exit 7; read x <hold'");
    assert_int_equal(s->code, 7);
    assert_says(s->err, "tenon: worker 1 failed: exit code 7; its last lines:\n  | line 3\n");
    assert_says(s->err, "  | line 12\ntenon: stopping 1 other process\n");
    assert_null(strstr(s->err, "worker 0"));
    s = tool(RUN "-n 2 -s 0 --json -- sh -c 'test $DMLC_WORKER_ID = 1 && echo why >&2 && kill -SEGV $$; read "
                 "x <hold'");
    assert_int_equal(s->code, 139);
    assert_says(s->err, "signal 11 (Segmentation fault)");
    event = tool_json(s, 0);
    assert_string_equal(json_string_value(json_object_get(event, "event")), "failed");
    assert_int_equal(json_integer_value(json_object_get(event, "rank")), 1);
    assert_int_equal(json_integer_value(json_object_get(event, "signal")), 11);
    assert_string_equal(json_string_value(json_array_get(json_object_get(event, "last"), 0)), "why");
    json_decref(event);
    /* one that lost its peer is a consequence */
    s = tool(RUN "-n 2 -s 1 --all-roles -- sh -c 'test $DMLC_ROLE = server && exit 9; read x <hold'");
    assert_int_equal(s->code, 9);
    assert_says(s->err, "tenon: server 0 failed: exit code 9");
    /* one that does not hear SIGTERM */
    s = tool("exec \"$T\" launch -n 2 -s 0 --grace 0.05 -- sh -c 'trap \"\" TERM; test $DMLC_WORKER_ID = 1 "
             "&& exit 4; "
             "read x <hold'");
    assert_int_equal(s->code, 4);
}

static void signals_each(void **state)
{
    static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGFPE,  SIGKILL, SIGBUS,
                                  SIGSEGV, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGXFSZ, SIGSYS};

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char line[256], says[64];
        const tool_said *s;

        (void)snprintf(line, sizeof line, RUN "-n 1 -s 0 -- sh -c 'ulimit -c 0; kill -%d $$'", signals[i]);
        (void)snprintf(says, sizeof says, "worker 0 failed: signal %d (", signals[i]);
        s = tool(line);
        assert_int_equal(s->code, 128 + signals[i]);
        assert_says(s->err, says);
    }
}

static void restarts(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(RUN "-n 2 -s 0 --on-fail restart:2 --log-dir again -- sh -c 'echo try $DMLC_NUM_ATTEMPT; "
                 "test $DMLC_NUM_ATTEMPT = 2 || test $DMLC_WORKER_ID = 0'");
    assert_int_equal(s->code, 0);
    assert_int_equal(count_of(s->out, "[w0] try"), 1);
    assert_int_equal(count_of(s->out, "[w1] try"), 3);
    assert_says(s->err, "restart 2 of 2");
    assert_string_equal(tool("cat again/worker-1.log")->out, "try 0\ntry 1\ntry 2\n");
    /* the launch's number: of all its processes and starts; another launch has another one */
    s = tool("for i in 1 2; do (TENON_KV_JOB_LAUNCH=outside " RUN
             "-n 2 -s 0 --on-fail restart:1 -- sh -c 'echo \"$TENON_KV_JOB_LAUNCH\" >>number; "
             "test $DMLC_NUM_ATTEMPT = 1 || test $DMLC_WORKER_ID = 0') || exit 9; done; "
             "sort number | uniq -c | sed 's/ [0-9a-f]\\{16\\}$/ number/'");
    assert_int_equal(s->code, 0);
    assert_int_equal(count_of(s->out, "      3 number\n"), 2);
    s = tool("PMI_RANK=0 TENON_KV_JOB_LAUNCH=outside " RUN
             "-n 1 -s 0 --launcher rank -- sh -c 'echo $TENON_KV_JOB_LAUNCH'");
    assert_says(s->out, "] outside\n");
    s = tool(RUN "-n 1 -s 0 --on-fail restart:1 -- sh -c 'echo try; exit 8'");
    assert_int_equal(s->code, 8);
    assert_int_equal(count_of(s->out, "try"), 2);
    s = tool(RUN "-n 1 -s 0 --on-fail restart:0 -- sh -c 'exit 8'");
    assert_int_equal(s->code, 8);
    s = tool(RUN "-n 3 -s 0 --on-fail shrink -- sh -c 'test $DMLC_WORKER_ID = 1 && exit 8; echo done'");
    assert_int_equal(s->code, 0);
    assert_int_equal(count_of(s->out, "done"), 2);
    assert_says(s->err, "tenon: worker 1 failed: exit code 8\ntenon: the job goes on");
    s = tool(RUN "-n 2 -s 0 --on-fail shrink -- sh -c 'exit 8'");
    assert_int_equal(s->code, 8);
}

/* ---- nothing stays ---- */

/* What a process leaves behind: in its group, in a session of its own, and an orphan of an orphan. */
static const char family[] = "exec 9>alive\n"
                             "trap '' HUP\n"
                             "sh -c 'exec sh -c \"read x <hold\"' &\n"
                             "setsid sh -c 'trap \"\" TERM HUP INT; read x <hold' &\n"
                             "(setsid sh -c 'sh -c \"read x <hold\" & read x <hold' &)\n"
                             "echo ready\n"
                             "read x <\"$1\"\n";

/* Nobody holds `alive` for writing any more. */
static void wait_gone(int alive)
{
    char byte;
    ssize_t n;

    do
        n = read(alive, &byte, 1);
    while (n < 0 && errno == EINTR);
    assert_int_equal(n, 0);
}

static int alive_open(void)
{
    const int fd = open("alive", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
    return fd;
}

static void outlive(void **state)
{
    const int alive = alive_open();

    (void)state;
    assert_int_equal(tool(PLAIN "sh family /dev/null")->code, 1); /* read meets the end */
    wait_gone(alive);
    close(alive);
}

/* All children that this process adopted are gone, too: guards and the keeper of the folder. */
static void adopted_wait(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, 0);
    while (pid > 0 || errno == EINTR);
    assert_int_equal(errno, ECHILD);
}

static void killed(void **state)
{
    const int alive = alive_open();
    pid_t pid;

    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(tool("mkdir -p tmp")->code, 0);
    pid = tool_start("TMPDIR=$PWD/tmp " RUN "-n 3 -s 2 --all-roles -- sh family hold");
    assert_true(tool_lines(pid, "out.txt", 3) && tool_lines(pid, "err.txt", 3));
    assert_int_equal(tool("ls tmp/*/secret")->code, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    wait_gone(alive);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    adopted_wait();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    assert_string_equal(tool("ls -A tmp")->out, "");
    close(alive);
}

/* A guard that is killed takes its process with it, and the launcher the rest. */
static void guard_killed(void **state)
{
    const int alive = alive_open();
    const tool_said *s;

    (void)state;
    s = tool(RUN "-n 1 -s 0 -- sh -c 'echo begun; sh family hold & kill -9 $PPID; wait'");
    assert_int_equal(s->code, 137);
    assert_says(s->err, "worker 0 failed: signal 9");
    wait_gone(alive);
    close(alive);
}

/* What a shell started before it became the launcher is not the launcher's to end. */
static void not_ours(void **state)
{
    const int alive = alive_open();
    struct pollfd closed = {alive, POLLIN, 0};
    char text[32] = "";

    (void)state;
    assert_int_equal(tool("mkfifo begun; sh -c 'exec 9>alive; echo $$ >&9; echo >begun; read x <hold' & " RUN
                          "-n 1 -s 0 -- sh -c 'read x <begun'")
                         ->code,
                     0);
    assert_true(read(alive, text, sizeof text - 1) > 0);
    assert_int_equal(poll(&closed, 1, 0), 0);
    assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
    wait_gone(alive);
    close(alive);
}

/* ^Z stops the workers and the launcher; SIGCONT lets both go on. */
static void suspends(void **state)
{
    const tool_said *s;
    int status = 0;
    pid_t pid;

    (void)state;
    pid = tool_start(PLAIN "sh -c 'trap \"echo on; exit 0\" CONT; echo up; "
                           "while :; do read x <hold; done'");
    assert_true(tool_lines(pid, "out.txt", 2));
    assert_int_equal(kill(pid, SIGTSTP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(kill(pid, SIGCONT), 0);
    s = tool_wait(pid);
    assert_int_equal(s->code, 0);
    assert_int_equal(count_of(s->out, "on\n"), 2);
}

/* Signals to the launcher: workers hear of them first, and servers when the workers are gone. */
static void stops(void **state)
{
    static const struct {
        int sig;
        const char *trap;
    } cases[] = {{SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}};
    const tool_said *s;
    pid_t pid;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];

        (void)snprintf(
            line, sizeof line,
            ": >order; " RUN
            "-n 2 -s 1 --all-roles -- sh -c 'trap \"echo $DMLC_ROLE >>order; exit 130\" %s TERM; echo up; "
            "while :; do read x <hold; done'",
            cases[i].trap);
        pid = tool_start(line);
        assert_true(tool_lines(pid, "out.txt", 2) && tool_lines(pid, "err.txt", 2));
        assert_int_equal(kill(pid, cases[i].sig), 0);
        s = tool_wait(pid);
        assert_int_equal(s->code, 130);
        assert_says(s->err, "stopping on request");
        assert_string_equal(tool("tr '\\n' ' ' <order")->out, "worker worker server scheduler ");
    }
    /* a failure on the way out is told */
    pid = tool_start(PLAIN
                     "sh -c 'trap \"echo no room; exit 3\" TERM; echo up; while :; do read x <hold; done'");
    assert_true(tool_lines(pid, "out.txt", 2));
    assert_int_equal(kill(pid, SIGTERM), 0);
    s = tool_wait(pid);
    assert_int_equal(s->code, 3);
    assert_says(s->err, "failed: exit code 3");
    /* below nohup */
    pid = tool_start("trap '' HUP; " PLAIN
                     "sh -c 'trap \"exit 0\" USR1; echo up; while :; do read x <hold; done'");
    assert_true(tool_lines(pid, "out.txt", 2));
    assert_int_equal(kill(pid, SIGHUP), 0);
    assert_int_equal(kill(pid, SIGUSR1), 0);
    assert_int_equal(tool_wait(pid)->code, 0);
    /* a second signal */
    pid = tool_start(PLAIN "sh -c 'trap \"echo asked\" TERM; echo up; while :; do read x <hold; done'");
    assert_true(tool_lines(pid, "out.txt", 2));
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_true(tool_lines(pid, "out.txt", 4));
    while (!kill(pid, SIGTERM)) { /* the second counts from 0.2 s on */
        siginfo_t gone = {0};

        if (waitid(P_PID, (id_t)pid, &gone, WEXITED | WNOHANG | WNOWAIT) || gone.si_pid)
            break;
    }
    assert_int_equal(tool_wait(pid)->code, 130);
    /* others are passed on */
    pid =
        tool_start(PLAIN "sh -c 'trap \"echo saved; exit 0\" USR1; echo up; while :; do read x <hold; done'");
    assert_true(tool_lines(pid, "out.txt", 2));
    assert_int_equal(kill(pid, SIGUSR1), 0);
    s = tool_wait(pid);
    assert_int_equal(s->code, 0);
    assert_int_equal(count_of(s->out, "saved"), 2);
}

static void many(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(
        "\"$T\" launch -n 64 -s 0 -- sh -c 'echo $DMLC_WORKER_ID; exit 0' | sort -n -t ' ' -k 2 | sha256sum; "
        "for i in $(seq 0 63); do echo \"[w$i] $i\"; done | sha256sum");
    assert_int_equal(s->code, 0);
    assert_memory_equal(s->out, strchr(s->out, '\n') + 1, 64);
    s = tool("ulimit -n 40; exec \"$T\" launch -n 64 -s 0 -- sh -c 'read x <hold'");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "Too many open files; raise `ulimit -n`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_lines), cmocka_unit_test(environments), cmocka_unit_test(inherited),
        cmocka_unit_test(own_servers),   cmocka_unit_test(lines),        cmocka_unit_test(lines_many),
        cmocka_unit_test(slow_reader),   cmocka_unit_test(no_reader),    cmocka_unit_test(logs),
        cmocka_unit_test(failures),      cmocka_unit_test(signals_each), cmocka_unit_test(restarts),
        cmocka_unit_test(outlive),       cmocka_unit_test(killed),       cmocka_unit_test(guard_killed),
        cmocka_unit_test(stops),         cmocka_unit_test(many),         cmocka_unit_test(not_ours),
        cmocka_unit_test(suspends),
    };
    int failed;

    tool_setup();
    if (mkfifo("hold", 0600) || mkfifo("alive", 0600))
        return 1;
    file_write("family", family);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
