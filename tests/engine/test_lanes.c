/*
 * Lanes: a queue and a stream for each that is used and no other; none waits for another one; priorities
 * within a lane; what the host does with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "part.h"

static engine_queue *lane_queue(const tni_device *d, uint32_t lane)
{
    const engine_device *data = d->engine_data;

    return data ? data->lanes[lane] : NULL;
}

typedef struct lane_job {
    atomic_uint *open; /* its stream stands still until this is not 0 */
    atomic_uint begun, done;
    tn_stream *stream;
} lane_job;

static tn_status job_body(void *arg, tn_err *err)
{
    lane_job *j = arg;

    (void)err;
    atomic_store(&j->begun, 1u);
    while (j->open && !atomic_load(j->open))
        tni_sleep_ns(20000);
    return TN_OK;
}

static tn_status job_run(void *payload, tni_run *run)
{
    lane_job *j = *(lane_job **)payload;
    tn_err err = {0};

    j->stream = run->stream;
    return run->stream ? run->device->ops->stream_call(run->stream, job_body, j, &err) : job_body(j, &err);
}

static void job_done(void *payload, tni_engine *engine, tn_status status)
{
    lane_job *j = *(lane_job **)payload;

    (void)engine;
    atomic_fetch_add(&j->done, status == TN_OK);
}

static tn_status push_job(tni_engine *e, lane_job *j, tni_device *d, uint32_t lane, int32_t priority)
{
    const tni_task task = {.run = job_run,
                           .done = job_done,
                           .payload = &j,
                           .payload_bytes = sizeof j,
                           .device = d,
                           .lane = lane,
                           .priority = priority,
                           .name = "job"};

    return tni_engine_push(e, &task);
}

/* Each lane of a device with streams goes on while any other one stands still. */
static void test_own_streams(void **state)
{
    (void)state;
    for (uint32_t held = 0; held < TNI_LANES; held++) {
        lane_job jobs[TNI_LANES] = {{0}};
        atomic_uint open = 0;
        tni_device *d;
        test_engine t;

        test_engine_open(&t, (tni_engine_options){0});
        assert_int_equal(tni_device_get(t.devices, "late", 0, &d), TN_OK);
        jobs[held].open = &open;
        assert_int_equal(push_job(t.engine, &jobs[held], d, held, 0), TN_OK);
        for (uint32_t lane = 0; lane < TNI_LANES; lane++)
            assert_true((lane_queue(d, lane) != NULL) == (lane == held));
        for (uint32_t lane = 0; lane < TNI_LANES; lane++)
            if (lane != held)
                assert_int_equal(push_job(t.engine, &jobs[lane], d, lane, 0), TN_OK);
        for (uint32_t lane = 0; lane < TNI_LANES; lane++)
            if (lane != held)
                part_until(&jobs[lane].done, 1);
        assert_int_equal(atomic_load(&jobs[held].done), 0);
        atomic_store(&open, 1u);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        for (uint32_t a = 0; a < TNI_LANES; a++)
            for (uint32_t b = 0; b < a; b++)
                assert_true(jobs[a].stream && jobs[a].stream != jobs[b].stream);
        test_engine_close(&t);
    }
}

static void test_host(void **state)
{
    lane_job jobs[3] = {{0}};
    tni_device *d;
    test_engine t;

    (void)state;
    test_engine_open(&t, (tni_engine_options){0});
    assert_int_equal(tni_device_get(t.devices, "cpu", 0, &d), TN_OK);
    assert_int_equal(push_job(t.engine, &jobs[0], d, TNI_LANE_OUT, 0), TN_OK);
    assert_int_equal(push_job(t.engine, &jobs[1], d, TNI_LANE_IN, 0), TN_OK);
    assert_non_null(lane_queue(d, TNI_LANE_IN)); /* serves both */
    assert_null(lane_queue(d, TNI_LANE_OUT));
    assert_int_equal(push_job(t.engine, &jobs[2], d, TNI_LANE_COMM, 0), TN_OK);
    assert_true(lane_queue(d, TNI_LANE_COMM) && lane_queue(d, TNI_LANE_COMM) != lane_queue(d, TNI_LANE_IN));
    assert_null(lane_queue(d, TNI_LANE_COMPUTE));
    assert_int_equal(push_job(t.engine, &jobs[0], d, TNI_LANES, 0), TN_E_ARG);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&jobs[i].done), 1);
    test_engine_close(&t);
}

/* ---- priorities ------------------------------------------------------------------------------------ */

#define RANKED 6

/* While a gate holds the lane, operations of several priorities gather behind it. */
static void ranked(uint32_t lane, bool computes)
{
    static const int32_t priorities[RANKED] = {0, 5, -3, 5, 9, -3};
    static const uint32_t wanted[RANKED] = {4, 1, 3, 0, 2, 5};
    uint32_t log[RANKED], logged = 0;
    part parts[RANKED], *self[RANKED];
    atomic_uint open = 0;
    lane_job gate = {.open = &open};
    test_engine t;

    test_engine_open(&t, (tni_engine_options){0});
    assert_int_equal(push_job(t.engine, &gate, NULL, lane, 0), TN_OK);
    part_until(&gate.begun, 1);
    for (uint32_t i = 0; i < RANKED; i++) {
        tni_task task;

        parts[i] = (part){.log = log, .logged = &logged, .number = i};
        self[i] = &parts[i];
        task = part_task(&self[i], NULL, 0, NULL, 0);
        task.lane = computes && priorities[i] ? TNI_LANE_COMPUTE : lane; /* a priority brings it to COMM */
        task.priority = priorities[i];
        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
    }
    while (atomic_load(&t.engine->entered) < RANKED + 1)
        (void)tni_submit_drain(t.engine, RANKED + 1);
    atomic_store(&open, 1u);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    for (uint32_t i = 0; i < RANKED; i++)
        assert_int_equal(log[i], wanted[i]);
    test_engine_close(&t);
}

static void test_priorities(void **state)
{
    (void)state;
    ranked(TNI_LANE_IN, false);
    ranked(TNI_LANE_COMM, false);
    ranked(TNI_LANE_COMM, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_streams),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_priorities),
    };

    return cmocka_run_group_tests_name("engine.lanes", tests, NULL, NULL);
}
