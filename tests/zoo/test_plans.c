/*
 * Arenas of three nets of MXNet's zoo at their real size, inference and training, are near the least that any
 * plan needs, and one plan for forward and backward takes no more than two. Workspaces of kernels follow the
 * number of threads, so that is given. `scripts/campaign --only zoo` says it of ten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/runs.h"
#include "zoo/zoo.h"

static void plan_check(const char *net, const char *prefer, bool train, int64_t batch)
{
    char path[4096], kernels[80], graph[4096];
    const char *const settings[] = {"plugins.trust=off", "engine.threads=2", path, kernels, NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    const int64_t shape[4] = {batch, 3, 224, 224};
    zoo_plan plan = {0};
    tn_ctx *ctx = NULL;
    tn_status st;

    (void)snprintf(path, sizeof path, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    (void)snprintf(kernels, sizeof kernels, "kernel.prefer=%s", prefer);
    (void)snprintf(graph, sizeof graph, "%s/tests/oracle/recorded/%s.json.gz", getenv("TENON_TEST_SOURCE"),
                   net);
    assert_int_equal(tn_open(&o, &ctx), TN_OK);
    if ((st = zoo_plan_make(ctx, graph, shape, train, &plan)) != TN_OK)
        fail_msg("%s gave %s: %s", net, tn_status_name(st), tn_error_text());
    print_message("%-16s %-9s batch %d, %s: %.2f MiB, %.4f of the bound, %.2f MiB in two plans\n", net,
                  train ? "training" : "inference", (int)batch, prefer, (double)plan.planned / 1048576,
                  (double)plan.planned / (double)plan.bound, (double)plan.separate / 1048576);
    assert_true(plan.planned >= plan.bound && plan.bound > 0);
    assert_true((double)plan.planned <= ZOO_PLAN_MOST * (double)plan.bound);
    assert_true(plan.planned <= plan.separate);
    assert_int_equal(tn_close(ctx), TN_OK);
}

static void plans_are_tight(void **state)
{
    static const char *const plugins[] = {"cpu", "cpu-openblas", "cpu-onednn"};
    const bool one = test_short() && !test_full();
    const uint64_t first = one ? test_rotation(3) : 0;

    for (uint64_t i = first; i < (one ? first + 1 : 3); i++)
        for (int train = 0; train < 2; train++)
            for (int64_t batch = 1; batch <= 32; batch += 31)
                plan_check(*state, plugins[i], train, batch);
}

#define NET(name)                                                                                            \
    {                                                                                                        \
        name, plans_are_tight, NULL, NULL, name                                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {NET("resnet18_v1"), NET("squeezenet1.1"), NET("mobilenetv2_1.0")};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
