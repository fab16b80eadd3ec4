/* What the files of room tensor share and nobody else may use. */
#ifndef TN_TENSOR_INTERNAL_H
#define TN_TENSOR_INTERNAL_H

#include <string.h>

#include "tensor/tensor.h"

/* An array with its storage and small data: what tni_array_create makes. */
typedef struct tni_array_block {
    tni_array array;
    tni_storage storage;
    _Alignas(64) unsigned char small[TNI_SMALL_BYTES];
} tni_array_block;

static inline tni_array_block *tni_block_of_storage(tni_storage *s)
{
    return (tni_array_block *)(void *)((char *)s - offsetof(tni_array_block, storage));
}

/* ---- cache.c: free blocks per thread, and the counters of live arrays -------------------------------- */

/* Memory for a whole block or (view) an array alone. Only `home` is set, and the version of a block's
 * storage: never the same twice. NULL: out of memory. */
tni_array *tni_cache_take(tni_space *space, bool view);
/* The array and its storage are dead; `counted`: the array was not told of before. */
void tni_cache_give(tni_space *space, tni_array *a, bool view, bool counted);
void tni_cache_count_array(tni_space *space, int64_t by); /* an array died before its block */
uint32_t tni_cache_slot_take(void);
void tni_cache_slot_give(uint32_t slot);
void tni_cache_live(uint32_t slot, uint64_t *arrays, uint64_t *storages);
uint64_t tni_cache_calls(uint32_t slot); /* of all spaces that ever had the slot */
void tni_cache_trim(void); /* frees what the calling thread and ended threads keep */

/* ---- array.c ----------------------------------------------------------------------------------------- */

/* Gives `a` its dimensions: row-major if `stride` is NULL. TN_E_NOMEM leaves it as it was. */
tn_status tni_array_dims(tni_array *a, int32_t ndim, const int64_t *shape, const int64_t *stride);
/* Elements from the first to behind the last one touched; 0 if there are none.
 * TN_E_SHAPE if that overflows. */
tn_status tni_extent(int32_t ndim, const int64_t *shape, const int64_t *stride, uint64_t *out);
static inline bool tni_array_contiguous(const tni_array *a)
{
    return (a->flags & TNI_ARRAY_CONTIGUOUS) != 0;
}
/* A further array on storage `s`, which it retains. */
tn_status tni_array_on(tni_storage *s, int32_t dtype, uint64_t offset, int32_t ndim, const int64_t *shape,
                       const int64_t *stride, tni_array **out);

/* ---- kernel.c: by a kernel of the device ------------------------------------------------------------- */

typedef struct tni_kernel_move {
    tni_array *src, *dst; /* borrowed until the run is over; src NULL: a fill */
    const tni_array_kernels *table;
    struct tni_prepared *kernel; /* NULL: none was found */
    tn_stream *stream;           /* of the run */
    void **slot;
    double value; /* of a fill */
    uint32_t threads;
    bool add;
} tni_kernel_move;
/* Fills in what serves k->src and k->dst, which lie on one device other than a host, apart from each other,
 * and have elements. */
tn_status tni_kernel_move_find(tni_kernel_move *k);
/* The arrays have memory. In stream order: what `k` names lives until the operation is complete, on a device
 * that runs host kernels; else until this returns. [worker] */
tn_status tni_kernel_move_run(tni_kernel_move *k, const tni_run *run, tn_err *err);
static inline bool tni_kernel_moves_late(const tni_run *run)
{
    return run->device->kernels_plugin != NULL;
}
static inline void tni_kernel_move_fini(tni_kernel_move *k)
{
    if (k->kernel)
        k->table->release(k->kernel);
}

/* ---- dtype.c ----------------------------------------------------------------------------------------- */

void tni_cast_add(const void *src, int64_t src_stride, void *dst, int64_t dst_stride, int32_t dtype,
                  int64_t count);

/* sparse.c */
int64_t tni_index_at(const tni_array *a, int64_t i); /* of an index array */
/* Of qsort and bsearch, over int64_t: the smaller one first. */
int tni_index_order(const void *a, const void *b);
/* On the storage of `values`, from its first element, with references on the index arrays. */
tn_status tni_sparse_on(tni_array *values, int32_t storage_type, int32_t ndim, const int64_t *shape,
                        tni_array *const aux[2], tni_array **out);

#endif
