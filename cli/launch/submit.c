/*
 * Other launchers: their command lines, and the role that a process they started has by its rank.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

#define YARN_JAR "dmlc-yarn.jar"

/* ---- command lines ---- */

/* `tenon launch --launcher rank … -- COMMAND`, which each process of the other launcher is. */
static void member_add(const launch_job *job, launch_list *words)
{
    static const uint8_t passed_on[] = {OPT_ENV_SERVER, OPT_ENV_WORKER, OPT_GRACE,
                                        OPT_CONFIG,     OPT_LOG_DIR,    OPT_NONE};
    const cli_args *args = job->args;

    launch_list_add(words, "%s", job->tool);
    for (const char *const *w = (const char *const[]){"launch", "--launcher", "rank", NULL}; *w; w++)
        launch_list_add(words, "%s", *w);
    launch_list_add(words, "-n");
    launch_list_add(words, "%u", job->workers);
    launch_list_add(words, "-s");
    launch_list_add(words, "%u", job->servers);
    if (job->all_roles)
        launch_list_add(words, "--all-roles");
    if (args->value[OPT_JSON])
        launch_list_add(words, "--json");
    for (const uint8_t *id = passed_on; *id != OPT_NONE; id++) {
        const char *value;

        for (size_t at = 0; (value = cli_args_each(args, (cli_option_id)*id, &at));) {
            launch_list_add(words, "--%s", cli_options[*id].name);
            launch_list_add(words, "%s", value);
        }
    }
    launch_list_add(words, "--");
    for (char *const *word = job->command; *word; word++)
        launch_list_add(words, "%s", *word);
}

/* Names alone: the values go through the environment, where other users do not see them. */
static void names_add(const launch_list *env, const char *before, launch_list *words)
{
    for (size_t i = 0; i < env->count; i++) {
        if (before)
            launch_list_add(words, "%s", before);
        launch_list_add(words, "%.*s", (int)launch_name(env->items[i]), env->items[i]);
    }
}

static void words_add(launch_list *words, const char *const *more)
{
    for (; *more; more++)
        launch_list_add(words, "%s", *more);
}

/* Open MPI's. Processes have threads of their own, so they are not bound to a core each. */
static void mpi_add(const launch_job *job, const launch_list *env, launch_list *words)
{
    words_add(words, (const char *const[]){"mpirun", "--oversubscribe", "--bind-to", "none", NULL});
    if (geteuid() == 0)
        launch_list_add(words, "--allow-run-as-root");
    if (job->args->value[OPT_HOSTFILE]) {
        launch_list_add(words, "--hostfile");
        launch_list_add(words, "%s", job->args->value[OPT_HOSTFILE]);
    }
    launch_list_add(words, "-np");
    launch_list_add(words, "%u", job->workers + job->servers);
    names_add(env, "-x", words);
}

static void slurm_add(const launch_job *job, const launch_list *env, launch_list *words)
{
    (void)env; /* srun passes the environment on */
    words_add(words,
              (const char *const[]){"srun", "--export=ALL", "--kill-on-bad-exit=1", "--input=none", NULL});
    launch_list_add(words, "--job-name=tenon-%s", job->number);
    launch_list_add(words, "--ntasks=%u", job->workers + job->servers);
}

/* An array job; qsub waits for its end. */
static void sge_add(const launch_job *job, const launch_list *env, launch_list *words)
{
    const char *log = job->args->value[OPT_LOG_DIR] ? job->args->value[OPT_LOG_DIR] : ".";
    launch_list names = {0};
    char *all = NULL;

    words_add(words, (const char *const[]){"qsub", "-cwd", "-sync", "y", "-b", "y", "-t", NULL});
    launch_list_add(words, "1-%u", job->workers + job->servers);
    words_add(words, (const char *const[]){"-N", "tenon", "-e", log, "-o", log, "-v", NULL});
    names_add(env, NULL, &names);
    launch_list_add(&names, "PATH");
    for (size_t i = 0; i < names.count && !names.failed; i++) {
        char *more = cli_format("%s%s%s", all ? all : "", all ? "," : "", names.items[i]);

        free(all);
        all = more;
    }
    words->failed = words->failed || names.failed || !all;
    launch_list_add(words, "%s", all ? all : "");
    launch_list_fini(&names);
    free(all);
}

/* The client of dmlc-core passes on DMLC_* itself. */
static void yarn_add(const launch_job *job, const launch_list *env, launch_list *words)
{
    const char *jar = getenv("DMLC_YARN_JAR");

    jar = jar && *jar ? jar : YARN_JAR;
    words_add(words,
              (const char *const[]){"hadoop", "jar", jar, "org.apache.hadoop.yarn.dmlc.Client", "-file", jar,
                                    "-jobname", "tenon", "-tempdir", "/tmp", "-queue", "default", NULL});
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], "DMLC_", 5)) {
            launch_list_add(words, "-env");
            launch_list_add(words, "%s", env->items[i]);
        }
    (void)job;
}

void launch_submit_command(const launch_job *job, const launch_list *env, launch_list *words)
{
    static void (*const adds[LAUNCH_HOW_COUNT])(const launch_job *, const launch_list *, launch_list *) = {
        [LAUNCH_MPI] = mpi_add, [LAUNCH_SLURM] = slurm_add, [LAUNCH_SGE] = sge_add, [LAUNCH_YARN] = yarn_add};

    if (adds[job->how])
        adds[job->how](job, env, words);
    member_add(job, words);
}

/* ---- the role of a rank ---- */

static bool count_read(const char *text, uint64_t *count)
{
    char *end = NULL;

    *count = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    return end && !*end;
}

/* Workers have the first ranks, so that a worker's rank is the launcher's; servers follow. Where the launcher
 * names the role (YARN, Kubernetes), the rank is that within it. */
bool launch_rank_find(launch_job *job)
{
    static const struct {
        const char *name;
        uint32_t first;
        bool of_role;
    } variables[] = {
        {"OMPI_COMM_WORLD_RANK", 0, false}, {"PMIX_RANK", 0, false},   {"PMI_RANK", 0, false},
        {"SLURM_PROCID", 0, false},         {"SGE_TASK_ID", 1, false}, {"JOB_COMPLETION_INDEX", 0, true},
        {"DMLC_TASK_ID", 0, true}};
    const char *role = getenv("DMLC_ROLE");
    uint64_t rank = 0;
    size_t i = 0;

    while (i < sizeof variables / sizeof *variables && !count_read(getenv(variables[i].name), &rank))
        i++;
    if (i == sizeof variables / sizeof *variables || rank < variables[i].first) {
        cli_error(
            "--launcher rank: no launcher has told a rank: OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, "
            "SGE_TASK_ID and others are not set");
        return false;
    }
    rank -= variables[i].first;
    job->role = rank < job->workers ? LAUNCH_WORKER : LAUNCH_SERVER;
    if (variables[i].of_role && role)
        job->role = !strcmp(role, "server") ? LAUNCH_SERVER : LAUNCH_WORKER;
    else if (job->role == LAUNCH_SERVER)
        rank -= job->workers;
    if (rank >= (job->role == LAUNCH_SERVER ? job->servers : job->workers)) {
        cli_error("--launcher rank: %s is %s, but there are %u workers and %u servers", variables[i].name,
                  getenv(variables[i].name), job->workers, job->servers);
        return false;
    }
    job->rank = (uint32_t)rank;
    if (!job->servers || getenv("DMLC_PS_ROOT_URI"))
        return true;
    cli_error("--launcher rank: DMLC_PS_ROOT_URI is not set: where is the scheduler?");
    return false;
}

/* ---- what would be started ---- */

static json_t *texts(const launch_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        (void)json_array_append_new(array, cli_json_text(list->items[i]));
    return array;
}

static void quoted(const launch_list *list, bool pairs)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->items[i];
        const size_t name = pairs ? launch_name(text) + 1 : 0;

        (void)printf("%s%.*s", i ? " " : "", (int)name, text);
        launch_quote(stdout, text + name);
    }
}

static void show(const launch_job *job, launch_role role, uint32_t rank, const launch_host *host)
{
    launch_list env = {0}, words = {0}, via = {0};

    launch_env_of(job, role, rank, host, 0, &env);
    if (role == LAUNCH_OTHER)
        launch_submit_command(job, &env, &words);
    else
        launch_command_of(job, role, &words);
    if (host)
        launch_remote_command(job, host, &via);
    if (job->args->value[OPT_JSON]) {
        cli_json_line(json_pack("{s:s, s:I, s:s, s:o, s:o, s:o}", "role", launch_role_names[role], "rank",
                                (json_int_t)rank, "host", host ? launch_host_bare(host) : "localhost", "env",
                                texts(&env), "argv", texts(&words), "via", texts(&via)));
    } else {
        if (host) { /* what it reads from stdin is a comment */
            quoted(&via, false);
            (void)fputs("  # ", stdout);
        }
        quoted(&env, true);
        (void)fputc(' ', stdout);
        quoted(&words, false);
        (void)fputc('\n', stdout);
    }
    launch_list_fini(&env);
    launch_list_fini(&words);
    launch_list_fini(&via);
}

int launch_dry_run(const launch_job *job)
{
    const bool far = job->how == LAUNCH_SSH;

    if (job->how == LAUNCH_RANK) {
        show(job, job->role, job->rank, NULL);
        return 0;
    }
    if (*job->address)
        show(job, LAUNCH_SCHEDULER, 0, NULL);
    if (!far && job->how != LAUNCH_LOCAL) {
        show(job, LAUNCH_OTHER, 0, NULL);
        return 0;
    }
    for (uint32_t i = 0; i < job->servers; i++)
        show(job, LAUNCH_SERVER, i, far ? launch_hosts_at(&job->hosts, i) : NULL);
    for (uint32_t i = 0; i < job->workers; i++)
        show(job, LAUNCH_WORKER, i, far ? launch_hosts_at(&job->hosts, (uint64_t)job->servers + i) : NULL);
    return 0;
}
