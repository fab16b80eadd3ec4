/*
 * tenon viz: tables and pictures of nets and runs, and files that mean harm. What is deterministic is
 * compared with tests/golden/viz (TENON_UPDATE=1 writes it anew).
 */
#include "tool.h"

#include <ctype.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAYS(s, exit_code)                                                                                   \
    do {                                                                                                     \
        if ((s)->code != (exit_code))                                                                        \
            fail_msg("exit %d, not %d: %s%s", (s)->code, (exit_code), (s)->out, (s)->err);                   \
    } while (0)

static bool update; /* write golden files anew */

static char *big_file(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t size = 64u << 20, n;
    char *text = malloc(size);

    assert_non_null(file);
    assert_non_null(text);
    n = fread(text, 1, size - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* ---- is it XML? ---- */

/* Text up to `end`: entities are known, nothing that may not stand there. */
static const char *xml_text(const char *at, char end)
{
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};

    while (*at && *at != end) {
        bool known = *at != '&';

        for (size_t i = 0; i < sizeof entities / sizeof *entities && !known; i++)
            known = !strncmp(at, entities[i], strlen(entities[i]));
        if (!known || *at == '<' || (unsigned char)*at == 0x7f || ((unsigned char)*at < 0x20 && *at != '\n'))
            fail_msg("no XML at: %.60s", at);
        at++;
    }
    return at;
}

/* A well-formed document of one element, without a declaration or comments. */
static void xml_check(const char *text)
{
    char open[16][16];
    size_t depth = 0, roots = 0;

    while (*text) {
        char name[16] = "";
        bool closes = text[0] == '<' && text[1] == '/', empty = false;

        if (*text != '<') {
            text = xml_text(text, '<');
            continue;
        }
        text += closes ? 2 : 1;
        for (size_t n = 0; n + 1 < sizeof name && isalpha((unsigned char)*text); n++)
            name[n] = *text++;
        assert_true(name[0] != '\0');
        while (*text == ' ') {
            while (*text && *text != '=') /* strcspn() is slow on large texts under a sanitizer */
                text++;
            assert_true(text[0] == '=' && text[1] == '"');
            text = xml_text(text + 2, '"') + 1;
        }
        if ((empty = *text == '/'))
            text++;
        assert_int_equal(*text++, '>');
        if (closes)
            assert_true(depth && !strcmp(open[--depth], name));
        else if (!empty) {
            roots += !depth;
            assert_true(depth < 16);
            (void)snprintf(open[depth++], sizeof *open, "%s", name);
        }
    }
    assert_int_equal(depth, 0);
    assert_int_equal(roots, 1);
}

static void golden(const char *name, const char *text)
{
    const char *root = getenv("TENON_TEST_SOURCE");
    char path[4096], *want;

    (void)snprintf(path, sizeof path, "%s/tests/golden/viz/%s", root ? root : ".", name);
    if (update)
        file_write(path, text);
    want = tool_file(path);
    assert_string_equal(text, want);
    free(want);
}

/* ---- files for it ---- */

/* A chain of `count` relus behind "data", with an addition over `skip` nodes at every tenth. */
static void chain_write(const char *path, int count, int skip)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs("{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}", file);
    for (int i = 1; i <= count; i++)
        if (i % 10 == 0 && i > skip)
            fprintf(file,
                    ", {\"op\": \"elemwise_add\", \"name\": \"add%d\", \"inputs\": [[%d, 0, 0], [%d, 0, 0]]}",
                    i, i - 1, i - skip);
        else
            fprintf(file,
                    ", {\"op\": \"Activation\", \"name\": \"act%d\", \"attrs\": {\"act_type\": \"relu\"}, "
                    "\"inputs\": "
                    "[[%d, 0, 0]]}",
                    i, i - 1);
    fprintf(file, "], \"arg_nodes\": [0], \"heads\": [[%d, 0, 0]]}\n", count);
    fclose(file);
}

/* ---- tables ---- */

static void summary(void **state)
{
    const tool_said *s =
        tool("LC_ALL=C \"$T\" viz zoo:lenet --summary --shape data=64,1,28,28 --set "
             "model.pad=0 --set kernel.prefer=cpu --set engine.threads=2"); /* each takes its room */
    json_t *o;

    (void)state;
    SAYS(s, 0);
    assert_string_equal(s->err, "");
    golden("lenet-summary.txt", s->out);
    s = tool("\"$T\" viz zoo:lenet --json --shape 64,1,28,28 --set model.pad=0");
    SAYS(s, 0);
    o = tool_json(s, 0);
    assert_int_equal(json_integer_value(json_object_get(o, "parameters")), 431080);
    assert_true(json_number_value(json_object_get(o, "macs_per_sample")) == 2293000);
    assert_int_equal(json_integer_value(json_object_get(o, "batch")), 64);
    assert_int_equal(json_array_size(json_object_get(o, "layers")), 10);
    json_decref(o);
    s = tool("LC_ALL=C.UTF-8 \"$T\" viz zoo:lenet --shape 64,1,28,28");
    assert_true(strstr(s->out, "64\xc3\x97"
                               "20") ||
                strstr(s->out, "64x20")); /* where the locale is there */
}

/* Blocks that live at once must not overlap, and the arena is as large as the highest end. */
static void blocks_check(const json_t *tensors, json_int_t planned)
{
    size_t i, k;
    json_t *a, *b;
    json_int_t highest = 0;

#define NUMBER(o, key) json_integer_value(json_object_get(o, key))
    json_array_foreach(tensors, i, a)
    {
        const char *kind = json_string_value(json_object_get(a, "kind"));

        if (NUMBER(a, "root") != (json_int_t)i || !strcmp(kind, "input") || !strcmp(kind, "output") ||
            !strcmp(kind, "unused") || !strcmp(kind, "gradient"))
            continue;
        highest = NUMBER(a, "offset") + NUMBER(a, "bytes") > highest
                      ? NUMBER(a, "offset") + NUMBER(a, "bytes")
                      : highest;
        json_array_foreach(tensors, k, b)
        {
            const char *other = json_string_value(json_object_get(b, "kind"));
            const bool together =
                NUMBER(a, "first") <= NUMBER(b, "last") && NUMBER(b, "first") <= NUMBER(a, "last");

            if (k <= i || NUMBER(b, "root") != (json_int_t)k || !strcmp(other, "input") ||
                !strcmp(other, "output") || !strcmp(other, "unused") || !strcmp(other, "gradient") ||
                !together)
                continue;
            assert_true(NUMBER(a, "offset") + NUMBER(a, "bytes") <= NUMBER(b, "offset") ||
                        NUMBER(b, "offset") + NUMBER(b, "bytes") <= NUMBER(a, "offset"));
        }
    }
    assert_true(highest <= planned && planned - highest < 64);
#undef NUMBER
}

static void memory(void **state)
{
    static const char *const modes[] = {"", "--train"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char line[256], *svg;
        const tool_said *s;
        json_t *o;

        (void)snprintf(line, sizeof line,
                       "\"$T\" viz zoo:lenet --memory --json --shape 8,1,28,28 -o m.svg "
                       "--set compile.passes_off=fuse,layout %s",
                       modes[i]);
        s = tool(line);
        SAYS(s, 0);
        o = tool_json(s, 0);
        assert_true(json_integer_value(json_object_get(o, "planned")) >=
                    json_integer_value(json_object_get(o, "bound")));
        /* Flatten makes none; in training the backward comes behind */
        assert_true(i ? json_array_size(json_object_get(o, "instructions")) > 2 * 9 - 1
                      : json_array_size(json_object_get(o, "instructions")) == 9);
        assert_int_equal(system("grep -q '>conv0_.* [KM]iB</text>' m.svg"), 0); /* labels */
        blocks_check(json_object_get(o, "tensors"), json_integer_value(json_object_get(o, "planned")));
        json_decref(o);
        svg = tool_file("m.svg");
        xml_check(svg);
        assert_says(svg, "lenet_conv0_fwd: arena");
        free(svg);
    }
    SAYS(tool("\"$T\" viz zoo:lenet --memory --shape 8,1,28,28"), 0);
}

static void breaks(void **state)
{
    const tool_said *s = tool("\"$T\" viz zoo:lenet --breaks --shape 1,1,28,28");
    json_t *o;

    (void)state;
    SAYS(s, 0);
    assert_string_equal(s->out, "no node breaks the graph\n");
    s = tool("\"$T\" viz zoo:lenet --breaks --json");
    SAYS(s, 0);
    o = tool_json(s, 0);
    assert_true(json_is_false(json_object_get(o, "shapes_known")));
    assert_int_equal(json_array_size(json_object_get(o, "breaks")), 0);
    json_decref(o);
}

static const json_t *pass_of(const json_t *o, const char *name)
{
    const json_t *list = json_object_get(o, "passes");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name))
            return json_array_get(list, i);
    fail_msg("no pass %s", name);
    return NULL;
}

static size_t steps_of(const json_t *o, const char *phase)
{
    const json_t *list = json_object_get(o, "instructions");
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        count += !strcmp(json_string_value(json_object_get(json_array_get(list, i), "phase")), phase);
    return count;
}

/* conv -> BatchNorm -> relu: the norm goes into the weights, which is done once. */
static void passes(void **state)
{
    static const char net[] =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},"
        "{\"op\": \"null\", \"name\": \"c_weight\", \"inputs\": []},"
        "{\"op\": \"Convolution\", \"name\": \"c\", \"inputs\": [[0, 0, 0], [1, 0, 0]],"
        "\"attrs\": {\"kernel\": \"(3, 3)\", \"num_filter\": \"4\", \"no_bias\": \"True\"}},"
        "{\"op\": \"null\", \"name\": \"b_gamma\", \"inputs\": []},"
        "{\"op\": \"null\", \"name\": \"b_beta\", \"inputs\": []},"
        "{\"op\": \"null\", \"name\": \"b_moving_mean\", \"inputs\": []},"
        "{\"op\": \"null\", \"name\": \"b_moving_var\", \"inputs\": []},"
        "{\"op\": \"BatchNorm\", \"name\": \"b\", \"inputs\": [[2, 0, 0], [3, 0, 0], [4, 0, 0], [5, 0, 1],"
        "[6, 0, 1]]}, {\"op\": \"relu\", \"name\": \"r\", \"inputs\": [[7, 0, 0]]}],"
        "\"arg_nodes\": [0, 1, 3, 4, 5, 6], \"heads\": [[8, 0, 0]], \"attrs\": {\"mxnet_version\": [\"int\", "
        "10901]}}";
    const tool_said *s;
    json_t *o;

    (void)state;
    file_write("folds.json", net);
    s = tool(
        "\"$T\" viz folds.json --passes --json --shape data=1,3,8,8 --set compile.passes_off=fuse,layout");
    SAYS(s, 0);
    o = tool_json(s, 0);
    assert_int_equal(json_integer_value(json_object_get(pass_of(o, "fold"), "changes")), 1);
    assert_true(json_is_true(json_object_get(pass_of(o, "fuse"), "off")));
    assert_string_equal(json_string_value(json_object_get(pass_of(o, "fold"), "kind")), "bounded");
    assert_int_equal(steps_of(o, "once"), 2);
    assert_int_equal(steps_of(o, "forward"), 2);
    assert_true(json_integer_value(json_object_get(o, "constant_bytes")) >= 4 * (4 * 27 + 4));
    json_decref(o);
    s = tool("\"$T\" viz folds.json --passes --json --train --shape data=1,3,8,8");
    SAYS(s, 0);
    o = tool_json(s, 0);
    assert_int_equal(json_integer_value(json_object_get(pass_of(o, "fold"), "changes")), 0);
    assert_true(steps_of(o, "backward") >= 2 && !steps_of(o, "once"));
    json_decref(o);
    s = tool("\"$T\" viz folds.json --passes --shape data=1,3,8,8");
    SAYS(s, 0);
    assert_says(s->out, "constants  exact");
}

/* ---- pictures ---- */

static void graph(void **state)
{
    const tool_said *s = tool("\"$T\" viz zoo:lenet --graph --shape 1,1,28,28");
    char *svg, *again;
    json_t *o;

    (void)state;
    SAYS(s, 0);
    golden("lenet.dot", s->out);
    SAYS(tool("\"$T\" viz zoo:lenet --graph --shape 1,1,28,28 -o g.dot"), 0);
    svg = tool_file("g.dot");
    golden("lenet.dot", svg);
    free(svg);
    SAYS(tool("\"$T\" viz zoo:lenet --graph --shape 1,1,28,28 -o g.svg"), 0);
    SAYS(tool("\"$T\" viz zoo:lenet --graph --shape 1,1,28,28 -o h.svg"), 0);
    svg = tool_file("g.svg");
    again = tool_file("h.svg");
    xml_check(svg);
    assert_string_equal(svg, again);
    free(svg);
    free(again);
    s = tool("\"$T\" viz zoo:lenet --graph --all --json -o g.svg");
    SAYS(s, 0);
    o = tool_json(s, 0);
    assert_int_equal(json_array_size(json_object_get(o, "nodes")), 19);
    assert_int_equal(json_integer_value(json_object_get(o, "edges")), 18);
    json_decref(o);
    /* a picture that cannot be written leaves nothing, and what was there stays */
    s = tool("\"$T\" viz zoo:lenet --graph -o /proc/nowhere/g.svg");
    SAYS(s, 1);
    assert_says(s->err, "/proc/nowhere/g.svg: No such file");
    /* a pipe is written to and stays one, as devices do; a link stays a link */
    SAYS(tool("mkfifo pipe && { cat pipe >piped.svg & } && \"$T\" viz zoo:lenet --graph -o pipe "
              "&& wait && "
              "test -p pipe"),
         0);
    svg = tool_file("piped.svg");
    xml_check(svg);
    free(svg);
    SAYS(tool("ln -s h.svg link.svg && \"$T\" viz zoo:lenet --graph -o link.svg && test -L link.svg"), 0);
    SAYS(tool("mkdir -p l && ln -s l/one.svg far.svg && ln -s ../two.svg l/one.svg && \"$T\" viz zoo:lenet "
              "--graph "
              "-o far.svg && test -L far.svg && test -L l/one.svg && test ! -L two.svg && cmp two.svg h.svg"),
         0);
    SAYS(
        tool("ln -s loop.svg loop.svg; \"$T\" viz zoo:lenet --graph -o loop.svg && exit 9; test -L loop.svg"),
        0);
    SAYS(tool("mkdir -p d/g.svg && ! \"$T\" viz zoo:lenet --graph -o d/g.svg && test \"$(ls d)\" = g.svg"),
         0);
}

static void large_graphs(void **state)
{
    char *svg;

    (void)state;
    chain_write("wide-symbol.json", 1000, 35);
    SAYS(tool("\"$T\" viz wide-symbol.json --graph -o wide.svg"), 0);
    svg = big_file("wide.svg");
    xml_check(svg);
    assert_says(svg, "add1000");
    free(svg);
    /* What goes as deep as the net would end here as it does with four times as much of both. */
#define DEEP "ulimit -s 2048; exec \"$T\" viz deep-symbol.json "
    chain_write("deep-symbol.json", 25000, 60); /* further than edges are led by bends */
    SAYS(tool(DEEP "--graph -o deep.svg"), 0);
    svg = big_file("deep.svg");
    xml_check(svg);
    free(svg);
    SAYS(tool("rm -f deep.svg wide.svg; " DEEP "--breaks"), 0);
    SAYS(tool(DEEP "--shape 2,3 >sum.txt"), 0);
    SAYS(tool("test $(wc -l <sum.txt) = 25003"), 0);
#undef DEEP
}

static void curves(void **state)
{
    const tool_said *s;
    json_t *o;
    char *svg;

    (void)state;
    (void)mkdir("run", 0777);
    file_write(
        "run/metrics.jsonl",
        "{\"epoch\":1,\"step\":10,\"loss\":2.0,\"accuracy\":0.4,\"valid_loss\":1.9,\"valid_accuracy\":0.5}\n"
        "{\"epoch\":2,\"step\":20,\"loss\":1.0,\"accuracy\":0.7,\"valid_loss\":null,\"valid_accuracy\":0.6}\n"
        "{\"epoch\":3,\"step\":30,\"loss\":0.5,\"accuracy\":0.9,\"valid_loss\":0.8,\"valid_accuracy\":0.8}\n"
        "{\"epoch\":4,\"st");
    s = tool("\"$T\" viz run --curves");
    SAYS(s, 0);
    xml_check(s->out);
    SAYS(tool("\"$T\" viz run --curves -o c.svg"), 0);
    svg = tool_file("c.svg");
    xml_check(svg);
    free(svg);
    s = tool("\"$T\" viz run --curves --json");
    o = tool_json(s, 0);
    assert_int_equal(json_array_size(json_object_get(o, "epochs")), 3);
    json_decref(o);
    s = tool("LC_ALL=C COLUMNS=60 \"$T\" viz run --curves --term");
    SAYS(s, 0);
    golden("curves-ascii.txt", s->out);
    s = tool("LC_ALL=C.UTF-8 COLUMNS=60 \"$T\" viz run --curves --term");
    SAYS(s, 0);
    assert_says(s->out, "epoch 1 to 3");
    file_write("run/metrics.jsonl", "nothing\n[1,2]\n{\"epoch\":\"x\"}\n");
    s = tool("\"$T\" viz run --curves");
    SAYS(s, 1);
    assert_says(s->err, "no finished epoch");
    assert_string_equal(s->out, "");
    SAYS(tool("\"$T\" viz nothing-of-this-name --curves"), 2);
}

/* A run folder tells the shape of its data. */
static void run_folder(void **state)
{
    const tool_said *s;

    (void)state;
    tool_data("small", 40);
    SAYS(tool("\"$T\" train zoo:lenet --data \"$PWD/small\" --epochs 1 --batch 20 --quiet --out trained"), 0);
    s = tool("LC_ALL=C \"$T\" viz trained");
    SAYS(s, 0);
    assert_says(s->out, "1x20x8x8");
    SAYS(tool("\"$T\" viz trained --memory && \"$T\" viz trained --curves --term"), 0);
    SAYS(tool("mv small moved && \"$T\" viz trained"), 2);
    SAYS(tool("echo '{' >trained/run.json; \"$T\" viz trained --shape 1,1,8,8"), 0);
}

/* ---- what means harm ---- */

static void bad_arguments(void **state)
{
    static const struct {
        const char *line, *says;
        int code;
    } rows[] = {
        {"\"$T\" viz", "argument is missing", 2},
        {"\"$T\" viz zoo:lenet", "give --shape data=", 2},
        {"\"$T\" viz zoo:lenet --memory", "give --shape data=", 2},
        {"\"$T\" viz zoo:lente --shape 1,1,28,28", "did you mean", 2},
        {"\"$T\" viz zoo:lenet --summary --graph", "at a time", 2},
        {"\"$T\" viz zoo:lenet --passes --memory", "at a time", 2},
        {"\"$T\" viz zoo:lenet --passes", "give --shape data=", 2},
        {"\"$T\" viz zoo:lenet --passes --shape 1,1,28,28 -o p.svg", "-o is for pictures", 2},
        {"\"$T\" viz zoo:lenet --passes --shape 1,1,28,28 --set compile.passes_off=plan", "no pass that can",
         2},
        {"\"$T\" viz zoo:lenet --shape dta=1,1,28,28", "dta", 2},
        {"\"$T\" viz zoo:lenet --shape 1,1,28", "lenet_conv0", 2},
        {"\"$T\" viz zoo:lenet --shape data=1,1,2,2", "lenet", 2},
        {"\"$T\" viz zoo:lenet --shape data=", "is needed", 2},
        {"\"$T\" viz zoo:lenet --shape data=1,,28", "is needed", 2},
        {"\"$T\" viz zoo:lenet --shape data=1,-1", "is needed", 2},
        {"\"$T\" viz zoo:lenet --shape data=1,1,99999999999999999999,1", "is needed", 2},
        {"\"$T\" viz zoo:lenet --shape data=9223372036854775807,1,9223372036854775807,2", "tenon: ", 2},
        {"\"$T\" viz nothing-of-this-name", "nothing-of-this-name", 2},
        {"\"$T\" viz empty.json", "empty.json", 4},
        {"\"$T\" viz torn.json", "torn.json", 4},
        {"\"$T\" viz cycle.json", "cycle.json", 4},
        {"\"$T\" viz far.json", "far.json", 4},
        {"\"$T\" viz . --summary", "model-symbol.json", 2},
    };

    (void)state;
    file_write("empty.json", "");
    file_write("torn.json", "{\"nodes\": [{\"op\": \"null\", \"na");
    file_write("cycle.json",
               "{\"nodes\": [{\"op\": \"relu\", \"name\": \"a\", \"inputs\": [[1, 0, 0]]}, "
               "{\"op\": \"relu\", \"name\": \"b\", \"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [], "
               "\"heads\": [[1, 0, 0]]}");
    file_write("far.json",
               "{\"nodes\": [{\"op\": \"relu\", \"name\": \"a\", \"inputs\": [[4294967295, 0, 0]]}], "
               "\"arg_nodes\": [], \"heads\": [[0, 0, 0]]}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s = tool(rows[i].line);

        if (s->code != rows[i].code || !strstr(s->err, rows[i].says) || *s->out)
            fail_msg("%s: exit %d, out %s, err %s", rows[i].line, s->code, s->out, s->err);
    }
}

/* All unknown operators are told at once, each with its node. */
static void unknown_operators(void **state)
{
    const tool_said *s;

    (void)state;
    file_write("unknown.json",
               "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}, "
               "{\"op\": \"Convolutoin\", \"name\": \"c1\", \"inputs\": [[0, 0, 0]]}, "
               "{\"op\": \"relu\", \"name\": \"r\", \"inputs\": [[1, 0, 0]]}, "
               "{\"op\": \"AcmeSecret\", \"name\": \"s<9\", \"inputs\": [[2, 0, 0]]}], \"arg_nodes\": [0], "
               "\"heads\": [[3, 0, 0]]}");
    s = tool("\"$T\" viz unknown.json --graph");
    SAYS(s, 3);
    assert_says(s->err, "node 1 \"c1\"");
    assert_says(s->err, "did you mean Convolution");
    assert_says(s->err, "node 3 \"s<9\"");
    assert_says(s->err, "AcmeSecret");
    assert_string_equal(s->out, "");
}

/* An operator that nothing here defines is 3, whichever command meets it and wherever its name stands. */
static void unknown_operator_code(void **state)
{
    static const char *const lines[] = {
        "viz unknown.json --graph",
        "viz unknown.json --shape 1,1,8,8",
        "viz nested.json --graph",
        "plugins needs unknown.json",
        "plugins needs u.ini",
        "plugins why AcmeSecret",
        "plugins why Convolutoin",
        "train unknown.json --data ./small --out never",
        "train nested.json --data ./small --out never",
        "train u.ini --out never",
        "eval unknown.json some/model-0000.params --data ./small",
        "predict unknown.json some/model-0000.params ./small",
        "bench model unknown.json --shape 1,1,8,8",
        "bench op AcmeSecret --shape 3",
        "ops AcmeSecret",
        "ops \"$(head -c 5000 /dev/zero | tr '\\0' a)\"",
        "ops \"$(printf '\\377\\001%%s')\"",
    };

    (void)state;
    tool_data("small", 40);
    SAYS(tool("exec \"$T\" train zoo:lenet --data ./small --epochs 1 -q --out some"), 0);
    file_write("u.ini", "[train]\nmodel = unknown.json\ndata = ./small\n");
    file_write(
        "nested.json",
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}, "
        "{\"op\": \"relu\", \"name\": \"c1\", \"inputs\": [[0, 0, 0]]}, "
        "{\"op\": \"\\u0001AcmeSecret\", \"name\": \"s\", \"inputs\": [[1, 0, 0]]}], \"arg_nodes\": [0], "
        "\"heads\": [[2, 0, 0]]}");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[256];
        const tool_said *s;

        (void)snprintf(line, sizeof line, "exec \"$T\" %s", lines[i]);
        s = tool(line);
        if (s->code != 3)
            fail_msg("%s: exit %d: %s", lines[i], s->code, s->err);
        if (!strstr(lines[i], "needs"))
            assert_says(s->err, "there is no operator ");
        assert_null(strchr(s->err, '\001'));
    }
    assert_int_equal(access("never", F_OK), -1);
    assert_says(tool("exec \"$T\" ops AcmeSecret")->err, "error[TN-1301]");
    assert_says(tool("exec \"$T\" explain TN-1301")->out, "exit code");
    SAYS(tool("exec \"$T\" ops ''"), 2);
}

/* Names are the file's: they must not break out of DOT, SVG, JSON or a table. */
static void hostile_names(void **state)
{
    const tool_said *s;
    char *svg;
    json_t *o;

    (void)state;
    file_write("names.json",
               "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}, "
               "{\"op\": \"relu\", \"name\": \"a<b>&\\\"'\\n\\u0001\\\\\\\"];x\\u2028\xc3\xa9\", \"attrs\": "
               "{\"__x__\": \"</title><script>\"}, \"inputs\": [[0, 0, 0]]}, "
               "{\"op\": \"relu\", \"name\": \"\", \"inputs\": [[1, 0, 0]]}], \"arg_nodes\": [0], "
               "\"heads\": [[2, 0, 0]]}");
    SAYS(tool("\"$T\" viz names.json --graph -o n.svg"), 0);
    svg = tool_file("n.svg");
    xml_check(svg);
    assert_null(strstr(svg, "<script>"));
    free(svg);
    s = tool("\"$T\" viz names.json --graph");
    SAYS(s, 0);
    assert_says(s->out, "a<b>&\\\"' ?\\\\\\\"];x");
    s = tool("\"$T\" viz names.json --graph --json");
    o = tool_json(s, 0);
    assert_int_equal(json_array_size(json_object_get(o, "nodes")), 3);
    json_decref(o);
    s = tool("\"$T\" viz names.json --shape 2,3");
    SAYS(s, 0);
    assert_null(strchr(s->out, '\001'));
    SAYS(tool("\"$T\" viz names.json --shape 2,3 --memory -o n.svg"), 0);
    svg = tool_file("n.svg");
    xml_check(svg);
    free(svg);
    SAYS(tool("\"$T\" viz names.json --shape 2,3 --breaks"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summary),
        cmocka_unit_test(memory),
        cmocka_unit_test(breaks),
        cmocka_unit_test(passes),
        cmocka_unit_test(graph),
        cmocka_unit_test(large_graphs),
        cmocka_unit_test(curves),
        cmocka_unit_test(run_folder),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(unknown_operators),
        cmocka_unit_test(unknown_operator_code),
        cmocka_unit_test(hostile_names),
    };
    int failed;

    update = getenv("TENON_UPDATE") && !strcmp(getenv("TENON_UPDATE"), "1");
    (void)unsetenv("TENON_UPDATE"); /* the tool would take it for an option */
    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
