/*
 * The door of room compile: choosing kernels, planning memory, building programs.
 *
 * A program is immutable: instructions over entries, each entry lying at an offset of the arena, in an
 * external array, or being a view of another entry. Frames (room exec) hold what one running call needs.
 */
#ifndef TN_COMPILE_H
#define TN_COMPILE_H

#include "graph/graph.h"

/* ---- select.c: which kernel serves a node -------------------------------------------------------------- */

typedef struct tni_selector tni_selector;

/* A kernel with its plan; immutable, shared by signatures and programs. */
typedef struct tni_prepared {
    tni_refcount refs;
    const tn_kernel *kernel;
    const tn_kernel_table *table;
    tni_plugin *plugin;
    tn_plan plan;
    uint32_t in_count, out_count; /* outputs and then mutated inputs */
    bool dense;                   /* wants row-major tensors: the caller copies strided ones */
    bool adds;                    /* serves TN_MODE_ADD itself */
    bool near;                    /* the caller brings arguments into host memory: tni_kernel_near */
    struct tni_prepared *forward; /* of a backward: its forward, if it was told of it; retained */
} tni_prepared;

/* Pools and arenas give workspaces that begin at 64 bytes; one that wants more moves its begin up. */
static inline uint64_t tni_workspace_bytes(const tn_plan *p)
{
    return p->workspace_bytes + (p->workspace_bytes && p->workspace_align > 64 ? p->workspace_align - 64 : 0);
}
static inline void *tni_workspace_at(const tn_plan *p, void *block)
{
    const uintptr_t at = (uintptr_t)block, align = p->workspace_align;

    return align > 64 ? (char *)block + (-at & (align - 1)) : block;
}

/* Argument `index` (inputs, then outputs with the mutated inputs) is to lie in host memory. */
bool tni_kernel_near(const tn_kernel *k, uint64_t mutates, uint32_t in_count, uint32_t out_count,
                     uint32_t index);

/* A backward that reads the block which its forward saved. */
static inline uint64_t tni_prepared_reads(const tni_prepared *p)
{
    return p->forward ? p->forward->plan.saved_bytes : 0;
}

typedef struct tni_request {
    const tni_opdef *def;
    const tni_attrs *attrs;
    tni_device *device;
    const tn_tensor *const *in, *const *out; /* shapes, strides, dtypes; no data */
    const uint8_t *modes;
    uint32_t in_count, out_count; /* out: with the mutated inputs behind */
    uint32_t threads;
    uint16_t flags;        /* TN_NODE_TRAIN … */
    tni_prepared *forward; /* of a backward: what its forward runs on; NULL: not known */
} tni_request;

tn_status tni_selector_create(tni_opset *ops, tni_registry *plugins, tni_options *options, const tni_log *log,
                              tni_selector **out);
void tni_selector_destroy(tni_selector *s);
/* Loads all plugins with kernels that may run on `device`. */
tn_status tni_kernels_load(tni_registry *plugins, const tni_device *device);
/* First of: pinned by [kernel] Op@device, kernel.prefer, rank, name, whose prepare accepts the node. None:
 * TN_E_UNSUPPORTED with each candidate and why not. */
tn_status tni_select(tni_selector *s, const tni_request *r, tni_prepared **out);
void tni_prepared_retain(tni_prepared *p);
void tni_prepared_release(tni_prepared *p);

/* Kernels of `def` for the type of `device`, and how many of them run to their end before they return. */
tn_status tni_select_count(tni_selector *s, const tni_opdef *def, tni_device *device, uint32_t *count,
                           uint32_t *prompt);

/* ---- why.c: the same choice, told ---------------------------------------------------------------------- */

typedef struct tni_choice_line {
    tni_plugin *plugin;
    const tn_kernel *kernel; /* NULL: a plugin that was not loaded; `why` says why not */
    int32_t prefer;          /* place in kernel.prefer; INT32_MAX: not there */
    bool pinned, fits, asked;
    char why[256]; /* it does not fit */
} tni_choice_line;

typedef struct tni_choice {
    tni_vec lines;   /* tni_choice_line, in order of preference */
    uint32_t chosen; /* TNI_NONE: none */
    int32_t rule;    /* TN_RULE_…: what put it before the next one that fits */
} tni_choice;
/* All candidates of a request. `ask`: those that the rules let pass are asked by `prepare`, all of them; else
 * a choice may still fall on a later one. TN_OK also if there is none. */
tn_status tni_select_why(tni_selector *s, const tni_request *r, bool ask, tni_choice *out);
void tni_choice_fini(tni_choice *c);

/* ---- breaks.c: nodes that cannot be part of a program -------------------------------------------------- */

typedef struct tni_break {
    uint32_t node;
    bool runs; /* called by itself it may run */
    char why[256];
} tni_break;
/* True if a node of `def`, served by `prepared` (NULL: not prepared), cannot be an instruction. */
bool tni_node_breaks(const tni_opdef *def, const tni_prepared *prepared, char *why, size_t size);
typedef struct tni_breaks_spec {
    const tni_graph *graph;
    tni_device *device;
    uint32_t threads;
    uint32_t first_node;          /* as of tni_program_spec */
    tni_prepared *const *forward; /* the same */
    uint16_t flags;               /* TN_NODE_… */
} tni_breaks_spec;
/* Every such node of a graph from first_node on that its heads or an effect need (tni_break, in `out`, which
 * the caller frees). Nodes whose tensors are all known are prepared; of the others only what follows from
 * operator and kernels alone is found. */
tn_status tni_graph_breaks(tni_selector *s, const tni_breaks_spec *spec, tni_vec *out);

/* ---- plan.c: offsets in an arena -------------------------------------------------------------------------
 */

typedef struct tni_interval { /* one buffer: bytes, first and last instruction that touches it */
    uint64_t bytes, offset;   /* offset: result, 64-byte aligned (256 on devices) */
    uint32_t first, last;
} tni_interval;
/* Greedy by size. `*total`: arena bytes; `*bound`: largest live sum, the least any plan can do. */
tn_status tni_plan_offsets(tni_interval *items, uint32_t count, uint64_t align, uint64_t *total,
                           uint64_t *bound);

/* ---- program.c --------------------------------------------------------------------------------------- */

#define TNI_PLACE_NONE 0   /* nobody needs it */
#define TNI_PLACE_ARENA 1  /* at `offset` of the arena */
#define TNI_PLACE_INPUT 2  /* external input `index` */
#define TNI_PLACE_OUTPUT 3 /* external output `index` */

typedef struct tni_place { /* where an entry lies */
    uint32_t kind;         /* TNI_PLACE_… */
    uint32_t index;        /* of the input or output */
    uint32_t root;         /* entry whose memory it shares (views, in place); itself if none */
    uint32_t interval;     /* of a root in the arena; TNI_NONE */
    uint64_t offset;       /* bytes: in the arena */
} tni_place;

typedef struct tni_instruction {
    tni_prepared *prepared;
    const tni_opdef *def;
    const tni_attrs *attrs;
    uint32_t node;          /* of the program's graph: names */
    uint32_t first_operand; /* in_count inputs, then out_count outputs with the mutated inputs behind */
    uint32_t in_count, out_count;
    uint32_t random;                 /* ordinal of its draw; TNI_NONE */
    uint32_t workspace;              /* interval; TNI_NONE */
    uint64_t workspace_offset;       /* in the arena */
    uint32_t saved;                  /* interval of the block it saves; TNI_NONE */
    uint64_t saved_offset;           /* in the arena: of the block that it saves or reads */
    uint32_t saved_of;               /* instruction whose block it reads; TNI_NONE */
    uint32_t saved_input;            /* input that is the block which it reads; TNI_NONE */
    uint32_t first_link, link_count; /* run-time attributes that come from elsewhere */
    bool add_by_core; /* some output is TN_MODE_ADD and the kernel cannot: write aside, then add */
    bool skip_empty;  /* the kernel wants no tensors without elements, and all its outputs are */
} tni_instruction;

typedef struct tni_attr_link { /* attribute `to` of the instruction is attribute `from` of graph node `source`
                                */
    uint32_t source, from, to;
} tni_attr_link;

/* What an input or output of a program is. */
typedef struct tni_port {
    uint32_t entry; /* TNI_NONE: a block of bytes that graph node `saved_node` saved */
    uint32_t saved_node;
    int32_t dtype;
    tn_shape shape;
    uint32_t mode;     /* outputs: TN_MODE_WRITE, TN_MODE_ADD, TN_MODE_NONE */
    uint32_t last_use; /* instruction after which it may be released */
    bool written;      /* an input that is mutated (statistics) */
} tni_port;

typedef struct tni_program {
    tni_refcount refs;
    tni_graph *graph; /* owned */
    tni_device *device;
    tni_instruction *code;
    uint32_t code_count;
    uint32_t *operands; /* entries */
    uint8_t *modes;     /* per operand; meaningful for outputs */
    uint32_t operand_count;
    tni_place *places;  /* per entry of the graph */
    tn_tensor *tensors; /* per entry: shape, stride, dtype, bytes; no data */
    int64_t *strides;
    tni_attr_link *links;
    uint32_t link_count;
    uint32_t *external; /* entries whose memory is an input or output, views included */
    uint32_t external_count;
    tni_port *inputs, *outputs;
    uint32_t input_count, output_count;
    uint32_t saved_input_count; /* the last of the inputs are blocks that forward nodes saved */
    uint64_t arena_bytes, arena_bound;
    uint64_t est_ns;
    uint32_t random_count; /* draws taken by one call */
    uint32_t threads;
    bool parallel, train;
    uint64_t id;
} tni_program;

typedef struct tni_program_spec {
    tni_graph *graph; /* [takes] inferred completely; its variables are the inputs, its heads the outputs */
    tni_device *device;
    const uint8_t *modes; /* per head; NULL: all WRITE */
    const uint32_t *keep; /* further entries that stay valid in the arena until the frame is reused */
    uint32_t keep_count;
    uint32_t threads;
    uint16_t flags; /* TN_NODE_TRAIN, DETERMINISTIC …; RECORDED: saved blocks stay in the arena */
    tni_prepared *const *forward; /* per node before first_node: what it ran on, NULL if unknown; or NULL */
    uint32_t
        first_node; /* nodes before it are not computed: their entries used here are inputs too (backward) */
} tni_program_spec;
tn_status tni_program_create(tni_selector *s, tni_program_spec *spec, tni_program **out);
void tni_program_retain(tni_program *p);
void tni_program_release(tni_program *p);

#endif
