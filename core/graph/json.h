/* Private to room graph: what the reader and the writer of MXNet's JSON share. */
#ifndef TN_GRAPH_JSON_H
#define TN_GRAPH_JSON_H

#include <jansson.h>

#include "graph/walk.h"

/* A hidden attribute of random nodes, in files whose order of nodes is not that of their creation. */
#define TNI_RANDOM_INDEX "__random_index__"
#define TNI_MXNET_VERSION 10901

/* Puts `value`, as text, into a map that is made at the first call. */
tn_status tni_json_keep(tni_map **map, const char *key, const json_t *value);

#endif
