/*
 * The interface of room compile: choosing kernels, planning memory, building programs
 * (program.h: their form).
 */
#ifndef TN_COMPILE_H
#define TN_COMPILE_H

#include "compile/program.h"

/* ---- select.c: which kernel serves a node -------------------------------------------------------------- */

typedef struct tni_selector tni_selector;

/* A kernel with its plan; immutable, shared by signatures and programs. */
struct tni_prepared {
    tni_refcount refs;
    const tn_kernel *kernel;
    const tn_kernel_table *table;
    tni_plugin *plugin;
    tn_plan plan;
    uint64_t est_ns;              /* the plan's, or what the definition's cost makes likely; 0: nobody says */
    uint32_t in_count, out_count; /* outputs and then mutated inputs */
    bool dense;                   /* wants row-major tensors: the caller copies strided ones */
    bool layouts;                 /* some input or output has a private layout */
    bool adds;                    /* serves TN_MODE_ADD itself */
    bool on_host;                 /* the caller brings arguments into host memory: tni_kernel_on_host */
    tni_prepared *forward;        /* of a backward: its forward, if it was told of it; retained */
};

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
bool tni_kernel_on_host(const tn_kernel *k, const tn_op *op, uint32_t in_count, uint32_t out_count,
                        uint32_t index);

/* Input `i` comes to the kernel with the strides that it was prepared for; else dense. */
static inline bool tni_prepared_strides(const tni_prepared *p, const tni_opdef *def, uint32_t i)
{
    return !p->dense && !(p->on_host && tni_kernel_on_host(p->kernel, def->op, p->in_count, p->out_count, i));
}

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
    bool moves;            /* runs within a copy of room tensor (moving.c), not as an instruction */
    tni_prepared *forward; /* of a backward: what its forward runs on; NULL: not known */
    const char *const *in_names; /* of the inputs that are there; NULL: those of the definition */
} tni_request;

tn_status tni_selector_create(tni_opset *ops, tni_registry *plugins, tni_options *options, const tni_log *log,
                              tni_selector **out);
void tni_selector_destroy(tni_selector *s);
tni_opset *tni_selector_ops(const tni_selector *s);
const tni_options *tni_selector_options(const tni_selector *s);
/* A warning in the log, once for each operator: it runs apart from the instructions around it. */
void tni_selector_tell_cut(tni_selector *s, const tni_opdef *def, const char *node, const char *why);
/* Loads all plugins with kernels that may run on `device`. */
tn_status tni_kernels_load(tni_registry *plugins, const tni_device *device);
/* First of: pinned by [kernel] Op@device, kernel.prefer, rank, name, whose prepare accepts the node. None:
 * TN_E_UNSUPPORTED with each candidate and why not. Equal requests share one prepared kernel; the second
 * asker waits for the first. */
tn_status tni_select(tni_selector *s, const tni_request *r, tni_prepared **out);
void tni_prepared_retain(tni_prepared *p);
void tni_prepared_release(tni_prepared *p);

/* Kernels of `def` for the type of `device`, and how many of them run to their end before they return. */
tn_status tni_select_count(tni_selector *s, const tni_opdef *def, tni_device *device, uint32_t *count,
                           uint32_t *prompt);

/* ---- moving.c: kernels for room tensor ----------------------------------------------------------------- */

typedef struct tni_moving tni_moving;
/* From now on arrays of `space` are filled, copied, cast and added by the kernels of their device. flags:
 * TN_NODE_… */
tn_status tni_moving_create(tni_selector *s, tni_space *space, uint16_t flags, uint32_t threads,
                            tni_moving **out);
void tni_moving_destroy(tni_moving *m); /* NULL is fine; ends that */

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

/* ---- breaks.c: nodes that cut a program ---------------------------------------------------------------- */

typedef struct tni_break {
    uint32_t node;
    bool runs; /* it may run */
    char why[256];
} tni_break;
/* True if a node of `def`, served by `prepared` (NULL: not prepared), runs apart from those around it. */
bool tni_node_cuts(const tni_opdef *def, const tni_prepared *prepared, char *why, size_t size);
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

/* ---- plan.c: offsets in an arena ----------------------------------------------------------------------- */

typedef struct tni_interval { /* one buffer: bytes, first and last instruction that touches it */
    uint64_t bytes, offset;   /* offset: result, 64-byte aligned (256 on devices) */
    uint32_t first, last;
} tni_interval;
typedef struct tni_plan_sizes {
    uint64_t kept;       /* bytes that live across the border */
    uint64_t scratch[2]; /* behind them, before the border and after it */
    uint64_t bound;      /* largest live sum, the least any plan can do */
} tni_plan_sizes;
/* Lives cross `border` (an instruction), or end before it, or begin with it or later. */
tn_status tni_plan_phases(tni_interval *items, uint32_t count, uint64_t align, uint32_t border,
                          tni_plan_sizes *out);
/* The same without a border. */
tn_status tni_plan_offsets(tni_interval *items, uint32_t count, uint64_t align, uint64_t *total,
                           uint64_t *bound);

/* ---- program.c --------------------------------------------------------------------------------------- */

/* TN_E_ARG: compile.passes_off names something else than passes that can be left out. */
tn_status tni_passes_check(const tni_options *o);

/* One call of an operator. Its ports: inputs, outputs, and the block that it saves or reads. */
tn_status tni_program_of_call(tni_selector *s, const tni_request *r, tni_program **out);
tn_status tni_program_create(tni_selector *s, tni_program_spec *spec, tni_program **out);
void tni_program_retain(tni_program *p);
void tni_program_release(tni_program *p);

#endif
