/*
 * Sums of gradients: one by one, the last use first by order of creation, from the old value on. Random
 * graphs run call by call, as a net, as a net read back from its file, and as calls with a net among them:
 * the same bits.
 */
#include "context.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH 5
#define LEAVES 3
#define STEPS 14
#define VALUES (LEAVES + STEPS)
#define HEADS 3
#define GRAPHS 60

/* ---- random graphs ----------------------------------------------------------------------------------- */

typedef struct step { /* an operator over earlier values */
    uint32_t op, in[2];
} step;

static const struct {
    const char *name;
    uint32_t inputs;
} ops[] = {{"elemwise_mul", 2}, {"elemwise_add", 2}, {"elemwise_sub", 2}, {"elemwise_mul", 2},
           {"tanh", 1},         {"sigmoid", 1},      {"BlockGrad", 1},    {"square", 1}};

typedef struct plan {
    step steps[STEPS]; /* make the values LEAVES … */
    uint32_t heads[HEADS], head_count;
    uint32_t modes[LEAVES];
    uint32_t from, to; /* these steps are the net among calls */
    bool f16, retain;
    float leaves[LEAVES][LENGTH], old[LEAVES][LENGTH], head_grads[HEADS][LENGTH];
} plan;

static uint32_t draw(uint64_t *state, uint32_t limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

static void numbers(uint64_t *seed, float *to)
{
    for (int i = 0; i < LENGTH; i++)
        to[i] = (float)draw(seed, 20001) / 10000.0f - 1.0f;
}

static void plan_draw(uint64_t seed, plan *p)
{
    memset(p, 0, sizeof *p);
    for (uint32_t i = 0; i < STEPS; i++) {
        p->steps[i].op = draw(&seed, sizeof ops / sizeof *ops);
        for (int k = 0; k < 2; k++) /* leaves often: they are shared */
            p->steps[i].in[k] = draw(&seed, 2) ? draw(&seed, LEAVES) : draw(&seed, LEAVES + i);
    }
    p->head_count = 1 + draw(&seed, HEADS);
    for (uint32_t i = 0; i < HEADS; i++)
        p->heads[i] = draw(&seed, 4) ? VALUES - 1 - draw(&seed, STEPS / 2) : draw(&seed, VALUES);
    p->from = draw(&seed, STEPS - 1);
    p->to = p->from + 1 + draw(&seed, STEPS - p->from);
    p->f16 = draw(&seed, 2);
    p->retain = draw(&seed, 2);
    for (int i = 0; i < LEAVES; i++) {
        p->modes[i] = draw(&seed, 2) ? TN_MODE_ADD : TN_MODE_WRITE;
        numbers(&seed, p->leaves[i]);
        numbers(&seed, p->old[i]);
    }
    for (int i = 0; i < HEADS; i++)
        numbers(&seed, p->head_grads[i]);
}

/* ---- running them ------------------------------------------------------------------------------------ */

static tni_array *array_of(tni_context *c, const plan *p, const float *values)
{
    tni_array *a = test_vector(c, LENGTH, values), *half;

    if (!p->f16)
        return a;
    half = test_op(c, "Cast", 1, &a, "dtype=float16", NULL);
    tni_array_release(a);
    return half;
}

static void values_of(tni_context *c, const plan *p, tni_array *a, float *to)
{
    tni_array *full = p->f16 ? test_op(c, "Cast", 1, &a, "dtype=float32", NULL) : a;

    assert_ok(tni_array_read(full, to, LENGTH * sizeof *to));
    if (full != a)
        tni_array_release(full);
}

/* A symbol of all of `args`, of which those at and behind LEAVES + from are made here. */
static tni_symbol *symbol_of(tni_context *c, const plan *p, uint32_t from, uint32_t to, uint32_t head_count,
                             const uint32_t *heads)
{
    tni_symbol *values[VALUES] = {NULL}, *parts[VALUES], *group = NULL;

    for (uint32_t i = 0; i < LEAVES + to; i++) {
        const step *s = i < LEAVES + from ? NULL : &p->steps[i - LEAVES];
        tni_symbol *open = NULL, *in[2];
        char name[16];

        snprintf(name, sizeof name, "v%u", i);
        if (!s) {
            assert_ok(tni_symbol_variable(c->ops, name, &values[i]));
            continue;
        }
        in[0] = values[s->in[0]];
        in[1] = values[s->in[1]];
        assert_ok(tni_symbol_atomic(c->ops, ops[s->op].name, 0, NULL, NULL, name, &open));
        assert_ok(tni_symbol_compose(open, name, ops[s->op].inputs, NULL, in, &values[i]));
        tni_symbol_release(open);
    }
    for (uint32_t i = 0; i < head_count; i++)
        parts[i] = values[heads[i]];
    assert_ok(tni_symbol_group(head_count, parts, &group));
    for (uint32_t i = 0; i < VALUES; i++)
        tni_symbol_release(values[i]);
    return group;
}

/* Calls `s` over the values that its variables name. */
static void net_call(tni_context *c, tni_symbol *s, tni_array *const *values, tni_array **out)
{
    tni_array *in[VALUES];
    tni_cached_op *op = NULL;
    char **names = NULL;
    size_t count = 0;

    assert_ok(tni_symbol_list(s, TNI_LIST_INPUTS, &count, &names));
    for (size_t i = 0; i < count; i++)
        in[i] = values[strtoul(names[i] + 1, NULL, 10)];
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_cached_op_call(op, (uint32_t)count, in, s->output_count, out));
    tni_cached_op_release(op);
    tni_free(names);
}

static void steps_call(tni_context *c, const plan *p, uint32_t from, uint32_t to, tni_array **values)
{
    for (uint32_t i = from; i < to; i++) {
        const step *s = &p->steps[i];
        tni_array *in[2] = {values[s->in[0]], values[s->in[1]]};

        values[LEAVES + i] = test_op(c, ops[s->op].name, ops[s->op].inputs, in, NULL);
    }
}

static tni_symbol *through_file(tni_context *c, tni_symbol *s)
{
    tni_symbol *again = NULL;
    tni_str first, second;

    tni_str_init(&first, TN_JSON_BYTES_MAX);
    tni_str_init(&second, TN_JSON_BYTES_MAX);
    assert_ok(tni_symbol_to_json(s, &first));
    assert_ok(tni_symbol_from_json(c->ops, "file", first.text, first.length, &again));
    assert_ok(tni_symbol_to_json(again, &second));
    assert_string_equal(first.text, second.text);
    tni_str_fini(&first);
    tni_str_fini(&second);
    tni_symbol_release(s);
    return again;
}

#define BY_CALLS 0
#define AS_NET 1
#define FROM_FILE 2
#define MIXED 3

/* Fills values[LEAVES …] by calls, or with a net in the middle; or the heads by one net. */
static void forward(tni_context *c, const plan *p, int how, tni_array **values, tni_array **heads)
{
    tni_symbol *s;

    if (how == BY_CALLS || how == MIXED) {
        steps_call(c, p, 0, how == MIXED ? p->from : STEPS, values);
        if (how == MIXED) {
            uint32_t all[STEPS];

            for (uint32_t i = p->from; i < p->to; i++) /* the last first: depth first finds them otherwise */
                all[i - p->from] = LEAVES + p->to - 1 - (i - p->from);
            s = symbol_of(c, p, p->from, p->to, p->to - p->from, all);
            tni_array *out[STEPS] = {NULL};
            net_call(c, s, values, out);
            tni_symbol_release(s);
            for (uint32_t i = p->from; i < p->to; i++)
                values[LEAVES + i] = out[p->to - 1 - i];
            steps_call(c, p, p->to, STEPS, values);
        }
        for (uint32_t i = 0; i < p->head_count; i++)
            tni_array_retain(heads[i] = values[p->heads[i]]);
        return;
    }
    s = symbol_of(c, p, 0, STEPS, p->head_count, p->heads);
    if (how == FROM_FILE)
        s = through_file(c, s);
    net_call(c, s, values, heads);
    tni_symbol_release(s);
}

/* The gradients of the leaves. */
static void run(tni_context *c, const plan *p, int how, float (*grads)[LENGTH])
{
    tni_array *values[VALUES] = {NULL}, *heads[HEADS] = {NULL}, *head_grads[HEADS];
    const tni_backward_options retain = {.retain = true};

    for (int i = 0; i < LEAVES; i++) {
        tni_array *old = array_of(c, p, p->old[i]);

        values[i] = array_of(c, p, p->leaves[i]);
        assert_ok(tni_grad_attach(c, values[i], p->modes[i], old));
        tni_array_release(old);
    }
    test_record(true, true);
    forward(c, p, how, values, heads);
    test_record(false, false);
    for (uint32_t i = 0; i < p->head_count; i++)
        head_grads[i] = array_of(c, p, p->head_grads[i]);
    if (p->retain)
        assert_ok(tni_backward(c, p->head_count, heads, head_grads, &retain));
    assert_ok(tni_backward(c, p->head_count, heads, head_grads, NULL));
    for (int i = 0; i < LEAVES; i++)
        values_of(c, p, tni_grad_get(values[i]), grads[i]);
    for (uint32_t i = 0; i < p->head_count; i++) {
        tni_array_release(heads[i]);
        tni_array_release(head_grads[i]);
    }
    for (int i = 0; i < VALUES; i++)
        tni_array_release(values[i]);
}

static void random_graphs(void **state)
{
    static const char *const hows[] = {"call by call", "as a net", "as a net from its file", "mixed"};
    tni_context *c = test_context(NULL);
    float expected[LEAVES][LENGTH], got[LEAVES][LENGTH];
    plan p;

    (void)state;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        plan_draw(seed, &p);
        run(c, &p, BY_CALLS, expected);
        for (int how = AS_NET; how <= MIXED; how++) {
            run(c, &p, how, got);
            if (memcmp(expected, got, sizeof got))
                fail_msg("graph %llu: gradients %s differ from those %s", (unsigned long long)seed, hows[how],
                         hows[BY_CALLS]);
        }
    }
    test_context_close(c);
}

/* ---- one order, in numbers --------------------------------------------------------------------------- */

/* x times 1, 1e8, -1e8, made in this order; depth first they are the last, the second, the first. */
static const char *const factors[] = {"scalar=1", "scalar=1e8", "scalar=-1e8"};

static tni_symbol *times(tni_context *c, tni_symbol *x, int i)
{
    const char *name = "scalar", *text = strchr(factors[i], '=') + 1;
    tni_symbol *open = NULL, *done = NULL;

    assert_ok(tni_symbol_atomic(c->ops, "_mul_scalar", 1, &name, &text, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, 1, NULL, &x, &done));
    tni_symbol_release(open);
    return done;
}

static tni_symbol *plus(tni_context *c, tni_symbol *a, tni_symbol *b)
{
    tni_symbol *open = NULL, *done = NULL, *in[] = {a, b};

    assert_ok(tni_symbol_atomic(c->ops, "elemwise_add", 0, NULL, NULL, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, 2, NULL, in, &done));
    tni_symbol_release(open);
    tni_symbol_release(a);
    tni_symbol_release(b);
    return done;
}

/* (-1e8 x + 1e8 x) + x. */
static tni_symbol *three_uses(tni_context *c, tni_symbol *x)
{
    tni_symbol *t[3];

    for (int i = 0; i < 3; i++)
        t[i] = times(c, x, i);
    return plus(c, plus(c, t[2], t[1]), t[0]);
}

/* The gradient of the sum `s` over x, as a net; released. */
static void net_gives(tni_context *c, tni_symbol *s, uint32_t mode, float old, float expected)
{
    tni_array *x = test_vector(c, 1, (float[]){1}), *y = NULL, *grad = test_vector(c, 1, &old);
    tni_cached_op *op = NULL;

    assert_ok(tni_grad_attach(c, x, mode, grad));
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    test_record(true, true);
    assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    test_values(grad, &expected, 1, 0);
    tni_array_release(y);
    tni_array_release(x);
    tni_array_release(grad);
    tni_cached_op_release(op);
    tni_symbol_release(s);
}

static void calls_give(tni_context *c, uint32_t mode, float old, float expected)
{
    tni_array *x = test_vector(c, 1, (float[]){1}), *t[5], *grad = test_vector(c, 1, &old);

    assert_ok(tni_grad_attach(c, x, mode, grad));
    test_record(true, true);
    for (int i = 0; i < 3; i++)
        t[i] = test_op(c, "_mul_scalar", 1, &x, factors[i], NULL);
    t[3] = test_op(c, "elemwise_add", 2, (tni_array *[]){t[2], t[1]}, NULL);
    t[4] = test_op(c, "elemwise_add", 2, (tni_array *[]){t[3], t[0]}, NULL);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &t[4], NULL, NULL));
    test_values(grad, &expected, 1, 0);
    for (int i = 0; i < 5; i++)
        tni_array_release(t[i]);
    tni_array_release(x);
    tni_array_release(grad);
}

/* (-1e8 + 1e8) + 1; what was there before is lost in -1e8, as the first summand it is. */
static void last_use_first(void **state)
{
    tni_context *c = test_context(NULL);
    tni_symbol *x = NULL;

    (void)state;
    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    calls_give(c, TN_MODE_WRITE, 2, 1);
    calls_give(c, TN_MODE_ADD, 2, 1);
    net_gives(c, three_uses(c, x), TN_MODE_WRITE, 2, 1);
    net_gives(c, three_uses(c, x), TN_MODE_ADD, 2, 1);
    net_gives(c, through_file(c, three_uses(c, x)), TN_MODE_ADD, 2, 1);
    tni_symbol_release(x);
    test_context_close(c);
}

/* Narrow types round after each addition, few terms as many: 2048 + 1 + 1 + … stays 2048, which one add_n
 * would not. */
static void narrow_types(void **state)
{
    static const char *const types[] = {"dtype=float16", "dtype=bfloat16"};
    tni_context *c = test_context(NULL);

    (void)state;
    for (int i = 0; i < 4; i++) {
        const int uses = i % 2 ? 10 : 3;
        const float large = i < 2 ? 2048 : 256; /* the first whose next number is 2 more */
        char last[24];
        tni_array *full = test_vector(c, 1, (float[]){1}), *sum, *next, *product, *read;
        tni_array *x = test_op(c, "Cast", 1, &full, types[i / 2], NULL);

        snprintf(last, sizeof last, "scalar=%g", (double)large);
        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        test_record(true, true);
        sum = test_op(c, "_mul_scalar", 1, &x, "scalar=1", NULL);
        for (int k = 1; k < uses; k++) {
            product = test_op(c, "_mul_scalar", 1, &x, k + 1 < uses ? "scalar=1" : last, NULL);
            next = test_op(c, "elemwise_add", 2, (tni_array *[]){sum, product}, NULL);
            tni_array_release(product);
            tni_array_release(sum);
            sum = next;
        }
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &sum, NULL, NULL));
        read = tni_grad_get(x);
        read = test_op(c, "Cast", 1, &read, "dtype=float32", NULL);
        test_values(read, &large, 1, 0);
        tni_array_release(read);
        tni_array_release(sum);
        tni_array_release(x);
        tni_array_release(full);
    }
    test_context_close(c);
}

/* f(x) after g(x), put together the other way round; f is a symbol of its own into which x is put. */
static void substituted(void **state)
{
    tni_context *c = test_context(NULL);
    const char *key = "z";
    tni_symbol *x = NULL, *z = NULL, *f, *g, *of_x = NULL;

    (void)state;
    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    assert_ok(tni_symbol_variable(c->ops, "z", &z));
    f = three_uses(c, z); /* all of it is made anew behind g */
    g = plus(c, times(c, x, 0), times(c, x, 0));
    assert_ok(tni_symbol_compose(f, NULL, 1, &key, &x, &of_x));
    net_gives(c, plus(c, of_x, g), TN_MODE_WRITE, 0, 3); /* ((((-1e8 + 1e8) + 1) + 1) + 1) */
    tni_symbol_release(f);
    tni_symbol_release(x);
    tni_symbol_release(z);
    test_context_close(c);
}

/* The old value is read where it lies: in a column. */
static void old_value_elsewhere(void **state)
{
    tni_context *c = test_context(NULL);
    const int64_t shape[] = {3, 2};
    tni_array *both = test_array(c, 2, shape, (float[]){1, 9, 2, 9, 3, 9}), *column = NULL, *y, *z;
    tni_array *x = test_array(c, 2, (int64_t[]){3, 1}, (float[]){1, 2, 3});
    float got[6];

    (void)state;
    assert_ok(tni_array_view(both, 0, 2, (int64_t[]){3, 1}, (int64_t[]){2, 1}, &column));
    assert_ok(tni_grad_attach(c, x, TN_MODE_ADD, column));
    for (int i = 0; i < 2; i++) {
        test_record(true, true);
        y = test_op(c, "elemwise_mul", 2, (tni_array *[]){x, x}, NULL);
        z = test_op(c, "elemwise_mul", 2, (tni_array *[]){y, x}, NULL);
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &z, NULL, NULL));
        tni_array_release(y);
        tni_array_release(z);
    }
    assert_ok(tni_array_read(both, got, sizeof got));
    assert_memory_equal(got, ((float[]){7, 9, 26, 9, 57, 9}), sizeof got);
    tni_array_release(x);
    tni_array_release(column);
    tni_array_release(both);
    test_context_close(c);
}

/* Two leaves add to one gradient: one after the other; where that cannot be, nothing is lost but refused. */
static void shared_gradient(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *grad[2], *both = test_array(c, 2, (int64_t[]){1, 2}, (float[]){5, 9});
    tni_array *x[2] = {test_vector(c, 1, (float[]){2}), test_vector(c, 1, (float[]){3})};

    (void)state;
    grad[0] = test_vector(c, 1, (float[]){5});
    assert_ok(tni_array_view(both, 0, 1, (int64_t[]){1}, (int64_t[]){2}, &grad[1]));
    for (int i = 0; i < 2; i++) {
        tni_array *y[2], *z;
        tn_status st;

        for (int k = 0; k < 2; k++)
            assert_ok(tni_grad_attach(c, x[k], TN_MODE_ADD, grad[i]));
        test_record(true, true);
        for (int k = 0; k < 2; k++)
            y[k] = test_op(c, "elemwise_mul", 2, (tni_array *[]){x[k], x[k]}, NULL);
        z = test_op(c, "elemwise_add", 2, y, NULL);
        test_record(false, false);
        st = tni_backward(c, 1, &z, NULL, NULL);
        assert_true(!st || (st == TN_E_UNSUPPORTED && !(grad[i]->flags & TNI_ARRAY_CONTIGUOUS)));
        test_values(grad[i], (float[]){st ? 5 : 5 + 4 + 6}, 1, 0);
        tni_array_release(y[0]);
        tni_array_release(y[1]);
        tni_array_release(z);
    }
    for (int i = 0; i < 2; i++) {
        tni_array_release(grad[i]);
        tni_array_release(x[i]);
    }
    tni_array_release(both);
    test_context_close(c);
}

/* ---- statistics that two layers share ---------------------------------------------------------------- */

#define LAYERS 2

static tni_symbol *layer(tni_context *c, tni_symbol *const *in)
{
    tni_symbol *open = NULL, *all = NULL, *done = NULL;

    assert_ok(tni_symbol_atomic(c->ops, "BatchNorm", 0, NULL, NULL, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, 5, NULL, in, &all));
    assert_ok(tni_symbol_output(all, 0, &done));
    tni_symbol_release(open);
    tni_symbol_release(all);
    return done;
}

/* The layer over `x` made first changes them first, as the call made first does. */
static void shared_statistics(void **state)
{
    static const char *const names[] = {"v0", "v1", "v2", "v3", "v4", "v5"}; /* gamma, beta, mean, variance */
    tni_context *c = test_context(NULL);
    tni_symbol *v[6] = {NULL}, *s[LAYERS];
    float got[2][2];

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_ok(tni_symbol_variable(c->ops, names[i], &v[i]));
    for (int i = 0; i < LAYERS; i++)
        s[i] = layer(c, (tni_symbol *[]){v[i], v[2], v[3], v[4], v[5]});
    s[0] = plus(c, s[1], s[0]);
    for (int net = 0; net < 2; net++) {
        tni_array *in[6] = {test_array(c, 2, (int64_t[]){2, 1}, (float[]){1, 2}),
                            test_array(c, 2, (int64_t[]){2, 1}, (float[]){5, 9})};
        tni_array *out[LAYERS] = {NULL};

        for (int i = 2; i < 6; i++)
            in[i] = test_vector(c, 1, (float[]){0.5f});
        test_record(true, true);
        if (net)
            net_call(c, s[0], in, out);
        else
            for (int i = 0; i < LAYERS; i++)
                out[i] = test_op(c, "BatchNorm", 5, (tni_array *[]){in[i], in[2], in[3], in[4], in[5]}, NULL);
        test_record(false, false);
        assert_ok(tni_array_read(in[4], &got[net][0], sizeof(float)));
        assert_ok(tni_array_read(in[5], &got[net][1], sizeof(float)));
        for (int i = 0; i < 6; i++)
            tni_array_release(in[i]);
        for (int i = 0; i < LAYERS; i++)
            tni_array_release(out[i]);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    tni_symbol_release(s[0]);
    for (int i = 0; i < 6; i++)
        tni_symbol_release(v[i]);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),       cmocka_unit_test(last_use_first),
        cmocka_unit_test(substituted),         cmocka_unit_test(narrow_types),
        cmocka_unit_test(old_value_elsewhere), cmocka_unit_test(shared_statistics),
        cmocka_unit_test(shared_gradient),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
