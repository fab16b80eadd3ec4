/*
 * Embeddings with row_sparse gradients (.sparse_grad) on several devices and in a store: the bits of dense
 * gradients, where an update of the touched rows alone means the same; rows that are not touched stay.
 */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 8, COUNT = 11, UNITS = 3, ROOM = 256, STEPS = 4 };

typedef struct run {
    const char *devices, *optimizer, *kvstore;
    double momentum, wd;
    int32_t on_store; /* as .update_on_kvstore */
    bool every;       /* each step looks up each row */
    bool half;        /* float16, updated in float32 */
} run;

static void step(tn_app *app, tn_net *net, tn_trainer *t, const run *r, int number)
{
    static const int64_t in[] = {ROWS, 3}, rows[] = {ROWS};
    static const float classes[ROWS] = {0, 1, 2, 1, 0, 2, 2, 1};
    float ids[ROWS * 3];
    tn_array *x, *labels = tn_app_array(app, 1, rows, classes);

    for (int i = 0; i < ROWS * 3; i++)
        ids[i] = (float)(r->every ? (7 * i + number) % COUNT : (i * i + number) % 4 * 2);
    x = tn_app_array(app, 2, in, ids);
    for (size_t k = 0; k < tn_app_devices(app); k++) {
        tn_array *part = tn_app_part(app, x, k), *of = tn_app_part(app, labels, k);

        tn_app_record(app);
        tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, part), of));
    }
    tn_trainer_step(t, ROWS);
}

/* Values of both layers; `first`: of the embedding as it began. */
static size_t trained(const run *r, bool sparse, int hybrid, float *first, float *out)
{
    tn_app *app = nn_open("run.deterministic=threads", "exec.storage_fallback=error", r->devices, NULL);
    tn_net *net = tn_net_new(app);
    tn_trainer *t;
    size_t at = 0;

    tn_net_embedding(net, .count = COUNT, .units = UNITS, .sparse_grad = sparse);
    tn_net_dense(net, .units = 3);
    if (r->half)
        tn_net_cast(net, "float16");
    tn_net_init(net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {ROWS, 3});
    if (hybrid)
        tn_net_hybridize(net);
    (void)nn_read(app, tn_net_param(net, "0.weight"), first, ROOM);
    t = tn_trainer_new(net, .optimizer = r->optimizer, .lr = 0.1, .momentum = r->momentum, .wd = r->wd,
                       .kvstore = r->kvstore, .update_on_kvstore = r->on_store, .multi_precision = r->half);
    for (int i = 0; i < STEPS; i++)
        step(app, net, t, r, i);
    if (!tn_app_ok(app))
        fail_msg("%s %s %s %d: %s", r->devices, r->optimizer, r->kvstore, r->on_store, tn_app_error(app));
    assert_int_equal(tn_array_storage(tn_net_param_grad(net, "0.weight")),
                     sparse ? TN_STORAGE_ROW_SPARSE : TN_STORAGE_DENSE);
    for (size_t p = 0; p < tn_net_param_count(net); p++)
        at += nn_read(app, tn_net_param(net, tn_net_param_name(net, p)), out + at, ROOM - at);
    nn_close(app);
    return at;
}

static const char *const lists[] = {"device.default=cpu:0", "device.default=cpu:0,cpu:1",
                                    "device.default=cpu:0,cpu:1,cpu:2"};
static const char *const stores[] = {"local", "device"};

/* What a lazy update and a whole one have in common: no momentum and no decay, or rows that are all there. */
static void test_bits(void **state)
{
    static const run rows[] = {{.optimizer = "sgd"},
                               {.optimizer = "sgd", .momentum = 0.9, .wd = 0.01, .every = true},
                               {.optimizer = "adam", .every = true},
                               {.optimizer = "ftrl", .every = true},
                               {.optimizer = "sgd", .half = true},
                               {.optimizer = "adam", .every = true, .half = true},
                               {.optimizer = "adagrad", .every = true},
                               {.optimizer = "adamw", .wd = 0.01, .every = true}};
    float want[ROOM], have[ROOM], first[ROOM];

    (void)state;
    for (size_t d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (int where = -1; where <= 1; where += 2)
                for (int k = 0; k < 2; k++) {
                    run r = rows[i];
                    size_t count;

                    if (where > 0 && i > 5)
                        continue; /* no operator, which a store would call */
                    if (d == 2 && r.half)
                        continue; /* sums of three are rounded in another order */
                    r.devices = lists[d];
                    r.kvstore = stores[k];
                    r.on_store = where;
                    count = trained(&r, false, k, first, want);
                    assert_int_equal(trained(&r, true, k, first, have), count);
                    if (memcmp(want, have, count * sizeof *want) != 0)
                        fail_msg("%s %s %s %d: other bits than by dense gradients", r.devices, r.optimizer,
                                 r.kvstore, where);
                }
}

/* Rows that nobody looks up stay as they were, with momentum and decay, too. */
static void test_untouched(void **state)
{
    float have[ROOM], first[ROOM];

    (void)state;
    for (size_t d = 0; d < 6; d++)
        for (int where = -1; where <= 1; where += 2) {
            const run r = {.devices = lists[d % 3],
                           .half = d > 2,
                           .optimizer = "sgd",
                           .kvstore = "local",
                           .momentum = 0.9,
                           .wd = 0.01,
                           .on_store = where};

            (void)trained(&r, true, 0, first, have);
            for (int i = 0; i < COUNT * UNITS; i++)
                assert_int_equal(have[i] == first[i], i / UNITS % 2 || i / UNITS > 6);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_untouched)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
