/*
 * The loops of loops.list and loops_float.list, compiled per compute type. The vocabulary of their
 * expressions is defined here for each type: floating point as C has it, integers wrapping, divisions by zero
 * giving 0. Maximum and minimum hand on NaN; the remainder has the sign of the divisor.
 */
#include "loops.h"
#include "mathf.h"

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

/* ---- helpers of the expressions --------------------------------------------------------------- */

static double float_mod(double a, double b)
{
    double r;

    if (b == 0.0)
        return 0.0;
    r = fmod(a, b);
    return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

static int64_t int_mod(int64_t a, int64_t b)
{
    int64_t r = b == 0 || b == -1 ? 0 : a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t int_div(int64_t a, int64_t b)
{
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    return b == 0 ? 0 : a / b;
}

static uint64_t magnitude(int64_t a)
{
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

static int64_t int_lcm(int64_t a, int64_t b)
{
    uint64_t x = magnitude(a), y = magnitude(b), rest;
    const uint64_t product = x;

    if (!x || !y)
        return 0;
    for (uint64_t q = y; q; q = rest) {
        rest = x % q;
        x = q;
    }
    return (int64_t)(product / x * y);
}

static int64_t int_of(double d)
{
    int64_t i;

    tncpu_converts[TN_I64].store_f(&d, &i, 1, 1);
    return i;
}

static int32_t int32_of(double d)
{
    int32_t i;

    tncpu_converts[TN_I32].store_f(&d, &i, 1, 1);
    return i;
}

/* ---- floating point --------------------------------------------------------------------------- */

#define FLOATING 1
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define MOD(a, b) float_mod((double)(a), (double)(b))
#define POW(a, b) pow((double)(a), (double)(b))
#define LDEXP(a, b) ((double)(a)*exp2((double)(b)))
#define COPYSIGN(a, b) copysign((double)(a), (double)(b))
#define ARCTAN2(a, b) atan2((double)(a), (double)(b))
#define MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define MIN(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define RELU(a) ((a) <= 0 ? 0 : (a))
#define CLIP(x, low, high) ((x) > (high) ? (high) : (x) < (low) ? (low) : (x))
#define CLIP_BACK(dy, x, low, high) ((x) <= (high) && (x) >= (low) ? (dy) : 0)
#define RINT(a) ((a)-FLOOR(a) <= (T)0.5 ? FLOOR(a) : FLOOR(a) + 1)

#define T float
#define N f32
#define SCALAR(v) ((float)tn_value_float(v))
#define F1(f, x) ((float)f((double)(x)))
#define ABS(x) fabsf(x)
#define FABS(x) fabsf(x)
#define SQRT(x) sqrtf(x)
#define EXP(x) ((float)tncpu_exp((double)(x)))
#define LOG(x) ((float)tncpu_log((double)(x)))
#define TANH(x) ((float)tncpu_tanh((double)(x)))
#define SIGMOID(x) ((float)tncpu_sigmoid((double)(x)))
#define SOFTRELU(x) ((float)tncpu_softrelu((double)(x)))
#define FLOOR(x) floorf(x)
#define CEIL(x) ceilf(x)
#define ROUND(x) roundf(x)
#define TRUNC(x) truncf(x)
#define HYPOT(a, b) /* as hypot: infinity beside NaN is infinity */                                          \
    (isinf(a) || isinf(b) ? INFINITY : (float)sqrt((double)(a) * (double)(a) + (double)(b) * (double)(b)))
#include "loops.inc"
#undef T
#undef N
#undef SCALAR
#undef F1
#undef ABS
#undef FABS
#undef SQRT
#undef EXP
#undef LOG
#undef TANH
#undef SIGMOID
#undef SOFTRELU
#undef FLOOR
#undef CEIL
#undef ROUND
#undef TRUNC
#undef HYPOT

#define T double
#define N f64
#define SCALAR(v) tn_value_float(v)
#define F1(f, x) f(x)
#define ABS(x) fabs(x)
#define FABS(x) fabs(x)
#define SQRT(x) sqrt(x)
#define EXP(x) exp(x)
#define LOG(x) log(x)
#define TANH(x) tanh(x)
#define SIGMOID(x) (1 / (1 + exp(-(x))))
#define SOFTRELU(x) tncpu_softrelu_f64(x)
#define FLOOR(x) floor(x)
#define CEIL(x) ceil(x)
#define ROUND(x) round(x)
#define TRUNC(x) trunc(x)
#define HYPOT(a, b) hypot(a, b)
#include "loops.inc"
#undef T
#undef N
#undef SCALAR
#undef HYPOT
#undef ABS
#undef FLOOR
#undef CEIL
#undef ROUND
#undef TRUNC
#undef FLOATING
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef NEG
#undef MOD
#undef POW
#undef LDEXP
#undef COPYSIGN
#undef ARCTAN2
#undef RELU
#undef RINT

/* ---- integers --------------------------------------------------------------------------------- */

#define FLOATING 0
#define ADD(a, b) ((T)((U)(a) + (U)(b)))
#define SUB(a, b) ((T)((U)(a) - (U)(b)))
#define MUL(a, b) ((T)((U)(a) * (U)(b)))
#define NEG(a) ((T)(0 - (U)(a)))
#define DIV(a, b) ((T)int_div(a, b))
#define MOD(a, b) ((T)int_mod(a, b))
#define POW(a, b) INT_OF(pow((double)(a), (double)(b)))
#define HYPOT(a, b) INT_OF(hypot((double)(a), (double)(b)))
#define LDEXP(a, b) INT_OF((double)(a)*exp2((double)(b)))
#define ABS(a) ((a) < 0 ? NEG(a) : (a))
#define COPYSIGN(a, b) ((b) < 0 ? NEG(ABS(a)) : ABS(a))
#define ARCTAN2(a, b) INT_OF(atan2((double)(a), (double)(b)))
#define LCM(a, b) ((T)int_lcm(a, b))
#define RELU(a) ((a) > 0 ? (a) : 0)
#define FLOOR(x) (x)
#define CEIL(x) (x)
#define ROUND(x) (x)
#define TRUNC(x) (x)
#define RINT(x) (x)

#define T int32_t
#define U uint32_t
#define N i32
#define INT_OF int32_of
#define SCALAR(v) int32_of(tn_value_float(v))
#include "loops.inc"
#undef T
#undef U
#undef N
#undef INT_OF
#undef SCALAR

#define T int64_t
#define U uint64_t
#define N i64
#define INT_OF int_of
#define SCALAR(v) int_of(tn_value_float(v))
#include "loops.inc"

/* ---- the tables ------------------------------------------------------------------------------- */

const tncpu_loop tncpu_loops[TNCPU_LOOP_COUNT][TNCPU_KINDS] = {
#define LOOP1(id, ns, expression) [TNCPU_##id] = {id##_f32, id##_f64, id##_i32, id##_i64},
#define LOOP2 LOOP1
#define LOOP3 LOOP1
#define LOOP1S LOOP1
#define LOOP2S LOOP1
#define LOOP1SS LOOP1
#define LOOP2SS LOOP1
#include "loops.list"
#undef LOOP1
#define LOOP1(id, ns, expression) [TNCPU_##id] = {id##_f32, id##_f64, NULL, NULL},
#include "loops_float.list"
#undef LOOP1
#define LOOP1(id, ns, expression) [TNCPU_##id] = {NULL, NULL, id##_i32, id##_i64},
#include "loops_int.list"
#undef LOOP1
};

const float tncpu_loop_ns[TNCPU_LOOP_COUNT] = {
#define LOOP1(id, ns, expression) [TNCPU_##id] = ns,
#include "loops.list"
#include "loops_float.list"
#include "loops_int.list"
};
