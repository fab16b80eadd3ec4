/* The note, which is read before anything runs, says another version than the descriptor. */
#include "healthy.h"

TN_NOTE_DEFINE(note, "defect-note-differs", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
               "pool:first-fit");

const tn_plugin tn_plugin_v1 = {(uint32_t)TN_END(tn_plugin, capabilities),
                                TN_MAGIC,
                                TN_ABI_MAJOR,
                                TN_ABI_TARGET,
                                TN_ABI_MIN,
                                0u,
                                "defect-note-differs",
                                "1.0.1",
                                "Acme",
                                "Apache-2.0",
                                "a planted defect",
                                NULL,
                                NULL,
                                NULL,
                                capabilities};
