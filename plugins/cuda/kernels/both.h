/* Includes BODY for the two types that floating point is computed in: T and N, and the words GET and SET. */
#include "element.h"

#define GET(data, i) GLUE(element_, N)(data, call->dtype, i)
#define SET(data, i, v) GLUE(element_set_, N)(data, call->dtype, i, v)
#define PUT(i, v) SET(call->to, i, call->add ? GET(call->to, i) + (v) : (v))

#define T float
#define N f32
#include BODY
#undef T
#undef N
#define T double
#define N f64
#include BODY
#undef T
#undef N
