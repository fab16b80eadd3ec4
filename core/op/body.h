/* Code of pointwise operators (plugin/pointwise.h): of definitions with a body, and as text. */
#ifndef TN_OP_BODY_H
#define TN_OP_BODY_H

#include "op/op.h"
#include "tenon/plugin/pointwise.h"

/* What an operator computes, as tn_op.body says: `run` of a step is an attribute of the definition, of either
 * kind, and data types are left open. NULL: it has no body. */
typedef struct tni_body tni_body;

/* `find`: definitions by name. TN_E_ARG with the place in the text. */
tn_status tni_body_create(const tni_opdef *def, const tni_opdef *(*find)(const void *arg, const char *name),
                          const void *arg, tni_body **out);
void tni_body_destroy(tni_body *b); /* NULL is fine */
/* Its code for these attributes and this data type: `run` of a step is a run-time attribute of the
 * definition. */
void tni_body_code(const tni_opdef *def, const tni_attrs *attrs, int32_t dtype, tn_point_code *out);

tn_status tni_point_write(const tn_point_code *code, tni_str *out);

#endif
