/*
 * One running call: what call.c and node.c share.
 */
#ifndef TN_CHECK_CALL_H
#define TN_CHECK_CALL_H

#include <pthread.h>

#include "lab.h"

typedef struct chk_call_block {
    struct chk_call_block *next;
    chk_block b;
} chk_call_block;

typedef struct chk_call {
    chk_node *node;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    chk_call_block *blocks;
    uint32_t completions;
    tn_status status; /* of the first completion */
} chk_call;

extern const tn_call_ops chk_call_ops;
void chk_call_init(chk_call *c, chk_node *n);
void chk_call_begin(chk_call *c); /* frees what the last call left */
/* `st`: what run returned; gives the call's status, and fails the case over a wrong number of completions. */
tn_status chk_call_wait(chk_call *c, tn_status st);
void chk_call_fini(chk_call *c);

#endif
