/* The reader of ELF notes, on exactly the bytes given: from memory, and what it accepts through the checks
 * behind it. */
#include <stdlib.h>
#include <string.h>

#include "plugin/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_note note;
    tn_status st;

    memset(&note, 0x5a, sizeof note);
    st = tni_note_read_memory(data, size, "f", &note);
    if (st) {
        if (tni_refusal_code() == 0 || note.flags != 0x5a5a5a5a)
            abort(); /* refused without a code, or the output was touched */
        return 0;
    }
    if (!memchr(note.body.name, 0, sizeof note.body.name) ||
        (note.provides && strlen(note.provides) >= TN_NOTE_PROVIDES_MAX) ||
        strlen(note.build_id) >= sizeof note.build_id || !note.body.name[0])
        abort();
    if (tni_refuse_note(&note, tni_abi_of_core()) && tni_refusal_code() == 0)
        abort();
    tni_note_provides(&note, "kernels", "cpu");
    tni_note_provides(&note, "op", "acme_scale_shift");
    tni_note_clear(&note);
    return 0;
}
