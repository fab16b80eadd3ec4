/*
 * The plugin cpu-openblas: products of matrices by OpenBLAS, built with OpenMP so that there is one pool of
 * threads. Everything but the product itself is shared with the plugin cpu (../common).
 */
#include "tenon/plugin/op.h"

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

static tn_status blas_init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
    *plugin = (void *)(uintptr_t)host; /* only read */
    return TN_OK;
}

TN_PLUGIN_DEFINE("cpu-openblas", "0.1.0", "Tenon", "Apache-2.0", "matrix products by OpenBLAS", "",
                 "kernels@cpu", blas_init, NULL, NULL, capabilities);
