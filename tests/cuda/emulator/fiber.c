/*
 * One block of a kernel with barriers: each of its threads is a fiber, and the block goes on to the next
 * interval between barriers once all of them have come to the same one. Fibers are kept from block to block.
 *
 * Threads that wait at a shuffle go on within the interval, once all 32 of their warp have come to it.
 *
 * Of each element of shared memory it is known who wrote and read it in which interval: a read before a
 * write, or two threads at one element in one interval, one of them writing, are defects, whatever order they
 * came in.
 */
#include "emulated.h"
#include "emulator.h"

#include <stdlib.h>
#include <string.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#ifdef EMU_ASAN
void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old, size_t *size_old);
#else
#define __sanitizer_start_switch_fiber(save, bottom, size) ((void)(save))
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)(save))
#endif

#define THREADS_MAX 1024u
#define STACK_BYTES ((size_t)64 << 10)
#define SHARED_BYTES 49152u /* of a block, as every GPU has */
#define ARRAYS_MAX 16u
#define NOBODY UINT16_MAX
#define WARP 32u

#ifdef __x86_64__
typedef void *place_kept; /* the stack's end, where the registers are that a call keeps */
#else
typedef ucontext_t place_kept;
#endif

typedef struct fiber {
    place_kept place;
    void *fake_stack;
    uint32_t arrays;   /* TNCUDA_SHARED so far */
    uint32_t shuffles; /* so far */
    bool ended, shuffling;
    const char *file; /* of the barrier or shuffle that it waits at */
    int32_t line;
} fiber;

typedef struct shadow {   /* of an element */
    uint32_t wrote, read; /* the interval; up to the block's `before`: never */
    uint16_t writer, reader;
} shadow;

typedef struct block_state {
    fiber fibers[THREADS_MAX];
    place_kept back;
    void *back_fake;
    const void *back_stack;
    size_t back_bytes;
    char *stacks;
    uint32_t started; /* fibers, from the first one */
    bool over;        /* no further block comes */
    const emu_kernel *kernel;
    const void *args;
    uint32_t thread, interval, before, arrays; /* intervals are counted on from block to block */
    struct {
        size_t at, item_bytes, count;
        const char *file;
        int32_t line;
    } array[ARRAYS_MAX];
    size_t shared_used;
    double brought[2][THREADS_MAX]; /* to shuffles: a thread may be at the next one before others go on */
    _Alignas(64) char shared[SHARED_BYTES];
    shadow shadows[SHARED_BYTES]; /* those of an array from its first byte on, one for each element */
} block_state;

static _Thread_local block_state *now, *kept; /* while a block runs; from block to block */

/* ---- going from stack to stack ----------------------------------------------------------------------- */

#ifdef __x86_64__
/* Keeps where it is called in `from` and goes on where `to` was kept. swapcontext would ask the system for
 * the mask of signals twice, which takes longer than what most kernels do between two barriers. */
void emu_go(place_kept *from, const place_kept *to) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
        ".hidden emu_go\n"
        ".globl emu_go\n"
        ".type emu_go, @function\n"
        "emu_go:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size emu_go, . - emu_go\n"
        ".popsection\n");

/* As if `main` had been called from nowhere, and emu_go in it at once. */
static void place_make(place_kept *at, char *stack, void (*main)(void))
{
    void **top = (void **)(void *)(stack + STACK_BYTES) - 8;

    memset(top, 0, 8 * sizeof *top);
    memcpy(&top[6], &main, sizeof main);
    *at = top;
}
#else
static void emu_go(place_kept *from, const place_kept *to)
{
    (void)swapcontext(from, to);
}

static void place_make(place_kept *at, char *stack, void (*main)(void))
{
    if (getcontext(at))
        emu_defect("no context for a thread");
    at->uc_stack.ss_sp = stack;
    at->uc_stack.ss_size = STACK_BYTES;
    at->uc_link = NULL;
    makecontext(at, main, 0);
}
#endif

/* ---- fibers ------------------------------------------------------------------------------------------ */

/* Back to the block; from there on when the thread is to go on. */
static void fiber_leave(fiber *f)
{
    __sanitizer_start_switch_fiber(&f->fake_stack, now->back_stack, now->back_bytes);
    emu_go(&f->place, &now->back);
    __sanitizer_finish_switch_fiber(f->fake_stack, &now->back_stack, &now->back_bytes);
}

/* A thread of one block after the other. */
static void fiber_main(void)
{
    fiber *f = &now->fibers[now->thread];

    __sanitizer_finish_switch_fiber(NULL, &now->back_stack, &now->back_bytes);
    while (!now->over) {
        now->kernel->run(now->args);
        f->ended = true;
        fiber_leave(f);
    }
    __sanitizer_start_switch_fiber(NULL, now->back_stack, now->back_bytes);
    emu_go(&f->place, &now->back);
}

static void fiber_go(uint32_t thread)
{
    fiber *f = &now->fibers[thread];

    now->thread = thread;
    emu_thread_set(thread);
    __sanitizer_start_switch_fiber(&now->back_fake, now->stacks + thread * STACK_BYTES, STACK_BYTES);
    emu_go(&now->back, &f->place);
    __sanitizer_finish_switch_fiber(now->back_fake, NULL, NULL);
}

void emu_barrier(const char *file, int32_t line)
{
    fiber *f = now ? &now->fibers[now->thread] : NULL;

    if (!f)
        emu_defect("%s:%d: a barrier in a kernel that says FREE", file, (int)line);
    f->file = file;
    f->line = line;
    fiber_leave(f);
}

double emu_shuffle_double(double v, int32_t mask, const char *file, int32_t line)
{
    const uint32_t thread = now ? now->thread : 0;
    fiber *f = now ? &now->fibers[thread] : NULL;
    double *brought;

    if (!f)
        emu_defect("%s:%d: a shuffle in a kernel that says FREE", file, (int)line);
    if (mask < 1 || mask >= (int32_t)WARP)
        emu_defect("%s:%d: a shuffle by %d, which is no other thread of a warp", file, (int)line, (int)mask);
    brought = now->brought[f->shuffles++ % 2];
    brought[thread] = v;
    f->file = file;
    f->line = line;
    f->shuffling = true;
    fiber_leave(f);
    return brought[thread ^ (uint32_t)mask];
}

float emu_shuffle_float(float v, int32_t mask, const char *file, int32_t line)
{
    return (float)emu_shuffle_double((double)v, mask, file, line);
}

static void fibers_start(uint32_t count)
{
    for (; now->started < count; now->started++)
        place_make(&now->fibers[now->started].place, now->stacks + now->started * STACK_BYTES, fiber_main);
    for (uint32_t i = 0; i < count; i++) {
        now->fibers[i].arrays = 0;
        now->fibers[i].ended = now->fibers[i].shuffling = false;
        now->fibers[i].shuffles = 0;
    }
}

/* All of them have come to the same barrier, or to the end: true. */
static bool interval_ended(uint32_t count)
{
    const fiber *first = &now->fibers[0];
    uint32_t ended = 0;

    for (uint32_t i = 0; i < count; i++)
        ended += now->fibers[i].ended;
    for (uint32_t i = 0; i < count; i++) {
        const fiber *f = &now->fibers[i];

        if (f->ended != first->ended)
            first = f->ended ? first : f;
        if (ended && ended < count && !f->ended)
            emu_defect("%s:%d: %u of %u threads of %s never come to this barrier", f->file, (int)f->line,
                       ended, count, now->kernel->name);
        if (!ended &&
            (f->line != first->line || (f->file != first->file && strcmp(f->file, first->file) != 0)))
            emu_defect("%s:%d: threads of %s wait here, others at line %d", f->file, (int)f->line,
                       now->kernel->name, (int)first->line);
    }
    return ended == count;
}

/* The warp from thread `first` on: all of its threads wait at the same shuffle: true; none at any: false. */
static bool warp_meets(uint32_t first, uint32_t count)
{
    const fiber *at = NULL;
    uint32_t come = 0;

    for (uint32_t i = first; i < first + WARP && i < count; i++) {
        const fiber *f = &now->fibers[i];

        if (!f->shuffling)
            continue;
        if (at && (f->line != at->line || strcmp(f->file, at->file) != 0))
            emu_defect("%s:%d: threads of a warp of %s shuffle here, others at line %d", f->file,
                       (int)f->line, now->kernel->name, (int)at->line);
        at = f;
        come++;
    }
    if (at && come < WARP)
        emu_defect("%s:%d: %u of %u threads of a warp of %s never come to this shuffle", at->file,
                   (int)at->line, WARP - come, WARP, now->kernel->name);
    return at != NULL;
}

/* Threads that wait at shuffles go on until all have come to a barrier or to the end. */
static void shuffles_run(uint32_t count, bool backwards)
{
    bool again = true;

    while (again) {
        again = false;
        for (uint32_t first = 0; first < count; first += WARP) {
            if (!warp_meets(first, count))
                continue;
            again = true;
            for (uint32_t i = 0; i < WARP; i++)
                now->fibers[first + i].shuffling = false;
            for (uint32_t i = 0; i < WARP; i++)
                fiber_go(first + (backwards ? WARP - 1 - i : i));
        }
    }
}

static block_state *state_make(void)
{
    block_state *s = emu_new(sizeof *s);

    s->stacks = emu_new(THREADS_MAX * STACK_BYTES);
    s->shared_used = SHARED_BYTES;
    return s;
}

void emu_block_run(const emu_kernel *kernel, const void *args, uint32_t count, uint64_t seed)
{
    uint32_t start = (uint32_t)(seed % count);

    if (!kept)
        kept = state_make();
    now = kept;
    now->kernel = kernel;
    now->args = args;
    now->arrays = 0;
    if (now->interval > UINT32_MAX / 2) {
        now->interval = 0;
        memset(now->shadows, 0, sizeof now->shadows);
    }
    now->before = now->interval;
    memset(now->shared, 0xff, now->shared_used);
    now->shared_used = 0;
    fibers_start(count);
    do {
        now->interval++;
        for (uint32_t i = 0, t = start; i < count; i++) {
            fiber_go(t);
            t = seed & 1 ? (t ? t : count) - 1 : t + 1 < count ? t + 1 : 0;
        }
        shuffles_run(count, seed & 1);
        start = (uint32_t)(emu_random(seed, now->interval - now->before) % count);
    } while (!interval_ended(count));
    now = NULL;
}

void emu_block_end(void)
{
    if (!kept)
        return;
    now = kept;
    now->over = true;
    for (uint32_t i = 0; i < now->started; i++)
        fiber_go(i);
    now = NULL;
    free(kept->stacks);
    free(kept);
    kept = NULL;
}

/* ---- shared memory ----------------------------------------------------------------------------------- */

void *emu_shared(size_t item_bytes, size_t count, const char *file, int32_t line)
{
    fiber *f = now ? &now->fibers[now->thread] : NULL;
    uint32_t i;

    if (!f)
        emu_defect("%s:%d: shared memory in a kernel that says FREE", file, (int)line);
    i = f->arrays++;
    if (i == ARRAYS_MAX)
        emu_defect("%s:%d: more than %u shared arrays", file, (int)line, ARRAYS_MAX);
    if (i == now->arrays) {
        const size_t at = (now->shared_used + 63) / 64 * 64;

        if (at + item_bytes * count > SHARED_BYTES)
            emu_defect("%s:%d: a block of %s shares more than %u bytes", file, (int)line, now->kernel->name,
                       SHARED_BYTES);
        now->array[i].at = at;
        now->array[i].item_bytes = item_bytes;
        now->array[i].count = count;
        now->array[i].file = file;
        now->array[i].line = line;
        now->shared_used = at + item_bytes * count;
        now->arrays++;
    }
    if (now->array[i].line != line || now->array[i].item_bytes != item_bytes || now->array[i].count != count)
        emu_defect("%s:%d: threads of a block declare other shared arrays", file, (int)line);
    return now->shared + now->array[i].at;
}

static void element_touch(shadow *s, bool writes, const char *file, int32_t line)
{
    const uint16_t me = (uint16_t)now->thread;
    const uint32_t interval = now->interval;

    if (!writes && s->wrote <= now->before)
        emu_defect("%s:%d: thread %u reads shared memory that nobody has written", file, (int)line, me);
    if (s->wrote == interval && s->writer != me)
        emu_defect("%s:%d: threads %u and %u use one shared element, without a barrier between", file,
                   (int)line, s->writer, me);
    if (writes && s->read == interval && s->reader != me)
        emu_defect("%s:%d: thread %u writes what thread %u reads, without a barrier between", file, (int)line,
                   me, s->reader == NOBODY ? 0u : s->reader);
    if (writes) {
        s->wrote = interval;
        s->writer = me;
        return;
    }
    s->reader = s->read == interval && s->reader != me ? NOBODY : me;
    s->read = interval;
}

void emu_shared_touch(const void *array, size_t item_bytes, int64_t index, bool writes, const char *file,
                      int32_t line)
{
    const size_t at = (size_t)((const char *)array - now->shared);
    uint32_t i = 0;

    while (i < now->arrays && now->array[i].at != at)
        i++;
    if (i < now->arrays && item_bytes != now->array[i].item_bytes)
        emu_defect("%s:%d: an element of %zu bytes of a shared array whose own are of %zu", file, (int)line,
                   item_bytes, now->array[i].item_bytes);
    if (i == now->arrays || index < 0 || (size_t)index >= now->array[i].count)
        emu_defect("%s:%d: element %lld of a shared array of %zu", file, (int)line, (long long)index,
                   i < now->arrays ? now->array[i].count : 0);
    element_touch(&now->shadows[at + (size_t)index], writes, file, line);
}
