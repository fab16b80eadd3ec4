/*
 * Runs an exported net on numbers of its own and writes both, for nets.py to compare with MXNet:
 *     net_run PREFIX OUT.params NAME SHAPE [NAME SHAPE …]      SHAPE: 2,1,8,8
 * OUT.params gets in:NAME and out:0, out:1, …
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/tenon.h"

enum { INPUTS_MAX = 8, NDIM_MAX = 8 };

typedef struct net {
    tn_ctx *ctx;
    tn_params *weights, *record;
    tn_symbol *symbol;
    tn_program *program;
    tn_array *in[INPUTS_MAX], *out[INPUTS_MAX];
} net;

static tn_status net_open(net *n, const char *prefix)
{
    static char plugins[4096], json[4096], params[4096];
    const char *settings[] = {plugins, NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    const char *path = getenv("TENON_TEST_PLUGINS");
    tn_status st;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", path ? path : "");
    (void)snprintf(json, sizeof json, "%s-symbol.json", prefix);
    (void)snprintf(params, sizeof params, "%s-0000.params", prefix);
    if ((st = tn_open(&o, &n->ctx)) || (st = tn_symbol_load(n->ctx, json, &n->symbol)) ||
        (st = tn_params_load(n->ctx, params, NULL, &n->weights)) || (st = tn_params_create(&n->record)))
        return st;
    return tn_program_create(n->ctx, n->symbol, n->weights, &n->program);
}

/* Numbers from 0 to 1, other ones for each input. */
static tn_status input_make(net *n, uint32_t index, const char *text)
{
    int64_t shape[NDIM_MAX] = {0};
    uint64_t count = 1, x = index + 1;
    int32_t ndim = 0;
    float *values;
    tn_status st;

    for (char *end = (char *)(uintptr_t)text; *end && ndim < NDIM_MAX; end += *end == ',')
        count *= (uint64_t)(shape[ndim++] = strtoll(end, &end, 10));
    if (!count || count > 1 << 20 || !(values = calloc(count, sizeof *values)))
        return TN_E_ARG;
    for (uint64_t i = 0; i < count; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(x >> 40) / 16777216.0f;
    }
    st = tn_array_from(n->ctx, TN_F32, ndim, shape, values, &n->in[index]);
    free(values);
    return st;
}

static tn_status inputs_make(net *n, int count, char **words)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < tn_program_input_count(n->program); i++) {
        const char *name = tn_program_input(n->program, i), *shape = NULL;
        char key[256];

        for (int k = 0; k + 1 < count; k += 2)
            if (!strcmp(words[k], name))
                shape = words[k + 1];
        if (!shape || i == INPUTS_MAX) {
            (void)fprintf(stderr, "net_run: input %s has no shape\n", name);
            return TN_E_KEY;
        }
        (void)snprintf(key, sizeof key, "in:%s", name);
        if (!(st = input_make(n, i, shape)))
            st = tn_params_add(n->record, key, n->in[i]);
    }
    return st;
}

static tn_status run(net *n, const char *path)
{
    const uint32_t outs = tn_program_output_count(n->program);
    tn_status st = outs > INPUTS_MAX
                       ? TN_E_ARG
                       : tn_program_run(n->program, tn_program_input_count(n->program), n->in, outs, n->out);

    for (uint32_t i = 0; !st && i < outs; i++) {
        char key[32];

        (void)snprintf(key, sizeof key, "out:%u", i);
        st = tn_params_add(n->record, key, n->out[i]);
    }
    return st ? st : tn_params_save(n->record, path);
}

int main(int argc, char **argv)
{
    net n = {.ctx = NULL};
    tn_status st;

    if (argc < 5 || argc % 2 == 0)
        return 2;
    if ((st = net_open(&n, argv[1])) || (st = inputs_make(&n, argc - 3, argv + 3)) || (st = run(&n, argv[2])))
        (void)fprintf(stderr, "net_run: %s: %s\n", tn_status_name(st), tn_error_text());
    for (int i = 0; i < INPUTS_MAX; i++) {
        tn_array_release(n.in[i]);
        tn_array_release(n.out[i]);
    }
    tn_program_destroy(n.program);
    tn_symbol_release(n.symbol);
    tn_params_destroy(n.weights);
    tn_params_destroy(n.record);
    return st || tn_close(n.ctx);
}
