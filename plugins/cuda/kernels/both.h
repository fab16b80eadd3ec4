/* Includes BODY for the two types that floating point is computed in: T and N, and words for elements. */
#include "element.h"

#define GET(data, i) GLUE(element_, N)(data, call->dtype, i)
#define SET(data, i, v) GLUE(element_set_, N)(data, call->dtype, i, v)
#define PUT(i, v) SET(call->to, i, call->add ? GET(call->to, i) + (v) : (v))

/* Arrays of a tncuda_call_args, and the names of ../../common. */
#define IN(k, i) GLUE(element_, N)(call->in[k].data, call->in[k].dtype, i)
#define OUT(k, i, v) GLUE(element_set_, N)(call->out[k].data, call->out[k].dtype, i, v)
#define FN(name) GLUE(GLUE(name, _), N)

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
