/*
 * Optimizers: how each updates a parameter, by an operator or by formulas of the weight w, the gradient g
 * and the states s0, s1, s2. Meanings and defaults are those of mxnet.optimizer 1.9.1; no state is beside
 * the arrays, since what depends on the step follows from its number. Two differ where MXNet follows an
 * accident: nag's momentum decays the old weight (MXNet's kernel in place reads the one it has just
 * written), nadam's schedule advances once a step (there once for each parameter).
 */
#include "optimizers.h"

#include "formula.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER(name)                                                                                         \
    {                                                                                                        \
#name, offsetof(tn_trainer_options, name)                                                            \
    }

/* Options by name, for attributes of operators and in formulas. */
static const struct {
    const char *name;
    size_t at;
} numbers[] = {
    NUMBER(momentum),    NUMBER(beta1),        NUMBER(beta2),  NUMBER(epsilon), NUMBER(gamma1),
    NUMBER(gamma2),      NUMBER(clip_weights), NUMBER(wd_lh),  NUMBER(rho),     NUMBER(schedule_decay),
    NUMBER(lamda),       NUMBER(clip),         NUMBER(lamda1), NUMBER(beta),    NUMBER(eta),
    NUMBER(lower_bound), NUMBER(upper_bound),
};

#define LARS                                                                                                 \
    "r := where(adapts * norm(w) * norm(grad) > 0, "                                                         \
    "eta * norm(w) / (rescale * norm(grad) + wd * norm(w) + epsilon), norm(w) * 0 + 1)"
#define MOMENTUM "s0 := beta1 * s0 + (1 - beta1) * g"
#define VARIANCE "s1 := beta2 * s1 + (1 - beta2) * square(g)"
/* The weight's norm within bounds; how long a step along `d` is beside it. */
#define BOUNDED "n := max(min(norm(w), upper_bound), lower_bound)"
#define TRUST "where(n * norm(d) > 0, n / norm(d), n * 0 + 1)"

/* Rows of one name: the first whose `when` is met. */
/* clang-format off */
static const tnn_rule rules[] = {
    {.name = "sgd", .when = "momentum", .op = "sgd_mom_update", .many = "multi_sgd_mom_update",
     .attrs = {"momentum"}, .states = 1, .lr = 0.01},
    {.name = "sgd", .op = "sgd_update", .many = "multi_sgd_update", .lr = 0.01},
    {.name = "nag", .when = "momentum", .op = "nag_mom_update", .attrs = {"momentum"}, .states = 1,
     .lr = 0.01},
    {.name = "nag", .op = "sgd_update", .many = "multi_sgd_update", .lr = 0.01},
    {.name = "adam", .op = "adam_update", .attrs = {"beta1", "beta2", "epsilon"}, .states = 2, .lr = 0.001,
     .epsilon = 1e-8, .unbiased = true},
    {.name = "signum", .when = "momentum", .op = "signum_update", .attrs = {"momentum", "wd_lh"}, .states = 1,
     .lr = 0.01},
    {.name = "signum", .op = "signsgd_update", .lr = 0.01},
    {.name = "rmsprop", .when = "centered", .op = "rmspropalex_update",
     .attrs = {"gamma1", "gamma2", "epsilon", "clip_weights"}, .states = 3, .lr = 0.001, .epsilon = 1e-8},
    {.name = "rmsprop", .op = "rmsprop_update", .attrs = {"gamma1", "epsilon", "clip_weights"}, .states = 1,
     .lr = 0.001, .epsilon = 1e-8},
    {.name = "adagrad", .attrs = {"epsilon"}, .states = 1, .lr = 0.01, .epsilon = 1e-7,
     .formulas = {"s0 := s0 + square(g)", "w := w - lr * (g / sqrt(s0 + epsilon) + wd * w)"}},
    {.name = "adadelta", .attrs = {"rho", "epsilon"}, .states = 2, .lr = 0.01, .epsilon = 1e-5,
     .formulas = {"s0 := rho * s0 + (1 - rho) * square(g)",
                  "d := sqrt(s1 + epsilon) / sqrt(s0 + epsilon) * g",
                  "s1 := rho * s1 + (1 - rho) * square(d)", "w := w - (d + wd * w)"}},
    {.name = "adamax", .attrs = {"beta1", "beta2"}, .states = 2, .lr = 0.002, .decayed = true,
     .formulas = {MOMENTUM, "s1 := max(beta2 * s1, abs(g))", "w := w - lr / (1 - beta1_t) * (s0 / s1)"}},
    {.name = "nadam", .attrs = {"beta1", "beta2", "epsilon", "schedule_decay"}, .states = 2, .lr = 0.001,
     .epsilon = 1e-8, .decayed = true,
     .formulas = {MOMENTUM, VARIANCE,
                  "d := (1 - momentum_t) / (1 - schedule_t) * g + momentum_next / (1 - schedule_next) * s0",
                  "w := w - lr * d / (sqrt(s1 / (1 - beta2_t)) + epsilon)"}},
    {.name = "ftrl", .op = "ftrl_update", .attrs = {"lamda1", "beta"}, .states = 2, .lr = 0.1,
     .divides = true},
    {.name = "ftml", .attrs = {"beta1", "beta2", "epsilon"}, .states = 3, .lr = 0.01, .epsilon = 1e-8,
     .beta1 = 0.6, .decayed = true,
     .divides = true,
     .formulas = {VARIANCE,
                  "d := (1 - beta1_t) / lr * (sqrt(s1 / (1 - beta2_t)) + epsilon)",
                  "s2 := beta1 * s2 + (1 - beta1) * g - (d - beta1 * s0) * w", "s0 := d", "w := -s2 / d"}},
    {.name = "lamb", .states = 2, .lr = 0.001, .epsilon = 1e-6, .corrects = true,
     .formulas = {MOMENTUM, VARIANCE,
                  "d := s0 / (1 - beta1_t) / (sqrt(s1 / (1 - beta2_t)) + epsilon) + wd * w", BOUNDED,
                  "r := " TRUST, "w := w - lr * d * r"}},
    {.name = "lans", .states = 2, .lr = 0.001, .epsilon = 1e-6, .unit = true,
     .formulas = {MOMENTUM, VARIANCE, "v := sqrt(s1 / (1 - beta2_t)) + epsilon", BOUNDED,
                  "d := s0 / (1 - beta1_t) / v + wd * w", "w := w - lr * beta1 * d * " TRUST,
                  "d := g / v + wd * w", "w := w - lr * (1 - beta1) * d * " TRUST}},
    {.name = "adamw", .states = 2, .lr = 0.001, .epsilon = 1e-6, .unbiased = true, .corrects = true,
     .formulas = {MOMENTUM, VARIANCE, "w := w - lr * (s0 / (sqrt(s1) + epsilon) + wd * w)"}},
    {.name = "adabelief", .states = 2, .lr = 0.001, .epsilon = 1e-6, .unbiased = true, .corrects = true,
     .decayed = true,
     .formulas = {MOMENTUM, "s1 := beta2 * s1 + (1 - beta2) * square(g - s0) + epsilon",
                  "w := w - lr * s0 / (sqrt(s1) + epsilon)"}},
    {.name = "dcasgd", .attrs = {"lamda"}, .states = 1, .lr = 0.01, .first = true,
     .formulas = {"d := -lr * (g + wd * w + lamda * square(g) * (w - s0))", "s0 := w", "w := w + d"}},
    {.name = "lars", .when = "momentum", .states = 1, .lr = 0.01,
     .formulas = {LARS, "s0 := momentum * s0 - lr * r * (g + wd * w)", "w := w + s0"}},
    {.name = "lars", .lr = 0.01, .formulas = {LARS, "w := w - lr * r * (g + wd * w)"}},
    {.name = "lbsgd", .states = 2, .lr = 0.01, .gathers = true,
     .formulas = {"r := follows * max(min(sqrt(square(norm(w)) / (square(norm(grad)) + "
                  "wd * square(norm(w)) + 1e-18)), 100), 0.01) + (1 - follows) * rise",
                  "s0 := momentum * s0 - lr * r * (g + wd * w)", "w := w + s0", "s1 := s1 * 0"}},
    {.name = "sgld", .lr = 0.01, .formulas = {"w := w - lr / 2 * (g + wd * w) + sqrt(lr) * noise(w)"}},
    {.name = "groupadagrad", .states = 1, .lr = 0.01, .epsilon = 1e-5, .rows = true,
     .formulas = {"s0 := s0 + mean_last(square(g))", "w := w - lr * g / sqrt(s0 + epsilon)"}},
};
/* clang-format on */

enum { RULES = sizeof rules / sizeof *rules, NUMBERS = sizeof numbers / sizeof *numbers };

static double *number_at(tn_trainer_options *o, const char *name)
{
    for (size_t i = 0; i < NUMBERS; i++)
        if (!strcmp(numbers[i].name, name))
            return (double *)(void *)((char *)o + numbers[i].at);
    return NULL;
}

static bool met(tn_trainer_options *o, const char *when)
{
    return !when || (strcmp(when, "centered") ? *number_at(o, when) != 0 : o->centered != 0);
}

static void fill(double *number, double otherwise)
{
    *number = *number != 0 ? *number : otherwise;
}

static const char *const strategies[] = {"linear", "power2", "sqrt", "lars", NULL};

static tn_status strategy_of(tn_app *app, tn_trainer_options *o)
{
    size_t i = 0;

    while (o->strategy && strategies[i] && strcmp(o->strategy, strategies[i]) != 0)
        i++;
    if (!strategies[i])
        return tnn_unknown(app, "strategy", o->strategy, strategies);
    o->strategy = strategies[i];
    return TN_OK;
}

/* How often the rate of lbsgd is taken at step `t`, from 1; not by norms. */
static double rise_at(const tn_trainer_options *o, int64_t t)
{
    const double all = (double)o->warmup_epochs * (double)o->epoch_updates, most = (double)o->batch_scale;
    const double part = (double)t / all;

    if (part >= 1)
        return most;
    if (all <= 1)
        return 1;
    return 1 + (most - 1) * (!strcmp(o->strategy, "linear")   ? part
                             : !strcmp(o->strategy, "power2") ? part * part
                                                              : sqrt(part));
}

const tnn_rule *tnn_rule_of(tn_app *app, tn_trainer_options *o)
{
    const char *names[RULES + 1] = {NULL};
    const tnn_rule *rule = NULL;
    size_t count = 0;

    for (size_t i = 0; i < RULES; i++) {
        if (!count || strcmp(names[count - 1], rules[i].name) != 0)
            names[count++] = rules[i].name;
        if (!rule && !strcasecmp(rules[i].name, o->optimizer) && met(o, rules[i].when))
            rule = &rules[i];
    }
    if (!rule) {
        (void)tnn_unknown(app, "optimizer", o->optimizer, names);
        return NULL;
    }
    fill(&o->lr, rule->lr);
    fill(&o->beta1, rule->beta1 > 0 ? rule->beta1 : 0.9);
    fill(&o->beta2, 0.999);
    fill(&o->gamma1, 0.9);
    fill(&o->gamma2, 0.9);
    fill(&o->rho, 0.9);
    fill(&o->epsilon, rule->epsilon);
    fill(&o->schedule_decay, 0.004);
    fill(&o->lamda, 0.04);
    fill(&o->lamda1, 0.01);
    fill(&o->beta, 1);
    fill(&o->eta, 0.001);
    fill(&o->upper_bound, 1e30);
    if (o->no_bias_correction && !rule->corrects) {
        (void)tnn_fail(app, TN_E_ARG, "trainer at %s:%d: optimizer %s has no .no_bias_correction",
                       o->file ? o->file : "?", o->line, rule->name);
        return NULL;
    }
    o->batch_scale = o->batch_scale ? o->batch_scale : 1;
    o->warmup_epochs = o->warmup_epochs ? o->warmup_epochs : 5;
    o->epoch_updates = o->epoch_updates ? o->epoch_updates : 32;
    if (strategy_of(app, o))
        return NULL;
    o->optimizer = rule->name;
    return rule;
}

size_t tnn_rule_attrs(const tnn_rule *rule, tn_trainer_options *o, char (*texts)[32], const char **attrs)
{
    size_t n = 0;

    for (size_t i = 0; i < TNN_RULE_ATTRS && rule->attrs[i]; i++) {
        const double number = *number_at(o, rule->attrs[i]);
        const bool bound = !strncmp(rule->attrs[i], "clip", 4); /* below 0: none */

        tnn_number_text(texts[i], 17, bound && number == 0 ? -1 : number);
        attrs[n++] = rule->attrs[i];
        attrs[n++] = texts[i];
    }
    return n;
}

const char *tnn_rule_when(const tnn_rule *rule)
{
    const tnn_rule *first = rules;

    while (strcmp(first->name, rule->name) != 0)
        first++;
    return first->when;
}

double tnn_rule_lr(const tnn_rule *rule, const tn_trainer_options *o, double lr, int64_t step)
{
    const double t = (double)(step + 1);

    return rule->unbiased && !o->no_bias_correction ? lr * sqrt(1 - pow(o->beta2, t)) / (1 - pow(o->beta1, t))
                                                    : lr;
}

/* ---- schedules: functions of the step's number; nothing of them is a state ---- */

double tn_schedule_lr(const tn_trainer_options *o, int64_t step)
{
    const double turn = 3.14159265358979323846, factor = o && o->factor > 0 ? o->factor : 0.1;
    int64_t t, last, passed = 0;
    double left;

    if (!o)
        return NAN;
    t = step + 1; /* MXNet counts updates from 1 */
    if (o->warmup > 0 && t < o->warmup)
        return o->lr_begin + (o->warmup_constant ? 0 : (o->lr - o->lr_begin) * (double)t / (double)o->warmup);
    if (!o->schedule || !strcmp(o->schedule, "constant"))
        return o->lr;
    if (!strcmp(o->schedule, "factor"))
        return fmax(o->lr * pow(factor, (double)((t - 1) / (o->every > 0 ? o->every : 1))), o->lr_end);
    while (passed < TNN_MILESTONES && o->milestones[passed] > 0 && t > o->milestones[passed])
        passed++;
    if (!strcmp(o->schedule, "multifactor"))
        return o->lr * pow(factor, (double)passed);
    last = o->steps - o->warmup;
    if (t > o->steps || last <= 0)
        return o->lr_end;
    left = (double)(t - o->warmup) / (double)last;
    left = !strcmp(o->schedule, "poly") ? pow(1 - left, o->power != 0 ? o->power : 2)
                                        : (1 + cos(turn * left)) / 2;
    return o->lr_end + (o->lr - o->lr_end) * left;
}

/* ---- formulas ------------------------------------------------------------------------------------ */

typedef struct machine {
    tn_app *app;
    tnn_calls *calls;
} machine;

/* Norms have one dimension of size 1. */
static bool same_shape(const tnn_step *s)
{
    const int64_t *a = NULL, *b = NULL;
    int32_t ndim = 0, other = 0;

    return !tn_array_shape(s->in[0], &ndim, &a) && !tn_array_shape(s->in[1], &other, &b) && ndim == other &&
           memcmp(a, b, (size_t)ndim * sizeof *a) == 0;
}

static const char *whole_name(const tnn_step *s)
{
    static const char *const names[][3] = {
        {"add", "elemwise_add", "broadcast_add"},     {"sub", "elemwise_sub", "broadcast_sub"},
        {"mul", "elemwise_mul", "broadcast_mul"},     {"div", "elemwise_div", "broadcast_div"},
        {"maximum", "_maximum", "broadcast_maximum"}, {"minimum", "_minimum", "broadcast_minimum"}};

    for (size_t i = 0; s->count == 2 && i < sizeof names / sizeof *names; i++)
        if (!strcmp(s->op, names[i][0]))
            return names[i][same_shape(s) ? 1 : 2];
    return s->op;
}

static tn_status call_of(tn_app *app, tnn_calls *calls, const tnn_step *s, tnn_call **out)
{
    const char *const attrs[] = {"scalar", "0", NULL};
    const char *given[5] = {NULL}, *name = whole_name(s);
    tnn_call *c = calls->items;
    tn_status st;

    while (c->op && strcmp(c->op, name) != 0)
        c++;
    *out = c;
    if (c->op)
        return TN_OK;
    if (s->attrs)
        memcpy(given, s->attrs, 4 * sizeof *given);
    if (!(st = tn_site_create(app->ctx, name, s->scalar ? attrs : given, &c->site)) && s->scalar)
        st = tn_site_attr(c->site, "scalar", &c->scalar);
    c->op = st ? NULL : name;
    return st;
}

static void *array_step(void *arg, const tnn_step *s)
{
    machine *m = arg;
    tn_array *in[3] = {NULL}, *out = NULL;
    tnn_call *c;
    tn_status st;

    for (uint32_t i = 0; i < s->count; i++)
        in[i] = s->in[i];
    if (!(st = call_of(m->app, m->calls, s, &c)) &&
        (!s->scalar || !(st = tn_site_set_float(c->site, c->scalar, *s->scalar))))
        st = tn_invoke(c->site, s->count, in, 1, &out);
    return tnn_check(m->app, st, "optimizer") ? NULL : tn_app_own(m->app, out);
}

void tnn_calls_clear(tnn_calls *calls)
{
    for (size_t i = 0; i < TNN_CALLS_MAX; i++)
        tn_site_release(calls->items[i].site);
    memset(calls, 0, sizeof *calls);
}

static double momentum_at(const tn_trainer_options *o, int64_t t)
{
    return o->beta1 * (1 - 0.5 * pow(0.96, (double)t * o->schedule_decay));
}

/* Nadam's momenta of step t and the next one, and the products of all up to them. The product goes on from
 * the step before; after a jump, as when a training is resumed, it begins anew. */
static void schedule_names(tnn_formula *f, const tn_trainer_options *o, tnn_calls *calls, int64_t t)
{
    const double next = momentum_at(o, t + 1);

    if (calls->scheduled > t || !calls->scheduled) {
        calls->scheduled = 0;
        calls->schedule = 1;
    }
    while (calls->scheduled < t)
        calls->schedule *= momentum_at(o, ++calls->scheduled);
    tnn_formula_name(f, "momentum_t", NULL, momentum_at(o, t));
    tnn_formula_name(f, "momentum_next", NULL, next);
    tnn_formula_name(f, "schedule_t", NULL, calls->schedule);
    tnn_formula_name(f, "schedule_next", NULL, calls->schedule * next);
}

/* The gradient times `rescale`, with weight decay where the rule wants it there, within bounds. */
static const char *gradient_text(const tnn_rule *rule, const tn_trainer_options *o)
{
    if (rule->unit) /* one of zeros stays as it is */
        return o->clip > 0 ? "max(min(grad / (norm(grad) + (norm(grad) = 0)), clip), 0 - clip)"
                           : "grad / (norm(grad) + (norm(grad) = 0))";
    if (rule->decayed)
        return o->clip > 0 ? "max(min(grad * rescale + wd * w, clip), 0 - clip)" : "grad * rescale + wd * w";
    return o->clip > 0 ? "max(min(grad * rescale, clip), 0 - clip)" : "grad * rescale";
}

/* The values of one "NAME := formula"; w and states are written. */
static void line_run(tn_app *app, const tnn_rule *rule, tnn_formula *f, const tnn_update *u, const char *text)
{
    tn_array *value = tnn_formula_run(f, strstr(text, ":=") + 2);
    tn_array *into = *text == 'w' ? u->weight : *text == 's' ? u->states[text[1] - '0'] : NULL;

    if (value && into && value != into)
        (void)tnn_check(app, tn_array_copy(value, into), "optimizer %s", rule->name);
    if (value)
        tnn_formula_name(f, text, into ? into : value, 0);
}

/* Numbers that follow from options and the step. */
static void names_give(tnn_formula *f, const tn_trainer_options *o, const tnn_update *u)
{
    for (size_t i = 0; i < NUMBERS; i++)
        tnn_formula_name(f, numbers[i].name, NULL,
                         *number_at((tn_trainer_options *)(uintptr_t)o, numbers[i].name));
    tnn_formula_name(f, "momentum", NULL, u->momentum);
    tnn_formula_name(f, "lr", NULL, u->lr);
    tnn_formula_name(f, "wd", NULL, u->wd);
    tnn_formula_name(f, "rescale", NULL, u->rescale);
    tnn_formula_name(f, "beta1_t", NULL, o->no_bias_correction ? 0 : pow(o->beta1, (double)u->step));
    tnn_formula_name(f, "beta2_t", NULL, o->no_bias_correction ? 0 : pow(o->beta2, (double)u->step));
    tnn_formula_name(f, "adapts", NULL, u->adapts);
    tnn_formula_name(f, "follows", NULL, !strcmp(o->strategy, "lars"));
    tnn_formula_name(f, "rise", NULL, rise_at(o, u->step));
    tnn_formula_name(f, "scale", NULL, (double)o->batch_scale);
}

tn_status tnn_rule_apply(tn_app *app, const tnn_rule *rule, const tn_trainer_options *o, tnn_calls *calls,
                         const tnn_update *u)
{
    static const char *const state_names[] = {"s0", "s1", "s2"};
    machine m = {app, calls};
    tnn_formula f = {.run = array_step, .arg = &m};
    const size_t mark = tn_app_mark(app);
    const bool due = !rule->gathers || u->step % o->batch_scale == 0;
    tn_array *g = NULL;

    tnn_formula_name(&f, "w", u->weight, 0);
    tnn_formula_name(&f, "grad", u->grad, 0);
    for (uint32_t i = 0; i < rule->states; i++)
        tnn_formula_name(&f, state_names[i], u->states[i], 0);
    names_give(&f, o, u);
    if (!strcmp(rule->name, "nadam"))
        schedule_names(&f, o, calls, u->step);
    if (rule->gathers) {
        line_run(app, rule, &f, u, "s1 := s1 + grad");
        if (due && !f.failed)
            tnn_formula_name(&f, "grad", tnn_formula_run(&f, "s1 / scale"), 0);
    }
    if (due && (g = tnn_formula_run(&f, gradient_text(rule, o))))
        tnn_formula_name(&f, "g", g, 0);
    for (size_t i = 0; g && i < TNN_RULE_FORMULAS && rule->formulas[i] && !f.failed; i++)
        line_run(app, rule, &f, u, rule->formulas[i]);
    tn_app_release(app, mark);
    if (f.failed && !app->status)
        return tnn_fail(app, TN_E_INTERNAL, "optimizer %s: its formula is wrong", rule->name);
    return app->status;
}
