/*
 * The plugin cpu-openblas: products of matrices by OpenBLAS, built with OpenMP so that there is one pool of
 * threads. Everything but the product itself is shared with the plugin cpu (../common).
 */
#include <cblas.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tenon/plugin/op.h"
#include "tenon/plugin/util.h"

#include "../common/gemm.h"
#include "../common/memory.h"
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

/* Where the address space is limited, OpenBLAS asks for its buffers again and again until it gets them: its
 * products would never come to an end. So there must be room for all of them. */
#define BUFFER_EXTENT 128 /* of a product that is too large to do without */

static tn_err no_room;
static const char *slow; /* the processor whose kernels would be faster; NULL: they are chosen */
static pthread_once_t looked = PTHREAD_ONCE_INIT;

/* One buffer is there from the first product on: the one of a thread that has no team. */
static void buffer_take(void)
{
    static const float one[BUFFER_EXTENT * BUFFER_EXTENT];
    static float product[BUFFER_EXTENT * BUFFER_EXTENT];
    const int before = tncpu_gemm_begin();

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, BUFFER_EXTENT, BUFFER_EXTENT, BUFFER_EXTENT, 1,
                one, BUFFER_EXTENT, one, BUFFER_EXTENT, 0, product, BUFFER_EXTENT);
    tncpu_gemm_end(before);
}

static void room_look(void)
{
    const uint64_t threads = (uint64_t)omp_get_max_threads() + 1, bytes = threads * TNBLAS_BUFFER_BYTES;
    struct rlimit limit;
    void *room;

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return;
    room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room != MAP_FAILED) {
        (void)munmap(room, bytes);
        buffer_take();
    } else {
        (void)tn_failf(&no_room, TN_E_UNSUPPORTED,
                       "OpenBLAS takes %llu MiB of address space for %llu threads; the limit of %llu MiB "
                       "(ulimit -v) leaves less",
                       (unsigned long long)(bytes >> 20), (unsigned long long)threads,
                       (unsigned long long)(limit.rlim_cur >> 20));
    }
}

static void library_look(void)
{
    slow = tnblas_cores();
    room_look();
}

static void slow_tell(const tn_host *host)
{
    const tn_log_service *log = tn_host_service(host, TN_SERVICE_LOG);
    char line[200];

    if (!slow || !log)
        return;
    (void)snprintf(
        line, sizeof line,
        "OpenBLAS does not know this processor, and was loaded before Tenon: its products are several "
        "times as slow as they could be; set OPENBLAS_CORETYPE=%s",
        slow);
    log->write(host, TN_LEVEL_WARNING, line);
}

tn_status tnblas_room(tn_err *err)
{
    return no_room.code ? tn_fail(err, no_room.code, no_room.message) : TN_OK;
}

/* A library with threads of its own cuts its sums for them: the bits would depend on their number. One
 * without any threads keeps no lock around its buffers. */
static tn_status build_serves(tn_err *err)
{
    const int parallel = openblas_get_parallel();

    if (parallel == OPENBLAS_OPENMP)
        return TN_OK;
    return tn_failf(err, TN_E_UNSUPPORTED,
                    "this libopenblas was built %s, only the build with OpenMP serves (Debian: install "
                    "libopenblas0-openmp and choose it with update-alternatives)",
                    parallel == OPENBLAS_SEQUENTIAL ? "without threads" : "with threads of its own");
}

static tn_status blas_init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_status st = build_serves(err);
    const tn_host **own;

    if (st)
        return st;
    if (!(own = tncpu_block_alloc(host, sizeof *own)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    (void)pthread_once(&looked, library_look);
    slow_tell(host);
    tncpu_team_open(host);
    *own = host;
    *plugin = own;
    return TN_OK;
}

static void blas_fini(void *plugin)
{
    tncpu_team_close(tncpu_host(plugin));
    tncpu_block_free(plugin);
}

TN_PLUGIN_DEFINE("cpu-openblas", "0.1.0", "Tenon", "Apache-2.0",
                 "matrix products and decompositions by OpenBLAS", "", "kernels@cpu", blas_init, blas_fini,
                 NULL, capabilities);
