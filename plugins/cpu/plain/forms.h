/*
 * Kernels for all floating point types that are cut into tasks which write apart from each other. A file
 * lists its operators once, as a macro of X(operator, types, flags, id, tasks, body, room): the table of
 * forms and the rows of kernels are made of it. Bodies are written for float32 and float64; short types:
 * short.h.
 */
#ifndef TNCPU_FORMS_H
#define TNCPU_FORMS_H

#include "../../common/storage.h"
#include "rows.h"
#include "short.h"

typedef struct tncpu_form {
    const char *op;
    int64_t (*tasks)(const tn_node *node);
    tncpu_row_body *f32, *f64;             /* `call` is the tn_exec */
    uint64_t (*room)(const tn_node *node); /* bytes for each thread; NULL: none */
} tncpu_form;

/* `forms` has a row for the node's operator; its output 0 says which body. Outputs without any element
 * have no task. */
tn_status tncpu_forms_prepare(const tncpu_form *forms, void *plugin, const tn_node *node, tn_plan *plan,
                              tn_err *err);
tn_status tncpu_forms_run(const tn_plan *plan, const tn_exec *x, tn_err *err);

/* What X is for the table of forms, and for the family's kernels; id_prepare and id_run are theirs. */
#define TNCPU_FORM(op, types, flags, id, tasks, body, room) {op, tasks, body##_f32, body##_f64, room},
#define TNCPU_FORM_ROW(op, types, flags, id, tasks, body, room)                                              \
    TNCPU_ROW(op, types, flags, id##_prepare, id##_run),
/* The same for bodies in double, which take every data type. */
#define TNCPU_DOUBLE(op, types, flags, id, tasks, body, room) {op, tasks, body, body, room},
#define TNCPU_DOUBLE_ROW(op, types, flags, id, tasks, body, room)                                            \
    TNCPU_ROW(op, types, flags, id##_prepare, tncpu_forms_run),

/* id_prepare of a table. */
#define TNCPU_DOUBLES(id, forms)                                                                             \
    static tn_status id##_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)             \
    {                                                                                                        \
        return tncpu_forms_prepare(forms, plugin, node, plan, err);                                          \
    }

/* id_prepare and id_run of a table; bit i of `unread`: only the shape of input i is read. */
#define TNCPU_FORMS(id, forms, unread)                                                                       \
    TNCPU_DOUBLES(id##_wide, forms)                                                                          \
    static const tncpu_short id##_wide = {id##_wide_prepare, tncpu_forms_run, false, unread};                \
    static tn_status id##_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)             \
    {                                                                                                        \
        return tncpu_short_prepare(&id##_wide, plugin, node, plan, err);                                     \
    }                                                                                                        \
    static tn_status id##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                            \
    {                                                                                                        \
        return tncpu_short_run(&id##_wide, plan, x, err);                                                    \
    }

/* Products of the first two dimensions; 0 of a tensor without elements, which may have any number of them. */
static inline int64_t tncpu_planes(const tn_tensor *t)
{
    return tn_tensor_count(t) ? t->shape[0] * t->shape[1] : 0;
}

#endif
