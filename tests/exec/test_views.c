/*
 * Pass views: slices, transposes and splits in a net are read where their input lies. Each net runs with the
 * pass and without it, recorded and not: the same bits; instructions and planned bytes are counted.
 */
#include "net.h"

#include <string.h>

#include "support/static_plugin.h"

/* ---- a plugin's own views ------------------------------------------------------------------------------ */

static atomic_int runs;
static int64_t begin; /* of what acme_diagonal says */

static tn_status diagonal_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    const tn_shape y = {.ndim = 1, .dim = {x->dim[0] < x->dim[1] ? x->dim[0] : x->dim[1]}};

    if (x->ndim < 0)
        return TN_OK;
    *i->out_shape[0] = y;
    return x->ndim == 2 ? TN_OK : tn_fail(i->err, TN_E_SHAPE, "a matrix is needed");
}

static tn_status diagonal_view(const tn_infer *i, tn_view *v)
{
    (void)i;
    v->offset = begin;
    v->stride[0] = v->in_stride[0] + v->in_stride[1];
    return TN_OK;
}

static tn_status diagonal_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status diagonal_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    atomic_fetch_add(&runs, 1);
    for (int64_t i = 0; i < x->out[0]->shape[0]; i++)
        ((float *)x->out[0]->data)[i] = ((const float *)x->in[0]->data)[i * (x->in[0]->shape[1] + 1)];
    return TN_OK;
}

static const tn_op diagonal = {.struct_size = (uint32_t)TN_END(tn_op, view),
                               .version = 1,
                               .name = "acme_diagonal",
                               .doc = "for tests",
                               .inputs = (const char *const[]){"data", NULL},
                               .outputs = (const char *const[]){"output", NULL},
                               .shape = diagonal_shape,
                               .view = diagonal_view};
static const char *const types[] = {"*:f32", NULL};
static const tn_kernel on_cpu = TEST_KERNEL("acme_diagonal", "cpu", .name = "own", .types = types,
                                            .prepare = diagonal_prepare, .run = diagonal_run),
                       on_fake = TEST_KERNEL("acme_diagonal", "fake", .name = "own", .types = types,
                                             .prepare = diagonal_prepare, .run = diagonal_run);
TEST_OPS(op_table, "acme", &diagonal);
TEST_KERNELS(cpu_table, "cpu", &on_cpu);
TEST_KERNELS(fake_table, "fake", &on_fake);
TEST_PLUGIN(plugin, "acme", &op_table.head, &cpu_table.head, &fake_table.head);

/* ---- nets ---------------------------------------------------------------------------------------------- */

#define STEPS 8u

typedef struct step {
    const char *op, *attrs; /* "name=text name=text" */
    const char *in;         /* "0": x; "2.1": output 1 of step 2 */
} step;

static const struct {
    const char *name;
    step steps[STEPS];
    uint32_t made, left; /* instructions of operators with views, without the pass and with it: none
                            left means fewer planned bytes */
} nets[] = {
    {"rows", {{"exp", "", "0"}, {"slice_axis", "axis=0 begin=1 end=3", "1"}, {"relu", "", "2"}}, 1, 0},
    {"columns", {{"exp", "", "0"}, {"slice_axis", "axis=-1 begin=2 end=5", "1"}, {"relu", "", "2"}}, 1, 0},
    {"every other",
     {{"exp", "", "0"}, {"slice", "begin=(0,1) end=(None,None) step=(2,3)", "1"}, {"relu", "", "2"}},
     1,
     0},
    {"backwards",
     {{"exp", "", "0"}, {"slice", "begin=(3,) end=(None,) step=(-1,)", "1"}, {"relu", "", "2"}},
     1,
     1},
    {"of the input", {{"slice_axis", "axis=1 begin=1 end=4", "0"}, {"relu", "", "1"}}, 1, 0},
    {"split",
     {{"exp", "", "0"},
      {"SliceChannel", "num_outputs=2 axis=1", "1"},
      {"sigmoid", "", "2.0"},
      {"tanh", "", "2.1"},
      {"elemwise_mul", "", "3 4"}},
     1,
     0},
    {"split and squeezed",
     {{"exp", "", "0"},
      {"SliceChannel", "num_outputs=4 axis=0 squeeze_axis=1", "1"},
      {"elemwise_mul", "", "2.0 2.3"},
      {"elemwise_add", "", "2.1 2.2"},
      {"elemwise_sub", "", "3 4"}},
     1,
     0},
    {"transposed", {{"exp", "", "0"}, {"transpose", "", "1"}, {"relu", "", "2"}}, 1, 0},
    {"swapped", {{"exp", "", "0"}, {"SwapAxis", "dim1=0 dim2=1", "1"}, {"sin", "", "2"}}, 1, 0},
    {"of a window",
     {{"exp", "", "0"},
      {"slice_axis", "axis=0 begin=1 end=3", "1"},
      {"slice_axis", "axis=1 begin=2 end=4", "2"},
      {"relu", "", "3"}},
     2,
     0},
    {"in another shape",
     {{"exp", "", "0"},
      {"slice_axis", "axis=1 begin=2 end=4", "1"},
      {"Reshape", "shape=(2,2,1,2)", "2"},
      {"relu", "", "3"}},
     1,
     0},
    {"in a shape across",
     {{"exp", "", "0"},
      {"slice_axis", "axis=1 begin=2 end=4", "1"},
      {"Reshape", "shape=(8,)", "2"},
      {"relu", "", "3"}},
     1,
     1},
    {"rows for a dense kernel",
     {{"exp", "", "0"}, {"slice_axis", "axis=0 begin=2 end=4", "1"}, {"softmax", "axis=0", "2"}},
     1,
     0},
    {"columns for a dense kernel",
     {{"exp", "", "0"}, {"slice_axis", "axis=1 begin=2 end=4", "1"}, {"softmax", "axis=0", "2"}},
     1,
     1},
    {"a head", {{"exp", "", "0"}, {"slice_axis", "axis=0 begin=1 end=3", "1"}}, 1, 1},
    {"summed", {{"exp", "", "0"}, {"transpose", "", "1"}, {"sum", "axis=1", "2"}}, 1, 0},
    {"broadcast",
     {{"exp", "", "0"}, {"slice_axis", "axis=1 begin=1 end=2", "1"}, {"broadcast_mul", "", "0 2"}},
     1,
     0},
    {"twice",
     {{"exp", "", "0"},
      {"slice_axis", "axis=0 begin=0 end=2", "1"},
      {"slice_axis", "axis=0 begin=2 end=4", "1"},
      {"elemwise_mul", "", "2 3"}},
     2,
     0},
    {"as its own operand", /* in place would write over what it still reads */
     {{"exp", "", "0"},
      {"slice", "begin=(0,0) end=(4,4)", "1"},
      {"transpose", "", "2"},
      {"elemwise_add", "", "2 3"}},
     2,
     1},
    {"like another",
     {{"exp", "", "0"}, {"sum", "axis=1 keepdims=1", "0"}, {"slice_like", "", "1 2"}, {"relu", "", "3"}},
     1,
     0},
};

static tni_symbol *net_of(tni_context *c, const step *steps)
{
    tni_symbol *made[STEPS + 1] = {net_variable(c, "x")}, *last;
    uint32_t count = 1;

    for (; count <= STEPS && steps[count - 1].op; count++) {
        const step *s = &steps[count - 1];
        tni_symbol *in[2] = {NULL}, *open = NULL;
        char text[128], *names[8], *texts[8];
        uint32_t attrs = 0, inputs = 0;

        (void)snprintf(text, sizeof text, "%s", s->attrs);
        for (char *at = strtok(text, " "); at; at = strtok(NULL, " ")) {
            names[attrs] = at;
            *strchr(at, '=') = '\0';
            texts[attrs++] = at + strlen(at) + 1;
        }
        for (const char *at = s->in; *at; at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ')) {
            const uint32_t output = at[1] == '.' ? (uint32_t)(at[2] - '0') : 0;

            assert_ok(tni_symbol_output(made[*at - '0'], output, &in[inputs++]));
        }
        assert_ok(tni_symbol_atomic(c->ops, s->op, attrs, (const char *const *)names,
                                    (const char *const *)texts, NULL, &open));
        assert_ok(tni_symbol_compose(open, NULL, inputs, NULL, in, &made[count]));
        tni_symbol_release(open);
        for (uint32_t i = 0; i < inputs; i++)
            tni_symbol_release(in[i]);
    }
    last = made[count - 1];
    for (uint32_t i = 0; i + 1 < count; i++)
        tni_symbol_release(made[i]);
    return last;
}

static tni_array *input(tni_context *c)
{
    float values[24];

    for (int i = 0; i < 24; i++)
        values[i] = (float)(i % 7) * 0.25f - 0.6f + (float)i * 0.03125f;
    return test_array(c, 2, (int64_t[]){4, 6}, values);
}

typedef struct result {
    tni_array *y, *plain, *dx; /* of a call that is recorded, and of one that is not; the gradient */
    tni_array *twice;          /* the gradient of the gradient; NULL: there is none */
    tn_status status;          /* of the call that would make it */
    uint32_t views;
    uint64_t planned;
} result;

static uint32_t views_of(const tni_program *p)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->phases[TNI_FORWARD].code_count; i++)
        count += p->code[p->phases[TNI_FORWARD].first_code + i].def->op->view != NULL;
    return count;
}

/* The operators of the net are walked one by one, over copies of what its frame kept. */
static void run_twice(tni_context *c, tni_cached_op *op, tni_array *x, result *r)
{
    const tni_backward_options create = {.create = true};
    tni_array *y = NULL, *g = NULL;

    test_record(true, true);
    assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
    r->status = tni_grad(c, 1, &y, NULL, 1, &x, &create, &g);
    test_record(false, false);
    if (!r->status) {
        r->status = tni_backward(c, 1, &g, NULL, NULL);
        tni_array_retain(r->twice = tni_grad_get(x));
        assert_ok(tni_array_wait(r->twice));
    }
    tni_array_release(y);
    tni_array_release(g);
}

static result run(tni_context *c, const step *steps)
{
    tni_symbol *s = net_of(c, steps);
    tni_array *x = input(c);
    tni_cached_op *op = NULL;
    tni_compiled *e = NULL;
    result r = {.plain = NULL};

    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_cached_op_call(op, 1, &x, 1, &r.plain));
    assert_ok(tni_array_wait(r.plain));
    assert_ok(tni_cached_op_recent(op, &e));
    r.views = views_of(e->program);
    r.planned = e->program->planned_bytes;
    tni_compiled_release(e);
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    test_record(true, true);
    assert_ok(tni_cached_op_call(op, 1, &x, 1, &r.y));
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &r.y, NULL, NULL));
    tni_array_retain(r.dx = tni_grad_get(x));
    assert_ok(tni_array_wait(r.dx));
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    run_twice(c, op, x, &r);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    tni_array_release(x);
    return r;
}

static void result_drop(result *r)
{
    tni_array_release(r->y);
    tni_array_release(r->plain);
    tni_array_release(r->dx);
    tni_array_release(r->twice);
}

static tni_context *open_with(const char *setting)
{
    return test_context((const char *const[]){"plugins.load=cpu,mempool,fake", setting, NULL});
}

static void nets_with_and_without(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        tni_context *c = open_with("compile.passes_off="), *off = open_with("compile.passes_off=views");
        result with = run(c, nets[i].steps), without = run(off, nets[i].steps);

        net_same(with.plain, without.plain, nets[i].name);
        net_same(with.y, without.y, nets[i].name);
        net_same(with.dx, without.dx, nets[i].name);
        if (with.status != without.status)
            fail_msg("%s: statuses %d and %d", nets[i].name, with.status, without.status);
        if (!with.status)
            net_same(with.twice, without.twice, nets[i].name);
        print_message("%s: %u to %u instructions, %llu to %llu bytes\n", nets[i].name, without.views,
                      with.views, (unsigned long long)without.planned, (unsigned long long)with.planned);
        if (without.views != nets[i].made || with.views != nets[i].left ||
            (nets[i].left ? with.planned > without.planned : with.planned >= without.planned))
            fail_msg("%s: %u views, %u left, %llu and %llu bytes", nets[i].name, without.views, with.views,
                     (unsigned long long)without.planned, (unsigned long long)with.planned);
        result_drop(&with);
        result_drop(&without);
        test_context_close(c);
        test_context_close(off);
    }
}

/* An operator of a plugin whose kernel never runs in a net, and what is said of one that shows too much. */
static void views_of_a_plugin(void **state)
{
    const step steps[STEPS] = {{"exp", "", "0"}, {"acme_diagonal", "", "1"}, {"negative", "", "2"}};

    (void)state;
    for (begin = 0; begin < 8; begin += 2) {
        tni_context *c = open_with("compile.passes_off=");
        tni_cached_op *op = NULL;
        tni_array *x = input(c), *y[2] = {NULL};
        tni_symbol *s;

        assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
        s = net_of(c, steps);
        assert_ok(tni_cached_op_create(c, s, NULL, &op));
        atomic_store(&runs, 0);
        if (begin > 2) { /* rows have 6 elements: the last of 4 is at 21 + begin */
            assert_int_equal(tni_cached_op_call(op, 1, &x, 1, y), TN_E_ARG);
            assert_non_null(strstr(tni_error_message(), "acme_diagonal: the view of output 0"));
        } else {
            assert_ok(tni_cached_op_call(op, 1, &x, 1, y));
            assert_ok(tni_array_wait(y[0]));
            assert_int_equal(atomic_load(&runs), 0);
        }
        if (begin == 0) {
            net_call(c, s, false, &x, &y[1]);
            net_same(y[0], y[1], "diagonal");
            assert_int_equal(atomic_load(&runs), 1);
        }
        tni_cached_op_release(op);
        tni_symbol_release(s);
        tni_array_release(x);
        tni_array_release(y[0]);
        tni_array_release(y[1]);
        test_context_close(c);
    }
}

/* Statistics that training writes: what was read of them before stays as it was. */
static void of_what_is_written(void **state)
{
    static const char *const names[] = {"x", "gamma", "beta", "mean", "var"};
    float got[2][24];

    (void)state;
    for (int off = 0; off < 2; off++) {
        tni_context *c = open_with(off ? "compile.passes_off=views" : "compile.passes_off=");
        tni_symbol *in[5], *part, *y;
        tni_array *a[5] = {input(c)}, *out[1] = {NULL};
        tni_cached_op *op = NULL;
        tni_compiled *e = NULL;

        for (int i = 0; i < 5; i++)
            in[i] = net_variable(c, names[i]);
        for (int i = 1; i < 5; i++)
            a[i] = test_vector(c, 6, (float[]){1, 2, 3, 4, 5, 6});
        part = net_op(c, "slice_axis", 1, &in[3], "axis=0", "begin=2", "end=3", NULL);
        y = net_take(c, "broadcast_add", part, net_op(c, "BatchNorm", 5, in, "fix_gamma=False", NULL), NULL);
        assert_ok(tni_cached_op_create(c, y, NULL, &op));
        test_record(false, true);
        assert_ok(tni_cached_op_call(op, 5, (tni_array *[]){a[3], a[0], a[1], a[2], a[4]}, 1, out));
        test_record(false, false);
        assert_ok(tni_array_read(out[0], got[off], sizeof got[off]));
        assert_ok(tni_cached_op_recent(op, &e));
        assert_int_equal(views_of(e->program), 1);
        tni_compiled_release(e);
        for (int i = 0; i < 5; i++) {
            tni_symbol_release(in[i]);
            tni_array_release(a[i]);
        }
        tni_symbol_release(y);
        tni_array_release(out[0]);
        tni_cached_op_release(op);
        test_context_close(c);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
}

/* A caller's result is never in memory that he sees elsewhere. */
static void eager_copies(void **state)
{
    static const char *const ops[][2] = {{"slice_axis", "axis=0 begin=0 end=4"}, {"transpose", ""}};
    tni_context *c = open_with("compile.passes_off=");

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            const step steps[STEPS] = {{ops[i][0], ops[i][1], "0"}};
            tni_symbol *s = net_of(c, steps);
            tni_array *x = input(c), *before = NULL, *y = NULL;

            net_call(c, s, hybrid, &x, &y);
            net_call(c, s, hybrid, &x, &before);
            assert_ok(tni_array_wait(y));
            assert_ok(tni_array_fill(x, 7));
            net_same(y, before, ops[i][0]);
            tni_symbol_release(s);
            tni_array_release(x);
            tni_array_release(y);
            tni_array_release(before);
        }
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nets_with_and_without),
                                       cmocka_unit_test(views_of_a_plugin),
                                       cmocka_unit_test(of_what_is_written), cmocka_unit_test(eager_copies)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
