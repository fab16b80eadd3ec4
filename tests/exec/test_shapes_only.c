/*
 * Gradients that read nothing of a value but its shape: a net does not keep its bytes for backward, and a
 * tape does not hold its array. Bytes and storages are counted.
 */
#include "net.h"

#include <string.h>

/* op(h, …) of h = x + x, with x of (4, 6): what backward needs of h. */
static const struct {
    const char *op, *attrs[3];
    uint32_t copies; /* of h, as inputs */
    bool kept;
} rows[] = {
    {"sum", {"axis=1"}, 1, false},
    {"mean", {"axis=0"}, 1, false},
    {"slice", {"begin=(0,0)", "end=(2,3)"}, 1, false},
    {"slice_axis", {"axis=0", "begin=1", "end=3"}, 1, false},
    {"SliceChannel", {"num_outputs=2", "axis=1"}, 1, false},
    {"Concat", {"dim=0"}, 2, false},
    {"stack", {"axis=0"}, 2, false},
    {"tile", {"reps=(2,1)"}, 1, false},
    {"repeat", {"repeats=2", "axis=0"}, 1, false},
    {"Reshape", {"shape=(24,)"}, 1, false},
    {"transpose", {NULL}, 1, false},
    {"broadcast_add", {NULL}, 2, false},
    {"broadcast_to", {"shape=(4,6)"}, 1, false},
    {"Cast", {"dtype=float64"}, 1, false},
    {"zeros_like", {NULL}, 1, false},
    {"square", {NULL}, 1, true}, /* reads h itself */
    {"broadcast_mul", {NULL}, 2, true},
};

static uint64_t kept_by(tni_cached_op *op)
{
    tni_compiled *e = NULL;
    uint64_t bytes = 0;

    assert_ok(tni_cached_op_recent(op, &e));
    for (uint32_t a = 0; a < e->program->arena_count; a++)
        bytes += e->program->arenas[a].kept_bytes;
    tni_compiled_release(e);
    return bytes;
}

static tni_symbol *net_of(tni_context *c, size_t row)
{
    tni_symbol *x = net_variable(c, "x"), *h = net_take(c, "elemwise_add", x, x, NULL), *y;

    y = net_op(c, rows[row].op, rows[row].copies, (tni_symbol *const[]){h, h}, rows[row].attrs[0],
               rows[row].attrs[1], rows[row].attrs[2], NULL);
    tni_symbol_release(h);
    return y;
}

static tni_array *input(tni_context *c)
{
    float values[24];

    for (int i = 0; i < 24; i++)
        values[i] = (float)(i % 5) * 0.5f - 1;
    return test_array(c, 2, (int64_t[]){4, 6}, values);
}

/* The gradient of head 0; of several outputs the others have none. */
static void backward(tni_context *c, uint32_t count, tni_array **y)
{
    assert_ok(tni_backward(c, 1, y, NULL, NULL));
    for (uint32_t i = 0; i < count; i++)
        tni_array_release(y[i]);
}

static void nets_and_tapes(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        tni_context *c = test_context(NULL);
        tni_symbol *s = net_of(c, row);
        tni_array *x = input(c), *y[2] = {NULL}, *grad;
        tni_cached_op *op = NULL;
        uint64_t kept;

        assert_ok(tni_cached_op_create(c, s, NULL, &op));
        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        test_record(true, true);
        assert_ok(tni_cached_op_call(op, 1, &x, s->output_count, y));
        test_record(false, false);
        kept = kept_by(op);
        backward(c, s->output_count, y);
        assert_ok(tni_array_wait(tni_grad_get(x)));
        assert_ok(tni_array_like(x, NULL, &grad));
        assert_ok(tni_array_copy(tni_grad_get(x), grad));
        test_record(true, true);
        net_call(c, s, false, &x, y);
        test_record(false, false);
        backward(c, s->output_count, y);
        net_same(tni_grad_get(x), grad, rows[row].op);
        if ((kept != 0) != rows[row].kept)
            fail_msg("%s: %llu bytes kept", rows[row].op, (unsigned long long)kept);
        tni_cached_op_release(op);
        tni_symbol_release(s);
        tni_array_release(x);
        tni_array_release(grad);
        test_context_close(c);
    }
}

/* Storages that live while y = op(h) waits for its backward, and nobody else holds h. */
static uint64_t live_with(size_t row)
{
    tni_context *c = test_context(NULL);
    tni_array *x = input(c), *h[2], *y[2] = {NULL};
    const uint32_t outputs = strcmp(rows[row].op, "SliceChannel") ? 1 : 2;
    const char *names[3], *texts[3];
    char text[3][32];
    size_t attrs = 0;
    tni_site *site = NULL;
    uint64_t live;

    for (; attrs < 3 && rows[row].attrs[attrs]; attrs++) {
        (void)snprintf(text[attrs], sizeof text[attrs], "%s", rows[row].attrs[attrs]);
        names[attrs] = text[attrs];
        *strchr(text[attrs], '=') = '\0';
        texts[attrs] = text[attrs] + strlen(text[attrs]) + 1;
    }
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    assert_ok(tni_site_create(c, rows[row].op, attrs, names, texts, &site));
    test_record(true, true);
    h[0] = h[1] = test_op(c, "elemwise_add", 2, (tni_array *[]){x, x}, NULL);
    assert_ok(tni_invoke(site, rows[row].copies, h, outputs, y));
    test_record(false, false);
    tni_array_release(h[0]);
    for (uint32_t i = 1; i < outputs; i++) /* the tape needs no output that nobody has */
        tni_array_release(y[i]);
    assert_ok(tni_array_wait(y[0]));
    assert_ok(tni_engine_wait_all(c->engine));
    tni_space_live(c->space, NULL, &live);
    assert_ok(tni_backward(c, 1, y, NULL, NULL));
    assert_ok(tni_array_wait(tni_grad_get(x)));
    tni_site_release(site);
    tni_array_release(y[0]);
    tni_array_release(x);
    test_context_close(c);
    return live;
}

static void storages_of_tapes(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const uint64_t live = live_with(row);

        if (strcmp(rows[row].op, "Reshape") && live != (rows[row].kept ? 4u : 3u)) /* x, its gradient, y */
            fail_msg("%s: %llu storages", rows[row].op, (unsigned long long)live);
    }
}

static int group(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nets_and_tapes), cmocka_unit_test(storages_of_tapes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
