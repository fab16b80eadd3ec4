/* An autoencoder: 64 pixels through 8 numbers and back, beside the best linear one, which is principal
 * component analysis. The labels are the data; the encoder is a net of its own, which is exported by
 * itself, too. Build it with
 *     gcc autoencoder.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs and a seed may stand on the command line. */
#include "helpers.h"

enum { CODE = 8 };

static tn_x encode(tn_x x)
{
    x = tn_conv2d(x, .channels = 16, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .activation = "relu");
    return tn_dense(x, .units = CODE);
}

static tn_x autoencoder(tn_x x)
{
    tn_x code = tn_net_call(tn_arg(x), x);
    tn_x y = tn_reshape(tn_dense(code, .units = 16 * 4 * 4, .activation = "relu"), 0, 16, 4, 4);

    y = tn_op(y, "repeat", .attrs = {"repeats", "2", "axis", "2"}); /* 8×8 again */
    y = tn_op(y, "repeat", .attrs = {"repeats", "2", "axis", "3"});
    return tn_sigmoid(tn_conv2d(y, .channels = 1, .kernel = {3, 3}, .pad = {1, 1}));
}

static tn_x difference(const tn_x *out, const tn_x *label)
{
    return tn_l2(out[0], label[0]);
}

static tn_x absolute(const tn_x *out, const tn_x *label)
{
    return tn_l1(out[0], label[0]);
}

static tn_x squared(const tn_x *out, const tn_x *label)
{
    return tn_scale(tn_l2(out[0], label[0]), 2);
}

int main(int argc, char **argv)
{
    const uint64_t seed = (uint64_t)argument(argc, argv, 2, 1);
    tn_app *app = tn_app_open(.name = "autoencoder", .errors = stderr);
    tn_net *encoder = tn_net_function(app, encode, .name = "encoder");
    tn_net *net = tn_net_function(app, autoencoder, .name = "decoder", .arg = encoder);

    (void)printf("through %d components %.4f\n", CODE, components_error(app, CODE));
    tn_net_init(net, .seed = seed);
    tn_fit(net, tn_data_open(app, "digits:train", .batch = 64, .shuffle = 1, .seed = seed),
           .valid_data = tn_data_open(app, "digits:test", .batch = 256), .loss = difference,
           .labels = {"data"}, .metrics = {{"l1", absolute}, {"mse", squared}},
           .epochs = argument(argc, argv, 1, 15), .optimizer = "adam", .lr = 0.01, .log = stdout);
    tn_net_export(net, "autoencoder");
    tn_net_export(encoder, "encoder");
    return tn_app_close(app);
}
