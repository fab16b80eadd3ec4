/*
 * Progress on stderr: a bar that is redrawn on a terminal, else lines for logs, or JSON lines, or nothing.
 *
 * A bar is one line without a newline; it is overwritten with blanks before anything else is printed, so that
 * no escape sequence is needed but colours.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "train/train.h"

#define BAR_EVERY_S 0.1
#define LINE_EVERY_S 10.0
#define BAR_CELLS 22
#define KEY_COLUMNS 2 /* a terminal shows ^C behind the bar */
#define FIELDS_MAX 10

static cli_view *shown; /* whose bar an error message has to take away first */

static void shown_clear(void)
{
    cli_view_clear(shown);
}

bool cli_view_init(cli_view *view, const char *mode, bool quiet)
{
    static const struct {
        const char *name;
        cli_view_mode mode;
    } modes[] = {
        {"bar", CLI_VIEW_BAR}, {"plain", CLI_VIEW_PLAIN}, {"json", CLI_VIEW_JSON}, {"none", CLI_VIEW_NONE}};

    memset(view, 0, sizeof *view);
    view->terminal = cli_terminal_of(stderr);
    view->mode = quiet ? CLI_VIEW_NONE : view->terminal.terminal ? CLI_VIEW_BAR : CLI_VIEW_PLAIN;
    view->id = "";
    if (!mode)
        return true;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(mode, modes[i].name)) {
            view->mode = modes[i].mode;
            return true;
        }
    cli_error("--progress %s: bar, plain, json or none is needed", mode);
    return false;
}

/* ---- pieces ---- */

/* 1437 becomes "1,437". */
static const char *grouped(int64_t n, char text[32])
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)n), used = 0;

    for (size_t i = 0; i < length && used + 2 < 32; i++) {
        text[used++] = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            text[used++] = ',';
    }
    text[used] = '\0';
    return text;
}

static double rate_of(const tn_train_info *info)
{
    return info->seconds > 0 ? (double)info->samples / info->seconds : 0;
}

static double eta_of(const tn_train_info *info)
{
    double rate = rate_of(info);

    return rate > 0 ? (double)(info->steps - info->step) * (double)info->batch_size / rate : 0;
}

/* ---- the bar ---- */

void cli_view_clear(cli_view *view)
{
    int width;

    flockfile(stderr);
    if (view && view->drawn) {
        width = view->drawn + KEY_COLUMNS < view->terminal.columns ? view->drawn + KEY_COLUMNS : view->drawn;
        (void)fprintf(stderr, "\r%*s\r", width, "");
        view->drawn = 0;
    }
    funlockfile(stderr);
}

static void bar_cells(const cli_view *view, double part, char *text, size_t bytes)
{
    const char *full = view->terminal.utf8 ? "━" : "#", *rest = view->terminal.utf8 ? "─" : ".";
    int done = (int)(part * BAR_CELLS + 0.5);
    size_t used = 0;

    if (view->terminal.color)
        used += (size_t)snprintf(text, bytes, "\033[36m");
    for (int i = 0; i < BAR_CELLS && used + 8 < bytes; i++) {
        if (i == done && view->terminal.color)
            used += (size_t)snprintf(text + used, bytes - used, "\033[0m");
        used += (size_t)snprintf(text + used, bytes - used, "%s", i < done ? full : rest);
    }
    if (view->terminal.color)
        (void)snprintf(text + used, bytes - used, "\033[0m");
}

/* What accuracies are called; those of a regression are its r2. */
static const char *score_of(const tn_train_info *info)
{
    return info->metric_count ? info->metric_names[0] : "acc";
}

/* What stands behind the bar, most important first: what does not fit is left out. */
static size_t bar_fields(const tn_train_info *info, char fields[FIELDS_MAX][48])
{
    double eta = eta_of(info), rate = rate_of(info);
    size_t n = 0;

    (void)snprintf(fields[n++], 48, "%lld/%lld", (long long)info->batch, (long long)info->batches);
    if (isfinite(info->loss))
        (void)snprintf(fields[n++], 48, "loss %.4f", info->loss);
    if (isfinite(info->accuracy))
        (void)snprintf(fields[n++], 48, "%s %.3f", score_of(info), info->accuracy);
    (void)snprintf(fields[n++], 48, "ETA %lld:%02lld", (long long)eta / 60, (long long)eta % 60);
    (void)snprintf(fields[n++], 48, rate < 10000 ? "%.0f/s" : "%.1fk/s", rate < 10000 ? rate : rate / 1000);
    (void)snprintf(fields[n++], 48, "lr %.3g", info->lr);
    if (info->seconds > 0)
        (void)snprintf(fields[n++], 48, "data %.0f%%", 100 * info->data_seconds / info->seconds);
    (void)snprintf(fields[n++], 48, "%lld MiB", (long long)cli_machine_resident_mib());
    return n;
}

static void bar_draw(cli_view *view, const tn_train_info *info)
{
    const char *dot = view->terminal.utf8 ? " · " : " | ";
    int room, columns;
    char head[64], cells[256] = "", fields[FIELDS_MAX][48], line[1024];
    size_t used, count = bar_fields(info, fields);

    view->terminal.columns = cli_terminal_of(stderr).columns; /* a window changes its size */
    room = view->terminal.columns - 1;
    view->drawn = view->drawn < room ? view->drawn : room;
    (void)snprintf(head, sizeof head, "epoch %lld/%lld", (long long)info->epoch, (long long)info->epochs);
    columns = (int)cli_columns(head);
    if (columns > room)
        return;
    used = (size_t)snprintf(line, sizeof line, "%s", head);
    if (columns + 1 + BAR_CELLS + 12 <= room) {
        bar_cells(view, info->batches ? (double)info->batch / (double)info->batches : 0, cells, sizeof cells);
        used += (size_t)snprintf(line + used, sizeof line - used, " %s", cells);
        columns += 1 + BAR_CELLS;
    }
    for (size_t i = 0; i < count; i++) {
        const char *between = i ? dot : " ";
        int more = (int)cli_columns(between) + (int)cli_columns(fields[i]);

        if (columns + more > room || used + 64 > sizeof line)
            break;
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", between, fields[i]);
        columns += more;
    }
    (void)fprintf(stderr, "\r%s%*s", line, view->drawn > columns ? view->drawn - columns : 0, "");
    view->drawn = view->drawn > columns ? view->drawn : columns;
    (void)fflush(stderr);
}

/* The last epochs' losses as blocks, highest to lowest. */
static void small_curve(const cli_view *view, char *text, size_t bytes)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇"};
    double low = INFINITY, high = -INFINITY;
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < view->loss_count; i++) {
        low = fmin(low, view->loss[i]);
        high = fmax(high, view->loss[i]);
    }
    for (size_t i = 0; view->terminal.utf8 && i < view->loss_count && used + 4 < bytes; i++) {
        double part = high > low ? (view->loss[i] - low) / (high - low) : 0;

        used += (size_t)snprintf(text + used, bytes - used, "%s", blocks[(int)(part * 6 + 0.5)]);
    }
}

/* ---- an epoch's line ---- */

typedef struct pieces {
    char text[512];
    size_t used;
} pieces;

static void CLI_PRINTF(2, 3) piece_add(pieces *p, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(p->text + p->used, sizeof p->text - p->used, format, args);
    va_end(args);
    if (length > 0 && p->used + (size_t)length < sizeof p->text)
        p->used += (size_t)length;
}

/* Six columns, whatever the loss is. */
static const char *loss_text(double loss, char text[32])
{
    const double size = fabs(loss);
    const int digits = size < 10 ? 4 : size < 100 ? 3 : size < 1000 ? 2 : size < 10000 ? 1 : 0;

    (void)snprintf(text, 32, size < 1e6 ? "%6.*f" : "%6.*e", digits, loss);
    return text;
}

static const char *time_text(double seconds, char text[32])
{
    const long long s = (long long)seconds;

    if (seconds < 100)
        (void)snprintf(text, 32, "%.1f s", seconds);
    else if (s < 3600)
        (void)snprintf(text, 32, "%lld:%02lld min", s / 60, s % 60);
    else
        (void)snprintf(text, 32, "%lld:%02lld:%02lld h", s / 3600, s / 60 % 60, s % 60);
    return text;
}

/* What a line has, in the order in which it is left out where the terminal is narrow: the last first. */
enum { LEVEL_VALID_ACCURACY = 1, LEVEL_LOSS, LEVEL_ACCURACY, LEVEL_VALID_LOSS, LEVEL_TIME, LEVEL_CURVE };

static void epoch_line(const cli_view *view, const tn_train_info *info, int level, pieces *p)
{
    const char *bar = view->terminal.utf8 ? "│" : "|";
    const bool valid = isfinite(info->valid_loss);
    char text[64];

    p->used = 0;
    piece_add(p, "%*lld/%lld", snprintf(NULL, 0, "%lld", (long long)info->epochs), (long long)info->epoch,
              (long long)info->epochs);
    if (level >= LEVEL_LOSS)
        piece_add(p, "  loss %s", loss_text(info->loss, text));
    if (level >= LEVEL_ACCURACY && isfinite(info->accuracy))
        piece_add(p, "  %s %.4f", score_of(info), info->accuracy);
    if (valid && level >= LEVEL_VALID_ACCURACY)
        piece_add(p, " %s val", bar);
    if (valid && level >= LEVEL_VALID_LOSS)
        piece_add(p, " loss %s ", loss_text(info->valid_loss, text));
    if (valid && level >= LEVEL_VALID_ACCURACY && isfinite(info->valid_accuracy))
        piece_add(p, " %s %.4f %s", score_of(info), info->valid_accuracy,
                  info->valid_accuracy >= info->best_accuracy ? "*" : " ");
    if (level >= LEVEL_TIME)
        piece_add(p, " %s %8s", bar, time_text(info->epoch_seconds, text));
    small_curve(view, text, sizeof text);
    if (level >= LEVEL_CURVE && *text)
        piece_add(p, " %s loss %s", bar, text);
}

static void bar_epoch(cli_view *view, const tn_train_info *info)
{
    size_t kept = sizeof view->loss / sizeof *view->loss;
    pieces p;

    if (isfinite(info->loss)) {
        if (view->loss_count == kept)
            memmove(view->loss, view->loss + 1, (--view->loss_count) * sizeof *view->loss);
        view->loss[view->loss_count++] = info->loss;
    }
    view->terminal.columns = cli_terminal_of(stderr).columns;
    for (int level = LEVEL_CURVE; level >= 0; level--) {
        epoch_line(view, info, level, &p);
        if ((int)cli_columns(p.text) < view->terminal.columns)
            break;
    }
    while (p.used && p.text[p.used - 1] == ' ')
        p.text[--p.used] = '\0';
    cli_view_clear(view);
    (void)fprintf(stderr, "%s\n", p.text);
}

/* ---- lines ---- */

static void plain_line(const cli_view *view, const tn_train_info *info, bool whole)
{
    char now[32], line[512];
    size_t used;

    cli_time_text(now);
    used = (size_t)snprintf(line, sizeof line,
                            "%s train run=%s epoch=%lld/%lld step=%lld/%lld loss=%.4f %s=%.4f", now, view->id,
                            (long long)info->epoch, (long long)info->epochs, (long long)info->step,
                            (long long)info->steps, info->loss, score_of(info), info->accuracy);
    if (whole && isfinite(info->valid_accuracy))
        used += (size_t)snprintf(line + used, sizeof line - used, " valid_loss=%.4f valid_%s=%.4f",
                                 info->valid_loss, score_of(info), info->valid_accuracy);
    (void)snprintf(line + used, sizeof line - used,
                   " lr=%.4g rate=%.0f data_wait=%.2f mem_mib=%lld eta_s=%.0f", info->lr, rate_of(info),
                   info->seconds > 0 ? info->data_seconds / info->seconds : 0,
                   (long long)cli_machine_resident_mib(), eta_of(info));
    (void)fprintf(stderr, "%s\n", line);
}

static void json_line(const tn_train_info *info, const char *kind)
{
    json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "progress", kind, "epoch",
                          (json_int_t)info->epoch, "epochs", (json_int_t)info->epochs, "step",
                          (json_int_t)info->step, "steps", (json_int_t)info->steps, "loss",
                          cli_json_number(info->loss), "accuracy", cli_json_number(info->accuracy), "rate",
                          cli_json_number(rate_of(info)), "eta_s", cli_json_number(eta_of(info)));
    char *text = o ? json_dumps(o, CLI_JSON_FLAGS | JSON_COMPACT) : NULL;

    if (text)
        (void)fprintf(stderr, "%s\n", text);
    free(text);
    json_decref(o);
}

/* ---- public functions ---- */

/* Facts with a dot between, or the comma that one begins with, in further lines where the terminal is too
 * narrow for one. */
static void facts_say(const cli_view *view, size_t count, const char *const *facts)
{
    const int room = view->terminal.terminal ? view->terminal.columns - 1 : 10000;
    const char *dot = view->terminal.utf8 ? " · " : " | ";
    int column = 0;

    for (size_t i = 0; i < count; i++) {
        const bool comma = *facts[i] == ',';
        const int more = (int)cli_columns(facts[i]) + (comma ? 0 : 3);

        if (i && column + more > room) {
            (void)fputs("\n  ", stderr);
            column = -1;
        } else if (i && !comma) {
            (void)fputs(dot, stderr);
        }
        cli_say(stderr, "%s", facts[i] + (comma && column < 0 ? 2 : 0));
        column += more;
    }
    (void)fputc('\n', stderr);
}

/* "run %s" and the like, for facts_say(). */
static const char *CLI_PRINTF(2, 3) fact(char text[160], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, 160, format, args);
    va_end(args);
    return text;
}

void cli_view_begin(cli_view *view, const cli_run *run, const tn_train_info *info)
{
    char a[32], b[32], text[4][160];

    view->id = run->id;
    view->last = cli_now() - BAR_EVERY_S; /* a bar stands there from the first step on */
    shown = view;
    cli_error_set_before(shown_clear);
    if (view->mode == CLI_VIEW_JSON || view->mode == CLI_VIEW_NONE)
        return;
    facts_say(view, 5,
              (const char *[]){fact(text[0], "run %s", run->id), info->model,
                               fact(text[1], "%s parameters", grouped(info->param_elements, a)), info->device,
                               fact(text[2], "seed %llu", (unsigned long long)info->seed)});
    facts_say(view, 3,
              (const char *[]){fact(text[0], "data %s images to train on, %s to test on",
                                    grouped(info->train_count, a), grouped(info->valid_count, b)),
                               fact(text[1], ", batches of %s", grouped(info->batch_size, a)),
                               fact(text[2], "log %s", run->folder)});
    if (info->resumed_step)
        (void)fprintf(stderr, "resumed after step %s of %s\n", grouped(info->resumed_step, a),
                      grouped(info->steps, b));
}

void cli_view_end(cli_view *view, const tn_train_info *info)
{
    const int64_t steps = info->step - info->resumed_step,
                  epochs = (steps + info->batches - 1) / info->batches;
    const bool accuracy = info->best_value >= info->best_accuracy; /* else early_stop watches the loss */
    char time[32], text[3][160];
    const char *facts[3];
    size_t count = 1;

    cli_view_clear(view);
    if (view->mode == CLI_VIEW_JSON || view->mode == CLI_VIEW_NONE || !steps)
        return;
    facts[0] = fact(text[0], "%lld epoch%s in %s", (long long)epochs, epochs == 1 ? "" : "s",
                    time_text(info->seconds, time));
    if (info->best_epoch) {
        facts[count++] = fact(text[1], "best epoch %lld: val %s %.4f", (long long)info->best_epoch,
                              accuracy ? score_of(info) : "loss", info->best_value);
        if (info->best)
            facts[count++] = info->best;
    }
    facts_say(view, count, facts);
}

bool cli_view_due(const cli_view *view)
{
    double every = view->mode == CLI_VIEW_BAR ? BAR_EVERY_S : LINE_EVERY_S;

    return view->mode != CLI_VIEW_NONE && cli_now() - view->last >= every;
}

void cli_view_step(cli_view *view, const tn_train_info *info)
{
    view->last = cli_now();
    flockfile(stderr);
    if (view->mode == CLI_VIEW_BAR)
        bar_draw(view, info);
    else if (view->mode == CLI_VIEW_PLAIN)
        plain_line(view, info, false);
    else if (view->mode == CLI_VIEW_JSON)
        json_line(info, "step");
    funlockfile(stderr);
}

void cli_view_epoch(cli_view *view, const tn_train_info *info)
{
    view->last = cli_now();
    flockfile(stderr);
    if (view->mode == CLI_VIEW_BAR)
        bar_epoch(view, info);
    else if (view->mode == CLI_VIEW_PLAIN)
        plain_line(view, info, true);
    else if (view->mode == CLI_VIEW_JSON)
        json_line(info, "epoch");
    funlockfile(stderr);
}

void cli_view_note(cli_view *view, const char *format, ...)
{
    va_list args;

    cli_view_clear(view);
    if (view->mode == CLI_VIEW_NONE)
        return;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}
