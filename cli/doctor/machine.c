/*
 * Checks of the machine: processors, memory, limits, room on disks, clock.
 */
#include "doctor/doctor.h"
#include "runs/runs.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MIB 1048576.0

/* ---- processors ---- */

long doctor_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
}

/* The value of a line "name : value" of /proc/cpuinfo. */
static bool cpu_line(const char *name, char *text, size_t bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192];
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');

        found = colon && !strncmp(line, name, strlen(name));
        if (found) {
            (void)snprintf(text, bytes, "%s", colon + 1 + strspn(colon + 1, " "));
            text[strcspn(text, "\n")] = '\0';
        }
    }
    if (file)
        (void)fclose(file);
    return found;
}

void doctor_cpu_model(char *text, size_t bytes)
{
    if (!cpu_line("model name", text, bytes))
        (void)snprintf(text, bytes, "unknown processor");
}

static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

const char *doctor_cpu_level(char lacks[32])
{
    static const struct {
        const char *name, *flags;
    } levels[] = {
        {"x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"},
        {"x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"},
        {"x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"},
    };
    const char *reached = "x86-64";
    char flags[8192];

    lacks[0] = '\0';
    if (!cpu_line("flags", flags, sizeof flags))
        return "";
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        for (const char *at = levels[i].flags; *at; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            char word[32];

            (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
            if (!has_word(flags, word, length)) {
                (void)snprintf(lacks, 32, "%s", word);
                return reached;
            }
            at += length;
        }
        reached = levels[i].name;
    }
    return reached;
}

void doctor_processor(doctor *d)
{
    char model[200], lacks[32], governor[64];
    const char *level = doctor_cpu_level(lacks);

    doctor_cpu_model(model, sizeof model);
    doctor_say(d, DOCTOR_OK, "", "%s, level %s%s%s", model, *level ? level : "unknown",
               *lacks ? ", without " : "", lacks);
    if (doctor_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor) &&
        !strcmp(governor, "powersave"))
        doctor_say(d, DOCTOR_WARNING, "cpupower frequency-set -g performance",
                   "the frequency governor is powersave: times will vary");
}

/* ---- control groups ---- */

/* Reads `v2` or, on older systems, `v1` of this process's group, walking up to the root. */
static bool group_line(const char *controller, const char *v2, const char *v1, char *text, size_t bytes)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[512], path[1200];
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        bool unified = group && group == names + 1;

        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (!unified && !strstr(names + 1, controller))
            continue;
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/%s", unified ? "" : controller, group,
                       unified ? v2 : v1);
        found = doctor_line(path, text, bytes);
        if (found)
            break;
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", unified ? "" : controller,
                       unified ? v2 : v1);
        found = doctor_line(path, text, bytes);
    }
    if (file)
        (void)fclose(file);
    return found;
}

double doctor_group_cpus(void)
{
    char text[64], period[64];
    double quota, of;

    if (!group_line("cpu", "cpu.max", "cpu.cfs_quota_us", text, sizeof text))
        return 0;
    quota = atof(text);
    of = strchr(text, ' ') ? atof(strchr(text, ' ')) : 100000;
    if (!strchr(text, ' ') && group_line("cpu", "cpu.max", "cpu.cfs_period_us", period, sizeof period))
        of = atof(period);
    return quota > 0 && of > 0 ? quota / of : 0;
}

long long doctor_group_bytes(void)
{
    char text[64];
    long long bytes;

    if (!group_line("memory", "memory.max", "memory.limit_in_bytes", text, sizeof text))
        return 0;
    bytes = atoll(text); /* "max" is 0; the older system writes nearly 2^63 */
    return bytes > (1LL << 50) ? 0 : bytes;
}

void doctor_threads(doctor *d)
{
    const char *omp = getenv("OMP_NUM_THREADS");
    long processors = doctor_processors(), asked = 0;
    double allowed = doctor_group_cpus();
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

static double meminfo_mib(const char *name)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    double kib = 0;

    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)))
            kib = atof(line + strlen(name));
    if (file)
        (void)fclose(file);
    return kib / 1024;
}

void doctor_memory(doctor *d)
{
    double all = meminfo_mib("MemTotal:"), there = meminfo_mib("MemAvailable:");
    double group = (double)doctor_group_bytes() / MIB;

    if (group > 0 && group < 512)
        doctor_say(d, DOCTOR_WARNING, "raise the memory limit of the container or the unit",
                   "the control group may have %.0f MiB", group);
    else if (there > 0 && there < 256)
        doctor_say(d, DOCTOR_WARNING, "end other programs, or use a smaller batch",
                   "%.0f MiB of %.0f MiB are available", there, all);
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

void doctor_shared(doctor *d)
{
    struct statvfs v;
    double all, free_mib;

    if (statvfs("/dev/shm", &v)) {
        doctor_say(d, DOCTOR_BAD, "mount -t tmpfs tmpfs /dev/shm", "/dev/shm: %s", strerror(errno));
        return;
    }
    all = (double)v.f_blocks * (double)v.f_frsize / MIB;
    free_mib = (double)v.f_bavail * (double)v.f_frsize / MIB;
    if (free_mib < 16)
        doctor_say(d, DOCTOR_BAD, "mount -o remount,size=1G /dev/shm (a container: --shm-size=1g)",
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
