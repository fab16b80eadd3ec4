/*
 * Definitions that a plugin brings as text, taken into a set of operators. The input is text: a shape rule,
 * a gradient rule (empty: none), a rule of types (empty: none), attributes "name=text name=text", then a
 * line for each shape, inputs first, "2 ? 3" or "?" for what is not known. A rule is refused with a text, or
 * the operator and its backward infer, or say why not.
 */
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "tenon/plugin/attr.h"

#define LINES_MAX 24
#define WORDS_MAX 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tn_attr_def rows[] = {
    TN_ATTR_INT("axis", "1", ""),
    TN_ATTR_INT("n", "4", ""),
    TN_ATTR_BOOL("flag", "0", ""),
    TN_ATTR_CHOICE("mode", "a", "a|b|c", ""),
    TN_ATTR_OPT_INT("size", "None", ""),
    TN_ATTR_TUPLE("kernel", "(3, 3)", ""),
    TN_ATTR_TUPLE("stride", "()", ""),
    TN_ATTR_TUPLE("pad", "()", ""),
    TN_ATTR_TUPLE("axes", "()", ""),
    TN_ATTR_BOOL("keepdims", "0", ""),
    TN_ATTR_CHOICE("layout", "None", "None|NCHW|NHWC", ""),
    TN_ATTR_FLOAT("scale", "1", ""),
    TN_ATTR_INT_RUN("live", "1", ""),
    TN_ATTR_OPT_TUPLE("parts", "()", ""),
    TN_ATTR_BOOL("no_bias", "0", ""),
    TN_ATTR_END,
};

static tni_opset *ops;

static void broken(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tni_error_message());
    abort();
}

static size_t split(char *text, const char *between, char **out, size_t most)
{
    size_t count = 0;

    while (text && count < most)
        out[count++] = strsep(&text, between);
    return count;
}

static void shape_read(char *line, tn_shape *s)
{
    char *words[TN_NDIM_MAX];
    const size_t count = split(line, " ", words, TN_NDIM_MAX);

    s->ndim = count == 1 && words[0][0] == '?' ? TN_NDIM_UNKNOWN : 0;
    for (size_t i = 0; s->ndim >= 0 && i < count; i++)
        if (words[i][0])
            s->dim[s->ndim++] = words[i][0] == '?' ? TN_DIM_UNKNOWN : llabs(strtoll(words[i], NULL, 10));
}

static void shape_check(const tn_shape *s)
{
    if (s->ndim < -1 || s->ndim > TN_NDIM_MAX)
        broken("a rank out of range");
    for (int32_t d = 0; d < s->ndim; d++)
        if (s->dim[d] < -1)
            broken("a dimension below -1");
}

static void infer(const tni_opdef *def, const tni_attrs *attrs, size_t lines, char *const *line)
{
    static tn_shape shapes[2][TN_NODE_INPUTS_MAX];
    static tn_shape *in[TN_NODE_INPUTS_MAX], *out[TN_NODE_INPUTS_MAX];
    static int32_t dtypes[2][TN_NODE_INPUTS_MAX];
    char name[TN_NAME_MAX], text[256];
    tni_args args;

    if (tni_op_args(def, attrs, (int64_t)lines, &args))
        return;
    for (uint32_t i = 0; i < TN_NODE_INPUTS_MAX; i++) {
        shapes[0][i].ndim = shapes[1][i].ndim = TN_NDIM_UNKNOWN;
        in[i] = &shapes[0][i];
        out[i] = &shapes[1][i];
    }
    for (uint32_t i = 0; i < lines && i < args.in_count + args.out_count; i++) {
        snprintf(text, sizeof text, "%s", line[i]);
        shape_read(text, i < args.in_count ? in[i] : out[i - args.in_count]);
    }
    if (args.in_count > 0 && tni_op_input_name(def, &args, args.in_count - 1, name, sizeof name))
        broken("an input without name");
    if (tni_op_output_name(def, &args, args.out_count - 1, name, sizeof name))
        broken("an output without name");
    for (uint32_t i = 0; i < TN_NODE_INPUTS_MAX; i++)
        dtypes[0][i] = dtypes[1][i] = i < lines ? (int32_t)(strlen(line[i]) % (TN_DTYPE_LIMIT + 1)) - 1 : -1;
    for (int pass = 0; pass < 3; pass++)
        (void)tni_op_infer_dtype(def, attrs, &args, dtypes[0], dtypes[1]);
    for (int pass = 0; pass < 3; pass++)
        if (tni_op_infer_shape(def, attrs, &args, 0, in, out))
            return;
    for (uint32_t i = 0; i < args.in_count; i++)
        shape_check(in[i]);
    for (uint32_t i = 0; i < args.out_count; i++)
        shape_check(out[i]);
}

static tni_attrs *attrs_read(const tni_opdef *def, char *line)
{
    const char *names[WORDS_MAX], *texts[WORDS_MAX];
    char *words[WORDS_MAX];
    const size_t count = split(line, " ", words, WORDS_MAX);
    tni_attrs *attrs = NULL;
    size_t given = 0;

    for (size_t i = 0; i < count; i++) {
        char *equals = strchr(words[i], '=');

        if (!equals)
            continue;
        *equals = '\0';
        names[given] = words[i];
        texts[given++] = equals + 1;
    }
    if (tni_attrs_parse(def, given, names, texts, &attrs))
        (void)tni_attrs_parse(def, 0, NULL, NULL, &attrs);
    return attrs;
}

static void use(const char *name, char *given, size_t lines, char *const *line)
{
    const tni_opdef *def;
    tni_attrs *attrs = NULL;

    if (tni_opset_find(ops, name, &def) || !(attrs = attrs_read(def, given)))
        broken("an operator that was taken cannot be used");
    infer(def, attrs, lines, line);
    tni_attrs_release(attrs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *line[LINES_MAX] = {NULL}, none[] = "";
    tn_op op = {.struct_size = sizeof op, .version = 1, .name = "rule", .attrs = rows};
    const tni_opdef *back;
    size_t lines;

    memcpy(text, data, size);
    text[size] = '\0';
    lines = split(text, "\n", line, LINES_MAX);
    op.shapes = line[0];
    op.gradients = line[1] && *line[1] ? line[1] : NULL;
    op.types = line[2] && *line[2] ? line[2] : NULL;
    if (!ops && tni_opset_create(NULL, &ops)) /* what is refused leaves nothing in it */
        broken("definitions");
    if (tni_opset_add(ops, &op, NULL)) {
        if (!tni_error_message()[0] || strchr(tni_error_message(), '\n'))
            broken("refused without one line of text");
    } else {
        use("rule", line[3] ? line[3] : none, lines > 4 ? lines - 4 : 0, line + 4);
        if (!tni_opset_find(ops, "_backward_rule", &back))
            use("_backward_rule", none, lines > 4 ? lines - 4 : 0, line + 4);
        tni_opset_destroy(ops);
        ops = NULL;
    }
    free(text);
    return 0;
}
