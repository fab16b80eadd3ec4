/*
 * Stores of several workers: what MXNet 1.9.1's tests of its own say of them (tests/nightly,
 * dist_sync_kvstore and dist_async_kvstore): sums of values that depend on the rank, in several types, of
 * small arrays and of those that are cut over servers, for 2 to 7 workers. Wanted numbers are made here, in
 * the order of ranks.
 */
#include "dist/job.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>

#define ROUNDS 3

static const uint32_t worker_counts[] = {2, 3, 7}, server_counts[] = {1, 2};

static void each_size(const char *type, const job_options *o, void (*fn)(worker *w))
{
    for (size_t n = 0; n < sizeof worker_counts / sizeof *worker_counts; n++)
        for (size_t s = 0; s < sizeof server_counts / sizeof *server_counts; s++) {
            job_options options = *o;

            options.workers = worker_counts[n];
            options.servers = server_counts[s];
            job_run(&options, type, fn, NULL);
        }
}

static double ranks_sum(const worker *w)
{
    return w->workers * (w->workers + 1) / 2.0;
}

/* ---- sums -------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int32_t dtype;
} types[] = {{"single", TN_F32}, {"half", TN_F16}, {"brain", TN_BF16}, {"double", TN_F64}, {"whole", TN_I32}};
enum { TYPES = sizeof types / sizeof *types };

/* Each worker pushes rank + 1, and then a multiple of it. */
static void sums(worker *w)
{
    for (size_t t = 0; t < TYPES; t++) {
        char big[32];

        (void)snprintf(big, sizeof big, "big %s", types[t].name);
        worker_init(w, types[t].name, types[t].dtype, 2, small_shape, 1);
        worker_init(w, big, types[t].dtype, 1, big_shape, 1);
        worker_value(w, types[t].name, 2, small_shape, 1);
        for (int round = 1; round <= ROUNDS; round++) {
            tn_array *a = worker_array(w, types[t].dtype, 2, small_shape, (w->rank + 1.0) * round);
            tn_array *b = worker_array(w, types[t].dtype, 1, big_shape, (w->rank + 1.0) * round);

            worker_push(w, types[t].name, a);
            worker_push(w, big, b);
            worker_value(w, types[t].name, 2, small_shape, ranks_sum(w) * round);
            worker_value(w, big, 1, big_shape, ranks_sum(w) * round);
            tn_array_release(a);
            tn_array_release(b);
        }
    }
}

static void sums_of_ranks(void **state)
{
    const job_options o = {.part_bytes = 4096};

    (void)state;
    each_size("dist_sync", &o, sums);
}

/* Numbers whose sum depends on its order. */
static float number(uint32_t rank, uint32_t i)
{
    return (float)((i * 7 + rank * 3) % 11) * powf(10, (float)((i + rank * 5) % 9) - 4);
}

static void ordered(worker *w)
{
    float sent[BIG], got[BIG], wanted[BIG];
    tn_array *a = NULL, *b = NULL;
    tn_kv_item it = worker_item("w", &a, &b);

    worker_init(w, "w", TN_F32, 1, big_shape, 0);
    for (uint32_t i = 0; i < BIG; i++) {
        sent[i] = number(w->rank, i);
        wanted[i] = number(0, i);
        for (uint32_t r = 1; r < w->workers; r++)
            wanted[i] += number(r, i);
    }
    WORKER_OK(w, tn_array_from(w->ctx, TN_F32, 1, big_shape, sent, &a));
    b = worker_array(w, TN_F32, 1, big_shape, -1);
    for (int round = 0; round < ROUNDS; round++) {
        WORKER_OK(w, tn_kv_pushpull(w->kv, 1, &it));
        WORKER_OK(w, tn_array_read(b, got, sizeof got));
        WORKER_TRUE(w, !memcmp(got, wanted, sizeof got));
    }
    tn_array_release(a);
    tn_array_release(b);
}

static void same_bits_in_rank_order(void **state)
{
    const job_options o = {.part_bytes = 4096};

    (void)state;
    each_size("dist_sync", &o, ordered);
}

/* Several devices of a worker: their sum goes out, and the value comes back to each. */
static void devices(worker *w)
{
    const tn_device *second = NULL;
    tn_array *in[2], *out[2];
    tn_kv_item it = {.name = "w", .value_count = 2, .out_count = 2, .values = in, .outs = out};
    float got[SMALL];

    WORKER_OK(w, tn_device_get(w->ctx, "cpu:1", &second));
    worker_init(w, "w", TN_F32, 2, small_shape, 0);
    for (int k = 0; k < 2; k++) {
        WORKER_OK(w, tn_array_zeros(w->ctx, TN_F32, 2, small_shape, k ? second : NULL, &in[k]));
        WORKER_OK(w, tn_array_zeros(w->ctx, TN_F32, 2, small_shape, k ? second : NULL, &out[k]));
        WORKER_OK(w, tn_array_fill(in[k], w->rank + 10.0 * k));
    }
    for (int round = 0; round < ROUNDS; round++) {
        WORKER_OK(w, tn_kv_pushpull(w->kv, 1, &it));
        for (int k = 0; k < 2; k++) {
            WORKER_OK(w, tn_array_read(out[k], got, sizeof got));
            WORKER_TRUE(w, got[SMALL - 1] == 0 + 1 + 10 + 11);
        }
    }
    for (int k = 0; k < 2; k++) {
        tn_array_release(in[k]);
        tn_array_release(out[k]);
    }
}

static void sums_of_devices(void **state)
{
    const job_options o = {.workers = 2, .servers = 1};

    (void)state;
    job_run(&o, "dist_sync", devices, NULL);
    job_run(&o, "dist_sync_device", devices, NULL);
}

/* ---- first values ------------------------------------------------------------------------------------ */

static void first_values(worker *w)
{
    tn_array *a = worker_array(w, TN_F32, 2, small_shape, w->rank + 5.0),
             *b = worker_array(w, TN_F32, 1, big_shape, 9);
    tn_kv_item items[2] = {worker_item("a", &a, &a), worker_item("b", &b, &b)};
    const tn_kv_item swapped[2] = {items[1], items[0]};
    tn_kv_info info = {.struct_size = TN_SIZE(tn_kv_info)};
    float got[SMALL];

    WORKER_OK(w, tn_kv_broadcast(w->kv, 2, w->rank ? swapped : items)); /* any order within a list */
    WORKER_OK(w, tn_array_read(a, got, sizeof got));
    WORKER_TRUE(w, got[0] == 5); /* that of worker 0 */
    items[0].out_count = 0;
    WORKER_FAILS(w, tn_kv_init(w->kv, 1, items), TN_E_KEY);
    worker_value(w, "a", 2, small_shape, 5);
    worker_value(w, "b", 1, big_shape, 9);
    WORKER_OK(w, tn_kv_info_get(w->kv, &info));
    WORKER_TRUE(w, info.rank == w->rank && info.workers == w->workers && info.keys == 2);
    WORKER_TRUE(w, info.servers == 1 || info.servers == 2);
    tn_array_release(a);
    tn_array_release(b);
}

static void init_is_worker_0s(void **state)
{
    const job_options o = {.part_bytes = 4096};

    (void)state;
    each_size("dist_sync", &o, first_values);
    each_size("dist_async", &o, first_values);
}

/* Worker 1 differs in what it begins with, and is told how. */
static void unlike(worker *w)
{
    static const int64_t other[] = {3, 2};
    const bool by_shape = w->arg != NULL;
    tn_array *a = worker_array(w, TN_F32, 2, w->rank && by_shape ? other : small_shape, 0);
    const tn_kv_item it = worker_item(w->rank && !by_shape ? "bias" : "weight", &a, NULL);

    if (w->rank) {
        while (!job_payload_bytes()) /* worker 0's keys go first */
            (void)sched_yield();
        WORKER_FAILS(w, tn_kv_init(w->kv, 1, &it), by_shape ? TN_E_SHAPE : TN_E_KEY);
        WORKER_TRUE(w, strstr(tn_error_text(), "\"weight\"") && strstr(tn_error_text(), "worker 0") &&
                           strstr(tn_error_text(), by_shape ? "float32 (3,2)" : "\"bias\"") &&
                           (!by_shape || strstr(tn_error_text(), "float32 (2,3)")));
        tn_kv_destroy(w->kv); /* it leaves: nobody waits for it */
        w->kv = NULL;
    } else {
        WORKER_OK(w, tn_kv_init(w->kv, 1, &it));
    }
    tn_array_release(a);
}

static void names_and_shapes_agree(void **state)
{
    static int by_shape;
    const job_options o = {.workers = 2, .servers = 2};

    (void)state;
    job_run(&o, "dist_sync", unlike, NULL);
    job_run(&o, "dist_sync", unlike, &by_shape);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

/* Worker r pushes rows r and r + 1 of r + 1; the sum of rows is what is stored. */
static void rows(worker *w)
{
    static const int64_t dims[] = {9, 2}, three[] = {3};
    const int64_t ids[] = {w->rank, w->rank + 1}, none[1] = {0}, wanted[] = {2, 0, 1};
    const float values[] = {(float)w->rank + 1, 10, (float)w->rank + 1, 10};
    tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                            .storage = TN_STORAGE_ROW_SPARSE,
                            .dtype = TN_F32,
                            .ndim = 2,
                            .shape = dims,
                            .values = values,
                            .indices = none};
    tn_array *first = NULL, *grad = NULL, *which = NULL, *out = NULL, *dense = NULL;
    tn_kv_item it = {.name = "rows", .value_count = 1, .values = &first};
    float got[18];

    WORKER_OK(w, tn_array_sparse_from(w->ctx, &from, &first));
    WORKER_OK(w, tn_kv_init(w->kv, 1, &it));
    from.stored = 2;
    from.indices = ids;
    WORKER_OK(w, tn_array_sparse_from(w->ctx, &from, &grad));
    WORKER_OK(w, tn_array_from(w->ctx, TN_I64, 1, three, wanted, &which));
    for (int round = 0; round < ROUNDS; round++) {
        it.values = &grad;
        WORKER_OK(w, tn_kv_push(w->kv, 1, &it));
        it.values = &which;
        WORKER_OK(w, tn_kv_row_sparse_pull(w->kv, 1, &it, &out));
        WORKER_OK(w, tn_array_to_storage(w->ctx, out, TN_STORAGE_DENSE, &dense));
        WORKER_OK(w, tn_array_read(dense, got, sizeof got));
        WORKER_TRUE(w, got[0] == 1 && got[1] == 10 && got[2] == 1 + 2 && got[3] == 20 && got[6] == 0);
        WORKER_TRUE(w, got[4] == (w->workers == 2 ? 2 : 2 + 3)); /* of workers 1 and 2 */
        tn_array_release(out);
        tn_array_release(dense);
    }
    tn_array_release(first);
    tn_array_release(grad);
    tn_array_release(which);
}

static void sums_of_rows(void **state)
{
    const job_options o = {.part_bytes = 4096};

    (void)state;
    each_size("dist_sync", &o, rows);
}

/* ---- long values land where they are pulled to ------------------------------------------------------- */

static void long_is(worker *w, tn_array *a, double wanted, int line)
{
    static _Thread_local float got[BIG];

    WORKER_OK(w, tn_array_read(a, got, sizeof got));
    for (int i = 0; i < BIG; i++)
        if (got[i] != (float)wanted) {
            worker_fail(w, __FILE__, line, "element %d of worker %u is %.9g, wanted %.9g", i, w->rank,
                        (double)got[i], wanted);
            return;
        }
}
#define BIG_IS(a, wanted) long_is(w, a, wanted, __LINE__)

static void pushpull(worker *w, uint32_t count, const char *const *names, tn_array *const *in,
                     tn_array *const *out)
{
    tn_kv_item items[2];

    for (uint32_t i = 0; i < count; i++)
        items[i] = worker_item(names[i], &in[i], &out[i]);
    WORKER_OK(w, tn_kv_pushpull(w->kv, count, items));
}

/* Into another array, into itself, crosswise, into an array that is still read, into two and into a part. */
static void long_values(worker *w)
{
    static const int64_t half[1] = {BIG / 2};
    static const char *const names[2] = {"long a", "long b"};
    const double all = ranks_sum(w), n = w->workers;
    tn_array *x, *y, *z = NULL, *part = NULL, *both[2];
    tn_kv_item item;

    worker_init(w, names[0], TN_F32, 1, big_shape, 1);
    worker_init(w, names[1], TN_F32, 1, big_shape, 2);
    x = worker_array(w, TN_F32, 1, big_shape, w->rank + 1.0);
    y = worker_array(w, TN_F32, 1, big_shape, -1);
    for (int round = 0; round < ROUNDS; round++) {
        pushpull(w, 1, names, &x, &y);
        BIG_IS(x, w->rank + 1.0);
        BIG_IS(y, all);
    }
    pushpull(w, 1, names, &x, &x);
    BIG_IS(x, all);
    WORKER_OK(w, tn_array_fill(x, 1));
    WORKER_OK(w, tn_array_fill(y, 5));
    pushpull(w, 2, names, (tn_array *const[]){x, y}, (tn_array *const[]){y, x});
    BIG_IS(y, n);
    BIG_IS(x, 5 * n);
    z = worker_array(w, TN_F32, 1, big_shape, 0);
    WORKER_OK(w, tn_array_copy(y, z));
    pushpull(w, 2, names, (tn_array *const[]){z, z}, (tn_array *const[]){y, z});
    BIG_IS(y, n * n);
    BIG_IS(z, n * n);
    both[0] = x;
    both[1] = y;
    item = worker_item(names[0], NULL, both);
    item.out_count = 2;
    WORKER_OK(w, tn_array_fill(x, 0));
    WORKER_OK(w, tn_array_fill(y, 0));
    WORKER_OK(w, tn_kv_pull(w->kv, TN_KV_SPARSE, 1, &item));
    BIG_IS(x, n * n);
    BIG_IS(y, n * n);
    WORKER_OK(w, tn_array_fill(x, 7));
    pushpull(w, 1, names + 1, &x, &y); /* the value of "long b": 7 n */
    WORKER_OK(w, tn_array_fill(x, 7 * n));
    WORKER_OK(w, tn_array_slice(x, 0, BIG / 2, &part));
    worker_init(w, "half", TN_F32, 1, half, 7 * n);
    WORKER_OK(w, tn_array_fill(part, 0));
    item = worker_item("half", NULL, &part);
    WORKER_OK(w, tn_kv_pull(w->kv, TN_KV_SPARSE, 1, &item));
    BIG_IS(x, 7 * n);
    tn_array_release(part);
    tn_array_release(x);
    tn_array_release(y);
    tn_array_release(z);
}

static void long_values_land(void **state)
{
    const job_options o = {.part_bytes = 4096};

    (void)state;
    each_size("dist_sync", &o, long_values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_ranks),     cmocka_unit_test(same_bits_in_rank_order),
        cmocka_unit_test(sums_of_devices),   cmocka_unit_test(sums_of_rows),
        cmocka_unit_test(init_is_worker_0s), cmocka_unit_test(names_and_shapes_agree),
        cmocka_unit_test(long_values_land),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
