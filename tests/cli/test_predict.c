/*
 * tenon predict and eval: the same answers from IDX, .npy, CSV and standard input, as table, CSV, JSON and
 * .npy; what is damaged or does not fit is an error before anything runs.
 */
#include "tool.h"

#include <math.h>
#include <unistd.h>

#define PREDICT "exec \"$T\" predict run/model-symbol.json run/model-0000.params "
#define IMAGES "small/t10k-images-idx3-ubyte"
#define PIXELS 64

static unsigned char pixels[40 * PIXELS];

static void bytes_write(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, head_bytes, file), head_bytes);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void npy_write(const char *path, const char *shape, const void *data, size_t bytes, const char *descr)
{
    char head[128];

    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(
        head + 10 +
            snprintf(head + 10, 100, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape),
        " ", 1);
    head[127] = '\n';
    bytes_write(path, head, sizeof head, data, bytes);
}

/* The test images once more, in the other formats. */
static void inputs_make(void)
{
    static float values[40 * PIXELS];
    FILE *in = fopen(IMAGES, "r"), *csv = fopen("rows.csv", "w"), *head = fopen("head.csv", "w");

    assert_true(in && csv && head);
    assert_int_equal(fseek(in, 16, SEEK_SET), 0);
    assert_int_equal(fread(pixels, 1, sizeof pixels, in), sizeof pixels);
    for (int i = 0; i < PIXELS; i++)
        fprintf(head, "%s\"p%d\"", i ? ";" : "", i);
    for (size_t i = 0; i < sizeof pixels; i++) {
        values[i] = (float)pixels[i] / 255.0f;
        fprintf(csv, "%s%.9g", i % PIXELS ? "," : i ? "\n" : "", (double)values[i]);
        fprintf(head, "%s%.9g", i % PIXELS ? ";" : "\r\n", (double)values[i]);
    }
    fclose(in);
    fclose(csv);
    fclose(head);
    npy_write("flat.npy", "(40, 64)", values, sizeof values, "<f4");
    npy_write("images.npy", "(40, 1, 8, 8)", values, sizeof values, "<f4");
    npy_write("plain.npy", "(40, 8, 8)", values, sizeof values, "<f4");
    npy_write("bytes.npy", "(40, 8, 8)", pixels, sizeof pixels, "|u1");
    npy_write("one.npy", "(64,)", values, PIXELS * sizeof *values, "<f4");
    npy_write("none.npy", "(0, 64)", values, 0, "<f4");
    npy_write("odd.npy", "(40, 64, 1)", values, sizeof values, "<f4");
    npy_write("many.npy", "(2, 2, 2, 2, 2, 2, 2, 2, 2)", values, 512 * sizeof *values, "<f4");
    values[70] = NAN;
    npy_write("nan.npy", "(40, 64)", values, sizeof values, "<f4");
}

/* Word by word the same; a number with a point within one of its last digits. */
static bool is_near(const char *a, const char *b)
{
    while (*a || *b) {
        size_t n = strcspn(a, " \n"), k = strcspn(b, " \n");
        char *a_end, *b_end;
        double x = strtod(a, &a_end), y = strtod(b, &b_end);

        if ((n != k || memcmp(a, b, n)) && (!memchr(a, '.', n) || !memchr(b, '.', k) || a_end != a + n ||
                                            b_end != b + k || !(fabs(x - y) < 1.5e-4)))
            return false;
        a += n;
        b += k;
        if (*a != *b)
            return false;
        a += *a != '\0';
        b += *b != '\0';
    }
    return true;
}

static void same_answers(void **state)
{
    static const struct {
        const char *words;
        bool rounded; /* other batches and scales: products may be added up in another order */
    } inputs[] = {{"rows.csv", false},
                  {"head.csv --shape 1,8,8", false},
                  {"- <head.csv", false},
                  {"flat.npy", false},
                  {"images.npy", false},
                  {"plain.npy --batch 7", true},
                  {"flat.npy --shape 1x8x8", false},
                  {"bytes.npy --scale 0.00392156862745098", true},
                  {"packed.gz", false},
                  {"rows.csv.gz", false}};
    char *want, line[256];

    (void)state;
    assert_int_equal(tool("gzip -nc " IMAGES " >packed.gz; gzip -nc rows.csv >rows.csv.gz")->code, 0);
    assert_int_equal(tool(PREDICT IMAGES " >want.txt")->code, 0);
    want = tool_file("want.txt");
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, PREDICT "%s", inputs[i].words);
        s = tool(line);
        if (s->code || (inputs[i].rounded ? !is_near(s->out, want) : strcmp(s->out, want) != 0))
            fail_msg("%s: code %d: %s\n%s", inputs[i].words, s->code, s->out, s->err);
    }
    free(want);
    assert_int_equal(tool(PREDICT "one.npy | wc -l | grep -q '^2$'")->code, 0);
    assert_int_equal(tool(PREDICT "one.npy rows.csv | wc -l | grep -q '^42$'")->code, 0);
}

/* An archive: its only array, or the one called data; without the plugin its name and exit code 3. */
static void archives(void **state)
{
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    char path[1024], *want;
    const tool_said *s;

    (void)state;
    if (tool("command -v python3")->code) {
        print_message("skipped: there is no python3 to make archives\n");
        return;
    }
    assert_int_equal(tool("cp flat.npy data.npy; python3 -m zipfile -c one.npz flat.npy; "
                          "python3 -m zipfile -c data.npz one.npy data.npy; "
                          "python3 -m zipfile -c two.npz one.npy flat.npy; head -c 999 one.npz >cut.npz")
                         ->code,
                     0);
    s = tool(PREDICT "one.npz --set plugins.load=cpu");
    assert_int_equal(s->code, 3);
    assert_non_null(strstr(s->err, "needs the plugin npz"));
    (void)snprintf(path, sizeof path, "%s/npz.so", plugins ? plugins : "");
    if (access(path, R_OK)) {
        print_message("skipped: the plugin npz was not built\n");
        return;
    }
    assert_int_equal(tool(PREDICT "flat.npy >want.txt")->code, 0);
    want = tool_file("want.txt");
    assert_string_equal(tool(PREDICT "one.npz")->out, want);
    assert_string_equal(tool(PREDICT "data.npz")->out, want);
    free(want);
    s = tool(PREDICT "two.npz");
    assert_true(s->code && strstr(s->err, "data"));
    assert_int_equal(tool(PREDICT "cut.npz")->code, 4);
}

static void forms(void **state)
{
    const tool_said *s = tool(PREDICT IMAGES " --json --top 3");
    json_t *o = tool_json(s, 0), *top = json_object_get(o, "top");
    double sum = 0;
    char *text;

    (void)state;
    assert_int_equal(s->code, 0);
    assert_int_equal(json_integer_value(json_object_get(o, "sample")), 39);
    assert_int_equal(json_array_size(top), 3);
    assert_true(json_number_value(json_object_get(json_array_get(top, 0), "probability")) >=
                json_number_value(json_object_get(json_array_get(top, 1), "probability")));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(top, 0), "class")),
                     json_integer_value(json_object_get(o, "class")));
    json_decref(o);
    s = tool(PREDICT IMAGES " " IMAGES); /* which of several inputs a row is of */
    assert_int_equal(s->code, 0);
    assert_non_null(strstr(s->out, "probability  input\n"));
    assert_non_null(strstr(s->out, "  " IMAGES "\n39 "));
    s = tool(PREDICT IMAGES " --out a.csv");
    assert_int_equal(s->code, 0);
    assert_string_equal(s->out, "samples 40\nout a.csv\n");
    text = tool_file("a.csv");
    assert_int_equal(strncmp(text, "input,sample,class,name,probability,p0,", 39), 0);
    for (char *at = strrchr(text, '"'), *end = at; at && *end != '\n';) { /* the last line's probabilities */
        double p = strtod(end + 1, &end);

        sum += p;
    }
    free(text);
    assert_true(sum > 1); /* the first one twice */
    s = tool(PREDICT IMAGES " --out a.jsonl --json && test $(wc -l <a.jsonl) = 40");
    assert_int_equal(s->code, 0);
    /* The outputs as they are, read again as input of nothing: they are a .npy of (40, 10). */
    s = tool(PREDICT IMAGES " rows.csv --out a.npy && head -c 128 a.npy | grep -aq '(80, 10)'");
    assert_int_equal(s->code, 0);
    assert_int_equal(tool("test $(wc -c <a.npy) = 3328")->code, 0);
    /* Names: of a file, or beside the model. */
    assert_int_equal(tool("i=0; while [ $i -lt 10 ]; do echo name-$i; i=$((i+1)); done >names.txt")->code, 0);
    s = tool(PREDICT IMAGES " --classes names.txt");
    assert_says(s->out, " name-");
    s = tool("cp names.txt run/classes.txt; " PREDICT IMAGES " --json");
    assert_says(s->out, "\"name\":\"name-");
    s = tool("rm run/classes.txt; " PREDICT IMAGES " --classes absent.txt");
    assert_int_equal(s->code, 2);
}

/* Nothing is printed and no file left behind. */
static void refused(void **state)
{
    static const struct {
        const char *words;
        int code;
        const char *says;
    } rows[] = {
        {"nan.npy", 4, "nan.npy: number 7 of sample 1 is nan"},
        {"none.npy", 4, "no samples"},
        {"many.npy", 1, "9 dimensions"},
        {"odd.npy", 1, "the model takes 1×8×8, the data is 64×1"},
        {"rows.csv --shape 1,8,9", 2, "samples of 64 numbers"},
        {"rows.csv --shape 1,8,8,", 2, "--shape"},
        {"rows.csv --shape 0", 2, "--shape"},
        {"rows.csv --shape 99999999999999999999", 2, "--shape"},
        {"rows.csv --shape 64", 1, "does not take"},
        {"rows.csv --top 0", 2, "--top"},
        {"rows.csv --top x", 2, "--top"},
        {"rows.csv --scale inf", 2, "--scale"},
        {"rows.csv --batch 0", 2, "batch"},
        {"rows.csv --out a.png", 2, ".csv, .json"},
        {"rows.csv --out /proc/nowhere/a.csv", 1, "/proc/nowhere/a.csv"},
        {"rows.csv --out /proc/nowhere/a.npy", 1, "/proc/nowhere/a.npy"},
        {"absent.csv", 2, "absent.csv"},
        {"absent.npy", 2, "absent.npy"},
        {"small", 2, "small is a folder: name its files"},
        {"/dev/zero", 1, "/dev/zero"},
        {"- - <rows.csv", 2, "once"},
        {"- </dev/null", 4, "standard input holds no numbers"},
        {"ragged.csv", 4, "ragged.csv:2:2: the line ends early"},
        {"word.csv", 4, "word.csv:2:2: "},
        {"wide.csv", 1, "the model takes 1×8×8, the data is 2"},
        {"rows.csv ragged.csv", 4, "ragged.csv:2:2"},
        {"cut.npy", 4, "cut.npy"},
        {"cut.gz", 4, "cut.gz"},
    };
    char line[256];

    (void)state;
    assert_int_equal(
        tool("printf '1,2\\n3\\n' >ragged.csv; printf '1,2\\n3,x\\n' >word.csv; printf '1,2\\n' >wide.csv; "
             "head -c 200 flat.npy >cut.npy; head -c 99 packed.gz >cut.gz")
            ->code,
        0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, PREDICT "%s", rows[i].words);
        s = tool(line);
        if (s->code != rows[i].code || !strstr(s->err, rows[i].says) || *s->out)
            fail_msg("%s: code %d: %s\n%s", rows[i].words, s->code, s->out, s->err);
    }
    assert_int_equal(tool("ls | grep tmp-")->code, 1);
    assert_int_equal(tool("exec \"$T\" predict run/model-symbol.json run/model-0000.params")->code, 2);
    assert_int_equal(tool("exec \"$T\" predict rows.csv run/model-0000.params rows.csv")->code, 4);
    assert_int_equal(tool("exec \"$T\" predict run/model-symbol.json rows.csv rows.csv")->code, 4);
}

/* A file cut at every place, and with a byte changed here and there: an error or an answer, never a crash. */
static void damaged(void **state)
{
    char line[256];

    (void)state;
    for (int cut = 0; cut < 140; cut += 9) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, "head -c %d one.npy >d.npy; " PREDICT "d.npy", cut);
        s = tool(line);
        if (s->code != 4 || *s->out)
            fail_msg("cut at %d: code %d: %s", cut, s->code, s->err);
    }
    for (int at = 0; at < 128; at += 8) {
        const tool_said *s;

        (void)snprintf(
            line, sizeof line,
            "cp one.npy d.npy; printf '\\377' | dd of=d.npy bs=1 seek=%d conv=notrunc 2>/dev/null; " PREDICT
            "d.npy",
            at);
        s = tool(line);
        if (s->code > 5)
            fail_msg("byte %d: code %d: %s", at, s->code, s->err);
    }
}

/* A graph with one node behind `data` and the first three columns of it; its attributes after the version. */
static void planted(const char *node, const char *attrs)
{
    static const uint64_t none[] = {0x112, 0, 0, 0}; /* a file of no parameters */
    FILE *file = fopen("planted-symbol.json", "w");

    assert_non_null(file);
    fprintf(file,
            "{\"nodes\":[{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"
            "{\"op\":\"slice_axis\",\"name\":\"s\",\"attrs\":{\"axis\":\"1\",\"begin\":\"0\",\"end\":\"3\"},"
            "\"inputs\":[[0,0,0]]},{%s}],\"arg_nodes\":[0],\"heads\":[[2,0,0]],"
            "\"attrs\":{\"mxnet_version\":[\"int\",10901]%s}}",
            node, attrs);
    assert_int_equal(fclose(file), 0);
    bytes_write("none.params", none, sizeof *none, none + 1, sizeof none - sizeof *none);
}

/* A stranger's graph that names parts of gradients, or numbers that stand for "not given" elsewhere. */
static void hostile_graphs(void **state)
{
#define SAVED ",\"tenon_gradients\":[\"int\",1]"
    static const struct {
        const char *node, *attrs;
        int code;
        const char *says;
    } rows[] = {
        {"\"op\":\"_backward_slice_like\",\"name\":\"b\",\"inputs\":[[0,0,0],[1,0,0]]", "", 4,
         "error[TN-1303]: planted-symbol.json: node 2 \"b\": operator _backward_slice_like is a part of"},
        {"\"op\":\"_backward_slice_like\",\"name\":\"b\",\"inputs\":[[0,0,0],[1,0,0]]", SAVED, 1,
         "axis 1 of dy is longer than that of data: 64 and 3"},
        {"\"op\":\"_backward_prelu_gamma\",\"name\":\"b\",\"inputs\":[[0,0,0],[0,0,0],[1,0,0]]", SAVED, 1,
         "gamma has one element, or one for each channel"},
        {"\"op\":\"_backward_softmax\",\"name\":\"b\",\"attrs\":{\"axis\":\"2147483647\"},"
         "\"inputs\":[[0,0,0],[0,0,0]]",
         SAVED, 1, "axis 2147483647, but the input has 2 dimensions"},
        {"\"op\":\"_backward_softmax\",\"name\":\"b\",\"inputs\":[[0,0,0],[0,0,0]]", SAVED, 0, ""},
        {"\"op\":\"slice_axis\",\"name\":\"b\",\"attrs\":{\"axis\":\"1\",\"begin\":"
         "\"-9223372036854775808\",\"end\":\"3\"},\"inputs\":[[0,0,0]]",
         "", 1, "begin -9223372036854775808 and end 3 do not lie in axis 1 of size 64"},
    };
#undef SAVED

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        planted(rows[i].node, rows[i].attrs);
        s = tool("exec \"$T\" predict planted-symbol.json none.params rows.csv --set memory.cpu.pool=none");
        if (s->code != rows[i].code || !strstr(s->err, rows[i].says))
            fail_msg("%s%s: code %d: %s", rows[i].node, rows[i].attrs, s->code, s->err);
    }
}

/* The graph with a SoftmaxOutput behind it, as MXNet's trainings have it. */
static void softmax_add(const char *from, const char *to)
{
    json_t *g = json_load_file(from, 0, NULL), *nodes = json_object_get(g, "nodes"), *rows = json_array();
    const json_int_t n = (json_int_t)json_array_size(nodes) + 1;

    json_array_append_new(nodes,
                          json_pack("{s:s, s:s, s:[]}", "op", "null", "name", "softmax_label", "inputs"));
    json_array_append_new(nodes,
                          json_pack("{s:s, s:s, s:[O, [I, i, i]]}", "op", "SoftmaxOutput", "name", "softmax",
                                    "inputs", json_array_get(json_object_get(g, "heads"), 0), n - 1, 0, 0));
    json_array_append_new(json_object_get(g, "arg_nodes"), json_integer(n - 1));
    json_object_set_new(g, "heads", json_pack("[[I, i, i]]", n, 0, 0));
    for (json_int_t i = 0; i < n + 2; i++)
        json_array_append_new(rows, json_integer(i));
    json_object_set_new(g, "node_row_ptr", rows);
    assert_int_equal(json_dump_file(g, to, 0), 0);
    json_decref(g);
}

static void wrong_file(const char *text, const char *says)
{
    char line[512];
    const tool_said *s;

    (void)snprintf(line, sizeof line,
                   "printf '%s' >odd.params; exec \"$T\" predict run/model-symbol.json odd.params rows.csv",
                   text);
    s = tool(line);
    assert_int_equal(s->code, 4);
    assert_says(s->err, says);
    s = tool("exec \"$T\" predict odd.params run/model-symbol.json rows.csv"); /* exchanged */
    assert_int_equal(s->code, 4);
    s = tool("exec \"$T\" predict run/model-0000.params run/model-symbol.json rows.csv");
    assert_says(s->err, "run/model-0000.params is a .params file, not a -symbol.json: were the names");
}

/* Bytes of a stranger's file in a message: readable, and none that steers the terminal. */
static void strange_bytes(void **state)
{
    static const struct {
        const char *make, *shown;
    } rows[] = {
        {"printf '1,\\377\\033[31m\\n' >odd.csv", "\"\\xff\\x1b[31m\""},
        {"printf '1,\\302\\2331m\\n' >odd.csv", "\"\\xc2\\x9b1m\""},
        {"printf '1,Gr\\303\\266\\303\\237e\\n' >odd.csv", "\"Gr\xc3\xb6\xc3\x9f"
                                                           "e\""},
        {"printf '1,\\342\\200\\256abc\\n' >odd.csv", "\"\\xe2\\x80\\xae"
                                                      "abc\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        assert_int_equal(tool(rows[i].make)->code, 0);
        s = tool(PREDICT "odd.csv");
        assert_int_equal(s->code, 4);
        assert_says(s->err, rows[i].shown);
        for (const char *c = s->err; *c; c++)
            assert_true((unsigned char)*c >= ' ' || *c == '\n');
    }
    /* Wrong files are named by the tool, too, with what to do. */
    wrong_file("version https://git-lfs.github.com/spec/v1\\noid sha256:0\\n",
               "is a git-lfs pointer, not a .params file");
    wrong_file("<!DOCTYPE html><html></html>", "is an HTML page, not a .params file");
}

/* Heads: the softmax, the scores in front of it, what the first dense layer gives, and a weight, which is no
 * output of samples. */
static void heads_add(const char *from, const char *to)
{
    json_t *g = json_load_file(from, 0, NULL), *nodes = json_object_get(g, "nodes"), *heads = json_array();
    const size_t last = json_array_size(nodes) - 1;
    size_t first = 0, weight = 0;

    for (size_t i = last; i > 0; i--) {
        const char *op = json_string_value(json_object_get(json_array_get(nodes, i), "op"));

        first = !strcmp(op, "FullyConnected") ? i : first;
        weight = !strcmp(op, "null") ? i : weight;
    }
    json_array_append_new(heads, json_pack("[I, i, i]", (json_int_t)last, 0, 0));
    json_array_append(heads, json_array_get(json_object_get(json_array_get(nodes, last), "inputs"), 0));
    json_array_append_new(heads, json_pack("[I, i, i]", (json_int_t)first, 0, 0));
    json_array_append_new(heads, json_pack("[I, i, i]", (json_int_t)weight, 0, 0));
    json_object_set_new(g, "heads", heads);
    assert_int_equal(json_dump_file(g, to, 0), 0);
    json_decref(g);
}

#define SEVERAL "\"$T\" predict several-symbol.json run/model-0000.params " IMAGES
#define LEFT_OUT "output 3 \""

/* The same class comes first, and the probabilities are the same: but for their last digits, as a net of
 * other heads may be computed by other kernels. */
static void same_top(const json_t *a, const json_t *b)
{
    assert_int_equal(json_array_size(a), json_array_size(b));
    assert_true(json_equal(json_object_get(json_array_get(a, 0), "class"),
                           json_object_get(json_array_get(b, 0), "class")));
    for (size_t k = 0; k < json_array_size(a); k++)
        assert_true(fabs(json_number_value(json_object_get(json_array_get(a, k), "probability")) -
                         json_number_value(json_object_get(json_array_get(b, k), "probability"))) < 1e-4);
}

/* All outputs of a model are written, in each form, and what is none of samples is named. */
static void several_outputs(void **state)
{
    const tool_said *s;
    json_t *one, *o, *list, *values;
    char *text;

    (void)state;
    softmax_add("run/model-symbol.json", "soft-symbol.json");
    heads_add("soft-symbol.json", "several-symbol.json");
    s = tool("exec \"$T\" predict soft-symbol.json run/model-0000.params " IMAGES " --json --top 2");
    one = tool_json(s, 0);
    s = tool(SEVERAL " --json --top 2 | tail -1");
    assert_int_equal(s->code, 0);
    assert_says(s->err, LEFT_OUT);
    assert_says(s->err, "is not one for each sample: it is left out");
    o = tool_json(s, 0);
    list = json_object_get(o, "outputs");
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "output")),
                        "softmax_output");
    same_top(json_object_get(json_array_get(list, 0), "top"), json_object_get(one, "top"));
    assert_true(json_equal(json_object_get(json_array_get(list, 0), "class"), json_object_get(one, "class")));
    values = json_object_get(json_array_get(list, 1), "values");
    assert_int_equal(json_array_size(values), 10);
    for (size_t k = 0; k < 10; k++) /* the scores: the largest is the class */
        assert_true(json_number_value(json_array_get(values, k)) <=
                    json_number_value(
                        json_array_get(values, (size_t)json_integer_value(json_object_get(one, "class")))));
    assert_true(json_array_size(json_object_get(json_array_get(list, 2), "values")) > 10);
    json_decref(o);
    json_decref(one);
    s = tool(SEVERAL
             " --out all.csv && head -1 all.csv | grep -q ',\"softmax_output.class\",.*p9\",\".*.y0\",'");
    assert_int_equal(s->code, 0);
    text = tool_file("all.csv");
    assert_int_equal(strncmp(text, "input,sample,\"softmax_output.class\"", 34), 0);
    free(text);
    assert_int_equal(tool("test $(wc -l <all.csv) = 41")->code, 0);
    s = tool(SEVERAL " >all.txt && test $(wc -l <all.txt) = 121 && grep -c softmax_output all.txt");
    assert_string_equal(s->out, "40\n");
    s = tool(SEVERAL " --out all.npy --json");
    assert_int_equal(s->code, 0);
    o = tool_json(s, 0);
    assert_int_equal(json_array_size(json_object_get(o, "out")), 3);
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "out"), 0)),
                        "all-softmax_output.npy");
    json_decref(o);
    s = tool("test ! -e all.npy && ls all-*.npy | wc -l && head -c 128 all-softmax_output.npy | grep -ac "
             "'(40, 10)'");
    assert_string_equal(s->out, "3\n1\n");
    /* No input is written over, and a failure leaves nothing. */
    s = tool(
        "cp flat.npy in-softmax_output.npy; exec \"$T\" predict several-symbol.json run/model-0000.params "
        "in-softmax_output.npy --out in.npy");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "in-softmax_output.npy would replace");
    assert_int_equal(tool("cmp flat.npy in-softmax_output.npy && test $(ls in-*.npy | wc -l) = 1")->code, 0);
}

/* Precision and recall are those of the matrix; its sums are the samples; the loss is that of the scores,
 * whatever stands at the head of the graph. */
static void confusion(void **state)
{
    const tool_said *s =
        tool("exec \"$T\" eval run/model-symbol.json run/model-0000.params --data ./small --json");
    json_t *o = tool_json(s, 0), *rows = json_object_get(o, "confusion"), *other;
    int64_t all = 0, right = 0;

    (void)state;
    assert_int_equal(s->code, 0);
    assert_int_equal(json_array_size(rows), 10);
    for (size_t i = 0; i < 10; i++)
        for (size_t k = 0; k < 10; k++) {
            int64_t n = (int64_t)json_integer_value(json_array_get(json_array_get(rows, i), k));

            all += n;
            right += i == k ? n : 0;
        }
    assert_int_equal(all, 40);
    assert_true(fabs((double)right / 40 - json_number_value(json_object_get(o, "accuracy"))) < 1e-9);
    assert_int_equal(json_array_size(json_object_get(o, "classes")), 10);
    softmax_add("run/model-symbol.json", "soft-symbol.json");
    s = tool("exec \"$T\" eval soft-symbol.json run/model-0000.params --data ./small --json");
    assert_int_equal(s->code, 0);
    other = tool_json(s, 0);
    assert_true(fabs(json_number_value(json_object_get(other, "loss")) -
                     json_number_value(json_object_get(o, "loss"))) < 1e-5);
    json_decref(other);
    json_decref(o);
    /* Such a graph can be trained, and is exported as it came. */
    s = tool("exec \"$T\" train soft-symbol.json --data ./small --epochs 1 --out soft -q");
    assert_int_equal(s->code, 0);
    assert_int_equal(tool("grep -q SoftmaxOutput soft/model-symbol.json")->code, 0);
    s = tool("exec \"$T\" eval run/model-symbol.json run/model-0000.params --data ./small --confusion");
    assert_says(s->out, "precision     recall\n");
    s = tool("printf 'zero\\none\\n' >small/classes.txt; exec \"$T\" eval run/model-symbol.json "
             "run/model-0000.params --data ./small --confusion");
    assert_says(s->out, "1    one");
    s = tool("printf 'zero\\n\\n' >small/classes.txt; exec \"$T\" eval run/model-symbol.json "
             "run/model-0000.params --data ./small");
    assert_int_equal(s->code, 4);
    /* A run keeps the names beside its model. */
    s = tool(
        "printf 'zero\\none\\n' >small/classes.txt; exec \"$T\" train zoo:lenet --data ./small --epochs 1 "
        "--out named -q");
    assert_int_equal(s->code, 0);
    s = tool("exec \"$T\" predict named/model-symbol.json named/model-0000.params " IMAGES " --top 10");
    assert_says(s->out, " zero");
    assert_int_equal(tool("rm small/classes.txt")->code, 0);
}

/* RUN stands for its model and its data, as a path and by its name; export gives files of the same model. */
static void of_a_run(void **state)
{
    const tool_said *s = tool("exec \"$T\" eval run --json");
    json_t *o = tool_json(s, 0), *again;

    (void)state;
    assert_int_equal(s->code, 0);
    assert_string_equal(json_string_value(json_object_get(o, "data")), "./small:test");
    assert_string_equal(json_string_value(json_object_get(o, "params")), "run/model-best.params");
    assert_int_equal(json_integer_value(json_object_get(o, "samples")), 40);
    s = tool("exec \"$T\" eval run --data ./small:train");
    assert_says(s->out, "samples 40");
    assert_says(s->out, "data ./small:train");
    s = tool("mkdir -p runs; cp -r run runs/2026-01-01-lenet-abcd; exec \"$T\" export abcd --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "2026-01-01-lenet-abcd-symbol.json");
    s = tool(
        "\"$T\" export run here && exec \"$T\" eval here-symbol.json here-0000.params --data ./small --json");
    again = tool_json(s, 0);
    assert_int_equal(s->code, 0);
    for (const char *const *key = (const char *const[]){"accuracy", "loss", "params_sha256", NULL}; *key;
         key++)
        assert_true(json_equal(json_object_get(o, *key), json_object_get(again, *key)));
    json_decref(again);
    json_decref(o);
    assert_int_equal(tool("\"$T\" predict abcd " IMAGES " >run.txt && rm -r runs")->code, 0);
    assert_int_equal(
        tool("\"$T\" predict run/model-symbol.json run/model-best.params " IMAGES " | cmp - run.txt")->code,
        0);
}

/* A command that writes to a path makes the folders above it; where it cannot, it names the path. */
static void folders_made(void **state)
{
    static const struct {
        const char *command, *path; /* %s: the path */
    } rows[] = {
        {"export run %s/m", "m-symbol.json"},
        {"predict run " IMAGES " --out %s/a.csv", "a.csv"},
        {"predict run " IMAGES " --out %s/a.npy", "a.npy"},
        {"viz zoo:lenet --graph -o %s/g.svg", "g.svg"},
        {"viz run --curves -o %s/c.svg", "c.svg"},
        {"plugins check mempool --only load/note --junit %s/x.xml", "x.xml"},
        {"plugins new relu --kind kernel --dir %s", "relu/Makefile"},
        {"manual --into %s", "man1/tenon.1"},
        {"launch -n 1 -s 0 --log-dir %s -- true", "."},
        {"launch -n 1 -s 0 --log-dir %s/ -- true", "."},
        {"train zoo:lenet --data ./small --epochs 1 --dry-run --out %s/r", NULL},
    };
    char command[512], line[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        (void)snprintf(command, sizeof command, rows[i].command, "made/by/it");
        (void)snprintf(line, sizeof line, "rm -rf made; \"$T\" %s%s%s", command,
                       rows[i].path ? " && test -e made/by/it/" : " && test ! -e made",
                       rows[i].path ? rows[i].path : "");
        s = tool(line);
        if (s->code)
            fail_msg("%s: %d, %s", line, s->code, s->err);
        (void)snprintf(command, sizeof command, rows[i].command, "/proc/nowhere");
        (void)snprintf(line, sizeof line, "exec \"$T\" %s", command);
        s = tool(line);
        if (rows[i].path && (s->code == 0 || !strstr(s->err, "/proc/nowhere")))
            fail_msg("%s: %d, %s", line, s->code, s->err);
        assert_null(strstr(s->err, ".tmp"));
    }
}

/* No folder is made in the place of a file, nor left above one that is not written. */
static void folders_not_made(void **state)
{
    static const char *const rows[] = {
        "viz zoo:lenet --graph -o made/",
        "viz run --curves -o made//",
        "predict run " IMAGES " --out made/by/a.csv",
        "predict run " IMAGES " --out made/by/a.npy",
        "predict run " IMAGES " --out ./made//by/../by/a.csv",
        "export run made/by/m",
    };
    char line[256];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        (void)snprintf(
            line, sizeof line,
            "trap '' XFSZ; rm -rf made; ulimit -f 1; \"$T\" %s; code=$?; test ! -e made && exit $code",
            rows[i]);
        s = tool(line);
        if (s->code != 1 || !strstr(s->err, "made/"))
            fail_msg("%s: %d, %s", line, s->code, s->err);
    }
    /* What was there stays. */
    assert_int_equal(
        tool("mkdir made; trap '' XFSZ; ulimit -f 1; ! \"$T\" export run made/by/m && test -d made "
             "-a ! -e made/by")
            ->code,
        0);
}

/* Where the disk is full behind the first file, here at a limit of a file's size, what stood there stays. */
static void export_whole(void **state)
{
    static const char limited[] = "trap '' XFSZ; ulimit -f %d; exec \"$T\" export run out/m";
    char line[256];
    const tool_said *s;

    (void)state;
    for (int blocks = 1; blocks <= 17;
         blocks += 16) { /* of 512 bytes: none of them, or all but the parameters */
        assert_int_equal(tool("rm -rf out")->code, 0);
        (void)snprintf(line, sizeof line, limited, blocks);
        s = tool(line);
        assert_int_equal(s->code, 1);
        assert_says(s->err, "error[TN-0006]: out/m-");
        assert_says(s->err, "File too large");
        assert_null(strstr(s->err, ".tmp"));
        assert_int_equal(tool("test ! -e out")->code, 0);
        assert_int_equal(
            tool("mkdir out; for n in symbol.json 0000.params data.json; do echo old >out/m-$n; done")->code,
            0);
        assert_int_equal(tool(line)->code, 1);
        s = tool("cat out/*; ls -A out");
        assert_string_equal(s->out, "old\nold\nold\nm-0000.params\nm-data.json\nm-symbol.json\n");
    }
    for (size_t i = 0; i < 3; i++) { /* a folder in a file's place */
        static const char *const names[] = {"symbol.json", "0000.params", "data.json"};

        (void)snprintf(line, sizeof line, "rm -rf out; mkdir -p out/m-%s; exec \"$T\" export run out/m",
                       names[i]);
        s = tool(line);
        assert_int_equal(s->code, 1);
        (void)snprintf(line, sizeof line, "error[TN-0006]: out/m-%s: ", names[i]);
        assert_says(s->err, line);
        assert_says(s->err, "Is a directory");
        (void)snprintf(line, sizeof line, "m-%s\n", names[i]);
        assert_string_equal(tool("ls -A out")->out, line);
    }
    /* Links are replaced, all three: what they lead to is not the export's. */
    s = tool(
        "rm -rf out; mkdir out; for n in symbol.json 0000.params data.json; do echo old >out/$n; ln -s $n "
        "out/m-$n; done; \"$T\" export run out/m >said && find out -type l; cat out/symbol.json "
        "out/0000.params out/data.json");
    assert_int_equal(s->code, 0);
    assert_string_equal(s->out, "old\nold\nold\n");
    /* What is kept of another model's data goes with that model's files. */
    assert_int_equal(
        tool("rm -rf out plain; cp -r run plain && rm plain/model-data.json && \"$T\" export run out/m")
            ->code,
        0);
    s = tool("\"$T\" export plain out/m --json && ls -A out");
    assert_int_equal(s->code, 0);
    assert_null(strstr(s->out, "data"));
    s = tool("mkdir out/m-data.json; echo old >out/m-symbol.json; \"$T\" export plain out/m");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "error[TN-0006]: out/m-data.json: Is a directory");
    assert_string_equal(tool("cat out/m-symbol.json")->out, "old\n");
    assert_int_equal(tool("rm -rf out; \"$T\" export run out/m -q && test $(ls -A out | wc -l) = 3")->code,
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_run),         cmocka_unit_test(same_answers),
        cmocka_unit_test(archives),         cmocka_unit_test(forms),
        cmocka_unit_test(refused),          cmocka_unit_test(damaged),
        cmocka_unit_test(confusion),        cmocka_unit_test(hostile_graphs),
        cmocka_unit_test(several_outputs),  cmocka_unit_test(strange_bytes),
        cmocka_unit_test(folders_made),     cmocka_unit_test(export_whole),
        cmocka_unit_test(folders_not_made),
    };
    int failed;

    tool_setup();
    setenv("OMP_NUM_THREADS", "1", 1); /* many small trainings beside other tests */
    tool_data("small", 40);
    inputs_make();
    if (tool("exec \"$T\" train zoo:lenet --data ./small --batch 8 --seed 5 --epochs 4 --out run -q")->code)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
