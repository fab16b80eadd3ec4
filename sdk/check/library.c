/*
 * The kit as a library, libtenon-check.so: what `tenon plugins check` opens.
 */
#include "check.h"

__attribute__((visibility("default"))) const chk_library tn_check_library = {CHK_VERSION, chk_run};
