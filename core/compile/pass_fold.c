/*
 * Folding: y = BatchNorm(layer(x, w, b)) with running statistics is layer(x, w', b'), where w' and b' follow
 * from w, b and the statistics alone. Done where all of these are constants, so that it costs nothing. Of
 * short floats w' and b' are rounded once, as what lies between the two was.
 */
#include <string.h>

#include "compile/code.h"
#include "tenon/plugin/op/conv.h"
#include "tenon/plugin/op/norm.h"

typedef struct folder {
    tni_code *c;
    tni_edit e;
    uint32_t *readers;
    uint8_t *written;
    uint32_t *layer; /* per instruction: of a BatchNorm that is folded, its layer, +1 */
    uint8_t *gone;   /* per instruction: it goes into a BatchNorm */
} folder;

/* ---- where ------------------------------------------------------------------------------------------ */

static bool constant(const folder *f, uint32_t value)
{
    const tni_value *root = tni_code_value(f->c, tni_code_root(f->c, value));
    const tni_port *port = root->place == TNI_PLACE_PORT ? tni_vec_at(&f->c->ports, root->port) : NULL;

    return port && port->kind == TNI_PORT_INPUT && f->c->spec->constants[port->index] &&
           !f->written[tni_code_root(f->c, value)];
}

/* The dimension of the output that the rows of the weight make; -1: not such a layer. */
static int32_t channel_axis(const tni_instruction *in, int32_t ndim)
{
    if (!strcmp(in->def->op->name, "FullyConnected"))
        return ndim - 1;
    if (strcmp(in->def->op->name, "Convolution") != 0)
        return -1;
    switch (tni_attr_int(in->attrs->values, TN_Convolution_layout)) {
    case TN_Convolution_layout_NHWC:
    case TN_Convolution_layout_NDHWC:
        return ndim - 1;
    default:
        return 1;
    }
}

/* Nobody sees what a value holds but the one instruction that reads it. */
static bool private(const folder *f, uint32_t value)
{
    const tni_value *v = tni_code_value(f->c, value);

    return f->readers[value] == 1 && v->place == TNI_PLACE_NONE && v->root == value && v->def != TNI_NONE;
}

static bool unread(const folder *f, uint32_t value)
{
    return !f->readers[value] && tni_code_value(f->c, value)->place == TNI_PLACE_NONE;
}

/* The device has kernels that fold. */
static bool kernels_there(const tni_code *c, tni_device *device)
{
    static const char *const ops[] = {"_fold_weight", "_fold_bias"};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const tni_opdef *def = NULL;
        uint32_t count = 0, prompt = 0;

        if (tni_opset_find(tni_selector_ops(c->selector), ops[i], &def) ||
            tni_select_count(c->selector, def, device, &count, &prompt) || !prompt)
            return false;
    }
    return true;
}

/* The layer that BatchNorm `index` can go into; TNI_NONE. */
static uint32_t layer_of(const folder *f, uint32_t index)
{
    const tni_instruction *norm = tni_code_at(f->c, index), *layer;
    const uint32_t *in = tni_code_operands(f->c, norm), *out = in + norm->in_count;
    const tni_value *data = tni_code_value(f->c, in[0]);
    int64_t axis;

    if (strcmp(norm->def->op->name, "BatchNorm") != 0 || norm->link_count || norm->in_count != 5 ||
        !private(f, in[0]) || !unread(f, out[1]) || !unread(f, out[2]) ||
        tni_code_modes(f->c, norm)[norm->in_count] != TN_MODE_WRITE)
        return TNI_NONE;
    axis = tni_attr_int(norm->attrs->values, TN_BatchNorm_axis);
    layer = tni_code_at(f->c, data->def);
    if ((axis < 0 ? axis + data->tensor.ndim : axis) != channel_axis(layer, data->tensor.ndim) ||
        layer->link_count || !tni_dtype_is_float(data->tensor.dtype))
        return TNI_NONE;
    if (!kernels_there(f->c, data->device) || tni_code_value(f->c, in[1])->device != data->device)
        return TNI_NONE;
    for (uint32_t k = 1; k < 5; k++)
        if (!constant(f, in[k]))
            return TNI_NONE;
    for (uint32_t k = 0; k < layer->in_count; k++)
        if (k ? !constant(f, tni_code_operands(f->c, layer)[k])
              : f->written[tni_code_root(f->c, tni_code_operands(f->c, layer)[k])])
            return TNI_NONE;
    return data->def;
}

static bool find(folder *f)
{
    bool any = false;

    for (uint32_t i = 0; i < f->c->code.count; i++) {
        const uint32_t layer = layer_of(f, i);

        if (layer == TNI_NONE || f->gone[layer])
            continue;
        f->layer[i] = layer + 1;
        f->gone[layer] = 1;
        any = true;
    }
    return any;
}

/* ---- how -------------------------------------------------------------------------------------------- */

/* A helper of the BatchNorm with its eps and fix_gamma, and `texts` (2 or none), and one fresh result of the
 * shape of `like`, of type `dtype`. */
static tn_status helper_add(folder *f, uint32_t index, const char *op, const tn_attr_text *texts,
                            uint32_t in_count, const uint32_t *in, uint32_t like, int32_t dtype,
                            uint32_t *out)
{
    tni_value shape = *tni_code_value(f->c, like);
    uint32_t operands[6];
    const uint8_t modes[6] = {[5] = TN_MODE_WRITE};
    tni_instruction made;
    tni_attrs *attrs = NULL;
    tn_status st;

    shape.tensor.bytes = shape.tensor.bytes / tn_dtype_bytes(shape.tensor.dtype) * tn_dtype_bytes(dtype);
    shape.tensor.dtype = dtype;
    if ((st = tni_code_helper(f->c, op, index, &made)))
        return st;
    made.in_count = in_count;
    if (!(st = tni_attrs_inherit(made.def, tni_code_at(f->c, index)->attrs, texts ? 2 : 0, texts, &attrs)) &&
        !(st = tni_code_value_add(f->c, &shape, out))) {
        tni_attrs_release(made.attrs);
        made.attrs = attrs; /* moved */
        attrs = NULL;
        memcpy(operands, in, in_count * sizeof *in);
        operands[in_count] = *out;
        st = tni_edit_add(&f->e, &made, operands, modes + (5 - in_count));
    }
    tni_attrs_release(attrs);
    if (st)
        tni_instruction_fini(&made);
    return st;
}

/* The layer with the folded weight and bias, writing what the BatchNorm would. */
static tn_status layer_add(folder *f, uint32_t layer, uint32_t weight, uint32_t bias, uint32_t out)
{
    static const tn_attr_text with_bias = {"no_bias", "False"};
    tni_instruction made = *tni_code_at(f->c, layer);
    const uint32_t operands[4] = {tni_code_operands(f->c, &made)[0], weight, bias, out};
    const uint8_t modes[4] = {[3] = TN_MODE_WRITE};
    tn_status st;

    made.in_count = 3;
    made.out_count = 1;
    made.flags |= TNI_CODE_FRESH;
    if ((st = tni_attrs_inherit(made.def, tni_code_at(f->c, layer)->attrs, 1, &with_bias, &made.attrs)))
        return st;
    if ((st = tni_edit_add(&f->e, &made, operands, modes)))
        tni_instruction_fini(&made);
    return st;
}

static tn_status norm_fold(folder *f, uint32_t index, uint32_t layer)
{
    const tni_instruction norm = *tni_code_at(f->c, index), of = *tni_code_at(f->c, layer);
    const uint32_t *n = tni_code_operands(f->c, &norm), *l = tni_code_operands(f->c, &of);
    const uint32_t for_weight[] = {l[1], n[1], n[4]},
                   for_bias[] = {n[1], n[2], n[3], n[4], of.in_count > 2 ? l[2] : 0};
    const int32_t dtype = tni_code_value(f->c, l[1])->tensor.dtype; /* statistics may be wider */
    const tn_attr_text texts[] = {{"no_bias", of.in_count > 2 ? "False" : "True"},
                                  {"dtype", tni_dtype_name(dtype)}};
    const uint32_t out = n[norm.in_count];
    uint32_t weight = 0, bias = 0;
    tn_status st;

    if ((st = helper_add(f, index, "_fold_weight", NULL, 3, for_weight, l[1], dtype, &weight)) ||
        (st = helper_add(f, index, "_fold_bias", texts, of.in_count > 2 ? 5 : 4, for_bias, n[1], dtype,
                         &bias)) ||
        (st = layer_add(f, layer, weight, bias, out)))
        return st;
    f->c->rewrites++;
    return tni_edit_drop(&f->e, index);
}

static tn_status all_fold(folder *f)
{
    tn_status st = TN_OK;

    tni_edit_begin(&f->e, f->c);
    for (uint32_t i = 0; i < f->c->code.count && !st; i++)
        if (f->layer[i])
            st = norm_fold(f, i, f->layer[i] - 1);
        else
            st = f->gone[i] ? tni_edit_drop(&f->e, i) : tni_edit_keep(&f->e, i);
    return tni_edit_end(&f->e, st);
}

tn_status tni_pass_fold(tni_code *c)
{
    folder f = {.c = c};
    tn_status st;

    if (!c->spec->constants || c->spec->flags & TN_NODE_TRAIN)
        return TN_OK;
    f.layer = tni_calloc(c->code.count + 1, sizeof *f.layer);
    f.gone = tni_calloc(c->code.count + 1, 1);
    st = f.layer && f.gone ? TN_OK : TN_E_NOMEM;
    if (!st && !(st = tni_code_readers(c, &f.readers)) && !(st = tni_code_written(c, &f.written)) && find(&f))
        st = all_fold(&f);
    tni_free(f.layer);
    tni_free(f.gone);
    tni_free(f.readers);
    tni_free(f.written);
    return st;
}
