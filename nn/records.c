/* Records by their number: one reader, which one thread at a time moves. */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>

#include "tenon/nn_data.h"

struct tn_records {
    tnn_object object;
    tn_ctx *ctx;
    tn_record_reader *reader; /* under `lock` */
    tn_record_place *places;
    size_t count;
    bool has_lock;
    pthread_mutex_t lock;
};

static void records_destroy(tnn_object *object)
{
    tn_records *r = (tn_records *)object;

    if (r->has_lock)
        (void)pthread_mutex_destroy(&r->lock);
    tn_record_close(r->reader);
    tn_free(r->places);
    free(r);
}

tn_records *tn_records_open(tn_app *app, const char *path, const char *index)
{
    char *beside = NULL;
    tn_records *r;

    if (!tnn_ok(app))
        return NULL;
    if (!path) {
        (void)tnn_fail(app, TN_E_ARG, "tn_records_open: path is NULL");
        return NULL;
    }
    if (!(r = tnn_alloc(app, 1, sizeof *r)))
        return NULL;
    tnn_object_add(app, &r->object, records_destroy);
    r->ctx = app->ctx;
    if (pthread_mutex_init(&r->lock, NULL))
        (void)tnn_no_memory(app);
    r->has_lock = !app->status;
    if (!app->status && !index)
        index = beside = tnn_beside(app, path, ".idx");
    if (!app->status && !tnn_check(app, tn_record_index_load(index, &r->count, &r->places), "%s", index))
        (void)tnn_check(app, tn_record_open(path, 0, 1, &r->reader), "%s", path);
    free(beside);
    return app->status ? NULL : r;
}

int64_t tn_records_count(const tn_records *r)
{
    return r && r->reader ? (int64_t)r->count : 0;
}

tn_status tn_records_read(tn_records *r, int64_t number, tn_array **out)
{
    const void *data = NULL;
    uint64_t bytes = 0;
    tn_status st;

    if (!r || !r->reader || !out || number < 0 || (uint64_t)number >= r->count)
        return TN_E_ARG;
    (void)pthread_mutex_lock(&r->lock);
    if (!(st = tn_record_seek(r->reader, r->places[number].offset)) &&
        !(st = tn_record_next(r->reader, &data, &bytes)))
        st = data ? tn_array_from(r->ctx, TN_U8, 1, (const int64_t[]){(int64_t)bytes}, data, out)
                  : TN_E_FORMAT;
    (void)pthread_mutex_unlock(&r->lock);
    return st;
}
