/*
 * What the files of `tenon train` share: the run folder, its history, and how progress is shown.
 */
#ifndef TN_CLI_TRAIN_H
#define TN_CLI_TRAIN_H

#include "cli.h"
#include "train/lock.h"

#define CLI_CHECKPOINTS "checkpoints" /* in the run folder */

/* One finished epoch: a line of metrics.jsonl. */
typedef struct cli_epoch {
    int64_t epoch, step;
    double loss, accuracy, valid_loss, valid_accuracy; /* NaN: not known */
    double lr, seconds;
    bool numbers;  /* of a regression: what stands for an accuracy is R² */
    json_t *store; /* of worker 0 of a job: the store's pace; NULL: not known */
} cli_epoch;

/* ---- run.c: the run folder ---- */

typedef struct cli_run {
    char *folder;
    char *model, *data; /* as they were named */
    const char *id;     /* within `folder`: the part behind the last '-' */
    bool made;          /* the folder is new */
    bool runs_made; /* the folder of all runs was made for this one */
    bool anew;          /* in place of a run that ended before its first checkpoint */
    bool again;         /* worker 0 of a job was lost, and is started again: it goes on in the folder */
    uint32_t rank;      /* of this worker; not 0: the run is another one's, `folder` lies beside it */
    bool begun;         /* run.json is written */
    cli_lock lock;      /* of `folder`, while it is trained in */
    json_t *record;     /* run.json */
    cli_epoch *epochs;  /* metrics.jsonl */
    size_t epoch_count, epoch_capacity;
} cli_run;

/* The folder that --resume VALUE means, "" is the newest below runs/, and its run.json, which is not there
 * (`record` NULL) where a run ended before it was written. False: said why. */
bool cli_run_find(cli_run *run, const char *value);
/* Settings that make the run's options again: "key=value", NULL-ended, `max` at most; texts to be freed. */
size_t cli_run_settings(const cli_run *run, char **settings, size_t max);
const char *cli_run_text(const cli_run *run, const char *key); /* "" if there is none */
/* Whether another process trains in the folder; it is the app's error then. */
bool cli_run_in_use(tn_app *app, const char *folder);
/* A new folder: option run.dir, else runs/DATE-NAME-ID. A failure is the app's error. */
bool cli_run_make(cli_run *run, tn_app *app, const char *model);
/* The folder FOLDER.rankN, which may be there. */
bool cli_run_beside(cli_run *run, tn_app *app, const char *folder);
/* Writes run.json before the first step: command, options, data, plugins, versions. */
bool cli_run_begin(cli_run *run, tn_app *app, const cli_args *args, tn_train *train);
/* Writes run.json and curves.svg at the end; takes `result`. */
bool cli_run_end(cli_run *run, tn_app *app, json_t *result);
/* The app has failed: notes it in run.json, if the training had begun. */
void cli_run_failed(cli_run *run, tn_app *app);
/* Takes the folder for this process; `found`: who left a lock behind that nobody holds (pid 0: nobody). What
 * killed processes wrote aside goes. `anew` tells then whether there is nothing to go on with. */
bool cli_run_lock(cli_run *run, tn_app *app, bool resume, cli_lock_owner *found);
/* Reads the epochs up to `step` from metrics.jsonl; no file is no epoch. */
bool cli_run_epochs(cli_run *run, tn_app *app, int64_t step);
/* After a resume: forgets epochs behind `step`, in the file, too. */
bool cli_run_rewind(cli_run *run, tn_app *app, int64_t step);
/* Retains `epoch->store`. */
bool cli_run_epoch_add(cli_run *run, tn_app *app, const cli_epoch *epoch);
json_t *cli_epoch_json(const cli_epoch *epoch);
void cli_run_fini(cli_run *run);

/* ---- folder.c: what lies there already ---- */

typedef enum cli_folder_state {
    CLI_FOLDER_FREE,       /* nothing of a run */
    CLI_FOLDER_RUN,        /* a run with a checkpoint */
    CLI_FOLDER_BROKEN_OFF, /* what a run left that ended before its first checkpoint */
    CLI_FOLDER_OTHER,      /* a run that is done, without checkpoints, or files that no training made */
} cli_folder_state;

cli_folder_state cli_folder_look(const char *folder);
/* Removes what killed processes wrote aside; the run's lock is held. */
void cli_folder_clean(const char *folder);
/* Calls model-best.params of a run that broke off model-best-before.params, so that the next one does not
 * write over it; one that is called so already stays. False: it cannot be renamed, errno tells. */
bool cli_folder_best_keep(const char *folder);

/* ---- resumed.c ---- */

/* Notes on stderr: what is other than in the run so far and gives other bits. To be called before run.json is
 * written anew. */
void cli_resumed_compare(const cli_run *run, tn_app *app);

/* ---- train.c ---- */

bool cli_stop_asked(void); /* ^C or a signal */
void cli_stops_take(void); /* from here on ^C and SIGTERM ask; before they end the process */

/* ---- prove.c: before a training, without a run folder ---- */

typedef struct cli_proof {
    tn_app *app;
    const char *model, *data;
    bool json;
} cli_proof;

/* Builds everything, shows shapes, memory, kernels and data, makes one step. Exit code. */
int cli_prove_dry_run(const cli_proof *proof);
/* Trains on one batch until it is known by heart. Exit code: 1 if the net cannot. */
int cli_prove_overfit(const cli_proof *proof);

/* ---- curves.c ---- */

/* Loss and accuracy over the epochs, as SVG. */
void cli_curves_write(FILE *out, const cli_epoch *epochs, size_t count);

/* ---- view.c: what stderr shows ---- */

typedef enum cli_view_mode { CLI_VIEW_NONE, CLI_VIEW_BAR, CLI_VIEW_PLAIN, CLI_VIEW_JSON } cli_view_mode;

typedef struct cli_view {
    cli_view_mode mode;
    cli_terminal terminal;
    const char *id;  /* of the run */
    double last;     /* when something was shown */
    int drawn;       /* columns of the bar that stands there */
    double loss[12]; /* of the last epochs, for the small curve */
    size_t loss_count;
} cli_view;

/* `mode` as --progress names it; NULL: what fits. False: no such mode, said. */
bool cli_view_init(cli_view *view, const char *mode, bool quiet);
void cli_view_begin(cli_view *view, const cli_run *run, const tn_train_info *info);
/* Whether it is time to show a step: then call cli_view_step with fresh facts. */
bool cli_view_due(const cli_view *view);
void cli_view_step(cli_view *view, const tn_train_info *info);
void cli_view_epoch(cli_view *view, const tn_train_info *info);
void cli_view_end(cli_view *view, const tn_train_info *info); /* time and best epoch */
void cli_view_note(cli_view *view, const char *format, ...) CLI_PRINTF(2, 3); /* a line of its own */
void cli_view_clear(cli_view *view);                                          /* takes the bar away */

#endif
