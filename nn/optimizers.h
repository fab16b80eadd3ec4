/* How optimizers update a parameter: a table of rules. */
#ifndef TN_NN_OPTIMIZERS_H
#define TN_NN_OPTIMIZERS_H

#include "internal.h"

#define TNN_RULE_ATTRS 4
#define TNN_RULE_FORMULAS 8
#define TNN_RULE_STATES 3
#define TNN_CALLS_MAX 32
enum { TNN_MILESTONES = sizeof((tn_trainer_options){0}).milestones / sizeof(int64_t) };

typedef struct tnn_rule {
    const char *name, *when;           /* when: this option is not 0; NULL: always */
    const char *op, *many;             /* operator; the one for many parameters. NULL: none */
    const char *attrs[TNN_RULE_ATTRS]; /* options that are attributes of it, beside lr, wd, clip_gradient; or,
                                          without an operator, of the store's optimizer of this name */
    const char *formulas[TNN_RULE_FORMULAS]; /* "s0 := …", "w := …", in this order; without an operator */
    uint32_t states;
    bool unbiased; /* lr is corrected for the first steps, as adam's */
    bool decayed;  /* weight decay is added to the gradient before it is cut */
    bool first;    /* the state begins as the weight, else as zeros */
    bool rows;     /* states have one number for each row of a matrix */
    bool gathers;  /* the last state sums gradients up to every batch_scale-th step */
    bool corrects; /* what moments lack at first is made up for, unless .no_bias_correction */
    bool unit;     /* the gradient counts by its direction alone */
    bool divides;  /* by lr: a step whose lr is 0, as at the end of a schedule, leaves all as it is */
    double lr, epsilon, beta1; /* where the options have 0; beta1 0: 0.9 */
} tnn_rule;

/* Sites of the operators that formulas call. */
typedef struct tnn_call {
    const char *op;
    tn_site *site;
    uint32_t scalar;
} tnn_call;

typedef struct tnn_calls {
    tnn_call items[TNN_CALLS_MAX]; /* op NULL: free */
    int64_t scheduled;             /* nadam: the step whose product this is; 0: none */
    double schedule;
} tnn_calls;

typedef struct tnn_update {
    tn_array *weight, *grad, *const *states;
    double lr, wd, rescale, momentum;
    bool adapts;  /* its rate may follow norms: no bias, gamma or beta */
    int64_t step; /* from 1 */
} tnn_update;

/* Fills in the defaults of `o`; NULL: failed. */
const tnn_rule *tnn_rule_of(tn_app *app, tn_trainer_options *o);
/* Pairs of name and text for the operator; how many texts. */
size_t tnn_rule_attrs(const tnn_rule *rule, tn_trainer_options *o, char (*texts)[32], const char **attrs);
/* The option that chooses between the rules of its name; NULL: there is one alone. */
const char *tnn_rule_when(const tnn_rule *rule);
double tnn_rule_lr(const tnn_rule *rule, const tn_trainer_options *o, double lr, int64_t step);
/* By the rule's formulas. */
tn_status tnn_rule_apply(tn_app *app, const tnn_rule *rule, const tn_trainer_options *o, tnn_calls *calls,
                         const tnn_update *u);
void tnn_calls_clear(tnn_calls *calls);

#endif
