/*
 * On the host: libraries that are found by name at run time, not linked, so that a machine without one loses
 * nothing but what needs it; and the driver of NVIDIA's GPUs, which is asked for each function by a call.
 */
#ifndef TNB_LIBRARY_H
#define TNB_LIBRARY_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tenon/plugin/util.h"

typedef struct {
    const char *name;
    void *member; /* a function pointer of a table, which is filled */
} library_function;

/* A function pointer out of an object pointer, as POSIX has it. */
static inline void function_set(void *member, void *symbol)
{
    memcpy(member, &symbol, sizeof symbol);
}

/* The first of `files` (NULL ends them) that can be opened: in `folder` if that is not empty, then where the
   loader looks. NULL: none can, or `folder` is "none"; `*file` is the file's name. `why`, 256 bytes or NULL,
   says what the first one lacks. */
static inline void *library_open(const char *folder, const char *const *files, const char **file, char *why)
{
    char path[4096];
    const char *text = NULL;
    void *library;

    *file = files[0];
    if (why)
        *why = '\0';
    if (folder && !strcmp(folder, "none"))
        return NULL;
    for (size_t i = 0; folder && *folder && files[i]; i++) {
        *file = files[i];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, files[i]) < sizeof path &&
            (library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
            return library;
        if (why && !*why && (text = dlerror()))
            (void)snprintf(why, 256, "%.250s", text);
    }
    for (size_t i = 0; files[i]; i++) {
        *file = files[i];
        if ((library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL)))
            return library;
        if (why && !*why && (text = dlerror()))
            (void)snprintf(why, 256, "%.250s", text);
    }
    return NULL;
}

/* TN_E_DEVICE names the first function that is lacking; `advice` ends the sentence. */
static inline tn_status library_functions(void *library, const char *file, const library_function *rows,
                                          size_t count, const char *advice, tn_err *err)
{
    const char *lacks = NULL;

    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, rows[i].name);

        if (!symbol && !lacks)
            lacks = rows[i].name;
        function_set(rows[i].member, symbol);
    }
    return lacks ? tn_failf(err, TN_E_DEVICE, "%s has no %s; %s", file, lacks, advice) : TN_OK;
}

/* ---- NVIDIA's driver ----------------------------------------------------------------------------------- */

#define DRIVER_FILE "libcuda.so.1"
#define DRIVER_ADVICE "install NVIDIA's driver (nvidia-smi has to list the GPU), or "
#define DRIVER_STUB 34 /* CUDA_ERROR_STUB_LIBRARY */

/* The toolkit's own file of this name has every function, and none works. */
static inline tn_status driver_is_stub(const char *instead, tn_err *err)
{
    return tn_failf(err, TN_E_DEVICE, "%s is the toolkit's stub, not a driver; " DRIVER_ADVICE "%s",
                    DRIVER_FILE, instead);
}

/* Why none serves: `lacks` is the function that is not there, or NULL. */
static inline tn_status driver_refused(int32_t least, int32_t version, int32_t result, const char *lacks,
                                       const char *instead, tn_err *err)
{
    if (result == DRIVER_STUB)
        return driver_is_stub(instead, err);
    if (result && !lacks)
        return tn_failf(err, TN_E_DEVICE, "%s: cuDriverGetVersion gives error %d", DRIVER_FILE, (int)result);
    if (version < least)
        return tn_failf(err, TN_E_DEVICE, "the driver is for CUDA %d.%d; install one for CUDA %d.%d or later",
                        (int)(version / 1000), (int)(version % 1000 / 10), (int)(least / 1000),
                        (int)(least % 1000 / 10));
    return tn_failf(err, TN_E_DEVICE, "%s has no %s; " DRIVER_ADVICE "%s", DRIVER_FILE, lacks, instead);
}

/* Fills the rows with the functions as CUDA `least` has them (1000 for each major, 10 for each minor), and
   `*version` with the driver's own. `instead` is the advice to who has no GPU. */
static inline tn_status driver_functions(int32_t least, const library_function *rows, size_t count,
                                         const char *instead, void **library, int32_t *version, tn_err *err)
{
    int32_t (*find)(const char *name, void **out, int32_t version, unsigned long long flags, int32_t *status);
    int32_t (*number)(int32_t * out);
    int32_t result = DRIVER_STUB;
    const char *lacks = NULL;

    *version = 0;
    if (!(*library = dlopen(DRIVER_FILE, RTLD_NOW | RTLD_LOCAL)))
        return tn_failf(err, TN_E_DEVICE, "there is no NVIDIA driver: %s was not found; " DRIVER_ADVICE "%s",
                        DRIVER_FILE, instead);
    function_set((void *)&number, dlsym(*library, "cuDriverGetVersion"));
    function_set((void *)&find, dlsym(*library, "cuGetProcAddress_v2"));
    if (number && !(result = number(version)) && *version >= least && !find)
        lacks = "cuGetProcAddress_v2";
    for (size_t i = 0; i < count && !result && *version >= least && !lacks; i++) {
        void *symbol = NULL;

        result = find(rows[i].name, &symbol, least, 0, NULL);
        if (result || !symbol)
            lacks = rows[i].name;
        function_set(rows[i].member, symbol);
    }
    if (!result && *version >= least && !lacks)
        return TN_OK;
    (void)dlclose(*library);
    *library = NULL;
    return driver_refused(least, *version, result, lacks, instead, err);
}

#endif
