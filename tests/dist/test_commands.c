/* What a server takes of commands, payloads and snapshots that are wrong: nothing, and it says what is
 * wrong. */
#include "dist/job.h"

#include <stdio.h>

#include "kv/dist.h"
#include "kv/update.h"

typedef struct bench {
    tn_ctx *ctx;
    tni_kv_updates *u;
    tni_kv_update t;
} bench;

static void bench_open(bench *b)
{
    const char *settings[] = {"plugins.trust=off", "engine.threads=1", NULL, NULL};
    const char *folder = getenv("TENON_TEST_PLUGINS");
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    char path[4096];

    (void)snprintf(path, sizeof path, "plugins.path=%s", folder ? folder : "");
    settings[2] = folder ? path : NULL;
    assert_int_equal(tn_open(&o, &b->ctx), TN_OK);
    assert_int_equal(tni_kv_updates_create(b->ctx, false, NULL, NULL, &b->u), TN_OK);
    b->t = tni_kv_updates_table(b->u);
}

static void bench_close(bench *b)
{
    tni_kv_updates_destroy(b->u);
    assert_int_equal(tn_close(b->ctx), TN_OK);
}

#define WORDS(text) (text), sizeof(text) /* with the last NUL */

static tn_status command(bench *b, const char *text, uint64_t bytes)
{
    return b->t.command(b->t.arg, text, bytes);
}

static const struct {
    const char *text;
    uint64_t bytes;
    tn_status st;
} wrong[] = {
    {WORDS(""), TN_E_FORMAT},
    {"keys", 4, TN_E_FORMAT}, /* no end */
    {WORDS("dance"), TN_E_FORMAT},
    {WORDS("keys"), TN_E_FORMAT},
    {WORDS("keys\0"
           "0\0"
           "7\0"
           "w"),
     TN_E_FORMAT},
    {WORDS("keys\0"
           "0\0"
           "x\0"
           "w\0"
           "float32 (1)"),
     TN_E_FORMAT},
    {WORDS("keys\0"
           "1\0"
           "3\0"
           "v\0"
           "float32 (2,3)"),
     TN_E_KEY},
    {WORDS("keys\0"
           "1\0"
           "3\0"
           "w\0"
           "float64 (2,3)"),
     TN_E_SHAPE},
    {WORDS("optimizer"), TN_E_FORMAT},
    {WORDS("optimizer\0"
           "sdg"),
     TN_E_KEY},
    {WORDS("optimizer\0"
           "sgd\0"
           "lr"),
     TN_E_FORMAT},
    {WORDS("optimizer\0"
           "sgd\0"
           "lr\0"
           "much"),
     TN_E_ATTR},
    {WORDS("given"), TN_E_FORMAT},
    {WORDS("given\0"
           "sdg"),
     TN_E_KEY},
    {WORDS("set\0"
           "lr\0"
           "0.5\0"),
     TN_E_STATE}, /* no optimizer yet */
    {WORDS("set\0"
           "lr_mult\0"
           "2\0"
           "9"),
     TN_E_KEY},
    {WORDS("set\0"
           "lr_mult\0"
           "-2\0"
           "3"),
     TN_E_ATTR},
    {WORDS("set\0"
           "steps\0"
           "-1\0"
           "3"),
     TN_E_ATTR},
    {WORDS("set\0"
           "lr\0"
           "fast\0"),
     TN_E_FORMAT},
    {WORDS("set\0"
           "lr"),
     TN_E_FORMAT},
    {WORDS("compress\0"
           "type\0"
           "3bit"),
     TN_E_ATTR},
    {WORDS("compress\0"
           "type"),
     TN_E_FORMAT},
    {WORDS("program\0"
           "-1\0"
           "x"),
     TN_E_FORMAT},
    {WORDS("program\0"
           "1\0"
           "x\0"
           "y"),
     TN_E_FORMAT},
};

static void wrong_commands(void **state)
{
    bench b;

    (void)state;
    bench_open(&b);
    assert_int_equal(command(&b, WORDS("keys\0"
                                       "0\0"
                                       "3\0"
                                       "w\0"
                                       "float32 (2,3)")),
                     TN_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_err err;

        assert_int_equal(command(&b, wrong[i].text, wrong[i].bytes), wrong[i].st);
        tni_error_get(&err);
        assert_true(err.code == wrong[i].st && err.message[0]);
    }
    assert_int_equal(command(&b, WORDS("keys\0"
                                       "1\0"
                                       "3\0"
                                       "w\0"
                                       "float32 (2,3)")),
                     TN_OK);
    bench_close(&b);
}

/* What worker 0's command came to hears everybody who asks. */
static void others_hear(void **state)
{
    bench b;

    (void)state;
    bench_open(&b);
    assert_int_equal(command(&b, WORDS("agreed")), TN_OK);
    assert_int_equal(command(&b, WORDS("optimizer\0"
                                       "none such")),
                     TN_E_KEY);
    tni_error(TN_E_IO, "of another call");
    assert_int_equal(command(&b, WORDS("agreed")), TN_E_KEY);
    assert_non_null(strstr(tni_error_message(), "none such"));
    assert_int_equal(command(&b, WORDS("dance")), TN_E_FORMAT);
    assert_int_equal(command(&b, WORDS("agreed")), TN_E_KEY);
    assert_int_equal(command(&b, WORDS("agreed\0"
                                       "on")),
                     TN_E_FORMAT);
    assert_int_equal(command(&b, WORDS("optimizer\0"
                                       "sgd")),
                     TN_OK);
    assert_int_equal(command(&b, WORDS("agreed")), TN_OK);
    assert_int_equal(command(&b, WORDS("compress\0"
                                       "type\0"
                                       "9bit")),
                     TN_E_ATTR);
    assert_int_equal(command(&b, WORDS("agreed")), TN_E_ATTR);
    bench_close(&b);
}

static void refused_everywhere(worker *w)
{
    WORKER_FAILS(w, tni_kv_dist_agree(w->kv->dist, "optimizer", "none such", NULL), TN_E_KEY);
    WORKER_TRUE(w, strstr(tn_error_text(), "none such"));
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", NULL)); /* nobody waits for anybody */
    worker_init(w, "w", TN_F32, 2, small_shape, 1);
}

/* Servers refuse what the workers' own library knows: no worker is left in a barrier, all hear why. */
static void servers_refuse(void **state)
{
    const job_options o = {.workers = 3, .servers = 2};

    (void)state;
    job_run(&o, "dist_sync", refused_everywhere, NULL);
}

static void wrong_payloads(void **state)
{
    bench b;

    (void)state;
    bench_open(&b);
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F32, TNI_KV_PLAIN, 40), 40);
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F32, TNI_KV_STATE + 200, 40), 40);
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F32, TNI_KV_ABSTAIN, 40), 1);
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F32, TNI_KV_2BIT, 40), 0); /* not agreed upon */
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F32, 7, 40), 0);
    assert_int_equal(b.t.payload_bytes(b.t.arg, 99, TNI_KV_PLAIN, 40), 0);
    assert_int_equal(command(&b, WORDS("compress\0"
                                       "type\0"
                                       "2bit")),
                     TN_OK);
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F32, TNI_KV_2BIT, 40), 3);
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F16, TNI_KV_2BIT, 40), 0);
    assert_int_equal(b.t.payload_bytes(b.t.arg, TN_F32, TNI_KV_1BIT, 40), 0);
    bench_close(&b);
}

static tn_status pushed(bench *b, uint16_t rank, uint8_t what, bool first, float *sum, const float *payload)
{
    const tni_kv_header h = {
        .from = TNI_KV_NODE(TNI_KV_WORKER, rank), .key = 3 << 16, .dtype = TN_F32, .what = what};

    return b->t.add(b->t.arg, &h, first, sum, sum, payload, 4 * sizeof *sum);
}

static tn_status applied(bench *b, float *value, const float *sum)
{
    const tni_kv_header h = {.key = 3 << 16, .dtype = TN_F32};

    return b->t.apply(b->t.arg, &h, value, sum, 4 * sizeof *sum, 2, 2);
}

/* A round is of gradients, or of a value that worker 0 says. */
static void mixed_rounds(void **state)
{
    const float g[4] = {1, 2, 3, 4};
    float sum[4], value[4] = {0};
    bench b;

    (void)state;
    bench_open(&b);
    assert_int_equal(pushed(&b, 0, TNI_KV_ASSIGN, true, sum, g), TN_OK);
    assert_int_equal(pushed(&b, 1, TNI_KV_PLAIN, false, sum, g), TN_E_STATE);
    assert_int_equal(pushed(&b, 1, TNI_KV_ABSTAIN, false, sum, g), TN_OK);
    assert_int_equal(applied(&b, value, sum), TN_OK);
    assert_memory_equal(value, g, sizeof g);
    assert_int_equal(pushed(&b, 1, TNI_KV_ASSIGN, true, sum, g), TN_E_STATE); /* not of worker 0 */
    assert_int_equal(pushed(&b, 0, TNI_KV_PLAIN, true, sum, g), TN_OK);
    assert_int_equal(pushed(&b, 0, TNI_KV_STATE, false, sum, g), TN_E_STATE);
    bench_close(&b);
}

/* Cut at any byte, it is none; whole, it gives the next step the same bits. */
static void snapshots(void **state)
{
    const float g[4] = {1, 2, 3, 4};
    float sum[4], value[4] = {8, 8, 8, 8}, again[4];
    tni_str text;
    bench b, c;

    (void)state;
    bench_open(&b);
    bench_open(&c);
    tni_str_init(&text, 1 << 20);
    assert_int_equal(command(&b, WORDS("keys\0"
                                       "0\0"
                                       "3\0"
                                       "w\0"
                                       "float32 (4)")),
                     TN_OK);
    assert_int_equal(command(&b, WORDS("optimizer\0"
                                       "adam\0"
                                       "lr\0"
                                       "0.5")),
                     TN_OK);
    assert_int_equal(command(&b, WORDS("set\0"
                                       "lr\0"
                                       "0.25\0"
                                       "\0"
                                       "lr_mult\0"
                                       "2\0"
                                       "3")),
                     TN_OK);
    assert_int_equal(pushed(&b, 0, TNI_KV_PLAIN, true, sum, g), TN_OK);
    assert_int_equal(applied(&b, value, sum), TN_OK);
    assert_int_equal(b.t.save(b.t.arg, &text), TN_OK);
    for (uint64_t n = 1; n < text.length; n++)
        assert_int_not_equal(c.t.load(c.t.arg, text.text, n), TN_OK);
    assert_int_equal(c.t.load(c.t.arg, text.text, text.length), TN_OK);
    memcpy(again, value, sizeof again);
    assert_int_equal(pushed(&b, 0, TNI_KV_PLAIN, true, sum, g), TN_OK);
    assert_int_equal(applied(&b, value, sum), TN_OK);
    assert_int_equal(pushed(&c, 0, TNI_KV_PLAIN, true, sum, g), TN_OK);
    assert_int_equal(applied(&c, again, sum), TN_OK);
    assert_memory_equal(value, again, sizeof value);
    assert_int_equal(c.t.load(c.t.arg, NULL, 0), TN_OK); /* as at the start */
    assert_int_equal(command(&c, WORDS("set\0"
                                       "lr\0"
                                       "0.5\0")),
                     TN_E_STATE);
    tni_str_fini(&text);
    bench_close(&b);
    bench_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_commands), cmocka_unit_test(wrong_payloads), cmocka_unit_test(others_hear),
        cmocka_unit_test(servers_refuse), cmocka_unit_test(mixed_rounds),   cmocka_unit_test(snapshots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
