/** Attributes of the operators of the family move. */
#ifndef TENON_PLUGIN_OP_MOVE_H
#define TENON_PLUGIN_OP_MOVE_H

#include "../attr.h"

/* _fill */
#define TN_fill_ATTRS(X) X(fill, FLOAT_RUN, value, "0", TN_ANY, "of every element")
TN_ATTRS(fill);

#endif
