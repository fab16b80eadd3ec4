/*
 * Calls with sparse arrays that no kernel takes as they are. What the operator does with them, its table says
 * (op/storage.c): it runs on what is stored, as a call over dense values; or dense copies are made. Which of
 * the two it was changes memory, not numbers; so copies that MXNet would tell of are told, or refused:
 * exec.storage_fallback. How many elements are stored decides sizes, so such a call may wait for it.
 */
#include <string.h>

#include "exec/call.h"

typedef struct stored_call {
    tni_context *ctx;
    const tni_opdef *def;
    tni_site *site; /* of the operator, with the attributes of the call */
    tni_array *const *in;
    tni_array **out;
    tni_array **dense; /* per input: what goes in in its place */
    uint32_t in_count, out_count;
    tni_args args;
} stored_call;

bool tni_stored_any(uint32_t in_count, tni_array *const *in)
{
    for (uint32_t i = 0; i < in_count; i++)
        if (in[i] && in[i]->storage_type != TN_STORAGE_DENSE)
            return true;
    return false;
}

static tn_status cast_to(tni_context *c, tni_array *a, int32_t storage, tni_array **out)
{
    static const char *const name = "stype";
    static const char *const texts[] = {"default", "row_sparse", "csr"};
    uint32_t made = 0;

    return tni_invoke_text(c, "cast_storage", 1, &a, 1, &name, &texts[storage], 1, out, &made);
}

/* The call with other inputs, not recorded: none of them leads anywhere. */
static tn_status run_dense(const stored_call *k, uint32_t out_count, tni_array **out)
{
    return tni_invoke(k->site, k->in_count, k->dense, out_count, out);
}

/* ---- ways ---------------------------------------------------------------------------------------------- */

/* `wanted`: those alone whose entry is dense; NULL: all. */
static tn_status copies_make(const stored_call *k, const int32_t *wanted)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < k->in_count && !st; i++) {
        const bool copies =
            k->in[i]->storage_type != TN_STORAGE_DENSE && (!wanted || wanted[i] == TN_STORAGE_DENSE);

        if (copies && tn_op_mutates(k->def->op, k->in_count, i))
            return tni_error(TN_E_UNSUPPORTED, "operator %s changes input %u, which is sparse",
                             k->def->op->name, i);
        if (copies)
            st = cast_to(k->ctx, k->in[i], TN_STORAGE_DENSE, &k->dense[i]);
        else
            tni_array_retain(k->dense[i] = k->in[i]);
    }
    return st;
}

static tn_status as_copies(const stored_call *k)
{
    const tn_status st = copies_make(k, NULL);

    return st ? st : run_dense(k, k->out_count, k->out);
}

static tn_status as_number(const stored_call *k)
{
    const tn_status st = tni_array_values(k->in[0], &k->dense[0]);

    return st ? st : run_dense(k, k->out_count, k->out);
}

/* What the values give has the places of `like`; a dense array that is given gets it. */
static tn_status values_run(const stored_call *k, tni_array *like)
{
    tni_array *y = NULL, *sparse = NULL;
    tn_status st;

    if (k->out[0] && k->out[0]->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED,
                         "operator %s: the number of stored elements of its output is not known before, so "
                         "no sparse array can be given",
                         k->def->op->name);
    if (!(st = run_dense(k, 1, &y)) && !(st = tni_sparse_with(like, y, &sparse))) {
        if (k->out[0])
            st = tni_dense_give(k->ctx, sparse, k->out);
        else
            tni_array_retain(k->out[0] = sparse);
    }
    tni_array_release(sparse);
    tni_array_release(y);
    return st;
}

static tn_status as_values(const stored_call *k)
{
    const tn_status st = tni_array_values(k->in[0], &k->dense[0]);

    return st ? st : values_run(k, k->in[0]);
}

static bool fit(const stored_call *k)
{
    for (uint32_t i = 1; i < k->in_count; i++)
        if (!tni_array_has_shape(k->in[i], k->in[0]->ndim, k->in[0]->shape))
            return false;
    return true;
}

static tn_status shapes_differ(const stored_call *k)
{
    return tni_error(TN_E_SHAPE, "operator %s: its inputs differ in their shape", k->def->op->name);
}

static tn_status as_aligned(const stored_call *k)
{
    tni_array **aligned = tni_calloc(k->in_count + 1u, sizeof(*aligned));
    tn_status st = !aligned ? TN_E_NOMEM
                   : fit(k) ? tni_sparse_align(k->in_count, k->in, aligned)
                            : shapes_differ(k);

    for (uint32_t i = 0; i < k->in_count && !st; i++)
        st = tni_array_values(aligned[i], &k->dense[i]);
    if (!st)
        st = values_run(k, aligned[0]);
    for (uint32_t i = 0; aligned && i < k->in_count; i++)
        tni_array_release(aligned[i]);
    tni_free((void *)aligned);
    return st;
}

static tn_status masked(const stored_call *k, uint32_t i, tni_array *like)
{
    tni_array *whole = k->in[i], *made = NULL;
    tn_status st = TN_OK;

    if (whole == like)
        return tni_array_values(like, &k->dense[i]);
    if (whole->storage_type != TN_STORAGE_DENSE && !(st = cast_to(k->ctx, whole, TN_STORAGE_DENSE, &made)))
        whole = made;
    if (!st)
        st = tni_sparse_mask(whole, like, &k->dense[i]);
    tni_array_release(made);
    return st;
}

static tn_status as_masked(const stored_call *k)
{
    tni_array *like = NULL;
    tn_status st = fit(k) ? TN_OK : shapes_differ(k);

    for (uint32_t i = 0; i < k->in_count && !like; i++)
        if (k->in[i]->storage_type != TN_STORAGE_DENSE)
            like = k->in[i];
    for (uint32_t i = 0; i < k->in_count && !st; i++)
        st = masked(k, i, like);
    return st ? st : values_run(k, like);
}

/* ---- rows of an update --------------------------------------------------------------------------------- */

/* The weight and the states, at the rows of the gradient. */
static tn_status rows_take(const stored_call *k, tni_array *ids)
{
    tn_status st = tni_array_values(k->in[1], &k->dense[1]);

    for (uint32_t i = 0; i < k->in_count && !st; i++) {
        tni_array *a = k->in[i];

        if (i != 1 && !(st = tni_array_create(k->ctx->space, a->storage->device, a->dtype, a->ndim,
                                              k->dense[1]->shape, "array", &k->dense[i])))
            st = tni_rows_move(a, ids, k->dense[i], false);
    }
    return st;
}

/* Where the new weight goes: what is given, or an array of its own, with the rows that stay. */
static tn_status weight_place(const stored_call *k, tni_array **made)
{
    tni_array *given = k->out_count ? k->out[0] : NULL;

    if (!given)
        return tni_invoke_copy(k->ctx, k->in[0], made);
    if (given->dtype != k->in[0]->dtype || given->storage_type != TN_STORAGE_DENSE ||
        !tni_array_has_shape(given, k->in[0]->ndim, k->in[0]->shape))
        return tni_error(TN_E_SHAPE, "operator %s: its output does not fit the array given for it",
                         k->def->op->name);
    tni_array_retain(*made = given);
    return given == k->in[0] ? TN_OK : tni_array_copy(k->in[0], given);
}

static tn_status as_rows(const stored_call *k)
{
    tni_array *ids = k->in[1]->aux[0], *weight = NULL, *y = NULL;
    tn_status st = fit(k) ? tni_array_shape_wait(ids) : shapes_differ(k);

    if (st || (st = rows_take(k, ids)) || (st = run_dense(k, 1, &y)) || (st = weight_place(k, &weight)))
        goto cleanup;
    st = tni_rows_move(weight, ids, y, true);
    for (uint32_t i = 0; i < k->in_count && !st; i++)
        if (tn_op_mutates(k->def->op, k->in_count, i))
            st = tni_rows_move(k->in[i], ids, k->dense[i], true);
    if (!st && k->out_count && !k->out[0]) {
        k->out[0] = weight; /* moved */
        weight = NULL;
    }

cleanup:
    tni_array_release(weight);
    tni_array_release(y);
    return st;
}

/* ---- products ------------------------------------------------------------------------------------------ */

static bool is_set(const stored_call *k, const tni_attrs *attrs, const char *attr)
{
    return attrs->values[tni_attr_index(k->def, attr)] != 0;
}

/* data · weight' + bias, where data or weight is csr; their shapes were inferred before. */
static tn_status as_product(const stored_call *k, const tni_attrs *attrs)
{
    static const char *const names[] = {"transpose_b", "forward_stype"}, *const texts[] = {"True", "default"};
    const bool bias = !is_set(k, attrs, "no_bias");
    tni_array *in[] = {k->in[0], k->in[1]}, *flat = NULL, *y = bias ? NULL : k->out[0];
    uint32_t made = 0;
    tn_status st = TN_OK;

    if (is_set(k, attrs, "flatten") && in[0]->ndim != 2) {
        st = tni_invoke_text(k->ctx, "Flatten", 1, in, 0, NULL, NULL, 1, &flat, &made);
        in[0] = flat;
    }
    if (!st && !(st = tni_invoke_text(k->ctx, "dot", 2, in, 2, names, texts, 1, &y, &made))) {
        in[0] = y;
        if (bias) {
            in[1] = k->in[2];
            st = tni_invoke_text(k->ctx, "broadcast_add", 2, in, 0, NULL, NULL, 1, k->out, &made);
        } else {
            k->out[0] = y;
        }
    }
    if (bias)
        tni_array_release(y);
    tni_array_release(flat);
    return st;
}

/* ---- the call ------------------------------------------------------------------------------------------ */

static tn_status (*const ways[])(const stored_call *k) = {
    [TNI_STORED_NONE] = as_copies,   [TNI_STORED_DENSE] = as_copies,    [TNI_STORED_VALUES] = as_values,
    [TNI_STORED_NUMBER] = as_number, [TNI_STORED_ALIGNED] = as_aligned, [TNI_STORED_MASKED] = as_masked,
    [TNI_STORED_ROWS] = as_rows,
};

/* The operator itself may ask for dense copies of some. */
static bool asks(const stored_call *k, const tni_attrs *attrs, int32_t *in, int32_t *out)
{
    bool other = false;

    if (!k->def->op->storage || tni_op_infer_storage(k->def, attrs, &k->args, in, out)) {
        tni_error_clear();
        return false;
    }
    for (uint32_t i = 0; i < k->in_count; i++) {
        if (in[i] != k->in[i]->storage_type && in[i] != TN_STORAGE_DENSE)
            return false;
        other |= in[i] != k->in[i]->storage_type;
    }
    return other;
}

static void storages_fill(const stored_call *k, int32_t *in, int32_t *out)
{
    for (uint32_t i = 0; i < k->in_count; i++)
        in[i] = k->in[i]->storage_type;
    for (uint32_t i = 0; i < k->args.out_count; i++)
        out[i] = TN_STORAGE_UNKNOWN;
}

/* Once for each operator, as many steps as a training has. */
static bool tell(tni_exec *x, const tni_opdef *def)
{
    for (uint32_t i = 0; i < TNI_COPIES_TOLD; i++) {
        const tni_opdef *there = NULL;

        if (atomic_compare_exchange_strong(&x->copied[i], &there, def))
            return true;
        if (there == def)
            return false;
    }
    return false;
}

/* `first`: why the call as it is was refused. */
static tn_status copies_told(const stored_call *k, const tn_err *first)
{
    const char *how = tni_option_text(k->ctx->options, "exec.storage_fallback");

    if (!strcmp(how, "error"))
        return tni_error(first->code, "%s", first->message);
    if (!strcmp(how, "warn") && tell(k->ctx->exec, k->def))
        tni_logf(&k->ctx->log, TN_LOG_WARNING, "operator %s runs on dense copies of sparse arrays: %s",
                 k->def->op->name, first->message);
    return TN_OK;
}

static tn_status call_run(const stored_call *k, const tni_attrs *attrs, const tn_err *first,
                          int32_t *storages)
{
    int32_t *out = storages + k->in_count, to = TN_STORAGE_DENSE;
    tni_stored_way way = TNI_STORED_NONE;
    tn_status st = TN_OK;

    storages_fill(k, storages, out);
    if (asks(k, attrs, storages, out)) {
        if (k->def->plugin && (st = copies_told(k, first))) /* those of the core are as MXNet's */
            return st;
        return (st = copies_make(k, storages)) ? st : run_dense(k, k->out_count, k->out);
    }
    if (!strcmp(k->def->op->name, "cast_storage"))
        return tni_error(first->code, "%s", first->message);
    storages_fill(k, storages, out);
    way = tni_op_stored(k->def, attrs, k->in_count, storages, &to);
    if (way == TNI_STORED_PRODUCT)
        return as_product(k, attrs);
    if (tni_scope_get()->recording && tni_tape_tracks(k->in_count, k->in))
        way = TNI_STORED_NONE;
    if (way == TNI_STORED_NONE)
        st = copies_told(k, first);
    return st ? st : ways[way](k);
}

tn_status tni_stored_invoke(tni_context *c, const tni_opdef *def, const tni_attrs *attrs, uint32_t in_count,
                            tni_array *const *in, uint32_t out_count, tni_array **out)
{
    stored_call k = {
        .ctx = c, .def = def, .in = in, .out = out, .in_count = in_count, .out_count = out_count};
    int32_t *storages = NULL;
    tn_err first;
    tn_status st;

    tni_error_get(&first);
    if ((st = tni_op_args(def, attrs, in_count, &k.args)) || (st = tni_site_of(c, def, attrs, &k.site)))
        return st;
    storages = tni_calloc(in_count + k.args.out_count + 1ull, sizeof *storages);
    k.dense = tni_calloc(in_count + 1u, sizeof(*k.dense));
    st = storages && k.dense ? call_run(&k, attrs, &first, storages) : TN_E_NOMEM;
    for (uint32_t i = 0; k.dense && i < in_count; i++)
        tni_array_release(k.dense[i]);
    tni_free((void *)k.dense);
    tni_free(storages);
    tni_site_release(k.site);
    if (!st)
        tni_error_clear(); /* of the refusal */
    return st;
}
