/*
 * The words that kernels are written in: C as far as CUDA's compiler and the host's agree on it. The host's
 * makes kernels for the emulator of tests/cuda, which checks indices, barriers and shared memory.
 *
 *     TNCUDA_KERNEL(name, FREE, arguments)   no barrier and no shared memory; `call` is what it was given
 *     {
 *         for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
 *             …
 *     }
 *
 * A SYNC kernel may meet at TNCUDA_SYNC(), where all threads of its block come to the same line, and share
 * TNCUDA_SHARED(type, name, count), read by TNCUDA_GET(name, i) and written by TNCUDA_PUT(name, i, value).
 * TNCUDA_SHUFFLE_XOR(value, mask) is the value of thread TNCUDA_THREAD ^ mask, a float or a double; mask: 1
 * to 31. All 32 threads of a warp (32 n … 32 n + 31) come to the same line; it orders no memory.
 * Grids and blocks have one dimension; a kernel is launched by its name.
 */
#ifndef TNCUDA_KERNEL_H
#define TNCUDA_KERNEL_H

#ifndef TNCUDA_KERNEL /* the emulator has given its own: tests/cuda/emulator/emulated.h */
#define TNCUDA_BLOCK_THREADS 256
#ifndef TNCUDA_BOUNDS /* with a 1 behind it the compiler spills no registers for more blocks at once */
#define TNCUDA_BOUNDS TNCUDA_BLOCK_THREADS
#endif
#define TNCUDA_KERNEL(name, mode, args) TNCUDA_KERNEL_(name, mode, args)
#define TNCUDA_KERNEL_(name, mode, args)                                                                     \
    static __device__ __forceinline__ void name##_thread(const args *call);                                  \
    extern "C" __global__ void __launch_bounds__(TNCUDA_BOUNDS) name(const __grid_constant__ args given)     \
    {                                                                                                        \
        name##_thread(&given);                                                                               \
    }                                                                                                        \
    static __device__ __forceinline__ void name##_thread(const args *call)
#define TNCUDA_INLINE static __device__ inline
#define TNCUDA_APART static __device__ __noinline__ /* once in a file: for what is seldom */
#define TNCUDA_THREAD ((int32_t)threadIdx.x)
#define TNCUDA_THREADS ((int32_t)blockDim.x)
#define TNCUDA_BLOCK ((int64_t)blockIdx.x)
#define TNCUDA_BLOCKS ((int64_t)gridDim.x)
#define TNCUDA_SYNC() __syncthreads()
#define TNCUDA_SHUFFLE_XOR(value, mask) __shfl_xor_sync(0xffffffffu, (value), (mask))
#define TNCUDA_SHARED(type, name, count) __shared__ type name[count]
#define TNCUDA_GET(name, index) ((name)[index])
#define TNCUDA_PUT(name, index, value) ((name)[index] = (value))
#define TNCUDA_UNROLL _Pragma("unroll")     /* in front of a loop whose arrays are to be registers */
#define TNCUDA_UNROLL_4 _Pragma("unroll 4") /* of one whose loads are to be under way together */
#define TNCUDA_ROLLED _Pragma("unroll 1")   /* in front of a loop that would be long */
/* Words of two float16 or bfloat16, by one instruction: the same bits as storage.h makes of all but NaN. */
#if __CUDA_ARCH__ >= 800
#define TNCUDA_CONVERTS 1
#define TNCUDA_PAIR_F16(word, low, high)                                                                     \
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low))
#define TNCUDA_PAIR_BF16(word, low, high)                                                                    \
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low))
#define TNCUDA_HALVES(word, low, high)                                                                       \
    asm("{ .reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"                      \
        : "=f"(low), "=f"(high)                                                                              \
        : "r"(word))
#endif
#endif

#ifndef TNCUDA_CONVERTS
#define TNCUDA_CONVERTS 0
#define TNCUDA_PAIR_F16(word, low, high)
#define TNCUDA_PAIR_BF16(word, low, high)
#define TNCUDA_HALVES(word, low, high)
#endif

#define TNCUDA_ALIGNED(bytes) __attribute__((aligned(bytes))) /* of a type: it is read and written as one */

#define TNCUDA_FIRST (TNCUDA_BLOCK * TNCUDA_THREADS + TNCUDA_THREAD)
#define TNCUDA_STEP (TNCUDA_BLOCKS * TNCUDA_THREADS)

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#endif
