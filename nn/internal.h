/*
 * What the files of nn share. Everything hangs on the app: it owns a list of objects (nets, data sets,
 * trainers …) and a stack of temporary arrays. A function that fails puts its error into the app, once;
 * whoever finds the app failed returns at once.
 */
#ifndef TN_NN_INTERNAL_H
#define TN_NN_INTERNAL_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "tenon/nn.h"
#include "tenon/tenon.h"

#define TNN_TEXT_MAX 4096   /* bytes of an error text: a few lines */
#define TNN_LAYERS_MAX 4096 /* of a net, far above any that is written by hand */
#define TNN_DEPTH_MAX 32    /* of nested nets */
#define TNN_TEMPORARIES_MAX 1048576
#define TNN_NDIM_MAX 8 /* of a net's input */

#if defined(__GNUC__)
#define TNN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TNN_PRINTF(text, first)
#endif

/* ---- app.c ---- */

typedef struct tnn_object { /* first member of all that hangs on an app */
    struct tnn_object *next;
    struct tn_app *app;
    void (*destroy)(struct tnn_object *object);
} tnn_object;

typedef struct tnn_scope { /* temporaries made since a data set gave its batch */
    const void *owner;
    size_t mark;
} tnn_scope;

typedef struct tnn_known { /* labels of a training's data while its loss is called */
    const tn_x *labels;
    const int64_t *classes; /* of each: one more than its largest, 0: these are no classes */
    size_t count;
} tnn_known;

#define TNN_DEVICES_MAX 64                                    /* that one program trains on */
#define TNN_IN_PLACE "worker %lld is in the place of another" /* of a store: core says it so, too */

struct tn_app {
    tn_ctx *ctx;
    tn_app_options options; /* as far as its writer knew them; texts are not kept */
    char *name;
    char device[32];
    const tn_device *devices[TNN_DEVICES_MAX]; /* of device.default */
    size_t device_count;
    unsigned synced; /* layers and graphs that have taken keys for SyncBatchNorm */
    tn_status status;
    int exit_code;
    uint32_t number; /* TN number */
    char error[TNN_TEXT_MAX];
    bool reported, recording;
    tnn_object *objects; /* newest first */
    tn_array **temporaries;
    size_t temporary_count, temporary_capacity;
    tnn_scope scopes[64];
    size_t scope_count;
    struct tnn_sites *sites; /* of losses and meters, loss.c */
    const tnn_known *known;  /* NULL: no loss of a training is being called */
    uint32_t hook_count;     /* of all nets */
    int64_t outputs; /* that the data asks of a net of the zoo, where model.classes does not; 0: none */
};

bool tnn_ok(const tn_app *app);

/* The first error stays; returns `status`. */
tn_status tnn_fail(tn_app *app, tn_status status, const char *format, ...) TNN_PRINTF(3, 4);
/* Of the core: its text of this thread behind "what: ". TN_OK: nothing. */
tn_status tnn_check(tn_app *app, tn_status status, const char *format, ...) TNN_PRINTF(3, 4);
/* Numbers of core/base/errors.list, which messages and exit codes go by. */
#define TNN_NUMBER_ABSENT 1501u         /* there is no such file or folder */
#define TNN_NUMBER_PLUGIN_MISSING 1304u /* no plugin that is here reads files of this kind */
/* A path that is to be read leads nowhere: TN_E_IO, TN-1501. A name that stands for nothing (of a data set, a
 * run, a column) is TN_E_KEY. */
tn_status tnn_fail_absent(tn_app *app, const char *format, ...) TNN_PRINTF(2, 3);
/* Of a call of the system that failed, by its errno: TN_E_NOMEM or TN_E_IO. */
static inline tn_status tnn_status_of(int error)
{
    return error == ENOMEM ? TN_E_NOMEM : TN_E_IO;
}
/* A call of the system on `path` has failed, errno says why. */
tn_status tnn_fail_system(tn_app *app, const char *path);
/* What is to be read cannot be opened, errno says why: TN_E_IO, TN-1501 where it is not there; TN_E_NOMEM. */
tn_status tnn_fail_open(tn_app *app, const char *path);
tn_status tnn_no_memory(tn_app *app);
/* Lines that went through tn_text_escape(), with a TN number. */
void tnn_fail_text(tn_app *app, tn_status status, uint32_t number, const char *text);
/* To the log that the app was opened with, if log.level lets warnings through. */
void tnn_warn(tn_app *app, const char *format, ...) TNN_PRINTF(2, 3);
bool tnn_data_same(const tn_data *a, const tn_data *b); /* sample for sample, whatever the files are called */
void *tnn_alloc(tn_app *app, size_t count, size_t bytes); /* zeroed; NULL: the app has failed */
char *tnn_strdup(tn_app *app, const char *text);
char *tnn_format(tn_app *app, const char *format, ...) TNN_PRINTF(2, 3); /* to be freed */
/* A number for an attribute: up to 17 `digits`, with a point in every locale. */
#define TNN_NUMBER_TEXT 32
double tnn_number_read(const char *text, char **end); /* as strtod(), whatever the locale */
void tnn_number_text(char out[TNN_NUMBER_TEXT], int digits, double x);
void tnn_object_add(tn_app *app, tnn_object *object, void (*destroy)(tnn_object *));
void tnn_object_drop(tnn_object *object); /* destroys it before its app closes */
/* Copies the options that the caller knew into zeroed memory; NULL: stays zero. */
void tnn_options_copy(void *dst, size_t dst_bytes, const void *src);
void tnn_scope_begin(tn_app *app, const void *owner); /* ends the owner's earlier one */
void tnn_scope_end(tn_app *app, const void *owner);

double tnn_now(void);                                            /* seconds of a clock that only rises */
tn_status tnn_norm(tn_app *app, tn_array *array, double *value); /* in float32 at least; waits */

/* ---- text.c ---- */

#define TNN_SHAPE_TEXT 256
const char *tnn_shape_text(int32_t ndim, const int64_t *shape, char out[TNN_SHAPE_TEXT]); /* 64×1×28×28 */
bool tnn_one_of(const char *text, const char *const *names); /* names: NULL-ended */
bool tnn_is_listed(char *const *names, size_t count, const char *name);
const char *tnn_plain_name(const char *name); /* of a .params file, without "arg:" or "aux:" */
/* Fails with "unknown WHAT "text"; did you mean …? There are: …". */
tn_status tnn_unknown(tn_app *app, const char *what, const char *text, const char *const *names);
bool tnn_ends_with(const char *text, const char *suffix);
const char *tnn_path_name(const char *path);          /* after the last slash */
char *tnn_path_folder(tn_app *app, const char *path); /* "." of a mere name; free() */
/* The file beside `path` whose name ends otherwise: ".idx"; free(). */
char *tnn_beside(tn_app *app, const char *path, const char *ending);
bool tnn_is_utf8(const char *text);
/* Whether a name of less than 1 KiB can be kept and shown as it is: UTF-8, without control characters and
 * those that turn the direction of writing. */
bool tnn_is_printable(const char *text);
size_t tnn_hash(const char *text); /* of hash tables */

/* ---- zoo.c ---- */

/* Whether the net of this name takes (channels, height, width) alone; false: or there is none. */
bool tnn_zoo_takes_images(const char *name);

/* ---- random.c: Philox, the same numbers everywhere ---- */

double tnn_random_unit(uint64_t key, uint64_t high, uint64_t low);   /* [0, 1) */
double tnn_random_normal(uint64_t key, uint64_t high, uint64_t low); /* mean 0, deviation 1 */
uint64_t tnn_random_mix(uint64_t seed, uint64_t purpose);            /* unrelated keys for unrelated uses */
#define TNN_PURPOSE_INIT 1
#define TNN_PURPOSE_SHUFFLE 2
#define TNN_PURPOSE_TRANSFORM 3
#define TNN_PURPOSE_IMAGES 4
#define TNN_PURPOSE_SPLIT 5
#define TNN_PURPOSE_BUCKETS 6
tn_status tnn_seed(tn_app *app, uint64_t given, uint64_t *seed); /* given, or option run.seed */

/* ---- net.c, layer.c ---- */

typedef struct tnn_shape {
    int32_t ndim; /* -1: not known */
    int32_t dtype;
    int64_t dims[TNN_NDIM_MAX];
} tnn_shape;

typedef enum tnn_role {
    TNN_WEIGHT,
    TNN_BIAS,
    TNN_GAMMA,
    TNN_BETA,
    TNN_MEAN,
    TNN_VAR,
    TNN_ALPHA,
    TNN_OFFSET,      /* a weight that begins as zeros */
    TNN_ROLE_UNKNOWN /* of a file's graph: the name does not say it, so the values must be given */
} tnn_role;

typedef struct tnn_param {
    tn_net *net; /* whose layer has it; NULL: of a file's graph */
    char *name;  /* structural: "0.weight", "stage1.conv0.weight" */
    char *full;  /* of its variable: "lenet_conv0_weight" */
    tnn_role role;
    bool aux, fixed; /* fixed: no gradient */
    bool never;      /* the layer has none for it */
    bool rows;       /* its gradient is row_sparse */
    bool given;      /* the program said its shape */
    bool own;        /* of a function, not of a layer: tn_weight() */
    int32_t dtype;   /* of its values */
    uint32_t mode;   /* how its gradient is filled in: TN_MODE_WRITE or TN_MODE_ADD */
    double lr_factor, wd_factor;
    int32_t ndim;                /* -1: not known */
    int64_t shape[TNN_NDIM_MAX]; /* -1: not known */
    tn_array *array;             /* NULL: not initialised */
    tn_array **copies;           /* on the app's further devices; NULL: none so far */
    uint64_t version;            /* moves when values are set from outside */
    tn_symbol *variable;         /* while a trace is composed; NULL */
    tn_init_options *init;       /* its own initialiser, whatever the net's is; NULL: it has none */
    float *values;               /* of a constant; NULL: it is none */
} tnn_param;

/* ---- devices.c ---- */

tn_status tnn_devices_open(tn_app *app); /* those of device.default */
/* Place in the app's list; 0: it is not listed. */
size_t tnn_device_index(const tn_app *app, tn_array *array);
/* On that device: itself, or a temporary copy. */
tn_array *tnn_on(tn_app *app, tn_array *array, size_t index);
/* As tn_app_part(), along `axis`; below 0: all of it, on that device. */
tn_array *tnn_part_along(tn_app *app, tn_array *array, size_t index, int32_t axis);
/* Elements begin … end - 1 along an axis that x has: a view. sampler.c */
tn_status tnn_slice(tn_array *x, int32_t axis, int64_t begin, int64_t end, tn_array **out);
tn_array *tnn_rows_on(tn_app *app, tn_array *array, size_t index); /* a row_sparse one; waits for it */
/* Its array on device `index` of the list, with the values of the first one when it is made. NULL: failed. */
tn_array *tnn_param_on(tn_app *app, tnn_param *param, size_t index);
tn_status tnn_param_spread(tn_app *app, tnn_param *param); /* running statistics: to all devices */
void tnn_param_copies_drop(tnn_param *param);
/* Runs a net whose parameters have values with those of another device. */
typedef tn_status (*tnn_run_fn)(tn_app *app, struct tn_net *net, tn_array *const *in, tn_array **out);
tn_status tnn_net_run_on(size_t index, tnn_run_fn run, struct tn_net *net, tn_array *const *in,
                         tn_array **out);

/* ---- layers ---- */

#define TNN_LAYER_PARAMS 5
#define TNN_OP_OWN "parameter" /* a layer that is a parameter of the function's own, tn_weight() */
#define TNN_LAYER_VALUES 64    /* that one operator may take, or give */
#define TNN_LAYER_INPUTS_MAX (TNN_LAYER_VALUES + TNN_LAYER_PARAMS)
#define TNN_ATTRS 28      /* texts of a layer's attributes: pairs, and the NULL at the end */
#define TNN_SPEC_TEXT 768 /* bytes of these texts */

typedef struct tnn_window { /* how space shrinks */
    bool used, ceil;
    int32_t axes;     /* 1 to 3 of them, behind N and C */
    int64_t channels; /* of a convolution's output; 0: as the input's */
    int32_t kernel[3], stride[3], pad[3], dilate[3];
} tnn_window;

/* A layer as one call asks for it, on the caller's stack. */
typedef struct tnn_spec {
    const char *op, *stem, *name, *file; /* name NULL: the stem with a number */
    int32_t line;
    bool share, random;
    bool joined; /* parameters are called NAME_suffix rather than NAME.suffix */
    bool marked; /* a call of several values, announced by tn_arguments_ */
    bool synced; /* takes ndev and key: of all devices, and of this layer */
    bool plain;  /* a bare operator: its node is called plus0, that of a layer pool0_fwd */
    const char *attrs[TNN_ATTRS];
    size_t attr_count, text_used;
    char text[TNN_SPEC_TEXT];
    const char *activation; /* NULL: none */
    bool itself;            /* the activation is the operator, none stands behind it */
    tnn_window window;
    struct {
        tnn_role role;
        const char *suffix; /* NULL: it is called as the layer is */
        tn_x tied;          /* it is this one, of another layer; NULL: its own */
        bool fixed, rows;
        int32_t ndim; /* 0: its shape is found */
        int64_t shape[TNN_NDIM_MAX];
        const struct tnn_variable *variable; /* of a file's graph; NULL: none */
        const tn_init_options *init;         /* as of tnn_param; both are copied */
        const float *values;
    } params[TNN_LAYER_PARAMS];
    uint32_t param_count;
    char wrong[256]; /* the first bad option; "": none */
} tnn_spec;

typedef struct tnn_layer {
    const char *op; /* NULL: a nested net of a chain */
    const char *stem;
    tn_net *net;
    char *name, *path, *prefix; /* "conv0"; "lenet.conv0"; "lenet_conv0" */
    char *file;
    int32_t line;
    bool unnamed, share, random, plain;
    uint32_t scope;         /* index in net->scopes */
    uint64_t call;          /* the net's call in which it ran last */
    char *attrs[TNN_ATTRS]; /* pairs, NULL-ended */
    size_t attr_count;
    const char *activation; /* NULL: none */
    tnn_window window;
    tnn_param *params[TNN_LAYER_PARAMS];
    bool tied[TNN_LAYER_PARAMS]; /* another layer's */
    uint32_t param_count;
    tn_site *site, *activation_site;
    tn_net *child;
    int32_t out_ndim; /* of the first output, as last inferred; -1 */
    int64_t out_shape[TNN_NDIM_MAX];
} tnn_layer;

/* What the last operator of a file's graph gives. */
typedef enum tnn_head {
    TNN_HEAD_SCORES,      /* any numbers, one per class */
    TNN_HEAD_SOFTMAX,     /* probabilities */
    TNN_HEAD_LOG_SOFTMAX, /* their logarithms */
    TNN_HEAD_OUTPUT,      /* SoftmaxOutput: probabilities; has a label */
    TNN_HEAD_OTHER,       /* not of a classifier, or several outputs */
} tnn_head;

#define TNN_VALUES_MAX 8 /* inputs of a net, and outputs */
#define TNN_KEYS_MAX 64  /* combinations of shapes that a net remembers its program of */

struct tnn_run;
struct tnn_program;

typedef struct tnn_key { /* which program serves inputs of these shapes */
    tnn_shape in[TNN_VALUES_MAX];
    tnn_shape out[TNN_VALUES_MAX];
    struct tnn_program *program;
    char *text; /* of the trace, for nn.trace_check; NULL */
} tnn_key;

typedef struct tnn_scope_row { /* a scope that the net's function has opened */
    char *path;                /* "stage1."; "": the net itself */
    bool complete;             /* one call went through it */
} tnn_scope_row;

struct tn_net {
    tnn_object object;
    tn_net *parent;
    char *name, *path, *prefix, *structure; /* structure: "features." in front of parameter names, "" */
    int32_t depth;
    tnn_layer **layers; /* of a chain in order; of a function as they came up, with all scopes */
    size_t layer_count, layer_capacity;
    tnn_param **params; /* of all layers below, in order of appearance; NULL: to be collected */
    char **param_names; /* structural names, where they are not the parameters' own; NULL: they are */
    size_t param_count;
    bool initialised; /* tn_net_init was called */
    bool filled;      /* every parameter has an array */
    tn_init_options init;
    struct tnn_mixed *mixed; /* mixed.c; NULL: `init` alone */
    uint64_t init_seed;
    bool hybrid;
    tn_hybridize_options hybrid_options;
    struct tnn_run *run; /* made at the first call */
    bool running;
    char by_hand[192]; /* the part that was called outside of this chain; "": none */
    tnn_key *keys;     /* TNN_KEYS_MAX */
    size_t key_count, key_next, key_last;
    int64_t trace_check, calls;   /* the option; calls that found their program */
    struct tnn_program *programs; /* newest first */
    size_t input_count, output_count;
    char *input_names[TNN_VALUES_MAX], *output_names[TNN_VALUES_MAX]; /* NULL: data, output */
    tnn_shape in[TNN_VALUES_MAX], out[TNN_VALUES_MAX];                /* of the last call or inference */
    /* a function net */
    bool function;  /* one of the three; else a chain */
    int32_t dtype;  /* of parameters to come */
    bool shapeless; /* it asks for no sizes, so it can be traced without */
    tn_x (*one)(tn_x x);
    void (*many)(const tn_x *in, tn_x *out);
    void (*inner)(tn_net *net, const tn_x *in, tn_x *out);
    void *arg;
    char place[64]; /* what the next layer's parameters are called, instead of scopes and its name; "": not */
    const tn_params *values; /* of its parameters, by their names; borrowed; NULL: none */
    uint64_t call;
    size_t call_at; /* where the next layer is looked for first */
    tnn_scope_row *scopes;
    size_t scope_count;
    tn_net **uses; /* nets that the function calls */
    size_t use_count;
    struct tnn_names *names; /* of the classes; NULL: none */
    struct tnn_hooks *hooks; /* hooks.c; NULL: none */
    bool regression;         /* tn_net_about() said so, with the units of its labels */
    double unit_mean, unit_deviation;
    struct tnn_model *model; /* a loaded one, load.c; it has no layers */
    tn_symbol *graph;      /* of a file, to be trained, from_symbol.c: no layers, and `params` are its own */
    tn_symbol *graph_file; /* as the file has it: what is exported */
    tnn_head head;         /* of graph_file; graph gives scores */
    char graph_hash[65];
};

tn_app *tnn_net_app(const tn_net *net); /* NULL if the net is, or the app has failed */
tn_status tnn_net_collect(tn_net *net); /* fills net->params */
void tnn_net_uncollect(tn_net *net);
int32_t tnn_dtype_of(const char *op, int32_t dtype);             /* parameters of BatchNorm stay in float32 */
tn_status tnn_net_cast(tn_app *app, tn_net *net, int32_t dtype); /* with all below it */
void tnn_net_grown(tn_net *net); /* its function has made parameters: lists of this one and of those above */
bool tnn_net_by_shapes(const tn_net *net); /* a function, or a chain with one: a program for each shape */
const char *tnn_param_name(const tn_net *net, size_t index); /* structural, of a collected one */
tn_status tnn_net_valued(tn_net *net); /* the same; a parameter without values is TN_E_STATE */
tn_net *tnn_net_create(tn_app *app, tn_net *parent, const char *name, const char *structural);
void tnn_net_changed(tn_net *net); /* a layer was added: programs and lists are stale */
/* A part that ran outside of the chain: the chain is not what was computed. */
tn_status tnn_net_whole(tn_net *net);
void tnn_net_by_hand(tn_net *net); /* this net runs by itself: those above are told */
void tnn_spec_begin(tnn_spec *spec, const char *stem, const char *op);
/* `value` is formatted. */
void tnn_spec_attr(tnn_spec *spec, const char *name, const char *format, ...) TNN_PRINTF(3, 4);
void tnn_spec_number(tnn_spec *spec, const char *name, int digits, double x);
void tnn_spec_wrong(tnn_spec *spec, const char *format, ...) TNN_PRINTF(2, 3);
/* A layer of a chain, or of a function (`scope`, `name`). NULL: failed. */
tnn_layer *tnn_layer_add(tn_net *net, const tnn_spec *spec);
tnn_layer *tnn_layer_make(tn_net *net, const tnn_spec *spec, uint32_t scope, const char *name);
tn_status tnn_layer_attrs(tn_app *app, tnn_layer *layer, const tnn_spec *spec); /* takes other ones */
tn_status tnn_spec_check(tn_app *app, const tnn_spec *spec, const char *path);
void tnn_param_destroy(tnn_param *param);
void tnn_layer_destroy(tnn_layer *layer);
/* The layer's operators over `in`; the node is called `name`. */
tn_status tnn_layer_symbol(tn_app *app, const tnn_layer *layer, uint32_t in_count, tn_symbol *const *in,
                           const char *name, tn_symbol **out);
/* Error of the core in a layer, with its place and input. */
tn_status tnn_layer_fail(tn_app *app, const tnn_layer *layer, tn_status status, const tnn_shape *in,
                         const char *from);
/* Shapes of the layer's parameters and outputs from those of its inputs. `from`: what made the first one. */
typedef struct tnn_outputs {
    uint32_t count;
    tnn_shape shape[TNN_LAYER_VALUES];
} tnn_outputs;
tn_status tnn_layer_infer(tn_app *app, tnn_layer *layer, uint32_t in_count, const tnn_shape *in,
                          const char *from, tnn_outputs *out);
/* Whether a window is left of its input; only for layers with one. */
tn_status tnn_window_check(tn_app *app, const tnn_layer *layer, const tnn_shape *in, const char *from);
/* Runs it now. out[]: room for `room`; `made` of them. */
tn_status tnn_layer_invoke(tn_app *app, tnn_layer *layer, uint32_t in_count, tn_array *const *in,
                           uint32_t room, tn_array **out, uint32_t *made);

/* ---- run.c: a call of a net's function, on arrays or traced ---- */

/* One call. in[], out[]: net->input_count and net->output_count; out[] are the caller's references. */
tn_status tnn_net_call_arrays(tn_net *net, tn_array *const *in, tn_array **out);
/* The same on symbols: fills net->in and net->out, and the shapes of parameters. `symbol` may be NULL. */
tn_status tnn_net_trace(tn_net *net, const tnn_shape *in, tn_symbol **symbol);
/* The same, as text to be freed: a line for each layer in the order of the calls. */
tn_status tnn_net_trace_text(tn_net *net, const tnn_shape *in, char **text);
void tnn_run_destroy(struct tnn_run *run);
/* One layer over values; NULL: failed. Of several outputs all but the first go into `more`. */
tn_x tnn_value_layer(const tnn_spec *spec, uint32_t count, const tn_x *in, tn_x *out, uint32_t out_count);
/* The parameters of a layer alone, all of known shape, as values; false: failed. */
bool tnn_value_params(const tnn_spec *spec, tn_x x, tn_x *out);
tn_app *tnn_value_app(tn_x x, const char *what, const char *file, int32_t line); /* NULL: not usable now */
const tnn_shape *tnn_value_shape(tn_x x);
tnn_param *tnn_value_param(tn_x x); /* NULL: it is none */
bool tnn_name_ok(const char *name); /* letters, digits, _ and - */

/* ---- trace.c ---- */

typedef struct tnn_ref {
    int32_t node; /* -1 - k: input k; -1 - TNN_VALUES_MAX - k: parameter k of the trace */
    uint32_t output;
} tnn_ref;

struct tnn_trace;
tn_status tnn_trace_add(tn_app *app, struct tnn_trace **trace, tnn_layer *layer, uint32_t in_count,
                        const tnn_ref *in, int32_t *node);
tn_status tnn_trace_param(tn_app *app, struct tnn_trace **trace, tnn_param *param, tnn_ref *ref);
char *tnn_trace_text(tn_app *app, const struct tnn_trace *trace, size_t out_count, const tnn_ref *out);
tn_status tnn_trace_symbol(tn_app *app, struct tnn_trace *trace, tn_net *net, const tnn_ref *out,
                           tn_symbol **symbol);
void tnn_trace_clear(struct tnn_trace *trace);
void tnn_trace_destroy(struct tnn_trace *trace);

/* ---- graph.c: files ---- */

/* All arrays are checked before the first is changed. `what`: the file, for messages. */
tn_status tnn_net_take(tn_net *net, const tn_params *params, const char *what);

/* ---- shapes ---- */

/* From the shapes of the inputs: shapes of parameters and of every layer's output. */
tn_status tnn_net_infer_all(tn_net *net, const tnn_shape *in);
tn_status tnn_net_infer(tn_net *net, int32_t ndim, const int64_t *shape); /* of a net with one input */
tnn_shape tnn_shape_of(int32_t ndim, const int64_t *shape);
tn_status tnn_shape_take(tn_app *app, tn_array *array, const char *what, tnn_shape *out);

/* ---- init.c ---- */

/* Makes and fills the arrays that parameters lack; shapes must be known. */
tn_status tnn_net_fill(tn_net *net);
/* Of a function's layer, at its first call: the outer net stands in for one that was not initialised. */
tn_status tnn_layer_fill(tn_app *app, tnn_layer *layer, tn_net *outer);
tn_status tnn_param_fits(tn_app *app, const tnn_param *param, tn_array *values);
/* Checks an initialiser and fills in what it leaves out, with texts that stay. */
tn_status tnn_init_take(tn_app *app, const tn_init_options *given, tn_init_options *out);
/* mixed.c: rows and file of an initialiser; *out NULL: it has none. */
tn_status tnn_mixed_create(tn_app *app, const tn_init_options *o, struct tnn_mixed **out);
void tnn_mixed_destroy(struct tnn_mixed *m);
const char *tnn_mixed_name(const tn_net *net, const tnn_param *p); /* of the parameter in this net */
extern const char *const tnn_init_factors[], *const tnn_init_distributions[]; /* the usual one first */
typedef struct tnn_filling { /* a parameter, or a part of it, that gets first values */
    const char *name;        /* of the parameter, for messages */
    const int64_t *shape;
    int32_t ndim;
    uint64_t count;            /* elements */
    uint64_t key, index, base; /* of random numbers: element k has that of base + k */
    float *values;
} tnn_filling;
tn_status tnn_init_weights(tn_app *app, const tn_init_options *o, const tnn_filling *f);
/* init_rnn.c: the initialiser of the vector of an RNN. */
#define TNN_INIT_RNN "fusedrnn"
extern const char *const tnn_init_rnn_modes[];            /* the usual one first */
const char *tnn_init_rnn_wrong(const tn_init_options *o); /* what is, of its numbers; NULL: nothing */
tn_status tnn_init_rnn_check(tn_app *app, const tn_init_options *o);
tn_status tnn_init_rnn(tn_app *app, const tn_net *net, const tn_init_options *o, const tnn_filling *f);
/* MXNet's text of an initialiser, "zeros" or ["xavier", {"magnitude": 2}]; false: none that is here. */
bool tnn_init_parse(const char *text, tn_init_options *out);
/* The file's value of a parameter; *out NULL: it has none. */
tn_status tnn_mixed_value(tn_app *app, const tn_net *net, const tnn_param *p, tn_array **out);
/* The initialiser for a name; NULL: failed. */
const tn_init_options *tnn_mixed_init(tn_app *app, const tn_net *net, const char *name);
/* Puts values into a parameter, making its array if need be. */
tn_status tnn_param_set(tn_app *app, tnn_param *param, tn_array *values);
/* A gradient of p's shape that has no rows, on the thread's device. */
tn_status tnn_rows_none(tn_app *app, const tnn_param *p, tn_array **out);
tn_status tnn_param_make(tn_app *app, tnn_param *param, const float *values);

/* ---- graph.c ---- */

/* Over its input variables. A function is traced with the shapes that it saw last. */
tn_status tnn_net_symbol(tn_net *net, tn_symbol **out);
/* Through the program of these inputs' shapes, made if need be. */
tn_status tnn_net_program_run(tn_net *net, tn_array *const *in, tn_array **out);
void tnn_net_uncache(tn_net *net);
tn_status tnn_net_params(tn_net *net, bool full_names, tn_params **out); /* full: "arg:lenet_conv0_weight" */
const char *tnn_net_input_name(const tn_net *net, size_t index);

/* ---- from_symbol.c ---- */

tn_status tnn_graph_infer(tn_net *net, const tnn_shape *in);

typedef struct tnn_variable { /* what a graph's variable says of its parameter */
    double lr_factor, wd_factor;
    bool begins;          /* it has an initialiser of its own, which is stronger than the net's … */
    bool strange;         /* … or one that is not here */
    tn_init_options init; /* if `begins` */
} tnn_variable;

/* From the texts of __lr_mult__, __wd_mult__ and __init__; NULL, "": not given. Warns of an initialiser that
 * is not here. */
void tnn_variable_read(tn_app *app, const char *name, const char *lr, const char *wd, const char *init,
                       tnn_variable *out);
/* Appends a parameter to net->params, which have room: variable `name` of the graph whose tn_symbol_internals
 * are given. Its role follows from the name, its factors from the variable's attributes. */
tn_status tnn_graph_param(tn_app *app, tn_net *net, tn_symbol *internals, const char *name, bool aux);
/* Attributes whose variables are parameters, whatever their names: MXNet gives them to nothing else. */
extern const char *const tnn_parameter_keys[];
/* Whether that variable has such an attribute, "__wd_mult__". */
bool tnn_variable_has(tn_symbol *internals, const char *name, const char *key);
tn_status tnn_heads_of(tn_app *app, tn_symbol *symbol, size_t count, tnn_head *heads);
/* Classes that the net tells apart, as last inferred; -1: its output is not (N, classes). */
int64_t tnn_net_width(const tn_net *net);

/* ---- load.c ---- */

#define TNN_NO_OPERATOR 1301u /* TN number of an operator that nothing here defines */
/* The end of a variable's name that says what it is, "weight"; NULL: the name is no parameter's. */
const char *tnn_role_of(const char *name, tnn_role *role);
/* tn_symbol_load(), but all operators that are not here are the app's error, not only the first. */
tn_status tnn_symbol_load(tn_app *app, const char *path, tn_symbol **out);
/* The same to be trained: its SyncBatchNorm is of all devices of the app, or TN_E_UNSUPPORTED. */
tn_status tnn_symbol_take(tn_app *app, const char *path, tn_symbol **out);
/* A file of a graph, or its text (tn_free): SyncBatchNorm is of one device there. */
tn_status tnn_symbol_save(tn_app *app, tn_symbol *symbol, const char *path);
/* A graph's file and its parameters' in one folder: both, or neither and what stood there before. Old
 * parameters cannot come back where there are no hard links and the graph's file cannot be replaced. */
tn_status tnn_pair_save(tn_app *app, tn_symbol *symbol, const char *json, const tn_params *params,
                        const char *file);
tn_status tnn_symbol_text(tn_app *app, tn_symbol *symbol, const char *what, char **out);
/* Why the app's devices cannot share a batch's statistics; NULL: they can, or there is one. */
const char *tnn_synced_refusal(const tn_app *app);

void tnn_model_destroy(struct tnn_model *model);
tn_array *tnn_model_forward(tn_net *net, tn_array *const *in);             /* the first output */
tn_status tnn_model_run(tn_net *net, tn_array *const *in, tn_array **out); /* all of them */
uint32_t tnn_model_outputs(const struct tnn_model *model);
const char *tnn_model_output(const struct tnn_model *model, uint32_t index, tnn_head *head); /* its name */
const tn_params *tnn_model_params(const struct tnn_model *model);
tn_symbol *tnn_model_symbol(const struct tnn_model *model);
tnn_head tnn_model_head(const struct tnn_model *model);

/* ---- names.c: names of classes ---- */

struct tnn_names;
/* FOLDER/classes.txt, if it is there. */
tn_status tnn_names_beside(tn_app *app, const char *folder, struct tnn_names **out);
tn_status tnn_names_make(tn_app *app, const char *const *names, size_t count, struct tnn_names **out);
tn_status tnn_names_read(tn_app *app, const char *path, struct tnn_names **out);
const char *tnn_names_at(const struct tnn_names *names, int64_t index); /* NULL: none */
void tnn_names_destroy(struct tnn_names *names);

/* ---- data.c ---- */

int tnn_data_find(const tn_data *data, const char *name); /* index of a field; -1: there is none */
/* The same for one of `inputs` inputs: an only one takes the first field, whatever its name. */
int tnn_data_meant(const tn_data *data, size_t inputs, const char *name);
const tnn_shape *tnn_data_field_shape(const tn_data *data, size_t index); /* with a 1 in front; NULL */
tn_array *tnn_data_now(const tn_data *data, size_t index);                /* of the running batch; NULL */
int64_t tnn_data_batch(const tn_data *data);
int32_t tnn_data_axis(const tn_data *data); /* along which its batches have their samples */
/* TN_E_UNSUPPORTED: the batches lie along another axis than the first. `what`: who needs that one. */
tn_status tnn_data_rows_first(const tn_data *data, const char *what);
int64_t tnn_data_longest(const tn_data *data);                 /* the largest bucket; 0: there are none */
bool tnn_data_varies(const tn_data *data);                     /* epochs have different numbers of batches */
bool tnn_data_fills(const tn_data *data);                      /* a batch has filler */
tn_array *tnn_data_real(const tn_data *data, tn_array *array); /* the rows that are no filler; borrowed */
/* Labels of `classes` classes (0: not known) against the last dimension of scores: an operator would take the
 * nearest class that there is. */
tn_status tnn_classes_fit(tn_app *app, int64_t classes, int64_t width, const char *what);
/* Of data that gave the array as a batch's labels; 0: none did, or they are no classes. */
int64_t tnn_data_classes_of(const tn_app *app, const tn_array *labels);
tn_app *tnn_data_app(const tn_data *data); /* NULL if it is not usable */

/* ---- nets on data: net.c, takes.c ---- */

/* The running batch of `data` by the names of the net's inputs; an only one is the first field. */
tn_status tnn_net_inputs(const tn_net *net, const tn_data *data, tn_array **in);
tn_status tnn_net_shapes(const tn_net *net, const tn_data *data, tnn_shape *in); /* of these, a whole batch */
/* The first output; NULL: failed. */
tn_array *tnn_net_first(tn_net *net, tn_array *const *in);
tn_array *tnn_net_first_of(tn_net *net, const tn_data *data);
/* Whether the net takes samples of `data`; what the first output is then. */
int tnn_net_takes_data(tn_net *net, const tn_data *data, int32_t *out_ndim, int64_t *out_shape);

/* ---- evaluate.c ---- */

/* Whether the net takes samples of `data` and gives (N, classes). */
tn_status tnn_net_fits(tn_net *net, const tn_data *data, int64_t *classes);

/* ---- loss.c ---- */

struct tnn_sites;
void tnn_sites_destroy(struct tnn_sites *sites);
/* Sum and count of a meter, after waiting; and back. */
tn_status tnn_meter_get(tn_meter *meter, double *sum, int64_t *count);
void tnn_meter_set(tn_meter *meter, double sum, int64_t count);
/* Whether scores of that shape have their classes along axis 1, as MXNet's Accuracy, by how many labels there
 * are; else they lie along the last one. */
bool tnn_classes_second(int32_t ndim, const int64_t *shape, size_t labels);
void tnn_meter_join(tn_meter *meter, bool on);  /* while on: what is added belongs to the batch before */
bool tnn_meter_labelled(const tn_meter *meter); /* it compares with labels */
tn_meter *tnn_meter_like(tn_app *app, const tn_meter *meter); /* new, of the same kinds and options */

/* ---- trainer.c ---- */

/* Adds, or takes back, all states under "state:…", and the step count. */
tn_status tnn_trainer_export(tn_trainer *trainer, tn_params *params);
tn_status tnn_trainer_import(tn_trainer *trainer, const tn_params *params, int64_t steps);
int64_t tnn_trainer_state_elements(tn_trainer *trainer); /* of the parameters that are there */
const tn_trainer_options *tnn_trainer_options(const tn_trainer *trainer); /* as filled in */
bool tnn_trainer_far(const tn_trainer *trainer);                          /* of several workers */
/* Makes its slots and their states: at the first step, or before. */
tn_status tnn_trainer_ready(tn_trainer *trainer);
int64_t tnn_trainer_together(const tn_trainer *trainer); /* workers whose gradients are one sum */
/* Says that no step follows; until all workers have. The values are the servers' then. */
tn_status tnn_trainer_end(tn_trainer *trainer);
tn_app *tnn_trainer_app(const tn_trainer *trainer);

/* job.c: a store of this type sums over several processes; NULL: no */
bool tnn_kv_far(const char *type);

#endif
