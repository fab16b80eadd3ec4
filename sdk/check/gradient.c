/*
 * Gradients by the real tape: the plugin is loaded into a context, preferred there, and what backward says of
 * an input is held against differences along random directions.
 *
 * The step is swept; the best one counts. Where the two one-sided differences of the smallest step disagree
 * there is a kink, and nothing is said. Along a direction in which the operator is linear every step is as
 * good, so the bound is that of rounding.
 */
#include <math.h>
#include <string.h>

#include "generate.h"

#define PROBLEMS_MAX 24
#define PARTS_MAX 4 /* problems whose gradients are asked for in parts, too */

/* What is asked of a backward. */
typedef struct part {
    double factor;    /* of the gradients that arrive */
    uint32_t in, out; /* for this input alone, from this output alone; ALL: for all, from all */
} part;
#define ALL UINT32_MAX

typedef struct walk {
    tn_ctx *ctx;
    uint32_t problems[2], compared, kinks; /* problems: outside of training, in training */
    bool served;
    char refusal[300]; /* what backward first said where the forward had run */
    bool broad;        /* so many elements that some would lie beside a pole: positive ones only */
} walk;

/* One evaluation: arrays of the inputs, outputs, weights for the floating point ones. */
typedef struct point {
    tn_array *in[CHK_ARGS_MAX], *out[CHK_ARGS_MAX], *weight[CHK_ARGS_MAX];
    uint32_t out_count;
} point;

static double weight_of(uint32_t o, int64_t k, uint64_t seed)
{
    return (double)(chk_mix(seed * 193 + o * 6007u + (uint64_t)k) >> 11) / 4503599627370496.0 - 0.7;
}

static double direction_of(uint32_t i, int64_t k, uint64_t seed)
{
    return (double)(chk_mix(seed * 131 + i * 7919u + (uint64_t)k) >> 11) / 4503599627370496.0 - 1.0;
}

static void point_free(point *x)
{
    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++) {
        tn_array_release(x->in[i]);
        tn_array_release(x->out[i]);
        tn_array_release(x->weight[i]);
    }
    memset(x, 0, sizeof *x);
}

/* ---- calling ----------------------------------------------------------------------------------------- */

static tn_status inputs_make(const walk *w, const chk_problem *p, void *const *data, point *x)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->f.args.in_count && !st; i++)
        st = tn_array_from(w->ctx, p->f.dtype[i], p->f.shape[i].ndim, p->f.shape[i].dim, data[i], &x->in[i]);
    return st;
}

static tn_status invoke(chk_lab *lab, const walk *w, const chk_problem *p, point *x)
{
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = p->f.args.in_count,
                             .op = p->op->name,
                             .attrs = chk_attr_pairs(&lab->arena, p),
                             .in = x->in};

    if (p->op->effects & TN_EFFECT_RANDOM || p->op->exec == TN_EXEC_SUBGRAPH)
        (void)tn_random_seed(w->ctx, lab->env->seed, NULL);
    if (p->op->exec == TN_EXEC_SUBGRAPH)
        return chk_bodies_invoke(w->ctx, p, call.attrs, x->in, x->out, &x->out_count);
    return tn_invoke_text(w->ctx, &call, CHK_ARGS_MAX, x->out, &x->out_count);
}

static void *array_read(chk_lab *lab, tn_array *a, int64_t *count)
{
    void *data = chk_take(&lab->arena, tn_array_bytes(a) + 1);

    *count = (int64_t)tn_array_count(a);
    return tn_array_read(a, data, tn_array_bytes(a)) ? NULL : data;
}

/* Sum of weights and outputs at inputs `data`. */
static bool loss(chk_lab *lab, const walk *w, const chk_problem *p, void *const *data, double *sum)
{
    point x = {.out_count = 0};
    bool good = !inputs_make(w, p, data, &x) && !invoke(lab, w, p, &x);

    *sum = 0;
    for (uint32_t o = 0; good && o < x.out_count; o++) {
        int64_t count;
        void *out = array_read(lab, x.out[o], &count);

        good = out != NULL;
        for (int64_t k = 0; good && chk_is_float(tn_array_dtype(x.out[o])) && k < count; k++)
            *sum += chk_get(out, tn_array_dtype(x.out[o]), k) * weight_of(o, k, lab->env->seed);
    }
    point_free(&x);
    return good && isfinite(*sum);
}

/* ---- what backward says ------------------------------------------------------------------------------ */

static bool wants_gradient(const chk_problem *p, uint32_t i)
{
    return chk_is_float(p->f.dtype[i]) && !tn_op_mutates(p->op, p->f.args.in_count, i) &&
           chk_elements(p, i) > 0;
}

static tn_status weights_make(chk_lab *lab, const walk *w, point *x, double factor)
{
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < x->out_count && !st; o++) {
        const int64_t *shape;
        int32_t ndim, dtype = tn_array_dtype(x->out[o]);
        uint64_t count = tn_array_count(x->out[o]);
        void *data = chk_take(&lab->arena, count * 8 + 1);

        if (!chk_is_float(dtype) || (st = tn_array_shape(x->out[o], &ndim, &shape)))
            continue;
        for (uint64_t k = 0; k < count; k++)
            chk_set(data, dtype, (int64_t)k, factor * weight_of(o, (int64_t)k, lab->env->seed));
        st = tn_array_from(w->ctx, dtype, ndim, shape, data, &x->weight[o]);
    }
    return st;
}

static tn_status walk_back(const walk *w, const point *x, uint32_t out)
{
    if (out == ALL)
        return tn_backward(w->ctx, x->out_count, x->out, x->weight, 0);
    return out < x->out_count ? tn_backward(w->ctx, 1, x->out + out, x->weight + out, 0) : TN_E_STATE;
}

/* Records the call, walks back, reads the gradients (NULL where there is none). */
static tn_status gradients(chk_lab *lab, const walk *w, const chk_problem *p, part of, void **out)
{
    point x = {.out_count = 0};
    tn_status st = inputs_make(w, p, p->in_data, &x);

    for (uint32_t i = 0; i < p->f.args.in_count && !st; i++)
        if (wants_gradient(p, i) && (of.in == ALL || of.in == i))
            st = tn_attach_grad(w->ctx, x.in[i], TN_MODE_WRITE, NULL);
    (void)tn_record_set(1);
    if (!st)
        st = invoke(lab, w, p, &x);
    (void)tn_record_set(0);
    if (!st && !(st = weights_make(lab, w, &x, of.factor)))
        st = walk_back(w, &x, of.out);
    for (uint32_t i = 0; i < p->f.args.in_count && !st; i++) {
        tn_array *g = wants_gradient(p, i) ? tn_array_grad(x.in[i]) : NULL;
        int64_t count;

        out[i] = g ? array_read(lab, g, &count) : NULL;
        if (g && !out[i])
            st = tn_error_code();
    }
    point_free(&x);
    return st;
}

/* ---- differences ------------------------------------------------------------------------------------- */

/* The loss at inputs of which number `i` is moved by `h` along its direction. */
static bool moved_loss(chk_lab *lab, const walk *w, const chk_problem *p, uint32_t i, double h, uint64_t seed,
                       double *sum)
{
    const chk_mark mark = chk_mark_set(&lab->arena);
    const int64_t count = chk_elements(p, i);
    void *data[CHK_ARGS_MAX];
    bool good;

    memcpy(data, p->in_data, sizeof data);
    data[i] = chk_take(&lab->arena, (uint64_t)count * 8 + 1);
    for (int64_t k = 0; k < count; k++)
        chk_set(data[i], p->f.dtype[i], k,
                chk_get(p->in_data[i], p->f.dtype[i], k) + h * direction_of(i, k, seed));
    good = loss(lab, w, p, data, sum);
    chk_mark_back(&lab->arena, mark);
    return good;
}

typedef struct slope {
    double best, error; /* the difference quotient nearest to what is expected */
    double scale;       /* of the loss, for what rounding does */
    bool kink, linear;
} slope;

/* `size`: of the gradient along the direction, without signs. */
static bool is_near(const slope *s, bool wide, double size)
{
    return s->error <= (wide ? s->linear ? 1e-8 : 2e-5 : 3e-2) * (s->scale + size);
}

/* Up to the first step that is near enough; two tell whether the operator is linear. */
static bool slope_find(chk_lab *lab, const walk *w, const chk_problem *p, uint32_t i, double expected,
                       double size, uint64_t seed, slope *s)
{
    static const double steps[] = {0.25, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6};
    const bool wide = p->f.dtype[i] == TN_F64;
    const uint32_t last = wide ? 6 : 4;
    double here, low, high, first = 0;

    *s = (slope){.error = INFINITY, .linear = true};
    if (!loss(lab, w, p, p->in_data, &here))
        return false;
    for (uint32_t k = 0; k < last && !(k > 1 && is_near(s, wide, size)); k++) {
        double quotient;

        if (!moved_loss(lab, w, p, i, steps[k], seed, &high) ||
            !moved_loss(lab, w, p, i, -steps[k], seed, &low))
            continue;
        quotient = (high - low) / (2 * steps[k]);
        first = k == 0 ? quotient : first;
        s->scale = fabs(here) + fabs(high) + 1;
        s->linear &= k > 1 || fabs(quotient - first) <= 1e-9 * s->scale;
        s->kink = fabs((high - here) - (here - low)) > 0.02 * fabs(high - low) + 1e-9 * s->scale;
        if (fabs(quotient - expected) < s->error) {
            s->error = fabs(quotient - expected);
            s->best = quotient;
        }
    }
    return isfinite(s->error);
}

/* Inputs that MXNet's gradients leave out, or of which rows that are replaced later have a gradient, too. */
static bool is_derivative(const chk_problem *p, uint32_t i)
{
    static const struct {
        const char *op, *input;
    } others[] = {{"_contrib_ROIAlign", "rois"}, {"_contrib_index_copy", "new_tensor"}};

    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (!strcmp(others[k].op, p->op->name) &&
            !strcmp(others[k].input, chk_argument_name(p->op, &p->f.args, i)))
            return false;
    return true;
}

static void input_check(chk_lab *lab, walk *w, const chk_problem *p, uint32_t i, const void *gradient)
{
    const int64_t count = chk_elements(p, i);
    const uint32_t directions = lab->env->sizes ? 8 : 2;

    for (uint32_t d = 0; d < directions; d++) {
        const uint64_t seed = lab->env->seed + d * 1000u;
        double expected = 0, size = 0;
        slope s;

        for (int64_t k = 0; gradient && k < count; k++) {
            const double g = chk_get(gradient, p->f.dtype[i], k) * direction_of(i, k, seed);

            expected += g;
            size += fabs(g);
        }
        if (!slope_find(lab, w, p, i, expected, size, seed, &s))
            continue;
        chk_count(lab->env);
        w->compared++;
        if (is_near(&s, p->f.dtype[i] == TN_F64, size))
            continue;
        if (s.kink) {
            w->kinks++;
            continue;
        }
        chk_fail(lab->env, p->op->flags & TN_OP_ZERO_GRADIENT ? "G-zero" : "G-values",
                 "gradient of input %s along a random direction is %.9g, differences say %.9g (%s)",
                 chk_argument_name(p->op, &p->f.args, i), expected, s.best, p->text);
    }
}

/* A loss layer's gradient does not depend on the one that arrives. */
static void head_check(chk_lab *lab, const walk *w, const chk_problem *p, void *const *once)
{
    void *twice[CHK_ARGS_MAX] = {NULL};

    if (gradients(lab, w, p, (part){2, ALL, ALL}, twice))
        return;
    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        if (once[i] && twice[i] &&
            memcmp(once[i], twice[i], (size_t)((uint64_t)chk_elements(p, i) * tn_dtype_bytes(p->f.dtype[i]))))
            chk_fail(
                lab->env, "G-head",
                "says TN_OP_IGNORE_HEAD, and its gradient of input %s changes with the one that arrives (%s)",
                chk_argument_name(p->op, &p->f.args, i), p->text);
    chk_count(lab->env);
}

/* Nothing that was recorded is zeros. False: the part cannot be had. */
static bool part_take(chk_lab *lab, const walk *w, const chk_problem *p, part of, void **out)
{
    const tn_status st = gradients(lab, w, p, of, out);

    return !st || st == TN_E_STATE;
}

static void part_compare(chk_lab *lab, const chk_problem *p, uint32_t i, const void *got, const void *want,
                         const char *what)
{
    const int32_t dtype = p->f.dtype[i];
    const uint64_t bytes = (uint64_t)chk_elements(p, i) * tn_dtype_bytes(dtype) + 1;
    const void *zeros = chk_take(&lab->arena, bytes);
    const char *differs = chk_values_differ(&lab->arena, got ? got : zeros, dtype, want ? want : zeros, dtype,
                                            chk_elements(p, i), 100);

    chk_count(lab->env);
    if (differs)
        chk_fail(lab->env, "G-values", "gradient of input %s, %s: %s (%s)",
                 chk_argument_name(p->op, &p->f.args, i), what, differs, p->text);
}

/* The same gradient where no other one is wanted. */
static void inputs_alone(chk_lab *lab, const walk *w, const chk_problem *p, void *const *once)
{
    uint32_t wanted = 0;

    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        wanted += wants_gradient(p, i);
    for (uint32_t i = 0; i < p->f.args.in_count && wanted > 1; i++) {
        void *alone[CHK_ARGS_MAX] = {NULL};

        if (wants_gradient(p, i) && part_take(lab, w, p, (part){1, i, ALL}, alone))
            part_compare(lab, p, i, alone[i], once[i], "wanted alone");
    }
}

/* What arrives at one output after the other comes to what arrives at all of them. */
static void outputs_alone(chk_lab *lab, const walk *w, const chk_problem *p, void *const *once)
{
    void *sums[CHK_ARGS_MAX] = {NULL};

    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        if (wants_gradient(p, i))
            sums[i] = chk_take(&lab->arena, (uint64_t)chk_elements(p, i) * 8 + 1);
    for (uint32_t o = 0; o < p->f.args.visible_count; o++) {
        void *from[CHK_ARGS_MAX] = {NULL};

        if (!chk_is_float(p->f.dtype[chk_out(&p->f, o)]))
            continue;
        if (!part_take(lab, w, p, (part){1, ALL, o}, from))
            return;
        for (uint32_t i = 0; i < p->f.args.in_count; i++)
            for (int64_t k = 0; sums[i] && from[i] && k < chk_elements(p, i); k++)
                chk_set(sums[i], p->f.dtype[i], k,
                        chk_get(sums[i], p->f.dtype[i], k) + chk_get(from[i], p->f.dtype[i], k));
    }
    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        if (sums[i])
            part_compare(lab, p, i, sums[i], once[i], "from one output after the other");
}

/* Operators that are there to have another gradient than their derivative, and outputs that MXNet's gradients
 * leave out: where the attribute is set, or always. */
static const struct {
    const char *attr, *ops; /* "a b c" */
} exceptions[] = {
    {"output_mean_var=True",
     "LayerNorm GroupNorm BatchNorm _contrib_BatchNormWithReLU _contrib_SyncBatchNorm"},
    {"returned=True", "_npi_average"},
    /* where places of scatter_nd repeat, the last value stays, and MXNet gives all of them a gradient; a
     * penalty's is added to that of IdentityAttachKLSparseReg */
    {"", "BlockGrad _contrib_round_ste _contrib_sign_ste _contrib_gradientmultiplier scatter_nd "
         "IdentityAttachKLSparseReg"},
    /* zeros */
    {"", "_npi_var _npi_std _npi_percentile _npi_eig _npi_eigvals _npi_eigh _npi_eigvalsh _npi_pinv "
         "_npi_pinv_scalar_rcond _npi_cholesky _histogram _np_atleast_1d _np_atleast_2d _np_atleast_3d"},
    /* of symmetric matrices, of which one triangle is read */
    {"", "_linalg_potrf _linalg_syevd"},
    /* images, regions and boxes: zeros, or what arrives goes straight through */
    {"", "_contrib_box_iou _contrib_box_decode _contrib_MultiBoxDetection _contrib_Proposal "
         "_contrib_MultiProposal "
         "_image_resize _image_random_flip_left_right _image_random_flip_top_bottom _image_random_brightness "
         "_image_random_contrast _image_random_saturation _image_random_hue _image_random_color_jitter"},
    /* draws of given parameters, for which MXNet has zeros */
    {"", "_sample_uniform _sample_normal _sample_gamma _sample_exponential _npi_uniform _npi_uniform_n "
         "_npi_gamma"},
    /* probabilities of whole numbers, which have no gradient */
    {"", "_random_pdf_poisson _random_pdf_negative_binomial _random_pdf_generalized_negative_binomial"},
};

/* Differences need outputs as fine as the inputs. */
static bool is_comparable(const chk_problem *p)
{
    bool any = false;

    for (uint32_t o = 0; o < p->f.args.visible_count; o++) {
        const int32_t dtype = p->f.dtype[chk_out(&p->f, o)];

        if (dtype == TN_F16 || dtype == TN_BF16 || (dtype == TN_F32 && p->f.dtype[0] == TN_F64))
            return false;
        any |= chk_is_float(dtype);
    }
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (chk_is_listed(exceptions[i].ops, p->op->name) && strstr(p->attrs.text, exceptions[i].attr))
            return false;
    return any && !p->resizes;
}

/* The same problem with positive inputs, for logarithms and powers. */
static const chk_problem *positive_problem(chk_lab *lab, const chk_problem *p)
{
    chk_problem *made = chk_problem_copy(lab, p);

    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        for (int64_t k = 0; chk_is_float(p->f.dtype[i]) && k < chk_elements(p, i); k++)
            chk_set(made->in_data[i], p->f.dtype[i], k,
                    fabs(chk_get(p->in_data[i], p->f.dtype[i], k)) * 0.5 + 0.5);
    return made;
}

/* The operator runs here, its gradient does not: perhaps for some attributes only, so it is kept. */
static void refusal_keep(chk_lab *lab, walk *w, const chk_problem *p)
{
    char said[sizeof w->refusal];
    double sum;

    (void)snprintf(said, sizeof said, "%s", tn_error_text());
    if (!w->refusal[0] && loss(lab, w, p, p->in_data, &sum))
        (void)snprintf(w->refusal, sizeof w->refusal, "%s", said);
}

static bool gradient_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    void *once[CHK_ARGS_MAX] = {NULL};
    walk *w = arg;
    uint32_t *seen = &w->problems[p->flags & TN_NODE_TRAIN ? 1 : 0];
    double sum;
    tn_status st;

    if (!is_comparable(p))
        return true;
    if (*seen >= PROBLEMS_MAX && !lab->env->sizes)
        return false;
    (void)tn_train_set(p->flags & TN_NODE_TRAIN ? 1 : 0);
    if (w->broad || !loss(lab, w, p, p->in_data, &sum))
        p = positive_problem(lab, p);
    st = gradients(lab, w, p, (part){1, ALL, ALL}, once);
    if (st == TN_E_STATE) /* nothing was recorded: zeros */
        st = TN_OK;
    if (chk_is_refusal(st)) {
        refusal_keep(lab, w, p);
        return true;
    }
    if (st)
        chk_fail(lab->env, "G-values", "backward gives %s: %s (%s)", tn_status_name(st), tn_error_text(),
                 p->text);
    w->served = true;
    ++*seen;
    if (p->op->flags & TN_OP_IGNORE_HEAD)
        head_check(lab, w, p, once);
    for (uint32_t i = 0; i < p->f.args.in_count && !(p->op->flags & TN_OP_IGNORE_HEAD); i++)
        if (wants_gradient(p, i) && is_derivative(p, i))
            input_check(lab, w, p, i, once[i]);
    if (*seen > PARTS_MAX && !lab->env->sizes)
        return true;
    inputs_alone(lab, w, p, once);
    if (p->f.args.visible_count > 1 && !(p->op->flags & TN_OP_IGNORE_HEAD))
        outputs_alone(lab, w, p, once);
    return true;
}

/* A context in which the plugin is preferred: one for all cases of the process. */
static tn_ctx *context_open(chk_env *env)
{
    static tn_ctx *ctx;
    const char *name = chk_descriptor(env)->name;
    char prefer[160];
    const char *const settings[] = {prefer, "engine.type=naive", NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options),
                                     .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                                     .settings = settings};

    if (ctx)
        return ctx;
    (void)snprintf(prefer, sizeof prefer, "kernel.prefer=%s", name);
    if (tn_open(&options, &ctx))
        chk_fail(env, "kit", "no context of libtenon: %s", tn_error_text());
    if (tn_plugin_open(ctx, env->file, NULL) || tn_plugin_load(ctx, name))
        chk_skip(env, "the core does not load it: %s", tn_error_text());
    return ctx;
}

void chk_gradient_values(chk_env *env)
{
    walk w = {.ctx = context_open(env)};
    chk_lab lab;

    chk_lab_open_context(env, w.ctx, &lab);
    if (lab.op->flags & TN_OP_BACKWARD)
        chk_skip(env, "a part of gradients cannot be called by name; whose gradient it is tests it, too");
    if (!lab.op->gradient && !(lab.op->flags & TN_OP_ZERO_GRADIENT))
        chk_skip(env, "its operator has no gradient");
    chk_problems_float64(&lab, CHK_PROBLEMS_FEW, gradient_visit, &w);
    w.problems[0] = 0;
    w.broad = true;
    chk_problems_float64(&lab, CHK_PROBLEMS_BROAD, gradient_visit, &w);
    if (!w.served && w.refusal[0])
        chk_fail(env, "G-values", "the operator runs and says that it has a gradient, but backward gives: %s",
                 w.refusal);
    if (!w.served)
        chk_skip(env, "no kernel serves it on the host");
    if (!w.compared && !(lab.op->flags & TN_OP_IGNORE_HEAD))
        chk_skip(env, "no input of floating point");
    chk_lab_close(&lab);
}
