/* Where everything of a program lies: ports, views, in-place sharing, arena offsets. Used by program.c only.
 */
#ifndef TN_COMPILE_PLACE_H
#define TN_COMPILE_PLACE_H

#include "compile/compile.h"

tn_status tni_program_place(tni_program *p, const tni_program_spec *spec);

#endif
