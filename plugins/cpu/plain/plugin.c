/*
 * The plugin cpu: loops in C, no library but libm and libgomp; the reference for all other kernels and the
 * smallest node. One kernel table per family; nothing is done at init, prepare of each kernel plans its own
 * call.
 */
#include "plain.h"

#define TNCPU_FAMILY(name) extern const tn_kernel *const tncpu_family_##name[];
#include "kernels.list"
#undef TNCPU_FAMILY

#define TNCPU_FAMILY(name)                                                                                   \
    static const tn_kernel_table table_##name = {                                                            \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"),                       \
        .kernels = tncpu_family_##name,                                                                      \
    };
#include "kernels.list"
#undef TNCPU_FAMILY

static const tn_capability *const capabilities[] = {
#define TNCPU_FAMILY(name) &table_##name.head,
#include "kernels.list"
#undef TNCPU_FAMILY
    NULL,
};

/* The plugin's own pointer is the host: kernels ask it for memory. */
static tn_status cpu_init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
    tncpu_team_open(host);
    *plugin = (void *)(uintptr_t)host; /* only read */
    return TN_OK;
}

static void cpu_fini(void *plugin)
{
    tncpu_team_close(plugin);
}

TN_PLUGIN_DEFINE("cpu", "0.1.0", "Tenon", "Apache-2.0", "kernels in plain C for the host", "", "kernels@cpu",
                 cpu_init, cpu_fini, NULL, capabilities);
