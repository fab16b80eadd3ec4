/*
 * Operators called with what nobody would hand over, those among them that only gradients are made of: shapes
 * and attributes that inference takes must be safe for every kernel. Both are drawn; one shape of a fitting
 * set is changed, and what is still taken is run on tensors that end where their elements end. Under the
 * address sanitizer an access beyond them ends the program; TENON_SEED replays another set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/op_case.h"
#include "support/op_run.h"
#include "support/runs.h"

#define RUNS 120 /* of each operator; some need many draws for one that fits. The campaign makes more */
#define RUNS_MIN 30
#define DRAWS_MAX 60000
#define ELEMENTS_MAX 600 /* of one tensor */
#define TEXTS_MAX 16
#define HUGE_RUNS 60
#define HUGE_SECONDS 30 /* of processor time for one run: none of them has anything to do */

static uint64_t seed;
static bool huge;      /* shapes without elements whose other dimensions have no bounds */
static uint32_t items; /* of every tuple of the call, mostly; shapes have two more dimensions, often */

static uint32_t draw(uint32_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % limit;
}

/* ---- starts ------------------------------------------------------------------------------------------- */

/* Operators of which inference refuses nearly all that is drawn: attributes and inputs of a call that it
 * takes, which every other draw starts from. */
typedef struct start {
    const char *op, *attrs;
    uint32_t open; /* bit i: the data type of input i is left for inference to say */
    tn_shape in[6];
} start;

#define SHAPE(...)                                                                                           \
    {                                                                                                        \
        (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), 0,                                    \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
static const start starts[] = {
    {"_backward_ROIPooling",
     "pooled_size=(2,3) spatial_scale=0.5",
     8,
     {SHAPE(3, 2, 2, 3), SHAPE(2, 2, 4, 5), SHAPE(3, 5), SHAPE(3, 2, 2, 3)}},
    {"_contrib_ROIAlign", "pooled_size=(2,3) spatial_scale=0.5", 0, {SHAPE(2, 2, 4, 5), SHAPE(3, 5)}},
    {"_backward__contrib_ROIAlign",
     "pooled_size=(2,3) spatial_scale=0.5",
     0,
     {SHAPE(3, 2, 2, 3), SHAPE(2, 2, 4, 5), SHAPE(3, 5)}},
    {"_contrib_PSROIPooling",
     "spatial_scale=0.5 output_dim=2 pooled_size=2",
     0,
     {SHAPE(2, 8, 4, 5), SHAPE(3, 5)}},
    {"_backward__contrib_PSROIPooling",
     "spatial_scale=0.5 output_dim=2 pooled_size=2",
     0,
     {SHAPE(3, 2, 2, 2), SHAPE(2, 8, 4, 5), SHAPE(3, 5)}},
    {"_backward__contrib_box_nms", "", 2, {SHAPE(2, 5, 6), SHAPE(2, 5, 1)}},
    {"_contrib_box_encode",
     "",
     0,
     {SHAPE(2, 3), SHAPE(2, 3), SHAPE(2, 3, 4), SHAPE(2, 4, 4), SHAPE(4), SHAPE(4)}},
    {"_contrib_Proposal",
     "scales=(1,2) ratios=(1,) feature_stride=4 rpn_post_nms_top_n=4",
     0,
     {SHAPE(1, 4, 2, 3), SHAPE(1, 8, 2, 3), SHAPE(1, 3)}},
    {"_contrib_MultiProposal",
     "scales=(1,2) ratios=(1,) feature_stride=4 rpn_post_nms_top_n=4",
     0,
     {SHAPE(2, 4, 2, 3), SHAPE(2, 8, 2, 3), SHAPE(2, 3)}},
    {"_contrib_DeformableConvolution",
     "kernel=(2,2) num_filter=2 no_bias=True",
     0,
     {SHAPE(2, 2, 3, 4), SHAPE(2, 8, 2, 3), SHAPE(2, 2, 2, 2)}},
    {"_contrib_ModulatedDeformableConvolution",
     "kernel=(2,2) num_filter=2 no_bias=True",
     0,
     {SHAPE(2, 2, 3, 4), SHAPE(2, 8, 2, 3), SHAPE(2, 4, 2, 3), SHAPE(2, 2, 2, 2)}},
    {"_backward__contrib_DeformableConvolution",
     "kernel=(2,2) num_filter=2 no_bias=True",
     0,
     {SHAPE(2, 2, 2, 3), SHAPE(2, 2, 3, 4), SHAPE(2, 8, 2, 3), SHAPE(2, 2, 2, 2)}},
    {"_backward__contrib_ModulatedDeformableConvolution",
     "kernel=(2,2) num_filter=2 no_bias=True",
     0,
     {SHAPE(2, 2, 2, 3), SHAPE(2, 2, 3, 4), SHAPE(2, 8, 2, 3), SHAPE(2, 4, 2, 3), SHAPE(2, 2, 2, 2)}},
    {"_backward_col2im", "output_size=(4,3) kernel=(2,2)", 0, {SHAPE(2, 2, 4, 3), SHAPE(2, 8, 6)}},
    {"_contrib_interleaved_matmul_encdec_valatt", "heads=2", 0, {SHAPE(3, 2, 8), SHAPE(4, 4, 3)}},
    {"_linalg_maketrian", "", 0, {SHAPE(2, 6)}},
    {"_npi_solve", "", 0, {SHAPE(2, 3, 3), SHAPE(2, 3, 2)}},
    {"_backward__npi_solve", "", 0, {SHAPE(2, 3, 2), SHAPE(2, 3, 3), SHAPE(2, 3, 2), SHAPE(2, 3, 2)}},
    {"_npi_tensorinv", "ind=1", 0, {SHAPE(4, 2, 2)}},
    {"_backward__npi_tensorinv", "ind=1", 0, {SHAPE(2, 2, 4), SHAPE(4, 2, 2), SHAPE(2, 2, 4)}},
    {"_npi_tensorsolve", "a_axes=(0,)", 0, {SHAPE(4, 2, 2), SHAPE(2, 2)}},
    {"_backward__npi_tensorsolve", "a_axes=(0,)", 0, {SHAPE(4), SHAPE(4, 2, 2), SHAPE(2, 2), SHAPE(4)}},
    {"_image_adjust_lighting", "alpha=(0.1,0.2,0.3)", 0, {SHAPE(4, 5, 3)}},
    {"_backward_Deconvolution",
     "kernel=(2,2) num_filter=3",
     0,
     {SHAPE(2, 3, 4, 5), SHAPE(2, 2, 3, 4), SHAPE(2, 3, 2, 2)}},
    {"RNN",
     "state_size=2 num_layers=2 mode=lstm bidirectional=1 p=0.5 projection_size=1 use_sequence_length=1",
     0,
     {SHAPE(3, 2, 2), SHAPE(168), SHAPE(4, 2, 1), SHAPE(4, 2, 2), SHAPE(2)}},
    {"_backward_RNN",
     "state_size=2 num_layers=2 mode=gru use_sequence_length=1",
     0,
     {SHAPE(3, 2, 2), SHAPE(3, 2, 2), SHAPE(72), SHAPE(2, 2, 2), SHAPE(2), SHAPE(0, 3, 2, 2)}},
    {"CTCLoss",
     "use_data_lengths=1 use_label_lengths=1",
     0,
     {SHAPE(4, 3, 3), SHAPE(3, 2), SHAPE(3), SHAPE(3)}},
};

/* NULL: none, or not this time. */
static const start *start_draw(const char *op)
{
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strcmp(starts[i].op, op))
            return draw(2) ? &starts[i] : NULL;
    return NULL;
}

/* ---- attributes --------------------------------------------------------------------------------------- */

static const char *number_draw(const tn_attr_def *d)
{
    static const char *const numbers[] = {"0",  "1",          "2",           "1",
                                          "2",  "3",          "-1",          "-2",
                                          "9",  "-9",         "2147483647",  "-2147483648",
                                          "4",  "2147483648", "-2147483649", "9223372036854775807",
                                          "16", "-3",         "5",           "-9223372036854775808"};
    const uint32_t usual = d->min <= d->max && d->min >= 0 ? 6 : 8;

    return numbers[draw(draw(6) ? usual : sizeof numbers / sizeof *numbers)];
}

static void attr_draw(const tn_attr_def *d, char *text, size_t size)
{
    const bool may_be_none = d->type == TN_ATTR_T_OPT_INT || d->type == TN_ATTR_T_OPT_TUPLE;

    if (d->type == TN_ATTR_T_CHOICE) {
        const char *at = d->choices;

        for (uint32_t skip = draw(6); skip > 0 && strchr(at, '|'); skip--)
            at = strchr(at, '|') + 1;
        (void)snprintf(text, size, "%.*s", (int)strcspn(at, "|"), at);
    } else if (may_be_none && draw(4) == 0) {
        (void)snprintf(text, size, "None");
    } else if (d->type == TN_ATTR_T_TUPLE || d->type == TN_ATTR_T_OPT_TUPLE) {
        size_t used = (size_t)snprintf(text, size, "(");

        for (uint32_t n = draw(6) ? items : draw(4); n > 0; n--)
            used += (size_t)snprintf(text + used, size - used, "%s,",
                                     d->type == TN_ATTR_T_OPT_TUPLE && !draw(4) ? "None" : number_draw(d));
        (void)snprintf(text + used, size - used, ")");
    } else if (d->type == TN_ATTR_T_BOOL || d->type == TN_ATTR_T_OPT_BOOL) {
        (void)snprintf(text, size, "%u", draw(2));
    } else if (d->type == TN_ATTR_T_TEXT && !strcmp(d->name, "program")) {
        static const char *const programs[] = {"square[](i0):=;broadcast_add[](t0,i1):=>t1,t0",
                                               "_plus_scalar[r2,1](i0):=;elemwise_mul[](t0,i0):=>t1"};

        (void)snprintf(text, size, "%s", programs[draw(2)]);
    } else if (d->type == TN_ATTR_T_TEXT && !strcmp(d->name, "subscripts")) {
        static const char *const subscripts[] = {"...,...",
                                                 "i...,...i->...",
                                                 "...,...,...",
                                                 "a...,b...,c...->abc",
                                                 "ij,jk->ik",
                                                 "ij,ik",
                                                 "...,...i,...,...->...i",
                                                 "i...i,i...j",
                                                 "i,...->"};

        (void)snprintf(text, size, "%s", subscripts[draw(sizeof subscripts / sizeof *subscripts)]);
    } else if (d->type == TN_ATTR_T_DTYPE) {
        (void)snprintf(text, size, "float32");
    } else {
        (void)snprintf(text, size, "%s", d->type == TN_ATTR_T_FLOAT ? "0.5" : number_draw(d));
    }
}

/* What is required is given, the rest now and then. */
static tn_status attrs_draw(const tni_opdef *def, tni_attrs **out)
{
    static char texts[TEXTS_MAX][128];
    const char *names[TEXTS_MAX], *values[TEXTS_MAX];
    size_t count = 0;

    items = draw(4);
    for (uint32_t i = 0; i < def->attr_count && count < TEXTS_MAX; i++) {
        const tn_attr_def *d = &def->op->attrs[i];

        if (d->flags & TN_ATTR_F_COUNT || (d->default_text && draw(2)))
            continue;
        attr_draw(d, texts[count], sizeof texts[count]);
        names[count] = d->name;
        values[count] = texts[count];
        count++;
    }
    return tni_attrs_parse(def, count, names, values, out);
}

/* ---- shapes -------------------------------------------------------------------------------------------- */

static void shape_draw(tn_shape *s)
{
    s->ndim = (int32_t)(draw(2) ? items + 2 : draw(8) ? 1 + draw(4) : 0);
    for (int32_t k = 0; k < s->ndim; k++)
        s->dim[k] = draw(12) ? 1 + draw(5) : 0;
    if (huge && s->ndim > 1 && draw(8)) {
        s->dim[draw((uint32_t)s->ndim)] = (int64_t)1 << (40 + draw(15));
        s->dim[draw((uint32_t)s->ndim)] = 0;
    }
}

static void shape_change(tn_shape *s)
{
    const int32_t at = s->ndim > 0 ? (int32_t)draw((uint32_t)s->ndim) : 0;
    const uint32_t kind = draw(6);

    if (kind == 0 && s->ndim < 5)
        s->dim[s->ndim++] = 1 + draw(3);
    else if (kind == 1 && s->ndim > 0)
        s->ndim--;
    else if (kind == 2)
        shape_draw(s);
    else if (s->ndim > 0)
        s->dim[at] = draw(2) ? s->dim[at] + 1 + draw(9) : draw(6);
}

static bool small(const tn_shape *s)
{
    int64_t elements = 1;

    for (int32_t k = 0; k < s->ndim; k++)
        if (s->dim[k] == 0)
            return true;
    for (int32_t k = 0; k < s->ndim; k++)
        if (s->dim[k] > ELEMENTS_MAX || (elements *= s->dim[k]) > ELEMENTS_MAX)
            return false;
    return true;
}

static bool small_and_known(const tn_shape *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!tn_shape_known(&s[i]) || !small(&s[i]))
            return false;
    return true;
}

typedef struct operands {
    tni_args args;
    tn_shape in[OP_ARGS_MAX], out[OP_ARGS_MAX];
    int32_t in_dtype[OP_ARGS_MAX], out_dtype[OP_ARGS_MAX];
    uint32_t flags;
} operands;

static tn_status infer(const tni_opdef *def, const tni_attrs *attrs, operands *o)
{
    for (uint32_t i = 0; i < OP_ARGS_MAX; i++) {
        o->out[i].ndim = -1;
        o->out_dtype[i] = -1;
    }
    return op_infer(def, attrs, &o->args, o->flags, o->in, o->out, o->in_dtype, o->out_dtype);
}

/* One data type for all inputs, mostly; some are left for inference to say. */
static void dtypes_draw(const start *from, operands *o)
{
    const int32_t common = draw(3) ? TN_F32 : (int32_t)draw(TN_I4);

    for (uint32_t i = 0; i < OP_ARGS_MAX; i++)
        o->in_dtype[i] = i < o->args.in_count && draw(6) ? common : -1;
    if (o->args.in_count && draw(6) == 0)
        o->in_dtype[draw(o->args.in_count)] = (int32_t)draw(TN_I4);
    for (uint32_t i = 0; i < o->args.in_count && from; i++)
        if (from->open >> i & 1u)
            o->in_dtype[i] = -1;
}

static bool dtypes_known(const operands *o)
{
    for (uint32_t i = 0; i < o->args.in_count; i++)
        if (o->in_dtype[i] < 0)
            return false;
    for (uint32_t i = 0; i < o->args.out_count; i++)
        if (o->out_dtype[i] < 0)
            return false;
    return true;
}

/* Small ones, and those that a kernel gives their size; of huge runs the first one alone is looked at. */
static bool outputs_fit(const operands *o)
{
    for (uint32_t i = 0; i < o->args.out_count; i++)
        if (o->out[i].ndim < 0 ||
            (tn_shape_known(&o->out[i]) ? (i == 0 || !huge) && !small(&o->out[i]) : o->args.in_count == 0))
            return false;
    return true;
}

/* A set that fits, as far as inference completes one from a part; one of its shapes changed, mostly. */
static void operands_draw(const tni_opdef *def, const tni_attrs *attrs, const start *from, operands *o)
{
    const uint32_t count = o->args.in_count, given = count ? draw(count) : 0, also = count ? draw(count) : 0;
    tn_shape first;

    shape_draw(&first);
    for (uint32_t i = 0; i < count && from; i++)
        o->in[i] = from->in[i];
    for (uint32_t i = 0; i < count && !from; i++) {
        o->in[i].ndim = -1;
        if (i == given || i == also)
            o->in[i] = first;
        if (i == also && draw(2))
            shape_draw(&o->in[i]);
    }
    (void)infer(def, attrs, o);
    for (uint32_t i = 0; i < count; i++)
        if (!from && !small_and_known(&o->in[i], 1)) {
            o->in[i] = first;
            if (draw(2))
                shape_draw(&o->in[i]);
        }
    if (count && draw(4))
        shape_change(&o->in[draw(count)]);
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

static bool all_empty(const operands *o)
{
    for (uint32_t i = 0; i < o->args.out_count; i++)
        if (tn_shape_count(&o->out[i]))
            return false;
    return true;
}

/* Every element was written: none is what new tensors are filled with,
 * which a byte or two may be by chance. */
static void outputs_check(const op_node *n)
{
    uint8_t fill[8];

    memset(fill, 0x5a, sizeof fill);
    for (uint32_t i = 0; i < n->args.out_count; i++) {
        const size_t size = tn_dtype_bytes(n->out[i].t.dtype);

        for (int64_t k = 0; n->out[i].t.data && size >= 4 && k < tn_tensor_count(&n->out[i].t); k++)
            if (!memcmp((const char *)n->out[i].t.data + (size_t)k * size, fill, size))
                fail_msg("%s: %s of %s: element %lld of output %u was not written", n->def->op->name,
                         n->kernel.kernel->name, n->kernel.plugin_name, (long long)k, i);
    }
}

/* Outputs behind the first that would take all memory are not asked for, and of those of huge runs some
 * others; of several gradients any but one. */
static uint64_t unwanted_draw(const tni_opdef *def, const operands *o)
{
    const bool gradients = strncmp(def->op->name, "_backward_", 10) == 0;
    const uint64_t all = UINT64_MAX >> (64 - (o->args.out_count ? o->args.out_count : 1));
    uint64_t mask = 0;

    for (uint32_t i = 1; huge && i < o->args.out_count; i++)
        if (!small(&o->out[i]) || draw(3) == 0)
            mask |= (uint64_t)1 << i;
    for (uint32_t i = 0; !huge && gradients && i < o->args.out_count; i++)
        if (draw(4) == 0)
            mask |= (uint64_t)1 << i;
    return mask == all ? 0 : mask;
}

static const char *running; /* operator */

static void took_too_long(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, running, strlen(running));
    (void)!write(STDERR_FILENO, ": a kernel runs, though there is nothing to do\n", 47);
    _exit(1);
}

static void time_limit(const tni_opdef *def, bool on)
{
    const struct itimerval time = {.it_value = {.tv_sec = on ? HUGE_SECONDS : 0}};

    running = def->op->name;
    (void)signal(SIGPROF, took_too_long);
    (void)setitimer(ITIMER_PROF, &time, NULL);
}

static void kernel_run(const tni_opdef *def, tni_attrs *attrs, const operands *o, const op_kernel *kernel)
{
    const op_form form = {.threads = 1 + draw(2),
                          .node_flags = o->flags & TN_INFER_TRAIN ? TN_NODE_TRAIN : 0,
                          .mode = TN_MODE_WRITE,
                          .unwanted = unwanted_draw(def, o)};
    op_tensor in[OP_ARGS_MAX], *pointers[OP_ARGS_MAX];
    op_node n = {.def = def, .attrs = attrs, .args = o->args, .kernel = *kernel};

    if (!(kernel->kernel->flags & TN_KERNEL_EMPTY_OK) && all_empty(o)) /* as the core has it */
        return;
    (void)tni_attrs_retain(attrs);
    for (uint32_t i = 0; i < o->args.in_count; i++) {
        op_tensor_create(&in[i], o->in_dtype[i], o->in[i].ndim, o->in[i].dim, false);
        for (int64_t k = 0; k < tn_tensor_count(&in[i].t); k++)
            op_tensor_set(&in[i], k, draw(9) ? (double)draw(6) : (double)draw(2000) - 1000);
        in[i].t.bytes += draw(2) * 64; /* a view has those of the memory that it lies in */
        pointers[i] = &in[i];
    }
    time_limit(def, huge);
    if (!op_node_run(&n, pointers, o->out, o->out_dtype, &form, NULL)) /* a refusal is as good */
        outputs_check(&n);
    time_limit(def, false);
    op_node_free(&n);
    for (uint32_t i = 0; i < o->args.in_count; i++)
        op_tensor_free(&in[i]);
}

/* One draw: -1 refused, 0 passed over, 1 run. */
static int draw_run(const tni_opdef *def)
{
    const start *from = start_draw(def->op->name);
    tni_attrs *attrs = NULL;
    op_kernel kernels[16];
    operands o = {.flags = draw(3) ? TN_INFER_NP_SHAPE : 0};
    size_t count = 0;
    int did = 0;

    if ((from ? op_attrs_split(def, from->attrs, &attrs) : attrs_draw(def, &attrs)) ||
        tni_op_args(def, attrs, (int64_t)(2 + draw(3)), &o.args) || o.args.in_count > OP_ARGS_MAX ||
        o.args.out_count > OP_ARGS_MAX) {
        tni_attrs_release(attrs);
        return 0;
    }
    o.flags |= draw(2) ? TN_INFER_TRAIN : 0;
    dtypes_draw(from, &o);
    operands_draw(def, attrs, from, &o);
    if (infer(def, attrs, &o)) {
        did = -1;
    } else if (small_and_known(o.in, o.args.in_count) && outputs_fit(&o) && dtypes_known(&o)) {
        count = op_kernels_find(def, &o.args, o.in_dtype, o.out_dtype, kernels, 16);
        for (size_t k = 0; k < count; k++)
            kernel_run(def, attrs, &o, &kernels[k]);
        did = count > 0;
    }
    tni_attrs_release(attrs);
    return did;
}

/* Whether a set of shapes can be wrong: one input, or a second one of which only the type is read, cannot. */
static bool may_refuse(const tn_op *op)
{
    return op->inputs[1] && strcmp(op->name, "_backward_cast") != 0;
}

/* Views have no kernels; operators that passes make have some where a plugin serves them. Tensors are
 * dense: those of sparse arrays alone are not called. */
static bool has_kernels(const tni_opdef *def)
{
    const bool any = op_kernels_any(def, false);

    return !(def->op->flags & TN_OP_VIEW) && def->op->exec == TN_EXEC_KERNEL &&
           (any ? op_kernels_any(def, true) : !(def->op->flags & TN_OP_INTERNAL));
}

/* Of builds that see no access beyond a tensor, one of three with each commit: they find crashes and endless
 * loops alone. */
static bool has_turn(size_t i)
{
#ifdef __SANITIZE_ADDRESS__
    (void)i;
    return true;
#else
    return test_full() || i % 3 == test_rotation(3);
#endif
}

/* All operators with or without TN_OP_BACKWARD. */
static void operators_run(uint32_t backward)
{
    const char *given = getenv("TENON_SEED"), *only = getenv("TENON_CASE");
    const uint32_t runs = huge ? HUGE_RUNS : (uint32_t)test_runs(RUNS);
    const uint32_t draws = huge ? DRAWS_MAX / 20 : DRAWS_MAX;
    uint32_t failures = 0;

    for (size_t i = 0; i < tni_opset_count(op_set()); i++) {
        const tni_opdef *def = tni_opset_at(op_set(), i);
        uint32_t ran = 0, refused = 0;

        if ((def->op->flags & TN_OP_BACKWARD) != backward || !has_kernels(def) ||
            (only ? strcmp(only, def->op->name) != 0 : !has_turn(i)))
            continue;
        seed = (given ? strtoull(given, NULL, 10) : 1) * 1000 + i;
        for (uint32_t k = 0; k < draws && ran < runs; k++) {
            const int did = draw_run(def);

            ran += did > 0;
            refused += did < 0;
        }
        if (huge)
            continue;
        if (ran < RUNS_MIN || (backward && may_refuse(def->op) && refused < RUNS_MIN)) {
            print_error("%s: %u runs and %u refusals: too few of one\n", def->op->name, ran, refused);
            failures++;
        }
    }
    assert_int_equal(failures, 0);
}

static void backward(void **state)
{
    (void)state;
    operators_run(TN_OP_BACKWARD);
}

static void forward(void **state)
{
    (void)state;
    operators_run(0);
}

/* Nothing to do, however many rows of nothing there are. */
static void nothing(void **state)
{
    (void)state;
    huge = true;
    operators_run(TN_OP_BACKWARD);
    operators_run(0);
    huge = false;
}

/* Shapes as inference may be handed them. */
static void counts(void **state)
{
    const int64_t big = INT64_C(1) << 45;
    const struct {
        tn_shape shape;
        int64_t count;
    } rows[] = {
        {{3, 0, {2, 3, 4}}, 24},
        {{0, 0, {0}}, 1},
        {{3, 0, {big, big, 0}}, 0},
        {{3, 0, {0, big, big}}, 0},
        {{2, 0, {big, big}}, INT64_MAX},
        {{3, 0, {big, big, big}}, INT64_MAX},
        {{2, 0, {INT64_MAX, 1}}, INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(tn_shape_count(&rows[i].shape), rows[i].count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(nothing),
                                       cmocka_unit_test(backward), cmocka_unit_test(forward)};

    return tn_op_main(tests);
}
