/*
 * A newcomer's own data: the same digits as IDX, CSV, .npz, .npy, RecordIO, PNG and JPEG train with one
 * command to what scikit-learn reaches (tests/oracle/own.py has recorded it), are evaluated and predicted
 * from; tables with texts for labels; a regression in the units of the file; what `tenon data info` says;
 * files with mistakes, by place.
 */
#include "tool.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/image.h"
#include "tenon/nn.h"
#include "tenon/tenon.h"

#define EACH 64
#define ROWS_MAX 1600

typedef struct part {
    const char *name, *stem;
    int count;
    unsigned char pixels[ROWS_MAX * EACH], labels[ROWS_MAX];
} part;

static part parts[] = {{.name = "train", .stem = "train"}, {.name = "test", .stem = "t10k"}};

/* A figure of scikit-learn's, by data set and estimator. */
static double figure(const char *name, const char *estimator)
{
    char path[2048], line[128], a[32], b[32], number[32];
    double value = NAN;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/own/figures.txt",
                   getenv("TENON_TEST_SOURCE"));
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%31s %31s %31s", a, b, number) == 3 && !strcmp(a, name) && !strcmp(b, estimator))
            value = strtod(number, NULL);
    (void)fclose(file);
    assert_true(isfinite(value));
    return value;
}

static void idx_read(part *p)
{
    char path[2048];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/examples/data/digits/%s-images-idx3-ubyte",
                   getenv("TENON_TEST_SOURCE"), p->stem);
    file = fopen(path, "r");
    assert_true(file && !fseek(file, 16, SEEK_SET));
    p->count = (int)(fread(p->pixels, 1, sizeof p->pixels, file) / EACH);
    (void)fclose(file);
    (void)snprintf(path, sizeof path, "%s/examples/data/digits/%s-labels-idx1-ubyte",
                   getenv("TENON_TEST_SOURCE"), p->stem);
    file = fopen(path, "r");
    assert_true(file && !fseek(file, 8, SEEK_SET));
    assert_int_equal(fread(p->labels, 1, sizeof p->labels, file), p->count);
    (void)fclose(file);
}

/* csv/PART.csv: the label first, as people export MNIST. */
static void csv_write(const part *p)
{
    char path[64];
    FILE *out;

    (void)mkdir("csv", 0700);
    (void)snprintf(path, sizeof path, "csv/%s.csv", p->name);
    out = fopen(path, "w");
    assert_non_null(out);
    (void)fprintf(out, "digit");
    for (int k = 0; k < EACH; k++)
        (void)fprintf(out, ",p%d", k);
    for (int i = 0; i < p->count; i++) {
        (void)fprintf(out, "\nd%d", p->labels[i]);
        for (int k = 0; k < EACH; k++)
            (void)fprintf(out, ",%d", p->pixels[i * EACH + k]);
    }
    assert_true(fprintf(out, "\n") == 1 && !fclose(out));
}

static void images_write(tn_ctx *ctx, const part *p, const char *kind)
{
    char path[128];

    (void)mkdir(kind, 0700);
    (void)snprintf(path, sizeof path, "%s/%s", kind, p->name);
    (void)mkdir(path, 0700);
    for (int i = 0; i < p->count; i++) {
        tn_array *a = NULL;
        void *data = NULL;
        uint64_t bytes = 0;
        FILE *out;

        assert_false(tn_array_from(ctx, TN_U8, 2, (const int64_t[]){8, 8}, p->pixels + i * EACH, &a));
        assert_false(tn_image_encode(ctx, a, kind, 0, &data, &bytes));
        (void)snprintf(path, sizeof path, "%s/%s/d%d", kind, p->name, p->labels[i]);
        (void)mkdir(path, 0700);
        (void)snprintf(path, sizeof path, "%s/%s/d%d/%04d.%s", kind, p->name, p->labels[i], i, kind);
        out = fopen(path, "w");
        assert_true(out && fwrite(data, 1, bytes, out) == bytes && !fclose(out));
        tn_free(data);
        tn_array_release(a);
    }
}

static void arrays_write(tn_ctx *ctx)
{
    const char *const names[] = {"x_train", "y_train", "x_test", "y_test"};
    tn_array *arrays[4] = {NULL};
    tn_params *params = NULL;

    (void)mkdir("npy", 0700);
    for (int i = 0; i < 4; i++) {
        const part *p = &parts[i / 2];
        char path[64];

        assert_false(
            i % 2 ? tn_array_from(ctx, TN_U8, 1, (const int64_t[]){p->count}, p->labels, &arrays[i])
                  : tn_array_from(ctx, TN_U8, 3, (const int64_t[]){p->count, 8, 8}, p->pixels, &arrays[i]));
        (void)snprintf(path, sizeof path, "npy/%s.npy", names[i]);
        assert_false(tn_npy_save(arrays[i], path));
    }
    assert_false(tn_params_create(&params));
    for (int i = 0; i < 4; i++)
        assert_false(tn_params_add(params, names[i], arrays[i]));
    assert_false(tn_save(ctx, params, "digits.npz"));
    tn_params_destroy(params);
    (void)mkdir("npz", 0700); /* a file for each part */
    for (int i = 0; i < 2; i++) {
        params = NULL;
        assert_false(tn_params_create(&params));
        assert_false(tn_params_add(params, "x", arrays[2 * i]));
        assert_false(tn_params_add(params, "y", arrays[2 * i + 1]));
        assert_false(tn_save(ctx, params, i ? "npz/test.npz" : "npz/train.npz"));
        tn_params_destroy(params);
    }
    for (int i = 0; i < 4; i++)
        tn_array_release(arrays[i]);
}

/* Images and archives come by plugins. */
static bool plugins_there(void)
{
    static const char *const names[] = {"image", "npz"};
    char path[2048];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s.so", getenv("TENON_TEST_PLUGINS"), names[i]);
        if (!access(path, R_OK))
            continue;
        print_message("skipped: the plugin %s was not built\n", names[i]);
        return false;
    }
    return true;
}

static int own_setup(void **state)
{
    static char plugins[2048];
    const char *settings[] = {plugins, NULL};
    tn_app *app;

    (void)state;
    tool_setup();
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    app = tn_app_open(.name = "own", .settings = settings);
    assert_true(tn_app_ok(app));
    for (int i = 0; i < 2; i++) {
        idx_read(&parts[i]);
        csv_write(&parts[i]);
        images_write(tn_app_ctx(app), &parts[i], "png");
        images_write(tn_app_ctx(app), &parts[i], "jpg");
    }
    arrays_write(tn_app_ctx(app));
    assert_int_equal(tn_app_close(app), 0);
    assert_int_equal(
        tool("mkdir rec && for p in train test; do \"$T\" data pack png rec/$p.rec --part $p; done")->code,
        0);
    return 0;
}

static int own_teardown(void **state)
{
    (void)state;
    tool_teardown();
    return 0;
}

/* The number behind `key` at the beginning of a line. */
static double said(const tool_said *s, const char *key)
{
    const char *at = s->out;

    if (s->code)
        fail_msg("exit code %d: %s%s", s->code, s->out, s->err);
    while (at && strncmp(at, key, strlen(key)))
        at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    if (!at)
        fail_msg("no %s in %s", key, s->out);
    return at ? strtod(at + strlen(key), NULL) : NAN;
}

static void every_format(void **state)
{
    static const struct {
        const char *name, *data, *options, *input, *answer;
    } rows[] = {
        {"idx", "digits", "", "", ""},
        {"csv", "./csv", "--set data.label=digit", "csv/test.csv", "d0"},
        {"npz", "digits.npz", "", "", ""},
        {"npy", "./npy", "", "npy/x_test.npy", ""},
        {"rec", "./rec", "", "rec/test.rec", ""},
        {"png", "./png", "", "png/test/d0/0000.png", "d0"},
        {"jpg", "./jpg", "", "jpg/test/d0/0000.jpg", "d0"},
    };
    const tool_said *answered;
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double least = figure("digits", "logistic");
        double trained, again;

        (void)snprintf(
            line, sizeof line,
            "\"$T\" train zoo:mlp --data %s %s --epochs 25 --batch 32 --out run-%s --progress none",
            rows[i].data, rows[i].options, rows[i].name);
        trained = said(tool(line), "accuracy ");
        if (trained < least)
            fail_msg("%s: accuracy %.4f, scikit-learn has %.4f", rows[i].name, trained, least);
        (void)snprintf(line, sizeof line,
                       "\"$T\" eval run-%s/model-symbol.json run-%s/model-0000.params --data %s",
                       rows[i].name, rows[i].name, rows[i].data);
        again = said(tool(line), "accuracy ");
        if (fabs(again - trained) > 1e-9)
            fail_msg("%s: accuracy %.4f after the training, %.4f by eval", rows[i].name, trained, again);
        if (!*rows[i].input)
            continue;
        (void)snprintf(line, sizeof line, "\"$T\" predict run-%s %s --json | head -n 1", rows[i].name,
                       rows[i].input);
        answered = tool(line);
        assert_int_equal(answered->code, 0);
        assert_says(answered->out, "\"probability\":");
        assert_says(answered->out, rows[i].answer);
    }
}

/* A model takes its data in every format: pixels are the same numbers as bytes of IDX, .npy and PNG. */
static void any_format(void **state)
{
    static const char *const data[] = {"digits", "./npy", "digits.npz", "./rec"};
    const double here = said(tool("\"$T\" eval run-idx"), "accuracy ");
    char line[256];

    (void)state;
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        double there;

        (void)snprintf(line, sizeof line, "\"$T\" eval run-idx --data %s", data[i]);
        there = said(tool(line), "accuracy ");
        assert_true(fabs(here - there) < 1e-9);
    }
}

/* A class of fewer than five has none to test with. */
static void few_images(void **state)
{
    const tool_said *s =
        tool("mkdir -p lone/a && cp \"$(ls png/train/d0/*.png | head -n 1)\" lone/a && exec \"$T\" "
             "train zoo:mlp --data ./lone");

    (void)state;
    assert_int_equal(s->code, 4);
    assert_says(s->err,
                "./lone: each fifth image of a class is to test with, and no class has five; add images, or "
                "make the parts ./lone/train and ./lone/test\n");
}

/* An export without its -data.json: nobody knows the scaling, and that is said. */
static void without_data_file(void)
{
    static const char predict[] = "printf '5.1,3.5,1.4,0.2\\n' | \"$T\" predict bare-symbol.json "
                                  "bare-0000.params -";
    char line[4096];
    const tool_said *s = tool("exec \"$T\" export iris bare");

    assert_says(s->out, "\ndata bare-data.json  scaling, shape and names of classes: keep it beside");
    s = tool("\"$T\" export iris bare --json");
    assert_says(s->out, "\"data\":\"bare-data.json\"");
    assert_string_equal(tool(predict)->err, "");
    assert_int_equal(tool("rm bare-data.json")->code, 0);
    s = tool(predict);
    assert_int_equal(s->code, 0);
    assert_says(s->err, "tenon: no bare-data.json beside the model: values are taken as they are");
    assert_null(strstr(s->out, "bare-data.json"));
    (void)snprintf(line, sizeof line, "%s --quiet", predict);
    assert_string_equal(tool(line)->err, "");
    (void)snprintf(line, sizeof line, "%s --scale 1", predict);
    assert_string_equal(tool(line)->err, "");
    s = tool("exec \"$T\" eval bare-symbol.json bare-0000.params");
    assert_int_not_equal(s->code, 0);
    assert_says(s->err, "tenon: eval: --data names yours; without it the digits are taken\n");
    (void)snprintf(line, sizeof line,
                   "exec \"$T\" eval bare-symbol.json bare-0000.params --data "
                   "\"%s/tests/oracle/recorded/own/iris\" --set data.label=kind",
                   getenv("TENON_TEST_SOURCE"));
    assert_says(tool(line)->err, "no bare-data.json beside the model: scaling and classes are taken from");
    s = tool("\"$T\" export run-idx bare && rm bare-data.json && exec \"$T\" eval bare-symbol.json "
             "bare-0000.params --data digits"); /* pixels need none */
    assert_int_equal(s->code, 0);
    assert_string_equal(s->err, "");
}

static void tables(void **state)
{
    char line[4096];
    const tool_said *s;

    (void)state;
    (void)snprintf(
        line, sizeof line,
        "\"$T\" train zoo:mlp --data \"%s/tests/oracle/recorded/own/iris\" --set data.label=kind --epochs 40 "
        "--batch 16 --out iris --progress none",
        getenv("TENON_TEST_SOURCE"));
    assert_true(said(tool(line), "accuracy ") >= figure("iris", "logistic"));
    assert_true(said(tool("\"$T\" eval iris"), "accuracy ") >= figure("iris", "logistic"));
    s = tool("\"$T\" eval iris --confusion");
    assert_says(s->out, "versicolor");
    s = tool("for i in a b; do printf '5.1,3.5,1.4,0.2\\n' >$i.csv; done; exec \"$T\" predict iris a.csv "
             "b.csv --top 2");
    assert_says(s->out,
                "sample        class  probability  name            class  probability  name        input\n"
                "0                 0  ");
    assert_says(s->out, "  setosa              1  ");
    assert_says(s->out, "  versicolor  a.csv\n1                 0  ");
    assert_says(s->out, "  versicolor  b.csv\n");
    s = tool("\"$T\" export iris flowers && printf '5.1,3.5,1.4,0.2\\n' | \"$T\" predict flowers-symbol.json "
             "flowers-0000.params -");
    assert_says(s->out, " setosa\n"); /* scaling and names go along */
    without_data_file();
    /* by names, in another order, with and without the labels */
    s = tool(
        "printf 'petal_width,sepal_length,sepal_width,petal_length\\n0.2,5.1,3.5,1.4\\n2.3,6.3,3.3,6.0\\n' "
        ">new.csv;"
        "\"$T\" predict iris new.csv");
    assert_int_equal(s->code, 0);
    assert_says(s->out, " setosa\n");
    assert_says(s->out, " virginica\n");
    s = tool("printf 'sepal_length,sepal_width,petal_length,petal_width\\n5.1,3.5,1.4,0.2\\n' | \"$T\" "
             "predict iris - "
             "--json");
    assert_says(s->out, "\"name\":\"setosa\"");
    assert_int_equal(tool("printf '5.1,3.5,1.4,0.2\\n' | \"$T\" predict iris - | grep -q setosa")->code, 0);
    assert_int_equal(tool("printf '5.1,3.5,1.4,0.2,x\\n' | \"$T\" predict iris - | grep -q setosa")->code, 0);
    s = tool("printf 'sepal_length,sepal_width\\n5.1,3.5\\n' | \"$T\" predict iris -");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "the model takes 4 columns, the data is 2");
    s = tool("\"$T\" predict iris csv/test.csv");
    assert_true(s->code != 0);
    assert_says(s->err, "has no column \"sepal_length\"");
    s = tool("\"$T\" predict iris npy/x_test.npy");
    assert_true(s->code != 0);
    assert_says(s->err, "the model takes 4, the data is 1×8×8");
}

/* A file called as a part is that part, whole: beside the other one, and alone, where "train" is missing. */
static void one_part(void **state)
{
    static const char *const ends[] = {"csv", "npz"};

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = ends[i];
        const tool_said *s;
        char line[512];

        (void)snprintf(line, sizeof line,
                       "mkdir lone-%s && cp %s/test.%s lone-%s && for d in %s lone-%s; do \"$T\" eval run-%s "
                       "--data ./$d | grep -v ^data >$d.said || exit 1; done; cmp %s.said lone-%s.said && "
                       "cat %s.said",
                       end, end, end, end, end, end, end, end, end, end);
        assert_int_equal((int)said(tool(line), "samples "), parts[1].count);
        (void)snprintf(line, sizeof line, "\"$T\" train zoo:mlp --data ./lone-%s --epochs 1 --out none", end);
        s = tool(line);
        assert_int_equal(s->code, 2);
        (void)snprintf(line, sizeof line, "./lone-%s has test.%s and no train one; to train on", end, end);
        assert_says(s->err, line);
    }
}

/* R² of labels that are all the same is none: in training and behind it. */
static void same_labels(void **state)
{
    const tool_said *s;
    FILE *file;

    (void)state;
    assert_int_equal(tool("mkdir same")->code, 0);
    for (int test = 0; test < 2; test++) {
        file = fopen(test ? "same/test.csv" : "same/train.csv", "w");
        assert_non_null(file);
        (void)fprintf(file, "a,y\n");
        for (int i = 0; i < 1000; i++)
            (void)fprintf(file, "%d,%.1f\n", i % 50, test ? 7.1 : i % 50 + 0.5);
        (void)fclose(file);
    }
    s = tool("\"$T\" train zoo:mlp --data ./same --epochs 1 --seed 1 --out level --quiet");
    if (s->code)
        fail_msg("%s", s->err);
    assert_says(s->out, "r2 nan\n");
    assert_says(tool("cat level/metrics.jsonl")->out, "\"valid_r2\":null");
    assert_says(tool("\"$T\" eval level --data ./same")->out, "r2 nan\n");
}

static void regression(void **state)
{
    const double least = 1.05 * figure("diabetes", "ridge");
    char line[4096];
    const tool_said *s;
    double rmse, again;

    (void)state;
    (void)snprintf(
        line, sizeof line,
        "\"$T\" train zoo:mlp --data \"%s/tests/oracle/recorded/own/diabetes\" --epochs 30 --batch 16 --lr "
        "0.01 --seed 1 --out people --progress plain --set train.wd=0.01",
        getenv("TENON_TEST_SOURCE"));
    rmse = said(s = tool(line), "rmse ");
    if (!(rmse <= least))
        fail_msg("rmse %.4f, within 5 %% of ridge regression is %.4f", rmse, least);
    assert_says(s->err, " r2=");
    assert_says(tool("\"$T\" runs list --runs .")->out, " r2 0.");
    assert_says(tool("\"$T\" runs show people")->out, "\nr2          0.");
    assert_says(tool("\"$T\" runs compare people people")->out, "\nr2   ");
    assert_says(tool("\"$T\" runs list --runs . --json")->out, "\"best_r2\":0.");
    assert_says(tool("head -n 1 people/metrics.jsonl")->out, "\"valid_r2\":");
    assert_says(tool("\"$T\" viz people --curves --term")->out, "\nr2: training ");
    assert_says(tool("\"$T\" viz people --curves")->out, ">R²<");
    (void)snprintf(line, sizeof line,
                   "\"$T\" eval people/model-symbol.json people/model-0000.params --data "
                   "\"%s/tests/oracle/recorded/own/diabetes\"",
                   getenv("TENON_TEST_SOURCE"));
    again = said(tool(line), "rmse ");
    assert_true(fabs(again - rmse) < 1e-3 * rmse);
    s = tool("printf 'age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\\n59,2,32.1,101,157,93.2,38,4,4.8598,87\\n' | \"$T\" "
             "predict "
             "people - --json");
    assert_int_equal(s->code, 0);
    {
        json_t *o = tool_json(s, 0);
        const double x = json_number_value(json_array_get(json_object_get(o, "outputs"), 0));

        assert_true(x > 50 && x < 350); /* in units of the file: 25 to 346 */
        json_decref(o);
    }
    (void)snprintf(
        line, sizeof line,
        "\"$T\" train zoo:mlp --data \"%s/tests/oracle/recorded/own/diabetes\" --overfit-one --lr 0.02",
        getenv("TENON_TEST_SOURCE"));
    s = tool(line);
    assert_int_equal(s->code, 0);
    assert_says(s->out, "learned yes");
    s = tool("\"$T\" runs show people");
    assert_int_equal(s->code, 0);
}

static void info(void **state)
{
    const tool_said *s;
    json_t *o, *train;

    (void)state;
    s = tool("printf 'a,b,kind\\n1,2,x\\n3,2,y\\n5,2,x\\n' >t.csv; \"$T\" data info t.csv --json --set "
             "data.test_share=0.3");
    assert_int_equal(s->code, 0);
    o = tool_json(s, 0);
    train = json_object_get(o, "train");
    assert_string_equal(json_string_value(json_object_get(o, "task")), "classification");
    assert_int_equal(json_integer_value(json_object_get(train, "samples")), 2);
    assert_int_equal(json_array_size(json_object_get(train, "columns")), 2);
    assert_int_equal(json_array_size(json_object_get(train, "classes")), 2);
    assert_non_null(strstr(json_string_value(json_object_get(train, "note")), "t.csv holds all 3 samples"));
    json_decref(o);
    s = tool("\"$T\" data info digits");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "train: 1437 samples of ");
    assert_says(s->out, "data uint8 1×8×8");
    assert_says(s->out, "class 9: ");
    s = tool("\"$T\" data info ./png --json --set data.shape=3x16x12");
    assert_says(s->out, "[3,16,12]");
    s = tool("\"$T\" data info ./png --set data.shape=8x8");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "data.shape: of images, 1 or 3 channels, height and width are needed: 3x32x32");
    s = tool("cp -r png broken; echo no >broken/test/d0/0000.png; \"$T\" data info ./broken");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "broken: 1\n");
    assert_says(s->out, "0000.png: ");
    s = tool("cp -r png few; rm -r few/test/d0; \"$T\" data info ./few"); /* classes as a training has them */
    assert_int_equal(s->code, 0);
    assert_says(s->out, "class 0 d0: 0 samples\n");
    s = tool("\"$T\" data info absent");
    assert_true(s->code != 0);
}

/* A run's data is elsewhere now; if it is there, and something is wrong with it, --data is no advice. */
static void data_moved(void **state)
{
    static const char says[] = "tenon: eval: moved was trained on this data; --data says where it is now\n";
    const tool_said *s;

    (void)state;
    s = tool(
        "printf 'a,y\\n1,x\\n2,z\\n3,x\\n4,z\\n5,x\\n' >moved.csv; "
        "\"$T\" train zoo:mlp --data moved.csv --batch 2 --epochs 1 --out moved -q; mv moved.csv here.csv; "
        "\"$T\" eval moved");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "error[TN-1501]: ");
    assert_says(s->err, says);
    assert_int_equal(tool("\"$T\" eval moved --data here.csv")->code, 0);
    s = tool("printf 'a,y\\n1,x\\nNA,z\\n' >moved.csv; \"$T\" eval moved");
    assert_int_equal(s->code, 4);
    assert_null(strstr(s->err, "trained on this data"));
    s = tool("printf 'b,y\\n1,x\\n2,z\\n' >moved.csv; \"$T\" eval moved");
    assert_says(s->err, "has no column \"a\"");
    assert_null(strstr(s->err, "trained on this data"));
}

/* Why what a model keeps of its data cannot be written, or read. */
static void about_fails(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool("printf 'a,y\\n1,x\\n2,z\\n3,x\\n4,z\\n5,x\\n' >kept.csv; mkdir -p kept/model-data.json.tmp; "
             "\"$T\" train zoo:mlp --data kept.csv --batch 2 --epochs 1 --out kept -q");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "error[TN-0006]: kept/model-data.json cannot be written: Is a directory\n");
    s = tool(
        "\"$T\" train zoo:mlp --data kept.csv --batch 2 --epochs 1 --out whole -q; mkdir -p to/x-data.json; "
        "\"$T\" export whole to/x");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "error[TN-0006]: to/x-data.json: Is a directory\n");
    s = tool("rmdir to/x-data.json; echo '{' >whole/model-data.json; \"$T\" export whole to/x");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "error[TN-0006]: whole/model-data.json: ");
}

/* Each mistake is named with its place. */
static void mistakes(void **state)
{
    static const struct {
        const char *text, *options, *says;
    } rows[] = {
        {"a,b,y\\n1,2,0\\n1,,1\\n", "",
         "m.csv:3:2: the field is empty: a value is missing; fill it in, or leave the row out"},
        {"a,b,y\\n1,2,0\\n1,2\\n", "", "m.csv:3:3: the line ends early: the first one has 3 fields"},
        {"a,b,y\\n1,2,0\\n1,2,1,4\\n", "",
         "m.csv:3:4: the line has more fields than the first one, which has 3"},
        {"a,b,y\\n1,2,0\\n1,NA,1\\n", "", "m.csv:3:2: \"NA\" is no number"},
        {"a,b,y\\n1,2,0\\n1,3,NA\\n", "", "m.csv:3:3: \"NA\" is no number, but the labels above it are"},
        {"a,b,y\\n1,2,red\\n1,3,7\\n", "", "m.csv:3:3: 7 is a number, but the labels above it are texts"},
        {"a,b,y\\n1,2,red\\n1,3,blue\\n", "--set data.label=z", "unknown column \"z\""},
        {"1,2,0\\n1,3,1\\n", "--set data.label=y",
         "data.label is \"y\", but the file has 3 columns and no header"},
        {"1,2,0\\n1,3,1\\n", "--set data.label=4", "data.label is \"4\", but the file has 3 columns"},
        {"1,2,0\\n1,3,0.5\\n", "--set data.task=classification", "classes are whole numbers or texts"},
        {"1,2,red\\n1,3,blue\\n", "--set data.task=regression", "labels are texts, numbers are needed"},
        {"1,2,0\\n", "", "has 1 sample: one to train and one to test are needed"},
        {"0\\n1\\n", "", "has no column beside that of the labels"},
        {"1,2,0\\n1,3,1\\n", "--set data.shape=1x", "option data.shape is \"1x\""},
        {"1,2,0\\n1,3,1\\n", "--set data.scale=much", "data.scale"},
        {"1,2,\\300\\n1,3,a\\n", "", "m.csv:1:3: "},
    };
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line,
                       "printf '%s' >m.csv; \"$T\" train zoo:mlp --data m.csv %s --out never", rows[i].text,
                       rows[i].options);
        s = tool(line);
        if (!s->code || !strstr(s->err, rows[i].says))
            fail_msg("%s: exit code %d: %s", rows[i].text, s->code, s->err);
    }
    assert_says(tool("mkdir two; cp m.csv two/a.csv; cp m.csv two/b.csv; \"$T\" data info ./two")->err,
                "holds 2 data files (a.csv …) and no train one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format), cmocka_unit_test(any_format),  cmocka_unit_test(few_images),
        cmocka_unit_test(tables),       cmocka_unit_test(regression),  cmocka_unit_test(one_part),
        cmocka_unit_test(same_labels),  cmocka_unit_test(info),        cmocka_unit_test(mistakes),
        cmocka_unit_test(data_moved),   cmocka_unit_test(about_fails),
    };

    return plugins_there() ? cmocka_run_group_tests(tests, own_setup, own_teardown) : 77;
}
