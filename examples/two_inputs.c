/* A net with two inputs: the upper and the lower half of a digit. Both go through one tower, whose parameters
 * they share. Build it with
 *     gcc two_inputs.c $(pkg-config --cflags --libs tenon-nn)
 * The number of epochs may stand on the command line. */
#include <stdlib.h>
#include <string.h>
#include <tenon/nn.h>

static tn_x tower(tn_x x)
{
    x = tn_conv2d(x, .channels = 16, .kernel = {3, 3}, .pad = {1, 1}, .activation = "relu");
    return tn_dense(tn_maxpool2d(x), .units = 32, .activation = "relu");
}

static void digit(const tn_x *in, tn_x *out)
{
    tn_net *half = tn_arg(in[0]);
    tn_x upper = tn_net_call(half, in[0]), lower = tn_net_call(half, in[1]);

    out[0] = tn_dense(tn_concat(1, upper, lower), .units = 10);
}

static tn_x right(const tn_x *out, const tn_x *labels)
{
    return tn_accuracy(out[0], labels[0]);
}

/* The part's digits, cut in two. */
static tn_data *halves(tn_app *app, const char *part, int32_t shuffle)
{
    tn_data *digits = tn_data_open(app, part, .batch = 4096), *data = NULL;
    int64_t shape[4] = {0}, n = tn_data_count(digits), half;
    tn_batch b;

    tn_data_shape(digits, shape);
    half = shape[2] * shape[3] / 2;
    float *x = calloc((size_t)(4 * n * half + 1), sizeof *x), *cut = x + 2 * n * half;

    if (tn_data_next(digits, &b) && tn_app_read(app, b.x, (size_t)(2 * n * half), x)) {
        for (int64_t i = 0; i < 2 * n; i++) /* all upper halves, then all lower ones */
            memcpy(cut + (i % 2 * n + i / 2) * half, x + i * half, (size_t)half * sizeof *x);
        shape[0] = n;
        shape[2] /= 2;
        data = tn_data_from_arrays(app, .batch = 64, .shuffle = shuffle, .seed = 1,
                                   .fields = {{"upper", tn_app_array(app, 4, shape, cut)},
                                              {"lower", tn_app_array(app, 4, shape, cut + n * half)},
                                              {"digit", b.y}});
    }
    free(x);
    return data;
}

int main(int argc, char **argv)
{
    tn_app *app = tn_app_open(.name = "two_inputs", .errors = stderr);
    tn_net *half = tn_net_function(app, tower, .name = "half");
    tn_net *net = tn_net_functions(app, digit, .name = "digit", .arg = half, .inputs = {"upper", "lower"});

    tn_net_init(net, .seed = 1);
    tn_fit(net, halves(app, "digits:train", 1), .valid_data = halves(app, "digits:test", 0),
           .labels = {"digit"}, .metrics = {{"right", right}}, .epochs = argc > 1 ? atoi(argv[1]) : 12,
           .lr = 0.1, .momentum = 0.9,
           .log = stdout); /* the loss is softmax cross-entropy where none is given */
    tn_net_export(net, "two_inputs");
    return tn_app_close(app);
}
