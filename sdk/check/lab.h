/*
 * What the tests of kernels and operators share: definitions, attribute values, inference, problems, nodes.
 *
 * A *problem* is one call that an operator's definition allows: attribute values, shapes, data types and the
 * inputs' elements. A *side* is a kernel with its plugin. A *node* is a side prepared for a problem in one
 * *form*: strides, alignment, modes, thread budget, guards.
 */
#ifndef TN_CHECK_LAB_H
#define TN_CHECK_LAB_H

#include "check.h"

#define CHK_ARGS_MAX 24 /* arguments of a problem: inputs, outputs, mutated inputs */

/* ---- arena.c ----------------------------------------------------------------------------------------- */

/* Memory of one problem: freed to a mark, all at once. */
typedef struct chk_arena {
    struct chk_arena_block *last;
} chk_arena;
typedef struct chk_mark {
    struct chk_arena_block *block;
    uint64_t used;
} chk_mark;
void *chk_take(chk_arena *a, uint64_t bytes); /* zeroed, 64-byte aligned; never NULL */
char *chk_text(chk_arena *a, const char *format, ...) CHK_PRINTF(2, 3);
chk_mark chk_mark_set(chk_arena *a);
void chk_mark_back(chk_arena *a, chk_mark m);
void chk_arena_free(chk_arena *a);

/* ---- together.c -------------------------------------------------------------------------------------- */

/* Runs `run` for each argument on a thread of its own, all begun at one moment, and waits for their end. How
 * many threads there are for it, 8 at most: if less than `count`, nothing ran. */
uint32_t chk_together(uint32_t count, void (*run)(void *arg), void *const *args);

/* ---- lab.c ------------------------------------------------------------------------------------------- */

typedef struct chk_space chk_space; /* space.h: the memory that a side works in */

typedef struct chk_side {
    const tn_kernel *kernel;
    const tn_kernel_table *table;
    void *self;
    const tn_host *host;
    chk_space *space;
} chk_side;

typedef struct chk_problem chk_problem;

typedef struct chk_lab {
    chk_env *env;
    tn_ctx *ctx;                /* that knows the operators */
    chk_plugin plugin;          /* the one under test */
    const tn_op *op;            /* of the subject */
    chk_side side;              /* of the subject; kernel NULL: the subject is an operator */
    chk_space *device;          /* that the subject's kernel works on; NULL: the host */
    const tn_plugin *reference; /* plugin "cpu"; NULL: there is none */
    void *reference_self;
    bool is_reference; /* the plugin under test is the reference */
    chk_arena arena;
    int64_t grow;     /* shapes have so many times the usual elements; 0: 1 */
    bool several;     /* problems for several threads are wanted, */
    bool is_alone;    /* and one was none */
    bool declined;    /* the kernel declined a problem */
    char absent[160]; /* why, where the error's code was TN_E_DEVICE: what the kernel needs is not here */
} chk_lab;

/* Return false to stop. What the visit takes from the arena is freed after it. */
typedef bool (*chk_visit)(chk_lab *lab, const chk_problem *p, void *arg);

/* Opens the plugin under test and finds the subject's kernel, its definition, the reference. */
void chk_lab_open(chk_env *env, chk_host_kind kind, chk_lab *lab);
void chk_lab_open_op(chk_env *env, chk_host_kind kind, chk_lab *lab);
/* The same without opening the plugin: the context has it. */
void chk_lab_open_context(chk_env *env, tn_ctx *ctx, chk_lab *lab);
void chk_lab_close(chk_lab *lab);
/* Opens, visits the subject's problems, and closes. */
void chk_lab_visit(chk_env *env, uint32_t what, chk_visit visit, void *arg);
/* From now on opening skips the case unless the subject is such; `unless` says why. */
void chk_lab_need(chk_env *env, bool (*is)(const chk_lab *lab), const char *unless);
/* Members that the library reads, not the kit: rules as text, and whose kernels serve the operator. */
bool chk_has_texts(const tn_op *op);
/* Gives a context the plugin's definitions, where some have texts: it makes functions of them. What it
 * refuses, load/operators tells. */
void chk_definitions_give(chk_env *env, tn_ctx *ctx);
/* The definition whose kernels serve `op`, one of the plugin that says so; NULL: its own do. */
const tn_op *chk_meaning(const tn_op *op);
/* Whom a function of `op` is told of: the meaning, where `op` has the function from there. */
#define CHK_TOLD(op, function)                                                                               \
    (chk_meaning(op) && chk_meaning(op)->function == (op)->function ? chk_meaning(op) : (op))
/* Definition by name: the plugin's own first, then those of the context. Texts are made functions. NULL:
 * none. */
const tn_op *chk_op_find(chk_lab *lab, const char *name);
const tn_op *chk_own_op(chk_env *env, size_t index); /* of the plugin, as it is written; NULL: no more */
/* Definition by index: all of the plugin, then all of the context. NULL: no more. */
const tn_op *chk_op_at(chk_lab *lab, size_t index);
/* For the host and for devices of the plugin's own; the other one: all, and those elsewhere are skipped. */
uint32_t chk_kernels_count(chk_env *env); /* that chk_subject_kernels names */
void chk_subject_kernels(chk_env *env, chk_names *names);
void chk_subject_device_kernels(chk_env *env, chk_names *names); /* only for devices of the plugin's own */
void chk_subject_all_kernels(chk_env *env, chk_names *names);
void chk_subject_operators(chk_env *env, chk_names *names);
/* Operators that the plugin defines, and those that it has kernels for, backward ones left out. */
void chk_subject_gradients(chk_env *env, chk_names *names);

bool chk_is_listed(const char *names, const char *name); /* one of "a b c" */

/* ---- attrs.c ----------------------------------------------------------------------------------------- */

typedef struct chk_attrs {
    const tn_value *values;
    const char *const *texts; /* of each value, as a user writes it; NULL where nobody asks for that */
    uint32_t count;
    const char *text; /* "axis=1 keepdims=1": what differs from defaults */
} chk_attrs;
uint32_t chk_attr_count(const tn_op *op);
int32_t chk_attr_index(const tn_op *op, const char *name);
/* Reads one value; false: not of the attribute's type, or out of its range. */
bool chk_attr_parse(chk_arena *a, const tn_attr_def *def, const char *text, tn_value *out);
/* From "name=text name=text", defaults for the rest; false: something required is missing, or is bad. */
bool chk_attrs_parse(chk_arena *a, const tn_op *op, const char *text, chk_attrs *out);
/* The same values but one, which is written so; `name`: for the text of all, NULL: not there. */
void chk_attrs_with(chk_arena *a, const chk_attrs *from, uint32_t index, tn_value value, const char *text,
                    const char *name, chk_attrs *out);
/* As a user writes them, pairs of name and text, NULL-ended. */
const char *const *chk_attr_pairs(chk_arena *a, const chk_problem *p);
bool chk_attr_equal(const tn_attr_def *def, tn_value a, tn_value b);
/* plausible.c: values in range other than `now`, the likeliest first; returns how many, at most `most`. */
uint32_t chk_attr_others(chk_arena *a, const tn_attr_def *def, tn_value now, tn_value *out, uint32_t most);
/* Each of its numbers times `factor` plus `plus`; false: it is no float, or out of range then. */
bool chk_attr_scaled(chk_arena *a, const tn_attr_def *def, tn_value now, double factor, double plus,
                     tn_value *out);
/* A kernel may be older than the definition where every newer attribute has its default. */
bool chk_version_matches(chk_arena *a, const tn_kernel *k, const tn_op *op, const chk_attrs *attrs);
/* Values of equal name and type, then `texts`; false: something required is missing. */
bool chk_attrs_inherit(chk_arena *a, const tn_op *op, const tn_op *from_op, const chk_attrs *from,
                       const tn_emit *emit, chk_attrs *out);

/* ---- inference.c ------------------------------------------------------------------------------------- */

typedef struct chk_args {
    uint32_t in_count, out_count, visible_count, reserved;
    const char *const *in_names; /* of the inputs that are there; NULL: those of the definition */
} chk_args;
/* Shapes and data types of one call, inputs and outputs. */
typedef struct chk_facts {
    chk_args args;
    tn_shape shape[CHK_ARGS_MAX]; /* of the inputs, then of the outputs */
    int32_t dtype[CHK_ARGS_MAX];
    int32_t storage[CHK_ARGS_MAX]; /* TN_STORAGE_…: as a kernel is asked */
} chk_facts;
static inline uint32_t chk_all(const chk_facts *f)
{
    return f->args.in_count + f->args.out_count;
}
static inline uint32_t chk_out(const chk_facts *f, uint32_t output) /* its index */
{
    return f->args.in_count + output;
}
bool chk_facts_equal(const chk_facts *a, const chk_facts *b); /* shapes and dtypes */
/* For one call of a definition's function; `err` is cleared. */
tn_infer chk_infer_of(const tn_op *op, const chk_attrs *attrs, const chk_args *args, uint32_t flags,
                      tn_err *err);
tn_status chk_infer_args(const tn_op *op, const chk_attrs *attrs, uint32_t given, chk_args *out, tn_err *err);
/* Until nothing changes. `flags`: TN_INFER_…. */
tn_status chk_infer_shapes(const tn_op *op, const chk_attrs *attrs, uint32_t flags, chk_facts *f,
                           tn_err *err);
tn_status chk_infer_dtypes(const tn_op *op, const chk_attrs *attrs, chk_facts *f, tn_err *err);
/* From the storage types that the inputs have; false: the definition says others. */
bool chk_infer_storages(const tn_op *op, const chk_attrs *attrs, chk_facts *f);
/* All of them have one data type, if one is known. */
tn_status chk_dtypes_unify(uint32_t count, int32_t *const *dtypes, tn_err *err);
bool chk_is_variadic(const char *const *names); /* the last one stands for any number */
void chk_facts_unknown(chk_facts *f);           /* all shapes and types; keeps args */
bool chk_shape_equal(const tn_shape *a, const tn_shape *b);
/* Elements; -1: not known, or more than `most`. */
int64_t chk_shape_elements(const tn_shape *s, int64_t most);
const char *chk_shape_text(chk_arena *a, const tn_shape *s);

/* ---- types.c: rules such as "data:f32,f64" ----------------------------------------------------------- */

/* The rule for argument `index` (inputs, then outputs), its text behind the colon; NULL: anything goes. */
const char *chk_rule_of(const tn_op *op, const tn_kernel *k, const chk_args *args, uint32_t index);
bool chk_rule_allows(const tn_op *op, const chk_facts *f, const char *rule, int32_t dtype);
bool chk_types_match(const tn_op *op, const tn_kernel *k, const chk_facts *f);
/* Bit d: the rule names data type d; 0: it names another argument. */
uint32_t chk_rule_storages(const char *rule); /* bits; NULL, or none is named: dense */
uint32_t chk_rule_mask(const char *rule);
const char *chk_argument_name(const tn_op *op, const chk_args *args, uint32_t index);

/* ---- values.c ---------------------------------------------------------------------------------------- */

bool chk_is_float(int32_t dtype);
bool chk_is_unsigned(int32_t dtype);
double chk_get(const void *data, int32_t dtype, int64_t index);
void chk_set(void *data, int32_t dtype, int64_t index, double value);
/* `count` elements from the `first`: a look at the type for all of them. */
#define CHK_BLOCK 128
void chk_get_all(const void *data, int32_t dtype, int64_t first, int64_t count, double *out);
void chk_set_all(void *data, int32_t dtype, int64_t first, int64_t count, const double *values);
void chk_convert(const void *from, int32_t from_dtype, void *to, int32_t to_dtype, int64_t count);
/* NULL: equal within what `dtype` of `got` allows (`loose` times as much); else what differs. */
const char *chk_values_differ(chk_arena *a, const void *got, int32_t got_dtype, const void *want,
                              int32_t want_dtype, int64_t count, double loose);

/* ---- problem.c, backward.c --------------------------------------------------------------------------- */

struct chk_problem {
    const tn_op *op;
    chk_attrs attrs;
    chk_facts f;
    void *in_data[CHK_ARGS_MAX]; /* row-major, without gaps */
    uint32_t mutated[CHK_ARGS_MAX], mutated_count;
    uint16_t flags;                    /* TN_NODE_TRAIN */
    int32_t rank;                      /* of the shape it was made from */
    bool resizes;                      /* an output's shape is known after run only */
    const struct chk_problem *forward; /* of a backward */
    const char *text;
};

#define CHK_PROBLEMS_ALL 0u     /* each data type × rank 0 to 8, odd sizes, each attribute value */
#define CHK_PROBLEMS_EMPTY 1u   /* the same with a dimension of 0 */
#define CHK_PROBLEMS_FEW 2u     /* each data type, two ranks, a few attribute values */
#define CHK_PROBLEMS_HUGE 5u    /* more elements than memory: no inputs, only for forms with `metadata` */
#define CHK_PROBLEMS_TYPES 4u   /* each data type × each attribute value */
#define CHK_PROBLEMS_WIDE 6u    /* float64 for the first input, two ranks, each attribute value */
#define CHK_PROBLEMS_BROAD 7u   /* each data type, some 10,000 elements in dimensions that are odd */
#define CHK_PROBLEMS_LARGE 3u   /* one data type, enough elements for several threads */
#define CHK_PROBLEMS_DOUBLED 8u /* one data type, over 2^28 elements times lab.grow, as HUGE */

/* Problems of the subject whose types its kernel declares (all, if there is no kernel). */
void chk_problems(chk_lab *lab, uint32_t what, chk_visit visit, void *arg);
/* Problems of any operator, by its definition alone; `dtype_mask` bounds the types tried. */
bool chk_problems_of(chk_lab *lab, const tn_op *op, uint32_t what, chk_visit visit, void *arg);
/* Problems by the definition alone in float64 (and float32, if those are refused): FEW or BROAD. */
void chk_problems_float64(chk_lab *lab, uint32_t what, chk_visit visit, void *arg);
/* Problems for a backward operator out of its forwards'. False: no forward makes one. */
bool chk_problems_backward(chk_lab *lab, uint32_t what, chk_visit visit, void *arg);
/* New inputs (another seed) for the same problem. */
void chk_problem_values(chk_lab *lab, chk_problem *p, uint64_t seed);
const char *chk_problem_text(chk_lab *lab, const chk_problem *p);
int64_t chk_elements(const chk_problem *p, uint32_t arg);          /* of an input or output; -1: not known */
chk_problem *chk_problem_copy(chk_lab *lab, const chk_problem *p); /* with inputs to be changed */
/* A plan is for shapes and data types: attributes that decide them change with the plan. */
bool chk_infers_the_same(chk_lab *lab, const chk_problem *p, const chk_attrs *attrs);

/* ---- bodies.c ---------------------------------------------------------------------------------------- */

/* Graphs that inference of `op` accepts, where it runs some; NULL: it runs none. Of the process. */
const tn_bodies *chk_bodies_for(const tn_op *op, const chk_attrs *attrs, const chk_args *args);
/* Calls such an operator as a net of one node, whose graphs are those. `attrs`: pairs of texts. */
tn_status chk_bodies_invoke(tn_ctx *ctx, const chk_problem *p, const char *const *attrs, tn_array *const *in,
                            tn_array **out, uint32_t *out_count);

/* One row of cases.list: where a definition does not say what is plausible. */
typedef struct chk_hint {
    const char *op;
    const char *attrs;  /* "kernel=(3,3) num_filter=4" */
    const char *shape;  /* of the first input "(2,3,9,9)"; NULL: any */
    const char *values; /* "indices:0:3 var:0:1": from and below; NULL: any */
} chk_hint;
#define CHK_HINTS_MAX 32
const chk_hint *const *chk_hints_of(const char *op); /* NULL-ended, until the next call */

/* ---- kernel_state.c ---------------------------------------------------------------------------------- */

/* The same bits again are to be expected. */
bool chk_is_exact(const chk_lab *lab);
/* The same problem with other elements. Backwards keep to theirs but the gradient: they belong together. */
const chk_problem *chk_problem_other(chk_lab *lab, const chk_problem *p, uint64_t seed);

/* ---- kernel_stream.c --------------------------------------------------------------------------------- */

/* True if the work of the subject's kernel follows its stream, as far as one small problem tells. */
bool chk_stream_followed(chk_lab *lab);

/* ---- node.c ------------------------------------------------------------------------------------------ */

#define CHK_LAYOUT_DENSE 0u
#define CHK_LAYOUT_REVERSED 1u /* the first dimension is the innermost */
#define CHK_LAYOUT_GAPS 2u     /* every second element */

#define CHK_PACE_ANY 0u
#define CHK_PACE_QUIET 1u /* all is done before run is called, and has time enough afterwards */
#define CHK_PACE_LATE 2u  /* what the stream was asked for before is held back until run was called */

typedef struct chk_form {
    uint32_t threads; /* 0: 1 */
    uint32_t layout;  /* of inputs and outputs: CHK_LAYOUT_… */
    uint32_t offset;  /* elements behind an aligned address */
    uint32_t guard;   /* CHK_GUARD_…: buffers that tell; 0: plain memory */
    bool lock;        /* inputs are read-only */
    bool in_place;    /* where the plan says so */
    bool bare;        /* no tn_call_ops */
    bool recorded;
    bool alone;                     /* no forward but `forward`, also where prepare declines without one */
    bool metadata;                  /* prepare only: no memory anywhere */
    uint8_t mode;                   /* of all outputs */
    const uint8_t *modes;           /* of each output */
    uint8_t fill;                   /* what outputs and workspace hold before */
    const tn_value *run_attrs;      /* of run, if others than those of prepare */
    const tn_rng *rng;              /* NULL: that of device 0 with the number below */
    uint64_t draw;                  /* 0: number 7 */
    const struct chk_node *forward; /* hand over its plan and saved block */
    uint32_t broadcast;             /* 1 + input of which a dimension gets stride 0; 0: none */
    int32_t broadcast_axis;         /* that dimension */
    uint64_t nomem_at;              /* the n-th call_ops.alloc or resize fails; 0: none */
    uint32_t pace;                  /* on a device: CHK_PACE_… */
} chk_form;

/* Memory of a kernel. Tests write and read at `memory`, the kernel at `data`: see space.h. */
typedef struct chk_block {
    void *memory, *data;
    chk_buffer *buffer;       /* with canaries; NULL: plain memory */
    struct chk_extent *there; /* on a device */
    chk_space *space;         /* NULL: nothing is here */
    bool borrowed;            /* another one's: not to be dropped */
} chk_block;

typedef struct chk_operand {
    tn_tensor t;
    int64_t shape[TN_NDIM_MAX], stride[TN_NDIM_MAX];
    chk_block block;
    tn_tensor aux[2]; /* of a sparse one: t.aux point here; of an output, once its size was told */
    int64_t aux_shape[2], aux_stride;
    chk_block aux_block[2];
} chk_operand;

/* A stream, and what the plugin keeps for it. */
typedef struct chk_lane {
    tn_stream *stream; /* NULL: on the host there are none */
    void *slot;
} chk_lane;

/* The list of operands as kernels get it. */
typedef struct chk_operands {
    const tn_tensor *in[CHK_ARGS_MAX], *out[CHK_ARGS_MAX];
} chk_operands;

typedef struct chk_node {
    chk_lab *lab;
    const chk_side *side;
    const chk_problem *p;
    chk_form form;
    tn_plan *plan;
    struct chk_node *own_forward; /* closed with this node */
    bool shares_plan;             /* another node's */
    const tn_rng *no_rng;         /* where the operator declares no draw: must not be read */
    uint64_t *step, own_step;     /* of a draw; where the kernel's device reads it */
    int32_t inplace[CHK_ARGS_MAX];
    const tn_layout *in_layout[CHK_ARGS_MAX], *out_layout[CHK_ARGS_MAX];
    chk_operand *in, *out; /* in the arena */
    chk_operands list;
    uint32_t out_count; /* with the mutated inputs */
    uint8_t modes[CHK_ARGS_MAX];
    chk_block workspace, saved;
    chk_lane *lane;
    tn_err err;
    struct chk_call *call;
    uint64_t allocs;  /* calls of call_ops.alloc and resize in the last run */
    uint32_t hold_us; /* of a pace: how long the stream is held back behind the call of run, or left alone */
    bool early;       /* complete came meanwhile */
} chk_node;

/* ---- operand.c --------------------------------------------------------------------------------------- */

int64_t chk_operand_extent(const chk_operand *o); /* elements from the first to the last, both included */
void chk_operand_strides(chk_operand *o, uint32_t layout);
int64_t chk_operand_offset(const chk_operand *o, int64_t index); /* of element `index`, row-major */
int64_t chk_operand_elements(const chk_operand *o);
void chk_operand_move(const chk_operand *o, void *dense, bool into); /* row-major numbers in, or out */

/* ---- sparse.c ---------------------------------------------------------------------------------------- */

bool chk_sparse_fits(int32_t storage, const tn_shape *s); /* such a shape may have it */
/* What is not stored of a sparse input is zero. */
void chk_sparse_zero(int32_t storage, const tn_shape *s, int32_t dtype, void *dense);
/* Memory for values and indices of an operand that has its shape; `stored` -1: as an input. */
void chk_sparse_make(chk_node *n, chk_operand *o, const tn_shape *s, int64_t stored);
void chk_sparse_drop(chk_operand *o); /* its indices */
void chk_sparse_move(const chk_operand *o, void *dense, bool into);
/* Fails the case unless an output has its size, and indices to trust. */
void chk_sparse_check(chk_node *n, const chk_operand *o, const char *name);

/* kernel_random.c. Of an operator that declares no draw: in a program a host has none for it, and what stands
 * there may not be read. */
const tn_rng *chk_no_rng(chk_env *env);
/* The draw of the form, or number 7 of device 0; its step in node.step. */
tn_rng chk_rng_of(chk_node *n);

/* Makes tensors and prepares. The node is filled in, and to be closed, in any case. TN_E_UNSUPPORTED: the
 * kernel declines, or asks for what this host does not give. */
tn_status chk_node_open(chk_lab *lab, const chk_side *side, const chk_problem *p, const chk_form *form,
                        chk_node *n);
/* The forward of a backward by the plugin's own kernel, run, for form.forward: in the arena, to be closed
 * behind the backward. NULL: the problem has none, the plugin has no kernel for it, or that fails. */
chk_node *chk_node_forward(chk_lab *lab, const chk_problem *p);
/* Tensors of another problem of the same shapes for the same plan. `index`: of those that share it, from 1;
 * each has a stream of its own, where there are streams. */
void chk_node_share(const chk_node *with, const chk_problem *p, uint32_t index, chk_node *n);
/* Sets inputs and outputs to what they are before a run. */
void chk_node_reset(chk_node *n);
/* Runs and waits for completion; any thread, one at a time for each node. */
tn_status chk_node_call(chk_node *n);
bool chk_is_refusal(tn_status st); /* of what an operator cannot mean */
/* Resets and runs. On a device the outputs are here afterwards. */
tn_status chk_node_run(chk_node *n);
/* Elements of output `o`, row-major, in the arena. */
void *chk_node_output(chk_node *n, uint32_t o, int64_t *count);
const char *chk_node_output_name(const chk_node *n, uint32_t o);
/* Fails the case if something beside outputs, workspace and saved block was written. */
void chk_node_guards(chk_node *n);
void chk_node_close(chk_node *n);
/* A node of the subject's kernel that ran well; false: prepare declined, nothing is open. Other failures end
 * the case. */
bool chk_node_try(chk_lab *lab, const chk_problem *p, const chk_form *form, chk_node *n);
/* The same for the first run of a problem: what the kernel says it cannot mean is no problem of this test. */
bool chk_node_first(chk_lab *lab, const chk_problem *p, const chk_form *form, chk_node *n);
typedef struct chk_outputs {
    uint32_t count;
    int32_t own_dtype; /* of a reference that is the plugin itself in a wider type; 0: another one */
    void *data[CHK_ARGS_MAX];
    int64_t elements[CHK_ARGS_MAX];
    int32_t dtype[CHK_ARGS_MAX];
} chk_outputs;
void chk_outputs_take(chk_node *n, chk_outputs *out);
/* Prepares, runs, takes the outputs, closes. Another status than TN_OK: the kernel's. */
tn_status chk_outputs_of(chk_lab *lab, const chk_side *side, const chk_problem *p, chk_outputs *out,
                         tn_err *err);
/* The host calls a kernel for empty outputs only if it says EMPTY_OK. */
bool chk_host_would_run(const chk_lab *lab, const chk_problem *p);
/* What the outputs should be: by the reference in float64, or in the same types. False: nobody says. */
bool chk_reference_outputs(chk_lab *lab, const chk_problem *p, chk_outputs *out);
/* Fails the case with K-values if outputs are not those. */
void chk_reference_compare(chk_lab *lab, const chk_problem *p, const chk_outputs *got,
                           const chk_outputs *want);
/* The same problem in wider floating point (`ints`: and integers like the first input's). False: the
 * definition does not allow it. */
bool chk_widen(chk_lab *lab, const chk_problem *p, int32_t wide, bool ints, chk_problem *out);
/* kernel_body.c: an operator with a body computes what that says. */
void chk_values_body(chk_lab *lab);
/* kernel_special.c: the same for inputs that random ones never are,
 * where the operator is one of the core's. */
void chk_values_special(chk_lab *lab);
/* An operator that says TN_OP_POINTWISE goes element by element. */
void chk_values_pointwise(chk_lab *lab);
/* NULL: outputs are what they should be (`exact`: bit for bit); else what differs, in `a`. */
const char *chk_outputs_differ(chk_node *n, chk_arena *a, const chk_outputs *want, bool exact);
/* Fails the case where they differ. */
void chk_same(chk_node *n, const chk_outputs *want, bool exact, const char *what);
/* A kernel for the host that takes the problem: of the plugin under test, or of the reference. */
bool chk_side_find(chk_lab *lab, const tn_plugin *plugin, const chk_problem *p, chk_side *out);
/* One of the plugin under test, for the subject's device. */
bool chk_side_beside(chk_lab *lab, const chk_problem *p, chk_side *out);
/* As the host: by version, and by data types. */
bool chk_kernel_matches(chk_lab *lab, const tn_kernel *k, const chk_problem *p);

#endif
