/*
 * Blocks for plans and caches of a plugin: zeroed, 64-byte aligned, from the host's memory service where
 * there is one, so that they are counted there. A head before each block says where it goes back to.
 */
#ifndef TNCPU_MEMORY_H
#define TNCPU_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/util.h"

#define TNCPU_HEAD_BYTES 64 /* keeps the block aligned */

typedef struct tncpu_block_head {
    const tn_host *host;
    const tn_memory_service *memory; /* NULL: the C library's */
    void *more;                      /* a block that goes with this one; may be NULL */
} tncpu_block_head;

/* A plugin's own pointer is to a struct that begins with its host. */
static inline const tn_host *tncpu_host(const void *plugin)
{
    return *(const tn_host *const *)plugin;
}

/* NULL: out of memory. */
static inline void *tncpu_block_alloc(const tn_host *host, uint64_t bytes)
{
    const tn_memory_service *memory = tn_host_service(host, TN_SERVICE_MEMORY);
    const uint64_t total = (bytes + TNCPU_HEAD_BYTES + 63) & ~(uint64_t)63;
    tncpu_block_head *head;

    if (total < bytes)
        return NULL;
    head = memory ? memory->alloc(host, total, 64) : aligned_alloc(64, (size_t)total);
    if (!head)
        return NULL;
    memset(head, 0, (size_t)total);
    head->host = host;
    head->memory = memory;
    return (char *)head + TNCPU_HEAD_BYTES;
}

static inline tncpu_block_head *tncpu_block_head_of(void *p)
{
    return (tncpu_block_head *)(void *)((char *)p - TNCPU_HEAD_BYTES);
}

/* NULL is fine. */
static inline void tncpu_block_free(void *p)
{
    while (p) {
        tncpu_block_head *head = tncpu_block_head_of(p);

        p = head->more;
        if (head->memory)
            head->memory->free(head->host, head);
        else
            free(head);
    }
}

#endif
