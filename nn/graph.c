/*
 * A net as a graph: the symbol it is exported as and the programs that a hybridized net runs.
 *
 * A chain has one program. A function is traced once for each combination of input shapes; where the graph
 * comes out the same, as for another batch size most often, it is the same program.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- shapes ---- */

tn_status tnn_net_infer_all(tn_net *net, const tnn_shape *in)
{
    tn_app *app = tnn_net_app(net);

    if (!app)
        return TN_E_STATE;
    for (size_t i = 0; i < net->input_count; i++)
        if (in[i].ndim < 1 || in[i].ndim > TNN_NDIM_MAX)
            return tnn_fail(app, TN_E_SHAPE, "net %s: an input has %d dimensions, 1 to %d are allowed",
                            net->path, in[i].ndim, TNN_NDIM_MAX);
    if (net->graph)
        return tnn_graph_infer(net, in);
    return tnn_net_trace(net, in, NULL);
}

tn_status tnn_net_infer(tn_net *net, int32_t ndim, const int64_t *shape)
{
    tnn_shape in = tnn_shape_of(ndim, shape);
    tn_app *app = tnn_net_app(net);

    in.dtype = net ? net->dtype : TN_F32;
    if (app && net->input_count != 1)
        return tnn_fail(app, TN_E_ARG, "net %s has %zu inputs, the shape of one is given", net->path,
                        net->input_count);
    return tnn_net_infer_all(net, &in);
}

/* ---- the symbol ---- */

/* Of a chain, without shapes; of a function with those it saw last. */
static tn_status layers_symbol(tn_app *app, tn_net *net, tn_symbol **out)
{
    tnn_shape in[TNN_VALUES_MAX];

    memcpy(in, net->in, sizeof in);
    if (!tnn_net_by_shapes(net) && !tn_net_layers(net))
        return tnn_fail(app, TN_E_STATE, "net %s has no layers", net->path);
    if (!tnn_net_by_shapes(net)) {
        in[0].ndim = -1;
        return tnn_net_trace(net, in, out);
    }
    if (in[0].ndim < 0 && !net->shapeless)
        return tnn_fail(app, TN_E_STATE,
                        "net %s has not seen an input: give tn_net_init() a .shape, or run the net once",
                        net->path);
    return tnn_net_trace(net, in, out);
}

tn_status tnn_net_symbol(tn_net *net, tn_symbol **out)
{
    tn_app *app = tnn_net_app(net);
    tnn_shape in[TNN_VALUES_MAX], outs[TNN_VALUES_MAX];
    tn_status st;

    if (!app)
        return TN_E_STATE;
    if (net->graph) {
        tn_symbol_retain(net->graph);
        *out = net->graph;
        return TN_OK;
    }
    if (tnn_net_whole(net))
        return app->status;
    memcpy(in, net->in, sizeof in);
    memcpy(outs, net->out, sizeof outs);
    st = layers_symbol(app, net, out);
    if (!net->function) { /* a chain was traced without shapes */
        memcpy(net->in, in, sizeof in);
        memcpy(net->out, outs, sizeof outs);
    }
    return st;
}

tn_symbol *tn_net_symbol(tn_net *net)
{
    tn_symbol *symbol = NULL;

    if (!tnn_net_app(net))
        return NULL;
    if (!net->model)
        return tnn_net_symbol(net, &symbol) ? NULL : symbol;
    tn_symbol_retain(symbol = tnn_model_symbol(net->model));
    return symbol;
}

const char *tnn_net_input_name(const tn_net *net, size_t index)
{
    return net->input_names[index] ? net->input_names[index] : "data";
}

const char *tn_net_input_at(const tn_net *net, size_t index)
{
    if (!tnn_net_app(net) || index >= net->input_count)
        return NULL;
    return tnn_net_input_name(net, index);
}

const char *tn_net_input(const tn_net *net)
{
    return tn_net_input_at(net, 0);
}

/* ---- programs ---- */

typedef struct tnn_program {
    struct tnn_program *next;
    char *json; /* what it was compiled from; NULL: of a chain or file, which has one */
    tn_cached_op *cached;
    tnn_param **params; /* per input; NULL: one of the net's inputs, data[i] */
    size_t *data;
    tn_array **in;
    const char **names; /* of those that are parameters, NULL-ended */
    size_t count;
} tnn_program;

static void program_destroy(tnn_program *p)
{
    if (!p)
        return;
    tn_cached_op_release(p->cached);
    tn_free(p->json);
    free(p->params);
    free(p->data);
    free(p->in);
    free(p->names);
    free(p);
}

void tnn_net_uncache(tn_net *net)
{
    while (net->programs) {
        tnn_program *p = net->programs;

        net->programs = p->next;
        program_destroy(p);
    }
    for (size_t i = 0; i < net->key_count; i++) {
        free(net->keys[i].text);
        net->keys[i].text = NULL;
    }
    net->key_count = net->key_next = net->key_last = 0;
}

/* Which parameter is input `name`; NULL: data. */
static tnn_param *input_param(const tn_net *net, const char *name)
{
    for (size_t i = 0; i < net->param_count; i++)
        if (!strcmp(net->params[i]->full, name))
            return net->params[i];
    return NULL;
}

static tn_status program_inputs(tn_app *app, tn_net *net, tnn_program *p, char *const *names, size_t count)
{
    size_t known = 0;

    if (!(p->params = tnn_alloc(app, count, sizeof(tnn_param *))) ||
        !(p->in = tnn_alloc(app, count, sizeof(tn_array *))) ||
        !(p->data = tnn_alloc(app, count, sizeof *p->data)) ||
        !(p->names = tnn_alloc(app, count + 1, sizeof(*p->names))))
        return app->status;
    for (p->count = 0; p->count < count; p->count++) {
        const size_t i = p->count;

        if ((p->params[i] = input_param(net, names[i])) != NULL)
            p->names[known++] = names[i];
        while (!p->params[i] && p->data[i] + 1 < net->input_count &&
               strcmp(tnn_net_input_name(net, p->data[i]), names[i]))
            p->data[i]++;
    }
    return TN_OK;
}

static tn_status program_fill(tn_app *app, tn_net *net, tnn_program *p, tn_symbol *symbol)
{
    tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options)};
    char **names = NULL;
    size_t count = 0;
    tn_status st;

    o.static_alloc = net->hybrid_options.static_alloc != 0;
    o.static_shape = net->hybrid_options.static_shape != 0;
    o.forward_bulk = (uint32_t)net->hybrid_options.forward_bulk;
    o.backward_bulk = (uint32_t)net->hybrid_options.backward_bulk;
    o.inline_limit = (uint32_t)net->hybrid_options.inline_limit;
    if (net->graph && !net->hybrid)
        o.inline_limit = UINT32_MAX; /* a graph is a program, or run operator by operator */
    st = tnn_check(app, tn_symbol_list(symbol, TN_LIST_INPUTS, &count, &names), "net %s", net->path);
    if (!st && !(st = program_inputs(app, net, p, names, count))) {
        o.params = p->names;
        st = tnn_check(app, tn_cached_op_create(app->ctx, symbol, &o, &p->cached), "net %s", net->path);
    }
    tn_free(names);
    free(p->names); /* they were the list's */
    p->names = NULL;
    return st;
}

/* The program of a graph: one that is there, or a new one. */
static tnn_program *program_of(tn_app *app, tn_net *net, tn_symbol *symbol)
{
    tnn_program *p = tnn_alloc(app, 1, sizeof *p);

    if (!p)
        return NULL;
    if (tnn_net_by_shapes(net) && tnn_check(app, tn_symbol_to_json(symbol, &p->json), "net %s", net->path)) {
        program_destroy(p);
        return NULL;
    }
    for (tnn_program *other = net->programs; p->json && other; other = other->next)
        if (!strcmp(other->json, p->json)) {
            program_destroy(p);
            return other;
        }
    if (program_fill(app, net, p, symbol)) {
        program_destroy(p);
        return NULL;
    }
    p->next = net->programs;
    return net->programs = p;
}

static bool same_shape(const tnn_shape *s, int32_t ndim, const int64_t *shape, int32_t dtype)
{
    return s->ndim == ndim && s->dtype == dtype &&
           (ndim <= 0 || !memcmp(s->dims, shape, (size_t)ndim * sizeof *shape));
}

static bool key_fits(const tn_net *net, const tnn_key *key, tn_array *const *in)
{
    for (size_t i = 0; i < net->input_count; i++) {
        const int64_t *shape = NULL;
        int32_t ndim = -1;

        if (tn_array_shape(in[i], &ndim, &shape) ||
            !same_shape(&key->in[i], ndim, shape, tn_array_dtype(in[i])))
            return false;
    }
    return true;
}

/* ---- nn.trace_check ---- */

static tn_status trace_keep(tn_app *app, tn_net *net, tnn_key *key)
{
    if (tnn_check(app, tn_ctx_option_int(app->ctx, "nn.trace_check", &net->trace_check), "net %s", net->path))
        return app->status;
    return net->trace_check ? tnn_net_trace_text(net, key->in, &key->text) : TN_OK;
}

/* A line of a trace: what was called, and where. */
static int line_text(const char *line, char *out, size_t room)
{
    const int what = (int)strcspn(line, "\t\n"), all = (int)strcspn(line, "\n");

    return all > what + 1 ? snprintf(out, room, "%.*s at %.*s", what, line, all - what - 1, line + what + 1)
                          : snprintf(out, room, "%.*s", what, line);
}

/* The first call that the function makes otherwise than when it was compiled. */
static tn_status trace_compare(tn_app *app, const tn_net *net, const char *then, const char *now)
{
    char was[512], is[512];

    for (; *then && *now; then += strcspn(then, "\n") + 1, now += strcspn(now, "\n") + 1) {
        const size_t length = strcspn(then, "\t");

        if (length == strcspn(now, "\t") && !memcmp(then, now, length))
            continue;
        (void)line_text(then, was, sizeof was);
        (void)line_text(now, is, sizeof is);
        return tnn_fail(
            app, TN_E_STATE,
            "net %s was traced again, and calls %s\n   where the compiled program has %s\n"
            "   help: a hybridized function must depend on nothing but the sizes of its values and "
            ".arg; tn_net_retrace() after a change",
            net->path, is, was);
    }
    return TN_OK;
}

static tn_status trace_check(tn_app *app, tn_net *net, const tnn_key *key)
{
    char *text = NULL;

    if (!key->text || ++net->calls % net->trace_check || tnn_net_trace_text(net, key->in, &text))
        return app->status;
    (void)trace_compare(app, net, key->text, text);
    free(text);
    return app->status;
}

/* Traces the function with these inputs; of several keys the oldest is forgotten. */
static tnn_program *key_add(tn_app *app, tn_net *net, tn_array *const *in)
{
    tnn_key key = {.program = NULL};
    tn_symbol *symbol = NULL;

    if (!net->keys && !(net->keys = tnn_alloc(app, TNN_KEYS_MAX, sizeof *net->keys)))
        return NULL;
    for (size_t i = 0; i < net->input_count; i++)
        if (tnn_shape_take(app, in[i], net->path, &key.in[i]))
            return NULL;
    if (tnn_net_trace(net, key.in, &symbol))
        return NULL;
    tnn_net_uncollect(net); /* nets that it calls may have come up with layers */
    if (!tnn_net_fill(net) && !trace_keep(app, net, &key))
        key.program = program_of(app, net, symbol);
    tn_symbol_release(symbol);
    if (!key.program) {
        free(key.text);
        return NULL;
    }
    memcpy(key.out, net->out, sizeof key.out);
    net->key_last = net->key_next;
    free(net->keys[net->key_next].text);
    net->keys[net->key_next] = key;
    net->key_next = (net->key_next + 1) % TNN_KEYS_MAX;
    net->key_count += net->key_count < TNN_KEYS_MAX;
    return key.program;
}

static tnn_program *function_program(tn_app *app, tn_net *net, tn_array *const *in)
{
    const tnn_key *key = net->key_count ? &net->keys[net->key_last] : NULL;

    if (!key || !key_fits(net, key, in)) {
        size_t i = 0;

        while (i < net->key_count && !key_fits(net, &net->keys[i], in))
            i++;
        if (i == net->key_count)
            return key_add(app, net, in);
        key = &net->keys[net->key_last = i];
        memcpy(net->in, key->in, sizeof net->in);
        memcpy(net->out, key->out, sizeof net->out);
    }
    return trace_check(app, net, key) ? NULL : key->program;
}

static tnn_program *only_program(tn_app *app, tn_net *net)
{
    tn_symbol *symbol = NULL;
    tnn_program *p = net->programs;

    if (!p && !tnn_net_collect(net) && !tnn_net_symbol(net, &symbol))
        p = program_of(app, net, symbol);
    tn_symbol_release(symbol);
    return p;
}

/* After tn_net_init() parameters have no values: sizes are found again. */
static tn_status program_ready(tn_app *app, tn_net *net, const tnn_program *p, tn_array *const *in)
{
    tnn_shape shapes[TNN_VALUES_MAX];
    bool ready = true;

    for (size_t i = 0; i < p->count; i++)
        ready = ready && (!p->params[i] || p->params[i]->array);
    if (ready)
        return TN_OK;
    for (size_t i = 0; i < net->input_count; i++)
        if (tnn_shape_take(app, in[i], net->path, &shapes[i]))
            return app->status;
    return tnn_net_infer_all(net, shapes) ? app->status : tnn_net_fill(net);
}

tn_status tnn_net_program_run(tn_net *net, tn_array *const *in, tn_array **out)
{
    tn_app *app = net->object.app;
    tnn_program *p = tnn_net_by_shapes(net) ? function_program(app, net, in) : only_program(app, net);
    tn_status st;

    if (!p || program_ready(app, net, p, in))
        return app->status ? app->status : TN_E_STATE;
    for (size_t i = 0; i < p->count; i++) {
        if (p->params[i] && tnn_param_spread(app, p->params[i]))
            return app->status;
        p->in[i] = p->params[i] ? p->params[i]->array : in[p->data[i]];
    }
    st = tn_cached_op_call(p->cached, (uint32_t)p->count, p->in, (uint32_t)net->output_count, out);
    return tnn_check(app, st, "net %s", net->path);
}

void tn_net_hybridize_(tn_net *net, const tn_hybridize_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_hybridize_options o = {0};

    tnn_options_copy(&o, sizeof o, options);
    if (!app || net->model)
        return; /* a loaded one is a program already */
    if (o.static_shape && !o.static_alloc) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_hybridize at %s:%d: .static_shape needs .static_alloc",
                       o.file ? o.file : "?", o.line);
        return;
    }
    if (o.inline_limit < 0 || o.forward_bulk < 0 || o.backward_bulk < 0) {
        (void)tnn_fail(app, TN_E_ARG,
                       "tn_net_hybridize at %s:%d: .inline_limit, .forward_bulk and "
                       ".backward_bulk are counts",
                       o.file ? o.file : "?", o.line);
        return;
    }
    tnn_net_uncache(net);
    net->hybrid = !o.off;
    net->hybrid_options = o;
}

/* ---- files ---- */

/* MXNet's order: as the symbol lists them, arguments first. */
static tn_status full_list(tn_app *app, tn_net *net, tn_params *params)
{
    tn_symbol *symbol = NULL;
    tn_status st = tnn_net_symbol(net, &symbol);

    for (int32_t what = TN_LIST_ARGUMENTS; !st && what <= TN_LIST_AUX; what++) {
        char **names = NULL;
        size_t count = 0;

        st = tn_symbol_list(symbol, what, &count, &names);
        for (size_t i = 0; !st && i < count; i++) {
            const tnn_param *p = input_param(net, names[i]);
            char *name;

            if (!p)
                continue;
            name = tnn_format(app, "%s:%s", what == TN_LIST_AUX ? "aux" : "arg", p->full);
            st = name ? tn_params_add(params, name, p->array) : TN_E_NOMEM;
            free(name);
        }
        tn_free(names);
    }
    tn_symbol_release(symbol);
    return st;
}

tn_status tnn_net_params(tn_net *net, bool full_names, tn_params **out)
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;
    tn_status st;

    if (!app)
        return TN_E_STATE;
    if (tnn_net_valued(net))
        return app->status;
    st = tn_params_create(&params);
    if (!st && full_names)
        st = full_list(app, net, params);
    for (size_t i = 0; !st && !full_names && i < net->param_count; i++)
        st = tn_params_add(params, tnn_param_name(net, i), net->params[i]->array);
    if (st) {
        tn_params_destroy(params);
        return tnn_check(app, st, "net %s", net->path);
    }
    *out = params;
    return TN_OK;
}

void tn_net_save(tn_net *net, const char *path)
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;

    if (!app)
        return;
    if (net->model)
        (void)tnn_check(app, tn_params_save(tnn_model_params(net->model), path), "%s", path);
    else if (!tnn_net_params(net, false, &params))
        (void)tnn_check(app, tn_params_save(params, path), "%s", path);
    tn_params_destroy(params);
}

/* "conv0_weight" of "net_conv0_weight"; NULL: the name does not begin with the net's. */
static const char *own_end(const tn_net *net, const tnn_param *p)
{
    const size_t length = strlen(net->prefix);

    return strncmp(p->full, net->prefix, length) ? NULL : p->full + length;
}

/* The text that the file has in place of the net's name: of the names that end as an own parameter's does
 * (the first that there is), the shortest without that end. "net_" of "net_conv0_weight"; its length; -1:
 * none. */
static int file_prefix(const tn_net *net, const tn_params *params, const char **prefix)
{
    int best = -1;

    for (size_t k = 0; best < 0 && k < net->param_count; k++) {
        const char *end = own_end(net, net->params[k]);

        for (size_t i = 0; end && *end && i < tn_params_count(params); i++) {
            const char *name = tnn_plain_name(tn_params_name(params, i));
            const int length = (int)(strlen(name) - strlen(end));

            if (tnn_ends_with(name, end) && (best < 0 || length < best)) {
                *prefix = name;
                best = length;
            }
        }
    }
    return best;
}

typedef struct list_of { /* of a net's values, from a file */
    const tn_net *net;
    const tn_params *params;
    const char *what, *prefix; /* the file; file_prefix(), `length` of it */
    int length;
} list_of;

/* An array by the parameter's structural name, by that of the graph, or by that with another net's name.
 * Among `missing` ones the file may lack it: *out stays NULL. */
static tn_status file_array(const list_of *l, size_t index, bool missing, tn_array **out)
{
    const tn_net *net = l->net;
    const tnn_param *p = net->params[index];
    const char *end = own_end(net, p), *what = l->what;
    const tn_params *params = l->params;
    tn_app *app = net->object.app;
    char *name = NULL;
    tn_status st;

    if ((st = tn_params_get(params, tnn_param_name(net, index), out)) != TN_E_KEY)
        return tnn_check(app, st, "%s", what);
    if ((st = tn_params_get(params, p->full, out)) == TN_E_KEY && end && l->length >= 0) {
        if (!(name = tnn_format(app, "%.*s%s", l->length, l->prefix, end)))
            return app->status;
        st = tn_params_get(params, name, out);
    }
    free(name);
    if (st == TN_E_KEY && missing) {
        tn_error_clear();
        return TN_OK;
    }
    return *out ? TN_OK : tnn_check(app, st, "%s", what);
}

/* Puts down which of the file's arrays this is. */
static tn_status used_note(tn_app *app, const tn_params *params, const tn_array *array, bool *used)
{
    for (size_t i = 0; i < tn_params_count(params); i++) {
        tn_array *at = NULL;

        if (tnn_check(app, tn_params_at(params, i, &at), "parameters"))
            return app->status;
        tn_array_release(at);
        used[i] = used[i] || at == array;
    }
    return TN_OK;
}

/* `pass` 0: looks whether they fit; 1: copies. `used`: of the file's arrays, NULL: all are the net's. */
static tn_status each_take(tn_net *net, const tn_params *params, const char *what, int pass, bool missing,
                           bool *used)
{
    tn_app *app = net->object.app;
    list_of l = {.net = net, .params = params, .what = what};

    l.length = file_prefix(net, params, &l.prefix);
    for (size_t i = 0; i < net->param_count && !app->status; i++) {
        tnn_param *p = net->params[i];
        tn_array *array = NULL;

        if (file_array(&l, i, missing, &array) || (missing && !array))
            continue;
        if (!(pass ? tnn_param_set(app, p, array) : tnn_param_fits(app, p, array)) && used)
            (void)used_note(app, params, array, used);
        tn_array_release(array);
    }
    return app->status;
}

tn_status tnn_net_take(tn_net *net, const tn_params *params, const char *what)
{
    tn_app *app = tnn_net_app(net);

    if (!app)
        return TN_E_STATE;
    if (tnn_net_collect(net) || each_take(net, params, what, 0, false, NULL))
        return app->status;
    return each_take(net, params, what, 1, false, NULL);
}

/* With one of the flags: what net and file both have. Returns how many. */
static size_t some_take(tn_app *app, tn_net *net, const tn_params *params, const char *path, int32_t flags,
                        bool *used)
{
    const bool missing = (flags & TN_PARAMS_MISSING) != 0;
    const size_t count = tn_params_count(params);
    size_t taken = 0;

    if (each_take(net, params, path, 0, missing, used))
        return 0;
    for (size_t i = 0; i < count; i++) {
        taken += used[i];
        if (!used[i] && !(flags & TN_PARAMS_EXTRA))
            (void)tnn_fail(app, TN_E_KEY, "%s has \"%.120s\", which net %s has not", path,
                           tn_params_name(params, i), net->path);
    }
    if (!taken)
        (void)tnn_fail(app, TN_E_KEY, "%s has no parameter of net %s; the first one there is \"%.120s\"",
                       path, net->path, count ? tn_params_name(params, 0) : "");
    return app->status || each_take(net, params, path, 1, missing, NULL) ? 0 : taken;
}

static size_t params_take(tn_app *app, tn_net *net, const tn_params *params, const char *path, int32_t flags)
{
    bool *used;
    size_t taken;

    if (tnn_net_collect(net))
        return 0;
    if (net->function && !net->call)
        return !tnn_fail(app, TN_E_STATE,
                         "net %s has no layers yet: give tn_net_init() a .shape, or run the net once",
                         net->path);
    if (!flags && tn_params_count(params) != net->param_count)
        return !tnn_fail(app, TN_E_FORMAT, "%s holds %zu arrays, net %s has %zu parameters", path,
                         tn_params_count(params), net->path, net->param_count);
    if (!flags)
        return tnn_net_take(net, params, path) ? 0 : net->param_count;
    if (!(used = tnn_alloc(app, tn_params_count(params) + 1, sizeof *used)))
        return 0;
    taken = some_take(app, net, params, path, flags, used);
    free(used);
    return taken;
}

size_t tn_net_load_some(tn_net *net, const char *path, int32_t flags)
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;
    size_t taken = 0;

    if (!app)
        return 0;
    if (net->model)
        (void)tnn_fail(app, TN_E_STATE, "net %s was loaded: it has its values", net->path);
    else if (flags & ~(TN_PARAMS_MISSING | TN_PARAMS_EXTRA))
        (void)tnn_fail(app, TN_E_ARG, "tn_net_load_some: flags %d are not known", flags);
    else if (!tnn_check(app, tn_params_load(app->ctx, path, NULL, &params), "%s", path))
        taken = params_take(app, net, params, path, flags);
    tn_params_destroy(params);
    return app->status ? 0 : taken;
}

void tn_net_load_params(tn_net *net, const char *path)
{
    (void)tn_net_load_some(net, path, 0);
}

void tn_net_export(tn_net *net, const char *prefix)
{
    tn_app *app = tnn_net_app(net);
    char *json = NULL, *file = NULL;
    tn_params *params = NULL;
    tn_symbol *symbol = NULL;

    if (!app)
        return;
    if (!prefix) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_export: the files' prefix is missing");
        return;
    }
    if (!(json = tnn_format(app, "%s-symbol.json", prefix)) ||
        !(file = tnn_format(app, "%s-0000.params", prefix)))
        goto cleanup;
    if (!net->model && (tnn_net_symbol(net, &symbol) || tnn_net_params(net, true, &params)))
        goto cleanup;
    if (net->graph_file) {
        tn_symbol_release(symbol);
        tn_symbol_retain(symbol = net->graph_file);
    }
    (void)tnn_pair_save(app, symbol ? symbol : tnn_model_symbol(net->model), json,
                        params ? params : tnn_model_params(net->model), file);

cleanup:
    tn_symbol_release(symbol);
    tn_params_destroy(params);
    free(json);
    free(file);
}

int tn_net_sha256(tn_net *net, char out_hex[65])
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;
    tn_status st = TN_E_STATE;

    if (out_hex)
        out_hex[0] = '\0';
    if (!app)
        return 0;
    if (!out_hex)
        return !tnn_fail(app, TN_E_ARG, "tn_net_sha256: out_hex is NULL");
    if (net->model)
        st = tnn_check(app, tn_params_sha256(tnn_model_params(net->model), out_hex), "net %s", net->path);
    else if (!(st = tnn_net_params(net, true, &params)))
        st = tnn_check(app, tn_params_sha256(params, out_hex), "net %s", net->path);
    tn_params_destroy(params);
    return !st;
}
