/* What `tenon bench op` and `tenon bench model` share: series of measurements, and tables of them. */
#ifndef TN_CLI_BENCH_TABLE_H
#define TN_CLI_BENCH_TABLE_H

#include "model.h"

/* ---- series.c ---- */

typedef struct cli_series { /* nanoseconds of one call */
    double mean, sd, median, best;
    double spread;          /* between the medians of two interleaved series, as a part of the smaller */
    uint32_t rounds, calls; /* of both series; calls of one round */
    bool noisy;
} cli_series;

/* `run` makes so many calls and waits for them. `rounds`: of each of two series that take turns. */
tn_status cli_series_measure(tn_status (*run)(void *arg, uint32_t calls), void *arg, uint32_t rounds,
                             cli_series *out);
/* --repeat N, 3 to 1000; 0: not a number, said. */
uint32_t cli_repeat_of(const cli_args *args);
/* Values that are neither special nor all alike, the same in each run. */
tn_status cli_array_fill(tn_array *a, double low, double high);

/* ---- table.c ---- */

typedef struct cli_column {
    const char *key, *title; /* of the row's JSON; "ms": mean and deviation; "change": beside an older file */
} cli_column;

typedef struct cli_table {
    const cli_column *columns; /* ended by a row without key */
    const char *const *same;   /* keys by which a row of an older file is the same; NULL-ended */
    json_t *rows, *old;
    bool noisy;
} cli_table;

/* Reads --compare and looks at -o; exit code, said. */
int cli_table_begin(cli_table *t, const cli_args *args);
/* Takes `row`: adds time, build id and, against the older file, the change. */
void cli_table_add(cli_table *t, json_t *row, const cli_series *s);
/* Prints all as -o says; exit code: 1 if a row is noisy. */
int cli_table_end(cli_table *t, const cli_args *args);

#endif
