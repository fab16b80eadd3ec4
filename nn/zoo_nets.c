/*
 * The nets of MXNet's gluon.model_zoo.vision (release 1.9.1) as functions over values. A chain below is a
 * HybridSequential of Gluon: it counts its children, so that parameters get Gluon's names in both kinds of
 * files: NET_stage1_conv0_weight in exported ones, features.4.0.body.0.weight in those of a net alone.
 */
#include "zoo.h"

#include <string.h>

typedef struct chain {
    tn_net *net;
    const tnn_zoo *z;
    tn_x x;
    int32_t next;   /* the number of its next child */
    char place[40]; /* what is in front of it: "features.4." */
} chain;

typedef struct window { /* of a convolution */
    int32_t channels;
    uint8_t kernel[2], stride, pad[2];
} window;

#define SQUARE(channels, side, stride, pad)                                                                  \
    (window)                                                                                                 \
    {                                                                                                        \
        channels, {side, side}, stride,                                                                      \
        {                                                                                                    \
            pad, pad                                                                                         \
        }                                                                                                    \
    }

enum { /* how a convolution is made */
       BIAS = 1,
       ACTIVE = 2, /* a ReLU within the layer */
       EACH = 4,   /* one group for each channel */
       LINEAR = 8, /* no ReLU behind its BatchNorm */
};

/* ---- layers ---- */

/* The next child's parameters are called by its number, or `own`. */
static void child(chain *c, const char *own)
{
    if (own)
        (void)snprintf(c->net->place, sizeof c->net->place, "%s%s", c->place, own);
    else
        (void)snprintf(c->net->place, sizeof c->net->place, "%s%d", c->place, c->next++);
}

/* A child that is a chain itself, `own` with a dot at its end; it begins with the value of now. */
static chain within(chain *c, const char *own)
{
    chain in = *c;

    if (own)
        (void)snprintf(in.place, sizeof in.place, "%.26s%s", c->place, own);
    else
        (void)snprintf(in.place, sizeof in.place, "%.26s%d.", c->place, c->next++);
    in.next = 0;
    return in;
}

/* `name`: of the layer, where the order of calls is not that of Gluon's constructors; NULL. */
static void conv_named(chain *c, window w, int how, const char *name, const char *own)
{
    child(c, own);
    c->x = tn_conv2d(c->x, .name = name, .channels = w.channels, .kernel = {w.kernel[0], w.kernel[1]},
                     .stride = {w.stride, w.stride}, .pad = {w.pad[0], w.pad[1]},
                     .groups = how & EACH ? w.channels : 1, .no_bias = !(how & BIAS),
                     .activation = how & ACTIVE ? "relu" : NULL);
}

static void conv(chain *c, window w, int how)
{
    conv_named(c, w, how, NULL, NULL);
}

/* fixed: neither scale nor shift. */
static void norm(chain *c, const char *own, bool fixed)
{
    child(c, own);
    c->x = tn_batchnorm(c->x, .epsilon = c->z->family == TNN_INCEPTION ? 1e-3 : 0, .no_scale = fixed,
                        .no_center = fixed);
}

static void relu(chain *c)
{
    c->next++;
    c->x = c->z->family == TNN_MOBILENETV2 ? tn_op(c->x, "clip", .attrs = {"a_min", "0", "a_max", "6"})
                                           : tn_relu(c->x);
}

static void norm_relu(chain *c)
{
    norm(c, NULL, false);
    relu(c);
}

static void unit(chain *c, window w, int how)
{
    conv(c, w, how);
    norm(c, NULL, false);
    if (!(how & LINEAR))
        relu(c);
}

static void max_pool(chain *c, int32_t side, int32_t stride, int32_t pad)
{
    c->next++;
    c->x = tn_maxpool2d(c->x, .kernel = {side, side}, .stride = {stride, stride}, .pad = {pad, pad},
                        .ceil = c->z->family == TNN_SQUEEZENET);
}

static void average_pool(chain *c, int32_t side, int32_t stride, int32_t pad)
{
    c->next++;
    c->x = tn_avgpool2d(c->x, .kernel = {side, side}, .stride = {stride, stride}, .pad = {pad, pad});
}

static void dropout(chain *c)
{
    c->next++;
    c->x = tn_dropout(c->x, .rate = c->z->dropout);
}

/* All values behind each other along the channels. */
static tn_x joined(size_t count, const tn_x *values)
{
    return tn_concat_(1, count, values, __FILE__, __LINE__);
}

/* ---- families ---- */

/* Two wide layers before the scores. */
static void wide(chain *c)
{
    for (int i = 0; i < 2; i++) {
        child(c, NULL);
        c->x = tn_dense(c->x, .units = 4096, .activation = "relu");
        dropout(c);
    }
}

/* Krizhevsky: "One weird trick for parallelizing convolutional neural networks", 2014. */
static void alexnet(chain *c)
{
    static const window convs[] = {
        {64, {11, 11}, 4, {2, 2}}, {192, {5, 5}, 1, {2, 2}}, {384, {3, 3}, 1, {1, 1}},
        {256, {3, 3}, 1, {1, 1}},  {256, {3, 3}, 1, {1, 1}},
    };

    for (int i = 0; i < 5; i++) {
        conv(c, convs[i], BIAS | ACTIVE);
        if (i != 2 && i != 3)
            max_pool(c, 3, 2, 0);
    }
    c->next++;
    c->x = tn_flatten(c->x);
    wide(c);
}

/* Simonyan, Zisserman: "Very deep convolutional networks for large-scale image recognition", 2014. variant 1:
 * with BatchNorm; numbers: convolutions of each stage. */
static void vgg(chain *c)
{
    for (int i = 0; i < 5; i++) {
        for (int n = 0; n < c->z->numbers[i]; n++) {
            conv(c, SQUARE(i < 3 ? 64 << i : 512, 3, 1, 1), BIAS);
            if (c->z->variant)
                norm(c, NULL, false);
            relu(c);
        }
        max_pool(c, 2, 2, 0);
    }
    wide(c);
}

static void fire(chain *c, int32_t channels)
{
    chain all = within(c, NULL), part = within(&all, NULL), paths;
    tn_x out[2];

    conv(&part, SQUARE(channels, 1, 1, 0), BIAS);
    relu(&part);
    all.x = part.x;
    paths = within(&all, NULL);
    for (int i = 0; i < 2; i++) {
        part = within(&paths, NULL);
        conv(&part, i ? SQUARE(4 * channels, 3, 1, 1) : SQUARE(4 * channels, 1, 1, 0), BIAS);
        relu(&part);
        out[i] = part.x;
    }
    c->x = joined(2, out);
}

/* Iandola and others: "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size",
 * 2016. variant: the digit behind "1.". */
static void squeezenet(chain *c)
{
    static const uint8_t fires[2][10] = {{1, 1, 2, 0, 2, 3, 3, 4, 0, 4}, /* in 16 channels; 0: a pool */
                                         {1, 1, 0, 2, 2, 0, 3, 3, 4, 4}};
    chain out;

    conv(c, c->z->variant ? SQUARE(64, 3, 2, 0) : SQUARE(96, 7, 2, 0), BIAS);
    relu(c);
    max_pool(c, 3, 2, 0);
    for (int i = 0; i < 10; i++) {
        const int f = fires[c->z->variant][i];

        if (f)
            fire(c, 16 * f);
        else
            max_pool(c, 3, 2, 0);
    }
    dropout(c);
    out = *c;
    (void)strcpy(out.place, "output.");
    out.next = 0;
    conv(&out, SQUARE((int32_t)c->z->classes, 1, 1, 0), BIAS);
    relu(&out);
    average_pool(&out, 13, 13, 0);
    c->x = tn_flatten(out.x);
}

/* Huang, Liu, van der Maaten, Weinberger: "Densely connected convolutional networks", 2016. numbers: channels
 * that a layer adds, layers of each stage. */
static void densenet(chain *c)
{
    const int32_t growth = c->z->numbers[0];
    int32_t channels = 2 * growth;

    conv(c, SQUARE(channels, 7, 2, 3), 0);
    norm_relu(c);
    max_pool(c, 3, 2, 1);
    for (int i = 1; i <= 4; i++) {
        chain stage = within(c, NULL), part;

        tn_scope_begin(c->x, "stage%d", i);
        for (int n = 0; n < c->z->numbers[i]; n++) {
            chain both = within(&stage, NULL);

            both.next = 1; /* 0 is the value itself */
            part = within(&both, NULL);
            norm_relu(&part);
            conv(&part, SQUARE(c->z->bottleneck * growth, 1, 1, 0), 0);
            norm_relu(&part);
            conv(&part, SQUARE(growth, 3, 1, 1), 0);
            if (c->z->dropout > 0)
                dropout(&part);
            stage.x = joined(2, (const tn_x[]){stage.x, part.x});
        }
        tn_scope_end(stage.x);
        c->x = stage.x;
        channels += c->z->numbers[i] * growth;
        if (i == 4)
            break;
        channels /= 2;
        part = within(c, NULL);
        norm_relu(&part);
        conv(&part, SQUARE(channels, 1, 1, 0), 0);
        average_pool(&part, 2, 2, 0);
        c->x = part.x;
    }
    norm_relu(c);
    average_pool(c, 7, 7, 0);
    c->x = tn_flatten(c->x);
}

/* Howard and others: "MobileNets: Efficient convolutional neural networks for mobile vision applications",
 * 2017. variant: width in quarters. */
static void mobilenet(chain *c)
{
    static const uint8_t bits[] = {6, 7, 7, 8, 8, 9, 9, 9, 9, 9, 9, 10, 10}; /* of the channels */
    int32_t in = 8 * c->z->variant;

    unit(c, SQUARE(in, 3, 2, 1), 0);
    for (size_t i = 0; i < sizeof bits; i++) {
        const int32_t channels = (c->z->variant << bits[i]) / 4;

        unit(c, SQUARE(in, 3, i && channels != in ? 2 : 1, 1), EACH);
        unit(c, SQUARE(channels, 1, 1, 0), 0);
        in = channels;
    }
    c->x = tn_flatten(tn_globalavgpool2d(c->x));
}

static void inverted(chain *c, int32_t in, int32_t channels, int32_t times, int32_t stride)
{
    chain block = within(c, NULL), out = within(&block, "out.");

    unit(&out, SQUARE(in * times, 1, 1, 0), 0);
    unit(&out, SQUARE(in * times, 3, (uint8_t)stride, 1), EACH);
    unit(&out, SQUARE(channels, 1, 1, 0), LINEAR);
    c->x = stride == 1 && in == channels ? tn_add(out.x, c->x) : out.x;
}

/* Sandler and others: "MobileNetV2: Inverted residuals and linear bottlenecks", 2018. variant: width in
 * quarters. */
static void mobilenetv2(chain *c)
{
    static const struct {
        int16_t channels;
        uint8_t count, stride;
    } stages[] = {{16, 1, 1}, {24, 2, 2}, {32, 3, 2}, {64, 4, 2}, {96, 3, 1}, {160, 3, 2}, {320, 1, 1}};
    int32_t in = 8 * c->z->variant, number = 0;

    tn_scope_begin(c->x, "features");
    unit(c, SQUARE(in, 3, 2, 1), 0);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (int n = 0; n < stages[i].count; n++) {
            const int32_t channels = stages[i].channels * c->z->variant / 4;

            tn_scope_begin(c->x, "linearbottleneck%d", number);
            inverted(c, in, channels, number++ ? 6 : 1, n ? 1 : stages[i].stride);
            tn_scope_end(c->x);
            in = channels;
        }
    unit(c, SQUARE(1280, 1, 1, 0), 0);
    c->x = tn_globalavgpool2d(c->x);
    tn_scope_end(c->x);
    tn_scope_begin(c->x, "output");
    *c->place = '\0';
    conv_named(c, SQUARE((int32_t)c->z->classes, 1, 1, 0), 0, "pred", "output.0");
    c->x = tn_flatten(c->x);
    tn_scope_end(c->x);
}

/* ---- Inception ---- */

typedef struct step {
    char kind; /* of the next branch's first: '|' a convolution, '/' one before 'y', 'a' and 'm' pools;
                         '-': a convolution behind it; 'y': two beside each other; 0: the end */
    uint8_t kernel[2], stride;
    int16_t channels; /* 0: the block's own number */
} step;

static const step steps[] = {
    /* A */
    {'|', {1, 1}, 1, 64},
    {'|', {1, 1}, 1, 48},
    {'-', {5, 5}, 1, 64},
    {'|', {1, 1}, 1, 64},
    {'-', {3, 3}, 1, 96},
    {'-', {3, 3}, 1, 96},
    {'a', {0, 0}, 0, 0},
    {'-', {1, 1}, 1, 0},
    {0, {0, 0}, 0, 0},
    /* B */
    {'|', {3, 3}, 2, 384},
    {'|', {1, 1}, 1, 64},
    {'-', {3, 3}, 1, 96},
    {'-', {3, 3}, 2, 96},
    {'m', {0, 0}, 0, 0},
    {0, {0, 0}, 0, 0},
    /* C */
    {'|', {1, 1}, 1, 192},
    {'|', {1, 1}, 1, 0},
    {'-', {1, 7}, 1, 0},
    {'-', {7, 1}, 1, 192},
    {'|', {1, 1}, 1, 0},
    {'-', {7, 1}, 1, 0},
    {'-', {1, 7}, 1, 0},
    {'-', {7, 1}, 1, 0},
    {'-', {1, 7}, 1, 192},
    {'a', {0, 0}, 0, 0},
    {'-', {1, 1}, 1, 192},
    {0, {0, 0}, 0, 0},
    /* D */
    {'|', {1, 1}, 1, 192},
    {'-', {3, 3}, 2, 320},
    {'|', {1, 1}, 1, 192},
    {'-', {1, 7}, 1, 192},
    {'-', {7, 1}, 1, 192},
    {'-', {3, 3}, 2, 192},
    {'m', {0, 0}, 0, 0},
    {0, {0, 0}, 0, 0},
    /* E */
    {'|', {1, 1}, 1, 320},
    {'/', {1, 1}, 1, 384},
    {'y', {1, 3}, 1, 384},
    {'/', {1, 1}, 1, 448},
    {'-', {3, 3}, 1, 384},
    {'y', {1, 3}, 1, 384},
    {'a', {0, 0}, 0, 0},
    {'-', {1, 1}, 1, 192},
    {0, {0, 0}, 0, 0},
};

static void basic(chain *c, window w)
{
    chain all = within(c, NULL);

    unit(&all, w, 0);
    c->x = all.x;
}

/* With stride 1 the sides stay. */
static void basic_step(chain *c, const step *s, bool turned, int32_t own)
{
    const uint8_t h = s->kernel[turned], w = s->kernel[!turned];
    const bool same = s->stride == 1;

    basic(c,
          (window){s->channels ? s->channels : own, {h, w}, s->stride, {same ? h / 2 : 0, same ? w / 2 : 0}});
}

/* Two convolutions of what the branch has, the second one's sides exchanged. */
static tn_x split(chain *branch, const step *s)
{
    chain both = within(branch, NULL), one;
    tn_x out[2];

    for (int i = 0; i < 2; i++) {
        one = within(&both, NULL);
        basic_step(&one, s, i, 0);
        out[i] = one.x;
    }
    return joined(2, out);
}

static void block(chain *c, const step *s, int32_t own)
{
    chain all = within(c, NULL), branch = all, path = all;
    tn_x out[4];
    size_t count = 0;

    for (; s->kind; s++) {
        if (strchr("|/am", s->kind)) {
            branch = within(&all, NULL);
            path = s->kind == '/' ? within(&branch, NULL) : branch;
            count++;
        }
        if (s->kind == 'a')
            average_pool(&path, 3, 1, 1);
        else if (s->kind == 'm')
            max_pool(&path, 3, 2, 0);
        else if (s->kind != 'y')
            basic_step(&path, s, false, own);
        branch.x = path.x;
        out[count - 1] = s->kind == 'y' ? split(&branch, s) : path.x;
    }
    c->x = joined(count, out);
}

/* Szegedy and others: "Rethinking the Inception architecture for computer vision", 2015. */
static void inception(chain *c)
{
    static const window stem[] = {{32, {3, 3}, 2, {0, 0}}, {32, {3, 3}, 1, {0, 0}}, {64, {3, 3}, 1, {1, 1}},
                                  {0, {0, 0}, 0, {0, 0}},  {80, {1, 1}, 1, {0, 0}}, {192, {3, 3}, 1, {0, 0}},
                                  {0, {0, 0}, 0, {0, 0}}};
    static const struct {
        char name[3];
        uint8_t own;
    } blocks[] = {{"A1", 32},  {"A2", 64},  {"A3", 64}, {"B", 0},  {"C1", 128}, {"C2", 160},
                  {"C3", 160}, {"C4", 192}, {"D", 0},   {"E1", 0}, {"E2", 0}};

    for (size_t i = 0; i < sizeof stem / sizeof *stem; i++)
        if (stem[i].channels)
            basic(c, stem[i]);
        else
            max_pool(c, 3, 2, 0);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const step *s = steps;

        for (int letter = 'A'; letter < *blocks[i].name; s++)
            letter += !s->kind;
        tn_scope_begin(c->x, "%s", blocks[i].name);
        block(c, s, blocks[i].own);
        tn_scope_end(c->x);
    }
    average_pool(c, 8, 8, 0);
    dropout(c);
}

/* ---- ResNet ---- */

/* The value goes round the layers, perhaps by a convolution (`down`). */
static void residual_v1(chain *c, int32_t channels, uint8_t stride, bool down)
{
    const bool deep = c->z->numbers[0] > 1;
    chain body = within(c, "body."), side;

    if (deep) {
        unit(&body, SQUARE(channels / 4, 1, stride, 0), BIAS);
        unit(&body, SQUARE(channels / 4, 3, 1, 1), 0);
        unit(&body, SQUARE(channels, 1, 1, 0), BIAS | LINEAR);
    } else {
        unit(&body, SQUARE(channels, 3, stride, 1), 0);
        unit(&body, SQUARE(channels, 3, 1, 1), LINEAR);
    }
    if (down) {
        side = within(c, "downsample.");
        unit(&side, SQUARE(channels, 1, stride, 0), LINEAR);
        c->x = side.x;
    }
    c->x = tn_relu(deep ? tn_add(body.x, c->x) : tn_add(c->x, body.x));
}

/* Layers before their convolutions. `convs`: how many of the stage have a number already. Gluon makes the one
 * beside them last, but calls it first. */
static void residual_v2(chain *c, int32_t channels, uint8_t stride, bool down, int *convs)
{
    const int count = c->z->numbers[0] > 1 ? 3 : 2;
    chain side = *c;
    char own[16], name[16];

    for (int i = 0; i < count; i++) {
        const int32_t width = count == 3 && i < 2 ? channels / 4 : channels;
        const bool point = count == 3 && i != 1;

        (void)snprintf(own, sizeof own, "bn%d", i + 1);
        norm(c, own, false);
        relu(c);
        if (!i && down) {
            (void)snprintf(name, sizeof name, "conv%d", *convs + count);
            side.x = c->x;
            conv_named(&side, SQUARE(channels, 1, stride, 0), 0, name, "downsample");
        }
        (void)snprintf(own, sizeof own, "conv%d", i + 1);
        (void)snprintf(name, sizeof name, "conv%d", *convs + i);
        conv_named(c, SQUARE(width, point ? 1 : 3, i == count - 2 ? stride : 1, !point), 0, name, own);
    }
    *convs += count + down;
    c->x = tn_add(c->x, side.x);
}

/* He, Zhang, Ren, Sun: "Deep residual learning for image recognition", 2015; variant 2: "Identity mappings in
 * deep residual networks", 2016. numbers: 4 for units of three convolutions, else 1; units of each stage. */
static void resnet(chain *c)
{
    const bool second = c->z->variant == 2;
    int32_t in = 64;

    if (second)
        norm(c, NULL, true);
    if (c->z->thumbnail) {
        conv(c, SQUARE(64, 3, 1, 1), 0);
    } else {
        unit(c, SQUARE(64, 7, 2, 3), 0);
        max_pool(c, 3, 2, 1);
    }
    for (int i = 1; i <= 4; i++) {
        const int32_t channels = (32 << i) * c->z->numbers[0];
        chain stage = within(c, NULL);
        int convs = 0;

        tn_scope_begin(c->x, "stage%d", i);
        for (int n = 0; n < c->z->numbers[i]; n++) {
            const uint8_t stride = i > 1 && !n ? 2 : 1;
            chain one = within(&stage, NULL);

            if (second)
                residual_v2(&one, channels, stride, channels != in, &convs);
            else
                residual_v1(&one, channels, stride, channels != in);
            stage.x = one.x;
            in = channels;
        }
        tn_scope_end(stage.x);
        c->x = stage.x;
    }
    if (second)
        norm_relu(c);
    c->x = tn_globalavgpool2d(c->x);
    if (second)
        c->x = tn_flatten(c->x);
}

void tnn_zoo_run(tn_net *net, const tn_x *in, tn_x *out)
{
    static void (*const families[])(chain *) = {[TNN_ALEXNET] = alexnet,         [TNN_DENSENET] = densenet,
                                                [TNN_INCEPTION] = inception,     [TNN_MOBILENET] = mobilenet,
                                                [TNN_MOBILENETV2] = mobilenetv2, [TNN_RESNET] = resnet,
                                                [TNN_SQUEEZENET] = squeezenet,   [TNN_VGG] = vgg};
    chain c = {.net = net, .z = net->arg, .x = in[0], .place = "features."};

    families[c.z->family](&c);
    if (c.z->family != TNN_SQUEEZENET && c.z->family != TNN_MOBILENETV2) {
        *c.place = '\0';
        child(&c, "output");
        c.x = tn_dense(c.x, .units = c.z->classes);
    }
    out[0] = c.x;
}
