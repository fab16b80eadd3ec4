/* Samples for a model that knows what its data was like: read, scaled and shaped as that. */
#include <stdlib.h>
#include <string.h>

#include "train/predict.h"

#define BATCH 256

/* Shape and room for all samples. */
static bool room_make(cli_samples *s, tn_app *app, const tn_data *data)
{
    tn_field_info field = {.struct_size = TN_SIZE(tn_field_info)};

    if (!tn_data_field_at(data, 0, &field) || field.ndim >= CLI_DIMS_MAX)
        return !tn_app_fail(app, TN_E_SHAPE, "the samples have no shape that is known");
    s->ndim = field.ndim + 1;
    s->count = s->shape[0] = tn_data_count(data);
    s->each = 1;
    for (int32_t i = 0; i < field.ndim; i++)
        s->each *= s->shape[i + 1] = field.shape[i];
    s->values = calloc((size_t)s->count, (size_t)s->each * sizeof *s->values);
    return s->values || !tn_app_fail(app, TN_E_NOMEM, "out of memory");
}

static bool values_read(cli_samples *s, tn_app *app, tn_data *data)
{
    int64_t done = 0;
    tn_batch b;

    while (tn_data_next(data, &b) &&
           tn_app_read(app, b.x, (size_t)(b.n * s->each), s->values + done * s->each))
        done += b.n;
    return tn_app_ok(app) && done == s->count;
}

bool cli_samples_own(cli_samples *s, tn_app *app, const char *about, const char *name)
{
    const bool from_stdin = !strcmp(name, "-");
    size_t bytes = 0;
    char *text = from_stdin ? cli_stdin_read(app, &bytes) : NULL;
    tn_data *data = NULL;

    s->name = from_stdin ? "standard input" : name;
    if (tn_app_ok(app))
        data = tn_data_open(app, s->name, .batch = BATCH, .about = about, .whole = 1, .csv = text,
                            .csv_bytes = bytes);
    free(text);
    return data && room_make(s, app, data) && values_read(s, app, data);
}
