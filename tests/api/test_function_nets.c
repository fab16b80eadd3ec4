/*
 * Functions as operators: called by name, in symbols, files, nets and programs. A net with several of them,
 * one behind the other and side by side, has the bits of its operators called one by one.
 */
#include "api/own.h"
#include "support/list.h"
#include "tenon/plugin/op.h"

static const char *const names_xy[] = {"x", "y", NULL}, *const names_p[] = {"p", NULL},
                         *const names_pq[] = {"p", "q", NULL};

static tn_status pair_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);

    for (uint32_t o = 0; o < i->out_count && !st; o++)
        st = tn_shape_unify(i, i->in_shape[0], i->out_shape[o]);
    return st;
}

#define OP(name_, outputs_)                                                                                  \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, gradient), .version = 1, .exec = TN_EXEC_HOST,                \
        .name = (name_), .inputs = names_xy, .outputs = (outputs_), .shape = pair_shape                      \
    }
static const tn_op op_one = OP("test_one", names_p), op_two = OP("test_two", names_pq);

enum { X, W, V, INPUTS };
enum { HEADS = 6 };

typedef struct net {
    tn_ctx *ctx;
    own one, two;
    tn_array *in[INPUTS];
    tn_symbol *s;
    tn_cached_op *op;
} net;

static const int64_t shape[] = {4, 4};

static void begin(net *n, const own_engine *engine)
{
    const char *const settings[] = {engine->type, "engine.threads=1", engine->device, NULL};
    tn_function f;
    float values[16];

    memset(n, 0, sizeof *n);
    n->ctx = n->one.ctx = n->two.ctx = test_open(settings);
    n->one.out_count = 1;
    n->two.out_count = 2;
    f = own_function(&n->one);
    assert_ok(tn_function_register(n->ctx, &op_one, &f));
    assert_fails(tn_function_register(n->ctx, &op_one, &f), TN_E_KEY);
    f = own_function(&n->two);
    assert_ok(tn_function_register(n->ctx, &op_two, &f));
    for (int i = 0; i < INPUTS; i++) {
        for (int k = 0; k < 16; k++)
            values[k] = (float)((k * 5 + 3 * i) % 13 - 6) / 4;
        n->in[i] = test_array(n->ctx, 2, shape, values);
        assert_ok(tn_attach_grad(n->ctx, n->in[i], i == W ? TN_MODE_ADD : TN_MODE_WRITE, NULL));
    }
}

static void end(net *n)
{
    for (int i = 0; i < INPUTS; i++)
        tn_array_release(n->in[i]);
    tn_cached_op_release(n->op);
    tn_symbol_release(n->s);
    test_close(n->ctx);
    assert_int_equal(atomic_load(&n->one.destroyed), 1);
    assert_int_equal(atomic_load(&n->two.destroyed), 1);
}

/* ---- by name ------------------------------------------------------------------------------------------- */

static void by_name(void **state)
{
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .in_count = 2, .op = "test_two"};
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    tn_op_call k = call;
    tn_array *out[3] = {NULL}, *given, *head;
    tn_site *site = NULL;
    uint32_t made = 0;
    float got[16], want[16];
    net n;

    begin(&n, *state);
    k.in = n.in;
    assert_ok(tn_op_find(n.ctx, "test_two", &info));
    assert_int_equal(info.differentiable, 1);
    assert_ok(tn_invoke_text(n.ctx, &k, 3, out, &made));
    assert_int_equal(made, 2);
    assert_ok(tn_array_read(out[1], want, sizeof want));
    tn_array_release(out[0]);
    tn_array_release(out[1]);
    out[0] = NULL;
    out[1] = given = test_array(n.ctx, 2, shape, want);
    assert_ok(tn_site_create(n.ctx, "test_two", NULL, &site));
    assert_fails(tn_invoke(site, 2, n.in, 1, out), TN_E_ARG);
    assert_fails(tn_invoke(site, 1, n.in, 2, out), TN_E_ARG);
    assert_fails(tn_invoke(site, 2, (tn_array *const[]){n.in[0], NULL}, 2, out), TN_E_ARG);
    (void)tn_record_set(1);
    assert_ok(tn_invoke(site, 2, n.in, 2, out)); /* one output is given, one is made */
    (void)tn_record_set(0);
    assert_ptr_equal(out[1], given);
    assert_ok(tn_array_read(out[1], got, sizeof got));
    assert_memory_equal(got, want, sizeof want);
    head = out[1];
    assert_ok(tn_backward(n.ctx, 1, &head, NULL, 0));
    for (int i = 0; i < 16; i++)
        want[i] = 1;
    test_values(tn_array_grad(n.in[X]), want, 16, 0);
    tn_array_release(out[0]);
    tn_array_release(out[1]);
    tn_site_release(site);
    end(&n);
}

/* ---- nets ---------------------------------------------------------------------------------------------- */

static tn_symbol *variable(tn_ctx *ctx, const char *name)
{
    tn_symbol *s = NULL;

    assert_ok(tn_symbol_variable(ctx, name, &s));
    return s;
}

static tn_symbol *node(tn_ctx *ctx, const char *op, uint32_t in_count, tn_symbol *const *in)
{
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = in_count, .op = op, .in = in};
    tn_symbol *s = NULL;

    assert_ok(tn_symbol_op(ctx, &call, &s));
    return s;
}

static tn_symbol *output(tn_symbol *s, uint32_t index)
{
    tn_symbol *out = NULL;

    assert_ok(tn_symbol_output(s, index, &out));
    return out;
}

/* d = Dropout(tanh(x)); p, q = two(d, w); r = one(v, v); t = one(p, exp(q)); u = t + r. Heads: u, u again,
 * the input v, p, exp(q), r. */
static void compose(net *n)
{
    tn_ctx *c = n->ctx;
    tn_symbol *x = variable(c, "x"), *w = variable(c, "w"), *v = variable(c, "v");
    tn_symbol *h = node(c, "tanh", 1, &x), *d = node(c, "Dropout", 1, &h);
    tn_symbol *two = node(c, "test_two", 2, (tn_symbol *[]){d, w}), *p = output(two, 0), *q = output(two, 1);
    tn_symbol *e = node(c, "exp", 1, &q), *r = node(c, "test_one", 2, (tn_symbol *[]){v, v});
    tn_symbol *t = node(c, "test_one", 2, (tn_symbol *[]){p, e});
    tn_symbol *u = node(c, "elemwise_add", 2, (tn_symbol *[]){t, r}), *s = NULL;
    tn_symbol *all[] = {x, w, v, h, d, two, p, q, e, r, t, u};

    assert_ok(tn_symbol_group(HEADS, (tn_symbol *[HEADS]){u, u, v, p, e, r}, &s));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_symbol_release(all[i]);
    n->s = s;
}

static tn_array *one_of(const net *n, const char *op, tn_array *a, tn_array *b)
{
    return test_op(n->ctx, op, NULL, b ? 2 : 1, (tn_array *const[]){a, b});
}

static void eager(const net *n, tn_array **y)
{
    const tn_op_call two = {.struct_size = TN_SIZE(tn_op_call), .in_count = 2, .op = "test_two"};
    tn_op_call k = two;
    tn_array *h = one_of(n, "tanh", n->in[X], NULL), *d = one_of(n, "Dropout", h, NULL), *pq[2] = {NULL};
    tn_array *t, *in[2] = {d, n->in[W]};

    k.in = in;
    assert_ok(tn_invoke_text(n->ctx, &k, 2, pq, NULL));
    y[4] = one_of(n, "exp", pq[1], NULL);
    y[5] = one_of(n, "test_one", n->in[V], n->in[V]);
    t = one_of(n, "test_one", pq[0], y[4]);
    y[0] = one_of(n, "elemwise_add", t, y[5]);
    y[1] = one_of(n, "_copy", y[0], NULL);
    y[2] = one_of(n, "_copy", n->in[V], NULL);
    y[3] = pq[0];
    tn_array_release(h);
    tn_array_release(d);
    tn_array_release(pq[1]);
    tn_array_release(t);
}

#define BITS ((HEADS + INPUTS) * 16)

/* Backward from these heads, twice with retain. */
static void step(const net *n, bool hybrid, uint32_t heads, float *bits)
{
    tn_array *y[HEADS] = {NULL}, *head[HEADS];
    const float zeros[16] = {0};
    uint32_t count = 0;

    assert_ok(tn_random_seed(n->ctx, 7, NULL));
    assert_ok(tn_array_write(tn_array_grad(n->in[W]), zeros, sizeof zeros));
    (void)tn_record_set(1);
    (void)tn_train_set(1);
    if (hybrid)
        assert_ok(tn_cached_op_call(n->op, INPUTS, n->in, HEADS, y));
    else
        eager(n, y);
    (void)tn_record_set(0);
    (void)tn_train_set(0);
    for (uint32_t h = 0; h < HEADS; h++)
        if (heads >> h & 1u)
            head[count++] = y[h];
    assert_ok(tn_backward(n->ctx, count, head, NULL, TN_BACKWARD_RETAIN));
    assert_ok(tn_backward(n->ctx, count, head, NULL, 0));
    for (uint32_t h = 0; h < HEADS; h++)
        assert_ok(tn_array_read(y[h], bits + 16 * h, 16 * sizeof *bits));
    for (uint32_t i = 0; i < INPUTS; i++)
        assert_ok(tn_array_read(tn_array_grad(n->in[i]), bits + 16 * (HEADS + i), 16 * sizeof *bits));
    for (uint32_t h = 0; h < HEADS; h++)
        tn_array_release(y[h]);
}

static uint64_t cuts(const net *n)
{
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_ctx_stats(n->ctx, &stats));
    return stats.cuts;
}

static void same_bits(void **state)
{
    static const uint32_t heads[] = {1, 2, 3, 4, 8, 16, 32, 63, 4 | 8, 1 | 16, 2 | 32};
    float want[BITS], got[BITS];
    net n;

    begin(&n, *state);
    compose(&n);
    assert_ok(tn_cached_op_create(n.ctx, n.s, NULL, &n.op));
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
        uint64_t before;

        step(&n, false, heads[k], want);
        before = cuts(&n);
        step(&n, true, heads[k], got);
        assert_true(cuts(&n) - before >= 3); /* the forward's, one for each function */
        for (int i = 0; i < BITS; i++)
            if (memcmp(&want[i], &got[i], sizeof *got) != 0)
                fail_msg("heads %u: value %d is %g, wanted %g", heads[k], i, (double)got[i], (double)want[i]);
    }
    end(&n);
}

/* Arrays that are given, inputs among them; what is refused; a file; a program. */
static void other_ways(void **state)
{
    tn_array *y[HEADS] = {NULL}, *z[HEADS] = {NULL};
    uint64_t planned = 0, bound = 0;
    float want[16], got[16];
    tn_params *params = NULL;
    tn_program *program = NULL;
    tn_symbol *read = NULL;
    char *text = NULL;
    net n;

    begin(&n, *state);
    compose(&n);
    assert_ok(tn_cached_op_create(n.ctx, n.s, NULL, &n.op));
    assert_ok(tn_cached_op_call(n.op, INPUTS, n.in, HEADS, y));
    assert_fails(tn_cached_op_memory(n.op, &planned, &bound), TN_E_STATE);
    assert_ok(tn_array_read(y[0], want, sizeof want));
    z[1] = n.in[X];
    (void)tn_record_set(1);
    assert_fails(tn_cached_op_call(n.op, INPUTS, n.in, HEADS, z), TN_E_STATE);
    (void)tn_record_set(0);
    assert_null(z[0]);
    assert_ok(tn_symbol_to_json(n.s, &text));
    assert_ok(tn_symbol_from_json(n.ctx, text, strlen(text), &read));
    assert_ok(tn_params_create(&params));
    assert_ok(tn_params_add(params, "arg:w", n.in[W]));
    assert_ok(tn_program_create(n.ctx, read, params, &program));
    for (int turn = 0; turn < 2; turn++) {
        tn_array *out[HEADS] = {NULL};

        assert_ok(tn_program_run(program, 2, (tn_array *const[]){n.in[X], n.in[V]}, HEADS, out));
        assert_ok(tn_array_read(out[0], got, sizeof got));
        assert_memory_equal(got, want, sizeof want);
        for (int h = 0; h < HEADS; h++)
            tn_array_release(out[h]);
    }
    assert_ok(tn_cached_op_call(n.op, INPUTS, n.in, HEADS, z)); /* over an input, behind its readers */
    assert_ok(tn_array_read(n.in[X], got, sizeof got));
    assert_memory_equal(got, want, sizeof want);
    n.two.forward_fault = OWN_FAILS;
    for (int h = 0; h < HEADS; h++) {
        if (h != 1)
            tn_array_release(z[h]);
        tn_array_release(y[h]);
        y[h] = NULL;
    }
    assert_fails(tn_cached_op_call(n.op, INPUTS, n.in, HEADS, y), TN_E_ARG);
    assert_non_null(strstr(tn_error_text(), "test_two"));
    assert_null(y[0]);
    tn_program_destroy(program);
    tn_params_destroy(params);
    tn_symbol_release(read);
    tn_free(text);
    end(&n);
}

static void groups_are_refused(void **state)
{
    const tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options), .group2ctx = LIST("a", "cpu:0")};
    net n;

    begin(&n, *state);
    compose(&n);
    assert_fails(tn_cached_op_create(n.ctx, n.s, &o, &n.op), TN_E_UNSUPPORTED);
    assert_null(n.op);
    end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_name), cmocka_unit_test(same_bits),
                                       cmocka_unit_test(other_ways), cmocka_unit_test(groups_are_refused)};

    return own_run(tests, sizeof tests / sizeof *tests, OWN_ENGINES);
}
