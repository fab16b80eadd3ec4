/*
 * Measuring: plans of one node run on the host's scratch, and the fastest way is left for the next time. What
 * is stored is good for one version of the library.
 */
#include <string.h>
#include <time.h>

#include "onednn.h"

#define RUNS_MAX 10   /* of one plan */
#define BLOB_FORMAT 1 /* raised when the ways change, so that a number stands for another one */

/* ---- stored ways --------------------------------------------------------------------------------------- */

typedef struct blob {
    uint8_t format, way;
    uint16_t major, minor, patch; /* of the library */
} blob;

static blob blob_of(uint32_t way)
{
    const dnnl_version_t *v = dnnl_version();

    return (blob){BLOB_FORMAT, (uint8_t)way, (uint16_t)v->major, (uint16_t)v->minor, (uint16_t)v->patch};
}

bool tndnn_tuned_way(const tn_node *node, uint32_t *way)
{
    blob got, now;

    if (!node->host || !TN_HAS(node->host, tn_prepare_ops, tuned_bytes) || !node->host->tuned ||
        node->host->tuned_bytes != sizeof got)
        return false;
    memcpy(&got, node->host->tuned, sizeof got);
    now = blob_of(got.way);
    *way = got.way;
    return !memcmp(&got, &now, sizeof got);
}

void tndnn_tuned_leave(tndnn_plugin *plugin, tn_plan *plan, uint32_t way)
{
    const blob now = blob_of(way);

    if ((plan->tuning.data = tndnn_alloc(plugin, sizeof now)) == NULL)
        return;
    memcpy(plan->tuning.data, &now, sizeof now);
    plan->tuning.bytes = sizeof now;
    plan->tuning.release = tndnn_free;
}

/* ---- measuring ----------------------------------------------------------------------------------------- */

static uint64_t clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool tndnn_tuner_start(tndnn_tuner *t, const tn_node *node, const tn_plan *plan, uint32_t ways)
{
    const tn_prepare_ops *host = node->host;

    if (!host || !host->tuning_budget_ns || !host->scratch ||
        node->in_count + node->out_count >= TNDNN_TUNE_ARGS ||
        plan->est_ns / plan->threads > host->tuning_budget_ns / ways)
        return false;
    *t = (tndnn_tuner){.node = node, .end = clock_ns() + host->tuning_budget_ns};
    return true;
}

bool tndnn_tuner_goes_on(const tndnn_tuner *t)
{
    return clock_ns() < t->end;
}

/* Zeros, so that no sum meets numbers that are none or slow. */
static void *block_of(tndnn_tuner *t, uint32_t index, uint64_t bytes)
{
    const tn_prepare_ops *host = t->node->host;

    if (!t->block[index] || t->bytes[index] < bytes) {
        t->block[index] = host->scratch(host->arg, bytes);
        t->bytes[index] = bytes;
    }
    if (t->block[index])
        memset(t->block[index], 0, (size_t)bytes);
    return t->block[index];
}

/* A tensor on scratch in the layout that the plan asks for. */
static bool tensor_make(tndnn_tuner *t, uint32_t index, const tn_tensor *from, const tn_layout *layout,
                        tn_tensor *to)
{
    *to = *from;
    to->layout = layout;
    to->bytes = layout ? layout->memory_bytes : (uint64_t)tn_tensor_count(from) * sizeof(float);
    to->data = block_of(t, index, to->bytes);
    return to->data != NULL;
}

uint64_t tndnn_tuner_time(tndnn_tuner *t, const tn_plan *plan, uint32_t left)
{
    const tn_node *node = t->node;
    tn_tensor tensors[TNDNN_TUNE_ARGS];
    const tn_tensor *list[TNDNN_TUNE_ARGS];
    const tn_exec x = {.struct_size = (uint32_t)TN_END(tn_exec, ops),
                       .threads = node->threads,
                       .in = list,
                       .out = list + node->in_count,
                       .modes = node->modes,
                       .attrs = node->attrs,
                       .workspace = block_of(t, TNDNN_TUNE_ARGS - 1, plan->workspace_bytes + 1)};
    uint64_t now, end, least = UINT64_MAX;
    tn_err err = {0};
    bool made = x.workspace != NULL;

    for (uint32_t i = 0; made && i < node->in_count + node->out_count; i++) {
        const bool in = i < node->in_count;

        made = tensor_make(t, i, in ? node->in[i] : node->out[i - node->in_count],
                           in ? plan->in_layout[i] : plan->out_layout[i - node->in_count], &tensors[i]);
        list[i] = &tensors[i];
    }
    if (!made || (now = clock_ns()) >= t->end)
        return UINT64_MAX;
    end = now + (t->end - now) / left;
    for (uint32_t run = 0; run < RUNS_MAX && now < end; run++) {
        const uint64_t began = now;

        if (tndnn_run(plan, &x, &err))
            return UINT64_MAX;
        now = clock_ns();
        least = now - began < least ? now - began : least;
    }
    return least;
}
