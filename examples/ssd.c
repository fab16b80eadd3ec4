/* A single shot detector of digits: at each place of two feature maps, a fine one for small digits and a
 * coarse one for large ones, it says what is in some anchors, which are boxes of that place, and how far
 * off they are. Build it with
 *     gcc ssd.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm
 * Epochs, a seed and the number of pictures to learn from may stand on the command line. */
#include "helpers.h"

#include <stdlib.h>

enum { CLASSES = 1 + DIGIT_CLASSES, ANCHORS = 2, ROWS = ANCHORS * (16 * 16 + 8 * 8) }; /* class 0: no digit */

static tn_x conv(tn_x x, int64_t channels, int32_t stride)
{
    x = tn_conv2d(x, .channels = channels, .kernel = {3, 3}, .stride = {stride, stride}, .pad = {1, 1},
                  .no_bias = 1);
    return tn_relu(tn_batchnorm(x));
}

/* The numbers of each anchor of a map (N, C, H, W), place by place: (N, H · W · ANCHORS · size). */
static tn_x head(tn_x map, int64_t size)
{
    tn_x y = tn_conv2d(map, .channels = ANCHORS * size, .kernel = {3, 3}, .pad = {1, 1});

    return tn_flatten(tn_transpose(y, 0, 2, 3, 1));
}

static tn_x anchors(tn_x map, const char *size)
{
    return tn_op(map, "_contrib_MultiBoxPrior", .attrs = {"sizes", size, "ratios", "(1, 0.6)"});
}

/* out: scores (N, ROWS, CLASSES), offsets (N, ROWS · 4), anchors (1, ROWS, 4). */
static void ssd(const tn_x *in, tn_x *out)
{
    tn_x fine = conv(conv(conv(conv(in[0], 16, 1), 32, 2), 32, 1), 32, 1);
    tn_x coarse = conv(conv(fine, 64, 2), 64, 1);
    tn_x scores[2] = {head(fine, CLASSES)}, offsets[2] = {head(fine, 4)};

    scores[1] = head(coarse, CLASSES);
    offsets[1] = head(coarse, 4);
    out[0] = tn_reshape(tn_concat(1, scores[0], scores[1]), 0, -1, CLASSES);
    out[1] = tn_concat(1, offsets[0], offsets[1]);
    out[2] = tn_concat(1, anchors(fine, "(0.22,)"), anchors(coarse, "(0.44,)"));
}

static tn_x loss(const tn_x *out, const tn_x *label)
{
    tn_x by_class = tn_transpose(out[0], 0, 2, 1), target[3] = {NULL}, counts, off;

    tn_op(out[2], "_contrib_MultiBoxTarget", .with = {label[0], by_class}, .out = target, .out_count = 3,
          .attrs = {"negative_mining_ratio", "3"}); /* offsets, which count, classes; -1: does not count */
    counts = tn_op(tn_reshape(target[2], 0, 0, 1), "_greater_equal_scalar", .attrs = {"scalar", "0"});
    off = tn_op(tn_mul(target[1], tn_sub(out[1], target[0])), "smooth_l1", .attrs = {"scalar", "1"});
    return tn_add(tn_loss(out[0], target[2], "softmax_ce", .sample_weight = counts),
                  tn_scale(tn_mean(off), 4));
}

static tn_x detector(tn_x x) /* (N, 1, H, W) to (N, ROWS, 6): class or -1, score, box */
{
    tn_x y[3];

    tn_net_call_all(tn_arg(x), &x, y);
    y[0] = tn_transpose(tn_softmax(y[0]), 0, 2, 1);
    return tn_op(y[0], "_contrib_MultiBoxDetection", .with = {y[1], y[2]}, .attrs = {"force_suppress", "1"});
}

static tn_data *data_of(tn_app *app, const pictures *p, int32_t shuffle, uint64_t seed)
{
    const int64_t shape[4] = {p->count, 1, SIDE, SIDE}, boxes[3] = {p->count, BOXES, 5};

    return tn_data_from_arrays(app, .batch = 32, .shuffle = shuffle, .seed = seed,
                               .fields = {{"data", tn_app_array(app, 4, shape, p->pixels)},
                                          {"label", tn_app_array(app, 3, boxes, &p->boxes->kind)}});
}

int main(int argc, char **argv)
{
    const uint64_t seed = (uint64_t)argument(argc, argv, 2, 1);
    tn_app *app = tn_app_open(.name = "ssd", .errors = stderr);
    tn_net *net = tn_net_functions(app, ssd, .name = "ssd", .outputs = {"scores", "offsets", "anchors"});
    tn_net *whole = tn_net_function(app, detector, .name = "detector", .arg = net);
    pictures learnt = pictures_read(app, "digits:train", argument(argc, argv, 3, 8000), seed, 1);
    pictures others = pictures_read(app, "digits:test", learnt.count / 16, seed + 1000, 0);
    float *found;

    tn_net_init(net, .seed = seed);
    tn_fit(net, data_of(app, &learnt, 1, seed), .loss = loss, .epochs = argument(argc, argv, 1, 4),
           .optimizer = "adam", .lr = 0.005, .schedule = "cosine", .log = stdout);
    found = outputs_of(app, whole, data_of(app, &others, 0, 0), ROWS * 6);
    if (found)
        (void)printf("valid: map %.4f\n", mean_average_precision(found, ROWS, &others));
    free(found);
    pictures_free(&learnt);
    pictures_free(&others);
    tn_net_export(net, "heads"); /* without the choice of boxes, whose order a last bit may turn */
    tn_net_export(whole, "ssd");
    return tn_app_close(app);
}
