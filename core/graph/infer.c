/*
 * Inference over a graph: each node's own inference runs again whenever an entry it touches became better
 * known, in sweeps forward and backward, until nothing changes. Knowledge only grows: what a node says is
 * merged into its entries, and a contradiction is an error that names the node. A gradient has the shape and
 * dtype of what it is the gradient of (graph->like).
 */
#include <string.h>

#include "graph/walk.h"

#define ROUNDS_MAX 256 /* of two sweeps each; real nets settle in three */

#define KIND_SHAPE 0
#define KIND_DTYPE 1
#define KIND_STORAGE 2

typedef struct inference {
    tni_graph *g;
    int32_t kind;
    uint32_t flags;       /* TN_INFER_… */
    uint8_t *dirty;       /* per node */
    uint32_t *users_from; /* entry -> first place in `users`; entry_count + 1 */
    uint32_t *users;      /* nodes */
    tn_shape *shapes;     /* scratch of one node: inputs, then outputs */
    tn_shape **pointers;
    int32_t *values;
    bool like_changed;
} inference;

static void inference_fini(inference *x)
{
    tni_free(x->dirty);
    tni_free(x->users_from);
    tni_free(x->users);
    tni_free(x->shapes);
    tni_free(x->pointers);
    tni_free(x->values);
}

/* Who reads which entry: counted, summed, filled in. */
static void users_fill(inference *x)
{
    const tni_graph *g = x->g;

    for (uint32_t i = 0; i < g->input_total; i++)
        x->users_from[g->inputs[i] + 1]++;
    for (uint32_t e = 0; e < g->entry_count; e++)
        x->users_from[e + 1] += x->users_from[e];
    for (uint32_t n = g->node_count; n-- > 0;)
        for (uint32_t i = 0; i < g->nodes[n].input_count; i++) {
            uint32_t e = tni_graph_input(g, &g->nodes[n], i);

            x->users[--x->users_from[e + 1]] = n;
        }
    /* Each start has moved one place up: put them back. */
    memmove(x->users_from, x->users_from + 1, g->entry_count * sizeof *x->users_from);
    x->users_from[g->entry_count] = g->input_total;
}

static tn_status inference_init(inference *x, tni_graph *g)
{
    uint32_t most = 1;

    *x =
        (inference){.g = g, .flags = (g->np_shape ? TN_INFER_NP_SHAPE : 0) | (g->train ? TN_INFER_TRAIN : 0)};
    for (uint32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].input_count + g->nodes[i].output_count > most)
            most = g->nodes[i].input_count + g->nodes[i].output_count;
    x->dirty = tni_calloc(g->node_count, 1);
    x->users_from = tni_calloc((uint64_t)g->entry_count + 2, sizeof *x->users_from);
    x->users = tni_calloc(g->input_total, sizeof *x->users);
    x->shapes = tni_calloc(most, sizeof *x->shapes);
    x->pointers = tni_calloc(most, sizeof *x->pointers);
    x->values = tni_calloc(most, sizeof *x->values);
    if (!x->dirty || !x->users_from || !x->users || !x->shapes || !x->pointers || !x->values) {
        inference_fini(x);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < most; i++)
        x->pointers[i] = &x->shapes[i];
    users_fill(x);
    return TN_OK;
}

/* ---- merging ------------------------------------------------------------------------------------- */

#define MERGE_SAME 0
#define MERGE_GREW 1
#define MERGE_CLASH 2

static void shape_copy(tn_shape *to, const tn_shape *from)
{
    int32_t ndim = from->ndim > 0 ? from->ndim : 0;

    to->ndim = from->ndim;
    memcpy(to->dim, from->dim, (size_t)ndim * sizeof *to->dim);
}

static int shape_merge(tn_shape *to, const tn_shape *from)
{
    int result = MERGE_SAME;

    if (from->ndim < 0)
        return MERGE_SAME;
    if (to->ndim < 0) {
        shape_copy(to, from);
        return MERGE_GREW;
    }
    if (to->ndim != from->ndim)
        return MERGE_CLASH;
    for (int32_t i = 0; i < to->ndim; i++) {
        if (from->dim[i] < 0 || to->dim[i] == from->dim[i])
            continue;
        if (to->dim[i] >= 0)
            return MERGE_CLASH;
        to->dim[i] = from->dim[i];
        result = MERGE_GREW;
    }
    return result;
}

static int value_merge(int32_t *to, int32_t from)
{
    if (from < 0 || *to == from)
        return MERGE_SAME;
    if (*to >= 0)
        return MERGE_CLASH;
    *to = from;
    return MERGE_GREW;
}

static int32_t *values_of(const inference *x)
{
    return x->kind == KIND_DTYPE ? x->g->dtypes : x->g->storages;
}

static void entry_changed(inference *x, uint32_t e)
{
    x->dirty[x->g->entry_node[e]] = 1;
    for (uint32_t i = x->users_from[e]; i < x->users_from[e + 1]; i++)
        x->dirty[x->users[i]] = 1;
    x->like_changed = true;
}

/* ---- errors -------------------------------------------------------------------------------------- */

static void entry_describe(const inference *x, uint32_t e, tni_str *text)
{
    const tni_gnode *n = &x->g->nodes[x->g->entry_node[e]];

    tni_str_addf(text, n->def ? "%s[%u] " : "%s ", n->name, e - n->first_entry);
    if (x->kind == KIND_SHAPE)
        tni_shape_format(&x->g->shapes[e], text);
    else if (x->kind == KIND_DTYPE)
        tni_str_add(text, x->g->dtypes[e] < 0 ? "?" : tni_dtype_name(x->g->dtypes[e]));
    else
        tni_str_addf(text, "%d", x->g->storages[e]);
}

/* This thread's error, with the node, its operator and its inputs before it. */
static tn_status node_failed(const inference *x, uint32_t node, tn_status st)
{
    const tni_gnode *n = &x->g->nodes[node];
    tn_err err;
    tni_str text;

    tni_error_get(&err);
    tni_str_init(&text, 4096);
    for (uint32_t i = 0; i < n->input_count && i < 6; i++) {
        tni_str_add(&text, i ? ", " : "");
        entry_describe(x, tni_graph_input(x->g, n, i), &text);
    }
    st = tni_error(st, "%s%.80s%s%.240s; it has %.150s%s", *n->name ? "node \"" : "", n->name,
                   *n->name ? "\": " : "", err.message, text.text ? text.text : "no inputs",
                   n->input_count > 6 ? ", ..." : "");
    tni_str_fini(&text);
    return st;
}

static tn_status clash(const inference *x, uint32_t node, uint32_t slot)
{
    static const char *const what[] = {"shape", "data type", "storage type"};
    static const tn_status codes[] = {TN_E_SHAPE, TN_E_DTYPE, TN_E_UNSUPPORTED};
    const tni_gnode *n = &x->g->nodes[node];
    bool input = slot < n->input_count;
    uint32_t place = input ? slot : slot - n->input_count;
    uint32_t e = input ? tni_graph_input(x->g, n, place) : n->first_entry + place;
    tni_str have, want;

    tni_str_init(&have, 4096);
    tni_str_init(&want, 4096);
    entry_describe(x, e, &have);
    if (x->kind == KIND_SHAPE)
        tni_shape_format(&x->shapes[slot], &want);
    else if (x->kind == KIND_DTYPE)
        tni_str_add(&want, tni_dtype_name(x->values[slot]));
    else
        tni_str_addf(&want, "%d", x->values[slot]);
    tni_error(codes[x->kind], "%s: %s %u should have %s %.100s, but the graph says %.120s", n->def->op->name,
              input ? "input" : "output", place, what[x->kind], want.text ? want.text : "?",
              have.text ? have.text : "?");
    tni_str_fini(&have);
    tni_str_fini(&want);
    return node_failed(x, node, codes[x->kind]);
}

/* ---- one node ------------------------------------------------------------------------------------ */

static uint32_t slot_entry(const inference *x, const tni_gnode *n, uint32_t slot)
{
    return slot < n->input_count ? tni_graph_input(x->g, n, slot) : n->first_entry + slot - n->input_count;
}

/* What an operator does not take as it is, a call of it runs on what is stored, or on dense copies. */
static tn_status storage_call(inference *x, const tni_gnode *n, const tni_args *args)
{
    int32_t *in = x->values, *out = x->values + n->input_count, to = TN_STORAGE_DENSE;
    bool sparse = false, unknown = false;
    tn_status st;

    for (uint32_t i = 0; i < n->input_count; i++) {
        sparse |= in[i] > TN_STORAGE_DENSE;
        unknown |= in[i] == TN_STORAGE_UNKNOWN;
    }
    st = tni_op_infer_storage(n->def, n->attrs, args, in, out);
    for (uint32_t i = 0; i < n->input_count && sparse; i++)
        if (x->g->storages[slot_entry(x, n, i)] != TN_STORAGE_UNKNOWN)
            in[i] = x->g->storages[slot_entry(x, n, i)];
    if (st != TN_E_UNSUPPORTED || !sparse || unknown)
        return st == TN_E_UNSUPPORTED && sparse ? TN_OK : st;
    tni_error_clear();
    (void)tni_op_stored(n->def, n->attrs, n->input_count, in, &to);
    for (uint32_t i = 0; i < n->output_count; i++)
        out[i] = i ? TN_STORAGE_DENSE : to;
    return TN_OK;
}

static tn_status node_call(inference *x, const tni_gnode *n, const tni_args *args)
{
    if (x->kind == KIND_SHAPE)
        return tni_op_infer_shape(n->def, n->attrs, args, x->flags, x->pointers,
                                  x->pointers + n->input_count);
    if (x->kind == KIND_DTYPE)
        return tni_op_infer_dtype(n->def, n->attrs, args, x->values, x->values + n->input_count);
    return storage_call(x, n, args);
}

static tn_status node_infer(inference *x, uint32_t node)
{
    const tni_gnode *n = &x->g->nodes[node];
    uint32_t slots = n->input_count + n->output_count;
    tn_bodies bodies;
    tni_args args;
    tn_status st;

    x->dirty[node] = 0;
    if (!n->def)
        return TN_OK;
    for (uint32_t i = 0; i < slots; i++) {
        uint32_t e = slot_entry(x, n, i);

        if (x->kind == KIND_SHAPE)
            shape_copy(&x->shapes[i], &x->g->shapes[e]);
        else
            x->values[i] = values_of(x)[e];
    }
    if ((st = tni_op_args(n->def, n->attrs, n->input_count, &args)))
        return node_failed(x, node, st);
    bodies = tni_bodies_of(n);
    args.bodies = n->subgraph_count ? &bodies : NULL;
    if ((st = node_call(x, n, &args)))
        return node_failed(x, node, st);
    for (uint32_t i = 0; i < slots; i++) {
        uint32_t e = slot_entry(x, n, i);
        int result = x->kind == KIND_SHAPE ? shape_merge(&x->g->shapes[e], &x->shapes[i])
                                           : value_merge(&values_of(x)[e], x->values[i]);

        if (result == MERGE_CLASH)
            return clash(x, node, i);
        if (result == MERGE_GREW)
            entry_changed(x, e);
    }
    return TN_OK;
}

/* ---- sweeps -------------------------------------------------------------------------------------- */

static int like_merge(inference *x, uint32_t to, uint32_t from)
{
    int result = x->kind == KIND_SHAPE ? shape_merge(&x->g->shapes[to], &x->g->shapes[from])
                                       : value_merge(&x->g->dtypes[to], x->g->dtypes[from]);

    if (result == MERGE_GREW)
        entry_changed(x, to);
    return result;
}

static tn_status like_sweep(inference *x)
{
    const tni_graph *g = x->g;

    x->like_changed = false;
    if (x->kind == KIND_STORAGE)
        return TN_OK;
    for (uint32_t e = 0; e < g->entry_count; e++) {
        uint32_t other = g->like[e];

        if (other == TNI_NONE ||
            (like_merge(x, e, other) != MERGE_CLASH && like_merge(x, other, e) != MERGE_CLASH))
            continue;
        tni_error(x->kind == KIND_SHAPE ? TN_E_SHAPE : TN_E_DTYPE,
                  "the gradient has another %s than what it is the gradient of, \"%.80s\"",
                  x->kind == KIND_SHAPE ? "shape" : "data type", g->nodes[g->entry_node[other]].name);
        return node_failed(x, g->entry_node[e], tn_error_code());
    }
    return TN_OK;
}

/* Until nothing changes; what is still moving after the last round stays as known as it is. */
static tn_status settle(inference *x)
{
    uint32_t count = x->g->node_count;
    bool again = true;
    tn_status st = TN_OK;

    x->like_changed = true;
    for (uint32_t round = 0; round < ROUNDS_MAX && again && !st; round++) {
        again = false;
        if (x->like_changed)
            st = like_sweep(x);
        for (uint32_t i = 0; i < count && !st; i++)
            if (x->dirty[i])
                st = node_infer(x, i);
        for (uint32_t i = count; i-- > 0 && !st;)
            if (x->dirty[i]) {
                again = true;
                st = node_infer(x, i);
            }
        again = again || x->like_changed;
    }
    return st;
}

/* ---- presets ------------------------------------------------------------------------------------- */

bool tni_shape_parse(const char *text, bool np_shape, tn_shape *out)
{
    tn_shape s = {.ndim = 0};
    const char *p = text + strspn(text, " ");
    char close = *p == '(' ? ')' : *p == '[' ? ']' : '\0';

    if (tni_str_equal(p, "None")) {
        out->ndim = TN_NDIM_UNKNOWN;
        return true;
    }
    if (!close)
        return false;
    for (p++; p += strspn(p, " "), *p && *p != close;) {
        size_t length = strcspn(p, " ,L)]");
        char number[24];

        if (length == 0 || length >= sizeof number || s.ndim >= TN_NDIM_MAX)
            return false;
        memcpy(number, p, length);
        number[length] = '\0';
        if (!tni_parse_i64(number, &s.dim[s.ndim]) || s.dim[s.ndim] < -1)
            return false;
        if (s.dim[s.ndim] == 0 && !np_shape)
            s.dim[s.ndim] = TN_DIM_UNKNOWN;
        s.ndim++;
        p += length;
        p += *p == 'L'; /* Python 2 wrote 64L */
        p += strspn(p, " ");
        if (*p == ',')
            p++;
        else if (*p != close)
            return false;
    }
    if (*p != close || p[1 + strspn(p + 1, " ")])
        return false;
    if (s.ndim == 0 && !np_shape)
        s.ndim = TN_NDIM_UNKNOWN;
    *out = s;
    return true;
}

static const char *dict_text(const tni_gnode *n, const char *key)
{
    void *text;

    return n->dict && tni_map_get(n->dict, key, &text) ? text : NULL;
}

static tn_status shape_from_dict(tni_graph *g, const tni_gnode *n)
{
    const char *text = dict_text(n, "__shape__");
    tn_shape *have = &g->shapes[n->first_entry];
    tn_shape s;

    if (!text || tn_shape_known(have))
        return TN_OK;
    if (!tni_shape_parse(text, g->np_shape, &s))
        return tni_error(TN_E_FORMAT, "variable \"%.80s\": __shape__ \"%.80s\" is no shape", n->name, text);
    if (have->ndim < 0)
        *have = s;
    for (int32_t i = 0; i < s.ndim && s.ndim == have->ndim; i++)
        if (have->dim[i] < 0)
            have->dim[i] = s.dim[i];
    return TN_OK;
}

static tn_status number_from_dict(const tni_gnode *n, const char *key, int32_t limit, int32_t *value)
{
    const char *text = dict_text(n, key);
    int64_t number;

    if (!text || *value >= 0)
        return TN_OK;
    if (limit == TN_DTYPE_LIMIT && tni_dtype_parse(text, value))
        return TN_OK;
    if (!tni_parse_i64(text, &number) || number < -1 || number >= limit)
        return tni_error(TN_E_FORMAT, "variable \"%.80s\": %s \"%.80s\" is not valid", n->name, key, text);
    *value = (int32_t)number;
    return TN_OK;
}

static tn_status presets_take(tni_graph *g)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < g->variable_count && !st; i++) {
        const tni_gnode *n = &g->nodes[g->variables[i]];

        (void)((st = shape_from_dict(g, n)) ||
               (st = number_from_dict(n, "__dtype__", TN_DTYPE_LIMIT, &g->dtypes[n->first_entry])) ||
               (st = number_from_dict(n, "__storage_type__", 3, &g->storages[n->first_entry])));
    }
    return st;
}

tn_status tni_graph_preset(tni_graph *g, uint32_t variable, const tn_shape *shape, int32_t dtype,
                           int32_t storage)
{
    uint32_t e;

    if (variable >= g->variable_count)
        return tni_error(TN_E_ARG, "variable %u, but the graph has %u", variable, g->variable_count);
    if (shape && (shape->ndim < -1 || shape->ndim > TN_NDIM_MAX))
        return tni_error(TN_E_SHAPE, "%d dimensions, at most %d are allowed", shape->ndim, TN_NDIM_MAX);
    if (dtype < -1 || dtype >= TN_DTYPE_LIMIT)
        return tni_error(TN_E_DTYPE, "%d is no data type", dtype);
    e = g->nodes[g->variables[variable]].first_entry;
    if (shape)
        g->shapes[e] = *shape;
    if (dtype >= 0)
        g->dtypes[e] = dtype;
    if (storage >= 0)
        g->storages[e] = storage;
    g->inferred = 0;
    return TN_OK;
}

void tni_graph_infer_reset(tni_graph *g)
{
    for (uint32_t e = 0; e < g->entry_count; e++) {
        g->shapes[e].ndim = TN_NDIM_UNKNOWN;
        g->dtypes[e] = TN_DTYPE_UNKNOWN;
        g->storages[e] = TN_STORAGE_UNKNOWN;
    }
    g->inferred = 0;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

/* A variable that nobody said anything about: float32, dense. */
static void default_set(inference *x, int32_t value)
{
    const tni_graph *g = x->g;

    for (uint32_t i = 0; i < g->variable_count; i++) {
        uint32_t e = g->nodes[g->variables[i]].first_entry;

        if (values_of(x)[e] < 0) {
            values_of(x)[e] = value;
            entry_changed(x, e);
        }
    }
}

/* An operator without inputs has its shape from its attribute or its users: nothing else can tell it. */
static tn_status unknown_from_nothing(const tni_graph *g)
{
    for (uint32_t n = 0; n < g->node_count; n++) {
        const tni_gnode *node = &g->nodes[n];
        tni_str text;
        tn_status st;

        if (!node->def || node->input_count || tn_shape_known(&g->shapes[node->first_entry]))
            continue;
        tni_str_init(&text, 4096);
        tni_shape_format(&g->shapes[node->first_entry], &text);
        st = tni_error(TN_E_SHAPE, "the shape %.100s of node \"%.80s\" (%s) does not follow from its users",
                       text.text ? text.text : "?", node->name, node->def->op->name);
        tni_str_fini(&text);
        return st;
    }
    return TN_OK;
}

static tn_status unknown_shapes(const tni_graph *g)
{
    uint32_t count = 0;
    tni_str text;
    tn_status st;

    tni_str_init(&text, 4096);
    for (uint32_t i = 0; i < g->variable_count; i++) {
        const tni_gnode *n = &g->nodes[g->variables[i]];

        if (tn_shape_known(&g->shapes[n->first_entry]) || ++count > 4)
            continue;
        tni_str_addf(&text, "%s\"%.80s\" ", count > 1 ? ", " : "", n->name);
        tni_shape_format(&g->shapes[n->first_entry], &text);
    }
    st = count == 0
             ? unknown_from_nothing(g)
             : tni_error(TN_E_SHAPE, "the shape of %u variable%s does not follow from what is known: %s%s",
                         count, count > 1 ? "s" : "", text.text ? text.text : "", count > 4 ? ", ..." : "");
    tni_str_fini(&text);
    return st;
}

static tn_status unknown_dtype(const tni_graph *g)
{
    uint32_t e = 0;
    const tni_gnode *n;

    while (g->dtypes[e] >= 0)
        e++;
    n = &g->nodes[g->entry_node[e]];
    return tni_error(TN_E_DTYPE,
                     "node \"%.80s\" (%s): the data type of output %u does not follow from its inputs",
                     n->name, n->def->op->name, e - n->first_entry);
}

static bool complete(const tni_graph *g, int32_t kind)
{
    const int32_t *values = kind == KIND_DTYPE ? g->dtypes : g->storages;

    for (uint32_t e = 0; e < g->entry_count; e++)
        if (kind == KIND_SHAPE ? !tn_shape_known(&g->shapes[e]) : values[e] < 0)
            return false;
    return true;
}

static tn_status kind_infer(inference *x, int32_t kind, bool partial)
{
    tn_status st;

    x->kind = kind;
    if (x->g->node_count)
        memset(x->dirty, 1, x->g->node_count);
    if (kind == KIND_STORAGE && !partial)
        default_set(x, TN_STORAGE_DENSE);
    st = settle(x);
    if (!st && kind == KIND_DTYPE && !partial) {
        default_set(x, TN_F32);
        st = settle(x);
    }
    if (!st && complete(x->g, kind))
        x->g->inferred |= 1u << kind;
    return st;
}

tn_status tni_graph_infer(tni_graph *g, bool partial)
{
    inference x;
    tn_status st = inference_init(&x, g);

    if (st)
        return st;
    g->inferred = 0;
    (void)((st = presets_take(g)) || (st = kind_infer(&x, KIND_SHAPE, partial)) ||
           (st = kind_infer(&x, KIND_DTYPE, partial)) || (st = kind_infer(&x, KIND_STORAGE, partial)));
    if (!st && !partial && !(g->inferred & 1u))
        st = unknown_shapes(g);
    if (!st && !partial && !(g->inferred & 1u << KIND_DTYPE))
        st = unknown_dtype(g);
    inference_fini(&x);
    return st;
}

tn_status tni_graph_node_cost(const tni_graph *g, uint32_t node, tn_cost *out)
{
    const tni_gnode *n = &g->nodes[node];
    const tni_args args = {n->input_count, n->output_count, n->visible_count, NULL, NULL, NULL};
    const uint32_t count = n->input_count + n->output_count;
    tn_shape **shapes = tni_calloc(count + 1, sizeof *shapes);
    int32_t *dtypes = tni_calloc(count + 1, sizeof *dtypes);
    const tn_status st = shapes && dtypes ? TN_OK : TN_E_NOMEM;
    bool known = !st;

    *out = (tn_cost){sizeof *out, 0, TN_COST_UNKNOWN, TN_COST_UNKNOWN, TN_COST_UNKNOWN};
    for (uint32_t i = 0; known && i < count; i++) {
        const uint32_t e =
            i < n->input_count ? tni_graph_input(g, n, i) : n->first_entry + i - n->input_count;

        shapes[i] = &g->shapes[e];
        dtypes[i] = g->dtypes[e];
        known = dtypes[i] >= 0 && tn_shape_known(shapes[i]);
    }
    if (known)
        tni_op_cost(n->def, n->attrs, &args, shapes, shapes + n->input_count, dtypes, dtypes + n->input_count,
                    out);
    tni_free(shapes);
    tni_free(dtypes);
    return st;
}
