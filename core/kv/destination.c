/*
 * Where a long value lands: in the array that it is pulled into, if that is free when the first of it comes;
 * else in the key's value, from which it is copied. Two operations stand behind the trip and write the array.
 * The first one begins when the array is free, says so, and ends with the trip. The second one copies, unless
 * the value is there. So the trip waits for nobody who uses the array, and its failure is the array's.
 */
#include "kv/store.h"
#include "kv/wire.h"

struct tni_kv_destination {
    atomic_uint count;    /* the trip, the key, the two operations */
    _Atomic(void *) data; /* of `out`, once it is free; `closed`: nobody asks any more */
    tni_operation *op;    /* that keeps it free */
    bool landed;
    tni_array *value, *out; /* retained */
};

static char closed;

void tni_kv_destination_release(tni_kv_destination *d)
{
    if (!d || atomic_fetch_sub(&d->count, 1) > 1)
        return;
    tni_array_release(d->value);
    tni_array_release(d->out);
    tni_free(d);
}

tni_kv_destination *tni_kv_destination_create(tni_array *value)
{
    tni_kv_destination *d = tni_array_bytes(value) < TNI_KV_DESTINATION_MIN ? NULL : tni_zalloc(sizeof *d);

    if (d) {
        atomic_init(&d->count, 2);
        tni_array_retain(d->value = value);
    }
    return d;
}

void *tni_kv_destination_take(void *arg)
{
    tni_kv_destination *d = arg;
    void *data = NULL;

    d->landed = !atomic_compare_exchange_strong(&d->data, &data, &closed);
    return data;
}

void tni_kv_destination_close(tni_kv_destination *d)
{
    void *data = d ? atomic_exchange(&d->data, &closed) : NULL;

    if (data && data != &closed)
        tni_engine_complete(d->op, TN_OK, NULL);
    tni_kv_destination_release(d);
}

static tn_status free_run(void *payload, tni_run *run)
{
    tni_kv_destination *d = *(tni_kv_destination **)payload;
    void *none = NULL;

    if (tni_storage_allocate(d->out->storage, NULL)) /* the copy finds that, too, and says so */
        return TN_OK;
    d->op = run->op;
    return atomic_compare_exchange_strong(&d->data, &none, tni_array_data(d->out)) ? TN_PENDING : TN_OK;
}

static tn_status copy_run(void *payload, tni_run *run)
{
    const tni_kv_destination *d = *(tni_kv_destination **)payload;
    tn_status st;

    (void)run;
    if (d->landed)
        return TN_OK;
    if ((st = tni_storage_allocate(d->out->storage, NULL)) ||
        (st = tni_storage_touch(d->value->storage, NULL)))
        return st;
    tni_kv_bytes_copy(tni_array_data(d->out), tni_array_data(d->value), tni_array_bytes(d->out));
    return TN_OK;
}

static void either_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    tni_kv_destination_release(*(tni_kv_destination **)payload);
}

tn_status tni_kv_destination_push(tni_kv_destination *d, tni_array *out, int32_t priority)
{
    tni_var *vars[] = {tni_array_var(d->value), tni_array_var(out)};
    const tni_task free_task = {.run = free_run,
                                .done = either_done,
                                .payload = &d,
                                .payload_bytes = sizeof(d),
                                .flags = TNI_TASK_ASYNC | TNI_TASK_CLEARS,
                                .writes = vars + 1,
                                .write_count = 1,
                                .name = "kvstore destination",
                                .lane = TNI_LANE_COMM,
                                .priority = priority};
    tni_task tasks[] = {free_task, free_task};
    tn_status st;

    tasks[1].run = copy_run;
    tasks[1].flags = TNI_TASK_CLEARS;
    tasks[1].reads = vars;
    tasks[1].read_count = 1;
    tasks[1].name = "kvstore pull";
    tni_array_retain(d->out = out);
    atomic_fetch_add(&d->count, 2);
    if ((st = tni_engine_push_group(out->storage->space->engine, tasks, 2)))
        atomic_fetch_sub(&d->count, 2);
    return st;
}
