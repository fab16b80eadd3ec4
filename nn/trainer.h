/* What the files of a trainer share: trainer.c steps and states, trainer_store.c several devices. */
#ifndef TN_NN_TRAINER_H
#define TN_NN_TRAINER_H

#include "optimizers.h"
#include "tenon/kv.h"

typedef struct slot { /* of one parameter */
    tnn_param *param;
    size_t index;                          /* in the net's list */
    tn_array *states[TNN_RULE_STATES + 1]; /* of a store that updates: its own; then the float32 copy */
    bool half;                             /* it has one */
    tn_array *grad;                        /* in float32, of such a one */
    uint64_t version;                      /* of the values that the copy follows */
    bool stale;                            /* no backward has reached it since the last step */
    uint32_t used;                         /* number of the backward whose gradient a step took last */
    int64_t skipped;                       /* steps that have left it as it is */
} slot;

typedef struct update { /* one call of a step, for `count` slots from number `first` of `order` on */
    size_t first, count;
    bool many; /* through the rule's operator for many */
    tn_site *site;
    uint32_t lr, wd, rescale; /* attributes' indices; lr, wd: one number, or a list of `count` */
    double rescale_now;
    double *rates;     /* as the site has them: count learning rates, then count weight decays */
    tn_array **arrays; /* inputs, then outputs */
} update;

struct tn_trainer {
    tnn_object object;
    tn_net *net;
    tn_trainer_options o;
    const tnn_rule *rule;
    tnn_calls calls;                /* of its formulas */
    slot *slots;                    /* one per parameter with a gradient; made at the first step */
    size_t slot_count, param_count; /* param_count: of the net, when they were made */
    size_t *order;                  /* the slots by calls: a permutation */
    update *updates;
    size_t update_count;
    int64_t steps;
    bool made;
    tn_kv *kv;       /* NULL: one device, and nobody else */
    bool on_store;   /* which updates */
    bool far, async; /* its values lie on servers; not in rounds */
    bool rejoined;   /* this worker is in another's place, and goes on behind its steps */
    uint32_t rank, workers;
    tn_kv_item *items;  /* one per slot: what goes in, and what comes out */
    tn_array **lists;   /* of them: per slot its gradients, then its arrays, one for each device */
    uint64_t *versions; /* per slot: of the values that the store, and all devices, have */
    double *factors;    /* per slot: of lr and wd, as a store that updates has them; below 0: it has none */
};

uint32_t tnn_states_of(const tn_trainer *t, const slot *s); /* with the float32 copy, if it has one */

/* stale.c: which parameters a step is to leave out; TN_E_STATE where that is not asked for. */
tn_status tnn_stale_check(tn_trainer *t);
/* The step has succeeded: it is counted, and its gradients are old ones from now on. */
void tnn_stale_done(tn_trainer *t);
/* Steps that the parameter with the most of them has, which schedules go by; `now`: as the step that has just
 * been checked begins. */
int64_t tnn_trainer_updates(const tn_trainer *t, bool now);
/* Opens the store, if there is to be one. */
tn_status tnn_store_open(tn_trainer *t);
/* Its keys, behind the slots, before their states. */
tn_status tnn_store_make(tn_trainer *t);
void tnn_store_clear(tn_trainer *t);
/* Behind the keys. A worker in another's place goes on with the values and steps that the servers have. */
tn_status tnn_store_rejoin(tn_trainer *t);
tn_status tnn_store_taken(const tn_trainer *t); /* it loads no states: TN_E_STATE */
/* Of a store that updates: states of a slot, of servers as they are now; and these and the steps back. */
tn_status tnn_store_state(tn_trainer *t, size_t index);
tn_status tnn_store_return(tn_trainer *t, size_t index);
/* Gradients become their sums over all devices. */
tn_status tnn_store_sum(tn_trainer *t);
/* The store's step, from gradients to values on all devices. */
tn_status tnn_store_step(tn_trainer *t, double lr, double rescale);
tn_status tnn_store_end(tn_trainer *t);
/* Values of the first device go to the others. */
tn_status tnn_store_spread(tn_trainer *t);

#endif
