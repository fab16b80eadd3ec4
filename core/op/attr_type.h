/* Shared by the files of room op about attributes; not for other rooms. */
#ifndef TN_OP_ATTR_TYPE_H
#define TN_OP_ATTR_TYPE_H

#include "op/op.h"

#define TNI_ATTRS_MAX 128 /* attributes of one operator: the masks have two words */

bool tni_attr_is_pointer(uint32_t type); /* values of this type are addresses, None being 0 */
static inline bool tni_attr_is_tuple(uint32_t type)
{
    return type == TN_ATTR_T_TUPLE || type == TN_ATTR_T_OPT_TUPLE || type == TN_ATTR_T_FLOATS;
}
/* The index of a choice of "a|b|c"; -1: none of them. */
int64_t tni_choice_index(const char *choices, const char *text, size_t length);
tn_status tni_attrs_defaults(const tni_opdef *def, tni_attrs **out); /* required ones: 0, dtypes -1 */

#endif
