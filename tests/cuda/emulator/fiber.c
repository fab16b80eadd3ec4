/*
 * One block of a kernel with barriers: each of its threads is a fiber, and the block goes on to the next
 * interval between barriers once all of them have come to the same one.
 *
 * Of each byte of shared memory it is known who wrote and read it in which interval: a read before a write,
 * or two threads at one byte in one interval, one of them writing, are defects, whatever order they came in.
 */
#include "emulated.h"
#include "emulator.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

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

typedef struct fiber {
    ucontext_t context;
    void *fake_stack;
    uint32_t arrays; /* TNCUDA_SHARED so far */
    bool ended;
    const char *file; /* of the barrier that it waits at */
    int32_t line;
} fiber;

typedef struct shadow {   /* of a byte */
    uint32_t wrote, read; /* the interval, from 1; 0: never */
    uint16_t writer, reader;
} shadow;

typedef struct block_state {
    fiber fibers[THREADS_MAX];
    ucontext_t back;
    void *back_fake;
    const void *back_stack;
    size_t back_bytes;
    char *stacks;
    const emu_kernel *kernel;
    const void *args;
    uint32_t thread, interval, arrays;
    struct {
        size_t at, item_bytes, count;
        const char *file;
        int32_t line;
    } array[ARRAYS_MAX];
    size_t shared_used;
    _Alignas(64) char shared[SHARED_BYTES];
    shadow shadows[SHARED_BYTES];
} block_state;

static _Thread_local block_state *now, *kept; /* while a block runs; from block to block */

/* ---- fibers ------------------------------------------------------------------------------------------ */

static void fiber_main(void)
{
    fiber *f = &now->fibers[now->thread];

    __sanitizer_finish_switch_fiber(NULL, &now->back_stack, &now->back_bytes);
    now->kernel->run(now->args);
    f->ended = true;
    __sanitizer_start_switch_fiber(NULL, now->back_stack, now->back_bytes);
    (void)swapcontext(&f->context, &now->back);
}

static void fiber_go(uint32_t thread)
{
    fiber *f = &now->fibers[thread];

    now->thread = thread;
    emu_thread_set(thread);
    __sanitizer_start_switch_fiber(&now->back_fake, now->stacks + thread * STACK_BYTES, STACK_BYTES);
    (void)swapcontext(&now->back, &f->context);
    __sanitizer_finish_switch_fiber(now->back_fake, NULL, NULL);
}

void emu_barrier(const char *file, int32_t line)
{
    fiber *f = now ? &now->fibers[now->thread] : NULL;

    if (!f)
        emu_defect("%s:%d: a barrier in a kernel that says FREE", file, (int)line);
    f->file = file;
    f->line = line;
    __sanitizer_start_switch_fiber(&f->fake_stack, now->back_stack, now->back_bytes);
    (void)swapcontext(&f->context, &now->back);
    __sanitizer_finish_switch_fiber(f->fake_stack, &now->back_stack, &now->back_bytes);
}

static void fiber_start(uint32_t thread)
{
    fiber *f = &now->fibers[thread];

    memset(f, 0, sizeof *f);
    if (getcontext(&f->context))
        emu_defect("no context for a thread");
    f->context.uc_stack.ss_sp = now->stacks + thread * STACK_BYTES;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
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
        if (!ended && (f->line != first->line || strcmp(f->file, first->file) != 0))
            emu_defect("%s:%d: threads of %s wait here, others at line %d", f->file, (int)f->line,
                       now->kernel->name, (int)first->line);
    }
    return ended == count;
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
    now->interval = 0;
    now->arrays = 0;
    memset(now->shared, 0xff, now->shared_used);
    memset(now->shadows, 0, now->shared_used * sizeof *now->shadows);
    now->shared_used = 0;
    for (uint32_t i = 0; i < count; i++)
        fiber_start(i);
    do {
        now->interval++;
        for (uint32_t i = 0; i < count; i++)
            fiber_go(seed & 1 ? (start + count - i) % count : (start + i) % count);
        start = (uint32_t)(emu_random(seed, now->interval) % count);
    } while (!interval_ended(count));
    now = NULL;
}

void emu_block_end(void)
{
    if (kept)
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

static void byte_touch(shadow *s, bool writes, const char *file, int32_t line)
{
    const uint16_t me = (uint16_t)now->thread;
    const uint32_t interval = now->interval;

    if (!writes && !s->wrote)
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
    if (i == now->arrays || index < 0 || (size_t)index >= now->array[i].count)
        emu_defect("%s:%d: element %lld of a shared array of %zu", file, (int)line, (long long)index,
                   i < now->arrays ? now->array[i].count : 0);
    for (size_t b = 0; b < item_bytes; b++)
        byte_touch(&now->shadows[at + (size_t)index * item_bytes + b], writes, file, line);
}
