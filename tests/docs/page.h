/* Pages that are written from the tables of the library: compared with what is committed, or written anew. */
#ifndef TN_TEST_DOCS_PAGE_H
#define TN_TEST_DOCS_PAGE_H

#include "op/op.h"

#define PAGE_BYTES_MAX (4u << 20)

void must(tn_status st);
/* `name` is relative to the root of the tree. TENON_UPDATE=1 writes the file; else a difference fails and
 * names the first line of it. */
void page_compare(const char *name, tni_str *page);

#endif
