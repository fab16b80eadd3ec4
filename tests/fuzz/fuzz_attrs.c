/*
 * Attributes and inference of every operator. The input is text: a line "Operator name=value ...", then one
 * line for each input, "dtype d0 d1 ..." with ? for what is not known. What is read must be written back to
 * the same value; what infers must stay within the limits, and say the same when it is asked again.
 */
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

#define INPUTS_MAX 8
#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tni_opset *ops;

static void broken(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tni_error_message());
    abort();
}

/* Splits at spaces outside brackets; NUL-ends the words. */
static size_t words_split(char *line, char **words)
{
    size_t count = 0;
    int depth = 0;

    for (char *p = line; *p && count < WORDS_MAX;) {
        while (*p == ' ')
            p++;
        if (!*p)
            break;
        words[count++] = p;
        for (; *p && (*p != ' ' || depth > 0); p++)
            depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        if (*p)
            *p++ = '\0';
    }
    return count;
}

/* Every value goes out as text and comes back the same. */
static void round_trip(const tni_attrs *a)
{
    const char *names[128];
    tni_str texts[128];
    const char *values[128];
    uint32_t count = 0;
    tni_attrs *again = NULL;

    for (uint32_t i = 0; i < a->def->attr_count; i++) {
        if (!(a->given[i / 64] >> (i % 64) & 1u))
            continue;
        names[count] = a->def->op->attrs[i].name;
        tni_str_init(&texts[count], 1 << 20);
        if (tni_attr_format(&a->def->op->attrs[i], a->values[i], &texts[count]))
            broken("a value that was read cannot be written");
        values[count] = texts[count].text ? texts[count].text : "";
        count++;
    }
    if (tni_attrs_parse(a->def, count, names, values, &again))
        broken("a value that was written cannot be read");
    if (!tni_attrs_equal_structural(a, again) || a->hash != again->hash)
        broken("a value came back another");
    for (uint32_t i = 0; i < count; i++)
        tni_str_fini(&texts[i]);
    tni_attrs_release(again);
}

static void shape_read(char *line, tn_shape *shape, int32_t *dtype)
{
    char *words[WORDS_MAX];
    size_t count = words_split(line, words);

    shape->ndim = TN_NDIM_UNKNOWN;
    *dtype = TN_DTYPE_UNKNOWN;
    if (count == 0 || (!tni_dtype_parse(words[0], dtype) && strcmp(words[0], "?") != 0))
        return;
    if (count == 2 && strcmp(words[1], "??") == 0)
        return;
    shape->ndim = 0;
    for (size_t i = 1; i < count && i <= TN_NDIM_MAX; i++) {
        int64_t d;

        shape->dim[shape->ndim++] = tni_parse_i64(words[i], &d) && d >= 0 ? d : TN_DIM_UNKNOWN;
    }
}

static void known_check(const tn_shape *s)
{
    if (s->ndim < -1 || s->ndim > TN_NDIM_MAX)
        broken("a rank out of range");
    for (int32_t d = 0; d < s->ndim; d++)
        if (s->dim[d] < -1)
            broken("a dimension below -1");
}

static void infer(const tni_opdef *def, const tni_attrs *attrs, size_t lines, char **line)
{
    static tn_shape shapes[2][TN_NODE_INPUTS_MAX];
    static tn_shape *in[TN_NODE_INPUTS_MAX], *out[TN_NODE_INPUTS_MAX];
    static int32_t dtypes[2][TN_NODE_INPUTS_MAX], storage[2][TN_NODE_INPUTS_MAX];
    tni_args args;
    char name[TN_NAME_MAX];

    if (tni_op_args(def, attrs, (int64_t)lines, &args))
        return;
    for (uint32_t i = 0; i < TN_NODE_INPUTS_MAX; i++) {
        shapes[0][i].ndim = shapes[1][i].ndim = dtypes[0][i] = dtypes[1][i] = -1;
        storage[0][i] = storage[1][i] = -1;
        in[i] = &shapes[0][i];
        out[i] = &shapes[1][i];
        if (i < lines && i < args.in_count)
            shape_read(line[i], in[i], &dtypes[0][i]);
    }
    if (args.in_count > 0 && tni_op_input_name(def, &args, args.in_count - 1, name, sizeof name))
        broken("an input without name");
    if (tni_op_output_name(def, &args, args.out_count - 1, name, sizeof name))
        broken("an output without name");
    (void)tni_op_infer_dtype(def, attrs, &args, dtypes[0], dtypes[1]);
    (void)tni_op_infer_storage(def, attrs, &args, storage[0], storage[1]);
    for (int pass = 0; pass < 3; pass++)
        if (tni_op_infer_shape(def, attrs, &args, 0, in, out))
            return;
    for (uint32_t i = 0; i < args.in_count; i++)
        known_check(in[i]);
    for (uint32_t i = 0; i < args.out_count; i++)
        known_check(out[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text, *line[1 + INPUTS_MAX], *words[WORDS_MAX];
    const char *names[WORDS_MAX], *values[WORDS_MAX];
    const tni_opdef *def;
    tni_attrs *attrs = NULL;
    size_t lines = 0, count, given = 0;

    if (!ops && tni_opset_create(NULL, &ops))
        broken("definitions");
    text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *p = text; p && lines < 1 + INPUTS_MAX;) {
        line[lines++] = p;
        if ((p = strchr(p, '\n')))
            *p++ = '\0';
    }
    if (lines > 1 && !line[lines - 1][0])
        lines--;
    count = words_split(line[0], words);
    if (count == 0 || tni_opset_find(ops, words[0], &def)) {
        free(text);
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        char *equal = strchr(words[i], '=');

        names[given] = words[i];
        if (equal)
            *equal++ = '\0';
        values[given++] = equal ? equal : "";
    }
    if (tni_attrs_parse(def, given, names, values, &attrs) == TN_OK) {
        round_trip(attrs);
        infer(def, attrs, lines - 1, line + 1);
    }
    tni_attrs_release(attrs);
    free(text);
    return 0;
}
