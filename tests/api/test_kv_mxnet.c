/* MXNet 1.9.1's store, as tests/oracle/kv.py recorded it: sums, optimizers with their states, rows, and
 * compression. */
#include "api/support.h"
#include "support/list.h"

#include <math.h>
#include <stdio.h>

#define STEPS 4
#define ROUNDS 4
#define ROOM 64
#define TOLERANCE 3e-6f /* of numbers around 1, after four steps in float32 */

static tn_ctx *ctx;
static tn_params *recorded;

static int begin(void **state)
{
    const char *root = getenv("TENON_TEST_SOURCE");
    char path[4096];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/kv/store.params", root ? root : ".");
    ctx = test_open(NULL);
    assert_ok(tn_params_load(ctx, path, NULL, &recorded));
    return 0;
}

static int end(void **state)
{
    (void)state;
    tn_params_destroy(recorded);
    test_close(ctx);
    return 0;
}

/* Borrowed from the file; `a` and `b` below 0: not in the name. */
static tn_array *get(const char *name, const char *what, int a, int b)
{
    tn_array *x = NULL;
    char full[128];

    (void)snprintf(full, sizeof full, a < 0 ? "%s:%s" : b < 0 ? "%s:%s%d" : "%s:%s%d%d", name, what, a, b);
    assert_ok(tn_params_get(recorded, full, &x));
    tn_array_release(x); /* the file holds it */
    return x;
}

/* `tolerance` 0: the same bits. */
static void near(tn_array *ours, tn_array *theirs, const char *what, float tolerance)
{
    float a[ROOM], b[ROOM];
    const size_t count = tn_array_count(theirs);

    assert_true(count <= ROOM && tn_array_count(ours) == count);
    assert_ok(tn_array_read(ours, a, count * sizeof *a));
    assert_ok(tn_array_read(theirs, b, count * sizeof *b));
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= tolerance * fmaxf(1, fabsf(b[i]))))
            fail_msg("%s, element %zu: %.9g, MXNet has %.9g", what, i, (double)a[i], (double)b[i]);
}

static tn_kv *store(const char *type, tn_array *first)
{
    const tn_kv_item it = {.number = 3, .value_count = 1, .values = &first};
    tn_kv *kv = NULL;

    assert_ok(tn_kv_create(ctx, type, &kv));
    assert_ok(tn_kv_init(kv, 1, &it));
    return kv;
}

static void pulled(tn_kv *kv, tn_array *theirs, const char *what, float tolerance)
{
    tn_array *out = NULL;
    tn_kv_item it = {.number = 3, .out_count = 1, .outs = &out};
    const int64_t *shape;
    int32_t ndim;

    assert_ok(tn_array_shape(theirs, &ndim, &shape));
    assert_ok(tn_array_zeros(ctx, TN_F32, ndim, shape, NULL, &out));
    assert_ok(tn_kv_pull(kv, TN_KV_SPARSE, 1, &it));
    near(out, theirs, what, tolerance);
    tn_array_release(out);
}

static void push_two(tn_kv *kv, tn_array *a, tn_array *b)
{
    tn_array *const values[] = {a, b};
    const tn_kv_item it = {.number = 3, .value_count = b ? 2 : 1, .values = values};

    assert_ok(tn_kv_push(kv, 1, &it));
}

static void sums(void **state)
{
    tn_array *v[2], *twice[2], *out = NULL;
    tn_kv_item it = {.number = 3, .value_count = 2, .values = twice, .out_count = 1, .outs = &out};
    tn_kv *kv;

    (void)state;
    for (int i = 0; i < 2; i++) {
        v[i] = get("sum", "V", i, -1);
        twice[i] = test_op(ctx, "_mul_scalar", LIST("scalar", "2"), 1, &v[i]);
    }
    kv = store("local", v[0]);
    push_two(kv, v[0], v[1]);
    pulled(kv, get("sum", "OUT", -1, -1), "sum", 0);
    assert_ok(tn_array_zeros(ctx, TN_F32, 2, (int64_t[]){5, 3}, NULL, &out));
    assert_ok(tn_kv_pushpull(kv, 1, &it));
    near(out, get("pushpull", "OUT", -1, -1), "pushpull", 0);
    pulled(kv, get("pushpull", "OUT", -1, -1), "pull behind pushpull", 0);
    tn_array_release(twice[0]);
    tn_array_release(twice[1]);
    tn_array_release(out);
    tn_kv_destroy(kv);
}

static const struct {
    const char *name, *optimizer, *params[12];
    double lr;
    uint32_t states;
} rows[] = {
    {"sgd", "sgd", {"wd", "0.01", "rescale_grad", "0.5"}, 0.1, 0},
    {"sgd-momentum", "sgd", {"momentum", "0.9", "wd", "0.01", "clip_gradient", "0.75"}, 0.1, 1},
    {"nag-momentum", "nag", {"momentum", "0.9"}, 0.1, 1},
    {"adam", "adam", {"wd", "0.01", "beta1", "0.8"}, 0.05, 2},
    {"signum-momentum", "signum", {"momentum", "0.8", "wd_lh", "0.01"}, 0.1, 1},
    {"rmsprop", "rmsprop", {"gamma1", "0.8"}, 0.05, 1},
    {"rmsprop-centered", "rmsprop", {"gamma1", "0.8", "gamma2", "0.7", "centered", "1"}, 0.05, 3},
    {"ftrl", "ftrl", {"lamda1", "0.02", "beta", "0.5", "wd", "0.01"}, 0.1, 2},
    {"adagrad", "adagrad", {"eps", "1e-5", "wd", "0.01"}, 0.1, 1},
    {"adadelta", "adadelta", {"rho", "0.8", "epsilon", "1e-4", "wd", "0.01"}, 0.01, 2},
    {"adamax", "adamax", {"beta1", "0.8", "wd", "0.01", "clip_gradient", "0.75"}, 0.05, 2},
    {"nadam", "nadam", {"schedule_decay", "0.01", "wd", "0.01"}, 0.05, 2},
    {"ftml", "ftml", {"beta1", "0.7", "beta2", "0.9", "wd", "0.01"}, 0.05, 3},
    {"dcasgd", "dcasgd", {"lamda", "0.2", "wd", "0.01", "rescale_grad", "0.5"}, 0.1, 0},
    {"lamb", "lamb", {"beta1", "0.8", "wd", "0.01"}, 0.05, 2},
    {"lars", "lars", {"eta", "0.05", "wd", "0.01"}, 0.1, 0},
    {"lars-momentum", "lars", {"momentum", "0.9", "eta", "0.05", "wd", "0.01"}, 0.1, 1},
};

static void optimizers(void **state)
{
    const tn_kv_item key = {.number = 3};

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tn_kv *kv = store("local", get(rows[r].name, "W", -1, -1));

        assert_ok(tn_kv_set_optimizer(kv, rows[r].optimizer, rows[r].params));
        for (int step = 0; step < STEPS; step++) {
            assert_ok(tn_kv_set_param(kv, NULL, "lr", step < 2 ? rows[r].lr : rows[r].lr / 2));
            push_two(kv, get(rows[r].name, "G", step, 0), get(rows[r].name, "G", step, 1));
        }
        pulled(kv, get(rows[r].name, "W4", -1, -1), rows[r].name, TOLERANCE);
        for (uint32_t k = 0; k < rows[r].states; k++) {
            tn_array *s = NULL;

            assert_ok(tn_kv_state(kv, &key, k, &s, NULL));
            near(s, get(rows[r].name, "S", (int)k, -1), rows[r].name, TOLERANCE);
            tn_array_release(s);
        }
        tn_kv_destroy(kv);
    }
}

/* float16 weights, of which a float32 copy is updated. */
static void mixed(void **state)
{
    static const struct {
        const char *name, *optimizer, *params[8];
        double lr;
    } both[] = {
        {"mixed-sgd", "sgd", {"momentum", "0.9", "wd", "0.01", "multi_precision", "1"}, 0.1},
        {"mixed-adam", "adam", {"multi_precision", "1"}, 0.05},
    };

    (void)state;
    for (size_t r = 0; r < sizeof both / sizeof *both; r++) {
        tn_kv *kv = store("local", get(both[r].name, "W", -1, -1));
        tn_array *theirs = NULL;
        const int64_t *shape;
        int32_t ndim;

        assert_ok(tn_kv_set_optimizer(kv, both[r].optimizer, both[r].params));
        for (int step = 0; step < STEPS; step++) {
            assert_ok(tn_kv_set_param(kv, NULL, "lr", step < 2 ? both[r].lr : both[r].lr / 2));
            push_two(kv, get(both[r].name, "G", step, 0), NULL);
        }
        assert_ok(tn_array_shape(get(both[r].name, "W4", -1, -1), &ndim, &shape));
        assert_ok(tn_array_zeros(ctx, TN_F32, ndim, shape, NULL, &theirs));
        assert_ok(tn_array_copy(get(both[r].name, "W4", -1, -1), theirs));
        pulled(kv, theirs, both[r].name, 1e-3f); /* a rounding of float16 */
        tn_array_release(theirs);
        tn_kv_destroy(kv);
    }
}

static void sparse_rows(void **state)
{
    tn_array *ids = get("rows", "IDS", -1, -1), *out = NULL, *whole = NULL, *theirs = NULL, *first = NULL;
    const tn_kv_item it = {.number = 3, .value_count = 1, .values = &ids};
    tn_kv *kv;

    (void)state;
    assert_ok(tn_array_to_storage(ctx, get("rows", "W", -1, -1), TN_STORAGE_ROW_SPARSE, &first));
    kv = store("local", first);
    assert_ok(tn_kv_set_optimizer(kv, "sgd", LIST("lr", "0.1", "momentum", "0.9", "wd", "0.05")));
    for (int i = 0; i < 2; i++)
        push_two(kv, get("rows", "G", 0, -1), get("rows", "G", 1, -1));
    assert_ok(tn_kv_row_sparse_pull(kv, 1, &it, &out));
    assert_ok(tn_array_to_storage(ctx, out, TN_STORAGE_DENSE, &whole));
    assert_ok(tn_array_to_storage(ctx, get("rows", "OUT", -1, -1), TN_STORAGE_DENSE, &theirs));
    near(whole, theirs, "rows", TOLERANCE);
    tn_array_release(whole);
    tn_array_release(theirs);
    tn_array_release(out);
    tn_array_release(first);
    tn_kv_destroy(kv);
}

static void compressed(void **state)
{
    tn_array *zeros = NULL;
    tn_kv *kv;

    (void)state;
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (int64_t[]){41}, NULL, &zeros));
    kv = store("device", zeros);
    assert_ok(tn_kv_set_compression(kv, LIST("type", "2bit", "threshold", "0.5")));
    for (int round = 0; round < ROUNDS; round++) {
        push_two(kv, get("2bit", "G", round, -1), NULL);
        pulled(kv, get("2bit", "OUT", round, -1), "2bit", 0);
    }
    tn_array_release(zeros);
    tn_kv_destroy(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),        cmocka_unit_test(optimizers), cmocka_unit_test(mixed),
        cmocka_unit_test(sparse_rows), cmocka_unit_test(compressed),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
