/* A small asynchronous device inside the test program: streams with a thread each, events, notifications that
 * come late and in any order, faults on demand. And the engine with its rooms, opened for one test. */
#ifndef TEST_ENGINE_ASYNC_DEVICE_H
#define TEST_ENGINE_ASYNC_DEVICE_H

#include "engine/engine.h"
#include "support/heard.h"
#include "support/runs.h"

extern const tn_plugin test_async_plugin; /* device type "late", two devices, kernels of its own */
void test_async_delay(uint32_t most_us);  /* longest delay of a command or notification; 0: none */
uint64_t test_async_reordered(void);      /* notifications that overtook an earlier one */
/* While on, no notification is delivered. Off comes back once a device has at least `due` of them due; the
 * newest is delivered first, so that `due` 2 makes one overtake another whatever threads do. */
void test_async_hold(bool on, uint32_t due);
/* While on, devices refuse notifications and waits for streams, as for a stream that records. */
void test_async_refuse(bool on);
uint32_t test_async_refused(void); /* waits refused, and looks at events that were not reached, since then */

typedef struct test_engine {
    tni_options *options;
    tni_registry *registry;
    tni_device_set *devices;
    tni_engine *engine;
    tni_log log;
    heard logged; /* by the engine's log */
} test_engine;

/* Fails the test on any error. queue_max 0: 65536. */
void test_engine_open(test_engine *t, tni_engine_options options);
void test_engine_close(test_engine *t);
uint64_t test_seed(void); /* TENON_SEED, else 1 */
uint32_t test_random(uint64_t *state);

#endif
