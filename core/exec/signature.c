/*
 * Signatures: what two calls must have in common to run the same prepared kernel.
 *
 * Operator, structural attributes, dtypes, storage types, shapes, strides of what is not row-major, device,
 * flags, thread budget and the generation of options and plugins. The table is a hash with an LRU list; a
 * signature in use outlives its place in the table by its reference count.
 */
#include "exec/internal.h"

#include <string.h>

uint64_t tni_exec_generation(const tni_context *c)
{
    return tni_options_generation(c->options) << 20 ^ tni_registry_choices(c->plugins);
}

void tni_signature_retain(tni_signature *s)
{
    tni_ref_retain(&s->refs);
}

void tni_signature_release(tni_signature *s)
{
    if (!s || !tni_ref_release(&s->refs))
        return;
    tni_frame_pool_close(s->pool);
    if (!s->program)
        tni_prepared_release(s->prepared);
    tni_program_release(s->program);
    tni_prepared_release(s->forward);
    tni_attrs_release(s->attrs);
    tni_free(s);
}

/* ---- matching ---------------------------------------------------------------------------------------- */

static bool shapes_equal(const tn_shape *a, const tn_shape *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int32_t d = 0; d < a->ndim; d++)
        if (a->dim[d] != b->dim[d])
            return false;
    return true;
}

bool tni_signature_matches(const tni_signature *s, const tni_call_key *k)
{
    if (s->def != k->def || s->device != k->device || s->flags != k->flags ||
        s->generation != k->generation || s->in_count != k->in_count || s->forward != k->forward)
        return false;
    if (s->attrs != k->attrs && !tni_attrs_equal_structural(s->attrs, k->attrs))
        return false;
    for (uint32_t i = 0; i < k->in_count; i++)
        if (!tni_operand_matches(&s->in[i], k->in[i]))
            return false;
    for (uint32_t i = 0; i < k->out_count; i++)
        if (!shapes_equal(&s->out_shape[i], k->out_shape[i]))
            return false;
    return true;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

uint64_t tni_call_hash(const tni_call_key *k)
{
    uint64_t h = mix(k->def->id, k->attrs->hash);

    h = mix(h, k->flags | (uint64_t)k->device->ordinal << 32);
    h = mix(h, k->generation);
    h = mix(h, (uint64_t)(uintptr_t)k->forward);
    for (uint32_t i = 0; i < k->in_count; i++) {
        const tni_array *a = k->in[i];

        h = mix(h, (uint64_t)a->dtype << 32 | (uint64_t)a->storage_type << 16 | (uint64_t)a->ndim << 8 |
                       (a->flags & TNI_ARRAY_CONTIGUOUS));
        for (int32_t d = 0; d < a->ndim; d++)
            h = mix(h, (uint64_t)a->shape[d]);
    }
    for (uint32_t i = 0; i < k->out_count; i++)
        for (int32_t d = 0; d < k->out_shape[i]->ndim; d++)
            h = mix(h, (uint64_t)k->out_shape[i]->dim[d]);
    return h ^ h >> 29;
}

/* ---- shapes that run-time attributes decide ----------------------------------------------------------- */

static tn_status args_of(const tni_call_key *k, tni_args *args)
{
    tn_status st = tni_op_args(k->def, k->attrs, k->in_count, args);

    if (st || args->in_count == k->in_count)
        return st;
    return tni_error(TN_E_ARG, "operator %s takes %u inputs, got %u", k->def->op->name, args->in_count,
                     k->in_count);
}

static uint32_t infer_flags(const tni_call_key *k)
{
    return (k->flags & TN_NODE_NP_SHAPE ? TN_INFER_NP_SHAPE : 0u) |
           (k->flags & TN_NODE_TRAIN ? TN_INFER_TRAIN : 0u);
}

static void shape_of_array(const tni_array *a, tn_shape *out)
{
    out->ndim = a->ndim;
    memcpy(out->dim, a->shape, (size_t)a->ndim * sizeof(int64_t));
}

tn_status tni_call_shapes(tni_context *c, tni_call_key *k, tni_call_room *room)
{
    tn_shape *shapes = room->few, **at = room->at;
    uint32_t count;
    tni_args args;
    tn_status st;

    room->keep = c->space->keep;
    room->many = NULL;
    if (!k->def->by_run)
        return TN_OK;
    if ((st = args_of(k, &args)) || !(k->def->by_run & TNI_BY_RUN_SHAPES))
        return st;
    if ((count = args.in_count + args.out_count) > TNI_CALL_SHAPES) {
        if (!(room->many = tni_keep_take(room->keep, count * (sizeof *shapes + sizeof(*at)))))
            return TN_E_NOMEM;
        shapes = room->many;
        at = (tn_shape **)(void *)(shapes + count);
    }
    for (uint32_t i = 0; i < count; i++) {
        at[i] = &shapes[i];
        if (i < k->in_count)
            shape_of_array(k->in[i], at[i]);
        else
            at[i]->ndim = TN_NDIM_UNKNOWN;
    }
    k->out_shape = at + k->in_count;
    k->out_count = args.out_count;
    return tni_op_infer_shape(k->def, k->attrs, &args, infer_flags(k), at, at + k->in_count);
}

/* ---- making ------------------------------------------------------------------------------------------ */

/* One block: the signature, its operand keys with their dims, forms and shapes of outputs, dtypes, mutated
 * inputs, modes and storage types. */
static tn_status signature_alloc(const tni_call_key *k, uint32_t out_count, uint32_t mutated,
                                 tni_signature **out)
{
    uint64_t dims = 0, bytes;
    tni_signature *s;
    int64_t *at;

    for (uint32_t i = 0; i < k->in_count; i++)
        dims += 2u * (uint64_t)k->in[i]->ndim;
    bytes = sizeof *s + k->in_count * sizeof *s->in + dims * sizeof(int64_t) +
            out_count * (sizeof *s->forms + sizeof(tn_shape) + sizeof(int32_t) + 2) +
            mutated * (1 + sizeof *s->mutated) + 16;
    if (!(s = tni_zalloc(bytes)))
        return TN_E_NOMEM;
    s->in = (tni_operand_key *)(s + 1);
    s->forms = (tni_array_form *)(s->in + k->in_count);
    s->out_shape = (tn_shape *)(s->forms + out_count);
    at = (int64_t *)(s->out_shape + out_count);
    for (uint32_t i = 0; i < k->in_count; i++) {
        const tni_array *a = k->in[i];
        const size_t size = (size_t)a->ndim * sizeof *at;

        s->in[i] = (tni_operand_key){.dtype = a->dtype,
                                     .ndim = a->ndim,
                                     .contiguous = a->flags & TNI_ARRAY_CONTIGUOUS,
                                     .storage = a->storage_type,
                                     .shape = at,
                                     .stride = at + a->ndim,
                                     .device = a->storage->device};
        memcpy(at, a->shape, size);
        memcpy(at + a->ndim, a->stride, size);
        at += 2 * a->ndim;
    }
    s->out_dtype = (int32_t *)at;
    s->mutated = (uint32_t *)(s->out_dtype + out_count);
    s->modes = (uint8_t *)(s->mutated + mutated);
    s->out_storage = s->modes + out_count + mutated;
    memset(s->modes, TN_MODE_WRITE, out_count + mutated);
    *out = s;
    return TN_OK;
}

typedef struct infer_room { /* scratch of one inference */
    tn_shape *shapes;
    tn_shape **in, **out;
    int32_t *dtypes, *storages;
} infer_room;

static void infer_room_fini(infer_room *r)
{
    tni_free(r->shapes);
    tni_free(r->in);
    tni_free(r->dtypes);
}

static tn_status infer_room_init(infer_room *r, const tni_call_key *k, uint32_t out_count)
{
    const uint32_t count = k->in_count + out_count;

    r->shapes = tni_calloc(count + 1u, sizeof *r->shapes);
    r->in = tni_calloc(count + 1u, sizeof *r->in);
    r->dtypes = tni_calloc(2ull * count + 1, sizeof *r->dtypes);
    if (!r->shapes || !r->in || !r->dtypes)
        return TN_E_NOMEM;
    r->out = r->in + k->in_count;
    r->storages = r->dtypes + count;
    for (uint32_t i = 0; i < count; i++) {
        r->in[i] = &r->shapes[i];
        r->shapes[i].ndim = TN_NDIM_UNKNOWN;
        r->dtypes[i] = TN_DTYPE_UNKNOWN;
        r->storages[i] = TN_STORAGE_UNKNOWN;
        if (i >= k->in_count)
            continue;
        shape_of_array(k->in[i], &r->shapes[i]);
        r->dtypes[i] = k->in[i]->dtype;
        r->storages[i] = k->in[i]->storage_type;
    }
    return TN_OK;
}

/* What reads nothing has its shape from its attributes. They leave it open where only a run knows more: of an
 * operator that checks what it reads (_cvimread). */
static tn_status shape_open(const tni_call_key *k, const tn_shape *shape)
{
    tni_str text;
    tn_status st;

    tni_str_init(&text, 4096);
    tni_shape_format(shape, &text);
    st = tni_error(TN_E_SHAPE, "operator %s: the shape %.200s of its output is not known", k->def->op->name,
                   text.text ? text.text : "?");
    tni_str_fini(&text);
    return st;
}

static tn_status sparse_refuse(const tni_opdef *def, const char *what, uint32_t index, int32_t storage)
{
    return tni_error(TN_E_UNSUPPORTED, "operator %s: %s %u is sparse (%s)", def->op->name, what, index,
                     tni_storage_type_name(storage));
}

/* An output that nothing is said of is dense. What the core does without a kernel, views and copies, is. */
static tn_status storages_take(const tni_call_key *k, const infer_room *r, tni_signature *s)
{
    const bool dense = s->view || tni_copies(k->def);

    for (uint32_t i = 0; i < k->in_count; i++) {
        const int32_t have = k->in[i]->storage_type, want = r->storages[i];

        if (want != have && want != TN_STORAGE_UNKNOWN)
            return tni_error(TN_E_UNSUPPORTED, "operator %s: input %u is %s, not %s", k->def->op->name, i,
                             tni_storage_type_name(have), tni_storage_type_name(want));
        if (dense && have != TN_STORAGE_DENSE)
            return sparse_refuse(k->def, "input", i, have);
        s->sparse |= have != TN_STORAGE_DENSE;
    }
    for (uint32_t i = 0; i < s->out_count; i++) {
        const int32_t storage = r->storages[k->in_count + i];

        if (dense && storage > TN_STORAGE_DENSE)
            return sparse_refuse(k->def, "output", i, storage);
        s->out_storage[i] = storage > TN_STORAGE_DENSE ? (uint8_t)storage : TN_STORAGE_DENSE;
        s->sparse |= storage > TN_STORAGE_DENSE;
    }
    return TN_OK;
}

static bool outputs_sized(const tni_signature *s)
{
    bool known = true;

    for (uint32_t i = 0; i < s->out_count && known; i++)
        known = tn_shape_known(&s->out_shape[i]);
    return known;
}

static tn_status signature_infer(const tni_call_key *k, tni_signature *s)
{
    infer_room r = {0};
    tn_status st;

    if ((st = infer_room_init(&r, k, s->args.out_count)) ||
        (st = tni_op_infer_shape(k->def, k->attrs, &s->args, infer_flags(k), r.in, r.out)) ||
        (st = tni_op_infer_dtype(k->def, k->attrs, &s->args, r.dtypes, r.dtypes + k->in_count)) ||
        (st = tni_op_infer_storage(k->def, k->attrs, &s->args, r.storages, r.storages + k->in_count)) ||
        (st = storages_take(k, &r, s)))
        goto cleanup;
    for (uint32_t i = 0; i < s->args.out_count && !st; i++) {
        s->out_shape[i] = *r.out[i];
        s->out_dtype[i] = r.dtypes[k->in_count + i];
        s->pending |= !tn_shape_known(r.out[i]);
        if (s->out_dtype[i] < 0)
            st = tni_error(TN_E_DTYPE,
                           "operator %s: the data type of output %u does not follow from its inputs",
                           k->def->op->name, i);
        else if (!k->in_count && s->pending && !(k->def->op->flags & TN_OP_CHECKS_VALUES))
            st = shape_open(k, r.out[i]);
    }

cleanup:
    infer_room_fini(&r);
    return st;
}

typedef struct tensor_room { /* tensors without data that describe a node to select */
    tn_tensor *tensors;
    const tn_tensor **list;
    int64_t *strides;
} tensor_room;

static void tensor_room_fini(tensor_room *r)
{
    tni_free(r->tensors);
    tni_free((void *)r->list);
    tni_free(r->strides);
}

static void tensor_of_shape(tn_tensor *t, const tn_shape *shape, int32_t dtype, int64_t *stride)
{
    t->shape = shape->dim;
    t->stride = stride;
    t->ndim = shape->ndim;
    t->dtype = dtype;
    t->bytes = tn_dtype_size(dtype, (uint64_t)tni_row_major(t->ndim, t->shape, stride));
}

static tn_status tensor_room_init(tensor_room *r, const tni_call_key *k, const tni_signature *s)
{
    const uint32_t outs = s->out_count + s->mutated_count;

    r->tensors = tni_calloc(k->in_count + outs + 1u, sizeof *r->tensors);
    r->list = tni_calloc(k->in_count + outs + 1u, sizeof *r->list);
    r->strides = tni_calloc(s->out_count + 1u, TN_NDIM_MAX * sizeof *r->strides);
    if (!r->tensors || !r->list || !r->strides)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < k->in_count; i++) {
        tni_array_tensor(k->in[i], &r->tensors[i]);
        r->tensors[i].data = NULL;
    }
    for (uint32_t i = 0; i < s->out_count; i++) {
        tensor_of_shape(&r->tensors[k->in_count + i], &s->out_shape[i], s->out_dtype[i],
                        r->strides + (size_t)i * TN_NDIM_MAX);
        r->tensors[k->in_count + i].storage = s->out_storage[i];
    }
    for (uint32_t i = 0; i < s->mutated_count; i++)
        r->tensors[k->in_count + s->out_count + i] = r->tensors[s->mutated[i]];
    for (uint32_t i = 0; i < k->in_count + outs; i++)
        r->list[i] = &r->tensors[i];
    return TN_OK;
}

static tn_status signature_prepare(tni_context *c, const tni_call_key *k, tni_signature *s)
{
    tensor_room room = {0};
    tni_request r = {.def = tni_op_meaning(k->def), .attrs = k->attrs, .device = k->device};
    tn_status st;

    if ((st = tensor_room_init(&room, k, s)))
        goto cleanup;
    r.in = room.list;
    r.out = room.list + k->in_count;
    r.modes = s->modes;
    r.in_count = k->in_count;
    r.out_count = s->out_count + s->mutated_count;
    r.threads = s->threads;
    r.flags = (uint16_t)(k->flags | c->exec->node_flags);
    r.forward = k->forward;
    if (s->sparse) {
        if (!(st = tni_select(c->selector, &r, &s->prepared)))
            st = tni_sparse_serves(s);
        goto cleanup;
    }
    if ((st = tni_program_of_call(c->selector, &r, &s->program)) ||
        (st = tni_frame_pool_create(c, s->program, &s->pool)))
        goto cleanup;
    s->prepared = s->program->code[s->program->main_code].prepared;

cleanup:
    tensor_room_fini(&room);
    return st;
}

/* A small host kernel without anything special runs on the caller. */
static bool fast_path(const tni_context *c, const tni_signature *s)
{
    const tni_prepared *p = s->prepared;

    if (!p || !s->device->host || s->pending || s->sparse || p->dense || s->in_count > TNI_SIG_OPERANDS ||
        s->out_count + s->mutated_count > TNI_SIG_OPERANDS)
        return false;
    for (uint32_t i = 0; i < s->out_count; i++)
        if (!tn_shape_count(&s->out_shape[i])) /* kernels need not see what has no elements */
            return false;
    if (p->plan.flags & (TN_PLAN_PARALLEL | TN_PLAN_RESIZES) || p->kernel->flags & TN_KERNEL_ASYNC)
        return false;
    return p->plan.est_ns && p->plan.est_ns <= c->exec->inline_ns && !p->plan.workspace_bytes &&
           !p->plan.saved_bytes && !tni_prepared_reads(p);
}

/* A call needs no more than forms for its outputs. */
static bool quick(tni_signature *s)
{
    bool simple = s->fast_path && !s->keeps && !s->mutated_count && s->args.visible_count == s->out_count &&
                  !(s->def->op->effects & TN_EFFECT_RANDOM);

    for (uint32_t i = 0; simple && i < s->out_count; i++) {
        const tn_shape *shape = &s->out_shape[i];

        simple = shape->ndim <= TNI_FORM_NDIM &&
                 !tni_array_form_init(&s->forms[i], s->device, s->out_dtype[i], shape->ndim, shape->dim);
    }
    return simple;
}

static tn_status signature_create(tni_context *c, const tni_call_key *k, tni_signature **out)
{
    static atomic_uint_fast64_t ids;
    tni_signature *s = NULL;
    tni_args args;
    uint32_t mutated = 0;
    tn_status st;

    if (k->def->op->exec == TN_EXEC_SUBGRAPH)
        return tni_error(TN_E_UNSUPPORTED,
                         "operator %s runs graphs of its own: it is a node of a net, never a call",
                         k->def->op->name);
    if ((st = args_of(k, &args)))
        return st;
    for (uint32_t i = 0; i < k->in_count; i++)
        mutated += (uint32_t)tn_op_mutates(k->def->op, k->in_count, i);
    if ((st = signature_alloc(k, args.out_count, mutated, &s)))
        return st;
    tni_ref_init(&s->refs);
    s->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1;
    s->def = k->def;
    s->attrs = tni_attrs_retain(k->attrs);
    if ((s->forward = k->forward))
        tni_prepared_retain(s->forward);
    s->device = k->device;
    s->flags = k->flags;
    s->threads = c->exec->threads;
    s->generation = k->generation;
    s->in_count = k->in_count;
    s->out_count = args.out_count;
    s->args = args;
    for (uint32_t i = 0; mutated && i < k->in_count; i++)
        if (tn_op_mutates(k->def->op, k->in_count, i))
            s->mutated[s->mutated_count++] = i;
    s->view = (k->def->op->flags & TN_OP_VIEW) != 0;
    if ((st = signature_infer(k, s)) ||
        (!s->view && !tni_copies(s->def) && (st = signature_prepare(c, k, s))) ||
        (st = tni_gradient_needs(c->ops, outputs_sized(s), k->def, k->attrs, s->in_count, s->out_count,
                                 s->need_in, s->need_out)))
        goto cleanup;
    s->fast_path = fast_path(c, s);
    s->keeps = tni_op_keeps(k->def, k->attrs);
    s->quick = quick(s);
    *out = s;
    s = NULL;

cleanup:
    tni_signature_release(s);
    return st;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static void lru_unlink(tni_exec *x, tni_signature *s)
{
    *(s->lru_prev ? &s->lru_prev->lru_next : &x->lru_first) = s->lru_next;
    *(s->lru_next ? &s->lru_next->lru_prev : &x->lru_last) = s->lru_prev;
    s->lru_prev = s->lru_next = NULL;
}

static void lru_front(tni_exec *x, tni_signature *s)
{
    s->lru_next = x->lru_first;
    s->lru_prev = NULL;
    *(x->lru_first ? &x->lru_first->lru_prev : &x->lru_last) = s;
    x->lru_first = s;
}

static void table_remove(tni_exec *x, tni_signature *s)
{
    tni_signature **at = &x->buckets[s->hash % TNI_SIG_BUCKETS];

    while (*at != s)
        at = &(*at)->bucket_next;
    *at = s->bucket_next;
    lru_unlink(x, s);
    x->signature_count--;
    tni_signature_release(s);
}

static tni_signature *table_find(tni_exec *x, uint64_t hash, const tni_call_key *k)
{
    for (tni_signature *s = x->buckets[hash % TNI_SIG_BUCKETS]; s; s = s->bucket_next)
        if (s->hash == hash && tni_signature_matches(s, k)) {
            lru_unlink(x, s);
            lru_front(x, s);
            tni_signature_retain(s);
            return s;
        }
    return NULL;
}

static void table_add(tni_exec *x, tni_signature *s)
{
    tni_signature **bucket = &x->buckets[s->hash % TNI_SIG_BUCKETS];

    tni_signature_retain(s);
    s->bucket_next = *bucket;
    *bucket = s;
    lru_front(x, s);
    x->signature_count++;
    while (x->signature_count > x->signature_max)
        table_remove(x, x->lru_last);
}

static tn_status signature_find(tni_context *c, const tni_call_key *k, tni_signature **out)
{
    tni_exec *x = c->exec;
    tni_call_key key = *k;
    tni_signature *s, *other;
    uint64_t hash = tni_call_hash(k);
    tn_status st;

    tni_mutex_lock(&x->lock);
    s = table_find(x, hash, k);
    tni_mutex_unlock(&x->lock);
    atomic_fetch_add_explicit(s ? &x->hits : &x->misses, 1, memory_order_relaxed);
    if (!s) {
        if ((st = tni_kernels_load(c->plugins, k->device)))
            return st;
        key.generation = tni_exec_generation(c); /* what was loaded just now counts */
        hash = tni_call_hash(&key);
        if ((st = signature_create(c, &key, &s)))
            return st;
        s->hash = hash;
        tni_mutex_lock(&x->lock);
        if ((other = table_find(x, hash, &key)) != NULL) { /* another thread was first */
            tni_signature_release(s);
            s = other;
        } else {
            table_add(x, s);
        }
        tni_mutex_unlock(&x->lock);
    }
    *out = s;
    return TN_OK;
}

tn_status tni_signature_find(tni_context *c, const tni_call_key *k, tni_signature **out)
{
    tni_call_key key = *k;
    tni_call_room room;
    tn_status st;

    if (k->out_shape || !(k->def->by_run & TNI_BY_RUN_SHAPES))
        return signature_find(c, k, out);
    if (!(st = tni_call_shapes(c, &key, &room)))
        st = signature_find(c, &key, out);
    tni_call_room_end(&room);
    return st;
}

void tni_signature_clear(tni_exec *x)
{
    tni_mutex_lock(&x->lock);
    while (x->lru_last)
        table_remove(x, x->lru_last);
    tni_mutex_unlock(&x->lock);
}
