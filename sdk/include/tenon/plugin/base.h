/**
 * The types that cross the plugin border: statuses, data types, tensors, values.
 *
 * Frozen within an ABI major: tn_value, tn_tensor, tn_err, tn_blob, tn_tuple, tn_attr_def. They carry no
 * struct_size and never change. Everything else starts with `uint32_t struct_size` (the end of the last
 * member its writer knew) and only ever grows at the end.
 *
 * Only fixed-width C types, pointers and UTF-8 `const char *` cross the border.
 */
#ifndef TENON_PLUGIN_BASE_H
#define TENON_PLUGIN_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statuses ------------------------------------------------------------------------------------- */

/** What a call came to: TN_OK, one of TN_E_…, or (from a kernel's run only) TN_PENDING. */
typedef int32_t tn_status;

#define TN_OK 0             /* done */
#define TN_E_ARG 1          /* an argument is missing or out of range */
#define TN_E_SHAPE 2        /* shapes do not fit */
#define TN_E_DTYPE 3        /* a data type is not allowed here */
#define TN_E_ATTR 4         /* an operator's attribute is unknown, missing or out of range */
#define TN_E_KEY 5          /* no such name, or the name is taken */
#define TN_E_IO 6           /* the system refused a read or a write */
#define TN_E_FORMAT 7       /* a file or message is damaged or of an unknown version */
#define TN_E_NOMEM 8        /* out of memory */
#define TN_E_DEVICE 9       /* a device failed or is absent */
#define TN_E_UNSUPPORTED 10 /* not provided here; from `prepare`: try the next kernel */
#define TN_E_TIMEOUT 11     /* a wait passed its limit */
#define TN_E_PEER 12        /* another process died or misbehaved */
#define TN_E_CANCELLED 13   /* stopped on request, or skipped because an input is poisoned */
#define TN_E_STATE 14       /* not allowed in this state of the object */
#define TN_E_INTERNAL 15    /* a broken invariant: a defect of Tenon or of a plugin */
#define TN_PENDING (-1)     /* from `run` only: `complete` is called later, exactly once */

/* ---- data types: MXNet's type flags --------------------------------------------------------------- */

#define TN_F32 0
#define TN_F64 1
#define TN_F16 2
#define TN_U8 3
#define TN_I32 4
#define TN_I8 5
#define TN_I64 6
#define TN_BOOL 7
#define TN_I16 8
#define TN_U16 9
#define TN_U32 10
#define TN_U64 11
#define TN_BF16 12
#define TN_I4 13 /* two to a byte, the first one in its low half; kernels name them, or never see them */
#define TN_U4 14
#define TN_DTYPE_LIMIT 15     /* valid data types are below this */
#define TN_DTYPE_UNKNOWN (-1) /* inference: not known yet */

/* ---- storage types and memory kinds --------------------------------------------------------------- */

#define TN_STORAGE_DENSE 0
#define TN_STORAGE_ROW_SPARSE 1
#define TN_STORAGE_CSR 2
#define TN_STORAGE_UNKNOWN (-1)

#define TN_MEMORY_DEVICE 0 /* the device's own memory */
#define TN_MEMORY_PINNED 1 /* host memory that the device copies from without staging */
#define TN_MEMORY_SHARED 2 /* host memory shared between processes */
#define TN_MEMORY_HOST 3   /* plain host memory */

#define TN_NDIM_MAX 32       /* dimensions of a tensor */
#define TN_NDIM_UNKNOWN (-1) /* inference: not even the number of dimensions is known */
#define TN_DIM_UNKNOWN (-1)  /* inference: this dimension is not known */

/** What is to be done with an output: nothing, overwrite it, or add to it. */
#define TN_MODE_NONE 0
#define TN_MODE_WRITE 1
#define TN_MODE_ADD 2

/* ---- frozen structs -------------------------------------------------------------------------------- */

/** An error, filled in by the callee in memory of the caller. `message` always ends in NUL. */
typedef struct tn_err {
    int32_t code;      /* a tn_status */
    int32_t native;    /* the vendor library's or system's own code, 0 if none */
    uint32_t number;   /* row of the error list (TN number), 0 if none */
    uint32_t flags;    /* 0 */
    char message[496]; /* one line of UTF-8: the fact and the numbers, then what to do */
} tn_err;

/** Bytes with their release; `release` may be NULL. Freed by the side that filled it in. */
typedef struct tn_blob {
    void *data;
    uint64_t bytes;
    void (*release)(void *data);
} tn_blob;

/**
 * One attribute value. Integers: two's complement. Floats: the bits of a double. Choice: its index.
 * Bool: 0 or 1. Dtype: the flag, or -1 for None. Text, tuples and optional numbers: a pointer (uintptr_t),
 * None = 0.
 */
typedef uint64_t tn_value;

/** An integer tuple, as attribute values point to it. */
typedef struct tn_tuple {
    int64_t count;
    int64_t item[1]; /* `count` of them */
} tn_tuple;

/** Points to where the layout's owner describes a private memory order; NULL means dense or strided. */
typedef struct tn_layout tn_layout;

/**
 * What the integers of a tensor stand for: scale * (integer - zero point). Reserved: hosts make none before
 * they have operators that read it, and `tn_tensor.quantization` is NULL.
 */
typedef struct tn_quantization {
    uint32_t struct_size;
    int32_t axis;              /* that the scales belong to; -1: there is one scale */
    int64_t count;             /* of scales: 1, or the length of the axis */
    const double *scale;       /* `count` of them */
    const int64_t *zero_point; /* `count` of them; NULL: all are 0 */
} tn_quantization;

/** A tensor as kernels see it. Strides count elements and are never negative. */
typedef struct tn_tensor {
    void *data;
    const int64_t *shape, *stride;  /* `ndim` entries each */
    const tn_layout *layout;        /* NULL: dense or strided */
    const struct tn_tensor *aux[2]; /* row_sparse: {row ids}; csr: {indptr, indices} */
    uint64_t bytes;                 /* that may be touched, counted from `data` */
    uint64_t version;               /* of the storage; moves with every write */
    int32_t ndim, dtype;
    int32_t device;                      /* index within its type */
    uint16_t storage, memory;            /* TN_STORAGE_…, TN_MEMORY_… */
    const tn_quantization *quantization; /* NULL: the numbers stand for themselves */
    uint64_t reserved[3];
} tn_tensor;

/** One attribute of an operator. `choices` of a choice: names divided by '|', in the order of their index. */
typedef struct tn_attr_def {
    const char *name;
    uint32_t type;            /* TN_ATTR_T_… */
    uint32_t flags;           /* TN_ATTR_F_… */
    const char *choices;      /* choice only */
    const char *default_text; /* NULL: required */
    const char *doc;
    double min, max; /* of numbers and of each tuple item; min > max: no bound */
    uint32_t since;  /* version of the operator that brought it */
    uint32_t reserved;
} tn_attr_def;

#define TN_ATTR_T_INT 1        /* int64 */
#define TN_ATTR_T_FLOAT 2      /* double */
#define TN_ATTR_T_BOOL 3       /* 0 or 1; reads True, False, true, false, 1, 0 */
#define TN_ATTR_T_CHOICE 4     /* index in `choices`; a choice may be called None */
#define TN_ATTR_T_TEXT 5       /* const char *, NULL if None */
#define TN_ATTR_T_TUPLE 6      /* const tn_tuple *; reads (1, 2), [1,2], 3; None -> NULL */
#define TN_ATTR_T_DTYPE 7      /* TN_F32 …; -1 for None; reads float32 and f32 */
#define TN_ATTR_T_OPT_INT 8    /* const int64_t *, NULL if None */
#define TN_ATTR_T_OPT_FLOAT 9  /* const double *, NULL if None */
#define TN_ATTR_T_OPT_BOOL 10  /* const int64_t *, NULL if None */
#define TN_ATTR_T_FLOATS 11    /* const tn_floats *; a tuple of doubles; None -> NULL */
#define TN_ATTR_T_OPT_TUPLE 12 /* tuple whose items may be None: None becomes TN_NONE_ITEM */

#define TN_ATTR_F_RUNTIME                                                                                    \
    1u                     /* a run-time attribute: not part of a signature, read by kernels at every call */
#define TN_ATTR_F_COUNT 2u /* the number of inputs of a variadic operator; set by the caller if absent */
#define TN_ATTR_F_SHAPE                                                                                      \
    4u /* with TN_ATTR_F_RUNTIME: it decides shapes. They are inferred at every call, and the resulting      \
          shapes, not the value, are part of the signature */
#define TN_ATTR_F_PAIRS 8u /* a tuple is read and written as pairs, ((1, 2), (3, 4)), of items in a row */
#define TN_ATTR_F_KNOWN                                                                                      \
    (TN_ATTR_F_RUNTIME | TN_ATTR_F_COUNT | TN_ATTR_F_SHAPE | TN_ATTR_F_PAIRS) /* others are refused */

/** An item of a TN_ATTR_T_OPT_TUPLE that is None. */
#define TN_NONE_ITEM INT64_MIN

/** A tuple of doubles, as attribute values point to it. */
typedef struct tn_floats {
    int64_t count;
    double item[1]; /* `count` of them */
} tn_floats;

/* ---- growable tables ------------------------------------------------------------------------------- */

/** Offset just behind member `m` of type `T`. */
#define TN_END(T, m) (offsetof(T, m) + sizeof(((T *)0)->m))

/** True if the writer of `*p` knew member `m` and set it (pointers only: not NULL). */
#define TN_HAS(p, T, m) ((p)->struct_size >= TN_END(T, m) && (p)->m)

/** The same for a table that starts with a head: a capability, a service. */
#define TN_OFFERS(p, T, m) ((p)->head.struct_size >= TN_END(T, m) && (p)->m)

/** The head of every capability table: its size, its kind, its name within the kind. */
typedef struct tn_capability {
    uint32_t struct_size;
    uint32_t kind;  /* TN_KIND_… */
    const char *id; /* device: "cuda"; pool: "round"; kernels: the device type they run on */
} tn_capability;

#define TN_KIND_OPS 1     /* tn_op_table: definitions of operators */
#define TN_KIND_KERNELS 2 /* tn_kernel_table: kernels for one device type */
#define TN_KIND_DEVICE 3  /* tn_device_ops */
#define TN_KIND_POOL 4    /* tn_pool_ops */
#define TN_KIND_TRANSPORT 5 /* tn_transport_ops, transport.h */
/* Kinds 6 to 9 are sketches: no host uses them yet, and each refuses a plugin that brings one (L13). */
#define TN_KIND_COLLECTIVE 6 /* tn_collective_ops, collective.h */
#define TN_KIND_ITER 7       /* tn_iter_ops, iter.h */
#define TN_KIND_FORMAT 8     /* tn_format_ops, format.h */
#define TN_KIND_PASS 9       /* tn_pass_ops, pass.h */
#define TN_KIND_OPTIONS 10   /* tn_option_table: rows as in options.list */
#define TN_KIND_ARCHIVE 11   /* tn_archive_ops, archive.h */

/* ---- inline helpers ---------------------------------------------------------------------------------- */

/** Doubles travel in a tn_value as their bits. */
static inline double tn_value_float(tn_value v)
{
    double d;
    unsigned char *to = (unsigned char *)&d;
    const unsigned char *from = (const unsigned char *)&v;

    for (size_t i = 0; i < sizeof d; i++)
        to[i] = from[i];
    return d;
}

static inline tn_value tn_value_of_float(double d)
{
    tn_value v;
    unsigned char *to = (unsigned char *)&v;
    const unsigned char *from = (const unsigned char *)&d;

    for (size_t i = 0; i < sizeof v; i++)
        to[i] = from[i];
    return v;
}

static inline int64_t tn_value_int(tn_value v)
{
    return (int64_t)v;
}

static inline const void *tn_value_pointer(tn_value v)
{
    return (const void *)(uintptr_t)v;
}

/** Bits of one element; 0 for an unknown data type. */
static inline uint64_t tn_dtype_bits(int32_t dtype)
{
    static const uint8_t bits[TN_DTYPE_LIMIT] = {32, 64, 16, 8, 32, 8, 64, 8, 16, 16, 32, 64, 16, 4, 4};

    return dtype >= 0 && dtype < TN_DTYPE_LIMIT ? bits[dtype] : 0;
}

/** Bytes of one element, rounded up; 0 for an unknown data type. */
static inline uint64_t tn_dtype_bytes(int32_t dtype)
{
    return (tn_dtype_bits(dtype) + 7) / 8;
}

/** Bytes of `count` elements one after the other; what a byte has left over at the end is not looked at. */
static inline uint64_t tn_dtype_size(int32_t dtype, uint64_t count)
{
    return tn_dtype_bits(dtype) >= 8 ? count * tn_dtype_bytes(dtype)
                                     : count / 2 * tn_dtype_bits(dtype) / 4 + (count & 1u);
}

/** Element `index` of a tensor of TN_I4 or TN_U4 whose data begins at `data`. */
static inline int32_t tn_packed_get(const void *data, int32_t dtype, int64_t index)
{
    const int32_t v = ((const unsigned char *)data)[index / 2] >> (index & 1 ? 4 : 0) & 15;

    return dtype == TN_I4 && v > 7 ? v - 16 : v;
}

/** Sets it to the low four bits of `value`; the other half of its byte stays. */
static inline void tn_packed_set(void *data, int64_t index, int32_t value)
{
    unsigned char *at = (unsigned char *)data + index / 2;
    const int32_t shift = index & 1 ? 4 : 0;

    *at = (unsigned char)((*at & (240 >> shift)) | (value & 15) << shift);
}

/** Number of elements; a shape that reached a kernel never overflows. */
static inline int64_t tn_tensor_count(const tn_tensor *t)
{
    int64_t n = 1;

    for (int32_t i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

#ifdef __cplusplus
}
#endif

#endif
