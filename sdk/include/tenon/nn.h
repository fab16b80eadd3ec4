/**
 * Nets, losses, metrics, optimizers, data and training: what Gluon is, for C.
 *
 * Everything hangs on a tn_app. The first error sticks to it: later calls do nothing and return NULL, 0 or
 * NaN, so a program checks once, at the end. tn_app_close() reports that error, frees everything and returns
 * the exit code.
 *
 * Options are designated initialisers in a macro of the function's name, which also notes the caller's file
 * and line for error messages. The function behind it, with a `_` at the end, takes the same options as a
 * struct; C++ and foreign languages call that one. A member that is left out (0, NULL) has the default its
 * comment names.
 *
 * Arrays that these calls return are borrowed. They live until the data set they were made under gives its
 * next batch, or until tn_app_release(); tn_array_retain() keeps one longer.
 *
 * @threads one thread at a time per app, unless a function says otherwise
 * @since 0.1
 */
#ifndef TENON_NN_H
#define TENON_NN_H

#include <stdio.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_ctx tn_ctx;         /* the core's context, tenon/context.h */
typedef struct tn_array tn_array;     /* the core's array, tenon/array.h */
typedef struct tn_symbol tn_symbol;   /* the core's symbol, tenon/symbol.h */
typedef struct tn_app tn_app;         /* an error, a device and all that was made with them */
typedef struct tn_net tn_net;         /* a function over values, a chain of layers, or a loaded model */
typedef struct tn_value_handle *tn_x; /* a value in a net's function, tenon/nn_values.h */
typedef struct tn_data tn_data;       /* samples in batches */
typedef struct tn_meter tn_meter;     /* a mean over samples */
typedef struct tn_trainer tn_trainer; /* an optimizer, a schedule and their states */
typedef struct tn_train tn_train;     /* a whole training, with checkpoints */

/* Of every options struct: its size and where the call stands. */
#define TN_NN_HEAD                                                                                           \
    uint32_t struct_size;                                                                                    \
    int32_t line;                                                                                            \
    const char *file

/* ---- app ---- */

typedef struct tn_app_options {
    TN_NN_HEAD;
    const char *name;            /* of the program, for messages; NULL: "tenon" */
    const char *config;          /* a configuration file, as --config; NULL: none */
    const char *const *settings; /* "section.key=value", as --set; NULL-ended; NULL: none */
    const char *device;          /* "cpu", "cuda:0"; NULL: option device.default */
    int32_t no_environment;      /* 1: TENON_ and MXNet's variables are not read */
    FILE *errors;                /* tn_app_close() and tn_app_report() write the error here; NULL: nowhere */
    void (*on_error)(void *arg, const char *text); /* called once, when the first error happens; NULL */
    /* Messages of the core, as tn_log_fn: called from any thread, several at once; must not call Tenon. NULL:
     * none. */
    void (*log)(void *arg, int32_t level, const char *text);
    void *arg;     /* of both */
    int32_t local; /* 1: ./tenon.ini is read, too, where it is; it may not say where plugins lie */
} tn_app_options;

/**
 * Opens everything. Never fails visibly: an error sticks to the app that is returned.
 *
 * @param options NULL: all defaults
 * @return an app; NULL only if there is no memory for it, which all functions here take, and tn_app_close()
 * tells
 * @threads any
 * @since 0.1
 */
TN_API tn_app *tn_app_open_(const tn_app_options *options);

/**
 * Waits for all work, reports the first error to options.errors, frees the app and all that hangs on it.
 *
 * @return exit code: 0 no error · 1 the run failed · 2 usage, configuration, or a file to read is not there ·
 * 3 a plugin or device is missing · 4 data is damaged · 5 out of memory · 6 a peer was lost · 130 stopped on
 * request
 * @since 0.1
 */
TN_API int tn_app_close(tn_app *app);

/** 1: nothing failed so far. @since 0.1 */
TN_API int tn_app_ok(const tn_app *app);
/** The first error: one line, or several; "" if nothing failed. Borrowed until tn_app_clear(). @since 0.1 */
TN_API const char *tn_app_error(const tn_app *app);
/** Its status; TN_OK if nothing failed. @since 0.1 */
TN_API tn_status tn_app_status(const tn_app *app);
/** What tn_app_close() would return. @since 0.1 */
TN_API int tn_app_exit_code(const tn_app *app);
/** Writes the error to options.errors now; tn_app_close() does not repeat it. @since 0.1 */
TN_API void tn_app_report(tn_app *app);
/** Forgets the error: calls work again. Objects whose making failed stay unusable. @since 0.1 */
TN_API void tn_app_clear(tn_app *app);
/**
 * Makes `status` with a text of the caller the app's error, if it has none yet.
 * @return `status`
 * @since 0.1
 */
TN_API tn_status tn_app_fail(tn_app *app, tn_status status, const char *text);
/**
 * The same with a number of tenon/errors.h, such as 1501: its status and its exit code.
 * @param number one that tn_error_find() knows; else the error is TN_E_ARG and names the number
 * @return the status
 * @since 0.1
 */
TN_API tn_status tn_app_fail_number(tn_app *app, uint32_t number, const char *text);
/** As tn_app_fail() with the core's status and text of this thread, tn_error_text(); TN_OK: nothing. @since
 * 0.1 */
TN_API tn_status tn_app_check(tn_app *app, tn_status status);
/** The core's context below, for calls of tenon/op.h and the like; NULL if it could not be opened.
 * @since 0.1 */
TN_API tn_ctx *tn_app_ctx(const tn_app *app);
/** Name of the device that nets and data live on, such as "cpu:0". @since 0.1 */
TN_API const char *tn_app_device(const tn_app *app);

/** How many devices option device.default lists: nets can be trained on all of them together. A call of a net
 * runs where its first input lies, with the parameters of that device. @since 0.1 */
TN_API size_t tn_app_devices(const tn_app *app);
/** Rows of a batch for device `index` of these, on it, a temporary: N / devices, in order. NULL: failed.
 * @since 0.1 */
TN_API tn_array *tn_app_part(tn_app *app, tn_array *array, size_t index);

/** Takes `array` (from a core call) into the app's care: it is released with the temporaries. @since 0.1 */
TN_API tn_array *tn_app_own(tn_app *app, tn_array *array);
/** How many temporaries there are: for tn_app_release() after a piece of work outside a loop over data.
 * @since 0.1 */
TN_API size_t tn_app_mark(const tn_app *app);
/** Releases the temporaries made since `mark`. @since 0.1 */
TN_API void tn_app_release(tn_app *app, size_t mark);
/**
 * A new array on the app's device.
 * @param values row-major, of `shape`; NULL: zeros
 * @param ndim   0 to 32
 * @since 0.1
 */
TN_API tn_array *tn_app_array(tn_app *app, int32_t ndim, const int64_t *shape, const float *values);
/** Copies `count` numbers out, after waiting for them; `count` must be the array's. 1: done. @since 0.1 */
TN_API int tn_app_read(tn_app *app, tn_array *array, size_t count, float *out);

/** From here on this thread records operators, and layers behave as in training. @since 0.1 */
TN_API void tn_app_record(tn_app *app);
/** Ends recording without a backward pass. @since 0.1 */
TN_API void tn_app_pause(tn_app *app);
/** Ends recording; gradients of the sum of all elements of `loss` into the parameters. @since 0.1 */
TN_API void tn_app_backward(tn_app *app, tn_array *loss);

/* ---- nets ---- */

/*
 * Activations by name: relu, sigmoid, tanh, softrelu, softsign. Names of layers: given, or kind and number
 * within their net: conv0, conv1, pool0, dense0. Data is (N, C, H, W). Of a pair such as .kernel, a second
 * number of 0 stands for the first one, except in .pad.
 */
typedef struct tn_net_options {
    TN_NN_HEAD;
    const char *name; /* NULL: "net", or kind and number of a nested one */
} tn_net_options;

typedef struct tn_dense_options {
    TN_NN_HEAD;
    const char *name;
    int64_t units;          /* output width, at least 1 */
    const char *activation; /* NULL: none */
    int32_t no_bias;        /* 1: no bias */
    int32_t keep_axes;      /* 1: works on the last axis alone; 0: flattens (N, …) to (N, width) first */
    int64_t input;          /* input width; 0: found at the first forward */
    int32_t share;          /* 1: in a function, other calls of this name use the same parameters */
    tn_x weight, bias;      /* in a function: parameters of other layers, tn_param(); NULL: its own */
} tn_dense_options;

typedef struct tn_conv2d_options {
    TN_NN_HEAD;
    const char *name;
    int64_t channels;       /* output channels, at least 1 */
    int32_t kernel[2];      /* at least 1 */
    int32_t stride[2];      /* 0: 1 */
    int32_t pad[2];         /* zeros on both sides */
    int32_t dilate[2];      /* 0: 1 */
    int32_t groups;         /* 0: 1 */
    const char *activation; /* NULL: none */
    int32_t no_bias;        /* 1: no bias */
    int64_t input;          /* input channels; 0: found at the first forward */
    int32_t share;          /* these as of tn_dense_options */
    tn_x weight, bias;
} tn_conv2d_options;

typedef struct tn_pool2d_options {
    TN_NN_HEAD;
    const char *name;
    int32_t kernel[2]; /* 0: 2 */
    int32_t stride[2]; /* 0: as kernel */
    int32_t pad[2];
    int32_t ceil;        /* 1: a last window that hangs over the edge counts ("full") */
    int32_t exclude_pad; /* 1: an average is over what lies inside the input only */
} tn_pool2d_options;

typedef struct tn_conv_options { /* of 1 or 3 axes; as tn_conv2d_options */
    TN_NN_HEAD;
    const char *name;
    int64_t channels;
    int32_t kernel[3], stride[3], pad[3], dilate[3]; /* of one axis the first counts */
    int32_t groups, no_bias;
    const char *activation;
    int64_t input;
    int32_t share;
    tn_x weight, bias;
} tn_conv_options;

typedef struct tn_convtranspose_options { /* as tn_conv_options, of 1 to 3 axes */
    TN_NN_HEAD;
    const char *name;
    int64_t channels;
    int32_t kernel[3], stride[3], pad[3], dilate[3];
    int32_t adjust[3]; /* added to the output's sides, below the stride */
    int32_t groups, no_bias;
    const char *activation;
    int64_t input;
    int32_t share;
    tn_x weight, bias;
} tn_convtranspose_options;

typedef struct tn_pool_options { /* of 1 or 3 axes; as tn_pool2d_options */
    TN_NN_HEAD;
    const char *name;
    int32_t kernel[3], stride[3], pad[3];
    int32_t ceil, exclude_pad;
} tn_pool_options;

typedef struct tn_batchnorm_options {
    TN_NN_HEAD;
    const char *name;
    double momentum;    /* of the running mean and variance; 0: 0.9 */
    double epsilon;     /* 0: 1e-5 */
    int32_t axis;       /* of the channels; 0: 1 */
    int32_t no_scale;   /* 1: gamma stays 1 */
    int32_t no_center;  /* 1: beta stays 0 */
    int32_t use_global; /* 1: running statistics in training, too */
    int32_t share;      /* as of tn_dense_options */
} tn_batchnorm_options;

typedef struct tn_layernorm_options {
    TN_NN_HEAD;
    const char *name;
    double epsilon;              /* 0: 1e-5 */
    int32_t axis;                /* 0: the last one */
    int32_t share;               /* as of tn_dense_options */
    int32_t no_scale, no_center; /* 1: gamma stays 1; beta stays 0 */
} tn_layernorm_options;

typedef struct tn_instancenorm_options {
    TN_NN_HEAD;
    const char *name;
    double epsilon;    /* 0: 1e-5 */
    int32_t scale;     /* 1: gamma is trained; 0: it stays 1, as Gluon has it */
    int32_t share;     /* as of tn_dense_options */
    int32_t no_center; /* 1: beta stays 0 */
    int32_t reserved;
} tn_instancenorm_options;

typedef struct tn_groupnorm_options {
    TN_NN_HEAD;
    const char *name;
    double epsilon;              /* 0: 1e-5 */
    int32_t groups;              /* 0: 1 */
    int32_t share;               /* as of tn_dense_options */
    int32_t no_scale, no_center; /* 1: gamma stays 1; beta stays 0 */
} tn_groupnorm_options;

typedef struct tn_embedding_options {
    TN_NN_HEAD;
    const char *name;
    int64_t count; /* rows: numbers from 0 to below it are looked up; at least 1 */
    int64_t units; /* width of a row, at least 1 */
    int32_t share; /* these as of tn_dense_options */
    tn_x weight;
    int32_t sparse_grad; /* 1: the weight's gradient is row_sparse: rows that are looked up. sgd, adam and
                            ftrl update these rows alone */
} tn_embedding_options;

typedef struct tn_dropout_options {
    TN_NN_HEAD;
    const char *name;
    double rate;      /* share of elements that become 0 in training, 0 to below 1 */
    const char *axes; /* "1" or "0,2": one draw holds for all elements along these axes; NULL: none */
} tn_dropout_options;

typedef struct tn_activation_options {
    TN_NN_HEAD;
    const char *name;
    const char *activation; /* relu, sigmoid, tanh, softrelu, softsign */
} tn_activation_options;

typedef struct tn_leakyrelu_options {
    TN_NN_HEAD;
    const char *name;
    double slope; /* below 0; 0: 0.25 */
} tn_leakyrelu_options;

typedef struct tn_reflectionpad_options {
    TN_NN_HEAD;
    const char *name;
    int32_t pad;      /* rows and columns on all four sides */
    int32_t sides[4]; /* in its place: above, below, left, right */
} tn_reflectionpad_options;

typedef struct tn_prelu_options {
    TN_NN_HEAD;
    const char *name;
    int64_t channels; /* slopes: one for all, or one for each channel; 0: 1 */
    int32_t share;    /* as of tn_dense_options */
} tn_prelu_options;

typedef struct tn_elu_options {
    TN_NN_HEAD;
    const char *name;
    double alpha; /* 0: 1 */
} tn_elu_options;

typedef struct tn_init_options {
    TN_NN_HEAD;
    /* of weights: xavier, msraprelu, normal, uniform, constant, zero, one, orthogonal, bilinear (for
     * transposed convolutions), lstmbias (for tn_net_init_where: the second quarter), fusedrnn (the vector of
     * an RNN's parameters), in letters of any size, as MXNet's zeros and ones; NULL: xavier */
    const char *with;
    double magnitude;         /* xavier: 0: 3 */
    const char *factor;       /* xavier, msraprelu: avg, in, out; NULL: avg */
    const char *distribution; /* xavier, orthogonal: uniform, normal (or gaussian); NULL: uniform */
    double slope;             /* msraprelu: of the PReLU behind; 0: 0.25 */
    /* normal: sigma, 0: 0.01; uniform: bound, 0: 0.07; orthogonal: length, 0: 1.414; lstmbias: 0: 1;
     * constant: the value */
    double scale;
    uint64_t seed;        /* 0: option run.seed */
    int64_t shape[8];     /* of the input, (N, C, H, W): sizes are found now; 0: at the first forward */
    int64_t shapes[8][8]; /* the same of each input of a net with several */
    /* The first row whose pattern fits a parameter's name, from its beginning on, is taken in the place of
     * what is above; the last row has no pattern. No row that fits: an error. NULL: none. Copied. */
    const struct tn_init_row *mixed;
    /* A file of tn_params_save() or MXNet's: parameters that it names have its values, whatever is above. An
     * array of another shape is an error. NULL: none. */
    const char *load;
    /* fusedrnn, as MXNet's FusedRNN: how the weights of each gate begin, with the numbers above; NULL: as the
     * net says, by names such as l0_i2h_f_weight. Biases are 0 but for those of an LSTM's forget gates. */
    const char *weights;
    const char *mode; /* lstm, gru, rnn_relu, rnn_tanh; NULL: lstm */
    int64_t units;    /* of the state */
    int32_t layers;   /* 0: 1 */
    int32_t bidirectional;
    double forget_bias;     /* 0: 1 */
    int32_t no_forget_bias; /* 1: it is 0 */
    int32_t reserved;
} tn_init_options;

/** A pattern (a POSIX extended expression) of names, with their initialiser. */
typedef struct tn_init_row {
    const char *pattern;
    tn_init_options init; /* with, magnitude, factor, distribution, slope, scale, and those of fusedrnn */
} tn_init_row;

typedef struct tn_hybridize_options {
    TN_NN_HEAD;
    int32_t off;          /* 1: layer by layer again */
    int32_t static_alloc; /* 1: memory stays bound between calls */
    int32_t static_shape; /* 1: shapes seldom change (needs static_alloc): programs for others go at once */
    int32_t inline_limit; /* smaller nets are called operator by operator, without static_alloc; 0: none */
    int32_t forward_bulk, backward_bulk; /* instructions of an operation of the engine at most; 0: no limit */
} tn_hybridize_options;

/** A new net. Owned by the app. @since 0.1 */
TN_API tn_net *tn_net_new_(tn_app *app, const tn_net_options *options);
/** A net within a net, in this place; layers are added to what is returned. @since 0.1 */
TN_API tn_net *tn_net_sequential_(tn_net *net, const tn_net_options *options);
/**
 * A function over values (tn_net_function) as the next layer of a chain: its parameters join those of the
 * chain, "2.conv0.weight". It must not have been called before, and have one input and one output.
 * @since 0.1
 */
TN_API void tn_net_add(tn_net *net, tn_net *function);
/** Fully connected: y = activation(x w' + b). @since 0.1 */
TN_API void tn_net_dense_(tn_net *net, const tn_dense_options *options);
/** Two-dimensional convolution. @since 0.1 */
TN_API void tn_net_conv2d_(tn_net *net, const tn_conv2d_options *options);
/** Largest, or mean, of each window. @since 0.1 */
TN_API void tn_net_maxpool2d_(tn_net *net, const tn_pool2d_options *options);
TN_API void tn_net_avgpool2d_(tn_net *net, const tn_pool2d_options *options);
/** Mean of each channel: (N, C, H, W) to (N, C, 1, 1). @since 0.1 */
TN_API void tn_net_globalavgpool2d_(tn_net *net, const tn_net_options *options);
/** Batch normalisation. @since 0.1 */
TN_API void tn_net_batchnorm_(tn_net *net, const tn_batchnorm_options *options);
/** The same, with a ReLU behind it, as one operator. @since 0.1 */
TN_API void tn_net_batchnormrelu_(tn_net *net, const tn_batchnorm_options *options);
/**
 * The same over all parts of a batch: Gluon's SyncBatchNorm. Of one device that is tn_net_batchnorm(). Of
 * several (device.default) training runs it on the part of each before anything of it is waited for; where
 * one does not, the others fail with TN_E_TIMEOUT (plugin.cpu.sync_timeout). Float16 is not served then, nor
 * are devices other than the host's or engine.type=naive (TN_E_UNSUPPORTED). A file has no number of devices:
 * tn_net_from_symbol() and a module's `.json` take those of the app that reads it.
 * @since 0.1
 */
TN_API void tn_net_syncbatchnorm_(tn_net *net, const tn_batchnorm_options *options);
/** Each sample normalised over an axis. @since 0.1 */
TN_API void tn_net_layernorm_(tn_net *net, const tn_layernorm_options *options);
/** A row of a table for each number: (N, …) to (N, …, units). @since 0.1 */
TN_API void tn_net_embedding_(tn_net *net, const tn_embedding_options *options);
/** Dropout: in training only. @since 0.1 */
TN_API void tn_net_dropout_(tn_net *net, const tn_dropout_options *options);
/** (N, …) to (N, width). @since 0.1 */
TN_API void tn_net_flatten_(tn_net *net, const tn_net_options *options);
/** Convolution of sequences (N, C, W). @since 0.1 */
TN_API void tn_net_conv1d_(tn_net *net, const tn_conv_options *options);
/** Convolution of volumes (N, C, D, H, W). @since 0.1 */
TN_API void tn_net_conv3d_(tn_net *net, const tn_conv_options *options);
/** Largest of each window, of sequences; of volumes. @since 0.1 */
TN_API void tn_net_maxpool1d_(tn_net *net, const tn_pool_options *options);
TN_API void tn_net_maxpool3d_(tn_net *net, const tn_pool_options *options);
/** Mean of each window, of sequences; of volumes. @since 0.1 */
TN_API void tn_net_avgpool1d_(tn_net *net, const tn_pool_options *options);
TN_API void tn_net_avgpool3d_(tn_net *net, const tn_pool_options *options);
/** Largest, or mean, of each channel. @since 0.1 */
TN_API void tn_net_globalmaxpool1d_(tn_net *net, const tn_net_options *options);
TN_API void tn_net_globalmaxpool2d_(tn_net *net, const tn_net_options *options);
TN_API void tn_net_globalmaxpool3d_(tn_net *net, const tn_net_options *options);
TN_API void tn_net_globalavgpool1d_(tn_net *net, const tn_net_options *options);
TN_API void tn_net_globalavgpool3d_(tn_net *net, const tn_net_options *options);
/** Each channel of each sample normalised. @since 0.1 */
TN_API void tn_net_instancenorm_(tn_net *net, const tn_instancenorm_options *options);
/** Groups of channels of each sample normalised. @since 0.1 */
TN_API void tn_net_groupnorm_(tn_net *net, const tn_groupnorm_options *options);
/** x above 0, below it x times a parameter. @since 0.1 */
TN_API void tn_net_prelu_(tn_net *net, const tn_prelu_options *options);
/** x above 0, alpha (exp(x) - 1) below. @since 0.1 */
TN_API void tn_net_elu_(tn_net *net, const tn_elu_options *options);
/** ELU with the scale that keeps mean 0 and variance 1; x times the normal distribution at x. @since 0.1 */
TN_API void tn_net_selu_(tn_net *net, const tn_net_options *options);
TN_API void tn_net_gelu_(tn_net *net, const tn_net_options *options);
/** Transposed convolution: from each pixel a window of a larger plane. @since 0.1 */
TN_API void tn_net_conv1dtranspose_(tn_net *net, const tn_convtranspose_options *options);
TN_API void tn_net_conv2dtranspose_(tn_net *net, const tn_convtranspose_options *options);
TN_API void tn_net_conv3dtranspose_(tn_net *net, const tn_convtranspose_options *options);
TN_API void tn_net_activation_(tn_net *net, const tn_activation_options *options);
TN_API void tn_net_leakyrelu_(tn_net *net, const tn_leakyrelu_options *options);
/** Images with their reflection around them, less wide than they are. @since 0.1 */
TN_API void tn_net_reflectionpad2d_(tn_net *net, const tn_reflectionpad_options *options);
/**
 * A net of the zoo: "lenet", "mlp", or one of the 34 of MXNet's gluon.model_zoo.vision by its name there,
 * "resnet50_v1", "mobilenet1.0"; capitals and ".", "_", "-" make no difference, "zoo:" may stand in front,
 * "_v1" and "1.0" may be left out: "resnet50", "mobilenet".
 * Graphs and names of parameters are MXNet's: tn_net_load_params() takes what Gluon has saved of such a net,
 * and Gluon loads what tn_net_save() writes.
 *
 * Numbers of the net are the options model.*: classes (1000; LeNet, MLP 10), dropout (0.5; DenseNet 0),
 * thumbnail (0; 1: a ResNet for small images), batch_norm of VGG, bn_size (4) of DenseNet; of LeNet pad (2;
 * 0: as MXNet's example has it); of LeNet and the MLP activation. One that the net does not have is an error.
 * @since 0.1
 */
TN_API tn_net *tn_net_zoo(tn_app *app, const char *name);
/** The zoo's name for a net, such as "mobilenet1.0" for "zoo:MobileNet1_0"; NULL: there is none, or `name` is
 * NULL. @threads any @since 0.1 */
TN_API const char *tn_net_zoo_find(const char *name);
/** Names in the zoo, NULL-ended. @threads any @since 0.1 */
TN_API const char *const *tn_net_zoo_names(void);

/**
 * Gives every parameter its first values: weights by options.with, biases, betas and running means 0, gammas
 * and running variances 1. Without options.shape that happens at the first forward. Parameter number i of a
 * net (in order of appearance) has the same values for the same seed on every device, whatever was made
 * before it.
 * @since 0.1
 */
TN_API void tn_net_init_(tn_net *net, const tn_init_options *options);
/**
 * The same of the parameters whose name ends with `suffix`, such as ".i2h.bias", whatever they are and
 * have: after tn_net_init() with a shape, or a first call. A .seed of 0 keeps that of tn_net_init(). No
 * such parameter: an error.
 * @since 0.1
 */
TN_API void tn_net_init_where_(tn_net *net, const char *suffix, const tn_init_options *options);
/** From now on the net runs as one compiled program; the numbers are the same. @since 0.1 */
TN_API void tn_net_hybridize_(tn_net *net, const tn_hybridize_options *options);
/**
 * Parameters of the net and all within it, also those to come, are of this type from now on: float32,
 * float64, float16, bfloat16; those of BatchNorm stay in float32 in place of the last two. Inputs are the
 * program's: an operator Cast in front (tn_op), or arrays of that type. A trainer is made afterwards; its
 * .multi_precision keeps float32 copies.
 * @since 0.1
 */
TN_API void tn_net_cast(tn_net *net, const char *dtype);
/**
 * Factors of the learning rate and weight decay of the parameters whose name ends with `suffix`, such as
 * ".bias". Both are 1 at first, as in Gluon. No such parameter: an error.
 * @since 0.1
 */
TN_API void tn_net_multiply(tn_net *net, const char *suffix, double lr_factor, double wd_factor);
/** Runs the net on `x`; borrowed. In training after tn_app_record(). @since 0.1 */
TN_API tn_array *tn_net_forward(tn_net *net, tn_array *x);
/**
 * The same of a net with several inputs or outputs, which must be as many as the net has; out[] is borrowed.
 * @return 1: done
 * @since 0.1
 */
TN_API int tn_net_run(tn_net *net, size_t in_count, tn_array *const *in, size_t out_count, tn_array **out);
/** How many inputs it has. @since 0.1 */
TN_API size_t tn_net_input_count(const tn_net *net);
/** A hybridized function is traced anew at its next call; a chain is compiled anew. @since 0.1 */
TN_API void tn_net_retrace(tn_net *net);
/** Mean over a data set, in its order: "accuracy", "loss" (softmax cross-entropy), "l1", "l2"; NaN on error.
 * @since 0.1 */
TN_API double tn_net_eval(tn_net *net, tn_data *data, const char *metric);

/**
 * Whether the net takes an input of this shape, and of the type that it was cast to (tn_net_cast); its
 * weights' shapes count. Nothing runs, and the app does not fail.
 * @param ndim      0 to 8
 * @param out_ndim  dimensions of the (first) output; -1: they do not follow
 * @param out_shape of it; -1: a dimension that does not follow
 * @return 1: it does; 0: it does not, and tn_error_text() says why
 * @since 0.1
 */
TN_API int tn_net_takes(tn_net *net, int32_t ndim, const int64_t *shape, int32_t *out_ndim,
                        int64_t out_shape[8]);

/* What the numbers of a net's output are. */
#define TN_GIVES_SCORES 0        /* any, the largest is the class */
#define TN_GIVES_PROBABILITIES 1 /* softmax, SoftmaxOutput */
#define TN_GIVES_LOGARITHMS 2    /* of probabilities: log_softmax */
#define TN_GIVES_OTHER 3         /* not of a classifier */

/** TN_GIVES_SCORES …: of a loaded model by its last operator, of any other net scores. @since 0.1 */
TN_API int32_t tn_net_gives(const tn_net *net);

/** One output of a net. A loaded model may have several; tn_net_forward() gives the first. */
typedef struct tn_net_output {
    uint32_t struct_size; /* set by the caller: sizeof(tn_net_output) */
    int32_t gives;    /* TN_GIVES_…; among several outputs scores are not taken for those of a classifier */
    const char *name; /* in the graph of a model, "output" of any other net; borrowed */
    int32_t ndim;     /* -1: not known */
    int32_t reserved;
    int64_t shape[8]; /* -1: a dimension that does not follow */
} tn_net_output;

/** Outputs of the net; 0: failed. @since 0.1 */
TN_API size_t tn_net_output_count(const tn_net *net);
/**
 * An output by index, and its shape for an input of `shape` (as tn_net_takes; NULL: nothing is asked about
 * it).
 * @return 1: done; 0: the index is too large, struct_size is 0, or the net does not take the input
 * @since 0.1
 */
TN_API int tn_net_output_at(tn_net *net, size_t index, int32_t ndim, const int64_t *shape,
                            tn_net_output *out);
/**
 * As tn_net_forward(), but all outputs.
 * @param count of tn_net_output_count(); another one is an error
 * @param out   gets them, borrowed as tn_net_forward()'s
 * @return 1: done
 * @since 0.1
 */
TN_API int tn_net_forward_all(tn_net *net, tn_array *x, size_t count, tn_array **out);

/** Reads names of classes: a text file with a name per line. A loaded model has those of a classes.txt beside
 * its graph. 1: done. @since 0.1 */
TN_API int tn_net_name_classes(tn_net *net, const char *path);
/** Reads what tn_data_about_save() wrote: names of the classes, and the units of a regression. 1: done.
 * @since 0.1 */
TN_API int tn_net_about(tn_net *net, const char *path);
/** As tn_data_units(), of a net that tn_net_about() was called for. 1: the net is one of a regression.
 * @since 0.1 */
TN_API int tn_net_units(const tn_net *net, double *mean, double *deviation);
/** Name of class `index`, borrowed; NULL: it has none. @since 0.1 */
TN_API const char *tn_net_class_name(const tn_net *net, int64_t index);

/** What tn_net_evaluate() found. */
typedef struct tn_evaluation {
    uint32_t struct_size; /* set by the caller: sizeof(tn_evaluation) */
    uint32_t reserved;
    int64_t samples, classes, right;
    double accuracy;
    double loss; /* softmax cross-entropy; NaN if the net's outputs are not those of a classifier */
    /* classes × classes: how often samples of the row's class were taken for the column's. Lives as long as
     * the app; NULL: over 2048 classes. */
    const int64_t *confusion;
    double rmse, mae, r2; /* of a regression (TN_TASK_NUMBERS), in the units of the file; else NaN */
} tn_evaluation;

/**
 * Runs a classifier, or a regression if the data is one, over a data set, in its order. Of a loaded
 * classifier the last operator says what it gives: class scores, softmax, log_softmax, SoftmaxOutput.
 * @return 1: done; 0: an error, before anything has run if model and data do not fit
 * @since 0.1
 */
TN_API int tn_net_evaluate(tn_net *net, tn_data *data, tn_evaluation *out);

/** Layers: how many, nested ones counted. @since 0.1 */
TN_API size_t tn_net_layers(const tn_net *net);
/** Parameters (arrays), in order of appearance, auxiliary ones included. @since 0.1 */
TN_API size_t tn_net_param_count(const tn_net *net);
/** Structural name of parameter `index` ("0.weight", "features.1.bias"); NULL: none. @since 0.1 */
TN_API const char *tn_net_param_name(const tn_net *net, size_t index);
/** Its array; borrowed; NULL if its shape is not known yet. @since 0.1 */
TN_API tn_array *tn_net_param(tn_net *net, const char *name);
/** Its gradient after tn_app_backward(); borrowed; NULL for auxiliary ones. @since 0.1 */
TN_API tn_array *tn_net_param_grad(tn_net *net, const char *name);
/** Elements of all parameters; 0 while shapes are not known. @since 0.1 */
TN_API int64_t tn_net_param_elements(const tn_net *net);

/** Parameters under their structural names. @since 0.1 */
TN_API void tn_net_save(tn_net *net, const char *path);
/** Reads what tn_net_save() or tn_net_export() wrote, or Gluon for the same net; names and shapes must be the
 * net's, but names of graphs may begin with another net's name. @since 0.1 */
TN_API void tn_net_load_params(tn_net *net, const char *path);

#define TN_PARAMS_MISSING 1 /* parameters that the file, or list, does not have keep their values */
#define TN_PARAMS_EXTRA 2   /* names that the net, or module, does not have are passed over */
/**
 * The same with Gluon's allow_missing and ignore_extra: a net with another head takes the values of its body,
 * by both flags. Arrays of both must have the same shape.
 * @param flags TN_PARAMS_…; 0: as tn_net_load_params()
 * @return how many parameters have got values; 0: failed, also where the file has none of them (TN_E_KEY)
 * @since 0.1
 */
TN_API size_t tn_net_load_some(tn_net *net, const char *path, int32_t flags);
/** Writes PREFIX-symbol.json and PREFIX-0000.params, which MXNet reads; the input is called `data`. On an
 * error neither is changed; but in a folder without hard links whose PREFIX-symbol.json cannot be replaced
 * the parameters may be. @since 0.1 */
TN_API void tn_net_export(tn_net *net, const char *prefix);
/**
 * The net as a symbol over the variable `data`; yours (tn_symbol_release). Needs no shapes and no values.
 * @since 0.1
 */
TN_API tn_symbol *tn_net_symbol(tn_net *net);
/** SHA-256 over the arrays of the exported .params: name, type, shape, bytes of each. 1: done. @since 0.1 */
TN_API int tn_net_sha256(tn_net *net, char out_hex[65]);
/**
 * The graph of a -symbol.json; yours (tn_symbol_release). As tn_symbol_load(), but if operators of it are not
 * here the error names all of them. NULL: failed.
 * @since 0.1
 */
TN_API tn_symbol *tn_app_symbol(tn_app *app, const char *path);
/**
 * A model that was exported, here or by MXNet: for inference. Its inputs are the graph's variables, in its
 * order, that the file has no array for, but for labels (…label) and names of parameters (…weight, …bias),
 * which are an error.
 * @since 0.1
 */
TN_API tn_net *tn_net_load(tn_app *app, const char *prefix);
/** The same of two files of any name. `inputs`: those and no others, in this order, "a" or "a,b"; NULL: as
 * tn_net_load(). @since 0.1 */
TN_API tn_net *tn_net_load_files(tn_app *app, const char *json, const char *params, const char *inputs);
/** Name of an input by index, borrowed; NULL: there are fewer. @since 0.1 */
TN_API const char *tn_net_input_at(const tn_net *net, size_t index);
/**
 * A net that can be trained, from a -symbol.json that was exported, here or by MXNet: one input, one output
 * of class scores (N, classes), with or without a softmax or SoftmaxOutput behind them, which
 * tn_net_forward() leaves out and tn_net_export() writes again. Then tn_net_init() for fresh values,
 * tn_net_load_params() for those of a .params file.
 * @since 0.1
 */
TN_API tn_net *tn_net_from_symbol(tn_app *app, const char *json);
/** Name of that variable: "data", or the one of a loaded model. Borrowed; NULL: failed. @since 0.1 */
TN_API const char *tn_net_input(const tn_net *net);
/**
 * A table: layer, operator, output shape, parameters, multiply-adds per sample; one line each.
 * @param shape of the input, (N, C, H, W); NULL: as in the last forward
 * @since 0.1
 */
TN_API void tn_net_summary(tn_net *net, FILE *out, int32_t ndim, const int64_t *shape);

/* ---- losses: one number per sample, (N) ---- */

/** Softmax cross-entropy of `x` (N, classes) and class numbers `labels` (N). @since 0.1 */
TN_API tn_array *tn_loss_softmax_ce(tn_app *app, tn_array *x, tn_array *labels);
/** Half the mean of the squared differences. @since 0.1 */
TN_API tn_array *tn_loss_l2(tn_app *app, tn_array *x, tn_array *labels);
/** Mean of the absolute differences. @since 0.1 */
TN_API tn_array *tn_loss_l1(tn_app *app, tn_array *x, tn_array *labels);

/* ---- meters ---- */

typedef struct tn_meter_options {
    TN_NN_HEAD;
    int32_t k;     /* top_k_accuracy; 0: 1 */
    int32_t micro; /* f1, mcc, pearson: 1: one value of all samples, 0: the mean of the batches' values, each
                        of one tn_meter_add(); f1 and mcc of a module's batch: of all its outputs */
    int32_t ignores; /* perplexity, cross_entropy, nll: 1: labels that are `ignore` do not count */
    int64_t ignore;
    /* A metric of the program, as CustomMetric, whose name is `what` (NULL: custom): of a batch's `count`
     * numbers and `rows` labels the sum to add, and as what it counts: 1 for a value of the batch, the number
     * of samples for a sum over these. Below 0: failed. On the thread that reads the meter. NULL: none. */
    int64_t (*function)(void *arg, const float *x, size_t count, const float *labels, size_t rows,
                        double *sum);
    void *arg;
    int32_t axis; /* of the classes, of metrics of scores; below 0 from the last. 0: 1, or the last one where
                     the labels say so; of perplexity the last one */
    int32_t reserved;
    double eps; /* cross_entropy, nll: added to probabilities; 0: 1e-12 */
} tn_meter_options;

/**
 * A metric, as mxnet.metric has it. Of scores x (N, classes, …) and labels (N, …): accuracy,
 * top_k_accuracy, f1 and mcc (of two classes, the label 1 against another one), pcc; of probabilities:
 * perplexity, cross_entropy, nll. accuracy and pcc also take numbers of classes, in the shape of the labels.
 * Of numbers and as many labels: mae, mse, rmse (each batch counts once), pearson. Of what a loss returned:
 * loss. MXNet's other names are known, too (acc, ce, nll-loss, pearsonr).
 * tn_meter_open(app, "top_k_accuracy", .k = 5)
 * Several, up to 64, with commas between them are CompositeEvalMetric: a list, to which batches are added at
 * once; blanks around a name do not count.
 * tn_meter_open(app, "accuracy,cross_entropy")
 * @since 0.1
 */
TN_API tn_meter *tn_meter_open_(tn_app *app, const char *what, const tn_meter_options *options);
/** The same without options. @since 0.1 */
TN_API tn_meter *tn_meter_new(tn_app *app, const char *what);
/** Adds a batch; does not wait for the device. `labels`: not for "loss". @since 0.1 */
TN_API void tn_meter_add(tn_meter *meter, tn_array *x, tn_array *labels);
/** The mean so far, of a list the first one's, after waiting; NaN if nothing was added or on error.
 * @since 0.1 */
TN_API double tn_meter_value(tn_meter *meter);
/** Forgets what was added, of a list to all. @since 0.1 */
TN_API void tn_meter_reset(tn_meter *meter);
/** How many a list has; 1 of a single one, 0 of NULL. @since 0.1 */
TN_API size_t tn_meter_count(const tn_meter *meter);
/** The list from number `index` on, so that its value and name are those of this one; NULL: there is none.
 * @since 0.1 */
TN_API tn_meter *tn_meter_at(tn_meter *meter, size_t index);
/** MXNet's name of the value: accuracy, top_k_accuracy_5, cross-entropy, nll-loss, pearsonr; of a metric of
 * the program its own. Borrowed; NULL of NULL. @since 0.1 */
TN_API const char *tn_meter_name(const tn_meter *meter);

/* ---- data ---- */

typedef struct tn_data_options {
    TN_NN_HEAD;
    int64_t batch;   /* samples of a batch; 0: 64. The last one of an epoch may be smaller */
    int32_t shuffle; /* 1: another order in each epoch, a function of seed and epoch alone */
    uint64_t seed;   /* 0: option run.seed */
    /* The samples that fill no batch. keep: a smaller one · pad: filled up with the epoch's first samples ·
     * discard: they are left out · roll_over: the next epoch begins with them · round: filled up with the
     * next epoch's first samples, which that one leaves out then. NULL: keep */
    const char *last;
    int64_t parts, part; /* only share `part` of `parts` equal ones; 0, 0: all */
    /* Of tables and arrays; NULL: the options data.label, data.task, data.scale */
    const char *label, *task, *scale;
    struct tn_data *like; /* the data to train on, whose classes and scaling hold; NULL: none */
    const char *about; /* the same from a file of tn_data_about_save(), which also has shapes; NULL: none */
    int32_t whole;     /* 1: both parts, and labels may be missing, as of what a model is asked about */
    int32_t threads;   /* of tables and arrays: they make batches ahead; 0: none */
    int32_t prefetch;  /* batches that these make ahead; 0: 1 */
    int32_t reserved;
    const char *csv; /* a CSV in memory, of which `name` is for messages; NULL: none. Both parts if `whole` */
    uint64_t csv_bytes;
} tn_data_options;

/** What labels are: tn_data_task(). */
enum {
    TN_TASK_NONE,    /* the data has none, or a program made it */
    TN_TASK_CLASSES, /* numbers of classes */
    TN_TASK_NUMBERS  /* of a regression; scaled by tn_data_units() */
};

typedef struct tn_batch {
    tn_array *x;   /* the first field; of IDX files (n, C, H, W) float32, byte / 255, C 1 in files of three
                      dimensions */
    tn_array *y;   /* the second one, NULL: there is none; of IDX files (n) float32: class numbers */
    int64_t n;     /* samples */
    int64_t index; /* of the batch within the epoch, from 0 */
    int64_t epoch; /* from 0 */
} tn_batch;

typedef struct tn_field {
    const char *name; /* letters, digits, _ and - */
    tn_array *array;  /* (N, …), all of the same N; its numbers are copied, as float32; csr stays csr */
} tn_field;

typedef struct tn_arrays_options {
    TN_NN_HEAD;
    const char *name;   /* for messages; NULL: "arrays" */
    tn_field fields[8]; /* at least one */
    int64_t batch;      /* these as of tn_data_options */
    int32_t shuffle;
    uint64_t seed;
    const char *last;
    int64_t parts, part;
} tn_arrays_options;

/**
 * IDX files as MNIST's are named (train-images-idx3-ubyte, t10k-labels-idx1-ubyte, plain or .gz), or images
 * (tn_data_from_images()), in the size of the first one, byte / 255: FOLDER/train/CLASS/x.png and
 * FOLDER/test/…, or FOLDER/CLASS/x.png, of which each fifth of a class is "test", or FOLDER/train.rec and
 * FOLDER/test.rec (either part may be packed, the other not), or one .rec of any name, of which each fifth
 * image is "test"; or tables and arrays: FOLDER/train.csv and FOLDER/test.csv (.csv.gz, .tsv, .libsvm, .npz),
 * .npy called x_train, y_train, x_test, y_test. A folder with test.rec or test.csv alone has no "train":
 * TN_E_KEY. FILE.csv, FILE.npz … alone has both parts: the share data.test_share of its samples,
 * drawn by run.seed, is "test" (tn_data_note()). docs/data.md has all of it.
 * @param name "digits:train", "mnist:test", a folder: "/data/fashion:train", or a file: "iris.csv:test";
 * without a part: train. Names are looked up in data.path, in the installed data, in that of the build
 * @since 0.1
 */
TN_API tn_data *tn_data_open_(tn_app *app, const char *name, const tn_data_options *options);
/** Arrays as samples: tn_data_from_arrays(app, .fields = {{"data", x}, {"odd", y}}, .batch = 64).
 * @since 0.1 */
TN_API tn_data *tn_data_from_arrays_(tn_app *app, const tn_arrays_options *options);
/** A field of the batch that tn_data_next() gave last, borrowed; IDX files have "data" and "label". NULL:
 * there is no batch; a name that the data does not have is an error. @since 0.1 */
TN_API tn_array *tn_data_field(tn_data *data, const char *name);
/**
 * Fills `batch`. The one before it ends, with all temporaries made since.
 * @return 1; 0 at the end of the epoch (the next call begins the next epoch) or after an error
 * @since 0.1
 */
TN_API int tn_data_next(tn_data *data, tn_batch *batch);
/** Where the next batch comes from. Either may be NULL. @since 0.1 */
TN_API void tn_data_tell(const tn_data *data, int64_t *epoch, int64_t *index);
TN_API void tn_data_seek(tn_data *data, int64_t epoch, int64_t index);
/** Samples. @since 0.1 */
TN_API int64_t tn_data_count(const tn_data *data);
/** How many of the last rows of the running batch are filler (.last pad and round). @since 0.1 */
TN_API int64_t tn_data_filler(const tn_data *data);
/** Batches of the epoch that tn_data_tell() gives: with .last roll_over and round epochs differ.
 * @since 0.1 */
TN_API int64_t tn_data_batches(const tn_data *data);
/** Classes: the largest label and one; 0: the second field does not hold class numbers. @since 0.1 */
TN_API int64_t tn_data_classes(const tn_data *data);
/** Shape of a sample with a 1 in front: (1, C, H, W), of the first field; 0 where it has fewer dimensions.
 * NULL: nothing happens. @since 0.1 */
TN_API void tn_data_shape(const tn_data *data, int64_t shape[4]);
/** Name as given, and the file of the images (`labels` 0) or labels (1); borrowed. @since 0.1 */
TN_API const char *tn_data_name(const tn_data *data);
TN_API const char *tn_data_file(const tn_data *data, int32_t labels);
/** Name of class `index`, borrowed, from the data set's classes.txt (a name per line); NULL: it has none.
 * @since 0.1 */
TN_API const char *tn_data_class_name(const tn_data *data, int64_t index);
/** What tn_data_field_at() finds. */
typedef struct tn_field_info {
    uint32_t struct_size;
    int32_t ndim,
        dtype; /* of a sample; as it is kept: TN_U8, of which a batch has byte / divisor, or TN_F32 */
    int32_t reserved;
    const char *name; /* borrowed */
    int64_t shape[8]; /* of a sample: without the samples in front */
} tn_field_info;
/** Field `index`. 0: there is no such, or struct_size is 0. @since 0.1 */
TN_API int tn_data_field_at(const tn_data *data, size_t index, tn_field_info *out);
/** The field that input `input` of the net takes: that of its name; an only input takes the first one. 0:
 * there is none, and the app has failed with TN_E_KEY, which names it; or an argument is NULL, or there is no
 * such input. @since 0.1 */
TN_API int tn_net_field(const tn_net *net, const tn_data *data, size_t input, tn_field_info *out);
/** Name of column `index` of the features of a CSV with a header, borrowed; NULL: it has none. @since 0.1 */
TN_API const char *tn_data_column(const tn_data *data, int64_t index);
/** One of TN_TASK_…. @since 0.1 */
TN_API int32_t tn_data_task(const tn_data *data);
/** A label of TN_TASK_NUMBERS times `deviation` plus `mean` is in the file's units. Either may be NULL.
 * @since 0.1 */
TN_API void tn_data_units(const tn_data *data, double *mean, double *deviation);
/** How the part was chosen where one file has both, for people; "": it needs no word. @since 0.1 */
TN_API const char *tn_data_note(const tn_data *data);
/** Writes what a model needs of its data: task, names of classes, shapes, scaling, columns, as JSON; for
 * .about of tn_data_options and for tn_net_about(). Only of data of tn_data_open(). 1: done. @since 0.1 */
TN_API int tn_data_about_save(const tn_data *data, const char *path);
/** SHA-256 over the images' file and the labels' file, as they are on disk. 1: done. @since 0.1 */
TN_API int tn_data_sha256(tn_data *data, char out_hex[65]);

/* ---- optimizers ---- */

typedef struct tn_trainer_options {
    TN_NN_HEAD;
    /* sgd, nag, adam, signum, rmsprop, adagrad, adadelta, adamax, nadam, dcasgd, ftrl, ftml, lamb, lans,
     * lars, lbsgd, sgld, groupadagrad, adamw, adabelief, in letters of any size; NULL: sgd. With lr 0 a step
     * of ftrl and ftml changes nothing. lars leaves the rates of biases, gammas and betas as they are;
     * groupadagrad takes matrices alone and no wd. */
    const char *optimizer;
    double lr;       /* 0: 0.01, of adam, nadam, rmsprop, lamb and its like 0.001, adamax 0.002, ftrl 0.1 */
    double momentum; /* sgd, nag, signum, lars, lbsgd */
    double wd;       /* weight decay, of every parameter */
    double beta1, beta2,
        epsilon; /* of adam and its like 0: 0.9, 0.999, 1e-8; epsilon of adagrad 1e-7, adadelta 1e-5, lamb,
                             lans, adamw and adabelief 1e-6 */
    double clip; /* largest absolute value of a gradient's element; 0: not limited */
    double clip_norm;     /* largest norm of all gradients together; 0: not limited */
    const char *schedule; /* constant, factor, multifactor, poly, cosine; NULL: constant */
    int64_t steps;        /* cosine, poly: where lr reaches lr_end */
    int64_t warmup;       /* steps over which lr rises from lr_begin, linearly */
    double lr_begin, lr_end;
    double factor;           /* factor, multifactor: lr is multiplied by this … 0: 0.1 */
    int64_t every;           /* … after this many steps each … */
    int64_t milestones[16];  /* … multifactor: after these, which rise; 0 ends them */
    double power;            /* poly; 0: 2 */
    int32_t warmup_constant; /* 1: lr_begin for all of the warmup */
    int32_t centered;        /* rmsprop: 1: by the variance, after Graves */
    double gamma1, gamma2;   /* rmsprop; 0: 0.9 */
    double clip_weights;     /* rmsprop: largest absolute value of a weight; 0: not limited */
    double wd_lh;            /* signum: weight decay beside the gradient */
    double rho;              /* adadelta; 0: 0.9 */
    double schedule_decay;   /* nadam; 0: 0.004 */
    double lamda;            /* dcasgd; 0: 0.04 */
    double lamda1, beta;     /* ftrl; 0: 0.01, 1 */
    /* Where several devices (device.default) sum their gradients: "local", "device", as in tenon/kv.h. NULL:
     * option kvstore.type, if there are several devices or other processes */
    const char *kvstore;
    int32_t update_on_kvstore;    /* 1: the store updates · -1: the trainer does · 0: option kvstore.update,
                                  where the store has the optimizer and .clip_norm is 0 */
    const char *compression;      /* of gradients: none, 1bit, 2bit; NULL: option kvstore.compress */
    double compression_threshold; /* 0: option kvstore.compress_threshold */
    double eta;                   /* lars: how much of the weight's norm a step is; 0: 0.001 */
    int64_t batch_scale;          /* lbsgd: steps whose gradients are one update; 0: 1 */
    int64_t warmup_epochs, epoch_updates; /* lbsgd: the rate rises to batch_scale times it; 0: 5, 32 */
    const char *strategy; /* lbsgd: how it rises: linear, power2, sqrt; lars: by norms; NULL: linear */
    struct tn_kv *store;  /* instead of `kvstore`: an open one without keys; the caller destroys it, before
                             the app and once nothing is trained any more */
    /* 1: parameters of float16 and bfloat16 (tn_net_cast) are updated in float32: each has a copy that is
     * kept with the states, by the store where that updates. */
    int32_t multi_precision;
    int32_t no_bias_correction;      /* lamb, adamw, adabelief: 1: first steps are as all others */
    double lower_bound, upper_bound; /* lamb, lans: of a weight's norm; 0: none */
    double rescale_grad; /* gradients times this, divided by `batch`; of a module times this alone. 0: 1 */
    int64_t begin_num_update; /* steps that count as done, for schedules and bias corrections */
    /* A step for which no backward has reached a parameter since the last one, on each device, is an error
     * (TN_E_STATE): its gradient is an old one. 1: such parameters stay as they are, and the schedule follows
     * the one with the most updates; how many each has had is not saved. A store that updates takes old
     * gradients, too: there it is an error, without this, that no backward has ever reached a parameter.
     * Gradients that the program writes are announced by tn_array_grad_touch(); of a net that no backward has
     * ever reached all are taken. */
    int32_t ignore_stale_grad;
    int32_t reserved;
} tn_trainer_options;

/** An optimizer for all parameters of `net`. @since 0.1 */
TN_API tn_trainer *tn_trainer_new_(tn_net *net, const tn_trainer_options *options);
/** One update, by the gradients of all devices together, divided by `batch`: the samples of all.
 * @since 0.1 */
TN_API void tn_trainer_step(tn_trainer *trainer, int64_t batch);
/** The first half of a step: each gradient becomes its sum over all devices. The store must not update
 * (.update_on_kvstore = -1). @since 0.1 */
TN_API void tn_trainer_allreduce_grads(tn_trainer *trainer);
/** The second half: the update, by what the gradients hold then. @since 0.1 */
TN_API void tn_trainer_update(tn_trainer *trainer, int64_t batch);
/** Steps done. @since 0.1 */
TN_API int64_t tn_trainer_steps(const tn_trainer *trainer);
/** Learning rate of the next step. @since 0.1 */
TN_API double tn_trainer_lr(const tn_trainer *trainer);
/** Another base rate from the next step on; the schedule goes on from it. @since 0.1 */
TN_API void tn_trainer_set_lr(tn_trainer *trainer, double lr);
/** States and steps, to and from a file. @since 0.1 */
TN_API void tn_trainer_save(tn_trainer *trainer, const char *path);
TN_API void tn_trainer_load(tn_trainer *trainer, const char *path);
/** The learning rate of step `step` (from 0) of a schedule: what a trainer with these options uses. @since
 * 0.1 */
TN_API double tn_schedule_lr(const tn_trainer_options *options, int64_t step);

/* ---- a whole training ---- */

typedef struct tn_metric {
    const char *name;                                      /* for the log and tn_train_info */
    tn_x (*function)(const tn_x *out, const tn_x *labels); /* as a loss; NULL: none */
} tn_metric;

/*
 * What is 0 or NULL here comes from the app's options train.* (tn_app_options.settings, files, environment),
 * so a command line only has to put its switches into the settings. A number below 0 means none: .momentum =
 * -1.
 */
typedef struct tn_train_options {
    TN_NN_HEAD;
    const char *model; /* "zoo:lenet", or a -symbol.json (tn_net_from_symbol); NULL: `net` */
    tn_net *net;       /* used if there is no model; initialised with xavier and the seed */
    const char *data;  /* "digits": trained on digits:train, validated on digits:test; or with a part */
    const char *valid; /* "digits" is its test part; NULL: that of `data`; "none": no validation */
    int64_t epochs, batch;
    const char *optimizer, *schedule;
    double lr, momentum, wd, clip;
    double warmup;                          /* epochs */
    double schedule_factor, schedule_every; /* schedule factor; every: epochs */
    double clip_norm;                       /* 0: not limited */
    uint64_t seed;                          /* 0: option run.seed */
    int32_t no_hybridize, no_shuffle;       /* 1: off, whatever the options say */
    const char *checkpoint;                 /* folder; NULL: no checkpoints */
    double checkpoint_every;                /* epochs */
    int32_t checkpoint_keep;
    int32_t resume; /* 1: go on from the newest checkpoint in the folder; none there: an error, exit code 2 */
    const char *config_hash; /* text that a resumed training must have in common with its checkpoint; NULL:
                                not asked */
    int32_t (*event)(void *arg, int32_t kind,
                     tn_train *train); /* on the thread of tn_train_run(); not 0: stop */
    void *arg;
    const char *params; /* a .params file with first weights; NULL: random ones */
    /* PREFIX: PREFIX-best.params gets the weights of the best epoch so far (by what early_stop watches, else
     * by accuracy), PREFIX-symbol.json the graph. NULL: none. */
    const char *best;
    const char *early_stop; /* none, val_loss, val_accuracy: what has to get better … */
    int64_t patience;       /* … within so many epochs … */
    double min_delta;       /* … by more than this, or the training is done. Below 0: by anything */
    const char *on_nan; /* stop: a loss or weight that is not finite is an error and nothing is written any
                           more; ignore */
    tn_data *train_data, *valid_data; /* opened ones, instead of `data` and `valid` */
    /* Of the net's outputs and the fields that are its labels: one number per sample, (N). NULL: softmax
     * cross-entropy of the first output and the first label. */
    tn_x (*loss)(const tn_x *out, const tn_x *labels);
    const char *labels[8]; /* fields of the data; none: "label", or else the second field */
    tn_metric metrics[7];  /* means of them are told, no gradient goes through them */
    FILE *log;             /* takes a line for each epoch; NULL: none */
    /* As tn_trainer_options.store. NULL: one is opened, if kvstore.type is a dist type. Of several workers
     * each trains on its part of `data`; train_data is that part already */
    struct tn_kv *store;
    int32_t ignore_stale_grad; /* as of tn_trainer_options: of outputs that the loss does not take */
    int32_t reserved;
} tn_train_options;

/* Kinds of events. */
#define TN_TRAIN_BEGIN 1 /* before the first step; all of tn_train_info is known */
#define TN_TRAIN_STEP 2  /* after each step */
#define TN_TRAIN_EPOCH 3 /* after each epoch and its validation */
#define TN_TRAIN_SAVED 4 /* a checkpoint was written; `checkpoint` names it */
#define TN_TRAIN_END 5   /* all epochs are done, or it was stopped and saved */

/** What is known of a training, filled in by tn_train_info_get(). NaN: not known yet. */
typedef struct tn_train_info {
    uint32_t struct_size;
    int32_t stopped;        /* 1: left before the end, on request */
    int64_t epoch, epochs;  /* running epoch from 1; 0 before the first step */
    int64_t batch, batches; /* done in this epoch, of an epoch */
    int64_t step, steps;    /* done, of all epochs */
    int64_t samples;        /* trained on by this process */
    int64_t resumed_step;   /* where the checkpoint stood; 0: from the start */
    int64_t batch_size, train_count, valid_count, param_elements;
    uint64_t seed;
    double lr;             /* of the step just done */
    double loss, accuracy; /* means over this epoch's training batches so far, as of the last reading */
    double valid_loss, valid_accuracy; /* of the last validation */
    double best_accuracy;              /* of all validations */
    double seconds;                    /* since tn_train_run() began, clock time */
    double epoch_seconds;              /* since the epoch began */
    double data_seconds;               /* of `seconds`, spent waiting for data */
    const char *model, *device, *checkpoint, *optimizer,
        *schedule;       /* borrowed; checkpoint: the newest one, NULL */
    int32_t ended_early; /* 1: done, because early_stop says so */
    int32_t reserved;
    int64_t best_epoch,
        waited;        /* epoch of best_value, from 1, 0: none; epochs since early_stop saw a better value */
    double best_value; /* of what early_stop watches; accuracy if it watches nothing */
    const char *best;  /* file with the weights of best_epoch, borrowed; NULL: none */
    int64_t metric_count;
    const char *metric_names[7];         /* borrowed */
    double metrics[7], valid_metrics[7]; /* as loss and valid_loss */
    int64_t state_elements;              /* that the optimizer keeps */
    int64_t rank, workers;               /* of this process in its job; 0 of 1: alone */
    /* First epoch with a warning of its loss, of those that this process trained; 0: none. A batch's loss is
     * above 20 times that of the first step, an epoch's is above 1.5 times both that and the loss of
     * guessing, or the last of several epochs' (also by early_stop) is above that of guessing: ln(classes),
     * half the variance of a regression's labels. An epoch's is set at its TN_TRAIN_EPOCH. With on_nan ignore
     * nothing is looked at. */
    int64_t diverged_epoch;
} tn_train_info;

/** Where tn_train_speed() writes. */
typedef struct tn_speed {
    FILE *out;
    int64_t every; /* steps from one line to the next; 0: 50 */
    double seconds;
    int64_t samples; /* both as of the last line: 0 at first */
} tn_speed;

/**
 * An .event of tn_train_options, whose .arg is a tn_speed: a line with samples per second each so many steps,
 * as MXNet's Speedometer writes them. "epoch 1, batch 50 of 230: 1234.5 samples/s". Does not wait for the
 * device. @return 0
 * @since 0.1
 */
TN_API int32_t tn_train_speed(void *speed, int32_t kind, tn_train *train);

/** Where tn_train_progress() writes. */
typedef struct tn_progress {
    FILE *out;
    int64_t length; /* characters of the bar; 0: 80, at most 200 */
} tn_progress;

/**
 * An .event of tn_train_options, whose .arg is a tn_progress: how much of the epoch is done, after each
 * step, as MXNet's ProgressBar writes it: "[====------] 40%" and a carriage return; behind the last step of
 * an epoch a new line, too. Does not wait for the device. @return 0
 * @since 0.1
 */
TN_API int32_t tn_train_progress(void *progress, int32_t kind, tn_train *train);
/** Builds or takes the net, opens the data, makes the trainer, reads the checkpoint if asked. Owned by the
 * app. @since 0.1 */
TN_API tn_train *tn_train_open_(tn_app *app, const tn_train_options *options);
/**
 * Trains until all epochs are done, an event says stop, tn_train_stop() was called, or something fails.
 * Stopped, it finishes the step, writes a checkpoint if there is a folder, and returns; called again, it goes
 * on.
 * @return 1: all epochs are done, or early_stop ended it; 0: stopped, or failed (tn_app_ok() tells)
 * @since 0.1
 */
TN_API int tn_train_run(tn_train *train);
/**
 * tn_train_open() of `net` and `data`, and tn_train_run(): tn_fit(net, data, .loss = f, .epochs = 5).
 * @return as tn_train_run()
 * @since 0.1
 */
TN_API int tn_fit_(tn_net *net, tn_data *data, const tn_train_options *options);
/** Asks tn_train_run() to stop after the running step; one that has not begun makes none.
 * @threads any; also from a signal handler @since 0.1 */
TN_API void tn_train_stop(tn_train *train);
/**
 * Fills `info` (info->struct_size is set by the caller; NULL: an error). Loss and accuracy are as of the last
 * reading: with `read` 1 the device is waited for and they are up to date.
 * @since 0.1
 */
TN_API void tn_train_info_get(tn_train *train, int32_t read, tn_train_info *info);
/** Writes a checkpoint now, if there is a folder; also between steps, from an event. @since 0.1 */
TN_API void tn_train_save(tn_train *train);
/** Its parts; borrowed. `valid` is NULL if there is no validation. @since 0.1 */
TN_API tn_net *tn_train_net(tn_train *train);
TN_API tn_data *tn_train_data(tn_train *train);
TN_API tn_data *tn_train_valid(tn_train *train);
TN_API tn_trainer *tn_train_trainer(tn_train *train);

/* ---- the macros ---- */

#ifndef __cplusplus
#define TN_NN_FIRST_(first, ...) first
#define TN_NN_REST_(first, ...) __VA_ARGS__
#define TN_NN_HERE_(type) .struct_size = (uint32_t)sizeof(type), .line = __LINE__, .file = __FILE__
#define TN_NN_OPTIONS_(type, ...)                                                                            \
    &(const type)                                                                                            \
    {                                                                                                        \
        TN_NN_HERE_(type), TN_NN_REST_(__VA_ARGS__, )                                                        \
    }
#define TN_NN_CALL_(function, type, ...)                                                                     \
    function(TN_NN_FIRST_(__VA_ARGS__, ), TN_NN_OPTIONS_(type, __VA_ARGS__))

#define tn_app_open(...) tn_app_open_(&(const tn_app_options){TN_NN_HERE_(tn_app_options), __VA_ARGS__})
#define tn_net_new(...) TN_NN_CALL_(tn_net_new_, tn_net_options, __VA_ARGS__)
#define tn_net_sequential(...) TN_NN_CALL_(tn_net_sequential_, tn_net_options, __VA_ARGS__)
#define tn_net_dense(...) TN_NN_CALL_(tn_net_dense_, tn_dense_options, __VA_ARGS__)
#define tn_net_conv2d(...) TN_NN_CALL_(tn_net_conv2d_, tn_conv2d_options, __VA_ARGS__)
#define tn_net_maxpool2d(...) TN_NN_CALL_(tn_net_maxpool2d_, tn_pool2d_options, __VA_ARGS__)
#define tn_net_avgpool2d(...) TN_NN_CALL_(tn_net_avgpool2d_, tn_pool2d_options, __VA_ARGS__)
#define tn_net_globalavgpool2d(...) TN_NN_CALL_(tn_net_globalavgpool2d_, tn_net_options, __VA_ARGS__)
#define tn_net_conv1d(...) TN_NN_CALL_(tn_net_conv1d_, tn_conv_options, __VA_ARGS__)
#define tn_net_conv3d(...) TN_NN_CALL_(tn_net_conv3d_, tn_conv_options, __VA_ARGS__)
#define tn_net_maxpool1d(...) TN_NN_CALL_(tn_net_maxpool1d_, tn_pool_options, __VA_ARGS__)
#define tn_net_maxpool3d(...) TN_NN_CALL_(tn_net_maxpool3d_, tn_pool_options, __VA_ARGS__)
#define tn_net_avgpool1d(...) TN_NN_CALL_(tn_net_avgpool1d_, tn_pool_options, __VA_ARGS__)
#define tn_net_avgpool3d(...) TN_NN_CALL_(tn_net_avgpool3d_, tn_pool_options, __VA_ARGS__)
#define tn_net_globalmaxpool1d(...) TN_NN_CALL_(tn_net_globalmaxpool1d_, tn_net_options, __VA_ARGS__)
#define tn_net_globalmaxpool2d(...) TN_NN_CALL_(tn_net_globalmaxpool2d_, tn_net_options, __VA_ARGS__)
#define tn_net_globalmaxpool3d(...) TN_NN_CALL_(tn_net_globalmaxpool3d_, tn_net_options, __VA_ARGS__)
#define tn_net_globalavgpool1d(...) TN_NN_CALL_(tn_net_globalavgpool1d_, tn_net_options, __VA_ARGS__)
#define tn_net_globalavgpool3d(...) TN_NN_CALL_(tn_net_globalavgpool3d_, tn_net_options, __VA_ARGS__)
#define tn_net_instancenorm(...) TN_NN_CALL_(tn_net_instancenorm_, tn_instancenorm_options, __VA_ARGS__)
#define tn_net_groupnorm(...) TN_NN_CALL_(tn_net_groupnorm_, tn_groupnorm_options, __VA_ARGS__)
#define tn_net_prelu(...) TN_NN_CALL_(tn_net_prelu_, tn_prelu_options, __VA_ARGS__)
#define tn_net_elu(...) TN_NN_CALL_(tn_net_elu_, tn_elu_options, __VA_ARGS__)
#define tn_net_selu(...) TN_NN_CALL_(tn_net_selu_, tn_net_options, __VA_ARGS__)
#define tn_net_gelu(...) TN_NN_CALL_(tn_net_gelu_, tn_net_options, __VA_ARGS__)
#define tn_net_conv1dtranspose(...)                                                                          \
    TN_NN_CALL_(tn_net_conv1dtranspose_, tn_convtranspose_options, __VA_ARGS__)
#define tn_net_conv2dtranspose(...)                                                                          \
    TN_NN_CALL_(tn_net_conv2dtranspose_, tn_convtranspose_options, __VA_ARGS__)
#define tn_net_conv3dtranspose(...)                                                                          \
    TN_NN_CALL_(tn_net_conv3dtranspose_, tn_convtranspose_options, __VA_ARGS__)
#define tn_net_batchnorm(...) TN_NN_CALL_(tn_net_batchnorm_, tn_batchnorm_options, __VA_ARGS__)
#define tn_net_batchnormrelu(...) TN_NN_CALL_(tn_net_batchnormrelu_, tn_batchnorm_options, __VA_ARGS__)
#define tn_net_syncbatchnorm(...) TN_NN_CALL_(tn_net_syncbatchnorm_, tn_batchnorm_options, __VA_ARGS__)
#define tn_net_layernorm(...) TN_NN_CALL_(tn_net_layernorm_, tn_layernorm_options, __VA_ARGS__)
#define tn_net_embedding(...) TN_NN_CALL_(tn_net_embedding_, tn_embedding_options, __VA_ARGS__)
#define tn_net_dropout(...) TN_NN_CALL_(tn_net_dropout_, tn_dropout_options, __VA_ARGS__)
#define tn_net_flatten(...) TN_NN_CALL_(tn_net_flatten_, tn_net_options, __VA_ARGS__)
#define tn_net_activation(...) TN_NN_CALL_(tn_net_activation_, tn_activation_options, __VA_ARGS__)
#define tn_net_leakyrelu(...) TN_NN_CALL_(tn_net_leakyrelu_, tn_leakyrelu_options, __VA_ARGS__)
#define tn_net_reflectionpad2d(...)                                                                          \
    TN_NN_CALL_(tn_net_reflectionpad2d_, tn_reflectionpad_options, __VA_ARGS__)
#define tn_net_init(...) TN_NN_CALL_(tn_net_init_, tn_init_options, __VA_ARGS__)
#define tn_net_init_where(...) TN_NN_WHERE_(__VA_ARGS__, )
#define TN_NN_WHERE_(net, suffix, ...)                                                                       \
    tn_net_init_where_(net, suffix, &(const tn_init_options){TN_NN_HERE_(tn_init_options), __VA_ARGS__})
#define tn_net_hybridize(...) TN_NN_CALL_(tn_net_hybridize_, tn_hybridize_options, __VA_ARGS__)
#define tn_trainer_new(...) TN_NN_CALL_(tn_trainer_new_, tn_trainer_options, __VA_ARGS__)
#define tn_train_open(...) TN_NN_CALL_(tn_train_open_, tn_train_options, __VA_ARGS__)
#define tn_data_from_arrays(...) TN_NN_CALL_(tn_data_from_arrays_, tn_arrays_options, __VA_ARGS__)
/* tn_fit(net, data, .epochs = 5) */
#define tn_fit(...) TN_NN_FIT_(__VA_ARGS__, )
#define TN_NN_FIT_(net, data, ...)                                                                           \
    tn_fit_(net, data, &(const tn_train_options){TN_NN_HERE_(tn_train_options), __VA_ARGS__})
/* tn_meter_open(app, "f1", .micro = 1) */
#define tn_meter_open(...) TN_NN_METER_(__VA_ARGS__, )
#define TN_NN_METER_(app, what, ...)                                                                         \
    tn_meter_open_(app, what, &(const tn_meter_options){TN_NN_HERE_(tn_meter_options), __VA_ARGS__})
/* tn_data_open(app, "digits:train", .batch = 64) */
#define tn_data_open(...) TN_NN_DATA_(__VA_ARGS__, )
#define TN_NN_DATA_(app, name, ...)                                                                          \
    tn_data_open_(app, name, &(const tn_data_options){TN_NN_HERE_(tn_data_options), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif

#include "nn_params.h"
#include "nn_values.h"

#endif
