/* See forms.h. */
#include "forms.h"

typedef struct forms_state {
    tncpu_row_body *body;
    int64_t tasks;
} forms_state;

tn_status tncpu_forms_prepare(const tncpu_form *forms, void *plugin, const tn_node *node, tn_plan *plan,
                              tn_err *err)
{
    const tncpu_form *f = tncpu_form_of(forms, sizeof *forms, node->op);
    const tn_status st = tncpu_state(plugin, plan, sizeof(forms_state), err);
    forms_state *s = plan->state;
    double elements = 0, written = 0;

    if (st)
        return st;
    for (uint32_t i = 0; i < node->in_count; i++)
        elements += (double)tn_tensor_count(node->in[i]);
    for (uint32_t o = 0; o < node->out_count; o++)
        written += (double)tn_tensor_count(node->out[o]);
    s->body = node->out[0]->dtype == TN_F64 ? f->f64 : f->f32;
    s->tasks = written > 0 ? f->tasks(node) : 0; /* tasks of nothing may be any number */
    tncpu_plan_tasks(node, plan, 50 + 4 * (elements + written), s->tasks);
    if (f->room)
        tncpu_plan_workspace(plan, f->room(node));
    return TN_OK;
}

tn_status tncpu_forms_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const forms_state *s = plan->state;

    (void)err;
    tncpu_rows_run(plan, x, s->tasks, 0, s->body, x);
    return TN_OK;
}
