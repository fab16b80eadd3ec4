/*
 * NCCL and the driver: found by name, not linked, so that a machine without them loses nothing but this
 * plugin. Nothing is opened before a communicator is; the libraries stay open, as their threads do.
 */
#include "kv_nccl.h"

#include <dlfcn.h>
#include <pthread.h>

#define DRIVER "libcuda.so.1"
#define LIBRARY "libnccl.so.2"
#define DRIVER_VERSION 12000
#define NO_DRIVER "; install NVIDIA's driver (nvidia-smi has to list the GPU), or take kvstore.type = device"
#define NO_NCCL                                                                                              \
    "; install NCCL 2.18 or later (libnccl2) where the loader looks, or take kvstore.type = device"

static struct {
    pthread_mutex_t lock;
    bool open;
    tnnccl_libraries lib;
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef CUresult (*find_fn)(const char *name, void **out, int version, cuuint64_t flags, void *status);

/* A function pointer out of an object pointer, as POSIX has it. */
static void pointer_set(void *member, void *symbol)
{
    memcpy(member, &symbol, sizeof symbol);
}

tn_status tnnccl_driver_fail(const tnnccl_libraries *lib, CUresult result, const char *what, tn_err *err)
{
    const char *name = NULL;

    if (lib->cuda.error_name(result, &name))
        name = NULL;
    return tn_failf(err, result == CUDA_ERROR_OUT_OF_MEMORY ? TN_E_NOMEM : TN_E_DEVICE, "%s gives %s (%d)",
                    what, name ? name : "an error", (int)result);
}

/* ---- NCCL ---------------------------------------------------------------------------------------------- */

static tn_status nccl_open(tnnccl_libraries *lib, tn_err *err)
{
    const struct {
        const char *name;
        void *member;
    } rows[] = {
#define NCCL(member, name) {#name, (void *)&lib->nccl.member},
#include "nccl.list"
#undef NCCL
    };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *symbol;
    const char *lacks = NULL;

    if (!library)
        return tn_fail(err, TN_E_DEVICE, "there is no NCCL: " LIBRARY " cannot be opened" NO_NCCL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !lacks; i++) {
        if (!(symbol = dlsym(library, rows[i].name)))
            lacks = rows[i].name;
        pointer_set(rows[i].member, symbol);
    }
    if (lib->nccl.version && lib->nccl.version(&lib->version) == ncclSuccess && lib->version < TNNCCL_VERSION)
        return tn_failf(err, TN_E_DEVICE, LIBRARY " is NCCL number %d" NO_NCCL, lib->version);
    return lacks ? tn_failf(err, TN_E_DEVICE, LIBRARY " has no %s" NO_NCCL, lacks) : TN_OK;
}

/* ---- the driver ---------------------------------------------------------------------------------------- */

static tn_status driver_find(tnnccl_libraries *lib, find_fn find, tn_err *err)
{
    const struct {
        const char *name;
        void *member;
    } rows[] = {
#define CUDA(member, name) {#name, (void *)&lib->cuda.member},
#include "driver.list"
#undef CUDA
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *symbol = NULL;
        const CUresult result = find(rows[i].name, &symbol, DRIVER_VERSION, 0, NULL);

        if (result == CUDA_ERROR_STUB_LIBRARY)
            return tn_fail(err, TN_E_DEVICE, DRIVER " is the toolkit's stub, not a driver" NO_DRIVER);
        if (result || !symbol)
            return tn_failf(err, TN_E_DEVICE, DRIVER " has no %s; install a driver for CUDA 12 or later",
                            rows[i].name);
        pointer_set(rows[i].member, symbol);
    }
    return TN_OK;
}

static tn_status driver_open(tnnccl_libraries *lib, tn_err *err)
{
    void *library = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
    CUresult result;
    find_fn find;
    tn_status st;

    if (!library)
        return tn_fail(err, TN_E_DEVICE, "there is no NVIDIA driver: " DRIVER " was not found" NO_DRIVER);
    pointer_set((void *)&find, dlsym(library, "cuGetProcAddress_v2"));
    if (!find)
        return tn_fail(err, TN_E_DEVICE,
                       DRIVER " has no cuGetProcAddress_v2; install a driver for CUDA 12 or later");
    if ((st = driver_find(lib, find, err)))
        return st;
    result = lib->cuda.init(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        return tn_fail(err, TN_E_DEVICE, "the driver finds no GPU" NO_DRIVER);
    if (result == CUDA_ERROR_STUB_LIBRARY)
        return tn_fail(err, TN_E_DEVICE, DRIVER " is the toolkit's stub, not a driver" NO_DRIVER);
    return result ? tnnccl_driver_fail(lib, result, "the driver does not start: cuInit", err) : TN_OK;
}

/* The driver first: NCCL is far bigger. */
tn_status tnnccl_libraries_get(const tnnccl_libraries **out, tn_err *err)
{
    tn_status st = TN_OK;

    (void)pthread_mutex_lock(&opened.lock);
    if (!opened.open && !(st = driver_open(&opened.lib, err)) && !(st = nccl_open(&opened.lib, err)))
        opened.open = true;
    (void)pthread_mutex_unlock(&opened.lock);
    *out = &opened.lib;
    return st;
}
