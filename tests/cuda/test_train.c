/*
 * Trainings on the emulated GPU: the accuracy of the host, and the same bits whatever the order in which
 * streams come to their ends, and from whichever pool memory is. An edge between streams that is left out is
 * seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"

#define TRAIN(model) "\"$T\" train " model " --data digits --progress none --seed 3 --epochs 1 --out $D/run "
#define IN_FOLDER "D=$(mktemp -d); trap 'rm -r $D' EXIT; "

/* Two dense layers: parameters, forward, gradients and updates in little time. */
static const char net[] = "printf '%s' '{\"nodes\":["
                          "{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"
                          "{\"op\":\"null\",\"name\":\"a_weight\",\"inputs\":[]},"
                          "{\"op\":\"null\",\"name\":\"a_bias\",\"inputs\":[]},"
                          "{\"op\":\"FullyConnected\",\"name\":\"a\",\"attrs\":{\"num_hidden\":\"32\"},"
                          "\"inputs\":[[0,0,0],[1,0,0],[2,0,0]]},"
                          "{\"op\":\"Activation\",\"name\":\"r\",\"attrs\":{\"act_type\":\"relu\"},"
                          "\"inputs\":[[3,0,0]]},"
                          "{\"op\":\"null\",\"name\":\"b_weight\",\"inputs\":[]},"
                          "{\"op\":\"null\",\"name\":\"b_bias\",\"inputs\":[]},"
                          "{\"op\":\"FullyConnected\",\"name\":\"b\",\"attrs\":{\"num_hidden\":\"10\"},"
                          "\"inputs\":[[4,0,0],[5,0,0],[6,0,0]]}],"
                          "\"arg_nodes\":[0,1,2,5,6],\"heads\":[[7,0,0]]}' >$D/net-symbol.json; ";

/* The rest of the line behind `name`. */
static void value_of(const said *s, const char *name, char *out, size_t bytes)
{
    const char *at = strstr(s->out, name);

    if (s->code || !at)
        fail_msg("ends with %d, and says no %s:\n%s", s->code, name, s->out);
    at += strlen(name);
    (void)snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

static void as_the_host(void **state)
{
    char host[64], gpu[64];

    (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    print_message("skipped: the accuracy of LeNet: the other builds train it\n");
    skip();
#endif
    value_of(cuda_say("", IN_FOLDER TRAIN("zoo:lenet")), "accuracy ", host, sizeof host);
    value_of(cuda_say("TNEMU_DELAY_US=0", IN_FOLDER TRAIN("zoo:lenet") "--set device.default=cuda:0"),
             "accuracy ", gpu, sizeof gpu);
    assert_string_equal(gpu, host);
    assert_true(strtod(gpu, NULL) > 0.3);
}

/* Of an order of the streams, from a pool; `more`: further settings; `large`: LeNet. */
static const said *trained(uint64_t seed, const char *more, bool large)
{
    static const char *const pools[] = {"segment", "round", "naive"};
    char settings[96], command[2048];

    (void)snprintf(settings, sizeof settings, "TNEMU_SEED=%llu %s", (unsigned long long)seed, more);
    (void)snprintf(command, sizeof command,
                   IN_FOLDER "%s%s--set device.default=gpu:0 --set memory.cuda.pool=%s", net,
                   large ? TRAIN("zoo:lenet") : TRAIN("$D/net-symbol.json"), pools[seed % 3]);
    return cuda_say(settings, command);
}

/* From another pool and in another order each time; in a short test one of them with each commit. TENON_FULL:
 * LeNet; TENON_SEED: other orders. */
static void same_bits(void **state)
{
    const uint64_t runs = test_runs(test_short() ? 3 : 20);
    const uint64_t step = test_short() && runs > 2 ? runs - 1 : 1;
    const char *other = getenv("TENON_SEED");
    const uint64_t from = other ? strtoull(other, NULL, 10) * 1000 : 0;
    char first[80], now[80];

    (void)state;
    value_of(trained(from, "", test_full()), "params_sha256 ", first, sizeof first);
    for (uint64_t seed = 1 + test_rotation(step); seed < runs; seed += step) {
        value_of(trained(from + seed, "", test_full()), "params_sha256 ", now, sizeof now);
        assert_string_equal(now, first);
    }
    (void)printf("count %llu\n", (unsigned long long)runs);
}

/* The code, and the results from the first to the last. */
static void results_of(const said *s, char *out, size_t bytes)
{
    const char *from = strstr(s->out, "accuracy "), *end = from ? strstr(from, "folder ") : NULL;

    (void)snprintf(out, bytes, "%d %.*s", s->code, end ? (int)(end - from) : 0, end ? from : "");
}

/* One wait for an event whose work is not begun is left out, and that work is late: other bits, another loss,
 * or an error. Some edges guard what is not read again before its stream has caught up; how many there are,
 * the schedule decides. */
static void an_edge_is_missed(void **state)
{
    const unsigned edges = 60;
    char whole[512], now[512], fault[48];
    unsigned caught = 0;

    (void)state;
    results_of(trained(0, "", false), whole, sizeof whole);
    assert_non_null(strstr(whole, "params_sha256 "));
    for (unsigned edge = 1; edge <= edges && caught < (test_short() ? 1u : 3u); edge++) {
        (void)snprintf(fault, sizeof fault, "TNEMU_FAULT=edge:%u", edge);
        results_of(trained(0, fault, false), now, sizeof now);
        caught += strcmp(now, whole) != 0;
    }
    print_message("%u edges were missed\n", caught);
    assert_true(caught > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_host),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(an_edge_is_missed),
    };

    cuda_setup();
    return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}
