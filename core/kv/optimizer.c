/*
 * Optimizers of the store: rows of a table, each an operator with its states, or a few lines (formula.c); no
 * code beyond the table, so that a name and numbers are all that a server needs. Names and defaults are
 * mxnet.optimizer's. With multi_precision a float32 copy of a weight of float16 or bfloat16 is its last
 * state, and is updated.
 */
#include "kv/formula.h"

#include <math.h>
#include <string.h>

#define PARAMS 8 /* that one optimizer has, at most */
#define LINES 5

#define MOMENTUM "s0 + * beta1 s0 * - 1 beta1 g"
#define VARIANCE "s1 + * beta2 s1 * - 1 beta2 square g"
#define LARS                                                                                                 \
    "b where * norm w norm grad / * eta norm w + + * rescale norm grad * wd norm w epsilon + * norm w 0 1"

typedef struct rule {
    const char *name, *when; /* when: this parameter is not 0; NULL: always. The first row that fits counts */
    const char *op;          /* NULL: lines */
    const char *lines[LINES];
    const char *params[PARAMS]; /* beside the common ones: attributes of `op`, in the order of the defaults */
    double defaults[PARAMS];
    uint32_t states;
    bool unbiased; /* lr is corrected for the first steps */
    bool divides;  /* by lr: a step whose lr is 0 leaves all as it is */
    bool whole;    /* norms: it takes arrays that are not cut */
    bool decayed;  /* lines: weight decay is added to the gradient before it is cut */
    bool first;    /* the state begins as the weight, else as zeros */
    double lr;
} rule;

/* `clip_…` -1: none. */
static const rule rules[] = {
    {.name = "sgd",
     .when = "momentum",
     .op = "sgd_mom_update",
     .params = {"momentum", "lazy_update"},
     .defaults = {0, 1},
     .states = 1,
     .lr = 0.01},
    {.name = "sgd",
     .op = "sgd_update",
     .params = {"momentum", "lazy_update"},
     .defaults = {0, 1},
     .lr = 0.01},
    {.name = "nag",
     .when = "momentum",
     .op = "nag_mom_update",
     .params = {"momentum"},
     .states = 1,
     .lr = 0.1},
    {.name = "nag", .op = "sgd_update", .params = {"momentum"}, .lr = 0.1},
    {.name = "adam",
     .op = "adam_update",
     .params = {"beta1", "beta2", "epsilon", "lazy_update"},
     .defaults = {0.9, 0.999, 1e-8, 1},
     .states = 2,
     .unbiased = true,
     .lr = 0.001},
    {.name = "signum",
     .when = "momentum",
     .op = "signum_update",
     .params = {"momentum", "wd_lh"},
     .defaults = {0.9, 0},
     .states = 1,
     .lr = 0.01},
    {.name = "signum", .op = "signsgd_update", .params = {"momentum"}, .defaults = {0.9}, .lr = 0.01},
    {.name = "rmsprop",
     .when = "centered",
     .op = "rmspropalex_update",
     .params = {"gamma1", "gamma2", "epsilon", "clip_weights", "centered"},
     .defaults = {0.9, 0.9, 1e-8, -1},
     .states = 3,
     .lr = 0.001},
    {.name = "rmsprop",
     .op = "rmsprop_update",
     .params = {"gamma1", "gamma2", "epsilon", "clip_weights", "centered"},
     .defaults = {0.9, 0.9, 1e-8, -1},
     .states = 1,
     .lr = 0.001},
    {.name = "ftrl",
     .op = "ftrl_update",
     .params = {"lamda1", "beta"},
     .defaults = {0.01, 1},
     .states = 2,
     .divides = true,
     .lr = 0.1},
    {.name = "adagrad",
     .lines = {"s0 + s0 square g", "w - w * lr + / g sqrt + s0 epsilon * wd w"},
     .params = {"epsilon"},
     .defaults = {1e-7},
     .states = 1,
     .lr = 0.01},
    {.name = "adadelta",
     .lines = {"s0 + * rho s0 * - 1 rho square g", "a * / sqrt + s1 epsilon sqrt + s0 epsilon g",
               "s1 + * rho s1 * - 1 rho square a", "w - w + a * wd w"},
     .params = {"rho", "epsilon"},
     .defaults = {0.9, 1e-5},
     .states = 2,
     .lr = 0.01},
    {.name = "adamax",
     .lines = {MOMENTUM, "s1 max * beta2 s1 abs g", "w - w * / lr - 1 beta1_t / s0 s1"},
     .params = {"beta1", "beta2"},
     .defaults = {0.9, 0.999},
     .states = 2,
     .decayed = true,
     .lr = 0.002},
    {.name = "nadam",
     .lines = {MOMENTUM, VARIANCE,
               "a + * / - 1 momentum_t - 1 schedule_t g * / momentum_next - 1 schedule_next s0",
               "w - w / * lr a + sqrt / s1 - 1 beta2_t epsilon"},
     .params = {"beta1", "beta2", "epsilon", "schedule_decay"},
     .defaults = {0.9, 0.999, 1e-8, 0.004},
     .states = 2,
     .decayed = true,
     .lr = 0.001},
    {.name = "ftml",
     .lines = {VARIANCE, "a * / - 1 beta1_t lr + sqrt / s1 - 1 beta2_t epsilon",
               "s2 - + * beta1 s2 * - 1 beta1 g * - a * beta1 s0 w", "s0 a", "w / * -1 s2 a"},
     .params = {"beta1", "beta2", "epsilon"},
     .defaults = {0.6, 0.999, 1e-8},
     .states = 3,
     .decayed = true,
     .divides = true,
     .lr = 0.0025},
    {.name = "dcasgd",
     .lines = {"a * -1 * lr + + g * wd w * lamda * square g - w s0", "s0 w", "w + w a"},
     .params = {"lamda"},
     .defaults = {0.04},
     .states = 1,
     .first = true,
     .lr = 0.01},
    {.name = "lamb",
     .lines = {MOMENTUM, VARIANCE, "a + / / s0 - 1 beta1_t + sqrt / s1 - 1 beta2_t epsilon * wd w",
               "b where * norm w norm a / norm w norm a + * norm w 0 1", "w - w * * lr a b"},
     .params = {"beta1", "beta2", "epsilon"},
     .defaults = {0.9, 0.999, 1e-6},
     .states = 2,
     .whole = true,
     .lr = 0.001},
    {.name = "lars",
     .when = "momentum",
     .lines = {LARS, "s0 - * momentum s0 * * lr b + g * wd w", "w + w s0"},
     .params = {"momentum", "eta", "epsilon"},
     .defaults = {0, 0.001, 0},
     .states = 1,
     .whole = true,
     .lr = 0.1},
    {.name = "lars",
     .lines = {LARS, "w - w * * lr b + g * wd w"},
     .params = {"momentum", "eta", "epsilon"},
     .defaults = {0, 0.001, 0},
     .whole = true,
     .lr = 0.1},
};

static const char *const common[] = {"lr", "wd", "rescale_grad", "clip_gradient", "multi_precision"};
enum { LR, WD, RESCALE, CLIP, MULTI };
enum { RULES = sizeof rules / sizeof *rules, COMMON = sizeof common / sizeof *common, RATES = 3 };

struct tni_kv_optimizer {
    tni_context *ctx;
    const rule *rule;
    double common[COMMON], params[PARAMS];
    uint64_t scheduled; /* nadam: the step whose product of momenta `schedule` is */
    double schedule;
};

static const rule *rule_named(const char *name)
{
    for (size_t i = 0; i < RULES; i++)
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    return NULL;
}

static tn_status name_unknown(const char *name)
{
    char text[192] = "";

    for (size_t i = 0; i < RULES; i++)
        if (!i || strcmp(rules[i].name, rules[i - 1].name) != 0) {
            strcat(text, i ? ", " : "");
            strcat(text, rules[i].name);
        }
    return tni_error(TN_E_KEY, "no optimizer \"%.80s\" for a store; there are %s", name, text);
}

/* Where a parameter's number lies; NULL: it has none of this name. */
static double *number_of(tni_kv_optimizer *o, const char *param)
{
    if (!strcmp(param, "learning_rate"))
        param = "lr";
    else if (!strcmp(param, "eps"))
        param = "epsilon";
    for (size_t i = 0; i < COMMON; i++)
        if (!strcmp(common[i], param))
            return &o->common[i];
    for (size_t i = 0; i < PARAMS && o->rule->params[i]; i++)
        if (!strcmp(o->rule->params[i], param))
            return &o->params[i];
    return NULL;
}

static tn_status number_set(tni_kv_optimizer *o, const char *param, const char *text, double value)
{
    double *at = number_of(o, param);

    if (!at)
        return tni_error(TN_E_ATTR, "optimizer %s has no parameter \"%.80s\"", o->rule->name, param);
    if (text && !tni_parse_f64(text, &value))
        return tni_error(TN_E_ATTR, "optimizer %s: %s = \"%.80s\" is no number", o->rule->name, param, text);
    if (!(fabs(value) <= 1e30))
        return tni_error(TN_E_ATTR, "optimizer %s: %s is %g, a number up to 1e30 is needed", o->rule->name,
                         param, value);
    *at = value;
    return TN_OK;
}

tn_status tni_kv_optimizer_set(tni_kv_optimizer *o, const char *param, double value)
{
    for (size_t i = 0; i < RATES; i++)
        if (!strcmp(common[i], param))
            return number_set(o, param, NULL, value);
    return tni_error(TN_E_ATTR, "optimizer %s: %.80s cannot be changed; lr, wd and rescale_grad can",
                     o->rule->name, param);
}

double tni_kv_optimizer_get(const tni_kv_optimizer *o, const char *param)
{
    const double *at = number_of((tni_kv_optimizer *)(uintptr_t)o, param); /* it is only read */

    return at ? *at : NAN;
}

tn_status tni_kv_factor_set(const char *param, double value, double *lr_mult, double *wd_mult)
{
    if (strcmp(param, "lr_mult") != 0 && strcmp(param, "wd_mult") != 0)
        return tni_error(TN_E_ATTR, "a key has lr_mult, wd_mult and steps, no %.80s", param);
    if (!(value >= 0 && value <= 1e30))
        return tni_error(TN_E_ATTR, "%s is %g, a number from 0 on is needed", param, value);
    *(*param == 'l' ? lr_mult : wd_mult) = value;
    return TN_OK;
}

/* The text of number `i` as an attribute; lists end at NULL. */
static void attrs_fill(const tni_kv_optimizer *o, char (*texts)[32], const char **names, const char **values,
                       size_t *count)
{
    tni_kv_optimizer *numbers = (tni_kv_optimizer *)(uintptr_t)o; /* they are only read */
    const tni_opdef *def;

    *count = 0;
    if (tni_opset_find(o->ctx->ops, o->rule->op, &def))
        return;
    for (size_t i = 0; i < COMMON + PARAMS; i++) {
        const char *name = i < COMMON ? common[i] : o->rule->params[i - COMMON];

        if (!name || tni_attr_index(def, name) < 0)
            continue; /* of the optimizer, but not of the operator */
        tni_format_f64(texts[*count], sizeof *texts, *number_of(numbers, name));
        names[*count] = name;
        values[*count] = texts[*count];
        ++*count;
    }
}

static tn_status site_make(const tni_kv_optimizer *o, tni_site **out)
{
    char texts[COMMON + PARAMS][32];
    const char *names[COMMON + PARAMS], *values[COMMON + PARAMS];
    size_t count;

    attrs_fill(o, texts, names, values, &count);
    return tni_site_create(o->ctx, o->rule->op, count, names, values, out);
}

tn_status tni_kv_optimizer_create(tni_context *c, const char *name, const char *const *params,
                                  tni_kv_optimizer **out)
{
    const rule *first = rule_named(name);
    tni_kv_optimizer *o;
    tni_site *site = NULL;
    tn_status st = TN_OK;

    if (!first)
        return name_unknown(name);
    if (!(o = tni_zalloc(sizeof *o)))
        return TN_E_NOMEM;
    o->ctx = c;
    o->rule = first;
    o->common[LR] = first->lr;
    o->common[RESCALE] = 1;
    o->common[CLIP] = -1;
    memcpy(o->params, first->defaults, sizeof o->params);
    for (; !st && params && *params; params += 2)
        st = params[1] ? number_set(o, params[0], params[1], 0)
                       : tni_error(TN_E_ATTR, "optimizer %s: %.80s has no value", name, params[0]);
    if (o->rule->when && *number_of(o, o->rule->when) == 0)
        o->rule++; /* the same optimizer without */
    if (!st && o->rule->op &&
        !(st = site_make(o, &site))) /* numbers that the operator refuses are told now */
        tni_site_release(site);
    if (st)
        tni_free(o);
    else
        *out = o;
    return st;
}

void tni_kv_optimizer_destroy(tni_kv_optimizer *o)
{
    tni_free(o);
}

const char *tni_kv_optimizer_name(const tni_kv_optimizer *o)
{
    return o->rule->name;
}

bool tni_kv_optimizer_whole(const tni_kv_optimizer *o)
{
    return o->rule->whole;
}

bool tni_kv_optimizer_widens(const tni_kv_optimizer *o, int32_t dtype)
{
    return o->common[MULTI] != 0 && (dtype == TN_F16 || dtype == TN_BF16);
}

uint32_t tni_kv_optimizer_states(const tni_kv_optimizer *o, int32_t dtype)
{
    return o->rule->states + tni_kv_optimizer_widens(o, dtype);
}

bool tni_kv_optimizer_lines(const tni_kv_optimizer *o)
{
    return !o->rule->op;
}

/* ---- a step ------------------------------------------------------------------------------------------ */

void tni_kv_param_fini(tni_kv_param_slot *s)
{
    for (size_t i = 0; i < TNI_KV_STATES; i++)
        tni_array_release(s->states[i]);
    tni_site_release(s->site);
    *s = (tni_kv_param_slot){.lr_mult = 1, .wd_mult = 1};
}

/* The float32 copy, if there is one, is the weight that the other states are like. */
static tn_status master_make(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight,
                             tni_array **out)
{
    tni_array **master = &s->states[o->rule->states];
    tn_status st;

    *out = weight;
    if (!tni_kv_optimizer_widens(o, weight->dtype))
        return TN_OK;
    if (!*master) {
        if ((st = tni_array_create(weight->storage->space, weight->storage->device, TN_F32, weight->ndim,
                                   weight->shape, "optimizer", master)) ||
            (st = tni_array_copy(weight, *master)))
            return st;
    }
    *out = *master;
    return TN_OK;
}

tn_status tni_kv_param_states(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight)
{
    tn_status st = master_make(o, s, weight, &weight);

    for (size_t i = 0; i < o->rule->states && !st; i++) {
        if (s->states[i])
            continue;
        st = o->rule->first ? tni_array_like(weight, "optimizer", &s->states[i])
                            : tni_array_filled(weight, 0, "optimizer", &s->states[i]);
        if (!st && o->rule->first)
            st = tni_array_copy(weight, s->states[i]);
    }
    return st;
}

tn_status tni_kv_param_assigned(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight)
{
    tni_array *master = o && tni_kv_optimizer_widens(o, weight->dtype) ? s->states[o->rule->states] : NULL;

    return master ? tni_array_copy(weight, master) : TN_OK;
}

/* lr as the operator has it at step `t`, from 1. */
static double rate_at(const tni_kv_optimizer *o, const tni_kv_param_slot *s, uint64_t t)
{
    const double lr = o->common[LR] * s->lr_mult;

    return o->rule->unbiased
               ? lr * sqrt(1 - pow(o->params[1], (double)t)) / (1 - pow(o->params[0], (double)t))
               : lr;
}

static tn_status rates_set(const tni_kv_optimizer *o, tni_kv_param_slot *s)
{
    const double now[RATES] = {rate_at(o, s, s->steps + 1), o->common[WD] * s->wd_mult, o->common[RESCALE]};
    tn_status st = TN_OK;

    for (size_t i = 0; i < RATES && !st; i++)
        if (now[i] != s->rates[i] &&
            !(st = tni_site_set(s->site, (uint32_t)tni_attr_index(s->site->def, common[i]),
                                tn_value_of_float(now[i]))))
            s->rates[i] = now[i];
    return st;
}

tn_status tni_kv_param_ready(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight)
{
    tn_status st;

    if (!s->site && o->rule->op) {
        if ((st = site_make(o, &s->site)))
            return st;
        for (size_t i = 0; i < RATES; i++)
            s->rates[i] = NAN;
    }
    return tni_kv_param_states(o, s, weight);
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static void number_give(tni_kv_formula *f, const char *name, double x)
{
    f->numbers[f->number_count].name = name;
    f->numbers[f->number_count++].x = x;
}

static void array_give(tni_kv_formula *f, const char *name, tni_array *a, bool kept)
{
    f->arrays[f->array_count].name = name;
    f->arrays[f->array_count].a = a;
    f->arrays[f->array_count++].kept = kept;
}

static double momentum_at(const tni_kv_optimizer *o, uint64_t t)
{
    return o->params[0] * (1 - 0.5 * pow(0.96, (double)t * o->params[3]));
}

/* nadam: its momenta, and their product up to this step. */
static void schedule_give(tni_kv_optimizer *o, tni_kv_formula *f, uint64_t t)
{
    const double next = momentum_at(o, t + 1);

    if (o->scheduled > t || !o->scheduled) {
        o->scheduled = 0;
        o->schedule = 1;
    }
    while (o->scheduled < t)
        o->schedule *= momentum_at(o, ++o->scheduled);
    number_give(f, "momentum_t", momentum_at(o, t));
    number_give(f, "momentum_next", next);
    number_give(f, "schedule_t", o->schedule);
    number_give(f, "schedule_next", o->schedule * next);
}

static void numbers_give(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_kv_formula *f)
{
    const double t = (double)(s->steps + 1), lr = rate_at(o, s, s->steps + 1);

    number_give(f, "lr", lr);
    number_give(f, "wd", o->common[WD] * s->wd_mult);
    number_give(f, "rescale", o->common[RESCALE]);
    number_give(f, "clip", o->common[CLIP]);
    for (size_t i = 0; i < PARAMS && o->rule->params[i]; i++) {
        const bool corrects = o->rule->when && o->rule->whole && !i && s->rates[0] > 0; /* lars */

        number_give(f, o->rule->params[i], corrects ? o->params[i] * lr / s->rates[0] : o->params[i]);
    }
    if (tni_kv_optimizer_get(o, "beta1") >= 0) {
        number_give(f, "beta1_t", pow(tni_kv_optimizer_get(o, "beta1"), t));
        number_give(f, "beta2_t", pow(tni_kv_optimizer_get(o, "beta2"), t));
    }
    if (!strcmp(o->rule->name, "nadam"))
        schedule_give((tni_kv_optimizer *)(uintptr_t)o, f, s->steps + 1);
    s->rates[0] = lr;
}

static tn_status lines_run(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight,
                           tni_array *grad)
{
    static const char *const states[] = {"s0", "s1", "s2"}, *const made[] = {"g", "a", "b"};
    tni_kv_formula f = {.ctx = o->ctx};
    tni_array *dense = NULL;
    tn_status st = TN_OK;

    if (grad->storage_type != TN_STORAGE_DENSE && !(st = tni_dense_give(o->ctx, grad, &dense)))
        grad = dense;
    array_give(&f, "w", weight, true);
    array_give(&f, "grad", grad, true);
    for (uint32_t i = 0; i < o->rule->states; i++)
        array_give(&f, states[i], s->states[i], true);
    for (uint32_t i = 0; i < sizeof made / sizeof *made; i++)
        array_give(&f, made[i], NULL, false);
    numbers_give(o, s, &f);
    if (!st)
        st = tni_kv_formula_run(&f, o->rule->decayed ? "g + * grad rescale * wd w" : "g * grad rescale");
    if (!st && o->common[CLIP] > 0)
        st = tni_kv_formula_run(&f, "g max min g clip - 0 clip");
    for (size_t i = 0; i < LINES && o->rule->lines[i] && !st; i++)
        st = tni_kv_formula_run(&f, o->rule->lines[i]);
    tni_kv_formula_fini(&f);
    tni_array_release(dense);
    return st;
}

/* ---- */

static tn_status operator_run(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight,
                              tni_array *grad)
{
    tni_array *in[2 + TNI_KV_STATES] = {weight, grad}, *out = weight;
    tn_status st = rates_set(o, s);

    memcpy(in + 2, s->states, sizeof s->states);
    return st ? st : tni_invoke(s->site, 2 + o->rule->states, in, 1, &out);
}

static tn_status weight_step(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight,
                             tni_array *grad)
{
    if (o->rule->divides && o->common[LR] * s->lr_mult == 0)
        return TN_OK;
    return (o->rule->op ? operator_run : lines_run)(o, s, weight, grad);
}

/* In float32; of rows, those that are there. */
static tn_status wide_make(const tni_kv_optimizer *o, tni_array *grad, tni_array *master, tni_array **out)
{
    static const char *const name = "dtype", *const text = "float32";
    uint32_t made = 0;
    tn_status st;

    if (grad->storage_type != TN_STORAGE_DENSE)
        return tni_invoke_text(o->ctx, "Cast", 1, &grad, 1, &name, &text, 1, out, &made);
    return (st = tni_array_like(master, "optimizer", out)) ? st : tni_array_copy(grad, *out);
}

tn_status tni_kv_optimizer_step(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight,
                                tni_array *grad)
{
    const bool widens = tni_kv_optimizer_widens(o, weight->dtype);
    tni_array *master = widens ? s->states[o->rule->states] : NULL, *wide = NULL;
    tn_status st;

    if (!master) {
        st = weight_step(o, s, weight, grad);
    } else {
        if (!(st = wide_make(o, grad, master, &wide)) && !(st = weight_step(o, s, master, wide)))
            st = tni_array_copy(master, weight);
        tni_array_release(wide);
    }
    if (!st)
        s->steps++;
    return st;
}

void tni_kv_states_copy(tni_kv_param_slot *s, uint32_t states, uint64_t from, void *memory, uint64_t bytes,
                        bool put)
{
    uint64_t at = 0;

    if (!put)
        memset(memory, 0, bytes);
    for (uint32_t i = 0; i <= states; i++) {
        char *data = i ? tni_array_data(s->states[i - 1]) : (char *)&s->steps;
        const uint64_t length = i ? tni_array_bytes(s->states[i - 1]) : sizeof s->steps;
        const uint64_t low = at > from ? at : from;
        const uint64_t high = at + length < from + bytes ? at + length : from + bytes;
        char *there = (char *)memory + (low - from);

        if (low < high && put)
            memcpy(data + (low - at), there, high - low);
        else if (low < high)
            memcpy(there, data + (low - at), high - low);
        at += length;
    }
}
