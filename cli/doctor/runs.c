/*
 * Run folders: locks whose process is gone, and files that are missing or damaged. Of the folders that the
 * command line names everything is read; of the others below runs/ what is small.
 */
#include "runs/runs.h"
#include "doctor/doctor.h"
#include "train/lock.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct tally {
    size_t folders, live;
} tally;

static void stale_say(doctor *d, const char *folder, const char *path, const cli_lock_owner *owner)
{
    char advice[1400];

    (void)snprintf(advice, sizeof advice, "rm %.500s (tenon train --resume %.500s does it, and goes on)",
                   path, folder);
    if (owner->pid)
        doctor_say(d, DOCTOR_BAD, advice, "%.500s: stale lock, process %ld is gone", folder, owner->pid);
    else
        doctor_say(d, DOCTOR_BAD, advice, "%.500s: stale lock, the file names no process", folder);
}

static void lock_check(doctor *d, doctor_run *r)
{
    char *path = cli_format("%s/checkpoints/" CLI_LOCK_NAME, r->folder);
    cli_lock_owner owner;
    cli_lock_state state;
    char advice[600];

    if (!path)
        return;
    state = cli_lock_look(path, &owner);
    r->live = state == CLI_LOCK_LIVE || state == CLI_LOCK_FOREIGN;
    if (state == CLI_LOCK_STALE)
        stale_say(d, r->folder, path, &owner);
    if (state == CLI_LOCK_FOREIGN) {
        (void)snprintf(advice, sizeof advice, "if that process is gone: rm %.500s", path);
        doctor_say(d, DOCTOR_WARNING, advice, "%.500s: locked by process %ld on host %s", r->folder,
                   owner.pid, owner.host);
    }
    free(path);
}

/* In this order: what one finds the next ones know. */
static const struct {
    void (*run)(doctor *d, doctor_run *r);
    bool reads; /* much */
} parts[] = {
    {lock_check, false},           {doctor_record_check, false},
    {doctor_metrics_check, false}, {doctor_checkpoints_check, true},
    {doctor_models_check, true},
};

/* Whether anything of it is of a training; below runs/ may lie what else the user likes. */
static bool is_of_training(const char *folder)
{
    static const char *const names[] = {"run.json", "checkpoints", "metrics.jsonl"};
    bool found = false;

    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        char *path = cli_path(folder, names[i]);
        struct stat s;

        found = path && !lstat(path, &s);
        free(path);
    }
    return found;
}

static void folder_check(doctor *d, const char *folder, bool named, tally *t)
{
    doctor_run r = {.folder = folder};

    t->folders++;
    if (cli_record_read(&r.record, cli_format("%s", folder)))
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (named || !parts[i].reads)
                parts[i].run(d, &r);
    t->live += r.live;
    cli_record_fini(&r.record);
}

static void named_check(doctor *d, const char *name, tally *t)
{
    static const char advice[] = "name a folder that `tenon train` made; `tenon runs list` shows them";
    char why[CLI_WHY_BYTES], *folder = cli_record_folder(CLI_RUNS, name, why);

    if (!folder)
        doctor_say(d, DOCTOR_BAD, advice, "%s", why);
    else if (!is_of_training(folder))
        doctor_say(d, DOCTOR_BAD, advice, "%.500s is no run folder: there is no run.json in it", folder);
    else
        folder_check(d, folder, true, t);
    free(folder);
}

void doctor_runs(doctor *d)
{
    size_t before = d->count;
    glob_t found = {0};
    struct stat info;
    tally t = {0};

    if (d->args->word_count && !doctor_reader_open(d))
        return;
    for (size_t i = 0; i < d->args->word_count; i++)
        named_check(d, d->args->words[i], &t);
    if (!d->args->word_count && !glob(CLI_RUNS "/*", 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!stat(found.gl_pathv[i], &info) && S_ISDIR(info.st_mode) && is_of_training(found.gl_pathv[i]))
                folder_check(d, found.gl_pathv[i], false, &t);
    globfree(&found);
    if (d->count == before && t.folders)
        doctor_say(d, DOCTOR_OK, "", "%zu run folder%s, %zu in use", t.folders, t.folders == 1 ? "" : "s",
                   t.live);
}
