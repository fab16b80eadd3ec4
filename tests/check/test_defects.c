/*
 * Plugins as a whole, pools and devices, each with one defect (defects/).
 */
#include "kit.h"

static const kit_defect defects[] = {
    {"init_blocks", "R8", NULL, "--only load"},
    {"init_hangs", "R8", NULL, "--only load/init-time"},
    {"init_signal", "R8", NULL, ""},
    {"init_setenv", "R8", NULL, ""},
    {"init_atexit", "R8", NULL, ""},
    {"init_socket", "R8", NULL, ""},
    {"init_once", "R9", NULL, ""},
    {"init_text", "R1", NULL, "--only load/init-again"},
    {"constructor", "R8", NULL, ""},
    {"two_exports", "R7", NULL, ""},
    {"core_symbol", "R7", NULL, ""},
    {"leak_service", "M-leak", NULL, ""},
    {"leak_malloc", "M-leak", NULL, ""},
    {"nomem_crash", "M-nomem", NULL, ""},
    {"thread_left", "R9", NULL, "--only load"},
    {"beyond_size", "R3", NULL, ""},
    {"exact_size", "R3", NULL, ""},
    {"note_differs", "L-note", "L-accepted", ""},
    {"not_provided", "L-note", "L-accepted", ""},
    {"option_rows", "O-rows", "O-values", ""},
    {"options_choice_waits", "R8", NULL, "--only options"},
    {"options_refusal_leaks", "M-leak", NULL, "--only options"},
    {"options_long_text", "O-values", NULL, "--only options"},
    {"init_timer", "R8", NULL, "--only load"},
    {"init_socket_closed", "R8", NULL, "--only load"},
    {"note_promises", "L-note", NULL, "--only load"},
    {"table_size", "R2", "L-accepted", ""},
    {"kernel_no_device", "L-kernel", "L-accepted", ""},
    {"kernel_no_list", "L-kernel", "L-accepted", ""},
    {"op_no_name", "L-operator", NULL, ""},
    {"pool_overlap", "P-overlap", NULL, ""},
    {"pool_misaligned", "P-align", NULL, ""},
    {"pool_trim", "P-trim", NULL, ""},
    {"pool_touches", "P-untouched", NULL, ""},
    {"pool_leak", "P-leak", "M-leak", ""},
    {"pool_streams", "P-streams", NULL, ""},
    {"pool_stats", "P-stats", NULL, ""},
    {"pool_status", "P-nomem", NULL, ""},
    {"pool_trim_over", "P-trim", NULL, "--only pool/trim"},
    {"pool_largest", "P-stats", NULL, "--only pool/stats"},
    {"pool_full_leak", "M-leak", NULL, "--only pool/full"},
    {"pool_unmarked", "P-streams", NULL, "--only pool/streams"},
    {"device_notify_twice", "D-notify", NULL, ""},
    {"device_notify_never", "D-notify", NULL, "--only device/notify"},
    {"device_copy_short", "D-copy", NULL, ""},
    {"device_copy_wide", "D-copy", NULL, ""},
    {"device_error_once", "D-error", NULL, ""},
    {"device_any_index", "D-count", NULL, ""},
    {"device_leak", "M-leak", NULL, ""},
    {"queue_copy_now", "D-order", NULL, "--only device/order"},
    {"queue_wait_blocks", "D-event", NULL, "--only device/events"},
    {"queue_wait_left", "D-event", NULL, "--only device/events"},
    {"queue_query_good", "D-error", NULL, "--only device/errors"},
    {"queue_peer_half", "D-copy", NULL, "--only device/copies"},
    {"queue_pinned_kept", "M-leak", NULL, "--only device/memory"},
    {"queue_one_level", "D-order", NULL, "--only device/order"},
    {"queue_no_memory", "M-nomem", NULL, "--only device/memory-fails"},
    {"queue_one_device", "R9", NULL, "--only device/twice"},
};

int main(void)
{
    static const char *const healthy[] = {"options", "queue", NULL};

    return kit_defects("defects", defects, sizeof defects / sizeof *defects, healthy);
}
