/*
 * Plain host memory, and how much of it there is.
 *
 * Large blocks are aligned to a huge page and marked for them: page faults of first use are the largest cost
 * of a fresh block. Free memory is what the kernel could give (MemAvailable, not the free pages: the page
 * cache is not in use), within the cgroup's limit. It is read at most ten times a second, because pools ask
 * at every miss.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/internal.h"

#define HUGE_BYTES ((uint64_t)2 << 20)
#define ALIGN_BYTES 64u
#define ASK_BYTES                                                                                            \
    ((uint64_t)1 << 30) /* from here on the machine's memory is looked at: the kernel promises more */
#define INFO_TEXT_BYTES 4096
#define INFO_AGE_NS 100000000u

static uint64_t pages(uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* Pages of their own; of huge pages, where there are some, none that others have a part of. */
static void *pages_map(uint64_t bytes, int flags)
{
    const uint64_t extra = bytes >= HUGE_BYTES && !(flags & MAP_SHARED) ? HUGE_BYTES : 0;
    char *data = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    uint64_t head;

    if (data == MAP_FAILED || !extra)
        return data;
    head = -(uintptr_t)data & (HUGE_BYTES - 1);
    if (head)
        (void)munmap(data, head);
    if (extra > head)
        (void)munmap(data + head + bytes, extra - head);
    (void)madvise(data + head, bytes & ~(HUGE_BYTES - 1), MADV_HUGEPAGE); /* advice: may be refused */
    return data + head;
}

tn_status tni_host_alloc(int32_t memory, uint64_t bytes, void **out)
{
    uint64_t padded, free_bytes, total_bytes = 0;
    void *data;

    if (bytes >= ASK_BYTES)
        tni_host_info(&free_bytes, &total_bytes);
    if (total_bytes && bytes > total_bytes)
        return tni_error(TN_E_NOMEM, "%llu bytes, but the host has %llu", (unsigned long long)bytes,
                         (unsigned long long)total_bytes);
    if (!tni_size_align(bytes, ALIGN_BYTES, &padded))
        return tni_error(TN_E_NOMEM, "%llu bytes of host memory are more than any block may have",
                         (unsigned long long)bytes);
    if (memory == TN_MEMORY_SHARED || memory == TNI_MEMORY_APART) {
        data = pages_map(pages(padded), memory == TN_MEMORY_SHARED ? MAP_SHARED : MAP_PRIVATE);
        if (data == MAP_FAILED)
            return tni_error(TN_E_NOMEM, "no %llu bytes of host memory in pages of their own",
                             (unsigned long long)bytes);
        *out = data;
        return TN_OK;
    }
    if (!(data = tni_alloc_aligned(padded >= HUGE_BYTES ? HUGE_BYTES : ALIGN_BYTES, padded)))
        return TN_E_NOMEM;
    if (padded >= HUGE_BYTES)
        (void)madvise(data, padded & ~(HUGE_BYTES - 1), MADV_HUGEPAGE); /* advice: may be refused */
    *out = data;
    return TN_OK;
}

void tni_host_free(int32_t memory, void *data, uint64_t bytes)
{
    if (memory == TN_MEMORY_SHARED || memory == TNI_MEMORY_APART)
        (void)munmap(data, pages(bytes));
    else
        tni_free_aligned(data);
}

/* Files of /proc and /sys have no size, so that file.c's bounded reader does not fit. */
static bool system_text(const char *path, char *out, size_t size)
{
    size_t got = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (got + 1 < size && (n = read(fd, out + got, size - 1 - got)) > 0)
        got += (size_t)n;
    (void)close(fd);
    out[got] = '\0';
    return got > 0;
}

static bool system_number(const char *path, uint64_t *out)
{
    char text[64];

    if (!system_text(path, text, sizeof text))
        return false;
    text[strcspn(text, "\n")] = '\0';
    return tni_parse_u64(text, out);
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    uint64_t value = 0;

    if (!at)
        return 0;
    at += strlen(key);
    at += strspn(at, " \t");
    for (; *at >= '0' && *at <= '9' && value < TN_SIZE_MAX / 16384; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value;
}

/* What a cgroup holds counts its page cache, which the kernel gives up for the asking. */
void tni_host_limit(const char *folder, uint64_t *free_bytes, uint64_t *total_bytes)
{
    char path[TN_PATH_BYTES_MAX], text[INFO_TEXT_BYTES];
    uint64_t max, used, cache = 0, left;

    (void)snprintf(path, sizeof path, "%s/memory.max", folder);
    if (!system_number(path, &max)) /* "max": none */
        return;
    (void)snprintf(path, sizeof path, "%s/memory.current", folder);
    if (!system_number(path, &used))
        return;
    (void)snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (system_text(path, text, sizeof text))
        cache = number_after(text, "\nactive_file ") + number_after(text, "\ninactive_file ");
    used -= cache < used ? cache : used;
    left = max > used ? max - used : 0;
    *total_bytes = max < *total_bytes ? max : *total_bytes;
    *free_bytes = left < *free_bytes ? left : *free_bytes;
}

static void info_read(uint64_t *free_bytes, uint64_t *total_bytes)
{
    char text[INFO_TEXT_BYTES];

    *free_bytes = *total_bytes = 0;
    if (system_text("/proc/meminfo", text, sizeof text)) {
        *total_bytes = number_after(text, "MemTotal:") * 1024;
        *free_bytes = number_after(text, "MemAvailable:") * 1024;
    }
    tni_host_limit("/sys/fs/cgroup", free_bytes, total_bytes);
}

void tni_host_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
    static tni_mutex lock = TNI_MUTEX_INIT; /* of the process, as the memory is */
    static uint64_t last_ns, last_free, last_total;
    uint64_t now = tni_clock_ns();

    tni_mutex_lock(&lock);
    if (!last_total || now - last_ns > INFO_AGE_NS) {
        info_read(&last_free, &last_total);
        last_ns = now;
    }
    *free_bytes = last_free;
    *total_bytes = last_total;
    tni_mutex_unlock(&lock);
}
