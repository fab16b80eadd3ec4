/* Kernels with a planted defect each, for test_defects.c; `sum`, `sum_of_warps` and `twice` have none. */
#include "defects.h"
#include "kernels/kernel.h"

#define COUNT 256
#define EACH for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)

TNCUDA_KERNEL(twice, FREE, defect_args)
{
    EACH
        call->out[i] = 2 * call->in[i];
}

TNCUDA_KERNEL(sum, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);

    TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    TNCUDA_SYNC();
    for (int32_t half = COUNT / 2; half > 0; half /= 2) {
        if (TNCUDA_THREAD < half) {
            const float v = TNCUDA_GET(part, TNCUDA_THREAD) + TNCUDA_GET(part, TNCUDA_THREAD + half);

            TNCUDA_PUT(part, TNCUDA_THREAD, v);
        }
        TNCUDA_SYNC();
    }
    if (TNCUDA_THREAD == 0)
        call->out[TNCUDA_BLOCK] = TNCUDA_GET(part, 0);
}

TNCUDA_KERNEL(sum_of_warps, SYNC, defect_args)
{
    float v = call->in[TNCUDA_FIRST];

    for (int32_t mask = 16; mask > 0; mask /= 2)
        v += TNCUDA_SHUFFLE_XOR(v, mask);
    call->out[TNCUDA_FIRST] = v;
}

/* Half of each warp is not there. */
TNCUDA_KERNEL(shuffle_in_a_branch, SYNC, defect_args)
{
    float v = call->in[TNCUDA_FIRST];

    if (TNCUDA_THREAD % 32 < 16)
        v += TNCUDA_SHUFFLE_XOR(v, 8);
    call->out[TNCUDA_FIRST] = v;
}

TNCUDA_KERNEL(return_before_shuffle, SYNC, defect_args)
{
    if (TNCUDA_FIRST >= call->count - 1)
        return;
    call->out[TNCUDA_FIRST] = TNCUDA_SHUFFLE_XOR(call->in[TNCUDA_FIRST], 1);
}

TNCUDA_KERNEL(two_shuffles, SYNC, defect_args)
{
    float v = call->in[TNCUDA_FIRST];

    if (TNCUDA_THREAD & 1)
        v += TNCUDA_SHUFFLE_XOR(v, 2);
    else
        v += TNCUDA_SHUFFLE_XOR(v, 4);
    call->out[TNCUDA_FIRST] = v;
}

/* Half of each warp waits at a barrier, which the shuffle is none for. */
TNCUDA_KERNEL(shuffle_beside_a_barrier, SYNC, defect_args)
{
    float v = call->in[TNCUDA_FIRST];

    if (TNCUDA_THREAD & 1)
        TNCUDA_SYNC();
    else
        v += TNCUDA_SHUFFLE_XOR(v, 2);
    call->out[TNCUDA_FIRST] = v;
}

TNCUDA_KERNEL(shuffle_beyond_the_warp, SYNC, defect_args)
{
    call->out[TNCUDA_FIRST] = TNCUDA_SHUFFLE_XOR(call->in[TNCUDA_FIRST], 32);
}

/* A shuffle orders no shared memory. */
TNCUDA_KERNEL(shuffle_as_barrier, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);
    float v = call->in[TNCUDA_FIRST];

    TNCUDA_PUT(part, TNCUDA_THREAD, v);
    v = TNCUDA_SHUFFLE_XOR(v, 1);
    call->out[TNCUDA_FIRST] = v + TNCUDA_GET(part, TNCUDA_THREAD ^ 1);
}

TNCUDA_KERNEL(shuffle_in_free, FREE, defect_args)
{
    call->out[TNCUDA_FIRST] = TNCUDA_SHUFFLE_XOR(call->in[TNCUDA_FIRST], 1);
}

/* No barrier between a write and another thread's read. */
TNCUDA_KERNEL(read_too_early, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);

    TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    call->out[TNCUDA_FIRST] = TNCUDA_GET(part, COUNT - 1 - TNCUDA_THREAD);
}

/* No barrier between a read and the next write. */
TNCUDA_KERNEL(write_too_early, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);
    float other;

    TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    TNCUDA_SYNC();
    other = TNCUDA_GET(part, COUNT - 1 - TNCUDA_THREAD);
    TNCUDA_PUT(part, TNCUDA_THREAD, other);
    TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = TNCUDA_GET(part, TNCUDA_THREAD);
}

/* A tree without the barrier between its levels. */
TNCUDA_KERNEL(tree_without_barrier, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);

    TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    TNCUDA_SYNC();
    for (int32_t half = COUNT / 2; half > 0; half /= 2)
        if (TNCUDA_THREAD < half) {
            const float v = TNCUDA_GET(part, TNCUDA_THREAD) + TNCUDA_GET(part, TNCUDA_THREAD + half);

            TNCUDA_PUT(part, TNCUDA_THREAD, v);
        }
    TNCUDA_SYNC();
    if (TNCUDA_THREAD == 0)
        call->out[TNCUDA_BLOCK] = TNCUDA_GET(part, 0);
}

TNCUDA_KERNEL(barrier_in_a_branch, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);

    TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    if (TNCUDA_THREAD < COUNT / 2)
        TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = TNCUDA_GET(part, TNCUDA_THREAD);
}

TNCUDA_KERNEL(return_before_barrier, SYNC, defect_args)
{
    if (TNCUDA_FIRST >= call->count - 1)
        return;
    TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = call->in[TNCUDA_FIRST];
}

TNCUDA_KERNEL(two_barriers, SYNC, defect_args)
{
    if (TNCUDA_THREAD & 1)
        TNCUDA_SYNC();
    else
        TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = call->in[TNCUDA_FIRST];
}

/* The first element is never written. */
TNCUDA_KERNEL(shared_unwritten, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);

    if (TNCUDA_THREAD > 0)
        TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = TNCUDA_GET(part, TNCUDA_THREAD);
}

/* Shared memory holds nothing of the block that ran before. */
TNCUDA_KERNEL(shared_of_another_block, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);

    if (TNCUDA_BLOCK == 0)
        TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = TNCUDA_GET(part, TNCUDA_THREAD);
}

/* Bytes of floats. */
TNCUDA_KERNEL(shared_of_another_size, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);
    char *const bytes = (char *)part;

    TNCUDA_PUT(part, TNCUDA_THREAD, call->in[TNCUDA_FIRST]);
    TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = (float)TNCUDA_GET(bytes, TNCUDA_THREAD);
}

TNCUDA_KERNEL(shared_beyond, SYNC, defect_args)
{
    TNCUDA_SHARED(float, part, COUNT);

    TNCUDA_PUT(part, TNCUDA_THREAD + 1, call->in[TNCUDA_FIRST]);
    TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = call->in[TNCUDA_FIRST];
}

TNCUDA_KERNEL(shared_too_large, SYNC, defect_args)
{
    TNCUDA_SHARED(double, part, 8192);

    TNCUDA_PUT(part, TNCUDA_THREAD, 1);
    call->out[TNCUDA_FIRST] = (float)TNCUDA_GET(part, TNCUDA_THREAD);
}

TNCUDA_KERNEL(barrier_in_free, FREE, defect_args)
{
    TNCUDA_SYNC();
    call->out[TNCUDA_FIRST] = call->in[TNCUDA_FIRST];
}

/* The last thread reads behind the array. */
TNCUDA_KERNEL(beyond_the_end, FREE, defect_args)
{
    EACH
        call->out[i] = call->in[i] + call->in[i + 1];
}

/* The last block forgets to stop. */
TNCUDA_KERNEL(no_bound, FREE, defect_args)
{
    call->out[TNCUDA_FIRST] = call->in[TNCUDA_FIRST];
}

/* What another thread may have written already. */
TNCUDA_KERNEL(shift_in_place, FREE, defect_args)
{
    EACH {
        if (i + 1 < call->count)
            call->out[i] = call->out[i + 1];
    }
}

/* A sum in the order that blocks come in. */
TNCUDA_KERNEL(sum_over_blocks, FREE, defect_args)
{
    EACH
        call->out[0] += call->in[i];
}

/* A block reads what another one writes. */
TNCUDA_KERNEL(blocks_in_order, FREE, defect_args)
{
    if (TNCUDA_THREAD == 0)
        call->out[TNCUDA_BLOCK] = TNCUDA_BLOCK ? call->out[TNCUDA_BLOCK - 1] + 1 : 1;
}
