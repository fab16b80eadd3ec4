/*
 * Elements of any data type, brought to one of four types that loops are written for (its compute type) and
 * back: f16 and bf16 compute as f32, the small integers as i32, u32 and u64 as i64 (u64 by its bits).
 */
#ifndef TNCPU_CONVERT_H
#define TNCPU_CONVERT_H

#include "../../common/storage.h"
#include "plain.h"

#define TNCPU_KINDS 4 /* compute types: */
#define TNCPU_K_F32 0
#define TNCPU_K_F64 1
#define TNCPU_K_I32 2
#define TNCPU_K_I64 3

#define TNCPU_TILE 512 /* elements */

typedef union tncpu_tile {
    float f32[TNCPU_TILE];
    double f64[TNCPU_TILE];
    int32_t i32[TNCPU_TILE];
    int64_t i64[TNCPU_TILE];
    uint64_t u64[TNCPU_TILE];
} tncpu_tile;

typedef struct tncpu_convert {
    uint32_t kind;       /* TNCPU_K_… */
    uint32_t bytes;      /* of an element */
    uint32_t kind_bytes; /* of a compute element */
    uint32_t native;     /* 1: elements are compute elements, nothing to convert */
    void (*load)(const void *src, int64_t stride, void *to, int64_t n);
    void (*store)(const void *from, void *dst, int64_t stride, int64_t n);
    void (*add)(const void *from, void *dst, int64_t stride, int64_t n); /* dst += from */
    void (*fill)(const void *element, void *to, int64_t n); /* one stored element, n compute elements */
    /* From wide types: to integers toward zero, out of range saturates, NaN is 0. */
    void (*store_f)(const double *from, void *dst, int64_t stride, int64_t n);
    void (*store_i)(const int64_t *from, void *dst, int64_t stride, int64_t n);
    void (*store_u)(const uint64_t *from, void *dst, int64_t stride, int64_t n); /* NULL: as store_i */
} tncpu_convert;

extern const tncpu_convert tncpu_converts[TN_DTYPE_LIMIT];
extern const tncpu_convert *const tncpu_compute[TNCPU_KINDS]; /* of compute types themselves */

/* Dense short floats to f32 and back. The same bits from each. */
typedef struct tncpu_shorts {
    void (*load_f16)(const uint16_t *from, float *to, int64_t n);
    void (*store_f16)(const float *from, uint16_t *to, int64_t n);
    void (*load_bf16)(const uint16_t *from, float *to, int64_t n);
    void (*store_bf16)(const float *from, uint16_t *to, int64_t n);
} tncpu_shorts;

extern const tncpu_shorts tncpu_shorts_base, tncpu_shorts_avx2, tncpu_shorts_avx512;

/* n compute elements of one kind into another. */
typedef void (*tncpu_cross)(const void *from, void *to, int64_t n);
/* From a kind into a wider one, in the order i32, i64, f32, f64; NULL: the same or a narrower one. */
extern const tncpu_cross tncpu_widen[TNCPU_KINDS][TNCPU_KINDS];
/* Of another kind into i32: 1 where an element is not 0, else 0. */
extern const tncpu_cross tncpu_truth[TNCPU_KINDS];

/* ---- elements of any type as doubles ----------------------------------------------------------- */

/* Elements number `at`, `at` + stride … of a tensor; those of 64 bits are rounded. */
void tncpu_numbers(const tn_tensor *t, int64_t at, int64_t stride, int64_t n, double *to);
/* The way back: each is rounded once, or as tncpu_convert.store_f says. */
void tncpu_numbers_store(const tn_tensor *t, int64_t at, int64_t stride, int64_t n, const double *from);
double tncpu_number(const tn_tensor *t, int64_t at);
/* All elements of a dense tensor become `value`. */
void tncpu_fill(const tn_tensor *t, double value);

#endif
