/*
 * The words of plugins/cuda/kernels/kernel.h for the host's compiler: a kernel becomes a function for one
 * thread, and a row that the emulator finds it by.
 */
#ifndef TNEMU_EMULATED_H
#define TNEMU_EMULATED_H

#include "emulator.h"

#include <stddef.h>

/* Where the thread that runs now is. */
typedef struct emu_place {
    uint32_t grid_dim[3], block_dim[3], block[3], thread[3];
} emu_place;

extern _Thread_local emu_place emu_at;

/* All threads of the block come here, at the same line. */
void emu_barrier(const char *file, int32_t line);
/* The value of thread `this ^ mask`: all 32 threads of a warp come here, at the same line. */
float emu_shuffle_float(float v, int32_t mask, const char *file, int32_t line);
double emu_shuffle_double(double v, int32_t mask, const char *file, int32_t line);
/* Memory that the threads of a block share: the same for all that come to this line. */
void *emu_shared(size_t item_bytes, size_t count, const char *file, int32_t line);
/* Element `index` of it, about to be read or written. */
void emu_shared_touch(const void *array, size_t item_bytes, int64_t index, bool writes, const char *file,
                      int32_t line);

#define EMU_FREE 0
#define EMU_SYNC 1

#define TNCUDA_BLOCK_THREADS 256
#define TNCUDA_KERNEL(name, mode, args) TNCUDA_KERNEL_(name, mode, args)
#define TNCUDA_KERNEL_(name, mode, args)                                                                     \
    static void name##_thread(const args *call);                                                             \
    static void name##_run(const void *call)                                                                 \
    {                                                                                                        \
        name##_thread((const args *)call);                                                                   \
    }                                                                                                        \
    static const emu_kernel name##_kernel = {#name, name##_run, (uint32_t)sizeof(args), EMU_##mode};         \
    static const emu_kernel *const name##_row __attribute__((used, section("tnemu_kernels"))) =              \
        &name##_kernel;                                                                                      \
    static void name##_thread(const args *call)

#define TNCUDA_INLINE static inline
#define TNCUDA_APART static inline
#define TNCUDA_UNROLL
#define TNCUDA_UNROLL_4
#define TNCUDA_ROLLED
#define TNCUDA_THREAD ((int32_t)emu_at.thread[0])
#define TNCUDA_THREADS ((int32_t)emu_at.block_dim[0])
#define TNCUDA_BLOCK ((int64_t)emu_at.block[0])
#define TNCUDA_BLOCKS ((int64_t)emu_at.grid_dim[0])
#define TNCUDA_SYNC() emu_barrier(__FILE__, __LINE__)
#define TNCUDA_SHUFFLE_XOR(value, mask)                                                                      \
    _Generic((value), float : emu_shuffle_float, double : emu_shuffle_double)(value, mask, __FILE__, __LINE__)
#define TNCUDA_SHARED(type, name, count)                                                                     \
    type *const name = (type *)emu_shared(sizeof(type), (count), __FILE__, __LINE__)
#define TNCUDA_GET(name, index)                                                                              \
    (emu_shared_touch(name, sizeof *(name), (index), false, __FILE__, __LINE__), (name)[index])
#define TNCUDA_PUT(name, index, value)                                                                       \
    do {                                                                                                     \
        emu_shared_touch(name, sizeof *(name), (index), true, __FILE__, __LINE__);                           \
        (name)[index] = (value);                                                                             \
    } while (0)

#endif
