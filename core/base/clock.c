/* Time, and how many processors this process may use: the smaller of its affinity and its cgroup's quota. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

#define CGROUP_LINES_MAX 64 /* one per controller, a dozen at most */
#define CGROUP_DEPTH_MAX 32 /* folders between a process and the root */

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tni_clock_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

uint64_t tni_clock_wall_ns(void)
{
    return now_ns(CLOCK_REALTIME);
}

void tni_sleep_ns(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

/* Reads up to two integers of a small file; "max" reads as -1. Returns how many there were. */
static int numbers_read(const char *path, long long out[2])
{
    FILE *f = fopen(path, "re");
    char text[64] = "";
    char *at = text;
    int count = 0;

    if (!f)
        return 0;
    if (!fgets(text, sizeof text, f))
        text[0] = '\0';
    fclose(f);
    while (count < 2) {
        char *end;

        if (strncmp(at, "max", 3) == 0) {
            out[count++] = -1;
            at += 3;
            continue;
        }
        out[count] = strtoll(at, &end, 10);
        if (end == at)
            break;
        at = end;
        count++;
    }
    return count;
}

static double quota_v2(const char *folder)
{
    char path[TN_PATH_BYTES_MAX];
    long long v[2];

    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    return numbers_read(path, v) == 2 && v[0] > 0 && v[1] > 0 ? (double)v[0] / (double)v[1] : 0;
}

static double quota_v1(const char *folder)
{
    char path[TN_PATH_BYTES_MAX];
    long long quota[2], period[2];

    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", folder);
    if (!numbers_read(path, quota))
        return 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", folder);
    return numbers_read(path, period) && quota[0] > 0 && period[0] > 0 ? (double)quota[0] / (double)period[0]
                                                                       : 0;
}

/* The smallest quota of `folder` and its parents; 0: none. */
static double quota_upwards(char *folder, double (*quota)(const char *folder))
{
    double least = 0;

    for (int depth = 0; depth < CGROUP_DEPTH_MAX; depth++) {
        double q = quota(strcmp(folder, "/") == 0 ? "" : folder);
        char *slash = strrchr(folder, '/');

        if (q > 0 && (least == 0 || q < least))
            least = q;
        if (!slash || strcmp(folder, "/") == 0)
            break;
        slash[slash == folder] = '\0';
    }
    return least;
}

static double cgroup_quota(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];
    double least = 0;

    if (!f)
        return 0;
    for (int i = 0; i < CGROUP_LINES_MAX && fgets(line, sizeof line, f); i++) {
        char *controllers = strchr(line, ':');
        char *folder = controllers ? strchr(controllers + 1, ':') : NULL;
        double q = 0;

        if (!folder)
            continue;
        *folder++ = '\0';
        folder[strcspn(folder, "\n")] = '\0';
        controllers++;
        if (controllers[0] == '\0')
            q = quota_upwards(folder, quota_v2);
        else if (strcmp(controllers, "cpu") == 0 || strcmp(controllers, "cpu,cpuacct") == 0)
            q = quota_upwards(folder, quota_v1);
        if (q > 0 && (least == 0 || q < least))
            least = q;
    }
    fclose(f);
    return least;
}

/* The set grows until the kernel accepts it: machines with over 1024 processors exist. */
static uint32_t affinity_count(void)
{
    for (size_t processors = 1024; processors <= 65536; processors *= 4) {
        cpu_set_t *set = CPU_ALLOC(processors);
        size_t size = CPU_ALLOC_SIZE(processors);
        int count = 0;

        if (!set)
            return 1;
        if (sched_getaffinity(0, size, set) == 0)
            count = CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (count > 0)
            return (uint32_t)count;
    }
    return 1;
}

uint32_t tni_cpu_count(void)
{
    uint32_t count = affinity_count();
    double quota = cgroup_quota();

    if (quota > 0 && quota < (double)count)
        count = (uint32_t)(quota + 0.5) ? (uint32_t)(quota + 0.5) : 1;
    return count;
}
