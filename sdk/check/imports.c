/*
 * What the plugin calls by itself: its entries for malloc and friends, and for functions that rule R8
 * forbids, are redirected here once it was opened. So its own memory is counted, its own allocations can
 * fail, and atexit is seen. Calls made inside other libraries are not redirected.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

#if defined(__x86_64__)
#define SLOT R_X86_64_JUMP_SLOT
#define DATA R_X86_64_GLOB_DAT
#define ADDRESS R_X86_64_64
#else
#define SLOT R_AARCH64_JUMP_SLOT
#define DATA R_AARCH64_GLOB_DAT
#define ADDRESS R_AARCH64_ABS64
#endif

/* ---- failing on demand ---- */

static atomic_llong fail_in = 0; /* 0: never; n: the n-th fails; -1: it was reached */

void chk_allocation_arm(uint64_t nth)
{
    atomic_store(&fail_in, (long long)nth);
}

long long chk_allocation_armed(void)
{
    return atomic_load(&fail_in);
}

long long chk_allocation_hold(void)
{
    return atomic_exchange(&fail_in, 0);
}

void chk_allocation_go_on(long long held)
{
    atomic_store(&fail_in, held);
}

bool chk_allocation_fails(void)
{
    long long at = atomic_load(&fail_in);

    while (at > 0)
        if (atomic_compare_exchange_weak(&fail_in, &at, at == 1 ? -1 : at - 1))
            return at == 1;
    return false;
}

/* ---- the plugin's own blocks ---- */

#define ROOM ((size_t)1 << 20) /* more than half as many at a time are not counted */

static struct {
    pthread_mutex_t lock;
    void *at[ROOM]; /* open addressing; NULL: free */
    size_t live;
    uint64_t bytes;
} blocks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t place_of(const void *p)
{
    return ((size_t)((uintptr_t)p >> 4) * (size_t)0x9E3779B97F4A7C15ULL >> 20) % ROOM;
}

/* Where it is, or would be. */
static size_t find_locked(const void *p)
{
    size_t i = place_of(p);

    while (blocks.at[i] && blocks.at[i] != p)
        i = (i + 1) % ROOM;
    return i;
}

/* What stands behind is moved up, unless it would come before its place. */
static void remove_locked(size_t i)
{
    for (size_t next = (i + 1) % ROOM; blocks.at[next]; next = (next + 1) % ROOM)
        if ((next - place_of(blocks.at[next])) % ROOM >= (next - i) % ROOM) {
            blocks.at[i] = blocks.at[next];
            i = next;
        }
    blocks.at[i] = NULL;
}

static void *add(void *p)
{
    (void)pthread_mutex_lock(&blocks.lock);
    if (p && blocks.live < ROOM / 2) {
        blocks.at[find_locked(p)] = p;
        blocks.live++;
        blocks.bytes += malloc_usable_size(p);
    }
    (void)pthread_mutex_unlock(&blocks.lock);
    return p;
}

static void drop(void *p)
{
    size_t i;

    (void)pthread_mutex_lock(&blocks.lock);
    if (p && blocks.at[i = find_locked(p)]) {
        remove_locked(i);
        blocks.live--;
        blocks.bytes -= malloc_usable_size(p);
    }
    (void)pthread_mutex_unlock(&blocks.lock);
}

void chk_imports_memory(uint64_t *bytes, uint64_t *count)
{
    (void)pthread_mutex_lock(&blocks.lock);
    *bytes = blocks.bytes;
    *count = blocks.live;
    (void)pthread_mutex_unlock(&blocks.lock);
}

/* ---- instead of the C library's ---- */

static void *nothing(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *own_malloc(size_t bytes)
{
    return chk_allocation_fails() ? nothing() : add(malloc(bytes));
}

static void *own_calloc(size_t count, size_t bytes)
{
    return chk_allocation_fails() ? nothing() : add(calloc(count, bytes));
}

static void *own_realloc(void *p, size_t bytes)
{
    void *made;

    if (chk_allocation_fails())
        return nothing();
    drop(p);
    made = realloc(p, bytes);
    if (!made && bytes)
        (void)add(p); /* it is still there */
    return add(made);
}

static void own_free(void *p)
{
    drop(p);
    free(p);
}

static int own_posix_memalign(void **out, size_t align, size_t bytes)
{
    int failed = chk_allocation_fails() ? ENOMEM : posix_memalign(out, align, bytes);

    if (!failed)
        (void)add(*out);
    return failed;
}

static void *own_aligned_alloc(size_t align, size_t bytes)
{
    return chk_allocation_fails() ? nothing() : add(aligned_alloc(align, bytes));
}

static void *own_memalign(size_t align, size_t bytes)
{
    return chk_allocation_fails() ? nothing() : add(memalign(align, bytes));
}

static char *own_strdup(const char *text)
{
    return chk_allocation_fails() ? nothing() : add(strdup(text));
}

static char *own_strndup(const char *text, size_t bytes)
{
    return chk_allocation_fails() ? nothing() : add(strndup(text, bytes));
}

static atomic_uint exits; /* calls of atexit */

static int own_cxa_atexit(void (*fn)(void *), void *arg, void *dso)
{
    (void)fn;
    (void)arg;
    (void)dso;
    atomic_fetch_add(&exits, 1);
    return 0;
}

uint32_t chk_imports_exits(void)
{
    return atomic_load(&exits);
}

static atomic_uint sockets; /* calls of socket and socketpair */

static int own_socket(int domain, int type, int protocol)
{
    atomic_fetch_add(&sockets, 1);
    return socket(domain, type, protocol);
}

uint32_t chk_imports_sockets(void)
{
    return atomic_load(&sockets);
}

/* ---- threads of its own ---- */

static atomic_uint threads; /* that run */

typedef struct begun {
    void *(*run)(void *arg);
    void *arg;
} begun;

static void thread_over(void *unused)
{
    (void)unused;
    atomic_fetch_sub(&threads, 1);
}

static void *thread_main(void *arg)
{
    const begun what = *(begun *)arg;
    void *result;

    free(arg);
    pthread_cleanup_push(thread_over, NULL);
    result = what.run(what.arg);
    pthread_cleanup_pop(1);
    return result;
}

static int own_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *arg),
                              void *arg)
{
    begun *what = malloc(sizeof *what);
    int failed;

    if (!what)
        return EAGAIN;
    *what = (begun){run, arg};
    atomic_fetch_add(&threads, 1);
    failed = pthread_create(thread, attr, thread_main, what);
    if (failed) {
        atomic_fetch_sub(&threads, 1);
        free(what);
    }
    return failed;
}

uint32_t chk_imports_threads(void)
{
    return atomic_load(&threads);
}

/* ---- redirecting ---- */

typedef void (*function)(void);
static const struct {
    const char *name;
    function to;
} hooks[] = {
    {"malloc", (function)own_malloc},
    {"calloc", (function)own_calloc},
    {"realloc", (function)own_realloc},
    {"free", (function)own_free},
    {"posix_memalign", (function)own_posix_memalign},
    {"aligned_alloc", (function)own_aligned_alloc},
    {"memalign", (function)own_memalign},
    {"strdup", (function)own_strdup},
    {"strndup", (function)own_strndup},
    {"__cxa_atexit", (function)own_cxa_atexit},
    {"socket", (function)own_socket},
    {"pthread_create", (function)own_pthread_create},
};

static function hook_of(const char *name)
{
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (strcmp(hooks[i].name, name) == 0)
            return hooks[i].to;
    return NULL;
}

typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *texts;
    const ElfW(Rela) * rela[2];
    size_t count[2];
} tables;

static tables tables_of(const struct link_map *map)
{
    tables t = {0};

    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        const void *at = (const void *)d->d_un.d_ptr; /* the linker made addresses of them */
        size_t size = d->d_un.d_val;

        if (d->d_tag == DT_SYMTAB)
            t.symbols = at;
        else if (d->d_tag == DT_STRTAB)
            t.texts = at;
        else if (d->d_tag == DT_RELA)
            t.rela[0] = at;
        else if (d->d_tag == DT_RELASZ)
            t.count[0] = size / sizeof *t.rela[0];
        else if (d->d_tag == DT_JMPREL)
            t.rela[1] = at;
        else if (d->d_tag == DT_PLTRELSZ)
            t.count[1] = size / sizeof *t.rela[1];
    }
    return t;
}

static bool slot_write(void *at, function to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at / page * page;

    if (mprotect((void *)from, page, PROT_READ | PROT_WRITE))
        return false;
    memcpy(at, &to, sizeof to);
    return true;
}

bool chk_imports_redirect(void *handle)
{
    struct link_map *map = NULL;
    tables t;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map)
        return false;
    t = tables_of(map);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; t.symbols && t.texts && t.rela[k] && i < t.count[k]; i++) {
            const ElfW(Rela) *r = &t.rela[k][i];
            uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
            function to = hook_of(t.texts + t.symbols[ELF64_R_SYM(r->r_info)].st_name);

            if (to && (type == SLOT || type == DATA || type == ADDRESS) &&
                !slot_write((void *)(map->l_addr + r->r_offset), to))
                return false;
        }
    return true;
}
