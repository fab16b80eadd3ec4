/* A list of strings that ends with NULL, such as attributes: LIST("scalar", "1"). */
#ifndef TN_TEST_SUPPORT_LIST_H
#define TN_TEST_SUPPORT_LIST_H

#include <stddef.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
