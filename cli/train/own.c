/* Samples for a model that knows what its data was like: read, scaled and shaped as that. */
#include <stdlib.h>
#include <string.h>

#include "train/predict.h"

#define BATCH 256

/* Shape and room for all samples. */
static bool room_make(cli_samples *s, tn_app *app, const tn_net *net, const tn_data *data, size_t i)
{
    tn_field_info field = {.struct_size = TN_SIZE(tn_field_info)};

    if (!tn_net_field(net, data, i, &field) || field.ndim >= CLI_DIMS_MAX)
        return tn_app_ok(app) && !tn_app_fail(app, TN_E_SHAPE, "the samples have no shape that is known");
    s->ndim = field.ndim + 1;
    s->count = s->shape[0] = tn_data_count(data);
    s->each = 1;
    for (int32_t d = 0; d < field.ndim; d++)
        s->each *= s->shape[d + 1] = field.shape[d];
    s->values = calloc((size_t)s->count, (size_t)s->each * sizeof *s->values);
    return s->values || !tn_app_fail(app, TN_E_NOMEM, "out of memory");
}

static bool values_read(cli_samples *first, tn_app *app, const tn_net *net, tn_data *data)
{
    int64_t done = 0;
    tn_batch b;

    for (; tn_data_next(data, &b); done += b.n) {
        size_t i = 0;

        for (cli_samples *s = first; s; s = s->next, i++) {
            tn_array *x = first->next ? tn_data_field(data, tn_net_input_at(net, i)) : b.x;

            if (!tn_app_read(app, x, (size_t)(b.n * s->each), s->values + done * s->each))
                return false;
        }
    }
    return tn_app_ok(app) && done == first->count;
}

bool cli_samples_own(cli_samples *s, tn_app *app, const tn_net *net, const char *about, const char *name)
{
    const bool from_stdin = !strcmp(name, "-");
    size_t bytes = 0;
    char *text = from_stdin ? cli_stdin_read(app, &bytes) : NULL;
    cli_samples *last = s;
    tn_data *data = NULL;

    s->name = from_stdin ? "standard input" : name;
    if (tn_app_ok(app))
        data = tn_data_open(app, s->name, .batch = BATCH, .about = about, .whole = 1, .csv = text,
                            .csv_bytes = bytes);
    free(text);
    if (!data || !room_make(s, app, net, data, 0))
        return false;
    for (size_t i = 1; i < tn_net_input_count(net); i++, last = last->next)
        if (!cli_samples_next(last, app) || !room_make(last->next, app, net, data, i))
            return false;
    return values_read(s, app, net, data);
}
