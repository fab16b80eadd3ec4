/*
 * What the files of `tenon doctor` share: the findings, and what was learnt before the first check.
 */
#ifndef TN_CLI_DOCTOR_H
#define TN_CLI_DOCTOR_H

#include "cli.h"
#include "runs/runs.h"

typedef enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_BAD } doctor_level;

typedef struct doctor_finding {
    doctor_level level;
    const char *check; /* the row of doctor.list that said it */
    char *text;
    char *advice; /* what to do; "" where nothing is */
} doctor_finding;

/* What became of one plugin that was loaded in a process of its own. */
typedef struct doctor_probe {
    char *name, *message;
    char *device;      /* why it loads and its device does not start, such as for want of a driver; "" */
    uint32_t number;   /* TN number of the error; 0: it loads */
    json_t *libraries; /* array: file names of the shared objects that came with it */
    json_t *problems;  /* of the start: what tn_config_check found */
} doctor_probe;

typedef struct doctor {
    const cli_args *args;
    tn_ctx *ctx;           /* NULL: the configuration cannot be read */
    char *ctx_error;       /* why not */
    char *start_error;     /* with everything that is required: why the library does not start, or NULL */
    uint32_t start_number; /* its TN number */
    json_t *warnings;      /* array of texts that opening logged */
    json_t *problems;      /* array of {level, number, text}: all that is wrong with the configuration */
    doctor_probe *probes;
    size_t probe_count;
    tn_ctx *reader;    /* for the files of runs: nothing in it that does not load; NULL: not opened */
    const char *check; /* that runs now */
    doctor_finding *findings;
    size_t count, capacity;
    bool no_memory;
} doctor;

/* Adds a finding of the check that runs. `advice` is one action, "" for none. */
void doctor_say(doctor *d, doctor_level level, const char *advice, const char *format, ...) CLI_PRINTF(4, 5);
/* The option's value; "" where there is no context. */
const char *doctor_option(const doctor *d, const char *key);

/* ---- open.c: what is learnt before the checks ---- */

/* Starts the library and loads each plugin, each in a process of its own; then opens the context. */
void doctor_open(doctor *d);
void doctor_close(doctor *d);
/* Loads plugin number `index` in a process of its own: why its device does not start, for free(). NULL: it
 * does, it has none, or it does not load. */
char *doctor_no_device(const cli_args *args, size_t index);

/* Opens d->reader; false: it cannot be, said. */
bool doctor_reader_open(doctor *d);

/* ---- files.c: what lies in a run folder ---- */

typedef struct doctor_run {
    const char *folder;
    cli_record record;
    bool live;  /* its lock is held, or another host's */
    bool whole; /* there is a checkpoint to go on from */
} doctor_run;

void doctor_record_check(doctor *d, doctor_run *r);
void doctor_metrics_check(doctor *d, doctor_run *r);
/* These two read with d->reader. */
void doctor_checkpoints_check(doctor *d, doctor_run *r);
void doctor_models_check(doctor *d, doctor_run *r);

/* ---- report.c: everything to paste ---- */

json_t *doctor_report(const doctor *d);
void doctor_report_print(const json_t *report);
/* Whether a variable or an option of this name may hold a secret. */
bool doctor_secret(const char *name);

/* ---- the checks ---- */

#define DOCTOR_CHECK(name, run, what) void run(doctor *d);
#include "doctor/doctor.list"
#undef DOCTOR_CHECK

/* Why there can be no links by RDMA on this machine; "": there can. */
const char *doctor_no_rdma(void);
const char *doctor_no_nccl(void); /* the same of sums by NCCL */

#endif
