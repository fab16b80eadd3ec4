/*
 * Sums over devices, in the order of the list. On a host one operation takes all values block by block, so
 * that what a block is added to stays in cache; on another device its own copies and sums do it.
 */
#include "kv/kv.h"
#include "kv/wire.h"

#include <string.h>

#define BLOCK 4096u /* elements */

typedef struct sum { /* on a host; all arrays are retained, on hosts and row-major */
    tni_kv_codec codec;
    tni_array *into;
    uint32_t count;
    tni_array **residuals; /* point behind the values; NULL: no codec */
    tni_array *values[];
} sum;

static void sum_destroy(sum *s)
{
    for (uint32_t i = 0; s && i < s->count; i++) {
        tni_array_release(s->values[i]);
        if (s->residuals)
            tni_array_release(s->residuals[i]);
    }
    if (s)
        tni_array_release(s->into);
    tni_free(s);
}

static void block_add(const sum *s, uint32_t i, uint64_t at, int64_t size)
{
    const uint64_t bytes = tn_dtype_bytes(s->into->dtype);
    char *to = (char *)tni_array_data(s->into) + at * bytes;
    const char *from = (const char *)tni_array_data(s->values[i]) + at * bytes;

    if (i)
        tni_kv_bytes_add((uint8_t)s->into->dtype, to, to, from, (uint64_t)size * bytes);
    else
        tni_kv_bytes_copy(to, from, (uint64_t)size * bytes);
}

/* BLOCK is a multiple of what a word of codes holds. */
static void block_code(const sum *s, uint32_t i, uint64_t at, int64_t size)
{
    uint8_t coded[BLOCK / 4];
    float *residual = tni_array_data(s->residuals[i]), *to = tni_array_data(s->into);
    const float *from = tni_array_data(s->values[i]);

    tni_kv_codec_encode(&s->codec, from + at, residual + at, (uint64_t)size, coded);
    tni_kv_codec_decode(&s->codec, coded, (uint64_t)size, to + at, i > 0);
}

static tn_status sum_run(void *payload, tni_run *run)
{
    const sum *s = *(sum **)payload;
    const uint64_t count = tni_array_count(s->into);
    tn_status st = tni_storage_allocate(s->into->storage, NULL);

    (void)run;
    for (uint32_t i = 0; i < s->count && !st; i++)
        if (!(st = tni_storage_touch(s->values[i]->storage, NULL)) && s->residuals)
            st = tni_storage_touch(s->residuals[i]->storage, NULL);
    for (uint64_t at = 0; at < count && !st; at += BLOCK) {
        const int64_t size = (int64_t)(count - at < BLOCK ? count - at : BLOCK);

        for (uint32_t i = 0; i < s->count; i++)
            (s->residuals ? block_code : block_add)(s, i, at, size);
    }
    return st;
}

static void sum_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    sum_destroy(*(sum **)payload);
}

/* `a` itself, if a sum on `device` can read it; else a copy there. */
static tn_status value_at(tni_array *a, tni_device *device, tni_array **out)
{
    tni_array *copy = NULL;
    tn_status st;

    if (a->flags & TNI_ARRAY_CONTIGUOUS && (a->storage->device->host || a->storage->device == device)) {
        tni_array_retain(*out = a);
        return TN_OK;
    }
    if ((st = tni_array_create(a->storage->space, device, a->dtype, a->ndim, a->shape, "kvstore", &copy)) ||
        (st = tni_array_copy(a, copy))) {
        tni_array_release(copy);
        return st;
    }
    *out = copy;
    return TN_OK;
}

/* [takes] s, also on failure. A codec's residuals are written, too. */
static tn_status sum_push(sum *s, int32_t priority, bool held)
{
    const uint32_t writes = s->residuals ? s->count + 1 : 1;
    tni_engine *engine = s->into->storage->space->engine;
    tni_var **vars = tni_calloc((uint64_t)s->count + writes, sizeof(*vars));
    const tni_task task = {
        .run = sum_run,
        .done = sum_done,
        .payload = &s,
        .payload_bytes = sizeof s,
        .reads = vars,
        .read_count = s->count,
        .writes = vars + s->count,
        .write_count = writes,
        .flags = (held || s->residuals ? 0 : TNI_TASK_CLEARS) |
                 (s->count == 1 && tni_array_bytes(s->into) <= TNI_KV_COPY_MAX ? TNI_TASK_SHORT : 0),
        .device = s->into->storage->device,
        .name = "kvstore sum",
        .lane = TNI_LANE_COMM,
        .priority = priority};
    tn_status st = vars ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < s->count && !st; i++) {
        vars[i] = tni_array_var(s->values[i]);
        if (s->residuals)
            vars[s->count + i] = tni_array_var(s->residuals[i]);
    }
    if (!st) {
        vars[s->count + writes - 1] = tni_array_var(s->into);
        st = tni_engine_push(engine, &task);
    }
    if (st)
        sum_destroy(s);
    tni_free((void *)vars);
    return st;
}

static tn_status sum_on_host(const tni_kv_codec *codec, tni_array *const *residuals, tni_array *into,
                             uint32_t count, tni_array *const *values, int32_t priority, bool held)
{
    sum *s = tni_zalloc(sizeof *s + 2 * (uint64_t)count * sizeof *values);
    tn_status st = TN_OK;

    if (!s)
        return TN_E_NOMEM;
    tni_array_retain(s->into = into);
    if (residuals) {
        s->codec = *codec;
        s->residuals = s->values + count;
    }
    for (; s->count < count && !st; s->count++) {
        if ((st = value_at(values[s->count], into->storage->device, &s->values[s->count])))
            break;
        if (residuals)
            tni_array_retain(s->residuals[s->count] = residuals[s->count]);
    }
    if (st) {
        sum_destroy(s);
        return st;
    }
    return sum_push(s, priority, held);
}

static tn_status sum_on_device(tni_array *into, uint32_t count, tni_array *const *values, int32_t priority,
                               bool held)
{
    tni_device *device = into->storage->device;
    tni_moves *m = NULL;
    tni_task task;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++) {
        tni_array *value = NULL;

        if (!(st = value_at(values[i], device, &value)))
            st = tni_moves_add(&m, count, value, into, i > 0);
        tni_array_release(value);
    }
    if (!st && !(st = tni_moves_task(m, device, "kvstore sum", &task))) {
        task.flags = held ? 0 : TNI_TASK_CLEARS;
        task.lane = TNI_LANE_COMM;
        task.priority = priority;
        st = tni_engine_push(into->storage->space->engine, &task);
    }
    if (st)
        tni_moves_destroy(m);
    return st;
}

tn_status tni_kv_sum(tni_array *into, uint32_t count, tni_array *const *values, int32_t priority, bool held)
{
    return into->storage->device->host ? sum_on_host(NULL, NULL, into, count, values, priority, held)
                                       : sum_on_device(into, count, values, priority, held);
}

/* One for each place of the list; those that are new begin as zeros. */
tn_status tni_kv_residuals_make(tni_kv_key *key, tni_array *like, uint32_t count)
{
    tni_array **list;
    tn_status st = TN_OK;

    if (count <= key->residual_count)
        return TN_OK;
    if (!(list = tni_realloc(key->residuals, count * sizeof(*list))))
        return TN_E_NOMEM;
    key->residuals = list;
    for (; key->residual_count < count && !st; key->residual_count += !st)
        st = tni_array_filled(like, 0, "kvstore", &list[key->residual_count]);
    return st;
}

tn_status tni_kv_sum_coded(const tni_kv_codec *codec, tni_kv_key *key, tni_array *into, uint32_t count,
                           tni_array *const *values, int32_t priority)
{
    return sum_on_host(codec, key->residuals, into, count, values, priority, false);
}

/* ---- codes --------------------------------------------------------------------------------------------- */

typedef struct coding {
    tni_kv_codec codec;
    tni_array *value, *residual, *coded; /* retained, on hosts and row-major */
} coding;

static tn_status coding_run(void *payload, tni_run *run)
{
    const coding *c = payload;
    tn_status st;

    (void)run;
    if ((st = tni_storage_allocate(c->coded->storage, NULL)) ||
        (st = tni_storage_touch(c->value->storage, NULL)) ||
        (st = tni_storage_touch(c->residual->storage, NULL)))
        return st;
    tni_kv_codec_encode(&c->codec, tni_array_data(c->value), tni_array_data(c->residual),
                        tni_array_count(c->value), tni_array_data(c->coded));
    return TN_OK;
}

static void coding_done(void *payload, tni_engine *engine, tn_status status)
{
    const coding *c = payload;

    (void)engine;
    (void)status;
    tni_array_release(c->value);
    tni_array_release(c->residual);
    tni_array_release(c->coded);
}

tn_status tni_kv_code(const tni_kv_codec *codec, tni_array *value, tni_array *residual, tni_array *coded,
                      int32_t priority)
{
    const coding c = {*codec, value, residual, coded};
    tni_var *const vars[] = {tni_array_var(value), tni_array_var(residual), tni_array_var(coded)};
    const tni_task task = {.run = coding_run,
                           .done = coding_done,
                           .payload = &c,
                           .payload_bytes = sizeof c,
                           .reads = vars,
                           .read_count = 1,
                           .writes = vars + 1,
                           .write_count = 2,
                           .name = "kvstore code",
                           .lane = TNI_LANE_COMM,
                           .priority = priority};
    tn_status st;

    tni_array_retain(value);
    tni_array_retain(residual);
    tni_array_retain(coded);
    if ((st = tni_engine_push(value->storage->space->engine, &task)))
        coding_done((void *)(uintptr_t)&c, NULL, st);
    return st;
}

/* ---- all or none ------------------------------------------------------------------------------------- */

typedef struct gate {
    uint32_t count;
    tni_array *list[]; /* retained: their variables live until it is done */
} gate;

static tn_status gate_run(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    return TN_OK;
}

static void gate_done(void *payload, tni_engine *engine, tn_status status)
{
    gate *g = *(gate **)payload;

    (void)engine;
    (void)status;
    for (uint32_t i = 0; i < g->count; i++)
        tni_array_release(g->list[i]);
    tni_free(g);
}

tn_status tni_kv_gate(tni_context *c, uint32_t read_count, uint32_t write_count, tni_array *const *arrays)
{
    const uint32_t count = read_count + write_count;
    gate *g = tni_zalloc(sizeof *g + count * sizeof *g->list);
    tni_var **vars = tni_calloc(count, sizeof(*vars));
    const tni_task task = {.run = gate_run,
                           .done = gate_done,
                           .payload = &g,
                           .payload_bytes = sizeof g,
                           .reads = vars,
                           .read_count = read_count,
                           .writes = vars + read_count,
                           .write_count = write_count,
                           .flags = read_count ? 0 : TNI_TASK_CLEARS,
                           .name = "kvstore step"};
    tn_status st = g && vars ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++) {
        tni_array_retain(g->list[g->count++] = arrays[i]);
        vars[i] = tni_array_var(arrays[i]);
    }
    if (!st)
        st = tni_engine_push(c->engine, &task);
    if (st && g)
        gate_done(&g, NULL, st);
    tni_free((void *)vars);
    return st;
}
