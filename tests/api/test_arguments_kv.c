/* As test_arguments.c: the parameter store. */
#include "api/fixture.h"

#include <stdio.h>

#include "support/scratch.h"

static tn_kv *store(const char *type)
{
    const tn_kv_item first = {.name = "w", .value_count = 1, .values = &f.a};
    tn_kv *kv = NULL;

    assert_ok(tn_kv_create(f.ctx, type, &kv));
    assert_ok(tn_kv_init(kv, 1, &first));
    return kv;
}

static tn_kv_item in_item(const char *name, uint32_t count, tn_array *const *values)
{
    return (tn_kv_item){.name = name, .value_count = count, .values = values};
}

static tn_kv_item out_item(const char *name, uint32_t count, tn_array *const *outs)
{
    return (tn_kv_item){.name = name, .out_count = count, .outs = outs};
}

static void creation(void **state)
{
    static const char *const absent[] = {
        "nccl", "mpi", "dist_sync", "dist_async", "dist_sync_device", "dist_async_device"};
    tn_ctx *ctx = test_open(LIST("kvstore.transport=absent"));
    tn_kv *kv = NULL;
    int32_t ran;

    (void)state;
    assert_fails(tn_kv_create(NULL, "local", &kv), TN_E_ARG);
    assert_fails(tn_kv_create(f.ctx, "local", NULL), TN_E_ARG);
    assert_fails(tn_kv_create(f.ctx, "", &kv), TN_E_KEY);
    assert_fails(tn_kv_create(f.ctx, "locl", &kv), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "local"));
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_fails(tn_kv_create(ctx, absent[i], &kv), TN_E_UNSUPPORTED);
        assert_non_null(strstr(tn_error_text(), "kv-absent"));
        assert_int_equal(tn_error_number(), 1401);
    }
    assert_null(kv);
    assert_ok(tn_close(ctx));
    tn_kv_destroy(NULL);
    assert_fails(tn_kv_run_role(NULL, NULL, NULL, &ran), TN_E_ARG);
}

typedef tn_status (*items_fn)(tn_kv *kv, uint32_t count, const tn_kv_item *items);

/* What all calls with values refuse. */
static void values(void **state)
{
    static const items_fn calls[] = {tn_kv_init, tn_kv_assign, tn_kv_push, tn_kv_pushpull, tn_kv_broadcast};
    tn_kv *kv = store("local");

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tn_array *none = NULL;
        tn_kv_item it = in_item("new", 1, &f.a);

        assert_fails(calls[i](NULL, 1, &it), TN_E_ARG);
        assert_fails(calls[i](kv, 1, NULL), TN_E_ARG);
        assert_fails(calls[i](kv, HUGE_COUNT, &it), TN_E_ARG);
        it.reserved = 1;
        assert_fails(calls[i](kv, 1, &it), TN_E_ARG);
        it = in_item("new", 1, NULL);
        assert_fails(calls[i](kv, 1, &it), TN_E_ARG);
        it = in_item("new", HUGE_COUNT, &f.a);
        assert_fails(calls[i](kv, 1, &it), TN_E_ARG);
        it = in_item("new", 1, &none);
        assert_fails(calls[i](kv, 1, &it), TN_E_ARG);
        it = in_item("new", 1, &f.foreign);
        assert_fails(calls[i](kv, 1, &it), TN_E_ARG);
        it = in_item(NULL, 1, &f.a); /* a number among texts */
        it.out_count = i >= 3;
        it.outs = &f.a;
        assert_fails(calls[i](kv, 1, &it), TN_E_KEY);
        assert_ok(calls[i](kv, 0, NULL));
    }
    tn_kv_destroy(kv);
}

/* Of one process: copies on devices, and only in rounds that are asked for. */
static void drift(void **state)
{
    tn_ctx *ctx = test_open(LIST("kvstore.drift_check=3"));
    tn_array *pair[] = {f.a, f.a}, *none = NULL;
    tn_kv_item it = in_item("w", 2, pair), empty = in_item("w", 0, NULL), out = out_item("w", 1, &f.a);
    tn_kv *kv = store("local");

    (void)state;
    assert_fails(tn_kv_check_drift(NULL, 0, 1, &it), TN_E_ARG);
    assert_fails(tn_kv_check_drift(kv, 0, 1, NULL), TN_E_ARG);
    assert_fails(tn_kv_check_drift(kv, 0, HUGE_COUNT, &it), TN_E_ARG);
    assert_fails(tn_kv_check_drift(kv, 0, 1, &empty), TN_E_ARG);
    assert_fails(tn_kv_check_drift(kv, 0, 1, &out), TN_E_ARG);
    it.values = &none;
    it.value_count = 1;
    assert_fails(tn_kv_check_drift(kv, 0, 1, &it), TN_E_ARG);
    it = in_item("w", 1, &f.foreign);
    assert_fails(tn_kv_check_drift(kv, 0, 1, &it), TN_E_ARG);
    it = in_item("w", 2, pair);
    assert_ok(tn_kv_check_drift(kv, 0, 1, &it));
    assert_ok(tn_kv_check_drift(kv, 0, 0, NULL));
    tn_kv_destroy(kv);
    assert_ok(tn_kv_create(ctx, "device", &kv));
    for (int i = 0; i < 2; i++) {
        const float values[] = {1, 2 + (float)i};
        const int64_t shape[] = {2};

        assert_ok(tn_array_from(ctx, TN_F32, 1, shape, values, &pair[i]));
    }
    assert_ok(tn_kv_check_drift(kv, 4, 1, &it));
    assert_fails(tn_kv_check_drift(kv, 6, 1, &it), TN_E_STATE);
    assert_string_equal(tn_error_text(), "drift check, round 6: key \"w\" differs from device to device");
    tn_array_release(pair[0]);
    tn_array_release(pair[1]);
    tn_kv_destroy(kv);
    assert_ok(tn_close(ctx));
}

static void nulls(void **state)
{
    const tn_kv_item it = in_item("new", 1, &f.a), key = {.name = "w"};
    tn_kv *kv = store("local");
    tn_array *out = NULL;

    (void)state;
    assert_fails(tn_kv_init(NULL, 1, &it), TN_E_ARG);
    assert_fails(tn_kv_init(kv, 1, NULL), TN_E_ARG);
    assert_fails(tn_kv_assign(NULL, 1, &it), TN_E_ARG);
    assert_fails(tn_kv_assign(kv, 1, NULL), TN_E_ARG);
    assert_fails(tn_kv_push(NULL, 1, &it), TN_E_ARG);
    assert_fails(tn_kv_push(kv, 1, NULL), TN_E_ARG);
    assert_fails(tn_kv_pushpull(NULL, 1, &it), TN_E_ARG);
    assert_fails(tn_kv_pushpull(kv, 1, NULL), TN_E_ARG);
    assert_fails(tn_kv_broadcast(NULL, 1, &it), TN_E_ARG);
    assert_fails(tn_kv_broadcast(kv, 1, NULL), TN_E_ARG);
    assert_ok(tn_kv_set_optimizer(kv, NULL, NULL)); /* there was none */
    assert_ok(tn_kv_set_optimizer(kv, "adam", NULL));
    assert_ok(tn_kv_state(kv, &key, 1, &out, NULL));
    tn_array_release(out);
    tn_kv_destroy(kv);
    assert_ok(tn_kv_create(f.ctx, NULL, &kv)); /* the option's */
    tn_kv_destroy(kv);
}

static void keys(void **state)
{
    tn_kv_item twice[] = {in_item("w", 1, &f.a), in_item("w", 1, &f.a)}, it = in_item("w", 1, &f.a);
    tn_array *pair[] = {f.a, f.a}, *csr = NULL, *dense = NULL, *rows = NULL;
    tn_kv *kv = store("local");

    (void)state;
    assert_fails(tn_kv_init(kv, 1, &it), TN_E_KEY);
    assert_fails(tn_kv_push(kv, 2, twice), TN_E_KEY);
    assert_fails(tn_kv_assign(kv, 2, twice), TN_E_KEY);
    twice[0].name = twice[1].name = "x";
    assert_fails(tn_kv_init(kv, 2, twice), TN_E_KEY);
    assert_fails(tn_kv_push(kv, 1, twice), TN_E_KEY); /* none of the list has a value */
    it = in_item("y", 2, pair);
    assert_fails(tn_kv_init(kv, 1, &it), TN_E_ARG);
    it = in_item("w", 2, pair);
    assert_fails(tn_kv_assign(kv, 1, &it), TN_E_ARG);
    it = in_item("w", 0, NULL);
    assert_fails(tn_kv_push(kv, 1, &it), TN_E_ARG);
    it = in_item("w", 1, &f.b);
    assert_fails(tn_kv_push(kv, 1, &it), TN_E_SHAPE);
    assert_fails(tn_kv_assign(kv, 1, &it), TN_E_SHAPE);
    assert_ok(tn_array_cast(f.ctx, f.a, TN_F64, &dense));
    it = in_item("w", 1, &dense);
    assert_fails(tn_kv_push(kv, 1, &it), TN_E_DTYPE);
    assert_fails(tn_kv_assign(kv, 1, &it), TN_E_DTYPE);
    assert_ok(tn_array_to_storage(f.ctx, f.a, TN_STORAGE_CSR, &csr));
    assert_ok(tn_array_to_storage(f.ctx, f.a, TN_STORAGE_ROW_SPARSE, &rows));
    it = in_item("y", 1, &csr);
    assert_fails(tn_kv_init(kv, 1, &it), TN_E_UNSUPPORTED);
    it = in_item("w", 1, &csr);
    assert_fails(tn_kv_push(kv, 1, &it), TN_E_UNSUPPORTED);
    it = in_item("w", 1, &rows);
    assert_fails(tn_kv_push(kv, 1, &it), TN_E_UNSUPPORTED);
    tn_array_release(csr);
    tn_array_release(rows);
    tn_array_release(dense);
    tn_kv_destroy(kv);
}

static void pulls(void **state)
{
    tn_kv *kv = store("device");
    tn_array *none = NULL, *out = NULL, *rows = NULL;
    tn_kv_item it = out_item("w", 1, &f.a), row = in_item("w", 1, &f.b), s;

    (void)state;
    assert_fails(tn_kv_pull(NULL, 0, 1, &it), TN_E_ARG);
    assert_fails(tn_kv_pull(kv, 0, 1, NULL), TN_E_ARG);
    assert_fails(tn_kv_pull(kv, 8, 1, &it), TN_E_ARG);
    it = out_item("w", 1, NULL);
    assert_fails(tn_kv_pull(kv, 0, 1, &it), TN_E_ARG);
    it = out_item("w", 1, &none);
    assert_fails(tn_kv_pull(kv, 0, 1, &it), TN_E_ARG);
    it = out_item("w", 0, NULL);
    assert_fails(tn_kv_pull(kv, 0, 1, &it), TN_E_ARG);
    it = out_item("w", 1, &f.foreign);
    assert_fails(tn_kv_pull(kv, 0, 1, &it), TN_E_ARG);
    it = out_item("w", 1, &f.b);
    assert_fails(tn_kv_pull(kv, 0, 1, &it), TN_E_SHAPE);
    it = out_item("v", 1, &f.a);
    assert_fails(tn_kv_pull(kv, 0, 1, &it), TN_E_KEY);
    it = in_item("w", 1, &f.a);
    assert_fails(tn_kv_pull(kv, 0, 1, &it), TN_E_ARG);
    it.out_count = 1;
    it.outs = &f.b;
    assert_fails(tn_kv_pushpull(kv, 1, &it), TN_E_SHAPE);
    it.name = "z";
    assert_fails(tn_kv_broadcast(kv, 1, &it), TN_E_SHAPE);
    assert_fails(tn_kv_push(kv, 1, &(tn_kv_item){.name = "z", .value_count = 1, .values = &f.a}), TN_E_KEY);
    assert_fails(tn_kv_row_sparse_pull(NULL, 1, &row, &out), TN_E_ARG);
    assert_fails(tn_kv_row_sparse_pull(kv, 1, NULL, &out), TN_E_ARG);
    assert_fails(tn_kv_row_sparse_pull(kv, 1, &row, NULL), TN_E_ARG);
    assert_fails(tn_kv_row_sparse_pull(kv, 1, &row, &out), TN_E_UNSUPPORTED); /* a dense key */
    assert_ok(tn_array_to_storage(f.ctx, f.a, TN_STORAGE_ROW_SPARSE, &rows));
    s = in_item("s", 1, &rows);
    assert_ok(tn_kv_init(kv, 1, &s));
    row = in_item("s", 1, &f.a); /* a matrix of ids */
    assert_fails(tn_kv_row_sparse_pull(kv, 1, &row, &out), TN_E_UNSUPPORTED);
    row = in_item("s", 1, &rows);
    assert_fails(tn_kv_row_sparse_pull(kv, 1, &row, &out), TN_E_UNSUPPORTED);
    row = in_item("q", 1, &f.b);
    assert_fails(tn_kv_row_sparse_pull(kv, 1, &row, &out), TN_E_KEY);
    it = out_item("s", 1, &rows);
    assert_fails(tn_kv_pull(kv, TN_KV_SPARSE, 1, &it), TN_E_UNSUPPORTED);
    assert_null(out);
    tn_array_release(rows);
    tn_kv_destroy(kv);
}

/* Of one process: it is in nobody's place. */
static void rejoins(void **state)
{
    tn_kv_item it = {.name = "w", .out_count = 1, .outs = &f.a}, other = it, none = {.name = "w"};
    const tn_kv_item given = in_item("w", 1, &f.a), twice[] = {it, it};
    tn_kv *kv = store("local");
    uint64_t steps = 9;

    (void)state;
    other.name = "v";
    assert_fails(tn_kv_rejoin(NULL, 1, &it, &steps), TN_E_ARG);
    assert_fails(tn_kv_rejoin(kv, 1, NULL, &steps), TN_E_ARG);
    assert_fails(tn_kv_rejoin(kv, HUGE_COUNT, &it, &steps), TN_E_ARG);
    assert_fails(tn_kv_rejoin(kv, 1, &it, NULL), TN_E_ARG);
    assert_fails(tn_kv_rejoin(kv, 1, &none, &steps), TN_E_ARG);
    assert_fails(tn_kv_rejoin(kv, 1, &given, &steps), TN_E_ARG);
    assert_fails(tn_kv_rejoin(kv, 1, &other, &steps), TN_E_KEY);
    assert_fails(tn_kv_rejoin(kv, 2, twice, &steps), TN_E_KEY);
    assert_int_equal(steps, 9);
    assert_ok(tn_kv_rejoin(kv, 1, &it, &steps));
    assert_int_equal(steps, 0);
    assert_ok(tn_kv_rejoin(kv, 0, NULL, &steps));
    tn_kv_destroy(kv);
}

static tn_status nothing(void *arg, const tn_kv_item *key, tn_array *merged, tn_array *stored)
{
    (void)arg;
    (void)key;
    (void)merged;
    (void)stored;
    return TN_OK;
}

static void updates(void **state)
{
    const tn_kv_item key = {.name = "w"}, other = {.name = "v"}, number = {.number = 4};
    const char *path = scratch_path("absent.states");
    static const int64_t nine[] = {9};
    tn_array *out = NULL, *longer = NULL, *two[] = {f.a, f.a};
    tn_kv_item given = in_item("w", 2, two);
    tn_kv *kv = store("local");
    uint64_t steps = 9;

    (void)state;
    assert_fails(tn_kv_set_optimizer(NULL, "sgd", NULL), TN_E_ARG);
    assert_fails(tn_kv_set_optimizer(kv, "sdg", NULL), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "rmsprop"));
    assert_fails(tn_kv_set_optimizer(kv, "sgd", LIST("beta1", "1")), TN_E_ATTR);
    assert_fails(tn_kv_set_optimizer(kv, "sgd", LIST("lr", "fast")), TN_E_ATTR);
    assert_fails(tn_kv_set_optimizer(kv, "sgd", LIST("lr", "nan")), TN_E_ATTR);
    assert_fails(tn_kv_set_optimizer(kv, "sgd", LIST("lr", "1e40")), TN_E_ATTR);
    assert_fails(tn_kv_set_optimizer(kv, "sgd", LIST("lr")), TN_E_ATTR);
    assert_fails(tn_kv_set_param(kv, NULL, "lr", 1), TN_E_STATE);
    assert_fails(tn_kv_state(kv, &key, 0, &out, &steps), TN_E_STATE);
    assert_fails(tn_kv_set_state(kv, &key, 1), TN_E_STATE);
    assert_ok(tn_kv_set_optimizer(kv, "sgd", LIST("momentum", "0.9")));
    assert_fails(tn_kv_set_param(NULL, NULL, "lr", 1), TN_E_ARG);
    assert_fails(tn_kv_set_param(kv, NULL, NULL, 1), TN_E_ARG);
    assert_fails(tn_kv_set_param(kv, NULL, "momentum", 1), TN_E_ATTR);
    assert_fails(tn_kv_set_param(kv, NULL, "lr", 1e40), TN_E_ATTR);
    assert_fails(tn_kv_set_param(kv, &key, "lr", 1), TN_E_ATTR);
    assert_fails(tn_kv_set_param(kv, &key, "lr_mult", -1), TN_E_ATTR);
    assert_fails(tn_kv_set_param(kv, &key, "steps", -1), TN_E_ATTR);
    assert_non_null(strstr(tn_error_text(), "steps is -1"));
    assert_fails(tn_kv_set_param(kv, &other, "lr_mult", 1), TN_E_KEY);
    assert_fails(tn_kv_set_param(kv, &number, "lr_mult", 1), TN_E_KEY);
    assert_fails(tn_kv_set_updater(NULL, nothing, NULL), TN_E_ARG);
    assert_fails(tn_kv_set_updater(kv, nothing, NULL), TN_E_STATE);
    assert_fails(tn_kv_state(NULL, &key, 0, &out, &steps), TN_E_ARG);
    assert_fails(tn_kv_state(kv, NULL, 0, &out, &steps), TN_E_ARG);
    assert_fails(tn_kv_state(kv, &key, 0, NULL, &steps), TN_E_ARG);
    assert_fails(tn_kv_state(kv, &key, 1, &out, &steps), TN_E_ARG);
    assert_fails(tn_kv_state(kv, &other, 0, &out, &steps), TN_E_KEY);
    assert_ok(tn_array_zeros(f.ctx, TN_F32, 1, nine, NULL, &longer));
    assert_fails(tn_kv_set_state(NULL, &given, 1), TN_E_ARG);
    assert_fails(tn_kv_set_state(kv, NULL, 1), TN_E_ARG);
    assert_fails(tn_kv_set_state(kv, &given, 1), TN_E_ARG); /* two, and it has one */
    given.value_count = 1;
    assert_fails(tn_kv_set_state(kv, &other, 1), TN_E_KEY);
    two[0] = NULL;
    assert_fails(tn_kv_set_state(kv, &given, 1), TN_E_ARG);
    two[0] = longer;
    assert_fails(tn_kv_set_state(kv, &given, 1), TN_E_SHAPE);
    given.out_count = 1;
    given.outs = two;
    assert_fails(tn_kv_set_state(kv, &given, 1), TN_E_ARG);
    tn_array_release(longer);
    assert_fails(tn_kv_save_states(NULL, path), TN_E_ARG);
    assert_fails(tn_kv_save_states(kv, NULL), TN_E_ARG);
    assert_fails(tn_kv_save_states(kv, scratch_path("no/folder/x")), TN_E_IO);
    assert_fails(tn_kv_load_states(NULL, path), TN_E_ARG);
    assert_fails(tn_kv_load_states(kv, NULL), TN_E_ARG);
    assert_fails(tn_kv_load_states(kv, path), TN_E_IO);
    assert_true(!out && steps == 9);
    tn_kv_destroy(kv);
}

/* A file of states that says something else than it should. */
static void state_files(void **state)
{
    static const char *const names[] = {"optimizer:sgd", "steps:w", "state:0:w"};
    const char *path = scratch_path("wrong.states");

    (void)state;
    for (int wrong = 0; wrong < 6; wrong++) {
        tn_kv *kv = store("local");
        tn_params *p = NULL;
        tn_array *steps = NULL;
        const int64_t one = 1, number = wrong == 3 ? -1 : 1;

        assert_ok(tn_array_from(f.ctx, wrong == 4 ? TN_U64 : TN_I64, 1, &one, &number, &steps));
        assert_ok(tn_params_create(&p));
        for (int i = 0; i < 3; i++)
            if (i != wrong)
                assert_ok(tn_params_add(p, names[i], i < 2 ? steps : wrong == 5 ? f.b : f.a));
        assert_ok(tn_params_save(p, path));
        assert_ok(tn_kv_set_optimizer(kv, "sgd", LIST("momentum", "0.9")));
        assert_fails(tn_kv_load_states(kv, path), TN_E_FORMAT);
        tn_params_destroy(p);
        tn_array_release(steps);
        tn_kv_destroy(kv);
    }
}

static void compression(void **state)
{
    tn_kv *local = store("local"), *kv = store("device");
    tn_array *wide = NULL;
    tn_kv_item it;

    (void)state;
    assert_fails(tn_kv_set_compression(NULL, LIST("type", "2bit")), TN_E_ARG);
    assert_fails(tn_kv_set_compression(kv, NULL), TN_E_ARG);
    assert_fails(tn_kv_set_compression(local, LIST("type", "2bit")), TN_E_UNSUPPORTED);
    assert_fails(tn_kv_set_compression(kv, LIST("type", "3bit")), TN_E_ATTR);
    assert_fails(tn_kv_set_compression(kv, LIST("type")), TN_E_ATTR);
    assert_fails(tn_kv_set_compression(kv, LIST("threshold", "1")), TN_E_ATTR);
    assert_fails(tn_kv_set_compression(kv, LIST("type", "2bit", "threshold", "0")), TN_E_ATTR);
    assert_fails(tn_kv_set_compression(kv, LIST("type", "2bit", "threshold", "nan")), TN_E_ATTR);
    assert_fails(tn_kv_set_compression(kv, LIST("type", "2bit", "bits", "2")), TN_E_ATTR);
    assert_ok(tn_kv_set_compression(kv, LIST("type", "1bit", "threshold", "-1")));
    assert_fails(tn_kv_set_compression(kv, LIST("type", "2bit")), TN_E_STATE);
    assert_ok(tn_array_cast(f.ctx, f.a, TN_F64, &wide));
    it = in_item("wide", 1, &wide);
    assert_ok(tn_kv_init(kv, 1, &it));
    assert_fails(tn_kv_push(kv, 1, &it), TN_E_UNSUPPORTED);
    tn_array_release(wide);
    tn_kv_destroy(kv);
    tn_kv_destroy(local);
}

static void the_others(void **state)
{
    tn_kv_info info = {0};
    uint32_t count = 7;
    char *body = malloc(65538);
    tn_kv *kv = store("local");

    (void)state;
    assert_non_null(body);
    memset(body, 'x', 65537);
    body[65537] = 0;
    assert_fails(tn_kv_info_get(kv, &info), TN_E_ARG);
    assert_fails(tn_kv_info_get(kv, NULL), TN_E_ARG);
    assert_fails(tn_kv_info_get(NULL, &info), TN_E_ARG);
    assert_fails(tn_kv_dead_nodes(NULL, 1, 0, &count), TN_E_ARG);
    assert_fails(tn_kv_dead_nodes(kv, 1, 0, NULL), TN_E_ARG);
    assert_fails(tn_kv_dead_nodes(kv, 8, 0, &count), TN_E_ARG);
    assert_fails(tn_kv_barrier(NULL), TN_E_ARG);
    assert_fails(tn_kv_end(NULL), TN_E_ARG);
    assert_ok(tn_kv_end(kv));
    assert_fails(tn_kv_command(NULL, 0, "x"), TN_E_ARG);
    assert_fails(tn_kv_command(kv, 0, NULL), TN_E_ARG);
    assert_fails(tn_kv_command(kv, -1, "x"), TN_E_ARG);
    assert_fails(tn_kv_command(kv, 0, body), TN_E_ARG);
    assert_int_equal(count, 7);
    free(body);
    tn_kv_destroy(kv);
}

static void roles(void **state)
{
    static const char *const names[] = {"server", "scheduler"};
    char setting[40];

    (void)state;
    for (int i = 0; i < 2; i++) {
        int32_t ran = 7;
        tn_ctx *ctx;

        (void)snprintf(setting, sizeof setting, "kvstore.role=%s", names[i]);
        ctx = test_open(LIST(setting, "kvstore.transport=absent"));
        assert_fails(tn_kv_run_role(ctx, NULL, NULL, NULL), TN_E_ARG);
        assert_int_equal(ran, 7);
        assert_fails(tn_kv_run_role(ctx, NULL, NULL, &ran), TN_E_UNSUPPORTED);
        assert_int_equal(ran, 1);
        assert_non_null(strstr(tn_error_text(), "kv-absent"));
        assert_ok(tn_close(ctx));
    }
}

static void reports(void **state)
{
    char *json = (char *)7;
    tn_ctx *ctx = test_open(LIST("kvstore.transport=absent"));

    (void)state;
    assert_fails(tn_kv_report(NULL, 0, &json), TN_E_ARG);
    assert_fails(tn_kv_report(ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_kv_report(ctx, 0, &json), TN_E_UNSUPPORTED);
    assert_ptr_equal(json, (char *)7);
    assert_ok(tn_close(ctx));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation),    cmocka_unit_test(drift),      cmocka_unit_test(nulls),
        cmocka_unit_test(values),      cmocka_unit_test(keys),       cmocka_unit_test(pulls),
        cmocka_unit_test(rejoins),     cmocka_unit_test(updates),    cmocka_unit_test(state_files),
        cmocka_unit_test(compression), cmocka_unit_test(the_others), cmocka_unit_test(roles),
        cmocka_unit_test(reports),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
