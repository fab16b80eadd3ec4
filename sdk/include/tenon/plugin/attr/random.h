/** Earlier names of attributes of the families random and init: new sources use indices.h. */
#ifndef TENON_PLUGIN_ATTR_RANDOM_H
#define TENON_PLUGIN_ATTR_RANDOM_H

#include "../indices.h"

#define TN_RANDOM_A TN_RANDOM_UNIFORM_LOW
#define TN_RANDOM_B TN_RANDOM_UNIFORM_HIGH
#define TN_RANDOM_SHAPE TN_RANDOM_UNIFORM_SHAPE
#define TN_RANDOM_CTX TN_RANDOM_UNIFORM_CTX
#define TN_RANDOM_DTYPE TN_RANDOM_UNIFORM_DTYPE
#define TN_DROPOUT_MODES "always|training"
#define TN_DROPOUT_ALWAYS TN_DROPOUT_MODE_ALWAYS
#define TN_INIT_SHAPE TN_FULL_SHAPE
#define TN_INIT_CTX TN_FULL_CTX
#define TN_INIT_DTYPE TN_FULL_DTYPE
#define TN_INIT_VALUE TN_FULL_VALUE

#endif
