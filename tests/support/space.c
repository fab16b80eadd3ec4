/* Opens in the order in which rooms stand on each other, closes in reverse. */
#include "support/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

void test_space_open(test_space *t, const char *engine)
{
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    const tni_engine_options options = {
        .type = engine, .threads = 2, .workers = 1, .queue_max = 1024, .inline_ns = 2000};

    *t = (test_space){.options = NULL};
    assert_int_equal(tni_options_create(NULL, &t->options), TN_OK);
    if (plugins)
        assert_int_equal(tni_options_set_value(t->options, "plugins.path", plugins, TN_ORIGIN_SET, "test"),
                         TN_OK);
    assert_int_equal(tni_registry_create(t->options, NULL, &t->registry), TN_OK);
    assert_int_equal(tni_device_set_create(t->options, t->registry, NULL, &t->devices), TN_OK);
    assert_int_equal(tni_engine_create(&options, t->devices, NULL, &t->engine), TN_OK);
    assert_int_equal(tni_space_create(t->engine, t->devices, &t->space), TN_OK);
    assert_int_equal(tni_device_get(t->devices, "cpu", 0, &t->cpu), TN_OK);
}

void test_space_close(test_space *t)
{
    uint64_t arrays, storages;

    (void)tni_engine_wait_all(t->engine);
    tni_engine_destroy(t->engine);
    tni_space_live(t->space, &arrays, &storages);
    assert_int_equal(arrays, 0);
    assert_int_equal(storages, 0);
    tni_space_destroy(t->space);
    tni_device_set_destroy(t->devices);
    tni_registry_destroy(t->registry);
    tni_options_destroy(t->options);
}
