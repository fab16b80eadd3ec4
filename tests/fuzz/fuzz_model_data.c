/*
 * NAME-data.json, what is kept of the data with a model: read through a file in memory. What is read lies
 * within its limits, and comes back the same when it is written.
 */
#include <math.h>
#include <string.h>

#include "about.h"
#include "fuzz/input.h"
#include "internal.h"

static void texts_check(const tnn_texts *t, size_t most)
{
    must(t->count <= most);
    for (size_t i = 0; i < t->count; i++)
        must(strlen(t->at[i]) <= 255);
}

static void input_check(const tnn_input *in)
{
    int64_t count = 1;

    must(tnn_name_ok(in->name) && in->shape.ndim >= 0 && in->shape.ndim < TNN_NDIM_MAX);
    for (int32_t i = 0; i < in->shape.ndim; i++) {
        must(in->shape.dims[i] > 0 && count <= INT32_MAX / in->shape.dims[i]);
        count *= in->shape.dims[i];
    }
    must((!in->count || in->count == count) && in->divisor >= 0 && in->divisor <= 1e9);
    for (int64_t i = 0; i < in->count; i++)
        must(isfinite(in->mean[i]) && isfinite(in->deviation[i]) && in->deviation[i] > 0);
}

static void about_check(const tnn_about *a)
{
    must(a->references == 1 && (a->task == TN_TASK_CLASSES || a->task == TN_TASK_NUMBERS));
    must(a->classes >= 0 && (!a->names.count || (int64_t)a->names.count == a->classes));
    must(a->label_column >= -1 && a->deviation > 0 && isfinite(a->deviation) && isfinite(a->mean));
    must(a->share >= 0 && a->share < 1 && a->input_count > 0 && a->input_count <= TNN_VALUES_MAX);
    texts_check(&a->names, TNN_CLASSES_MAX);
    texts_check(&a->columns, 131072);
    for (size_t i = 0; i < a->input_count; i++) {
        input_check(&a->inputs[i]);
        for (size_t k = 0; k < i; k++)
            must(strcmp(a->inputs[i].name, a->inputs[k].name) != 0);
    }
}

static void texts_same(const tnn_texts *a, const tnn_texts *b)
{
    must(a->count == b->count);
    for (size_t i = 0; i < a->count; i++)
        must(!strcmp(a->at[i], b->at[i]));
}

static void inputs_same(const tnn_input *a, const tnn_input *b)
{
    const size_t bytes = (size_t)a->count * sizeof *a->mean;

    must(!strcmp(a->name, b->name) && a->shape.ndim == b->shape.ndim && a->count == b->count);
    for (int32_t i = 0; i < a->shape.ndim; i++)
        must(a->shape.dims[i] == b->shape.dims[i]);
    must(!memcmp(&a->divisor, &b->divisor, sizeof a->divisor) &&
         (!bytes || (!memcmp(a->mean, b->mean, bytes) && !memcmp(a->deviation, b->deviation, bytes))));
}

static void about_same(const tnn_about *a, const tnn_about *b)
{
    must(a->task == b->task && a->classes == b->classes && a->label_column == b->label_column);
    must(!a->label == !b->label && (!a->label || !strcmp(a->label, b->label)));
    must(!memcmp(&a->mean, &b->mean, sizeof a->mean) && a->seed == b->seed);
    must(!memcmp(&a->deviation, &b->deviation, sizeof a->deviation));
    must(!memcmp(&a->share, &b->share, sizeof a->share) && a->input_count == b->input_count);
    texts_same(&a->names, &b->names);
    texts_same(&a->columns, &b->columns);
    for (size_t i = 0; i < a->input_count; i++)
        inputs_same(&a->inputs[i], &b->inputs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_app app; /* for its first error alone: the reader asks the core for nothing */
    static char again[4096];
    tnn_about *a, *b;
    char path[64];
    const int fd = input_file(data, size, path);

    memset(&app, 0, sizeof app);
    if (!*again)
        (void)snprintf(again, sizeof again, "%.4000s/fuzz-model-data-%ld.json",
                       getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (long)getpid());
    a = tnn_about_read(&app, path);
    must(!a == (app.status != TN_OK));
    must(a || (app.status == TN_E_FORMAT && strstr(app.error, path)));
    if (a) {
        about_check(a);
        must(!tnn_about_write(&app, a, again));
        must((b = tnn_about_read(&app, again)) != NULL);
        must(!unlink(again));
        about_same(a, b);
        tnn_about_drop(b);
    }
    tnn_about_drop(a);
    close(fd);
    return 0;
}
