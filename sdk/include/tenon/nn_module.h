/**
 * Modules: symbols that are bound, trained and saved as MXNet's Module and BucketingModule do it. Part of
 * libtenon-nn; errors stick to the app as with nets.
 *
 *     tn_module *m = tn_module_new(app, .json = "mlp-symbol.json");
 *     tn_module_fit(m, train, .valid = test, .epochs = 5, .metric = "accuracy");
 *     tn_module_save(m, "mlp", 5, 1);
 *
 * Or step by step: bind, init_params, init_optimizer, then forward, backward, update.
 *
 * @threads one thread at a time per app
 * @since 0.1
 */
#ifndef TENON_NN_MODULE_H
#define TENON_NN_MODULE_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_module tn_module;
typedef struct tn_params tn_params; /* the core's named arrays, tenon/params.h */

typedef struct tn_module_options {
    TN_NN_HEAD;
    const char *name;          /* for messages; NULL: "module" */
    tn_symbol *symbol;         /* it keeps a reference; NULL: of `json`, or `bucket` */
    const char *json;          /* a -symbol.json */
    const char *const *data;   /* names of the inputs, NULL-ended; NULL: "data" */
    const char *const *labels; /* of the labels; NULL: "softmax_label", if the symbol has it */
    const char *const *fixed;  /* ends of names of parameters that are not trained; one that fits none is
                                  TN_E_KEY. NULL: none */
    /* Several symbols over the same parameters, one for each key (a length, say): it gives the symbol of a
     * key, which the module releases; NULL: failed. Called once for each. */
    tn_symbol *(*bucket)(void *arg, tn_app *app, int64_t key);
    void *arg;
    int64_t key; /* of the bucket that has all parameters */
} tn_module_options;

/** A new module. Owned by the app. Every argument that is neither data nor label is a parameter.
 * @since 0.1 */
TN_API tn_module *tn_module_new_(tn_app *app, const tn_module_options *options);
/**
 * A module of PREFIX-symbol.json with the parameters of PREFIX-0007.params (`epoch` 7), and the optimizer's
 * states of PREFIX-0007.states if `states` is 1. `options`: names; NULL: all defaults.
 * @since 0.1
 */
TN_API tn_module *tn_module_load_(tn_app *app, const char *prefix, int64_t epoch, int32_t states,
                                  const tn_module_options *options);

typedef struct tn_module_bind_options {
    TN_NN_HEAD;
    int64_t shapes[8][8];       /* of each input, (N, …); a 0 ends a shape */
    int64_t label_shapes[8][8]; /* of each label; none: they follow from the inputs */
    int32_t predict;            /* 1: no gradients are computed */
    int32_t input_grads;        /* 1: gradients of the inputs, too */
    int32_t add_grads;          /* 1: gradients of parameters are added to what they hold */
    /* Of each input and label a letter for each axis, as of MXNet's DataDesc: "TN", "TNC". The samples lie
     * along N; without one there are none, and each device has all of the array. NULL: along axis 0 */
    const char *layouts[8], *label_layouts[8];
} tn_module_bind_options;

/** Finds the shapes of all parameters. Batches of other sizes may follow. TN_E_ARG: a layout whose N is
 * behind the shape's last dimension. @since 0.1 */
TN_API void tn_module_bind_(tn_module *m, const tn_module_bind_options *options);
/**
 * First values of all parameters: weights by options.with, the others by the ends of their names as MXNet has
 * them. Parameters that have values keep them.
 * @since 0.1
 */
TN_API void tn_module_init_params_(tn_module *m, const tn_init_options *options);

/** Values by name, with or without "arg:" and "aux:". Nothing changes if one does not fit. @since 0.1 */
TN_API void tn_module_set_params(tn_module *m, const tn_params *params, int32_t flags);
/** All parameters as they stand, "arg:fc1_weight", "aux:bn_moving_mean": the very arrays. Yours
 * (tn_params_destroy); NULL: failed. @since 0.1 */
TN_API tn_params *tn_module_params(tn_module *m);
/**
 * The optimizer. As in MXNet's Module, weight decay acts on parameters called …weight and …gamma alone;
 * attributes lr_mult and wd_mult of the symbol's variables count.
 * @since 0.1
 */
TN_API void tn_module_init_optimizer_(tn_module *m, const tn_trainer_options *options);
/** The module's trainer, for its learning rate, steps, states; borrowed; NULL: init_optimizer is missing.
 * @since 0.1 */
TN_API tn_trainer *tn_module_trainer(tn_module *m);

/** From now on forward runs the symbol of this key. @since 0.1 */
TN_API void tn_module_switch(tn_module *m, int64_t key);
/**
 * Runs one batch: inputs, then labels, in the order of their names. Labels may be left out where no gradient
 * is wanted. Other shapes than those bound to are fine as long as the parameters fit.
 * @param train 1: as in training, and ready for a backward
 * @since 0.1
 */
TN_API void tn_module_forward(tn_module *m, int32_t train, size_t count, tn_array *const *arrays);
/** Gradients of the last forward. `head_grads`: one per output; NULL: ones, which losses do not read.
 * @since 0.1 */
TN_API void tn_module_backward(tn_module *m, tn_array *const *head_grads);
/** One step of the optimizer; gradients are divided by the last batch's samples, or where the optimizer has a
 * .rescale_grad multiplied by that. @since 0.1 */
TN_API void tn_module_update(tn_module *m);
/** Outputs of the symbol. @since 0.1 */
TN_API size_t tn_module_output_count(const tn_module *m);
/** Output `index` of the last forward; borrowed; the next forward of such a batch overwrites it. Of several
 * devices (option device.default), each of which had a part of the batch in training: all parts in order, in
 * a temporary, along axis 0, or along N of the output's attribute "__layout__" (without N: the first part).
 * NULL: there is none. @since 0.1 */
TN_API tn_array *tn_module_output(tn_module *m, size_t index);
/** Gradient of input `index`; borrowed; NULL: there is none. Of several devices as tn_module_output(); of an
 * input without samples the first device's. @since 0.1 */
TN_API tn_array *tn_module_input_grad(tn_module *m, size_t index);
/** Adds the last outputs and these labels to a meter. @since 0.1 */
TN_API void tn_module_measure(tn_module *m, tn_meter *meter, tn_array *labels);
/** As tn_executor_monitor(), for every forward to come. @since 0.1 */
TN_API void tn_module_monitor(tn_module *m, void (*fn)(void *arg, const char *name, tn_array *array),
                              void *arg, uint32_t flags);

typedef struct tn_module_fit_options {
    TN_NN_HEAD;
    tn_data *valid;     /* measured after each epoch; NULL: none */
    const char *metric; /* as of tn_meter_new(); of several the first is told. NULL: accuracy */
    int64_t epochs;     /* of all; 0: 1 */
    int64_t first;      /* number of the first epoch, from 0 */
    const char *prefix; /* PREFIX-0001.params … after each epoch, with states; NULL: none */
    /* After each batch (`valid` NaN), and after each epoch (batch -1). Not 0: stop. */
    int32_t (*event)(void *arg, tn_module *m, int64_t epoch, int64_t batch, double train, double valid);
    void *arg;
    int64_t every; /* epochs from one file of `prefix` to the next, as do_checkpoint's period; 0: 1 */
    /* Instead of `metric`: the program's, with all of its values in `event`. NULL: one like `meter` for
     * `valid`. The two share no metric. */
    tn_meter *meter, *valid_meter;
} tn_module_fit_options;

/**
 * Trains. What was not done before is done with defaults: bind (to the data's shapes), init_params (xavier),
 * init_optimizer (sgd). Fields of the data are taken by the names of inputs and labels, else by their order.
 * Samples lie along the axis that the data says, here and in score and predict, whatever the module was bound
 * to: in batches of tn_data_from_sentences() with .layout "TN" along axis 1. Where labels and outputs have
 * them along different axes, a metric takes the part of each device by itself, as one batch.
 * @since 0.1
 */
TN_API void tn_module_fit_(tn_module *m, tn_data *data, const tn_module_fit_options *options);
/**
 * An .event of tn_module_fit_options, whose .arg is a tn_speed: each so many batches a line with samples per
 * second and the metrics of the epoch so far, as MXNet's Speedometer writes it with auto_reset=False:
 * "epoch 0, batch 50: 1234.5 samples/s, accuracy 0.912500". Reads the metrics, so it waits. @return 0
 * @since 0.1
 */
TN_API int32_t tn_module_speed(void *speed, tn_module *m, int64_t epoch, int64_t batch, double train,
                               double valid);
/** Mean of a metric (NULL: accuracy) over a data set, of output 0 and the first labels, or of each output and
 * its labels if there are as many; NaN on error. @since 0.1 */
TN_API double tn_module_score(tn_module *m, tn_data *data, const char *metric);
/** The same by a meter of the program, which begins anew and then has all values. @since 0.1 */
TN_API double tn_module_score_by(tn_module *m, tn_data *data, tn_meter *meter);
/** Output `index` for all samples of a data set, one batch behind the other along axis 0, whatever axis the
 * samples lie along, as MXNet's; borrowed as tn_net_forward()'s; NULL: failed. @since 0.1 */
TN_API tn_array *tn_module_predict(tn_module *m, tn_data *data, size_t index);
/**
 * Writes PREFIX-symbol.json, PREFIX-0007.params (`epoch` 7) and, with `states`, PREFIX-0007.states. MXNet
 * reads the first two.
 * @since 0.1
 */
TN_API void tn_module_save(tn_module *m, const char *prefix, int64_t epoch, int32_t states);

#ifndef __cplusplus
#define tn_module_new(...) TN_NN_CALL_(tn_module_new_, tn_module_options, __VA_ARGS__)
#define tn_module_bind(...) TN_NN_CALL_(tn_module_bind_, tn_module_bind_options, __VA_ARGS__)
#define tn_module_init_params(...) TN_NN_CALL_(tn_module_init_params_, tn_init_options, __VA_ARGS__)
#define tn_module_init_optimizer(...) TN_NN_CALL_(tn_module_init_optimizer_, tn_trainer_options, __VA_ARGS__)
/* tn_module_load(app, "mlp", 5, 1, .labels = names) */
#define tn_module_load(...) TN_NN_LOAD_(__VA_ARGS__, )
#define TN_NN_LOAD_(app, prefix, epoch, states, ...)                                                         \
    tn_module_load_(app, prefix, epoch, states,                                                              \
                    &(const tn_module_options){TN_NN_HERE_(tn_module_options), __VA_ARGS__})
/* tn_module_fit(m, data, .epochs = 5) */
#define tn_module_fit(...) TN_NN_MODULE_FIT_(__VA_ARGS__, )
#define TN_NN_MODULE_FIT_(m, data, ...)                                                                      \
    tn_module_fit_(m, data, &(const tn_module_fit_options){TN_NN_HERE_(tn_module_fit_options), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif

#endif
