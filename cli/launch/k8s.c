/*
 * A job as manifests for Kubernetes: a Secret with the job's key, and a JobSet (jobset.x-k8s.io/v1alpha2)
 * with an Indexed Job for each role. JSON is YAML: `kubectl apply -f -` takes it.
 */
#include <stdlib.h>
#include <string.h>

#include "launch.h"

#define PORT 9091 /* the scheduler's: each has an address of its own there */
#define SECRET_PATH "/run/tenon/secret"
#define IMAGE "tenon:latest"

static json_t *variables(const launch_job *job, launch_role role, const char *name)
{
    static const char *const ids[] = {NULL, "DMLC_SERVER_ID", "DMLC_WORKER_ID"};
    launch_list env = {0};
    json_t *all = json_array();

    launch_env_of(job, role, 0, NULL, 0, &env);
    launch_list_set(&env, "DMLC_PS_ROOT_URI", "%s-scheduler-0-0.%s", name, name);
    launch_list_set(&env, "DMLC_PS_ROOT_PORT", "%d", PORT);
    launch_list_set(&env, "DMLC_JOB_CLUSTER", "kubernetes");
    launch_list_set(&env, "TENON_KV_JOB", "%s", job->number);
    launch_list_set(&env, "TENON_KVSTORE__SECRET_FILE", SECRET_PATH "/secret");
    for (const char *const *gone =
             (const char *const[]){"DMLC_NODE_HOST", "DMLC_TASK_ID", "DMLC_WORKER_ID", "DMLC_SERVER_ID",
                                   "DMLC_NUM_ATTEMPT", CLI_LAUNCH_VARIABLE, NULL};
         *gone; gone++)
        launch_list_unset(&env, *gone);
    for (size_t i = 0; i < env.count; i++) {
        char *key = cli_format("%.*s", (int)launch_name(env.items[i]), env.items[i]);

        if (key)
            (void)json_array_append_new(all, json_pack("{s:s, s:o}", "name", key, "value",
                                                       cli_json_text(env.items[i] + strlen(key) + 1)));
        free(key);
    }
    (void)json_array_append_new(all, json_pack("{s:s, s:{s:{s:s}}}", "name", "DMLC_NODE_HOST", "valueFrom",
                                               "fieldRef", "fieldPath", "status.podIP"));
    for (int i = 0; ids[role] && i < 2; i++)
        (void)json_array_append_new(
            all,
            json_pack("{s:s, s:{s:{s:s}}}", "name", i ? "DMLC_TASK_ID" : ids[role], "valueFrom", "fieldRef",
                      "fieldPath", "metadata.annotations['batch.kubernetes.io/job-completion-index']"));
    launch_list_fini(&env);
    return all;
}

static json_t *command(const launch_job *job, launch_role role)
{
    static const char *const parts[] = {"schedule", "serve"};
    json_t *words = json_array();

    if (launch_serves_itself(job, role)) {
        const char *tool = job->args->value[OPT_TOOL] ? job->args->value[OPT_TOOL] : "tenon";

        (void)json_array_append_new(words, cli_json_text(tool));
        (void)json_array_append_new(words, json_string("kv"));
        (void)json_array_append_new(words, json_string(parts[role]));
        return words;
    }
    for (char *const *word = job->command; *word; word++)
        (void)json_array_append_new(words, cli_json_text(*word));
    return words;
}

static json_t *replicated(const launch_job *job, launch_role role, const char *name, uint32_t count)
{
    const char *image = job->args->value[OPT_IMAGE] ? job->args->value[OPT_IMAGE] : IMAGE;
    json_t *ports = role == LAUNCH_SCHEDULER ? json_pack("[{s:i}]", "containerPort", PORT) : json_array();
    json_t *container =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:[{s:s, s:s, s:b}]}", "name", launch_role_names[role], "image",
                  image, "command", command(job, role), "env", variables(job, role, name), "ports", ports,
                  "volumeMounts", "name", "secret", "mountPath", SECRET_PATH, "readOnly", 1);
    json_t *pod =
        json_pack("{s:s, s:[o], s:[{s:s, s:{s:s, s:i}}]}", "restartPolicy", "Never", "containers", container,
                  "volumes", "name", "secret", "secret", "secretName", name, "defaultMode", 0400);

    return json_pack("{s:s, s:i, s:{s:{s:s, s:I, s:I, s:i, s:{s:o}}}}", "name", launch_role_names[role],
                     "replicas", 1, "template", "spec", "completionMode", "Indexed", "completions",
                     (json_int_t)count, "parallelism", (json_int_t)count, "backoffLimit",
                     job->on_fail == LAUNCH_RESTART ? (int)job->restarts_max : 0, "template", "spec", pod);
}

int launch_emit_k8s(const launch_job *job)
{
    launch_job named = *job;
    json_t *jobs = json_array(), *list;
    char name[32], *text;

    if (!launch_random(named.number, 8) || !launch_random(named.secret, 32))
        return CLI_EXIT_FAILED;
    (void)snprintf(name, sizeof name, "tenon-%.8s", named.number);
    if (job->servers) {
        (void)json_array_append_new(jobs, replicated(&named, LAUNCH_SCHEDULER, name, 1));
        (void)json_array_append_new(jobs, replicated(&named, LAUNCH_SERVER, name, job->servers));
    }
    (void)json_array_append_new(jobs, replicated(&named, LAUNCH_WORKER, name, job->workers));
    list = json_pack("{s:s, s:s, s:[{s:s, s:s, s:{s:s}, s:s, s:{s:s}},"
                     "{s:s, s:s, s:{s:s}, s:{s:{s:b}, s:{s:s, s:[s]}, s:{s:i}, s:o}}]}",
                     "apiVersion", "v1", "kind", "List", "items",
                     /* the key */
                     "apiVersion", "v1", "kind", "Secret", "metadata", "name", name, "type", "Opaque",
                     "stringData", "secret", named.secret,
                     /* the job: it is done when the workers are */
                     "apiVersion", "jobset.x-k8s.io/v1alpha2", "kind", "JobSet", "metadata", "name", name,
                     "spec", "network", "enableDNSHostnames", 1, "successPolicy", "operator", "All",
                     "targetReplicatedJobs", launch_role_names[LAUNCH_WORKER], "failurePolicy", "maxRestarts",
                     0, "replicatedJobs", jobs);
    text = list ? json_dumps(list, JSON_INDENT(2)) : NULL;
    json_decref(list);
    if (!text) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    (void)puts(text);
    free(text);
    return 0;
}
