/*
 * plugins list, inspect, why, needs; explain; what is said of a required plugin that is not there.
 */
#include "tool.h"

#include <unistd.h>

static bool has_blas(void)
{
    return tool("\"$T\" plugins list --exists cpu-openblas")->code == 0;
}

/* ---- list ---------------------------------------------------------------------------------------- */

static void list(void **state)
{
    static const struct {
        const char *line;
        int code;
    } exists[] = {
        {"--exists cpu", 0},
        {"--exists cpu --at-least 0.0.9", 0},
        {"--exists cpu --at-least 0.1.0", 0},
        {"--exists cpu --at-least 0.10", 3},
        {"--exists cpu --at-least 99", 3},
        {"--exists cpuu", 3},
        {"--exists broken", 3},
        {"--exists cpu --at-least ''", 2}, /* an empty variable of a script asks for nothing */
        {"--exists cpu --at-least x", 2},
        {"--at-least 1", 2},
        {"--exists", 2},
    };
    char line[256];
    const tool_said *s;

    (void)state;
    assert_int_equal(tool("mkdir -p good && chmod 755 . good && printf 'no plugin' >good/broken.so")->code,
                     0);
    for (size_t i = 0; i < sizeof exists / sizeof *exists; i++) {
        (void)snprintf(line, sizeof line, "\"$T\" plugins list --set plugins.path=\"$PWD/good\" %s",
                       exists[i].line);
        s = tool(line);
        if (s->code != exists[i].code || s->out[0])
            fail_msg("%s: exit %d, %s", exists[i].line, s->code, s->out);
    }
    s = tool("\"$T\" plugins list --all");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "/cpu.so");
    assert_says(s->out, "KiB");
    s = tool(
        "d=$(dirname \"$(dirname \"$T\")\"); cd \"$d\" && l=$(find lib* -name libtenon.so.0 | head -n 1) && "
        "LD_LIBRARY_PATH=$(dirname \"$l\") \"$T\" plugins list --exists cpu"); /* found by a path of here */
    assert_int_equal(s->code, 0);
    s = tool("\"$T\" plugins list --set plugins.load=cpu");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "left out: ");
    assert_says(s->out, "mempool.so: not in plugins.load");
    /* a library that a plugin names is not there: said without loading it */
    s = tool(
        "mkdir -p lost && chmod 755 lost && p=$(\"$T\" plugins list --json | "
        "sed 's/.*\"path\":\"\\([^\"]*mempool.so\\)\".*/\\1/') && LC_ALL=C sed 's/libc\\.so\\.6/libq.so.6/; "
        "s/^/&/' \"$p\" >lost/m.so && \"$T\" plugins list --set plugins.path=\"$PWD/lost\"");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "will not load: mempool: not found: libq.so.6");
    assert_int_equal(tool("\"$T\" plugins list --exists mempool --set plugins.path=\"$PWD/lost\"")->code, 3);
    s = tool("\"$T\" plugins inspect mempool --set plugins.path=\"$PWD/lost\"");
    assert_int_equal(s->code, 3);
    assert_says(s->err, "error[TN-3011]");
    assert_says(s->err, "libq.so.6");
    s = tool("\"$T\" plugins list --ops --set plugins.path=\"$PWD/good\"");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "Convolution");
    assert_says(s->out, "FBD");
    s = tool("\"$T\" plugins list --ops --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "\"Pooling\":{\"cpu\":\"FBD");
}

/* As doctor asks: what has its device is ready, what lacks it says why. */
static void devices(void **state)
{
    const bool none = access("/sys/class/infiniband_verbs", F_OK) != 0;
    const tool_said *s = tool("\"$T\" plugins list");

    (void)state;
    assert_int_equal(s->code, 0);
    if (none && strstr(s->out, "kv-rdma "))
        assert_says(s->out, "no device: kv-rdma: this machine has no RDMA device\n");
    if (strstr(s->out, "fake "))
        assert_null(strstr(s->out, "no device: fake"));
    s = tool("\"$T\" plugins list --json");
    assert_int_equal(s->code, 0);
    if (none && strstr(s->out, "\"kv-rdma\""))
        assert_says(s->out, "\"state\":\"no device\"");
}

/* ---- inspect ------------------------------------------------------------------------------------- */

static void inspect(void **state)
{
    const tool_said *s = tool("\"$T\" plugins inspect mempool");
    json_t *o;

    (void)state;
    assert_int_equal(s->code, 0);
    assert_says(s->out, "gives     pool ");
    assert_says(s->out, "libc.so");
    assert_says(s->out, "require = mempool");
    assert_says(s->out, "licence Apache-2.0");
    s = tool("\"$T\" plugins inspect fake --set plugin.fake.delay_us=7 --json");
    assert_int_equal(s->code, 0);
    o = tool_json(s, 0);
    assert_string_equal(json_string_value(json_object_get(o, "state")), "loaded");
    assert_true(json_array_size(json_object_get(o, "libraries")) > 0);
    assert_true(json_array_size(json_object_get(o, "options")) > 3);
    assert_says(s->out,
                "\"key\":\"delay_us\",\"type\":\"int\",\"choices\":\"\",\"default\":\"50\",\"value\":\"7\"");
    json_decref(o);
    s = tool("cp \"$(\"$T\" plugins list --json | sed 's/.*\"path\":\"\\([^\"]*mempool.so\\)\".*/\\1/')\" "
             "mine.so && "
             "chmod 755 . mine.so && \"$T\" plugins inspect ./mine.so");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "/mine.so");
    s = tool("\"$T\" plugins inspect memool");
    assert_int_equal(s->code, 3);
    assert_says(s->err, "did you mean \"mempool\"");
    s = tool("\"$T\" plugins inspect ./good/broken.so");
    assert_int_equal(s->code, 3);
    assert_says(s->err, "error[TN-3003]");
    assert_says(s->err, "/good/broken.so: "); /* the file is named */
    for (uint32_t i = 0; i < 3; i++) {        /* a file, with and without a folder, is told from a name */
        static const char *const absent[] = {"./absent.so", "absent.so", "no/folder"};
        char command[64];

        (void)snprintf(command, sizeof command, "\"$T\" plugins inspect %s", absent[i]);
        s = tool(command);
        assert_int_equal(s->code, 3);
        assert_says(s->err, absent[i]);
        assert_says(s->err, ": No such file or directory");
    }
    assert_int_equal(tool("\"$T\" plugins inspect /dev/null")->code, 3);
    assert_int_equal(tool("\"$T\" plugins inspect")->code, 2);
    assert_int_equal(tool("\"$T\" plugins inspect ''")->code, 3);
    s = tool("\"$T\" plugins inspect cpu"); /* many tables, one line */
    assert_says(s->out, "gives     kernels @cpu: ");
    assert_null(strstr(strstr(s->out, "kernels @cpu: ") + 1, "kernels @cpu: "));
}

/* ---- why ----------------------------------------------------------------------------------------- */

static void why_is(const char *options, const char *plugin, const char *rule, const char *option)
{
    char line[512];
    const tool_said *s;
    const char *got_plugin, *got_rule, *got_option;
    json_t *o;

    (void)snprintf(line, sizeof line,
                   "\"$T\" plugins why FullyConnected --device cpu --dtype float32 --json %s", options);
    s = tool(line);
    o = tool_json(s, 0);
    assert_non_null(o);
    got_plugin = json_string_value(json_object_get(json_object_get(o, "chosen"), "plugin"));
    got_rule = json_string_value(json_object_get(o, "rule"));
    got_option = json_string_value(json_object_get(o, "option"));
    if (s->code || !got_plugin || strcmp(got_plugin, plugin) || strcmp(got_rule, rule) ||
        strcmp(got_option, option))
        fail_msg("%s: exit %d, %s", options, s->code, s->out);
    json_decref(o);
}

static void why(void **state)
{
    (void)state;
    if (!has_blas()) {
        print_message("skipped: cpu-openblas was not built\n");
        skip();
    }
    assert_int_equal(tool("printf '[kernel]\\nFullyConnected@cpu = cpu\\n' >pin.ini;"
                          "printf '[kernel]\\nprefer = cpu, cpu-openblas\\n' >prefer.ini;"
                          "printf '[plugins]\\nload = cpu, mempool\\n' >load.ini")
                         ->code,
                     0);
    why_is("", "cpu-openblas", "rank", "");
    why_is("--shape 64,784 --attr num_hidden=10", "cpu-openblas", "rank", "");
    why_is("--shape data=64,784 --shape weight=10,784 --shape bias=10 --attr num_hidden=10", "cpu-openblas",
           "rank", "");
    why_is("--config pin.ini", "cpu", "pin", "kernel.FullyConnected@cpu");
    why_is("--config prefer.ini", "cpu", "prefer", "kernel.prefer");
    why_is("--config load.ini", "cpu", "plugins.load", "plugins.load");
    assert_says(tool("\"$T\" plugins why FullyConnected --config pin.ini")->out, "pin.ini:2");
    assert_says(tool("\"$T\" plugins why FullyConnected --config pin.ini")->out, "not the pinned one");
}

/* A library that comes before the real one says how it was built. */
#define PRELOADED                                                                                            \
    "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 LD_PRELOAD=\"$PWD/own.so\" \"$T\" plugins why "     \
    "FullyConnected --device cpu --dtype float32 "

/* Another build of OpenBLAS gives bits that depend on the number of threads: the plugin declines,
 * cpu serves. */
static void openblas_without_openmp(void **state)
{
    static const struct {
        const char *parallel, *says;
    } builds[] = {{"0", "built without threads"}, {"1", "built with threads of its own"}};
    char line[256];
    const tool_said *s;

    (void)state;
    if (!has_blas() || tool("command -v cc")->code) {
        print_message("skipped: cpu-openblas was not built, or there is no cc\n");
        skip();
    }
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        (void)snprintf(line, sizeof line,
                       "echo 'int openblas_get_parallel(void) { return %s; }' >own.c &&"
                       "cc -shared -fPIC -o own.so own.c",
                       builds[i].parallel);
        assert_int_equal(tool(line)->code, 0);
        s = tool(PRELOADED);
        assert_int_equal(s->code, 0);
        assert_says(s->err, builds[i].says);
        assert_says(s->err, "libopenblas0-openmp");
        assert_says(s->out, "L14: init of cpu-openblas failed");
        s = tool(PRELOADED "--set plugins.require=cpu-openblas");
        assert_int_equal(s->code, 3);
        assert_says(s->err, builds[i].says);
    }
}

static void why_not(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"FullyConected", 3, "did you mean FullyConnected"},
        {"FullyConnected --device abacus", 3, "abacus"},
        {"FullyConnected --dtype float33", 2, "float33"},
        {"FullyConnected --dtype float16 --set plugins.load=cpu-openblas", 1, ""},
        {"FullyConnected --set kernel.FullyConnected@cpu=nobody", 1, ""},
        {"FullyConnected --shape 64,784", 2, "num_hidden"},
        {"FullyConnected --shape 64x --attr num_hidden=10", 2, "64x"},
        {"FullyConnected --shape x=64,784 --attr num_hidden=10", 2, "data, weight, bias"},
        {"FullyConnected --shape 64,784 --attr num_hidden=-4", 2, "num_hidden"},
        {"FullyConnected --shape 64,784 --attr num_hidden", 2, "NAME=VALUE"},
        {"FullyConnected --shape data=64,784 --shape weight=3,3 --attr num_hidden=10", 1, "weight (3, 3)"},
        {"FullyConnected --shape 9223372036854775807,9223372036854775807 --attr num_hidden=10", 1, ""},
        {"", 2, "OPERATOR"},
        {"''", 2, ""},
        {"acme_scale_shift", 3, "no operator acme_scale_shift"},
        /* a plugin would bring it, and is refused: when it is found, when it is loaded, on purpose */
        {"acme_scale_shift --set plugins.path=\"$PWD/open\"", 3, "open/acme-operator.so was refused: "},
        {"acme_scale_shift --set plugins.path=\"$PWD/differs\"", 3,
         "plugin acme-operator was refused: acme-operator has a table kernels:cpu"},
        {"acme_scale_shift --set plugins.path=\"$PWD/sound\" --set plugins.load=cpu", 3,
         "not in plugins.load"},
        {"acme_scale_shift --set plugins.path=\"$PWD/sound\"", 0, ""},
    };
    const tool_said *said;
    char line[512];

    (void)state;
    assert_int_equal(tool("p=$TENON_TEST_BUILD/templates/acme-operator.so; mkdir -p open differs sound && "
                          "cp \"$p\" open && cp \"$p\" sound && chmod 777 open && chmod 755 differs sound && "
                          "LC_ALL=C sed 's/kernels@cpu/kernels@cpx/' \"$p\" >differs/acme-operator.so")
                         ->code,
                     0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, "\"$T\" plugins why %s", cases[i].line);
        s = tool(line);
        if (s->code != cases[i].code || !strstr(s->err, cases[i].says))
            fail_msg("%s: exit %d: %s%s", cases[i].line, s->code, s->out, s->err);
    }
    assert_says(tool("\"$T\" plugins why Flatten --shape 2,3,4")->out, "a view of the input");
    assert_says(tool("\"$T\" plugins why FullyConnected --set plugins.load=mempool")->out, "decided by none");
    /* a pin is for its device type, also where a device borrows the kernels of another */
    said = tool("\"$T\" plugins why FullyConnected --device fake --set kernel.FullyConnected@cpu=mempool");
    assert_int_equal(said->code, 0);
    said = tool("\"$T\" plugins why FullyConnected --device fake --set kernel.FullyConnected@fake=cpu");
    assert_int_equal(said->code, 0);
    assert_says(said->out, "decided by pin: pinned (kernel.FullyConnected@fake = cpu, the command line)");
    /* a call says the same */
    said = tool("\"$T\" bench op relu --shape 4x4 --repeat 3 --set plugins.load=mempool");
    assert_says(said->err, "no loaded plugin has one; cpu");
    assert_says(said->err,
                "; cpu was refused: not in plugins.load; image was refused: not in plugins.load\n");
    assert_says(said->err, "error[TN-1302]: operator relu has no kernel on device cpu: no loaded plugin");
    assert_int_equal(said->code, 3); /* a plugin is missing */
    said = tool("\"$T\" bench model zoo:lenet --shape 1,1,8,8 --repeat 3 --set plugins.load=mempool");
    assert_says(said->err, "error[TN-1302]: operator Convolution has no kernel on device cpu: no loaded");
    assert_int_equal(said->code, 3);
    said = tool("\"$T\" train zoo:lenet --data digits --dry-run --set plugins.load=mempool");
    assert_says(said->err, "error[TN-1302]: net lenet: operator Convolution has no kernel");
    assert_int_equal(said->code, 3);
}

/* ---- operators of plugins ------------------------------------------------------------------------ */

static void operators(void **state)
{
    static const struct {
        const char *line, *says;
        int code;
    } cases[] = {
        {"ops --search scale_shift", "acme_scale_shift", 0},
        {"ops --family acme-operator", "acme_scale_shift", 0},
        {"ops --family kind-body-healthy", "kind_gate", 0},
        {"ops kind_gate", "its body runs by the device's kernel of _fused_pointwise", 0},
        {"plugins why kind_gate", "decided by body: no kernel of its own is needed", 0},
        {"plugins why kind_gate --set plugins.load=kind-body-healthy", "decided by none", 1},
        {"plugins why acme_scale_shift --dtype int8", "int8 is no floating point type", 1},
    };
    char line[512];

    (void)state;
    assert_int_equal(
        tool("mkdir -p ops && chmod 755 ops && cp \"$TENON_TEST_BUILD/templates/acme-operator.so\" "
             "\"$TENON_TEST_BUILD/tests/check/kinds/kind-body-healthy.so\" ops")
            ->code,
        0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, "\"$T\" %s --set plugins.path=\"$PWD/ops\"", cases[i].line);
        s = tool(line);
        if (s->code != cases[i].code || (!strstr(s->out, cases[i].says) && !strstr(s->err, cases[i].says)))
            fail_msg("%s: exit %d: %s%s", line, s->code, s->out, s->err);
    }
}

/* ---- needs --------------------------------------------------------------------------------------- */

/* A scheduler computes nothing, a server runs optimizers; a transport that is not built is told, too. */
static void needs_of_jobs(void **state)
{
    const tool_said *s;

    (void)state;
    for (int i = 0; i < 3; i++) {
        static const char *const lines[] = {"role = scheduler", "role = server", "type = dist_sync"};
        char ask[256];

        (void)snprintf(ask, sizeof ask,
                       "printf '[kvstore]\n%s\n' >k.ini && \"$T\" plugins needs k.ini --json", lines[i]);
        s = tool(ask);
        assert_true(s->code == 0 || s->code == 3); /* whether it is built or not */
        assert_says(s->out, i < 2 ? "\"why\":\"kvstore.role" : "\"why\":\"kvstore.type");
        assert_true(strstr(s->out, "\"name\":\"kv-zmq\"") || strstr(s->out, "transport:zmq"));
        assert_true(!strstr(s->out, "\"name\":\"cpu\"") == (i != 1));
    }
}

static void needs(void **state)
{
    static const char model[] =
        "printf '{\"nodes\":[{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"
        "{\"op\":\"Pooling\",\"name\":\"p1\",\"attrs\":{\"kernel\":\"(2, 2)\"},\"inputs\":[[0,0,0]]},"
        "{\"op\":\"NoSuchOp\",\"name\":\"n1\",\"inputs\":[[1,0,0]]},"
        "{\"op\":\"Pooling\",\"name\":\"p2\",\"attrs\":{\"kernel\":\"x\"},\"inputs\":[[2,0,0]]},"
        "{\"op\":\"NoSuchOther\",\"name\":\"n2\",\"inputs\":[[3,0,0]]}],"
        "\"arg_nodes\":[0],\"heads\":[[4,0,0]]}' >%s";
    char line[1024];
    const tool_said *s;

    (void)state;
    (void)snprintf(line, sizeof line, model, "bad-symbol.json");
    assert_int_equal(tool(line)->code, 0);
    s = tool("\"$T\" plugins needs bad-symbol.json");
    assert_int_equal(s->code, 3);
    assert_says(s->out, "not served: node n1: NoSuchOp"); /* all at once */
    assert_says(s->out, "not served: node p2: Pooling");
    assert_says(s->out, "not served: node n2: NoSuchOther");
    assert_says(s->out, "apt install libtenon0 tenon tenon-plugin-cpu");
    assert_int_equal(tool("sed -e '/x/s/\"x\"/\"(2, 2)\"/; s/NoSuchOp\"/relu\"/; s/NoSuchOther/relu/' "
                          "bad-symbol.json >good-symbol.json")
                         ->code,
                     0);
    s = tool("\"$T\" plugins needs good-symbol.json --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "\"unserved\":[]");
    assert_says(s->out, "\"operators\":4");
    assert_says(s->out, "\"name\":\"libtenon\"");
    assert_says(s->out, "libjansson.so."); /* that of a library */
    s = tool(
        "printf '[plugins]\\nrequire = cpu,\\n  nobody\\n[memory.cpu]\\npool = round\\n[device]\\ndefault = "
        "fake:0\\n[kernel]\\nPooling@cpu = cpu/plain\\n[train]\\nmodel = zoo:lenet\\n' >c.ini && "
        "\"$T\" plugins needs c.ini --json");
    assert_int_equal(s->code, 3);
    assert_says(s->out, "\"name\":\"nobody\",\"why\":\"plugins.require\",\"present\":false");
    assert_says(s->out, "\"name\":\"mempool\",\"why\":\"memory.cpu.pool");
    assert_says(s->out, "\"name\":\"fake\",\"why\":\"device.default\"");
    assert_says(s->out, "kernel.Pooling@cpu");
    s = tool("printf '[plugins]\\npath = %s/templates\\n[kvstore]\\ntransport = acme_tcp\\n' "
             "\"$TENON_TEST_BUILD\" >t.ini && \"$T\" plugins needs t.ini --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "\"name\":\"acme-transport\",\"why\":\"kvstore.transport");
    s = tool("grep -v nobody c.ini >d.ini && \"$T\" plugins needs d.ini");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "together ");
    assert_int_equal(
        tool("mkdir -p run && cp good-symbol.json run/model-symbol.json && printf "
             "'{\"plugins\":[{\"name\":\"cpu\",\"loaded\":true},{\"name\":\"gone\",\"loaded\":true},"
             "{\"name\":\"idle\",\"loaded\":false}]}' "
             ">run/run.json")
            ->code,
        0);
    s = tool("\"$T\" plugins needs run");
    assert_int_equal(s->code, 3); /* one that the run had is gone */
    assert_says(s->out, "gone");
    assert_null(strstr(s->out, "idle"));
    assert_says(s->out, "absent");
    assert_int_equal(tool("printf '[' >run/run.json; \"$T\" plugins needs run")->code,
                     0); /* the model says enough */
    assert_int_equal(tool("\"$T\" plugins needs absent-symbol.json")->code, 2);
    assert_int_equal(tool("printf '{' >broken-symbol.json; \"$T\" plugins needs broken-symbol.json")->code,
                     4);
    assert_int_equal(tool("printf '[1]' >broken-symbol.json; \"$T\" plugins needs broken-symbol.json")->code,
                     4);
    assert_int_equal(
        tool("printf '{\"nodes\":[1,null,{\"op\":4}]}' >odd.json; \"$T\" plugins needs odd.json")->code, 0);
    assert_int_equal(tool("\"$T\" plugins needs absent.ini")->code, 2);
    assert_int_equal(tool("\"$T\" plugins needs")->code, 2);
}

/* Where the plugin cpu has a kernel, another one that is chosen is for speed. */
static void needs_for_speed(void **state)
{
    const tool_said *s = tool("\"$T\" plugins needs zoo:lenet | grep '^cpu'");

    (void)state;
    assert_says(s->out, "cpu ");
    for (const char *row = strstr(s->out, "cpu-"); row; row = strstr(row + 1, "\ncpu-"))
        assert_non_null(strstr(row, "  optional: "));
    assert_int_equal(tool("\"$T\" plugins needs zoo:lenet | grep '^cpu .*  optional: '")->code, 1);
}

/* Inputs that are images are read by a plugin: said where the model's data, or else its operators, mean
 * such. */
static void needs_of_images(void **state)
{
    static const char about[] = "printf '{\"inputs\":[{\"shape\":%s,\"divisor\":%s}%s]}' >pic-data.json && "
                                "\"$T\" plugins needs pic-symbol.json | grep '^image '";
    static const char *const rows[][4] = {{"[3,8,8]", "255", "", "0"},
                                          {"[3,8,8]", "0", "", "1"},
                                          {"[64]", "255", "", "1"},
                                          {"[3,8,8]", "255", ",{}", "1"},
                                          {"8", "\"x\"", "", "1"}};
    const tool_said *s;
    char line[512];

    (void)state;
    s = tool("\"$T\" plugins needs zoo:lenet && \"$T\" plugins needs zoo:lenet --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "optional: inputs in JPEG or PNG files");
    assert_says(s->out, "install: apt install libtenon0 tenon tenon-plugin-");
    assert_says(s->out, " tenon-plugin-image");
    assert_says(s->out, "\"name\":\"image\",\"why\":\"inputs in JPEG or PNG files\"");
    assert_int_equal(tool("\"$T\" plugins needs zoo:mlp | grep -q 'plugin-image'")->code, 1);
    assert_int_equal(tool("cp good-symbol.json pic-symbol.json; \"$T\" plugins needs pic-symbol.json | "
                          "grep -q plugin-image")
                         ->code,
                     1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(line, sizeof line, about, rows[i][0], rows[i][1], rows[i][2]);
        if (tool(line)->code != (int)(rows[i][3][0] - '0'))
            fail_msg("row %zu", i);
    }
    assert_int_equal(tool("echo '[' >pic-data.json; \"$T\" plugins needs pic-symbol.json")->code, 0);
}

/* Files of all versions, whose hidden attributes stand among those that operators read. */
static void needs_of_old_files(void **state)
{
    static const char *const versions[] = {"0.8", "0.9.3", "0.11", "1.0"};
    char line[1024];

    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line,
                       "\"$T\" plugins needs \"$TENON_TEST_SOURCE/tests/golden/json/mxnet-%s-symbol.json\"",
                       versions[i]);
        s = tool(line);
        assert_int_equal(s->code, 0);
        assert_null(strstr(s->out, "not served"));
        assert_says(s->out, "Convolution");
    }
}

/* All operators that a model lacks are told at once, whichever command reads it. */
static void operators_missing(void **state)
{
    static const char model[] =
        "printf '{\"nodes\":[{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"
        "{\"op\":\"Poolin\",\"name\":\"p1\",\"attrs\":{\"kernel\":\"(2, 2)\"},\"inputs\":[[0,0,0]]},"
        "{\"op\":\"relu\",\"name\":\"r1\",\"inputs\":[[1,0,0]]},"
        "{\"op\":\"NoSuchOp\",\"name\":\"n\\\\u009b1\",\"inputs\":[[2,0,0]]}],"
        "\"arg_nodes\":[0],\"heads\":[[3,0,0]]}' >lacks-symbol.json; : >w.params; echo 1 >x.csv";
    static const char *const commands[] = {
        "exec \"$T\" predict lacks-symbol.json w.params x.csv",
        "exec \"$T\" eval lacks-symbol.json w.params --data digits",
        "exec \"$T\" train lacks-symbol.json --data digits --out never",
        "exec \"$T\" viz lacks-symbol.json",
    };

    (void)state;
    assert_int_equal(tool(model)->code, 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const tool_said *s = tool(commands[i]);

        if (strstr(commands[i], "eval")) /* which reads the numbers first */
            s = tool("\"$T\" train zoo:lenet --data digits --epochs 1 --out w -q && "
                     "exec \"$T\" eval lacks-symbol.json w/model-0000.params --data digits");
        assert_int_equal(s->code, 3);
        assert_says(s->err, "error[TN-1301]: lacks-symbol.json: 2 nodes have operators that are not here");
        assert_says(s->err, "node 1 \"p1\": there is no operator Poolin, did you mean Pooling");
        assert_says(s->err, "node 3 \"n\\xc2\\x9b1\": there is no operator NoSuchOp"); /* harmless */
        assert_says(s->err, "tenon plugins list");
    }
}

/* ---- a required plugin that is not there --------------------------------------------------------- */

static size_t lines_with(const char *text, const char *begin)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, begin)); at++)
        count += at == text || at[-1] == '\n';
    return count;
}

static void required(void **state)
{
    static const struct {
        const char *make;
        size_t refused;
    } cases[] = {
        {"true", 0},
        {"printf 'no plugin' >few/nobody.so", 1},
        {"for i in $(seq 29); do printf 'no plugin' >few/f$i.so; done", 30},
    };
    const tool_said *s;

    (void)state;
    assert_int_equal(
        tool("mkdir -p few && chmod 755 . few && cp good-symbol.json m-symbol.json || true")->code, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tool(cases[i].make)->code, 0);
        s = tool("\"$T\" train zoo:lenet --epochs 1 --out never --set plugins.require=nobody --set "
                 "plugins.path=\"$PWD/few, $PWD/nowhere\"");
        assert_int_equal(s->code, 3);
        assert_int_equal(access("never", F_OK), -1); /* before any work */
        assert_int_equal(lines_with(s->err, "error: refused "), cases[i].refused);
        assert_says(s->err, "/few: ");
        assert_says(s->err, "/nowhere: it cannot be opened");
        assert_true(lines_with(s->err, "error: searched ") == 3);
        assert_says(s->err, "error: plugins that can be used: cpu");
        assert_says(s->err, "error[TN-3017]: plugin nobody is required");
        if (i)
            assert_says(s->err, "/few/nobody.so: L03 ");
    }
    s = tool("\"$T\" version --set plugins.require=nobody"); /* opens nothing */
    assert_int_equal(s->code, 0);
}

/* ---- explain ------------------------------------------------------------------------------------- */

static void explain(void **state)
{
    static const struct {
        const char *line, *says;
        int code;
    } cases[] = {
        {"TN-3005", "(L05)", 0},
        {"tn-3005", "(L05)", 0},
        {"TN3005", "(L05)", 0},
        {"3005", "(L05)", 0},
        {"L05", "TN-3005", 0},
        {"l05", "TN-3005", 0},
        {"TN_E_SHAPE", "shapes do not fit", 0},
        {"'error[TN-1204]: c.ini:4: no option x'", "an option is unknown", 0},
        {"rejected: /x/y.so: L02: /x may be written by its group", "chown", 0},
        {"an option may not be set in this place", "TN-1206", 0},
        {"K-modes", "add: kernel/modes", 0},
        {"k-modes", "K-modes, a rule of the conformance kit", 0},
        {"K-declared", "for each data type that a kernel declares", 0},
        {"R3", "reads nothing behind the end of an older host's tables: abi/old-host", 0},
        {"'FAIL  kernel/bounds/x/y: K-bounds: touches memory'", "kernel/bounds", 0},
        {"K-modes --json", "\"test\":\"modes\"", 0},
        {"R5 --json", "\"test\":null", 0},
        {"K-mods", "did you mean \"K-modes\"?", 2},
        {"K-", "", 2},
        {"TN-9999", "TN-", 2},
        {"0", "", 2},
        {"99999999999999999999", "", 2},
        {"L5x", "", 2},
        {"''", "", 2},
        {"xyzzy", "", 2},
    };
    const tool_said *s;
    char line[256];
    json_t *o;
    size_t reserved = 0, refusals = 0, i;
    json_t *e;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(line, sizeof line, "\"$T\" explain %s", cases[i].line);
        s = tool(line);
        if (s->code != cases[i].code || !strstr(s->code ? s->err : s->out, cases[i].says))
            fail_msg("%s: exit %d: %s%s", cases[i].line, s->code, s->out, s->err);
    }
    s = tool("\"$T\" explain");
    assert_says(s->out, "TN-3018  L18");
    assert_says(s->out, "TN-3019  L19");
    assert_says(s->out, "\nrules of `tenon plugins check`\n");
    assert_says(s->out, " K-modes");
    assert_says(s->out, "`tenon explain NAME`");
    s = tool("\"$T\" explain --json");
    assert_int_equal(s->code, 0);
    o = tool_json(s, 0);
    json_array_foreach(json_object_get(o, "errors"), i, e)
    {
        refusals += !json_is_null(json_object_get(e, "refusal"));
        reserved += json_is_true(json_object_get(e, "reserved"));
    }
    assert_true(json_array_size(json_object_get(o, "rules")) > 20);
    json_array_foreach(json_object_get(o, "rules"), i, e) /* each can be asked for */
    {
        (void)snprintf(line, sizeof line, "\"$T\" explain %s", json_string_value(e));
        assert_int_equal(tool(line)->code, 0);
    }
    assert_int_equal(refusals, 19);
    assert_int_equal(reserved, 3); /* L09, L10, L16 */
    json_decref(o);
}

static int setup(void **state)
{
    (void)state;
    tool_setup();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tool_teardown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list),
        cmocka_unit_test(devices),
        cmocka_unit_test(inspect),
        cmocka_unit_test(why),
        cmocka_unit_test(operators),
        cmocka_unit_test(openblas_without_openmp),
        cmocka_unit_test(why_not),
        cmocka_unit_test(needs),
        cmocka_unit_test(needs_of_jobs),
        cmocka_unit_test(needs_for_speed),
        cmocka_unit_test(needs_of_images),
        cmocka_unit_test(operators_missing),
        cmocka_unit_test(needs_of_old_files),
        cmocka_unit_test(required),
        cmocka_unit_test(explain),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
