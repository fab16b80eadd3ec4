/*
 * How fast a training is, told now and then: MXNet's Speedometer. How far its epoch is: MXNet's ProgressBar.
 */
#include "module.h"

#include <time.h>

double tnn_now(void)
{
    struct timespec t = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

int32_t tn_module_speed(void *speed, tn_module *m, int64_t epoch, int64_t batch, double train, double valid)
{
    const double now = tnn_now();
    tn_speed *s = speed;

    (void)train;
    (void)valid;
    if (!s || !s->out || !tnn_module_app(m) || batch < 0)
        return 0;
    s->samples = batch ? s->samples + m->samples : 0; /* from the end of the first one on */
    s->seconds = batch ? s->seconds : now;
    if (!batch || batch % (s->every > 0 ? s->every : 50))
        return 0;
    (void)fprintf(s->out, "epoch %lld, batch %lld: %.1f samples/s", (long long)epoch, (long long)batch,
                  now > s->seconds ? (double)s->samples / (now - s->seconds) : 0);
    for (size_t i = 0; i < tn_meter_count(m->meter); i++)
        (void)fprintf(s->out, ", %s %.6f", tn_meter_name(tn_meter_at(m->meter, i)),
                      tn_meter_value(tn_meter_at(m->meter, i)));
    (void)fputc('\n', s->out);
    s->samples = 0;
    s->seconds = tnn_now();
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
