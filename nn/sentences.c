/*
 * Sentences in buckets, as MXNet's BucketSentenceIter: a sentence goes into the shortest bucket that holds it
 * and is filled up; labels are the tokens that follow. The samples of a bucket lie one behind the other, and
 * a batch has samples of one bucket, in its length. What fills no batch of its bucket is left out. Orders
 * within buckets and of batches are functions of seed and epoch.
 */
#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

#define BUCKETS_MAX 256 /* as a module has */
#define LENGTH_MAX (1 << 20)
#define TOKEN_MAX (1 << 24) /* float32 has all whole numbers up to it */

typedef struct bucket {
    int64_t length, first, count; /* first: of its samples */
} bucket;

struct tnn_buckets {
    bucket at[BUCKETS_MAX];
    size_t count;
    int64_t batches;
    uint32_t *turns; /* numbers of the batches in the order of the epoch; NULL: as they are */
    int64_t turns_epoch;
};

void tnn_buckets_destroy(struct tnn_buckets *b)
{
    if (b)
        free(b->turns);
    free(b);
}

int64_t tnn_buckets_batches(const struct tnn_buckets *b)
{
    return b->batches;
}

static void turns_make(struct tnn_buckets *b, tnn_order *o, int64_t epoch)
{
    if (!o->order || b->turns_epoch == epoch)
        return;
    tnn_order_shuffle(b->turns, b->batches, tnn_random_mix(o->seed, TNN_PURPOSE_BUCKETS), epoch, 0);
    for (size_t i = 0; i < b->count; i++)
        tnn_order_shuffle(o->order + b->at[i].first, b->at[i].count,
                          tnn_random_mix(o->seed, TNN_PURPOSE_SHUFFLE), epoch, b->at[i].first);
    b->turns_epoch = epoch;
}

int64_t tnn_buckets_rows(tnn_order *o, int64_t epoch, int64_t index)
{
    struct tnn_buckets *b = o->buckets;
    const bucket *at = b->at;
    int64_t turn;

    turns_make(b, o, epoch);
    turn = o->order ? b->turns[index] : index;
    while (turn >= at->count / o->batch)
        turn -= at++->count / o->batch;
    for (int64_t i = 0; i < o->batch; i++) {
        const int64_t row = at->first + turn * o->batch + i;

        o->rows[i] = o->order ? o->order[row] : (uint32_t)row;
    }
    o->length = at->length;
    return o->batch;
}

/* ---- making ---- */

typedef struct sentences { /* of the share */
    const tn_sentences_options *o;
    const int32_t *tokens;
    const int64_t *lengths;
    int64_t count, left_out;
} sentences;

static tn_status share_take(tn_app *app, const char *what, const tn_sentences_options *o, sentences *s)
{
    int64_t begin, end;

    *s = (sentences){.o = o, .tokens = o->tokens};
    if (!o->tokens || !o->lengths || o->count < 1 || o->count > UINT32_MAX)
        return tnn_fail(app, TN_E_ARG, "%s: .tokens or .lengths is missing, or .count not 1 to 2^32 - 1",
                        what);
    if (o->last && strcmp(o->last, "discard") != 0)
        return tnn_fail(app, TN_E_ARG, "%s: .last is \"%.40s\"; of buckets it is \"discard\"", what, o->last);
    if (o->layout && strcmp(o->layout, "NT") != 0 && strcmp(o->layout, "TN") != 0)
        return tnn_fail(app, TN_E_ARG, "%s: .layout is \"%.40s\", neither NT nor TN", what, o->layout);
    for (int64_t i = 0; i < o->count; i++)
        if (o->lengths[i] < 0 || o->lengths[i] > LENGTH_MAX)
            return tnn_fail(app, TN_E_ARG, "%s: sentence %lld has %lld tokens, 0 to 2^20 are allowed", what,
                            (long long)i, (long long)o->lengths[i]);
    tnn_share(o->count, o->parts ? o->parts : 1, o->part, &begin, &end);
    for (int64_t i = 0; i < begin; i++)
        s->tokens += o->lengths[i];
    s->lengths = o->lengths + begin;
    s->count = end - begin;
    return TN_OK;
}

static tn_status bucket_add(tn_app *app, const char *what, struct tnn_buckets *b, int64_t length)
{
    size_t i = b->count;

    if (length < 1 || length > LENGTH_MAX || b->count == BUCKETS_MAX)
        return tnn_fail(app, TN_E_ARG,
                        "%s: a bucket of %lld tokens, or more than %d buckets; 1 to 2^20 tokens "
                        "are allowed",
                        what, (long long)length, BUCKETS_MAX);
    for (; i && b->at[i - 1].length > length; i--)
        b->at[i] = b->at[i - 1];
    b->at[i] = (bucket){.length = length};
    b->count++;
    return TN_OK;
}

/* Those of the options, or each length that a batch of sentences has. */
static tn_status buckets_take(tn_app *app, const char *what, const sentences *s, int64_t batch,
                              struct tnn_buckets *b)
{
    int64_t *counts, longest = 0;

    for (const int64_t *length = s->o->buckets; length && *length; length++)
        if (bucket_add(app, what, b, *length))
            return app->status;
    if (b->count)
        return TN_OK;
    for (int64_t i = 0; i < s->count; i++)
        longest = s->lengths[i] > longest ? s->lengths[i] : longest;
    if (!(counts = tnn_alloc(app, (size_t)longest + 1, sizeof *counts)))
        return app->status;
    for (int64_t i = 0; i < s->count; i++)
        counts[s->lengths[i]]++;
    for (int64_t length = 1; length <= longest && !app->status; length++)
        if (counts[length] >= batch)
            (void)bucket_add(app, what, b, length);
    free(counts);
    if (!app->status && !b->count)
        return tnn_fail(app, TN_E_ARG, "%s: no length has a batch of %lld sentences: give .buckets", what,
                        (long long)batch);
    return app->status;
}

/* The shortest that holds it; NULL: there is none. */
static bucket *bucket_of(struct tnn_buckets *b, int64_t length)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->at[i].length >= length)
            return &b->at[i];
    return NULL;
}

/* Counts, and where samples lie; buckets without any go, as MXNet's. */
static tn_status buckets_count(tn_app *app, tn_data *d, sentences *s, struct tnn_buckets *b)
{
    size_t kept = 0;

    for (int64_t i = 0; i < s->count; i++) {
        bucket *to = bucket_of(b, s->lengths[i]);

        if (to)
            to->count++;
        else
            s->left_out++;
    }
    for (size_t i = 0; i < b->count; i++) {
        b->at[i].first = d->count;
        d->count += b->at[i].count;
        b->batches += b->at[i].count / d->order.batch;
        if (b->at[i].count)
            b->at[kept++] = b->at[i];
    }
    b->count = kept;
    if (!b->batches)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": no bucket has a batch of %lld sentences", d->name,
                        (long long)d->order.batch);
    if (s->left_out)
        tnn_warn(app,
                 "data \"%s\": %lld of %lld sentences are longer than the largest bucket, %lld, and left out",
                 d->name, (long long)s->left_out, (long long)s->count, (long long)b->at[kept - 1].length);
    return TN_OK;
}

/* A sentence, and behind each token the next one as its label. */
static tn_status sample_write(tn_app *app, const tn_data *d, const int32_t *tokens, int64_t length,
                              float invalid, float *const to[2])
{
    const int64_t room = (int64_t)d->fields[0].sample;

    for (int64_t k = 0; k < length; k++)
        if (tokens[k] > TOKEN_MAX || tokens[k] < -TOKEN_MAX)
            return tnn_fail(app, TN_E_ARG, "data \"%s\": token %d is not within 2^24", d->name, tokens[k]);
    for (int64_t k = 0; k < room; k++) {
        to[0][k] = k < length ? (float)tokens[k] : invalid;
        to[1][k] = k + 1 < length ? (float)tokens[k + 1] : invalid;
    }
    return TN_OK;
}

static tn_status samples_write(tn_app *app, tn_data *d, const sentences *s, struct tnn_buckets *b)
{
    const size_t room = d->fields[0].sample;
    const int32_t *tokens = s->tokens;
    int64_t used[BUCKETS_MAX] = {0};

    for (int f = 0; f < 2; f++)
        if ((uint64_t)d->count > SIZE_MAX / sizeof(float) / room ||
            !(d->fields[f].own = tnn_alloc(app, (size_t)d->count * room, sizeof(float))))
            return app->status ? app->status : tnn_no_memory(app);
    for (int64_t i = 0; i < s->count; tokens += s->lengths[i++]) {
        const bucket *at = bucket_of(b, s->lengths[i]);
        const size_t row = at ? (size_t)(at->first + used[at - b->at]++) : 0;

        if (at && sample_write(app, d, tokens, s->lengths[i], (float)s->o->invalid_label,
                               (float *[]){(float *)d->fields[0].own + row * room,
                                           (float *)d->fields[1].own + row * room}))
            return app->status;
    }
    return TN_OK;
}

static tn_status fields_make(tn_app *app, tn_data *d, const sentences *s, struct tnn_buckets *b)
{
    static const char *const usual[] = {"data", "softmax_label"};
    const char *const given[] = {s->o->data_name, s->o->label_name};

    for (int i = 0; i < 2; i++) {
        tnn_field *f = tnn_field_add(app, d, given[i] ? given[i] : usual[i]);

        if (!f)
            return app->status;
        f->shape = tnn_shape_of(2, (const int64_t[]){1, b->at[b->count - 1].length});
        f->sample = (size_t)f->shape.dims[1];
    }
    if (samples_write(app, d, s, b))
        return app->status;
    for (int i = 0; i < 2; i++)
        d->fields[i].floats = d->fields[i].own;
    return TN_OK;
}

/* The numbers of the batches, of which orders are made. */
static tn_status turns_room(tn_app *app, const tn_data *d, struct tnn_buckets *b)
{
    b->turns_epoch = -1;
    if (d->order.shuffle)
        b->turns = tnn_alloc(app, (size_t)b->batches, sizeof *b->turns);
    return app->status;
}

tn_data *tn_data_from_sentences_(tn_app *app, const tn_sentences_options *options)
{
    tn_sentences_options o = {0};
    struct tnn_buckets *b;
    sentences s;
    char what[96];
    tn_data *d;

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_data_from_sentences at %.60s:%d", o.file ? o.file : "?", o.line);
    if (!tnn_ok(app) || !(d = tnn_data_make(app, what, o.name ? o.name : "sentences", TNN_CUT_OF(o))))
        return NULL;
    d->order.last = TNN_LAST_DISCARD;
    d->parts = 1; /* taken here */
    d->order.time_major = o.layout && !strcmp(o.layout, "TN");
    if (!(b = d->order.buckets = tnn_alloc(app, 1, sizeof *b)) || share_take(app, what, &o, &s) ||
        buckets_take(app, what, &s, d->order.batch, b) || buckets_count(app, d, &s, b) ||
        fields_make(app, d, &s, b) || turns_room(app, d, b))
        return NULL;
    return tnn_data_done(d);
}

int64_t tn_data_bucket(const tn_data *d)
{
    return tnn_data_app(d) ? d->order.length : 0;
}

int64_t tnn_data_longest(const tn_data *d)
{
    return d->order.buckets ? d->fields[0].shape.dims[1] : 0;
}
