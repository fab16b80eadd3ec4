/*
 * Kernels and numbers that random inputs never are: infinite, not a number, large, the ends of integers.
 *
 * Values are compared only for operators of the core where it is no matter of taste what comes of such
 * numbers, and for those of the same meaning, against the plain kernels of plugin `cpu`. Every kernel
 * returns, keeps to its memory and gives the same bits again. And an operator that says it goes element by
 * element is held to that.
 */
#include <math.h>
#include <string.h>

#include "lab.h"

#define LARGE 1u    /* floats: finite, but exp and squares of float16 are not */
#define INFINITE 2u /* floats: infinite and not a number */
#define WHOLE 4u    /* integers: their ends */
#define SUMS 8u     /* integers: more digits than floats have, and yet sums that fit */

static const struct {
    uint32_t kinds;
    const char *ops; /* "a b c" */
} rows[] = {
    {LARGE | INFINITE | WHOLE, "abs negative _copy transpose Reshape Concat slice"},
    {LARGE | INFINITE, "square sqrt reciprocal exp expm1 log log1p tanh erf sigmoid floor ceil trunc "
                       "elemwise_mul elemwise_div broadcast_mul broadcast_div _plus_scalar _minus_scalar "
                       "_mul_scalar"},
    {LARGE | INFINITE | SUMS, "elemwise_add elemwise_sub broadcast_add broadcast_sub"},
    {LARGE | WHOLE, "relu sign _maximum _minimum broadcast_maximum broadcast_minimum _equal _not_equal "
                    "_greater _greater_equal _lesser _lesser_equal max min"},
    {LARGE, "Activation softmax log_softmax SoftmaxActivation"},
    {SUMS, "sum"},
};

#define NUMBERS 8u

typedef struct special {
    uint32_t kinds, round;
} special;

/* Number `k` of integers of `bytes` bytes. */
static int64_t whole_number(uint32_t kinds, int32_t dtype, uint64_t bytes, uint32_t k)
{
    const bool is_signed = !chk_is_unsigned(dtype);
    const uint32_t bits = (uint32_t)bytes * 8 - (is_signed ? 1 : 0);
    const int64_t end = bits > 62 ? INT64_MAX : (int64_t)(((uint64_t)1 << bits) - 1);
    const int64_t fits = bits > 56 ? ((int64_t)1 << 54) + 1 : bits > 28 ? ((int64_t)1 << 25) + 1 : end / 64;
    const int64_t most = kinds & SUMS ? fits : end;
    const int64_t numbers[NUMBERS] = {most, most - 1, 0, 1, most / 2, 3, most - 2, most / 3};

    return k % 2 && is_signed ? -numbers[k] : numbers[k];
}

static double largest_of(int32_t dtype)
{
    static const double largest[TN_DTYPE_LIMIT] = {[TN_F32] = 0x1.fffffep127,
                                                   [TN_F64] = 0x1.fffffffffffffp1023,
                                                   [TN_F16] = 65504,
                                                   [TN_BF16] = 0x1.fep127};

    return largest[dtype];
}

static void number_set(void *data, int32_t dtype, int64_t at, uint32_t kinds, uint32_t k)
{
    static const double finite[NUMBERS] = {1e4, -1e4, 100, -100, 0.5, -0.25, 300, -300};
    static const double others[NUMBERS] = {
        (double)INFINITY, (double)-INFINITY, (double)NAN, 1e4, -1e4, 0.5, -100, 2};
    const uint64_t bytes = tn_dtype_bytes(dtype);
    int64_t whole;

    if (chk_is_float(dtype)) {
        chk_set(data, dtype, at, kinds & INFINITE ? others[k] : finite[k]);
        return;
    }
    whole = whole_number(kinds, dtype, bytes, k);
    if (dtype == TN_BOOL)
        whole = k % 2;
    memcpy((char *)data + (uint64_t)at * bytes, &whole, (size_t)bytes); /* little end first */
}

/* In every round each input meets other numbers of the others. */
static const chk_problem *special_problem(chk_lab *lab, const chk_problem *p, const special *s)
{
    chk_problem *made = chk_problem_copy(lab, p);

    made->text = chk_text(&lab->arena, "%s, of numbers at their ends", p->text);
    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        for (int64_t k = 0; k < chk_elements(p, i); k++)
            number_set(made->in_data[i], p->f.dtype[i], k, s->kinds,
                       (uint32_t)((uint64_t)k + (i ? s->round : 0)) % NUMBERS);
    return made;
}

/* By itself each element: a large one beside it allows nothing. */
static const char *element_differs(double got, double want, int32_t dtype)
{
    const double most = 0.97 * largest_of(dtype);
    const double rough = dtype == TN_F16 || dtype == TN_BF16 ? 0.05 : 1e-3;

    if (isnan(want) || isnan(got))
        return isnan(want) == isnan(got) ? NULL : "not a number";
    if (isinf(want))
        return got == want ? NULL : "infinite";
    if (fabs(want) >= most || isinf(got))
        return fabs(got) >= most && fabs(want) >= 0.9 * most && (got > 0) == (want > 0) ? NULL : "infinite";
    return fabs(got - want) <= rough * (fabs(want) + rough) ? NULL : "finite";
}

static void outputs_compare(chk_lab *lab, const chk_problem *p, const chk_outputs *got,
                            const chk_outputs *want)
{
    for (uint32_t o = 0; o < got->count && chk_is_float(got->dtype[o]); o++)
        for (int64_t k = 0; k < got->elements[o] && got->elements[o] == want->elements[o]; k++) {
            const double g = chk_get(got->data[o], got->dtype[o], k),
                         w = chk_get(want->data[o], want->dtype[o], k);
            const char *differs = element_differs(g, w, got->dtype[o]);

            if (differs)
                chk_fail(lab->env, "K-values", "output %u: element %lld is %.9g, expected %.9g (%s)", o,
                         (long long)k, g, w, p->text);
        }
    if (got->count && !chk_is_float(got->dtype[0]))
        chk_reference_compare(lab, p, got, want);
}

static bool kind_fits(const chk_problem *p, uint32_t kinds)
{
    bool fits = p->f.args.in_count > 0 && !p->forward && !(p->flags & TN_NODE_TRAIN);

    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        fits &= chk_is_float(p->f.dtype[i]) == ((kinds & (LARGE | INFINITE)) != 0);
    return fits;
}

static bool special_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    special *s = arg;

    if (!kind_fits(p, s->kinds) || !chk_host_would_run(lab, p))
        return true;
    for (s->round = 0; s->round < (p->f.args.in_count > 1 ? NUMBERS : 1u); s->round++) {
        const chk_problem *made = special_problem(lab, p, s);
        chk_outputs *got = chk_take(&lab->arena, 2 * sizeof *got), *want = got + 1;
        tn_err err;

        if (chk_outputs_of(lab, &lab->side, made, got, &err) || !chk_reference_outputs(lab, made, want) ||
            want->own_dtype)
            return true;
        outputs_compare(lab, made, got, want);
        chk_count(lab->env);
    }
    return true;
}

void chk_values_special(chk_lab *lab)
{
    const tn_op *meaning = chk_meaning(lab->op) ? chk_meaning(lab->op) : lab->op;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t kind = LARGE; kind <= SUMS && chk_is_listed(rows[i].ops, meaning->name); kind *= 2)
            if (rows[i].kinds & kind)
                chk_problems(lab, CHK_PROBLEMS_FEW, special_visit, &(special){.kinds = kind});
}

/* ---- element by element ------------------------------------------------------------------------------ */

static bool is_pointwise(const chk_problem *p)
{
    const chk_facts *f = &p->f;
    bool same = f->args.in_count > 0 && f->args.out_count > 0 && !p->resizes && !p->forward;

    for (uint32_t i = 0; same && i < chk_all(f); i++)
        same = chk_shape_equal(&f->shape[i], &f->shape[0]);
    return same && !(p->op->effects & TN_EFFECT_RANDOM);
}

/* All inputs have another element `at`: in floating point `number`, and where that is 0 one near the old. */
static const chk_problem *problem_with(chk_lab *lab, const chk_problem *p, int64_t at, double number)
{
    chk_problem *made = chk_problem_copy(lab, p);

    for (uint32_t i = 0; i < p->f.args.in_count; i++) {
        const double old = chk_get(p->in_data[i], p->f.dtype[i], at);

        chk_set(made->in_data[i], p->f.dtype[i], at,
                !chk_is_float(p->f.dtype[i]) ? old + 1
                : number != 0                ? number
                                             : 0.5 * old + 0.125);
    }
    return made;
}

typedef struct pointwise {
    uint32_t left;
    double number; /* as of problem_with */
} pointwise;

static bool pointwise_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const int64_t count = p->f.args.in_count ? chk_elements(p, 0) : 0;
    chk_outputs *was = chk_take(&lab->arena, 2 * sizeof *was), *is = was + 1;
    const int64_t at = count / 3;
    pointwise *t = arg;
    tn_err err;

    if (count < 4 || !is_pointwise(p) || chk_outputs_of(lab, &lab->side, p, was, &err) ||
        chk_outputs_of(lab, &lab->side, problem_with(lab, p, at, t->number), is, &err))
        return true;
    for (uint32_t o = 0; o < p->f.args.out_count; o++)
        for (int64_t k = 0; k < count; k++) {
            const uint64_t bytes = tn_dtype_bytes(was->dtype[o]);

            if (k != at && memcmp((char *)was->data[o] + (uint64_t)k * bytes,
                                  (char *)is->data[o] + (uint64_t)k * bytes, (size_t)bytes))
                chk_fail(
                    lab->env, "K-pointwise",
                    "its operator says TN_OP_POINTWISE, but element %lld of output %u changes with element "
                    "%lld of the inputs (%s)",
                    (long long)k, o, (long long)at, p->text);
        }
    chk_count(lab->env);
    return --t->left > 0;
}

static void pointwise_check(chk_lab *lab, double number)
{
    pointwise t = {.left = 6, .number = number};

    if (lab->op->flags & TN_OP_POINTWISE && chk_is_exact(lab))
        chk_problems(lab, CHK_PROBLEMS_FEW, pointwise_visit, &t);
}

void chk_values_pointwise(chk_lab *lab)
{
    pointwise_check(lab, 0);
}

/* ---- for every kernel -------------------------------------------------------------------------------- */

#define ROUNDS 2 /* in which an element is one number and another one */

static double end_of(int32_t dtype, uint64_t k)
{
    const double most = largest_of(dtype);
    const double ends[NUMBERS] = {(double)NAN, 1,   (double)INFINITY, most, (double)-INFINITY, -most,
                                  0.5,         -0.0};

    return ends[k % NUMBERS];
}

/* An index may be any number as well. Of a backward the gradient that arrives may be any; its other inputs
 * belong together. */
static const chk_problem *ends_problem(chk_lab *lab, const chk_problem *p, uint32_t round)
{
    chk_problem *made = chk_problem_copy(lab, p);

    made->text = chk_text(&lab->arena, "%s, with nan, inf and the largest numbers", p->text);
    for (uint32_t i = 0; i < (p->forward ? 1 : p->f.args.in_count); i++) {
        const int32_t dtype = p->f.dtype[i];

        if (tn_dtype_bits(dtype) < 8)
            continue;
        for (int64_t k = 0; k < chk_elements(p, i); k++)
            if (chk_is_float(dtype))
                chk_set(made->in_data[i], dtype, k, end_of(dtype, (uint64_t)k + 3 * round + i));
            else
                number_set(made->in_data[i], dtype, k, WHOLE, (uint32_t)(((uint64_t)k + round) % NUMBERS));
        chk_sparse_zero(p->f.storage[i], &p->f.shape[i], dtype, made->in_data[i]);
    }
    return made;
}

static bool ends_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form form = {
        .mode = TN_MODE_WRITE, .guard = CHK_GUARD_START, .lock = true, .recorded = true, .fill = 0x3c};
    chk_outputs *first = chk_take(&lab->arena, sizeof *first);
    chk_node *n = chk_take(&lab->arena, sizeof *n);

    (void)arg;
    for (uint32_t round = 0; round < ROUNDS && chk_host_would_run(lab, p); round++) {
        if (!chk_node_open(lab, &lab->side, ends_problem(lab, p, round), &form, n)) {
            const tn_status st = chk_node_run(n); /* it may say that it cannot mean these */

            chk_node_guards(n);
            if (!st) {
                chk_outputs_take(n, first);
                if (chk_node_run(n) == TN_OK)
                    chk_same(n, first, chk_is_exact(lab), "run again");
            }
            chk_count(lab->env);
        }
        chk_node_close(n);
    }
    return true;
}

void chk_kernel_special(chk_env *env)
{
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, ends_visit, NULL);
    pointwise_check(&lab, (double)NAN);
    pointwise_check(&lab, (double)INFINITY);
    chk_lab_close(&lab);
}
