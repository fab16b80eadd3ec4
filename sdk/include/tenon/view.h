/**
 * Looking at graphs and programs: what nodes a symbol has, what a program runs and where its tensors lie, and
 * which nodes cannot be part of a program.
 *
 * A view is a copy: it owns all it says, never changes, and may outlive what it was made of.
 */
#ifndef TENON_VIEW_H
#define TENON_VIEW_H

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the nodes of a symbol ----------------------------------------------------------------------- */

typedef struct tn_symbol_view tn_symbol_view;

/** One output of one node. */
typedef struct tn_view_edge {
    uint32_t node, output;
} tn_view_edge;

#define TN_VIEW_AUX 1u    /* a variable that some operator changes */
#define TN_VIEW_RANDOM 2u /* takes random numbers */

/** One node; borrowed from the view. */
typedef struct tn_view_node {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_view_node) */
    uint32_t flags;       /* TN_VIEW_AUX, TN_VIEW_RANDOM */
    const char *op;       /* NULL: a variable */
    const char *name;
    const char *const *attrs; /* pairs of name and text as given, sorted by name, NULL-ended */
    const tn_view_edge *inputs;
    uint32_t input_count, output_count;
    uint32_t visible_count; /* outputs that callers see */
    uint32_t subgraph_count;
    /* The least that one run must do: multiply-adds, operations (two of each multiply-add among them), bytes
     * read and written. TN_VIEW_UNKNOWN: the shapes, or what they say of it, are not known. */
    uint64_t macs, flops, bytes;
} tn_view_node;

#define TN_VIEW_UNKNOWN UINT64_MAX

/**
 * The nodes of `s` in topological order: inputs come before their users.
 *
 * @param shapes what tn_symbol_infer found for this very symbol, or NULL: then no shape is known
 * @return TN_E_ARG: `shapes` is another symbol's · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_symbol_view_create(tn_symbol *s, const tn_inferred *shapes, tn_symbol_view **out);

/** Nodes; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_symbol_view_count(const tn_symbol_view *v);

/** A node by index. TN_E_ARG: index too large, struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_symbol_view_node(const tn_symbol_view *v, uint32_t index, tn_view_node *out);

/** Shape and data type of an output; `name` is the node's. TN_E_ARG: no such node or output.
 * @threads any @since 0.1 */
TN_API tn_status tn_symbol_view_output(const tn_symbol_view *v, uint32_t node, uint32_t output,
                                       tn_known *out);

/** An output of the symbol itself. TN_E_ARG: index too large. @threads any @since 0.1 */
TN_API tn_status tn_symbol_view_head(const tn_symbol_view *v, uint32_t index, tn_view_edge *out);

/** NULL is fine. @threads any @since 0.1 */
TN_API void tn_symbol_view_destroy(tn_symbol_view *v);

/* ---- the operators of a file -------------------------------------------------------------------- */

typedef struct tn_operators tn_operators;

/** One operator of a model's graph, whether anything here defines it or not; borrowed from the list. */
typedef struct tn_operator_use {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_operator_use) */
    uint32_t index;       /* of the node in its graph */
    uint32_t depth;       /* 0: in the graph of the file; 1: in a subgraph of one of its nodes … */
    uint32_t number;      /* 0: it is defined here; else the TN number of what is wrong */
    const char *op, *node;
    const char *const *attrs; /* pairs of name and text, NULL-ended; ctx_group, lr_mult and the like, which
                                 no operator reads, are left out */
    const char *why;          /* "": it is defined here */
} tn_operator_use;

/**
 * Lists the operators of a -symbol.json. Unlike tn_symbol_load() it does not stop at one that is not here, so
 * that all that a model lacks can be told at once.
 *
 * @return TN_E_IO, TN_E_FORMAT, TN_E_UNSUPPORTED: as tn_symbol_load · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_operators_load(tn_ctx *ctx, const char *path, tn_operators **out);

/** The same of a text in memory. @threads any @since 0.1 */
TN_API tn_status tn_operators_from_json(tn_ctx *ctx, const char *text, uint64_t bytes, tn_operators **out);

/** How many; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_operators_count(const tn_operators *o);

/** How many of them are not here; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_operators_missing(const tn_operators *o);

/** An operator by index, in the order of the file. TN_E_ARG: index too large, struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_operators_at(const tn_operators *o, uint32_t index, tn_operator_use *out);

/** NULL is fine. @threads any @since 0.1 */
TN_API void tn_operators_destroy(tn_operators *o);

/* ---- a program ----------------------------------------------------------------------------------- */

typedef struct tn_program_view tn_program_view;

#define TN_VIEW_TRAIN 1u    /* as in training */
#define TN_VIEW_RECORDED 2u /* as recorded: with the gradients of all arguments behind it */

/**
 * What a cached operator would run for these shapes. It is compiled, but not run, and nothing is kept; no
 * array is made.
 *
 * @param shapes what tn_symbol_infer found for this very symbol, complete
 * @param device NULL: the default
 * @param flags  TN_VIEW_TRAIN, TN_VIEW_RECORDED
 * @return TN_E_ARG: objects of another context, or of another symbol; other flags · TN_E_SHAPE: some shape is
 *         not known · TN_E_UNSUPPORTED: a node cannot be part of a program · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_program_view_plan(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes,
                                      const tn_device *device, uint32_t flags, tn_program_view **out);

/**
 * The same for a cached operator that is told of its parameters, or a program with these weights.
 *
 * @param params names, NULL-ended
 * @return TN_E_KEY: no input has that name · else as tn_program_view_plan
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_program_view_served(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes,
                                        const tn_device *device, const char *const *params,
                                        tn_program_view **out);

/** What a cached operator compiled last. TN_E_STATE: it was never called, or in parts.
 * @threads any @since 0.1 */
TN_API tn_status tn_program_view_cached(tn_cached_op *op, tn_program_view **out);

/** What a program compiled last. TN_E_STATE: it never ran, or in parts. @threads any @since 0.1 */
TN_API tn_status tn_program_view_create(tn_program *p, tn_program_view **out);

/** The whole of a program; borrowed from the view. */
typedef struct tn_view_program {
    uint32_t struct_size;    /* set by the caller: TN_SIZE(tn_view_program) */
    uint32_t entry_count;    /* tensors */
    uint32_t step_count;     /* instructions */
    uint32_t threads;        /* budget of each kernel */
    const char *device;      /* "cpu:0" */
    uint64_t planned, bound; /* bytes of the arena; the least that any plan needs */
    uint64_t est_ns;         /* of the forward: sum of what the kernels said, or their operators' costs make
                                likely; 1000 for each of which neither is known */
    uint32_t forward_count;  /* instructions of the forward; those behind them are the backward's */
    uint32_t once_count;     /* instructions before them, which run once: they read constants only */
    uint64_t constant_bytes; /* of what those leave for all calls; not in the arena */
    uint32_t pass_count, reserved;
} tn_view_program;

/** TN_E_ARG: struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_program_view_info(const tn_program_view *v, tn_view_program *out);

#define TN_VIEW_UNUSED 0   /* nobody needs it */
#define TN_VIEW_ARENA 1    /* in the arena */
#define TN_VIEW_INPUT 2    /* in an array that the caller gives: data, weights */
#define TN_VIEW_OUTPUT 3   /* in an array that the caller gets */
#define TN_VIEW_SCRATCH 4  /* workspace of one instruction, in the arena */
#define TN_VIEW_SAVED 5    /* what one instruction leaves for its backward, in the arena */
#define TN_VIEW_GRADIENT 6 /* in the array of a gradient */
#define TN_VIEW_CONSTANT 7 /* made once of constants */

/** One tensor of a program; borrowed from the view. */
typedef struct tn_view_entry {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_view_entry) */
    int32_t kind;         /* TN_VIEW_ARENA … */
    const char *node;     /* that makes it */
    uint32_t output;      /* of that node */
    uint32_t root;        /* entry whose memory it shares (a view of it, or in place); itself: its own */
    uint64_t bytes;
    uint64_t offset;      /* bytes, in the arena, or among the constants */
    uint32_t first, last; /* instructions during which its memory is in use */
    int32_t dtype, ndim;
    const int64_t *shape;
} tn_view_entry;

/** A tensor by index; workspaces and saved blocks come last. TN_E_ARG: index too large, struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_program_view_entry(const tn_program_view *v, uint32_t index, tn_view_entry *out);

/** One instruction; borrowed from the view. */
typedef struct tn_view_step {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_view_step) */
    uint32_t threads;     /* that its kernel uses */
    const char *node, *op;
    const char *plugin, *kernel;
    uint64_t est_ns;        /* of one run, by the kernel's word or its operator's cost; 0: not known */
    uint64_t scratch_bytes; /* workspace */
} tn_view_step;

/** An instruction by index, in the order they run. TN_E_ARG: index too large, struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_program_view_step(const tn_program_view *v, uint32_t index, tn_view_step *out);

/** What one pass did to a program. */
typedef struct tn_view_pass {
    uint32_t struct_size;   /* set by the caller: TN_SIZE(tn_view_pass) */
    uint32_t off;           /* 1: it was left out */
    const char *name;       /* "fuse"; a literal, as is `text` */
    const char *text;       /* one line */
    uint32_t before, after; /* instructions */
    uint32_t rewrites;      /* changes it made; 0 also for passes that do not count */
    uint32_t bounded;       /* 1: results may move within the bounds of the operators */
} tn_view_pass;

/** A pass by index, in the order they run. TN_E_ARG: index too large, struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_program_view_pass(const tn_program_view *v, uint32_t index, tn_view_pass *out);

/** NULL is fine. @threads any @since 0.1 */
TN_API void tn_program_view_destroy(tn_program_view *v);

/* ---- what cuts a graph --------------------------------------------------------------------------- */

typedef struct tn_breaks tn_breaks;

/** One node that runs apart from those around it, or not at all; borrowed. */
typedef struct tn_break {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_break) */
    uint32_t index; /* of the node, as in tn_symbol_view_node; of a gradient's: of what it is the gradient
                       of, UINT32_MAX: of no single node */
    const char *node, *op, *why;
    uint32_t backward; /* 1: a node of the gradient, which only training runs */
    uint32_t reserved;
} tn_break;

/**
 * The nodes of `s` that cut a program on `device`: host callbacks, kernels that complete later
 * or decide on sizes while they run; and operators without a kernel. Behind them those of its gradient, if
 * all operators between its outputs and its arguments have one.
 *
 * @param shapes as of tn_symbol_view_create. A node whose shapes are known is prepared, so the answer is the
 *               compiler's; of the others only what follows from operator and kernels alone is told
 * @param device NULL: the default
 * @return TN_E_ARG: objects of another context or symbol · TN_E_DEVICE · TN_E_NOMEM
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_graph_breaks(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes,
                                 const tn_device *device, tn_breaks **out);

/** How many; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_breaks_count(const tn_breaks *b);

/** A break by index, in the order of nodes. TN_E_ARG: index too large, struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_breaks_at(const tn_breaks *b, uint32_t index, tn_break *out);

/** NULL is fine. @threads any @since 0.1 */
TN_API void tn_breaks_destroy(tn_breaks *b);

#ifdef __cplusplus
}
#endif

#endif
