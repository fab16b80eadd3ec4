/* The operator test_choose, and a small net around it. */
#include "choose.h"
#include "support/static_plugin.h"

#include <sched.h>
#include <string.h>

/* ---- the rows that begin with a positive number -------------------------------------------------------- */

static tn_status choose_shape(tn_infer *i)
{
    tn_shape *out = i->out_shape[0];

    if (i->in_shape[0]->ndim == 2 && out->ndim < 0) {
        out->ndim = 2;
        out->dim[0] = -1;
        out->dim[1] = i->in_shape[0]->dim[1];
    }
    return TN_OK;
}

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status breaking_gradient(tn_grad *g)
{
    return g->ops->set(g, 0, tn_grad_of(g, 0));
}

static const char *const names_in[] = {"data", NULL}, *const names_out[] = {"output", NULL};
#define OP(name_, shape_, gradient_)                                                                         \
    TEST_OP(.name = (name_), .inputs = names_in, .outputs = names_out, .shape = (shape_),                    \
            .gradient = (gradient_))
static const tn_op choose = OP("test_choose", choose_shape, NULL);
static const tn_op breaking = OP("test_breaking", same_shape, breaking_gradient);
TEST_OPS(op_table, "choosers", &choose, &breaking);

atomic_int choose_closed;      /* test_choose waits while this is 1; a run makes 2 to 1, goes on */
atomic_int choose_breaks_left; /* runs of test_breaking, or of test_choose, that fail */
atomic_bool choose_breaks;

static tn_status choose_prepare(void *p, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)p;
    (void)node;
    (void)err;
    plan->flags = TN_PLAN_RESIZES;
    return TN_OK;
}

static tn_status choose_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    const int64_t rows = x->in[0]->shape[0], columns = x->in[0]->shape[1];
    int64_t shape[2] = {0, columns};
    const tn_tensor *out = NULL;
    tn_status st;
    float *to;

    (void)plan;
    for (int two = 2; !atomic_compare_exchange_strong(&choose_closed, &two, 1) && two; two = 2)
        (void)sched_yield();
    if (atomic_load(&choose_breaks) && atomic_fetch_sub(&choose_breaks_left, 1) > 0)
        return tn_fail(err, TN_E_IO, "it broke");
    for (int64_t r = 0; r < rows; r++)
        shape[0] += in[r * columns] > 0;
    if ((st = x->ops->resize(x->call, 0, 2, shape, &out, err)))
        return st;
    to = out->data;
    for (int64_t r = 0; r < rows; r++)
        if (in[r * columns] > 0) {
            memcpy(to, in + r * columns, (size_t)columns * sizeof *to);
            to += columns;
        }
    return TN_OK;
}

static tn_status breaking_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    if (!atomic_load(&choose_breaks) && atomic_fetch_sub(&choose_breaks_left, 1) > 0)
        return tn_fail(err, TN_E_IO, "it broke");
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_, prepare_, run_)                                                                          \
    TEST_KERNEL(op_, "cpu", .name = (op_), .types = types, .prepare = (prepare_), .run = (run_))
static const tn_kernel choose_kernel = KERNEL("test_choose", choose_prepare, choose_run);
static const tn_kernel breaking_kernel = KERNEL("test_breaking", NULL, breaking_run);
TEST_KERNELS(kernel_table, "cpu", &choose_kernel, &breaking_kernel);
TEST_PLUGIN(plugin, "choosers", &op_table.head, &kernel_table.head);

/* ---- nets ---------------------------------------------------------------------------------------------- */

const float choose_x[ROWS * COLUMNS] = {1, 2, -3, -1, 5, 6, 0.5f, -0.25f, 2, -7, 1, 1, 3, 0, 0.125f};

tni_context *choose_open(const char *engine)
{
    const char *const settings[] = {engine, NULL};
    tni_context *c = test_context(settings);

    atomic_store(&choose_closed, 0);
    atomic_store(&choose_breaks_left, 0);
    atomic_store(&choose_breaks, false);
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    return c;
}

/* `twice`: the rows are chosen once more behind the layer, so their number is known later still. */
static tni_symbol *net_make(tni_context *c, bool twice, tni_symbol *behind[2])
{
    tni_symbol *x = net_variable(c, "x"), *t = net_op(c, "tanh", 1, &x, NULL), *r;
    tni_symbol *p = net_op(c, "test_choose", 1, &t, NULL), *w = net_variable(c, "w");
    tni_symbol *b = net_variable(c, "b"), *f, *n, *parts[HEADS], *group = NULL, *loss;

    f = net_op(c, "FullyConnected", 3, (tni_symbol *[]){p, w, b}, "num_hidden=2", NULL);
    if (twice)
        f = net_take(c, "test_choose", f, NULL, NULL);
    n = net_op(c, "BatchNorm", 1, &f, "fix_gamma=False", NULL);
    r = net_op(c, "test_breaking", 1, &n, NULL);
    loss = net_op(c, "sum", 1, &r, NULL);
    parts[0] = t;
    parts[1] = p;
    parts[2] = r;
    parts[3] = loss;
    assert_ok(tni_symbol_group(HEADS, parts, &group));
    behind[0] = f;
    behind[1] = n;
    for (int i = 0; i < HEADS; i++)
        tni_symbol_release(parts[i]);
    tni_symbol_release(x);
    tni_symbol_release(w);
    tni_symbol_release(b);
    return group;
}

void small_open(small *n, tni_context *c, bool twice)
{
    static const float w[] = {1, 0.5f, -2, -0.75f, 0.125f, 1.5f}, b[] = {0.25f, -0.5f}, gamma[] = {1.5f, 2},
                       beta[] = {0.5f, -1}, mean[] = {0.1f, 0.2f}, variance[] = {1.5f, 0.5f};
    static const float *const vectors[] = {b, gamma, beta, mean, variance};
    tni_symbol *behind[2];

    *n = (small){.c = c};
    n->s = net_make(c, twice, behind);
    tni_symbol_release(behind[0]);
    tni_symbol_release(behind[1]);
    n->in_count = net_inputs(n->s);
    assert_int_equal(n->in_count, 7);
    n->in[0] = test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x);
    n->in[1] = test_array(c, 2, (int64_t[]){2, COLUMNS}, w);
    for (int i = 0; i < 5; i++)
        n->in[2 + i] = test_vector(c, 2, vectors[i]);
    assert_ok(tni_cached_op_create(c, n->s, NULL, &n->op));
}

void small_close(small *n)
{
    for (uint32_t i = 0; i < n->in_count; i++)
        tni_array_release(n->in[i]);
    tni_cached_op_release(n->op);
    tni_symbol_release(n->s);
}

void choose_release(tni_array **list, int count)
{
    for (int i = 0; i < count; i++) {
        tni_array_release(list[i]);
        list[i] = NULL;
    }
}

void small_call(small *n, tni_array **out)
{
    assert_ok(tni_cached_op_call(n->op, n->in_count, n->in, HEADS, out));
}
