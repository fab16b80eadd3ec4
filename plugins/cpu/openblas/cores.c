/*
 * OpenBLAS chooses its kernels by the names of processors. One that is newer than the library counts as a
 * Prescott (SSE3), whose products take several times as long as those of kernels with AVX2. So the library is
 * told to choose again, once, by the name of a processor with the same instructions; nobody may be computing
 * with it then.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cblas.h>

#include "../common/isa.h"
#include "openblas.h"

#define FALLBACK "Prescott"
#define VARIABLE "OPENBLAS_CORETYPE"

/* Only libraries with kernels of several processors have them; others do not read the variable either. */
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

typedef struct order { /* of two shared objects of the process */
    const void *plugin, *library;
    const void *first; /* the one that came first; NULL: neither has been seen */
} order;

static int order_look(struct dl_phdr_info *info, size_t size, void *data)
{
    order *o = data;
    const void *base = (const void *)(uintptr_t)info->dlpi_addr;

    (void)size;
    if (base != o->plugin && base != o->library)
        return 0;
    o->first = base;
    return 1;
}

/* Whether the library came into the process with this plugin, so that nobody else computes with it yet:
 * objects are listed in the order in which they were loaded. */
static bool library_is_new(void)
{
    static const char here;
    Dl_info plugin, library;
    order o = {0};

    if (!dladdr(&here, &plugin) || !dladdr((const void *)(uintptr_t)gotoblas_dynamic_init, &library))
        return false;
    o.plugin = plugin.dli_fbase;
    o.library = library.dli_fbase;
    (void)dl_iterate_phdr(order_look, &o);
    return o.first == o.plugin && o.plugin != o.library;
}

/* The library reads its choice from the environment, which other threads may be reading: they find one array
 * or the other, and both stay. */
static void choose(const char *name)
{
    static char setting[sizeof VARIABLE "=SkylakeX"];
    static char **with;
    char **const before = environ;
    size_t count = 0;

    while (before && before[count])
        count++;
    if (with || !(with = malloc((count + 2) * sizeof *with)))
        return;
    (void)snprintf(setting, sizeof setting, VARIABLE "=%s", name);
    with[0] = setting;
    for (size_t i = 0; i < count; i++)
        with[1 + i] = before[i];
    with[count + 1] = NULL;
    environ = with;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    environ = before;
}

const char *tnblas_cores(void)
{
    static const char *const names[TNCPU_ISAS] = {[TNCPU_AVX2] = "Haswell", [TNCPU_AVX512] = "SkylakeX"};
    const char *name = names[tncpu_isa()];

    if (!name || !gotoblas_dynamic_init || !gotoblas_dynamic_quit || getenv(VARIABLE) ||
        strcmp(openblas_get_corename(), FALLBACK) != 0)
        return NULL;
    if (library_is_new())
        choose(name);
    return strcmp(openblas_get_corename(), FALLBACK) != 0 ? NULL : name;
}
