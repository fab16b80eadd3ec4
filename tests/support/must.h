/* Calls that a program of a test's own cannot go on without: it says what failed, and ends. */
#ifndef TN_TEST_SUPPORT_MUST_H
#define TN_TEST_SUPPORT_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "tenon/tenon.h"

#define MUST(call)                                                                                           \
    do {                                                                                                     \
        const tn_status st_ = call;                                                                          \
                                                                                                             \
        if (st_) {                                                                                           \
            printf("%s gives %s: %s\n", #call, tn_status_name(st_), tn_error_text());                        \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
