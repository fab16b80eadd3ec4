/*
 * Optimizers of the store: rows of a table, each an operator with its states; no code beyond the table, so
 * that a name and numbers are all that a server needs. Names and defaults are mxnet.optimizer's.
 */
#include "kv/kv.h"

#include <math.h>
#include <string.h>

#define PARAMS 8 /* that one optimizer has, at most */

typedef struct rule {
    const char *name, *when; /* when: this parameter is not 0; NULL: always. The first row that fits counts */
    const char *op;
    const char *params[PARAMS]; /* beside the common ones: attributes of `op`, in the order of the defaults */
    double defaults[PARAMS];
    uint32_t states;
    bool unbiased; /* lr is corrected for the first steps */
    bool divides;  /* by lr: a step whose lr is 0 leaves all as it is */
    bool whole;    /* norms: it takes arrays that are not cut */
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
};

static const char *const common[] = {"lr", "wd", "rescale_grad", "clip_gradient"};
enum { RULES = sizeof rules / sizeof *rules, COMMON = sizeof common / sizeof *common, RATES = 3 };

struct tni_kv_optimizer {
    tni_context *ctx;
    const rule *rule;
    double common[COMMON], params[PARAMS];
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
    char text[128] = "";

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
    o->common[0] = first->lr;
    o->common[2] = 1;
    o->common[3] = -1;
    memcpy(o->params, first->defaults, sizeof o->params);
    for (; !st && params && *params; params += 2)
        st = params[1] ? number_set(o, params[0], params[1], 0)
                       : tni_error(TN_E_ATTR, "optimizer %s: %.80s has no value", name, params[0]);
    if (o->rule->when && *number_of(o, o->rule->when) == 0)
        o->rule++;                          /* the same optimizer without */
    if (!st && !(st = site_make(o, &site))) /* numbers that the operator refuses are told now */
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

uint32_t tni_kv_optimizer_states(const tni_kv_optimizer *o)
{
    return o->rule->states;
}

/* ---- a step ------------------------------------------------------------------------------------------ */

void tni_kv_param_fini(tni_kv_param_slot *s)
{
    for (size_t i = 0; i < TNI_KV_STATES; i++)
        tni_array_release(s->states[i]);
    tni_site_release(s->site);
    *s = (tni_kv_param_slot){.lr_mult = 1, .wd_mult = 1};
}

tn_status tni_kv_param_states(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < o->rule->states && !st; i++)
        if (!s->states[i])
            st = tni_array_filled(weight, 0, "optimizer", &s->states[i]);
    return st;
}

/* lr as the operator has it at step `t`, from 1. */
static double rate_at(const tni_kv_optimizer *o, const tni_kv_param_slot *s, uint64_t t)
{
    const double lr = o->common[0] * s->lr_mult;

    return o->rule->unbiased
               ? lr * sqrt(1 - pow(o->params[1], (double)t)) / (1 - pow(o->params[0], (double)t))
               : lr;
}

static tn_status rates_set(const tni_kv_optimizer *o, tni_kv_param_slot *s)
{
    const double now[RATES] = {rate_at(o, s, s->steps + 1), o->common[1] * s->wd_mult, o->common[2]};
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

    if (!s->site) {
        if ((st = site_make(o, &s->site)))
            return st;
        for (size_t i = 0; i < RATES; i++)
            s->rates[i] = NAN;
    }
    return tni_kv_param_states(o, s, weight);
}

tn_status tni_kv_optimizer_step(const tni_kv_optimizer *o, tni_kv_param_slot *s, tni_array *weight,
                                tni_array *grad)
{
    tni_array *in[2 + TNI_KV_STATES] = {weight, grad}, *out = weight;
    tn_status st = rates_set(o, s);

    if (st)
        return st;
    memcpy(in + 2, s->states, sizeof s->states);
    if (!(o->rule->divides && s->rates[0] == 0))
        st = tni_invoke(s->site, 2 + o->rule->states, in, 1, &out);
    if (!st)
        s->steps++;
    return st;
}
