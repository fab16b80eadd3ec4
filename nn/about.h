/*
 * What is kept of the data with a model: task, classes, units of the labels, scaling of each input. about.c
 * reads and writes it, table.c reads CSV by it, own.c makes it of the data that a training sees first.
 */
#ifndef TN_NN_ABOUT_H
#define TN_NN_ABOUT_H

#include "data.h"

#define TNN_CLASSES_MAX 65536 /* with names */

typedef struct tnn_texts { /* a list of texts, owned */
    char **at;
    size_t count, room;
} tnn_texts;

void tnn_texts_fini(tnn_texts *t);
tn_status tnn_texts_add(tn_app *app, tnn_texts *t, const char *text);
int64_t tnn_texts_find(const tnn_texts *t, const char *text); /* -1: it is not among them */

typedef struct tnn_input {
    char *name;
    tnn_shape shape;          /* of a sample, without the samples' dimension */
    double divisor;           /* of bytes; 0: numbers */
    int64_t count;            /* columns that are scaled; 0: none */
    double *mean, *deviation; /* of each column */
} tnn_input;

typedef struct tnn_about {
    int32_t references, task; /* TN_TASK_… */
    int64_t classes;          /* of a regression 0 */
    int64_t label_column;     /* from 0; -1: not of a table */
    char *label;              /* its name; NULL: none is known */
    tnn_texts names, columns; /* of the classes; of a table's features */
    double mean, deviation;   /* units of a regression's labels: label * deviation + mean */
    double share;             /* of the samples, to test with; 0: there is no split */
    uint64_t seed;            /* of that */
    size_t input_count;
    tnn_input inputs[TNN_VALUES_MAX];
} tnn_about;

tnn_about *tnn_about_make(tn_app *app); /* NULL: failed */
tnn_about *tnn_about_keep(tnn_about *a);
void tnn_about_drop(tnn_about *a); /* NULL is fine */
tnn_about *tnn_about_read(tn_app *app, const char *path);
tn_status tnn_about_write(tn_app *app, const tnn_about *a, const char *path);
/* Of data that has none: its shapes and its classes. */
tn_status tnn_about_of(tn_app *app, tn_data *d);
/* The data's samples have the shapes that the model takes. */
tn_status tnn_about_fits(tn_app *app, const tnn_about *a, const tn_data *d);

/* ---- table.c ---- */

typedef struct tnn_asked { /* how own data is read */
    const char *label, *task, *scale, *header;
    const tnn_about *about; /* of a model, or of the data to train on; NULL: this data is the first */
    bool whole;             /* all samples; labels may be missing */
    tnn_shape shape;        /* data.shape; ndim 0: as the file has it */
    double share;
    uint64_t seed;
    const char *text; /* a CSV in memory instead of the file; NULL */
    size_t bytes;
} tnn_asked;

/* Text of data.shape; ndim 0: none is asked for. */
tn_status tnn_shape_read(tn_app *app, const char *text, tnn_shape *out);
/* Fields "data" and "label" of a CSV; label texts become classes, in the order of the alphabet. */
tn_status tnn_table_read(tn_app *app, tn_data *d, const char *path, const tnn_asked *q, tnn_about *a);
/* Numbers of `f`, which it owns then. NULL: failed. */
float *tnn_field_room(tn_app *app, tnn_field *f, int64_t count);

#endif
