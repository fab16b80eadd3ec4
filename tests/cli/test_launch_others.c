/*
 * tenon launch through other launchers: a real Open MPI, a real Slurm of one node whose daemons this test
 * starts, what qsub and YARN's client are asked, and manifests for Kubernetes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

#define JOB "launch -n 2 -s 1 --all-roles --host-ip 127.0.0.1 --grace 60 "
#define DAEMONS 3

static pid_t daemons[DAEMONS];
static int daemon_count;

static void needs(const char *program, const char *package)
{
    char line[128];

    (void)snprintf(line, sizeof line, "command -v %s >/dev/null || test -x /usr/sbin/%s", program, program);
    if (!system(line))
        return;
    printf("skipped: %s is not installed (Debian: %s)\n", program, package);
    skip();
}

/* What a job does under each launcher: roles by rank, one failure, an end from outside. */
static void job_works(const char *launcher)
{
    char line[1024];
    const tool_said *s;
    int alive;
    pid_t pid;

    (void)snprintf(
        line, sizeof line,
        "\"$T\" " JOB "--launcher %s --env-worker W=1 --env-server S=2 -- sh -c 'echo \"<$DMLC_ROLE "
        "$DMLC_WORKER_ID$DMLC_SERVER_ID $W$S $DMLC_PS_ROOT_URI>\"; wc -c <$TENON_KVSTORE__SECRET_FILE; "
        "echo \"{}\"'",
        launcher);
    s = tool(line);
    if (s->code)
        printf("%s\n", s->err);
    assert_int_equal(s->code, 0);
    assert_says(s->out, "] <worker 0 1 127.0.0.1>\n");
    assert_says(s->out, "] <worker 1 1 127.0.0.1>\n");
    assert_says(s->out, "{\"rank\": 0}\n");
    assert_says(s->out, "{\"rank\": 1}\n");
    assert_says(s->out, "] 65\n");
    assert_says(s->err, "] <server 0 2 127.0.0.1>\n");
    assert_says(s->err, "[sched] <scheduler   127.0.0.1>\n");
    (void)snprintf(line, sizeof line,
                   "\"$T\" " JOB
                   "--launcher %s -- sh -c 'echo why >&2; test \"$DMLC_WORKER_ID\" = 1 && exit 7; "
                   "read x <hold'",
                   launcher);
    s = tool(line);
    assert_int_equal(s->code, 7);
    assert_says(s->err, "tenon: worker 1 on ");
    assert_says(s->err, " failed: exit code 7; its last lines:\n  | why\n");
    /* the launcher is killed: its processes on all nodes end, and the folder with the secret is gone */
    alive = open("alive", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(fcntl(alive, F_SETFL, 0), 0);
    (void)snprintf(line, sizeof line,
                   "exec \"$T\" " JOB "--launcher %s -- sh -c 'exec 9>alive; echo up; read x <hold'",
                   launcher);
    pid = tool_start(line);
    assert_true(tool_lines(pid, "out.txt", 2));
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)waitpid(pid, NULL, 0);
    while (read(alive, line, 1) < 0 && errno == EINTR)
        ;
    close(alive);
}

static void mpi(void **state)
{
    (void)state;
    needs("mpirun", "openmpi-bin");
    if (system("mpirun --version | grep -q 'Open MPI'")) {
        printf("skipped: mpirun is not Open MPI's\n");
        skip();
    }
    job_works("mpi");
}

/* ---- Slurm ---- */

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static pid_t daemon_start(const char *line)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (!pid) {
        const int log = open("daemons.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
            execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    daemons[daemon_count++] = pid;
    return pid;
}

static void daemons_end(void)
{
    while (daemon_count) {
        (void)kill(daemons[--daemon_count], SIGTERM);
        (void)waitpid(daemons[daemon_count], NULL, 0);
    }
}

/* False: a daemon did not come up; the ports may have been taken meanwhile. */
static bool slurm_start(void)
{
    char line[2048];
    const int control = free_port(), node = free_port();
    pid_t last;

    (void)snprintf(
        line, sizeof line,
        "rm -rf slurm; mkdir -p slurm/key slurm/state slurm/spool slurm/socket; chmod 700 slurm/key; "
        "chmod 755 . slurm slurm/socket; head -c 1024 /dev/urandom >slurm/key/key; chmod 600 slurm/key/key; "
        "cd slurm; H=$(hostname -s); cat >slurm.conf <<END\n"
        "ClusterName=test\nSlurmctldHost=$H(127.0.0.1)\nSlurmctldPort=%d\nSlurmdPort=%d\n"
        "AuthType=auth/munge\nAuthInfo=socket=$PWD/socket/munge\nSlurmUser=root\nSlurmdUser=root\n"
        "StateSaveLocation=$PWD/state\nSlurmdSpoolDir=$PWD/spool\nSlurmctldPidFile=$PWD/control.pid\n"
        "SlurmdPidFile=$PWD/node.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
        "MpiDefault=none\nReturnToService=2\nSelectType=select/cons_tres\n"
        "SlurmdParameters=config_overrides\n"
        "NodeName=$H NodeAddr=127.0.0.1 CPUs=64 RealMemory=100 State=UNKNOWN\n"
        "PartitionName=p Nodes=$H Default=YES State=UP\nEND\n",
        control, node);
    if (tool(line)->code)
        return false;
    (void)daemon_start(
        "cd slurm; exec /usr/sbin/munged -F --key-file=key/key --socket=socket/munge --pid-file=key/pid "
        "--log-file=key/log --seed-file=key/seed --num-threads=2");
    (void)daemon_start("until test -S slurm/socket/munge; do :; done; exec /usr/sbin/slurmctld -D -i -c");
    last = daemon_start("until sinfo >/dev/null 2>&1; do :; done; exec /usr/sbin/slurmd -D");
    return tool_until(last, "sinfo -h -o %T 2>/dev/null | grep -q idle");
}

static void slurm(void **state)
{
    bool up = false;

    (void)state;
    needs("srun", "slurm-client");
    needs("slurmctld", "slurmctld");
    needs("slurmd", "slurmd");
    needs("munged", "munge");
    if (geteuid()) {
        printf("skipped: Slurm's daemons need root\n");
        skip();
    }
    setenv("SLURM_CONF", "slurm/slurm.conf", 1);
    for (int i = 0; i < 3 && !up; i++) {
        daemons_end();
        up = slurm_start();
    }
    if (!up) {
        char *log = tool_file("daemons.log");

        daemons_end();
        if (strstr(log, "cgroup filesystem not mounted")) {
            printf("skipped: slurmd needs a cgroup file system in /sys/fs/cgroup\n");
            free(log);
            skip();
        }
        fail_msg("Slurm did not start: %s", log);
    }
    job_works("slurm");
    assert_true(tool_until(daemons[DAEMONS - 1], "test -z \"$(squeue -h -t R)\""));
    daemons_end();
}

/* ---- what others are asked ---- */

/* The forms that the tracker of dmlc-core has used; qsub gets the command itself (-b y) instead of a script,
 * and names of variables instead of their values. */
static void texts(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"\"$T\" " JOB "--launcher sge --dry-run --tool TOOL --env A=1 -- python t.py 'a b'",
         " qsub -cwd -sync y -b y -t 1-3 -N tenon -e . -o . -v "
         "DMLC_NUM_WORKER,DMLC_NUM_SERVER,DMLC_JOB_CLUSTER,"
         "TENON_KV_JOB_LAUNCH,DMLC_PS_ROOT_URI,DMLC_PS_ROOT_PORT,TENON_KV_JOB,TENON_KVSTORE__SECRET_FILE,"
         "TENON_KVSTORE__ON_SERVER_LOSS,A,PATH TOOL launch --launcher "
         "rank -n 2 -s 1 --all-roles --grace 60 -- python t.py 'a b'\n"},
        {"DMLC_YARN_JAR=/opt/dmlc-yarn.jar \"$T\" " JOB
         "--launcher yarn --dry-run --tool TOOL --env A=1 -- python t.py",
         " hadoop jar /opt/dmlc-yarn.jar org.apache.hadoop.yarn.dmlc.Client -file /opt/dmlc-yarn.jar "
         "-jobname tenon "
         "-tempdir /tmp -queue default -env TENON_KV_JOB_LAUNCH=JOB -env TENON_KV_JOB=JOB "
         "-env TENON_KVSTORE__SECRET_FILE=SECRET-FILE "
         "-env TENON_KVSTORE__ON_SERVER_LOSS=wait:1 -env A=1 "
         "TOOL launch --launcher rank -n 2 -s 1 --all-roles --grace 60 -- python t.py\n"},
        {"\"$T\" " JOB "--launcher slurm --dry-run --tool TOOL -- ./a",
         " srun --export=ALL --kill-on-bad-exit=1 --input=none "
         "--job-name=tenon-JOB --ntasks=3 TOOL launch --launcher rank -n 2 -s 1 --all-roles --grace 60 -- "
         "./a\n"},
        {"echo h >h; \"$T\" " JOB "--launcher mpi -H h --dry-run --tool TOOL -- ./a",
         " --hostfile h -np 3 -x DMLC_NUM_WORKER "},
        {"echo u@h:7 >h; \"$T\" " JOB "-H h --dry-run --tool TOOL -- ./a \"it's\"",
         "ssh -T -o BatchMode=yes -o ServerAliveInterval=15 -o ServerAliveCountMax=4 -p 7 u@h 'TOOL launch "
         "--launcher "
         "pipe'  # "},
        {"echo '[::1]:7' >h; \"$T\" " JOB "-H h --dry-run --tool TOOL -- ./a \"it's\"", " ./a 'it'\\''s'\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tool_said *s = tool(cases[i].line);
        if (s->code || !strstr(s->out, cases[i].says))
            fail_msg("%s: code %d, %s%s; expected %s", cases[i].line, s->code, s->out, s->err, cases[i].says);
    }
    /* a program that stands for qsub gets each word as it is, the environment, and the file of the secret */
    assert_int_equal(tool("mkdir -p bin && printf '%s\\n' '#!/bin/sh' 'for w; do echo \"<$w>\"; done' "
                          "'test -f $TENON_KVSTORE__SECRET_FILE && exit 5' >bin/qsub && chmod +x bin/qsub")
                         ->code,
                     0);
    const tool_said *s =
        tool("PATH=$PWD/bin:$PATH \"$T\" " JOB "--launcher sge -- sh -c 'read x <hold' 'a  b'");

    assert_int_equal(s->code, 5);
    assert_says(s->out, "<-c>\n<read x <hold>\n<a  b>\n");
    assert_says(s->err, "has not been tested on a live cluster");
    s = tool("\"$T\" " JOB "--dry-run --json -- ./a");
    json_t *last = tool_json(s, 0);

    assert_string_equal(json_string_value(json_object_get(last, "role")), "worker");
    assert_int_equal(json_integer_value(json_object_get(last, "rank")), 1);
    json_decref(last);
}

/* ---- Kubernetes ---- */

static json_t *at(json_t *value, const char *path)
{
    char copy[256], *rest = NULL;

    (void)snprintf(copy, sizeof copy, "%s", path);
    for (char *word = strtok_r(copy, "/", &rest); word; word = strtok_r(NULL, "/", &rest))
        value = json_is_array(value) ? json_array_get(value, (size_t)strtol(word, NULL, 10))
                                     : json_object_get(value, word);
    if (!value)
        fail_msg("%s is not there", path);
    return value;
}

#define assert_text(value, path, text) assert_string_equal(json_string_value(at(value, path)), text)

/* The value of a variable, or the path of the field it is taken from. */
static const char *variable(json_t *container, const char *name)
{
    size_t i;
    json_t *v;

    json_array_foreach(at(container, "env"), i, v) if (!strcmp(json_string_value(at(v, "name")),
                                                               name)) return json_object_get(v, "value")
        ? json_string_value(at(v, "value"))
        : json_string_value(at(v, "valueFrom/fieldRef/fieldPath"));
    return "";
}

/* Names as the API takes them: RFC 1123 labels. */
static void label(const char *text)
{
    assert_true(*text && strlen(text) <= 63);
    assert_int_equal(strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(text));
}

static void manifests(void **state)
{
    static const char *const roles[] = {"scheduler", "server", "worker"};
    const tool_said *s =
        tool("\"$T\" launch -n 4 -s 2 --image reg/app:1 --on-fail restart:5 --env A=1 --emit k8s -- "
             "./train 'a b'");
    json_t *list = json_loads(s->out, JSON_REJECT_DUPLICATES, NULL), *jobs;
    char uri[128];

    (void)state;
    assert_int_equal(s->code, 0);
    assert_non_null(list);
    assert_text(list, "kind", "List");
    assert_text(list, "items/0/kind", "Secret");
    assert_int_equal(json_string_length(at(list, "items/0/stringData/secret")), 64);
    assert_text(list, "items/1/apiVersion", "jobset.x-k8s.io/v1alpha2");
    assert_text(list, "items/1/kind", "JobSet");
    label(json_string_value(at(list, "items/1/metadata/name")));
    assert_text(list, "items/1/spec/successPolicy/targetReplicatedJobs/0", "worker");
    jobs = at(list, "items/1/spec/replicatedJobs");
    assert_int_equal(json_array_size(jobs), 3);
    (void)snprintf(uri, sizeof uri, "%s-scheduler-0-0.%s",
                   json_string_value(at(list, "items/1/metadata/name")),
                   json_string_value(at(list, "items/1/metadata/name")));
    for (size_t i = 0; i < 3; i++) {
        json_t *job = json_array_get(jobs, i), *spec = at(job, "template/spec"),
               *pod = at(spec, "template/spec");
        json_t *container = at(pod, "containers/0");

        assert_text(job, "name", roles[i]);
        assert_text(spec, "completionMode", "Indexed");
        assert_int_equal(json_integer_value(at(spec, "completions")), i ? 2 * (int)i : 1);
        assert_int_equal(json_integer_value(at(spec, "parallelism")), i ? 2 * (int)i : 1);
        assert_int_equal(json_integer_value(at(spec, "backoffLimit")), 5);
        assert_text(pod, "restartPolicy", "Never");
        assert_text(container, "image", "reg/app:1");
        assert_string_equal(variable(container, "DMLC_ROLE"), roles[i]);
        assert_string_equal(variable(container, "DMLC_PS_ROOT_URI"), uri);
        assert_string_equal(variable(container, "A"), "1");
        assert_string_equal(variable(container, "DMLC_NODE_HOST"), "status.podIP");
        assert_text(container, "volumeMounts/0/name", json_string_value(at(pod, "volumes/0/name")));
        if (i == 2) {
            assert_says(variable(container, "DMLC_WORKER_ID"), "job-completion-index");
            assert_text(container, "command/1", "a b");
        } else {
            assert_text(container, "command/1", "kv");
        }
    }
    assert_null(
        strstr(variable(at(jobs, "0/template/spec/template/spec/containers/0"), "TENON_KV_JOB"), " "));
    json_decref(list);
    s = tool("\"$T\" launch -n 1 -s 0 --emit k8s -- ./train");
    list = json_loads(s->out, 0, NULL);
    assert_int_equal(json_array_size(at(list, "items/1/spec/replicatedJobs")), 1);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mpi), cmocka_unit_test(slurm),
                                       cmocka_unit_test(texts), cmocka_unit_test(manifests)};
    int failed;

    tool_setup();
    if (mkfifo("hold", 0600) || mkfifo("alive", 0600))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    daemons_end();
    tool_teardown();
    return failed;
}
