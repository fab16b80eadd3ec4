/*
 * The door of room exec: contexts, eager calls, signatures, programs' frames, cached operators, the tape.
 */
#ifndef TN_EXEC_H
#define TN_EXEC_H

#include "compile/compile.h"

typedef struct tni_exec tni_exec;

/* Everything one user opened; the public tn_ctx. Rooms below get only the parts they need. */
typedef struct tn_ctx {
    tni_refcount refs;
    tni_log log;
    tni_options *options;
    tni_registry *plugins;
    tni_device_set *devices;
    tni_engine *engine;
    tni_space *space;
    tni_opset *ops;
    tni_selector *selector;
    tni_exec *exec;
    tni_trace_user trace;         /* of profiler.autostart */
    struct tn_ctx *next, *before; /* list of open contexts, for fork */
    bool pinned;                  /* by whoever forks */
} tni_context;

/* ---- context.c --------------------------------------------------------------------------------------- */

typedef struct tni_context_options {
    const char *const *files, *const *settings; /* as --config and --set; NULL-ended or NULL */
    bool environment;                           /* read MXNet's and TENON_ variables */
    tni_log_fn log;
    void *log_arg;
    bool system_files; /* /etc/tenon/tenon.ini and $XDG_CONFIG_HOME/tenon/tenon.ini */
    bool local_file;   /* ./tenon.ini, which is not trusted */
} tni_context_options;
/* Opens everything in order; on failure nothing is left open. */
tn_status tni_context_open(const tni_context_options *o, tni_context **out);
/* Waits for all work, then closes in reverse order. `upper` (may be NULL) runs first: rooms above free their
 * caches. The last unreported error of the engine is returned; all is closed in any case. */
tn_status tni_context_close(tni_context *c, void (*upper)(tni_context *c));
tn_status tni_context_log_level(tni_context *c); /* takes over log.level */
/* Reads files, variables and settings in their order. */
tn_status tni_context_options_read(const tni_context_options *o, tni_options *options);

/* ---- check.c ----------------------------------------------------------------------------------------- */

/* `level` as in the log: what keeps a context from opening is an error, what is ignored a warning. */
typedef void (*tni_check_fn)(void *arg, int32_t level, const tn_err *err);
tn_status tni_context_check(const tni_context_options *o, tni_check_fn fn, void *arg);

tn_status tni_exec_create(tni_context *c, tni_exec **out);
void tni_exec_destroy(tni_exec *x);
uint32_t tni_exec_threads(const tni_context *c);    /* budget of a kernel */
uint16_t tni_exec_node_flags(const tni_context *c); /* TN_NODE_… that run.deterministic asks for */
void tni_exec_program_made(tni_context *c);         /* one more was compiled */
/* What room autograd keeps here: made by `make` at the first call. NULL: out of memory. */
void *tni_exec_upper(tni_context *c, void *(*make)(void));
void *tni_exec_upper_take(tni_context *c); /* NULL if there is none */

/* ---- scope.c: thread-local switches, captured when a call is made ------------------------------------ */

typedef struct tni_scope {
    bool recording, training, np_shape, no_cache;
    tni_device *device;   /* default of new arrays; NULL: device.default */
    const char *origin;   /* of operations, for error messages; NULL */
    const uint64_t *draw; /* that the next random operator uses, already taken; NULL: it takes one */
} tni_scope;
tni_scope *tni_scope_get(void); /* of this thread */
tn_status tni_default_device(tni_context *c, tni_device **out);

/* ---- random.c: draw counters ------------------------------------------------------------------------- */

tn_status tni_random_seed(tni_context *c, uint64_t seed, tni_device *d); /* d NULL: all; counters go to 0 */
uint64_t tni_random_take(tni_context *c, tni_device *d, uint64_t count); /* first of `count` draws */
uint64_t tni_random_key(tni_context *c, tni_device *d);
uint64_t tni_random_position(tni_context *c, tni_device *d); /* for checkpoints */
tn_status tni_random_restore(tni_context *c, tni_device *d, uint64_t key, uint64_t position);

/* ---- why.c: which kernel would serve a call, and why --------------------------------------------------- */

#define TNI_WHY_NAME_BYTES 128 /* of an input or output */

typedef struct tni_why_input {
    const char *name; /* NULL: the input at this place */
    const int64_t *shape;
    int32_t ndim, dtype; /* -1: not known */
} tni_why_input;

typedef struct tni_why_query {
    const char *op;
    size_t attr_count;
    const char *const *names, *const *texts; /* of attributes */
    tni_device *device;
    const tni_why_input *inputs;
    uint32_t input_count; /* 0: shapes are not known, and no kernel is asked */
    int32_t dtype;        /* of the first input */
    bool train;
} tni_why_query;

typedef struct tni_why {
    const tni_opdef *def;
    tni_device *device;
    tni_choice choice;
    bool asked; /* shapes were given */
    uint32_t in_count, out_count;
    tn_shape *shapes; /* inputs, then outputs */
    int32_t *dtypes;
    char (*names)[TNI_WHY_NAME_BYTES];
} tni_why;
tn_status tni_why_create(tni_context *c, const tni_why_query *q, tni_why **out);
void tni_why_destroy(tni_why *y);

/* ---- signature.c: what a call looks like, and how it is run ------------------------------------------ */

#define TNI_SIG_OPERANDS 8 /* inputs or outputs that the short way serves */

typedef struct tni_operand_key {
    int32_t dtype, ndim;
    uint32_t contiguous, aligned;
    const int64_t *shape, *stride; /* stride only looked at if not contiguous */
} tni_operand_key;

typedef struct tni_signature {
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
    uint32_t mutated[4]; /* inputs that are outputs too */
    tni_operand_key *in; /* in_count */
    uint8_t *modes;      /* out_count + mutated_count */
    tn_shape *out_shape; /* out_count */
    int32_t *out_dtype;
    tni_args args;
    tni_prepared *prepared;           /* NULL: a view, copied nothing */
    tni_prepared *forward;            /* of a backward: what it was told of its forward; retained, NULL */
    uint64_t need_in[1], need_out[1]; /* what the gradient reads (bits; inputs beyond 63: all) */
    bool short_way;                   /* small host kernel: runs on the caller if variables are free */
    bool view;                        /* output 0 is a view of input 0 */
    bool pending;                     /* an output's shape is known only after the run */
    struct tni_signature *bucket_next, *lru_prev, *lru_next;
} tni_signature;
void tni_signature_retain(tni_signature *s);
void tni_signature_release(tni_signature *s);

/* ---- invoke.c: one eager operator -------------------------------------------------------------------- */

typedef struct tn_site { /* the public tn_site is this very struct: operator and parsed attributes */
    tni_refcount refs;
    tni_context *ctx;
    const tni_opdef *def;
    tni_attrs *attrs;       /* replaced when a run-time attribute is set */
    atomic_flag busy;       /* guards attrs and last */
    tni_signature *last[2]; /* most recent first */
} tni_site;
tn_status tni_site_create(tni_context *c, const char *op, size_t count, const char *const *names,
                          const char *const *texts, tni_site **out);
tn_status tni_site_of(tni_context *c, const tni_opdef *def, const tni_attrs *attrs, tni_site **out);
void tni_site_release(tni_site *s);
tn_status tni_site_set(tni_site *s, uint32_t attr, tn_value value); /* run-time attributes only */

/* out[i] NULL: made; else written in place of a new array (shape and dtype must fit). `out_count`: room in
 * `out`, at least the visible outputs. Records if the scope says so. */
tn_status tni_invoke(tni_site *site, uint32_t in_count, tni_array *const *in, uint32_t out_count,
                     tni_array **out);
typedef struct tni_invoke_given { /* what a call knows beside its inputs */
    tni_attrs *attrs;             /* in place of the site's; NULL: those */
    tni_prepared *forward;        /* of a backward: what its forward ran on; NULL: not known */
    tni_array *saved;             /* the block that this left; NULL: none */
} tni_invoke_given;
tn_status tni_invoke_with(tni_site *site, const tni_invoke_given *given, uint32_t in_count,
                          tni_array *const *in, uint32_t out_count, tni_array **out);
tn_status tni_invoke_text(tni_context *c, const char *op, uint32_t in_count, tni_array *const *in,
                          size_t attr_count, const char *const *names, const char *const *texts,
                          uint32_t out_count, tni_array **out, uint32_t *made);
typedef struct tni_exec_stats {
    uint64_t hits, misses, short_way, signatures, programs, frames, by_node;
} tni_exec_stats;
void tni_exec_stats_get(tni_context *c, tni_exec_stats *out);

/* ---- tape.c: what was recorded ----------------------------------------------------------------------- */

typedef struct tni_tape_node tni_tape_node;
typedef struct tni_tape_entry { /* array->grad_entry points to one; a reference on it is one on its node */
    tni_tape_node *node;
    uint32_t index;
} tni_tape_entry;
struct tni_frame;
struct tni_cached_entry;
struct tni_tape_node {
    tni_refcount refs;
    uint64_t order;                  /* of recording, over all threads */
    tni_signature *signature;        /* of an operator */
    tni_attrs *attrs;                /* with the run-time values of the call */
    struct tni_cached_entry *cached; /* of a cached operator, instead */
    struct tni_frame *frame;         /* its frame, kept until backward is done */
    uint32_t in_count, out_count;
    tni_tape_entry **in_entries; /* where each input comes from; NULL: a leaf or a constant */
    tni_array **in, **out;       /* what the gradient reads; NULL for the others */
    tni_array *saved;            /* bytes that the kernel left for its backward; NULL: none */
    tni_array **leaves;          /* inputs that are leaves; NULL for the others */
    tni_tape_entry *entries;     /* of its outputs */
    bool consumed;               /* a backward without retain went through, or is about to; with the rest */
    uint32_t walkers;            /* under the lock of room autograd: backward passes that run over it */
    uint64_t mark;               /* scratch of a walk */
    uint32_t position;
    tni_tape_node *free_next;
};
/* Records a call; outputs get entries. Nothing happens if no input is recorded or a leaf. */
tn_status tni_tape_record(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                          tni_array *const *out, tni_array *saved);
/* [takes] one reference on `frame`, on success. */
tn_status tni_tape_record_cached(struct tni_cached_entry *entry, struct tni_frame *frame, uint32_t in_count,
                                 tni_array *const *in, uint32_t out_count, tni_array *const *out);
bool tni_tape_tracks(uint32_t in_count, tni_array *const *in);
void tni_tape_consume(tni_tape_node *n); /* gives up what only a backward pass needs; `consumed` is set */
void tni_tape_node_retain(tni_tape_node *n);
void tni_tape_node_release(tni_tape_node *n);
void tni_tape_entry_release(tni_tape_entry *e);
void tni_array_forget(tni_array *a); /* drops its entry */

/* ---- frame.c: what a running call of a program needs ------------------------------------------------- */

/* One instruction, ready to run: two cache lines, read in order. */
typedef struct tni_step {
    tn_status (*run)(const tn_plan *plan, const tn_exec *x, tn_err *err);
    const tn_plan *plan;
    tn_exec x;
    uint32_t special; /* TNI_STEP_… */
} tni_step;
#define TNI_STEP_SKIP 1u /* nothing to compute: no output has elements */
#define TNI_STEP_ADD 2u  /* the core adds what the kernel can only write */

/* A frame may be called again while earlier calls of it are queued: its arena's variable keeps them in order.
 */
typedef struct tni_frame {
    tni_refcount refs;
    tni_context *ctx;
    tni_program *program;
    tni_array *arena;           /* bytes; written by each call */
    tn_tensor *tensors;         /* per entry */
    const tn_tensor **operands; /* per operand */
    tni_step *steps;            /* per instruction */
    tn_rng *rngs;               /* of the random ones */
    uint64_t random_steps;
    tn_value *values;        /* attributes of instructions with links */
    uint64_t draw;           /* of the running call */
    bool bound;              /* arena addresses are filled in */
    const tn_stream *stream; /* that is filled in */
    tni_mutex lock;
    struct tni_frame_call *calls; /* free call records */
    struct tni_frame *next;       /* in a pool */
    atomic_uint queued;           /* calls that are not done */
} tni_frame;
tn_status tni_frame_create(tni_context *c, tni_program *p, tni_frame **out);
void tni_frame_retain(tni_frame *f);
void tni_frame_release(tni_frame *f);
typedef struct tni_frame_zeros { /* arrays on the program's device or a host that a run sets to zero */
    uint32_t count;
    tni_array *const *arrays;
} tni_frame_zeros;
/* Queues one run, as one operation. Inputs and outputs are as the program's ports say; the call retains them
 * until it is done. `sources`: by graph node, attributes that linked instructions read; NULL: as compiled.
 * `zeros` may be NULL. */
tn_status tni_frame_run(tni_frame *f, tni_array *const *inputs, tni_array *const *outputs,
                        const tni_attrs *const *sources, uint64_t draw, const tni_frame_zeros *zeros);
/* A kept entry in the frame's arena, as an array. Holds the arena, not the frame. */
tn_status tni_frame_entry(tni_frame *f, uint32_t entry, tni_array **out);
/* The block that an instruction of a recorded program saved, as bytes in the frame's arena. */
tn_status tni_frame_saved(tni_frame *f, uint32_t instruction, tni_array **out);

/* ---- cached.c: hybridized nets ----------------------------------------------------------------------- */

typedef struct tni_cached_flags {
    bool static_alloc, static_shape;
    uint32_t inline_limit, forward_bulk, backward_bulk;
} tni_cached_flags;
typedef struct tni_cached_entry { /* compiled for one signature of inputs */
    tni_refcount refs;
    uint64_t id;
    tni_graph *graph;          /* forward, inferred; entries are numbered as in the program's graph */
    tni_program *program;      /* NULL: the graph breaks */
    struct tni_bynode *bynode; /* then: how its nodes run one by one */
    uint32_t *keep;            /* entries that its backward reads */
    uint32_t keep_count;
    uint8_t *wanted;      /* per input: its gradient is wanted */
    tni_frame *frames;    /* that no tape holds */
    uint32_t frame_count; /* made so far */
    tni_mutex lock;
    struct tni_cached_entry *next;
    tni_device *device;
    uint32_t flags;
    uint64_t generation;
    bool recorded;
} tni_cached_entry;
#define TNI_CACHED_ENTRIES_MAX 64 /* signatures of one net: buckets of lengths; the least recent goes */
void tni_cached_entry_retain(tni_cached_entry *e);
void tni_cached_entry_release(tni_cached_entry *e);
void tni_cached_give_back(tni_cached_entry *e, tni_frame *f); /* [takes] f */
typedef struct tn_cached_op {                                 /* the public one is this very struct */
    tni_refcount refs;
    tni_context *ctx;
    tni_symbol *symbol;
    tni_cached_flags flags;
    tni_graph *graph; /* not inferred */
    tni_mutex lock;
    tni_cached_entry *entries;
    uint32_t entry_count;
    bool told; /* that it runs node by node; under the lock */
} tni_cached_op;
tn_status tni_cached_op_create(tni_context *c, tni_symbol *s, const tni_cached_flags *flags,
                               tni_cached_op **out);
void tni_cached_op_retain(tni_cached_op *op);
void tni_cached_op_release(tni_cached_op *op);
/* Inputs in the order of TNI_LIST_INPUTS. out[i] NULL: made. */
tn_status tni_cached_op_call(tni_cached_op *op, uint32_t in_count, tni_array *const *in, uint32_t out_count,
                             tni_array **out);
/* Entries of `g` that the gradient of the marked variables (`of`, per variable) reads, variables apart. */
tn_status tni_gradient_keep(const tni_graph *g, const uint8_t *of, uint32_t **keep, uint32_t *count);
/* The entry called last, retained. TN_E_STATE: it was never called, or runs node by node. */
tn_status tni_cached_op_recent(tni_cached_op *op, tni_cached_entry **out);
/* Arena bytes and their lower bound of the most recent entry. */
tn_status tni_cached_op_memory(tni_cached_op *op, uint64_t *planned, uint64_t *bound);

/* ---- bynode.c: graphs that cannot be one program --------------------------------------------------------
 */

typedef struct tni_bynode tni_bynode;
typedef struct tni_bynode_spec {
    const tni_graph *graph; /* inferred; outlives what is made of it */
    tni_device *device;
    uint32_t first_node;          /* as of tni_program_spec */
    tni_prepared *const *forward; /* the same */
    uint16_t flags;
} tni_bynode_spec;
/* TN_E_UNSUPPORTED: nothing breaks the graph, or a node could not even run by itself. */
tn_status tni_bynode_create(tni_context *c, const tni_bynode_spec *spec, tni_bynode **out);
void tni_bynode_destroy(tni_bynode *b);
/* The first node that breaks the graph. */
const tni_gnode *tni_bynode_first(const tni_bynode *b);
/* A warning in the log: `what` ("a net") runs node by node, and why. */
void tni_bynode_tell(const tni_context *c, const tni_bynode *b, const char *what);
/* What a call takes: all variables of a whole graph, in order; of a part, as tni_program's inputs. */
const tni_port *tni_bynode_inputs(const tni_bynode *b, uint32_t *count);
/* Runs and counts. `sources`: by node, the run-time attributes of its call; NULL: as they stand in the graph.
 * out[i] NULL: made. */
tn_status tni_bynode_call(tni_context *c, const tni_bynode *b, tni_array *const *in,
                          const tni_attrs *const *sources, tni_array **out);

#endif
