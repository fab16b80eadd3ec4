/*
 * The memory that kernels work in: the host's, or that of a device which the plugin under test brings.
 *
 * A block has two addresses: tests write and read at `memory`, the kernel gets `data`. On the host both are
 * one. On a device `memory` is an image of the block with canaries around, and push and pull bring it there
 * and back through the node's stream. What the tests do to memory is the same in both.
 */
#ifndef TN_CHECK_SPACE_H
#define TN_CHECK_SPACE_H

#include "lab.h"

typedef struct chk_space_ops {
    int32_t memory; /* TN_MEMORY_…: of tensors */
    /* A block of `bytes` at `offset` behind an address aligned to `align`. `flags`: CHK_GUARD_…, or
     * CHK_BLOCK_SHARED: any thread may ask. Ends the case where there is no memory. */
    void (*make)(chk_node *n, uint64_t bytes, uint64_t align, uint64_t offset, uint32_t flags,
                 chk_block *out);
    void (*drop)(chk_block *b);
    /* Queue a copy of the image there, or back, on the node's stream. NULL, as settle and delay: host. */
    void (*push)(chk_node *n, const chk_block *b);
    void (*pull)(chk_node *n, const chk_block *b);
    /* All that the node's stream was asked for is done; its error. */
    tn_status (*settle)(chk_node *n);
    /* Runs the kernel as the engine does, waits, and brings the outputs back. */
    tn_status (*run)(chk_node *n, const tn_exec *x);
    /* What the stream is asked for from now on waits until the kernel was called, and garbage lies where the
     * inputs are to come. */
    void (*delay)(chk_node *n);
    /* Where the step of a draw lies, node.step. */
    void (*step_take)(chk_node *n);
    void (*step_give)(chk_node *n);
    /* The stream of the n-th of several nodes that share a plan. */
    chk_lane *(*lane)(chk_node *n, uint32_t index);
    void (*close)(chk_space *space);
} chk_space_ops;

#define CHK_BLOCK_SHARED 8u

struct chk_space {
    const chk_space_ops *ops;
};

extern chk_space chk_space_host;
/* Device 0 of the type that the kernel names, in the plugin's own table. Skips the case if there is none. */
chk_space *chk_space_device(chk_lab *lab, const tn_kernel *k, const tn_kernel_table *table);
void chk_space_close(chk_space *space); /* NULL is fine */
/* The plugin's table of a device type; NULL: it has none. */
const tn_device_ops *chk_device_table(chk_env *env, const char *type);

void chk_block_push(chk_node *n, const chk_block *b);
void chk_block_pull(chk_node *n, const chk_block *b);
tn_status chk_node_settle(chk_node *n);
void chk_block_drop(chk_block *b);  /* an empty or a borrowed one: nothing */
void chk_outputs_pull(chk_node *n); /* pulls every output and mutated input */

#endif
