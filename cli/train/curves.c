/*
 * curves.svg: two panels over the epochs, training and test: loss, and accuracy or R². Plain SVG 1.1 with
 * fonts by family: any browser shows it.
 */
#include <math.h>

#include "train/train.h"

#define PANEL_WIDTH 420.0
#define PANEL_HEIGHT 260.0
#define LEFT 56.0 /* of a panel: room for numbers */
#define TOP 34.0
#define RIGHT 14.0
#define BOTTOM 40.0
#define TICKS_MAX 16

typedef struct series {
    const char *label, *color;
    size_t offset; /* of the number in cli_epoch */
} series;

typedef struct panel {
    const char *title, *of_numbers; /* NULL: the same */
    series lines[2];
    double low, high; /* of the axis; high < low: from the numbers */
} panel;

static const panel panels[] = {
    {"loss",
     NULL,
     {{"training", "#1f77b4", offsetof(cli_epoch, loss)},
      {"test", "#d62728", offsetof(cli_epoch, valid_loss)}},
     1,
     0},
    {"accuracy",
     "R²",
     {{"training", "#1f77b4", offsetof(cli_epoch, accuracy)},
      {"test", "#d62728", offsetof(cli_epoch, valid_accuracy)}},
     1,
     0},
};

typedef struct axis {
    double low, high, step; /* of the numbers */
    double from, to;        /* in the picture */
} axis;

static double number_of(const cli_epoch *e, const series *s)
{
    return *(const double *)(const void *)((const char *)e + s->offset);
}

/* Steps of 1, 2 or 5 times a power of ten, at most `count` of them; the axis ends on steps. */
static void axis_round(axis *a, double count)
{
    double raw = (a->high - a->low) / count, power, part;

    if (!(raw > 0))
        raw = fabs(a->high) > 0 ? fabs(a->high) / count : 1.0;
    power = pow(10.0, floor(log10(raw)));
    part = raw / power;
    a->step = power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
    a->low = floor(a->low / a->step + 1e-9) * a->step;
    a->high = ceil(a->high / a->step - 1e-9) * a->step;
    if (!(a->high > a->low))
        a->high = a->low + a->step;
}

static double place(const axis *a, double value)
{
    return a->from + (a->to - a->from) * (value - a->low) / (a->high - a->low);
}

static axis axis_of_values(const panel *p, const cli_epoch *epochs, size_t count)
{
    axis y = {.low = INFINITY, .high = -INFINITY, .from = PANEL_HEIGHT - BOTTOM, .to = TOP};

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 2; k++) {
            double v = number_of(&epochs[i], &p->lines[k]);

            if (isfinite(v)) {
                y.low = fmin(y.low, v);
                y.high = fmax(y.high, v);
            }
        }
    if (!isfinite(y.low)) {
        y.low = 0;
        y.high = 1;
    }
    axis_round(&y, 5);
    return y;
}

static void axes_write(FILE *out, const char *title, const axis *x, const axis *y)
{
    (void)fprintf(out, "<text x=\"%g\" y=\"18\" class=\"title\">%s</text>\n", LEFT, title);
    for (int i = 0; i < TICKS_MAX && y->low + i * y->step <= y->high + 1e-9 * y->step; i++) {
        double v = y->low + i * y->step, at = place(y, v);

        (void)fprintf(
            out,
            "<path d=\"M%g %.1fH%g\" class=\"grid\"/><text x=\"%g\" y=\"%.1f\" class=\"y\">%.4g</text>\n",
            x->from, at, x->to, x->from - 6, at + 4, fabs(v) < 1e-9 * y->step ? 0.0 : v);
    }
    for (int i = 0; i < TICKS_MAX && x->low + i * x->step <= x->high + 1e-9; i++) {
        double v = x->low + i * x->step;

        (void)fprintf(out, "<text x=\"%.1f\" y=\"%g\" class=\"x\">%.4g</text>\n", place(x, v), y->from + 16,
                      v);
    }
    (void)fprintf(
        out, "<path d=\"M%g %gV%gH%g\" class=\"axis\"/><text x=\"%g\" y=\"%g\" class=\"x\">epoch</text>\n",
        x->from, y->to, y->from, x->to, (x->from + x->to) / 2, y->from + 32);
}

static void line_write(FILE *out, const series *s, const cli_epoch *epochs, size_t count, const axis xy[2])
{
    const char *command = "M";
    size_t points = 0;
    double last = NAN;

    for (size_t i = 0; i < count; i++)
        points += isfinite(number_of(&epochs[i], s)) ? 1 : 0;
    if (!points)
        return;
    (void)fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" d=\"", s->color);
    for (size_t i = 0; i < count; i++) {
        double v = number_of(&epochs[i], s);

        if (!isfinite(v)) {
            command = "M";
            continue;
        }
        (void)fprintf(out, "%s%.1f %.1f", command, place(&xy[0], (double)epochs[i].epoch), place(&xy[1], v));
        command = "L";
        last = v;
    }
    (void)fprintf(out, "\"/>\n<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                  place(&xy[0], (double)epochs[count - 1].epoch), place(&xy[1], last), s->color);
}

static void panel_write(FILE *out, const panel *p, const cli_epoch *epochs, size_t count)
{
    axis xy[2] = {{.low = 1,
                   .high = count ? (double)epochs[count - 1].epoch : 1,
                   .from = LEFT,
                   .to = PANEL_WIDTH - RIGHT},
                  axis_of_values(p, epochs, count)};

    if (count && epochs[0].epoch > 1)
        xy[0].low = (double)epochs[0].epoch;
    xy[0].step = fmax(1, ceil((xy[0].high - xy[0].low) / 8));
    if (!(xy[0].high > xy[0].low))
        xy[0].high = xy[0].low + 1;
    axes_write(out, count && epochs[0].numbers && p->of_numbers ? p->of_numbers : p->title, &xy[0], &xy[1]);
    for (size_t k = 0; k < 2; k++) {
        double at = PANEL_WIDTH - RIGHT - 150 + 80 * (double)k;

        line_write(out, &p->lines[k], epochs, count, xy);
        (void)fprintf(
            out,
            "<path d=\"M%g 14h16\" stroke=\"%s\" stroke-width=\"2\"/><text x=\"%g\" y=\"18\">%s</text>\n", at,
            p->lines[k].color, at + 21, p->lines[k].label);
    }
}

void cli_curves_write(FILE *out, const cli_epoch *epochs, size_t count)
{
    size_t panel_count = sizeof panels / sizeof *panels;

    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\">\n"
        "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold;font-size:14px}"
        ".y{text-anchor:end}.x{text-anchor:middle}.grid{stroke:#e3e3e3}"
        ".axis{stroke:#555;fill:none}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        PANEL_WIDTH * (double)panel_count, PANEL_HEIGHT, PANEL_WIDTH * (double)panel_count, PANEL_HEIGHT);
    for (size_t i = 0; i < panel_count; i++) {
        (void)fprintf(out, "<g transform=\"translate(%g 0)\">\n", PANEL_WIDTH * (double)i);
        panel_write(out, &panels[i], epochs, count);
        (void)fputs("</g>\n", out);
    }
    (void)fputs("</svg>\n", out);
}
