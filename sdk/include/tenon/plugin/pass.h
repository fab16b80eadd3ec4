/**
 * Sketch: a plugin with passes over programs, for fused operators of its own. Hosts refuse this kind until
 * the compiler runs plugins' passes; the table may change before.
 */
#ifndef TENON_PLUGIN_PASS_H
#define TENON_PLUGIN_PASS_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_pass tn_pass; /* the host's: a program that is being compiled */

/** What a pass may ask of the host. Nodes are numbered in the order in which they run. */
typedef struct tn_pass_host {
    uint32_t struct_size, reserved;
    uint32_t (*node_count)(tn_pass *p);
    const char *(*op)(tn_pass *p, uint32_t node);
    const tn_value *(*attrs)(tn_pass *p, uint32_t node, uint32_t *count);
    /** The node whose output `*output` is input `index`; UINT32_MAX: an argument of the program. */
    uint32_t (*input)(tn_pass *p, uint32_t node, uint32_t index, uint32_t *output);
    /** How often an output is read; outputs of the program count. */
    uint32_t (*uses)(tn_pass *p, uint32_t node, uint32_t output);
    /** Puts a node in the place of others: its outputs become theirs, in order. TN_E_STATE: one of them has
     * an effect, or is read where the new node would be too late. */
    tn_status (*replace)(tn_pass *p, const uint32_t *nodes, uint32_t count, const tn_emit *with, tn_err *err);
} tn_pass_host;

typedef struct tn_pass_ops {
    tn_capability head; /* kind TN_KIND_PASS, id: the name, which `passes` options know */
    const char *after;  /* runs behind this pass of the library */
    tn_status (*run)(void *plugin, tn_pass *p, const tn_pass_host *host, tn_err *err);
} tn_pass_ops;

#ifdef __cplusplus
}
#endif

#endif
