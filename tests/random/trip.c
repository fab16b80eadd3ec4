/* One way of running a case: arrays, forward, gradients, results. */
#include "trip.h"

#include <stdlib.h>
#include <string.h>

tn_status fuzz_refused(const char *text)
{
    return tni_error(TN_E_ARG, "%s", text);
}

void fuzz_trip_attrs(const fuzz_case *c, const fuzz_node *n, const char **pairs)
{
    for (uint32_t a = 0; a < n->attr_count; a++) {
        *pairs++ = fuzz_text_at(c, c->attrs[n->first_attr + a].name);
        *pairs++ = fuzz_text_at(c, c->attrs[n->first_attr + a].text);
        if (!strcmp(pairs[-2], "init_output")) /* what an array held before counts in eager calls alone */
            pairs[-1] = "1";
    }
    *pairs = NULL;
}

tn_array *fuzz_trip_given(const trip *t, uint32_t h)
{
    const fuzz_head *head = &t->c->heads[h];

    if (head->over != FUZZ_NONE && !(t->flags & FUZZ_WAY_APART))
        return t->variables[head->over].view;
    return t->given[h].view;
}

/* ---- before -------------------------------------------------------------------------------------------- */

static uint32_t form_of(const trip *t, uint32_t form)
{
    return t->flags & FUZZ_WAY_DENSE && form < FUZZ_FORMS ? form | FUZZ_AS_DENSE : form;
}

static tn_status gradient_attach(trip *t, uint32_t i)
{
    const fuzz_variable *v = &t->c->variables[i];
    tn_status st = TN_OK;

    if (v->grad == FUZZ_NO_GRAD)
        return TN_OK;
    if (v->grad_form < FUZZ_FORMS)
        st = fuzz_array_make(t->ctx, &t->c->entries[v->entry], form_of(t, v->grad_form), FUZZ_SMALL,
                             v->seed + 1, &t->grads[i]);
    return st ? st : tn_attach_grad(t->ctx, t->variables[i].view, v->grad, t->grads[i].view);
}

/* Variables that a node changes, or a result is written over. */
static void written_note(trip *t)
{
    const fuzz_case *c = t->c;

    for (uint32_t h = 0; h < c->head_count; h++)
        if (c->heads[h].over != FUZZ_NONE)
            t->written[c->heads[h].over] = true;
    for (uint32_t n = 0; n < c->node_count; n++) {
        tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};

        if (!t->live[n] || tn_op_find(t->ctx, fuzz_text_at(c, c->nodes[n].op), &info))
            continue;
        for (uint32_t i = 0; i < c->nodes[n].in_count; i++) {
            const fuzz_entry *e = &c->entries[c->edges[c->nodes[n].first_edge + i]];

            if (tn_op_mutates(info.definition, c->nodes[n].in_count, i) && e->node == FUZZ_NONE)
                t->written[e->index] = true;
        }
    }
}

static tn_status arrays_make(trip *t)
{
    const fuzz_case *c = t->c;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < c->variable_count && !st; i++) {
        const fuzz_variable *v = &c->variables[i];

        st = fuzz_array_make(t->ctx, &c->entries[v->entry], form_of(t, v->form), v->values, v->seed,
                             &t->variables[i]);
        if (!st && !(st = gradient_attach(t, i)))
            tn_array_retain(t->entries[v->entry] = t->variables[i].view);
    }
    for (uint32_t h = 0; h < c->head_count && !st; h++) {
        const fuzz_entry *e = &c->entries[c->heads[h].entry];

        if (c->heads[h].form < FUZZ_FORMS && c->heads[h].over == FUZZ_NONE && e->dtype >= 0 &&
            tn_shape_known(&e->shape))
            st = fuzz_array_make(t->ctx, e, form_of(t, c->heads[h].form), FUZZ_WILD, 7, &t->given[h]);
    }
    return st;
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

typedef struct walk { /* arguments of a backward pass */
    tn_array *heads[FUZZ_HEADS_MAX], *grads[FUZZ_HEADS_MAX];
    uint32_t count;
} walk;

static tn_status walk_make(trip *t, walk *w)
{
    const fuzz_case *c = t->c;

    w->count = 0;
    for (uint32_t h = 0; h < c->head_count; h++) {
        const fuzz_head *head = &c->heads[h];
        tn_array *a = t->entries[head->entry];
        const int64_t *shape;
        fuzz_entry like = {.dtype = tn_array_dtype(a)};
        tn_status st;

        if (!head->backward || !a)
            continue;
        if ((st = tn_array_shape(a, &like.shape.ndim, &shape)))
            return st;
        memcpy(like.shape.dim, shape, (size_t)like.shape.ndim * sizeof *shape);
        if (head->grad < FUZZ_VALUES && !t->head_grads[h].view &&
            (st = fuzz_array_make(t->ctx, &like, form_of(t, (uint8_t)(head->seed % FUZZ_STRETCHED)),
                                  head->grad, head->seed, &t->head_grads[h])))
            return st;
        w->heads[w->count] = a;
        w->grads[w->count++] = t->head_grads[h].view;
    }
    return TN_OK;
}

/* Gradients of those that are on the tape; of the others nothing leads on. */
static void second_pass(trip *t, uint32_t count, tn_array *const *made)
{
    tn_array *heads[FUZZ_VARIABLES_MAX];
    uint32_t recorded = 0;

    for (uint32_t i = 0; i < count; i++)
        if (made[i]->grad_entry)
            heads[recorded++] = made[i];
    if (!recorded)
        return;
    fuzz_result_status(t->r, FUZZ_AGAIN, tn_backward(t->ctx, recorded, heads, NULL, 0));
    for (uint32_t i = 0; i < t->c->variable_count; i++)
        if (t->c->variables[i].grad != FUZZ_NO_GRAD)
            fuzz_result_add(t->r, FUZZ_AGAIN, FUZZ_OF_GRADIENT_AGAIN, 1000 + i,
                            tn_array_grad(t->variables[i].view));
}

static tn_status new_gradients(trip *t, const walk *w, uint32_t flags, uint32_t stage, uint32_t kind)
{
    const fuzz_case *c = t->c;
    tn_array *of[FUZZ_VARIABLES_MAX], *made[FUZZ_VARIABLES_MAX] = {NULL};
    tn_gradient_call k = {.struct_size = TN_SIZE(tn_gradient_call),
                          .flags = flags,
                          .head_count = w->count,
                          .heads = w->heads,
                          .head_grads = c->flags & FUZZ_HEADS_NULL ? NULL : w->grads,
                          .variables = of};
    tn_status st;

    for (uint32_t i = 0; i < c->variable_count; i++)
        if (c->variables[i].grad != FUZZ_NO_GRAD)
            of[k.variable_count++] = t->variables[i].view;
    st = tn_gradients(t->ctx, &k, made);
    for (uint32_t i = 0; i < k.variable_count && !st; i++)
        fuzz_result_add(t->r, stage, kind, i, made[i]);
    if (!st && flags & TN_BACKWARD_CREATE)
        second_pass(t, k.variable_count, made);
    for (uint32_t i = 0; i < k.variable_count; i++)
        tn_array_release(made[i]);
    return st;
}

static void backward(trip *t, const walk *w, uint32_t stage, uint32_t kind)
{
    const fuzz_case *c = t->c;
    const uint32_t flags = c->flags & FUZZ_RETAIN ? TN_BACKWARD_RETAIN : 0;
    tn_status st;

    if (c->flags & FUZZ_NEW_GRADS)
        st = new_gradients(t, w, flags, stage, kind);
    else
        st = tn_backward(t->ctx, w->count, w->heads, c->flags & FUZZ_HEADS_NULL ? NULL : w->grads, flags);
    fuzz_result_status(t->r, stage, st);
    for (uint32_t i = 0; i < c->variable_count; i++)
        if (c->variables[i].grad != FUZZ_NO_GRAD)
            fuzz_result_add(t->r, stage, kind, 1000 + i, tn_array_grad(t->variables[i].view));
}

/* Gradients of gradients, or two passes: without `retain` the second one is refused. */
static void gradients(trip *t)
{
    walk w;
    tn_status st = walk_make(t, &w);

    if (st || !w.count)
        return;
    if (t->c->flags & FUZZ_SECOND) {
        st = new_gradients(t, &w, TN_BACKWARD_CREATE, FUZZ_BACKWARD, FUZZ_OF_GRADIENT);
        fuzz_result_status(t->r, FUZZ_BACKWARD, st);
        return;
    }
    backward(t, &w, FUZZ_BACKWARD, FUZZ_OF_GRADIENT);
    if (!t->r->status[FUZZ_BACKWARD])
        backward(t, &w, FUZZ_AGAIN, FUZZ_OF_GRADIENT_AGAIN);
}

/* ---- after --------------------------------------------------------------------------------------------- */

static void variable_check(trip *t, uint32_t i)
{
    const fuzz_variable *v = &t->c->variables[i];
    const fuzz_part *p = &t->r->parts[t->r->part_count - 1];
    uint8_t *before;

    if (t->written[i] || !p->bytes || v->form == FUZZ_STRETCHED || !(before = malloc(p->bytes + 1)))
        return;
    if (fuzz_array_values(&t->c->entries[v->entry], v->values, v->seed, before, p->bytes) &&
        memcmp(before, t->r->bytes + p->at, p->bytes))
        fuzz_result_wrong(t->r, "input: variable v%u was changed", i);
    free(before);
}

/* Sparse arrays count by their elements. */
static void head_result(trip *t, uint32_t h)
{
    tn_array *a = t->entries[t->c->heads[h].entry], *dense = NULL;

    if (a && tn_array_storage(a) != TN_STORAGE_DENSE) {
        fuzz_result_status(t->r, FUZZ_FORWARD, tn_array_to_storage(t->ctx, a, TN_STORAGE_DENSE, &dense));
        a = dense;
    }
    if (a)
        fuzz_result_add(t->r, FUZZ_FORWARD, FUZZ_OF_HEAD, h, a);
    tn_array_release(dense);
}

static void results(trip *t)
{
    const fuzz_case *c = t->c;

    for (uint32_t h = 0; h < c->head_count; h++)
        head_result(t, h);
    for (uint32_t i = 0; i < c->variable_count && !t->r->status[FUZZ_FORWARD]; i++) {
        if (t->flags & FUZZ_WAY_APART && t->written[i])
            continue;
        fuzz_result_add(t->r, FUZZ_FORWARD, FUZZ_OF_VARIABLE, i, t->variables[i].view);
        if (!t->r->status[FUZZ_FORWARD])
            variable_check(t, i);
    }
}

static void around_check(trip *t)
{
    for (uint32_t i = 0; i < t->c->variable_count; i++)
        if (!fuzz_array_around(&t->variables[i]) || !fuzz_array_around(&t->grads[i]))
            fuzz_result_wrong(t->r, "around: memory around variable v%u or its gradient was changed", i);
    for (uint32_t h = 0; h < t->c->head_count; h++)
        if (!fuzz_array_around(&t->given[h]))
            fuzz_result_wrong(t->r, "around: memory around the array given for head %u was changed", h);
}

static void trip_free(trip *t)
{
    for (uint32_t i = 0; i < t->c->entry_count; i++)
        tn_array_release(t->entries[i]);
    for (uint32_t i = 0; i < t->c->variable_count; i++) {
        fuzz_array_free(&t->variables[i]);
        fuzz_array_free(&t->grads[i]);
    }
    for (uint32_t h = 0; h < t->c->head_count; h++) {
        fuzz_array_free(&t->given[h]);
        fuzz_array_free(&t->head_grads[h]);
    }
    memset(t->entries, 0, t->c->entry_count * sizeof(void *));
}

static void forward(trip *t)
{
    const uint32_t flags = t->c->flags;
    const int32_t train = tn_train_set((flags & FUZZ_TRAIN) != 0);
    const int32_t np_shape = tn_np_shape_set((flags & FUZZ_NP_SHAPE) != 0);
    const int32_t record = tn_record_set((flags & FUZZ_RECORD) != 0);
    const bool compiled = t->flags & (FUZZ_WAY_CACHED | FUZZ_WAY_PROGRAM);

    tn_error_clear();
    fuzz_result_status(t->r, FUZZ_FORWARD, compiled ? fuzz_trip_compiled(t) : fuzz_trip_eager(t));
    tn_record_set(record);
    tn_np_shape_set(np_shape);
    tn_train_set(train);
}

bool fuzz_trip(const fuzz_bench *b, const fuzz_case *c, const fuzz_way *w, fuzz_result *r)
{
    static trip t;
    tn_status st;

    t.ctx = b->ctx[w->engine];
    t.cpu = b->cpu[w->engine];
    t.c = c;
    t.flags = w->flags;
    t.r = r;
    memset(t.written, 0, sizeof t.written);
    fuzz_case_live(c, t.live);
    fuzz_result_init(r);
    written_note(&t);
    st = tn_random_seed(t.ctx, c->number, t.cpu);
    if (!st && !(st = arrays_make(&t))) {
        forward(&t);
        if (!r->status[FUZZ_FORWARD])
            results(&t);
        if (!r->status[FUZZ_FORWARD] && c->flags & FUZZ_RECORD && !(w->flags & FUZZ_WAY_PROGRAM))
            gradients(&t);
        around_check(&t);
    }
    trip_free(&t);
    return !st;
}
