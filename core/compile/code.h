/*
 * A program under construction, as the passes see it. Used inside room compile only.
 *
 * Passes append values, never remove or renumber them. A pass that changes the instructions streams the old
 * list into a new one. `value_of` is kept up to date by whoever replaces a value (tni_code_replace).
 */
#ifndef TN_COMPILE_CODE_H
#define TN_COMPILE_CODE_H

#include "compile/compile.h"

typedef struct tni_code {
    tni_program *p; /* gets what is made here */
    tni_selector *selector;
    const tni_program_spec *spec;
    tni_vec values;      /* tni_value */
    tni_vec code;        /* tni_instruction: what runs once, forward, backward */
    tni_vec operands;    /* uint32_t: values */
    tni_vec modes;       /* uint8_t, per operand */
    tni_vec links;       /* tni_attr_link */
    tni_vec ports;       /* tni_port */
    uint32_t *value_of;  /* per graph entry */
    uint32_t *code_of;   /* per graph node: its instruction; TNI_NONE */
    tni_vec borders;     /* tni_border: copies of values on other devices */
    uint32_t *border_of; /* per entry: the first one, and 1; NULL: the program has one device */
    uint32_t *lent_of;   /* per value of the lender that is met where something is computed again: the value
                            here; NULL: nothing is */
    uint32_t *shape_of;      /* per entry: the value that stands for its shape, and 1; NULL: none does */
    uint32_t *gradient_port; /* per gradient of the spec: its port if it is there already; TNI_NONE */
    uint32_t rewrites;       /* that the pass under way made */
    bool layouts;            /* kernels may ask for private layouts: pass layout follows */
    bool constants;          /* what follows from constants alone will run once: pass constants follows */
    bool laid_out;           /* it ran */
} tni_code;

static inline tni_value *tni_code_value(const tni_code *c, uint32_t value)
{
    return (tni_value *)c->values.data + value;
}

static inline tni_instruction *tni_code_at(const tni_code *c, uint32_t index)
{
    return (tni_instruction *)c->code.data + index;
}

static inline uint32_t *tni_code_operands(const tni_code *c, const tni_instruction *in)
{
    return (uint32_t *)c->operands.data + in->first_operand;
}

static inline uint8_t *tni_code_modes(const tni_code *c, const tni_instruction *in)
{
    return (uint8_t *)c->modes.data + in->first_operand;
}

static inline uint64_t tni_value_bytes(const tni_value *v) /* of memory */
{
    return v->tensor.layout ? v->tensor.layout->memory_bytes : v->tensor.bytes;
}

/* Row-major without gaps: any kernel reads it. */
static inline bool tni_code_dense(const tni_code *c, uint32_t value)
{
    const tn_tensor *t = &tni_code_value(c, value)->tensor;

    return t->ndim < 0 || tni_is_row_major(t->ndim, t->shape, t->stride);
}

static inline tni_device *tni_code_device(const tni_code *c, const tni_instruction *in)
{
    return in->device ? in->device : c->spec->device;
}

static inline uint32_t tni_code_root(const tni_code *c, uint32_t value)
{
    return tni_code_value(c, value)->root;
}

/* A value like `like` (type, device) with memory of its own. */
tn_status tni_code_value_add(tni_code *c, const tni_value *like, uint32_t *out);
/* A window has the strides of the one that it is like. */
void tni_code_window_like(const tni_code *c, uint32_t value, const tni_value *like);
/* A block of bytes for kernels. */
tn_status tni_code_block_add(tni_code *c, tni_device *d, uint64_t bytes, uint32_t *out);
/* The value lies in an array at a new port. */
tn_status tni_code_port_add(tni_code *c, uint32_t kind, uint32_t index, uint32_t value, uint32_t mode);
tn_status tni_code_operand_push(tni_code *c, uint32_t value, uint8_t mode);
const char *tni_code_name(const tni_code *c, const tni_instruction *in); /* of its node, for messages */

/* lower.c: from a graph, one instruction per computed node */
tn_status tni_code_lower(tni_code *c);
/* An operand that nothing here computes, itself or through views, becomes a port when it is first met, or is
 * lent. */
tn_status tni_code_outside(tni_code *c, uint32_t operand);
/* again.c: an entry that the lender computed: in its kept bytes, in an array that its caller gave, or again
 * here, in the code so far. */
tn_status tni_code_lent(tni_code *c, uint32_t entry);
void tni_code_lend(tni_value *v, const tni_value *theirs, const tni_value *root);
/* pass_mirror.c: an instruction of forward for backward, without operands: the same kernel, the same draw. */
tn_status tni_code_again(tni_code *c, const tni_instruction *of, tni_instruction *out);

/* program.c: builds a program around what `lower` makes. */
tn_status tni_program_make(tni_selector *s, const tni_program_spec *spec,
                           tn_status (*lower)(tni_code *c, void *arg), void *arg, tni_program **out);

typedef struct tni_call_request {
    const tni_request *request;
    bool random;
} tni_call_request;

/* pass_select.c: the kernel of an instruction that a pass adds; it has no node and no saved block. */
tn_status tni_code_prepare(tni_code *c, tni_instruction *in, const uint32_t *operands, const uint8_t *modes);
/* TN_E_UNSUPPORTED: no kernel would serve it. */
tn_status tni_code_servable(tni_code *c, const tni_instruction *in, const uint32_t *operands,
                            const uint8_t *modes);
void tni_instruction_fini(tni_instruction *in);
/* The kernel that serves instruction `index` as its operands are now;
 * the instruction keeps the one it has. */
tn_status tni_code_choose(tni_code *c, uint32_t index, tni_prepared **out);

/* edit.c: a new list of instructions from the old one. */
typedef struct tni_edit {
    tni_code *c;
    tni_vec code, operands, modes;
    tni_vec dropped; /* uint32_t: of the old list */
} tni_edit;
void tni_edit_begin(tni_edit *e, tni_code *c);
tn_status tni_edit_keep(tni_edit *e, uint32_t index);
tn_status tni_edit_drop(tni_edit *e, uint32_t index); /* it is in the new list no more */
tn_status tni_edit_add(tni_edit *e, const tni_instruction *in, const uint32_t *operands,
                       const uint8_t *modes);
tn_status tni_edit_end(tni_edit *e, tn_status st); /* takes the new list over, unless `st` is a failure */
/* An instruction with one input and one output that serves the node of instruction `like`;
 * no operands yet. */
tn_status tni_code_helper(tni_code *c, const char *op, uint32_t like, tni_instruction *out);
void tni_code_index(tni_code *c); /* what makes each value, the instruction of each node */
/* Per value, the caller's to free: how often instructions read it or what lies in it; ports count as one. */
tn_status tni_code_readers(const tni_code *c, uint32_t **out);
/* Per value, the caller's to free: 1 for roots whose memory is written more than once, or by the caller. */
tn_status tni_code_written(const tni_code *c, uint8_t **out);
/* Per graph node, the caller's to free: 1 if some backward node reads what it saved. */
tn_status tni_code_forwards(const tni_code *c, uint8_t **out);

/* Passes, in the order of passes.list. */
#define TNI_PASS(name, kind, text) tn_status tni_pass_##name(tni_code *c);
#include "compile/passes.list"
#undef TNI_PASS
/* reuse.c: after the plan: edges between segments of which one writes into bytes that the other touched */
tn_status tni_code_reuse(tni_code *c);
/* verify.c: every invariant that the passes so far establish; TN_E_INTERNAL with the first that is broken */
tn_status tni_code_verify(const tni_code *c, const char *after);

#endif
