/** Where kernels of the family regression find their attributes. */
#ifndef TENON_PLUGIN_ATTR_REGRESSION_H
#define TENON_PLUGIN_ATTR_REGRESSION_H

#define TN_REGRESSION_GRAD_SCALE 0

#endif
