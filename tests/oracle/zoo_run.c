/*
 * Compares one net of the zoo with what MXNet recorded, once for each group of settings; tests/oracle/zoo
 * makes tables of its lines. Fields are divided by tabs.
 *
 *   outputs:   GROUP, largest |output - MXNet's| / largest |MXNet's|, milliseconds of the fastest run
 *   plans:     GROUP, inference or training, batch, bytes of the arena, the least that any plan needs, bytes
 * with one plan for forward and one for backward; at the size of the record's input, nothing runs gradients:
 * GROUP, |g - g64| / |g64| over all parameters, the same of the worst parameter, its name, of the output; g64
 * is Tenon's own in float64 with the plain kernels. A first line, group mxnet, says how far MXNet's float32
 * is from it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "zoo/zoo.h"

#define SETTINGS_MAX 32
#define GROUPS_MAX 128 /* each plugin with 1 and 2 threads, each pass left out */

typedef struct group {
    const char *name;
    const char *settings[SETTINGS_MAX + 4];
} group;

/* Sums of squares: how far, and of what. */
typedef struct norm {
    double distance, size;
} norm;

typedef struct reference {
    double **gradient; /* per input of the net; NULL: has none */
    double *output;
    uint64_t *count, output_count;
    size_t inputs;
} reference;

static int complain(const char *what, tn_status st)
{
    (void)fprintf(stderr, "zoo_run: %s: %s: %s\n", what, tn_status_name(st), tn_error_text());
    return 1;
}

static tn_status open_with(const group *g, tn_ctx **out)
{
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = g->settings};

    return tn_open(&o, out);
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- outputs ---- */

static int outputs_run(const char *graph, const char *path, const group *g)
{
    tn_ctx *ctx = NULL;
    zoo_record record = {.params = NULL};
    zoo_net net = {.ctx = NULL};
    zoo_error e = {0, 0};
    double fastest = INFINITY;
    tn_status st;

    if ((st = open_with(g, &ctx)) || (st = zoo_record_open(ctx, path, &record)) ||
        (st = zoo_net_open(ctx, graph, &record, TN_F32, &net)))
        goto cleanup;
    for (int i = 0; !st && i < 3; i++) {
        const double start = now();

        st = zoo_net_serve(&net);
        fastest = fmin(fastest, now() - start);
    }
    if (!st && !(st = zoo_compare(&net, &record, &e)))
        (void)printf("%s\t%.3e\t%.2f\n", g->name, e.distance / e.largest, fastest);

cleanup:
    if (st)
        (void)complain(g->name, st);
    zoo_net_close(&net);
    zoo_record_close(&record);
    (void)tn_close(ctx);
    return st != TN_OK;
}

/* ---- plans ---- */

static int plans_run(const char *graph, const char *path, const group *g)
{
    tn_ctx *ctx = NULL;
    zoo_record record = {.params = NULL};
    tn_status st;

    if (!(st = open_with(g, &ctx)))
        st = zoo_record_open(ctx, path, &record);
    for (int i = 0; i < 4 && !st; i++) {
        const int64_t shape[4] = {i % 2 ? 32 : 1, record.shape[1], record.shape[2], record.shape[3]};
        zoo_plan plan = {0};

        if (!(st = zoo_plan_make(ctx, graph, shape, i >= 2, &plan)))
            (void)printf("%s\t%s\t%d\t%llu\t%llu\t%llu\n", g->name, i < 2 ? "inference" : "training",
                         (int)shape[0], (unsigned long long)plan.planned, (unsigned long long)plan.bound,
                         (unsigned long long)plan.separate);
    }
    if (st)
        (void)complain(g->name, st);
    zoo_record_close(&record);
    (void)tn_close(ctx);
    return st != TN_OK;
}

/* ---- gradients ---- */

static norm norm_of(const double *got, const double *want, uint64_t count)
{
    norm n = {0, 0};

    for (uint64_t i = 0; i < count; i++) {
        n.distance += (got[i] - want[i]) * (got[i] - want[i]);
        n.size += want[i] * want[i];
    }
    return n;
}

static double ratio(norm n)
{
    return sqrt(n.distance / n.size);
}

static void reference_free(reference *r)
{
    for (size_t i = 0; r->gradient && i < r->inputs; i++)
        free(r->gradient[i]);
    free(r->gradient);
    free(r->count);
    free(r->output);
}

static tn_status reference_make(tn_ctx *ctx, const char *graph, const zoo_record *record, reference *out)
{
    zoo_net net;
    tn_status st = zoo_net_open(ctx, graph, record, TN_F64, &net);

    if (!st)
        st = zoo_net_gradient(&net);
    out->inputs = net.count;
    out->gradient = calloc(net.count + 1, sizeof *out->gradient);
    out->count = calloc(net.count + 1, sizeof *out->count);
    if (!st && (!out->gradient || !out->count))
        st = TN_E_NOMEM;
    if (!st && !(out->output = zoo_values(ctx, net.out, &out->output_count)))
        st = TN_E_NOMEM;
    for (size_t i = 0; !st && i < net.count; i++) {
        tn_array *g = tn_array_grad(net.in[i]);

        if (g && !(out->gradient[i] = zoo_values(ctx, g, &out->count[i])))
            st = TN_E_NOMEM;
    }
    zoo_net_close(&net);
    return st;
}

/* One input's gradient in `sum`, and in `worst` with its index if it is the worst so far. A gradient that is
 * rounding alone (the bias before a BatchNorm: 0 in theory) counts in the sum, not among the worst. */
static tn_status gradient_add(tn_ctx *ctx, tn_array *g, const reference *r, size_t i, norm *sum,
                              double *worst, size_t *which)
{
    uint64_t count = 0;
    double *got = zoo_values(ctx, g, &count);
    norm n;

    if (!got || count != r->count[i]) {
        free(got);
        return TN_E_SHAPE;
    }
    n = norm_of(got, r->gradient[i], count);
    free(got);
    sum->distance += n.distance;
    sum->size += n.size;
    if (n.size > 1e-16 * (double)count && !(ratio(n) <= *worst)) {
        *worst = ratio(n);
        *which = i;
    }
    return TN_OK;
}

/* Prints one line about the gradients of a net, `from` the net's arrays or, NULL, the record. */
static tn_status gradients_print(const char *name, const zoo_net *net, const zoo_record *from,
                                 const reference *r)
{
    norm sum = {0, 0}, out = {0, 0};
    double worst = 0, *output = NULL;
    size_t which = 0;
    uint64_t count = 0;
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < net->count; i++) {
        char key[512];
        tn_array *g = NULL;

        (void)snprintf(key, sizeof key, "grad:%s", net->names[i]);
        if (!r->gradient[i])
            continue;
        if (from)
            st = tn_params_get(from->params, key, &g);
        else
            tn_array_retain(g = tn_array_grad(net->in[i]));
        if (!st)
            st = gradient_add(net->ctx, g, r, i, &sum, &worst, &which);
        tn_array_release(g);
    }
    if (!st && !from && !(output = zoo_values(net->ctx, net->out, &count)))
        st = TN_E_NOMEM;
    for (uint64_t i = 0; !st && i < r->output_count; i++) {
        const double got = output ? output[i] : (double)from->output[i];
        const norm n = norm_of(&got, &r->output[i], 1);

        out.distance += n.distance;
        out.size += n.size;
    }
    free(output);
    if (!st)
        (void)printf("%s\t%.3e\t%.3e\t%s\t%.3e\n", name, ratio(sum), worst, net->names[which], ratio(out));
    return st;
}

static tn_status gradient_group(const char *graph, const char *path, const group *g, const reference *r,
                                bool first)
{
    tn_ctx *ctx = NULL;
    zoo_record record = {.params = NULL};
    zoo_net net = {.ctx = NULL};
    tn_status st;

    if (!(st = open_with(g, &ctx)) && !(st = zoo_record_open(ctx, path, &record)) &&
        !(st = zoo_net_open(ctx, graph, &record, TN_F32, &net)) && !(st = zoo_net_gradient(&net))) {
        if (first)
            st = gradients_print("mxnet", &net, &record, r);
        if (!st)
            st = gradients_print(g->name, &net, NULL, r);
    }
    if (st)
        (void)complain(g->name, st);
    zoo_net_close(&net);
    zoo_record_close(&record);
    (void)tn_close(ctx);
    return st;
}

static int gradients_run(const char *graph, const char *path, size_t count, const group *groups)
{
    tn_ctx *ctx = NULL;
    zoo_record record = {.params = NULL};
    reference r = {.gradient = NULL};
    tn_status st;

    if ((st = open_with(groups, &ctx)) || (st = zoo_record_open(ctx, path, &record)) ||
        (st = reference_make(ctx, graph, &record, &r)))
        (void)complain("float64", st);
    zoo_record_close(&record);
    (void)tn_close(ctx);
    for (size_t i = 0; !st && i < count; i++)
        st = gradient_group(graph, path, &groups[i], &r, i == 0);
    reference_free(&r);
    return st != TN_OK;
}

/* ---- the program ---- */

/* "--" NAME SETTING... begins a group. */
static size_t groups_read(int argc, char **argv, group *groups, size_t max)
{
    size_t count = 0, settings = 0;

    for (int i = 0; i < argc; i++) {
        group *g = count ? &groups[count - 1] : NULL;

        if (!strcmp(argv[i], "--")) {
            if (count == max || i + 1 == argc)
                return 0;
            groups[count++] = (group){argv[++i], {"plugins.trust=off"}};
            settings = 1;
        } else if (g && settings < SETTINGS_MAX) {
            g->settings[settings++] = argv[i];
        } else {
            return 0;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    static group groups[GROUPS_MAX];
    const size_t count = argc > 4 ? groups_read(argc - 4, argv + 4, groups, GROUPS_MAX) : 0;
    int bad = 0;

    const bool plans = count && !strcmp(argv[1], "plans");

    if (!count || (!plans && strcmp(argv[1], "outputs") != 0 && strcmp(argv[1], "gradients") != 0)) {
        (void)fprintf(
            stderr, "usage: zoo_run outputs|plans|gradients GRAPH.json.gz RECORD.params -- NAME SETTING...\n"
                    "       [-- NAME SETTING...]...    SETTING: section.key=value\n");
        return 2;
    }
    if (!strcmp(argv[1], "gradients"))
        return gradients_run(argv[2], argv[3], count, groups);
    for (size_t i = 0; i < count; i++)
        bad |= plans ? plans_run(argv[2], argv[3], &groups[i]) : outputs_run(argv[2], argv[3], &groups[i]);
    return bad;
}
