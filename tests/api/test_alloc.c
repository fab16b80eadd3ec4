/* Each allocation of a call fails in turn: TN_E_NOMEM, nothing leaked, everything as it was. */
#include "api/fixture.h"
#include "api/own.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "support/scratch.h"

static tn_status open_and_close(void *arg)
{
    tn_ctx *ctx = NULL;
    tn_status st = test_open_with(arg, &ctx);

    return st ? st : tn_close(ctx);
}

static void opening(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(open_and_close, NULL) > 50);
    assert_true(scratch_each_allocation_fails(open_and_close, (void *)LIST("engine.type=naive")) > 50);
}

static tn_status complete_at_once(void *arg, uint64_t handle)
{
    *(uint32_t *)arg += 1;
    return tn_task_complete(handle, TN_OK, NULL) ? TN_E_INTERNAL : TN_PENDING;
}

/* The table of handles grows within. */
static tn_status many_tasks(void *arg)
{
    uint32_t begun = 0, pushed = 0;
    const tn_task task = {.struct_size = TN_SIZE(tn_task), .begin = complete_at_once, .arg = &begun};
    tn_ctx *ctx = NULL;
    tn_status st = test_open_with(arg, &ctx);
    tn_err err;

    if (st)
        return st;
    while (pushed < 40 && !(st = tn_engine_push(ctx, &task)))
        pushed++;
    tni_error_get(&err); /* of the push: the tasks run on this thread */
    if (!st)
        st = tn_wait_all(ctx);
    assert_ok(tn_close(ctx));
    assert_int_equal(begun, pushed);
    if (err.code)
        tni_error_set(&err);
    return st;
}

static void tasks(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(many_tasks, (void *)LIST("engine.type=stepped")) > 50);
}

static void nothing_found(void *arg, const tn_problem *problem)
{
    (void)arg;
    (void)problem;
}

static tn_status check_file(void *arg)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char path[4200];
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                         .files = LIST(arg),
                         .settings = LIST("plugins.trust=off", path)};

    (void)snprintf(path, sizeof path, "plugins.path=%s", folder ? folder : "");
    return tn_config_check(&o, nothing_found, NULL);
}

static void checking(void **state)
{
    static const char ini[] = "[engine]\ntype = naive\n[memory.cpu]\npool = round\n[plugin.fake]\nseed = 1\n";
    char path[SCRATCH_PATH_BYTES];

    (void)state;
    (void)snprintf(path, sizeof path, "%s", scratch_write("check.ini", ini, sizeof ini - 1));
    assert_true(scratch_each_allocation_fails(check_file, path) > 50);
}

static tn_status arrays(void *arg)
{
    float data[6] = {0};
    tn_array *a = NULL, *b = NULL, *c = NULL;
    tn_status st;

    (void)arg;
    if (!(st = tn_array_from(f.ctx, TN_F32, 2, f.shape, data, &a)) &&
        !(st = tn_array_reshape(a, 1, (int64_t[]){-1}, &b)) && !(st = tn_array_cast(f.ctx, a, TN_F64, &c)))
        st = tn_wait_all(f.ctx);
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(c);
    return st;
}

static tn_status infer(void *arg)
{
    const tn_known known = {.name = "x", .shape = f.shape, .ndim = 2, .dtype = TN_F32};
    tn_inferred *r = NULL;
    char *json = NULL;
    tn_symbol *copy = NULL;
    tn_status st;

    (void)arg;
    if (!(st = tn_symbol_infer(f.net, 1, &known, 0, &r)) && !(st = tn_symbol_to_json(f.net, &json)))
        st = tn_symbol_from_json(f.ctx, json, strlen(json), &copy);
    tn_inferred_destroy(r);
    tn_symbol_release(copy);
    tn_free(json);
    return st;
}

static tn_status params(void *arg)
{
    tn_params *p = NULL, *q = NULL;
    uint64_t bytes = 0;
    void *data = NULL;
    tn_status st;

    (void)arg;
    if (!(st = tn_params_create(&p)) && !(st = tn_params_add(p, "arg:a", f.a)) &&
        !(st = tn_params_add(p, "aux:b", f.b)) && !(st = tn_params_to_memory(p, &data, &bytes)))
        st = tn_params_from_memory(f.ctx, data, bytes, NULL, &q);
    tn_params_destroy(p);
    tn_params_destroy(q);
    tn_free(data);
    return st;
}

static tn_status program(void *arg)
{
    tn_params *p = NULL;
    tn_program *made = NULL;
    tn_status st;

    (void)arg;
    if (!(st = tn_params_create(&p)) && !(st = tn_params_add(p, "arg:fc_weight", f.a)))
        st = tn_program_create(f.ctx, f.net, p, &made);
    tn_program_destroy(made);
    tn_params_destroy(p);
    return st;
}

static tn_status executor(void *arg)
{
    const tn_known known = {.name = "x", .shape = f.shape, .ndim = 2, .dtype = TN_F32};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = 1,
                                      .known = &known};
    tn_executor *e = NULL, *again = NULL;
    tn_status st;

    (void)arg;
    if (!(st = tn_executor_simple_bind(f.ctx, f.net, &o, &e)))
        st = tn_executor_reshape(e, TN_RESHAPE_UP, 1, &known, &again);
    tn_executor_destroy(again);
    tn_executor_destroy(e);
    return st;
}

static tn_status views(void *arg)
{
    const tn_known known = {.name = "x", .shape = f.shape, .ndim = 2, .dtype = TN_F32};
    tn_inferred *shapes = NULL;
    tn_symbol_view *nodes = NULL;
    tn_breaks *b = NULL;
    tn_status st;

    (void)arg;
    if (!(st = tn_symbol_infer(f.net, 1, &known, 0, &shapes)) &&
        !(st = tn_symbol_view_create(f.net, shapes, &nodes)))
        st = tn_graph_breaks(f.ctx, f.net, NULL, NULL, &b);
    tn_symbol_view_destroy(nodes);
    tn_breaks_destroy(b);
    tn_inferred_destroy(shapes);
    return st;
}

typedef struct with_context {
    tn_ctx *ctx;
    tn_array *a;
} with_context;

/* A recorded call and its backward, on this thread. */
static tn_status function(void *arg)
{
    static const float zeros[4];
    const with_context *with = arg;
    tn_array *a = with->a, *y = NULL;
    own o = {.ctx = with->ctx, .out_count = 1};
    const tn_function called = own_function(&o);
    tn_err err = {0};
    tn_status st;

    (void)tn_record_set(1);
    st = tn_function_call(o.ctx, &called, 2, (tn_array *const[]){a, a}, 1, &y);
    (void)tn_record_set(0);
    if (st)
        assert_true(!y && !atomic_load(&o.destroyed));
    else if (!(st = tn_backward(o.ctx, 1, &y, NULL, 0)))
        st = tn_array_wait(tn_array_grad(a));
    tni_error_get(&err);
    tn_array_release(y);
    (void)tn_wait_all(o.ctx);
    assert_true(!y || atomic_load(&o.destroyed) == 1);
    if (!st)
        test_values(tn_array_grad(a), (float[]){0, 2, 4, 6}, 4, 0);
    if (st) { /* the failure goes */
        assert_ok(tn_array_write(tn_array_grad(a), zeros, sizeof zeros));
        tni_error_set(&err);
    }
    return st;
}

static void functions(void **state)
{
    with_context w = {.ctx = test_open(LIST("engine.type=naive"))};

    (void)state;
    w.a = test_array(w.ctx, 1, (int64_t[]){4}, (float[]){0, 1, 2, 3});
    assert_ok(tn_attach_grad(w.ctx, w.a, TN_MODE_WRITE, NULL));
    assert_ok(function(&w));
    assert_true(scratch_each_allocation_fails(function, &w) > 5);
    tn_array_release(w.a);
    (void)tn_wait_all(w.ctx);
    assert_ok(tn_close(w.ctx));
}

/* Two keys from their first value to a pull behind a step, the states in a file. */
static tn_status store(void *arg)
{
    const with_context *with = arg;
    tn_array *values[] = {with->a, with->a}, *out = NULL;
    tn_kv_item items[] = {{.name = "v", .value_count = 1, .values = values},
                          {.name = "w", .value_count = 1, .values = values}};
    tn_err err = {0};
    tn_kv *kv = NULL;
    tn_status st;

    if (!(st = tn_array_to(with->ctx, with->a, NULL, &out)) &&
        !(st = tn_kv_create(with->ctx, "device", &kv)) && !(st = tn_kv_init(kv, 2, items)) &&
        !(st = tn_kv_set_optimizer(kv, "sgd", LIST("momentum", "0.5"))) &&
        !(st = tn_kv_set_compression(kv, LIST("type", "2bit")))) {
        items[0].value_count = items[1].value_count = 2;
        st = tn_kv_push(kv, 2, items);
        items[0].value_count = 0;
        items[0].out_count = 1;
        items[0].outs = &out;
        if (!st && !(st = tn_kv_pull(kv, 0, 1, items)) && !(st = tn_array_wait(out)))
            st = tn_kv_save_states(kv, scratch_path("alloc.states"));
    }
    tni_error_get(&err);
    tn_kv_destroy(kv);
    tn_array_release(out);
    (void)tn_wait_all(with->ctx);
    if (st)
        tni_error_set(&err);
    return st;
}

/* The value of a key, all of whose elements are alike; NAN: it has failed. */
static float stored(tn_kv *kv, const char *name, tn_array *out)
{
    const tn_kv_item item = {.name = name, .out_count = 1, .outs = &out};
    float values[4] = {NAN};

    if (tn_kv_pull(kv, 0, 1, &item) || tn_array_read(out, values, sizeof values)) {
        assert_true(tni_mem_failed());
        return NAN;
    }
    return values[1];
}

/* A push of three keys moves all of them or none. */
static tn_status all_or_none(void *arg)
{
    static const char *const optimizers[] = {NULL, "sgd"};
    const with_context *with = arg;
    tn_array *values[] = {with->a, with->a}, *out = NULL;
    tn_kv_item items[3] = {{.name = "u", .value_count = 1, .values = values},
                           {.name = "v", .value_count = 1, .values = values},
                           {.name = "w", .value_count = 1, .values = values}};
    tn_status st = tn_array_to(with->ctx, with->a, NULL, &out);

    for (size_t i = 0; i < 2 && !st; i++) {
        tn_kv *kv = NULL;
        tn_err err = {0};

        if (!(st = tn_kv_create(with->ctx, "local", &kv)) && !(st = tn_kv_init(kv, 3, items)) &&
            (!optimizers[i] || !(st = tn_kv_set_optimizer(kv, optimizers[i], LIST("momentum", "0.5"))))) {
            float now[3];
            tn_status pushed;

            items[0].value_count = items[1].value_count = items[2].value_count = 2;
            pushed = st = tn_kv_push(kv, 3, items);
            tni_error_get(&err);
            items[0].value_count = items[1].value_count = items[2].value_count = 1;
            for (int k = 0; k < 3; k++)
                now[k] = stored(kv, items[k].name, out);
            if (!pushed && isnan(now[0] + now[1] + now[2])) { /* a pull without memory: there is some now */
                st = TN_E_NOMEM;
                for (int k = 0; k < 3; k++)
                    now[k] = stored(kv, items[k].name, out);
                (void)tni_error(TN_E_NOMEM, "found at the pull");
                tni_error_get(&err);
            }
            for (int k = 1; k < 3; k++)
                assert_true(now[k] == now[0] || (isnan(now[k]) && isnan(now[0])));
            assert_true(isnan(now[0]) || (now[0] == 1) == (pushed != TN_OK));
        } else {
            tni_error_get(&err);
        }
        tn_kv_destroy(kv);
        (void)tn_wait_all(with->ctx);
        if (st)
            tni_error_set(&err);
    }
    tn_array_release(out);
    return st;
}

static void stores(void **state)
{
    with_context w = {.ctx = test_open(LIST("engine.type=naive"))};

    (void)state;
    w.a = test_array(w.ctx, 1, (int64_t[]){4}, (float[]){0, 1, 2, 3});
    assert_ok(store(&w));
    assert_true(scratch_each_allocation_fails(store, &w) > 30);
    assert_ok(all_or_none(&w));
    assert_true(scratch_each_allocation_fails(all_or_none, &w) > 30);
    tn_array_release(w.a);
    (void)tn_wait_all(w.ctx);
    assert_ok(tn_close(w.ctx));
}

static void objects(void **state)
{
    (void)state;
    assert_ok(arrays(NULL)); /* caches are filled */
    assert_true(scratch_each_allocation_fails(infer, NULL) > 10);
    assert_true(scratch_each_allocation_fails(params, NULL) > 5);
    assert_true(scratch_each_allocation_fails(program, NULL) > 10);
    assert_ok(executor(NULL));
    assert_true(scratch_each_allocation_fails(executor, NULL) > 20);
    assert_ok(views(NULL)); /* kernels are loaded */
    assert_true(scratch_each_allocation_fails(views, NULL) > 20);
    (void)scratch_each_allocation_fails(arrays, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opening),   cmocka_unit_test(checking),
                                       cmocka_unit_test(tasks),     cmocka_unit_test(objects),
                                       cmocka_unit_test(functions), cmocka_unit_test(stores)};

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
