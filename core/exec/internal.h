/* What the files of room exec share; nobody else includes this. */
#ifndef TN_EXEC_INTERNAL_H
#define TN_EXEC_INTERNAL_H

#include "exec/exec.h"
#include "exec/node.h"

typedef struct tni_draws { /* random numbers of one device */
    atomic_uint_fast64_t key, next;
} tni_draws;

#define TNI_SIG_BUCKETS 1024
#define TNI_COPIES_TOLD 64        /* operators; of further ones nothing is told */
#define TNI_CACHED_ENTRIES_MAX 64 /* signatures of one net: buckets of lengths; the least recent goes */

struct tni_exec {
    tni_context *ctx;
    tni_device *default_device;
    tni_moving *moving; /* kernels for room tensor */
    tni_draws *draws;   /* by device ordinal, TN_DEVICES_MAX */
    tni_mutex lock;     /* guards the table of signatures */
    tni_signature *buckets[TNI_SIG_BUCKETS];
    tni_signature *lru_first, *lru_last; /* most recent first */
    uint64_t signature_count, signature_max;
    uint64_t inline_ns;
    uint32_t threads;
    uint16_t node_flags; /* of run.deterministic */
    atomic_uint_fast64_t hits, misses, programs, frames, tape_order, cuts, unsettled;
    atomic_uint_fast64_t kept_bytes; /* of frames that pools keep */
    atomic_uint_fast64_t graphs, graph_launches, graph_updates;
    void *backward;                                     /* room autograd's cache of programs */
    _Atomic(const tni_opdef *) copied[TNI_COPIES_TOLD]; /* stored.c has told of; NULL: free */
};

/* ---- signature.c: what a call looks like, and how it is run ------------------------------------------- */

#define TNI_SIG_OPERANDS 8 /* inputs or outputs that the fast path serves */

typedef struct tni_operand_key {
    int32_t dtype, ndim;
    uint32_t contiguous, storage;  /* TN_STORAGE_… */
    const int64_t *shape, *stride; /* stride only looked at if not contiguous */
    tni_device *device;            /* the signature's, but of a copy between devices */
} tni_operand_key;

struct tni_signature {
    tni_refcount refs;
    uint64_t id; /* never used twice in a process */
    uint64_t hash;
    const tni_opdef *def;
    tni_attrs *attrs; /* structural values count */
    tni_device *device;
    uint32_t flags, threads;      /* TN_NODE_… */
    uint64_t generation;          /* of options and plugins */
    uint32_t in_count, out_count; /* out: the definition's */
    uint32_t mutated_count;
    uint32_t *mutated;     /* mutated_count inputs that are outputs too */
    tni_operand_key *in;   /* in_count */
    uint8_t *modes;        /* out_count + mutated_count */
    tni_array_form *forms; /* out_count, of quick ones */
    tn_shape *out_shape;   /* out_count */
    int32_t *out_dtype;
    uint8_t *out_storage; /* TN_STORAGE_… */
    tni_args args;
    tni_program *program;             /* of one instruction; NULL: a view, which copies nothing */
    tni_frame_pool *pool;             /* its frames, for calls that are queued */
    tni_prepared *prepared;           /* what the program runs; borrowed from it, own without one */
    tni_prepared *forward;            /* of a backward: what it was told of its forward; retained, NULL */
    uint64_t need_in[1], need_out[1]; /* what the gradient reads (bits; inputs beyond 63: all) */
    bool fast_path;                   /* small host kernel: runs on the caller if variables are free */
    bool quick;                       /* fast_path, and nothing but new dense outputs to be made */
    bool view;                        /* output 0 is a view of input 0 */
    bool keeps;                       /* an output that is given is multiplied by what comes out */
    bool pending;                     /* an output's shape is known only after the run */
    bool sparse;                      /* some operand is: no program, sparse.c runs it */
    struct tni_signature *bucket_next, *lru_prev, *lru_next;
};
/* One call's key, before there is a signature for it. */
typedef struct tni_call_key {
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_device *device;
    uint32_t flags;
    uint64_t generation;
    tni_prepared *forward;        /* NULL: not known, or no backward */
    uint32_t in_count, out_count; /* out: those of out_shape */
    tni_array *const *in;
    tn_shape *const *out_shape; /* where run-time attributes decide shapes: of the outputs; else NULL */
} tni_call_key;

#define TNI_CALL_SHAPES 4 /* inputs and outputs whose shapes are inferred at every call, without memory */
typedef struct tni_call_room {
    tni_keep *keep;
    void *many; /* NULL: there are few */
    tn_shape *at[TNI_CALL_SHAPES], few[TNI_CALL_SHAPES];
} tni_call_room;
/* Asks the run-time attributes of the call: checks the lengths of tuples; fills in out_shape where they
 * decide shapes, which `room` holds. */
tn_status tni_call_shapes(tni_context *c, tni_call_key *k, tni_call_room *room);
static inline void tni_call_room_end(tni_call_room *room) /* after tni_call_shapes, whatever it gave */
{
    tni_keep_give(room->keep, room->many);
}

/* The core copies between devices itself: no kernel, and the device is the output's. */
static inline bool tni_copies(const tni_opdef *def)
{
    return def->op->exec == TN_EXEC_COPY;
}

/* Whether the operand is such as the key says. */
static inline bool tni_operand_matches(const tni_operand_key *k, const tni_array *a)
{
    if (k->dtype != a->dtype || k->ndim != a->ndim || k->contiguous != (a->flags & TNI_ARRAY_CONTIGUOUS) ||
        k->storage != a->storage_type || k->device != a->storage->device)
        return false;
    for (int32_t d = 0; d < k->ndim; d++)
        if (k->shape[d] != a->shape[d])
            return false;
    for (int32_t d = 0; !k->contiguous && d < k->ndim; d++)
        if (k->stride[d] != a->stride[d])
            return false;
    return true;
}

void tni_signature_retain(tni_signature *s);
void tni_signature_release(tni_signature *s); /* NULL is fine */
uint64_t tni_exec_generation(const tni_context *c);
uint64_t tni_call_hash(const tni_call_key *k); /* equal for keys that one signature matches */
bool tni_signature_matches(const tni_signature *s, const tni_call_key *k);
/* From the table, or made; the caller owns one reference. Infers shapes if the key has none. */
tn_status tni_signature_find(tni_context *c, const tni_call_key *k, tni_signature **out);
void tni_signature_clear(tni_exec *x);

/* sparse.c: what the calls of a signature with sparse operands, whose kernel is chosen, cannot be. */
tn_status tni_sparse_serves(const tni_signature *s);

/* Bits of arrays that a gradient function reads, found by a dry run. `sized`: all shapes are known, so that
 * nobody needs an array for its shape. */
tn_status tni_gradient_needs(tni_opset *ops, bool sized, const tni_opdef *def, const tni_attrs *attrs,
                             uint32_t in_count, uint32_t out_count, uint64_t *need_in, uint64_t *need_out);

/* ---- cached.c ----------------------------------------------------------------------------------------- */

typedef struct tni_split tni_split;
typedef struct tni_inlined tni_inlined;
struct tni_specialization { /* one signature of inputs */
    tni_refcount refs;
    tni_compiled *compiled; /* one of these three: a program; two nets; operator by operator */
    tni_split *split;
    tni_inlined *inlined;
    tni_graph *graph; /* inferred; borrowed from what is compiled, or owned */
    tni_device *device;
    uint32_t flags;
    bool recorded, twins; /* twins: some inputs are one and the same array */
    bool rows;            /* some gradient is row_sparse */
    bool several;         /* on several devices */
    uint32_t *twin;       /* per input: the first one that is the same array, if a gradient of it is wanted */
    uint8_t *modes;       /* per input: what is done to its gradient */
    uint64_t generation;
    struct tni_specialization *next;
};

/* One call of a cached operator, as its entries are found by. */
typedef struct tni_cached_key {
    tni_array *const *in;
    const uint8_t *modes; /* per input: what is done to its gradient; NULL: its array says it */
    uint32_t in_count, flags;
    tni_device *device;
    uint64_t generation;
    bool recorded, twins; /* twins: some tracked array is there twice */
    bool rows;            /* some gradient is row_sparse */
    bool several;         /* arrays on several devices, or nodes that have their own */
} tni_cached_key;
/* What a backward does to the gradient of input `i`: its own mode if it is a leaf. */
uint8_t tni_cached_mode(const tni_cached_key *k, uint32_t i);
/* The entry for this call, retained. */
tn_status tni_specialization_find(tni_cached_op *op, const tni_cached_key *k, tni_specialization **out);
void tni_specialization_release(tni_specialization *e); /* NULL is fine */

/* ---- parts.c: nets with functions of the program ----------------------------------------------------- */

/* *out stays as it is: no function is in `g`, which outlives the parts. */
tn_status tni_parts_create(tni_context *c, const tni_graph *g, tni_parts **out);
void tni_parts_destroy(tni_parts *p); /* NULL is fine */
void tni_parts_flags(const tni_parts *p, const tni_cached_flags *flags);
tn_status tni_parts_constant(const tni_parts *p, uint32_t index); /* as tni_cached_op_constant */
tn_status tni_parts_call(const tni_parts *p, tni_device *d, tni_array *const *in, tni_array **out);

/* ---- inline.c: nets that are called operator by operator ---------------------------------------------- */

/* `g` is inferred and stays alive with it. */
tn_status tni_inlined_create(tni_context *c, const tni_graph *g, tni_device *device, const tni_watch *watch,
                             tni_inlined **out);
void tni_inlined_destroy(tni_inlined *b); /* NULL is fine */
/* Inputs by variable. out[i] NULL: made. */
tn_status tni_inlined_call(tni_context *c, const tni_inlined *b, tni_array *const *in, tni_array **out);

/* ---- split.c: nets in which a kernel decides on the size of its outputs ------------------------------- */

/* NULL: nothing in `g` (inferred) depends on such a size. */
tn_status tni_split_create(tni_context *c, const tni_graph *g, tni_split **out);
void tni_split_destroy(tni_split *s); /* NULL is fine */
/* Queues the part up to there and the rest behind it. out[i] NULL: made; its shape may come later. */
tn_status tni_split_call(tni_split *s, const tni_cached_key *k, tni_array **out);

#endif
