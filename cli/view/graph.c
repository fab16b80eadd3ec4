/*
 * tenon viz --graph: the net as DOT, SVG or JSON. Parameters and states are left out, since each belongs to
 * the operator that uses it; --all shows them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/viz.h"

#define LINES 3 /* of a label: name, operator, output shape */
#define LINE_COLUMNS 24
#define CHARACTER_WIDTH 6.6
#define LINE_HEIGHT 15.0
#define PADDING 10.0
#define MARGIN 20.0
#define LAYER_GAP 34.0
#define NODE_GAP 22.0
#define ASIDE_WIDTH 60.0
#define TITLE_MAX 4096

typedef char label[LINES][CLI_SHORT_TEXT];

typedef struct picture {
    tn_app *app;
    const cli_model *m;
    uint32_t *node;   /* shown ones: index in the view */
    uint32_t *number; /* per node of the view: among the shown ones, UINT32_MAX */
    cli_layout l;
    const char *times;
} picture;

/* Colours by what an operator's name contains; the first row that fits. */
static const struct {
    const char *part, *fill;
} colors[] = {
    {"Convolution", "#fbb4ae"}, {"FullyConnected", "#fbb4ae"}, {"dot", "#fbb4ae"},
    {"Pooling", "#b3cde3"},     {"Norm", "#decbe4"},           {"Activation", "#ffffcc"},
    {"LeakyReLU", "#ffffcc"},   {"relu", "#ffffcc"},           {"sigmoid", "#ffffcc"},
    {"tanh", "#ffffcc"},        {"oftmax", "#fed9a6"},         {"Output", "#fed9a6"},
    {"Dropout", "#e5d8bd"},     {"Embedding", "#fddaec"},      {"", "#f2f2f2"},
};

static const char *color_of(const tn_view_node *n)
{
    size_t i = 0;

    if (!n->op)
        return "#ccebc5";
    while (!strstr(n->op, colors[i].part))
        i++;
    return colors[i].fill;
}

/* ---- what is shown ---- */

static tn_view_node node_of(const picture *p, uint32_t index)
{
    tn_view_node n = {.struct_size = TN_SIZE(tn_view_node)};

    (void)tn_symbol_view_node(p->m->nodes, index, &n); /* the index is good */
    return n;
}

static bool nodes_choose(picture *p, bool all)
{
    const uint32_t count = tn_symbol_view_count(p->m->nodes);
    cli_roles roles = {NULL};
    bool ok = cli_roles_find(&roles, p->m->nodes, p->app);

    p->node = calloc(count + 1u, sizeof *p->node);
    p->number = calloc(count + 1u, sizeof *p->number);
    ok = ok && p->node && p->number;
    for (uint32_t i = 0; ok && i < count; i++) {
        p->number[i] = UINT32_MAX;
        if (all || node_of(p, i).op || !roles.parameter[i]) {
            p->number[i] = p->l.node_count;
            p->node[p->l.node_count++] = i;
        }
    }
    free(roles.parameter);
    return ok;
}

static bool edges_fill(picture *p)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < p->l.node_count; i++)
        count += node_of(p, p->node[i]).input_count;
    p->l.edges = count < UINT32_MAX / 2 ? calloc(count + 1, sizeof *p->l.edges) : NULL;
    for (uint32_t i = 0; p->l.edges && i < p->l.node_count; i++) {
        const tn_view_node n = node_of(p, p->node[i]);

        for (uint32_t k = 0; k < n.input_count; k++) {
            const uint32_t from = p->number[n.inputs[k].node];

            if (from != UINT32_MAX)
                p->l.edges[p->l.edge_count++] = (cli_layout_edge){.from = from, .to = i};
        }
    }
    return p->l.edges != NULL;
}

/* What tells two operators of a kind apart. */
static void op_text(const tn_view_node *n, char out[CLI_SHORT_TEXT])
{
    static const char *const keys[] = {"act_type", "pool_type", "num_hidden", "kernel"};
    char text[CLI_SHORT_TEXT];
    const char *more = "";

    for (size_t i = 0; i < sizeof keys / sizeof *keys && !*more; i++)
        more = cli_node_attr(n, keys[i]);
    (void)snprintf(text, sizeof text, "%s%s%.40s", n->op ? n->op : "variable", *more ? " " : "", more);
    (void)cli_shorten(text, LINE_COLUMNS, out);
}

static int label_of(const picture *p, uint32_t shown, label out)
{
    const tn_view_node n = node_of(p, p->node[shown]);
    char shape[CLI_SHAPE_TEXT];
    tn_known k;
    int lines = 2;

    (void)cli_shorten(*n.name ? n.name : "(no name)", LINE_COLUMNS, out[0]);
    op_text(&n, out[1]);
    if (!tn_symbol_view_output(p->m->nodes, p->node[shown], 0, &k) && k.ndim >= 0)
        (void)cli_shorten(cli_shape_text(&k, p->times, shape), LINE_COLUMNS, out[lines++]);
    return lines;
}

/* Name, operator, attributes: a line each, for the tooltip. */
static void title_text(const tn_view_node *n, char out[TITLE_MAX])
{
    size_t used = (size_t)snprintf(out, TITLE_MAX, "%.1000s: %.200s", n->name, n->op ? n->op : "variable");

    for (size_t i = 0; n->attrs[i] && used < TITLE_MAX - 700; i += 2)
        used +=
            (size_t)snprintf(out + used, TITLE_MAX - used, "; %.100s=%.500s", n->attrs[i], n->attrs[i + 1]);
}

static bool layout_make(picture *p)
{
    int lines = 2;

    if (!(p->l.width = calloc(p->l.node_count + 1u, sizeof *p->l.width)))
        return false;
    for (uint32_t i = 0; i < p->l.node_count; i++) {
        label text;
        const int count = label_of(p, i, text);
        size_t longest = 6;

        for (int k = 0; k < count; k++)
            longest = cli_columns(text[k]) > longest ? cli_columns(text[k]) : longest;
        lines = count > lines ? count : lines;
        p->l.width[i] = (double)longest * CHARACTER_WIDTH + 2 * PADDING;
    }
    p->l.node_height = lines * LINE_HEIGHT + PADDING;
    p->l.layer_gap = LAYER_GAP;
    p->l.node_gap = NODE_GAP;
    return cli_layout_make(&p->l);
}

/* ---- DOT ---- */

static void dot_write(FILE *out, const picture *p)
{
    char title[TITLE_MAX];
    label text;

    (void)fputs("digraph \"", out);
    cli_dot_text(out, p->m->name);
    (void)fputs("\" {\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11];\n",
                out);
    for (uint32_t i = 0; i < p->l.node_count; i++) {
        const tn_view_node n = node_of(p, p->node[i]);
        const int lines = label_of(p, i, text);

        (void)fprintf(out, "  n%u [label=\"", i);
        for (int k = 0; k < lines; k++) {
            (void)fputs(k ? "\\n" : "", out);
            cli_dot_text(out, text[k]);
        }
        title_text(&n, title);
        (void)fprintf(out, "\", fillcolor=\"%s\", tooltip=\"", color_of(&n));
        cli_dot_text(out, title);
        (void)fputs("\"];\n", out);
    }
    for (uint32_t e = 0; e < p->l.edge_count; e++)
        (void)fprintf(out, "  n%u -> n%u;\n", p->l.edges[e].from, p->l.edges[e].to);
    (void)fputs("}\n", out);
}

/* ---- SVG ---- */

/* From one layer to the next: leaves and arrives upright. */
static void piece_write(FILE *out, double x0, double y0, double x1, double y1)
{
    const double middle = (y0 + y1) / 2;

    if (fabs(x0 - x1) < 0.5)
        (void)fprintf(out, "L%.1f %.1f", x1, y1);
    else
        (void)fprintf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", x0, middle, x1, middle, x1, y1);
}

static void edge_write(FILE *out, const picture *p, const cli_layout_edge *e)
{
    const cli_layout *l = &p->l;
    const double half = l->node_height / 2;
    double x = l->x[e->from], y = l->y[e->from] + half;

    if (e->aside) {
        const double x0 = x + l->width[e->from] / 2, x1 = l->x[e->to] + l->width[e->to] / 2;
        const double far = l->total_width + ASIDE_WIDTH;

        (void)fprintf(out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n", x0, y - half, far,
                      y - half, far, l->y[e->to], x1, l->y[e->to]);
        return;
    }
    (void)fprintf(out, "<path d=\"M%.1f %.1f", x, y);
    for (uint32_t i = 0; i < e->bend_count; i++) {
        const struct cli_layout_bend *b = &l->bends[e->first_bend + i];

        piece_write(out, x, y, b->x, b->y - half);
        (void)fprintf(out, "L%.1f %.1f", b->x, b->y + half);
        x = b->x;
        y = b->y + half;
    }
    piece_write(out, x, y, l->x[e->to], l->y[e->to] - half);
    (void)fputs("\"/>\n", out);
}

static void node_write(FILE *out, const picture *p, uint32_t i)
{
    const cli_layout *l = &p->l;
    const tn_view_node n = node_of(p, p->node[i]);
    char title[TITLE_MAX];
    label text;
    const int lines = label_of(p, i, text);
    const double left = l->x[i] - l->width[i] / 2, top = l->y[i] - l->node_height / 2;

    title_text(&n, title);
    (void)fputs("<g><title>", out);
    cli_xml_text(out, title);
    (void)fprintf(out,
                  "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\" fill=\"%s\"/>",
                  left, top, l->width[i], l->node_height, color_of(&n));
    for (int k = 0; k < lines; k++) {
        (void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", l->x[i],
                      top + PADDING / 2 + LINE_HEIGHT * (k + 0.75), k ? "" : " class=\"n\"");
        cli_xml_text(out, text[k]);
        (void)fputs("</text>", out);
    }
    (void)fputs("</g>\n", out);
}

static void svg_write(FILE *out, const picture *p)
{
    double width = p->l.total_width + 2 * MARGIN, height = p->l.total_height + 2 * MARGIN;
    bool aside = false;

    for (uint32_t e = 0; e < p->l.edge_count; e++)
        aside |= p->l.edges[e].aside;
    width += aside ? ASIDE_WIDTH : 0;
    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"%.0f %.0f %.0f "
        "%.0f\">\n<title>",
        width, height, -MARGIN, -MARGIN, width, height);
    cli_xml_text(out, p->m->name);
    (void)fprintf(
        out,
        "</title>\n<style>text{font:11px sans-serif;fill:#222;text-anchor:middle}.n{font-weight:bold}"
        "rect{stroke:#777}.e path{fill:none;stroke:#666;marker-end:url(#a)}</style>\n<defs><marker id=\"a\" "
        "viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#666\"/></marker></defs>\n"
        "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"#fff\" stroke=\"none\"/>\n"
        "<g class=\"e\">\n",
        -MARGIN, -MARGIN, width, height);
    for (uint32_t e = 0; e < p->l.edge_count; e++)
        edge_write(out, p, &p->l.edges[e]);
    (void)fputs("</g>\n", out);
    for (uint32_t i = 0; i < p->l.node_count; i++)
        node_write(out, p, i);
    (void)fputs("</svg>\n", out);
}

/* ---- JSON ---- */

static json_t *inputs_json(const tn_view_node *n)
{
    json_t *list = json_array();

    for (uint32_t k = 0; k < n->input_count; k++)
        (void)json_array_append_new(list,
                                    json_pack("[i, i]", (int)n->inputs[k].node, (int)n->inputs[k].output));
    return list;
}

static json_t *attrs_json(const tn_view_node *n)
{
    json_t *o = json_object();

    for (size_t i = 0; n->attrs[i]; i += 2)
        (void)json_object_set_new(o, n->attrs[i], cli_json_text(n->attrs[i + 1]));
    return o;
}

/* All nodes of the symbol; `place` is null for those that the picture leaves out. */
static void json_print(const picture *p, const char *file)
{
    json_t *nodes = json_array();

    for (uint32_t i = 0; i < tn_symbol_view_count(p->m->nodes); i++) {
        const tn_view_node n = node_of(p, i);
        const uint32_t shown = p->number[i];
        tn_known k = {.ndim = -1};

        (void)tn_symbol_view_output(p->m->nodes, i, 0, &k);
        (void)json_array_append_new(
            nodes,
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "name", cli_json_text(n.name), "op",
                      n.op ? cli_json_text(n.op) : json_null(), "attrs", attrs_json(&n), "inputs",
                      inputs_json(&n), "output", cli_known_json(&k), "place",
                      shown == UINT32_MAX ? json_null()
                                          : json_pack("{s:i, s:f, s:f}", "layer", (int)p->l.layer[shown], "x",
                                                      p->l.x[shown], "y", p->l.y[shown])));
    }
    cli_json_line(json_pack("{s:o, s:o, s:i, s:o}", "model", cli_json_text(p->m->name), "file",
                            file ? cli_json_text(file) : json_null(), "edges", (int)p->l.edge_count, "nodes",
                            nodes));
}

/* ---- the command ---- */

static bool picture_write(const picture *p, const char *file)
{
    cli_picture c;

    if (!cli_picture_begin(&c, p->app))
        return false;
    if (!file || cli_ends_with(file, ".dot") || cli_ends_with(file, ".gv"))
        dot_write(c.out, p);
    else
        svg_write(c.out, p);
    return cli_picture_end(&c, p->app, file);
}

int cli_viz_graph(const cli_args *args, const cli_model *m)
{
    const char *file = args->value[OPT_OUTPUT];
    picture p = {.app = m->app, .m = m, .times = "\xc3\x97"}; /* files are UTF-8; DOT on stdout is one, too */
    bool ok = nodes_choose(&p, args->value[OPT_ALL] != NULL) && edges_fill(&p) && layout_make(&p);

    if (!ok)
        (void)tn_app_fail(m->app, TN_E_NOMEM, "out of memory");
    else if (file || !args->value[OPT_JSON])
        ok = picture_write(&p, file);
    if (ok && args->value[OPT_JSON])
        json_print(&p, file);
    free(p.node);
    free(p.number);
    cli_layout_fini(&p.l);
    return ok ? 0 : CLI_EXIT_FAILED;
}
