/*
 * compile.mirror: backward computes again what forward then need not keep. The same bits with and without,
 * whatever backward is asked for; what may not run twice does not; what was written between is told.
 */
#include "net.h"

#include <string.h>

enum { INPUTS_MAX = 24 };

static const char *const on[] = {"compile.mirror=true", NULL};

/* ---- nets of (2, 3, 4, 4) arrays ----------------------------------------------------------------------- */

static tni_symbol *convolution(tni_context *c, tni_symbol *x, int number)
{
    char name[16];
    tni_symbol *in[2] = {x, NULL}, *y;

    snprintf(name, sizeof name, "w%d", number);
    in[1] = net_variable(c, name);
    y = net_op(c, "Convolution", 2, in, "kernel=(3, 3)", "pad=(1, 1)", "num_filter=3", "no_bias=True", NULL);
    tni_symbol_release(in[0]);
    tni_symbol_release(in[1]);
    return y;
}

/* Three times convolution, BatchNorm, relu. */
static tni_symbol *residual_free(tni_context *c)
{
    tni_symbol *s = net_variable(c, "x");

    for (int i = 0; i < 3; i++)
        s = net_take(c, "relu", net_take(c, "BatchNorm", convolution(c, s, i), NULL, "fix_gamma=False"), NULL,
                     NULL);
    return s;
}

/* Three times convolution, LayerNorm, softrelu, sigmoid; views between. */
static tni_symbol *pointwise(tni_context *c)
{
    tni_symbol *s = net_variable(c, "x");

    for (int i = 0; i < 3; i++) {
        s = net_take(c, "LayerNorm", convolution(c, s, i), NULL, "axis=-1");
        s = net_take(c, "Activation", net_take(c, "Reshape", s, NULL, "shape=(2, 48)"), NULL,
                     "act_type=softrelu");
        s = net_take(c, "sigmoid", net_take(c, "Reshape", s, NULL, "shape=(2, 3, 4, 4)"), NULL, NULL);
    }
    return s;
}

/* Twice convolution, tanh, softrelu, sigmoid: each has a second derivative. */
static tni_symbol *smooth(tni_context *c)
{
    tni_symbol *s = net_variable(c, "x");

    for (int i = 0; i < 2; i++) {
        s = net_take(c, "tanh", convolution(c, s, i), NULL, NULL);
        s = net_take(c, "Activation", net_take(c, "Reshape", s, NULL, "shape=(2, 48)"), NULL,
                     "act_type=softrelu");
        s = net_take(c, "sigmoid", net_take(c, "Reshape", s, NULL, "shape=(2, 3, 4, 4)"), NULL, NULL);
    }
    return s;
}

/* The same with draws: a node that counts its own. */
static tni_symbol *drawn(tni_context *c)
{
    tni_symbol *s = pointwise(c), *noise = net_op(c, "_random_uniform", 0, NULL, "shape=(2, 3, 4, 4)", NULL);

    noise = net_take(c, "exp", noise, NULL, NULL);
    s = net_take(c, "tanh", net_take(c, "elemwise_mul", s, noise, NULL), NULL, NULL);
    return net_take(c, "square", net_take(c, "Dropout", s, NULL, "p=0.5"), NULL, NULL);
}

/* Two outputs: one of them lies within what is computed again. */
static tni_symbol *two_heads(tni_context *c)
{
    tni_symbol *s = pointwise(c), *heads[2], *both = NULL;

    heads[0] = s;
    heads[1] = net_take(c, "square", net_op(c, "tanh", 1, &s, NULL), NULL, NULL);
    assert_ok(tni_symbol_group(2, heads, &both));
    tni_symbol_release(heads[0]);
    tni_symbol_release(heads[1]);
    return both;
}

typedef struct net_case {
    const char *name;
    tni_symbol *(*build)(tni_context *c);
    bool train, less; /* less: bytes are kept */
} net_case;

static const net_case cases[] = {
    {"convolution, BatchNorm, relu in predict mode", residual_free, false, true},
    {"convolution, BatchNorm, relu", residual_free, true, false}, /* statistics move, so it stays */
    {"pointwise", pointwise, true, true},
    {"smooth", smooth, true, true},
    {"draws", drawn, true, true},
    {"two heads", two_heads, true, true},
};

/* ---- running ------------------------------------------------------------------------------------------- */

typedef struct ran {
    tni_array *in[INPUTS_MAX], *y[2], *grads[INPUTS_MAX];
    tni_compiled *compiled;
    uint32_t count, heads;
    uint64_t kept;
} ran;

/* Any values, the same each time. */
static void fill(tni_array *a, uint32_t seed)
{
    float values[256];
    const uint64_t count = tni_array_count(a);

    assert_true(count <= 256);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)((i * 37 + seed * 11) % 23) * 0.06f - 0.4f;
    assert_ok(tni_array_write(a, values, count * sizeof *values));
}

static const tn_shape data_shape = {.ndim = 4, .dim = {2, 3, 4, 4}};

static void inputs_make(tni_context *c, tni_symbol *s, ran *r)
{
    tni_graph *g = NULL;

    assert_ok(tni_graph_of(s, &g));
    assert_ok(tni_graph_preset(g, 0, &data_shape, TN_F32, -1));
    assert_ok(tni_graph_infer(g, false));
    r->count = g->variable_count;
    assert_true(r->count <= INPUTS_MAX);
    for (uint32_t i = 0; i < r->count; i++) {
        const tni_gnode *node = &g->nodes[g->variables[i]];
        const tn_shape *shape = &g->shapes[node->first_entry];

        r->in[i] = test_array(c, shape->ndim, shape->dim, NULL);
        fill(r->in[i], i);
        if (strstr(node->name, "var"))
            assert_ok(tni_array_fill(r->in[i], 0.7));
        if (!(node->flags & TNI_GNODE_AUX))
            assert_ok(tni_grad_attach(c, r->in[i], TN_MODE_WRITE, NULL));
    }
    tni_graph_destroy(g);
}

/* A recorded call. */
static void forward(tni_context *c, tni_symbol *s, bool train, ran *r)
{
    tni_cached_op *op = NULL;

    *r = (ran){.heads = s->output_count};
    inputs_make(c, s, r);
    assert_ok(tni_random_seed(c, 5, NULL));
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    test_record(true, train);
    assert_ok(tni_cached_op_call(op, r->count, r->in, 2, r->y));
    test_record(false, false);
    assert_ok(tni_cached_op_recent(op, &r->compiled));
    for (uint32_t a = 0; a < r->compiled->program->arena_count; a++)
        r->kept += r->compiled->program->arenas[a].kept_bytes;
    tni_cached_op_release(op);
}

static void ran_free(ran *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        tni_array_release(r->in[i]);
        tni_array_release(r->grads[i]);
    }
    tni_array_release(r->y[0]);
    tni_array_release(r->y[1]);
    tni_compiled_release(r->compiled);
}

static void gradients_take(ran *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (tni_grad_get(r->in[i])) {
            assert_ok(tni_array_wait(tni_grad_get(r->in[i])));
            tni_array_retain(r->grads[i] = tni_grad_get(r->in[i]));
        }
}

static uint32_t again_count(const tni_program *p, const char *op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->code_count; i++)
        count += p->code[i].flags & TNI_CODE_AGAIN && (!op || !strcmp(p->code[i].def->op->name, op));
    return count;
}

static const tni_pass_note *note_of(const tni_program *p)
{
    for (uint32_t i = 0; i < p->note_count; i++)
        if (!strcmp(p->notes[i].name, "mirror"))
            return &p->notes[i];
    return NULL;
}

static void same(const ran *a, const ran *b, const char *what)
{
    for (uint32_t i = 0; i < a->heads; i++)
        net_same(a->y[i], b->y[i], what);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_true((a->grads[i] != NULL) == (b->grads[i] != NULL));
        net_same(a->in[i], b->in[i], what); /* statistics */
        if (a->grads[i])
            net_same(a->grads[i], b->grads[i], what);
    }
}

/* ---- the same bits, less kept -------------------------------------------------------------------------- */

static void less_is_kept(void **state)
{
    tni_context *plain = test_context(NULL), *mirrored = test_context(on);

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tni_symbol *s[2] = {cases[k].build(plain), cases[k].build(mirrored)};
        ran a, b;

        forward(plain, s[0], cases[k].train, &a);
        forward(mirrored, s[1], cases[k].train, &b);
        assert_ok(tni_backward(plain, a.heads, a.y, NULL, NULL));
        assert_ok(tni_backward(mirrored, b.heads, b.y, NULL, NULL));
        gradients_take(&a);
        gradients_take(&b);
        same(&a, &b, cases[k].name);
        print_message("%s: %llu bytes kept, %llu with mirror\n", cases[k].name, (unsigned long long)a.kept,
                      (unsigned long long)b.kept);
        assert_int_equal(again_count(a.compiled->program, NULL), 0);
        assert_int_equal(again_count(b.compiled->program, NULL), note_of(b.compiled->program)->rewrites);
        if (cases[k].less)
            assert_true(b.kept < a.kept && again_count(b.compiled->program, NULL));
        else
            assert_true(b.kept == a.kept && !again_count(b.compiled->program, NULL));
        assert_int_equal(again_count(b.compiled->program, "Convolution"), 0);
        assert_int_equal(again_count(b.compiled->program, "Dropout"), 0);
        ran_free(&a);
        ran_free(&b);
        tni_symbol_release(s[0]);
        tni_symbol_release(s[1]);
    }
    test_context_close(plain);
    test_context_close(mirrored);
}

/* One of several backwards over one forward; the last one consumes. */
static void backward_kind(tni_context *c, ran *r, int kind)
{
    const tni_backward_options retain = {.retain = true}, predict = {.predict = true},
                               create = {.create = true};
    tni_array *grads[INPUTS_MAX] = {NULL};

    switch (kind) {
    case 0: /* retained, twice; then added up */
        assert_ok(tni_backward(c, r->heads, r->y, NULL, &retain));
        assert_ok(tni_backward(c, r->heads, r->y, NULL, &retain));
        break;
    case 1: /* one head of them */
        assert_ok(tni_backward(c, 1, &r->y[r->heads - 1], NULL, NULL));
        break;
    case 2:
        assert_ok(tni_backward(c, r->heads, r->y, NULL, &predict));
        break;
    default: /* the net as its operators, differentiated once more */
        assert_ok(tni_grad(c, 1, r->y, NULL, 1, r->in, &create, grads));
        test_record(false, false);
        assert_ok(tni_backward(c, 1, grads, NULL, NULL));
        tni_array_release(grads[0]);
    }
    gradients_take(r);
}

static void other_backwards(void **state)
{
    tni_context *plain = test_context(NULL), *mirrored = test_context(on);

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int kind = 0; kind < 4; kind++) {
            tni_symbol *s[2];
            ran a, b;

            if (kind == 3 && cases[k].build != smooth && cases[k].build != pointwise)
                continue;
            s[0] = cases[k].build(plain);
            s[1] = cases[k].build(mirrored);
            forward(plain, s[0], cases[k].train, &a);
            forward(mirrored, s[1], cases[k].train, &b);
            backward_kind(plain, &a, kind);
            backward_kind(mirrored, &b, kind);
            same(&a, &b, cases[k].name);
            ran_free(&a);
            ran_free(&b);
            tni_symbol_release(s[0]);
            tni_symbol_release(s[1]);
        }
    test_context_close(plain);
    test_context_close(mirrored);
}

/* ---- which --------------------------------------------------------------------------------------------- */

/* x, exp, tanh, square, sin: marked by hand. */
static tni_symbol *chain(tni_context *c, uint32_t marked)
{
    static const char *const ops[] = {"exp", "tanh", "square", "sin"};
    tni_symbol *s = net_variable(c, "x");

    for (int i = 0; i < 4; i++) {
        s = net_take(c, ops[i], s, NULL, NULL);
        if (marked >> i & 1u)
            assert_ok(tni_symbol_attr_set(s, "__force_mirroring__", "True"));
    }
    return s;
}

static void marked_by_name(void **state)
{
    static const char *const off[] = {"compile.mirror=true", "compile.passes_off=mirror", NULL};
    static const struct {
        const char *const *settings;
        uint32_t marked, again; /* again: instructions */
    } rows[] = {{NULL, 0, 0}, {NULL, 2, 1}, {NULL, 6, 2}, {on, 0, 3}, {off, 15, 0}};

    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        tni_context *c = test_context(rows[k].settings);
        tni_symbol *s = chain(c, rows[k].marked);
        ran r;

        forward(c, s, true, &r);
        assert_ok(tni_backward(c, 1, r.y, NULL, NULL));
        print_message("row %zu\n", k);
        assert_int_equal(again_count(r.compiled->program, NULL), rows[k].again);
        assert_true(note_of(r.compiled->program)->off == (rows[k].settings == off));
        ran_free(&r);
        tni_symbol_release(s);
        test_context_close(c);
    }
}

/* Backward computes all again from x and reads nothing else of the forward: it runs behind it all the same,
 * whoever is served first. */
static void runs_behind_forward(void **state)
{
    static const char *const stepped[] = {"compile.mirror=true", "engine.type=stepped", "engine.inline_ns=0",
                                          NULL};
    const char *const *variant = test_variant;

    (void)state;
    test_variant = NULL;
    for (size_t order = 0; order < 27; order++) { /* three choices among what is ready */
        tni_context *c = test_context(stepped);
        tni_symbol *s = chain(c, 0);
        size_t ready;
        ran r;

        forward(c, s, true, &r);
        assert_ok(tni_backward(c, 1, r.y, NULL, NULL));
        for (size_t step = order; (ready = tni_engine_ready_count(c->engine)) != 0; step /= 3)
            assert_ok(tni_engine_step(c->engine, step % 3 < ready ? step % 3 : ready - 1));
        assert_ok(tni_array_wait(tni_grad_get(r.in[0])));
        ran_free(&r);
        tni_symbol_release(s);
        test_context_close(c);
    }
    test_variant = variant;
}

/* ---- written between ----------------------------------------------------------------------------------- */

/* exp(x): from x again, which is another array's contents by then. */
static void written_between(void **state)
{
    const tni_backward_options retain = {.retain = true};
    tni_context *c = test_context(on);

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        tni_symbol *s = chain(c, 0);
        tn_status st;
        ran r;

        forward(c, s, true, &r);
        if (kind == 2) /* what came before is no business of this one */
            assert_ok(tni_backward(c, 1, r.y, NULL, &retain));
        fill(r.in[0], 9);
        st = tni_backward(c, 1, r.y, NULL, kind ? &retain : NULL);
        if (!st)
            st = tni_array_wait(tni_grad_get(r.in[0]));
        assert_int_equal(st, TN_E_STATE);
        assert_non_null(strstr(tni_error_message(), "input 0 (\"x\")"));
        assert_non_null(strstr(tni_error_message(), "compile.mirror"));
        ran_free(&r);
        forward(c, s, true, &r); /* the next step is fine */
        assert_ok(tni_backward(c, 1, r.y, NULL, NULL));
        assert_ok(tni_array_wait(tni_grad_get(r.in[0])));
        ran_free(&r);
        tni_symbol_release(s);
    }
    test_context_close(c);
}

/* What is not read again may be written; the array of a leaf that was only read by what is kept, too. */
static void written_elsewhere(void **state)
{
    tni_context *c = test_context(on);
    tni_symbol *s = pointwise(c);
    ran r;

    (void)state;
    forward(c, s, true, &r);
    fill(r.in[0], 9); /* x: a convolution's, which is not computed again */
    assert_ok(tni_backward(c, 1, r.y, NULL, NULL));
    for (uint32_t i = 0; i < r.count; i++)
        if (tni_grad_get(r.in[i]))
            assert_ok(tni_array_wait(tni_grad_get(r.in[i])));
    ran_free(&r);
    tni_symbol_release(s);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_is_kept),      cmocka_unit_test(other_backwards),
        cmocka_unit_test(marked_by_name),    cmocka_unit_test(written_between),
        cmocka_unit_test(written_elsewhere), cmocka_unit_test(runs_behind_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
