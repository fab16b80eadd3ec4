/*
 * Solves a shape rule for one inference. What is known of the arguments' shapes fixes the rule's symbols,
 * what is known of these fills in the shapes; rounds over all arguments go on until nothing changes. Facts
 * are only added, so the order of arguments does not matter. An argument with several forms and no condition
 * waits until the others have said what they know.
 */
#include <inttypes.h>
#include <string.h>

#include "op/shape_rule_solver.h"

#define ROUNDS_MAX                                                                                           \
    (RULE_ARGS_MAX + RULE_DEFS_MAX + 2) /* a chain of facts goes at least one further in each */

/* ---- ranges ----------------------------------------------------------------------------------- */

static tn_status range_value(const solver *s, uint8_t range, rule_dims *out);

static tn_status broadcast_value(const solver *s, const rule_range *g, rule_dims *out)
{
    rule_dims a, b;
    tn_status st;

    out->n = -1;
    if ((st = range_value(s, g->a, &a)) || (st = range_value(s, g->b, &b)) || a.n < 0 || b.n < 0)
        return st;
    out->n = a.n > b.n ? a.n : b.n;
    for (int32_t k = 0; k < out->n; k++) {
        const int64_t x = k < out->n - a.n ? 1 : a.dim[k - (out->n - a.n)];
        const int64_t y = k < out->n - b.n ? 1 : b.dim[k - (out->n - b.n)];

        if (x == y || y == 1)
            out->dim[k] = x;
        else if (x == 1)
            out->dim[k] = y;
        else if (x < 0 || y < 0) /* the unknown one can only be 1 or this */
            out->dim[k] = x < 0 ? y : x;
        else
            return tni_infer_fail(s->i, TN_E_SHAPE, "dimensions %" PRId64 " and %" PRId64 " do not broadcast",
                                  x, y);
    }
    return TN_OK;
}

/* The dimensions of a range, as far as they are known. */
static tn_status range_value(const solver *s, uint8_t range, rule_dims *out)
{
    const rule_range *g = &s->rule->ranges[range];
    rule_dims in;
    const tn_tuple *t;
    tn_status st;

    switch ((range_kind)g->kind) {
    case RANGE_SYMBOL:
        *out = s->ranges[g->symbol];
        return TN_OK;
    case RANGE_ATTR:
        if ((st = tni_rule_tuple(s, g->attr, &t)))
            return st;
        if (tni_tuple_count(t) > TN_NDIM_MAX)
            return tni_infer_fail(s->i, TN_E_ATTR, "%s has %lld items, at most %d are allowed",
                                  s->rule->op->attrs[g->attr].name, (long long)t->count, TN_NDIM_MAX);
        out->n = (int32_t)tni_tuple_count(t);
        for (int32_t k = 0; k < out->n; k++)
            out->dim[k] = t->item[k];
        return TN_OK;
    case RANGE_BROADCAST:
        return broadcast_value(s, g, out);
    case RANGE_CALL:
        break;
    }
    out->n = -1;
    if ((st = range_value(s, g->a, &in)) || in.n < 0)
        return st;
    return g->function->forward(&(rule_call){s->i, g->attrs}, &in, out);
}

static tn_status range_set(solver *s, const place *at, uint8_t range, const rule_dims *dims);

/* Of a & b: where one is not known and the other is 1, the unknown one is the result. */
static tn_status broadcast_set(solver *s, const place *at, const rule_range *g, const rule_dims *dims)
{
    const uint8_t side[] = {g->a, g->b};

    for (int k = 0; k < 2; k++) {
        rule_dims other, own;
        tn_status st;

        if ((st = range_value(s, side[1 - k], &other)) || (st = range_value(s, side[k], &own)))
            return st;
        if (other.n < 0 || (own.n < 0 && other.n == dims->n) || other.n > dims->n)
            continue;
        if (own.n < 0) { /* the shorter one cannot have given the first dimensions */
            own.n = dims->n;
            for (int32_t d = 0; d < own.n; d++)
                own.dim[d] = TN_DIM_UNKNOWN;
        }
        for (int32_t d = 0; d < own.n; d++) {
            const int32_t at_out = d + dims->n - own.n, at_other = at_out - (dims->n - other.n);

            if (at_out >= 0 && own.dim[d] < 0 && (at_other < 0 || other.dim[at_other] == 1))
                own.dim[d] = dims->dim[at_out];
        }
        if ((st = range_set(s, at, side[k], &own)))
            return st;
    }
    return TN_OK;
}

/* Says that a range symbol has these dimensions; unknown ones say nothing. */
static tn_status symbol_dims_set(solver *s, const place *at, uint8_t symbol, const rule_dims *dims)
{
    rule_dims *own = &s->ranges[symbol];

    if (own->n < 0) {
        own->n = dims->n;
        for (int32_t k = 0; k < dims->n; k++)
            own->dim[k] = TN_DIM_UNKNOWN;
        s->changed = true;
    }
    if (own->n != dims->n)
        return tni_infer_fail(s->i, TN_E_SHAPE, "%d dimensions should be %s.., which are %d", dims->n,
                              s->rule->symbols[symbol].name, own->n);
    for (int32_t k = 0; k < own->n; k++) {
        if (own->dim[k] >= 0 && dims->dim[k] >= 0 && own->dim[k] != dims->dim[k] && at->slot == UINT32_MAX)
            return tni_infer_fail(s->i, TN_E_SHAPE, "dimension %d of %s.. is %" PRId64 " and %" PRId64, k,
                                  s->rule->symbols[symbol].name, own->dim[k], dims->dim[k]);
        if (own->dim[k] >= 0 || dims->dim[k] < 0)
            continue;
        own->dim[k] = dims->dim[k];
        s->changed = true;
        if (at->slot != UINT32_MAX && s->from[symbol].axis < 0)
            s->from[symbol] = (fact){at->slot, at->axis};
    }
    return TN_OK;
}

/* Says that a range has these dimensions; unknown ones say nothing. */
static tn_status range_set(solver *s, const place *at, uint8_t range, const rule_dims *dims)
{
    const rule_range *g = &s->rule->ranges[range];
    rule_dims in;
    tn_status st;

    if (g->kind == RANGE_BROADCAST)
        return broadcast_set(s, at, g, dims);
    if (g->kind == RANGE_CALL) {
        if (!g->function->backward)
            return TN_OK;
        in.n = -1;
        st = g->function->backward(&(rule_call){s->i, g->attrs}, dims, &in);
        return st || in.n < 0 ? st : range_set(s, at, g->a, &in);
    }
    if (g->kind == RANGE_ATTR)
        return TN_OK;
    return symbol_dims_set(s, at, g->symbol, dims);
}

/* Who first said what a range's symbol is; NULL: nobody. */
static const fact *range_known(const solver *s, uint8_t range)
{
    const rule_range *g = &s->rule->ranges[range];
    const fact *from;

    if (g->kind == RANGE_SYMBOL)
        return s->from[g->symbol].axis >= 0 ? &s->from[g->symbol] : NULL;
    if (g->kind == RANGE_ATTR)
        return NULL;
    from = range_known(s, g->a);
    return from || g->kind == RANGE_CALL ? from : range_known(s, g->b);
}

/* "output (3, 5): dimension 1 should be 4, by B.. of data (2, 4)" */
static tn_status range_differs(const solver *s, const place *at, uint8_t range, int32_t k, int64_t wanted)
{
    const fact *from = range_known(s, range);
    tni_str text;

    tni_str_init(&text, 512);
    tni_rule_slot_format(s, at->slot, &text);
    tni_str_addf(&text, ": dimension %d should be %" PRId64 ", by ", at->axis + k, wanted);
    tni_str_add_bytes(&text, s->rule->text + at->text, at->bytes);
    if (from) {
        tni_str_add(&text, " of ");
        tni_rule_slot_format(s, from->slot, &text);
    }
    return tni_rule_fail(s, TN_E_SHAPE, &text);
}

/* Some dimensions of an argument and one range say the same. */
static tn_status range_meet(solver *s, const place *at, uint8_t range, int64_t *dim, int32_t n)
{
    rule_dims known, given = {.n = n};
    tn_status st;

    if (n)
        memcpy(given.dim, dim, (size_t)n * sizeof *dim);
    if ((st = range_set(s, at, range, &given)) || (st = range_value(s, range, &known)))
        return st;
    if (known.n < 0)
        return TN_OK;
    if (known.n != n)
        return tni_infer_fail(s->i, TN_E_SHAPE, "%d dimensions, but %.*s has %d", n, at->bytes,
                              s->rule->text + at->text, known.n);
    for (int32_t k = 0; k < n; k++) {
        if (known.dim[k] < 0 || known.dim[k] == dim[k])
            continue;
        if (dim[k] >= 0)
            return range_differs(s, at, range, k, known.dim[k]);
        dim[k] = known.dim[k];
        s->changed = true;
    }
    return TN_OK;
}

/* ---- one argument ----------------------------------------------------------------------------- */

/* Items in the order in which their dimensions stand. `^layout` names the order by letters: the first item is
 * N, the second C, the third all others. */
static tn_status items_order(const solver *s, const rule_alt *alt, uint8_t *order)
{
    const tn_attr_def *d = alt->layout < 0 ? NULL : &s->rule->op->attrs[alt->layout];
    const char *text = d ? d->choices : NULL;
    int64_t choice = d ? tn_value_int(s->i->attrs[alt->layout]) : 0;
    uint8_t n = 0;

    for (uint8_t k = 0; k < alt->item_count; k++)
        order[k] = (uint8_t)(alt->item + k);
    for (; text && choice > 0; choice--)
        text = strchr(text, '|') ? strchr(text, '|') + 1 : NULL;
    if (!text || alt->item_count != 3 || strncmp(text, "None", 4) == 0)
        return TN_OK;
    for (const char *c = text; *c && *c != '|' && n < 3; c++) {
        if (*c == 'N' || *c == 'C')
            order[n++] = (uint8_t)(alt->item + (*c == 'C'));
        else if (c == text || c[-1] == 'N' || c[-1] == 'C')
            order[n++] = (uint8_t)(alt->item + 2);
    }
    return TN_OK;
}

/* How many dimensions a layout has room for; -1: any. */
static int32_t layout_ndim(const solver *s, const rule_alt *alt)
{
    const tn_attr_def *d = alt->layout < 0 ? NULL : &s->rule->op->attrs[alt->layout];
    const char *text = d ? d->choices : NULL;

    for (int64_t c = d ? tn_value_int(s->i->attrs[alt->layout]) : 0; text && c > 0; c--)
        text = strchr(text, '|') ? strchr(text, '|') + 1 : NULL;
    return !text || strncmp(text, "None", 4) == 0 ? -1 : (int32_t)strcspn(text, "|");
}

/* Lengths of the items; -1: not known. */
static tn_status lengths_read(const solver *s, const rule_alt *alt, const uint8_t *order, int32_t *length)
{
    for (uint8_t k = 0; k < alt->item_count; k++) {
        const rule_item *item = &s->rule->items[order[k]];
        rule_dims dims;
        tn_status st;

        length[k] = 1;
        if (item->range == RULE_NONE)
            continue;
        if ((st = range_value(s, item->range, &dims)))
            return st;
        length[k] = dims.n;
    }
    return TN_OK;
}

/* Among items `from` to `to` (excluded), which take `room` dimensions: the one of unknown length takes what
 * the others leave. */
static bool length_fill(int32_t *length, uint8_t from, uint8_t to, int32_t room)
{
    int32_t open = -1, opens = 0;

    for (uint8_t k = from; k < to; k++) {
        if (length[k] >= 0) {
            room -= length[k];
            continue;
        }
        open = k;
        opens++;
    }
    if (opens == 1)
        length[open] = room;
    return opens ? room >= 0 : room == 0;
}

static tn_status lengths_solve(const solver *s, const rule_alt *alt, const uint8_t *order, uint32_t slot,
                               int32_t *length)
{
    const tn_shape *sh = tni_rule_slot(s, slot);
    bool fits = true;

    for (uint8_t k = 0; k < alt->item_count; k++) {
        const rule_item *item = &s->rule->items[order[k]];
        int32_t axis = 0;

        if (item->at < 0)
            continue;
        if (tni_axis(s->i, tni_rule_number(s, item->at), sh->ndim, &axis))
            return TN_E_SHAPE;
        fits = fits && length_fill(length, 0, k, axis) &&
               length_fill(length, (uint8_t)(k + 1), alt->item_count, sh->ndim - axis - 1);
    }
    return fits && length_fill(length, 0, alt->item_count, sh->ndim) ? TN_OK
                                                                     : tni_rule_rank_fails(s, slot, alt);
}

/* Total of the lengths; -1: one is not known. */
static int32_t lengths_total(const int32_t *length, uint8_t count)
{
    int32_t n = 0;

    for (uint8_t k = 0; k < count; k++) {
        if (length[k] < 0)
            return -1;
        n += length[k];
    }
    return n;
}

/* Where there are no 0-d arrays, (1,) stands for (). */
static bool stands_for_scalar(const solver *s, const tn_shape *sh, int32_t total)
{
    return total == 0 && sh->ndim == 1 && !(s->i->flags & TN_INFER_NP_SHAPE);
}

static tn_status shape_begin(solver *s, tn_shape *sh, int32_t total)
{
    if (total > TN_NDIM_MAX)
        return tni_infer_fail(s->i, TN_E_SHAPE, "a shape of %d dimensions, at most %d are allowed", total,
                              TN_NDIM_MAX);
    sh->ndim = total || s->i->flags & TN_INFER_NP_SHAPE ? total : 1;
    sh->reserved = 0;
    for (int32_t k = 0; k < sh->ndim; k++)
        sh->dim[k] = total ? TN_DIM_UNKNOWN : 1;
    s->changed = true;
    return TN_OK;
}

static tn_status items_meet(solver *s, const rule_alt *alt, const uint8_t *order, uint32_t slot,
                            const int32_t *length)
{
    tn_shape *sh = tni_rule_slot(s, slot);
    int32_t axis = 0;
    tn_status st = TN_OK;

    for (uint8_t k = 0; !st && k < alt->item_count; axis += length[k++]) {
        const rule_item *item = &s->rule->items[order[k]];
        const place at = {slot, axis, item->text, item->bytes};

        if (length[k] < 0)
            return TN_OK;
        st = item->range == RULE_NONE ? tni_rule_dim_meet(s, &at, item->expr, &sh->dim[axis])
                                      : range_meet(s, &at, item->range, &sh->dim[axis], length[k]);
    }
    return st;
}

static bool shape_is(const tn_shape *a, const tn_shape *b)
{
    return a->ndim == b->ndim &&
           (a->ndim <= 0 || memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof *a->dim) == 0);
}

static tn_status form_meet(solver *s, const rule_alt *alt, uint32_t slot)
{
    tn_shape *sh = tni_rule_slot(s, slot);
    uint8_t order[RULE_ITEMS_MAX];
    int32_t length[RULE_ITEMS_MAX], total;
    tn_status st;

    if (alt->same_as != RULE_NONE) {
        tn_shape *like = s->copies[alt->same_as] ? tni_rule_slot(s, s->first[alt->same_as]) : NULL;
        tn_shape before, before_like;

        if (!like)
            return TN_OK;
        before = *sh;
        before_like = *like;
        if ((st = tn_shape_unify(s->i, like, sh)))
            return st;
        s->changed = s->changed || !shape_is(&before, sh) || !shape_is(&before_like, like);
        return TN_OK;
    }
    if ((st = items_order(s, alt, order)) || (st = lengths_read(s, alt, order, length)))
        return st;
    total = lengths_total(length, alt->item_count);
    if (layout_ndim(s, alt) >= 0 && (total >= 0 || sh->ndim >= 0) &&
        (total >= 0 ? total : sh->ndim) != layout_ndim(s, alt))
        return tni_infer_fail(s->i, total >= 0 ? TN_E_ATTR : TN_E_SHAPE,
                              "%s is for %d dimensions, not for %d", s->rule->op->attrs[alt->layout].name,
                              layout_ndim(s, alt), total >= 0 ? total : sh->ndim);
    if (sh->ndim < 0 && total < 0)
        return TN_OK;
    if (sh->ndim < 0 && (st = shape_begin(s, sh, total)))
        return st;
    if (stands_for_scalar(s, sh, total)) {
        if (sh->dim[0] > 1 || sh->dim[0] == 0)
            return tni_rule_rank_fails(s, slot, alt);
        sh->dim[0] = 1;
        return TN_OK;
    }
    if ((st = lengths_solve(s, alt, order, slot, length)))
        return st;
    return items_meet(s, alt, order, slot, length);
}

/* ---- which form of an argument ---------------------------------------------------------------- */

/* Tries a form on copies of all that it changes. */
static bool form_fits(const solver *s, const rule_alt *alt, uint32_t slot)
{
    tn_shape *shape = tni_rule_slot(s, slot), kept = *shape;
    rule_dims ranges[RULE_SYMBOLS_MAX];
    tn_err err = {0};
    tn_infer i = *s->i;
    solver trial = *s;
    bool fits;

    i.err = &err;
    if (alt->same_as != RULE_NONE && !s->copies[alt->same_as]) {
        fits = false;
    } else if (alt->same_as != RULE_NONE) {
        tn_shape like = *tni_rule_slot(s, s->first[alt->same_as]);

        fits = tn_shape_unify(&i, &like, shape) == TN_OK;
    } else {
        memcpy(ranges, s->ranges, sizeof ranges);
        trial.i = &i;
        trial.ranges = ranges;
        trial.trial = true;
        fits = form_meet(&trial, alt, slot) == TN_OK;
    }
    *shape = kept;
    return fits;
}

/* Several forms, and none of them chosen by an attribute: the shapes have to tell. */
static bool form_is_open(const solver *s, const rule_arg *arg)
{
    const rule_alt *alt = &s->rule->alts[arg->alt];

    for (uint8_t k = 0; k + 1 < arg->alt_count; k++) {
        if (alt[k].cond == RULE_NONE)
            return true;
        if (tni_rule_holds(s->rule, alt[k].cond, s->i->attrs))
            return false;
    }
    return false;
}

/* The first form whose condition holds, or that fits; the last one else. */
static const rule_alt *form_choose(const solver *s, const rule_arg *arg, uint32_t slot)
{
    const rule_alt *alt = &s->rule->alts[arg->alt];

    for (uint8_t k = 0; k + 1 < arg->alt_count; k++, alt++)
        if (alt->cond == RULE_NONE ? tni_rule_slot(s, slot)->ndim < 0 || form_fits(s, alt, slot)
                                   : tni_rule_holds(s->rule, alt->cond, s->i->attrs))
            return alt;
    return alt;
}

static tn_status args_meet(solver *s, bool open)
{
    const uint32_t count = s->rule->in_count + s->rule->out_count;
    tn_status st = TN_OK;

    for (uint32_t a = 0; a < count; a++) {
        const rule_arg *arg = &s->args->arg[a];

        if (form_is_open(s, arg) != open)
            continue;
        for (uint32_t k = 0; !st && k < s->copies[a]; k++) {
            const uint32_t slot = s->first[a] + k;

            st = form_meet(s, form_choose(s, arg, slot), slot);
        }
    }
    return st;
}

static tn_status defs_meet(solver *s)
{
    tn_status st = TN_OK;

    for (uint8_t k = 0; !st && k < s->rule->def_count; k++) {
        const rule_def *d = &s->rule->defs[k];
        const place at = {UINT32_MAX, -1, d->text, d->bytes};
        rule_dims dims;

        if (d->range == RULE_NONE) {
            int64_t v = s->value[d->symbol];

            if (!(st = tni_rule_dim_meet(s, &at, d->expr, &v)) && s->value[d->symbol] < 0 && v >= 0)
                tni_rule_symbol_set(s, &at, d->symbol, v);
            continue;
        }
        if (s->ranges[d->symbol].n >= 0)
            st = range_set(s, &at, d->range, &s->ranges[d->symbol]);
        if (!st && !(st = range_value(s, d->range, &dims)) && dims.n >= 0)
            st = symbol_dims_set(s, &at, d->symbol, &dims);
    }
    return st;
}

/* ---- the doors -------------------------------------------------------------------------------- */

static const rule_case *case_choose(const tni_shape_rule *r, const tn_value *attrs)
{
    uint8_t k = 0;

    while (k + 1 < r->case_count && !tni_rule_holds(r, r->cases[k].cond, attrs))
        k++;
    return &r->cases[k];
}

/* How many of argument `a` there are. `left`: inputs behind the arguments before, all of which are copies of
 * a variadic input. */
static tn_status copies_read(const tni_shape_rule *r, uint8_t a, tn_infer *i, uint32_t left, uint32_t *out)
{
    const rule_arg *arg = &r->cases[0].arg[a];
    int64_t n = arg->variadic ? left : 1;

    if (!tni_rule_holds(r, arg->cond, i->attrs))
        n = 0;
    else if (arg->count_attr >= 0)
        n = tn_value_int(i->attrs[arg->count_attr]);
    if (n < 0 || n > TN_NODE_INPUTS_MAX)
        return tni_infer_fail(i, TN_E_ATTR, "%s is %" PRId64 ", 0 to %d are allowed",
                              arg->count_attr >= 0 ? r->op->attrs[arg->count_attr].name : "a count", n,
                              TN_NODE_INPUTS_MAX);
    *out = (uint32_t)n;
    return TN_OK;
}

bool tni_shape_rule_present(const tni_shape_rule *r, uint8_t a, const tn_value *attrs)
{
    return tni_rule_holds(r, r->cases[0].arg[a].cond, attrs);
}

tn_status tni_shape_rule_args(const tni_shape_rule *r, tn_infer *i)
{
    const rule_arg *args = r->cases[0].arg;
    uint32_t in = 0, out = 0, visible = 0, there = 0, n = 0;

    for (uint8_t a = 0; a < r->in_count + r->out_count; a++) {
        tn_status st = copies_read(r, a, i, i->in_count > in ? i->in_count - in : 0, &n);

        if (st)
            return st;
        if (a < r->in_count) {
            in += n;
            continue;
        }
        out += n;
        if (!args[a].hidden ||
            (args[a].visible_cond != RULE_NONE && tni_rule_holds(r, args[a].visible_cond, i->attrs)))
            visible = out;
    }
    if (r->in_count && args[r->in_count - 1].variadic && in != i->in_count)
        return tni_infer_fail(i, TN_E_ARG, "%u inputs, but %s%u are needed", i->in_count,
                              in > i->in_count ? "at least " : "", in);
    if (out == 0 || visible == 0)
        return tni_infer_fail(i, TN_E_ATTR, "no output is left with these attributes");
    for (uint8_t k = 0; k < r->optional_count; k++)
        there |= (uint32_t)tni_shape_rule_present(r, r->optional[k], i->attrs) << k;
    i->in_count = in;
    i->out_count = out;
    i->visible_count = visible;
    i->in_names = r->names ? r->names + (size_t)there * (r->in_count + 1u) : NULL;
    return TN_OK;
}

/* Of arguments that the definition lists: one slot each, the last one takes what is left. */
static void slots_listed(const tni_shape_rule *r, const tn_infer *i, uint32_t *first, uint32_t *copies)
{
    uint32_t slot = 0;

    for (uint8_t a = 0; a < r->in_count + r->out_count; a++) {
        const uint32_t end = i->in_count + (a < r->in_count ? 0 : i->out_count);

        slot = a == r->in_count ? i->in_count : slot;
        first[a] = slot;
        copies[a] = r->cases[0].arg[a].variadic ? end - slot : slot < end;
        slot += copies[a];
    }
}

tn_status tni_rule_slots(const tni_shape_rule *r, tn_infer *i, uint32_t *first, uint32_t *copies)
{
    uint32_t slot = 0;

    if (!r->text) {
        slots_listed(r, i, first, copies);
        return TN_OK;
    }
    for (uint8_t a = 0; a < r->in_count + r->out_count; a++) {
        tn_status st = copies_read(r, a, i, i->in_count > slot ? i->in_count - slot : 0, &copies[a]);

        if (st)
            return st;
        first[a] = slot;
        slot += copies[a];
    }
    return slot == i->in_count + i->out_count
               ? TN_OK
               : tni_infer_fail(i, TN_E_ARG, "%u inputs and outputs, but its shape rule has %u",
                                i->in_count + i->out_count, slot);
}

static tn_status solver_begin(solver *s)
{
    const tni_shape_rule *r = s->rule;

    s->args = case_choose(r, s->i->attrs);
    s->in_count = s->i->in_count;
    for (uint8_t k = 0; k < r->symbol_count; k++) {
        s->value[k] = TN_DIM_UNKNOWN;
        s->ranges[k].n = -1;
        s->from[k] = (fact){0, -1};
    }
    return tni_rule_slots(r, s->i, s->first, s->copies);
}

/* What attributes alone say is wrong comes before what shapes say. */
static tn_status functions_check(const solver *s)
{
    tn_status st = TN_OK;

    for (uint8_t k = 0; !st && k < s->rule->range_count; k++) {
        const rule_range *g = &s->rule->ranges[k];

        if (g->kind == RANGE_CALL && g->function->check)
            st = g->function->check(&(rule_call){s->i, g->attrs});
    }
    return st;
}

/* A function whose attributes say how many dimensions it takes says it of its range. */
static void lengths_begin(solver *s)
{
    const tni_shape_rule *r = s->rule;

    for (uint32_t a = 0; a < r->in_count + (uint32_t)r->out_count; a++) {
        const rule_alt *alt = &r->alts[s->args->arg[a].alt];

        for (uint8_t k = 0; k < alt->item_count; k++) {
            const uint8_t range = r->items[alt->item + k].range;
            const rule_range *g = range == RULE_NONE ? NULL : &r->ranges[range];

            if (!g || g->kind != RANGE_CALL || !g->function->length || r->ranges[g->a].kind != RANGE_SYMBOL)
                continue;
            s->ranges[r->ranges[g->a].symbol].n = g->function->length(&(rule_call){s->i, g->attrs});
            for (int32_t d = 0; d < s->ranges[r->ranges[g->a].symbol].n; d++)
                s->ranges[r->ranges[g->a].symbol].dim[d] = TN_DIM_UNKNOWN;
        }
    }
}

tn_status tni_shape_rule_infer(const tni_shape_rule *r, tn_infer *i, tn_shape *const *in,
                               tn_shape *const *out)
{
    rule_dims ranges[RULE_SYMBOLS_MAX];
    tn_infer seen = *i;
    solver s = {.rule = r, .i = &seen, .in = in, .out = out, .ranges = ranges, .changed = true};
    tn_status st = solver_begin(&s);

    for (uint32_t k = 0; k < i->in_count + i->out_count; k++) /* there are 0-d arrays, then */
        if ((k < i->in_count ? in[k] : out[k - i->in_count])->ndim == 0)
            seen.flags |= TN_INFER_NP_SHAPE;

    st = st ? st : functions_check(&s);
    if (!st)
        lengths_begin(&s);
    for (int round = 0; !st && s.changed && round < ROUNDS_MAX; round++) {
        s.changed = false;
        if (!(st = defs_meet(&s)) && !(st = args_meet(&s, false)) && !s.changed)
            st = args_meet(&s, true);
    }
    return st;
}
