/*
 * tenon ops: the list and the page of one operator; tenon bench op and bench model: rows, combinations,
 * comparison.
 */
#include "tenon/nn.h"
#include "tenon/params.h"
#include "tool.h"

static size_t shown(const char *line)
{
    const tool_said *s = tool(line);
    json_t *o;
    size_t count;

    assert_int_equal(s->code, 0);
    o = tool_json(s, 0);
    count = json_array_size(json_object_get(o, "operators"));
    json_decref(o);
    return count;
}

static void list(void **state)
{
    const tool_said *s = tool("\"$T\" ops --family conv");

    (void)state;
    assert_int_equal(s->code, 0);
    assert_says(s->out, "Convolution");
    assert_null(strstr(s->out, "FullyConnected"));
    s = tool("\"$T\" ops");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "FullyConnected");
    assert_says(s->out, "Slides `num_filter` windows");
    assert_null(strstr(s->out, "_backward_"));
    assert_true(shown("\"$T\" ops --search windows --json") >= 1);
    assert_true(shown("\"$T\" ops --search STOP_gradient --json") >= 1); /* an alias */
    assert_true(shown("\"$T\" ops --family reduce --search norm --json") == 1);
    s = tool("\"$T\" ops --search no-such-word-anywhere");
    assert_int_equal(s->code, 1);
    s = tool("\"$T\" ops --family cnov");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "did you mean \"conv\"");
}

static void page(void **state)
{
    const tool_said *s = tool("\"$T\" ops Convolution");
    json_t *o, *attr;

    (void)state;
    assert_int_equal(s->code, 0);
    assert_says(s->out, "data, weight, bias");
    assert_says(s->out, "num_filter           int 1 to 1000000000, required");
    assert_says(s->out, "cpu/plain on cpu, rank 64");
    s = tool("\"$T\" ops Pooling --json");
    o = tool_json(s, 0);
    assert_string_equal(json_string_value(json_object_get(o, "gradient")), "yes");
    assert_string_equal(json_string_value(json_object_get(o, "family")), "pool");
    attr = json_array_get(json_object_get(o, "attributes"), 0);
    assert_string_equal(json_string_value(json_object_get(attr, "name")), "kernel");
    json_decref(o);
    s = tool("\"$T\" ops BatchNorm");
    assert_says(s->out, "changes   moving_mean, moving_var");
    s = tool("\"$T\" ops stop_gradient"); /* an alias is as good */
    assert_int_equal(s->code, 0);
    assert_says(s->out, "BlockGrad");
    s = tool("\"$T\" ops Convolutoin");
    assert_int_equal(s->code, 3);
    assert_says(s->err, "did you mean Convolution?");
    assert_string_equal(s->out, "");
    assert_int_equal(tool("\"$T\" ops Convolution --family conv")->code, 2);
    assert_int_equal(tool("\"$T\" ops ''")->code, 2);
}

/* ---- bench op ---- */

/* Exit code 1 is a busy machine, which says so. */
static json_t *rows_of(const char *line)
{
    const tool_said *s = tool(line);
    json_t *o, *rows;

    if (s->code != 0 && !(s->code == 1 && strstr(s->err, "too busy")))
        fail_msg("%s: exit %d: %s", line, s->code, s->err);
    o = tool_json(s, 0);
    assert_int_equal(json_is_true(json_object_get(o, "noisy")), s->code == 1);
    rows = json_incref(json_object_get(o, "rows"));
    json_decref(o);
    return rows;
}

static void bench_op(void **state)
{
    json_t *rows = rows_of(
        "\"$T\" bench op Convolution --shape 2x4x8x8,1x4x6x6 --attr 'kernel=(3,3)' --attr num_filter=4 "
        "--dtype float32,float64 --device cpu,cpu:0 --repeat 3 -o json");
    size_t index;
    json_t *row;

    (void)state;
    assert_int_equal(json_array_size(rows), 8);
    json_array_foreach(rows, index, row)
    {
        const double mean = json_number_value(json_object_get(row, "mean_ms"));
        const double median = json_number_value(json_object_get(row, "median_ms"));

        assert_non_null(strchr(json_string_value(json_object_get(row, "kernel")), '/'));
        assert_true(strlen(json_string_value(json_object_get(row, "build"))) >= 8);
        if (!tool_clock_fine()) { /* rounds of no time */
            assert_true(json_is_true(json_object_get(row, "noisy")) || (mean > 0 && median > 0));
            continue;
        }
        assert_true(mean > 0 && median > 0);
        /* 2 × (outputs) × (weights of a filter) operations */
        if (!strcmp(json_string_value(json_object_get(row, "shape")), "2x4x8x8"))
            assert_true(
                json_number_value(json_object_get(row, "gflops")) * median * 1e6 / (2.0 * 2 * 4 * 36 * 36) >
                    0.999 &&
                json_number_value(json_object_get(row, "gflops")) * median * 1e6 / (2.0 * 2 * 4 * 36 * 36) <
                    1.001);
    }
    json_decref(rows);
    rows = rows_of("\"$T\" bench op tanh --shape 16x16 --backward --repeat 3 --json");
    assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "gflops")));
    json_decref(rows);
    rows = rows_of(
        "\"$T\" bench op tanh --shape 4 --dtype float16,bfloat16,float64 --backward --repeat 3 --json");
    assert_int_equal(json_array_size(rows), 3);
    json_decref(rows);
    rows = rows_of("\"$T\" bench op add_n --shape 4x4 --shape 4x4 --shape 4x4 --repeat 3 -o json");
    assert_int_equal(json_array_size(rows), 1);
    json_decref(rows);
}

/* A sparse array of a file; outputs of a size that no call knows before; an operator without outputs. */
static void bench_op_odd(void **state)
{
    tn_app *app = tn_app_open(.name = "ops", .no_environment = 1);
    static const float numbers[] = {0, 2, 0, 4};
    static const int64_t shape[] = {2, 2}, ids[] = {1};
    const tn_array_sparse sparse = {.struct_size = TN_SIZE(tn_array_sparse),
                                    .storage = TN_STORAGE_ROW_SPARSE,
                                    .dtype = TN_F32,
                                    .ndim = 2,
                                    .shape = shape,
                                    .stored = 1,
                                    .values = numbers,
                                    .indices = ids};
    tn_array *dense = tn_app_array(app, 2, shape, numbers), *rows = NULL;
    tn_params *file = NULL;
    json_t *said;

    (void)state;
    assert_int_equal(tn_array_sparse_from(tn_app_ctx(app), &sparse, &rows), TN_OK);
    assert_int_equal(tn_params_create(&file), TN_OK);
    assert_int_equal(tn_params_add(file, "a", rows), TN_OK);
    assert_int_equal(tn_params_save(file, "one.params"), TN_OK);
    assert_int_equal(tn_params_add(file, "b", dense), TN_OK);
    assert_int_equal(tn_params_save(file, "both.params"), TN_OK);
    tn_params_destroy(file);
    tn_array_release(rows);
    assert_int_equal(tn_app_close(app), 0);

    said = rows_of("\"$T\" bench op _square_sum --attr axis=1 --in one.params --repeat 3 -o json");
    assert_string_equal(json_string_value(json_object_get(json_array_get(said, 0), "shape")), "2x2");
    json_decref(said);
    said = rows_of("\"$T\" bench op _npx_nonzero --in two.npy --repeat 3 -o json");
    assert_int_equal(json_array_size(said), 1);
    json_decref(said);
    said = rows_of(
        "\"$T\" bench op reset_arrays --attr num_arrays=2 --in two.npy --in two.npy --repeat 3 -o json");
    assert_int_equal(json_array_size(said), 1);
    json_decref(said);
}

/* What a file holds is measured: shape, type, values. */
static void bench_op_in(void **state)
{
    static const double values[] = {1, 2};
    FILE *file = fopen("two.npy", "w");
    json_t *rows;

    (void)state;
    assert_non_null(file);
    assert_int_equal(fwrite("\x93NUMPY\1\0\x46\0", 1, 10, file), 10);
    assert_int_equal(fprintf(file, "%-69s\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
                     70);
    assert_int_equal(fwrite(values, sizeof *values, 2, file), 2);
    assert_int_equal(fclose(file), 0);
    rows = rows_of("\"$T\" bench op elemwise_add --in two.npy --in rhs=two.npy --repeat 3 -o json");
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "shape")), "2");
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "dtype")), "float64");
    json_decref(rows);
}

static void compared(void **state)
{
    FILE *file = fopen("old.json", "w");
    json_t *rows;

    (void)state;
    assert_non_null(file);
    fputs("{\"rows\": [{\"op\": \"tanh\", \"attrs\": {}, \"shape\": \"64\", \"dtype\": \"float32\", "
          "\"device\": \"cpu\", "
          "\"backward\": false, \"mean_ms\": 1000000, \"sd_ms\": 0.5}, 7, null, {}]}",
          file);
    fclose(file);
    rows = rows_of("\"$T\" bench op tanh --shape 64,32 --device cpu --repeat 3 --compare old.json -o json");
    assert_true(json_is_true(json_object_get(json_array_get(rows, 0), "changed")));
    assert_non_null(strstr(json_string_value(json_object_get(json_array_get(rows, 0), "change")), "faster"));
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 1), "change")), "new");
    json_decref(rows);
}

static void bench_model(void **state)
{
    json_t *rows = rows_of(
               "\"$T\" bench model zoo:lenet --shape data=1,1,8,8 --batch 2 --train --repeat 3 -o json"),
           *row;

    (void)state;
    row = json_array_get(rows, 0);
    assert_int_equal(json_integer_value(json_object_get(row, "batch")), 2);
    assert_string_equal(json_string_value(json_object_get(row, "mode")), "train");
    assert_true(json_number_value(json_object_get(row, "samples_per_s")) > 0 || !tool_clock_fine());
    assert_true(json_integer_value(json_object_get(row, "planned_bytes")) >=
                json_integer_value(json_object_get(row, "bound_bytes")));
    json_decref(rows);
    rows = rows_of("\"$T\" bench model zoo:lenet --batch 3 --repeat 3 -o json"); /* the input of the zoo */
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 0), "batch")), 3);
    json_decref(rows);
}

/* The columns of each command, with an older file beside them one more;
 * a row of that file may be anything. */
static void columns(void **state)
{
    static const struct {
        const char *line, *head;
    } rows[] = {
        {"bench op tanh --shape 64 -o csv",
         "op,shape,dtype,device,mean_ms,sd_ms,median_ms,gflops,gb_per_s,kernel,build\n"},
        {"bench op tanh --shape 64 -o csv --compare odd.json",
         "op,shape,dtype,device,mean_ms,sd_ms,median_ms,gflops,gb_per_s,kernel,build,change\n"},
        {"bench model zoo:lenet --shape 1,1,8,8 -o csv",
         "model,batch,mode,device,mean_ms,sd_ms,median_ms,samples_per_s,planned_mib,build\n"},
        {"bench model zoo:lenet --shape 1,1,8,8 -o csv --compare odd.json",
         "model,batch,mode,device,mean_ms,sd_ms,median_ms,samples_per_s,planned_mib,build,change\n"},
        {"bench model zoo:lenet --shape 1,1,8,8 -o md", "| build    |\n"},
        {"bench model zoo:lenet --shape 1,1,8,8 -o md --compare odd.json", "| build    | against before |\n"},
    };

    (void)state;
    assert_int_equal(tool("echo '{\"rows\": [7, null, [], {\"model\": {}, \"change\": 3}]}' >odd.json")->code,
                     0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[200];
        const tool_said *s;

        (void)snprintf(line, sizeof line, "exec \"$T\" %s --repeat 3", rows[i].line);
        s = tool(line);
        if (s->code > 1 || !strstr(s->out, rows[i].head))
            fail_msg("%s: code %d: %s%s", line, s->code, s->out, s->err);
        if (strstr(line, "-o csv"))
            assert_true(strncmp(s->out, rows[i].head, strlen(rows[i].head)) == 0);
    }
}

static void bad_arguments(void **state)
{
    static const struct {
        const char *line, *says;
        int code;
    } rows[] = {
        {"\"$T\" bench op", "argument is missing", 2},
        {"\"$T\" bench op tnah --shape 3", "did you mean tanh", 3},
        {"\"$T\" bench op tanh", "--shape", 2},
        {"\"$T\" bench op tanh --shape 3x", "is no shape", 2},
        {"\"$T\" bench op tanh --shape ''", "--shape: the value is empty", 2},
        {"\"$T\" bench op tanh --shape 3,,4", "is no shape", 2},
        {"\"$T\" bench op tanh --shape rhs=3", "--shape rhs=: tanh has no such input; it takes data", 2},
        {"\"$T\" bench op tanh --shape 3 --shape 4", "2 shapes, but tanh takes data only", 2},
        {"\"$T\" bench op dot --shape 3x3", "\"rhs\" ?", 2},
        {"\"$T\" bench op dot --shape 3x3 --shape rhs=4x4", "dot", 2},
        {"\"$T\" bench op tanh --shape 3 --dtype float33", "float33", 2},
        {"\"$T\" bench op tanh --in absent.npy", "absent.npy", 2},
        {"\"$T\" bench op tanh --in both.params", "2 arrays, one with values is needed", 2},
        {"\"$T\" bench op tanh --in one.params --in one.params", "takes 1 inputs, got 2", 2},
        {"echo hallo >torn.npy; \"$T\" bench op tanh --in torn.npy", "torn.npy", 4},
        {"\"$T\" bench op tanh --in lhs=torn.npy", "torn.npy", 4},
        {"\"$T\" bench op tanh --shape 3 --attr x", "NAME=VALUE", 2},
        {"\"$T\" bench op tanh --shape 3 --attr frob=1", "frob", 2},
        {"\"$T\" bench op tanh --shape 3 --device abacus", "abacus", 3},
        {"\"$T\" bench op tanh --shape 3 --repeat 0", "--repeat", 2},
        {"\"$T\" bench op tanh --shape 3 -o xml", "md, csv or json", 2},
        {"\"$T\" bench op tanh --shape 3 --compare absent.json", "cannot be read", 2},
        {"echo '{' >torn.json; \"$T\" bench op tanh --shape 3 --compare torn.json", "no JSON", 4},
        {"\"$T\" bench op argmax --shape 3x3 --attr axis=1 --dtype int32 --backward", "floating-point", 1},
        {"\"$T\" bench model", "argument is missing", 2},
        {"\"$T\" bench model zoo:lenet --batch 0", "train.batch = 0", 2},
        {"\"$T\" bench model zoo:lenet --shape 1,1,28,28 --batch 0", "batch", 2},
        {"\"$T\" bench model absent.json --shape 1", "absent.json", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tool_said *s = tool(rows[i].line);

        if (s->code != rows[i].code || !strstr(s->err, rows[i].says) || *s->out)
            fail_msg("%s: exit %d, out %s, err %s", rows[i].line, s->code, s->out, s->err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list),        cmocka_unit_test(page),         cmocka_unit_test(bench_op),
        cmocka_unit_test(bench_op_in), cmocka_unit_test(bench_op_odd), cmocka_unit_test(compared),
        cmocka_unit_test(bench_model), cmocka_unit_test(columns),      cmocka_unit_test(bad_arguments),
    };
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
