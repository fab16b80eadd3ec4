/*
 * A training by several workers. Each has its share of the data, and they make as many steps: of those whose
 * epochs differ the shorter begin again (kvstore.uneven = pad) or the longer are cut (drop); or each ends by
 * itself, and the others go on without it (join).
 */
#include <stdlib.h>
#include <string.h>

#include "tenon/kv.h"
#include "train.h"

bool tnn_kv_far(const char *type)
{
    return type && (!strncmp(type, "dist_", 5) || !strcmp(type, "mpi") || !strcmp(type, "nccl"));
}

tn_status tnn_job_open(tn_app *app, tn_train *t)
{
    const char *type = tn_ctx_option(app->ctx, "kvstore.type");
    tn_kv_info info = {.struct_size = TN_SIZE(tn_kv_info)};

    t->workers = 1;
    t->store = t->o.store;
    if (!t->store && !tnn_kv_far(type))
        return TN_OK;
    if (!t->store && tnn_check(app, tn_kv_create(app->ctx, type, &t->store), "kvstore.type"))
        return app->status;
    t->store_owned = !t->o.store;
    if (tnn_check(app, tn_kv_info_get(t->store, &info), "store"))
        return app->status;
    t->rank = info.rank;
    t->workers = info.workers;
    t->steps_alike = tnn_kv_far(info.type) && !strstr(info.type, "async");
    return TN_OK;
}

void tnn_job_close(tn_train *t)
{
    if (t->store_owned)
        tn_kv_destroy(t->store);
}

enum { BATCHES, SAMPLES, BATCH, COUNTS };

/* Batches, samples and batch size of each worker, by a sum in which each adds its own. A worker in another's
 * place finds the sum: no other one adds to it a second time. */
static tn_status counts_exchange(tn_app *app, tn_train *t, double *counts)
{
    const int64_t shape[] = {t->workers, COUNTS};
    const uint64_t bytes = (uint64_t)t->workers * COUNTS * sizeof *counts;
    tn_array *a = NULL;
    tn_kv_item item = {.name = "sizes of the workers' data", .value_count = 1, .values = &a, .outs = &a};
    const double own[COUNTS] = {(double)t->own_batches, (double)tn_data_count(t->data), (double)t->o.batch};
    double *there = counts + COUNTS * t->rank;
    tn_status st;

    if (!(st = tn_array_zeros(app->ctx, TN_F64, 2, shape, NULL, &a)))
        st = tn_kv_init(t->store, 1, &item);
    item.value_count = 0;
    item.out_count = 1;
    if (!st && !(st = tn_kv_pull(t->store, 0, 1, &item)))
        st = tn_array_read(a, counts, bytes);
    if (!st && there[BATCH] < 1) {
        memcpy(there, own, sizeof own);
        item.value_count = 1;
        if (!(st = tn_array_write(a, counts, bytes)) && !(st = tn_kv_pushpull(t->store, 1, &item)))
            st = tn_array_read(a, counts, bytes);
    }
    tn_array_release(a);
    if (!st && memcmp(there, own, sizeof own) != 0)
        return tnn_fail(app, TN_E_STATE,
                        "worker %lld has %.0f samples in batches of %.0f; the one whose place it has had "
                        "%.0f in batches of %.0f",
                        (long long)t->rank, own[SAMPLES], own[BATCH], there[SAMPLES], there[BATCH]);
    return tnn_check(app, st, "batches of the workers");
}

static void uneven(tn_app *app, tn_train *t, int64_t least, int64_t most)
{
    const char *policy = tn_ctx_option(app->ctx, "kvstore.uneven");
    const bool drops = policy && !strcmp(policy, "drop");
    char text[96];

    t->joins = policy && !strcmp(policy, "join");
    t->batches = t->joins ? t->own_batches : drops ? least : most;
    if (t->joins)
        (void)snprintf(text, sizeof text, "each ends by itself");
    else
        (void)snprintf(text, sizeof text, "each makes %lld, this one %s %lld", (long long)t->batches,
                       drops ? "leaves out" : "repeats", (long long)llabs(t->batches - t->own_batches));
    tnn_warn(app, "kvstore.uneven = %s: the workers have %lld to %lld batches in an epoch: %s",
             policy ? policy : "pad", (long long)least, (long long)most, text);
}

static tn_status lost(tn_app *app, const tn_train *t, const char *what)
{
    return tnn_fail(app, TN_E_STATE,
                    TNN_IN_PLACE ", which is lost behind step %lld, and with it %s: go on from a checkpoint, "
                                 "with all workers",
                    (long long)t->rank, (long long)tn_trainer_steps(t->trainer), what);
}

/* Parameters and the optimizer's states are those of the servers. What workers keep by themselves is lost. */
tn_status tnn_job_rejoin(tn_app *app, tn_train *t)
{
    const int64_t step = tn_trainer_steps(t->trainer);
    bool means = false;
    uint64_t seed;

    for (size_t i = 0; i < t->net->param_count; i++)
        means = means || t->net->params[i]->aux;
    if (t->early != TNN_EARLY_NONE)
        return lost(app, t, "the epochs that early_stop has seen");
    if (means && !t->rank)
        return lost(app, t, "the running means of the model");
    if (means)
        tnn_warn(app, "running means of this worker begin anew: its validation is not that of worker 0");
    tnn_job_seek(t, step / t->batches, step % t->batches);
    t->batch = step % t->batches;
    t->epochs_done = step / t->batches;
    t->resumed_step = step;
    tnn_warn(app, TNN_IN_PLACE ": it goes on behind step %lld", (long long)t->rank, (long long)step);
    return tnn_check(app, tn_random_save(app->ctx, NULL, &seed, &t->position), "%s", "");
}

tn_status tnn_job_rejoined(tn_app *app, tn_train *t)
{
    uint64_t seed, position = t->position;

    t->late = false;
    if (app->status || tnn_check(app, tn_random_save(app->ctx, NULL, &seed, &position), "%s", ""))
        return app->status;
    return position == t->position ? TN_OK : lost(app, t, "how many random numbers it had drawn");
}

tn_status tnn_job_agree(tn_app *app, tn_train *t)
{
    int64_t least = INT64_MAX, most = 0;
    double *counts;

    t->own_batches = t->batches;
    if (!t->steps_alike || t->workers < 2)
        return TN_OK;
    if (!(counts = tnn_alloc(app, COUNTS * (size_t)t->workers, sizeof *counts)))
        return app->status;
    if (!counts_exchange(app, t, counts)) {
        for (int64_t i = 0; i < t->workers; i++) {
            const int64_t batches = (int64_t)counts[COUNTS * i + BATCHES];

            least = batches < least ? batches : least;
            most = batches > most ? batches : most;
            t->all_batch += (int64_t)counts[COUNTS * i + BATCH];
        }
        t->first_batches = (int64_t)counts[BATCHES];
        t->first_count = (int64_t)counts[SAMPLES];
        t->first_batch = (int64_t)counts[BATCH];
        if (least != most)
            uneven(app, t, least, most);
    }
    free(counts);
    return app->status;
}

int tnn_job_next(tn_train *t, tn_batch *b)
{
    int64_t epoch;

    if (t->own_batches == t->batches) {
        if (!tn_data_next(t->data, b))
            return 0;
        t->at = b->index + 1;
        return 1;
    }
    tn_data_tell(t->data, &epoch, NULL);
    if (t->at == t->batches) {
        t->at = 0;
        tn_data_seek(t->data, epoch + 1, 0);
        return 0;
    }
    if (t->at >= t->own_batches)
        tn_data_seek(t->data, epoch, t->at % t->own_batches);
    if (!tn_data_next(t->data, b))
        return 0;
    t->at++;
    return 1;
}

void tnn_job_seek(tn_train *t, int64_t epoch, int64_t index)
{
    t->at = index;
    tn_data_seek(t->data, epoch, index < t->own_batches ? index : t->own_batches);
}

/* All divide by what worker 0 has, as the devices of one process do by what the first one has, times the
 * ratio of all batch sizes to its own. */
int64_t tnn_job_samples(const tn_train *t, const tn_batch *b, int64_t n)
{
    const int64_t devices = t->shares[0] ? (int64_t)t->object.app->device_count : 1;
    int64_t first = t->first_batch, left;

    if (!t->first_batches)
        return (t->shares[0] ? b->n : n) * devices * (t->steps_alike ? t->workers : 1);
    if (!tnn_data_fills(t->data)) {
        left = t->first_count - (t->at - 1) % t->first_batches * t->first_batch;
        first = left < first ? left : first;
    }
    return first * devices * t->all_batch / t->first_batch;
}

tn_status tnn_job_end(tn_train *t)
{
    return t->joins ? tnn_trainer_end(t->trainer) : TN_OK;
}
