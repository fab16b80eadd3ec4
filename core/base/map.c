/*
 * A map from text to pointers that remembers insertion order. Entries lie in one array in that order; an
 * open-addressed table of entry numbers finds them. Removing leaves a hole in both, swept out when the table
 * is rebuilt. The hash is SipHash-1-3 (Aumasson and Bernstein, 2012) under a key drawn once per process, so
 * nobody can choose keys that collide.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"

#define SLOT_FREE UINT32_MAX
#define SLOTS_FIRST 16u

typedef struct map_entry {
    char *key; /* NULL: removed */
    void *value;
    uint64_t hash;
} map_entry;

struct tni_map {
    map_entry *entries;
    uint32_t *slots; /* numbers of entries, or SLOT_FREE; a removed entry keeps its slot */
    size_t used;     /* entries, removed ones too */
    size_t count;    /* live entries */
    size_t slot_count, max;
};

static uint64_t hash_key[2];
static pthread_once_t hash_once = PTHREAD_ONCE_INIT;

static void hash_key_make(void)
{
    if (getrandom(hash_key, sizeof hash_key, GRND_NONBLOCK) != (ssize_t)sizeof hash_key) {
        hash_key[0] = tni_clock_wall_ns() * 0x9E3779B97F4A7C15u; /* early in boot: better than a constant */
        hash_key[1] = tni_clock_ns() ^ (uint64_t)(uintptr_t)&hash_once;
    }
}

static inline uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static uint64_t word_load(const unsigned char *at, size_t count)
{
    uint64_t word = 0;

    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

static uint64_t sip_hash(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    uint64_t v[4] = {hash_key[0] ^ 0x736f6d6570736575u, hash_key[1] ^ 0x646f72616e646f6du,
                     hash_key[0] ^ 0x6c7967656e657261u, hash_key[1] ^ 0x7465646279746573u};
    size_t left = length;

    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word;

        memcpy(&word, at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = word_load(at, left) | (uint64_t)length << 56;

    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

tn_status tni_map_create(size_t max, tni_map **out)
{
    tni_map *m = tni_zalloc(sizeof *m);

    if (!m)
        return TN_E_NOMEM;
    pthread_once(&hash_once, hash_key_make);
    m->max = max < UINT32_MAX / 4 ? max : UINT32_MAX / 4;
    *out = m;
    return TN_OK;
}

void tni_map_destroy(tni_map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->used; i++)
        tni_free(m->entries[i].key);
    tni_free(m->entries);
    tni_free(m->slots);
    tni_free(m);
}

static void slot_place(uint32_t *slots, size_t slot_count, uint64_t hash, uint32_t entry)
{
    size_t at = (size_t)hash & (slot_count - 1);

    while (slots[at] != SLOT_FREE)
        at = (at + 1) & (slot_count - 1);
    slots[at] = entry;
}

/* Makes room for one more entry: new arrays without the holes, at most half full. */
static tn_status map_rebuild(tni_map *m)
{
    size_t slot_count = SLOTS_FIRST;
    map_entry *entries;
    uint32_t *slots;
    size_t used = 0;

    while (slot_count < (m->count + 1) * 2)
        slot_count *= 2;
    entries = tni_calloc(slot_count / 2, sizeof *entries);
    slots = tni_calloc(slot_count, sizeof *slots);
    if (!entries || !slots) {
        tni_free(entries);
        tni_free(slots);
        return TN_E_NOMEM;
    }
    memset(slots, 0xff, slot_count * sizeof *slots);
    for (size_t i = 0; i < m->used; i++) {
        if (!m->entries[i].key)
            continue;
        slot_place(slots, slot_count, m->entries[i].hash, (uint32_t)used);
        entries[used++] = m->entries[i];
    }
    tni_free(m->entries);
    tni_free(m->slots);
    m->entries = entries;
    m->slots = slots;
    m->slot_count = slot_count;
    m->used = used;
    return TN_OK;
}

static map_entry *map_find(const tni_map *m, const char *key, uint64_t hash)
{
    if (m->slot_count == 0)
        return NULL;
    for (size_t at = (size_t)hash & (m->slot_count - 1); m->slots[at] != SLOT_FREE;
         at = (at + 1) & (m->slot_count - 1)) {
        map_entry *entry = &m->entries[m->slots[at]];

        if (entry->hash == hash && entry->key && strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

tn_status tni_map_set(tni_map *m, const char *key, void *value)
{
    uint64_t hash = sip_hash(key, strlen(key));
    map_entry *entry = map_find(m, key, hash);
    char *copy;

    if (entry) {
        entry->value = value;
        return TN_OK;
    }
    if (m->count >= m->max)
        return tni_error(TN_E_NOMEM, "%zu names, but the limit here is %zu", m->count + 1, m->max);
    copy = tni_strdup(key);
    if (!copy)
        return TN_E_NOMEM;
    if (m->used >= m->slot_count / 2 && map_rebuild(m)) {
        tni_free(copy);
        return TN_E_NOMEM;
    }
    m->entries[m->used] = (map_entry){.key = copy, .value = value, .hash = hash};
    slot_place(m->slots, m->slot_count, hash, (uint32_t)m->used);
    m->used++;
    m->count++;
    return TN_OK;
}

bool tni_map_get(const tni_map *m, const char *key, void **out)
{
    const map_entry *entry = map_find(m, key, sip_hash(key, strlen(key)));

    if (entry && out)
        *out = entry->value;
    return entry != NULL;
}

bool tni_map_remove(tni_map *m, const char *key)
{
    map_entry *entry = map_find(m, key, sip_hash(key, strlen(key)));

    if (!entry)
        return false;
    tni_free(entry->key);
    entry->key = NULL;
    entry->value = NULL;
    m->count--;
    return true;
}

size_t tni_map_count(const tni_map *m)
{
    return m->count;
}

bool tni_map_next(const tni_map *m, size_t *cursor, const char **key, void **value)
{
    while (*cursor < m->used && !m->entries[*cursor].key)
        ++*cursor;
    if (*cursor >= m->used)
        return false;
    if (key)
        *key = m->entries[*cursor].key;
    if (value)
        *value = m->entries[*cursor].value;
    ++*cursor;
    return true;
}

/* 128-bit product folded to 64: one multiplication mixes 16 bytes. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t tni_hash_bytes(uint64_t seed, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t h = seed ^ 0x9E3779B97F4A7C15u;
    size_t left = count;

    for (; left >= 16; left -= 16, at += 16) {
        uint64_t a, b;

        memcpy(&a, at, 8);
        memcpy(&b, at + 8, 8);
        h = fold(a ^ 0xBF58476D1CE4E5B9u, b ^ h);
    }
    if (left) {
        uint64_t a = word_load(at, left < 8 ? left : 8);
        uint64_t b = left > 8 ? word_load(at + 8, left - 8) : 0;

        h = fold(a ^ 0x94D049BB133111EBu, b ^ h);
    }
    return fold(h ^ 0xD6E8FEB86659FD93u, (uint64_t)count ^ 0xA0761D6478BD642Fu);
}
