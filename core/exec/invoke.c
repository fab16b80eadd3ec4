/*
 * Eager operators: find the signature, make the outputs, run or queue, record.
 *
 * A site remembers its last two signatures, so a repeated call compares shapes and looks up nothing. Nothing
 * of the arguments changes if the call fails.
 */
#include "exec/call.h"

#include <string.h>

/* ---- sites ------------------------------------------------------------------------------------------- */

static tni_site *site_make(tni_context *c, const tni_opdef *def)
{
    tni_site *s = tni_zalloc(sizeof *s);

    if (!s)
        return NULL;
    tni_ref_init(&s->refs);
    s->ctx = c;
    s->def = def;
    s->plain = !def->function && !def->by_run && !tni_copies(def);
    s->fixed = !def->function && !(def->runtime_mask[0] | def->runtime_mask[1]);
    return s;
}

tn_status tni_site_create(tni_context *c, const char *op, size_t count, const char *const *names,
                          const char *const *texts, tni_site **out)
{
    const tni_opdef *def;
    tni_site *s;
    tn_status st;

    if ((st = tni_opset_find_offered(c->ops, op, &def)))
        return st;
    if (!(s = site_make(c, def)))
        return TN_E_NOMEM;
    if ((st = tni_attrs_parse(def, count, names, texts, &s->attrs))) {
        tni_free(s);
        return st;
    }
    *out = s;
    return TN_OK;
}

tn_status tni_site_of(tni_context *c, const tni_opdef *def, const tni_attrs *attrs, tni_site **out)
{
    tni_site *s = site_make(c, def);

    if (!s)
        return TN_E_NOMEM;
    s->attrs = tni_attrs_retain(attrs);
    *out = s;
    return TN_OK;
}

void tni_site_release(tni_site *s)
{
    if (!s || !tni_ref_release(&s->refs))
        return;
    tni_signature_release(s->last[0]);
    tni_signature_release(s->last[1]);
    tni_attrs_release(s->attrs);
    for (size_t i = 0; i < sizeof s->spare / sizeof *s->spare; i++)
        tni_attrs_release(s->spare[i]);
    tni_free(s);
}

static void site_lock(tni_site *s)
{
    tni_hold();
    tni_spin_lock(&s->busy);
}

static void site_unlock(tni_site *s)
{
    tni_spin_unlock(&s->busy);
    tni_unhold();
}

/* What the site held before, if no call holds it any more, takes the value. */
static bool spare_use_locked(tni_site *s, uint32_t attr, tn_value value)
{
    tni_attrs *now = s->attrs;

    for (size_t i = 0; i < sizeof s->spare / sizeof *s->spare; i++)
        if (s->spare[i] && tni_attrs_become(s->spare[i], now, attr, value)) {
            s->attrs = s->spare[i];
            s->spare[i] = now;
            return true;
        }
    return false;
}

/* The site's reference goes to a spare place: a free one, or that of values that no call holds and that had
 * no room for what is set. What is left over is the caller's. */
static tni_attrs *spare_keep_locked(tni_site *s, tni_attrs *attrs)
{
    const size_t places = sizeof s->spare / sizeof *s->spare;
    size_t at = 0;
    tni_attrs *left;

    while (at < places && s->spare[at])
        at++;
    for (size_t i = 0; at == places && i < places; i++)
        at = tni_ref_count(&s->spare[i]->refs) == 1 ? i : places;
    if (at == places)
        return attrs;
    left = s->spare[at];
    s->spare[at] = attrs;
    return left;
}

tn_status tni_site_set(tni_site *s, uint32_t attr, tn_value value)
{
    tni_attrs *now, *next, *left;
    bool same = false;
    tn_status st;

    if (attr >= s->def->attr_count || !(s->def->op->attrs[attr].flags & TN_ATTR_F_RUNTIME))
        return tni_error(TN_E_ATTR, "operator %s has no run-time attribute %u", s->def->op->name, attr);
    while (!same) { /* another thread may set one, too: neither is lost */
        site_lock(s);
        if ((same = spare_use_locked(s, attr, value)))
            now = NULL;
        else
            now = tni_attrs_retain(s->attrs);
        site_unlock(s);
        if (same)
            break;
        if ((st = tni_attrs_with(now, attr, value, &next))) {
            tni_attrs_release(now);
            return st;
        }
        left = next;
        site_lock(s);
        if ((same = s->attrs == now)) {
            s->attrs = next;
            left = spare_keep_locked(s, now);
        }
        site_unlock(s);
        tni_attrs_release(now); /* ours; `left` may be the site's */
        tni_attrs_release(left);
    }
    return TN_OK;
}

/* ---- the signature of a call ------------------------------------------------------------------------- */

static tn_status device_of(tni_context *c, const tni_opdef *def, uint32_t in_count, tni_array *const *in,
                           uint32_t out_count, tni_array *const *out, tni_device **device)
{
    tni_device *d = NULL;

    for (uint32_t i = 0; i < in_count; i++) {
        if (d && in[i]->storage->device != d)
            return tni_error(TN_E_DEVICE, "operator %s: input %u is on %s:%d, the others are on %s:%d",
                             def->op->name, i, in[i]->storage->device->type, in[i]->storage->device->index,
                             d->type, d->index);
        d = in[i]->storage->device;
    }
    for (uint32_t i = 0; !d && i < out_count; i++)
        if (out[i])
            d = out[i]->storage->device;
    if (d) {
        *device = d;
        return TN_OK;
    }
    return tni_default_device(c, device);
}

/* Operators without inputs may name their device, and copies name the one they go to: attribute ctx. */
static tn_status device_of_attrs(tni_context *c, const tni_opdef *def, const tni_attrs *attrs,
                                 tni_device **device)
{
    const int32_t at = tni_attr_index(def, "ctx");
    const char *text = at < 0 ? NULL : tn_value_pointer(attrs->values[at]);

    return text && *text ? tni_device_parse(c->devices, text, device) : TN_OK;
}

/* Whether a backward may follow: then kernels save what theirs needs. */
static bool is_recorded(uint32_t in_count, tni_array *const *in)
{
    return tni_scope_get()->recording && tni_tape_tracks(in_count, in);
}

static uint32_t call_flags(const tni_scope *scope)
{
    return (scope->training ? TN_NODE_TRAIN : 0u) | (scope->np_shape ? TN_NODE_NP_SHAPE : 0u);
}

static tn_status key_make(tni_context *c, const tni_opdef *def, tni_attrs *attrs, uint32_t in_count,
                          tni_array *const *in, uint32_t out_count, tni_array *const *out, tni_call_key *k)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < in_count && !st; i++)
        if (!in[i])
            st = tni_error(TN_E_ARG, "operator %s: input %u is NULL", def->op->name, i);
        else if (in[i]->pending)
            st = tni_array_shape_wait(in[i]);
    if (st || (st = device_of(c, def, in_count, in, out_count, out, &k->device)) ||
        ((!in_count || tni_copies(def)) && (st = device_of_attrs(c, def, attrs, &k->device))))
        return st;
    k->def = def;
    k->attrs = attrs;
    k->in = in;
    k->in_count = in_count;
    k->out_count = 0;
    k->out_shape = NULL;
    k->forward = NULL;
    k->flags = call_flags(tni_scope_get()) | (is_recorded(in_count, in) ? TN_NODE_RECORDED : 0u);
    k->generation = tni_exec_generation(c);
    return TN_OK;
}

/* The site's own memory first, then the table. Also takes the site's attributes,
 * unless the call has its own. */
static tn_status site_signature(tni_site *s, tni_call_key *k, tni_attrs **attrs, tni_signature **out)
{
    tni_signature *found = NULL, *drop = NULL;
    tn_status st;

    site_lock(s);
    if (!*attrs)
        k->attrs = *attrs = tni_attrs_retain(s->attrs);
    for (uint32_t i = 0; i < 2 && s->last[i]; i++)
        if (tni_signature_matches(s->last[i], k)) {
            found = s->last[i];
            s->last[i] = s->last[0];
            s->last[0] = found;
            tni_signature_retain(found);
            break;
        }
    site_unlock(s);
    if (found) {
        *out = found;
        return TN_OK;
    }
    if ((st = tni_signature_find(s->ctx, k, &found)))
        return st;
    tni_signature_retain(found);
    site_lock(s);
    drop = s->last[1];
    s->last[1] = s->last[0];
    s->last[0] = found;
    site_unlock(s);
    tni_signature_release(drop);
    *out = found;
    return TN_OK;
}

/* The same; where run-time attributes decide shapes, these are inferred first. */
static tn_status site_find(tni_site *s, tni_call_key *k, tni_attrs **attrs, tni_signature **out)
{
    tni_call_room room;
    tn_status st;

    if (!s->def->by_run)
        return site_signature(s, k, attrs, out);
    if (!(st = tni_call_shapes(s->ctx, k, &room)))
        st = site_signature(s, k, attrs, out);
    tni_call_room_end(&room);
    return st;
}

/* ---- outputs ----------------------------------------------------------------------------------------- */

static tn_status output_check(const tni_signature *s, uint32_t i, uint32_t storage, const tni_array *a)
{
    const tn_shape *want = &s->out_shape[i];

    if (a->dtype != s->out_dtype[i] || a->storage_type != storage ||
        !tni_array_has_shape(a, want->ndim, want->dim))
        return tni_error(a->dtype == s->out_dtype[i] ? TN_E_SHAPE : TN_E_DTYPE,
                         "operator %s: output %u does not fit the array given for it", s->def->op->name, i);
    if (a->storage->device != s->device)
        return tni_error(TN_E_DEVICE, "operator %s: output %u is on another device", s->def->op->name, i);
    if (!tni_array_writable(a))
        return tni_error(TN_E_STATE, "operator %s: output %u is memory that may only be read",
                         s->def->op->name, i);
    if (tni_scope_get()->recording && (a->grad || a->grad_entry))
        return tni_error(TN_E_STATE,
                         "operator %s: an array that is recorded cannot be overwritten while recording",
                         s->def->op->name);
    return TN_OK;
}

/* Fills `all` with the given and new outputs; `made` counts from the front what is new. */
static tn_status outputs_make(tni_context *c, const tni_signature *s, uint32_t out_count,
                              tni_array *const *out, tni_array **all)
{
    tn_status st = TN_OK;
    uint32_t i;

    for (i = 0; i < s->out_count && !st; i++) {
        const bool known = tn_shape_known(&s->out_shape[i]);

        all[i] = i < out_count ? out[i] : NULL;
        if (all[i])
            st =
                !known || s->out_storage[i] ? TN_E_UNSUPPORTED : output_check(s, i, TN_STORAGE_DENSE, all[i]);
        else if (s->out_storage[i])
            st = tni_array_create_sparse_pending(c->space, s->device, s->out_storage[i], s->out_dtype[i],
                                                 s->out_shape[i].ndim, s->out_shape[i].dim, &all[i]);
        else if (!known)
            st = tni_array_create_pending(c->space, s->device, s->out_dtype[i], &all[i]);
        else
            st = tni_array_create(c->space, s->device, s->out_dtype[i], s->out_shape[i].ndim,
                                  s->out_shape[i].dim, "array", &all[i]);
    }
    if (!st)
        return TN_OK;
    while (i-- > 0)
        if (all[i] && !(i < out_count && out[i])) {
            tni_array_release(all[i]);
            all[i] = NULL;
        }
    return st == TN_E_UNSUPPORTED
               ? tni_error(st,
                           "operator %s: its output shape, or the number of stored elements, is not known "
                           "before it ran, so none can be given",
                           s->def->op->name)
               : st;
}

/* Hands the visible new ones to the caller; hidden ones go. */
static void outputs_give(const tni_signature *s, uint32_t out_count, tni_array **out, tni_array **all)
{
    for (uint32_t i = 0; i < s->out_count; i++) {
        if (i < out_count && out[i] == all[i])
            continue;
        if (i < out_count)
            out[i] = all[i];
        else
            tni_array_release(all[i]);
    }
}

static void outputs_drop(const tni_signature *s, uint32_t out_count, tni_array *const *out, tni_array **all)
{
    for (uint32_t i = 0; i < s->out_count; i++)
        if (!(i < out_count && out[i] == all[i]))
            tni_array_release(all[i]);
}

/* A view shares memory; an array that is given gets a copy. */
static tn_status view_give(const tni_signature *s, tni_array *in, tni_array **out)
{
    const tn_shape *shape = &s->out_shape[0];
    tni_array *view = NULL;
    tn_status st;

    if (!*out)
        return tni_array_shaped(in, shape->ndim, shape->dim, out);
    if (!(st = output_check(s, 0, TN_STORAGE_DENSE, *out)) &&
        !(st = tni_array_shaped(in, shape->ndim, shape->dim, &view)))
        st = tni_array_copy(view, *out);
    tni_array_release(view);
    return st;
}

/* ---- the call ---------------------------------------------------------------------------------------- */

/* Runs or queues; `*saved` is the block that the kernel leaves for its backward, NULL if there is none. */
static tn_status call_now(tni_context *c, tni_signature *s, const tni_invoke_given *given,
                          tni_array *const *in, tni_array **all, tni_array **saved)
{
    const int64_t saved_bytes = (int64_t)s->prepared->plan.saved_bytes;
    tni_attrs *const attrs = given->attrs;
    const bool reads = tni_prepared_reads(s->prepared) != 0;
    tni_call_with with = {.saved = NULL};
    tn_status st;

    if (saved_bytes && /* a backward that reads its forward's leaves none */
        (st = tni_array_create(c->space, s->device, TN_U8, 1, &saved_bytes, "saved block", saved)))
        return st;
    with.saved = reads ? given->saved : *saved;
    if (reads && !with.saved)
        return tni_error(TN_E_INTERNAL, "operator %s reads what its forward saved, which was not kept",
                         s->def->op->name);

    if (s->def->op->effects & TN_EFFECT_RANDOM)
        with.draw = tni_scope_get()->draw ? *tni_scope_get()->draw : tni_random_take(c, s->device, 1);
    if (s->sparse)
        return tni_call_sparse(c, s, attrs, in, all, with.draw);
    if (s->fast_path && tni_call_short(c, s, attrs, in, all, with.draw))
        return TN_OK;
    return tni_call_queue(c, s, attrs, in, all, &with);
}

tn_status tni_dense_give(tni_context *c, tni_array *sparse, tni_array **out)
{
    static const char *const name = "stype", *const text = "default";
    uint32_t made = 0;

    return tni_invoke_text(c, "cast_storage", 1, &sparse, 1, &name, &text, 1, out, &made);
}

/* Dense arrays given for sparse outputs get their elements. */
static bool given_dense(const tni_signature *s, uint32_t i, const tni_array *out)
{
    return out && s->out_storage[i] != TN_STORAGE_DENSE && out->storage_type == TN_STORAGE_DENSE;
}

static tn_status call_signature(tni_context *c, tni_signature *s, const tni_invoke_given *given,
                                tni_array *const *in, uint32_t out_count, tni_array **out);

static tn_status call_given_dense(tni_context *c, tni_signature *s, const tni_invoke_given *given,
                                  tni_array *const *in, uint32_t out_count, tni_array **out)
{
    tni_array **made = tni_calloc(out_count, sizeof(*made));
    tn_status st = made ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; !st && i < out_count; i++)
        made[i] = given_dense(s, i, out[i]) ? NULL : out[i];
    if (!st)
        st = call_signature(c, s, given, in, out_count, made);
    for (uint32_t i = 0; !st && i < out_count; i++)
        if (given_dense(s, i, out[i]))
            st = tni_dense_give(c, made[i], &out[i]);
    for (uint32_t i = 0; made && i < out_count; i++)
        if (st || given_dense(s, i, out[i]))
            tni_array_release(made[i] != out[i] ? made[i] : NULL);
        else
            out[i] = made[i];
    tni_free((void *)made);
    return st;
}

/* Drawn numbers for a row_sparse array: all of its rows are stored then. */
static tn_status call_given_rows(tni_context *c, tni_signature *s, const tni_invoke_given *given,
                                 tni_array *const *in, tni_array *out)
{
    tni_array *made = NULL;
    tn_status st = output_check(s, 0, TN_STORAGE_ROW_SPARSE, out);

    if (!st && !(st = call_signature(c, s, given, in, 1, &made)))
        st = tni_rows_fill(out, made);
    tni_array_release(made);
    return st;
}

/* The first output goes into the given array as a factor of what that holds. */
static tn_status call_kept(tni_context *c, tni_signature *s, const tni_invoke_given *given,
                           tni_array *const *in, tni_array **out)
{
    tni_array *both[] = {out[0], NULL};
    uint32_t made = 0;
    tn_status st = output_check(s, 0, s->out_storage[0], out[0]);

    if (!st && !(st = call_signature(c, s, given, in, 1, &both[1])))
        st = tni_invoke_text(c, "elemwise_mul", 2, both, 0, NULL, NULL, 1, out, &made);
    tni_array_release(both[1]);
    return st;
}

static tn_status call_signature(tni_context *c, tni_signature *s, const tni_invoke_given *given,
                                tni_array *const *in, uint32_t out_count, tni_array **out)
{
    tni_array *small[TNI_SIG_OPERANDS] = {NULL}, **all = small, *saved = NULL;
    tn_status st;

    if (out_count < s->args.visible_count)
        return tni_error(TN_E_ARG, "operator %s has %u outputs, room for %u is given", s->def->op->name,
                         s->args.visible_count, out_count);
    if (s->keeps && out[0])
        return call_kept(c, s, given, in, out);
    if (s->def->op->effects & TN_EFFECT_RANDOM && out_count == 1 && out[0] &&
        out[0]->storage_type == TN_STORAGE_ROW_SPARSE)
        return call_given_rows(c, s, given, in, out[0]);
    for (uint32_t i = 0; s->sparse && i < s->args.visible_count; i++)
        if (given_dense(s, i, out[i]))
            return call_given_dense(c, s, given, in, s->args.visible_count, out);
    if (s->out_count > TNI_SIG_OPERANDS &&
        !(all = tni_keep_zeroed(c->space->keep, s->out_count, sizeof(*all))))
        return TN_E_NOMEM;
    if (out_count > s->args.visible_count)
        out_count = s->args.visible_count;
    if (s->view) {
        all[0] = out[0];
        st = view_give(s, in[0], &all[0]);
    } else if (!(st = outputs_make(c, s, out_count, out, all)) &&
               (st = tni_copies(s->def) ? tni_array_copy(in[0], all[0])
                                        : call_now(c, s, given, in, all, &saved))) {
        outputs_drop(s, out_count, out, all);
    }
    for (uint32_t i = 0; !st && i < out_count; i++)
        if (out[i] && out[i]->grad_entry)
            tni_array_forget(out[i]);
    if (!st && s->flags & TN_NODE_RECORDED) {
        tni_signature_retain(s);
        if ((st = tni_tape_record(c, s, given->attrs, in, all, saved))) {
            tni_signature_release(s);
            outputs_drop(s, out_count, out, all);
        }
    }
    if (!st)
        outputs_give(s, out_count, out, all);
    tni_array_release(saved);
    if (all != small)
        tni_keep_give(c->space->keep, all);
    return st;
}

/* ---- the quick way: a site that knows such a call, and new outputs ------------------------------------ */

static bool recent_serves(const tni_site *site, const tni_signature *s, uint32_t flags, uint64_t generation,
                          uint32_t in_count, tni_array *const *in)
{
    if (s->generation != generation || s->flags != flags || s->in_count != in_count || s->forward)
        return false;
    for (uint32_t i = 0; i < in_count; i++)
        if (!tni_operand_matches(&s->in[i], in[i]))
            return false;
    return s->attrs == site->attrs || tni_attrs_equal_structural(s->attrs, site->attrs);
}

/* The one of a plain site's last two signatures that the call has, retained, and its attributes, retained if
 * they are not the signature's, too. NULL: none, or the arrays are not as they should be. */
static tni_signature *site_recent(tni_site *site, uint32_t in_count, tni_array *const *in, tni_attrs **attrs)
{
    const uint64_t generation = tni_exec_generation(site->ctx);
    tni_signature *s = NULL;
    uint32_t flags;

    for (uint32_t i = 0; i < in_count; i++)
        if (!in[i] || atomic_load_explicit(&in[i]->pending, memory_order_acquire))
            return NULL;
    flags = call_flags(tni_scope_get()) | (is_recorded(in_count, in) ? TN_NODE_RECORDED : 0u);
    site_lock(site);
    for (uint32_t i = 0; i < 2; i++, s = NULL)
        if ((s = site->last[i]) && recent_serves(site, s, flags, generation, in_count, in)) {
            site->last[i] = site->last[0];
            site->last[0] = s;
            tni_ref_retain(&s->refs);
            *attrs = s->attrs == site->attrs ? site->attrs : tni_attrs_retain(site->attrs);
            break;
        }
    site_unlock(site);
    return s;
}

static tn_status quick_run(tni_context *c, tni_signature *s, tni_attrs *attrs, tni_array *const *in,
                           tni_array **all)
{
    tn_status st;

    for (uint32_t i = 0; i < s->out_count; i++)
        if (TN_UNLIKELY(st = tni_array_create_as(c->space, &s->forms[i], "array", &all[i])))
            return st;
    if (TN_UNLIKELY(!tni_call_quick(c, s, attrs, in, all)) &&
        (st = tni_call_queue(c, s, attrs, in, all, &(tni_call_with){.saved = NULL})))
        return st;
    if (s->flags & TN_NODE_RECORDED)
        return tni_tape_record(c, s, attrs, in, all, NULL);
    tni_signature_release(s);
    return TN_OK;
}

/* [takes] `s`, on success only. */
static tn_status call_quick(tni_context *c, tni_signature *s, tni_attrs *attrs, tni_array *const *in,
                            tni_array **out)
{
    const uint32_t out_count = s->out_count;
    tni_array *all[TNI_SIG_OPERANDS] = {NULL};
    const tn_status st = quick_run(c, s, attrs, in, all);

    for (uint32_t i = 0; i < out_count; i++)
        if (TN_UNLIKELY(st))
            tni_array_release(all[i]);
        else
            out[i] = all[i];
    return st;
}

static bool outputs_new(uint32_t count, tni_array *const *out)
{
    for (uint32_t i = 0; i < count; i++)
        if (out[i])
            return false;
    return true;
}

/* [takes] `s`. */
static tn_status call_recent(tni_context *c, tni_signature *s, const tni_invoke_given *with,
                             tni_array *const *in, uint32_t out_count, tni_array **out)
{
    tni_attrs *const own = with->attrs == s->attrs ? NULL : with->attrs;
    const tni_opdef *def = s->def;
    const uint32_t in_count = s->in_count;
    tn_status st;

    if (s->quick && out_count == s->out_count && outputs_new(out_count, out)) {
        if (TN_UNLIKELY((st = call_quick(c, s, with->attrs, in, out))))
            tni_signature_release(s);
        tni_attrs_release(own);
        return st;
    }
    st = call_signature(c, s, with, in, out_count, out);
    if (st == TN_E_UNSUPPORTED && tni_stored_any(in_count, in))
        st = tni_stored_invoke(c, def, with->attrs, in_count, in, out_count, out);
    tni_signature_release(s);
    tni_attrs_release(own);
    return st;
}

/* ---- any call ---------------------------------------------------------------------------------------- */

tn_status tni_invoke_with(tni_site *site, const tni_invoke_given *given, uint32_t in_count,
                          tni_array *const *in, uint32_t out_count, tni_array **out)
{
    tni_context *c = site->ctx;
    const bool fixed = site->fixed && !given->attrs;
    tni_invoke_given with = *given;
    tni_signature *s = NULL;
    tni_call_key k;
    tn_status st;

    if (TN_LIKELY(site->plain && in_count && !with.attrs && !with.forward) &&
        (s = site_recent(site, in_count, in, &with.attrs)))
        return call_recent(c, s, &with, in, out_count, out);
    if (fixed) { /* the site keeps them as long as it lives: nobody has to hold them, too */
        with.attrs = site->attrs;
    } else if (with.attrs) {
        tni_attrs_retain(with.attrs);
    } else if (!in_count || tni_copies(site->def) || site->def->function || site->def->by_run) {
        /* they may name the device, or be asked for counts and shapes */
        site_lock(site);
        with.attrs = tni_attrs_retain(site->attrs);
        site_unlock(site);
    }
    if (site->def->function) {
        const tni_function_args args = {with.attrs, in_count, out_count, in};

        st = tni_function_invoke(c, site->def, &args, out, NULL);
    } else if (!(st = key_make(c, site->def, with.attrs, in_count, in, out_count, out, &k))) {
        k.forward = with.forward;
        if (!(st = site_find(site, &k, &with.attrs, &s)))
            st = call_signature(c, s, &with, in, out_count, out);
        if (st == TN_E_UNSUPPORTED && with.attrs && tni_stored_any(in_count, in))
            st = tni_stored_invoke(c, site->def, with.attrs, in_count, in, out_count, out);
    }
    tni_signature_release(s);
    if (!fixed)
        tni_attrs_release(with.attrs);
    return st;
}

tn_status tni_invoke(tni_site *site, uint32_t in_count, tni_array *const *in, uint32_t out_count,
                     tni_array **out)
{
    return tni_invoke_with(site, &(tni_invoke_given){0}, in_count, in, out_count, out);
}

tn_status tni_invoke_copy(tni_context *c, tni_array *a, tni_array **out)
{
    tni_site *site = NULL;
    tn_status st = tni_site_create(c, "_copy", 0, NULL, NULL, &site);

    if (!st)
        st = tni_invoke(site, 1, &a, 1, out);
    tni_site_release(site);
    return st;
}

tn_status tni_invoke_text(tni_context *c, const char *op, uint32_t in_count, tni_array *const *in,
                          size_t attr_count, const char *const *names, const char *const *texts,
                          uint32_t out_count, tni_array **out, uint32_t *made)
{
    const tni_opdef *def;
    tni_invoke_given given = {0};
    tni_signature *s = NULL;
    tni_call_key k;
    tn_status st;

    if ((st = tni_opset_find_offered(c->ops, op, &def)))
        return st;
    if (def->count_attr >= 0) { /* the number of inputs goes without saying */
        const char *const name = def->op->attrs[def->count_attr].name;
        bool named = false;

        for (size_t i = 0; i < attr_count; i++)
            named |= !strcmp(names[i], name);
        if (!named) {
            const char *all_names[129], *all_texts[129];
            char count[16];

            if (attr_count > 128)
                return tni_error(TN_E_ATTR, "operator %s: %zu attributes are too many", op, attr_count);
            snprintf(count, sizeof count, "%u", in_count);
            for (size_t i = 0; i < attr_count; i++) {
                all_names[i] = names[i];
                all_texts[i] = texts[i];
            }
            all_names[attr_count] = name;
            all_texts[attr_count] = count;
            return tni_invoke_text(c, op, in_count, in, attr_count + 1, all_names, all_texts, out_count, out,
                                   made);
        }
    }
    st = tni_attrs_parse(def, attr_count, names, texts, &given.attrs);
    if (!st && def->function) {
        const tni_function_args args = {given.attrs, in_count, out_count, in};

        st = tni_function_invoke(c, def, &args, out, made);
    } else if (!st && !(st = key_make(c, def, given.attrs, in_count, in, out_count, out, &k))) {
        tni_args args = {0};

        if (!(st = tni_signature_find(c, &k, &s)) && !(st = call_signature(c, s, &given, in, out_count, out)))
            args = s->args;
        else if (st == TN_E_UNSUPPORTED && tni_stored_any(in_count, in) &&
                 !(st = tni_stored_invoke(c, def, given.attrs, in_count, in, out_count, out)))
            st = tni_op_args(def, given.attrs, in_count, &args);
        if (!st && made)
            *made = args.visible_count;
    }
    tni_signature_release(s);
    tni_attrs_release(given.attrs);
    return st;
}
