/* How kernels are found and launched, and what the families of them share. */
#ifndef TNCUDA_LAUNCH_H
#define TNCUDA_LAUNCH_H

#include "../common/node.h"
#include "internal.h"
#include "kernels/args.h"
#include "kernels/loops.h"
#include "tenon/plugin/op.h"

#define TNCUDA_NAME_BYTES 48

#define TNCUDA_FLOATS "f32,f64,f16,bf16"
#define TNCUDA_NUMBERS "f32,f64,f16,u8,i32,i8,i64,i16,u16,u32,bf16"
#define TNCUDA_MOST "f32,f64,f16,u8,i32,i8,i64,bool,i16,u16,u32,bf16" /* all but u64 */
#define TNCUDA_ALL "f32,f64,f16,u8,i32,i8,i64,bool,i16,u16,u32,u64,bf16"

#define TNCUDA_ROW(op_, types_, flags_, prepare_, run_)                                                      \
    TNCUDA_ROW_NAMED(op_, "plain", types_, flags_, prepare_, run_)
/* Of two kernels of an operator each has its own name. */
#define TNCUDA_ROW_NAMED(op_, name_, types_, flags_, prepare_, run_)                                         \
    TNCUDA_ROW_RANKED(op_, name_, 64, types_, flags_, prepare_, run_, tncuda_release)
/* Those of libraries and compilers come before ours. */
#define TNCUDA_ROW_RANKED(op_, name_, rank_, types_, flags_, prepare_, run_, release_)                       \
    &(const tn_kernel)                                                                                       \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = rank_, .op = op_, .name = name_,        \
        .device = "cuda", .isa = "", .op_version_min = 1, .op_version_max = 1,                               \
        .flags = TN_KERNEL_DETERMINISTIC | (flags_), .types = types_, .prepare = prepare_, .run = run_,      \
        .release = release_                                                                                  \
    }

/* Memory of plan->state, zeroed; tncuda_release frees it. Sets what all plans have in common. */
tn_status tncuda_state(void *plugin, const tn_node *node, tn_plan *plan, uint64_t bytes, tn_err *err);
/* For kernels that plan nothing. */
tn_status tncuda_plain_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err);
void tncuda_release(tn_plan *plan);

/* What is freed with a plan's state; `free` frees it. */
typedef struct tncuda_owned {
    struct tncuda_owned *next;
    void (*free)(struct tncuda_owned *what);
} tncuda_owned;

void tncuda_own(tn_plan *plan, tncuda_owned *what);
tncuda_owned *tncuda_owned_of(const tn_plan *plan); /* the first */

/* A kernel of a family's file over `count` elements, or `blocks` blocks, in the stream of the run. `args`:
 * its struct, of `bytes`, copied by the driver. Nothing is launched for 0 of them. */
tn_status tncuda_launch_(const tn_exec *x, const char *family, const char *name, int64_t count,
                         const void *args, uint32_t bytes, tn_err *err);
tn_status tncuda_launch_blocks_(const tn_exec *x, const char *family, const char *name, int64_t blocks,
                                const void *args, uint32_t bytes, tn_err *err);
/* `count` sums of `each` elements (kernels/sums.h): a block makes one, or a thread where they are few. */
tn_status tncuda_launch_sums_(const tn_exec *x, const char *family, const char *name, int64_t count,
                              int64_t each, const void *args, uint32_t bytes, tn_err *err);
/* The kernel `name` of machine code that was made by now, which may be gone once it was loaded: `load` does
 * that, if it is not done yet. */
tn_status tncuda_image_load(const tn_exec *x, const char *name, const void *image, tn_err *err);
tn_status tncuda_launch_image(const tn_exec *x, const char *name, const void *image, int64_t count,
                              const void *args, uint32_t bytes, tn_err *err);
#define tncuda_launch(x, family, name, count, args, err)                                                     \
    tncuda_launch_(x, family, name, count, args, (uint32_t)sizeof *(args), err)
#define tncuda_launch_blocks(x, family, name, blocks, args, err)                                             \
    tncuda_launch_blocks_(x, family, name, blocks, args, (uint32_t)sizeof *(args), err)
#define tncuda_launch_sums(x, family, name, count, each, args, err)                                          \
    tncuda_launch_sums_(x, family, name, count, each, args, (uint32_t)sizeof *(args), err)

/*
 * A call of a library that is given the run's stream, in the context. `args` is all that `call` reads and
 * that may be another at the next run of the plan (addresses, modes), padding zeroed; `state` is the plan's
 * and the rest. While a graph is compared, `call` is made only if something of it differs.
 */
typedef tn_status (*tncuda_library_fn)(const void *state, const void *args, tncuda_stream stream,
                                       tn_err *err);
tn_status tncuda_library_call(const tn_exec *x, tncuda_library_fn call, const void *state, const void *args,
                              uint32_t bytes, tn_err *err);

/* launch.c: the functions of a device's kernels, freed with the device. */
void tncuda_modules_drop(tn_device_handle *device);

/* "f64" for float64, else "f32": what a floating point type is computed in. */
static inline const char *tncuda_suffix(int32_t dtype)
{
    return dtype == TN_F64 ? "f64" : "f32";
}

/* The bytes of a number of that. */
static inline uint64_t tncuda_wide_bytes(int32_t dtype)
{
    return dtype == TN_F64 ? sizeof(double) : sizeof(float);
}

static inline uint64_t tncuda_aligned(uint64_t bytes)
{
    return (bytes + TNCUDA_ALIGN - 1) & ~(uint64_t)(TNCUDA_ALIGN - 1);
}

static inline bool tncuda_same_shape(const tn_tensor *a, const tn_tensor *b)
{
    bool same = a->ndim == b->ndim;

    for (int32_t d = 0; d < a->ndim && same; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

/* "f32", "f16" or "bf16": kernels for packs of one of these. */
static inline const char *tncuda_pack_suffix(int32_t dtype)
{
    return dtype == TN_F32 ? "f32" : dtype == TN_F16 ? "f16" : "bf16";
}

static inline bool tncuda_is_short(int32_t dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16;
}

static inline bool tncuda_is_float(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F64 || tncuda_is_short(dtype);
}

/* `mode`: of outputs. */
static inline tncuda_array tncuda_array_of(const tn_tensor *t, int32_t mode)
{
    return (tncuda_array){t->data, t->dtype, mode};
}

/* A call's arrays: the first inputs and outputs of the node, with modes. */
void tncuda_call_arrays(const tn_exec *x, uint32_t in_count, uint32_t out_count, tncuda_call_args *args);
/* Rows along the axes first … end-1 of a tensor, those of them that there are. */
void tncuda_call_rows(const tn_tensor *t, int32_t first, int32_t end, tncuda_call_args *args);

/* The numbers of an attribute into f, from `at` on, as many as fit; how many there are. */
int64_t tncuda_call_numbers(const tn_value *attrs, uint32_t index, int64_t at, tncuda_call_args *args);

/* Sums that become output `o`: its own memory, or f32 in the workspace, `*at` bytes from its start, for a
 * short type; `*at` moves on. Planning needs tncuda_sums_bytes of workspace for each. */
void *tncuda_sums(const tn_exec *x, uint32_t o, uint64_t *at);
uint64_t tncuda_sums_bytes(const tn_tensor *t);
/* They become the output: after the kernel. */
tn_status tncuda_sums_store(const tn_exec *x, uint32_t o, void *sums, tn_err *err);

/* ---- point.c: operators of which each element follows from one element of each input ------------------ */

typedef struct tncuda_point_row {
    const char *op;
    uint16_t loop;
    uint8_t operands;
    int8_t scalar; /* the operand that is attribute 0 as a number, or -1 */
} tncuda_point_row;

/* What computes a node: one of the rows of point.c, and how it reads the node. */
typedef struct tncuda_point_how {
    const tncuda_point_row *row;
    const char *name;           /* of the loop */
    const tn_tensor **in;       /* the operands that are inputs; they broadcast to the output */
    uint32_t in_count, numbers; /* numbers: how many attributes are the loop's own, from attribute 0 on */
    uint32_t kind;              /* TNCUDA_KIND_…, what it computes in */
    int32_t store;              /* TNCUDA_STORE_… */
    bool own_number;            /* `number` is in the place of attribute 0 */
    double number;
    const tn_tensor *inputs[3]; /* behind `in` */
    tn_tensor gamma;            /* an operand that lies along axis 1 */
    int64_t gamma_dims[2 * TNCUDA_NDIM];
} tncuda_point_how;

/* TN_E_UNSUPPORTED: no kernel of point.c that says TN_KERNEL_POINTWISE, or where, takes the node. */
tn_status tncuda_point_resolve(const tn_node *node, tncuda_point_how *how, tn_err *err);
/* A data type's compute type. */
uint32_t tncuda_kind_of(int32_t dtype);

/* Plans a row; `in_count` inputs of the node are operands. */
tn_status tncuda_point_plan(const tncuda_point_row *row, uint32_t in_count, void *plugin, const tn_node *node,
                            tn_plan *plan, tn_err *err);
/* The loop's own number shall be this one. */
void tncuda_point_number(tn_plan *plan, double number);
tn_status tncuda_point_run(const tn_plan *plan, const tn_exec *x, tn_err *err);
/* Elements of a dense array in another data type; `add`: added to what is there. */
tn_status tncuda_cast(const tn_exec *x, const tn_tensor *from, const tn_tensor *to, bool add, tn_err *err);

/* By the driver, from one place of the node's device to another, or to the same. */
tn_status tncuda_copy_dense(const tn_exec *x, void *dst, const void *src, uint64_t bytes, tn_err *err);
/* `a`: the places of `out`, without inputs; each becomes a->number, rounded once or cut. */
tn_status tncuda_fill(const tn_exec *x, tncuda_point_args *a, tn_err *err);

/* 1 … 2^31 */
tncuda_divisor tncuda_divisor_of(int64_t by);
/* Each extent and each place of an element, counted from the first, is below 2^31. */
bool tncuda_is_narrow(int32_t ndim, const int64_t *shape, const int64_t *step);

/* ---- product.c ----------------------------------------------------------------------------------------- */

/* Makes a product, all of `args` given but slices, depth, room and packs. `room`: memory of the run, or NULL:
 * what is long and narrow takes longer then. */
tn_status tncuda_product_plain(const tn_exec *x, const tncuda_product_args *args, void *room, tn_err *err);
/* Its bytes; 0: none is of use. */
uint64_t tncuda_product_room(int64_t m, int64_t n, int64_t k, int64_t batch, int32_t dtype);
/* The gradient of a bias of `n`, output `o`, if it is wanted: sums of dy (outer, n, inner), input 0. The
 * run's workspace has room for them. */
tn_status tncuda_bias_back(const tn_exec *x, uint32_t o, int64_t outer, int64_t n, int64_t inner,
                           tn_err *err);
/* Its bytes. */
uint64_t tncuda_bias_back_room(int64_t outer, int64_t n, int64_t inner, int32_t dtype);
/* Adds `bias`, `count` numbers of its type, to `to`, which is (outer, count, inner). */
tn_status tncuda_bias_add(const tn_exec *x, const tn_tensor *bias, const tn_tensor *to, int64_t outer,
                          int64_t count, int64_t inner, tn_err *err);

/* ---- conv.c -------------------------------------------------------------------------------------------- */

/* The window of a convolution, a deconvolution, or the gradients of one: all but the arrays. x lies in front
 * of the convolution and y behind it; of a deconvolution x is the output. */
tn_status tncuda_conv_args(const tn_node *node, tncuda_window_args *args, tn_err *err);
extern const tn_kernel *const tncuda_family_conv[];

/* ---- dense.c ------------------------------------------------------------------------------------------- */

/* relu of all elements of a dense array, in place. */
tn_status tncuda_relu(const tn_exec *x, const tn_tensor *to, tn_err *err);

/* ---- reduce.c ------------------------------------------------------------------------------------------ */

/* What of `t` each element of the output is made of: the axes of `mask`. */
void tncuda_reduce_split(const tn_tensor *t, uint32_t mask, tncuda_reduce_args *args);
/* One of the kernels of ../common/reduce.list; `args` has all but what is summed by whom. */
tn_status tncuda_reduce_launch(const tn_exec *x, const char *id, const tncuda_reduce_args *args, tn_err *err);

/* ---- conv.c -------------------------------------------------------------------------------------------- */

/* UpSampling with a weight, and its gradients. */
tn_status tncuda_upsampling_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err);
tn_status tncuda_upsampling_run(const tn_plan *plan, const tn_exec *x, bool back, tn_err *err);

/* ---- random.c ------------------------------------------------------------------------------------------ */

/* The draw of a call, for the GPU: its step is looked at when a kernel runs. */
tncuda_draw tncuda_draw_of(const tn_rng *rng);

/* ---- order.c ------------------------------------------------------------------------------------------- */

#define TNCUDA_ENTRY_BYTES 16u /* order_entry of kernels/order.h */

/* Sorts rows of `size` entries, `count` in all, by their keys; `*entries` and `*spare` have room for all, and
 * the sorted ones are in `*entries` afterwards. */
tn_status tncuda_order_merge(const tn_exec *x, int64_t count, int64_t size, void **entries, void **spare,
                             tn_err *err);

#endif
