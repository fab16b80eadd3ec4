/*
 * The driver of kernels that see a tensor as rows: (outer, size, inner), `size` elements that lie `inner`
 * apart are one row. A body gets the number of a row and room of its thread's own; it brings elements of any
 * type to doubles with tncpu_numbers and back with tncpu_numbers_store. A row is one thread's, so nothing
 * depends on their number.
 */
#ifndef TNCPU_ROWS_H
#define TNCPU_ROWS_H

#include "convert.h"

typedef struct tncpu_rows {
    int64_t outer, size, inner;
} tncpu_rows;

/* The axes first … end-1 are a row's, those of them that there are. */
static inline tncpu_rows tncpu_rows_of(const tn_tensor *t, int32_t first, int32_t end)
{
    end = end < t->ndim ? end : t->ndim;
    first = first < 0 ? 0 : first < end ? first : end;
    return (tncpu_rows){tncpu_dims(t, 0, first), tncpu_dims(t, first, end), tncpu_dims(t, end, t->ndim)};
}

/* The first element of row number `row`. */
static inline int64_t tncpu_row_at(const tncpu_rows *r, int64_t row)
{
    return r->inner == 1 ? row * r->size : row / r->inner * r->size * r->inner + row % r->inner;
}

typedef void tncpu_row_body(const void *call, int64_t row, double *room);

/* Rows 0 … count-1 on the threads of this run. The workspace has, behind `shared` bytes, room for each thread
 * (tncpu_plan_workspace). */
void tncpu_rows_run(const tn_plan *plan, const tn_exec *x, int64_t count, uint64_t shared,
                    tncpu_row_body *body, const void *call);

/* Rows that may be as short as an element: a call of memcpy costs more than what it moves then. */
static inline void tncpu_row_copy(void *to, const void *from, int64_t bytes)
{
    switch (bytes) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        memcpy(to, from, (size_t)bytes);
    }
}

/* Sums of p, or of p·q: eight lanes side by side, joined by halves. */
double tncpu_lanes_sum(const double *p, const double *q, int64_t n);

#endif
