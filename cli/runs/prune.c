/*
 * tenon runs prune: removes old run folders.
 *
 * Only what `train` made is touched: a folder, not a link, with a run.json that it wrote, which nobody trains
 * in; its lock is held while it goes. No link is followed, no other file system entered. run.json goes last,
 * so what an interrupted removal leaves is still a run.
 */
#include "runs/runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEEP_DEFAULT 10
#define DEPTH_MAX 16

static bool folder_empty(int dir, dev_t device, int depth, const char *spare);

static bool entry_remove(int dir, const char *name, dev_t device, int depth)
{
    struct stat s;
    int inner;
    bool ok;

    if (fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT;
    if (!S_ISDIR(s.st_mode))
        return !unlinkat(dir, name, 0) || errno == ENOENT;
    if (s.st_dev != device || depth >= DEPTH_MAX) {
        errno = EXDEV;
        return false;
    }
    inner = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return false;
    ok = folder_empty(inner, device, depth + 1, "");
    (void)close(inner);
    return ok && (!unlinkat(dir, name, AT_REMOVEDIR) || errno == ENOENT);
}

/* All but `spare`. */
static bool folder_empty(int dir, dev_t device, int depth, const char *spare)
{
    int again = dup(dir);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *entry;
    bool ok = list != NULL, removed = true;

    if (!list && again >= 0)
        (void)close(again);
    while (ok && removed) { /* again: a folder that is read while it shrinks may leave names out */
        removed = false;
        rewinddir(list);
        while (ok && (entry = readdir(list)))
            if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strcmp(entry->d_name, spare))
                removed = ok = entry_remove(dir, entry->d_name, device, depth);
    }
    if (list)
        (void)closedir(list);
    return ok;
}

/* Holds the run's lock; false: somebody trains there, or the folder of checkpoints is none. */
static bool lock_take(const cli_record *r, cli_lock *lock)
{
    char *path = cli_path(r->folder, "checkpoints");
    cli_lock_owner found;
    struct stat s;
    bool ok = path != NULL;

    *lock = (cli_lock){-1, NULL};
    if (ok && !lstat(path, &s))
        ok = S_ISDIR(s.st_mode) && cli_lock_take(lock, NULL, path, &found);
    free(path);
    return ok;
}

/* What `tenon train` writes into a run folder, by the beginning of its name. */
static const char *const ours[] = {"run.json",    "curves.svg",  "metrics.jsonl",   "model-",
                                   "checkpoints", "classes.txt", "model-data.json", NULL};

/* The first name in the run folder that is not ours, "" if there is none. */
static bool foreign_find(const cli_record *r, char name[NAME_MAX + 1])
{
    DIR *list = opendir(r->folder);
    const struct dirent *entry;

    name[0] = '\0';
    while (list && !name[0] && (entry = readdir(list))) {
        size_t i = 0;

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        while (ours[i] && strncmp(entry->d_name, ours[i], strlen(ours[i])) != 0)
            i++;
        if (!ours[i])
            (void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
    }
    if (list)
        (void)closedir(list);
    return name[0] != '\0';
}

static bool run_remove(const cli_record *r)
{
    char foreign[NAME_MAX + 1];
    cli_lock lock;
    struct stat s;
    int dir;
    bool ok = false;

    if (foreign_find(r, foreign)) {
        cli_error("%s holds %s, which `tenon train` did not make: it stays", r->folder, foreign);
        return false;
    }
    if (!lock_take(r, &lock)) {
        cli_error("%s is in use, or its folder of checkpoints is no folder: it stays", r->folder);
        return false;
    }
    dir = open(r->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && !fstat(dir, &s))
        ok = folder_empty(dir, s.st_dev, 0, "run.json") && !unlinkat(dir, "run.json", 0) && !rmdir(r->folder);
    if (!ok)
        cli_error("%s: %s", r->folder, strerror(errno));
    if (dir >= 0)
        (void)close(dir);
    cli_lock_drop(&lock);
    return ok;
}

/* ---- which ---- */

/* What may go at all; `why` it may not. */
static bool may_go(const cli_record *r, const char **why)
{
    *why = r->state == CLI_RECORD_RUNNING ? "it is running" : !r->ours ? "its run.json is not ours" : NULL;
    return !*why;
}

static bool keep_read(const cli_args *args, size_t *keep)
{
    const char *text = args->value[OPT_KEEP];
    char *end = NULL;
    long long n = text ? strtoll(text, &end, 10) : KEEP_DEFAULT;

    if (text && (!*text || *end || n < 0)) {
        cli_error("--keep %s: a whole number of at least 0 is needed", text);
        return false;
    }
    *keep = (size_t)n;
    return true;
}

static void tell(const cli_args *args, const cli_record *r, bool removed)
{
    if (args->value[OPT_JSON])
        cli_json_line(json_pack("{s:o, s:o, s:s, s:b}", "id", cli_json_text(r->id), "folder",
                                cli_json_text(r->folder), "state", cli_record_state_name(r->state), "removed",
                                (int)removed));
    else
        cli_say(stdout, "%s %s (%s)\n", removed ? "removed" : "would remove", r->folder,
                cli_record_state_name(r->state));
}

/* The newest `keep` stay, whatever their state. */
static int prune(const cli_args *args, const cli_records *records, size_t keep)
{
    const size_t old = records->count > keep ? records->count - keep : 0;
    const bool yes = args->value[OPT_YES] != NULL;
    size_t count = 0;
    int code = 0;

    for (size_t i = 0; i < old; i++) {
        const cli_record *r = &records->at[i];
        const char *why;

        if (!may_go(r, &why)) {
            if (!args->value[OPT_QUIET])
                cli_say(stderr, "%s stays: %s\n", r->folder, why);
            continue;
        }
        if (yes && !run_remove(r)) {
            code = CLI_EXIT_FAILED;
            continue;
        }
        tell(args, r, yes);
        count++;
    }
    if (!yes && count && !args->value[OPT_QUIET])
        (void)fprintf(stderr, "nothing was removed: --yes removes %s\n", count == 1 ? "it" : "them");
    return code;
}

int cmd_runs_prune(const cli_args *args)
{
    cli_records records = {0};
    const char *folder;
    size_t keep = 0;
    int code = CLI_EXIT_USAGE;

    if (keep_read(args, &keep) && (folder = cli_runs_folder(args)))
        code = cli_records_read(&records, folder) ? prune(args, &records, keep) : CLI_EXIT_FAILED;
    cli_records_fini(&records);
    return code;
}
