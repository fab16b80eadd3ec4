/* See rows.h. */
#include "rows.h"

typedef struct rows_call {
    tncpu_row_body *body;
    const void *call;
    char *room; /* NULL: none is needed */
    uint64_t each;
} rows_call;

static void rows_part(void *arg, int64_t begin, int64_t end)
{
    const rows_call *r = arg;
    char *room = r->room ? r->room + (uint64_t)tncpu_thread_id() * r->each : NULL;

    for (int64_t row = begin; row < end; row++)
        r->body(r->call, row, (double *)(void *)room);
}

void tncpu_rows_run(const tn_plan *plan, const tn_exec *x, int64_t count, uint64_t shared,
                    tncpu_row_body *body, const void *call)
{
    const uint64_t each = (plan->workspace_bytes - shared) / plan->threads;
    rows_call r = {body, call, each ? (char *)x->workspace + shared : NULL, each};

    tncpu_for(plan, x, count, 1, rows_part, &r);
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
