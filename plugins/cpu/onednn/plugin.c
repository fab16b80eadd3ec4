/*
 * The plugin cpu-onednn: layers of nets by oneDNN, built with OpenMP so that there is one pool of threads.
 * Loading it opens nothing; the library's engine is made when the first kernel is prepared.
 */
#include <stdlib.h>

#include "../common/memory.h"
#include "onednn.h"

#define TNDNN_FAMILY(name) extern const tn_kernel *const tndnn_family_##name[];
#include "kernels.list"
#undef TNDNN_FAMILY

#define TNDNN_FAMILY(name)                                                                                   \
    static const tn_kernel_table table_##name = {                                                            \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"),                       \
        .kernels = tndnn_family_##name,                                                                      \
    };
#include "kernels.list"
#undef TNDNN_FAMILY

static const tn_capability *const capabilities[] = {
#define TNDNN_FAMILY(name) &table_##name.head,
#include "kernels.list"
#undef TNDNN_FAMILY
    NULL,
};

/* ---- memory -------------------------------------------------------------------------------------------- */

void *tndnn_alloc(tndnn_plugin *plugin, uint64_t bytes)
{
    return tncpu_block_alloc(plugin->host, bytes);
}

void tndnn_free(void *p)
{
    tncpu_block_free(p);
}

/* ---- the library's engine ------------------------------------------------------------------------------ */

tn_status tndnn_status(dnnl_status_t st, const char *what, tn_err *err)
{
    if (st == dnnl_success)
        return TN_OK;
    if (st == dnnl_out_of_memory)
        return tn_failf(err, TN_E_NOMEM, "oneDNN found no memory for %s", what);
    if (st == dnnl_unimplemented || st == dnnl_invalid_arguments)
        return tn_failf(err, TN_E_UNSUPPORTED, "oneDNN does not serve this %s", what);
    return tn_failf(err, TN_E_INTERNAL, "oneDNN failed in %s with status %d", what, (int)st);
}

/* Two threads may make one at once: the first stays. */
tn_status tndnn_engine(tndnn_plugin *plugin, dnnl_engine_t *out, tn_err *err)
{
    dnnl_engine_t made = NULL, none = NULL;
    tn_status st;

    *out = atomic_load(&plugin->engine);
    if (*out)
        return TN_OK;
    if ((st = tndnn_status(dnnl_engine_create(&made, dnnl_cpu, 0), "its engine", err)))
        return st;
    if (!atomic_compare_exchange_strong(&plugin->engine, &none, made)) {
        (void)dnnl_engine_destroy(made);
        made = none;
    }
    *out = made;
    return TN_OK;
}

static tn_status onednn_init(const tn_host *host, void **plugin, tn_err *err)
{
    tndnn_plugin *made = tncpu_block_alloc(host, sizeof *made);

    if (!made)
        return tn_fail(err, TN_E_NOMEM, "no memory for the plugin");
    made->host = host;
    tncpu_team_open(host);
    *plugin = made;
    return TN_OK;
}

static void onednn_fini(void *plugin)
{
    tndnn_plugin *p = plugin;
    const dnnl_engine_t engine = atomic_load(&p->engine);

    tncpu_team_close(p->host);
    if (engine)
        (void)dnnl_engine_destroy(engine);
    tndnn_free(p);
}

TN_PLUGIN_DEFINE("cpu-onednn", "0.1.0", "Tenon", "Apache-2.0", "layers of nets by oneDNN", "", "kernels@cpu",
                 onednn_init, onednn_fini, NULL, capabilities);
