/* What the commands of `tenon config` share. */
#ifndef TN_CLI_CONFIG_H
#define TN_CLI_CONFIG_H

#include "cli.h"

/* Whether the key fits the row's, in which each `*` is one part. */
bool config_fits(const char *row, const char *key);
/* The row that a key belongs to; false: none. */
bool config_row(const char *key, tn_option_info *out);
/* Key, type, unit, choices, range, default, flags, help and MXNet's names. */
json_t *config_row_json(const tn_option_info *o);
/* Values that name what is not there, as warnings; nothing if the library does not open. */
void config_values_check(const tn_open_options *options, tn_problem_fn fn, void *arg);

#endif
