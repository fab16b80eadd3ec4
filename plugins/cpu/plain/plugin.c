/*
 * The plugin cpu: loops in C, no library but libm and libgomp; the reference for all other kernels and the
 * smallest node. One kernel table per family; nothing is done at init, prepare of each kernel plans its own
 * call.
 */
#include "../common/memory.h"
#include "meet.h"

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

static const tn_option_row sync_timeout = {.struct_size = (uint32_t)TN_END(tn_option_row, max),
                                           .key = "sync_timeout",
                                           .type = "duration_ms",
                                           .default_text = TNCPU_MEET_TIMEOUT_TEXT,
                                           .help = "how long SyncBatchNorm waits for the other devices",
                                           .since = "0.1",
                                           .min = 1,
                                           .max = 864e5};
static const tn_option_row *const rows[] = {&sync_timeout, NULL};
static const tn_option_table options = {TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "cpu"), rows};

static const tn_capability *const capabilities[] = {
#define TNCPU_FAMILY(name) &table_##name.head,
#include "kernels.list"
#undef TNCPU_FAMILY
    &options.head,
    NULL,
};

static tn_status cpu_init(const tn_host *host, void **plugin, tn_err *err)
{
    tncpu_plugin *p = tncpu_block_alloc(host, sizeof *p);
    tn_status st;

    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    p->host = host;
    if ((st = tncpu_meetings_open(host, &p->meetings, err))) {
        tncpu_block_free(p);
        return st;
    }
    tncpu_team_open(host);
    *plugin = p;
    return TN_OK;
}

static void cpu_fini(void *plugin)
{
    tncpu_plugin *p = plugin;

    tncpu_meetings_close(p->meetings);
    tncpu_team_close(p->host);
    tncpu_block_free(p);
}

static tn_status cpu_fork(void *plugin, uint32_t phase)
{
    tncpu_meetings_fork(((tncpu_plugin *)plugin)->meetings, phase);
    return TN_OK;
}

TN_PLUGIN_DEFINE("cpu", "0.1.0", "Tenon", "Apache-2.0", "kernels in plain C for the host", "",
                 "kernels@cpu options", cpu_init, cpu_fini, cpu_fork, capabilities);
