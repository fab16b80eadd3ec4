/* A context made by hand, for tests of rooms below exec: options, plugins, devices, an engine, a space of
 * arrays. */
#ifndef TEST_SUPPORT_SPACE_H
#define TEST_SUPPORT_SPACE_H

#include "tensor/tensor.h"

typedef struct test_space {
    tni_options *options;
    tni_registry *registry;
    tni_device_set *devices;
    tni_engine *engine;
    tni_space *space;
    tni_device *cpu;
} test_space;

/* `engine`: naive, threaded or stepped. Plugins come from TENON_TEST_PLUGINS if that is set.
 * Fails the test. */
void test_space_open(test_space *t, const char *engine);
/* Also checks that no array is left. */
void test_space_close(test_space *t);

/* The space `t` of a test program, opened and closed around all its tests: open_space, close_space. */
#define TEST_SPACE(t, engine)                                                                                \
    static test_space t;                                                                                     \
                                                                                                             \
    static int open_space(void **state)                                                                      \
    {                                                                                                        \
        (void)state;                                                                                         \
        test_space_open(&t, engine);                                                                         \
        return 0;                                                                                            \
    }                                                                                                        \
                                                                                                             \
    static int close_space(void **state)                                                                     \
    {                                                                                                        \
        (void)state;                                                                                         \
        test_space_close(&t);                                                                                \
        return 0;                                                                                            \
    }

#endif
