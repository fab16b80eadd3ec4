/*
 * How fast a training is, told now and then: MXNet's Speedometer.
 */
#include "internal.h"

int32_t tn_train_speed(void *speed, int32_t kind, tn_train *train)
{
    tn_train_info i = {.struct_size = sizeof i};
    tn_speed *s = speed;
    int64_t samples;
    double seconds;

    if (!s || !s->out || !train)
        return 0;
    if (kind == TN_TRAIN_BEGIN) {
        s->seconds = 0;
        s->samples = 0;
    }
    tn_train_info_get(train, 0, &i);
    if (kind != TN_TRAIN_STEP || i.step % (s->every > 0 ? s->every : 50))
        return 0;
    samples = i.samples - s->samples;
    seconds = i.seconds - s->seconds;
    s->samples = i.samples;
    s->seconds = i.seconds;
    (void)fprintf(s->out, "epoch %lld, batch %lld of %lld: %.1f samples/s\n", (long long)i.epoch,
                  (long long)i.batch, (long long)i.batches, seconds > 0 ? (double)samples / seconds : 0);
    return 0;
}
