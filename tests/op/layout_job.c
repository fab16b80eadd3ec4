/* Nodes in private layouts: see layout_job.h. */
#include <stdlib.h>
#include <string.h>

#include "op/layout_job.h"

/* ---- one node ------------------------------------------------------------------------------------------ */

void layout_must(tn_status st, const char *what)
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
    layout_must(tni_attrs_parse(def, count, names, values, out), text);
}

/* `from`: "plugin" or "plugin/kernel"; the kernel that comes after `skip` others. */
static bool kernel_from(const char *op, const char *from, uint32_t skip, op_kernel *out)
{
    const int32_t dtypes[OP_ARGS_MAX] = {TN_F32}; /* all, as it is 0 */
    const tni_opdef *def = NULL;
    static const char *const first[] = {"arg0", NULL};
    op_kernel found[16];
    tni_args args = {0};
    size_t count;

    layout_must(tni_opset_find(op_set(), op, &def), op);
    args.in_names = def->variadic ? first : def->op->inputs;
    while (args.in_names[args.in_count])
        args.in_count++;
    while (def->op->outputs[args.out_count])
        args.out_count++;
    count = op_kernels_find(def, &args, dtypes, dtypes, found, 16);
    for (size_t k = 0; k < count; k++) {
        char name[80];

        (void)snprintf(name, sizeof name, "%s/%s", found[k].plugin_name, found[k].kernel->name);
        if ((!strcmp(found[k].plugin_name, from) || !strcmp(name, from)) && !skip--) {
            *out = found[k];
            return true;
        }
    }
    return false;
}

bool layout_kernel_of(const char *op, const char *from, op_kernel *out)
{
    return kernel_from(op, from, 0, out);
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

tn_status layout_job_prepare(layout_job *j, uint32_t threads)
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

static void job_run(layout_job *j, uint32_t threads)
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
    layout_must(j->kernel.kernel->run(&j->plan, &x, op_error()), j->def->op->name);
    free(work);
}

static void job_close(layout_job *j)
{
    if (j->plan.tuning.release)
        j->plan.tuning.release(j->plan.tuning.data);
    if (j->kernel.kernel->release)
        j->kernel.kernel->release(&j->plan);
    tni_attrs_release(j->attrs);
}

/* `x` in another layout, or as rows; x is freed. */
void layout_bring(op_tensor *x, const tn_layout *to)
{
    layout_job j = {.in_count = 1, .out_count = 1, .flags = TN_NODE_LAYOUTS};
    tn_status st = TN_E_UNSUPPORTED;

    layout_must(tni_opset_find(op_set(), "_reorder", &j.def), "_reorder");
    attrs_of(j.def, "", false, &j.attrs);
    j.in[0] = *x;
    settle(&j.in[0]);
    room_of(x, to, &j.out[0]);
    for (uint32_t k = 0; st == TN_E_UNSUPPORTED; k++) {
        assert_true(kernel_from("_reorder", "cpu-onednn", k, &j.kernel));
        st = layout_job_prepare(&j, 1);
    }
    layout_must(st, "_reorder");
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

bool layouts_equal(const tn_layout *a, const tn_layout *b)
{
    if (!a || !b)
        return a == b;
    return !strcmp(a->owner, b->owner) && a->byte_count == b->byte_count &&
           !memcmp(a->bytes, b->bytes, (size_t)a->byte_count);
}

/* ---- one case ------------------------------------------------------------------------------------------ */

/* Inputs from text, outputs of their shapes; mutated inputs are outputs, too. */
void layout_job_open(layout_job *j, const layout_case *c, const char *op, const char *from)
{
    tn_shape in[OP_ARGS_MAX], out[OP_ARGS_MAX];
    int32_t in_dtype[OP_ARGS_MAX], out_dtype[OP_ARGS_MAX];
    tni_args args;

    memset(j, 0, sizeof *j);
    layout_must(tni_opset_find(op_set(), op, &j->def), op);
    attrs_of(j->def, c->attrs, strcmp(op, c->op) != 0, &j->attrs);
    assert_true(layout_kernel_of(op, from, &j->kernel));
    for (; j->in_count < ARGS_MAX && c->in[j->in_count]; j->in_count++)
        op_tensor_read(&j->in[j->in_count], c->in[j->in_count], -1, j->in_count + 1);
    layout_must(tni_op_args(j->def, j->attrs, j->in_count, &args), op);
    for (uint32_t i = 0; i < OP_ARGS_MAX; i++) {
        in[i].ndim = out[i].ndim = -1;
        in_dtype[i] = out_dtype[i] = TN_F32;
        if (i < args.in_count)
            shape_read(&in[i], &j->in[i]);
    }
    layout_must(
        op_infer(j->def, j->attrs, &args, c->train ? TN_INFER_TRAIN : 0, in, out, in_dtype, out_dtype), op);
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

void layout_job_free(layout_job *j)
{
    for (uint32_t i = 0; i < j->own_outputs; i++)
        op_tensor_free(&j->out[i]);
    for (uint32_t i = 0; i < ARGS_MAX; i++)
        op_tensor_free(&j->in[i]);
    job_close(j);
}

/* What the plain kernels say. */
void layout_expected(const layout_case *c, layout_job *j)
{
    uint32_t given = 0;

    layout_job_open(j, c, c->layer ? c->layer : c->op, "cpu");
    while (given < ARGS_MAX && c->in[given])
        given++;
    j->in_count = given - c->with_sum;
    layout_must(layout_job_prepare(j, 1), "plain");
    job_run(j, 1);
    for (int64_t k = 0; c->layer && k < tn_tensor_count(&j->out[0].t); k++) {
        const double y =
            op_tensor_get(&j->out[0], k) + (c->with_sum ? op_tensor_get(&j->in[given - 1], k) : 0);

        op_tensor_set(&j->out[0], k, c->act ? c->act(y) : y);
    }
}

/* The layout in which a convolution with these attributes makes its output of the shape of `x`. */
const tn_layout *layout_offered(const layout_case *c, layout_job *j)
{
    const char *number = c->from ? strstr(c->from, "num_filter=") : NULL;
    const int64_t filters = number ? strtol(number + strlen("num_filter="), NULL, 10) : 0;
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
    layout_job_open(j, &of, "Convolution", ONEDNN);
    j->flags = TN_NODE_LAYOUTS;
    layout_must(layout_job_prepare(j, 1), "an offer");
    return j->out_layout[0];
}

uint32_t layout_asked, layout_declined;

static void inputs_bring(layout_job *j)
{
    for (uint32_t i = 0; i < j->in_count; i++)
        layout_asked += j->in_layout[i] != NULL;
    for (uint32_t i = 0; i < j->in_count; i++)
        if (!layouts_equal(j->in[i].t.layout, j->in_layout[i]))
            layout_bring(&j->in[i], j->in_layout[i]);
}

static uint32_t outputs_compare(layout_job *j, const layout_job *expected, double tolerance, const char *what)
{
    uint32_t failures = 0;

    for (uint32_t i = 0; i < j->out_count; i++) {
        const char *differs;

        if (j->out[i].t.layout)
            layout_bring(&j->out[i], NULL);
        differs = op_tensor_differs(&j->out[i], &expected->out[i], tolerance);
        if (differs) {
            print_error("%s, output %u: %s\n", what, i, differs);
            failures++;
        }
    }
    return failures;
}

uint32_t layout_served_run(layout_job *j, uint32_t threads, const layout_job *expected, double tolerance,
                           const char *what)
{
    inputs_bring(j);
    for (uint32_t i = 0; i < j->own_outputs; i++) {
        op_tensor old = j->out[i];

        room_of(&old, j->out_layout[i], &j->out[i]);
        op_tensor_free(&old);
    }
    job_run(j, threads);
    return outputs_compare(j, expected, tolerance, what);
}

/* Older processors have no fast code for some; then other kernels serve. Layers are always served. */
static bool may_decline(const char *op)
{
    return strstr(op, "Pooling") || strstr(op, "BatchNorm") || strstr(op, "Concat");
}

uint32_t layout_kernel_run(const layout_case *c, const char *from, const layout_run *r,
                           const layout_job *expected, layout_job *out)
{
    layout_job offers, j;
    const tn_layout *offered;
    char what[300];
    uint32_t failures = 0;
    tn_status st;

    (void)snprintf(what, sizeof what, "%s %s by %s, planned for %u threads, run on %u, flags %u", c->op,
                   c->attrs, from, r->planned, r->threads, r->flags);
    layout_job_open(&j, c, c->op, from);
    j.flags |= TN_NODE_LAYOUTS | r->flags;
    offered = layout_offered(c, &offers);
    if (offered)
        layout_bring(&j.in[!strncmp(c->op, "_backward", 9) ? 1 : 0], offered);
    st = layout_job_prepare(&j, r->planned);
    if (st == TN_E_UNSUPPORTED && may_decline(c->op)) {
        print_message("declined: %s: %s\n", what, op_error()->message);
        layout_declined++;
    } else {
        layout_must(st, what);
        failures = layout_served_run(&j, r->threads, expected, r->tolerance, what);
    }
    if (out)
        *out = j;
    else
        layout_job_free(&j);
    if (offers.def)
        layout_job_free(&offers);
    return failures;
}
