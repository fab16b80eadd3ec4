/*
 * A plugin inside the program for tests of fork(): a device "stub", and an operator test_stop with a
 * gradient, on cpu and stub. At one chosen place it calls back, once.
 */
#ifndef TN_TEST_API_FORK_PLUGIN_H
#define TN_TEST_API_FORK_PLUGIN_H

#include <stdatomic.h>

#include "tenon/plugin/plugin.h"

typedef enum stop_place {
    STOP_NOWHERE,
    STOP_INIT,             /* of the plugin: the right to load is taken */
    STOP_OPEN,             /* of a device: the right to open is taken */
    STOP_PREPARE,          /* of the operator's kernel */
    STOP_PREPARE_BACKWARD, /* of its gradient's */
    STOP_RUN,              /* of the operator's kernel */
} stop_place;

void stop_at(stop_place place, void (*fn)(void *arg), void *arg);
extern atomic_int stub_calls; /* of functions about streams, events, memory */
extern const tn_plugin stop_plugin;

#endif
