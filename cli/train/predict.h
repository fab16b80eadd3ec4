/*
 * What the files of `tenon predict` share: samples from files, and answers to files.
 */
#ifndef TN_CLI_PREDICT_H
#define TN_CLI_PREDICT_H

#include "cli.h"

#define CLI_DIMS_MAX 8 /* of an input or output, as nn's */

/* ---- samples.c ---- */

typedef struct cli_samples {
    const char *name; /* as given */
    const char
        *takes;   /* the shape of a sample that the model was trained on, for messages; NULL, "": not known */
    int32_t ndim; /* of `shape`, samples in front */
    int64_t shape[CLI_DIMS_MAX];
    int64_t count, each;      /* samples, numbers of one */
    bool bytes;               /* the file holds pixels, which are divided by 255 unless --scale says else */
    float *values;            /* owned */
    struct cli_samples *next; /* of the model's next input, as many; NULL: it has no more */
} cli_samples;

/* Reads IDX, .npy, .npz, CSV, plain or (IDX, CSV) .gz, or an image, of the size `wanted` ("1,28,28"; NULL:
 * its own); "-": CSV from stdin. `scale` NAN: bytes of IDX and images by 1/255, others as they are. A failure
 * is the app's error. */
bool cli_samples_load(cli_samples *s, tn_app *app, tn_net *net, const char *wanted, const char *name,
                      double scale);
/* Of a model with several inputs: an .npz with an array of each one's name; numbers are taken as they are. */
bool cli_samples_named(cli_samples *s, tn_app *app, const tn_net *net, const char *name);
/* The same of a model whose data is described: a file of any format, read and scaled as that was. */
bool cli_samples_own(cli_samples *s, tn_app *app, const tn_net *net, const char *about, const char *name);
/* Room for the next input's; NULL: the app has failed. */
cli_samples *cli_samples_next(cli_samples *s, tn_app *app);
/* All of standard input; free(). */
char *cli_stdin_read(tn_app *app, size_t *bytes);
/* Gives the samples a shape that the net takes: `wanted` ("1,28,28"), or the file's, or that of an image. */
bool cli_samples_fit(cli_samples *s, tn_app *app, tn_net *net, const char *wanted);
void cli_samples_fini(cli_samples *s);

/* ---- answers.c ---- */

typedef enum cli_answer_kind {
    CLI_ANSWER_TABLE,
    CLI_ANSWER_CSV,
    CLI_ANSWER_JSON,
    CLI_ANSWER_NPY
} cli_answer_kind;

typedef struct cli_answer { /* one output of the model */
    const char *name;
    size_t index; /* among those of the model */
    int32_t gives, ndim;
    int64_t shape[CLI_DIMS_MAX]; /* samples in front */
    int64_t each;                /* numbers of one sample */
    int64_t top;                 /* classes that are told */
    int name_width;              /* columns of the names of classes in a table; 0: there are none */
    bool classes;                /* numbers are of classes */
    double *chances;             /* of one sample */
    int64_t *order;              /* of the most likely classes */
    float *batch;                /* what a batch gave */
    char *path, *aside;          /* .npy: its own file */
    float *raw;                  /* .npy: of all samples */
    size_t raw_count, raw_room;
} cli_answer;

typedef struct cli_answers {
    tn_app *app;
    const tn_net *net;
    cli_answer_kind kind;
    FILE *out;          /* NULL: .npy */
    char *path, *aside; /* NULL: stdout */
    size_t there;       /* of the path, before folders were made */
    cli_answer *outputs;
    size_t output_count;
    int64_t top;   /* as asked */
    int64_t batch; /* samples of one */
    int64_t done;  /* samples */
    bool one_each; /* each of several inputs is one sample: a table counts through them */
    bool several;  /* inputs: a row of the table ends with its input's name */
} cli_answers;

/* `path` NULL: stdout, `kind` as given; else by the end of its name: .csv, .json, .jsonl, .npy. Of several
 * outputs each has a .npy of its own, PATH-NAME.npy. `outputs` say name, gives, ndim and shape. */
bool cli_answers_open(cli_answers *a, const char *path);
/* The outputs of sample `index` of `input`: number `at` of the batch. */
bool cli_answers_add(cli_answers *a, const char *input, int64_t index, int64_t at);
/* Writes what is left; a file is whole or absent. */
bool cli_answers_close(cli_answers *a);
void cli_answers_fini(cli_answers *a);
/* The files of the answers one by one; NULL: no more. */
const char *cli_answers_file(const cli_answers *a, size_t index);

#endif
