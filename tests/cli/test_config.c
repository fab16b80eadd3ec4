/*
 * tenon config, and what a file given with --config alone changes: show, check, dump, from-mxnet-env; files
 * and variables that may not say which code runs; slips of the pen, sampled (tests/base has them all).
 */
#include "tool.h"

#include <ctype.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static void file_put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The row of `key` in the answer of `config show --json`. */
static json_t *row_of(json_t *shown, const char *key)
{
    json_t *row, *list = json_object_get(shown, "options");
    size_t i;

    json_array_foreach(list, i,
                       row) if (!strcmp(json_string_value(json_object_get(row, "key")), key)) return row;
    fail_msg("%s is not shown", key);
    return NULL;
}

static const char *text_of(json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));

    return text ? text : "";
}

static void row_is(json_t *shown, const char *key, const char *value, const char *origin, const char *where)
{
    json_t *row = row_of(shown, key);

    if (strcmp(text_of(row, "value"), value) || strcmp(text_of(row, "origin"), origin) ||
        strcmp(text_of(row, "where"), where))
        fail_msg("%s = %s, %s %s; expected %s, %s %s", key, text_of(row, "value"), text_of(row, "origin"),
                 text_of(row, "where"), value, origin, where);
}

/* Commands behind it see a copy of the libraries whose folder of plugins lacks cuda: devices of that type are
 * known then, and nobody provides them. */
#define WITHOUT_CUDA "LD_LIBRARY_PATH=\"$PWD/less\" "

static void less_make(void)
{
    const tool_said *s = tool("B=\"$(dirname \"$T\")/../lib\"; mkdir -p less/tenon/plugins-1 && "
                              "cp -L \"$B\"/lib*.so.0 less && "
                              "cp \"$B\"/tenon/plugins-1/*.so less/tenon/plugins-1 && "
                              "rm -f less/tenon/plugins-1/cuda.so && chmod -R go-w less");

    if (s->code)
        fail_msg("%s", s->err);
}

/* ---- show -------------------------------------------------------------------------------------------- */

static void show(void **state)
{
    const tool_said *s;
    json_t *shown;

    (void)state;
    file_put("a.ini", "[engine]\ntype = naive\nthreads = 2\n[kernel]\ndot@cpu = cpu\n");
    s = tool("TENON_ENGINE__THREADS=3 MXNET_CPU_WORKER_NTHREADS=4 \"$T\" config show --json --config a.ini "
             "--set train.lr=0.5");
    assert_int_equal(s->code, 0);
    shown = tool_json(s, 0);
    row_is(shown, "engine.type", "naive", "file", "a.ini:2");
    row_is(shown, "engine.threads", "3", "environment", "TENON_ENGINE__THREADS");
    row_is(shown, "engine.workers", "4", "mxnet", "MXNET_CPU_WORKER_NTHREADS");
    row_is(shown, "train.lr", "0.5", "set", "");
    row_is(shown, "train.wd", "0.0001", "default", "");
    row_is(shown, "kernel.dot@cpu", "cpu", "file", "a.ini:5");
    assert_string_equal(text_of(row_of(shown, "engine.type"), "choices"), "threaded|naive|stepped");
    assert_string_equal(text_of(row_of(shown, "engine.threads"), "unit"), "threads");
    assert_string_equal(text_of(row_of(shown, "engine.threads"), "type"), "int");
    assert_true(json_array_size(json_object_get(row_of(shown, "plugins.path"), "flags")) == 2);
    json_decref(shown);
    s = tool("\"$T\" config show engine.type --origin --config a.ini");
    assert_string_equal(s->out, "engine.type = naive  file a.ini:2\n");
    s = tool("\"$T\" config show engine.type memory.fake.pinned.pool --config a.ini");
    assert_string_equal(s->out, "engine.type             = naive\nmemory.fake.pinned.pool = auto\n");
    s = tool("\"$T\" config show engine");
    assert_says(s->out, "engine.queue_max");
    assert_null(strstr(s->out, "train."));
    s = tool("TENON_MEMORY_CPU__POOL=none \"$T\" config show memory.cpu.pool");
    assert_string_equal(s->out, "memory.cpu.pool = none\n");
    s = tool("\"$T\" config show engin.type");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "did you mean engine.type?");
    s = tool("\"$T\" config show \"\"");
    assert_int_equal(s->code, 2);
    s = tool("\"$T\" config show kernel.x kernel.x@cpu");
    assert_int_equal(s->code, 2);
    s = tool("\"$T\" config show >/dev/full");
    assert_int_equal(s->code, 1);
}

/* --config takes the place of ./tenon.ini. */
static void show_local(void **state)
{
    (void)state;
    file_put("tenon.ini", "[engine]\ntype = naive\n");
    file_put("b.ini", "[train]\nepochs = 3\n");
    assert_says(tool("\"$T\" config show engine.type")->out, "naive");
    assert_says(tool("\"$T\" config show engine.type --config b.ini")->out, "threaded");
    assert_int_equal(unlink("tenon.ini"), 0);
}

/* ---- one file switches ------------------------------------------------------------------------------- */

static void one_file_switches(void **state)
{
    const tool_said *s;
    json_t *shown, *list, *plugin;
    size_t i;

    (void)state;
    file_put("all.ini", "[engine]\ntype = naive\n[memory.cpu]\npool = round\n[kernel]\nprefer = cpu\n"
                        "FullyConnected@cpu = cpu\n[plugins]\nload = cpu, mempool, fake\nrequire = mempool\n"
                        "[device]\ndefault = fake:0\n");
    s = tool("\"$T\" config show --json --config all.ini");
    assert_int_equal(s->code, 0);
    shown = tool_json(s, 0);
    row_is(shown, "engine.type", "naive", "file", "all.ini:2");
    row_is(shown, "memory.cpu.pool", "round", "file", "all.ini:4");
    row_is(shown, "kernel.prefer", "cpu", "file", "all.ini:6");
    row_is(shown, "kernel.FullyConnected@cpu", "cpu", "file", "all.ini:7");
    row_is(shown, "plugins.load", "cpu, mempool, fake", "file", "all.ini:9");
    row_is(shown, "plugins.require", "mempool", "file", "all.ini:10");
    row_is(shown, "device.default", "fake:0", "file", "all.ini:12");
    json_decref(shown);
    s = tool("\"$T\" train zoo:lenet --dry-run --config all.ini");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "on fake:0");
    assert_says(s->out, "plugins cpu (");
    s = tool("\"$T\" plugins list --json --config all.ini");
    shown = tool_json(s, 0);
    list = json_object_get(shown, "plugins");
    json_array_foreach(list, i, plugin) if (!strcmp(text_of(plugin, "name"), "cpu-openblas"))
        assert_says(text_of(plugin, "reason"), "plugins.load");
    json_decref(shown);
    file_put("none.ini", "[plugins]\nrequire = nobody\n");
    s = tool("\"$T\" train zoo:lenet --config none.ini --out never");
    assert_int_equal(s->code, 3);
    assert_says(s->err, "nobody");
    assert_true(access("never", F_OK) != 0);
    file_put("device.ini", "[device]\ndefault = abacus:0\n");
    assert_int_equal(tool("\"$T\" train zoo:lenet --config device.ini --out never")->code, 3);
    file_put("pool.ini", "[memory.cpu]\npool = rond\n");
    s = tool("\"$T\" train zoo:lenet --dry-run --config pool.ini");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "round");
}

/* The kernel of one line of a dry run: "  8  lenet_dense0_fwd  FullyConnected  plain  64x500". */
static void kernel_is(const tool_said *s, const char *op, const char *plugin)
{
    const char *line = strstr(s->out, op);
    char found[64] = "";

    assert_int_equal(s->code, 0);
    assert_non_null(line);
    (void)sscanf(line + strlen(op), " %63s", found);
    if (strcmp(found, plugin))
        fail_msg("%s runs on %s, expected %s", op, found, plugin);
}

static void one_file_chooses_kernels(void **state)
{
    (void)state;
    if (!strstr(tool("\"$T\" plugins list")->out, "cpu-openblas")) {
        printf("skipped: no cpu-openblas\n");
        skip();
    }
    file_put("k.ini", "[kernel]\nprefer = cpu\n");
    kernel_is(tool("\"$T\" train zoo:lenet --dry-run --config k.ini"), "FullyConnected", "plain");
    kernel_is(tool("\"$T\" train zoo:lenet --dry-run --config k.ini"), "Convolution", "plain");
    file_put("k.ini", "[kernel]\nprefer = cpu-openblas\n");
    kernel_is(tool("\"$T\" train zoo:lenet --dry-run --config k.ini"), "FullyConnected", "openblas");
    file_put("k.ini", "[kernel]\nprefer = cpu-openblas\nFullyConnected@cpu = cpu\n");
    kernel_is(tool("\"$T\" train zoo:lenet --dry-run --config k.ini"), "FullyConnected", "plain");
}

/* ---- trust ------------------------------------------------------------------------------------------- */

static void who_may_say_what_runs(void **state)
{
    static const char *const keys[] = {"path", "load", "require", "trust", "trust_group"};
    static const char *const values[] = {"/tmp", "cpu", "cpu", "off", "users"};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char text[128], line[256];
        const tool_said *s;

        (void)snprintf(text, sizeof text, "[engine]\ntype = naive\n[plugins]\n%s = %s\n", keys[i], values[i]);
        file_put("tenon.ini", text);
        s = tool("\"$T\" config show");
        (void)snprintf(line, sizeof line, "error[TN-1206]: tenon.ini:4: plugins.%s may not be set here",
                       keys[i]);
        assert_int_equal(s->code, 2);
        assert_says(s->err, line);
        assert_says(s->err, "--config");
        assert_int_equal(tool("\"$T\" train zoo:lenet --out never")->code, 2);
        assert_true(access("never", F_OK) != 0);
        s = tool("\"$T\" config check");
        assert_int_equal(s->code, 2);
        assert_says(s->out, line);
        assert_int_equal(unlink("tenon.ini"), 0);
        for (char *c = strcpy(text, keys[i]); *c; c++)
            *c = (char)toupper((unsigned char)*c);
        (void)snprintf(line, sizeof line, "TENON_PLUGINS__%s=%s \"$T\" config show --origin plugins.%s", text,
                       values[i], keys[i]);
        s = tool(line);
        assert_int_equal(s->code, 0);
        assert_says(s->out, "default");
        (void)snprintf(line, sizeof line, "warning: TENON_PLUGINS__%s is ignored", text);
        assert_says(s->err, line);
        (void)snprintf(line, sizeof line, "\"$T\" config show --origin plugins.%s --set plugins.%s=%s",
                       keys[i], keys[i], values[i]);
        s = tool(line);
        assert_int_equal(s->code, 0);
        assert_says(s->out, values[i]);
    }
}

/* ---- check ------------------------------------------------------------------------------------------- */

static void check(void **state)
{
    static const char *const lines[] = {
        "error[TN-1204]: bad.ini:2: no option engine.typ; did you mean engine.type?",
        "error[TN-1205]: bad.ini:3: engine.threads = many, expected an integer",
        "error[TN-1201]: bad.ini:4: ']' is missing",
        "error[TN-1201]: bad.ini:8: type is set twice in section [engine]",
        "error[TN-1201]: bad.ini:11: expected key = value",
        "error[TN-1204]: bad.ini:12: no option engnie.type; did you mean engine.type?",
        "error[TN-1204]: bad.ini:14: no device type cqu (memory.cqu.pool); did you mean cpu?",
        "error[TN-1204]: bad.ini:17: no option plugin.fake.delay_u; did you mean delay_us?",
        "error[TN-1205]: bad.ini:16: plugin.fake.seed = x",
        "note: bad.ini:19: [plugin.nobody] was not checked",
        "note: bad.ini:21: memory.cuda.pool is set, but no plugin here provides devices of type cuda",
        "warning: bad.ini:23: kernel.Convolutoin@cpu: ",
        "warning: TENON_ENGINE__TYP names no option",
        "error[TN-1205]: TENON_TRAIN__LR: train.lr = high, expected a number",
        "warning: MXNET_ENGINE_TYP is not known and ignored; did you mean MXNET_ENGINE_TYPE?",
        "error[TN-1501]: absent.ini: ",
        "error[TN-1205]: train.epochs = none, expected an integer",
    };
    const tool_said *s;
    json_t *found;

    (void)state;
    less_make();
    file_put(
        "bad.ini",
        "[engine]\ntyp = naive\nthreads = many\n[engine\ntype = x\n[engine]\ntype = naive\ntype = naive\n"
        "  more\n[engnie]\nnonsense\ntype = naive\n[memory.cqu]\npool = none\n[plugin.fake]\nseed = x\n"
        "delay_u = 1\n[plugin.nobody]\nx = 1\n[memory.cuda]\npool = none\n[kernel]\n"
        "Convolutoin@cpu = cpu\n");
    s = tool("TENON_ENGINE__TYP=x TENON_TRAIN__LR=high MXNET_ENGINE_TYP=x " WITHOUT_CUDA
             "\"$T\" config check bad.ini absent.ini --set train.epochs=none");
    assert_int_equal(s->code, 2);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_says(s->out, lines[i]);
    s = tool("\"$T\" config check bad.ini --json");
    assert_int_equal(s->code, 2);
    found = tool_json(s, 0);
    assert_true(json_integer_value(json_object_get(found, "errors")) == 10); /* the plugin minds, too */
    json_decref(found);
    file_put("good.ini", "[plugin.fake]\nseed = 1\n[plugin.nobody]\nx = 1\n[memory.cuda]\npool = none\n"
                         "[kernel]\nFullyConnected@cuda = cuda\n");
    s = tool(WITHOUT_CUDA "\"$T\" config check good.ini");
    assert_int_equal(s->code, 0);
    assert_says(s->err, "0 errors, 0 warnings, ");
    assert_says(s->out, "note: good.ini:4: [plugin.nobody]");
    assert_string_equal(tool(WITHOUT_CUDA "\"$T\" config check good.ini -q")->out, "");
    s = tool(WITHOUT_CUDA "\"$T\" config check --config all.ini good.ini");
    assert_int_equal(s->code, 0);
    s = tool("\"$T\" config check none.ini");
    assert_int_equal(s->code, 2);
    assert_says(s->out, "TN-3017");
    assert_int_equal(tool("\"$T\" config check /dev/zero")->code, 2);
    assert_int_equal(tool("\"$T\" config check .")->code, 2);
    assert_int_equal(tool("printf '[a\\000b]\\nx=1\\n' >nul.ini; \"$T\" config check nul.ini")->code, 2);
}

/* Options of a plugin are checked when it loads; where it does not, the run says that nobody read them. */
static void unread(void **state)
{
    static const char run[] =
        "exec \"$T\" train zoo:lenet --data ./small --batch 8 --epochs 1 --out unread%d%s";
    static const struct {
        const char *more, *says; /* NULL: no word of it */
        int code;
    } rows[] = {
        {" --set plugin.fake.delay_u=1",
         "note: --set plugin.fake.delay_u=1 had no effect: this run has not loaded the plugin fake\n", 0},
        {" --set plugin.nobody.x=1", "this run has not loaded the plugin nobody\n", 0},
        {" --set plugin.fake.delay_u=1 -q", NULL, 0},
        {" --set plugin.fake.seed=1 --set plugins.require=fake", NULL, 0},
        {" --set plugin.fake.delay_u=1 --set plugins.require=fake", "did you mean delay_us?", 2},
    };
    char line[400];

    (void)state;
    tool_data("small", 40);
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, run, i, rows[i].more);
        s = tool(line);
        if (s->code != rows[i].code ||
            (rows[i].says ? !strstr(s->err, rows[i].says) : strstr(s->err, "had no effect") != NULL))
            fail_msg("row %d: code %d: %s", i, s->code, s->err);
    }
}

static const struct {
    const char *text, *says;
    int code;
} named[] = {
    {"[kernel]\nprefer = cpu\n", "", 0},
    {"[kernel]\nprefer = cpu,\n  cqu\n",
     "warning[TN-1207]: p.ini:2: kernel.prefer names the plugin cqu: no plugin here has this name; did "
     "you mean cpu",
     2},
    {"[kernel]\nprefer = cpu, mempool\n",
     "p.ini:2: kernel.prefer names the plugin mempool, which brings no kernels", 2},
    {"[kernel]\nprefer = zzzzzzzzzz\n", "the plugin zzzzzzzzzz: no plugin here has this name\n", 2},
    {"[kernel]\nFullyConnected@cpu = cpu\n", "", 0},
    {"[kernel]\nFullyConnected@fake = cpu\n", "", 0},
    {"[kernel]\nFullyConnected@cpu = cup\n",
     "warning[TN-1207]: p.ini:2: kernel.FullyConnected@cpu names the plugin cup: no plugin here has this "
     "name; did "
     "you mean cpu",
     2},
    {"[kernel]\nFullyConnected@cpu = mempool\n", "mempool, which brings no kernels", 2},
    {"[kernel]\nFullyConnected@cpu =\n", "", 0},
    {"[kernel]\ntanh@cpu = cpu/plain\n", "", 0},
    {"[kernel]\ntanh@cpu = cpu/plane\n",
     "warning[TN-1207]: p.ini:2: kernel.tanh@cpu names the kernel plane; plugin cpu has for tanh: plain", 2},
    {"[kernel]\ntanh@cpu = cpu/\n", "names the kernel ; plugin cpu has for tanh: plain", 2},
    {"[kernel]\ntanh@cpu = cup/plain\n", "names the plugin cup: no plugin here has this name", 2},
    {"[kernel]\ntanh@cpu = mempool/plain\n", "mempool, which brings no kernels", 2},
    {"[kernel]\nFullyConnected@cuda = cuda\n", "note: p.ini:2: kernel.FullyConnected@cuda is set, but no", 0},
    {"[plugins]\nload = cpu, mempol\n",
     "warning[TN-1207]: p.ini:2: plugins.load names the plugin mempol: no plugin here has this name; did "
     "you mean "
     "mempool?",
     2},
    {"[plugins]\nload = auto\n", "", 0},
    {"[plugins]\nload = mempool\n[kernel]\nprefer = cpu\n",
     "p.ini:4: kernel.prefer names the plugin cpu: it is not in "
     "plugins.load",
     2},
    {"[plugins]\nrequire = cpu, mempol\n", "error[TN-3017]: plugin mempol is required, but no file in ", 2},
    {"[plugins]\nrequire = cpu, mempol\n", "has this name; did you mean mempool?", 2},
    {"[kernel]\nprefer = "
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
     "kernel.prefer: name 1 is too long for a plugin", 2},
    {"[kernel]\nprefer = ,,cpu,,\n", "", 0},
    {"[kernel]\nprefer = ../cpu, %s%n, cpu.so\n", "kernel.prefer names the plugin %s%n: no plugin", 2},
    {"[kernel]\nprefer = \033[31mcpu\n", "no plugin here has this name", 2},
};

/* Values that name what is not there; all are warnings, for the file may be meant for another place. */
static void values_that_name(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } rows[] = {
        {"[train]\nmodel = zoo:lenett\n",
         "v.ini:2: train.model = zoo:lenett: unknown model \"zoo:lenett\"; did you mean \"zoo:lenet\"", 2},
        {"[train]\nmodel = zoo:lenet\n", "", 0},
        {"[train]\nmodel = no-symbol.json\n", "v.ini:2: train.model = no-symbol.json: No such file", 2},
        {"[train]\nmodel = v.ini.json\n", "", 0},
        {"[train]\nmodel = xyzzy\n", "unknown model", 2},
        {"[train]\ndata = nothing\n",
         "v.ini:2: train.data = nothing: data \"nothing:train\": no data set nothing", 2},
        {"[train]\ndata = ./small\n", "", 0},
        {"[train]\ndata = small:test\n[data]\npath = .\n", "", 0},
        {"[train]\nvalid = none\n", "", 0},
        {"[train]\nvalid = nothing\n", "v.ini:2: train.valid = nothing: data \"nothing:test\"", 2},
        {"[train]\nparams = no.params\n", "v.ini:2: train.params = no.params: No such file", 2},
        {"[train]\nparams = small\n", "is a folder", 2},
        {"[data]\npath = ., /nowhere\n", "v.ini:2: data.path = ., /nowhere: /nowhere is no folder", 0},
        {"[run]\ndir = v.ini\n", "v.ini:2: run.dir = v.ini: a file of this name", 2},
        {"[run]\ndir = new\n", "", 0},
        {"[profiler]\nfile = nowhere/p.json\n", "profiler.file = nowhere/p.json: nowhere is no folder", 2},
        {"[profiler]\nfile = p.json\n", "", 0},
    };
    const tool_said *s;

    (void)state;
    tool_data("small", 8);
    file_put("v.ini.json", "{}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file_put("v.ini", rows[i].text);
        s = tool("exec \"$T\" config check v.ini");
        if (s->code != rows[i].code || !strstr(s->out, rows[i].says) ||
            (!s->code && !*rows[i].says && *s->out))
            fail_msg("%s: code %d: %s%s", rows[i].text, s->code, s->out, s->err);
    }
    s = tool("TENON_TRAIN__DATA=nothing exec \"$T\" config check");
    assert_int_equal(s->code, 2);
    assert_says(s->out, "TENON_TRAIN__DATA: train.data = nothing");
    s = tool("exec \"$T\" config check --json --set train.model=xyzzy");
    assert_int_equal(s->code, 2);
    assert_says(s->out, "\"number\":\"TN-0005\"");
}

/* Names of plugins: what is required is an error, what is preferred, pinned or permitted a warning. */
static void plugin_names(void **state)
{
    const tool_said *s;
    json_t *o;

    (void)state;
    less_make();
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        file_put("p.ini", named[i].text);
        s = tool(WITHOUT_CUDA "\"$T\" config check p.ini");
        if (s->code != named[i].code || !strstr(s->out, named[i].says) || strchr(s->out, '\033'))
            fail_msg("%s: code %d: %s%s", named[i].text, s->code, s->out, s->err);
        if (!named[i].code && !*named[i].says)
            assert_string_equal(s->out, "");
    }
    s = tool("exec \"$T\" config check --json --set kernel.prefer=cqu,mempol --set plugins.require=cqu");
    assert_int_equal(s->code, 2);
    o = tool_json(s, 0);
    assert_int_equal(json_integer_value(json_object_get(o, "errors")), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "warnings")), 2);
    json_decref(o);
    s = tool("exec \"$T\" config check --set kernel.prefer=cpu-opneblas,cpu-openbla");
    assert_int_equal(s->code, 2);
    /* Each with its line, once, and with the name that was meant. */
    file_put("p.ini", "[plugin.mempol]\nx = 1\n[memory]\ncpu.pool = segmentt\n[device]\ndefault = fak:0\n");
    s = tool("exec \"$T\" config check p.ini");
    assert_int_equal(s->code, 2);
    assert_says(s->out,
                "p.ini:2: [plugin.mempol] was not checked: this plugin is not here; did you mean mempool?");
    assert_says(s->out, "p.ini:4: memory.cpu.pool is 'segmentt'");
    assert_says(s->out, "p.ini:6: device.default: no plugin provides device 'fak'");
    assert_says(s->err, "2 errors, 0 warnings, 1 note");
    s = tool("printf '[memory]\\ncpu.pool = segmentt\\n' >p.ini; exec \"$T\" config check p.ini");
    assert_int_equal(s->code, 2);
    assert_says(s->out, "p.ini:2: memory.cpu.pool is 'segmentt'");
    assert_says(s->err, "1 errors, 0 warnings, 0 notes");
    /* The doctor says the same of the configuration, with the advice. */
    s = tool("exec \"$T\" doctor --set kernel.prefer=mempol");
    assert_says(
        s->out,
        "configuration: kernel.prefer names the plugin mempol: no plugin here has this name; did you mean "
        "mempool?");
    assert_says(s->out, "tenon plugins list");
    /* Nothing of it keeps a program from starting, but what is required. */
    assert_int_equal(tool("exec \"$T\" ops relu --set kernel.prefer=mempol")->code, 0);
    s = tool("exec \"$T\" ops relu --set plugins.require=mempol");
    assert_int_equal(s->code, 3);
    assert_says(s->err, "did you mean mempool?");
}

/* ---- dump -------------------------------------------------------------------------------------------- */

static void dump(void **state)
{
    static const char *const lines[] = {"\"$T\" config dump >dump.ini",
                                        "\"$T\" config dump --commented >dump.ini"};
    json_t *table, *list, *row;

    (void)state;
    table = tool_json(tool("\"$T\" config dump --json"), 0);
    list = json_object_get(table, "options");
    assert_true(json_array_size(list) > 80);
    for (size_t i = 0; i < 2; i++) {
        const tool_said *s = tool(lines[i]);
        json_t *shown, *plain;
        size_t k;

        assert_int_equal(s->code, 0);
        assert_int_equal(tool("test -z \"$(awk 'length > 198' dump.ini)\"")->code, 0);
        s = tool("\"$T\" config check dump.ini");
        assert_int_equal(s->code, 0);
        assert_string_equal(s->out, "");
        plain = tool_json(tool("\"$T\" config show --json"), 0);
        shown = tool_json(tool("\"$T\" config show --json --config dump.ini"), 0);
        json_array_foreach(list, k, row)
        {
            const char *key = text_of(row, "key");
            char cpu[96];

            (void)snprintf(cpu, sizeof cpu, "memory.cpu.%.70s", strlen(key) > 9 ? key + 9 : "");
            if (!strncmp(key, "memory.*.", 9))
                assert_string_equal(text_of(row_of(shown, cpu), "value"), text_of(row, "default"));
            if (strchr(key, '*'))
                continue;
            assert_string_equal(text_of(row_of(shown, key), "origin"), "file");
            assert_string_equal(text_of(row_of(shown, key), "value"), text_of(row_of(plain, key), "value"));
        }
        json_decref(plain);
        json_decref(shown);
    }
    json_decref(table);
    assert_int_equal(tool("grep -q '^; MXNET_GPU_MEM_POOL_RESERVE for memory.cuda.reserve$' dump.ini")->code,
                     0);
    assert_int_equal(tool("grep -q '^; how operations are scheduled' dump.ini")->code, 0);
    assert_int_equal(tool("\"$T\" config dump >/dev/full")->code, 1);
}

/* ---- from-mxnet-env ---------------------------------------------------------------------------------- */

#define VARIABLES                                                                                            \
    "MXNET_ENGINE_TYPE=NaiveEngine MXNET_GPU_MEM_POOL_TYPE=Round OMP_NUM_THREADS=4,2 "                       \
    "MXNET_OMP_MAX_THREADS=8 "                                                                               \
    "DMLC_ROLE=server PS_HEARTBEAT_INTERVAL=5 MXNET_HOME=/data "

static void from_mxnet_env(void **state)
{
    const tool_said *s;
    json_t *shown;
    char *text;

    (void)state;
    s = tool("env " VARIABLES "MXNET_MEMORY_OPT=1 S3_SECRET_ACCESS_KEY=hush \"$T\" config from-mxnet-env "
             ">env.ini");
    assert_int_equal(s->code, 0);
    text = tool_file("env.ini");
    assert_says(text, "[engine]\n; MXNET_ENGINE_TYPE=NaiveEngine\ntype = naive\n");
    assert_says(text, "; OMP_NUM_THREADS=4,2\nthreads = 4\n");
    assert_says(text, "[memory.cuda]\n; MXNET_GPU_MEM_POOL_TYPE=Round\npool = round\n");
    assert_says(text, "; MXNET_OMP_MAX_THREADS=8, engine.threads: OMP_NUM_THREADS rules\n");
    assert_says(text, "; MXNET_MEMORY_OPT means nothing here: ");
    assert_says(text, "; S3_SECRET_ACCESS_KEY means nothing here: ");
    assert_null(strstr(text, "hush")); /* no value of what is not used */
    free(text);
    s = tool("\"$T\" config check env.ini");
    assert_int_equal(s->code, 0);
    shown = tool_json(tool("\"$T\" config show --json --config env.ini"), 0);
    row_is(shown, "engine.type", "naive", "file", "env.ini:5");
    row_is(shown, "engine.threads", "4", "file", "env.ini:7");
    row_is(shown, "kvstore.heartbeat", "5000", "file", text_of(row_of(shown, "kvstore.heartbeat"), "where"));
    row_is(shown, "data.path", "/data/datasets", "file", text_of(row_of(shown, "data.path"), "where"));
    json_decref(shown);
    /* values that a file cannot hold, or that mean nothing, are comments */
    s = tool("MXNET_HOME=\"$(printf 'a ;b\\nc')\" DMLC_INTERFACE=\" eth0\" MXNET_ENGINE_TYPE=x "
             "DMLC_NODE_HOST=$(head "
             "-c 300 /dev/zero | tr '\\0' y) \"$T\" config from-mxnet-env >odd.ini");
    assert_int_equal(s->code, 0);
    assert_int_equal(tool("grep -qv '^;' odd.ini && test -z \"$(grep -v '^;' odd.ini)\"")->code, 0);
    s = tool("\"$T\" config check odd.ini");
    assert_int_equal(s->code, 0);
    s = tool("env -i T=\"$T\" sh -c '\"$T\" config from-mxnet-env --json'");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "\"options\":[]");
    shown = tool_json(tool("env " VARIABLES "\"$T\" config from-mxnet-env --json"), 0);
    assert_true(json_array_size(json_object_get(shown, "options")) == 6);
    assert_true(json_array_size(json_object_get(shown, "unused")) == 1);
    json_decref(shown);
}

/* ---- slips ------------------------------------------------------------------------------------------- */

static void slips(void **state)
{
    static const struct {
        const char *wrong, *right;
    } keys[] = {
        {"engine.tpye", "engine.type"},
        {"engnie.type", "engine.type"},
        {"engine.typ", "engine.type"},
        {"engine.typee", "engine.type"},
        {"device.defaulr", "device.default"},
        {"memory.cpu.pol", "memory.cpu.pool"},
        {"memroy.cpu.pool", "memory.cpu.pool"},
        {"memory.cpu.pinned.resreve", "memory.cpu.pinned.reserve"},
        {"kernel.perfer", "kernel.prefer"},
        {"kernl.dot@cpu", "kernel.dot@cpu"},
        {"plugins.requires", "plugins.require"},
        {"plugin.load", "plugins.load"},
        {"run.sed", "run.seed"},
        {"train.momentun", "train.momentum"},
        {"kvstore.tranport", "kvstore.transport"},
        {"modle.pad", "model.pad"},
        {"TRAIN.EPOCHS", "train.epochs"}, /* shouted, and in the wrong section */
        {"Train.epochs", "train.epochs"},
        {"memory.cpu.POOL", "memory.cpu.pool"},
        {"train.seed", "run.seed"},
        {"kv.type", "kvstore.type"},
        {"run.wait_warn_s", "engine.wait_warn_s"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *dot = strrchr(keys[i].wrong, '.');
        char line[256], text[256], variable[128];
        const tool_said *s;

        (void)snprintf(line, sizeof line, "\"$T\" config show --set %s=x", keys[i].wrong);
        s = tool(line);
        assert_int_equal(s->code, 2);
        assert_says(s->err, keys[i].right);
        (void)snprintf(text, sizeof text, "# a comment\n[%.*s]\n%s = x\n", (int)(dot - keys[i].wrong),
                       keys[i].wrong, dot + 1);
        file_put("slip.ini", text);
        s = tool("\"$T\" config show --config slip.ini");
        assert_int_equal(s->code, 2);
        (void)snprintf(text, sizeof text, "slip.ini:3: no option %s; did you mean ", keys[i].wrong);
        assert_says(s->err, text);
        assert_says(s->err, keys[i].right);
        (void)snprintf(variable, sizeof variable, "TENON_%.*s__%s", (int)(dot - keys[i].wrong), keys[i].wrong,
                       dot + 1);
        for (char *c = variable; *c; c++)
            *c = (char)(strchr(".@-", *c) ? '_' : toupper((unsigned char)*c));
        if (!strcasecmp(keys[i].wrong, keys[i].right))
            continue; /* variables are shouted */
        (void)snprintf(line, sizeof line, "%s=x \"$T\" config show engine.type", variable);
        s = tool(line);
        assert_int_equal(s->code, 0);
        (void)snprintf(text, sizeof text, "warning: %s names no option and is ignored; did you mean TENON_",
                       variable);
        assert_says(s->err, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(show),
        cmocka_unit_test(values_that_name),
        cmocka_unit_test(show_local),
        cmocka_unit_test(one_file_switches),
        cmocka_unit_test(one_file_chooses_kernels),
        cmocka_unit_test(who_may_say_what_runs),
        cmocka_unit_test(check),
        cmocka_unit_test(unread),
        cmocka_unit_test(plugin_names),
        cmocka_unit_test(dump),
        cmocka_unit_test(from_mxnet_env),
        cmocka_unit_test(slips),
    };
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
