/** Earlier names of attributes of the family regression: new sources use indices.h. */
#ifndef TENON_PLUGIN_ATTR_REGRESSION_H
#define TENON_PLUGIN_ATTR_REGRESSION_H

#include "../indices.h"

#define TN_REGRESSION_GRAD_SCALE TN_LINEARREGRESSIONOUTPUT_GRAD_SCALE

#endif
