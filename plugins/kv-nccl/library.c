/*
 * NCCL and the driver: found by name, not linked, so that a machine without them loses nothing but this
 * plugin. Nothing is opened before a communicator is; the libraries stay open, as their threads do.
 */
#include "kv_nccl.h"

#include <pthread.h>

#include "../common/library.h"

#define DRIVER_VERSION 12000
#define INSTEAD "take kvstore.type = device"
#define NO_NCCL "install NCCL 2.18 or later (libnccl2) where the loader looks, or " INSTEAD

static struct {
    pthread_mutex_t lock;
    bool open;
    tnnccl_libraries lib;
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};

tn_status tnnccl_driver_fail(const tnnccl_libraries *lib, CUresult result, const char *what, tn_err *err)
{
    const char *name = NULL;

    if (lib->cuda.error_name(result, &name))
        name = NULL;
    return tn_failf(err, result == CUDA_ERROR_OUT_OF_MEMORY ? TN_E_NOMEM : TN_E_DEVICE, "%s gives %s (%d)",
                    what, name ? name : "an error", (int)result);
}

static tn_status nccl_open(tnnccl_libraries *lib, tn_err *err)
{
    static const char *const files[] = {"libnccl.so.2", NULL};
    const library_function rows[] = {
#define NCCL(member, name) {#name, (void *)&lib->nccl.member},
#include "nccl.list"
#undef NCCL
    };
    const char *file;
    void *library = library_open(NULL, files, &file, NULL);
    tn_status st;

    if (!library)
        return tn_failf(err, TN_E_DEVICE, "there is no NCCL: %s cannot be opened; " NO_NCCL, file);
    st = library_functions(library, file, rows, sizeof rows / sizeof *rows, NO_NCCL, err);
    if (lib->nccl.version && lib->nccl.version(&lib->version) == ncclSuccess && lib->version < TNNCCL_VERSION)
        return tn_failf(err, TN_E_DEVICE, "%s is NCCL number %d; " NO_NCCL, file, lib->version);
    return st;
}

static tn_status driver_open(tnnccl_libraries *lib, tn_err *err)
{
    const library_function rows[] = {
#define CUDA(member, name) {#name, (void *)&lib->cuda.member},
#include "driver.list"
#undef CUDA
    };
    void *library;
    int32_t version;
    CUresult result;
    tn_status st =
        driver_functions(DRIVER_VERSION, rows, sizeof rows / sizeof *rows, INSTEAD, &library, &version, err);

    if (st)
        return st;
    result = lib->cuda.init(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        return tn_fail(err, TN_E_DEVICE, "the driver finds no GPU; " DRIVER_ADVICE INSTEAD);
    if (result == CUDA_ERROR_STUB_LIBRARY)
        return driver_is_stub(INSTEAD, err);
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
