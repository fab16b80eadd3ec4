/*
 * Every operator gives what MXNet 1.9.1 gives, with every data type that MXNet takes: values, gradients and
 * second gradients of the calls in tests/oracle/recorded/ops. gaps.txt beside this file lists where Tenon
 * does not; a gap that is closed makes the test fail as well as a new one. dtypes.jsonl says which data types
 * each operator takes: every operator of the core has a row there, and a call of every type of a row ran.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mxnet/replay.h"
#include "tenon/plugin/op.h"

#define ROWS_MAX 64
#define LACKS_MAX 10 /* rows of data types that Tenon lacks */
#define NAMES_MAX 64
#define OPS_MAX 1024
#define TYPES_MAX 16

static const char *const stage_names[STAGE_COUNT] = {"values", "gradients", "seconds"};

static const char *const families[] = {
    "activation", "assign",     "broadcast",  "choice",       "contrib",      "conv",        "create",
    "ctc",        "deconv",     "deform",     "dense",        "detection",    "elemwise",    "filter",
    "image",      "index",      "init",       "insert",       "join",         "linalg",      "matrix",
    "norm",       "numpy",      "numpy_join", "numpy_random", "numpy_reduce", "numpy_shape", "optimizer",
    "order",      "pad",        "pdf",        "pool",         "products",     "random",      "ravel",
    "rearrange",  "reduce",     "region",     "regression",   "resize",       "rnn",         "sampler",
    "scalar",     "scan",       "select",     "sequence",     "shape",        "slice",       "softmax",
    "special",    "statistics", "storage",    "unary",
};

/* One row of gaps.txt. */
typedef struct names {
    char *name[NAMES_MAX];
    size_t count;
} names;

typedef struct gap {
    char line[2048];
    names ops, dtypes, stages;
    char *how, *attr;
    bool seen[NAMES_MAX][NAMES_MAX / 4][STAGE_COUNT]; /* operator, data type, stage */
} gap;

/* One row of dtypes.jsonl. */
typedef struct taken {
    char op[64], types[TYPES_MAX][8];
    size_t count;
    bool ran[TYPES_MAX];
} taken;

static taken rows[OPS_MAX];
static size_t row_count;
static gap gaps[ROWS_MAX];
static size_t gap_count;
static tn_ctx *ctx;
static size_t counts[STAGE_COUNT], gap_calls;

/* ---- bounds ------------------------------------------------------------------------------------- */

/* Where the general bounds are too tight for what MXNet computes with. */
static const struct {
    const char *op, *dtype;
    bound b;
} loose[] = {
    /* its attributes and constants are float32 */
    {"LeakyReLU", "f64", {1e-6, 1e-7}},
    {"hard_sigmoid", "f64", {1e-6, 1e-7}},
    {"*degrees", "f64", {1e-6, 1e-7}},
    {"*radians", "f64", {1e-6, 1e-7}},
    {"_npi_ldexp", "f64", {1e-6, 1e-7}},
    {"_npi_rldexp_scalar", "f64", {1e-6, 1e-7}},
    {"BatchNorm", "f64", {1e-6, 1e-7}},
    {"LayerNorm", "f64", {1e-6, 1e-7}},
    {"GroupNorm", "f64", {1e-6, 1e-7}},
    {"L2Normalization", "f64", {1e-6, 1e-7}},
    {"SoftmaxOutput", "f64", {1e-6, 1e-7}},
    {"*_update", "f64", {1e-6, 1e-7}},
    {"lamb_update_phase1", "f64", {1e-6, 1e-7}},
    {"lamb_update_phase2", "f64", {1e-6, 1e-7}},
    {"_image_resize", "f64", {1e-6, 1e-7}},
    {"_image_adjust_lighting", "f64", {1e-6, 1e-7}},
    {"_image_random_hue", "f64", {1e-5, 1e-6}},
    {"_image_random_contrast", "f64", {1e-6, 1e-7}},
    {"_image_random_saturation", "f64", {1e-6, 1e-7}},
    {"_npi_percentile", "f64", {1e-6, 1e-7}},
    {"_npi_hamming", "f64", {1e-6, 1e-6}},
    {"_npi_hanning", "f64", {1e-6, 1e-6}},
    {"_npi_blackman", "f64", {1e-6, 1e-6}},
    /* its function in float64 is one of float32, or has a constant of 7 digits */
    {"erf", "f64", {1e-6, 1e-7}},
    {"erfinv", "f64", {1e-6, 1e-7}},
    {"gamma", "f64", {1e-6, 1e-7}},
    {"gammaln", "f64", {1e-6, 1e-7}},
    {"_random_pdf_normal", "f64", {1e-6, 1e-7}},
    {"_random_pdf_gamma", "f64", {1e-5, 1e-6}},
    {"_random_pdf_dirichlet", "f64", {1e-6, 1e-7}},
    /* it adds, or multiplies, up to 24 numbers in the type itself */
    {"norm", "bf16", {0, 2e-2}},
    {"_npi_norm", "bf16", {0, 3e-2}},
    {"prod", "bf16", {0, 6e-2}},
    {"nanprod", "bf16", {0, 6e-2}},
    {"softmax", "f16", {0, 4e-3}},
    {"_npi_hamming", "bf16", {0, 2e-2}},
    {"_npi_hanning", "bf16", {0, 2e-2}},
    {"_npi_blackman", "bf16", {0, 2e-2}},
    {"softmin", "f16", {0, 4e-3}},
    /* it rounds weights and products to the type */
    {"_contrib_BilinearResize2D", "bf16", {0, 4e-2}},
    {"_contrib_ROIAlign", "f16", {0, 1e-2}},
    {"_contrib_box_encode", "f16", {0, 1e-2}},
    {"Correlation", "f16", {0, 4e-3}},
    {"_random_pdf_negative_binomial", "f16", {0, 4e-3}},
    {"_random_pdf_gamma", "f16", {0, 2e-2}},
};

/* MXNet rounds each step of their gradients to bfloat16. */
static const char *const rounded[] = {"*hypot", "*power", "broadcast_mul", "broadcast_div",
                                      "*tanh",  "*cosh",  "*sigmoid",      "erfinv"};

static bound bound_of_dtype(int32_t dtype)
{
    switch (dtype) {
    case TN_F64:
        return (bound){1e-10, 1e-11};
    case TN_F32:
        return (bound){1e-5, 1e-6};
    case TN_F16:
        return (bound){0, 2e-3};
    case TN_BF16:
        return (bound){0, 1e-2};
    default:
        return (bound){0, 0};
    }
}

static bool fits(const char *pattern, const char *op)
{
    const size_t length = strlen(op), tail = strlen(pattern) - 1;

    return *pattern == '*' ? length >= tail && !strcmp(op + length - tail, pattern + 1)
                           : !strcmp(pattern, op);
}

/* Results are as good as the worse one of the call's type and theirs; whole numbers are exact. */
static bound bound_of(const call *c, stage s, int32_t dtype)
{
    bound b = bound_of_dtype(dtype), other;

    for (size_t i = 0; i < sizeof rounded / sizeof *rounded && s == GRADIENTS && dtype == TN_BF16; i++)
        if (fits(rounded[i], c->op))
            b.share = 3e-2;
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++)
        if (fits(loose[i].op, c->op) && !strcmp(loose[i].dtype, c->dtype) && b.share > 0)
            return loose[i].b;
    for (uint32_t i = 0; b.share > 0 && i < c->counts[OUT] + c->counts[IN]; i++) {
        other =
            bound_of_dtype((i < c->counts[OUT] ? c->parts[OUT][i] : c->parts[IN][i - c->counts[OUT]]).dtype);
        if (other.share > b.share)
            b = other;
    }
    return b;
}

/* ---- gaps --------------------------------------------------------------------------------------- */

static FILE *source_open(const char *name)
{
    const char *source = getenv("TENON_TEST_SOURCE");
    char path[4096];
    FILE *file;

    assert_non_null(source);
    (void)snprintf(path, sizeof path, "%s/tests/%s", source, name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    return file;
}

static void names_split(char *list, names *out)
{
    for (char *rest = list, *end; rest; rest = end) {
        assert_in_range(out->count, 0, NAMES_MAX - 1);
        end = strchr(rest, ',');
        if (end)
            *end++ = '\0';
        out->name[out->count++] = rest;
    }
}

/* OPERATOR,... DTYPE,... STAGE,... refused|differs ATTRIBUTE=VALUE|- reason */
static void gap_read(gap *g)
{
    char *word[5] = {NULL}, *save = NULL;

    for (size_t i = 0; i < 5; i++) {
        word[i] = strtok_r(i ? NULL : g->line, " ", &save);
        assert_non_null(word[i]);
    }
    if (!save || strlen(save) < 5)
        fail_msg("a gap of %s has no reason", word[0]);
    names_split(word[0], &g->ops);
    names_split(word[1], &g->dtypes);
    names_split(word[2], &g->stages);
    assert_in_range(g->dtypes.count, 1, NAMES_MAX / 4);
    g->how = word[3];
    g->attr = word[4];
}

static void gaps_read(void)
{
    FILE *file = source_open("mxnet/gaps.txt");
    size_t lacks = 0;

    while (gap_count < ROWS_MAX && fgets(gaps[gap_count].line, sizeof gaps->line, file))
        if (!strchr("#\n", *gaps[gap_count].line)) {
            gap_read(&gaps[gap_count]);
            lacks += !strcmp(gaps[gap_count++].how, "refused");
        }
    assert_in_range(gap_count, 0, ROWS_MAX - 1);
    assert_in_range(lacks, 0, LACKS_MAX);
    (void)fclose(file);
}

/* {"op": "NAME", "ok": "TYPE TYPE...", ...} */
static void rows_read(void)
{
    FILE *file = source_open("oracle/recorded/ops/dtypes.jsonl");
    char line[2048], types[128];

    for (; row_count < OPS_MAX && fgets(line, sizeof line, file); row_count++) {
        taken *t = &rows[row_count];
        char *save = NULL, *at = strstr(line, "\"ok\": \"");

        if (sscanf(line, "{\"op\": \"%63[^\"]", t->op) != 1)
            fail_msg("dtypes.jsonl, line %zu is no row", row_count + 1);
        if (!at || sscanf(at, "\"ok\": \"%127[^\"]", types) != 1)
            continue;
        for (char *word = strtok_r(types, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
            assert_in_range(t->count, 0, TYPES_MAX - 1);
            (void)snprintf(t->types[t->count++], sizeof *t->types, "%s", word);
        }
    }
    (void)fclose(file);
    assert_in_range(row_count, 200, OPS_MAX - 1);
}

static taken *row_find(const char *op)
{
    for (size_t i = 0; i < row_count; i++)
        if (!strcmp(rows[i].op, op))
            return &rows[i];
    return NULL;
}

static int setup(void **state)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char path[4096];
    const char *const settings[] = {"plugins.trust=off", path, "kernel.prefer=cpu", NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};

    (void)state;
    gaps_read();
    rows_read();
    assert_non_null(folder);
    (void)snprintf(path, sizeof path, "plugins.path=%s", folder);
    return tn_open(&o, &ctx) || tn_random_seed(ctx, 1, NULL);
}

static int teardown(void **state)
{
    (void)state;
    return tn_close(ctx) != TN_OK;
}

static size_t name_find(const names *n, const char *name)
{
    size_t i = 0;

    while (i < n->count && strcmp(n->name[i], name) != 0)
        i++;
    return i;
}

/* Inputs of several data types, one of them this. */
static bool mixed_with(const call *c, const char *name)
{
    bool with = false, several = false;

    for (uint32_t i = 0; i < c->counts[IN]; i++) {
        with = with || !strcmp(tn_dtype_name(c->parts[IN][i].dtype), name);
        several = several || c->parts[IN][i].dtype != c->parts[IN][0].dtype;
    }
    return with && several;
}

static bool attr_given(const call *c, const char *pair)
{
    const size_t length = strcspn(pair, "=");
    bool given = false;

    if (!strcmp(pair, "-"))
        return true;
    if (!strncmp(pair, "mixed=", 6))
        return mixed_with(c, pair + 6);
    for (size_t i = 0; c->attrs[i]; i += 2)
        given = given || (strlen(c->attrs[i]) == length && !strncmp(c->attrs[i], pair, length) &&
                          !strcmp(c->attrs[i + 1], pair + length + 1));
    return given;
}

/* Marks what is seen. false: no row has it. */
static bool gap_known(const call *c, stage s, const verdict *v)
{
    for (size_t i = 0; i < gap_count; i++) {
        gap *g = &gaps[i];
        const size_t op = name_find(&g->ops, c->op), dtype = name_find(&g->dtypes, c->dtype),
                     at = name_find(&g->stages, stage_names[s]);

        if (op == g->ops.count || dtype == g->dtypes.count || at == g->stages.count ||
            strcmp(g->how, v->refused ? "refused" : "differs") != 0 || !attr_given(c, g->attr))
            continue;
        g->seen[op][dtype][at] = true;
        return true;
    }
    return false;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void ran_mark(const call *c)
{
    taken *t = row_find(c->op);

    for (size_t i = 0; t && i < t->count; i++)
        t->ran[i] = t->ran[i] || !strcmp(t->types[i], c->dtype);
}

static size_t call_check(const call *c, stage s)
{
    verdict v;

    if (!replay(ctx, c, s, bound_of, &v))
        return 0;
    counts[s]++;
    ran_mark(c);
    if (!*v.text)
        return 0;
    if (gap_known(c, s, &v)) {
        gap_calls++;
        return 0;
    }
    print_error("%s, %s (%s): %s\n", c->text, stage_names[s], v.refused ? "refused" : "differs", v.text);
    return 1;
}

static void family_is_mxnets(void **state)
{
    const char *source = getenv("TENON_TEST_SOURCE");
    char path[4096];
    size_t failed = 0;
    recording r;

    assert_non_null(source);
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/ops/%s.txt.gz", source, (const char *)*state);
    assert_true(recording_open(path, &r));
    for (size_t i = 0; i < r.count; i++)
        for (stage s = VALUES; s < STAGE_COUNT; s++)
            failed += call_check(&r.calls[i], s);
    recording_close(&r);
    if (failed)
        fail_msg("%zu stages of calls are not MXNet's", failed);
}

static void gaps_are_open(void **state)
{
    size_t closed = 0;

    (void)state;
    print_message("%zu values, %zu gradients, %zu second gradients; %zu of them in %zu rows of gaps\n",
                  counts[VALUES], counts[GRADIENTS], counts[SECONDS], gap_calls, gap_count);
    for (gap *g = gaps; g < gaps + gap_count; g++)
        for (size_t o = 0; o < g->ops.count; o++)
            for (size_t d = 0; d < g->dtypes.count; d++)
                for (size_t s = 0; s < g->stages.count; s++)
                    if (!g->seen[o][d][s]) {
                        print_error("\"%s %s %s %s %s\" is closed: remove it\n", g->ops.name[o],
                                    g->dtypes.name[d], g->stages.name[s], g->how, g->attr);
                        closed++;
                    }
    if (closed)
        fail_msg("%zu gaps are closed", closed);
}

static void every_operator_has_a_row(void **state)
{
    size_t count = 0, missing = 0;

    (void)state;
    assert_int_equal(tn_op_count(ctx, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};

        assert_int_equal(tn_op_at(ctx, i, &o), TN_OK);
        if (!*o.family || (o.definition->flags & (TN_OP_BACKWARD | TN_OP_INTERNAL)) || row_find(o.name))
            continue;
        if (o.definition->exec == TN_EXEC_SUBGRAPH) /* test_control.c: nets, not calls */
            continue;
        print_error("%s has no row: put its calls into tests/oracle/ops.txt\n", o.name);
        missing++;
    }
    assert_int_equal(missing, 0);
}

/* As a test of all of them: the gaps that they need are rows of gaps.txt. */
static void every_type_ran(void **state)
{
    size_t missing = 0;

    (void)state;
    for (size_t i = 0; i < row_count; i++)
        for (size_t k = 0; k < rows[i].count; k++)
            if (!rows[i].ran[k]) {
                print_error("no call of %s with %s ran\n", rows[i].op, rows[i].types[k]);
                missing++;
            }
    assert_int_equal(missing, 0);
}

static int is_recording(const struct dirent *entry)
{
    const char *end = strchr(entry->d_name, '.');

    return end && !strcmp(end, ".txt.gz");
}

static void every_recording_is_read(void **state)
{
    struct dirent **entries = NULL;
    char path[4096];
    int count;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/ops", getenv("TENON_TEST_SOURCE"));
    count = scandir(path, &entries, is_recording, NULL);
    assert_int_equal(count, sizeof families / sizeof *families);
    while (count-- > 0)
        free(entries[count]);
    free(entries);
}

int main(void)
{
    const size_t count = sizeof families / sizeof *families;
    struct CMUnitTest tests[sizeof families / sizeof *families + 4];

    for (size_t i = 0; i < count; i++)
        tests[i] =
            (struct CMUnitTest){families[i], family_is_mxnets, NULL, NULL, (void *)(uintptr_t)families[i]};
    tests[count] = (struct CMUnitTest)cmocka_unit_test(every_recording_is_read);
    tests[count + 1] = (struct CMUnitTest)cmocka_unit_test(gaps_are_open);
    tests[count + 2] = (struct CMUnitTest)cmocka_unit_test(every_operator_has_a_row);
    tests[count + 3] = (struct CMUnitTest)cmocka_unit_test(every_type_ran);
    return cmocka_run_group_tests(tests, setup, teardown);
}
