/*
 * The interface of room tensor: dtypes, storages, arrays (views), copies, DLPack.
 *
 * A storage is memory of one device with one engine variable; arrays are views of storages and hold one
 * reference. An array, its storage, its variable and small host data are one block of memory. Memory is taken
 * when an operation is about to write it, on the worker; an array whose shape only its operation knows is
 * *pending*: shape queries wait.
 */
#ifndef TN_TENSOR_H
#define TN_TENSOR_H

#include "engine/engine.h"
#include "tenon/plugin/op.h" /* tn_shape */

#define TNI_SMALL_BYTES 128 /* host data up to this lies inside the array's own block */

struct tni_prepared; /* room compile's: a kernel with its plan */

/* How room tensor reaches the kernels of a device that fill, copy, cast and add arrays: operators `_fill` and
 * `_move`. Room compile fills it in. */
typedef struct tni_array_kernels {
    /* A kernel of `d` for tensors of these shapes, strides and dtypes (data is not looked at); `src` NULL: a
     * fill. `mode`: TN_MODE_WRITE or _ADD. NULL in *out: the device has none. [any] */
    tn_status (*find)(void *arg, tni_device *d, const tn_tensor *src, const tn_tensor *dst, uint8_t mode,
                      struct tni_prepared **out);
    /* tn_exec.stream_slot of that kernel in this run. [worker] */
    tn_status (*slot)(const struct tni_prepared *p, const tni_run *run, void ***out);
    /* `x` without attributes; `value`: of a fill. [worker], or in stream order */
    tn_status (*run)(const struct tni_prepared *p, tn_exec *x, double value, tn_err *err);
    void (*release)(struct tni_prepared *p); /* NULL is fine. [any] */
} tni_array_kernels;

typedef struct tni_space { /* what arrays of one context share */
    tni_engine *engine;
    tni_device_set *devices;
    tni_keep *keep;     /* memory of what comes and goes with calls: tape nodes, lists */
    uint32_t slot;      /* of the per-thread counters of live arrays, and of calls */
    uint64_t calls;     /* that were counted there before */
    atomic_bool closed; /* destroyed while arrays were live: those no longer own pool memory */
    void (*grad_release)(void *grad_entry); /* room autograd: an array with a tape entry dies; NULL: none */
    const tni_array_kernels *kernels;       /* room compile's */
    void *kernels_arg;                      /* NULL: there are none */
} tni_space;
tn_status tni_space_create(tni_engine *engine, tni_device_set *devices, tni_space **out);
/* Call it before the device set goes. All arrays should be gone (ask tni_space_live); arrays that are not may
 * still be released afterwards, but nothing else, and the space itself is then never freed. */
void tni_space_destroy(tni_space *s);
/* Arrays and storages that exist; exact while no other thread creates or releases. Either may be NULL. */
void tni_space_live(const tni_space *s, uint64_t *arrays, uint64_t *storages);
/* Calls that ran on their caller: counted by room exec, per thread, so that threads share no line. */
void tni_space_count_call(tni_space *s);
uint64_t tni_space_calls(const tni_space *s);

#ifdef TN_TEST_SWITCHES
/* Of the test build: blocks of arrays that are gone, and what a space keeps, are freed at once, so that a
 * sanitizer sees who still uses one. To be set while no array exists. */
void tni_cache_keep_nothing(bool on);
#endif

#define TNI_STORAGE_READ_ONLY 1u /* memory of others that may not be written */
#define TNI_STORAGE_INLINE 2u    /* the data lies in the array's block */
#define TNI_STORAGE_LENT 4u      /* others may write it whenever they like, from now on */

#define TNI_STREAMS_MANY                                                                                     \
    ((tn_stream *)(uintptr_t)1) /* tni_storage.user: more than one, or of another device */

/* Where the bytes of a storage can be had from again. */
typedef struct tni_refill tni_refill;
struct tni_refill {
    tn_status (*read)(tni_refill *r, void *data, uint64_t bytes); /* any thread */
    void (*release)(tni_refill *r);
    uint64_t version; /* of the storage when it has these bytes */
};

typedef struct tni_storage {
    tni_refcount refs; /* who needs the memory: arrays and operations that were not issued yet */
    uint32_t flags;    /* TNI_STORAGE_… */
    tni_var var;
    tni_space *space;
    tni_device *device;
    void *data; /* NULL: not allocated yet (delayed) */
    uint64_t bytes;
    tni_block block;                  /* pool memory, if any */
    void (*external_free)(void *arg); /* memory of others (DLPack, shared) */
    void *external_arg;
    uint16_t memory;    /* TN_MEMORY_… */
    tni_refcount kept;  /* this struct: 1 of all `refs` together, and operations issued and not complete */
    tni_refill *refill; /* NULL; else memory is TNI_MEMORY_APART, filled by it */
    _Atomic(tn_stream *) user; /* the stream of those; TNI_STREAMS_MANY; NULL */
    const char *owner;         /* for memory statistics: "array", "frame", a parameter's name */
} tni_storage;

/* The public tn_array is this very struct. */
typedef struct tn_array {
    tni_refcount refs;
    uint32_t flags; /* TNI_ARRAY_… */
    tni_storage *storage;
    uint64_t offset; /* elements from the start of the storage */
    int32_t ndim, dtype;
    uint16_t storage_type;
    uint32_t grad_turn;      /* of the last backward that filled in its gradient; 0: none has */
    int64_t *shape, *stride; /* point into `inline_dims` or a block behind */
    int64_t inline_dims[8];  /* shape then stride of up to 4 dimensions */
    struct tn_array *aux[2]; /* sparse: indices arrays */
    void *grad_entry;        /* room autograd: tape entry, NULL if not recorded */
    struct tn_array *grad;   /* attached gradient, NULL */
    uint32_t grad_req;       /* TN_MODE_… */
    atomic_uint pending;     /* 1: the shape is pending, ndim is -1; known after its write */
    void *home;              /* the thread's cache that the block goes back to */
    uint64_t leaf_mark;      /* scratch of a walk of room autograd */
    uint32_t leaf_index;
} tni_array;
#define TNI_ARRAY_CONTIGUOUS 1u /* row-major without gaps */
#define TNI_ARRAY_SMALL 2u      /* storage and data lie in the array's own block */
#define TNI_ARRAY_VIEW 4u       /* the storage is that of another array's block */
#define TNI_ARRAY_DIMS 8u       /* shape and stride have memory of their own */

/* ---- dtype.c ----------------------------------------------------------------------------------------- */

const char *tni_dtype_name(int32_t dtype);               /* "float32"; NULL: none */
const char *tni_storage_type_name(int32_t storage_type); /* "row_sparse"; NULL: none */
static inline bool tni_dtype_is_float(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}
/* Several elements share a byte: dense from the first element on, no views of parts. */
static inline bool tni_dtype_packed(int32_t dtype)
{
    return dtype == TN_I4 || dtype == TN_U4;
}
bool tni_dtype_parse(const char *text, int32_t *out); /* float32, f32 */
float tni_half_to_float(uint16_t h);
uint16_t tni_float_to_half(float f); /* round to nearest even */
float tni_bf16_to_float(uint16_t b);
uint16_t tni_float_to_bf16(float f);
/* Casts `count` elements between any two dtypes, strided by elements (packed ones: from the first on, without
 * gaps). Floats to integers: toward zero, out-of-range values saturate, NaN becomes 0. Integers among
 * themselves keep their low bits. To bool: not 0. Memory of src and dst may not overlap, unless it is the
 * same and so are dtype and stride. */
void tni_cast(const void *src, int32_t src_dtype, int64_t src_stride, void *dst, int32_t dst_dtype,
              int64_t dst_stride, int64_t count);

/* ---- array.c ----------------------------------------------------------------------------------------- */

/* Dims and dtype are such as an array may have; how many elements. TN_E_SHAPE, TN_E_DTYPE. */
tn_status tni_shape_check(int32_t dtype, int32_t ndim, const int64_t *shape, uint64_t *count);
/* Dense, not yet allocated, contents undefined until written (read before that on a host: zeros). Shape
 * checked: ndim <= 32, product fits. `owner` lives as long as the device set (a literal, an interned name),
 * or is NULL. */
tn_status tni_array_create(tni_space *s, tni_device *d, int32_t dtype, int32_t ndim, const int64_t *shape,
                           const char *owner, tni_array **out);
/* The same, checked and counted before, once for many. */
typedef struct tni_array_form {
    tni_device *device;
    uint64_t bytes;
    int32_t dtype, ndim;
    int64_t dims[8]; /* shape, then the strides of a dense array */
} tni_array_form;
#define TNI_FORM_NDIM 4 /* dimensions that a form has room for */
tn_status tni_array_form_init(tni_array_form *f, tni_device *d, int32_t dtype, int32_t ndim,
                              const int64_t *shape);
tn_status tni_array_create_as(tni_space *s, const tni_array_form *f, const char *owner, tni_array **out);
/* Dense, on the device of `a`, with its shape and dtype. */
tn_status tni_array_like(const tni_array *a, const char *owner, tni_array **out);
tn_status tni_array_filled(const tni_array *a, double value, const char *owner, tni_array **out);
tn_status tni_array_create_pending(tni_space *s, tni_device *d, int32_t dtype, tni_array **out);
/* Around memory of others; `release(arg)` is called when the last view is gone. `stride` NULL: row-major. */
tn_status tni_array_wrap(tni_space *s, tni_device *d, void *data, uint64_t bytes, int32_t dtype, int32_t ndim,
                         const int64_t *shape, const int64_t *stride, void (*release)(void *), void *arg,
                         tni_array **out);
/* row_sparse (aux: row ids) or csr (aux: indptr, indices), whose `aux` arrays have their shapes and are
 * retained; the values (rows, shape[1:]) or (nnz) are the storage: tni_array_values is a dense
 * view of them. */
tn_status tni_array_create_sparse(tni_space *s, tni_device *d, int32_t storage_type, int32_t dtype,
                                  int32_t ndim, const int64_t *shape, tni_array *const aux[2],
                                  tni_array **out);
/* The same where a run tells how many are stored: indices are int64, and may be read only. */
tn_status tni_array_create_sparse_pending(tni_space *s, tni_device *d, int32_t storage_type, int32_t dtype,
                                          int32_t ndim, const int64_t *shape, tni_array **out);
/* [worker] Tells how many elements (csr) or rows (row_sparse) are stored, and makes the memory.
 * Hosts only. */
tn_status tni_sparse_resolve(tni_array *a, int64_t stored);
bool tni_sparse_pending(const tni_array *a);
/* Nobody writes its indices any more. */
void tni_sparse_seal(tni_array *a);
/* Of an array of any storage type: `t`, and its index arrays as `aux`. */
void tni_sparse_tensors(const tni_array *a, tn_tensor *t, tn_tensor aux[2]);
/* All rows of a row_sparse array become stored: those of `dense`, which has its shape, type and device. Waits
 * for the work that reads or writes the array. */
tn_status tni_rows_fill(tni_array *a, tni_array *dense);
/* A row_sparse array with the shape, type and device of `like` in which no row is stored. */
tn_status tni_rows_none(const tni_array *like, tni_array **out);
/* What is wrong with its indices, and the number at fault; NULL: nothing. On a host, by who may read them. */
const char *tni_sparse_fault(const tni_array *a, int64_t *value);
tn_status tni_array_values(tni_array *a, tni_array **out); /* waits for their number */
/* pattern.c: on hosts; all but tni_rows_move wait for what they read.
 * out[i]: the elements of in[i], which are of one storage type and shape, at the places of all of them. */
tn_status tni_sparse_align(uint32_t count, tni_array *const *in, tni_array **out);
/* An array with the places of `like` and these values: of the shape that tni_array_values gives,
 * row-major. */
tn_status tni_sparse_with(tni_array *like, tni_array *values, tni_array **out);
/* The elements of a dense array at the places of `like`, as values. */
tn_status tni_sparse_mask(tni_array *dense, tni_array *like, tni_array **values);
/* Queues rows[k] = dense[ids[k]], or with `put` the other way. The ids are those of a row_sparse array. */
tn_status tni_rows_move(tni_array *dense, tni_array *ids, tni_array *rows, bool put);
void tni_array_retain(tni_array *a);
void tni_array_release(tni_array *a); /* NULL is fine; frees after queued operations are done */
void tni_storage_retain(tni_storage *s);
void tni_storage_release(tni_storage *s);
/* At the end of a run: what was issued to run->stream needs the memory in stream order only. A reference of
 * the operation becomes one that keeps the storage and its variable, to be given up by tni_storage_complete
 * in `done`. With the last reference the memory goes back to its pool, if no other stream was given it; else
 * when all these operations are complete. [worker] */
void tni_storage_issued(tni_storage *s, const tni_run *run);
/* The same for an array whose shape is no longer needed either; returns its storage. NULL for NULL. */
tni_storage *tni_array_issued(tni_array *a, const tni_run *run);
void tni_storage_complete(tni_storage *s); /* NULL is fine */
/* Makes memory for a storage that has none; on a worker that holds its variable for writing,
 * on its stream. */
tn_status tni_storage_allocate(tni_storage *s, tn_stream *stream);
/* The same for a reader of a storage that nobody wrote: safe among concurrent readers; zeros on a host. */
tn_status tni_storage_touch(tni_storage *s, tn_stream *stream);

/* [takes] r. Before `s` of a host has memory: from now on whoever allocates or touches it gets the bytes that
 * `r` reads, and the failure of that. Only for arrays that the user has no handle of. */
void tni_storage_refillable(tni_storage *s, tni_refill *r);
/* By an operation that was granted the variable for reading and reads no more of it: gives the memory back if
 * the bytes can be had again and nobody else is reading them. */
void tni_storage_drop(tni_storage *s);

uint64_t tni_array_count(const tni_array *a); /* elements; pending arrays must be waited for first */
uint64_t tni_array_bytes(const tni_array *a); /* of its elements */
static inline tni_var *tni_array_var(const tni_array *a)
{
    return &a->storage->var;
}
static inline void *tni_array_data(const tni_array *a) /* valid once allocated */
{
    char *data = __atomic_load_n((char *const *)&a->storage->data, __ATOMIC_ACQUIRE);

    return data ? data + a->offset * tn_dtype_bytes(a->dtype) : NULL;
}
/* False: memory of others that may only be read; whoever is about to write refuses with TN_E_STATE. */
static inline bool tni_array_writable(const tni_array *a)
{
    return !(a->storage->flags & TNI_STORAGE_READ_ONLY);
}
/* Strides of a dense tensor; its elements are returned. Dimensions that are not known count as 1. */
int64_t tni_row_major(int32_t ndim, const int64_t *shape, int64_t *stride);
bool tni_is_row_major(int32_t ndim, const int64_t *shape,
                      const int64_t *stride); /* the order of elements is */
static inline bool tni_array_has_shape(const tni_array *a, int32_t ndim, const int64_t *shape)
{
    bool same = a->ndim == ndim;

    for (int32_t d = 0; same && d < ndim; d++)
        same = a->shape[d] == shape[d];
    return same;
}
/* Fills `t` for a kernel; shape and stride point into the array. `aux` stays NULL: sparse kernels' callers
 * fill in tensors of a->aux[] that live long enough. */
void tni_array_tensor(const tni_array *a, tn_tensor *t);
static inline void tni_array_tensor_now(const tni_array *a, tn_tensor *t) /* the same, inline */
{
    const tni_storage *s = a->storage;
    const uint64_t skipped = TN_UNLIKELY(a->offset != 0) ? a->offset * tn_dtype_bytes(a->dtype) : 0;
    char *data = __atomic_load_n((char *const *)&s->data, __ATOMIC_ACQUIRE);

    t->data = data ? data + skipped : NULL; /* member by member: compilers clear a struct by a slow loop */
    t->shape = a->shape;
    t->stride = a->stride;
    t->layout = NULL;
    t->aux[0] = t->aux[1] = NULL;
    t->bytes = s->bytes - skipped;
    t->version = tni_var_version(&s->var);
    t->ndim = a->ndim;
    t->dtype = a->dtype;
    t->device = s->device->index;
    t->storage = a->storage_type;
    t->memory = s->memory;
    t->quantization = NULL;
    t->reserved[0] = t->reserved[1] = t->reserved[2] = 0;
}
tn_status tni_array_shape_wait(tni_array *a); /* pending: waits until known */
/* [worker] Gives a pending array its shape; memory comes with the first write. */
tn_status tni_array_settle(tni_array *a, int32_t ndim, const int64_t *shape);
/* [worker] Its shape and memory. */
tn_status tni_array_resolve(tni_array *a, int32_t ndim, const int64_t *shape, tn_stream *stream);

/* ---- view.c: views share the storage and variable ---------------------------------------------------- */

tn_status tni_array_reshape(tni_array *a, int32_t ndim, const int64_t *shape,
                            tni_array **out); /* contiguous only */
/* The same elements in another shape: a view; of what is not row-major one of a copy. */
tn_status tni_array_shaped(tni_array *a, int32_t ndim, const int64_t *shape, tni_array **out);
tn_status tni_array_slice(tni_array *a, int64_t begin, int64_t end, tni_array **out); /* axis 0 */
tn_status tni_array_at(tni_array *a, int64_t index, tni_array **out);                 /* drops axis 0 */
tn_status tni_array_view(tni_array *a, uint64_t offset, int32_t ndim, const int64_t *shape,
                         const int64_t *stride, tni_array **out); /* any, checked */
tn_status tni_array_detach(tni_array *a, tni_array **out);        /* the same data, off the tape */
/* A further array on storage `s`, of any dtype, `offset` in its elements; the caller knows that it fits. */
tn_status tni_array_on(tni_storage *s, int32_t dtype, uint64_t offset, int32_t ndim, const int64_t *shape,
                       const int64_t *stride, tni_array **out);

/* ---- copy.c ------------------------------------------------------------------------------------------ */

/* Queues dst[...] = src[...]: any devices, dtypes (cast) and strides; equal shapes; memory may overlap. Runs
 * on the device that has streams (the destination's, else the source's); between devices that are no peers,
 * and for casts and strides on a device that has no kernel for them, through host memory.
 * Dense arrays only. */
tn_status tni_array_copy(tni_array *src, tni_array *dst);
/* The bytes of a dense row-major host buffer; waits. `bytes` must be exactly those of the array. Writing a
 * whole storage forgets an earlier failure of it. */
tn_status tni_array_read(tni_array *a, void *out, uint64_t bytes);
tn_status tni_array_write(tni_array *a, const void *data, uint64_t bytes);
/* [owner] The first values of an array that no operation has seen: the caller copies them at once, and waits
 * for nothing. To a device the copy from host memory is queued; its failure comes out at the wait. */
tn_status tni_array_first_write(tni_array *a, const void *data, uint64_t bytes);
tn_status tni_array_fill(tni_array *a, double value); /* queued */
/* Strided copy with cast on the host, for kernels' wrappers and the above. */
void tni_copy_strided(const tn_tensor *src, const tn_tensor *dst);
void tni_add_strided(const tn_tensor *src, const tn_tensor *dst); /* dst += src, same dtype */
tn_status tni_array_wait(tni_array *a); /* until its value may be read; poison comes out here */
tn_status tni_array_wait_write(tni_array *a);

/* ---- move.c: copies within one operation ------------------------------------------------------------- */

typedef struct tni_moves tni_moves;
/* dst = src, or dst += src; `src` NULL: zeros. Equal shapes and dtypes; each on a host or on the operation's
 * device. The first one makes room for `most`. */
tn_status tni_moves_add(tni_moves **m, uint32_t most, tni_array *src, tni_array *dst, bool add);
/* [worker] All memory that they need, arrays and host; then the moves, on the host or in stream order. */
tn_status tni_moves_reserve(tni_moves *m, const tni_run *run);
tn_status tni_moves_run(tni_moves *m, const tni_run *run);
/* The operation of `d` that runs them. Once it is pushed, it destroys them. */
tn_status tni_moves_task(tni_moves *m, tni_device *d, const char *name, tni_task *out);
/* [takes] also on failure. Queues them as one operation of `d`. */
tn_status tni_moves_push(tni_moves *m, tni_device *d, const char *name);
void tni_moves_destroy(
    tni_moves *m); /* when the operation is complete; here, in reserve and in run NULL is fine */

/* ---- dlpack.c ---------------------------------------------------------------------------------------- */

struct DLManagedTensorVersioned;
struct DLManagedTensor;
tn_status tni_dlpack_export(tni_array *a, bool writable, struct DLManagedTensorVersioned **out);
tn_status tni_dlpack_export_legacy(tni_array *a, struct DLManagedTensor **out);
tn_status tni_dlpack_import(tni_space *s, struct DLManagedTensorVersioned *m,
                            tni_array **out);                                                 /* [takes] m */
tn_status tni_dlpack_import_legacy(tni_space *s, struct DLManagedTensor *m, tni_array **out); /* [takes] m */

#endif
