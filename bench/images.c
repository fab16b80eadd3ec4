/*
 * Batches of images of a .rec, made as often as asked: images per second by the clock, and processor time for
 * an image. The first epoch is not counted.
 *
 *     images FILE.rec [--epochs N] [NAME TEXT]...      with arguments of MXNet's ImageRecordIter
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tenon/nn.h"
#include "tenon/nn_data.h"
#include "tenon/tenon.h"

#define ARGS_MAX 64

static double seconds(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const char *args[ARGS_MAX + 3] = {"round_batch", "0"};
    tn_app *app = tn_app_open(.name = "images");
    double wall = 0, used = 0, sum = 0;
    long epochs = 3, images = 0;
    size_t count = 2;
    tn_data *d;
    tn_batch b;

    for (int i = 2; i + 1 < argc && count + 2 < ARGS_MAX; i += 2)
        if (!strcmp(argv[i], "--epochs"))
            epochs = strtol(argv[i + 1], NULL, 10);
        else {
            args[count++] = argv[i];
            args[count++] = argv[i + 1];
        }
    d = argc > 1 ? tn_data_from_images(app, argv[1], .args = args, .classes = -1) : NULL;
    for (long epoch = 0; d && epoch <= epochs; epoch++) {
        if (epoch == 1) {
            wall = seconds(CLOCK_MONOTONIC);
            used = seconds(CLOCK_PROCESS_CPUTIME_ID);
        }
        while (tn_data_next(d, &b)) {
            float first[4];

            (void)tn_array_wait(b.x);
            sum += tn_array_count(b.y) <= 4 && !tn_array_read(b.y, first, tn_array_bytes(b.y))
                       ? (double)first[0]
                       : 0;
            images += epoch ? b.n : 0;
        }
    }
    wall = seconds(CLOCK_MONOTONIC) - wall;
    used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
    if (images)
        (void)printf("{\"images\": %ld, \"wall_s\": %.6f, \"cpu_s\": %.6f, \"sum\": %g}\n", images, wall,
                     used, sum);
    return tn_app_close(app);
}
