/* A net with two outputs and two losses: which digit it is, and whether it is odd. Build it with
 *     gcc two_heads.c $(pkg-config --cflags --libs tenon-nn)
 * The number of epochs may stand on the command line. */
#include <math.h>
#include <stdlib.h>
#include <tenon/nn.h>

static void heads(const tn_x *in, tn_x *out)
{
    tn_x h = tn_dropout(tn_dense(in[0], .units = 64, .activation = "relu"), .rate = 0.1);

    out[0] = tn_dense(h, .units = 10, .name = "digit");
    out[1] = tn_dense(h, .units = 1, .name = "odd");
}

static tn_x both(const tn_x *out, const tn_x *label) /* (N): one number per sample */
{
    return tn_add(tn_softmax_ce(out[0], label[0]), tn_scale(tn_sigmoid_ce(out[1], label[1]), 0.5));
}

static tn_x digit_right(const tn_x *out, const tn_x *label)
{
    return tn_accuracy(out[0], label[0]);
}

static tn_x odd_right(const tn_x *out, const tn_x *label) /* the score is above 0 for odd ones */
{
    tn_x odd = tn_op(tn_reshape(out[1], -1), "_greater_scalar", .attrs = {"scalar", "0"});

    return tn_op(odd, "broadcast_equal", .with = {label[1]});
}

/* The part's digits, with a second label. */
static tn_data *with_odd(tn_app *app, const char *part, int32_t shuffle)
{
    tn_data *digits = tn_data_open(app, part, .batch = 4096), *data = NULL;
    int64_t n = tn_data_count(digits);
    float *y = calloc((size_t)n + 1, sizeof *y);
    tn_batch b;

    if (tn_data_next(digits, &b) && tn_app_read(app, b.y, (size_t)n, y)) {
        for (int64_t i = 0; i < n; i++)
            y[i] = fmodf(y[i], 2);
        data = tn_data_from_arrays(
            app, .batch = 64, .shuffle = shuffle, .seed = 1,
            .fields = {{"data", b.x}, {"digit", b.y}, {"odd", tn_app_array(app, 1, &n, y)}});
    }
    free(y);
    return data;
}

int main(int argc, char **argv)
{
    tn_app *app = tn_app_open(.name = "two_heads", .errors = stderr);
    tn_net *net = tn_net_functions(app, heads, .name = "heads", .outputs = {"digit", "odd"});

    tn_net_init(net, .seed = 1);
    tn_fit(net, with_odd(app, "digits:train", 1), .valid_data = with_odd(app, "digits:test", 0), .loss = both,
           .labels = {"digit", "odd"}, .metrics = {{"digit", digit_right}, {"odd", odd_right}},
           .epochs = argc > 1 ? atoi(argv[1]) : 15, .lr = 0.1, .momentum = 0.9, .log = stdout);
    tn_net_export(net, "two_heads");
    return tn_app_close(app);
}
