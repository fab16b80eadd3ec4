/*
 * tenon viz --curves: the epochs of a run as SVG, as JSON, or drawn with characters: braille dots where the
 * locale has them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs/runs.h"
#include "train/train.h"
#include "view/viz.h"

#define ROWS 10
#define COLUMNS_MOST 72
#define LEFT_COLUMNS 10 /* for the numbers of the axis */
#define SERIES 2

typedef struct curve {
    const char *label;
    size_t offset; /* of the number in cli_epoch */
} curve;

static const struct {
    const char *title;
    curve lines[SERIES];
} panels[] = {
    {"loss", {{"training", offsetof(cli_epoch, loss)}, {"test", offsetof(cli_epoch, valid_loss)}}},
    {"accuracy",
     {{"training", offsetof(cli_epoch, accuracy)}, {"test", offsetof(cli_epoch, valid_accuracy)}}},
};

static double number_of(const cli_epoch *e, const curve *c)
{
    return *(const double *)(const void *)((const char *)e + c->offset);
}

/* ---- the run ---- */

/* Its folder and epochs; what is wrong has been said, or is the app's error. */
static int run_read(cli_run *run, tn_app *app, const char *what)
{
    char why[CLI_WHY_BYTES];

    if (!(run->folder = cli_record_folder(CLI_RUNS, what, why))) {
        cli_error("%s", why);
        return CLI_EXIT_USAGE;
    }
    if (!cli_run_epochs(run, app, INT64_MAX))
        return CLI_EXIT_FAILED;
    if (run->epoch_count)
        return 0;
    cli_error("%s: metrics.jsonl is not there, or holds no finished epoch", run->folder);
    return CLI_EXIT_FAILED;
}

/* ---- characters ---- */

typedef struct canvas {
    uint8_t dots[SERIES][ROWS][COLUMNS_MOST]; /* braille: bit per dot; else 1 */
    int columns, wide, high;                  /* cells across; dots across and down */
    bool utf8;
} canvas;

static void dot_set(canvas *c, int series, int x, int y)
{
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

    if (x < 0 || x >= c->wide || y < 0 || y >= c->high)
        return;
    if (c->utf8)
        c->dots[series][y / 4][x / 2] |= bits[y % 4][x % 2];
    else
        c->dots[series][y][x] = 1;
}

static void line_draw(canvas *c, int series, const double from[2], const double to[2])
{
    const int steps = (int)fmax(1, ceil(fmax(fabs(to[0] - from[0]), fabs(to[1] - from[1]))));

    for (int i = 0; i <= steps; i++)
        dot_set(c, series, (int)lround(from[0] + (to[0] - from[0]) * i / steps),
                (int)lround(from[1] + (to[1] - from[1]) * i / steps));
}

static void curve_draw(canvas *c, int series, const cli_run *run, const curve *line, const double range[2])
{
    const double first = (double)run->epochs[0].epoch;
    const double span = fmax(1, (double)run->epochs[run->epoch_count - 1].epoch - first);
    double last[2] = {NAN, NAN};

    for (size_t i = 0; i < run->epoch_count; i++) {
        const double v = number_of(&run->epochs[i], line);
        const double at[2] = {((double)run->epochs[i].epoch - first) / span * (c->wide - 1),
                              (range[1] - v) / (range[1] - range[0]) * (c->high - 1)};

        if (isfinite(v))
            line_draw(c, series, isfinite(last[0]) ? last : at, at);
        last[0] = isfinite(v) ? at[0] : NAN;
        last[1] = at[1];
    }
}

static void cell_print(const canvas *c, int row, int column, bool color)
{
    const uint8_t a = c->dots[0][row][column], b = c->dots[1][row][column], both = a | b;

    if (!c->utf8) {
        (void)putchar(a && b ? '*' : a ? 'o' : b ? 'x' : ' ');
        return;
    }
    if (color && both)
        (void)printf("\033[%dm", b ? 31 : 34);
    (void)printf("\xe2%c%c", 0xa0 + (both >> 6), 0x80 + (both & 0x3f)); /* U+2800 and the dots */
    if (color && both)
        (void)fputs("\033[0m", stdout);
}

static void range_find(const cli_run *run, size_t panel, double range[2])
{
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (size_t i = 0; i < run->epoch_count; i++)
        for (int k = 0; k < SERIES; k++) {
            const double v = number_of(&run->epochs[i], &panels[panel].lines[k]);

            range[0] = isfinite(v) ? fmin(range[0], v) : range[0];
            range[1] = isfinite(v) ? fmax(range[1], v) : range[1];
        }
    if (!(range[0] <= range[1]))
        range[0] = range[1] = 0;
    if (!(range[0] < range[1]))
        range[1] = range[0] + (range[0] > 0 || range[0] < 0 ? fabs(range[0]) : 1);
}

static void panel_print(const cli_run *run, size_t panel, cli_terminal t)
{
    const cli_epoch *last = &run->epochs[run->epoch_count - 1];
    canvas c = {.utf8 = t.utf8};
    double range[2];

    c.columns = t.columns - LEFT_COLUMNS - 1;
    c.columns = c.columns > COLUMNS_MOST ? COLUMNS_MOST : c.columns < 10 ? 10 : c.columns;
    c.wide = t.utf8 ? 2 * c.columns : c.columns;
    c.high = t.utf8 ? 4 * ROWS : ROWS;
    range_find(run, panel, range);
    for (int k = 0; k < SERIES; k++)
        curve_draw(&c, k, run, &panels[panel].lines[k], range);
    (void)printf("%s: %s%s %.4g, %s%s %.4g\n", panel && last->numbers ? "r2" : panels[panel].title,
                 panels[panel].lines[0].label, t.utf8 ? "" : " (o)", number_of(last, &panels[panel].lines[0]),
                 panels[panel].lines[1].label, t.utf8 ? "" : " (x)",
                 number_of(last, &panels[panel].lines[1]));
    for (int row = 0; row < ROWS; row++) {
        if (row == 0 || row == ROWS - 1)
            (void)printf("%*.4g ", LEFT_COLUMNS, range[row == 0]);
        else
            (void)printf("%*s ", LEFT_COLUMNS, "");
        for (int column = 0; column < c.columns; column++)
            cell_print(&c, row, column, t.color);
        (void)putchar('\n');
    }
    (void)printf("%*s epoch %lld to %lld\n", LEFT_COLUMNS, "", (long long)run->epochs[0].epoch,
                 (long long)last->epoch);
}

/* ---- the command ---- */

static void json_print(const cli_run *run)
{
    json_t *list = json_array();

    for (size_t i = 0; i < run->epoch_count; i++)
        (void)json_array_append_new(list, cli_epoch_json(&run->epochs[i]));
    cli_json_line(json_pack("{s:o, s:o}", "run", cli_json_text(run->folder), "epochs", list));
}

static bool svg_write(const cli_run *run, tn_app *app, const char *file)
{
    cli_picture p;

    if (!cli_picture_begin(&p, app))
        return false;
    cli_curves_write(p.out, run->epochs, run->epoch_count);
    return cli_picture_end(&p, app, file);
}

int cli_viz_curves(const cli_args *args, tn_app *app)
{
    const char *file = args->value[OPT_OUTPUT];
    const bool json = args->value[OPT_JSON] != NULL;
    /* a picture's text is of no use on a terminal */
    const bool term = args->value[OPT_TERM] != NULL || (!file && !json && cli_line_columns());
    cli_run run = {.folder = NULL};
    int code = run_read(&run, app, args->words[0]);

    if (!code && (file || (!term && !json)) && !svg_write(&run, app, file))
        code = CLI_EXIT_FAILED;
    for (size_t i = 0; !code && term && !json && i < sizeof panels / sizeof *panels; i++)
        panel_print(&run, i, cli_terminal_of(stdout));
    if (!code && json)
        json_print(&run);
    free(run.folder); /* not cli_run_fini(): the run may be another process's */
    free(run.epochs);
    json_decref(run.record);
    return code;
}
