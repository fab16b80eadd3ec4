/*
 * Passes over programs: what each does to small nets, that results stay, and what it leaves alone. Private
 * layouts are those of a vendor of the test, whose kernels keep elements in reverse order.
 */
#include "context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/static_plugin.h"
#include "tenon/plugin/op/fused.h"

/* ---- the vendor: sin and square in reverse order, reorders, fused layers ------------------------------- */

static atomic_int layer_runs, reorder_runs;
static bool serves_fused; /* of layers: only then */

static const char backwards[] = "backwards";

static const tn_layout *backwards_of(const tn_tensor *t, tn_layout *room)
{
    *room = (tn_layout){.struct_size = (uint32_t)TN_END(tn_layout, memory_bytes),
                        .owner = "vendor",
                        .bytes = backwards,
                        .byte_count = sizeof backwards,
                        .memory_bytes = t->bytes + 64}; /* a private order may be larger */
    return room;
}

/* One layout for an input and one for the output, in the plan's state. */
static tn_status chain_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_layout *two;

    (void)plugin;
    if (!(node->flags & TN_NODE_LAYOUTS) || node->modes[0] == TN_MODE_ADD)
        return tn_fail(err, TN_E_UNSUPPORTED, "only in nets");
    if (!(two = calloc(2, sizeof *two)))
        return tn_fail(err, TN_E_NOMEM, "no memory");
    plan->state = two;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->in_layout[0] = backwards_of(node->in[0], &two[0]);
    plan->out_layout[0] = backwards_of(node->out[0], &two[1]);
    plan->inplace[0] = 0;
    return TN_OK;
}

static void state_free(tn_plan *plan)
{
    free(plan->state);
}

static tn_status chain_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;

    (void)plan;
    if (!x->in[0]->layout || !x->out[0]->layout)
        return tn_fail(err, TN_E_INTERNAL, "no layout");
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        out[i] = in[i] * in[i];
    return TN_OK;
}

static tn_status reorder_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_layout *known = node->in[0]->layout ? node->in[0]->layout : node->out[0]->layout;

    (void)plugin;
    if (!known || strcmp(known->owner, "vendor") != 0)
        return tn_fail(err, TN_E_UNSUPPORTED, "another's layout");
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->in_layout[0] = node->in[0]->layout;
    plan->out_layout[0] = node->out[0]->layout;
    return TN_OK;
}

static tn_status reorder_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;
    const int64_t count = tn_tensor_count(x->in[0]);

    (void)plan;
    (void)err;
    atomic_fetch_add(&reorder_runs, 1);
    for (int64_t i = 0; i < count; i++)
        out[i] = in[count - 1 - i];
    return TN_OK;
}

/* y = relu(x w' + b [+ addend]) as _fused_dense,
 * without a view of the attributes: the test asks for these. */
static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    if (!serves_fused || node->in[0]->ndim != 2)
        return tn_fail(err, TN_E_UNSUPPORTED, "not now");
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status fused_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t rows = x->in[0]->shape[0], depth = x->in[0]->shape[1], units = x->in[1]->shape[0];
    const float *data = x->in[0]->data, *weight = x->in[1]->data, *bias = x->in[2]->data;
    const bool adds = x->attrs[TN_fused_dense_with_sum] != 0;
    const float *addend = adds ? x->in[3]->data : NULL;
    float *out = x->out[0]->data;

    (void)plan;
    (void)err;
    atomic_fetch_add(&layer_runs, 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t u = 0; u < units; u++) {
            float sum = bias[u] + (adds ? addend[r * units + u] : 0);

            for (int64_t k = 0; k < depth; k++)
                sum += data[r * depth + k] * weight[u * depth + k];
            out[r * units + u] =
                x->attrs[TN_fused_dense_act_type] == TN_fused_dense_act_type_relu && sum < 0 ? 0 : sum;
        }
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_, type_, prepare_, run_, release_)                                                         \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 192, .op = (op_), .name = "vendor",     \
        .device = (type_), .isa = "", .op_version_min = 1, .op_version_max = 1,                              \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_LAYOUTS, .types = types, .prepare = (prepare_),         \
        .run = (run_), .release = (release_)                                                                 \
    }
#define TABLE(type_)                                                                                         \
    static const tn_kernel type_##_square = KERNEL("square", #type_, chain_prepare, chain_run, state_free),  \
                           type_##_reorder = KERNEL("_reorder", #type_, reorder_prepare, reorder_run, NULL), \
                           type_##_fused = KERNEL("_fused_dense", #type_, fused_prepare, fused_run, NULL);   \
    static const tn_kernel *const type_##_kernels[] = {&type_##_square, &type_##_reorder, &type_##_fused,    \
                                                       NULL};                                                \
    static const tn_kernel_table type_##_table = {                                                           \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, #type_),                      \
        .kernels = type_##_kernels}
TABLE(cpu);
TABLE(fake);
TEST_PLUGIN(plugin, "vendor", &cpu_table.head, &fake_table.head);

/* ---- nets ---------------------------------------------------------------------------------------------- */

static tni_context *open_with(const char *setting)
{
    const char *const settings[] = {"plugins.load=cpu,mempool,fake", "compile.passes_off=", setting, NULL};
    tni_context *c = test_context(settings);

    atomic_store(&layer_runs, 0);
    atomic_store(&reorder_runs, 0);
    serves_fused = false;
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    return c;
}

static void symbols_drop(void);

static void close_with(tni_context *c)
{
    symbols_drop();
    test_context_close(c);
}

/* Deterministic in threads: bounded passes are left out in this variant. */
static bool bounded(const tni_context *c)
{
    return strcmp(tni_option_text(c->options, "run.deterministic"), "threads") != 0;
}

/* Every symbol that a test makes, until `symbols_drop`. */
static tni_symbol *made[64];
static uint32_t made_count;

static tni_symbol *note(tni_symbol *s)
{
    assert_true(made_count < sizeof made / sizeof *made);
    return made[made_count++] = s;
}

static void symbols_drop(void)
{
    while (made_count)
        tni_symbol_release(made[--made_count]);
}

static tni_symbol *variable(tni_context *c, const char *name)
{
    tni_symbol *s = NULL;

    assert_ok(tni_symbol_variable(c->ops, name, &s));
    return note(s);
}

static tni_symbol *on(tni_context *c, const char *op, const char *attrs, uint32_t count, tni_symbol **in)
{
    tni_symbol *open = NULL, *done = NULL;
    char text[256];
    const char *names[8], *texts[8];
    uint32_t attr_count = 0;

    (void)snprintf(text, sizeof text, "%s", attrs);
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " ")) {
        names[attr_count] = at;
        *strchr(at, '=') = '\0';
        texts[attr_count++] = at + strlen(at) + 1;
    }
    assert_ok(tni_symbol_atomic(c->ops, op, attr_count, names, texts, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, count, NULL, in, &done));
    tni_symbol_release(open);
    return note(done);
}

static tni_symbol *one(tni_context *c, const char *op, const char *attrs, tni_symbol *in)
{
    return on(c, op, attrs, 1, &in);
}

static tni_symbol *two(tni_context *c, const char *op, tni_symbol *a, tni_symbol *b)
{
    return on(c, op, "", 2, (tni_symbol *[]){a, b});
}

/* Calls the net and gives its program; bit i of `constants`: input i. */
static tni_array *called(tni_context *c, tni_symbol *s, uint32_t constants, uint32_t count, tni_array **in,
                         tni_compiled **program)
{
    tni_cached_op *op = NULL;
    tni_array *out[4] = {NULL};

    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    for (uint32_t i = 0; i < count; i++)
        if (constants >> i & 1u)
            assert_ok(tni_cached_op_constant(op, i));
    assert_ok(tni_cached_op_call(op, count, in, 1, out));
    assert_ok(tni_array_wait(out[0]));
    assert_ok(tni_cached_op_recent(op, program));
    tni_cached_op_release(op);
    return out[0];
}

static uint32_t count_of(const tni_compiled *e, const char *op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < e->program->code_count; i++)
        count += !strcmp(e->program->code[i].def->op->name, op);
    return count;
}

static const tni_pass_note *note_of(const tni_compiled *e, const char *pass)
{
    for (uint32_t i = 0; i < e->program->note_count; i++)
        if (!strcmp(e->program->notes[i].name, pass))
            return &e->program->notes[i];
    fail_msg("no pass %s", pass);
    return NULL;
}

/* ---- common subexpressions ----------------------------------------------------------------------------- */

/* exp(x) + exp(x), then twice a sum of those with equal and with other numbers. */
static void equal_ones(void **state)
{
    static const char *const settings[] = {"compile.passes_off=pointwise",
                                           "compile.passes_off=cse,pointwise"};

    (void)state;
    for (int off = 0; off < 2; off++) {
        tni_context *c = open_with(settings[off]);
        tni_symbol *x = variable(c, "x"), *sum, *y;
        tni_array *in = test_vector(c, 2, (float[]){0, 0}), *out;
        tni_compiled *e = NULL;

        sum = two(c, "elemwise_add", one(c, "exp", "", x), one(c, "exp", "", x));
        y = two(c, "elemwise_add", one(c, "_mul_scalar", "scalar=2", sum),
                two(c, "elemwise_add", one(c, "_mul_scalar", "scalar=2", sum),
                    one(c, "_mul_scalar", "scalar=3", sum)));
        out = called(c, y, 0, 1, &in, &e);
        test_values(out, (float[]){14, 14}, 2, 0);
        assert_int_equal(count_of(e, "exp"), off ? 2 : 1);
        assert_int_equal(count_of(e, "_mul_scalar"), off ? 3 : 2);
        assert_true(note_of(e, "cse")->off == off);
        assert_int_equal(note_of(e, "cse")->rewrites, off ? 0 : 2);
        tni_compiled_release(e);
        tni_array_release(in);
        tni_array_release(out);
        close_with(c);
    }
}

/* Draws, and heads, stay apart. */
static void unequal_ones(void **state)
{
    tni_context *c = open_with(NULL);
    tni_symbol *x = variable(c, "x"), *both[2] = {one(c, "exp", "", x), one(c, "exp", "", x)}, *all;
    tni_array *in = test_vector(c, 2, (float[]){0, 0}), *out[2] = {NULL};
    tni_cached_op *op = NULL;

    (void)state;
    assert_ok(tni_symbol_group(2, both, &all));
    assert_ok(tni_cached_op_create(c, all, NULL, &op));
    assert_ok(tni_cached_op_call(op, 1, &in, 2, out));
    assert_ok(tni_array_fill(out[0], 5));
    test_values(out[1], (float[]){1, 1}, 2, 0);
    tni_cached_op_release(op);
    tni_symbol_release(all);
    for (int i = 0; i < 2; i++)
        tni_array_release(out[i]);
    tni_array_release(in);
    close_with(c);
}

/* ---- casts --------------------------------------------------------------------------------------------- */

/* Each net, and the casts that are left of it. */
static const struct {
    const char *to[4]; /* types, one cast behind the other */
    uint32_t left;
} cast_chains[] = {
    {{"float64", "float32"}, 0},            /* back from a wider type */
    {{"float16", "float32"}, 2},            /* bits were lost */
    {{"float64", "float16"}, 1},            /* at once to the narrower one */
    {{"float16", "float64", "float32"}, 2}, /* float16 -> float32 */
    {{"float64", "float64", "float32"}, 0},
    {{"int32", "float32"}, 2},
    {{"float64", "int32"}, 2},
    {{"float32", "float32", "float32"}, 0},
    {{"float32", "float64"}, 1},
};

static void chains_of_casts(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2 * sizeof cast_chains / sizeof *cast_chains; k++) {
        const bool off = k % 2, amp = k % 4 < 2;
        tni_context *c = open_with(off ? "compile.passes_off=cast" : NULL);
        tni_array *in = test_vector(c, 3, (float[]){1.5F, -2, 70000}), *out;
        tni_symbol *y = one(c, "negative", "", variable(c, "x"));
        tni_compiled *e = NULL;
        uint32_t count = 0;

        for (; count < 4 && cast_chains[k / 2].to[count]; count++) {
            char attrs[32];

            (void)snprintf(attrs, sizeof attrs, "dtype=%s", cast_chains[k / 2].to[count]);
            y = one(c, amp ? "amp_cast" : "Cast", attrs, y);
        }
        y = one(c, "Cast", "dtype=float32", one(c, "abs", "", y));
        out = called(c, y, 0, 1, &in, &e);
        if (cast_chains[k / 2].left == 0)
            test_values(out, (float[]){1.5F, 2, 70000}, 3, 0);
        assert_int_equal(count_of(e, "Cast") + count_of(e, "amp_cast"),
                         1 + (off || !bounded(c) ? count : cast_chains[k / 2].left));
        tni_compiled_release(e);
        tni_array_release(in);
        tni_array_release(out);
        close_with(c);
    }
}

/* A cast to the type that is there is no work forward; a backward that is made later, and reads the input for
 * its type, finds it. */
static void recorded_cast(void **state)
{
    tni_context *c = open_with(NULL);
    tni_array *x = test_vector(c, 2, (float[]){0, 1}), *y = NULL;
    const tni_backward_options retain = {.retain = true};
    tni_cached_op *op = NULL;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    assert_ok(tni_cached_op_create(
        c, one(c, "amp_cast", "dtype=float32", one(c, "sinh", "", variable(c, "x"))), NULL, &op));
    test_record(true, true);
    assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &y, NULL, &retain));
    test_values(tni_grad_get(x), (float[]){1, 1.5430806F}, 2, 1e-6F);
    tni_cached_op_release(op);
    tni_array_release(x);
    tni_array_release(y);
    close_with(c);
}

/* ---- layouts
 * ----------------------------------------------------------------------------------------------- */

/* square(square(x)) lies in reverse between the two: one reorder in front and one behind, not between. */
static void chain_in_a_layout(void **state)
{
    static const char *const settings[] = {NULL, "compile.passes_off=layout"};

    (void)state;
    for (int off = 0; off < 2; off++) {
        tni_context *c = open_with(settings[off]);
        tni_array *in = test_vector(c, 4, (float[]){1, 2, 3, 4}), *out;
        tni_compiled *e = NULL;
        const bool laid = !off && bounded(c);

        out = called(c, one(c, "negative", "", one(c, "square", "", one(c, "square", "", variable(c, "x")))),
                     0, 1, &in, &e);
        test_values(out, (float[]){-1, -16, -81, -256}, 4, 0);
        assert_int_equal(count_of(e, "_reorder"), laid ? 2 : 0);
        assert_int_equal(atomic_load(&reorder_runs), laid ? 2 : 0);
        tni_compiled_release(e);
        tni_array_release(in);
        tni_array_release(out);
        close_with(c);
    }
}

/* A head, a view of a result, and one value that two kernels want in the layout. */
static void borders_of_layouts(void **state)
{
    tni_context *c = open_with(NULL);
    tni_symbol *x = variable(c, "x"), *view;
    tni_array *in = test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}), *out;
    tni_compiled *e = NULL;

    (void)state;
    view = one(c, "Flatten", "", one(c, "square", "", x));
    out = called(c, two(c, "elemwise_add", view, one(c, "square", "", one(c, "negative", "", x))), 0, 1, &in,
                 &e);
    test_values(out, (float[]){2, 8, 18, 32}, 4, 0);
    tni_compiled_release(e);
    tni_array_release(out);
    out = called(c, one(c, "square", "", variable(c, "x")), 0, 1, &in, &e); /* from port to port */
    test_values(out, (float[]){1, 4, 9, 16}, 4, 0);
    assert_int_equal(count_of(e, "_reorder"), bounded(c) ? 2 : 0);
    tni_compiled_release(e);
    tni_array_release(in);
    tni_array_release(out);
    close_with(c);
}

/* What follows from a constant is reordered once. */
static void constants_in_a_layout(void **state)
{
    tni_context *c = open_with(NULL);
    tni_array *in[2] = {test_vector(c, 2, (float[]){1, 2}), test_vector(c, 2, (float[]){3, 4})}, *out;
    tni_compiled *e = NULL;

    (void)state;
    out = called(c, two(c, "elemwise_mul", variable(c, "x"), one(c, "square", "", variable(c, "w"))), 2, 2,
                 in, &e);
    test_values(out, (float[]){9, 32}, 2, 0);
    assert_int_equal(e->program->phases[TNI_ONCE].code_count, bounded(c) ? 3 : 1);
    assert_int_equal(e->program->phases[TNI_FORWARD].code_count, 1);
    tni_compiled_release(e);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_array_release(out);
    close_with(c);
}

/* A gradient goes through a value that was kept in a layout. */
static void recorded_in_a_layout(void **state)
{
    tni_context *c = open_with(NULL);
    tni_array *x = test_vector(c, 3, (float[]){1, 2, 3}), *y = NULL;
    tni_symbol *s = one(c, "square", "", one(c, "square", "", variable(c, "x")));
    tni_cached_op *op = NULL;

    (void)state;
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    test_record(true, false);
    assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    test_values(tni_grad_get(x), (float[]){4, 32, 108}, 3, 0);
    tni_cached_op_release(op);
    tni_array_release(x);
    tni_array_release(y);
    close_with(c);
}

/* ---- folding and fusion
 * ------------------------------------------------------------------------------------ */

/* relu(x w' + b + z): inputs x, w, b, z in the order of first use. */
static tni_symbol *dense_net(tni_context *c, bool sum, bool activation)
{
    tni_symbol *y = on(c, "FullyConnected", "num_hidden=2", 3,
                       (tni_symbol *[]){variable(c, "x"), variable(c, "w"), variable(c, "b")});

    if (sum)
        y = two(c, "elemwise_add", y, variable(c, "z"));
    return activation ? one(c, "Activation", "act_type=relu", y) : one(c, "negative", "", y);
}

static void layers_with_what_follows(void **state)
{
    (void)state;
    for (int row = 0; row < 16; row++) {
        tni_context *c = open_with(row & 8 ? "compile.passes_off=fuse" : NULL);
        const bool sum = row & 1, activation = row & 2, served = row & 4;
        const bool fused = served && !(row & 8) && bounded(c) && (sum || activation);
        const float r0 = 1 - 4 + 10 + (sum ? -1.f : 0.f), r1 = -20 + 2 + 0.5f + (sum ? 1.f : 0.f);
        tni_array *in[4] = {test_array(c, 2, (int64_t[]){1, 2}, (float[]){1, 2}),
                            test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, -2, -20, 1}),
                            test_vector(c, 2, (float[]){10, 0.5f}),
                            test_array(c, 2, (int64_t[]){1, 2}, (float[]){-1, 1})},
                  *out;
        tni_compiled *e = NULL;

        serves_fused = served;
        out = called(c, dense_net(c, sum, activation), 0, sum ? 4 : 3, in, &e);
        test_values(out, (float[]){activation ? r0 : -r0, activation ? 0 : -r1}, 2, 0);
        assert_int_equal(count_of(e, "_fused_dense"), fused);
        assert_int_equal(atomic_load(&layer_runs), fused);
        if (fused)
            assert_int_equal(e->program->code_count, activation ? 1 : 2);
        tni_compiled_release(e);
        for (int i = 0; i < 4; i++)
            tni_array_release(in[i]);
        tni_array_release(out);
        close_with(c);
    }
}

/* What is read twice is not fused. */
static void layers_that_are_seen(void **state)
{
    tni_context *c = open_with(NULL);
    tni_symbol *y = on(c, "FullyConnected", "num_hidden=2", 3,
                       (tni_symbol *[]){variable(c, "x"), variable(c, "w"), variable(c, "b")});
    tni_array *in[3] = {test_array(c, 2, (int64_t[]){1, 2}, (float[]){1, 2}),
                        test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, -2, -20, 1}),
                        test_vector(c, 2, (float[]){10, 0.5f})},
              *out;
    tni_compiled *e = NULL;

    (void)state;
    serves_fused = true;
    y = two(c, "elemwise_add", one(c, "Activation", "act_type=relu", y), y);
    out = called(c, y, 0, 3, in, &e);
    test_values(out, (float[]){14, -17.5f}, 2, 0);
    assert_int_equal(count_of(e, "_fused_dense"), 0);
    tni_compiled_release(e);
    for (int i = 0; i < 3; i++)
        tni_array_release(in[i]);
    tni_array_release(out);
    close_with(c);
}

/* Nor what is read as a view alone, be the first instruction a sum of that shape. */
static void layers_seen_as_views(void **state)
{
    tni_context *c = open_with(NULL);
    tni_symbol *x = two(c, "elemwise_add", variable(c, "x"), variable(c, "z"));
    tni_array *in[4] = {test_array(c, 2, (int64_t[]){1, 2}, (float[]){1, 2}),
                        test_array(c, 2, (int64_t[]){1, 2}, (float[]){-1, 1}),
                        test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, -2, -20, 1}),
                        test_vector(c, 2, (float[]){10, 0.5f})},
              *out;
    tni_compiled *e = NULL;

    (void)state;
    serves_fused = true;
    x = on(c, "FullyConnected", "num_hidden=2", 3, (tni_symbol *[]){x, variable(c, "w"), variable(c, "b")});
    out = called(c, one(c, "negative", "", one(c, "Flatten", "", x)), 0, 4, in, &e);
    test_values(out, (float[]){-4, -3.5f}, 2, 0);
    assert_int_equal(count_of(e, "_fused_dense"), 0);
    tni_compiled_release(e);
    for (int i = 0; i < 4; i++)
        tni_array_release(in[i]);
    tni_array_release(out);
    close_with(c);
}

/* BatchNorm of constants goes into the layer; of inputs, or where its outputs are read, it stays. */
static void norms_into_layers(void **state)
{
    (void)state;
    for (int row = 0; row < 6; row++) {
        const bool off = row == 1, free_weight = row == 2, other_axis = row == 3, fixed = row == 4,
                   no_bias = row == 5;
        tni_context *c = open_with(off ? "compile.passes_off=fold" : NULL);
        const bool folds = !off && !free_weight && !other_axis && bounded(c);
        tni_symbol *parts[7], *y;
        tni_array *in[7], *out;
        tni_compiled *e = NULL;
        const float scale = fixed ? 0.5f : 1, rows[2] = {1 * 2 + 2 * 3, 1 * 4 + 2 * 5}; /* before the bias */
        const float bias[2] = {no_bias ? 0 : 1.f, no_bias ? 0 : -1.f};
        uint32_t n = 0;

        for (uint32_t i = 0; i < 7; i++)
            if (!(no_bias && i == 2))
                parts[n++] = variable(c, (const char *[]){"x", "w", "b", "gamma", "beta", "mean", "var"}[i]);
        y = on(c, "FullyConnected", no_bias ? "num_hidden=2 no_bias=1" : "num_hidden=2", no_bias ? 2 : 3,
               parts);
        parts[no_bias ? 1 : 2] = y;
        y = on(c, "BatchNorm",
               other_axis ? "eps=0 fix_gamma=0 axis=0"
               : fixed    ? "eps=0 fix_gamma=1"
                          : "eps=0 fix_gamma=0 axis=-1",
               5, parts + (no_bias ? 1 : 2));
        n = 0;
        in[n++] = test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 2, 1, 2});
        in[n++] = test_array(c, 2, (int64_t[]){2, 2}, (float[]){2, 3, 4, 5});
        if (!no_bias)
            in[n++] = test_vector(c, 2, (float[]){1, -1});
        in[n++] = test_vector(c, 2, (float[]){2, 2});
        in[n++] = test_vector(c, 2, (float[]){0.5f, 0.25f});
        in[n++] = test_vector(c, 2, (float[]){1, 1});
        in[n++] = test_vector(c, 2, (float[]){4, 4});
        out = called(c, y, free_weight ? 0x7cu : 0x7eu, n, in, &e);
        if (other_axis)
            test_values(out, (float[]){rows[0] + 0.5f, rows[1] - 1.5f, rows[0] + 0.25f, rows[1] - 1.75f}, 4,
                        1e-5f);
        else
            for (int i = 0; i < 4; i++) {
                const float y0 = (rows[i % 2] + bias[i % 2] - 1) * scale + (i % 2 ? 0.25f : 0.5f);
                float got[4];

                assert_ok(tni_array_read(out, got, sizeof got));
                assert_true(got[i] > y0 - 1e-4f && got[i] < y0 + 1e-4f);
            }
        assert_int_equal(count_of(e, "BatchNorm"), !folds);
        assert_int_equal(count_of(e, "_fold_weight"), folds);
        assert_int_equal(e->program->phases[TNI_FORWARD].code_count, folds ? 1 : 2);
        tni_compiled_release(e);
        for (uint32_t i = 0; i < n; i++)
            tni_array_release(in[i]);
        tni_array_release(out);
        close_with(c);
    }
}

/* ---- folding into short floats ------------------------------------------------------------------------- */

enum { SHORT_ROWS = 16, SHORT_DEPTH = 48, SHORT_UNITS = 6 };

/* Of numbers that a short float has. */
static uint16_t short_of(float v, int32_t dtype)
{
    uint32_t bits;
    int exponent;
    const float part = frexpf(fabsf(v), &exponent);

    memcpy(&bits, &v, sizeof bits);
    if (dtype == TN_BF16)
        return (uint16_t)(bits >> 16);
    return (uint16_t)((v < 0) * 0x8000 + (v != 0) * ((exponent + 14) * 1024 + (int)((2 * part - 1) * 1024)));
}

static float float_of(uint16_t h, int32_t dtype)
{
    const uint32_t bits = (uint32_t)h << 16;
    const int exponent = h >> 10 & 31;
    float v;

    if (dtype == TN_F16) {
        v = ldexpf((float)((h & 1023) + (exponent ? 1024 : 0)), (exponent ? exponent : 1) - 25);
        return h & 0x8000 ? -v : v;
    }
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Numbers that bfloat16 has, too. */
static tni_array *short_array(tni_context *c, int32_t dtype, int64_t rows, int64_t columns, uint32_t seed,
                              double *values)
{
    uint16_t shorts[SHORT_ROWS * SHORT_DEPTH];
    tni_device *d;
    tni_array *a = NULL;

    for (int64_t i = 0; i < rows * columns; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ((double)(seed >> 24) - 128) / 128;
        shorts[i] = short_of((float)values[i], dtype);
    }
    assert_ok(tni_default_device(c, &d));
    assert_ok(
        tni_array_create(c->space, d, dtype, columns > 1 ? 2 : 1, (int64_t[]){rows, columns}, "test", &a));
    assert_ok(tni_array_write(a, shorts, tni_array_bytes(a)));
    return a;
}

/* The mean square of what a net of `dtype` is off from that of doubles. */
static double short_off(int32_t dtype, bool off, bool no_bias)
{
    static const float gamma[] = {1, 0.5f, 2, -1.5f, 0.7f, 3}, beta[] = {0.3f, -1, 2, 0.1f, 0, -0.6f},
                       mean[] = {0.2f, 1, -3, 0.7f, 2, -1.3f}, var[] = {4, 9, 20, 2.5f, 12, 7};
    static const char *const names[] = {"x", "w", "b", "gamma", "beta", "mean", "var"};
    tni_context *c = open_with(off ? "compile.passes_off=fold" : NULL);
    double x[SHORT_ROWS * SHORT_DEPTH], w[SHORT_UNITS * SHORT_DEPTH], b[SHORT_UNITS] = {0}, sum = 0;
    tni_symbol *parts[7];
    tni_array *in[7], *out;
    tni_compiled *e = NULL;
    uint16_t got[SHORT_ROWS * SHORT_UNITS];
    uint32_t n = 0;
    tni_symbol *y;

    for (uint32_t i = 0; i < 7; i++)
        if (!(no_bias && i == 2))
            parts[n++] = variable(c, names[i]);
    y = on(c, "FullyConnected", no_bias ? "num_hidden=6 no_bias=1" : "num_hidden=6", no_bias ? 2 : 3, parts);
    parts[no_bias ? 1 : 2] = y;
    y = on(c, "BatchNorm", "eps=0.001 fix_gamma=0 axis=-1", 5, parts + (no_bias ? 1 : 2));
    n = 0;
    in[n++] = short_array(c, dtype, SHORT_ROWS, SHORT_DEPTH, 1, x);
    in[n++] = short_array(c, dtype, SHORT_UNITS, SHORT_DEPTH, 2, w);
    if (!no_bias)
        in[n++] = short_array(c, dtype, SHORT_UNITS, 1, 3, b);
    for (int i = 0; i < 4; i++)
        in[n++] = test_vector(c, SHORT_UNITS, (const float *const[]){gamma, beta, mean, var}[i]);
    out = called(c, y, 0x7e, n, in, &e);
    assert_int_equal(count_of(e, "BatchNorm"), off || !bounded(c));
    assert_int_equal(count_of(e, "_fold_weight"), !off && bounded(c));
    assert_ok(tni_array_read(out, got, sizeof got));
    for (int i = 0; i < SHORT_ROWS * SHORT_UNITS; i++) {
        const int u = i % SHORT_UNITS;
        double exact = b[u];

        for (int k = 0; k < SHORT_DEPTH; k++)
            exact += x[i / SHORT_UNITS * SHORT_DEPTH + k] * w[u * SHORT_DEPTH + k];
        exact = beta[u] + (exact - mean[u]) * gamma[u] / sqrt(var[u] + 0.001);
        sum += pow((double)float_of(got[i], dtype) - exact, 2);
    }
    tni_compiled_release(e);
    for (uint32_t i = 0; i < n; i++)
        tni_array_release(in[i]);
    tni_array_release(out);
    close_with(c);
    return sum / (SHORT_ROWS * SHORT_UNITS);
}

/* Statistics are float32 beside them. The two layers round a sum twice, the folded one each weight and the
 * sum once: it is off from the exact result by about as much. */
static void norms_into_short_layers(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        const int32_t dtype = row & 1 ? TN_F16 : TN_BF16;
        const double folded = short_off(dtype, false, row & 2), apart = short_off(dtype, true, row & 2);

        if (folded > 3 * apart || apart > (dtype == TN_BF16 ? 1e-4 : 1e-6))
            fail_msg("%s: %g folded, %g apart", tni_dtype_name(dtype), folded, apart);
    }
}

/* ---- the option
 * --------------------------------------------------------------------------------------------- */

static void unknown_passes(void **state)
{
    static const char *const wrong[] = {"compile.passes_off=fold,fussion", "compile.passes_off=plan",
                                        "compile.passes_off=select,cse"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const settings[] = {wrong[i], NULL};
        tni_context *c = NULL;

        assert_int_equal(test_context_try(settings, &c), TN_E_ARG);
        assert_null(c);
        assert_non_null(
            strstr(tni_error_message(), "is no pass that can be left out; those are cse, cast, fold"));
    }
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_ones),           cmocka_unit_test(unequal_ones),
        cmocka_unit_test(chains_of_casts),      cmocka_unit_test(chain_in_a_layout),
        cmocka_unit_test(borders_of_layouts),   cmocka_unit_test(constants_in_a_layout),
        cmocka_unit_test(recorded_in_a_layout), cmocka_unit_test(layers_with_what_follows),
        cmocka_unit_test(layers_that_are_seen), cmocka_unit_test(layers_seen_as_views),
        cmocka_unit_test(norms_into_layers),    cmocka_unit_test(norms_into_short_layers),
        cmocka_unit_test(recorded_cast),        cmocka_unit_test(unknown_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
