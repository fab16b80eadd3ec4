/*
 * Gradients of rows over several workers: an embedding is trained to the bits of one process that has the
 * same gradients, whatever the optimizer, and far fewer bytes travel than with dense ones.
 */
#include "dist/job.h"
#include "support/list.h"

#include <stdio.h>

#define ROWS 300
#define COLUMNS 16 /* 64 rows in a part of 4096 bytes */
#define TOKENS 6
#define STEPS 5
#define WORKERS 2

static const int64_t dims[] = {ROWS, COLUMNS}, few[] = {TOKENS};

typedef struct plan {
    const char *optimizer;
    const char *const *params;
    float value[WORKERS][ROWS * COLUMNS]; /* at the end */
    uint64_t bytes;                       /* that a worker sends, about */
    bool dense, half;                     /* half: float16, updated in float32 */
} plan;

/* Some rows are looked up by all, some twice, some at the borders of parts. */
static void tokens_of(uint32_t rank, int step, float *out)
{
    for (int i = 0; i < TOKENS; i++) {
        const int own = (int)rank * 97 + step * 31 + i / 2 * 13;

        out[i] = (float)((i == 0 ? 63 + step % 2 : i == 1 ? 299 : own) % ROWS);
    }
}

/* Another type; `a` is released. */
static tn_array *cast(const worker *w, tn_array *a, bool half)
{
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = 1,
                             .op = "Cast",
                             .attrs = LIST("dtype", half ? "float16" : "float32"),
                             .in = &a};
    tn_array *y = NULL;

    WORKER_OK(w, tn_invoke_text(w->ctx, &call, 1, &y, NULL));
    tn_array_release(a);
    return y;
}

static tn_array *sparse_of(const worker *w, int64_t stored, const int64_t *ids, const float *values)
{
    const tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                                  .storage = TN_STORAGE_ROW_SPARSE,
                                  .dtype = TN_F32,
                                  .ndim = 2,
                                  .shape = dims,
                                  .stored = stored,
                                  .values = values,
                                  .indices = ids};
    tn_array *a = NULL;

    WORKER_OK(w, tn_array_sparse_from(w->ctx, &from, &a));
    return a;
}

static tn_array *invoke(const worker *w, const char *op, const char *const *attrs, uint32_t count,
                        tn_array **in)
{
    const tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = count, .op = op, .attrs = attrs, .in = in};
    tn_array *y = NULL;

    WORKER_OK(w, tn_invoke_text(w->ctx, &call, 1, &y, NULL));
    return y;
}

/* The gradient of the sum of the squares of what is looked up: rows, in a new array. */
static tn_array *gradient(const worker *w, tn_array *weight, uint32_t rank, int step, const plan *p)
{
    const char *const attrs[] = {"input_dim", "300", "output_dim", "16", "sparse_grad", "1", NULL};
    float tokens[TOKENS];
    const int64_t none[1] = {0};
    tn_array *in[2] = {NULL, weight}, *rows = p->dense ? NULL : cast(w, sparse_of(w, 0, none, NULL), p->half),
             *y, *twice[2], *z, *grad;

    tokens_of(rank, step, tokens);
    WORKER_OK(w, tn_array_from(w->ctx, TN_F32, 1, few, tokens, &in[0]));
    WORKER_OK(w, tn_attach_grad(w->ctx, weight, TN_MODE_WRITE, rows));
    (void)tn_record_set(1);
    y = invoke(w, "Embedding", attrs, 2, in);
    twice[0] = twice[1] = y;
    z = invoke(w, "elemwise_mul", NULL, 2, twice);
    (void)tn_record_set(0);
    WORKER_OK(w, tn_backward(w->ctx, 1, &z, NULL, 0));
    tn_array_retain(grad = tn_array_grad(weight));
    tn_array_release(z);
    tn_array_release(y);
    tn_array_release(in[0]);
    tn_array_release(rows);
    return grad;
}

static void first_values(const worker *w, tn_kv *kv, const plan *p)
{
    static _Thread_local int64_t ids[ROWS];
    static _Thread_local float values[ROWS * COLUMNS];
    tn_array *first = NULL;
    tn_kv_item it = {.name = "e", .value_count = 1, .values = &first};

    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(i % 97 - 48) / 64;
    for (int i = 0; i < ROWS; i++)
        ids[i] = i;
    if (p->dense)
        WORKER_OK(w, tn_array_from(w->ctx, TN_F32, 2, dims, values, &first));
    else
        first = sparse_of(w, ROWS, ids, values);
    first = cast(w, first, p->half);
    WORKER_OK(w, tn_kv_init(kv, 1, &it));
    tn_array_release(first);
}

/* The rows of its tokens, which are all that a worker needs of the value. */
static tn_array *looked_up(const worker *w, tn_kv *kv, uint32_t rank, int step, const plan *p)
{
    float tokens[TOKENS];
    int64_t wanted[TOKENS];
    tn_array *ids = NULL, *rows = NULL, *weight = NULL;
    tn_kv_item it = {.name = "e", .value_count = 1, .values = &ids};

    if (p->dense) {
        WORKER_OK(w, tn_array_zeros(w->ctx, p->half ? TN_F16 : TN_F32, 2, dims, NULL, &weight));
        it = (tn_kv_item){.name = "e", .out_count = 1, .outs = &weight};
        WORKER_OK(w, tn_kv_pull(kv, 0, 1, &it));
        return weight;
    }
    tokens_of(rank, step, tokens);
    for (int i = 0; i < TOKENS; i++)
        wanted[i] = (int64_t)tokens[i];
    WORKER_OK(w, tn_array_from(w->ctx, TN_I64, 1, few, wanted, &ids));
    WORKER_OK(w, tn_kv_row_sparse_pull(kv, 1, &it, &rows));
    WORKER_OK(w, tn_array_to_storage(w->ctx, rows, TN_STORAGE_DENSE, &weight));
    tn_array_release(rows);
    tn_array_release(ids);
    return weight;
}

static void value_read(const worker *w, tn_kv *kv, bool half, float *out)
{
    tn_array *whole = NULL;
    const tn_kv_item it = {.name = "e", .out_count = 1, .outs = &whole};

    WORKER_OK(w, tn_array_zeros(w->ctx, half ? TN_F16 : TN_F32, 2, dims, NULL, &whole));
    WORKER_OK(w, tn_kv_pull(kv, TN_KV_SPARSE, 1, &it));
    whole = cast(w, whole, false);
    WORKER_OK(w, tn_array_read(whole, out, ROWS * COLUMNS * sizeof *out));
    tn_array_release(whole);
}

/* Of a process alone: workers 0 and 1 one after the other. */
static void trained(const worker *w, tn_kv *kv, uint32_t from, uint32_t end, plan *p, float *out)
{
    first_values(w, kv, p);
    if (p->optimizer)
        WORKER_OK(w, tn_kv_set_optimizer(kv, p->optimizer, p->params));
    for (int step = 0; step < STEPS; step++) {
        tn_array *grads[WORKERS] = {NULL};
        const tn_kv_item it = {.name = "e", .value_count = end - from, .values = grads};

        for (uint32_t rank = from; rank < end; rank++) {
            tn_array *weight = looked_up(w, kv, rank, step, p);

            grads[rank - from] = gradient(w, weight, rank, step, p);
            tn_array_release(weight);
        }
        WORKER_OK(w, tn_kv_push(kv, 1, &it));
        for (uint32_t rank = from; rank < end; rank++)
            tn_array_release(grads[rank - from]);
    }
    value_read(w, kv, p->half, out);
}

static void train(worker *w)
{
    plan *p = w->arg;
    uint64_t before;

    job_meet(w);
    before = job_payload_bytes();
    trained(w, w->kv, w->rank, w->rank + 1, p, p->value[w->rank]);
    job_meet(w);
    if (w->rank == 0)
        p->bytes = job_payload_bytes() - before;
}

static void alone(worker *w)
{
    plan *p = w->arg;
    tn_kv *kv = NULL;

    if (w->rank)
        return;
    WORKER_OK(w, tn_kv_create(w->ctx, "local", &kv));
    trained(w, kv, 0, WORKERS, p, p->value[0]);
    tn_kv_destroy(kv);
}

static void as_one_process(void **state)
{
    const plan plans[] = {
        {.optimizer = NULL},
        {.optimizer = "sgd", .params = LIST("lr", "0.1")},
        {.optimizer = "sgd", .params = LIST("lr", "0.1", "momentum", "0.9", "wd", "0.01")},
        {.optimizer = "adam", .params = LIST("lr", "0.05", "wd", "0.01")},
        {.optimizer = "ftrl", .params = LIST("lr", "0.1")},
        {.optimizer = "rmsprop", .params = LIST("lr", "0.01")},
        {.optimizer = "nag", .params = LIST("lr", "0.1", "momentum", "0.9")},
        {.optimizer = "adamax", .params = LIST("lr", "0.1")}, /* of lines: all rows */
        {.half = true,
         .optimizer = "sgd",
         .params = LIST("lr", "0.1", "momentum", "0.9", "wd", "0.01", "multi_precision", "1")},
        {.half = true,
         .optimizer = "adam",
         .params = LIST("lr", "0.05", "wd", "0.01", "multi_precision", "1")},
        {.half = true, .optimizer = "adamax", .params = LIST("lr", "0.1", "multi_precision", "1")},
    };
    const job_options o = {.workers = WORKERS, .servers = 2, .part_bytes = 4096};

    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        static plan far, near, whole;
        uint64_t first; /* bytes of the first values */

        far = near = whole = plans[i];
        whole.dense = true;
        job_run(&o, "dist_sync", train, &far);
        job_run(&o, "dist_sync", alone, &near);
        job_run(&o, "dist_sync", train, &whole);
        for (int k = 0; k < WORKERS; k++)
            if (memcmp(far.value[k], near.value[0], sizeof near.value[0]) != 0)
                fail_msg("%s: worker %d has other bits than one process", far.optimizer, k);
        if (i < 2) /* rows with a gradient of 0 do not move: dense ones give the same */
            assert_memory_equal(far.value[0], whole.value[0], sizeof far.value[0]);
        print_message("%s: workers sent %llu bytes, %llu as dense arrays\n",
                      far.optimizer ? far.optimizer : "sum", (unsigned long long)far.bytes,
                      (unsigned long long)whole.bytes);
        first = ROWS * COLUMNS * (plans[i].half ? 2 : 4);
        assert_true(far.bytes - first < (whole.bytes - first) / 4);
    }
}

/* A worker whose gradient is dense makes all rows move. */
static void mixed(worker *w)
{
    static const int64_t id[] = {7};
    const plan single = {0};
    float row[COLUMNS], *got = w->arg;
    tn_array *grad;

    first_values(w, w->kv, &single);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", LIST("lr", "1", "wd", "0.5")));
    for (int i = 0; i < COLUMNS; i++)
        row[i] = 1;
    grad = w->rank ? sparse_of(w, 1, id, row) : worker_array(w, TN_F32, 2, dims, 2);
    worker_push(w, "e", grad);
    tn_array_release(grad);
    if (w->rank == 0)
        value_read(w, w->kv, false, got);
}

static void rows_and_dense(void **state)
{
    static float got[ROWS * COLUMNS];
    const job_options o = {.workers = 2, .servers = 2, .part_bytes = 4096};

    (void)state;
    job_run(&o, "dist_sync", mixed, got);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const float before = (float)(i % 97 - 48) / 64, g = i / COLUMNS == 7 ? 3 : 2;

        assert_true(got[i] == before - (g + 0.5f * before));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_one_process), cmocka_unit_test(rows_and_dense)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
