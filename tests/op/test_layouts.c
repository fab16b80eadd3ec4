/*
 * Kernels that ask for private layouts: what a node gives with its inputs and outputs in the layouts that its
 * plan names, brought there and back by the plugin's own `_reorder`, is what the plain kernels give on rows.
 * Memory is full of numbers that are none before every run. Fused layers are compared with the layer's plain
 * kernel and what follows it, done here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"
#include "support/op_case.h"
#include "support/op_run.h"

#define ARGS_MAX 8
#define TOLERANCE 3e-5
#define THREADS 2

typedef struct layout_case {
    const char *op, *attrs;
    const char *in[ARGS_MAX];
    const char *from;      /* attributes of a convolution: input 0 is offered as it makes its output */
    const char *layer;     /* of a fused operator; NULL: the operator itself */
    double (*act)(double); /* what follows the layer */
    bool with_sum, train;
} layout_case;

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double clipped(double x)
{
    return x < -0.25 ? -0.25 : x > 0.5 ? 0.5 : x;
}

static double leaky(double x)
{
    return x > 0 ? x : 0.1 * x;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softrelu(double x)
{
    return log1p(exp(x));
}

#define BLOCKS "f32[2,32,9,7] random"
#define ODD "f32[2,24,9,7] random"
#define STATS "f32[32] random", "f32[32] random", "f32[32] random", "f32[32] random:0.5:2"
#define KERNEL3 "kernel=(3,3) pad=(1,1) num_filter=32 "
#define FROM32 "kernel=(3,3) pad=(1,1) num_filter=32 no_bias=1"
#define FROM24 "kernel=(1,1) num_filter=24 no_bias=1"
#define WEIGHT3 "f32[32,32,3,3] random"

static const layout_case cases[] = {
    {"Convolution", KERNEL3, .in = {BLOCKS, WEIGHT3, "f32[32] random"}},
    {"Convolution", "kernel=(1,1) num_filter=64 no_bias=1", .in = {BLOCKS, "f32[64,32,1,1] random"}, FROM32},
    {"Convolution", "kernel=(7,7) stride=(2,2) pad=(3,3) num_filter=64 no_bias=1",
     .in = {"f32[1,3,33,31] random", "f32[64,3,7,7] random"}},
    {"Convolution", "kernel=(3,3) num_filter=20", .in = {ODD, "f32[20,24,3,3] random", "f32[20] random"},
     FROM24},
    {"Convolution", KERNEL3 "num_group=32 no_bias=1", .in = {BLOCKS, "f32[32,1,3,3] random"}, FROM32},
    {"Convolution", "kernel=(3,3) num_filter=24 num_group=24",
     .in = {ODD, "f32[24,1,3,3] random", "f32[24] random"}},
    {"Convolution", "kernel=(3,3) num_filter=64 num_group=2",
     .in = {BLOCKS, "f32[64,16,3,3] random", "f32[64] random"}},
    {"Convolution", "kernel=(5,) num_filter=16 no_bias=1",
     .in = {"f32[2,16,40] random", "f32[16,16,5] random"}},
    {"Convolution", "kernel=(2,3,2) num_filter=16 no_bias=1 dilate=(1,2,1)",
     .in = {"f32[1,16,6,9,7] random", "f32[16,16,2,3,2] random"}},
    {"Convolution", "kernel=(3,3) num_filter=16 no_bias=1 layout=NHWC",
     .in = {"f32[2,9,7,16] random", "f32[16,3,3,16] random"}},
    {"Convolution", KERNEL3 "no_bias=1", .in = {"f32[2,32,56,56] random", WEIGHT3}, FROM32},
    {"_backward_Convolution", KERNEL3, .in = {BLOCKS, BLOCKS, WEIGHT3}},
    {"Convolution", KERNEL3, .in = {"f32[1,32,17,15] random", WEIGHT3, "f32[32] random"},
     FROM32}, /* Winograd */
    {"_backward_Convolution", KERNEL3 "no_bias=1", .in = {BLOCKS, BLOCKS, WEIGHT3}, FROM32},
    {"_backward_Convolution", "kernel=(3,3) stride=(2,2) num_filter=20 no_bias=1",
     .in = {"f32[2,20,4,3] random", ODD, "f32[20,24,3,3] random"}},
    {"_backward_Convolution", KERNEL3 "num_group=32", .in = {BLOCKS, BLOCKS, "f32[32,1,3,3] random"}},
    /* With AVX2 the data's gradient reads dy as rows, by matrix products, and the weight's in blocks. */
    {"_backward_Convolution", "kernel=(7,7) stride=(2,2) pad=(3,3) num_filter=64 no_bias=1",
     .in = {"f32[2,64,16,15] random", "f32[2,3,32,30] random", "f32[64,3,7,7] random"}},
    /* From 256 output pixels on, the halves of an even batch are summed apart. */
    {"_backward_Convolution", KERNEL3, .in = {"f32[2,32,17,15] random", "f32[2,32,17,15] random", WEIGHT3},
     FROM32},
    {"_backward_Convolution", KERNEL3 "no_bias=1",
     .in = {"f32[4,32,9,15] random", "f32[4,32,9,15] random", WEIGHT3}},
    {"_backward_Convolution", "kernel=(1,1) num_filter=20",
     .in = {"f32[2,20,13,13] random", "f32[2,24,13,13] random", "f32[20,24,1,1] random"}},
    {"_backward_Convolution", KERNEL3 "num_group=32 no_bias=1",
     .in = {"f32[2,32,16,16] random", "f32[2,32,16,16] random", "f32[32,1,3,3] random"}},
    {"_backward_Convolution", "kernel=(3,3) num_filter=16 layout=NHWC",
     .in = {"f32[2,14,14,16] random", "f32[2,16,16,16] random", "f32[16,3,3,16] random"}},
    {"FullyConnected", "num_hidden=40", .in = {"f32[5,70] random", "f32[40,70] random", "f32[40] random"}},
    {"FullyConnected", "num_hidden=400 no_bias=1", .in = {"f32[1,700] random", "f32[400,700] random"}},
    {"_backward_FullyConnected", "num_hidden=40",
     .in = {"f32[5,40] random", "f32[5,70] random", "f32[40,70] random"}},
    {"Pooling", "kernel=(3,3) stride=(2,2) pad=(1,1)", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(2,2) stride=(2,2) pooling_convention=full", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(3,3) pool_type=avg pad=(1,1)", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(3,3) pool_type=avg pad=(1,1) count_include_pad=0", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(1,1) pool_type=avg global_pool=1", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(3,3)", .in = {ODD}, FROM24},
    {"Pooling", "kernel=(3,3) pool_type=avg", .in = {BLOCKS}},
    {"_backward_Pooling", "kernel=(3,3) stride=(2,2) pad=(1,1)", .in = {"f32[2,32,5,4] random", BLOCKS},
     FROM32},
    {"_backward_Pooling", "kernel=(3,3) pool_type=avg", .in = {"f32[2,32,7,5] random", BLOCKS}, FROM32},
    {"BatchNorm", "fix_gamma=0", .in = {BLOCKS, STATS}, FROM32},
    {"BatchNorm", "", .in = {BLOCKS, STATS}, FROM32, .train = true},
    {"BatchNorm", "fix_gamma=0 axis=-1", .in = {"f32[2,9,7,32] random", STATS}, .train = true},
    {"_backward_BatchNorm", "fix_gamma=0",
     .in = {BLOCKS, BLOCKS, "f32[32] random", "f32[32] random", "f32[32] random:0.5:2"}, .train = true},
    {"Concat", "num_args=2 dim=1", .in = {BLOCKS, "f32[2,16,9,7] random"}, FROM32},
    {"Concat", "num_args=3 dim=1", .in = {BLOCKS, BLOCKS, "f32[2,3,9,7] random"}, FROM32},
    {"Concat", "num_args=2 dim=1", .in = {ODD, ODD}, FROM24},
    {"Concat", "num_args=2 dim=0", .in = {BLOCKS, BLOCKS}, FROM32},
    {"_fused_conv", KERNEL3 "act_type=relu", .in = {BLOCKS, WEIGHT3, "f32[32] random"}, FROM32, "Convolution",
     relu},
    {"_fused_conv", KERNEL3 "act_type=relu", .in = {"f32[1,32,17,15] random", WEIGHT3, "f32[32] random"},
     FROM32, "Convolution", relu}, /* Winograd */
    {"_fused_conv", KERNEL3 "no_bias=1 with_sum=1",
     .in = {"f32[1,32,17,15] random", WEIGHT3, "f32[1,32,17,15] random"}, FROM32, "Convolution", NULL, true},
    {"_fused_conv", KERNEL3 "act_type=relu with_sum=1", .in = {BLOCKS, WEIGHT3, "f32[32] random", BLOCKS},
     FROM32, "Convolution", relu, true},
    {"_fused_conv", KERNEL3 "with_sum=1 no_bias=1", .in = {BLOCKS, WEIGHT3, BLOCKS}, NULL, "Convolution",
     NULL, true},
    {"_fused_conv", "kernel=(1,1) num_filter=24 no_bias=1 act_type=clip a_min=-0.25 a_max=0.5 with_sum=1",
     .in = {ODD, "f32[24,24,1,1] random", ODD}, FROM24, "Convolution", clipped, true},
    {"_fused_conv", "kernel=(3,3) pad=(1,1) num_filter=24 num_group=24 act_type=leaky slope=0.1",
     .in = {ODD, "f32[24,1,3,3] random", "f32[24] random"}, FROM24, "Convolution", leaky},
    {"_fused_conv", KERNEL3 "act_type=sigmoid", .in = {BLOCKS, WEIGHT3, "f32[32] random"}, NULL,
     "Convolution", sigmoid},
    {"_fused_conv", "kernel=(3,3) num_filter=16 no_bias=1 layout=NHWC act_type=tanh with_sum=1",
     .in = {"f32[2,9,7,16] random", "f32[16,3,3,16] random", "f32[2,7,5,16] random"}, NULL, "Convolution",
     tanh, true},
    {"_fused_dense", "num_hidden=40 act_type=relu with_sum=1",
     .in = {"f32[5,70] random", "f32[40,70] random", "f32[40] random", "f32[5,40] random"}, NULL,
     "FullyConnected", relu, true},
    {"_fused_dense", "num_hidden=40 act_type=softrelu no_bias=1",
     .in = {"f32[5,70] random", "f32[40,70] random"}, NULL, "FullyConnected", softrelu},
};

/* ---- one node ------------------------------------------------------------------------------------------ */

typedef struct job {
    const tni_opdef *def;
    tni_attrs *attrs;
    op_kernel kernel;
    uint32_t flags, in_count, out_count, own_outputs; /* out_count: with the mutated inputs */
    op_tensor in[ARGS_MAX], out[ARGS_MAX];
    const tn_prepare_ops *host; /* NULL: no services */
    tn_plan plan;
    int32_t inplace[ARGS_MAX];
    const tn_layout *in_layout[ARGS_MAX], *out_layout[ARGS_MAX];
} job;

static void must(tn_status st, const char *what)
{
    if (st)
        fail_msg("%s: %s %s", what, tni_error_message(), op_error()->message);
}

/* Those of a fused operator that its layer does not have are passed over. */
static void attrs_of(const tni_opdef *def, const char *text, bool some, tni_attrs **out)
{
    const char *names[32], *values[32];
    static char copy[512];
    size_t count = 0;

    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *at = strtok(copy, " "); at; at = strtok(NULL, " ")) {
        char *equal = strchr(at, '=');
        bool known = !some;

        *equal = '\0';
        for (uint32_t i = 0; i < def->attr_count; i++)
            known = known || !strcmp(def->op->attrs[i].name, at);
        names[count] = at;
        values[count] = equal + 1;
        count += known;
    }
    must(tni_attrs_parse(def, count, names, values, out), text);
}

static bool kernel_of(const char *op, const char *plugin, op_kernel *out)
{
    const int32_t dtypes[OP_ARGS_MAX] = {TN_F32}; /* all, as it is 0 */
    const tni_opdef *def = NULL;
    static const char *const first[] = {"arg0", NULL};
    op_kernel found[16];
    tni_args args = {0};
    size_t count;

    must(tni_opset_find(op_set(), op, &def), op);
    args.in_names = def->variadic ? first : def->op->inputs;
    while (args.in_names[args.in_count])
        args.in_count++;
    while (def->op->outputs[args.out_count])
        args.out_count++;
    count = op_kernels_find(def, &args, dtypes, dtypes, found, 16);
    for (size_t k = 0; k < count; k++)
        if (!strcmp(found[k].plugin_name, plugin)) {
            *out = found[k];
            return true;
        }
    return false;
}

/* After the struct was copied. */
static void settle(op_tensor *t)
{
    t->t.shape = t->shape;
    t->t.stride = t->stride;
}

/* Room for the layout, full of numbers that are none. */
static void room_of(const op_tensor *like, const tn_layout *layout, op_tensor *to)
{
    op_tensor_create(to, like->t.dtype, like->t.ndim, like->shape, false);
    if (layout) {
        free(to->block);
        to->t.bytes = layout->memory_bytes;
        assert_int_equal(posix_memalign(&to->block, 64, (size_t)to->t.bytes), 0);
        to->t.layout = layout;
        to->t.data = to->block;
    }
    memset(to->block, 0xff, (size_t)to->t.bytes);
}

static tn_status job_prepare(job *j, uint32_t threads)
{
    const tn_prepare_ops ops = {.struct_size = TN_END(tn_prepare_ops, stream)};
    const tn_tensor *in[ARGS_MAX], *out[ARGS_MAX];
    tn_tensor blind[2 * ARGS_MAX];
    uint8_t modes[ARGS_MAX];
    const tn_node n = {.struct_size = TN_END(tn_node, host),
                       .op_version = j->def->op->version,
                       .flags = (uint16_t)j->flags,
                       .op = j->def->op->name,
                       .attrs = j->attrs->values,
                       .attr_count = j->def->attr_count,
                       .in_count = j->in_count,
                       .out_count = j->out_count,
                       .threads = threads,
                       .in = in,
                       .out = out,
                       .modes = modes,
                       .host = j->host ? j->host : &ops};

    for (uint32_t i = 0; i < ARGS_MAX; i++) {
        blind[i] = j->in[i].t;
        blind[ARGS_MAX + i] = j->out[i].t;
        blind[i].data = blind[ARGS_MAX + i].data = NULL;
        in[i] = &blind[i];
        out[i] = &blind[ARGS_MAX + i];
        modes[i] = TN_MODE_WRITE;
        j->inplace[i] = -1;
        j->in_layout[i] = j->out_layout[i] = NULL;
    }
    j->plan = (tn_plan){.struct_size = TN_END(tn_plan, tuning),
                        .inplace = j->inplace,
                        .in_layout = j->in_layout,
                        .out_layout = j->out_layout};
    return j->kernel.kernel->prepare(j->kernel.plugin, &n, &j->plan, op_error());
}

static void job_run(job *j, uint32_t threads)
{
    const tn_tensor *in[ARGS_MAX], *out[ARGS_MAX];
    uint8_t modes[ARGS_MAX];
    tn_exec x = {.struct_size = TN_END(tn_exec, ops),
                 .threads = threads,
                 .in = in,
                 .out = out,
                 .modes = modes,
                 .attrs = j->attrs->values};
    void *work = NULL;

    for (uint32_t i = 0; i < ARGS_MAX; i++) {
        in[i] = &j->in[i].t;
        out[i] = &j->out[i].t;
        modes[i] = TN_MODE_WRITE;
    }
    assert_int_equal(posix_memalign(&work, 4096, (size_t)j->plan.workspace_bytes + 1), 0);
    memset(work, 0xff, (size_t)j->plan.workspace_bytes);
    x.workspace = work;
    must(j->kernel.kernel->run(&j->plan, &x, op_error()), j->def->op->name);
    free(work);
}

static void job_close(job *j)
{
    if (j->plan.tuning.release)
        j->plan.tuning.release(j->plan.tuning.data);
    if (j->kernel.kernel->release)
        j->kernel.kernel->release(&j->plan);
    tni_attrs_release(j->attrs);
}

/* `x` in another layout, or as rows; x is freed. */
static void relayout(const char *plugin, op_tensor *x, const tn_layout *to)
{
    job j = {.in_count = 1, .out_count = 1, .flags = TN_NODE_LAYOUTS};

    must(tni_opset_find(op_set(), "_reorder", &j.def), "_reorder");
    assert_true(kernel_of("_reorder", plugin, &j.kernel));
    attrs_of(j.def, "", false, &j.attrs);
    j.in[0] = *x;
    settle(&j.in[0]);
    room_of(x, to, &j.out[0]);
    must(job_prepare(&j, 1), "_reorder");
    job_run(&j, 1);
    job_close(&j);
    op_tensor_free(x);
    *x = j.out[0];
    settle(x);
}

static void shape_read(tn_shape *s, const op_tensor *t)
{
    s->ndim = t->t.ndim;
    memcpy(s->dim, t->shape, sizeof s->dim);
}

static bool layouts_equal(const tn_layout *a, const tn_layout *b)
{
    if (!a || !b)
        return a == b;
    return !strcmp(a->owner, b->owner) && a->byte_count == b->byte_count &&
           !memcmp(a->bytes, b->bytes, (size_t)a->byte_count);
}

/* ---- one case ------------------------------------------------------------------------------------------ */

/* Inputs from text, outputs of their shapes; mutated inputs are outputs, too. */
static void job_open(job *j, const layout_case *c, const char *op, const char *plugin)
{
    tn_shape in[OP_ARGS_MAX], out[OP_ARGS_MAX];
    int32_t in_dtype[OP_ARGS_MAX], out_dtype[OP_ARGS_MAX];
    tni_args args;

    memset(j, 0, sizeof *j);
    must(tni_opset_find(op_set(), op, &j->def), op);
    attrs_of(j->def, c->attrs, strcmp(op, c->op) != 0, &j->attrs);
    assert_true(kernel_of(op, plugin, &j->kernel));
    for (; j->in_count < ARGS_MAX && c->in[j->in_count]; j->in_count++)
        op_tensor_read(&j->in[j->in_count], c->in[j->in_count], -1, j->in_count + 1);
    must(tni_op_args(j->def, j->attrs, j->in_count, &args), op);
    for (uint32_t i = 0; i < OP_ARGS_MAX; i++) {
        in[i].ndim = out[i].ndim = -1;
        in_dtype[i] = out_dtype[i] = TN_F32;
        if (i < args.in_count)
            shape_read(&in[i], &j->in[i]);
    }
    must(op_infer(j->def, j->attrs, &args, c->train ? TN_INFER_TRAIN : 0, in, out, in_dtype, out_dtype), op);
    j->flags = c->train ? TN_NODE_TRAIN : 0;
    j->out_count = j->own_outputs = args.out_count;
    for (uint32_t i = 0; i < j->own_outputs; i++)
        op_tensor_create(&j->out[i], TN_F32, out[i].ndim, out[i].dim, false);
    for (uint32_t i = 0; i < j->in_count; i++)
        if (tn_op_mutates(j->def->op, j->in_count, i)) {
            j->out[j->out_count] = j->in[i];
            settle(&j->out[j->out_count++]);
        }
}

static void job_free(job *j)
{
    for (uint32_t i = 0; i < j->own_outputs; i++)
        op_tensor_free(&j->out[i]);
    for (uint32_t i = 0; i < ARGS_MAX; i++)
        op_tensor_free(&j->in[i]);
    job_close(j);
}

/* What the plain kernels say. */
static void expected_make(const layout_case *c, job *j)
{
    uint32_t given = 0;

    job_open(j, c, c->layer ? c->layer : c->op, "cpu");
    while (given < ARGS_MAX && c->in[given])
        given++;
    j->in_count = given - c->with_sum;
    must(job_prepare(j, 1), "plain");
    job_run(j, 1);
    for (int64_t k = 0; c->layer && k < tn_tensor_count(&j->out[0].t); k++) {
        const double y =
            op_tensor_get(&j->out[0], k) + (c->with_sum ? op_tensor_get(&j->in[given - 1], k) : 0);

        op_tensor_set(&j->out[0], k, c->act ? c->act(y) : y);
    }
}

/* The layout in which a convolution with these attributes makes its output of the shape of `x`. */
static const tn_layout *offered_make(const layout_case *c, const char *plugin, job *j)
{
    const int64_t filters = c->from == NULL ? 0 : strstr(c->from, "24") ? 24 : 32;
    const int64_t kernel = c->from && strstr(c->from, "(3,3)") ? 3 : 1;
    char weight[64];
    layout_case of = {.op = "Convolution", .attrs = c->from};

    memset(j, 0, sizeof *j);
    if (!c->from)
        return NULL;
    (void)snprintf(weight, sizeof weight, "f32[%lld,%lld,%lld,%lld] random", (long long)filters,
                   (long long)filters, (long long)kernel, (long long)kernel);
    of.in[0] = c->in[!strncmp(c->op, "_backward", 9) ? 1 : 0];
    of.in[1] = weight;
    job_open(j, &of, "Convolution", plugin);
    j->flags = TN_NODE_LAYOUTS;
    must(job_prepare(j, 1), "an offer");
    return j->out_layout[0];
}

static uint32_t asked; /* layouts, in all */

static void inputs_bring(job *j, const char *plugin)
{
    for (uint32_t i = 0; i < j->in_count; i++)
        asked += j->in_layout[i] != NULL;
    for (uint32_t i = 0; i < j->in_count; i++)
        if (!layouts_equal(j->in[i].t.layout, j->in_layout[i]))
            relayout(plugin, &j->in[i], j->in_layout[i]);
}

static uint32_t outputs_compare(job *j, const char *plugin, const job *expected, const char *what)
{
    uint32_t failures = 0;

    for (uint32_t i = 0; i < j->out_count; i++) {
        const char *differs;

        if (j->out[i].t.layout)
            relayout(plugin, &j->out[i], NULL);
        differs = op_tensor_differs(&j->out[i], &expected->out[i], TOLERANCE);
        if (differs) {
            print_error("%s, output %u: %s\n", what, i, differs);
            failures++;
        }
    }
    return failures;
}

static uint32_t declined; /* runs, in all */

/* Older processors have no fast code for some; then other kernels serve. Layers are always served. */
static bool may_decline(const char *op)
{
    return strstr(op, "Pooling") || strstr(op, "BatchNorm") || strstr(op, "Concat");
}

static uint32_t served_run(job *j, const char *plugin, uint32_t threads, const job *expected,
                           const char *what)
{
    inputs_bring(j, plugin);
    for (uint32_t i = 0; i < j->own_outputs; i++) {
        op_tensor old = j->out[i];

        room_of(&old, j->out_layout[i], &j->out[i]);
        op_tensor_free(&old);
    }
    job_run(j, threads);
    return outputs_compare(j, plugin, expected, what);
}

/* Planned for `planned` threads, run with `threads`; `flags` of the node beside TN_NODE_LAYOUTS. */
static uint32_t case_run(const layout_case *c, const char *plugin, uint32_t planned, uint32_t threads,
                         uint32_t flags)
{
    job expected, offers, j;
    const tn_layout *offered;
    char what[300];
    uint32_t failures = 0;
    tn_status st;

    (void)snprintf(what, sizeof what, "%s %s of %s, planned for %u threads, run on %u, flags %u", c->op,
                   c->attrs, plugin, planned, threads, flags);
    expected_make(c, &expected);
    job_open(&j, c, c->op, plugin);
    j.flags |= TN_NODE_LAYOUTS | flags;
    offered = offered_make(c, plugin, &offers);
    if (offered)
        relayout(plugin, &j.in[!strncmp(c->op, "_backward", 9) ? 1 : 0], offered);
    st = job_prepare(&j, planned);
    if (st == TN_E_UNSUPPORTED && may_decline(c->op)) {
        print_message("declined: %s: %s\n", what, op_error()->message);
        declined++;
    } else {
        must(st, what);
        failures = served_run(&j, plugin, threads, &expected, what);
    }
    job_free(&j);
    job_free(&expected);
    if (offers.def)
        job_free(&offers);
    return failures;
}

static void onednn_or_skip(void)
{
    op_kernel found;

    if (!kernel_of("_reorder", "cpu-onednn", &found)) {
        print_message("skipped: cpu-onednn was not built\n");
        skip();
    }
}

/* What of the plugin needs AVX-512: the kernels of Pooling, and those of convolutions called brgconv. */
static bool has_avx512(void)
{
    return tni_isa_present("x86-64-v4");
}

static bool case_fits(const layout_case *c)
{
    return has_avx512() || (strcmp(c->op, "Pooling") != 0 && strcmp(c->op, "_backward_Pooling") != 0);
}

static void layouts(void **state)
{
    static const char plugin[] = "cpu-onednn";
    uint32_t failures = 0, ran = 0;

    (void)state;
    onednn_or_skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!case_fits(&cases[i]))
            continue;
        ran++;
        failures += case_run(&cases[i], plugin, 1, 1, 0);
        failures += case_run(&cases[i], plugin, THREADS, THREADS, 0);
        failures += case_run(&cases[i], plugin, THREADS, 1, 0);
        failures += case_run(&cases[i], plugin, 1, 1, TN_NODE_CONSTANT_WEIGHT);
        failures += case_run(&cases[i], plugin, THREADS, 1, TN_NODE_CONSTANT_WEIGHT);
    }
    assert_int_equal(failures, 0);
    assert_true(declined || asked > 5 * ran); /* on the average one for each run */
    print_message("%u of %zu cases: the others need AVX-512\n", ran, sizeof cases / sizeof *cases);
}

/* A layout of somebody else is declined by _reorder, and layers ask for what they want in its place. */
static void foreign(void **state)
{
    static const uint64_t bytes = 7;
    static const tn_layout other = {sizeof other, 0, "acme", &bytes, sizeof bytes, 4 * 2 * 32 * 9 * 7};
    static const layout_case conv = {"Convolution", KERNEL3, .in = {BLOCKS, WEIGHT3, "f32[32] random"}};
    static const layout_case reorder = {"_reorder", "", .in = {BLOCKS}};
    job j;

    (void)state;
    onednn_or_skip();
    job_open(&j, &reorder, "_reorder", "cpu-onednn");
    j.flags |= TN_NODE_LAYOUTS;
    j.in[0].t.layout = &other;
    assert_int_equal(job_prepare(&j, 1), TN_E_UNSUPPORTED);
    j.in[0].t.layout = NULL;
    j.out[0].t.layout = &other;
    assert_int_equal(job_prepare(&j, 1), TN_E_UNSUPPORTED);
    job_free(&j);
    job_open(&j, &conv, "Convolution", "cpu-onednn");
    j.flags |= TN_NODE_LAYOUTS;
    j.in[0].t.layout = &other;
    must(job_prepare(&j, 1), "a foreign layout");
    assert_false(layouts_equal(j.in_layout[0], &other));
    job_free(&j);
}

/* ---- kernels that measure ------------------------------------------------------------------------------ */

#define SCRATCH_MAX 64
#define BLOB_WAY 1 /* byte of cpu-onednn's blob; behind it stands the library's version */

typedef struct measuring {
    void *blocks[SCRATCH_MAX];
    uint32_t count; /* of the blocks that were asked for */
    unsigned char blob[64];
    uint64_t bytes; /* 0: none was left */
} measuring;

static void *scratch_take(void *arg, uint64_t bytes)
{
    measuring *m = arg;
    void *block = NULL;

    assert_true(m->count < SCRATCH_MAX);
    assert_int_equal(posix_memalign(&block, 64, (size_t)bytes), 0);
    memset(block, 0xff, (size_t)bytes);
    return m->blocks[m->count++] = block;
}

/* One node, prepared with `tuned` (NULL: nothing was stored), for as long as it takes;
 * its result is checked. */
static uint32_t measured_run(const layout_case *c, uint32_t flags, const measuring *tuned, measuring *out)
{
    job expected, offers, j;
    const tn_layout *offered;
    const tn_prepare_ops host = {.struct_size = TN_END(tn_prepare_ops, tuned_bytes),
                                 .arg = out,
                                 .tuning_budget_ns = (uint64_t)1 << 50,
                                 .scratch = scratch_take,
                                 .tuned = tuned ? tuned->blob : NULL,
                                 .tuned_bytes = tuned ? tuned->bytes : 0};
    uint32_t failures;

    memset(out, 0, sizeof *out);
    expected_make(c, &expected);
    job_open(&j, c, c->op, "cpu-onednn");
    j.flags |= TN_NODE_LAYOUTS | flags;
    if ((offered = offered_make(c, "cpu-onednn", &offers)) != NULL)
        relayout("cpu-onednn", &j.in[0], offered);
    j.host = &host;
    must(job_prepare(&j, THREADS), c->attrs);
    j.host = NULL;
    for (uint32_t i = 0; i < out->count; i++)
        free(out->blocks[i]);
    out->bytes = j.plan.tuning.bytes;
    assert_true(out->bytes <= sizeof out->blob);
    if (out->bytes)
        memcpy(out->blob, j.plan.tuning.data, (size_t)out->bytes);
    failures = served_run(&j, "cpu-onednn", THREADS, &expected, c->attrs);
    job_free(&j);
    job_free(&expected);
    if (offers.def)
        job_free(&offers);
    return failures;
}

/* A stored way is obeyed without measuring, and whatever the blob says, results are right. */
static uint32_t ways_run(const layout_case *c, uint32_t flags)
{
    measuring first, stored, then;
    uint32_t failures = measured_run(c, flags, NULL, &first);

    assert_true(first.count > 0);
    assert_true(first.bytes > BLOB_WAY);
    failures += measured_run(c, flags, &first, &then);
    assert_int_equal(then.count, 0);
    assert_int_equal(then.bytes, 0);
    for (unsigned way = 0; way < 6; way++) {
        stored = first;
        stored.blob[BLOB_WAY] = (unsigned char)(way < 5 ? way : 255);
        failures += measured_run(c, flags, &stored, &then);
        assert_true(way < 4 || then.count > 0); /* there are four */
    }
    return failures;
}

/* A blob of another size, format or version of the library is as good as none. */
static uint32_t blobs_run(const layout_case *c)
{
    measuring first, stored, then;
    uint32_t failures = measured_run(c, 0, NULL, &first);

    stored = first;
    stored.bytes--;
    failures += measured_run(c, 0, &stored, &then);
    assert_true(then.count > 0);
    for (uint64_t i = 0; i < first.bytes; i++) {
        stored = first;
        stored.blob[i] ^= 0x80;
        failures += measured_run(c, 0, &stored, &then);
        assert_true(then.count > 0);
    }
    return failures;
}

static void measured(void **state)
{
    uint32_t failures;

    (void)state;
    onednn_or_skip();
    failures = blobs_run(&cases[0]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].op, "Convolution") || !strcmp(cases[i].op, "_fused_conv")) {
            failures += ways_run(&cases[i], 0);
            failures += ways_run(&cases[i], TN_NODE_CONSTANT_WEIGHT);
        }
    assert_int_equal(failures, 0);
}

/* Windows without a pixel of the data are declined where the library's code for them is wrong. */
static void missed(void **state)
{
    static const layout_case missing[] = {
        {"_fused_conv", "kernel=(1,1) pad=(2,0) num_filter=2 no_bias=1 act_type=relu with_sum=1",
         .in = {"f32[1,2,3,5] random", "f32[2,2,1,1] random", "f32[1,2,7,5] random"}},
        {"_fused_conv", "kernel=(2,2) dilate=(4,1) pad=(3,0) num_filter=2 no_bias=1 act_type=relu",
         .in = {"f32[1,2,2,5] random", "f32[2,2,2,2] random"}},
    };

    (void)state;
    onednn_or_skip();
    if (!has_avx512()) {
        print_message("skipped: oneDNN has no such code for processors without AVX-512\n");
        skip();
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        job j;

        job_open(&j, &missing[i], "_fused_conv", "cpu-onednn");
        assert_int_equal(job_prepare(&j, 1), TN_E_UNSUPPORTED);
        assert_string_equal(op_error()->message, "a window that misses the data");
        job_free(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts), cmocka_unit_test(foreign),
                                       cmocka_unit_test(measured), cmocka_unit_test(missed)};

    return tn_op_main(tests);
}
