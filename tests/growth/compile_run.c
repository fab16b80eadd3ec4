/*
 * Compiles a net of so many nodes once, for tests/growth/compile, which counts the instructions that it
 * takes.
 *
 *   compile_run WAY NODES
 *
 * Ways: forward, recorded (forward and backward), heads (the same with one head for each node), cut
 * (recorded, over two devices, each node on another one than the node before), constants (over two devices in
 * turn by four nodes, of which one reads a constant that is made of a weight), tape (operators called one by
 * one, then a backward), calls (recorded calls of a small net), far (a tape where each result is read long
 * after it was made: its plan grows with the square, since all live together, so the script leaves it out).
 * With "-only" behind it a way does all but the compiling.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context/context.h"

#define FAR 37u /* nodes that a sum reaches back */

typedef struct net {
    tni_context *c;
    tni_graph *g;
    uint32_t count, *entry; /* per node */
    bool heads, cut, constants, far;
} net;

static int complain(tn_status st)
{
    (void)fprintf(stderr, "compile_run: %s: %s\n", tni_status_name(st), tni_error_message());
    return 1;
}

static tn_status context_open(tni_context **out)
{
    char path[TN_PATH_BYTES_MAX];
    const char *const settings[] = {path, "plugins.load=cpu", "engine.type=naive", "log.level=error", NULL};
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    const tni_context_options o = {.settings = settings};

    (void)snprintf(path, sizeof path, "plugins.path=%s", plugins ? plugins : "");
    return tni_context_open(&o, out);
}

/* ---- a net ------------------------------------------------------------------------------------------- */

static tn_status variable_add(net *n, const char *name, int64_t rows, int64_t columns, uint32_t *entry)
{
    const tn_shape shape = {.ndim = 2, .dim = {rows, columns}};
    uint32_t node;
    tn_status st = tni_graph_add_variable(n->g, name, &node);

    *entry = st ? 0 : n->g->nodes[node].first_entry;
    return st ? st : tni_graph_preset(n->g, n->g->nodes[node].variable, &shape, TN_F32, TN_STORAGE_DENSE);
}

static tn_status op_add(net *n, const char *op, const char *attr, const char *text, uint32_t count,
                        const uint32_t *in, uint32_t *entry)
{
    const char *const names[] = {attr, "no_bias"}, *const texts[] = {text, "1"};
    const bool dense = !strcmp(op, "FullyConnected");
    const tni_opdef *def;
    tni_attrs *attrs = NULL;
    uint32_t node = 0;
    tn_status st;

    if (!(st = tni_opset_find(n->c->ops, op, &def)) &&
        !(st = tni_attrs_parse(def, attr ? 1u + dense : 0u, names, texts, &attrs)) &&
        !(st = tni_graph_add_node(n->g, def, attrs, op, count, in, &node)))
        *entry = n->g->nodes[node].first_entry;
    tni_attrs_release(attrs);
    return st;
}

static tn_status node_add(net *n, uint32_t i, uint32_t x)
{
    uint32_t in[2] = {x, n->entry[i > FAR ? i - FAR : 0]};
    tn_status st;

    switch (i % 4) {
    case 0:
        if ((st = variable_add(n, "weight", 4, 4, &in[1])))
            return st;
        if (n->constants && (st = op_add(n, "tanh", NULL, NULL, 1, &in[1], &in[1])))
            return st;
        return op_add(n, "FullyConnected", "num_hidden", "4", 2, in, &n->entry[i]);
    case 1:
        return op_add(n, "Activation", "act_type", "tanh", 1, in, &n->entry[i]);
    case 2:
        return op_add(n, "elemwise_add", NULL, NULL, 2, in, &n->entry[i]);
    default:
        return op_add(n, "_mul_scalar", "scalar", "0.5", 1, in, &n->entry[i]);
    }
}

static tn_status net_make(net *n)
{
    tni_device *d[2];
    uint32_t x = 0;
    tn_status st;

    if (!(n->entry = calloc(n->count, sizeof *n->entry)))
        return TN_E_NOMEM;
    if ((st = tni_device_get(n->c->devices, "cpu", 0, &d[0])) ||
        (st = tni_device_get(n->c->devices, "cpu", 1, &d[1])) ||
        (st = tni_kernels_load(n->c->plugins, d[0])) || (st = tni_graph_create(n->c->ops, &n->g)) ||
        (st = variable_add(n, "data", 2, 4, &x)))
        return st;
    n->g->nodes[0].device = d[0];
    for (uint32_t i = 0; i < n->count && !st; i++, x = n->entry[i - 1]) {
        const uint32_t first = n->g->node_count;

        st = node_add(n, i, x);
        for (uint32_t k = first; k < n->g->node_count; k++)
            n->g->nodes[k].device = d[(n->cut && i % 2) || (n->constants && i / 4 % 2)];
    }
    if (!st)
        st = tni_graph_set_heads(n->g, n->heads ? n->count : 1, n->heads ? n->entry : &x);
    return st ? st : tni_graph_infer(n->g, false);
}

static tn_status net_compile(net *n, bool recorded)
{
    const uint32_t variables = n->g->variable_count;
    uint8_t *modes = malloc(variables), *constants = malloc(variables);
    tni_compiled_spec spec = {.ctx = n->c, .graph = n->g, .modes = recorded ? modes : NULL};
    tni_compiled *e = NULL;
    tn_status st = modes && constants ? TN_OK : TN_E_NOMEM;

    if (!st) {
        memset(modes, TN_MODE_WRITE, variables);
        memset(constants, 1, variables);
        constants[0] = 0;
        spec.constants = n->constants ? constants : NULL;
        n->g = NULL; /* moved */
        if (!(st = tni_device_get(n->c->devices, "cpu", 0, &spec.device)))
            st = tni_compiled_create(&spec, &e);
    }
    if (!st)
        (void)fprintf(stderr, "%u instructions, %u segments\n", e->program->code_count,
                      e->program->segment_count);
    tni_compiled_release(e);
    free(modes);
    free(constants);
    return st;
}

/* ---- a tape ------------------------------------------------------------------------------------------ */

static tn_status input_make(const net *n, tni_array **x)
{
    static const int64_t shape[2] = {2, 4};
    static const float values[8] = {1, 2, 3, 4};
    tni_device *d;
    tn_status st;

    if ((st = tni_default_device(n->c, &d)) ||
        (st = tni_array_create(n->c->space, d, TN_F32, 2, shape, "x", x)) ||
        (st = tni_array_write(*x, values, sizeof values)))
        return st;
    return tni_grad_attach(n->c, *x, TN_MODE_WRITE, NULL);
}

static tn_status halve(const net *n, tni_array *x, tni_array **out)
{
    const char *const name[] = {"scalar"}, *const text[] = {"0.5"};

    return tni_invoke_text(n->c, "_mul_scalar", 1, &x, 1, name, text, 1, out, NULL);
}

/* [takes] *y, whose place the product takes. */
static tn_status multiply(const net *n, tni_array **y, tni_array *x)
{
    tni_array *in[2] = {*y, x}, *out = NULL;
    const tn_status st = tni_invoke_text(n->c, "elemwise_mul", 2, in, 0, NULL, NULL, 1, &out, NULL);

    tni_array_release(*y);
    *y = out;
    return st;
}

/* All halves first, or each before the product that reads it. */
static tn_status tape_record(const net *n, tni_array *x, tni_array **y)
{
    const uint32_t pairs = n->count / 2;
    tni_array **half = calloc(pairs + 1u, sizeof *half);
    tn_status st = half ? TN_OK : TN_E_NOMEM;

    tni_array_retain(*y = x);
    for (uint32_t i = 0; i < pairs && !st && n->far; i++)
        st = halve(n, x, &half[i]);
    for (uint32_t i = 0; i < pairs && !st; i++)
        if (n->far || !(st = halve(n, *y, &half[i])))
            st = multiply(n, y, half[i]);
    for (uint32_t i = 0; i < pairs && half; i++)
        tni_array_release(half[i]);
    free(half);
    return st;
}

/* Calls of y = tanh(x * x), one after the other. */
static tn_status calls_record(net *n, tni_array *x, tni_array **y)
{
    tni_cached_op *op = NULL;
    uint32_t in[2], entry = 0;
    tn_status st;

    if ((st = tni_graph_create(n->c->ops, &n->g)) || (st = variable_add(n, "data", 2, 4, &in[0])))
        return st;
    in[1] = in[0];
    if ((st = op_add(n, "elemwise_mul", NULL, NULL, 2, in, &entry)) ||
        (st = op_add(n, "tanh", NULL, NULL, 1, &entry, &entry)) ||
        (st = tni_graph_set_heads(n->g, 1, &entry)))
        return st;
    st = tni_cached_op_of_graph(n->c, n->g, &op);
    n->g = NULL; /* taken */
    tni_array_retain(*y = x);
    for (uint32_t i = 0; i < n->count && !st; i++) {
        tni_array *out = NULL;

        st = tni_cached_op_call(op, 1, y, 1, &out);
        tni_array_release(*y);
        *y = out;
    }
    tni_cached_op_release(op);
    return st;
}

static tn_status tape_run(net *n, bool calls, bool compile)
{
    tni_array *x = NULL, *y = NULL;
    tn_status st = input_make(n, &x);

    tni_scope_get()->recording = true;
    if (!st)
        st = calls ? calls_record(n, x, &y) : tape_record(n, x, &y);
    tni_scope_get()->recording = false;
    if (!st && compile)
        st = tni_backward(n->c, 1, &y, NULL, NULL);
    if (!st)
        st = tni_array_wait(y);
    tni_array_release(x);
    tni_array_release(y);
    return st;
}

int main(int count, char **arg)
{
    const char *way = count == 3 ? arg[1] : "";
    const bool compile = !strstr(way, "-only");
    net n = {.count = count == 3 ? (uint32_t)strtoul(arg[2], NULL, 10) : 0};
    tn_status st;

    n.heads = !strncmp(way, "heads", 5);
    n.constants = !strncmp(way, "constants", 9);
    n.cut = !strncmp(way, "cut", 3);
    n.far = !strncmp(way, "far", 3);
    if (!n.count) {
        (void)fprintf(stderr, "usage: compile_run WAY NODES\n");
        return 2;
    }
    if ((st = context_open(&n.c)))
        return complain(st);
    if (!strncmp(way, "tape", 4) || !strncmp(way, "calls", 5) || n.far)
        st = tape_run(&n, *way == 'c', compile);
    else if (!(st = net_make(&n)) && compile)
        st = net_compile(&n, strncmp(way, "forward", 7) != 0 && !n.constants);
    if (st)
        (void)complain(st);
    tni_graph_destroy(n.g);
    free(n.entry);
    (void)tni_context_close(n.c, 0);
    return st != TN_OK;
}
