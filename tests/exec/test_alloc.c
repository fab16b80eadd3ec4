/* Allocation 1, 2, 3 … fails over load, bind, one training step and save: a clean status, no leak, and
 * everything still works afterwards with the same bits. */
#include "context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io.h"
#include "support/runs.h"
#include "support/scratch.h"

enum { PARAMS = 4 };

typedef struct trained {
    tni_context *c;
    tni_array *x, *params[PARAMS], *states[PARAMS];
    float initial[PARAMS][400];
    uint64_t counts[PARAMS];
    tni_cached_op *op;
    char path[SCRATCH_PATH_BYTES];
} trained;

static const int64_t shapes[PARAMS][4] = {{4, 1, 3, 3}, {4}, {5, 36}, {5}};
static const int32_t ranks[PARAMS] = {4, 1, 2, 1};

static tn_status on(tni_context *c, const char *op, size_t count, const char *const *names,
                    const char *const *texts, tni_symbol **s)
{
    tni_symbol *atom = NULL, *done = NULL;
    tn_status st;

    if (!(st = tni_symbol_atomic(c->ops, op, count, names, texts, op, &atom)) &&
        !(st = tni_symbol_compose(atom, op, 1, NULL, s, &done))) {
        tni_symbol_release(*s);
        *s = done;
    }
    tni_symbol_release(atom);
    return st;
}

/* Convolution, tanh, pooling, dense, square: through JSON, as a model is loaded. */
static tn_status net_load(tni_context *c, tni_cached_op **out)
{
    tni_symbol *s = NULL, *loaded = NULL;
    tni_str json;
    tn_status st;

    tni_str_init(&json, TN_TEXT_MAX);
    if ((st = tni_symbol_variable(c->ops, "data", &s)) ||
        (st = on(c, "Convolution", 2, (const char *[]){"kernel", "num_filter"},
                 (const char *[]){"(3, 3)", "4"}, &s)) ||
        (st = on(c, "tanh", 0, NULL, NULL, &s)) ||
        (st = on(c, "Pooling", 3, (const char *[]){"kernel", "stride", "pool_type"},
                 (const char *[]){"(2, 2)", "(2, 2)", "max"}, &s)) ||
        (st = on(c, "FullyConnected", 1, (const char *[]){"num_hidden"}, (const char *[]){"5"}, &s)) ||
        (st = on(c, "square", 0, NULL, NULL, &s)) || (st = tni_symbol_to_json(s, &json)) ||
        (st = tni_symbol_from_json(c->ops, "net", json.text, json.length, &loaded)))
        goto cleanup;
    st = tni_cached_op_create(c, loaded, NULL, out);

cleanup:
    tni_str_fini(&json);
    tni_symbol_release(s);
    tni_symbol_release(loaded);
    return st;
}

/* Forward, backward, an update of every parameter, and the file. */
static tn_status step(trained *t)
{
    static const char *const names[] = {"lr", "momentum"}, *const texts[] = {"0.1", "0.9"};
    tni_array *in[1 + PARAMS] = {t->x}, *y = NULL;
    tni_params *file = NULL;
    tn_status st;

    memcpy(in + 1, t->params, sizeof t->params);
    test_record(true, true);
    st = tni_cached_op_call(t->op, 1 + PARAMS, in, 1, &y);
    test_record(false, false);
    if (st || (st = tni_backward(t->c, 1, &y, NULL, NULL)))
        goto cleanup;
    for (int i = 0; i < PARAMS && !st; i++) {
        tni_array *operands[3] = {t->params[i], tni_grad_get(t->params[i]), t->states[i]},
                  *out = t->params[i];

        st = tni_invoke_text(t->c, "sgd_mom_update", 3, operands, 2, names, texts, 1, &out, NULL);
    }
    for (int i = 0; i < PARAMS && !st; i++)
        st = tni_array_wait(t->params[i]);
    if (st || (st = tni_params_create(&file)))
        goto cleanup;
    for (int i = 0; i < PARAMS && !st; i++) {
        char name[32];

        snprintf(name, sizeof name, "arg:p%d", i);
        st = tni_params_add(file, name, t->params[i]);
    }
    if (!st)
        st = tni_params_save(file, t->path);

cleanup:
    tni_params_destroy(file);
    tni_array_release(y);
    return st;
}

static void reset(trained *t)
{
    static const float zeros[400];

    for (int i = 0; i < PARAMS; i++) {
        assert_ok(tni_array_write(t->params[i], t->initial[i], t->counts[i] * sizeof(float)));
        assert_ok(tni_array_write(t->states[i], zeros, t->counts[i] * sizeof(float)));
        assert_ok(tni_array_write(tni_grad_get(t->params[i]), zeros, t->counts[i] * sizeof(float)));
    }
}

static void values_get(trained *t, float out[PARAMS][400])
{
    memset(out, 0, sizeof(float) * PARAMS * 400);
    for (int i = 0; i < PARAMS; i++)
        assert_ok(tni_array_read(t->params[i], out[i], t->counts[i] * sizeof(float)));
}

static void trained_open(trained *t)
{
    float data[64];

    memset(t, 0, sizeof *t);
    t->c = test_context((const char *[]){"engine.type=naive", NULL});
    snprintf(t->path, sizeof t->path, "%s", scratch_quick_path("alloc.params"));
    for (int i = 0; i < 64; i++)
        data[i] = (float)(i % 9) / 9.0f - 0.4f;
    t->x = test_array(t->c, 4, (int64_t[]){1, 1, 8, 8}, data);
    for (int i = 0; i < PARAMS; i++) {
        t->counts[i] = 1;
        for (int d = 0; d < ranks[i]; d++)
            t->counts[i] *= (uint64_t)shapes[i][d];
        for (uint64_t k = 0; k < t->counts[i]; k++)
            t->initial[i][k] = (float)((k * 7 + (uint64_t)i) % 11) / 11.0f - 0.45f;
        t->params[i] = test_array(t->c, ranks[i], shapes[i], t->initial[i]);
        t->states[i] = test_array(t->c, ranks[i], shapes[i], NULL);
        assert_ok(tni_grad_attach(t->c, t->params[i], TN_MODE_WRITE, NULL));
    }
}

static void trained_close(trained *t)
{
    tni_cached_op_release(t->op);
    tni_array_release(t->x);
    for (int i = 0; i < PARAMS; i++) {
        tni_array_release(t->params[i]);
        tni_array_release(t->states[i]);
    }
    unlink(t->path);
    test_context_close(t->c);
}

static tn_status load_and_step(trained *t, bool reload)
{
    tn_status st = TN_OK;

    if (reload) {
        tni_cached_op_release(t->op);
        t->op = NULL;
        st = net_load(t->c, &t->op);
    }
    return st ? st : step(t);
}

/* Every allocation of the calling thread fails in turn, once or for ever after; in a short test some. */
static void each_fails(trained *t, bool reload, bool forever, float expected[PARAMS][400])
{
    float got[PARAMS][400];
    uint64_t nth, tried = 0, refused = 0;

    for (nth = test_failure_next(0, 0); nth < 100000; nth = test_failure_next(nth, 0)) {
        tn_status st;
        bool hit;

        reset(t);
        tni_mem_fail_at(nth, forever, true);
        st = load_and_step(t, reload);
        hit = tni_mem_failed();
        tni_mem_fail_at(0, false, true);
        if (!hit) {
            assert_int_equal(st, TN_OK);
            break;
        }
        if (st && st != TN_E_NOMEM)
            print_error("allocation %llu: %s: %s\n", (unsigned long long)nth, tni_status_name(st),
                        tni_error_message());
        assert_true(st == TN_OK || st == TN_E_NOMEM);
        tried++;
        refused += st != TN_OK;
        reset(t);
        assert_ok(load_and_step(t, reload || !t->op));
        values_get(t, got);
        assert_memory_equal(got, expected, sizeof got);
    }
    print_message("%llu allocations, %llu refused\n", (unsigned long long)tried, (unsigned long long)refused);
    assert_true(nth > 3);
}

static void a_step(void **state)
{
    float expected[PARAMS][400], first[PARAMS][400];
    trained t;

    (void)state;
    trained_open(&t);
    reset(&t);
    values_get(&t, first);
    assert_ok(load_and_step(&t, true));
    values_get(&t, expected);
    assert_memory_not_equal(first, expected, sizeof first);
    each_fails(&t, false, false, expected);
    each_fails(&t, false, true, expected);
    each_fails(&t, true, false, expected);
    each_fails(&t, true, true, expected);
    trained_close(&t);
}

/* Opening a context with each allocation failing leaves nothing behind. */
static void opening(void **state)
{
    char path[TN_PATH_BYTES_MAX];
    const char *settings[] = {path, "engine.type=naive", NULL};
    const tni_context_options o = {.settings = settings};
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    uint64_t nth, tried = 0;

    (void)state;
    snprintf(path, sizeof path, "plugins.path=%s", plugins ? plugins : "");
    for (nth = test_failure_next(0, 0); nth < 100000; nth = test_failure_next(nth, 0)) {
        tni_context *c = NULL;
        tn_status st;
        bool hit;

        tni_mem_fail_at(nth, nth % 2 == 0, true);
        st = tni_context_open(&o, &c);
        hit = tni_mem_failed();
        tni_mem_fail_at(0, false, true);
        if (!st)
            assert_ok(tni_context_close(c, 0));
        if (!hit)
            break;
        tried++;
    }
    print_message("%llu allocations\n", (unsigned long long)tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opening), cmocka_unit_test(a_step)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
