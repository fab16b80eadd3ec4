/*
 * Rules of definitions. The input is text: a line of shapes, one of types, one of gradients; any may be
 * empty. What is no rule is refused, what is one infers or fails, and its gradient makes nodes or fails.
 */
#include <stdlib.h>
#include <string.h>

#include "op/shape_rule.h"
#include "tenon/plugin/attr.h"

#define SLOTS 8u
#define MADE_MAX 100000u /* nodes of one gradient: rules of that length are not written */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tn_attr_def attrs[] = {
    TN_ATTR_INT("axis", "1", ""),         TN_ATTR_INT("n", "4", ""),
    TN_ATTR_BOOL("flag", "0", ""),        TN_ATTR_CHOICE("mode", "a", "a|b|c", ""),
    TN_ATTR_FLOAT_RUN("scalar", "1", ""), TN_ATTR_BOOL("is_int", "1", ""),
    TN_ATTR_DTYPE("dtype", "None", ""),   TN_ATTR_FLOAT("eps", "0.5", ""),
    TN_ATTR_BOOL("no_bias", "0", ""),     TN_ATTR_END,
};
static const tn_value values[] = {1, 4, 0, 1, 0, 1, (tn_value)-1, 0, 0};

static uint32_t made;

static void must(bool good)
{
    if (!good)
        abort();
}

static tn_edge edge_any(tn_grad *g, uint32_t index)
{
    return (tn_edge){.node = g, .index = index};
}

/* Of output 1 nothing arrives. */
static tn_edge edge_head(tn_grad *g, uint32_t index)
{
    return (tn_edge){.node = index == 1 ? NULL : g, .index = index};
}

static int32_t needed(tn_grad *g, uint32_t index)
{
    must(index < g->in_count);
    return index != 2;
}

static tn_status node_emit(tn_grad *g, const tn_emit *e, tn_edge *out)
{
    must(e->op && strlen(e->op) < TN_NAME_MAX && (e->in_count == 0 || e->in) && made++ < MADE_MAX);
    for (uint32_t k = 0; k < e->attr_count; k++)
        must(e->attrs[k].name && e->attrs[k].text);
    *out = (tn_edge){.node = g, .index = 0};
    return TN_OK;
}

static tn_status gradient_set(tn_grad *g, uint32_t input, tn_edge edge)
{
    (void)edge;
    must(input < g->in_count);
    return TN_OK;
}

static void infer(const tn_op *op, uint32_t in_count)
{
    static const tn_grad_ops ops = {.struct_size = sizeof ops,
                                    .input = edge_any,
                                    .output = edge_any,
                                    .head = edge_head,
                                    .needs = needed,
                                    .emit = node_emit,
                                    .set = gradient_set};
    tn_shape shape[2 * SLOTS], *slots[2 * SLOTS];
    int32_t types[2 * SLOTS];
    tn_err err = {0};
    tn_infer i = {.struct_size = sizeof i,
                  .op = op,
                  .attrs = values,
                  .attr_count = sizeof values / sizeof *values,
                  .in_count = in_count,
                  .in_shape = slots,
                  .out_shape = slots + SLOTS,
                  .in_dtype = types,
                  .out_dtype = types + SLOTS,
                  .err = &err};
    tn_grad g = {.struct_size = sizeof g, .op = op, .attrs = values, .err = &err, .ops = &ops};

    for (uint32_t k = 0; k < 2 * SLOTS; k++) {
        shape[k] = (tn_shape){.ndim = k % 3 ? 3 : TN_NDIM_UNKNOWN, .dim = {2, k % 2 ? 3 : -1, 4}};
        slots[k] = &shape[k];
        types[k] = k % 2 ? TN_F16 : -1;
    }
    if (op->args(&i) || i.in_count > SLOTS || i.out_count > SLOTS)
        return;
    (void)op->shape(&i);
    if (op->dtype)
        (void)op->dtype(&i);
    for (uint32_t k = 0; k < 2 * SLOTS; k++)
        must(shape[k].ndim >= -1 && shape[k].ndim <= TN_NDIM_MAX && types[k] >= -1 &&
             types[k] < TN_DTYPE_LIMIT);
    g.attr_count = i.attr_count;
    g.in_count = i.in_count;
    g.out_count = i.out_count;
    made = 0;
    if (op->gradient)
        (void)op->gradient(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *line[3] = {NULL}, *p = text;
    tn_op op = {.struct_size = sizeof op, .version = 1, .name = "rule", .attrs = attrs};
    tni_ruled_op *forward = NULL, *backward = NULL;

    memcpy(text, data, size);
    text[size] = '\0';
    for (int k = 0; k < 3 && p; k++)
        line[k] = strsep(&p, "\n");
    op.shapes = line[0];
    op.types = line[1] && *line[1] ? line[1] : NULL;
    op.gradients = line[2] && *line[2] ? line[2] : NULL;
    if (tni_ruled_op_create(&op, true, &forward) == TN_OK &&
        tni_ruled_op_backward(forward, &backward) == TN_OK)
        for (uint32_t in_count = 0; in_count < 4; in_count++) {
            infer(tni_ruled_op_definition(forward), in_count);
            if (backward)
                infer(tni_ruled_op_definition(backward), in_count);
        }
    tni_ruled_op_destroy(backward);
    tni_ruled_op_destroy(forward);
    free(text);
    return 0;
}
