/* Private to room graph: what the reader and the writer of MXNet's JSON share. */
#ifndef TN_GRAPH_JSON_H
#define TN_GRAPH_JSON_H

#include <jansson.h>

#include "graph/walk.h"

/* A hidden attribute of operators that stand elsewhere in the file than where they were made: their number by
 * creation among the file's operators. Gradients are summed and draws are taken in that order. */
#define TNI_CREATION_INDEX "__creation_index__"
/* The same of random nodes among themselves, in files of a graph without the former; read, not written. */
#define TNI_RANDOM_INDEX "__random_index__"
/* The same of an operator without inputs, in a file of MXNet's classic mode: an extent of 0 in its `shape`
 * says 0, and not that its users tell it. MXNet passes over it. */
#define TNI_ZERO_EXTENTS "__zero_extents__"
#define TNI_MXNET_VERSION 10901
/* An attribute of the graph that says: nodes of a gradient are among its nodes. ["int", 1], which MXNet
 * reads and keeps. */
#define TNI_GRADIENTS "tenon_gradients"

/* The attribute `shape` of an operator without inputs; -1: it is no such one. */
static inline int32_t tni_json_shape(const tni_opdef *def)
{
    const int32_t attr = def->input_count || def->variadic ? -1 : tni_attr_index(def, "shape");

    return attr < 0 || def->op->attrs[attr].type != TN_ATTR_T_TUPLE ? -1 : attr;
}

/* Puts `value`, as text, into a map that is made at the first call. */
tn_status tni_json_keep(tni_map **map, const char *key, const json_t *value);

#endif
