/*
 * Problems from a definition: attribute values out of its table, a shape for the first input, the rest by
 * inference; what inference leaves open is tried until it accepts. What it refuses is no problem.
 */
#include <string.h>

#include "generate.h"
#include "internal.h"

#define ELEMENTS_MAX 20000
#define ELEMENTS_LARGE 400000
#define ELEMENTS_BROAD 10000
#define ELEMENTS_STEEP 1000 /* where the work grows with their square */
#define LARGE_THREADS 8
#define DOUBLED_FIRST (1 << 20) /* times as many of what a shape of cases.list has */
#define OPEN_DIM 3              /* elements of a dimension that nothing is known of */
#define GROW_STEP 8             /* times as many elements, until a kernel takes them */
#define GROW_MAX 4096

/* ---- shapes ------------------------------------------------------------------------------------------ */

typedef struct shape_row {
    int32_t ndim;
    int64_t dim[8];
} shape_row;

static const shape_row ranks[] = {
    {0, {0}},
    {1, {7}},
    {2, {3, 5}},
    {3, {2, 3, 4}},
    {4, {2, 3, 4, 3}},
    {5, {2, 1, 3, 2, 2}},
    {6, {2, 1, 2, 3, 1, 2}},
    {7, {1, 2, 1, 2, 1, 3, 2}},
    {8, {2, 1, 2, 1, 2, 1, 2, 2}},
};
static const shape_row odd[] = {
    {1, {1}},     {1, {33}},        {1, {257}},     {2, {1, 1}},    {2, {17, 33}},      {2, {1, 65}},
    {2, {65, 1}}, {3, {7, 17, 33}}, {3, {4, 1, 3}}, {3, {1, 1, 7}}, {4, {2, 7, 1, 17}}, {4, {3, 2, 9, 9}},
};
static const shape_row common[] = {{2, {4, 6}}, {3, {2, 4, 6}}, {1, {6}}, {4, {2, 4, 3, 6}}};
static const shape_row empty[] = {{1, {0}},       {2, {0, 3}},       {2, {3, 0}},
                                  {3, {2, 0, 3}}, {4, {2, 3, 0, 4}}, {3, {0, 0, 0}}};
/* For several threads, of each rank two sizes (see large_problems). The quick form has two ranks. */
static const shape_row large[][2] = {{{2, {16, 1031}}, {2, {96, 1031}}},
                                     {{3, {8, 16, 129}}, {3, {8, 96, 129}}},
                                     {{1, {20011}}, {1, {100003}}},
                                     {{4, {4, 8, 11, 65}}, {4, {4, 8, 33, 65}}}};
static const shape_row broad[] = {{2, {97, 105}}, {3, {5, 21, 97}}, {4, {3, 5, 7, 97}}, {1, {10007}}};
static const shape_row huge[] = {
    {1, {(int64_t)3 << 30}},
    {2, {65536, 65537}},
    {2, {(int64_t)1 << 31, (int64_t)1 << 29}},
    {3, {1 << 20, 1 << 20, 1 << 20}},
    {4, {1 << 15, 1 << 15, 1 << 15, 1 << 15}},
};
static const shape_row doubled[] = {
    {1, {1 << 28}}, {2, {1 << 12, 65537}}, {3, {1 << 12, 257, 257}}, {4, {1 << 10, 63, 65, 67}}};

/* Nothing is computed: there is no memory for it. */
static bool is_metadata(const generator *g)
{
    return g->what == CHK_PROBLEMS_HUGE || g->what == CHK_PROBLEMS_DOUBLED;
}

/* Shapes that broadcast against common[1]: bit d of `ones`: the axis has one element; `dropped` leading axes
 * are not there. */
typedef struct thin_row {
    uint32_t ones;
    int32_t dropped;
    bool first;   /* the first input is the one that is broadcast, not the others */
    int32_t more; /* 1 + axis along which each input is one longer than the one before; 0: none */
} thin_row;

static const thin_row thins[] = {
    {1, 0, false, 0}, {4, 0, false, 0}, {2, 0, false, 0}, {3, 0, false, 0}, {5, 0, false, 0},
    {6, 0, false, 0}, {7, 0, false, 0}, {0, 1, false, 0}, {1, 1, false, 0}, {2, 1, false, 0},
    {0, 2, false, 0}, {0, 3, false, 0}, {1, 0, true, 0},  {4, 0, true, 0},  {2, 0, true, 0},
    {7, 0, true, 0},  {0, 1, true, 0},  {0, 3, true, 0},
};
static const thin_row longer[] = {{0, 0, false, 1}, {0, 0, false, 2}, {0, 0, false, 3}};
#define THINS_FEW 2 /* of CHK_PROBLEMS_FEW */

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

/* A kernel that declines small sizes gets larger ones. */
static tn_shape grown(const generator *g, tn_shape s)
{
    if (s.ndim > 0 && g->what != CHK_PROBLEMS_HUGE)
        s.dim[0] *= g->lab->grow ? g->lab->grow : 1;
    return s;
}

/* The work grows with the square of the elements. */
static bool is_steep(const generator *g)
{
    return chk_is_listed("_npi_polyval _npi_svd _npi_pinv _npi_pinv_scalar_rcond _npi_norm", g->op->name);
}

static tn_shape shape_of(const generator *g, const shape_row *row)
{
    tn_shape s = {.ndim = row->ndim};

    memcpy(s.dim, row->dim, sizeof row->dim);
    if (g->what == CHK_PROBLEMS_BROAD && s.ndim < 3 && is_steep(g))
        s.dim[0] = (s.dim[0] * ELEMENTS_STEEP / ELEMENTS_BROAD) | 1;
    return grown(g, s);
}

static tn_shape shape_thin(const tn_shape *whole, const thin_row *row)
{
    tn_shape s = {.ndim = whole->ndim - row->dropped};

    for (int32_t d = 0; d < s.ndim; d++)
        s.dim[d] = row->ones >> d & 1u ? 1 : whole->dim[d + row->dropped];
    return s;
}

/* What is known of it stays. */
static void shape_longer(const tn_shape *data, int32_t axis, uint32_t by, tn_shape *s)
{
    const tn_shape known = *s;

    *s = *data;
    s->dim[axis] += by;
    for (int32_t d = 0; d < known.ndim && d < s->ndim; d++)
        if (known.dim[d] >= 0)
            s->dim[d] = known.dim[d];
}

/* What an input that nothing is known of might be, beside `data`. False: no more. */
static bool candidate(const tn_shape *data, uint32_t index, tn_shape *out)
{
    const int32_t n = data->ndim;

    memset(out, 0, sizeof *out);
    switch (index) {
    case 0:
        *out = *data;
        return true;
    case 1: /* one for each of the last dimension */
    case 2: /* of the first */
    case 3: /* of the second */
        out->ndim = 1;
        out->dim[0] = n == 0 ? 1 : data->dim[index == 1 ? n - 1 : index == 2 || n < 2 ? 0 : 1];
        return true;
    case 4: /* all but the last */
        *out = *data;
        out->ndim = n > 0 ? n - 1 : 0;
        return true;
    case 5: /* a matrix for the last */
        out->ndim = 2;
        out->dim[0] = n > 0 ? data->dim[n - 1] : 1;
        out->dim[1] = 5;
        return true;
    case 6: /* the last two swapped */
        *out = *data;
        if (n > 1) {
            out->dim[n - 2] = data->dim[n - 1];
            out->dim[n - 1] = data->dim[n - 2];
        }
        return true;
    case 7:
        out->ndim = 1;
        out->dim[0] = 1;
        return true;
    case 8:
        out->ndim = 2;
        out->dim[0] = n > 0 && n < 4 ? n : 1;
        out->dim[1] = 3;
        return true;
    case 9:
        return true; /* a scalar */
    default:
        return false;
    }
}

/* What is open of a shape whose rank is known; false: nothing. */
static bool shape_filled(tn_shape *s)
{
    bool open = false;

    for (int32_t d = 0; d < s->ndim; d++)
        if (s->dim[d] < 0) {
            s->dim[d] = OPEN_DIM;
            open = true;
        }
    return open;
}

/* Fills in the inputs from `at` on; false: inference takes nothing that was tried. */
static bool shapes_complete(generator *g, const chk_attrs *attrs, const tn_shape *data, uint32_t flags,
                            chk_facts *f)
{
    uint32_t at = 0;
    chk_facts *before;
    tn_shape try;
    tn_err err;

    if (g->tries++ > 400 || chk_infer_shapes(g->op, attrs, flags, f, &err))
        return false;
    while (at < f->args.in_count && tn_shape_known(&f->shape[at]))
        at++;
    if (at == f->args.in_count)
        return true;
    before = chk_take(&g->lab->arena, sizeof *before);
    *before = *f;
    if (g->thin && g->thin->more && at) {
        shape_longer(data, g->thin->more - 1, at, &f->shape[at]);
        if (shapes_complete(g, attrs, data, flags, f))
            return g->thinned = true;
    } else if (g->thin && at && f->shape[at].ndim < 0) {
        f->shape[at] = g->thin->first ? *data : shape_thin(data, g->thin);
        if (shapes_complete(g, attrs, data, flags, f))
            return g->thinned = true;
    }
    for (uint32_t c = 0; candidate(data, c, &try); c++) {
        *f = *before;
        if (f->shape[at].ndim >= 0) { /* partly known: what fits it */
            if (f->shape[at].ndim != try.ndim)
                continue;
            for (int32_t d = 0; d < try.ndim; d++)
                if (f->shape[at].dim[d] >= 0)
                    try.dim[d] = f->shape[at].dim[d];
        }
        f->shape[at] = try;
        if (shapes_complete(g, attrs, data, flags, f))
            return true;
    }
    *f = *before;
    return shape_filled(&f->shape[at]) && shapes_complete(g, attrs, data, flags, f);
}

static bool sizes_fit(const generator *g, const chk_facts *f, bool *resizes)
{
    const int64_t most = is_metadata(g)                  ? INT64_MAX / 8
                         : g->what == CHK_PROBLEMS_LARGE ? ELEMENTS_LARGE
                         : g->lab->grow > 1              ? ELEMENTS_LARGE
                                                         : ELEMENTS_MAX;

    *resizes = false;
    for (uint32_t i = 0; i < chk_all(f); i++)
        if (i >= f->args.in_count && !tn_shape_known(&f->shape[i]))
            *resizes = true;
        else if (chk_shape_elements(&f->shape[i], most) < 0)
            return false;
    return true;
}

/* ---- storage types ----------------------------------------------------------------------------------- */

/* What the kernel's rules say of the inputs first, and what follows for the outputs. */
static bool storages_complete(const generator *g, const chk_attrs *attrs, chk_facts *f)
{
    for (uint32_t i = 0; i < f->args.in_count; i++) {
        const uint32_t mask = g->kernel ? chk_rule_storages(chk_rule_of(g->op, g->kernel, &f->args, i)) : 1;

        f->storage[i] = mask & 1u ? TN_STORAGE_DENSE : mask & 2u ? TN_STORAGE_ROW_SPARSE : TN_STORAGE_CSR;
    }
    return !g->kernel || chk_infer_storages(g->op, attrs, f);
}

static bool storages_fit(const chk_facts *f, bool *resizes)
{
    for (uint32_t i = 0; i < chk_all(f); i++) {
        if (!chk_sparse_fits(f->storage[i], &f->shape[i]))
            return false;
        *resizes |= i >= f->args.in_count && f->storage[i] != TN_STORAGE_DENSE;
    }
    return true;
}

/* ---- data types -------------------------------------------------------------------------------------- */

/* A data type for an input that inference leaves open. */
static int32_t dtype_for(const generator *g, const chk_facts *f, uint32_t index, int32_t wanted)
{
    const char *rule = g->kernel ? chk_rule_of(g->op, g->kernel, &f->args, index) : NULL;
    static const int32_t order[] = {TN_F32, TN_F64, TN_F16, TN_I32, TN_I64};

    if (!rule || chk_rule_allows(g->op, f, rule, wanted))
        return wanted;
    for (uint32_t i = 0; i < COUNT(order); i++)
        if (chk_rule_allows(g->op, f, rule, order[i]))
            return order[i];
    for (int32_t d = 0; d < TN_DTYPE_LIMIT; d++)
        if (chk_rule_allows(g->op, f, rule, d))
            return d;
    return wanted;
}

/* An input that inference leaves open gets a type that it takes: the wanted one, or where no kernel says what
 * it serves, a usual one. */
static bool dtype_complete(const generator *g, const chk_attrs *attrs, uint32_t index, int32_t wanted,
                           chk_facts *f)
{
    static const int32_t usual[] = {TN_F32, TN_F64, TN_I32, TN_I64, TN_I8};
    chk_facts *before = chk_take(&g->lab->arena, sizeof *before);
    tn_err err;

    *before = *f;
    f->dtype[index] = dtype_for(g, f, index, wanted);
    for (uint32_t i = 0; chk_infer_dtypes(g->op, attrs, f, &err); i++) {
        if (g->kernel || i == COUNT(usual))
            return false;
        *f = *before;
        f->dtype[index] = usual[i];
    }
    return true;
}

/* Input `primary` has data type `dtype`, the others what goes with it. Without inputs it is the output's,
 * where that may be given. */
static bool dtypes_complete(const generator *g, const chk_attrs *attrs, uint32_t primary, int32_t dtype,
                            chk_facts *f)
{
    tn_err err;

    const bool given = !f->args.in_count && g->count_attr < 0;

    if (primary < f->args.in_count || given)
        f->dtype[given ? 0 : primary] = dtype;
    if (chk_infer_dtypes(g->op, attrs, f, &err)) {
        f->dtype[0] = TN_DTYPE_UNKNOWN;
        if (!given || chk_infer_dtypes(g->op, attrs, f, &err))
            return false;
    }
    for (uint32_t i = 0; i < f->args.in_count; i++) {
        if (f->dtype[i] < 0 && !dtype_complete(g, attrs, i, primary ? g->usual : dtype, f))
            return false;
    }
    for (uint32_t o = f->args.in_count; o < chk_all(f); o++)
        if (f->dtype[o] < 0)
            return false;
    return !g->kernel || chk_types_match(g->op, g->kernel, f);
}

/* ---- a problem as it stands --------------------------------------------------------------------------- */

int64_t chk_elements(const chk_problem *p, uint32_t arg)
{
    return chk_shape_elements(&p->f.shape[arg], INT64_MAX / 16);
}

chk_problem *chk_problem_copy(chk_lab *lab, const chk_problem *p)
{
    chk_problem *made = chk_take(&lab->arena, sizeof *made);

    *made = *p;
    for (uint32_t i = 0; i < p->f.args.in_count; i++) {
        const uint64_t bytes = (uint64_t)chk_elements(p, i) * tn_dtype_bytes(p->f.dtype[i]);

        made->in_data[i] = memcpy(chk_take(&lab->arena, bytes + 1), p->in_data[i], (size_t)bytes);
    }
    return made;
}

const char *chk_problem_text(chk_lab *lab, const chk_problem *p)
{
    const char *text = chk_text(&lab->arena, "%s%s", p->attrs.text, *p->attrs.text ? ": " : "");

    for (uint32_t i = 0; i < p->f.args.in_count && i < 6; i++)
        text =
            chk_text(&lab->arena, "%s%s%s %s%s", text, i ? ", " : "", chk_argument_name(p->op, &p->f.args, i),
                     tn_dtype_name(p->f.dtype[i]), chk_shape_text(&lab->arena, &p->f.shape[i]));
    if (!p->f.args.in_count)
        text = chk_text(&lab->arena, "%soutput %s%s", text, tn_dtype_name(p->f.dtype[0]),
                        chk_shape_text(&lab->arena, &p->f.shape[0]));
    return p->flags & TN_NODE_TRAIN ? chk_text(&lab->arena, "%s, training", text) : text;
}

void chk_problem_finish(chk_problem *p)
{
    p->mutated_count = 0;
    for (uint32_t i = 0; i < p->f.args.in_count; i++)
        if (tn_op_mutates(p->op, p->f.args.in_count, i))
            p->mutated[p->mutated_count++] = i;
}

/* ---- one problem ------------------------------------------------------------------------------------- */

/* An operator without inputs takes the shape as an attribute. */
static void shape_attr(generator *g, const tn_shape *s, chk_attrs *attrs)
{
    const int32_t at = chk_attr_index(g->op, "shape");
    const char *text = chk_shape_text(&g->lab->arena, s);
    tn_value value;

    if (at >= 0 && g->op->attrs[at].type == TN_ATTR_T_TUPLE &&
        chk_attr_parse(&g->lab->arena, &g->op->attrs[at], text, &value))
        chk_attrs_with(&g->lab->arena, attrs, (uint32_t)at, value, text, NULL, attrs);
}

static bool generate_one(generator *g, const chk_attrs *from, const tn_shape *s, uint32_t primary,
                         int32_t dtype)
{
    const chk_mark mark = chk_mark_set(&g->lab->arena);
    chk_problem *p = chk_take(&g->lab->arena, sizeof *p);
    const int32_t count_at = g->count_attr;
    const uint32_t infer_flags = g->train ? TN_INFER_TRAIN : 0;
    bool good = false, wanted;
    tn_err err;

    p->op = g->op;
    p->attrs = *from;
    p->flags = g->train ? TN_NODE_TRAIN : 0;
    p->rank = s->ndim;
    g->tries = 0;
    g->thinned = !g->thin;
    if (!chk_infer_args(g->op, from,
                        count_at < 0 ? (g->given ? g->given : 3)
                                     : (uint32_t)tn_value_int(from->values[count_at]),
                        &p->f.args, &err) &&
        (primary == 0 || primary < p->f.args.in_count)) {
        chk_facts_unknown(&p->f);
        if (p->f.args.in_count)
            p->f.shape[0] = g->thin && g->thin->first ? shape_thin(s, g->thin) : *s;
        else
            shape_attr(g, s, &p->attrs);
        good = (!g->kernel || chk_version_matches(&g->lab->arena, g->kernel, g->op, &p->attrs)) &&
               storages_complete(g, &p->attrs, &p->f) &&
               dtypes_complete(g, &p->attrs, primary, dtype, &p->f) &&
               shapes_complete(g, &p->attrs, s, infer_flags, &p->f) && g->thinned &&
               sizes_fit(g, &p->f, &p->resizes) && storages_fit(&p->f, &p->resizes);
    }
    if (good) {
        chk_problem_finish(p);
        p->text = chk_problem_text(g->lab, p);
        g->made++;
        wanted = g->op != g->lab->op || chk_is_wanted(g->lab, p);
        if (wanted && !is_metadata(g))
            chk_problem_values(g->lab, p, g->lab->env->seed);
        g->stop = wanted && !g->visit(g->lab, p, g->arg);
    }
    chk_mark_back(&g->lab->arena, mark);
    return good;
}

/* ---- all of them ------------------------------------------------------------------------------------- */

/* Two ranks rather than all. */
static bool is_few(const generator *g)
{
    return g->what == CHK_PROBLEMS_FEW || g->what == CHK_PROBLEMS_WIDE;
}

/* No attribute says what the output is. */
static bool output_is_open(const tn_op *op)
{
    for (const tn_attr_def *d = op->attrs; d && d->name; d++)
        if (d->type == TN_ATTR_T_DTYPE)
            return false;
    return true;
}

/* Data types that are tried for input `index`; without inputs 0 is the output. */
static uint32_t types_mask(const generator *g, const chk_attrs *attrs, uint32_t index)
{
    const chk_args fallback = {1, 1, 1, 0, NULL};
    const uint32_t wanted = g->what == CHK_PROBLEMS_WIDE ? 1u << TN_F64 : ~0u;
    const char *rule;
    chk_args args;
    uint32_t mask;
    tn_err err;

    if (!g->kernel)
        return g->dtype_mask & wanted;
    if (chk_infer_args(g->op, attrs, 3, &args, &err))
        args = fallback;
    if (index >= args.in_count && (args.in_count || index))
        return 0;
    if (!args.in_count && !output_is_open(g->op))
        return 1u << TN_F32 & wanted;
    rule = chk_rule_of(g->op, g->kernel, &args, index);
    mask = rule ? chk_rule_mask(rule) : 0;
    return wanted & (mask ? mask : (1u << TN_DTYPE_LIMIT) - 1); /* none: that of another argument */
}

/* The lowest bit alone; 0: there is none. */
static uint32_t lowest(uint32_t mask)
{
    return mask & (0u - mask);
}

static void shapes_with(generator *g, const chk_attrs *attrs, const shape_row *rows, uint32_t count,
                        uint32_t mask)
{
    for (uint32_t r = 0; r < count && !g->stop; r++) {
        const tn_shape s = shape_of(g, &rows[r]);

        for (int32_t d = 0; d < TN_DTYPE_LIMIT && !g->stop; d++)
            if (mask >> d & 1u)
                (void)generate_one(g, attrs, &s, 0, d);
    }
}

/* The smaller size is enough for a kernel that shares it out to several threads; so it is for one that does
 * not share out the larger one either. */
static void large_problems(generator *g, const chk_attrs *attrs, uint32_t ranks_most, uint32_t mask)
{
    for (uint32_t r = 0; r < ranks_most && !g->stop; r++)
        for (uint32_t size = 0; size < 3; size++) {
            g->lab->several = size < 2;
            g->lab->is_alone = false;
            shapes_with(g, attrs, &large[r][size % 2], 1, mask);
            g->lab->several = false;
            if (!g->lab->is_alone)
                break;
        }
}

bool chk_is_wanted(chk_lab *lab, const chk_problem *p)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .metadata = true, .threads = LARGE_THREADS};
    const chk_mark mark = chk_mark_set(&lab->arena);
    chk_node *n;
    bool alone;

    if (!lab->several || !lab->side.kernel)
        return true;
    n = chk_take(&lab->arena, sizeof *n);
    alone = !chk_node_open(lab, &lab->side, p, &form, n) && n->plan->threads < 2;
    chk_node_close(n);
    chk_mark_back(&lab->arena, mark);
    lab->is_alone |= alone;
    return !alone;
}

/* The base's own shape: as it is, or with one dimension empty. */
static void own_shape(generator *g, const chk_base *b, uint32_t mask)
{
    for (int32_t zero = -1; zero < b->shape.ndim && !g->stop; zero++) {
        tn_shape s = grown(g, b->shape);

        if ((zero < 0) == (g->what == CHK_PROBLEMS_EMPTY))
            continue;
        if (zero >= 0)
            s.dim[zero] = 0;
        if (g->what == CHK_PROBLEMS_LARGE)
            s.dim[0] *= s.ndim ? 5 : 1;
        if (g->what == CHK_PROBLEMS_DOUBLED && s.ndim)
            s.dim[0] *= DOUBLED_FIRST;
        if (g->what == CHK_PROBLEMS_BROAD && s.ndim)
            s.dim[0] = (s.dim[0] * (is_steep(g) ? ELEMENTS_STEEP : ELEMENTS_BROAD) /
                        (chk_shape_elements(&s, INT64_MAX) + 1)) |
                       1;
        for (int32_t d = 0; d < TN_DTYPE_LIMIT && !g->stop; d++)
            if (mask >> d & 1u)
                (void)generate_one(g, &b->attrs, &s, 0, d);
    }
}

/* One problem for each data type, in the first shape that it can have. */
static void broad_problems(generator *g, const chk_base *b, uint32_t mask)
{
    for (int32_t d = 0; d < TN_DTYPE_LIMIT; d++)
        for (uint32_t r = 0, before = g->made; r < COUNT(broad) && g->made == before && !g->stop; r++)
            shapes_with(g, &b->attrs, &broad[r], 1, mask & 1u << d);
}

/* Other inputs with types of their own: labels, indices, conditions. */
static void other_types(generator *g, const chk_base *b)
{
    const tn_shape s = b->has_shape ? b->shape : shape_of(g, &common[0]);

    for (uint32_t i = 1; i < (g->kernel ? 8u : 4u) && !g->stop; i++) {
        const uint32_t mask = types_mask(g, &b->attrs, i);

        for (int32_t d = 0; d < TN_DTYPE_LIMIT && !g->stop; d++)
            if (mask >> d & 1u)
                (void)generate_one(g, &b->attrs, &s, i, d);
    }
}

/* Up to two shapes; an operator whose first input has no such rank gets what it takes: a vector,
 * one element. */
static void few_problems(generator *g, const chk_base *b, uint32_t shapes, uint32_t mask)
{
    const uint32_t before = g->made;

    shapes_with(g, &b->attrs, ranks + 2, shapes, mask);
    if (g->made == before)
        shapes_with(g, &b->attrs, ranks, COUNT(ranks), mask);
    if (g->made == before)
        shapes_with(g, &b->attrs, odd, COUNT(odd), mask);
}

static void base_problems(generator *g, const chk_base *b)
{
    const uint32_t mask = types_mask(g, &b->attrs, 0), one = lowest(mask);
    const bool types = g->what == CHK_PROBLEMS_TYPES;

    if (g->what == CHK_PROBLEMS_DOUBLED && b->variation)
        return;
    if (b->has_shape)
        own_shape(g, b,
                  g->what == CHK_PROBLEMS_LARGE || g->what == CHK_PROBLEMS_DOUBLED || (b->variation && !types)
                      ? one
                      : mask);
    if (b->has_shape && b->variation)
        return;
    if (g->what == CHK_PROBLEMS_HUGE)
        shapes_with(g, &b->attrs, huge, COUNT(huge), one);
    else if (g->what == CHK_PROBLEMS_DOUBLED && !b->has_shape)
        shapes_with(g, &b->attrs, doubled, COUNT(doubled), one);
    else if (types)
        shapes_with(g, &b->attrs, common, COUNT(common), mask);
    else if (g->what == CHK_PROBLEMS_BROAD && !b->has_shape)
        broad_problems(g, b, mask);
    else if (g->what == CHK_PROBLEMS_EMPTY)
        shapes_with(g, &b->attrs, empty, COUNT(empty), b->variation ? one : mask);
    else if (g->what == CHK_PROBLEMS_LARGE && !b->has_shape && !b->variation)
        large_problems(g, &b->attrs, g->lab->env->sizes ? COUNT(large) : 2, one);
    else if (b->variation)
        for (uint32_t k = 0, before = (uint32_t)g->made; k < COUNT(common) && !g->stop; k++) {
            shapes_with(g, &b->attrs, common + k, 1, one);
            if (is_few(g) && g->made > before)
                break;
        }
    else if (is_few(g))
        few_problems(g, b, 2, mask);
    else if (g->what == CHK_PROBLEMS_ALL) {
        shapes_with(g, &b->attrs, ranks, COUNT(ranks), mask);
        shapes_with(g, &b->attrs, odd, COUNT(odd), one);
        other_types(g, b);
    }
}

/* Some inputs are broadcast, where inference takes that. */
static void thin_problems(generator *g, const chk_base *b)
{
    const bool variadic = g->count_attr >= 0;
    const uint32_t most = variadic ? COUNT(longer) : COUNT(thins);
    const uint32_t rows = g->what == CHK_PROBLEMS_ALL   ? most
                          : is_few(g) && !variadic      ? THINS_FEW
                          : g->what == CHK_PROBLEMS_FEW ? most
                                                        : 0;

    if (!g->op->inputs || !g->op->inputs[0] || (!g->op->inputs[1] && !variadic) || b->has_shape)
        return;
    for (uint32_t i = 0; i < rows && !g->stop; i++) {
        g->thin = variadic ? &longer[i] : &thins[i];
        shapes_with(g, &b->attrs, common + 1, 1, lowest(types_mask(g, &b->attrs, 0)));
    }
    g->thin = NULL;
}

/* Any number of inputs is none that a kernel can count on: a single one,
 * and more than it has registers for. */
static void counted_problems(generator *g, const chk_base *b)
{
    static const uint32_t counts[] = {1, 7};
    const uint32_t mask = types_mask(g, &b->attrs, 0);

    for (uint32_t i = 0; i < COUNT(counts) && chk_is_variadic(g->op->inputs) && !b->has_shape; i++) {
        chk_attrs attrs = b->attrs;

        g->given = counts[i];
        if (g->count_attr >= 0)
            chk_attrs_with(&g->lab->arena, &b->attrs, (uint32_t)g->count_attr, counts[i],
                           chk_text(&g->lab->arena, "%u", counts[i]), g->op->attrs[g->count_attr].name,
                           &attrs);
        shapes_with(g, &attrs, common, COUNT(common), mask);
    }
    g->given = 0;
}

static bool generate(generator *g)
{
    chk_base bases[CHK_BASES_MAX];
    const uint32_t count = chk_bases(g, bases);
    uint32_t one;

    g->count_attr = -1;
    for (uint32_t i = 0; g->op->attrs && g->op->attrs[i].name; i++)
        if (g->op->attrs[i].flags & TN_ATTR_F_COUNT)
            g->count_attr = (int32_t)i;
    for (uint32_t i = 0; i < count && !g->stop; i++) {
        base_problems(g, &bases[i]);
        if ((g->what == CHK_PROBLEMS_LARGE || g->what == CHK_PROBLEMS_BROAD) && g->made)
            break;
    }
    if (count)
        thin_problems(g, &bases[0]);
    if (count && g->what == CHK_PROBLEMS_ALL)
        counted_problems(g, &bases[0]);
    if (count && !g->stop && !g->train && !bases[0].has_shape &&
        (is_few(g) || (g->what == CHK_PROBLEMS_LARGE && g->op->effects & TN_EFFECT_RANDOM))) {
        g->train = true;
        one = lowest(types_mask(g, &bases[0].attrs, 0));
        if (is_few(g))
            few_problems(g, &bases[0], 1, one);
        else
            large_problems(g, &bases[0].attrs, 1, one);
        g->train = false;
    }
    if (g->what != CHK_PROBLEMS_ALL || !count || g->stop)
        return g->made > 0;
    one = lowest(types_mask(g, &bases[0].attrs, 0));
    g->train = true;
    if (bases[0].has_shape)
        own_shape(g, &bases[0], one);
    else
        shapes_with(g, &bases[0].attrs, common, COUNT(common), one);
    return g->made > 0;
}

bool chk_problems_of(chk_lab *lab, const tn_op *op, uint32_t what, chk_visit visit, void *arg)
{
    const chk_mark mark = chk_mark_set(&lab->arena);
    generator g = {.lab = lab, .op = op, .what = what, .visit = visit, .arg = arg};
    const char *const *types = lab->side.kernel ? lab->side.kernel->types : NULL;
    const uint32_t first = types && *types ? chk_rule_mask(*types + strcspn(*types, ":") + 1) : 0;
    bool any;

    if (op == lab->op)
        g.kernel = lab->side.kernel;
    while (first && !(first >> g.usual & 1u)) /* f32, or the first type of a kernel without it */
        g.usual++;
    for (const char *const *t = lab->side.kernel ? lab->side.kernel->types : NULL; t && *t; t++)
        g.dtype_mask |= chk_rule_mask(*t + strcspn(*t, ":") + 1);
    if (!g.dtype_mask)
        g.dtype_mask = (1u << TN_DTYPE_LIMIT) - 1;
    any = generate(&g);
    chk_mark_back(&lab->arena, mark);
    return any;
}

void chk_problems_float64(chk_lab *lab, uint32_t what, chk_visit visit, void *arg)
{
    const chk_mark mark = chk_mark_set(&lab->arena);
    generator g = {
        .lab = lab, .op = lab->op, .what = what, .visit = visit, .arg = arg, .dtype_mask = 1u << TN_F64};

    if (!generate(&g)) {
        g.dtype_mask = 1u << TN_F32;
        (void)generate(&g);
    }
    g.stop = false;
    g.train = true;
    if (what == CHK_PROBLEMS_FEW)
        (void)generate(&g);
    chk_mark_back(&lab->arena, mark);
}

static void problems_all(chk_lab *lab, uint32_t what, chk_visit visit, void *arg)
{
    if (!(lab->op->flags & TN_OP_BACKWARD) || !chk_problems_backward(lab, what, visit, arg))
        (void)chk_problems_of(lab, lab->op, what, visit, arg);
}

/* A kernel that declines all of them gets larger ones,
 * but for two processes that compare problems by number. */
void chk_problems(chk_lab *lab, uint32_t what, chk_visit visit, void *arg)
{
    const bool grows = lab->side.kernel && !chk_case_of(lab->env)->test->twin && what != CHK_PROBLEMS_EMPTY &&
                       what != CHK_PROBLEMS_HUGE && what != CHK_PROBLEMS_DOUBLED;
    atomic_uint_fast64_t *counted = &chk_case_of(lab->env)->counted;
    const uint64_t before = atomic_load(counted);

    lab->declined = false;
    problems_all(lab, what, visit, arg);
    for (lab->grow = lab->grow ? lab->grow : 1;
         grows && lab->declined && !*lab->absent && atomic_load(counted) == before && lab->grow < GROW_MAX;) {
        lab->grow *= GROW_STEP;
        problems_all(lab, what, visit, arg);
    }
    if (*lab->absent && !atomic_load(counted) && !chk_twin_is_second(lab->env))
        chk_skip(lab->env, "%s", lab->absent);
}

bool chk_infers_the_same(chk_lab *lab, const chk_problem *p, const chk_attrs *attrs)
{
    chk_facts *f = chk_take(&lab->arena, sizeof *f);
    chk_args args;
    tn_err err;

    f->args = p->f.args;
    chk_facts_unknown(f);
    memcpy(f->shape, p->f.shape, f->args.in_count * sizeof *f->shape);
    memcpy(f->dtype, p->f.dtype, f->args.in_count * sizeof *f->dtype);
    return !chk_infer_args(p->op, attrs, f->args.in_count, &args, &err) &&
           args.in_count == f->args.in_count && args.out_count == f->args.out_count &&
           !chk_infer_dtypes(p->op, attrs, f, &err) &&
           !chk_infer_shapes(p->op, attrs, p->flags & TN_NODE_TRAIN ? TN_INFER_TRAIN : 0, f, &err) &&
           chk_facts_equal(f, &p->f);
}
