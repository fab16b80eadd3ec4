/* Every maximum of the core, with a line of why. A container or loop without one is a defect. */
#ifndef TN_BASE_LIMITS_H
#define TN_BASE_LIMITS_H

#include <stdint.h>

#define TN_SIZE_MAX ((uint64_t)1 << 62)        /* bytes of anything: leaves room for one addition */
#define TN_NODE_INPUTS_MAX 4096                /* inputs or outputs of one node: Concat of a wide net */
#define TN_GRAPH_NODES_MAX (1u << 22)          /* nodes of a graph: far above any net, bounds hostile files */
#define TN_JSON_BYTES_MAX ((uint64_t)64 << 20) /* a symbol file; ResNet-152 has 0.4 MB */
#define TN_JSON_DEPTH_MAX 256                  /* subgraphs nest a few levels */
#define TN_INI_BYTES_MAX ((uint64_t)64 << 20)  /* a configuration file */
#define TN_INI_LINE_MAX 198                    /* bytes of a line: libinih's own buffer */
#define TN_INI_NAME_MAX 49                     /* bytes of a section or key: libinih's own buffer */
#define TN_NAME_MAX 4096                       /* bytes of an array's or node's name */
#define TN_TEXT_MAX ((size_t)1 << 30)          /* bytes of any generated text */
#define TN_PARAMS_ENTRIES_MAX (1u << 20)       /* arrays in one .params file */
#define TN_OPERATORS_MAX 16384                 /* definitions with their aliases */
#define TN_PLUGINS_MAX 1024                    /* candidates in all folders together */
#define TN_KERNELS_MAX 65536                   /* kernels of all plugins */
#define TN_DEVICES_MAX 1024                    /* devices of all types */
#define TN_SITE_CACHE_MAX 4096                 /* signatures kept; LRU beyond */
#define TN_TAPE_NODES_MAX (1u << 24)           /* recorded operations before backward */
#define TN_KEPT_BYTES_MAX ((uint64_t)32 << 20) /* a context's blocks for further calls (keep.c) */
#define TN_FRAMES_BYTES_MAX ((uint64_t)64 << 20) /* a context's frames for further calls */
#define TN_PATH_BYTES_MAX 4096                   /* bytes of a path */
#define TN_OPTION_VALUE_MAX 65536                /* bytes of one option's value */

#endif
