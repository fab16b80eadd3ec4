/*
 * A server's updates. Each part that was pushed has a record: views of its value and sum, and what the
 * optimizer keeps. Operators run on the engine of the context; a call waits for them, so that the machine
 * finds the value moved when it returns.
 */
#include "kv/update.h"

#include "kv/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MAX 64u        /* of an optimizer or a codec */
#define PARTS_MAX (1u << 22) /* as many as a server holds */

typedef struct name { /* of a key */
    char *name, *type, *worker;
    double lr_mult, wd_mult;
    uint64_t steps; /* of parts that were not pushed yet */
} name;

typedef struct part {
    uint64_t key;
    uint8_t what;           /* of the round under way */
    tni_array *value, *sum; /* views of the server's memory */
    tni_kv_param_slot slot;
    tni_kv_named named; /* in rounds of rows */
    void *before;       /* its value before the last step, where lost workers are waited for; or NULL */
} part;

struct tni_kv_updates {
    tni_context *ctx;
    tni_device *cpu;
    bool async, keeps; /* keeps: `before` of parts */
    tn_kv_command_fn fn;
    void *arg;
    tni_map *names, *parts; /* by number; by key on the wire */
    tni_kv_codec codec;
    tni_kv_optimizer *optimizer;
    tni_str optimizer_words, codec_words; /* of the commands, for snapshots */
    tn_err agreed;                        /* how the last of them ended */
};

static const char *text_of(uint64_t number, char out[24])
{
    (void)snprintf(out, 24, "%" PRIu64, number);
    return out;
}

/* ---- records ------------------------------------------------------------------------------------------- */

static void name_destroy(name *n)
{
    tni_free(n->name);
    tni_free(n->type);
    tni_free(n->worker);
    tni_free(n);
}

static void views_drop(part *p)
{
    tni_array_release(p->value);
    tni_array_release(p->sum);
    p->value = p->sum = NULL;
}

static void part_destroy(part *p)
{
    views_drop(p);
    tni_kv_param_fini(&p->slot);
    tni_free(p->named.bits);
    tni_free(p->before);
    tni_free(p);
}

static void all_drop(tni_kv_updates *u)
{
    size_t cursor = 0;
    void *item;

    while (u->names && tni_map_next(u->names, &cursor, NULL, &item))
        name_destroy(item);
    for (cursor = 0; u->parts && tni_map_next(u->parts, &cursor, NULL, &item);)
        part_destroy(item);
    tni_map_destroy(u->names);
    tni_map_destroy(u->parts);
    u->names = u->parts = NULL;
    tni_kv_optimizer_destroy(u->optimizer);
    u->optimizer = NULL;
    u->codec = (tni_kv_codec){0};
    tni_str_fini(&u->optimizer_words);
    tni_str_fini(&u->codec_words);
    tni_str_init(&u->optimizer_words, TN_TEXT_MAX);
    tni_str_init(&u->codec_words, TN_TEXT_MAX);
}

static tn_status maps_make(tni_kv_updates *u)
{
    const tn_status st = tni_map_create(TNI_KV_NUMBERS_MAX, &u->names);

    return st ? st : tni_map_create(PARTS_MAX, &u->parts);
}

static const name *name_of(const tni_kv_updates *u, uint64_t number)
{
    char text[24];
    void *found = NULL;

    (void)tni_map_get(u->names, text_of(number, text), &found);
    return found;
}

/* "key" and what the workers call it. */
static void key_text(const tni_kv_updates *u, uint64_t key, char out[256])
{
    const name *n = name_of(u, key >> 16);

    (void)snprintf(out, 256, n ? "key \"%.200s\"" : "key %s%" PRIu64, n ? n->name : "", key >> 16);
}

static tn_status part_take(tni_kv_updates *u, uint64_t key, part **out)
{
    const name *n = name_of(u, key >> 16);
    char text[24];
    void *found = NULL;
    part *p;
    tn_status st;

    if (tni_map_get(u->parts, text_of(key, text), &found)) {
        *out = found;
        return TN_OK;
    }
    if (!(p = tni_zalloc(sizeof *p)))
        return TN_E_NOMEM;
    p->key = key;
    p->slot = (tni_kv_param_slot){.lr_mult = 1, .wd_mult = 1, .steps = n ? n->steps : 0};
    if ((st = tni_map_set(u->parts, text, p)))
        tni_free(p);
    else
        *out = p;
    return st;
}

/* `a` becomes a vector over `data`, unless it is. */
static tn_status view(const tni_kv_updates *u, void *data, uint64_t bytes, int32_t dtype, tni_array **a)
{
    const int64_t count = (int64_t)(bytes / tn_dtype_bytes(dtype));

    if (*a && tni_array_data(*a) == data && (*a)->dtype == dtype && (*a)->shape[0] == count)
        return TN_OK;
    tni_array_release(*a);
    *a = NULL;
    return tni_array_wrap(u->ctx->space, u->cpu, data, bytes, dtype, 1, &count, NULL, NULL, NULL, a);
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

static uint64_t shrunk(uint64_t bytes, uint32_t log2)
{
    return (bytes + ((uint64_t)1 << log2) - 1) >> log2;
}

static uint64_t payload_bytes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    const tni_kv_updates *u = arg;

    if (!tni_dtype_name(dtype) || tni_dtype_packed(dtype))
        return 0;
    switch (what) {
    case TNI_KV_2BIT:
    case TNI_KV_1BIT:
        return dtype == TN_F32 && u->codec.bits == (what == TNI_KV_2BIT ? 2u : 1u)
                   ? shrunk(bytes, what == TNI_KV_2BIT ? 4 : 5)
                   : 0;
    case TNI_KV_ABSTAIN:
        return shrunk(bytes, TNI_KV_ABSTAIN_LOG2);
    default:
        return what <= TNI_KV_ROWS || what >= TNI_KV_STATE ? bytes : 0;
    }
}

/* The payload may end within a word of codes. */
static void coded_add(const tni_kv_codec *c, bool first, float *sum, const uint8_t *payload, uint64_t bytes)
{
    const uint64_t each = 32 / c->bits, count = bytes / sizeof *sum, whole = count / each * each;
    uint8_t word[4] = {0};

    tni_kv_codec_decode(c, payload, whole, sum, !first);
    if (whole < count) {
        memcpy(word, payload + whole * c->bits / 8, shrunk((count - whole) * c->bits, 3));
        tni_kv_codec_decode(c, word, count - whole, sum + whole, !first);
    }
}

static bool of_first(uint8_t what)
{
    return what == TNI_KV_ASSIGN || what >= TNI_KV_STATE;
}

/* A round is one of gradients, or one in which worker 0 says a value and the others abstain. */
static tn_status round_check(const tni_kv_updates *u, const part *p, const tni_kv_header *h, bool first)
{
    const uint8_t before = first ? TNI_KV_ABSTAIN : p->what;
    char key[256];

    key_text(u, p->key, key);
    if (of_first(h->what) && (TNI_KV_RANK(h->from) || before != TNI_KV_ABSTAIN))
        return tni_error(TN_E_STATE, "%s: worker %u assigns a value in a round of gradients", key,
                         TNI_KV_RANK(h->from));
    if (of_first(before) && h->what != TNI_KV_ABSTAIN)
        return tni_error(TN_E_STATE,
                         "%s: worker %u pushes a gradient in the round in which worker 0 assigns a value; "
                         "all workers assign, or none",
                         key, TNI_KV_RANK(h->from));
    return TN_OK;
}

static tn_status add(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                     const void *payload, uint64_t bytes)
{
    tni_kv_updates *u = arg;
    bool begins;
    part *p;
    tn_status st;

    if ((st = part_take(u, h->key, &p)) || (st = round_check(u, p, h, first)))
        return st;
    begins = first || p->what == TNI_KV_ABSTAIN;
    if (first || h->what != TNI_KV_ABSTAIN)
        p->what = h->what;
    if (h->what == TNI_KV_ROWS)
        return tni_kv_rows_add(&p->named, h, begins, base, sum, payload, bytes);
    p->named.all = p->named.all || h->what != TNI_KV_ABSTAIN;
    if (h->what <= TNI_KV_1BIT && h->what != TNI_KV_PLAIN) {
        if (!begins)
            tni_kv_bytes_copy(sum, base, bytes);
        coded_add(&u->codec, begins, sum, payload, bytes);
    } else if (h->what == TNI_KV_ABSTAIN) {
        if (!begins)
            tni_kv_bytes_copy(sum, base, bytes);
    } else if (begins) {
        tni_kv_bytes_copy(sum, payload, bytes);
    } else {
        tni_kv_bytes_add(h->dtype, base, sum, payload, bytes);
    }
    return TN_OK;
}

static tn_status states_ready(tni_kv_updates *u, part *p, uint8_t dtype, void *value, uint64_t bytes)
{
    tn_status st = view(u, value, bytes, dtype, &p->value);

    if (st || !u->optimizer)
        return st;
    st = tni_kv_param_ready(u->optimizer, &p->slot, p->value);
    for (uint32_t k = 0; k < tni_kv_optimizer_states(u->optimizer, dtype) && !st; k++)
        st = tni_array_wait(p->slot.states[k]);
    return st;
}

/* `share`: of the workers that the sum should have. Those that are there count for all. */
static tn_status step(tni_kv_updates *u, part *p, const tni_kv_header *h, void *value, const void *sum,
                      uint64_t bytes, double share)
{
    const double rescale = tni_kv_optimizer_get(u->optimizer, "rescale_grad");
    const name *n = name_of(u, p->key >> 16);
    tn_status st;

    if ((st = view(u, value, bytes, h->dtype, &p->value)) ||
        (st = view(u, (void *)(uintptr_t)sum, bytes, h->dtype, &p->sum)) ||
        (st = tni_kv_param_ready(u->optimizer, &p->slot, p->value)))
        return st;
    if (u->keeps && !p->before && !(p->before = tni_alloc(bytes)))
        return TN_E_NOMEM;
    if (u->keeps)
        tni_kv_bytes_copy(p->before, value, bytes);
    p->slot.lr_mult = n ? n->lr_mult : 1;
    p->slot.wd_mult = n ? n->wd_mult : 1;
    if (share < 1)
        (void)tni_kv_optimizer_set(u->optimizer, "rescale_grad", rescale / share);
    st = p->what == TNI_KV_ROWS && !p->named.all && !tni_kv_optimizer_lines(u->optimizer)
             ? tni_kv_rows_step(&p->named, u->optimizer, &p->slot, p->value, p->sum)
             : tni_kv_optimizer_step(u->optimizer, &p->slot, p->value, p->sum);
    if (share < 1)
        (void)tni_kv_optimizer_set(u->optimizer, "rescale_grad", rescale);
    return st ? st : tni_array_wait(p->value);
}

static uint32_t states_of(const tni_kv_updates *u, int32_t dtype)
{
    return u->optimizer ? tni_kv_optimizer_states(u->optimizer, dtype) : 0;
}

static bool replaces(void *arg, const tni_kv_header *h)
{
    tni_kv_updates *u = arg;
    part *p;

    return !part_take(u, h->key, &p) && p->what != TNI_KV_ABSTAIN && p->what < TNI_KV_STATE &&
           (!u->optimizer || p->what == TNI_KV_ASSIGN || p->what == TNI_KV_GATHER);
}

static tn_status apply(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                       uint32_t count, uint32_t members)
{
    tni_kv_updates *u = arg;
    part *p;
    tn_status st = part_take(u, h->key, &p);

    if (st || p->what == TNI_KV_ABSTAIN || !bytes)
        return st;
    TNI_KV_POINT(update_half);
    if (u->optimizer && tni_kv_is_gradient(p->what))
        return step(u, p, h, value, sum, bytes, u->async ? 1 : (double)count / members);
    tni_free(p->before);
    p->before = NULL;
    if (p->what >= TNI_KV_STATE) {
        if (!(st = states_ready(u, p, h->dtype, value, bytes)))
            tni_kv_states_copy(&p->slot, states_of(u, h->dtype), (uint64_t)(p->what - TNI_KV_STATE) * bytes,
                               (void *)(uintptr_t)sum, bytes, true);
        return st;
    }
    tni_kv_bytes_copy(value, sum, bytes);
    if (p->what != TNI_KV_ASSIGN) {
        p->slot.steps += tni_kv_is_gradient(p->what);
        return TN_OK;
    }
    if ((st = view(u, value, bytes, h->dtype, &p->value)) ||
        (st = tni_kv_param_assigned(u->optimizer, &p->slot, p->value)))
        return st;
    return tni_array_wait_write(p->value);
}

static tn_status stepped(const part *p, const tni_kv_header *h, const void *value, void *out, uint64_t bytes)
{
    const bool now = !((p->slot.steps ^ h->what) & 1) || !bytes;

    if (!now && !p->before)
        return tni_error(TN_E_STATE, "its value before step %" PRIu64 " is not kept (kvstore.on_worker_loss)",
                         p->slot.steps);
    tni_kv_bytes_copy(out, now ? value : p->before, bytes);
    return now ? TN_OK : TN_PENDING;
}

static tn_status read_states(void *arg, const tni_kv_header *h, uint8_t dtype, void *value, void *out,
                             uint64_t bytes)
{
    tni_kv_updates *u = arg;
    part *p;
    tn_status st;

    if (h->what < TNI_KV_STATE && !tni_kv_of_parity(h->what))
        return tni_error(TN_E_FORMAT, "pull of code %u", h->what);
    if (!(st = part_take(u, h->key, &p)) && h->what < TNI_KV_STATE)
        return stepped(p, h, value, out, bytes);
    if (!st && bytes && !(st = states_ready(u, p, dtype, value, bytes)))
        tni_kv_states_copy(&p->slot, states_of(u, dtype), (uint64_t)(h->what - TNI_KV_STATE) * bytes, out,
                           bytes, false);
    return st;
}

/* ---- commands ------------------------------------------------------------------------------------------ */

/* The next word; NULL: there is none. */
static const char *word(tni_kv_reader *r)
{
    const char *text = (const char *)r->at;
    const uint8_t *end = r->left ? memchr(r->at, 0, r->left) : NULL;

    if (!end)
        return NULL;
    r->left -= (uint64_t)(end + 1 - r->at);
    r->at = end + 1;
    return text;
}

static tn_status malformed(const char *what)
{
    return tni_error(TN_E_FORMAT, "command %.40s: a word is missing, or one too many", what);
}

/* Pairs up to the end, NULL-ended; `list`: room for WORDS_MAX + 1. */
static tn_status pairs(tni_kv_reader *r, const char *what, const char **list)
{
    uint32_t count = 0;

    while (r->left && count < WORDS_MAX && (list[count] = word(r)))
        count++;
    list[count] = NULL;
    return r->left || count % 2 ? malformed(what) : TN_OK;
}

static tn_status name_add(tni_kv_updates *u, const char *number, const char *worker, const char *text,
                          const char *type)
{
    name *n = tni_zalloc(sizeof *n);
    tn_status st = TN_E_NOMEM;

    if (!n)
        return st;
    n->lr_mult = n->wd_mult = 1;
    if ((n->name = tni_strdup(text)) && (n->type = tni_strdup(type)) && (n->worker = tni_strdup(worker)))
        st = tni_map_set(u->names, number, n);
    if (st)
        name_destroy(n);
    return st;
}

static tn_status names_take(tni_kv_updates *u, tni_kv_reader *r)
{
    const char *worker = word(r), *number, *text, *type;
    void *found = NULL;
    tn_status st = worker ? TN_OK : malformed("keys");

    while (!st && r->left) {
        const name *n;
        uint64_t value;

        if (!(number = word(r)) || !(text = word(r)) || !(type = word(r)) || !tni_parse_u64(number, &value))
            return malformed("keys");
        if (!tni_map_get(u->names, number, &found)) {
            st = name_add(u, number, worker, text, type);
            continue;
        }
        n = found;
        if (strcmp(n->name, text) != 0)
            st = tni_error(TN_E_KEY,
                           "worker %s begins with key \"%.100s\" where worker %s has key \"%.100s\": all "
                           "workers give the same keys their first values, call by call",
                           worker, text, n->worker, n->name);
        else if (strcmp(n->type, type) != 0)
            st = tni_error(TN_E_SHAPE, "key \"%.100s\" is %.100s on worker %s, and %.100s on worker %s", text,
                           type, worker, n->type, n->worker);
    }
    return st;
}

static void slots_drop(tni_kv_updates *u)
{
    size_t cursor = 0;
    void *item;

    while (tni_map_next(u->parts, &cursor, NULL, &item))
        tni_kv_param_fini(&((part *)item)->slot);
    for (cursor = 0; tni_map_next(u->names, &cursor, NULL, &item);) {
        name *n = item;

        n->lr_mult = n->wd_mult = 1;
        n->steps = 0;
    }
}

static tn_status optimizer_take(tni_kv_updates *u, tni_kv_reader *r)
{
    const tni_kv_reader all = *r;
    const char *which = word(r), *list[WORDS_MAX + 1];
    tni_kv_optimizer *made = NULL;
    tn_status st = which ? pairs(r, "optimizer", list) : malformed("optimizer");

    if (st || (*which && (st = tni_kv_optimizer_create(u->ctx, which, list, &made))))
        return st;
    u->optimizer_words.length = 0;
    if ((st = tni_str_add_bytes(&u->optimizer_words, all.at, all.left))) {
        tni_kv_optimizer_destroy(made);
        return st;
    }
    tni_kv_optimizer_destroy(u->optimizer);
    u->optimizer = made;
    slots_drop(u);
    return TN_OK;
}

/* Of a worker 0 in another's place. A server that has none began empty since. */
static tn_status optimizer_again(tni_kv_updates *u, tni_kv_reader *r)
{
    return u->optimizer ? TN_OK : optimizer_take(u, r);
}

static tn_status codec_take(tni_kv_updates *u, tni_kv_reader *r)
{
    const tni_kv_reader all = *r;
    const char *list[WORDS_MAX + 1];
    tn_status st = pairs(r, "compress", list);

    if (st || (st = tni_kv_codec_parse(list, &u->codec)))
        return st;
    u->codec_words.length = 0;
    return tni_str_add_bytes(&u->codec_words, all.at, all.left);
}

static tn_status key_set(tni_kv_updates *u, const char *number, const char *param, double value)
{
    size_t cursor = 0;
    void *found = NULL;
    uint64_t key;
    name *n;

    if (!tni_parse_u64(number, &key) || !tni_map_get(u->names, number, &found))
        return tni_error(TN_E_KEY, "set: no key %.40s", number);
    n = found;
    if (strcmp(param, "steps") != 0)
        return tni_kv_factor_set(param, value, &n->lr_mult, &n->wd_mult);
    if (!(value >= 0 && value <= 9007199254740992.0))
        return tni_error(TN_E_ATTR, "set: %g steps", value);
    n->steps = (uint64_t)value;
    while (tni_map_next(u->parts, &cursor, NULL, &found))
        if (((part *)found)->key >> 16 == key)
            ((part *)found)->slot.steps = n->steps;
    return TN_OK;
}

static tn_status numbers_set(tni_kv_updates *u, tni_kv_reader *r)
{
    tn_status st = TN_OK;

    while (!st && r->left) {
        const char *param = word(r), *text = word(r), *number = word(r);
        double value;

        if (!param || !text || !number || !tni_parse_f64(text, &value))
            return malformed("set");
        if (*number)
            st = key_set(u, number, param, value);
        else
            st = u->optimizer ? tni_kv_optimizer_set(u->optimizer, param, value)
                              : tni_error(TN_E_STATE, "set %.40s: no optimizer", param);
    }
    return st;
}

static tn_status program_call(tni_kv_updates *u, tni_kv_reader *r)
{
    const char *head = word(r), *body = word(r);
    int64_t number;

    if (!head || !body || r->left || !tni_parse_i64(head, &number) || number < 0 || number > INT32_MAX)
        return malformed("program");
    if (u->fn)
        u->fn(u->arg, (int32_t)number, body);
    return TN_OK;
}

static tn_status agreed_tell(tni_kv_updates *u, tni_kv_reader *r)
{
    if (r->left)
        return malformed("agreed");
    if (u->agreed.code)
        tni_error_set(&u->agreed);
    return u->agreed.code;
}

static const struct {
    const char *name;
    tn_status (*take)(tni_kv_updates *u, tni_kv_reader *r);
    bool agrees; /* all workers ask how it ended */
} commands[] = {
    {"keys", names_take, false},      {"optimizer", optimizer_take, true}, {"set", numbers_set, false},
    {"compress", codec_take, true},   {"program", program_call, false},    {"agreed", agreed_tell, false},
    {"given", optimizer_again, true},
};

static tn_status command(void *arg, const char *text, uint64_t bytes)
{
    tni_kv_reader r = {(const uint8_t *)text, bytes, false};
    tni_kv_updates *u = arg;
    const char *which = word(&r);

    for (size_t i = 0; which && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(commands[i].name, which)) {
            const tn_status st = commands[i].take(u, &r);

            if (commands[i].agrees)
                u->agreed.code = st;
            if (commands[i].agrees && st)
                tni_error_get(&u->agreed);
            return st;
        }
    return tni_error(TN_E_FORMAT, "no command \"%.40s\"", which ? which : "");
}

/* ---- snapshots ----------------------------------------------------------------------------------------- */

static void text_write(tni_str *out, const char *text, uint64_t bytes)
{
    tni_kv_write(out, bytes, 8);
    (void)tni_str_add_bytes(out, text, bytes);
}

static void number_write(tni_str *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    tni_kv_write(out, bits, 8);
}

static double number_read(tni_kv_reader *r)
{
    const uint64_t bits = tni_kv_read(r, 8);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static const char *const rates[] = {"lr", "wd", "rescale_grad"};
enum { RATES = sizeof rates / sizeof *rates };

/* Commands, rates, names, and of each part its states. */
static tn_status save(void *arg, tni_str *out)
{
    tni_kv_updates *u = arg;
    size_t cursor = 0;
    const char *text;
    void *item;

    text_write(out, u->optimizer_words.text, u->optimizer_words.length);
    text_write(out, u->codec_words.text, u->codec_words.length);
    for (size_t i = 0; i < RATES; i++)
        number_write(out, u->optimizer ? tni_kv_optimizer_get(u->optimizer, rates[i]) : 0);
    tni_kv_write(out, tni_map_count(u->names), 8);
    while (tni_map_next(u->names, &cursor, &text, &item)) {
        const name *n = item;
        const char *const texts[] = {text, n->worker, n->name, n->type};

        for (size_t i = 0; i < 4; i++)
            text_write(out, texts[i], strlen(texts[i]) + 1);
        number_write(out, n->lr_mult);
        number_write(out, n->wd_mult);
        tni_kv_write(out, n->steps, 8);
    }
    tni_kv_write(out, tni_map_count(u->parts), 8);
    for (cursor = 0; tni_map_next(u->parts, &cursor, NULL, &item);) {
        part *p = item;

        tni_kv_write(out, p->key, 8);
        tni_kv_write(out, p->slot.steps, 8);
        for (uint32_t k = 0; k < TNI_KV_STATES; k++) {
            const tni_array *a = p->slot.states[k];

            tni_kv_write(out, a ? (uint64_t)a->dtype + 1 : 0, 1);
            if (a)
                text_write(out, tni_array_data(a), tni_array_bytes(a));
        }
    }
    return out->status;
}

/* A text that ends in NUL; NULL: it does not. */
static const char *text_read(tni_kv_reader *r)
{
    const uint64_t bytes = tni_kv_read(r, 8);
    const char *text = (const char *)tni_kv_read_bytes(r, bytes);

    return text && bytes && text[bytes - 1] == 0 ? text : NULL;
}

static tn_status early(void)
{
    return tni_error(TN_E_FORMAT, "the optimizer's part of a snapshot ends early");
}

static tn_status words_load(tni_kv_updates *u, tni_kv_reader *r,
                            tn_status (*take)(tni_kv_updates *u, tni_kv_reader *r))
{
    const uint64_t bytes = tni_kv_read(r, 8);
    tni_kv_reader words = {tni_kv_read_bytes(r, bytes), bytes, false};

    if (r->bad)
        return early();
    return bytes ? take(u, &words) : TN_OK;
}

static tn_status name_load(tni_kv_updates *u, tni_kv_reader *r)
{
    const char *texts[4];
    void *found = NULL;
    tn_status st;

    for (size_t i = 0; i < 4; i++)
        if (!(texts[i] = text_read(r)))
            return early();
    if (tni_map_get(u->names, texts[0], NULL))
        return tni_error(TN_E_FORMAT, "a snapshot has key %.40s twice", texts[0]);
    if (!(st = name_add(u, texts[0], texts[1], texts[2], texts[3])) &&
        tni_map_get(u->names, texts[0], &found)) {
        name *n = found;

        n->lr_mult = number_read(r);
        n->wd_mult = number_read(r);
        n->steps = tni_kv_read(r, 8);
    }
    return st;
}

static tn_status state_load(const tni_kv_updates *u, tni_kv_reader *r, tni_array **out)
{
    const int32_t dtype = (int32_t)tni_kv_read(r, 1) - 1;
    const uint64_t bytes = dtype < 0 ? 0 : tni_kv_read(r, 8);
    const uint8_t *data = tni_kv_read_bytes(r, bytes);
    int64_t count;
    tn_status st;

    if (dtype < 0 && !r->bad)
        return TN_OK;
    if (!data || !tni_dtype_name(dtype) || tni_dtype_packed(dtype) || bytes % tn_dtype_bytes(dtype))
        return early();
    count = (int64_t)(bytes / tn_dtype_bytes(dtype));
    st = tni_array_create(u->ctx->space, u->cpu, dtype, 1, &count, "optimizer", out);
    return st ? st : tni_array_first_write(*out, data, bytes);
}

static tn_status part_load(tni_kv_updates *u, tni_kv_reader *r)
{
    const uint64_t key = tni_kv_read(r, 8);
    part *p = NULL;
    tn_status st = r->bad ? early() : part_take(u, key, &p);

    if (st)
        return st;
    p->slot.steps = tni_kv_read(r, 8);
    for (uint32_t k = 0; k < TNI_KV_STATES && !st; k++)
        st = p->slot.states[k] ? early() : state_load(u, r, &p->slot.states[k]);
    return st;
}

static tn_status load(void *arg, const void *text, uint64_t bytes)
{
    tni_kv_updates *u = arg;
    tni_kv_reader r = {text, bytes, false};
    uint64_t count;
    tn_status st;

    all_drop(u);
    if ((st = maps_make(u)) || !bytes)
        return st;
    if ((st = words_load(u, &r, optimizer_take)) || (st = words_load(u, &r, codec_take)))
        return st;
    for (size_t i = 0; i < RATES && !st; i++) {
        const double value = number_read(&r);

        st = u->optimizer ? tni_kv_optimizer_set(u->optimizer, rates[i], value) : TN_OK;
    }
    count = tni_kv_read(&r, 8);
    for (uint64_t i = 0; i < count && !st; i++)
        st = name_load(u, &r);
    count = st ? 0 : tni_kv_read(&r, 8);
    for (uint64_t i = 0; i < count && !st; i++)
        st = part_load(u, &r);
    return !st && (r.bad || r.left) ? early() : st;
}

/* ---- a server's ---------------------------------------------------------------------------------------- */

tn_status tni_kv_updates_create(tni_context *c, bool async, tn_kv_command_fn fn, void *arg,
                                tni_kv_updates **out)
{
    tni_kv_updates *u = tni_zalloc(sizeof *u);
    tn_status st = TN_E_NOMEM;

    if (!u)
        return st;
    u->ctx = c;
    u->async = async;
    u->fn = fn;
    u->arg = arg;
    u->keeps = !async && !strncmp(tni_option_text(c->options, "kvstore.on_worker_loss"), "wait", 4);
    tni_str_init(&u->optimizer_words, TN_TEXT_MAX);
    tni_str_init(&u->codec_words, TN_TEXT_MAX);
    if (!(st = tni_device_get(c->devices, "cpu", 0, &u->cpu)))
        st = maps_make(u);
    if (st)
        tni_kv_updates_destroy(u);
    else
        *out = u;
    return st;
}

void tni_kv_updates_destroy(tni_kv_updates *u)
{
    if (!u)
        return;
    all_drop(u);
    tni_free(u);
}

tni_kv_update tni_kv_updates_table(tni_kv_updates *u)
{
    return (tni_kv_update){.arg = u,
                           .payload_bytes = payload_bytes,
                           .add = add,
                           .apply = apply,
                           .replaces = replaces,
                           .command = command,
                           .save = save,
                           .load = load,
                           .read = read_states};
}
