/*
 * Gradients leave as they are made: in the stepped engine the reader of the first one is ready before half of
 * backward's instructions ran, and backward's segments of two hosts are ready at the same moment.
 */
#include "net.h"
#include "support/static_plugin.h"

#define LAYERS 8

/* ---- y = x w, with kernels that say that they take long ------------------------------------------------ */

static tni_engine *engine;    /* of the running test */
static uint32_t ran;          /* instructions of backward */
static uint32_t ready_before; /* of them, when something else was first ready; 0: never */

static const char *const names_xw[] = {"x", "w", NULL}, *const names_y[] = {"y", NULL};
static const char *const names_back[] = {"dy", "x", "w", NULL}, *const names_grads[] = {"dx", "dw", NULL};

static tn_status layer_shape(tn_infer *i)
{
    const tn_status st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);

    return st ? st : tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status back_shape(tn_infer *i)
{
    const tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : tn_shape_unify(i, i->in_shape[2], i->out_shape[1]);
}

static tn_status layer_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? tn_grad_emit_all(g, "_backward_test_layer", 3, in, 0, 2) : TN_OK;
}

static const tn_op layer = TEST_OP(.name = "test_layer", .inputs = names_xw, .outputs = names_y,
                                   .shape = layer_shape, .gradient = layer_gradient);
static const tn_op layer_back = TEST_OP(.name = "_backward_test_layer", .inputs = names_back,
                                        .outputs = names_grads, .flags = TN_OP_BACKWARD, .shape = back_shape);
TEST_OPS(op_table, "layers", &layer, &layer_back);

static tn_status long_prepare(void *p, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)p;
    (void)node;
    (void)err;
    plan->est_ns = 1000000;
    return TN_OK;
}

static void product(const tn_tensor *a, const tn_tensor *b, const tn_tensor *to)
{
    for (int64_t i = 0; i < tn_tensor_count(to); i++)
        ((float *)to->data)[i] = ((const float *)a->data)[i] * ((const float *)b->data)[i];
}

static tn_status layer_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    product(x->in[0], x->in[1], x->out[0]);
    return TN_OK;
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    if (!ready_before && tni_engine_ready_count(engine))
        ready_before = ran;
    ran++;
    product(x->in[0], x->in[2], x->out[0]);
    product(x->in[0], x->in[1], x->out[1]);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_, run_)                                                                                    \
    TEST_KERNEL(op_, "cpu", .name = (op_), .types = types, .prepare = long_prepare, .run = (run_))
static const tn_kernel kernel_layer = KERNEL("test_layer", layer_run),
                       kernel_back = KERNEL("_backward_test_layer", back_run);
TEST_KERNELS(kernel_table, "cpu", &kernel_layer, &kernel_back);
TEST_PLUGIN(plugin, "layers", &op_table.head, &kernel_table.head);

/* ---- nets ---------------------------------------------------------------------------------------------- */

typedef struct deep {
    tni_context *c;
    tni_symbol *s;
    tni_array *in[2 * (LAYERS + 1)], *y[2];
    uint32_t in_count, out_count;
} deep;

static tni_context *open_stepped(void)
{
    static const char *const stepped[] = {"engine.type=stepped", "engine.inline_ns=0", NULL};
    tni_context *c = test_context(stepped);

    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    engine = c->engine;
    ran = ready_before = 0;
    return c;
}

/* Another branch of `count` layers, on host `index`. */
static tni_symbol *branch_add(deep *d, int32_t index, int count)
{
    const int64_t shape[] = {3};
    char name[16];
    tni_symbol *s = NULL;

    for (int i = 0; i <= count; i++) {
        tni_device *device = NULL;
        tni_array *a = NULL;

        assert_ok(tni_device_get(d->c->devices, "cpu", index, &device));
        assert_ok(tni_array_create(d->c->space, device, TN_F32, 1, shape, "array", &a));
        assert_ok(tni_array_fill(a, 1.0 + i));
        assert_ok(tni_array_wait(a));
        assert_ok(tni_grad_attach(d->c, a, TN_MODE_WRITE, NULL));
        d->in[d->in_count++] = a;
        (void)snprintf(name, sizeof name, "v%d_%d", index, i);
        s = i ? net_take(d->c, "test_layer", s, net_variable(d->c, name), NULL) : net_variable(d->c, name);
    }
    return s;
}

static void record(deep *d, tni_symbol *s)
{
    tni_cached_op *op = NULL;

    d->s = s;
    d->out_count = s->output_count;
    assert_ok(tni_cached_op_create(d->c, s, NULL, &op));
    test_record(true, false);
    assert_ok(tni_cached_op_call(op, d->in_count, d->in, d->out_count, d->y));
    test_record(false, false);
    tni_cached_op_release(op);
    assert_ok(tni_engine_wait_all(d->c->engine));
    assert_int_equal(tni_engine_ready_count(d->c->engine), 0);
}

/* The most operations that were ready at once. */
static size_t run_all(const deep *d)
{
    size_t most = 0, now;

    while ((now = tni_engine_ready_count(d->c->engine)) > 0) {
        most = now > most ? now : most;
        assert_ok(tni_engine_step(d->c->engine, 0));
    }
    return most;
}

static void deep_close(deep *d)
{
    for (uint32_t i = 0; i < d->in_count; i++)
        tni_array_release(d->in[i]);
    for (uint32_t i = 0; i < d->out_count; i++)
        tni_array_release(d->y[i]);
    tni_symbol_release(d->s);
    test_context_close(d->c);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static tn_status reader_run(void *payload, tni_run *run)
{
    (void)run;
    **(uint32_t **)payload += 1;
    return TN_OK;
}

/* The gradient of the last layer's weight comes first. */
static void first_reader(void **state)
{
    deep d = {.c = open_stepped()};
    const tni_backward_options retain = {.retain = true};
    uint32_t reads = 0, *payload = &reads;
    tni_var *v;

    (void)state;
    record(&d, branch_add(&d, 0, LAYERS));
    v = tni_array_var(tni_grad_get(d.in[LAYERS]));
    for (uint32_t turn = 1; turn <= 2; turn++) {
        const tni_task reader = {.run = reader_run,
                                 .payload = &payload,
                                 .payload_bytes = sizeof(payload),
                                 .reads = &v,
                                 .read_count = 1,
                                 .name = "reader"};

        ran = ready_before = 0;
        assert_ok(tni_backward(d.c, 1, d.y, NULL, turn == 1 ? &retain : NULL));
        assert_ok(tni_engine_push(d.c->engine, &reader));
        (void)run_all(&d);
        assert_int_equal(ran, LAYERS);
        assert_int_equal(reads, turn);
        assert_in_range(ready_before, 1, LAYERS / 2);
    }
    deep_close(&d);
}

static void both_hosts(void **state)
{
    deep d = {.c = open_stepped()};
    tni_symbol *parts[2], *s = NULL;

    (void)state;
    for (int i = 0; i < 2; i++)
        parts[i] = branch_add(&d, i, 2);
    assert_ok(tni_symbol_group(2, parts, &s));
    tni_symbol_release(parts[0]);
    tni_symbol_release(parts[1]);
    record(&d, s);
    assert_ok(tni_backward(d.c, 2, d.y, (tni_array *[]){d.in[0], d.in[3]}, NULL));
    assert_int_equal(tni_engine_ready_count(d.c->engine), 2); /* nothing but the two segments */
    assert_int_equal(run_all(&d), 2);
    assert_int_equal(ran, 4);
    for (uint32_t i = 0; i < d.in_count; i++)
        assert_ok(tni_array_wait(tni_grad_get(d.in[i])));
    deep_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_reader), cmocka_unit_test(both_hosts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
