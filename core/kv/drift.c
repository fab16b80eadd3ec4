/*
 * The drift check: workers that go in step hold the same parameters, bit for bit. Every N rounds each worker
 * makes a checksum of all of them, one chain over the list of keys, and the workers exchange their results by
 * a round of a key of its own: a vector with an element for each worker, in which each adds its own number.
 * All workers see the same vector and so do the same next. If the chains differ, a binary search over their
 * beginnings finds the first key that does, in as many rounds as the list's length has bits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kv/dist.h"
#include "kv/store.h"
#include "kv/update.h"

#define E_DRIFT 1402u   /* TN number: parameters of workers differ */
#define RANKS_NAMED 8u  /* in the text */
#define NONE UINT32_MAX /* no key */

typedef struct check {
    tni_kv_dist *d;
    uint32_t count, workers;
    const tn_kv_item *items;
    uint32_t *chains; /* up to each key, from the first on */
    int64_t *all;     /* of the exchange that was last: of each worker, 0 of one that is gone */
    uint32_t own;     /* first key whose arrays differ from device to device; NONE */
    uint64_t round;
} check;

/* ---- this worker's ------------------------------------------------------------------------------------- */

static tn_status array_crc(tni_array *a, uint32_t *crc)
{
    void *bytes;
    tn_status st;

    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "the drift check is for dense arrays");
    if (!(bytes = tni_alloc(tni_array_bytes(a) + 1)))
        return TN_E_NOMEM;
    if (!(st = tni_array_read(a, bytes, tni_array_bytes(a))))
        *crc = tni_crc32(*crc, bytes, tni_array_bytes(a));
    tni_free(bytes);
    return st;
}

static tn_status chains_make(check *c)
{
    uint32_t chain = 0;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < c->count && !st; i++) {
        const uint32_t before = chain;

        for (uint32_t k = 0; k < c->items[i].value_count && !st; k++) {
            uint32_t crc = before;

            if ((st = array_crc(c->items[i].values[k], &crc)))
                break;
            if (!k) {
                chain = crc;
            } else if (crc != chain) { /* others see it, too */
                chain = tni_crc32(chain, &crc, sizeof crc);
                c->own = c->own == NONE ? i : c->own;
                break;
            }
        }
        c->chains[i] = chain;
    }
    return st;
}

/* ---- exchanges ----------------------------------------------------------------------------------------- */

static tn_status key_make(check *c)
{
    tni_kv_dist *d = c->d;
    const int64_t shape[] = {c->workers};
    tni_kv_key *key = tni_zalloc(sizeof *key);
    tni_device *cpu;
    tn_status st = TN_E_NOMEM;

    if (key && (key->name = tni_strdup("drift check")) &&
        !(st = tni_device_get(d->kv->ctx->devices, "cpu", 0, &cpu)) &&
        !(st = tni_array_create(d->kv->ctx->space, cpu, TN_I64, 1, shape, "kvstore", &key->value)) &&
        !(st = tni_array_create(d->kv->ctx->space, cpu, TN_I64, 1, shape, "kvstore", &key->merged)) &&
        !(st = tni_array_write(key->value, c->all, c->workers * sizeof *c->all)))
        st = tni_kv_dist_init(d, 1, &key);
    if (st)
        tni_kv_key_destroy(key);
    else
        d->drift = key;
    return st;
}

/* `all` becomes what each worker gives. */
static tn_status exchange(check *c, int64_t own)
{
    const uint64_t bytes = c->workers * sizeof *c->all;
    tni_kv_key *key;
    tn_status st;

    memset(c->all, 0, bytes);
    if (!c->d->drift && (st = key_make(c)))
        return st;
    key = c->d->drift;
    c->all[c->d->rank] = own;
    if (!(st = tni_array_write(key->merged, c->all, bytes)) &&
        !(st = tni_kv_dist_push(c->d, key, key->merged, TNI_KV_GATHER, 0, true)))
        st = tni_array_read(key->value, c->all, bytes);
    return st;
}

/* The chain up to key `i`, and which key that is: never 0. */
static tn_status exchange_chain(check *c, uint32_t i)
{
    return exchange(c, (int64_t)(i + (uint64_t)1) << 32 | c->chains[i]);
}

/* What most workers gave; of several such, that of the lowest rank. `same`: how many gave it. */
static int64_t most(const check *c, uint32_t *same, uint32_t *others)
{
    int64_t best = 0;

    *same = *others = 0;
    for (uint32_t w = 0; w < c->workers; w++) {
        uint32_t count = 0;

        for (uint32_t v = 0; c->all[w] && v < c->workers; v++)
            count += c->all[v] == c->all[w];
        if (count > *same) {
            *same = count;
            best = c->all[w];
        }
        *others += c->all[w] != 0;
    }
    *others -= *same;
    return best;
}

/* ---- a difference -------------------------------------------------------------------------------------- */

static const char *key_text(const check *c, uint32_t i, char out[256])
{
    if (c->items[i].name)
        (void)snprintf(out, 256, "key \"%.200s\"", c->items[i].name);
    else
        (void)snprintf(out, 256, "key %" PRId64, c->items[i].number);
    return out;
}

/* Those whose number is not `best`. */
static void ranks_text(const check *c, int64_t best, uint32_t others, tni_str *out)
{
    uint32_t named = 0;

    (void)tni_str_add(out, others > 1 ? "workers " : "worker ");
    for (uint32_t w = 0; w < c->workers && named < RANKS_NAMED; w++)
        if (c->all[w] && c->all[w] != best)
            (void)tni_str_addf(out, named++ ? ", %u" : "%u", w);
    if (others > named)
        (void)tni_str_addf(out, " and %u more", others - named);
}

static tn_status differ(const check *c, uint32_t at)
{
    char key[256];
    uint32_t same, others;
    const int64_t best = most(c, &same, &others);
    tni_str ranks;
    tn_status st;

    tni_str_init(&ranks, 256);
    ranks_text(c, best, others, &ranks);
    (void)key_text(c, at, key);
    if (same > others)
        st = tni_error_number(E_DRIFT, TN_E_STATE,
                              "drift check, round %" PRIu64 ": %s of %s differs from that of the other %u",
                              c->round, key, ranks.text ? ranks.text : "a worker", same);
    else
        st = tni_error_number(E_DRIFT, TN_E_STATE,
                              "drift check, round %" PRIu64 ": %s differs from worker to worker (%u have "
                              "one value, %s another)",
                              c->round, key, same, ranks.text ? ranks.text : "a worker");
    tni_str_fini(&ranks);
    return st;
}

static tn_status first_find(check *c)
{
    uint32_t low = 0, high = c->count - 1, same, others;
    tn_status st;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if ((st = exchange_chain(c, middle)))
            return st;
        (void)most(c, &same, &others);
        if (others)
            high = middle;
        else
            low = middle + 1;
    }
    return (st = exchange_chain(c, low)) ? st : differ(c, low);
}

/* All check the same number of keys, or none of the rest is comparable. */
static tn_status counts_check(const check *c)
{
    for (uint32_t w = 0; w < c->workers; w++)
        if (c->all[w] && c->all[w] >> 32 != c->count)
            return tni_error(TN_E_ARG, "drift check: worker %u checks %u keys, this one %u", w,
                             (uint32_t)(c->all[w] >> 32), c->count);
    return TN_OK;
}

static tn_status compare(check *c)
{
    tn_err err;
    char key[256];
    uint32_t same, others = 0;
    const tn_status made = chains_make(c);
    tn_status st = TN_OK;

    if (made) /* the others must not wait for it: they find that it differs */
        tni_error_get(&err);
    if (c->workers > 1 && !(st = exchange_chain(c, c->count - 1)) && !(st = counts_check(c))) {
        (void)most(c, &same, &others);
        st = others ? first_find(c) : TN_OK;
    }
    if (made)
        tni_error_set(&err);
    else if (!st && c->own != NONE)
        return tni_error_number(E_DRIFT, TN_E_STATE,
                                "drift check, round %" PRIu64 ": %s differs from device to device", c->round,
                                key_text(c, c->own, key));
    return made ? made : st;
}

tn_status tni_kv_drift(tni_kv *kv, uint64_t round, uint32_t count, const tn_kv_item *items)
{
    const uint64_t every = (uint64_t)tni_option_int(kv->ctx->options, "kvstore.drift_check");
    check c = {.d = kv->dist, .count = count, .workers = 1, .items = items, .own = NONE, .round = round};
    const tni_kv_quiet q = tni_kv_quiet_begin();
    char key[256];
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++)
        if (!items[i].value_count)
            st = tni_error(TN_E_ARG, "drift check: %s without an array", key_text(&c, i, key));
    if (st || !every || !count || round % every)
        return tni_kv_quiet_end(q, st);
    if (c.d)
        c.workers = tni_kv_process_workers(c.d->process);
    c.chains = tni_calloc(count, sizeof *c.chains);
    c.all = tni_calloc(c.workers, sizeof *c.all);
    st = c.chains && c.all ? compare(&c) : TN_E_NOMEM;
    tni_free(c.chains);
    tni_free(c.all);
    return tni_kv_quiet_end(q, st);
}
