/*
 * tenon launch: the processes of a job, started, watched and ended.
 *
 * launch.c reads the command line into a job; hosts.c places its processes; supervise.c runs them, each
 * below a guard (guard.c), and passes their output on (lines.c). Other launchers (mpirun, srun) are
 * processes of the job, too: submit.c has their command lines, and each of the processes that they start is
 * again `tenon launch`, which takes its role from its rank.
 */
#ifndef TN_CLI_LAUNCH_H
#define TN_CLI_LAUNCH_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "cli.h"

#define LAUNCH_PROCESSES_MAX 65536u /* of a role, as kvstore.workers and kvstore.servers */
#define LAUNCH_ANY_PORT 0           /* the scheduler has not told it yet */
#define LAUNCH_NO_RANK UINT32_MAX
#define LAUNCH_MS 1000000 /* nanoseconds */

/* ---- list.c: texts; a failure (no memory) sticks ---- */

typedef struct launch_list {
    char **items; /* NULL-ended once something was added */
    size_t count, room;
    bool failed;
} launch_list;

void launch_list_add(launch_list *l, const char *format, ...) CLI_PRINTF(2, 3);
/* Of "NAME=VALUE" texts: replaces the one of this name. */
void launch_list_set(launch_list *l, const char *name, const char *format, ...) CLI_PRINTF(3, 4);
void launch_list_unset(launch_list *l, const char *name);
const char *launch_list_get(const launch_list *l, const char *name); /* NULL: it is not there */
void launch_list_fini(launch_list *l);
/* Bytes of a variable's name at the beginning of `text`; 0: it is none. */
size_t launch_name(const char *text);
void launch_quote(FILE *out, const char *text); /* as a word of the shell */

/* ---- hosts.c ---- */

typedef struct launch_host {
    char *name; /* perhaps user@host */
    char *port; /* of ssh, or NULL */
    uint32_t slots;
} launch_host;

typedef struct launch_hosts {
    launch_host *items;
    size_t count;
    uint64_t slots; /* of all */
} launch_hosts;

/* One host a line: [user@]host[:port] [slots=N]; from # on it is a comment; a host again has more slots.
 * What is wrong has been said, with the line. Returns the exit code. */
int launch_hosts_read(const char *path, launch_hosts *hosts);
void launch_hosts_fini(launch_hosts *hosts);
/* Slots are filled in their order, again from the first when all are taken. */
const launch_host *launch_hosts_at(const launch_hosts *hosts, uint64_t index);
const char *launch_host_bare(const launch_host *host); /* without the user */
/* This machine's address on the way to the first host, or to all others (NULL). */
void launch_own_address(const launch_hosts *hosts, char text[64]);
int launch_free_port(const char *address); /* 0: none */

/* ---- the job ---- */

typedef enum launch_role {
    LAUNCH_SCHEDULER,
    LAUNCH_SERVER,
    LAUNCH_WORKER,
    LAUNCH_OTHER /* mpirun, rsync: not of the job, but needed by it */
} launch_role;

extern const char *const launch_role_names[];

typedef enum launch_how {
    LAUNCH_LOCAL,
    LAUNCH_SSH,
    LAUNCH_MPI,
    LAUNCH_SLURM,
    LAUNCH_SGE,
    LAUNCH_YARN,
    LAUNCH_RANK, /* inside a job of another launcher: the one process of this rank */
    LAUNCH_PIPE, /* on another host: what to run comes on stdin */
    LAUNCH_HOW_COUNT
} launch_how;

extern const char *const launch_how_names[LAUNCH_HOW_COUNT];

typedef enum launch_on_fail { LAUNCH_STOP, LAUNCH_RESTART, LAUNCH_SHRINK } launch_on_fail;

typedef struct launch_job {
    const cli_args *args;
    launch_how how;
    uint32_t workers, servers;
    launch_role role; /* LAUNCH_RANK: what this process is */
    uint32_t rank;
    bool all_roles; /* the command is scheduler and server, too */
    launch_hosts hosts;
    launch_on_fail on_fail;
    uint32_t restarts_max;
    int64_t grace_ns;
    char *const *command; /* NULL-ended */
    const char *tool;     /* path of the tool, here and on other hosts */
    char self[4096];
    char *folder; /* of the files below; NULL: none was made */
    char *secret_file, *address_file;
    char number[17], secret[65]; /* hexadecimal; the number is of this launch alone */
    char address[64];            /* of the scheduler; "": there is none */
    int port;
} launch_job;

/* What a process of the job has in its environment, beside what it inherits; launch.c. */
void launch_env_of(const launch_job *job, launch_role role, uint32_t rank, const launch_host *host,
                   uint32_t attempt, launch_list *env);
bool launch_serves_itself(const launch_job *job, launch_role role); /* by the tool, not by the command */
/* The job has processes of this role that this process starts. */
void launch_command_of(const launch_job *job, launch_role role, launch_list *words);

/* ---- folder.c: secret and address of a job, in a folder that goes when the launcher does ---- */

bool launch_random(char *hexadecimal, size_t bytes); /* false: said */
/* Returns the exit code; the folder goes when *keeper is closed. */
int launch_folder_open(launch_job *job, int *keeper);
void launch_folder_close(launch_job *job, int keeper);
/* The address that the scheduler wrote; false: not yet. */
bool launch_folder_address(launch_job *job);
bool launch_secret_write(const char *path, const char *secret);

/* ---- guard.c ---- */

/* What is to be started. Descriptors are the caller's; -1: /dev/null. */
typedef struct launch_start {
    char *const *argv;
    char *const *env;   /* whole */
    const char *folder; /* where it runs, or NULL */
    int in, out, err;
    int gentle_ms; /* between SIGTERM and SIGKILL when it has to end: it has processes elsewhere */
    const struct rlimit *files; /* limit of descriptors that it gets */
    const sigset_t *mask;       /* signals that it has blocked */
} launch_start;

/* What a guard says of its process. */
enum { LAUNCH_STARTED = 1, LAUNCH_REFUSED, LAUNCH_ENDED };

typedef struct launch_said {
    int32_t kind;
    int32_t value; /* process id · errno · status of waitpid() */
    int64_t at_ns;
} launch_said;

/* Starts a guard and below it the process; messages come on *channel. -1: errno tells. */
pid_t launch_guard_start(const launch_start *start, int *channel);
void launch_guard_signal(int channel, int sig); /* to the group of the process; SIGKILL: to all below it */
/* Children that a shell had before it became this process. */
typedef struct launch_pids {
    pid_t items[256];
    size_t count;
} launch_pids;

void launch_children_note(launch_pids *noted);
/* Kills all children of this process but those, and waits for them. */
void launch_children_end(const launch_pids *spared);
int64_t launch_now(void);       /* monotonic nanoseconds */
int launch_code_of(int status); /* exit code, or 128 + signal */

/* ---- remote.c: a process on another host ---- */

#define LAUNCH_BEAT 0 /* byte on the way to it that only says that we live; others are signals */
#define LAUNCH_BEAT_NS (10ll * 1000 * LAUNCH_MS)
#define LAUNCH_SILENCE_MS 60000

void launch_remote_command(const launch_job *job, const launch_host *host, launch_list *words);
void launch_sync_command(const launch_job *job, const launch_host *host, launch_list *words);
/* Writes what the far end is to run; false: it is too long, or did not go out, said. */
bool launch_remote_send(const launch_job *job, int fd, const launch_list *env, const launch_list *words);
int launch_remote_run(void); /* the far end: LAUNCH_PIPE */
/* Runs start->argv as a guard until it has ended or stdin has closed; the exit code. */
int launch_guard_run(const launch_start *start);

/* ---- lines.c: output, line by line ---- */

typedef struct launch_sink {
    int fd;
    size_t piece; /* most bytes of one write: it must not block */
    char *bytes;
    size_t begin, end, room;
    struct launch_stream *holder; /* a line of it is not finished */
    int error;                    /* errno; all is dropped from then on */
} launch_sink;

typedef struct launch_log {
    int fd; /* -1: none */
    int error;
    char *tail; /* the last bytes of the process, whole lines; allocated by the first */
    size_t tail_used;
} launch_log;

typedef struct launch_stream {
    int fd; /* -1: closed */
    launch_sink *sink;
    launch_log *log;
    const char *prefix;
    uint32_t rank;  /* added to JSON; LAUNCH_NO_RANK: lines are passed on with the prefix */
    bool only_json; /* other lines become the text of an object */
    bool raw;       /* lines are passed on as they are */
    char *line;
    size_t used, room;
    bool held; /* the beginning of the line is out already */
} launch_stream;

void launch_sink_init(launch_sink *s, int fd);
bool launch_sink_full(const launch_sink *s);
bool launch_sink_pending(const launch_sink *s);
void launch_sink_flush(launch_sink *s); /* what can be written without waiting */
void launch_sink_end(launch_sink *s);   /* all, waiting for it */
void launch_sink_put(launch_sink *s, const char *bytes, size_t count);
void launch_sink_say(launch_sink *s, const char *format, ...) CLI_PRINTF(2, 3);
void launch_sink_release(launch_sink *s); /* ends a line that is not finished */

bool launch_stream_ready(const launch_stream *s); /* it is open, and its sink takes more */
/* Reads once. `last`: its process is gone, so there is nothing to wait for. */
void launch_stream_read(launch_stream *s, bool last);
void launch_stream_close(launch_stream *s);
/* The last lines, each with "  | " in front. */
void launch_log_show(const launch_log *log, launch_sink *sink);
json_t *launch_log_lines(const launch_log *log);

/* ---- supervise.c, submit.c, k8s.c ---- */

int launch_supervise(launch_job *job); /* the exit code */
/* The command line of mpirun, srun, qsub, yarn; the environment is that of the worker without rank. */
void launch_submit_command(const launch_job *job, const launch_list *env, launch_list *words);
bool launch_rank_find(launch_job *job); /* role and rank from the variables of a launcher; false: said */
int launch_dry_run(const launch_job *job);
int launch_emit_k8s(const launch_job *job);

#endif
