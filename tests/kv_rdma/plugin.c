/* See plugin.h. */
#include "plugin.h"

extern const tn_plugin tn_plugin_v1;

tnrdma_plugin plugin;

int plugin_setup(void **state)
{
    (void)state;
    card = (card_state){.absent = false};
    plugin = (tnrdma_plugin){.verbs = &card_verbs,
                             .device = "auto",
                             .gid = -1,
                             .timeout = 14,
                             .retry = 6,
                             .handshake_ms = 60000,
                             .stall_ms = 60000,
                             .ring_bytes = 1 << 16};
    wire_use((const tn_transport_ops *)(const void *)tn_plugin_v1.capabilities[0], &plugin);
    return 0;
}

int plugin_teardown(void **state)
{
    (void)state;
    assert_int_equal(card_left(), 0);
    return 0;
}
