/* Data as people have it: files and folders of tables and arrays. own.c. */
#ifndef TN_NN_OWN_H
#define TN_NN_OWN_H

#include "about.h"

typedef struct tnn_loading {
    tn_app *app;
    tn_data *d;
    tnn_about *a;
    tnn_asked q;
    const char *path, *part;
    bool split;      /* the samples hold both parts */
    bool table;      /* features are columns, whatever their shape */
    bool whole_type; /* labels are of a whole type */
} tnn_loading;

/* arrays.c: fields of named arrays */
tn_status tnn_npz_load(tnn_loading *l);
tn_status tnn_npy_load(tnn_loading *l);
tn_status tnn_label_add(tnn_loading *l, tn_array *a);

bool tnn_own_is(const char *path); /* by the end of its name: .csv, .npz … */
/* The file of the part in a folder, or a folder of .npy; *path NULL: none. *split: it has both parts. */
tn_status tnn_own_find(tn_app *app, const char *folder, const char *part, char **path, bool *split);
/* Its samples, scaled. `about`: of the model or of the data to train on; NULL: this is it. NULL: failed. */
tn_data *tnn_own_open(tn_app *app, const char *what, const char *name, const char *path, const char *part,
                      bool split, const tnn_about *about, const tn_data_options *o);

#endif
