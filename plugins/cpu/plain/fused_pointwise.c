/*
 * Pointwise operators as one: the steps of the code run one after the other over a tile of elements, so that
 * what lies between them never leaves the first-level cache. Each step is planned by its operator's own
 * kernel and runs that kernel's loop; results between steps have their own data type. So the bits are those
 * of the operators one by one.
 */
#include "loops.h"
#include "tenon/plugin/op/fused.h"
#include "tenon/plugin/pointwise.h"

#define REGISTERS_MAX 12 /* results that live together */
#define STEADY_MAX 12    /* numbers and single elements that are spread over a tile once */
#define JOBS_MAX (TN_POINT_STEPS_MAX + TN_POINT_OUTPUTS_MAX)

/* Where an array of a job lies. */
#define IN_INPUT 0
#define IN_OUTPUT 1
#define IN_REGISTER 2

typedef struct place {
    uint8_t kind, index; /* IN_… */
} place;

typedef struct job { /* a step, or the copy of a result to an output that it was not made in */
    tn_plan plan;    /* of the operator's kernel */
    uint32_t inputs, operands;
    int32_t scalar;
    place in[TNCPU_POINT_IN], out;
    uint8_t steady[TNCPU_POINT_IN]; /* per operand: its tile, and 1; 0: none */
    uint8_t late;                   /* bits of operands that have none, and are spread anew for each tile */
    bool add;
    const tn_point_step *step; /* NULL: a copy */
    tncpu_loop bare;           /* it runs over the arrays themselves; NULL: tncpu_point_piece_run */
    const tn_value *attrs;     /* NULL: the step's */
} job;

typedef struct fused_plan {
    tn_point_code code;
    int64_t count;
    uint32_t job_count, steady_count, register_bytes;
    job job[JOBS_MAX];
} fused_plan;

typedef struct planner {
    void *plugin;
    const tn_node *node;
    fused_plan *p;
    tn_tensor result[TN_POINT_STEPS_MAX];
    place at[TN_POINT_STEPS_MAX];
    uint32_t last[TN_POINT_STEPS_MAX]; /* the last job that reads a result */
    int64_t stride[TN_NDIM_MAX];       /* of all results */
} planner;

#define TNCPU_FAMILY(name) extern const tn_kernel *const tncpu_family_##name[];
#include "kernels.list"
#undef TNCPU_FAMILY

static const tn_kernel *const *const families[] = {
#define TNCPU_FAMILY(name) tncpu_family_##name,
#include "kernels.list"
#undef TNCPU_FAMILY
};

/* What bodies call and has no kernel with a loop. */
static const tncpu_point own_rows[] = {{"where", TNCPU_WHERE, 3, TNCPU_NO_SCALAR}};

/* ---- planning --------------------------------------------------------------------------------- */

static const tn_kernel *kernel_find(const char *op)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const tn_kernel *const *k = families[f]; *k; k++)
            if ((*k)->flags & TN_KERNEL_POINTWISE && !strcmp((*k)->op, op))
                return *k;
    return NULL;
}

/* Plans operator `op` over `in` into `out`. */
static tn_status job_plan(const planner *w, job *j, const char *op, const tn_point_step *s,
                          const tn_tensor *const *in, const tn_tensor *out, tn_err *err)
{
    static const tn_value no_attrs[1];
    const tn_kernel *k = kernel_find(op);
    const uint8_t modes[1] = {j->add ? TN_MODE_ADD : TN_MODE_WRITE};
    int32_t inplace[1] = {-1};
    tn_node node = *w->node;
    tn_status st;

    node.op = op;
    node.attrs = s ? s->attrs : no_attrs;
    node.attr_count = s ? s->attr_count : 0;
    node.in_count = j->inputs;
    node.out_count = 1;
    node.threads = 1;
    node.in = in;
    node.out = &out;
    node.modes = modes;
    node.forward = NULL;
    j->step = s;
    j->plan = (tn_plan){.struct_size = sizeof j->plan, .threads = 1, .inplace = inplace};
    if (k)
        st = k->prepare(w->plugin, &node, &j->plan, err);
    else
        st = tncpu_point_prepare(own_rows, sizeof own_rows / sizeof *own_rows, w->plugin, &node, &j->plan,
                                 err);
    j->plan.inplace = NULL;
    if (!st)
        j->operands = tncpu_point_operands(&j->plan, &j->scalar);
    return st;
}

/* The output that a result is made in; -1: none. */
static int32_t output_of(const planner *w, uint32_t step)
{
    const tn_node *n = w->node;

    for (uint32_t o = 0; o < n->out_count; o++)
        if (w->p->code.output[o] == TN_POINT_RESULT + step && n->modes[o] == TN_MODE_WRITE &&
            tncpu_dense(n->out[o]))
            return (int32_t)o;
    return -1;
}

/* Operands are inputs of the whole, or results, which have the output's shape. */
static tn_status step_plan(planner *w, uint32_t index, tn_err *err)
{
    const tn_point_step *s = &w->p->code.step[index];
    const tn_tensor *in[TN_POINT_OPERANDS_MAX];
    job *j = &w->p->job[w->p->job_count++];
    const int32_t out = output_of(w, index);

    for (uint32_t k = 0; k < s->operand_count; k++) {
        const uint32_t v = s->operand[k];

        if (v < TN_POINT_RESULT) {
            in[k] = w->node->in[v];
            j->in[k] = (place){IN_INPUT, (uint8_t)v};
        } else {
            in[k] = &w->result[v - TN_POINT_RESULT];
            j->in[k] = w->at[v - TN_POINT_RESULT];
            w->last[v - TN_POINT_RESULT] = w->p->job_count - 1;
        }
    }
    j->inputs = s->operand_count;
    w->result[index] = *w->node->out[0];
    w->result[index].stride = w->stride;
    w->result[index].dtype = s->dtype;
    w->at[index] = out >= 0 ? (place){IN_OUTPUT, (uint8_t)out} : (place){IN_REGISTER, (uint8_t)index};
    w->last[index] = w->p->job_count - 1;
    j->out = w->at[index];
    return job_plan(w, j, s->op, s, in, &w->result[index], err);
}

/* Outputs that are added to, strided, or hold what another output holds already. */
static tn_status copies_plan(planner *w, uint32_t index, tn_err *err)
{
    const tn_node *n = w->node;
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < n->out_count && !st; o++) {
        const tn_tensor *in[] = {&w->result[index]};
        job *j;

        if (w->p->code.output[o] != TN_POINT_RESULT + index || n->modes[o] == TN_MODE_NONE ||
            (w->at[index].kind == IN_OUTPUT && w->at[index].index == o))
            continue;
        j = &w->p->job[w->p->job_count++];
        j->inputs = 1;
        j->add = n->modes[o] == TN_MODE_ADD;
        j->in[0] = w->at[index];
        j->out = (place){IN_OUTPUT, (uint8_t)o};
        w->last[index] = w->p->job_count - 1;
        st = job_plan(w, j, "_copy", NULL, in, n->out[o], err);
    }
    return st;
}

/* Results get registers in the order of the jobs; one is free for the job that reads it last. */
static tn_status registers_assign(planner *w, tn_err *err)
{
    uint32_t until[REGISTERS_MAX] = {0}, bytes = 4; /* until: the last job that reads what is there, and 1 */
    uint8_t of[TN_POINT_STEPS_MAX];

    for (uint32_t i = 0; i < w->p->job_count; i++) {
        job *j = &w->p->job[i];
        uint8_t r = 0;

        for (uint32_t k = 0; k < j->inputs; k++)
            if (j->in[k].kind == IN_REGISTER)
                j->in[k].index = of[j->in[k].index];
        if (j->out.kind != IN_REGISTER)
            continue;
        while (r < REGISTERS_MAX && until[r] > i + 1)
            r++;
        if (r == REGISTERS_MAX)
            return tn_fail(err, TN_E_UNSUPPORTED, "more than 12 results that live together");
        until[r] = w->last[j->out.index] + 1;
        of[j->out.index] = r;
        bytes = tn_dtype_bytes(w->result[j->out.index].dtype) > 4 ? 8 : bytes;
        j->out.index = r;
    }
    w->p->register_bytes = bytes * TNCPU_TILE + 64; /* they begin in different sets of the cache */
    return TN_OK;
}

/* The jobs read input `i` element by element, and none of them behind the one that makes output `o`. */
static bool read_before(const fused_plan *p, uint32_t i, uint32_t o)
{
    bool made = false, fits = true;

    for (uint32_t k = 0; k < p->job_count; k++) {
        const job *j = &p->job[k];

        for (uint32_t a = 0; a < j->inputs; a++)
            fits = fits && (j->in[a].kind != IN_INPUT || j->in[a].index != i ||
                            (!made && a < TNCPU_POINT_IN && tncpu_point_direct(&j->plan, a)));
        made = made || (j->out.kind == IN_OUTPUT && j->out.index == o);
    }
    return fits;
}

static void inplace_find(const planner *w, tn_plan *plan)
{
    const tn_node *n = w->node;
    uint32_t taken = 0;

    for (uint32_t o = 0; o < n->out_count; o++)
        for (uint32_t i = 0; i < n->in_count && plan->inplace[o] < 0; i++)
            if (!(taken >> i & 1u) && n->in[i]->dtype == n->out[o]->dtype && n->modes[o] == TN_MODE_WRITE &&
                tncpu_same_shape(n->in[i], n->out[o]) && tncpu_dense(n->out[o]) && read_before(w->p, i, o)) {
                plan->inplace[o] = (int32_t)i;
                taken |= 1u << i;
            }
}

static tn_status code_check(const tn_node *n, fused_plan *p, tn_err *err)
{
    const char *text = tn_value_pointer(n->attrs[TN_fused_pointwise_program]);
    int32_t dtypes[TN_POINT_INPUTS_MAX];

    if (tn_point_read(text, &p->code, NULL))
        return tn_fail(err, TN_E_ATTR, "program cannot be read");
    if (p->code.input_count > n->in_count || p->code.output_count != n->out_count ||
        n->in_count > TN_POINT_INPUTS_MAX)
        return tn_fail(err, TN_E_ATTR, "program is for another number of inputs or outputs");
    for (uint32_t i = 0; i < n->in_count; i++)
        dtypes[i] = n->in[i]->dtype;
    tn_point_dtypes(&p->code, dtypes);
    for (uint32_t o = 0; o < n->out_count; o++)
        if (!tncpu_same_shape(n->out[o], n->out[0]) ||
            n->out[o]->dtype != p->code.step[p->code.output[o] - TN_POINT_RESULT].dtype)
            return tn_fail(err, TN_E_SHAPE,
                           "an output has another shape than the first, or another data type "
                           "than the program says");
    return TN_OK;
}

static void operands_plan(fused_plan *p, job *j)
{
    uint8_t same[TNCPU_POINT_IN];

    for (uint32_t k = 0; k < j->operands; k++) {
        same[k] = (int32_t)k == j->scalar || tncpu_point_single(&j->plan, k);
        if (same[k] && p->steady_count < STEADY_MAX)
            j->steady[k] = (uint8_t)++p->steady_count;
        else if (same[k])
            j->late |= (uint8_t)(1u << k);
    }
    j->bare = j->add ? NULL : tncpu_point_bare(&j->plan, same, &j->attrs);
}

static tn_status jobs_plan(planner *w, tn_plan *plan, tn_err *err)
{
    int64_t step = 1;
    double ns = 0;
    tn_status st = code_check(w->node, w->p, err);

    if (st)
        return st;
    for (int32_t d = w->node->out[0]->ndim; d-- > 0;) {
        w->stride[d] = step;
        step *= w->node->out[0]->shape[d];
    }
    w->p->count = tn_tensor_count(w->node->out[0]);
    for (uint32_t s = 0; s < w->p->code.step_count && !st; s++)
        if (!(st = step_plan(w, s, err)))
            st = copies_plan(w, s, err);
    if (st || (st = registers_assign(w, err)))
        return st;
    for (uint32_t i = 0; i < w->p->job_count; i++) {
        job *j = &w->p->job[i];

        ns += (double)j->plan.est_ns - 8.0;
        operands_plan(w->p, j);
    }
    inplace_find(w, plan);
    tncpu_plan_work(w->node, plan, 20.0 + ns);
    return TN_OK;
}

static void fused_release(tn_plan *plan)
{
    fused_plan *p = plan->state;

    for (uint32_t i = 0; p && i < p->job_count; i++)
        tncpu_release(&p->job[i].plan);
    tncpu_release(plan);
}

static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    planner w = {.plugin = plugin, .node = node};
    tn_status st = tncpu_state(plugin, plan, sizeof *w.p, err);

    if (st)
        return st;
    w.p = plan->state;
    if ((st = jobs_plan(&w, plan, err)))
        fused_release(plan);
    return st;
}

/* ---- running ---------------------------------------------------------------------------------- */

typedef struct fused_call {
    const fused_plan *p;
    const tn_exec *x;
} fused_call;

typedef struct array { /* of a job; of a steady operand or a register each tile has the same elements */
    char *base;
    int64_t step; /* bytes of an element; 0: the same */
} array;

typedef struct worker { /* one part of the elements */
    const fused_call *call;
    char *registers, *steady;
    tncpu_tile *late; /* per operand of the job that runs */
    tn_value attrs[JOBS_MAX][TN_POINT_ATTRS_MAX];
    array in[JOBS_MAX][TNCPU_POINT_IN], out[JOBS_MAX]; /* `in`: per operand of a bare job, per input else */
} worker;

static void *steady_at(const worker *w, uint8_t index)
{
    return w->steady + (index - 1u) * (sizeof(tncpu_tile) + 64);
}

static inline array array_at(const worker *w, place at)
{
    const tn_tensor *t = at.kind == IN_INPUT    ? w->call->x->in[at.index]
                         : at.kind == IN_OUTPUT ? w->call->x->out[at.index]
                                                : NULL;

    return t ? (array){t->data, (int64_t)tn_dtype_bytes(t->dtype)}
             : (array){w->registers + (size_t)at.index * w->call->p->register_bytes, 0};
}

static uint32_t input_of(const job *j, uint32_t operand)
{
    return j->scalar >= 0 && (int32_t)operand > j->scalar ? operand - 1 : operand;
}

/* Operand `k` of job `i`, which is the same for all positions, over a tile. */
static void spread(const worker *w, uint32_t i, uint32_t k, int64_t n, void *tile)
{
    const job *j = &w->call->p->job[i];
    const void *in = (int32_t)k == j->scalar ? NULL : w->call->x->in[j->in[input_of(j, k)].index]->data;

    (void)tncpu_point_steady(&j->plan, k, w->attrs[i], in, n, tile);
}

/* What is the same for all tiles. */
static void job_bind(worker *w, uint32_t i, int64_t n)
{
    const job *j = &w->call->p->job[i];

    for (uint32_t a = 0; j->step && a < j->step->attr_count; a++)
        w->attrs[i][a] =
            j->step->run[a] == TN_POINT_NUMBER ? j->step->attrs[a] : w->call->x->attrs[j->step->run[a]];
    for (uint32_t k = 0; k < (j->bare ? j->operands : j->inputs) && k < TNCPU_POINT_IN; k++)
        if (!j->bare || !(j->steady[k] || j->late >> k & 1u))
            w->in[i][k] = array_at(w, j->in[j->bare ? input_of(j, k) : k]);
    for (uint32_t k = 0; k < j->operands; k++) {
        const bool late = j->late >> k & 1u;

        if (j->steady[k])
            spread(w, i, k, n, steady_at(w, j->steady[k]));
        if (j->bare && (late || j->steady[k]))
            w->in[i][k] = (array){late ? (char *)&w->late[k] : steady_at(w, j->steady[k]), 0};
    }
    w->out[i] = array_at(w, j->out);
}

static void piece_run(const worker *w, uint32_t i, int64_t begin, int64_t n)
{
    const job *j = &w->call->p->job[i];
    tncpu_point_piece t = {.n = n, .attrs = w->attrs[i], .add = j->add, .out = w->out[i].base};

    for (uint32_t k = 0; k < j->inputs && k < TNCPU_POINT_IN; k++) {
        t.in[k] = w->in[i][k].base;
        t.in_at[k] = w->in[i][k].step ? begin : 0;
    }
    for (uint32_t k = 0; k < j->operands; k++)
        t.steady[k] = j->steady[k] ? steady_at(w, j->steady[k]) : NULL;
    t.out_at = w->out[i].step ? begin : 0;
    tncpu_point_piece_run(&j->plan, &t);
}

static void tile_run(const worker *w, int64_t begin, int64_t n)
{
    for (uint32_t i = 0; i < w->call->p->job_count; i++) {
        const job *j = &w->call->p->job[i];
        const void *in[TNCPU_POINT_IN];

        if (!j->bare) {
            piece_run(w, i, begin, n);
            continue;
        }
        for (uint32_t k = 0; k < j->operands; k++) {
            if (j->late >> k & 1u)
                spread(w, i, k, n, &w->late[k]);
            in[k] = w->in[i][k].base + begin * w->in[i][k].step;
        }
        j->bare(w->out[i].base + begin * w->out[i].step, in, n, j->attrs ? j->attrs : w->attrs[i]);
    }
}

static void fused_part(void *arg, int64_t begin, int64_t end)
{
    _Alignas(64) char registers[REGISTERS_MAX * (sizeof(tncpu_tile) + 64)];
    _Alignas(64) char steady[STEADY_MAX * (sizeof(tncpu_tile) + 64)];
    tncpu_tile late[TNCPU_POINT_IN];
    worker w;

    w.call = arg;
    w.late = late;
    w.registers = registers;
    w.steady = steady;
    for (uint32_t i = 0; i < w.call->p->job_count; i++)
        job_bind(&w, i, end - begin < TNCPU_TILE ? end - begin : TNCPU_TILE);
    for (int64_t at = begin; at < end; at += TNCPU_TILE)
        tile_run(&w, at, end - at < TNCPU_TILE ? end - at : TNCPU_TILE);
}

static tn_status fused_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    fused_call call = {plan->state, x};

    (void)err;
    tncpu_for(plan, x, call.p->count, TNCPU_TILE, fused_part, &call);
    return TN_OK;
}

const tn_kernel *const tncpu_family_fused_pointwise[] = {
    &(const tn_kernel)TNCPU_KERNEL_RANKED("_fused_pointwise", "plain", 64, tncpu_most,
                                          TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, fused_prepare, fused_run,
                                          fused_release),
    NULL,
};
