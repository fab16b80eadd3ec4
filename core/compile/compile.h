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
} tni_prepared;

typedef struct tni_request {
    const tni_opdef *def;
    const tni_attrs *attrs;
    tni_device *device;
    const tn_tensor *const *in, *const *out; /* shapes, strides, dtypes; no data */
    const uint8_t *modes;
    uint32_t in_count, out_count; /* out: with the mutated inputs behind */
    uint32_t threads;
    uint16_t flags; /* TN_NODE_TRAIN … */
    const tni_prepared *forward;
} tni_request;

tn_status tni_selector_create(tni_opset *ops, tni_registry *plugins, tni_options *options, const tni_log *log,
                              tni_selector **out);
void tni_selector_destroy(tni_selector *s);
/* First of: pinned by [kernel] Op@device, kernel.prefer, rank, name, whose prepare accepts the node. None:
 * TN_E_UNSUPPORTED with each candidate and why not. */
tn_status tni_select(tni_selector *s, const tni_request *r, tni_prepared **out);
/* One line per candidate in order of preference: plugin/kernel, rank, why chosen or not. */
tn_status tni_select_explain(tni_selector *s, const tni_request *r, tni_str *out);
void tni_prepared_retain(tni_prepared *p);
void tni_prepared_release(tni_prepared *p);

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
    uint32_t entry;
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
    uint16_t flags; /* TN_NODE_TRAIN, DETERMINISTIC … */
    uint32_t
        first_node; /* nodes before it are not computed: their entries used here are inputs too (backward) */
} tni_program_spec;
tn_status tni_program_create(tni_selector *s, tni_program_spec *spec, tni_program **out);
void tni_program_retain(tni_program *p);
void tni_program_release(tni_program *p);

#endif
