/*
 * Bodies of pointwise operators, and the codes that kernels are handed. The input is one text, read as both.
 * A body that is taken becomes a code within the limits, which is written and read back as the same; so does
 * a code.
 */
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

#define TEXT_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tni_opset *ops;

static const tni_opdef *named(const void *set, const char *name)
{
    const tni_opdef *def = NULL;

    return tni_opset_find((tni_opset *)(uintptr_t)set, name, &def) ? NULL : def;
}

static void broken(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tni_error_message());
    abort();
}

static void written_is_read(const tn_point_code *code)
{
    static tn_point_code again;
    tni_str text, twice;

    tni_str_init(&text, 1u << 20);
    tni_str_init(&twice, 1u << 20);
    if (tni_point_write(code, &text) || tn_point_read(text.text, &again, NULL) ||
        tni_point_write(&again, &twice) || strcmp(text.text, twice.text) != 0)
        broken("a code is not read as it was written");
    tni_str_fini(&text);
    tni_str_fini(&twice);
}

static void body_try(const char *text)
{
    static const char *const inputs[] = {"x", "y", NULL}, *const output[] = {"output", NULL};
    const tni_opdef *like = named(ops, "_mul_scalar"); /* for an attribute: scalar */
    tn_op op = *like->op;
    tni_opdef def = *like;
    tni_body *body = NULL;
    static tn_point_code code;
    tni_attrs *attrs = NULL;

    op.body = text;
    op.inputs = inputs;
    op.outputs = output;
    op.args = NULL;
    op.flags = TN_OP_POINTWISE;
    def.op = &op;
    def.input_count = 2;
    if (tni_body_create(&def, named, ops, &body))
        return;
    def.body = body;
    if (tni_attrs_parse(like, 1, (const char *const[]){"scalar"}, (const char *const[]){"2"}, &attrs))
        broken("attributes");
    tni_body_code(&def, attrs, TN_F32, &code);
    written_is_read(&code);
    tni_attrs_release(attrs);
    tni_body_destroy(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_point_code code;
    char *text = size > TEXT_MAX ? NULL : malloc(size + 1);

    if (!ops && tni_opset_create(NULL, &ops))
        broken("the set of operators");
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    body_try(text);
    if (!tn_point_read(text, &code, NULL))
        written_is_read(&code);
    free(text);
    return 0;
}
