/* What kernels are given: one struct each, the same for the host and the GPU. Strides count elements. */
#ifndef TNCUDA_ARGS_H
#define TNCUDA_ARGS_H

#include "../../common/deform.h"
#include "../../common/linalg.h"
#include "../../common/norms_kinds.h"

#include <stdint.h>

#define TNCUDA_NDIM 32 /* TN_NDIM_MAX */

typedef struct tncuda_array {
    void *data;
    int32_t dtype;
    int32_t mode; /* of outputs: TN_MODE_… */
} tncuda_array;

typedef struct tncuda_operand {
    void *data;
    int32_t dtype, reserved;     /* TN_F32 … */
    int64_t stride[TNCUDA_NDIM]; /* 0 where it broadcasts */
} tncuda_operand;

/* A divisor of numbers below 2^31: n / by = (n magic / 2^32 + n) / 2^shift. tncuda_divisor_of makes it. */
typedef struct tncuda_divisor {
    uint32_t by, magic, shift, reserved;
} tncuda_divisor;

/* How what was computed becomes an element of the output. */
#define TNCUDA_STORE_SAME 0  /* its compute type is the loop's */
#define TNCUDA_STORE_TRUTH 1 /* bool: other than 0 */
#define TNCUDA_STORE_CUT 2   /* a double becomes an integer */

/* How elements are found and read. */
#define TNCUDA_PLACES_WIDE 0   /* in 64 bits: whatever the shape is */
#define TNCUDA_PLACES_ANY 1    /* each place of more than one dimension is below 2^31 */
#define TNCUDA_PLACES_NARROW 2 /* the same; all elements are of the compute type */
#define TNCUDA_PLACES_PACKS 3  /* the same; 16 bytes at a time */
#define TNCUDA_PLACES_MIXED 4  /* as ANY; f32, f16 and bf16, 4 elements at a time */
#define TNCUDA_PLACES_SHORTS 5 /* as ANY; all arrays are f16, or all bf16, 8 elements at a time */

typedef struct tncuda_point_args {
    int64_t count;
    int32_t ndim, store, add, scalar; /* scalar: the operand that is `number`; -1 */
    int32_t places;                   /* TNCUDA_PLACES_… */
    int32_t varies;                   /* of packs: bit k if the elements of one of operand k differ */
    double number, s, s2;
    int64_t shape[TNCUDA_NDIM];
    tncuda_divisor split[TNCUDA_NDIM]; /* of `shape`; not of WIDE */
    tncuda_operand in[3], out;
} tncuda_point_args;

/* Chains of pointwise operators: each step makes an element of `dtype` out of inputs and earlier steps. */
#define TNCUDA_FUSED_STEPS 48  /* sums of many are several */
#define TNCUDA_FUSED_PLACES 16 /* inputs; outputs */
#define TNCUDA_FUSED_AXES 6
#define TNCUDA_FUSED_NUMBERS 64
#define TNCUDA_FUSED_RESULT 32 /* operand 32 + k: the result of step k; below: an input */

typedef struct tncuda_fused_step {
    uint16_t loop;
    uint8_t kind, dtype, store, operands;
    uint8_t scalar;     /* the operand that is a number; 255: none */
    uint8_t number;     /* numbers from this one on are s and s2, and the scalar is the first */
    uint8_t operand[4]; /* of those that are no number, in order */
} tncuda_fused_step;

typedef struct tncuda_fused_place {
    void *data;
    int32_t dtype, mode;               /* mode: of outputs */
    int64_t stride[TNCUDA_FUSED_AXES]; /* 0 where it broadcasts */
} tncuda_fused_place;

typedef struct tncuda_fused_args {
    int64_t count;
    int32_t ndim, steps, outs, reserved;
    int64_t shape[TNCUDA_FUSED_AXES];
    tncuda_fused_place in[TNCUDA_FUSED_PLACES], out[TNCUDA_FUSED_PLACES];
    uint8_t result[TNCUDA_FUSED_PLACES]; /* the step that makes an output */
    tncuda_fused_step step[TNCUDA_FUSED_STEPS];
    double number[TNCUDA_FUSED_NUMBERS];
} tncuda_fused_args;

/* Strided copies: element (i0, i1 …) of `extent` goes from src + Σ i·src_step to dst + Σ i·dst_step. */
typedef struct tncuda_move_args {
    int64_t count;
    int32_t ndim, reserved;
    const void *src;
    void *dst;
    int64_t extent[2 * TNCUDA_NDIM], src_step[2 * TNCUDA_NDIM], dst_step[2 * TNCUDA_NDIM];
    int64_t shift[TNCUDA_NDIM]; /* of rolls and triangles */
    int32_t narrow;             /* all places are below 2^31: by `split` */
    int32_t from; /* of turns: the dimension whose elements are neighbours in src; the last one's
                                   are in dst */
    tncuda_divisor split[2 * TNCUDA_NDIM];
} tncuda_move_args;

#define TNCUDA_TURN 32 /* rows and columns of a tile that is turned */

/* Matrices (rows, cols) of `from`, one behind the other, whose columns are the rows of `to` (last.cu). */
typedef struct tncuda_last_args {
    int64_t tiles; /* of all matrices */
    const void *from;
    void *to;
    int32_t rows, cols, tile_rows, tile_cols;
    int32_t pitch, reserved;         /* elements of shared memory from a row of a tile to the next: odd */
    tncuda_divisor each, across;     /* tiles of a matrix; of a row of tiles */
    tncuda_divisor by_rows, by_cols; /* the sides of a tile */
} tncuda_last_args;

#define TNCUDA_LAST_TILE 64   /* rows and columns of a tile that is no strip */
#define TNCUDA_LAST_ROOM 4160 /* elements of shared memory: a tile of 64 rows of 65 */

/* Numbers of the host, as int64. */
typedef struct tncuda_words_args {
    int64_t count;
    void *to;
    int64_t word[TNCUDA_NDIM];
} tncuda_words_args;

/* c (m, n) = a (m, k) · b (k, n) [+ bias (n)], elements of one type; steps of rows and columns. `batch` of
 * them, each `*_batch` elements apart. */
typedef struct tncuda_product_args {
    int64_t m, n, k, batch;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col, a_batch, b_batch, c_batch;
    const void *a, *b, *bias;
    void *c;
    int32_t dtype, add;
    int64_t slices, depth; /* of k: how many are summed apart, `depth` of k each, and then together */
    void *room;            /* the slices' sums (slices, batch, m, n), of the compute type; NULL: one slice */
    int32_t packs_a, packs_b, packs_c, reserved; /* TNCUDA_PACKS_… */
} tncuda_product_args;

/* Four elements side by side are read or written at once: along which side of the matrix. */
#define TNCUDA_PACKS_NONE 0
#define TNCUDA_PACKS_ROWS 1 /* they are of one row: columns are neighbours */
#define TNCUDA_PACKS_COLUMNS 2

/* Sums of columns: y (n) = Σ x (outer, n, inner) over outer and inner. */
typedef struct tncuda_columns_args {
    int64_t outer, n, inner;
    const void *x;
    void *y;
    void *room;            /* double: the slices' sums (slices, n) */
    int64_t slices, depth; /* of what is summed: how many, and how long; with inner = 1 in rows */
    int32_t dtype, add;
    int32_t pack, aligned;   /* pack: neighbours that a thread takes, 8, 4 or 1; aligned: at once */
    int32_t lanes, reserved; /* lanes, of inner = 1: packs of columns that a block makes */
    tncuda_divisor by_inner;
} tncuda_columns_args;

#define TNCUDA_SPACE 3

/* Windows over (batch, channels, d, h, w), or with channels last; fewer dimensions having extents of 1 in
 * front. */
typedef struct tncuda_window_args {
    int64_t batch, channels, filters, groups; /* of pools: filters = channels, groups = 1 */
    int64_t in[TNCUDA_SPACE], out[TNCUDA_SPACE], kernel[TNCUDA_SPACE], stride[TNCUDA_SPACE],
        dilate[TNCUDA_SPACE], pad[TNCUDA_SPACE];
    const void *x, *w, *bias, *dy, *y;
    void *to;      /* y, dx or dw */
    int64_t count; /* elements of `to` */
    int32_t dtype, add;
    int32_t type, count_pad, power; /* of pools: TNCUDA_POOL_…; averages count the padding; p of lp */
    int32_t last;                   /* channels stand behind space */
} tncuda_window_args;

#define TNCUDA_POOL_AVG 0 /* in the order of Pooling's choices */
#define TNCUDA_POOL_LP 1
#define TNCUDA_POOL_MAX 2
#define TNCUDA_POOL_SUM 3

/* Pools over planes whose arrays have fewer than 2^31 elements: h and w of each pair. `split` finds an
 * element of what is made: channels where they stand last, w, h. By packs of
 * 16 bytes (pool_last.inc), count and split[0] are of packs. */
typedef struct tncuda_pool_args {
    const void *x, *dy;
    void *to;       /* NULL: the taps alone are made */
    uint16_t *taps; /* of each window the place in it of the largest value; NULL: nobody wants them.
                     * By packs: bytes */
    uint32_t count, channels;
    int32_t in[2], out[2], kernel[2], stride[2], pad[2];
    int32_t dtype, add, type, count_pad, last, reserved;
    tncuda_divisor split[3], by_stride[2];
} tncuda_pool_args;

#define TNCUDA_POOL_TAPS 65535    /* the number of an empty window's */
#define TNCUDA_POOL_LAST_TAPS 255 /* the same by packs */

/* Rows (outer, size, inner) along one axis. */
typedef struct tncuda_rows_args {
    int64_t outer, size, inner;
    const void *x, *dy, *y;
    void *to;
    double scale; /* 1 / temperature, and its sign for softmin */
    int32_t dtype, out_dtype, form, add;
    const void *label; /* of the losses; of softmax the lengths of vectors, NULL: none */
    int32_t label_dtype, use_ignore, normalize;
    int32_t lanes, aligned, reserved; /* of short rows: threads of one; it is read eight at a time */
    double grad_scale, ignore, smooth;
} tncuda_rows_args;

#define TNCUDA_SOFT_MAX 0
#define TNCUDA_SOFT_LOG 1
#define TNCUDA_SOFT_LONG 1024 /* elements of a row from which a block makes it */

/* y (kept dimensions) from x: dimensions that are kept first, then those that go. */
typedef struct tncuda_reduce_args {
    int64_t outer, inner; /* elements of y; elements of x for each */
    int32_t outer_ndim, inner_ndim, dtype, out_dtype;
    int64_t outer_shape[TNCUDA_NDIM], outer_stride[TNCUDA_NDIM], inner_shape[TNCUDA_NDIM],
        inner_stride[TNCUDA_NDIM];
    const void *x;
    void *y;
    double divide;     /* mean: by how many; else 1 */
    int32_t add, root; /* root: of what is made */
    /* of kernels whose threads share: how many make an output; outputs are side by side in memory, inputs of
     * one are not; parts that blocks of their own make of an output, how long they are, and where they go */
    int32_t members, columns;
    int64_t slices, chunk;
    void *room; /* double, or int64 of integers: (outer, slices) */
} tncuda_reduce_args;

/* Moments and averages over what `over` reduces. `w`: weights of an average; data NULL: none. */
typedef struct tncuda_moments_args {
    tncuda_reduce_args over;
    tncuda_array mean, var, w, dy, dx, dw; /* var, of averages: the sums of the weights; mode 0: not wanted */
    double ddof;
    int32_t whole, root;    /* the mean is cut to a whole number; the root of the variance */
    int32_t line, reserved; /* line: one weight for each index of the reduced axes */
} tncuda_moments_args;

/* What a step of an optimizer reads and writes of one weight. `master`: the weight in float32, which w reads;
 * NULL: none. */
typedef struct tncuda_update_place {
    const void *w, *g, *old;       /* old: what `out` becomes where nothing is done */
    void *out, *master, *state[3]; /* out NULL: nobody wants it */
    int32_t w_dtype, g_dtype, out_dtype, state_dtype;
} tncuda_update_place;

/* A step over one weight. `v`: its numbers. */
typedef struct tncuda_update_args {
    int64_t count;
    tncuda_update_place at;
    double v[16];
    const void *number[16]; /* not NULL: v is element number_at there */
    int32_t number_dtype[16], number_at[16];
    int32_t skips, reserved; /* not 0: nothing is done where v[skips - 1] is 0 or not finite */
} tncuda_update_args;

/* A step over many weights, cut into pieces: a block takes one. */
#define TNCUDA_UPDATES 42 /* weights of a launch, whose arguments are 4096 bytes at most */
#define TNCUDA_UPDATE_PIECE 4096
#define TNCUDA_UPDATES_NUMBERS 10
#define TNCUDA_UPDATES_OWN 3

typedef struct tncuda_update_weight {
    int64_t count, pieces; /* pieces: of this weight and those before it */
    const void *w, *g, *old;
    void *out, *state[2];
    double own[TNCUDA_UPDATES_OWN]; /* numbers of its own */
} tncuda_update_weight;

typedef struct tncuda_updates_args {
    int64_t pieces;
    int32_t many, mixed; /* many: weights; mixed: w is the weight in float32, which changes, too */
    int32_t w_dtype, g_dtype, out_dtype, state_dtype, skips, reserved; /* skips: as above */
    double v[TNCUDA_UPDATES_NUMBERS];
    const void *number[TNCUDA_UPDATES_NUMBERS]; /* not NULL: v is there: element 0, or the weight's */
    int8_t number_dtype[TNCUDA_UPDATES_NUMBERS], number_each[TNCUDA_UPDATES_NUMBERS],
        number_own[TNCUDA_UPDATES_NUMBERS]; /* own: not 0: v is the weight's own number, counted from 1 */
    void *room; /* of LAMB: a rate for each weight, then two sums for each piece */
    tncuda_update_weight weight[TNCUDA_UPDATES];
} tncuda_updates_args;

/* What most kernels need: arrays of any type, rows (outer, size, inner), and numbers that each names. */
#define TNCUDA_CALL_IN 8
#define TNCUDA_CALL_OUT 6
#define TNCUDA_CALL_WHOLE 72
#define TNCUDA_CALL_NUMBERS 64

typedef struct tncuda_call_args {
    int64_t count, outer, size, inner;
    tncuda_array in[TNCUDA_CALL_IN], out[TNCUDA_CALL_OUT];
    void *room; /* workspace */
    int64_t n[TNCUDA_CALL_WHOLE];
    double f[TNCUDA_CALL_NUMBERS];
} tncuda_call_args;

/* n of kernels of rows that are normalised. */
enum {
    TNCUDA_ROW_GROUPS,   /* 0: gamma and beta are those of an element, else of one of so many groups */
    TNCUDA_ROW_VARIANCE, /* the variance is kept, not its root */
    TNCUDA_ROW_MEMBERS,  /* threads that make a row, a power of 2 */
    TNCUDA_ROW_LOADS,    /* TNCUDA_ROW_ONE … */
    TNCUDA_ROW_SLICES,   /* of gradients of an element: of all rows, and how many rows each has */
    TNCUDA_ROW_SLICE
};
/* n of BatchNorm, whose data is (outer, size, inner). A pack has 16 bytes. */
enum {
    TNCUDA_BATCH_TRAIN,       /* statistics are those of the batch */
    TNCUDA_BATCH_FIXED,       /* gamma counts as 1 */
    TNCUDA_BATCH_RELU,        /* of what comes out */
    TNCUDA_BATCH_BACK,        /* inputs are dy and data */
    TNCUDA_BATCH_SLICES,      /* blocks that make a channel's sums */
    TNCUDA_BATCH_SLICE,       /* elements of each; of planes packs, of channels last rows */
    TNCUDA_BATCH_JOIN,        /* each block of the map makes what it needs of a channel */
    TNCUDA_BATCH_PACKED,      /* packs are read and written at once */
    TNCUDA_BATCH_PACKS,       /* that a plane touches; of channels last: of a row of a tile of channels */
    TNCUDA_BATCH_PACKS_MAGIC, /* tncuda_divisor of it */
    TNCUDA_BATCH_PACKS_SHIFT,
    TNCUDA_BATCH_INNER_MAGIC, /* and of `inner` */
    TNCUDA_BATCH_INNER_SHIFT,
    TNCUDA_BATCH_TILES, /* of channels, of channels last */
    TNCUDA_BATCH_TILE   /* elements of a block of the map; of channels last: rows */
};
/* n of LRN: channels to each side; channels that a thread makes. */
enum { TNCUDA_LRN_SIDE, TNCUDA_LRN_EACH };

#define TNCUDA_ROW_ONE 0      /* a thread takes one element at a time */
#define TNCUDA_ROW_FOUR 1     /* four neighbours */
#define TNCUDA_ROW_PACK 2     /* the same, read and written at once */
#define TNCUDA_ROW_COLUMNS 32 /* elements whose gradients a block makes */
#define TNCUDA_ROW_ENDS 8     /* the same from the sums of slices */

/* y = scale Σ Π in + beta c: axes of the output, then those that are summed; c has the output's type and lies
 * as it does. */
#define TNCUDA_WALK_IN 8
#define TNCUDA_WALK_AXES 32
typedef struct tncuda_walk_args {
    int64_t count, summed; /* elements of the output; what each is a sum of */
    int32_t inputs, outer, all, reserved;
    int64_t extent[TNCUDA_WALK_AXES];
    int64_t step[TNCUDA_WALK_IN + 1][TNCUDA_WALK_AXES]; /* the output's behind those of the inputs */
    tncuda_array in[TNCUDA_WALK_IN], out;
    const void *c;            /* NULL: none */
    double scale, beta, root; /* root: not 0: scale is 1 / √root instead */
} tncuda_walk_args;

/* Matrices, of which a block takes one at a time: ../../common/linalg_bodies.inc. */
typedef struct tncuda_la_args {
    tnb_la_sizes s;
    tnb_la_how how;
    tncuda_array in[6], out[3];
    int64_t out_each[3]; /* elements of one matrix; 0: there is no such output */
    double *room;
    int64_t room_each; /* of a block */
} tncuda_la_args;

/* Norms: over.outer of them begin where `over` says. in: data, of gradients behind dy. */
typedef struct tncuda_norm_args {
    tnb_norm what;
    tncuda_reduce_args over;
    tncuda_array dy, data, to;
    double *room;
    int64_t room_each; /* of a block */
} tncuda_norm_args;

/* A draw: `step` is memory that host and GPU read. */
typedef struct tncuda_draw {
    uint64_t key, step_add;
    const uint64_t *step;
} tncuda_draw;

/* A parameter: a number, or elements of an array within limits. */
typedef struct tncuda_source {
    double number, min, max;
    const void *data; /* NULL: the number */
    int32_t dtype, ndim, above, reserved;
    int64_t shape[TNCUDA_NDIM], stride[TNCUDA_NDIM];
} tncuda_source;

typedef struct tncuda_random_args {
    int64_t count, low, high;
    tncuda_draw draw;
    int32_t parameters, interval;
    tncuda_source source[2];
    tncuda_array out[2];
} tncuda_random_args;

/* n of kernels of the family index. */
enum {
    TNCUDA_INDEX_MANY,
    TNCUDA_INDEX_MODE,
    TNCUDA_INDEX_BYTES, /* of an element */
    TNCUDA_INDEX_AXES,  /* of coordinates */
    TNCUDA_INDEX_SHAPE  /* their extents */
};
#define TNCUDA_INDEX_CLIP 0
#define TNCUDA_INDEX_WRAP 1
#define TNCUDA_INDEX_COORDINATES 2

#define TNCUDA_SEQUENCE_MASK 0
#define TNCUDA_SEQUENCE_REVERSE 1
#define TNCUDA_SEQUENCE_LAST 2
#define TNCUDA_SEQUENCE_BACK 3

/* Padding: shapes of input and output, what was added in front and behind. */
#define TNCUDA_PAD_MAXIMUM 4 /* TN_npi_pad_mode_maximum */
typedef struct tncuda_pad_args {
    int64_t count;
    int32_t ndim, mode, dtype, bytes;
    const void *x;
    void *y;
    double constant;
    int64_t in[TNCUDA_NDIM], out[TNCUDA_NDIM], before[TNCUDA_NDIM], behind[TNCUDA_NDIM];
} tncuda_pad_args;

/* Sums of many arrays of one type. */
#define TNCUDA_MANY 192
typedef struct tncuda_many_args {
    int64_t count;
    void *to;
    int32_t dtype, many, add, reserved;
    const void *in[TNCUDA_MANY];
} tncuda_many_args;

/* Insertions along an axis, and elements written where a mask says so: both read values by number along an
 * axis of (outer, number, inner). shape, along: extents of the output and steps of the values. */
typedef struct tncuda_edit_args {
    int64_t count, outer, size, inner;   /* count: elements of the output; the others: of the array */
    int64_t added, first, step;          /* how many are inserted; where, if they are a range */
    int64_t most;                        /* values along the axis that there are */
    int32_t ndim, axis, one, bytes;      /* one: all have the first place */
    double number;                       /* without values */
    tncuda_array x, values, places, out; /* places: where values are inserted, or the mask */
    void *room;
    int64_t shape[TNCUDA_NDIM], along[TNCUDA_NDIM];
} tncuda_edit_args;

#define TNCUDA_FILTER_PART 256 /* elements of a mask that a thread counts */

/* Percentiles: sorted entries of each row; q: percentages, without data `only`. */
typedef struct tncuda_percentile_args {
    tncuda_reduce_args over;
    int64_t count; /* elements of the output: percentages, rows */
    tncuda_array q, out;
    void *room;
    double only;
    int32_t between, reserved; /* TNCUDA_BETWEEN_… */
} tncuda_percentile_args;

enum { /* in the order of _npi_percentile's choices */
       TNCUDA_BETWEEN_LINEAR,
       TNCUDA_BETWEEN_LOWER,
       TNCUDA_BETWEEN_HIGHER,
       TNCUDA_BETWEEN_MIDPOINT,
       TNCUDA_BETWEEN_NEAREST
};

/* Deformable convolutions of image number `image`: arrays of one type; columns, and gradients of weights, are
 * in the type that computes. */
typedef struct tncuda_deform_args {
    tnb_deform d;
    int64_t count, image, filters, groups;
    const void *data, *offset, *mask, *weight, *bias, *dy;
    void *to, *doffset, *dmask; /* NULL: nobody wants it */
    void *columns, *room;       /* room: entries, four of each tap and pixel for each group of offsets */
    int32_t dtype, add;
} tncuda_deform_args;

/* Planes (image, channel, h, w) of several arrays. */
#define TNCUDA_PLANES 64
typedef struct tncuda_planes {
    const void *data;
    int64_t channels, h, w;
} tncuda_planes;

typedef struct tncuda_planes_args {
    int64_t count, channels, h, w; /* of `to` */
    void *to;
    int32_t dtype, many, sum, reserved;
    tncuda_planes in[TNCUDA_PLANES];
} tncuda_planes_args;

/* n of kernels of images (image, channel, h, w): sizes of the first side, of the other one, channels of both,
 * and what each kernel says. */
enum {
    TNCUDA_IN_H,
    TNCUDA_IN_W,
    TNCUDA_OUT_H,
    TNCUDA_OUT_W,
    TNCUDA_CHANNELS,
    TNCUDA_OUT_CHANNELS,
    TNCUDA_IMAGES,
    TNCUDA_MORE
};

/* n of box_nms. TURN: 1 to corners, 2 to centres, 0 neither. */
enum {
    TNCUDA_NMS_SCORE,
    TNCUDA_NMS_ID,
    TNCUDA_NMS_BACKGROUND,
    TNCUDA_NMS_START,
    TNCUDA_NMS_ALL,
    TNCUDA_NMS_CORNER,
    TNCUDA_NMS_MOST,
    TNCUDA_NMS_TURN
};

/* Changes of an image's colours: room has `passes` of them, drawn by the GPU. */
typedef struct tncuda_image_args {
    int64_t count, outer, size, channels; /* flips: (outer, size, channels), of which `size` turns */
    tncuda_array from, to;
    void *room;
    tncuda_draw draw;
    int32_t kind, pass, bytes, reserved;
    double f[8];
} tncuda_image_args;

#define TNCUDA_IMAGE_JITTER 16 /* kinds beside those of ../../common/colours.h: all four of them */
#define TNCUDA_IMAGE_LIGHT 17  /* lighting whose numbers are drawn */

#endif
