/* The reader of what the linker needs, on exactly the bytes given: libraries, names, the entry symbol,
 * constructors. */
#include <stdlib.h>
#include <string.h>

#include "plugin/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tni_elf e = {.name = "f", .bytes = data, .fd = -1, .size = size};
    char text[TNI_LIBRARY_BYTES], needed[200];
    tni_link l;
    tn_status st;

    memset(&l, 0x5a, sizeof l);
    st = tni_link_read(&e, &l);
    if (st) {
        if (tni_refusal_code() != 3 && tni_refusal_code() != 4)
            abort(); /* refused without a code that fits */
        return 0;
    }
    if (l.needed_count > TNI_ELF_NEEDED_MAX || l.strings > size || l.strings_size > size - l.strings)
        abort();
    memset(text, 'x', sizeof text);
    for (uint32_t i = 0; i < l.needed_count; i++)
        if (!tni_link_text(&e, &l, l.needed[i], text, sizeof text) && !memchr(text, '\0', sizeof text))
            abort();
    for (uint32_t i = 0; i < l.needed_count; i++) {
        char small[12]; /* what does not fit is an error, and never a text without an end */

        memset(small, 'x', sizeof small);
        if (!tni_link_text(&e, &l, l.needed[i], small, sizeof small) && !memchr(small, '\0', sizeof small))
            abort();
    }
    tni_link_needed(&e, &l, needed, sizeof needed);
    if (!memchr(needed, '\0', sizeof needed))
        abort();
    tni_error_clear();
    st = tni_link_defines(&e, &l, TNI_ENTRY);
    if (st && tni_refusal_code() != 12 && tni_refusal_code() != 3)
        abort();
    tni_error_clear();
    st = tni_link_quiet(&e, &l);
    if (st && tni_refusal_code() != 19 && tni_refusal_code() != 3)
        abort();
    return 0;
}
