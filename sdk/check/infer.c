/*
 * Inference of operators that the plugin defines: pure, at rest after a few rounds, the same from either end,
 * contradictions told, and no fuzzed shape or type that makes it crash or answer nonsense. The arrays that it
 * gets end at guard pages.
 */
#include <string.h>

#include "generate.h"

typedef struct rig {
    chk_lab lab;
    const tn_op *op;
    chk_args args;
    chk_buffer *lists[4];             /* in_shape, out_shape, in_dtype, out_dtype; each before a guard page */
    chk_buffer *shapes[CHK_ARGS_MAX]; /* each before one */
    uint64_t state, held;             /* held: blocks of the plugin before anything was inferred */
    chk_problem seen;                 /* the last problem */
    uint32_t problems;
} rig;

/* ---- one call, at the edge of memory ----------------------------------------------------------------- */

static void rig_free(rig *r)
{
    for (uint32_t i = 0; i < 4; i++)
        chk_buffer_destroy(r->lists[i]);
    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++)
        chk_buffer_destroy(r->shapes[i]);
    memset(r->lists, 0, sizeof r->lists);
    memset(r->shapes, 0, sizeof r->shapes);
}

static void rig_make(rig *r, const chk_args *args)
{
    chk_env *env = r->lab.env;

    if (r->lists[0] && r->args.in_count == args->in_count && r->args.out_count == args->out_count)
        return;
    rig_free(r);
    r->args = *args;
    for (uint32_t i = 0; i < 4; i++)
        r->lists[i] = chk_buffer_create(env,
                                        (uint64_t)(i % 2 ? args->out_count : args->in_count) *
                                            (i < 2 ? sizeof(tn_shape *) : sizeof(int32_t)),
                                        0, CHK_GUARD_END);
    for (uint32_t i = 0; i < args->in_count + args->out_count; i++) {
        const bool in = i < args->in_count;
        tn_shape **list = chk_buffer_data(r->lists[in ? 0 : 1]);

        r->shapes[i] = chk_buffer_create(env, sizeof(tn_shape), 0, CHK_GUARD_END);
        list[in ? i : i - args->in_count] = chk_buffer_data(r->shapes[i]);
    }
}

static void facts_move(rig *r, chk_facts *f, bool into)
{
    int32_t *in = chk_buffer_data(r->lists[2]), *out = chk_buffer_data(r->lists[3]);

    for (uint32_t i = 0; i < chk_all(f); i++) {
        tn_shape *shape = chk_buffer_data(r->shapes[i]);
        int32_t *dtype = i < f->args.in_count ? &in[i] : &out[i - f->args.in_count];

        if (into) {
            *shape = f->shape[i];
            *dtype = f->dtype[i];
        } else {
            f->shape[i] = *shape;
            f->dtype[i] = *dtype;
        }
    }
}

static void answer_check(rig *r, tn_status st, const tn_infer *i, const tn_err *err)
{
    chk_env *env = r->lab.env;

    if (st < TN_OK || st > TN_E_INTERNAL)
        chk_fail(env, "I-status", "inference gives %d, which is no status", (int)st);
    if (st && (!err->message[0] || !memchr(err->message, 0, sizeof err->message)))
        chk_fail(env, "I-text", "inference gives %s without a text", tn_status_name(st));
    if (i->in_count != r->args.in_count || i->out_count != r->args.out_count)
        chk_fail(env, "I-pure", "shape or dtype changes the number of arguments");
    for (uint32_t k = 0; k < 4; k++)
        if (!chk_buffer_intact(r->lists[k], &(uint64_t){0}))
            chk_fail(env, "I-bounds", "inference writes beside its arrays");
    for (uint32_t k = 0; k < r->args.in_count + r->args.out_count; k++)
        if (!chk_buffer_intact(r->shapes[k], &(uint64_t){0}))
            chk_fail(env, "I-bounds", "inference writes beside a shape");
}

/* Calls shape (or dtype) once. */
static tn_status infer_once(rig *r, const chk_attrs *attrs, chk_facts *f, bool dtypes)
{
    const chk_host_kind kind = chk_host_kind_of(r->lab.plugin.host);
    tn_err err;
    tn_infer i =
        chk_infer_of(dtypes ? CHK_TOLD(r->op, dtype) : CHK_TOLD(r->op, shape), attrs, &f->args, 0, &err);
    tn_infer *made;
    tn_status st = TN_OK;

    if (dtypes ? !r->op->dtype : !r->op->shape)
        return TN_OK;
    rig_make(r, &f->args);
    facts_move(r, f, true);
    i.bodies = chk_bodies_for(r->op, attrs, &f->args);
    i.in_shape = chk_buffer_data(r->lists[0]);
    i.out_shape = chk_buffer_data(r->lists[1]);
    i.in_dtype = chk_buffer_data(r->lists[2]);
    i.out_dtype = chk_buffer_data(r->lists[3]);
    made = kind == CHK_HOST_EXACT ? &i : chk_struct_make(r->lab.env, kind, &i, CHK_SIZES(tn_infer, bodies));
    st = dtypes ? r->op->dtype(made) : r->op->shape(made);
    answer_check(r, st, made, &err);
    if (made != &i)
        chk_struct_free(made);
    facts_move(r, f, false);
    chk_count(r->lab.env);
    return st;
}

/* Once again from the same facts: the same answer. */
static tn_status infer_twice(rig *r, const chk_attrs *attrs, chk_facts *f, bool dtypes)
{
    chk_facts *again = chk_take(&r->lab.arena, sizeof *again);
    tn_status first, second;

    *again = *f;
    first = infer_once(r, attrs, f, dtypes);
    second = infer_once(r, attrs, again, dtypes);
    if (first != second || (!first && !chk_facts_equal(f, again)))
        chk_fail(r->lab.env, "I-pure", "the same facts give %s once and %s then, or other %s (%s)",
                 tn_status_name(first), tn_status_name(second), dtypes ? "data types" : "shapes",
                 r->seen.text);
    return first;
}

/* Until nothing changes; what was known must stay as it was. */
static tn_status infer_all(rig *r, const chk_attrs *attrs, chk_facts *f)
{
    chk_facts *before = chk_take(&r->lab.arena, sizeof *before);

    for (uint32_t round = 0; round < 16; round++) {
        tn_status st;

        *before = *f;
        if ((st = infer_twice(r, attrs, f, false)) || (st = infer_twice(r, attrs, f, true)))
            return st;
        if (chk_facts_equal(before, f))
            return TN_OK;
    }
    chk_fail(r->lab.env, "I-rest", "inference still changes shapes or types after 16 rounds (%s)",
             r->seen.text);
}

/* ---- a problem, with facts taken away ---------------------------------------------------------------- */

static bool shape_within(const tn_shape *got, const tn_shape *whole)
{
    if (got->ndim < 0 || whole->ndim < 0)
        return true;
    if (got->ndim != whole->ndim)
        return false;
    for (int32_t d = 0; d < got->ndim; d++)
        if (got->dim[d] >= 0 && whole->dim[d] >= 0 && got->dim[d] != whole->dim[d])
            return false;
    return true;
}

/* What is inferred from a part of the facts does not contradict all of them. A data type that nobody gave may
 * be a default. */
static void part_check(rig *r, const chk_problem *p, chk_facts *f, const char *what)
{
    chk_facts *given = chk_take(&r->lab.arena, sizeof *given);
    bool within;
    tn_status st;

    *given = *f;
    st = infer_all(r, &p->attrs, f);
    within = st == TN_OK;
    for (uint32_t i = 0; within && i < chk_all(f); i++)
        within = shape_within(&f->shape[i], &p->f.shape[i]) &&
                 (given->dtype[i] < 0 || f->dtype[i] == p->f.dtype[i]);
    if (!within)
        chk_fail(r->lab.env, "I-directions",
                 "%s, inference gives %s, or other shapes or types than before (%s)", what,
                 tn_status_name(st), p->text);
}

static void forget(chk_facts *f, uint32_t index)
{
    f->shape[index].ndim = -1;
    f->dtype[index] = TN_DTYPE_UNKNOWN;
}

/* One dimension of one argument is not known; then of all of them. */
static void dimension_check(rig *r, const chk_problem *p, uint32_t index)
{
    const uint32_t count = chk_all(&p->f);
    chk_facts *f = chk_take(&r->lab.arena, sizeof *f);

    for (int32_t d = 0; d < p->f.shape[index < count ? index : 0].ndim; d++) {
        *f = p->f;
        for (uint32_t i = 0; i < count; i++)
            if ((i == index || index == count) && d < f->shape[i].ndim)
                f->shape[i].dim[d] = TN_DIM_UNKNOWN;
        part_check(r, p, f,
                   chk_text(&r->lab.arena, "with dimension %d of %s unknown", (int)d,
                            index < count ? chk_argument_name(p->op, &p->f.args, index) : "all arguments"));
    }
}

static void shape_contradicts(rig *r, const chk_problem *p, chk_facts *f, uint32_t at)
{
    const char *said = chk_shape_text(&r->lab.arena, &f->shape[at]);

    if (infer_all(r, &p->attrs, f) == TN_OK)
        chk_fail(r->lab.env, "I-contradiction",
                 "accepts output %u with shape %s, though all inputs are known and it inferred %s (%s)",
                 at - p->f.args.in_count, said, chk_shape_text(&r->lab.arena, &p->f.shape[at]), p->text);
}

/* An output, argument `at`, in another shape than inference gives must be refused, in another type too. */
static void contradiction_check(rig *r, const chk_problem *p, uint32_t at)
{
    chk_facts *f = chk_take(&r->lab.arena, sizeof *f);
    const int32_t other = p->f.dtype[at] == TN_F64 ? TN_I32 : TN_F64;
    tn_shape *s = &f->shape[at];

    if (!tn_shape_known(&p->f.shape[at]))
        return;
    for (int32_t d = 0; d < p->f.shape[at].ndim; d++) {
        *f = p->f;
        s->dim[d]++;
        shape_contradicts(r, p, f, at);
    }
    *f = p->f;
    s->dim[s->ndim++] = 1;
    shape_contradicts(r, p, f, at);
    *f = p->f;
    f->dtype[at] = other;
    if (r->op->dtype && infer_all(r, &p->attrs, f) == TN_OK)
        chk_fail(r->lab.env, "I-contradiction",
                 "accepts output %u as %s, though all inputs are known and it inferred %s (%s)",
                 at - p->f.args.in_count, tn_dtype_name(other), tn_dtype_name(p->f.dtype[at]), p->text);
}

static bool problem_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    rig *r = arg;
    const uint32_t count = chk_all(&p->f);
    chk_facts *f = chk_take(&lab->arena, sizeof *f);

    r->seen = *p;
    r->problems++;
    *f = p->f;
    part_check(r, p, f, "with everything known");
    for (uint32_t i = 0; i < count; i++) {
        *f = p->f;
        forget(f, i);
        part_check(r, p, f,
                   chk_text(&lab->arena, "with %s unknown", chk_argument_name(p->op, &p->f.args, i)));
    }
    *f = p->f;
    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        forget(f, i);
    part_check(r, p, f, "with the outputs known alone");
    chk_facts_unknown(f);
    part_check(r, p, f, "with nothing known");
    for (uint32_t i = 0; i < count + (p->f.args.in_count > 0); i++)
        dimension_check(r, p, i);
    for (uint32_t o = p->f.args.in_count; o && o < count; o++)
        contradiction_check(r, p, o);
    return true;
}

#define MADE_ONCE 16 /* blocks */

static void rig_open(chk_env *env, chk_host_kind kind, rig *r)
{
    memset(r, 0, sizeof *r);
    chk_lab_open_op(env, kind, &r->lab);
    r->held = chk_host_memory(r->lab.plugin.host, NULL);
    r->op = r->lab.op;
    r->seen.text = "";
    chk_fault_rules(env, "I-bounds", "I-bounds", "inference");
}

/* A definition is pure: what it still holds after thousands of calls is lost, but for what is made once. */
static void rig_close(rig *r)
{
    chk_host_left(r->lab.plugin.host, r->held + MADE_ONCE, "inference");
    rig_free(r);
    chk_lab_close(&r->lab);
}

void chk_infer_problems(chk_env *env)
{
    rig r;

    rig_open(env, CHK_HOST_EXACT, &r);
    chk_problems(&r.lab, CHK_PROBLEMS_ALL, problem_visit, &r);
    chk_fail_if(env, !r.problems, "I-problems", "no shape that the kit tried is accepted for any attributes");
    rig_close(&r);
}

static bool host_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_facts *f = chk_take(&lab->arena, sizeof *f);
    rig *r = arg;

    r->seen = *p;
    r->problems++;
    *f = p->f;
    part_check(r, p, f, "with everything known");
    return true;
}

void chk_infer_hosts(chk_env *env)
{
    static const chk_host_kind kinds[] = {CHK_HOST_OLD, CHK_HOST_FUTURE};
    rig r;

    for (uint32_t k = 0; k < 2; k++) {
        rig_open(env, kinds[k], &r);
        chk_fault_rules(env, "R3", "R3", "inference, given the struct of an older or later host,");
        chk_problems(&r.lab, CHK_PROBLEMS_FEW, host_visit, &r);
        rig_close(&r);
    }
}

/* ---- run-time attributes ------------------------------------------------------------------------------ */

/* The host keeps the shapes of a call for others that differ in such an attribute alone. */
static void runtime_check(rig *r, const chk_problem *p, uint32_t index, tn_value value)
{
    tn_value *values = chk_take(&r->lab.arena, (p->attrs.count + 1u) * sizeof *values);
    chk_attrs attrs = {.values = values, .count = p->attrs.count};
    chk_facts *f = chk_take(&r->lab.arena, sizeof *f);
    tn_err err;

    memcpy(values, p->attrs.values, p->attrs.count * sizeof *values);
    values[index] = value;
    f->args = p->f.args;
    chk_facts_unknown(f);
    memcpy(f->shape, p->f.shape, f->args.in_count * sizeof *f->shape);
    chk_count(r->lab.env);
    if (chk_infer_shapes(p->op, &attrs, p->flags & TN_NODE_TRAIN ? TN_INFER_TRAIN : 0, f, &err))
        return;
    for (uint32_t o = f->args.in_count; o < chk_all(f); o++)
        if (!chk_shape_equal(&f->shape[o], &p->f.shape[o]))
            chk_fail(
                r->lab.env, "I-runtime",
                "another value of %s, which says TN_ATTR_F_RUNTIME without TN_ATTR_F_SHAPE, gives output %u "
                "the shape %s (%s)",
                p->op->attrs[index].name, o - f->args.in_count, chk_shape_text(&r->lab.arena, &f->shape[o]),
                p->text);
}

static bool runtime_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    rig *r = arg;
    tn_value others[8];

    for (uint32_t i = 0; i < p->attrs.count; i++) {
        const tn_attr_def *def = &p->op->attrs[i];
        uint32_t count;

        if ((def->flags & (TN_ATTR_F_RUNTIME | TN_ATTR_F_SHAPE)) != TN_ATTR_F_RUNTIME)
            continue;
        count = chk_attr_others(&lab->arena, def, p->attrs.values[i], others, 8);
        for (uint32_t k = 0; k < count; k++)
            runtime_check(r, p, i, others[k]);
        r->problems += count;
    }
    return true;
}

void chk_infer_runtime(chk_env *env)
{
    rig r;

    rig_open(env, CHK_HOST_EXACT, &r);
    chk_problems(&r.lab, CHK_PROBLEMS_FEW, runtime_visit, &r);
    if (!r.problems)
        chk_skip(env, "the operator has no run-time attributes that leave shapes alone");
    rig_close(&r);
}

/* ---- nonsense ---------------------------------------------------------------------------------------- */

static const int64_t dims[] = {-1, 0, 1, 2, 3, 7, 65536, (int64_t)1 << 31, (int64_t)1 << 62, INT64_MAX};

static uint64_t draw(rig *r, uint64_t below)
{
    return chk_mix(r->state++) % below;
}

static void shape_fuzz(rig *r, tn_shape *s)
{
    const uint64_t how = draw(r, 8);

    memset(s, 0, sizeof *s);
    s->ndim = how == 0   ? -1
              : how == 1 ? TN_NDIM_MAX
              : how == 2 ? (int32_t)draw(r, TN_NDIM_MAX + 1)
                         : (int32_t)draw(r, 6);
    for (int32_t d = 0; d < s->ndim; d++)
        s->dim[d] = dims[draw(r, sizeof dims / sizeof *dims)];
}

static void result_check(rig *r, const chk_facts *f)
{
    for (uint32_t i = 0; i < chk_all(f); i++) {
        const tn_shape *s = &f->shape[i];
        const int32_t dtype = f->dtype[i];

        if (s->ndim < -1 || s->ndim > TN_NDIM_MAX || dtype < -1 || dtype >= TN_DTYPE_LIMIT)
            chk_fail(r->lab.env, "I-fuzz", "inference says TN_OK, and argument %u has %d dimensions, type %d",
                     i, s->ndim, dtype);
        for (int32_t d = 0; d < s->ndim; d++)
            if (s->dim[d] < -1)
                chk_fail(r->lab.env, "I-fuzz",
                         "inference says TN_OK, and argument %u has a dimension of %lld", i,
                         (long long)s->dim[d]);
    }
}

static void base_fuzz(rig *r, const chk_attrs *attrs, uint32_t rounds)
{
    chk_facts *f = chk_take(&r->lab.arena, sizeof *f);
    const chk_mark mark = chk_mark_set(&r->lab.arena);
    tn_err err;

    if (chk_infer_args(r->op, attrs, 2, &f->args, &err))
        return;
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < chk_all(f); i++) {
            const bool in = i < f->args.in_count;

            shape_fuzz(r, &f->shape[i]);
            if (in && draw(r, 3) == 0)
                f->shape[i] = f->shape[0]; /* equal ones go further */
            if (!in && draw(r, 2) == 0)
                f->shape[i].ndim = -1;
            f->dtype[i] = (int32_t)draw(r, TN_DTYPE_LIMIT + 1) - 1;
        }
        if (infer_twice(r, attrs, f, false) == TN_OK)
            result_check(r, f);
        if (infer_twice(r, attrs, f, true) == TN_OK)
            result_check(r, f);
        chk_mark_back(&r->lab.arena, mark);
    }
}

void chk_infer_fuzz(chk_env *env)
{
    chk_base *bases;
    generator g;
    uint32_t count;
    rig r;

    rig_open(env, CHK_HOST_EXACT, &r);
    r.state = env->seed * 1000003;
    g = (generator){.lab = &r.lab, .op = r.op};
    bases = chk_take(&r.lab.arena, CHK_BASES_MAX * sizeof *bases);
    count = chk_bases(&g, bases);
    chk_fail_if(env, !count, "I-problems", "the kit finds no values for its required attributes");
    for (uint32_t i = 0; i < count; i++)
        base_fuzz(&r, &bases[i].attrs, (env->sizes ? 20000u : 1000u) / count + 10);
    rig_close(&r);
}

/* ---- arguments --------------------------------------------------------------------------------------- */

void chk_infer_counts(chk_env *env)
{
    static const uint32_t given[] = {0, 1, 2, 3, 7, 4096, UINT32_MAX};
    chk_base *bases;
    generator g;
    uint32_t count;
    rig r;

    rig_open(env, CHK_HOST_EXACT, &r);
    g = (generator){.lab = &r.lab, .op = r.op};
    bases = chk_take(&r.lab.arena, CHK_BASES_MAX * sizeof *bases);
    count = chk_bases(&g, bases);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < sizeof given / sizeof *given; k++) {
            chk_args first = {0}, second = {0};
            tn_err err;
            tn_status one = chk_infer_args(r.op, &bases[i].attrs, given[k], &first, &err),
                      two = chk_infer_args(r.op, &bases[i].attrs, given[k], &second, &err);

            if (one != two || memcmp(&first, &second, sizeof first) != 0)
                chk_fail(env, "I-pure", "args gives %s once and %s then, or other counts (%s)",
                         tn_status_name(one), tn_status_name(two), bases[i].attrs.text);
            chk_count(env);
        }
    chk_fail_if(env, !count, "I-problems", "the kit finds no values for its required attributes");
    rig_close(&r);
}
