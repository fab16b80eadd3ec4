/*
 * A transport with puts and regions (kinds/transport.c): the kit passes it, and finds each fault that is
 * planted in its twins.
 */
#include "kit.h"

static const kit_defect planted[] = {
    /* the fault, the rule, a rule that may fail with it, what is run */
    {"transport_sent_lost", "T-arrive", NULL, "--only transport/messages"},
    {"transport_sent_twice", "T-cookie", NULL, "--only transport/messages"},
    {"transport_sent_early", "T-bytes", NULL, "--only transport/messages"},
    {"transport_sent_behind", "T-cookie", NULL, "--only transport/down"},
    {"transport_cut", "T-bytes", NULL, "--only transport/messages"},
    {"transport_joined", "T-bytes", NULL, "--only transport/messages"},
    {"transport_half", "T-bytes", NULL, "--only transport/messages"},
    {"transport_came_twice", "T-once", NULL, "--only transport/messages"},
    {"transport_swapped", "T-order", NULL, "--only transport/messages"},
    {"transport_shifted", "T-align", NULL, "--only transport/messages"},
    {"transport_written", "T-bytes", NULL, "--only transport/messages"},
    {"transport_credit_lost", "T-credit", NULL, "--only transport/credit"},
    {"transport_no_queue_limit", "T-credit", NULL, "--only transport/credit"},
    {"transport_no_receive_limit", "T-bound", NULL, "--only transport/bound"},
    {"transport_down_twice", "T-down", NULL, "--only transport/down"},
    {"transport_down_lost", "T-nobody", NULL, "--only transport/nobody"},
    {"transport_bye_lost", "T-down", NULL, "--only transport/down"},
    {"transport_close_cuts", "T-close", NULL, "--only transport/close"},
    {"transport_wake_lost", "T-wake", NULL, "--only transport/wake"},
    {"transport_impatient", "T-timeout", NULL, "--only transport/timeout"},
    {"transport_long_sent", "T-long", NULL, "--only transport/long"},
    {"transport_long_taken", "T-long", NULL, "--only transport/long"},
    {"transport_no_links_limit", "T-links", NULL, "--only transport/links"},
    {"transport_listens_twice", "T-listen", NULL, "--only transport/listen"},
    {"transport_anywhere", "T-listen", NULL, "--only transport/listen"},
    {"transport_descriptor_left", "T-flat", NULL, "--only transport/flat"},
    {"transport_block_left", "T-flat", NULL, "--only transport/flat"},
    {"transport_stranger_costs", "T-stranger", NULL, "--only transport/strangers"},
    {"transport_stride", "R3", NULL, "--only transport/hosts"},
    {"transport_memory_other", "M-nomem", NULL, "--only transport/memory"},
    {"transport_beyond_landing", "T-put", NULL, "--only transport/put"},
    {"transport_other_slot", "T-put", NULL, "--only transport/put"},
    {"transport_region_left", "M-leak", NULL, "--only transport/regions"},
    {"transport_descriptor_deaf", "T-descriptor", NULL, "--only transport/descriptor"},
};

int main(void)
{
    static const char *const healthy[] = {"transport", NULL};

    return kit_defects("transports", "kinds/kind-", planted, sizeof planted / sizeof *planted, healthy);
}
