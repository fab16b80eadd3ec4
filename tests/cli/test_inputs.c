/*
 * A graph with two inputs, of a file: trained on an archive with an array for each, evaluated, exported and
 * predicted from, and archives that lack one. The iris flowers, whose sepals and petals are inputs apart: the
 * accuracy is that of scikit-learn's logistic regression on all four numbers (tests/oracle/own.py).
 */
#include "tool.h"

#include <math.h>
#include <unistd.h>

#include "tenon/nn.h"
#include "tenon/tenon.h"

#define ROWS_MAX 150

static const char graph[] =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"sepal\", \"inputs\": []}, "
    "{\"op\": \"null\", \"name\": \"fs_weight\", \"inputs\": []}, "
    "{\"op\": \"null\", \"name\": \"fs_bias\", \"inputs\": []}, "
    "{\"op\": \"FullyConnected\", \"name\": \"fs\", \"attrs\": {\"num_hidden\": \"8\"}, "
    "\"inputs\": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]}, "
    "{\"op\": \"null\", \"name\": \"petal\", \"inputs\": []}, "
    "{\"op\": \"null\", \"name\": \"fp_weight\", \"inputs\": []}, "
    "{\"op\": \"null\", \"name\": \"fp_bias\", \"inputs\": []}, "
    "{\"op\": \"FullyConnected\", \"name\": \"fp\", \"attrs\": {\"num_hidden\": \"8\"}, "
    "\"inputs\": [[4, 0, 0], [5, 0, 0], [6, 0, 0]]}, "
    "{\"op\": \"Concat\", \"name\": \"both\", \"attrs\": {\"dim\": \"1\", \"num_args\": \"2\"}, "
    "\"inputs\": [[3, 0, 0], [7, 0, 0]]}, "
    "{\"op\": \"Activation\", \"name\": \"act\", \"attrs\": {\"act_type\": \"relu\"}, \"inputs\": [[8, 0, "
    "0]]}, "
    "{\"op\": \"null\", \"name\": \"out_weight\", \"inputs\": []}, "
    "{\"op\": \"null\", \"name\": \"out_bias\", \"inputs\": []}, "
    "{\"op\": \"FullyConnected\", \"name\": \"out\", \"attrs\": {\"num_hidden\": \"3\"}, "
    "\"inputs\": [[9, 0, 0], [10, 0, 0], [11, 0, 0]]}], "
    "\"arg_nodes\": [0, 1, 2, 4, 5, 6, 10, 11], \"heads\": [[12, 0, 0]], "
    "\"attrs\": {\"mxnet_version\": [\"int\", 10901]}}\n";

typedef struct flowers {
    float sepal[ROWS_MAX][2], petal[ROWS_MAX][2], kind[ROWS_MAX];
    int64_t count;
} flowers;

static void flowers_read(const char *part, flowers *f)
{
    static const char *const kinds[] = {"setosa", "versicolor", "virginica"};
    char path[2048], line[256], kind[32];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/own/iris/%s.csv", getenv("TENON_TEST_SOURCE"),
                   part);
    file = fopen(path, "r");
    assert_true(file && fgets(line, sizeof line, file));
    for (f->count = 0; f->count < ROWS_MAX && fgets(line, sizeof line, file); f->count++) {
        float *s = f->sepal[f->count], *p = f->petal[f->count];
        int k = 0;

        assert_int_equal(sscanf(line, "%f,%f,%f,%f,%31s", s, s + 1, p, p + 1, kind), 5);
        while (strcmp(kinds[k], kind) != 0)
            assert_true(++k < 3);
        f->kind[f->count] = (float)k;
    }
    (void)fclose(file);
}

static void array_add(tn_ctx *ctx, tn_params *to, const char *name, const char *part, int64_t count,
                      int64_t each, const float *values)
{
    const int64_t shape[] = {count, each};
    tn_array *a = NULL;
    char full[64];

    (void)snprintf(full, sizeof full, "%s%s", name, part);
    assert_int_equal(tn_array_from(ctx, TN_F32, each > 1 ? 2 : 1, shape, values, &a), TN_OK);
    assert_int_equal(tn_params_add(to, full, a), TN_OK);
    tn_array_release(a);
}

static int folder_make(void **state)
{
    static char plugins[2048];
    static flowers train, test;
    const char *settings[] = {plugins, NULL};
    tn_params *both = NULL, *some = NULL, *one = NULL, *uneven = NULL, *beside = NULL;
    tn_app *app;
    tn_ctx *ctx;
    FILE *file;

    (void)state;
    tool_setup();
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    app = tn_app_open(.name = "inputs", .settings = settings);
    ctx = tn_app_ctx(app);
    flowers_read("train", &train);
    flowers_read("test", &test);
    assert_true(!tn_params_create(&both) && !tn_params_create(&some) && !tn_params_create(&one) &&
                !tn_params_create(&uneven) && !tn_params_create(&beside));
    array_add(ctx, both, "sepal", "_train", train.count, 2, train.sepal[0]);
    array_add(ctx, both, "petal", "_train", train.count, 2, train.petal[0]);
    array_add(ctx, both, "label", "_train", train.count, 1, train.kind);
    array_add(ctx, both, "sepal", "_test", test.count, 2, test.sepal[0]);
    array_add(ctx, both, "petal", "_test", test.count, 2, test.petal[0]);
    array_add(ctx, both, "label", "_test", test.count, 1, test.kind);
    array_add(ctx, some, "petal", "", 3, 2, test.petal[0]); /* in another order */
    array_add(ctx, some, "sepal", "", 3, 2, test.sepal[0]);
    array_add(ctx, one, "sepal", "", 3, 2, test.sepal[0]);
    array_add(ctx, uneven, "sepal", "", 3, 2, test.sepal[0]);
    array_add(ctx, uneven, "petal", "", 2, 2, test.petal[0]);
    array_add(ctx, beside, "data", "_train", train.count, 2, train.sepal[0]);
    array_add(ctx, beside, "petal", "_train", train.count, 2, train.petal[0]);
    array_add(ctx, beside, "label", "_train", train.count, 1, train.kind);
    array_add(ctx, beside, "data", "_test", test.count, 2, test.sepal[0]);
    array_add(ctx, beside, "petal", "_test", test.count, 2, test.petal[0]);
    array_add(ctx, beside, "label", "_test", test.count, 1, test.kind);
    assert_int_equal(tn_save(ctx, beside, "beside.npz"), TN_OK);
    tn_params_destroy(beside);
    assert_true(!tn_save(ctx, both, "flowers.npz") && !tn_save(ctx, some, "some.npz") &&
                !tn_save(ctx, one, "one.npz") && !tn_save(ctx, uneven, "uneven.npz"));
    tn_params_destroy(both);
    tn_params_destroy(some);
    tn_params_destroy(one);
    tn_params_destroy(uneven);
    assert_int_equal(tn_app_close(app), 0);
    file = fopen("flowers-symbol.json", "w");
    assert_true(file && fputs(graph, file) >= 0 && !fclose(file));
    return 0;
}

static int folder_end(void **state)
{
    (void)state;
    tool_teardown();
    return 0;
}

static double accuracy_of(const tool_said *s)
{
    const char *at = strstr(s->out, "accuracy ");

    if (s->code || !at)
        fail_msg("exit code %d: %s%s", s->code, s->out, s->err);
    return at ? strtod(at + 9, NULL) : 0;
}

static double logistic(void)
{
    char path[2048], line[256];
    double figure = 2;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/own/figures.txt",
                   getenv("TENON_TEST_SOURCE"));
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        (void)sscanf(line, "iris logistic %lf", &figure);
    (void)fclose(file);
    return figure;
}

static void trained(void **state)
{
    const double least = logistic(),
                 first = accuracy_of(tool(
                     "\"$T\" train flowers-symbol.json --data flowers.npz --epochs 40 --batch 8 --lr 0.05 "
                     "--seed 1 --out run --quiet"));

    (void)state;
    if (!(first >= least))
        fail_msg("accuracy %.4f, scikit-learn has %.4f", first, least);
    assert_true(
        fabs(accuracy_of(tool("\"$T\" eval run/model-symbol.json run/model-0000.params --data flowers.npz")) -
             first) < 1e-9);
}

/* Of several devices each has its part of every input. */
static void devices(void **state)
{
    (void)state;
    assert_true(
        accuracy_of(tool("\"$T\" train flowers-symbol.json --data flowers.npz --epochs 2 --batch 8 --seed 1 "
                         "--device cpu:0,cpu:1 --out two --quiet")) > 0.3);
}

static void predicted(void **state)
{
    char run[4096];
    const tool_said *s = tool("\"$T\" predict run some.npz");

    (void)state;
    if (s->code)
        fail_msg("%s", s->err);
    (void)snprintf(run, sizeof run, "%.4000s", s->out);
    assert_int_equal(
        tool("\"$T\" export run other && mkdir bare && cp other-symbol.json other-0000.params bare")->code,
        0);
    s = tool("\"$T\" predict other-symbol.json other-0000.params some.npz"); /* scaled as its data was */
    assert_string_equal(s->out, run);
    s = tool("\"$T\" predict bare/other-symbol.json bare/other-0000.params some.npz");
    assert_int_equal(s->code, 0); /* numbers as they are */
    assert_string_not_equal(s->out, run);
}

/* An input beside one that is called data: of a graph, too, that reads no other data than an .npz. */
static void beside_data(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"train beside-symbol.json --data digits", "data \"digits:train\" has no array \"petal\", an input "
                                                   "of beside-symbol.json; an .npz with an array for "
                                                   "each input has all of them: data, petal"},
        {"eval beside/model-symbol.json beside/model-0000.params --data flowers.npz",
         "the model takes an input \"data\", which is not there"},
        {"predict beside one.npz", "the model takes an input \"data\", which is not there"},
        {"train label-symbol.json --data digits",
         "the argument \"petal_label\" is no input, and none of the parameters that can be trained"},
    };
    double accuracy;
    char line[512];

    (void)state;
    assert_int_equal(tool("sed 's/\"sepal\"/\"data\"/' flowers-symbol.json >beside-symbol.json && sed "
                          "'s/\"petal\"/\"petal_label\"/' beside-symbol.json >label-symbol.json")
                         ->code,
                     0);
    accuracy =
        accuracy_of(tool("\"$T\" train beside-symbol.json --data beside.npz --epochs 40 --batch 8 --seed 1 "
                         "--out beside --progress none"));
    assert_true(accuracy >= logistic());
    assert_true(fabs(accuracy_of(tool("\"$T\" eval beside")) - accuracy) < 1e-9);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, "\"$T\" %s", rows[i].line);
        s = tool(line);
        assert_int_not_equal(s->code, 0);
        assert_says(s->err, rows[i].says);
    }
}

static void wrong(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"train flowers-symbol.json --data one.npz", "one.npz has no labels"},
        {"predict run one.npz", "the model takes an input \"petal\", which is not there"},
        {"predict run uneven.npz", "another number than"},
        {"predict bare/other-symbol.json bare/other-0000.params one.npz",
         "one.npz has no array petal; the model's inputs are sepal, petal"},
        {"predict bare/other-symbol.json bare/other-0000.params uneven.npz",
         "petal has 2 samples, the array before it 3"},
        {"predict bare/other-symbol.json bare/other-0000.params flowers-symbol.json",
         "an .npz with arrays of these names is needed"},
        {"predict bare/other-symbol.json bare/other-0000.params - </dev/null",
         "an .npz with arrays of these names is needed"},
        {"predict run some.npz --scale 2", "--scale is for models with one input; this one has 2"},
        {"predict run some.npz --shape 2", "--shape is for models with one input; this one has 2"},
        {"train flowers-symbol.json --data digits", "data \"digits:train\" has no array \"sepal\""},
    };
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s;

        (void)snprintf(line, sizeof line, "\"$T\" %s", rows[i].line);
        s = tool(line);
        assert_int_not_equal(s->code, 0);
        assert_says(s->err, rows[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trained), cmocka_unit_test(devices),
                                       cmocka_unit_test(predicted), cmocka_unit_test(beside_data),
                                       cmocka_unit_test(wrong)};
    char path[2048];

    (void)snprintf(path, sizeof path, "%s/npz.so", getenv("TENON_TEST_PLUGINS"));
    if (access(path, R_OK)) {
        printf("skipped: the plugin npz was not built\n");
        return 77;
    }
    return cmocka_run_group_tests_name("inputs", tests, folder_make, folder_end);
}
