/*
 * The form of a program: values, instructions that make them, segments that the engine runs, ports that the
 * caller's arrays are bound to.
 *
 * A program is immutable. It has up to three phases: forward, the backward of a recorded call (both with one
 * memory plan), and before them what follows from constants alone. Graph entries reach their value only
 * through `value_of`; passes append values and instructions, and nobody else knows how many there are. Frames
 * (room exec) hold what one running call needs.
 */
#ifndef TN_COMPILE_PROGRAM_H
#define TN_COMPILE_PROGRAM_H

#include "graph/graph.h"

typedef struct tni_prepared tni_prepared;

#define TNI_FORWARD 0u
#define TNI_BACKWARD 1u
#define TNI_ONCE                                                                                             \
    2u /* reads constants only: it runs before the first forward, and again if one was written               \
        */
#define TNI_PHASES 3u

/* Where a value lies. */
#define TNI_PLACE_NONE 0u /* nobody needs it */
#define TNI_PLACE_PORT 1u /* in the array at port `port` */
#define TNI_PLACE_KEPT 2u /* in the kept part of its arena: from forward until the backward that reads it */
#define TNI_PLACE_SCRATCH 3u  /* in the scratch part: one run of one phase */
#define TNI_PLACE_LENT 4u     /* in the kept part of the lender's arena (backward variants) */
#define TNI_PLACE_CONSTANT 5u /* in the constant part, which all frames share: made by phase ONCE */
#define TNI_PLACE_SHAPE 6u    /* nowhere: its shape alone is read (tn_op.shapes_only) */

typedef struct tni_value {
    tn_tensor tensor; /* shape, stride, dtype, layout, bytes; no data */
    tni_device *device;
    uint32_t root;        /* the value whose memory it lies in; itself if none. A root's root is itself */
    uint32_t def;         /* instruction that makes it; TNI_NONE: a port, lent, constant */
    uint32_t first, last; /* of a root: instructions that touch it first and last; TNI_NONE: none */
    uint32_t port;        /* of a root: port or constant; TNI_NONE */
    uint32_t arena;       /* of a root in an arena */
    uint32_t place;       /* TNI_PLACE_…; as its root */
    uint32_t flags;       /* TNI_VALUE_… */
    uint32_t again;  /* of forward: the value that backward computes in its place; TNI_NONE: it is kept, or
                        gone */
    uint64_t delta;  /* bytes from the start of the root */
    uint64_t offset; /* of a root: bytes from the start of its part of the arena */
} tni_value;
#define TNI_VALUE_BLOCK 1u /* bytes that kernels alone understand: a workspace, a saved block */
#define TNI_VALUE_WINDOW                                                                                     \
    2u /* of a root: with an offset, with strides; no instruction makes it (pass views) */

/* What stands at a port. */
#define TNI_PORT_INPUT 0u         /* variable `index` of the graph */
#define TNI_PORT_OUTPUT 1u        /* head `index` */
#define TNI_PORT_HEAD_GRADIENT 2u /* the gradient that arrives at head `index` */
#define TNI_PORT_GRADIENT 3u      /* a gradient; `index` as in the spec */
#define TNI_PORT_ENTRY 4u         /* entry `index`, computed outside of the program */
#define TNI_PORT_SAVED 5u         /* the block that the kernel of node `index` outside saved */

typedef struct tni_port {
    uint32_t kind, index; /* TNI_PORT_… */
    uint32_t value;
    int32_t dtype;
    tn_shape shape;
    tni_device *device;
    uint32_t mode;    /* outputs: TN_MODE_WRITE, TN_MODE_ADD, TN_MODE_NONE */
    uint32_t read;    /* bit per phase: instructions read it, or it is held for phase ONCE */
    uint32_t written; /* bit per phase: they write it */
    uint32_t again;   /* backward computes something again from it: the input port of the program that ran the
                         forward, and 1; 0: no. The array must be as forward found it */
    uint32_t used;    /* bit per phase: its own instructions touch it */
    bool strided;     /* kernels take it with the strides that the program was made for */
} tni_port;

typedef struct tni_instruction {
    tni_prepared *prepared; /* NULL: a copy between devices, a callback */
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_device *device;     /* of a kernel; NULL: the program's */
    uint32_t node;          /* of the graph: names; of an instruction that a pass added: the node it serves */
    uint32_t first_operand; /* in_count inputs, then out_count outputs with the mutated inputs behind */
    uint32_t in_count, out_count;
    uint32_t random;    /* ordinal of its draw; TNI_NONE */
    uint32_t workspace; /* value; TNI_NONE */
    uint32_t saved;     /* value: the block that it leaves for its backward, or that it reads; TNI_NONE */
    uint32_t first_link, link_count; /* run-time attributes that come from elsewhere */
    uint32_t segment;
    uint16_t kind;  /* TN_EXEC_… */
    uint16_t flags; /* TNI_CODE_… */
} tni_instruction;
#define TNI_CODE_HELPER 1u      /* a pass added it for the node */
#define TNI_CODE_SKIP_EMPTY 2u  /* the kernel wants no tensors without elements, and all its outputs are */
#define TNI_CODE_BACKWARD 4u    /* it belongs to the backward phase */
#define TNI_CODE_FRESH 16u      /* made by the edit under way */
#define TNI_CODE_READS_SAVED 8u /* `saved` is what its forward left */
#define TNI_CODE_ONCE 32u       /* it belongs to the phase ONCE */
#define TNI_CODE_REORDER 64u    /* it changes the layout of a value */
#define TNI_CODE_AGAIN 128u     /* backward computes a value of forward again, with the same kernel */
#define TNI_CODE_ADD_SHORT 256u /* it adds 16-bit floats before it rounds: TN_NODE_ADD_SHORT */

typedef struct tni_attr_link { /* attribute `to` of the instruction is attribute `from` of graph
                                * node `source` */
    uint32_t source, from, to;
} tni_attr_link;

/* A run of instructions on one device and lane: one operation of the engine. */
typedef struct tni_segment {
    tni_device *device;
    uint32_t phase, kind; /* kind: TN_EXEC_… of its instructions */
    uint32_t first_code, code_count;
    uint32_t first_use, read_count, write_count; /* ports that it touches, those read first */
    uint32_t first_edge, edge_count;             /* segments that must be done before */
    uint32_t first_binding, binding_count;
    uint32_t first_release, release_count;
    uint32_t spent_count; /* of phase ONCE, where there are no releases: at first_release, by uses that it
                             reads no more */
    uint32_t flags;       /* TNI_SEGMENT_… */
    uint64_t est_ns;
} tni_segment;
#define TNI_SEGMENT_PARALLEL 1u   /* some kernel opens an OpenMP region */
#define TNI_SEGMENT_ASYNC 2u      /* its kernel completes later */
#define TNI_SEGMENT_ARRIVED 4u    /* its kernel looks at its inputs from the host */
#define TNI_SEGMENT_AWAITED 8u    /* another segment waits for it */
#define TNI_SEGMENT_BLOCKS 16u    /* a kernel reads a saved block that lies at a port */
#define TNI_SEGMENT_RESIZES 32u   /* its kernel gives its outputs their shape */
#define TNI_SEGMENT_CONSTANTS 64u /* it reads constants: its ports have what phase ONCE reads there */
#define TNI_SEGMENT_AGAIN 128u /* a port that it reads is one that backward computes something again from */

/* A tensor of the frame that gets the address of a port's array when the segment begins. */
typedef struct tni_binding {
    uint32_t slot, value, port;
} tni_binding;

typedef struct tni_release { /* after instruction `code` nobody in the segment touches use `use` any more */
    uint32_t code, use;
} tni_release;

typedef struct tni_arena_plan { /* memory of one device */
    tni_device *device;
    uint64_t constant_bytes; /* as long as there are frames */
    uint64_t kept_bytes;     /* from forward until the backward is done */
    uint64_t scratch_bytes[TNI_PHASES];
} tni_arena_plan;

typedef struct tni_border { /* a copy of an entry on another device */
    tni_device *device;
    uint32_t entry, value;
    uint32_t next; /* of the same entry, and 1 */
} tni_border;

typedef struct tni_phase {
    uint32_t first_code, code_count, first_segment, segment_count;
    uint64_t est_ns;
} tni_phase;

typedef struct tni_pass_note { /* what a pass did */
    const char *name, *text;
    bool off, bounded;                /* off: it was left out */
    uint32_t before, after, rewrites; /* instructions; changes it made */
} tni_pass_note;

typedef struct tni_program {
    tni_refcount refs;
    tni_graph *graph; /* owned; NULL: a call of one operator */
    tni_device *device;
    tni_value *values;
    tni_instruction *code;
    uint32_t *operands; /* values */
    uint32_t *slots;    /* per operand: tensor of the frame */
    uint8_t *modes;     /* per operand; meaningful for outputs */
    uint32_t *value_of; /* per entry of the graph */
    uint32_t *code_of;  /* per node of the graph: its instruction; TNI_NONE */
    tni_attr_link *links;
    tni_port *ports;
    tni_segment *segments;
    uint32_t *uses, *edges; /* of segments: ports; segments */
    tni_binding *bindings;
    tni_release *releases;
    tni_arena_plan *arenas;
    tni_border *borders;
    tni_arena *memory; /* strides and the like */
    uint32_t value_count, code_count, operand_count, slot_count, link_count, port_count, segment_count,
        arena_count, border_count;
    uint32_t input_count, output_count;      /* the first ports: all variables, then all heads */
    uint32_t lender_segments, lender_arenas; /* of a variant: of the lender's forward, which it waits for */
    tni_phase phases[TNI_PHASES];
    tni_pass_note *notes; /* per pass, in order */
    uint32_t note_count;
    uint64_t planned_bytes, bound_bytes; /* of all arenas at the worst moment; the least any plan needs.
                                            Constant parts are not in it */
    uint32_t random_count;               /* draws taken by one call */
    uint32_t threads, flags;             /* flags: TN_NODE_… */
    uint32_t bulk[2];                    /* instructions of a segment at most; 0: no limit */
    uint32_t main_code;                  /* of a call of one operator: its instruction */
    uint64_t id;                         /* never used twice in a process */
} tni_program;

typedef struct tni_program_spec {
    tni_graph *graph;   /* [takes] inferred; its variables are the inputs, its heads the outputs */
    tni_device *device; /* of nodes that name none */
    uint32_t threads;
    uint16_t flags;         /* TN_NODE_TRAIN, DETERMINISTIC …; RECORDED: saved blocks of forward are kept */
    uint32_t first_node;    /* nodes before it are computed elsewhere: what is read of them becomes ports */
    uint32_t backward_node; /* nodes from it on are the backward phase; node_count: there is none */
    const uint8_t *modes;   /* per head; NULL: all WRITE */
    const uint8_t *constants; /* per variable: 1: its array is seldom written between calls; NULL: none */
    const uint32_t *head_of;  /* per variable that is a head's gradient: the head; that is the old value of a
                                 gradient: its place in `gradients` */
    uint32_t gradient_count;
    const uint32_t *gradients;      /* entries; TNI_NONE: nothing reaches it, it gets no port */
    const uint32_t *gradient_index; /* what their ports are numbered by */
    const uint8_t *gradient_modes;
    tni_device *const *gradient_devices; /* where their arrays lie, NULL: as the program; or NULL: all so */
    tni_prepared *const *forward; /* per node before first_node: what it ran on, NULL if unknown; or NULL */
    const tni_program *lender;    /* of a variant: the program whose frame keeps what is before first_node */
    tni_prepared *call_forward;   /* of a call of one operator: what its forward ran on; NULL */
    uint32_t bulk[2]; /* of forward and backward: instructions of a segment at most; 0: as the options say */
} tni_program_spec;

static inline uint32_t tni_instruction_phase(const tni_instruction *i)
{
    return i->flags & TNI_CODE_BACKWARD ? TNI_BACKWARD : i->flags & TNI_CODE_ONCE ? TNI_ONCE : TNI_FORWARD;
}

/* Is the memory of a value kept from forward to backward? Its place does not tell: what lives in one of them
 * may lie in kept bytes, too. */
static inline bool tni_value_crosses(const tni_program *p, uint32_t value)
{
    const tni_value *root = &p->values[p->values[value].root];
    const uint32_t border = p->phases[TNI_BACKWARD].first_code;

    return root->place == TNI_PLACE_KEPT && root->first < border && root->last >= border;
}

static inline bool tni_instruction_backward(const tni_instruction *i)
{
    return (i->flags & TNI_CODE_BACKWARD) != 0;
}

#endif
