/**
 * Nets as C functions over values.
 *
 *     static tn_x net(tn_x x)
 *     {
 *         tn_x y = tn_relu(tn_batchnorm(tn_conv2d(x, .channels = 64, .kernel = {3, 3}, .pad = {1, 1})));
 *         return tn_dense(tn_add(x, y), .units = 10);
 *     }
 *
 * A function runs on arrays, or, once the net is hybridized, exported or asked for shapes, on symbols: it is
 * traced once for each combination of input shapes, and the compiled program answers from then on. Both run
 * the same operators in the same order, so the numbers are the same. A function must therefore depend on
 * nothing but its values' sizes and the net's .arg.
 *
 * Parameters are found by path: open scopes, then the layer's .name, or kind and number within the scope
 * ("stage1.conv0"). The first call makes them, later calls must ask for the same ones. A layer that is called
 * conditionally needs a .name or a scope of its own; one name twice in a call is an error, unless both calls
 * say .share = 1.
 *
 * C leaves open in which order the arguments of a call are evaluated, and compilers differ. So at most one
 * argument of a call may call layers without names: put the others into variables first. The calls of this
 * header with several values find that out and fail; a function of the program with several values cannot.
 *
 * A NULL value gives NULL and no further error. Values end with the call of their net.
 *
 * Each macro notes the caller's file and line; the function behind it, with a `_` at the end, takes them at
 * the end or in the options. C++ and foreign languages call that one.
 *
 * @threads the one that called the net
 * @since 0.1
 */
#ifndef TENON_NN_VALUES_H
#define TENON_NN_VALUES_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- nets ---- */

typedef struct tn_function_options {
    TN_NN_HEAD;
    const char *name;       /* of the net: letters, digits, _ and -; NULL: "net" */
    void *arg;              /* tn_arg() gives it */
    const char *inputs[8];  /* their names, as fields of data; none: one, "data" */
    const char *outputs[8]; /* none: one */
} tn_function_options;

/** A net of one input and one output. Owned by the app. @since 0.1 */
TN_API tn_net *tn_net_function_(tn_app *app, tn_x (*function)(tn_x x), const tn_function_options *options);
/**
 * A net of several: in[] has a value per .inputs, out[] takes one per .outputs, 8 each at most.
 * @since 0.1
 */
TN_API tn_net *tn_net_functions_(tn_app *app, void (*function)(const tn_x *in, tn_x *out),
                                 const tn_function_options *options);
/**
 * Another net within a function, a chain or a function: its parameters join those of the caller, in front of
 * their names that of the net. Called twice, it uses the same ones.
 * @since 0.1
 */
TN_API tn_x tn_net_call_(tn_net *net, tn_x x, const char *file, int32_t line);
TN_API void tn_net_call_all_(tn_net *net, const tn_x *in, tn_x *out, const char *file, int32_t line);

typedef struct tn_block_options {
    TN_NN_HEAD;
    const char *name;      /* of the net; NULL: "block" */
    const char *params;    /* .params file with the values of all parameters; NULL: from tn_net_init() */
    const char *inputs[8]; /* variables that are inputs, in this order; none: those that are no parameters */
} tn_block_options;

/**
 * A -symbol.json, exported here or by MXNet, as a net that tn_net_call() runs within another one: MXNet's
 * SymbolBlock. It is trained with the net around it; its parameters have the names of the file's variables,
 * whose ends say what they are (…_weight, …_bias, …_gamma, …_beta, …_moving_mean, …_moving_var). Owned by
 * the app. Statuses: of the files · TN_E_KEY: no variable has an input's name, or two inputs have the same ·
 * TN_E_UNSUPPORTED: another variable's name says nothing, or (when it is called) a node runs graphs of its
 * own or has no inputs.
 * @since 0.1
 */
TN_API tn_net *tn_net_block_(tn_app *app, const char *json, const tn_block_options *options);

/* ---- what a function may ask ---- */

/** Size along an axis; below 0 from the last one. 0: failed. @since 0.1 */
TN_API int64_t tn_dim_(tn_x x, int32_t axis, const char *file, int32_t line);
/** Dimensions. @since 0.1 */
TN_API int32_t tn_ndim_(tn_x x, const char *file, int32_t line);
/** The .arg of the net whose function runs. @since 0.1 */
TN_API void *tn_arg(tn_x x);
/** Copies its numbers out, after waiting; an error where the function is traced. 1: done. @since 0.1 */
TN_API int tn_read_(tn_x x, size_t count, float *out, const char *file, int32_t line);
/** Opens a scope: layers until its end are found under its name, which is formatted. @since 0.1 */
TN_API void tn_scope_begin_(tn_x x, const char *file, int32_t line, const char *format, ...);
/** Closes the scope opened last. @since 0.1 */
TN_API void tn_scope_end_(tn_x x, const char *file, int32_t line);

/**
 * A parameter of a layer that this call of the net has run, as a value, and as the .weight or .bias of
 * another layer of the same net: tn_dense(y, .units = 10, .weight = tn_param(x, "/embedding0.weight")).
 * Both have one array and one gradient then; files hold it once, under the name of the layer that made it.
 * That layer must not be an argument of the same call, which compilers may run later.
 * @param path from the open scopes, "conv0.weight"; with a slash in front from the net,
 * "/stage1.conv0.weight"
 * @since 0.1
 */
TN_API tn_x tn_param_(tn_x x, const char *path, const char *file, int32_t line);

typedef struct tn_weight_options {
    TN_NN_HEAD;
    int64_t shape[8]; /* each at least 1, up to the first 0; none: one number, (1) */
    /* First values: an initialiser, as .with of tn_init_options, whatever the net's is. NULL: zeros where the
     * name ends with bias or beta, ones with gamma, else as tn_net_init() says for weights */
    const char *init;
    double scale;        /* as of tn_init_options */
    const float *values; /* these, row-major: a constant (Gluon's get_constant), which is saved, but never
                            trained. Copied at the first call. NULL: it is none */
    int32_t fixed;       /* 1: it has no gradient, until tn_net_set() says so */
    int32_t share;       /* 1: other calls of this name give the same parameter */
} tn_weight_options;

/**
 * A parameter of the function's own, beside those of its layers: Gluon's params.get(). Files have it under
 * the open scopes and its name, "stage1.scale". Every call must ask for the same shape.
 * tn_add(x, tn_weight(x, "position", .shape = {64, 128}, .init = "normal"))
 * @param x    any value of the running call
 * @param name letters, digits, _ and -
 * @since 0.1
 */
TN_API tn_x tn_weight_(tn_x x, const char *name, const tn_weight_options *options);

/* ---- layers: options as of chains ---- */

/** Fully connected: y = activation(x w' + b). @since 0.1 */
TN_API tn_x tn_dense_(tn_x x, const tn_dense_options *options);
/** Two-dimensional convolution. @since 0.1 */
TN_API tn_x tn_conv2d_(tn_x x, const tn_conv2d_options *options);
/** Largest of each window. @since 0.1 */
TN_API tn_x tn_maxpool2d_(tn_x x, const tn_pool2d_options *options);
/** Mean of each window. @since 0.1 */
TN_API tn_x tn_avgpool2d_(tn_x x, const tn_pool2d_options *options);
/** Mean of each channel: (N, C, H, W) to (N, C, 1, 1). @since 0.1 */
TN_API tn_x tn_globalavgpool2d_(tn_x x, const tn_net_options *options);
/** Batch normalisation; its running statistics are parameters. @since 0.1 */
TN_API tn_x tn_batchnorm_(tn_x x, const tn_batchnorm_options *options);
/** The same, with a ReLU behind it, as one operator. @since 0.1 */
TN_API tn_x tn_batchnormrelu_(tn_x x, const tn_batchnorm_options *options);
/**
 * The same over all parts of a batch: Gluon's SyncBatchNorm. Of one device that is tn_batchnorm(). Of several
 * (device.default) training runs it on the part of each before anything of it is waited for; where one does
 * not, the others fail with TN_E_TIMEOUT (plugin.cpu.sync_timeout). Float16 is not served then, nor are
 * devices other than the host's or engine.type=naive (TN_E_UNSUPPORTED). @since 0.1
 */
TN_API tn_x tn_syncbatchnorm_(tn_x x, const tn_batchnorm_options *options);
/** Each sample normalised over an axis. @since 0.1 */
TN_API tn_x tn_layernorm_(tn_x x, const tn_layernorm_options *options);
/** A row of a table for each number: (N, …) to (N, …, units). @since 0.1 */
TN_API tn_x tn_embedding_(tn_x x, const tn_embedding_options *options);
/** Dropout: in training only. @since 0.1 */
TN_API tn_x tn_dropout_(tn_x x, const tn_dropout_options *options);
/** (N, …) to (N, width). @since 0.1 */
TN_API tn_x tn_flatten_(tn_x x, const tn_net_options *options);
/** Convolution of sequences (N, C, W). @since 0.1 */
TN_API tn_x tn_conv1d_(tn_x x, const tn_conv_options *options);
/** Convolution of volumes (N, C, D, H, W). @since 0.1 */
TN_API tn_x tn_conv3d_(tn_x x, const tn_conv_options *options);
/** Largest of each window, of sequences; of volumes. @since 0.1 */
TN_API tn_x tn_maxpool1d_(tn_x x, const tn_pool_options *options);
TN_API tn_x tn_maxpool3d_(tn_x x, const tn_pool_options *options);
/** Mean of each window, of sequences; of volumes. @since 0.1 */
TN_API tn_x tn_avgpool1d_(tn_x x, const tn_pool_options *options);
TN_API tn_x tn_avgpool3d_(tn_x x, const tn_pool_options *options);
/** Largest, or mean, of each channel. @since 0.1 */
TN_API tn_x tn_globalmaxpool1d_(tn_x x, const tn_net_options *options);
TN_API tn_x tn_globalmaxpool2d_(tn_x x, const tn_net_options *options);
TN_API tn_x tn_globalmaxpool3d_(tn_x x, const tn_net_options *options);
TN_API tn_x tn_globalavgpool1d_(tn_x x, const tn_net_options *options);
TN_API tn_x tn_globalavgpool3d_(tn_x x, const tn_net_options *options);
/** Each channel of each sample normalised. @since 0.1 */
TN_API tn_x tn_instancenorm_(tn_x x, const tn_instancenorm_options *options);
/** Groups of channels of each sample normalised. @since 0.1 */
TN_API tn_x tn_groupnorm_(tn_x x, const tn_groupnorm_options *options);
/** x above 0, below it x times a parameter. @since 0.1 */
TN_API tn_x tn_prelu_(tn_x x, const tn_prelu_options *options);
/** x above 0, alpha (exp(x) - 1) below. @since 0.1 */
TN_API tn_x tn_elu_(tn_x x, const tn_elu_options *options);
/** ELU with the scale that keeps mean 0 and variance 1; x times the normal distribution at x. @since 0.1 */
TN_API tn_x tn_selu_(tn_x x, const tn_net_options *options);
TN_API tn_x tn_gelu_(tn_x x, const tn_net_options *options);
/** Transposed convolution: from each pixel a window of a larger plane. @since 0.1 */
TN_API tn_x tn_conv1dtranspose_(tn_x x, const tn_convtranspose_options *options);
TN_API tn_x tn_conv2dtranspose_(tn_x x, const tn_convtranspose_options *options);
TN_API tn_x tn_conv3dtranspose_(tn_x x, const tn_convtranspose_options *options);
/** An activation by name. @since 0.1 */
TN_API tn_x tn_activation_(tn_x x, const tn_activation_options *options);
/** Images with their reflection around them, less wide than they are. @since 0.1 */
TN_API tn_x tn_reflectionpad2d_(tn_x x, const tn_reflectionpad_options *options);
/** x above 0, slope times x below. @since 0.1 */
TN_API tn_x tn_leakyrelu_(tn_x x, const tn_leakyrelu_options *options);

typedef struct tn_deformable_options {
    TN_NN_HEAD;
    const char *name;
    int64_t channels;  /* these as of tn_conv2d_options */
    int32_t kernel[2]; /* 0: 1 */
    int32_t stride[2], pad[2], dilate[2];
    int32_t groups, no_bias;
    int32_t parts;          /* of the input's channels, each with places of its own; 0: 1 */
    int32_t offset_no_bias; /* 1: the convolution that finds the places has no bias */
    const char *activation;
    int32_t share;
    int32_t reserved;
} tn_deformable_options;

/**
 * Convolution of images whose taps read at places that a convolution of the input finds: Gluon's
 * DeformableConvolution. The modulated one finds a factor of each tap, too. Parameters: offset_weight,
 * offset_bias, zeros at first, and deformable_conv_weight, deformable_conv_bias. @since 0.1
 */
TN_API tn_x tn_deformableconv2d_(tn_x x, const tn_deformable_options *options);
TN_API tn_x tn_modulateddeformableconv2d_(tn_x x, const tn_deformable_options *options);

/* ---- operators ---- */

/** Element by element. tn_stop() gives the same numbers, but no gradient goes back. @since 0.1 */
TN_API tn_x tn_relu_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_sigmoid_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_tanh_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_softrelu_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_softsign_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_exp_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_log_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_abs_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_square_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_sqrt_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_stop_(tn_x x, const char *file, int32_t line);
/** Along the last axis. @since 0.1 */
TN_API tn_x tn_softmax_(tn_x x, const char *file, int32_t line);
TN_API tn_x tn_log_softmax_(tn_x x, const char *file, int32_t line);
/** Of equal shapes, or of shapes that stretch to each other. @since 0.1 */
TN_API tn_x tn_add_(tn_x a, tn_x b, const char *file, int32_t line);
TN_API tn_x tn_sub_(tn_x a, tn_x b, const char *file, int32_t line);
TN_API tn_x tn_mul_(tn_x a, tn_x b, const char *file, int32_t line);
TN_API tn_x tn_div_(tn_x a, tn_x b, const char *file, int32_t line);
/** Times a number; plus a number. @since 0.1 */
TN_API tn_x tn_scale_(tn_x x, double by, const char *file, int32_t line);
TN_API tn_x tn_shift_(tn_x x, double by, const char *file, int32_t line);
/** x sigmoid(beta x); with beta 1: SiLU. @since 0.1 */
TN_API tn_x tn_swish_(tn_x x, double beta, const char *file, int32_t line);
/** Another shape of 1 to 8 dimensions; 0: as it is in this place, -1: what is left. @since 0.1 */
TN_API tn_x tn_reshape_(tn_x x, size_t count, const int64_t *shape, const char *file, int32_t line);
/** Axes in another order. @since 0.1 */
TN_API tn_x tn_transpose_(tn_x x, size_t count, const int64_t *axes, const char *file, int32_t line);
typedef struct tn_pixelshuffle_options {
    TN_NN_HEAD;
    int32_t factor[3]; /* of each axis of space; 0 behind the first: as the first */
    int32_t reserved;
} tn_pixelshuffle_options;

/** Channels become space: (N, C f1 f2, H, W) to (N, C, H f1, W f2); also of one or three axes. @since 0.1 */
TN_API tn_x tn_pixelshuffle_(tn_x x, const tn_pixelshuffle_options *options);
/** What Dropout multiplies by, in the shape of `like`: drawn once, for use in every step of a sequence
 * (variational dropout). Ones outside of training. @since 0.1 */
TN_API tn_x tn_dropout_mask_(tn_x like, double rate, const char *file, int32_t line);
/** Zoneout: elements keep their value `before` (NULL: zeros) with this probability; `now` outside of
 * training. @since 0.1 */
TN_API tn_x tn_zoneout_(tn_x now, tn_x before, double rate, const char *file, int32_t line);
/** 1 to 64 values behind each other along an axis. @since 0.1 */
TN_API tn_x tn_concat_(int32_t axis, size_t count, const tn_x *values, const char *file, int32_t line);
/** `count` equal parts along an axis, 1 to 64, into out[]; the first one is returned, too. @since 0.1 */
TN_API tn_x tn_split_(tn_x x, size_t count, int32_t axis, tn_x *out, const char *file, int32_t line);

typedef struct tn_slice_options {
    TN_NN_HEAD;
    int32_t axis;
    int32_t reserved;
    int64_t begin, end; /* below 0: from the end; end 0: to the end */
} tn_slice_options;

/** A part along one axis. @since 0.1 */
TN_API tn_x tn_slice_(tn_x x, const tn_slice_options *options);

typedef struct tn_op_options {
    TN_NN_HEAD;
    const char *name;      /* NULL: the operator's with a number */
    const char *attrs[24]; /* pairs of name and text: {"k", "3", "ret_typ", "mask"} */
    tn_x with[8];          /* further inputs */
    tn_x *out;             /* takes out_count outputs; NULL: the first one is returned alone */
    int32_t out_count;
} tn_op_options;

/** Any operator, by name. @since 0.1 */
TN_API tn_x tn_op_(tn_x x, const char *op, const tn_op_options *options);

/** First state of a recurrent cell: zeros (N, units) for the N samples of x. @since 0.1 */
TN_API tn_x tn_state_(tn_x x, int64_t units, const char *file, int32_t line);

typedef struct tn_cell_options {
    TN_NN_HEAD;
    const char *name;       /* of the scope of its parameters: needed, steps of one name share them */
    int64_t units;          /* width of the states */
    const char *activation; /* of the new values, not of a GRU without a .kernel; NULL: tanh */
    int64_t projection;     /* tn_lstm_cell: width of the projected output, at most units; 0: none */
    /* A convolutional cell, of x and states (N, C, …) with one to three axes: sides of the windows on x, the
     * zeros around x, and the sides of the windows on the state, which are odd. 0: dense layers. */
    int32_t kernel[3], pad[3], state_kernel[3];
    int32_t reserved;
    int32_t dilate[3], state_dilate[3]; /* of a convolutional cell; 0: 1, behind the first: as that */
    const char *recurrent_activation;   /* of the gates of an LSTM without a .kernel; NULL: sigmoid */
} tn_cell_options;

/**
 * One step of a recurrent cell, with Gluon's parameters and order of gates: x (N, …) and states[] (N, units),
 * which the next ones replace; tn_state() makes first ones, NULL among them stands for zeros. RNN and GRU
 * have one state, LSTM output and cell.
 * With a .projection the LSTM's output, and its first state, is a product with h2r.weight: Gluon's LSTMPCell.
 * tn_lstm_cell(x, states, .name = "lstm0", .units = 64)
 * @return the output, which is states[0]
 * @since 0.1
 */
TN_API tn_x tn_rnn_cell_(tn_x x, tn_x *states, const tn_cell_options *options);
TN_API tn_x tn_lstm_cell_(tn_x x, tn_x *states, const tn_cell_options *options);
TN_API tn_x tn_gru_cell_(tn_x x, tn_x *states, const tn_cell_options *options);

typedef struct tn_unroll_options {
    TN_NN_HEAD;
    void *arg;          /* of the cell */
    const char *layout; /* of x and the output: "TNC" or "NTC"; NULL: TNC */
    int32_t states;     /* that the cell has, 1 to 8 */
    int32_t reverse;    /* 1: from the last step to the first one */
    tn_x lengths;       /* steps of each sample (N): outputs behind them are 0, states as of the last one of
                           these; NULL: all */
} tn_unroll_options;

/**
 * A cell over all steps of x, (T, N, …). Both directions of a sequence are two calls, .reverse in one, and
 * tn_concat(): Gluon's BidirectionalCell; tn_add() of output and input in the cell is its ResidualCell.
 * tn_unroll(x, states, cell, .states = 2)
 * @param states first ones, which the last ones replace; NULL among them: as the cell takes it
 * @param cell   a step: gives its output, and replaces the states
 * @return the outputs (T, N, …)
 * @since 0.1
 */
TN_API tn_x tn_unroll_(tn_x x, tn_x *states, tn_x (*cell)(tn_x x, tn_x *states, void *arg),
                       const tn_unroll_options *options);

typedef struct tn_rnn_options {
    TN_NN_HEAD;
    const char *name;       /* of the scope of its parameters: needed */
    int64_t units;          /* width of the states */
    int64_t projection;     /* tn_lstm: width of the projected output; 0: none */
    double dropout;         /* share of the inputs of layers but the first that training drops */
    const char *activation; /* tn_rnn: "relu" or "tanh"; NULL: relu, as Gluon */
    const char *layout;     /* of x and the output: "TNC" or "NTC"; NULL: TNC */
    int32_t layers;         /* each on the outputs of the one before; 0: 1 */
    int32_t bidirectional;  /* 1: each layer runs from both ends */
    tn_x lengths;           /* steps of each sequence (N): outputs behind them are 0; NULL: all */
} tn_rnn_options;

/**
 * Recurrent layers over whole sequences (T, N, C), with Gluon's parameters and order of gates: as steps of
 * tn_rnn_cell(), tn_lstm_cell() and tn_gru_cell() compute them, in one operator.
 * tn_lstm(x, NULL, .name = "lstm0", .units = 64, .layers = 2)
 * @param states NULL: zeros; else first ones, which the last ones replace: one of RNN and GRU, output and
 * cell of LSTM, each (layers · directions, N, units); NULL among them: zeros
 * @return the outputs (T, N, directions · units)
 * @since 0.1
 */
TN_API tn_x tn_rnn_(tn_x x, tn_x *states, const tn_rnn_options *options);
TN_API tn_x tn_lstm_(tn_x x, tn_x *states, const tn_rnn_options *options);
TN_API tn_x tn_gru_(tn_x x, tn_x *states, const tn_rnn_options *options);

/* ---- losses and metrics: one number per sample, (N) ---- */

/** Mean over all axes but the first. @since 0.1 */
TN_API tn_x tn_mean_(tn_x x, const char *file, int32_t line);
/** Softmax cross-entropy of scores (N, classes) and class numbers (N). @since 0.1 */
TN_API tn_x tn_softmax_ce_(tn_x x, tn_x labels, const char *file, int32_t line);
/** Cross-entropy of sigmoid(x) and labels from 0 to 1, of as many elements. @since 0.1 */
TN_API tn_x tn_sigmoid_ce_(tn_x x, tn_x labels, const char *file, int32_t line);
/** Half the mean of the squared differences; mean of the absolute ones. @since 0.1 */
TN_API tn_x tn_l2_(tn_x x, tn_x labels, const char *file, int32_t line);
TN_API tn_x tn_l1_(tn_x x, tn_x labels, const char *file, int32_t line);

typedef struct tn_loss_options {
    TN_NN_HEAD;
    double weight;    /* the loss is multiplied by it; 0: 1 */
    double margin;    /* hinge, squared_hinge, triplet: 0: 1; cosine_embedding */
    double rho;       /* huber: where it turns from square to straight; 0: 1 */
    double smoothing; /* sdml; 0: 0.3 */
    /* 1: x holds log-probabilities (softmax_ce, kl_div), probabilities (sigmoid_ce) or rates (poisson_nll)
     * rather than scores */
    int32_t transformed;
    int32_t dense;      /* softmax_ce: 1: labels are probabilities of all classes */
    int32_t binary;     /* logistic: 1: labels are 0 and 1 rather than -1 and 1 */
    int32_t full;       /* poisson_nll: 1: with Stirling's term */
    tn_x sample_weight; /* (N, 1, …): of the numbers before they are summed; NULL: 1 */
    tn_x pos_weight;    /* sigmoid_ce: of labels that are 1; NULL: 1 */
    tn_x other;         /* triplet: the negative; cosine_embedding: the second input */
    tn_x data_lengths;  /* ctc: steps of each sample (N); NULL: all */
    tn_x label_lengths; /* ctc: labels of each sample (N); NULL: up to the first -1 */
    const char *layout; /* ctc: of x, "NTC" or "TNC"; NULL: NTC */
    int32_t axis;       /* softmax_ce, kl_div: of the classes; below 0 from the last one; 0: the last one */
    int32_t batch_axis; /* of x, of the samples; not of ctc, cosine_embedding and sdml */
    const char *label_layout; /* ctc: "NT" or "TN"; NULL: NT */
} tn_loss_options;

/**
 * A loss by its name, with Gluon's meaning: l2, l1, softmax_ce, sigmoid_ce, kl_div, huber, hinge,
 * squared_hinge, logistic, triplet (labels: the positive), poisson_nll, cosine_embedding (labels: -1 or 1),
 * sdml (labels: the second batch, of the same samples), ctc (x: scores (N, T, classes), of which the last is
 * the blank; labels (N, L)).
 * tn_loss(x, labels, "huber", .rho = 2)
 * @since 0.1
 */
TN_API tn_x tn_loss_(tn_x x, tn_x labels, const char *kind, const tn_loss_options *options);
/** 1 where the largest score is that of the class, else 0: of scores (N, classes, …), or along the last axis
 * where labels (N, …) fit that alone. @since 0.1 */
TN_API tn_x tn_accuracy_(tn_x x, tn_x labels, const char *file, int32_t line);

/** Arguments of a call with several values are evaluated from here on: the macros call it. @since 0.1 */
TN_API void tn_arguments_(const char *file, int32_t line);

/* ---- the macros ---- */

#ifndef __cplusplus
#define tn_net_function(...) TN_NN_NET_(tn_net_function_, __VA_ARGS__, )
#define tn_net_functions(...) TN_NN_NET_(tn_net_functions_, __VA_ARGS__, )
#define TN_NN_NET_(call, app, function, ...)                                                                 \
    call(app, function, &(const tn_function_options){TN_NN_HERE_(tn_function_options), __VA_ARGS__})
#define tn_net_block(app, ...) TN_NN_NET_BLOCK_(app, __VA_ARGS__, )
#define TN_NN_NET_BLOCK_(app, json, ...)                                                                     \
    tn_net_block_(app, json, &(const tn_block_options){TN_NN_HERE_(tn_block_options), __VA_ARGS__})
#define tn_net_call(net, x) tn_net_call_(net, x, __FILE__, __LINE__)
#define tn_net_call_all(net, in, out) tn_net_call_all_(net, in, out, __FILE__, __LINE__)

#define tn_dim(x, axis) tn_dim_(x, axis, __FILE__, __LINE__)
#define tn_ndim(x) tn_ndim_(x, __FILE__, __LINE__)
#define tn_param(x, path) tn_param_(x, path, __FILE__, __LINE__)
/* tn_weight(x, "scale", .shape = {64}) */
#define tn_weight(...) TN_NN_WEIGHT_(__VA_ARGS__, )
#define TN_NN_WEIGHT_(x, name, ...)                                                                          \
    tn_weight_(x, name, &(const tn_weight_options){TN_NN_HERE_(tn_weight_options), __VA_ARGS__})
#define tn_read(x, count, out) tn_read_(x, count, out, __FILE__, __LINE__)
#define tn_scope_begin(x, ...) tn_scope_begin_(x, __FILE__, __LINE__, __VA_ARGS__)
#define tn_scope_end(x) tn_scope_end_(x, __FILE__, __LINE__)

#define tn_dense(...) TN_NN_CALL_(tn_dense_, tn_dense_options, __VA_ARGS__)
#define tn_conv2d(...) TN_NN_CALL_(tn_conv2d_, tn_conv2d_options, __VA_ARGS__)
#define tn_maxpool2d(...) TN_NN_CALL_(tn_maxpool2d_, tn_pool2d_options, __VA_ARGS__)
#define tn_avgpool2d(...) TN_NN_CALL_(tn_avgpool2d_, tn_pool2d_options, __VA_ARGS__)
#define tn_globalavgpool2d(...) TN_NN_CALL_(tn_globalavgpool2d_, tn_net_options, __VA_ARGS__)
#define tn_conv1d(...) TN_NN_CALL_(tn_conv1d_, tn_conv_options, __VA_ARGS__)
#define tn_conv3d(...) TN_NN_CALL_(tn_conv3d_, tn_conv_options, __VA_ARGS__)
#define tn_maxpool1d(...) TN_NN_CALL_(tn_maxpool1d_, tn_pool_options, __VA_ARGS__)
#define tn_maxpool3d(...) TN_NN_CALL_(tn_maxpool3d_, tn_pool_options, __VA_ARGS__)
#define tn_avgpool1d(...) TN_NN_CALL_(tn_avgpool1d_, tn_pool_options, __VA_ARGS__)
#define tn_avgpool3d(...) TN_NN_CALL_(tn_avgpool3d_, tn_pool_options, __VA_ARGS__)
#define tn_globalmaxpool1d(...) TN_NN_CALL_(tn_globalmaxpool1d_, tn_net_options, __VA_ARGS__)
#define tn_globalmaxpool2d(...) TN_NN_CALL_(tn_globalmaxpool2d_, tn_net_options, __VA_ARGS__)
#define tn_globalmaxpool3d(...) TN_NN_CALL_(tn_globalmaxpool3d_, tn_net_options, __VA_ARGS__)
#define tn_globalavgpool1d(...) TN_NN_CALL_(tn_globalavgpool1d_, tn_net_options, __VA_ARGS__)
#define tn_globalavgpool3d(...) TN_NN_CALL_(tn_globalavgpool3d_, tn_net_options, __VA_ARGS__)
#define tn_instancenorm(...) TN_NN_CALL_(tn_instancenorm_, tn_instancenorm_options, __VA_ARGS__)
#define tn_groupnorm(...) TN_NN_CALL_(tn_groupnorm_, tn_groupnorm_options, __VA_ARGS__)
#define tn_prelu(...) TN_NN_CALL_(tn_prelu_, tn_prelu_options, __VA_ARGS__)
#define tn_elu(...) TN_NN_CALL_(tn_elu_, tn_elu_options, __VA_ARGS__)
#define tn_selu(...) TN_NN_CALL_(tn_selu_, tn_net_options, __VA_ARGS__)
#define tn_gelu(...) TN_NN_CALL_(tn_gelu_, tn_net_options, __VA_ARGS__)
#define tn_conv1dtranspose(...) TN_NN_CALL_(tn_conv1dtranspose_, tn_convtranspose_options, __VA_ARGS__)
#define tn_conv2dtranspose(...) TN_NN_CALL_(tn_conv2dtranspose_, tn_convtranspose_options, __VA_ARGS__)
#define tn_conv3dtranspose(...) TN_NN_CALL_(tn_conv3dtranspose_, tn_convtranspose_options, __VA_ARGS__)
#define tn_batchnorm(...) TN_NN_CALL_(tn_batchnorm_, tn_batchnorm_options, __VA_ARGS__)
#define tn_batchnormrelu(...) TN_NN_CALL_(tn_batchnormrelu_, tn_batchnorm_options, __VA_ARGS__)
#define tn_deformableconv2d(...) TN_NN_CALL_(tn_deformableconv2d_, tn_deformable_options, __VA_ARGS__)
#define tn_modulateddeformableconv2d(...)                                                                    \
    TN_NN_CALL_(tn_modulateddeformableconv2d_, tn_deformable_options, __VA_ARGS__)
#define tn_syncbatchnorm(...) TN_NN_CALL_(tn_syncbatchnorm_, tn_batchnorm_options, __VA_ARGS__)
#define tn_layernorm(...) TN_NN_CALL_(tn_layernorm_, tn_layernorm_options, __VA_ARGS__)
#define tn_embedding(...) TN_NN_CALL_(tn_embedding_, tn_embedding_options, __VA_ARGS__)
#define tn_dropout(...) TN_NN_CALL_(tn_dropout_, tn_dropout_options, __VA_ARGS__)
#define tn_flatten(...) TN_NN_CALL_(tn_flatten_, tn_net_options, __VA_ARGS__)
#define tn_activation(...) TN_NN_CALL_(tn_activation_, tn_activation_options, __VA_ARGS__)
#define tn_reflectionpad2d(...) TN_NN_CALL_(tn_reflectionpad2d_, tn_reflectionpad_options, __VA_ARGS__)
#define tn_leakyrelu(...) TN_NN_CALL_(tn_leakyrelu_, tn_leakyrelu_options, __VA_ARGS__)

#define TN_NN_CELL_(call, x, states, ...)                                                                    \
    call(x, states, &(const tn_cell_options){TN_NN_HERE_(tn_cell_options), __VA_ARGS__})
#define tn_rnn_cell(...) TN_NN_CELL_(tn_rnn_cell_, __VA_ARGS__, )
#define tn_lstm_cell(...) TN_NN_CELL_(tn_lstm_cell_, __VA_ARGS__, )
#define tn_gru_cell(...) TN_NN_CELL_(tn_gru_cell_, __VA_ARGS__, )

#define tn_unroll(...) TN_NN_UNROLL_(__VA_ARGS__, )
#define TN_NN_UNROLL_(x, states, cell, ...)                                                                  \
    tn_unroll_(x, states, cell, &(const tn_unroll_options){TN_NN_HERE_(tn_unroll_options), __VA_ARGS__})

#define TN_NN_RECURRENT_(call, x, states, ...)                                                               \
    call(x, states, &(const tn_rnn_options){TN_NN_HERE_(tn_rnn_options), __VA_ARGS__})
#define tn_rnn(...) TN_NN_RECURRENT_(tn_rnn_, __VA_ARGS__, )
#define tn_lstm(...) TN_NN_RECURRENT_(tn_lstm_, __VA_ARGS__, )
#define tn_gru(...) TN_NN_RECURRENT_(tn_gru_, __VA_ARGS__, )

#define tn_relu(x) tn_relu_(x, __FILE__, __LINE__)
#define tn_sigmoid(x) tn_sigmoid_(x, __FILE__, __LINE__)
#define tn_tanh(x) tn_tanh_(x, __FILE__, __LINE__)
#define tn_softrelu(x) tn_softrelu_(x, __FILE__, __LINE__)
#define tn_softsign(x) tn_softsign_(x, __FILE__, __LINE__)
#define tn_pixelshuffle(...) TN_NN_CALL_(tn_pixelshuffle_, tn_pixelshuffle_options, __VA_ARGS__)
#define tn_dropout_mask(like, rate) tn_dropout_mask_(like, rate, __FILE__, __LINE__)
#define tn_zoneout(now, before, rate) tn_zoneout_(now, before, rate, __FILE__, __LINE__)
#define tn_swish(x, beta) tn_swish_(x, beta, __FILE__, __LINE__)
#define tn_exp(x) tn_exp_(x, __FILE__, __LINE__)
#define tn_log(x) tn_log_(x, __FILE__, __LINE__)
#define tn_abs(x) tn_abs_(x, __FILE__, __LINE__)
#define tn_square(x) tn_square_(x, __FILE__, __LINE__)
#define tn_sqrt(x) tn_sqrt_(x, __FILE__, __LINE__)
#define tn_stop(x) tn_stop_(x, __FILE__, __LINE__)
#define tn_softmax(x) tn_softmax_(x, __FILE__, __LINE__)
#define tn_log_softmax(x) tn_log_softmax_(x, __FILE__, __LINE__)
#define tn_scale(x, by) tn_scale_(x, by, __FILE__, __LINE__)
#define tn_shift(x, by) tn_shift_(x, by, __FILE__, __LINE__)
#define tn_state(x, units) tn_state_(x, units, __FILE__, __LINE__)
#define tn_mean(x) tn_mean_(x, __FILE__, __LINE__)

/* tn_reshape(x, 0, -1) */
#define tn_reshape(x, ...) tn_reshape_(x, TN_NN_LIST_(int64_t, __VA_ARGS__), __FILE__, __LINE__)
#define tn_transpose(x, ...) tn_transpose_(x, TN_NN_LIST_(int64_t, __VA_ARGS__), __FILE__, __LINE__)
#define tn_slice(...) TN_NN_CALL_(tn_slice_, tn_slice_options, __VA_ARGS__)
#define tn_split(x, count, axis, out) tn_split_(x, count, axis, out, __FILE__, __LINE__)
#define TN_NN_LIST_(type, ...)                                                                               \
    sizeof((const type[]){__VA_ARGS__}) / sizeof(type), (const type[])                                       \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

#define TN_NN_TWO_(call, a, b) (tn_arguments_(__FILE__, __LINE__), call(a, b, __FILE__, __LINE__))
#define tn_add(a, b) TN_NN_TWO_(tn_add_, a, b)
#define tn_sub(a, b) TN_NN_TWO_(tn_sub_, a, b)
#define tn_mul(a, b) TN_NN_TWO_(tn_mul_, a, b)
#define tn_div(a, b) TN_NN_TWO_(tn_div_, a, b)
#define tn_softmax_ce(x, labels) TN_NN_TWO_(tn_softmax_ce_, x, labels)
#define tn_sigmoid_ce(x, labels) TN_NN_TWO_(tn_sigmoid_ce_, x, labels)
#define tn_l2(x, labels) TN_NN_TWO_(tn_l2_, x, labels)
#define tn_l1(x, labels) TN_NN_TWO_(tn_l1_, x, labels)
#define tn_accuracy(x, labels) TN_NN_TWO_(tn_accuracy_, x, labels)
/* tn_concat(1, a, b, c) */
#define tn_concat(axis, ...)                                                                                 \
    (tn_arguments_(__FILE__, __LINE__), tn_concat_(axis, TN_NN_LIST_(tn_x, __VA_ARGS__), __FILE__, __LINE__))
#define tn_loss(...) TN_NN_LOSS_(__VA_ARGS__, )
#define TN_NN_LOSS_(x, labels, kind, ...)                                                                    \
    (tn_arguments_(__FILE__, __LINE__),                                                                      \
     tn_loss_(x, labels, kind, &(const tn_loss_options){TN_NN_HERE_(tn_loss_options), __VA_ARGS__}))
/* tn_op(x, "topk", .attrs = {"k", "3"}) */
#define tn_op(...) TN_NN_OP_(__VA_ARGS__, )
#define TN_NN_OP_(x, op, ...)                                                                                \
    (tn_arguments_(__FILE__, __LINE__),                                                                      \
     tn_op_(x, op, &(const tn_op_options){TN_NN_HERE_(tn_op_options), __VA_ARGS__}))
#endif

#ifdef __cplusplus
}
#endif

#endif
