/* kv-rdma opened on the card in memory: what all tests of it begin and end with. */
#ifndef TN_TEST_KV_RDMA_PLUGIN_H
#define TN_TEST_KV_RDMA_PLUGIN_H

#include "support/wire.h"

#include "card.h"

#define SECOND 1000000000u

extern tnrdma_plugin plugin; /* its options, which a test may change; rings of 64 KiB */

/* A good card, the usual options. */
int plugin_setup(void **state);
int plugin_teardown(void **state); /* nothing of the card is left */

#define PLUGIN_TEST(FUNCTION) cmocka_unit_test_setup_teardown(FUNCTION, plugin_setup, plugin_teardown)

#endif
