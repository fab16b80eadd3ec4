/*
 * The interface of room kv: the parameter store (tenon/kv.h says what each call means), and its parts that
 * servers use too: sums, codecs, optimizers.
 *
 * Bits of a sum: the first value, then each further one added in the order of the list, every addition
 * rounded once to the key's type.
 */
#ifndef TN_KV_H
#define TN_KV_H

#include "exec/exec.h"
#include "tenon/kv.h"

/* Bytes that are copied at once: a payload that is sent rather than held, a value without a worker's help. */
#define TNI_KV_COPY_MAX 16384u

/* ---- codec.c: gradients in fewer bits, in MXNet's layout ----------------------------------------------- */

/* Element i of a part lies in byte i / 4 (2bit) or i / 8 (1bit), the first one in the highest bits; the bytes
 * are filled up to whole 32-bit words, with zeros. */
typedef struct tni_kv_codec {
    uint32_t bits; /* 2, 1; 0: none */
    float threshold;
} tni_kv_codec;
/* From pairs, as tn_kv_set_compression has them. TN_E_ATTR */
tn_status tni_kv_codec_parse(const char *const *params, tni_kv_codec *out);
uint64_t tni_kv_codec_bytes(const tni_kv_codec *c, uint64_t count); /* of so many elements */
/* residual += x, then what is sent is taken off it. */
void tni_kv_codec_encode(const tni_kv_codec *c, const float *x, float *residual, uint64_t count,
                         uint8_t *out);
/* out = what was sent, or with `add` out += it. `in`: tni_kv_codec_bytes(c, count). */
void tni_kv_codec_decode(const tni_kv_codec *c, const uint8_t *in, uint64_t count, float *out, bool add);

/* ---- optimizer.c: name and numbers --------------------------------------------------------------------- */

#define TNI_KV_STATES 4 /* of one parameter, at most; with the float32 copy of one of float16 or bfloat16 */

typedef struct tni_kv_optimizer tni_kv_optimizer;
/* As tn_kv_set_optimizer. TN_E_KEY, TN_E_ATTR */
tn_status tni_kv_optimizer_create(tni_context *c, const char *name, const char *const *params,
                                  tni_kv_optimizer **out);
void tni_kv_optimizer_destroy(tni_kv_optimizer *o); /* NULL is fine */
const char *tni_kv_optimizer_name(const tni_kv_optimizer *o);
/* A parameter of this type has a float32 copy, its last state, which is updated. */
bool tni_kv_optimizer_widens(const tni_kv_optimizer *o, int32_t dtype);
uint32_t tni_kv_optimizer_states(const tni_kv_optimizer *o, int32_t dtype); /* of a parameter of this type */
bool tni_kv_optimizer_lines(const tni_kv_optimizer *o); /* no operator: a step is of all rows */
bool tni_kv_optimizer_whole(const tni_kv_optimizer *o); /* it takes norms: an array is not cut */
/* lr, wd, rescale_grad. TN_E_ATTR */
tn_status tni_kv_optimizer_set(tni_kv_optimizer *o, const char *param, double value);
double tni_kv_optimizer_get(const tni_kv_optimizer *o, const char *param); /* NaN: it has no such one */
/* Sets one of the two by its name. TN_E_ATTR */
tn_status tni_kv_factor_set(const char *param, double value, double *lr_mult, double *wd_mult);

/* What it keeps of one parameter. Zeros are a valid new one, but for the factors, which are 1. */
typedef struct tni_kv_param_slot {
    double lr_mult, wd_mult;
    uint64_t steps;
    tni_array *states[TNI_KV_STATES]; /* made with the first step; of the weight's shape and device */
    tni_site *site;
    double rates[3]; /* that the site has: lr, wd, rescale_grad */
} tni_kv_param_slot;
void tni_kv_param_fini(tni_kv_param_slot *s);
tn_status tni_kv_param_states(const tni_kv_optimizer *o, tni_kv_param_slot *s,
                              tni_array *weight); /* makes them */
/* Its value was assigned: so is the copy of it. */
tn_status tni_kv_param_assigned(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight);
/* Makes all that a step needs. */
tn_status tni_kv_param_ready(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight);
/* Queues a step of `weight` (dense) by `grad` (dense, or row_sparse: only its rows) of a ready parameter. */
tn_status tni_kv_optimizer_step(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight,
                                tni_array *grad);

/* What the optimizer keeps of a part, one behind the other: steps 8, states. Copies the bytes from `from` on
 * out of it, or with `put` into it; what is behind its end is zeros. */
void tni_kv_states_copy(tni_kv_param_slot *s, uint32_t states, uint64_t from, void *memory, uint64_t bytes,
                        bool put);

/* ---- store.c ------------------------------------------------------------------------------------------- */

#define TNI_KV_KEYS_MAX (1u << 20)
#define TNI_KV_VALUES_MAX 1024u /* of one key in one call */

typedef struct tni_kv_destination tni_kv_destination;

/* One key. */
typedef struct tni_kv_key {
    char *name; /* NULL: of a number */
    int64_t number;
    tni_array *value;            /* dense, on the host, or of type `device` where the first value lay */
    bool sparse;                 /* the program's arrays are row_sparse */
    tni_array *merged, *landing; /* the sum; before it goes to its device. NULL: not needed so far */
    tni_array **residuals;       /* per position in the list of values; on the host */
    uint32_t residual_count;
    tni_array *coded;       /* of dist types with a codec: what travels */
    tni_kv_param_slot slot; /* of dist types a copy of what servers keep */
    uint64_t mark;          /* the call that named it last */
    uint32_t wire;          /* of dist types: its number in the job */
    atomic_uint rounds;     /* and pushes that servers have applied */
    uint64_t pushes;        /* that were queued */
    /* Of the trip that was queued last, until its outs are. in_place: the gradient becomes the value. */
    tni_kv_destination *destination;
    bool in_place;
    uint8_t told; /* of dist types: as tni_kv_dist, and its epochs */
    uint32_t epochs;
} tni_kv_key;

/* A type by name; `plugin` NULL: the core serves it alone. */
typedef struct tni_kv_store_type {
    const char *name, *plugin; /* plugin: the collective that sums over processes: group.h */
    bool device;               /* sums where the values lie */
    bool dist;                 /* values lie on servers: dist.h */
} tni_kv_store_type;

/* The public tn_kv is this very struct. */
typedef struct tn_kv {
    tni_context *ctx;
    const tni_kv_store_type *type;
    tni_map *keys;  /* text, or a number's digits, to tni_kv_key */
    int32_t naming; /* 0: no key yet; else TNI_KV_… */
    uint64_t calls;
    tni_kv_codec codec;
    tni_kv_optimizer *optimizer; /* at most one of the two */
    tn_kv_updater_fn updater;
    void *updater_arg;
    struct tni_kv_dist *dist;   /* NULL: values lie here */
    struct tni_kv_group *group; /* NULL: sums are of this process alone */
} tni_kv;
#define TNI_KV_NUMBERS 1
#define TNI_KV_TEXTS 2

tn_status tni_kv_create(tni_context *c, const char *type, tni_kv **out);
void tni_kv_destroy(tni_kv *kv);                                                   /* NULL is fine */
tn_status tni_kv_find(const tni_kv *kv, const tn_kv_item *item, tni_kv_key **out); /* TN_E_KEY */
/* [owner] As the public calls; arrays are of the context, lists complete. */
tn_status tni_kv_init(tni_kv *kv, uint32_t count, const tn_kv_item *items);
tn_status tni_kv_assign(tni_kv *kv, uint32_t count, const tn_kv_item *items);
tn_status tni_kv_push(tni_kv *kv, uint32_t count, const tn_kv_item *items);
tn_status tni_kv_pull(tni_kv *kv, bool sparse, uint32_t count, const tn_kv_item *items);
tn_status tni_kv_pushpull(tni_kv *kv, uint32_t count, const tn_kv_item *items);
tn_status tni_kv_broadcast(tni_kv *kv, uint32_t count, const tn_kv_item *items);
tn_status tni_kv_rejoin(tni_kv *kv, uint32_t count, const tn_kv_item *items, uint64_t *steps);
/* Of dist types; at once where this process is alone. */
tn_status tni_kv_barrier(tni_kv *kv);
tn_status tni_kv_end(tni_kv *kv);
tn_status tni_kv_program(tni_kv *kv, int32_t head, const char *body);
void tni_kv_sizes(const tni_kv *kv, uint32_t *rank, uint32_t *workers, uint32_t *servers);
uint32_t tni_kv_dead(const tni_kv *kv, uint32_t groups); /* TN_KV_… */
tn_status tni_kv_optimizer_take(tni_kv *kv, const char *name, const char *const *params);
tn_status tni_kv_param(tni_kv *kv, const tn_kv_item *item, const char *param, double value);
tn_status tni_kv_rows(tni_kv *kv, uint32_t count, const tn_kv_item *items, tni_array **out);
tn_status tni_kv_compress(tni_kv *kv, const char *const *params);
/* drift.c: as tn_kv_check_drift */
tn_status tni_kv_drift(tni_kv *kv, uint64_t round, uint32_t count, const tn_kv_item *items);

/* ---- states.c ------------------------------------------------------------------------------------------ */

/* From servers, of a dist type. */
tn_status tni_kv_state_get(tni_kv *kv, const tn_kv_item *item, uint32_t index, tni_array **out,
                           uint64_t *steps);
tn_status tni_kv_state_set(tni_kv *kv, const tn_kv_item *item, uint64_t steps);
tn_status tni_kv_save(tni_kv *kv, const char *path);
tn_status tni_kv_load(tni_kv *kv, const char *path);

/* ---- role.c -------------------------------------------------------------------------------------------- */

/* As tn_kv_run_role. */
tn_status tni_kv_run_role(tni_context *c, tn_kv_command_fn fn, void *arg, int32_t *ran);

/* ---- ask.c --------------------------------------------------------------------------------------------- */

/* As tn_kv_report. */
tn_status tni_kv_ask(tni_context *c, uint32_t timeout_ms, tni_str *out);

/* ---- reduce.c: sums ------------------------------------------------------------------------------------ */

/* Queues into = the sum of `count` dense values of its shape and type, on any devices. `held`: a failure that
 * `into` has already keeps it as it is; without, it is forgotten. */
tn_status tni_kv_sum(tni_array *into, uint32_t count, tni_array *const *values, int32_t priority, bool held);
/* Makes those that there are not for `count` values of the shape of `like`, which lies on the host. */
tn_status tni_kv_residuals_make(tni_kv_key *key, tni_array *like, uint32_t count);
/* The same of what comes out of the codec, each value with its residual; `into` and residuals on the host. */
tn_status tni_kv_sum_coded(const tni_kv_codec *codec, tni_kv_key *key, tni_array *into, uint32_t count,
                           tni_array *const *values, int32_t priority);
/* Queues what codes one dense value on the host: `coded`, bytes, and the key's first residual are written. */
tn_status tni_kv_code(const tni_kv_codec *codec, tni_array *value, tni_array *residual, tni_array *coded,
                      int32_t priority);
/* Queues nothing but an order: if one of the first arrays has failed, all of the others are left as they are,
 * and fail. `read_count` 0: the others' failures are forgotten. */
tn_status tni_kv_gate(tni_context *c, uint32_t read_count, uint32_t write_count, tni_array *const *arrays);

#endif
