/* The parameter store within a process: what is summed, stored, updated and pulled, and what a failure
 * leaves. */
#include "api/support.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "support/list.h"
#include "support/scratch.h"

#define COUNT 37 /* elements: no multiple of what a word of codes holds */
#define DEVICES 4

static const int64_t shape[] = {COUNT};
static const char *const types[] = {"local", "device"};

typedef struct bench { /* a store, and an array on each device */
    tn_ctx *ctx;
    tn_kv *kv;
    const tn_device *devices[DEVICES];
    tn_array *values[DEVICES];
    int32_t dtype; /* of keys that are made */
} bench;

/* Numbers whose sum depends on its order. */
static float number(uint32_t device, uint32_t i)
{
    return (float)((i * 7 + device * 3) % 11) * powf(10, (float)((i + device * 5) % 9) - 4);
}

static void numbers_of(uint32_t device, float *out)
{
    for (uint32_t i = 0; i < COUNT; i++)
        out[i] = number(device, i);
}

static void expected_sum(float *out)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        out[i] = number(0, i);
        for (uint32_t d = 1; d < DEVICES; d++)
            out[i] += number(d, i);
    }
}

static tn_array *zeros_on(bench *b, const tn_device *device, int32_t dtype)
{
    tn_array *a = NULL;

    assert_ok(tn_array_zeros(b->ctx, dtype, 1, shape, device, &a));
    return a;
}

static bool bench_open(bench *b, const char *type, const char *device, const char *const *settings)
{
    float values[COUNT];
    char name[32];

    memset(b, 0, sizeof *b);
    b->dtype = TN_F32;
    b->ctx = test_open(settings);
    for (uint32_t d = 0; d < DEVICES; d++) {
        (void)snprintf(name, sizeof name, "%s:%u", device, d);
        if (tn_device_get(b->ctx, name, &b->devices[d])) {
            assert_ok(tn_close(b->ctx));
            return false;
        }
        numbers_of(d, values);
        b->values[d] = zeros_on(b, b->devices[d], TN_F32);
        assert_ok(tn_array_write(b->values[d], values, sizeof values));
    }
    assert_ok(tn_kv_create(b->ctx, type, &b->kv));
    return true;
}

static void bench_close(bench *b)
{
    tn_kv_destroy(b->kv);
    for (uint32_t d = 0; d < DEVICES; d++)
        tn_array_release(b->values[d]);
    (void)tn_wait_all(b->ctx);
    assert_ok(tn_close(b->ctx));
}

static tn_kv_item item(int64_t key, uint32_t values, tn_array *const *in, uint32_t outs, tn_array *const *out)
{
    return (tn_kv_item){
        .number = key, .value_count = values, .values = in, .out_count = outs, .outs = out, .priority = -1};
}

static void init(bench *b, int64_t key, float value)
{
    tn_array *a = zeros_on(b, b->devices[0], b->dtype);
    const tn_kv_item it = item(key, 1, &a, 0, NULL);

    assert_ok(tn_array_fill(a, value));
    assert_ok(tn_kv_init(b->kv, 1, &it));
    tn_array_release(a);
}

static tn_status pull(bench *b, int64_t key, float *out)
{
    tn_array *a = zeros_on(b, b->devices[DEVICES - 1], b->dtype), *wide = NULL;
    const tn_kv_item it = item(key, 0, NULL, 1, &a);
    tn_status st;

    assert_ok(tn_kv_pull(b->kv, 0, 1, &it));
    assert_ok(tn_array_cast(b->ctx, a, TN_F32, &wide));
    st = tn_array_read(wide, out, COUNT * sizeof *out);
    tn_array_release(wide);
    tn_array_release(a);
    return st;
}

static void same(const float *got, const float *wanted, const char *what)
{
    for (uint32_t i = 0; i < COUNT; i++)
        if (memcmp(&got[i], &wanted[i], sizeof *got) != 0)
            fail_msg("%s: element %u is %.9g, wanted %.9g", what, i, (double)got[i], (double)wanted[i]);
}

static void value_is(bench *b, int64_t key, float wanted)
{
    float got[COUNT], all[COUNT];

    assert_ok(pull(b, key, got));
    for (uint32_t i = 0; i < COUNT; i++)
        all[i] = wanted;
    same(got, all, "value");
}

/* ---- sums ------------------------------------------------------------------------------------------- */

typedef struct arrival { /* of one gradient, when the test says so */
    float *to;
    uint32_t device;
    atomic_ullong handle;
} arrival;

static tn_status arrival_begin(void *arg, uint64_t handle)
{
    arrival *a = arg;

    atomic_store(&a->handle, handle);
    return TN_PENDING;
}

static void arrive(arrival *a)
{
    while (!atomic_load(&a->handle)) /* its task has begun then */
        ;
    numbers_of(a->device, a->to);
    assert_ok(tn_task_complete(atomic_load(&a->handle), TN_OK, NULL));
}

static void arrivals(bench *b, const uint32_t *order)
{
    const tn_kv_item push = item(7, DEVICES, b->values, 0, NULL);
    arrival list[DEVICES] = {{0}};
    tn_array *out = zeros_on(b, NULL, TN_F32);
    const tn_kv_item pulled = item(7, 0, NULL, 1, &out);
    float got[COUNT], wanted[COUNT];

    for (uint32_t d = 0; d < DEVICES; d++) {
        tn_var *var = tn_array_var(b->values[d]);
        const tn_task task = {.struct_size = TN_SIZE(tn_task),
                              .begin = arrival_begin,
                              .arg = &list[d],
                              .writes = &var,
                              .write_count = 1,
                              .device = b->devices[d]};
        void *data;

        list[d].device = d;
        assert_ok(tn_array_wait_write(b->values[d]));
        assert_ok(tn_array_data(b->values[d], &data));
        list[d].to = data;
        assert_ok(tn_engine_push(b->ctx, &task));
    }
    assert_ok(tn_kv_push(b->kv, 1, &push));
    assert_ok(tn_kv_pull(b->kv, 0, 1, &pulled));
    for (uint32_t k = 0; k < DEVICES; k++)
        arrive(&list[order[k]]);
    assert_ok(tn_array_read(out, got, sizeof got));
    expected_sum(wanted);
    same(got, wanted, "sum");
    tn_array_release(out);
}

/* Left to right in the order of the list, whichever gradient is there first. */
static void any_arrival(void **state)
{
    static const uint32_t orders[][DEVICES] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        bench b;

        assert_true(bench_open(&b, types[t], "cpu", LIST("engine.type=threaded")));
        init(&b, 7, 1);
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
            arrivals(&b, orders[o]);
        bench_close(&b);
    }
}

/* Devices with streams, whose copies end late and out of order. */
static void on_devices(void **state)
{
    float got[COUNT], wanted[COUNT];
    char seed[32];

    (void)state;
    expected_sum(wanted);
    for (size_t t = 0; t < 2; t++)
        for (int s = 0; s < 4; s++) {
            bench b;
            tn_kv_item push;

            (void)snprintf(seed, sizeof seed, "plugin.fake.seed=%d", s);
            if (!bench_open(&b, types[t], "fake",
                            LIST("plugin.fake.devices=4", "plugin.fake.delay_us=30", seed))) {
                print_message("skipped: no device fake\n");
                return;
            }
            init(&b, 7, 1);
            for (uint32_t n = 0; n < 3; n++) {
                push = item(7, DEVICES, b.values, 0, NULL);
                assert_ok(tn_kv_push(b.kv, 1, &push));
                assert_ok(pull(&b, 7, got));
                same(got, wanted, types[t]);
            }
            bench_close(&b);
        }
}

static void other_types(void **state)
{
    static const int32_t dtypes[] = {TN_F64, TN_F16, TN_BF16, TN_I32, TN_U8};

    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        float got[COUNT];
        tn_kv_item it;
        tn_array *parts[3];
        bench b;

        assert_true(bench_open(&b, "local", "cpu", NULL));
        for (uint32_t d = 0; d < 3; d++) {
            parts[d] = zeros_on(&b, b.devices[d], dtypes[i]);
            assert_ok(tn_array_fill(parts[d], d + 1));
        }
        it = item(1, 1, parts, 0, NULL);
        assert_ok(tn_kv_init(b.kv, 1, &it));
        it = item(1, 3, parts, 0, NULL);
        assert_ok(tn_kv_push(b.kv, 1, &it));
        assert_ok(pull(&b, 1, got)); /* as float32 */
        for (uint32_t k = 0; k < COUNT; k++)
            assert_true(got[k] == 6);
        it = item(1, 1, b.values, 0, NULL);
        assert_fails(tn_kv_push(b.kv, 1, &it), TN_E_DTYPE);
        for (uint32_t d = 0; d < 3; d++)
            tn_array_release(parts[d]);
        bench_close(&b);
    }
}

/* ---- values ----------------------------------------------------------------------------------------- */

static void pushpull_and_broadcast(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        float got[COUNT], wanted[COUNT];
        tn_array *outs[2];
        tn_kv_item it;
        bench b;

        assert_true(bench_open(&b, types[t], "cpu", NULL));
        outs[0] = zeros_on(&b, b.devices[0], TN_F32);
        outs[1] = zeros_on(&b, b.devices[1], TN_F64);
        it = (tn_kv_item){
            .name = "weight", .value_count = 1, .values = b.values, .out_count = 2, .outs = outs};
        assert_ok(tn_kv_broadcast(b.kv, 1, &it));
        numbers_of(0, wanted);
        assert_ok(tn_array_read(outs[0], got, sizeof got));
        same(got, wanted, "broadcast");
        it.value_count = DEVICES;
        assert_ok(tn_kv_pushpull(b.kv, 1, &it));
        expected_sum(wanted);
        assert_ok(tn_array_read(outs[0], got, sizeof got));
        same(got, wanted, "pushpull");
        it.name = "other";
        it.value_count = 1;
        it.outs = &outs[2 - 1];
        it.out_count = 0;
        assert_fails(tn_kv_broadcast(b.kv, 1, &it), TN_E_ARG); /* and the key has no value */
        assert_fails(tn_kv_push(b.kv, 1, &it), TN_E_KEY);
        tn_array_release(outs[0]);
        tn_array_release(outs[1]);
        bench_close(&b);
    }
}

/* Later writes to an array that was pushed change nothing; a strided array can be pulled into. */
static void copies(void **state)
{
    static const int64_t pairs[] = {2, COUNT}, stride[] = {2};
    float got[2 * COUNT];
    tn_array *wide = NULL, *odd = NULL;
    tn_kv_item it;
    bench b;

    (void)state;
    assert_true(bench_open(&b, "local", "cpu", NULL));
    init(&b, 1, 1);
    assert_ok(tn_array_fill(b.values[0], 5));
    it = item(1, 1, b.values, 0, NULL);
    assert_ok(tn_kv_push(b.kv, 1, &it));
    assert_ok(tn_array_fill(b.values[0], 6));
    value_is(&b, 1, 5);
    assert_ok(tn_array_zeros(b.ctx, TN_F32, 2, pairs, NULL, &wide));
    assert_ok(tn_array_view(wide, 1, 1, shape, stride, &odd));
    it = item(1, 0, NULL, 1, &odd);
    assert_ok(tn_kv_pull(b.kv, 0, 1, &it));
    assert_ok(tn_array_read(wide, got, sizeof got));
    for (uint32_t i = 0; i < 2 * COUNT; i++)
        assert_true(got[i] == (i % 2 ? 5.0f : 0.0f));
    it = item(1, 1, &odd, 0, NULL); /* and pushed from */
    assert_ok(tn_array_fill(odd, 3));
    assert_ok(tn_kv_push(b.kv, 1, &it));
    value_is(&b, 1, 3);
    tn_array_release(odd);
    tn_array_release(wide);
    bench_close(&b);
}

/* ---- updates ---------------------------------------------------------------------------------------- */

typedef struct seen {
    tn_ctx *ctx;
    uint32_t calls;
    int64_t number;
    tn_status fails;
} seen;

/* stored = stored + 2 * merged */
static tn_status doubled(void *arg, const tn_kv_item *key, tn_array *merged, tn_array *stored)
{
    seen *s = arg;
    tn_array *twice, *sum, *in[2];

    s->calls++;
    s->number = key->number;
    assert_null(key->name);
    if (s->fails)
        return s->fails;
    twice = test_op(s->ctx, "_mul_scalar", LIST("scalar", "2"), 1, &merged);
    in[0] = stored;
    in[1] = twice;
    sum = test_op(s->ctx, "elemwise_add", NULL, 2, in);
    assert_ok(tn_array_copy(sum, stored));
    tn_array_release(sum);
    tn_array_release(twice);
    return TN_OK;
}

static void updaters(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        seen s = {0};
        tn_kv_item it;
        bench b;

        assert_true(bench_open(&b, types[t], "cpu", NULL));
        s.ctx = b.ctx;
        init(&b, 4, 1);
        for (uint32_t d = 0; d < DEVICES; d++)
            assert_ok(tn_array_fill(b.values[d], d));
        assert_ok(tn_kv_set_updater(b.kv, doubled, &s));
        assert_fails(tn_kv_set_optimizer(b.kv, "sgd", NULL), TN_E_STATE);
        it = item(4, DEVICES, b.values, 0, NULL);
        assert_ok(tn_kv_push(b.kv, 1, &it));
        value_is(&b, 4, 13); /* 1 + 2 * (0 + 1 + 2 + 3) */
        it.value_count = 1;
        it.values = &b.values[3];
        assert_ok(tn_kv_push(b.kv, 1, &it));
        value_is(&b, 4, 19);
        assert_int_equal(s.calls, 2);
        assert_int_equal(s.number, 4);
        s.fails = TN_E_PEER;
        assert_int_equal(tn_kv_push(b.kv, 1, &it), TN_E_PEER);
        value_is(&b, 4, 19);
        assert_ok(tn_kv_set_updater(b.kv, NULL, NULL));
        assert_ok(tn_kv_push(b.kv, 1, &it));
        value_is(&b, 4, 3);
        bench_close(&b);
    }
}

static void push_all(bench *b, int64_t key, double value)
{
    const tn_kv_item it = item(key, 2, b->values, 0, NULL);

    assert_ok(tn_array_fill(b->values[0], value));
    assert_ok(tn_array_fill(b->values[1], value));
    assert_ok(tn_kv_push(b->kv, 1, &it));
}

/* All numbers are exact in float32. */
static void rates(void **state)
{
    const tn_kv_item key = item(0, 0, NULL, 0, NULL), other = item(1, 0, NULL, 0, NULL);
    bench b;

    (void)state;
    assert_true(bench_open(&b, "local", "cpu", NULL));
    init(&b, 0, 8);
    init(&b, 1, 8);
    assert_fails(tn_kv_set_param(b.kv, NULL, "lr", 1), TN_E_STATE);
    assert_ok(tn_kv_set_optimizer(b.kv, "sgd", LIST("learning_rate", "0.5", "rescale_grad", "0.5")));
    push_all(&b, 0, 2); /* 8 - 0.5 * 0.5 * 4 */
    value_is(&b, 0, 7);
    assert_ok(tn_kv_set_param(b.kv, NULL, "lr", 1));
    assert_ok(tn_kv_set_param(b.kv, &key, "lr_mult", 0.25));
    push_all(&b, 0, 2); /* 7 - 0.25 * 2 */
    value_is(&b, 0, 6.5f);
    push_all(&b, 1, 2);
    value_is(&b, 1, 6);
    assert_ok(tn_kv_set_param(b.kv, NULL, "wd", 0.5));
    assert_ok(tn_kv_set_param(b.kv, &other, "wd_mult", 0));
    push_all(&b, 1, 0);
    value_is(&b, 1, 6);
    push_all(&b, 0, 0); /* 6.5 - 0.25 * 0.5 * 6.5 */
    value_is(&b, 0, 6.5f - 0.125f * 6.5f);
    assert_ok(tn_kv_set_param(b.kv, NULL, "rescale_grad", 0.25));
    push_all(&b, 1, 2);
    value_is(&b, 1, 5);
    assert_ok(tn_kv_set_optimizer(b.kv, NULL, NULL));
    push_all(&b, 1, 2);
    value_is(&b, 1, 4);
    bench_close(&b);
}

static void states_in_files(void **state)
{
    static const char *const momentum[] = {"lr", "0.5", "momentum", "0.5", NULL};
    const tn_kv_item key = item(0, 0, NULL, 0, NULL);
    tn_array *s = NULL;
    uint64_t steps = 0;
    char path[4096];
    float got[COUNT];
    bench a, b;

    (void)state;
    (void)snprintf(path, sizeof path, "%s", scratch_path("store.states"));
    assert_true(bench_open(&a, "local", "cpu", NULL));
    assert_true(bench_open(&b, "device", "cpu", NULL));
    init(&a, 0, 8);
    init(&a, 1, 8);
    assert_fails(tn_kv_save_states(a.kv, path), TN_E_STATE);
    assert_ok(tn_kv_set_optimizer(a.kv, "sgd", momentum));
    push_all(&a, 0, 2); /* momentum -2, value 6 */
    push_all(&a, 0, 2); /* momentum -3, value 3 */
    assert_ok(tn_kv_save_states(a.kv, path));
    init(&b, 0, 3);
    assert_fails(tn_kv_load_states(b.kv, path), TN_E_STATE);
    assert_ok(tn_kv_set_optimizer(b.kv, "adam", NULL));
    assert_fails(tn_kv_load_states(b.kv, path), TN_E_FORMAT); /* of another optimizer */
    assert_ok(tn_kv_set_optimizer(b.kv, "sgd", momentum));
    assert_ok(tn_kv_load_states(b.kv, path));
    assert_ok(tn_kv_state(b.kv, &key, 0, &s, &steps));
    assert_int_equal(steps, 2);
    assert_ok(tn_array_read(s, got, sizeof got));
    assert_true(got[0] == -3);
    tn_array_release(s);
    push_all(&a, 0, 2);
    push_all(&b, 0, 2); /* momentum -3.5 */
    value_is(&a, 0, -0.5f);
    value_is(&b, 0, -0.5f);
    init(&b, 2, 3); /* of which the file has nothing */
    assert_fails(tn_kv_load_states(b.kv, path), TN_E_FORMAT);
    bench_close(&a);
    bench_close(&b);
}

/* ---- failures --------------------------------------------------------------------------------------- */

static tn_status broken(void *arg)
{
    (void)arg;
    return TN_E_IO;
}

/* Of two keys one gradient fails: neither value moves, both say why, until one version is assigned. */
static void half_a_step(void **state)
{
    static const char *const optimizers[] = {NULL, "sgd", "adam", "adagrad"};

    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (size_t o = 0; o < 4; o++)
            for (uint32_t count = 1; count <= 2; count++) {
                tn_kv_item both[2], one;
                float got[COUNT];
                tn_var *var;
                bench b;

                assert_true(bench_open(&b, types[t], "cpu", NULL));
                b.dtype = o == 2 ? TN_F16 : TN_F32;
                for (uint32_t d = 0; d < DEVICES && o == 2; d++) {
                    tn_array_release(b.values[d]);
                    b.values[d] = zeros_on(&b, b.devices[d], TN_F16);
                }
                init(&b, 0, 8);
                init(&b, 1, 8);
                if (optimizers[o])
                    assert_ok(tn_kv_set_optimizer(b.kv, optimizers[o],
                                                  o == 2 ? LIST("multi_precision", "1", "lr", "0.5") : NULL));
                both[0] = item(0, count, b.values, 0, NULL);
                both[1] = item(1, count, b.values + 2, 0, NULL);
                var = tn_array_var(b.values[2]);
                assert_ok(tn_engine_push(b.ctx, &(tn_task){.struct_size = TN_SIZE(tn_task),
                                                           .run = broken,
                                                           .writes = &var,
                                                           .write_count = 1,
                                                           .name = "gradient"}));
                assert_ok(tn_kv_push(b.kv, 2, both));
                for (int64_t key = 0; key < 2; key++) {
                    assert_int_equal(pull(&b, key, got), TN_E_IO);
                    assert_non_null(strstr(tn_error_text(), "gradient"));
                }
                assert_ok(tn_kv_push(b.kv, 1, both)); /* still refused */
                assert_int_equal(pull(&b, 0, got), TN_E_IO);
                assert_ok(tn_array_fill(b.values[0], 4));
                assert_ok(tn_array_fill(b.values[1], 4));
                for (int64_t key = 0; key < 2; key++) {
                    one = item(key, 1, b.values, 0, NULL);
                    assert_ok(tn_kv_assign(b.kv, 1, &one));
                    value_is(&b, key, 4);
                }
                both[1].values = b.values;
                assert_ok(tn_kv_push(b.kv, 2, both));
                assert_ok(pull(&b, 1, got));
                assert_true(optimizers[o] ? got[0] < 4 : got[0] == 4.0f * (float)count);
                bench_close(&b);
            }
}

/* ---- sparse ----------------------------------------------------------------------------------------- */

#define ROWS 5
#define COLUMNS 2

static tn_array *sparse_of(bench *b, int64_t stored, const int64_t *ids, const float *values)
{
    static const int64_t dims[] = {ROWS, COLUMNS};
    const tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                                  .storage = TN_STORAGE_ROW_SPARSE,
                                  .dtype = TN_F32,
                                  .ndim = 2,
                                  .shape = dims,
                                  .stored = stored,
                                  .values = values,
                                  .indices = ids};
    tn_array *a = NULL;

    assert_ok(tn_array_sparse_from(b->ctx, &from, &a));
    return a;
}

static void rows_are(tn_array *a, int64_t stored, const int64_t *ids, const float *values)
{
    tn_array *v = NULL, *i = NULL;
    int64_t got[ROWS];

    assert_int_equal(tn_array_storage(a), TN_STORAGE_ROW_SPARSE);
    assert_ok(tn_array_values(a, &v));
    assert_ok(tn_array_aux(a, 0, &i));
    assert_int_equal(tn_array_count(i), stored);
    assert_ok(tn_array_read(i, got, (uint64_t)stored * sizeof *got));
    assert_memory_equal(got, ids, (size_t)stored * sizeof *got);
    test_values(v, values, (size_t)stored * COLUMNS, 0);
    tn_array_release(v);
    tn_array_release(i);
}

static void sparse_keys(void **state)
{
    static const int64_t first[] = {0, 1, 3}, left[] = {1, 4}, right[] = {0, 4};
    static const float start[] = {1, 1, 2, 2, 3, 3}, ones[] = {1, 1, 1, 1}, twos[] = {2, 2, 2, 2};
    static const int64_t asked[] = {4, 0, 2, 4};
    int64_t wrong = ROWS;
    tn_array *value, *grads[2], *ids = NULL, *bad = NULL, *out = NULL, *whole = NULL;
    tn_kv_item it;
    bench b;

    (void)state;
    assert_true(bench_open(&b, "local", "cpu", NULL));
    value = sparse_of(&b, 3, first, start);
    grads[0] = sparse_of(&b, 2, left, ones);
    grads[1] = sparse_of(&b, 2, right, twos);
    assert_ok(tn_array_from(b.ctx, TN_I64, 1, (int64_t[]){4}, asked, &ids));
    assert_ok(tn_array_from(b.ctx, TN_I64, 1, (int64_t[]){1}, &wrong, &bad));
    assert_ok(tn_array_zeros(b.ctx, TN_F32, 2, (int64_t[]){ROWS, COLUMNS}, NULL, &whole));
    it = item(0, 1, &value, 0, NULL);
    assert_ok(tn_kv_init(b.kv, 1, &it));
    it = item(0, 0, NULL, 1, &whole);
    assert_ok(tn_kv_pull(b.kv, 0, 1, &it)); /* passed over */
    test_values(whole, (float[ROWS * COLUMNS]){0}, ROWS * COLUMNS, 0);
    assert_ok(tn_kv_pull(b.kv, TN_KV_SPARSE, 1, &it));
    test_values(whole, (float[]){1, 1, 2, 2, 0, 0, 3, 3, 0, 0}, ROWS * COLUMNS, 0);
    assert_ok(tn_kv_set_optimizer(b.kv, "sgd", LIST("lr", "1")));
    it = item(0, 2, grads, 0, NULL);
    assert_ok(tn_kv_push(b.kv, 1, &it));
    it = item(0, 1, &ids, 0, NULL);
    assert_ok(tn_kv_row_sparse_pull(b.kv, 1, &it, &out));
    rows_are(out, 3, (int64_t[]){0, 2, 4}, (float[]){-1, -1, 0, 0, -3, -3});
    tn_array_release(out);
    it.values = &bad;
    assert_fails(tn_kv_row_sparse_pull(b.kv, 1, &it, &out), TN_E_ARG);
    assert_ok(tn_kv_set_optimizer(b.kv, NULL, NULL));
    it = item(0, 2, grads, 0, NULL);
    assert_ok(tn_kv_push(b.kv, 1, &it)); /* the sum is the value: other rows are zeros */
    it = item(0, 0, NULL, 1, &whole);
    assert_ok(tn_kv_pull(b.kv, TN_KV_SPARSE, 1, &it));
    test_values(whole, (float[]){2, 2, 1, 1, 0, 0, 0, 0, 3, 3}, ROWS * COLUMNS, 0);
    tn_array_release(whole);
    tn_array_release(bad);
    tn_array_release(ids);
    tn_array_release(grads[0]);
    tn_array_release(grads[1]);
    tn_array_release(value);
    bench_close(&b);
}

/* Two steps of two sparse keys, in one push or in two: the bits of both values. */
static void sparse_steps(const char *engine, const char *name, bool together, float *out)
{
    static const int64_t left[] = {1, 4}, right[] = {0, 4}, every[] = {0, 1, 2, 3, 4};
    static const float ones[] = {1, 2, 3, 4}, start[ROWS * COLUMNS] = {1, -1, 2, -2, 3, -3, 4, -4, 5, -5};
    tn_array *first, *grads[2], *whole = NULL;
    tn_kv_item items[2];
    bench b;

    assert_true(bench_open(&b, "local", "cpu", LIST(engine)));
    first = sparse_of(&b, ROWS, every, start);
    grads[0] = sparse_of(&b, 2, left, ones);
    grads[1] = sparse_of(&b, 2, right, ones);
    assert_ok(tn_array_zeros(b.ctx, TN_F32, 2, (int64_t[]){ROWS, COLUMNS}, NULL, &whole));
    for (int k = 0; k < 2; k++) {
        items[k] = item(k, 1, &first, 0, NULL);
        assert_ok(tn_kv_init(b.kv, 1, &items[k]));
        items[k] = item(k, (uint32_t)k + 1, grads, 0, NULL);
    }
    if (name)
        assert_ok(tn_kv_set_optimizer(b.kv, name, NULL));
    for (int step = 0; step < 2; step++) {
        assert_ok(tn_kv_push(b.kv, together ? 2 : 1, items));
        if (!together)
            assert_ok(tn_kv_push(b.kv, 1, items + 1));
    }
    for (int k = 0; k < 2; k++) {
        items[k] = item(k, 0, NULL, 1, &whole);
        assert_ok(tn_kv_pull(b.kv, TN_KV_SPARSE, 1, &items[k]));
        assert_ok(tn_array_read(whole, out + (size_t)k * ROWS * COLUMNS, sizeof start));
    }
    assert_memory_not_equal(out, start, sizeof start);
    tn_array_release(whole);
    tn_array_release(first);
    tn_array_release(grads[0]);
    tn_array_release(grads[1]);
    bench_close(&b);
}

static void sparse_pushes(void **state)
{
    static const char *const names[] = {NULL, "sgd", "nag", "adam", "signum", "rmsprop", "ftrl"};
    static const char *const engines[] = {"engine.type=threaded", "engine.type=naive"};
    float one[2 * ROWS * COLUMNS], two[2 * ROWS * COLUMNS];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t e = 0; e < 2; e++) {
            sparse_steps(engines[e], names[i], true, one);
            sparse_steps(engines[e], names[i], false, two);
            assert_memory_equal(one, two, sizeof one);
        }
}

/* ---- compression ------------------------------------------------------------------------------------ */

/* By the definition, one number at a time. */
static float coded(const char *type, float t, float x, float *residual)
{
    *residual += x;
    if (!strcmp(type, "1bit")) {
        const float sent = *residual > t ? 1 : -1;

        *residual -= sent;
        return sent;
    }
    if (*residual >= t) {
        *residual -= t;
        return t;
    }
    if (*residual <= -t) {
        *residual += t;
        return -t;
    }
    return 0;
}

static void compression(void **state)
{
    static const char *const kinds[] = {"2bit", "1bit"}, *const devices[] = {"cpu", "fake"};

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        const char *kind = kinds[k % 2];
        float residual[DEVICES][COUNT] = {{0}}, got[COUNT], wanted[COUNT], values[COUNT];
        bench b;
        tn_kv_item it;

        if (!bench_open(&b, "device", devices[k / 2], LIST("plugin.fake.devices=4"))) {
            print_message("skipped: no device %s\n", devices[k / 2]);
            return;
        }
        init(&b, 0, 9);
        assert_ok(tn_kv_set_compression(b.kv, LIST("type", kind, "threshold", "0.75")));
        for (uint32_t round = 0; round < 5; round++) {
            memset(wanted, 0, sizeof wanted);
            for (uint32_t d = 0; d < 3; d++) {
                for (uint32_t i = 0; i < COUNT; i++) {
                    values[i] = (float)((i * 5 + d * 3 + round) % 9) / 4 - 1;
                    wanted[i] += coded(kind, 0.75f, values[i], &residual[d][i]);
                }
                assert_ok(tn_array_write(b.values[d], values, sizeof values));
            }
            it = item(0, 3, b.values, 0, NULL);
            assert_ok(tn_kv_push(b.kv, 1, &it));
            assert_ok(pull(&b, 0, got));
            same(got, wanted, kind);
        }
        bench_close(&b);
    }
}

/* ---- the others ------------------------------------------------------------------------------------- */

static void alone(void **state)
{
    tn_kv_info info = {.struct_size = TN_SIZE(tn_kv_info)};
    uint32_t dead = 7;
    int32_t ran = 7;
    bench b;

    (void)state;
    assert_true(bench_open(&b, NULL, "cpu", LIST("kvstore.type=device")));
    init(&b, 0, 1);
    assert_ok(tn_kv_info_get(b.kv, &info));
    assert_int_equal(info.rank, 0);
    assert_int_equal(info.workers, 1);
    assert_int_equal(info.servers, 0);
    assert_int_equal(info.keys, 1);
    assert_string_equal(info.type, "device");
    assert_ok(tn_kv_dead_nodes(b.kv, TN_KV_SERVERS | TN_KV_WORKERS, 0, &dead));
    assert_int_equal(dead, 0);
    assert_ok(tn_kv_barrier(b.kv));
    assert_ok(tn_kv_command(b.kv, 3, "body"));
    assert_ok(tn_kv_run_role(b.ctx, NULL, NULL, &ran));
    assert_int_equal(ran, 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_arrival),   cmocka_unit_test(on_devices),
        cmocka_unit_test(other_types),   cmocka_unit_test(pushpull_and_broadcast),
        cmocka_unit_test(copies),        cmocka_unit_test(updaters),
        cmocka_unit_test(rates),         cmocka_unit_test(states_in_files),
        cmocka_unit_test(half_a_step),   cmocka_unit_test(sparse_keys),
        cmocka_unit_test(sparse_pushes), cmocka_unit_test(compression),
        cmocka_unit_test(alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
