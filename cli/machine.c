/*
 * The machine as the tool tells of it: processors, control group, memory, system. Whoever needs one of these
 * facts asks here: doctor and its report, the record of a run, the progress of a training.
 */
#include "machine.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

bool cli_machine_line(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");
    bool read = file && fgets(text, (int)bytes, file);

    if (file)
        (void)fclose(file);
    if (read)
        text[strcspn(text, "\n")] = '\0';
    return read;
}

/* ---- processors ---- */

long cli_machine_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
}

/* The value of a line "name : value" of the file. */
static bool field(const char *path, const char *name, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");
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

void cli_machine_cpu(char *text, size_t bytes)
{
    if (!field("/proc/cpuinfo", "model name", text, bytes))
        (void)snprintf(text, bytes, "unknown processor");
}

static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

const char *cli_machine_level(char lacks[32])
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
    if (!field("/proc/cpuinfo", "flags", flags, sizeof flags))
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
        found = cli_machine_line(path, text, bytes);
        if (found)
            break;
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", unified ? "" : controller,
                       unified ? v2 : v1);
        found = cli_machine_line(path, text, bytes);
    }
    if (file)
        (void)fclose(file);
    return found;
}

double cli_machine_group_cpus(void)
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

long long cli_machine_group_bytes(void)
{
    char text[64];
    long long bytes;

    if (!group_line("memory", "memory.max", "memory.limit_in_bytes", text, sizeof text))
        return 0;
    bytes = atoll(text); /* "max" is 0; the older system writes nearly 2^63 */
    return bytes > (1LL << 50) ? 0 : bytes;
}

/* ---- memory ---- */

double cli_machine_memory_mib(const char *name)
{
    char text[64];

    return field("/proc/meminfo", name, text, sizeof text) ? atof(text) / 1024 : 0;
}

double cli_machine_memory_all_mib(void)
{
    const double all = cli_machine_memory_mib("MemTotal");
    struct sysinfo info;

    return all > 0 ? all : sysinfo(&info) ? 0 : (double)info.totalram * info.mem_unit / 1048576;
}

int64_t cli_machine_resident_mib(void)
{
    char text[128];
    long long all, resident;

    if (!cli_machine_line("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%lld %lld", &all, &resident) != 2)
        return 0;
    return (int64_t)resident * sysconf(_SC_PAGESIZE) / 1048576;
}

/* ---- the system ---- */

void cli_machine_system(struct utsname *out)
{
    if (uname(out))
        memset(out, 0, sizeof *out);
}
