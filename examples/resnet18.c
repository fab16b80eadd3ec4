/* ResNet-18 as a function over values, trained on handwritten digits of 8×8, evaluated, exported. Build it
 * with
 *     gcc resnet18.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs, a seed, and how many varied copies of each digit an epoch has may stand on the command line. */
#include "helpers.h"

static tn_x conv_bn(tn_x x, int64_t channels, int32_t k, int32_t stride)
{
    return tn_batchnorm(tn_conv2d(x, .channels = channels, .kernel = {k, k}, .stride = {stride, stride},
                                  .pad = {k / 2, k / 2}, .no_bias = 1));
}

static tn_x unit(tn_x x, int64_t channels, int32_t stride)
{
    tn_x y = conv_bn(tn_relu(conv_bn(x, channels, 3, stride)), channels, 3, 1);
    tn_x skip = stride == 1 && tn_dim(x, 1) == channels ? x : conv_bn(x, channels, 1, stride);

    return tn_relu(tn_add(y, skip));
}

static tn_x resnet18(tn_x x)
{
    x = tn_relu(conv_bn(x, 16, 3, 1)); /* small images: 16 channels, 3×3, stride 1 and no pool */
    for (int32_t stage = 0; stage < 4; stage++) {
        tn_scope_begin(x, "stage%d", stage + 1);
        x = unit(unit(x, 16 << stage, stage ? 2 : 1), 16 << stage, 1);
        tn_scope_end(x);
    }
    return tn_dense(tn_globalavgpool2d(x), .units = 10);
}

int main(int argc, char **argv)
{
    const uint64_t seed = (uint64_t)argument(argc, argv, 2, 1);
    tn_app *app = tn_app_open(.name = "resnet18", .errors = stderr);
    tn_net *net = tn_net_function(app, resnet18, .name = "resnet18");

    tn_net_init(net, .with = "msraprelu", .seed = seed);
    tn_fit(net, digits_varied(app, argument(argc, argv, 3, 16), seed),
           .valid_data = tn_data_open(app, "digits:test", .batch = 256),
           .epochs = argument(argc, argv, 1, 3), .lr = 0.05, .momentum = 0.9, .wd = 0.001,
           .schedule = "cosine", .log = stdout);
    tn_net_export(net, "resnet18"); /* resnet18-symbol.json and resnet18-0000.params, for MXNet too */
    return tn_app_close(app);
}
