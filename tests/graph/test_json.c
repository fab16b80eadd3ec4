/* MXNet's JSON: what is written, what is read of every version, and what is refused. */
#include "graph/support.h"
#include "support/scratch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *json_of(tni_symbol *s)
{
    char *text = NULL;
    tni_str out;

    tni_str_init(&out, TN_TEXT_MAX);
    assert_ok(tni_symbol_to_json(s, &out));
    assert_ok(tni_str_take(&out, &text));
    tni_str_fini(&out);
    return text;
}

static tni_symbol *parse(tni_opset *ops, const char *text)
{
    tni_symbol *s = NULL;

    assert_ok(tni_symbol_from_json(ops, "text", text, strlen(text), &s));
    return s;
}

static void golden_path(char *out, size_t size, const char *name)
{
    const char *source = getenv("TENON_TEST_SOURCE");

    snprintf(out, size, "%s/tests/golden/json/%s", source ? source : ".", name);
}

static char *golden(const char *name)
{
    char path[4096], *text = NULL;
    uint64_t bytes;

    golden_path(path, sizeof path, name);
    assert_ok(tni_file_read_all(path, 1 << 20, &text, &bytes));
    return text;
}

static void squeeze(char *text)
{
    char *to = text;

    for (; *text; text++)
        if (!isspace((unsigned char)*text))
            *to++ = *text;
    *to = '\0';
}

/* Every list that is short on one line, every other one on several. */
static void layout(void **state)
{
    static const char expected[] = "{\n  \"nodes\": [\n    {\n      \"op\": \"null\", \n      \"name\": "
                                   "\"x\", \n      \"attrs\": {\"__shape__\": "
                                   "\"(2, 3)\"}, \n      \"inputs\": []\n    }, \n    {\n      \"op\": "
                                   "\"null\", \n      \"name\": \"fc_weight\", \n"
                                   "      \"attrs\": {\n        \"no_bias\": \"True\", \n        "
                                   "\"num_hidden\": \"10\"\n      }, \n      \"inputs\": "
                                   "[]\n    }, \n    {\n      \"op\": \"FullyConnected\", \n      \"name\": "
                                   "\"fc\", \n      \"attrs\": {\n        "
                                   "\"no_bias\": \"True\", \n        \"num_hidden\": \"10\"\n      }, \n     "
                                   " \"inputs\": [[0, 0, 0], [1, 0, 0]]\n"
                                   "    }\n  ], \n  \"arg_nodes\": [0, 1], \n  \"node_row_ptr\": [0, 1, 2, "
                                   "3], \n  \"heads\": [[2, 0, 0]], \n  "
                                   "\"attrs\": {\"mxnet_version\": [\"int\", 10901]}\n}";
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *s;
    char *text;

    (void)state;
    assert_ok(tni_symbol_attr_set(x, "__shape__", "(2, 3)"));
    s = take1(ops, "FullyConnected", "no_bias=True;num_hidden=10", "fc", x);
    text = json_of(s);
    assert_string_equal(text, expected);
    tni_free(text);
    tni_symbol_release(s);
    test_ops_close(ops);
}

static void round_trips(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *all[4], *x = var(ops, "x\"\\\n\t\x01\x1f\xc3\xa9/"), *again;
    char *a, *b;

    (void)state;
    all[0] = op1(ops, "t_state", NULL, "st", x);
    all[1] = op1(ops, "t_many", "num_args=12", "wide", x);
    all[2] = op1(ops, "t_pair", NULL, "pair", x);
    assert_ok(tni_symbol_group(3, all, &all[3]));
    all[3]->np_shape = true;
    for (int i = 0; i < 4; i++) {
        a = json_of(all[i]);
        again = parse(ops, a);
        assert_int_equal(again->np_shape, i == 3);
        b = json_of(again);
        assert_string_equal(a, b);
        assert_int_equal(again->output_count, all[i]->output_count);
        tni_free(a);
        tni_free(b);
        tni_symbol_release(again);
        tni_symbol_release(all[i]);
    }
    tni_symbol_release(x);
    test_ops_close(ops);
}

/* The order in which nodes were made survives, and is kept only where the file does not show it: random nodes
 * draw in it. */
static void random_order(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *early = op1(ops, "t_draw", NULL, "early", x),
               *late = op1(ops, "t_draw", NULL, "late", x);
    tni_symbol *plain = op2(ops, "t_mul", NULL, "m", early, late),
               *turned = op2(ops, "t_mul", NULL, "m", late, early);
    char *a = json_of(plain), *b = json_of(turned), *c;
    tni_symbol *again = parse(ops, b);
    tni_graph *g = NULL;

    (void)state;
    assert_null(strstr(a, "__creation_index__"));
    assert_non_null(strstr(b, "\"__creation_index__\": \"1\""));
    assert_ok(tni_graph_of(again, &g));
    assert_int_equal(g->nodes[node_of(g, "early")].random, 0);
    assert_int_equal(g->nodes[node_of(g, "late")].random, 1);
    c = json_of(again);
    assert_string_equal(b, c);
    tni_free(a);
    tni_free(b);
    tni_free(c);
    tni_graph_destroy(g);
    tni_symbol *const many[] = {x, early, late, plain, turned, again};
    for (size_t i = 0; i < 6; i++)
        tni_symbol_release(many[i]);
    test_ops_close(ops);
}

/* Nodes that stand where they were made carry nothing; the others are read back to the same order, also after
 * the attribute of random nodes alone. */
static void creation_order(void **state)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    static const char randoms[] =
        "{\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},"
        "{\"op\":\"t_draw\",\"name\":\"a\",\"attrs\":{\"__random_index__\":\"1\"},\"inputs\":[[0,0]]},"
        "{\"op\":\"t_draw\",\"name\":\"b\",\"attrs\":{\"__random_index__\":\"0\"},\"inputs\":[[0,0]]},"
        "{\"op\":\"t_mul\",\"name\":\"m\",\"inputs\":[[1,0],[2,0]]}],\"heads\":[[3,0]]}";
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *s[4], *m, *again, *few;
    char *text, *copy;
    tni_graph *g = NULL;

    (void)state;
    for (int i = 0; i < 4; i++)
        s[i] = op1(ops, "t_pair", NULL, names[i], x);
    assert_ok(tni_symbol_group(4, (tni_symbol *const[]){s[0], s[2], s[1], s[3]}, &m));
    text = json_of(m);
    assert_null(strstr(text, "\"0\"")); /* first and fourth stand where they were made */
    assert_non_null(strstr(text, "\"__creation_index__\": \"2\""));
    assert_non_null(strstr(text, "\"__creation_index__\": \"1\""));
    assert_null(strstr(text, "\"3\""));
    again = parse(ops, text);
    copy = json_of(again);
    assert_string_equal(text, copy);
    assert_ok(tni_graph_of(again, &g));
    for (int i = 1; i < 4; i++)
        assert_true(node_of(g, names[i - 1]) < node_of(g, names[i]));
    tni_graph_destroy(g);
    few = parse(ops, randoms);
    assert_ok(tni_graph_of(few, &g));
    assert_int_equal(g->nodes[node_of(g, "a")].random, 1);
    assert_int_equal(g->nodes[node_of(g, "b")].random, 0);
    tni_graph_destroy(g);
    tni_free(text);
    tni_free(copy);
    tni_symbol *const many[] = {x, s[0], s[1], s[2], s[3], m, again, few};
    for (size_t i = 0; i < 8; i++)
        tni_symbol_release(many[i]);
    test_ops_close(ops);
}

/* Files of every version, against what MXNet 1.9.1 itself makes of them (check_mxnet.py). */
static void old_files(void **state)
{
    static const char *const versions[] = {"0.8", "0.9.3", "0.11", "1.0", "1.9"};
    tni_opset *ops = test_ops();

    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char name[64], path[4096], *mine, *theirs;
        tni_symbol *s = NULL;
        tn_shape shape = {.ndim = 4, .dim = {4, 1, 28, 28}};
        tni_graph *g = NULL;

        snprintf(name, sizeof name, "mxnet-%s-symbol.json", versions[i]);
        golden_path(path, sizeof path, name);
        assert_ok(tni_symbol_load(ops, path, &s));
        assert_names(s, TNI_LIST_ARGUMENTS,
                     "data conv1_weight bn1_gamma bn1_beta fc1_weight fc1_bias softmax_label");
        assert_names(s, TNI_LIST_AUX, "bn1_moving_mean bn1_moving_var");
        mine = json_of(s);
        snprintf(name, sizeof name, "mxnet-%s.upgraded.json", versions[i]);
        theirs = golden(name);
        if (i == 4)
            assert_string_equal(mine, theirs); /* nothing to bring up to date: byte for byte */
        squeeze(mine);
        squeeze(theirs);
        assert_string_equal(mine, theirs);
        assert_ok(tni_graph_of(s, &g));
        assert_ok(tni_graph_preset(g, 0, &shape, TN_F32, -1));
        assert_ok(tni_graph_infer(g, false));
        assert_int_equal(g->shapes[g->nodes[node_of(g, "fc1_weight")].first_entry].dim[1], 2880);
        tni_graph_destroy(g);
        tni_free(mine);
        tni_free(theirs);
        tni_symbol_release(s);
    }
    test_ops_close(ops);
}

static void subgraphs(void **state)
{
    static const char text[] = "{\"nodes\": "
                               "[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"t_fade\",\"name\":"
                               "\"f\",\"inputs\":[[0,0,0]],"
                               "\"subgraphs\":[{\"nodes\":[{\"op\":\"null\",\"name\":\"y\",\"inputs\":[]},{"
                               "\"op\":\"t_draw\",\"name\":\"d\","
                               "\"inputs\":[[0,0,0]]}],\"arg_nodes\":[0],\"heads\":[[1,0,0]]}]}],\"arg_"
                               "nodes\":[0],\"heads\":[[1,0,0]],"
                               "\"attrs\":{\"mxnet_version\":[\"int\",10901],\"note\":[\"str\",\"kept\"]}}";
    tni_opset *ops = test_ops();
    tni_symbol *s = parse(ops, text), *again;
    tni_graph *g = NULL;
    char *a = json_of(s), *b;

    (void)state;
    again = parse(ops, a);
    b = json_of(again);
    assert_string_equal(a, b);
    assert_non_null(strstr(a, "\"note\": [\"str\", \"kept\"]"));
    assert_ok(tni_graph_of(again, &g));
    assert_int_equal(g->random_count, 1); /* the node with a body takes one draw */
    assert_int_equal(g->nodes[1].subgraph_count, 1);
    assert_names(g->nodes[1].subgraphs[0], TNI_LIST_OUTPUTS, "d_output");
    tni_graph_destroy(g);
    tni_free(a);
    tni_free(b);
    tni_symbol_release(s);
    tni_symbol_release(again);
    test_ops_close(ops);
}

#define X "{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}"
#define FILE_OF(nodes, heads) "{\"nodes\":[" nodes "],\"arg_nodes\":[],\"heads\":[" heads "]}"
#define DRAW(key, text)                                                                                      \
    ",{\"op\":\"t_draw\",\"name\":\"m\",\"attrs\":{\"" key "\":\"" text "\"},\"inputs\":[[0,0]]}"

#define BACK "{\"op\":\"_backward_softmax\",\"name\":\"b\",\"inputs\":[[0,0,0],[0,0,0]]}"
#define REORDER "{\"op\":\"_reorder\",\"name\":\"r\",\"inputs\":[[0,0,0]]}"
#define GRAPH_OF(node, attrs)                                                                                \
    "{\"nodes\":[" X "," node "],\"arg_nodes\":[0],\"heads\":[[1,0,0]],"                                     \
    "\"attrs\":{\"mxnet_version\":[\"int\",10901]" attrs "}}"
#define BODY_OF(node)                                                                                        \
    "{\"op\":\"t_fade\",\"name\":\"f\",\"inputs\":[[0,0,0]],"                                                \
    "\"subgraphs\":[{\"nodes\":[" X "," node "],\"arg_nodes\":[0],\"heads\":[[1,0,0]]}]}"

/* No file names what only passes make, marked or not. */
static void programs(void **state)
{
    static const char *const texts[] = {
        GRAPH_OF(REORDER, ""),
        GRAPH_OF(REORDER, ",\"tenon_gradients\":[\"int\",1]"),
        GRAPH_OF(BODY_OF(REORDER), ",\"tenon_gradients\":[\"int\",1]"),
    };
    tni_opset *ops = test_ops();
    tni_symbol *s = NULL;
    tn_err err;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_fails(TN_E_UNSUPPORTED, "\"r\": operator _reorder is a part of compiled programs",
                     tni_symbol_from_json(ops, "text", texts[i], strlen(texts[i]), &s));
        tni_error_get(&err);
        assert_int_equal(err.number, 1303);
        assert_null(s);
    }
    test_ops_close(ops);
}

/* Parts of gradients stand in files that Tenon saved as such: those say so, and say it again. */
static void gradients(void **state)
{
    static const char *const marked[] = {
        GRAPH_OF(BACK, ",\"tenon_gradients\":[\"int\",1]"),
        GRAPH_OF(BODY_OF(BACK), ",\"tenon_gradients\":[\"int\",1]"),
    };
    static const char *const others[] = {
        GRAPH_OF(BACK, ""),
        GRAPH_OF(BACK, ",\"tenon_gradients\":[\"int\",0]"),
        GRAPH_OF(BACK, ",\"tenon_gradients\":1"),
        GRAPH_OF(BODY_OF(BACK), ""),
    };
    tni_opset *ops = test_ops();
    tni_symbol *s = NULL;
    tn_err err;
    char *text;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_fails(TN_E_UNSUPPORTED, "\"b\": operator _backward_softmax is a part of gradients",
                     tni_symbol_from_json(ops, "text", others[i], strlen(others[i]), &s));
        tni_error_get(&err);
        assert_int_equal(err.number, 1303);
        assert_null(s);
    }
    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++) {
        tni_symbol *first = parse(ops, marked[i]), *again;
        char *a = json_of(first), *b;

        assert_non_null(strstr(a, "\"tenon_gradients\": [\"int\", 1]"));
        again = parse(ops, a);
        b = json_of(again);
        assert_string_equal(a, b);
        tni_free(a);
        tni_free(b);
        tni_symbol_release(first);
        tni_symbol_release(again);
    }
    s = parse(ops, GRAPH_OF("{\"op\":\"t_fade\",\"name\":\"f\",\"inputs\":[[0,0,0]]}",
                            ",\"tenon_gradients\":[\"int\",1]"));
    text = json_of(s);
    assert_null(strstr(text, "tenon_gradients")); /* nothing in it needs the permission */
    tni_free(text);
    tni_symbol_release(s);
    test_ops_close(ops);
}

/* An extent of 0 that says 0 says so in the file, where 0 stands for what users tell otherwise. */
static void zero_extents(void **state)
{
    static const char *const ops_of[] = {"_zeros", "_random_uniform"};
    tni_opset *ops = test_ops();

    (void)state;
    for (size_t i = 0; i < sizeof ops_of / sizeof *ops_of; i++) {
        const char *names[] = {"shape"}, *texts[] = {"(0,3)"};
        tni_symbol *open = NULL, *s = NULL, *again;
        tni_graph *g = NULL;
        char *a, *b;

        assert_ok(tni_symbol_atomic(ops, ops_of[i], 1, names, texts, "z", &open));
        assert_ok(tni_symbol_compose(open, "z", 0, NULL, NULL, &s));
        a = json_of(s);
        again = parse(ops, a);
        b = json_of(again);
        assert_string_equal(a, b);
        assert_ok(tni_graph_of(again, &g));
        assert_ok(tni_graph_infer(g, false));
        assert_int_equal(g->shapes[0].ndim, 2);
        assert_true(g->shapes[0].dim[0] == 0 && g->shapes[0].dim[1] == 3);
        tni_graph_destroy(g);
        tni_free(a);
        tni_free(b);
        tni_symbol_release(open);
        tni_symbol_release(s);
        tni_symbol_release(again);
    }
    test_ops_close(ops);
}

static void refusals(void **state)
{
    static const struct {
        tn_status status;
        const char *part, *text;
    } cases[] = {
        {TN_E_FORMAT, "text:1:", "{"},
        {TN_E_FORMAT, "text:1:", ""},
        {TN_E_FORMAT, "object", "[]"},
        {TN_E_FORMAT, "\"nodes\"", "{}"},
        {TN_E_FORMAT, "\"nodes\"", FILE_OF("", "[0,0,0]")},
        {TN_E_FORMAT, "\"heads\"", FILE_OF(X, "")},
        {TN_E_FORMAT, "head 0", FILE_OF(X, "[1,0,0]")},
        {TN_E_FORMAT, "head 0", FILE_OF(X, "[0,1,0]")},
        {TN_E_FORMAT, "head 0", FILE_OF(X, "[0,0,0,0]")},
        {TN_E_FORMAT, "head 0", FILE_OF(X, "[-1,0,0]")},
        {TN_E_FORMAT, "head 0", FILE_OF(X, "[0.5,0,0]")},
        {TN_E_FORMAT, "head 0", FILE_OF(X, "7")},
        {TN_E_FORMAT, "node 0", FILE_OF("7", "[0,0]")},
        {TN_E_FORMAT, "node 0 \"\"", FILE_OF("{\"op\":\"null\"}", "[0,0]")},
        {TN_E_FORMAT, "node 0 \"x\": a variable has inputs",
         FILE_OF("{\"op\":\"null\",\"name\":\"x\",\"inputs\":[[0,0]]}", "[0,0]")},
        {TN_E_FORMAT, "node 1 \"m\": input 1",
         FILE_OF(X ",{\"op\":\"t_mul\",\"name\":\"m\",\"inputs\":[[0,0],[1,0]]}", "[1,0]")},
        {TN_E_FORMAT, "node 1 \"m\"", FILE_OF(X ",{\"op\":\"t_mul\",\"name\":\"m\",\"inputs\":7}", "[1,0]")},
        {TN_E_FORMAT, "node 1 \"m\"",
         FILE_OF(X ",{\"op\":\"t_mul\",\"name\":\"m\",\"inputs\":[[0,0],[0,0],[0,0]]}", "[1,0]")},
        {TN_E_KEY, "node 1 \"foo\": there is no operator t_mull",
         FILE_OF(X ",{\"op\":\"t_mull\",\"name\":\"foo\",\"inputs\":[]}", "[1,0]")},
        {TN_E_ATTR, "node 1 \"m\"",
         FILE_OF(X ",{\"op\":\"t_mul\",\"name\":\"m\",\"attrs\":{\"scale\":\"2\"},\"inputs\":[[0,0],[0,0]]}",
                 "[1,0]")},
        {TN_E_FORMAT, "is no text",
         FILE_OF("{\"op\":\"null\",\"name\":\"x\",\"attrs\":{\"a\":1},\"inputs\":[]}", "[0,0]")},
        {TN_E_FORMAT, "is no object",
         FILE_OF("{\"op\":\"null\",\"name\":\"x\",\"attrs\":[],\"inputs\":[]}", "[0,0]")},
        {TN_E_FORMAT, "control_deps",
         FILE_OF("{\"op\":\"null\",\"name\":\"x\",\"inputs\":[],\"control_deps\":[0]}", "[0,0]")},
        {TN_E_FORMAT, "subgraphs",
         FILE_OF(X ",{\"op\":\"t_fade\",\"name\":\"m\",\"inputs\":[[0,0]],\"subgraphs\":{}}", "[1,0]")},
        {TN_E_FORMAT, "\"nodes\"",
         FILE_OF(X ",{\"op\":\"t_fade\",\"name\":\"m\",\"inputs\":[[0,0]],\"subgraphs\":[{}]}", "[1,0]")},
        {TN_E_FORMAT, "__creation_index__", FILE_OF(X DRAW("__creation_index__", "-2"), "[1,0]")},
        {TN_E_FORMAT, "__random_index__", FILE_OF(X DRAW("__random_index__", "x"), "[1,0]")},
        {TN_E_FORMAT, "arg_nodes", "{\"nodes\":[" X "],\"arg_nodes\":[1],\"heads\":[[0,0]]}"},
        {TN_E_FORMAT, "arg_nodes", "{\"nodes\":[" X "],\"arg_nodes\":1,\"heads\":[[0,0]]}"},
        {TN_E_FORMAT, "mxnet_version",
         "{\"nodes\":[" X "],\"heads\":[[0,0]],\"attrs\":{\"mxnet_version\":\"1.9\"}}"},
        {TN_E_FORMAT, "\"attrs\"", "{\"nodes\":[" X "],\"heads\":[[0,0]],\"attrs\":[]}"},
        {TN_E_FORMAT, "must be a variable",
         FILE_OF(X ",{\"op\":\"t_fade\",\"name\":\"f\",\"inputs\":[[0,0]]},{\"op\":\"t_state\",\"name\":"
                   "\"s\",\"inputs\":[[0,0],[1,0]]}",
                 "[2,0]")},
    };
    tni_opset *ops = test_ops();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tni_symbol *s = NULL;

        assert_fails(cases[i].status, cases[i].part,
                     tni_symbol_from_json(ops, "text", cases[i].text, strlen(cases[i].text), &s));
        assert_null(s);
    }
    test_ops_close(ops);
}

/* What is refused for its size alone. */
static void too_much(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *s = NULL;
    size_t bytes = 4 << 20, at = 0;
    char *text = malloc(bytes);

    (void)state;
    memset(text, '[', 300);
    assert_fails(TN_E_FORMAT, "deep", tni_symbol_from_json(ops, "text", text, 300, &s));
    at = (size_t)snprintf(
        text, bytes,
        "{\"nodes\":[" X
        ",{\"op\":\"t_many\",\"name\":\"m\",\"attrs\":{\"num_args\":\"4096\"},\"inputs\":[[0,0]");
    for (int i = 0; i < 4096; i++)
        at += (size_t)snprintf(text + at, bytes - at, ",[0,0]");
    snprintf(text + at, bytes - at, "]}],\"heads\":[[1,0]]}");
    assert_fails(TN_E_FORMAT, "node 1", tni_symbol_from_json(ops, "text", text, strlen(text), &s));
    at = (size_t)snprintf(text, bytes, "{\"nodes\":[{\"op\":\"null\",\"name\":\"");
    memset(text + at, 'n', 5000);
    snprintf(text + at + 5000, bytes - at - 5000, "\",\"inputs\":[]}],\"heads\":[[0,0]]}");
    assert_fails(TN_E_FORMAT, "5000 bytes", tni_symbol_from_json(ops, "text", text, strlen(text), &s));
    free(text);
    test_ops_close(ops);
}

/* One change of `text`; the last kind leaves JSON what it is,
 * so that the reader behind the parser sees it. */
static void change(char *text, size_t *bytes, int kind, uint64_t *seed)
{
    size_t at = test_random(seed) % *bytes, from = test_random(seed) % *bytes, n = 1 + test_random(seed) % 8;

    if (kind == 0)
        text[at] = (char)test_random(seed);
    else if (kind == 1)
        text[at] = "0123456789[]{},:\"-"[test_random(seed) % 18];
    else if (kind == 2)
        memmove(text + at, text + from, n < *bytes - (at > from ? at : from) ? n : 1);
    else if (kind == 3)
        *bytes = at + 1;
    else if ((at += strcspn(text + at, "0123456789")) < *bytes)
        text[at] = (char)('1' + test_random(seed) % 9);
}

/* Changed files: each is read or refused, nothing else; what is read can be flattened and written. */
static void mutations(void **state)
{
    static const char *const files[] = {"mxnet-0.8-symbol.json", "mxnet-0.9.3-symbol.json",
                                        "mxnet-1.9-symbol.json"};
    const char *given = getenv("TENON_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 3, start = seed;
    tni_opset *ops = test_ops();
    uint32_t read = 0;

    (void)state;
    for (int run = 0; run < 1200; run++) {
        char *text = golden(files[run % 3]);
        size_t bytes = strlen(text);
        tni_symbol *s = NULL;

        for (uint32_t k = 1 + test_random(&seed) % 4; k > 0; k--)
            change(text, &bytes, run % 5, &seed);
        if (tni_symbol_from_json(ops, "text", text, bytes, &s) == TN_OK) {
            tni_graph *g = NULL;
            char *out = json_of(s);

            read++;
            if (tni_graph_of(s, &g) == TN_OK) {
                assert_ok(tni_graph_verify(g));
                tni_graph_infer(g, true);
            }
            tni_graph_destroy(g);
            tni_free(out);
        } else if (!*tn_error_text()) {
            fail_msg("no text for an error; TENON_SEED=%llu, run %d", (unsigned long long)start, run);
        }
        tni_symbol_release(s);
        tni_free(text);
    }
    if (read <= 20)
        print_error("%u of them are read; TENON_SEED=%llu\n", read, (unsigned long long)start);
    assert_true(read > 20); /* the changes are not all fatal, or this would test jansson only */
    test_ops_close(ops);
}

/* Allocation 1, 2, 3 … fails: a clean refusal each time, and nothing is left behind. */
static void allocation_failures(void **state)
{
    static const char *const files[] = {"mxnet-0.8-symbol.json", "mxnet-1.9-symbol.json"};
    tni_opset *ops = test_ops();

    (void)state;
    for (size_t f = 0; f < 2; f++) {
        char *text = golden(files[f]);
        bool failed = true;

        for (uint64_t nth = 1; failed; nth++) {
            tni_symbol *s = NULL;
            tni_graph *g = NULL;
            tni_mem_stats before, after;
            uint32_t wanted = 0, head = 0, grad = 0;
            tni_gradient_spec spec = {.wanted = &wanted, .wanted_count = 1};
            tn_status st;
            tni_str out;

            tni_mem_stats_get(&before);
            tni_str_init(&out, TN_TEXT_MAX);
            tni_mem_fail_at(nth, false, true);
            (void)((st = tni_symbol_from_json(ops, "text", text, strlen(text), &s)) ||
                   (st = tni_symbol_to_json(s, &out)) || (st = tni_graph_of(s, &g)) ||
                   (st = tni_graph_infer(g, true)) || (st = tni_graph_gradient(g, &spec, &head, &grad)));
            failed = tni_mem_failed();
            tni_mem_fail_at(0, false, true);
            assert_int_equal(st, failed ? TN_E_NOMEM : TN_OK);
            if (g)
                assert_ok(tni_graph_verify(g));
            tni_graph_destroy(g);
            tni_symbol_release(s);
            tni_str_fini(&out);
            tni_mem_stats_get(&after);
            assert_int_equal(before.live_count, after.live_count);
        }
        tni_free(text);
    }
    test_ops_close(ops);
}

static void save_and_load(void **state)
{
    const char *path = scratch_path("saved.json");
    tni_opset *ops = test_ops();
    tni_symbol *s = take1(ops, "t_pair", NULL, "p", var(ops, "x")), *again = NULL;

    (void)state;
    assert_ok(tni_symbol_save(s, path));
    assert_ok(tni_symbol_load(ops, path, &again));
    assert_names(again, TNI_LIST_OUTPUTS, "p_first p_second");
    unlink(path);
    assert_int_equal(tni_symbol_save(s, "/nowhere/at/all.json"), TN_E_IO);
    tni_symbol_release(s);
    tni_symbol_release(again);
    again = NULL;
    assert_int_equal(tni_symbol_load(ops, path, &again), TN_E_IO);
    test_ops_close(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),        cmocka_unit_test(round_trips),
        cmocka_unit_test(zero_extents),  cmocka_unit_test(random_order),
        cmocka_unit_test(old_files),     cmocka_unit_test(subgraphs),
        cmocka_unit_test(gradients),     cmocka_unit_test(programs),
        cmocka_unit_test(random_order),  cmocka_unit_test(creation_order),
        cmocka_unit_test(old_files),     cmocka_unit_test(subgraphs),
        cmocka_unit_test(refusals),      cmocka_unit_test(too_much),
        cmocka_unit_test(mutations),     cmocka_unit_test(allocation_failures),
        cmocka_unit_test(save_and_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
