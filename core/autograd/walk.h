/* A tape, walked: its nodes in order, its leaves, and the key that names its shape. Used inside room
 * autograd. */
#ifndef TN_AUTOGRAD_WALK_H
#define TN_AUTOGRAD_WALK_H

#include "autograd/autograd.h"

typedef struct tni_tape_walk {
    tni_context *ctx;
    tni_vec nodes;  /* tni_tape_node *, in order of recording */
    tni_vec leaves; /* tni_array *, by first appearance */
    tni_vec key;    /* uint64_t */
    uint64_t mark, hash;
    uint32_t head_count;
    tni_array *const *heads;
} tni_tape_walk;

/* Collects what the heads depend on. Caller holds the lock of the context's autograd. `wanted`: the leaves
 * that count (others are constants); NULL: all with an attached gradient. */
tn_status tni_tape_walk_init(tni_tape_walk *w, tni_context *c, uint32_t count, tni_array *const *heads,
                             uint32_t wanted_count, tni_array *const *wanted, bool own_modes);
void tni_tape_walk_fini(tni_tape_walk *w);
/* Index of a leaf in `leaves`; TNI_NONE: a constant in this walk. */
uint32_t tni_tape_leaf(const tni_tape_walk *w, const tni_array *a);

/* Where an input of a backward program comes from. */
#define TNI_FROM_LEAF 0  /* leaves[index] */
#define TNI_FROM_IN 1    /* in[index] of node */
#define TNI_FROM_OUT 2   /* out[index] of node */
#define TNI_FROM_FRAME 3 /* entry `index` of the frame of node */
#define TNI_FROM_HEAD 4  /* gradient of head `index` */
#define TNI_FROM_SAVED 5 /* the block that node saved; of a net: the one of instruction `index` */

typedef struct tni_source {
    uint32_t kind, node, index;
} tni_source;

/* A compiled backward pass; immutable once it is built. */
typedef struct tni_backward_program {
    struct tni_backward_program *next; /* of the table, under the lock */
    tni_refcount refs;                 /* the table's, and one of each pass that runs it */
    uint64_t hash;
    uint64_t *key;
    size_t key_count;
    tni_program *program; /* NULL: its graph breaks */
    tni_frame *frame;
    tni_bynode *bynode; /* then: how its nodes run one by one; so with the two below */
    tni_graph *broken;
    const tni_graph *graph; /* of the program, or the broken one */
    const tni_port *inputs;
    uint32_t input_count;
    tni_source *sources;      /* per input */
    uint32_t *leaf_of_output; /* per output: leaf */
    uint32_t *zero_leaves;    /* leaves that no gradient reaches */
    uint32_t zero_count;
    uint32_t *tape_of_node; /* per node of the graph: tape position, TNI_NONE */
    uint8_t *head_used;     /* per head: its gradient is read */
} tni_backward_program;

tn_status tni_backward_build(const tni_tape_walk *w, const uint8_t *modes, tni_backward_program **out);
void tni_backward_release(tni_backward_program *p);

/* Queues made[i] into grads[i] by modes[i], as one operation; made[i] NULL: zeros, if `near` the pass. All or
 * nothing. */
tn_status tni_gradients_put(const tni_tape_walk *w, uint32_t count, tni_array *const *made,
                            tni_array *const *grads, const uint8_t *modes);
/* One operation of a pass on `d` may write it. */
bool tni_gradient_near(const tni_device *d, const tni_array *grad);

#endif
