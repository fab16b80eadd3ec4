/*
 * What the commands know of run folders. Everything is read as a stranger's: files of bounded size, no
 * symbolic links, nothing of them is believed but to be shown.
 */
#ifndef TN_CLI_RUNS_H
#define TN_CLI_RUNS_H

#include <sys/types.h>
#include <time.h>

#include "cli.h"
#include "train/lock.h"

#define CLI_RUNS "runs" /* where runs lie if nothing else is said */
#define CLI_WHY_BYTES 700

typedef enum cli_record_state {
    CLI_RECORD_FINISHED,
    CLI_RECORD_STOPPED, /* on request; may be resumed */
    CLI_RECORD_FAILED,  /* ended with an error that run.json tells */
    CLI_RECORD_RUNNING,
    CLI_RECORD_BROKEN, /* ended without a word, or run.json cannot be read */
} cli_record_state;

typedef struct cli_record {
    char *folder, *name; /* runs/2026-…-7f3a and its last part */
    const char *id;      /* within `name` */
    json_t *json;        /* run.json; NULL: not readable */
    cli_record_state state;
    char why[CLI_WHY_BYTES]; /* of RUNNING, FAILED, BROKEN; "" */
    bool ours;               /* run.json is one that train writes */
    bool resumable;
    int64_t epochs, epochs_wanted;
    double best, accuracy, loss; /* best: of all validations; NaN: not known */
    bool numbers;                /* a regression: these two are R² */
    struct timespec written;     /* run.json: which of two is the older that began within one second */
} cli_record;

typedef struct cli_records {
    cli_record *at;
    size_t count, room;
    const char *folder; /* they lie below */
} cli_records;

#define CLI_METRICS_BYTES_MAX (1 << 30) /* a metrics.jsonl of more is not read: millions of epochs */

const char *cli_record_state_name(cli_record_state state);
/* --runs, default runs. NULL: it is not there, which has been said. */
const char *cli_runs_folder(const cli_args *args);
/* All run folders below `folder`, oldest first. False: said why. A folder that is not there has none. */
bool cli_records_read(cli_records *r, const char *folder);
void cli_records_fini(cli_records *r);
/* The folder that every command means by NAME: a path, also of a file in it, or the run below `folder` of
 * this name or id, or whose name has it at its start or behind a dash; else a folder here that is no run.
 * NULL: none or several, `why` tells. free() */
char *cli_record_folder(const char *folder, const char *name, char why[CLI_WHY_BYTES]);
/* "; did you mean "NAME"?" of a run below `folder`, or here; "" if none is called alike. */
void cli_record_similar(const char *folder, const char *name, char text[CLI_SIMILAR_BYTES]);
/* The run that holds this file, in itself or in its checkpoints; NULL: none does. free() */
char *cli_record_around(const char *file);
/* The run or folder that WHAT means where a model may stand, too: a folder, a run below runs/, or the run of
 * a file in it that is no model; NULL: WHAT is a file of its own, or nothing. free() */
char *cli_record_meant(const char *what);
/* The run below `folder` that was changed last; NULL: there is none, `why` tells. free() */
char *cli_record_newest(const char *folder, char why[CLI_WHY_BYTES]);
/* A regular file of bounded size in it, no link; NULL: there is none such. */
FILE *cli_record_file(const char *folder, const char *name, off_t bytes_max);
/* Its run.json, an object; NULL: `why` tells. json_decref() */
json_t *cli_record_json(const char *folder, char why[CLI_WHY_BYTES]);
bool cli_record_ours(const json_t *json); /* one that train writes */
bool cli_record_has_checkpoint(const char *folder);
/* One run by its name, as cli_record_folder() takes it. False: said why. */
bool cli_record_find(cli_record *record, const char *folder, const char *name);
/* The run in that folder [takes]; false: out of memory, said. cli_record_fini() in any case. */
bool cli_record_read(cli_record *record, char *folder);
void cli_record_fini(cli_record *record);
const char *cli_record_text(const cli_record *record, const char *key); /* of run.json; "" */
/* Value of an option as it was; "": not known. */
const char *cli_record_option(const cli_record *record, const char *key);

#endif
