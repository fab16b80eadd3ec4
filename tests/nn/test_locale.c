/* Numbers in attributes have a point, also where the program's locale has a comma. */
#include "nn/support.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "tenon/nn_data.h"

enum { ROOM = 256 };

static tn_x layers(tn_x x)
{
    x = tn_batchnorm(tn_dense(x, .units = 4), .epsilon = 0.25, .momentum = 0.75);
    x = tn_scale(tn_shift(tn_elu(x, .alpha = 0.5), 0.125), 1.5);
    return tn_dense(tn_dropout(x, .rate = 0.25), .units = 2);
}

/* Outputs behind two steps, parameters, and an image that was changed; how many numbers. */
static size_t numbers(float *out)
{
    static const tn_transform_step steps[] = {{.kind = "random_brightness", .amount = 0.5},
                                              {.kind = "random_lighting", .amount = 0.5},
                                              {.kind = "to_tensor"},
                                              {.kind = "normalize", .mean = {0.5, 0.25}, .std = {0.5, 1.5}},
                                              {.kind = NULL}};
    static const uint8_t bytes[2 * 2 * 3] = {1, 20, 3, 40, 5, 60, 7, 80, 9, 100, 11, 120};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, layers, .name = "n");
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 3}, 1), *y = nn_array(app, 2, (int64_t[]){4, 2}, 2);
    tn_array *image = NULL, *changed = NULL;
    tn_trainer *t;
    size_t count = 0;

    tn_net_init(net, .seed = 3);
    t = tn_trainer_new(net, .optimizer = "nag", .lr = 0.25, .momentum = 0.5, .clip = 0.5, .wd = 0.125);
    assert_int_equal(tn_random_seed(tn_app_ctx(app), 5, NULL), TN_OK);
    for (int step = 0; step < 2; step++) {
        tn_app_record(app);
        tn_app_backward(app, tn_loss_l2(app, tn_net_forward(net, x), y));
        tn_trainer_step(t, 4);
    }
    count += nn_read(app, tn_net_forward(net, x), out, ROOM);
    count += nn_read_params(app, net, out + count, ROOM - count);
    assert_int_equal(tn_array_from(tn_app_ctx(app), TN_U8, 3, (int64_t[]){2, 2, 3}, bytes, &image), TN_OK);
    if (tn_transform_apply(tn_transform_new(app, steps), 1, 2, image, &changed))
        fail_msg("%s", tn_error_text());
    count += nn_read(app, changed, out + count, ROOM - count);
    tn_array_release(image);
    tn_array_release(changed);
    nn_close(app);
    return count;
}

static void with_comma(void **state)
{
    static const char *const names[] = {"", "de_DE.UTF-8", "fr_FR.UTF-8"};
    static float point[ROOM], comma[ROOM];
    const size_t count = numbers(point);
    size_t i = 0;

    (void)state;
    while (i < 3 && (!setlocale(LC_NUMERIC, names[i]) || *localeconv()->decimal_point == '.'))
        i++;
    if (i == 3) {
        (void)setlocale(LC_NUMERIC, "C");
        print_message("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    assert_int_equal(numbers(comma), count);
    (void)setlocale(LC_NUMERIC, "C");
    assert_memory_equal(point, comma, count * sizeof *point);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_comma)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
