/*
 * The interface of room graph: symbols that users compose, the flat graph that passes and programs work on,
 * MXNet's JSON.
 *
 * A symbol is a list of outputs of shared nodes; nodes are reference-counted and never change once composed
 * (composing makes new nodes where it substitutes). A flat graph (tni_graph) is made from a symbol or from a
 * tape, owns all it holds, dies whole; nodes stand in topological order, so every input comes before its
 * user.
 */
#ifndef TN_GRAPH_H
#define TN_GRAPH_H

#include "op/op.h"

/* ---- symbol.c ------------------------------------------------------------------------------------ */

typedef struct tni_node tni_node;

typedef struct tni_entry { /* output `index` of `node` */
    tni_node *node;
    uint32_t index, version;
} tni_entry;

struct tni_node {
    tni_refcount refs;
    const tni_opdef *def; /* NULL: a variable */
    tni_attrs *attrs;     /* NULL for a variable */
    char *name;
    tni_entry *inputs;
    uint32_t input_count, output_count, visible_count;
    uint64_t created; /* order of creation within the process: of sums of gradients, draws, programs */
    tni_map *dict;    /* further attributes: name -> char * ("__shape__", "lr_mult"), NULL if none */
    struct tn_symbol **subgraphs;
    uint32_t subgraph_count;
    atomic_uint
        mutations;       /* of a variable: how often composed nodes change it; gives entries their version */
    tni_node *next_dead; /* while being released */
};

typedef struct tn_symbol { /* the public tn_symbol is this very struct */
    tni_refcount refs;
    tni_opset *ops;
    tni_entry *outputs;
    uint32_t output_count;
    tni_map *graph_attrs; /* of the JSON file: name -> text, NULL */
    bool np_shape;
} tni_symbol;

tn_status tni_symbol_variable(tni_opset *ops, const char *name, tni_symbol **out);
/* A node with open inputs: `names`/`texts` are attributes ("__x__" ones go to the dict). */
tn_status tni_symbol_atomic(tni_opset *ops, const char *op, size_t count, const char *const *names,
                            const char *const *texts, const char *name, tni_symbol **out);
/* Graphs within nodes within graphs; each takes four levels of JSON. */
#define TNI_BODIES_DEPTH_MAX 12u
/* Gives an atomic symbol, which nobody else holds, the graphs that it runs within itself. TN_E_ARG: it runs
 * none, a graph is missing or of another context, or they nest too deep. */
tn_status tni_symbol_bodies(tni_symbol *atomic, uint32_t count, tni_symbol *const *bodies);
/* Fills the inputs of an atomic symbol, by position, or by name if `keys`; missing ones become variables
 * called NAME_weight and so on. `name` NULL: the name manager gives one (convolution0). Or substitutes
 * variables of a composed symbol by name. Makes a new symbol. */
tn_status tni_symbol_compose(tni_symbol *s, const char *name, size_t count, const char *const *keys,
                             tni_symbol *const *args, tni_symbol **out);
tn_status tni_symbol_group(size_t count, tni_symbol *const *parts, tni_symbol **out);
tn_status tni_symbol_internals(tni_symbol *s, tni_symbol **out); /* every visible output of every node */
tn_status tni_symbol_children(tni_symbol *s, tni_symbol **out);  /* NULL if it has none */
tn_status tni_symbol_output(tni_symbol *s, uint32_t index, tni_symbol **out);
void tni_symbol_retain(tni_symbol *s);
void tni_symbol_release(tni_symbol *s);
/* Names in MXNet's order (depth first); the array and its texts are one block, freed by tni_free. */
#define TNI_LIST_ARGUMENTS 0
#define TNI_LIST_AUX 1
#define TNI_LIST_OUTPUTS 2
#define TNI_LIST_INPUTS 3 /* arguments and aux, in order of appearance */
tn_status tni_symbol_list(tni_symbol *s, int32_t what, size_t *count, char ***names);
tn_status tni_symbol_attr_get(tni_symbol *s, const char *key,
                              const char **out); /* of its single head; NULL: unset */
tn_status tni_symbol_attr_set(tni_symbol *s, const char *key, const char *text);
tn_status tni_symbol_find(tni_symbol *s, const char *output_name, uint32_t *index);
/* Thread-local: a scope of automatic names, with its own counters and a prefix. */
tn_status tni_symbol_prefix_push(const char *prefix);
void tni_symbol_prefix_pop(void);

/* ---- json.c: MXNet's -symbol.json, read 0.8 to 1.9, write 1.9 ------------------------------------ */

tn_status tni_symbol_from_json(tni_opset *ops, const char *name, const char *text, uint64_t bytes,
                               tni_symbol **out);
tn_status tni_symbol_load(tni_opset *ops, const char *path, tni_symbol **out);
/* One operator of a file, whether anything defines it or not. Attributes: those that an operator reads,
 * without what the reader keeps apart (ctx_group, lr_mult, __x__). Borrowed for the call. */
typedef struct tni_operator_use {
    const char *op, *node;
    uint32_t index, depth; /* of the node in its graph; 0: the file's own graph, 1: one of a node of it … */
    size_t attr_count;
    const char *const *names, *const *texts;
} tni_operator_use;
typedef tn_status (*tni_operator_fn)(void *arg, const tni_operator_use *use);
/* In the order of the file; a failure of `fn` ends it. */
tn_status tni_json_operators(const char *name, const char *text, uint64_t bytes, tni_operator_fn fn,
                             void *arg);
tn_status tni_json_operators_load(const char *path, tni_operator_fn fn, void *arg);
tn_status tni_symbol_to_json(tni_symbol *s, tni_str *out);
tn_status tni_symbol_save(tni_symbol *s, const char *path); /* atomic */

/* ---- flat.c: the flat graph ---------------------------------------------------------------------- */

#define TNI_NONE UINT32_MAX

typedef struct tni_gnode {
    const tni_opdef *def; /* NULL: a variable */
    tni_attrs *attrs;     /* retained */
    const char *name;     /* in the graph's arena */
    uint32_t first_input; /* into graph->inputs */
    uint32_t input_count, output_count, visible_count;
    uint32_t first_entry; /* its outputs are entries first_entry … */
    uint32_t forward;     /* the node whose backward this is, TNI_NONE */
    uint32_t attr_source; /* node that run-time attributes are read from at every call; itself, mostly */
    uint32_t random;      /* ordinal among the random nodes by creation; TNI_NONE */
    uint32_t flags;       /* TNI_GNODE_… */
    uint32_t variable;    /* index among the variables, TNI_NONE */
    const tni_map *dict;  /* borrowed from the symbol, may be NULL */
    tni_device *device;   /* where it runs, or the array lies; NULL: as the program */
    struct tn_symbol *const *subgraphs; /* borrowed from the symbol */
    uint32_t subgraph_count;
} tni_gnode;
#define TNI_GNODE_BACKWARD 1u
#define TNI_GNODE_AUX 2u           /* a variable that some node mutates */
#define TNI_GNODE_HEAD_GRADIENT 4u /* a variable: the gradient that arrives at a head */
#define TNI_GNODE_MIRROR 8u        /* backward may compute it again: mirror.c */
#define TNI_GNODE_TRAIN 32u        /* of a tape: it was recorded in training, and its backward runs so, too */
#define TNI_GNODE_OLD_GRADIENT 16u /* a variable: what a gradient held before, to which is added */

typedef struct tni_graph {
    tni_arena *arena;
    tni_opset *ops;
    tni_symbol *symbol;         /* kept alive, NULL for a tape's */
    tni_gnode *nodes;           /* node_count */
    uint32_t *inputs;           /* entries, flat */
    tn_shape *shapes;           /* per entry; empty before inference */
    int32_t *dtypes, *storages; /* per entry */
    uint32_t *entry_node;       /* entry -> node */
    uint32_t *heads;            /* entries */
    uint32_t *variables;        /* nodes, in order of appearance (depth first) */
    uint32_t node_count, input_total, entry_count, head_count, variable_count, random_count;
    uint32_t node_capacity, input_capacity, entry_capacity;
    uint32_t inferred; /* bits: 1 shapes, 2 dtypes, 4 storages complete */
    bool np_shape, train;
    uint32_t *like; /* per entry: the one whose shape and dtype it has (a gradient's x), TNI_NONE */
    uint32_t variable_capacity;
} tni_graph;

tn_status tni_graph_create(tni_opset *ops, tni_graph **out);
tn_status tni_graph_of(tni_symbol *s, tni_graph **out);
tn_status tni_graph_copy(const tni_graph *g, tni_graph **out);
void tni_graph_destroy(tni_graph *g);
/* Building by hand (tapes, passes): nodes get the next index; `attrs` is retained. Returns through *node. */
tn_status tni_graph_add_variable(tni_graph *g, const char *name, uint32_t *node);
tn_status tni_graph_add_node(tni_graph *g, const tni_opdef *def, tni_attrs *attrs, const char *name,
                             uint32_t count, const uint32_t *inputs, uint32_t *node);
tn_status tni_graph_set_heads(tni_graph *g, uint32_t count, const uint32_t *entries);
/* Marks what heads, effects and nodes that are marked already need, from `first_node` on: per node, zeros
 * before. */
void tni_graph_wanted(const tni_graph *g, uint32_t first_node, uint8_t *wanted);
static inline uint32_t tni_graph_input(const tni_graph *g, const tni_gnode *n, uint32_t i)
{
    return g->inputs[n->first_input + i];
}

/* ---- part.c -------------------------------------------------------------------------------------- */

/* The nodes marked in `take` as a graph with heads `heads` (entries of `g`). What they read from outside are
 * its variables; `outside` (room for all entries of `g`) says which entries of `g` these stand for. Random
 * nodes keep their numbers. */
tn_status tni_graph_part(const tni_graph *g, const uint8_t *take, uint32_t head_count, const uint32_t *heads,
                         tni_graph **out, uint32_t *outside);

/* ---- infer.c ------------------------------------------------------------------------------------- */

/* Presets entries of variables from what the caller set in shapes/dtypes/storages and from __shape__,
 * __dtype__; runs rounds in both directions until nothing changes. Partial: unknown entries stay unknown and
 * it is no error. Else variables of unknown dtype become float32, of unknown storage dense, and a variable of
 * unknown shape is TN_E_SHAPE. Outputs that only their operator knows at run time stay unknown: then bit 1 of
 * `inferred` is not set. On failure what was found so far stays in the graph. */
tn_status tni_graph_infer(tni_graph *g, bool partial);
/* `variable`: index among the graph's variables. `shape` NULL, `dtype` or `storage` -1: left as it is. */
tn_status tni_graph_preset(tni_graph *g, uint32_t variable, const tn_shape *shape, int32_t dtype,
                           int32_t storage);
/* bodies.c: the graphs within a node, for its definition's functions. */
tn_bodies tni_bodies_of(const tni_gnode *n);
/* What a run of an operator's node costs at least; all unknown where a shape or data type of it is. */
tn_status tni_graph_node_cost(const tni_graph *g, uint32_t node, tn_cost *out);
void tni_graph_infer_reset(tni_graph *g); /* everything unknown again: before other shapes are preset */

/* ---- gradient.c ---------------------------------------------------------------------------------- */

typedef struct tni_gradient_spec {
    const uint32_t *heads; /* entries of `g` that gradients arrive at; NULL: all of g->heads */
    uint32_t head_count;
    const uint32_t *wanted; /* variable *nodes* whose gradient is asked for */
    uint32_t wanted_count;
    const uint32_t *entries; /* in place of `wanted`: any entries; NULL */
    bool ones;               /* head gradients are ones (made by nodes), else new variables are added */
    uint32_t add_cap;        /* sums of more terms become a chain of _grad_add; 0: 8 */
    /* Per wanted variable: its gradient is added to what it holds; NULL: none is. A sum of several terms then
     * begins with the old value, whose variable node goes to `olds`; TNI_NONE: the caller adds the result. */
    const uint8_t *adds;
    uint32_t *olds;
} tni_gradient_spec;

/* Appends backward nodes to `g` (flag TNI_GNODE_BACKWARD). `head_vars[i]`: variable node of head i's
 * gradient, or TNI_NONE where none is needed (loss layers, ones). `grads[i]`: entry of the gradient of
 * wanted[i], TNI_NONE: zero (no path). A missing gradient function on a path is TN_E_UNSUPPORTED naming the
 * operator and node. */
tn_status tni_graph_gradient(tni_graph *g, const tni_gradient_spec *spec, uint32_t *head_vars,
                             uint32_t *grads);

/* A copy of `g` as training runs it: the gradients of all arguments of a floating or unknown type are
 * appended, as further heads, and inferred as far as `g` is. TN_E_UNSUPPORTED as above. */
tn_status tni_graph_trained(const tni_graph *g, tni_graph **out);

/* ---- mirror.c ------------------------------------------------------------------------------------ */

/* Marks nodes that a backward may compute again (TNI_GNODE_MIRROR), by MXNet's rule: `all`: every operator
 * but Convolution, FullyConnected, Concat and SoftmaxOutput; else those that carry __force_mirroring__.
 * Dropout never. */
void tni_graph_mirror(tni_graph *g, bool all);

/* ---- verify.c ------------------------------------------------------------------------------------ */

tn_status tni_graph_verify(
    const tni_graph *g); /* every invariant above; TN_E_INTERNAL with the first that fails */

#endif
