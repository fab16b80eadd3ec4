/*
 * What lies in the folder that a training is to use: nothing, a run, or what a run left that ended before its
 * first checkpoint. The last holds nothing to go on with, so a training begins anew in its place.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/runs.h"
#include "train/train.h"

#define BEST "model-best.params"
#define BEST_BEFORE "model-best-before.params"

static bool is_there(const char *folder, const char *name)
{
    char *path = cli_path(folder, name);
    const bool yes = !path || !access(path, F_OK);

    free(path);
    return yes;
}

/* ".tmp", ".tmp-PID" or ".tmp-PID-NUMBER": the ends of files that are written aside. */
static bool is_aside_end(const char *end)
{
    if (strncmp(end, ".tmp", 4) != 0)
        return false;
    end += 4;
    for (int i = 0; i < 2 && *end == '-' && end[1] >= '0' && end[1] <= '9'; i++)
        end += 1 + strspn(end + 1, "0123456789");
    return !*end;
}

/* A file that a training writes aside, by the beginning of its name and its end. */
static bool is_aside(const char *name)
{
    static const char *const files[] = {"run.json",          "metrics.jsonl",     "curves.svg",
                                        "model-symbol.json", "model-0000.params", BEST};
    const char *end = strstr(name, ".tmp");

    if (!end || !is_aside_end(end))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i]) == (size_t)(end - name) && !strncmp(name, files[i], (size_t)(end - name)))
            return true;
    return !strncmp(name, "checkpoint-", 11) && end - name > 5 && !strncmp(end - 5, ".tnck", 5);
}

/* Whether the folder of checkpoints holds nothing but a lock and files that were written aside. */
static bool is_bare(const char *folder)
{
    char *path = cli_path(folder, CLI_CHECKPOINTS);
    DIR *dir = path ? opendir(path) : NULL;
    const struct dirent *entry;
    bool bare = dir != NULL;

    while (bare && (entry = readdir(dir)))
        bare = entry->d_name[0] == '.' || !strcmp(entry->d_name, CLI_LOCK_NAME) || is_aside(entry->d_name);
    if (dir)
        (void)closedir(dir);
    free(path);
    return bare;
}

/* Whether run.json is of a training that is not done. */
static bool is_unfinished(const char *folder)
{
    char why[CLI_WHY_BYTES];
    json_t *record = cli_record_json(folder, why);
    const char *status = json_string_value(json_object_get(json_object_get(record, "result"), "status"));
    const bool yes = cli_record_ours(record) && (!status || strcmp(status, "done") != 0);

    json_decref(record);
    return yes;
}

cli_folder_state cli_folder_look(const char *folder)
{
    const bool record = is_there(folder, "run.json"), checkpoints = is_there(folder, CLI_CHECKPOINTS);
    const bool metrics = is_there(folder, "metrics.jsonl");

    if (!record && !checkpoints && !metrics)
        return CLI_FOLDER_FREE;
    if (cli_record_has_checkpoint(folder))
        return CLI_FOLDER_RUN;
    if (is_there(folder, "model-0000.params") || (checkpoints && !is_bare(folder)))
        return CLI_FOLDER_OTHER;
    return (record ? is_unfinished(folder) : !metrics) ? CLI_FOLDER_BROKEN_OFF : CLI_FOLDER_OTHER;
}

static void asides_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    struct stat s;

    while (dir && (entry = readdir(dir)))
        if (is_aside(entry->d_name) && !fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(s.st_mode))
            (void)unlinkat(dirfd(dir), entry->d_name, 0); /* one that stays is no harm */
    if (dir)
        (void)closedir(dir);
}

void cli_folder_clean(const char *folder)
{
    char *checkpoints = cli_path(folder, CLI_CHECKPOINTS);

    asides_remove(folder);
    if (checkpoints)
        asides_remove(checkpoints);
    free(checkpoints);
}

bool cli_folder_best_keep(const char *folder)
{
    char *path = cli_path(folder, BEST), *before = cli_path(folder, BEST_BEFORE);
    const bool ok =
        path && before && (!access(before, F_OK) || !rename(path, before) || !is_there(folder, BEST));

    free(before);
    free(path);
    return ok;
}
