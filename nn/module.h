/*
 * What the files of modules share: module.c binding and parameters, module_run.c executors and steps,
 * module_fit.c whole trainings and files.
 */
#ifndef TN_NN_MODULE_H
#define TN_NN_MODULE_H

#include "internal.h"
#include "tenon/nn_module.h"

#define TNN_BUCKETS_MAX 256
#define TNN_EXECUTORS_MAX 64 /* of a module; the one that was used least recently goes */

typedef struct tnn_bucket {
    int64_t key;
    tn_symbol *symbol;
    char **names, **aux; /* of all its inputs, of its states; one block each */
    size_t count, aux_count, out_count;
    int32_t *out_axes; /* of its outputs, along which the samples lie; -1: there is none */
} tnn_bucket;

typedef struct tnn_bound { /* an executor for one bucket and one set of shapes */
    tn_executor *executor;
    const tnn_bucket *bucket;
    size_t device;                    /* of the app's list */
    uint32_t given;                   /* inputs and labels that the shapes are of */
    tnn_shape shapes[TNN_VALUES_MAX]; /* inputs, then labels */
    uint64_t used;
} tnn_bound;

struct tn_module {
    tnn_object object;
    char *name;
    tn_net *net; /* its parameters: those of the first bucket's symbol */
    tnn_bucket *buckets[TNN_BUCKETS_MAX];
    size_t bucket_count;
    tnn_bucket *bucket; /* that runs now */
    tn_symbol *(*generate)(void *arg, tn_app *app, int64_t key);
    void *arg;
    char *inputs[TNN_VALUES_MAX]; /* names of the data, then of the labels */
    uint32_t data_count, label_count;
    int32_t axes[TNN_VALUES_MAX]; /* of their arrays, along which the samples lie; -1: there is none */
    bool bound, predict, input_grads, valued;
    uint32_t mode; /* of the parameters' gradients */
    tnn_bound executors[TNN_EXECUTORS_MAX];
    size_t executor_count;
    uint64_t uses;
    tnn_bound *now[TNN_DEVICES_MAX];  /* of the last forward, one per device that had a part of it */
    size_t now_count;                 /* 0: there was none */
    int64_t samples;                  /* of it */
    int32_t now_axes[TNN_VALUES_MAX]; /* of its arrays, as `axes` */
    tn_trainer *trainer;
    tn_meter *meter; /* of the running tn_module_fit(); NULL */
    char *states;    /* a file to be read once there is an optimizer; NULL */
    tn_monitor_fn monitor;
    void *monitor_arg;
    uint32_t monitor_flags;
};

tn_app *tnn_module_app(const tn_module *m); /* NULL if the module is, or the app has failed */
tnn_param *tnn_module_param(const tn_module *m, const char *name); /* by its variable's name; NULL: none */
/* Shapes of all parameters from those of the inputs and labels that are given (ndim -1: not). */
tn_status tnn_module_infer(tn_module *m, const tnn_shape *in);
/* Output `index` with its labels, without the filler of the running batch of `data`; NULL: there is none. */
void tnn_module_measure(tn_module *m, size_t index, tn_meter *meter, tn_array *labels, const tn_data *data);
/* Executors go: their arrays are no longer the parameters'. */
void tnn_module_unbind(tn_module *m);
/* As tn_module_forward(), of arrays whose samples lie along these axes. */
void tnn_module_forward(tn_module *m, bool train, size_t count, tn_array *const *arrays, const int32_t *axes);
/* Arrays one behind the other along `axis`, on the first device. */
tn_status tnn_module_join(tn_app *app, uint32_t count, tn_array *const *parts, int32_t axis, tn_array **out);
/* From the fields of a data set: which is input or label k, -1: none. */
tn_status tnn_module_fields(tn_app *app, const tn_module *m, const tn_data *data, int *fields);

#endif
