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

/* kernel_types.c: rows of tn_kernel.types. Of the request, the definition and the tensors' types count. */
bool tni_kernel_types_match(const tni_request *r, const tn_kernel *k, char *why, size_t size);
/* The row for argument `index` (inputs, then outputs) behind its colon; NULL: anything goes. */
const char *tni_kernel_rule(const tni_request *r, const tn_kernel *k, uint32_t index);
bool tni_rule_allows(const tni_request *r, const char *types, int32_t dtype);
uint32_t tni_rule_dtypes(const char *types);   /* bits; 0: another argument, or storage types alone */
uint32_t tni_rule_storages(const char *types); /* bits; none is named: dense */

/* prepared.c */
typedef struct tni_prepared_cache tni_prepared_cache;
tn_status tni_prepared_cache_create(tni_prepared_cache **out);
void tni_prepared_cache_destroy(tni_prepared_cache *c);
/* The prepared kernel of an equal request of this generation, or what `make` gives. */
tn_status tni_prepared_find(tni_prepared_cache *c, const tni_request *r, uint64_t generation,
                            tn_status (*make)(void *arg, const tni_request *r, tni_prepared **out), void *arg,
                            tni_prepared **out);

/* body.c: of an operator whose definition has a body, what _fused_pointwise runs on for it; or why not, in
 * `text`. */
tn_status tni_body_select(tni_selector *s, const tni_request *r, tni_prepared **out, tni_str *text);
/* Kernels that may run a body; 0: there is none. */
tn_status tni_body_count(tni_selector *s, const tni_opdef *def, tni_device *device, uint32_t *count,
                         uint32_t *prompt);
/* Attributes of _fused_pointwise. */
tn_status tni_point_attrs(tni_opset *ops, const tn_point_code *code, tni_attrs **out);

/* guess.c: 0: its definition does not say. */
tn_status tni_guess_ns(const tni_request *r, uint64_t *ns);

/* moving.c: why this kernel, just prepared, is none for the copy that asks; NULL: it is, or no copy asks. */
const char *tni_moves_not(const tni_request *r, const tni_prepared *p);

/* layouts.c */
typedef struct tni_layouts tni_layouts;
tn_status tni_layouts_create(tni_layouts **out);
void tni_layouts_destroy(tni_layouts *s); /* NULL is fine */
/* May the kernel ask for some? When too many were asked for, kernels are told so before, and plan for dense
 * tensors. */
bool tni_layouts_given(tni_layouts *s, const tni_request *r, const tni_candidate *c);
/* What a plan asked for: copied, so that it outlives the plan. Text: why it cannot be given. */
const char *tni_layouts_take(tni_layouts *s, const tni_request *r, tni_prepared *p, tn_status *st);

/* select.c */
tni_registry *tni_selector_plugins(const tni_selector *s);
tni_layouts *tni_selector_layouts(const tni_selector *s);
/* "plugin" or "plugin/kernel" of [kernel] Op@device; "" if the operator is not pinned. */
const char *tni_pin_of(const tni_selector *s, const tni_request *r);
/* The candidates of the request's operator and device type (tni_ranked), best first. */
tn_status tni_ranked_list(tni_selector *s, const tni_request *r, tni_vec *out);
/* prepare.c. `measure`: the kernel may measure, where it may at all; false: its plan is only looked at. */
tn_status tni_candidate_prepare(tni_selector *s, const tni_request *r, const tni_candidate *c, bool measure,
                                tni_prepared **out, tn_err *err);

#endif
