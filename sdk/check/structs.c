/*
 * Structs in three lengths. Each lies at the end of a buffer of one page, behind a header of ours: directly
 * before the guard page (old host), or before a tail of poison (future host), which must stay as it is.
 */
#include <string.h>
#include <unistd.h>

#include "internal.h"

#define POISON 0xA5u
#define TAIL_BYTES 64u    /* by how much structs of the future are longer */
#define CANARY_BYTES 128u /* of the page, that are the buffer's */

typedef struct head {
    chk_buffer *buffer;
    unsigned char *data, *end; /* of the struct without its tail, and of the page */
    uint32_t bytes;
    char what[64];
} head;

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static head *head_of(const void *made)
{
    return (head *)((uintptr_t)made / page_bytes() * page_bytes() + CANARY_BYTES);
}

void *chk_struct_make(chk_env *env, chk_host_kind kind, const void *from, uint32_t now, uint32_t old)
{
    const uint32_t bytes = kind == CHK_HOST_OLD ? old : now, tail = kind == CHK_HOST_OLD ? 0 : TAIL_BYTES,
                   size = kind == CHK_HOST_FUTURE ? now + TAIL_BYTES : bytes;
    const uint64_t room = page_bytes() - CANARY_BYTES;
    chk_buffer *b;
    head *h;

    if (now > room - sizeof *h - TAIL_BYTES - 8 || now < sizeof size)
        chk_fail(env, "kit", "a struct of %u bytes", now);
    b = chk_buffer_create(env, room, 0, CHK_GUARD_END);
    h = memset(chk_buffer_data(b), POISON, room);
    *h = (head){.buffer = b, .end = (unsigned char *)h + room, .bytes = bytes};
    h->data = h->end - (bytes + tail + 7) / 8 * 8;
    memcpy(h->data, from, bytes);
    memcpy(h->data, &size, sizeof size);
    (void)snprintf(h->what, sizeof h->what, "memory behind a struct of %u bytes", bytes);
    chk_buffer_guard(b, "R3", h->what);
    return h->data;
}

bool chk_struct_intact(const void *made)
{
    const head *h = head_of(made);

    for (const unsigned char *at = h->data + h->bytes; at < h->end; at++)
        if (*at != POISON)
            return false;
    return true;
}

void chk_struct_free(void *made)
{
    if (made)
        chk_buffer_destroy(head_of(made)->buffer);
}
