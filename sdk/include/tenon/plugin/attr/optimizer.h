/** Where kernels of the family optimizer find their attributes: indices into the value arrays of nodes and
 * calls. */
#ifndef TENON_PLUGIN_ATTR_OPTIMIZER_H
#define TENON_PLUGIN_ATTR_OPTIMIZER_H

/* sgd_update, mp_sgd_update, signsgd_update (without LAZY_UPDATE) */
#define TN_SGD_LR 0
#define TN_SGD_WD 1
#define TN_SGD_RESCALE_GRAD 2
#define TN_SGD_CLIP_GRADIENT 3
#define TN_SGD_LAZY_UPDATE 4

/* sgd_mom_update, mp_sgd_mom_update; nag_mom_update and signum_update up to CLIP_GRADIENT */
#define TN_SGD_MOM_LR 0
#define TN_SGD_MOM_MOMENTUM 1
#define TN_SGD_MOM_WD 2
#define TN_SGD_MOM_RESCALE_GRAD 3
#define TN_SGD_MOM_CLIP_GRADIENT 4
#define TN_SGD_MOM_LAZY_UPDATE 5
#define TN_SIGNUM_WD_LH 5

/* adam_update */
#define TN_ADAM_LR 0
#define TN_ADAM_BETA1 1
#define TN_ADAM_BETA2 2
#define TN_ADAM_EPSILON 3
#define TN_ADAM_WD 4
#define TN_ADAM_RESCALE_GRAD 5
#define TN_ADAM_CLIP_GRADIENT 6
#define TN_ADAM_LAZY_UPDATE 7

/* rmsprop_update */
#define TN_RMSPROP_LR 0
#define TN_RMSPROP_GAMMA1 1
#define TN_RMSPROP_EPSILON 2
#define TN_RMSPROP_WD 3
#define TN_RMSPROP_RESCALE_GRAD 4
#define TN_RMSPROP_CLIP_GRADIENT 5
#define TN_RMSPROP_CLIP_WEIGHTS 6

/* rmspropalex_update */
#define TN_RMSPROPALEX_LR 0
#define TN_RMSPROPALEX_GAMMA1 1
#define TN_RMSPROPALEX_GAMMA2 2
#define TN_RMSPROPALEX_EPSILON 3
#define TN_RMSPROPALEX_WD 4
#define TN_RMSPROPALEX_RESCALE_GRAD 5
#define TN_RMSPROPALEX_CLIP_GRADIENT 6
#define TN_RMSPROPALEX_CLIP_WEIGHTS 7

#endif
