/*
 * Family linalg: values by hand, or from MXNet (tests/mxnet); gradients by differences, but where only one
 * triangle of a symmetric matrix is read: those are MXNet's. What is not unique is put together again.
 */
#include "support/op_case.h"

#include <math.h>
#include <string.h>

#include "support/op_run.h"

#define N TN_CASE_NO_GRAD
#define NP TN_CASE_NP_SHAPE
#define G TN_CASE_GRAD2
#define SPD "f64[2,2,2] 4 2 2 5 9 -3 -3 2"

/* ---- products ----------------------------------------------------------------------------------------- */

static const tn_op_case gemm[] = {
    {"plain", "", .in = {"f64[2,2,3] random", "f64[2,3,4] random", "f64[2,2,4] random"}, .flags = G},
    {"both transposed", "transpose_a=1 transpose_b=1 alpha=2 beta=-0.5",
     .in = {"f64[3,2] random", "f64[4,3] random", "f64[2,4] random"}, .flags = G},
    {"rows in front", "axis=0 transpose_b=1",
     .in = {"f64[3,2,4] random", "f64[5,2,4] random", "f64[3,2,5] random"}, .flags = G},
    {"rows in the middle", "axis=-3 transpose_a=1",
     .in = {"f64[2,3,2,4] random", "f64[2,3,2,2] random", "f64[2,4,2,2] random"}, .flags = G},
    {"values", "alpha=2 beta=3", .in = {"f32[1,2] 1 2", "f32[2,1] 3 4", "f32[1,1] 5"}, .out = {"f32[1,1] 37"},
     .flags = N},
    {"C is not read", "beta=0", .in = {"f32[1,1] 2", "f32[1,1] 3", "f32[1,1] nan"}, .out = {"f32[1,1] 6"},
     .flags = N},
    {"many", "", .in = {"f32[20,3,3] random", "f32[20,3,3] random", "f32[20,3,3] random"}, .flags = N},
    {"large", "transpose_a=1", .in = {"f64[150,130] random", "f64[150,170] random", "f64[130,170] random"},
     .flags = N},
    {"nothing to sum", "beta=2", .in = {"f32[2,0]", "f32[0,1]", "f32[2,1] 3 4"}, .out = {"f32[2,1] 6 8"},
     .flags = N},
    {"empty", "", .in = {"f32[0,2,3]", "f32[0,3,1]", "f32[0,2,1]"}, .out = {"f32[0,2,1]"}, .flags = N},
    {"sums", "", .in = {"f32[2,3] random", "f32[2,3] random", "f32[2,3] random"}, .status = TN_E_SHAPE},
    {"C", "", .in = {"f32[2,3] random", "f32[3,2] random", "f32[2,3] random"}, .status = TN_E_SHAPE},
    {"batches", "", .in = {"f32[2,2,2] random", "f32[3,2,2] random", "f32[2,2,2] random"},
     .status = TN_E_SHAPE},
    {"last axis", "axis=-1", .in = {"f32[2,2] random", "f32[2,2] random", "f32[2,2] random"},
     .status = TN_E_SHAPE, .message = "axis"},
    {"axis", "axis=2", .in = {"f32[2,2] random", "f32[2,2] random", "f32[2,2] random"}, .status = TN_E_SHAPE,
     .message = "axis"},
    {"vectors", "", .in = {"f32[2] 1 2", "f32[2] 1 2", "f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"f16", "", .in = {"f16[1,1] 1", "f16[1,1] 1", "f16[1,1] 1"}, .status = TN_E_DTYPE, .message = "float16"},
    {"alpha", "alpha=x", .in = {"f32[1,1] 1", "f32[1,1] 1", "f32[1,1] 1"}, .status = TN_E_ATTR},
};
static const tn_op_case gemm2[] = {
    {"plain", "", .in = {"f64[2,2,3] random", "f64[2,3,4] random"}, .flags = G},
    {"transposed", "transpose_a=1 alpha=-2 axis=0", .in = {"f64[3,2,4] random", "f64[3,2,2] random"},
     .flags = G},
    {"scaled", "alpha=0.5", .in = {"f32[1,2] 1 2", "f32[2,1] 3 4"}, .out = {"f32[1,1] 5.5"}, .flags = N},
    {"ranks", "", .in = {"f32[2,2] random", "f32[1,2,2] random"}, .status = TN_E_SHAPE},
    {"integers", "", .in = {"i32[1,1] 1", "i32[1,1] 1"}, .status = TN_E_DTYPE},
};
static const tn_op_case syrk[] = {
    {"rows", "", .in = {"f64[2,3,2] random"}, .flags = G},
    {"columns", "transpose=1 alpha=0.5", .in = {"f64[3,4] random"}, .flags = G},
    {"values", "", .in = {"f32[2,2] 1 2 3 4"}, .out = {"f32[2,2] 5 11 11 25"}, .flags = N},
    {"large", "", .in = {"f32[130,70] random"}, .flags = N},
    {"empty", "transpose=1", .in = {"f32[0,2]"}, .out = {"f32[2,2] 0 0 0 0"}, .flags = N},
    {"vector", "", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
};

/* ---- triangles ---------------------------------------------------------------------------------------- */

#define TRIANGULAR "f64[2,2,2] 2 0.5 -1 3 -1.5 2 1 2.5"
static const tn_op_case trmm[] = {
    {"left", "", .in = {TRIANGULAR, "f64[2,2,3] random"}, .flags = G},
    {"left transposed", "transpose=1 alpha=2", .in = {TRIANGULAR, "f64[2,2,3] random"}, .flags = G},
    {"right", "rightside=1 lower=0", .in = {TRIANGULAR, "f64[2,3,2] random"}, .flags = G},
    {"right transposed", "rightside=1 transpose=1 alpha=-1", .in = {TRIANGULAR, "f64[2,3,2] random"},
     .flags = G},
    {"values", "", .in = {"f32[2,2] 1 9 2 3", "f32[2,1] 4 5"}, .out = {"f32[2,1] 4 23"}, .flags = N},
    {"upper", "lower=0", .in = {"f32[2,2] 1 9 2 3", "f32[2,1] 4 5"}, .out = {"f32[2,1] 49 15"}, .flags = N},
    {"empty", "", .in = {"f32[2,0,0]", "f32[2,0,3]"}, .out = {"f32[2,0,3]"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random", "f32[2,2] random"}, .status = TN_E_SHAPE},
    {"side", "rightside=1", .in = {"f32[2,2] random", "f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case trsm[] = {
    {"left", "", .in = {TRIANGULAR, "f64[2,2,3] random"}, .flags = G, .tolerance = 1e-7},
    {"left transposed", "transpose=1 alpha=2", .in = {TRIANGULAR, "f64[2,2,3] random"}, .flags = G,
     .tolerance = 1e-7},
    {"right", "rightside=1 lower=0", .in = {TRIANGULAR, "f64[2,3,2] random"}, .flags = G, .tolerance = 1e-7},
    {"right transposed", "rightside=1 transpose=1 alpha=-1", .in = {TRIANGULAR, "f64[2,3,2] random"},
     .flags = G, .tolerance = 1e-7},
    {"values", "", .in = {"f32[2,2] 2 9 1 4", "f32[2,1] 4 10"}, .out = {"f32[2,1] 2 2"}, .flags = N},
    {"no factor", "alpha=0", .in = {TRIANGULAR, "f64[2,2,1] random"}},
    {"by 0", "", .in = {"f32[1,1] 0", "f32[1,1] 1"}, .out = {"f32[1,1] inf"}, .flags = N},
    {"batches", "", .in = {"f32[2,2,2] random", "f32[3,2,2] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case sumlogdiag[] = {
    {"batch", "", .in = {"f64[2,3,3] random:0.5:2"}},
    {"one matrix", "", .in = {"f32[2,2] 1 5 5 1"}, .out = {"f32[1] 0"}, .flags = N},
    {"one matrix of NumPy", "", .in = {"f64[2,2] random:0.5:2"}, .flags = NP},
    {"nothing", "", .in = {"f32[2,0,0]"}, .out = {"f32[2] 0 0"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
    {"vector", "", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
};
static const tn_op_case extractdiag[] = {
    {"main", "", .in = {"f64[2,2,2] 1 2 3 4 5 6 7 8"}, .out = {"f64[2,2] 1 4 5 8"}, .flags = G},
    {"above", "offset=1", .in = {"f64[3,3] range"}, .out = {"f64[2] 1 5"}, .flags = G},
    {"below", "offset=-2", .in = {"f64[3,3] range"}, .out = {"f64[1] 6"}, .flags = G},
    {"empty", "", .in = {"f32[2,0,0]"}, .out = {"f32[2,0]"}, .flags = N},
    {"outside", "offset=3", .in = {"f32[3,3] range"}, .status = TN_E_SHAPE, .message = "offset"},
    {"outside below", "offset=-3", .in = {"f32[3,3] range"}, .status = TN_E_SHAPE, .message = "offset"},
    {"square", "", .in = {"f32[2,3] range"}, .status = TN_E_SHAPE},
    {"far", "offset=99999999999", .in = {"f32[3,3] range"}, .status = TN_E_ATTR},
    {"vector", "", .in = {"f32[3] range"}, .status = TN_E_SHAPE},
};
static const tn_op_case makediag[] = {
    {"main", "", .in = {"f64[2,2] 1 2 3 4"}, .out = {"f64[2,2,2] 1 0 0 2 3 0 0 4"}, .flags = G},
    {"above", "offset=1", .in = {"f64[1] 5"}, .out = {"f64[2,2] 0 5 0 0"}, .flags = G},
    {"below", "offset=-1", .in = {"f64[1] 5"}, .out = {"f64[2,2] 0 0 5 0"}, .flags = G},
    {"scalar", "", .in = {"f32[] 5"}, .status = TN_E_SHAPE, .flags = NP},
};
static const tn_op_case extracttrian[] = {
    {"lower", "", .in = {"f64[3,3] range"}, .out = {"f64[6] 0 3 4 6 7 8"}, .flags = G},
    {"upper", "lower=0", .in = {"f64[3,3] range"}, .out = {"f64[6] 0 1 4 2 5 8"}, .flags = G},
    {"above", "offset=1", .in = {"f64[3,3] range"}, .out = {"f64[3] 1 2 5"}, .flags = G},
    {"below", "offset=-2", .in = {"f64[2,3,3] range"}, .out = {"f64[2,1] 6 15"}, .flags = G},
    {"outside", "offset=4", .in = {"f32[3,3] range"}, .status = TN_E_SHAPE, .message = "offset"},
    {"square", "", .in = {"f32[3,2] range"}, .status = TN_E_SHAPE},
};
static const tn_op_case maketrian[] = {
    {"lower", "", .in = {"f64[3] 1 2 3"}, .out = {"f64[2,2] 1 0 2 3"}, .flags = G},
    {"upper", "lower=0", .in = {"f64[2,3] 1 2 3 4 5 6"}, .out = {"f64[2,2,2] 1 2 0 3 4 5 0 6"}, .flags = G},
    {"above", "offset=1", .in = {"f64[1] 7"}, .out = {"f64[2,2] 0 7 0 0"}, .flags = G},
    {"below", "offset=-1", .in = {"f64[3] 1 2 3"}, .out = {"f64[3,3] 0 0 0 1 0 0 2 3 0"}, .flags = G},
    {"no triangle", "", .in = {"f32[4] range"}, .status = TN_E_SHAPE, .message = "triangle"},
    {"scalar", "", .in = {"f32[] 5"}, .status = TN_E_SHAPE, .flags = NP},
};

/* ---- decompositions ----------------------------------------------------------------------------------- */

static const tn_op_case potrf[] = {
    {"lower", "", .in = {"f32[2,2] 4 99 2 5"}, .out = {"f32[2,2] 2 0 1 2"}, .flags = N},
    {"upper", "lower=0", .in = {"f32[2,2] 4 2 99 5"}, .out = {"f32[2,2] 2 1 0 2"}, .flags = N},
    {"batch", "", .in = {SPD}, .out = {"f64[2,2,2] 2 0 1 2 3 0 -1 1"}, .flags = N},
    {"nothing", "", .in = {"f32[3,0,0]"}, .out = {"f32[3,0,0]"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
    {"vector", "", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"f16", "", .in = {"f16[1,1] 1"}, .status = TN_E_DTYPE},
};
static const tn_op_case potri[] = {
    {"lower", "", .in = {"f64[2,2] 2 99 1 2"}, .out = {"f64[2,2] 0.3125 -0.125 -0.125 0.25"}, .flags = N},
    {"upper", "lower=0", .in = {"f64[2,2] 2 1 99 2"}, .out = {"f64[2,2] 0.3125 -0.125 -0.125 0.25"},
     .flags = N},
    {"gradient", "", .in = {"f64[2,2,2] 2 0.5 1 2 1.5 2 -1 3"}, .tolerance = 1e-7},
    {"gradient of upper", "lower=0", .in = {"f64[2,2,2] 2 0.5 1 2 1.5 2 -1 3"}, .tolerance = 1e-7},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case gelqf[] = {
    {"signs", "", .in = {"f64[1,2] 3 4"}, .out = {"f64[1,2] -0.6 -0.8", "f64[1,1] -5"}, .flags = N},
    {"diagonal", "", .in = {"f64[2,2] 3 0 0 -2"}, .out = {"f64[2,2] 1 0 0 1", "f64[2,2] 3 0 0 -2"},
     .flags = N},
    {"gradient", "", .in = {"f64[2,2,3] random"}, .tolerance = 1e-6},
    {"square", "", .in = {"f64[3,3] random"}, .tolerance = 1e-6},
    {"nothing", "", .in = {"f32[2,0,3]"}, .out = {"f32[2,0,3]", "f32[2,0,0]"}, .flags = N},
    {"tall", "", .in = {"f32[3,2] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case syevd[] = {
    {"diagonal", "", .in = {"f64[2,2] 3 0 0 2"}, .out = {"f64[2,2] 0 1 1 0", "f64[2] 2 3"}, .flags = N},
    {"lower", "", .in = {"f64[1,2,2] 2 99 1 2"}, .out = {NULL, "f64[1,2] 1 3"}, .flags = N},
    {"infinite", "", .in = {"f32[2,2] 1 0 inf 1"}, .out = {"f32[2,2] nan nan nan nan", "f32[2] nan nan"},
     .flags = N},
    {"one", "", .in = {"f32[1,1] -3"}, .out = {"f32[1,1] 1", "f32[1] -3"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case inverse[] = {
    {"values", "", .in = {"f64[2,2] 0 2 4 0"}, .out = {"f64[2,2] 0 0.25 0.5 0"}, .flags = N},
    {"gradient", "", .in = {"f64[2,2,2] 2 0.5 1 2 0 3 1 1"}, .flags = G, .tolerance = 1e-6},
    {"nan", "", .in = {"f32[1,1] nan"}, .out = {"f32[1,1] nan"}, .flags = N},
    {"nothing", "", .in = {"f32[2,0,0]"}, .out = {"f32[2,0,0]"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case det[] = {
    {"values", "", .in = {"f32[2,2,2] 1 2 3 4 2 0 0 3"}, .out = {"f32[2] -2 6"}, .flags = N},
    {"gradient", "", .in = {"f64[2,3,3] random"}, .tolerance = 1e-7},
    {"one matrix", "", .in = {"f64[3,3] random"}, .tolerance = 1e-7},
    {"of NumPy", "", .in = {"f64[3,3] random"}, .flags = NP, .tolerance = 1e-7},
    {"singular", "", .in = {"f64[2,2] 1 2 2 4"}, .out = {"f64[1] 0"}, .grad = {"f64[2,2] 0 0 0 0"},
     .flags = N},
    {"wide range", "", .in = {"f64[2,2] 1e300 0 0 1e-300"}, .out = {"f64[1] 1"}, .flags = N},
    {"too large", "", .in = {"f64[2,2] 1e300 0 0 1e300"}, .out = {"f64[1] inf"}, .flags = N},
    {"nothing", "", .in = {"f32[2,0,0]"}, .out = {"f32[2] 1 1"}, .flags = N},
    {"nan", "", .in = {"f32[2,2] nan 1 1 1"}, .out = {"f32[1] nan"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case slogdet[] = {
    {"values", "", .in = {"f64[2,2,2] 0 1 1 0 1 0 0 1"}, .out = {"f64[2] -1 1", "f64[2] 0 0"}, .flags = N},
    {"gradient", "", .in = {"f64[2,3,3] random"}, .tolerance = 1e-6},
    {"singular", "", .in = {"f64[2,2] 1 2 2 4"}, .out = {"f64[1] 0", "f64[1] -inf"}, .flags = N},
    {"square", "", .in = {"f32[3,2] random"}, .status = TN_E_SHAPE},
};

/* ---- NumPy's ------------------------------------------------------------------------------------------ */

static const tn_op_case solve[] = {
    {"matrix", "", .in = {"f64[2,2,2] 2 0.5 1 2 0 3 1 1", "f64[2,2,3] random"}, .tolerance = 1e-7},
    {"vectors", "", .in = {"f64[2,2,2] 2 0.5 1 2 0 3 1 1", "f64[2,2] random"}, .tolerance = 1e-7},
    {"integers", "", .in = {"i32[2,2] 2 0 0 4", "i64[2] 1 2"}, .out = {"f64[2] 0.5 0.5"}, .flags = N},
    {"mixed", "", .in = {"f32[1,1] 2", "f64[1] 1"}, .out = {"f64[1] 0.5"}, .flags = N},
    {"f32", "", .in = {"f32[1,1] 2", "f32[1,2] 1 3"}, .out = {"f32[1,2] 0.5 1.5"}, .flags = N},
    {"no right side", "", .in = {"f32[2,2] 1 0 0 1", "f32[2,0]"}, .out = {"f32[2,0]"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random", "f32[2] random"}, .status = TN_E_SHAPE},
    {"length", "", .in = {"f32[2,2] random", "f32[3] random"}, .status = TN_E_SHAPE},
    {"ranks", "", .in = {"f32[2,2] random", "f32[1,2,2] random"}, .status = TN_E_SHAPE},
    {"f16", "", .in = {"f16[1,1] 1", "f16[1] 1"}, .status = TN_E_DTYPE},
    {"bool", "", .in = {"bool[1,1] 1", "f32[1] 1"}, .status = TN_E_DTYPE, .message = "bool"},
};
static const tn_op_case tensorinv[] = {
    {"two axes", "", .in = {"f64[2,2,4] 2 0.5 1 0 3 -1 0 2 1 1 4 -2 0.5 0 1 3"}, .tolerance = 1e-6},
    {"one axis", "ind=1", .in = {"f64[2,1,2] 0 2 4 0"}, .out = {"f64[1,2,2] 0 0.25 0.5 0"},
     .tolerance = 1e-6},
    {"beyond", "ind=5", .in = {"f64[1,1] 4"}, .out = {"f64[1,1] 0.25"}, .tolerance = 1e-6},
    {"integers", "ind=1", .in = {"i32[1,1] 4"}, .out = {"f64[1,1] 0.25"}, .flags = N},
    {"square", "", .in = {"f32[2,3,4] random"}, .status = TN_E_SHAPE},
    {"not beyond", "ind=3", .in = {"f32[2,2] random"}, .status = TN_E_SHAPE},
    {"none", "ind=0", .in = {"f32[2,2] random"}, .status = TN_E_ATTR},
    {"nothing", "ind=1", .in = {"f32[0,0]"}, .status = TN_E_SHAPE},
    {"scalar", "", .in = {"f32[] 1"}, .status = TN_E_SHAPE, .flags = NP},
};
static const tn_op_case tensorsolve[] = {
    {"two axes", "", .in = {"f64[2,2,4] 2 0.5 1 0 3 -1 0 2 1 1 4 -2 0.5 0 1 3", "f64[2,2] random"},
     .tolerance = 1e-6},
    {"moved", "a_axes=(0,)", .in = {"f64[4,2,2] 2 0.5 1 0 3 -1 0 2 1 1 4 -2 0.5 0 1 3", "f64[2,2] random"},
     .tolerance = 1e-6},
    {"moved twice", "a_axes=(-2,0)",
     .in = {"f64[2,2,4] 2 0.5 1 0 3 -1 0 2 1 1 4 -2 0.5 0 1 3", "f64[4] random"}, .tolerance = 1e-6},
    {"scalars", "", .in = {"f64[] 2", "f64[] 3"}, .out = {"f64[] 1.5"}, .flags = NP, .tolerance = 1e-6},
    {"mixed", "", .in = {"f32[1,1] 2", "i32[1] 3"}, .out = {"f64[1] 1.5"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random", "f32[2] random"}, .status = TN_E_SHAPE},
    {"length", "", .in = {"f32[2,2] random", "f32[3] random"}, .status = TN_E_SHAPE},
    {"axis", "a_axes=(2,)", .in = {"f32[2,2] random", "f32[2] random"}, .status = TN_E_SHAPE},
    {"axis twice", "a_axes=(0,0)", .in = {"f32[2,2] random", "f32[2] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case eigh[] = {
    {"columns", "", .in = {"f64[2,2] 3 9 0 2"}, .out = {"f64[2] 2 3", "f64[2,2] 0 1 1 0"}, .flags = N},
    {"upper", "UPLO=U", .in = {"f64[2,2] 2 1 9 2"}, .out = {"f64[2] 1 3", NULL}, .flags = N},
    {"integers", "", .in = {"i32[1,1] 4"}, .out = {"f64[1] 4", "f64[1,1] 1"}, .flags = N},
    {"nothing", "", .in = {"f32[2,0,0]"}, .out = {"f32[2,0]", "f32[2,0,0]"}, .flags = N},
    {"triangle", "UPLO=X", .in = {"f32[1,1] 1"}, .status = TN_E_ATTR},
    {"f16", "", .in = {"f16[1,1] 1"}, .status = TN_E_DTYPE},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case eigvalsh[] = {
    {"values", "", .in = {"f64[2,2,2] 2 9 1 2 5 9 0 -1"}, .out = {"f64[2,2] 1 3 -1 5"}, .flags = N},
    {"nan", "", .in = {"f32[1,1] nan"}, .out = {"f32[1] nan"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case eig[] = {
    {"triangular", "", .in = {"f64[2,2] 2 3 0 5"},
     .out = {"f64[2] 2 5", "f64[2,2] 1 0.7071067811865475 0 0.7071067811865475"}, .flags = N},
    {"integers", "", .in = {"u8[1,1] 4"}, .out = {"f64[1] 4", "f64[1,1] 1"}, .flags = N},
    {"zeros", "", .in = {"f32[2,2] 0 0 0 0"}, .out = {"f32[2] 0 0", "f32[2,2] 1 0 0 1"}, .flags = N},
    {"nan", "", .in = {"f32[1,1] nan"}, .out = {"f32[1] nan", "f32[1,1] nan"}, .flags = N},
    {"square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case eigvals[] = {
    {"values", "", .in = {"f64[2,2] 3 0 1 2"}, .out = {NULL}, .flags = N},
    {"f16", "", .in = {"f16[1,1] 1"}, .status = TN_E_DTYPE},
};
static const tn_op_case svd[] = {
    {"signs", "", .in = {"f64[1,2] -3 -4"}, .out = {"f64[1,1] -1", "f64[1] 5", "f64[1,2] 0.6 0.8"},
     .flags = N},
    {"descending", "", .in = {"f64[2,2] 2 0 0 3"},
     .out = {"f64[2,2] 0 1 1 0", "f64[2] 3 2", "f64[2,2] 0 1 1 0"}, .flags = N},
    {"gradient", "", .in = {"f64[2,2,3] random"}, .tolerance = 1e-5},
    {"nan", "", .in = {"f32[1,2] nan 1"}, .out = {"f32[1,1] nan", "f32[1] nan", "f32[1,2] nan nan"},
     .flags = N},
    {"nothing", "", .in = {"f32[2,0,3]"}, .out = {"f32[2,0,0]", "f32[2,0]", "f32[2,0,3]"}, .flags = N},
    {"tall", "", .in = {"f32[3,2] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case pinv[] = {
    {"cut", "", .in = {"f64[2,2,2] 4 0 0 1 4 0 0 1", "f64[2] 0.5 0.1"},
     .out = {"f64[2,2,2] 0.25 0 0 0 0.25 0 0 1"}, .flags = N},
    {"one for all", "", .in = {"f32[2,1,1] 4 2", "f32[1] 0.5"}, .out = {"f32[2,1,1] 0.25 0.5"}, .flags = N},
    {"number", "", .in = {"f32[1,1] 4", "f32[] 0.5"}, .out = {"f32[1,1] 0.25"}, .flags = N | NP},
    {"too many", "", .in = {"f32[2,1,1] 4 2", "f32[3] random"}, .status = TN_E_SHAPE},
    {"larger", "", .in = {"f32[1,1] 4", "f32[2] random"}, .status = TN_E_SHAPE},
    {"integers", "", .in = {"f32[1,1] 4", "i32[1] 1"}, .status = TN_E_DTYPE, .message = "rcond"},
};
static const tn_op_case pinv_scalar[] = {
    {"tall", "", .in = {"f64[2,1] 3 4"}, .out = {"f64[1,2] 0.12 0.16"}, .flags = N},
    {"wide", "", .in = {"f64[1,2] 3 4"}, .out = {"f64[2,1] 0.12 0.16"}, .flags = N},
    {"zeros", "rcond=0", .in = {"f32[2,3] fill:0"}, .out = {"f32[3,2] 0 0 0 0 0 0"}, .flags = N},
    {"nothing", "", .in = {"f32[0,3]"}, .out = {"f32[3,0]"}, .flags = N},
    {"vector", "", .in = {"f32[3] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case norm[] = {
    {"all", "flag=-2", .in = {"f64[2,2] 3 0 4 0"}, .out = {"f64[] 5"}, .flags = NP},
    {"all, classic", "flag=-2", .in = {"f64[2,2] 3 0 4 0"}, .out = {"f64[1] 5"}},
    {"all of many", "flag=-2 keepdims=1", .in = {"f64[3,400] random"}},
    {"vectors", "axis=(1,)", .in = {"f64[2,3,2] random"}, .flags = NP},
    {"of order 3", "axis=(-2,) ord=3 keepdims=1", .in = {"f64[2,3,2] random"}, .flags = NP},
    {"of order -1", "axis=(1,) ord=-1", .in = {"f64[2,3] random:0.5:2"}, .flags = NP},
    {"of order 0", "axis=(1,) ord=0", .in = {"f64[2,3] 0 1 2 0 0 0"}, .out = {"f64[2] 2 0"}, .flags = N | NP},
    {"largest", "axis=(0,) ord=inf", .in = {"f64[3] 1 -5 2"}, .out = {"f64[] 5"}, .flags = NP},
    {"smallest", "axis=(0,) ord=-inf", .in = {"f64[3] 1 -5 2"}, .out = {"f64[] 1"}, .flags = NP},
    {"of a vector", "", .in = {"f64[2] 3 4"}, .out = {"f64[] 5"}, .flags = NP},
    {"wide range", "axis=(0,)", .in = {"f64[2] 3e200 4e200"}, .out = {"f64[] 5e200"}, .flags = N | NP},
    {"infinite", "axis=(1,)", .in = {"f32[3,2] inf 1 nan 1 0 0"}, .out = {"f32[3] inf nan 0"},
     .flags = N | NP},
    {"Frobenius", "flag=1 axis=(0,2)", .in = {"f64[2,3,2] random"}, .flags = NP},
    {"columns", "ord=1", .in = {"f64[2,2] 1 -2 3 5"}, .out = {"f64[] 7"}, .flags = NP},
    {"columns, smallest", "ord=-1 axis=(2,0)", .in = {"f64[2,3,2] random"}, .flags = NP},
    {"rows", "ord=inf", .in = {"f64[2,2] 1 -2 3 5"}, .out = {"f64[] 8"}, .flags = NP},
    {"rows, smallest", "ord=-inf keepdims=1", .in = {"f64[2,2,3] random"}, .flags = NP},
    {"singular", "ord=2", .in = {"f64[2,2,3] random"}, .flags = NP, .tolerance = 1e-7},
    {"singular, tall", "ord=2 axis=(1,0)", .in = {"f64[2,3] random"}, .flags = NP, .tolerance = 1e-7},
    {"singular, smallest", "ord=-2 axis=(0,2)", .in = {"f64[3,2,2] random"}, .flags = NP, .tolerance = 1e-7},
    {"nuclear", "flag=2 axis=(1,2)", .in = {"f64[2,2,3] random"}, .flags = NP, .tolerance = 1e-7},
    {"singular, nan", "", .in = {"f32[1,2] nan 1"}, .out = {"f32[] nan"}, .flags = N | NP},
    {"integers", "axis=(0,)", .in = {"i32[2] 3 4"}, .out = {"i32[] 5"}, .flags = N | NP},
    {"f16", "axis=(0,)", .in = {"f16[2] 3 4"}, .out = {"f16[] 5"}, .flags = N | NP},
    {"nothing", "axis=(1,)", .in = {"f32[2,0]"}, .out = {"f32[2] 0 0"}, .flags = N | NP},
    {"no matrix", "axis=(1,2)", .in = {"f32[2,0,3]"}, .out = {"f32[2] 0 0"}, .flags = N | NP},
    {"no matrices", "axis=(1,2)", .in = {"f32[0,2,3]"}, .out = {"f32[0]"}, .flags = N | NP},
    {"three axes", "axis=(0,1,2)", .in = {"f32[1,1,1] 1"}, .status = TN_E_ATTR, .message = "axis"},
    {"no axis", "axis=()", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "axis"},
    {"scalar", "", .in = {"f32[] 1"}, .status = TN_E_SHAPE, .flags = NP, .message = "axis"},
    {"axis twice", "axis=(0,0)", .in = {"f32[1,1] 1"}, .status = TN_E_SHAPE},
    {"axis", "axis=(2,)", .in = {"f32[1,1] 1"}, .status = TN_E_SHAPE},
    {"order", "ord=3", .in = {"f32[1,1] 1"}, .status = TN_E_ATTR, .message = "ord"},
    {"nan", "ord=nan axis=(0,)", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
    {"nuclear of vectors", "flag=2 axis=(0,)", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "nuclear"},
    {"all and axis", "flag=-2 axis=(0,)", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "flag"},
    {"flag", "flag=5", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
};

/* clang-format off */
TN_OP_TESTS(gemm, "_linalg_gemm", gemm)
TN_OP_TESTS(gemm2, "_linalg_gemm2", gemm2)
TN_OP_TESTS(syrk, "_linalg_syrk", syrk)
TN_OP_TESTS(trmm, "_linalg_trmm", trmm)
TN_OP_TESTS(trsm, "_linalg_trsm", trsm)
TN_OP_TESTS(sumlogdiag, "_linalg_sumlogdiag", sumlogdiag)
TN_OP_TESTS(extractdiag, "_linalg_extractdiag", extractdiag)
TN_OP_TESTS(makediag, "_linalg_makediag", makediag)
TN_OP_TESTS(extracttrian, "_linalg_extracttrian", extracttrian)
TN_OP_TESTS(maketrian, "_linalg_maketrian", maketrian)
TN_OP_TESTS(potrf, "_linalg_potrf", potrf)
TN_OP_TESTS(cholesky, "_npi_cholesky", potrf)
TN_OP_TESTS(potri, "_linalg_potri", potri)
TN_OP_TESTS(gelqf, "_linalg_gelqf", gelqf)
TN_OP_TESTS(syevd, "_linalg_syevd", syevd)
TN_OP_TESTS(inverse, "_linalg_inverse", inverse)
TN_OP_TESTS(det, "_linalg_det", det)
TN_OP_TESTS(slogdet, "_linalg_slogdet", slogdet)
TN_OP_TESTS(solve, "_npi_solve", solve)
TN_OP_TESTS(tensorinv, "_npi_tensorinv", tensorinv)
TN_OP_TESTS(tensorsolve, "_npi_tensorsolve", tensorsolve)
TN_OP_TESTS(eigh, "_npi_eigh", eigh)
TN_OP_TESTS(eigvalsh, "_npi_eigvalsh", eigvalsh)
TN_OP_TESTS(eig, "_npi_eig", eig)
TN_OP_TESTS(eigvals, "_npi_eigvals", eigvals)
TN_OP_TESTS(svd, "_npi_svd", svd)
TN_OP_TESTS(pinv, "_npi_pinv", pinv)
TN_OP_TESTS(pinv_scalar, "_npi_pinv_scalar_rcond", pinv_scalar)
TN_OP_TESTS(norm, "_npi_norm", norm)
/* clang-format on */

/* ---- every kernel on one call ------------------------------------------------------------------------- */

#define KERNELS_MAX 8
#define OUTPUTS_MAX 3

typedef struct call {
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_args args;
    op_tensor in[2];
    tn_shape out_shape[OUTPUTS_MAX];
    int32_t in_dtype[2], out_dtype[OUTPUTS_MAX];
    op_kernel kernels[KERNELS_MAX];
    size_t kernel_count;
} call;

/* Inputs as cases have them. */
static void call_open(call *c, const char *op, const char *attrs, const char *first, const char *second)
{
    const char *const in[] = {first, second};
    tn_shape in_shape[2];

    *c = (call){.kernel_count = 0};
    assert_int_equal(tni_opset_find(op_set(), op, &c->def), TN_OK);
    assert_int_equal(op_attrs_split(c->def, attrs, &c->attrs), TN_OK);
    assert_int_equal(tni_op_args(c->def, c->attrs, second ? 2 : 1, &c->args), TN_OK);
    for (uint32_t i = 0; i < c->args.in_count; i++) {
        op_tensor_read(&c->in[i], in[i], -1, i + 3);
        in_shape[i].ndim = c->in[i].t.ndim;
        memcpy(in_shape[i].dim, c->in[i].shape, sizeof c->in[i].shape);
        c->in_dtype[i] = c->in[i].t.dtype;
    }
    for (uint32_t o = 0; o < c->args.out_count; o++) {
        c->out_shape[o].ndim = -1;
        c->out_dtype[o] = -1;
    }
    assert_int_equal(
        op_infer(c->def, c->attrs, &c->args, 0, in_shape, c->out_shape, c->in_dtype, c->out_dtype), TN_OK);
    c->kernel_count = op_kernels_find(c->def, &c->args, c->in_dtype, c->out_dtype, c->kernels, KERNELS_MAX);
    assert_int_not_equal(c->kernel_count, 0);
}

static tn_status call_run(call *c, size_t kernel, op_node *n)
{
    op_tensor *const in[] = {&c->in[0], &c->in[1]};
    const op_form form = {.threads = 2, .mode = TN_MODE_WRITE};

    *n = (op_node){
        .def = c->def, .attrs = tni_attrs_retain(c->attrs), .args = c->args, .kernel = c->kernels[kernel]};
    return op_node_run(n, in, c->out_shape, c->out_dtype, &form, NULL);
}

static void call_close(call *c)
{
    for (uint32_t i = 0; i < c->args.in_count; i++)
        op_tensor_free(&c->in[i]);
    tni_attrs_release(c->attrs);
}

/* ---- values that are refused -------------------------------------------------------------------------- */

static const struct {
    const char *op, *attrs, *in[2], *says;
} refused[] = {
    {"_linalg_potrf", "", {"f64[3,2,2] 1 0 0 1 1 9 2 1 -1 0 0 1", NULL}, "matrix 1 of 3 is not positive"},
    {"_linalg_potrf", "", {"f32[1,1] nan", NULL}, "positive definite"},
    {"_linalg_potrf", "lower=0", {"f32[2,2] 1 2 0 1", NULL}, "positive definite"},
    {"_npi_cholesky", "", {"f32[1,1] 0", NULL}, "positive definite"},
    {"_linalg_potri", "", {"f64[2,1,1] 1 0", NULL}, "matrix 1 of 2 is singular"},
    {"_linalg_inverse", "", {"f64[3,2,2] 1 0 0 1 1 2 2 4 0 0 0 0", NULL}, "matrix 1 of 3 is singular"},
    {"_npi_solve", "", {"f32[2,2] 1 1 1 1", "f32[2] 1 2"}, "matrix 0 of 1 is singular"},
    {"_npi_tensorinv", "ind=1", {"f64[1,1] 0", NULL}, "singular"},
    {"_npi_tensorsolve", "", {"f64[1,1] 0", "f64[1] 1"}, "singular"},
    {"_npi_eig",
     "",
     {"f64[2,2,2] 1 0 0 1 0 -1 1 0", NULL},
     "matrix 1 of 2 has eigenvalues that are not real"},
    {"_npi_eigvals", "", {"f64[3,3] 0 0 1 1 0 0 0 1 0", NULL}, "not real"},
    {"_npi_eigvals", "", {"i32[4,4] 0 -1 0 0 1 0 0 0 0 0 0 -2 0 0 2 0", NULL}, "not real"},
};

/* Output 0 has NaN where hosts refuse. */
static bool gives_nan(tn_status st, const op_node *n)
{
    bool found = false;

    for (int64_t i = 0; !st && i < tn_tensor_count(&n->out[0].t); i++)
        found |= isnan(op_tensor_get(&n->out[0], i)) != 0;
    return found;
}

static void values_are_refused(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        call c;

        call_open(&c, refused[i].op, refused[i].attrs, refused[i].in[0], refused[i].in[1]);
        assert_true(c.def->op->flags & TN_OP_CHECKS_VALUES);
        for (size_t k = 0; k < c.kernel_count; k++) {
            op_node n;
            const tn_status st = call_run(&c, k, &n);

            const bool refuses = op_kernel_on_device(&c.kernels[k])
                                     ? gives_nan(st, &n)
                                     : st == TN_E_ARG && strstr(op_error()->message, refused[i].says);

            if (!refuses) {
                print_error("%s of %s: status %d, \"%s\", not \"%s\"\n", refused[i].op,
                            c.kernels[k].plugin_name, (int)st, op_error()->message, refused[i].says);
                wrong++;
            }
            op_node_free(&n);
        }
        call_close(&c);
    }
    assert_int_equal(wrong, 0);
}

/* ---- put together again ------------------------------------------------------------------------------- */

/* Elements of a matrix of a batch, or of its transpose. */
typedef struct matrix {
    const op_tensor *t;
    int64_t at, rows, columns;
    bool turned;
} matrix;

static double get(const matrix *m, int64_t i, int64_t j)
{
    return op_tensor_get(m->t, m->at + (m->turned ? j * m->columns + i : i * m->columns + j));
}

static matrix matrix_of(const op_tensor *t, int64_t index, bool turned)
{
    const int64_t rows = t->t.ndim > 1 ? t->shape[t->t.ndim - 2] : 1, columns = t->shape[t->t.ndim - 1];

    return (matrix){t, index * rows * columns, rows, columns, turned};
}

/* How far a · diag(w) · b is from `y`, or from the unit matrix (y NULL); w NULL: 1. */
static double distance(const matrix *a, const op_tensor *w, int64_t w_at, const matrix *b, const matrix *y)
{
    const int64_t m = a->turned ? a->columns : a->rows, k = a->turned ? a->rows : a->columns,
                  n = b->turned ? b->rows : b->columns;
    double worst = 0;

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;

            for (int64_t l = 0; l < k; l++)
                sum += get(a, i, l) * (w ? op_tensor_get(w, w_at + l) : 1) * get(b, l, j);
            worst = fmax(worst, fabs(sum - (y ? get(y, i, j) : i == j)));
            if (!isfinite(sum))
                return INFINITY;
        }
    return worst;
}

typedef double check(const call *c, const op_node *n, int64_t index);

static double eigh_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), v = matrix_of(&n->out[1], index, false),
                 vt = matrix_of(&n->out[1], index, true);
    const int64_t size = a.rows;

    for (int64_t i = 1; i < size; i++)
        if (op_tensor_get(&n->out[0], index * size + i) < op_tensor_get(&n->out[0], index * size + i - 1))
            return INFINITY; /* they ascend */
    return fmax(distance(&v, &n->out[0], index * size, &vt, &a), distance(&vt, NULL, 0, &v, NULL));
}

static double syevd_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), u = matrix_of(&n->out[0], index, false),
                 ut = matrix_of(&n->out[0], index, true);

    return fmax(distance(&ut, &n->out[1], index * a.rows, &u, &a), distance(&u, NULL, 0, &ut, NULL));
}

static double svd_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), ut = matrix_of(&n->out[0], index, false),
                 u = matrix_of(&n->out[0], index, true), v = matrix_of(&n->out[2], index, false),
                 vt = matrix_of(&n->out[2], index, true);

    for (int64_t i = 1; i < a.rows; i++)
        if (op_tensor_get(&n->out[1], index * a.rows + i) > op_tensor_get(&n->out[1], index * a.rows + i - 1))
            return INFINITY; /* they descend */
    return fmax(distance(&ut, &n->out[1], index * a.rows, &v, &a),
                fmax(distance(&u, NULL, 0, &ut, NULL), distance(&v, NULL, 0, &vt, NULL)));
}

static double gelqf_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), q = matrix_of(&n->out[0], index, false),
                 qt = matrix_of(&n->out[0], index, true), l = matrix_of(&n->out[1], index, false);

    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = i + 1; j < a.rows; j++)
            if (get(&l, i, j) != 0)
                return INFINITY;
    return fmax(distance(&l, NULL, 0, &q, &a), distance(&q, NULL, 0, &qt, NULL));
}

/* A v = v diag(w), and columns of length 1. */
static double eig_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), v = matrix_of(&n->out[1], index, false);
    double worst = 0;

    for (int64_t j = 0; j < a.rows; j++) {
        const double w = op_tensor_get(&n->out[0], index * a.rows + j);
        double length = 0;

        for (int64_t i = 0; i < a.rows; i++) {
            double sum = -w * get(&v, i, j);

            for (int64_t k = 0; k < a.rows; k++)
                sum += get(&a, i, k) * get(&v, k, j);
            worst = fmax(worst, fabs(sum));
            length = hypot(length, get(&v, i, j));
        }
        worst = isfinite(length) ? fmax(worst, fabs(length - 1)) : INFINITY;
    }
    return worst;
}

static double inverse_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), y = matrix_of(&n->out[0], index, false);

    return distance(&a, NULL, 0, &y, NULL);
}

static double potrf_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), l = matrix_of(&n->out[0], index, false),
                 lt = matrix_of(&n->out[0], index, true);

    return distance(&l, NULL, 0, &lt, &a);
}

static double pinv_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), y = matrix_of(&n->out[0], index, false);

    return a.rows < a.columns ? distance(&a, NULL, 0, &y, NULL) : distance(&y, NULL, 0, &a, NULL);
}

static double solve_check(const call *c, const op_node *n, int64_t index)
{
    const matrix a = matrix_of(&c->in[0], index, false), b = matrix_of(&c->in[1], index, false),
                 x = matrix_of(&n->out[0], index, false);

    return distance(&a, NULL, 0, &x, &b);
}

typedef enum kind { ANY, SYMMETRIC, DOMINANT, POSITIVE, REAL, TWICE } kind;

/* Makes of random numbers matrices of a kind: of REAL ones eigenvalues are real, since they are similar to
 * triangular ones; of TWICE half of the rows are those before them. */
static void matrices_shape(op_tensor *a, kind k)
{
    const int64_t n = a->shape[a->t.ndim - 1], m = a->shape[a->t.ndim - 2], count = tn_tensor_count(&a->t);

    for (int64_t e = 0; e < count; e++) {
        const int64_t at = e / (m * n) * m * n, i = e / n % m, j = e % n;

        if ((k == SYMMETRIC || k == POSITIVE) && j > i)
            op_tensor_set(a, e, op_tensor_get(a, at + j * n + i));
        if (k == REAL && j < i)
            op_tensor_set(a, e, 0);
        if (k == TWICE && i % 2)
            op_tensor_set(a, e, op_tensor_get(a, e - n));
    }
    for (int64_t e = 0; e < count; e++)
        if (e / n % m == e % n && (k == DOMINANT || k == POSITIVE || k == REAL))
            op_tensor_set(a, e, k == REAL ? (double)(e % n) / 4 : op_tensor_get(a, e) + (double)n);
    for (int64_t at = 0; at < count && k == REAL; at += n * n) /* rows and columns are added to others */
        for (int64_t i = 1; i < n; i++) {
            for (int64_t j = 0; j < n; j++)
                op_tensor_set(a, at + i * n + j,
                              op_tensor_get(a, at + i * n + j) + op_tensor_get(a, at + (i - 1) * n + j) / 2);
            for (int64_t j = 0; j < n; j++)
                op_tensor_set(a, at + j * n + i - 1,
                              op_tensor_get(a, at + j * n + i - 1) - op_tensor_get(a, at + j * n + i) / 2);
        }
}

static const struct {
    const char *op, *attrs, *in[2];
    kind kind;
    check *check;
    double bound;
} whole[] = {
    {"_npi_eigh", "", {"f64[3,17,17] random", NULL}, SYMMETRIC, eigh_check, 1e-12},
    {"_npi_eigh", "UPLO=U", {"f32[9,8,8] random", NULL}, SYMMETRIC, eigh_check, 1e-5},
    {"_npi_eigh", "", {"f64[2,70,70] random", NULL}, SYMMETRIC, eigh_check, 1e-11},
    {"_npi_eigh", "", {"f64[5,5] fill:1", NULL}, SYMMETRIC, eigh_check, 1e-12},
    {"_linalg_syevd", "", {"f64[12,6,6] random", NULL}, SYMMETRIC, syevd_check, 1e-12},
    {"_npi_svd", "", {"f64[3,7,19] random", NULL}, ANY, svd_check, 1e-12},
    {"_npi_svd", "", {"f32[9,6,6] random", NULL}, ANY, svd_check, 1e-5},
    {"_npi_svd", "", {"f64[60,60] random", NULL}, ANY, svd_check, 1e-11},
    {"_npi_svd", "", {"f64[2,6,8] random", NULL}, TWICE, svd_check, 1e-12},
    {"_npi_svd", "", {"f64[3,4] fill:0", NULL}, ANY, svd_check, 1e-12},
    {"_npi_svd", "", {"f32[4,4] fill:2", NULL}, ANY, svd_check, 1e-5},
    {"_linalg_gelqf", "", {"f64[3,7,19] random", NULL}, ANY, gelqf_check, 1e-12},
    {"_linalg_gelqf", "", {"f32[40,65] random", NULL}, ANY, gelqf_check, 1e-5},
    {"_linalg_gelqf", "", {"f64[4,4] fill:0", NULL}, ANY, gelqf_check, 1e-12},
    {"_npi_eig", "", {"f64[3,4,4] random", NULL}, REAL, eig_check, 1e-10},
    {"_npi_eig", "", {"f64[2,9,9] random", NULL}, REAL, eig_check, 1e-8},
    {"_npi_eig", "", {"f64[40,40] random", NULL}, SYMMETRIC, eig_check, 1e-11},
    {"_npi_eig", "", {"f32[9,3,3] random", NULL}, SYMMETRIC, eig_check, 1e-5},
    {"_linalg_inverse", "", {"f64[3,20,20] random", NULL}, DOMINANT, inverse_check, 1e-12},
    {"_linalg_inverse", "", {"f32[90,90] random", NULL}, DOMINANT, inverse_check, 1e-4},
    {"_linalg_potrf", "", {"f64[9,30,30] random", NULL}, POSITIVE, potrf_check, 1e-12},
    {"_linalg_potrf", "", {"f32[100,100] random", NULL}, POSITIVE, potrf_check, 1e-3},
    {"_npi_pinv_scalar_rcond", "", {"f64[3,4,9] random", NULL}, ANY, pinv_check, 1e-11},
    {"_npi_pinv_scalar_rcond", "", {"f64[3,9,4] random", NULL}, ANY, pinv_check, 1e-11},
    {"_npi_solve", "", {"f64[9,12,12] random", "f64[9,12,5] random"}, DOMINANT, solve_check, 1e-12},
    {"_npi_solve", "", {"f32[80,80] random", "f32[80,3] random"}, DOMINANT, solve_check, 1e-4},
};

static void results_make_the_input(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        call c;

        call_open(&c, whole[i].op, whole[i].attrs, whole[i].in[0], whole[i].in[1]);
        matrices_shape(&c.in[0], whole[i].kind);
        for (size_t k = 0; k < c.kernel_count; k++) {
            const int64_t count = tn_tensor_count(&c.in[0].t) / c.in[0].shape[c.in[0].t.ndim - 1] /
                                  c.in[0].shape[c.in[0].t.ndim - 2];
            double worst = 0;
            op_node n;

            assert_int_equal(call_run(&c, k, &n), TN_OK);
            for (int64_t index = 0; index < count; index++)
                worst = fmax(worst, whole[i].check(&c, &n, index));
            if (!(worst <= whole[i].bound)) {
                print_error("%s of %s, %s: %g away\n", whole[i].op, c.kernels[k].plugin_name, whole[i].in[0],
                            worst);
                wrong++;
            }
            op_node_free(&n);
        }
        call_close(&c);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(gemm),
        TN_OP_TEST(gemm2),
        TN_OP_TEST(syrk),
        TN_OP_TEST(trmm),
        TN_OP_TEST(trsm),
        TN_OP_TEST(sumlogdiag),
        TN_OP_TEST(extractdiag),
        TN_OP_TEST(makediag),
        TN_OP_TEST(extracttrian),
        TN_OP_TEST(maketrian),
        TN_OP_TEST(potrf),
        TN_OP_TEST(cholesky),
        TN_OP_TEST(potri),
        TN_OP_TEST(gelqf),
        TN_OP_TEST(syevd),
        TN_OP_TEST(inverse),
        TN_OP_TEST(det),
        TN_OP_TEST(slogdet),
        TN_OP_TEST(solve),
        TN_OP_TEST(tensorinv),
        TN_OP_TEST(tensorsolve),
        TN_OP_TEST(eigh),
        TN_OP_TEST(eigvalsh),
        TN_OP_TEST(eig),
        TN_OP_TEST(eigvals),
        TN_OP_TEST(svd),
        TN_OP_TEST(pinv),
        TN_OP_TEST(pinv_scalar),
        TN_OP_TEST(norm),
        cmocka_unit_test(values_are_refused),
        cmocka_unit_test(results_make_the_input),
    };

    return tn_op_main(tests);
}
