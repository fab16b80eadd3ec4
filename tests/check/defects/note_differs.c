/* The note, which is read before anything runs, says another version than the descriptor. */
#include "healthy.h"

static const tn_note note __attribute__((section(".note.tenon"), used, aligned(4))) = {
    6u,
    (uint32_t)sizeof(tn_note_body),
    TN_NOTE_TYPE,
    TN_NOTE_OWNER,
    {(uint32_t)TN_END(tn_note_body, provides), TN_MAGIC, TN_ABI_MAJOR, TN_ABI_TARGET, TN_ABI_MIN, 0u,
     "defect-note-differs", "1.0.0", TN_ABI_TAG, "", "Acme", "Apache-2.0", "a planted defect",
     "pool:first-fit"}};

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
