/*
 * Memory, thread counts and the OpenMP region of most kernels. A part of a parallel loop is a range that
 * depends on the size and the number of threads; no result does, because parts write apart from each other.
 */
#include "plain.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/memory.h"

#define PARALLEL_NS 30000.0 /* below this a region costs more than it saves */
#define THREAD_NS 10000.0   /* work that makes one more thread worth while */

const char *const tncpu_floats[] = {"*:" TNCPU_FLOATS, NULL};
const char *const tncpu_numeric[] = {"*:" TNCPU_NUMBERS, NULL};
const char *const tncpu_most[] = {"*:" TNCPU_MOST, NULL};
const char *const tncpu_all[] = {"*:" TNCPU_ALL, NULL};

void tncpu_release(tn_plan *plan)
{
    tncpu_block_free(plan->state);
    plan->state = NULL;
}

tn_status tncpu_state(void *plugin, tn_plan *plan, uint64_t bytes, tn_err *err)
{
    plan->state = tncpu_block_alloc(tncpu_host(plugin), bytes);
    return plan->state ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory for a kernel's plan");
}

const void *tncpu_form_of(const void *forms, size_t row_bytes, const char *op)
{
    const char *row = forms;

    while (strcmp(*(const char *const *)(const void *)row, op) != 0)
        row += row_bytes;
    return row;
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

void tncpu_for(const tn_plan *plan, const tn_exec *x, int64_t count, int64_t grain, tncpu_part fn, void *arg)
{
    const int64_t threads = tncpu_run_threads(plan, x);
    int64_t grains = grain > 0 ? (count + grain - 1) / grain : 0;
    int64_t parts = grains < threads ? grains : threads;

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
