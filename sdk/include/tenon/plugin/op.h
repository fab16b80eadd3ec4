/**
 * Operators and kernels: what an operator means, and what computes it.
 *
 * A *definition* (tn_op) holds names, attributes, inference and the gradient; it is pure and knows no device.
 * A *kernel* (tn_kernel) computes one definition on one device type. `prepare` plans a kernel once for a
 * signature (operator, structural attributes, shapes, dtypes, strides, modes); `run` then runs it any number
 * of times, from any number of threads at once.
 */
#ifndef TENON_PLUGIN_OP_H
#define TENON_PLUGIN_OP_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_op tn_op;
typedef struct tn_plan tn_plan;
typedef struct tn_exec tn_exec;
typedef struct tn_infer tn_infer;
typedef struct tn_grad tn_grad;
typedef struct tn_call tn_call; /* the host's: one running call */

/* ---- inference --------------------------------------------------------------------------------------- */

/** A shape that may be partly unknown: ndim TN_NDIM_UNKNOWN, or dimensions TN_DIM_UNKNOWN. */
typedef struct tn_shape {
    int32_t ndim;
    uint32_t reserved;
    int64_t dim[TN_NDIM_MAX];
} tn_shape;

#define TN_INFER_NP_SHAPE 1u
#define TN_INFER_TRAIN 2u

typedef struct tn_bodies tn_bodies;

/**
 * The bodies of a node: graphs that it runs within itself (TN_EXEC_SUBGRAPH), such as that of a loop. Valid
 * until the function that was handed them returns; `err` is never NULL.
 */
struct tn_bodies {
    uint32_t struct_size, count;
    void *self;
    /** Of body `body`: its variables in order of first use, and its outputs. TN_E_ARG: there is none. */
    tn_status (*counts)(const tn_bodies *b, uint32_t body, uint32_t *in_count, uint32_t *out_count,
                        tn_err *err);
    /** Fills in what follows within a body: `in` and `out` or the data types, the others being NULL. What is
     * not known goes in as unknown and may come back so. `flags`: TN_INFER_…. */
    tn_status (*infer)(const tn_bodies *b, uint32_t body, uint32_t flags, tn_shape *const *in,
                       tn_shape *const *out, int32_t *in_dtype, int32_t *out_dtype, tn_err *err);
};

/**
 * The state of one inference. Called again and again, in both directions, until nothing changes: read what is
 * known, fill in what follows, fail where two facts contradict. Must be pure.
 *
 * `args` sets in_count, out_count and visible_count (and may set the names); the other functions only read
 * them. Where a run-time attribute is a tuple it is asked at each call, and checks the length. The inputs
 * declared in `mutates` are no outputs here.
 */
struct tn_infer {
    uint32_t struct_size;
    uint32_t flags; /* TN_INFER_… */
    const tn_op *op;
    const tn_value *attrs; /* in definition order */
    uint32_t attr_count;
    uint32_t in_count, out_count, visible_count;
    const char *const *in_names, *const *out_names; /* NULL-ended or NULL: those of the definition */
    tn_shape *const *in_shape, *const *out_shape;
    int32_t *in_dtype, *out_dtype;
    int32_t *in_storage, *out_storage;
    tn_err *err;             /* never NULL */
    const tn_bodies *bodies; /* in `shape` and `dtype` of a node that has some; else NULL */
};

/* ---- cost -------------------------------------------------------------------------------------------- */

/** The least that one run must do; TN_COST_UNKNOWN: it cannot be told from shapes. */
typedef struct tn_cost {
    uint32_t struct_size, reserved;
    uint64_t macs;  /* multiply-adds of products and sums of products; 0: it has none */
    uint64_t flops; /* operations, two of each multiply-add among them */
    uint64_t bytes; /* read and written, each once; preset: those of all inputs and outputs */
} tn_cost;
#define TN_COST_UNKNOWN UINT64_MAX

/** a · b; TN_COST_UNKNOWN where one of them is unknown, or the product is too large. */
static inline uint64_t tn_cost_times(uint64_t a, uint64_t b)
{
    if (!a || !b)
        return 0;
    return a == TN_COST_UNKNOWN || b > (TN_COST_UNKNOWN - 1) / a ? TN_COST_UNKNOWN : a * b;
}

/* ---- views --------------------------------------------------------------------------------------------- */

/** Where the elements of an output lie within input 0; all counts in elements. */
typedef struct tn_view {
    uint32_t struct_size, output; /* which output is asked for */
    const int64_t *in_stride;     /* of input 0, per dimension */
    int64_t offset;               /* result: of the first element, from that of input 0 */
    int64_t stride[TN_NDIM_MAX];  /* result: per dimension of the output; 1 or more */
} tn_view;

/* ---- gradients ----------------------------------------------------------------------------------------- */

/** One output of one node of a graph under construction; node NULL: no gradient arrives here. */
typedef struct tn_edge {
    void *node;
    uint32_t index, reserved;
} tn_edge;

/** An attribute as text, for nodes that a gradient makes. */
typedef struct tn_attr_text {
    const char *name, *text;
} tn_attr_text;

#define TN_EMIT_INHERIT 1u /* attributes of the same name are taken over from the forward node */
#define TN_EMIT_BACKWARD                                                                                     \
    2u /* the new node is this operator's backward: its kernel may read what the forward saved */
#define TN_EMIT_KNOWN (TN_EMIT_INHERIT | TN_EMIT_BACKWARD)

typedef struct tn_emit {
    uint32_t struct_size, flags;
    const char *op;
    const tn_edge *in;
    const tn_attr_text *attrs; /* may be NULL; win over inherited ones */
    uint32_t in_count, attr_count;
} tn_emit;

typedef struct tn_grad_ops {
    uint32_t struct_size, reserved;
    tn_edge (*input)(tn_grad *g, uint32_t index); /* of the forward node */
    tn_edge (*output)(tn_grad *g, uint32_t index);
    tn_edge (*head)(tn_grad *g, uint32_t index);  /* gradient of output `index`; node NULL: none arrives */
    int32_t (*needs)(tn_grad *g, uint32_t index); /* 1: somebody wants the gradient of input `index` */
    /** Makes a node; `*out` is its output 0, further outputs have the same node and index 1, 2 …
     * An input edge whose node is NULL stands for zeros in the shape of what it belongs to: allowed for heads
     * only. */
    tn_status (*emit)(tn_grad *g, const tn_emit *e, tn_edge *out);
    tn_status (*set)(tn_grad *g, uint32_t input, tn_edge edge); /* the gradient of input `input` */
} tn_grad_ops;

#define TN_GRAD_TRAIN 1u /* the node ran in training */

/**
 * Builds the gradient of one node out of further nodes. The function must not read run-time attributes:
 * programs are kept while those change. Emitted nodes inherit them (TN_EMIT_INHERIT), and have those of the
 * forward's own call. Their shapes follow from the shapes of that call: an attribute with TN_ATTR_F_SHAPE
 * that is inherited must not give other ones.
 */
struct tn_grad {
    uint32_t struct_size, flags; /* TN_GRAD_… */
    const tn_op *op;
    const tn_value *attrs;
    uint32_t attr_count, in_count, out_count, reserved;
    tn_err *err;
    const tn_grad_ops *ops;
    void *self;
};

/* ---- operators that run graphs ------------------------------------------------------------------------ */

typedef struct tn_body_call tn_body_call;   /* the host's: one call of such an operator */
typedef struct tn_body_array tn_body_array; /* the host's: an array of that call, valid as long as it */

struct tn_body_ops;
/** Goes on with a call behind what ran: see tn_body_ops.then. `err` is never NULL. [worker] */
typedef tn_status (*tn_body_next)(tn_body_call *c, const struct tn_body_ops *ops, void *state, tn_err *err);

/** What tn_op.run_bodies may ask of the host, on the thread that it was called on. Errors are in `err`. */
typedef struct tn_body_ops {
    uint32_t struct_size, reserved;
    const tn_value *(*attrs)(tn_body_call *c);
    tn_body_array *(*input)(tn_body_call *c, uint32_t index); /* of the node; NULL: there is none */
    tn_body_array *(*output)(tn_body_call *c, uint32_t index);
    void (*tensor)(const tn_body_array *a, tn_tensor *out); /* its shape and type; no data */
    /** A new array of the same shape and type, for what lies between two runs. */
    tn_status (*like)(tn_body_call *c, const tn_body_array *a, tn_body_array **out, tn_err *err);
    /** Element `index` of axis 0, without that axis, in the same memory. TN_E_ARG: there is none. */
    tn_status (*step)(tn_body_call *c, tn_body_array *a, int64_t index, tn_body_array **out, tn_err *err);
    /**
     * Runs a body once. `in`, `out`: arrays of all its variables and outputs, none in both. `modes`: per
     * variable TN_MODE_NONE, or TN_MODE_WRITE: its gradient may be asked for; NULL: none is. `*run`: the
     * number of this run among those with `modes`, for `backward`; may be NULL.
     */
    tn_status (*forward)(tn_body_call *c, uint32_t body, tn_body_array *const *in, tn_body_array *const *out,
                         const uint8_t *modes, uint32_t *run, tn_err *err);
    /** The backward of run `run`. `heads`: per output the gradient that arrives; NULL: none does. `modes`:
     * per variable TN_MODE_…; `grads`: what is written, or added to. */
    tn_status (*backward)(tn_body_call *c, uint32_t run, tn_body_array *const *heads, const uint8_t *modes,
                          tn_body_array *const *grads, tn_err *err);
    /** A new array such as a body gives as output `index` for the inputs `in`. */
    tn_status (*given)(tn_body_call *c, uint32_t body, tn_body_array *const *in, uint32_t index,
                       tn_body_array **out, tn_err *err);
    /** The elements of `src` (NULL: zeros) become those of `dst`, of the same shape and type: before all runs
     * that the same function asks for. */
    tn_status (*copy)(tn_body_call *c, tn_body_array *src, tn_body_array *dst, tn_err *err);
    void *(*memory)(tn_body_call *c, uint64_t bytes); /* zeros, as long as the call lasts; NULL: no memory */
    /** `next` is called once all that was asked for has run, and may ask for more. Once in each function. */
    tn_status (*then)(tn_body_call *c, tn_body_next next, void *state, tn_err *err);
    /** In `next`: is the one element of `a`, which a run wrote, other than 0? TN_E_SHAPE: it has not one. */
    tn_status (*truth)(tn_body_call *c, const tn_body_array *a, int32_t *out, tn_err *err);
} tn_body_ops;

/* ---- definitions ------------------------------------------------------------------------------------- */

/* What bodies call beside operators of one input: two operands, where the second or first may be a number. */
#define TN_BODY_FUNCTIONS "maximum, minimum, power, hypot, mod, where(condition, x, y)"

#define TN_EXEC_KERNEL 0
#define TN_EXEC_SUBGRAPH 1   /* run_bodies */
#define TN_EXEC_HOST 2       /* kernels that may call the host: they run on its threads for callbacks */
#define TN_EXEC_COPY 3       /* the library's own copies between devices; refused in other definitions */
#define TN_EXEC_COLLECTIVE 4 /* reserved: refused until a host runs it */

#define TN_EFFECT_RANDOM 1u     /* takes a draw of the device's counter */
#define TN_EFFECT_HOST 2u       /* reserved, refused */
#define TN_EFFECT_COLLECTIVE 4u /* reserved, refused */
#define TN_EFFECT_KNOWN TN_EFFECT_RANDOM

#define TN_OP_POINTWISE 1u /* output element i depends on input elements i only (equal shapes) */
#define TN_OP_BACKWARD 2u  /* a part of gradients: calls, symbols and files cannot name it */
#define TN_OP_VIEW                                                                                           \
    4u /* output 0 is a view of input 0 with another shape (Reshape, Flatten, expand_dims): as many          \
          elements, the same data type */
#define TN_OP_IGNORE_HEAD 8u       /* a loss layer: its gradient needs no head gradient (SoftmaxOutput) */
#define TN_OP_CHECKS_VALUES 128u   /* it may refuse a run for the values that it reads (take, mode raise) */
#define TN_OP_MUTATES_TRAINING 64u /* `mutates` holds in training only (BatchNorm's statistics) */
#define TN_OP_ZERO_GRADIENT                                                                                  \
    16u /* the gradient of every input is zero; `gradient` is NULL (argmax, floor, comparisons) */
#define TN_OP_INTERNAL 32u   /* made by Tenon's passes and copies: calls, symbols and files cannot name it */
#define TN_OP_BY_VALUES 256u /* of TN_EXEC_SUBGRAPH: values decide which graphs run (a loop, a branch) */
#define TN_OP_KNOWN                                                                                          \
    (TN_OP_POINTWISE | TN_OP_BACKWARD | TN_OP_VIEW | TN_OP_IGNORE_HEAD | TN_OP_CHECKS_VALUES |               \
     TN_OP_MUTATES_TRAINING | TN_OP_ZERO_GRADIENT | TN_OP_INTERNAL | TN_OP_BY_VALUES)

/**
 * One operator. `inputs` and `outputs` are NULL-ended; a last input such as "arg*" is variadic ("arg0",
 * "arg1" …, counted by the attribute flagged TN_ATTR_F_COUNT). Several such inputs repeat together
 * ("weight_*", "grad_*": weight_0, grad_0, weight_1 …); `args` counts them, and plain names may follow. Bit i
 * of `mutates`: input i is changed (statistics, states).
 */
struct tn_op {
    uint32_t struct_size;
    uint16_t version, exec; /* TN_EXEC_… */
    const char *name, *doc;
    const char *const *aliases; /* NULL-ended or NULL */
    const tn_attr_def *attrs;   /* ended by a row without name; NULL: none */
    const char *const *inputs, *const *outputs;
    uint64_t mutates;
    uint32_t effects, flags;
    uint32_t visible, reserved;        /* outputs that users see; 0: all */
    tn_status (*args)(tn_infer *i);    /* NULL: counts follow from the tables above */
    tn_status (*shape)(tn_infer *i);   /* NULL: not allowed, except for exec kinds other than KERNEL */
    tn_status (*dtype)(tn_infer *i);   /* NULL: all inputs and outputs have one dtype */
    tn_status (*storage)(tn_infer *i); /* NULL: all dense */
    tn_status (*gradient)(tn_grad *g); /* NULL: none (an error in backward) or TN_OP_ZERO_GRADIENT */
    /* Arguments, shapes and gradient as text: docs/plugins.md has the grammar. The operator _backward_NAME
     * follows from `gradients`. What cannot be read is refused with the place in the text (TN_E_ARG). */
    const char *shapes, *gradients;
    tn_status (*second)(tn_grad *g);
    /* The meaning: the operator whose kernels serve this one ("exp" of "_npi_exp"); NULL: its own. What is
     * NULL or 0 in this row is then the meaning's, functions too; attributes, where given, have its types
     * and order, and its names unless the row has a gradient function of its own. The meaning is known
     * before, and its kernels may be asked for other data types than it has itself: this row's dtype
     * function decides. */
    const char *computes;
    /* What a run costs at least: for estimates, tables of layers and figures of benchmarks, never for what is
     * computed. All shapes and data types of `i` are known, and `cost` is preset. NULL: one operation for
     * each element of the output where the operator is pointwise, else only the bytes are known. */
    void (*cost)(const tn_infer *i, tn_cost *cost);
    /* Of exec TN_EXEC_SUBGRAPH, which has no kernels: says which bodies run on which arrays, in an order that
     * follows from shapes and attributes, or behind `then` from values. Nothing runs before it has returned,
     * and nobody waits for what then runs. The backward of such an operator is one, too, with the same
     * bodies. On hosts, within nets.
     * [worker] */
    tn_status (*run_bodies)(tn_body_call *call, const tn_body_ops *ops, tn_err *err);
    /* The rule of data types as text, in the place of `dtype`: "T:float; gamma,beta:stat(T)". */
    const char *types;
    /* Of a pointwise operator: what it computes for one element, as text over its inputs and attributes:
     * "x / (1 + exp(-beta * x))". Programs fuse it with what stands around it; it needs no kernel.
     *
     *     expression = sum [ ("<" | ">" | "<=" | ">=" | "==" | "!=") sum ]        1 or 0
     *     sum        = product { ("+" | "-") product }
     *     product    = factor { ("*" | "/") factor }
     *     factor     = "-" factor | number | input | attribute | "(" expression ")"
     *                | name "(" expression { "," expression } ")"
     *
     * An attribute is a number, a name is a pointwise operator of one input or of TN_BODY_FUNCTIONS. Inputs
     * and the output have one data type and shape; each operation rounds to that type. A kernel of the
     * operator's own, where there is one, is preferred, and then it is not fused. */
    const char *body;
    /* Not 0: `mutates` speaks of the first `mutates_period` inputs (64 at most) and repeats for all that
     * follow, but for the last `mutates_tail` ones: of operators that update any number of parameters at
     * once. */
    uint32_t mutates_period, mutates_tail;
    /* Of an operator whose outputs show elements of input 0, in its data type (slice, transpose, split):
     * where they lie. All shapes of `i` are known, and `attrs` hold the values of this node. A program leaves
     * the kernel out where everybody who reads the outputs can read them there; calls of the operator alone
     * are copies. TN_E_UNSUPPORTED: this case is for the kernel. A view beyond its input, or with a stride
     * below 1 along a dimension of several elements, fails the program (TN_E_ARG). Must be pure. */
    tn_status (*view)(const tn_infer *i, tn_view *view);
    /* Bit i: of what stands at `inputs[i]`, all repetitions of it, kernels read shape and data type alone.
     * Its bytes may be gone by then: `data` points to nothing. `~` in a gradient rule with an arrow says so
     * of the backward operator's inputs. */
    uint64_t shapes_only;
};

/** 1: an operator with `in_count` inputs changes input `index`. */
static inline int32_t tn_op_mutates(const tn_op *op, uint32_t in_count, uint32_t index)
{
    const int repeats = op->mutates && op->struct_size >= TN_END(tn_op, mutates_tail) && op->mutates_period;

    if (repeats && (in_count < op->mutates_tail || index >= in_count - op->mutates_tail))
        return 0;
    index = repeats ? index % op->mutates_period : index;
    return index < 64 && op->mutates >> index & 1u;
}

/**
 * The place in a NULL-ended table of arguments of argument `index` of `count`; -1: it has no name there.
 * `*number`: which of the repetitions of a name that ends in '*', else UINT32_MAX.
 */
static inline int32_t tn_op_argument(const char *const *names, uint32_t count, uint32_t index,
                                     uint32_t *number)
{
    uint32_t first = 0, group = 0, tail = 0, stars = 0;

    for (uint32_t i = 0; names && names[i]; i++) {
        uint32_t length = 0;

        while (names[i][length])
            length++;
        stars = length && names[i][length - 1] == '*';
        first += !stars && !group;
        tail += !stars && group;
        group += stars;
    }
    *number = UINT32_MAX;
    if (index < first)
        return (int32_t)index;
    if (!group || index >= count)
        return -1;
    if (count - index <= tail)
        return (int32_t)(first + group + tail - (count - index));
    *number = (index - first) / group;
    return (int32_t)(first + (index - first) % group);
}

/** 1: of input `index` of an operator with `in_count` inputs nothing but shape and data type is read. */
static inline int32_t tn_op_shape_only(const tn_op *op, uint32_t in_count, uint32_t index)
{
    const int known = op->struct_size >= TN_END(tn_op, shapes_only) && op->shapes_only;
    uint32_t number;
    const int32_t at = known ? tn_op_argument(op->inputs, in_count, index, &number) : -1;

    return at >= 0 && at < 64 && op->shapes_only >> at & 1u;
}

typedef struct tn_op_table {
    tn_capability head;      /* kind TN_KIND_OPS */
    const tn_op *const *ops; /* NULL-ended */
} tn_op_table;

/* ---- kernels ----------------------------------------------------------------------------------------- */

/** A private memory order; comparable by owner and bytes. */
struct tn_layout {
    uint32_t struct_size, flags; /* TN_LAYOUT_POINTWISE */
    const char *owner;           /* plugin */
    const void *bytes;
    uint64_t byte_count;
    uint64_t memory_bytes; /* that a tensor in this layout takes */
};
#define TN_LAYOUT_POINTWISE 1u /* elementwise kernels of anyone may run over its memory */
#define TN_LAYOUT_KNOWN TN_LAYOUT_POINTWISE

/**
 * A random stream: element k of a draw uses counter k. Draw number = *step + step_add.
 *
 * `step` points to memory that the host and the kernel's device both read: the host's own for kernels of the
 * host, pinned memory of the device (TN_MEMORY_PINNED) for others, or the host's where the device has none.
 * Work that a kernel queues on its stream may read it there. It does not change before the call is done.
 */
typedef struct tn_rng {
    uint32_t struct_size, reserved;
    uint64_t seed, stream; /* key: seed and device index */
    const uint64_t *step;
    uint64_t step_add;
} tn_rng;

#define TN_NODE_TRAIN 1u
#define TN_NODE_DETERMINISTIC 2u
#define TN_NODE_CAPTURE 4u
#define TN_NODE_NP_SHAPE 8u
#define TN_NODE_AMP 16u
#define TN_NODE_SAFE_ACC 32u
#define TN_NODE_THREAD_INVARIANT 64u /* only a plan with TN_PLAN_THREAD_INVARIANT will do */
#define TN_NODE_RECORDED 128u        /* a backward may follow: save what it needs */
#define TN_NODE_LAYOUTS 256u         /* inputs may come in, and the plan may ask for, private layouts */
#define TN_NODE_CONSTANT_WEIGHT 512u /* input 1 follows from constants alone: it is reordered once */
#define TN_NODE_ADD_SHORT 1024u      /* TN_MODE_ADD adds before it rounds (TN_KERNEL_ADD_SHORT) */

/**
 * What `prepare` may ask of the host. A kernel that tries several ways to compute a node measures them for at
 * most `tuning_budget_ns`, on `scratch`, and leaves in `tn_plan.tuning` what it found: a blob that the host
 * keeps in a file of the user. The same build of the plugin gets it back as `tuned` for an equal request on
 * an equal device, in this process and in later ones; then nothing needs to be measured. The bytes come from
 * a file: check them as any input. No blob is kept, and `tuned` is NULL, if the plugin has no build id.
 */
typedef struct tn_prepare_ops {
    uint32_t struct_size, reserved;
    const tn_host *host;
    void *arg;
    /* 0: no measuring. So it is unless run.deterministic is off, and on devices other than the host. */
    uint64_t tuning_budget_ns;
    /** Memory of the node's device, aligned to 64 bytes, until prepare returns; NULL: there is none left.
     * On the thread of prepare; at most 64 blocks. */
    void *(*scratch)(void *arg, uint64_t bytes);
    const tn_stream *stream; /* NULL: the host has none, and other devices give none yet */
    const void *tuned;       /* NULL: nothing is kept, or run.deterministic is not off */
    uint64_t tuned_bytes;
} tn_prepare_ops;

/**
 * One node, as a kernel plans it. Outputs that follow the definition's are the mutated inputs, in order,
 * sharing their memory. `in[i]->data` is set only where the input is constant and host readable.
 */
typedef struct tn_node {
    uint32_t struct_size;
    uint16_t op_version, flags; /* TN_NODE_… */
    const char *op;
    const tn_value *attrs;
    uint32_t attr_count, in_count, out_count, threads;
    const tn_tensor *const *in, *const *out; /* shape -1: known after run */
    const uint8_t *modes;                    /* per output: TN_MODE_… */
    const tn_plan *forward; /* of a backward: the forward's plan, if the same plugin made it */
    const tn_prepare_ops *host;
} tn_node;

#define TN_PLAN_CAPTURABLE 1u
#define TN_PLAN_THREAD_INVARIANT 2u /* the same bits for every thread count */
#define TN_PLAN_RESIZES 4u          /* calls call_ops.resize for outputs of unknown shape */
#define TN_PLAN_PARALLEL 8u         /* `run` opens an OpenMP region */
#define TN_PLAN_KNOWN (TN_PLAN_CAPTURABLE | TN_PLAN_THREAD_INVARIANT | TN_PLAN_RESIZES | TN_PLAN_PARALLEL)

/** What `prepare` fills in; the host presets zeros, -1 and NULL. Immutable afterwards. */
struct tn_plan {
    uint32_t struct_size, flags; /* TN_PLAN_… */
    void *state;
    uint64_t workspace_bytes, saved_bytes; /* per call; saved: what forward leaves for its backward */
    uint64_t est_ns;                       /* of one run; 0: not known */
    uint32_t workspace_align, saved_align; /* preset 64; powers of two up to 4096, up to 64 */
    uint32_t threads, reserved;
    int32_t *inplace; /* per output: the input whose memory it may take over, -1 none */
    /* Of nodes with TN_NODE_LAYOUTS; NULL: dense. What inputs are wanted in, `in[i]->layout` being what is
     * there; what outputs are made in. The host copies them, and reorders by operator `_reorder`. */
    const tn_layout **in_layout, **out_layout;
    /* For tn_prepare_ops.tuned, at most 64 KiB; copied and released when prepare returns. */
    tn_blob tuning;
};

typedef struct tn_call_ops {
    uint32_t struct_size, reserved;
    /** [worker] Gives output `out` (of a RESIZES plan) its shape and memory; `*tensor` is valid until the end
     * of run. */
    tn_status (*resize)(tn_call *call, uint32_t out, int32_t ndim, const int64_t *shape,
                        const tn_tensor **tensor, tn_err *err);
    /** [worker] Scratch until the end of the call, in stream order. */
    tn_status (*alloc)(tn_call *call, uint64_t bytes, void **out, tn_err *err);
    /** [any] After TN_PENDING, exactly once. The thread that must call it must not fork() before: a fork
     * waits for what is pending. */
    void (*complete)(tn_call *call, tn_status status, const tn_err *err);
    /** [worker] Tells how many elements (csr) or rows (row_sparse) of sparse output `out` (of a RESIZES plan)
     * are stored, once: before, that output has neither data nor aux. Then `tensor` has room for the values,
     * and aux for int64 indices, which `run` fills in: ids of rows that ascend; or row starts from 0 to
     * `stored`, and columns. TN_E_SHAPE: the shape holds fewer. */
    tn_status (*resize_sparse)(tn_call *call, uint32_t out, int64_t stored, const tn_tensor **tensor,
                               tn_err *err);
} tn_call_ops;

/** One run. All it points to lives until the end of `run`, or until `complete`. */
struct tn_exec {
    uint32_t struct_size, threads;
    const tn_tensor *const *in, *const *out; /* counts and order as in tn_node */
    const uint8_t *modes;
    const tn_value *attrs; /* run-time attributes hold today's values */
    void *workspace, *saved;
    const tn_stream *stream; /* NULL on the host */
    void **stream_slot;      /* the plugin's pointer of this stream, NULL at first; without a stream NULL */
    const tn_rng *rng;
    tn_call *call;
    const tn_call_ops *ops; /* may be NULL, unless the plan says RESIZES or the kernel ASYNC */
};

#define TN_KERNEL_DETERMINISTIC 1u /* the same bits from run to run on one machine and thread count */
#define TN_KERNEL_STRIDED 2u       /* takes strided inputs and outputs; else the core hands over dense ones */
#define TN_KERNEL_ADD_TO 4u        /* serves TN_MODE_ADD; else the core adds */
#define TN_KERNEL_ASYNC 8u
#define TN_KERNEL_EMPTY_OK 16u /* wants to see tensors without elements */
#define TN_KERNEL_POINTWISE                                                                                  \
    64u /* the _fused_pointwise kernel of its plugin computes this operator with the same bits: programs may \
           fuse it with its neighbours (plugin/pointwise.h) */
#define TN_KERNEL_LAYOUTS 32u /* takes private layouts and may ask for them where TN_NODE_LAYOUTS says so */
#define TN_KERNEL_ADD_SHORT                                                                                  \
    128u /* with TN_KERNEL_ADD_TO: adds to 16-bit floats, too, and rounds the sum alone. Programs ask for it \
            (TN_NODE_ADD_SHORT) where a sum of gradients is theirs; else the core adds a rounded result */
#define TN_KERNEL_KNOWN                                                                                      \
    (TN_KERNEL_DETERMINISTIC | TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO | TN_KERNEL_ASYNC | TN_KERNEL_EMPTY_OK | \
     TN_KERNEL_POINTWISE | TN_KERNEL_LAYOUTS | TN_KERNEL_ADD_SHORT)

/**
 * One kernel. It serves versions op_version_min to op_version_max of the definition, and later ones where
 * every attribute that came since has its default. `types` is NULL-ended: "data:f32,f64", "*:f32" (every
 * input and output not named otherwise), "indices:i32,i64". All listed arguments match independently, except
 * that "=name" in place of a type means "the same dtype as argument `name`". Storage types stand in the same
 * lists: "data:csr,f32,f64" is for csr alone, "data:dense,csr,f32" for both; a list without one is for dense
 * tensors, so that who says nothing is never offered a sparse one. What holds of sparse tensors was checked:
 * tn_tensor.aux is there, row ids ascend, row starts go from 0 to the number of elements, columns exist.
 *
 * `host_in` and `host_out`: bit i says that input or output i (outputs, then mutated inputs, as in tn_exec)
 * lies in host memory on every device; for a mutated input either bit will do. On a device other than the
 * host, such tensors are row-major with `memory` TN_MEMORY_HOST, in prepare too. The core has copied inputs
 * there when `run` begins, and copies outputs back behind it: in stream order, or after `complete`. Such a
 * node is not part of a program, and its plan may not say RESIZES.
 */
typedef struct tn_kernel {
    uint32_t struct_size;
    int32_t rank;                         /* 64 plain, 128 library, 192 tuned */
    const char *op, *name, *device, *isa; /* isa: "" or "x86-64-v3", "x86-64-v4" */
    uint16_t op_version_min, op_version_max;
    uint32_t flags; /* TN_KERNEL_… */
    const char *const *types;
    uint32_t host_in, host_out; /* arguments (bits) that must be in host memory; see above */
    /** TN_E_UNSUPPORTED: try the next kernel; TN_E_DEVICE in `err` then says that the machine lacks what all
     * nodes would need. Called once for a signature. [any] */
    tn_status (*prepare)(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err);
    tn_status (*run)(const tn_plan *plan, const tn_exec *x, tn_err *err); /* [worker] */
    void (*release)(tn_plan *plan);                                       /* frees plan->state; may be NULL */
} tn_kernel;

typedef struct tn_kernel_table {
    tn_capability head;                              /* kind TN_KIND_KERNELS, id: device type */
    const tn_kernel *const *kernels;                 /* NULL-ended */
    void (*stream_detach)(void *plugin, void *slot); /* frees what a stream_slot holds; may be NULL */
} tn_kernel_table;

/* ---- inline helpers ---------------------------------------------------------------------------------- */

static inline tn_edge tn_grad_of(tn_grad *g, uint32_t out)
{
    return g->ops->head(g, out);
}

static inline tn_edge tn_grad_input(tn_grad *g, uint32_t in)
{
    return g->ops->input(g, in);
}

static inline tn_edge tn_grad_output(tn_grad *g, uint32_t out)
{
    return g->ops->output(g, out);
}

/** Makes node `op` with inherited attributes; its outputs 0 … inputs-1 become the gradients of the first
 * inputs. */
static inline tn_status tn_grad_emit_all(tn_grad *g, const char *op, uint32_t count, const tn_edge *in,
                                         uint32_t first, uint32_t inputs)
{
    const tn_emit e = {
        (uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT | TN_EMIT_BACKWARD, op, in, NULL, count, 0};
    tn_edge out;
    tn_status st = g->ops->emit(g, &e, &out);

    for (uint32_t i = 0; st == TN_OK && i < inputs; i++) {
        out.index = i;
        st = g->ops->set(g, first + i, out);
    }
    return st;
}

/** Makes node `op`; its output 0 becomes the gradient of input `input`. */
static inline tn_status tn_grad_emit(tn_grad *g, uint32_t input, const char *op, uint32_t count,
                                     const tn_edge *in)
{
    return tn_grad_emit_all(g, op, count, in, input, 1);
}

/** Makes node `op` with the given attributes only and hands out its output 0. */
static inline tn_status tn_grad_node(tn_grad *g, const char *op, uint32_t count, const tn_edge *in,
                                     uint32_t attr_count, const tn_attr_text *attrs, tn_edge *out)
{
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count), 0, op, in, attrs, count, attr_count};

    return g->ops->emit(g, &e, out);
}

/** True if every dimension is known. */
static inline int32_t tn_shape_known(const tn_shape *s)
{
    if (s->ndim < 0)
        return 0;
    for (int32_t i = 0; i < s->ndim; i++)
        if (s->dim[i] < 0)
            return 0;
    return 1;
}

/** Brings two shapes to what both say; TN_E_SHAPE (err filled) if they contradict each other. */
static inline tn_status tn_shape_unify(tn_infer *in, tn_shape *a, tn_shape *b)
{
    if (a->ndim < 0 && b->ndim < 0)
        return TN_OK;
    if (a->ndim < 0) {
        *a = *b;
        return TN_OK;
    }
    if (b->ndim < 0) {
        *b = *a;
        return TN_OK;
    }
    if (a->ndim != b->ndim)
        return tn_fail(in->err, TN_E_SHAPE,
                       "two shapes that must agree have a different number of dimensions");
    for (int32_t i = 0; i < a->ndim; i++) {
        if (a->dim[i] < 0)
            a->dim[i] = b->dim[i];
        else if (b->dim[i] < 0)
            b->dim[i] = a->dim[i];
        else if (a->dim[i] != b->dim[i])
            return tn_fail(in->err, TN_E_SHAPE, "two shapes that must agree differ in a dimension");
    }
    return TN_OK;
}

/** Number of elements of a known shape; INT64_MAX where there are more. A shape that inference is handed may
 * be that large: only those that reach a kernel are known to fit. */
static inline int64_t tn_shape_count(const tn_shape *s)
{
    int64_t n = 1;

    for (int32_t i = 0; i < s->ndim; i++)
        if (s->dim[i] == 0)
            return 0;
    for (int32_t i = 0; i < s->ndim; i++)
        n = n > INT64_MAX / s->dim[i] ? INT64_MAX : n * s->dim[i];
    return n;
}

#ifdef __cplusplus
}
#endif

#endif
