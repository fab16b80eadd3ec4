/* Private to room graph: the nodes of a symbol in topological order, and what several files of the room
 * share. */
#ifndef TN_GRAPH_WALK_H
#define TN_GRAPH_WALK_H

#include "graph/graph.h"

/* Nodes in MXNet's order: depth first from the outputs, inputs before their users.
 * Borrowed from the symbol. */
typedef struct tni_walk {
    tni_node **nodes;
    uint32_t count;
    uint32_t *slots; /* open addressing: index into `nodes`, or TNI_NONE */
    uint32_t slot_count;
} tni_walk;

tn_status tni_walk_of(const tni_symbol *s, tni_walk *out);
/* The nodes of `w` with operators in order of creation. If these stand so already: as they are; else all
 * variables come first, in their order. */
tn_status tni_walk_by_creation(const tni_walk *w, tni_walk *out);
void tni_walk_fini(tni_walk *w);
uint32_t tni_walk_index(const tni_walk *w, const tni_node *n); /* TNI_NONE: not in it */

/* ---- nodes (symbol.c) ---------------------------------------------------------------------------- */

tn_status tni_node_create(const tni_opdef *def, const tni_attrs *attrs, const char *name, tni_node **out);
/* Copies definition, attributes, name, dict, subgraphs; inputs are left open. */
tn_status tni_node_clone(const tni_node *n, const char *name, tni_node **out);
/* Gives an inputless node its inputs (retained) and counts its outputs;
 * versions of mutated variables move. */
tn_status tni_node_connect(tni_node *n, uint32_t count, const tni_entry *inputs);
tni_node *tni_node_retain(tni_node *n);
void tni_node_release(tni_node *n); /* iterative: depth does not matter */
tn_status tni_node_dict_set(tni_node *n, const char *key, const char *text); /* replaces */
const char *tni_node_dict_get(const tni_node *n, const char *key);           /* NULL: unset */
tn_status tni_node_dict_copy(tni_node *to, const tni_node *from);            /* keys that `to` has win */
/* Texts of the operator's attributes into the dict, as they were given, so that a file comes out as it went
 * in; data types alone are written MXNet's way, as it would not read "f32". */
tn_status tni_node_dict_fill(tni_node *n, size_t count, const char *const *names, const char *const *texts);
/* What MXNet's operators set on variables they meet: initial values of statistics. */
tn_status tni_node_init_hints(tni_node *n);
static inline const char *tni_node_name(const tni_node *n)
{
    return n->name ? n->name : "";
}
/* A node that stands for a random draw: of its own or of a body inside. */
static inline bool tni_node_random(const tni_node *n)
{
    return n->def && ((n->def->op->effects & TN_EFFECT_RANDOM) || n->subgraph_count > 0);
}
tn_status tni_symbol_create(tni_opset *ops, uint32_t count, const tni_entry *outputs,
                            tni_symbol **out); /* retains */
void tni_dict_destroy(tni_map *dict);          /* with its texts */

/* ---- names.c ------------------------------------------------------------------------------------- */

tn_status tni_name_auto(const char *op, char **out); /* "convolution0"; tni_free */

/* ---- flat.c -------------------------------------------------------------------------------------- */

/* Cuts a graph back to what it was when it had these counts. */
typedef struct tni_graph_mark {
    uint32_t nodes, inputs, entries, variables, random;
} tni_graph_mark;
tni_graph_mark tni_graph_mark_get(const tni_graph *g);
void tni_graph_cut(tni_graph *g, tni_graph_mark mark);

/* ---- infer.c ------------------------------------------------------------------------------------- */

/* "(64, 0, 3)"; zeros are unknown dimensions, and "()" an unknown shape, unless np_shape. False: no shape. */
bool tni_shape_parse(const char *text, bool np_shape, tn_shape *out);

#endif
