/*
 * One cache of prepared kernels, keyed by the request: eager calls, programs and equal layers share them. The
 * first asker prepares, the others wait for him; the least recent entry goes.
 */
#include <string.h>

#include "compile/select.h"

#define BUCKETS 1024u

typedef struct entry {
    struct entry *next, *older, *newer; /* of the bucket; of the list by use */
    uint64_t hash;
    tni_attrs *attrs;
    tni_prepared *forward;  /* retained, so that its address stays its own */
    tni_prepared *prepared; /* NULL: somebody is at it */
    uint32_t words;
    uint64_t key[];
} entry;

struct tni_prepared_cache {
    tni_mutex lock;
    tni_cond ready;
    entry *buckets[BUCKETS];
    entry *newest, *oldest;
    uint32_t count;
};

tn_status tni_prepared_cache_create(tni_prepared_cache **out)
{
    tni_prepared_cache *c = tni_zalloc(sizeof *c);

    if (!c)
        return TN_E_NOMEM;
    if (tni_mutex_init(&c->lock)) {
        tni_free(c);
        return TN_E_NOMEM;
    }
    if (tni_cond_init(&c->ready)) {
        tni_mutex_fini(&c->lock);
        tni_free(c);
        return TN_E_NOMEM;
    }
    *out = c;
    return TN_OK;
}

static void entry_free(entry *e)
{
    tni_attrs_release(e->attrs);
    tni_prepared_release(e->forward);
    tni_prepared_release(e->prepared);
    tni_free(e);
}

void tni_prepared_cache_destroy(tni_prepared_cache *c)
{
    if (!c)
        return;
    while (c->newest) {
        entry *older = c->newest->older;

        entry_free(c->newest);
        c->newest = older;
    }
    tni_cond_fini(&c->ready);
    tni_mutex_fini(&c->lock);
    tni_free(c);
}

/* ---- keys -------------------------------------------------------------------------------------------- */

static uint32_t tensor_words(const tn_tensor *t)
{
    return 4u + 2u * (uint32_t)(t->ndim > 0 ? t->ndim : 0);
}

static uint64_t *tensor_put(uint64_t *at, const tn_tensor *t, uint8_t mode)
{
    *at++ = (uint64_t)(uint32_t)t->dtype << 32 | (uint32_t)t->ndim;
    *at++ = (uint64_t)t->storage << 32 | (uint64_t)t->memory << 8 | mode;
    *at++ = (uint64_t)(uintptr_t)t->layout;
    *at++ = t->bytes;
    for (int32_t d = 0; d < t->ndim; d++) {
        *at++ = (uint64_t)t->shape[d];
        *at++ = (uint64_t)t->stride[d];
    }
    return at;
}

/* What the kernel and its plan depend on, but for the structural attributes. */
static entry *entry_make(const tni_request *r, uint64_t generation)
{
    uint32_t words = 5;
    uint64_t *at;
    entry *e;

    for (uint32_t i = 0; i < r->in_count + r->out_count; i++)
        words += tensor_words(i < r->in_count ? r->in[i] : r->out[i - r->in_count]);
    if (!(e = tni_zalloc(sizeof *e + words * sizeof *e->key)))
        return NULL;
    at = e->key;
    *at++ = (uint64_t)(uintptr_t)r->def;
    *at++ = (uint64_t)(uintptr_t)r->device;
    *at++ = (uint64_t)r->in_count << 32 | r->out_count;
    *at++ = (uint64_t)r->threads << 32 | r->flags;
    *at++ = generation;
    for (uint32_t i = 0; i < r->in_count; i++)
        at = tensor_put(at, r->in[i], TN_MODE_NONE);
    for (uint32_t i = 0; i < r->out_count; i++)
        at = tensor_put(at, r->out[i], r->modes[i]);
    e->words = words;
    e->hash =
        tni_hash_bytes(r->attrs->hash, e->key, words * sizeof *e->key) ^ (uint64_t)(uintptr_t)r->forward;
    e->attrs = tni_attrs_retain((tni_attrs *)r->attrs);
    if ((e->forward = r->forward) != NULL)
        tni_prepared_retain(e->forward);
    return e;
}

static bool equal(const entry *a, const entry *b)
{
    return a->hash == b->hash && a->words == b->words && a->forward == b->forward &&
           !memcmp(a->key, b->key, a->words * sizeof *a->key) &&
           (a->attrs == b->attrs || tni_attrs_equal_structural(a->attrs, b->attrs));
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static void list_remove_locked(tni_prepared_cache *c, entry *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void list_front_locked(tni_prepared_cache *c, entry *e)
{
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void remove_locked(tni_prepared_cache *c, entry *e)
{
    entry **at = &c->buckets[e->hash % BUCKETS];

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    list_remove_locked(c, e);
    c->count--;
}

static void add_locked(tni_prepared_cache *c, entry *e)
{
    e->next = c->buckets[e->hash % BUCKETS];
    c->buckets[e->hash % BUCKETS] = e;
    list_front_locked(c, e);
    c->count++;
}

/* Takes out the oldest ones that nobody is at; a list by `next`, for the caller to free. */
static entry *trim_locked(tni_prepared_cache *c)
{
    entry *spent = NULL;

    for (entry *e = c->oldest; e && c->count > TN_SITE_CACHE_MAX;) {
        entry *newer = e->newer;

        if (e->prepared) {
            remove_locked(c, e);
            e->next = spent;
            spent = e;
        }
        e = newer;
    }
    return spent;
}

static entry *find_locked(tni_prepared_cache *c, const entry *like)
{
    entry *e = c->buckets[like->hash % BUCKETS];

    while (e && !equal(e, like))
        e = e->next;
    return e;
}

/* True: `*out` is there, retained. False: `mine` stands in the table, and the caller prepares. */
static bool found_or_mine(tni_prepared_cache *c, entry *mine, tni_prepared **out)
{
    entry *e;

    tni_mutex_lock(&c->lock);
    while ((e = find_locked(c, mine)) != NULL && !e->prepared)
        tni_cond_wait(&c->ready, &c->lock);
    if (e) {
        list_remove_locked(c, e);
        list_front_locked(c, e);
        tni_prepared_retain(*out = e->prepared);
    } else {
        add_locked(c, mine);
    }
    tni_mutex_unlock(&c->lock);
    return e != NULL;
}

tn_status tni_prepared_find(tni_prepared_cache *c, const tni_request *r, uint64_t generation,
                            tn_status (*make)(void *arg, const tni_request *r, tni_prepared **out), void *arg,
                            tni_prepared **out)
{
    entry *mine = entry_make(r, generation), *spent;
    tn_status st;

    if (!mine)
        return TN_E_NOMEM;
    if (found_or_mine(c, mine, out)) {
        entry_free(mine);
        return TN_OK;
    }
    st = make(arg, r, out);
    tni_mutex_lock(&c->lock);
    if (st)
        remove_locked(c, mine);
    else
        tni_prepared_retain(mine->prepared = *out);
    spent = trim_locked(c);
    tni_cond_broadcast(&c->ready);
    tni_mutex_unlock(&c->lock);
    while (spent) { /* plugins are called without the lock */
        entry *next = spent->next;

        entry_free(spent);
        spent = next;
    }
    if (st)
        entry_free(mine);
    return st;
}
