#include "rule_bench.h"

const tn_attr_def rule_attrs[] = {
    TN_ATTR_INT("axis", "1", ""),
    TN_ATTR_INT("n", "4", ""),
    TN_ATTR_INT("k", "0", ""),
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
    TN_ATTR_INT_IN("few", "1", 0, 3, ""),
    TN_ATTR_INT_RUN("live", "1", ""),
    TN_ATTR_CHOICE("odd", "NCHW", "NCHW|NHCW", ""),
    TN_ATTR_OPT_TUPLE("parts", "()", ""),
    TN_ATTR_BOOL("no_bias", "0", ""),
    TN_ATTR_END,
};

void bench_open(bench *b, const char *shapes, const char *gradients, const char *given)
{
    const char *names[4], *texts[4];
    char text[256], *p = text;
    size_t count = 0;

    assert_int_equal(tni_opset_create(NULL, &b->ops), TN_OK);
    b->op = (tn_op){.struct_size = sizeof b->op,
                    .version = 1,
                    .name = "rule",
                    .doc = "",
                    .attrs = rule_attrs,
                    .shapes = shapes,
                    .gradients = gradients};
    if (tni_opset_add(b->ops, &b->op, NULL) || tni_opset_find(b->ops, "rule", &b->def))
        fail_msg("%s", tni_error_message());
    snprintf(text, sizeof text, "%s", given ? given : "");
    for (char *word; (word = strsep(&p, " ")) && strchr(word, '='); count++) {
        texts[count] = strchr(word, '=') + 1;
        *strchr(word, '=') = '\0';
        names[count] = word;
    }
    if (tni_attrs_parse(b->def, count, names, texts, &b->attrs))
        fail_msg("%s", tni_error_message());
}

void bench_close(bench *b)
{
    tni_attrs_release(b->attrs);
    tni_opset_destroy(b->ops);
}

tn_shape shape_of(const char *text)
{
    tn_shape s = {.ndim = TN_NDIM_UNKNOWN};

    if (strcmp(text, "?") == 0)
        return s;
    s.ndim = 0;
    for (const char *p = text; *p && *p != '-'; p += *p == ',') {
        s.dim[s.ndim++] = *p == '?' ? TN_DIM_UNKNOWN : strtoll(p, NULL, 10);
        p += strcspn(p, ",");
    }
    return s;
}

static void shape_write(const tn_shape *s, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    if (s->ndim <= 0)
        snprintf(out, size, "%s", s->ndim < 0 ? "?" : "-");
    for (int32_t k = 0; k < s->ndim; k++)
        n += s->dim[k] < 0
                 ? (size_t)snprintf(out + n, size - n, "%s?", k ? "," : "")
                 : (size_t)snprintf(out + n, size - n, "%s%lld", k ? "," : "", (long long)s->dim[k]);
}

tn_status infer(bench *b, const tni_opdef *def, const char *given, uint32_t flags, char *out, size_t size)
{
    tn_shape shape[2 * ARGS_MAX], before[2 * ARGS_MAX];
    tn_shape *in[ARGS_MAX], *to[ARGS_MAX];
    char text[256], *p = text;
    uint32_t count[2] = {0, 0};
    size_t n = 0;
    tn_status st;

    memset(shape, 0, sizeof shape);
    snprintf(text, sizeof text, "%s", given);
    for (char *word, side = 0; (word = strsep(&p, " "));) {
        if (strcmp(word, "->") == 0)
            side = 1;
        else
            shape[(side ? ARGS_MAX : 0) + count[(int)side]++] = shape_of(word);
    }
    for (uint32_t k = 0; k < ARGS_MAX; k++) {
        in[k] = &shape[k];
        to[k] = &shape[ARGS_MAX + k];
    }
    if ((st = tni_op_args(def, b->attrs, count[0], &b->args)))
        return st;
    if (b->args.in_count != count[0] || b->args.out_count != count[1])
        fail_msg("%s: %u inputs and %u outputs", given, b->args.in_count, b->args.out_count);
    do {
        memcpy(before, shape, sizeof shape);
        if ((st = tni_op_infer_shape(def, b->attrs, &b->args, flags, in, to)))
            return st;
    } while (memcmp(before, shape, sizeof shape) != 0);
    for (uint32_t k = 0; k < count[0] + count[1]; k++) {
        char one[128];

        shape_write(k < count[0] ? in[k] : to[k - count[0]], one, sizeof one);
        n += (size_t)snprintf(out + n, size - n, "%s%s%s", n ? " " : "", k == count[0] ? "-> " : "", one);
    }
    return TN_OK;
}

/* Infers by a rule, whatever it says. */
static void infer_somehow(const tn_op *op, const tni_attrs *values, uint32_t in_count)
{
    tn_shape shape[2 * ARGS_MAX], *slots[2 * ARGS_MAX];
    tn_err err = {0};
    tn_infer i = {.struct_size = sizeof i,
                  .op = op,
                  .attrs = values->values,
                  .attr_count = sizeof rule_attrs / sizeof *rule_attrs - 1,
                  .in_count = in_count,
                  .err = &err};

    for (uint32_t k = 0; k < 2 * ARGS_MAX; k++) {
        shape[k] = shape_of(k < ARGS_MAX ? "2,3,4,5" : "?");
        slots[k] = &shape[k];
    }
    i.in_shape = slots;
    i.out_shape = slots + ARGS_MAX;
    if (op->args(&i) == TN_OK && i.in_count <= ARGS_MAX && i.out_count <= ARGS_MAX)
        op->shape(&i);
}

void mangle(const bench *b, const char *shapes, const char *gradients)
{
    static const char others[] = " ()[]:;|/*+-@#?!~'.,=&^_aNS0";
    char *text = strdup(gradients ? gradients : shapes);
    const size_t length = strlen(text);
    size_t taken = 0;

    for (size_t at = 0; at < length; at++) {
        const char was = text[at];

        for (const char *c = others; *c; c++) {
            const tn_op op = {.struct_size = sizeof op,
                              .version = 1,
                              .name = "rule",
                              .attrs = rule_attrs,
                              .shapes = gradients ? shapes : text,
                              .gradients = gradients ? text : NULL};
            tni_ruled_op *made, *back = NULL;

            text[at] = *c;
            if (tni_ruled_op_create(&op, true, &made))
                continue;
            assert_int_equal(tni_ruled_op_backward(made, &back), TN_OK);
            infer_somehow(tni_ruled_op_definition(made), b->attrs, 3);
            if (back)
                infer_somehow(tni_ruled_op_definition(back), b->attrs, 3);
            tni_ruled_op_destroy(back);
            tni_ruled_op_destroy(made);
            taken++;
        }
        text[at] = was;
    }
    assert_in_range(taken, 1, length * sizeof others);
    free(text);
}
