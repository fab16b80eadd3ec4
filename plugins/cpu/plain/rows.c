/* See rows.h. */
#include "rows.h"

void tncpu_rows_run(const tn_plan *plan, const tn_exec *x, int64_t count, uint64_t shared,
                    tncpu_row_body *body, const void *call)
{
    const int threads = tncpu_run_threads(plan, x);
    const uint64_t each = (plan->workspace_bytes - shared) / plan->threads;
    char *room = each ? (char *)x->workspace + shared : NULL; /* perhaps none is needed */

    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t row = 0; row < count; row++)
        body(call, row, room ? (double *)(void *)(room + (uint64_t)tncpu_thread_id() * each) : NULL);
}

double tncpu_lanes_sum(const double *p, const double *q, int64_t n)
{
    double lane[8] = {0};
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        TNCPU_UNROLL8
    for (int64_t k = 0; k < 8; k++)
        lane[k] += q ? p[i + k] * q[i + k] : p[i + k];
    for (int64_t k = 0; i < n; i++, k++)
        lane[k] += q ? p[i] * q[i] : p[i];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}
