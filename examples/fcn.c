/* A fully convolutional net that says of each pixel of a picture which digit it belongs to, or none: layers
 * that halve the picture, and transposed convolutions that bring it back, with what the finer layers saw.
 * Build it with
 *     gcc fcn.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs, a seed and the number of pictures to learn from may stand on the command line. */
#include "helpers.h"

#include <stdlib.h>

enum { CLASSES = 1 + DIGIT_CLASSES }; /* 0: no digit */

static tn_x conv(tn_x x, int64_t channels, int32_t stride)
{
    x = tn_conv2d(x, .channels = channels, .kernel = {3, 3}, .stride = {stride, stride}, .pad = {1, 1},
                  .no_bias = 1);
    return tn_relu(tn_batchnorm(x));
}

static tn_x scores(tn_x x)
{
    return tn_conv2d(x, .channels = CLASSES, .kernel = {1, 1});
}

static tn_x twice(tn_x x)
{
    return tn_conv2dtranspose(x, .channels = CLASSES, .kernel = {4, 4}, .stride = {2, 2}, .pad = {1, 1});
}

static tn_x fcn(tn_x x) /* (N, 1, H, W) to scores (N, H, W, CLASSES) */
{
    tn_x fine = conv(x, 16, 1), half = conv(conv(conv(fine, 32, 2), 32, 1), 32, 1);
    tn_x y = scores(conv(conv(conv(half, 64, 2), 64, 1), 64, 1));

    half = scores(half);
    y = tn_add(half, twice(y));
    fine = scores(fine);
    y = tn_add(fine, twice(y));
    return tn_transpose(y, 0, 2, 3, 1);
}

static tn_x loss(const tn_x *out, const tn_x *label)
{
    return tn_softmax_ce(out[0], label[0]);
}

static tn_x likeliest(tn_x x)
{
    return tn_op(tn_net_call(tn_arg(x), x), "argmax", .attrs = {"axis", "3"});
}

static tn_data *data_of(tn_app *app, const pictures *p, int32_t shuffle, uint64_t seed)
{
    const int64_t shape[4] = {p->count, 1, SIDE, SIDE}, mask[3] = {p->count, SIDE, SIDE};

    return tn_data_from_arrays(app, .batch = 32, .shuffle = shuffle, .seed = seed,
                               .fields = {{"data", tn_app_array(app, 4, shape, p->pixels)},
                                          {"label", tn_app_array(app, 3, mask, p->masks)}});
}

int main(int argc, char **argv)
{
    const uint64_t seed = (uint64_t)argument(argc, argv, 2, 1);
    tn_app *app = tn_app_open(.name = "fcn", .errors = stderr);
    tn_net *net = tn_net_function(app, fcn, .name = "fcn");
    tn_net *classes = tn_net_function(app, likeliest, .name = "classes", .arg = net);
    pictures learnt = pictures_read(app, "digits:train", argument(argc, argv, 3, 3000), seed, 1);
    pictures others = pictures_read(app, "digits:test", learnt.count / 4, seed + 1000, 0);
    float *found;

    tn_net_init(net, .seed = seed);
    tn_fit(net, data_of(app, &learnt, 1, seed), .loss = loss, .epochs = argument(argc, argv, 1, 10),
           .optimizer = "adam", .lr = 0.005, .schedule = "cosine", .log = stdout);
    found = outputs_of(app, classes, data_of(app, &others, 0, 0), SIDE * SIDE);
    if (found)
        (void)printf("valid: iou %.4f\n",
                     mean_iou(found, others.masks, (size_t)others.count * SIDE * SIDE, CLASSES));
    free(found);
    pictures_free(&learnt);
    pictures_free(&others);
    tn_net_export(net, "fcn");
    return tn_app_close(app);
}
