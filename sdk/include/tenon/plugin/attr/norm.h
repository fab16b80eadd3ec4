/** Earlier names of attributes of the family norm: new sources use indices.h. */
#ifndef TENON_PLUGIN_ATTR_NORM_H
#define TENON_PLUGIN_ATTR_NORM_H

#include "../indices.h"

#endif
