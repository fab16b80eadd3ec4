/*
 * Words as numbers, as MXNet's encode_sentences gives them: a vocabulary keeps its words in the order in
 * which they came, and a hash table of their places. A new number is the next one that is not the invalid
 * label; the token of unknown words has the first number that no word has, the same for every text.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "tenon/nn_data.h"

#define WORDS_MAX (1 << 24)
#define LABEL_MAX (1 << 24) /* float32 has all whole numbers up to it */

typedef struct entry {
    char *word;
    size_t hash;
    int32_t label;
} entry;

struct tn_vocab {
    tnn_object object;
    entry *entries;
    size_t count, room;
    uint32_t *slots; /* place of an entry + 1; 0: free. Twice `room`, a power of two */
};

static void vocab_destroy(tnn_object *object)
{
    tn_vocab *v = (tn_vocab *)object;

    for (size_t i = 0; i < v->count; i++)
        free(v->entries[i].word);
    free(v->entries);
    free(v->slots);
    free(v);
}

static tn_vocab *vocab_make(tn_app *app)
{
    tn_vocab *v = tnn_alloc(app, 1, sizeof *v);

    if (v)
        tnn_object_add(app, &v->object, vocab_destroy);
    return v;
}

/* ---- the table ---- */

static entry *entry_find(const tn_vocab *v, const char *word, size_t hash)
{
    const size_t mask = 2 * v->room - 1;

    for (size_t at = hash & mask; v->room && v->slots[at]; at = (at + 1) & mask) {
        entry *e = &v->entries[v->slots[at] - 1];

        if (e->hash == hash && !strcmp(e->word, word))
            return e;
    }
    return NULL;
}

static void slot_take(uint32_t *slots, size_t mask, size_t hash, size_t place)
{
    size_t at = hash & mask;

    while (slots[at])
        at = (at + 1) & mask;
    slots[at] = (uint32_t)place + 1;
}

static tn_status vocab_grow(tn_app *app, tn_vocab *v)
{
    const size_t room = v->room ? 2 * v->room : 64;
    uint32_t *slots = tnn_alloc(app, 2 * room, sizeof *slots);
    entry *entries = slots ? tnn_alloc(app, room, sizeof *entries) : NULL;

    if (!entries) {
        free(slots);
        return app->status;
    }
    for (size_t i = 0; i < v->count; i++) {
        entries[i] = v->entries[i];
        slot_take(slots, 2 * room - 1, entries[i].hash, i);
    }
    free(v->entries);
    free(v->slots);
    v->entries = entries;
    v->slots = slots;
    v->room = room;
    return TN_OK;
}

/* One that is not there yet. */
static tn_status entry_add(tn_app *app, tn_vocab *v, const char *word, size_t hash, int64_t label)
{
    const size_t bytes = strlen(word) + 1;
    char *copy;

    if (label > LABEL_MAX || label < -LABEL_MAX)
        return tnn_fail(app, TN_E_ARG, "vocabulary: number %lld of the word \"%.80s\" is not within 2^24",
                        (long long)label, word);
    if ((v->count == v->room && vocab_grow(app, v)) || !(copy = tnn_alloc(app, bytes, 1)))
        return app->status;
    memcpy(copy, word, bytes);
    slot_take(v->slots, 2 * v->room - 1, hash, v->count);
    v->entries[v->count++] = (entry){.word = copy, .hash = hash, .label = (int32_t)label};
    return TN_OK;
}

/* The smallest number from `start` on that is neither invalid nor another word's. */
static tn_status label_free(tn_app *app, const tn_vocab *v, const tn_encode_options *o, int64_t *label)
{
    const int64_t start = o->start_label, count = (int64_t)v->count + 2;
    char *used = tnn_alloc(app, (size_t)count, 1);
    int64_t at = 0;

    if (!used)
        return app->status;
    if (o->invalid_label >= start && o->invalid_label - start < count)
        used[o->invalid_label - start] = 1;
    for (size_t i = 0; i < v->count; i++) {
        const int64_t next = v->entries[i].label - start;

        if (next >= 0 && next < count)
            used[next] = 1;
    }
    while (used[at]) /* of v->count + 2 at most v->count + 1 are */
        at++;
    free(used);
    *label = start + at;
    return TN_OK;
}

/* ---- vocabularies ---- */

tn_vocab *tn_vocab_new_(tn_app *app, const tn_vocab_options *options)
{
    tn_vocab_options o = {0};
    tn_vocab *v;

    if (!tnn_ok(app))
        return NULL;
    tnn_options_copy(&o, sizeof o, options);
    if (!o.words || o.count < 1 || o.count > WORDS_MAX) {
        (void)tnn_fail(app, TN_E_ARG, "tn_vocab_new at %.60s:%d: .words is missing, or .count not 1 to 2^24",
                       o.file ? o.file : "?", o.line);
        return NULL;
    }
    v = vocab_make(app);
    for (int64_t i = 0; v && !app->status && i < o.count; i++) {
        const size_t hash = o.words[i] ? tnn_hash(o.words[i]) : 0;

        if (!o.words[i])
            (void)tnn_fail(app, TN_E_ARG, "vocabulary: word %lld is NULL", (long long)i);
        else if (entry_find(v, o.words[i], hash))
            (void)tnn_fail(app, TN_E_ARG, "vocabulary: the word \"%.80s\" is listed twice", o.words[i]);
        else
            (void)entry_add(app, v, o.words[i], hash, o.labels ? o.labels[i] : i);
    }
    return app->status ? NULL : v;
}

int64_t tn_vocab_count(const tn_vocab *v)
{
    return v ? (int64_t)v->count : 0;
}

const char *tn_vocab_at(const tn_vocab *v, int64_t index, int32_t *label)
{
    if (index < 0 || index >= tn_vocab_count(v))
        return NULL;
    if (label)
        *label = v->entries[index].label;
    return v->entries[index].word;
}

int tn_vocab_find(const tn_vocab *v, const char *word, int32_t *label)
{
    const entry *e = v && word ? entry_find(v, word, tnn_hash(word)) : NULL;

    if (e && label)
        *label = e->label;
    return e != NULL;
}

/* ---- sentences ---- */

/* How many words all sentences have. */
static tn_status words_count(tn_app *app, const char *what, const tn_encode_options *o, int64_t *words)
{
    *words = 0;
    if (o->count < 0 || (o->count && !o->lengths))
        return tnn_fail(app, TN_E_ARG, "%s: .lengths is missing, or .count below 0", what);
    for (int64_t i = 0; i < o->count; i++) {
        if (o->lengths[i] < 0 || o->lengths[i] > INT64_MAX / (int64_t)sizeof(char *) - *words)
            return tnn_fail(app, TN_E_ARG, "%s: sentence %lld has %lld words", what, (long long)i,
                            (long long)o->lengths[i]);
        *words += o->lengths[i];
    }
    return TN_OK;
}

/* Its number in `tokens`; of a word that is new one more, as the options say. */
static tn_status word_encode(tn_app *app, tn_vocab *v, const tn_encode_options *o, const entry *unknown,
                             int64_t *next, const char *word, int32_t *token)
{
    const size_t hash = tnn_hash(word);
    const entry *e = entry_find(v, word, hash);

    if (!e && o->vocab && !unknown)
        return tnn_fail(
            app, TN_E_KEY,
            "tn_encode_sentences: the vocabulary has no word \"%.80s\", and .unknown_token is not "
            "given",
            word);
    if (!e && o->vocab)
        e = unknown;
    if (!e) {
        *next += *next == o->invalid_label;
        if (entry_add(app, v, word, hash, (*next)++))
            return app->status;
        e = &v->entries[v->count - 1];
    }
    *token = e->label;
    return TN_OK;
}

/* The entry of the token for unknown words, which is added if there is none. */
static tn_status unknown_add(tn_app *app, tn_vocab *v, const tn_encode_options *o, const entry **out)
{
    const size_t hash = tnn_hash(o->unknown_token);
    int64_t label = 0;

    if (!entry_find(v, o->unknown_token, hash) &&
        (label_free(app, v, o, &label) || entry_add(app, v, o->unknown_token, hash, label)))
        return app->status;
    *out = entry_find(v, o->unknown_token, hash);
    return TN_OK;
}

static tn_status options_check(tn_app *app, const char *what, const tn_encode_options *o,
                               const int32_t *tokens, int64_t *words)
{
    if (words_count(app, what, o, words))
        return app->status;
    if (*words && (!tokens || !o->words))
        return tnn_fail(app, TN_E_ARG, "%s: %s", what, tokens ? ".words is missing" : "tokens is NULL");
    for (int64_t i = 0; i < *words; i++)
        if (!o->words[i])
            return tnn_fail(app, TN_E_ARG, "%s: word %lld is NULL", what, (long long)i);
    return TN_OK;
}

tn_vocab *tn_encode_sentences_(tn_app *app, int32_t *tokens, const tn_encode_options *options)
{
    tn_encode_options o = {0};
    const entry *unknown = NULL;
    int64_t words, next;
    tn_vocab *v;
    char what[96];

    if (!tnn_ok(app))
        return NULL;
    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_encode_sentences at %.60s:%d", o.file ? o.file : "?", o.line);
    if (options_check(app, what, &o, tokens, &words) || !(v = o.vocab ? o.vocab : vocab_make(app)))
        return NULL;
    next = o.start_label;
    if (!o.vocab) {
        const char *key = o.invalid_key ? o.invalid_key : "\n";

        (void)entry_add(app, v, key, tnn_hash(key), o.invalid_label);
    } else if (o.unknown_token) {
        (void)unknown_add(app, v, &o, &unknown);
    }
    for (int64_t i = 0; !app->status && i < words; i++)
        (void)word_encode(app, v, &o, unknown, &next, o.words[i], &tokens[i]);
    if (!app->status && !o.vocab && o.unknown_token)
        (void)unknown_add(app, v, &o, &unknown);
    return app->status ? NULL : v;
}
