/*
 * Allocation number 1, 2, 3 … of the core fails while a net is built, trained for a step, saved and loaded:
 * no crash, no leak, an error that says so, and the app works again once it is cleared. Only some numbers are
 * tried in a short run; TENON_FULL=1 tries all.
 */
#include "nn/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "support/runs.h"

static const int64_t input[4] = {2, 1, 8, 8}, labels[1] = {2};

/* What a small program does. */
static void work(tn_app *app, const char *prefix)
{
    tn_net *net = tn_net_new(app, .name = "n"), *back;
    tn_trainer *t = tn_trainer_new(net, .lr = 0.1, .momentum = 0.9);
    tn_array *x = tn_app_array(app, 4, input, NULL), *y = tn_app_array(app, 1, labels, NULL);

    tn_net_conv2d(net, .channels = 2, .kernel = {3}, .activation = "tanh");
    tn_net_batchnorm(net);
    tn_net_dense(tn_net_sequential(net), .units = 3);
    tn_net_init(net, .seed = 1);
    tn_net_hybridize(net, .static_alloc = 1);
    tn_app_record(app);
    tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, x), y));
    tn_trainer_step(t, 2);
    tn_net_export(net, prefix);
    back = tn_net_load(app, prefix);
    if (tn_net_forward(back, x))
        (void)tn_app_check(app, tn_wait_all(tn_app_ctx(app)));
}

static tn_x unit(tn_x x)
{
    tn_x y = tn_batchnorm(tn_conv2d(x, .channels = 2, .kernel = {3}, .pad = {1, 1}));

    tn_scope_begin(x, "skip");
    x = tn_conv2d(x, .channels = 2, .kernel = {1});
    tn_scope_end(x);
    return tn_dense(tn_relu(tn_concat(1, tn_add(x, y), y)), .units = 3);
}

/* The same of a function, on arrays and as programs. */
static void work_function(tn_app *app, const char *prefix)
{
    tn_net *net = tn_net_function(app, unit, .name = "f"), *back;
    tn_trainer *t = tn_trainer_new(net, .lr = 0.1, .momentum = 0.9);
    tn_array *x = tn_app_array(app, 4, input, NULL), *y = tn_app_array(app, 1, labels, NULL);

    tn_net_init(net, .seed = 1);
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app_record(app);
        tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, x), y));
        tn_trainer_step(t, 2);
        tn_net_hybridize(net, .static_alloc = 1);
    }
    tn_net_export(net, prefix);
    back = tn_net_load(app, prefix);
    if (tn_net_forward(back, x))
        (void)tn_app_check(app, tn_wait_all(tn_app_ctx(app)));
}

static void allocations(void (*work_of)(tn_app *, const char *))
{
    char *folder = nn_quick_folder(), prefix[256];
    uint64_t tried = 0, step = test_full() ? 1 : work_of == work ? 11 : 29;

    step *= test_short() ? 3 : 1;
    (void)snprintf(prefix, sizeof prefix, "%s/m", folder);
    for (uint64_t nth = 1;; nth += step) {
        tn_app *app = nn_open("engine.type=naive", NULL);
        bool failed;

        tni_mem_fail_at(nth, false, true);
        work_of(app, prefix);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, false);
        if (!tn_app_ok(app)) {
            assert_true(failed);
            if (tn_app_status(app) != TN_E_NOMEM)
                print_error("allocation %llu: %s\n", (unsigned long long)nth, tn_app_error(app));
            assert_int_equal(tn_app_status(app), TN_E_NOMEM);
            tn_app_clear(app);
        }
        work_of(app, prefix); /* nothing is broken */
        nn_close(app);
        tried++;
        if (!failed)
            break;
    }
    print_message("%llu failing allocations\n", (unsigned long long)tried - 1);
    assert_true(tried > 10);
    nn_folder_remove(folder);
}

static void test_chain(void **state)
{
    (void)state;
    allocations(work);
}

static void test_function(void **state)
{
    (void)state;
    allocations(work_function);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain), cmocka_unit_test(test_function)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
