/*
 * Checks of the machine: processors, memory, limits, room on disks, clock.
 */
#include "machine.h"
#include "doctor/doctor.h"
#include "runs/runs.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MIB 1048576.0

/* ---- processors ---- */

void doctor_processor(doctor *d)
{
    char model[200], lacks[32], governor[64];
    const char *level = cli_machine_level(lacks);

    cli_machine_cpu(model, sizeof model);
    doctor_say(d, DOCTOR_OK, "", "%s, level %s%s%s", model, *level ? level : "unknown",
               *lacks ? ", without " : "", lacks);
    if (cli_machine_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor,
                         sizeof governor) &&
        !strcmp(governor, "powersave"))
        doctor_say(d, DOCTOR_WARNING, "cpupower frequency-set -g performance",
                   "the frequency governor is powersave: times will vary");
}

void doctor_threads(doctor *d)
{
    const char *omp = getenv("OMP_NUM_THREADS");
    long processors = cli_machine_processors(), asked = 0;
    double allowed = cli_machine_group_cpus();
    size_t before = d->count;
    char advice[128], *end = NULL;

    if (omp && *omp) {
        asked = strtol(omp, &end, 10);
        (void)snprintf(advice, sizeof advice, "unset OMP_NUM_THREADS, or set it to %ld at most", processors);
        if (asked <= 0 || (*end && *end != ','))
            doctor_say(d, DOCTOR_BAD, advice, "OMP_NUM_THREADS=%.40s is no number of threads", omp);
        else if (asked > processors)
            doctor_say(d, DOCTOR_BAD, advice, "OMP_NUM_THREADS=%ld, but this process has %ld processors",
                       asked, processors);
    }
    asked = asked > 0 ? asked : atol(doctor_option(d, "engine.threads"));
    asked = asked > 0 ? asked : processors;
    if (allowed > 0 && (double)asked > allowed + 0.999) {
        (void)snprintf(advice, sizeof advice, "--set engine.threads=%d", (int)(allowed + 0.999));
        doctor_say(d, DOCTOR_WARNING, advice,
                   "%ld threads, but the control group gets the time of %.1f processors", asked, allowed);
    }
    if (d->count == before)
        doctor_say(d, DOCTOR_OK, "", "%ld threads on %ld processors", asked, processors);
}

/* ---- memory ---- */

void doctor_memory(doctor *d)
{
    double all = cli_machine_memory_all_mib(), there = cli_machine_memory_mib("MemAvailable");
    double group = (double)cli_machine_group_bytes() / MIB;

    if (group > 0 && group < 512)
        doctor_say(d, DOCTOR_WARNING, "raise the memory limit of the container or the unit",
                   "the control group may have %.0f MiB", group);
    else if (there > 0 && there < 256)
        doctor_say(d, DOCTOR_WARNING, "end other programs, or use a smaller batch",
                   "%.0f MiB of %.0f MiB are available", there, all);
    else if (there <= 0)
        doctor_say(d, DOCTOR_WARNING, "mount -t proc proc /proc",
                   "%.0f MiB in all; /proc/meminfo, which has what of it is available, cannot be read", all);
    else if (group > 0 && group < all)
        doctor_say(d, DOCTOR_OK, "", "%.0f MiB available, the control group may have %.0f MiB", there, group);
    else
        doctor_say(d, DOCTOR_OK, "", "%.0f MiB of %.0f MiB available", there, all);
}

/* ---- limits ---- */

static const struct {
    int resource;
    const char *name, *unit;
    double scale, bad, warning; /* below these */
    const char *advice;
} limits[] = {
    {RLIMIT_NOFILE, "open files", "", 1, 64, 256, "ulimit -n 1024"},
    {RLIMIT_FSIZE, "size of a file", " MiB", MIB, 64, 1024, "ulimit -f unlimited"},
    {RLIMIT_AS, "address space", " MiB", MIB, 512, 4096, "ulimit -v unlimited"},
    {RLIMIT_STACK, "stack", " MiB", MIB, 0.5, 2, "ulimit -s 8192"},
    {RLIMIT_NPROC, "processes and threads", "", 1, 32, 256, "ulimit -u 4096"},
    {RLIMIT_CPU, "processor time", " s", 1, 10, 3600, "ulimit -t unlimited"},
    {RLIMIT_MEMLOCK, "locked memory", " KiB", 1024, 0, 64,
     "raise memlock in /etc/security/limits.d, then log in again"},
};

void doctor_limits(doctor *d)
{
    size_t before = d->count;

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit r;
        double value;

        if (getrlimit((__rlimit_resource_t)limits[i].resource, &r) || r.rlim_cur == RLIM_INFINITY)
            continue;
        value = (double)r.rlim_cur / limits[i].scale;
        if (value < limits[i].warning)
            doctor_say(d, value < limits[i].bad ? DOCTOR_BAD : DOCTOR_WARNING, limits[i].advice, "%s: %.4g%s",
                       limits[i].name, value, limits[i].unit);
    }
    if (d->count == before)
        doctor_say(d, DOCTOR_OK, "", "files, stack, memory and time are enough");
}

/* ---- room ---- */

/* Processes of a job share memory there, and a program that forks workers. A process alone does not need it:
 * an empty root without the mount is fit to predict in. */
void doctor_shared(doctor *d)
{
    const char *type = doctor_option(d, "kvstore.type");
    const doctor_level fault =
        *type && strcmp(type, "local") != 0 && strcmp(type, "device") != 0 ? DOCTOR_BAD : DOCTOR_WARNING;
    struct statvfs v;
    double all, free_mib;

    if (statvfs("/dev/shm", &v)) {
        doctor_say(d, fault, "mount -t tmpfs tmpfs /dev/shm", "/dev/shm: %s", strerror(errno));
        return;
    }
    all = (double)v.f_blocks * (double)v.f_frsize / MIB;
    free_mib = (double)v.f_bavail * (double)v.f_frsize / MIB;
    if (free_mib < 16)
        doctor_say(d, fault, "mount -o remount,size=1G /dev/shm (a container: --shm-size=1g)",
                   "/dev/shm has %.4g MiB, %.4g MiB of them free", all, free_mib);
    else if (free_mib <= 64)
        doctor_say(d, DOCTOR_WARNING, "mount -o remount,size=1G /dev/shm (a container: --shm-size=1g)",
                   "/dev/shm has %.4g MiB free: processes that share arrays need more", free_mib);
    else
        doctor_say(d, DOCTOR_OK, "", "/dev/shm has %.0f MiB free", free_mib);
}

/* `path`, or the nearest folder above it that is there. */
static void folder_existing(const char *path, char *out, size_t bytes)
{
    struct stat info;

    (void)snprintf(out, bytes, "%s", *path ? path : ".");
    while (stat(out, &info) && strcmp(out, ".") != 0 && strcmp(out, "/") != 0) {
        char *slash = strrchr(out, '/');

        if (slash)
            slash[slash == out] = '\0';
        else
            (void)snprintf(out, bytes, ".");
    }
}

static void room_check(doctor *d, const char *what, const char *path)
{
    char folder[600], advice[700];
    struct statvfs v;
    double free_mib;

    folder_existing(path, folder, sizeof folder);
    if (statvfs(folder, &v)) {
        doctor_say(d, DOCTOR_BAD, "look at the file system", "%s: %s: %s", what, folder, strerror(errno));
        return;
    }
    free_mib = (double)v.f_bavail * (double)v.f_frsize / MIB;
    (void)snprintf(advice, sizeof advice, "make room below %.500s, or choose another folder", folder);
    if (v.f_flag & ST_RDONLY || access(folder, W_OK))
        doctor_say(d, DOCTOR_BAD, "choose a folder that may be written: --out, --set run.dir=, TMPDIR",
                   "%s: %s may not be written", what, folder);
    else if (free_mib < 64)
        doctor_say(d, DOCTOR_BAD, advice, "%s: %.4g MiB are free in %s", what, free_mib, folder);
    else if (v.f_files && v.f_favail < 100)
        doctor_say(d, DOCTOR_BAD, advice, "%s: room for %llu more files in %s", what,
                   (unsigned long long)v.f_favail, folder);
    else if (free_mib < 1024)
        doctor_say(d, DOCTOR_WARNING, advice, "%s: %.0f MiB are free in %s", what, free_mib, folder);
    else
        doctor_say(d, DOCTOR_OK, "", "%s: %.0f MiB are free in %s", what, free_mib, folder);
}

/* Where the run's checkpoints go; a name that means none is told by the check of runs. */
static void run_room_check(doctor *d, const char *name)
{
    char why[CLI_WHY_BYTES], *folder = cli_record_folder(CLI_RUNS, name, why);

    if (folder)
        room_check(d, "checkpoints", folder);
    free(folder);
}

void doctor_disk(doctor *d)
{
    const char *run = doctor_option(d, "run.dir"), *tmp = getenv("TMPDIR");

    room_check(d, "new runs", *run ? run : CLI_RUNS);
    for (size_t i = 0; i < d->args->word_count; i++)
        run_room_check(d, d->args->words[i]);
    room_check(d, "temporary files", tmp && *tmp ? tmp : "/tmp");
}

/* ---- clock ---- */

/* Nothing can be older than the library itself. */
void doctor_clock(doctor *d)
{
    const char *(*version)(void) = tn_version;
    const void *address = NULL;
    struct stat info;
    Dl_info library;
    time_t now = time(NULL);
    char text[32];

    memcpy(&address, &version, sizeof address);
    cli_time_text(text);
    if (dladdr(address, &library) && library.dli_fname && !stat(library.dli_fname, &info) &&
        now + 86400 < info.st_mtime)
        doctor_say(d, DOCTOR_BAD, "set the clock, or start a time service",
                   "it is %s, before the library was installed", text);
    else
        doctor_say(d, DOCTOR_OK, "", "%s", text);
}
