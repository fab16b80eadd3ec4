/*
 * Labels of MXNet's ImageDetRecordIter: a header, then objects of a class and a box each. Corners are parts
 * of the image's sides.
 */
#include "boxes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASS, LEFT, TOP, RIGHT, BOTTOM, OBJECT_MIN };

static float *object_of(const tnn_boxes *b, size_t i)
{
    return b->numbers + b->header + i * b->width;
}

static bool whole(float v, float min)
{
    return v >= min && v <= 65536 && v == floorf(v);
}

/* Objects without an area are left out, as in MXNet. */
const char *tnn_boxes_take(tnn_boxes *b, const unsigned char *labels, size_t count)
{
    float head[2] = {0, 0};
    size_t left;

    if (count < 2)
        return "labels of boxes begin with the widths of header and object";
    memcpy(head, labels, sizeof head);
    if (!whole(head[0], 2) || !whole(head[1], OBJECT_MIN) || head[0] > (float)count)
        return "labels of boxes begin with the widths of header (2 or more) and object (5 or more)";
    b->header = (size_t)head[0];
    b->width = (size_t)head[1];
    left = count - b->header;
    if (left % b->width)
        return "the numbers behind the header are no whole objects";
    if (!(b->numbers = malloc(count * sizeof *b->numbers)))
        return "out of memory";
    memcpy(b->numbers, labels, b->header * sizeof *b->numbers);
    b->count = 0;
    for (size_t i = 0; i < left / b->width; i++) {
        float *to = object_of(b, b->count);

        memcpy(to, labels + (b->header + i * b->width) * sizeof *to, b->width * sizeof *to);
        b->count += to[RIGHT] > to[LEFT] && to[BOTTOM] > to[TOP];
    }
    return NULL;
}

void tnn_boxes_free(tnn_boxes *b)
{
    free(b->numbers);
    b->numbers = NULL;
}

void tnn_boxes_mirror(tnn_boxes *b)
{
    for (size_t i = 0; i < b->count; i++) {
        float *at = object_of(b, i);
        const float left = at[LEFT];

        at[LEFT] = 1 - at[RIGHT];
        at[RIGHT] = 1 - left;
    }
}

static void object_project(float *at, tnn_part w)
{
    at[LEFT] = fmaxf(0, (at[LEFT] - w.x) / w.width);
    at[TOP] = fmaxf(0, (at[TOP] - w.y) / w.height);
    at[RIGHT] = fminf(1, (at[RIGHT] - w.x) / w.width);
    at[BOTTOM] = fminf(1, (at[BOTTOM] - w.y) / w.height);
}

void tnn_boxes_project(tnn_boxes *b, tnn_part w)
{
    for (size_t i = 0; i < b->count; i++)
        object_project(object_of(b, i), w);
}

static double area_of(const float *at)
{
    return (double)(at[RIGHT] - at[LEFT]) * (double)(at[BOTTOM] - at[TOP]);
}

static double common_area(const float *at, tnn_part w)
{
    const float across = fminf(at[RIGHT], w.x + w.width) - fmaxf(at[LEFT], w.x);
    const float down = fminf(at[BOTTOM], w.y + w.height) - fmaxf(at[TOP], w.y);

    return across > 0 && down > 0 ? (double)across * (double)down : 0;
}

/* The parts are quotients of rounded numbers: one that is 1 may come out as a little more or less. */
static bool within(double v, double min, double max)
{
    return v >= min - 1e-6 && v <= max + 1e-6;
}

/* MXNet looks at the bounds only where all six of them are given; here each holds that is. */
static bool wanted(const float *at, tnn_part w, const tn_crop_sampler *s)
{
    const double common = common_area(at, w), object = area_of(at);
    const double window = (double)w.width * (double)w.height;

    return within(common / (object + window - common), s->min_overlap, s->max_overlap) &&
           within(common / window, s->min_sample_coverage, s->max_sample_coverage) &&
           within(common / object, s->min_object_coverage, s->max_object_coverage);
}

static bool stays(const tnn_boxes *b, const float *at, tnn_part w)
{
    const float x = (at[LEFT] + at[RIGHT]) / 2, y = (at[TOP] + at[BOTTOM]) / 2;

    if (b->o->crop_emit_mode && strcmp(b->o->crop_emit_mode, "overlap") == 0)
        return common_area(at, w) / area_of(at) > b->o->emit_overlap_thresh;
    return x >= w.x && x < w.x + w.width && y >= w.y && y < w.y + w.height;
}

bool tnn_boxes_crop(tnn_boxes *b, tnn_part w, const tn_crop_sampler *sampler)
{
    size_t kept = 0, good = 0;

    for (size_t i = 0; i < b->count; i++) {
        good += wanted(object_of(b, i), w, sampler);
        kept += stays(b, object_of(b, i), w);
    }
    if (b->count && (!good || !kept))
        return false;
    kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        float *from = object_of(b, i), *to = object_of(b, kept);

        if (!stays(b, from, w))
            continue;
        memmove(to, from, b->width * sizeof *to);
        object_project(to, w);
        kept++;
    }
    b->count = kept;
    return true;
}

void tnn_boxes_write(const tnn_boxes *b, float *out)
{
    const size_t count = b->header + b->count * b->width;

    for (int i = 0; i < 3; i++)
        out[i] = (float)b->shape[i];
    out[3] = (float)count;
    memcpy(out + TNN_BOXES_HEAD, b->numbers, count * sizeof *out);
    for (int64_t i = (int64_t)count; i < b->o->label_pad_width; i++)
        out[TNN_BOXES_HEAD + i] = (float)b->o->label_pad_value;
}
