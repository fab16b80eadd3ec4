/*
 * Modules and kernels. A module is any image that begins as a fatbinary does, or with the line of a build
 * without nvcc; kernels are found by name among those compiled into this library. Blocks run one after the
 * other, in an order that the seed gives; threads of a kernel without barriers as a plain loop.
 */
#include "emulated.h"
#include "emulator.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FATBIN_MAGIC 0xba55ed50u
#define IMAGE_LINE "tenon kernels for the emulator"

#define LIBRARY_LINE                                                                                         \
    "tenon kernels by the host's compiler " /* of tests/cuda/nvrtc; 64 bytes, then the library */
#define LIBRARY_HEAD 64

struct CUmod_st {
    void *library; /* NULL: kernels of this one */
    const emu_kernel *kernel;
};

_Thread_local emu_place emu_at;

static emu_place *place_now(void)
{
    return &emu_at;
}

/* A library in memory, which is loaded as a file that is gone at once: no two are one. */
static bool library_load(tncuda_module m, const char *image)
{
    char path[] = "/tmp/tnemu-module-XXXXXX";
    const size_t bytes = (size_t)strtoull(image + sizeof LIBRARY_LINE - 1, NULL, 10);
    void (*begin)(emu_place * (*at)(void)) = NULL;
    const int fd = mkstemp(path);
    void *symbol;

    if (fd < 0)
        return false;
    if (write(fd, image + LIBRARY_HEAD, bytes) == (ssize_t)bytes)
        m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    (void)close(fd);
    (void)unlink(path);
    if (!m->library || !(symbol = dlsym(m->library, "tnemu_open")) ||
        !(m->kernel = dlsym(m->library, "tnemu_kernel")))
        return false;
    memcpy((void *)&begin, &symbol, sizeof symbol);
    begin(place_now);
    return true;
}

/* An image need not be a string: no byte behind the first other one is read. */
static bool begins(const char *image, const char *line)
{
    while (*line && *image == *line) {
        image++;
        line++;
    }
    return !*line;
}

tncuda_result emu_module_load(tncuda_module *out, const void *image)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_module_load, &c);
    uint32_t magic;

    if (result)
        return result;
    memcpy(&magic, image, sizeof magic);
    if (begins(image, LIBRARY_LINE)) {
        tncuda_module made = emu_new(sizeof *made);

        if (library_load(made, image)) {
            *out = made;
            return 0;
        }
        free(made);
        return 200;
    }
    if (magic != FATBIN_MAGIC && !begins(image, IMAGE_LINE))
        return 200; /* INVALID_IMAGE */
    *out = emu_new(sizeof **out);
    return 0;
}

tncuda_result emu_module_unload(tncuda_module module)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_module_unload, &c);

    if (module->library)
        (void)dlclose(module->library);
    free(module);
    return result;
}

/* The rows that TNCUDA_KERNEL puts into a section of their own. */
extern const emu_kernel *const __start_tnemu_kernels[] __attribute__((weak));
extern const emu_kernel *const __stop_tnemu_kernels[] __attribute__((weak));

const emu_kernel *emu_kernel_find(const char *name)
{
    for (const emu_kernel *const *k = __start_tnemu_kernels; k && k < __stop_tnemu_kernels; k++)
        if (!strcmp((*k)->name, name))
            return *k;
    return NULL;
}

/* A function is a row of the table: it needs no memory of its own. */
tncuda_result emu_module_function(tncuda_function *out, tncuda_module module, const char *name)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_module_function, &c);
    const emu_kernel *k = !module || !module->library ? emu_kernel_find(name) /* NULL: of a double */
                          : !strcmp(module->kernel->name, name) ? module->kernel
                                                                : NULL;

    if (result || !k)
        return result ? result : TNCUDA_NOT_FOUND;
    *out = (tncuda_function)(uintptr_t)k;
    return 0;
}

bool emu_grid_fits(const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes)
{
    return grid[0] && grid[1] && grid[2] && grid[1] <= 65535 && grid[2] <= 65535 && block[0] && block[1] &&
           block[2] && (uint64_t)block[0] * block[1] * block[2] <= 1024 && shared_bytes <= 49152;
}

tncuda_result emu_launch(tncuda_function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                         uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                         tncuda_stream stream, void **params, void **extra)
{
    const emu_kernel *k = (const emu_kernel *)(uintptr_t)function;
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_launch, &c);
    emu_item i = {.kind = ITEM_KERNEL,
                  .kernel = k,
                  .grid = {grid_x, grid_y, grid_z},
                  .block = {block_x, block_y, block_z}};

    if (result)
        return result;
    if (!emu_grid_fits(i.grid, i.block, shared_bytes) || extra || !params)
        return TNCUDA_INVALID_VALUE;
    i.args = emu_new(k->args_bytes);
    memcpy(i.args, params[0], k->args_bytes);
    return emu_submit(stream, &i);
}

/* ---- running ----------------------------------------------------------------------------------------- */

void emu_thread_set(uint32_t thread)
{
    if (thread < emu_at.block_dim[0]) { /* as nearly all */
        emu_at.thread[0] = thread;
        emu_at.thread[1] = emu_at.thread[2] = 0;
        return;
    }
    emu_at.thread[0] = thread % emu_at.block_dim[0];
    emu_at.thread[1] = thread / emu_at.block_dim[0] % emu_at.block_dim[1];
    emu_at.thread[2] = thread / emu_at.block_dim[0] / emu_at.block_dim[1];
}

/* A step that has no divisor in common with the count visits all of them. */
static uint64_t step_of(uint64_t count, uint64_t random)
{
    uint64_t step = random % count + 1;

    for (;; step = step % count + 1) {
        uint64_t a = count, b = step;

        while (b) {
            const uint64_t rest = a % b;

            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
}

static void block_set(uint64_t number)
{
    emu_at.block[0] = (uint32_t)(number % emu_at.grid_dim[0]);
    emu_at.block[1] = (uint32_t)(number / emu_at.grid_dim[0] % emu_at.grid_dim[1]);
    emu_at.block[2] = (uint32_t)(number / emu_at.grid_dim[0] / emu_at.grid_dim[1]);
}

void emu_kernel_run(const emu_kernel *kernel, const uint32_t grid[3], const uint32_t block[3],
                    const void *args, uint64_t seed)
{
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    const uint32_t threads = block[0] * block[1] * block[2];
    const uint64_t step = step_of(blocks, seed);
    uint64_t at = (seed >> 32) % blocks;

    memcpy(emu_at.grid_dim, grid, sizeof emu_at.grid_dim);
    memcpy(emu_at.block_dim, block, sizeof emu_at.block_dim);
    for (uint64_t i = 0; i < blocks; i++, at = (at + step) % blocks) {
        block_set(at);
        if (kernel->sync) {
            emu_block_run(kernel, args, threads, emu_random(seed, i));
            continue;
        }
        for (uint32_t t = 0; t < threads; t++) {
            emu_thread_set(seed & 1 ? threads - 1 - t : t);
            kernel->run(args);
        }
    }
}
