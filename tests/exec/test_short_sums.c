/*
 * Pass sums: of float16 gradients the last term is added in place, before it is rounded, where the rest of
 * the sum is needed no more. The kernel of the products is the test's own, which says that it adds so.
 */
#include "context.h"
#include "support/static_plugin.h"
#include "tenon/plugin/util.h"

#include <string.h>

#define COUNT 3
#define NETS_VALUES 16

static atomic_int added; /* runs that added */
static uint64_t room[2]; /* bytes of workspace that the kernel asks for, to write and to add */

static tn_status mul_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    if (node->modes[0] == TN_MODE_ADD && !(node->flags & TN_NODE_ADD_SHORT))
        return tn_fail(err, TN_E_INTERNAL, "asked to add, but not before it rounds");
    plan->workspace_bytes = room[node->modes[0] == TN_MODE_ADD];
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status mul_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const uint16_t *a = x->in[0]->data, *b = x->in[1]->data;
    const bool adds = x->modes[0] == TN_MODE_ADD;
    uint16_t *to = x->out[0]->data;

    (void)err;
    if (plan->workspace_bytes)
        memset(x->workspace, 0xff, plan->workspace_bytes);
    for (int64_t i = 0; i < tn_tensor_count(x->out[0]); i++)
        to[i] = tn_f16_store((adds ? tn_f16_load(to[i]) : 0) + tn_f16_load(a[i]) * tn_f16_load(b[i]));
    atomic_fetch_add(&added, adds);
    return TN_OK;
}

static const char *const types[] = {"*:f16", NULL};
#define MUL(type)                                                                                            \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 250, .op = "elemwise_mul",              \
        .name = "mul", .device = (type), .isa = "", .op_version_min = 1, .op_version_max = 1,                \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_ADD_TO | TN_KERNEL_ADD_SHORT, .types = types,           \
        .prepare = mul_prepare, .run = mul_run                                                               \
    }
static const tn_kernel cpu_mul = MUL("cpu"), fake_mul = MUL("fake");
TEST_KERNELS(cpu_table, "cpu", &cpu_mul);
TEST_KERNELS(fake_table, "fake", &fake_mul);
TEST_PLUGIN(plugin, "sums", &cpu_table.head, &fake_table.head);

/* ---- nets: values 0 to 4 are x, p, u, v, w; each step is one more -------------------------------------- */

#define LEAVES 5
enum { X, P, U, V, W, S0, S1, S2, S3, S4, S5, S6 };
#define MUL_ "elemwise_mul"
#define ADD_ "elemwise_add"
#define VIEW_ "Reshape" /* of the first value alone */

static const struct net {
    const char *what, *setting;
    const char *dtype;
    struct {
        const char *op;
        int in[2];
    } steps[8];
    uint32_t rewrites;
} nets[] = {
    {"two uses",
     NULL,
     "float16",
     {{MUL_, {X, P}}, {MUL_, {S0, U}}, {MUL_, {S0, V}}, {ADD_, {S1, S2}}, {MUL_, {S3, W}}},
     1},
    {"three uses",
     "compile.passes_off=pointwise",
     "float16",
     {{MUL_, {X, P}},
      {MUL_, {S0, U}},
      {MUL_, {S0, V}},
      {MUL_, {S0, W}},
      {ADD_, {S1, S2}},
      {ADD_, {S4, S3}},
      {MUL_, {S5, V}}},
     2},
    {"three uses, of which two sums are one kernel",
     NULL,
     "float16",
     {{MUL_, {X, P}},
      {MUL_, {S0, U}},
      {MUL_, {S0, V}},
      {MUL_, {S0, W}},
      {ADD_, {S1, S2}},
      {ADD_, {S4, S3}},
      {MUL_, {S5, V}}},
     0},
    {"the product reads the rest",
     NULL,
     "float16",
     {{MUL_, {X, P}}, {MUL_, {S0, U}}, {ADD_, {S0, S1}}, {MUL_, {S2, W}}},
     0},
    {"a residual",
     NULL,
     "float16",
     {{MUL_, {X, P}}, {MUL_, {S0, U}}, {MUL_, {S1, V}}, {ADD_, {S0, S2}}, {MUL_, {S3, W}}},
     1},
    {"the sum is read as a view",
     NULL,
     "float16",
     {{MUL_, {X, P}}, {VIEW_, {S0}}, {MUL_, {S1, U}}, {MUL_, {S1, V}}, {ADD_, {S2, S3}}, {MUL_, {S4, W}}},
     1},
    {"a view of the sum is the rest of another one, read behind something else",
     "compile.passes_off=pointwise",
     "float16",
     {{MUL_, {X, P}},
      {MUL_, {S0, V}},
      {MUL_, {S1, P}},
      {VIEW_, {S0}},
      {MUL_, {S3, U}},
      {MUL_, {S3, W}},
      {ADD_, {S4, S5}},
      {ADD_, {S2, S6}}},
     2},
    {"of the caller's own",
     NULL,
     "float16",
     {{MUL_, {X, U}}, {MUL_, {X, V}}, {ADD_, {S0, S1}}, {MUL_, {S2, W}}},
     0},
    {"other kernels",
     NULL,
     "bfloat16",
     {{MUL_, {X, P}}, {MUL_, {S0, U}}, {MUL_, {S0, V}}, {ADD_, {S1, S2}}, {MUL_, {S3, W}}},
     0},
    {"left out",
     "compile.passes_off=sums",
     "float16",
     {{MUL_, {X, P}}, {MUL_, {S0, U}}, {MUL_, {S0, V}}, {ADD_, {S1, S2}}, {MUL_, {S3, W}}},
     0},
};

static bool is_view(const struct net *n, int step)
{
    return !strcmp(n->steps[step].op, VIEW_);
}

static tni_symbol *net_make(tni_context *c, const struct net *n)
{
    static const char *const names[LEAVES] = {"x", "p", "u", "v", "w"};
    tni_symbol *values[NETS_VALUES] = {NULL}, *last;
    uint32_t count = 0;

    for (; count < LEAVES; count++)
        assert_ok(tni_symbol_variable(c->ops, names[count], &values[count]));
    for (int i = 0; i < 8 && n->steps[i].op; i++, count++) {
        tni_symbol *open = NULL, *in[] = {values[n->steps[i].in[0]], values[n->steps[i].in[1]]};
        const uint32_t view = is_view(n, i);

        assert_ok(tni_symbol_atomic(c->ops, n->steps[i].op, view, (const char *[]){"shape"},
                                    (const char *[]){"(-1,)"}, NULL, &open));
        assert_ok(tni_symbol_compose(open, NULL, 2 - view, NULL, in, &values[count]));
        tni_symbol_release(open);
    }
    last = values[--count];
    while (count)
        tni_symbol_release(values[--count]);
    return last;
}

/* ---- what the gradients are ---------------------------------------------------------------------------- */

static const float leaves[LEAVES][COUNT] = {
    {1, 1.5F, -3}, {1.0625F, 0.75F, 1}, {1.001F, 17.3F, 0.3F}, {0.3333F, 2049, -0.7F}, {3.07F, 0.11F, 1.9F}};

static float rounded(const struct net *n, float value)
{
    uint32_t bits;

    if (!strcmp(n->dtype, "float16"))
        return (float)tn_f16_load(tn_f16_store(value));
    memcpy(&bits, &value, sizeof bits);
    bits += 0x7fffu + (bits >> 16 & 1u);
    bits &= 0xffff0000u;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Of x, by the rules: a value's terms are added one by one, the last use first; of one that `in_place` sums
 * the products are not rounded before. */
static float gradient_of(const struct net *n, int element, bool in_place)
{
    float value[NETS_VALUES], gradient[NETS_VALUES] = {0};
    bool any[NETS_VALUES] = {false};
    int count = LEAVES;

    for (int i = 0; i < LEAVES; i++)
        value[i] = rounded(n, leaves[i][element]);
    for (int i = 0; i < 8 && n->steps[i].op; i++, count++) {
        const float a = value[n->steps[i].in[0]], b = value[n->steps[i].in[1]];

        value[count] = rounded(n, !strcmp(n->steps[i].op, MUL_) ? a * b : is_view(n, i) ? a : a + b);
    }
    gradient[count - 1] = 1;
    while (--count >= LEAVES)
        for (int k = is_view(n, count - LEAVES) ? 1 : 2; k-- > 0;) {
            const int *in = n->steps[count - LEAVES].in;
            const bool product = !strcmp(n->steps[count - LEAVES].op, MUL_);
            const float term = product ? gradient[count] * value[in[!k]] : gradient[count];

            gradient[in[k]] = !any[in[k]]           ? rounded(n, term)
                              : in_place && product ? rounded(n, gradient[in[k]] + term)
                                                    : rounded(n, gradient[in[k]] + rounded(n, term));
            any[in[k]] = true;
        }
    return gradient[X];
}

static tni_array *leaf(tni_context *c, const struct net *n, const float *values)
{
    char attr[32];
    tni_array *full = test_vector(c, COUNT, values), *made;

    (void)snprintf(attr, sizeof attr, "dtype=%s", n->dtype);
    made = test_op(c, "Cast", 1, &full, attr, NULL);
    tni_array_release(full);
    return made;
}

static uint32_t rewrites_of(tni_cached_op *op)
{
    tni_compiled *e = NULL;
    uint32_t rewrites = UINT32_MAX;

    assert_ok(tni_cached_op_recent(op, &e));
    for (uint32_t i = 0; i < e->program->note_count; i++)
        if (!strcmp(e->program->notes[i].name, "sums"))
            rewrites = e->program->notes[i].rewrites;
    tni_compiled_release(e);
    return rewrites;
}

static void gradient_check(tni_context *c, const struct net *n, tni_array *x, bool in_place)
{
    tni_array *gradient = tni_grad_get(x), *full = test_op(c, "Cast", 1, &gradient, "dtype=float32", NULL);
    float got[COUNT];

    assert_ok(tni_array_read(full, got, sizeof got));
    for (int i = 0; i < COUNT; i++)
        if (got[i] != gradient_of(n, i, in_place))
            fail_msg("%s: element %d is %.9g, not %.9g", n->what, i, (double)got[i],
                     (double)gradient_of(n, i, in_place));
    tni_array_release(full);
}

/* Backward runs twice over one forward: what it adds to is made anew. */
static void net_check(const struct net *n)
{
    const char *const settings[] = {"plugins.load=cpu,mempool,fake", "compile.passes_off=", n->setting, NULL};
    const tni_backward_options retain = {.retain = true};
    tni_context *c = test_context(settings);
    const bool bounded = strcmp(tni_option_text(c->options, "run.deterministic"), "threads") != 0;
    const uint32_t wanted = bounded && (room[0] || !room[1]) ? n->rewrites : 0;
    tni_symbol *s = (assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL)), net_make(c, n));
    tni_array *in[LEAVES], *named[LEAVES], *out = NULL;
    tni_cached_op *op = NULL;
    char **names = NULL;
    size_t count = 0;

    for (int i = 0; i < LEAVES; i++)
        in[i] = leaf(c, n, leaves[i]);
    assert_ok(tni_symbol_list(s, TNI_LIST_INPUTS, &count, &names));
    for (size_t i = 0; i < count; i++)
        named[i] = in[strchr("xpuvw", names[i][0]) - "xpuvw"];
    tni_free(names);
    assert_ok(tni_grad_attach(c, in[X], TN_MODE_WRITE, NULL));
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    test_record(true, true);
    assert_ok(tni_cached_op_call(op, (uint32_t)count, named, 1, &out));
    test_record(false, false);
    atomic_store(&added, 0);
    assert_ok(tni_backward(c, 1, &out, NULL, &retain));
    gradient_check(c, n, in[X], wanted > 0);
    assert_ok(tni_backward(c, 1, &out, NULL, NULL));
    gradient_check(c, n, in[X], wanted > 0);
    assert_int_equal(rewrites_of(op), wanted);
    assert_int_equal(atomic_load(&added), 2 * wanted);
    tni_array_release(out);
    for (int i = 0; i < LEAVES; i++)
        tni_array_release(in[i]);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    test_context_close(c);
}

static void sums_in_place(void **state)
{
    static const uint64_t rooms[][2] = {
        {64, 256}, {256, 64}, {64, 0}, {0, 0}, {0, 64}}; /* none is added later */

    (void)state;
    for (size_t r = 0; r < sizeof rooms / sizeof *rooms; r++) {
        memcpy(room, rooms[r], sizeof room);
        for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
            net_check(&nets[i]);
    }
}

static int group(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_in_place)};

    return cmocka_run_group_tests_name("short_sums", tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
