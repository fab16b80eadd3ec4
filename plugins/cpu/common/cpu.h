/*
 * What the CPU plugins share: how a kernel says what a run costs, and how it reads tensors and attributes.
 *
 * Threads: work is cut into tasks by shape alone, each task is computed by one thread in a fixed order, so
 * every plan made here gives the same bits on any number of threads.
 */
#ifndef TNCPU_CPU_H
#define TNCPU_CPU_H

#include "../../common/node.h"

#define TNCPU_PARALLEL_NS 50000u /* below this, waking a team of threads costs more than it brings */
#define TNCPU_ALIGN 64u

/** Fills in the plan of a kernel that cuts a run of `ns` nanoseconds (on one thread) into `tasks`. */
static inline void tncpu_plan_tasks(const tn_node *node, tn_plan *plan, double ns, int64_t tasks)
{
    const int parallel = node->threads > 1 && tasks > 1 && ns >= TNCPU_PARALLEL_NS;

    plan->est_ns = ns < 1 ? 1 : ns > 9e18 ? (uint64_t)9e18 : (uint64_t)ns;
    plan->flags |= TN_PLAN_THREAD_INVARIANT | (parallel ? TN_PLAN_PARALLEL : 0);
    plan->threads = !parallel ? 1 : tasks < (int64_t)node->threads ? (uint32_t)tasks : node->threads;
}

/** `bytes` up to the next multiple of TNCPU_ALIGN. */
static inline uint64_t tncpu_aligned(uint64_t bytes)
{
    return (bytes + TNCPU_ALIGN - 1) & ~(uint64_t)(TNCPU_ALIGN - 1);
}

/** Asks for `bytes` of workspace for each thread of the plan (after tncpu_plan_tasks). */
static inline void tncpu_plan_workspace(tn_plan *plan, uint64_t bytes_each)
{
    plan->workspace_bytes += tncpu_aligned(bytes_each) * plan->threads;
    plan->workspace_align = TNCPU_ALIGN;
}

/** How many of `threads` a team may have that the calling thread makes now; at least 1. */
int tncpu_team(int threads);
/** Notes about teams go to this host from now on; with close no longer. */
void tncpu_team_open(const tn_host *host);
void tncpu_team_close(const tn_host *host);

/** Threads of this run: what was planned, if the host still gives that many and the system has them. */
static inline int tncpu_run_threads(const tn_plan *plan, const tn_exec *x)
{
    const uint32_t n = plan->threads < x->threads ? plan->threads : x->threads;

    return n < 2 ? 1 : tncpu_team((int)n);
}

static inline int64_t tncpu_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tncpu_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t tncpu_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#define tncpu_dims tnb_dims
#define tncpu_tuple_item tnb_tuple_item
#define tncpu_tuple_count tnb_tuple_count
#define tncpu_axis tnb_axis

/** The id of the calling thread inside a parallel region, 0 without OpenMP. */
#if defined(_OPENMP)
#include <omp.h>
static inline int tncpu_thread_id(void)
{
    return omp_get_thread_num();
}
#else
static inline int tncpu_thread_id(void)
{
    return 0;
}
#endif

#endif
