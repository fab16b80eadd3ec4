/*
 * Channels last inside programs, on the emulated GPU with the double of cuDNN: a small residual net gives
 * what it gives with all tensors in rows, in training and inference, and few reorders stand in it; those it
 * has move any shape there and back. The program is its own child, which has the double of the driver.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/must.h"
#include "support/symbols.h"
#include "table.h"
#include "tenon/plugin/op.h"
#include "tenon/tenon.h"
#include "tenon/view.h"

#define ARGS_MAX 64
#define ELEMENTS_MAX 160000

/* ---- nets: in the child ------------------------------------------------------------------------------ */

static tn_symbol *again(tn_symbol *s)
{
    tn_symbol *out = NULL;

    MUST(tn_symbol_group(1, &s, &out));
    return out;
}

#define CONV(name, x, ...) symbol_node(ctx, "Convolution", name, LIST(__VA_ARGS__), x, NULL)
#define NORM(name, x) symbol_node(ctx, "BatchNorm", name, LIST("fix_gamma", "False"), x, NULL)
#define RELU(x) symbol_node(ctx, "Activation", NULL, LIST("act_type", "relu"), x, NULL)

/* 7x7, maximum, a block of 1x1, 3x3 and 1x1 with a shortcut, mean, dense. */
static tn_symbol *residual(tn_ctx *ctx)
{
    tn_symbol *x = NULL, *y, *z;

    MUST(tn_symbol_variable(ctx, "data", &x));
    x = RELU(NORM("n0", CONV("c0", x, "kernel", "(7,7)", "stride", "(2,2)", "pad", "(3,3)", "num_filter",
                             "16", "no_bias", "True")));
    x = symbol_node(ctx, "Pooling", "p0", LIST("kernel", "(3,3)", "stride", "(2,2)", "pad", "(1,1)"), x,
                    NULL);
    y = again(x);
    z = RELU(NORM("n1", CONV("c1", x, "kernel", "(1,1)", "num_filter", "8")));
    z = RELU(
        NORM("n2", CONV("c2", z, "kernel", "(3,3)", "pad", "(1,1)", "num_filter", "8", "no_bias", "True")));
    z = NORM("n3", CONV("c3", z, "kernel", "(1,1)", "num_filter", "32"));
    y = NORM("n4", CONV("c4", y, "kernel", "(1,1)", "num_filter", "32", "no_bias", "True"));
    x = RELU(symbol_node(ctx, "elemwise_add", NULL, LIST(NULL), z, y));
    x = symbol_node(ctx, "Pooling", "p1", LIST("global_pool", "True", "pool_type", "avg", "kernel", "(1,1)"),
                    x, NULL);
    x = symbol_node(ctx, "Flatten", NULL, LIST(NULL), x, NULL);
    return symbol_node(ctx, "FullyConnected", "f", LIST("num_hidden", "10"), x, NULL);
}

/* Convolutions of 3 dimensions, one of them turned; averages; a layer that wants rows in between; grouped
 * ones and those whose channels do not fit stay in rows. */
static tn_symbol *several(tn_ctx *ctx)
{
    tn_symbol *x = NULL;

    MUST(tn_symbol_variable(ctx, "data", &x));
    x = CONV("c0", x, "kernel", "(2,3,3)", "num_filter", "16", "pad", "(0,1,1)");
    x = symbol_node(
        ctx, "Pooling", "p0",
        LIST("kernel", "(1,2,2)", "stride", "(1,2,2)", "pool_type", "avg", "pooling_convention", "full"), x,
        NULL);
    x = symbol_node(ctx, "LeakyReLU", NULL, LIST("act_type", "gelu"), x, NULL);
    x = symbol_node(ctx, "Deconvolution", "d0",
                    LIST("kernel", "(1,2,2)", "stride", "(1,2,2)", "num_filter", "8", "no_bias", "False"), x,
                    NULL);
    x = symbol_node(ctx, "softmax", NULL, LIST("axis", "1"), x, NULL);
    x = CONV("c1", x, "kernel", "(1,3,3)", "num_filter", "16", "num_group", "2");
    x = CONV("c2", x, "kernel", "(3,1,1)", "pad", "(1,0,0)", "num_filter", "12", "num_group", "4");
    return symbol_node(ctx, "mean", NULL, LIST("axis", "(2,3,4)"), x, NULL);
}

/* Reorders at both ends, and a chain of pointwise operators. */
static tn_symbol *ends(tn_ctx *ctx)
{
    tn_symbol *x = NULL;

    MUST(tn_symbol_variable(ctx, "data", &x));
    x = CONV("c0", x, "kernel", "(1,1)", "num_filter", "8", "no_bias", "True");
    x = CONV("c1", RELU(x), "kernel", "(1,1)", "num_filter", "72", "no_bias", "True");
    return symbol_node(ctx, "_mul_scalar", NULL, LIST("scalar", "0.5"),
                       symbol_node(ctx, "tanh", NULL, LIST(NULL), x, NULL), NULL);
}

/* Two layers that are one kernel each where no gradient follows: with bias and relu, and with a sum, too. */
static tn_symbol *layers(tn_ctx *ctx)
{
    tn_symbol *x = NULL, *y;

    MUST(tn_symbol_variable(ctx, "data", &x));
    x = RELU(CONV("c0", x, "kernel", "(3,3)", "pad", "(1,1)", "num_filter", "16"));
    y = again(x);
    x = CONV("c1", x, "kernel", "(3,3)", "pad", "(1,1)", "num_filter", "16");
    return RELU(symbol_node(ctx, "elemwise_add", NULL, LIST(NULL), x, y));
}

static const struct net {
    const char *name;
    tn_symbol *(*make)(tn_ctx *ctx);
    int32_t ndim;
    int64_t shape[5];
} nets[] = {{"residual", residual, 4, {2, 3, 18, 14}},
            {"several", several, 5, {2, 8, 4, 9, 7}},
            {"layers", layers, 4, {2, 8, 9, 12}},
            {"pairs", ends, 4, {2, 72, 10, 14}}, /* two elements at a time; tiles that are not whole */
            {"odd", ends, 4, {2, 72, 9, 11}},
            {"narrow", ends, 4, {3, 72, 3, 3}},
            {"flat", ends, 4, {1, 8, 20, 50}}};

static tn_ctx *opened(const char *more)
{
    char plugins[4200], libraries[4300];
    const char *settings[] = {plugins, "device.default=cuda:0", libraries, more, NULL, NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    tn_ctx *ctx = NULL;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    (void)snprintf(libraries, sizeof libraries, "plugin.cuda.libraries=%s/../dnn",
                   getenv("TENON_TEST_DRIVER"));
    if (getenv("TF32"))
        settings[more ? 4 : 3] = "plugin.cuda.tf32=true";
    MUST(tn_open(&o, &ctx));
    return ctx;
}

/* ---- values: in the child ------------------------------------------------------------------------------ */

typedef struct answers {
    float values[ELEMENTS_MAX]; /* the outputs and gradients of a training step, the outputs of inference */
    size_t first[ARGS_MAX], count; /* arrays: where each begins, and the next one's begin */
} answers;

static void told(tn_ctx *ctx, tn_array *a, answers *to)
{
    const size_t at = to->first[to->count], n = (size_t)tn_array_count(a);
    tn_array *wide = NULL;

    if (at + n > ELEMENTS_MAX || to->count + 2 > ARGS_MAX)
        abort();
    MUST(tn_array_cast(ctx, a, TN_F32, &wide));
    MUST(tn_array_read(wide, to->values + at, n * sizeof(float)));
    tn_array_release(wide);
    to->first[++to->count] = at + n;
}

/* Numbers from -1 to 1, the same for each name. */
static tn_array *numbers(tn_ctx *ctx, const tn_known *k, uint32_t seed)
{
    static float values[ELEMENTS_MAX];
    uint64_t count = 1;
    tn_array *a = NULL;

    for (int32_t d = 0; d < k->ndim; d++)
        count *= (uint64_t)k->shape[d];
    if (count > ELEMENTS_MAX)
        abort();
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / 8388608.f - 1;
    }
    MUST(tn_array_create(ctx, TN_F32, k->ndim, k->shape, NULL, &a));
    MUST(tn_array_write(a, values, count * sizeof *values));
    return a;
}

/* Gradients that were added twice are those of one step, doubled: not a bit is lost. */
static void doubled(tn_ctx *ctx, tn_executor *e, const tn_named_array *in, uint32_t count)
{
    static answers once, twice;
    size_t wrong = 0;

    once.count = twice.count = 0;
    for (uint32_t i = 0; i < count; i++)
        told(ctx, tn_executor_array(e, TN_EXECUTOR_GRAD, in[i].name), &once);
    MUST(tn_executor_forward(e, 1, 0, NULL));
    MUST(tn_executor_backward(e, NULL));
    for (uint32_t i = 0; i < count; i++)
        told(ctx, tn_executor_array(e, TN_EXECUTOR_GRAD, in[i].name), &twice);
    for (size_t k = 0; k < once.first[once.count]; k++)
        wrong += twice.values[k] != 2 * once.values[k];
    printf("added: %zu of %zu are not doubled\n", wrong, once.first[once.count]);
}

static void answered(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes, const tn_known *data, answers *to)
{
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = getenv("ADDED") ? TN_MODE_ADD : TN_MODE_WRITE,
                                      .known_count = 1,
                                      .known = data};
    tn_named_array in[ARGS_MAX];
    tn_executor *e = NULL;
    uint32_t count = 0;
    tn_known k;

    MUST(tn_executor_simple_bind(ctx, s, &o, &e));
    for (; count < ARGS_MAX && !tn_inferred_at(shapes, TN_LIST_ARGUMENTS, count, &k); count++)
        in[count] = (tn_named_array){k.name, numbers(ctx, &k, count + 1)};
    MUST(tn_executor_forward(e, 1, count, in));
    MUST(tn_executor_backward(e, NULL));
    if (getenv("ADDED"))
        doubled(ctx, e, in, count);
    told(ctx, tn_executor_output(e, 0), to);
    for (uint32_t i = 0; i < count; i++)
        told(ctx, tn_executor_array(e, TN_EXECUTOR_GRAD, in[i].name), to);
    MUST(tn_executor_forward(e, 0, 0, NULL));
    told(ctx, tn_executor_output(e, 0), to);
    for (uint32_t i = 0; i < count; i++)
        tn_array_release(in[i].array);
    tn_executor_destroy(e);
}

/* Reorders forward, backward and once; other instructions: chains are one with channels last, too. */
static void counted(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes, bool train)
{
    tn_view_program p = {.struct_size = TN_SIZE(tn_view_program)};
    tn_view_step step = {.struct_size = TN_SIZE(tn_view_step)};
    tn_program_view *v = NULL;
    const char *params[ARGS_MAX];
    unsigned found[3] = {0}, fused = 0;
    size_t count = 0;
    tn_known k;

    for (size_t i = 0; !tn_inferred_at(shapes, TN_LIST_INPUTS, i, &k); i++)
        if (strcmp(k.name, "data") != 0)
            params[count++] = k.name;
    params[count] = NULL;
    MUST(train ? tn_program_view_plan(ctx, s, shapes, NULL, TN_VIEW_TRAIN | TN_VIEW_RECORDED, &v)
               : tn_program_view_served(ctx, s, shapes, NULL, params, &v));
    MUST(tn_program_view_info(v, &p));
    for (uint32_t i = 0; i < p.step_count; i++) {
        MUST(tn_program_view_step(v, i, &step));
        found[i < p.once_count                     ? 2
              : i < p.once_count + p.forward_count ? 0
                                                   : 1] += !strcmp(step.op, "_reorder");
        fused += !strcmp(step.op, "_fused_conv");
    }
    printf("%s: reorders %u forward, %u backward, %u once\n", train ? "training" : "inference", found[0],
           found[1], found[2]);
    printf("beside them %u\n", (unsigned)p.step_count - found[0] - found[1] - found[2]);
    printf("layers in one %u\n", fused);
    tn_program_view_destroy(v);
}

/* The largest difference of an element, as a part of the largest element of its array. */
static double most_apart(const answers *a, const answers *b)
{
    double most = a->count == b->count ? 0 : INFINITY;

    for (size_t i = 0; i < a->count; i++) {
        double large = 0, apart = 0;

        for (size_t k = a->first[i]; k < a->first[i + 1]; k++) {
            const double d = fabs((double)a->values[k] - (double)b->values[k]);

            large = fmax(large, fabs((double)a->values[k]));
            apart = d > apart || isnan(d) ? d : apart;
        }
        printf("array %zu of %zu: %g of %g\n", i, a->first[i + 1] - a->first[i], apart, large);
        most = apart / (large > 0 ? large : 1) > most || isnan(apart) ? apart / large : most;
    }
    return most;
}

/* child NET DTYPE */
static int child(const char *net, int32_t dtype)
{
    static answers all[2];
    const struct net *n = nets;

    while (strcmp(n->name, net) != 0)
        n++;
    for (int rows = 0; rows < 2; rows++) {
        tn_ctx *ctx = opened(rows ? "compile.passes_off=layout" : NULL);
        const tn_known data = {.name = "data", .shape = n->shape, .ndim = n->ndim, .dtype = dtype};
        tn_symbol *s = n->make(ctx);
        tn_inferred *shapes = NULL;

        MUST(tn_symbol_infer(s, 1, &data, 0, &shapes));
        counted(ctx, s, shapes, true);
        counted(ctx, s, shapes, false);
        answered(ctx, s, shapes, &data, &all[rows]);
        tn_inferred_destroy(shapes);
        tn_symbol_release(s);
        MUST(tn_close(ctx));
    }
    printf("apart %.9f\n", most_apart(&all[1], &all[0]));
    return 0;
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static char self[4096];

/* Apart from reorders, a program has as many instructions as one whose tensors lie in rows: chains are one
 * there, too. Of a chain at a port one part may lie in rows. */
static void lengths_equal(const char *out, long ports)
{
    static const char what[] = "beside them ";
    long found[4] = {0};

    for (int i = 0; i < 4; i++) {
        out = strstr(out, what);
        assert_non_null(out);
        out += strlen(what);
        found[i] = strtol(out, NULL, 10);
    }
    assert_in_range(found[0], found[2], found[2] + ports);
    assert_int_equal(found[1], found[3]);
}

#define ENDS "training: reorders 2 forward, 3 backward, 0 once\n"

static void alike(void **state)
{
    static const struct {
        const char *settings, *net;
        int32_t dtype;
        double within;
        const char *says;
    } rows[] = {
        {"", "residual", TN_F16, 0.01, "training: reorders 3 forward, 6 backward, 0 once\n"},
        {"", "residual", TN_BF16, 0.06, "inference: reorders 1 forward, 0 backward, 2 once\n"},
        {"TF32=1", "residual", TN_F32, 1e-3, "training: reorders 3 forward, 6 backward, 0 once\n"},
        {"", "residual", TN_F32, 0, "training: reorders 0 forward, 0 backward, 0 once\n"},
        {"", "several", TN_F16, 0.01, "training: reorders 4 forward, 7 backward, 0 once\n"},
        {"", "several", TN_BF16, 0.06, "inference: reorders 2 forward, 0 backward, 2 once\n"},
        {"", "layers", TN_F16, 0.01, "inference: reorders 2 forward, 0 backward, 2 once\n"},
        {"TF32=1", "layers", TN_F32, 1e-3, "layers in one 2\n"},
        {"", "pairs", TN_F16, 0.01, ENDS},
        {"", "odd", TN_BF16, 0.06, ENDS},
        {"", "narrow", TN_F16, 0.01, ENDS},
        {"", "flat", TN_F16, 0.01, ENDS},
        {"TF32=1 ADDED=1", "several", TN_F32, 1e-3, "training: reorders 7 forward, 13 backward, 0 once\n"},
        {"ADDED=1", "several", TN_BF16, 0.06, "added: 0 of "},
        {"ADDED=1", "residual", TN_F16, 0.02, "added: 0 of "},
        {"ADDED=1", "residual", TN_F32, 0, "added: 0 of "},
        {"TF32=1", "pairs", TN_F32, 1e-3, ENDS},
        {"TF32=1", "narrow", TN_F32, 1e-3, ENDS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[4200], settings[80];
        const said *s;
        const char *at;

        (void)snprintf(settings, sizeof settings, "TNEMU_DELAY_US=0 %s", rows[i].settings);
        (void)snprintf(command, sizeof command, "'%s' %s %d", self, rows[i].net, (int)rows[i].dtype);
        s = cuda_say(settings, command);
        at = strstr(s->out, "apart ");
        if (s->code || !at || strstr(s->out, "cudnn double") || !(strtod(at + 6, NULL) <= rows[i].within))
            fail_msg("%s %s: ends with %d:\n%s", settings, command, s->code, s->out);
        cuda_said(s, rows[i].says);
        lengths_equal(s->out, strcmp(rows[i].says, ENDS) == 0);
        cuda_said(s, "training: reorders 0 forward, 0 backward, 0 once\n"); /* in rows */
    }
}

/* ---- what _reorder declines: in the child -------------------------------------------------------------- */

static const tn_kernel *reorder_of(const tn_plugin *plugin)
{
    for (const tn_capability *const *at = plugin->capabilities; *at; at++)
        for (const tn_kernel *const *k = (*at)->kind == TN_KIND_KERNELS
                                             ? ((const tn_kernel_table *)(const void *)*at)->kernels
                                             : NULL;
             k && *k; k++)
            if (!strcmp((*k)->op, "_reorder"))
                return *k;
    fail_msg("no kernel of _reorder");
    return NULL;
}

typedef struct asked {
    const char *what;
    int32_t ndim, dtype;
    int64_t shape[6], stride[6];
    const tn_layout *from, *to;
} asked;

static void asked_say(const table *t, const asked *a)
{
    tn_tensor in = {.dtype = a->dtype,
                    .ndim = a->ndim,
                    .shape = a->shape,
                    .stride = a->stride,
                    .layout = a->from},
              out = in;
    const tn_tensor *ins[] = {&in}, *outs[] = {&out};
    const uint8_t mode = TN_MODE_WRITE;
    const tn_node node = {.struct_size = sizeof node,
                          .op = "_reorder",
                          .flags = TN_NODE_LAYOUTS,
                          .in_count = 1,
                          .out_count = 1,
                          .in = ins,
                          .out = outs,
                          .modes = &mode};
    const tn_layout *in_layout = NULL, *out_layout = NULL;
    tn_plan plan = {.struct_size = sizeof plan, .in_layout = &in_layout, .out_layout = &out_layout};
    const tn_kernel *k = reorder_of(t->descriptor);
    tn_err err = {0};
    tn_status st;

    out.layout = a->to;
    st = k->prepare(t->plugin, &node, &plan, &err);
    printf("%s: %s, %s\n", a->what, tn_status_name(st), st ? err.message : "");
    if (!st)
        k->release(&plan);
}

static int declined(void)
{
    static const char bytes[] = "channels last", others[] = "channels 1st!";
    static const tn_layout own = {sizeof own, TN_LAYOUT_POINTWISE, "cuda", bytes, sizeof bytes, 96},
                           foreign = {sizeof own, 0, "acme", bytes, sizeof bytes, 96},
                           unknown = {sizeof own, 0, "cuda", others, sizeof others, 96},
                           empty = {sizeof own, 0, "cuda", NULL, 0, 96};
#define SOUND                                                                                                \
    4, TN_F16, {2, 3, 2, 4},                                                                                 \
    {                                                                                                        \
        24, 8, 4, 1                                                                                          \
    }
    static const asked rows[] = {
        {"to", SOUND, NULL, &own},
        {"from", SOUND, &own, NULL},
        {"neither", SOUND, NULL, NULL},
        {"none", 2, TN_F32, {0, 3}, {3, 1}, NULL, NULL},
        {"long", 2, TN_F32, {65536, 65536}, {65536, 1}, NULL, NULL},
        {"both", SOUND, &own, &own},
        {"foreign", SOUND, NULL, &foreign},
        {"from foreign", SOUND, &foreign, NULL},
        {"unknown", SOUND, NULL, &unknown},
        {"no bytes", SOUND, &empty, NULL},
        {"a matrix", 2, TN_F16, {2, 3}, {3, 1}, NULL, &own},
        {"6 dimensions", 6, TN_F16, {2, 3, 2, 2, 2, 2}, {48, 16, 8, 4, 2, 1}, NULL, &own},
        {"of bytes", 4, TN_U8, {2, 3, 2, 4}, {24, 8, 4, 1}, NULL, &own},
        {"one channel", 4, TN_F16, {2, 1, 2, 4}, {8, 8, 4, 1}, NULL, &own},
        {"no space", 4, TN_F16, {2, 3, 1, 1}, {3, 1, 1, 1}, NULL, &own},
        {"empty", 4, TN_F16, {2, 3, 0, 4}, {0, 0, 4, 1}, NULL, &own},
        {"open", 4, TN_F16, {2, 3, -1, 4}, {0, 0, 4, 1}, NULL, &own},
        {"gaps", 4, TN_F16, {2, 3, 2, 4}, {48, 16, 8, 2}, NULL, &own},
        {"too large", 4, TN_F16, {2, 65536, 65536, 4}, {17179869184, 262144, 4, 1}, NULL, &own},
    };
    static table t;
    tn_err err = {0};

    if (table_start(&t, &err))
        return 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        asked_say(&t, &rows[i]);
    table_stop(&t);
    printf("blocks left %d\n", (int)atomic_load(&t.memory_live));
    return 0;
}

static void refused(void **state)
{
    char command[4200];
    const said *s;

    (void)state;
    (void)snprintf(command, sizeof command, "'%s' declined", self);
    s = cuda_say("TNEMU_DELAY_US=0", command);
    if (s->code)
        fail_msg("ends with %d:\n%s", s->code, s->out);
#define NOT_BETWEEN ": TN_E_UNSUPPORTED, not between rows and channels last\n"
#define NO_TENSOR ": TN_E_UNSUPPORTED, no tensor that channels last were made of\n"
    cuda_said(s, "to: TN_OK, \nfrom: TN_OK, \nneither: TN_OK, \nnone: TN_OK, \nlong" NOT_BETWEEN
                 "both" NOT_BETWEEN "foreign" NOT_BETWEEN "from foreign" NOT_BETWEEN "unknown" NOT_BETWEEN
                 "no bytes" NOT_BETWEEN "a matrix" NO_TENSOR "6 dimensions" NO_TENSOR "of bytes" NO_TENSOR
                 "one channel" NO_TENSOR "no space" NO_TENSOR "empty" NO_TENSOR "open" NO_TENSOR
                 "gaps" NO_TENSOR "too large" NO_TENSOR "blocks left 0\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(alike), cmocka_unit_test(refused)};
    char path[4200];

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc == 2)
        return declined();
    if (argc > 2)
        return child(argv[1], (int32_t)strtol(argv[2], NULL, 10));
    cuda_setup();
    (void)snprintf(path, sizeof path, "%s/../dnn/libcudnn.so.9", getenv("TENON_TEST_DRIVER"));
    if (access(path, R_OK)) {
        printf("skipped: the double of cuDNN is not built: cudnn_graph.h was not found\n");
        return 77;
    }
    return cmocka_run_group_tests_name("last", tests, NULL, NULL);
}
