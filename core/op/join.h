/* The gradient of Concat, for definitions that name its attributes otherwise. */
#ifndef TN_OP_JOIN_H
#define TN_OP_JOIN_H

#include "op/infer_help.h"

tn_status tni_concat_grad(tn_grad *g);

#endif
