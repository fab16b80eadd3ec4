/* What the programs of workers do again and again. */
#include "dist/job.h"

const int64_t small_shape[2] = {2, 3}, big_shape[1] = {BIG};

tn_array *worker_array(worker *w, int32_t dtype, int32_t ndim, const int64_t *shape, double fill)
{
    tn_array *a = NULL;

    WORKER_OK(w, tn_array_zeros(w->ctx, dtype, ndim, shape, NULL, &a));
    WORKER_OK(w, tn_array_fill(a, fill));
    return a;
}

tn_kv_item worker_item(const char *name, tn_array *const *in, tn_array *const *out)
{
    return (tn_kv_item){.name = name,
                        .value_count = in ? 1 : 0,
                        .values = in,
                        .out_count = out ? 1 : 0,
                        .outs = out,
                        .priority = -1};
}

void worker_init(worker *w, const char *name, int32_t dtype, int32_t ndim, const int64_t *shape, double fill)
{
    tn_array *a = worker_array(w, dtype, ndim, shape, fill);
    const tn_kv_item it = worker_item(name, &a, NULL);

    WORKER_OK(w, tn_kv_init(w->kv, 1, &it));
    tn_array_release(a);
}

void worker_push(worker *w, const char *name, tn_array *a)
{
    const tn_kv_item it = worker_item(name, &a, NULL);

    WORKER_OK(w, tn_kv_push(w->kv, 1, &it));
}

/* Every element of the key's value. */
void worker_value(worker *w, const char *name, int32_t ndim, const int64_t *shape, double wanted)
{
    tn_array *a = worker_array(w, TN_F32, ndim, shape, -77);
    const tn_kv_item it = worker_item(name, NULL, &a);
    static _Thread_local float got[BIG];
    int64_t count = 1;

    for (int32_t d = 0; d < ndim; d++)
        count *= shape[d];
    WORKER_OK(w, tn_kv_pull(w->kv, TN_KV_SPARSE, 1, &it));
    WORKER_OK(w, tn_array_read(a, got, (uint64_t)count * sizeof *got));
    for (int64_t i = 0; i < count; i++)
        if (got[i] != (float)wanted)
            worker_fail(w, __FILE__, __LINE__, "%s: element %d of worker %u is %.9g, wanted %.9g", name,
                        (int)i, w->rank, (double)got[i], wanted);
    tn_array_release(a);
}
