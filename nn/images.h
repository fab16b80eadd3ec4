/* Where images of a data set lie: a folder with one folder per class, or a .rec. images.c, images_find.c. */
#ifndef TN_NN_IMAGES_H
#define TN_NN_IMAGES_H

#include "boxes.h"
#include "data.h"
#include "tenon/nn_data.h"

#include <pthread.h>

#define TNN_BROKEN_MAX 100
#define TNN_TEST_EVERY 5 /* of images without parts, each fifth one (of a class) is to test with */

typedef struct tnn_listed { /* an image's labels in a .lst */
    uint64_t id;
    size_t first, count; /* of `list_labels` */
} tnn_listed;

typedef struct tnn_images {
    tn_ctx *ctx;
    tn_images_options o; /* filled in; texts are ours */
    char *texts[4];
    int64_t count;
    uint32_t first;             /* of the share */
    char *root, **paths;        /* of a folder: paths in it */
    float *labels;              /* of a folder */
    char *file;                 /* a .rec */
    uint64_t *places;           /* of its records */
    tn_record_reader **readers; /* one for each thread */
    int32_t reader_count;
    tnn_listed *listed; /* by id */
    float *list_labels;
    size_t listed_count;
    float *mean;            /* of mean_img */
    tnn_boxes_given *boxes; /* a copy of what `o.boxes` points to; NULL: none */
    uint64_t key;
    pthread_mutex_t lock; /* of what follows */
    bool has_lock;
    int64_t broken, broken_images; /* reads that failed; different images among them */
    uint8_t *broken_rows;          /* a bit for each image, once one is broken */
    char *broken_texts[TNN_BROKEN_MAX];
} tnn_images;

/* Files and labels of a folder; `part`: "train" or "test" of it. Names of the classes. */
tn_status tnn_images_folder(tn_app *app, tnn_images *s, const char *folder, const char *part,
                            struct tnn_names **names);
bool tnn_is_image(const char *name); /* by its end */
/* Whether there are folders with images in `folder`. */
bool tnn_images_are_in(const char *folder);
bool tnn_images_are_flat(const char *folder); /* an image lies in the folder itself */
/* The only .rec of a folder without other data, for both parts; NULL: none, or out of memory; free(). */
char *tnn_images_lone(tn_app *app, const char *folder);
/* Places of the records of share `part` of `parts`, as MXNet cuts; all labels where these are asked for. */
tn_status tnn_images_records(tn_app *app, tnn_images *s, int64_t parts, int64_t part, int64_t *classes);
tn_status tnn_images_list(tn_app *app, tnn_images *s);
/* Boxes: the most labels that an image of the share has. */
tn_status tnn_images_widest(tn_app *app, tnn_images *s, int64_t *most);
struct tnn_texts;
/* Labels of a folder become the numbers that a model has for classes of these names. */
tn_status tnn_images_rename(tn_app *app, tnn_images *s, const struct tnn_names *from,
                            const struct tnn_texts *to);
/* images_args.c: pairs of MXNet's names and texts into the options; defaults; checks. `boxes`: where those of
 * `o->boxes` go, which points there then. `path`: path_imgrec, if it is among them. */
tn_status tnn_images_options(tn_app *app, const char *what, tn_images_options *o, tnn_boxes_given *boxes,
                             const char **path);

#endif
