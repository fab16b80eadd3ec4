/*
 * Models as commands take them: MODEL-symbol.json, zoo:NAME or a run, with the shapes of --shape.
 */
#ifndef TN_CLI_MODEL_H
#define TN_CLI_MODEL_H

#include "cli.h"
#include "tenon/view.h"

/* ---- model.c ---- */

typedef struct cli_model {
    tn_app *app;
    char *name; /* for titles: "lenet" */
    tn_symbol *symbol;
    tn_inferred *shapes;   /* what is known */
    tn_symbol_view *nodes; /* with the shapes */
    bool complete;         /* all shapes are known */
    int64_t sample[4];     /* (1, C, H, W) of the data of a run folder; 0: not known */
} cli_model;

/* The short form of a name in the zoo, which the library takes, too: resnet18. NULL: there is none. */
#define CLI_ZOO_SHORT 24
const char *cli_zoo_short(const char *name, char out[CLI_ZOO_SHORT]);
/* (1, C, H, W) that a net of the zoo was made for; untouched where there is no such net. */
void cli_zoo_shape(const char *name, int64_t out[4]);
/* Why train.model may not be that: it is no net of the zoo and no file of a symbol (which need not be there).
 * NULL: it may. free() */
char *cli_model_fault(const char *model);
/* A saved model: its two files, and if these are of a run, the run's folder. */
typedef struct cli_saved {
    char *symbol, *params, *folder; /* folder: NULL: the files were named */
    size_t words;                   /* of the command line that name it */
} cli_saved;
/* What the first words name: a run, of which the best parameters count, or else the last ones; or two files.
 * False: neither, which is the app's error. cli_saved_fini() in any case. */
bool cli_saved_find(cli_saved *saved, const cli_args *args, tn_app *app);
void cli_saved_fini(cli_saved *saved);
/* Exit code; what is wrong has been said, or is the app's error. */
int cli_model_open(cli_model *m, tn_app *app, const char *what);
/* Shapes from --shape NAME=1,1,28,28 (or without NAME=: of the only input), or from the model itself. With
 * `all` those that stay unknown are an error that names what to give. */
int cli_model_infer(cli_model *m, const cli_args *args, bool all);
void cli_model_fini(cli_model *m);
/* Whether node `index`, a variable, is a parameter or state of one of its users, such as fc_weight of fc. */
typedef struct cli_roles {
    uint8_t *parameter; /* per node */
} cli_roles;
bool cli_roles_find(cli_roles *r, const tn_symbol_view *nodes, tn_app *app);
/* "64x20x24x24" with the sign of the locale in between; "?" if it is not known. */
#define CLI_SHAPE_TEXT 256
const char *cli_shape_text(const tn_known *k, const char *times, char out[CLI_SHAPE_TEXT]);
/* A list of sizes "64x1x28" or "64,1,28": how many, or -1: it is none (or more than `max`). */
int cli_shape_parse(const char *text, int64_t *out, int max);
json_t *cli_known_json(const tn_known *k); /* [1, 28, null]; null if nothing is known */
int64_t cli_elements(const tn_known *k);   /* -1: not known */
uint64_t cli_dtype_bytes(int32_t dtype);
double cli_cost(uint64_t count); /* of a tn_view_node; NaN: not known */

/* An attribute of a node as text; "" if it has none of this name. */
const char *cli_node_attr(const tn_view_node *n, const char *name);

#endif
