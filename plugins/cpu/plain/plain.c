/*
 * Memory, thread counts and the one OpenMP region of this plugin. A part of a parallel loop is a range that
 * depends on the size and the number of threads; no result does, because parts write apart from each other.
 */
#include "plain.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/memory.h"

#define PARALLEL_NS 30000.0 /* below this a region costs more than it saves */
#define THREAD_NS 10000.0   /* work that makes one more thread worth while */

void *tncpu_alloc(void *plugin, uint64_t bytes)
{
    return tncpu_block_alloc(plugin, bytes);
}

void tncpu_free(void *p)
{
    tncpu_block_free(p);
}

void tncpu_release(tn_plan *plan)
{
    tncpu_free(plan->state);
    plan->state = NULL;
}

tn_status tncpu_state(void *plugin, tn_plan *plan, uint64_t bytes, tn_err *err)
{
    plan->state = tncpu_alloc(plugin, bytes);
    return plan->state ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory for a kernel's plan");
}

void tncpu_plan_work(const tn_node *node, tn_plan *plan, double ns)
{
    double threads = ns / THREAD_NS;

    plan->est_ns = ns < 1e18 ? (uint64_t)ns + 1 : (uint64_t)1000000000000000000;
    plan->threads = 1;
    plan->flags |= TN_PLAN_THREAD_INVARIANT;
    if (ns < PARALLEL_NS || node->threads < 2)
        return;
    plan->threads = threads < (double)node->threads ? (uint32_t)threads : node->threads;
    plan->flags |= TN_PLAN_PARALLEL;
}

void tncpu_for(uint32_t threads, int64_t count, int64_t grain, tncpu_part fn, void *arg)
{
    int64_t grains = grain > 0 ? (count + grain - 1) / grain : 0;
    int64_t parts = grains < (int64_t)threads ? grains : (int64_t)threads;

    if (parts <= 1) {
        if (count > 0)
            fn(arg, 0, count);
        return;
    }
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (int64_t part = 0; part < parts; part++) {
        int64_t begin = grains * part / parts * grain;
        int64_t end = grains * (part + 1) / parts * grain;

        fn(arg, begin, end < count ? end : count);
    }
}
