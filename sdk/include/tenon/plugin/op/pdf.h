/** Attributes of the operators of the family pdf. */
#ifndef TENON_PLUGIN_OP_PDF_H
#define TENON_PLUGIN_OP_PDF_H

#include "../attr.h"

#define TN_pdf_ATTRS(X) X(pdf, BOOL, is_log, "0", TN_ANY, "the logarithm of the density")
TN_ATTRS(pdf);

#endif
