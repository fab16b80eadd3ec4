/** Earlier names of attributes of shape, slice, join, index, matrix: new sources use indices.h. */
#ifndef TENON_PLUGIN_ATTR_SHAPE_H
#define TENON_PLUGIN_ATTR_SHAPE_H

#include "../indices.h"

#define TN_TAKE_MODES "clip|raise|wrap"
#define TN_TAKE_CLIP TN_TAKE_MODE_CLIP
#define TN_TAKE_RAISE TN_TAKE_MODE_RAISE
#define TN_TAKE_WRAP TN_TAKE_MODE_WRAP
#define TN_PICK_MODES "clip|wrap"
#define TN_PICK_WRAP TN_PICK_MODE_WRAP

#endif
