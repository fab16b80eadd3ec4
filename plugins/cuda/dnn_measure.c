/*
 * Which of several execution plans is the fastest, on the device itself: each runs on memory of its own, in a
 * stream of its own, a few times in a row, and the host's clock says how long they took. All plans that are
 * tried give sums of the same precision; which one is taken is a matter of time, and so may be the last bits.
 */
#include "dnn.h"

#include <string.h>
#include <time.h>

#define RUNS 8u                   /* in a row: together they take longer than it takes to ask for them */
#define ROUNDS 3u                 /* of all plans by turns; the least counts */
#define ZEROS 65536u              /* bytes that come from the host */
#define AHEAD(a) ((a) - (a) / 16) /* below it another is clearly ahead of `a` */

typedef struct memory {
    char *data;
    uint64_t bytes;
} memory;

static uint64_t clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Room for `count` elements behind what is there: its place in the memory to come. */
static uint64_t room(memory *m, int64_t count, uint64_t each)
{
    const uint64_t at = m->bytes;

    m->bytes += tncuda_aligned((uint64_t)count * each);
    return at;
}

static int64_t volume(const int64_t *extent)
{
    return extent[0] * extent[1] * extent[2];
}

/* All zero, so that no sum meets numbers that are none. */
static bool zeros_copy(const tncuda_driver *d, tncuda_stream stream, const memory *m)
{
    static const char zeros[ZEROS];
    uint64_t done = m->bytes < ZEROS ? m->bytes : ZEROS;
    bool well = !d->copy((tncuda_address)(uintptr_t)m->data, (tncuda_address)(uintptr_t)zeros, done, stream);

    while (well && done < m->bytes) {
        const uint64_t part = m->bytes - done < done ? m->bytes - done : done;

        well = !d->copy((tncuda_address)(uintptr_t)(m->data + done), (tncuda_address)(uintptr_t)m->data, part,
                        stream);
        done += part;
    }
    return well && !d->stream_wait(stream);
}

/* `runs` of a plan; UINT64_MAX: it cannot run. */
static uint64_t time_of(const tncuda_dnn_plan *p, tncuda_dnn_descriptor plan, const tncuda_dnn_args *args,
                        tncuda_stream stream, uint32_t runs)
{
    const uint64_t began = clock_ns();
    tncuda_dnn_status status = 0;
    const char *call;

    for (uint32_t i = 0; i < runs && !status; i++)
        status = tncuda_dnn_execute(p, plan, args, &call);
    return p->plugin->driver.stream_wait(stream) || status ? UINT64_MAX : clock_ns() - began;
}

static uint32_t fastest(const tncuda_dnn_plan *p, uint32_t count, const tncuda_dnn_descriptor *plans,
                        const tncuda_dnn_args *args, tncuda_stream stream)
{
    uint64_t least[TNCUDA_DNN_WAYS];
    uint32_t best = 0;

    for (uint32_t i = 0; i < count; i++) /* loads what they need */
        least[i] = time_of(p, plans[i], args, stream, 1) == UINT64_MAX ? 0 : UINT64_MAX;
    for (uint32_t k = 0; k < ROUNDS * count; k++) {
        const uint32_t i = k % count;
        const uint64_t now = least[i] ? time_of(p, plans[i], args, stream, RUNS) : 0;

        least[i] = now < least[i] ? now : least[i];
    }
    for (uint32_t i = 0; i < count; i++) /* 0: it did not run */
        if (least[i] && (!least[best] || least[i] < AHEAD(least[best])))
            best = i;
    return best;
}

/* The arrays of the form, one behind the other. */
static void arrays(const tncuda_dnn_form *f, uint64_t workspace_bytes, memory *m, uint64_t at[6])
{
    const uint64_t each = tn_dtype_bytes(f->dtype);
    const int64_t count = f->batch * f->filters * volume(f->out);

    at[0] = room(m, f->batch * f->channels * volume(f->in), each);
    at[1] = room(m, f->filters * (f->channels / f->groups) * volume(f->kernel), each);
    at[2] = room(m, count, each);
    at[3] = room(m, f->after & TNCUDA_DNN_ADDEND ? count : 0, each);
    at[4] = room(m, f->after & TNCUDA_DNN_BIAS ? f->filters : 0, each);
    at[5] = room(m, (int64_t)workspace_bytes, 1);
}

uint32_t tncuda_dnn_fastest_locked(const tncuda_dnn_plan *p, uint32_t count,
                                   const tncuda_dnn_descriptor *plans, uint64_t workspace_bytes)
{
    const tncuda_driver *d = &p->plugin->driver;
    tncuda_stream stream = NULL;
    tncuda_address address = 0;
    memory m = {0};
    uint64_t at[6];
    uint32_t best = 0;

    arrays(&p->form, workspace_bytes, &m, at);
    if (d->memory_alloc(&address, m.bytes))
        return 0;
    m.data = (char *)(uintptr_t)address;
    if (!d->stream_create(&stream, TNCUDA_STREAM_NON_BLOCKING, 0)) {
        const tncuda_dnn_args args = {.x = m.data + at[0],
                                      .w = m.data + at[1],
                                      .y = m.data + at[2],
                                      .addend = m.data + at[3],
                                      .bias = m.data + at[4],
                                      .workspace = m.data + at[5]};

        if (zeros_copy(d, stream, &m) && !p->dnn->stream(p->device->handle, stream))
            best = fastest(p, count, plans, &args, stream);
        (void)p->dnn->stream(p->device->handle, NULL);
        (void)d->stream_destroy(stream);
    }
    (void)d->memory_free(address);
    return best;
}
