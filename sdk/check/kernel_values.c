/*
 * Values of a kernel: against the plain kernels of plugin `cpu` in float64, or in the same integers. That
 * plugin's own kernels are held against its float64 ones. What a kernel declares and never serves is a
 * defect.
 */
#include <math.h>
#include <string.h>

#include "lab.h"

typedef struct coverage {
    uint64_t ran, declined, absent, compared, failed_reference; /* absent: declined for want of a library */
    uint32_t seen[CHK_ARGS_MAX];                                /* bit d: argument ran with data type d */
    char why[300];
} coverage;

bool chk_widen(chk_lab *lab, const chk_problem *p, int32_t wide, bool ints, chk_problem *out)
{
    tn_err err;

    *out = *p;
    for (uint32_t i = 0; i < p->attrs.count; i++)
        if (p->op->attrs[i].type == TN_ATTR_T_DTYPE && chk_is_float((int32_t)(int64_t)p->attrs.values[i]))
            chk_attrs_with(&lab->arena, &out->attrs, i, (tn_value)wide, tn_dtype_name(wide), NULL,
                           &out->attrs);
    for (uint32_t o = p->f.args.in_count; o < chk_all(&p->f); o++)
        out->f.dtype[o] = TN_DTYPE_UNKNOWN;
    for (uint32_t i = 0; i < p->f.args.in_count; i++) {
        const int64_t count = chk_elements(p, i);

        int32_t to = wide;

        if (tn_dtype_bits(p->f.dtype[i]) < 8) /* a byte for each: what shares one is wide enough so */
            to = p->f.dtype[i] == TN_I4 ? TN_I8 : TN_U8;
        else if (!chk_is_float(p->f.dtype[i]) && !(ints && p->f.dtype[i] == p->f.dtype[0]))
            continue;
        out->f.dtype[i] = to;
        out->in_data[i] = chk_take(&lab->arena, (uint64_t)count * tn_dtype_bytes(to) + 1);
        chk_convert(p->in_data[i], p->f.dtype[i], out->in_data[i], to, count);
    }
    return !chk_infer_dtypes(out->op, &out->attrs, &out->f, &err);
}

static bool same_types(const chk_problem *a, const chk_problem *b)
{
    return !memcmp(a->f.dtype, b->f.dtype, chk_all(&a->f) * sizeof *a->f.dtype);
}

/* Where a reference is looked for: kernels of a plugin, for the host or for the subject's device. */
typedef struct source {
    const tn_plugin *plugin; /* NULL: the subject's, beside it on its device */
    bool same;               /* it may be the very kernel under test: only other types tell */
} source;

static bool reference_try(chk_lab *lab, const source *from, const chk_problem *wide, chk_outputs *out)
{
    chk_side side;
    tn_err err;

    return (from->plugin ? chk_side_find(lab, from->plugin, wide, &side)
                         : chk_side_beside(lab, wide, &side)) &&
           !chk_outputs_of(lab, &side, wide, out, &err);
}

static bool has_f64(const chk_problem *p)
{
    for (uint32_t i = 0; i < chk_all(&p->f); i++)
        if (p->f.dtype[i] == TN_F64)
            return true;
    return false;
}

/* What the outputs should be; false: nobody says. */
bool chk_reference_outputs(chk_lab *lab, const chk_problem *p, chk_outputs *out)
{
    const source sources[] = {{lab->reference, lab->is_reference && !lab->device},
                              {lab->plugin.descriptor, !lab->device},
                              {NULL, true}};
    static const int32_t wides[] = {TN_F64, TN_F32};
    chk_problem *wide = chk_take(&lab->arena, sizeof *wide);
    const bool ints = p->f.args.in_count && !chk_is_float(p->f.dtype[0]);

    for (const source *s = sources; s < sources + (lab->device ? 3 : 2); s++) {
        if (s == sources && !s->plugin)
            continue;
        out->own_dtype = 0;
        if (ints && !s->same && reference_try(lab, s, p, out)) /* integers: in the same type */
            return true;
        for (uint32_t w = 0; w < (has_f64(p) ? 2u : 4u); w++)
            if (chk_widen(lab, p, wides[w / 2], w % 2 == 1, wide) && (!same_types(wide, p) || !s->same) &&
                reference_try(lab, s, wide, out)) {
                out->own_dtype = s->plugin != lab->reference || lab->is_reference ? wides[w / 2] : 0;
                return true;
            }
        if (!s->same && reference_try(lab, s, p, out))
            return true;
    }
    return false;
}

/* Random numbers: mean and mean square agree. Where a parameter is not allowed both are NaN. */
static const char *statistics_differ(chk_lab *lab, const chk_outputs *got, const chk_outputs *want,
                                     uint32_t o)
{
    double sums[2][2] = {{0, 0}, {0, 0}};
    const double n = (double)got->elements[o];

    if (n < 256)
        return NULL;
    for (int64_t i = 0; i < got->elements[o]; i++) {
        const double g = chk_get(got->data[o], got->dtype[o], i),
                     w = chk_get(want->data[o], want->dtype[o], i);

        if (isnan(g) != isnan(w))
            return chk_text(&lab->arena, "element %lld is %g, expected %g", (long long)i, g, w);
        if (isnan(g))
            continue;
        sums[0][0] += g / n;
        sums[1][0] += w / n;
        sums[0][1] += g * g / n;
        sums[1][1] += w * w / n;
    }
    for (uint32_t k = 0; k < 2; k++)
        if (!(fabs(sums[0][k] - sums[1][k]) <= 12 * sqrt(sums[1][1] + 1e-12) * (1 + sums[1][1]) / sqrt(n)))
            return chk_text(&lab->arena, "the mean of its %s is %.4g, expected %.4g",
                            k ? "squares" : "elements", sums[0][k], sums[1][k]);
    return NULL;
}

/* Where the plugin is its own reference, either of the two may be the wrong one. */
static const char *own_expected(chk_lab *lab, const char *differs, int32_t dtype)
{
    static const char word[] = "expected ";
    const char *at = strstr(differs, word);

    return at ? chk_text(&lab->arena, "%.*sexpected (its own %s) %s", (int)(at - differs), differs,
                         tn_dtype_name(dtype), at + sizeof word - 1)
              : chk_text(&lab->arena, "%s, beside its own %s", differs, tn_dtype_name(dtype));
}

/* Vectors of decompositions: the nearer two values are, the more a rounding turns their vectors. */
static double looseness(const chk_problem *p)
{
    return chk_is_listed("_linalg_syevd _npi_eigh _npi_svd", p->op->name) ? 500 : 1;
}

/* Eigenvalues of matrices that are not symmetric come in any order, with vectors of either sign: the values
 * are compared as they ascend, the vectors not at all. */
static bool is_unordered(const chk_problem *p)
{
    return chk_is_listed("_npi_eig _npi_eigvals", p->op->name);
}

static const void *rows_sorted(chk_lab *lab, const chk_outputs *x, int64_t row)
{
    const int64_t count = x->elements[0];
    const int32_t dtype = x->dtype[0];
    void *data = chk_take(&lab->arena, (uint64_t)count * tn_dtype_bytes(dtype) + 1);

    memcpy(data, x->data[0], (size_t)count * (size_t)tn_dtype_bytes(dtype));
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = i; k % row > 0 && chk_get(data, dtype, k) < chk_get(data, dtype, k - 1); k--) {
            const double v = chk_get(data, dtype, k);

            chk_set(data, dtype, k, chk_get(data, dtype, k - 1));
            chk_set(data, dtype, k - 1, v);
        }
    return data;
}

static void unordered_compare(chk_lab *lab, const chk_problem *p, const chk_outputs *got,
                              const chk_outputs *want)
{
    const tn_shape *w = &p->f.shape[p->f.args.in_count];
    const int64_t row = w->dim[w->ndim - 1];
    const char *differs = NULL;

    if (got->elements[0] != want->elements[0])
        differs = "another number of elements";
    else if (got->elements[0])
        differs = chk_values_differ(&lab->arena, rows_sorted(lab, got, row), got->dtype[0],
                                    rows_sorted(lab, want, row), want->dtype[0], got->elements[0], 1);
    chk_fail_if(lab->env, differs, NULL, "eigenvalues as they ascend: %s (%s)", differs, p->text);
}

void chk_reference_compare(chk_lab *lab, const chk_problem *p, const chk_outputs *got,
                           const chk_outputs *want)
{
    const bool random = (p->op->effects & TN_EFFECT_RANDOM) != 0;

    if (is_unordered(p)) {
        unordered_compare(lab, p, got, want);
        return;
    }
    for (uint32_t o = 0; o < got->count; o++) {
        const char *name = o < p->f.args.out_count
                               ? chk_argument_name(p->op, &p->f.args, p->f.args.in_count + o)
                               : chk_argument_name(p->op, &p->f.args, p->mutated[o - p->f.args.out_count]);
        const char *differs = got->elements[o] != want->elements[o] ? "another number of elements"
                              : random
                                  ? statistics_differ(lab, got, want, o)
                                  : chk_values_differ(&lab->arena, got->data[o], got->dtype[o], want->data[o],
                                                      want->dtype[o], got->elements[o], looseness(p));

        if (differs && want->own_dtype)
            differs = own_expected(lab, differs, want->own_dtype);
        chk_fail_if(lab->env, differs, NULL, "output %s: %s (%s)", name, differs, p->text);
    }
}

bool chk_host_would_run(const chk_lab *lab, const chk_problem *p)
{
    if (lab->side.kernel->flags & TN_KERNEL_EMPTY_OK)
        return true;
    for (uint32_t o = p->f.args.in_count; o < chk_all(&p->f); o++)
        if (chk_elements(p, o) != 0)
            return true;
    return p->mutated_count > 0;
}

static bool values_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    coverage *c = arg;
    chk_outputs *got = chk_take(&lab->arena, 2 * sizeof *got), *want = got + 1;
    tn_err err;
    tn_status st;

    if (!chk_host_would_run(lab, p))
        return true;
    st = chk_outputs_of(lab, &lab->side, p, got, &err);
    if (st == TN_E_UNSUPPORTED) {
        c->declined++;
        c->absent += err.code == TN_E_DEVICE;
        (void)snprintf(c->why, sizeof c->why, "%.150s: %.140s", p->text, err.message);
        return true;
    }
    if (st && chk_reference_outputs(lab, p, want)) /* where the reference fails too, the problem is not one */
        chk_fail(lab->env, "K-values", "gives %s: %s (%s)", tn_status_name(st), err.message, p->text);
    if (st)
        return true;
    chk_count(lab->env);
    c->ran++;
    for (uint32_t i = 0; i < chk_all(&p->f); i++)
        for (const char *const *t = lab->side.kernel->types; t && *t; t++)
            if (t - lab->side.kernel->types < CHK_ARGS_MAX &&
                chk_rule_of(p->op, lab->side.kernel, &p->f.args, i) == *t + strcspn(*t, ":") + 1)
                c->seen[t - lab->side.kernel->types] |= 1u << p->f.dtype[i];
    if (chk_reference_outputs(lab, p, want)) {
        chk_reference_compare(lab, p, got, want);
        c->compared++;
    }
    return true;
}

/* Declared data types of rule `t` that no problem had. */
static uint32_t missing_types(const chk_lab *lab, const coverage *c, uint32_t t)
{
    const char *rule = lab->side.kernel->types[t];

    return chk_rule_mask(rule + strcspn(rule, ":") + 1) & ~c->seen[t];
}

static bool any_missing(const chk_lab *lab, const coverage *c)
{
    for (uint32_t t = 0; lab->side.kernel->types && lab->side.kernel->types[t] && t < CHK_ARGS_MAX; t++)
        if (missing_types(lab, c, t))
            return true;
    return !c->ran;
}

/* Each declared data type of each rule was seen in a problem that ran. */
static void declared_check(chk_lab *lab, const coverage *c)
{
    const char *const *types = lab->side.kernel->types;

    if (!c->ran && c->absent == c->declined && c->declined)
        chk_skip(lab->env, "%s", c->why);
    if (!c->ran)
        chk_fail(lab->env, "K-declared", "of %llu problems it serves none; the last one declined: %s",
                 (unsigned long long)c->declined, c->why[0] ? c->why : "no problem could be made");
    for (uint32_t t = 0; types && types[t] && t < CHK_ARGS_MAX; t++) {
        const uint32_t missing = missing_types(lab, c, t);

        for (int32_t d = 0; d < TN_DTYPE_LIMIT; d++)
            if (missing >> d & 1u)
                chk_fail(lab->env, "K-declared", "declares \"%s\" but serves no problem with %s%s%s",
                         types[t], tn_dtype_name(d), c->why[0] ? "; declined last: " : "", c->why);
    }
}

void chk_kernel_values(chk_env *env)
{
    chk_lab lab;
    coverage c = {0};

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_ALL, values_visit, &c);
    chk_problems(&lab, CHK_PROBLEMS_BROAD, values_visit, &c);
    if (any_missing(&lab, &c))
        chk_problems(&lab, CHK_PROBLEMS_TYPES, values_visit, &c);
    declared_check(&lab, &c);
    chk_values_body(&lab);
    chk_values_special(&lab);
    chk_values_pointwise(&lab);
    chk_lab_close(&lab);
}
