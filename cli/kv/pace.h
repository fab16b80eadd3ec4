/* The pace of a job: tables for kv status, a line for metrics.jsonl. */
#ifndef TN_CLI_KV_PACE_H
#define TN_CLI_KV_PACE_H

#include "cli.h"

/* Tables of `job`, what tn_kv_report said: who comes last, how old values are, which keys take longest. */
void cli_kv_pace_say(const json_t *job);
/* Adds "rates" to each node that answered both times, `seconds` apart. */
void cli_kv_rates_set(json_t *job, const json_t *before, double seconds);
void cli_kv_rates_say(const json_t *job);
/* What a line of metrics.jsonl has of the store: bounded in length. NULL: the job did not answer. */
json_t *cli_kv_epoch(tn_app *app);

#endif
