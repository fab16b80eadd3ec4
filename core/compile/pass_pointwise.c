/*
 * Pointwise fusion: instructions that read each other's results, element by element, become one of operator
 * _fused_pointwise. It stands where the last of them stood. A result that somebody else reads, or that lies
 * at a port, is an output of it; the others are never in memory.
 *
 * Taken are instructions whose kernel says TN_KERNEL_POINTWISE, and those that run by a body: the fused
 * kernel of the same plugin gives their bits. Between the first of a group and its last, nobody else reads
 * what the group makes, and nobody writes what it reads, so their order is of no matter. All that a group
 * reads and makes may lie in one private layout, if it is POINTWISE.
 */
#include <string.h>

#include "compile/code.h"
#include "compile/select.h"
#include "tenon/plugin/op/fused.h"

#define MEMBERS_MAX TN_POINT_STEPS_MAX
#define REACH 32u /* instructions between two members: beyond that, what they read would live too long */
#define RUN_FIRST TN_fused_pointwise_r0
#define RUN_MAX (TN_fused_pointwise_r15 - TN_fused_pointwise_r0 + 1)

typedef struct group {
    uint32_t count, steps, numbers; /* numbers: run-time attributes */
    uint32_t member[MEMBERS_MAX];   /* instructions, ascending */
    bool open, served, added;
    tni_instruction made; /* if it is served */
    uint32_t operands[TN_POINT_INPUTS_MAX + TN_POINT_OUTPUTS_MAX];
    uint8_t modes[TN_POINT_INPUTS_MAX + TN_POINT_OUTPUTS_MAX];
} group;

typedef struct fuser {
    tni_code *c;
    tni_edit e;
    const tni_opdef *def; /* _fused_pointwise */
    uint32_t *readers;    /* per value: how often it is read */
    uint8_t *written;
    uint32_t *group_of;           /* per instruction: its group, and 1 */
    tni_vec groups;               /* group * */
    tn_point_code *code;          /* of the group under way */
    uint32_t result[MEMBERS_MAX]; /* of its members: their values there */
    tn_value number[RUN_MAX];
    uint32_t numbers;
} fuser;

static group *group_at(const fuser *f, uint32_t index)
{
    return *(group **)tni_vec_at(&f->groups, index);
}

/* ---- members --------------------------------------------------------------------------------------- */

static bool dense(const fuser *f, uint32_t value)
{
    const tn_tensor *t = &tni_code_value(f->c, value)->tensor;

    return (!t->layout || t->layout->flags & TN_LAYOUT_POINTWISE) && t->storage == TN_STORAGE_DENSE &&
           t->ndim >= 0 && tn_tensor_count(t) > 0 && !(tni_code_value(f->c, value)->flags & TNI_VALUE_BLOCK);
}

static uint32_t result_of(const fuser *f, uint32_t index)
{
    const tni_instruction *in = tni_code_at(f->c, index);

    return tni_code_operands(f->c, in)[in->in_count];
}

/* It runs by its definition's body. */
static bool by_body(const fuser *f, const tni_instruction *in)
{
    return in->def->body && !strcmp(in->prepared->kernel->op, f->def->op->name);
}

/* Kernels get the attributes of steps as values: no text, no tuples; what changes from call to call is a
 * float. */
static bool attrs_plain(const tni_instruction *in, uint32_t *numbers)
{
    const tni_opdef *def = in->def;

    *numbers = 0;
    for (uint32_t a = 0; a < def->attr_count; a++) {
        const tn_attr_def *d = &def->op->attrs[a];

        *numbers += (d->flags & TN_ATTR_F_RUNTIME) != 0;
        if (d->flags & TN_ATTR_F_RUNTIME ? d->type != TN_ATTR_T_FLOAT
                                         : d->type > TN_ATTR_T_CHOICE && in->attrs->values[a])
            return false;
    }
    return def->attr_count <= TN_POINT_ATTRS_MAX;
}

/* Results of short types are rounded before they are added: pass addto has seen to that. */
static bool result_plain(const fuser *f, uint32_t index)
{
    const tni_instruction *in = tni_code_at(f->c, index);
    const uint32_t out = result_of(f, index);
    const tni_value *v = tni_code_value(f->c, out);
    const uint8_t mode = tni_code_modes(f->c, in)[in->in_count];

    if (v->root != out || v->def != index || !dense(f, out) ||
        !tni_is_row_major(v->tensor.ndim, v->tensor.shape, v->tensor.stride))
        return false;
    if (mode == TN_MODE_ADD)
        return v->place == TNI_PLACE_PORT && in->prepared->adds;
    return mode == TN_MODE_WRITE && !f->written[out];
}

/* Nobody writes it behind its maker. The old value of a gradient lies where the new one will. */
static bool operand_plain(const fuser *f, uint32_t value)
{
    const tni_value *root = tni_code_value(f->c, tni_code_root(f->c, value));
    const tni_port *port = root->place == TNI_PLACE_PORT ? tni_vec_at(&f->c->ports, root->port) : NULL;

    return !f->written[root->root] && dense(f, value) && root->place != TNI_PLACE_SHAPE &&
           !(port && port->kind == TNI_PORT_GRADIENT && root->def == TNI_NONE);
}

static const tn_layout *layout_of(const fuser *f, uint32_t value)
{
    return tni_code_value(f->c, value)->tensor.layout;
}

static bool fusable(const fuser *f, uint32_t index)
{
    const tni_instruction *in = tni_code_at(f->c, index);
    uint32_t numbers;

    if (in->kind != TN_EXEC_KERNEL || !in->prepared || in->in_count < 1 ||
        in->in_count > TN_POINT_OPERANDS_MAX || in->out_count != 1 || in->def->op->effects ||
        in->def->op->mutates || in->random != TNI_NONE || in->workspace != TNI_NONE ||
        in->saved != TNI_NONE || in->flags & (TNI_CODE_AGAIN | TNI_CODE_REORDER | TNI_CODE_SKIP_EMPTY) ||
        in->prepared->on_host || in->prepared->dense || strlen(in->def->op->name) >= TN_POINT_NAME_MAX)
        return false;
    if (!(in->prepared->kernel->flags & TN_KERNEL_POINTWISE) && !by_body(f, in))
        return false;
    for (uint32_t k = 0; k < in->in_count; k++)
        if (!operand_plain(f, tni_code_operands(f->c, in)[k]) ||
            layout_of(f, tni_code_operands(f->c, in)[k]) != layout_of(f, result_of(f, index)))
            return false;
    return attrs_plain(in, &numbers) && result_plain(f, index);
}

static bool alike(const fuser *f, uint32_t a, uint32_t b)
{
    const tni_instruction *x = tni_code_at(f->c, a), *y = tni_code_at(f->c, b);
    const tn_tensor *s = &tni_code_value(f->c, result_of(f, a))->tensor,
                    *t = &tni_code_value(f->c, result_of(f, b))->tensor;

    return tni_code_device(f->c, x) == tni_code_device(f->c, y) &&
           tni_instruction_phase(x) == tni_instruction_phase(y) &&
           x->prepared->plugin == y->prepared->plugin && s->ndim == t->ndim && s->layout == t->layout &&
           !memcmp(s->shape, t->shape, (size_t)s->ndim * sizeof *s->shape);
}

/* ---- groups ---------------------------------------------------------------------------------------- */

/* The open group that makes `value`; TNI_NONE. Views of its results count. */
static uint32_t maker_of(const fuser *f, uint32_t value)
{
    const uint32_t def = tni_code_value(f->c, tni_code_root(f->c, value))->def,
                   at = def == TNI_NONE ? 0 : f->group_of[def];

    return at && group_at(f, at - 1)->open ? at - 1 : TNI_NONE;
}

static uint32_t steps_of(const tni_instruction *in)
{
    tn_point_code code;

    if (!in->def->body)
        return 1;
    tni_body_code(in->def, in->attrs, 0, &code);
    return code.step_count;
}

static tn_status group_start(fuser *f, uint32_t index)
{
    group *g = tni_zalloc(sizeof *g);
    tn_status st = g ? tni_vec_push(&f->groups, &g) : TN_E_NOMEM;

    if (st) {
        tni_free(g);
        return st;
    }
    *g = (group){.count = 1, .member = {index}, .open = true};
    g->steps = by_body(f, tni_code_at(f->c, index)) ? steps_of(tni_code_at(f->c, index)) : 1;
    (void)attrs_plain(tni_code_at(f->c, index), &g->numbers);
    f->group_of[index] = (uint32_t)f->groups.count;
    return TN_OK;
}

/* Different values from outside that the members of the two read. */
static uint32_t inputs_count(const fuser *f, const uint32_t *member, uint32_t count, uint32_t a, uint32_t b)
{
    uint32_t found[TN_POINT_INPUTS_MAX], n = 0;

    for (uint32_t m = 0; m < count; m++) {
        const tni_instruction *in = tni_code_at(f->c, member[m]);

        for (uint32_t k = 0; k < in->in_count; k++) {
            const uint32_t v = tni_code_operands(f->c, in)[k], def = tni_code_value(f->c, v)->def;
            uint32_t i = 0;

            if (def != TNI_NONE && (f->group_of[def] == a + 1 || f->group_of[def] == b + 1))
                continue;
            while (i < n && found[i] != v)
                i++;
            if (i < n)
                continue;
            if (n == TN_POINT_INPUTS_MAX)
                return n + 1;
            found[n++] = v;
        }
    }
    return n;
}

/* Group `from` goes into `to`: members stay in order. */
static bool group_join(fuser *f, uint32_t to, uint32_t from)
{
    group *a = group_at(f, to), *b = group_at(f, from);
    const uint32_t count = a->count + b->count;
    uint32_t merged[MEMBERS_MAX], i = 0, k = 0;

    if (count > MEMBERS_MAX || a->steps + b->steps > TN_POINT_STEPS_MAX ||
        a->numbers + b->numbers > RUN_MAX || !alike(f, a->member[0], b->member[0]))
        return false;
    for (uint32_t m = 0; m < count; m++)
        merged[m] =
            k == b->count || (i < a->count && a->member[i] < b->member[k]) ? a->member[i++] : b->member[k++];
    if (inputs_count(f, merged, count, to, from) > TN_POINT_INPUTS_MAX)
        return false;
    for (uint32_t m = 0; m < b->count; m++)
        f->group_of[b->member[m]] = to + 1;
    memcpy(a->member, merged, count * sizeof *merged);
    a->count = count;
    a->steps += b->steps;
    a->numbers += b->numbers;
    b->count = 0;
    b->open = false;
    return true;
}

/* A view of what a group makes cannot be read within it. */
static void views_close(const fuser *f, const tni_instruction *in)
{
    for (uint32_t k = 0; k < in->in_count; k++) {
        const uint32_t value = tni_code_operands(f->c, in)[k], made = maker_of(f, value);

        if (made != TNI_NONE && tni_code_root(f->c, value) != value)
            group_at(f, made)->open = false;
    }
}

/* Groups whose results the instruction reads take it in, or take in no more. */
static tn_status instruction_place(fuser *f, uint32_t index)
{
    const tni_instruction *in = tni_code_at(f->c, index);
    const bool fits = fusable(f, index);
    const tn_status st = fits ? group_start(f, index) : TN_OK;

    views_close(f, in);
    for (uint32_t k = 0; k < in->in_count && !st; k++) {
        const uint32_t made = maker_of(f, tni_code_operands(f->c, in)[k]),
                       own = fits ? f->group_of[index] - 1 : TNI_NONE;
        group *g = made == TNI_NONE ? NULL : group_at(f, made);

        if (!g || made == own)
            continue;
        if (!fits || index - g->member[g->count - 1] > REACH || !group_join(f, own, made))
            g->open = false;
    }
    return st;
}

/* ---- the instruction of a group -------------------------------------------------------------------- */

/* The place of a value in the code: a result, or an input, which it becomes. */
static uint32_t place_of(fuser *f, group *g, uint32_t value)
{
    uint32_t i = 0;

    for (uint32_t m = 0; m < g->count; m++)
        if (result_of(f, g->member[m]) == value && g->member[m] == tni_code_value(f->c, value)->def)
            return f->result[m];
    while (i < f->code->input_count && g->operands[i] != value)
        i++;
    if (i == f->code->input_count)
        g->operands[f->code->input_count++] = value;
    return i;
}

/* What changes from call to call keeps its source, and its value of now. */
static tn_status number_add(fuser *f, group *g, const tni_instruction *in, uint32_t attr, uint32_t *run)
{
    tn_status st = TN_OK;

    *run = RUN_FIRST + f->numbers;
    f->number[f->numbers++] = in->attrs->values[attr];
    for (uint32_t l = in->first_link; l < in->first_link + in->link_count && !st; l++) {
        tni_attr_link link = *(tni_attr_link *)tni_vec_at(&f->c->links, l);

        if (link.to != attr)
            continue;
        link.to = *run;
        st = tni_vec_push(&f->c->links, &link);
        g->made.link_count++;
    }
    return st;
}

/* The steps of a member: itself, or its body's. */
static tn_status member_code(fuser *f, const tni_instruction *in, tn_point_code *out)
{
    tn_point_step *s = out->step;

    if (by_body(f, in)) {
        tni_body_code(in->def, in->attrs, tni_code_value(f->c, tni_code_operands(f->c, in)[0])->tensor.dtype,
                      out);
        return TN_OK;
    }
    out->step_count = out->output_count = 1;
    out->output[0] = TN_POINT_RESULT;
    *s = (tn_point_step){.operand_count = in->in_count, .attr_count = in->def->attr_count};
    (void)snprintf(s->op, sizeof s->op, "%s", in->def->op->name);
    s->dtype = tni_code_value(f->c, tni_code_operands(f->c, in)[in->in_count])->tensor.dtype;
    for (uint32_t k = 0; k < in->in_count; k++)
        s->operand[k] = k;
    for (uint32_t a = 0; a < s->attr_count; a++) {
        s->run[a] = in->def->op->attrs[a].flags & TN_ATTR_F_RUNTIME ? a : TN_POINT_NUMBER;
        s->attrs[a] = s->run[a] == TN_POINT_NUMBER ? in->attrs->values[a] : 0;
    }
    return TN_OK;
}

static tn_status member_add(fuser *f, group *g, uint32_t m)
{
    const tni_instruction *in = tni_code_at(f->c, g->member[m]);
    const uint32_t base = f->code->step_count;
    tn_point_code own;
    tn_status st = member_code(f, in, &own);

    for (uint32_t s = 0; s < own.step_count && !st; s++) {
        tn_point_step *step = &f->code->step[f->code->step_count++];

        *step = own.step[s];
        for (uint32_t k = 0; k < step->operand_count; k++)
            step->operand[k] = step->operand[k] < TN_POINT_RESULT
                                   ? place_of(f, g, tni_code_operands(f->c, in)[step->operand[k]])
                                   : step->operand[k] + base;
        for (uint32_t a = 0; a < step->attr_count && !st; a++)
            if (step->run[a] != TN_POINT_NUMBER)
                st = number_add(f, g, in, step->run[a], &step->run[a]);
    }
    f->result[m] = own.output[0] + base;
    return st;
}

/* Members that read the value. */
static uint32_t reads_inside(const fuser *f, const group *g, uint32_t value)
{
    uint32_t reads = 0;

    for (uint32_t m = 0; m < g->count; m++) {
        const tni_instruction *in = tni_code_at(f->c, g->member[m]);

        for (uint32_t k = 0; k < in->in_count; k++)
            reads += tni_code_operands(f->c, in)[k] == value;
    }
    return reads;
}

/* Results that others read. False: there are none, or too many. */
static bool outputs_add(fuser *f, group *g)
{
    tn_point_code *code = f->code;

    for (uint32_t m = 0; m < g->count; m++) {
        const uint32_t value = result_of(f, g->member[m]);
        const tni_instruction *in = tni_code_at(f->c, g->member[m]);

        if (f->readers[value] <= reads_inside(f, g, value))
            continue;
        if (code->output_count == TN_POINT_OUTPUTS_MAX)
            return false;
        g->operands[code->input_count + code->output_count] = value;
        g->modes[code->input_count + code->output_count] = tni_code_modes(f->c, in)[in->in_count];
        code->output[code->output_count++] = f->result[m];
    }
    return code->output_count > 0;
}

static tn_status attrs_make(const fuser *f, tni_attrs **out)
{
    tni_attrs *attrs = NULL, *with = NULL;
    tn_status st = tni_point_attrs(tni_selector_ops(f->c->selector), f->code, &attrs);

    for (uint32_t i = 0; i < f->numbers && !st; i++) {
        if (!(st = tni_attrs_with(attrs, RUN_FIRST + i, f->number[i], &with))) {
            tni_attrs_release(attrs);
            attrs = with;
        }
    }
    if (st)
        tni_attrs_release(attrs);
    else
        *out = attrs;
    return st;
}

/* A kernel of the members' plugin computes it. */
static tn_status group_ask(fuser *f, group *g)
{
    const tni_instruction *last = tni_code_at(f->c, g->member[g->count - 1]);
    const tni_plugin *plugin = last->prepared->plugin;
    tn_status st = attrs_make(f, &g->made.attrs);

    if (st)
        return st;
    st = tni_code_prepare(f->c, &g->made, g->operands, g->modes);
    g->served = !st && g->made.prepared->plugin == plugin && g->made.workspace == TNI_NONE;
    for (uint32_t i = 0; i < g->made.in_count && g->served; i++)
        g->served = (!g->made.prepared->dense || tni_code_dense(f->c, g->operands[i])) &&
                    g->made.prepared->plan.in_layout[i] == layout_of(f, g->operands[i]);
    for (uint32_t o = 0; o < g->made.out_count && g->served; o++)
        g->served = (g->modes[g->made.in_count + o] != TN_MODE_ADD || g->made.prepared->adds) &&
                    g->made.prepared->plan.out_layout[o] == layout_of(f, g->operands[g->made.in_count + o]);
    if (st == TN_E_UNSUPPORTED) {
        tni_error_clear();
        st = TN_OK;
    }
    if (!g->served) {
        tni_instruction_fini(&g->made);
        g->made = (tni_instruction){0};
    }
    return st;
}

static tn_status group_make(fuser *f, group *g)
{
    const tni_instruction *last = tni_code_at(f->c, g->member[g->count - 1]);
    tn_status st = TN_OK;

    f->numbers = 0;
    f->code->step_count = f->code->input_count = f->code->output_count = 0;
    g->made = (tni_instruction){.def = f->def,
                                .device = last->device,
                                .node = last->node,
                                .random = TNI_NONE,
                                .workspace = TNI_NONE,
                                .saved = TNI_NONE,
                                .kind = TN_EXEC_KERNEL,
                                .first_link = (uint32_t)f->c->links.count};
    g->made.flags =
        (uint16_t)(TNI_CODE_HELPER | TNI_CODE_FRESH | (last->flags & (TNI_CODE_BACKWARD | TNI_CODE_ONCE)));
    for (uint32_t m = 0; m < g->count && !st; m++)
        st = member_add(f, g, m);
    if (st || !outputs_add(f, g))
        return st;
    g->made.in_count = f->code->input_count;
    g->made.out_count = f->code->output_count;
    if ((st = group_ask(f, g)) || !g->served)
        return st;
    f->c->rewrites++;
    return TN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static tn_status code_edit(fuser *f)
{
    tn_status st = TN_OK;

    tni_edit_begin(&f->e, f->c);
    for (uint32_t i = 0; i < f->c->code.count && !st; i++) {
        group *g = f->group_of[i] ? group_at(f, f->group_of[i] - 1) : NULL;

        if (!g || !g->served) {
            st = tni_edit_keep(&f->e, i);
            continue;
        }
        if (g->member[g->count - 1] == i && !(st = tni_edit_add(&f->e, &g->made, g->operands, g->modes)))
            g->added = true;
        if (!st)
            st = tni_edit_drop(&f->e, i);
    }
    return tni_edit_end(&f->e, st);
}

/* Backwards that are compiled later ask what the forward of their node ran on. */
static void nodes_note(const fuser *f, const uint32_t *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const group *g = f->group_of[i] ? group_at(f, f->group_of[i] - 1) : NULL;

        if (g && g->served && nodes[i] != TNI_NONE)
            f->c->code_of[nodes[i]] = tni_code_value(f->c, g->operands[g->made.in_count])->def;
    }
}

static tn_status groups_put(fuser *f)
{
    const uint32_t count = (uint32_t)f->c->code.count;
    uint32_t *nodes = tni_alloc((count + 1ull) * sizeof *nodes);
    tn_status st = nodes ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++) {
        const tni_instruction *in = tni_code_at(f->c, i);

        nodes[i] = in->flags & TNI_CODE_HELPER ? TNI_NONE : in->node;
    }
    if (!st && !(st = code_edit(f)))
        nodes_note(f, nodes, count);
    tni_free(nodes);
    return st;
}

static void fuser_fini(fuser *f)
{
    for (uint32_t i = 0; i < f->groups.count; i++) {
        if (group_at(f, i)->served && !group_at(f, i)->added)
            tni_instruction_fini(&group_at(f, i)->made);
        tni_free(group_at(f, i));
    }
    tni_vec_fini(&f->groups);
    tni_free(f->code);
    tni_free(f->readers);
    tni_free(f->written);
    tni_free(f->group_of);
}

static tn_status fuser_init(fuser *f, tni_code *c)
{
    tn_status st = tni_opset_find(tni_selector_ops(c->selector), "_fused_pointwise", &f->def);

    f->c = c;
    tni_vec_init(&f->groups, sizeof(group *), c->code.max);
    f->code = tni_zalloc(sizeof *f->code);
    f->group_of = tni_calloc(c->code.count + 1, sizeof *f->group_of);
    if (!st && (!f->code || !f->group_of))
        return TN_E_NOMEM;
    return st ? st : (st = tni_code_readers(c, &f->readers)) ? st : tni_code_written(c, &f->written);
}

tn_status tni_pass_pointwise(tni_code *c)
{
    fuser f = {0};
    tn_status st = fuser_init(&f, c);

    for (uint32_t i = 0; i < c->code.count && !st; i++)
        st = instruction_place(&f, i);
    for (uint32_t i = 0; i < f.groups.count && !st; i++)
        if (group_at(&f, i)->count > 1)
            st = group_make(&f, group_at(&f, i));
    if (!st && c->rewrites)
        st = groups_put(&f);
    fuser_fini(&f);
    return st;
}
