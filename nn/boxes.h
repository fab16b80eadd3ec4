/* The boxes of an image's objects, which go where its pixels go. boxes.c. */
#ifndef TN_NN_BOXES_H
#define TN_NN_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "internal.h"
#include "tenon/nn_data.h"

#define TNN_SAMPLERS_MAX 64
#define TNN_BOXES_HEAD 4 /* numbers before an image's labels: channels, height, width, count of these */

typedef struct tnn_boxes_given { /* options of boxes while they are read: samplers of their own */
    tn_boxes_options o;
    tn_crop_sampler samplers[TNN_SAMPLERS_MAX];
    int32_t longest; /* tuple among MXNet's arguments */
} tnn_boxes_given;

/* boxes_args.c. An argument of ImageDetRecordIter alone; false: `name` is none. The app's status says whether
 * its text is fine. */
bool tnn_boxes_arg(tn_app *app, const char *what, const char *name, const char *text, tnn_boxes_given *g);
/* Names of these from the first place of `out` on, of which there are enough (TNN_BOXES_ARGS); how many. */
#define TNN_BOXES_ARGS 40
size_t tnn_boxes_names(const char **out);
/* What `o` gives, to be changed by arguments. */
tn_status tnn_boxes_begin(tn_app *app, const char *what, const tn_boxes_options *o, tnn_boxes_given *g);
/* Defaults; checks. */
tn_status tnn_boxes_end(tn_app *app, const char *what, tnn_boxes_given *g);

typedef struct tnn_part { /* of an image whose sides are 1 */
    float x, y, width, height;
} tnn_part;

typedef struct tnn_boxes {
    const tn_boxes_options *o;
    float *numbers; /* ours: the header, then the objects */
    size_t header, width, count;
    int32_t shape[3]; /* channels, height, width: of the image as it is in the sample */
} tnn_boxes;

/* From `count` floats at any address. NULL, or why these are no boxes. */
const char *tnn_boxes_take(tnn_boxes *b, const unsigned char *labels, size_t count);
void tnn_boxes_mirror(tnn_boxes *b);
/* The window takes the image's place. */
void tnn_boxes_project(tnn_boxes *b, tnn_part w);
/* The same, if it is one that the sampler wants and an object is left; else nothing changes. */
bool tnn_boxes_crop(tnn_boxes *b, tnn_part w, const tn_crop_sampler *sampler);
/* TNN_BOXES_HEAD + label_pad_width numbers, of which there are enough. */
void tnn_boxes_write(const tnn_boxes *b, float *out);
void tnn_boxes_free(tnn_boxes *b);

#endif
