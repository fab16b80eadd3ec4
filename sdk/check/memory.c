/*
 * Buffers that tell, and the handler of faults.
 *
 * A buffer lies in pages of its own. What of its pages is not data holds a canary pattern; on request a page
 * that nobody may touch lies directly behind the last byte or before the first. The addresses of such pages
 * are kept in a table: a fault inside one is not a crash but the failure of a rule, told by the handler on
 * whatever thread it happened. All other faults keep their default: the process dies, and the parent says
 * CRASH.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "internal.h"

#define CANARY 0xC5u
#define SPOILED 0xFFu /* floats: NaN; integers: -1 or the largest */
#define KEPT_BYTES_MAX ((uint64_t)16 << 20)
#define GUARDS_MAX 32768 /* pages that tell at one time: a case with more frees some first */
#define ALIGNMENT 64u
#define BEHIND "memory behind its buffer"

struct chk_buffer {
    chk_buffer *next;     /* of those kept for later */
    unsigned char *map;   /* whole mapping, guards included */
    unsigned char *pages; /* the pages that may be touched */
    unsigned char *data;
    uint64_t map_bytes, page_bytes, bytes;
    chk_guard *guard_start, *guard_end, *locked;
    chk_owner owner;
};

/* ---- the table of guards ---- */

static chk_guard guards[GUARDS_MAX];
static atomic_size_t guard_count; /* places used up to now, holes included */
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t guard_hole; /* no hole below */
static chk_env *fault_env;

chk_guard *chk_guard_add(chk_env *env, const void *from, uint64_t bytes, uint32_t kind, const char *what)
{
    chk_guard *guard = NULL;

    (void)pthread_mutex_lock(&guard_lock);
    while (guard_hole < GUARDS_MAX && guards[guard_hole].to)
        guard_hole++;
    if (guard_hole < GUARDS_MAX) {
        guard = &guards[guard_hole++];
        guard->from = (uintptr_t)from;
        guard->kind = kind;
        guard->rule = NULL;
        guard->what = what;
        guard->owner = NULL;
        guard->to = (uintptr_t)from + bytes;
        if (atomic_load(&guard_count) < guard_hole)
            atomic_store(&guard_count, guard_hole);
    }
    (void)pthread_mutex_unlock(&guard_lock);
    chk_fail_if(env, !guard, "kit", "over %d guard pages at one time", GUARDS_MAX);
    return guard;
}

const void *chk_page_closed(chk_env *env, const char *rule, const char *what)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    chk_fail_if(env, map == MAP_FAILED, "kit", "out of memory");
    chk_guard_add(env, map, bytes, CHK_GUARD_BOUNDS, what)->rule = rule;
    return map;
}

static void guard_remove(chk_guard *guard)
{
    if (!guard)
        return;
    (void)pthread_mutex_lock(&guard_lock);
    guard->to = guard->from = 0;
    if ((size_t)(guard - guards) < guard_hole)
        guard_hole = (size_t)(guard - guards);
    (void)pthread_mutex_unlock(&guard_lock);
}

static const chk_guard *guard_of(uintptr_t address)
{
    size_t count = atomic_load(&guard_count);

    for (size_t i = 0; i < count; i++)
        if (address >= guards[i].from && address < guards[i].to)
            return &guards[i];
    return NULL;
}

/* ---- faults ---- */

/* Where the processor tells reading from writing. */
static const char *touch_of(const void *context)
{
#if defined(__x86_64__) && defined(REG_ERR)
    const ucontext_t *at = context;

    return at->uc_mcontext.gregs[REG_ERR] & 2 ? "writes" : "reads";
#else
    (void)context;
    return "touches";
#endif
}

static void fault(int signal_number, siginfo_t *info, void *context)
{
    static const chk_owner nobody = {"", "", ""};
    chk_case *c = chk_case_of(fault_env);
    const chk_guard *guard = guard_of((uintptr_t)info->si_addr);
    const chk_owner *owner = guard && guard->owner && guard->owner->kind ? guard->owner : &nobody;
    const char *rule;

    /* Another thread may be about to say what is wrong: it is not cut short. */
    if ((!guard && !atomic_load(&c->speaker)) || !chk_speak(c)) {
        (void)signal(signal_number, SIG_DFL);
        return; /* and faults again, for good */
    }
    rule = guard->kind == CHK_GUARD_LOCKED ? c->read_only_rule : c->bounds_rule;
    c->verdict.result = CHK_FAIL;
    (void)snprintf(c->verdict.rule, sizeof c->verdict.rule, "%s", guard->rule ? guard->rule : rule);
    (void)snprintf(c->verdict.message, sizeof c->verdict.message, "%s %s %s%s%s%s, %lld bytes in%s%s%s",
                   c->fault_who ? c->fault_who : "the plugin", touch_of(context), guard->what,
                   *owner->kind ? ", that of " : "", owner->kind, owner->name,
                   (long long)((uintptr_t)info->si_addr - guard->from), *owner->problem ? " (" : "",
                   owner->problem, *owner->problem ? ")" : "");
    if (c->pipe < 0 && !c->twin) { /* in a debugger: here it is */
        (void)signal(signal_number, SIG_DFL);
        (void)!write(2, c->verdict.message, strlen(c->verdict.message));
        (void)!write(2, "\n", 1);
        return;
    }
    chk_verdict_send(c);
    _exit(0);
}

void chk_faults_catch(chk_env *env)
{
    static unsigned char stack[65536];
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};

    fault_env = env;
    (void)sigaltstack(&own, NULL);
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
}

void chk_fault_rules(chk_env *env, const char *bounds, const char *read_only, const char *who)
{
    chk_case *c = chk_case_of(env);

    c->bounds_rule = bounds;
    c->read_only_rule = read_only;
    c->fault_who = who;
}

/* ---- buffers ---- */

static uint64_t page_up(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* Where the data lies in `page_bytes` bytes. */
static uint64_t place(uint64_t page_bytes, uint64_t bytes, uint64_t offset, uint32_t flags)
{
    if (flags & CHK_GUARD_END) /* the last byte before the guard: the alignment is what `bytes` leaves */
        return page_bytes - bytes;
    if (flags & CHK_GUARD_START)
        return 0;
    return ALIGNMENT + offset;
}

/* Mapping, protecting and unmapping is most of what a small buffer costs, so destroyed ones are kept, guards
 * and all. What they hold is spoiled: who still reads there gets no number that makes sense. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static chk_buffer *kept;
static uint64_t kept_bytes;

static chk_buffer *kept_take(uint64_t page_bytes)
{
    chk_buffer **at = &kept, *b;

    (void)pthread_mutex_lock(&kept_lock);
    while (*at && (*at)->page_bytes != page_bytes)
        at = &(*at)->next;
    b = *at;
    if (b) {
        *at = b->next;
        kept_bytes -= b->page_bytes;
    }
    (void)pthread_mutex_unlock(&kept_lock);
    return b;
}

static chk_buffer *buffer_map(chk_env *env, uint64_t page_bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    chk_buffer *b = calloc(1, sizeof *b);

    chk_fail_if(env, !b, "kit", "out of memory");
    b->page_bytes = page_bytes;
    b->map_bytes = page_bytes + 2 * page;
    b->map = mmap(NULL, b->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    b->pages = b->map + page;
    if (b->map == MAP_FAILED || mprotect(b->pages, page_bytes, PROT_READ | PROT_WRITE))
        chk_fail(env, "kit", "out of memory for a buffer of %llu bytes", (unsigned long long)page_bytes);
    b->guard_start = chk_guard_add(env, b->map, page, CHK_GUARD_BOUNDS, "memory before its buffer");
    b->guard_end = chk_guard_add(env, b->pages + page_bytes, page, CHK_GUARD_BOUNDS, BEHIND);
    b->guard_start->owner = b->guard_end->owner = &b->owner;
    return b;
}

chk_buffer *chk_buffer_create(chk_env *env, uint64_t bytes, uint64_t offset, uint32_t flags)
{
    uint64_t pages = page_up(bytes + offset + 2 * (uint64_t)ALIGNMENT);
    chk_buffer *b = kept_take(pages);

    if (!b)
        b = buffer_map(env, pages);
    b->bytes = bytes;
    b->data = b->pages + place(pages, bytes, offset, flags);
    memset(b->pages, CANARY, (size_t)(b->data - b->pages));
    memset(b->data + bytes, CANARY, (size_t)(b->pages + pages - (b->data + bytes)));
    return b;
}

void chk_buffer_guard(chk_buffer *b, const char *rule, const char *what)
{
    b->guard_end->rule = rule;
    b->guard_end->what = what;
}

void *chk_buffer_data(const chk_buffer *b)
{
    return b->data;
}

void *chk_buffer_pages(const chk_buffer *b, uint64_t *bytes)
{
    *bytes = b->page_bytes;
    return b->pages;
}

void chk_buffer_lock(chk_buffer *b)
{
    if (b->locked || mprotect(b->pages, b->page_bytes, PROT_READ))
        return;
    b->locked =
        chk_guard_add(fault_env, b->pages, b->page_bytes, CHK_GUARD_LOCKED, "memory that it may only read");
    b->locked->owner = &b->owner;
}

void chk_buffer_end(chk_buffer *b, const char *rule, const char *what)
{
    if (b->locked || mprotect(b->pages, b->page_bytes, PROT_NONE))
        return;
    b->locked = chk_guard_add(fault_env, b->pages, b->page_bytes, CHK_GUARD_BOUNDS, what);
    b->locked->rule = rule;
}

void chk_buffer_unlock(chk_buffer *b)
{
    guard_remove(b->locked);
    b->locked = NULL;
    (void)mprotect(b->pages, b->page_bytes, PROT_READ | PROT_WRITE);
}

/* Each byte is a canary: the first one, and each as the one before it. */
static bool is_canary(const unsigned char *from, const unsigned char *to)
{
    return from == to || (*from == CANARY && !memcmp(from, from + 1, (size_t)(to - from) - 1));
}

bool chk_buffer_intact(const chk_buffer *b, uint64_t *offset)
{
    const unsigned char *end = b->data + b->bytes;

    if (is_canary(b->pages, b->data) && is_canary(end, b->pages + b->page_bytes))
        return true;
    for (const unsigned char *at = end; at < b->pages + b->page_bytes; at++)
        if (*at != CANARY) {
            *offset = (uint64_t)(at - b->data);
            return false;
        }
    for (const unsigned char *at = b->data; at-- > b->pages;)
        if (*at != CANARY) {
            *offset = (uint64_t)(at - b->data);
            return false;
        }
    return true;
}

void chk_buffer_owner(chk_buffer *b, const char *kind, const char *name, const char *problem)
{
    b->owner = (chk_owner){kind, name, problem ? problem : ""};
}

void chk_buffer_destroy(chk_buffer *b)
{
    bool keeps;

    if (!b)
        return;
    if (b->locked)
        chk_buffer_unlock(b);
    b->owner = (chk_owner){NULL, NULL, NULL};
    chk_buffer_guard(b, NULL, BEHIND);
    memset(b->pages, SPOILED, b->page_bytes);
    (void)pthread_mutex_lock(&kept_lock);
    keeps = kept_bytes + b->page_bytes <= KEPT_BYTES_MAX;
    if (keeps) {
        b->next = kept;
        kept = b;
        kept_bytes += b->page_bytes;
    }
    (void)pthread_mutex_unlock(&kept_lock);
    if (keeps)
        return;
    guard_remove(b->guard_start);
    guard_remove(b->guard_end);
    (void)munmap(b->map, b->map_bytes);
    free(b);
}
