/*
 * Vendor fusion: a layer, the sum and the activation behind it become one instruction, where some loaded
 * plugin has a kernel for it. It stands where the last of them stood, so that the addend is there. What is
 * recorded is left alone, since gradients of gradients may read any value in it, but for a dense layer of
 * 16-bit floats and its sum: no gradient reads what is between these.
 */
#include <string.h>

#include "compile/code.h"

typedef struct fuser {
    tni_code *c;
    tni_edit e;
    bool recorded;
    uint32_t *readers, *reader; /* per value: how many; the last instruction that reads it itself, and 1 */
    uint8_t *written, *forwards;
    uint8_t *taken; /* per instruction: part of a fused one */
    tni_vec chains; /* chain, by `end` in no order */
    uint32_t *at;   /* per instruction: the chain that ends there, +1 */
} fuser;

typedef struct chain {
    uint32_t layer, sum, act; /* instructions; TNI_NONE: not there */
    uint32_t addend;          /* value */
    tni_attrs *attrs;
    const tni_opdef *def;
} chain;

/* Which layers, into what. */
static const struct {
    const char *op, *fused;
    bool recorded;
} layers[] = {{"Convolution", "_fused_conv", false}, {"FullyConnected", "_fused_dense", true}};

/* Activations: where attribute `attr` is `value` (NULL: always), the fused act_type; numbers taken over. */
static const struct activation {
    const char *op, *attr, *value, *act_type;
    const char *numbers[2];
} activations[] = {
    {"Activation", "act_type", "relu", "relu", {NULL}},
    {"Activation", "act_type", "sigmoid", "sigmoid", {NULL}},
    {"Activation", "act_type", "tanh", "tanh", {NULL}},
    {"Activation", "act_type", "softrelu", "softrelu", {NULL}},
    {"relu", NULL, NULL, "relu", {NULL}},
    {"sigmoid", NULL, NULL, "sigmoid", {NULL}},
    {"tanh", NULL, NULL, "tanh", {NULL}},
    {"clip", NULL, NULL, "clip", {"a_min", "a_max"}},
    {"LeakyReLU", "act_type", "leaky", "leaky", {"slope", NULL}},
};

static const char *const sums[] = {"elemwise_add", "broadcast_add"};

/* ---- matching --------------------------------------------------------------------------------------- */

static tn_status attr_text(const tni_instruction *in, const char *name, tni_str *out)
{
    const int32_t i = tni_attr_index(in->def, name);

    return i < 0 ? TN_E_ATTR : tni_attr_format(&in->def->op->attrs[i], in->attrs->values[i], out);
}

static const struct activation *activation_of(const tni_instruction *in)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        const struct activation *a = &activations[i];
        bool fits = !strcmp(in->def->op->name, a->op);
        tni_str text;

        if (fits && a->attr) {
            tni_str_init(&text, 256);
            fits = !attr_text(in, a->attr, &text) && text.text && !strcmp(text.text, a->value);
            tni_str_fini(&text);
        }
        if (fits)
            return a;
    }
    return NULL;
}

/* The one instruction that reads the result of instruction `index`, which nobody else sees; TNI_NONE. */
static uint32_t follower(const fuser *f, uint32_t index)
{
    const tni_instruction *in = tni_code_at(f->c, index), *next;
    const uint32_t out = tni_code_operands(f->c, in)[in->in_count];
    const tni_value *v = tni_code_value(f->c, out);
    uint32_t at;

    if (in->out_count != 1 || f->readers[out] != 1 || !f->reader[out] || v->place != TNI_PLACE_NONE ||
        v->root != out || tni_code_modes(f->c, in)[in->in_count] != TN_MODE_WRITE)
        return TNI_NONE;
    at = f->reader[out] - 1;
    next = tni_code_at(f->c, at);
    return f->taken[at] || next->link_count || f->forwards[next->node] || next->out_count != 1 ||
                   tni_instruction_phase(next) != tni_instruction_phase(in) || next->flags & TNI_CODE_HELPER
               ? TNI_NONE
               : at;
}

static bool like(const tni_code *c, uint32_t a, uint32_t b)
{
    const tn_tensor *x = &tni_code_value(c, a)->tensor, *y = &tni_code_value(c, b)->tensor;

    return x->dtype == y->dtype && x->ndim == y->ndim && x->ndim >= 0 &&
           !memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape);
}

/* The other input of a sum that `index` goes into; TNI_NONE: it is none. */
static uint32_t addend_of(const fuser *f, uint32_t index, uint32_t sum)
{
    const tni_instruction *in = tni_code_at(f->c, index), *add = tni_code_at(f->c, sum);
    const uint32_t out = tni_code_operands(f->c, in)[in->in_count], *of = tni_code_operands(f->c, add);
    bool adds = false;
    uint32_t other;

    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        adds |= !strcmp(add->def->op->name, sums[i]);
    if (!adds || add->in_count != 2)
        return TNI_NONE;
    other = of[of[0] == out];
    return other != out && like(f->c, out, other) && like(f->c, out, of[2]) &&
                   !f->written[tni_code_root(f->c, other)]
               ? other
               : TNI_NONE;
}

static uint32_t chain_end(const chain *k)
{
    return k->act != TNI_NONE ? k->act : k->sum;
}

/* ---- asking ----------------------------------------------------------------------------------------- */

static tn_status chain_attrs(const fuser *f, chain *k, const char *fused)
{
    const tni_instruction *act = k->act == TNI_NONE ? NULL : tni_code_at(f->c, k->act);
    const struct activation *a = act ? activation_of(act) : NULL;
    tn_attr_text texts[4] = {{"with_sum", k->sum == TNI_NONE ? "False" : "True"},
                             {"act_type", a ? a->act_type : "None"}};
    uint32_t count = 2;
    tni_str numbers[2];
    tn_status st = tni_opset_find(tni_selector_ops(f->c->selector), fused, &k->def);

    for (int i = 0; i < 2; i++) {
        tni_str_init(&numbers[i], 256);
        if (!st && a && a->numbers[i] && !(st = attr_text(act, a->numbers[i], &numbers[i])))
            texts[count++] = (tn_attr_text){a->numbers[i], numbers[i].text};
    }
    if (!st)
        st = tni_attrs_inherit(k->def, tni_code_at(f->c, k->layer)->attrs, count, texts, &k->attrs);
    for (int i = 0; i < 2; i++)
        tni_str_fini(&numbers[i]);
    return st;
}

/* Operands of the fused instruction: of the layer, the addend, what the last one writes. */
static uint32_t chain_operands(const fuser *f, const chain *k, uint32_t *operands, uint8_t *modes)
{
    const tni_instruction *layer = tni_code_at(f->c, k->layer), *end = tni_code_at(f->c, chain_end(k));
    uint32_t count = layer->in_count;

    memcpy(operands, tni_code_operands(f->c, layer), count * sizeof *operands);
    if (k->sum != TNI_NONE)
        operands[count++] = k->addend;
    memset(modes, TN_MODE_NONE, count);
    operands[count] = tni_code_operands(f->c, end)[end->in_count];
    modes[count] = tni_code_modes(f->c, end)[end->in_count];
    return count;
}

static void chain_instruction(const fuser *f, const chain *k, uint32_t in_count, tni_instruction *out)
{
    *out = *tni_code_at(f->c, k->layer);
    out->def = k->def;
    out->attrs = k->attrs;
    out->in_count = in_count;
    out->flags |= TNI_CODE_FRESH;
}

/* Is there a kernel for it? Fills in its attributes if so. */
static tn_status chain_ask(fuser *f, chain *k, const char *fused, bool *served)
{
    uint32_t operands[6];
    uint8_t modes[6];
    tni_instruction made;
    tn_status st = chain_attrs(f, k, fused);

    *served = false;
    if (st)
        return st;
    chain_instruction(f, k, chain_operands(f, k, operands, modes), &made);
    st = tni_code_servable(f->c, &made, operands, modes);
    *served = !st;
    if (*served)
        return TN_OK;
    tni_attrs_release(k->attrs);
    k->attrs = NULL;
    if (st == TN_E_NOMEM)
        return st;
    tni_error_clear();
    return TN_OK;
}

static tn_status chain_take(fuser *f, const chain *k)
{
    tn_status st = tni_vec_push(&f->chains, k);

    if (st)
        return st;
    f->taken[k->layer] = 1;
    if (k->sum != TNI_NONE)
        f->taken[k->sum] = 1;
    if (k->act != TNI_NONE)
        f->taken[k->act] = 1;
    f->at[chain_end(k)] = (uint32_t)f->chains.count;
    f->c->rewrites++;
    return TN_OK;
}

static bool short_of(const fuser *f, uint32_t index)
{
    const tni_instruction *in = tni_code_at(f->c, index);
    const int32_t dtype = tni_code_value(f->c, tni_code_operands(f->c, in)[in->in_count])->tensor.dtype;

    return dtype == TN_F16 || dtype == TN_BF16;
}

/* The longest chain that somebody serves. */
static tn_status layer_fuse(fuser *f, uint32_t index, const char *fused)
{
    chain tries[3], *end = tries;
    const uint32_t next = follower(f, index);
    uint32_t addend, after;
    bool served = false;
    tn_status st = TN_OK;

    if (next == TNI_NONE || (f->recorded && !short_of(f, index)))
        return TN_OK;
    addend = addend_of(f, index, next);
    if (activation_of(tni_code_at(f->c, next)) && !f->recorded) {
        *end++ = (chain){.layer = index, .sum = TNI_NONE, .act = next};
    } else if (addend != TNI_NONE) {
        after = f->recorded ? TNI_NONE : follower(f, next);
        if (after != TNI_NONE && activation_of(tni_code_at(f->c, after)))
            *end++ = (chain){.layer = index, .sum = next, .act = after, .addend = addend};
        *end++ = (chain){.layer = index, .sum = next, .act = TNI_NONE, .addend = addend};
    }
    for (chain *k = tries; k < end && !st && !served; k++)
        if (!(st = chain_ask(f, k, fused, &served)) && served && (st = chain_take(f, k)))
            tni_attrs_release(k->attrs);
    return st;
}

/* Inputs of a layer that moves down must not be written on the way. What backward computes again stays. */
static bool movable(const fuser *f, const tni_instruction *in)
{
    for (uint32_t k = 0; k < in->in_count; k++)
        if (f->written[tni_code_root(f->c, tni_code_operands(f->c, in)[k])])
            return false;
    return !in->link_count && in->in_count <= 3 &&
           (f->recorded ? !(f->c->p->graph->nodes[in->node].flags & TNI_GNODE_MIRROR)
                        : !f->forwards[in->node]);
}

static tn_status chains_find(fuser *f)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < f->c->code.count && !st; i++) {
        const tni_instruction *in = tni_code_at(f->c, i);

        for (size_t l = 0; l < sizeof layers / sizeof *layers && !st; l++)
            if (!f->taken[i] && (layers[l].recorded || !f->recorded) &&
                !strcmp(in->def->op->name, layers[l].op) && movable(f, in))
                st = layer_fuse(f, i, layers[l].fused);
    }
    return st;
}

/* ---- rewriting -------------------------------------------------------------------------------------- */

static tn_status chain_add(fuser *f, chain *k)
{
    uint32_t operands[6];
    uint8_t modes[6];
    tni_instruction made;
    tn_status st;

    chain_instruction(f, k, chain_operands(f, k, operands, modes), &made);
    if ((st = tni_edit_add(&f->e, &made, operands, modes)))
        return st;
    k->attrs = NULL; /* moved */
    return TN_OK;
}

static tn_status chains_put(fuser *f)
{
    tn_status st = TN_OK;

    tni_edit_begin(&f->e, f->c);
    for (uint32_t i = 0; i < f->c->code.count && !st; i++) {
        if (f->at[i])
            st = chain_add(f, tni_vec_at(&f->chains, f->at[i] - 1));
        if (!st)
            st = f->taken[i] ? tni_edit_drop(&f->e, i) : tni_edit_keep(&f->e, i);
    }
    return tni_edit_end(&f->e, st);
}

static void fuser_fini(fuser *f)
{
    for (uint32_t i = 0; i < f->chains.count; i++)
        tni_attrs_release(((chain *)tni_vec_at(&f->chains, i))->attrs);
    tni_vec_fini(&f->chains);
    tni_free(f->readers);
    tni_free(f->reader);
    tni_free(f->written);
    tni_free(f->forwards);
    tni_free(f->taken);
    tni_free(f->at);
}

static tn_status fuser_init(fuser *f, tni_code *c)
{
    tn_status st;

    *f = (fuser){.c = c, .recorded = (c->spec->flags & TN_NODE_RECORDED) != 0};
    tni_vec_init(&f->chains, sizeof(chain), c->code.max);
    f->reader = tni_calloc(c->values.count + 1, sizeof *f->reader);
    f->taken = tni_calloc(c->code.count + 1, 1);
    f->at = tni_calloc(c->code.count + 1, sizeof *f->at);
    if (!f->reader || !f->taken || !f->at)
        return TN_E_NOMEM;
    if ((st = tni_code_readers(c, &f->readers)) || (st = tni_code_written(c, &f->written)) ||
        (st = tni_code_forwards(c, &f->forwards)))
        return st;
    for (uint32_t i = 0; i < c->code.count; i++)
        for (uint32_t k = 0; k < tni_code_at(c, i)->in_count; k++)
            f->reader[tni_code_operands(c, tni_code_at(c, i))[k]] = i + 1;
    return TN_OK;
}

/* Some plugin has a kernel of a fused layer: most have none, and then there is nothing to look for. */
static bool anyone(const tni_code *c)
{
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) {
        const tni_opdef *def = NULL;
        uint32_t count = 0, prompt = 0;

        if (!tni_opset_find(tni_selector_ops(c->selector), layers[l].fused, &def) &&
            !tni_select_count(c->selector, def, c->spec->device, &count, &prompt) && count)
            return true;
    }
    return false;
}

tn_status tni_pass_fuse(tni_code *c)
{
    fuser f;
    tn_status st;

    if (!anyone(c))
        return TN_OK;
    if (!(st = fuser_init(&f, c)) && !(st = chains_find(&f)) && f.chains.count)
        st = chains_put(&f);
    fuser_fini(&f);
    return st;
}
