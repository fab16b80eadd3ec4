/** Earlier names of attributes of the family conv: new sources use indices.h. */
#ifndef TENON_PLUGIN_ATTR_CONV_H
#define TENON_PLUGIN_ATTR_CONV_H

#include "../indices.h"

#define TN_CONVOLUTION_LAYOUTS "None|NCDHW|NCHW|NCW|NDHWC|NHWC"

#endif
