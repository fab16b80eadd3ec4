/* What the files that choose kernels share. */
#ifndef TN_SELECT_H
#define TN_SELECT_H

#include "compile/compile.h"

typedef struct tni_candidate {
    const tn_kernel *kernel;
    const tn_kernel_table *table;
    tni_plugin *plugin;
} tni_candidate;

typedef struct tni_ranked {
    tni_candidate c;
    int32_t pin, prefer; /* smaller first; pin 0: [kernel] Op@device names it */
} tni_ranked;

/* rules.c: what needs no prepare. False: `why` says which rule. */
bool tni_rules_match(const tni_request *r, const tni_candidate *c, char *why, size_t size);

/* select.c */
tni_registry *tni_selector_plugins(const tni_selector *s);
/* "plugin" or "plugin/kernel" of [kernel] Op@device; "" if the operator is not pinned. */
const char *tni_pin_of(const tni_selector *s, const tni_request *r);
/* The candidates of the request's operator and device type (tni_ranked), best first. */
tn_status tni_ranked_list(tni_selector *s, const tni_request *r, tni_vec *out);
tn_status tni_candidate_prepare(const tni_request *r, const tni_candidate *c, tni_prepared **out,
                                tn_err *err);

#endif
