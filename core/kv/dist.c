/*
 * A store whose values lie on servers. What a call does is queued on the engine as an asynchronous operation,
 * a trip: it begins when its gradient is there, and ends when the servers have answered.
 *
 * Order. Trips of a key write its value's variable, so they go one behind the other. Each push also reads
 * `turn`, which what comes between two steps (a changed learning rate) writes: it waits for the pushes before
 * it, and those behind it wait for it.
 *
 * A trip that cannot begin, since its gradient failed or there is no memory, breaks the step: no server moves
 * the key by this round, and all workers hear of it. Values that failed stay so until all workers assign.
 */
#include "kv/dist.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kv/rows.h"
#include "kv/store.h"
#include "kv/update.h"

#define KEYS_BYTES 60000u /* of one command; well below TNI_KV_COMMAND_MAX with a last long name */

const uint8_t tni_kv_nothing[4096];

/* Rows of row_sparse keys stay whole: their plan is of rows. */
static uint64_t unit_bytes(const tni_kv_key *key)
{
    const uint64_t rows = key->sparse ? (uint64_t)key->value->shape[0] : 0;

    return rows && tni_array_bytes(key->value) ? tni_array_bytes(key->value) / rows
                                               : tn_dtype_bytes(key->value->dtype);
}

tn_status tni_kv_dist_plan(const tni_kv_dist *d, const tni_kv_key *key, tni_kv_plan *out)
{
    const tni_kv_plan_options o = {d->settings.servers, d->settings.bound, d->settings.part_bytes};
    const uint64_t each = unit_bytes(key);

    return tni_kv_plan_make(&o, key->wire, tni_array_bytes(key->value) / each, each, out);
}

/* ---- trips --------------------------------------------------------------------------------------------- */

typedef struct trip {
    tni_kv_dist *d;
    tni_kv_key *key;                 /* NULL: a command */
    tni_array *in, *out;             /* retained; NULL: none */
    tni_array *order;                /* of the key: it is written, if `out` is not */
    tni_kv_destination *destination; /* of `out`, if that is the key's value */
    tni_operation *op;
    tni_kv_request r;
    tni_kv_cut *cuts; /* rows; NULL: none */
    char text[];
} trip;

static bool pushes(const trip *t)
{
    return t->r.kind == TNI_KV_DO_PUSH || t->r.kind == TNI_KV_DO_PUSHPULL;
}

static void trip_called(void *arg, tn_status st)
{
    trip *t = arg;
    tn_err err = {.code = st};

    if (t->r.kind == TNI_KV_DO_SNAPSHOT)
        st = TN_OK;      /* the job goes on, as it would without; the log has it */
    if (st && pushes(t)) /* before its end is seen: resume comes behind that */
        atomic_store(&t->d->broken, true);
    if (st)
        tni_error_get(&err);
    else if (pushes(t))
        atomic_fetch_add(&t->key->rounds, 1);
    tni_engine_complete(t->op, st, st ? &err : NULL);
}

/* Its push never comes. One worker breaks a step once. */
static tn_status trip_break(trip *t, tn_status st)
{
    if (pushes(t) && !atomic_exchange(&t->d->broken, true))
        tni_kv_process_fail(t->d->process, t->r.key);
    return st;
}

/* Something that it needs has failed: so has it. */
static tn_status trip_fail(trip *t)
{
    tn_err err = {0};

    if (!(t->in && tni_var_failure(tni_array_var(t->in), &err)) &&
        !(t->order && tni_var_failure(tni_array_var(t->order), &err)))
        (void)tni_var_failure(&t->d->turn, &err);
    tni_error_set(&err);
    return trip_break(t, err.code);
}

/* Rows that are pushed, or with `values` NULL asked for. */
static tn_status trip_rows(trip *t, const int64_t *ids, uint64_t count, const void *values)
{
    const uint64_t row_bytes = unit_bytes(t->key);
    tni_kv_plan plan;
    tn_status st = tni_kv_dist_plan(t->d, t->key, &plan);

    if (!st && row_bytes > UINT32_MAX)
        st = tni_error(TN_E_UNSUPPORTED, "rows of %" PRIu64 " bytes", row_bytes);
    t->r.row_bytes = (uint32_t)row_bytes;
    if (st || (st = tni_kv_rows_write(&plan, t->r.row_bytes, ids, count, values, &t->cuts)))
        return st;
    t->r.what = TNI_KV_ROWS;
    t->r.cuts = t->cuts;
    t->r.in = tni_kv_rows_payload(t->cuts, plan.parts);
    return TN_OK;
}

/* The rows of a gradient, which is there. */
static tn_status gradient_rows(trip *t)
{
    tn_tensor rows, ids[2];
    const tn_status st = tni_storage_touch(t->in->aux[0]->storage, NULL);

    tni_sparse_tensors(t->in, &rows, ids);
    return st ? st : trip_rows(t, ids[0].data, (uint64_t)ids[0].shape[0], rows.data);
}

/* Behind the request the trip may be over at any time. */
static tn_status trip_run(void *payload, tni_run *run)
{
    trip *t = *(trip **)payload;
    tn_status st = TN_OK;

    if (run->skipped)
        return trip_fail(t);
    if ((t->in && (st = tni_storage_touch(t->in->storage, NULL))) ||
        (t->out && (st = tni_storage_allocate(t->out->storage, NULL))))
        return trip_break(t, st);
    if (t->in && t->in->storage_type && (st = gradient_rows(t)))
        return trip_break(t, st);
    if (t->in && !t->r.cuts)
        t->r.in = tni_array_data(t->in);
    if (t->out)
        t->r.out = tni_array_data(t->out);
    if (t->destination) {
        t->r.land = tni_kv_destination_take;
        t->r.land_arg = t->destination;
    }
    t->op = run->op;
    st = tni_kv_process_request(t->d->process, &t->r, trip_called, t);
    return st ? trip_break(t, st) : TN_PENDING;
}

static void trip_done(void *payload, tni_engine *engine, tn_status status)
{
    trip *t = *(trip **)payload;

    (void)engine;
    (void)status;
    tni_array_release(t->in);
    tni_array_release(t->out);
    tni_array_release(t->order);
    tni_kv_destination_close(t->destination);
    tni_free(t->cuts);
    tni_free(t);
}

static trip *trip_make(tni_kv_dist *d, tni_kv_kind kind, uint64_t text_bytes)
{
    trip *t = tni_zalloc(sizeof *t + text_bytes);

    if (t) {
        t->d = d;
        t->r.kind = kind;
    }
    return t;
}

static void retain(tni_array **to, tni_array *a)
{
    tni_array_retain(*to = a);
}

/* [takes] t. `turns`: it stands between pushes. */
static tn_status trip_push(trip *t, int32_t priority, bool turns)
{
    tni_engine *engine = t->d->kv->ctx->engine;
    tni_var *vars[5];
    uint32_t reads = 0, writes = 0;
    tni_task task = {.run = trip_run,
                     .done = trip_done,
                     .payload = &t,
                     .payload_bytes = sizeof t,
                     .reads = vars,
                     .flags = TNI_TASK_ASYNC | TNI_TASK_ALWAYS,
                     .name = "kvstore trip",
                     .lane = TNI_LANE_COMM,
                     .priority = priority};
    tn_status st;

    if (t->in && t->in != t->order)
        vars[reads++] = tni_array_var(t->in);
    if (t->in && t->in->storage_type != TN_STORAGE_DENSE)
        vars[reads++] = tni_array_var(t->in->aux[0]);
    if (!turns)
        vars[reads++] = &t->d->turn;
    vars[reads + writes++] = turns ? &t->d->turn : tni_array_var(t->order);
    if (t->out && t->out != t->order)
        vars[reads + writes++] = tni_array_var(t->out);
    task.read_count = reads;
    task.writes = vars + reads;
    task.write_count = writes;
    if (!turns && tni_array_bytes(t->order) <= TNI_KV_COPY_MAX && !(t->in && t->in->storage_type))
        task.flags |= TNI_TASK_SHORT;
    t->r.brief = task.flags & TNI_TASK_SHORT;
    if ((st = tni_engine_push(engine, &task)))
        trip_done(&t, engine, st);
    return st;
}

/* MXNet's priorities are minus the layer's number. */
static uint32_t priority_of(const tni_kv_dist *d, int32_t priority)
{
    return !d->ranked || priority <= -255 ? 0 : priority >= 0 ? 255 : (uint32_t)(255 + priority);
}

static trip *trip_of(tni_kv_dist *d, tni_kv_kind kind, tni_kv_key *key, int32_t priority)
{
    trip *t = trip_make(d, kind, 0);

    if (t) {
        t->key = key;
        retain(&t->order, key->value);
        t->r.key = key->wire;
        t->r.priority = priority_of(d, priority);
    }
    return t;
}

/* The value comes into the key's, or right to where it is pulled to. */
static void value_out(trip *t)
{
    retain(&t->out, t->key->value);
    tni_kv_destination_release(t->key->destination);
    t->key->destination = t->destination = tni_kv_destination_create(t->key->value);
}

tn_status tni_kv_dist_push(tni_kv_dist *d, tni_kv_key *key, tni_array *grad, uint8_t what, int32_t priority,
                           bool pull)
{
    trip *t = trip_of(d, pull ? TNI_KV_DO_PUSHPULL : TNI_KV_DO_PUSH, key, priority);

    if (!t)
        return TN_E_NOMEM;
    retain(&t->in, grad);
    if (pull && key->in_place)
        retain(&t->out, grad);
    else if (pull)
        value_out(t);
    t->r.what = what;
    t->r.shrink_log2 = what == TNI_KV_2BIT ? 4 : what == TNI_KV_1BIT ? 5 : 0;
    return trip_push(t, priority, false);
}

tn_status tni_kv_dist_pull(tni_kv_dist *d, tni_kv_key *key, int32_t priority)
{
    trip *t = trip_of(d, TNI_KV_DO_PULL, key, priority);

    if (!t)
        return TN_E_NOMEM;
    key->in_place = false;
    value_out(t);
    return trip_push(t, priority, false);
}

tn_status tni_kv_dist_pull_rows(tni_kv_dist *d, tni_kv_key *key, const int64_t *ids, uint64_t count,
                                tni_array *rows, int32_t priority)
{
    trip *t = trip_of(d, TNI_KV_DO_PULL, key, priority);
    const tn_status st = t ? trip_rows(t, ids, count, NULL) : TN_E_NOMEM;

    if (st && t)
        trip_done(&t, NULL, st);
    if (st)
        return st;
    retain(&t->out, rows);
    return trip_push(t, priority, false);
}

/* The bytes that go out are those that come back, so they may be the same memory. */
tn_status tni_kv_dist_assign(tni_kv_dist *d, tni_kv_key *key, int32_t priority)
{
    trip *t = trip_of(d, TNI_KV_DO_PUSHPULL, key, priority);

    if (!t)
        return TN_E_NOMEM;
    retain(&t->out, key->value);
    if (d->rank == 0) {
        retain(&t->in, key->value);
        t->r.what = TNI_KV_ASSIGN;
    } else {
        t->r.in = tni_kv_nothing;
        t->r.what = TNI_KV_ABSTAIN;
        t->r.shrink_log2 = TNI_KV_ABSTAIN_LOG2;
    }
    return trip_push(t, priority, false);
}

tn_status tni_kv_dist_resume(tni_kv_dist *d)
{
    const tn_status st = tni_kv_dist_wait(d);

    return st || !atomic_exchange(&d->broken, false) ? st : tni_kv_process_resume(d->process);
}

/* ---- what waits ---------------------------------------------------------------------------------------- */

tn_status tni_kv_dist_wait(tni_kv_dist *d)
{
    return tni_engine_wait_write(d->kv->ctx->engine, &d->turn, 0);
}

/* A worker in another's place passes as many as the others have behind them: it makes the same calls. */
tn_status tni_kv_dist_barrier(tni_kv_dist *d)
{
    const bool behind = d->barriers < tni_kv_process_behind(d->process);
    const tni_kv_request r = {.kind = TNI_KV_DO_BARRIER, .step = behind ? d->barriers + 1 : 0};
    tn_status st;

    if (!(st = tni_kv_dist_flush(d)) && !(st = tni_kv_dist_wait(d)) &&
        !(st = tni_kv_process_call(d->process, &r)))
        d->barriers++;
    return st;
}

/* Keys that were pushed more seldom wait for nobody either. */
tn_status tni_kv_dist_end(tni_kv_dist *d)
{
    tni_kv_request r = {.kind = TNI_KV_DO_END};
    size_t cursor = 0;
    void *key;
    tn_status st;

    d->torn = false;
    if ((st = tni_kv_dist_flush(d)) || (st = tni_kv_dist_wait(d)))
        return st;
    while (tni_map_next(d->kv->keys, &cursor, NULL, &key)) {
        const uint32_t rounds = atomic_load(&((tni_kv_key *)key)->rounds);

        r.step = rounds > r.step ? rounds : r.step;
    }
    return tni_kv_process_call(d->process, &r);
}

static tn_status call(tni_kv_dist *d, const char *text, uint64_t bytes)
{
    const tni_kv_request r = {.kind = TNI_KV_DO_COMMAND, .in = text, .bytes = bytes, .priority = 255};

    return tni_kv_process_call(d->process, &r);
}

tn_status tni_kv_dist_command(tni_kv_dist *d, const tni_str *words)
{
    tn_status st = words->status;

    if (st || (st = tni_kv_dist_flush(d)) || (st = tni_kv_dist_wait(d)))
        return st;
    return call(d, words->text, words->length);
}

static void word_add(tni_str *s, const char *text)
{
    (void)tni_str_add_bytes(s, text, strlen(text) + 1);
}

tn_status tni_kv_dist_program(tni_kv_dist *d, int32_t head, const char *body)
{
    char number[24];
    tni_str words;
    tn_status st;

    (void)snprintf(number, sizeof number, "%d", head);
    tni_str_init(&words, TNI_KV_COMMAND_MAX);
    word_add(&words, "program");
    word_add(&words, number);
    word_add(&words, body);
    st = tni_kv_dist_command(d, &words);
    tni_str_fini(&words);
    return st;
}

tn_status tni_kv_dist_agree(tni_kv_dist *d, const char *which, const char *name, const char *const *params)
{
    tni_str words;
    tn_status st = TN_OK, met;
    tn_err err;

    d->fresh = true;
    tni_str_init(&words, TNI_KV_COMMAND_MAX);
    /* The process before this one has passed this barrier: servers with its optimizer keep the states. */
    if (!strcmp(which, "optimizer") && !d->settings.async && d->barriers < tni_kv_process_behind(d->process))
        which = "given";
    word_add(&words, which);
    if (name)
        word_add(&words, name);
    for (; params && *params; params++)
        word_add(&words, *params);
    if (d->rank == 0)
        st = tni_kv_dist_command(d, &words);
    tni_str_fini(&words);
    if (st)
        tni_error_get(&err); /* the others hear of it, too: between barriers nobody goes on */
    met = tni_kv_dist_barrier(d);
    if (!met && d->rank && (st = call(d, "agreed", sizeof "agreed")))
        tni_error_get(&err);
    if (!met)
        met = tni_kv_dist_barrier(d);
    if (st)
        tni_error_set(&err);
    return st ? st : met;
}

/* A change for which there is no memory is none: no half of it goes out, and later ones can. */
static tn_status changes_cut(tni_str *s, size_t length)
{
    const tn_status st = s->status;

    if (st) {
        s->length = length;
        s->status = TN_OK;
    }
    return st;
}

tn_status tni_kv_dist_change(tni_kv_dist *d, tni_kv_key *key, const char *param, double value, bool same)
{
    const uint8_t bit = (uint8_t)(1u << (*param & 7)); /* lr, wd, rescale_grad; lr_mult, wd_mult, steps */
    uint8_t *told = key ? &key->told : &d->told;
    uint32_t epochs, *of = key ? &key->epochs : &d->epochs;
    char text[40], number[24] = "";
    size_t before;
    tn_status st;

    if (d->rank &&
        !d->settings.async) /* a round waits for worker 0, so it knows; without rounds each tells */
        return TN_OK;
    (void)tni_kv_process_cut(d->process, &epochs);
    *told = *of == epochs || d->rank ? *told : 0; /* worker 0 gives the optimizer again, too */
    *of = epochs;
    if (same && *told & bit)
        return TN_OK;
    *told &= (uint8_t)~bit;
    if (d->changes.length > KEYS_BYTES && (st = tni_kv_dist_flush(d)))
        return st;
    before = d->changes.length;
    (void)tni_format_f64(text, sizeof text, value);
    if (key)
        (void)snprintf(number, sizeof number, "%u", key->wire);
    if (!d->changes.length)
        word_add(&d->changes, "set");
    word_add(&d->changes, param);
    word_add(&d->changes, text);
    word_add(&d->changes, number);
    st = changes_cut(&d->changes, before);
    *told |= st ? 0 : bit;
    return st;
}

tn_status tni_kv_dist_flush(tni_kv_dist *d)
{
    tn_status st;
    trip *t;

    if (!d->changes.length)
        return TN_OK;
    if (!(t = trip_make(d, TNI_KV_DO_COMMAND, d->changes.length)))
        return TN_E_NOMEM;
    memcpy(t->text, d->changes.text, d->changes.length);
    t->r.in = t->text;
    t->r.bytes = d->changes.length;
    t->r.priority = 255;
    st = trip_push(t, INT32_MAX, true);
    d->changes.length = st ? d->changes.length : 0;
    return st;
}

/* A step begins with a key that was pushed as often as any: those before it are whole then. Worker 0 has it
 * written; others mark where it is. Without rounds nobody sends again what a server lost, so it does not wait
 * for the end of a step to have keys written that no snapshot has: a server that came back without a key
 * would let all wait for it. */
tn_status tni_kv_dist_step(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys)
{
    const uint64_t every = d->settings.snapshot_steps;
    tn_status st = TN_OK;
    bool due = d->fresh && d->settings.async;
    trip *t;

    if (!every || (d->rank && d->settings.async))
        return TN_OK;
    for (uint32_t i = 0; i < count; i++)
        due = due || (keys[i]->pushes == d->steps && d->steps > d->kept && d->steps % every == 0);
    if (due) {
        if (!(t = trip_make(d, TNI_KV_DO_SNAPSHOT, 0)))
            return TN_E_NOMEM;
        t->r.step = d->first_step + d->steps;
        t->r.step += !t->r.step;
        st = trip_push(t, INT32_MAX, true);
        d->kept = st ? d->kept : d->steps;
        d->fresh = st && d->fresh;
    }
    return st;
}

void tni_kv_dist_pushed(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys)
{
    d->torn = false;
    for (uint32_t i = 0; i < count; i++)
        if (++keys[i]->pushes > d->steps)
            d->steps = keys[i]->pushes;
}

/* ---- first values -------------------------------------------------------------------------------------- */

tn_status tni_kv_dist_whole(const tni_kv_dist *d, const tni_kv_optimizer *o, const tni_kv_key *key)
{
    tni_kv_plan plan, longest = {0};
    const char *text = "", *name = "";
    size_t cursor = 0;
    void *found;
    tn_status st;

    if (!o || !tni_kv_optimizer_whole(o))
        return TN_OK;
    while (tni_map_next(d->kv->keys, &cursor, &text, &found)) {
        if (key && found != key)
            continue;
        if ((st = tni_kv_dist_plan(d, found, &plan)))
            return st;
        if (plan.parts > 1 && plan.bytes > longest.bytes) {
            longest = plan;
            name = text;
        }
    }
    if (!longest.parts)
        return TN_OK;
    return tni_error(TN_E_UNSUPPORTED,
                     "optimizer %s takes whole arrays, but key %.100s is cut into %u parts: "
                     "kvstore.part_bytes of at least %" PRIu64
                     " and kvstore.bigarray_bound = 0, in all processes, keep it whole",
                     tni_kv_optimizer_name(o), name, longest.parts, longest.bytes);
}

/* NUMBER NAME TYPE of a key; "float32 (2,3) row_sparse". */
static void key_words(const tni_kv_key *key, tni_str *out)
{
    char number[24];

    (void)snprintf(number, sizeof number, "%u", key->wire);
    word_add(out, number);
    (void)snprintf(number, sizeof number, "%" PRId64, key->number);
    word_add(out, key->name ? key->name : number);
    (void)tni_str_addf(out, "%s (", tni_dtype_name(key->value->dtype));
    for (int32_t i = 0; i < key->value->ndim; i++)
        (void)tni_str_addf(out, i ? ",%" PRId64 : "%" PRId64, key->value->shape[i]);
    word_add(out, key->sparse ? ") row_sparse" : ")");
}

/* All servers compare what the workers call their keys. */
static tn_status keys_tell(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys)
{
    tn_status st = TN_OK;
    char rank[24];
    tni_str words;

    tni_str_init(&words, TNI_KV_COMMAND_MAX);
    (void)snprintf(rank, sizeof rank, "%u", d->rank);
    for (uint32_t i = 0; i < count && !st; i++) {
        if (!words.length) {
            word_add(&words, "keys");
            word_add(&words, rank);
        }
        key_words(keys[i], &words);
        if (words.length <= KEYS_BYTES && i + 1 < count)
            continue;
        st = tni_kv_dist_command(d, &words);
        words.length = 0;
    }
    tni_str_fini(&words);
    return st;
}

/* Requests of which a call waits. */
typedef struct crowd {
    tni_mutex lock;
    tni_cond all;
    uint32_t left TN_GUARDED_BY(lock);
    tn_status status TN_GUARDED_BY(lock);
    tn_err err TN_GUARDED_BY(lock);
} crowd;

static void crowd_called(void *arg, tn_status st)
{
    crowd *c = arg;

    tni_mutex_lock(&c->lock);
    if (st && !c->status) {
        c->status = st;
        tni_error_get(&c->err);
    }
    if (--c->left == 0)
        tni_cond_signal(&c->all);
    tni_mutex_unlock(&c->lock);
}

/* Sends a request for each key, `r` with the key's number and memory, and waits for all. */
static tn_status each_key(tni_kv_dist *d, tni_kv_request r, uint32_t count, tni_kv_key *const *keys)
{
    crowd c = {.lock = TNI_MUTEX_INIT, .left = 1};
    tn_status st;

    if ((st = tni_cond_init(&c.all)))
        return st;
    for (uint32_t i = 0; i < count && !st; i++) {
        r.key = keys[i]->wire;
        r.in = r.out = tni_array_data(keys[i]->value);
        r.priority = 255;
        tni_mutex_lock(&c.lock);
        c.left++;
        tni_mutex_unlock(&c.lock);
        if ((st = tni_kv_process_request(d->process, &r, crowd_called, &c)))
            crowd_called(&c, st);
    }
    tni_mutex_lock(&c.lock);
    c.left--;
    while (c.left)
        tni_cond_wait(&c.all, &c.lock);
    st = c.status;
    tni_mutex_unlock(&c.lock);
    if (st)
        tni_error_set(&c.err);
    tni_cond_fini(&c.all);
    tni_mutex_fini(&c.lock);
    return st;
}

tn_status tni_kv_dist_init(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys)
{
    const tni_kv_request send = {.kind = TNI_KV_DO_INIT}, take = {.kind = TNI_KV_DO_PULL, .any = true};
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++) {
        tni_array *value = keys[i]->value;

        keys[i]->wire = d->next++;
        keys[i]->told = d->knows;
        if (!(st = tni_array_wait(value)) && !(st = tni_kv_dist_whole(d, d->kv->optimizer, keys[i])) &&
            !(st = tni_storage_touch(value->storage, NULL)))
            st = tni_kv_process_key(d->process, keys[i]->wire, (uint8_t)value->dtype,
                                    tni_array_bytes(value) / unit_bytes(keys[i]), unit_bytes(keys[i]));
    }
    d->fresh = true;
    if (st || (st = keys_tell(d, count, keys)))
        return st;
    if ((d->rank == 0 && (st = each_key(d, send, count, keys))) || (st = tni_kv_dist_barrier(d)))
        return st;
    return each_key(d, take, count, keys);
}

/* Without rounds the others wait until worker 0's values are there. */
tn_status tni_kv_dist_assigned(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys)
{
    tn_status st;

    if (!d->settings.async)
        return TN_OK;
    d->fresh = true;
    if ((st = tni_kv_dist_barrier(d)))
        return st;
    for (uint32_t i = 0; i < count && !st; i++)
        st = tni_kv_dist_pull(d, keys[i], 0);
    return st;
}

/* ---- the job ------------------------------------------------------------------------------------------- */

tn_status tni_kv_dist_open(tni_kv *kv)
{
    tni_kv_dist *d = tni_zalloc(sizeof *d);
    const char *async = strstr(kv->type->name, "async");
    tn_status st;

    if (!d)
        return TN_E_NOMEM;
    d->kv = kv;
    tni_var_init(&d->turn);
    tni_str_init(&d->changes, TNI_KV_COMMAND_MAX);
    d->ranked = tni_option_bool(kv->ctx->options, "kvstore.priority");
    if (!(st = tni_kv_process_join(kv->ctx, async != NULL, &d->process))) {
        d->settings = *tni_kv_process_settings(d->process);
        d->first_step = tni_kv_process_cut(d->process, NULL);
        d->rank = tni_kv_process_rank(d->process);
        d->told = d->knows = tni_kv_process_behind(d->process) && !d->rank ? 0 : UINT8_MAX;
        kv->dist = d;
        return TN_OK;
    }
    tni_var_fini(&d->turn);
    tni_free(d);
    return st;
}

void tni_kv_dist_close(tni_kv_dist *d)
{
    tn_err err;

    if (!d)
        return;
    tni_error_get(&err); /* of whoever closes for it */
    if (!d->torn)
        (void)tni_kv_dist_flush(d);
    (void)tni_kv_dist_wait(d);
    if (d->torn) /* it cannot go on: it is lost, as the one before it, and has not ended */
        tni_kv_process_end(d->process);
    else
        (void)tni_kv_process_leave(d->process);
    tni_error_set(&err);
    tni_var_fini(&d->turn);
    tni_kv_key_destroy(d->drift);
    tni_str_fini(&d->changes);
    tni_free(d);
}
