/* What several examples share: digits and texts to learn from, pictures composed of digits, and measures of
 * how well they are read. Build it with the example:
 *     gcc ssd.c helpers.c $(pkg-config --cflags --libs tenon-nn) -lm */
#ifndef HELPERS_H
#define HELPERS_H

#include <stdint.h>
#include <tenon/nn.h>

/** A number of the command line; `otherwise` where there is none, or "". */
int64_t argument(int argc, char **argv, int index, int64_t otherwise);

/* ---- random numbers: a function of the seed alone ---- */

/** 0 to below 1; `state` goes on. */
double draw(uint64_t *state);
/** 0 to below `count`. */
int64_t draw_below(uint64_t *state, int64_t count);

/* ---- digits ---- */

enum { DIGIT = 8, DIGIT_CLASSES = 10 }; /* side in pixels */

typedef struct digits {
    int64_t count;
    float *pixels; /* (count, 8, 8), 0 to 1 */
    float *labels; /* (count) */
} digits;

/** Those of "digits:train" or "digits:test"; none after an error. Freed by digits_free(). */
digits digits_read(tn_app *app, const char *name);
void digits_free(digits *d);
/** A digit turned, scaled and moved a little: bilinear, dark around it. */
void digit_vary(const float *digit, uint64_t *random, float *out);

/** "digits:train" in batches of 64, of which each epoch has `copies` that vary, as digit_vary(). */
tn_data *digits_varied(tn_app *app, int64_t copies, uint64_t seed);

/* ---- pictures composed of digits ---- */

enum { SIDE = 32, BOXES = 4 }; /* of a picture in pixels; digits in it at most */

typedef struct box {                /* around a digit's ink */
    float kind;                     /* its class; -1: no box */
    float left, top, right, bottom; /* in parts of the picture's side */
} box;

typedef struct pictures {
    int64_t count;
    float *pixels; /* (count, 1, SIDE, SIDE) */
    float *masks;  /* (count, SIDE, SIDE): 0 where there is no ink, else 1 and the class */
    box *boxes;    /* (count, BOXES) */
} pictures;

/**
 * `count` pictures, each of 1 to BOXES digits of 8×8 or 16×16 pixels that do not overlap. `vary`: as
 * digit_vary(). None after an error. Freed by pictures_free().
 */
pictures pictures_read(tn_app *app, const char *name, int64_t count, uint64_t seed, int vary);
void pictures_free(pictures *p);

/* ---- texts ---- */

enum { TEXTS = 64, BYTES = 1 << 16 };

typedef struct text {
    unsigned char bytes[BYTES];
    size_t size, kept; /* kept: what is learnt from, all but the last tenth */
} text;

typedef struct texts {
    text text[TEXTS];
    size_t count, chars;     /* chars: different ones */
    unsigned char code[256]; /* of each character, 0 to below chars */
} texts;

/** All regular files that can be read and have at least `least` bytes, in the order of their names; links are
 * not followed. */
void texts_read(texts *t, const char *folder, size_t least);

/* ---- measures ---- */

/**
 * The output of a net with one, over a data set in its order: of each sample `size` numbers; NULL: failed.
 */
float *outputs_of(tn_app *app, tn_net *net, tn_data *data, size_t size);

/**
 * The mean squared error of "digits:test" through the `count` principal components of "digits:train" and
 * back: no linear code of as many numbers fits the latter better. NaN: failed.
 */
double components_error(tn_app *app, int64_t count);

/** Mean over the classes of common pixels / pixels of either; classes that occur nowhere do not count. */
double mean_iou(const float *found, const float *masks, size_t count, int classes);

/**
 * Mean over the classes that occur of the average precision, the area below the precision that is reached
 * at each recall or a higher one. A detection is right if it overlaps a box of its class that no better one
 * has taken, by an IoU of 0.5 or more.
 * @param found detections of MultiBoxDetection: (count, rows, 6) of class or -1, score, left, top, right,
 * bottom
 */
double mean_average_precision(const float *found, size_t rows, const pictures *p);

#endif
