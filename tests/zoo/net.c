/* A net of the zoo: read, filled, run, compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "zoo/zoo.h"

#define GRAPH_BYTES_MAX (8u << 20) /* the largest graph of the zoo has 325 kB */

/* ---- records ---- */

static tn_status numbers_read(const tn_params *p, const char *name, void *out, uint64_t bytes)
{
    tn_array *a = NULL;
    tn_status st = tn_params_get(p, name, &a);

    if (!st)
        st = tn_array_read(a, out, bytes);
    tn_array_release(a);
    return st;
}

tn_status zoo_record_open(tn_ctx *ctx, const char *path, zoo_record *out)
{
    zoo_record r = {.params = NULL};
    tn_array *output = NULL;
    tn_status st;

    if ((st = tn_params_load(ctx, path, NULL, &r.params)) ||
        (st = numbers_read(r.params, "shape", r.shape, sizeof r.shape)) ||
        (st = numbers_read(r.params, "seed", &r.seed, sizeof r.seed)) ||
        (st = tn_params_get(r.params, "output", &output)))
        goto cleanup;
    r.count = tn_array_count(output);
    r.output = malloc((size_t)r.count * sizeof *r.output + 1);
    st = r.output ? tn_array_read(output, r.output, r.count * sizeof *r.output) : TN_E_NOMEM;

cleanup:
    tn_array_release(output);
    if (st)
        zoo_record_close(&r);
    *out = r;
    return st;
}

void zoo_record_close(zoo_record *r)
{
    tn_params_destroy(r->params);
    free(r->output);
    memset(r, 0, sizeof *r);
}

/* ---- nets ---- */

tn_status zoo_graph_read(tn_ctx *ctx, const char *path, tn_symbol **out)
{
    gzFile file = gzopen(path, "rb");
    char *text = malloc(GRAPH_BYTES_MAX);
    const int bytes = file && text ? gzread(file, text, GRAPH_BYTES_MAX) : -1;
    tn_status st = TN_E_IO;

    if (bytes < 0 || bytes == GRAPH_BYTES_MAX)
        (void)fprintf(stderr, "%s: cannot be read as a gzip'd graph of at most %u bytes\n", path,
                      GRAPH_BYTES_MAX);
    else
        st = tn_symbol_from_json(ctx, text, (uint64_t)bytes, out);
    if (file)
        (void)gzclose(file);
    free(text);
    return st;
}

static tn_status array_make(zoo_net *n, const char *name, int32_t ndim, const int64_t *shape, tn_array **out)
{
    uint64_t count = 1;
    tn_array *single = NULL;
    float *values;
    tn_status st;

    for (int32_t i = 0; i < ndim; i++)
        count *= (uint64_t)shape[i];
    if (!(values = malloc((size_t)count * sizeof *values + 1)))
        return TN_E_NOMEM;
    if (!zoo_numbers(name, ndim, shape, (uint64_t)n->seed, count, values)) {
        (void)fprintf(stderr, "%s: the rule knows no such ending\n", name);
        st = TN_E_KEY;
    } else {
        st = tn_array_from(n->ctx, TN_F32, ndim, shape, values, &single);
    }
    free(values);
    if (!st && n->dtype != TN_F32)
        st = tn_array_cast(n->ctx, single, n->dtype, out);
    else
        *out = single;
    if (*out != single)
        tn_array_release(single);
    return st;
}

static tn_status inputs_make(zoo_net *n, const zoo_record *r)
{
    const tn_known data = {.name = "data", .shape = r->shape, .ndim = 4, .dtype = n->dtype};
    tn_status st;

    if ((st = tn_symbol_list(n->symbol, TN_LIST_INPUTS, &n->count, &n->names)) ||
        (st = tn_symbol_infer(n->symbol, 1, &data, 0, &n->shapes)))
        return st;
    if (!(n->in = calloc(n->count + 1, sizeof *n->in)))
        return TN_E_NOMEM;
    for (size_t i = 0; !st && i < n->count; i++) {
        tn_known k;

        st = tn_inferred_at(n->shapes, TN_LIST_INPUTS, i, &k);
        if (!st && k.dtype != n->dtype) {
            (void)fprintf(stderr, "%s: data type %d, wanted %d\n", k.name, k.dtype, n->dtype);
            st = TN_E_DTYPE;
        }
        if (!st)
            st = array_make(n, k.name, k.ndim, k.shape, &n->in[i]);
    }
    return st;
}

tn_status zoo_net_open(tn_ctx *ctx, const char *graph, const zoo_record *r, int32_t dtype, zoo_net *out)
{
    const tn_cached_options options = {.struct_size = TN_SIZE(tn_cached_options), .static_alloc = 1};
    tn_status st;

    *out = (zoo_net){.ctx = ctx, .dtype = dtype, .seed = r->seed};
    if ((st = zoo_graph_read(ctx, graph, &out->symbol)) || (st = inputs_make(out, r)))
        return st;
    return tn_cached_op_create(ctx, out->symbol, &options, &out->op);
}

void zoo_net_close(zoo_net *n)
{
    for (size_t i = 0; n->in && i < n->count; i++)
        tn_array_release(n->in[i]);
    free(n->in);
    tn_array_release(n->out);
    tn_program_destroy(n->program);
    tn_cached_op_release(n->op);
    tn_free(n->names);
    tn_inferred_destroy(n->shapes);
    tn_symbol_release(n->symbol);
    memset(n, 0, sizeof *n);
}

tn_status zoo_net_infer(zoo_net *n)
{
    tn_status st;

    tn_array_release(n->out);
    n->out = NULL;
    st = tn_cached_op_call(n->op, (uint32_t)n->count, n->in, 1, &n->out);
    return st ? st : tn_array_wait(n->out);
}

static tn_status program_make(zoo_net *n)
{
    tn_params *weights = NULL;
    tn_status st = tn_params_create(&weights);

    for (size_t i = 0; !st && i < n->count; i++)
        if (strcmp(n->names[i], "data") != 0)
            st = tn_params_add(weights, n->names[i], n->in[i]);
    if (!st)
        st = tn_program_create(n->ctx, n->symbol, weights, &n->program);
    tn_params_destroy(weights);
    return st;
}

tn_status zoo_net_serve(zoo_net *n)
{
    tn_status st = n->program ? TN_OK : program_make(n);

    for (size_t i = 0; !st && i < n->count; i++)
        if (!strcmp(n->names[i], "data")) {
            tn_array_release(n->out);
            n->out = NULL;
            st = tn_program_run(n->program, 1, &n->in[i], 1, &n->out);
        }
    return st ? st : tn_array_wait(n->out);
}

/* ---- gradients ---- */

static bool among(const char *name, size_t count, char *const *names)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static tn_status gradients_attach(zoo_net *n)
{
    char **states = NULL;
    size_t count = 0;
    tn_status st = tn_symbol_list(n->symbol, TN_LIST_AUX, &count, &states);

    for (size_t i = 0; !st && i < n->count; i++)
        if (strcmp(n->names[i], "data") != 0 && !among(n->names[i], count, states))
            st = tn_attach_grad(n->ctx, n->in[i], TN_MODE_WRITE, NULL);
    tn_free(states);
    return st;
}

tn_status zoo_net_gradient(zoo_net *n)
{
    tn_array *head = NULL;
    tn_known out;
    tn_status st;

    if ((st = gradients_attach(n)) || (st = tn_inferred_at(n->shapes, TN_LIST_OUTPUTS, 0, &out)) ||
        (st = array_make(n, "head", out.ndim, out.shape, &head)))
        goto cleanup;
    (void)tn_record_set(1);
    (void)tn_train_set(1);
    st = zoo_net_infer(n);
    (void)tn_train_set(0);
    (void)tn_record_set(0);
    if (!st)
        st = tn_backward(n->ctx, 1, &n->out, &head, 0);
    if (!st)
        st = tn_wait_all(n->ctx);

cleanup:
    tn_array_release(head);
    return st;
}

/* ---- comparing ---- */

double *zoo_values(tn_ctx *ctx, tn_array *a, uint64_t *count)
{
    const uint64_t length = tn_array_count(a);
    double *values = malloc((size_t)length * sizeof *values + 1);
    tn_array *wide = NULL;
    tn_status st;

    if (!values)
        return NULL;
    st = tn_array_dtype(a) == TN_F64 ? TN_OK : tn_array_cast(ctx, a, TN_F64, &wide);
    if (!st)
        st = tn_array_read(wide ? wide : a, values, length * sizeof *values);
    tn_array_release(wide);
    if (st) {
        free(values);
        return NULL;
    }
    *count = length;
    return values;
}

tn_status zoo_compare(const zoo_net *n, const zoo_record *r, zoo_error *out)
{
    zoo_error e = {0, 0};
    uint64_t count = 0;
    double *got = zoo_values(n->ctx, n->out, &count);

    if (!got || count != r->count) {
        (void)fprintf(stderr, "%llu values, wanted %llu\n", (unsigned long long)count,
                      (unsigned long long)r->count);
        free(got);
        return TN_E_SHAPE;
    }
    for (uint64_t i = 0; i < count; i++) {
        const double far = fabs(got[i] - (double)r->output[i]);

        e.largest = fmax(e.largest, fabs((double)r->output[i]));
        if (isnan(far) || far > e.distance)
            e.distance = isnan(e.distance) ? e.distance : far;
    }
    free(got);
    *out = e;
    return TN_OK;
}
