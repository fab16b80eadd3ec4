/* What the commands about plugins share. */
#ifndef TN_CLI_PLUGINS_H
#define TN_CLI_PLUGINS_H

#include "cli.h"
#include "tenon/kernel.h"

/* An app that loads nothing by itself: what would be loaded at start is taken out of the options. */
tn_app *cli_plugins_open(const cli_args *args);
const char *cli_plugin_state(const tn_plugin_info *p); /* "ready" */
bool cli_plugin_is_file(const char *word);             /* a path or NAME.so, not a plugin's name */
bool cli_plugin_refused(const tn_plugin_info *p);
/* What stands between a plugin's name and why it has no device: "" where the text begins with the name, as a
 * device's does. */
const char *cli_plugin_colon(const char *name, const char *why);
/* The plugin at `index`; false: it is gone, or the app has failed. */
bool cli_plugin_at(tn_app *app, size_t index, tn_plugin_info *out);
/* The package it comes with, or the folder it lies in. */
const char *cli_plugin_package(const tn_plugin_info *p, char *out, size_t bytes);
json_t *cli_plugin_json(const tn_plugin_info *p);
/* The kernels of all plugins loaded so far, plugin by plugin, ended by one without op; to be freed. NULL: the
 * app has failed. */
tn_kernel_info *cli_kernels(tn_app *app);
/* What a plugin's kernels do for an operator, by letter: F forward, B backward, D deterministic, S strided,
 * h float16; a point for what is not there. False: it has none for it. */
#define CLI_LETTERS 6
bool cli_kernel_letters(const tn_kernel_info *kernels, const char *plugin, const char *op,
                        char out[CLI_LETTERS]);
/* Columns as wide as their longest text; texts are borrowed. */
typedef struct cli_column_table {
    const char **cells;
    size_t columns, rows, room;
} cli_column_table;
bool cli_table_row(cli_column_table *t, const char *const *cells); /* copies the texts; false: no memory */
void cli_table_print(const cli_column_table *t);
void cli_table_free(cli_column_table *t);

#endif
