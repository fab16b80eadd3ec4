/*
 * How fast a training is, told now and then: MXNet's Speedometer. How far its epoch is: MXNet's ProgressBar.
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

#define BAR_MAX 200

int32_t tn_train_progress(void *progress, int32_t kind, tn_train *train)
{
    const tn_progress *p = progress;
    tn_train_info i = {.struct_size = sizeof i};
    int64_t length, done, percent;

    if (!p || !p->out || !train || kind != TN_TRAIN_STEP)
        return 0;
    tn_train_info_get(train, 0, &i);
    if (i.batches < 1)
        return 0;
    length = p->length < 1 ? 80 : p->length < BAR_MAX ? p->length : BAR_MAX;
    done = i.batch < i.batches ? i.batch : i.batches;
    percent = (100 * done + i.batches - 1) / i.batches; /* rounded up, the bar to the nearest: as MXNet's */
    (void)fputc('[', p->out);
    for (int64_t k = 0; k < length; k++)
        (void)fputc(k < (2 * length * done + i.batches) / (2 * i.batches) ? '=' : '-', p->out);
    (void)fprintf(p->out, "] %lld%%\r%s", (long long)percent, done == i.batches ? "\n" : "");
    return 0;
}
