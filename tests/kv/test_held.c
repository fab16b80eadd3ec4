/* A value that the transport holds stays as it was sent, whatever the server does meanwhile: a sum that
 * becomes the value, an optimizer that moves it in its place, the end of the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/protocol.h"

#define BYTES 4096u
#define ROUNDS 5u
#define WORKER TNI_KV_NODE(TNI_KV_WORKER, 0)

typedef struct held { /* a value that was sent */
    tni_kv_hold *hold;
    const uint8_t *payload;
} held;

typedef struct talk {
    tni_kv_server *server;
    bool keep; /* what is sent is held */
    held values[ROUNDS + 1];
    uint32_t count;
    uint8_t first; /* byte of the last value */
} talk;

static void host_send(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                      uint64_t bytes, uint32_t priority)
{
    talk *t = arg;
    tni_kv_header h;

    (void)to, (void)priority;
    assert_int_equal(tni_kv_decode(header, payload, bytes, &h), TN_OK);
    if (h.type != TNI_KV_VALUE)
        return;
    assert_int_equal(bytes, BYTES);
    t->first = *(const uint8_t *)payload;
    if (!t->keep)
        return;
    assert_in_range(t->count, 0, ROUNDS);
    t->values[t->count] = (held){tni_kv_server_sending(t->server), payload};
    assert_non_null(t->values[t->count].hold);
    t->values[t->count++].hold->count++;
}

static uint64_t update_bytes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg, (void)dtype, (void)what;
    return bytes;
}

static tn_status update_add(void *arg, const tni_kv_header *h, bool first, void *sum, const void *payload,
                            uint64_t bytes)
{
    (void)arg, (void)h;
    assert_true(first);
    memcpy(sum, payload, bytes);
    return TN_OK;
}

static tn_status update_apply(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                              uint32_t count, uint32_t members)
{
    (void)arg, (void)h, (void)count, (void)members;
    for (uint64_t i = 0; value != sum && i < bytes; i++)
        ((uint8_t *)value)[i] = (uint8_t)(((uint8_t *)value)[i] + ((const uint8_t *)sum)[i]);
    return TN_OK;
}

static bool update_replaces(void *arg, const tni_kv_header *h)
{
    (void)arg, (void)h;
    return true;
}

static void say(talk *t, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.job = 5;
    h.bytes = bytes;
    h.view = 1;
    h.to = h.type == TNI_KV_WELCOME ? TNI_KV_UNKNOWN : TNI_KV_NODE(TNI_KV_SERVER, 0);
    h.from = h.type == TNI_KV_WELCOME ? TNI_KV_SCHEDULER_NODE : WORKER;
    h.incarnation = h.type == TNI_KV_WELCOME ? 1 : 2;
    tni_kv_encode(&h, payload, text);
    (void)tni_kv_server_receive(t->server, text, payload, bytes, 1000);
}

static void welcome(talk *t)
{
    tni_kv_view v;
    tni_str text;

    assert_int_equal(tni_kv_view_init(&v, 1, 1), TN_OK);
    v.number = v.scheduler = 1;
    v.end_round = UINT32_MAX;
    v.flags = TNI_KV_STARTED;
    for (uint32_t i = 0; i < 2; i++)
        v.members[i] = (tni_kv_member){.state = TNI_KV_ALIVE, .incarnation = 2 + i};
    tni_str_init(&text, 4096);
    tni_kv_write(&text, TNI_KV_NODE(TNI_KV_SERVER, 0), 2);
    tni_kv_write(&text, 3, 4);
    tni_kv_view_write(&v, &text);
    tni_kv_view_fini(&v);
    say(t, (tni_kv_header){.type = TNI_KV_WELCOME, .what = 1, .sequence = 77}, text.text, text.length);
    tni_str_fini(&text);
    assert_int_equal(tni_kv_server_id(t->server), TNI_KV_NODE(TNI_KV_SERVER, 0));
}

/* A server with one part, of zeros. */
static void begin(talk *t, bool replaces)
{
    static const tni_kv_settings settings = {.job = 5,
                                             .workers = 1,
                                             .servers = 1,
                                             .landing_bytes = 1u << 16,
                                             .server_bytes = 1u << 20,
                                             .timeout_ns = 1u << 30,
                                             .control_timeout_ns = 1u << 30,
                                             .beat_ns = 1u << 30,
                                             .part_bytes = BYTES,
                                             .credit_bytes = BYTES};
    static const uint8_t zeros[BYTES];
    const tni_kv_host host = {.arg = t, .send = host_send};
    const tni_kv_start start = {.birth = 77};
    const tni_kv_update update = {.payload_bytes = update_bytes,
                                  .add = update_add,
                                  .apply = update_apply,
                                  .replaces = replaces ? update_replaces : NULL};

    memset(t, 0, sizeof *t);
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, NULL, &t->server), TN_OK);
    welcome(t);
    say(t, (tni_kv_header){.type = TNI_KV_INIT, .sequence = 1}, zeros, BYTES);
}

static void round_push(talk *t, uint32_t round, uint8_t fill)
{
    uint8_t gradient[BYTES];

    memset(gradient, fill, sizeof gradient);
    say(t,
        (tni_kv_header){.type = TNI_KV_PUSH, .flags = TNI_KV_WANT, .round = round, .sequence = 1 + round},
        gradient, sizeof gradient);
}

static void all_bytes(const uint8_t *at, uint8_t wanted)
{
    for (uint32_t i = 0; i < BYTES; i++)
        assert_int_equal(at[i], wanted);
}

/* Round r pushes bytes r: the sum is r; moved in its place, the value is 1 + … + r. */
static uint8_t value_of(uint32_t round, bool replaces)
{
    return (uint8_t)(replaces ? round : round * (round + 1) / 2);
}

static void held_through(bool replaces)
{
    talk t;

    begin(&t, replaces);
    t.keep = true;
    for (uint32_t r = 1; r <= ROUNDS; r++)
        round_push(&t, r, (uint8_t)r);
    assert_int_equal(t.count, ROUNDS);
    for (uint32_t r = 1; r <= ROUNDS; r++)
        all_bytes(t.values[r - 1].payload, value_of(r, replaces));
    say(&t, (tni_kv_header){.type = TNI_KV_PULL, .round = ROUNDS, .sequence = 90}, NULL, 0);
    assert_int_equal(t.count, ROUNDS + 1);
    assert_ptr_equal(t.values[ROUNDS].payload, t.values[ROUNDS - 1].payload); /* it has not changed */
    assert_int_equal(t.values[ROUNDS].hold->count, 2);
    tni_kv_server_destroy(t.server);
    for (uint32_t i = 0; i <= ROUNDS; i++) {
        tni_kv_hold *hold = t.values[i].hold;

        all_bytes(t.values[i].payload, value_of(i < ROUNDS ? i + 1 : ROUNDS, replaces));
        assert_true(hold->ended);
        if (--hold->count == 0)
            hold->free(hold);
    }
}

static void of_sums(void **unused)
{
    (void)unused;
    held_through(true);
}

static void moved_in_place(void **unused)
{
    (void)unused;
    held_through(false);
}

/* What nobody holds is used again: two blocks are all there are. */
static void nobody_holds(void **unused)
{
    const void *seen[2] = {NULL};
    uint32_t version;
    talk t;

    (void)unused;
    begin(&t, true);
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        const void *value;

        round_push(&t, r, (uint8_t)r);
        assert_int_equal(t.first, r);
        value = tni_kv_server_value(t.server, 0, &version);
        assert_int_equal(version, r);
        if (r > 2)
            assert_ptr_equal(value, seen[r % 2]);
        seen[r % 2] = value;
    }
    assert_null(tni_kv_server_sending(t.server));
    tni_kv_server_destroy(t.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_sums), cmocka_unit_test(moved_in_place),
                                       cmocka_unit_test(nobody_holds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
