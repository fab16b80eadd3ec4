/*
 * Kernels for room tensor: which one of a device fills, copies, casts or adds arrays there. They are chosen
 * and kept as those of any call: operators `_fill` and `_move`.
 */
#include "compile/select.h"

struct tni_moving {
    tni_selector *selector;
    tni_space *space;
    const tni_opdef *def[2]; /* _fill, _move */
    tni_attrs *attrs[2];
    uint32_t threads;
    uint16_t flags;
};

/* A copy runs a kernel alone, on the arrays as they are. */
const char *tni_moves_not(const tni_request *r, const tni_prepared *p)
{
    if (!r->moves)
        return NULL;
    if (p->dense || p->on_host)
        return "takes dense tensors or host memory only, and copies have strides";
    if (!p->adds && r->modes[0] == TN_MODE_ADD)
        return "only overwrites";
    return p->kernel->flags & TN_KERNEL_ASYNC || p->plan.workspace_bytes || p->plan.saved_bytes
               ? "completes later or needs a workspace, which a copy does not give"
               : NULL;
}

static tn_status kernels_find(void *arg, tni_device *d, const tn_tensor *src, const tn_tensor *dst,
                              uint8_t mode, tni_prepared **out)
{
    const tni_moving *m = arg;
    const tni_request r = {.def = m->def[src != NULL],
                           .attrs = m->attrs[src != NULL],
                           .device = d,
                           .in = src ? &src : &dst,
                           .out = &dst,
                           .modes = &mode,
                           .in_count = 1,
                           .out_count = 1,
                           .threads = m->threads,
                           .flags = m->flags,
                           .moves = true};
    uint32_t count = 0, prompt;
    tni_prepared *found = NULL;
    tn_err before;
    tn_status st = tni_select_count(m->selector, r.def, d, &count, &prompt);

    *out = NULL;
    if (st || !count)
        return st;
    tni_error_get(&before);
    st = tni_select(m->selector, &r, &found);
    if (st == TN_E_UNSUPPORTED) { /* the copy goes another way */
        tni_error_set(&before);
        return TN_OK;
    }
    if (!st)
        *out = found;
    return st;
}

static tn_status kernels_slot(const tni_prepared *p, const tni_run *run, void ***out)
{
    return tni_slot_get(run, p->plugin, p->table, out);
}

static tn_status kernels_run(const tni_prepared *p, tn_exec *x, double value, tn_err *err)
{
    const tn_value attrs[] = {tn_value_of_float(value)}; /* of _fill; _move has none */
    tn_status st;

    x->attrs = attrs;
    st = p->kernel->run(&p->plan, x, err);
    return st == TN_PENDING ? tn_fail(err, TN_E_INTERNAL, "a kernel of copies completes later") : st;
}

static const tni_array_kernels table = {
    .find = kernels_find, .slot = kernels_slot, .run = kernels_run, .release = tni_prepared_release};

tn_status tni_moving_create(tni_selector *s, tni_space *space, uint16_t flags, uint32_t threads,
                            tni_moving **out)
{
    static const char *const names[] = {"_fill", "_move"};
    tni_moving *m = tni_zalloc(sizeof *m);
    tn_status st = m ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < 2 && !st; i++)
        if (!(st = tni_opset_find(tni_selector_ops(s), names[i], &m->def[i])))
            st = tni_attrs_parse(m->def[i], 0, NULL, NULL, &m->attrs[i]);
    if (st) {
        tni_moving_destroy(m);
        return st;
    }
    m->selector = s;
    m->space = space;
    m->flags = flags;
    m->threads = threads;
    space->kernels = &table;
    space->kernels_arg = m;
    *out = m;
    return TN_OK;
}

void tni_moving_destroy(tni_moving *m)
{
    if (!m)
        return;
    if (m->space)
        m->space->kernels_arg = NULL;
    tni_attrs_release(m->attrs[0]);
    tni_attrs_release(m->attrs[1]);
    tni_free(m);
}
