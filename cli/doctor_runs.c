/*
 * Run folders whose training has ended without taking its lock away: killed, or the machine went down.
 */
#include "doctor.h"
#include "lock.h"
#include "runs.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct tally {
    size_t folders, live;
} tally;

static void lock_say(doctor *d, const char *folder, const char *path, const cli_lock_owner *owner)
{
    char advice[1400];

    (void)snprintf(advice, sizeof advice, "rm %.500s (tenon train --resume %.500s does it, and goes on)",
                   path, folder);
    if (owner->pid)
        doctor_say(d, DOCTOR_BAD, advice, "%.500s: stale lock, process %ld is gone", folder, owner->pid);
    else
        doctor_say(d, DOCTOR_BAD, advice, "%.500s: stale lock, the file names no process", folder);
}

static void folder_check(doctor *d, const char *folder, tally *t)
{
    char *path = cli_format("%s/checkpoints/" CLI_LOCK_NAME, folder);
    cli_lock_owner owner;
    cli_lock_state state;
    char advice[600];

    t->folders++;
    if (!path)
        return;
    state = cli_lock_look(path, &owner);
    t->live += state == CLI_LOCK_LIVE;
    if (state == CLI_LOCK_STALE)
        lock_say(d, folder, path, &owner);
    if (state == CLI_LOCK_FOREIGN) {
        (void)snprintf(advice, sizeof advice, "if that process is gone: rm %.500s", path);
        doctor_say(d, DOCTOR_WARNING, advice, "%.500s: locked by process %ld on host %s", folder, owner.pid,
                   owner.host);
    }
    free(path);
}

void doctor_runs(doctor *d)
{
    size_t before = d->count;
    glob_t found = {0};
    struct stat info;
    tally t = {0};

    for (size_t i = 0; i < d->args->word_count; i++) {
        char why[CLI_WHY_BYTES], *folder = cli_record_folder(CLI_RUNS, d->args->words[i], why);

        if (folder)
            folder_check(d, folder, &t);
        else
            doctor_say(d, DOCTOR_BAD, "name a folder that `tenon train` made", "%s", why);
        free(folder);
    }
    if (!d->args->word_count && !glob("runs/*", 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!stat(found.gl_pathv[i], &info) && S_ISDIR(info.st_mode))
                folder_check(d, found.gl_pathv[i], &t);
    globfree(&found);
    if (d->count == before && t.folders)
        doctor_say(d, DOCTOR_OK, "", "%zu run folder%s, %zu in use", t.folders, t.folders == 1 ? "" : "s",
                   t.live);
}
