/* What waits for a lane: a heap with the piece that goes next on top. */
#include "kv/worker.h"

static bool before(const tni_kv_queued *a, const tni_kv_queued *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
}

tn_status tni_kv_lane_push(tni_kv_lane *lane, const tni_kv_queued *q)
{
    tni_kv_queued *v;
    tn_status st = tni_vec_push(&lane->heap, q);

    if (st)
        return st;
    v = lane->heap.data;
    for (size_t i = lane->heap.count - 1, up; i > 0 && before(&v[i], &v[up = (i - 1) / 2]); i = up) {
        const tni_kv_queued t = v[i];

        v[i] = v[up];
        v[up] = t;
    }
    return TN_OK;
}

void tni_kv_lane_pop(tni_kv_lane *lane)
{
    const size_t count = --lane->heap.count;
    tni_kv_queued *v = lane->heap.data;

    v[0] = v[count];
    for (size_t i = 0, down; (down = 2 * i + 1) < count; i = down) {
        const tni_kv_queued t = v[i];

        down += down + 1 < count && before(&v[down + 1], &v[down]);
        if (!before(&v[down], &v[i]))
            break;
        v[i] = v[down];
        v[down] = t;
    }
}
