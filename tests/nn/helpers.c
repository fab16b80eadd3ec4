/*
 * What the examples share, examples/helpers.h: measures against figures worked out by hand, and by NumPy's
 * singular values where the comment says so; pictures against what they promise.
 */
#include "../../examples/helpers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int bad;

static void expect(double have, double want, double within, const char *what)
{
    if (fabs(have - want) <= within)
        return;
    (void)printf("%s: %.9g, expected %.9g\n", what, have, want);
    bad = 1;
}

static void arguments(void)
{
    char *words[] = {"program", "", "12"};

    expect((double)argument(3, words, 1, 7), 7, 0, "an empty argument");
    expect((double)argument(3, words, 2, 7), 12, 0, "an argument");
    expect((double)argument(3, words, 3, 7), 7, 0, "no argument");
}

static void measures(void)
{
    const float found[4] = {0, 1, 1, 2}, masks[4] = {0, 1, 2, 2};
    box boxes[3 * BOXES];
    pictures p = {.count = 3, .boxes = boxes};
    /* Class 0 is found, found again, and found in the second picture: (1 + 2/3) / 2. Class 1 overlaps by 0.4,
     * class 2 by 0.5 exactly. Nothing counts a class that is nowhere. */
    const float rows[3 * 3 * 6] = {0, 0.9F, 0, 0, 0.5F, 0.5F, 0,  0.8F, 0, 0, 0.5F, 0.5F, -1, 0, 0, 0, 0, 0,
                                   0, 0.7F, 0, 0, 0.5F, 0.5F, 1,  0.9F, 0, 0, 0.4F, 1,    -1, 0, 0, 0, 0, 0,
                                   2, 0.1F, 0, 0, 0.5F, 1,    -1, 0,    0, 0, 0,    0,    -1, 0, 0, 0, 0, 0};

    expect(mean_iou(found, masks, 4, 4), (1 + 0.5 + 0.5) / 3, 1e-12, "mean_iou");
    expect(mean_iou(found, masks, 0, 4), 0, 0, "mean_iou of nothing");
    for (int i = 0; i < 3 * BOXES; i++)
        boxes[i] = (box){-1, -1, -1, -1, -1};
    boxes[0] = boxes[BOXES] = (box){0, 0, 0, 0.5F, 0.5F};
    boxes[BOXES + 1] = (box){1, 0, 0, 1, 1};
    boxes[2 * BOXES] = (box){2, 0, 0, 1, 1};
    expect(mean_average_precision(rows, 3, &p), ((1 + 2.0 / 3) / 2 + 0 + 1) / 3, 1e-12, "average precision");
    p.count = 0;
    expect(mean_average_precision(rows, 3, &p), 0, 0, "average precision of nothing");
}

/* Each pixel of ink lies in one box, which is of its class, and each box is no wider than its ink. */
static void picture_check(const pictures *p, int64_t i)
{
    float around[BOXES][4];
    int boxes = 0;

    for (int k = 0; k < BOXES; k++)
        memcpy(around[k], (float[]){1, 1, 0, 0}, sizeof around[k]);
    for (int at = 0; at < SIDE * SIDE; at++) {
        const float y = (float)(at / SIDE) / SIDE, x = (float)(at % SIDE) / SIDE, pixel = 1.0F / SIDE;
        const float mask = p->masks[i * SIDE * SIDE + at];
        int in = 0;

        for (int k = 0; mask > 0 && k < BOXES; k++) {
            const box *b = &p->boxes[i * BOXES + k];

            if (b->kind != mask - 1 || x < b->left || y < b->top || x >= b->right || y >= b->bottom)
                continue;
            in++;
            around[k][0] = fminf(around[k][0], x);
            around[k][1] = fminf(around[k][1], y);
            around[k][2] = fmaxf(around[k][2], x + pixel);
            around[k][3] = fmaxf(around[k][3], y + pixel);
        }
        expect(in, mask > 0, 0, "boxes around a pixel of ink");
        expect(p->pixels[i * SIDE * SIDE + at] >= 0.25F, mask > 0, 0, "ink");
    }
    for (int k = 0; k < BOXES; k++) {
        const box *b = &p->boxes[i * BOXES + k];

        if (b->kind >= 0)
            expect(memcmp(around[k], &b->left, sizeof around[k]), 0, 0, "the box around the ink");
        boxes += b->kind >= 0;
    }
    expect(boxes >= 1, 1, 0, "boxes of a picture");
}

static void compositions(tn_app *app)
{
    pictures p = pictures_read(app, "digits:test", 50, 1, 1),
             same = pictures_read(app, "digits:test", 50, 1, 1);
    pictures other = pictures_read(app, "digits:test", 50, 2, 1);
    const size_t size = 50 * SIDE * SIDE * sizeof *p.pixels;

    expect((double)p.count, 50, 0, "pictures");
    expect(memcmp(p.pixels, same.pixels, size) != 0, 0, 0, "another picture of the same seed");
    expect(memcmp(p.pixels, other.pixels, size) != 0, 1, 0, "another picture of another seed");
    for (int64_t i = 0; i < p.count; i++)
        picture_check(&p, i);
    pictures_free(&p);
    pictures_free(&same);
    pictures_free(&other);
}

int main(void)
{
    tn_app *app = tn_app_open(.name = "helpers", .errors = stderr);
    pictures none;

    arguments();
    measures();
    compositions(app);
    expect(components_error(app, 8), 0.024542172508266836, 2e-7, "components"); /* numpy.linalg.svd, in f64 */
    if (tn_app_close(app))
        return 1;
    app = tn_app_open(.name = "helpers");
    none = pictures_read(app, "no such digits", 5, 1, 0);
    expect((double)none.count, 0, 0, "pictures of data that is not there");
    pictures_free(&none);
    expect(outputs_of(app, NULL, NULL, 4) == NULL, 1, 0, "outputs of nothing");
    expect(tn_app_close(app) != 0, 1, 0, "an error that is kept");
    return bad;
}
