/* What commands share about the data of a model: info.c, about.c. */
#ifndef TN_CLI_DATA_H
#define TN_CLI_DATA_H

#include "cli.h"

#define CLI_ABOUT "model-data.json" /* in a run: tn_data_about_save() */

/* X-data.json beside X-symbol.json; NULL: it is not there. free() */
char *cli_about_beside(const char *symbol);
/* One line on stderr, but with --quiet: X-data.json is not there, and what is done instead. */
void cli_about_missed(const cli_args *args, const char *symbol, const char *instead);
/* Writes what is described beside `symbol`, if anything is; cli_about_name() makes it PREFIX-data.json. Where
 * nothing is, it removes that file: it is of another model. */
bool cli_about_copy(tn_app *app, const char *symbol, const char *prefix, cli_aside *out);
bool cli_about_name(tn_app *app, const char *prefix, cli_aside *out);
/* True: the model takes pixels, byte / 255. `takes`: the shape of a sample, "1×8×8". */
#define CLI_TAKES_TEXT 256
bool cli_about_look(const char *path, char takes[CLI_TAKES_TEXT]);
bool cli_about_images(const char *path); /* the model takes an image, and nothing else: pixels, (C, H, W) */
/* What a training of numbers ends with, or an evaluation: into `o`, or as lines. */
void cli_numbers_json(json_t *o, double r2, double rmse, double mae);
void cli_numbers_print(double r2, double rmse, double mae);

#endif
