/*
 * One call that updates many weights in place: the bits of single calls, more inputs than a word has bits, no
 * memory of its own once it is warm; in nets, too.
 */
#include "net.h"

#include <string.h>

enum { WEIGHTS = 100, EACH = 3, STEPS = 6, ELEMENTS_MAX = 2 * WEIGHTS };

typedef struct sweep {
    tni_context *c;
    tni_site *site;
    tni_array *in[EACH * WEIGHTS], *out[WEIGHTS]; /* weight, gradient, momentum; the weights */
} sweep;

static tni_array *vector(tni_context *c, int64_t count, float first)
{
    float values[ELEMENTS_MAX];

    for (int64_t i = 0; i < count; i++)
        values[i] = first + 0.37f * (float)i;
    return test_vector(c, count, values);
}

static tni_site *site_make(tni_context *c)
{
    static char lrs[WEIGHTS * 8], wds[WEIGHTS * 8], count[8];

    lrs[0] = wds[0] = '\0';
    for (int i = 0; i < WEIGHTS; i++) {
        strcat(lrs, i ? ",0" : "(0");
        strcat(wds, i ? ",0" : "(0");
    }
    strcat(lrs, ")");
    strcat(wds, ")");
    snprintf(count, sizeof count, "%d", WEIGHTS);
    tni_site *site = NULL;
    assert_ok(tni_site_create(c, "multi_sgd_mom_update", 4,
                              (const char *[]){"lrs", "wds", "num_weights", "momentum"},
                              (const char *[]){lrs, wds, count, "0.9"}, &site));
    return site;
}

static void sweep_open(sweep *s, const char *const *settings)
{
    s->c = test_context(settings);
    s->site = site_make(s->c);
    for (int i = 0; i < WEIGHTS; i++) {
        s->in[EACH * i] = s->out[i] = vector(s->c, 1 + i, (float)i);
        s->in[EACH * i + 1] = vector(s->c, 1 + i, -0.5f);
        s->in[EACH * i + 2] = vector(s->c, 1 + i, 0.25f);
    }
}

static void sweep_close(sweep *s)
{
    for (int i = 0; i < EACH * WEIGHTS; i++)
        tni_array_release(s->in[i]);
    tni_site_release(s->site);
    test_context_close(s->c);
}

static double rate(int step, int weight)
{
    return 0.01 * (step + 1) + 0.001 * weight;
}

static void sweep_step(sweep *s, int step)
{
    struct {
        int64_t count;
        double item[WEIGHTS];
    } lrs = {WEIGHTS, {0}}, wds = lrs;

    for (int i = 0; i < WEIGHTS; i++) {
        lrs.item[i] = rate(step, i);
        wds.item[i] = 0.1 * rate(i % 3, step);
    }
    assert_ok(tni_site_set(s->site, 0, (tn_value)(uintptr_t)&lrs));
    assert_ok(tni_site_set(s->site, 1, (tn_value)(uintptr_t)&wds));
    assert_ok(tni_invoke(s->site, EACH * WEIGHTS, s->in, WEIGHTS, s->out));
}

static void singles_step(sweep *s, int step)
{
    for (int i = 0; i < WEIGHTS; i++) {
        char lr[40], wd[40];
        tni_array *out = s->in[EACH * i];

        snprintf(lr, sizeof lr, "%.17g", rate(step, i));
        snprintf(wd, sizeof wd, "%.17g", 0.1 * rate(i % 3, step));
        assert_ok(tni_invoke_text(s->c, "sgd_mom_update", EACH, &s->in[EACH * i], 3,
                                  (const char *[]){"lr", "wd", "momentum"}, (const char *[]){lr, wd, "0.9"},
                                  1, &out, NULL));
    }
}

static void same_arrays(const sweep *a, const sweep *b)
{
    for (int i = 0; i < EACH * WEIGHTS; i++) {
        float x[ELEMENTS_MAX], y[ELEMENTS_MAX];
        const uint64_t bytes = tni_array_bytes(a->in[i]);

        assert_ok(tni_array_read(a->in[i], x, bytes));
        assert_ok(tni_array_read(b->in[i], y, bytes));
        assert_memory_equal(x, y, bytes);
    }
}

static void bits_of_single_calls(void **state)
{
    static sweep a, b;

    (void)state;
    sweep_open(&a, NULL);
    sweep_open(&b, NULL);
    for (int step = 0; step < STEPS; step++) {
        sweep_step(&a, step);
        singles_step(&b, step);
    }
    same_arrays(&a, &b);
    sweep_close(&a);
    sweep_close(&b);
}

static void repeated_steps(void **state)
{
    enum { WARM_UP = 20, MORE = 100 };
    tni_mem_stats before, after;
    tni_exec_stats first, last;
    static sweep s;

    (void)state;
    sweep_open(&s, NULL);
    for (int step = 0; step < WARM_UP + MORE; step++) {
        if (step == WARM_UP) {
            tni_exec_stats_get(s.c, &first);
            tni_mem_stats_get(&before);
        }
        sweep_step(&s, step);
        assert_ok(tni_engine_wait_all(s.c->engine));
    }
    tni_mem_stats_get(&after);
    tni_exec_stats_get(s.c, &last);
    assert_int_equal(after.alloc_count, before.alloc_count);
    assert_int_equal(last.misses, first.misses);
    assert_int_equal(last.signatures, first.signatures);
    sweep_close(&s);
}

/* A wrong number of rates or arrays is told when it is called, and the weights stay as they are. */
static void refused(void **state)
{
    const struct {
        int64_t count;
        double item[1];
    } one = {1, {0.1}};
    static float before[WEIGHTS], now[WEIGHTS];
    static sweep s;

    (void)state;
    sweep_open(&s, NULL);
    sweep_step(&s, 0);
    assert_ok(tni_array_read(s.in[EACH * (WEIGHTS - 1)], before, sizeof before));
    assert_ok(tni_site_set(s.site, 0, (tn_value)(uintptr_t)&one));
    assert_int_equal(tni_invoke(s.site, EACH * WEIGHTS, s.in, WEIGHTS, s.out), TN_E_ATTR);
    assert_non_null(strstr(tni_error_message(), "lrs has 1 items for 100 weights"));
    assert_int_equal(tni_invoke(s.site, EACH * WEIGHTS - 1, s.in, WEIGHTS, s.out), TN_E_ATTR);
    assert_ok(tni_array_read(s.in[EACH * (WEIGHTS - 1)], now, sizeof now));
    assert_memory_equal(now, before, sizeof before);
    sweep_close(&s);
}

/* In a net the momenta are auxiliary states: 30 of 90 inputs. */
static void in_a_net(void **state)
{
    enum { COUNT = 30 };
    static char rates[COUNT * 8];
    tni_context *c = test_context(NULL);
    tni_symbol *open = NULL, *s = NULL, *again = NULL;
    tni_array *in[EACH * COUNT], *out[COUNT] = {NULL};
    tni_cached_op *op = NULL;
    char **names = NULL;
    size_t count = 0;
    tni_str json;

    (void)state;
    strcpy(rates, "(0.5");
    for (int i = 1; i < COUNT; i++)
        strcat(rates, ",0.5");
    strcat(rates, ")");
    assert_ok(tni_symbol_atomic(c->ops, "multi_sgd_mom_update", 4,
                                (const char *[]){"lrs", "wds", "num_weights", "momentum"},
                                (const char *[]){rates, rates, "30", "0.5"}, "sgd", &open));
    assert_ok(tni_symbol_compose(open, "sgd", 0, NULL, NULL, &s));
    tni_str_init(&json, TN_TEXT_MAX);
    assert_ok(tni_symbol_to_json(s, &json));
    assert_ok(tni_symbol_from_json(c->ops, "sweep", json.text, json.length, &again));
    assert_ok(tni_symbol_list(again, TNI_LIST_AUX, &count, &names));
    assert_int_equal(count, COUNT);
    assert_string_equal(names[COUNT - 1], "sgd_mom_29");
    assert_ok(tni_cached_op_create(c, again, NULL, &op));
    for (int i = 0; i < COUNT; i++) {
        in[EACH * i] = vector(c, 2, (float)i);
        in[EACH * i + 1] = vector(c, 2, 1);
        in[EACH * i + 2] = vector(c, 2, 2);
    }
    assert_ok(tni_cached_op_call(op, EACH * COUNT, in, COUNT, out));
    for (int i = 0; i < COUNT; i++) {
        const float w[] = {(float)i, (float)i + 0.37f};
        const float mom[] = {0.5f * 2 - 0.5f * (1 + 0.5f * w[0]),
                             0.5f * 2.37f - 0.5f * (1.37f + 0.5f * w[1])};

        test_values(in[EACH * i + 2], mom, 2, 1e-5f);
        test_values(out[i], (float[]){w[0] + mom[0], w[1] + mom[1]}, 2, 1e-5f);
        tni_array_release(out[i]);
    }
    for (int i = 0; i < EACH * COUNT; i++)
        tni_array_release(in[i]);
    tni_free(names);
    tni_str_fini(&json);
    tni_cached_op_release(op);
    tni_symbol_release(again);
    tni_symbol_release(s);
    tni_symbol_release(open);
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_single_calls),
        cmocka_unit_test(repeated_steps),
        cmocka_unit_test(refused),
        cmocka_unit_test(in_a_net),
    };

    return cmocka_run_group_tests_name("exec.sweeps", tests, NULL, NULL);
}
