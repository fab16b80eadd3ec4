/**
 * Arrays: typed, shaped views of memory of one device.
 *
 * Calls that compute or copy are queued; an array may be used in further calls at once, and only reading its
 * values waits. A failure of queued work comes out where the array is waited for or read. Views share memory
 * with what they were made of. A device argument of NULL is the calling thread's default.
 */
#ifndef TENON_ARRAY_H
#define TENON_ARRAY_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_array tn_array;

/* ---- making and freeing -------------------------------------------------------------------------- */

/**
 * A new array with undefined contents; memory is taken at its first write.
 *
 * @param dtype TN_F32 …
 * @param ndim  0 to 32
 * @param shape `ndim` dimensions, each 0 or more; may be NULL if ndim is 0
 * @return TN_E_ARG · TN_E_DTYPE · TN_E_SHAPE: a negative dimension, too many, or more bytes than can be
 *         counted · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_array_create(tn_ctx *ctx, int32_t dtype, int32_t ndim, const int64_t *shape,
                                 const tn_device *device, tn_array **out);

/** The same, filled with zeros. @threads any @since 0.1 */
TN_API tn_status tn_array_zeros(tn_ctx *ctx, int32_t dtype, int32_t ndim, const int64_t *shape,
                                const tn_device *device, tn_array **out);

/** A new array on the thread's default device with a copy of `data`: its elements, row-major. `data` is free
 * again when the call returns, which waits for no queued work; a failure of the copy to a device comes out at
 * the wait. @threads any @since 0.1 */
TN_API tn_status tn_array_from(tn_ctx *ctx, int32_t dtype, int32_t ndim, const int64_t *shape,
                               const void *data, tn_array **out);

/** Memory of the program that an array is laid around. */
typedef struct tn_array_memory {
    uint32_t struct_size;         /* TN_SIZE(tn_array_memory) */
    int32_t dtype, ndim;
    uint32_t reserved;
    const int64_t *shape;
    const int64_t *stride;        /* in elements, none negative; NULL: row-major */
    void *data;                   /* on `device`; aligned to its elements */
    uint64_t bytes;               /* behind `data` */
    const tn_device *device;
    void (*release)(void *arg);   /* called once, from any thread, when the last view is gone; may be NULL */
    void *arg;
} tn_array_memory;

/** An array around memory of the program. TN_E_ARG: the shape reaches beyond `bytes`. On failure `release`
 * is not called. @threads any @since 0.1 */
TN_API tn_status tn_array_wrap(tn_ctx *ctx, const tn_array_memory *memory, tn_array **out);

/** A sparse array as a program hands it over. */
typedef struct tn_array_sparse {
    uint32_t struct_size;         /* TN_SIZE(tn_array_sparse) */
    int32_t storage;              /* TN_STORAGE_ROW_SPARSE or TN_STORAGE_CSR */
    int32_t dtype, ndim;          /* csr: 2 dimensions; row_sparse: at least one */
    const int64_t *shape;
    int64_t stored;               /* rows (row_sparse) or elements (csr) that are stored; the others are 0 */
    const void *values;           /* (stored, shape[1:]) or (stored), row-major */
    const int64_t *indices;       /* `stored`: ids of the rows, ascending; csr: columns, row after row */
    const int64_t *indptr;        /* csr: where each row begins in `indices`, then `stored` */
} tn_array_sparse;

/**
 * A sparse array with copies of what it is made of, on the thread's default device, which is to be a host.
 * Its indices are int64, and cannot be written afterwards (tn_array_aux); its values can (tn_array_values).
 *
 * @return TN_E_ARG: something is missing · indices that are out of order or range · TN_E_SHAPE: a negative
 *         dimension or number of stored elements, more than the shape holds, dimensions that the storage type
 *         cannot have · TN_E_DTYPE · TN_E_UNSUPPORTED: the device is no host · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_array_sparse_from(tn_ctx *ctx, const tn_array_sparse *from, tn_array **out);

/** One more reference. NULL is fine. @threads any @since 0.1 */
TN_API void tn_array_retain(tn_array *a);

/** One reference less; the memory goes when queued work is done with it. NULL is fine.
 * @threads any @since 0.1 */
TN_API void tn_array_release(tn_array *a);

/* ---- what it is ---------------------------------------------------------------------------------- */

/**
 * Number of dimensions and the dimensions; either may be NULL. Waits if only the work that makes the array
 * knows them.
 *
 * @param shape borrowed, lives as long as `a`
 * @return TN_E_ARG · the error of the work that makes the array
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_array_shape(tn_array *a, int32_t *ndim, const int64_t **shape);

/** Strides in elements, borrowed as the shape. @threads any @since 0.1 */
TN_API tn_status tn_array_stride(tn_array *a, const int64_t **stride);

/** Data type; -1 for NULL. @threads any @since 0.1 */
TN_API int32_t tn_array_dtype(const tn_array *a);

/** TN_STORAGE_DENSE, …; -1 for NULL. @threads any @since 0.1 */
TN_API int32_t tn_array_storage(const tn_array *a);

/** Where it lies; NULL for NULL. @threads any @since 0.1 */
TN_API const tn_device *tn_array_device(const tn_array *a);

/** Number of elements; waits as tn_array_shape; 0 on failure. @threads any @since 0.1 */
TN_API uint64_t tn_array_count(tn_array *a);

/** Bytes of its elements; waits as tn_array_shape; 0 on failure. @threads any @since 0.1 */
TN_API uint64_t tn_array_bytes(tn_array *a);

/** Index array of a sparse one: 0 row ids or indptr, 1 indices. Its length may be known only when the work
 * that makes it is done (tn_array_shape). TN_E_ARG: it has none. @threads any @since 0.1 */
TN_API tn_status tn_array_aux(tn_array *a, uint32_t index, tn_array **out);

/** The stored values of a sparse array as a dense view; of a dense one, itself. Waits if only the work that
 * makes the array knows how many there are, and then gives its error. @threads any @since 0.1 */
TN_API tn_status tn_array_values(tn_array *a, tn_array **out);

/**
 * The same elements in another storage type: operator cast_storage. What is 0 is not stored.
 *
 * @param storage TN_STORAGE_…: csr of a matrix, row_sparse of an array of one dimension or more
 * @return TN_E_ARG: an unknown storage type · TN_E_SHAPE: dimensions that it cannot have · TN_E_UNSUPPORTED:
 *         on a device that is no host, or while it is recorded
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_array_to_storage(tn_ctx *ctx, tn_array *a, int32_t storage, tn_array **out);

/**
 * The rows of a row_sparse array that `ids`, a dense vector of any type, names: operator _sparse_retain. A
 * row that is not stored is zeros. An id that is out of range comes out at the wait (TN_E_ARG).
 *
 * @return TN_E_ARG, TN_E_SHAPE, TN_E_UNSUPPORTED: `a` is not row_sparse, `ids` is no dense vector
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_array_retain_rows(tn_ctx *ctx, tn_array *a, tn_array *ids, tn_array **out);

/* ---- values -------------------------------------------------------------------------------------- */

/**
 * Copies all elements, row-major, into memory of the program. Waits.
 *
 * @param data  at any address
 * @param bytes exactly tn_array_bytes(a)
 * @return TN_E_ARG: another number of bytes · the error of the work that made the array
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_array_read(tn_array *a, void *data, uint64_t bytes);

/** Overwrites all elements, row-major, with `data`. Waits; forgets an earlier failure of the array. TN_E_ARG:
 * `bytes` is not tn_array_bytes(a); TN_E_STATE: memory that may only be read. @threads any @since 0.1 */
TN_API tn_status tn_array_write(tn_array *a, const void *data, uint64_t bytes);

/** The value of an array of one element, as a double. Waits. TN_E_SHAPE: it has another number of elements.
 * @threads any @since 0.1 */
TN_API tn_status tn_array_scalar(tn_array *a, double *value);

/** Sets every element to `value`, cast to the array's type. Queued. @threads any @since 0.1 */
TN_API tn_status tn_array_fill(tn_array *a, double value);

/** dst = src: any two devices and data types (cast), equal shapes. Queued; not recorded. TN_E_SHAPE.
 * @threads any @since 0.1 */
TN_API tn_status tn_array_copy(tn_array *src, tn_array *dst);

/** A new array with the same values, on `device` (NULL: where it lies). Queued; not recorded.
 * @threads any @since 0.1 */
TN_API tn_status tn_array_to(tn_ctx *ctx, tn_array *a, const tn_device *device, tn_array **out);

/** A new array with the values cast to `dtype`. Queued; not recorded: while recording use the operator Cast.
 * TN_E_DTYPE.
 * @threads any @since 0.1 */
TN_API tn_status tn_array_cast(tn_ctx *ctx, tn_array *a, int32_t dtype, tn_array **out);

/** Waits until the value is there. What failed on the way comes out here, each time until the array is
 * written again. TN_E_STATE on a thread that the engine runs. @threads any @since 0.1 */
TN_API tn_status tn_array_wait(tn_array *a);

/** Waits until nothing reads or writes the array any more. @threads any @since 0.1 */
TN_API tn_status tn_array_wait_write(tn_array *a);

/**
 * The first element's address, once the value is there; for devices whose memory the host can address.
 *
 * Who writes there calls tn_array_wait_write first and queues nothing that touches the array meanwhile.
 *
 * @param data borrowed, lives as long as `a`; NULL for an array without elements
 * @return TN_E_UNSUPPORTED: the host cannot address it · the error of the work that made the array
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_array_data(tn_array *a, void **data);

/* ---- views: they share memory; not recorded: while recording use Reshape, slice … ---------------- */

/** The same elements in another shape; one dimension may be -1. TN_E_SHAPE: another number of elements, or
 * not row-major without gaps. @threads any @since 0.1 */
TN_API tn_status tn_array_reshape(tn_array *a, int32_t ndim, const int64_t *shape, tn_array **out);

/** Rows begin … end-1 along axis 0; negative counts from the end. TN_E_ARG: outside; TN_E_SHAPE: no
 * dimensions.
 * @threads any @since 0.1 */
TN_API tn_status tn_array_slice(tn_array *a, int64_t begin, int64_t end, tn_array **out);

/** Item `index` along axis 0, which goes; negative counts from the end. TN_E_ARG: outside.
 * @threads any @since 0.1 */
TN_API tn_status tn_array_at(tn_array *a, int64_t index, tn_array **out);

/** Any view of the same memory: from `offset` (elements from the first of `a`), with strides in elements.
 * TN_E_ARG: it reaches outside the memory. @threads any @since 0.1 */
TN_API tn_status tn_array_view(tn_array *a, uint64_t offset, int32_t ndim, const int64_t *shape,
                               const int64_t *stride, tn_array **out);

/** The same memory, off the tape: no gradient flows through it. @threads any @since 0.1 */
TN_API tn_status tn_array_detach(tn_array *a, tn_array **out);

#ifdef __cplusplus
}
#endif

#endif
