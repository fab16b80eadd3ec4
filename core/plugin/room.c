/*
 * Libraries that do not bear a limit of address space (ulimit -v): one asks for memory again and again until
 * it gets it, another ends the process where it gets none. A plugin that needs one is refused before that,
 * and for good: others serve in its place.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "plugin/internal.h"

#define MIB ((uint64_t)1 << 20)

typedef struct waiting_library {
    const char *name; /* the file name begins so */
    const char *does; /* without that room */
    uint64_t bytes, thread_bytes;
} waiting_library;

static const waiting_library waiting[] = {
    /* OpenBLAS 0.3.21, driver/others/memory.c and blas_server_omp.c: a buffer for each OpenMP thread; the
     * library itself maps 36 MiB */
    {"libopenblas", "would wait for ever for", 40 * MIB, 129 * MIB},
    /* oneDNN 2.6.3: maps 48 MiB with what it needs, and throws std::bad_alloc through its C interface
     * wherever later on it finds no memory for its code and its tables; so there has to be plenty */
    {"libdnnl", "may end the process without", 1024 * MIB, 0},
};

/* As OpenBLAS counts: the processors of the machine, whichever this process may use, or fewer that
 * OMP_NUM_THREADS says. */
static uint64_t threads_used(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    const long said = text ? strtol(text, NULL, 10) : 0, there = sysconf(_SC_NPROCESSORS_CONF);
    const long count = said > 0 && said < there ? said : there;

    return count > 1 ? (uint64_t)count : 1;
}

/* It is in the process, and does not start again. */
static bool started(const char *name)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);

    if (handle)
        (void)dlclose(handle);
    return handle != NULL;
}

static bool fits(uint64_t bytes)
{
    void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED)
        return false;
    (void)munmap(room, bytes);
    return true;
}

tn_status tni_plugin_room(tni_registry *r, tni_plugin *p)
{
    const tni_library *list;
    struct rlimit limit;
    size_t count;

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return TN_OK;
    if (tni_plugin_libraries(r, p, &list, &count)) {
        tni_error_clear();
        return TN_OK;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof waiting / sizeof *waiting; k++) {
            const waiting_library *w = &waiting[k];
            const uint64_t bytes = w->bytes + threads_used() * w->thread_bytes;

            if (strncmp(list[i].name, w->name, strlen(w->name)) == 0 && !started(list[i].name) &&
                !fits(bytes))
                return tni_refuse(11, TN_E_DEVICE,
                                  "%.60s %s %llu MiB of address space; the limit is %llu MiB (ulimit -v)",
                                  list[i].name, w->does, (unsigned long long)(bytes / MIB),
                                  (unsigned long long)(limit.rlim_cur / MIB));
        }
    return TN_OK;
}
