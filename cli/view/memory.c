/*
 * tenon viz --memory: where the tensors of a program lie. The picture has instructions from left to right and
 * the arena's offsets from bottom to top; each rectangle is one block for as long as it is in use.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/viz.h"

#define LARGEST 12
#define WIDTH 900.0
#define HEIGHT 480.0
#define LEFT 70.0
#define TOP 40.0
#define NODE_COLUMNS 28
#define LINE 12.0     /* height of a label */
#define LETTER 6.6    /* and width of one of its letters, about */
#define LABEL_LEAST 6 /* letters that say anything */
#define MIB 1048576.0

typedef struct plan {
    tn_program_view *view;
    tn_view_program info;
    tn_view_entry *blocks; /* owners of memory in the arena, largest first */
    uint32_t count;
} plan;

static const char *const kinds[] = {"unused", "arena", "input", "output", "scratch", "saved", "gradient"};

static int by_size(const void *a, const void *b)
{
    const tn_view_entry *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->root < y->root ? -1 : x->root > y->root;
}

static bool in_arena(const tn_view_entry *e)
{
    return e->kind == TN_VIEW_ARENA || e->kind == TN_VIEW_SCRATCH || e->kind == TN_VIEW_SAVED;
}

static tn_view_entry entry_of(const plan *p, uint32_t index)
{
    tn_view_entry e = {.struct_size = TN_SIZE(tn_view_entry)};

    (void)tn_program_view_entry(p->view, index, &e); /* the index is good */
    return e;
}

static tn_view_step step_of(const plan *p, uint32_t index)
{
    tn_view_step s = {.struct_size = TN_SIZE(tn_view_step)};

    (void)tn_program_view_step(p->view, index, &s);
    return s;
}

static int plan_make(plan *p, const cli_model *m, uint32_t flags)
{
    tn_status st = tn_program_view_plan(tn_app_ctx(m->app), m->symbol, m->shapes, NULL, flags, &p->view);

    if (st == TN_E_UNSUPPORTED) {
        cli_error("%s; `tenon viz --breaks` lists all such nodes", tn_error_text());
        return CLI_EXIT_FAILED;
    }
    p->info.struct_size = TN_SIZE(tn_view_program);
    if (tn_app_check(m->app, st) || tn_app_check(m->app, tn_program_view_info(p->view, &p->info)))
        return CLI_EXIT_FAILED;
    if (!(p->blocks = calloc(p->info.entry_count + 1u, sizeof *p->blocks))) {
        (void)tn_app_fail(m->app, TN_E_NOMEM, "out of memory");
        return CLI_EXIT_MEMORY;
    }
    for (uint32_t i = 0; i < p->info.entry_count; i++) {
        const tn_view_entry e = entry_of(p, i);

        if (e.root == i && in_arena(&e) && e.bytes)
            p->blocks[p->count++] = e;
    }
    qsort(p->blocks, p->count, sizeof *p->blocks, by_size);
    return 0;
}

/* ---- text ---- */

static void last_text(const plan *p, const tn_view_entry *e, char out[16])
{
    if (e->first < p->info.forward_count && e->last >= p->info.forward_count)
        (void)snprintf(out, 16, "kept");
    else
        (void)snprintf(out, 16, "%u", e->last);
}

static void text_print(const plan *p)
{
    const char *times = cli_terminal_of(stdout).utf8 ? "\xc3\x97" : "x";

    (void)printf("arena %.3f MiB planned, %.3f MiB at least (%.3f), %u instructions, device %s\n",
                 (double)p->info.planned / MIB, (double)p->info.bound / MIB,
                 p->info.bound ? (double)p->info.planned / (double)p->info.bound : 1.0, p->info.step_count,
                 p->info.device);
    (void)printf("\n  #  ");
    cli_pad(stdout, "largest block of", NODE_COLUMNS);
    (void)printf(" %-8s %-18s %10s %12s %6s %6s\n", "kind", "shape", "KiB", "offset", "first", "last");
    for (uint32_t i = 0; i < p->count && i < LARGEST; i++) {
        const tn_view_entry *e = &p->blocks[i];
        const tn_known k = {.shape = e->shape, .ndim = e->ndim, .dtype = e->dtype};
        char name[CLI_SHORT_TEXT], shape[CLI_SHAPE_TEXT], last[16];

        last_text(p, e, last);
        (void)printf("%3u  ", i + 1);
        cli_pad(stdout, cli_shorten(e->node, NODE_COLUMNS, name), NODE_COLUMNS);
        (void)printf(" %-8s ", kinds[e->kind]);
        cli_pad(stdout, cli_shape_text(&k, times, shape), 18);
        (void)printf(" %10.1f %12llu %6u %6s\n", (double)e->bytes / 1024, (unsigned long long)e->offset,
                     e->first, last);
    }
    if (p->count > LARGEST)
        (void)printf("     and %u smaller ones\n", p->count - LARGEST);
}

/* ---- JSON ---- */

static json_t *steps_json(const plan *p)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < p->info.step_count; i++) {
        const tn_view_step s = step_of(p, i);

        (void)json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:s, s:I, s:I}", "node",
                                                    cli_json_text(s.node), "op", s.op, "plugin", s.plugin,
                                                    "kernel", s.kernel, "est_ns", (json_int_t)s.est_ns,
                                                    "scratch_bytes", (json_int_t)s.scratch_bytes));
    }
    return list;
}

static void json_print(const plan *p, const char *file)
{
    json_t *tensors = json_array();

    for (uint32_t i = 0; i < p->info.entry_count; i++) {
        const tn_view_entry e = entry_of(p, i);
        const tn_known k = {.shape = e.shape, .ndim = e.ndim, .dtype = e.dtype};

        (void)json_array_append_new(
            tensors,
            json_pack("{s:o, s:i, s:s, s:o, s:s, s:I, s:I, s:i, s:i, s:i}", "node", cli_json_text(e.node),
                      "output", (int)e.output, "kind", kinds[e.kind], "shape", cli_known_json(&k), "dtype",
                      tn_dtype_name(e.dtype), "bytes", (json_int_t)e.bytes, "offset", (json_int_t)e.offset,
                      "root", (int)e.root, "first", (int)e.first, "last", (int)e.last));
    }
    cli_json_line(json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "device", p->info.device, "planned",
                            (json_int_t)p->info.planned, "bound", (json_int_t)p->info.bound, "est_ns",
                            (json_int_t)p->info.est_ns, "file", file ? cli_json_text(file) : json_null(),
                            "tensors", tensors, "instructions", steps_json(p)));
}

/* ---- SVG ---- */

typedef struct picture {
    const plan *plan;
    double total;  /* bytes from bottom to top */
    size_t prefix; /* letters that all names begin with */
} picture;

/* Bytes of the unit in which the picture counts, and its name. */
static double unit_of(const plan *p, const char **name)
{
    const bool large = (double)p->info.planned >= MIB;

    *name = large ? "MiB" : "KiB";
    return large ? MIB : 1024;
}

/* The smallest of 1, 2, 5, 10, 20 ... that divides `range` into at most 8. */
static double tick_of(double range)
{
    const double ten = pow(10, floor(log10(range / 8)));
    static const double steps[] = {1, 2, 5, 10};
    size_t i = 0;

    while (i < 3 && range / (ten * steps[i]) > 8)
        i++;
    return ten * steps[i];
}

static void axes_write(FILE *out, const plan *p, double total)
{
    const double steps = p->info.step_count ? (double)p->info.step_count : 1,
                 across = fmax(tick_of(steps), 1);
    const char *name;
    const double unit = unit_of(p, &name), up = tick_of(total / unit);
    const double least = TOP + HEIGHT * (1 - (double)p->info.bound / total);

    for (int i = 0; i * up <= total / unit; i++) {
        const double y = TOP + HEIGHT * (1 - i * up * unit / total);

        (void)fprintf(
            out, "<path d=\"M%g %.1fH%g\" class=\"g\"/><text x=\"%g\" y=\"%.1f\" class=\"y\">%g</text>\n",
            LEFT, y, LEFT + WIDTH, LEFT - 6, y + 4, i * up);
    }
    (void)fprintf(
        out, "<path d=\"M%g %.1fH%g\" class=\"b\"/><text x=\"%g\" y=\"%.1f\">least possible %.1f %s</text>\n",
        LEFT, least, LEFT + WIDTH, LEFT + WIDTH + 6, least + 4, (double)p->info.bound / unit, name);
    for (int i = 0; i * across < steps; i++)
        (void)fprintf(out, "<text x=\"%.1f\" y=\"%g\" class=\"x\">%g</text>\n",
                      LEFT + WIDTH * i * across / steps, TOP + HEIGHT + 18, i * across);
    (void)fprintf(out, "<text x=\"%g\" y=\"%g\">instructions</text>\n", LEFT + WIDTH + 6, TOP + HEIGHT + 18);
}

/* Letters that all blocks' nodes begin with, up to a '_': labels have more room without them. */
static size_t prefix_of(const plan *p)
{
    const char *first = p->count ? p->blocks[0].node : "";
    size_t length = strlen(first);

    for (uint32_t i = 1; i < p->count; i++) {
        size_t same = 0;

        while (same < length && p->blocks[i].node[same] == first[same])
            same++;
        length = same;
    }
    while (length && first[length - 1] != '_')
        length--;
    return length;
}

/* Node and size, in a block that has room for them; else the node alone, shortened: a number that is cut says
 * another one. `middle`: of its height. */
static void label_write(FILE *out, const picture *c, const tn_view_entry *e, double x, double width,
                        double middle)
{
    char node[CLI_SHORT_TEXT], short_node[CLI_SHORT_TEXT], size_text[CLI_SHORT_TEXT];
    const double columns = (width - 6) / LETTER;
    const char *unit;
    const double size = (double)e->bytes / unit_of(c->plan, &unit);
    const int digits = size < 0.1 ? 3 : size < 1 ? 2 : size < 10;
    size_t room;

    if (HEIGHT * (double)e->bytes / c->total < LINE || columns < LABEL_LEAST)
        return;
    room = (size_t)columns;
    (void)snprintf(node, sizeof node, "%.180s", e->node + c->prefix);
    (void)snprintf(size_text, sizeof size_text, " %.*f %s", digits, size, unit);
    if (room >= LABEL_LEAST + strlen(size_text))
        room -= strlen(size_text);
    else
        *size_text = '\0';
    (void)fprintf(out, "<text x=\"%.2f\" y=\"%.2f\">", x + 3, middle + LINE / 3);
    cli_xml_text(out, cli_shorten(node, room, short_node));
    (void)fprintf(out, "%s</text>\n", size_text);
}

static void block_write(FILE *out, const picture *c, const tn_view_entry *e)
{
    const plan *p = c->plan;
    const double total = c->total;
    const double steps = p->info.step_count ? (double)p->info.step_count : 1;
    const double last = e->last >= p->info.step_count ? steps : (double)e->last + 1;
    const double height = HEIGHT * (double)e->bytes / total;
    uint32_t hue = 2166136261u;
    char until[16];

    for (const char *n = e->node; *n; n++) /* FNV-1a: a node has the same colour in every picture */
        hue = (hue ^ (unsigned char)*n) * 16777619u;
    last_text(p, e, until);
    (void)fprintf(
        out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%u,55%%,%d%%)\"><title>",
        LEFT + WIDTH * e->first / steps, TOP + HEIGHT * (1 - ((double)e->offset + (double)e->bytes) / total),
        WIDTH * (last - e->first) / steps, height, hue % 360, e->kind == TN_VIEW_ARENA ? 72 : 86);
    cli_xml_text(out, e->node);
    (void)fprintf(out, ": %s, %llu bytes at %llu, instructions %u to %s</title></rect>\n", kinds[e->kind],
                  (unsigned long long)e->bytes, (unsigned long long)e->offset, e->first, until);
    label_write(out, c, e, LEFT + WIDTH * e->first / steps, WIDTH * (last - e->first) / steps,
                TOP + HEIGHT * (1 - ((double)e->offset + (double)e->bytes / 2) / total));
}

static void svg_write(FILE *out, const plan *p, const char *name)
{
    const picture c = {p, p->info.planned ? (double)p->info.planned : 1, prefix_of(p)};
    const char *unit;
    const double bytes = unit_of(p, &unit);

    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\">\n<style>text{font:12px "
        "sans-serif;fill:#333}.y{text-anchor:end}.x{text-anchor:middle}.g{stroke:#e3e3e3}.b{stroke:#d62728;"
        "stroke-dasharray:6 "
        "4}rect{stroke:#555;stroke-width:.5}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\" "
        "stroke=\"none\"/>\n<text x=\"%g\" y=\"22\">",
        LEFT + WIDTH + 200, TOP + HEIGHT + 40, LEFT);
    cli_xml_text(out, name);
    (void)fprintf(out, ": arena of %.1f %s, by offset in %s and instruction</text>\n",
                  (double)p->info.planned / bytes, unit, unit);
    axes_write(out, p, c.total);
    for (uint32_t i = 0; i < p->count; i++)
        block_write(out, &c, &p->blocks[i]);
    (void)fputs("</svg>\n", out);
}

/* ---- the command ---- */

static bool picture_save(const plan *p, const cli_model *m, const char *file)
{
    cli_picture c;

    if (!cli_picture_begin(&c, m->app))
        return false;
    svg_write(c.out, p, m->name);
    return cli_picture_end(&c, m->app, file);
}

int cli_viz_memory(const cli_args *args, const cli_model *m)
{
    const char *file = args->value[OPT_OUTPUT];
    plan p = {.view = NULL};
    int code = plan_make(&p, m, args->value[OPT_TRAIN] ? TN_VIEW_TRAIN | TN_VIEW_RECORDED : 0);

    if (!code && file && !picture_save(&p, m, file))
        code = CLI_EXIT_FAILED;
    if (!code && args->value[OPT_JSON])
        json_print(&p, file);
    else if (!code)
        text_print(&p);
    free(p.blocks);
    tn_program_view_destroy(p.view);
    return code;
}

int cli_viz_breaks(const cli_args *args, const cli_model *m)
{
    json_t *list = args->value[OPT_JSON] ? json_array() : NULL;
    tn_breaks *b = NULL;

    if (tn_app_check(m->app, tn_graph_breaks(tn_app_ctx(m->app), m->symbol, m->shapes, NULL, &b))) {
        json_decref(list);
        return CLI_EXIT_FAILED;
    }
    for (uint32_t i = 0; i < tn_breaks_count(b); i++) {
        tn_break one = {.struct_size = TN_SIZE(tn_break)};

        (void)tn_breaks_at(b, i, &one); /* the index is good */
        if (list)
            (void)json_array_append_new(
                list, json_pack("{s:o, s:s, s:o, s:b}", "node", cli_json_text(one.node), "operator", one.op,
                                "why", cli_json_text(one.why), "backward", (int)one.backward));
        else
            cli_say(stdout, "%s (%s)%s: %s\n", one.node, one.op, one.backward ? ", of the gradient" : "",
                    one.why);
    }
    if (list)
        cli_json_line(
            json_pack("{s:o, s:b}", "breaks", list, "shapes_known", (int)tn_inferred_complete(m->shapes)));
    else if (!tn_breaks_count(b))
        (void)printf("no node breaks the graph%s\n",
                     tn_inferred_complete(m->shapes) ? "" : ", as far as can be told without all shapes");
    tn_breaks_destroy(b);
    return 0;
}
