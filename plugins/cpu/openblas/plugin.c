/*
 * The plugin cpu-openblas: products of matrices by OpenBLAS, built with OpenMP so that there is one pool of
 * threads. Everything but the product itself is shared with the plugin cpu (../common).
 */
#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tenon/plugin/op.h"
#include "tenon/plugin/util.h"

#include "openblas.h"

#define TNBLAS_FAMILY(name) extern const tn_kernel *const tnblas_family_##name[];
#include "kernels.list"
#undef TNBLAS_FAMILY

#define TNBLAS_FAMILY(name)                                                                                  \
    static const tn_kernel_table table_##name = {                                                            \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"),                       \
        .kernels = tnblas_family_##name,                                                                     \
    };
#include "kernels.list"
#undef TNBLAS_FAMILY

static const tn_capability *const capabilities[] = {
#define TNBLAS_FAMILY(name) &table_##name.head,
#include "kernels.list"
#undef TNBLAS_FAMILY
    NULL,
};

/* Address space that OpenBLAS takes for each thread that calls it. */
#define BUFFER_BYTES ((uint64_t)129 << 20)

/* Where the address space is limited, OpenBLAS asks for its buffers again and again until it gets them: its
 * products would never come to an end. So there must be room for all of them. */
static tn_err no_room;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

static void room_look(void)
{
    const uint64_t threads = (uint64_t)omp_get_max_threads() + 1, bytes = threads * BUFFER_BYTES;
    struct rlimit limit;
    void *room;

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return;
    room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room != MAP_FAILED)
        (void)munmap(room, bytes);
    else
        (void)tn_failf(&no_room, TN_E_UNSUPPORTED,
                       "OpenBLAS takes %llu MiB of address space for %llu threads; the limit of %llu MiB "
                       "(ulimit -v) leaves less",
                       (unsigned long long)(bytes >> 20), (unsigned long long)threads,
                       (unsigned long long)(limit.rlim_cur >> 20));
}

tn_status tnblas_room(tn_err *err)
{
    return no_room.code ? tn_fail(err, no_room.code, no_room.message) : TN_OK;
}

static tn_status blas_init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
    (void)pthread_once(&looked, room_look);
    *plugin = (void *)(uintptr_t)host; /* only read */
    return TN_OK;
}

TN_PLUGIN_DEFINE("cpu-openblas", "0.1.0", "Tenon", "Apache-2.0", "matrix products by OpenBLAS", "",
                 "kernels@cpu", blas_init, NULL, NULL, capabilities);
