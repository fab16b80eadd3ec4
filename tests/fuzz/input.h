/*
 * What fuzz targets of room io share: a context on the naive engine, where nothing outlives a call, and
 * inputs as files in memory.
 */
#ifndef TN_TESTS_FUZZ_INPUT_H
#define TN_TESTS_FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
    if (!holds)
        abort();
}

/* The one of this process, with the device `cpu`; its pool keeps nothing back. */
static inline tni_space *input_space(tni_device **cpu)
{
    static tni_space *space;
    static tni_device *device;
    const tni_engine_options how = {.type = "naive", .threads = 1};
    tni_options *options;
    tni_registry *registry;
    tni_device_set *devices;
    tni_engine *engine;

    if (!space)
        must(!tni_options_create(NULL, &options) && !tni_registry_create(options, NULL, &registry) &&
             !tni_options_set(options, "memory.cpu.pool=none") &&
             !tni_device_set_create(options, registry, NULL, &devices) &&
             !tni_engine_create(&how, devices, NULL, &engine) && !tni_space_create(engine, devices, &space) &&
             !tni_device_get(devices, "cpu", 0, &device));
    if (cpu)
        *cpu = device;
    return space;
}

/* The input as a file: its descriptor, to be closed, and its path. */
static inline int input_file(const uint8_t *data, size_t size, char path[64])
{
    const int fd = memfd_create("input", MFD_CLOEXEC);

    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
