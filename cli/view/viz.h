/* What the pictures of `tenon viz` share. */
#ifndef TN_CLI_VIZ_H
#define TN_CLI_VIZ_H

#include "model.h"

/* Each writes its picture or table; exit code, what is wrong has been said or is the app's error. */
int cli_viz_summary(const cli_args *args, const cli_model *m);
int cli_viz_graph(const cli_args *args, const cli_model *m);
int cli_viz_memory(const cli_args *args, const cli_model *m);
int cli_viz_breaks(const cli_args *args, const cli_model *m);
int cli_viz_passes(const cli_args *args, const cli_model *m);
int cli_viz_curves(const cli_args *args, tn_app *app);

/* ---- picture.c ---- */

/* A picture in memory until it is whole; then a file (-o), or stdout. */
typedef struct cli_picture {
    FILE *out; /* write here */
    char *text;
    size_t bytes;
} cli_picture;
bool cli_picture_begin(cli_picture *p, tn_app *app);
bool cli_picture_end(cli_picture *p, tn_app *app, const char *path); /* path NULL: stdout; frees it */
/* For XML: text and attributes. Bytes that are no UTF-8, and controls, become '?'. */
void cli_xml_text(FILE *out, const char *text);
/* For a quoted string of DOT. */
void cli_dot_text(FILE *out, const char *text);
/* At most `columns` characters; what is cut is an ellipsis in the middle. */
#define CLI_SHORT_TEXT 256
const char *cli_shorten(const char *text, size_t columns, char out[CLI_SHORT_TEXT]);
void cli_pad(FILE *out, const char *text, int columns); /* left-aligned; negative: right-aligned */

/* ---- layout.c: a layered drawing of a directed acyclic graph ---- */

typedef struct cli_layout_edge {
    uint32_t from, to;
    uint32_t first_bend, bend_count; /* places it goes through, in `bends` */
    bool aside;                      /* too long to be led between the nodes: drawn as one arc */
} cli_layout_edge;

typedef struct cli_layout {
    uint32_t node_count, edge_count, bend_count;
    double *width; /* per node; given */
    double node_height, layer_gap, node_gap;
    uint32_t *layer;        /* per node */
    double *x, *y;          /* per node: its centre */
    cli_layout_edge *edges; /* given: from, to; `from` is before `to` in the order of nodes */
    struct cli_layout_bend {
        double x, y;
    } * bends;
    double total_width, total_height;
} cli_layout;
/* Fills in all but what is given. False: out of memory. Deterministic; time and memory are about linear. */
bool cli_layout_make(cli_layout *l);
void cli_layout_fini(cli_layout *l);

#endif
