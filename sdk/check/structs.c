/*
 * Structs in three lengths. Each lies in pages of its own: a header of ours, the struct, and behind it a page
 * that nobody may touch (old host) or a tail of poison (future host), which must stay as it is.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define POISON 0xA5u
#define TAIL_BYTES 64u /* by how much structs of the future are longer */
#define ALIGN 16u

typedef struct head {
    struct head *next; /* of those kept for later */
    unsigned char *data;
    uint32_t bytes; /* of the struct, its tail not counted */
    chk_host_kind kind;
    chk_guard *guard;
    char what[64];
} head;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Structs are smaller than a page: its header begins the page in which it begins, or the one before. */
static head *head_of(const void *made)
{
    uintptr_t page = page_bytes(), at = (uintptr_t)made;

    return (head *)(at - at % page);
}

/* Kept with their guard page, since mapping is most of what one costs. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static head *kept;

static head *head_take(chk_env *env)
{
    size_t page = page_bytes();
    unsigned char *map;
    head *h;

    (void)pthread_mutex_lock(&kept_lock);
    h = kept;
    if (h)
        kept = h->next;
    (void)pthread_mutex_unlock(&kept_lock);
    if (h)
        return h;
    map = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_READ | PROT_WRITE))
        chk_fail(env, "kit", "out of memory");
    h = (head *)(void *)map;
    h->guard = chk_guard_add(env, map + page, page, CHK_GUARD_BOUNDS, h->what);
    h->guard->rule = "R3";
    return h;
}

void *chk_struct_make(chk_env *env, chk_host_kind kind, const void *from, uint32_t now, uint32_t old)
{
    uint32_t bytes = kind == CHK_HOST_OLD ? old : now, size;
    size_t page = page_bytes();
    unsigned char *map;
    head *h;

    if (now > page - sizeof(head) - TAIL_BYTES - ALIGN || now < sizeof size)
        chk_fail(env, "kit", "a struct of %u bytes", (unsigned)now);
    h = head_take(env);
    map = (unsigned char *)h;
    h->bytes = bytes;
    h->kind = kind;
    h->data =
        kind == CHK_HOST_OLD ? map + (page - bytes) / 8 * 8 : map + page - (now + TAIL_BYTES + ALIGN) / 8 * 8;
    memset(h->data, POISON, (size_t)(map + page - h->data));
    memcpy(h->data, from, bytes);
    size = kind == CHK_HOST_FUTURE ? now + TAIL_BYTES : bytes;
    memcpy(h->data, &size, sizeof size);
    (void)snprintf(h->what, sizeof h->what, "memory behind a struct of %u bytes", (unsigned)bytes);
    return h->data;
}

bool chk_struct_intact(const void *made)
{
    const head *h = head_of(made);
    const unsigned char *page_end = (const unsigned char *)h + page_bytes();

    for (const unsigned char *at = h->data + h->bytes; at < page_end; at++)
        if (*at != POISON)
            return false;
    return true;
}

void chk_struct_free(chk_env *env, void *made)
{
    head *h;

    (void)env;
    if (!made)
        return;
    h = head_of(made);
    memset(h->data, POISON, page_bytes() - (size_t)(h->data - (unsigned char *)h));
    (void)pthread_mutex_lock(&kept_lock);
    h->next = kept;
    kept = h;
    (void)pthread_mutex_unlock(&kept_lock);
}
